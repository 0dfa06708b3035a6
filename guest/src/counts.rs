//! From counters to executed instructions. The counters of threads' slots count how often blocks are entered, and ways between
//! them taken; what they cannot know (blocks that were left in the middle) is kept in corrections. Instructions are told as
//! stretches of code that were executed equally often, as a rule blocks: there are far more instructions, and most of who
//! asks needs them one by one only here and there. Invariant: each execution of an instruction is told once, in one stretch or by
//! itself; what was translated several times, or lies in blocks that overlap, is told several times, and to be added up.

use std::borrow::Cow;

use grind_fragments::fragment_table::{Fragment, FragmentId, FragmentTable, InsnShape, NO_COUNTER, Unless};
use grind_trace::{Block, SiteKind};
use grind_types::addr::GuestAddr;
use grind_types::hash::Map;
use grind_types::{InstructionCount, StaticEvents};

/// Instructions that were executed without their block being counted, or the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corrections {
    /// To be added to a block's count.
    whole: Map<u32, i64>,
    /// To be added to the count of the first `k` instructions of a block.
    head: Map<u64, i64>,
    /// To be added to a counter of its own.
    counters: Map<u32, i64>,
}

impl Corrections {
    /// A block was left after `executed` instructions; `bumped` tells whether its execution has been counted. Nothing flows
    /// on from it.
    pub fn left(&mut self, id: FragmentId, block: &Fragment, executed: u16, bumped: bool) {
        let mut bumped = bumped;
        if !bumped && block.edge != NO_COUNTER {
            // The branch in front of it has been counted as not taken, so far only by being counted at all.
            let c = self.counters.entry(block.edge).or_default();
            *c = c.wrapping_add(1);
            bumped = true;
        }
        if bumped {
            *self.whole.entry(id.0).or_default() -= 1;
        }
        if executed > 0 {
            *self.head.entry(u64::from(id.0) << 16 | u64::from(executed)).or_default() += 1;
        }
    }

    /// Of `executed` instructions of a block that have been counted, the last one has not been executed after all.
    pub fn not_the_last(&mut self, block: FragmentId, executed: u16) {
        let key = |k: u16| u64::from(block.0) << 16 | u64::from(k);
        *self.head.entry(key(executed)).or_default() -= 1;
        if executed > 1 {
            *self.head.entry(key(executed - 1)).or_default() += 1;
        }
    }

    /// Of `executed` instructions of a block, the last one has been executed, too, and has not been counted.
    pub fn the_last_too(&mut self, block: FragmentId, executed: u16) {
        let key = |k: u16| u64::from(block.0) << 16 | u64::from(k);
        *self.head.entry(key(executed)).or_default() += 1;
        if executed > 1 {
            *self.head.entry(key(executed - 1)).or_default() -= 1;
        }
    }

    /// Those of another book, too.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.whole.iter().for_each(|(&k, &n)| *self.whole.entry(k).or_default() += n);
        other.head.iter().for_each(|(&k, &n)| *self.head.entry(k).or_default() += n);
        for (&k, &n) in &other.counters {
            let c = self.counters.entry(k).or_default();
            *c = c.wrapping_add(n);
        }
    }

    /// `n` too many have been counted in `counter`.
    pub fn take_off(&mut self, counter: u32, n: u64) {
        let c = self.counters.entry(counter).or_default();
        *c = c.wrapping_sub(n as i64);
    }
}

/// Instructions that follow one another, and were executed equally often.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Where the first one begins.
    pub start: GuestAddr,
    /// Executions of each.
    pub count: u64,
    /// Index into `ProcessReport::modules`.
    pub module: u32,
    /// Of the first one among all shapes.
    first: u32,
    /// Bytes of code.
    pub bytes: u16,
    /// Instructions, those included that are counted by themselves.
    n: u16,
    /// Instructions that are told here.
    pub instructions: u16,
    /// As [`InstructionCount::made`].
    pub made: u32,
}

/// Executed instructions: stretches of them, in the order of their addresses, and single ones, in no order to rely on. The
/// same address may occur several times.
#[derive(Debug, Default)]
pub struct Counts<'a> {
    stretches: Vec<Stretch>,
    shapes: Cow<'a, [InsnShape]>,
    facts: &'a [StaticEvents],
    singles: Vec<InstructionCount>,
}

