//! The ways of the data cache, and which of their lines the table shows ([`arena::DATA_TAGS`]), as pieces of the walk. Registers are
//! those of the walk: rax the line, rcx its entry, rdx a way of its set.

use super::{R8, R9, RAX, RCX, RDX, RSI, UNROLLED};
use crate::arena;
use crate::asm::{Asm, Gpr};
use crate::emit::instructions::{BELOW, E, NE, SHL, SHR};
use crate::trace::FirstLevel;

/// What is rarely executed of a walk, and stands behind it: the field of the jump that leads there, and where it goes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rare {
    /// The line that goes, r8, is not the one that its entry shows.
    NotShown { field: usize, back: usize },
    /// The entry of the line that comes shows another one.
    Displaced { field: usize, free: Gpr, back: usize },
}

/// Where the times of the ways' lines are, less [`OWN`] and the way.
const WHERE: u32 = arena::DATA_WAYS as u32 + 8;

/// When the ways' lines were used last, if their entries do not show them.
pub(super) const OWN: u32 = arena::DATA_OWN as u32;

/// Into rcx: the entry of line rax. Returns the field of a jump that leaves if that shows it (`leaves` is [`E`]), or if it does not
/// ([`NE`]). Changes rdx.
pub(super) fn look_up(c: &mut Asm, cache: FirstLevel, leaves: u8) -> usize {
    c.entry(RCX, RAX, cache.line.trailing_zeros());
    c.mov_reg(RDX, RAX);
    c.gs_index(0x03, RDX, RCX, arena::DATA_TAGS as u32);
    c.jcc_away(leaves)
}

/// Into rdx: the first way of line rax's set. Returns the field of a jump that leaves if the line may be in one of them, and where
/// it goes on if it is not.
pub(super) fn look_for_hidden(c: &mut Asm, cache: FirstLevel) -> (usize, usize) {
    c.mov_reg(RDX, RAX);
    c.shift(SHR, RDX, cache.line.trailing_zeros() as u8);
    c.and_imm(RDX, cache.sets as i32 - 1);
    c.multiply(RDX, RDX, (cache.ways * arena::DATA_WAY as u32) as i32);
    c.gs_index32_by(7, RCX, arena::DATA_HIDDEN as u32, 0); // cmp
    (c.jcc_away(NE), c.pos())
}

/// Some line of entry rcx is hidden, perhaps rax in one of the ways from rdx on: goes on there, in rdx, or at `missed`. It is as good
/// as shown then. Changes r8 and r9.
pub(super) fn find_hidden(c: &mut Asm, cache: FirstLevel, missed: usize) {
    let ways = arena::DATA_WAYS as u32;
    c.mov_reg(R8, RDX);
    c.lea_disp(R9, RDX, (cache.ways * arena::DATA_WAY as u32) as i32); // r9: the set's end
    let again = c.pos();
    c.gs_index(0x3b, RAX, R8, ways);
    let found = c.jcc(E);
    c.alu_imm(0, R8, arena::DATA_WAY as i32);
    c.op_reg(0x39, R8, R9);
    c.jcc_back(NE, again);
    c.jmp_back(missed);
    c.patch_here(found);
    c.mov_reg(RDX, R8);
    c.lea_disp(R8, RAX, arena::SHOWN);
    c.gs_index(0x89, R8, RDX, ways);
    c.gs_index32_by(5, RCX, arena::DATA_HIDDEN as u32, 1); // sub
}

/// Line rax takes the place of the one used longest ago, of the ways from rdx on; rdx is that one's then. Changes r8, r9, rsi and
/// `free`.
pub(super) fn replace(c: &mut Asm, cache: FirstLevel, free: Gpr, rare: &mut Vec<Rare>) {
    if cache.ways <= UNROLLED {
        oldest_unrolled(c, cache, free)
    } else {
        oldest(c, cache, free)
    }
    c.gs_index(0x8b, R8, RDX, arena::DATA_WAYS as u32);
    c.lea_disp(R9, RAX, arena::SHOWN);
    c.gs_index(0x89, R9, RDX, arena::DATA_WAYS as u32);
    c.test_lowest_bit(R8);
    let field = c.jcc_away(E);
    c.entry(R9, R8, cache.line.trailing_zeros());
    c.mov_imm(R8, arena::NOTHING);
    c.gs_index(0x89, R8, R9, arena::DATA_TAGS as u32);
    rare.push(Rare::NotShown { field, back: c.pos() });
}

