//! The command line: from the arguments, option files and the environment to [`Options`].
//!
//! The manner is Valgrind's: `--option=value`, yes|no booleans, options end at the first word that is none or at `--`.
//! Every word is either understood or refused; nothing is skipped. Nothing here runs a program or writes a file.

pub mod callgrind;
pub mod distances;
mod foreign;
pub mod levels;
pub mod sources;
pub mod table;
pub mod tlbs;
pub mod value;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::allocators::AllocFn;
use cg_cli::expand::Template;
use cg_cli::glob::Pattern;
use cg_sim::host::Given;
use grind_analysis::callgrind::settings::Settings;
use grind_isa::cpuid::CpuModel;
use grind_objects::sharing::Detail;
use grind_session::{Beside, OwnCode};
use grind_symbols::Inlined;

use crate::attach;
use crate::timeline::Every;
use sources::Source;
use table::{Opt, Role};
use value::Value;

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// An open file descriptor.
    Fd(i32),
    /// A file, or one for each process.
    File(Template),
}

/// A tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tool {
    /// Counts by source line.
    #[default]
    Cachegrind,
    /// The call graph too.
    Callgrind,
}

impl Tool {
    /// The program that reads its profiles.
    #[must_use]
    pub fn reader(self) -> &'static str {
        match self {
            Tool::Cachegrind => "cg_annotate",
            Tool::Callgrind => "callgrind_annotate",
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Cachegrind => "cachegrind",
            Tool::Callgrind => "callgrind",
        }
    }

    fn find(self, name: &str) -> Option<&'static Opt> {
        match self {
            Tool::Cachegrind => table::find(name),
            Tool::Callgrind => callgrind::find(name),
        }
    }

    /// The tool that `--tool=` names last, if it names one that exists.
    fn named(words: &[OsString]) -> Tool {
        let last = words.iter().rev().find_map(|w| w.as_bytes().strip_prefix(b"--tool="));
        if last == Some(b"callgrind") { Tool::Callgrind } else { Tool::Cachegrind }
    }
}

/// The variables that option values may refer to.
pub type Environment = fn(&OsStr) -> Option<OsString>;

/// Mebibytes of translated code that are kept unless the user says otherwise.
const DEFAULT_CODE_LIMIT: u64 = 512;

/// MiB of executable files from which on calls and returns are pairs: compilers have more, interpreters less.
const DEFAULT_PAIRS_FROM: u64 = 8;

/// Steps of counters, as in the table.
const DEFAULT_HOT_AFTER: u64 = 80_000_000;

/// All settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// 1 by default; 0 and less: quiet; 2 and more: verbose.
    pub verbosity: i32,
    /// Whether to follow `execve`.
    pub trace_children: bool,
    /// Programs not to follow, by path.
    pub skip: Vec<Pattern>,
    /// Programs not to follow, by argument.
    pub skip_by_arg: Vec<Pattern>,
    /// Whether forked children log nothing.
    pub child_silent_after_fork: bool,
    /// The processor that the program sees.
    pub cpu: CpuModel,
    /// Bytes of translated code that are kept.
    pub code_limit: u64,
    /// Bytes of executable files from which on calls and returns are the processor's own.
    pub pairs_from: u64,
    /// Steps of counters from which on hot code is translated anew; 0 for never.
    pub hot_after: u64,
    /// `--beside`: when a program waits for translations of new code instead of stopping for them.
    pub beside: Beside,
    /// `--native-windows`: when a program runs its own code while nothing of it is recorded.
    pub native_windows: OwnCode,
    /// Whether log lines carry the time.
    pub time_stamp: bool,
    /// Where the log goes.
    pub log: LogTarget,
    /// Whether function names are demangled.
    pub demangle: bool,
    /// Whether the functions below `main` keep their names.
    pub show_below_main: bool,
    /// Whether profiles of calls say which inlined function costs belong to.
    pub read_inline_info: bool,
    /// Whether an inlined function is a function of its own.
    pub separate_inlined: bool,
    /// Folders with separate debug information, besides the usual ones.
    pub debug_folders: Vec<PathBuf>,
    /// The profile.
    pub out_file: Template,
    /// The one profile of all processes, instead of one for each.
    pub tree: Option<Template>,
    /// Whether to count from the start.
    pub instr_at_start: bool,
    /// Whether caches are simulated.
    pub cache_sim: bool,
    /// Whether misses are told by data object.
    pub objects: bool,
    /// Functions that are allocators, besides those that are known by their names.
    pub alloc_fns: Vec<AllocFn>,
    /// How many callers tell blocks of the heap apart (`--alloc-depth`).
    pub alloc_depth: u8,
    /// Calls of allocators are events (`--collect-alloc`).
    pub collect_alloc: bool,
    /// Their misses are told as streams, too.
    pub streams: bool,
    /// The file of hints for compilers, by those.
    pub prefetch_hints: Option<Template>,
    /// Stack distances.
    pub distances: distances::Wanted,
    /// Lines that threads share are found.
    pub sharing: Option<Detail>,
    /// The file of data objects.
    pub mem_out_file: Option<Template>,
    /// Whether branch prediction is simulated.
    pub branch_sim: bool,
    /// Whether cycles are estimated (`--cycle-estimation`).
    pub cycle_estimation: bool,
    /// The processor whose model does that (`--cycle-model`).
    pub cycle_model: cg_cycles::Model,
    /// The caches to simulate, as far as they were chosen.
    pub caches: Given,
    /// What is beyond the first of them, and a machine.
    pub levels: levels::Wanted,
    /// TLBs.
    pub tlbs: tlbs::Wanted,
    /// Whether each context of the statistics gets a profile of its own.
    pub separate_contexts: bool,
    /// How often parts of a profile are written (`--dump-every`).
    pub dump_every: Option<Every>,
    /// Whether the run is shown on the terminal while it goes on (`--live`).
    pub live: bool,
    /// The process that is joined, if none is started.
    pub attach: attach::Wanted,
    /// The tool.
    pub tool: Tool,
    /// The settings of the callgrind tool that cachegrind does not have.
    pub callgrind: Settings,
    /// Every option word, in the order of reading (for `-v`).
    pub words: Vec<OsString>,
    environment: Environment,
}

