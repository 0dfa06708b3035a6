//! The walk of a first-level cache: two routines, one copy of each a set of translations, that emitted code jumps to when
//! the checks in line do not settle an access or a fetch. They bring the thread's cache state up to date and record a miss.
//!
//! What is to be walked is described by a few words ([`access_words`], [`fetch_words`]) behind the code that calls (see
//! [`Asm::call_walk`]), on a stack of its own in the slot. All
//! registers and flags come back as they were. Invariants: a line is in the cache if and only if a way holds it;
//! [`arena::DATA_TAGS`] may not know of a line that is there, but what it says is true; an entry that says nothing holds a line
//! that belongs to another entry; `level1` is the same in Rust, for the engine's own use, and
//! `cg-sim` is the model that both are tested against.

use crate::arena::{self, Scratch};
use crate::asm::{Asm, Gpr};
use crate::trace::{self, FirstLevel, Target};

use super::instructions::{ABOVE, ABOVE_EQUAL, BELOW, E, GREATER, NE, NOT_SIGN, SHL, SHR, SIGN};

const RAX: Gpr = Gpr(0);
const RCX: Gpr = Gpr(1);
const RDX: Gpr = Gpr(2);
const RBX: Gpr = Gpr(3);
const RSI: Gpr = Gpr(6);
const RDI: Gpr = Gpr(7);
const R8: Gpr = Gpr(8);
const R9: Gpr = Gpr(9);
const R10: Gpr = Gpr(10);
const R11: Gpr = Gpr(11);
const R12: Gpr = Gpr(12);

/// The registers that a walk uses, in the order of the words that they are saved to.
const USED: [Gpr; 11] = [RAX, RCX, RDX, RBX, RSI, RDI, R8, R9, R10, R11, R12];

/// How many of them a walk of a fetch uses that records nothing of the line that has to go.
const USED_BY_FETCHES: usize = 8;

/// What describes accesses that are checked together to [`emit_access_walk`]: the number of accesses; for each its site, how
/// much earlier than the clock it is, its offset, its bytes less one. `members` are site, time, offset and bytes of each, in order.
pub(super) fn access_words(members: &[(u32, u32, u16, u16)]) -> Vec<u32> {
    let mut words = vec![members.len() as u32];
    for &(site, before, offset, size) in members {
        words.extend([site, before, u32::from(offset), u32::from(size) - 1]);
    }
    words
}

/// What describes a fetch to [`emit_fetch_walk`]: its site; how much earlier than the clock it is; for one or two lines 8
/// times the number, and the offset of its set in [`arena::CODE_WAYS`].
pub(super) fn fetch_words(site: u32, back: u32, lines: [(u32, u32); 2]) -> [u32; 6] {
    [site, back, lines[0].0, lines[0].1, lines[1].0, lines[1].1]
}

fn save(c: &mut Asm, which: std::ops::Range<usize>) {
    for n in which {
        c.store_gs(arena::SAVES + 8 * n as u32, USED[n]);
    }
}

fn restore(c: &mut Asm, which: std::ops::Range<usize>) {
    for n in which {
        c.load_gs(USED[n], arena::SAVES + 8 * n as u32);
    }
}

/// The most ways for which a walk has code for each.
const UNROLLED: u32 = 16;

