//! Where accesses are told by the bytes that they use ([`grind_trace::BYTES_USED`]): the routine that notes them in the entries of their lines, one
//! access after the other, and a piece of the miss path that makes such an entry one of another line.
//!
//! The engine forgets bytes while the thread runs on: it makes them unknown. So they become known by one indivisible instruction each, and
//! are told behind that: whoever forgets them in between has them told for what comes after. Invariant: bytes that are known have
//! been told since the engine has forgotten them last.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_asm::instructions::{E, MISS_PATH_DESCRIPTION, NE};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace as trace;

use super::owners::{WRITES, emit_still_there, emit_take};
use super::{ALL, restore, save};

/// In what describes an access: it reads ([`WRITES`]: it writes).
const READS: u32 = 1 << 16;

/// Site, offset, bytes of an access, and whether it reads and writes.
pub(crate) type Member = (u32, u16, u16, [bool; 2]);

/// What describes accesses to [`emit_bytes_path`]: how many they are; then for each its site, and in a word its offset, its bytes less
/// one, and what it does.
pub(crate) fn bytes_words(members: &[Member]) -> Vec<u32> {
    let mut words = vec![members.len() as u32];
    for &(site, offset, size, [reads, writes]) in members {
        let done = if reads { READS } else { 0 } | if writes { WRITES } else { 0 };
        words.extend([site, u32::from(offset) | (u32::from(size) - 1) << 8 | done]);
    }
    words
}

/// An entry shows line `tag` from now on: if it has told of another one, nothing of this one is known, or nobody wants to know. Changes
/// `free` and the flags.
pub(super) fn show(c: &mut Asm, entry: Gpr, tag: Gpr, free: Gpr) {
    c.gs_index(0x3b, tag, entry, layout::BYTES_TAGS as u32); // cmp
    let same = c.jcc(E);
    c.gs_index(0x89, tag, entry, layout::BYTES_TAGS as u32);
    c.load_gs(free, SlotWord::BytesUnknown.at());
    c.gs_index(0x89, free, entry, layout::UNREAD as u32);
    c.gs_index(0x89, free, entry, layout::UNWRITTEN as u32);
    c.patch_here(same);
}

/// Tells of accesses from the address in rax on what is not known of them. All their lines are shown. Changes rax and the flags. `owners`: who has
/// a line is kept, and told where that changes ([`super::owners`]).
pub(crate) fn emit_bytes_path(c: &mut Asm, owners: bool) {
    let (unread, unwritten) = (layout::UNREAD as i32, layout::UNWRITTEN as i32);
    let (words, member) = (MISS_PATH_DESCRIPTION, 8);
    save(c, ALL);
    // r13: the lowest address; rbx: what describes an access; r10: how many are left
    dynasm!(c
        ; mov r13, rax
        ; mov rbx, [rsp]
        ; mov r10d, [rbx + words]
        ; add rbx, words + 4
    );
    let again = c.pos();
    dynasm!(c
        ; mov esi, [rbx + 4]
        ; movzx r12d, sil
        ; add r12, r13 // r12: its address
        ; mov edx, esi
        ; shr edx, 8
        ; movzx edx, dl
        ; lea r14, [r12 + rdx] // r14: that of its last byte
        ; xor edx, 63
        ; mov rax, -1
        ; shrx rdx, rax, rdx // rdx: a bit for each of its bytes
        ; xor edi, edi // rdi: whether anything is new
        ; mov rax, r12
        ; shlx r8, rdx, r12 // r8: those in the line of rax
    );
    let part = c.pos();
    c.entry(Gpr::RCX, Gpr::RAX, layout::BYTES_LINE.trailing_zeros());
    let known_here = owners.then(|| {
        let known = emit_known(c, [unread, unwritten]);
        emit_take(c);
        known
    });
    for (done, word) in [(READS, unread), (WRITES, unwritten)] {
        dynasm!(c; test esi, done as i32);
        let not = c.jcc(E);
        dynasm!(c; gs test [rcx + word], r8);
        let known = c.jcc(E);
        dynasm!(c
            ; not r8
            ; gs lock and [rcx + word], r8
            ; not r8
            ; mov edi, 1
        );
        c.patch_here(not);
        c.patch_here(known);
    }
    if let Some(known) = known_here {
        emit_still_there(c);
        known.into_iter().for_each(|field| c.patch_here(field));
    }
    // Behind the first line the next one, if its last byte is not in this one.
    dynasm!(c
        ; xor rax, r14
        ; and rax, -(layout::BYTES_LINE as i32)
    );
    let last = c.jcc(E);
    dynasm!(c
        ; mov r8, r12
        ; neg r8
        ; shrx r8, rdx, r8
        ; mov rax, r14
    );
    c.jmp_back(part);
    c.patch_here(last);
    dynasm!(c; test edi, edi);
    let known = c.jcc(E);
    c.load_gs(Gpr::RCX, SlotWord::TracePos.at());
    dynasm!(c; gs mov [rcx + 8], r12; mov eax, [rbx]; gs mov [rcx + 4], eax);
    c.store_site(Gpr::RCX, trace::BYTES_USED);
    c.add_gs(SlotWord::TracePos.at(), 4 * trace::BYTES_WORDS as i32);
    c.patch_here(known);
    dynasm!(c; add rbx, member; sub r10d, 1);
    c.jcc_back(NE, again);
    restore(c, ALL);
    c.miss_path_returns();
}

/// Leads away what the access in esi does if all of the bytes in r8 are known by the entry in rcx: the fields of jumps that are taken
/// then. Changes the flags.
fn emit_known(c: &mut Asm, [unread, unwritten]: [i32; 2]) -> [usize; 2] {
    dynasm!(c; test esi, READS as i32);
    let reads_not = c.jcc(E);
    dynasm!(c; gs test [rcx + unread], r8);
    let unknown = c.jcc(NE);
    c.patch_here(reads_not);
    dynasm!(c; test esi, WRITES as i32);
    let writes_not = c.jcc(E);
    dynasm!(c; gs test [rcx + unwritten], r8);
    let known = c.jcc(E);
    c.patch_here(unknown);
    [writes_not, known]
}
