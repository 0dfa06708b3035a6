//! The model against the reference: static programs without libc, stepped through natively, give the same self costs, arcs,
//! call counts and inclusive costs as under Valgrind's Callgrind, address by address.
//!
//! What is not compared: the cost of the block that ends the program, which the reference loses, and the code that returns
//! from signal handlers, which the reference puts its own in place of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stepped::{Named, Program, profile};
use cg_calls::{Config, Function};
use grind_tests::build::Source;
use grind_tests::tools;

/// Runs the reference; its parts in order, the last one at the program's end.
fn reference(program: &Path, dir: &Path, options: &[&str]) -> Vec<Named> {
    let out = dir.join("reference");
    let status = Command::new("valgrind")
        .args(["-q", "--tool=callgrind", "--vex-guest-chase=no", "--dump-instr=yes", "--dump-line=no"])
        .args(["--compress-strings=no", "--compress-pos=no", "--trace-children=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .args(options)
        .arg(program)
        .current_dir(dir)
        .env_clear()
        .output()
        .expect("the reference runs");
    assert!(out.is_file(), "no profile: {}", String::from_utf8_lossy(&status.stderr));
    let numbered = |i: usize| PathBuf::from(format!("{}.{i}", out.display()));
    let mut parts: Vec<_> = (1..).map(numbered).take_while(|p| p.is_file()).collect();
    parts.push(out);
    parts.iter().map(|p| parse(&std::fs::read_to_string(p).expect("a profile"))).collect()
}

fn hex(word: &str) -> u64 {
    u64::from_str_radix(word.strip_prefix("0x").expect("an address"), 16).expect("an address")
}

/// Reads a profile with addresses and without any compression.
fn parse(text: &str) -> Named {
    let mut named = Named::default();
    let (mut function, mut callee) = (String::new(), String::new());
    let mut call: Option<(u64, u64)> = None;
    let mut body = false;
    for line in text.lines() {
        body |= line.starts_with("fn=");
        if !body || line.starts_with("totals:") {
            continue;
        }
        if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("calls=") {
            let (count, target) = rest.trim().split_once(' ').expect("a count and a target");
            call = Some((count.parse().expect("a count"), hex(target)));
        } else if let Some(rest) = line.strip_prefix("jump=").or_else(|| line.strip_prefix("jcnd=")) {
            let (count, target) = rest.trim().split_once(' ').expect("a count and a target");
            let count = count.split('/').next().and_then(|n| n.parse().ok()).expect("a count");
            call = Some((count, hex(target)));
            callee = "a jump".into();
        } else if line.starts_with("0x") {
            let mut words = line.split_whitespace();
            let addr = hex(words.next().expect("an address"));
            let cost: u64 = words.next().map_or(0, |w| w.parse().expect("a cost"));
            match call.take() {
                None => *named.ir.entry((function.clone(), addr)).or_default() += cost,
                Some((count, target)) if callee == "a jump" => {
                    *named.jumps.entry((function.clone(), addr, target)).or_default() += count;
                }
                Some((count, target)) => {
                    let arc = named.arcs.entry((function.clone(), addr, callee.clone(), target)).or_default();
                    arc.0 += count;
                    arc.1 += cost;
                }
            }
        }
    }
    named.ir.retain(|_, n| *n != 0);
    named
}

/// Lines for everything that differs.
fn differences<K: Ord + std::fmt::Debug + Clone, V: PartialEq + std::fmt::Debug>(
    expected: &BTreeMap<K, V>,
    got: &BTreeMap<K, V>,
) -> Vec<String> {
    let keys: std::collections::BTreeSet<_> = expected.keys().chain(got.keys()).collect();
    keys.into_iter()
        .filter(|k| expected.get(k) != got.get(k))
        .map(|k| format!("{k:x?}: expected {:?}, got {:?}", expected.get(k), got.get(k)))
        .collect()
}

/// The code that hands back from a signal handler is not the program's own under the reference.
fn without_restorer(mut named: Named) -> Named {
    named.ir.retain(|(name, _), _| name != "restore");
    named
}

/// What a test asks both for.
struct Wish<'a> {
    folder: &'a str,
    program: &'a str,
    options: &'a [&'a str],
    config: Config,
    about: fn(&str) -> Function,
}

/// Self costs by address alone.
fn by_address(named: &Named) -> BTreeMap<u64, u64> {
    let mut sums = BTreeMap::new();
    for ((_, addr), n) in &named.ir {
        *sums.entry(*addr).or_default() += n;
    }
    sums
}

/// With contexts: all self costs, arcs and parts must be equal.
fn check(wish: &Wish<'_>) {
    if !tools::have(&["valgrind", "gcc", "nm"]) {
        return;
    }
    let source = Source::open(wish.folder, wish.program);
    if !source.runs_here() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = source.build(dir.path(), true);
    let expected = reference(&path, dir.path(), wish.options);
    let mut program = Program::open(&path, Box::new(wish.about)).expect("a program");
    let instrumented = !wish.options.contains(&"--instr-atstart=no");
    let got = profile(&mut program, &path, wish.config.clone(), instrumented, true).unwrap_or_else(|e| panic!("{e:#}"));
    assert_eq!(got.len(), expected.len(), "{}: number of parts", wish.program);
    assert!(!expected.iter().all(|part| part.arcs.is_empty()), "{}: the reference saw no call", wish.program);
    for (i, (got, expected)) in got.into_iter().zip(&expected).enumerate() {
        let got = without_restorer(got);
        // Without contexts a cost is its address's function's, even if that was only borrowed by another one.
        let mut all = match wish.config.contexts {
            true => differences(&expected.ir, &got.ir),
            false => differences(&by_address(expected), &by_address(&got)),
        };
        all.extend(differences(&expected.arcs, &got.arcs));
        if wish.config.collect_jumps {
            all.extend(differences(&expected.jumps, &got.jumps));
        }
        let shown = &all[..all.len().min(60)];
        assert!(
            all.is_empty(),
            "{} {:?}, part {}: {} differ\n{}",
            wish.program,
            wish.options,
            i + 1,
            all.len(),
            shown.join("\n")
        );
    }
}

