//! Windows of instrumentation, one after the other: what is counted in them does not hang on what kind of code runs outside. Where
//! nothing is recorded, translations are plain from the start, and again once a window has been closed for a while; the same
//! program, with pauses or without, instrumented from the start or not, with its calls told or followed, gives the same counts; so
//! it does where it runs its own code outside, and where it does not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::callgrind::laws;
use grind_tests::build::{self, Source};
use grind_tests::calls::parse;
use grind_tests::run::Job;
use grind_tests::tools;

fn built(name: &str, options: &[&str], dir: &Path) -> PathBuf {
    let source = Source::open("matrix", name);
    let program = dir.join([name, options.first().copied().unwrap_or("")].concat());
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let mut words: Vec<String> = vec!["gcc".into(), "-O1".into(), "-g".into(), include];
    words.extend(["-fno-optimize-sibling-calls", "-fcf-protection=none"].map(str::to_owned));
    words.extend(source.words("cc"));
    words.extend(options.iter().map(|&word| word.to_owned()));
    words.extend(["-o".to_owned(), program.display().to_string(), source.path.display().to_string()]);
    build::compile(&words, dir);
    program
}

/// What runs in windows only, and by whose choice: self costs and calls of these.
const WITHIN: [&str; 3] = ["inside", "handler", "fib"];

/// Counts of the functions that run in windows, by profile, in the order of their names.
fn counts(options: &[&str], program: &Path, mode: &str, pause: &str, dir: &Path) -> Vec<BTreeMap<String, u64>> {
    let words = [program.display().to_string(), mode.to_owned(), pause.to_owned()];
    let own = ["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no", "--trace-children=yes"];
    let profiler: Vec<String> =
        tools::under_test().iter().cloned().chain(own.iter().chain(options).map(|&word| word.to_owned())).collect();
    let done = Job::new(words, dir).profiled(&profiler);
    assert_eq!(done.outcome.status.code(), Some(0), "{mode} {options:?}: {}\n{}", done.outcome.show(), done.log);
    assert!(done.outcome.stderr.is_empty(), "{mode} {options:?}: {}", done.outcome.show());
    let mut all: Vec<_> = done
        .raw
        .iter()
        .map(|(_, raw)| {
            let of_ours = |key: &str| WITHIN.iter().any(|f| key.contains(&format!(" {f} ")));
            parse(raw).counts.into_iter().filter(|(key, _)| of_ours(key)).collect()
        })
        .collect();
    all.sort();
    all
}

/// What only some of the ways tell of.
const SYSTEM_CALLS: [&str; 3] = [" sysCount", " sysTime", " sysCpuTime"];

const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=1024,2,32", "--D1=512,2,32", "--LL=4096,2,64"];

/// Who is first in the last level is up to chance where there are several threads.
const LAST_LEVEL: [&str; 3] = [" ILmr", " DLmr", " DLmw"];

/// Every way of running `modes` gives the same, but for these events.
fn check(modes: &[&str], but: &[&str]) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built("windows", &[], dir.path());
    for mode in modes {
        for more in [&[][..], &CACHES] {
            let run = |options: &[&str], pause| counts(&[more, options].concat(), &program, mode, pause, dir.path());
            let expected = run(&["--instr-atstart=yes", "--tell-calls=yes"], "020");
            assert!(expected.iter().flatten().any(|(_, n)| *n > 0), "{mode}: nothing was counted: {expected:?}");
            for (options, pause) in [
                (&["--instr-atstart=no", "--tell-calls=yes"][..], "080"),
                (&["--instr-atstart=no"], "020"),
                (&["--instr-atstart=no"], "080"),
                (&["--instr-atstart=yes"], "080"),
                (&["--instr-atstart=no", "--collect-systime=nsec"], "080"),
                (&["--instr-atstart=no", "--native-windows=never"], "080"),
                (&["--instr-atstart=no", "--native-windows=always"], "080"),
                (&["--instr-atstart=yes", "--native-windows=always"], "020"),
            ] {
                let found = run(options, pause);
                let differ: Vec<_> = expected
                    .iter()
                    .zip(&found)
                    .flat_map(|(a, b)| {
                        let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
                        let wanted = |key: &str| !but.iter().chain(&SYSTEM_CALLS).any(|event| key.ends_with(event));
                        let all = keys.into_iter().map(move |key| (key, a.get(key), b.get(key)));
                        all.filter(move |(key, a, b)| a != b && wanted(key))
                    })
                    .collect();
                let way = format!("{mode} {more:?} {options:?}, pauses of {pause} ms");
                assert_eq!(found.len(), expected.len(), "{way}: profiles");
                assert!(differ.is_empty(), "{way}: {differ:#?}");
            }
        }
    }
}

