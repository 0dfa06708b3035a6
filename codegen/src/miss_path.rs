//! The miss path of a first-level cache: a few routines, one copy of each a set of translations, that emitted code jumps to when
//! the checks in line do not settle an access or a fetch. They bring the thread's cache state up to date and record a miss.
//!
//! They are called on a stack of their own in the slot. What is to take the miss path is told by a few words behind the code that calls
//! ([`access_words`]), or on that stack ([`Asm::miss_path_of_fetch`]). All registers and flags come back as they were, but r8 and r10
//! from the miss path of a fetch. `level1` is the same in Rust, for the engine's own use, and `cg-sim` is the model that both are
//! tested against.
//!
//! Most miss paths are of misses, by accesses that lie in one line or two, so there is code for just that. What is seldom needed
//! (contexts, how lines are used) goes through the accesses one by one.
//!
//! Invariants: a line is in the cache if and only if a way holds it; what [`layout::DATA_TAGS`] shows is there, and
//! [`layout::DATA_HIDDEN`] counts at least what is there without being shown; an entry that shows nothing holds
//! [`layout::NOTHING`], or a line that belongs to another entry. A line and its time are in its entry as long as that shows it,
//! and else in its way's own words; the way says which.

mod ages;
mod bytes;
mod fetch;
mod groups;
mod owners;
mod pages;
mod repeat;
mod shown;
mod uses;
mod ways;

use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::{self as trace, FirstLevel, TraceSettings};

use grind_asm::Asm;
use grind_asm::instructions::{ABOVE_EQUAL, E, MISS_PATH_DESCRIPTION, NE, SECOND_DESCRIPTION, SHR};

use crate::stack::StackCode;

use super::stack;

pub(super) use bytes::bytes_words;
pub(crate) use bytes::emit_bytes_path;
pub(super) use fetch::FetchCode;
pub(crate) use fetch::emit_fetch_miss_path;
use pages::Buffer;
pub(super) use repeat::emit_repeat_miss_path;
pub use repeat::{Repeat, Repeated};
use uses::{record_line, record_lines_replaced, record_replaced, use_line};
use ways::{
    LINE, LINE_OF_PAGE, OWN, SECOND, difference, find_hidden, look_for_hidden, look_up, make_room, rarely, replace,
    show, show_in_way, show_tag, use_shown,
};

const RAX: Gpr = Gpr(0);
const RCX: Gpr = Gpr(1);
const RDX: Gpr = Gpr(2);
const RBX: Gpr = Gpr(3);
const RSP: Gpr = Gpr::RSP;
const RSI: Gpr = Gpr(6);
const RDI: Gpr = Gpr(7);
const R8: Gpr = Gpr(8);
const CLOCK: Gpr = Gpr::R9;
const R10: Gpr = Gpr(10);
const R12: Gpr = Gpr(12);
const R13: Gpr = Gpr(13);
const R14: Gpr = Gpr(14);

/// The registers that a miss path uses, in the order in which they are saved.
const USED: [Gpr; 11] = [RCX, RDX, RDI, RSI, R8, R14, R10, RBX, R12, R13, RAX];

/// Those that the miss path of accesses uses, which is told something in rax and may change that.
const ALL: std::ops::Range<usize> = 0..10;

/// Those of them that each miss path uses.
const FEW: std::ops::Range<usize> = 0..2;

/// Those for the second line of a single access, where that is known not to be shown; and where it is not known yet.
const FOR_SECOND: std::ops::Range<usize> = 0..4;
const ALONE: std::ops::Range<usize> = 0..7;

/// What describes accesses that are checked together to [`emit_access_miss_path`]: for all of them the site of the first one, its
/// offset, their span less one; then how many they are; then, if that is more than one, for each its site, its offset, its
/// bytes less one. `members` are site, offset and bytes of each, in order; `span` is from the lowest byte to the highest.
pub(super) fn access_words(members: &[(u32, u16, u16)], span: u16) -> Vec<u32> {
    let first = members[0];
    let mut words = vec![first.0, first.1.into(), u32::from(span) - 1, members.len() as u32];
    for &(site, offset, size) in members.iter().filter(|_| members.len() > 1) {
        words.extend([site, offset.into(), u32::from(size) - 1]);
    }
    words
}

