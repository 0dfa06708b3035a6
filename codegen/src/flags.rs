//! Checks of accesses where the guest needs its status flags: in rax while the checks are made, or spared by checks that change
//! none, through rcx. Nothing is decided here about what is checked.
//!
//! Invariant: behind the checks, flags and registers are the guest's again, but for those that are taken throughout the block.

use grind_isa::decode::Insn;
use grind_isa::events::Place;
use grind_layout::SlotWord;
use grind_layout::registers::Gpr;
use grind_trace::FirstLevel;
use iced_x86::Register;

use super::Emitter;
use super::plan::Group;
use super::taken::Taken;

impl Emitter<'_> {
    /// The checks of all groups that begin with instruction `i`, if one of the two ways is open, and whether it is.
    pub(super) fn check_keeping_flags(&mut self, insns: &[Insn], i: usize, f: FirstLevel) -> bool {
        if self.tracer.settings.keeps_uses() {
            return false;
        }
        let but = self.used_by_later(i);
        let registers = self.tracer.plan.registers[i];
        let groups = || self.tracer.plan.groups.iter().rev().take_while(|g| g.at == i);
        let held: Vec<Gpr> = self.holding().collect();
        let free = |r: Gpr| registers.dead >> r.0 & 1 != 0 || held.contains(&r);
        let (rax, rcx) = (free(Gpr::RAX), free(Gpr::RCX));
        let used = registers.used & !registers.dead;
        let spares = self.tracer.extract
            && !self.tracer.settings.keeps_bytes()
            && used >> Gpr::RCX.0 & 1 == 0
            && !but.contains(&Gpr::RCX)
            && groups().all(|g| matches!(g.members[0].access.place, Place::At(_)));
        let keeps = groups().all(|g| !needs_rax(g));
        // Both take about as much, unless flags are kept for several checks, or there is just the register for one of them.
        if keeps && !(spares && groups().count() == 1 && rcx && !rax) {
            let taken = self.with_free(insns, i, but, Gpr::RAX, rax);
            self.out.code.flags_to_ax();
            self.check_groups(insns, i, f, [taken.regs[0], taken.regs[1]], None);
            self.out.code.flags_from_ax();
            self.end_with(taken, Gpr::RAX, rax);
        } else if spares {
            let taken = self.with_free(insns, i, but, Gpr::RCX, rcx);
            self.check_groups(insns, i, f, [taken.regs[0], taken.regs[1]], Some(Gpr::RCX));
            self.end_with(taken, Gpr::RCX, rcx);
        } else {
            return false;
        }
        true
    }

    /// Takes two registers for checks, none of `but` nor `special`, which is saved unless it is `free`.
    fn with_free(&mut self, insns: &[Insn], i: usize, mut but: Vec<Gpr>, special: Gpr, free: bool) -> Taken {
        but.push(special);
        let taken = self.take_among(&insns[i], self.tracer.plan.registers[i].dead, 2, &but);
        if !free {
            self.out.code.spill(SlotWord::T3, special);
        }
        taken
    }

    /// Gives them back.
    fn end_with(&mut self, taken: Taken, special: Gpr, free: bool) {
        if !free {
            self.out.code.reload(special, SlotWord::T3);
        }
        self.give_back(taken);
    }

    /// Saves the status flags. `free` is a register that may be changed.
    pub(super) fn save_flags(&mut self, free: Gpr) {
        let c = &mut self.out.code;
        if free != Gpr::RAX {
            c.spill(SlotWord::Rax, Gpr::RAX);
        }
        c.flags_to_ax();
        c.spill(SlotWord::Flags, Gpr::RAX);
        if free != Gpr::RAX {
            c.reload(Gpr::RAX, SlotWord::Rax);
        }
    }

    pub(super) fn restore_flags(&mut self, free: Gpr) {
        let c = &mut self.out.code;
        if free != Gpr::RAX {
            c.spill(SlotWord::Rax, Gpr::RAX);
        }
        c.reload(Gpr::RAX, SlotWord::Flags);
        c.flags_from_ax();
        if free != Gpr::RAX {
            c.reload(Gpr::RAX, SlotWord::Rax);
        }
    }
}

/// Whether the group's address depends on rax, or may.
fn needs_rax(group: &Group) -> bool {
    match group.members[0].access.place {
        Place::At(at) => [at.base, at.index].iter().any(|r| r.is_gpr() && r.full_register() == Register::RAX),
        _ => true,
    }
}