#[test]
fn of_one_thread() {
    check(&["w"], &[]);
}

#[test]
fn with_signals() {
    check(&["s", "h", "i"], &[]);
}

#[test]
fn with_threads_from_before() {
    check(&["t"], &LAST_LEVEL);
}

#[test]
fn beside_threads_that_never_wait() {
    check(&["o"], &LAST_LEVEL);
}

#[test]
fn while_a_child_borrows_the_memory() {
    check(&["v"], &LAST_LEVEL);
}

#[test]
fn in_processes_that_fork() {
    check(&["f"], &[]);
}

/// With `--instr-atstart=inherit` a program that is executed within a window is instrumented from its first instruction on, and costs
/// what it costs by itself; what is executed outside is not.
#[test]
fn of_what_is_executed_are_those_of_who_executes_it() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = dir.path().join("executes");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let source = tools::fixtures("calls").join("executes.c").display().to_string();
    let words = ["gcc".into(), "-O1".into(), "-g".into(), include, "-o".into(), program.display().to_string(), source];
    build::compile(&words, dir.path());
    let run = |start: &str, more: &[&str], arguments: &[&str]| -> Vec<(String, u64, u64)> {
        let plain =
            ["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no", "--trace-children=yes", start];
        let profiler =
            tools::under_test().iter().cloned().chain([&plain, more].concat().into_iter().map(str::to_owned));
        let words = std::iter::once(program.display().to_string()).chain(arguments.iter().map(|&word| word.to_owned()));
        let done = Job::new(words, dir.path()).profiled(&profiler.collect::<Vec<_>>());
        assert_eq!(done.outcome.status.code(), Some(0), "{start}: {}\n{}", done.outcome.show(), done.log);
        let profiles = done.raw.iter().map(|(_, raw)| {
            let text = String::from_utf8_lossy(raw);
            let line = text.lines().find_map(|line| line.strip_prefix("cmd: ")).expect("a command");
            let told = parse(raw);
            // Instructions alone are told without the name of their event.
            let is_work = |key: &str| key.contains(" work ") && key.ends_with(|last: char| last.is_ascii_digit());
            let work = told.counts.iter().filter(|(key, _)| is_work(key) && !key.contains(" -> "));
            (line.rsplit('/').next().unwrap_or_default().to_owned(), told.summary[0], work.map(|(_, n)| n).sum())
        });
        let mut profiles: Vec<_> = profiles.collect();
        profiles.sort();
        profiles
    };
    let alone = run("--instr-atstart=yes", &[], &["within"]);
    let [(_, _, work)] = alone[..] else { panic!("{alone:?}") };
    assert!(work > 3000, "{alone:?}");
    for more in [&[][..], &["--tell-calls=yes"], &CACHES] {
        let found = run("--instr-atstart=inherit", more, &[]);
        let of = |what: &str| -> Vec<_> { found.iter().filter(|(line, ..)| line.ends_with(what)).collect() };
        let (outside, within, last) = (of(" outside"), of(" within"), of(" last"));
        assert_eq!((outside.len(), within.len(), last.len()), (3, 2, 1), "{found:?}");
        assert!(outside.iter().all(|(_, all, _)| *all == 0), "{found:?}");
        assert!(within.iter().all(|(_, all, of_work)| *of_work == work && *all > 20_000), "{work}: {found:?}");
        assert!(last.iter().all(|(.., of_work)| *of_work > work), "{found:?}");
    }
    let off = run("--instr-atstart=no", &[], &[]);
    assert!(off.iter().all(|(line, all, _)| line == "executes" || *all == 0), "{off:?}");
}

