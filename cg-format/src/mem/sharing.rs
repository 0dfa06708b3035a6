//! Lines that threads have shared: which bytes of a line each of them read and wrote. One of the threads has written the line while
//! another one that uses it lived.
//!
//! Lines that the same threads have used in the same way are one row. Nothing here panics, whatever the numbers.

use serde::{Deserialize, Serialize};

/// What is counted of each object where both are asked for: reads and writes of lines that are shared falsely, and of those that are
/// shared truly.
pub const EVENTS: [&str; 4] = ["FSr", "FSw", "TSr", "TSw"];

/// The same where it is not counted how often lines are accessed: how many of an object's lines are shared falsely, and truly.
pub const LINES: [&str; 2] = ["FSl", "TSl"];

/// The same where it is told in which order threads use lines: also how often a thread reads a line that another one has written last, and
/// writes one, and how often it writes a line that others have read since that was written last.
pub const ORDER: [&str; 5] = ["FSl", "TSl", "MVr", "MVw", "UPw"];

/// The longest line, in bytes.
pub const LONGEST: u64 = 64;

/// The most places in the source that a use has.
pub const MOST_PLACES: usize = 8;

/// What the first line says of shared lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharingHead {
    /// How many rows there are.
    pub count: usize,
    /// Bytes of a line.
    pub line: u64,
    /// How many threads the process has had. They are numbered from 1, in the order in which they were born.
    pub threads: u64,
    /// Lines that are in no row, since there were too many ways of sharing.
    pub others: u64,
    /// The reads of all rows.
    pub reads: u64,
    /// Their writes.
    pub writes: u64,
    /// Nobody has counted how often lines are read and written: all these numbers are 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// What is told of the order in which threads used lines, if that was asked for. It is the order of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
}

/// What the first line says of the order in which threads used lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Of all rows: how often a thread read what another one had written last, and wrote it; and how often it wrote what others had read
    /// since that was written last.
    pub moves: [u64; 3],
    /// The same of lines that are in no row.
    pub handed_over: [u64; 3],
    /// Accesses to lines of which there was no room to know who has them.
    pub unplaced: u64,
}

/// Reads and writes of what another thread has written last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moved {
    /// The number of that thread.
    pub from: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// How lines are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// No byte that one thread writes is used by another one.
    False,
    /// At least one is.
    True,
}

impl Which {
    /// The word for it, as the format has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::False => "false",
            Self::True => "true",
        }
    }
}

/// A row: lines that the same threads have shared in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// How.
    #[serde(rename = "sharing")]
    pub which: Which,
    /// How many lines.
    pub lines: u64,
    /// By thread, and by place in the line.
    pub uses: Vec<SharedUse>,
}

/// How a thread has used what lies in the lines of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedUse {
    /// The number of the thread.
    pub thread: u64,
    /// What lies there: the index of an object, if objects were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<usize>,
    /// Where the first of the lines begins, in bytes from where the object does: less than 0 if it begins within the line.
    #[serde(default)]
    pub offset: i64,
    /// The bytes that the thread has read, counted from where the line begins: the first one and one past the last one, in order.
    pub read: Vec<(u64, u64)>,
    /// Those that it has written.
    pub written: Vec<(u64, u64)>,
    /// How often it has read from the lines.
    pub reads: u64,
    /// How often it has written to them.
    pub writes: u64,
    /// Lines of the source that did, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<SourceLine>,
    /// How often the thread has got the lines from others, by thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Moved>,
    /// How often it wrote the lines when others had read them since they were written last.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub upgrades: u64,
}

impl SharedUse {
    /// How often it got the lines by a read and by a write, and how often it took them from those who had read them.
    #[must_use]
    pub fn moved(&self) -> [u64; 3] {
        let sum = |of: fn(&Moved) -> u64| self.moves.iter().fold(0u64, |sum, moved| sum.saturating_add(of(moved)));
        [sum(|moved| moved.reads), sum(|moved| moved.writes), self.upgrades]
    }
}

