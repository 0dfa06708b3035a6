//! Signals. A signal that the guest does not catch is the kernel's business: nothing is touched, so an interrupted system
//! call restarts where it was. For a caught one, the thread is brought to an instruction's boundary (`boundary`), gets the
//! guest's own registers, and the kernel builds the frame; the first instruction of the handler is then translated like any other code.
//! A handler therefore sees original addresses, and may change the frame: `rt_sigreturn` restores whatever it says.

use grind_guest::process::{Again, State};
use grind_guest::recover::{self, CachePosition};
use grind_ptrace::kinds::{ASYNCHRONOUS, FAULTS, address_of, bit, called_from, set_address};
use grind_ptrace::restart;
use grind_ptrace::status::Status;
use grind_ptrace::{self as tracee, How, Regs, Stop, Stopped, is_sent};
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use nix::libc;

use super::Dispatcher;
use super::in_place::Step;
use super::trapflag::set_trap_flag;

/// Bytes of the kernel's `struct sigaction`: handler, flags, restorer, mask.
pub(super) const ACTION_SIZE: usize = 32;

/// The action that every signal begins with.
const DEFAULT_ACTION: [u8; ACTION_SIZE] = [0; ACTION_SIZE];

impl Dispatcher<'_> {
    /// A signal is about to be delivered to `t`.
    pub(super) fn signal(&mut self, t: Stopped, signal: i32, state: State) {
        log::debug!(target: subject::SIGNAL, "thread {}: signal {signal} while {state:?}", t.tid());
        match state {
            State::New => {
                t.go_on(How::Continue, signal);
            }
            State::Handler if signal == libc::SIGTRAP => self.handler_begins(t),
            State::SigReturn { traps, mask } => self.signal_in_return(t, signal, traps, mask),
            State::InPlace { pc, block, executed, mask } => {
                self.after_step(t, signal, Step { pc, block, executed, mask });
            }
            State::Guest | State::Handler => self.deliver(t, signal),
            State::Own => self.signal_in_own_code(t, signal),
            State::Call { nr, args, next } => self.signal_in_call(t, signal, nr, args, next),
            State::OtherCall => self.signal_in_int80(t, signal),
            State::Cache | State::Exec { .. } => self.signal_in_cache(t, signal),
        }
    }

    /// `rt_sigreturn` is about to be made: not before it has returned does a signal come that nobody's instruction causes, or a
    /// handler that is interrupted there again and again would never end.
    pub(super) fn begin_return(&mut self, t: Stopped, go: CacheAddr, traps: bool) {
        let Ok(mask) = t.sigmask() else { return };
        if t.set_sigmask(mask | ASYNCHRONOUS).is_ok() && t.set_rip(go.0).is_ok() {
            self.set_state(t.tid(), State::SigReturn { traps, mask });
            t.go_on(How::Step, 0);
        }
    }

    /// A signal for a thread that makes `rt_sigreturn`, whose mask was `mask`; the end of that is one, too.
    fn signal_in_return(&mut self, t: Stopped, signal: i32, traps: bool, mask: u64) {
        let tid = t.tid();
        let Ok(info) = t.siginfo() else { return };
        let done = !self.in_cache(&t);
        if is_sent(&info) && signal != libc::SIGSTOP {
            tracee::keep(tid, info);
            if !done {
                t.go_on(How::Step, 0);
                return;
            }
            // In place of the step's.
        } else if signal == libc::SIGSTOP {
            t.go_on(How::Step, signal);
            return;
        } else if signal != libc::SIGTRAP || !done {
            // A frame that cannot be restored: the kernel sends SIGSEGV. The registers are the guest's, or those of the call.
            if t.sigmask() == Ok(mask | ASYNCHRONOUS) && t.set_sigmask(mask).is_err() {
                return;
            }
            if !done {
                return self.signal_in_cache(t, signal);
            }
            self.tell_handler_ends(tid);
            return self.deliver(t, signal);
        }
        self.tell_handler_ends(tid);
        if traps && !set_trap_flag(&t) {
            return;
        }
        let Some(t) = self.release_trap(t) else { return };
        let Ok(rip) = t.rip() else { return };
        self.enter_after_signal(t, GuestAddr(rip));
    }

    pub(super) fn in_cache(&self, t: &Stopped) -> bool {
        let code_cache = self.code_cache_and_state(t.tid()).map(|(s, _)| s);
        t.rip().is_ok_and(|rip| code_cache.is_some_and(|s| s.borrow().is_cache(CacheAddr(rip))))
    }

    fn signal_in_cache(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        let (Ok(mut regs), Ok(info)) = (t.regs(), t.siginfo()) else { return };
        let fault = bit(signal) & FAULTS != 0 && !is_sent(&info) && !is_behind_call(&regs);
        if fault {
            if signal == libc::SIGSEGV && self.trace_full(tid, &info, &mut regs) {
                if t.set_regs(&regs).is_ok() {
                    t.go_on(How::Continue, 0);
                }
                return;
            }
            if self.is_unaligned_record(tid, &info, &regs) {
                let Ok(mask) = t.sigmask() else { return };
                if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
                    return;
                }
                let Some((t, stop)) = self.step_unchecked(t, regs) else { return };
                if t.set_sigmask(mask).is_err() {
                    return;
                }
                match stop {
                    Stop::Signal(libc::SIGTRAP) => {
                        t.go_on(How::Continue, 0);
                    }
                    stop => self.stopped(t, stop),
                }
                return;
            }
            if signal == libc::SIGSEGV && self.write_to_code(&t, &info) {
                // The guest changes code: let it, and run it again.
                return self.allow_write(t, &info, regs);
            }
            if signal == libc::SIGSEGV && self.stale_protection(&t, &info) {
                t.go_on(How::Continue, 0);
                return;
            }
            if self.request_is_elsewhere(tid, &mut regs) {
                if t.set_regs(&regs).is_ok() {
                    t.go_on(How::Continue, 0);
                }
                return;
            }
            let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
            if recover::own_push(&code_cache.borrow(), &mut regs) {
                if t.set_regs(&regs).is_ok() {
                    t.go_on(How::Continue, 0);
                }
                return;
            }
            let cache_rip = regs.rip;
            let b = {
                let slot = self.threads.get(&tid).map(|th| th.slot);
                let pool = self.process_of(tid).map(|p| p.pool.clone());
                let slot_word = |offset| match (slot, &pool) {
                    (Some(slot), Some(pool)) => pool.borrow().slot_word_at(slot, u16::from(offset)),
                    _ => 0,
                };
                recover::at_fault(&code_cache.borrow(), &mut regs, slot_word)
            };
            if let Some(b) = b {
                self.at_boundary(tid, &b, &mut regs);
                let mut info = info;
                if address_of(&info) == cache_rip {
                    set_address(&mut info, regs.rip);
                    let _ = t.set_siginfo(&info);
                }
            }
            if t.set_regs(&regs).is_err() {
                return;
            }
            if !matches!(self.threads.get(&tid).map(|th| th.state), Some(State::SigReturn { .. })) {
                self.set_state(tid, State::Guest);
            }
            return self.deliver(t, signal);
        }
        self.signal_comes(tid, CacheAddr(regs.rip), &info);
        if !caught(tid, signal) {
            self.still_interrupted(tid);
            self.call_again(&t, signal);
            if !restores_mask(&regs)
                && !matches!(self.was_again, Some(Again::Before(_) | Again::Interrupted(_)))
                && restart::ignored(tid, signal)
            {
                return self.go_on_after_signal(t, CacheAddr(regs.rip));
            }
            t.go_on(How::Continue, signal);
            return;
        }
        if self.is_before_call(tid, &regs) {
            self.call_with_signal(t, info);
            return;
        }
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let between = recover::cache_position(&code_cache.borrow(), regs.rip) == CachePosition::Between;
        let at = regs.rip;
        if !between {
            // Above all after an interrupted system call: the kernel may be about to restore a mask (sigsuspend, ppoll),
            // which setting one would undo.
            let Some((t, regs)) = self.step_to_boundary(t, regs) else { return };
            if t.set_regs(&regs).is_ok()
                && t.set_siginfo(&called_from(info, CacheAddr(at), GuestAddr(regs.rip))).is_ok()
            {
                self.set_state(tid, State::Guest);
                self.deliver(t, signal);
            }
            return;
        }
        let Ok(mask) = t.sigmask() else { return };
        if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
            return;
        }
        self.still_interrupted(tid);
        let Some((t, mut regs)) = self.step_to_boundary(t, regs) else { return };
        self.interrupted_before(tid, &mut regs);
        if t.set_regs(&regs).is_ok() && t.set_sigmask(mask).is_ok() && t.set_siginfo(&info).is_ok() {
            self.set_state(tid, State::Guest);
            self.deliver(t, signal);
        }
    }

    /// A signal while the thread makes a system call that grind follows. None of them blocks: it is over, or has not begun. The
    /// stop behind it is one, too.
    fn signal_in_call(&mut self, t: Stopped, signal: i32, nr: i64, args: [u64; 6], next: GuestAddr) {
        let tid = t.tid();
        let Ok(info) = t.siginfo() else { return };
        if signal == libc::SIGTRAP {
            let done = self.code_cache_and_state(tid).is_some_and(|(s, _)| t.rip() == Ok(s.borrow().gadget.at + 3));
            if is_sent(&info) {
                tracee::keep(tid, info);
            }
            if done {
                return self.after_call(t, nr, args, next);
            }
            let _ = t.resume_midway(How::Continue, 0);
            return;
        }
        if !caught(tid, signal) {
            t.go_on(How::Continue, signal);
            return;
        }
        let (Some((code_cache, _)), Ok(mask), Ok(rip)) = (self.code_cache_and_state(tid), t.sigmask(), t.rip()) else {
            return;
        };
        let mut t = t;
        if rip == code_cache.borrow().gadget.at {
            if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
                return;
            }
            match t.resume_and_wait(How::Step, 0) {
                Ok((next, Stop::Signal(_))) => t = next,
                Ok((next, stop)) => return self.stopped(next, stop),
                Err(_) => return,
            }
        }
        let Some((t, mut regs)) = self.finish_call(t, nr, args, next) else { return };
        regs.rip = next.0;
        if t.set_regs(&regs).is_ok() && t.set_sigmask(mask).is_ok() && t.set_siginfo(&info).is_ok() {
            self.set_state(tid, State::Guest);
            self.deliver(t, signal);
        }
    }

    /// Hands `signal` to a thread whose registers are the guest's.
    pub(super) fn deliver(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        if caught(tid, signal) && !self.is_blocked_fault(&t, signal) {
            log::debug!(target: subject::SIGNAL, "thread {tid}: its handler of signal {signal} begins");
            let Some(t) = self.open_frame(t) else { return };
            self.note_trap_flag(&t);
            self.set_state(tid, State::Handler);
            t.go_on(How::Step, signal);
            return;
        }
        // Ignored, deadly or stopping. If the thread survives, it goes on as a guest. Nobody survives a fault.
        let (Ok(rip), Ok(info)) = (t.rip(), t.siginfo()) else { return };
        if bit(signal) & FAULTS != 0 && !is_sent(&info) {
            if t.is_first_of_namespace() {
                let state = self.threads.get(&tid).map(|th| th.state);
                let forced = matches!(state, Some(State::Handler | State::SigReturn { .. }));
                return self.die_untraced(t, signal, forced);
            }
            self.die_of_fault(t, signal, &info);
        } else {
            let call_context = self.call_context(tid, GuestAddr(rip));
            let (t, id) = self.translation(t, GuestAddr(rip), call_context);
            let Some(t) = t else { return };
            if let Some(id) = id {
                let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
                let body = code_cache.borrow().trans.block(id).entry;
                self.set_state(tid, State::Cache);
                self.enters(tid);
                if t.set_rip(body.0).is_err() {
                    return;
                }
            }
            t.go_on(How::Continue, signal);
        }
    }

    /// `t` dies of a fault for which no handler runs: there is none, or it is blocked. The kernel kills by it whatever the program
    /// has said of the signal, so that is made void before; the thread takes no further step, where it would stop and be mistaken.
    /// (One that has forbidden system calls to itself meets the fault once more, where the program has it.)
    fn die_of_fault(&mut self, t: Stopped, signal: i32, info: &libc::siginfo_t) {
        let tid = t.tid();
        log::debug!(target: subject::SIGNAL, "thread {tid} dies of signal {signal}");
        let status = Status::of(tid);
        let mut t = t;
        if (status.signals("SigCgt") | status.signals("SigIgn")) & bit(signal) != 0 && !status.is_confined() {
            let Some(thread) = self.act(t, signal, &DEFAULT_ACTION) else { return };
            t = thread;
        }
        self.set_state(tid, State::Guest);
        if status.is_confined() {
            t.go_on(How::Continue, signal);
        } else if let Ok(mask) = t.sigmask()
            && t.set_sigmask(mask & !bit(signal)).is_ok()
            && t.set_siginfo(info).is_ok()
        {
            t.go_on(How::Continue, signal);
        }
    }

    /// A fault whose signal is blocked kills, whatever its handler is.
    fn is_blocked_fault(&self, t: &Stopped, signal: i32) -> bool {
        bit(signal) & FAULTS != 0
            && t.sigmask().is_ok_and(|m| m & bit(signal) != 0 || signal == libc::SIGTRAP && self.trap_blocked(t.tid()))
            && t.siginfo().is_ok_and(|i| !is_sent(&i))
    }

    /// The kernel has built the frame; rip is the handler's.
    fn handler_begins(&mut self, t: Stopped) {
        let Ok(rip) = t.rip() else { return };
        self.tell_handler(&t);
        self.show_own_address_in_frame(&t);
        self.hide_step_in_frame(&t);
        // Our stops are SIGTRAPs: a handler that blocks them would make the kernel reset the guest's own action for it.
        if let Ok(mask) = t.sigmask()
            && mask & bit(libc::SIGTRAP) != 0
        {
            let _ = t.set_sigmask(mask & !bit(libc::SIGTRAP));
            self.trap_blocked_in_handler(&t, true);
        } else {
            self.trap_blocked_in_handler(&t, false);
        }
        self.enter_after_signal(t, GuestAddr(rip));
    }
}

/// Whether the kernel may be about to restore a mask, because it has interrupted a system call that has one of its own.
fn restores_mask(regs: &Regs) -> bool {
    const ERESTARTNOHAND: i32 = 514;
    (regs.orig_rax as i64) >= 0 && [-i64::from(libc::EINTR), -i64::from(ERESTARTNOHAND)].contains(&(regs.rax as i64))
}

/// Whether a thread with these registers is behind a system call that it has just made. An instruction that faults shows none;
/// but the kernel may do so because it cannot restore a handler's frame.
fn is_behind_call(regs: &Regs) -> bool {
    let nr = regs.orig_rax as i64;
    nr >= 0 && nr != libc::SYS_rt_sigreturn
}

/// Whether the guest has a handler for `signal`.
pub(super) fn caught(tid: Tid, signal: i32) -> bool {
    Status::of(tid).signals("SigCgt") & bit(signal) != 0
}
