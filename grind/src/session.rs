//! The runner's side of the engine: what is followed, what is logged, and what is written when a process ends.
//!
//! Nothing that fails here stops the program: a profile that cannot be written is reported, saved elsewhere if possible,
//! and the program's exit status stays its own.

mod opening;
mod save;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cg_format::cachegrind::Profile;
use grind_analysis::broken;
use grind_analysis::callgrind::boundaries::Boundaries;
use grind_analysis::callgrind::dump_service::DumpService;
use grind_analysis::contexts::{self, Named};
use grind_analysis::counts::CountTable;
use grind_analysis::cycles::Cycles;
use grind_analysis::dump::{self, Made};
use grind_analysis::expand::Sequence;
use grind_analysis::objects::allocators::Watchers;
use grind_analysis::saved::Saved;
use grind_analysis::simulator::Findings;
use grind_names::made::Registry;
use grind_names::symbolizer::{self, Symbolizer};
use grind_session::{
    ContextCounts, ControlRequest, Exit, FirstProcess, Instrumentation, Notice, ProcessReport, Session, Tally, Wanted,
};
use grind_trace::objects::Allocator;
use grind_types::addr::GuestAddr;
use grind_types::{Module, Query, fault};
use nix::sys::signal::Signal;

use crate::advice;
use crate::attach::Visit;
use crate::backtrace;
use crate::callgrind::session::CallSession;
use crate::invocation::Invocation;
use crate::log::{Log, Target, Voice};
use crate::options::Options;
use crate::progress::Progress;
use crate::resolve::{self, Cause};
use crate::simulation::{self, Simulation};
use crate::supervisor::Reporter;
use crate::timeline::Timeline;
use crate::tree::Tree;

/// What is known of a process.
#[derive(Clone, Debug)]
struct Process {
    /// The command as it was given: of a script its own name, not that of its interpreter.
    args: Vec<OsString>,
    parent: i32,
}

