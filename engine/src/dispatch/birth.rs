//! Births: new threads and processes. One begins to run when two things are known of it, in whatever order: its own first
//! stop, and who has created it. What it has from its creator (counts, contexts, caches) is that of the moment of its birth:
//! it is taken before the creator goes on.

use std::cell::Cell;
use std::rc::Rc;

use grind_code_cache::CallStop;
use grind_guest::contexts::{Books, ThreadContexts};
use grind_guest::process::{Process, State, Thread};
use grind_guest::stacks::Stacks;
use grind_layout::SlotWord;
use grind_ptrace::kinds::stops_processes;
use grind_ptrace::status::Status;
use grind_ptrace::{self as tracee, How, Memory, Regs, Stopped};
use grind_session::Notice;
use grind_types::addr::GuestAddr;
use grind_types::hash::Map;
use grind_types::subject;
use grind_types::{Pid, Tid};
use nix::libc;

use super::objects;
use super::{Dispatcher, affinity, ask};

impl Dispatcher<'_> {
    /// `t` has just created a thread or process.
    pub(super) fn created(&mut self, t: Stopped, event: i32) {
        let (child, regs) = (t.event_message(), t.regs());
        // Whoever has been killed meanwhile goes on by itself, to the stop that tells of its end, which may be what has just
        // been read. To let it go on from there would be to pass over it.
        if let (Ok(child), Ok(regs), true) = (child, regs, t.stands_at(event)) {
            self.birth(&t, Tid(child as i32), &regs, event);
            t.go_on(How::Continue, 0);
        }
    }

    /// `t` is about to end, perhaps killed while it created a thread or process: its stop for that has not been seen then, but
    /// the call has returned. The child is there, and must not wait for ever for its creator to be heard of.
    pub(super) fn untold_birth(&mut self, t: &Stopped) {
        let Ok(regs) = t.regs() else { return };
        let child = Tid(regs.rax as i32);
        let births = match self.other_calls.get(&t.tid()) {
            Some(call) => call.births(),
            None => {
                [libc::SYS_fork, libc::SYS_vfork, libc::SYS_clone, libc::SYS_clone3].contains(&(regs.orig_rax as i64))
            }
        };
        if births && child.0 > 0 && !self.threads.contains_key(&child) && Status::of(child).is_traced_by_us() {
            self.birth(t, child, &regs, libc::PTRACE_EVENT_EXIT);
        }
    }

    /// Thread `child` has been created by `t`, whose registers are `regs`; `event` is what it has stopped for.
    fn birth(&mut self, t: &Stopped, child: Tid, regs: &Regs, event: i32) {
        let mut held = None;
        self.bring_up(t.tid(), child, regs, event, &mut held);
        if let Some(held) = held {
            self.go_on_all(held);
        }
    }

    /// `held`: threads that have been made to stand still meanwhile.
    fn bring_up(&mut self, tid: Tid, child: Tid, regs: &Regs, event: i32, held: &mut Option<Vec<ask::Held>>) {
        let Some(th) = self.threads.get(&tid) else { return };
        let pid = th.pid;
        let flags = match regs.orig_rax as i64 {
            _ if self.threads.get(&tid).is_some_and(|th| th.state == State::OtherCall) => {
                let clone3 = |at| self.processes.get(&pid)?.memory.word(at);
                self.other_calls.get(&tid).map_or(0, |call| call.flags_of_birth(clone3))
            }
            libc::SYS_clone => regs.rdi,
            libc::SYS_clone3 => self.processes.get(&pid).and_then(|p| p.memory.word(regs.rdi)).unwrap_or(0),
            libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
            _ if event == libc::PTRACE_EVENT_VFORK => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
            _ => 0,
        };
        let has = |flag: i32| flags & flag as u64 != 0;
        // The first thread of a process of its own, if it is not one more of its creator's.
        let forked = !has(libc::CLONE_THREAD);
        let child_pid = if forked { Pid::led_by(child) } else { pid };
        log::debug!(target: subject::PROCESS, "thread {tid} creates thread {child} of process {child_pid}");
        if has(libc::CLONE_VFORK) {
            self.cancel_flush(pid);
        }
        if forked {
            self.hand_over_lives(pid);
            self.drain_thread(tid);
            // What other threads have executed is the child's, too, and only known while they stand still. (A child that
            // borrows the memory is going to be another program, and its creator cannot wait for anybody.)
            let others = self.process_of(tid).is_some_and(|p| p.threads.len() > 1);
            if others && self.settings.trace.calls.is_some() && !has(libc::CLONE_VFORK) {
                *held = Some(self.stand_still(pid, Some(tid)));
                for other in self.process_of(tid).map(|p| p.threads.clone()).unwrap_or_default() {
                    self.drain_thread(other);
                    // In the child they end.
                    if other != tid {
                        self.tell_uses(other);
                    }
                }
                self.collect_counters_all(pid);
            } else {
                self.collect_counters(tid);
            }
            self.fork_process(pid, child_pid, has(libc::CLONE_VM), has(libc::CLONE_VFORK));
            if let Some(trace_channel) = &self.trace_channel {
                trace_channel.forked(pid, tid, child_pid);
            }
        }
        let Some(counting) = self.processes.get(&child_pid).map(|p| p.counting) else { return };
        self.traps_of_child(pid, tid, child_pid, child);
        let contexts = self.inherited(tid, forked);
        let guest_gs = self.slot_word(tid, SlotWord::GuestGs);
        if !self.add_thread(child_pid, child, State::New, contexts, guest_gs) {
            self.session.notice(pid, Notice::Warning("too many threads at a time: no room for more counters".into()));
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.0), nix::sys::signal::SIGKILL);
            return;
        }
        if !forked {
            self.tell_born(pid, child);
        }
        self.born_of_int80(tid, child);
        self.begin_contexts(tid, child);
        if forked && self.follows(tid) {
            self.push_stack_all(pid);
            self.push_stack_whole(child);
        }
        if forked {
            self.copy_simulated_state(tid, child, counting);
        }
        // A forked one is as its creator is, unless that has not followed the last change yet.
        let differs = !forked || self.threads.get(&tid).is_some_and(|th| th.switch);
        if let Some(trace_channel) = self.trace_channel.as_ref().filter(|_| differs) {
            trace_channel.recording(child_pid, child, counting);
        }
        // The child has inherited the parent's processors, too few while the two are kept together.
        if let affinity::Pin::Together { guest, .. } = &self.pin {
            let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(child.0), guest);
        }
        self.settle_pin();
        if forked {
            self.instrumentation_changed(child_pid);
        }
        if let Some((first, signal)) = self.early.remove(&child) {
            self.begin(first, signal);
        }
    }

    /// Thread `tid` of `pid`, whose gs base is `guest_gs`, gets counters of its own. False: there is no room for them.
    pub(super) fn add_thread(
        &mut self,
        pid: Pid,
        tid: Tid,
        state: State,
        contexts: ThreadContexts,
        guest_gs: u64,
    ) -> bool {
        let Some(p) = self.processes.get_mut(&pid) else { return false };
        let Some(slot) = p.pool.borrow_mut().take() else { return false };
        p.threads.push(tid);
        let code_cache = p.code_cache.borrow();
        if p.threads.len() > 1 {
            if code_cache.trace.recorded.objects {
                code_cache.stop_allocators();
            }
            super::deadly::CALLS.into_iter().for_each(|nr| code_cache.stop_before(nr, CallStop::Served, true));
        }
        tracee::settle(tid, &code_cache.home);
        if p.pool.borrow().is_low() {
            code_cache.stop_before_births();
        }
        p.pool.borrow().set_slot_word(slot, SlotWord::GuestGs, guest_gs);
        drop(code_cache);
        self.threads.insert(tid, Thread::new(pid, state, slot, contexts));
        if self.follows(tid)
            && let Some(p) = self.process_of(tid)
        {
            // What it has counted may be asked for before it has stopped for the first time.
            p.pool.borrow().begin_calls(slot);
        }
        true
    }

    /// The books of a process that has just been forked from `parent`.
    fn fork_process(&mut self, parent: Pid, child: Pid, same_memory: bool, vforked: bool) {
        let Some(p) = self.processes.get(&parent) else { return };
        let Ok(memory) = Memory::open(Tid::main_of(child)) else { return };
        let mm = if same_memory {
            p.mm.clone()
        } else {
            p.code_cache.borrow_mut().users += 1;
            Rc::new(())
        };
        let anew = self.session.forks_count_anew();
        let (books, collected) = if anew { (Books::default(), 0) } else { (self.sum(p), p.collected) };
        let process = Process {
            pid: child,
            parent: Some(parent),
            code_cache: p.code_cache.clone(),
            mm,
            pool: p.pool.clone(),
            memory,
            threads: Vec::new(),
            vforked,
            books,
            names: p.names.clone(),
            popped_too_many: p.popped_too_many,
            address_limit: p.address_limit,
            counting: p.counting,
            collected,
            exe: p.exe.clone(),
            args: p.args.clone(),
            joined: p.joined,
            reported: false,
            stacks: Stacks::default(),
            paces: Map::default(),
            owners: Cell::default(),
        };
        self.processes.insert(child, process);
        self.session.forked(parent, child);
    }

    /// First stop of a thread that its creator has told of; `signal` is the stop's.
    pub(super) fn begin(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        self.set_state(tid, State::Cache);
        if stops_processes(signal) {
            // It was born into a stopped process: it stops again once it is ready.
            tracee::interrupt(tid);
        }
        if let (true, Some(trace_channel), Some(p)) =
            (self.settings.trace.objects, &self.trace_channel, self.process_of(tid))
            && !tid.leads(p.pid)
            && let Some(stack) = objects::stack(&t)
        {
            trace_channel.stack(p.pid, tid, stack);
        }
        let gs = self.gs(tid);
        let Ok(mut regs) = t.regs() else { return };
        regs.gs_base = gs;
        if t.set_regs(&regs).is_ok()
            && let Some(t) = self.ready_trace(t)
        {
            if self.context(tid) != 0 {
                self.record_context(tid, false);
            }
            let state = match self.begins_behind_int80(tid) {
                Some(next) => {
                    regs.rip = next.0;
                    regs.orig_rax = u64::MAX;
                    if t.set_regs(&regs).is_err() {
                        return;
                    }
                    self.set_state(tid, State::Guest);
                    State::Guest
                }
                None => State::Cache,
            };
            if self.is_flushing(tid) {
                return self.park(t, state);
            }
            if self.switches(tid) {
                return self.switch_on_the_way(t, state);
            }
            if state == State::Guest {
                return self.enter(t, GuestAddr(regs.rip));
            }
            if self.follows(tid) && self.process_of(tid).is_some_and(|p| !tid.leads(p.pid)) {
                return self.enter_anew(t, regs);
            }
            t.go_on(How::Continue, 0);
        }
    }
}
