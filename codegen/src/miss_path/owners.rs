//! Where it is told which lines go from thread to thread: which thread has which line is kept in a table of the process ([`layout::OWNED_LINES`]), as caches that
//! never have to give up anything would have it. Who has read a line has it; who writes it takes it from all others.
//!
//! A thread knows of bytes only as long as it has their line: to read, or to write. So [`super::bytes`] is asked when it wants one that it has not,
//! and here it takes it, by one indivisible change of the table, which is the order in which threads do so. Whoever has lost the line then
//! does not know its bytes any more: the thread that takes it says so in the other one's slot.
//!
//! Invariants: a byte is known behind that change only, and looked for in the table once more behind that: whoever has taken the
//! line in between has said so before, or will have been seen. A line never leaves the table, nor its place there.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_asm::instructions::{ABOVE_EQUAL, E, NE, SIGN};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace as trace;

use super::{R8, R14, RAX, RCX, RDI, RDX, USED, saved};

/// In what describes an access: it writes.
pub(super) const WRITES: u32 = 1 << 17;

/// Registers that are saved, beside those that a miss path saves; the address in the line is the first one, its entry among those that show
/// lines the second one.
const SAVED: [Gpr; 6] = [RAX, RCX, RDX, RDI, R8, R14];

/// Where one of those is, from the stack pointer.
fn place(n: usize) -> i32 {
    saved(USED.len() + n)
}

/// Where the line's place in the table is then; 0: it has none.
const IN_TABLE: usize = SAVED.len();

/// From one slot to the next, as a shift.
const SLOT_SHIFT: i8 = layout::SLOT_SIZE.trailing_zeros() as i8;

/// The line of rax is the thread's, to read or, if esi says so, to write; its entry among those that show lines is in rcx, and rbx points to
/// the number of the site. Changes the flags.
pub(super) fn emit_take(c: &mut Asm) {
    for (n, register) in SAVED.into_iter().enumerate() {
        c.stack_op(0x89, register, place(n));
    }
    c.load_gs(R8, SlotWord::LineOwners.at()); // r8: the table
    dynasm!(c; xor r14d, r14d; test r8, r8);
    let none = c.jcc(E);
    let unplaced = emit_find(c);
    let mut done = Vec::new();
    dynasm!(c; mov rax, [r14 + 8]);
    let again = c.pos();
    dynasm!(c; mov rdx, rax; test esi, WRITES as i32); // rdx: who has it
    let writes = c.jcc(NE);
    let mut tell = emit_read(c, again, &mut done);
    c.patch_here(writes);
    tell.extend(emit_write(c, again, &mut done));
    c.patch_here(unplaced);
    dynasm!(c; xor edx, edx; xor r14d, r14d; mov eax, trace::LINE_UNPLACED as i32);
    tell.into_iter().for_each(|field| c.patch_here(field));
    // eax: what has happened; rdx: who had written the line
    dynasm!(c; shr rdx, 32; and edx, (1 << layout::OWNER_TID) - 1);
    c.load_gs(RCX, SlotWord::TracePos.at());
    dynasm!(c; gs mov [rcx + 20], edx; gs mov [rcx + 16], eax);
    c.stack_op(0x8b, RDI, place(0));
    dynasm!(c; gs mov [rcx + 8], rdi; mov edi, [rbx]; gs mov [rcx + 4], edi);
    c.store_site(RCX, trace::LINE_MOVED);
    c.add_gs(SlotWord::TracePos.at(), 4 * trace::MOVED_WORDS as i32);
    done.into_iter().chain([none]).for_each(|field| c.patch_here(field));
    c.stack_op(0x89, R14, place(IN_TABLE));
    for (n, register) in SAVED.into_iter().enumerate() {
        c.stack_op(0x8b, register, place(n));
    }
}

/// r14: where the line of rax is in the table at r8. Returns the field of a jump that is taken if there is no room for it. Changes rax, rcx, rdx,
/// rdi and the flags.
fn emit_find(c: &mut Asm) -> usize {
    let bits = layout::OWNED_LINES.trailing_zeros() as i8;
    dynasm!(c
        ; and rax, -(layout::BYTES_LINE as i32)
        ; mov rdi, rax // rdi: the line
        ; mov rdx, rax
        ; shr rdx, 22
        ; mov rcx, QWORD layout::OWNER_SPREAD.cast_signed()
        ; imul rdx, rcx
        ; shr rdx, 64 - bits
        ; shr rax, layout::BYTES_LINE.trailing_zeros() as i8
        ; add edx, eax // edx: the number of its entry
        ; mov ecx, layout::OWNER_PROBES as i32
    );
    let probe = c.pos();
    dynasm!(c
        ; and edx, (layout::OWNED_LINES - 1) as i32
        ; mov r14d, edx
        ; shl r14, 4
        ; add r14, r8
        ; mov rax, [r14]
        ; cmp rax, rdi
    );
    let mut found = vec![c.jcc(E)];
    dynasm!(c; test rax, rax);
    let other = c.jcc(NE);
    dynasm!(c; lock cmpxchg [r14], rdi);
    found.push(c.jcc(E));
    dynasm!(c; cmp rax, rdi);
    found.push(c.jcc(E));
    c.patch_here(other);
    dynasm!(c; inc edx; dec ecx);
    c.jcc_back(NE, probe);
    let unplaced = c.jmp();
    found.into_iter().for_each(|field| c.patch_here(field));
    unplaced
}