impl From<Vec<InstructionCount>> for Counts<'_> {
    /// Instructions one by one.
    fn from(singles: Vec<InstructionCount>) -> Self {
        Self { singles, ..Self::default() }
    }
}

impl Counts<'_> {
    /// For tests of who is told: stretches by module, address, lengths of their instructions and executions.
    #[doc(hidden)]
    pub fn of_stretches<'b>(stretches: impl IntoIterator<Item = (u32, GuestAddr, &'b [u8], u64)>) -> Self {
        let (mut all, mut shapes) = (Vec::new(), Vec::new());
        for (module, start, lengths, count) in stretches {
            let first = shapes.len() as u32;
            shapes.extend(lengths.iter().map(|&guest| InsnShape { guest, cache: 0 }));
            let (bytes, n) = (lengths.iter().map(|&n| u16::from(n)).sum(), lengths.len() as u16);
            all.push(Stretch { start, count, module, first, bytes, n, instructions: n, made: 0 });
        }
        all.sort_by_key(|s| s.start);
        Self { stretches: all, shapes: shapes.into(), ..Self::default() }
    }

    /// What is told in stretches.
    #[must_use]
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// What is told by itself.
    #[must_use]
    pub fn singles(&self) -> &[InstructionCount] {
        &self.singles
    }

    /// The instructions of a stretch, each with its number in there.
    pub fn instructions_of(&self, stretch: &Stretch) -> impl Iterator<Item = (u16, InstructionCount)> {
        let Stretch { module, count, first, n, made, .. } = *stretch;
        let mut at = stretch.start;
        let shapes = &self.shapes[first as usize..][..usize::from(n)];
        (0..).zip(shapes).filter_map(move |(k, shape)| {
            let (addr, len) = (at, shape.guest_len());
            at = at.plus(len);
            let events = self.events_of(stretch, k);
            let one = InstructionCount { module: module as usize, addr, len: len as u8, count, events, made };
            shape.in_block_count().then_some((k, one))
        })
    }

    /// How many instructions a stretch has, those included that are counted by themselves.
    #[must_use]
    pub fn length_of(&self, stretch: &Stretch) -> u16 {
        stretch.n
    }

    /// What instruction `number` of a stretch does.
    #[must_use]
    pub fn events_of(&self, stretch: &Stretch, number: u16) -> StaticEvents {
        self.facts.get(stretch.first as usize + usize::from(number)).copied().unwrap_or_default()
    }

    /// All of it, instruction by instruction.
    pub fn instructions(&self) -> impl Iterator<Item = InstructionCount> {
        let within = self.stretches.iter().flat_map(|s| self.instructions_of(s).map(|(_, one)| one));
        within.chain(self.singles.iter().copied())
    }
}

/// What a counter has counted, by the sums of counters.
fn count_of(counter: u32, sum: &[u64], fix: &Corrections) -> u64 {
    let counted = sum.get(counter as usize).copied().unwrap_or(0);
    counted.wrapping_add_signed(fix.counters.get(&counter).copied().unwrap_or(0))
}

/// Tells, block by block, how often each was executed, but for parts of blocks; returns the same as a list.
fn each_block<'a>(
    trans: &'a FragmentTable,
    sum: &[u64],
    fix: &Corrections,
    mut tell: impl FnMut(u32, &'a Fragment, u64),
) -> Vec<u64> {
    let counter = |counter: u32| count_of(counter, sum, fix);
    let mut wholes: Vec<u64> = Vec::with_capacity(trans.blocks.len());
    let mut derived_edges = trans.derived_edges.iter().peekable();
    for (id, b) in (0..).zip(&trans.blocks) {
        let mut whole = sum.get(b.counter as usize).copied().unwrap_or(0);
        whole = whole.wrapping_add_signed(fix.whole.get(&id).copied().unwrap_or(0));
        if b.edge != NO_COUNTER {
            whole = whole.wrapping_add(counter(b.edge));
        }
        while let Some(f) = derived_edges.next_if(|f| f.to.0 == id) {
            whole = whole.wrapping_add(wholes[f.from.0 as usize]);
            match f.unless {
                Some(Unless::Edge(other)) => whole = whole.wrapping_sub(counter(trans.block(other).edge)),
                Some(Unless::Counter(exit)) => whole = whole.wrapping_sub(counter(exit)),
                None => {}
            }
        }
        wholes.push(whole);
        tell(id, b, whole);
    }
    wholes
}

