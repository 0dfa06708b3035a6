//! Every option that grind knows, in one table: parser, `--help`, manual page and completions are all made from it.
//!
//! An option is either applied, or accepted because it has no meaning here, or refused because it has one that grind does
//! not provide. Nothing is ever parsed and then forgotten silently: an ignored option says why in the manual.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::allocators::AllocFn;
use cg_cli::expand::Template;
use cg_cli::glob::Pattern;
use grind_isa::cpuid::CpuModel;
use grind_objects::sharing::Detail;
use grind_session::{Beside, OwnCode};
use grind_types::Pid;

use super::value::{Kind, Value};
use super::{LogTarget, Options, Wrong, distances, levels, tlbs};
use crate::attach;
use crate::timeline::Every;

/// Changes the options as a value says; the error is the lines to show.
pub type Apply = fn(&mut Options, Value<'_>) -> Result<(), Wrong>;

/// What becomes of an option.
#[derive(Clone, Copy)]
pub enum Role {
    /// A setting of grind itself.
    Core(Apply),
    /// A setting of the cachegrind tool.
    Tool(Apply),
    /// Acted on before all others (`--help`, `--version`, …), in [`super::parse`].
    Early,
    /// A setting that is rarely needed: only shown by `--help-debug`.
    Debug(Apply),
    /// Accepted for the sake of scripts; why it has no effect.
    Ignored(&'static str),
    /// Accepted with one of these values, which ask for nothing; refused with any other, with this reason.
    Lacking(&'static [&'static str], &'static str),
}

/// One option.
pub struct Opt {
    /// Its spellings; the first is the one that is shown.
    pub names: &'static [&'static str],
    /// The form of its value.
    pub kind: Kind,
    /// What becomes of it.
    pub role: Role,
    /// The default, as the help shows it; empty: none.
    pub default: &'static str,
    /// What it does (for options that grind acts on).
    pub help: &'static str,
}

const ANY_INT: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };
const FD: Kind = Kind::Int { min: 0, max: i32::MAX as i64 };
/// How addresses that miss are told.
pub const STREAMS: Kind = Kind::Choice(&["no", "misses"]);
/// How many callers may tell blocks apart.
pub const ALLOC_DEPTH: Kind = Kind::Int { min: 1, max: 32 };

const fn opt(names: &'static [&'static str], kind: Kind, role: Role, default: &'static str, help: &'static str) -> Opt {
    Opt { names, kind, role, default, help }
}

pub(super) const fn ignored(names: &'static [&'static str], kind: Kind, why: &'static str) -> Opt {
    Opt { names, kind, role: Role::Ignored(why), default: "", help: "" }
}

pub(super) const fn lacking(
    names: &'static [&'static str],
    kind: Kind,
    accepted: &'static [&'static str],
    why: &'static str,
) -> Opt {
    Opt { names, kind, role: Role::Lacking(accepted, why), default: "", help: "" }
}

const NO_ERRORS: &str = "a profiler reports no errors";
const NO_TRACES: &str = "the only stacks are those that a program asks for, of twelve frames";
const NO_TRANSLATION: &str = "it tunes Valgrind's own translator; grind's counts depend on no such setting";
const NO_GDB: &str = "grind has no gdb server";
const NO_XML: &str = "it only matters with --xml=yes";
const PTRACE_TRACE: &str = "grind does not print its inner workings; use strace or gdb on grind itself";

/// The processors that `--cpu=` knows. `haswell` is the baseline by its own name.
pub const CPUS: &[(&str, CpuModel)] =
    &[("baseline", CpuModel::Baseline), ("host", CpuModel::Host), ("haswell", CpuModel::Baseline)];
const CPU_NAMES: &[&str] = &["baseline", "host", "haswell"];

/// When grind answers from another processor, and names for that.
const BESIDE: &[(&str, Beside)] =
    &[("auto", Beside::WhenWorthwhile), ("always", Beside::Always), ("never", Beside::Never)];
const BESIDE_NAMES: &[&str] = &["auto", "always", "never"];

const OWN_CODE: &[(&str, OwnCode)] =
    &[("auto", OwnCode::WhenWorthwhile), ("always", OwnCode::Always), ("never", OwnCode::Never)];
const OWN_CODE_NAMES: &[&str] = &["auto", "always", "never"];

