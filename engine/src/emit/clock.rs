//! Which blocks move the clock on that first-level caches are kept by ([`super::simulate`]).
//!
//! To move it is to load it, add and store it, and each block has to wait for the one before it to have done so (7.7 cycles on a Zen 5).
//! So a block moves it for those behind it, too, and leaves them a *reserve*: its own times are so much before the clock. Who gets to such a block from one that has left it enough enters it *timed*, behind the move;
//! all others come by a way in that moves the clock. Moving it too far changes nothing, since only the order of times counts.
//!
//! Invariants: reserves become smaller along ways that are entered timed, which lead to later blocks of the same batch only, so a loop
//! moves the clock at least once; nothing else uses the clock on such a way (system calls, client requests, instructions whose uses are
//! walked by themselves, handlers of signals: behind all of these a block is entered from elsewhere).

use super::Emitter;
use super::lines::runs_into;
use super::plan::Plan;
use crate::decode::Class;

/// The most that a block may leave to one behind it: then what is subtracted from the clock mostly fits into a byte.
const MOST: u32 = 96;

/// What has been settled about a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moves {
    /// How much of the clock it leaves to the blocks that it leads to.
    pub(super) reserve: u32,
    /// How far the clock has to have been moved for it and its reserve.
    pub(super) need: u32,
    /// It does not move the clock itself.
    pub(super) timed: bool,
}

impl Emitter<'_> {
    /// Plans the checks of all blocks, in the order of their emission, and settles where the clock is moved.
    pub(super) fn plan_checks(&mut self, order: &[usize]) {
        self.work.moves.clear();
        self.work.checks.clear();
        if !self.tracer.checks() {
            return;
        }
        self.work.moves.resize(order.len(), Moves::default());
        let settings = self.tracer.settings;
        if settings.every.is_some() {
            return;
        }
        let (batch, fronts) = (self.batch, &self.work.fronts);
        let block = |k: usize| &batch.blocks[order[k]];
        let last = |k: usize| &batch.insns_of(block(k))[block(k).n - 1];
        for (k, front) in fronts.iter().enumerate() {
            let line = self.tracer.line_before(batch.insns_of(block(k)), front.unchecked);
            self.work.checks.push(Plan::of(batch.insns_of(block(k)), batch.registers_of(block(k)), line, &settings));
        }
        let places = &self.work.places;
        let place_of = |pc: u64| batch.find(pc).map(|i| places[i]);
        // Whether branches lead to them from in front, and from behind.
        let mut branches = vec![(false, false); order.len()];
        for k in 0..order.len() {
            if matches!(last(k).class, Class::Jcc | Class::Jmp | Class::Loop)
                && let Some(t) = place_of(last(k).target())
            {
                branches[t].0 |= t > k;
                branches[t].1 |= t <= k;
            }
        }
        let moves = &mut self.work.moves;
        for k in (0..order.len()).rev() {
            let passes = self.work.checks[k].segments.len() == 1 && leads_on_timed(last(k).class);
            let branch = matches!(last(k).class, Class::Jcc | Class::Jmp).then(|| last(k).target());
            let to = [last(k).class.goes_on().then(|| last(k).next()), branch];
            let timed = to.into_iter().flatten().filter_map(place_of).filter(|&t| t > k && moves[t].timed);
            let reserve = if passes { timed.map(|t| moves[t].need).max().unwrap_or(0) } else { 0 };
            let own = &mut self.work.checks[k].segments;
            if let [only] = &mut own[..] {
                only.time += reserve;
            }
            let need = own.last().map_or(0, |first| first.time);
            let in_front = k.checked_sub(1).filter(|&p| fronts[k].run_into && runs_into(last(p), block(k).pc));
            let wanted = match in_front {
                Some(p) => leads_on_timed(last(p).class) && self.work.checks[p].segments.len() == 1,
                None => branches[k].0,
            };
            let timed = wanted && !branches[k].1 && !block(k).return_site && (1..=MOST).contains(&need);
            moves[k] = Moves { reserve, need, timed };
        }
    }

    /// Whether the block at place `k` may lead to the one at place `to` behind what that has in front: the move of the clock.
    pub(super) fn leaves_enough(&self, k: usize, to: usize) -> bool {
        let Some(t) = self.work.moves.get(to).filter(|t| t.timed) else { return true };
        to > k && self.work.moves[k].reserve >= t.need
    }
}

/// Whether nothing but the instructions' own uses happens on the way from one that ends a block to the next block.
fn leads_on_timed(class: Class) -> bool {
    matches!(class, Class::Plain | Class::GsMemory | Class::Jcc | Class::Jmp)
}
