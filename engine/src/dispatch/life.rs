//! New images and ends (births are `birth`'s). Every thread's counts are folded into its process when its end begins
//! (`PTRACE_EVENT_EXIT`), or at the latest when its end is reported; a process's profile is handed over when its last thread
//! ends, before anybody can see that it is gone.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;

use grind_code_cache::CodeCache;
use grind_fragments::fragment_table::FragmentTable;
use grind_guest::contexts::{Book, Books, NAMED, ThreadContexts};
use grind_guest::image::{self, Remote};
use grind_guest::process::{Process, State, Thread};
use grind_guest::recover::{self, CachePosition};
use grind_guest::slots::SlotPool;
use grind_guest::stacks::Stacks;
use grind_isa::cpuid;
use grind_ptrace::kinds::stops_processes;
use grind_ptrace::launch;
use grind_ptrace::{self as tracee, Gadget, How, Memory, Stop, Stopped};
use grind_session::{AtStart, ContextCounts, Exit, FirstProcess, Notice, ProcessReport};
use grind_types::addr::GuestAddr;
use grind_types::hash::Map;
use grind_types::subject;
use grind_types::{Module, Pid, Tid};
use nix::libc;

use super::objects;
use super::{Dispatcher, contexts};
use grind_guest::resume::middle;
use grind_ptrace::limits::Limits;

