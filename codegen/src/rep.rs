//! Repeated string instructions: each iteration is an execution, and so is the test of the count that ends them. A counter of
//! their own counts what the block's counter cannot know. The instruction itself is copied.

use dynasmrt::dynasm;
use grind_asm::Asm;
use grind_fragments::fragment_table::{Site, StateMapEntry};
use grind_isa::decode::Insn;
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use iced_x86::{Instruction, OpKind};

use super::Emitter;

impl Emitter<'_> {
    /// Adds rcx (ecx) to a counter, leaving all registers as they are.
    pub(super) fn add_count(&mut self, counter: u32, address32: bool) {
        let offset = layout::counter_offset(counter);
        let c = &mut self.out.code;
        c.spill(SlotWord::Rax, Gpr::RAX);
        if address32 {
            c.spill(SlotWord::T1, Gpr::RDX);
            c.mov_reg32(Gpr::RDX, Gpr::RCX);
            c.load_gs(Gpr::RAX, offset);
            c.lea_sum(Gpr::RAX, Gpr::RDX);
            c.store_gs(offset, Gpr::RAX);
            c.reload(Gpr::RDX, SlotWord::T1);
        } else {
            c.load_gs(Gpr::RAX, offset);
            c.lea_sum(Gpr::RAX, Gpr::RCX);
            c.store_gs(offset, Gpr::RAX);
        }
        c.reload(Gpr::RAX, SlotWord::Rax);
    }

    pub(super) fn new_site(&mut self, index: usize) -> u32 {
        let counter = self.trans.new_counter();
        self.trans.sites.push(Site { counter, block: self.current, index: index as u16 });
        counter
    }

    pub(super) fn rep_move(&mut self, insn: &Insn, index: usize) {
        let address32 = uses_ecx(&insn.ins);
        let counter = self.new_site(index);
        if self.call_recorder.followed() {
            self.note_executions(counter);
        }
        self.add_count(counter, address32);
        let site = self.before_repeat(insn);
        let told = self.executions_site(insn);
        self.state_map_entry(StateMapEntry::Rep { counter, address32, site, told });
        self.copy(insn);
        if let Some(site) = site {
            self.after_repeat(insn, site);
        }
        self.tell_executions(insn, counter, told);
    }

    pub(super) fn rep_compare(&mut self, insn: &Insn, index: usize) {
        let address32 = uses_ecx(&insn.ins);
        let counter = self.new_site(index);
        let offset = layout::counter_offset(counter);
        if self.call_recorder.followed() {
            self.note_executions(counter);
        }
        let jrcxz = |c: &mut Asm| {
            if address32 { c.jecxz() } else { c.jrcxz() }
        };
        self.add_count(counter, address32);
        let none = jrcxz(&mut self.out.code);
        // What records the accesses is too long for a short jump over it.
        let (none, far) = if self.tracer.active() {
            let begin = self.out.code.jmp_short();
            self.out.code.patch_short(none);
            let far = self.out.code.jmp();
            self.out.code.patch_short(begin);
            (None, Some(far))
        } else {
            (Some(none), None)
        };
        let site = self.before_repeat(insn);
        let told = self.executions_site(insn);
        self.state_map_entry(StateMapEntry::Rep { counter, address32, site, told });
        self.copy(insn);
        // The counter has rcx from before; take off what is left now. One more if the count ran out while the condition to go
        // on held: then the test for rcx ended it.
        let go_on_if_equal = insn.ins.has_repe_prefix();
        let c = &mut self.out.code;
        c.spill(SlotWord::Rax, Gpr::RAX);
        c.spill(SlotWord::T1, Gpr::RDX);
        if address32 {
            c.mov_reg32(Gpr::RAX, Gpr::RCX);
        } else {
            c.mov_reg(Gpr::RAX, Gpr::RCX);
        }
        dynasm!(c; not rax);
        c.lea_disp(Gpr::RAX, Gpr::RAX, 1);
        c.load_gs(Gpr::RDX, offset);
        c.lea_sum(Gpr::RDX, Gpr::RAX);
        if go_on_if_equal {
            dynasm!(c; sete al);
        } else {
            dynasm!(c; setne al);
        }
        dynasm!(c; movzx eax, al);
        let out = jrcxz(c);
        c.mov_imm(Gpr::RAX, 0);
        c.patch_short(out);
        c.lea_sum(Gpr::RDX, Gpr::RAX);
        c.store_gs(offset, Gpr::RDX);
        c.reload(Gpr::RDX, SlotWord::T1);
        c.reload(Gpr::RAX, SlotWord::Rax);
        if let Some(site) = site {
            self.after_repeat(insn, site);
        }
        let c = &mut self.out.code;
        let done = c.jmp_short();
        if let Some(none) = none {
            c.patch_short(none);
        }
        if let Some(far) = far {
            let here = c.here();
            c.patch_rel32(far, here);
        }
        c.spill(SlotWord::Rax, Gpr::RAX);
        c.load_gs(Gpr::RAX, offset);
        c.lea_disp(Gpr::RAX, Gpr::RAX, 1);
        c.store_gs(offset, Gpr::RAX);
        c.reload(Gpr::RAX, SlotWord::Rax);
        c.patch_short(done);
        self.tell_executions(insn, counter, told);
    }
}

/// Whether a string instruction counts in ecx (32-bit addresses).
fn uses_ecx(ins: &Instruction) -> bool {
    (0..ins.op_count()).any(|n| {
        matches!(ins.op_kind(n), OpKind::MemoryESDI | OpKind::MemorySegEDI | OpKind::MemorySegESI | OpKind::MemoryESEDI)
    })
}
