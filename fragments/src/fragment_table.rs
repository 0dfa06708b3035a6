//! The table of translations: which guest address has a fragment and where, which fragment a cache address belongs to, what
//! each stub is for, and what a report needs to know of every block. Entries are only ever added or marked dead; numbers
//! are never used twice, so counts can be attributed after a block is gone; until all are forgotten at once
//! ([`FragmentTable::flush`]).

mod page;
mod stub;
mod way;

use std::collections::HashMap;

use grind_layout as layout;
use grind_trace::follow::{self, CallContextId, TOTALS};
use grind_trace::{self as trace, SiteKind};
use grind_types::StaticEvents;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::hash::Map;
use grind_types::own_memory::{self, AHEAD};

use crate::distances::Distances;
use crate::hotness::Hotness;
use page::Page;
pub use stub::{Emulate, NO_REG, NOT_SPILLED, STUB_BYTES, StateMapEntry, Stub, StubKind};
pub use way::Way;

/// Number of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FragmentId(pub u32);

/// Guest length of an instruction (low 7 bits) and whether the block's counter counts it (bit 7 clear).
#[derive(Clone, Copy, Debug)]
pub struct InsnShape {
    /// Bytes of the program's instruction, and [`Self::COUNTED_ELSEWHERE`].
    pub guest: u8,
    /// Bytes of translated code.
    pub cache: u16,
}

impl InsnShape {
    /// Set where a counter of its own counts all executions.
    pub const COUNTED_ELSEWHERE: u8 = 0x80;

    /// Bytes of the program's instruction.
    #[inline]
    pub fn guest_len(self) -> u64 {
        u64::from(self.guest & 0x7f)
    }

    /// Whether the block's counter counts it.
    #[inline]
    pub fn in_block_count(self) -> bool {
        self.guest & Self::COUNTED_ELSEWHERE == 0
    }
}

/// A translated block.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// Its guest address.
    pub pc: GuestAddr,
    /// Whom its executions count for.
    pub call_context: CallContextId,
    /// The address of its translation (behind an IBL target).
    pub cache: CacheAddr,
    /// Where it is entered from elsewhere, to be counted in `counter`: `cache`, or a few instructions that lead there.
    pub entry: CacheAddr,
    /// Where it is called: a way to `entry` that takes back what a call has pushed; 0 if there is none yet.
    pub called: CacheAddr,
    /// Bytes of the translation from `cache` on.
    pub len: u32,
    /// Counts how often it is entered at `entry`.
    pub counter: u32,
    /// Counts how often the conditional branch in front of it is not taken ([`NO_COUNTER`]: does not lead here uncounted).
    pub edge: u32,
    /// The counter is bumped before everything else, and other blocks may lead to what is behind that: see [`DerivedEdge`].
    pub derived_edges_in: bool,
    /// First of its instructions in [`FragmentTable::shapes`].
    pub shapes: u32,
    /// Instructions.
    pub n: u16,
    /// Offset from `cache` from which on its execution has been counted.
    pub bump_end: u32,
    /// Index of its module.
    pub module: u32,
    /// Bytes of guest code.
    pub guest_len: u16,
    /// The status flags (of those that `inc` writes) that may be read before they are written.
    pub live_in: u8,
    /// Registers that are written before they are read, a bit each, as far as that was looked for.
    pub dead_in: u16,
    /// Registers that hold values of ours between two offsets into the body; the guest's are in the slot words
    /// `Held1` and `Held2`. [`NO_REG`]: no such register.
    pub held: [u8; 2],
    /// Where they begin to hold them.
    pub held_from: u32,
    /// Where they cease to.
    pub held_to: u32,
    /// Its number among [`FragmentTable::trace_blocks`], if executions are told.
    pub told: Option<u32>,
    /// Its guest code has gone or changed: not to be entered any more.
    pub dead: bool,
}

