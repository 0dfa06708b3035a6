//! What is said of a line whose uses are known: whether it was shared, truly or falsely, by whom and with which bytes. Lines that were used in
//! the same way are one row.
//!
//! Invariants: sums by object are of all lines, also of those that rows have no room for; a row is the same whatever the order of
//! its lines and uses.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Move, MovesOfLine, NO_OBJECT, NO_SITE, Use};

/// The most rows. Lines that would be another one are summed up.
const MOST_ROWS: usize = 1 << 16;

/// When a thread lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) from: u32,
    /// Its last moment; `u32::MAX` if that has not come.
    pub(super) to: u32,
}

/// How often a thread has come by lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// By thread that had written them last: how often it read and wrote them then.
    pub from: BTreeMap<u32, [u64; 2]>,
    /// How often it wrote those that others had read since they were written last.
    pub upgrades: u64,
}

impl Moves {
    pub(super) fn add(&mut self, how: Move) {
        match how {
            Move::Read(from) => self.from.entry(from).or_default()[0] += 1,
            Move::Written(from) => self.from.entry(from).or_default()[1] += 1,
            Move::Upgraded => self.upgrades += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        for (from, [reads, writes]) in &other.from {
            let sums = self.from.entry(*from).or_default();
            *sums = [sums[0].saturating_add(*reads), sums[1].saturating_add(*writes)];
        }
        self.upgrades = self.upgrades.saturating_add(other.upgrades);
    }

    /// Reads and writes of what another one had written last, and upgrades.
    #[must_use]
    pub fn sums(&self) -> [u64; 3] {
        let moved = |n: usize| self.from.values().fold(0u64, |sum, of| sum.saturating_add(of[n]));
        [moved(0), moved(1), self.upgrades]
    }
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
    /// How often it has come by the lines, if that was told.
    pub moves: Moves,
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
    /// How often threads have come by lines of it, shared or handed over, as [`Moves::sums`] has it.
    pub moves: [u64; 3],
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
    /// How often threads have come by lines that are in no row, as [`Moves::sums`] has it: one of them had ended with it before the other one
    /// began, say.
    pub handed_over: [u64; 3],
    /// Accesses to lines of which there was no room to know who has them.
    pub unplaced: u64,
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
    handed_over: [u64; 3],
    unplaced: u64,
}

/// Adds to each of these sums.
fn add_up(sums: &mut [u64; 3], more: [u64; 3]) {
    sums.iter_mut().zip(more).for_each(|(sum, n)| *sum = sum.saturating_add(n));
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
    pub(super) fn judge(&mut self, start: u64, uses: &[Use], lives: &[Life], moves: &MovesOfLine) {
        let shared = self.shared(start, uses, lives, moves);
        // What is in no row.
        let told = |key: &(u32, u32, u64)| shared.contains(key);
        moves.iter().filter(|(key, _)| !told(key)).for_each(|(_, of)| add_up(&mut self.handed_over, of.sums()));
    }

    /// The same: whose uses are in a row.
    fn shared(&mut self, start: u64, uses: &[Use], lives: &[Life], moves: &MovesOfLine) -> Vec<(u32, u32, u64)> {
        // Nearly all lines are one thread's.
        if uses.iter().all(|used| used.thread == uses[0].thread) || uses.iter().all(|used| used.written == 0) {
            return Vec::new();
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
        shared.sort_unstable_by_key(|used| (used.thread, used.start, used.object));
        if shared.is_empty() || !self.add(start, truly, &shared, moves) {
            return Vec::new();
        }
        shared.iter().map(|used| (used.thread, used.object, used.start)).collect()
    }

    /// A thread has come by a line of an object.
    pub(super) fn moved(&mut self, object: u32, how: Move) {
        if object != NO_OBJECT {
            let mut one = Moves::default();
            one.add(how);
            add_up(&mut self.objects.entry(object).or_default().moves, one.sums());
        }
    }

    pub(super) fn unplaced(&mut self) {
        self.unplaced = self.unplaced.saturating_add(1);
    }

    /// Whether there is a row for it.
    fn add(&mut self, start: u64, truly: bool, uses: &[&Use], moves: &MovesOfLine) -> bool {
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
            None if self.rows.len() == MOST_ROWS => {
                self.others += 1;
                return false;
            }
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
            let key = (used.thread, used.object, used.start);
            moves.iter().filter(|(known, _)| *known == key).for_each(|(_, of)| sum.moves.merge(of));
        }
        true
    }

    pub(super) fn found(self, line: u32, threads: usize) -> Found {
        let Self { rows, others, objects, handed_over, unplaced, .. } = self;
        Found { line, threads, rows, others, objects, handed_over, unplaced }
    }
}
