//! A whole run, from the command line to the exit status.
//!
//! Everything that can be known to go wrong is found before the program starts. Messages appear once, on standard error,
//! each line with the name that grind was called by; [`exit_code`] is the one place that turns an error into a code.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use grind_analysis::callgrind::dump_service::DumpService;
use grind_analysis::callgrind::dumps::About;
use grind_analysis::callgrind::settings::CacheUse;
use grind_analysis::callgrind::sink::{Recorder, Wanted};
use grind_analysis::cycles::Cycles;
use grind_analysis::simulator::Simulator;
use grind_names::opened::Opened;
use grind_names::source::Sources;
use grind_objects::Reader;
use grind_session::broken;
use grind_session::{AtStart, Exit, Program, Session, Settings};
use grind_trace::follow::bus_total;
use grind_trace::{CallTrace, Sink};
use grind_types::{EngineError, Pid, fault};

use crate::attach::Visit;
use crate::invocation::Invocation;
use crate::log::{self, Target};
use crate::options::{self, LogTarget, Options, Request, Tool, UsageError, sources};
use crate::outfile::{self, Unwritable};
use crate::resolve::{self, Refusal};
use crate::session::Runner;
use crate::simulation::Simulation;
use crate::supervisor::{self, Ending, Side};
use crate::timeline::{Every, Timeline};
use crate::view::LiveView;
use crate::{doctor, elsewhere, engine_log, manual, os};

/// Does what `args` (the whole argument vector) ask for.
#[must_use]
pub fn main(args: &[OsString]) -> Ending {
    let invocation = Invocation::from_argv0(args.first().map(OsString::as_os_str));
    broken::keep_quiet();
    if let Some(text) = engine_log::begin() {
        complain(invocation, &text);
    }
    match broken::caught(|| act(invocation, args.get(1..).unwrap_or_default())) {
        Ok(Ok(ending)) => ending,
        Ok(Err(error)) => {
            // The driver has told of that already, in the log.
            if !matches!(error.downcast_ref::<EngineError>(), Some(EngineError::Broken { .. })) {
                complain(invocation, &message(&error));
            }
            Ending::Code(exit_code(&error))
        }
        Err(_) => {
            complain(invocation, &broken::notice(&broken::first("for an unknown reason"), None));
            Ending::Code(broken::STATUS)
        }
    }
}

/// The exit code of a run that failed: 127 for a program that does not exist, 126 for one that cannot be run, 125 for a fault of
/// grind, else 1.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return refusal.exit_code();
    }
    match error.downcast_ref::<EngineError>() {
        Some(EngineError::Exec { source, .. }) if source.kind() == io::ErrorKind::NotFound => 127,
        Some(EngineError::Exec { .. }) => 126,
        Some(EngineError::Broken { .. }) => broken::STATUS,
        _ => 1,
    }
}

/// The text of an error: the whole chain, except where a link already contains its cause.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for link in error.chain() {
        let link = link.to_string();
        if text.is_empty() {
            text = link;
        } else if !text.contains(&link) {
            let _ = write!(text, ": {link}");
        }
    }
    text
}

fn complain(invocation: Invocation, text: &str) {
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{}: {line}", invocation.name());
    }
    // Standard error may be closed; there is nobody left to tell.
    let _ = io::stderr().write_all(out.as_bytes());
}

/// Prints for the user; a reader that has gone away is no error.
fn print(text: &str) -> Result<Ending, anyhow::Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(e).context("cannot write to standard output"))
        }
        _ => Ok(Ending::Code(0)),
    }
}

/// What is wrong with the command line, if no other `valgrind` can follow it.
fn elsewhere_or(invocation: Invocation, args: &[OsString], error: UsageError) -> anyhow::Error {
    if invocation == Invocation::Valgrind
        && error.wants_another_tool(args).is_some()
        && let Err((path, cause)) = elsewhere::hand_over(args)
    {
        let text = format!("the next valgrind on PATH cannot be run: {}: {}", path.display(), resolve::reason(&cause));
        return anyhow::Error::new(error).context(text);
    }
    if invocation == Invocation::Grind && error == UsageError::NoProgram {
        let example =
            "For example: grind ./program input, or grind --tool=callgrind ./program input for the call graph.";
        return anyhow::anyhow!("{error}\n{example}");
    }
    error.into()
}

