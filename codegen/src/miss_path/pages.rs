//! TLBs, as pieces of the miss path. What hits costs nothing more than without them: a line is only *shown* as long as its page is in the
//! TLB, so whoever uses it finds both, and when the page was used last is the latest of the times of its lines that are shown, and
//! of the time at which one of its other lines was used last. Where a page has to go, its lines stay in the cache, but are shown no more:
//! the next access to each of them takes the miss path, and finds that its page is gone.
//!
//! A way of a TLB keeps which lines of its page are shown, a bit each ([`layout::DATA_PAGES`]). To find the page used longest ago
//! without looking at all lines of a set, the one with the earliest time that is kept is looked at: if none of its lines was used
//! later, no other page was used before it; else its time is kept, and all begins anew. So every page is looked at once at most.
//!
//! Registers are those of [`super::miss_path_of_each`]: rax is a line's address, r9 the time, and rdi becomes the way of its page. rcx, rdx, r8,
//! r12 and r14 are changed.
//!
//! Invariants: a line that is shown, of data or of code, has its bit in the way of its page, and no other line has one; no time that is kept
//! is later than the last use of its page.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_asm::instructions::{ABOVE, BELOW, E, NE};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::{self as trace, FirstLevel, FirstTlb};

use super::shown::{LINES, SHOWN, TIME};
use super::ways::{first_way, shown_line};
use super::{R8, R12, R14, RCX, RDI};

const WAY: i32 = layout::PAGE_WAY as i32;
const PAGE_MASK: i32 = -(layout::PAGE as i32);

/// A TLB, and the cache of lines whose pages are in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) shape: FirstTlb,
    pub(super) cache: FirstLevel,
    pub(super) code: bool,
}

impl Buffer {
    fn table(self) -> i32 {
        (if self.code { layout::CODE_PAGES } else { layout::DATA_PAGES }) as i32
    }

    fn line_bits(self) -> i8 {
        self.cache.line.trailing_zeros() as i8
    }
}

/// Uses the page of line rax, which is not shown: rdi is its way. Misses of it are recorded: `site` loads the site into the register that
/// it is given.
pub(super) fn use_page(c: &mut Asm, of: Buffer, site: impl Fn(&mut Asm, Gpr)) {
    let table = of.table();
    set_of(c, of);
    tag(c);
    dynasm!(c; mov rdi, r12);
    let again = c.pos();
    dynasm!(c; gs cmp [rdi + table], r14);
    let found = c.jcc_away(E);
    dynasm!(c; add rdi, WAY; cmp rdi, rdx);
    c.jcc_back(NE, again);

    let choose = c.pos();
    set_of(c, of);
    dynasm!(c
        ; mov rdi, r12
        ; mov rcx, r12 // rcx: the way with the earliest time that is kept
        ; gs mov r8, [r12 + table + TIME] // r8: that
    );
    let scan = c.pos();
    dynasm!(c; add rdi, WAY; cmp rdi, rdx);
    let scanned = c.jcc_away(E);
    dynasm!(c; gs cmp r8, [rdi + table + TIME]);
    c.gs_cmov(ABOVE, R8, RDI, (table + TIME) as u32);
    c.cmov(ABOVE, RCX, RDI);
    c.jmp_back(scan);
    c.patch_here(scanned);
    dynasm!(c; gs mov rdi, [rcx + table + SHOWN]; test rdi, rdi);
    let none = c.jcc_away(E);
    each_shown(c, of, |c| {
        let time = if of.code { layout::CODE_TIMES } else { layout::DATA_TIMES } as u32;
        let at = if of.code { R14 } else { R12 };
        c.gs_index(0x3b, R8, at, time); // cmp
        c.gs_cmov(BELOW, R8, at, time);
    });
    dynasm!(c; gs cmp r8, [rcx + table + TIME]);
    let unused = c.jcc_away(E);
    dynasm!(c; gs mov [rcx + table + TIME], r8);
    c.jmp_back(choose);
    c.patch_here(unused);
    dynasm!(c; gs mov rdi, [rcx + table + SHOWN]);
    each_shown(c, of, |c| hide(c, of));
    c.patch_here(none);
    tag(c);
    dynasm!(c
        ; gs mov [rcx + table], r14
        ; gs mov QWORD [rcx + table + SHOWN], 0
        ; mov rdi, rcx
    );
    record_page(c, site);
    c.patch_here(found);
    dynasm!(c; gs mov [rdi + table + TIME], r9);
}

/// Into r12: the first way of the set of line rax's page; into rdx: the end of the set.
fn set_of(c: &mut Asm, of: Buffer) {
    let FirstTlb { sets, ways } = of.shape;
    let bytes = WAY * ways as i32;
    dynasm!(c
        ; mov r12, rax
        ; shr r12, layout::PAGE.trailing_zeros() as i8
        ; and r12, sets as i32 - 1
        ; imul r12, r12, bytes
        ; lea rdx, [r12 + bytes]
    );
}

