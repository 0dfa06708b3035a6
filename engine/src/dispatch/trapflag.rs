//! Programs that set the trap flag themselves: the processor stops them behind each instruction, here behind each one of
//! the translation. The guest gets to see those that are a boundary of its own instructions, once each.
//!
//! Not covered: a jump to what stands right behind it in the translation is nothing there, and no trap is seen behind it; and a register
//! that nothing reads any more before it is written may have a value of ours when the guest is stopped.

use grind_guest::process::State;
use grind_guest::recover::{self, CachePosition};
use grind_ptrace::{How, Regs, Stopped, TRAP_FLAG as TF};
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use nix::libc;

use super::Dispatcher;

/// Offset of RFLAGS in a `struct ucontext`: flags, link, stack, then the seventeen registers before it.
const UC_FLAGS: u64 = 8 + 8 + 24 + 17 * 8;

/// Sets the trap flag; whether the thread is still there. (A step over rt_sigreturn has hidden it.)
pub(super) fn set_trap_flag(t: &Stopped) -> bool {
    t.regs().is_ok_and(|mut regs| {
        regs.eflags |= TF;
        t.set_regs(&regs).is_ok()
    })
}

/// Whether the program has set it. (A step of the engine's own does not show here.)
pub(super) fn traps(regs: &Regs) -> bool {
    regs.eflags & TF != 0
}

impl Dispatcher<'_> {
    /// Whether the signal frame at `context` has the trap flag set.
    pub(super) fn frame_traps(&self, tid: Tid, context: u64) -> bool {
        self.process_of(tid).and_then(|p| p.memory.word(context + UC_FLAGS)).is_some_and(|flags| flags & TF != 0)
    }

    /// A handler of `t`, whose registers are the guest's, is about to begin.
    pub(super) fn note_trap_flag(&mut self, t: &Stopped) {
        let on = t.regs().is_ok_and(|regs| traps(&regs));
        if let Some(th) = self.threads.get_mut(&t.tid()) {
            th.traps.on_at_signal = on;
        }
    }

    /// A handler of `t` has begun, by a step. Where it has interrupted the thread before an instruction that may set the flag, the
    /// kernel takes its own for one that such an instruction has set, and saves it (`enable_single_step` in
    /// `arch/x86/kernel/step.c`).
    pub(super) fn hide_step_in_frame(&self, t: &Stopped) {
        if self.threads.get(&t.tid()).is_none_or(|th| th.traps.on_at_signal) {
            return;
        }
        if let Ok(regs) = t.regs() {
            // Behind the return address.
            self.hide_step_at(t.tid(), regs.rsp + 8 + UC_FLAGS);
        }
    }

    /// The flags in memory at `at` were written during a step of the engine's own: the guest does not see that.
    pub(super) fn hide_step_at(&self, tid: Tid, at: u64) {
        let Some(p) = self.process_of(tid) else { return };
        if let Some(flags) = p.memory.word(at).filter(|flags| flags & TF != 0)
            && let Err(e) = p.memory.write(at, &(flags & !TF).to_le_bytes())
        {
            log::debug!(target: subject::SIGNAL, "thread {tid}: a trap flag of ours stays at {at:#x}: {e}");
        }
    }

    /// `t` has got a SIGTRAP at `rip` in translated code. It is handed back if that is not because of the trap flag, or if
    /// it is at one of the guest's boundaries.
    pub(super) fn trap_flag(&mut self, t: Stopped, rip: u64) -> Option<Stopped> {
        let tid = t.tid();
        let info = t.siginfo().ok()?;
        if info.si_code != libc::TRAP_TRACE {
            return Some(t);
        }
        let (code_cache, _) = self.code_cache_and_state(tid)?;
        let cache_position = recover::cache_position(&code_cache.borrow(), rip);
        match cache_position {
            CachePosition::Elsewhere => return Some(t),
            CachePosition::Stub(_) => {
                // The instruction before was a branch to what has not been translated yet.
                let regs = t.regs().ok()?;
                let (t, regs) = self.step_to_boundary(t, regs)?;
                if t.set_regs(&regs).is_ok() {
                    self.note_trap(tid, GuestAddr(regs.rip));
                    self.set_state(tid, State::Guest);
                    self.deliver(t, libc::SIGTRAP);
                }
                return None;
            }
            CachePosition::Between | CachePosition::Boundary(_) => {}
        }
        let at = CacheAddr(rip);
        let before = self.threads.get_mut(&tid).map(|th| std::mem::replace(&mut th.traps.last, at));
        let boundary = code_cache.borrow().trans.place(at).and_then(|p| {
            let code_cache = code_cache.borrow();
            let b = code_cache.trans.block(p.block);
            let pc = code_cache.trans.pc_of(p.block, p.index);
            let offset = at.since(b.cache);
            if offset >= u64::from(b.len) {
                // What leads to a block that other blocks run into.
                return None;
            }
            // Behind what counts a block: that is where other blocks lead that do not count it.
            let counted = b.derived_edges_in && offset == u64::from(b.bump_end);
            let way_in = (counted || p.index == 0 && b.entry != b.cache).then_some(offset);
            let repeats = before == Some(at) && matches!(cache_position, CachePosition::Boundary(b) if b.rep.is_some());
            (p.at_start || counted || repeats).then_some((pc, way_in))
        });
        let new =
            boundary.is_some_and(|(pc, way_in)| self.threads.get_mut(&tid).is_some_and(|th| th.traps.at(pc, way_in)));
        if !new {
            t.go_on(How::Continue, 0);
            return None;
        }
        Some(t)
    }

    /// The thread has been shown a trap at `pc`.
    fn note_trap(&mut self, tid: Tid, pc: GuestAddr) {
        if let Some(th) = self.threads.get_mut(&tid) {
            th.traps.at(pc, None);
        }
    }

    /// The thread is about to enter a block anew.
    pub(super) fn enters(&mut self, tid: Tid) {
        if let Some(th) = self.threads.get_mut(&tid) {
            th.traps.passed = None;
        }
    }
}