/// Offsets in that, and in what describes a member.
const SITE: i32 = 0;
const OFFSET: i32 = 4;
const LESS_ONE: i32 = 8;
const COUNT: i32 = 12;
const MEMBERS: i32 = 16;
const MEMBER: i32 = 12;

/// The members that [`access_words`] has described.
pub(super) fn described_members(words: &[u32]) -> impl Iterator<Item = [u32; 3]> + '_ {
    let all = if words.len() > MEMBERS as usize / 4 { &words[MEMBERS as usize / 4..] } else { &words[..3] };
    all.as_chunks::<3>().0.iter().copied()
}

/// Ways into the miss paths of accesses.
pub(super) trait MissPathCode {
    /// Has accesses taken along the miss path that these words describe, from address `a` on, which is changed. Returns the field of a jump to where
    /// that goes on.
    fn miss_path_of_accesses(&mut self, a: Gpr, words: &[u32]) -> usize;
    /// Has told which bytes of lines accesses use, from address `a` on, which is changed; `words` are those of [`bytes_words`]. Returns the field
    /// of a jump to where that goes on.
    fn bytes_told(&mut self, a: Gpr, words: &[u32]) -> usize;
    /// Has a single access to two lines taken along the miss path that these words describe, of which the first line has been settled; the second
    /// one's address, negated, is in `a`, its entry in `b`. Both are changed. Returns the field of a jump to where that goes
    /// on.
    fn miss_path_of_second(&mut self, a: Gpr, b: Gpr, words: &[u32]) -> usize;
}

impl MissPathCode for Asm {
    fn miss_path_of_accesses(&mut self, a: Gpr, words: &[u32]) -> usize {
        described(self, a, SlotWord::AccessMissPath, words)
    }

    fn bytes_told(&mut self, a: Gpr, words: &[u32]) -> usize {
        described(self, a, SlotWord::BytesPath, words)
    }

    fn miss_path_of_second(&mut self, a: Gpr, b: Gpr, words: &[u32]) -> usize {
        // (Mostly they are where the miss path has them. What is in b may have gone where a was.)
        let (line, entry) = (SECOND.reg, SECOND.entry);
        let from = if b == line { a } else { b };
        let exchanges: Vec<[Gpr; 2]> = [[line, a], [entry, from]].into_iter().filter(|[to, from]| to != from).collect();
        let ahead = 3 * exchanges.len() as u64 + 8 + 4 + SECOND_DESCRIPTION as u64;
        self.nop(((self.here() + ahead).wrapping_neg() & 3) as usize);
        let begin = self.here();
        for &[to, from] in &exchanges {
            self.op_reg(0x87, to, from); // xchg
        }
        self.enter_miss_path_stack();
        self.call_miss_path(SlotWord::SecondMissPath);
        for &[to, from] in exchanges.iter().rev() {
            self.op_reg(0x87, to, from);
        }
        let field = self.jmp_away();
        self.fill_with_traps(|c| c.here() - begin >= ahead);
        self.words(words);
        field
    }
}

/// Calls the routine whose address is in a slot word for accesses from `a` on that `words` describe.
fn described(c: &mut Asm, a: Gpr, path: SlotWord, words: &[u32]) -> usize {
    // The words are read so many bytes on, perhaps while the processor checks alignment.
    let far = if path == SlotWord::BytesPath { 3 } else { 0 };
    let ahead = far + if a == RAX { 23 } else { 25 };
    c.nop(((c.here() + ahead).wrapping_neg() & 3) as usize);
    let begin = c.here();
    if a != RAX {
        c.exchange_rax(a);
    }
    c.enter_miss_path_stack();
    c.call_miss_path(path);
    c.exchange_rax(a);
    let field = c.jmp_away();
    debug_assert_eq!(c.here() - begin, ahead);
    c.words(words);
    field
}

/// What emits a miss path, if these settings need it.
pub(crate) type Emit = Option<Box<dyn Fn(&mut Asm)>>;

