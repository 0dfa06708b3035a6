//! A profile and what of it is shown: which events, in which order, how many functions.
//!
//! What the profile says is computed by `cg-model`, where other programs get it from, too. With `--cycles=no` numbers are
//! the reference's: inclusive costs are what callers saw, summed up, whatever that means in recursion.

use std::ops::Deref;
use std::path::Path;

use anyhow::{Context, bail};
pub(crate) use cg_model::{Cost, Entry, Link, SourceCall, SourceLine, UNKNOWN};

/// What a profile says and what of it is shown.
#[derive(Debug)]
pub(crate) struct Model {
    profile: cg_model::Model,
    /// Indices of the events to show, in order.
    pub(crate) show: Vec<usize>,
    /// Indices of the events to sort by, and how much of each is to be covered, in percent.
    pub(crate) sort: Vec<(usize, f64)>,
    /// Whether the table is about inclusive cost.
    pub(crate) inclusive: bool,
}

impl Deref for Model {
    type Target = cg_model::Model;

    fn deref(&self) -> &cg_model::Model {
        &self.profile
    }
}

impl Model {
    /// Shows all events of a profile.
    pub(crate) fn new(profile: cg_model::Model, inclusive: bool) -> Self {
        let show = (0..profile.events.len()).collect();
        Self { profile, show, sort: Vec::new(), inclusive }
    }

    /// Applies `--show`, `--sort` and `--threshold`.
    pub(crate) fn select(&mut self, show: Option<&str>, sort: Option<&str>, threshold: f64) -> anyhow::Result<()> {
        if let Some(list) = show {
            self.show = list.split(',').map(|name| self.event("--show", name)).collect::<anyhow::Result<_>>()?;
        }
        let mut wanted = Vec::new();
        let mut own_thresholds = false;
        for item in sort.map_or_else(|| self.events.clone(), |list| list.split(',').map(str::to_owned).collect()) {
            let (name, bound) = match item.split_once(':') {
                Some((name, bound)) if sort.is_some() => (name.to_owned(), Some(bound.to_owned())),
                _ => (item, None),
            };
            let bound = match bound {
                None => None,
                Some(text) => match text.parse::<f64>() {
                    Ok(bound) if (0.0..=100.0).contains(&bound) => Some(bound),
                    _ => bail!("--sort: the threshold `{text}` of `{name}` is no number from 0 to 100"),
                },
            };
            own_thresholds |= bound.is_some();
            wanted.push((self.event("--sort", &name)?, bound.unwrap_or(0.0)));
        }
        if !own_thresholds {
            wanted[0].1 = threshold;
        }
        self.sort = wanted;
        Ok(())
    }

    fn event(&self, option: &str, name: &str) -> anyhow::Result<usize> {
        self.events.iter().position(|event| event == name).with_context(|| {
            format!("{}: {option} event `{name}' did not appear in input: it has {}", self.input, self.events.join(" "))
        })
    }

    /// The cost that the table shows for an entry.
    pub(crate) fn cost<'a>(&self, entry: &'a Entry) -> &'a Cost {
        if self.inclusive { &entry.inclusive } else { &entry.own }
    }

    /// The entries that the table is about, the most expensive first, equal ones by name.
    pub(crate) fn table(&self) -> Vec<usize> {
        let listed =
            |entry: &Entry| entry.rows || self.inclusive && !(entry.callers.is_empty() && entry.callees.is_empty());
        let mut table: Vec<usize> = (0..self.entries.len()).filter(|at| listed(&self.entries[*at])).collect();
        table.sort_by_cached_key(|at| (self.rank(self.cost(&self.entries[*at])), self.label(*at)));
        table
    }

    /// How many entries of the table are shown: until the thresholds are reached.
    pub(crate) fn shown(&self, table: &[usize]) -> usize {
        let mut covered = vec![0_i128; self.sort.len()];
        for (i, at) in table.iter().enumerate() {
            let reached = self.sort.iter().zip(&covered).all(|((event, threshold), covered)| {
                reaches(*covered, i128::from(self.total.cost.value(*event)), *threshold)
            });
            if reached {
                return i;
            }
            let cost = self.cost(&self.entries[*at]);
            for ((event, _), covered) in self.sort.iter().zip(&mut covered) {
                let value = i128::from(cost.value(*event));
                if self.inclusive {
                    // What is shown so far are all functions of at least this cost.
                    *covered = i128::from(self.total.cost.value(*event)) - value;
                } else {
                    *covered += value;
                }
            }
        }
        table.len()
    }

    /// Links, the most expensive first, equal ones by the name of the entry that `other` picks.
    pub(crate) fn ranked(&self, links: &[usize], other: impl Fn(&Link) -> usize) -> Vec<&Link> {
        let mut links: Vec<&Link> = links.iter().map(|at| &self.links[*at]).collect();
        let none = Cost::default();
        links.sort_by_cached_key(|link| {
            (self.rank(link.cost.as_ref().unwrap_or(&none)), std::cmp::Reverse(link.count), self.label(other(link)))
        });
        links
    }

    /// Calls of a line, likewise.
    pub(crate) fn ranked_calls<'a>(&self, line: &'a SourceLine) -> Vec<&'a SourceCall> {
        let mut calls: Vec<&SourceCall> = line.calls.iter().collect();
        let none = Cost::default();
        calls.sort_by_cached_key(|call| {
            (self.rank(call.cost.as_ref().unwrap_or(&none)), std::cmp::Reverse(call.count), self.label(call.callee))
        });
        calls
    }

    /// Ascends as costs descend.
    pub(crate) fn rank(&self, cost: &Cost) -> Vec<std::cmp::Reverse<i64>> {
        self.sort.iter().map(|(event, _)| std::cmp::Reverse(cost.value(*event))).collect()
    }

    /// What distinguishes an entry from all others.
    pub(crate) fn label(&self, at: usize) -> (&[u8], Option<&[u8]>) {
        let entry = &self.entries[at];
        (&entry.name, entry.object.as_deref())
    }

    /// Names of events.
    pub(crate) fn names(&self, events: impl IntoIterator<Item = usize>) -> Vec<&str> {
        events.into_iter().map(|event| self.events[event].as_str()).collect()
    }
}

/// Whether so much of a total is as many percent of it as are wanted: 100 is never reached, so that nothing is left out.
///
/// Sums may be negative, as those of differences are. What is below 0 has reached nothing, even of a total below 0, and
/// what is above 0 more than all of a total that is not; so does the reference decide.
fn reaches(covered: i128, total: i128, threshold: f64) -> bool {
    match cg_format::show::percent(covered, total) {
        _ if threshold >= 100.0 => false,
        _ if threshold <= 0.0 => covered >= 0,
        Some(percent) if total > 0 => percent >= threshold,
        _ => covered > 0,
    }
}

/// The current folder, as it stands before files in profiles.
pub(crate) fn here() -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let here = std::env::current_dir().ok()?;
    (here != Path::new("/")).then(|| here.as_os_str().as_bytes().to_vec())
}