/// What has been executed of a block and is counted with a later one.
#[derive(Clone, Copy, Debug)]
pub struct DeferredPart {
    /// Its number among [`FragmentTable::trace_blocks`].
    pub block: u32,
    /// How many of its instructions have been executed.
    pub executed: u16,
    /// What counts that it has been left by a jump, but not been counted with a later one, if jumps count.
    pub jump: Option<u32>,
}

/// What has been executed before a block, and is counted with it (see `emit::deferral`).
#[derive(Clone, Debug, Default)]
pub struct Deferred {
    /// All of it.
    pub total: [u32; TOTALS],
    /// One for each block.
    pub parts: Vec<DeferredPart>,
    /// The exits that it counts for (among [`follow::Book::exits`]).
    pub exits: Vec<u32>,
    /// Where the block is entered past what takes that off.
    pub entry: CacheAddr,
}

/// No counter.
pub const NO_COUNTER: u32 = u32::MAX;

/// An uncounted way from one block to another: every execution of `from` goes on with `to`, but for those that `unless`
/// counts. Blocks only lead to later ones in this way, so one pass settles all counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DerivedEdge {
    /// Where it leads.
    pub to: FragmentId,
    /// Where it comes from.
    pub from: FragmentId,
    /// What counts the executions that go elsewhere, if there are any.
    pub unless: Option<Unless>,
}

/// What counts the executions of a block that do not flow on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unless {
    /// The edge counter of the block behind its branch, which is not taken then.
    Edge(FragmentId),
    /// A counter of its own.
    Counter(u32),
}

impl Fragment {
    /// The address behind its guest code.
    #[inline]
    pub fn end(&self) -> GuestAddr {
        self.pc.plus(self.guest_len.into())
    }

    /// Every address at which it can be entered.
    pub fn ways_in(&self) -> impl Iterator<Item = CacheAddr> + use<> {
        let counted = self.cache.plus(self.bump_end.into());
        [
            Some(self.entry),
            Some(self.cache).filter(|&c| c != self.entry),
            Some(counted).filter(|_| self.derived_edges_in),
        ]
        .into_iter()
        .flatten()
    }
}

/// Where a call has been translated.
#[derive(Clone, Copy, Debug)]
pub struct CallSite {
    /// Where the guest's return address is pushed.
    pub at: CacheAddr,
    /// The block that ends with it.
    pub block: FragmentId,
}

/// A counter of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Its number.
    pub counter: u32,
    /// The block that the instruction is in.
    pub block: FragmentId,
    /// Index of the instruction in its block.
    pub index: u16,
}

/// What is at a cache address.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The block that it belongs to.
    pub block: FragmentId,
    /// Index of the instruction whose translation it is in; the block's count if behind the last.
    pub index: u16,
    /// Whether it is that translation's first byte.
    pub at_start: bool,
    /// Whether the block's counter has been bumped.
    pub bumped: bool,
}