/// How often each block was executed, but for parts of blocks.
pub fn block_counts(trans: &FragmentTable, sum: &[u64], fix: &Corrections) -> Vec<u64> {
    each_block(trans, sum, fix, |_, _, _| {})
}

/// The block that is executed where a site is left, if calls are followed.
fn block_of(trans: &FragmentTable, site: u32) -> Option<&Block> {
    match trans.trace_sites.get(site as usize)?.kind {
        SiteKind::Block { block } | SiteKind::Transfer { block, .. } | SiteKind::Jump { block, .. } => {
            trans.trace_blocks.get(block as usize)
        }
        _ => None,
    }
}

/// How many instructions one execution of what a site tells of is, but for those that are counted by themselves.
pub fn length_at(trans: &FragmentTable, site: u32) -> u64 {
    block_of(trans, site).map_or(0, |b| b.instructions.iter().filter(|i| i.counted).count() as u64)
}

/// How often each exit was taken that code counts which follows calls; in the order of the exits.
pub fn exits(trans: &FragmentTable, sum: &[u64]) -> Vec<u64> {
    let get = |counter: u32| sum.get(counter as usize).copied().unwrap_or(0);
    let mut executed: Vec<u64> = trans.follow.exits.iter().map(|&(counter, ..)| get(counter)).collect();
    for &(counter, exit, off) in &trans.follow.deferred {
        let n = &mut executed[exit as usize];
        *n = if off { n.wrapping_sub(get(counter)) } else { n.wrapping_add(get(counter)) };
    }
    executed
}

/// Tells the sites whose exits have been taken, and how often.
fn each_exit(trans: &FragmentTable, sum: &[u64], mut tell: impl FnMut(u32, u64)) {
    for (&(_, site, _), n) in trans.follow.exits.iter().zip(exits(trans, sum)) {
        if n != 0 {
            tell(site, n);
        }
    }
}

/// How many instructions [`counts`] tells of. The sums may have been read while they were being counted.
pub fn executed(trans: &FragmentTable, sum: &[u64], fix: &Corrections, earlier: &[InstructionCount]) -> u64 {
    let mut all = 0u64;
    let length = |shapes: &[InsnShape]| shapes.iter().filter(|s| s.in_block_count()).count() as u64;
    each_block(trans, sum, fix, |_, b, whole| {
        if whole != 0 {
            let shapes = &trans.shapes[b.shapes as usize..][..usize::from(b.n)];
            all = all.wrapping_add(whole.wrapping_mul(length(shapes)));
        }
    });
    for (&key, &n) in &fix.head {
        let b = trans.block(FragmentId((key >> 16) as u32));
        let shapes = &trans.shapes[b.shapes as usize..][..usize::from(key as u16)];
        all = all.wrapping_add_signed(n.wrapping_mul(length(shapes) as i64));
    }
    each_exit(trans, sum, |site, n| all = all.wrapping_add(n.wrapping_mul(length_at(trans, site))));
    let sites = trans.sites.iter().map(|s| count_of(s.counter, sum, fix));
    sites.chain(earlier.iter().map(|one| one.count)).fold(all, u64::wrapping_add)
}