impl Options {
    /// The profile of the callgrind tool.
    #[must_use]
    pub fn callgrind_out_file(&self) -> Template {
        self.callgrind.out_file.clone().unwrap_or_else(|| {
            Template::parse(OsStr::new("callgrind.out.%p"), |_| None).expect("the default name is a template")
        })
    }

    /// The file of data objects.
    #[must_use]
    pub fn mem_out_file(&self) -> Template {
        self.mem_out_file.clone().unwrap_or_else(|| {
            Template::parse(OsStr::new("mem.out.%p"), |_| None).expect("the default name is a template")
        })
    }

    /// How functions are named, and where debug information is looked for.
    #[must_use]
    pub fn names(&self) -> grind_symbols::Options {
        let mut names = grind_symbols::Options {
            demangle: self.demangle,
            show_below_main: self.show_below_main,
            inlined: match self.tool {
                _ if self.separate_inlined => Inlined::Separate,
                Tool::Callgrind if self.read_inline_info => Inlined::Named,
                _ => Inlined::Hidden,
            },
            ..grind_symbols::Options::default()
        };
        names.debug_roots.splice(0..0, self.debug_folders.iter().cloned());
        names
    }

    fn new(environment: Environment) -> Self {
        // The default is a well-formed template; a test parses it.
        let out_file = Template::parse(OsStr::new("cachegrind.out.%p"), |_| None);
        Self {
            verbosity: 1,
            trace_children: false,
            skip: Vec::new(),
            skip_by_arg: Vec::new(),
            child_silent_after_fork: false,
            cpu: CpuModel::default(),
            code_limit: DEFAULT_CODE_LIMIT << 20,
            pairs_from: DEFAULT_PAIRS_FROM << 20,
            hot_after: DEFAULT_HOT_AFTER,
            beside: Beside::default(),
            native_windows: OwnCode::default(),
            time_stamp: false,
            log: LogTarget::Fd(2),
            demangle: true,
            show_below_main: false,
            read_inline_info: false,
            separate_inlined: false,
            debug_folders: Vec::new(),
            out_file: out_file.expect("the default name is a template"),
            tree: None,
            instr_at_start: true,
            cache_sim: false,
            objects: false,
            alloc_fns: Vec::new(),
            alloc_depth: 1,
            collect_alloc: false,
            streams: false,
            prefetch_hints: None,
            distances: distances::Wanted::default(),
            sharing: None,
            mem_out_file: None,
            branch_sim: false,
            cycle_estimation: false,
            cycle_model: cg_cycles::MODELS[0],
            caches: Given::default(),
            levels: levels::Wanted::default(),
            tlbs: tlbs::Wanted::default(),
            separate_contexts: true,
            dump_every: None,
            live: false,
            attach: attach::Wanted::default(),
            tool: Tool::default(),
            callgrind: Settings::default(),
            words: Vec::new(),
            environment,
        }
    }

