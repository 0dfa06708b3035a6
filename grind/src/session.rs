//! The runner's side of the engine: what is followed, what is logged, and what is written when a process ends.
//!
//! Nothing that fails here stops the program: a profile that cannot be written is reported, saved elsewhere if possible,
//! and the program's exit status stays its own.

mod asked;
mod frames;
mod lines;
mod opening;
mod save;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::allocators::Watchers;
use callgrind_control_protocol::Answer;
use cg_cli::expand::Sequence;
use cg_cli::saved::Saved;
use cg_format::cachegrind::Profile;
use grind_analysis::callgrind::dump_service::DumpService;
use grind_analysis::cycles::Cycles;
use grind_analysis::dump;
use grind_analysis::simulator::Findings;
use grind_names::boundaries::Boundaries;
use grind_names::frames::Frames;
use grind_names::made::Registry;
use grind_names::opened::Opened;
use grind_names::symbolizer::Symbolizer;
use grind_session::broken;
use grind_session::{
    ControlRequest, Exit, FirstProcess, Instrumentation, Notice, ProcessReport, Session, Tally, Wanted,
};
use grind_trace::objects::Allocator;
use grind_types::addr::GuestAddr;
use grind_types::frames::{FrameFunction, FrameHook, ReadMemory};
use grind_types::{Module, Pid, Query, Tid, fault};
use nix::sys::signal::Signal;

use crate::attach::Visit;
use crate::backtrace;
use crate::callgrind::session::CallSession;
use crate::control::Control;
use crate::invocation::Invocation;
use crate::live::Live;
use crate::log::{Log, Target, Voice};
use crate::options::Options;
use crate::parts::Parts;
use crate::progress::Progress;
use crate::resolve::{self, Cause};
use crate::simulation::Simulation;
use crate::supervisor::Reporter;
use crate::timeline::Timeline;
use crate::tree::Tree;

/// What is known of a process.
#[derive(Clone, Debug)]
struct Process {
    /// The command as it was given: of a script its own name, not that of its interpreter.
    args: Vec<OsString>,
    parent: Pid,
    /// When it began to run this program, or to be followed.
    began: Instant,
    /// What of its profile by line has been written.
    parts: Parts,
    /// The name of that, once it has one.
    path: Option<PathBuf>,
    /// The name of its file of data objects, once it has one.
    mem: Option<PathBuf>,
}

/// The runner.
pub struct Runner<'a> {
    invocation: Invocation,
    options: &'a Options,
    simulation: Simulation,
    findings: Findings,
    /// Finds the allocators of modules, if objects are asked for.
    watchers: Option<Watchers>,
    /// Finds interpreters, if their frames are asked for.
    frames: Option<Frames>,
    /// The callgrind tool's share.
    calls: Option<CallSession>,
    log: Log,
    /// Shared by log and profile names, as `%n` demands.
    sequence: Sequence,
    symbolizer: Box<dyn Symbolizer + 'a>,
    /// Names of code that programs make while they run.
    made: Registry,
    /// What estimates cycles.
    cycles: Option<Cycles>,
    processes: HashMap<Pid, Process>,
    /// Where a profile goes that cannot be written where it should.
    spare: PathBuf,
    /// Whose profile is in a file.
    written: HashMap<PathBuf, Pid>,
    /// The line to the process that waits for the first one.
    supervisor: Option<Reporter>,
    /// The first process, once there has been one.
    first: Option<Pid>,
    /// The command of the first process, and those that processes are about to start, as they were given.
    given: (Vec<OsString>, HashMap<Pid, Vec<OsString>>),
    /// What has failed that must not, if something has: profiles are incomplete.
    broken: Option<String>,
    /// The file of all processes, once the first one has begun, if that is asked for.
    tree: Option<Tree>,
    /// The line on the terminal, if there is to be one.
    progress: Option<Progress>,
    /// How long a process is followed that ran already.
    visit: Option<Visit>,
    /// When parts of profiles are written, if that goes by time or by instructions.
    timeline: Option<Timeline>,
    /// Who asks from outside, if anybody may.
    control: Option<Control>,
    /// Whoever looks at what runs.
    live: Option<Live>,
    /// The processor time of the engine's thread when it was last asked to look at what runs.
    peek_began: Duration,
    /// The line of progress is due; and what it wants to know of output.
    shows: (bool, bool),
}

