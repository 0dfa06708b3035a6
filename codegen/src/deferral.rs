//! Ways between blocks of a batch that need no counter where calls are followed: what has been executed of a block is deferred
//! on to the next one, and counted together with that where it is left.
//!
//! A block takes on what has been executed on one way that leads to it from an earlier block. Whoever enters it otherwise takes
//! that off before: other blocks of the batch where they count that they are left, all others on a way in, behind the hot code,
//! which leads on to what else the block has in front ([`super::lines`]).
//! Invariants: how often such a way is taken follows from the counters of the blocks behind it; where a block is left in the
//! middle before it has been counted, what it takes on has not been counted either ([`FragmentTable::deferred`]), so both are told; so is
//! what has been taken off for the next block by one that is left when it has been counted ([`FragmentTable::taken_off`]);
//! the translations of both blocks die together, because they are on one page.
//!
//! [`FragmentTable::deferred`]: grind_fragments::fragment_table::FragmentTable::deferred
//! [`FragmentTable::taken_off`]: grind_fragments::fragment_table::FragmentTable::taken_off

use grind_types::addr::{CacheAddr, GuestAddr};

use grind_fragments::fragment_table::{Deferred, DeferredPart, FragmentId, NO_COUNTER};
use grind_isa::decode::{Class, Insn};
use grind_trace::SiteKind;
use grind_trace::Transfer;

use super::sums::{Sums, add_execution};
use super::{Emitter, Goal};

/// The most ways one after the other.
const MOST: usize = 6;

/// What is deferred to a block.
#[derive(Clone, Debug)]
struct Deferral {
    /// The place of the block that it comes from, in the order of emission.
    from: usize,
    /// How many of that block's instructions have been executed.
    executed: usize,
    /// What is deferred altogether.
    total: Sums,
    /// The places of the blocks that the ways lead to, this one last.
    ways: Vec<usize>,
}

/// A block to which something is deferred.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carrier {
    /// Of this batch, by its place.
    Here(usize),
    /// One that was there.
    Known(FragmentId),
}

/// Which exit a way is.
#[derive(Clone, Copy, Debug)]
enum Exit {
    /// The way to a place.
    To(usize),
    /// Its number.
    Known(u32),
}

/// What is known of that while a batch is emitted.
#[derive(Debug, Default)]
pub(super) struct Deferrals {
    /// By place.
    to: Vec<Option<Deferral>>,
    /// By number of a block in the batch: its place.
    places: Vec<usize>,
    /// By place: the exit that the way to it is, once that has been emitted.
    exits: Vec<Option<u32>>,
    /// By place: the page of its block.
    pages: Vec<GuestAddr>,
    /// Counters that count exits, too; or count what is taken off.
    counters: Vec<(u32, Exit, bool)>,
    /// The place of the block at hand.
    pub(super) here: usize,
    first: u32,
}

