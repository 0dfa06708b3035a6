//! Options of callgrind, and its client requests, beside Valgrind's: what each part of a profile tells about the functions of
//! the program itself. Costs that the two cannot share (the loader, the block that ends the program) lie elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cg_format::callgrind::{Names, Part, Profile, Site, read_profile};
use grind_tests::{run, tools};

const PROGRAM: &str = r#"
#include <callgrind.h>
static volatile unsigned sink;
__attribute__((noinline)) void leaf(unsigned n) { while (n--) sink += n & 1 ? 2 : 3; }
__attribute__((noinline)) void helper(unsigned n) { leaf(n); sink++; }
__attribute__((noinline)) void work(unsigned n) { leaf(n); helper(n / 2); sink += 2; }
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int odd(int n);
__attribute__((noinline)) int even(int n) { int r = n == 0 ? 1 : odd(n - 1); sink++; return r; }
__attribute__((noinline)) int odd(int n) { int r = n == 0 ? 0 : even(n - 1); sink++; return r; }
__attribute__((noinline)) void stage(unsigned n) { work(n); sink += fib(5) + even(5); }
int main(int argc, char **argv)
{
    (void)argv;
    stage(10);
#ifdef REQUESTS
    stage(100);
    CALLGRIND_DUMP_STATS;
    stage(1000);
    CALLGRIND_DUMP_STATS_AT("the second");
    stage(50);
    CALLGRIND_ZERO_STATS;
    work(70);
    CALLGRIND_TOGGLE_COLLECT;
    stage(600);
    CALLGRIND_TOGGLE_COLLECT;
    stage(31);
    CALLGRIND_STOP_INSTRUMENTATION;
    stage(800);
    CALLGRIND_START_INSTRUMENTATION;
    stage(20);
    CALLGRIND_DUMP_STATS;
#endif
    stage(90 + (unsigned)argc);
    return 0;
}
"#;

/// Functions whose rows are compared. `main` is not: where the tools are switched, its instructions are cut differently.
const OURS: [&str; 7] = ["leaf", "helper", "work", "fib", "even", "odd", "stage"];

/// What is compared of a part.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    trigger: String,
    thread: Option<u64>,
    /// Self cost by function, with recursion and callers, and line.
    own: BTreeMap<(String, u32), i64>,
    /// Calls and inclusive cost by caller, line and callee.
    calls: BTreeMap<(String, u32, String), (u64, i64)>,
    /// Jumps by function, line and target's line: how often.
    jumps: BTreeMap<(String, u32, u32), u64>,
}

fn ours(name: &str) -> bool {
    name.split('\'').all(|piece| piece.parse::<u32>().is_ok() || OURS.contains(&piece) || piece == "main")
        && !name.starts_with("main")
}

fn told(names: &Names, part: &Part) -> Told {
    let text = |id| String::from_utf8_lossy(names.function_name(id)).into_owned();
    let mut told = Told { thread: part.header.thread, ..Told::default() };
    for line in &part.header.desc {
        if let Some(trigger) = String::from_utf8_lossy(line).strip_prefix("Trigger: ") {
            told.trigger = trigger.to_owned();
        }
    }
    for body in part.bodies() {
        let function = text(body.function);
        if !ours(&function) {
            continue;
        }
        for entry in &body.entries {
            let line = entry.at.place.line;
            match &entry.site {
                Site::Row { costs } => *told.own.entry((function.clone(), line)).or_default() += body.costs(*costs)[0],
                Site::Call { call, costs } => {
                    let known = told.calls.entry((function.clone(), line, text(call.callee))).or_default();
                    known.0 += call.count;
                    known.1 += body.costs(*costs)[0];
                }
                Site::Jump(jump) => {
                    let n = match jump.kind {
                        cg_format::callgrind::JumpKind::Always { count } => count,
                        cg_format::callgrind::JumpKind::Conditional { taken, .. } => taken,
                    };
                    *told.jumps.entry((function.clone(), line, jump.target.place.line)).or_default() += n;
                }
            }
        }
    }
    told.own.retain(|_, cost| *cost != 0);
    told.calls.retain(|_, call| *call != (0, 0));
    told
}

/// The profile that `file` holds; its sums agree with its rows.
fn read(file: &Path) -> Profile {
    let text = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    read_profile(&text[..], &file.display().to_string()).unwrap_or_else(|e| panic!("{e}"))
}

/// The parts that `profiler` writes, in order of their numbers and threads.
fn parts(profiler: &[&str], options: &[&str], program: &Path) -> Vec<(String, Told)> {
    let dir = tempfile::tempdir().unwrap();
    let mut words: Vec<String> = profiler.iter().map(|w| (*w).to_owned()).collect();
    words.extend(["-q".to_owned(), "--tool=callgrind".to_owned(), "--callgrind-out-file=out".to_owned()]);
    words.extend(options.iter().map(|o| (*o).to_owned()));
    words.push(program.display().to_string());
    let done = run::command(&words, dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && err.is_empty(), "{words:?}: {}\n{err}", done.status);
    let mut found = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        // With threads apart, the reference leaves an empty file.
        if std::fs::metadata(&file).unwrap().len() == 0 {
            continue;
        }
        let profile = read(&file);
        for part in &profile.parts {
            let number = part.header.number.unwrap_or(0);
            found.push(((number, part.header.thread), name.clone(), told(&profile.names, part)));
        }
    }
    found.sort_by_key(|(key, ..)| *key);
    found.into_iter().map(|(_, name, told)| (name, told)).collect()
}

