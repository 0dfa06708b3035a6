//! Throwing translations away when they have become too many: all threads of the address space are brought to guest
//! addresses and wait there, their counts are taken, everything is forgotten (`code_cache::flush`), and they go on, to be
//! translated anew. Invariants: no thread runs, or will return to, translated code when it is thrown away; nothing is
//! counted twice or lost; a thread that waits in a system call makes that call once more, as the kernel does after a stop.
//!
//! While a thread waits for a child of its own (vfork), nothing can make it stop; so nothing is thrown away then.

use std::collections::HashMap;
use std::rc::Rc;

use grind_guest::process::{CallCounts, Interrupted, State};
use grind_guest::recover::{self, Boundary, CachePosition};
use grind_ptrace::kinds::ASYNCHRONOUS;
use grind_ptrace::restart::makes_again;
use grind_ptrace::{self as tracee, How, Regs, Stop, Stopped};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use grind_types::{Pid, Tid};
use nix::libc;

use super::Dispatcher;
use super::announce::announce;
use super::trapflag;
use grind_guest::resume::middle;

/// So many instructions of translated code at most are executed to get to the next block.
const STEPS: usize = 200;

/// Why translations are thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// There are too many, or other ones are needed.
    Anew,
    /// In order to translate what is executed often better.
    Speed,
    /// Their processes are left to themselves.
    Leaving,
}

/// An address space whose translations are to be thrown away.
#[derive(Debug)]
pub(super) struct Flush {
    pub(super) mm: Rc<()>,
    /// The threads that wait for it.
    waiting: HashMap<Tid, Stopped>,
    pub(super) reason: Reason,
}

impl Flush {
    /// The threads that wait for it.
    pub(super) fn into_waiting(self) -> HashMap<Tid, Stopped> {
        self.waiting
    }
}