/// The miss paths: of accesses, of fetches, of the stack by frames, of second lines; and what tells of bytes. `frames`: frames are told.
pub fn all(settings: &TraceSettings, frames: bool) -> [Emit; 5] {
    let (uses, ways, tlbs) = (settings.keeps_uses(), settings.code_ways, settings.tlbs);
    let told = Told { bytes: settings.keeps_bytes(), ages: settings.tells_ages() };
    let owners = settings.keeps_owners();
    let second = settings.accesses.filter(|_| !uses && !told.ages && tlbs.is_none());
    if let (Some(tlbs), Some(data), Some(code)) = (tlbs, settings.accesses, settings.fetches) {
        let (of_data, of_code) = (
            Buffer { shape: tlbs.data, cache: data, code: false },
            Buffer { shape: tlbs.code, cache: code, code: true },
        );
        return [
            Some(boxed(move |c| emit_access_miss_path_with_pages(c, of_data, told))),
            Some(boxed(move |c| fetch::emit_fetch_miss_path_with_pages(c, of_code, ways))),
            None,
            None,
            None,
        ];
    }
    [
        settings.accesses.map(|cache| boxed(move |c| emit_access_miss_path(c, cache, uses, told, frames))),
        settings.fetches.map(|cache| boxed(move |c| emit_fetch_miss_path(c, cache, uses, ways, frames))),
        frames.then(|| boxed(stack::emit_stack_miss_path)),
        second.map(|cache| boxed(move |c| emit_second_miss_path(c, cache, told, frames))),
        told.bytes.then(|| boxed(move |c| emit_bytes_path(c, owners))),
    ]
}

fn boxed(emit: impl Fn(&mut Asm) + 'static) -> Box<dyn Fn(&mut Asm)> {
    Box::new(emit)
}

/// Where a miss path saves a register, by offset from the stack pointer: below it, where nobody else writes.
fn saved(n: usize) -> i32 {
    -8 * (n as i32 + 1)
}

fn save(c: &mut Asm, which: std::ops::Range<usize>) {
    for n in which {
        c.stack_op(0x89, USED[n], saved(n));
    }
}

fn restore(c: &mut Asm, which: std::ops::Range<usize>) {
    for n in which {
        c.stack_op(0x8b, USED[n], saved(n));
    }
}

/// The most ways for which a miss path has code for each.
const UNROLLED: u32 = 16;

/// The miss path of a group of accesses, whose lowest address is in rax. Changes rax and the flags. `uses`: it
/// keeps how lines are used, and records it where one has to go. `frames`: frames are told.
pub(crate) fn emit_access_miss_path(c: &mut Asm, cache: FirstLevel, uses: bool, told: Told, frames: bool) {
    c.store_gs(SlotWord::MissPathAddress.at(), RAX);
    if uses {
        save(c, ALL);
        return miss_path_of_each(c, cache, MISS_PATH_DESCRIPTION, Kept::Uses, frames);
    }
    let line = -(cache.line as i32);
    save(c, FEW);
    // Who uses a line matters as soon as there are contexts.
    c.cmp_gs_zero(SlotWord::ContextTime.at());
    let contexts = c.jcc_away(NE);
    c.miss_path_return_address(RCX);
    c.load32(RDX, RCX, MISS_PATH_DESCRIPTION + LESS_ONE);
    c.op_reg(0x01, RDX, RAX);
    c.op_reg(0x31, RDX, RAX); // the bits that differ between the first byte's address and the last one's
    c.and_imm(RDX, line);
    let two_lines = c.jcc_away(NE);
    miss_path_of_one_line(c, cache, told, frames);
    if told.ages {
        c.patch_here(two_lines);
    } else {
        // (In the middle of a line of the processor's cache: nearer to its beginning, it takes up to a sixth longer.)
        c.fill_with_traps(|c| c.here() % 64 == 40);
        c.patch_here(two_lines);
        miss_path_of_two_lines(c, cache, told, frames);
    }
    c.patch_here(contexts);
    save(c, FEW.end..ALL.end);
    miss_path_of_each(c, cache, MISS_PATH_DESCRIPTION, Kept::Lines(told), frames);
}

