//! CPUID and XGETBV where the guest sees a processor other than the one that is there: programs ask for it dozens of times
//! at their start, so emitted code answers from a table ([`Table`]) that the guest's memory holds. What is not in there stops,
//! as if the instruction had not begun. Invariants: no flag changes, and none but the four registers that the instruction
//! itself changes.

use dynasmrt::{DynasmApi, dynasm};
use grind_fragments::fragment_table::Emulate;
use grind_isa::cpuid::{self, Row, Table};
use grind_isa::decode::Insn;
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};

use std::mem::offset_of;

use super::Emitter;

const RBX: Gpr = Gpr(3);

/// Condition codes.
const EQUAL: u8 = 4;
const NOT_EQUAL: u8 = 5;

/// Bytes of a row.
const ROW: i32 = size_of::<Row>() as i32;

const _: () = assert!(size_of::<Row>().is_power_of_two());

impl Emitter<'_> {
    pub(super) fn cpuid(&mut self, insn: &Insn) {
        let stub = self.stub_for(insn, Emulate::Cpuid);
        let index = (self.tables + layout::CPUID_TABLE) as i32;
        let rows = index + Table::INDEX_SIZE as i32;
        let c = &mut self.out.code;
        c.spill(SlotWord::Rax, Gpr::RAX);
        c.spill(SlotWord::T1, RBX);
        c.spill(SlotWord::T2, Gpr::RDX);
        dynasm!(c; mov ebx, eax);
        c.flags_to_ax();
        c.spill(SlotWord::Flags, Gpr::RAX);
        dynasm!(c
            ; mov eax, ebx; shr eax, 27; and eax, 16; mov edx, ebx; and edx, 15; or eax, edx
            ; movzx eax, BYTE [rax + index]; shl eax, ROW.trailing_zeros() as i8; add eax, rows);

        let row = c.here();
        dynasm!(c; cmp DWORD [rax + offset_of!(Row, leaf) as i32], ebx);
        let none = c.jcc(NOT_EQUAL);
        dynasm!(c; cmp DWORD [rax + offset_of!(Row, subleaf) as i32], ecx);
        let this_one = c.jcc(EQUAL);
        dynasm!(c; cmp DWORD [rax + offset_of!(Row, any_subleaf) as i32], BYTE 0);
        let any = c.jcc(NOT_EQUAL);
        c.lea_disp(Gpr::RAX, Gpr::RAX, ROW);
        let next = c.jmp();
        c.patch_rel32(next, row);

        let here = c.here();
        c.patch_rel32(none, here);
        c.reload(Gpr::RAX, SlotWord::Flags);
        c.flags_from_ax();
        c.reload(Gpr::RAX, SlotWord::Rax);
        c.reload(RBX, SlotWord::T1);
        c.reload(Gpr::RDX, SlotWord::T2);
        self.place_stub(stub);
        let c = &mut self.out.code;
        let done = c.jmp();

        let here = c.here();
        c.patch_rel32(this_one, here);
        c.patch_rel32(any, here);
        dynasm!(c; mov edx, eax);
        c.reload(Gpr::RAX, SlotWord::Flags);
        c.flags_from_ax();
        const ANSWER: i32 = offset_of!(Row, answer) as i32;
        dynasm!(c
            ; mov eax, [rdx + ANSWER]; mov ebx, [rdx + ANSWER + 4]
            ; mov ecx, [rdx + ANSWER + 8]; mov edx, [rdx + ANSWER + 12]);
        let here = c.here();
        c.patch_rel32(done, here);
    }

    /// Others than XCR0 do not exist.
    pub(super) fn xgetbv(&mut self, insn: &Insn) {
        let stub = self.stub_for(insn, Emulate::Xgetbv);
        let xcr0 = self.out.code.jrcxz();
        self.place_stub(stub);
        let c = &mut self.out.code;
        let done = c.jmp();
        c.patch_short(xcr0);
        dynasm!(c; mov eax, cpuid::BASELINE_XCR0 as i32; mov edx, (cpuid::BASELINE_XCR0 >> 32) as i32);
        let here = c.here();
        c.patch_rel32(done, here);
    }
}