/// An object, a thread, bytes that it has read and written.
type UseKey<'a> = (Option<usize>, u64, &'a [(u64, u64)], &'a [(u64, u64)]);

/// A line of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLine {
    /// The file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Its line.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub line: u64,
    /// The function.
    pub function: String,
}

/// The bytes of a line whose bits are set, as they are in a row.
#[must_use]
pub fn bytes(mask: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(left) = mask.checked_shr(at).filter(|left| *left != 0) {
        let from = at + left.trailing_zeros();
        at = from + (mask >> from).trailing_ones();
        all.push((from.into(), at.into()));
    }
    all
}

impl Shared {
    /// The reads of all its threads; at most `u64::MAX`.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.uses.iter().fold(0, |sum, used| sum.saturating_add(used.reads))
    }

    /// The same of its writes.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.uses.iter().fold(0, |sum, used| sum.saturating_add(used.writes))
    }

    /// Of all its threads what [`SharedUse::moved`] says.
    #[must_use]
    pub fn moved(&self) -> [u64; 3] {
        self.uses
            .iter()
            .map(SharedUse::moved)
            .fold([0; 3], |sum, of| std::array::from_fn(|n| sum[n].saturating_add(of[n])))
    }

    /// What rows are ordered and told apart by.
    fn key(&self) -> (Which, Vec<UseKey<'_>>) {
        (self.which, self.uses.iter().map(|u| (u.object, u.thread, &*u.read, &*u.written)).collect())
    }

    fn add(&mut self, other: &Self) {
        self.lines = self.lines.saturating_add(other.lines);
        for (sum, used) in self.uses.iter_mut().zip(&other.uses) {
            sum.offset = sum.offset.min(used.offset);
            sum.reads = sum.reads.saturating_add(used.reads);
            sum.writes = sum.writes.saturating_add(used.writes);
            sum.places.extend_from_slice(&used.places);
            sum.moves.extend_from_slice(&used.moves);
            sum.upgrades = sum.upgrades.saturating_add(used.upgrades);
        }
    }

    /// Puts places and moves in order, each once, and leaves out places that are too many.
    fn finish(&mut self) {
        for used in &mut self.uses {
            used.places.sort();
            used.places.dedup();
            used.places.truncate(MOST_PLACES);
            used.moves.sort();
            used.moves.dedup_by(|next, first| {
                let same = next.from == first.from;
                if same {
                    first.reads = first.reads.saturating_add(next.reads);
                    first.writes = first.writes.saturating_add(next.writes);
                }
                same
            });
        }
    }

    /// What is wrong with it, if anything.
    pub(super) fn problem(&self, head: &SharingHead, objects: usize) -> Option<&'static str> {
        let runs = |of: &[(u64, u64)]| {
            let ends = of.iter().flat_map(|(from, to)| [*from, *to]);
            of.iter().all(|(from, to)| from < to && *to <= head.line) && ends.is_sorted()
        };
        let first = self.uses.first().map(|used| used.thread);
        match &self.uses {
            _ if self.lines == 0 => Some("a row has no lines"),
            uses if uses.iter().all(|used| Some(used.thread) == first) => Some("one thread shares nothing"),
            uses if uses.iter().any(|used| used.thread == 0 || used.thread > head.threads) => {
                Some("there is no such thread")
            }
            uses if uses.iter().flat_map(|used| &used.moves).any(|of| of.from == 0 || of.from > head.threads) => {
                Some("there is no such thread")
            }
            uses if head.order.is_none() && uses.iter().any(|used| used.moved() != [0; 3]) => {
                Some("nobody has asked for the order of accesses")
            }
            uses if uses.iter().any(|used| used.object.is_some_and(|n| n >= objects)) => {
                Some("there is no such object")
            }
            uses if !uses.iter().all(|used| runs(&used.read) && runs(&used.written)) => {
                Some("these are no bytes of a line")
            }
            _ => None,
        }
    }
}