/// The defaults of the reference.
fn defaults(_: &str) -> Function {
    Function { separate_recs: 2, ..Function::PLAIN }
}

fn contexts() -> Config {
    Config { contexts: true, ..Config::arcs_only(1) }
}

macro_rules! programs {
    ($folder:literal: $($name:ident)*) => {
        $(#[test] fn $name() {
            let wish = Wish { folder: $folder, program: stringify!($name), options: &[], config: contexts(), about: defaults };
            check(&wish);
        })*
    };
}

programs! { "../tests/programs": callret c_sort c_signals c_interpreter jumptable selfloops redzone loops flags }

programs! { "../cg-calls/tests/programs": kinds handlers }

const OURS: &str = "../cg-calls/tests/programs";

fn with_callers(_: &str) -> Function {
    Function { separate_callers: 2, separate_recs: 2, ..Function::PLAIN }
}

#[test]
fn separate_callers() {
    for program in ["kinds", "handlers"] {
        let config = Config { most_callers: 2, ..contexts() };
        check(&Wish { folder: OURS, program, options: &["--separate-callers=2"], config, about: with_callers });
    }
}

#[test]
fn separate_callers_of_one_function() {
    let about = |name: &str| Function { separate_callers: if name == "fib" { 3 } else { 0 }, ..defaults(name) };
    let config = Config { most_callers: 3, ..contexts() };
    check(&Wish { folder: OURS, program: "kinds", options: &["--separate-callers3=fib"], config, about });
}

#[test]
fn separate_recursions() {
    let about = |name: &str| Function { separate_recs: if name == "fib" { 4 } else { 1 }, ..Function::PLAIN };
    let options = &["--separate-recs=1", "--separate-recs4=fib"];
    check(&Wish { folder: OURS, program: "kinds", options, config: contexts(), about });
}

#[test]
fn skipped_functions() {
    let about = |name: &str| Function { skip: ["sort", "catcher", "fib", "up"].contains(&name), ..defaults(name) };
    let options = &["--fn-skip=sort", "--fn-skip=catcher", "--fn-skip=fib", "--fn-skip=up"];
    // Skipping in signal handlers is beyond the reference: it shows arcs from the code that returns from the handler.
    check(&Wish { folder: OURS, program: "kinds", options, config: contexts(), about });
}

#[test]
fn skipped_recursion() {
    let config = Config { skip_direct_recursion: true, ..contexts() };
    check(&Wish { folder: OURS, program: "kinds", options: &["--skip-direct-rec=yes"], config, about: defaults });
}

#[test]
fn toggled_collection() {
    let about = |name: &str| Function { toggle_collect: name == "sort" || name == "catcher", ..defaults(name) };
    let config = Config { collect_at_start: false, ..contexts() };
    let options = &["--toggle-collect=sort", "--toggle-collect=catcher"];
    check(&Wish { folder: OURS, program: "kinds", options, config, about });
}

#[test]
fn dumps_after() {
    let about = |name: &str| Function { dump_after: name == "sort" || name == "even", ..defaults(name) };
    let options = &["--dump-after=sort", "--dump-after=even"];
    check(&Wish { folder: OURS, program: "kinds", options, config: contexts(), about });
}

#[test]
fn zero_before() {
    let about = |name: &str| Function { zero_before: name == "fib", ..defaults(name) };
    check(&Wish { folder: OURS, program: "kinds", options: &["--zero-before=fib"], config: contexts(), about });
}

#[test]
fn jumps() {
    let config = Config { collect_jumps: true, ..contexts() };
    for program in ["kinds", "handlers"] {
        let config = config.clone();
        check(&Wish { folder: OURS, program, options: &["--collect-jumps=yes"], config, about: defaults });
    }
}

#[test]
fn callers_that_nobody_saw() {
    let options = &["--instr-atstart=no"];
    check(&Wish { folder: OURS, program: "begun_inside", options, config: contexts(), about: defaults });
}

/// Without contexts, self costs are counted by address, apart from the model.
#[test]
fn without_contexts() {
    for program in ["kinds", "handlers"] {
        let options = &["--separate-recs=1"];
        check(&Wish { folder: OURS, program, options, config: Config::arcs_only(1), about: |_| Function::PLAIN });
    }
}

/// Nothing is lost, not even the last block: self costs are what was stepped through, and a root's inclusive cost is all.
#[test]
fn every_instruction_is_somewhere() {
    if !tools::have(&["gcc", "nm"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = Source::open(OURS, "kinds").build(dir.path(), true);
    let steps: u64 = grind_tests::step::count(&path, dir.path()).expect("steps").values().sum();
    let mut program = Program::open(&path, Box::new(defaults)).expect("a program");
    let parts = profile(&mut program, &path, contexts(), true, false).expect("a profile");
    assert_eq!(parts.len(), 1);
    let part = &parts[0];
    assert_eq!(part.ir.values().sum::<u64>(), steps);
    let root = |(name, ..): &&(String, u64)| name == "(below main)";
    let own: u64 = part.ir.iter().filter(|(k, _)| root(k)).map(|(_, n)| n).sum();
    let called: u64 = part.arcs.iter().filter(|(k, _)| k.0 == "(below main)").map(|(_, (_, n))| n).sum();
    assert_eq!(own + called, steps);
}
