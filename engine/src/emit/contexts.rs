//! Client requests. Those that change the context of the statistics are made by emitted code where everything that it needs
//! is known; all others, and those that it cannot make, stop. Invariants: flags and registers are as before at the end; the
//! thread's stack and its header are changed as a whole or, before a stop, not at all; what is recorded stands before what
//! follows in the new context.

use grind_client_requests::Request;

use super::Emitter;
use crate::arena::{CONTEXT_DEPTH, CONTEXT_ENTRIES, CONTEXT_STACK, CONTEXT_TABLE, Scratch};
use crate::asm::{Asm, Gpr};
use crate::decode::Insn;
use crate::trace;
use crate::transtab::{Emulate, Point};

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
    pub(crate) fn with_contexts(mut self, yes: bool) -> Self {
        self.with_contexts = yes;
        self
    }

    /// A client request, the last instruction of its block.
    pub(super) fn client_request(&mut self, insn: &Insn) {
        if !self.with_contexts {
            return self.stop(insn, Emulate::ClientRequest);
        }
        let stub = self.stub_for(insn, Emulate::ClientRequest);
        self.out.code.spill(Scratch::T1, Gpr::RCX);
        self.point(Point::Request { stub });
        let c = &mut self.out.code;
        c.bytes(&[0x48, 0x8b, 0x08]); // mov rcx, [rax]
        c.lea_disp(Gpr::RCX, Gpr::RCX, -(Request::GrindPushContext.code() as i32));
        let push = c.jrcxz();
        c.lea_disp(Gpr::RCX, Gpr::RCX, -1);
        let pop = c.jrcxz();
        let other = c.jmp();
        let mut slow = Vec::new();

        c.patch_short(pop);
        let to_pop = c.jmp();
        c.patch_short(push);
        self.point(Point::Request { stub });
        let c = &mut self.out.code;
        c.bytes(&[0x48, 0x8b, 0x48, 0x08]); // mov rcx, [rax + 8]
        c.save_for_context();
        slow.push(c.if_followed());
        c.load_gs(Gpr::RDX, Scratch::ContextDepth.at());
        c.bytes(&[0x48, 0x81, 0xfa]); // cmp rdx, …
        c.bytes(&(CONTEXT_DEPTH as u32).to_le_bytes());
        slow.push(c.jcc(ABOVE_OR_EQUAL));
        slow.extend(c.look_context_up());
        c.load_gs(RSI, Scratch::Context.at());
        c.stack_entry(0x89, RSI);
        c.lea_disp(Gpr::RDX, Gpr::RDX, 1);
        let common = c.jmp();

        let here = c.here();
        c.patch_rel32(to_pop, here);
        c.save_for_context();
        slow.push(c.if_followed());
        c.load_gs(Gpr::RDX, Scratch::ContextDepth.at());
        c.bytes(&[0x48, 0x83, 0xea, 0x01]); // sub rdx, 1
        slow.push(c.jcc(BELOW));
        c.stack_entry(0x8b, Gpr::RCX);
        slow.extend(c.look_context_up());

        let here = c.here();
        c.patch_rel32(common, here);
        c.store_gs(Scratch::ContextDepth.at(), Gpr::RDX);
        c.gs_op(0x39, Gpr::RCX, Scratch::Context.at()); // cmp gs:[…], rcx
        let same = c.jcc(EQUAL);
        self.record_context();
        let c = &mut self.out.code;
        let here = c.here();
        c.patch_rel32(same, here);
        c.store_gs(Scratch::Context.at(), Gpr::RCX);
        c.store_gs(Scratch::ContextBase.at(), Gpr::RAX);
        c.bytes(&[0xf3, 0x48, 0x0f, 0xae, 0xd8]); // wrgsbase rax
        c.base_to_r11(Gpr::RAX);
        c.restore_from_context();
        c.reload(Gpr::RCX, Scratch::T1);
        let done = c.jmp();

        for from in slow {
            let here = c.here();
            c.patch_rel32(from, here);
        }
        c.restore_from_context();
        let here = c.here();
        c.patch_rel32(other, here);
        c.reload(Gpr::RCX, Scratch::T1);
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
        c.load_gs(Gpr::RDX, Scratch::TracePos.at());
        c.bytes(&[0x65, 0x48, 0x89, 0x4a, 0x04]); // mov gs:[rdx + 4], rcx
        c.bytes(&[0x65, 0xc7, 0x02]); // mov dword gs:[rdx], …
        c.bytes(&trace::CONTEXT_SITE.to_le_bytes());
        c.lea_disp(Gpr::RDX, Gpr::RDX, trace::CONTEXT_WORDS as i32 * 4);
        c.store_gs(Scratch::TracePos.at(), Gpr::RDX);
        self.forget_lines();
    }
}

impl Asm {
    /// Saves rax, rdx, rsi and the flags, to be changed from here on.
    fn save_for_context(&mut self) {
        self.spill(Scratch::Rax, Gpr::RAX);
        self.flags_to_ax();
        self.spill(Scratch::Flags, Gpr::RAX);
        self.spill(Scratch::T2, Gpr::RDX);
        self.spill(Scratch::Held1, RSI);
    }

    fn restore_from_context(&mut self) {
        self.reload(Gpr::RAX, Scratch::Flags);
        self.flags_from_ax();
        self.reload(Gpr::RAX, Scratch::Rax);
        self.reload(Gpr::RDX, Scratch::T2);
        self.reload(RSI, Scratch::Held1);
    }

    /// Leaves if other threads follow this one.
    fn if_followed(&mut self) -> usize {
        self.cmp_gs_zero(Scratch::ContextStops.at());
        self.jcc(NOT_EQUAL)
    }

    /// What gs must be in context rcx, into rax; leaves if it is not known.
    fn look_context_up(&mut self) -> [usize; 2] {
        self.bytes(&[0x0f, 0xb6, 0xc1]); // movzx eax, cl
        self.bytes(&[0xc1, 0xe0, 0x04]); // shl eax, 4
        self.bytes(&[0x65, 0x48, 0x39, 0x88]); // cmp gs:[rax + …], rcx
        self.bytes(&(CONTEXT_TABLE as u32).to_le_bytes());
        let unlike = self.jcc(NOT_EQUAL);
        self.bytes(&[0x65, 0x48, 0x8b, 0x80]); // mov rax, gs:[rax + …]
        self.bytes(&(CONTEXT_TABLE as u32 + 8).to_le_bytes());
        self.bytes(&[0x48, 0x85, 0xc0]); // test rax, rax
        [unlike, self.jcc(EQUAL)]
    }

    /// Loads or stores entry rdx of the stack of contexts.
    fn stack_entry(&mut self, opcode: u8, reg: Gpr) {
        self.bytes(&[0x65, 0x48, opcode, 0x04 | reg.0 << 3, 0xd5]);
        self.bytes(&(CONTEXT_STACK as u32).to_le_bytes());
    }
}
