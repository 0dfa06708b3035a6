//! Which lines of a page are shown, where TLBs are simulated ([`super::pages`]): pieces of the miss path that show a line, or show it no more.
//! Nothing is looked for here.
//!
//! Invariants: those of [`super::pages`]; flags and the registers that each piece names are changed, no others.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_asm::instructions::{BELOW, SHR};
use grind_layout as layout;
use grind_layout::registers::Gpr;

use super::{R8, R10, RCX, RDI};

/// Offsets in a way of a TLB: the time that is kept, and the lines that are shown.
pub(super) const TIME: i32 = 8;
pub(super) const SHOWN: i32 = 16;
/// Bits of a line's number that tell lines of a page apart.
pub(super) const LINES: i32 = 63;

/// The entry at `base` and `offset` shows its line no more: its page keeps when it was used last. Changes two registers and the flags.
pub(super) fn leave(c: &mut Asm, base: Gpr, offset: u32, [way, other]: [Gpr; 2]) {
    let table = layout::DATA_PAGES as i32;
    c.gs_index32(0x8b, way, base, offset + layout::DATA_PLACES as u32);
    c.gs_index(0x8b, other, base, offset + layout::DATA_TIMES as u32);
    later(c, table, way, other);
    c.lea_disp(other, base, offset.cast_signed());
    c.shift(SHR, other, layout::DATA_ENTRY.trailing_zeros() as u8);
    bit_of_number(c, other);
    c.gs_reset_bit(other, way, (table + SHOWN) as u32);
}

/// A page in `way` was used at `time`, if not later. Changes `time` and the flags.
fn later(c: &mut Asm, table: i32, way: Gpr, time: Gpr) {
    let at = (table + TIME) as u32;
    c.gs_index(0x3b, time, way, at); // cmp
    c.gs_cmov(BELOW, time, way, at);
    c.gs_index(0x89, time, way, at);
}

/// From a line's number to its bit ([`layout::page_bit`]).
fn bit_of_number(c: &mut Asm, number: Gpr) {
    c.and_imm(number, LINES);
}

/// Entry rcx shows its line, whose page is in way rdi. Changes r8.
pub(super) fn show(c: &mut Asm) {
    c.gs_index32(0x89, RDI, RCX, layout::DATA_PLACES as u32);
    dynasm!(c; mov r8, rcx; shr r8, layout::DATA_ENTRY.trailing_zeros() as i8);
    bit_of_number(c, R8);
    dynasm!(c; gs bts QWORD [rdi + layout::DATA_PAGES as i32 + SHOWN], r8);
}

/// The line of code in way rsi, which is shown, has to go: its page keeps when it was used last. Changes r8 and r10.
pub(super) fn leave_code(c: &mut Asm, line_bits: i8) {
    let table = layout::CODE_PAGES as i32;
    dynasm!(c
        ; gs mov r10, [rsi * 2 + layout::CODE_OWNERS as i32 + 8]
        ; gs mov r8, [rsi + layout::CODE_TIMES as i32]
    );
    later(c, table, R10, R8);
    dynasm!(c; gs mov r8, [rsi * 2 + layout::CODE_OWNERS as i32]; shr r8, line_bits);
    bit_of_number(c, R8);
    dynasm!(c; gs btr QWORD [r10 + table + SHOWN], r8);
}

/// The line of code rax in way rsi is shown, and its page is in way rdi. Changes r8.
pub(super) fn show_code(c: &mut Asm, line_bits: i8) {
    dynasm!(c
        ; gs mov [rsi * 2 + layout::CODE_OWNERS as i32], rax
        ; gs mov [rsi * 2 + layout::CODE_OWNERS as i32 + 8], rdi
        ; mov r8, rax
        ; shr r8, line_bits
    );
    bit_of_number(c, R8);
    dynasm!(c; gs bts QWORD [rdi + layout::CODE_PAGES as i32 + SHOWN], r8);
}

const _: () = assert!(layout::DATA_TAGS == 0 && layout::DATA_TIMES == TIME as u64);
