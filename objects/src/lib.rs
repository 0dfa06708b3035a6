//! Objects that memory consists of, and what accesses to them miss.
//!
//! Every data miss that the simulator books on an instruction is booked on exactly one object, too: the sums by object are those of
//! the profile. Which object an address belongs to is a question of time: blocks of the heap come and go. They are asked for first,
//! then variables of modules, then stacks; the rest is unknown.
//!
//! With streams asked for, the addresses that each instruction misses at each object are folded, too.
//!
//! Knows of addresses and records; names of sites are found by [`report`] when the process has ended.

#![forbid(unsafe_code)]

mod blocks;
pub mod distances;
pub mod hints;
pub mod members;
pub mod report;
pub mod sharing;
pub mod streams;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use grind_trace::objects::{Allocating, Allocator, Event};
use grind_trace::operands::joined;
use grind_trace::{
    ALLOCATOR_CALLED, ALLOCATOR_CALLER, ALLOCATOR_RETURNED, CALLED_WORDS, CALLER_WORDS, CARVED_WORDS, CachePort,
    DIED_WORDS, Done, NOT_COUNTED, OBJECT_CARVED, OBJECT_DIED, OBJECT_FREED, OBJECT_GIVEN_BACK, OBJECT_POOL_GONE,
    OBJECT_POOL_MOVED, OBJECT_POOL_TRIMMED, OBJECT_RESIZED, POOL_MOVED_WORDS, RESIZED_WORDS, RETURNED_WORDS, SiteKind,
    TRIMMED_WORDS,
};
use grind_types::Tid;
use grind_types::hash::Map;

use blocks::Blocks;
use cg_format::mem::streams::Access;
pub use grind_names::images::{Image, Images, Reader};

/// A place in code: its module, as an index into the report's, and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Index of its module.
    pub module: u32,
    /// The address.
    pub addr: u64,
}

/// What memory belongs to.
#[derive(Clone, Debug)]
pub enum Object {
    /// Blocks that an allocator has handed out to a call that returns to the first of these places, or that a request before it tells
    /// of; the others are where the calls around that return to, as far as they tell blocks apart.
    Heap(Arc<[Site]>),
    /// A variable of a file, or a section of it.
    Variable {
        /// The file.
        image: Arc<Image>,
        /// Its number there.
        number: usize,
    },
    /// Stacks, accessed by the instruction at this place.
    Stack(Site),
    /// All else.
    Unknown,
}

/// How lines were used that have left a cache: AcCost and SpLoss of the first levels and of the last one, then the bytes that were
/// accessed, of both.
pub type Uses = [u64; 6];

/// What is counted of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Misses: reads of the first and of the last level, then writes.
    pub misses: [u64; 4],
    /// How the lines were used that were loaded for it, if that is measured.
    pub uses: Uses,
    /// Blocks that were handed out.
    pub blocks: u64,
    /// Their bytes, as they were asked for.
    pub bytes: u64,
    /// The bytes of those that are there.
    live: u64,
    /// The most that were there at a time.
    pub peak: u64,
}

/// How an object is found again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Heap(Arc<[Site]>),
    Variable {
        /// Where the image, which is kept, is here.
        image: usize,
        number: usize,
    },
    Stack(Site),
    Unknown,
}

/// The objects of a process.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    blocks: Blocks,
    stacks: BTreeMap<u64, (u64, Tid)>,
    numbers: Map<Key, u32>,
    found: Vec<(Object, Tally)>,
    /// The calls that took back what had not been handed out.
    unknown_frees: u64,
    /// The thread whose records are read, once there are any.
    thread: Option<Tid>,
    /// The call of an allocator that this is in.
    calling: Calling,
    /// Those that the other threads are in.
    calls: Map<Tid, Calling>,
    /// The block that the last record tells of, if it was allocated where something is counted.
    allocated: Option<Allocated>,
    /// What a function that takes blocks back was given last, and by whom: such functions call one another.
    freed: Option<(Option<Tid>, u64)>,
    /// Where they are missed, if that is asked for.
    streams: Option<streams::Streams>,
    /// By object, and by offset in steps of [`FIELD`]: misses at blocks and variables of at most [`WITH_FIELDS`] bytes.
    fields: Vec<Vec<[u64; 4]>>,
    /// Which members of structures are missed.
    members: members::ByMember,
}

/// Bytes of what is told apart within an object.
pub const FIELD: u64 = 8;

/// The largest blocks and variables whose parts are told apart.
pub const WITH_FIELDS: u64 = 1024;