/// Of all rows what [`SharedUse::moved`] says.
pub(super) fn moved(rows: &[Shared]) -> [u64; 3] {
    let add = |sum: [u64; 3], of: [u64; 3]| std::array::from_fn(|n| sum[n].saturating_add(of[n]));
    rows.iter().map(Shared::moved).fold([0; 3], add)
}

/// Whether the moves of all rows are those of the head.
pub(super) fn complete(head: &SharingHead, rows: &[Shared]) -> Result<(), super::Error> {
    let sum = |of: [u64; 3]| of.into_iter().fold(0, u64::saturating_add);
    match &head.order {
        Some(order) if order.moves != moved(rows) => {
            Err(super::Error::Sharing { what: "moves", sum: sum(moved(rows)), total: sum(order.moves) })
        }
        _ => Ok(()),
    }
}

/// Puts rows in order, makes those one that nothing tells apart, and counts.
pub(super) fn finish(head: &mut SharingHead, rows: &mut Vec<Shared>) {
    rows.sort_by(|a, b| a.key().cmp(&b.key()).then_with(|| a.uses[0].offset.cmp(&b.uses[0].offset)));
    let mut all: Vec<Shared> = Vec::with_capacity(rows.len());
    for next in rows.drain(..) {
        match all.last_mut() {
            Some(first) if first.key() == next.key() => first.add(&next),
            _ => all.push(next),
        }
    }
    all.iter_mut().for_each(Shared::finish);
    head.count = all.len();
    head.reads = all.iter().fold(0, |sum, row| sum.saturating_add(row.reads()));
    head.writes = all.iter().fold(0, |sum, row| sum.saturating_add(row.writes()));
    if let Some(order) = &mut head.order {
        order.moves = moved(&all);
    }
    *rows = all;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_runs_of_bytes() {
        assert_eq!(bytes(0), []);
        assert_eq!(bytes(0b1011), [(0, 2), (3, 4)]);
        assert_eq!(bytes(u64::MAX), [(0, 64)]);
        assert_eq!(bytes(1 << 63 | 0xff00), [(8, 16), (63, 64)]);
    }

    #[test]
    fn what_is_no_row_is_told() {
        let used = |thread, object, read: &[(u64, u64)]| SharedUse {
            thread,
            object,
            read: read.into(),
            ..SharedUse::default()
        };
        let head = SharingHead { line: 64, threads: 3, ..SharingHead::default() };
        let problem = |lines, uses: &[SharedUse]| {
            Shared { which: Which::True, lines, uses: uses.into() }.problem(&head, 2).unwrap_or_default()
        };
        let good = used(2, Some(1), &[(0, 8), (9, 64)]);
        assert_eq!(problem(1, &[used(1, None, &[]), good.clone()]), "");
        assert_eq!(problem(0, &[used(1, None, &[]), good.clone()]), "a row has no lines");
        assert_eq!(problem(1, &[]), "one thread shares nothing");
        assert_eq!(problem(1, &[good.clone(), good.clone()]), "one thread shares nothing");
        assert_eq!(problem(1, &[used(4, None, &[]), good.clone()]), "there is no such thread");
        assert_eq!(problem(1, &[used(1, Some(2), &[]), good.clone()]), "there is no such object");
        let moved = |from| SharedUse { moves: vec![Moved { from, reads: 1, writes: 0 }], ..good.clone() };
        assert_eq!(problem(1, &[used(1, None, &[]), moved(4)]), "there is no such thread");
        assert_eq!(problem(1, &[used(1, None, &[]), moved(1)]), "nobody has asked for the order of accesses");
        for wrong in [&[(8, 8)][..], &[(0, 65)], &[(4, 8), (0, 2)], &[(0, 8), (4, 9)]] {
            assert_eq!(problem(1, &[used(1, None, wrong), good.clone()]), "these are no bytes of a line");
        }
    }
}
