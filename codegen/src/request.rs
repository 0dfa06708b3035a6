//! Asking for a translation, or what a call comes to, without a stop. A stub says which it is in a slot word and goes to a
//! piece of code that every chunk has; that waits for an answer as long as the engine says that it is looking (`dispatch::poller`),
//! and stops if it does not. Invariants: no flag and no guest memory is changed; rcx has been saved; whoever is made to stop
//! here, or is stepped through it, has either taken an answer and goes there, or comes to the stop, which means what its stub
//! means.
//!
//! Words, and who writes them: `Request` (guest), `Posted` (guest: 1; engine: [`TAKEN`], and 0 when it answers), `Listening`
//! (engine), `Answer` (engine; guest: 0 when it takes it). Nothing is dealt with twice, by an answer and by a stop: the engine
//! takes what is posted in one indivisible step, and the guest takes it back in one before it stops; whoever comes second finds
//! it gone. What has been taken is always answered, if by the address of the stop.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_fragments::fragment_table::{FragmentTable, StubKind, Way};
use grind_layout::registers::{Gpr, StolenRegisters};
use grind_layout::{self as layout, SlotWord};
use grind_types::addr::CacheAddr;

use crate::pairs::PairCode;

/// What `Posted` is while the engine deals with a request.
pub const TAKEN: u64 = 2;

/// Where code of a chunk asks.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    /// With the stub's number in `Request`.
    exit: u64,
    /// The same; rcx has been saved.
    saved: u64,
    /// Indirect branches that have found no IBL target, in the state in which they look for one.
    jump: u64,
    call: u64,
    ret: u64,
    paired: u64,
    /// The stop that means what was asked for, with all registers as they are then.
    stop: u64,
}

impl Requests {
    /// The answer to what takes a stop.
    pub fn stop(&self) -> CacheAddr {
        CacheAddr(self.stop)
    }

    /// Where the chain of IBL targets ends.
    pub fn miss(&self, way: Way) -> CacheAddr {
        CacheAddr(match way {
            Way::Jump => self.jump,
            Way::Call => self.call,
            Way::Return => self.ret,
            Way::Paired => self.paired,
        })
    }
}

/// The code of a chunk by which its stubs ask, to be placed at `base`.
pub fn emit_requests(base: CacheAddr, trans: &mut FragmentTable, stolen_registers: StolenRegisters) -> (Asm, Requests) {
    let mut c = Asm { buf: Vec::new(), base: base.0 };
    let [(ret, from_return), (paired, from_paired)] = [Way::Return, Way::Paired].map(|way| {
        let id = trans.add_stub(StubKind::IblMiss { way });
        let at = c.here();
        dynasm!(c; mov rcx, [rsp - 8]);
        c.spill(layout::TARGET, Gpr::RCX);
        c.store_gs32_imm(SlotWord::Request.at(), id);
        (at, c.jmp_short())
    });
    let id = trans.add_stub(StubKind::IblMiss { way: Way::Call });
    let call = c.here();
    c.called();
    c.store_gs32_imm(SlotWord::Request.at(), id);
    let from_call = c.jmp_short();
    let id = trans.add_stub(StubKind::IblMiss { way: Way::Jump });
    let jump = c.here();
    c.store_gs32_imm(SlotWord::Request.at(), id);
    let from_jump = c.jmp_short();
    let exit = c.here();
    c.spill(SlotWord::Rcx, Gpr::RCX);
    let saved = c.here();
    c.patch_short(from_return);
    c.patch_short(from_paired);
    c.patch_short(from_call);
    c.patch_short(from_jump);
    // The engine may have to know, and to change it.
    if stolen_registers.total() {
        c.spill(SlotWord::Total, Gpr::R9);
    }
    c.store_gs32_imm(SlotWord::Posted.at(), 1);
    let again = c.pos();
    c.reload(Gpr::RCX, SlotWord::Answer);
    let none = c.jrcxz();
    c.spill(SlotWord::T1, Gpr::RCX);
    c.zero_gs(SlotWord::Answer.at());
    c.reload(Gpr::RCX, SlotWord::Rcx);
    if stolen_registers.total() {
        c.reload(Gpr::R9, SlotWord::Total);
    }
    c.jmp_gs(SlotWord::T1.at());
    c.patch_short(none);
    c.reload(Gpr::RCX, SlotWord::Listening);
    let deaf = c.jrcxz();
    dynasm!(c; pause);
    c.jmp_back(again);
    c.patch_short(deaf);
    // rcx is 0: takes it back, if it is still there.
    c.gs_op(0x87, Gpr::RCX, SlotWord::Posted.at());
    c.lea_disp(Gpr::RCX, Gpr::RCX, -1);
    let taken_back = c.jrcxz();
    c.jmp_back(again);
    c.patch_short(taken_back);
    c.reload(Gpr::RCX, SlotWord::Rcx);
    let id = trans.add_stub(StubKind::Asked);
    let stop = c.here();
    trans.stubs[id as usize].addr = CacheAddr(stop);
    c.stop(id);
    (c, Requests { exit, saved, jump, call, ret, paired, stop })
}

/// Code that asks for what it lacks.
pub(super) trait RequestCode {
    /// A stub that asks for what stub `id` wants.
    fn ask(&mut self, id: u32, requests: &Requests);
    /// A stub that asks what a transfer of control comes to, of which it tells the stack pointer. `saved`: rcx has been saved.
    fn ask_about(&mut self, id: u32, saved: bool, requests: &Requests);
}

impl RequestCode for Asm {
    fn ask(&mut self, id: u32, requests: &Requests) {
        self.store_gs32_imm(SlotWord::Request.at(), id);
        let field = self.jmp_away();
        self.patch_rel32(field, requests.exit);
    }

    fn ask_about(&mut self, id: u32, saved: bool, requests: &Requests) {
        self.spill(SlotWord::T2, Gpr::RSP);
        self.store_gs32_imm(SlotWord::Request.at(), id);
        let field = self.jmp_away();
        self.patch_rel32(field, if saved { requests.saved } else { requests.exit });
    }
}
