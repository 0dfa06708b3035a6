//! The dispatcher: waits for stops, finds out what each means, does it, and lets the thread go on. It is the only place that
//! resumes a guest. Guest code runs in parallel; the dispatcher handles one stop at a time.
//!
//! Invariants: a thread in [`State::Cache`] runs nothing but translated code; a thread's gs base is its slot's address
//! whenever it runs translated code; every thread's counts are added to its process exactly once.
//!
//! Three things end what is being done without a word, wherever they are met: the thread has been killed (its end is waited
//! for as that of any other), it is not known yet or not any more (nobody has announced it, or its process has gone), and the
//! program has taken memory away that it had named. Whatever else cannot be speaks (`broken`).

mod affinity;
mod again;
mod ahead;
mod alignment;
mod announce;
mod ask;
mod attach;
mod birth;
mod boundary;
mod broken;
mod calltime;
mod clientreq;
mod collection;
mod contexts;
mod dead;
mod deadly;
mod fair_wait;
mod first;
mod flush;
mod follow;
mod frames;
mod hotness;
mod in_place;
mod int80;
mod leave;
mod life;
mod limits;
mod made;
mod native;
mod objects;
mod own_code;
mod poller;
mod progress;
mod self_modifying;
mod signal;
mod sigtrap;
mod switch;
mod syscall;
mod tally;
mod trace;
mod translation;
mod trapflag;
mod unfinished;
mod window;
mod x87;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use grind_code_cache::CodeCache;
use grind_fragments::fragment_table::{Emulate, FragmentId, StubKind, Way};
use grind_fragments::orders::Orders;
use grind_guest::int80::{self as int80_calls, Call};
use grind_guest::process::{Again, Interrupted, Process, State, Thread};
use grind_guest::resume::go_on;
use grind_isa::cpuid::{self, CpuModel};
use grind_layout::{SlotWord, TARGET};
use grind_ptrace::mapped_files::MappedFiles;
use grind_ptrace::{self as tracee, How, Regs, Stop, Stopped, Wait, is_sent};
use grind_session::guard::{self, CarefulSession};
use grind_session::trace_channel::TraceChannel;
use grind_session::{Exit, FirstProcess, Notice, Program, Session, Settings};
use grind_trace::Sink;
use grind_trace::follow::CallContextId;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::fault;
use grind_types::hash::Map;
use grind_types::subject;
use grind_types::{EngineError, Pid, Tid};
use nix::libc;

use grind_ptrace::launch;
use grind_ptrace::tick::Ticks;

/// The driver is asked at least so often what it wants, as long as there are stops.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of a stub: `int3` and its number.
const STUB_LEN: u64 = 5;

