//! Questions about a process that goes on afterwards: dumps, zeroing, a look from outside; and threads whose costs are not
//! collected for a while.
//!
//! While something is asked, every thread of the process stands at the boundary of an instruction, or in a system call, so
//! that counts that follow from others are true and what was recorded is whole. Nobody else is disturbed. Invariants: a
//! thread that was made to stand still goes on when the question has been answered, with whatever it had stopped for; one
//! question is dealt with at a time.

use grind_code_cache::CodeCache;
use grind_guest::process::State;
use grind_guest::recover::{self, CachePosition};
use grind_guest::slots::{SlotId, SlotPool};
use grind_ptrace::kinds::{ASYNCHRONOUS, stops_processes};
use grind_ptrace::{self as tracee, Regs, Stop, Stopped, Wait};
use grind_session::{ControlRequest, Exit, Instrumentation, Wanted};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use grind_types::{Pid, Query, Tid};
use nix::libc;

use super::Dispatcher;
use grind_guest::resume::middle;

/// What a thread's counters have counted that is not to be collected.
#[derive(Debug, Default)]
pub(super) struct Uncollected {
    /// The counters when collecting ended, if it has not begun again.
    pub(super) since: Option<Vec<u64>>,
    /// What was counted in earlier stretches.
    before: Vec<u64>,
}

/// A process that stands still.
#[derive(Debug)]
pub(super) struct Standstill {
    pid: Pid,
    /// Threads that want to ask something themselves.
    waiting: Vec<Stopped>,
}

/// A thread that stands still.
#[derive(Debug)]
pub(super) enum Held {
    /// As it has stopped.
    As(Stopped, Stop),
    /// On its way, its registers the guest's.
    At {
        /// The thread.
        thread: Stopped,
        /// The program's address that it is at.
        pc: GuestAddr,
    },
}

/// Adds what a slot has counted to `sum`, but for what is not collected.
pub(super) fn add_collected(pool: &SlotPool, slot: SlotId, counters: u32, u: &Uncollected, sum: &mut Vec<u64>) {
    match &u.since {
        None => pool.add_counters(slot, counters, sum),
        Some(then) => add(sum, then, u64::wrapping_add),
    }
    add(sum, &u.before, u64::wrapping_sub);
}

fn add(sum: &mut Vec<u64>, more: &[u64], how: impl Fn(u64, u64) -> u64) {
    if sum.len() < more.len() {
        sum.resize(more.len(), 0);
    }
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum = how(*sum, *more);
    }
}

/// Whether a thread is behind a breakpoint of ours, whose signal is still to come.
pub(super) fn about_to_stop(code_cache: &CodeCache, regs: &Regs) -> bool {
    let at = regs.rip.wrapping_sub(1);
    code_cache.stub_at(CacheAddr(at)).is_some()
        || code_cache.cache_byte(CacheAddr(at)) == Some(0xcc) && code_cache.trans.dead_at(CacheAddr(at)).is_some()
}

/// Whether a thread that was told to stop in the code cache has to be brought to the boundary of an instruction: not in a
/// system call, and not where it is about to stop by itself.
pub(super) fn on_the_way(code_cache: &CodeCache, regs: &Regs) -> bool {
    let stops = about_to_stop(code_cache, regs);
    let in_call = (regs.orig_rax as i64) >= 0;
    !in_call
        && !stops
        && match recover::cache_position(code_cache, regs.rip) {
            CachePosition::Boundary(b) => !b.after_call,
            CachePosition::Between => true,
            CachePosition::Stub(_) | CachePosition::Elsewhere => false,
        }
}

