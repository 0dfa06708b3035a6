//! Windows of instrumentation: while nothing of an address space is recorded, its translations are plain. They count, as the fastest
//! ones do, and neither simulate nor follow anything. When recording begins, and when it has ended a while ago, all
//! translations are thrown away ([`super::flush`]) and the other kind is made from then on.
//!
//! Invariants: a thread whose request begins a window does not go on before its translations record; no thread changes over
//! to the slot that counts while its translations are plain. Which kind of code runs outside a window changes no count.
//!
//! To throw everything away at the end of each window would cost a program that makes thousands of short ones far more than
//! code that records for nobody. So that is done once the program has run for [`QUIET`] without a window, which is about what it
//! costs: whatever the program does, it takes at most about twice as long as if its future had been known.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use grind_guest::process::Process;
use grind_ptrace::tick::Ticks;
use grind_ptrace::{Regs, Stopped};
use grind_session::Notice;
use grind_types::{Pid, Tid};

use super::Dispatcher;
use super::flush::Reason;

/// As long as it takes to translate anew what a program of some size uses.
const QUIET: Duration = Duration::from_millis(50);

/// Processes whose translations do not fit their state of instrumentation.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Those that are to record: from now on.
    opened: Vec<Pid>,
    /// Those that do not, and since when.
    closed: HashMap<Pid, Instant>,
    ticks: Option<Ticks>,
}

impl Dispatcher<'_> {
    /// Whether the translations that `tid` runs record nothing for the time being.
    pub(super) fn is_plain(&self, tid: Tid) -> bool {
        self.process_of(tid).is_some_and(|p| p.code_cache.borrow().trace.plain())
    }

    /// Whether `tid` is to be recorded, but its translations are still plain.
    pub(super) fn waits_for_recording(&self, tid: Tid) -> bool {
        self.process_of(tid).is_some_and(|p| p.counting && p.code_cache.borrow().trace.plain())
    }

    /// Process `pid` has come to be recorded, or not, or is new.
    pub(super) fn instrumentation_changed(&mut self, pid: Pid) {
        let Some(p) = self.processes.get(&pid) else { return };
        self.windows.closed.remove(&pid);
        if !p.counting {
            self.window_is_closed(pid);
            return self.expect_own_code(pid);
        }
        if p.code_cache.borrow().trace.plain() {
            self.windows.opened.push(pid);
        }
        self.expect_no_own_code(pid);
        self.open_windows();
    }

    /// Process `pid`, which is not recorded, runs translations from here on.
    pub(super) fn window_is_closed(&mut self, pid: Pid) {
        let records = |p: &Process| !p.code_cache.borrow().trace.plain() && p.code_cache.borrow().may_be_plain();
        if self.processes.get(&pid).is_some_and(records) {
            self.windows.closed.insert(pid, Instant::now());
            self.windows.tick();
        }
    }

    /// `t`, whose translations are plain, has asked to be recorded; `regs` are those with which it goes on in translated code.
    pub(super) fn record_from_here(&mut self, t: Stopped, regs: Regs) {
        let tid = t.tid();
        let Some((pid, vforked)) = self.process_of(tid).map(|p| (p.pid, p.vforked)) else { return };
        if t.set_regs(&regs).is_err() {
            return;
        }
        let Some(t) = self.leave_cache(t, regs) else { return };
        if vforked {
            // Its creator waits in the kernel for it, in the translations that would have to be thrown away.
            let what =
                "instrumentation cannot be switched on between vfork and execve: what is run until then is not counted";
            self.session.notice(pid, Notice::Warning(what.into()));
            self.release([(tid, t)].into());
            return;
        }
        // Another thread may have been first.
        let Some(t) = self.instrument(t, true) else { return };
        self.too_early.insert(tid, t);
        self.open_windows();
    }

    /// Begins what has become possible or due.
    pub(super) fn look_at_windows(&mut self) {
        if !self.windows.opened.is_empty() || !self.too_early.is_empty() {
            self.open_windows();
        }
        if !self.windows.closed.is_empty() {
            self.close_windows();
        }
    }

    fn open_windows(&mut self) {
        for pid in std::mem::take(&mut self.windows.opened) {
            let Some(p) = self.processes.get(&pid).filter(|p| p.counting && p.code_cache.borrow().trace.plain()) else {
                continue;
            };
            // It may be given up, or have to wait until a child that uses the memory runs a program.
            let (mm, first) = (p.mm.clone(), p.threads.first().copied());
            self.windows.opened.push(pid);
            if !first.is_some_and(|tid| self.is_flushing(tid)) && !self.has_vforked(&mm) {
                self.begin_flush(pid, Reason::Anew);
            }
        }
        for (tid, t) in std::mem::take(&mut self.too_early) {
            let Some(state) = self.threads.get(&tid).map(|th| th.state) else { continue };
            if self.is_flushing(tid) {
                self.park(t, state);
            } else if self.waits_for_recording(tid) {
                self.too_early.insert(tid, t);
            } else {
                self.release([(tid, t)].into());
            }
        }
    }

    fn close_windows(&mut self) {
        let now = Instant::now();
        let due: Vec<Pid> =
            self.windows.closed.iter().filter(|(_, at)| now - **at >= QUIET).map(|(&pid, _)| pid).collect();
        for pid in due {
            self.windows.closed.remove(&pid);
            let Some(mm) = self.processes.get(&pid).map(|p| p.mm.clone()) else { continue };
            let of_mm = |p: &&Process| Rc::ptr_eq(&p.mm, &mm);
            let wanted =
                self.processes.values().filter(of_mm).any(|p| p.counting || p.code_cache.borrow().trace.plain());
            if !wanted && !self.begin_flush(pid, Reason::Anew) {
                self.windows.closed.insert(pid, now);
            }
        }
        if !self.windows.closed.is_empty() {
            self.windows.tick();
        }
    }
}

impl Windows {
    /// Process `pid` runs no translations.
    pub(super) fn is_elsewhere(&mut self, pid: Pid) {
        self.closed.remove(&pid);
    }

    /// Interrupts what is waited for when the next look is due.
    fn tick(&mut self) {
        let next = self.closed.values().min().map(|at| QUIET.saturating_sub(at.elapsed()));
        if self.ticks.is_none() {
            self.ticks = Ticks::new();
        }
        if let (Some(ticks), Some(next)) = (&mut self.ticks, next) {
            ticks.set(next.max(Duration::from_millis(1)));
        }
    }
}