/// The runner.
pub struct Runner<'a> {
    invocation: Invocation,
    options: &'a Options,
    simulation: Simulation,
    findings: Findings,
    /// Finds the allocators of modules, if objects are asked for.
    watchers: Option<Watchers>,
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
    processes: HashMap<i32, Process>,
    /// Where a profile goes that cannot be written where it should.
    spare: PathBuf,
    /// Whose profile is in a file.
    written: HashMap<PathBuf, i32>,
    /// The line to the process that waits for the first one.
    supervisor: Option<Reporter>,
    /// The first process, once there has been one.
    first: Option<i32>,
    /// The command of the first process, and those that processes are about to start, as they were given.
    given: (Vec<OsString>, HashMap<i32, Vec<OsString>>),
    /// What has failed that must not, if something has: profiles are incomplete.
    broken: Option<String>,
    /// The file of all processes, once the first one has begun, if that is asked for.
    tree: Option<Tree>,
    /// The line on the terminal, if there is to be one.
    progress: Option<Progress>,
    /// How long a process is followed that ran already.
    visit: Option<Visit>,
    /// When parts of profiles are written, if that goes by time.
    timeline: Option<Timeline>,
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

    /// The command of a process that begins to run `args`: as it was given, if that was a script, to whose words the kernel,
    /// or a shell in its place, has added those of its interpreter.
    fn command(&mut self, pid: i32, first: bool, args: &[OsString]) -> Vec<OsString> {
        let given = self.given.1.remove(&pid).unwrap_or_default();
        let given = if first { std::mem::take(&mut self.given.0) } else { given };
        match given.split_first() {
            Some((_, rest)) if args.len() > given.len() && args.ends_with(rest) => given,
            _ => args.to_vec(),
        }
    }

    /// Counts what `simulation` adds to instructions, too; what it found will be in `findings`.
    pub fn simulate(&mut self, simulation: Simulation, findings: Findings) {
        self.simulation = simulation;
        self.findings = findings;
    }

    /// Makes profiles of data objects; `names` says where symbols are looked for.
    pub fn watch(&mut self, names: grind_symbols::Options) {
        self.watchers = Some(Watchers::new(names));
    }

    /// Makes profiles of calls, which are handed over at `dump_service`.
    pub fn record_calls(&mut self, dump_service: DumpService, events: Vec<String>) {
        let boundaries = Boundaries::new(self.options.names());
        self.calls = Some(CallSession::new(dump_service, boundaries, events, self.options.callgrind.instr_at_start));
    }

    /// A process begins to be recorded: what `announce` does, with the name of its profile.
    fn announce_calls(&mut self, pid: i32, announce: impl FnOnce(&mut CallSession, PathBuf) -> std::io::Result<()>) {
        let Some(calls) = &mut self.calls else { return };
        let file = match &self.tree {
            Some(tree) => tree.path().to_owned(),
            None => self.options.callgrind_out_file().expand(pid, &mut self.sequence),
        };
        match announce(calls, file) {
            Ok(()) if self.options.verbosity > 0 => {
                self.user(pid, "For interactive control, run 'callgrind_control -h'.");
            }
            Ok(()) => {}
            Err(error) => {
                let reason = resolve::reason(&error);
                self.notice(pid, Notice::Warning(format!("callgrind_control cannot reach this run: {reason}")));
            }
        }
    }

    /// The first process, `pid`, begins to run `args`: so does the file of all, if that is asked for.
    fn begin_tree(&mut self, pid: i32, args: &[OsString]) {
        let Some(template) = &self.options.tree else { return };
        let path = template.expand(pid, &mut self.sequence);
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

    fn forget(&mut self, pid: i32) {
        self.made.forget(pid);
        self.processes.remove(&pid);
        self.given.1.remove(&pid);
    }

    /// `path` has the last file of a process that has ended. Ids are used again after some ten thousand processes, and then
    /// so is a name with an id in it.
    fn take_name(&mut self, pid: i32, path: PathBuf) {
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

    fn user(&mut self, pid: i32, lines: &str) {
        self.log.say(pid, Voice::User, lines);
    }

    fn report_log_failure(&mut self, pid: i32, failure: Option<(PathBuf, std::io::Error)>) {
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
    fn leave_for(&mut self, pid: i32, path: &Path, args: &[OsString]) -> bool {
        if let Some(tree) = &mut self.tree {
            tree.leaves_for(pid, path, args);
        }
        false
    }

    /// Why the program that `pid` is about to start cannot be followed, if so.
    fn unfollowable(&self, pid: i32, path: &Path) -> Option<Cause> {
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
    fn follow_exec(&mut self, pid: i32, path: &Path, args: &[OsString]) -> bool {
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

    fn image_started(&mut self, pid: i32, parent: i32, _exe: &Path, args: &[OsString]) {
        let parent = if parent == 0 { nix::unistd::getppid().as_raw() } else { parent };
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
        self.processes.insert(pid, Process { args: args.clone(), parent });
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
        self.announce_calls(pid, |calls, file| calls.started(pid, &args, file));
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
        // The callgrind tool has its own way to names.
        if self.calls.is_none()
            && let (Some(path), Some(file), None) = (&module.path, &module.file, &module.image)
        {
            self.symbolizer.expect(path, file);
        }
    }

    fn forked(&mut self, parent: i32, child: i32) {
        let args = self.processes.get(&parent).map(|p| p.args.clone()).unwrap_or_default();
        if let Some(tree) = &mut self.tree {
            tree.created(child, Some(parent));
        }
        self.processes.insert(child, Process { args, parent });
        let silent = self.options.child_silent_after_fork;
        let (own, failure) = self.log.fork(parent, child, silent, &mut self.sequence);
        self.report_log_failure(child, failure);
        if own {
            self.banner(child);
        }
        self.made.forked(parent, child);
        self.announce_calls(child, |calls, file| calls.forked(parent, child, file));
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
        let found = self.findings.take(pid);
        // Taken out, so that the log can be written to meanwhile.
        let cycles = self.cycles.take();
        let mut events = self.simulation.events();
        // All processes of a file have the same events.
        events.contexts = events.caches.any() && !report.contexts.is_empty() && self.tree.is_none();
        let table = |instructions, context: Option<u64>| {
            let mut counts = CountTable::new(events, instructions).with_cycles(cycles.as_ref());
            for found in found.findings.iter().filter(|f| context.is_none_or(|c| f.context == c)) {
                counts.add(found.module, found.addr, &found.counts);
            }
            counts
        };
        // The sum first. Contexts by number, names last, in the order in which they were made known.
        let mut contexts: Vec<&ContextCounts> = report.contexts.iter().collect();
        contexts.sort_by_key(|c| c.context);
        let mut tables = vec![table(report.counts, None)];
        tables.extend(contexts.iter().map(|c| table(&c.counts, Some(c.context))));
        let named: Vec<Named> = contexts.iter().map(|c| Named::new(c.context, c.name.as_deref())).collect();
        let desc = self.simulation.descriptions();
        let profiles = broken::caught(|| {
            fault::point("names");
            let made = Made::of(&self.made, pid);
            dump::profiles_with(report, &tables, &desc, &mut *self.symbolizer, &made)
        });
        let profiles = profiles.unwrap_or_else(|_| {
            // It was the names that failed, most likely.
            self.broke("for an unknown reason", true);
            dump::profiles(report, &tables, &desc, &mut symbolizer::Nothing)
        });
        drop(tables);
        let asked = self.watchers.is_some() || found.distances.is_some();
        let objects = asked.then(|| self.objects(report, &found));
        if self.options.verbosity > 1 {
            for warning in self.symbolizer.warnings() {
                self.log.say(pid, Voice::Detail, &warning);
            }
        }
        match profiles {
            Ok(mut profiles) => {
                if let Some(process) = self.processes.get(&pid) {
                    let cmd = dump::command(&process.args);
                    profiles.iter_mut().for_each(|profile| profile.header.cmd.clone_from(&cmd));
                }
                if let Some(what) = &self.broken {
                    profiles.iter_mut().for_each(|profile| profile.header.desc.push(broken::description(what)));
                }
                let path = match &self.tree {
                    Some(tree) => tree.path().to_owned(),
                    None => self.options.out_file.expand(pid, &mut self.sequence),
                };
                let file = if self.tree.is_some() {
                    self.end_in_tree(report, Some(&profiles[0]));
                    Some(path.clone())
                } else {
                    self.save(pid, &profiles[0], &path)
                };
                // Something that is no file, as /dev/null or a pipe, has no place beside it.
                if self.options.separate_contexts && self.tree.is_none() && path.metadata().is_ok_and(|m| m.is_file()) {
                    for ((profile, name), path) in
                        profiles[1..].iter_mut().zip(&named).zip(contexts::paths(&path, &named))
                    {
                        profile.header.desc.push(name.description());
                        let _ = self.save(pid, profile, &path);
                    }
                }
                if self.options.verbosity > 0 {
                    let summary = simulation::summary(self.simulation.events(), profiles[0].total());
                    self.user(pid, &summary);
                    if let Some(cycles) = &cycles {
                        self.user(pid, "");
                        self.user(pid, &cycles.summary(report.counts));
                    }
                    self.tell_contexts(pid, &named, &profiles, &found);
                    let (start, begins_on) =
                        ("CACHEGRIND_START_INSTRUMENTATION was not used", self.options.instr_at_start);
                    let profile = &profiles[0];
                    let total = profile.total().first().copied().unwrap_or(0);
                    self.advise(pid, || {
                        let empty = advice::of_nothing(total, begins_on, start);
                        [empty, advice::of_names(profile), advice::of_building(&report.exe)]
                    });
                }
                self.tell_what_next(pid, file.as_slice());
                if let Some(objects) = objects {
                    self.save_objects(pid, &objects);
                }
                if self.tree.is_none() {
                    self.take_name(pid, path);
                }
            }
            Err(error) => {
                let text = format!("error: no profile: {error}\n       ... so detailed results will be missing.");
                self.user(pid, &text);
            }
        }
        self.cycles = cycles;
        self.log.end(pid);
        self.forget(pid);
    }

    fn boundaries(&mut self, module: &Module) -> Vec<u64> {
        self.calls.as_mut().map(|calls| calls.boundaries(module)).unwrap_or_default()
    }

    fn watched(&mut self, module: &Module) -> Vec<(u64, Allocator)> {
        self.watchers.as_mut().map(|watchers| watchers.of(module)).unwrap_or_default()
    }

    fn code_made(&mut self, pid: i32, modules: &[Module]) -> u32 {
        self.made.moment(pid, modules)
    }

    fn process_left(&mut self, pid: i32) {
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

    fn asked(&mut self, report: &ProcessReport<'_>, tid: i32, ask: &Query) {
        let Some(calls) = &mut self.calls else { return };
        let written = calls.asked(report.pid, tid, ask);
        let _ = self.tell_written(report.pid, written);
        if let (Query::Dump(_), Some(visit)) = (ask, &mut self.visit) {
            visit.dumped();
        }
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
        self.calls.as_mut()?.control_request()
    }

    fn wants_tally(&mut self) -> bool {
        self.progress.as_mut().is_some_and(Progress::is_due)
    }

    fn tally(&mut self, tally: &Tally) -> bool {
        self.progress.as_mut().is_some_and(|progress| progress.show(tally))
    }

    fn about_to_write(&mut self, pid: i32, descriptor: i32) -> bool {
        self.progress.as_mut().is_some_and(|progress| progress.before_output(pid, descriptor))
    }

    fn client_print(&mut self, pid: i32, text: &[u8]) {
        self.log.text(pid, Voice::Program, text);
    }

    fn client_stack(&mut self, pid: i32, modules: &[Module], frames: &[GuestAddr]) {
        if !self.log.is_silent(pid) {
            let lines = backtrace::lines(&mut *self.symbolizer, modules, frames, self.options.show_below_main);
            self.user(pid, &lines);
        }
    }

    fn forks_count_anew(&self) -> bool {
        self.options.tree.is_some()
    }

    fn redundant_instrumentation(&mut self, pid: i32, request: Instrumentation) {
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
            self.user(self.first.unwrap_or(0), &broken::notice(&what, Some(goes_on)));
        }
        if let Some(calls) = &self.calls {
            calls.incomplete(&what);
        }
        self.broken.get_or_insert(what);
    }

    fn notice(&mut self, pid: i32, notice: Notice) {
        match notice {
            Notice::Warning(text) if self.options.verbosity > 0 => self.user(pid, &format!("Warning: {text}")),
            Notice::Detail(text) if self.options.verbosity > 1 => self.log.say(pid, Voice::Detail, &text),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