impl Dispatcher<'_> {
    /// `PTRACE_EVENT_STOP`: a first stop, a group-stop, or the answer to an interrupt of ours.
    pub(super) fn event_stop(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        let switches = self.switches(tid);
        match self.threads.get(&tid).map(|th| (th.state, switches || th.contexts.follow.is_some())) {
            None if tid.leads(self.main) && self.processes.is_empty() => {
                t.go_on(How::Continue, 0);
            }
            None => {
                self.early.insert(tid, (t, signal));
            }
            Some((State::New, _)) => self.begin(t, signal),
            Some((state, switch)) => {
                let stopping = stops_processes(signal);
                if stopping {
                    if let Some(th) = self.threads.get_mut(&tid) {
                        th.job_controlled = true;
                    }
                    self.main_stops(tid, signal);
                } else {
                    self.main_continued(tid);
                }
                let (t, state) = if state == State::Own && (self.is_flushing(tid) || switch && !stopping) {
                    let Some(t) = self.call_back(t) else { return };
                    (t, State::Guest)
                } else {
                    (t, state)
                };
                if self.is_flushing(tid) {
                    if stopping {
                        // Once it goes on. Being told now, it would never get to the end of a step.
                        tracee::stops_later(tid);
                    }
                    return self.park(t, state);
                }
                match state {
                    // When it is continued, there will be a stop that tells of it.
                    _ if stopping => {
                        t.go_on(How::Listen, 0);
                    }
                    _ if switch => {
                        let state = self.take_back(&t, state);
                        match middle(tid, state) {
                            Some(how) => {
                                let _ = t.finish(how);
                            }
                            None => self.switch_on_the_way(t, state),
                        }
                    }
                    State::Own => self.stay_in_own_code(t, signal == libc::SIGTRAP),
                    State::Cache if signal == libc::SIGTRAP && self.is_to_run_own_code(tid) => self.begin_own_code(t),
                    // Its step may still be to come.
                    State::InPlace { .. } | State::Handler | State::SigReturn { .. } => {
                        t.go_on(How::Step, 0);
                    }
                    // It has been stopped while its translation was thrown away.
                    State::Guest => {
                        if let Some(t) = self.ready_trace(t)
                            && let Ok(rip) = t.rip()
                        {
                            self.enter(t, GuestAddr(rip));
                        }
                    }
                    _ => {
                        // After job control it ends with EINTR natively, too.
                        match state {
                            State::Cache if signal == libc::SIGTRAP => self.call_again(&t, 0),
                            State::OtherCall if signal == libc::SIGTRAP => self.int80_again(&t, 0),
                            _ => {}
                        }
                        t.go_on(How::Continue, 0);
                    }
                }
            }
        }
    }

    /// A new image is in place, its first instruction still to come.
    pub(super) fn executed(&mut self, t: Stopped) {
        let tid = t.tid();
        // Whichever thread has executed it, it is the only one from here on, and has the process's number.
        let pid = Pid::led_by(tid);
        let former = t.event_message().map_or(tid, |m| Tid(m as i32));
        tracee::renamed(former, tid);
        self.traps_renamed(former, pid);
        let known = self.threads.get(&former).or_else(|| self.threads.get(&tid)).map(|th| th.state);
        let follow = match known {
            None => pid == self.main,
            Some(State::Exec { follow }) => follow,
            Some(State::OtherCall) => {
                [former, tid].iter().find_map(|t| self.other_calls.get(t)).is_some_and(|c| c.follow)
            }
            Some(_) => false,
        };
        let parent = self.processes.get(&pid).and_then(|p| p.parent);
        let limits = self.processes.get(&pid).and_then(|p| p.address_limit);
        let counted = self.processes.get(&pid).is_some_and(|p| p.counting);
        self.other_calls.remove(&former);
        self.other_calls.remove(&tid);
        self.forget_process(pid);
        log::debug!(target: subject::PROCESS, "process {pid} has a new image; it is followed: {follow}");
        if !follow {
            self.left |= pid == self.main;
            if let Some(limits) = limits {
                Self::hand_limits_over(pid, limits);
            }
            let _ = t.detach(0);
            self.session.process_left(pid);
            return;
        }
        // The exit from execve still has to write its result.
        let t = match t.resume_and_wait(How::Syscall, 0) {
            Ok((t, Stop::Syscall)) => t,
            Ok((t, _)) => {
                t.go_on(How::Continue, 0);
                return;
            }
            Err(_) => return,
        };
        self.new_image(t, parent, limits, counted);
    }

    /// `counted`: what the process executed before was counted.
    fn new_image(&mut self, t: Stopped, parent: Option<Pid>, limits: Option<Limits>, counted: bool) {
        let tid = t.tid();
        let pid = Pid::led_by(tid);
        let exe = std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_default();
        let args = command_line(pid);
        let Ok(memory) = Memory::open(tid) else { return };
        self.traps_of_image(&t);
        let mut remote = Remote { thread: Some(t), gadget: Gadget::new(0), memory: &memory };
        let prepared = image::prepare(&mut remote, self.masked());
        let thread = remote.thread.take();
        let (code_cache, pool) = match prepared {
            Ok(p) => p,
            Err(e) => {
                self.give_up(thread, e);
                return;
            }
        };
        let Some(t) = thread else { return };
        let counting = match self.settings.count_at_start {
            AtStart::Counting => true,
            AtStart::NotCounting => false,
            AtStart::Inherited => counted,
        };
        self.add_process((pid, parent), counting, memory, (code_cache, pool), (exe, args));
        if let Some(stack) = self.settings.trace.objects.then(|| objects::stack(&t)).flatten()
            && let Some(trace_channel) = &self.trace_channel
        {
            trace_channel.stack(pid, tid, stack);
        }
        if !self.add_thread(pid, tid, State::Cache, ThreadContexts::default(), 0) {
            return;
        }
        self.tell_recording(pid, tid);
        if let Some(limits) = limits {
            self.limits_of_image(pid, limits);
        }
        self.tell_image(pid);
        let gs = self.gs(tid);
        let Ok(mut regs) = t.regs() else { return };
        regs.gs_base = gs;
        // Not in a system call any more, as far as restarting is concerned.
        regs.orig_rax = u64::MAX;
        let entry = regs.rip;
        if t.set_regs(&regs).is_ok()
            && let Some(t) = self.ready_trace(t)
        {
            self.enter(t, GuestAddr(entry));
        }
    }

    /// If what thread `tid` of a process that has just been heard of executes is not recorded for now, the sink is told.
    pub(super) fn tell_recording(&self, pid: Pid, tid: Tid) {
        if let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.processes.get(&pid))
            && !p.counting
        {
            trace_channel.recording(pid, tid, false);
        }
    }

    /// The session is told of the image that `pid` runs from now on.
    pub(super) fn tell_image(&mut self, pid: Pid) {
        let Some(p) = self.processes.get(&pid) else { return };
        self.session.image_started(pid, p.parent, &p.exe, &p.args);
        self.settle_pin();
    }

    /// A process that is followed from now on, still without threads: its memory has been prepared.
    pub(super) fn add_process(
        &mut self,
        (pid, parent): (Pid, Option<Pid>),
        counting: bool,
        memory: Memory,
        (mut code_cache, pool): (CodeCache, SlotPool),
        (exe, args): (PathBuf, Vec<OsString>),
    ) {
        code_cache.code_limit = self.settings.code_limit;
        code_cache.pairs_from = self.settings.pairs_from;
        code_cache.contexts = self.settings.contexts && cpuid::has_fsgsbase();
        code_cache.trace.settings.forms = self.settings.trace.forms;
        if self.settings.programs_follow {
            code_cache.expect_more_programs();
        }
        if let Some(trace_channel) = &mut self.trace_channel {
            code_cache.trace_with(self.settings.trace, trace_channel.new_code_cache());
            let on = counting || !code_cache.may_be_plain();
            code_cache.record(on);
            trace_channel.image(pid, code_cache.trace.id);
        }
        let process = Process {
            pid,
            parent,
            code_cache: Rc::new(RefCell::new(code_cache)),
            mm: Rc::new(()),
            pool: Rc::new(RefCell::new(pool)),
            memory,
            threads: Vec::new(),
            vforked: false,
            books: Books::default(),
            names: Vec::new(),
            popped_too_many: false,
            address_limit: None,
            counting,
            collected: 0,
            exe,
            args,
            joined: false,
            reported: false,
            stacks: Stacks::default(),
            paces: Map::default(),
            owners: Cell::default(),
        };
        self.processes.insert(pid, process);
        if !counting {
            self.expect_own_code(pid);
        }
    }

    /// The image of `pid` has been replaced: its books are closed without a report.
    fn forget_process(&mut self, pid: Pid) {
        let Some(p) = self.processes.remove(&pid) else { return };
        self.forget_own_code(pid);
        for tid in &p.threads {
            tracee::leave(*tid);
            self.contexts_ended(*tid);
            if let Some(th) = self.threads.remove(tid) {
                let mut pool = p.pool.borrow_mut();
                if !th.folded {
                    contexts::give_back(&th, &mut pool);
                }
            }
        }
        release(&p);
    }

    /// A thread is about to end; its registers and memory are still there.
    pub(super) fn exiting(&mut self, t: Stopped) {
        let tid = t.tid();
        self.untold_birth(&t);
        if let (Some((code_cache, state)), Ok(mut regs)) = (self.code_cache_and_state(tid), t.regs())
            && matches!(state, State::Cache | State::Call { .. } | State::Exec { .. })
        {
            if let Some(rip) = self.finish_counting(&t) {
                regs.rip = rip;
            }
            let cache_position = recover::cache_position(&code_cache.borrow(), regs.rip);
            let boundary = match cache_position {
                CachePosition::Boundary(b) => Some(b),
                CachePosition::Between => recover::at_fault(&code_cache.borrow(), &mut regs, |_| 0),
                CachePosition::Stub(_) | CachePosition::Elsewhere => None,
            };
            if let Some(b) = boundary {
                self.correct(tid, &b, &regs);
            }
        }
        self.int80_never_made(&t);
        let exit = t.event_message().ok().map(|status| match status as i32 & 0x7f {
            0 => Exit::Code(status as i32 >> 8 & 0xff),
            signal => Exit::Signal(signal),
        });
        self.fold(tid, exit);
        t.go_on(How::Continue, 0);
    }

    /// Adds a thread's counts to its process; the last one's end is the process's.
    pub(super) fn fold(&mut self, tid: Tid, exit: Option<Exit>) {
        if self.threads.get(&tid).is_none_or(|th| th.folded) {
            return;
        }
        if let Some(pid) = self.fold_thread(tid) {
            self.report(pid, exit);
        }
    }

    /// Adds a thread's counts to its process. Returns that if it was its last one.
    pub(super) fn fold_thread(&mut self, tid: Tid) -> Option<Pid> {
        self.drain_thread(tid);
        self.tell_uses(tid);
        self.collect_counters(tid);
        if let Some(pid) = self.threads.get(&tid).filter(|th| !th.folded).map(|th| th.pid) {
            self.hand_over_lives(pid);
        }
        let th = self.threads.get_mut(&tid).filter(|th| !th.folded)?;
        th.folded = true;
        let pid = th.pid;
        if let Some(trace_channel) = &self.trace_channel {
            trace_channel.thread_ended(pid, tid);
        }
        let p = self.processes.get_mut(&pid)?;
        let counters = p.code_cache.borrow().trans.counters();
        let mut books = std::mem::take(&mut p.books);
        let uncollected = self.uncollected.remove(&tid);
        contexts::add_thread(th, p, counters, uncollected.as_ref(), &mut books);
        p.books = books;
        contexts::give_back(th, &mut p.pool.borrow_mut());
        p.threads.retain(|&x| x != tid);
        let last = p.threads.is_empty();
        if let (true, Some(owners)) = (last, p.owners.get()) {
            p.owners.set(None);
            p.pool.borrow_mut().give_back(owners);
        }
        self.contexts_ended(tid);
        self.forget_bytes(pid);
        last.then_some(pid)
    }

    /// All counts of a process so far.
    pub(super) fn sum(&self, p: &Process) -> Books {
        let mut books = p.books.clone();
        let counters = p.code_cache.borrow().trans.counters();
        for (tid, th) in p.threads.iter().filter_map(|t| Some((t, self.threads.get(t)?))).filter(|(_, th)| !th.folded) {
            contexts::add_thread(th, p, counters, self.uncollected.get(tid), &mut books);
        }
        books
    }

    pub(super) fn report(&mut self, pid: Pid, exit: Option<Exit>) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        if std::mem::replace(&mut p.reported, true) {
            return;
        }
        if let Some(trace_channel) = &self.trace_channel {
            trace_channel.process_ended(pid);
            // Before what it has found is written. (The rest is done behind this stop.)
            if let Some(what) = trace_channel.health().unnoticed() {
                self.session.broke(&what, true);
            }
        }
        let code_cache = p.code_cache.borrow();
        self.files.complain(code_cache.modules.iter().filter_map(Module::mapped), |text| {
            self.session.notice(pid, Notice::Warning(text))
        });
        let counts = p.books.sum().counts(&code_cache.trans);
        let contexts = context_counts(p, &p.books, &code_cache.trans);
        self.session.process_ends(&ProcessReport {
            pid,
            parent: p.parent,
            exe: p.exe.clone(),
            args: p.args.clone(),
            exit,
            modules: &code_cache.modules,
            counts: &counts,
            contexts: &contexts,
            counting: p.counting,
            threads: &[],
        });
    }

    /// Nothing more is known of thread `tid`, whose number may be another's from now on. What was known of it.
    pub(super) fn forget_thread(&mut self, tid: Tid) -> Option<Thread> {
        self.early.remove(&tid);
        self.decided.remove(&tid);
        self.other_calls.remove(&tid);
        self.again.remove(&tid);
        self.timed.remove(&tid);
        tracee::leave(tid);
        tracee::ended(tid);
        self.threads.remove(&tid)
    }

    /// The end of a thread, or of a process whose first thread this is, has been reported.
    pub(super) fn ended(&mut self, tid: Tid, how: Exit) {
        log::debug!(target: subject::PROCESS, "thread {tid} has ended: {how:?}");
        self.fold(tid, Some(how));
        if let Some(th) = self.forget_thread(tid) {
            let gone = self.processes.get(&th.pid).is_some_and(|p| p.threads.is_empty());
            if gone && let Some(p) = self.processes.remove(&th.pid) {
                self.traps.remove(&th.pid);
                self.forget_own_code(th.pid);
                release(&p);
                if self.processes.is_empty() && self.early.is_empty() {
                    // The run is over; to free so many small things would only delay its end.
                    std::mem::forget(p.code_cache);
                }
            }
        }
        if tid.leads(self.main) {
            self.exit = Some(how);
            let alone = self.processes.is_empty() && self.early.is_empty();
            self.session.first_process(FirstProcess::Ended { exit: how, alone });
        }
        self.settle_pin();
    }
}

