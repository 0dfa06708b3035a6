//! What is rarely executed of the checks of caches, behind the hot code: accesses to two lines that the table knows are settled
//! here; all else is handed to the routines of [`super::miss_path`]. Where that goes on, it is as if the check had held.
//!
//! Invariants: registers and flags are the guest's again, but for those that the check in line has taken; a line's time may
//! be stored twice for one use, never later than that of the next one.

use grind_isa::events::Place;
use grind_trace::FirstLevel;

use grind_asm::instructions::{ABOVE, NE};
use grind_layout as layout;
use grind_layout::registers::Gpr;

use super::Emitter;
use super::bytes::{Used, bytes};
use super::miss_path::described_members;
use crate::miss_path::FetchCode;
use crate::miss_path::MissPathCode;
use crate::stack::StackCode;

/// Lines that an instruction is fetched from: [`layout::LINE`] times the number, and the offset of the set; zeros if it is only one.
pub(super) type Lines = [(u32, u32); 2];

/// No lines, see [`Lines`].
pub(super) const NO_LINES: Lines = [(0, 0); 2];

/// Bytes of a line of the processor's own caches.
const PROCESSOR_LINE: u64 = 64;

/// So many bytes are seldom in two lines, if it is a single access: what settles that is not worth its place, and it takes the miss path.
const SELDOM_TWO: u16 = 8;

/// What remains to be emitted behind the hot code.
#[derive(Clone, Debug)]
pub(super) enum Cold {
    /// An instruction whose line is not in the cache, or may not be.
    /// `at`: where the first of the lines is, if that matters.
    Fetch { from: usize, back: usize, lines: Lines, site: u32, at: Option<u64> },
    /// A conditional branch that was mispredicted; `free` may be changed, flags may not.
    Mispredicted { from: usize, back: usize, site: u32, free: Gpr },
    /// A group of accesses of which the first or the last line is not known to the table, or which is to be told by what it has `used`. The
    /// registers and flags may be changed.
    MissPath {
        from: Vec<usize>,
        back: usize,
        place: Place,
        offset: i64,
        regs: [Gpr; 2],
        words: Vec<u32>,
        used: Option<Used>,
    },
    /// A group of accesses that is not settled.
    Accesses { from: usize, back: usize, cache: FirstLevel, group: Unsettled },
}

/// A group of accesses that is not to one line that the table knows.
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    /// The lowest address.
    pub(super) place: Place,
    pub(super) offset: i64,
    /// Bytes.
    pub(super) span: u16,
    /// Unless `live`, `a` is the address less that of the line in the table's entry `b`.
    pub(super) a: Gpr,
    pub(super) b: Gpr,
    /// Flags are to be kept.
    pub(super) live: bool,
    pub(super) words: Vec<u32>,
    /// Which bytes it uses, if that is told. (Flags are not to be kept then.)
    pub(super) used: Option<Used>,
}

