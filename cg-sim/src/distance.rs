//! LRU stack distances: how many other lines a thread has used since it used a line last. A cache of one set that replaces the
//! line used longest ago has a line if, and only if, it holds more lines than the line's distance; so one list of distances says what
//! a cache of any size would have missed.
//!
//! The lines used last lie in a short array, most of which is never looked at. What falls out of it gets a time; the bits of
//! those times are a sequence in which the lines behind the array are in order, and counts of 64, 2,048 and 65,536 bits add up to
//! how many of them are younger than one. Where there are no times left, lines are numbered anew without gaps.
//!
//! Invariants: a line that was ever used is in the array, or has exactly one set bit; what is counted is what is set. Lines are
//! addresses shifted by their size, so none is `u64::MAX`. There is room for 2^29 lines; beyond those, all is forgotten. The slow
//! and obvious twin is in the tests.

use crate::line_map::LineMap;

/// How many lines the array has.
const FRONT: usize = 16;

/// No line.
const NONE: u64 = u64::MAX;

/// Words whose counts are added up to one.
const GROUP: usize = 32;

/// Times in a word, in a group of words, and in a block of groups.
const WORD_TIMES: usize = 64;
const BLOCK_TIMES: usize = WORD_TIMES * GROUP * GROUP;

/// The most lines that are known at a time.
const MOST: u64 = 1 << 29;

/// The bins of a [`Histogram`]: one for distance 0, then one for each power of two.
pub const BINS: usize = 40;

/// The bin of a distance: that of distances of 2^(bin - 1) lines and more, up to below twice as many.
#[inline]
#[must_use]
pub fn bin(distance: u64) -> usize {
    ((u64::BITS - distance.leading_zeros()) as usize).min(BINS - 1)
}

/// Accesses by their distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// By [`bin`].
    pub bins: [u64; BINS],
    /// Those of lines that had not been used before.
    pub first: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: [0; BINS], first: 0 }
    }
}

impl Histogram {
    /// An access at this distance, or of a line that is new.
    #[inline]
    pub fn add(&mut self, distance: Option<u64>) {
        match distance {
            Some(distance) => self.bins[bin(distance)] += 1,
            None => self.first += 1,
        }
    }

    /// All accesses.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins.iter().fold(self.first, |sum, n| sum.saturating_add(*n))
    }

    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        self.first = self.first.saturating_add(other.first);
        self.bins.iter_mut().zip(&other.bins).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
    }
}

/// Which lines are looked at, where it is not all: one of 2^`bits`, the same in every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    bits: u32,
}

impl Sample {
    /// One line of 2^`bits`, at most of 2^32; 0: all of them.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self { bits: bits.min(32) }
    }

    /// The number of lines of which one is looked at.
    #[must_use]
    pub fn rate(self) -> u64 {
        1 << self.bits
    }

    /// Whether `line` is one of them.
    #[inline]
    #[must_use]
    pub fn takes(self, line: u64) -> bool {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the line.
        self.bits == 0 || line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - self.bits) == 0
    }

    /// The distance, in all lines, of one in those that are looked at.
    #[inline]
    #[must_use]
    pub fn scaled(self, distance: u64) -> u64 {
        distance << self.bits
    }
}

/// All lines that a thread has used, in the order in which it used them last.
#[derive(Clone, Debug)]
pub struct LruStack {
    /// The last ones, from the last on.
    front: [u64; FRONT],
    rest: Rest,
}

impl Default for LruStack {
    fn default() -> Self {
        Self::new()
    }
}

impl LruStack {
    /// One of a thread that has not used any line.
    #[must_use]
    pub fn new() -> Self {
        Self { front: [NONE; FRONT], rest: Rest::new() }
    }

    /// Uses `line`, an address divided by a line's size of at least two bytes. Returns how many other lines have been used since it was
    /// used last, if it ever was.
    #[inline(always)]
    pub fn touch(&mut self, line: u64) -> Option<u64> {
        // Many are of the line of the access before.
        if self.front[0] == line { Some(0) } else { self.within(line) }
    }

    /// `line` is not the last one.
    #[inline(never)]
    fn within(&mut self, line: u64) -> Option<u64> {
        let mut carried = line;
        for (n, entry) in self.front.iter_mut().enumerate() {
            std::mem::swap(entry, &mut carried);
            if carried == line {
                return Some(n as u64);
            }
        }
        self.beyond(line, carried)
    }

    /// `line` was not in the array, and `fallen` has just fallen out of it.
    #[inline(never)]
    fn beyond(&mut self, line: u64, fallen: u64) -> Option<u64> {
        let depth = self.rest.take(line);
        if fallen != NONE {
            self.rest.push(fallen);
        }
        if depth.is_none() && self.rest.lines >= MOST {
            self.rest = Rest::new();
            self.front[1..].fill(NONE);
        }
        depth.map(|depth| depth + FRONT as u64)
    }
}

