//! Instructions that are copied, and what becomes of a memory operand that cannot be expressed at the copy's place: one that
//! is too far from RIP, one through gs, and the save areas whose size the guest believes to know.

use dynasmrt::dynasm;
use grind_fragments::batch::Registers;
use grind_fragments::fragment_table::{NOT_SPILLED, StateMapEntry};
use grind_isa::decode::{Class, Insn};
use grind_layout::SlotWord;
use grind_layout::registers::{Gpr, StolenRegisters};
use iced_x86::{Code, Instruction, OpKind, Register};

use super::Emitter;

/// A register in the place of one that is bound, while an instruction is executed that names that.
#[derive(Clone, Copy, Debug)]
struct StandIn {
    instead_of: Gpr,
    /// What the program has in that.
    word: SlotWord,
    by: Gpr,
    /// Where it is saved, if it has to be.
    saved: Option<SlotWord>,
}

/// All of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StandIns([Option<StandIn>; 2]);

/// Where they are saved.
const STAND_INS: [SlotWord; 2] = [SlotWord::StandIn, SlotWord::T3];

impl StandIns {
    /// One of them.
    pub(super) fn any(&self) -> Option<Gpr> {
        self.0[0].map(|one| one.by)
    }

    /// Those that are saved, and the words, as [`StateMapEntry::Spilled`] has them.
    pub(super) fn saved(&self) -> [(u8, u8); 2] {
        self.0.map(|one| one.and_then(|one| one.saved.map(|word| (one.by.0, word as u8))).unwrap_or(NOT_SPILLED))
    }

    fn registers(&self) -> Vec<Register> {
        self.0.iter().flatten().map(|one| register(one.by)).collect()
    }
}

/// The register's name for the encoder.
pub(super) fn register(r: Gpr) -> Register {
    Register::RAX + u32::from(r.0)
}

/// Has `by` in place of `from` in all operands.
fn renamed(ins: &mut Instruction, from: Gpr, by: Gpr) {
    let (from, n) = (u32::from(from.0), u32::from(by.0));
    let part = |of: Register| {
        if !of.is_gpr() || of.full_register() != Register::RAX + from {
            return None;
        }
        Some(match of.size() {
            8 => Register::RAX + n,
            4 => Register::EAX + n,
            2 => Register::AX + n,
            // Of the first four, the numbers behind them are the second bytes of those.
            _ if n < 4 => Register::AL + n,
            _ => Register::SPL + (n - 4),
        })
    };
    for n in 0..ins.op_count() {
        match ins.op_kind(n) {
            OpKind::Register => part(ins.op_register(n)).into_iter().for_each(|r| ins.set_op_register(n, r)),
            OpKind::Memory => {
                part(ins.memory_base()).into_iter().for_each(|r| ins.set_memory_base(r));
                part(ins.memory_index()).into_iter().for_each(|r| ins.set_memory_index(r));
            }
            _ => {}
        }
    }
}

