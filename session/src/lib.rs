//! What the engine asks of, and reports to, the program that drives it.
//!
//! The engine knows processes, modules and instruction counts; the driver (the `grind` runner) knows options, logs, debug
//! info and profile files. They meet only here. Nothing in this module refers to a profile format.

pub mod broken;
pub mod guard;
pub mod trace_channel;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use grind_guest::counts::{Counts, Stretch};
use grind_isa::cpuid::CpuModel;
use grind_trace::objects::Allocator;
use grind_types::addr::GuestAddr;
use grind_types::frames::{FrameFunction, FrameHook, ReadMemory};
use grind_types::{Module, Pid, Query, Tid};

/// The program to run: resolved by the driver, which has also checked that it can be executed.
#[derive(Clone, Debug)]
pub struct Program {
    /// What is handed to `execve` (it may be a script with `#!`).
    pub path: PathBuf,
    /// The whole argument vector, `argv[0]` included.
    pub args: Vec<OsString>,
    /// The environment, as `NAME=value` strings.
    pub env: Vec<OsString>,
}

/// Whether a program's instructions are counted from the first one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtStart {
    /// They are.
    Counting,
    /// Not before a request says so.
    NotCounting,
    /// If those of the process that executed it were; those of the first program are not.
    Inherited,
}

/// How to run it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The processor that CPUID and XGETBV describe to the guest.
    pub cpu: CpuModel,
    /// Whether instructions are counted from the first one on (`--instr-at-start`).
    pub count_at_start: AtStart,
    /// Bytes of translated code from which on all translations are thrown away and made anew.
    pub code_limit: u64,
    /// Steps of counters from which on hot code is translated anew, by what has been learnt of where it goes, if that pays;
    /// 0 for never. Only where nothing but instructions is counted.
    pub hot_after: u64,
    /// Bytes of executable files from which on calls and returns of translated code are calls and returns of the processor's
    /// own, where nobody follows them: it cannot remember where those of large programs lead.
    pub pairs_from: u64,
    /// What is recorded for a [`grind_trace::Sink`], if one is given.
    pub trace: grind_trace::TraceSettings,
    /// Whether the guest's requests to change the context of the statistics are served.
    pub contexts: bool,
    /// When code is translated without the program having to stop.
    pub beside: Beside,
    /// When a process that is not recorded for the time being runs its own code.
    pub own_code: OwnCode,
    /// Whether programs that processes execute may be followed: what one has asked for is kept for the next.
    pub programs_follow: bool,
    /// How often the driver is asked what it wants, if not only when it gets a signal.
    pub look_every: Option<Duration>,
}

/// When a process that is not recorded for the time being, and that loses nothing by it, runs its own code and no translations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnCode {
    /// Where it is expected to go on for longer than changing takes.
    #[default]
    WhenWorthwhile,
    /// Whenever it can.
    Always,
    /// Never.
    Never,
}

/// When a thread waits for its code to be translated, or for what is to become of a call, instead of being stopped: that needs
/// another processor for as long as it asks for new code, and saves most of what a stop costs. Never where anything is
/// recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// While it often asks, and nobody else wants that processor.
    #[default]
    WhenWorthwhile,
    /// Wherever there is another processor.
    Always,
    /// Nowhere.
    Never,
}

/// How the first process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It called `exit` with this status (0-255).
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

/// What happens to the first process, for whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstProcess {
    /// A signal has stopped it (job control).
    Stopped(i32),
    /// It goes on after having been stopped.
    Continued,
    /// It has ended. Unless it was `alone`, processes that it started are still followed.
    Ended {
        /// How.
        exit: Exit,
        /// No other process is left.
        alone: bool,
    },
}

/// A request of the guest that switches counting on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumentation {
    /// Count from the next instruction on.
    Start,
    /// Do not count the next instruction and those that follow.
    Stop,
}

/// What somebody outside wants of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRequest {
    /// The process.
    pub pid: Pid,
    /// What shall happen.
    pub what: Wanted,
}

