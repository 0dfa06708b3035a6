//! The miss path of a fetch of code: its lines have numbers, by which is known where their times are ([`layout::LINES`]).

use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::FirstLevel;

use grind_asm::Asm;
use grind_asm::instructions::{BELOW, E, NE, SHL};

use super::ways::earliest;
use super::{CLOCK, R8, R10, R12, RAX, RCX, RDX, RSI, RSP, UNROLLED, record_lines_replaced, saved};
use crate::stack::StackCode;

/// What [`emit_fetch_miss_path`] is told on its stack, by offset from the stack pointer: the fetch's site; for one or two lines
/// [`layout::LINE`] times the number, and the offset of its set in [`layout::CODE_WAYS`]. (On the stack, and not in the code
/// behind the call, which would have to come into the data cache for that.)
const FETCH_SITE: i32 = 8;
const FETCH_LINES: [i32; 2] = [16, 32];

/// The way into the miss path of fetches.
pub(crate) trait FetchCode {
    /// Has the miss path called for a fetch: a site, and one or two lines.
    fn miss_path_of_fetch(&mut self, site: u32, lines: [(u32, u32); 2]);
}

impl FetchCode for Asm {
    fn miss_path_of_fetch(&mut self, site: u32, lines: [(u32, u32); 2]) {
        self.enter_miss_path_stack();
        if lines[1].0 != 0 {
            self.push_imm(lines[1].1);
        }
        for value in [lines[1].0, lines[0].1, lines[0].0, site] {
            self.push_imm(value);
        }
        self.call_miss_path(SlotWord::FetchMissPath);
    }
}

/// Records that a line of code takes the place of another one, in way rsi ([`grind_trace::SiteKind::CodeLine`]). Changes rcx,
/// r8, r10 and r12.
fn record_code_line(c: &mut Asm, second: bool) {
    c.load_gs(R12, SlotWord::TracePos.at());
    c.lea_disp(R10, RSI, second.into());
    c.load32(RCX, RSP, FETCH_LINES[1]);
    c.op_reg(0x85, RCX, RCX);
    let one = c.jcc(E);
    c.alu_imm(0, R10, 2);
    c.patch_here(one);
    c.gs_base8_32(0x89, R10, R12, 4);
    c.load32(R8, RSP, FETCH_SITE);
    c.gs_base8_32(0x89, R8, R12, 0);
    c.lea_disp(R12, R12, 8);
    c.store_gs(SlotWord::TracePos.at(), R12);
}

/// Where rax is saved, and the status flags, as LAHF and SETO give them; other registers are before those.
const SAVED_RAX: usize = 6;
const FLAGS: usize = 7;

/// The miss path of a fetch, of a line that is not in the cache, or of two of which one is not. `uses`: it records which line has to
/// go. `frames`: frames are told.
pub(crate) fn emit_fetch_miss_path(c: &mut Asm, cache: FirstLevel, uses: bool, frames: bool) {
    // (r8 and r10 are free where caches are simulated, and nothing is in them before the checks of accesses.)
    let used: &[Gpr] = if uses { &[RCX, RDX, RSI, R12] } else { &[RCX, RDX, RSI] };
    c.stack_op(0x89, RAX, saved(SAVED_RAX));
    c.flags_to_ax();
    c.stack_op(0x89, RAX, saved(FLAGS));
    for (n, &r) in used.iter().enumerate() {
        c.stack_op(0x89, r, saved(n));
    }
    let fetched = |c: &mut Asm, second: bool| {
        c.load32(RAX, RSP, FETCH_LINES[usize::from(second)]); // rax: the line
        c.gs_index32(0x8b, RCX, RAX, layout::LINES as u32); // rcx: where its time is
        c.op_reg(0x85, RCX, RCX);
        c.jcc_away(NE)
    };
    let time = |c: &mut Asm| {
        c.gs_base8(0x89, CLOCK, RCX, 0);
        c.increment(CLOCK);
    };
    let replaced = |c: &mut Asm, second: bool| {
        c.load32(RDX, RSP, FETCH_LINES[usize::from(second)] + 8); // rdx: a way of the set
        replace_code_line(c, cache);
        if uses {
            record_code_line(c, second);
        }
    };
    let present = fetched(c, false);
    replaced(c, false);
    c.load32(RDX, RSP, FETCH_LINES[1]);
    c.op_reg(0x85, RDX, RDX);
    let both = c.jcc_away(NE);
    let record = c.pos();
    let mut told = None;
    if uses {
        // The record of the only line has told it all.
        c.load32(RDX, RSP, FETCH_LINES[1]);
        c.op_reg(0x85, RDX, RDX);
        told = Some(c.jcc_away(E));
        c.lea_disp(RDX, RSP, FETCH_SITE);
        record_lines_replaced(c, RDX);
    } else {
        if frames {
            c.tell_frames([RAX, RCX, R8]);
        }
        c.load_gs(RCX, SlotWord::TracePos.at());
        c.load32(RAX, RSP, FETCH_SITE);
        c.gs_base8_32(0x89, RAX, RCX, 0);
        c.lea_disp(RCX, RCX, 4);
        c.store_gs(SlotWord::TracePos.at(), RCX);
    }
    let end = c.pos();
    told.into_iter().for_each(|field| c.patch_here(field));
    c.stack_op(0x8b, RAX, saved(FLAGS));
    c.flags_from_ax();
    c.stack_op(0x8b, RAX, saved(SAVED_RAX));
    for (n, &r) in used.iter().enumerate() {
        c.stack_op(0x8b, r, saved(n));
    }
    c.miss_path_returns();
    c.patch_here(present);
    time(c);
    c.mov_imm(RSI, 0);
    let second = c.jmp();
    c.patch_here(both);
    c.mov_imm(RSI, 1); // rsi: whether a line has been missed
    c.patch_here(second);
    let present = fetched(c, true);
    replaced(c, true);
    c.jmp_back(record);
    c.patch_here(present);
    time(c);
    c.op_reg(0x85, RSI, RSI);
    c.jcc_back(NE, record);
    c.jmp_back(end);
}

/// Line rax takes the place of the one fetched from longest ago, of the ways from rdx on, at this time; rsi is its way then.
/// Changes rcx, rdx, r8 and r10.
fn replace_code_line(c: &mut Asm, cache: FirstLevel) {
    let (lines, ways, times) = (layout::LINES as u32, layout::CODE_WAYS as u32, layout::CODE_TIMES as u32);
    if cache.ways <= UNROLLED {
        earliest(c, cache.ways, RDX, (times, 8), None, [RSI, R8, RCX, R10]);
        c.shift(SHL, RSI, 3);
        c.op_reg(0x01, RSI, RDX);
    } else {
        c.mov_all_ones(R8); // r8: the earliest time, in way rsi
        c.lea_disp(R10, RDX, (cache.ways * 8) as i32); // r10: the set's end
        let again = c.pos();
        c.gs_index(0x39, R8, RDX, times);
        c.gs_cmov(BELOW, R8, RDX, times);
        c.cmov(BELOW, RSI, RDX);
        c.alu_imm(0, RDX, 8);
        c.op_reg(0x39, RDX, R10);
        c.jcc_back(NE, again);
    }
    c.gs_index(0x8b, RCX, RSI, ways);
    c.gs_store_imm32(RCX, lines, 0);
    c.gs_index(0x89, RAX, RSI, ways);
    c.lea_disp(RCX, RSI, times.cast_signed());
    c.gs_index32(0x89, RCX, RAX, lines);
    c.gs_index(0x89, CLOCK, RSI, times);
    c.increment(CLOCK);
}
