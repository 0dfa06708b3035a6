//! What a block does where it is left while emitted code follows calls: it counts that for the block's call context, and hands
//! over to what is known of the transfer of control, or stops where nothing is known yet. `bridge` is what it hands over to.
//!
//! Invariants: no flag and no register that the guest can see is changed; whatever is left of a block is counted once, in
//! a counter and in the thread's total, before anything is asked of the sink; the total stands still where nothing is collected.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_fragments::fragment_table::{StateMapEntry, StubKind};
use grind_isa::decode::{Class, Insn, STATUS};
use grind_layout::registers::{Gpr, StolenRegisters};
use grind_layout::{self as layout, SlotWord};
use grind_trace::SiteKind;
use grind_trace::follow::CallContextId;
use grind_types::addr::{CacheAddr, GuestAddr};

use super::calls::Taken;
use super::deferral::Carrier;
use super::sums::{Sums, add_execution};
use super::{Emitter, Fixup, Goal};
use crate::request::RequestCode;

impl Emitter<'_> {
    /// Executions count for this call context.
    #[inline(always)]
    pub fn call_context(mut self, call_context: CallContextId) -> Self {
        self.call_context = call_context;
        self.off = self.trans.follow.is_off(call_context);
        self
    }

    /// The flags that may be read at `pc`, which is entered in the same call context.
    pub(super) fn live_at(&self, pc: GuestAddr) -> u8 {
        if !self.call_recorder.steady {
            return STATUS;
        }
        match self.batch.find(pc) {
            Some(i) => self.batch.insns[self.batch.blocks[i].first].live,
            None => match self.trans.lookup(pc, self.call_context) {
                Some(id) => self.trans.block(id).live_in,
                None => self.batch.live_ahead(pc),
            },
        }
    }

    /// Counts that the block is left where `site` tells of, after so much has been executed. `live`: flags that are needed;
    /// `to`: the block that it leads to past its way in.
    pub(super) fn count_exit(&mut self, site: u32, executed: Sums, live: u8, to: Option<Carrier>) {
        let done = self.call_recorder.counted_early.filter(|_| self.call_recorder.at_end());
        let counter = done.unwrap_or_else(|| self.trans.new_counter());
        self.trans.follow.exits.push((counter, site, self.call_context));
        if done.is_none() {
            self.bump_executed(counter, executed, live, to);
        }
    }

    /// The same where the block at hand ends.
    pub(super) fn count_end(&mut self, site: u32, executed: Sums, live: u8, to: Option<Carrier>) {
        self.leads_past_way_in(to);
        self.count_exit(site, executed, live, to);
    }

    /// Bumps the counter of an exit, and totals by what has been executed, or deferred, until there.
    fn bump_executed(&mut self, counter: u32, mut executed: Sums, live: u8, to: Option<Carrier>) {
        self.counts_deferred(counter, &mut executed, to);
        self.bump_exit(counter, executed, live);
    }

    /// Where the end of a block that can only be left there is counted, if that is better than at the end: before an
    /// instruction where no flag is live.
    pub(super) fn early_exit(&self, insns: &[Insn]) -> Option<usize> {
        let last = insns.last()?;
        // A jump that counts has been made when it is counted.
        let counts = last.class == Class::Jmp && self.call_recorder.counts_jumps();
        if !self.call_recorder.followed()
            || counts
            || matches!(last.class, Class::Jcc | Class::Loop)
            || self.deferrals_end(insns)
        {
            return None;
        }
        let from = insns.iter().rposition(|i| i.class == Class::Jcc).map_or(0, |i| i + 1);
        let dead = insns[from..].iter().rposition(|i| i.live & STATUS == 0)?;
        Some(from + dead)
    }

    /// Counts the end of a block here, before the end.
    pub(super) fn count_early(&mut self, insns: &[Insn]) {
        let counter = self.trans.new_counter();
        let mut all = Sums::default();
        let bus = self.tracer.settings.bus_total();
        for insn in insns {
            let facts = self.facts(insn);
            add_execution(&mut all, insn, facts, bus);
        }
        let to = insns.last().and_then(|last| match last.class {
            Class::Jmp if self.recorded(last).is_none() => self.carrier(last.target()),
            c if !c.ends_block() && !(self.crosses)(last.pc(), last.next()) => self.carrier(last.next()),
            _ => None,
        });
        self.bump_executed(counter, all, 0, to);
        self.bump_end = self.out.code.pos();
        self.call_recorder.counted_early = Some(counter);
    }

    /// Bumps the counter of an exit, or way in, and totals by so much. Between instructions, r10 is free wherever calls are
    /// followed.
    pub(super) fn bump_exit(&mut self, counter: u32, mut executed: Sums, live: u8) {
        if self.off {
            executed = Sums::default();
        }
        debug_assert!(self.stolen_registers().has(Gpr::R10));
        let counter = layout::counter_offset(counter);
        let totals = self.tracer.settings.totals();
        let in_r9 = self.stolen_registers().total();
        if in_r9 && executed[0] != 0 {
            self.out.code.lea_disp(Gpr::R9, Gpr::R9, executed[0] as i32);
        }
        let totals = totals.iter().filter(|&&n| !(in_r9 && n == 0));
        let totals = totals.map(|&n| (layout::TOTAL_WORDS[n].at(), executed[n] as i32)).filter(|(_, n)| *n != 0);
        // From so many words on it is shorter to keep flags than not to change them.
        const MANY: usize = 3;
        let keep = live & STATUS != 0;
        let c = &mut self.out.code;
        if !keep || 1 + totals.clone().count() >= MANY {
            if keep {
                c.mov_reg(Gpr::R10, Gpr::RAX);
                c.flags_to_ax();
            }
            c.add_one_gs(counter);
            totals.for_each(|(total, n)| c.add_gs(total, n));
            if keep {
                c.flags_from_ax();
                c.mov_reg(Gpr::RAX, Gpr::R10);
            }
            return;
        }
        for (word, n) in std::iter::once((counter, 1)).chain(totals) {
            c.load_gs(Gpr::R10, word);
            c.lea_disp(Gpr::R10, Gpr::R10, n);
            c.store_gs(word, Gpr::R10);
        }
    }

    /// Leaves by the transfer that `site` tells of, to wherever that turns out to lead.
    pub(super) fn leave_by(&mut self, site: u32) {
        let field = self.out.code.jmp();
        self.work.transfers.push((field, site));
    }

    /// Lets what leaves by transfers ask, or stop, behind the hot code: until a bridge is known, the sink has to decide.
    pub(super) fn place_transfers(&mut self) {
        for (field, told) in std::mem::take(&mut self.work.transfers) {
            let root = self.out.code.base + field as u64;
            let id = self.trans.add_stub(StubKind::Transfer {
                told,
                call_context: self.call_context,
                root: CacheAddr(root),
            });
            let here = self.out.code.here();
            self.out.code.patch_rel32(field, here);
            if let Some(requests) = &self.requests {
                let how = self.trans.trace_sites[told as usize].kind;
                let indirect = matches!(how, SiteKind::Transfer { how, .. } if how.is_indirect());
                self.out.code.ask_about(id, indirect, requests);
                continue;
            }
            let pos = self.out.code.pos();
            self.out.stubs.push((pos, id));
            self.out.code.stop(id);
        }
    }

    /// A return: rcx has been saved, the return address is still on the stack.
    pub(super) fn followed_return(&mut self, insn: &Insn) {
        let (site, n) = self.exit_of(insn, Some(grind_trace::Transfer::Return));
        self.count_exit(site, n, STATUS, None);
        self.block_told();
        self.state_map_entry(StateMapEntry::spilled(Gpr::RCX, SlotWord::Rcx));
        let c = &mut self.out.code;
        dynasm!(c; pop rcx);
        if insn.ins.op_count() == 1 {
            c.lea_disp(Gpr::RSP, Gpr::RSP, i32::from(insn.ins.immediate16()));
        }
        c.store_gs32_imm(SlotWord::Returning.at(), site);
        if insn.ins.op_count() == 1 {
            // The return address is not where the code of frames looks for it.
            let pos = c.pos();
            let id = self.trans.add_stub(StubKind::Return { in_rcx: true });
            self.out.stubs.push((pos, id));
            self.out.code.stop(id);
            return;
        }
        c.jmp_to_return();
    }

    /// An indirect jump or call: its target is in rcx, which has been saved; what it pushes has been pushed.
    pub(super) fn followed_indirect(&mut self, insn: &Insn, how: grind_trace::Transfer) {
        let (site, n) = self.exit_of(insn, Some(how));
        self.out.code.spill(layout::TARGET, Gpr::RCX);
        self.count_exit(site, n, STATUS, None);
        self.block_told();
        self.leave_by(site);
    }

    /// A repeated instruction has ended: adds its executions to the thread's total. Its counter held what is in the slot word
    /// [`SlotWord::RepeatCounter`] before.
    pub(super) fn total_executions(&mut self, counter: u32) {
        if self.off {
            return;
        }
        let stolen_registers = self.stolen_registers();
        let c = &mut self.out.code;
        c.spill(SlotWord::T2, Gpr::RCX);
        c.spill(SlotWord::T3, Gpr::RDX);
        c.load_gs(Gpr::RCX, SlotWord::RepeatCounter.at());
        dynasm!(c; not rcx);
        c.load_gs(Gpr::RDX, layout::counter_offset(counter));
        c.lea_sum(Gpr::RCX, Gpr::RDX);
        if stolen_registers.total() {
            c.lea_sum_disp(Gpr::R9, Gpr::RCX, 1);
        } else {
            c.load_gs(Gpr::RDX, SlotWord::Total.at());
            c.lea_sum_disp(Gpr::RCX, Gpr::RDX, 1);
            c.store_gs(SlotWord::Total.at(), Gpr::RCX);
        }
        c.reload(Gpr::RDX, SlotWord::T3);
        c.reload(Gpr::RCX, SlotWord::T2);
    }

    /// A repeated instruction begins: notes what its counter holds. All registers are the guest's.
    pub(super) fn note_executions(&mut self, counter: u32) {
        let c = &mut self.out.code;
        c.spill(SlotWord::T2, Gpr::RCX);
        c.load_gs(Gpr::RCX, layout::counter_offset(counter));
        c.store_gs(SlotWord::RepeatCounter.at(), Gpr::RCX);
        c.reload(Gpr::RCX, SlotWord::T2);
    }

    /// A conditional branch that is taken, behind the hot code.
    pub(super) fn followed_taken(&mut self, taken: Taken) {
        let Taken { from, target, site, transfer, executed, place, past_front } = taken;
        self.deferrals.here = place;
        let here = self.out.code.here();
        self.out.code.patch_rel32(from, here);
        let live = self.live_at(target);
        let to = self.carrier(target).filter(|_| !transfer);
        self.count_exit(site, executed, live, to);
        if transfer {
            self.leave_by(site);
        } else {
            let to = self.past_way_in(target);
            self.go_on(target, past_front, to);
        }
    }

    /// Goes on to `target` from behind the hot code, past what that has in front or not.
    pub(super) fn go_on(&mut self, target: GuestAddr, past_front: bool, to: Option<Goal>) {
        let pos = self.out.code.jmp();
        if past_front {
            self.work.past_front.push(pos);
        }
        self.out.fixups.push(Fixup { pos, target, to });
    }
}

