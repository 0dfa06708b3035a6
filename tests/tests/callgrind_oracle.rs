//! The call graph of whole programs, beside Valgrind's: the same self costs, arcs, call counts and inclusive costs, address by
//! address.
//!
//! What may differ, and why: the reference loses the block that ends the program, so the costs of its instructions, and of the
//! calls that it lies in, are larger by that block here; it puts code of its own in place of what returns from signal handlers;
//! and self costs and inclusive costs of signal handlers' ends are told apart by nothing else. Programs without libc must agree
//! in everything else; dynamic ones in all functions outside the loader that both have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cg_format::callgrind::laws::roots;
use cg_format::callgrind::{Profile, Site, read_profile};
use grind_tests::build::{self, Source};
use grind_tests::compare::assert_none;
use grind_tests::{laws, run, tools};

/// One part of a profile, by function and address (within the object).
#[derive(Clone, Debug, Default)]
struct Part {
    ir: BTreeMap<(String, u64), u64>,
    /// By caller, call site, callee and target: calls and inclusive cost.
    arcs: BTreeMap<(String, u64, String, u64), (u64, u64)>,
    jumps: BTreeMap<(String, u64, u64), u64>,
    summary: u64,
    totals: u64,
}

fn hex(word: &str) -> u64 {
    u64::from_str_radix(word.strip_prefix("0x").expect("an address"), 16).expect("an address")
}

/// Reads a part with addresses and without any compression.
fn parse(text: &str) -> Part {
    let mut part = Part::default();
    let (mut function, mut callee) = (String::new(), String::new());
    let mut call: Option<(u64, u64)> = None;
    let number = |text: &str| text.split_whitespace().next().map_or(0, |w| w.parse().expect("a number"));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("summary:") {
            part.summary = number(rest);
        } else if let Some(rest) = line.strip_prefix("totals:") {
            part.totals = number(rest);
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("calls=") {
            let (count, target) = rest.trim().split_once(' ').expect("a count and a target");
            call = Some((count.parse().expect("a count"), hex(target)));
        } else if let Some(rest) = line.strip_prefix("jump=").or_else(|| line.strip_prefix("jcnd=")) {
            let (count, target) = rest.trim().split_once(' ').expect("a count and a target");
            call = Some((count.split('/').next().map_or(0, number), hex(target)));
            callee = "a jump".into();
        } else if line.starts_with("0x") {
            let (addr, costs) = line.split_once(' ').unwrap_or((line, ""));
            let (addr, cost) = (hex(addr), number(costs));
            match call.take() {
                None => *part.ir.entry((function.clone(), addr)).or_default() += cost,
                Some((count, target)) if callee == "a jump" => {
                    *part.jumps.entry((function.clone(), addr, target)).or_default() += count;
                }
                Some((count, target)) => {
                    let arc = part.arcs.entry((function.clone(), addr, callee.clone(), target)).or_default();
                    arc.0 += count;
                    arc.1 += cost;
                }
            }
        }
    }
    part.ir.retain(|_, n| *n != 0);
    part
}

/// Runs `profiler`; its parts in order, the last one at the program's end.
fn profiled(profiler: &[String], options: &[&str], program: &[&str], dir: &Path) -> Vec<Part> {
    let out = dir.join(format!("profile-of-{}", profiler.len()));
    let mut words = profiler.to_vec();
    words
        .extend(["--dump-instr=yes", "--dump-line=no", "--compress-strings=no", "--compress-pos=no"].map(String::from));
    words.push(format!("--callgrind-out-file={}", out.display()));
    words.extend(options.iter().chain(program).map(|w| (*w).to_owned()));
    let output = run::command(&words, dir).output().expect("the profiler runs");
    assert!(out.is_file(), "no profile: {}", String::from_utf8_lossy(&output.stderr));
    let numbered = |i: usize| PathBuf::from(format!("{}.{i}", out.display()));
    let mut files: Vec<_> = (1..).map(numbered).take_while(|p| p.is_file()).collect();
    files.push(out);
    files.iter().map(|p| parse(&std::fs::read_to_string(p).expect("a profile"))).collect()
}