/// The call of an allocator that a thread is in.
#[derive(Clone, Debug, Default)]
struct Calling {
    call: Allocating,
    /// Who has called what calls it, the nearest first.
    callers: Vec<Site>,
    /// It is counted.
    counted: bool,
}

/// A block that an allocator has handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Where its call returned to.
    pub site: Site,
    /// The bytes that were asked for.
    pub size: u64,
}

/// A data miss.
#[derive(Clone, Copy, Debug)]
pub struct Miss {
    /// The address.
    pub addr: u64,
    /// Bytes of the access.
    pub size: u64,
    /// The instruction.
    pub site: Site,
    /// What it does there.
    pub access: Access,
    /// The profile books it as a write: tools have modifications as one or the other.
    pub write: bool,
    /// It is one of the last level, too.
    pub last_level: bool,
}

/// What lies at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lying {
    /// The number of the object.
    pub object: u32,
    /// Where the block or the variable begins; else the line.
    pub start: u64,
    /// Addresses around it of which the same is to be said.
    pub known: Range<u64>,
}

/// What was found of a process's objects.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By object.
    pub objects: Vec<(Object, Tally)>,
    /// The calls that took back a block that no allocator had handed out.
    pub unknown_frees: u64,
    /// Where they are missed, if that was asked for; by index into `objects`.
    pub streams: Option<streams::Found>,
    /// By object, and by offset in steps of [`FIELD`]: as [`Tally::misses`], of those that are not too large.
    pub fields: Vec<Vec<[u64; 4]>>,
    /// By object: of those whose type is known.
    pub members: Vec<Option<members::Members>>,
    /// Of a part: by number, which of `objects` it is, if it is one of them.
    pub numbers: Vec<Option<u32>>,
    /// Which functions miss them, if calls are recorded.
    pub missed_by: Vec<MissedBy>,
    /// How often the instruction at each address was executed, if that is not in the report.
    pub executions: Option<BTreeMap<u64, u64>>,
    /// The bytes of a line, if it was measured how lines are used.
    pub uses: Option<u64>,
}

/// What a function, in its context, misses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedBy {
    /// Its name, as the profile of calls has it.
    pub function: Vec<u8>,
    /// Its source file.
    pub file: Vec<u8>,
    /// The file that it is in.
    pub module: Vec<u8>,
    /// By object.
    pub missed: Vec<(u32, Missed)>,
}

/// What a function has missed of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// As [`Tally::misses`].
    pub misses: [u64; 4],
    /// As [`Tally::uses`], of lines that it has loaded.
    pub uses: Uses,
}

impl Objects {
    /// Folds the addresses of misses, too; lines of the first level have so many bytes.
    #[must_use]
    pub fn with_streams(line: u64) -> Self {
        Self { streams: Some(streams::Streams::new(line)), ..Self::default() }
    }

    /// What is recorded and missed from here on is of this thread.
    pub fn thread(&mut self, tid: Tid) {
        if self.thread != Some(tid) {
            let calling = self.calls.remove(&tid).unwrap_or_default();
            let before = std::mem::replace(&mut self.calling, calling);
            if let Some(thread) = self.thread.replace(tid) {
                self.calls.insert(thread, before);
            }
        }
        self.streams.iter_mut().for_each(|streams| streams.thread(tid));
    }

    /// The thread's stack lies there.
    pub fn stack(&mut self, tid: Tid, range: Range<u64>) {
        self.stacks.retain(|start, (end, _)| *end <= range.start || *start >= range.end);
        self.stacks.insert(range.start, (range.end, tid));
    }

    /// The thread has ended.
    pub fn thread_ended(&mut self, tid: Tid) {
        self.stacks.retain(|_, (_, of)| *of != tid);
        self.calls.remove(&tid);
        if self.thread == Some(tid) {
            self.calling = Calling::default();
        }
        self.streams.iter_mut().for_each(|streams| streams.thread_ended(tid));
    }

    /// Goes on in a process that `child` is the only thread of, a copy of `tid`.
    pub fn forked(&mut self, tid: Tid, child: Tid) {
        if self.thread != Some(tid) {
            self.calling = self.calls.remove(&tid).unwrap_or_default();
        }
        self.calls.clear();
        self.thread = Some(child);
    }

