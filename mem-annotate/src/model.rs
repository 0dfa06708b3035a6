//! What is shown: the objects above the threshold, in order, and the streams of each.
//!
//! Counts are those of the file, or differences of two; the totals are those of all objects, shown or not.

use std::collections::BTreeMap;

use anyhow::ensure;
use cg_cli::options as cli;
use cg_format::mem::{Caller, Kind, Mem, Object, notation};

use crate::reuse::Distances;
use crate::sharing::Sharing;

/// A row of the report.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The object, as the last file that has it says.
    pub(crate) object: Object,
    /// By event; of a difference what was added.
    pub(crate) counts: Vec<i128>,
    /// Indices of its streams, those with the most misses first. None where two files are compared.
    pub(crate) streams: Vec<usize>,
    /// Indices of the functions that miss it, those with the most misses first. None where two files are compared.
    pub(crate) missed_by: Vec<usize>,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Model {
    /// The file; of a difference the second one.
    pub(crate) mem: Mem,
    /// The commands of both sides of a difference.
    pub(crate) commands: Vec<String>,
    /// By event.
    pub(crate) totals: Vec<i128>,
    /// What percentages are of: the totals, but those of both sides together where two files are compared.
    pub(crate) whole: Vec<i128>,
    /// Those above the threshold, in order.
    pub(crate) rows: Vec<Row>,
    /// How many are below it.
    pub(crate) hidden: usize,
    /// The events to show, as indices.
    pub(crate) show: Vec<usize>,
    /// Those to sort by.
    pub(crate) sort: Vec<usize>,
    /// Stack distances, of one file.
    pub(crate) distances: Option<Distances>,
    /// Lines that threads share, of one file or what two differ in.
    pub(crate) sharing: Option<Sharing>,
    /// The first of two files.
    before: Option<Mem>,
    /// What of its first sorting event, or of all if nobody chooses, is shown.
    least: f64,
    /// Whether the instruction of each stream has no other one.
    pub(crate) alone: Vec<bool>,
}

/// What tells objects apart.
type Key = (Kind, String, u64, String, String, Vec<Caller>);

fn key(o: &Object) -> Key {
    (o.kind, o.file.clone(), o.line, o.name.clone(), o.function.clone(), o.callers.clone())
}

impl Model {
    /// A file, or the second of two minus the first.
    ///
    /// # Errors
    /// When the files count other events.
    pub(crate) fn new(before: Option<Mem>, mem: Mem) -> anyhow::Result<Self> {
        let commands = before.iter().chain([&mem]).map(|m| m.head.command.clone()).collect();
        let signed = |counts: &[u64]| counts.iter().map(|n| i128::from(*n)).collect::<Vec<i128>>();
        let mut totals = signed(&mem.head.totals);
        let mut whole = totals.clone();
        let mut rows: Vec<Row> = mem
            .objects
            .iter()
            .map(|o| Row { object: o.clone(), counts: signed(&o.counts), streams: Vec::new(), missed_by: Vec::new() })
            .collect();
        let mut alone = vec![true; mem.streams.len()];
        match &before {
            Some(before) => {
                let (old, new) = (before.head.events.join(" "), mem.head.events.join(" "));
                ensure!(old == new, "the files count other events: {old}, and {new}");
                // Lines move between two versions of a program; objects that nothing else tells apart are compared in order.
                let mut there: BTreeMap<Key, usize> = BTreeMap::new();
                rows.iter().enumerate().for_each(|(n, row)| {
                    there.insert(key(&row.object), n);
                });
                for o in &before.objects {
                    let n = *there.entry(key(o)).or_insert_with(|| {
                        rows.push(Row {
                            object: o.clone(),
                            counts: vec![0; totals.len()],
                            streams: Vec::new(),
                            missed_by: Vec::new(),
                        });
                        rows.len() - 1
                    });
                    rows[n].counts.iter_mut().zip(&o.counts).for_each(|(sum, n)| *sum -= i128::from(*n));
                }
                for (n, old) in before.head.totals.iter().enumerate() {
                    totals[n] -= i128::from(*old);
                    whole[n] = whole[n].max(i128::from(*old));
                }
            }
            None => {
                for (n, stream) in mem.streams.iter().enumerate() {
                    rows[stream.object].streams.push(n);
                }
                for (n, by) in mem.missed_by.iter().enumerate() {
                    rows[by.object].missed_by.push(n);
                }
                alone = notation::alone(&mem.streams);
                for row in &mut rows {
                    row.streams.sort_by_key(|n| std::cmp::Reverse(mem.streams[*n].misses));
                }
            }
        }
        let (show, sort) = ((0..totals.len()).collect(), mem.head.first_level().collect());
        let (distances, sharing) = (None, None);
        Ok(Self {
            mem,
            commands,
            totals,
            whole,
            rows,
            hidden: 0,
            show,
            sort,
            distances,
            sharing,
            before,
            least: 0.0,
            alone,
        })
    }