/// Why a program is not run; with its place, if it lies in this folder, which shells do not search.
fn or_here(invocation: Invocation, refusal: Refusal) -> anyhow::Error {
    let here = invocation == Invocation::Grind
        && matches!(refusal.cause, resolve::Cause::NotInPath)
        && !refusal.program.as_os_str().is_empty()
        && refusal.program.is_file();
    let text = format!("{refusal} (there is one in this folder: ./{})", refusal.program.display());
    let error = anyhow::Error::new(refusal);
    if here { error.context(text) } else { error }
}

fn act(invocation: Invocation, args: &[OsString]) -> Result<Ending, anyhow::Error> {
    // A program of this name has a path in front of it, or `--`.
    if invocation == Invocation::Grind
        && let [first, rest @ ..] = args
        && first == "doctor"
        && rest.len() < 2
    {
        let (sound, text) = doctor::examine(rest.first().map(Path::new));
        print(&text)?;
        return Ok(Ending::Code(u8::from(!sound)));
    }
    let names = invocation.option_names();
    let read_sources = || {
        let home = sources::environment("HOME".as_ref());
        let variable = sources::environment(names.variable.as_ref());
        sources::read(names, home.as_deref().map(Path::new), Path::new("."), variable)
    };
    let request = match options::parse(args, sources::environment, read_sources) {
        Err(error) => return Err(elsewhere_or(invocation, args, error)),
        Ok(request) => request,
    };
    match request {
        Request::Help { debug } => print(&manual::help(invocation, debug)),
        Request::Machines => print(&options::levels::machines()),
        Request::HelpDynamic => print("No option can be changed while the program runs.\n"),
        Request::Version { verbose } => print(&format!("{}\n", invocation.version(verbose))),
        Request::Run(options, program, warnings) => {
            for warning in warnings {
                complain(invocation, &warning);
            }
            run(invocation, &mut options.clone(), &program)
        }
    }
}

/// What is profiled.
enum Guest {
    Program(Program),
    Process(Pid),
}

impl Guest {
    fn follow(
        &self,
        settings: &Settings,
        session: &mut dyn Session,
        sink: Option<Box<dyn Sink>>,
    ) -> Result<Exit, EngineError> {
        match (self, sink) {
            (Self::Process(pid), sink) => grind_engine::attach(*pid, settings, session, sink),
            (Self::Program(program), Some(sink)) => grind_engine::run_traced(program, settings, session, sink),
            (Self::Program(program), None) => grind_engine::run(program, settings, session),
        }
    }
}

