//! Contexts of the statistics, end to end: each context's counts, their sum, threads, forks, signals, the files and the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use grind_tests::build::compile;
use grind_tests::compare::{assert_none, assert_same};
use grind_tests::run::{Job, Profiled};
use grind_tests::{profile, tools};

/// File, function and line.
type Place = (String, String, u64);

/// All events of a profile.
#[derive(Clone, Debug, Default)]
struct Profile {
    desc: Vec<String>,
    events: Vec<String>,
    counts: BTreeMap<Place, Vec<u64>>,
}

impl Profile {
    fn parse(bytes: &[u8]) -> Self {
        // Whether it is well-formed is judged there.
        profile::Profile::parse(bytes).unwrap_or_else(|e| panic!("{e:#}"));
        let (mut p, mut file, mut function) = (Self::default(), String::new(), String::new());
        for line in String::from_utf8_lossy(bytes).lines() {
            if let Some(text) = line.strip_prefix("desc: ") {
                p.desc.push(text.to_owned());
            } else if let Some(names) = line.strip_prefix("events: ") {
                p.events = names.split_whitespace().map(str::to_owned).collect();
            } else if let Some(name) = line.strip_prefix("fl=") {
                file = name.to_owned();
            } else if let Some(name) = line.strip_prefix("fn=") {
                function = name.to_owned();
            } else if line.starts_with(|c: char| c.is_ascii_digit()) {
                let mut numbers = line.split_whitespace().map(|w| w.parse::<u64>().expect("a number"));
                let place = (file.clone(), function.clone(), numbers.next().expect("a line"));
                let mut counts: Vec<u64> = numbers.collect();
                counts.resize(p.events.len(), 0);
                add(p.counts.entry(place).or_default(), &counts);
            }
        }
        p
    }

    /// Instructions of a function.
    fn ir(&self, function: &str) -> u64 {
        self.counts.iter().filter(|((_, f, _), _)| f == function).map(|(_, c)| c[0]).sum()
    }

    /// Counts by function, of one source file.
    fn functions(&self, file: &str) -> BTreeMap<String, Vec<u64>> {
        let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for ((path, function, _), counts) in &self.counts {
            if path.ends_with(file) {
                add(sums.entry(function.clone()).or_default(), counts);
            }
        }
        sums
    }
}

/// Where two tables of counts differ; a row of zeros is as good as none.
fn differences<K: Ord + Debug>(
    a: &str,
    left: &BTreeMap<K, Vec<u64>>,
    b: &str,
    right: &BTreeMap<K, Vec<u64>>,
) -> Vec<String> {
    let row =
        |of: &BTreeMap<K, Vec<u64>>, k| of.get(k).filter(|c| c.iter().any(|&n| n != 0)).cloned().unwrap_or_default();
    let keys: BTreeSet<&K> = left.keys().chain(right.keys()).collect();
    keys.into_iter()
        .filter(|k| row(left, k) != row(right, k))
        .map(|k| format!("{k:?}: {a} {:?}, {b} {:?}", row(left, k), row(right, k)))
        .collect()
}

fn add(to: &mut Vec<u64>, counts: &[u64]) {
    to.resize(counts.len().max(to.len()), 0);
    to.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
}

/// The profile of a process and those of its contexts, by name.
#[derive(Debug)]
struct Contexts {
    main: Profile,
    each: BTreeMap<String, Profile>,
}

impl Contexts {
    /// Every event of every line is the sum over the contexts.
    fn check_sum(&self) {
        let mut sum = Profile { events: self.main.events.clone(), ..Profile::default() };
        for p in self.each.values() {
            assert_eq!(p.events, sum.events);
            p.counts.iter().for_each(|(place, c)| add(sum.counts.entry(place.clone()).or_default(), c));
        }
        assert_none("the sum over contexts", &differences("sum", &sum.counts, "all", &self.main.counts));
    }

    fn ir(&self, context: &str, function: &str) -> u64 {
        self.each.get(context).unwrap_or_else(|| panic!("no context {context} in {:?}", self.each.keys())).ir(function)
    }
}

