//! The ways of the data cache, and which of their lines the table shows ([`layout::DATA_TAGS`]), as pieces of the miss path. In rdx
//! is a way of the line's set, at last. What is done comes in this order: [`look_up`], [`look_for_hidden`], [`make_room`],
//! [`replace`], [`show`]; what has been found hidden is only shown. (An entry may have its line, [`show_tag`], as soon as
//! there is room: no way of the set has its time there then.)

use grind_layout as layout;
use grind_layout::registers::Gpr;
use grind_trace::FirstLevel;

use grind_asm::Asm;
use grind_asm::instructions::{BELOW, E, NE, NOT_SIGN, SHL, SHR};

use super::{R8, R10, R14, RAX, RCX, RDI, RDX, Told, UNROLLED, ages, bytes, shown};

/// Where a line and its entry are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Its address, or, as its tag is, the negated one.
    pub(super) reg: Gpr,
    pub(super) negated: bool,
    /// The offset of its entry in the table.
    pub(super) entry: Gpr,
    /// Registers that may be changed on the way.
    free: Gpr,
    other: Gpr,
    /// TLBs are simulated: a line that is shown no more is no more one of its page's.
    pages: bool,
    /// What is told of lines.
    told: Told,
}

impl Line {
    /// The same where this is told.
    pub(super) fn telling(self, told: Told) -> Self {
        Self { told, ..self }
    }
}

/// In most miss paths.
pub(super) const LINE: Line =
    Line { reg: RAX, negated: false, entry: RCX, free: R8, other: R14, pages: false, told: Told::NOTHING };

/// The same where TLBs are simulated.
pub(super) const LINE_OF_PAGE: Line = Line { pages: true, ..LINE };

/// In the miss path of a second line ([`Asm::miss_path_of_second`]).
pub(super) const SECOND: Line =
    Line { reg: R8, negated: true, entry: R10, free: RDI, other: RCX, pages: false, told: Told::NOTHING };

/// What is rarely executed of a miss path, and stands behind it: the field of the jump that leads there, and where it goes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rare {
    /// The line that goes, from way rdx, is not one that its entry shows.
    NotShown { field: usize, free: [Gpr; 2], back: usize },
    /// The entry of the line that comes shows another one.
    Displaced { field: usize, line: Line, back: usize },
}

/// Where what a way has to say of its line's time leads to: a tag, and the time.
pub(super) const LINE_TAG: u32 = layout::NOWHERE as u32;
pub(super) const LINE_TIME: u32 = LINE_TAG + 8;

/// When the ways' lines were used last, if their entries do not show them.
pub(super) const OWN: u32 = layout::DATA_OWN as u32 + 8;

/// Into rcx: the entry of line rax; into rdx: the difference from the line that it shows. Returns the field of a jump that
/// leaves if that is none (`leaves` is [`E`]), or if there is one ([`NE`]).
pub(super) fn look_up(c: &mut Asm, cache: FirstLevel, leaves: u8) -> usize {
    c.entry(RCX, RAX, cache.line.trailing_zeros());
    difference(c, LINE);
    c.jcc_away(leaves)
}

/// Into rdx: the difference of a line from the one that its entry shows, if any.
pub(super) fn difference(c: &mut Asm, line: Line) {
    if line.negated {
        c.gs_index(0x8b, RDX, line.entry, layout::DATA_TAGS as u32);
        c.op_reg(0x29, RDX, line.reg);
    } else {
        c.mov_reg(RDX, line.reg);
        c.gs_index(0x03, RDX, line.entry, layout::DATA_TAGS as u32);
    }
}

/// Into `first`: the first way of the line's set. Returns the field of a jump that leaves if the line may be in one of them,
/// and where it goes on if it is not.
pub(super) fn look_for_hidden(c: &mut Asm, cache: FirstLevel, line: Line, first: Gpr) -> (usize, usize) {
    first_way(c, cache, line, first);
    c.gs_index32_by(7, line.entry, layout::DATA_HIDDEN as u32, 0); // cmp
    (c.jcc_away(NE), c.pos())
}

/// Into `first`: the first way of the line's set.
pub(super) fn first_way(c: &mut Asm, cache: FirstLevel, line: Line, first: Gpr) {
    // The bits that choose the set are the lowest of those that choose the entry.
    let scale = if u64::from(cache.sets) <= layout::DATA_ENTRIES {
        c.mov_reg32(first, line.entry);
        c.and_imm32(first, (cache.sets - 1) * layout::DATA_ENTRY as u32);
        layout::DATA_WAY / layout::DATA_ENTRY
    } else {
        c.mov_reg(first, line.reg);
        if line.negated {
            c.negate(first);
        }
        c.shift(SHR, first, cache.line.trailing_zeros() as u8);
        c.and_imm(first, cache.sets as i32 - 1);
        layout::DATA_WAY
    };
    let bytes = cache.ways * scale as u32;
    if bytes.is_power_of_two() {
        c.shift(SHL, first, bytes.trailing_zeros() as u8);
    } else {
        c.multiply(first, first, bytes as i32);
    }
}

