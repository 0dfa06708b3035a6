//! Which way of a set was used longest ago, by groups of its ways ([`layout::DATA_GROUPS`]), as pieces of the miss path of a second line
//! ([`super::emit_second_miss_path`]): a stream that is not aligned takes most of its time for that.
//!
//! Of each group one way is kept, and a time before which none of the group has been used last. The earliest of these times is the one
//! to look for if its way was last used at just that time: nobody else was before it, since times of use only become later. If it
//! has been used since (or is not what it was), its group is looked at ([`Chosen::looks_again`]), and all begins anew. Where a way
//! is given up, the others of its group are looked at, while nothing waits for it: of four, one is mostly not used any more, so
//! that what is kept holds. (Of two it is not: in a stencil one in four was used again, which a Zen 4 seemed to predict badly.)
//!
//! Invariant: no time that is kept is later than the last use of any way of its group. So what is kept needs no care elsewhere: all
//! other miss paths may leave it as it is.
//!
//! In rdx is the index of a way here: [`layout::GROUP_INDEX`] for each way that comes before it, in all sets.

use grind_layout as layout;
use grind_layout::registers::Gpr;
use grind_trace::FirstLevel;

use grind_asm::Asm;
use grind_asm::instructions::{BELOW, E, NE, NOT_SIGN, SHL, SHR};

use super::ways::{LINE_TAG, LINE_TIME, Line, hidden_goes};
use super::{R8, RCX, RDI, RDX};

const WAYS: u64 = layout::DATA_WAYS;
const PLACES: u64 = layout::DATA_WHERE;
/// From the index of a way to what is known of it.
const SCALE: u64 = layout::DATA_WAY / layout::GROUP_INDEX;
const _: () = assert!(SCALE == 8, "an index is scaled by the processor");

/// Bits of an index that tell ways of a group apart, and from one group to the next.
const WITHIN: u64 = (layout::GROUP - 1) * layout::GROUP_INDEX;
const NEXT: u64 = layout::GROUP * layout::GROUP_INDEX;
const _: () = assert!(NEXT == 8, "words of groups are as far apart");

/// Jumps to what is rarely executed, and where it goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    again: usize,
    used_since: usize,
    not_shown: usize,
    back: usize,
}

/// Gives the way up that was used longest ago of those from `first` on: rdx is that. Changes r8 and rdi.
pub(super) fn give_up(c: &mut Asm, cache: FirstLevel, first: Gpr) -> Chosen {
    let at = |group: u32| layout::DATA_GROUPS as u32 + 8 * group;
    // The next line of a stream is in the next set, whose places are as a rule not in the nearest cache any more.
    let set = layout::DATA_WAY * u64::from(cache.ways);
    for at in (set..2 * set).step_by(64) {
        c.gs_prefetch(first, (PLACES + at) as u32);
    }
    let again = c.pos();
    c.mov_reg32(RDX, first);
    c.shift(SHR, RDX, (layout::DATA_WAY * layout::GROUP / 8).trailing_zeros() as u8);
    c.gs_index(0x8b, R8, RDX, at(0));
    for group in 1..cache.ways / layout::GROUP as u32 {
        c.gs_index(0x39, R8, RDX, at(group)); // cmp gs:[…], r8
        c.gs_cmov(BELOW, R8, RDX, at(group));
    }
    c.mov_reg32(RDX, R8);
    c.and_imm32(RDX, (1 << layout::GROUP_TIME) - 1);
    c.shift(SHR, R8, layout::GROUP_TIME as u8);
    c.gs_scaled(0x8b, RDI, RDX, PLACES);
    c.gs_index(0x39, R8, RDI, LINE_TIME); // cmp gs:[…], r8
    let used_since = c.jcc_away(NE);
    c.op_reg(0x85, RDI, RDI);
    let not_shown = c.jcc_away(NOT_SIGN);
    c.gs_store_imm(RDI, LINE_TAG, layout::NOTHING as i32);
    Chosen { again, used_since, not_shown, back: c.pos() }
}

/// The line is in way rdx now, which has been given up for it, and its entry shows it. Keeps which way of the others in the
/// group was used longest ago. Changes rcx, rdx, rdi, r8, and the register of the line's entry.
pub(super) fn take_place(c: &mut Asm, line: Line) {
    c.lea_disp(RDI, line.entry, -(layout::NOWHERE as i32));
    c.gs_scaled(0x89, RDI, RDX, PLACES);
    let others = [RCX, line.entry, RDX];
    for (way, n) in others.into_iter().zip(1..) {
        if way != RDX {
            c.mov_reg32(way, RDX);
        }
        c.alu_imm(6, way, n * layout::GROUP_INDEX as i32); // xor
    }
    let [best, ways @ ..] = others;
    c.gs_scaled(0x8b, RDI, best, PLACES);
    c.gs_index(0x8b, R8, RDI, LINE_TIME);
    for way in ways {
        c.gs_scaled(0x8b, RDI, way, PLACES);
        earlier(c, best, way);
    }
    keep(c, best, RDX);
}

/// If the line whose time rdi leads to was used before r8, `best` is its way, and r8 its time.
fn earlier(c: &mut Asm, best: Gpr, way: Gpr) {
    c.gs_index(0x39, R8, RDI, LINE_TIME); // cmp gs:[…], r8
    c.gs_cmov(BELOW, R8, RDI, LINE_TIME);
    c.cmov(BELOW, best, way);
}

/// Way `best`, last used at r8, is what is kept of the group of `any` way. Changes `any` and r8.
fn keep(c: &mut Asm, best: Gpr, any: Gpr) {
    c.shift(SHL, R8, layout::GROUP_TIME as u8);
    c.op_reg(0x09, R8, best); // or
    c.shift(SHR, any, NEXT.trailing_zeros() as u8);
    c.gs_scaled(0x89, R8, any, layout::DATA_GROUPS);
}

impl Chosen {
    /// What has been left for later. Changes rcx, too.
    pub(super) fn rarely(self, c: &mut Asm, cache: FirstLevel) {
        self.looks_again(c);
        c.patch_here(self.not_shown);
        // Nothing has been in this way yet: the test has said so.
        c.jcc_back(E, self.back);
        c.gs_scaled(0x8b, RDI, RDX, WAYS);
        hidden_goes(c, cache, [RDI, RCX]);
        c.jmp_back(self.back);
    }

    /// The way has been used since: looks at all of its group.
    fn looks_again(self, c: &mut Asm) {
        c.patch_here(self.used_since);
        c.alu_imm(4, RDX, !(WITHIN as i32)); // and
        c.mov_reg32(RCX, RDX);
        for n in 0..layout::GROUP {
            if n > 0 {
                c.alu_imm(0, RCX, layout::GROUP_INDEX as i32);
            }
            c.gs_scaled(0x8b, RDI, RCX, PLACES);
            match n {
                0 => c.gs_index(0x8b, R8, RDI, LINE_TIME),
                _ => earlier(c, RDX, RCX),
            }
        }
        keep(c, RDX, RCX);
        c.jmp_back(self.again);
    }
}
