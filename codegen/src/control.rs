//! Transfers of control, system calls, and stops. A direct transfer becomes a jump that is linked sooner or later; an
//! indirect one goes through a table of IBL targets. No flag is changed anywhere here.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::SYSCALL;
use grind_fragments::fragment_table::{Emulate, NOT_SPILLED, StateMapEntry, StubKind, Way};
use grind_isa::decode::{Class, Insn};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_types::addr::{CacheAddr, GuestAddr};
use iced_x86::{Code, OpKind, Register};

use super::derived_edges::Goal;
use super::{Bump, Emitter, Fixup};
use crate::ibl_target::IblTargetCode;

/// Error numbers, after which a system call may have to be made once more.
const EFAULT: i32 = 14;
const EINTR: i32 = 4;

impl Emitter<'_> {
    pub(super) fn short_branch(&mut self, insn: &Insn) {
        // Only an 8-bit distance exists: over a jump that leads on.
        let site = self.arm_site(insn);
        self.out.code.bytes(insn.bytes());
        let taken = self.out.code.pos() - 1;
        let mut far = None;
        if site.is_some() {
            // What predicts it is too long for a short jump over it.
            let begin = self.out.code.jmp_short();
            self.out.code.patch_short(taken);
            far = Some(self.out.code.jmp());
            self.out.code.patch_short(begin);
        }
        self.record_arm(insn, site, false);
        if !self.tell_onward(insn) {
            let over = self.out.code.jmp();
            self.out.fixups.push(Fixup { pos: over, target: insn.next(), to: None });
        }
        match far {
            Some(field) => self.out.code.patch_here(field),
            None => self.out.code.patch_short(taken),
        }
        self.record_arm(insn, site, true);
        if !self.tell_loop(insn) {
            let pos = self.out.code.jmp();
            self.out.fixups.push(Fixup { pos, target: insn.target(), to: None });
        }
    }

    pub(super) fn push_return(&mut self, pc: GuestAddr) {
        if i32::try_from(pc.0).is_ok() {
            self.out.code.push_imm32(pc.0 as u32);
        } else {
            let pos = self.out.code.push_literal();
            self.out.literal(pc.0, pos);
        }
    }

    /// Saves rcx and loads the target of an indirect transfer into it.
    pub(super) fn indirect_target(&mut self, insn: &Insn) {
        self.out.code.spill(SlotWord::Rcx, Gpr::RCX);
        self.bring_taken(insn);
        let ins = &insn.ins;
        if insn.class == Class::CallNoRedirect {
            self.out.code.mov_reg(Gpr::RCX, Gpr::RAX);
        } else if ins.op0_kind() == OpKind::Register {
            let from = Gpr(ins.op0_register().number() as u8);
            match from.kept(self.stolen_registers()) {
                Some(word) => self.out.code.reload(Gpr::RCX, word),
                None if from != Gpr::RCX => self.out.code.mov_reg(Gpr::RCX, from),
                None => {}
            }
        } else if insn.names_bound(self.stolen_registers()) {
            self.target_through_bound(insn);
        } else {
            if ins.segment_prefix() == Register::GS {
                let mut ea = *ins;
                ea.set_segment_prefix(Register::None);
                self.address_into(&ea, Register::RCX);
                self.out.code.spill(SlotWord::T1, Gpr::RDX);
                self.out.code.reload(Gpr::RDX, SlotWord::GuestGs);
                self.out.code.lea_sum(Gpr::RCX, Gpr::RDX);
                self.out.code.reload(Gpr::RDX, SlotWord::T1);
            } else {
                let rel = ins.ip_rel_memory_address().wrapping_sub(self.out.code.here()) as i64;
                let near = !ins.is_ip_rel_memory_operand() || rel.abs() < 0x7fff_ff00;
                if near && ins.memory_base() != Register::EIP {
                    let mut load = *ins;
                    load.set_code(Code::Mov_r64_rm64);
                    load.set_op0_kind(OpKind::Register);
                    load.set_op0_register(Register::RCX);
                    load.set_op1_kind(OpKind::Memory);
                    self.encode(&load);
                    return;
                }
                self.address_into(ins, Register::RCX);
            }
            self.state_map_entry(StateMapEntry::spilled(Gpr::RCX, SlotWord::Rcx));
            self.out.code.load_through(Gpr::RCX);
        }
    }

    /// The same for a target that stands where registers lead that are bound.
    fn target_through_bound(&mut self, insn: &Insn) {
        let (mut ins, stand_ins) = self.stand_ins(insn, &[Register::RCX]);
        let gs = ins.segment_prefix() == Register::GS;
        if gs {
            ins.set_segment_prefix(Register::None);
        }
        self.address_into(&ins, Register::RCX);
        let c = &mut self.out.code;
        if let Some(free) = stand_ins.any().filter(|_| gs) {
            c.reload(free, SlotWord::GuestGs);
            c.lea_sum(Gpr::RCX, free);
        }
        let segment = (ins.segment_prefix() == Register::FS).then_some(0x64);
        let [one, other] = stand_ins.saved();
        self.state_map_entry(StateMapEntry::Spilled([(Gpr::RCX.0, SlotWord::Rcx as u8), one, other, NOT_SPILLED]));
        let c = &mut self.out.code;
        c.bytes(segment.as_slice());
        c.load_through(Gpr::RCX);
        self.end_stand_ins(&stand_ins);
    }

    pub(super) fn ret(&mut self, insn: &Insn) {
        self.out.code.spill(SlotWord::Rcx, Gpr::RCX);
        if self.call_recorder.followed() {
            return self.followed_return(insn);
        }
        if self.bump == Bump::InLast {
            self.bump_through(Gpr::RCX);
            self.state_map_entry(StateMapEntry::spilled(Gpr::RCX, SlotWord::Rcx));
            self.bump = Bump::Done;
        }
        if self.pairs && insn.ins.op_count() != 1 {
            return self.return_as_pair();
        }
        dynasm!(self.out.code; pop rcx);
        if insn.ins.op_count() == 1 {
            // The return address is not where an IBL target for returns looks for it.
            self.out.code.lea_disp(Gpr::RSP, Gpr::RSP, i32::from(insn.ins.immediate16()));
            self.tell_transfer(insn);
            self.look_up(Way::Jump);
        } else {
            self.tell_transfer(insn);
            self.look_up(Way::Return);
        }
    }

    /// Goes where rcx says, through the table. rcx has been saved. The IBL target finds the target again where [`Way`] says.
    pub(super) fn look_up(&mut self, way: Way) {
        self.find_entry(way);
        let table = (self.tables + way.table()) as i32;
        dynasm!(self.out.code; jmp QWORD [rcx * 8 + table]);
    }

    /// Turns the target in rcx into the number of its entry.
    pub(super) fn find_entry(&mut self, way: Way) {
        if way != Way::Return {
            self.out.code.spill(layout::TARGET, Gpr::RCX);
        }
        if self.bump == Bump::InLast {
            debug_assert!(way != Way::Return, "rcx is needed again");
            self.bump_through(Gpr::RCX);
            self.out.code.load_gs_u16(Gpr::RCX, layout::TARGET.at());
            self.bump = Bump::Done;
        } else {
            self.out.code.entry_number(way);
        }
    }

    pub(super) fn syscall(&mut self, insn: &Insn) {
        // rcx is the kernel's to overwrite, so it is free from here on.
        if self.bump == Bump::InLast {
            self.bump_through(Gpr::RCX);
            self.state_map_entry(StateMapEntry::Before);
        }
        let stolen_registers = self.stolen_registers();
        if let Some(word) = stolen_registers.in_r9() {
            self.out.code.spill(word, Gpr::R9);
            self.state_map_entry(StateMapEntry::Before);
        }
        // The fourth argument, and the fifth.
        for &(r, word) in stolen_registers.free() {
            self.out.code.reload(r, word);
            self.state_map_entry(StateMapEntry::Before);
        }
        // The call's number, for who makes it once more.
        self.out.code.spill(SlotWord::T2, Gpr::RAX);
        self.state_map_entry(StateMapEntry::Before);
        dynasm!(self.out.code; movzx ecx, ax);
        self.state_map_entry(StateMapEntry::Before);
        let table = (self.tables + layout::SYSCALL_TABLE) as i32;
        dynasm!(self.out.code; movzx ecx, BYTE [rcx + table]);
        self.state_map_entry(StateMapEntry::Before);
        let runs = self.out.code.jrcxz();
        self.state_map_entry(StateMapEntry::Before);
        let pos = self.out.code.pos();
        // (The engine sees to r9 if it lets the call be made.)
        let ahead = if stolen_registers.in_r9().is_some() { 5 + 4 } else { 5 };
        let id =
            self.trans.add_stub(StubKind::Syscall { next: insn.next(), go: CacheAddr(self.out.code.here() + ahead) });
        self.out.stubs.push((pos, id));
        self.out.code.stop(id);
        self.out.code.patch_short(runs);
        self.state_map_entry(StateMapEntry::Before);
        if stolen_registers.in_r9().is_some() {
            // The sixth.
            self.out.code.reload(Gpr::R9, SlotWord::R9);
            self.state_map_entry(StateMapEntry::Before);
        }
        let go = self.out.code.here();
        self.out.code.bytes(&SYSCALL);
        self.state_map_entry(StateMapEntry::After);
        self.out.code.put_r11_away();
        if let Some(word) = stolen_registers.in_r9() {
            self.state_map_entry(StateMapEntry::After);
            self.out.code.take_r9_back(word);
        }
        self.state_map_entry(StateMapEntry::After);
        self.out.code.slot_base_to_r11();
        self.state_map_entry(StateMapEntry::After);
        self.out.code.base_to_r11(Gpr::R11);
        self.state_map_entry(StateMapEntry::After);
        let failed = [EFAULT, EINTR].map(|error| {
            self.out.code.lea_disp(Gpr::RCX, Gpr::RAX, error);
            self.state_map_entry(StateMapEntry::After);
            let failed = self.out.code.jrcxz();
            self.state_map_entry(StateMapEntry::After);
            failed
        });
        let over = self.out.code.jmp_short();
        failed.into_iter().for_each(|at| self.out.code.patch_short(at));
        self.state_map_entry(StateMapEntry::After);
        let pos = self.out.code.pos();
        let id = self.trans.add_stub(StubKind::CallFailed { go: CacheAddr(go) });
        self.out.stubs.push((pos, id));
        self.out.code.stop(id);
        self.out.code.patch_short(over);
        self.state_map_entry(StateMapEntry::After);
        self.out.code.mov_address(Gpr::RCX, insn.next().0);
    }

    pub(super) fn stop(&mut self, insn: &Insn, what: Emulate) {
        let stub = self.stub_for(insn, what);
        self.place_stub(stub);
    }

    /// A stub that is placed later by [`Self::place_stub`].
    pub(super) fn stub_for(&mut self, insn: &Insn, what: Emulate) -> u32 {
        self.trans.add_stub(StubKind::Emulate { what, pc: insn.pc(), next: insn.next(), block: self.current })
    }

    /// Stops here, as if the instruction had not begun.
    pub(super) fn place_stub(&mut self, id: u32) {
        self.state_map_entry(StateMapEntry::Before);
        let pos = self.out.code.pos();
        self.out.stubs.push((pos, id));
        self.out.code.stop(id);
    }

    /// Goes to guest address `target`: by nothing, a jump, or a stub behind the hot code.
    pub(super) fn go(&mut self, target: GuestAddr, next_in_order: Option<GuestAddr>, to: Option<Goal>) {
        if next_in_order == Some(target) {
            return;
        }
        let pos = self.out.code.jmp();
        self.out.fixups.push(Fixup { pos, target, to });
    }

    /// The same, straight from `insn`.
    pub(super) fn go_from(
        &mut self,
        insn: &Insn,
        target: GuestAddr,
        next_in_order: Option<GuestAddr>,
        to: Option<Goal>,
    ) {
        let n = self.out.fixups.len();
        self.go(target, next_in_order, to);
        if let Some(pos) = self.out.fixups.get(n).map(|f| f.pos) {
            self.note_branch(insn, target, pos);
        }
    }
}