/// Everything about a run.
pub(crate) struct Dispatcher<'s> {
    session: &'s mut dyn Session,
    settings: &'s Settings,
    processes: Map<Pid, Process>,
    threads: Map<Tid, Thread>,
    /// First stops of threads whose creator has not told of them yet, and the stops' signals.
    early: Map<Tid, (Stopped, i32)>,
    pin: affinity::Pin,
    poller: poller::Poller,
    fair_wait: fair_wait::FairWait,
    spells: progress::Spells,
    /// The way to whoever analyses the trace, if there is one.
    trace_channel: Option<TraceChannel>,
    /// What processes do with SIGTRAP, where that needs care.
    traps: Map<Pid, sigtrap::Traps>,
    /// Address spaces whose translations are about to be thrown away.
    flushes: Vec<flush::Flush>,
    /// The process in which it has just turned out that this should be done.
    full: Option<Pid>,
    /// Processes whose translations do not fit what they are to record.
    windows: window::Windows,
    /// Those that run their own code meanwhile, or are to.
    own_code: own_code::OwnCode,
    /// Threads that wait until theirs can be thrown away.
    too_early: HashMap<Tid, Stopped>,
    hotness_sampler: hotness::HotnessSampler,
    /// Transfers of control that have been decided on, but whose threads have to stop before they go on.
    decided: Map<Tid, follow::Followed>,
    /// Threads whose costs are, or were, not collected for a while.
    uncollected: Map<Tid, ask::Uncollected>,
    /// Threads that are about to make a system call again that was interrupted for nothing.
    again: Map<Tid, Again>,
    /// The same of the thread whose stop is being dealt with.
    was_again: Option<Again>,
    /// What the thread whose stop is being dealt with was about to do.
    was_interrupted: Option<Interrupted>,
    /// System calls that are being timed.
    timed: Map<Tid, calltime::Timed>,
    /// System calls that are being made by `int 0x80`.
    other_calls: Map<Tid, Call>,
    /// Processes whose costs are to be collected, or not, as soon as that can be.
    collection: collection::Wishes,
    /// What stands still while something is asked about a process.
    standstill: Option<ask::Standstill>,
    /// Threads that wait until those that follow them have changed their context.
    held: Map<Tid, contexts::Held>,
    /// The files behind mapped code.
    files: MappedFiles,
    /// What was asked for of them, by earlier processes too.
    orders: Orders,
    /// The driver wants to know what is about to be written.
    watched: bool,
    /// Warnings given so far.
    warned: std::collections::HashSet<&'static str>,
    /// The first process.
    main: Pid,
    /// It has been stopped by a signal.
    main_stopped: bool,
    /// It has gone on to a program that is not followed, or is left to itself.
    left: bool,
    /// It ran already.
    attached: bool,
    /// Processes that are to be left to themselves as soon as that can be done.
    leaving: Vec<Pid>,
    /// When the driver was asked last what it wants.
    looked: Instant,
    /// What interrupts for that, where a signal of the driver's must not be missed.
    looks: Option<Ticks>,
    /// A process has told calls for long enough.
    told_enough: Cell<bool>,
    exit: Option<Exit>,
    failure: Option<EngineError>,
}

/// What is to be followed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// A program that is started.
    Program(&'a Program),
    /// A process that runs already.
    Process(Pid),
}

/// Follows a program to its end, or until it is to be left.
pub(crate) fn run(
    target: Target<'_>,
    settings: &Settings,
    session: &mut dyn Session,
    sink: Option<Box<dyn Sink>>,
) -> Result<Exit, EngineError> {
    let trace_channel = sink
        .map(|sink| if settings.trace.followed() { TraceChannel::at_hand(sink) } else { TraceChannel::new(sink) })
        .transpose()
        .map_err(|source| EngineError::Os { what: "starting a thread", source })?;
    let launched = match target {
        Target::Program(program) => Some((launch::launch(&program.path, &program.args, &program.env)?, &program.path)),
        Target::Process(_) => None,
    };
    let mut session = CarefulSession(session);
    let session: &mut dyn Session = &mut session;
    let mut dispatcher = Dispatcher {
        session,
        settings,
        processes: Map::default(),
        threads: Map::default(),
        early: Map::default(),
        pin: affinity::Pin::default(),
        poller: poller::Poller::default(),
        fair_wait: fair_wait::FairWait::default(),
        spells: progress::Spells::default(),
        trace_channel,
        traps: Map::default(),
        flushes: Vec::new(),
        full: None,
        windows: window::Windows::default(),
        own_code: own_code::OwnCode::default(),
        too_early: HashMap::new(),
        hotness_sampler: hotness::HotnessSampler::begin(settings),
        decided: Map::default(),
        uncollected: Map::default(),
        collection: collection::Wishes::default(),
        again: Map::default(),
        was_again: None,
        was_interrupted: None,
        timed: Map::default(),
        other_calls: Map::default(),
        standstill: None,
        held: Map::default(),
        files: MappedFiles::default(),
        orders: Orders::default(),
        watched: false,
        warned: std::collections::HashSet::new(),
        main: match (target, &launched) {
            (Target::Process(pid), _) => pid,
            (_, launched) => launched.as_ref().map_or(Pid(0), |(launched, _)| launched.pid),
        },
        main_stopped: false,
        left: false,
        attached: launched.is_none(),
        leaving: Vec::new(),
        looked: Instant::now(),
        looks: None,
        told_enough: Cell::new(false),
        exit: None,
        failure: None,
    };
    let followed = guard::caught(|| {
        if let Target::Process(pid) = target {
            dispatcher.attach(pid)?;
        } else if let Some(every) = settings.look_every {
            dispatcher.look_every(every);
        }
        dispatcher.until_everything_ended()
    });
    match followed {
        Ok(ended) => ended?,
        Err(what) => dispatcher.engine_broke(what),
    }
    if let Some(e) = dispatcher.failure {
        return Err(e);
    }
    if let Some((launched, path)) = launched
        && let Some(source) = launched.failure()
    {
        return Err(EngineError::Exec { path: path.clone(), source });
    }
    dispatcher.exit.ok_or_else(|| EngineError::Os {
        what: "waiting for the program",
        source: std::io::Error::from_raw_os_error(libc::ECHILD),
    })
}