/// The walk of a group of accesses, whose lowest address is in [`Scratch::WalkAddress`]. Changes the flags. `uses`: it
/// keeps how lines are used, and records it where one has to go. `frames`: frames are told.
pub(crate) fn emit_access_walk(c: &mut Asm, cache: FirstLevel, uses: bool, frames: bool) {
    let bits = cache.line.trailing_zeros();
    let line = -(cache.line as i32);
    let times = arena::DATA_WAYS as u32 + 8;
    save(c, 0..USED.len());
    c.walk_description(RBX);
    c.load32(R10, RBX, 0); // r10: how many are left
    c.lea_disp(RBX, RBX, 4 - 16); // behind that word, and back by a member, since the loop begins with the next one
    let member = c.pos();
    c.lea_disp(RBX, RBX, 16); // rbx: what describes it
    c.load_gs(RDI, Scratch::Clock as u32);
    c.load32(RAX, RBX, 4);
    c.op_reg(0x29, RDI, RAX); // rdi: the time
    c.mov_imm(RSI, 0); // rsi: whether a line has been missed
    c.load_gs(R11, Scratch::WalkAddress as u32);
    c.load32(RAX, RBX, 8);
    c.op_reg(0x01, R11, RAX); // r11: the address
    c.mov_reg(RAX, R11);
    c.and_imm(RAX, line); // rax: the line
    let touch = c.pos();
    c.entry(RCX, RAX, bits); // rcx: its entry in the tables
    c.mov_reg(RDX, RAX);
    c.gs_entry(0x03, RDX, RCX, arena::DATA_TAGS);
    let walk = c.jcc_away(NE);
    c.gs_entry(0x8b, RDX, RCX, arena::DATA_PLACES);
    c.gs_index(0x89, RDI, RDX, times);
    let hit = c.jmp();
    c.patch_here(walk);
    c.mov_reg(RDX, RAX);
    c.shift(SHR, RDX, bits as u8);
    c.and_imm(RDX, cache.sets as i32 - 1);
    c.multiply(RDX, RDX, (cache.ways * arena::DATA_WAY as u32) as i32); // rdx: a way of the set
    let found = if cache.ways <= UNROLLED { search_unrolled(c, cache) } else { search(c, cache) };
    // Missed: the table forgets the line that has to go.
    c.gs_index(0x8b, R8, RDX, arena::DATA_WAYS as u32);
    c.entry(R9, R8, bits);
    c.gs_index(0x89, RAX, RDX, arena::DATA_WAYS as u32);
    c.gs_entry(0x8b, R12, R9, arena::DATA_TAGS);
    // Without a branch: whether it knows of that line cannot be guessed.
    c.mov_reg(RSI, R8);
    c.not(R8);
    c.and_imm(R8, cache.line as i32);
    c.negate(R8);
    c.op_reg(0x01, RSI, R12);
    c.cmov(NE, R8, R12);
    c.gs_entry(0x89, R8, R9, arena::DATA_TAGS);
    c.mov_imm(RSI, 1);
    if uses {
        record_replaced(c, cache);
    }
    // Who brought it in matters as soon as there are contexts.
    c.load_gs(R8, Scratch::ContextTime as u32);
    c.op_reg(0x85, R8, R8);
    let no_contexts = c.jcc_away(E);
    record_line(c, trace::LINE_LOADED);
    let loaded = c.jmp();
    for field in found {
        c.patch_here(field);
    }
    // Used the last time before the context changed?
    c.gs_index(0x8b, R8, RDX, times);
    c.load_gs(R9, Scratch::ContextTime as u32);
    c.op_reg(0x39, R8, R9);
    let young = c.jcc_away(ABOVE_EQUAL);
    record_line(c, trace::LINE_REUSED);
    for field in [no_contexts, loaded, young] {
        c.patch_here(field);
    }
    c.gs_index(0x89, RDI, RDX, times);
    c.mov_reg(R8, RAX);
    c.negate(R8);
    c.gs_entry(0x89, R8, RCX, arena::DATA_TAGS);
    c.gs_entry(0x89, RDX, RCX, arena::DATA_PLACES);
    c.patch_here(hit);
    if uses {
        use_line(c, cache);
    }
    // The last byte may lie in the next line.
    c.load32(RCX, RBX, 12);
    c.op_reg(0x01, RCX, R11);
    c.and_imm(RCX, line);
    c.lea_disp(RDI, RDI, 1);
    c.op_reg(0x39, RCX, RAX);
    c.mov_reg(RAX, RCX);
    c.jcc_back(NE, touch);
    c.op_reg(0x85, RSI, RSI);
    let hit = c.jcc_away(E);
    let mut one_line = None;
    if uses {
        // The record of the only line has told it all.
        c.mov_reg(RCX, R11);
        c.and_imm(RCX, line);
        c.op_reg(0x39, RCX, RAX);
        one_line = Some(c.jcc_away(E));
        record_lines_replaced(c, RBX);
    } else {
        if frames {
            c.tell_frames([RAX, RCX, R8]);
        }
        c.load_gs(RCX, Scratch::TracePos as u32);
        c.gs_base8(0x89, R11, RCX, 4);
        c.load32(RAX, RBX, 0);
        c.gs_base8_32(0x89, RAX, RCX, 0);
        c.lea_disp(RCX, RCX, 12);
        c.store_gs(Scratch::TracePos as u32, RCX);
    }
    c.patch_here(hit);
    if let Some(field) = one_line {
        c.patch_here(field);
    }
    c.alu_imm(5, R10, 1); // sub
    c.jcc_back(NE, member);
    restore(c, 0..USED.len());
    c.walk_returns();
}

