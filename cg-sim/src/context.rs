//! Which context of the statistics brought in the data that another one finds in the caches.
//!
//! Every line of the first-level data cache and of the last level has an owner, the context that loaded it, and is *old*
//! after any change of context until it is hit or evicted. The first hit on an old line is a reuse: it is reported once,
//! with the owner, and the line is not old any more; it keeps its owner, since nobody loaded it anew. A change of context
//! costs one addition: a line is old if its number of the last change is not the current one.
//!
//! Misses are those of [`crate::hierarchy`]. A caller that leaves out accesses to the newest lines must forget which these
//! are at every change, so that the first access to each is simulated. An instruction fetch that hits an old line of the
//! last level is a reuse, too: it is memory that need not be read.

use std::collections::HashMap;

use crate::beyond::{Answer, Beyond, Request, Seen};
use crate::geometry::{Geometries, Geometry};
use crate::hierarchy::{LastLevel, Level1, Port, Served};
use crate::lru::Lru;
use crate::slots::SlotLru;
use crate::usage::Level;

/// A cache that knows whom its lines are from.
#[derive(Clone, Debug)]
struct Owned {
    lru: SlotLru,
    marks: Box<[Mark]>,
    /// Changes so far.
    epoch: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// The change after which the line was loaded or hit last.
    epoch: u64,
    owner: u32,
}

impl Owned {
    fn new(geometry: Geometry) -> Self {
        let lru = SlotLru::new(geometry);
        let marks = vec![Mark::default(); lru.len()].into();
        Self { lru, marks, epoch: 0 }
    }

    /// With what `lru` holds, all of context 0 and not old.
    fn of(lru: &Lru) -> Self {
        let lru = SlotLru::of(lru);
        let marks = vec![Mark::default(); lru.len()].into();
        Self { lru, marks, epoch: 0 }
    }

    /// Whether any line had to be loaded. `reused` is called with the owner of every old line that is hit.
    #[inline]
    fn access(&mut self, addr: u64, size: u32, context: u32, mut reused: impl FnMut(u32)) -> bool {
        let mut missed = false;
        SlotLru::each_line(self.lru.line_bits(), addr, size, |line, _, _| {
            let (slot, hit) = self.lru.touch(line);
            let mark = &mut self.marks[slot];
            if !hit {
                missed = true;
                *mark = Mark { epoch: self.epoch, owner: context };
            } else if mark.epoch != self.epoch {
                mark.epoch = self.epoch;
                reused(mark.owner);
            }
        });
        missed
    }
}

/// The last-level cache of one process, with contexts.
#[derive(Clone, Debug)]
pub struct ContextLastLevel {
    cache: Owned,
}

impl ContextLastLevel {
    /// An empty one.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self { cache: Owned::new(geometries.ll) }
    }

    /// One that holds what `last_level` does: all of it is of context 0, and not old before the next change.
    #[must_use]
    pub fn of(last_level: &LastLevel) -> Self {
        Self { cache: Owned::of(&last_level.cache) }
    }

    /// A thread of the process changes its context: all lines are old.
    pub fn change(&mut self) {
        self.cache.epoch += 1;
    }

    /// An access in `context` that is known to have missed its first level. As [`ContextLevel1::access`].
    pub fn access(&mut self, addr: u64, size: u32, context: u32, reused: &mut impl FnMut(Level, u32)) -> Served {
        match self.cache.access(addr, size, context, |owner| reused(Level::LastLevel, owner)) {
            true => Served::Memory,
            false => Served::LastLevel,
        }
    }
}

/// Who has brought lines in, of a cache that knows that of none.
#[derive(Clone, Debug, Default)]
struct Marks {
    /// By line: of those that came since there are contexts.
    lines: HashMap<u64, Mark>,
    epoch: u64,
}

impl Marks {
    /// A context brings a line in.
    fn loaded(&mut self, line: u64, owner: u32) {
        self.lines.insert(line, Mark { epoch: self.epoch, owner });
    }

