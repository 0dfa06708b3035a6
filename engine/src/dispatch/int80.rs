//! System calls by `int 0x80`: another table of numbers, 32-bit arguments, no register touched but rax. Such an instruction
//! always stops. Its call is made from a place of its own in the code cache, behind which the thread stops again, and what
//! the call does to mappings, processes and images is followed as if it had been made by `syscall`.
//!
//! Invariants: the instruction has been counted when its call begins, and not if the thread is taken back to it, be it that a
//! signal came first or that the call is made again; signals are never held back, so that they interrupt a call that waits.
//!
//! Not covered: what these calls tell of limits (`getrlimit`) and of memory that is locked, and 32-bit handlers of signals.

use grind_fragments::fragment_table::FragmentId;
use grind_guest::int80::{Call, nr};
use grind_guest::process::State;
use grind_ptrace::kinds::called_from;
use grind_ptrace::restart::{self, Restart, restarts};
use grind_ptrace::{self as tracee, How, Regs, Stopped, is_sent};
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};
use nix::libc;

use super::Dispatcher;
use super::signal::caught;

/// Bytes of the instruction.
const LEN: u64 = 2;

impl Dispatcher<'_> {
    /// `t` is before the `int 0x80` at `pc`, which ends `block` and has been counted; `regs` are the guest's.
    pub(super) fn int80(&mut self, t: Stopped, mut regs: Regs, pc: GuestAddr, next: GuestAddr, block: FragmentId) {
        let tid = t.tid();
        let args = [regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi, regs.rbp].map(|r| u64::from(r as u32));
        let mut call = Call { pc, next, block, nr: regs.rax as u32, args, mapping: None, follow: false };
        let mut t = t;
        match call.nr {
            // Frames of another kind, which lead to code of another kind: in its place, as far as that goes.
            nr::SIGRETURN | nr::RT_SIGRETURN => return self.in_place(t, regs, pc, block, None),
            nr::RSEQ => return self.int80_answered(t, regs, next, libc::ENOSYS),
            nr::FORK | nr::CLONE | nr::VFORK | nr::CLONE3 if self.no_more_births(tid) => {
                self.warn_no_more_births(tid);
                return self.int80_answered(t, regs, next, libc::EAGAIN);
            }
            nr::CLONE => regs.rbx &= !(libc::CLONE_UNTRACED as u64),
            nr::PTRACE => self.warn_of_ptrace(tid),
            nr::SECCOMP | nr::PRCTL if call.nr == nr::SECCOMP || args[0] as i32 == libc::PR_SET_SECCOMP => {
                let Some(thread) = self.before_confinement(t) else { return };
                t = thread;
            }
            nr::EXECVE | nr::EXECVEAT => {
                let (folder, path, argv) = match call.nr {
                    nr::EXECVE => (libc::AT_FDCWD, args[0], args[1]),
                    _ => (args[0] as i32, args[1], args[2]),
                };
                let Some((thread, follow)) = self.before_exec(t, folder, path, argv, 4) else { return };
                (t, call.follow) = (thread, follow);
            }
            _ => {
                call.mapping = self.process_of(tid).and_then(|p| call.as_mapping(tid, &p.memory));
                if let Some((nr, args)) = &mut call.mapping {
                    let Some(thread) = self.before_mapping(t, *nr, args) else { return };
                    t = thread;
                }
            }
        }
        self.other_calls.insert(tid, call);
        self.make_int80(t, regs);
    }

    fn make_int80(&mut self, t: Stopped, mut regs: Regs) {
        let tid = t.tid();
        let Some(at) = self.int80_gadget(tid) else { return };
        regs.rip = at;
        // In no system call any more, as far as restarting is concerned.
        regs.orig_rax = u64::MAX;
        if t.set_regs(&regs).is_ok() {
            self.set_state(tid, State::OtherCall);
            t.go_on(How::Continue, 0);
        }
    }

    fn int80_answered(&mut self, t: Stopped, mut regs: Regs, next: GuestAddr, errno: i32) {
        regs.rax = -i64::from(errno) as u64;
        if t.set_regs(&regs).is_ok() {
            self.enter(t, next);
        }
    }

    fn int80_gadget(&self, tid: Tid) -> Option<u64> {
        self.code_cache_and_state(tid).map(|(s, _)| s.borrow().gadget.int80())
    }

    /// A signal is about to be delivered to a thread that makes such a call; the stop behind it is one, too.
    pub(super) fn signal_in_int80(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        let Some(at) = self.int80_gadget(tid) else { return };
        let Ok(rip) = t.rip() else { return };
        if signal == libc::SIGTRAP {
            if rip == at + LEN + 1 {
                if let Some(info) = t.siginfo().ok().filter(is_sent) {
                    // In place of the breakpoint's.
                    tracee::keep(tid, info);
                }
                return self.after_int80(t);
            }
            if self.withhold_trap(&t) {
                t.go_on(How::Continue, 0);
                return;
            }
        }
        if !caught(tid, signal) {
            self.int80_again(&t, signal);
            t.go_on(How::Continue, signal);
            return;
        }
        let (Ok(info), Ok(regs)) = (t.siginfo(), t.regs()) else { return };
        if self.is_to_restart(tid, &regs) {
            return self.call_with_signal(t, info);
        }
        // The kernel gives the call its result, or has it made again, behind the handler.
        if let Some(t) = self.leave_int80(t, false)
            && let Ok(now) = t.rip()
            && t.set_siginfo(&called_from(info, CacheAddr(at + LEN), GuestAddr(now))).is_ok()
        {
            self.deliver(t, signal);
        }
    }

    /// The call has returned.
    fn after_int80(&mut self, t: Stopped) {
        let tid = t.tid();
        let (Some(call), Ok(mut regs)) = (self.other_calls.get(&tid).copied(), t.regs()) else { return };
        let mut t = t;
        let protects = self.code_cache_and_state(tid).is_some_and(|(s, _)| s.borrow().protects());
        if regs.rax as i64 == -i64::from(libc::EFAULT) && protects {
            // As after `syscall`: it may be because of pages that the engine has protected.
            let Some(t) = self.open_range(t, GuestAddr(0), GuestAddr(u64::MAX)) else { return };
            regs.rax = call.nr.into();
            return self.make_int80(t, regs);
        }
        t = match self.int80_done(t, &call, &regs) {
            Some(t) => t,
            None => return,
        };
        regs.rip = call.next.0;
        regs.orig_rax = u64::MAX;
        if t.set_regs(&regs).is_ok() {
            self.enter(t, call.next);
        }
    }

    /// Follows what a call that has returned did.
    fn int80_done(&mut self, t: Stopped, call: &Call, regs: &Regs) -> Option<Stopped> {
        self.other_calls.remove(&t.tid());
        match call.mapping {
            Some((nr, args)) => self.after_mapping(t, nr, args, regs.rax),
            None => Some(t),
        }
    }

    /// Brings a thread that makes such a call to the guest's own addresses: before the instruction if the call has not begun,
    /// behind it if it has returned. One that was interrupted stands behind it, and the kernel sees to the rest; with `again`
    /// it is made again by the guest.
    pub(super) fn leave_int80(&mut self, t: Stopped, again: bool) -> Option<Stopped> {
        let tid = t.tid();
        let call = self.other_calls.get(&tid).copied()?;
        let at = self.int80_gadget(tid)?;
        let mut regs = t.regs().ok()?;
        let restart = restarts(&regs).filter(|_| again).or_else(|| {
            let for_nothing = again && regs.rax as i64 == -i64::from(libc::EINTR) && call.never_made_again(true);
            for_nothing.then_some(Restart::Same)
        });
        let t = if regs.rip == at || restart.is_some() {
            match restart {
                Some(Restart::Continued) => regs.rax = nr::RESTART_SYSCALL.into(),
                Some(Restart::Same) => regs.rax = regs.orig_rax,
                None => {}
            }
            regs.rip = call.pc.0;
            regs.orig_rax = u64::MAX;
            self.other_calls.remove(&tid);
            let executed = self.process_of(tid)?.code_cache.borrow().trans.block(call.block).n;
            self.uncount_last(tid, call.block, executed);
            t
        } else {
            regs.rip = call.next.0;
            self.int80_done(t, &call, &regs)?
        };
        t.set_regs(&regs).ok()?;
        self.set_state(tid, State::Guest);
        Some(t)
    }

    /// `t` is about to go on after `signal` (0: a stop of the engine's own), which has no handler: if its call was interrupted
    /// for nothing, and the kernel does not make it again, that is done here.
    pub(super) fn int80_again(&mut self, t: &Stopped, signal: i32) {
        let tid = t.tid();
        let (Some(call), Some(at), Ok(mut regs)) = (self.other_calls.get(&tid), self.int80_gadget(tid), t.regs())
        else {
            return;
        };
        if regs.rip != at + LEN || signal != 0 && !restart::ignored(tid, signal) {
            return;
        }
        if regs.rax as i64 == -i64::from(libc::EINTR) && call.never_made_again(signal == 0) {
            regs.rip = at;
            regs.rax = call.nr.into();
            regs.orig_rax = u64::MAX;
            let _ = t.set_regs(&regs);
        }
        self.kernel_makes_again(tid, &regs);
    }

    /// The thread is about to end: if its call has not begun, the instruction has not been executed.
    pub(super) fn int80_never_made(&mut self, t: &Stopped) {
        let tid = t.tid();
        let Some(call) = self.other_calls.get(&tid).copied() else { return };
        if let (Ok(rip), Some(at)) = (t.rip(), self.int80_gadget(tid))
            && rip == at
            && let Some(p) = self.process_of(tid)
        {
            let executed = p.code_cache.borrow().trans.block(call.block).n;
            self.uncount_last(tid, call.block, executed);
        }
    }

    /// Thread `child` has been created by `tid`, perhaps by such a call: it comes out of the same one.
    pub(super) fn born_of_int80(&mut self, tid: Tid, child: Tid) {
        if let Some(call) = self.other_calls.get(&tid).copied() {
            self.other_calls.insert(child, call);
        }
    }

    /// Where a thread that such a call has created begins, if one has.
    pub(super) fn begins_behind_int80(&mut self, tid: Tid) -> Option<GuestAddr> {
        self.other_calls.remove(&tid).map(|call| call.next)
    }
}