/// The same where TLBs are simulated, one access after the other.
fn emit_access_miss_path_with_pages(c: &mut Asm, of: Buffer, told: Told) {
    c.store_gs(SlotWord::MissPathAddress.at(), RAX);
    save(c, ALL);
    miss_path_of_each(c, of.cache, MISS_PATH_DESCRIPTION, Kept::Pages(of, told), false);
}

/// What is kept beside lines and their times.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// Nothing, or what is told of lines.
    Lines(Told),
    /// How lines are used.
    Uses,
    /// Which pages they are of, and what is told of lines.
    Pages(Buffer, Told),
}

/// What is told of lines, beside misses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Which bytes of them are used.
    pub(crate) bytes: bool,
    /// When those that go were used last. There is no shorter way for two lines then.
    pub(crate) ages: bool,
}

impl Told {
    pub(crate) const NOTHING: Self = Self { bytes: false, ages: false };
}

/// Takes along the miss path a group that lies in one line: only the first access can miss, and all that is kept of the others is when the last one
/// was. rax: its lowest address; [`FEW`] registers have been saved.
fn miss_path_of_one_line(c: &mut Asm, cache: FirstLevel, told: Told, frames: bool) {
    let of_line = LINE.telling(told);
    const MORE: std::ops::Range<usize> = 2..6;
    c.and_imm(RAX, -(cache.line as i32)); // rax: the line
    let shown = look_up(c, cache, E);
    save(c, MORE);
    if told.ages {
        // It is told with the time that it is then.
        c.increment(CLOCK);
    }
    let (hidden, missed) = look_for_hidden(c, cache, of_line, RSI);
    let mut rare = Vec::new();
    make_room(c, cache, of_line, &mut rare);
    replace(c, cache, of_line, RSI, [R8, RDI], &mut rare);
    let used = |c: &mut Asm| {
        c.miss_path_return_address(R14);
        if !told.ages {
            c.increment(CLOCK);
        }
        show(c, of_line, CLOCK, false);
    };
    used(c);
    record_miss(c, R14, MISS_PATH_DESCRIPTION, frames);
    let end = c.pos();
    restore(c, MORE);
    restore(c, FEW);
    c.miss_path_returns();
    // What is told of a line by its entry, after all: nobody has looked before.
    c.patch_here(shown);
    c.use_entry(RCX);
    restore(c, FEW);
    c.miss_path_returns();
    c.patch_here(hidden);
    find_hidden(c, cache, of_line, RSI, missed, &mut rare);
    used(c);
    c.jmp_back(end);
    rarely(c, cache, rare);
}

