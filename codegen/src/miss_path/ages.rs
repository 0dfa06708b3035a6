//! Where it is told when lines that go were used last ([`grind_trace::LineBrought`]), as a piece of the miss path: whoever reads that
//! knows what a thread has used since, but for lines that are in its cache.
//!
//! Invariant: a record is that of the line that a way is given up for, and stands in front of the miss of the access that does so. It is
//! written before what it tells of is changed.

use grind_asm::Asm;
use grind_asm::instructions::SIGN;
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace as trace;

use super::{CLOCK, R8, RDX, RSI};

/// Records that way rdx is given up for the line at this address, at the time that it is. `place` leads to the time of the line that goes, and to its tag if
/// its entry shows it, so far on. Changes rsi, r8 and the
/// flags.
pub(super) fn record(c: &mut Asm, line: Gpr, place: Gpr, [tag, time]: [u32; 2]) {
    // (Where the buffer is full, the engine changes the register that leads there: it must be one that the program has, too.)
    c.load_gs(RSI, SlotWord::TracePos.at());
    c.gs_base8(0x89, CLOCK, RSI, 28);
    c.gs_index(0x8b, R8, place, time);
    c.gs_base8(0x89, R8, RSI, 20);
    // A line that its entry shows has its tag there.
    c.gs_index(0x8b, R8, RDX, layout::DATA_WAYS as u32);
    c.op_reg(0x85, place, place);
    c.gs_cmov(SIGN, R8, place, tag);
    c.gs_base8(0x89, R8, RSI, 12);
    c.gs_base8(0x89, line, RSI, 4);
    c.store_site(RSI, trace::LINE_BROUGHT);
    c.add_gs(SlotWord::TracePos.at(), 4 * trace::LineBrought::WORDS as i32);
}