impl<'a> Runner<'a> {
    /// A runner that logs to `target`.
    #[must_use]
    pub fn new(
        invocation: Invocation,
        options: &'a Options,
        target: Target,
        symbolizer: Box<dyn Symbolizer + 'a>,
    ) -> Self {
        Self {
            invocation,
            options,
            simulation: Simulation::default(),
            findings: Findings::default(),
            watchers: None,
            frames: None,
            calls: None,
            log: Log::new(target, options.time_stamp),
            sequence: Sequence::default(),
            symbolizer,
            made: Registry::default(),
            cycles: None,
            processes: HashMap::new(),
            spare: std::env::temp_dir(),
            written: HashMap::new(),
            supervisor: None,
            first: None,
            given: Default::default(),
            broken: None,
            tree: None,
            progress: None,
            visit: None,
            timeline: None,
            control: None,
            live: None,
            peek_began: Duration::ZERO,
            shows: (false, false),
        }
    }

    /// Parts of profiles are written as `timeline` says.
    pub fn writes_parts(&mut self, timeline: Timeline) {
        self.timeline = Some(timeline);
    }

    /// The first process runs already, and is followed for as long as `visit` says.
    pub fn visits(&mut self, visit: Visit) {
        self.visit = Some(visit);
    }

    /// Shows on a terminal how far the processes are, unless that is not wanted: all is to be quiet, another program reads the
    /// log, or grind takes Valgrind's place. To be called by the thread that runs the engine, when there may be threads.
    pub fn show_progress(&mut self) {
        let read = matches!(self.options.log, crate::options::LogTarget::Fd(fd) if fd != 2);
        if self.invocation == Invocation::Grind && self.options.verbosity > 0 && !read {
            self.progress = Progress::start();
            self.progress.iter().for_each(|progress| self.log.clears(progress.line()));
        }
    }

    fn clear_progress(&self) {
        self.progress.iter().for_each(|progress| progress.line().clear());
    }

    /// Estimates cycles.
    pub fn estimate(&mut self, cycles: Cycles) {
        self.cycles = Some(cycles);
    }

    /// Names of code that programs make while they run, for whoever else asks for them.
    #[must_use]
    pub fn made(&self) -> Registry {
        self.made.clone()
    }

    /// The command of the first process, as the user gave it.
    pub fn runs(&mut self, command: &[OsString]) {
        self.given.0 = command.to_vec();
    }

    /// Counts what `simulation` adds to instructions, too; what it found will be in `findings`.
    pub fn simulate(&mut self, simulation: Simulation, findings: Findings) {
        self.simulation = simulation;
        self.findings = findings;
    }

    /// Makes profiles of data objects, by the symbols of what is `opened`.
    pub fn watch(&mut self, opened: Opened) {
        self.watchers = Some(Watchers::new(opened, self.options.alloc_fns.clone()));
    }

    /// Makes profiles of calls, which are handed over at `dump_service`, by the symbols of what is `opened`.
    pub fn record_calls(&mut self, dump_service: DumpService, events: Vec<String>, opened: Opened) {
        let boundaries = Boundaries::new(opened);
        self.calls = Some(CallSession::new(dump_service, boundaries, events));
    }

    /// The name of the profile of calls of a process that begins to be recorded.
    fn calls_file(&mut self, pid: Pid) -> PathBuf {
        match &self.tree {
            Some(tree) => tree.path().to_owned(),
            None => self.options.callgrind_out_file().expand(pid.0, &mut self.sequence),
        }
    }

    /// The first process, `pid`, begins to run `args`: so does the file of all, if that is asked for.
    fn begin_tree(&mut self, pid: Pid, args: &[OsString]) {
        let Some(template) = &self.options.tree else { return };
        let path = template.expand(pid.0, &mut self.sequence);
        self.tree = Some(match &self.calls {
            Some(calls) => {
                let (header, events) = calls.header(pid, args);
                Tree::of_calls(path, &header, events)
            }
            None => {
                let mut profile = Profile::new(self.simulation.events().names());
                profile.header.desc = self.simulation.descriptions();
                profile.header.cmd = dump::command(args);
                Tree::of_lines(path, &profile)
            }
        });
    }

    fn forget(&mut self, pid: Pid) {
        self.made.forget(pid);
        self.live.iter_mut().for_each(|live| live.forget(pid));
        self.control.iter_mut().for_each(|control| control.forget(pid));
        self.processes.remove(&pid);
        self.given.1.remove(&pid);
    }

