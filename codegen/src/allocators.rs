//! Calls of allocators, in line: where one begins, and where it returns to, a record of the registers that say what it does goes among
//! the misses of the thread. Of calls within one another only the outermost is recorded; which one that is, is in
//! [`SlotWord::AllocatorFrame`]. The engine does the same, with the same words, wherever this code stops instead.
//!
//! It stops, as if it was not there, where other threads must be asked first ([`layout::ALLOCATORS_STOP`]), and where a call
//! returns to a place that is not known to be one ([`layout::ALLOCATOR_RETURNS`]).
//!
//! Invariants: registers and flags are the program's again behind it, and in front of each stop; the highest word of a record is
//! written first; nothing but a return address, and where an allocator has just put an address, is read of the program's.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::instructions::{ABOVE, E, NE};
use grind_fragments::fragment_table::{NOT_SPILLED, StateMapEntry, StubKind};
use grind_isa::decode::STATUS;
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::objects::{Allocator, Watch};
use grind_trace::{
    ALLOCATOR_CALLED, ALLOCATOR_RETURNED, CALLED_WORDS, DIED_WORDS, OBJECT_DIED, OBJECT_FREED, RETURNED_WORDS,
};
use grind_types::addr::GuestAddr;

use super::Emitter;

/// Registers that are given back at the end, and where they are meanwhile.
const TAKEN: [(Gpr, SlotWord); 2] = [(Gpr::RCX, SlotWord::T1), (Gpr::RDX, SlotWord::T2)];

