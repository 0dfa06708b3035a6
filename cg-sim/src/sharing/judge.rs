//! What is said of a line whose uses are known: whether it was shared, truly or falsely, by whom and with which bytes. Lines that were used in
//! the same way are one row.
//!
//! Invariants: sums by object are of all lines, also of those that rows have no room for; a row is the same whatever the order of
//! its lines and uses.

use rustc_hash::FxHashMap;

use super::{NO_OBJECT, NO_SITE, Use};

/// The most rows. Lines that would be another one are summed up.
const MOST_ROWS: usize = 1 << 16;

/// When a thread lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) from: u32,
    /// Its last moment; `u32::MAX` if that has not come.
    pub(super) to: u32,
}

/// How a thread has used what lies in the lines of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowUse {
    /// The thread, by the order of births.
    pub thread: u32,
    /// The object's number, or [`super::NO_OBJECT`].
    pub object: u32,
    /// Where the line begins, in bytes from the beginning of the object: the lowest of all lines.
    pub offset: i64,
    /// The bytes of the line that it has read, as bits.
    pub read: u64,
    /// Those that it has written.
    pub written: u64,
    /// How often it has read from the lines.
    pub reads: u64,
    /// How often it has written to them.
    pub writes: u64,
    /// Places in code that did, in the order of their numbers: some of them, if they are many.
    pub sites: Vec<u32>,
}

/// Lines that the same threads have shared in the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// There are bytes that one of them wrote and another one used.
    pub truly: bool,
    /// How many lines there were.
    pub lines: u64,
    /// By thread, and by place in the line.
    pub uses: Vec<RowUse>,
}

/// The lines of an object that are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfObject {
    /// How many are, falsely and truly.
    pub lines: [u64; 2],
    /// The reads and writes of those that are shared falsely, and the same of those shared truly.
    pub accesses: [u64; 4],
}

/// What was shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Bytes of a line.
    pub line: u32,
    /// How many threads there were.
    pub threads: usize,
    /// In the order in which they were found.
    pub rows: Vec<Row>,
    /// Lines that are in no row, since there were too many ways of sharing.
    pub others: u64,
    /// By object what lines of it are shared.
    pub objects: FxHashMap<u32, OfObject>,
}

/// By what lines are in the same row.
type Key = (bool, Vec<(u32, u32, u64, u64)>);

/// What has been found so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    rows: Vec<Row>,
    numbers: FxHashMap<Key, usize>,
    others: u64,
    objects: FxHashMap<u32, OfObject>,
}

/// What a thread has done in a line.
#[derive(Clone, Copy, Debug)]
struct Whole {
    thread: u32,
    read: u64,
    written: u64,
    first: u32,
    last: u32,
    shares: bool,
}

impl Books {
    /// A line that begins at `start` has been used like this.
    pub(super) fn judge(&mut self, start: u64, uses: &[Use], lives: &[Life]) {
        // Nearly all lines are one thread's.
        if uses.iter().all(|used| used.thread == uses[0].thread) || uses.iter().all(|used| used.written == 0) {
            return;
        }
        let mut threads: Vec<Whole> = Vec::new();
        for used in uses {
            let &Use { thread, read, written, first, last, .. } = used;
            match threads.iter_mut().find(|whole| whole.thread == thread) {
                Some(whole) => {
                    (whole.read, whole.written) = (whole.read | read, whole.written | written);
                    (whole.first, whole.last) = (whole.first.min(first), whole.last.max(last));
                }
                None => threads.push(Whole { thread, read, written, first, last, shares: false }),
            }
        }
        let mut truly = false;
        for n in 1..threads.len() {
            let (before, rest) = threads.split_at_mut(n);
            for a in before {
                let b = &mut rest[0];
                let there = |whole: &Whole, other: &Whole| {
                    let life = lives[other.thread as usize];
                    whole.first <= life.to && whole.last >= life.from
                };
                if (a.written | b.written) != 0 && there(a, b) && there(b, a) {
                    (a.shares, b.shares) = (true, true);
                    truly |= a.written & (b.read | b.written) != 0 || b.written & a.read != 0;
                }
            }
        }
        let shares = |used: &&Use| threads.iter().any(|whole| whole.thread == used.thread && whole.shares);
        let mut shared: Vec<&Use> = uses.iter().filter(shares).collect();
        if !shared.is_empty() {
            shared.sort_unstable_by_key(|used| (used.thread, used.start, used.object));
            self.add(start, truly, &shared);
        }
    }

    fn add(&mut self, start: u64, truly: bool, uses: &[&Use]) {
        let at = if truly { 2 } else { 0 };
        for used in uses.iter().filter(|used| used.object != NO_OBJECT) {
            let sums = &mut self.objects.entry(used.object).or_default().accesses;
            sums[at] = sums[at].saturating_add(used.reads);
            sums[at + 1] = sums[at + 1].saturating_add(used.writes);
        }
        let mut objects: Vec<u32> = uses.iter().map(|used| used.object).filter(|n| *n != NO_OBJECT).collect();
        objects.sort_unstable();
        objects.dedup();
        for object in objects {
            self.objects.entry(object).or_default().lines[usize::from(truly)] += 1;
        }
        let key = (truly, uses.iter().map(|used| (used.thread, used.object, used.read, used.written)).collect());
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None if self.rows.len() == MOST_ROWS => return self.others += 1,
            None => {
                let new = |used: &&Use| RowUse {
                    thread: used.thread,
                    object: used.object,
                    offset: i64::MAX,
                    read: used.read,
                    written: used.written,
                    ..RowUse::default()
                };
                self.rows.push(Row { truly, lines: 0, uses: uses.iter().map(new).collect() });
                self.numbers.insert(key, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        let row = &mut self.rows[number];
        row.lines += 1;
        for (sum, used) in row.uses.iter_mut().zip(uses) {
            sum.offset = sum.offset.min(start.wrapping_sub(used.start).cast_signed());
            sum.reads = sum.reads.saturating_add(used.reads);
            sum.writes = sum.writes.saturating_add(used.writes);
            for site in used.sites.into_iter().filter(|site| *site != NO_SITE) {
                if let Err(at) = sum.sites.binary_search(&site) {
                    sum.sites.insert(at, site);
                }
            }
        }
    }

    pub(super) fn found(self, line: u32, threads: usize) -> Found {
        Found { line, threads, rows: self.rows, others: self.others, objects: self.objects }
    }
}
