//! Records of a run in which caches or branches are simulated: what the first level missed and what was mispredicted stand
//! among the blocks and transfers of control, in program order, so they are booked on what runs at that moment.
//!
//! A miss is a counter of its own: an instruction that is not executed, and costs a miss. So misses are counted like blocks, and
//! as fast. A miss is told before the block that it happened in, which makes no difference: a block lies in one function, and
//! what runs changes where a block has been told. What the simulation keeps (the last level) goes on while nothing is
//! collected; only instrumentation that is switched off empties it, as in the reference.

use cg_calls::JumpKind;
use cg_sim::writeback::{Outcome, WriteBackLastLevel};
use cg_sim::{Geometries, LastLevel};
use grind_engine::own_memory;
use grind_engine::trace::{Done, Site, SiteKind, Target};

use super::process::{Hot, Kind, NOTHING, Process, Thread, word};
use super::{Catalogue, Settings, Space};
use crate::callgrind::columns::Missed;

/// The counter of a miss that has not happened yet; the place of a site that has not missed.
pub(super) const NONE: u32 = u32::MAX;

/// The last level of a process.
#[derive(Clone, Debug)]
pub(super) enum Last {
    /// No caches are simulated.
    Absent,
    Plain(LastLevel),
    /// It is written back, or there is a prefetcher.
    Elaborate(WriteBackLastLevel),
}

impl Last {
    pub(super) fn missed(&mut self, addr: u64, size: u16, write: bool) -> Outcome {
        match self {
            Self::Absent => Outcome::LastLevel,
            Self::Plain(level) => match level.access(addr, size.into()).missed_ll() {
                true => Outcome::Memory,
                false => Outcome::LastLevel,
            },
            Self::Elaborate(level) => level.reached(addr, size.into(), write),
        }
    }
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
    /// By place: the counters of misses that the last level, memory, and memory after a line was written back have answered.
    counters: Vec<[u32; 3]>,
    /// The shapes of first-level caches that are simulated here, and not by the program itself.
    pub(super) shapes: Option<Geometries>,
}

impl Simulated {
    /// Empty caches, if there are any.
    pub(super) fn new(settings: &Settings, caches: Option<&Geometries>) -> Self {
        let last = match caches {
            None => Last::Absent,
            Some(caches) if settings.simulate_wb || settings.simulate_hwpref => {
                Last::Elaborate(WriteBackLastLevel::new(caches, settings.simulate_wb, settings.simulate_hwpref))
            }
            Some(caches) => Last::Plain(LastLevel::new(caches)),
        };
        let most = caches.map_or(u32::MAX, Geometries::min_line).min(u16::MAX.into()) as u16;
        let shapes = caches.filter(|_| settings.simulate_wb).copied();
        Self { empty: Box::new(last.clone()), last, most, known: Vec::new(), counters: Vec::new(), shapes }
    }

    /// Instrumentation is switched off.
    pub(super) fn empty_caches(&mut self) {
        self.last = (*self.empty).clone();
    }

    /// Asks for large pages for the tables.
    pub(super) fn prefer_large_pages(&self) {
        if let Last::Plain(level) = &self.last {
            own_memory::prefer_large_pages_within(level.addresses());
        }
    }