fn run(invocation: Invocation, options: &mut Options, typed: &[OsString]) -> Result<Ending, anyhow::Error> {
    fault::point("options");
    let callgrind = options.tool == options::Tool::Callgrind;
    let simulation = Simulation::new(options)?;
    // Before anything has standard error by another name.
    let view = options.live.then(|| LiveView::take_terminal(typed)).transpose()?;
    let log = open_log(invocation, &options.log)?;
    let guest = match options.attach.pid {
        Some(pid) => Guest::Process(pid),
        None => {
            let resolved = resolve::resolve(typed, sources::environment("PATH".as_ref()).as_deref());
            let resolved = resolved.map_err(|refusal| or_here(invocation, refusal))?;
            Guest::Program(Program { path: resolved.path, args: resolved.args, env: environment() })
        }
    };
    if let Some(tree) = &options.tree {
        outfile::prove(tree, "profile", "--tree")?;
    } else if callgrind {
        outfile::prove(&options.callgrind_out_file(), "profile", "--callgrind-out-file")?;
    } else {
        outfile::prove(&options.out_file, "profile", "--cachegrind-out-file")?;
    }

    if options.objects || options.distances.which.is_some() || options.sharing.is_some() {
        outfile::prove(&options.mem_out_file(), "file of data objects", "--mem-out-file")?;
    }

    if let Some(hints) = &options.prefetch_hints {
        outfile::prove(hints, "file of hints", "--prefetch-hints")?;
    }

    let mut settings = Settings {
        cpu: options.cpu,
        count_at_start: if options.instr_at_start { AtStart::Counting } else { AtStart::NotCounting },
        code_limit: options.code_limit,
        pairs_from: options.pairs_from,
        hot_after: options.hot_after,
        trace: simulation.trace(),
        // Records of every access, and TLBs, know of no contexts.
        contexts: options.tool == Tool::Cachegrind
            && !simulation.every
            && simulation.distances.is_none()
            && simulation.tlbs.is_none(),
        beside: options.beside,
        own_code: options.native_windows,
        programs_follow: options.trace_children,
        look_every: options.dump_every.map(Every::look),
    };
    settings.trace.forms = options.cycle_estimation;
    if callgrind {
        options.callgrind.estimate_cycles = options.cycle_estimation;
        settings.count_at_start = options.callgrind.instr_at_start;
        settings.trace.system_calls = options.callgrind.collect_systime.is_some();
        let (jumps, hooks) = (options.callgrind.collect_jumps, options.callgrind.hooks());
        let by_caller = options.callgrind.by_caller();
        // What allocators do among calls that are told takes long; and who wants to know where a run is asks its counters.
        let counters = options.live || matches!(options.dump_every, Some(Every::Instructions(_)));
        if settings.trace.objects || counters && options.callgrind.told_for.is_none() {
            options.callgrind.told_for = Some(Duration::ZERO);
        }
        let told_first = options.callgrind.told_first();
        let bus = options.callgrind.collect_bus;
        let each = options.callgrind.whole_chains;
        let frames = options.callgrind.frames.is_some();
        let calls = CallTrace { jumps, hooks, by_caller, told_first, each, bus, frames, ..CallTrace::default() };
        settings.trace.calls = Some(calls);
        // Where every access is told, blocks and calls are, too, in program order; and where there are more totals than can be kept.
        let kept = bus_total(settings.trace.accesses.is_some(), settings.trace.branches).is_some();
        options.callgrind.tell_calls |= simulation.trace().every.is_some() || calls.bus && !kept;
        options.callgrind.tree = options.tree.is_some();
        options.callgrind.uses_kept = simulation.trace().keeps_uses();
        settings.trace.calls = Some(CallTrace { followed: options.callgrind.followed(), ..calls });
        if matches!(options.dump_every, Some(Every::Instructions(_)))
            && (!options.callgrind.followed() || !told_first.is_never())
        {
            anyhow::bail!(
                "--dump-every=N-instructions needs counters of instructions, which there are none of where calls are told one by \
                 one, as other options want it here: give a time instead"
            );
        }
    }
    if options.live && callgrind && !options.callgrind.followed() {
        anyhow::bail!(
            "--live needs counters of instructions, which there are none of where calls are told one by one, as other options want \
             it here"
        );
    }
    let opened = Opened::new(options.names());
    let mut runner = Runner::new(invocation, options, log, Box::new(Sources::new(opened.clone())));
    let cycles = options.cycle_estimation.then(|| Cycles::new(options.cycle_model)).transpose()?;
    let pricing = cycles.as_ref().map(Cycles::pricing);
    let estimate = cycles.as_ref().map(Cycles::description);
    if let Some(cycles) = cycles {
        runner.estimate(cycles);
    }
    runner.runs(typed);
    os::pass_on_signals();
    // Before the simulator, which has a thread.
    match (supervisor::split(options.attach.pid, view)?, options.attach.pid) {
        (Side::Supervisor(ending), _) => return Ok(ending),
        (Side::Tracer(reporter), None) => runner.report_to(reporter),
        (Side::Tracer(_), Some(_)) => {
            os::leave_on_signals();
            runner.visits(Visit::new(options.attach.clone()));
        }
    }
    fault::point("tracer");
    // From here on, there may be threads.
    // Where calls are told, counters do not know of instructions. Lines of the engine would come in between.
    if (!callgrind || options.callgrind.followed()) && !engine_log::is_wanted() && !options.live {
        runner.show_progress();
    }
    let simulator = (!callgrind && simulation.trace().any()).then(|| Simulator::new(simulation.caches));
    let (mut simulator, findings) = simulator.unzip();
    if let Some(simulator) = &mut simulator {
        simulator.with_levels(simulation.levels);
        simulator.with_tlbs(simulation.tlbs, simulation.every);
        simulator.find_distances(simulation.distances);
        simulator.find_sharing(simulation.sharing, simulation.every);
    }
    if let Some(simulator) = simulator.as_mut().filter(|_| options.tree.is_some()) {
        simulator.forks_count_anew();
    }
    if let Some(simulator) = simulator.as_mut().filter(|_| options.objects) {
        simulator.find_objects(Reader::new(opened.clone()), options.streams);
    }
    if let Some(simulator) = simulator.as_mut().filter(|_| options.collect_alloc) {
        simulator.count_allocations(Reader::new(opened.clone()));
    }
    if options.objects || options.collect_alloc {
        runner.watch(opened.clone());
    }
    let (caches, levels) = (simulation.caches, simulation.levels);
    let (counted, descriptions) = (simulation.events().caches, simulation.descriptions());
    let findings = findings.unwrap_or_default();
    let objects = (callgrind && (options.objects || options.collect_alloc)).then(|| Wanted {
        images: Reader::new(opened.clone()),
        misses: options.objects,
        streams: caches.filter(|_| options.streams).map(|caches| caches.d1.line().into()),
        second: levels.is_some_and(|levels| levels.second.is_some()),
        uses: caches
            .filter(|_| options.callgrind.cache_use != CacheUse::No && options.objects)
            .map(|caches| caches.ll.line().into()),
    });
    runner.simulate(simulation, findings);
    runner.listens(opened.clone());
    if let Some(every) = options.dump_every {
        runner.writes_parts(Timeline::new(every));
    }
    let exit = match simulator {
        _ if callgrind => {
            let events = options.callgrind.events(counted, options.branch_sim);
            let about = About {
                creator: invocation.creator(),
                events,
                caches: descriptions,
                estimate,
                settings: options.callgrind.clone(),
                spare: std::env::temp_dir(),
            };
            let dump_service = DumpService::new(about);
            let control_requests = options.callgrind.clone();
            let caches = (caches.as_ref(), levels.as_ref());
            let recorder = Recorder::new(control_requests, opened.clone(), events, caches, dump_service.clone())
                .with_made(runner.made())
                .with_pricing(pricing)
                .with_objects(objects);
            runner.record_calls(dump_service, events.names(), opened.clone());
            runner.find_frames(opened);
            guest.follow(&settings, &mut runner, Some(Box::new(recorder)))
        }
        Some(s) => guest.follow(&settings, &mut runner, Some(Box::new(s))),
        None => guest.follow(&settings, &mut runner, None),
    };
    match exit? {
        // What becomes of a process that was joined is for those who started it.
        _ if options.attach.pid.is_some() => Ok(Ending::Code(0)),
        // A status has eight bits.
        Exit::Code(code) => Ok(Ending::Code((code & 0xff) as u8)),
        Exit::Signal(signal) => Ok(Ending::Signal(signal)),
    }
}