/// Outside windows a program runs its own code, unless that is forbidden: it is called back for each
/// request, answered as ever, and counted the same. Of either tool.
#[test]
fn outside_a_program_runs_its_own_code() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = dir.path().join("own_code");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let source = tools::fixtures("calls").join("own_code.c").display().to_string();
    let words =
        ["gcc", "-O1", "-g", "-pthread", &include, "-o", &program.display().to_string(), &source].map(str::to_owned);
    build::compile(&words, dir.path());
    let run = |tool: &str, own_code: &str, mode: &str| {
        let options: &[&str] = match tool {
            "callgrind" => &["--instr-atstart=no", "--compress-strings=no", "--compress-pos=no"],
            _ => &["--instr-at-start=no"],
        };
        let file = dir.path().join("profile");
        let under_test = tools::under_test();
        let done = std::process::Command::new(&under_test[0])
            .args(&under_test[1..])
            .args([&format!("--tool={tool}"), &format!("--native-windows={own_code}"), "--log-file=/dev/null"])
            .args(options)
            .arg(format!("--{tool}-out-file={}", file.display()))
            .args([program.as_os_str(), mode.as_ref()])
            .env("GRIND_LOG", "dispatch=debug")
            .output()
            .expect("grind runs");
        assert!(done.status.success(), "{done:?}");
        let told =
            |what: &str| String::from_utf8_lossy(&done.stderr).lines().filter(|line| line.contains(what)).count();
        let profile = std::fs::read(&file).expect("a profile");
        let began = told("runs its own code");
        assert!(told("goes on in translations") <= began, "{done:?}");
        (began, self_cost(&profile, "inside"), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    for tool in ["callgrind", "cachegrind"] {
        let (never, counted, printed) = run(tool, "never", "alone");
        assert_eq!((never, &printed[..]), (0, "1 10\n"), "{tool}");
        assert!(counted > 1000, "{tool}: {counted}");
        for own_code in ["auto", "always"] {
            let (began, same, as_well) = run(tool, own_code, "alone");
            assert!(began >= 10, "{tool} {own_code}: {began}");
            assert_eq!((same, &as_well), (counted, &printed), "{tool} {own_code}");
        }
        let (_, same, as_well) = run(tool, "always", "threads");
        assert_eq!((same, &as_well), (counted, &printed), "{tool}, beside a thread");
    }
}

/// The instructions of a function itself, in a profile of either tool with its names written out.
fn self_cost(profile: &[u8], function: &str) -> u64 {
    let (mut within, mut called, mut sum) = (false, false, 0);
    for line in String::from_utf8_lossy(profile).lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            within = name == function;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && !std::mem::take(&mut called) && within {
            sum += line.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).expect("a count");
        }
        called |= line.starts_with("calls=");
    }
    sum
}

