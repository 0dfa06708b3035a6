//! Instructions that are copied, and what becomes of a memory operand that cannot be expressed at the copy's place: one that
//! is too far from RIP, one through gs, and the save areas whose size the guest believes to know.

use iced_x86::{Code, Instruction, OpKind, Register};

use super::Emitter;
use crate::arena::Scratch;
use crate::asm::{Gpr, Takes};
use crate::batch::Registers;
use crate::decode::{Class, Insn};
use crate::transtab::{NO_REG, Point};

/// A register that is saved while it stands in for r11, and the word; [`NO_REG`] if it need not be.
type StandIn = (u8, u8);

impl Emitter<'_> {
    pub(super) fn plain(&mut self, insn: &Insn) {
        if insn.names_taken(self.takes()) {
            return self.with_taken(insn);
        }
        if !insn.ins.is_ip_rel_memory_operand() {
            self.out.code.bytes(insn.bytes());
            return;
        }
        let target = insn.ins.ip_rel_memory_address();
        let len = insn.len();
        let rel = target.wrapping_sub(self.out.code.here() + len as u64) as i64;
        let narrow = insn.ins.memory_base() == Register::EIP;
        if narrow || i32::try_from(rel).is_err() {
            self.through_scratch(&insn.ins, (NO_REG, 0));
            return;
        }
        let at = self.out.code.pos() + usize::from(insn.displacement_at);
        self.out.code.bytes(insn.bytes());
        self.out.code.buf[at..at + 4].copy_from_slice(&(rel as i32).to_le_bytes());
    }

    /// A register that the instruction does not touch, other than `not`.
    pub(super) fn free_register(&mut self, ins: &Instruction, not: &[Register]) -> Register {
        const CANDIDATES: [Register; 13] = [
            Register::RAX,
            Register::RDX,
            Register::RSI,
            Register::RDI,
            Register::R8,
            Register::R9,
            Register::R10,
            Register::RBX,
            Register::RBP,
            Register::R12,
            Register::R14,
            Register::R15,
            Register::R13,
        ];
        // Nothing need ever be saved of what is in these, nor may it be taken for the program's.
        let ours = self.takes();
        let used = self.work.info.info(ins).used_registers();
        CANDIDATES
            .into_iter()
            .find(|c| !ours.has(Gpr(c.number() as u8)) && !not.contains(c) && used.iter().all(|u| u.register().full_register() != *c))
            .expect("an instruction and its checks use fewer than these")
    }

    /// Which registers are free between the program's instructions, and what the program has in them in their scratch words.
    pub(super) fn takes(&self) -> Takes {
        self.tracer.settings.takes()
    }

    /// Loads what the program has in registers that are free between its instructions, if `insn` names them.
    pub(super) fn bring_taken(&mut self, insn: &Insn) {
        for &(r, word) in self.takes().registers() {
            if insn.names(r) {
                self.out.code.reload(r, word);
            }
        }
    }

    /// Loads the program's r11 into a register that `insn` does not touch, nor is one of `not`: one that is free, or else one that is
    /// saved. Returns it, what is saved where, and the instruction with it in place of r11.
    pub(super) fn stand_in(&mut self, insn: &Insn, not: &[Register]) -> (Gpr, StandIn, Instruction) {
        let ins = &insn.ins;
        let (gpr, saved) = match self.takes().registers().iter().find(|(r, _)| !insn.names(*r)) {
            Some(&(free, _)) => (free, (NO_REG, 0)),
            None => {
                let r = self.free_register(ins, not);
                (Gpr(r.number() as u8), (r.number() as u8, Scratch::StandIn as u8))
            }
        };
        let c = &mut self.out.code;
        if saved.0 != NO_REG {
            c.spill(Scratch::StandIn, gpr);
        }
        c.reload(gpr, Scratch::R11);
        let mut changed = *ins;
        let part = |of: Register| {
            let n = u32::from(gpr.0);
            match of {
                Register::R11 => Some(Register::RAX + n),
                Register::R11D => Some(Register::EAX + n),
                Register::R11W => Some(Register::AX + n),
                // Of the first four, the numbers behind them are the second bytes of those.
                Register::R11L => Some(if n < 4 { Register::AL + n } else { Register::SPL + (n - 4) }),
                _ => None,
            }
        };
        for n in 0..ins.op_count() {
            match ins.op_kind(n) {
                OpKind::Register => part(ins.op_register(n)).into_iter().for_each(|r| changed.set_op_register(n, r)),
                OpKind::Memory => {
                    part(ins.memory_base()).into_iter().for_each(|r| changed.set_memory_base(r));
                    part(ins.memory_index()).into_iter().for_each(|r| changed.set_memory_index(r));
                }
                _ => {}
            }
        }
        (gpr, saved, changed)
    }

    /// Gives the register back that stood in for r11.
    pub(super) fn end_stand_in(&mut self, saved: StandIn) {
        if saved.0 != NO_REG {
            self.out.code.reload(Gpr(saved.0), Scratch::StandIn);
        }
    }

    /// An instruction that names registers that are elsewhere: they are brought, and another register has the place of r11.
    pub(super) fn with_taken(&mut self, insn: &Insn) {
        self.bring_taken(insn);
        let none = (NO_REG, 0);
        let (stand_in, saved, ins) = match insn.names(Gpr::R11) {
            true => {
                let (gpr, saved, ins) = self.stand_in(insn, &[]);
                (Some(gpr), saved, ins)
            }
            false => (None, none, insn.ins),
        };
        let rel = ins.ip_rel_memory_address().wrapping_sub(self.out.code.here() + 16) as i64;
        let near = ins.memory_base() != Register::EIP && i32::try_from(rel).is_ok_and(|r| r.abs() < i32::MAX - 32);
        let away = ins.is_ip_rel_memory_operand() && !near;
        if away || insn.class == Class::GsMemory {
            self.through_scratch(&ins, saved);
        } else {
            if saved != none {
                self.point(Point::Spilled([saved, none, none]));
            }
            self.encode(&ins);
        }
        let written = Registers::of(insn, &mut self.work.info).written;
        if let Some(gpr) = stand_in.filter(|_| written >> Gpr::R11.0 & 1 != 0) {
            self.out.code.spill(Scratch::R11, gpr);
        }
        for &(r, word) in self.takes().registers() {
            if insn.names(r) && written & r.bit() != 0 {
                self.out.code.spill(word, r);
            }
        }
        self.end_stand_in(saved);
    }

    /// Loads the address of the memory operand into `reg` (its segment's base included, if that is gs).
    pub(super) fn address_into(&mut self, ins: &Instruction, reg: Register) {
        let gpr = Gpr(reg.number() as u8);
        if ins.is_ip_rel_memory_operand() {
            self.out.code.mov_imm(gpr, ins.ip_rel_memory_address());
        } else {
            let mut ea = *ins;
            ea.set_segment_prefix(Register::None);
            let mut lea = Instruction::new();
            lea.set_code(Code::Lea_r64_m);
            lea.set_op0_kind(OpKind::Register);
            lea.set_op0_register(reg);
            lea.set_op1_kind(OpKind::Memory);
            lea.set_memory_base(ea.memory_base());
            lea.set_memory_index(ea.memory_index());
            lea.set_memory_index_scale(ea.memory_index_scale());
            lea.set_memory_displacement64(ea.memory_displacement64());
            lea.set_memory_displ_size(ea.memory_displ_size());
            self.encode(&lea);
        }
    }

    pub(super) fn encode(&mut self, ins: &Instruction) {
        let here = self.out.code.here();
        self.work.encoder.encode(ins, here).expect("a decoded instruction with a plainer operand can be encoded");
        let bytes = self.work.encoder.take_buffer();
        self.out.code.bytes(&bytes);
        self.work.encoder.set_buffer(bytes_cleared(bytes));
    }

    /// An instruction whose memory operand cannot be expressed here as it is: too far from RIP, or through gs.
    /// `saved`: of what stands in for r11.
    pub(super) fn through_scratch(&mut self, ins: &Instruction, saved: StandIn) {
        let ins = *ins;
        let gs = ins.segment_prefix() == Register::GS;
        let r1 = self.free_register(&ins, &[]);
        let g1 = Gpr(r1.number() as u8);
        self.out.code.spill(Scratch::T1, g1);
        self.address_into(&ins, r1);
        let mut spilled = [(g1.0, Scratch::T1 as u8), (NO_REG, 0), saved];
        let mut second = None;
        if gs {
            let r2 = self.free_register(&ins, &[r1]);
            let g2 = Gpr(r2.number() as u8);
            self.out.code.spill(Scratch::T2, g2);
            self.out.code.reload(g2, Scratch::GuestGs);
            self.out.code.lea_sum(g1, g2);
            spilled[1] = (g2.0, Scratch::T2 as u8);
            second = Some(g2);
        }
        let mut plain = ins;
        if gs {
            plain.set_segment_prefix(Register::None);
        }
        plain.set_memory_base(r1);
        plain.set_memory_index(Register::None);
        plain.set_memory_index_scale(1);
        plain.set_memory_displacement64(0);
        plain.set_memory_displ_size(0);
        self.point(Point::Spilled(spilled));
        self.encode(&plain);
        if let Some(g2) = second {
            self.out.code.reload(g2, Scratch::T2);
        }
        self.out.code.reload(g1, Scratch::T1);
    }

    /// Only the components that the guest knows of (x87, SSE, AVX): its area has no room for more.
    pub(super) fn xsave(&mut self, insn: &Insn) {
        let ins = insn.ins;
        let base = self.free_register(&ins, &[Register::RAX, Register::RDX]);
        let gb = Gpr(base.number() as u8);
        self.out.code.spill(Scratch::T2, gb);
        self.bring_taken(insn);
        if insn.names(Gpr::R11) {
            let (_, saved, plain) = self.stand_in(insn, &[base]);
            self.address_into(&plain, base);
            self.end_stand_in(saved);
        } else {
            self.address_into(&ins, base);
        }
        let c = &mut self.out.code;
        c.spill(Scratch::Rax, Gpr::RAX);
        c.spill(Scratch::T1, Gpr::RDX);
        c.mov_imm(Gpr::RDX, 7);
        c.bytes(&[0xc4, 0xe2, 0x7a, 0xf5, 0xc2]); // pext eax, eax, edx
        c.mov_imm(Gpr::RDX, 0);
        let mut plain = ins;
        plain.set_memory_base(base);
        plain.set_memory_index(Register::None);
        plain.set_memory_index_scale(1);
        plain.set_memory_displacement64(0);
        plain.set_memory_displ_size(0);
        self.point(Point::Spilled([
            (Gpr::RAX.0, Scratch::Rax as u8),
            (Gpr::RDX.0, Scratch::T1 as u8),
            (gb.0, Scratch::T2 as u8),
        ]));
        self.encode(&plain);
        let c = &mut self.out.code;
        c.reload(Gpr::RDX, Scratch::T1);
        c.reload(Gpr::RAX, Scratch::Rax);
        c.reload(gb, Scratch::T2);
    }
}

fn bytes_cleared(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes
}