fn grind() -> Vec<String> {
    [tools::under_test(), &["--tool=callgrind".to_owned()]].concat()
}

fn reference() -> Vec<String> {
    ["valgrind", "-q", "--tool=callgrind", "--vex-guest-chase=no"].map(String::from).to_vec()
}

/// Lines for everything that differs, but for what `fine` holds for.
fn differences<K: Ord + std::fmt::Debug + Clone, V: PartialEq + std::fmt::Debug + Copy + Default>(
    what: &str,
    expected: &BTreeMap<K, V>,
    got: &BTreeMap<K, V>,
    fine: impl Fn(V, V) -> bool,
) -> Vec<String> {
    let keys: BTreeSet<_> = expected.keys().chain(got.keys()).collect();
    let value = |m: &BTreeMap<K, V>, k| m.get(k).copied().unwrap_or_default();
    keys.into_iter()
        .map(|k| (k, value(expected, k), value(got, k)))
        .filter(|(_, e, g)| e != g && !fine(*e, *g))
        .map(|(k, e, g)| format!("{what} {k:x?}: expected {e:?}, got {g:?}"))
        .collect()
}

/// The code that hands back from a signal handler is not the program's own under the reference.
fn without_restorer(mut part: Part) -> Part {
    part.ir.retain(|(name, _), _| name != "restore");
    part
}

fn static_program(folder: &str, name: &str, options: &[&str]) {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    let source = Source::open(folder, name);
    if !source.runs_here() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = source.build(dir.path(), true).display().to_string();
    let expected = profiled(&reference(), options, &[&path], dir.path());
    let got = profiled(&grind(), options, &[&path], dir.path());
    assert_eq!(got.len(), expected.len(), "{name} {options:?}: number of parts");
    assert!(!expected.iter().all(|part| part.arcs.is_empty()), "{name}: the reference saw no call");
    let parts = got.len();
    for (i, (got, expected)) in got.into_iter().zip(&expected).enumerate() {
        assert_eq!(got.summary, got.totals, "{name} {options:?}: summary and totals");
        assert_eq!(got.summary, got.ir.values().sum::<u64>(), "{name} {options:?}: summary and rows");
        let got = without_restorer(got);
        // The last block, which the reference does not have: instructions that it lacks one execution of.
        let end = i + 1 == parts;
        let lost =
            got.ir.iter().filter(|(k, n)| end && **n == expected.ir.get(k).copied().unwrap_or(0) + 1).count() as u64;
        let functions: BTreeSet<&String> = got
            .ir
            .iter()
            .filter(|(k, n)| end && **n == expected.ir.get(k).copied().unwrap_or(0) + 1)
            .map(|((f, _), _)| f)
            .collect();
        let mut all = Vec::new();
        if functions.len() > 1 || lost > 16 {
            all.push(format!("more than one block was lost: {lost} in {functions:?}"));
        }
        all.extend(differences("cost", &expected.ir, &got.ir, |e, g| end && g == e + 1));
        all.extend(differences("arc", &expected.arcs, &got.arcs, |e, g| end && e.0 == g.0 && g.1 == e.1 + lost));
        if options.contains(&"--collect-jumps=yes") {
            all.extend(differences("jump", &expected.jumps, &got.jumps, |_, _| false));
        }
        assert_none(&format!("{name} {options:?}, part {}", i + 1), &all);
    }
}