/// Takes along the miss path a group that lies in two lines, which are next to one another, so in different sets unless there is one access only.
/// Each of them is missed once at most, by the first access to it. rax: the lowest address; rcx: where the miss path returns to;
/// [`FEW`] registers have been saved.
fn miss_path_of_two_lines(c: &mut Asm, cache: FirstLevel, told: Told, frames: bool) {
    let of_line = LINE.telling(told);
    const MORE: std::ops::Range<usize> = 2..8;
    const FIRST: u64 = 1;
    const SECOND: u64 = 2;
    let several = second_alone(c, cache, told, frames);
    c.patch_here(several);
    save(c, MORE);
    c.and_imm(RAX, -(cache.line as i32));
    c.increment(CLOCK);
    c.mov_imm(RBX, 0); // rbx: which lines have been missed
    let mut rare = Vec::new();
    let mut asides = Vec::new();
    for which in [FIRST, SECOND] {
        let shown = look_up(c, cache, E);
        let (hidden, missed) = look_for_hidden(c, cache, of_line, RSI);
        make_room(c, cache, of_line, &mut rare);
        replace(c, cache, of_line, RSI, [R8, RDI], &mut rare);
        c.alu_imm(1, RBX, which as i32); // or
        let placed = c.pos();
        show(c, of_line, CLOCK, true);
        asides.push((shown, hidden, missed, placed, c.pos()));
        if which == FIRST {
            c.lea_disp(RAX, RAX, cache.line as i32);
            c.increment(CLOCK);
        }
    }
    c.op_reg(0x85, RBX, RBX);
    let hit = c.jcc_away(E);
    c.load_gs(RDI, SlotWord::MissPathAddress.at());
    c.op_reg(0x29, RAX, RDI);
    c.mov_reg(RDI, RAX); // rdi: offset of the second line
    first_member(c, R10, RAX, MISS_PATH_DESCRIPTION);
    let member = c.pos();
    // Which of the lines missed it is the first one to access.
    c.load32(RSI, R10, OFFSET);
    c.mov_reg(RDX, RSI);
    c.op_reg(0x29, RDX, RDI);
    c.shift(SHR, RDX, 63);
    c.load32(R14, R10, LESS_ONE);
    c.op_reg(0x01, R14, RSI);
    c.op_reg(0x29, R14, RDI);
    c.not(R14);
    c.shift(SHR, R14, 63);
    c.op_reg(0x01, RDX, R14);
    c.op_reg(0x01, RDX, R14);
    c.op_reg(0x21, RDX, RBX);
    let none = c.jcc_away(E);
    c.op_reg(0x31, RBX, RDX);
    record_miss(c, R10, 0, frames);
    c.patch_here(none);
    c.lea_disp(R10, R10, MEMBER);
    c.op_reg(0x85, RBX, RBX);
    c.jcc_back(NE, member);
    c.patch_here(hit);
    restore(c, MORE);
    restore(c, FEW);
    c.miss_path_returns();
    for (shown, hidden, missed, placed, settled) in asides {
        c.patch_here(shown);
        use_shown(c, CLOCK, settled);
        c.patch_here(hidden);
        find_hidden(c, cache, of_line, RSI, missed, &mut rare);
        c.jmp_back(placed);
    }
    rarely(c, cache, rare);
}

/// Many are single accesses whose first line the table shows, and whose second one is missed. Miss paths these; returns the field of
/// a jump to where the others take the miss path, and goes on there if the first line is not shown.
fn second_alone(c: &mut Asm, cache: FirstLevel, told: Told, frames: bool) -> usize {
    c.load32(RDX, RCX, MISS_PATH_DESCRIPTION + COUNT);
    c.cmp_imm(RDX, 1);
    let several = c.jcc_away(NE);
    c.and_imm(RAX, -(cache.line as i32));
    let not_shown = look_up(c, cache, NE);
    save(c, FEW.end..ALONE.end);
    c.use_entry(RCX);
    c.lea_disp(RAX, RAX, cache.line as i32);
    c.increment(CLOCK);
    let shown = look_up(c, cache, E);
    c.mov_reg(SECOND.reg, LINE.reg);
    c.negate(SECOND.reg);
    c.mov_reg(SECOND.entry, LINE.entry);
    let end = use_second(c, cache, told, MISS_PATH_DESCRIPTION, ALONE, frames);
    c.patch_here(shown);
    use_shown(c, CLOCK, end);
    c.patch_here(not_shown);
    c.miss_path_return_address(RCX);
    several
}

/// The miss path of a single access to two lines, of which the table shows the first one, which has its time, and not the second
/// one, which is where [`SECOND`] says ([`Asm::miss_path_of_second`]): a stream that is not aligned comes to each line that way.
/// Changes these registers and the flags. (Much depends on how soon it gets to the times of the ways: not even two such miss paths
/// are under way in a processor at once.)
pub(crate) fn emit_second_miss_path(c: &mut Asm, cache: FirstLevel, told: Told, frames: bool) {
    c.cmp_gs_zero(SlotWord::ContextTime.at());
    let contexts = c.jcc_away(NE);
    c.increment(CLOCK);
    save(c, FOR_SECOND);
    difference(c, SECOND);
    use_second(c, cache, told, SECOND_DESCRIPTION, FOR_SECOND, frames);
    c.patch_here(contexts);
    // From the last byte of the first line on it uses the same lines.
    c.not(SECOND.reg);
    c.store_gs(SlotWord::MissPathAddress.at(), SECOND.reg);
    save(c, 0..USED.len());
    miss_path_of_each(c, cache, SECOND_DESCRIPTION, Kept::Lines(told), frames);
}

