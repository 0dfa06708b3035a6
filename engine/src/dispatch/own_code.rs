//! Own code: a process whose window of instrumentation is closed goes on in the code that its program has, and not in translations
//! of it, until something comes that only translated code can deal with. Then its thread goes on in translated code where it is, as
//! if it had never left, and after a pause leaves it once more.
//!
//! What calls a thread back: a client request, or an instruction that differs by processor (breakpoints, which [`Breakpoints`] puts
//! there); a system call with work before or behind it, at whose entry the thread stops as at any other's; a handler that is to
//! begin; a window that is opened from outside. All of them are dealt with by translated code alone, so that there is one way to do each.
//!
//! Invariants: breakpoints are in memory only while the thread that runs it runs its own code, so that neither a translation nor a
//! child ever has one; code that may change without a system call, or is shared with a file, never runs on its own, nor does a process
//! of several threads; registers are the program's, gs base included. Which kind of code runs outside a window changes no count.
//!
//! A spell in own code costs two changes, so after a short one the next pause is longer: whatever the program does, changing
//! costs it a fraction of its time.

mod calls;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use grind_fragments::fragment_table::FragmentId;
use grind_guest::breakpoints::{Breakpoints, Planted};
use grind_guest::process::{CallCounts, Interrupted, State};
use grind_layout::SlotWord;
use grind_ptrace::kinds::{FAULTS, bit};
use grind_ptrace::restart::{self, makes_again};
use grind_ptrace::status::Status;
use grind_ptrace::tick::Ticks;
use grind_ptrace::{self as tracee, How, Regs, Stop, Stopped, is_sent};
use grind_session::OwnCode as When;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use grind_types::{Pid, Tid};
use nix::libc;

use super::Dispatcher;
use super::signal::caught;
use super::trapflag::traps;
use grind_guest::resume::middle;

/// So long a process runs translated code first, where that may soon be over: about what it takes to change.
const SHORTEST: Duration = Duration::from_millis(1);
/// The pause where it does not matter what that costs.
const ALWAYS: Duration = Duration::from_micros(100);
/// The longest time after spells that were short.
const LONGEST: Duration = Duration::from_millis(32);
/// After it has turned out that a process cannot run its own code as it is: something may have changed.
const REFUSED: Duration = Duration::from_millis(500);
/// A spell that is shorter than so many of the pauses before it is short.
const WORTH: u32 = 16;

/// Each call that passes costs two stops. A program that makes this many in a row ...
const CALLS: u32 = 64;
/// ... in less than this time for each is better off in translations, where a call costs nothing.
const CALL_PAYS: Duration = Duration::from_micros(25);

/// Bytes of `syscall`, and of `int 0x80`.
const CALL_LEN: u64 = 2;

/// Processes outside their windows.
#[derive(Debug, Default)]
pub(super) struct OwnCode {
    /// Those that run translated code.
    waiting: HashMap<Pid, Waiting>,
    /// Those that run their own.
    running: HashMap<Pid, Running>,
    breakpoints: Breakpoints,
    ticks: Option<Ticks>,
}

/// A process that is to run its own code.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Instant,
    pause: Duration,
    /// Its thread has been told to stop.
    told: bool,
}

/// One that does.
#[derive(Debug)]
struct Running {
    since: Instant,
    pause: Duration,
    /// Its breakpoints.
    planted: Planted,
    /// Calls that have passed since then, [`CALLS`] at most.
    calls: (u32, Instant),
}

impl Running {
    /// One more call is about to pass. Whether there are too many of them.
    fn calls_too_often(&mut self) -> bool {
        let (calls, since) = &mut self.calls;
        *calls += 1;
        if *calls < CALLS {
            return false;
        }
        let often = since.elapsed() < CALL_PAYS * CALLS;
        self.calls = (0, Instant::now());
        often
    }
}

