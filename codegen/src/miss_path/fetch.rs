//! The miss path of a fetch of code: its lines have numbers, by which is known where their times are ([`layout::LINES`]).

use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::{self as trace, FirstLevel};

use grind_asm::Asm;
use grind_asm::instructions::{BELOW, E, NE, SHL};

use super::pages::Buffer;
use super::ways::earliest;
use super::{
    CLOCK, R8, R10, R12, R13, R14, RAX, RBX, RCX, RDI, RDX, RSI, RSP, UNROLLED, pages, record_lines_replaced, saved,
    shown,
};
use crate::stack::StackCode;

/// What [`emit_fetch_miss_path`] is told on its stack, by offset from the stack pointer: the fetch's site; for one or two lines
/// [`layout::LINE`] times the number, and the offset of its set in [`layout::CODE_WAYS`]. (On the stack, and not in the code
/// behind the call, which would have to come into the data cache for that.)
const FETCH_SITE: i32 = 8;
const FETCH_LINES: [i32; 2] = [16, 32];
/// Where TLBs are simulated: the address of the first line, in two halves.
const FETCH_ADDRESS: [i32; 2] = [48, 56];

/// The way into the miss path of fetches.
pub(crate) trait FetchCode {
    /// Has the miss path called for a fetch: a site, one or two lines, and where the first one is, if that matters.
    fn miss_path_of_fetch(&mut self, site: u32, lines: [(u32, u32); 2], at: Option<u64>);
}