/// The processors that there are models of (the names of [`cg_cycles::MODELS`]).
pub(super) const CYCLE_MODELS: &[&str] = &["skylake", "icelake", "zen3", "zen4"];

/// The tools that exist.
pub const TOOLS: &[&str] = &["cachegrind", "callgrind"];

/// The time that an option names.
pub(super) fn span(text: &OsStr) -> Result<Duration, Wrong> {
    let text = text.to_string_lossy();
    attach::span(&text).ok_or_else(|| vec![format!("Invalid time '{text}' (as in 10s, 500ms, 2m)")].into())
}

/// All options, in the order in which the help shows them.
pub static OPTIONS: &[Opt] = &[
    // Settings of grind itself.
    opt(
        &["--tool"],
        Kind::Text("name"),
        Role::Early,
        "cachegrind",
        "the tool to run: cachegrind counts by source line, callgrind tells the call graph too",
    ),
    opt(&["--help", "-h"], Kind::Flag, Role::Early, "", "show this message"),
    opt(&["--help-debug"], Kind::Flag, Role::Early, "", "show this message and the rarely needed options"),
    opt(
        &["--help-dyn-options"],
        Kind::Flag,
        Role::Early,
        "",
        "show the options that can be changed while the program runs (none)",
    ),
    opt(&["--version"], Kind::Flag, Role::Early, "", "show the version; with -v, in more detail"),
    opt(
        &["--quiet", "-q"],
        Kind::Flag,
        Role::Core(|o, _| {
            o.verbosity -= 1;
            Ok(())
        }),
        "",
        "no banner, no summary and no line of progress; only errors and what the program prints through client requests",
    ),
    opt(
        &["--verbose", "-v"],
        Kind::Flag,
        Role::Core(|o, _| {
            o.verbosity += 1;
            Ok(())
        }),
        "",
        "tell more about the run; may be repeated",
    ),
    opt(
        &["--trace-children"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.trace_children = v.is_yes();
            Ok(())
        }),
        "no",
        "profile the programs that the program starts (execve) too; forked children always are",
    ),
    opt(
        &["--trace-children-skip"],
        Kind::Text("pattern,pattern,..."),
        Role::Core(|o, v| {
            o.skip = patterns(v);
            Ok(())
        }),
        "",
        "programs that --trace-children=yes leaves alone, by the path they are started with; * and ? are wildcards",
    ),
    opt(
        &["--trace-children-skip-by-arg"],
        Kind::Text("pattern,pattern,..."),
        Role::Core(|o, v| {
            o.skip_by_arg = patterns(v);
            Ok(())
        }),
        "",
        "the same, by any of their arguments",
    ),
    opt(
        &["--tree"],
        Kind::Text("file"),
        Role::Core(|o, v| {
            o.tree = Some(template(o, v)?);
            Ok(())
        }),
        "",
        "one profile of all processes that are profiled, with who started which and how it ended, instead of one for each; \
         %p is the first one's",
    ),
    opt(
        &["--pid"],
        Kind::Int { min: 1, max: i32::MAX as i64 },
        Role::Core(|o, v| {
            if let Value::Int(pid) = v {
                o.attach.pid = i32::try_from(pid).ok().map(Pid);
            }
            Ok(())
        }),
        "",
        "join a process that runs instead of starting a program (--cpu=host): counts begin at zero; ^C, SIGTERM or --duration \
         end the profile, and the process goes on as if nothing had been",
    ),
    opt(
        &["--duration"],
        Kind::Text("time"),
        Role::Core(|o, v| {
            let Value::Text(text) = v else { return Ok(()) };
            o.attach.duration = Some(span(text)?);
            Ok(())
        }),
        "",
        "with --pid: leave the process after this time (10s, 500ms, 2m)",
    ),
    opt(
        &["--until-dump"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.attach.until_dump = v.is_yes();
            Ok(())
        }),
        "no",
        "with --pid: leave the process once it has asked for a dump, or has been asked for one",
    ),
    opt(
        &["--live"],
        Kind::Flag,
        Role::Core(|o, _| {
            o.live = true;
            Ok(())
        }),
        "",
        "show on the terminal what the program executes, function by function, while it runs, as `cg_control top` does; what it \
         writes there is held back until the view is left (q) or the program ends",
    ),
    opt(
        &["--dump-every"],
        Kind::Text("time|N-instructions"),
        Role::Core(|o, v| {
            let Value::Text(text) = v else { return Ok(()) };
            let text = text.to_string_lossy();
            let every = Every::parse(&text).ok_or_else(|| {
                Wrong::from(vec![format!(
                    "Invalid time or number '{text}' (as in 1s, 250ms, 1G-instructions; 1M-instructions at least)"
                )])
            })?;
            o.dump_every = Some(every);
            Ok(())
        }),
        "",
        "write a part after each such time (1s, 250ms; 50ms at least) or number of instructions of a process (1G-instructions, \
         500M-instructions), so that it can be seen what was executed when; parts add up to the whole",
    ),
    opt(
        &["--child-silent-after-fork"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.child_silent_after_fork = v.is_yes();
            Ok(())
        }),
        "no",
        "forked children log nothing until they start another program; their profiles are written all the same",
    ),
    opt(
        &["--cpu"],
        Kind::Choice(CPU_NAMES),
        Role::Core(|o, v| {
            if let Value::Text(name) = v {
                o.cpu = CPUS.iter().find(|(n, _)| *n == name).map(|(_, m)| *m).unwrap_or_default();
            }
            Ok(())
        }),
        "baseline",
        "the processor that the program sees: a fixed Haswell-class model (baseline, haswell), so that it takes the same \
         code paths everywhere, or the one that is there (host)",
    ),
    opt(
        &["--time-stamp"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.time_stamp = v.is_yes();
            Ok(())
        }),
        "no",
        "put the time since the start in front of every log line",
    ),
    opt(
        &["--log-fd"],
        FD,
        Role::Core(|o, v| {
            if let Value::Int(n) = v {
                o.log = LogTarget::Fd(i32::try_from(n).map_err(|_| vec![format!("Invalid integer value '{n}'")])?);
            }
            Ok(())
        }),
        "2",
        "log to this file descriptor (2: standard error)",
    ),
    opt(
        &["--log-file"],
        Kind::Text("file"),
        Role::Core(|o, v| {
            o.log = LogTarget::File(template(o, v)?);
            Ok(())
        }),
        "",
        "log to this file; %p stands for the process ID, %n for a running number, %q{VAR} for an environment variable, \
         %r for the rank in a parallel program, %% for %",
    ),
    opt(
        &["--demangle"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.demangle = v.is_yes();
            Ok(())
        }),
        "yes",
        "show the names of C++ and Rust functions as they are written in the source",
    ),
    opt(
        &["--show-below-main"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.show_below_main = v.is_yes();
            Ok(())
        }),
        "no",
        "show the functions that call main() by name instead of as (below main)",
    ),
    opt(
        &["--separate-inlined"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.separate_inlined = v.is_yes();
            Ok(())
        }),
        "no",
        "take a function that was inlined for a function of its own (needs debug information)",
    ),
    opt(
        &["--read-inline-info"],
        Kind::Bool,
        Role::Core(|o, v| {
            o.read_inline_info = v.is_yes();
            Ok(())
        }),
        "no",
        "with --tool=callgrind: say in the profile which inlined function costs belong to (cfni= lines)",
    ),
    opt(
        &["--extra-debuginfo-path"],
        Kind::Text("folder"),
        Role::Core(|o, v| {
            if let Value::Text(folder) = v {
                o.debug_folders.push(folder.into());
            }
            Ok(())
        }),
        "",
        "look for separate debug information here too, before /usr/lib/debug; may be repeated",
    ),
    // The tool.
    opt(
        &["--cachegrind-out-file"],
        Kind::Text("file"),
        Role::Tool(|o, v| {
            o.out_file = template(o, v)?;
            Ok(())
        }),
        "cachegrind.out.%p",
        "the profile to write; %p, %n, %q{VAR}, %r and %% as in --log-file",
    ),
    opt(
        &["--instr-at-start"],
        Kind::Bool,
        Role::Tool(|o, v| {
            o.instr_at_start = v.is_yes();
            Ok(())
        }),
        "yes",
        "count from the first instruction on; with no, from CACHEGRIND_START_INSTRUMENTATION on",
    ),
    opt(
        &["--cache-sim"],
        Kind::Bool,
        Role::Tool(|o, v| {
            o.cache_sim = v.is_yes();
            Ok(())
        }),
        "no",
        "simulate caches: count reads, writes, and misses of the first and of the last level",
    ),
    opt(
        &["--objects"],
        Kind::Bool,
        Role::Tool(|o, v| {
            o.objects = v.is_yes();
            Ok(())
        }),
        "no",
        "with --cache-sim=yes: count misses by data object, too (blocks of the heap by where they were allocated, variables, \
         stacks), in a file of their own (--mem-out-file)",
    ),
    opt(
        &["--alloc-fn"],
        Kind::Text("name[,size-arg[,count-arg]]"),
        Role::Tool(|o, v| {
            let Value::Text(text) = v else { return Ok(()) };
            o.alloc_fns.push(AllocFn::parse(text).map_err(|wrong| vec![wrong])?);
            Ok(())
        }),
        "",
        "with --objects=yes or --collect-alloc=yes: this function is an allocator, too, and its callers are where blocks come from; \
         which argument is the size (else the first one), and which the count; may be repeated, * and ? are wildcards",
    ),
    opt(
        &["--alloc-depth"],
        ALLOC_DEPTH,
        Role::Tool(|o, v| {
            if let Value::Int(n) = v {
                o.alloc_depth = u8::try_from(n).unwrap_or(1);
            }
            Ok(())
        }),
        "1",
        "with --objects=yes: blocks of the heap are told apart by so many callers, the one of the allocator first; each allocation \
         stops the program if it is more than 1",
    ),
    opt(
        &["--collect-alloc"],
        Kind::Bool,
        Role::Tool(|o, v| {
            o.collect_alloc = v.is_yes();
            Ok(())
        }),
        "no",
        "count calls of allocators and the bytes that they were asked for (allocCount, allocSize), where they are called",
    ),
    opt(
        &["--streams"],
        STREAMS,
        Role::Tool(|o, v| {
            o.streams = matches!(v, Value::Text(text) if text == "misses");
            Ok(())
        }),
        "no",
        "with --objects=yes: in which steps each instruction walks over what it misses (misses), in the file of data objects",
    ),
    opt(
        &["--prefetch-hints"],
        Kind::Text("file"),
        Role::Tool(|o, v| {
            o.prefetch_hints = Some(template(o, v)?);
            Ok(())
        }),
        "",
        "with --streams=misses: which instructions of the program are worth a prefetch, how far ahead, as create_llvm_prof reads it for \
         compilers (offset,delta,type); cachegrind only; %p, %n, %q{VAR}, %r and %% as in --log-file",
    ),
    opt(
        &["--reuse-dist"],
        distances::WHICH,
        Role::Tool(distances::which),
        "no",
        "find stack distances of data accesses, which say what caches of other sizes would miss, in the file of data objects: with \
         --cache-sim=yes of those that miss D1, within bounds (bounds), or of every access (exact), which is slow, as all of them are told; \
         contexts of the statistics are not told apart",
    ),
    opt(
        &["--reuse-sample"],
        distances::RATE,
        Role::Tool(distances::rate),
        "0",
        "with --reuse-dist=exact: an estimate from one line of so many (a power of two); 0: all lines",
    ),
    opt(
        &["--sharing"],
        Kind::Choice(&["no", "lines", "counts", "order"]),
        Role::Tool(|o, v| {
            o.sharing = if let Value::Text(text) = v { text.to_str().and_then(Detail::named) } else { None };
            Ok(())
        }),
        "no",
        "with --cache-sim=yes: which threads read and wrote which bytes of the same lines, and whether these are the same (lines); \
         and also how often (counts: slow, every access is told), or how often these lines went from thread to thread as the threads of \
         this run took turns (order); with --objects=yes by data object; contexts of the statistics are not told apart",
    ),
    opt(
        &["--mem-out-file"],
        Kind::Text("file"),
        Role::Tool(|o, v| {
            o.mem_out_file = Some(template(o, v)?);
            Ok(())
        }),
        "mem.out.%p",
        "with --objects=yes, --reuse-dist or --sharing: the file of data objects, distances and shared lines, JSON lines; FILE.data beside it is a profile of them for cg_annotate; %p, %n, %q{VAR}, %r and %% as in --log-file",
    ),
    opt(
        &["--branch-sim"],
        Kind::Bool,
        Role::Tool(|o, v| {
            o.branch_sim = v.is_yes();
            Ok(())
        }),
        "no",
        "simulate branch prediction: count conditional and indirect branches and mispredictions",
    ),
    opt(
        &["--cycle-estimation"],
        Kind::Bool,
        Role::Tool(|o, v| {
            o.cycle_estimation = v.is_yes();
            Ok(())
        }),
        "no",
        "estimate cycles by a static model, in hundredths: of each instruction by reciprocal throughput (Ct) and latency (Cl), of \
         each block by what bounds it (Cb)",
    ),
    opt(
        &["--cycle-model"],
        Kind::Choice(CYCLE_MODELS),
        Role::Tool(|o, v| {
            if let Value::Text(name) = v {
                o.cycle_model = name.to_str().and_then(cg_cycles::Model::by_name).unwrap_or(o.cycle_model);
            }
            Ok(())
        }),
        "skylake",
        "the processor whose model estimates cycles",
    ),
    opt(
        &["--contexts"],
        Kind::Choice(&["separate", "merged"]),
        Role::Tool(|o, v| {
            o.separate_contexts = matches!(v, Value::Text(way) if way == "separate");
            Ok(())
        }),
        "separate",
        "of a program that changes the context of the statistics, write a profile for each context, too, or only their sum",
    ),
    opt(
        &["--I1"],
        levels::FIRST,
        Role::Tool(|o, v| {
            o.caches.i1 = Some(levels::first(v)?);
            Ok(())
        }),
        "",
        "the first-level instruction cache to simulate, in bytes and lines a set, instead of the processor's",
    ),
    opt(
        &["--D1"],
        levels::FIRST,
        Role::Tool(|o, v| {
            o.caches.d1 = Some(levels::first(v)?);
            Ok(())
        }),
        "",
        "the first-level data cache",
    ),
    opt(
        &["--LL"],
        levels::WITH_POLICY,
        Role::Tool(levels::last),
        "",
        "the last-level cache, for instructions and data; policy: which line is replaced: lru (the default), plru, lru3plru4, \
         fifo, random[:SEED], nru, srrip, brrip, drrip, or qlru:H11_M1_R0_U0 and its like",
    ),
    opt(
        &["--L2"],
        levels::WITH_POLICY,
        Role::Tool(levels::second),
        "",
        "a second level of each thread's between these, for instructions and data, whose misses are I2mr, D2mr and D2mw; in \
         Valgrind another name of --LL",
    ),
    opt(
        &["--inclusion"],
        levels::INCLUSION,
        Role::Tool(levels::inclusion),
        "none",
        "what LL holds of the levels above it: all (inclusive; what leaves LL leaves L2; I1 and D1 keep it, and the profile says how many of \
         these lines they held), only what has left L2 (exclusive), or whatever comes of it (none)",
    ),
    opt(
        &["--prefetcher"],
        levels::PREFETCH,
        Role::Tool(levels::prefetcher),
        "none",
        "what is loaded into L2 (into LL without L2) before it is asked for: the next line of each miss of I1 and D1, the next step \
         of the instruction, or the next lines of a stream in a page",
    ),
    opt(
        &["--machine"],
        levels::NAME,
        Role::Tool(levels::machine),
        "",
        "simulate the caches (and, with --tlb-sim=yes, the TLBs) of this processor, but for those that are given; help lists them, with the \
         source of each number",
    ),
    opt(
        &["--tlb-sim"],
        Kind::Bool,
        Role::Tool(tlbs::simulated),
        "no",
        "with --cache-sim=yes: simulate TLBs of each thread's, too, for pages of 4 KiB: count reads, writes and fetches that miss the \
         first level (DT1mr, DT1mw, IT1mr) and the second one, if there is one (DT2mr, DT2mw, IT2mr)",
    ),
    opt(
        &["--DTLB"],
        tlbs::SHAPE,
        Role::Tool(tlbs::data),
        "64,4",
        "with --tlb-sim=yes: the first-level TLB of data, in pages and pages a set; each replaces the page used longest ago",
    ),
    opt(&["--ITLB"], tlbs::SHAPE, Role::Tool(tlbs::code), "128,8", "the first-level TLB of instructions"),
    opt(&["--STLB"], tlbs::SHAPE, Role::Tool(tlbs::second), "", "a second-level TLB behind both"),
    // Rarely needed.
    opt(
        &["--command-line-only"],
        Kind::Bool,
        // Acted on before all others.
        Role::Debug(|_, _| Ok(())),
        "no",
        "take options from the command line alone, not from files or the environment",
    ),
    opt(
        &["--code-limit"],
        Kind::Int { min: 4, max: 1 << 20 },
        Role::Debug(|o, v| {
            if let Value::Int(mib) = v {
                o.code_limit = (mib as u64) << 20;
            }
            Ok(())
        }),
        "512",
        "how many MiB of translated code a program may have at a time; when there is more, all of it is thrown away and \
         what still runs is translated anew (counts are not affected; grind itself takes about three times as much)",
    ),
    opt(
        &["--pair-calls-from"],
        Kind::Int { min: 0, max: 1 << 20 },
        Role::Debug(|o, v| {
            if let Value::Int(mib) = v {
                o.pairs_from = (mib as u64) << 20;
            }
            Ok(())
        }),
        "8",
        "let calls and returns be predicted as such, which large programs need, from so many MiB of executable files on; it \
         makes smaller ones slower (counts are not affected; never with --tool=callgrind)",
    ),
    opt(
        &["--hot-after"],
        Kind::Int { min: 0, max: 1 << 40 },
        Role::Debug(|o, v| {
            if let Value::Int(steps) = v {
                o.hot_after = steps as u64;
            }
            Ok(())
        }),
        "80000000",
        "translate a program anew while it runs, by what has been learnt of where its code goes, once so many blocks have \
         been counted and it is expected to pay; 0 for never (counts are not affected)",
    ),
    opt(
        &["--beside"],
        Kind::Choice(BESIDE_NAMES),
        Role::Debug(|o, v| {
            if let Value::Text(name) = v {
                o.beside = BESIDE.iter().find(|(n, _)| *n == name).map(|(_, b)| *b).unwrap_or_default();
            }
            Ok(())
        }),
        "auto",
        "let a program that asks for the translation of new code wait for the answer of grind, on another processor, and not \
         stop for it: while it often asks and that processor is free (auto), wherever there is one (always), or never \
         (counts are not affected)",
    ),
    opt(
        &["--native-windows"],
        Kind::Choice(OWN_CODE_NAMES),
        Role::Debug(|o, v| {
            if let Value::Text(name) = v {
                o.native_windows = OWN_CODE.iter().find(|(n, _)| *n == name).map(|(_, c)| *c).unwrap_or_default();
            }
            Ok(())
        }),
        "auto",
        "let a program run its own code, and no translations, while its instrumentation is switched off, where nothing is lost by \
         that (processes of one thread, whose code does not change): for as long as it is expected to pay (auto), whenever it \
         can (always), or never (counts are not affected)",
    ),
    // What Valgrind's core has and grind does not.
    lacking(
        &["--log-socket"],
        Kind::Text("ip:port"),
        &[],
        "grind does not log to sockets: use --log-file=, or --log-fd= with a connection made by the shell",
    ),
    lacking(&["--xml"], Kind::Bool, &["no"], "the profile's format is not XML; it is read with cg_annotate"),
    ignored(&["--xml-fd"], ANY_INT, NO_XML),
    ignored(&["--xml-file"], Kind::Text("file"), NO_XML),
    ignored(&["--xml-socket"], Kind::Text("ip:port"), NO_XML),
    ignored(&["--xml-user-comment"], Kind::Text("text"), NO_XML),
    lacking(&["--vgdb"], Kind::Choice(&["no", "yes", "full"]), &["no"], NO_GDB),
    lacking(&["--vgdb-error"], ANY_INT, &["999999999"], NO_GDB),
    lacking(&["--vgdb-stop-at"], Kind::Set(&["startup", "exit", "abexit", "valgrindabexit", "all"]), &["none"], NO_GDB),
    ignored(&["--vgdb-poll"], ANY_INT, NO_GDB),
    ignored(&["--vgdb-prefix"], Kind::Text("prefix"), NO_GDB),
    ignored(&["--vgdb-shadow-registers"], Kind::Bool, NO_GDB),
    lacking(&["--wait-for-gdb"], Kind::Bool, &["no"], NO_GDB),
    lacking(
        &["--track-fds"],
        Kind::Choice(&["yes", "all", "bad", "no"]),
        &["no"],
        "grind does not follow file descriptors",
    ),
    ignored(&["--allow-file-caps"], Kind::Text("patterns"), "programs with file capabilities are run in any case"),
    ignored(&["--modify-fds"], Kind::Choice(&["no", "high", "yes"]), "grind does not touch file descriptors"),
    ignored(&["--num-callers"], Kind::Int { min: 1, max: 500 }, NO_TRACES),
    ignored(&["--merge-recursive-frames"], Kind::Int { min: 0, max: 500 }, NO_TRACES),
    ignored(&["--unw-stack-scan-thresh"], Kind::Int { min: 0, max: 100 }, NO_TRACES),
    ignored(&["--unw-stack-scan-frames"], Kind::Int { min: 0, max: 32 }, NO_TRACES),
    ignored(&["--fullpath-after"], Kind::Text("text"), NO_TRACES),
    ignored(&["--sym-offsets"], Kind::Bool, NO_TRACES),
    ignored(&["--keep-debuginfo"], Kind::Bool, "the profile keeps the names of unloaded code in any case"),
    ignored(&["--read-var-info"], Kind::Bool, "variables do not appear in a profile"),
    ignored(&["--error-limit"], Kind::Bool, NO_ERRORS),
    ignored(&["--error-exitcode"], ANY_INT, NO_ERRORS),
    ignored(&["--exit-on-first-error"], Kind::Bool, NO_ERRORS),
    ignored(&["--error-markers"], Kind::Text("begin,end"), NO_ERRORS),
    ignored(&["--show-error-list"], Kind::Choice(&["no", "yes", "all"]), NO_ERRORS),
    ignored(&["-s"], Kind::Flag, NO_ERRORS),
    ignored(&["--default-suppressions"], Kind::Bool, NO_ERRORS),
    ignored(&["--suppressions"], Kind::Text("file"), NO_ERRORS),
    lacking(&["--gen-suppressions"], Kind::Choice(&["no", "yes", "all"]), &["no"], NO_ERRORS),
    ignored(&["--dump-error"], ANY_INT, NO_ERRORS),
    ignored(&["--input-fd"], ANY_INT, "grind asks no questions"),
    ignored(&["--dsymutil"], Kind::Bool, "it concerns macOS"),
    ignored(&["--resync-filter"], Kind::Choice(&["no", "yes", "verbose"]), "it concerns macOS"),
    ignored(&["--max-stackframe"], ANY_INT, "grind does not guess at stack switches"),
    ignored(&["--main-stacksize"], ANY_INT, "the kernel makes the program's stack, as large as `ulimit -s` says"),
    ignored(&["--valgrind-stacksize"], ANY_INT, "grind runs in a process of its own"),
    ignored(&["--max-threads"], Kind::Int { min: 1, max: i64::MAX }, "grind has no limit of its own"),
    ignored(&["--redzone-size"], Kind::Int { min: 0, max: 4096 }, "grind leaves the program's malloc alone"),
    ignored(&["--core-redzone-size"], Kind::Int { min: 0, max: 4096 }, "grind leaves the program's malloc alone"),
    ignored(&["--run-libc-freeres"], Kind::Bool, "no memory of the C library is freed for the tool's sake"),
    ignored(&["--run-cxx-freeres"], Kind::Bool, "no memory of the C++ library is freed for the tool's sake"),
    ignored(
        &["--smc-check"],
        Kind::Choice(&["none", "stack", "all", "all-non-file"]),
        "code that changes is always noticed",
    ),
    ignored(
        &["--sim-hints"],
        Kind::Set(&[
            "lax-ioctls",
            "lax-doors",
            "fuse-compatible",
            "enable-outer",
            "no-inner-prefix",
            "no-nptl-pthread-stackcache",
            "fallback-llsc",
        ]),
        "system calls run natively",
    ),
    ignored(&["--fair-sched"], Kind::Choice(&["yes", "try", "no"]), "threads run in parallel, scheduled by the kernel"),
    ignored(&["--scheduling-quantum"], Kind::Int { min: 1, max: i64::MAX }, "threads are scheduled by the kernel"),
    ignored(
        &["--kernel-variant"],
        Kind::Set(&["bproc", "android-no-hw-tls", "android-gpu-sgx5xx", "android-gpu-adreno3xx"]),
        "system calls run natively",
    ),
    ignored(&["--show-emwarns"], Kind::Bool, "nothing is emulated"),
    ignored(
        &["--sigill-diagnostics"],
        Kind::Bool,
        "an instruction that the processor lacks raises SIGILL as it does natively",
    ),
    ignored(&["--aspace-minaddr"], Kind::Hex, "the kernel lays out the program's memory"),
    ignored(&["--num-transtab-sectors"], ANY_INT, NO_TRANSLATION),
    ignored(&["--avg-transtab-entry-size"], ANY_INT, NO_TRANSLATION),
    ignored(&["--soname-synonyms"], Kind::Text("synonyms"), "no library function is replaced"),
    lacking(
        &["--require-text-symbol"],
        Kind::Text(":soname:symbol"),
        &[],
        "grind does not look for symbols before the run",
    ),
    lacking(&["--debuginfo-server"], Kind::Text("ip:port"), &[], "debug information is read from files only"),
    ignored(&["--enable-debuginfod"], Kind::Bool, "debug information is read from files only"),
    lacking(
        &["--allow-mismatched-debuginfo"],
        Kind::Bool,
        &["no"],
        "debug information that belongs to another build would give wrong lines",
    ),
    lacking(&["--stats"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--progress-interval"], ANY_INT, &["0"], "grind reports nothing while the program runs"),
    ignored(&["-d"], Kind::Flag, PTRACE_TRACE),
    ignored(&["--sanity-level"], ANY_INT, NO_TRANSLATION),
    lacking(&["--trace-flags"], Kind::Text("bits"), &["00000000"], PTRACE_TRACE),
    lacking(&["--profile-flags"], Kind::Text("bits"), &["00000000"], PTRACE_TRACE),
    ignored(&["--profile-interval"], ANY_INT, NO_TRANSLATION),
    ignored(&["--trace-notbelow"], ANY_INT, NO_TRANSLATION),
    ignored(&["--trace-notabove"], ANY_INT, NO_TRANSLATION),
    lacking(&["--trace-syscalls"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--trace-signals"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--trace-symtab"], Kind::Bool, &["no"], PTRACE_TRACE),
    ignored(&["--trace-symtab-patt"], Kind::Text("pattern"), "it only matters with --trace-symtab=yes"),
    lacking(&["--trace-cfi"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--trace-redir"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--trace-sched"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--trace-malloc"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--profile-heap"], Kind::Bool, &["no"], PTRACE_TRACE),
    lacking(&["--debug-dump"], Kind::Choice(&["syms", "line", "frames"]), &[], PTRACE_TRACE),
    ignored(&["--vex-iropt-verbosity"], Kind::Int { min: 0, max: 9 }, NO_TRANSLATION),
    ignored(&["--vex-iropt-level"], Kind::Int { min: 0, max: 2 }, NO_TRANSLATION),
    ignored(&["--vex-iropt-unroll-thresh"], Kind::Int { min: 0, max: 400 }, NO_TRANSLATION),
    ignored(&["--vex-guest-max-insns"], Kind::Int { min: 1, max: 100 }, NO_TRANSLATION),
    ignored(&["--vex-guest-chase"], Kind::Bool, NO_TRANSLATION),
    ignored(&["--vex-regalloc-version"], Kind::Int { min: 2, max: 3 }, NO_TRANSLATION),
    ignored(&["--vex-iropt-register-updates", "--px-default"], PX, NO_TRANSLATION),
    ignored(&["--px-file-backed"], PX, NO_TRANSLATION),
];

const PX: Kind =
    Kind::Choice(&["sp-at-mem-access", "unwindregs-at-mem-access", "allregs-at-mem-access", "allregs-at-each-insn"]);

/// The option of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Opt> {
    OPTIONS.iter().find(|o| o.names.contains(&name))
}

fn template(options: &Options, value: Value<'_>) -> Result<Template, Vec<String>> {
    match value {
        Value::Text(text) => Template::parse(text, |name| options.variable(name)),
        _ => Err(vec!["No filename given".to_owned()]),
    }
}

fn patterns(value: Value<'_>) -> Vec<Pattern> {
    let Value::Text(text) = value else { return Vec::new() };
    text.as_bytes()
        .split(|&b| b == b',')
        .filter(|p| !p.is_empty())
        .map(|p| Pattern::new(OsStr::from_bytes(p)))
        .collect()
}

#[cfg(test)]
mod tests;