/// For each counter, how many instructions one count of it stands for, modulo 2^64: what follows from counters is subtracted from
/// others. By them, what a thread's counters tell of costs no look at all blocks.
pub fn weights(trans: &FragmentTable) -> Vec<u64> {
    let mut weights = vec![0u64; trans.counters() as usize];
    let mut add = |counter: u32, n: u64| {
        if let Some(weight) = weights.get_mut(counter as usize) {
            *weight = weight.wrapping_add(n);
        }
    };
    let length = |b: &Fragment| {
        let shapes = &trans.shapes[b.shapes as usize..][..usize::from(b.n)];
        shapes.iter().filter(|s| s.in_block_count()).count() as u64
    };
    let mut wholes: Vec<u64> = trans.blocks.iter().map(length).collect();
    let mut derived_edges = trans.derived_edges.iter().rev().peekable();
    // Backwards: what follows from a block's count is behind it.
    for (id, b) in trans.blocks.iter().enumerate().rev() {
        let whole = wholes[id];
        while let Some(f) = derived_edges.next_if(|f| f.to.0 as usize == id) {
            let from = &mut wholes[f.from.0 as usize];
            *from = from.wrapping_add(whole);
            match f.unless {
                Some(Unless::Edge(other)) => add(trans.block(other).edge, whole.wrapping_neg()),
                Some(Unless::Counter(exit)) => add(exit, whole.wrapping_neg()),
                None => {}
            }
        }
        add(b.counter, whole);
        if b.edge != NO_COUNTER {
            add(b.edge, whole);
        }
    }
    for &(counter, site, _) in &trans.follow.exits {
        add(counter, length_at(trans, site));
    }
    for &(counter, exit, off) in &trans.follow.deferred {
        let n = length_at(trans, trans.follow.exits[exit as usize].1);
        add(counter, if off { n.wrapping_neg() } else { n });
    }
    trans.sites.iter().for_each(|s| add(s.counter, 1));
    weights
}