impl Emitter<'_> {
    /// Emits what was left for later.
    pub(super) fn cold_parts(&mut self) {
        let mut parts = std::mem::take(&mut self.tracer.cold);
        // Fetches first, which are the most: near to one another, and to the hot code.
        parts.sort_by_key(|part| !matches!(part, Cold::Fetch { .. }));
        for part in parts {
            let c = &mut self.out.code;
            match part {
                Cold::Fetch { from, back, lines, site, at: address } => {
                    // In one line of the processor's cache, if it fits: large programs execute this so seldom that it is
                    // not in the processor's cache, and so often that fetching it counts.
                    let (start, begin) = (c.here(), c.pos());
                    c.miss_path_of_fetch(site, lines, address);
                    let field = c.jmp_away();
                    let (at, len) = (start % PROCESSOR_LINE, c.here() - start);
                    let gap = if at + len > PROCESSOR_LINE && len <= PROCESSOR_LINE { PROCESSOR_LINE - at } else { 0 };
                    // (So far nothing there depends on its place.)
                    c.buf.splice(begin..begin, std::iter::repeat_n(0xcc, gap as usize));
                    c.patch_rel32(from, start + gap);
                    c.patch_rel32(field + gap as usize, c.base + back as u64);
                }
                Cold::Mispredicted { from, back, site, free } => {
                    c.patch_here(from);
                    c.tell_stack(free);
                    c.record_site(free, site);
                    c.jmp_back(back);
                }
                Cold::MissPath { from, back, place, offset, regs: [a, b], words, used } => {
                    from.into_iter().for_each(|field| c.patch_here(field));
                    let back = c.base + back as u64;
                    let field = self.miss_path(&place, offset, a, b, &words);
                    match used {
                        None => self.out.code.patch_rel32(field, back),
                        Some(used) => {
                            self.out.code.patch_here(field);
                            self.tell_bytes(used, [a, b], back);
                        }
                    }
                }
                Cold::Accesses { from, back, cache, mut group } => {
                    c.patch_here(from);
                    let back = c.base + back as u64;
                    let used = group.used.take();
                    let Unsettled { a, b, live, .. } = group;
                    if live {
                        self.save_flags(b);
                    }
                    let settled = self.settle(group, cache);
                    let c = &mut self.out.code;
                    if let Some(used) = used {
                        settled.into_iter().for_each(|field| c.patch_here(field));
                        self.tell_bytes(used, [a, b], back);
                    } else if live {
                        settled.into_iter().for_each(|field| c.patch_here(field));
                        self.restore_flags(b);
                        let c = &mut self.out.code;
                        let field = c.jmp_away();
                        c.patch_rel32(field, back);
                    } else {
                        settled.into_iter().for_each(|field| c.patch_rel32(field, back));
                    }
                }
            }
        }
    }

    /// Into `b`: the entry of address `a`.
    pub(super) fn entry_of(&mut self, a: Gpr, b: Gpr, cache: FirstLevel) {
        self.out.code.entry(b, a, cache.line.trailing_zeros());
    }

    /// Settles a group if it lies in two lines that the table knows; else it takes the miss path. Returns the fields of jumps to where
    /// it goes on.
    fn settle(&mut self, group: Unsettled, cache: FirstLevel) -> Vec<usize> {
        let Unsettled { place, offset, span, a, b, live, words, used: _ } = group;
        let mut miss_path = Vec::new();
        let mut settled = Vec::new();
        let several = described_members(&words).count() > 1;
        if self.tracer.settings.keeps_uses() {
            if let Some(shape) = Shape::of(&words).filter(|_| span > 1 && cache.line == 64) {
                (miss_path, settled) = self.settle_uses(&shape, a, b, cache);
                miss_path.into_iter().for_each(|field| self.out.code.patch_here(field));
            }
        } else if several && self.orders_neighbours() {
            // One after the other.
        } else if span > SELDOM_TWO || several {
            if live {
                self.access_address(&place, offset, a, b);
                self.entry_of(a, b, cache);
                self.out.code.gs_index(0x03, a, b, layout::DATA_TAGS as u32);
            }
            let c = &mut self.out.code;
            c.cmp_imm(a, cache.line as i32 - 1);
            miss_path.push(c.jcc_away(ABOVE));
            // The first one. (It has its time even if the other one takes the miss path, and it too, once more.)
            c.use_entry(b);
            let next = self.find_next_line(a, b, cache);
            let c = &mut self.out.code;
            c.use_entry(b);
            settled.push(c.jmp_away());
            c.patch_here(next);
            if !several && self.tracer.settings.tlbs.is_none() && !self.tracer.settings.tells_ages() {
                // A stream comes to a line that way.
                settled.push(self.out.code.miss_path_of_second(a, b, &words));
            }
            miss_path.into_iter().for_each(|field| self.out.code.patch_here(field));
        }
        settled.push(self.miss_path(&place, offset, a, b, &words));
        settled
    }

    /// From the line that entry `b` shows to the next one: its entry in `b`, its address, negated, in `a`. Changes the flags;
    /// returns the field of a jump that leaves if that entry does not show it.
    fn find_next_line(&mut self, a: Gpr, b: Gpr, cache: FirstLevel) -> usize {
        let c = &mut self.out.code;
        c.gs_index(0x8b, a, b, layout::DATA_TAGS as u32);
        c.lea_disp(a, a, -(cache.line as i32));
        // The next line has the next entry, and the first one's follows the last one's.
        c.lea_disp(b, b, layout::DATA_ENTRY as i32);
        c.and_imm32(b, layout::LAST_ENTRY);
        c.gs_index(0x3b, a, b, layout::DATA_TAGS as u32); // cmp
        c.jcc_away(NE)
    }

    /// Takes along the miss path accesses. Changes `a`, `b` and the flags; returns the field of the jump to where it goes on.
    fn miss_path(&mut self, place: &Place, offset: i64, a: Gpr, b: Gpr, words: &[u32]) -> usize {
        self.access_address(place, offset, a, b);
        self.out.code.miss_path_of_accesses(a, words)
    }
}

