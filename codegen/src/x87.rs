//! Instructions that write down where the last instruction of the x87 was. In translated code that is an address of the code
//! cache, so the engine puts the program's there (`dispatch::x87`), but only if there is one: programs that use the unit's control
//! words alone, as C libraries do for rounding and exceptions, go on without a stop. Invariant: no flag and no register changes.

use dynasmrt::dynasm;
use grind_fragments::fragment_table::StubKind;
use grind_isa::decode::{self, Insn};
use grind_layout::SlotWord;
use grind_layout::registers::Gpr;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::Emitter;

impl Emitter<'_> {
    /// Behind `insn`, which has written such an address `offset` bytes from where its operand begins.
    pub(super) fn check_x87_address(&mut self, insn: &Insn, offset: u64) {
        self.out.code.spill(SlotWord::T1, Gpr::RCX);
        let ins = &insn.ins;
        // (What else eax asks for leaves there what was there: stacks of dynamic linkers are full of it.)
        let may_ask = decode::saves_what_is_asked_for(ins.code()) && is_x86_feature_detected!("bmi2");
        let not_asked = may_ask.then(|| {
            let c = &mut self.out.code;
            c.mov_imm(Gpr::RCX, 1);
            dynasm!(c; pext ecx, eax, ecx);
            let not_asked = c.jrcxz();
            c.reload(Gpr::RCX, SlotWord::T1);
            not_asked
        });
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
        for skipped in [none, not_asked].into_iter().flatten() {
            c.patch_short(skipped);
        }
        c.reload(Gpr::RCX, SlotWord::T1);
    }
}
