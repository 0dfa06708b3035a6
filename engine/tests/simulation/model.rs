//! The caches and the branch predictor of the reference, and TLBs, as plainly as they can be said.

use cg_sim::beyond::{Answer, Ask as _, Beyond, Levels, Request};
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

/// TLBs of one thread: for each, its sets, and pages of a set, the one used last first.
pub(crate) struct Pages {
    first: [Vec<Vec<u64>>; 2],
    second: Option<Vec<Vec<u64>>>,
}

impl Pages {
    /// Entries and ways of those of data and code, and of the second level, if there is one.
    #[allow(dead_code, reason = "each test uses its part")]
    pub(crate) fn new(data: (u64, u64), code: (u64, u64), second: Option<(u64, u64)>) -> Self {
        let of = |(entries, ways): (u64, u64)| vec![vec![u64::MAX; ways as usize]; (entries / ways) as usize];
        Self { first: [of(data), of(code)], second: second.map(of) }
    }

    fn page_misses(sets: &mut [Vec<u64>], page: u64) -> bool {
        let index = (page % sets.len() as u64) as usize;
        let set = &mut sets[index];
        let found = set.iter().position(|&p| p == page);
        set.remove(found.unwrap_or(set.len() - 1));
        set.insert(0, page);
        found.is_none()
    }

    /// Whether an access misses a page in the first level, and, of those pages, in the second one.
    fn misses(&mut self, code: bool, address: u64, size: u64) -> [bool; 2] {
        let mut missed = [false; 2];
        for page in address / 4096..=(address + size - 1) / 4096 {
            if Self::page_misses(&mut self.first[usize::from(code)], page) {
                missed[0] = true;
                missed[1] |= self.second.as_mut().is_some_and(|second| Self::page_misses(second, page));
            }
        }
        missed
    }
}

/// All caches of one thread.
pub(crate) struct Caches {
    i1: Level,
    d1: Level,
    ll: Level,
    /// What is asked instead of `ll`, if there is more than that.
    beyond: Option<Beyond>,
    pages: Option<Pages>,
    smallest: u64,
}

/// One access, and which levels it missed, each 0 or 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Misses {
    pub(crate) l1: u64,
    pub(crate) l2: u64,
    pub(crate) ll: u64,
    /// TLBs.
    pub(crate) pages: [u64; 2],
}

impl Caches {
    pub(crate) fn new(g: &Geometry) -> Self {
        let (i1, d1, ll) = (Level::new(g.i1), Level::new(g.d1), Level::new(g.ll));
        Caches { i1, d1, ll, beyond: None, pages: None, smallest: g.smallest_line() }
    }

    /// With levels that have automata of their own for twins: here it matters what they are asked for, and in which order.
    #[allow(dead_code, reason = "each test uses its part")]
    pub(crate) fn with_levels(self, levels: &Levels) -> Self {
        Caches { beyond: Some(Beyond::new(levels)), ..self }
    }

    /// With TLBs beside them.
    #[allow(dead_code, reason = "each test uses its part")]
    pub(crate) fn with_pages(self, pages: Pages) -> Self {
        Caches { pages: Some(pages), ..self }
    }

    fn beyond(&mut self, l1: bool, request: Request) -> Misses {
        let (mut l2, mut ll) = (false, false);
        if l1 {
            match &mut self.beyond {
                None => ll = self.ll.misses(request.addr, request.size.into()),
                Some(beyond) => {
                    let answer = beyond.access(request);
                    (l2, ll) = (beyond.second() && answer != Answer::Second, answer == Answer::Memory);
                }
            }
        }
        let (addr, size) = (request.addr, request.size.into());
        let pages = self.pages.as_mut().map(|pages| pages.misses(!request.data, addr, size)).unwrap_or_default();
        Misses { l1: l1.into(), l2: l2.into(), ll: ll.into(), pages: pages.map(u64::from) }
    }

    pub(crate) fn fetch(&mut self, address: u64, size: u64) -> Misses {
        let l1 = self.i1.misses(address, size);
        self.beyond(l1, Request { instruction: address, addr: address, size: size as u32, data: false })
    }

    /// A read, a write or a modification: all the same to a cache that allocates on writes.
    pub(crate) fn data(&mut self, instruction: u64, address: u64, size: u64) -> Misses {
        let size = size.min(self.smallest);
        let l1 = self.d1.misses(address, size);
        self.beyond(l1, Request { instruction, addr: address, size: size as u32, data: true })
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