/// Brings in line [`SECOND`] of a single access at the time that it is, which its entry does not show (rdx is its
/// [`difference`]), and returns. Returns where registers are restored. `saved`: which registers are saved; `described`: what
/// describes the access, behind where the miss path returns to.
fn use_second(
    c: &mut Asm,
    cache: FirstLevel,
    told: Told,
    described: i32,
    saved: std::ops::Range<usize>,
    frames: bool,
) -> usize {
    let second = SECOND.telling(told);
    let (hidden, missed) = look_for_hidden(c, cache, second, RSI);
    let mut rare = Vec::new();
    make_room(c, cache, second, &mut rare);
    // All that needs the line comes first, so that its register is free while a way is looked for. (No way that is looked at
    // has its time in this entry.)
    show_tag(c, second, SECOND.reg, CLOCK);
    if frames {
        c.tell_frames([RDX, RDI, RCX]);
    }
    c.miss_path_return_address(RCX);
    // The address of the first line's last byte: as many bytes from there on are in the same lines, of all levels, since they
    // are no more than a line of any.
    c.not(SECOND.reg);
    record(c, [SECOND.reg, RDI, RDX], RCX, described);
    let chosen = if cache.groups() > 0 {
        let chosen = groups::give_up(c, cache, RSI);
        groups::take_place(c, second);
        Some(chosen)
    } else {
        replace(c, cache, second, RSI, [R8, RDI], &mut rare);
        show_in_way(c, second);
        None
    };
    let end = c.pos();
    restore(c, saved);
    c.miss_path_returns();
    c.patch_here(hidden);
    find_hidden(c, cache, second, RSI, missed, &mut rare);
    show_tag(c, second, SECOND.reg, CLOCK);
    show_in_way(c, second);
    c.jmp_back(end);
    rarely(c, cache, rare);
    if let Some(chosen) = chosen {
        chosen.rarely(c, cache);
    }
    end
}

/// Into `to`: what describes the first access of a group. Into `count`: how many there are.
fn first_member(c: &mut Asm, to: Gpr, count: Gpr, described: i32) {
    c.miss_path_return_address(to);
    c.lea_disp(to, to, described);
    c.load32(count, to, COUNT);
    c.cmp_imm(count, 1);
    let single = c.jcc(E);
    c.lea_disp(to, to, MEMBERS);
    c.patch_here(single);
}

/// Records a miss of the access that is described at `what` and `offset`. Changes rax, rcx and r8.
fn record_miss(c: &mut Asm, what: Gpr, offset: i32, frames: bool) {
    if frames {
        c.tell_frames([RAX, RCX, R8]);
    }
    c.load_gs(RAX, SlotWord::MissPathAddress.at());
    c.load32(R8, what, offset + OFFSET);
    c.op_reg(0x01, RAX, R8);
    record(c, [RAX, RCX, R8], what, offset);
}

/// The record of a miss at `address` of the access that is described at `what` and `offset`. Changes `place` and `free`.
fn record(c: &mut Asm, [address, place, free]: [Gpr; 3], what: Gpr, offset: i32) {
    c.load_gs(place, SlotWord::TracePos.at());
    c.gs_base8(0x89, address, place, 4);
    c.load32(free, what, offset + SITE);
    c.gs_base8_32(0x89, free, place, 0);
    c.add_gs(SlotWord::TracePos.at(), 12);
}

