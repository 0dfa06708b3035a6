//! Two levels: instruction and data caches of a thread, and a last level that all share.
//!
//! An access that misses its first level goes to the last one with its original address and size, so an access to two lines
//! touches both there even if only one missed; one that hits does not touch the last level at all. Writes allocate like
//! reads, so a modification is one access of either kind. Levels do not invalidate each other's lines.
//!
//! An access all of whose lines are the most recently used of their sets in its first-level cache changes no state and
//! hits. A caller may leave out such accesses (and no others); the tests prove it. (Two neighbouring lines are in different
//! sets, unless there is only one set; then an access to both is never of this kind.)

use crate::geometry::Geometries;
use crate::lru::{Assoc, Lru, Ways};

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

/// What an access is for, which decides on its first-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Port {
    /// Reads, writes and modifications of data.
    Data = 0,
    /// Instructions.
    Fetch = 1,
}

/// The first-level caches of one thread.
#[derive(Clone, Debug)]
pub struct Level1 {
    /// By port.
    pub(crate) caches: [Lru; 2],
}

/// The last-level cache of one process.
#[derive(Clone, Debug)]
pub struct LastLevel {
    pub(crate) cache: Lru,
}

impl LastLevel {
    /// An empty one.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self { cache: Lru::new(geometries.ll) }
    }

    /// The addresses, in this process, of what accesses look at. Nothing of it has been touched as long as there were none.
    #[must_use]
    pub fn addresses(&self) -> std::ops::Range<usize> {
        let lines = self.cache.lines().as_ptr_range();
        lines.start.addr()..lines.end.addr()
    }

    /// The address, in this process, of what an access at `addr` looks at first.
    #[inline]
    #[must_use]
    pub fn address(&self, addr: u64) -> usize {
        self.cache.address(addr)
    }

    /// An access of `size` bytes at `addr` that is known to have missed its first level.
    #[inline]
    pub fn access(&mut self, addr: u64, size: u32) -> Served {
        // What most processors have is a copy of the code in which the number of ways is a constant.
        let missed = match self.cache.assoc() {
            16 => self.cache.fixed::<16>().access(addr, size),
            _ => self.cache.access(addr, size),
        };
        if missed { Served::Memory } else { Served::LastLevel }
    }
}

impl Level1 {
    /// Empty ones.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self { caches: [Lru::new(geometries.d1), Lru::new(geometries.i1)] }
    }

    /// Accesses `size` bytes at `addr` (at least one), whatever it is for.
    #[inline]
    pub fn access(&mut self, ll: &mut LastLevel, port: Port, addr: u64, size: u32) -> Served {
        if self.caches[port as usize].access(addr, size) { ll.access(addr, size) } else { Served::L1 }
    }

    /// Whether one of these caches holds a line of these addresses, but for line 0. Changes nothing.
    #[must_use]
    pub fn holds(&self, addresses: &std::ops::Range<u64>) -> bool {
        self.caches.iter().any(|cache| cache.holds(addresses))
    }

    /// The same without a next level: returns whether the first one misses. Who asks goes on with the next.
    #[inline]
    pub fn misses(&mut self, port: Port, addr: u64, size: u32) -> bool {
        self.caches[port as usize].access_usual(addr, size)
    }

    /// Fetches an instruction of `len` bytes at `addr`.
    #[inline]
    pub fn fetch(&mut self, ll: &mut LastLevel, addr: u64, len: u32) -> Served {
        self.access(ll, Port::Fetch, addr, len)
    }

    /// Reads, writes or modifies `size` bytes at `addr`.
    #[inline]
    pub fn data(&mut self, ll: &mut LastLevel, addr: u64, size: u32) -> Served {
        self.access(ll, Port::Data, addr, size)
    }

    /// Makes many accesses in a row, and calls `missed` for those that miss the first level. Faster than one by one.
    #[inline]
    pub fn replay<R: Access>(&mut self, ll: &mut LastLevel, records: &[R], missed: impl FnMut(&R, Served)) {
        // Shapes that processors have; each is a copy of the loop in which the number of ways is a constant.
        let [data, fetch] = &mut self.caches;
        match (data.assoc(), fetch.assoc(), ll.cache.assoc()) {
            (8, 8, 16) => replay([data.fixed::<8>(), fetch.fixed::<8>()], ll.cache.fixed::<16>(), records, missed),
            (8, 8, _) => replay([data.fixed::<8>(), fetch.fixed::<8>()], ll.cache.any(), records, missed),
            (12, 8, _) => replay_unlike(data.fixed::<12>(), fetch.fixed::<8>(), ll.cache.any(), records, missed),
            _ => replay([data.any(), fetch.any()], ll.cache.any(), records, missed),
        }
    }
}

/// Something that accesses memory.
pub trait Access {
    /// What for.
    fn port(&self) -> Port;
    /// The address.
    fn addr(&self) -> u64;
    /// The number of bytes.
    fn size(&self) -> u32;
}

#[inline(always)]
fn replay<R: Access, A: Assoc, B: Assoc>(
    mut first: [Ways<'_, A>; 2],
    mut last: Ways<'_, B>,
    records: &[R],
    mut missed: impl FnMut(&R, Served),
) {
    for record in records {
        let (addr, size) = (record.addr(), record.size());
        // One piece of code for both ports: which comes next is hard to predict.
        if first[record.port() as usize].access(addr, size) {
            let served = if last.access(addr, size) { Served::Memory } else { Served::LastLevel };
            missed(record, served);
        }
    }
}

/// The same where the first-level caches have different numbers of ways.
#[inline(always)]
fn replay_unlike<R: Access, A: Assoc, B: Assoc, C: Assoc>(
    mut data: Ways<'_, A>,
    mut fetch: Ways<'_, B>,
    mut last: Ways<'_, C>,
    records: &[R],
    mut missed: impl FnMut(&R, Served),
) {
    for record in records {
        let (addr, size) = (record.addr(), record.size());
        let missed_first = match record.port() {
            Port::Data => data.access(addr, size),
            Port::Fetch => fetch.access(addr, size),
        };
        if missed_first {
            let served = if last.access(addr, size) { Served::Memory } else { Served::LastLevel };
            missed(record, served);
        }
    }
}