impl Dispatcher<'_> {
    /// Does what somebody outside wants.
    pub(super) fn serve_control_requests(&mut self) {
        while let Some(ControlRequest { pid, what }) = self.session.control_request() {
            log::debug!(target: subject::REQUEST, "from outside, for process {pid}: {what:?}");
            match what {
                Wanted::Query(ask) => self.ask(pid, None, &ask),
                Wanted::Peek => self.peek(pid),
                Wanted::Detach => self.leave_soon(pid),
                Wanted::Collection(on) => self.collect_soon(pid, on),
                Wanted::Instrumentation(to) => self.instrument_from_outside(pid, to == Instrumentation::Start),
            }
        }
    }

    fn instrument_from_outside(&mut self, pid: Pid, on: bool) {
        let Some(p) = self.processes.get_mut(&pid).filter(|p| p.counting != on) else { return };
        p.counting = on;
        for tid in p.threads.clone() {
            if let Some(th) = self.threads.get_mut(&tid).filter(|th| !th.folded) {
                th.switch = !th.switch;
                tracee::interrupt(tid);
            }
        }
        self.instrumentation_changed(pid);
    }

    /// If another thread's question is being dealt with, `t` waits: it will be dispatched again.
    pub(super) fn wait_for_turn(&mut self, t: Stopped) -> Option<Stopped> {
        let pid = self.process_of(t.tid()).map(|p| p.pid);
        match &mut self.standstill {
            Some(s) if Some(s.pid) == pid => {
                s.waiting.push(t);
                None
            }
            _ => Some(t),
        }
    }

    /// Has the sink and the session answer a question about `pid`. Thread `tid`, if any, asks and stands still already.
    pub(super) fn ask(&mut self, pid: Pid, tid: Option<Tid>, ask: &Query) {
        let held = self.stand_still_collected(pid, tid);
        if let Some(trace_channel) = self.trace_channel.as_ref().filter(|_| self.processes.contains_key(&pid)) {
            trace_channel.asked(pid, tid, ask);
        }
        self.push_stack_all(pid);
        self.tell_asked(pid, tid, ask);
        self.go_on_all(held);
    }

    /// Makes all threads of `pid` stand still, but for `asking`, which does, and hands over what they have recorded and counted.
    pub(super) fn stand_still_collected(&mut self, pid: Pid, asking: Option<Tid>) -> Vec<Held> {
        let held = self.stand_still(pid, asking);
        for thread in self.processes.get(&pid).map(|p| p.threads.clone()).unwrap_or_default() {
            self.call_counts_before_question(thread);
            self.drain_thread(thread);
        }
        self.collect_counters_all(pid);
        held
    }

    /// Makes all threads of `pid` stand still, but for `asking`, which does.
    pub(super) fn stand_still(&mut self, pid: Pid, asking: Option<Tid>) -> Vec<Held> {
        self.standstill = Some(Standstill { pid, waiting: Vec::new() });
        let Some(p) = self.processes.get(&pid) else { return Vec::new() };
        let running = |tid: &Tid| Some(*tid) != asking && self.threads.get(tid).is_some_and(|th| !th.folded);
        let tids: Vec<Tid> = p.threads.iter().copied().filter(running).collect();
        for &tid in &tids {
            tracee::interrupt(tid);
        }
        tids.into_iter().filter_map(|tid| self.hold(tid)).collect()
    }

    /// Waits until `tid`, which was told to stop, does. None if it has ended, waits for its turn, or is where the kernel does
    /// not let it stop.
    fn hold(&mut self, tid: Tid) -> Option<Held> {
        loop {
            match tracee::wait_briefly(tid)? {
                Wait::Stopped(t, Stop::Event { event: libc::PTRACE_EVENT_STOP, signal }) => {
                    let state = self.threads.get(&tid).map_or(State::New, |th| th.state);
                    let state = self.take_back(&t, state);
                    match middle(tid, state) {
                        // It stops again behind that.
                        Some(how) => {
                            let _ = t.finish(how);
                        }
                        None => return self.settle(t, signal),
                    }
                }
                Wait::Stopped(t, Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. }) => {
                    self.exiting(t);
                    return None;
                }
                // Births and new images wait: whoever sees them is in a system call.
                Wait::Stopped(t, stop @ Stop::Event { .. }) => return Some(Held::As(t, stop)),
                Wait::Stopped(t, stop) => {
                    self.stopped(t, stop);
                    let waits = |s: &Standstill| s.waiting.iter().any(|t| t.tid() == tid);
                    if self.standstill.as_ref().is_some_and(waits) {
                        return None;
                    }
                }
                Wait::Exited { status, .. } => {
                    self.ended(tid, Exit::Code(status));
                    return None;
                }
                Wait::Killed { signal, .. } => {
                    self.ended(tid, Exit::Signal(signal));
                    return None;
                }
                Wait::Nothing | Wait::Interrupted => return None,
            }
        }
    }

    /// Brings a thread that has just stopped to the boundary of an instruction.
    fn settle(&mut self, t: Stopped, signal: i32) -> Option<Held> {
        let as_it_is = |t| Some(Held::As(t, Stop::Event { event: libc::PTRACE_EVENT_STOP, signal }));
        let (Some((code_cache, state)), Ok(regs)) = (self.code_cache_and_state(t.tid()), t.regs()) else {
            return as_it_is(t);
        };
        if state != State::Cache || !on_the_way(&code_cache.borrow(), &regs) {
            return as_it_is(t);
        }
        let Ok(mask) = t.sigmask() else { return as_it_is(t) };
        if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
            return as_it_is(t);
        }
        if stops_processes(signal) {
            // It leaves that stop for a few steps: afterwards it is stopped again.
            tracee::interrupt(t.tid());
        }
        let (t, regs) = self.step_to_boundary(t, regs)?;
        (t.set_regs(&regs).is_ok() && t.set_sigmask(mask).is_ok())
            .then_some(Held::At { thread: t, pc: GuestAddr(regs.rip) })
    }

    /// The question has been answered.
    pub(super) fn go_on_all(&mut self, held: Vec<Held>) {
        let waiting = self.standstill.take().map(|s| s.waiting).unwrap_or_default();
        for thread in held {
            match thread {
                Held::As(t, stop) => self.stopped(t, stop),
                Held::At { thread: t, pc } => {
                    self.set_state(t.tid(), State::Guest);
                    if self.is_flushing(t.tid()) {
                        // This stop was an answer to that, too.
                        self.park(t, State::Guest);
                    } else if let Some(t) = self.change_over(t) {
                        self.enter(t, pc);
                    }
                }
            }
        }
        for t in waiting {
            self.stopped(t, Stop::Signal(libc::SIGTRAP));
        }
    }

    /// Whether the costs of a thread are being collected.
    pub(super) fn collecting(&self, tid: Tid) -> bool {
        self.uncollected.get(&tid).is_none_or(|u| u.since.is_none())
    }

    /// Thread `tid`, which stands at the end of a block, has its costs collected no longer, or again. Where calls are followed, it
    /// has to go on in other code.
    pub(super) fn toggle_collect(&mut self, tid: Tid) {
        self.drain_thread(tid);
        self.pull_stack(tid);
        let Some(th) = self.threads.get(&tid) else { return };
        let Some(p) = self.processes.get(&th.pid) else { return };
        if let Some(trace_channel) = &self.trace_channel {
            trace_channel.asked(p.pid, Some(tid), &Query::ToggleCollect);
        }
        if self.follows(tid) || p.code_cache.borrow().trace.recorded.followed() {
            return self.push_stack(tid, None);
        }
        let mut now = Vec::new();
        let counters = p.code_cache.borrow().trans.counters();
        if let Some(slot) = th.counted_slot(p.counting) {
            p.pool.borrow().add_counters(slot, counters, &mut now);
        }
        let u = self.uncollected.entry(tid).or_default();
        match u.since.take() {
            None => u.since = Some(now),
            Some(then) => {
                add(&mut u.before, &now, u64::wrapping_add);
                add(&mut u.before, &then, u64::wrapping_sub);
            }
        }
    }
}
