//! Options of callgrind, and its client requests, beside Valgrind's: what each part of a profile tells about the functions of
//! the program itself. Costs that the two cannot share (the loader, the block that ends the program) lie elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cg_format::callgrind::{Names, Part, Profile, Site, read_profile};
use grind_tests::{laws, run, tools};

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
        if profiler != ["valgrind"] {
            laws::check(&std::fs::read(&file).unwrap(), &name);
        }
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

/// The number of calls of all parts together: a call that is going on when a part is written counts here in the part in
/// which its cost begins; in the reference in the one before, or, if that has no cost of it, later.
fn count_together(parts: &mut [(String, Told)]) {
    let mut sums: BTreeMap<(String, u32, String), u64> = BTreeMap::new();
    for (key, call) in parts.iter_mut().flat_map(|(_, told)| &mut told.calls) {
        *sums.entry(key.clone()).or_default() += std::mem::take(&mut call.0);
    }
    for (_, told) in parts.iter_mut() {
        told.calls.retain(|_, call| *call != (0, 0));
    }
    if let Some((_, last)) = parts.last_mut() {
        for (key, count) in sums {
            last.calls.entry(key).or_default().0 = count;
        }
    }
}

/// Both tools write the same parts, with the same contents.
fn same(options: &[&str], program: &Path) -> Vec<(String, Told)> {
    compare(options, program, count_together)
}

fn compare(options: &[&str], program: &Path, prepare: fn(&mut [(String, Told)])) -> Vec<(String, Told)> {
    let grind: Vec<&str> = tools::under_test().iter().map(String::as_str).collect();
    let mut ours = parts(&grind, options, program);
    let mut theirs = parts(&["valgrind"], options, program);
    prepare(&mut ours);
    prepare(&mut theirs);
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
                assert!(all > 4, "almost nothing was compared: {told:?}");
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
    // With compressed names, the reference gives some functions the numbers of others.
    recursions_of_one_function: "--separate-recs4=fib" "--compress-strings=no";
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
    // The reference goes on counting calls that cost nothing, and tells them with the first that does.
    compare(&["--collect-atstart=no"], &program, |parts| {
        parts.iter_mut().flat_map(|(_, told)| told.calls.values_mut()).for_each(|call| call.0 = 0);
        parts.iter_mut().for_each(|(_, told)| told.calls.retain(|_, call| call.1 != 0));
    });
}

/// Instructions that lock the bus, and system calls: how many there are, by function.
#[test]
fn buses_and_system_calls_are_counted() {
    if !tools::have(&["gcc", "valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
#include <unistd.h>
#include <sys/syscall.h>
static int word;
__attribute__((noinline)) static void locks(int n)
{
    while (n--) {
        __sync_fetch_and_add(&word, 3);
        __atomic_exchange_n(&word, n, __ATOMIC_SEQ_CST);
        __sync_bool_compare_and_swap(&word, n, 1);
        __sync_synchronize();
    }
}
__attribute__((noinline)) static void calls(int n) { while (n--) syscall(SYS_getppid); }
int main(void) { locks(100); calls(50); usleep(20000); locks(7); return 0; }
"#;
    let (file, program) = (dir.path().join("count.c"), dir.path().join("count"));
    std::fs::write(&file, source).unwrap();
    assert!(Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&program).arg(&file).status().unwrap().success());
    let grind: Vec<&str> = tools::under_test().iter().map(String::as_str).collect();
    let options = ["--collect-bus=yes", "--collect-systime=usec"];
    // Of each function: the inclusive cost of calls of it.
    let costs = |profiler: &[&str]| {
        let out = dir.path().join("out");
        let mut words: Vec<String> = profiler.iter().map(|w| (*w).to_owned()).collect();
        words.extend(["-q", "--tool=callgrind"].map(str::to_owned));
        words.push(format!("--callgrind-out-file={}", out.display()));
        words.extend(options.map(str::to_owned));
        words.push(program.display().to_string());
        assert!(run::command(&words, dir.path()).status().unwrap().success());
        let profile = read(&out);
        let part = &profile.parts[0];
        assert_eq!(part.header.events, ["Ir", "Ge", "sysCount", "sysTime"]);
        assert_eq!(part.header.types.len(), 1);
        let mut costs: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for body in part.bodies() {
            for entry in &body.entries {
                let Site::Call { call, costs: at } = entry.site else { continue };
                let name = String::from_utf8_lossy(profile.names.function_name(call.callee)).into_owned();
                let sum = costs.entry(name).or_insert_with(|| vec![0; 4]);
                sum.iter_mut().zip(body.costs(at)).for_each(|(sum, cost)| *sum += cost);
            }
        }
        costs
    };
    let (ours, theirs) = (costs(&grind), costs(&["valgrind"]));
    for function in ["locks", "calls"] {
        // Not the instructions: the loader's work at the first call is another.
        assert_eq!(ours[function][1..3], theirs[function][1..3], "{function}");
    }
    assert_eq!((ours["locks"][1], ours["calls"][2]), (428, 50));
    let slept = ours["usleep"][3];
    assert!((20_000..10_000_000).contains(&slept), "{slept} us");
    assert_eq!(ours["usleep"][2], 1);
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
    let several = parts(&grind, &["--dump-every-bb=2000"], &program);
    assert!(several.len() > 3, "only {} parts", several.len());
    assert!(several[0].1.trigger == "--dump-every-bb=2000" && several[0].0 == "out.1");
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