impl Emitter<'_> {
    pub(super) fn plain(&mut self, insn: &Insn) {
        if insn.names_taken(self.stolen_registers()) {
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
            self.through_slot_word(&insn.ins, [NOT_SPILLED; 2], &[]);
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
        let ours = self.stolen_registers();
        let used = self.work.info.info(ins).used_registers();
        CANDIDATES
            .into_iter()
            .find(|c| {
                !ours.has(Gpr(c.number() as u8))
                    && !not.contains(c)
                    && used.iter().all(|u| u.register().full_register() != *c)
            })
            .expect("an instruction and its checks use fewer than these")
    }

    /// Which registers are free between the program's instructions, and what the program has in them in their slot words.
    pub(super) fn stolen_registers(&self) -> StolenRegisters {
        self.tracer.settings.stolen_registers()
    }

    /// Loads what the program has in registers that are free between its instructions, if `insn` names them and does not just
    /// overwrite them.
    pub(super) fn bring_taken(&mut self, insn: &Insn) {
        if !insn.names_taken(self.stolen_registers()) {
            return;
        }
        let overwritten = Registers::of(insn, &mut self.work.info).overwritten;
        for &(r, word) in self.stolen_registers().free() {
            if insn.names(r) && overwritten & r.bit() == 0 {
                self.out.code.reload(r, word);
            }
        }
    }

    /// Loads what the program has in registers that are bound, if `insn` names them, into others that it does not touch, nor
    /// are any of `not`: such as are free, or else such as are saved. Returns the instruction with these in place of those.
    pub(super) fn stand_ins(&mut self, insn: &Insn, not: &[Register]) -> (Instruction, StandIns) {
        let mut ins = insn.ins;
        let mut all = StandIns::default();
        let mut taken = not.to_vec();
        let stolen_registers = self.stolen_registers();
        if !insn.names_bound(stolen_registers) {
            return (ins, all);
        }
        let bound = stolen_registers.bound().iter().filter(|(r, _)| insn.names(*r));
        let overwritten = Registers::of(insn, &mut self.work.info).overwritten;
        for ((&(instead_of, word), save), place) in bound.zip(STAND_INS).zip(&mut all.0) {
            let free = stolen_registers.free().iter().map(|(r, _)| *r);
            let free = free.filter(|r| !insn.names(*r)).find(|r| !taken.contains(&register(*r)));
            let by = match free {
                Some(free) => free,
                None => {
                    let r = self.free_register(&insn.ins, &taken);
                    Gpr(r.number() as u8)
                }
            };
            taken.push(register(by));
            let c = &mut self.out.code;
            if free.is_none() {
                c.spill(save, by);
            }
            if overwritten & instead_of.bit() == 0 {
                c.reload(by, word);
            }
            renamed(&mut ins, instead_of, by);
            *place = Some(StandIn { instead_of, word, by, saved: free.is_none().then_some(save) });
        }
        (ins, all)
    }

    /// Gives the registers back that stood in for others.
    pub(super) fn end_stand_ins(&mut self, all: &StandIns) {
        for one in all.0.iter().flatten() {
            if let Some(save) = one.saved {
                self.out.code.reload(one.by, save);
            }
        }
    }

    /// An instruction that names registers that are elsewhere: those that are free are brought, and others have the place of
    /// those that are bound.
    pub(super) fn with_taken(&mut self, insn: &Insn) {
        self.bring_taken(insn);
        let (ins, stand_ins) = self.stand_ins(insn, &[]);
        let rel = ins.ip_rel_memory_address().wrapping_sub(self.out.code.here() + 16) as i64;
        let near = ins.memory_base() != Register::EIP && i32::try_from(rel).is_ok_and(|r| r.abs() < i32::MAX - 32);
        let away = ins.is_ip_rel_memory_operand() && !near;
        let saved = stand_ins.saved();
        if away || insn.class == Class::GsMemory {
            self.through_slot_word(&ins, saved, &stand_ins.registers());
        } else {
            if saved != [NOT_SPILLED; 2] {
                self.state_map_entry(StateMapEntry::Spilled([saved[0], saved[1], NOT_SPILLED, NOT_SPILLED]));
            }
            self.encode(&ins);
        }
        let written = Registers::of(insn, &mut self.work.info).written;
        for one in stand_ins.0.iter().flatten().filter(|one| written & one.instead_of.bit() != 0) {
            self.out.code.spill(one.word, one.by);
        }
        for &(r, word) in self.stolen_registers().free() {
            if insn.names(r) && written & r.bit() != 0 {
                self.out.code.spill(word, r);
            }
        }
        self.end_stand_ins(&stand_ins);
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
    /// `saved`: of what stands in for others, which are `stand_ins`.
    pub(super) fn through_slot_word(&mut self, ins: &Instruction, saved: [(u8, u8); 2], stand_ins: &[Register]) {
        let ins = *ins;
        let gs = ins.segment_prefix() == Register::GS;
        let mut not = stand_ins.to_vec();
        let r1 = self.free_register(&ins, &not);
        not.push(r1);
        let g1 = Gpr(r1.number() as u8);
        self.out.code.spill(SlotWord::T1, g1);
        self.address_into(&ins, r1);
        let mut spilled = [(g1.0, SlotWord::T1 as u8), NOT_SPILLED, saved[0], saved[1]];
        let mut second = None;
        if gs {
            let r2 = self.free_register(&ins, &not);
            let g2 = Gpr(r2.number() as u8);
            self.out.code.spill(SlotWord::T2, g2);
            self.out.code.reload(g2, SlotWord::GuestGs);
            self.out.code.lea_sum(g1, g2);
            spilled[1] = (g2.0, SlotWord::T2 as u8);
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
        self.state_map_entry(StateMapEntry::Spilled(spilled));
        self.encode(&plain);
        if let Some(g2) = second {
            self.out.code.reload(g2, SlotWord::T2);
        }
        self.out.code.reload(g1, SlotWord::T1);
    }

    /// Only the components that the guest knows of (x87, SSE, AVX): its area has no room for more.
    pub(super) fn xsave(&mut self, insn: &Insn) {
        let ins = insn.ins;
        let base = self.free_register(&ins, &[Register::RAX, Register::RDX]);
        let gb = Gpr(base.number() as u8);
        self.out.code.spill(SlotWord::T2, gb);
        self.bring_taken(insn);
        let (plain, stand_ins) = self.stand_ins(insn, &[base]);
        self.address_into(&plain, base);
        self.end_stand_ins(&stand_ins);
        let c = &mut self.out.code;
        c.spill(SlotWord::Rax, Gpr::RAX);
        c.spill(SlotWord::T1, Gpr::RDX);
        c.mov_imm(Gpr::RDX, 7);
        dynasm!(c; pext eax, eax, edx);
        c.mov_imm(Gpr::RDX, 0);
        let mut plain = ins;
        plain.set_memory_base(base);
        plain.set_memory_index(Register::None);
        plain.set_memory_index_scale(1);
        plain.set_memory_displacement64(0);
        plain.set_memory_displ_size(0);
        self.state_map_entry(StateMapEntry::Spilled([
            (Gpr::RAX.0, SlotWord::Rax as u8),
            (Gpr::RDX.0, SlotWord::T1 as u8),
            (gb.0, SlotWord::T2 as u8),
            NOT_SPILLED,
        ]));
        self.encode(&plain);
        let c = &mut self.out.code;
        c.reload(Gpr::RDX, SlotWord::T1);
        c.reload(Gpr::RAX, SlotWord::Rax);
        c.reload(gb, SlotWord::T2);
    }
}

fn bytes_cleared(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes
}