impl Emitter<'_> {
    /// In front of the first instruction of a block at `pc`, which is watched; `live`: the flags that are needed from there on.
    pub(super) fn watch(&mut self, pc: GuestAddr, watch: Watch, live: u8) {
        let keeps_flags = live & STATUS != 0;
        // First of all: it may be both.
        if watch.returns {
            self.allocator_returns(pc, keeps_flags);
        }
        match watch.begins {
            Some(Allocator::Leave) => self.out.code.zero_gs(SlotWord::AllocatorFrame.at()),
            Some(Allocator::Free) => self.free_begins(pc, keeps_flags),
            Some(allocator) => self.allocator_begins(pc, allocator, keeps_flags),
            None => {}
        }
    }

    fn stop_for_allocators(&mut self, pc: GuestAddr, returns: bool) {
        let id = self.trans.add_stub(StubKind::Watched { pc, returns });
        self.out.stubs.push((self.out.code.pos(), id));
        self.out.code.stop(id);
    }

    /// Takes rcx and rdx.
    fn take_for_allocators(&mut self) {
        for (register, word) in TAKEN {
            self.out.code.spill(word, register);
        }
    }

    fn give_back_from_allocators(&mut self, keeps_flags: bool) {
        if keeps_flags {
            self.restore_flags(Gpr::RCX);
        }
        for (register, word) in TAKEN {
            self.out.code.reload(register, word);
        }
    }

    /// Gives everything back, and behind that the stop that the jumps from `slow` lead to.
    fn end_of_allocators(&mut self, pc: GuestAddr, returns: bool, keeps_flags: bool, slow: Vec<usize>) {
        self.give_back_from_allocators(keeps_flags);
        let done = self.out.code.jmp_away();
        slow.into_iter().for_each(|from| self.out.code.patch_here(from));
        self.give_back_from_allocators(keeps_flags);
        self.stop_for_allocators(pc, returns);
        self.out.code.patch_here(done);
    }

    /// Takes note that a read of the program's memory follows.
    fn reads_for_allocators(&mut self) {
        let [(a, a_word), (b, b_word)] = TAKEN;
        let spilled = [(a.0, a_word as u8), (b.0, b_word as u8), NOT_SPILLED, NOT_SPILLED];
        self.state_map_entry(StateMapEntry::Spilled(spilled));
    }

    /// A jump if calls of allocators stop. Changes the flags.
    fn if_allocators_stop(&mut self) -> usize {
        let word = (self.tables + layout::ALLOCATORS_STOP) as i32;
        let c = &mut self.out.code;
        dynasm!(c; cmp QWORD [word], BYTE 0);
        c.jcc_away(NE)
    }

    /// An allocator that hands out a block begins.
    fn allocator_begins(&mut self, pc: GuestAddr, allocator: Allocator, keeps_flags: bool) {
        let table = (self.tables + layout::ALLOCATOR_RETURNS) as i32;
        self.take_for_allocators();
        self.reads_for_allocators();
        let c = &mut self.out.code;
        dynasm!(c; mov rcx, [rsp]);
        if keeps_flags {
            self.save_flags(Gpr::RDX);
        }
        let c = &mut self.out.code;
        c.gs_op(0x39, Gpr::RSP, SlotWord::AllocatorFrame.at()); // cmp gs:[…], rsp
        let within = c.jcc_away(ABOVE);
        let mut slow = vec![self.if_allocators_stop()];
        let c = &mut self.out.code;
        dynasm!(c; mov edx, ecx; and edx, layout::ALLOCATOR_ENTRIES as i32 - 1);
        let mut known = Vec::new();
        for probe in 0..layout::ALLOCATOR_PROBES as i32 {
            dynasm!(c; cmp [rdx * 8 + table + 8 * probe], rcx);
            if probe + 1 < layout::ALLOCATOR_PROBES as i32 {
                known.push(c.jcc_away(E));
            }
        }
        slow.push(c.jcc_away(NE));
        known.into_iter().for_each(|from| c.patch_here(from));
        c.store_gs(SlotWord::AllocatorFrame.at(), Gpr::RSP);
        match allocator {
            Allocator::AllocateTo => c.store_gs(SlotWord::AllocatorResult.at(), Gpr(7)),
            _ => c.zero_gs(SlotWord::AllocatorResult.at()),
        }
        c.load_gs(Gpr::RDX, SlotWord::TracePos.at());
        dynasm!(c; gs mov [rdx + 40], rcx; gs mov [rdx + 32], rsp);
        c.reload(Gpr::RCX, SlotWord::T2);
        dynasm!(c
            ; gs mov [rdx + 24], rcx
            ; gs mov [rdx + 16], rsi
            ; gs mov [rdx + 8], rdi
            ; gs mov DWORD [rdx + 4], allocator.word() as i32
            ; gs mov DWORD [rdx], ALLOCATOR_CALLED as i32
        );
        const { assert!(CALLED_WORDS == 12) };
        c.add_gs(SlotWord::TracePos.at(), 4 * CALLED_WORDS as i32);
        c.patch_here(within);
        self.end_of_allocators(pc, false, keeps_flags, slow);
    }

    /// A function begins that takes a block back.
    fn free_begins(&mut self, pc: GuestAddr, keeps_flags: bool) {
        self.take_for_allocators();
        if keeps_flags {
            self.save_flags(Gpr::RCX);
        }
        let slow = vec![self.if_allocators_stop()];
        let c = &mut self.out.code;
        dynasm!(c; test rdi, rdi);
        let nothing = c.jcc_away(E);
        // What the stack has gone back behind is left.
        c.gs_op(0x39, Gpr::RSP, SlotWord::AllocatorFrame.at()); // cmp gs:[…], rsp
        let within = c.jcc_away(ABOVE);
        c.zero_gs(SlotWord::AllocatorFrame.at());
        c.patch_here(within);
        c.load_gs(Gpr::RDX, SlotWord::TracePos.at());
        dynasm!(c
            ; gs mov DWORD [rdx + 12], OBJECT_FREED as i32
            ; gs mov [rdx + 4], rdi
            ; gs mov DWORD [rdx], OBJECT_DIED as i32
        );
        const { assert!(DIED_WORDS == 4) };
        c.add_gs(SlotWord::TracePos.at(), 4 * DIED_WORDS as i32);
        c.patch_here(nothing);
        self.end_of_allocators(pc, false, keeps_flags, slow);
    }

    /// Calls of allocators return to `pc`, and others may, too.
    fn allocator_returns(&mut self, pc: GuestAddr, keeps_flags: bool) {
        let module = (self.module_of)(pc);
        let c = &mut self.out.code;
        c.spill(SlotWord::T1, Gpr::RCX);
        c.load_gs(Gpr::RCX, SlotWord::AllocatorFrame.at());
        c.not(Gpr::RCX);
        dynasm!(c; lea rcx, [rcx + rsp - 7]); // rsp less where the return address was, less 8
        let returns = c.jrcxz();
        c.reload(Gpr::RCX, SlotWord::T1);
        let another = c.jmp_away();
        c.patch_short(returns);
        c.spill(SlotWord::T2, Gpr::RDX);
        if keeps_flags {
            self.save_flags(Gpr::RCX);
        }
        let slow = vec![self.if_allocators_stop()];
        let c = &mut self.out.code;
        c.zero_gs(SlotWord::AllocatorFrame.at());
        c.load_gs(Gpr::RCX, SlotWord::AllocatorResult.at());
        let returned = c.jrcxz();
        dynasm!(c; test eax, eax);
        let there = c.jcc_away(E);
        dynasm!(c; xor ecx, ecx);
        let none = c.jmp_short();
        c.patch_here(there);
        self.reads_for_allocators();
        let c = &mut self.out.code;
        dynasm!(c; mov rcx, [rcx]);
        c.patch_short(none);
        let put = c.jmp_short();
        c.patch_short(returned);
        c.mov_reg(Gpr::RCX, Gpr::RAX);
        c.patch_short(put);
        // Whoever has called the allocator runs again.
        self.tell_stack(Gpr::RDX);
        let c = &mut self.out.code;
        c.load_gs(Gpr::RDX, SlotWord::TracePos.at());
        dynasm!(c
            ; gs mov DWORD [rdx + 20], module as i32
            ; gs mov DWORD [rdx + 16], (pc.0 >> 32) as i32
            ; gs mov DWORD [rdx + 12], pc.0 as i32
            ; gs mov [rdx + 4], rcx
            ; gs mov DWORD [rdx], ALLOCATOR_RETURNED as i32
        );
        const { assert!(RETURNED_WORDS == 6) };
        c.add_gs(SlotWord::TracePos.at(), 4 * RETURNED_WORDS as i32);
        self.end_of_allocators(pc, true, keeps_flags, slow);
        self.out.code.patch_here(another);
    }
}