/// What is in one chunk of code cache. Code is only ever added behind what is there, so all of it is sorted by address.
#[derive(Clone, Debug, Default)]
struct Run {
    /// Address of the chunk.
    start: CacheAddr,
    blocks: Vec<FragmentId>,
    state_map: Vec<(CacheAddr, StateMapEntry)>,
    /// The last instruction of what leads from a block's entry to its translation, when the entry has been counted.
    ways_in: Vec<(CacheAddr, FragmentId)>,
    /// Where it is still to be counted that a block is left, and the block that counts as the next one until then.
    ways_out: Vec<(CacheAddr, FragmentId)>,
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct FragmentTable {
    /// All fragments, by their numbers.
    pub blocks: Vec<Fragment>,
    /// The first of each group of blocks that were emitted together.
    batches: Vec<FragmentId>,
    /// The instructions of all fragments; each fragment says which are its own.
    pub shapes: Vec<InsnShape>,
    /// All stubs, by their numbers.
    pub stubs: Vec<Stub>,
    /// Counters of single instructions.
    pub sites: Vec<Site>,
    /// What each instruction in `shapes` counts by itself; empty if nothing is traced.
    pub facts: Vec<StaticEvents>,
    /// Ordered by where they lead.
    pub derived_edges: Vec<DerivedEdge>,
    /// What is known by guest page (its number).
    pages: Map<(u64, CallContextId), Box<Page>>,
    /// The call contexts in which there is any on a page.
    call_contexts: Map<u64, Vec<CallContextId>>,
    /// What is known by cache address, a run for each chunk.
    runs: Vec<Run>,
    /// Where dead blocks can be entered: there stands a bare `int3`.
    dead: Map<CacheAddr, FragmentId>,
    /// Where conditional branches lead, by module.
    pub distances: Map<u32, Distances>,
    /// What had been executed when translations were thrown away.
    pub hotness: Hotness,
    /// Calls, by where they return to.
    pub call_sites: Map<GuestAddr, CallSite>,
    counters: u32,
    /// How far the memory of blocks, shapes, stubs, flows and points has been touched, in elements.
    touched: [usize; 5],
    /// Places that write records.
    pub trace_sites: Vec<trace::Site>,
    /// Their numbers, once translations have been thrown away.
    known_sites: Option<HashMap<trace::Site, u32>>,
    /// How many of the next places belong to the last one.
    group: u8,
    /// Blocks whose executions are told.
    pub trace_blocks: Vec<trace::Block>,
    /// Those of them that record registers.
    pub specials: Vec<trace::Special>,
    /// What calls are followed by.
    pub follow: follow::Book,
    /// What was said of code that the program made (`Session::code_made`), each with the first block that was translated then.
    made: Vec<(FragmentId, u32)>,
    /// What is deferred to blocks, as long as they have not been counted.
    pub deferred: Map<FragmentId, Deferred>,
    /// Blocks whose counters, where they end, take off what is deferred to the next one, and which that is.
    pub taken_off: Map<FragmentId, FragmentId>,
    /// Numbers of code lines, by address divided by the size of a line.
    lines: Map<u64, u32>,
}

impl FragmentTable {
    /// The live fragment for `pc`.
    #[inline]
    pub fn lookup(&self, pc: GuestAddr, call_context: CallContextId) -> Option<FragmentId> {
        Some(self.pages.get(&(pc.0 >> 12, call_context))?.at(pc)?.id)
    }

    /// The flags and registers of the live fragment for `pc`, as [`Fragment::live_in`] and [`Fragment::dead_in`] have them.
    #[inline]
    pub fn state_in(&self, pc: GuestAddr, call_context: CallContextId) -> Option<(u8, u16)> {
        let live = self.pages.get(&(pc.0 >> 12, call_context))?.at(pc)?;
        Some((live.live_in, live.dead_in))
    }

    /// The fragment of this number.
    #[inline]
    pub fn block(&self, id: FragmentId) -> &Fragment {
        &self.blocks[id.0 as usize]
    }

    /// Counters in use.
    #[inline]
    pub fn counters(&self) -> u32 {
        self.counters
    }

    /// A new counter.
    #[inline]
    pub fn new_counter(&mut self) -> u32 {
        self.counters += 1;
        self.counters - 1
    }

    /// A place that writes records. Once translations have been thrown away, it may be one that was there before, so that the
    /// list does not grow for as long as code comes and goes.
    pub fn new_trace_site(&mut self, site: trace::Site) -> u32 {
        let next = self.trace_sites.len() as u32;
        let group = self.group;
        self.group = group.saturating_sub(1);
        // The numbers of so many of the next sites follow from its own.
        let behind = match site.kind {
            SiteKind::Repeated { .. } => 2,
            SiteKind::Special { .. } => 3,
            SiteKind::Stretch { members, .. } => members,
            _ => 0,
        };
        if behind > 0 {
            self.group = behind;
        } else if group == 0
            && let Some(known) = &mut self.known_sites
        {
            let number = *known.entry(site).or_insert(next);
            if number != next {
                return number;
            }
        }
        self.trace_sites.push(site);
        next
    }

    /// Code lines that have numbers.
    #[inline]
    pub fn lines(&self) -> u32 {
        self.lines.len() as u32
    }