/// The environment as `NAME=value` strings, every byte as it was given, also of entries that are not of this form.
fn environment() -> Vec<OsString> {
    if let Ok(block) = std::fs::read("/proc/self/environ") {
        return block
            .split_inclusive(|&b| b == 0)
            .map(|e| OsString::from_vec(e.strip_suffix(b"\0").unwrap_or(e).to_vec()))
            .collect();
    }
    std::env::vars_os()
        .map(|(name, value)| {
            let mut entry = name.into_vec();
            entry.push(b'=');
            entry.extend(value.into_vec());
            OsString::from_vec(entry)
        })
        .collect()
}

fn open_log(invocation: Invocation, target: &LogTarget) -> Result<Target, anyhow::Error> {
    match target {
        LogTarget::Fd(fd) => {
            let file = match os::duplicate(*fd) {
                Ok(file) => file,
                Err(error) => {
                    let reason = resolve::reason(&error);
                    complain(invocation, &format!("--log-fd={fd}: {reason}; logging to standard error instead"));
                    // With standard error closed too there is nowhere to log to.
                    os::duplicate(2).or_else(|_| std::fs::File::options().write(true).open("/dev/null"))?
                }
            };
            Ok(Target::Shared(Rc::new(file)))
        }
        LogTarget::File(template) => {
            outfile::prove(template, "log file", "--log-file")?;
            let Some(path) = template.fixed_name() else { return Ok(Target::Each(template.clone())) };
            match log::open(&path) {
                Ok(file) => Ok(Target::Shared(Rc::new(file))),
                Err(cause) => {
                    Err(Unwritable { what: "log file", option: "--log-file", path, folder: None, cause }.into())
                }
            }
        }
    }
}
