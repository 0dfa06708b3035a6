//! The options of the callgrind tool, beside those of grind itself.
//!
//! The same kind of table as [`super::table`], and looked into before it: where both tools have an option (caches,
//! for example) this one says what it means for callgrind.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use cg_cli::expand::Template;
use cg_format::callgrind::SystemTime;
use grind_analysis::callgrind::settings::{CacheUse, Change, ForkCosts, Settings, Threads};
use grind_names::frames::Language;
use grind_session::AtStart;

use super::levels;
use super::table::{ALLOC_DEPTH, CYCLE_MODELS, Opt, Role, STREAMS, find as find_shared, ignored, lacking};
use super::value::{Kind, Value};
use super::{Options, Wrong};

const ANY: Kind = Kind::Text("function");
const COUNT: Kind = Kind::Int { min: 0, max: u16::MAX as i64 };
const BLOCKS: Kind = Kind::Int { min: 0, max: i64::MAX };

const fn opt(
    names: &'static [&'static str],
    kind: Kind,
    default: &'static str,
    help: &'static str,
    apply: super::table::Apply,
) -> Opt {
    Opt { names, kind, role: Role::Tool(apply), default, help }
}

fn rule(options: &mut Options, value: Value<'_>, change: Change) -> Result<(), Wrong> {
    if let Value::Text(pattern) = value {
        options.callgrind.add_rule(pattern, change);
    }
    Ok(())
}

fn set(options: &mut Options, value: Value<'_>, field: impl FnOnce(&mut Settings) -> &mut bool) -> Result<(), Wrong> {
    *field(&mut options.callgrind) = value.is_yes();
    Ok(())
}

fn small(value: Value<'_>) -> u16 {
    // The kinds that it is used with leave no other values.
    if let Value::Int(n) = value { u16::try_from(n).unwrap_or(u16::MAX) } else { 0 }
}

/// Hands a cache's geometry to the setting that both tools share. Any option of the simulator switches it on.
fn cache(options: &mut Options, value: Value<'_>, name: &str) -> Result<(), Wrong> {
    options.cache_sim = true;
    shared(options, value, name)
}

/// Hands a value to the setting that both tools share.
fn shared(options: &mut Options, value: Value<'_>, name: &str) -> Result<(), Wrong> {
    match find_shared(name).map(|option| &option.role) {
        Some(Role::Tool(apply)) => apply(options, value),
        _ => Err(vec![format!("{name} is not known")].into()),
    }
}

