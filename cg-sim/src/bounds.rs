//! Bounds of LRU stack distances, from what a thread's first-level cache misses alone: at least, and at most, how many other lines the
//! thread has used since it used a line last that it misses now.
//!
//! Whoever simulates that cache tells for each line that is brought in which one has to go for it, and when that was used last. Of a
//! line that was used last at some time, the lines used since are
//!
//! - those outside the cache that were used last behind that time, which is known;
//! - those within that were brought in behind it;
//! - those within that were brought in before, and used since. These are not known, but are among those within.
//!
//! So the first two are the lower bound, and the upper one has all lines that are within. Times are looked at by *buckets*, which
//! begin one after so many misses: what is in one bucket has no order, and counts for the upper bound only. Where there are many, neighbours
//! with few lines become one, so that there are never many more than lines.
//!
//! Invariants: a line that was ever brought in is outside or within, in one bucket, and counted there once; a bucket that is outside is
//! that of the last use, and one that is within that of being brought in. Lines of one group of accesses have
//! no order among themselves if nothing was missed between them: no bucket begins there, so none is pretended.
//! There is room for 2^29 lines; beyond those, all is forgotten. The twin in the tests sees every access.

use crate::line_map::LineMap;

/// So many misses begin a bucket.
const PER_BUCKET: u32 = 32;
/// Lines that neighbours may have together when they become one.
const FULL: u64 = 32;
/// Buckets that are never too many.
const FEW: usize = 4096;
/// The most lines that are known at a time.
const MOST: u64 = 1 << 29;

/// A line that was never brought in.
const UNSEEN: u32 = 0;
/// What the first bucket is among words of lines, with [`OUTSIDE`] or [`WITHIN`] above.
const FIRST: u32 = 2;
/// Which of two counts a line is in: that of lines that are not in the cache, and that of those that are.
const OUTSIDE: usize = 0;
const WITHIN: usize = 1;

/// Counts whose sums are kept, on each level.
const GROUP: usize = 32;

/// A line that a first-level cache gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its number.
    pub line: u64,
    /// When it was used last.
    pub time: u64,
}

/// How many lines there are by bucket, and their sums: those outside in the lower half of each number, those within in the upper one, since
/// both are always wanted.
#[derive(Clone, Debug, Default)]
struct Counts {
    by_bucket: Vec<u64>,
    by_group: Vec<u64>,
    by_block: Vec<u64>,
}

/// One line of a kind.
#[inline]
fn one(kind: usize) -> u64 {
    1 << (32 * kind)
}

/// A sum, by kind.
#[inline]
fn by_kind(sum: u64) -> [u64; 2] {
    [sum & u64::from(u32::MAX), sum >> 32]
}

impl Counts {
    fn push(&mut self, counts: u64) {
        let bucket = self.by_bucket.len();
        self.by_bucket.push(0);
        self.by_group.resize(bucket / GROUP + 1, 0);
        self.by_block.resize(bucket / (GROUP * GROUP) + 1, 0);
        self.add(bucket as u32, counts);
    }

    /// Adds lines, or takes them away if it is their negated number.
    #[inline]
    fn add(&mut self, bucket: u32, counts: u64) {
        let bucket = bucket as usize;
        let all = [
            &mut self.by_bucket[bucket],
            &mut self.by_group[bucket / GROUP],
            &mut self.by_block[bucket / (GROUP * GROUP)],
        ];
        all.into_iter().for_each(|sum| *sum = sum.wrapping_add(counts));
    }

    /// How many there are in later buckets.
    #[inline]
    fn behind(&self, bucket: u32) -> [u64; 2] {
        let bucket = bucket as usize;
        let (group, block) = (bucket / GROUP, bucket / (GROUP * GROUP));
        let of_group = self.by_bucket.len().min((group + 1) * GROUP);
        let of_block = self.by_group.len().min((block + 1) * GROUP);
        let buckets: u64 = self.by_bucket[bucket + 1..of_group].iter().sum();
        let groups: u64 = self.by_group[group + 1..of_block].iter().sum();
        let blocks: u64 = self.by_block[block + 1..].iter().sum();
        by_kind(buckets + groups + blocks)
    }
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// When each bucket begins.
    begins: Vec<u64>,
    counts: Counts,
    /// Misses since the last one began.
    missed: u32,
    /// Buckets that are too many.
    many: usize,
    lines: LineMap,
    /// Lines that were ever brought in, and those that are in the cache.
    seen: u64,
    within: u64,
    /// Ways of line 0's set that nothing was brought into: they hold that line, as the model has it, though nobody ever told.
    untold: u32,
    ways: u32,
    set_mask: u64,
}

impl Bounds {
    /// Those of a thread that has not missed anything, in a cache of so many sets (a power of two) and ways.
    #[must_use]
    pub fn new(sets: u32, ways: u32) -> Self {
        let mut counts = Counts::default();
        counts.push(0);
        Self {
            begins: vec![0],
            counts,
            missed: 0,
            many: FEW,
            lines: LineMap::new(),
            seen: 0,
            within: 0,
            untold: ways,
            ways,
            set_mask: u64::from(sets.max(1)) - 1,
        }
    }