/// Takes along the miss path the accesses of a group, one by one. `described`: what describes them, behind where the miss path returns to.
fn miss_path_of_each(c: &mut Asm, cache: FirstLevel, described: i32, kept: Kept, frames: bool) {
    let uses = matches!(kept, Kept::Uses);
    let (of_pages, of_line) = match kept {
        Kept::Pages(of, told) => (Some(of), LINE_OF_PAGE.telling(told)),
        Kept::Lines(told) => (None, LINE.telling(told)),
        Kept::Uses => (None, LINE),
    };
    let line = -(cache.line as i32);
    // rbx: what describes an access, r10: how many are left
    first_member(c, RBX, R10, described);
    let member = c.pos();
    c.increment(CLOCK);
    c.mov_imm(RSI, 0); // rsi: whether a line has been missed
    if of_pages.is_some() {
        c.store_gs32_imm(SlotWord::PageAgain.at(), 0);
    }
    c.load_gs(R13, SlotWord::MissPathAddress.at());
    c.load32(RAX, RBX, OFFSET);
    c.op_reg(0x01, R13, RAX); // r13: the address
    c.mov_reg(RAX, R13);
    c.and_imm(RAX, line); // rax: the line
    let touch = c.pos();
    let shown = look_up(c, cache, E);
    if let Some(of) = of_pages {
        pages::use_page(c, of, |c, to| c.load32(to, RBX, SITE));
        // Lines of the page that had to go are not shown any more.
        c.entry(RCX, RAX, cache.line.trailing_zeros());
        difference(c, of_line);
    }
    let (hidden, missed) = look_for_hidden(c, cache, of_line, R12);
    let mut rare = Vec::new();
    make_room(c, cache, of_line, &mut rare);
    replace(c, cache, of_line, R12, [R8, RSI], &mut rare);
    c.mov_imm(RSI, 1);
    if uses {
        record_replaced(c, cache);
    }
    // Who brought it in matters as soon as there are contexts.
    if of_pages.is_none() {
        c.cmp_gs_zero(SlotWord::ContextTime.at());
        let no_contexts = c.jcc_away(E);
        record_line(c, trace::LINE_LOADED);
        c.patch_here(no_contexts);
    }
    let placed = c.pos();
    show(c, of_line, CLOCK, true);
    if of_pages.is_some() {
        shown::show(c);
    }
    if uses {
        c.gs_index32(0x89, RDX, RCX, layout::DATA_PLACES as u32);
    }
    let used = c.pos();
    if uses {
        use_line(c, cache);
    }
    // The last byte may lie in the next line.
    c.load32(RCX, RBX, LESS_ONE);
    c.op_reg(0x01, RCX, R13);
    c.and_imm(RCX, line);
    c.increment(CLOCK);
    c.op_reg(0x39, RCX, RAX);
    c.mov_reg(RAX, RCX);
    c.jcc_back(NE, touch);
    c.op_reg(0x85, RSI, RSI);
    let hit = c.jcc_away(E);
    let mut one_line = None;
    if uses {
        // The record of the only line has told it all.
        c.mov_reg(RCX, R13);
        c.and_imm(RCX, line);
        c.op_reg(0x39, RCX, RAX);
        one_line = Some(c.jcc_away(E));
        record_lines_replaced(c, RBX);
    } else {
        record_miss(c, RBX, 0, frames);
    }
    c.patch_here(hit);
    if let Some(field) = one_line {
        c.patch_here(field);
    }
    c.lea_disp(RBX, RBX, MEMBER);
    c.alu_imm(5, R10, 1); // sub
    c.jcc_back(NE, member);
    restore(c, if described == SECOND_DESCRIPTION { 0..USED.len() } else { ALL });
    c.miss_path_returns();
    c.patch_here(shown);
    if uses {
        c.gs_index32(0x8b, RDX, RCX, layout::DATA_PLACES as u32); // rdx: its way
    }
    use_shown(c, CLOCK, used);
    c.patch_here(hidden);
    find_hidden(c, cache, of_line, R12, missed, &mut rare);
    if of_pages.is_some() {
        c.jmp_back(placed);
        return rarely(c, cache, rare);
    }
    // Used the last time before the context changed?
    c.gs_index(0x8b, R8, RDX, OWN);
    c.load_gs(R14, SlotWord::ContextTime.at());
    c.op_reg(0x39, R8, R14);
    c.jcc_back(ABOVE_EQUAL, placed);
    record_line(c, trace::LINE_REUSED);
    c.jmp_back(placed);
    rarely(c, cache, rare);
}