/// Records that something has happened to line rax, because of the access that rbx describes. Changes r8 and r9.
fn record_line(c: &mut Asm, what: u32) {
    c.load_gs(R8, Scratch::TracePos as u32);
    c.load32(R9, RBX, 0);
    c.gs_base8_32(0x89, R9, R8, 12);
    c.gs_base8(0x89, RAX, R8, 4);
    c.mov_imm(R9, what.into());
    c.gs_base8_32(0x89, R9, R8, 0);
    c.lea_disp(R8, R8, 4 * trace::LINE_WORDS as i32);
    c.store_gs(Scratch::TracePos as u32, R8);
}

/// Notes that line rax, in way rdx, is used by the access at r11 that rbx describes. Changes r8 and r9.
fn use_line(c: &mut Asm, cache: FirstLevel) {
    c.load32(R8, RBX, 12);
    c.mov_imm(R9, 63);
    c.op_reg(0x29, R9, R8);
    c.mov_all_ones(R8);
    c.shift_by(false, R8, R8, R9); // r8: a bit for each byte
    c.mov_reg(R9, R11);
    c.op_reg(0x29, R9, RAX);
    let second = c.jcc_away(SIGN);
    c.shift_by(true, R8, R8, R9);
    if cache.line < 64 {
        c.mov_reg32(R8, R8);
    }
    let have = c.jmp_away();
    c.patch_here(second);
    c.negate(R9);
    c.shift_by(false, R8, R8, R9);
    c.patch_here(have);
    c.gs_index(0x09, R8, RDX, arena::DATA_USES as u32);
    c.gs_add(RDX, arena::DATA_USES as u32 + 8, 1);
}

/// Records that line rax takes the place of another one, in way rdx, because of the access at r11 that rbx describes, and how
/// that one was used ([`trace::LineReplaced`]). Changes r8, r9 and r12.
fn record_replaced(c: &mut Asm, cache: FirstLevel) {
    let (bytes, count) = (arena::DATA_USES as u32, arena::DATA_USES as u32 + 8);
    c.load_gs(R12, Scratch::TracePos as u32);
    c.gs_base8(0x89, RAX, R12, 16);
    // To two lines?
    c.load32(R8, RBX, 12);
    c.op_reg(0x01, R8, R11);
    c.op_reg(0x31, R8, R11); // the bits that differ between the first byte's address and the last one's
    c.mov_reg(R9, RDX);
    c.and_imm(R8, -(cache.line as i32));
    let one = c.jcc_away(E);
    c.alu_imm(0, R9, 1); // add
    c.patch_here(one);
    c.gs_base8_32(0x89, R9, R12, 4);
    c.gs_index(0x8b, R8, RDX, count);
    c.mov_imm(R9, u32::MAX.into());
    c.op_reg(0x39, R8, R9);
    c.cmov(ABOVE, R8, R9);
    c.gs_base8_32(0x89, R8, R12, 8);
    c.gs_index(0x8b, R8, RDX, bytes);
    if cache.line == 64 {
        // Two bytes are a part.
        c.mov_reg(R9, R8);
        c.shift(SHR, R9, 1);
        c.op_reg(0x09, R8, R9);
        c.mov_imm(R9, 0x5555_5555_5555_5555);
        c.extract_by(R8, R8, R9);
    }
    c.gs_base8_32(0x89, R8, R12, 12);
    c.load32(R8, RBX, 0);
    c.gs_base8_32(0x89, R8, R12, 0);
    c.mov_imm(R8, 0);
    c.gs_index(0x89, R8, RDX, bytes);
    c.gs_index(0x89, R8, RDX, count);
    c.lea_disp(R12, R12, 4 * trace::LineReplaced::WORDS as i32);
    c.store_gs(Scratch::TracePos as u32, R12);
}

/// Records that all lines of an access or a fetch have been told, whose site is what `what` points to. Changes rax and rcx.
fn record_lines_replaced(c: &mut Asm, what: Gpr) {
    c.load_gs(RCX, Scratch::TracePos as u32);
    c.load32(RAX, what, 0);
    c.gs_base8_32(0x89, RAX, RCX, 4);
    c.store_site(RCX, trace::LINES_REPLACED);
    c.lea_disp(RCX, RCX, 4 * trace::REPLACED_WORDS as i32);
    c.store_gs(Scratch::TracePos as u32, RCX);
}

