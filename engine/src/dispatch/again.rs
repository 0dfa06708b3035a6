//! System calls that end with EINTR although nobody has sent a signal that the program could notice. Most calls are made once
//! more by the kernel itself when a stop has interrupted them; some are not, whatever the reason (`signal(7)`). Natively, a
//! signal that is ignored is not even queued, and the engine's own stops do not exist: so such a call is made again here.
//!
//! A signal for the whole process interrupts one thread's call, and may be another's by the time that the call has ended: emitted code
//! stops where such a call has answered EINTR and nothing has been told (`StubKind::CallFailed`).
//!
//! Until it has begun, a signal with a handler interrupts it all the same, but not before it has given what there is to give: so it
//! would have, had it been let alone.
//!
//! A call that new code makes once more counts once. As a rule it has been taken off where it began (`leave_cache`), and the new code counts it
//! ([`CallCounts::Anew`]). If the thread's counters change in between (instrumentation, a context), it counts where it began, and is
//! taken off where it is made once more (`begins_counted`, by `Dispatcher::go_to`). [`Interrupted`] says which call that is.
//!
//! What must never happen: that a call is made again which a signal with a handler has interrupted, or job control. After an
//! ignored signal, a call with a time limit ends with EINTR all the same: made again and again, it might never end.

use grind_guest::int80::nr;
use grind_guest::process::{Again, CallCounts, Interrupted, State};
use grind_guest::recover::{self, Boundary, CachePosition};
use grind_ptrace::restart::{Restart, ignored, ignored_pending, interrupted, makes_again, restarts};
use grind_ptrace::status::Status;
use grind_ptrace::{self as tracee, How, Regs, Stop, Stopped};
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};
use nix::libc;

use super::Dispatcher;

/// Bytes of `syscall`, and of `int 0x80`.
const SYSCALL_LEN: u64 = 2;