impl Dispatcher<'_> {
    /// Lets all threads that use the translations of `pid` stop, in order to throw them away.
    pub(super) fn begin_flush(&mut self, pid: Pid, reason: Reason) -> bool {
        let Some(p) = self.processes.get(&pid) else { return false };
        let mm = p.mm.clone();
        if self.flushes.iter().any(|r| Rc::ptr_eq(&r.mm, &mm)) || self.has_vforked(&mm) {
            return false;
        }
        let threads = self.threads_of(&mm);
        // What was not collected is known by counters that would be gone. (Those of plain code are nobody's.)
        let plain = p.code_cache.borrow().trace.plain();
        if !plain && reason != Reason::Leaving && threads.iter().any(|tid| self.uncollected.contains_key(tid)) {
            return false;
        }
        for tid in threads {
            tracee::interrupt(tid);
        }
        log::debug!(target: subject::FLUSH, "process {pid}: a flush begins: {reason:?}");
        self.flushes.push(Flush { mm, waiting: HashMap::new(), reason });
        true
    }

    /// Nobody has stopped for a while: those who are still waited for are told once more. (They are in places where the kernel
    /// does not let them stop; or there is one where being told gets lost.)
    pub(super) fn remind(&self) {
        for r in &self.flushes {
            for tid in self.threads_of(&r.mm).into_iter().filter(|tid| !r.waiting.contains_key(tid)) {
                tracee::interrupt(tid);
            }
        }
    }

    /// Whether a process waits for one that shares its memory.
    pub(super) fn has_vforked(&self, mm: &Rc<()>) -> bool {
        let inside = |pid: Pid| self.processes.get(&pid).is_some_and(|p| Rc::ptr_eq(&p.mm, mm));
        self.processes.values().any(|p| p.vforked && p.parent.is_some_and(inside))
    }

    fn threads_of(&self, mm: &Rc<()>) -> Vec<Tid> {
        let mine = |th: &&Tid| self.threads.get(th).is_some_and(|th| !th.folded);
        let of = self.processes.values().filter(|p| Rc::ptr_eq(&p.mm, mm));
        of.flat_map(|p| p.threads.iter().filter(mine).copied()).collect()
    }

    /// Whether `tid`'s translations are to be thrown away.
    pub(super) fn is_flushing(&self, tid: Tid) -> bool {
        !self.flushes.is_empty()
            && self.process_of(tid).is_some_and(|p| self.flushes.iter().any(|r| Rc::ptr_eq(&r.mm, &p.mm)))
    }

    /// `pid` is about to wait for a child of its own: what was begun is given up.
    pub(super) fn cancel_flush(&mut self, pid: Pid) {
        let Some(mm) = self.processes.get(&pid).map(|p| p.mm.clone()) else { return };
        if let Some(i) = self.flushes.iter().position(|r| Rc::ptr_eq(&r.mm, &mm)) {
            let r = self.flushes.swap_remove(i);
            let (early, others) = r.waiting.into_iter().partition(|(tid, _)| self.waits_for_recording(*tid));
            self.too_early.extend::<HashMap<Tid, Stopped>>(early);
            self.release(others);
        }
    }

    /// `t`, in `state`, has stopped because it was told to. It waits, unless it is in the middle of something: then it will be
    /// back here.
    pub(super) fn park(&mut self, t: Stopped, state: State) {
        let tid = t.tid();
        let state = self.take_back(&t, state);
        if let Some(how) = middle(tid, state) {
            let _ = t.finish(how);
            return;
        }
        let Ok(regs) = t.regs() else { return };
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let between = matches!(recover::cache_position(&code_cache.borrow(), regs.rip), CachePosition::Between);
        if state == State::Cache && between && trapflag::traps(&regs) {
            // The trap of its last instruction comes with the next boundary: the guest's, not that of a step of ours.
            let _ = t.finish(How::Continue);
            return;
        }
        let reason = self.process_of(tid).and_then(|p| self.flushes.iter().find(|r| r.is_of(&p.mm))).map(|r| r.reason);
        if let (Some(Reason::Leaving), State::Call { .. }) = (reason, state) {
            // What it does is followed first, which does not take long.
            let _ = t.finish(How::Continue);
            return;
        }
        let (t, regs) = match state {
            State::Cache if reason == Some(Reason::Speed) => match self.run_to_block(t, regs) {
                Some(at_block) => at_block,
                None => return,
            },
            _ => (t, regs),
        };
        let t = match state {
            State::Guest | State::Call { .. } => Some(t),
            State::OtherCall => self.leave_int80(t, true),
            _ if self.in_cache(&t) => self.leave_cache(t, regs),
            _ => {
                self.set_state(tid, State::Guest);
                Some(t)
            }
        };
        // Its leader may be waiting for it.
        let Some(thread) = t.and_then(|t| self.follow_leader(t)) else { return };
        let Some(mm) = self.process_of(tid).map(|p| p.mm.clone()) else { return };
        if let Some(r) = self.flushes.iter_mut().find(|r| Rc::ptr_eq(&r.mm, &mm)) {
            r.waiting.insert(tid, thread);
        }
    }

    /// Lets `t` go on to the next block, if it gets there soon: whatever it goes on from begins a block from now on, and
    /// blocks of hot code had better not be cut where it happened to be.
    fn run_to_block(&mut self, mut t: Stopped, mut regs: Regs) -> Option<(Stopped, Regs)> {
        let Ok(mask) = t.sigmask() else { return Some((t, regs)) };
        let (code_cache, _) = self.code_cache_and_state(t.tid())?;
        let mut masked = false;
        for _ in 0..STEPS {
            match recover::cache_position(&code_cache.borrow(), regs.rip) {
                CachePosition::Boundary(b) if b.executed == 0 || b.after_call => break,
                CachePosition::Stub(_) | CachePosition::Elsewhere => break,
                CachePosition::Boundary(_) | CachePosition::Between => {}
            }
            // Nor are our own stops for it to get at; and the guest must neither miss a trap of its own nor see our trap flag.
            let stops = code_cache.borrow().stub_at(CacheAddr(regs.rip)).is_some()
                || code_cache.borrow().cache_byte(CacheAddr(regs.rip)) == Some(0xcc)
                || trapflag::traps(&regs)
                || code_cache.borrow().pushes_flags_at(CacheAddr(regs.rip));
            if stops
                || code_cache.borrow().calls_at(CacheAddr(regs.rip))
                || !masked && t.set_sigmask(mask | ASYNCHRONOUS).is_err()
            {
                break;
            }
            masked = true;
            match t.resume_and_wait(How::Step, 0) {
                Ok((next, Stop::Signal(libc::SIGTRAP))) => {
                    regs = next.regs().ok()?;
                    t = next;
                }
                // The instruction faults, and will again.
                Ok((next, Stop::Signal(_))) => {
                    regs = next.regs().ok()?;
                    t = next;
                    break;
                }
                Ok((next, stop)) => {
                    let _ = next.set_sigmask(mask);
                    self.stopped(next, stop);
                    return None;
                }
                Err(_) => return None,
            }
        }
        if masked {
            t.set_sigmask(mask).ok()?;
        }
        Some((t, regs))
    }

    /// Makes the registers of a thread in translated code the guest's, rip included.
    pub(super) fn leave_cache(&mut self, t: Stopped, regs: Regs) -> Option<Stopped> {
        let tid = t.tid();
        let (code_cache, _) = self.code_cache_and_state(tid)?;
        let cache_position = recover::cache_position(&code_cache.borrow(), regs.rip);
        let (t, mut regs) = match cache_position {
            CachePosition::Boundary(b) if b.after_call && b.executed > 0 => {
                let mut regs = regs;
                let (again, left) = (makes_again(&regs), (regs.rax, regs.orig_rax));
                // A call that is made once more is counted then.
                let executed = b.executed - u16::from(again.is_some());
                self.at_boundary(tid, &Boundary { executed, ..b }, &mut regs);
                if let Some(nr) = again {
                    let call = Interrupted {
                        at: CacheAddr(0),
                        pc: GuestAddr(regs.rip),
                        result: left.0,
                        nr: left.1,
                        counted_by: (b.block, b.executed),
                        counts: CallCounts::Anew,
                    };
                    self.interrupted_by_us(tid, call);
                    regs.rax = nr;
                }
                (t, regs)
            }
            // Setting the mask would undo the kernel's own restoring of it, which may be due after a system call.
            CachePosition::Boundary(_) | CachePosition::Stub(_) | CachePosition::Elsewhere => {
                self.step_to_boundary(t, regs)?
            }
            CachePosition::Between => {
                let mask = t.sigmask().ok()?;
                t.set_sigmask(mask | ASYNCHRONOUS).ok()?;
                let (t, regs) = self.step_to_boundary(t, regs)?;
                t.set_sigmask(mask).ok()?;
                (t, regs)
            }
        };
        // In no system call any more, as far as restarting is concerned.
        regs.orig_rax = u64::MAX;
        t.set_regs(&regs).ok()?;
        self.set_state(tid, State::Guest);
        Some(t)
    }

    /// Throws away what can be thrown away by now.
    pub(super) fn settle_flushes(&mut self) {
        let mut i = 0;
        while let Some(r) = self.flushes.get(i) {
            let threads = self.threads_of(&r.mm);
            if threads.iter().any(|t| !r.waiting.contains_key(t)) {
                i += 1;
                continue;
            }
            let mut r = self.flushes.swap_remove(i);
            r.waiting.retain(|t, _| threads.contains(t));
            if r.reason == Reason::Leaving {
                self.leave(r);
                continue;
            }
            if !r.waiting.is_empty() {
                self.flush(&mut r);
            }
            self.release(r.waiting);
        }
    }

    fn flush(&mut self, r: &mut Flush) {
        let Some(tid) = r.waiting.keys().next().copied() else { return };
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        if code_cache.borrow().users > 1 {
            let Some(thread) = r.waiting.remove(&tid).and_then(|t| self.own_code_cache(t)) else { return };
            r.waiting.insert(tid, thread);
        }
        let Some((code_cache, _)) = self.code_cache_and_state(tid).filter(|(s, _)| s.borrow().users == 1) else {
            return;
        };
        let pids: Vec<Pid> = self.processes.values().filter(|p| Rc::ptr_eq(&p.mm, &r.mm)).map(|p| p.pid).collect();
        let threads = self.threads_of(&r.mm);
        for (&tid, t) in &r.waiting {
            // What counts it is about to go, and the thread changes over afterwards.
            if self.threads.get(&tid).is_some_and(|th| th.switch || th.contexts.follow.is_some())
                && let Ok(rip) = t.rip()
            {
                self.call_stays_counted(tid, rip);
            }
        }
        for &tid in &threads {
            self.drain_thread(tid);
            self.collect_counters(tid);
        }
        self.switch_collection(&pids);
        for &pid in &pids {
            let Some(sum) = self.processes.get(&pid).map(|p| self.sum(p)) else { continue };
            if r.reason == Reason::Speed {
                let mut code_cache = code_cache.borrow_mut();
                let counts = sum.sum().block_counts(&code_cache.trans);
                code_cache.learn_hotness(&counts);
            }
            if let Some(p) = self.processes.get_mut(&pid) {
                p.books = sum.without_counters(&code_cache.borrow().trans);
            }
        }
        let tallies: Vec<_> =
            pids.iter().filter_map(|pid| Some(self.thread_tallies(self.processes.get(pid)?))).collect();
        for tally in tallies.into_iter().flatten() {
            if let Some(th) = self.threads.get_mut(&tally.tid) {
                th.collected = tally.instructions;
            }
        }
        let counters = code_cache.borrow().trans.counters();
        for tid in threads {
            let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { continue };
            let others = th.contexts.extra.iter().map(|(_, slot)| *slot);
            for slot in std::iter::once(th.slot).chain(th.other).chain(others) {
                p.pool.borrow().clear_counters(slot, counters);
            }
        }
        let on = !code_cache.borrow().may_be_plain()
            || pids.iter().any(|pid| self.processes.get(pid).is_some_and(|p| p.counting));
        if let Some(trace_channel) = self.trace_channel.as_ref().filter(|_| !on) {
            // What is mapped may be something else by the time when anything is told again.
            announce(trace_channel, &mut code_cache.borrow_mut());
        }
        code_cache.borrow_mut().flush();
        // Whoever comes from plain code has its calls followed at once.
        let follows =
            on && self.can_follow() && (code_cache.borrow().follows_now() || code_cache.borrow().trace.plain());
        code_cache.borrow_mut().record(on);
        self.note_all_made(tid, &code_cache);
        if r.reason == Reason::Speed
            && let Some(p) = self.process_of(tid)
        {
            code_cache.borrow_mut().translate_hot(&p.memory);
        }
        if code_cache.borrow().trans.follow.given_up {
            code_cache.borrow_mut().follow_calls(false);
        } else if follows && code_cache.borrow_mut().trace.told_since.take().is_some() {
            code_cache.borrow_mut().follow_calls(true);
        }
        for pid in pids {
            self.push_stack_all(pid);
        }
    }

    /// Lets the threads go on.
    pub(super) fn release(&mut self, waiting: HashMap<Tid, Stopped>) {
        for (tid, thread) in waiting {
            let Some(state) = self.threads.get(&tid).map(|th| th.state) else { continue };
            // Its state of instrumentation, or its leader's context, may have changed before or meanwhile.
            let Some(thread) = self.change_over(thread) else { continue };
            // Records may be written from now on.
            let Some(thread) = self.ready_trace(thread) else { continue };
            match state {
                State::Guest => {
                    if let Ok(rip) = thread.rip() {
                        self.enter(thread, GuestAddr(rip));
                    }
                }
                _ => {
                    thread.go_on(How::Continue, 0);
                }
            }
        }
    }
}
