//! Where a block's first instruction need not be checked for its code line: behind the last instruction of another one in the
//! same line, nothing of the code cache can have changed. The block's translation then begins without that check, for
//! branches of that kind and for the block that runs into it; everyone else enters it by way of a few instructions that
//! check.
//!
//! Invariants: what has no check in front is entered, without one, from the same line only, and by the same thread with the
//! same caches (which a new thread, behind its creator's system call, is not, nor whoever has asked to be counted from now on);
//! a check too many changes nothing.

use grind_isa::decode::{Class, Insn};
use grind_types::addr::{CacheAddr, GuestAddr};

use grind_fragments::fragment_table::FragmentId;
use grind_trace::FirstLevel;

use super::plan::Plan;
use super::{Emitter, Fixup};

/// What has been settled about a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Front {
    /// It begins without a check of its line.
    pub(super) unchecked: bool,
    /// The block in front of it, in the order of emission, may run into it.
    pub(super) run_into: bool,
}

/// The first and the last code line of an instruction.
pub(super) fn lines_of(insn: &Insn, f: FirstLevel) -> (u64, u64) {
    let bits = f.line.trailing_zeros();
    (insn.pc().0 >> bits, insn.next().minus(1).0 >> bits)
}

/// Whether what comes next is executed with the same caches.
fn keeps_caches(insn: &Insn) -> bool {
    !matches!(insn.class, Class::Syscall | Class::ClientRequest)
}

/// Whether a block with this last instruction runs into the one at `pc`, if that stands behind it.
pub(super) fn runs_into(last: &Insn, pc: GuestAddr) -> bool {
    match last.class {
        Class::Jmp => last.target() == pc,
        c => c.goes_on() && last.next() == pc,
    }
}

impl Emitter<'_> {
    /// Settles it for all blocks, in the order of their emission.
    pub(super) fn plan_fronts(&mut self, order: &[usize]) {
        self.work.fronts.clear();
        self.work.fronts.resize(order.len(), Front { unchecked: false, run_into: true });
        let blocks = &self.batch.blocks;
        self.work.places.clear();
        if !self.tracer.checks() {
            return;
        }
        self.work.places.resize(blocks.len(), 0);
        for (k, &i) in order.iter().enumerate() {
            self.work.places[i] = k;
        }
        let Some(f) = self.tracer.fetches() else { return };
        let last = |k: usize| self.batch.insns_of(&blocks[order[k]]).last();
        let first_line = |k: usize| {
            let b = &blocks[order[k]];
            let (first, last) = lines_of(&self.batch.insns[b.first], f);
            // One whose first instruction lies in two lines is one fetch of both.
            (!b.return_site && first == last).then_some(first)
        };
        // Branches from the same line, and whether one leads back.
        let mut branches = vec![(false, false); order.len()];
        for k in 0..order.len() {
            let Some(l) = last(k).filter(|l| matches!(l.class, Class::Jcc | Class::Jmp)) else { continue };
            if let Some(t) = self.batch.find(l.target()).map(|i| self.work.places[i])
                && first_line(t) == Some(lines_of(l, f).1)
            {
                branches[t].0 = true;
                branches[t].1 |= t <= k;
            }
        }
        for k in 0..order.len() {
            let Some(line) = first_line(k) else { continue };
            let pc = blocks[order[k]].pc;
            let before = k.checked_sub(1).and_then(last).filter(|l| runs_into(l, pc));
            let same = before.map(|l| lines_of(l, f).1 == line && keeps_caches(l));
            self.work.fronts[k].unchecked = match same {
                Some(true) => true,
                Some(false) => branches[k].1,
                None => branches[k].0,
            };
            self.work.fronts[k].run_into = same != Some(false) || !self.work.fronts[k].unchecked;
        }
    }

    /// Plans the checks of all blocks, in the order of their emission.
    pub(super) fn plan_checks(&mut self, order: &[usize]) {
        self.work.checks.clear();
        let settings = self.tracer.settings;
        if !self.tracer.checks() || settings.every.is_some() {
            return;
        }
        let (batch, fronts) = (self.batch, &self.work.fronts);
        for (&i, front) in order.iter().zip(fronts) {
            let block = &batch.blocks[i];
            let line = self.tracer.line_before(batch.insns_of(block), front.unchecked);
            self.work.checks.push(Plan::of(batch.insns_of(block), batch.registers_of(block), line, &settings));
        }
    }

    /// Whether something stands in front of the block at this place, for those who come from elsewhere.
    pub(super) fn has_front(&self, k: usize) -> bool {
        self.work.fronts[k].unchecked
    }

    /// The branch of `insn`, in the block at hand, whose field is at `pos`: it may lead past what its target has in front.
    pub(super) fn note_branch(&mut self, insn: &Insn, target: GuestAddr, pos: usize) {
        if self.leads_past_front(insn, target) {
            self.work.past_front.push(pos);
        }
    }

    /// Whether the way from `insn`, in the block at hand, to `target` may lead past what that has in front.
    pub(super) fn leads_past_front(&self, insn: &Insn, target: GuestAddr) -> bool {
        let Some(f) = self.tracer.fetches().filter(|_| keeps_caches(insn)) else { return false };
        let same = lines_of(insn, f).1 == target.0 >> f.line.trailing_zeros();
        match self.batch.find(target).map(|i| self.work.places[i]) {
            Some(to) => same || !self.work.fronts[to].unchecked,
            None => same,
        }
    }

    /// The ways in from elsewhere to blocks that begin without a check. `first` is the first block of the batch.
    pub(super) fn fronts(&mut self, first: FragmentId, order: &[usize]) {
        for (k, &i) in order.iter().enumerate() {
            if !self.has_front(k) {
                continue;
            }
            let block = &self.batch.blocks[i];
            let (insns, registers) = (self.batch.insns_of(block), self.batch.registers_of(block));
            let entry = self.out.code.here();
            self.begin_front(Plan::entry(&registers[0]));
            self.check_line(&insns[0]);
            let pos = self.out.code.jmp();
            self.work.past_front.push(pos);
            let to = self.past_way_in(insns[0].pc());
            self.out.fixups.push(Fixup { pos, target: insns[0].pc(), to });
            self.trans.set_entry(FragmentId(first.0 + k as u32), CacheAddr(entry));
        }
    }
}