    /// The cache brings `line` in at time `now`, behind all times that were told before, and gives another one up, unless a way was
    /// empty. Returns the bounds of its distance, or that it was never used before.
    #[inline]
    pub fn brought(&mut self, line: u64, gone: Option<Gone>, now: u64) -> Option<[u64; 2]> {
        if self.missed == PER_BUCKET {
            self.begin(now);
        }
        self.missed += 1;
        match gone {
            Some(gone) => self.leaves(gone),
            None => self.untold -= u32::from(line & self.set_mask == 0 && self.untold > 0),
        }
        let last = self.begins.len() as u32 - 1;
        let known = std::mem::replace(self.lines.of(line), word(last, WITHIN));
        let bounds = self.since(known);
        if let Some((bucket, kind)) = place(known) {
            self.counts.add(bucket, one(kind).wrapping_neg());
            self.within -= (kind == WITHIN) as u64;
        } else {
            self.seen += 1;
        }
        self.counts.add(last, one(WITHIN));
        self.within += 1;
        if self.seen >= MOST {
            *self = Self::new(self.set_mask as u32 + 1, self.ways);
        }
        bounds
    }

    /// At most how many other lines were used since `line` was used last, which is in the cache.
    #[must_use]
    pub fn at_most(&mut self, line: u64) -> u64 {
        let known = *self.lines.of(line);
        self.since(known).map_or(self.seen, |[_, most]| most)
    }

    /// The bounds of a line of which this is known, but for those of itself.
    #[inline]
    fn since(&self, known: u32) -> Option<[u64; 2]> {
        let (bucket, kind) = place(known)?;
        let [outside, within] = self.counts.behind(bucket);
        let [beside, _] = by_kind(self.counts.by_bucket[bucket as usize]);
        let most = outside + beside + self.within + u64::from(self.untold > 0);
        // (It is among those beside it, or within.)
        Some([if kind == OUTSIDE { outside + within } else { 0 }, most - 1])
    }

    /// The address, in this process, of what is known of a line, if its page is known.
    #[inline]
    #[must_use]
    pub fn address(&self, line: u64) -> Option<usize> {
        self.lines.address(line)
    }

    /// A line leaves the cache.
    #[inline]
    fn leaves(&mut self, Gone { line, time }: Gone) {
        let bucket = self.bucket_of(time);
        let known = std::mem::replace(self.lines.of(line), word(bucket, OUTSIDE));
        match place(known) {
            Some((before, kind)) => {
                self.counts.add(before, one(kind).wrapping_neg());
                self.within -= (kind == WITHIN) as u64;
            }
            // Line 0, used without ever having been brought in.
            None => {
                self.seen += 1;
                self.untold = self.untold.saturating_sub(1);
            }
        }
        self.counts.add(bucket, one(OUTSIDE));
    }

    /// The bucket that a time is in.
    #[inline]
    fn bucket_of(&self, time: u64) -> u32 {
        // Most are among the last ones.
        let (mut step, mut high) = (8, self.begins.len());
        while high > step && self.begins[high - step] > time {
            high -= step;
            step *= 2;
        }
        let low = high.saturating_sub(step);
        (low + self.begins[low..high].partition_point(|begin| *begin <= time)).saturating_sub(1) as u32
    }

    /// A bucket begins.
    #[cold]
    fn begin(&mut self, now: u64) {
        self.missed = 0;
        if self.begins.len() >= self.many {
            self.merge();
        }
        self.begins.push(now);
        self.counts.push(0);
    }

    /// Neighbours with few lines become one.
    fn merge(&mut self) {
        let old = std::mem::take(&mut self.counts).by_bucket;
        let begins = std::mem::take(&mut self.begins);
        let (mut numbers, mut sum) = (Vec::with_capacity(old.len()), 0);
        for (begin, counts) in begins.into_iter().zip(old) {
            if self.begins.is_empty() || by_kind(sum + counts).iter().sum::<u64>() > FULL {
                if !self.begins.is_empty() {
                    self.counts.push(sum);
                }
                self.begins.push(begin);
                sum = 0;
            }
            sum += counts;
            numbers.push(self.begins.len() as u32 - 1);
        }
        self.counts.push(sum);
        for known in self.lines.all() {
            if let Some((bucket, kind)) = place(*known) {
                *known = word(numbers[bucket as usize], kind);
            }
        }
        self.many = FEW.max(2 * self.begins.len());
    }
}

/// What is kept of a line.
#[inline]
fn word(bucket: u32, kind: usize) -> u32 {
    FIRST + 2 * bucket + kind as u32
}

/// The bucket that a line is in, and which of its counts, if it was ever brought in.
#[inline]
fn place(word: u32) -> Option<(u32, usize)> {
    if word == UNSEEN {
        return None;
    }
    let number = word - FIRST;
    Some((number / 2, number as usize % 2))
}