/// The options that are written in full. Those with a number in their names are [`numbered`].
pub static OPTIONS: &[Opt] = &[
    opt(
        &["--callgrind-out-file"],
        Kind::Text("file"),
        "callgrind.out.%p",
        "the profile to write; %p, %n, %q{VAR}, %r and %% as in --log-file",
        |o, v| {
            let Value::Text(text) = v else { return Ok(()) };
            let template = Template::parse(text, |name| o.variable(name))?;
            o.callgrind.out_file = Some(template);
            Ok(())
        },
    ),
    // Dumps.
    opt(&["--dump-line"], Kind::Bool, "yes", "tell costs by source line", |o, v| set(o, v, |s| &mut s.dump_line)),
    opt(&["--dump-instr"], Kind::Bool, "no", "tell costs by instruction too", |o, v| set(o, v, |s| &mut s.dump_instr)),
    opt(&["--compress-strings"], Kind::Bool, "yes", "write every name once, then its number", |o, v| {
        set(o, v, |s| &mut s.compress_strings)
    }),
    opt(&["--compress-pos"], Kind::Bool, "yes", "write positions relative to the last one", |o, v| {
        set(o, v, |s| &mut s.compress_pos)
    }),
    opt(&["--combine-dumps"], Kind::Bool, "no", "write all parts of a profile to one file", |o, v| {
        set(o, v, |s| &mut s.combine_dumps)
    }),
    opt(&["--dump-every-bb"], BLOCKS, "0", "write a part after so many basic blocks; 0: never", |o, v| {
        if let Value::Int(n) = v {
            o.callgrind.dump_every_bb = n.unsigned_abs();
        }
        Ok(())
    }),
    opt(
        &["--dump-before"],
        ANY,
        "",
        "write a part before entering functions with such a name; * and ? fit any text",
        |o, v| rule(o, v, Change::DumpBefore),
    ),
    opt(&["--dump-after"], ANY, "", "write a part after leaving such functions", |o, v| rule(o, v, Change::DumpAfter)),
    opt(&["--zero-before"], ANY, "", "set all costs to zero before entering such functions", |o, v| {
        rule(o, v, Change::ZeroBefore)
    }),
    // What is collected.
    opt(
        &["--instr-atstart"],
        Kind::Choice(&["yes", "no", "inherit"]),
        "yes",
        "instrument from the first instruction on (inherit: programs that processes execute while they are instrumented)",
        |o, v| {
            let Value::Text(when) = v else { return Ok(()) };
            o.callgrind.instr_at_start = match when.to_str() {
                Some("no") => AtStart::NotCounting,
                Some("inherit") => AtStart::Inherited,
                _ => AtStart::Counting,
            };
            Ok(())
        },
    ),
    opt(&["--collect-atstart"], Kind::Bool, "yes", "collect costs from the first instruction on", |o, v| {
        set(o, v, |s| &mut s.collect_at_start)
    }),
    opt(
        &["--toggle-collect"],
        ANY,
        "",
        "switch collection on at entering such functions and off at leaving them; nothing is collected at the start",
        |o, v| rule(o, v, Change::ToggleCollect),
    ),
    opt(
        &["--tell-calls"],
        Kind::Bool,
        "no",
        "tell every block and call, rather than let emitted code follow them",
        |o, v| set(o, v, |s| &mut s.tell_calls),
    ),
    opt(
        &["--told-first"],
        Kind::Int { min: 0, max: 1 << 30 },
        "",
        "tell calls for so many milliseconds before emitted code follows them (as long as asking what they come to would take)",
        |o, v| {
            if let Value::Int(ms) = v {
                o.callgrind.told_for = Some(Duration::from_millis(ms.unsigned_abs()));
            }
            Ok(())
        },
    ),
    opt(
        &["--frames"],
        Kind::Choice(&["no", "python"]),
        "no",
        "show functions of a program that is interpreted, with what they cost in all, between those of its interpreter (python: CPython \
         3.8 to 3.14)",
        |o, v| {
            let Value::Text(which) = v else { return Ok(()) };
            o.callgrind.frames = (which == Language::Python.option()).then_some(Language::Python);
            Ok(())
        },
    ),
    opt(&["--collect-jumps", "--trace-jump"], Kind::Bool, "no", "count jumps", |o, v| {
        set(o, v, |s| &mut s.collect_jumps)
    }),
    opt(&["--collect-bus"], Kind::Bool, "no", "count locked instructions (Ge)", |o, v| {
        set(o, v, |s| &mut s.collect_bus)
    }),
    opt(
        &["--collect-systime"],
        Kind::Choice(&["no", "yes", "msec", "usec", "nsec"]),
        "no",
        "count system calls and the time in them, in this unit (yes: msec)",
        |o, v| {
            let Value::Text(unit) = v else { return Ok(()) };
            o.callgrind.collect_systime = match unit.to_str() {
                Some("yes" | "msec") => Some(SystemTime::Milliseconds),
                Some("usec") => Some(SystemTime::Microseconds),
                Some("nsec") => Some(SystemTime::Nanoseconds),
                _ => None,
            };
            Ok(())
        },
    ),
    // What is kept apart.
    opt(
        &["--separate-threads"],
        Kind::Choice(&["no", "yes", "system"]),
        "no",
        "write a profile for each thread (system: by the kernel's numbers, which yes means with --instr-atstart=inherit)",
        |o, v| {
            let Value::Text(how) = v else { return Ok(()) };
            o.callgrind.separate_threads = match how.to_str() {
                Some("yes") => Threads::Apart,
                Some("system") => Threads::ByKernel,
                _ => Threads::Together,
            };
            Ok(())
        },
    ),
    opt(
        &["--fork-costs"],
        Kind::Choice(&["inherit", "zero"]),
        "",
        "what the profile of a forked process begins with: what its parent had collected, or nothing, and then parts tell which \
         processes were created (inherit; zero with --instr-atstart=inherit)",
        |o, v| {
            let Value::Text(how) = v else { return Ok(()) };
            let zero = how.to_str() == Some("zero");
            o.callgrind.forks = Some(if zero { ForkCosts::Zero } else { ForkCosts::Inherited });
            Ok(())
        },
    ),
    opt(
        &["--separate-callers"],
        Kind::IntOr(u16::MAX as i64, "all"),
        "0",
        "tell functions apart by so many callers; --separate-callers<number>=<function> does for such functions. all: \
         record whole chains of calls, as a tree beside the functions",
        |o, v| {
            o.callgrind.separate_callers = small(v);
            o.callgrind.whole_chains = matches!(v, Value::Text(_));
            Ok(())
        },
    ),
    opt(
        &["--context-limit"],
        Kind::Int { min: 1, max: 1 << 30 },
        "1000000",
        "with --separate-callers=all: tell at most so many chains of calls apart; what comes beyond is told by function",
        |o, v| {
            if let Value::Int(n) = v {
                o.callgrind.chain_limit = usize::try_from(n).unwrap_or(usize::MAX);
            }
            Ok(())
        },
    ),
    opt(
        &["--separate-recs"],
        COUNT,
        "2",
        "tell so many levels of recursion apart; --separate-recs<number>=<function> does for such functions",
        |o, v| {
            o.callgrind.separate_recs = small(v);
            Ok(())
        },
    ),
    opt(&["--skip-plt"], Kind::Bool, "yes", "leave out stubs of the procedure linkage table", |o, v| {
        set(o, v, |s| &mut s.skip_plt)
    }),
    opt(
        &["--skip-direct-rec"],
        Kind::Bool,
        "no",
        "a function that calls itself stays at its level of recursion",
        |o, v| set(o, v, |s| &mut s.skip_direct_rec),
    ),
    opt(&["--fn-skip"], ANY, "", "leave out such functions: what they cost is their callers'", |o, v| {
        rule(o, v, Change::Skip)
    }),
    opt(
        &["--obj-skip"],
        Kind::Text("path"),
        "",
        "leave out all functions of the object at this path, as --fn-skip does; may be given several times",
        |o, v| {
            if let Value::Text(path) = v {
                o.callgrind.obj_skip.push(path.as_bytes().to_vec());
            }
            Ok(())
        },
    ),
    opt(&["--pop-on-jump"], ANY, "", "a jump out of such functions is a call by their callers", |o, v| {
        rule(o, v, Change::PopOnJump)
    }),
    // Simulation.
    opt(
        &["--cache-sim", "--simulate-cache"],
        Kind::Bool,
        "no",
        "simulate caches: count reads, writes, and misses of the first and of the last level",
        |o, v| {
            o.cache_sim = v.is_yes();
            Ok(())
        },
    ),
    opt(&["--branch-sim"], Kind::Bool, "no", "simulate branch prediction", |o, v| {
        o.branch_sim = v.is_yes();
        Ok(())
    }),
    opt(
        &["--cycle-estimation"],
        Kind::Bool,
        "no",
        "estimate cycles by a static model, in hundredths: of each instruction by reciprocal throughput (Ct) and latency (Cl), of \
         each block by what bounds it (Cb); calls are told for that, see --tell-calls",
        |o, v| shared(o, v, "--cycle-estimation"),
    ),
    opt(
        &["--cycle-model"],
        Kind::Choice(CYCLE_MODELS),
        "skylake",
        "the processor whose model estimates cycles",
        |o, v| shared(o, v, "--cycle-model"),
    ),
    opt(
        &["--simulate-wb"],
        Kind::Bool,
        "no",
        "simulate a last-level cache that writes back; implies --cache-sim=yes",
        |o, v| {
            o.cache_sim = true;
            set(o, v, |s| &mut s.simulate_wb)
        },
    ),
    opt(&["--simulate-hwpref"], Kind::Bool, "no", "simulate a prefetcher; implies --cache-sim=yes", |o, v| {
        o.cache_sim = true;
        set(o, v, |s| &mut s.simulate_hwpref)
    }),
    opt(
        &["--cacheuse"],
        Kind::Choice(&["no", "yes", "self"]),
        "no",
        "tell how well cache lines were used, by instruction and call (self: by instruction only); implies \
         --cache-sim=yes and --dump-instr=yes",
        |o, v| {
            let Value::Text(word) = v else { return Ok(()) };
            o.cache_sim = true;
            o.callgrind.cache_use = match word.to_str() {
                Some("yes") => CacheUse::Yes,
                Some("self") => CacheUse::SelfOnly,
                _ => CacheUse::No,
            };
            Ok(())
        },
    ),
    opt(&["--I1"], levels::FIRST, "", "the first-level instruction cache; implies --cache-sim=yes", |o, v| {
        cache(o, v, "--I1")
    }),
    opt(&["--D1"], levels::FIRST, "", "the first-level data cache; implies --cache-sim=yes", |o, v| {
        cache(o, v, "--D1")
    }),
    opt(
        &["--LL"],
        levels::WITH_POLICY,
        "",
        "the last-level cache, and which line it replaces (see cachegrind's); implies --cache-sim=yes",
        |o, v| cache(o, v, "--LL"),
    ),
    opt(
        &["--L2"],
        levels::WITH_POLICY,
        "",
        "a second level of each thread's between these; in Valgrind another name of --LL; implies --cache-sim=yes",
        |o, v| cache(o, v, "--L2"),
    ),
    opt(
        &["--inclusion"],
        levels::INCLUSION,
        "none",
        "what the last level holds of the second; implies --cache-sim=yes",
        |o, v| cache(o, v, "--inclusion"),
    ),
    opt(
        &["--prefetcher"],
        levels::PREFETCH,
        "none",
        "what is loaded into L2 (into LL without L2) before it is asked for; implies --cache-sim=yes",
        |o, v| cache(o, v, "--prefetcher"),
    ),
    opt(
        &["--machine"],
        levels::NAME,
        "",
        "simulate the caches of this processor; help lists them; implies --cache-sim=yes",
        |o, v| cache(o, v, "--machine"),
    ),
    lacking(&["--dump-bb"], Kind::Bool, &["no"], "positions are instructions (--dump-instr) and lines"),
    lacking(&["--dump-bbs"], Kind::Bool, &["no"], "positions are instructions (--dump-instr) and lines"),
    opt(
        &["--objects"],
        Kind::Bool,
        "no",
        "count misses by data object, too, and by who misses them, as cachegrind does",
        |o, v| shared(o, v, "--objects"),
    ),
    opt(&["--alloc-fn"], Kind::Text("name[,size-arg[,count-arg]]"), "", "as cachegrind's", |o, v| {
        shared(o, v, "--alloc-fn")
    }),
    opt(&["--alloc-depth"], ALLOC_DEPTH, "1", "as cachegrind's", |o, v| shared(o, v, "--alloc-depth")),
    opt(&["--streams"], STREAMS, "no", "as cachegrind's", |o, v| shared(o, v, "--streams")),
    opt(
        &["--mem-out-file"],
        Kind::Text("file"),
        "mem.out.%p",
        "with --objects=yes: the file of data objects, as cachegrind's; of earlier parts FILE.N, as of profiles",
        |o, v| shared(o, v, "--mem-out-file"),
    ),
    opt(
        &["--collect-alloc"],
        Kind::Bool,
        "no",
        "count calls of allocators and the bytes that they were asked for (allocCount, allocSize), where they are called",
        |o, v| {
            o.callgrind.collect_alloc = v.is_yes();
            shared(o, v, "--collect-alloc")
        },
    ),
    lacking(&["--mangle-names"], Kind::Bool, &["yes"], "use --demangle=no for names as the linker has them"),
    lacking(&["--compress-mangled"], Kind::Bool, &["no"], "names are written in full once (--compress-strings)"),
    ignored(&["--simulate-sectors"], Kind::Bool, "it has no effect in Valgrind either"),
    ignored(&["--ct-verbose"], Kind::Text("level"), "grind does not print its inner workings"),
    ignored(&["--ct-vstart"], Kind::Text("block"), "grind does not print its inner workings"),
];