    /// The number of a code line; never 0.
    #[inline]
    pub fn line_number(&mut self, line: u64) -> u32 {
        let next = self.lines.len() as u32 + 1;
        *self.lines.entry(line).or_insert(next)
    }

    /// Forgets all blocks, counters and stubs but the first `stubs`; code is put into the same chunks from the start. Places
    /// that write records keep their numbers, and so do code lines.
    pub fn flush(&mut self, stubs: usize) {
        let old = std::mem::take(self);
        self.stubs = old.stubs[..stubs].to_vec();
        for run in &old.runs {
            self.add_chunk(run.start);
        }
        self.distances = old.distances;
        self.hotness = old.hotness;
        self.known_sites = Some(old.known_sites.unwrap_or_else(|| {
            // Those that belong to others are never looked for: they are just some that are the same.
            old.trace_sites.iter().zip(0..).map(|(&site, number)| (site, number)).collect()
        }));
        self.trace_sites = old.trace_sites;
        self.specials = old.specials;
        self.lines = old.lines;
        self.trace_blocks = old.trace_blocks;
        self.follow = old.follow;
        self.follow.flush();
        self.made = old.made.last().map(|&(_, made)| (FragmentId(0), made)).into_iter().collect();
    }

    /// What is translated from now on is, where the program made it, code of this moment. Says whether that is another one.
    pub fn now_made(&mut self, made: u32) -> bool {
        let changes = self.made.last().is_none_or(|(_, last)| *last != made);
        let next = self.next_block();
        match self.made.last_mut() {
            Some((first, last)) if *first == next || *last == made => *last = made,
            _ => self.made.push((next, made)),
        }
        changes
    }

    /// Of which moment a block is, if the program made its code.
    #[inline]
    pub fn made_at(&self, block: FragmentId) -> u32 {
        let behind = self.made.partition_point(|(first, _)| *first <= block);
        behind.checked_sub(1).map_or(0, |at| self.made[at].1)
    }

    /// Asks for a little of the memory that the next entries will need.
    pub fn make_room_ahead(&mut self) {
        let Self { blocks, shapes, stubs, derived_edges, runs, touched, .. } = self;
        let [b, s, t, f, p] = touched;
        own_memory::touch_ahead(blocks, b, AHEAD);
        own_memory::touch_ahead(shapes, s, AHEAD);
        own_memory::touch_ahead(stubs, t, AHEAD);
        own_memory::touch_ahead(derived_edges, f, AHEAD);
        if let Some(run) = runs.iter_mut().rev().find(|r| !r.state_map.is_empty()) {
            own_memory::touch_ahead(&mut run.state_map, p, AHEAD);
        }
    }

    /// The number that the next block gets.
    #[inline]
    pub fn next_block(&self) -> FragmentId {
        FragmentId(self.blocks.len() as u32)
    }

    /// What is added from now on is emitted together.
    #[inline]
    pub fn begin_batch(&mut self) {
        self.batches.push(self.next_block());
    }

    /// The blocks that were emitted together with `id`, itself among them.
    #[inline]
    pub fn batch_of(&self, id: FragmentId) -> impl Iterator<Item = FragmentId> + use<> {
        let next = self.batches.partition_point(|first| *first <= id);
        let first = next.checked_sub(1).map_or(0, |i| self.batches[i].0);
        let end = self.batches.get(next).map_or(self.next_block().0, |b| b.0);
        (first..end).map(FragmentId)
    }

    /// Adds a block; only the first of several with the same address is found by it.
    pub fn add_fragment(&mut self, block: Fragment) -> FragmentId {
        let id = self.next_block();
        self.run_for(block.cache).blocks.push(id);
        let first = block.pc.0 >> 12;
        let last = block.pc.plus(u64::from(block.guest_len).max(1) - 1).0 >> 12;
        self.page(first, block.call_context).insert(&block, id);
        if last != first {
            self.page(last, block.call_context).insert_tail(id);
        }
        self.blocks.push(block);
        id
    }