macro_rules! programs {
    ($folder:literal: $($name:ident)*) => {
        $(#[test] fn $name() { static_program($folder, stringify!($name), &[]); })*
    };
}

programs! { "programs": callret c_sort c_signals c_interpreter jumptable selfloops redzone loops flags rep_strings midinsn }

const CALLS: &str = "../cg-calls/tests/programs";

programs! { "../cg-calls/tests/programs": kinds handlers }

#[test]
fn separate_callers() {
    for program in ["kinds", "handlers"] {
        static_program(CALLS, program, &["--separate-callers=2"]);
    }
    static_program(CALLS, "kinds", &["--separate-callers3=fib"]);
}

#[test]
fn separate_recursions() {
    static_program(CALLS, "kinds", &["--separate-recs=1", "--separate-recs4=fib"]);
    static_program(CALLS, "kinds", &["--skip-direct-rec=yes"]);
}

#[test]
fn skipped_functions() {
    let options = &["--fn-skip=sort", "--fn-skip=catcher", "--fn-skip=fib", "--fn-skip=up"];
    static_program(CALLS, "kinds", options);
}

#[test]
fn toggled_collection() {
    static_program(CALLS, "kinds", &["--toggle-collect=sort", "--toggle-collect=catcher"]);
}

#[test]
fn dumps_and_zeroes() {
    static_program(CALLS, "kinds", &["--dump-after=sort", "--dump-after=even"]);
    static_program(CALLS, "kinds", &["--zero-before=fib"]);
}

#[test]
fn jumps() {
    for program in ["kinds", "handlers"] {
        static_program(CALLS, program, &["--collect-jumps=yes"]);
    }
}

/// Contexts or not: without them, self costs are those of the address's function.
#[test]
fn without_contexts() {
    for program in ["kinds", "handlers"] {
        static_program(CALLS, program, &["--separate-recs=1"]);
    }
}

/// Calls between functions that are not the loader's: by caller and callee, calls and inclusive costs.
fn calls_outside_the_loader(path: &Path) -> BTreeMap<(String, String), (u64, u64)> {
    let text = std::fs::read_to_string(path).expect("a profile");
    let (mut object, mut function) = (String::new(), String::new());
    let (mut called, mut callee) = (None, String::new());
    let mut call = None;
    let mut arcs = BTreeMap::new();
    let number = |text: &str| text.split_whitespace().next().map_or(0, |w| w.parse().expect("a number"));
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name.to_owned();
        } else if let Some(name) = line.strip_prefix("cob=") {
            called = Some(name.to_owned());
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("calls=") {
            call = Some(number(rest));
        } else if line.starts_with("0x") {
            let cost = number(line.split_once(' ').map_or("", |(_, costs)| costs));
            let Some(calls) = call.take() else { continue };
            let to = called.take().unwrap_or_else(|| object.clone());
            if !object.contains("/ld-") && !to.contains("/ld-") {
                let arc: &mut (u64, u64) = arcs.entry((function.clone(), callee.clone())).or_default();
                arc.0 += calls;
                arc.1 += cost;
            }
        }
    }
    arcs
}

/// A dynamic program, bound before it begins. What may differ: functions that are told by their addresses alone, and all that
/// the loader's own work at start and end is part of.
#[test]
fn dynamic_program() {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    const AROUND: &[&str] =
        &["(below main)", "__libc_start", "call_init", "exit", "__run_exit_handlers", "__cxa_finalize", "_dl_", "???"];
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = Source::open("dynamic", "c_program").build(dir.path(), false).display().to_string();
    let profile = |profiler: Vec<String>| {
        let out = dir.path().join("profile");
        let mut words = profiler;
        let format = ["--dump-instr=yes", "--dump-line=no", "--compress-strings=no", "--compress-pos=no"];
        words.extend(format.map(String::from));
        words.extend([format!("--callgrind-out-file={}", out.display()), path.clone()]);
        let output = run::command(&words, dir.path()).env("LD_BIND_NOW", "1").output().expect("the profiler runs");
        assert!(out.is_file(), "no profile: {}", String::from_utf8_lossy(&output.stderr));
        calls_outside_the_loader(&out)
    };
    let judged = |arcs: BTreeMap<(String, String), (u64, u64)>| -> BTreeMap<(String, String), (u64, u64)> {
        let around = |name: &str| name.starts_with("0x") || AROUND.iter().any(|a| name.starts_with(a));
        arcs.into_iter().filter(|((from, to), _)| !around(from) && !around(to)).collect()
    };
    let (expected, got) = (judged(profile(reference())), judged(profile(grind())));
    assert!(expected.len() > 20, "only {} arcs to judge by", expected.len());
    assert_none("dynamic program", &differences("arc", &expected, &got, |_, _| false));
}