impl Emitter<'_> {
    /// Settles what is deferred where.
    pub(super) fn plan_deferrals(&mut self, order: &[usize]) {
        self.deferrals = Deferrals::default();
        if !self.call_recorder.followed() || !self.call_recorder.steady {
            return;
        }
        let batch = self.batch;
        let mut places = vec![0; batch.blocks.len()];
        for (k, &i) in order.iter().enumerate() {
            places[i] = k;
        }
        // The best way to each: how good it is, from where, after how many instructions.
        let mut best: Vec<Option<(u8, usize, usize)>> = vec![None; order.len()];
        for (k, &i) in order.iter().enumerate() {
            let from = &batch.blocks[i];
            let insns = batch.insns_of(from);
            let mut offer = |target: GuestAddr, executed: usize, good: u8| {
                let Some(j) = batch.find(target) else { return };
                let to = &batch.blocks[j];
                // Who is stepping can tell an instruction that leads to itself from a way in by its address only.
                let first = &batch.insns[to.first];
                let itself = to.n == 1 && matches!(first.class, Class::Jmp | Class::Jcc | Class::Loop);
                if itself && first.target() == to.pc {
                    return;
                }
                if places[j] > k
                    && !to.return_site
                    && to.pc.page() == from.pc.page()
                    && best[places[j]].is_none_or(|b| b.0 < good)
                {
                    best[places[j]] = Some((good, k, executed));
                }
            };
            for (n, insn) in insns.iter().enumerate() {
                // A way that is taken by a jump or without it is not one way where jumps are counted.
                let both = insn.target() == insn.next() && self.call_recorder.counts_jumps();
                if insn.class == Class::Jcc && self.recorded(insn).is_none() && !both {
                    offer(insn.target(), n + 1, 1);
                }
            }
            let Some(last) = insns.last() else { continue };
            let onward = || !(self.crosses)(last.pc(), last.next());
            match last.class {
                Class::Jcc if last.target() == last.next() && self.call_recorder.counts_jumps() => {}
                Class::Jcc if onward() => offer(last.next(), insns.len(), 2),
                Class::Jmp if self.recorded(last).is_none() => offer(last.target(), insns.len(), 3),
                c if !c.ends_block() && onward() => offer(last.next(), insns.len(), 3),
                _ => {}
            }
        }
        let mut to: Vec<Option<Deferral>> = Vec::with_capacity(order.len());
        for (t, best) in best.into_iter().enumerate() {
            // Nothing may run into it that has been counted.
            let alone = t > 0 && {
                let class = batch.insns_of(&batch.blocks[order[t - 1]]).last().map(|l| l.class);
                class.is_some_and(|c| c.ends_block() && c.goes_on() && c != Class::Jcc)
            };
            let deferral = best.filter(|_| !alone).and_then(|(_, from, executed)| {
                let (mut total, mut ways) = match &to[from] {
                    Some(before) => (before.total, before.ways.clone()),
                    None => Default::default(),
                };
                let bus = self.tracer.settings.bus_total();
                for insn in &batch.insns_of(&batch.blocks[order[from]])[..executed] {
                    let facts = self.facts(insn);
                    add_execution(&mut total, insn, facts, bus);
                }
                ways.push(t);
                (ways.len() <= MOST).then_some(Deferral { from, executed, total, ways })
            });
            to.push(deferral);
        }
        let exits = vec![None; order.len()];
        let pages = order.iter().map(|&i| batch.blocks[i].pc.page()).collect();
        let first = self.trans.next_block().0;
        self.deferrals = Deferrals { to, places, exits, pages, counters: Vec::new(), here: 0, first };
    }

    /// The place of the block of this batch at `target`, if something is deferred to it.
    fn place_of_carrier(&self, target: GuestAddr) -> Option<usize> {
        if self.deferrals.to.is_empty() {
            return None;
        }
        let t = self.deferrals.places[self.batch.find(target)?];
        self.deferrals.to[t].as_ref().map(|_| t)
    }

    /// The block at `target`, if something is deferred to it, so that ways from the block at hand lead past its way in.
    pub(super) fn carrier(&self, target: GuestAddr) -> Option<Carrier> {
        let page = *self.deferrals.pages.get(self.deferrals.here)?;
        if self.batch.find(target).is_some() {
            return self.place_of_carrier(target).map(Carrier::Here);
        }
        if page != target.page() {
            return None;
        }
        let id = self.trans.lookup(target, self.call_context).filter(|id| self.trans.deferred.contains_key(id))?;
        let distance = self.trans.block(id).cache.since(CacheAddr(self.out.code.base)).cast_signed();
        (distance.abs() < 1 << 30).then_some(Carrier::Known(id))
    }

    /// Where a way from the block at hand to that block leads.
    pub(super) fn past_way_in(&self, target: GuestAddr) -> Option<Goal> {
        let block = self.id_of(self.carrier(target)?);
        Some(Goal { block, free: false, past_way_in: true })
    }

    fn id_of(&self, carrier: Carrier) -> FragmentId {
        match carrier {
            Carrier::Here(t) => FragmentId(self.deferrals.first + t as u32),
            Carrier::Known(id) => id,
        }
    }

    /// What counts that the block at hand is left at its end has taken off what is deferred to this one.
    pub(super) fn leads_past_way_in(&mut self, to: Option<Carrier>) {
        if let Some(to) = to {
            let id = self.id_of(to);
            self.trans.taken_off.insert(self.current, id);
        }
    }

    /// Whether what has been executed of the block at hand, after so many instructions, is deferred to `target`.
    fn deferrals_to(&self, target: GuestAddr, executed: usize) -> Option<usize> {
        let t = self.place_of_carrier(target)?;
        let deferral = self.deferrals.to[t].as_ref()?;
        (deferral.from == self.deferrals.here && deferral.executed == executed).then_some(t)
    }

    /// The same behind its last instruction.
    pub(super) fn deferrals_end(&self, insns: &[Insn]) -> bool {
        let Some(last) = insns.last() else { return false };
        let to = if last.class == Class::Jmp { last.target() } else { last.next() };
        self.deferrals_to(to, insns.len()).is_some()
    }

    /// If the way to `target` behind the instruction at hand is deferred, takes note of what it is told by, and says so. It is the
    /// jump that the instruction is if it `jumps`.
    pub(super) fn defer_on(&mut self, insn: &Insn, target: GuestAddr, jumps: bool) -> bool {
        let Some(t) = self.deferrals_to(target, self.call_recorder.done) else { return false };
        let (site, _) = if jumps { self.exit_by_jump(insn, None) } else { self.exit_of(insn, None) };
        let exits = &mut self.trans.follow.exits;
        self.deferrals.exits[t] = Some(exits.len() as u32);
        exits.push((NO_COUNTER, site, self.call_context));
        true
    }

    /// What the exit that `counter` counts counts beside what has been executed of the block at hand: what is deferred to that,
    /// less what is deferred to the block that it leads to. Adds that to `executed`.
    pub(super) fn counts_deferred(&mut self, counter: u32, executed: &mut Sums, to: Option<Carrier>) {
        let Deferrals { to: all, counters, here, .. } = &mut self.deferrals;
        for (carrier, off) in [(Some(Carrier::Here(*here)), false), (to, true)] {
            let deferred = match carrier {
                Some(Carrier::Here(place)) => {
                    let Some(deferral) = all.get(place).and_then(Option::as_ref) else { continue };
                    counters.extend(deferral.ways.iter().map(|&way| (counter, Exit::To(way), off)));
                    deferral.total
                }
                Some(Carrier::Known(id)) => {
                    let Some(known) = self.trans.deferred.get(&id) else { continue };
                    counters.extend(known.exits.iter().map(|&exit| (counter, Exit::Known(exit), off)));
                    known.total
                }
                None => continue,
            };
            for (sum, deferred) in executed.iter_mut().zip(deferred) {
                *sum = if off { sum.wrapping_sub(deferred) } else { sum.wrapping_add(deferred) };
            }
        }
    }

    /// The ways in to blocks to which something is deferred; what counts is known.
    pub(super) fn place_ways_in(&mut self) {
        for t in 0..self.deferrals.to.len() {
            let Some(deferral) = self.deferrals.to[t].clone() else { continue };
            let id = FragmentId(self.deferrals.first + t as u32);
            let b = *self.trans.block(id);
            let way_in = self.out.code.here();
            let counter = self.trans.new_counter();
            self.deferrals.counters.extend(deferral.ways.iter().map(|&way| (counter, Exit::To(way), true)));
            self.bump_exit(counter, deferral.total.map(u32::wrapping_neg), b.live_in);
            let pos = self.out.code.jmp();
            let to = Some(Goal { block: id, free: false, past_way_in: true });
            self.out.fixups.push(super::Fixup { pos, target: b.pc, to });
            self.trans.set_entry(id, CacheAddr(way_in));
            let exits: Vec<u32> = deferral.ways.iter().filter_map(|&way| self.deferrals.exits[way]).collect();
            debug_assert!(exits.len() == deferral.ways.len(), "the way to each of them has been emitted");
            let part = |(&exit, &way): (&u32, &usize)| {
                let (_, site, call_context) = self.trans.follow.exits[exit as usize];
                let (block, jump) = match self.trans.trace_sites[site as usize].kind {
                    SiteKind::Block { block } => (block, None),
                    SiteKind::Jump { how: Transfer::Jump(to) | Transfer::Taken(to), block, .. } => {
                        let counter = self.trans.new_counter();
                        self.trans.follow.jumps.push((counter, site, call_context, to.0));
                        (block, Some(counter))
                    }
                    _ => return None,
                };
                let executed = self.deferrals.to[way].as_ref()?.executed as u16;
                Some(DeferredPart { block, executed, jump })
            };
            let parts = exits.iter().zip(&deferral.ways).filter_map(part).collect();
            self.trans.deferred.insert(id, Deferred { total: deferral.total, parts, exits, entry: b.entry });
        }
        for (counter, exit, off) in std::mem::take(&mut self.deferrals.counters) {
            let exit = match exit {
                Exit::To(way) => self.deferrals.exits[way],
                Exit::Known(exit) => Some(exit),
            };
            self.trans.follow.deferred.extend(exit.map(|exit| (counter, exit, off)));
        }
    }
}