impl FetchCode for Asm {
    fn miss_path_of_fetch(&mut self, site: u32, lines: [(u32, u32); 2], at: Option<u64>) {
        self.enter_miss_path_stack();
        if let Some(at) = at {
            self.push_imm((at >> 32) as u32);
            self.push_imm(at as u32);
        }
        if lines[1].0 != 0 || at.is_some() {
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

/// Records that a line of code takes way rsi ([`grind_trace::CODE_BROUGHT`]). Changes rcx and r10.
fn record_code_way(c: &mut Asm, second: bool) {
    c.lea_disp(R10, RSI, 1);
    if !second {
        // The first of two is not the last one; a line alone is.
        c.load32(RCX, RSP, FETCH_LINES[1]);
        c.op_reg(0x85, RCX, RCX);
        let alone = c.jcc(E);
        c.mov_reg(R10, RSI);
        c.patch_here(alone);
    }
    c.load_gs(RCX, SlotWord::TracePos.at());
    c.gs_base8_32(0x89, R10, RCX, 4);
    c.store_site(RCX, trace::CODE_BROUGHT);
    c.add_gs(SlotWord::TracePos.at(), 4 * trace::CODE_BROUGHT_WORDS as i32);
}

/// Where rax is saved, and the status flags, as LAHF and SETO give them; other registers are before those.
const SAVED_RAX: usize = 6;
const FLAGS: usize = 7;

/// The miss path of a fetch, of a line that is not in the cache, or of two of which one is not. `uses`: it records which line has to
/// go. `ways`: it records which way the line takes. `frames`: frames are told.
pub(crate) fn emit_fetch_miss_path(c: &mut Asm, cache: FirstLevel, uses: bool, ways: bool, frames: bool) {
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
        if ways {
            record_code_way(c, second);
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

/// The same where TLBs are simulated, one line after the other. `ways` as there.
pub(crate) fn emit_fetch_miss_path_with_pages(c: &mut Asm, of: Buffer, ways: bool) {
    const MORE: [Gpr; 8] = [RCX, RDX, RSI, RDI, RBX, R12, R13, R14];
    let kept = |n: usize| saved(if n < SAVED_RAX { n } else { n + 2 });
    let line_bits = of.cache.line.trailing_zeros() as i8;
    c.stack_op(0x89, RAX, saved(SAVED_RAX));
    c.flags_to_ax();
    c.stack_op(0x89, RAX, saved(FLAGS));
    for (n, r) in MORE.into_iter().enumerate() {
        c.stack_op(0x89, r, kept(n));
    }
    c.store_gs32_imm(SlotWord::PageAgain.at(), 0);
    c.store_gs32_imm(SlotWord::LineMissed.at(), 0);
    c.load32(R13, RSP, FETCH_ADDRESS[0]);
    c.load32(RAX, RSP, FETCH_ADDRESS[1]);
    c.shift(SHL, RAX, 32);
    c.op_reg(0x01, R13, RAX); // r13: the line
    let mut alone = None;
    for second in [false, true] {
        c.load32(RBX, RSP, FETCH_LINES[usize::from(second)]); // rbx: its number
        if second {
            c.op_reg(0x85, RBX, RBX);
            alone = Some(c.jcc_away(E));
            c.lea_disp(R13, R13, of.cache.line as i32);
        }
        c.gs_index32(0x8b, RCX, RBX, layout::LINES as u32); // rcx: where its time is
        c.op_reg(0x85, RCX, RCX);
        let present = c.jcc_away(NE);
        c.mov_reg(RAX, R13);
        pages::use_page(c, of, |c, to| c.load32(to, RSP, FETCH_SITE));
        c.load32(RDX, RSP, FETCH_LINES[usize::from(second)] + 8); // rdx: a way of the set
        find_code_line(c, of.cache, line_bits, ways.then_some(second));
        shown::show_code(c, line_bits);
        c.lea_disp(RCX, RSI, (layout::CODE_TIMES as u32).cast_signed());
        c.gs_index32(0x89, RCX, RBX, layout::LINES as u32);
        c.patch_here(present);
        c.gs_base8(0x89, CLOCK, RCX, 0);
        c.increment(CLOCK);
    }
    alone.into_iter().for_each(|field| c.patch_here(field));
    c.cmp_gs_zero(SlotWord::LineMissed.at());
    let hit = c.jcc_away(E);
    c.load_gs(RCX, SlotWord::TracePos.at());
    c.load32(RAX, RSP, FETCH_SITE);
    c.gs_base8_32(0x89, RAX, RCX, 0);
    c.lea_disp(RCX, RCX, 4);
    c.store_gs(SlotWord::TracePos.at(), RCX);
    c.patch_here(hit);
    c.stack_op(0x8b, RAX, saved(FLAGS));
    c.flags_from_ax();
    c.stack_op(0x8b, RAX, saved(SAVED_RAX));
    for (n, r) in MORE.into_iter().enumerate() {
        c.stack_op(0x8b, r, kept(n));
    }
    c.miss_path_returns();
}

/// Into rsi: the way of line rbx, of those from rdx on: the one that holds it without showing it, or the one that was fetched from
/// longest ago, which is given up for it, and recorded if it is known here which line of the fetch it is. Changes rcx, rdx, r8 and r10.
fn find_code_line(c: &mut Asm, cache: FirstLevel, line_bits: i8, second: Option<bool>) {
    let (lines, ways) = (layout::LINES as u32, layout::CODE_WAYS as u32);
    c.mov_reg(RSI, RDX);
    c.lea_disp(R10, RDX, (cache.ways * 8) as i32); // r10: the set's end
    let again = c.pos();
    c.gs_index(0x39, RBX, RSI, ways); // cmp
    let hidden = c.jcc_away(E);
    c.alu_imm(0, RSI, 8);
    c.op_reg(0x39, RSI, R10);
    c.jcc_back(NE, again);
    choose_code_line(c, cache);
    c.gs_index(0x8b, RCX, RSI, ways);
    c.gs_index32(0x8b, R8, RCX, lines);
    c.op_reg(0x85, R8, R8);
    let not_shown = c.jcc_away(E);
    shown::leave_code(c, line_bits);
    c.gs_store_imm32(RCX, lines, 0);
    c.patch_here(not_shown);
    c.gs_index(0x89, RBX, RSI, ways);
    c.store_gs32_imm(SlotWord::LineMissed.at(), 1);
    if let Some(second) = second {
        record_code_way(c, second);
    }
    c.patch_here(hidden);
}

/// Line rax takes the place of the one fetched from longest ago, of the ways from rdx on, at this time; rsi is its way then.
/// Changes rcx, rdx, r8 and r10.
fn replace_code_line(c: &mut Asm, cache: FirstLevel) {
    let (lines, ways, times) = (layout::LINES as u32, layout::CODE_WAYS as u32, layout::CODE_TIMES as u32);
    choose_code_line(c, cache);
    c.gs_index(0x8b, RCX, RSI, ways);
    c.gs_store_imm32(RCX, lines, 0);
    c.gs_index(0x89, RAX, RSI, ways);
    c.lea_disp(RCX, RSI, times.cast_signed());
    c.gs_index32(0x89, RCX, RAX, lines);
    c.gs_index(0x89, CLOCK, RSI, times);
    c.increment(CLOCK);
}

/// Into rsi: the way fetched from longest ago, of those from rdx on. Changes rcx, rdx, r8 and r10.
fn choose_code_line(c: &mut Asm, cache: FirstLevel) {
    let times = layout::CODE_TIMES as u32;
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
}