/// See [`ControlRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// [`Session::asked`] is to be called.
    Query(Query),
    /// [`Session::peeked`] is to be called. Nothing stops for it.
    Peek,
    /// Counting is to be switched on or off; asking for the state that it is in changes nothing.
    Instrumentation(Instrumentation),
    /// Costs of all threads of the process are to be collected, or not; [`Session::asked`] is called when that is so.
    Collection(bool),
    /// The process is to be left to itself: what it has executed is reported, and it goes on untraced.
    Detach,
}

/// What a process has executed in one context of the statistics.
#[derive(Debug)]
pub struct ContextCounts<'a> {
    /// Its number.
    pub context: u64,
    /// Its name, if it was given one.
    pub name: Option<Vec<u8>>,
    /// As [`ProcessReport::counts`].
    pub counts: Counts<'a>,
}

/// What a process has executed.
///
/// The same address may occur several times (it may have been translated more than once): add the counts up.
#[derive(Debug)]
pub struct ProcessReport<'a> {
    /// The process.
    pub pid: Pid,
    /// Its parent at the time it was created, or joined, unless that was grind itself.
    pub parent: Option<Pid>,
    /// The program it runs, as the kernel resolved it (`/proc/PID/exe`).
    pub exe: PathBuf,
    /// Its arguments, `argv[0]` included, as given to the last `execve`.
    pub args: Vec<OsString>,
    /// How it ends; `None` if that is not known yet (it was killed from outside), or if it goes on.
    pub exit: Option<Exit>,
    /// Everything that code was executed from.
    pub modules: &'a [Module],
    /// Executed instructions.
    pub counts: &'a Counts<'a>,
    /// The same, by context: the sum over them is `counts`. Empty if the process has never left context 0.
    pub contexts: &'a [ContextCounts<'a>],
    /// Whether it is being counted now.
    pub counting: bool,
    /// The threads that there are, where somebody asks.
    pub threads: &'a [ThreadTally],
}

/// What a thread has executed while it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTally {
    /// The kernel's number.
    pub tid: Tid,
    /// Instructions, but for corrections of blocks that it left in the middle; as [`ProcessTally::instructions`] if the process was
    /// not stopped.
    pub instructions: u64,
}

/// How far the processes are, while they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that are followed, in the order of their numbers.
    pub processes: Vec<ProcessTally>,
}

/// See [`Tally`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTally {
    /// The process.
    pub pid: Pid,
    /// What it has executed while it was counted, what it had of its parent included: read from counters that go on, so that some
    /// executions of the moment may be missing or there too soon.
    pub instructions: u64,
    /// Its threads.
    pub threads: usize,
}

/// Something the user should be told. The text has no prefix and no line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Shown unless `-q` was given.
    Warning(String),
    /// Shown with `-v`.
    Detail(String),
}