    /// `path` has the last file of a process that has ended. Ids are used again after some ten thousand processes, and then
    /// so is a name with an id in it.
    fn take_name(&mut self, pid: Pid, path: PathBuf) {
        let text = format!(
            "an earlier process had the id {pid}, too: '{}' is not its profile any more (with '%p.%n' in the name both \
             are kept)",
            path.display()
        );
        if self.written.insert(path, pid) == Some(pid) {
            self.notice(pid, Notice::Warning(text));
        }
    }

    /// Tells the supervisor how the first process fares.
    pub fn report_to(&mut self, supervisor: Reporter) {
        self.supervisor = Some(supervisor);
    }

    fn user(&mut self, pid: Pid, lines: &str) {
        self.log.say(pid, Voice::User, lines);
    }

    fn report_log_failure(&mut self, pid: Pid, failure: Option<(PathBuf, std::io::Error)>) {
        if let Some((path, error)) = failure {
            let text = format!(
                "cannot write the log file '{}': {}; logging to standard error instead",
                path.display(),
                resolve::reason(&error)
            );
            self.user(pid, &text);
        }
    }

    /// `pid` is about to become a program that is not followed.
    fn leave_for(&mut self, pid: Pid, path: &Path, args: &[OsString]) -> bool {
        if let Some(tree) = &mut self.tree {
            tree.leaves_for(pid, path, args);
        }
        false
    }

    /// Why the program that `pid` is about to start cannot be followed, if so.
    fn unfollowable(&self, pid: Pid, path: &Path) -> Option<Cause> {
        // Relative to the process, not to grind.
        let path = match path.is_absolute() {
            true => path.to_owned(),
            false => Path::new("/proc").join(pid.to_string()).join("cwd").join(path),
        };
        match resolve::check(&path) {
            Ok(_) => None,
            Err(cause) => {
                let inner = match &cause {
                    Cause::Interpreter(_, inner) => inner,
                    other => other,
                };
                // The other causes make execve itself fail, and the process go on as before.
                matches!(inner, Cause::SetId | Cause::Elf32 | Cause::Foreign(_) | Cause::Unreadable(_)).then_some(cause)
            }
        }
    }
}