/// What has been executed in each context, if there has ever been another than 0.
pub(super) fn context_counts<'t>(p: &Process, books: &Books, trans: &'t FragmentTable) -> Vec<ContextCounts<'t>> {
    let books = if books.many() { books.all() } else { &[] };
    let name = |context: u64| p.names.get(usize::try_from(context.checked_sub(NAMED)?).ok()?).cloned();
    let of = |b: &Book| ContextCounts { context: b.context, name: name(b.context), counts: b.counts(trans) };
    books.iter().map(of).collect()
}

/// An address space less uses the translations, if this was its last process.
pub(super) fn release(p: &Process) {
    if Rc::strong_count(&p.mm) == 1 {
        p.code_cache.borrow_mut().users -= 1;
    }
}

pub(super) fn command_line(pid: Pid) -> Vec<OsString> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let body = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    body.split(|&b| b == 0).map(|a| OsString::from_vec(a.to_vec())).collect()
}

/// The executable that a path given to `execve` by `tid` names: relative paths are relative to its own folder.
pub(super) fn resolve(tid: Tid, path: &std::path::Path) -> PathBuf {
    if path.is_absolute() {
        return path.to_path_buf();
    }
    std::fs::read_link(format!("/proc/{tid}/cwd")).unwrap_or_default().join(path)
}

/// What `execve` by a process that is, or is not, followed afterwards must have as its personality.
pub(super) fn personality(follow: bool) -> u64 {
    if follow { launch::guest_personality() } else { launch::original_personality() }
}