/// Into r14: what a way says of the page of line rax.
fn tag(c: &mut Asm) {
    dynasm!(c; mov r14, rax; and r14, PAGE_MASK; or r14, BYTE 1);
}

/// Does something for each line that is shown of the page in way rcx; rdi has their bits, of which there is one at least. Of data r12 is the
/// line's entry, of code its address, and r14 its way in the code cache. Keeps rcx and r8 as far as `each` does.
fn each_shown(c: &mut Asm, of: Buffer, each: impl Fn(&mut Asm)) {
    let table = of.table();
    dynasm!(c; gs mov rdx, [rcx + table]);
    if of.code {
        dynasm!(c; shr rdx, of.line_bits(); and rdx, !LINES); // rdx: the number of the line of bit 0
    } else {
        let entry = layout::DATA_ENTRY.trailing_zeros() as i8;
        let first = layout::LAST_ENTRY as i32 & !(LINES << entry);
        dynasm!(c; shr rdx, of.line_bits() - entry; and rdx, first); // rdx: the entry of the line of bit 0
    }
    let again = c.pos();
    dynasm!(c; tzcnt r12, rdi);
    if of.code {
        let bytes = 8 * of.cache.ways as i32;
        dynasm!(c
            ; add r12, rdx
            ; mov r14, r12
            ; and r14, of.cache.sets as i32 - 1
            ; imul r14, r14, bytes
            ; shl r12, of.line_bits()
            ; sub r14, BYTE 8
        );
        let other = c.pos();
        dynasm!(c; add r14, BYTE 8; gs cmp [r14 * 2 + layout::CODE_OWNERS as i32], r12);
        c.jcc_back(NE, other);
    } else {
        dynasm!(c; shl r12, layout::DATA_ENTRY.trailing_zeros() as i8; add r12, rdx);
    }
    each(c);
    dynasm!(c; blsr rdi, rdi);
    c.jcc_back(NE, again);
}

/// The line that [`each_shown`] has come to is shown no more, but stays in the cache. Changes r8, and of data r14.
fn hide(c: &mut Asm, of: Buffer) {
    if of.code {
        dynasm!(c
            ; gs mov r8, [r14 + layout::CODE_WAYS as i32]
            ; gs mov DWORD [r8 + layout::LINES as i32], 0
        );
        return;
    }
    // The way that says that this entry shows its line.
    c.gs_index(0x8b, R8, R12, layout::DATA_TAGS as u32);
    first_way(c, of.cache, shown_line(R8, R12), R14);
    dynasm!(c; lea r8, [r12 - layout::NOWHERE as i32]; sub r14, layout::DATA_WAY as i8 as i32);
    let other = c.pos();
    dynasm!(c; add r14, layout::DATA_WAY as i8 as i32; gs cmp [r14 + layout::DATA_WHERE as i32], r8);
    c.jcc_back(NE, other);
    let own = layout::DATA_OWN as i32;
    dynasm!(c
        ; gs mov r8, [r12 + layout::DATA_TAGS as i32]
        ; gs mov [r14 + layout::DATA_WAYS as i32], r8
        ; gs mov QWORD [r12 + layout::DATA_TAGS as i32], layout::NOTHING as i32
        ; gs mov r8, [r12 + layout::DATA_TIMES as i32]
        ; gs mov [r14 + own + TIME], r8
        ; lea r8, [r14 + own - layout::NOWHERE as i32]
        ; gs mov [r14 + layout::DATA_WHERE as i32], r8
        ; gs add DWORD [r12 + layout::DATA_HIDDEN as i32], BYTE 1
    );
}

/// Records that the page of line rax has been missed. Changes rcx and r14. (A record is written from a register that is the program's
/// elsewhere, as where the buffer is full the engine changes that.)
fn record_page(c: &mut Asm, site: impl Fn(&mut Asm, Gpr)) {
    c.load_gs(RCX, SlotWord::TracePos.at());
    dynasm!(c; mov r14, rax);
    c.gs_op(0x0b, R14, SlotWord::PageAgain.at()); // or
    dynasm!(c; gs mov [rcx + 8], r14);
    site(c, R14);
    dynasm!(c; gs mov [rcx + 4], r14d; gs mov DWORD [rcx], trace::PAGE_MISSED as i32);
    c.lea_disp(RCX, RCX, 4 * trace::PAGE_WORDS as i32);
    c.store_gs(SlotWord::TracePos.at(), RCX);
    c.store_gs32_imm(SlotWord::PageAgain.at(), 1);
}