/// Some line of the entry is hidden, perhaps this one in one of the ways from `first` on: goes on there, in rdx, or at
/// `missed`. It is as good as shown then. Changes `first` and what is free.
pub(super) fn find_hidden(c: &mut Asm, cache: FirstLevel, line: Line, first: Gpr, missed: usize, rare: &mut Vec<Rare>) {
    let Line { free, other: end, .. } = line;
    let negate = |c: &mut Asm| {
        if !line.negated {
            c.negate(line.reg);
        }
    };
    negate(c);
    c.mov_reg(free, first);
    c.lea_disp(end, free, (cache.ways * layout::DATA_WAY as u32) as i32); // the set's end
    let again = c.pos();
    c.gs_index(0x3b, line.reg, free, layout::DATA_WAYS as u32);
    let other = c.jcc(NE);
    // What a way that is shown says of its line is not to be believed.
    c.gs_index_by(7, free, layout::DATA_WHERE as u32, 0); // cmp
    let found = c.jcc(NOT_SIGN);
    c.patch_here(other);
    c.alu_imm(0, free, layout::DATA_WAY as i32);
    c.op_reg(0x39, free, end);
    c.jcc_back(NE, again);
    negate(c);
    c.jmp_back(missed);
    c.patch_here(found);
    negate(c);
    c.mov_reg(first, free);
    make_room(c, cache, line, rare);
    c.mov_reg(RDX, first);
    c.gs_index32_by(5, line.entry, layout::DATA_HIDDEN as u32, 1); // sub
}

/// The line's entry shows no other line any more; rdx is what [`difference`] has left there, and is changed. Changes what is
/// free.
pub(super) fn make_room(c: &mut Asm, cache: FirstLevel, line: Line, rare: &mut Vec<Rare>) {
    // Does it show another line? That differs in bits above those that choose the entry.
    c.shift(SHL, RDX, (layout::DATA_ENTRIES.leading_zeros() + 1 - cache.line.trailing_zeros()) as u8);
    let field = c.jcc_away(E);
    rare.push(Rare::Displaced { field, line, back: c.pos() });
}

/// The one used longest ago, of the ways from `first` on, is given up for the line: rdx is that. Changes what is free of the
/// line's, the registers that are `free` otherwise, and `first`, if there are more ways than [`UNROLLED`].
pub(super) fn replace(c: &mut Asm, cache: FirstLevel, line: Line, first: Gpr, free: [Gpr; 2], rare: &mut Vec<Rare>) {
    let [time, least] = free;
    let place = line.other;
    if cache.ways <= UNROLLED {
        let ways = (layout::DATA_WHERE as u32, layout::DATA_WAY as u32);
        earliest(c, cache.ways, first, ways, Some(LINE_TIME), [RDX, least, time, place]);
        c.shift(SHL, RDX, layout::DATA_WAY.trailing_zeros() as u8);
        c.op_reg(0x01, RDX, first);
    } else {
        oldest(c, cache, first, [least, time, place]);
    }
    c.gs_index(0x8b, place, RDX, layout::DATA_WHERE as u32);
    if line.told.ages {
        debug_assert!(!line.negated, "its address is recorded");
        ages::record(c, line.reg, place, [LINE_TAG, LINE_TIME]);
    }
    c.op_reg(0x85, place, place);
    let field = c.jcc_away(NOT_SIGN);
    if line.pages {
        shown::leave(c, place, LINE_TAG, [time, least]);
    }
    c.gs_store_imm(place, LINE_TAG, layout::NOTHING as i32);
    rare.push(Rare::NotShown { field, free: [line.free, place], back: c.pos() });
}

/// The line's entry shows it, in way rdx, and has its `time`. Changes what is free; the line itself stays if it is to be
/// `kept`, and is negated if not.
pub(super) fn show(c: &mut Asm, line: Line, time: Gpr, kept: bool) {
    let tag = if kept { line.free } else { line.reg };
    if kept {
        c.mov_reg(tag, line.reg);
    }
    if !line.negated {
        c.negate(tag);
    }
    show_tag(c, line, tag, time);
    show_in_way(c, line);
}

/// The first half of that: an entry shows a line by its tag, and has its time. Changes what is free if bytes are told, and the flags.
pub(super) fn show_tag(c: &mut Asm, line: Line, tag: Gpr, time: Gpr) {
    c.gs_index(0x89, tag, line.entry, layout::DATA_TAGS as u32);
    c.gs_index(0x89, time, line.entry, layout::DATA_TIMES as u32);
    if line.told.bytes {
        let free = if tag == line.free { line.other } else { line.free };
        bytes::show(c, line.entry, tag, free);
    }
}

/// The other half: way rdx says so. Changes what is free.
pub(super) fn show_in_way(c: &mut Asm, line: Line) {
    c.lea_disp(line.free, line.entry, -(layout::NOWHERE as i32));
    c.gs_index(0x89, line.free, RDX, layout::DATA_WHERE as u32);
}