/// The driver's side. All calls come from the thread that called [`crate::run`], while the process they speak of is stopped.
pub trait Session {
    /// Whether to follow `pid` into the program that its `execve` is about to start.
    fn follow_exec(&mut self, pid: Pid, path: &Path, args: &[OsString]) -> bool;
    /// A new image has been started in `pid`, which is followed: the first one, or after [`Session::follow_exec`].
    fn image_started(&mut self, pid: Pid, parent: Option<Pid>, exe: &Path, args: &[OsString]);
    /// How the first process fares. Of use to drivers that somebody waits for.
    fn first_process(&mut self, _how: FirstProcess) {}
    /// `child` is a copy of `parent` (fork, vfork), its counts included unless they are to begin anew.
    fn forked(&mut self, parent: Pid, child: Pid);
    /// Whether a copy has none of the counts that its parent had when it was created, so that no count is in two reports.
    fn forks_count_anew(&self) -> bool {
        false
    }
    /// Code of a module that was not there before can be executed from now on.
    fn mapped(&mut self, _module: &Module) {}
    /// Code that the process has made while it ran ([`Module::is_made`]) is about to be translated, and has not been executed as it is
    /// now. `modules` is everything that there has been in the process. Returns a number by which what is counted of that code is
    /// told apart from what was there before, or will be: that of a moment. Numbers grow.
    fn code_made(&mut self, _pid: Pid, _modules: &[Module]) -> u32 {
        0
    }
    /// The process is about to disappear: last chance to write its profile. Its memory still exists, no thread runs.
    /// Called once a process, also when it was killed; not when another image replaces this one.
    fn process_ends(&mut self, report: &ProcessReport<'_>);
    /// A process goes on with a program that is not followed: it will not be heard of again.
    fn process_left(&mut self, _pid: Pid) {}
    /// Something is asked about the process, by its thread `tid` or from outside (`None`). `report` is what it has executed since
    /// it began; all its threads stand still, and what they recorded has reached the sink.
    fn asked(&mut self, _report: &ProcessReport<'_>, _tid: Option<Tid>, _ask: &Query) {}
    /// What the process has executed so far, as [`Wanted::Peek`] wants it: its threads go on, so that some executions of the moment
    /// may be missing or there too soon, and what they recorded may not have reached the sink. Where counters are collected
    /// before the end, only what was executed since that happened.
    fn peeked(&mut self, _report: &ProcessReport<'_>) {}
    /// What somebody outside wants next. It is asked for when the thread that called [`crate::run`] gets a signal whose
    /// handler does not restart system calls.
    fn control_request(&mut self) -> Option<ControlRequest> {
        None
    }
    /// Whether [`Session::tally`] is to be called now. Asked for when [`Session::control_request`] is.
    fn wants_tally(&mut self) -> bool {
        false
    }
    /// How far the processes are. Returns whether [`Session::about_to_write`] is to be called from now on.
    fn tally(&mut self, _tally: &Tally) -> bool {
        false
    }
    /// The process is about to write to this descriptor. Returns whether to be called again
    /// before the next [`Session::tally`]. Each call is a stop of the program.
    fn about_to_write(&mut self, _pid: Pid, _descriptor: i32) -> bool {
        false
    }
    /// Where functions and sections of a module begin and end, as addresses of the guest, in ascending order. Asked for when
    /// the module is mapped, if calls are recorded.
    fn boundaries(&mut self, _module: &Module) -> Vec<u64> {
        Vec::new()
    }
    /// Where allocators of memory begin in a module, as addresses of the guest, in ascending order. Asked for when the module is
    /// mapped, if blocks of memory are recorded.
    fn watched(&mut self, _module: &Module) -> Vec<(u64, Allocator)> {
        Vec::new()
    }
    /// Where an interpreter's code in a module of a process says which frame runs, as addresses of the guest, in ascending order. Asked
    /// for when the module is mapped, if frames are recorded.
    fn frame_hooks(&mut self, _pid: Pid, _module: &Module) -> Vec<(u64, FrameHook)> {
        Vec::new()
    }
    /// The function that a code object is, which a hook of `module` has met: it is at `code` in the program's `memory`, which stands still
    /// in so far. Nothing if it is none.
    fn frame_function(&mut self, _module: &Module, _memory: ReadMemory<'_>, _code: u64) -> Option<FrameFunction> {
        None
    }
    /// Text that the guest prints through a client request (already formatted).
    fn client_print(&mut self, pid: Pid, text: &[u8]);
    /// The text that has just been printed is to be followed by the stack of who prints it: addresses within the instructions where
    /// its functions are, from the innermost one on. `modules` is what is mapped now.
    fn client_stack(&mut self, _pid: Pid, _modules: &[Module], _frames: &[GuestAddr]) {}
    /// The guest asked to switch counting although it is in that state already.
    fn redundant_instrumentation(&mut self, pid: Pid, request: Instrumentation);
    /// The tool's name, as GET_TOOLNAME tells it (`cachegrind`).
    fn tool_name(&self) -> &str;
    /// Something has panicked, with this message: this session or the sink, so that the program `goes_on`, though it may not be
    /// recorded any more; or the engine, so that it is killed. What is written from here on is incomplete.
    fn broke(&mut self, _what: &str, _goes_on: bool) {}
    /// Something worth telling.
    fn notice(&mut self, pid: Pid, notice: Notice);
}