    fn page(&mut self, page: u64, call_context: CallContextId) -> &mut Page {
        let call_contexts = &mut self.call_contexts;
        self.pages.entry((page, call_context)).or_insert_with(|| {
            call_contexts.entry(page).or_default().push(call_context);
            Box::default()
        })
    }

    /// Whether a live block begins at `pc`.
    #[inline]
    pub fn begins(&self, pc: GuestAddr, call_context: CallContextId) -> bool {
        self.pages.get(&(pc.0 >> 12, call_context)).is_some_and(|p| p.begins(pc))
    }

    /// The first address from `pc` on at which a live block begins; none on this page: where the next page does.
    #[inline]
    pub fn next_begin(&self, pc: GuestAddr, call_context: CallContextId) -> GuestAddr {
        let end = GuestAddr((pc.0 | 0xfff).saturating_add(1));
        let Some(page) = self.pages.get(&(pc.0 >> 12, call_context)) else { return end };
        page.next(pc).unwrap_or(end)
    }

    /// The run of the chunk that `cache` is in, which is made if need be.
    fn run_for(&mut self, cache: CacheAddr) -> &mut Run {
        let i = self.runs.iter().position(|r| cache.since(r.start) < layout::CHUNK_SIZE);
        let i = i.unwrap_or_else(|| {
            self.add_chunk(cache);
            self.runs.len() - 1
        });
        &mut self.runs[i]
    }

    /// Code will be put into the chunk at `start`.
    #[inline]
    pub fn add_chunk(&mut self, start: CacheAddr) {
        self.runs.push(Run { start, ..Run::default() });
    }

    /// Adds a stub; `addr` and a patch site are known only when the code has its place, so they are set later.
    #[inline]
    pub fn add_stub(&mut self, kind: StubKind) -> u32 {
        self.stubs.push(Stub { addr: CacheAddr(0), kind });
        (self.stubs.len() - 1) as u32
    }

    /// `cache` is not below those of the points added before in its chunk; the last one for an address counts.
    #[inline]
    pub fn add_state_map_entry(&mut self, cache: CacheAddr, entry: StateMapEntry) {
        self.run_for(cache).state_map.push((cache, entry));
    }

    fn run_of(&self, cache: CacheAddr) -> Option<&Run> {
        self.runs.iter().find(|r| cache.since(r.start) < layout::CHUNK_SIZE)
    }

    /// How the program's state follows from the registers at this address of translated code, if more than the instruction pointer
    /// has to be changed.
    #[inline]
    pub fn state_map_entry(&self, cache: CacheAddr) -> Option<StateMapEntry> {
        let state_map = &self.run_of(cache)?.state_map;
        let i = state_map.partition_point(|p| p.0 <= cache).checked_sub(1)?;
        (state_map[i].0 == cache).then_some(state_map[i].1)
    }

    /// The pages from `first` to `last` that have entries.
    fn pages_in(&self, first: u64, last: u64) -> Vec<(u64, CallContextId)> {
        let in_order = |page: u64| {
            let call_contexts = self.call_contexts.get(&page).into_iter().flatten();
            call_contexts.map(move |&call_context| (page, call_context))
        };
        if last.saturating_sub(first) < self.call_contexts.len() as u64 {
            return (first..=last).flat_map(in_order).collect();
        }
        let mut pages: Vec<u64> = self.call_contexts.keys().copied().filter(|p| (first..=last).contains(p)).collect();
        pages.sort_unstable();
        pages.into_iter().flat_map(in_order).collect()
    }

    /// Whether any code of the pages from `start` to `end` (exclusive) has been translated.
    #[inline]
    pub fn touches(&self, start: GuestAddr, end: GuestAddr) -> bool {
        end > start && self.pages_in(start.0 >> 12, (end.0 - 1) >> 12).iter().any(|p| !self.pages[p].is_empty())
    }

