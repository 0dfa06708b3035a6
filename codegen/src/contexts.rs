//! Client requests. Those that change the context of the statistics are made by emitted code where everything that it needs
//! is known; all others, and those that it cannot make, stop. Invariants: flags and registers are as before at the end; the
//! thread's stack and its header are changed as a whole or, before a stop, not at all; what is recorded stands before what
//! follows in the new context.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_fragments::fragment_table::{Emulate, StateMapEntry};
use grind_isa::decode::Insn;
use grind_layout::registers::Gpr;
use grind_layout::{CONTEXT_DEPTH, CONTEXT_ENTRIES, CONTEXT_STACK, CONTEXT_TABLE, SlotWord};
use grind_trace as trace;

use grind_client_requests::Request;

use super::Emitter;

const RSI: Gpr = Gpr(6);

/// Condition codes.
const BELOW: u8 = 2;
const ABOVE_OR_EQUAL: u8 = 3;
const EQUAL: u8 = 4;
const NOT_EQUAL: u8 = 5;

const _: () = assert!(CONTEXT_ENTRIES == 256, "the low byte of a context is its place in the table");
const _: () = assert!(Request::GrindPopContext.code() == Request::GrindPushContext.code() + 1);

impl Emitter<'_> {
    /// Changes of context are made by translations.
    #[inline(always)]
    pub fn with_contexts(mut self, yes: bool) -> Self {
        self.with_contexts = yes;
        self
    }

    /// A client request, the last instruction of its block.
    pub(super) fn client_request(&mut self, insn: &Insn) {
        if !self.with_contexts {
            return self.stop(insn, Emulate::ClientRequest);
        }
        let stub = self.stub_for(insn, Emulate::ClientRequest);
        self.out.code.spill(SlotWord::T1, Gpr::RCX);
        self.state_map_entry(StateMapEntry::Request { stub });
        let c = &mut self.out.code;
        dynasm!(c; mov rcx, [rax]);
        c.lea_disp(Gpr::RCX, Gpr::RCX, -(Request::GrindPushContext.code() as i32));
        let push = c.jrcxz();
        c.lea_disp(Gpr::RCX, Gpr::RCX, -1);
        let pop = c.jrcxz();
        let other = c.jmp();
        let mut slow = Vec::new();

        c.patch_short(pop);
        let to_pop = c.jmp();
        c.patch_short(push);
        self.state_map_entry(StateMapEntry::Request { stub });
        let c = &mut self.out.code;
        dynasm!(c; mov rcx, [rax + 8]);
        c.save_for_context();
        slow.push(c.if_followed());
        c.load_gs(Gpr::RDX, SlotWord::ContextDepth.at());
        dynasm!(c; cmp rdx, CONTEXT_DEPTH as i32);
        slow.push(c.jcc(ABOVE_OR_EQUAL));
        slow.extend(c.look_context_up());
        c.load_gs(RSI, SlotWord::Context.at());
        dynasm!(c; gs mov [rdx * 8 + CONTEXT_STACK as i32], rsi);
        c.lea_disp(Gpr::RDX, Gpr::RDX, 1);
        let common = c.jmp();

        let here = c.here();
        c.patch_rel32(to_pop, here);
        c.save_for_context();
        slow.push(c.if_followed());
        c.load_gs(Gpr::RDX, SlotWord::ContextDepth.at());
        dynasm!(c; sub rdx, BYTE 1);
        slow.push(c.jcc(BELOW));
        dynasm!(c; gs mov rcx, [rdx * 8 + CONTEXT_STACK as i32]);
        slow.extend(c.look_context_up());

        let here = c.here();
        c.patch_rel32(common, here);
        c.store_gs(SlotWord::ContextDepth.at(), Gpr::RDX);
        c.gs_op(0x39, Gpr::RCX, SlotWord::Context.at()); // cmp gs:[…], rcx
        let same = c.jcc(EQUAL);
        self.record_context();
        let c = &mut self.out.code;
        let here = c.here();
        c.patch_rel32(same, here);
        c.store_gs(SlotWord::Context.at(), Gpr::RCX);
        c.store_gs(SlotWord::ContextBase.at(), Gpr::RAX);
        dynasm!(c; wrgsbase rax);
        c.base_to_r11(Gpr::RAX);
        c.restore_from_context();
        c.reload(Gpr::RCX, SlotWord::T1);
        let done = c.jmp();

        for from in slow {
            let here = c.here();
            c.patch_rel32(from, here);
        }
        c.restore_from_context();
        let here = c.here();
        c.patch_rel32(other, here);
        c.reload(Gpr::RCX, SlotWord::T1);
        self.place_stub(stub);
        let c = &mut self.out.code;
        let here = c.here();
        c.patch_rel32(done, here);
    }

    /// Writes down that the thread is in context rcx from here on; rdx is free, and so are the flags. The filter of accesses
    /// must let one through for every line, since that is what tells who uses it.
    fn record_context(&mut self) {
        if !self.tracer.active() {
            return;
        }
        let c = &mut self.out.code;
        c.load_gs(Gpr::RDX, SlotWord::TracePos.at());
        dynasm!(c; gs mov [rdx + 4], rcx; gs mov DWORD [rdx], trace::CONTEXT_SITE as i32);
        c.lea_disp(Gpr::RDX, Gpr::RDX, trace::CONTEXT_WORDS as i32 * 4);
        c.store_gs(SlotWord::TracePos.at(), Gpr::RDX);
        self.forget_lines();
    }
}

/// Code that changes contexts.
trait ContextCode {
    /// Saves rax, rdx, rsi and the flags, to be changed from here on.
    fn save_for_context(&mut self);
    fn restore_from_context(&mut self);
    /// Leaves if other threads follow this one.
    fn if_followed(&mut self) -> usize;
    /// What gs must be in context rcx, into rax; leaves if it is not known.
    fn look_context_up(&mut self) -> [usize; 2];
}

impl ContextCode for Asm {
    fn save_for_context(&mut self) {
        self.spill(SlotWord::Rax, Gpr::RAX);
        self.flags_to_ax();
        self.spill(SlotWord::Flags, Gpr::RAX);
        self.spill(SlotWord::T2, Gpr::RDX);
        self.spill(SlotWord::Held1, RSI);
    }

    fn restore_from_context(&mut self) {
        self.reload(Gpr::RAX, SlotWord::Flags);
        self.flags_from_ax();
        self.reload(Gpr::RAX, SlotWord::Rax);
        self.reload(Gpr::RDX, SlotWord::T2);
        self.reload(RSI, SlotWord::Held1);
    }

    fn if_followed(&mut self) -> usize {
        self.cmp_gs_zero(SlotWord::ContextStops.at());
        self.jcc(NOT_EQUAL)
    }

    fn look_context_up(&mut self) -> [usize; 2] {
        let table = CONTEXT_TABLE as i32;
        dynasm!(self; movzx eax, cl; shl eax, 4; gs cmp [rax + table], rcx);
        let unlike = self.jcc(NOT_EQUAL);
        dynasm!(self; gs mov rax, [rax + table + 8]; test rax, rax);
        [unlike, self.jcc(EQUAL)]
    }
}
