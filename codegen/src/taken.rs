//! Registers that the code before an instruction takes for its own ends, and gives back. It must never take one that the
//! instruction names without saving what the guest has in it.

use grind_isa::decode::Insn;
use grind_layout::SlotWord;
use grind_layout::registers::{Gpr, StolenRegisters};
use iced_x86::Register;

use super::Emitter;
use super::operand::register;

/// Registers for the checks before one instruction, and which of them have to be given back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) regs: [Gpr; 3],
    spilled: [bool; 3],
}

/// Nothing is recorded by way of these, for the engine says where the next record goes.
pub(super) const UNRECORDED: [Gpr; 2] = [StolenRegisters::Clock.free()[0].0, StolenRegisters::Clock.free()[1].0];

/// Where the registers taken are saved.
const SAVED_IN: [SlotWord; 3] = [SlotWord::T1, SlotWord::T2, SlotWord::T3];

impl Emitter<'_> {
    /// `n` registers for the checks before instruction `i`: those that the block holds, those that are dead, others that are
    /// saved. If rax is among them it is the second, which is good for [`Self::save_flags`].
    pub(super) fn take(&mut self, insn: &Insn, i: usize, n: usize) -> Taken {
        let dead = self.tracer.plan.registers[i].dead;
        self.take_among(insn, dead, n, &[])
    }

    pub(super) fn take_among(&mut self, insn: &Insn, dead: u16, n: usize, but: &[Gpr]) -> Taken {
        let mut taken = Taken { regs: [Gpr::RAX; 3], spilled: [false; 3] };
        let held: Vec<Gpr> = self.holding().collect();
        let given = held.iter().copied().take(2);
        let dead = (0..16).map(Gpr).filter(|r| dead >> r.0 & 1 != 0 && !held.contains(r));
        let mut have = 0;
        for r in given.chain(dead).filter(|r| !but.contains(r)).take(n) {
            taken.regs[have] = r;
            have += 1;
        }
        if n == 2 && have == 2 && taken.regs[0] == Gpr::RAX {
            taken.regs.swap(0, 1);
        }
        let mut not: Vec<Register> = held.iter().chain(but).chain(&taken.regs[..have]).map(|&r| register(r)).collect();
        for (k, word) in SAVED_IN.into_iter().enumerate().take(n).skip(have) {
            let r = self.free_register(&insn.ins, &not);
            not.push(r);
            taken.regs[k] = Gpr(r.number() as u8);
            taken.spilled[k] = true;
            self.out.code.spill(word, taken.regs[k]);
        }
        taken
    }

    pub(super) fn give_back(&mut self, taken: Taken) {
        for ((r, spilled), word) in taken.regs.into_iter().zip(taken.spilled).zip(SAVED_IN) {
            if spilled {
                self.out.code.reload(r, word);
            }
        }
    }
}