    /// Marks every block that has a byte in `start..end` as dead; returns them.
    pub fn kill_range(&mut self, start: GuestAddr, end: GuestAddr) -> Vec<FragmentId> {
        let mut killed = Vec::new();
        let last = if end > start { (end.0 - 1) >> 12 } else { return killed };
        for page in self.pages_in(start.0 >> 12, last) {
            let Some(entry) = self.pages.get_mut(&page) else { continue };
            let blocks = &mut self.blocks;
            let keep = |id: FragmentId| {
                let b = &mut blocks[id.0 as usize];
                if !b.dead && b.pc < end && b.end() > start {
                    b.dead = true;
                    killed.push(id);
                }
                !b.dead
            };
            entry.retain(keep);
        }
        for &id in &killed {
            let b = self.blocks[id.0 as usize];
            for at in b.ways_in() {
                self.dead.insert(at, id);
            }
            // Killed by its last page, it is still listed on its first one.
            if let Some(page) = self.pages.get_mut(&(b.pc.0 >> 12, b.call_context)) {
                page.forget(b.pc, id);
            }
        }
        killed
    }

    /// The block is entered at `entry` from elsewhere.
    #[inline]
    pub fn set_entry(&mut self, id: FragmentId, entry: CacheAddr) {
        self.blocks[id.0 as usize].entry = entry;
    }

    /// The jump at cache address `at`, behind what was added before, leads from a block's entry to its translation.
    #[inline]
    pub fn add_way_in(&mut self, at: CacheAddr, id: FragmentId) {
        self.run_for(at).ways_in.push((at, id));
    }

    /// The instruction at cache address `at`, behind what was added before, is on the way out of a loop, and not counted yet:
    /// `skipped` is not executed.
    #[inline]
    pub fn add_way_out(&mut self, at: CacheAddr, skipped: FragmentId) {
        self.run_for(at).ways_out.push((at, skipped));
    }

    /// The dead block that would be entered at `cache`.
    #[inline]
    pub fn dead_at(&self, cache: CacheAddr) -> Option<FragmentId> {
        self.dead.get(&cache).copied()
    }

    /// What the translated code at `cache` belongs to. `None` for stubs, IBL targets and what is no code of ours.
    pub fn place(&self, cache: CacheAddr) -> Option<Place> {
        let run = self.run_of(cache)?;
        let blocks = &run.blocks;
        let id = blocks[blocks.partition_point(|id| self.block(*id).cache <= cache).checked_sub(1)?];
        let b = self.block(id);
        let offset = cache.since(b.cache);
        if offset >= u64::from(b.len) {
            let among =
                |ways: &[(CacheAddr, FragmentId)]| ways.binary_search_by_key(&cache, |w| w.0).ok().map(|i| ways[i].1);
            if let Some(block) = among(&run.ways_out) {
                return Some(Place { block, index: 0, at_start: false, bumped: true });
            }
            let block = among(&run.ways_in)?;
            return Some(Place { block, index: 0, at_start: true, bumped: true });
        }
        let bumped = offset >= u64::from(b.bump_end);
        let mut at = 0;
        for (i, s) in self.shapes[b.shapes as usize..][..usize::from(b.n)].iter().enumerate() {
            // A jump to what stands right behind it is nothing at all: there, too, it has still to be executed.
            if offset < at + u64::from(s.cache) || s.cache == 0 && offset == at {
                return Some(Place { block: id, index: i as u16, at_start: offset == at, bumped });
            }
            at += u64::from(s.cache);
        }
        Some(Place { block: id, index: b.n, at_start: offset == at, bumped })
    }

    /// The block is called at `called`.
    #[inline]
    pub fn set_called(&mut self, id: FragmentId, called: CacheAddr) {
        self.blocks[id.0 as usize].called = called;
    }

    /// The guest address of instruction `index` of a block (the block's end for its count).
    #[inline]
    pub fn pc_of(&self, id: FragmentId, index: u16) -> GuestAddr {
        let b = self.block(id);
        b.pc.plus(self.shapes[b.shapes as usize..][..usize::from(index)].iter().map(|s| s.guest_len()).sum())
    }
}

#[cfg(test)]
mod tests;
