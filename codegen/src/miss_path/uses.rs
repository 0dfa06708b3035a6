//! What the miss path of accesses notes and records of lines: who loads and reuses them, where there are contexts, and how they are
//! used. Registers are those of [`super::miss_path_of_each`].

use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::{self as trace, FirstLevel};

use grind_asm::Asm;
use grind_asm::instructions::{ABOVE, E, SHR, SIGN};

use super::{LESS_ONE, R8, R12, R13, R14, RAX, RBX, RCX, RDX, SITE};

/// Records that something has happened to line rax, because of the access that rbx describes. Changes r8 and r14.
pub(super) fn record_line(c: &mut Asm, what: u32) {
    // (Where the buffer is full, the engine changes the register that leads there: it must be one that the program has, too.)
    c.load_gs(R14, SlotWord::TracePos.at());
    c.load32(R8, RBX, SITE);
    c.gs_base8_32(0x89, R8, R14, 12);
    c.gs_base8(0x89, RAX, R14, 4);
    c.mov_imm(R8, what.into());
    c.gs_base8_32(0x89, R8, R14, 0);
    c.lea_disp(R14, R14, 4 * trace::LINE_WORDS as i32);
    c.store_gs(SlotWord::TracePos.at(), R14);
}

/// Notes that line rax, in way rdx, is used by the access at r13 that rbx describes. Changes r8 and r14.
pub(super) fn use_line(c: &mut Asm, cache: FirstLevel) {
    c.load32(R8, RBX, LESS_ONE);
    c.mov_imm(R14, 63);
    c.op_reg(0x29, R14, R8);
    c.mov_all_ones(R8);
    c.shift_by(false, R8, R8, R14); // r8: a bit for each byte
    c.mov_reg(R14, R13);
    c.op_reg(0x29, R14, RAX);
    let second = c.jcc_away(SIGN);
    c.shift_by(true, R8, R8, R14);
    if cache.line < 64 {
        c.mov_reg32(R8, R8);
    }
    let have = c.jmp_away();
    c.patch_here(second);
    c.negate(R14);
    c.shift_by(false, R8, R8, R14);
    c.patch_here(have);
    c.gs_index(0x09, R8, RDX, layout::DATA_USES as u32);
    c.gs_index_by(0, RDX, layout::DATA_USES as u32 + 8, 1); // add
}

/// Records that line rax takes the place of another one, in way rdx, because of the access at r13 that rbx describes, and how
/// that one was used ([`trace::LineReplaced`]). Changes r8, r14 and r12.
pub(super) fn record_replaced(c: &mut Asm, cache: FirstLevel) {
    let (bytes, count) = (layout::DATA_USES as u32, layout::DATA_USES as u32 + 8);
    c.load_gs(R12, SlotWord::TracePos.at());
    c.gs_base8(0x89, R13, R12, 16);
    // To two lines?
    c.load32(R8, RBX, LESS_ONE);
    c.op_reg(0x01, R8, R13);
    c.op_reg(0x31, R8, R13); // the bits that differ between the first byte's address and the last one's
    c.mov_reg(R14, RDX);
    c.and_imm(R8, -(cache.line as i32));
    let one = c.jcc_away(E);
    c.alu_imm(0, R14, 1); // add
    c.patch_here(one);
    // The second one of them begins behind the access's address.
    c.mov_reg(R8, R13);
    c.op_reg(0x29, R8, RAX); // sub
    c.op_reg(0x19, R8, R8); // sbb: all ones if it does
    c.and_imm(R8, 2);
    c.op_reg(0x09, R14, R8); // or
    c.gs_base8_32(0x89, R14, R12, 4);
    c.gs_index(0x8b, R8, RDX, count);
    c.mov_imm(R14, u32::MAX.into());
    c.op_reg(0x39, R8, R14);
    c.cmov(ABOVE, R8, R14);
    c.gs_base8_32(0x89, R8, R12, 8);
    c.gs_index(0x8b, R8, RDX, bytes);
    if cache.line == 64 {
        // Two bytes are a part.
        c.mov_reg(R14, R8);
        c.shift(SHR, R14, 1);
        c.op_reg(0x09, R8, R14);
        c.mov_imm(R14, 0x5555_5555_5555_5555);
        c.extract_by(R8, R8, R14);
    }
    c.gs_base8_32(0x89, R8, R12, 12);
    c.load32(R8, RBX, SITE);
    c.gs_base8_32(0x89, R8, R12, 0);
    c.mov_imm(R8, 0);
    c.gs_index(0x89, R8, RDX, bytes);
    c.gs_index(0x89, R8, RDX, count);
    c.lea_disp(R12, R12, 4 * trace::LineReplaced::WORDS as i32);
    c.store_gs(SlotWord::TracePos.at(), R12);
}

/// Records that all lines of an access or a fetch have been told, whose site is what `what` points to. Changes rax and rcx.
pub(super) fn record_lines_replaced(c: &mut Asm, what: Gpr) {
    c.load_gs(RCX, SlotWord::TracePos.at());
    c.load32(RAX, what, SITE);
    c.gs_base8_32(0x89, RAX, RCX, 4);
    c.store_site(RCX, trace::LINES_REPLACED);
    c.lea_disp(RCX, RCX, 4 * trace::REPLACED_WORDS as i32);
    c.store_gs(SlotWord::TracePos.at(), RCX);
}
