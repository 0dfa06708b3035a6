//! The caches and the branch predictor of the reference, as plainly as they can be said.

use grind_tests::simulation::{Cache, Geometry};

/// A set-associative cache with least-recently-used replacement.
struct Level {
    line: u64,
    /// Line numbers, the most recently used first. At first every way holds line 0, as in the reference.
    sets: Vec<Vec<u64>>,
}

impl Level {
    fn new((size, ways, line): Cache) -> Self {
        let sets = size / ways / line;
        Level { line, sets: vec![vec![0; ways as usize]; sets as usize] }
    }

    fn line_misses(&mut self, line: u64) -> bool {
        let index = (line % self.sets.len() as u64) as usize;
        let set = &mut self.sets[index];
        let found = set.iter().position(|&l| l == line);
        set.remove(found.unwrap_or(set.len() - 1));
        set.insert(0, line);
        found.is_none()
    }

    /// Whether any line of an access misses. It has at most two.
    fn misses(&mut self, address: u64, size: u64) -> bool {
        let (first, last) = (address / self.line, (address + size - 1) / self.line);
        assert!(last - first <= 1, "{size} bytes at {address:#x}: more than two lines");
        let mut missed = self.line_misses(first);
        if last != first {
            missed |= self.line_misses(last);
        }
        missed
    }
}

/// All caches of one thread.
pub(crate) struct Caches {
    i1: Level,
    d1: Level,
    ll: Level,
    smallest: u64,
}

/// One access, and which levels it missed, each 0 or 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Misses {
    pub(crate) l1: u64,
    pub(crate) ll: u64,
}

impl Caches {
    pub(crate) fn new(g: &Geometry) -> Self {
        Caches { i1: Level::new(g.i1), d1: Level::new(g.d1), ll: Level::new(g.ll), smallest: g.smallest_line() }
    }

    pub(crate) fn fetch(&mut self, address: u64, size: u64) -> Misses {
        let l1 = self.i1.misses(address, size);
        Misses { l1: u64::from(l1), ll: u64::from(l1 && self.ll.misses(address, size)) }
    }

    /// A read, a write or a modification: all the same to a cache that allocates on writes.
    pub(crate) fn data(&mut self, address: u64, size: u64) -> Misses {
        let size = size.min(self.smallest);
        let l1 = self.d1.misses(address, size);
        Misses { l1: u64::from(l1), ll: u64::from(l1 && self.ll.misses(address, size)) }
    }
}

/// Both branch predictors.
pub(crate) struct Predictors {
    history: u64,
    counters: Vec<u8>,
    targets: Vec<u64>,
}

impl Default for Predictors {
    fn default() -> Self {
        Predictors { history: 0, counters: vec![0; 1 << 14], targets: vec![0; 512] }
    }
}

impl Predictors {
    /// Whether a conditional branch is predicted wrongly.
    pub(crate) fn conditional(&mut self, address: u64, taken: bool) -> bool {
        let counter = &mut self.counters[((self.history & 127) << 7 | address & 127) as usize];
        let wrong = (*counter >= 2) != taken;
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        self.history = self.history << 1 | u64::from(taken);
        wrong
    }

    /// Whether the target of an indirect one is predicted wrongly.
    pub(crate) fn indirect(&mut self, address: u64, target: u64) -> bool {
        let known = &mut self.targets[(address & 511) as usize];
        let wrong = *known != target;
        *known = target;
        wrong
    }
}