/// A line that is in the array; 0: one that was never used.
const IN_FRONT: u32 = 1;
/// What is added to the times of all others.
const FIRST_TIME: u32 = 2;

/// The lines behind the array.
#[derive(Clone, Debug)]
struct Rest {
    /// By line: 0 if it was never used, [`IN_FRONT`], or its time.
    times: LineMap,
    /// By time: whether a line has it.
    words: Vec<u64>,
    /// How many bits are set, by word, by group of words, and by block of groups.
    by_word: Vec<u8>,
    by_group: Vec<u16>,
    by_block: Vec<u32>,
    /// The next time.
    now: usize,
    /// Set bits in all.
    members: usize,
    /// Lines that were ever used.
    lines: u64,
}

impl Rest {
    fn new() -> Self {
        let mut rest = Self {
            times: LineMap::new(),
            words: Vec::new(),
            by_word: Vec::new(),
            by_group: Vec::new(),
            by_block: Vec::new(),
            now: 0,
            members: 0,
            lines: 0,
        };
        rest.renumber();
        rest
    }

    /// Takes a line out, which is put into the array. Returns how many lines are younger, if it was there.
    fn take(&mut self, line: u64) -> Option<u64> {
        let known = std::mem::replace(self.times.of(line), IN_FRONT);
        let Some(time) = known.checked_sub(FIRST_TIME) else {
            self.lines += 1;
            return None;
        };
        let time = time as usize;
        let word = time / WORD_TIMES;
        let younger = self.younger(time);
        self.words[word] &= !(1 << (time % WORD_TIMES));
        self.by_word[word] -= 1;
        self.by_group[word / GROUP] -= 1;
        self.by_block[time / BLOCK_TIMES] -= 1;
        self.members -= 1;
        Some(younger)
    }

    /// How many lines have later times.
    #[inline]
    fn younger(&self, time: usize) -> u64 {
        let word = time / WORD_TIMES;
        let end = self.now / WORD_TIMES + 1;
        let sum: u32 = (self.words[word] >> (time % WORD_TIMES) >> 1).count_ones();
        let group = word / GROUP;
        let of_words: u32 = self.by_word[word + 1..]
            .iter()
            .take((end.min((group + 1) * GROUP)).saturating_sub(word + 1))
            .map(|n| u32::from(*n))
            .sum();
        let (block, last_group) = (group / GROUP, end.div_ceil(GROUP));
        let groups = last_group.min((block + 1) * GROUP).saturating_sub(group + 1);
        let of_groups: u32 = self.by_group[group + 1..].iter().take(groups).map(|n| u32::from(*n)).sum();
        let of_blocks: u32 = self.by_block[block + 1..].iter().sum();
        u64::from(sum + of_words + of_groups + of_blocks)
    }

    /// Puts a line in, the youngest of all.
    fn push(&mut self, line: u64) {
        if self.now == self.words.len() * WORD_TIMES {
            self.renumber();
        }
        let time = self.now;
        *self.times.of(line) = time as u32 + FIRST_TIME;
        let word = time / WORD_TIMES;
        self.words[word] |= 1 << (time % WORD_TIMES);
        self.by_word[word] += 1;
        self.by_group[word / GROUP] += 1;
        self.by_block[time / BLOCK_TIMES] += 1;
        self.now += 1;
        self.members += 1;
    }

    /// Gives all lines times without gaps, and makes room for some times as many.
    #[cold]
    fn renumber(&mut self) {
        let mut before: Vec<u32> = Vec::with_capacity(self.words.len());
        let mut sum = 0;
        for word in &self.words {
            before.push(sum);
            sum += word.count_ones();
        }
        for time in self.times.all() {
            if let Some(old) = time.checked_sub(FIRST_TIME) {
                let (word, bit) = (old as usize / WORD_TIMES, old as usize % WORD_TIMES);
                let below = self.words[word] & ((1 << bit) - 1);
                *time = before[word] + below.count_ones() + FIRST_TIME;
            }
        }
        let blocks = (self.members * 4 / BLOCK_TIMES) + 1;
        let words = blocks * GROUP * GROUP;
        self.words = vec![0; words];
        self.by_word = vec![0; words];
        self.by_group = vec![0; blocks * GROUP];
        self.by_block = vec![0; blocks];
        self.now = self.members;
        for (n, word) in self.words.iter_mut().enumerate().take(self.members.div_ceil(WORD_TIMES)) {
            let here = (self.members - n * WORD_TIMES).min(WORD_TIMES);
            *word = u64::MAX >> (WORD_TIMES - here);
            self.by_word[n] = here as u8;
            self.by_group[n / GROUP] += here as u16;
            self.by_block[n / (GROUP * GROUP)] += here as u32;
        }
    }
}
