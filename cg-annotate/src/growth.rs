//! What a reviewer wants of two profiles: for each function how much it was, how much it is, and how much that grew; and the
//! source of changed files with the counts of both sides.
//!
//! Both sides are kept as they are beside their difference, so nothing here is a share of a difference. Growth is measured
//! against the size of what was there.

use std::collections::BTreeMap;

use cg_format::show::percent;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::model::{Model, Pair, Sums, lines_of};
use crate::options::Bound;

/// How many functions a report for people lists: the page of a job has a limit, too, and nobody reads on.
pub(crate) const MOST: usize = 50;

/// A function on both sides.
pub(crate) struct Growth<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) function: &'a [u8],
    /// Before and after.
    pub(crate) sides: [Sums; 2],
}

impl Growth<'_> {
    pub(crate) fn change(&self, event: usize) -> i128 {
        self.sides[1][event] - self.sides[0][event]
    }

    /// In percent; none if it starts from 0.
    pub(crate) fn percent(&self, event: usize) -> Option<f64> {
        percent(self.change(event), self.sides[0][event].abs())
    }
}

/// A function that a `--fail-above-function` bound is about.
pub(crate) struct FunctionVerdict<'a> {
    pub(crate) bound: &'a Bound,
    pub(crate) event: usize,
    /// Those that grew more, the largest change first.
    pub(crate) failed: Vec<Growth<'a>>,
}

/// All functions of both sides that changed, by the sizes of changes in the sort order, then by name.
pub(crate) fn changed<'a>(model: &Model, pair: &'a Pair) -> anyhow::Result<Vec<Growth<'a>>> {
    let mut all = functions(model, pair)?;
    all.retain(|growth| growth.sides[0] != growth.sides[1]);
    sort(&mut all, &model.sort);
    Ok(all)
}

fn functions<'a>(model: &Model, pair: &'a Pair) -> anyhow::Result<Vec<Growth<'a>>> {
    let mut found: BTreeMap<(&[u8], &[u8]), [Sums; 2]> = BTreeMap::new();
    for (side, profile) in pair.profiles.iter().enumerate() {
        for file in profile.files() {
            for function in file.functions() {
                let none = || [model.zeros(), model.zeros()];
                let sums = found.entry((file.name(), function.name())).or_insert_with(none);
                function.rows().add_to(&mut sums[side])?;
            }
        }
    }
    Ok(found.into_iter().map(|((file, function), sides)| Growth { file, function, sides }).collect())
}

/// Those of which `event` changed, the largest change first.
pub(crate) fn of_event<'g, 'a>(all: &'g [Growth<'a>], event: usize) -> Vec<&'g Growth<'a>> {
    let mut of: Vec<&Growth<'_>> = all.iter().filter(|growth| growth.change(event) != 0).collect();
    of.sort_by_key(|growth| std::cmp::Reverse(growth.change(event).unsigned_abs()));
    of
}

fn sort(all: &mut [Growth<'_>], events: &[usize]) {
    // They come by name, and stay so where changes are equal.
    all.sort_by_cached_key(|growth| {
        events.iter().map(|event| std::cmp::Reverse(growth.change(*event).unsigned_abs())).collect::<Vec<_>>()
    });
}

/// Compares functions with bounds. Only those count that have, on one side, as much of the event's total as the threshold
/// says: the growth of small ones is no news.
pub(crate) fn verdicts<'a>(
    model: &Model,
    pair: &'a Pair,
    bounds: &'a [Bound],
    threshold: f64,
) -> anyhow::Result<Vec<FunctionVerdict<'a>>> {
    let verdict = |bound: &'a Bound| {
        let event = model.event("--fail-above-function", &bound.event)?;
        let totals: Vec<i128> = pair.profiles.iter().map(|profile| profile.total()[event].abs()).collect();
        let large = |growth: &Growth<'_>| {
            let shares = growth.sides.iter().zip(&totals).map(|(side, total)| percent(side[event].abs(), *total));
            shares.into_iter().any(|share| share.is_some_and(|share| share >= threshold))
        };
        let mut failed = functions(model, pair)?;
        failed.retain(|growth| {
            let grew = growth.percent(event).map_or(growth.change(event) > 0, |percent| percent > bound.percent);
            grew && large(growth)
        });
        sort(&mut failed, &[event]);
        Ok(FunctionVerdict { bound, event, failed })
    };
    bounds.iter().map(verdict).collect()
}

/// A line of a changed file: its text and the counts of each side, if that side has the line and counts for it.
pub(crate) struct ChangedLine<'t> {
    /// Its numbers before and after.
    pub(crate) numbers: [Option<u64>; 2],
    pub(crate) text: &'t [u8],
    pub(crate) counts: [Option<Sums>; 2],
}

/// The lines of both texts of a file, joined where they are the same.
pub(crate) fn lines<'t>(
    model: &Model,
    pair: &Pair,
    file: &[u8],
    texts: [&'t [u8]; 2],
) -> anyhow::Result<Vec<ChangedLine<'t>>> {
    let [before, after] = &pair.profiles;
    let mut counts = [lines_of(model, before, file)?, lines_of(model, after, file)?];
    let texts = texts.map(|text| cg_cli::source_text::lines(text).map(|(_, line)| line).collect::<Vec<_>>());
    let mut lines = Vec::new();
    let mut push = |text, at: [Option<usize>; 2]| {
        let numbers = at.map(|at| at.map(|at| at as u64 + 1));
        let counts = [0, 1].map(|side| numbers[side].and_then(|number| counts[side].remove(&number)));
        lines.push(ChangedLine { numbers, text, counts });
    };
    for op in capture_diff_slices(Algorithm::Myers, &texts[0], &texts[1]) {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            old.zip(new).for_each(|(old, new)| push(texts[1][new], [Some(old), Some(new)]));
            continue;
        }
        old.for_each(|old| push(texts[0][old], [Some(old), None]));
        new.for_each(|new| push(texts[1][new], [None, Some(new)]));
    }
    Ok(lines)
}
