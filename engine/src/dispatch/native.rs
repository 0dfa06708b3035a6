//! The native stack of a thread that stands still: for a program that prints it, and for whoever follows calls, who is told what
//! is active in a thread that begins to be recorded in the middle of things. Without it, that would have no callers, and would return
//! to functions that nobody knows to have called it. It is told once, when recording begins. Nothing of the thread is changed.

use grind_code_cache::CodeCache;
use grind_fragments::fragment_table::StubKind;
use grind_guest::recover::{self, CachePosition};
use grind_ptrace::{Regs, Stopped};
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_unwind::Stack;

use super::Dispatcher;
use super::announce::announce;

impl Dispatcher<'_> {
    /// The frames of thread `tid`, whose registers are the guest's and which is at `pc`: `most` of them at most.
    pub(super) fn native_stack(&mut self, tid: Tid, regs: &Regs, pc: GuestAddr, most: usize) -> Option<Stack> {
        let (code_cache, _) = self.code_cache_and_state(tid)?;
        let p = self.process_of_mut(tid)?;
        p.stacks.stack((tid, &p.memory), |at| code_cache.borrow().is_cache(CacheAddr(at)), (pc.0, regs), most)
    }

    /// Tells the sink what is active in `t`, which has just begun to be recorded.
    pub(super) fn tell_stack(&mut self, t: &Stopped) {
        if self.settings.trace.calls.is_none() {
            return;
        }
        let tid = t.tid();
        let (Some((code_cache, _)), Ok(regs)) = (self.code_cache_and_state(tid), t.regs()) else { return };
        let Some(pc) = guest_address(&code_cache.borrow(), regs.rip) else { return };
        let Some(p) = self.process_of_mut(tid) else { return };
        let is_ours = |at| code_cache.borrow().is_cache(CacheAddr(at));
        let (pid, frames) = (p.pid, p.stacks.calls((tid, &p.memory), is_ours, (pc.0, &regs)));
        if let (Some(trace_channel), true) = (&self.trace_channel, frames.len() > 1) {
            announce(trace_channel, &mut code_cache.borrow_mut());
            trace_channel.stands(pid, tid, frames);
        }
    }
}

/// Where the program is, for a thread that has stopped at `rip`.
fn guest_address(code_cache: &CodeCache, rip: u64) -> Option<GuestAddr> {
    match recover::cache_position(code_cache, rip) {
        CachePosition::Boundary(b) => {
            let index = if b.after_call { b.executed.saturating_sub(1) } else { b.executed };
            Some(code_cache.trans.pc_of(b.block, index))
        }
        CachePosition::Elsewhere => Some(GuestAddr(rip)),
        CachePosition::Stub(_) | CachePosition::Between => match code_cache.stub_at(CacheAddr(rip.wrapping_sub(1))) {
            Some(StubKind::Emulate { pc, .. }) => Some(pc),
            _ => None,
        },
    }
}