/// The processes of a run, in order of their IDs; sums are checked.
fn contexts(run: &Profiled) -> Vec<Contexts> {
    let mut all: Vec<(String, Contexts)> = Vec::new();
    for (name, bytes) in &run.raw {
        let profile = Profile::parse(bytes);
        match name.split_once(".ctx-") {
            None => all.push((name.clone(), Contexts { main: profile, each: BTreeMap::new() })),
            Some((pid, _)) => {
                let (_, process) = all.iter_mut().find(|(p, _)| p == pid).expect("the sum of the contexts");
                let named: Vec<_> = profile.desc.iter().filter_map(|d| d.strip_prefix("Context:")).collect();
                let [name] = named[..] else { panic!("a context's profile must name it: {:?}", profile.desc) };
                let name = name.trim().to_owned();
                assert!(process.each.insert(name, profile).is_none(), "two profiles of a context");
            }
        }
    }
    all.into_iter()
        .map(|(_, c)| {
            assert!(!c.main.desc.iter().any(|d| d.starts_with("Context:")));
            c.check_sum();
            c
        })
        .collect()
}

fn only(run: &Profiled) -> Contexts {
    let mut all = contexts(run);
    assert_eq!(all.len(), 1, "one process; log:\n{}", run.log);
    all.remove(0)
}

fn build(name: &str, dir: &Path, words: &[&str]) -> PathBuf {
    let source = tools::fixtures("contexts").join(name);
    let out = dir.join(name.replace('.', "_"));
    let include = tools::workspace_root().join("include");
    let mut all = vec!["gcc", "-g", "-O1", "-Wall", "-Werror"];
    all.extend_from_slice(words);
    let mut all: Vec<String> = all.into_iter().map(str::to_owned).collect();
    all.extend([format!("-I{}", include.display()), "-o".into(), out.display().to_string()]);
    all.push(source.display().to_string());
    compile(&all, dir);
    out
}

/// Builds and runs a program under grind with these options; it must do natively what it does there.
fn run(name: &str, words: &[&str], options: &[&str]) -> Profiled {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build(name, dir.path(), words);
    run_built(&program, dir.path(), options)
}

fn run_built(program: &Path, dir: &Path, options: &[&str]) -> Profiled {
    let job = Job::new([program.display().to_string()], dir);
    let mut profiler = tools::under_test().to_vec();
    profiler.extend(options.iter().map(|o| (*o).to_owned()));
    let got = job.profiled(&profiler);
    assert_same(&program.display().to_string(), &job.native(), &got.outcome, &got.log);
    got
}

/// Small caches, for which addresses matter little and sizes much.
const SIMULATE: [&str; 5] =
    ["--cache-sim=yes", "--branch-sim=yes", "--I1=1024,2,64", "--D1=1024,2,64", "--LL=8192,4,64"];

fn have_gcc() -> bool {
    tools::have(&["gcc"])
}