    /// Learns of more sites.
    pub(super) fn pull_stack(&mut self, sites: &[Site]) {
        let most = self.most;
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

/// How often a repeated instruction has accessed memory: reads and writes.
pub(super) fn repeated(kind: SiteKind, record: &[u32]) -> [u64; 2] {
    let SiteKind::Repeated { source, target, narrow, .. } = kind else { return [0; 2] };
    let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
    let count = |n: usize| word(record[n], record[n + 1]) & mask;
    let iterations = count(1).wrapping_sub(count(7)) & mask;
    let reads = u64::from(source) + u64::from(target == Target::Read);
    [iterations.wrapping_mul(reads), iterations.wrapping_mul(u64::from(target == Target::Write))]
}

impl Process {
    /// Goes through records up to one after which a function asks for something, or a part is due; returns what is left.
    pub(super) fn follow_simulated<'w>(
        &mut self,
        tid: i32,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> &'w [u32] {
        // Out of their places, so that nothing has to be looked for at each record.
        let (Some(mut simulated), Some(mut t)) = (self.simulated.take(), self.threads.remove(&tid)) else { return &[] };
        let rest = self.go_through(&mut simulated, &mut t, catalogue, space, words);
        self.threads.insert(tid, t);
        self.simulated = Some(simulated);
        rest
    }

    fn go_through<'w>(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> &'w [u32] {
        let mut rest = words;
        loop {
            if t.pause == u64::MAX {
                let done = match self.columns.stride {
                    5 => self.fast::<5>(simulated, t, catalogue, rest),
                    9 => self.fast::<9>(simulated, t, catalogue, rest),
                    13 => self.fast::<13>(simulated, t, catalogue, rest),
                    16 => self.fast::<16>(simulated, t, catalogue, rest),
                    24 => self.fast::<24>(simulated, t, catalogue, rest),
                    _ => 0,
                };
                rest = &rest[done..];
            }
            let Some((&number, operands)) = rest.split_first() else { return rest };
            let Some(known) = simulated.known.get_mut(number as usize) else { return &[] };
            if !t.begun {
                t.begun = true;
                // Where its block begins, if that is what it tells of.
                let told = self.hot.get(number as usize).filter(|hot| hot.counter != NOTHING);
                t.calls.begin(catalogue, told.map_or(known.addr, |hot| self.counters[hot.counter as usize].start));
            }
            let outcome = match known.what {
                What::Told => {
                    let Some(hot) = self.hot.get(number as usize) else { return &[] };
                    if t.blocks >= t.pause && hot.counter != NOTHING {
                        return rest;
                    }
                    let Some((after, asks)) = told(t, hot, &self.costs, catalogue, number, operands) else {
                        return &[];
                    };
                    rest = after;
                    if asks {
                        return rest;
                    }
                    continue;
                }
                What::Branch => {
                    rest = operands;
                    Outcome::LastLevel
                }
                What::Fetch => {
                    rest = operands;
                    simulated.last.missed(known.addr, known.size, false)
                }
                What::Access => {
                    let Some(([low, high], after)) = operands.split_first_chunk() else { return &[] };
                    rest = after;
                    simulated.last.missed(word(*low, *high), known.size, known.missed == Missed::Write)
                }
                What::Sized => {
                    let Some(([low, high, size], after)) = operands.split_first_chunk() else { return &[] };
                    rest = after;
                    simulated.last.missed(word(*low, *high), *size as u16, known.missed == Missed::Write)
                }
                What::Repeated | What::Special => {
                    let kind = space.sites[number as usize].kind;
                    let Some((record, after)) = rest.split_at_checked(kind.words()) else { return &[] };
                    rest = after;
                    let mut counts = repeated(kind, record);
                    if let SiteKind::Special { index, .. } = kind {
                        for touch in space.specials.get(index as usize).map(|s| s.touches(record)).unwrap_or_default() {
                            counts[usize::from(touch.done != Done::Read)] += 1;
                        }
                    }
                    self.accesses(t, catalogue, known.addr, counts);
                    if simulated.shapes.is_some() {
                        self.through(simulated, t, catalogue, space, record);
                    }
                    continue;
                }
                What::Stretch => {
                    let kind = space.sites[number as usize].kind;
                    let Some((record, after)) = rest.split_at_checked(kind.words()) else { return &[] };
                    if let SiteKind::Stretch { tells: Some(block), .. } = kind {
                        if t.blocks >= t.pause {
                            return rest;
                        }
                        t.blocks += 1;
                        spend(t, self.counter_of_block[block as usize], &self.costs);
                    }
                    rest = after;
                    self.through(simulated, t, catalogue, space, record);
                    continue;
                }
            };
            self.missed(simulated, t, catalogue, number, outcome);
        }
    }

    /// Goes through ordinary records, and through misses among them; returns how many words those are.
    fn fast<const W: usize>(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        words: &[u32],
    ) -> usize {
        let places = self.columns.places();
        // Counters may be added meanwhile, but no steps.
        let steps = std::mem::take(&mut self.steps);
        let miss = |number: u32, words: &[u32], now: &mut [u64; W]| {
            let known = simulated.known.get(number as usize)?;
            let (outcome, length) = match (known.what, words) {
                (What::Branch, _) => (Outcome::LastLevel, 1),
                (What::Fetch, _) => (simulated.last.missed(known.addr, known.size, false), 1),
                (What::Access, [_, low, high, ..]) => {
                    (simulated.last.missed(word(*low, *high), known.size, known.missed == Missed::Write), 3)
                }
                _ => return None,
            };
            self.columns.missed(known.missed, outcome, |event| now[event] += 1);
            Some((self.counter_of_miss(simulated, catalogue, number, outcome), length))
        };
        let done = t.calls.fast_path_wide(&places, &steps, words, &mut t.now, &mut t.blocks, miss);
        self.steps = steps;
        done
    }

    /// A site has missed its first level (or mispredicted its branch).
    pub(super) fn missed(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        site: u32,
        outcome: Outcome,
    ) {
        let counter = self.counter_of_miss(simulated, catalogue, site, outcome);
        spend(t, counter, &self.costs);
    }

    /// The counter of a site's miss.
    #[inline]
    pub(super) fn counter_of_miss(
        &mut self,
        simulated: &mut Simulated,
        catalogue: &mut Catalogue,
        site: u32,
        outcome: Outcome,
    ) -> u32 {
        let known = &mut simulated.known[site as usize];
        if known.place == NONE {
            known.place = simulated.counters.len() as u32;
            simulated.counters.push([NONE; 3]);
        }
        let counter = &mut simulated.counters[known.place as usize][(outcome as usize).saturating_sub(1)];
        if *counter == NONE {
            let costs = self.columns.miss(known.missed, outcome);
            *counter = self.add_counter_at(catalogue, known.addr, costs);
        }
        *counter
    }

    /// The instruction at `addr` has made so many reads and writes that are not known from its executions.
    fn accesses(&mut self, t: &mut Thread, catalogue: &mut Catalogue, addr: u64, counts: [u64; 2]) {
        let Some(dr) = self.columns.accesses else { return };
        let counter = self.single_counter(catalogue, addr);
        for (event, n) in (dr..).zip(counts).filter(|(_, n)| *n != 0) {
            t.calls.cost(counter, event, n);
            t.now[event] += n;
        }
    }
}

/// A record that has nothing to do with simulation. Returns what is behind it, and whether a function asks for something;
/// nothing, if it is none.
pub(super) fn told<'w>(
    t: &mut Thread,
    hot: &Hot,
    costs: &[u64],
    catalogue: &mut Catalogue,
    number: u32,
    operands: &'w [u32],
) -> Option<(&'w [u32], bool)> {
    if hot.counter != NOTHING {
        t.blocks += 1;
        spend(t, hot.counter, costs);
    }
    if hot.kind == Kind::Block {
        return Some((operands, false));
    }
    let ([low, high], after) = operands.split_first_chunk()?;
    let sp = word(*low, *high);
    let indirect = || {
        let ([low, high], after) = after.split_first_chunk()?;
        Some((word(*low, *high), after))
    };
    Some(match hot.kind {
        Kind::Call => (after, t.calls.call(catalogue, hot.site, hot.target, sp, &t.now)),
        Kind::Jump(kind) => (after, t.calls.jump(catalogue, hot.site, hot.target, sp, kind, &t.now)),
        Kind::Within(kind) => {
            t.calls.jump_within(catalogue, hot.site, hot.target, kind);
            (after, false)
        }
        Kind::Return => {
            let (target, after) = indirect()?;
            (after, t.calls.ret(catalogue, hot.site, target, sp, &t.now))
        }
        Kind::CallIndirect => {
            let (target, after) = indirect()?;
            (after, t.calls.call(catalogue, hot.site, target, sp, &t.now))
        }
        Kind::JumpIndirect => {
            let (target, after) = indirect()?;
            (after, t.calls.jump(catalogue, hot.site, target, sp, JumpKind::Always, &t.now))
        }
        Kind::Executions => {
            let before = t.executions.insert(number, sp).unwrap_or(0);
            let more = sp.wrapping_sub(before);
            t.calls.cost(hot.target as u32, 0, more);
            t.now[0] = t.now[0].wrapping_add(more);
            (after, false)
        }
        Kind::Block | Kind::Other => return None,
    })
}

/// The counter is executed, or its miss has happened. `costs` are those of all counters, side by side.
#[inline]
pub(super) fn spend(t: &mut Thread, counter: u32, costs: &[u64]) {
    t.calls.block(counter);
    let width = t.now.len();
    let costs = &costs[counter as usize * width..][..width];
    t.now.iter_mut().zip(costs).for_each(|(now, cost)| *now += cost);
}