/// The option of this name, whose value need be of its kind.
#[must_use]
pub fn find(name: &str) -> Option<&'static Opt> {
    let shared = || find_shared(name).filter(|option| !matches!(option.role, Role::Tool(_)));
    OPTIONS.iter().find(|option| option.names.contains(&name)).or_else(shared)
}

/// What an option with a number in its name, such as `--separate-callers3=main`, wants of functions; none if it is no such
/// option. The number must be positive.
#[must_use]
pub fn numbered(name: &str) -> Option<Change> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (name, number) = name.split_at(name.len() - digits);
    let number: u16 = number.parse().ok().filter(|n| *n > 0)?;
    match name {
        "--separate-callers" => Some(Change::Callers(number)),
        "--separate-recs" => Some(Change::Recursions(number)),
        "--fn-group" => Some(Change::Group(u32::from(number))),
        _ => None,
    }
}

/// Applies an option with a number in its name.
///
/// # Errors
/// The lines to show if there is no name of a function.
pub fn apply_numbered(
    settings: &mut Settings,
    name: &str,
    change: Change,
    value: Option<&OsStr>,
) -> Result<(), Vec<String>> {
    let Value::Text(pattern) = ANY.check(name, value)? else { return Ok(()) };
    settings.add_rule(pattern, change);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_defaults_are_of_their_kind() {
        let mut seen = HashSet::new();
        for option in OPTIONS {
            for name in option.names {
                assert!(seen.insert(*name), "{name} twice");
                assert!(find(name).is_some());
            }
            if !option.default.is_empty() {
                option.kind.check(option.names[0], Some(option.default.as_ref())).expect("a default is valid");
            }
        }
    }

    #[test]
    fn numbers_are_part_of_names() {
        assert_eq!(numbered("--separate-callers3"), Some(Change::Callers(3)));
        assert_eq!(numbered("--separate-recs12"), Some(Change::Recursions(12)));
        assert_eq!(numbered("--fn-group7"), Some(Change::Group(7)));
        for name in
            ["--separate-callers", "--separate-callers0", "--separate-callersx", "--fn-group99999", "--LL2", "12", ""]
        {
            assert_eq!(numbered(name), None, "{name}");
        }
    }

    #[test]
    fn cachegrinds_own_options_are_not_callgrinds() {
        for name in ["--cachegrind-out-file", "--instr-at-start"] {
            assert!(find(name).is_none() && find_shared(name).is_some(), "{name}");
        }
        for name in ["-v", "--log-file", "--demangle", "--xml", "--tool"] {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