impl Dispatcher<'_> {
    /// Thread `tid` is going to make its call again, which the kernel would have made again, too.
    pub(super) fn interrupted_by_us(&mut self, tid: Tid, call: Interrupted) {
        if let Some(th) = self.threads.get_mut(&tid) {
            th.interrupted = Some(call);
        }
    }

    /// The counters of `tid`, which stands at `rip`, are about to change: a call that it is about to make once more counts where it began.
    pub(super) fn call_stays_counted(&mut self, tid: Tid, rip: u64) {
        let Some(th) = self.threads.get_mut(&tid) else { return };
        let waits = |call: &&mut Interrupted| call.at == CacheAddr(0) || call.at.0 == rip;
        let Some(call) = th.interrupted.as_mut().filter(waits) else { return };
        if std::mem::replace(&mut call.counts, CallCounts::Before) == CallCounts::Anew {
            let (block, executed) = call.counted_by;
            self.count_last(tid, block, executed);
        }
    }

    /// A question is about `tid`, which stands still, and a part may end with it: a call that it is about to make once more counts where it
    /// began, which was before that.
    pub(super) fn call_counts_before_question(&mut self, tid: Tid) {
        self.call_stays_counted(tid, 0);
        let known = |call: &&mut Interrupted| call.at == CacheAddr(0) && call.counts == CallCounts::Known;
        let Some(call) = self.threads.get_mut(&tid).and_then(|th| th.interrupted.as_mut()).filter(known) else {
            return;
        };
        call.counts = CallCounts::Before;
        self.pull_stack(tid);
        if let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid)) {
            let _ = trace_channel.ask(|sink| {
                sink.counts_yet(p.pid, tid);
                Some(())
            });
        }
    }

    /// They have changed, and `tid` goes on where it stands. (Where calls are followed, it goes on in other code: `begins_counted`.)
    pub(super) fn call_has_counted(&mut self, tid: Tid, rip: u64) {
        if self.follows(tid) {
            return;
        }
        let Some(th) = self.threads.get_mut(&tid) else { return };
        if let Some(call) = th.interrupted.as_mut().filter(|call| call.at.0 == rip)
            && call.counts == CallCounts::Before
        {
            call.counts = CallCounts::Anew;
            let (block, executed) = call.counted_by;
            self.uncount_last(tid, block, executed);
        }
    }

    /// A signal with a handler has come for `tid`, which has been brought to the boundary of an instruction. If that is before a call which it
    /// was to make once more, it is the kernel's to say whether this signal lets that happen.
    pub(super) fn interrupted_before(&mut self, tid: Tid, regs: &mut Regs) {
        let Some(call) = self.threads.get_mut(&tid).and_then(|th| th.interrupted.take()) else { return };
        if call.at != CacheAddr(0) || call.pc.0 != regs.rip {
            return;
        }
        let (block, executed) = call.counted_by;
        self.count_last(tid, block, executed);
        regs.rip += SYSCALL_LEN;
        (regs.rcx, regs.r11) = (regs.rip, regs.eflags);
        (regs.rax, regs.orig_rax) = (call.result, call.nr);
    }

    /// `tid` is about to leave the code cache at `b`. If the sink knows of a call that it makes once more, and which has not been made, it learns
    /// that.
    pub(super) fn leaves_before_call(&self, tid: Tid, b: &Boundary) {
        let call = self.threads.get(&tid).and_then(|th| th.interrupted);
        let known = call.is_some_and(|call| call.counts == CallCounts::Known && call.counted_by.0 == b.block);
        if known
            && b.executed == 0
            && b.bumped
            && !b.after_call
            && let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid))
        {
            let _ = trace_channel.ask(|sink| {
                sink.is_unmade(p.pid, tid);
                Some(())
            });
        }
    }

    /// `tid` leaves the code cache at `b`.
    pub(super) fn call_leaves(&mut self, tid: Tid, b: &Boundary) {
        let Some(th) = self.threads.get_mut(&tid) else { return };
        match &mut th.interrupted {
            Some(call) if call.at != CacheAddr(0) && b.block == call.counted_by.0 && b.executed == 0 => {
                call.at = CacheAddr(0);
            }
            // It has been made since.
            call => *call = None,
        }
    }

    /// `tid` is about to go on with code at `pc`. Whether that begins with a call that it makes once more, and that is to be taken off.
    pub(super) fn begins_counted(&mut self, tid: Tid, pc: GuestAddr) -> bool {
        let follows = self.follows(tid);
        let Some(th) = self.threads.get_mut(&tid) else { return false };
        th.interrupted = th.interrupted.filter(|call| call.pc == pc);
        let Some(call) = th.interrupted.as_mut().filter(|call| call.counts == CallCounts::Before) else { return false };
        call.counts = if follows { CallCounts::Known } else { CallCounts::Anew };
        true
    }

    /// The stop that is being dealt with changes nothing about that.
    pub(super) fn still_interrupted(&mut self, tid: Tid) {
        if let (Some(th), Some(call)) = (self.threads.get_mut(&tid), self.was_interrupted) {
            th.interrupted = Some(call);
        }
    }

    /// `t`, which runs translated code, is about to go on after `signal` (0: a stop of the engine's own), which has no handler:
    /// if its system call was interrupted for nothing, it will be made again.
    pub(super) fn call_again(&mut self, t: &Stopped, signal: i32) {
        let Ok(mut regs) = t.regs() else { return };
        let stands = match self.was_again {
            Some(Again::Before(call)) => regs.rip == call,
            Some(Again::Interrupted(call)) => regs.rip == call || self.is_made_with_signal(&regs),
            Some(Again::Behind(_)) | None => false,
        };
        if stands {
            self.again_as_it_was(t.tid());
            return;
        }
        let restarts = restarts(&regs).is_some();
        if !restarts && !interrupted(&regs, signal == 0) || signal != 0 && !ignored(t.tid(), signal) {
            return;
        }
        if restarts {
            return self.kernel_makes_again(t.tid(), &regs);
        }
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return };
        let code_cache = code_cache.borrow();
        let call = regs.rip.wrapping_sub(SYSCALL_LEN);
        if !code_cache.calls_at(CacheAddr(call))
            || !matches!(recover::cache_position(&code_cache, regs.rip), CachePosition::Boundary(b) if b.after_call)
        {
            return;
        }
        regs.rip = call;
        regs.rax = regs.orig_rax;
        // In no system call any more, as far as restarting is concerned.
        regs.orig_rax = u64::MAX;
        if t.set_regs(&regs).is_ok() {
            self.again.insert(t.tid(), Again::Before(call));
        }
    }

    /// If the kernel is about to have `tid` make its call again, that is noted: should a signal with a handler come before it does, it would
    /// not (`call_with_signal`).
    pub(super) fn kernel_makes_again(&mut self, tid: Tid, regs: &Regs) {
        if self.is_made_with_signal(regs) {
            self.again_as_it_was(tid);
        } else if restarts(regs).is_some() {
            self.again.insert(tid, Again::Behind(regs.rip));
        }
    }

    /// `tid` has made a call, whose number is in `orig_rax` again, that was interrupted, but not stopped for a signal since. Whether it
    /// is to be made again, since it was for one that another thread has taken.
    pub(super) fn interrupted_for_another(&mut self, tid: Tid, regs: &Regs) -> bool {
        let job_controlled = self.threads.get_mut(&tid).is_some_and(|th| std::mem::take(&mut th.job_controlled));
        // A filter may answer for the kernel, again and again.
        !job_controlled && interrupted(regs, false) && !Status::of(tid).is_confined()
    }

    /// Whether a thread with these registers has come no nearer to the call that it was to make again.
    pub(super) fn is_before_call(&self, tid: Tid, regs: &Regs) -> bool {
        matches!(self.was_again, Some(Again::Before(call) | Again::Interrupted(call)) if call == regs.rip)
            || self.is_to_restart(tid, regs)
            || self.was_interrupted.is_some_and(|call| call.at == CacheAddr(regs.rip))
    }

    /// Whether it stands behind it, and the kernel was going to have it made again, or will be when what is ignored has been delivered. (The
    /// signal that stops it now may be what has interrupted it: then it will interrupt it once more, and comes.)
    pub(super) fn is_to_restart(&self, tid: Tid, regs: &Regs) -> bool {
        restarts(regs).is_some()
            && !self.is_made_with_signal(regs)
            && (self.was_again == Some(Again::Behind(regs.rip)) || ignored_pending(tid))
    }

    /// Whether it stands behind a call that has been made again with a signal.
    fn is_made_with_signal(&self, regs: &Regs) -> bool {
        restarts(regs).is_some() && self.was_again == Some(Again::Interrupted(regs.rip - SYSCALL_LEN))
    }

    /// The stop that is being dealt with changes nothing about where `tid` stands.
    pub(super) fn again_as_it_was(&mut self, tid: Tid) {
        if let Some(again) = self.was_again {
            self.again.insert(tid, again);
        }
    }

    /// The number of the call that `tid` makes once more.
    fn number_again(&self, tid: Tid, regs: &Regs) -> Option<u64> {
        let other = self.threads.get(&tid).is_some_and(|th| th.state == State::OtherCall);
        match restarts(regs) {
            Some(Restart::Continued) if other => Some(nr::RESTART_SYSCALL.into()),
            _ => makes_again(regs),
        }
    }

    /// A signal with a handler (`info`) has come for `t`, which is about to make its call again. Natively it would have come in that call,
    /// which gives what there is by now (a child that has ended, for one) before it looks for signals: so it is made, and the signal
    /// comes as soon as the kernel has begun with it.
    pub(super) fn call_with_signal(&mut self, t: Stopped, info: libc::siginfo_t) {
        let tid = t.tid();
        self.still_interrupted(tid);
        if let Ok(mut regs) = t.regs()
            && self.is_to_restart(tid, &regs)
            && let Some(nr) = self.number_again(tid, &regs)
        {
            (regs.rip, regs.rax, regs.orig_rax) = (regs.rip - SYSCALL_LEN, nr, u64::MAX);
            if t.set_regs(&regs).is_err() {
                return;
            }
            self.was_again = Some(Again::Interrupted(regs.rip));
        }
        self.again_as_it_was(tid);
        tracee::keep(tid, info);
        match t.resume_and_wait(How::Syscall, 0) {
            Ok((t, Stop::Syscall)) if self.threads.get(&tid).is_some_and(|th| th.state != State::Own) => {
                t.go_on(How::Continue, 0);
            }
            Ok((t, stop)) => self.stopped(t, stop),
            // Its end is told of.
            Err(_) => {}
        }
    }
}
