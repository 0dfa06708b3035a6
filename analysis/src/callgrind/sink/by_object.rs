//! Misses by data object, beside the call graph: each data miss that is booked on what runs is booked on one object, too, and on what
//! runs there. Calls of allocators are costs of the calls that are made to them.
//!
//! Invariants: what is not collected is on no object; the misses of all objects are the profile's, event by event, and those of all
//! functions at an object are the object's. Blocks come and go whatever is collected.

use std::collections::{BTreeMap, HashMap};

use cg_calls::{Calls, Node, Profile};
use cg_format::mem::streams::Access;
use grind_objects::{Images, Miss, Missed as AtObject, Objects, Reader, Site as Place, Uses};
use grind_trace::{Done, Site, SiteKind};
use grind_types::Tid;
use grind_types::hash::Map;

use super::super::columns::{Columns, Depth};
use super::super::objects_part::ObjectsPart;
use super::cache_lines::Touching;

/// What is asked for.
#[derive(Debug)]
pub struct Wanted {
    /// Reads where variables of files are.
    pub images: Reader,
    /// Misses are told by object, and not only what allocators do.
    pub misses: bool,
    /// The addresses of misses are folded, of lines of so many bytes.
    pub streams: Option<u64>,
    /// There is a second level before the last one.
    pub second: bool,
    /// How lines of so many bytes are used is told by object.
    pub uses: Option<u64>,
}

/// Reads and writes that missed the first level, and the last: those of each object are in this order.
pub(super) type Missed = [u64; 4];

/// What a thread has missed: by what ran ([`Calls::running`]), and by object.
pub(super) type OfThread = Map<(u32, u32), Missed>;

/// The objects of a process.
#[derive(Clone, Debug)]
pub(super) struct ByObject {
    pub(super) objects: Objects,
    misses: bool,
    /// The depth of what all levels have missed.
    memory: usize,
    /// Of threads that have ended, since the last part: by what ran, and by object.
    missed: HashMap<Node, BTreeMap<u32, AtObject>>,
    /// Bytes of lines of which it is told how they are used.
    uses: Option<u64>,
    /// How often counters were executed, in the part that is taken.
    executions: Option<HashMap<u32, u64>>,
}

/// What has missed.
pub(super) struct DataMiss<'a> {
    pub(super) site: &'a Site,
    pub(super) addr: u64,
    pub(super) size: u16,
    pub(super) depth: Depth,
}

impl ByObject {
    pub(super) fn new(wanted: &Wanted) -> Self {
        Self {
            objects: wanted.streams.map_or_else(Objects::default, Objects::with_streams),
            misses: wanted.misses,
            memory: 1 + usize::from(wanted.second),
            missed: HashMap::new(),
            uses: wanted.uses,
            executions: wanted.streams.map(|_| HashMap::new()),
        }
    }

    /// A thread with these calls, which has missed that before, has missed, and that has been booked.
    pub(super) fn missed(&mut self, images: &Images, (calls, before): (&Calls, &mut OfThread), miss: &DataMiss<'_>) {
        if !self.misses || !calls.collecting() {
            return;
        }
        let access = match miss.site.kind {
            SiteKind::Write(_) | SiteKind::Sized { done: Done::Write } | SiteKind::Member { done: Done::Write, .. } => {
                Access::Write
            }
            SiteKind::Modify(_)
            | SiteKind::Sized { done: Done::Modify }
            | SiteKind::Member { done: Done::Modify, .. } => Access::Modify,
            _ => Access::Read,
        };
        // Callgrind books a modification as a write.
        let (write, last_level) = (access != Access::Read, miss.depth.index() >= self.memory);
        let site = Place { module: miss.site.module, addr: miss.site.addr.0 };
        let Some(node) = calls.running() else { return };
        let miss = Miss { addr: miss.addr, size: miss.size.into(), site, access, write, last_level };
        let object = self.objects.missed(images, miss);
        let misses = before.entry((node, object)).or_default();
        let first = if write { 2 } else { 0 };
        misses[first] += 1;
        misses[first + 1] += u64::from(last_level);
    }

    /// An access of `site` to an address, if lines are told apart by object.
    #[inline]
    pub(super) fn touching<'a>(&'a mut self, images: &'a Images, site: &Site, addr: u64) -> Option<Touching<'a>> {
        let at = Place { module: site.module, addr: site.addr.0 };
        self.misses.then_some(Touching { objects: &mut self.objects, images, site: at, addr, last: None })
    }

    /// Lines that this function loaded for an object were used like that.
    pub(super) fn used(&mut self, by: Node, object: u32, uses: Uses) {
        self.objects.used(object, &uses);
        let sums = &mut self.missed.entry(by).or_default().entry(object).or_default().uses;
        sums.iter_mut().zip(uses).for_each(|(sum, n)| *sum += n);
    }

    /// Costs are set to zero.
    pub(super) fn forget(&mut self) {
        self.objects.forget();
        self.missed.clear();
        self.executions.iter_mut().for_each(HashMap::clear);
    }

    pub(super) fn thread_ended(&mut self, tid: Tid, calls: &Calls, missed: OfThread) {
        self.take(calls, missed);
        self.objects.thread_ended(tid);
    }

    /// What a thread has missed.
    fn take(&mut self, calls: &Calls, missed: OfThread) {
        for ((node, object), missed) in missed {
            let sums = self.missed.entry(calls.describe(node)).or_default().entry(object).or_default();
            sums.misses.iter_mut().zip(missed).for_each(|(sum, n)| *sum += n);
        }
    }

    /// A part has been taken, in which that was found.
    pub(super) fn executed<'a>(&mut self, profiles: impl Iterator<Item = &'a Profile>) {
        let Some(executions) = &mut self.executions else { return };
        for counter in profiles.flat_map(|profile| &profile.counters) {
            let sum = executions.entry(counter.counter).or_default();
            *sum = sum.saturating_add(counter.executions);
        }
    }

    /// What was found since the last part, if misses are told: those of `threads` that have not ended are in their own books.
    pub(super) fn part<'a>(
        &mut self,
        threads: impl Iterator<Item = (&'a Calls, &'a mut OfThread)>,
    ) -> Option<ObjectsPart> {
        if !self.misses {
            return None;
        }
        threads.for_each(|(calls, missed)| self.take(calls, std::mem::take(missed)));
        let mut found = self.objects.part();
        found.uses = self.uses;
        let executions = self.executions.as_mut().map(std::mem::take).unwrap_or_default();
        Some(ObjectsPart { found, missed: std::mem::take(&mut self.missed), executions })
    }
}

impl Columns {
    /// Whether misses or allocations have to be told apart, or calls alone.
    pub(super) fn records(&self) -> bool {
        self.simulated() || self.allocations.is_some()
    }
}