/// The executions of every instruction, from sums of counters, and `earlier` ones.
pub fn counts<'a>(
    trans: &'a FragmentTable,
    sum: &[u64],
    fix: &Corrections,
    earlier: &[InstructionCount],
) -> Counts<'a> {
    let mut heads: Map<u32, Vec<(u16, i64)>> = Map::default();
    for (&key, &n) in &fix.head {
        heads.entry((key >> 16) as u32).or_default().push((key as u16, n));
    }
    let mut all = Counts {
        stretches: Vec::new(),
        shapes: Cow::Borrowed(&trans.shapes),
        facts: &trans.facts,
        singles: Vec::new(),
    };
    all.stretches.reserve(trans.blocks.len());
    let mut parts = Vec::new();
    each_block(trans, sum, fix, |id, b, whole| {
        let head = heads.get(&id);
        if whole == 0 && head.is_none() {
            return;
        }
        let shapes = &trans.shapes[b.shapes as usize..][..usize::from(b.n)];
        let instructions: u16 = shapes.iter().map(|s| u16::from(s.in_block_count())).sum();
        let (start, bytes) = (b.pc, b.guest_len);
        let made = trans.made_at(FragmentId(id));
        let stretch =
            Stretch { start, count: whole, module: b.module, first: b.shapes, bytes, n: b.n, instructions, made };
        match head {
            Some(head) => parts.push((stretch, head)),
            None => all.stretches.push(stretch),
        }
    });
    for (stretch, head) in parts {
        let singles = all.instructions_of(&stretch).filter_map(|(k, mut one)| {
            let extra: i64 = head.iter().filter(|(n, _)| *n > k).map(|(_, n)| n).sum();
            one.count = one.count.wrapping_add_signed(extra);
            (one.count != 0).then_some(one)
        });
        let singles: Vec<_> = singles.collect();
        all.singles.extend(singles);
    }
    all.stretches.sort_unstable_by_key(|s| s.start);
    for s in &trans.sites {
        let count = count_of(s.counter, sum, fix);
        if count != 0 {
            let b = trans.block(s.block);
            let len = trans.shapes[b.shapes as usize + usize::from(s.index)].guest_len() as u8;
            let addr = trans.pc_of(s.block, s.index);
            // Its accesses come with the trace.
            let form = trans.facts.get(b.shapes as usize + usize::from(s.index)).map_or(0, |facts| facts.form);
            let events = StaticEvents { form, ..StaticEvents::default() };
            let made = trans.made_at(s.block);
            all.singles.push(InstructionCount { module: b.module as usize, addr, len, count, events, made });
        }
    }
    each_exit(trans, sum, |site, count| {
        let Some(block) = block_of(trans, site) else { return };
        let one = |i: &grind_trace::Instruction| InstructionCount {
            module: block.module as usize,
            addr: i.addr,
            len: i.len,
            count,
            events: i.events,
            // Whoever records calls knows it.
            made: u32::MAX,
        };
        all.singles.extend(block.instructions.iter().filter(|i| i.counted).map(one));
    });
    all.singles.extend_from_slice(earlier);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use grind_fragments::fragment_table::{DerivedEdge, Site};
    use grind_types::addr::CacheAddr;

    use super::*;

    /// Of the last `n` instructions.
    fn block(trans: &FragmentTable, pc: GuestAddr, n: u16, counter: u32) -> Fragment {
        let shapes = trans.shapes.len() as u32 - u32::from(n);
        let guest_len = trans.shapes[shapes as usize..].iter().map(|s| s.guest_len() as u16).sum();
        let cache = 0x7000_0000 + 64 * trans.blocks.len() as u64;
        let module = (pc.0 >> 4) as u32 & 1;
        Fragment {
            counter,
            shapes,
            n,
            bump_end: 9,
            module,
            ..grind_fragments::testing::block(pc, guest_len, CacheAddr(cache))
        }
    }

    #[test]
    fn every_execution_is_told_once() {
        let mut state = 1u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..200 {
            let (mut trans, mut fix, mut sum) = (FragmentTable::default(), Corrections::default(), Vec::new());
            let mut naive: BTreeMap<(u64, u8), u64> = BTreeMap::new();
            let mut before = 0;
            for i in 0..40u32 {
                let (pc, n, count) = (random(60), 1 + random(6) as u16, random(9));
                let elsewhere = if random(5) == 0 { random(n.into()) as u16 } else { n };
                for k in 0..n {
                    let mark = if k == elsewhere { InsnShape::COUNTED_ELSEWHERE } else { 0 };
                    trans.shapes.push(InsnShape { guest: (1 + random(3) as u8) | mark, cache: 4 });
                }
                let counter = trans.new_counter();
                sum.push(count);
                let id = trans.add_fragment(block(&trans, GuestAddr(pc), n, counter));
                let mut whole = count;
                if i > 0 && random(4) == 0 {
                    trans.derived_edges.push(DerivedEdge { to: id, from: FragmentId(i - 1), unless: None });
                    whole += before;
                }
                before = whole;
                let own = trans.new_counter();
                sum.push(random(9));
                if elsewhere < n {
                    trans.sites.push(Site { counter: own, block: id, index: elsewhere });
                }
                // As many as have been counted are taken back, one by one.
                let left = random(3).min(whole);
                let executed = random(n.into()) as u16;
                for _ in 0..left {
                    let b = *trans.block(id);
                    fix.left(id, &b, executed, true);
                }
                // Corrections of blocks that others follow from would have to flow on.
                before -= left;
                let mut at = pc;
                for k in 0..n {
                    let len = trans.shapes[trans.shapes.len() - usize::from(n - k)].guest_len();
                    let times = if k == elsewhere {
                        sum[own as usize]
                    } else {
                        whole - left + if k < executed { left } else { 0 }
                    };
                    *naive.entry((at, len as u8)).or_default() += times;
                    at += len;
                }
            }
            naive.retain(|_, n| *n != 0);
            let told = counts(&trans, &sum, &fix, &[]);
            assert!(told.stretches().is_sorted_by_key(|s| s.start));
            let mut found = BTreeMap::new();
            for one in told.instructions() {
                *found.entry((one.addr.0, one.len)).or_default() += one.count;
            }
            found.retain(|_, n| *n != 0);
            assert_eq!(found, naive);
            assert_eq!(executed(&trans, &sum, &fix, &[]), naive.values().sum::<u64>());
            let uncorrected = executed(&trans, &sum, &Corrections::default(), &[]);
            let weighed = weights(&trans).into_iter().zip(&sum).map(|(weight, n)| weight.wrapping_mul(*n));
            assert_eq!(weighed.fold(0, u64::wrapping_add), uncorrected);
            for s in told.stretches() {
                assert_eq!(told.instructions_of(s).count(), usize::from(s.instructions));
            }
        }
    }
}