    /// The value of an environment variable.
    pub(crate) fn variable(&self, name: &OsStr) -> Option<OsString> {
        (self.environment)(name)
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    /// Run a program, or join a process: the settings, the program and its arguments, and warnings to show first.
    Run(Box<Options>, Vec<OsString>, Vec<String>),
    /// Print the help; with the rarely needed options.
    Help {
        /// Whether `--help-debug` asked.
        debug: bool,
    },
    /// Say which options can be changed while the program runs.
    HelpDynamic,
    /// List the machines whose caches are known (`--machine=help`).
    Machines,
    /// Print the version.
    Version {
        /// Whether `-v` was given too.
        verbose: bool,
    },
}

impl UsageError {
    /// The tool of Valgrind's that is wanted and that grind does not have, if that is what is wrong.
    ///
    /// Valgrind runs memcheck unless told otherwise, so who names no tool but an option of memcheck wants that.
    #[must_use]
    pub fn wants_another_tool(&self, args: &[OsString]) -> Option<String> {
        match self {
            Self::NoTool(tool) => Some(tool.clone()),
            Self::Unknown { word, .. } if !args.iter().any(|arg| arg.as_bytes().starts_with(b"--tool=")) => {
                let name = word.split('=').next().unwrap_or(word);
                foreign::tool_of(name).filter(|tool| *tool == "memcheck").map(str::to_owned)
            }
            _ => None,
        }
    }
}

/// What is wrong with an option, as lines to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Before the option is named.
    pub before: Vec<String>,
    /// After it has been named.
    pub why: Vec<String>,
}

impl From<Vec<String>> for Wrong {
    fn from(why: Vec<String>) -> Self {
        Self { before: Vec::new(), why }
    }
}

/// A command line that cannot be followed. Exit code 1.
#[derive(Debug, PartialEq, Eq)]
pub enum UsageError {
    /// There is no program to run.
    NoProgram,
    /// `--tool=` names one that does not exist.
    NoTool(String),
    /// No option of this name exists.
    Unknown {
        /// The word.
        word: String,
        /// Whose option it is, if it is known.
        hint: Option<String>,
        /// The same with the nearest name that exists.
        nearest: Option<String>,
    },
    /// Options that do not go together, or not with a program to start.
    Clash(String),
    /// The option exists, but not this value.
    Bad {
        /// The word.
        word: String,
        /// What is wrong with it.
        wrong: Wrong,
    },
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MORE: &str = "Use --help for more information or consult the user manual.";
        match self {
            Self::NoProgram => write!(f, "no program specified\nUse --help for more information."),
            Self::Clash(what) => write!(f, "{what}\n{MORE}"),
            Self::NoTool(tool) => {
                write!(f, "failed to start tool '{tool}': this version has {} only\n{MORE}", table::TOOLS.join(", "))
            }
            Self::Unknown { word, hint, nearest } => {
                writeln!(f, "Unknown option: {word}")?;
                if let Some(hint) = hint {
                    writeln!(f, "{hint}")?;
                }
                if let Some(nearest) = nearest {
                    writeln!(f, "Did you mean '{nearest}'?")?;
                }
                write!(f, "{MORE}")
            }
            Self::Bad { word, wrong: Wrong { before, why } } => {
                for line in before {
                    writeln!(f, "{line}")?;
                }
                write!(f, "Bad option: {word}\n{}\n{MORE}", why.join("\n"))
            }
        }
    }
}

impl std::error::Error for UsageError {}

/// A word split at its `=`, with the option that it names.
struct Word<'a> {
    text: &'a OsStr,
    name: String,
    value: Option<&'a OsStr>,
}

impl<'a> Word<'a> {
    fn new(text: &'a OsStr) -> Self {
        let bytes = text.as_bytes();
        let (name, value) = match bytes.iter().position(|&b| b == b'=') {
            Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]))),
            None => (bytes, None),
        };
        Self { text, name: String::from_utf8_lossy(name).into_owned(), value }
    }

    fn bad(&self, wrong: impl Into<Wrong>) -> UsageError {
        UsageError::Bad { word: self.text.to_string_lossy().into_owned(), wrong: wrong.into() }
    }

    fn unknown(&self, tool: Tool) -> UsageError {
        let hint = foreign::hint(&self.name, tool);
        // What another tool has is hardly mistyped: but both may have it under names that are almost the same.
        let limit = self.name.len() / if hint.is_some() { 6 } else { 3 };
        let known = foreign::tool_of(&self.name).is_some();
        let nearest = nearest(&self.name, tool, limit.max(1)).filter(|_| !known).map(|name| match self.value {
            Some(value) => format!("{name}={}", value.to_string_lossy()),
            None => name.to_owned(),
        });
        UsageError::Unknown { word: self.text.to_string_lossy().into_owned(), hint, nearest }
    }

    fn checked(&self, option: &Opt) -> Result<Value<'a>, UsageError> {
        option.kind.check(&self.name, self.value).map_err(|why| self.bad(why))
    }
}

