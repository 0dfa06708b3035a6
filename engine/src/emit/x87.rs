//! Instructions that write down where the last instruction of the x87 was. In translated code that is an address of the code
//! cache, so the engine puts the program's there (`dispatch::x87`), but only if there is one: programs that use the unit's control
//! words alone, as C libraries do for rounding and exceptions, go on without a stop. Invariant: no flag and no register changes.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::Emitter;
use crate::asm::Gpr;
use crate::decode::Insn;
use crate::fragment_table::StubKind;
use crate::layout::SlotWord;

impl Emitter<'_> {
    /// Behind `insn`, which has written such an address `offset` bytes from where its operand begins.
    pub(super) fn check_x87_address(&mut self, insn: &Insn, offset: u64) {
        self.out.code.spill(SlotWord::T1, Gpr::RCX);
        let ins = &insn.ins;
        // Where the operand cannot be named as simply, the engine looks.
        let simple = ins.memory_base().is_gpr64() && !insn.names_taken(self.stolen_registers());
        let none = simple.then(|| {
            let word = MemoryOperand::new(
                ins.memory_base(),
                ins.memory_index(),
                ins.memory_index_scale(),
                ins.memory_displacement64().wrapping_add(offset) as i64,
                8,
                false,
                ins.segment_prefix(),
            );
            let load = Instruction::with2(Code::Mov_r32_rm32, Register::ECX, word).expect("an ordinary operand");
            self.encode(&load);
            self.out.code.jrcxz()
        });
        self.out.code.reload(Gpr::RCX, SlotWord::T1);
        let pos = self.out.code.pos();
        let id = self.trans.add_stub(StubKind::SavedX87 { pc: insn.pc() });
        self.out.stubs.push((pos, id));
        let c = &mut self.out.code;
        c.stop(id);
        if let Some(none) = none {
            c.patch_short(none);
        }
        c.reload(Gpr::RCX, SlotWord::T1);
    }
}