/// A line that its entry rcx shows after all: leaves `time` with it, and goes on at `back`.
pub(super) fn use_shown(c: &mut Asm, time: Gpr, back: usize) {
    c.gs_index(0x89, time, RCX, layout::DATA_TIMES as u32);
    c.jmp_back(back);
}

/// What has been left for later. Changes what is free.
pub(super) fn rarely(c: &mut Asm, cache: FirstLevel, rare: Vec<Rare>) {
    for what in rare {
        match what {
            Rare::NotShown { field, free: [free, entry], back } => {
                c.patch_here(field);
                // Nothing has been in this way yet: the test has said so.
                c.jcc_back(E, back);
                c.gs_index(0x8b, free, RDX, layout::DATA_WAYS as u32);
                hidden_goes(c, cache, [free, entry]);
                c.jmp_back(back);
            }
            Rare::Displaced { field, line, back } => {
                c.patch_here(field);
                // The way that says that this entry shows its line. (Where there are more sets than entries, that is of another
                // set.)
                let Line { free: way, other, .. } = line;
                if line.pages {
                    shown::leave(c, line.entry, 0, [way, other]);
                }
                c.gs_index(0x8b, other, line.entry, layout::DATA_TAGS as u32);
                first_way(c, cache, Line { reg: other, negated: true, ..line }, way);
                c.lea_disp(other, line.entry, -(layout::NOWHERE as i32));
                let begin = c.jmp();
                let again = c.pos();
                c.alu_imm(0, way, layout::DATA_WAY as i32);
                c.patch_here(begin);
                c.gs_index(0x3b, other, way, layout::DATA_WHERE as u32); // cmp
                c.jcc_back(NE, again);
                c.gs_index(0x8b, other, line.entry, layout::DATA_TAGS as u32);
                c.gs_index(0x89, other, way, layout::DATA_WAYS as u32);
                c.gs_index(0x8b, other, line.entry, layout::DATA_TIMES as u32);
                c.gs_index(0x89, other, way, OWN);
                c.lea_disp(other, way, (layout::DATA_OWN - layout::NOWHERE) as i32);
                c.gs_index(0x89, other, way, layout::DATA_WHERE as u32);
                c.gs_index32_by(0, line.entry, layout::DATA_HIDDEN as u32, 1); // add
                c.jmp_back(back);
            }
        }
    }
}

/// A line goes that no entry shows: its tag is in the first register. Changes both.
pub(super) fn hidden_goes(c: &mut Asm, cache: FirstLevel, [line, entry]: [Gpr; 2]) {
    c.negate(line);
    c.entry(entry, line, cache.line.trailing_zeros());
    c.gs_index32_by(5, entry, layout::DATA_HIDDEN as u32, 1); // sub
}

/// Into rdx: the way that was used longest ago, of those from `first` on. Changes `first` and the others.
fn oldest(c: &mut Asm, cache: FirstLevel, first: Gpr, [least, end, time]: [Gpr; 3]) {
    c.mov_reg(end, first);
    c.alu_imm(0, first, (cache.ways * layout::DATA_WAY as u32) as i32);
    c.mov_all_ones(least); // the earliest time
    let again = c.pos();
    c.alu_imm(5, first, layout::DATA_WAY as i32); // sub
    c.gs_index(0x8b, time, first, layout::DATA_WHERE as u32);
    c.gs_index(0x8b, time, time, LINE_TIME);
    c.op_reg(0x39, time, least);
    c.cmov(BELOW, least, time);
    c.cmov(BELOW, RDX, first);
    c.op_reg(0x39, first, end);
    c.jcc_back(NE, again);
}

/// Into `number`: that of the way with the earliest time, of so many from `first` on. The word at `offset` of a way, from one
/// to the next `step` bytes on, leads to its time, which is at `times` from there; or is its time. Without branches, two ways
/// at a time: each has to wait for half as many before it.
pub(super) fn earliest(
    c: &mut Asm,
    ways: u32,
    first: Gpr,
    (offset, step): (u32, u32),
    times: Option<u32>,
    [number, least, time, other]: [Gpr; 4],
) {
    let load = |c: &mut Asm, to: Gpr, way: u32| {
        c.gs_index(0x8b, to, first, offset + way * step);
        if let Some(times) = times {
            c.gs_index(0x8b, to, to, times);
        }
    };
    for way in (0..ways).step_by(2) {
        load(c, time, way);
        let pair = way + 1 < ways;
        if pair {
            load(c, other, way + 1);
            c.op_reg(0x39, other, time);
            c.cmov(BELOW, time, other);
        }
        let chosen = if way == 0 { number } else { other };
        c.mov_imm(chosen, way.into());
        if pair {
            c.add_deferral(chosen);
        }
        if way == 0 {
            c.mov_reg(least, time);
        } else {
            c.op_reg(0x39, time, least);
            c.cmov(BELOW, least, time);
            c.cmov(BELOW, number, chosen);
        }
    }
}

/// A line that entry `entry` shows, whose tag is in `tag`.
pub(super) fn shown_line(tag: Gpr, entry: Gpr) -> Line {
    Line { reg: tag, negated: true, entry, ..LINE }
}
