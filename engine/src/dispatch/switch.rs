//! Changes of counters: a thread has a slot that counts and, once it was needed, one that nobody reads, for while its process is
//! not instrumented. Every thread of a process changes over when it has stopped next. Invariant: what a thread has entered it
//! leaves at the boundary of an instruction before it changes, so that counts which follow from others are never half on one
//! slot and half on the other.

use grind_codegen::level1;
use grind_guest::process::State;
use grind_layout::SlotWord;
use grind_ptrace::kinds::ASYNCHRONOUS;
use grind_ptrace::{self as tracee, How, Regs, Stopped};
use grind_types::Tid;
use grind_types::addr::GuestAddr;

use super::{Dispatcher, ask, clientreq, contexts};

impl Dispatcher<'_> {
    /// Starts or stops counting for the process of `t`, which is at a stub. `t` is handed back
    /// unless it died.
    pub(super) fn instrument(&mut self, t: Stopped, on: bool) -> Option<Stopped> {
        let tid = t.tid();
        let Some(p) = self.process_of_mut(tid) else { return Some(t) };
        if p.counting == on {
            return Some(t);
        }
        p.counting = on;
        let pid = p.pid;
        for thread in p.threads.clone() {
            if let Some(th) = self.threads.get_mut(&thread).filter(|th| !th.folded) {
                // One that has not followed the last change yet stays where it is.
                th.switch = !th.switch;
                if thread != tid {
                    tracee::interrupt(thread);
                }
            }
        }
        self.instrumentation_changed(pid);
        self.change_over(t)
    }

    /// Does what is to be done with a thread's counters: it changes to those for the other state of instrumentation, or for
    /// another context.
    pub(super) fn change_over(&mut self, t: Stopped) -> Option<Stopped> {
        let t = if self.switches(t.tid()) { self.switch_slot(t)? } else { t };
        let t = self.follow_leader(t)?;
        if let Ok(rip) = t.rip() {
            self.call_has_counted(t.tid(), rip);
        }
        Some(t)
    }

    /// Whether a thread is to change over to the counters for the other state of instrumentation, and may.
    pub(super) fn switches(&self, tid: Tid) -> bool {
        self.threads.get(&tid).is_some_and(|th| th.switch) && !self.waits_for_recording(tid)
    }

    /// Changes over to other counters where the thread happens to be. What it has entered it leaves at an instruction's
    /// boundary, so that counts which follow from others are not half on one slot and half on the other.
    pub(super) fn switch_on_the_way(&mut self, t: Stopped, state: State) {
        let Ok(regs) = t.regs() else { return };
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return };
        if state != State::Cache || !ask::on_the_way(&code_cache.borrow(), &regs) {
            // Code after a system call is for another function than the call was, maybe: the call is made once more by new
            // code. It counts where it began, and not where it is made again.
            let anew =
                state == State::Cache && self.follows(t.tid()) && !ask::about_to_stop(&code_cache.borrow(), &regs);
            if anew && self.process_of(t.tid()).is_some_and(|p| p.counting) {
                if let Some(t) = self.leave_cache(t, regs)
                    && let Some(t) = self.change_over(t)
                    && let Ok(rip) = t.rip()
                {
                    self.enter(t, GuestAddr(rip));
                }
                return;
            }
            if let Some(t) = self.change_over(t) {
                if state == State::Guest {
                    return self.enter(t, GuestAddr(regs.rip));
                }
                if state == State::Cache {
                    if anew {
                        let gs_base = self.gs(t.tid());
                        return self.enter_anew(t, Regs { gs_base, ..regs });
                    }
                    self.call_again(&t, 0);
                }
                if state == State::OtherCall {
                    self.int80_again(&t, 0);
                }
                t.go_on(How::Continue, 0);
            }
            return;
        }
        let Ok(mask) = t.sigmask() else { return };
        if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
            return;
        }
        let Some((t, regs)) = self.step_to_boundary(t, regs) else { return };
        if t.set_regs(&regs).is_ok()
            && t.set_sigmask(mask).is_ok()
            && let Some(t) = self.change_over(t)
        {
            self.enter(t, GuestAddr(regs.rip));
        }
    }

    /// Changes over to the slot that fits its process's state of instrumentation.
    /// The thread is handed back unless it died.
    fn switch_slot(&mut self, t: Stopped) -> Option<Stopped> {
        let tid = t.tid();
        self.call_stays_counted(tid, t.rip().ok()?);
        self.drain_thread(tid);
        if self.threads.get(&tid).and_then(|th| self.processes.get(&th.pid)).is_some_and(|p| !p.counting) {
            self.tell_uses(tid);
        }
        self.collect_counters(tid);
        let Some(th) = self.threads.get_mut(&tid) else { return Some(t) };
        th.switch = false;
        let Some(p) = self.processes.get(&th.pid) else { return Some(t) };
        let mut pool = p.pool.borrow_mut();
        let to = match th.other {
            Some(s) => s,
            None => match pool.take() {
                Some(s) => s,
                None => return Some(t),
            },
        };
        pool.copy_slot_words(th.slot, to);
        let many = p.books.many();
        let before = pool.slot_word(to, SlotWord::Context);
        if many {
            contexts::copy_header(&pool, th.slot, to);
        }
        th.other = Some(th.slot);
        th.slot = to;
        drop(pool);
        let mut t = self.ready_trace(t)?;
        if many {
            t = self.book_to(t, self.context(tid))?;
            self.record_context(tid, before != self.context(tid));
        }
        if let Ok(mut regs) = t.regs() {
            regs.gs_base = self.gs(tid);
            let _ = t.set_regs(&regs);
        }
        if let Some(trace_channel) = &self.trace_channel
            && let Some(p) = self.process_of(tid)
        {
            trace_channel.recording(p.pid, tid, p.counting);
            if p.counting && self.session.tool_name() == clientreq::CALLGRIND {
                // It empties its caches, but does not forget how branches went.
                let (pool, code_cache) = (p.pool.borrow(), p.code_cache.borrow());
                pool.clear_ranges(to, &code_cache.simulated_caches());
                pool.start_clock(to);
                if let Some(cache) = code_cache.trace.settings.accesses {
                    let pages = code_cache.trace.settings.tlbs.is_some();
                    level1::prepare(&mut pool.words(to), cache, pages);
                }
            }
        }
        if self.process_of(tid).is_some_and(|p| p.counting) {
            self.tell_stack(&t);
        }
        self.push_stack_whole(tid);
        Some(t)
    }
}