fn build(dir: &Path, name: &str, words: &[&str]) -> PathBuf {
    let (file, path) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, PROGRAM).unwrap();
    let include = tools::workspace_root().join("include");
    let mut command = Command::new("gcc");
    command.args(["-O1", "-g", "-fno-optimize-sibling-calls", "-fcf-protection=none", "-Wall", "-Werror", "-I"]);
    let built = command.arg(include).args(words).arg("-o").arg(&path).arg(&file).status().unwrap();
    assert!(built.success());
    path
}

fn describe<K: Ord + std::fmt::Debug + Clone, V: PartialEq + std::fmt::Debug>(
    what: &str,
    ours: &BTreeMap<K, V>,
    theirs: &BTreeMap<K, V>,
) -> Vec<String> {
    let keys: BTreeSet<&K> = ours.keys().chain(theirs.keys()).collect();
    keys.into_iter()
        .filter(|key| ours.get(key) != theirs.get(key))
        .map(|key| format!("{what} {key:?}: {:?}, the reference {:?}", ours.get(key), theirs.get(key)))
        .collect()
}

/// Both tools write the same parts, with the same contents.
fn same(options: &[&str], program: &Path) -> Vec<(String, Told)> {
    let grind: Vec<&str> = tools::under_test().iter().map(String::as_str).collect();
    let ours = parts(&grind, options, program);
    let theirs = parts(&["valgrind"], options, program);
    let names = |parts: &[(String, Told)]| -> Vec<(String, String, Option<u64>)> {
        parts.iter().map(|(name, told)| (name.clone(), told.trigger.clone(), told.thread)).collect()
    };
    assert_eq!(names(&ours), names(&theirs), "{options:?}");
    let mut wrong = Vec::new();
    for ((name, one), (_, two)) in ours.iter().zip(&theirs) {
        let mut differ = describe("self", &one.own, &two.own);
        differ.extend(describe("call", &one.calls, &two.calls));
        differ.extend(describe("jump", &one.jumps, &two.jumps));
        wrong.extend(differ.into_iter().map(|d| format!("{name}: {d}")));
    }
    assert!(wrong.is_empty(), "{options:?}:\n{}", wrong.join("\n"));
    ours
}

macro_rules! alike {
    ($($name:ident: $($option:literal)*;)*) => {
        $(#[test] fn $name() {
            if tools::have(&["gcc", "valgrind"]) {
                let dir = tempfile::tempdir().unwrap();
                let told = same(&[$($option),*], &build(dir.path(), "plain", &[]));
                let all: usize = told.iter().map(|(_, t)| t.own.len() + t.calls.len()).sum();
                assert!(all > 8, "almost nothing was compared: {told:?}");
            }
        })*
    };
}

alike! {
    by_default:;
    dump_before: "--dump-before=work";
    dump_before_a_pattern: "--dump-before=w*k" "--dump-before=h?lper";
    dump_after: "--dump-after=helper";
    dump_combined: "--dump-before=stage" "--combine-dumps=yes";
    zero_before: "--zero-before=helper";
    toggle_collect: "--toggle-collect=work";
    toggle_collect_in_recursion: "--toggle-collect=fib" "--toggle-collect=even";
    no_recursion_apart: "--separate-recs=1";
    three_recursions_apart: "--separate-recs=3";
    recursions_of_one_function: "--separate-recs4=fib";
    direct_recursion_skipped: "--skip-direct-rec=yes";
    callers_apart: "--separate-callers=2";
    callers_of_one_function: "--separate-callers1=leaf";
    skipped_functions: "--fn-skip=helper";
    by_instruction: "--dump-instr=yes";
    by_instruction_alone: "--dump-instr=yes" "--dump-line=no";
    without_compression: "--compress-strings=no" "--compress-pos=no";
    threads_apart: "--separate-threads=yes";
}

#[test]
fn client_requests() {
    if !tools::have(&["gcc", "valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "requests", &["-DREQUESTS"]);
    let told = same(&[], &program);
    let triggers: Vec<&str> = told.iter().map(|(_, t)| t.trigger.as_str()).collect();
    assert_eq!(triggers, ["Client Request", "Client Request: the second", "Client Request", "Program termination"]);
    same(&["--combine-dumps=yes"], &program);
    same(&["--instr-atstart=no"], &program);
    same(&["--collect-atstart=no"], &program);
}

/// The reference dumps where its scheduler happens to look: only the sum can be compared.
#[test]
fn dumps_every_so_many_blocks() {
    if !tools::have(&["gcc", "valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "plain", &[]);
    let grind: Vec<&str> = tools::under_test().iter().map(String::as_str).collect();
    let several = parts(&grind, &["--dump-every-bb=5000"], &program);
    assert!(several.len() > 3, "only {} parts", several.len());
    assert!(several[0].1.trigger == "--dump-every-bb=5000" && several[0].0 == "out.1");
    let one = parts(&grind, &[], &program);
    let sum = |parts: &[(String, Told)]| {
        let mut sum: BTreeMap<(String, u32), i64> = BTreeMap::new();
        for (key, cost) in parts.iter().flat_map(|(_, told)| &told.own) {
            *sum.entry(key.clone()).or_default() += cost;
        }
        sum
    };
    assert_eq!(sum(&several), sum(&one));
}