#[test]
fn phases_sum_up_and_each_is_as_if_it_ran_alone() {
    if !have_gcc() {
        return;
    }
    let annotated = only(&run("phases.c", &["-DANNOTATED"], &[]));
    let plain = run("phases.c", &[], &[]);
    assert_eq!(plain.raw.len(), 1, "without contexts there is one profile");
    let plain = Profile::parse(&plain.raw[0].1);
    let (mut all, mut without) = (annotated.main.functions("phases.c"), plain.functions("phases.c"));
    // The requests' own instructions are in main.
    all.remove("main");
    without.remove("main");
    assert_none("with and without requests", &differences("with", &all, "without", &without));
    assert!(without.contains_key("count_odd"));
    assert_eq!(annotated.each.keys().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    for phase in 1..=3 {
        let alone = run("phases.c", &[&format!("-DONLY={phase}")], &[]);
        let alone = Profile::parse(&alone.raw[0].1);
        let mut alone = alone.functions("phases.c");
        let mut context = annotated.each[&phase.to_string()].functions("phases.c");
        alone.remove("main");
        assert!(context.remove("main").is_some_and(|c| c[0] < 100), "only the calls and the requests");
        assert_none(&format!("phase {phase}"), &differences("in its context", &context, "alone", &alone));
    }
}

/// Not one miss more or less: the same program with requests that nobody knows, so that even its addresses are the same.
#[test]
fn all_events_of_phases_sum_up() {
    if !have_gcc() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let dir = dir.path();
    let build = |define: &str| {
        let built = build("phases.c", dir, &[&format!("-D{define}"), "-static"]);
        // Under the same name, since the stack begins with it.
        let program = dir.join("phases");
        std::fs::rename(built, &program).expect("the program just built");
        run_built(&program, dir, &SIMULATE)
    };
    let annotated = only(&build("ANNOTATED"));
    let mut all = annotated.main;
    let events = "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim OcD1 OcLL";
    assert_eq!(all.events.join(" "), events);
    let plain = build("UNKNOWN");
    assert_eq!(plain.raw.len(), 1);
    let plain = Profile::parse(&plain.raw[0].1);
    assert_eq!(plain.events.join(" "), events.strip_suffix(" OcD1 OcLL").unwrap(), "only where a context was pushed");
    let old: u64 = all.counts.values().map(|c| c[13] + c[14]).sum();
    assert!(old > 100, "phases use one another's data");
    all.counts.values_mut().for_each(|c| c.truncate(13));
    assert_none("with and without contexts", &differences("with", &all.counts, "without", &plain.counts));
}

/// The annotated program under Valgrind is what it is without contexts; the sum must be the same, requests included, and
/// Valgrind must not say anything.
#[test]
fn valgrind_ignores_the_requests_and_counts_the_sum() {
    if !have_gcc() || !tools::have(&["valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("phases.c", dir.path(), &["-DANNOTATED", "-static"]);
    let got = only(&run_built(&program, dir.path(), &[]));
    let mut words = tools::valgrind();
    words.push("-v".into());
    let reference = Job::new([program.display().to_string()], dir.path()).profiled(&words);
    assert!(!reference.log.to_lowercase().contains("request"), "{}", reference.log);
    let reference = Profile::parse(&reference.raw[0].1);
    let (a, b) = (got.main.functions("phases.c"), reference.functions("phases.c"));
    assert!(a.contains_key("main"));
    assert_none("the sum and Valgrind", &differences("grind", &a, "valgrind", &b));
}

/// Counts of `work(n)`, a loop, are a + b * n for each call.
struct Loop {
    a: u64,
    b: u64,
}

impl Loop {
    /// From one call with each of two numbers.
    fn from(first: (u64, u64), second: (u64, u64)) -> Self {
        let b = (second.1 - first.1) / (second.0 - first.0);
        Self { a: first.1 - b * first.0, b }
    }

    fn count(&self, calls: &[u64]) -> u64 {
        calls.iter().map(|n| self.a + self.b * n).sum()
    }
}

#[test]
fn any_number_of_contexts_to_any_depth() {
    if !have_gcc() {
        return;
    }
    for simulate in [false, true] {
        let got = run("switches.c", &[], if simulate { &SIMULATE } else { &[] });
        let all = only(&got);
        let calls = Loop::from((400, all.ir("400", "work") / 2), (401, all.ir("401", "work") / 2));
        for n in 100..1500 {
            assert_eq!(all.ir(&n.to_string(), "work"), calls.count(&[n, n]), "context {n}");
        }
        assert_eq!(all.ir("0", "work"), calls.count(&[10, 11]));
        assert_eq!(all.ir("68719476736", "work"), calls.count(&[3; 150]));
        assert_eq!(all.ir("137438953472", "work"), calls.count(&[5; 150]));
        assert_eq!(all.ir("1", "work"), calls.count(&[1; 667]));
        assert_eq!(all.ir("2", "work"), calls.count(&[2; 667]));
        assert_eq!(all.ir("3", "work"), calls.count(&[3; 666]));
        assert_eq!(all.ir("4", "work"), calls.count(&[4]));
        assert_eq!(all.ir("alpha", "work"), calls.count(&[7, 7, 7, 9]));
        assert_eq!(all.ir("beta/2 x", "work"), calls.count(&[8, 8, 8]));
        assert_eq!(got.log.matches("CG_POP_CONTEXT without").count(), 1, "{}", got.log);
    }
}

#[test]
fn registers_and_flags_survive() {
    if !have_gcc() {
        return;
    }
    let words = ["-static", "-nostdlib", "-no-pie"];
    let all = only(&run("registers.s", &words, &[]));
    assert_eq!(all.each.len(), 2);
    only(&run("registers.s", &words, &SIMULATE));
}

#[test]
fn threads_follow_their_creator_until_they_push() {
    if !have_gcc() {
        return;
    }
    for options in [&[][..], &SIMULATE] {
        let all = only(&run("threads.c", &["-pthread"], options));
        let calls = Loop::from((10, all.ir("0", "inherited")), (1000, all.ir("1", "inherited")));
        assert_eq!(all.ir("2", "inherited"), calls.count(&[1000]), "a thread of a thread");
        assert_eq!(all.ir("1", "follows"), 0);
        for context in ["100", "101"] {
            assert_eq!(all.ir(context, "follows"), calls.count(&[100; 20]), "two workers, ten rounds in {context}");
        }
        assert_eq!(all.ir("2", "own"), calls.count(&[10; 2]));
        assert_eq!(all.ir("50", "own"), calls.count(&[10; 2]));
        assert_eq!(all.ir("51", "own"), calls.count(&[10]));
        assert_eq!(all.ir("0", "own"), 0);
    }
}

#[test]
fn a_child_has_its_parents_stack_and_counts() {
    if !have_gcc() {
        return;
    }
    for options in [&[][..], &SIMULATE] {
        let all = contexts(&run("fork.c", &[], options));
        let [parent, child] = &all[..] else { panic!("two processes are expected") };
        let calls = Loop::from((10, parent.ir("outer", "work")), (50, child.ir("child", "work")));
        assert_eq!(parent.ir("2", "work"), calls.count(&[20, 70]));
        assert_eq!(parent.ir("0", "work"), 0);
        assert!(!parent.each.contains_key("child"));
        assert_eq!(child.ir("2", "work"), calls.count(&[20, 30]));
        assert_eq!(child.ir("outer", "work"), calls.count(&[10, 40]));
        assert_eq!(child.ir("0", "work"), calls.count(&[60]));
    }
}

#[test]
fn contexts_change_while_nothing_is_counted() {
    if !have_gcc() {
        return;
    }
    for options in [&[][..], &SIMULATE] {
        let all = only(&run("instrumentation.c", &[], options));
        let calls = Loop::from((5, all.ir("0", "work")), (20, all.ir("2", "work")));
        assert_eq!(all.ir("1", "work"), calls.count(&[10, 10, 10]));
        assert!(all.each.get("3").is_none_or(|p| p.counts.is_empty()));
    }
}

#[test]
fn signals_find_the_right_context() {
    if !have_gcc() {
        return;
    }
    let all = only(&run("signals.c", &[], &[]));
    // Work is done in pairs, and only there; what the handler does is its own.
    let (two, three) = (all.ir("1", "work"), all.ir("2", "work"));
    assert_eq!(all.ir("0", "work") + all.ir("9", "work"), 0);
    assert!(two > 0 && three > two);
    for context in ["0", "1", "2"] {
        assert_eq!(all.ir(context, "in_handler"), 0);
    }
    assert!(all.ir("9", "in_handler") > 0);
}

/// Lines that another context has brought in are counted once each, by every kind of access.
/// A D1 that is too small for it leaves most of that to the second level: each line is found in one of the two.
#[test]
fn lines_that_d1_has_lost_are_found_in_the_second_level() {
    if !have_gcc() {
        return;
    }
    let caches = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=1024,2,64", "--L2=262144,8,64", "--LL=1048576,16,64"];
    let got = run("reuse.c", &[], &caches);
    let all = only(&got);
    assert!(all.main.events.join(" ").ends_with(" DLmw OcD1 OcL2 OcLL"), "{:?}", all.main.events);
    let old = |context: &str| {
        let at = |name: &str| all.main.events.iter().position(|e| e == name).expect("an event");
        let counts = all.each[context].counts.iter().filter(|((_, f, _), _)| f == "touch");
        counts.fold([0, 0], |[first, second], (_, c)| [first + c[at("OcD1")], second + c[at("OcL2")]])
    };
    let ([first, second], [few_first, few_second]) = (old("12"), old("11"));
    let more = first + second - few_first - few_second;
    assert!((90..=92).contains(&more), "{:?}, {:?}: an instruction may be one, too", old("12"), old("11"));
    assert!(second > 70, "{second}");
}

#[test]
fn lines_of_another_context_are_found_once() {
    if !have_gcc() {
        return;
    }
    let caches = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];
    let got = run("reuse.c", &[], &caches);
    let all = only(&got);
    let old = |context: &str, function: &str| {
        let at = |name: &str| all.main.events.iter().position(|e| e == name).expect("an event");
        let sum = |n: usize| {
            let counts = &all.each[context].counts;
            counts.iter().filter(|((_, f, _), _)| f == function).map(|(_, c)| c[n]).sum::<u64>()
        };
        (sum(at("OcD1")), sum(at("OcLL")))
    };
    // What differs between 10 lines and 100 is not the stack's or the counter's.
    for (few, many, function) in [("11", "12", "touch"), ("21", "22", "straddle"), ("31", "32", "string")] {
        assert_eq!(old(many, function).0 - old(few, function).0, 90, "{function}");
        // What is in the D1 does not get to the LL; an instruction may.
        assert!(old(many, function).1 <= 1 && old(few, function).1 <= 1, "{function}");
    }
    let (touched, _) = old("41", "touch");
    assert_eq!(touched, 0, "the same context pushed once more is no change");
    let (touched, _) = old("51", "touch");
    assert_eq!(touched, 0, "what is not counted is no change either, if it ends in the same context");
    assert!(got.log.contains("D1: found by"), "{}", got.log);
}

#[test]
fn merged_contexts_are_only_in_the_log() {
    if !have_gcc() {
        return;
    }
    let got = run("phases.c", &["-DANNOTATED"], &["--contexts=merged"]);
    assert_eq!(got.raw.len(), 1);
    let table: Vec<&str> = got.log.lines().filter_map(|l| l.split_once("== ").map(|x| x.1)).collect();
    let at = table.iter().position(|l| *l == "Contexts:").expect("a table");
    let first: Vec<&str> = table[at + 1..].iter().map(|l| l.split_whitespace().next().unwrap_or("")).collect();
    assert_eq!(first[..6], ["context", "0", "1", "2", "3", "(all)"]);
}

/// Throwing translations away keeps every context's counts.
#[test]
fn translations_come_and_go_in_many_contexts() {
    if !have_gcc() {
        return;
    }
    for options in [&[][..], &SIMULATE] {
        let counted = |limit: &str| {
            let options: Vec<&str> = options.iter().copied().chain([limit]).collect();
            let all = only(&run("evicted.c", &["-pthread"], &options));
            let each = |base: u64| {
                [0, 1, 2, 5].map(|n| {
                    let context = (base + n).to_string();
                    let p = all.each.get(&context).unwrap_or_else(|| panic!("no context {context}"));
                    (context, p.ir("work"), p.ir("???"))
                })
            };
            [each(10), each(20)].concat()
        };
        let (kept, thrown_away) = (counted("--code-limit=512"), counted("--code-limit=4"));
        assert_eq!(kept, thrown_away, "{options:?}");
        // 2,000 blocks of four instructions, and the two around them, each time; three contexts take turns for the outer call.
        for (context, work, code) in &kept {
            let times = if context.ends_with('5') { 90 } else { 30 };
            assert_eq!(*code, times * (2000 * 4 + 2), "context {context}");
            assert_eq!(*work % times, 0, "context {context}");
            let each = kept[3].1 / 90;
            assert_eq!(*work, each * if context.ends_with('5') { 90 } else { 60 }, "context {context}");
        }
    }
}