/// The thread reads the line of r14, which rax and rdx say who has. Returns the field of a jump to where it is told what eax says; what leads to
/// the end is added to `done`. Changes rax, rcx, rdi and the flags.
fn emit_read(c: &mut Asm, again: usize, done: &mut Vec<usize>) -> Vec<usize> {
    dynasm!(c; test rax, rax);
    let modified = c.jcc(SIGN);
    c.load_gs(RCX, SlotWord::OwnerBit.at());
    dynasm!(c; test rax, rcx);
    done.push(c.jcc(NE));
    dynasm!(c; or rcx, rax; lock cmpxchg [r14 + 8], rcx);
    c.jcc_back(NE, again);
    done.push(c.jmp());
    c.patch_here(modified);
    c.load_gs(RDI, SlotWord::OwnerWord.at());
    dynasm!(c; cmp rax, rdi);
    done.push(c.jcc(E));
    dynasm!(c
        ; mov rcx, rax
        ; shr rcx, 56 // (Six bits of it count.)
        ; mov edi, 1
        ; shl rdi, cl
    );
    c.load_gs(RCX, SlotWord::OwnerBit.at());
    dynasm!(c; or rcx, rdi; lock cmpxchg [r14 + 8], rcx);
    c.jcc_back(NE, again);
    dynasm!(c; mov edi, edx);
    emit_entry_of(c);
    dynasm!(c
        ; mov QWORD [rdi + layout::UNWRITTEN as i32], -1
        ; mov eax, trace::LINE_READ as i32
    );
    vec![c.jmp()]
}

/// The same where it writes the line. What is told by eax of the last case is behind that.
fn emit_write(c: &mut Asm, again: usize, done: &mut Vec<usize>) -> Vec<usize> {
    let lose = |c: &mut Asm| {
        emit_entry_of(c);
        dynasm!(c
            ; mov QWORD [rdi + layout::UNREAD as i32], -1
            ; mov QWORD [rdi + layout::UNWRITTEN as i32], -1
        );
    };
    c.load_gs(RCX, SlotWord::OwnerWord.at());
    dynasm!(c; cmp rax, rcx);
    done.push(c.jcc(E));
    dynasm!(c; lock cmpxchg [r14 + 8], rcx);
    c.jcc_back(NE, again);
    dynasm!(c; test rdx, rdx);
    let modified = c.jcc(SIGN);
    c.load_gs(RCX, SlotWord::OwnerBit.at());
    dynasm!(c; not rcx; and rcx, rdx);
    // (Nearly always it is the only one, and there may be one with the same bit.)
    dynasm!(c; mov eax, trace::LINE_UPGRADED as i32);
    let others = c.jcc(NE);
    dynasm!(c; xor eax, eax);
    c.patch_here(others);
    let next_bit = c.pos();
    dynasm!(c; bsf rcx, rdx);
    let all = c.jcc(E);
    dynasm!(c; btr rdx, rcx);
    let next_slot = c.pos();
    dynasm!(c; cmp rcx, [r8 + layout::SLOTS_USED as i32]);
    let no_more = c.jcc(ABOVE_EQUAL);
    c.load_gs32(RDI, SlotWord::OwnerWord.at()); // its lower half is the slot
    dynasm!(c; cmp edi, ecx);
    let itself = c.jcc(E);
    dynasm!(c; mov edi, ecx);
    lose(c);
    c.patch_here(itself);
    dynasm!(c; add ecx, layout::OWNER_BITS as i32);
    c.jmp_back(next_slot);
    c.patch_here(no_more);
    c.jmp_back(next_bit);
    c.patch_here(all);
    dynasm!(c; xor edx, edx; test eax, eax);
    done.push(c.jcc(E));
    let upgraded = c.jmp();
    c.patch_here(modified);
    dynasm!(c; mov edi, edx);
    lose(c);
    dynasm!(c; mov eax, trace::LINE_WRITTEN as i32);
    vec![upgraded, c.jmp()]
}

/// rdi: where the slot of that number has the entry that shows lines like this one. Changes the flags.
fn emit_entry_of(c: &mut Asm) {
    dynasm!(c; shl rdi, SLOT_SHIFT);
    c.gs_op(0x03, RDI, SlotWord::SlotsAt.at()); // add
    c.stack_op(0x03, RDI, place(1));
}

/// Behind what has made bytes known by the entry in rcx: if the line has been taken in the meantime, they are not. Changes r8 and the flags.
pub(super) fn emit_still_there(c: &mut Asm) {
    c.stack_op(0x8b, R8, place(IN_TABLE));
    dynasm!(c; test r8, r8);
    let untold = c.jcc(E);
    dynasm!(c; mov r8, [r8 + 8]);
    c.gs_op(0x3b, R8, SlotWord::OwnerWord.at()); // cmp
    let written = c.jcc(E);
    dynasm!(c; test esi, WRITES as i32);
    let lost = c.jcc(NE);
    dynasm!(c; test r8, r8);
    let taken = c.jcc(SIGN);
    c.gs_op(0x85, R8, SlotWord::OwnerBit.at()); // test
    let read = c.jcc(NE);
    c.patch_here(lost);
    c.patch_here(taken);
    for word in [layout::UNREAD, layout::UNWRITTEN] {
        c.gs_store_imm(RCX, word as u32, -1);
    }
    [untold, written, read].into_iter().for_each(|field| c.patch_here(field));
}