/// Keeps the processors busy until it is dropped, so that threads often go on long after they have been told to.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn new() -> Self {
        let done = Arc::new(AtomicBool::new(false));
        for _ in 0..=std::thread::available_parallelism().map_or(2, usize::from) {
            let done = done.clone();
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(done)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A thread that waits in a system call is woken by every change of what counts, and makes its call once more: by new code, if there
/// was none or if the old has been thrown away; at once, or after the next change.
#[test]
fn calls_that_wait_while_windows_change_count_where_they_began() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = |tool: &str| built("waiting", &[&format!("-D{tool}")], dir.path());
    // Three threads, thirty windows, and four instructions.
    let wanted = 3 * 30 * 4;
    let of = |tool: &str, options: &[&str], program: &Path, mode: &str| -> Vec<(String, u64)> {
        let plain: &[&str] =
            if tool == "--tool=callgrind" { &["--compress-strings=no", "--compress-pos=no"] } else { &[] };
        let own = [&["-q", tool][..], plain, options].concat().into_iter().map(str::to_owned);
        let profiler: Vec<String> = tools::under_test().iter().cloned().chain(own).collect();
        let done = Job::new([program.display().to_string(), mode.to_owned()], dir.path()).profiled(&profiler);
        assert_eq!(done.outcome.status.code(), Some(0), "{options:?}: {}\n{}", done.outcome.show(), done.log);
        done.raw.iter().map(|(name, raw)| (name.clone(), self_cost(raw, "waits"))).collect()
    };
    let [callgrind, cachegrind] = ["CALLGRIND", "CACHEGRIND"].map(program);
    let ways: [(&str, &[&str], &Path, &str); 8] = [
        ("--tool=callgrind", &["--instr-atstart=no"], &callgrind, "i"),
        ("--tool=callgrind", &["--instr-atstart=no", "--cache-sim=yes"], &callgrind, "i"),
        ("--tool=callgrind", &["--instr-atstart=no", "--tell-calls=yes"], &callgrind, "i"),
        ("--tool=cachegrind", &["--instr-at-start=no"], &cachegrind, "i"),
        ("--tool=cachegrind", &["--instr-at-start=no", "--hot-after=1000"], &cachegrind, "i"),
        ("--tool=cachegrind", &["--instr-at-start=no", "--code-limit=4", "--cache-sim=yes"], &cachegrind, "i"),
        ("--tool=cachegrind", &[], &cachegrind, "c"),
        ("--tool=cachegrind", &["--hot-after=1000"], &cachegrind, "c"),
    ];
    let _busy = Busy::new();
    for (tool, options, program, mode) in ways {
        let found = of(tool, options, program, mode);
        let within = |(name, _): &&(String, u64)| mode == "i" || name.contains("within");
        let within: Vec<_> = found.iter().filter(within).map(|(_, n)| *n).collect();
        assert_eq!(within, [wanted], "{tool} {options:?}: {found:?}");
    }
}

/// A part ends for all threads at once: for one that has just been born and has counted nothing, and for one whose system call is to be
/// made once more, which counts where it began. Each keeps the laws, for each thread apart, and they sum to what one profile says.
#[test]
fn parts_that_end_while_threads_begin_and_wait_sum_to_the_whole() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built("born", &[], dir.path());
    let run = |options: &[&str]| {
        let own = ["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no", "--separate-threads=yes"];
        let words = own.iter().chain(options).map(|&word| word.to_owned());
        let profiler: Vec<String> = tools::under_test().iter().cloned().chain(words).collect();
        let done = Job::new([program.display().to_string()], dir.path()).profiled(&profiler);
        assert_eq!(done.outcome.status.code(), Some(0), "{options:?}: {}\n{}", done.outcome.show(), done.log);
        assert!(!done.log.contains("error:"), "{options:?}: {}", done.log);
        for (name, raw) in &done.raw {
            let breaches = laws::breaches(&raw[..], name).expect("a profile");
            assert!(breaches.is_empty(), "{options:?}, {name}: {breaches:?}");
        }
        let sums = ["take", "work", "thread", "waiting", "waits"]
            .map(|f| done.raw.iter().map(|(_, raw)| self_cost(raw, f)).sum::<u64>());
        (done.raw.len(), sums)
    };
    let (_, whole) = run(&[]);
    let _busy = Busy::new();
    let ways: [&[&str]; 3] = [&["--hot-after=1000"], &["--hot-after=1"], &CACHES];
    for options in ways {
        let (parts, sums) = run(&[&["--dump-before=take"], options].concat());
        assert!(parts > 30, "{options:?}: {parts}");
        assert_eq!(sums, whole, "{options:?}");
    }
}