/// What a group of accesses touches, a bit for each byte from its lowest one on.
#[derive(Clone, Debug, Default)]
struct Shape {
    bytes: u64,
    /// The first and the last bytes of accesses: the number of accesses is that of bits in all of these.
    firsts: Vec<u64>,
    lasts: Vec<u64>,
}

impl Shape {
    /// The most words of first or last bytes.
    const MOST: usize = 3;

    /// The group that these words describe ([`super::miss_path::access_words`]), unless too much happens to the same bytes.
    fn of(words: &[u32]) -> Option<Self> {
        let mut shape = Self::default();
        let add = |set: &mut Vec<u64>, bit: u32| match set.iter_mut().find(|word| **word >> bit & 1 == 0) {
            Some(word) => *word |= 1 << bit,
            None => set.push(1 << bit),
        };
        for [_, offset, less_one] in described_members(words) {
            shape.bytes |= bytes(less_one as u16 + 1) << offset;
            add(&mut shape.firsts, offset);
            add(&mut shape.lasts, offset + less_one);
        }
        (shape.firsts.len() <= Self::MOST && shape.lasts.len() <= Self::MOST).then_some(shape)
    }
}

impl Emitter<'_> {
    /// The same where uses of lines are kept, in lines of 64 bytes. Both lines are known before anything is noted. Returns the
    /// fields of jumps to the miss path, too.
    fn settle_uses(&mut self, shape: &Shape, a: Gpr, b: Gpr, cache: FirstLevel) -> (Vec<usize>, Vec<usize>) {
        let (offset, entry) = (layout::SAVES + 96, layout::SAVES + 104);
        let c = &mut self.out.code;
        c.cmp_imm(a, 63);
        let mut miss_path = vec![c.jcc_away(ABOVE)];
        c.store_gs(offset, a);
        c.store_gs(entry, b);
        miss_path.push(self.find_next_line(a, b, cache));
        self.out.code.lea_disp(Gpr::R9, Gpr::R9, 2);
        for (first, numbers) in [(false, &shape.lasts), (true, &shape.firsts)] {
            let c = &mut self.out.code;
            if first {
                c.load_gs(b, entry);
            }
            // The first one's is before that of the other one.
            c.lea_disp(a, Gpr::R9, -i32::from(first));
            c.gs_index(0x89, a, b, layout::DATA_TIMES as u32);
            c.gs_index32(0x8b, b, b, layout::DATA_PLACES as u32);
            for (n, &word) in std::iter::once(&shape.bytes).chain(numbers).enumerate() {
                let c = &mut self.out.code;
                c.load_gs(a, offset);
                if !first {
                    // By 64 less that.
                    c.negate(a);
                }
                let pos = c.shift_literal(first, a, a);
                self.out.literal_once(word, pos);
                let c = &mut self.out.code;
                if n == 0 {
                    c.gs_index(0x09, a, b, layout::DATA_USES as u32);
                } else {
                    c.count_bits(a, a);
                    c.gs_index(0x01, a, b, layout::DATA_USES as u32 + 8);
                }
            }
        }
        let settled = vec![self.out.code.jmp_away()];
        (miss_path, settled)
    }
}
