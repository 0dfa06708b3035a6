//! What a report says, before it is known how it looks: the text, the JSON and the Markdown are made from it.
//!
//! Everything is computed from the profile alone, exactly, in integers. Which rows are shown is decided here, once.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::bail;
use cg_cli::source_map::Mapping;
use cg_format::cachegrind::{FunctionEntry, Header, Profile};
use cg_format::hash::NameKeys;
use cg_format::show::percent;

use crate::counts::{Counts, View};
use crate::options::Bound;

/// The file of counts whose source is not known.
pub(crate) const UNKNOWN: &[u8] = b"???";

/// Sums, one for each event of the profile.
pub(crate) type Sums = Vec<i128>;

/// A profile with everything that is needed to report on it.
pub(crate) struct Model {
    /// The counts: a sum or a difference.
    pub(crate) profile: Profile,
    /// Names and headers of the inputs.
    pub(crate) inputs: Vec<(String, Header)>,
    /// Totals before and after, in a difference.
    pub(crate) sides: Option<[Sums; 2]>,
    /// For a file its original names, where renaming changed or joined them.
    pub(crate) originals: HashMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// Both sides of a difference, where they are wanted.
    pub(crate) pair: Option<Pair>,
    /// Where sources are looked for.
    pub(crate) source_map: Vec<Mapping>,
    /// Indices of the events to show, in order.
    pub(crate) show: Vec<usize>,
    /// Indices of the events to sort by, the most important first.
    pub(crate) sort: Vec<usize>,
    /// The smallest count of the first sort event, by its size, that is shown.
    least: i128,
}

/// The two profiles of a difference.
pub(crate) struct Pair {
    /// Before and after, renamed.
    pub(crate) profiles: [Profile; 2],
    /// The names that files of each side had before they were renamed; as in [`Model::originals`].
    pub(crate) originals: [HashMap<Vec<u8>, BTreeSet<Vec<u8>>>; 2],
    /// Whether changed sources are to be shown with the counts of both.
    pub(crate) sources: bool,
}

/// A file with its functions, or a function with its files.
pub(crate) struct Outer<'a> {
    pub(crate) name: &'a [u8],
    /// The sum of everything below, shown or not.
    pub(crate) counts: Counts<'a>,
    /// What is above the threshold, sorted.
    pub(crate) inner: Vec<Inner<'a>>,
}

/// A function of a file, or a file of a function.
pub(crate) struct Inner<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) counts: Counts<'a>,
}

/// The outcome of a `--fail-above` bound.
pub(crate) struct Verdict<'a> {
    pub(crate) bound: &'a Bound,
    pub(crate) before: i128,
    pub(crate) after: i128,
    /// Growth in percent; none if it starts from 0.
    pub(crate) growth: Option<f64>,
    pub(crate) failed: bool,
}

impl Model {
    pub(crate) fn new(
        profile: Profile,
        inputs: Vec<(String, Header)>,
        sides: Option<[Sums; 2]>,
        originals: HashMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    ) -> Self {
        let all: Vec<usize> = (0..profile.header.events.len()).collect();
        Self {
            profile,
            inputs,
            sides,
            originals,
            pair: None,
            source_map: Vec::new(),
            show: all.clone(),
            sort: all,
            least: 0,
        }
    }

    /// Applies `--show`, `--sort` and `--threshold`.
    pub(crate) fn select(&mut self, show: Option<&str>, sort: Option<&str>, threshold: f64) -> anyhow::Result<()> {
        if let Some(list) = show {
            self.show = self.indices("--show", list)?;
        }
        if let Some(list) = sort {
            self.sort = self.indices("--sort", list)?;
        }
        let total = self.profile.total()[self.sort[0]].unsigned_abs();
        // Rounding up is exact here: a count reaches the bound if and only if it reaches the next integer.
        self.least = (threshold * total as f64 / 100.0).ceil() as i128;
        Ok(())
    }

    fn indices(&self, option: &str, list: &str) -> anyhow::Result<Vec<usize>> {
        cg_cli::options::comma_list(list).iter().map(|name| self.event(option, name)).collect()
    }

    /// The index of an event that an option names.
    pub(crate) fn event(&self, option: &str, name: &str) -> anyhow::Result<usize> {
        cg_cli::options::event(option, name, &self.profile.header.events)
    }

    /// Names of events by their indices.
    pub(crate) fn names(&self, indices: &[usize]) -> Vec<&str> {
        indices.iter().map(|i| self.profile.header.events[*i].as_str()).collect()
    }

