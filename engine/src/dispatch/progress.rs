//! What keeps signals from keeping a program from getting on. To deliver one takes the engine much longer than the kernel, so
//! one that comes every few microseconds has come again by the time its handler has ended. So where the same signal has come
//! twice and the thread has not moved in between, it is left alone for a spell ([`grind_ptrace::spells`]) when it has been let
//! into the handler, and out of it, or past a signal that it ignores. The kernel keeps what comes meanwhile, as it does whenever
//! a program is slow to take it.
//!
//! Invariant: a thread is not given the same signal a third time before it has executed something of the program's, or got to a
//! stop that it does not get to again in the same way (code is translated, a branch is linked); `rt_sigreturn` is not
//! interrupted ([`Dispatcher::begin_return`]). What must never happen: that a system call is made with anything blocked that the
//! program does not block; that what waited when a handler ended, each kind once or queued, is not given to the thread before
//! it goes on.

use std::time::Duration;

use grind_ptrace::kinds::{ASYNCHRONOUS, bit};
use grind_ptrace::schedule::Schedule;
use grind_ptrace::status::Status;
use grind_ptrace::tick::Ticks;
use grind_ptrace::{self as tracee, How, Stopped};
use grind_types::Tid;
use grind_types::addr::CacheAddr;
use nix::libc;

use super::Dispatcher;

/// As long as a delivery takes, roughly: so that half of the time is the program's.
const SPELL: Duration = Duration::from_micros(100);

/// A thread that has run for longer than this since it has gone on is where it was because it has come back.
const THICK: Duration = Duration::from_millis(2);

/// Signals from here on are queued, and not kept once each.
const FIRST_QUEUED: i32 = 32;

/// What ends spells.
#[derive(Debug, Default)]
pub(super) struct Spells {
    ticks: Option<Ticks>,
    ticking: bool,
}

impl Dispatcher<'_> {
    /// A signal has come for `tid` while it ran translated code, at `rip`.
    pub(super) fn signal_comes(&mut self, tid: Tid, rip: CacheAddr, info: &libc::siginfo_t) {
        let Some(th) = self.threads.get_mut(&tid) else { return };
        let p = &mut th.progress;
        if p.went_on.is_none_or(|(_, at)| at != rip) {
            (p.came, p.again) = (0, false);
        }
        // Others may have been queued.
        if info.si_signo < FIRST_QUEUED || info.si_code == libc::SI_TIMER {
            p.again |= p.came & bit(info.si_signo) != 0;
            p.came |= bit(info.si_signo);
        }
    }

    /// `tid`, which has stopped before a system call, is about to make it, at `go`: it has not moved until it has. (For how long it has run is
    /// not asked at each call: at worst a signal comes once more.)
    pub(super) fn goes_to_call(&mut self, tid: Tid, go: CacheAddr) {
        if let Some((_, at)) = self.threads.get_mut(&tid).and_then(|th| th.progress.went_on.as_mut()) {
            *at = go;
        }
    }

    /// `t` goes on in translated code, at `at`, after it has been given a signal, or has ended its handler.
    pub(super) fn go_on_after_signal(&mut self, t: Stopped, at: CacheAddr) {
        let Some(th) = self.threads.get_mut(&t.tid()) else { return };
        let now = Schedule::of(t.tid()).ran;
        let before = th.progress.went_on.replace((now, at));
        let thick = before.is_some_and(|(then, _)| now.saturating_sub(then) < THICK);
        let _ = if thick && th.progress.again {
            // What waits already and has not come yet is given to it: the kernel would not let it go on before.
            let status = Status::of(t.tid());
            let waits = (status.signals("SigPnd") | status.signals("ShdPnd")) & !th.progress.came;
            self.spells.begin();
            t.resume_undisturbed(ASYNCHRONOUS & !waits, SPELL)
        } else {
            t.resume(How::Continue, 0)
        };
    }

    /// Ends spells that have been long enough.
    pub(super) fn end_spells(&mut self) {
        if !self.spells.ticking {
            return;
        }
        if !tracee::spells() {
            return self.spells.end();
        }
        tracee::long_enough().into_iter().for_each(tracee::interrupt);
    }
}

impl Spells {
    fn begin(&mut self) {
        if self.ticks.is_none() {
            self.ticks = Ticks::new();
        }
        if let Some(ticks) = self.ticks.as_mut().filter(|_| !self.ticking) {
            // Again and again: one that comes while nobody waits is lost.
            ticks.every(SPELL);
            self.ticking = true;
        }
    }

    fn end(&mut self) {
        if let Some(ticks) = &mut self.ticks {
            ticks.stop();
        }
        self.ticking = false;
    }
}