/// Code for calls that are followed.
pub(super) trait FollowCode {
    /// Goes to what deals with the return of the innermost frame, which will be in r10. The return address is in rcx.
    fn jmp_to_return(&mut self);
    /// Keeps the status flags in rax, which goes to r8, if that is free, or its slot word; if rax is `dead`, nowhere.
    fn put_flags_away(&mut self, stolen_registers: StolenRegisters, dead: bool);
    /// Takes the flags back from rax, and that from where it is.
    fn take_flags_back(&mut self, stolen_registers: StolenRegisters, dead: bool);
}

impl FollowCode for Asm {
    fn jmp_to_return(&mut self) {
        self.load_gs(Gpr::R10, SlotWord::TopFrame.at());
        dynasm!(self; gs jmp QWORD [BYTE r10 + layout::FRAME_RETURN as i8]);
    }

    fn put_flags_away(&mut self, stolen_registers: StolenRegisters, dead: bool) {
        if !dead && stolen_registers.has(Gpr::R8) {
            self.mov_reg(Gpr::R8, Gpr::RAX);
        } else if !dead {
            self.spill(SlotWord::T3, Gpr::RAX);
        }
        self.flags_to_ax();
    }

    fn take_flags_back(&mut self, stolen_registers: StolenRegisters, dead: bool) {
        self.flags_from_ax();
        if !dead && stolen_registers.has(Gpr::R8) {
            self.mov_reg(Gpr::RAX, Gpr::R8);
        } else if !dead {
            self.reload(Gpr::RAX, SlotWord::T3);
        }
    }
}