    /// Files above the threshold, each with its functions.
    pub(crate) fn by_file(&self) -> anyhow::Result<Vec<Outer<'_>>> {
        let mut outers = Vec::new();
        for file in self.profile.files() {
            let mut inner = Vec::new();
            for function in file.functions() {
                if self.passes(function)? {
                    inner.push(Inner { name: function.name(), counts: self.counts(function)? });
                }
            }
            if !inner.is_empty() {
                let mut counts = self.zeros();
                file.functions().try_for_each(|function| function.rows().add_to(&mut counts))?;
                outers.push(Outer { name: file.name(), counts: Counts::Own(counts), inner });
            }
        }
        Ok(self.sorted(outers))
    }

    /// Functions above the threshold, each with its files: `files`, which [`Model::by_file`] gave, the other way round.
    pub(crate) fn by_function<'a>(&'a self, files: &'a [Outer<'a>]) -> anyhow::Result<Vec<Outer<'a>>> {
        let mut outers: Vec<Outer<'_>> = Vec::new();
        let most = files.iter().map(|file| file.inner.len()).sum();
        let mut index: HashMap<&[u8], usize, NameKeys> = HashMap::with_capacity_and_hasher(most, NameKeys::default());
        for (file, function) in files.iter().flat_map(|file| file.inner.iter().map(move |inner| (file.name, inner))) {
            // Most functions have a single file, which has their counts already.
            let counts = function.counts.view();
            let inner = Inner { name: file, counts: Counts::Seen(counts) };
            match index.entry(function.name) {
                Entry::Vacant(free) => {
                    free.insert(outers.len());
                    outers.push(Outer { name: function.name, counts: Counts::Seen(counts), inner: vec![inner] });
                }
                Entry::Occupied(known) => {
                    let outer = &mut outers[*known.get()];
                    outer.counts.add(counts)?;
                    outer.inner.push(inner);
                }
            }
        }
        if !index.is_empty() {
            for function in self.profile.files().flat_map(|file| file.functions()) {
                if !self.passes(function)?
                    && let Some(at) = index.get(function.name())
                {
                    function.rows().add_to(outers[*at].counts.own())?;
                }
            }
        }
        Ok(self.sorted(outers))
    }

    /// The counts of a function.
    fn counts<'a>(&self, function: FunctionEntry<'a>) -> anyhow::Result<Counts<'a>> {
        let rows = function.rows();
        if let Some(counts) = rows.only() {
            return Ok(Counts::Seen(View::Narrow(counts)));
        }
        let mut counts = self.zeros();
        rows.add_to(&mut counts)?;
        Ok(Counts::Own(counts))
    }

    /// Whether the counts of a function reach the threshold.
    fn passes(&self, function: FunctionEntry<'_>) -> anyhow::Result<bool> {
        Ok(function.rows().sum(self.sort[0])?.abs() >= self.least)
    }

    /// Counts of each line of a file, over all its functions.
    pub(crate) fn lines(&self, file: &[u8]) -> anyhow::Result<BTreeMap<u64, Sums>> {
        lines_of(self, &self.profile, file)
    }

    /// The original names of a file.
    pub(crate) fn originals_of(&self, file: &[u8]) -> Vec<Vec<u8>> {
        match self.originals.get(file) {
            Some(names) => names.iter().cloned().collect(),
            None => vec![file.to_vec()],
        }
    }

    /// Compares the totals with the bounds of `--fail-above`.
    pub(crate) fn verdicts<'a>(&self, bounds: &'a [Bound]) -> anyhow::Result<Vec<Verdict<'a>>> {
        let Some([before, after]) = &self.sides else {
            if bounds.is_empty() {
                return Ok(Vec::new());
            }
            bail!("--fail-above needs --diff");
        };
        let verdict = |bound: &'a Bound| {
            let at = self.event("--fail-above", &bound.event)?;
            let (before, after) = (before[at], after[at]);
            // Growth is measured against the size of what was there, so its sign is that of the change.
            let growth = percent(after - before, before.abs());
            // From nothing to something is more than any percentage.
            let failed = growth.map_or(after > before, |growth| growth > bound.percent);
            Ok(Verdict { bound, before, after, growth, failed })
        };
        bounds.iter().map(verdict).collect()
    }

    pub(crate) fn zeros(&self) -> Sums {
        vec![0; self.profile.header.events.len()]
    }

    fn sorted<'a>(&self, mut outers: Vec<Outer<'a>>) -> Vec<Outer<'a>> {
        outers.sort_unstable_by(|a, b| self.order((a.counts.view(), a.name), (b.counts.view(), b.name)));
        for outer in &mut outers {
            outer.inner.sort_unstable_by(|a, b| self.order((a.counts.view(), a.name), (b.counts.view(), b.name)));
        }
        outers
    }

    /// By the sizes of counts in the sort order, then by name, both descending. No two names are the same.
    fn order(&self, a: (View<'_>, &[u8]), b: (View<'_>, &[u8])) -> Ordering {
        let mut sizes = self.sort.iter().map(|event| b.0.of(*event).unsigned_abs().cmp(&a.0.of(*event).unsigned_abs()));
        sizes.find(|order| order.is_ne()).unwrap_or_else(|| b.1.cmp(a.1))
    }
}

/// Counts of each line of a file of `profile`, which counts what `model` does.
pub(crate) fn lines_of(model: &Model, profile: &Profile, file: &[u8]) -> anyhow::Result<BTreeMap<u64, Sums>> {
    let mut lines = BTreeMap::new();
    for entry in profile.files().filter(|entry| entry.name() == file) {
        for function in entry.functions() {
            let rows = function.rows();
            for (row, line) in rows.lines().enumerate() {
                let counts = lines.entry(line).or_insert_with(|| model.zeros());
                rows.add_row_to(row, counts)?;
            }
        }
    }
    Ok(lines)
}