    /// Chooses events and objects. `sort` is by the sum of misses of the first level if it is not given.
    ///
    /// # Errors
    /// When there is no such event.
    pub(crate) fn select(&mut self, show: Option<&str>, sort: Option<&str>, threshold: f64) -> anyhow::Result<()> {
        let events = |option: &str, names: &str, all: &[String]| -> anyhow::Result<Vec<usize>> {
            cli::comma_list(names).iter().map(|name| cli::event(option, name, all)).collect()
        };
        if let Some(show) = show {
            self.show = events("--show", show, &self.mem.head.events)?;
        }
        if self.commands.len() == 1 {
            self.distances = Distances::new(&self.mem, threshold);
        }
        self.sharing = Sharing::new(self.before.as_ref(), &self.mem, threshold);
        let by_sum = sort.is_none();
        match sort {
            Some(sort) => self.sort = events("--sort", sort, &self.mem.head.events)?,
            None if self.sort.is_empty() && !self.totals.is_empty() => self.sort = vec![0],
            None => {}
        }
        let weights = |counts: &[i128]| -> Vec<i128> {
            let each = self.sort.iter().map(|n| counts[*n]);
            if by_sum { vec![each.sum()] } else { each.collect() }
        };
        let whole = weights(&self.whole).first().copied().unwrap_or(0);
        let above = |row: &Row| {
            let weight = weights(&row.counts).first().copied().unwrap_or(0).unsigned_abs();
            weight > 0 && weight as f64 * 100.0 >= threshold * whole as f64
        };
        self.least = (threshold * whole as f64).max(f64::MIN_POSITIVE);
        let all = self.rows.len();
        let mut rows: Vec<Row> = std::mem::take(&mut self.rows).into_iter().filter(|row| above(row)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(weights(&row.counts).iter().map(|n| n.abs()).collect::<Vec<i128>>()));
        self.rows = rows;
        self.hidden = all - self.rows.len();
        let misses: u64 = self.mem.streams.iter().fold(0, |sum, s| sum.saturating_add(s.misses));
        let streams = &self.mem.streams;
        let of = &self.mem.missed_by;
        for row in &mut self.rows {
            let weight = |n: &usize| {
                let counts: Vec<i128> = of[*n].counts.iter().map(|n| i128::from(*n)).collect();
                weights(&counts)
            };
            row.missed_by.sort_by_key(|n| std::cmp::Reverse(weight(n)));
            row.missed_by.retain(|n| {
                let weight = weight(n).first().copied().unwrap_or(0);
                weight > 0 && weight as f64 * 100.0 >= threshold * whole as f64
            });
            row.streams.retain(|n| streams[*n].misses as f64 * 100.0 >= threshold * misses as f64);
        }
        Ok(())
    }
    /// Whether a part of an object with these counts is shown.
    pub(crate) fn matters(&self, counts: &[u64]) -> bool {
        let sum: u128 = self.sort.iter().filter_map(|n| counts.get(*n)).map(|n| u128::from(*n)).sum();
        sum as f64 * 100.0 >= self.least
    }
}
