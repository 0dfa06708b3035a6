//! Instructions of ours that count, executed on a copy of a thread's registers and on its slot: for a thread that was killed between two
//! that count the same, and will not get to the next boundary by itself. Must never touch anything but the slot; what it does not
//! know, or what may branch elsewhere, it leaves alone.

use grind_codegen::level1::Words;
use grind_layout as layout;
use grind_ptrace::{Regs, register};
use iced_x86::{Code, Instruction, OpKind, Register};

/// Executes an instruction of those that count. Flags and what is kept in ax for them are nobody's any more.
#[must_use]
pub fn execute(ins: &Instruction, regs: &mut Regs, words: &mut impl Words) -> Option<()> {
    let next = ins.next_ip();
    let at = |regs: &mut Regs| slot_offset(ins, regs);
    match ins.code() {
        Code::Lahf | Code::Sahf | Code::Add_AL_imm8 => {}
        Code::Seto_rm8 if ins.op0_register() == Register::AL => {}
        Code::Nopd | Code::Nopw | Code::Nopq | Code::Nop_rm16 | Code::Nop_rm32 | Code::Nop_rm64 => {}
        Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => {
            regs.rip = ins.near_branch_target();
            return Some(());
        }
        Code::Lea_r64_m if !ins.is_ip_rel_memory_operand() => {
            let value = effective(ins, regs)?;
            *general(regs, ins.op0_register())? = value;
        }
        Code::Mov_rm64_r64 | Code::Mov_r64_rm64 => {
            let value = match ins.op1_kind() {
                OpKind::Register => *general(regs, ins.op1_register())?,
                _ => words.get(at(regs)?),
            };
            match ins.op0_kind() {
                // The guest gets it back.
                OpKind::Register if ins.op0_register() == Register::R9 => return None,
                OpKind::Register => *general(regs, ins.op0_register())? = value,
                _ => words.set(at(regs)?, value),
            }
        }
        Code::Sub_r64_rm64 if ins.op1_kind() == OpKind::Memory => {
            let value = words.get(at(regs)?);
            let to = general(regs, ins.op0_register())?;
            *to = to.wrapping_sub(value);
        }
        Code::Add_rm64_r64 | Code::Add_rm64_imm8 | Code::Add_rm64_imm32 | Code::Inc_rm64
            if ins.op0_kind() == OpKind::Memory =>
        {
            let more = match ins.code() {
                Code::Add_rm64_r64 => *general(regs, ins.op1_register())?,
                Code::Inc_rm64 => 1,
                _ => ins.immediate(1),
            };
            let at = at(regs)?;
            words.set(at, words.get(at).wrapping_add(more));
        }
        _ => return None,
    }
    regs.rip = next;
    Some(())
}

/// The register, if it is one of 64 bits.
fn general(regs: &mut Regs, r: Register) -> Option<&mut u64> {
    r.is_gpr64().then(|| register(regs, r.number() as u8))
}

/// The address of an instruction's operand in memory, within its segment.
fn effective(ins: &Instruction, regs: &mut Regs) -> Option<u64> {
    let mut address = ins.memory_displacement64();
    for (r, scale) in [(ins.memory_base(), 1), (ins.memory_index(), ins.memory_index_scale())] {
        if r != Register::None {
            address = address.wrapping_add(general(regs, r)?.wrapping_mul(scale.into()));
        }
    }
    Some(address)
}

/// Where in the slot that operand is, if it is there: by its segment, or by the register that words of the slot are reached by.
fn slot_offset(ins: &Instruction, regs: &mut Regs) -> Option<u64> {
    let at = effective(ins, regs).filter(|_| !ins.is_ip_rel_memory_operand())?;
    let offset = match (ins.segment_prefix(), ins.memory_base()) {
        (Register::GS, _) => at,
        (Register::None, Register::R11) if regs.r11 == layout::base_of(regs.gs_base) => at.wrapping_sub(regs.gs_base),
        _ => return None,
    };
    (offset <= layout::SLOT_SIZE - 8).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    use dynasmrt::{DynasmApi, dynasm};
    use grind_asm::Asm;
    use grind_layout::SlotWord;
    use grind_layout::registers::Gpr;
    use grind_ptrace::no_regs;
    use iced_x86::{Decoder, DecoderOptions};

    #[derive(Default)]
    struct Slot(HashMap<u64, u64>);

    impl Words for Slot {
        fn get(&self, at: u64) -> u64 {
            self.0.get(&at).copied().unwrap_or(0)
        }
        fn set(&mut self, at: u64, value: u64) {
            self.0.insert(at, value);
        }
    }

    /// Executes code up to what is not executed; returns how many bytes that was.
    fn run(code: &Asm, regs: &mut Regs, slot: &mut Slot) -> u64 {
        regs.rip = code.base;
        loop {
            let rest = &code.buf[(regs.rip - code.base) as usize..];
            let ins = Decoder::with_ip(64, rest, regs.rip, DecoderOptions::NONE).decode();
            if execute(&ins, regs, slot).is_none() {
                return regs.rip - code.base;
            }
        }
    }

    #[test]
    fn totals_and_counters_are_added_up_to_what_is_the_guests() {
        let mut code = Asm { buf: Vec::new(), base: 0x1000 };
        code.lea_disp(Gpr::R9, Gpr::R9, 10);
        code.add_one_gs(0x100);
        code.add_gs(0x108, 7);
        code.load_gs(Gpr::R10, 0x110);
        code.lea_disp(Gpr::R10, Gpr::R10, -3);
        code.store_gs(0x110, Gpr::R10);
        code.gs_op(0x01, Gpr::R10, 0x118);
        code.spill(SlotWord::T1, Gpr::R10);
        let ours = code.pos() as u64;
        dynasm!(code; add QWORD [rbx], 1);
        let gs_base = 0x7e80_0000_0000;
        let mut regs = Regs { r9: 5, r11: layout::base_of(gs_base), gs_base, ..no_regs() };
        let mut slot = Slot([(0x100, 1), (0x110, 50), (0x118, 1)].into());
        assert_eq!(run(&code, &mut regs, &mut slot), ours);
        assert_eq!((regs.r9, regs.r10), (15, 47));
        assert_eq!([0x100, 0x108, 0x110, 0x118].map(|at| slot.get(at)), [2, 7, 47, 48]);
        assert_eq!(slot.get(SlotWord::T1.at().into()), 47);
    }

    #[test]
    fn nothing_of_the_guests_is_executed() {
        let guests: [fn(&mut Asm); 5] = [
            |c| dynasm!(c; mov rax, [rdi]),
            |c| dynasm!(c; fs mov rax, [BYTE rbx + 0x28]),
            |c| dynasm!(c; mov eax, ecx),
            |c| {
                c.jrcxz();
            },
            // Beyond the slot.
            |c| c.load_gs(Gpr::RAX, 0x7f00_0000),
        ];
        for (n, emit) in guests.into_iter().enumerate() {
            let mut code = Asm { buf: Vec::new(), base: 0x1000 };
            emit(&mut code);
            assert_eq!(run(&code, &mut no_regs(), &mut Slot::default()), 0, "{n}: {:x?}", code.buf);
        }
    }
}