impl Session for Runner<'_> {
    fn follow_exec(&mut self, pid: Pid, path: &Path, args: &[OsString]) -> bool {
        if !self.options.trace_children {
            return self.leave_for(pid, path, args);
        }
        let skipped = self.options.skip.iter().any(|p| p.matches(path.as_os_str()))
            || self.options.skip_by_arg.iter().any(|p| args.iter().any(|a| p.matches(a)));
        if skipped {
            return self.leave_for(pid, path, args);
        }
        match self.unfollowable(pid, path) {
            None => {
                self.given.1.insert(pid, args.to_vec());
                true
            }
            Some(cause) => {
                if self.options.verbosity > 0 {
                    let text = format!("Warning: not profiled: {}: {cause}", path.display());
                    self.user(pid, &text);
                }
                self.leave_for(pid, path, args)
            }
        }
    }

    fn image_started(&mut self, pid: Pid, parent: Option<Pid>, _exe: &Path, args: &[OsString]) {
        let parent = parent.unwrap_or_else(|| Pid(nix::unistd::getppid().as_raw()));
        let first = self.first.is_none();
        self.first.get_or_insert(pid);
        let args = self.command(pid, first, args);
        if first {
            self.begin_tree(pid, &args);
        }
        if let (Some(calls), Some(tree)) = (&self.calls, &mut self.tree) {
            // Parts of what it ran before.
            calls.written(pid).iter().for_each(|part| tree.part(pid, &part.text, &part.total));
        }
        if let Some(tree) = self.tree.as_mut().filter(|tree| !tree.knows(pid)) {
            tree.created(pid, None);
        }
        let parts = self.processes.get(&pid).map(|p| p.parts.for_another_program()).unwrap_or_default();
        let began = Instant::now();
        self.processes.insert(pid, Process { args: args.clone(), parent, began, parts, path: None, mem: None });
        if let Some(supervisor) = self.supervisor.as_mut().filter(|_| first) {
            supervisor.started(pid);
        }
        let failure = if self.log.knows(pid) {
            self.log.unsilence(pid);
            None
        } else {
            self.log.begin(pid, &mut self.sequence)
        };
        self.report_log_failure(pid, failure);
        self.banner(pid);
        if first {
            self.verbose_start(pid);
            self.describe_simulation(pid);
        }
        if let Some(visit) = self.visit.as_mut().filter(|_| first) {
            visit.begins();
        }
        self.made.began(pid);
        self.timeline.iter_mut().for_each(|timeline| timeline.began(pid));
        if self.calls.is_some() {
            let file = self.calls_file(pid);
            self.calls.iter_mut().for_each(|calls| calls.started(pid, &args, file.clone()));
        }
        self.listen(pid);
    }

    fn first_process(&mut self, how: FirstProcess) {
        match how {
            // Others may write to the terminal from now on.
            FirstProcess::Stopped(_) => self.clear_progress(),
            FirstProcess::Ended { .. } => self.progress = None,
            FirstProcess::Continued => {}
        }
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.fares(how);
        }
    }

    fn mapped(&mut self, module: &Module) {
        if let (Some(path), Some(file), None) = (&module.path, &module.file, &module.image) {
            self.symbolizer.expect(path, file);
        }
    }

    fn forked(&mut self, parent: Pid, child: Pid) {
        let args = self.processes.get(&parent).map(|p| p.args.clone()).unwrap_or_default();
        if let Some(tree) = &mut self.tree {
            tree.created(child, Some(parent));
        }
        let parts = self.processes.get(&parent).filter(|_| self.options.tree.is_none());
        let parts = parts.map(|p| p.parts.forked()).unwrap_or_default();
        self.processes.insert(child, Process { args, parent, began: Instant::now(), parts, path: None, mem: None });
        let silent = self.options.child_silent_after_fork;
        let (own, failure) = self.log.fork(parent, child, silent, &mut self.sequence);
        self.report_log_failure(child, failure);
        if own {
            self.banner(child);
        }
        self.made.forked(parent, child);
        if let Some(timeline) = self.timeline.as_mut().filter(|_| self.options.tree.is_none()) {
            timeline.forked(parent, child);
        }
        if self.calls.is_some() {
            let file = self.calls_file(child);
            self.calls.iter_mut().for_each(|calls| calls.forked(parent, child, file.clone()));
        }
        self.listen(child);
    }

    fn process_ends(&mut self, report: &ProcessReport<'_>) {
        let pid = report.pid;
        fault::point("end");
        self.clear_progress();
        if self.options.verbosity > 0 {
            self.user(pid, "");
            if let Some(Exit::Signal(signal)) = report.exit {
                let name = Signal::try_from(signal).map_or("unknown signal", Signal::as_str);
                self.user(pid, &format!("Process terminating with default action of signal {signal} ({name})"));
                self.user(pid, "");
            }
        }
        if self.calls.is_some() {
            self.end_calls(report);
            self.log.end(pid);
            self.forget(pid);
            return;
        }
        self.end_lines(report);
        self.log.end(pid);
        self.forget(pid);
    }

    fn boundaries(&mut self, module: &Module) -> Vec<u64> {
        self.calls.as_mut().map(|calls| calls.boundaries(module)).unwrap_or_default()
    }

    fn watched(&mut self, module: &Module) -> Vec<(u64, Allocator)> {
        self.watchers.as_mut().map(|watchers| watchers.of(module)).unwrap_or_default()
    }

    fn frame_hooks(&mut self, pid: Pid, module: &Module) -> Vec<(u64, FrameHook)> {
        self.hooks_of(pid, module)
    }

    fn frame_function(&mut self, module: &Module, memory: ReadMemory<'_>, code: u64) -> Option<FrameFunction> {
        self.frames.as_mut()?.function(module, memory, code)
    }

    fn code_made(&mut self, pid: Pid, modules: &[Module]) -> u32 {
        self.made.moment(pid, modules)
    }

    fn process_left(&mut self, pid: Pid) {
        if let Some(calls) = &mut self.calls {
            let (written, _) = calls.ended(pid);
            if let Some(tree) = &mut self.tree {
                written.iter().for_each(|part| tree.part(pid, &part.text, &part.total));
            }
        }
        if let Some(tree) = &mut self.tree
            && let Err(reason) = tree.left(pid)
        {
            let path = tree.path().to_owned();
            let _ = self.tell_saved(pid, &path, Saved::Nowhere(reason));
        }
        // Scripts that start programs do so all the time; but who profiles one that becomes another waits for a profile.
        if self.first == Some(pid) && self.invocation == Invocation::Grind {
            // It runs already, and may have ended.
            let program = std::fs::read_link(format!("/proc/{pid}/exe"));
            let program = program.map_or_else(|_| String::new(), |path| format!(", '{}',", path.display()));
            let text = format!(
                "the process goes on as another program{program} which is not followed: there is no profile of it \
                 (--trace-children=yes follows it)"
            );
            self.notice(pid, Notice::Warning(text));
        }
        self.forget(pid);
    }

    fn asked(&mut self, report: &ProcessReport<'_>, tid: Option<Tid>, ask: &Query) {
        let pid = report.pid;
        if let Query::Collect(_) = ask {
            let served = self.control.as_mut().map(|control| control.collection_served(pid));
            return served.into_iter().flatten().for_each(|asked| asked.answer(Answer::Done(Vec::new())));
        }
        let asked = self.control.as_mut().and_then(|control| control.served(pid, tid));
        let answer = match &mut self.calls {
            Some(calls) => {
                let written = calls.written(pid);
                let answer = calls.answer(report, ask, &written);
                let _ = self.tell_written(pid, written);
                let objects = self.parts_of_objects(report);
                objects.iter().for_each(|part| self.save_objects(pid, part));
                answer
            }
            None => self.asked_of_lines(report, ask),
        };
        if let Some(asked) = asked {
            asked.answer(answer);
        }
        if let (Query::Dump(_), Some(visit)) = (ask, &mut self.visit) {
            visit.dumped();
        }
    }

    fn peeked(&mut self, report: &ProcessReport<'_>) {
        self.look(report);
    }

    fn control_request(&mut self) -> Option<ControlRequest> {
        let leave = self.visit.as_mut().and_then(|visit| visit.next_to_leave(self.processes.keys().copied()));
        if let Some(pid) = leave {
            return Some(ControlRequest { pid, what: Wanted::Detach });
        }
        if let Some(timeline) = &mut self.timeline
            && let Some(pid) = timeline.next(Instant::now(), self.processes.keys().copied())
        {
            return Some(ControlRequest { pid, what: Wanted::Query(Query::Dump(Some(timeline.words()))) });
        }
        self.next_request()
    }

    fn wants_tally(&mut self) -> bool {
        self.shows.0 = self.progress.as_mut().is_some_and(Progress::is_due);
        self.shows.0 || self.timeline.as_ref().is_some_and(|timeline| timeline.wants_tally(Instant::now()))
    }

    fn tally(&mut self, tally: &Tally) -> bool {
        self.timeline.iter_mut().for_each(|timeline| timeline.tally(Instant::now(), tally));
        if self.shows.0 {
            self.shows.1 = self.progress.as_mut().is_some_and(|progress| progress.show(tally));
        }
        self.shows.1
    }

    fn about_to_write(&mut self, pid: Pid, descriptor: i32) -> bool {
        self.shows.1 = self.progress.as_mut().is_some_and(|progress| progress.before_output(pid, descriptor));
        self.shows.1
    }

    fn client_print(&mut self, pid: Pid, text: &[u8]) {
        self.log.text(pid, Voice::Program, text);
    }

    fn client_stack(&mut self, pid: Pid, modules: &[Module], frames: &[GuestAddr]) {
        if !self.log.is_silent(pid) {
            let lines = backtrace::lines(&mut *self.symbolizer, modules, frames, self.options.show_below_main);
            self.user(pid, &lines);
        }
    }

    fn forks_count_anew(&self) -> bool {
        self.options.tree.is_some()
    }

    fn redundant_instrumentation(&mut self, pid: Pid, request: Instrumentation) {
        let (name, state) = match request {
            Instrumentation::Start => ("START", "enabled"),
            Instrumentation::Stop => ("STOP", "disabled"),
        };
        let text = format!(
            "warning: CACHEGRIND_{name}_INSTRUMENTATION called,\n         but instrumentation is already {state}"
        );
        self.log.say(pid, Voice::Detail, &text);
    }

    fn tool_name(&self) -> &str {
        self.options.tool.name()
    }

    fn broke(&mut self, what: &str, goes_on: bool) {
        let what = broken::first(what);
        if self.broken.is_none() || !goes_on {
            // Told whatever the verbosity is.
            self.user(self.first.unwrap_or(Pid(0)), &broken::notice(&what, Some(goes_on)));
        }
        if let Some(calls) = &self.calls {
            calls.incomplete(&what);
        }
        self.broken.get_or_insert(what);
    }

    fn notice(&mut self, pid: Pid, notice: Notice) {
        match notice {
            Notice::Warning(text) if self.options.verbosity > 0 => self.user(pid, &format!("Warning: {text}")),
            Notice::Detail(text) if self.options.verbosity > 1 => self.log.say(pid, Voice::Detail, &text),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