/// Functions below `main` have one name, also where one calls the other (as in static programs): they are levels of recursion,
/// so that one of them is the root.
#[test]
fn code_below_main_has_a_root() {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (dir.path().join("below.c"), dir.path().join("below"));
    std::fs::write(&source, "#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }\n").expect("a source");
    let words = ["gcc", "-O1", "-g", "-static", "-o"].map(String::from).into_iter();
    build::compile(&words.chain([&program, &source].map(|p| p.display().to_string())).collect::<Vec<_>>(), dir.path());
    let profile = |profiler: Vec<String>| {
        let out = dir.path().join("out");
        let mut words = profiler;
        words.extend([format!("--callgrind-out-file={}", out.display()), program.display().to_string()]);
        assert!(run::command(&words, dir.path()).output().expect("the profiler runs").status.success());
        let text = std::fs::read(&out).expect("a profile");
        laws::check(&text, "below");
        read_profile(&text[..], "below").expect("a profile")
    };
    // Who calls whom there, and how often.
    let around = |profile: &Profile| {
        let name = |f| String::from_utf8_lossy(profile.names.function_name(f)).into_owned();
        let mut calls = BTreeSet::new();
        for body in profile.parts[0].bodies() {
            for entry in &body.entries {
                if let Site::Call { call, .. } = entry.site {
                    calls.insert((name(body.function), name(call.callee), call.count));
                }
            }
        }
        calls.retain(|(from, to, _)| from.starts_with("(below") && (to.starts_with("(below") || to == "main"));
        calls
    };
    let (ours, theirs) = (profile(grind()), profile(reference()));
    assert_eq!(around(&ours), around(&theirs));
    assert!(around(&ours).iter().any(|(from, to, _)| (&**from, &**to) == ("(below main)", "(below main)'2")));
    let roots: Vec<_> = roots(&ours.parts[0], &ours.names).iter().map(|(f, _)| ours.names.function_name(*f)).collect();
    assert_eq!(roots, [b"(below main)"]);
}

/// Threads have the numbers that the reference gives them: the lowest that is free.
#[test]
fn threads_apart() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = Source::open("programs", "c_threads").build(dir.path(), true).display().to_string();
    let out = dir.path().join("profile");
    let mut words = grind();
    words.extend(["--separate-threads=yes".into(), format!("--callgrind-out-file={}", out.display()), path]);
    let output = run::command(&words, dir.path()).output().expect("grind runs");
    let file = |n: u32| std::fs::read_to_string(format!("{}-{n:02}", out.display()));
    let texts = [1, 2].map(|n| file(n).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr))));
    for (n, text) in (1..).zip(&texts) {
        assert!(text.contains(&format!("\nthread: {n}\n")), "{text}");
    }
    assert!(texts[0].contains("(below main)") && !texts[1].contains("(below main)"));
}

/// Threads apart and parts combined: one file has all threads, as the reference's.
#[test]
fn threads_in_one_file() {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = Source::open("programs", "c_threads").build(dir.path(), true).display().to_string();
    let parts = |profiler: Vec<String>, name: &str| -> Vec<String> {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let mut words = profiler;
        words.extend(
            ["--separate-threads=yes", "--combine-dumps=yes", "--callgrind-out-file=out", &path].map(Into::into),
        );
        let output = run::command(&words, &folder).output().expect("the profiler runs");
        let files: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().map(|e| e.file_name()).collect();
        assert_eq!(files, ["out"], "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(folder.join("out")).expect("a profile");
        text.lines().filter(|l| l.starts_with("part: ") || l.starts_with("thread: ")).map(str::to_owned).collect()
    };
    // How many numbers there are depends on whether a thread has ended before the next one begins.
    for (profiler, name) in [(reference(), "reference"), (grind(), "grind")] {
        let found = parts(profiler, name);
        let threads = found.len() / 2;
        assert!(threads > 1, "{name}: {found:?}");
        let expected = (1..=threads).flat_map(|thread| ["part: 1".to_owned(), format!("thread: {thread}")]);
        assert_eq!(found, expected.collect::<Vec<_>>(), "{name}");
    }
}