/// Reads the command line (without the program's own name) and the sources of further options.
///
/// `sources` is asked for the further words only if the command line does not forbid it.
///
/// # Errors
/// When a word is not understood or there is no program.
pub fn parse(
    args: &[OsString],
    environment: Environment,
    sources: impl FnOnce() -> (Vec<Source>, Vec<String>),
) -> Result<Request, UsageError> {
    let is_option = |a: &&OsString| a.as_bytes().first() == Some(&b'-') && *a != "--";
    let given: Vec<&OsString> = args.iter().take_while(is_option).collect();
    let mut program = &args[given.len()..];
    if program.first().is_some_and(|w| w == "--") {
        program = &program[1..];
    }

    let only = given.iter().rev().find_map(|w| w.as_bytes().strip_prefix(b"--command-line-only="));
    let (further, mut warnings) = if only == Some(b"yes") { (Vec::new(), Vec::new()) } else { sources() };
    let words: Vec<OsString> = further.into_iter().flat_map(|s| s.words).chain(given.into_iter().cloned()).collect();
    let tool = Tool::named(&words);
    let words: Vec<OsString> = words.into_iter().filter_map(|word| foreign::for_this_tool(word, tool)).collect();

    if let Some(request) = early(&words)? {
        return Ok(request);
    }
    let mut options = read_words(tool, &words, environment)?;
    let named = program.first().map(|word| word.to_string_lossy());
    if let Some(clash) = options.attach.clash(named.as_deref()) {
        return Err(UsageError::Clash(clash));
    }
    if options.dump_every.is_some() && options.tree.is_some() && tool == Tool::Cachegrind {
        let why = "--dump-every and --tree do not go together for cachegrind: its file of all processes has no parts";
        return Err(UsageError::Clash(why.into()));
    }
    if options.attach.pid.is_some() {
        // It has asked long ago what its processor can do.
        options.cpu = CpuModel::Host;
    } else if program.is_empty() {
        return Err(UsageError::NoProgram);
    }
    options.words = words;
    warnings.extend(options.callgrind.settle());
    Ok(Request::Run(Box::new(options), program.to_vec(), warnings))
}

/// The settings that `words` ask for.
pub(crate) fn read_words(tool: Tool, words: &[OsString], environment: Environment) -> Result<Options, UsageError> {
    let mut options = Options::new(environment);
    options.tool = tool;
    for text in words {
        let word = Word::new(text);
        if let Some(change) = callgrind::numbered(&word.name).filter(|_| tool == Tool::Callgrind) {
            callgrind::apply_numbered(&mut options.callgrind, &word.name, change, word.value)
                .map_err(|why| word.bad(why))?;
            continue;
        }
        let option = tool.find(&word.name).ok_or_else(|| word.unknown(tool))?;
        let value = word.checked(option)?;
        match option.role {
            Role::Core(apply) | Role::Tool(apply) | Role::Debug(apply) => {
                apply(&mut options, value).map_err(|why| word.bad(why))?
            }
            Role::Early | Role::Ignored(_) => {}
            Role::Lacking(accepted, why) => {
                let harmless = word.value.is_some_and(|v| accepted.iter().any(|a| *a == v));
                if !harmless {
                    return Err(word.bad(vec![format!("Not supported: {why}")]));
                }
            }
        }
    }
    Ok(options)
}

/// What takes precedence over everything else, even over wrong options: the tool's name, help and version.
fn early(words: &[OsString]) -> Result<Option<Request>, UsageError> {
    let verbose = words.iter().any(|w| w == "-v" || w == "--verbose");
    let mut request = None;
    for text in words {
        let word = Word::new(text);
        match (word.name.as_str(), word.value) {
            ("--tool", Some(tool)) if !table::TOOLS.iter().any(|t| *t == tool) => {
                return Err(UsageError::NoTool(tool.to_string_lossy().into_owned()));
            }
            ("-h" | "--help", None) => request = Some(Request::Help { debug: false }),
            ("--help-debug", None) => request = Some(Request::Help { debug: true }),
            ("--help-dyn-options", None) => request = Some(Request::HelpDynamic),
            ("--machine", Some(name)) if name == "help" => request = Some(Request::Machines),
            ("--version", None) => request = Some(Request::Version { verbose }),
            _ => {}
        }
    }
    Ok(request)
}

/// The name of an option that is mistyped as `name` with at most `limit` wrong letters.
fn nearest(name: &str, tool: Tool, limit: usize) -> Option<&'static str> {
    let own = if tool == Tool::Callgrind { callgrind::OPTIONS } else { &[] };
    own.iter()
        .chain(table::OPTIONS)
        .flat_map(|o| o.names)
        .filter(|n| tool.find(n).is_some())
        .filter(|n| n.starts_with("--"))
        .map(|n| (distance(name, n), *n))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, n)| n)
}

/// Letters to insert, remove, replace or swap with their neighbour to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 16 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests;