/// Records that a line of code takes the place of another one, in way rsi ([`trace::SiteKind::CodeLine`]). rbx is what describes
/// the fetch, 8 bytes on if it is the second line. Changes r8, r9 and r12.
fn record_code_line(c: &mut Asm) {
    c.load_gs(R12, Scratch::TracePos as u32);
    c.walk_description(R8);
    c.mov_reg(R9, RSI);
    c.op_reg(0x39, RBX, R8);
    let first = c.jcc(E);
    c.alu_imm(0, R9, 1); // add
    c.patch_here(first);
    c.load32(RCX, R8, 16);
    c.op_reg(0x85, RCX, RCX);
    let one = c.jcc(E);
    c.alu_imm(0, R9, 2);
    c.patch_here(one);
    c.gs_base8_32(0x89, R9, R12, 4);
    c.load32(R8, R8, 0);
    c.gs_base8_32(0x89, R8, R12, 0);
    c.lea_disp(R12, R12, 8);
    c.store_gs(Scratch::TracePos as u32, R12);
}

/// Looks for line rax in the ways from rdx on. Returns the fields of jumps with its way in rdx; goes on with the way in rdx
/// that was used longest ago.
fn search(c: &mut Asm, cache: FirstLevel) -> Vec<usize> {
    let ways = arena::DATA_WAYS as u32;
    c.lea_disp(R9, RDX, (cache.ways * arena::DATA_WAY as u32) as i32); // r9: the set's end
    c.mov_all_ones(R8); // r8: the earliest time, in way r12
    let again = c.pos();
    c.gs_index(0x3b, RAX, RDX, ways);
    let found = c.jcc_away(E);
    c.gs_index(0x3b, R8, RDX, ways + 8);
    c.gs_cmov(ABOVE, R8, RDX, ways + 8);
    c.cmov(ABOVE, R12, RDX);
    c.alu_imm(0, RDX, arena::DATA_WAY as i32);
    c.op_reg(0x39, RDX, R9);
    c.jcc_back(NE, again);
    c.mov_reg(RDX, R12);
    vec![found]
}

/// The same with code for each way: where the line is, is predicted; which one is the earliest is found without branches,
/// two ways at a time.
fn search_unrolled(c: &mut Asm, cache: FirstLevel) -> Vec<usize> {
    let ways = arena::DATA_WAYS as u32;
    let at = |way: u32| ways + way * arena::DATA_WAY as u32;
    let equal: Vec<usize> = (0..cache.ways)
        .map(|way| {
            c.gs_index(0x3b, RAX, RDX, at(way));
            c.jcc_away(E)
        })
        .collect();
    for way in (0..cache.ways).step_by(2) {
        // The earlier one of two: its time in r8, its number in r9.
        c.mov_imm(R9, way.into());
        c.gs_index(0x8b, R8, RDX, at(way) + 8);
        if way + 1 < cache.ways {
            c.gs_index(0x39, R8, RDX, at(way + 1) + 8);
            c.gs_cmov(BELOW, R8, RDX, at(way + 1) + 8);
            c.add_carry(R9);
        }
        if way == 0 {
            c.mov_reg(R12, R8);
            c.mov_reg(RSI, R9);
        } else {
            c.op_reg(0x39, R8, R12);
            c.cmov(BELOW, R12, R8);
            c.cmov(BELOW, RSI, R9);
        }
    }
    c.shift(SHL, RSI, arena::DATA_WAY.trailing_zeros() as u8);
    c.op_reg(0x01, RDX, RSI);
    let over = c.jmp();
    let found = equal
        .into_iter()
        .enumerate()
        .map(|(way, field)| {
            c.patch_here(field);
            c.lea_disp(RDX, RDX, (way as u64 * arena::DATA_WAY) as i32);
            c.jmp()
        })
        .collect();
    c.patch_here(over);
    found
}

/// Where the status flags are saved, as LAHF and SETO give them.
const FLAGS: u32 = arena::SAVES + 8 * USED.len() as u32;

fn restore_flags(c: &mut Asm) {
    c.load_gs(RAX, FLAGS);
    c.flags_from_ax();
}

