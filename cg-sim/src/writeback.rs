//! The two-level hierarchy with a last level that is written back, and with a hardware prefetcher.
//!
//! Written back: first levels write through, so every write also reaches the last level, where it makes lines dirty; a miss
//! there that evicts a dirty line is counted apart. A write that hits the first level counts as nothing else, whatever
//! happens below. Prefetched: eight streams, one for each 4 KiB page modulo eight, follow the lines that miss the first
//! level (with write-back also all writes); from the third of a run of neighbouring lines on, the line five ahead is
//! loaded. What a prefetch evicts is not counted: the program did not ask for it.
//!
//! With write-back no write may be left out, even one to the newest line. Line numbers are compared whole, where the
//! reference ignores the upper 32 bits of addresses, and lines that were prefetched are found by later accesses, where
//! the reference, with write-back, files them under other tags.

use crate::geometry::Geometries;
use crate::hierarchy::Port;
use crate::lru::Lru;
use crate::slots::SlotLru;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// An instruction is fetched.
    Fetch,
    /// Data is read.
    Read,
    /// Data is written, or modified.
    Write,
}

/// Which level answered an access, and what it displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// The first level: no miss.
    L1 = 0,
    /// The last level: a first-level miss.
    LastLevel = 1,
    /// None: a miss of both levels.
    Memory = 2,
    /// The same, and a line that had been written to was evicted from the last level.
    MemoryDirty = 3,
}

/// Follows misses, to guess the next ones.
#[derive(Clone, Debug, Default)]
struct Prefetcher {
    /// By page modulo eight: the last line, and how many there were in a row; downwards: negative.
    streams: [(u64, i64); 8],
    up: u64,
    down: u64,
}

/// How many lines ahead is prefetched.
const AHEAD: u64 = 5;

impl Prefetcher {
    /// What to prefetch now that `line`, in which `addr` is, was accessed: the address `AHEAD` lines further on.
    fn follow(&mut self, addr: u64, line_bits: u32) -> Option<u64> {
        let line = addr >> line_bits;
        let (last, run) = &mut self.streams[(addr >> 12) as usize % 8];
        if line == *last {
            return None;
        }
        let step = if line == last.wrapping_add(1) {
            1
        } else if line == last.wrapping_sub(1) {
            -1
        } else {
            0
        };
        *last = line;
        // A turn ends a run, and does not begin the next one.
        *run = if *run == 0 || run.signum() == step { *run + step } else { 0 };
        if *run >= 2 {
            self.up += 1;
            Some(addr.wrapping_add(AHEAD << line_bits))
        } else if *run <= -2 {
            self.down += 1;
            Some(addr.wrapping_sub(AHEAD << line_bits))
        } else {
            None
        }
    }
}

/// The last-level cache of one process.
#[derive(Clone, Debug)]
pub struct WriteBackLastLevel {
    lru: SlotLru,
    /// By slot: whether it was written to.
    dirty: Box<[bool]>,
    write_back: bool,
    prefetcher: Option<Prefetcher>,
}

impl WriteBackLastLevel {
    /// An empty one: written back or not, with a prefetcher or without.
    #[must_use]
    pub fn new(geometries: &Geometries, write_back: bool, prefetcher: bool) -> Self {
        let lru = SlotLru::new(geometries.ll);
        let dirty = vec![false; lru.len()].into();
        Self { lru, dirty, write_back, prefetcher: prefetcher.then(Prefetcher::default) }
    }

    /// How many lines were prefetched upwards and downwards.
    #[must_use]
    pub fn prefetched(&self) -> (u64, u64) {
        self.prefetcher.as_ref().map_or((0, 0), |p| (p.up, p.down))
    }

    fn prefetch(&mut self, addr: u64) {
        let line_bits = self.lru.line_bits();
        if let Some(addr) = self.prefetcher.as_mut().and_then(|p| p.follow(addr, line_bits)) {
            let (slot, hit) = self.lru.touch(self.lru.line(addr));
            self.dirty[slot] &= hit;
        }
    }

    /// An access of `size` bytes at `addr` that is known to have missed its first level; or a write that may have hit it, of
    /// which nothing counts. Never [`Outcome::L1`].
    pub fn reached(&mut self, addr: u64, size: u32, write: bool) -> Outcome {
        self.prefetch(addr);
        self.access(addr, size, write)
    }

    fn access(&mut self, addr: u64, size: u32, write: bool) -> Outcome {
        let mut outcome = Outcome::LastLevel;
        SlotLru::each_line(self.lru.line_bits(), addr, size, |line, _, _| {
            let (slot, hit) = self.lru.touch(line);
            let dirty = &mut self.dirty[slot];
            if !hit {
                outcome = outcome.max(if *dirty { Outcome::MemoryDirty } else { Outcome::Memory });
                *dirty = false;
            }
            *dirty |= write && self.write_back;
        });
        outcome
    }
}

/// The first-level caches of one thread.
#[derive(Clone, Debug)]
pub struct WriteThrough {
    /// By port.
    caches: [Lru; 2],
}

impl WriteThrough {
    /// Empty ones.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self { caches: [Lru::new(geometries.d1), Lru::new(geometries.i1)] }
    }

    /// Accesses `size` bytes at `addr` (at least one).
    #[inline]
    pub fn access(&mut self, ll: &mut WriteBackLastLevel, action: Action, addr: u64, size: u32) -> Outcome {
        let port = if action == Action::Fetch { Port::Fetch } else { Port::Data };
        let missed = self.caches[port as usize].access_usual(addr, size);
        let write = action == Action::Write;
        let reaches = missed || write && ll.write_back;
        if !reaches {
            return Outcome::L1;
        }
        let outcome = ll.reached(addr, size, write);
        if missed { outcome } else { Outcome::L1 }
    }
}