    /// Forgets what has been counted, but not what is there.
    pub fn forget(&mut self) {
        self.unknown_frees = 0;
        self.streams.iter_mut().for_each(streams::Streams::forget);
        self.fields.clear();
        self.members.take();
        for (_, tally) in &mut self.found {
            *tally = Tally { live: tally.live, peak: tally.live, ..Tally::default() };
        }
    }

    /// Takes note of what a record says that is none of a site. `None` if it is another one, or too short; else the words behind it.
    pub fn record<'a>(&mut self, words: &'a [u32]) -> Option<&'a [u32]> {
        match *words {
            [ALLOCATOR_CALLED, which, a, b, c, d, e, f, _, _, g, h, ref rest @ ..] => {
                const { assert!(CALLED_WORDS == 12) };
                let allocator = Allocator::of_word(which & !NOT_COUNTED)?;
                self.calling.callers.clear();
                self.calling.counted = which & NOT_COUNTED == 0;
                let happens =
                    self.calling.call.begins(allocator, [joined(a, b), joined(c, d), joined(e, f)], joined(g, h));
                happens.into_iter().for_each(|event| self.happens(event));
                Some(rest)
            }
            [ALLOCATOR_RETURNED, a, b, c, d, module, ref rest @ ..] => {
                const { assert!(RETURNED_WORDS == 6) };
                let happens = self.calling.call.returns(joined(c, d), module, joined(a, b));
                happens.into_iter().flatten().for_each(|event| self.happens(event));
                Some(rest)
            }
            [ALLOCATOR_CALLER, a, b, module, ref rest @ ..] => {
                const { assert!(CALLER_WORDS == 4) };
                self.calling.callers.push(Site { module, addr: joined(a, b) });
                Some(rest)
            }
            [OBJECT_CARVED, a, b, c, d, e, f, g, h, module, ref rest @ ..] => {
                const { assert!(CARVED_WORDS == 10) };
                let (site, pool) = (Site { module, addr: joined(e, f) }, joined(g, h));
                self.there([site].into(), joined(c, d), |blocks, size, n, gone| {
                    blocks.carved(joined(a, b), size, n, pool, gone)
                });
                Some(rest)
            }
            [OBJECT_RESIZED, a, b, c, d, ref rest @ ..] => {
                const { assert!(RESIZED_WORDS == 5) };
                let (size, found) = (joined(c, d), &mut self.found);
                let resized = self.blocks.resized(joined(a, b), size, |object, bytes| gone(found, (object, bytes)));
                if let Some((object, before)) = resized {
                    let tally = &mut self.found[object as usize].1;
                    tally.bytes = tally.bytes.saturating_add(size.saturating_sub(before));
                    tally.live = tally.live.saturating_sub(before).saturating_add(size);
                    tally.peak = tally.peak.max(tally.live);
                }
                Some(rest)
            }
            [OBJECT_POOL_TRIMMED, a, b, c, d, e, f, ref rest @ ..] => {
                const { assert!(TRIMMED_WORDS == 7) };
                let (found, start) = (&mut self.found, joined(c, d));
                let place = start..start.saturating_add(joined(e, f));
                self.blocks.pool_trimmed(joined(a, b), place, |object, bytes| gone(found, (object, bytes)));
                Some(rest)
            }
            [OBJECT_POOL_MOVED, a, b, c, d, ref rest @ ..] => {
                const { assert!(POOL_MOVED_WORDS == 5) };
                self.blocks.pool_moved(joined(a, b), joined(c, d));
                Some(rest)
            }
            [OBJECT_DIED, a, b, how, ref rest @ ..] => {
                const { assert!(DIED_WORDS == 4) };
                let (address, found) = (joined(a, b), &mut self.found);
                let gone = |object, bytes| gone(found, (object, bytes));
                let known = match how {
                    OBJECT_FREED => self.blocks.freed(address, gone),
                    OBJECT_GIVEN_BACK => self.blocks.given_back(address, gone),
                    OBJECT_POOL_GONE => self.blocks.pool_gone(address, gone),
                    _ => true,
                };
                let freed = (how == OBJECT_FREED).then_some((self.thread, address));
                let again = freed.is_some() && freed == self.freed;
                self.freed = freed;
                if !known && !again && matches!(how, OBJECT_FREED | OBJECT_GIVEN_BACK) {
                    self.unknown_frees += 1;
                }
                Some(rest)
            }
            _ => None,
        }
    }

    /// The block that the last record tells of, once, if it was allocated where something is counted.
    pub fn allocated(&mut self) -> Option<Allocated> {
        self.allocated.take()
    }

    /// A call of an allocator does this.
    fn happens(&mut self, event: Event) {
        let found = &mut self.found;
        match event {
            Event::InQuestion(address) => _ = self.blocks.in_question(address, true),
            Event::Kept(address) => _ = self.blocks.in_question(address, false),
            Event::Moved(address) => _ = self.blocks.moved(address, |object, bytes| gone(found, (object, bytes))),
            Event::Born { address, size, site, module } => {
                let site = Site { module, addr: site };
                self.allocated = self.calling.counted.then_some(Allocated { site, size });
                let sites = std::iter::once(site).chain(self.calling.callers.drain(..)).collect();
                self.there(sites, size, |blocks, size, n, gone| blocks.born(address, size, n, gone));
            }
        }
    }

    /// A block of so many bytes, of these sites, is there from here on: `put` puts it there.
    fn there(
        &mut self,
        sites: Arc<[Site]>,
        size: u64,
        put: impl FnOnce(&mut Blocks, u64, u32, &mut dyn FnMut(u32, u64)),
    ) {
        let number = self.number(Key::Heap(sites), None);
        let found = &mut self.found;
        put(&mut self.blocks, size, number, &mut |object, bytes| gone(found, (object, bytes)));
        let tally = &mut self.found[number as usize].1;
        tally.blocks += 1;
        tally.bytes = tally.bytes.saturating_add(size);
        tally.live = tally.live.saturating_add(size);
        tally.peak = tally.peak.max(tally.live);
    }

    /// An access of a site has missed the first level, and the last one if that is so: so many bytes at an address. Returns the number of the object.
    pub fn missed_at(
        &mut self,
        images: &Images,
        site: &grind_trace::Site,
        (addr, size): (u64, u16),
        last_level: bool,
    ) -> u32 {
        let access = match (site.kind, CachePort::of(site.kind)) {
            (_, Some(CachePort::Write)) => Access::Write,
            (SiteKind::Modify(_) | SiteKind::Member { done: Done::Modify, .. }, _) => Access::Modify,
            _ => Access::Read,
        };
        let at = Site { module: site.module, addr: site.addr.0 };
        // (Cachegrind books a modification as a read.)
        let write = access == Access::Write;
        self.missed(images, Miss { addr, size: size.into(), site: at, access, write, last_level })
    }

    /// An access has missed the first level. Returns the number of the object.
    pub fn missed(&mut self, images: &Images, miss: Miss) -> u32 {
        let (number, place) = match self.blocks.find(miss.addr) {
            Some((number, block)) => (number, Some(block)),
            None => self.other(images, miss.addr, miss.site),
        };
        let first = if miss.write { 2 } else { 0 };
        if let Some(place) = place.as_ref().filter(|place| place.end.saturating_sub(place.start) <= WITH_FIELDS) {
            let (object, at) = (number as usize, (miss.addr.saturating_sub(place.start) / FIELD) as usize);
            if object >= self.fields.len() {
                self.fields.resize(object + 1, Vec::new());
            }
            let fields = &mut self.fields[object];
            if at >= fields.len() {
                fields.resize(at + 1, [0; 4]);
            }
            fields[at][first] += 1;
            fields[at][first + 1] += u64::from(miss.last_level);
        }
        if let Some(place) = &place {
            let object = (number, &self.found[number as usize].0);
            self.members.missed(object, (miss.addr, place), (first, miss.last_level), images);
        }
        let misses = &mut self.found[number as usize].1.misses;
        misses[first] += 1;
        misses[first + 1] += u64::from(miss.last_level);
        if let Some(streams) = &mut self.streams {
            let Miss { addr, size, site, access, last_level, .. } = miss;
            let key = streams::Key { object: number, site, access };
            streams.missed(key, streams::Miss { addr, size, place, last_level });
        }
        number
    }

    /// The number of the object at an address that the instruction at `site` accesses.
    pub fn at(&mut self, images: &Images, addr: u64, site: Site) -> u32 {
        match self.blocks.find(addr) {
            Some((number, _)) => number,
            None => self.other(images, addr, site).0,
        }
    }

    /// Lines that were loaded for an object were used like that.
    pub fn used(&mut self, object: u32, uses: &Uses) {
        let sums = &mut self.found[object as usize].1.uses;
        sums.iter_mut().zip(uses).for_each(|(sum, n)| *sum += n);
    }

    /// Wants to know where blocks come and go from here on: [`Objects::changes`].
    pub fn watch(&mut self) {
        self.blocks.watch();
    }

    /// Where blocks have come or gone since the last time.
    pub fn changes(&mut self) -> impl Iterator<Item = Range<u64>> {
        self.blocks.changes()
    }

    /// What lies at an address of `line` that the instruction at `site` accesses.
    pub fn lies(&mut self, images: &Images, addr: u64, line: Range<u64>, site: Site) -> Lying {
        let (block, around) = self.blocks.around(addr);
        if let Some((object, start)) = block {
            return Lying { object, start, known: around };
        }
        let (object, place) = self.other(images, addr, site);
        let within = |place: Range<u64>| around.start.max(place.start)..around.end.min(place.end);
        if let Some(place) = place {
            return Lying { object, start: place.start, known: within(place) };
        }
        // What has no place is told from others by its line. Several kinds of it may lie there.
        let stack =
            |place: &Range<u64>| self.stacks.iter().find(|(start, (end, _))| **start < place.end && place.start < *end);
        let whole = match stack(&line) {
            _ if images.any(&line) => false,
            Some((start, (end, _))) => *start <= line.start && line.end <= *end,
            None => true,
        };
        let known = if whole { within(line.clone()) } else { addr..addr.saturating_add(1) };
        Lying { object, start: line.start, known }
    }

    /// The object that is none of blocks, and where it lies if that is known.
    fn other(&mut self, images: &Images, addr: u64, site: Site) -> (u32, Option<Range<u64>>) {
        if let Some((image, n, place)) = images.find(addr) {
            return (
                self.number(Key::Variable { image: Arc::as_ptr(image).addr(), number: n }, Some(image)),
                Some(place),
            );
        }
        let stack = self.stacks.range(..=addr).next_back().is_some_and(|(_, (end, _))| addr < *end);
        (self.number(if stack { Key::Stack(site) } else { Key::Unknown }, None), None)
    }

    fn number(&mut self, key: Key, image: Option<&Arc<Image>>) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let object = match (&key, image) {
            (Key::Heap(sites), _) => Object::Heap(sites.clone()),
            (Key::Variable { number, .. }, Some(image)) => Object::Variable { image: image.clone(), number: *number },
            (Key::Stack(site), _) => Object::Stack(*site),
            _ => Object::Unknown,
        };
        let number = self.found.len() as u32;
        self.found.push((object, Tally::default()));
        self.numbers.insert(key, number);
        number
    }

    /// What was found since the last time, of those objects of which something was. Objects stay; their counts begin anew.
    pub fn part(&mut self) -> Found {
        let mut numbers: Vec<Option<u32>> = Vec::new();
        let mut objects = Vec::new();
        for (object, tally) in &mut self.found {
            let next = Tally { live: tally.live, peak: tally.live, ..Tally::default() };
            let part = std::mem::replace(tally, next);
            let found = part.misses != [0; 4] || part.uses != [0; 6] || part.blocks != 0;
            numbers.push(found.then(|| {
                objects.push((object.clone(), part));
                objects.len() as u32 - 1
            }));
        }
        let number = |object: u32| numbers.get(object as usize).copied().flatten();
        let mut fields = vec![Vec::new(); objects.len()];
        for (object, of) in std::mem::take(&mut self.fields).into_iter().enumerate() {
            if let Some(n) = number(object as u32) {
                fields[n as usize] = of;
            }
        }
        let mut members = vec![None; objects.len()];
        for (object, of) in self.members.take().into_iter().enumerate() {
            if let Some(n) = number(object as u32) {
                members[n as usize] = of;
            }
        }
        let mut streams = self.streams.as_mut().map(|streams| streams.anew().found());
        for stream in streams.iter_mut().flat_map(|found| &mut found.streams) {
            // (Whose object has been missed.)
            stream.key.object = number(stream.key.object).unwrap_or(stream.key.object);
        }
        let unknown_frees = std::mem::take(&mut self.unknown_frees);
        Found { objects, unknown_frees, streams, fields, members, numbers, ..Found::default() }
    }

    /// All that was found.
    #[must_use]
    pub fn found(mut self) -> Found {
        let members = self.members.take();
        let streams = self.streams.map(streams::Streams::found);
        let Self { found: objects, unknown_frees, fields, .. } = self;
        Found { objects, unknown_frees, streams, fields, members, ..Found::default() }
    }
}

/// A block of an object is not there any more.
fn gone(found: &mut [(Object, Tally)], (object, bytes): (u32, u64)) {
    let live = &mut found[object as usize].1.live;
    *live = live.saturating_sub(bytes);
}