/// The walk of a fetch. `uses`: it records which line has to go. `frames`: frames are told.
pub(crate) fn emit_fetch_walk(c: &mut Asm, cache: FirstLevel, uses: bool, frames: bool) {
    let (lines, ways) = (arena::LINES as u32, arena::CODE_WAYS as u32);
    let used = if uses { USED.len() } else { USED_BY_FETCHES };
    save(c, 0..used);
    c.flags_to_ax();
    c.store_gs(FLAGS, RAX);
    c.walk_description(RBX);
    c.load_gs(RDI, Scratch::Clock as u32);
    c.load32(RAX, RBX, 4);
    c.op_reg(0x29, RDI, RAX); // rdi: the time
    c.mov_imm(RSI, 0); // rsi: whether a line has been missed
    let touch = c.pos();
    c.load32(RAX, RBX, 8); // rax: the line
    c.gs_index(0x8b, RCX, RAX, lines);
    c.op_reg(0x85, RCX, RCX);
    let hit = c.jcc(NE);
    c.load32(RDX, RBX, 12); // rdx: a way of the set
    c.mov_all_ones(R8); // r8: the earliest time, in way rsi
    if cache.ways <= UNROLLED {
        for way in 0..cache.ways {
            c.gs_index(0x8b, RCX, RDX, ways + 8 * way);
            c.lea_disp(R9, RDX, 8 * way as i32);
            c.gs_index(0x39, R8, RCX, lines);
            c.gs_cmov(BELOW, R8, RCX, lines);
            c.cmov(BELOW, RSI, R9);
        }
    } else {
        c.lea_disp(R9, RDX, (cache.ways * 8) as i32); // r9: the set's end
        let again = c.pos();
        c.gs_index(0x8b, RCX, RDX, ways);
        c.gs_index(0x39, R8, RCX, lines);
        c.gs_cmov(BELOW, R8, RCX, lines);
        c.cmov(BELOW, RSI, RDX);
        c.alu_imm(0, RDX, 8);
        c.op_reg(0x39, RDX, R9);
        c.jcc_back(NE, again);
    }
    c.gs_index(0x8b, RCX, RSI, ways);
    c.gs_zero(RCX, lines);
    c.gs_index(0x89, RAX, RSI, ways);
    if uses {
        record_code_line(c);
    }
    c.mov_imm(RSI, 1);
    c.patch_here(hit);
    c.gs_index(0x89, RDI, RAX, lines);
    c.lea_disp(RDI, RDI, 1);
    // A second line: its words are 8 bytes on. rbx comes there only once, since a walk has two lines at most.
    c.walk_description(RDX);
    c.op_reg(0x39, RDX, RBX);
    let both = c.jcc(NE);
    c.lea_disp(RBX, RBX, 8);
    c.load32(RAX, RBX, 8);
    c.op_reg(0x85, RAX, RAX);
    c.jcc_back(NE, touch);
    c.patch_here(both);
    c.op_reg(0x85, RSI, RSI);
    let hit = c.jcc_away(E);
    if uses {
        // The record of the only line has told it all.
        c.load32(RAX, RDX, 16);
        c.op_reg(0x85, RAX, RAX);
        let one_line = c.jcc(E);
        record_lines_replaced(c, RDX);
        c.patch_here(one_line);
    } else {
        if frames {
            c.tell_frames([RAX, RCX, R8]);
        }
        c.load_gs(RCX, Scratch::TracePos as u32);
        c.load32(RAX, RDX, 0);
        c.gs_base8_32(0x89, RAX, RCX, 0);
        c.lea_disp(RCX, RCX, 4);
        c.store_gs(Scratch::TracePos as u32, RCX);
    }
    c.patch_here(hit);
    restore_flags(c);
    restore(c, 0..used);
    c.walk_returns();
}

/// A repeated string instruction, as [`crate::trace::SiteKind::Repeated`] says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub(crate) size: u8,
    pub(crate) source: bool,
    pub(crate) target: Target,
    pub(crate) target_first: bool,
    pub(crate) narrow: bool,
}

impl Repeat {
    /// What an iteration does, in order: whether at \[rdi\].
    pub(crate) fn order(self) -> impl Iterator<Item = bool> {
        let target = self.target != Target::Unused;
        [(target && self.target_first, true), (self.source, false), (target && !self.target_first, true)]
            .into_iter()
            .filter_map(|(is, at_target)| is.then_some(at_target))
    }

    /// Whether two lines may contend for the only place of their set, so that every iteration counts.
    pub(crate) fn contends(self, cache: FirstLevel) -> bool {
        cache.ways == 1 && self.source && self.target != Target::Unused
    }
}