impl Dispatcher<'_> {
    /// Process `pid` is recorded no longer, or has not begun to be.
    pub(super) fn expect_own_code(&mut self, pid: Pid) {
        match self.settings.own_code {
            When::Never => {}
            When::WhenWorthwhile => self.own_code.wait(pid, SHORTEST),
            When::Always => self.own_code.wait(pid, ALWAYS),
        }
    }

    /// Process `pid` is recorded.
    pub(super) fn expect_no_own_code(&mut self, pid: Pid) {
        self.own_code.waiting.remove(&pid);
    }

    /// `pid` has changed code that it has mapped.
    pub(super) fn code_changes(&mut self, pid: Pid) {
        self.own_code.breakpoints.forget(pid);
    }

    /// Nothing more is known of process `pid`.
    pub(super) fn forget_own_code(&mut self, pid: Pid) {
        self.own_code.waiting.remove(&pid);
        self.own_code.running.remove(&pid);
        self.own_code.breakpoints.forget(pid);
    }

    /// Tells those to stop that are to run their own code by now.
    pub(super) fn look_at_own_code(&mut self) {
        if self.own_code.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        let due = |(pid, w): (&Pid, &Waiting)| (w.due <= now).then_some(*pid);
        for pid in self.own_code.waiting.iter().filter_map(due).collect::<Vec<_>>() {
            if !self.processes.contains_key(&pid) {
                self.own_code.waiting.remove(&pid);
                continue;
            }
            let tid = self.may_run_own_code(pid);
            let Some(w) = self.own_code.waiting.get_mut(&pid) else { continue };
            w.due = now + LONGEST;
            w.told = tid.is_some();
            if let Some(tid) = tid {
                tracee::interrupt(tid);
            }
        }
        self.own_code.tick(now);
    }

    /// The only thread of `pid`, if that may run its own code as far as the engine's books say.
    fn may_run_own_code(&self, pid: Pid) -> Option<Tid> {
        let p = self.processes.get(&pid)?;
        let &[tid] = &p.threads[..] else { return None };
        let th = self.threads.get(&tid)?;
        let code_cache = p.code_cache.borrow();
        let alone = self.processes.values().filter(|other| std::rc::Rc::ptr_eq(&other.mm, &p.mm)).count() == 1;
        let elsewhere = self.standstill.is_some() || self.is_flushing(tid) || self.has_vforked(&p.mm);
        let busy = th.folded || th.switch || th.contexts.follow.is_some() || self.decided.contains_key(&tid);
        (th.state == State::Cache
            && alone
            && !p.counting
            && !p.vforked
            && !elsewhere
            && !busy
            && !self.minds_traps(pid)
            && !code_cache.any_self_modifying()
            && !code_cache.protects()
            && (self.trace_channel.is_none() || code_cache.may_be_plain()))
        .then_some(tid)
    }

    /// Whether `tid` has been told to stop in order to run its own code.
    pub(super) fn is_to_run_own_code(&self, tid: Tid) -> bool {
        let pid = self.threads.get(&tid).map(|th| th.pid);
        pid.and_then(|pid| self.own_code.waiting.get(&pid)).is_some_and(|w| w.told)
    }

    /// `t`, in translated code, has stopped for that.
    pub(super) fn begin_own_code(&mut self, t: Stopped) {
        let tid = t.tid();
        let Some(pid) = self.threads.get(&tid).map(|th| th.pid) else { return };
        if let Some(w) = self.own_code.waiting.get_mut(&pid) {
            w.told = false;
        }
        if let Some(how) = middle(tid, State::Cache) {
            let _ = t.finish(how);
            return;
        }
        let Ok(regs) = t.regs() else { return };
        if self.may_run_own_code(pid) != Some(tid) || traps(&regs) {
            self.call_again(&t, 0);
            t.go_on(How::Continue, 0);
            return;
        }
        let Some(t) = self.leave_cache(t, regs) else { return };
        let Ok(mut regs) = t.regs() else { return };
        let Some(planted) = self.plant(&t, pid) else {
            log::debug!(target: subject::DISPATCH, "process {pid} cannot run its own code");
            let pause = if self.settings.own_code == When::Always { SHORTEST } else { REFUSED };
            self.own_code.wait(pid, pause);
            return self.enter(t, GuestAddr(regs.rip));
        };
        log::debug!(target: subject::DISPATCH, "process {pid} runs its own code from {:#x} on", regs.rip);
        let pause = self.own_code.waiting.remove(&pid).map_or(SHORTEST, |w| w.pause.min(LONGEST));
        self.own_code
            .running
            .insert(pid, Running { since: Instant::now(), pause, planted, calls: (0, Instant::now()) });
        self.windows.is_elsewhere(pid);
        regs.gs_base = self.slot_word(tid, SlotWord::GuestGs);
        if t.set_regs(&regs).is_ok() {
            self.set_state(tid, State::Own);
            t.go_on(How::Syscall, 0);
        }
    }

    /// Puts breakpoints into the memory of `t`, which stands at an instruction of its own. `None`: there is code of which it is not
    /// known what it does, or the kernel would not let breakpoints be.
    fn plant(&mut self, t: &Stopped, pid: Pid) -> Option<Planted> {
        const READ_IMPLIES_EXEC: u64 = 0x40_0000;
        let tid = t.tid();
        let personality = std::fs::read_to_string(format!("/proc/{tid}/personality")).ok()?;
        let readable_is_code = u64::from_str_radix(personality.trim(), 16).ok()? & READ_IMPLIES_EXEC != 0;
        // (A breakpoint that is blocked kills.)
        let blocked = t.sigmask().ok()? & bit(libc::SIGTRAP) != 0;
        if readable_is_code || blocked || Status::of(tid).is_confined() {
            return None;
        }
        let masked = self.masked();
        let p = self.processes.get_mut(&pid)?;
        self.own_code.breakpoints.plant(p, tid, masked)
    }

    /// `t`, which runs its own code and whose registers are `regs`, in no system call, goes on in translated code: it is made ready
    /// for that.
    fn leave_own_code(&mut self, t: Stopped, regs: Regs) -> Option<Stopped> {
        self.leave_own_code_for(t, regs, false)
    }

    /// The same; `in_calls`: since it makes system calls too often.
    fn leave_own_code_for(&mut self, t: Stopped, mut regs: Regs, in_calls: bool) -> Option<Stopped> {
        let tid = t.tid();
        let pid = self.threads.get(&tid)?.pid;
        if let Some(running) = self.own_code.running.remove(&pid) {
            let p = self.processes.get(&pid)?;
            running.planted.take_out(p);
            let pause = match self.settings.own_code {
                When::Always => ALWAYS,
                _ if !in_calls && running.since.elapsed() > running.pause * WORTH => SHORTEST,
                _ => (running.pause * 2).min(LONGEST),
            };
            log::debug!(
                target: subject::DISPATCH,
                "process {pid} goes on in translations at {:#x} after {:?}", regs.rip, running.since.elapsed()
            );
            if !p.counting {
                self.own_code.wait(pid, pause);
                self.window_is_closed(pid);
            }
        }
        if let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) {
            p.pool.borrow().set_slot_word(th.slot, SlotWord::GuestGs, regs.gs_base);
        }
        regs.gs_base = self.gs(tid);
        t.set_regs(&regs).ok()?;
        self.set_state(tid, State::Guest);
        self.forget_calls(pid, tid);
        Some(t)
    }

    /// What translated code knew of the calls of `tid` is not true any more: it has called and returned without anybody.
    fn forget_calls(&mut self, pid: Pid, tid: Tid) {
        if !self.follows(tid) {
            return;
        }
        self.drain_thread(tid);
        self.collect_counters(tid);
        if let Some(trace_channel) = &self.trace_channel {
            trace_channel.recording(pid, tid, false);
        }
        self.push_stack_whole(tid);
    }

    /// The same, and it goes on.
    fn go_on_in_translations(&mut self, t: Stopped, regs: Regs, in_calls: bool) {
        if let Some(t) = self.leave_own_code_for(t, regs, in_calls)
            && let Some(t) = self.change_over(t)
            && let Some(t) = self.ready_trace(t)
        {
            self.enter(t, GuestAddr(regs.rip));
        }
    }

    /// `t`, which runs its own code, has been told to stop and is wanted in translated code. `None`: it has something else to stop
    /// for first.
    pub(super) fn call_back(&mut self, t: Stopped) -> Option<Stopped> {
        let tid = t.tid();
        if let Some(how) = middle(tid, State::Own) {
            let _ = t.finish(how);
            return None;
        }
        let mut regs = t.regs().ok()?;
        if let Some(nr) = makes_again(&regs) {
            // It has counted where it began: nowhere.
            let call = Interrupted {
                at: CacheAddr(0),
                pc: GuestAddr(regs.rip - CALL_LEN),
                result: regs.rax,
                nr: regs.orig_rax,
                counted_by: (FragmentId(0), 1),
                counts: CallCounts::Before,
            };
            self.interrupted_by_us(tid, call);
            (regs.rip, regs.rax) = (regs.rip - CALL_LEN, nr);
        }
        regs.orig_rax = u64::MAX;
        self.leave_own_code(t, regs)
    }

    /// `t`, which runs its own code, has stopped for nothing that concerns it.
    pub(super) fn stay_in_own_code(&mut self, t: Stopped, stopped_by_us: bool) {
        if stopped_by_us && let Ok(mut regs) = t.regs() {
            if restart::interrupted(&regs, true) {
                (regs.rip, regs.rax, regs.orig_rax) = (regs.rip - CALL_LEN, regs.orig_rax, u64::MAX);
                let _ = t.set_regs(&regs);
            }
            self.kernel_makes_again(t.tid(), &regs);
        }
        t.go_on(How::Syscall, 0);
    }

    /// `t`, which runs its own code, is at the entry to a system call, or at its end.
    pub(super) fn call_of_own_code(&mut self, t: Stopped) {
        let tid = t.tid();
        self.again_as_it_was(tid);
        let mut in_calls = false;
        let harmless = match t.call() {
            None => true,
            Some(call) => {
                let passes = call.nr.is_some_and(|nr| self.passes(tid, nr, call.args));
                in_calls = passes && self.calls_too_often(tid);
                passes && !in_calls
            }
        };
        if harmless {
            t.go_on(How::Syscall, 0);
            return;
        }
        // It is not made here, but by translated code.
        let Ok(entry) = t.regs() else { return };
        if t.set_regs(&Regs { orig_rax: u64::MAX, ..entry }).is_err() {
            return;
        }
        match t.resume_and_wait(How::Syscall, 0) {
            Ok((t, Stop::Syscall)) => {
                let regs = Regs { rip: entry.rip - CALL_LEN, rax: entry.orig_rax, orig_rax: u64::MAX, ..entry };
                self.go_on_in_translations(t, regs, in_calls);
            }
            Ok((t, stop)) => self.stopped(t, stop),
            Err(_) => {}
        }
    }

    /// A signal for `t`, which runs its own code; that of a breakpoint is one, too.
    pub(super) fn signal_in_own_code(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        let (Ok(mut regs), Ok(info)) = (t.regs(), t.siginfo()) else { return };
        let breakpoint = signal == libc::SIGTRAP && self.is_planted(tid, GuestAddr(regs.rip.wrapping_sub(1)));
        if breakpoint {
            regs.rip -= 1;
            regs.orig_rax = u64::MAX;
            if !is_sent(&info) {
                return self.go_on_in_translations(t, regs, false);
            }
            // The kernel keeps one SIGTRAP at a time: that of the breakpoint is left out, and will come again.
            if t.set_regs(&regs).is_err() {
                return;
            }
        }
        // (Of a fault not everybody dies by itself: the first process of a namespace does not.)
        let fault = bit(signal) & FAULTS != 0 && !is_sent(&info);
        if !fault && !caught(tid, signal) {
            if restart::ignored(tid, signal) {
                if restart::interrupted(&regs, false) {
                    (regs.rip, regs.rax, regs.orig_rax) = (regs.rip - CALL_LEN, regs.orig_rax, u64::MAX);
                    if t.set_regs(&regs).is_err() {
                        return;
                    }
                }
                self.kernel_makes_again(tid, &regs);
            }
            t.go_on(How::Syscall, signal);
            return;
        }
        if !fault && (self.is_to_restart(tid, &regs) || self.was_interrupted.is_some_and(|call| call.pc.0 == regs.rip))
        {
            self.call_with_signal(t, info);
            return;
        }
        let Some(t) = self.leave_own_code(t, regs) else { return };
        self.deliver(t, signal);
    }

    /// Whether `tid`, about to make a call that would pass, makes them so often that they cost more than translations would.
    fn calls_too_often(&mut self, tid: Tid) -> bool {
        let pays = self.settings.own_code == When::Always;
        let Some(pid) = self.threads.get(&tid).map(|th| th.pid) else { return false };
        !pays && self.own_code.running.get_mut(&pid).is_some_and(Running::calls_too_often)
    }

    /// Whether a breakpoint of ours is at `at`.
    fn is_planted(&self, tid: Tid, at: GuestAddr) -> bool {
        let running = self.threads.get(&tid).and_then(|th| self.own_code.running.get(&th.pid));
        running.is_some_and(|r| r.planted.has(at))
    }
}

impl OwnCode {
    fn wait(&mut self, pid: Pid, pause: Duration) {
        let now = Instant::now();
        self.waiting.insert(pid, Waiting { due: now + pause, pause, told: false });
        self.tick(now);
    }

    /// Interrupts what is waited for when the next one is due.
    fn tick(&mut self, now: Instant) {
        let Some(next) = self.waiting.values().map(|w| w.due).min() else { return };
        if self.ticks.is_none() {
            self.ticks = Ticks::new();
        }
        if let Some(ticks) = &mut self.ticks {
            ticks.set(next.saturating_duration_since(now).max(ALWAYS));
        }
    }
}
