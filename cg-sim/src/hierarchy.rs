//! Two levels: instruction and data caches of a thread, and a last level that all share.
//!
//! An access that misses its first level goes to the last one with its original address and size, so an access to two lines
//! touches both there even if only one missed; one that hits does not touch the last level at all. Writes allocate like
//! reads, so a modification is one access of either kind. Levels do not invalidate each other's lines.
//!
//! An access within one line, the most recently used of its set in its first-level cache, changes no state and hits. A
//! caller may leave out such accesses (and no others); the tests prove it.

use crate::geometry::Geometries;
use crate::lru::Lru;

/// Which level answered an access. Misses of a level are those that a later one answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Served {
    /// The first level: no miss.
    L1 = 0,
    /// The last level: a first-level miss.
    LastLevel = 1,
    /// None: a miss of both levels.
    Memory = 2,
}

impl Served {
    /// Whether the first level missed.
    #[inline]
    #[must_use]
    pub fn missed_l1(self) -> bool {
        self != Self::L1
    }

    /// Whether the last level missed, too.
    #[inline]
    #[must_use]
    pub fn missed_ll(self) -> bool {
        self == Self::Memory
    }
}

/// The first-level caches of one thread.
#[derive(Clone, Debug)]
pub struct Level1 {
    i1: Lru,
    d1: Lru,
}

/// The last-level cache of one process.
#[derive(Clone, Debug)]
pub struct LastLevel {
    cache: Lru,
}

impl LastLevel {
    /// An empty one.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self { cache: Lru::new(geometries.ll) }
    }

    /// An access of `size` bytes at `addr` that is known to have missed its first level.
    #[inline]
    pub fn access(&mut self, addr: u64, size: u32) -> Served {
        if self.cache.access(addr, size) { Served::Memory } else { Served::LastLevel }
    }
}

impl Level1 {
    /// Empty ones.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self { i1: Lru::new(geometries.i1), d1: Lru::new(geometries.d1) }
    }

    /// Fetches an instruction of `len` bytes at `addr`.
    #[inline]
    pub fn fetch(&mut self, ll: &mut LastLevel, addr: u64, len: u32) -> Served {
        if self.i1.access(addr, len) { ll.access(addr, len) } else { Served::L1 }
    }

    /// Reads, writes or modifies `size` bytes at `addr`.
    #[inline]
    pub fn data(&mut self, ll: &mut LastLevel, addr: u64, size: u32) -> Served {
        if self.d1.access(addr, size) { ll.access(addr, size) } else { Served::L1 }
    }
}