/// Entry rcx shows line rax, in way rdx, and has its `time`. Changes r8 and `free`.
pub(super) fn show(c: &mut Asm, cache: FirstLevel, time: Gpr, free: Gpr, rare: &mut Vec<Rare>) {
    // Does it show another line? That differs in bits above those that choose the entry.
    c.mov_reg(R8, RAX);
    c.gs_index(0x03, R8, RCX, arena::DATA_TAGS as u32);
    c.shift(SHL, R8, (arena::DATA_ENTRIES.leading_zeros() + 1 - cache.line.trailing_zeros()) as u8);
    let field = c.jcc_away(E);
    rare.push(Rare::Displaced { field, free, back: c.pos() });
    c.mov_reg(R8, RAX);
    c.negate(R8);
    c.gs_index(0x89, R8, RCX, arena::DATA_TAGS as u32);
    c.gs_index32(0x89, RDX, RCX, arena::DATA_PLACES as u32);
    c.lea_disp(R8, RCX, arena::DATA_TIMES as i32 - OWN as i32);
    c.op_reg(0x29, R8, RDX);
    c.gs_index(0x89, R8, RDX, WHERE);
    c.gs_index(0x89, time, RCX, arena::DATA_TIMES as u32);
}

/// A line that its entry rcx shows after all: leaves `time` with it, and goes on at `back`.
pub(super) fn use_shown(c: &mut Asm, time: Gpr, back: usize) {
    c.gs_index(0x89, time, RCX, arena::DATA_TIMES as u32);
    c.jmp_back(back);
}

/// What has been left for later.
pub(super) fn rarely(c: &mut Asm, cache: FirstLevel, rare: Vec<Rare>) {
    for what in rare {
        match what {
            Rare::NotShown { field, back } => {
                c.patch_here(field);
                // Nothing has been in this way yet, or line 0, which is looked for in any case.
                c.op_reg(0x85, R8, R8);
                c.jcc_back(E, back);
                c.entry(R9, R8, cache.line.trailing_zeros());
                c.gs_index32_by(5, R9, arena::DATA_HIDDEN as u32, 1); // sub
                c.jmp_back(back);
            }
            Rare::Displaced { field, free, back } => {
                c.patch_here(field);
                c.gs_index32(0x8b, R8, RCX, arena::DATA_PLACES as u32);
                c.gs_index_by(4, R8, arena::DATA_WAYS as u32, !arena::SHOWN as i8); // and
                c.gs_index(0x8b, free, RCX, arena::DATA_TIMES as u32);
                c.gs_index(0x89, free, R8, OWN);
                c.gs_zero(R8, WHERE);
                c.gs_index32_by(0, RCX, arena::DATA_HIDDEN as u32, 1); // add
                c.jmp_back(back);
            }
        }
    }
}

/// Into `to`: when the line was used last that is so many ways behind rdx.
fn load_time(c: &mut Asm, to: Gpr, way: u32) {
    let way = way * arena::DATA_WAY as u32;
    c.gs_index(0x8b, to, RDX, WHERE + way);
    c.gs_sum(0x8b, to, RDX, to, OWN + way);
}

/// Turns rdx from the first way of a set into the one used longest ago. Changes r8, r9, rsi and `free`.
fn oldest(c: &mut Asm, cache: FirstLevel, free: Gpr) {
    c.lea_disp(R9, RDX, (cache.ways * arena::DATA_WAY as u32) as i32); // r9: the set's end
    c.mov_all_ones(R8); // r8: the earliest time, in way `free`
    let again = c.pos();
    load_time(c, RSI, 0);
    c.op_reg(0x39, RSI, R8);
    c.cmov(BELOW, R8, RSI);
    c.cmov(BELOW, free, RDX);
    c.alu_imm(0, RDX, arena::DATA_WAY as i32);
    c.op_reg(0x39, RDX, R9);
    c.jcc_back(NE, again);
    c.mov_reg(RDX, free);
}

/// The same with code for each way.
fn oldest_unrolled(c: &mut Asm, cache: FirstLevel, free: Gpr) {
    earliest(c, cache.ways, R8, free, |c, way, pair| {
        load_time(c, R8, way);
        if pair {
            load_time(c, R9, way + 1);
            c.op_reg(0x39, R9, R8);
            c.cmov(BELOW, R8, R9);
        }
    });
    c.shift(SHL, RSI, arena::DATA_WAY.trailing_zeros() as u8);
    c.op_reg(0x01, RDX, RSI);
}

/// Into rsi: the number of the way with the earliest time, found two ways at a time, without branches. `load` is told a way, and whether
/// there is one behind it; it loads `time`, the earlier one of the two, with CF set if that is the second. Changes `best` and r9.
pub(super) fn earliest(c: &mut Asm, ways: u32, time: Gpr, best: Gpr, load: impl Fn(&mut Asm, u32, bool)) {
    for way in (0..ways).step_by(2) {
        let pair = way + 1 < ways;
        load(c, way, pair);
        c.mov_imm(R9, way.into());
        if pair {
            c.add_carry(R9);
        }
        if way == 0 {
            c.mov_reg(best, time);
            c.mov_reg(RSI, R9);
        } else {
            c.op_reg(0x39, time, best);
            c.cmov(BELOW, best, time);
            c.cmov(BELOW, RSI, R9);
        }
    }
}