/// Walks what a repeated instruction has accessed, from the scratch words with its registers before to its registers after.
/// After an iteration, those that stay within the same lines all hit and change nothing, so they are skipped, unless uses of
/// lines are kept. All registers
/// and flags come back as they were. Returns where the loop begins: with rax iterations to go, by rcx bytes from rbx and rdx
/// on.
pub(super) fn emit_repeat_walk(c: &mut Asm, cache: FirstLevel, repeat: Repeat, site: u32, uses: bool) -> usize {
    const REGISTERS: [Gpr; 7] = [RAX, RCX, RDX, RBX, RSI, RDI, R8];
    let saves = arena::SAVES + 128;
    let flags = saves + 8 * REGISTERS.len() as u32;
    let size = i32::from(repeat.size);
    let log = repeat.size.trailing_zeros() as u8;
    for (n, r) in REGISTERS.into_iter().enumerate() {
        c.store_gs(saves + 8 * n as u32, r);
    }
    c.flags_to_ax();
    c.store_gs(flags, RAX);
    c.reload(RAX, Scratch::Repeat);
    c.reload(RBX, Scratch::RepeatSource);
    c.reload(RDX, Scratch::RepeatTarget);
    let narrow = |c: &mut Asm, registers: &[Gpr]| {
        for &r in registers.iter().filter(|_| repeat.narrow) {
            c.mov_reg32(r, r);
        }
    };
    narrow(c, &[RCX, RSI, RDI, RBX, RDX]);
    c.op_reg(0x29, RAX, RCX);
    narrow(c, &[RAX]); // rax: iterations that are left; rbx, rdx: where
    c.mov_imm(RCX, size as u64); // rcx: the step
    // By a register that the instruction uses: another one may have been changed.
    let (moved, from) = if repeat.source { (RSI, RBX) } else { (RDI, RDX) };
    c.op_reg(0x29, moved, from);
    let up = c.jcc(NOT_SIGN);
    c.not(RCX);
    c.lea_disp(RCX, RCX, 1);
    c.patch_here(up);
    let again = c.pos();
    c.op_reg(0x85, RAX, RAX);
    let end = c.jcc(E);
    for at_target in repeat.order() {
        c.store_gs(Scratch::WalkAddress as u32, if at_target { RDX } else { RBX });
        c.add_gs(Scratch::Clock as u32, 2);
        c.call_walk(Scratch::AccessWalk);
        let over = c.jmp_away();
        c.words(&access_words(&[(site + 1 + u32::from(at_target), 1, 0, size as u16)]));
        c.patch_here(over);
    }
    c.lea_disp(RAX, RAX, -1);
    c.op_reg(0x01, RBX, RCX);
    c.op_reg(0x01, RDX, RCX);
    narrow(c, &[RBX, RDX]);
    if uses || repeat.contends(cache) {
        c.jmp_back(again);
    } else {
        c.mov_reg(RSI, RAX); // rsi: iterations to skip
        for at_target in repeat.order() {
            c.mov_reg(RDI, if at_target { RDX } else { RBX });
            c.and_imm(RDI, cache.line as i32 - 1); // rdi: the offset in the line
            c.mov_imm(R8, 0); // r8: iterations in the line that the last one was in
            c.op_reg(0x85, RCX, RCX);
            let down = c.jcc(SIGN);
            c.cmp_imm(RDI, size);
            let none_up = c.jcc(BELOW);
            c.mov_imm(R8, cache.line.into());
            c.op_reg(0x29, R8, RDI);
            c.shift(SHR, R8, log);
            let have = c.jmp();
            c.patch_here(down);
            c.cmp_imm(RDI, cache.line as i32 - 2 * size);
            let none_down = c.jcc(GREATER);
            c.mov_reg(R8, RDI);
            c.shift(SHR, R8, log);
            c.lea_disp(R8, R8, 1);
            for field in [have, none_up, none_down] {
                c.patch_here(field);
            }
            c.op_reg(0x39, R8, RSI);
            c.cmov(BELOW, RSI, R8);
        }
        c.op_reg(0x29, RAX, RSI);
        c.multiply_by(RSI, RCX);
        c.op_reg(0x01, RBX, RSI);
        c.op_reg(0x01, RDX, RSI);
        narrow(c, &[RBX, RDX]);
        c.jmp_back(again);
    }
    c.patch_here(end);
    c.load_gs(RAX, flags);
    c.flags_from_ax();
    for (n, r) in REGISTERS.into_iter().enumerate() {
        c.load_gs(r, saves + 8 * n as u32);
    }
    again
}