    /// A line is found: by whom it was brought in, if it is old.
    fn hit(&mut self, line: u64) -> Option<u32> {
        let mark = self.lines.entry(line).or_default();
        let old = std::mem::replace(&mut mark.epoch, self.epoch) != self.epoch;
        old.then_some(mark.owner)
    }
}

/// Where an old line is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldIn {
    /// In the thread's second level.
    Second,
    /// In the last level.
    Last,
}

/// The levels beyond the first of one process, with contexts: those of its last level's lines, which the changes of all threads make old, and of
/// second levels, of which each has its thread's.
#[derive(Clone, Debug)]
pub struct ContextBeyond {
    levels: Beyond,
    last: Marks,
    /// By thread.
    second: HashMap<i32, Marks>,
}

impl ContextBeyond {
    /// With what `levels` hold: all of it is of context 0, and not old before the next change.
    #[must_use]
    pub fn of(levels: Beyond) -> Self {
        Self { levels, last: Marks::default(), second: HashMap::new() }
    }

    /// The levels themselves. (Ends and forks of threads are told to [`ContextBeyond::ended`] and [`ContextBeyond::forked`].)
    pub fn levels(&mut self) -> &mut Beyond {
        &mut self.levels
    }

    /// As [`Beyond::ended`].
    pub fn ended(&mut self, thread: i32) {
        self.levels.ended(thread);
        self.second.remove(&thread);
    }

    /// As [`Beyond::forked`].
    pub fn forked(&mut self, thread: i32, child: i32) {
        self.levels.forked(thread, child);
        let own = self.second.remove(&thread);
        self.second = own.map(|own| (child, own)).into_iter().collect();
    }

    /// A thread of the process changes its context: all lines of the last level are old.
    pub fn change(&mut self) {
        self.last.epoch += 1;
    }

    /// This thread does: so are those of its second level.
    pub fn change_own(&mut self, thread: i32) {
        self.second.entry(thread).or_default().epoch += 1;
    }

    /// An access in `context` that is known to have missed its first level. As [`ContextLevel1::access`].
    pub fn access(&mut self, request: Request, context: u32, reused: &mut impl FnMut(OldIn, u32)) -> Answer {
        let Self { levels, last, second } = self;
        let own = second.entry(levels.running()).or_default();
        levels.observed(request, &mut |seen| match seen {
            Seen::Loaded(line) => last.loaded(line, context),
            Seen::SecondLoaded(line) => own.loaded(line, context),
            Seen::Hit(line) => last.hit(line).into_iter().for_each(|owner| reused(OldIn::Last, owner)),
            Seen::SecondHit(line) => own.hit(line).into_iter().for_each(|owner| reused(OldIn::Second, owner)),
        })
    }
}

/// The first-level caches of one thread, with contexts.
#[derive(Clone, Debug)]
pub struct ContextLevel1 {
    i1: Lru,
    d1: Owned,
}

impl ContextLevel1 {
    /// Empty ones.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self { i1: Lru::new(geometries.i1), d1: Owned::new(geometries.d1) }
    }

    /// Caches that hold what those of `level1` do: all of it is of context 0, and not old before the next change.
    #[must_use]
    pub fn of(level1: &Level1) -> Self {
        let [d1, i1] = &level1.caches;
        Self { i1: i1.clone(), d1: Owned::of(d1) }
    }

    /// The thread changes its context: all its lines are old. The last level has to be told, too.
    pub fn change(&mut self) {
        self.d1.epoch += 1;
    }

    /// Accesses `size` bytes at `addr` (at least one) while the thread is in `context`.
    ///
    /// `reused` is called for every old line that is hit, with the context that owns it.
    #[inline]
    pub fn access(
        &mut self,
        ll: &mut ContextLastLevel,
        port: Port,
        addr: u64,
        size: u32,
        context: u32,
        reused: &mut impl FnMut(Level, u32),
    ) -> Served {
        let missed = match port {
            Port::Fetch => self.i1.access(addr, size),
            Port::Data => self.d1.access(addr, size, context, |owner| reused(Level::L1, owner)),
        };
        if missed { ll.access(addr, size, context, reused) } else { Served::L1 }
    }
}