impl Dispatcher<'_> {
    fn until_everything_ended(&mut self) -> Result<(), EngineError> {
        loop {
            let wait = if self.flushes.is_empty() {
                match self.poll() {
                    Some(wait) => wait,
                    None => self.wait_in_turn().map_err(|source| EngineError::Os { what: "waitpid", source })?,
                }
            } else {
                tracee::wait_any_briefly().unwrap_or_else(|| {
                    self.remind();
                    Wait::Interrupted
                })
            };
            match wait {
                Wait::Nothing => return Ok(()),
                Wait::Stopped(t, stop) => self.stopped(t, stop),
                Wait::Exited { tid, status } => self.ended(tid, Exit::Code(status)),
                Wait::Killed { tid, signal } => self.ended(tid, Exit::Signal(signal)),
                Wait::Interrupted => self.look_outside(),
            }
            // Where one stop follows another, nothing is ever waited for that could be interrupted.
            if self.looked.elapsed() >= LOOK {
                self.look_outside();
            }
            if self.told_enough.take() {
                self.follow_what_pays();
            }
            fault::point("engine");
            self.notice_broken_sink();
            if let Some(pid) = self.full.take() {
                self.begin_flush(pid, flush::Reason::Anew);
            }
            self.look_at_leaving();
            self.look_at_windows();
            self.look_at_own_code();
            self.look_at_collection();
            self.end_spells();
            self.look_for_hotness();
            if !self.flushes.is_empty() {
                self.settle_flushes();
            }
        }
    }

    /// From now on the driver is asked what it wants also while nothing stops.
    fn look_every(&mut self, span: Duration) {
        self.looks = Ticks::new();
        self.looks.iter_mut().for_each(|ticks| ticks.every(span));
    }

    /// Asks the driver what it wants.
    fn look_outside(&mut self) {
        self.looked = Instant::now();
        // What the driver learns of that may be what it wants.
        self.tell_tally();
        self.serve_control_requests();
        self.follow_what_pays();
    }

    /// A signal has stopped `tid`.
    fn main_stops(&mut self, tid: Tid, signal: i32) {
        if tid.leads(self.main) && !self.main_stopped {
            self.main_stopped = true;
            self.session.first_process(FirstProcess::Stopped(signal));
        }
    }

    /// `tid` is not stopped, or not any more.
    fn main_continued(&mut self, tid: Tid) {
        if tid.leads(self.main) && self.main_stopped {
            self.main_stopped = false;
            self.session.first_process(FirstProcess::Continued);
        }
    }

    fn stopped(&mut self, t: Stopped, stop: Stop) {
        let tid = t.tid();
        log::trace!(target: subject::DISPATCH, "thread {tid} stopped: {stop:?}");
        self.was_again = self.again.remove(&tid);
        self.was_interrupted = self.threads.get_mut(&tid).and_then(|th| th.interrupted.take());
        if matches!(stop, Stop::Event { event: libc::PTRACE_EVENT_STOP, .. }) {
            self.still_interrupted(tid);
        }
        if stop != Stop::Syscall {
            self.call_left(tid, false);
        }
        match stop {
            Stop::Event { event, signal } => self.event(t, event, signal),
            Stop::Syscall if self.threads.get(&tid).is_some_and(|th| th.state == State::Own) => {
                self.call_of_own_code(t)
            }
            // Otherwise only asked for while an image is being prepared, and dealt with there.
            Stop::Syscall => self.call_stop(t),
            Stop::Signal(signal) => {
                let Some(thread) = self.threads.get(&tid) else {
                    // Before the program has begun; or not followed any more, and there is nothing to resume.
                    if tid.leads(self.main) && self.left {
                        self.session.first_process(FirstProcess::Stopped(signal));
                    }
                    t.go_on(How::Continue, signal);
                    return;
                };
                if signal == libc::SIGSTOP && t.would_not_stop() {
                    return self.go_on_past_stop(t);
                }
                match thread.state {
                    State::Cache | State::Exec { .. } if signal == libc::SIGTRAP => self.trap(t),
                    state => self.signal(t, signal, state),
                }
            }
        }
    }

    fn event(&mut self, t: Stopped, event: i32, signal: i32) {
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => self.created(t, event),
            libc::PTRACE_EVENT_EXEC => self.executed(t),
            libc::PTRACE_EVENT_EXIT => self.exiting(t),
            libc::PTRACE_EVENT_STOP => self.event_stop(t, signal),
            _ => {
                t.go_on(How::Continue, 0);
            }
        }
    }

    /// An `int3` of ours, a step that is done, or the guest's own SIGTRAP.
    fn trap(&mut self, t: Stopped) {
        let Ok(rip) = t.rip() else { return };
        let tid = t.tid();
        let Some((code_cache, state)) = self.code_cache_and_state(tid) else { return };
        let at = rip.wrapping_sub(1);
        let stub = code_cache.borrow().stub_at(CacheAddr(at));
        let dead = {
            let s = code_cache.borrow();
            (s.cache_byte(CacheAddr(at)) == Some(0xcc)).then(|| s.trans.dead_at(CacheAddr(at))).flatten()
        };
        let Ok(info) = t.siginfo() else { return };
        if is_sent(&info) {
            // The kernel keeps one SIGTRAP at a time: that of our breakpoint is left out then, and will come again.
            if (stub.is_some() || dead.is_some()) && t.set_rip(at).is_err() {
                return;
            }
        } else if let Some(kind) = stub {
            return self.stub(t, kind, CacheAddr(at + STUB_LEN));
        } else if let Some(dead) = dead {
            return self.dead_block(t, dead, CacheAddr(at));
        }
        if self.withhold_trap(&t) {
            t.go_on(How::Continue, 0);
            return;
        }
        let Some(t) = self.trap_flag(t, rip) else { return };
        self.signal(t, libc::SIGTRAP, state);
    }

    fn code_cache_and_state(&self, tid: Tid) -> Option<(Rc<RefCell<CodeCache>>, State)> {
        let th = self.threads.get(&tid)?;
        let p = self.processes.get(&th.pid)?;
        Some((p.code_cache.clone(), th.state))
    }

    fn process_of(&self, tid: Tid) -> Option<&Process> {
        self.processes.get(&self.threads.get(&tid)?.pid)
    }

    fn process_of_mut(&mut self, tid: Tid) -> Option<&mut Process> {
        self.processes.get_mut(&self.threads.get(&tid)?.pid)
    }

    fn set_state(&mut self, tid: Tid, state: State) {
        if let Some(th) = self.threads.get_mut(&tid) {
            th.state = state;
        }
    }

    fn slot_word(&self, tid: Tid, word: SlotWord) -> u64 {
        self.threads
            .get(&tid)
            .and_then(|th| Some(self.processes.get(&th.pid)?.pool.borrow().slot_word(th.slot, word)))
            .unwrap_or(0)
    }

    /// What gs must be while `tid` runs translated code.
    fn gs(&self, tid: Tid) -> u64 {
        let Some(th) = self.threads.get(&tid) else { return 0 };
        let Some(p) = self.processes.get(&th.pid) else { return 0 };
        let pool = p.pool.borrow();
        match pool.slot_word(th.slot, SlotWord::ContextBase) {
            0 => pool.gs(th.slot),
            base => base,
        }
    }

    /// A stop at a stub; `rip` is the address behind the stub.
    fn stub(&mut self, t: Stopped, kind: StubKind, rip: CacheAddr) {
        log::trace!(target: subject::DISPATCH, "thread {}: {kind:?}", t.tid());
        let kind = match kind {
            StubKind::Asked => {
                self.not_polled(t.tid());
                let Some(kind) = self.asked_for(t.tid()) else { return };
                log::trace!(target: subject::DISPATCH, "thread {} asks: {kind:?}", t.tid());
                kind
            }
            kind => kind,
        };
        match kind {
            StubKind::Asked => {}
            StubKind::Exit { target, site, call_context } => {
                let (t, id) = self.translation(t, target, call_context);
                match (t, id) {
                    (Some(t), Some(id)) => {
                        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return };
                        let body = code_cache.borrow().trans.block(id).entry;
                        code_cache.borrow_mut().link(site, id);
                        self.look_ahead(t.tid(), target, None);
                        if t.set_rip(body.0).is_ok() {
                            t.go_on(How::Continue, 0);
                        }
                    }
                    (Some(t), None) => self.run_off(t, target),
                    (None, _) => {}
                }
            }
            StubKind::IblMiss { way } => {
                let Ok(mut regs) = t.regs() else { return };
                let target = self.indirect_target(t.tid(), &mut regs, way);
                let (t, id) = self.translation(t, target, CallContextId::NONE);
                let Some(t) = t else { return };
                if let Some(id) = id {
                    let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return };
                    code_cache.borrow_mut().add_ibl_target(id, way);
                    self.look_ahead(t.tid(), target, Some(way));
                    regs.rip = code_cache.borrow().trans.block(id).entry.0;
                    if t.set_regs(&regs).is_ok() {
                        t.go_on(How::Continue, 0);
                    }
                } else {
                    if t.set_regs(&regs).is_ok() {
                        self.run_off(t, target);
                    }
                }
            }
            StubKind::Transfer { .. } | StubKind::Return { .. } => self.follow_transfer(t, kind),
            StubKind::Syscall { next, go } => self.syscall(t, next, go),
            StubKind::CallFailed { go } => self.call_failed(t, go, rip),
            StubKind::Emulate { what, pc, next, block } => self.emulate(t, what, pc, next, block, rip),
            StubKind::MissPath { .. }
            | StubKind::SavedX87 { .. }
            | StubKind::Watched { .. }
            | StubKind::Framed { .. } => {
                let Some(t) = self.ready_to_serve(t, kind) else { return };
                self.serve_within(&t, kind);
                if t.set_rip(rip.0).is_ok() {
                    t.go_on(How::Continue, 0);
                }
            }
        }
    }

    /// Where an indirect branch leads that has not found an IBL target; makes the registers the guest's.
    fn indirect_target(&self, tid: Tid, regs: &mut Regs, way: Way) -> GuestAddr {
        regs.rcx = self.slot_word(tid, SlotWord::Rcx);
        match way {
            Way::Jump | Way::Call => GuestAddr(self.slot_word(tid, TARGET)),
            Way::Return | Way::Paired => GuestAddr(
                self.process_of(tid).and_then(|p| p.memory.word(regs.rsp.wrapping_sub(8))).unwrap_or_default(),
            ),
        }
    }

    /// Goes on at guest address `pc`; all other registers are the guest's already.
    fn enter(&mut self, t: Stopped, pc: GuestAddr) {
        if let Some((t, _)) = self.go_to(t, pc) {
            t.go_on(How::Continue, 0);
        }
    }

    /// The same after a signal.
    fn enter_after_signal(&mut self, t: Stopped, pc: GuestAddr) {
        if let Some((t, at)) = self.go_to(t, pc) {
            self.go_on_after_signal(t, at);
        }
    }

    /// Puts `t` to the translation of `pc`, where it is then. `None`: it has gone on already.
    fn go_to(&mut self, t: Stopped, pc: GuestAddr) -> Option<(Stopped, CacheAddr)> {
        let has_counted = self.begins_counted(t.tid(), pc);
        let follows = self.follows(t.tid());
        if has_counted && follows {
            self.has_counted(t.tid(), pc);
        }
        let call_context = self.call_context(t.tid(), pc);
        let (t, id) = self.translation(t, pc, call_context);
        let t = t?;
        let Some(id) = id else {
            self.run_off(t, pc);
            return None;
        };
        self.set_state(t.tid(), State::Cache);
        self.enters(t.tid());
        let (code_cache, _) = self.code_cache_and_state(t.tid())?;
        let body = code_cache.borrow().trans.block(id).entry;
        if let Some(call) = self.threads.get_mut(&t.tid()).and_then(|th| th.interrupted.as_mut()) {
            (call.at, call.counted_by) = (body, (id, 1));
        }
        if has_counted && !follows {
            self.uncount_last(t.tid(), id, 1);
        }
        t.set_rip(body.0).is_ok().then_some((t, body))
    }

    /// Goes to guest address `pc`, where no code is: the fault that follows is the one that the guest would get.
    fn run_off(&mut self, t: Stopped, pc: GuestAddr) {
        self.set_state(t.tid(), State::Guest);
        if t.set_rip(pc.0).is_ok() {
            t.go_on(How::Continue, 0);
        }
    }

    /// The engine cannot go on with this process: it is killed, and the run fails. Unless that is so because somebody else has
    /// killed it.
    fn give_up(&mut self, t: Option<Stopped>, e: EngineError) -> Option<Stopped> {
        if let Some(t) = t.filter(|t| !t.has_been_killed()) {
            let pid = self.threads.get(&t.tid()).map_or(Pid::led_by(t.tid()), |th| th.pid);
            self.session.notice(pid, Notice::Warning(e.to_string()));
            self.failure.get_or_insert(e);
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.0), nix::sys::signal::SIGKILL);
            t.go_on(How::Continue, 0);
        }
        None
    }

    /// An instruction that grind carries out. `rip` is behind the stub.
    fn emulate(
        &mut self,
        t: Stopped,
        what: Emulate,
        pc: GuestAddr,
        next: GuestAddr,
        block: FragmentId,
        rip: CacheAddr,
    ) {
        let Ok(mut regs) = t.regs() else { return };
        match what {
            Emulate::Cpuid => {
                let [a, b, c, d] = cpuid::baseline(regs.rax as u32, regs.rcx as u32);
                [regs.rax, regs.rbx, regs.rcx, regs.rdx] = [a.into(), b.into(), c.into(), d.into()];
                go_on(t, regs, rip);
            }
            Emulate::Xgetbv => {
                // Others than XCR0 do not exist: a general protection fault, which running it in place gives.
                if regs.rcx as u32 != 0 {
                    return self.in_place(t, regs, pc, block, None);
                }
                regs.rax = cpuid::BASELINE_XCR0 & 0xffff_ffff;
                regs.rdx = cpuid::BASELINE_XCR0 >> 32;
                go_on(t, regs, rip);
            }
            Emulate::ClientGetNr => {
                regs.rax = 0;
                go_on(t, regs, rip);
            }
            Emulate::ClientRequest => self.client_request(t, regs, next, rip),
            Emulate::Int3 => {
                // The guest's own breakpoint: the same signal, as if it had been executed in its place.
                regs.rip = next.0;
                if t.set_regs(&regs).is_ok() {
                    self.deliver(t, libc::SIGTRAP);
                }
            }
            Emulate::InPlace if self.process_of(t.tid()).is_some_and(|p| int80_calls::is_at(&p.memory, pc, next)) => {
                self.int80(t, regs, pc, next, block);
            }
            Emulate::InPlace => self.in_place(t, regs, pc, block, None),
        }
    }

    fn masked(&self) -> bool {
        self.settings.cpu == CpuModel::Baseline
    }
}
