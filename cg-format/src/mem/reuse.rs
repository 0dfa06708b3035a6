//! Stack distances: how many other lines a thread has accessed since it accessed a line last, by line of the source, and by data object.
//!
//! A cache of one set that holds `2^n` lines and replaces the one used longest ago misses the accesses of bins behind `n`, and
//! those of lines that are new: [`Reuse::misses`]. With bounds, rows are of accesses that missed D1, and such a cache misses at least so
//! many of them, and at most [`Reuse::misses_at_most`]. Nothing here panics, whatever the numbers.

use serde::{Deserialize, Serialize};

/// The most bins: one for distance 0, then one for each power of two.
pub const BINS: usize = 40;

/// What the first line says of stack distances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReuseHead {
    /// How many rows there are.
    pub count: usize,
    /// Bytes of a line.
    pub line: u64,
    /// One of so many lines was looked at; 1: all of them.
    pub sample: u64,
    /// The accesses that are in the rows.
    pub accesses: u64,
    /// Rows are bounds of what missed D1, and so many other accesses hit it, whose distances are not known. `None`: rows are of every
    /// access, and have the distance itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
}

/// The accesses of a line of the source; by data object, if those were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reuse {
    /// The function.
    #[serde(rename = "reuse")]
    pub function: String,
    /// The source file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Its line.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub line: u64,
    /// What they access: the index of an object, if objects were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<usize>,
    /// Accesses to lines that the thread had not accessed before.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub first: u64,
    /// By distance in lines: 0, 1, 2 and 3, 4 to 7, and so on; without zeros at the end.
    /// With bounds by the lower one.
    pub bins: Vec<u64>,
    /// With bounds the same by the upper one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub most: Vec<u64>,
}

impl Reuse {
    /// All its accesses; at most `u64::MAX`.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.bins.iter().fold(self.first, |sum, n| sum.saturating_add(*n))
    }

    /// What a cache of `2^bits` lines, all in one set, would miss of them.
    #[must_use]
    pub fn misses(&self, bits: u32) -> u64 {
        Self::beyond(self.first, &self.bins, bits)
    }

    /// The same with bounds: at most so many.
    #[must_use]
    pub fn misses_at_most(&self, bits: u32) -> u64 {
        Self::beyond(self.first, &self.most, bits)
    }

    fn beyond(first: u64, bins: &[u64], bits: u32) -> u64 {
        bins.iter().skip(bits as usize + 1).fold(first, |sum, n| sum.saturating_add(*n))
    }

    /// Adds what another one has.
    pub fn add(&mut self, other: &Self) {
        self.bins.resize(self.bins.len().max(other.bins.len()), 0);
        super::add(&mut self.bins, &other.bins);
        self.most.resize(self.most.len().max(other.most.len()), 0);
        super::add(&mut self.most, &other.most);
        self.first = self.first.saturating_add(other.first);
    }

    /// What is wrong with it, if anything, where there are bounds, or none, and so many objects.
    pub(super) fn problem(&self, bounds: bool, objects: usize) -> Option<&'static str> {
        if self.object.is_some_and(|n| n >= objects) {
            return Some("there is no such object");
        }
        if self.most.len() > BINS || !bounds && !self.most.is_empty() {
            return Some("there are too many distances");
        }
        let all = |bins: &[u64]| bins.iter().try_fold(self.first, |sum, n| sum.checked_add(*n));
        let more = |bits| self.misses(bits) > self.misses_at_most(bits);
        if bounds && (all(&self.bins) != all(&self.most) || (0..BINS as u32).any(more)) {
            return Some("a lower bound is above the upper one");
        }
        match all(&self.bins) {
            _ if self.bins.len() > BINS => Some("there are too many distances"),
            None => Some("counts are too large"),
            Some(0) => Some("it has no accesses"),
            Some(_) => None,
        }
    }
}

/// What rows are ordered and told apart by.
fn key(row: &Reuse) -> (&str, u64, &str, Option<usize>) {
    (&row.file, row.line, &row.function, row.object)
}

/// Puts rows in order, and makes those one that nothing tells apart.
pub(super) fn finish(rows: &mut Vec<Reuse>) {
    let mut all = std::mem::take(rows);
    all.sort_by(|a, b| key(a).cmp(&key(b)));
    for next in all {
        match rows.last_mut() {
            Some(first) if key(first) == key(&next) => first.add(&next),
            _ => rows.push(next),
        }
    }
}

/// The rows of lines of the source, whatever they access.
#[must_use]
pub fn of_all_objects(mut rows: Vec<Reuse>) -> Vec<Reuse> {
    rows.iter_mut().for_each(|row| row.object = None);
    finish(&mut rows);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_what_lies_beyond() {
        let row = Reuse { first: 3, bins: vec![100, 20, 10, 5], ..Reuse::default() };
        // Distances 0; 1; 2 and 3; 4 to 7.
        assert_eq!([0, 1, 2, 3, 40].map(|bits| row.misses(bits)), [38, 18, 8, 3, 3]);
        assert_eq!(row.accesses(), 138);
        let mut sum = Reuse { first: u64::MAX, ..Reuse::default() };
        sum.add(&row);
        assert_eq!((sum.accesses(), sum.bins.clone()), (u64::MAX, row.bins.clone()));
        let wrong = |row: &Reuse| row.problem(false, 0).is_some();
        assert!(!wrong(&row) && wrong(&sum) && wrong(&Reuse::default()));
        assert!(wrong(&Reuse { bins: vec![1; BINS + 1], ..row.clone() }));
        let of = |object| Reuse { object, ..row.clone() };
        assert_eq!([0, 1].map(|n| of(Some(0)).problem(false, n)), [Some("there is no such object"), None]);
        // Rows of other objects are other rows, unless nobody asks for that.
        let mut rows = vec![of(Some(1)), of(None), of(Some(1)), of(Some(0))];
        finish(&mut rows);
        assert_eq!(
            rows.iter().map(|row| (row.object, row.first)).collect::<Vec<_>>(),
            [(None, 3), (Some(0), 3), (Some(1), 6)]
        );
        assert_eq!(of_all_objects(rows).iter().map(|row| (row.object, row.first)).collect::<Vec<_>>(), [(None, 12)]);
    }

    #[test]
    fn bounds_are_one_above_the_other() {
        let row = Reuse { first: 3, bins: vec![0, 20, 10, 5], most: vec![0, 19, 9, 4, 3], ..Reuse::default() };
        assert_eq!(
            [1, 2, 3, 4].map(|bits| [row.misses(bits), row.misses_at_most(bits)]),
            [[18, 19], [8, 10], [3, 6], [3; 2]]
        );
        assert!(row.problem(true, 0).is_none() && row.problem(false, 0).is_some(), "{row:?}");
        let mut sum = row.clone();
        sum.add(&row);
        assert_eq!((sum.misses_at_most(3), sum.problem(true, 0)), (12, None));
        let wrong = |most: &[u64]| Reuse { most: most.into(), ..row.clone() }.problem(true, 0).is_some();
        assert!(wrong(&[]) && wrong(&[0, 20, 10, 4]) && wrong(&[1, 20, 9, 5]) && wrong(&[0; BINS + 1]));
    }
}
