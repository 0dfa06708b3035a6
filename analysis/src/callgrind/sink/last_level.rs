//! What the simulation of caches and branches keeps of a process: the last level, and what records of sites mean to it.
//!
//! Invariant: sites are only added; a site has a place once it has missed, and keeps it.

use cg_sim::beyond::{Ask, Request};
use cg_sim::writeback::WriteBackLastLevel;
use cg_sim::{Beyond, Geometries, LastLevel, Levels};
use grind_trace::every::Told;
use grind_trace::{Done, Site, SiteKind};
use grind_types::Tid;
use grind_types::own_memory;

use super::Settings;
use crate::callgrind::columns::{Depth, Missed};

/// The counter of a miss that has not happened yet; the place of a site that has not missed.
pub(super) const NONE: u32 = u32::MAX;

/// The levels beyond the first of a process.
#[derive(Clone, Debug)]
pub(super) enum Last {
    /// No caches are simulated.
    Absent,
    Plain(LastLevel),
    /// It is written back, or there is a prefetcher.
    Elaborate(WriteBackLastLevel),
    /// There are several levels, or another policy.
    Deep(Box<Beyond>),
}

impl Last {
    /// How deep an access of a site went that the first level did not have.
    #[inline]
    pub(super) fn missed(&mut self, known: &Known, addr: u64, size: u16) -> Depth {
        match self {
            Self::Absent => Depth::FIRST,
            Self::Plain(level) => asked(level, known, addr, size),
            Self::Elaborate(level) => level.reached(addr, size.into(), known.missed == Missed::Write).into(),
            Self::Deep(levels) => asked(&mut **levels, known, addr, size),
        }
    }

    /// From here on accesses are those of this thread.
    pub(super) fn run(&mut self, tid: Tid) {
        if let Self::Deep(levels) = self {
            levels.run(tid.0);
        }
    }
}

/// As [`Last::missed`], of levels that are known.
#[inline(always)]
pub(super) fn asked(levels: &mut impl Ask, known: &Known, addr: u64, size: u16) -> Depth {
    let data = known.missed != Missed::Fetch;
    let answer = levels.ask(Request { instruction: known.addr, addr, size: size.into(), data });
    (levels.second(), answer).into()
}

/// What a record of a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// As without simulation.
    Told,
    /// The address is the instruction's.
    Fetch,
    /// The address is in the record.
    Access,
    /// The address and the size are in the record.
    Sized,
    /// A branch.
    Branch,
    /// What a repeated instruction has accessed.
    Repeated,
    /// What a special one has accessed.
    Special,
    /// Fetches and accesses, be they misses or not; [`super::through`] has them.
    Stretch,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) what: What,
    pub(super) missed: Missed,
    /// Bytes of the access or of the instruction.
    pub(super) size: u16,
    pub(super) addr: u64,
    /// Its number among those that have missed, or [`NONE`].
    pub(super) place: u32,
}

// There are many, and little is known of which comes next.
const _: () = assert!(size_of::<Known>() == 16);

/// What the simulation knows of a process.
#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub(super) last: Last,
    /// What the last level is at the beginning.
    empty: Box<Last>,
    /// Bytes of the widest access.
    pub(super) most: u16,
    pub(super) known: Vec<Known>,
    /// The same for every access, where first levels are simulated here.
    pub(super) told: Vec<Told>,
    /// By place: the counters of misses that the last level, memory, and memory after a line was written back have answered.
    pub(super) counters: Vec<[u32; 3]>,
    /// The shapes of first-level caches that are simulated here, and not by the program itself.
    pub(super) shapes: Option<Geometries>,
}

impl Simulated {
    /// Empty caches, if there are any.
    pub(super) fn new(settings: &Settings, caches: Option<&Geometries>, levels: Option<&Levels>) -> Self {
        let last = match caches {
            None => Last::Absent,
            Some(caches) if settings.simulate_wb || settings.simulate_hwpref => {
                Last::Elaborate(WriteBackLastLevel::new(caches, settings.simulate_wb, settings.simulate_hwpref))
            }
            Some(_) if let Some(levels) = levels => Last::Deep(Box::new(Beyond::new(levels))),
            Some(caches) => Last::Plain(LastLevel::new(caches)),
        };
        let most = caches.map_or(u32::MAX, Geometries::min_line).min(u16::MAX.into()) as u16;
        let shapes = caches.filter(|_| settings.simulate_wb).copied();
        Self {
            empty: Box::new(last.clone()),
            last,
            most,
            known: Vec::new(),
            told: Vec::new(),
            counters: Vec::new(),
            shapes,
        }
    }

    /// Instrumentation is switched off.
    pub(super) fn empty_caches(&mut self) {
        self.last = (*self.empty).clone();
    }

    /// A copy of the process goes on with one thread, which has what `tid` has.
    pub(super) fn forked(&mut self, tid: Tid, child: Tid) {
        if let Last::Deep(levels) = &mut self.last {
            levels.forked(tid.0, child.0);
        }
    }

    /// What the thread has of its own is gone.
    pub(super) fn thread_ended(&mut self, tid: Tid) {
        if let Last::Deep(levels) = &mut self.last {
            levels.ended(tid.0);
        }
    }

    /// Asks for large pages for the tables.
    pub(super) fn prefer_large_pages(&self) {
        match &self.last {
            Last::Plain(level) => own_memory::prefer_large_pages_within(level.addresses()),
            Last::Deep(levels) => own_memory::prefer_large_pages_within(levels.addresses()),
            Last::Absent | Last::Elaborate(_) => {}
        }
    }

    /// Learns of more sites.
    pub(super) fn learn_sites(&mut self, sites: &[Site]) {
        let most = self.most;
        if self.shapes.is_some() {
            self.told.extend(sites.iter().map(|site| Told::new(site.kind, site.len)));
        }
        self.known.extend(sites.iter().map(|site| {
            let (what, missed, size) = match site.kind {
                SiteKind::Fetch | SiteKind::CodeLine { .. } => (What::Fetch, Missed::Fetch, site.len.into()),
                SiteKind::Read(size) => (What::Access, Missed::Read, size.min(most)),
                SiteKind::Write(size) | SiteKind::Modify(size) => (What::Access, Missed::Write, size.min(most)),
                SiteKind::Sized { done: Done::Read } => (What::Sized, Missed::Read, 0),
                SiteKind::Sized { done: Done::Write | Done::Modify } => (What::Sized, Missed::Write, 0),
                SiteKind::Conditional => (What::Branch, Missed::Conditional, 0),
                SiteKind::Indirect => (What::Branch, Missed::Indirect, 0),
                SiteKind::Repeated { .. } => (What::Repeated, Missed::Read, 0),
                SiteKind::Special { .. } => (What::Special, Missed::Read, 0),
                SiteKind::Stretch { .. } => (What::Stretch, Missed::Fetch, site.len.into()),
                SiteKind::Member { done: Done::Read, size, .. } => (What::Told, Missed::Read, size.min(most)),
                SiteKind::Member { size, .. } => (What::Told, Missed::Write, size.min(most)),
                SiteKind::Block { .. }
                | SiteKind::Transfer { .. }
                | SiteKind::Jump { .. }
                | SiteKind::Executions { .. } => (What::Told, Missed::Read, 0),
            };
            Known { what, missed, size, addr: site.addr.0, place: NONE }
        }));
    }
}
