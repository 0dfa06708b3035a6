//! Runs that are looked at and told what to do while they go on, by `cg_control` and by the options that write parts: all parts of a
//! process add up to the profile that it has in one piece, row by row, and what is told of it meanwhile is true.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Client, Request, Tool, runs, runs_by_tool};
use cg_format::cachegrind::{Profile, ReadOptions, read};
use grind_tests::{laws, run, tools};

/// Works in phases, of which each is a function; or until somebody creates a file; or waits in a thread.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static volatile unsigned sink;
static unsigned char memory[1 << 22];
__attribute__((noinline)) void leaf(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void walk(unsigned n) { while (n--) memory[n * 64 % sizeof memory]++; }
__attribute__((noinline)) void first(void) { for (int i = 0; i < 3000; i++) leaf(2000); }
__attribute__((noinline)) void second(void) { for (int i = 0; i < 300; i++) walk(20000); }
static void *forever(void *p) { for (;;) { leaf(10000); if (p) walk(2000); } return 0; }
int main(int argc, char **argv)
{
    alarm(300);
    if (argc > 1 && !strcmp(argv[1], "forever")) forever(argv);
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        pthread_t t;
        pthread_create(&t, 0, forever, 0);
        for (;;) sleep(1000);
    }
    if (argc > 1 && !strcmp(argv[1], "forks") && fork() == 0) { for (int i = 0; i < 6; i++) first(); return 0; }
    for (int i = 0; i < 10; i++) { first(); second(); }
    wait(0);
    return 0;
}
"#;

fn program(dir: &Path) -> PathBuf {
    let (file, path) = (dir.join("prog.c"), dir.join("prog"));
    std::fs::write(&file, PROGRAM).unwrap();
    let words = ["-O1", "-g", "-static", "-pthread", "-Wall", "-Werror", "-o"];
    assert!(Command::new("gcc").args(words).arg(&path).arg(&file).status().unwrap().success());
    path
}

/// The folder of the program, if it can be built.
fn built() -> Option<tempfile::TempDir> {
    if !tools::have(&["gcc"]) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    program(dir.path());
    Some(dir)
}

/// `prog` of this folder with these options and arguments, under grind.
fn profiled(dir: &Path, options: &[&str], args: &[&str]) -> Command {
    let mut words = tools::under_test().to_vec();
    words.push("-q".into());
    words.extend(options.iter().map(|&option| option.to_owned()));
    words.push(dir.join("prog").display().to_string());
    words.extend(args.iter().map(|&arg| arg.to_owned()));
    let mut command = run::command(&words, dir);
    command.env("XDG_RUNTIME_DIR", dir).stdin(Stdio::null());
    command
}

fn cg_control(dir: &Path, args: &[&str]) -> Output {
    let bin = tools::build(&["cg-control"]).expect("built").join("cg_control");
    Command::new(bin).args(args).env("XDG_RUNTIME_DIR", dir).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A program that runs until it is killed.
struct Running {
    child: Child,
    dir: PathBuf,
}

impl Running {
    fn start(dir: &Path, options: &[&str], args: &[&str]) -> Self {
        Self { child: profiled(dir, options, args).spawn().unwrap(), dir: dir.to_owned() }
    }

    /// Its processes, once there are so many that have executed something.
    fn pids(&self, n: usize) -> Vec<u32> {
        let start = Instant::now();
        loop {
            let pids = runs(&self.dir).unwrap();
            if pids.len() == n && pids.iter().all(|pid| counted(&self.dir, *pid) > 0) {
                return pids;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{pids:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let pids = runs(&self.dir).unwrap_or_default();
            if pids.is_empty() {
                break;
            }
            for pid in pids {
                let _ = Client::connect(&self.dir, pid).and_then(|mut c| c.ask(&Request::Kill));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process has executed since the part began.
fn counted(dir: &Path, pid: u32) -> u64 {
    let status = Client::connect(dir, pid).and_then(|mut client| client.status());
    let first = |costs: &Vec<u64>| costs.first().copied().unwrap_or(0);
    status.map_or(0, |s| match s.totals.is_empty() {
        true => s.threads.iter().map(|t| first(&t.total)).sum(),
        false => first(&s.totals),
    })
}

/// A row of a profile: file, function and line.
type Place = (Vec<u8>, Vec<u8>, u64);

/// Rows of profiles, added up; none is 0.
fn rows<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> BTreeMap<Place, Vec<i128>> {
    let mut sums: BTreeMap<_, Vec<i128>> = BTreeMap::new();
    for profile in profiles {
        for file in profile.files() {
            for function in file.functions() {
                let rows = function.rows();
                for row in 0..rows.len() {
                    let key = (file.name().to_vec(), function.name().to_vec(), rows.line(row));
                    let sum = sums.entry(key).or_insert_with(|| vec![0; rows.width()]);
                    sum.iter_mut().zip(rows.counts(row)).for_each(|(sum, n)| *sum += n);
                }
            }
        }
    }
    sums.retain(|_, counts| counts.iter().any(|n| *n != 0));
    sums
}

fn profile(path: &Path) -> Profile {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    read(&bytes[..], &path.display().to_string(), &ReadOptions::default()).unwrap()
}

/// The files of a profile called `name`, taken away: the parts in their order, then the last one.
fn files(dir: &Path, name: &str) -> Vec<PathBuf> {
    let mut all: Vec<(u64, PathBuf)> = std::fs::read_dir(dir)
        .unwrap()
        .filter_map(|entry| {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let number = match file.strip_prefix(name)? {
                "" => u64::MAX,
                suffix => suffix.strip_prefix('.')?.parse().ok()?,
            };
            Some((number, dir.join(file)))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, path)| path).collect()
}

fn taken(dir: &Path, name: &str) -> Vec<Profile> {
    let files = files(dir, name);
    let profiles = files.iter().map(|path| profile(path)).collect();
    files.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    profiles
}

const LINES: [&str; 3] = ["--cachegrind-out-file=out", "--cache-sim=yes", "--branch-sim=yes"];

#[test]
fn parts_that_are_asked_for_add_up_to_the_whole() {
    let Some(dir) = built() else { return };
    let dir = dir.path();
    assert!(profiled(dir, &LINES, &[]).status().unwrap().success());
    let whole = taken(dir, "out");
    assert_eq!(whole.len(), 1);
    assert!(whole[0].header.desc.iter().all(|line| !line.starts_with(b"Part")));

    let mut child = profiled(dir, &LINES, &[]).spawn().unwrap();
    let mut asked = 0;
    while child.try_wait().unwrap().is_none() {
        if let Some(pid) = runs(dir).unwrap().first() {
            let hint = format!("--dump=number {asked}");
            let output = cg_control(dir, &[&hint, &pid.to_string()]);
            if output.status.success() {
                asked += 1;
                assert!(text(&output).contains(&format!("  out.{asked}\n  dump: OK\n")), "{}", text(&output));
            }
        }
        std::thread::sleep(Duration::from_millis(60));
    }
    assert!(child.wait().unwrap().success());
    let parts = taken(dir, "out");
    assert!(asked >= 2 && parts.len() == asked + 1, "{asked} were asked for, {} are there", parts.len());
    assert_eq!(rows(&parts), rows(&whole), "row by row, all events");
    let desc =
        |part: &Profile| part.header.desc.iter().map(|l| String::from_utf8(l.clone()).unwrap()).collect::<Vec<_>>();
    assert!(desc(&parts[1]).ends_with(&["Part: 2".to_owned(), "Trigger: dump number 1".to_owned()]));
    assert!(desc(&parts[asked]).ends_with(&["Trigger: Program termination".to_owned()]));
}

#[test]
fn parts_by_instructions_end_behind_their_marks_and_add_up_to_the_whole() {
    const EVERY: i128 = 20_000_000;
    let Some(dir) = built() else { return };
    let dir = dir.path();
    for lines in [&LINES[..1], &LINES[..]] {
        assert!(profiled(dir, lines, &[]).status().unwrap().success());
        let whole = taken(dir, "out");
        let options = [lines, &["--dump-every=20M-instructions"]].concat();
        assert!(profiled(dir, &options, &[]).status().unwrap().success());
        let parts = taken(dir, "out");
        assert_eq!(rows(&parts), rows(&whole));
        check_marks(&parts.iter().map(|part| part.total()[0]).collect::<Vec<_>>(), EVERY);
        assert!(parts[0].header.desc.iter().any(|line| line == b"Trigger: --dump-every=20M-instructions"));
    }
    // Of calls, in one file: all parts keep the laws, and together they show what the whole shows.
    let bin = tools::build(&["callgrind-annotate"]).expect("built").join("callgrind_annotate");
    let calls = ["--tool=callgrind", "--callgrind-out-file=out", "--combine-dumps=yes"];
    let shown = |options: &[&str]| {
        assert!(profiled(dir, &[&calls[..], options].concat(), &[]).status().unwrap().success());
        let path = dir.join("out");
        let bytes = std::fs::read(&path).unwrap();
        laws::check(&bytes, "out");
        let file = String::from_utf8(bytes).unwrap();
        let totals: Vec<i128> = file.lines().filter_map(|line| line.strip_prefix("totals: ")?.parse().ok()).collect();
        let output = Command::new(&bin).args(["--threshold=100", "--auto=no"]).arg(&path).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        let rows: Vec<String> = text(&output).lines().filter(|line| line.contains('%')).map(str::to_owned).collect();
        assert!(rows.iter().any(|row| row.contains("leaf")), "{rows:?}");
        (totals, rows)
    };
    let (total, rows) = shown(&[]);
    let (totals, rows_of_parts) = shown(&["--dump-every=20M-instructions"]);
    assert_eq!(total.len(), 1);
    check_marks(&totals, EVERY);
    assert_eq!(totals.iter().sum::<i128>(), total[0]);
    assert_eq!(rows_of_parts, rows, "function by function");
}

/// Whether each part but the last ended behind a mark that the one before had not reached.
fn check_marks(totals: &[i128], every: i128) {
    assert!(totals.len() > 2, "{totals:?}");
    let mut sum = 0;
    for total in &totals[..totals.len() - 1] {
        let before = sum / every;
        sum += total;
        assert!(sum / every > before, "a part ends before its mark: {totals:?}");
    }
}

#[test]
fn where_calls_are_told_there_are_no_instructions_to_count_by() {
    let Some(dir) = built() else { return };
    let told = ["--tool=callgrind", "--callgrind-out-file=out", "--tell-calls=yes"];
    let options = [&told[..], &["--dump-every=1G-instructions"]].concat();
    let output = profiled(dir.path(), &options, &[]).output().unwrap();
    assert!(complaint(&output).contains("needs counters of instructions"), "{output:?}");
    let run = Running::start(dir.path(), &told, &["forever"]);
    let pid = run.pids(1)[0].to_string();
    assert!(complaint(&cg_control(dir.path(), &["top", "--once", &pid])).contains("calls are told one by one"));
}

#[test]
fn a_run_of_cachegrind_answers() {
    let Some(dir) = built() else { return };
    let dir = dir.path();
    let run = Running::start(dir, &LINES, &["threads"]);
    let pid = run.pids(1)[0];
    let id = pid.to_string();
    let socket = dir.join(format!("grind-cachegrind-{pid}/control"));
    assert_eq!(runs_by_tool(dir).unwrap(), [(pid, Tool::Cachegrind)]);
    for name in [&id, "prog", socket.to_str().unwrap()] {
        assert!(text(&cg_control(dir, &[name])).ends_with("prog threads\n"), "{name}");
    }
    let stat = text(&cg_control(dir, &["--stat", &id]));
    for line in ["instrumentation: on", "part:", "threads:", "milliseconds:", "events:          Ir I1mr ILmr Dr"] {
        assert!(stat.contains(line), "{stat}");
    }
    // What its threads have executed is what it has, but for blocks that they were stopped in.
    let status = Client::connect(dir, pid).and_then(|mut client| client.status()).unwrap();
    let (threads, process) = (status.threads.iter().map(|t| t.total[0]).sum::<u64>(), status.totals[0]);
    assert!(threads.abs_diff(process) < 1000, "{threads} and {process}");
    let counts = text(&cg_control(dir, &["--events=Ir,Dr", &id]));
    assert!(counts.contains("process") && counts.contains(&format!("thread {pid}")), "{counts}");
    assert!(complaint(&cg_control(dir, &["--back", &id])).contains("cachegrind follows no calls"));

    // Counts go on from zero, and stand still while instrumentation is off.
    let before = counted(dir, pid);
    std::thread::sleep(Duration::from_millis(300));
    assert!(counted(dir, pid) > before);
    text(&cg_control(dir, &["--instr=off", &id]));
    let (off, still) = (counted(dir, pid), counted(dir, pid));
    assert_eq!(off, still);
    text(&cg_control(dir, &["--zero", &id]));
    assert_eq!(counted(dir, pid), 0);
    assert!(text(&cg_control(dir, &[&id])).contains("(instrumentation off)"));
    assert!(text(&cg_control(dir, &["--dump", &id])).contains("out.1"));
    assert_eq!(rows([&profile(&dir.join("out.1"))]), BTreeMap::new(), "nothing has run since");
    text(&cg_control(dir, &["--instr=on", &id]));

    let json = text(&cg_control(dir, &["--json", "--dump=x", &id]));
    for piece in ["\"tool\": \"cachegrind\"", "\"totals\": {", "\"request\": \"dump\"", "out.2\"", "\"part\": 2"] {
        assert!(json.contains(piece), "{piece}: {json}");
    }
    let kill = text(&cg_control(dir, &["--kill", &id]));
    assert!(kill.ends_with("kill: OK\n"), "{kill}");
    drop(run);
    assert!(complaint(&cg_control(dir, &[&id])).contains("no run of this number"));
    assert!(files(dir, "out").len() == 3);
}

#[test]
fn what_has_no_parts_says_so() {
    let Some(dir) = built() else { return };
    for (option, cause) in
        [("--tree=tree", "one file (--tree)"), ("--cachegrind-out-file=/dev/null", "is no file and has no")]
    {
        let run = Running::start(dir.path(), &[option], &["forever"]);
        let pid = run.pids(1)[0].to_string();
        for ask in ["--dump", "--zero"] {
            assert!(complaint(&cg_control(dir.path(), &[ask, &pid])).contains(cause), "{option} {ask}");
        }
    }
    let both = ["--tree=tree", "--dump-every=1s"];
    assert!(complaint(&profiled(dir.path(), &both, &[]).output().unwrap()).contains("do not go together"));
}

#[test]
fn what_runs_is_seen_while_it_does() {
    let Some(dir) = built() else { return };
    let dir = dir.path();
    for options in [&["--tool=callgrind", "--callgrind-out-file=calls"][..], &LINES[..]] {
        let run = Running::start(dir, options, &["forever"]);
        let pid = run.pids(1)[0].to_string();
        let once = text(&cg_control(dir, &["top", "--once", "--rows=2", &pid]));
        let functions: Vec<&str> = once.lines().skip_while(|line| !line.contains("function (file)")).skip(1).collect();
        assert!(functions[0].contains("leaf (prog.c)") && functions[1].contains("walk (prog.c)"), "{once}");
        assert_eq!(functions.len(), 3, "two, and a blank line");
        // leaf has some five instructions a round, and five times as many rounds.
        let share: f64 = functions[0].split_whitespace().next().unwrap().parse().unwrap();
        assert!((50.0..99.0).contains(&share), "{once}");
        assert_eq!(once.matches("instructions/s").count(), 1);
        let twice = text(&cg_control(dir, &["top", "--count=2", "--interval=100", "--filter=walk", &pid]));
        assert_eq!((twice.matches("instructions/s").count(), twice.matches("walk (prog.c)").count()), (2, 2));
        assert!(!twice.contains("leaf"));
        let json = text(&cg_control(dir, &["top", "--once", "--json"]));
        assert!(json.contains("\"function\": \"leaf\"") && json.contains("\"known_functions\""), "{json}");
        let wrong = cg_control(dir, &["top", "--once", "--sort=Zz", &pid]);
        assert!(complaint(&wrong).contains("event `Zz` is not counted"));
        drop(run);
    }
    // All misses are those of walk; they come in bunches.
    let calls = ["--tool=callgrind", "--callgrind-out-file=calls"];
    let calls = [&calls[..], &["--cache-sim=yes", "--branch-sim=yes"]].concat();
    let mut pid = String::new();
    // What is read and written is a read for one tool, and a write for the other.
    for (options, sort) in [(&LINES[..], "--sort=D1mr"), (&calls, "--sort=D1mw")] {
        let run = Running::start(dir, options, &["forever"]);
        pid = run.pids(1)[0].to_string();
        let start = Instant::now();
        loop {
            let sorted = text(&cg_control(dir, &["top", "--once", sort, "--rows=1", &pid]));
            // Where nothing has missed, there are no shares.
            let of_walk = sorted.lines().find(|line| line.contains("walk (prog.c)"));
            if of_walk.is_some_and(|line| line.split_whitespace().next().is_none_or(|share| share != "-")) {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{sorted}");
        }
        drop(run);
    }
    assert!(complaint(&cg_control(dir, &["top", "--once"])).contains("there is no run to look at"));
    let usage = cg_control(dir, &["top", "--zero", &pid]);
    assert_eq!(usage.status.code(), Some(2));
    assert_eq!(cg_control(dir, &["--once", &pid]).status.code(), Some(2));
}

#[test]
fn a_copy_of_a_process_has_parts_of_its_own() {
    let Some(dir) = built() else { return };
    let dir = dir.path();
    let options = ["--cachegrind-out-file=out.%p"];
    let profiles = || {
        let names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .filter_map(|e| e.unwrap().file_name().into_string().unwrap().strip_prefix("out.").map(str::to_owned))
            .filter(|name| !name.contains('.'))
            .collect();
        let mut all: Vec<Vec<Profile>> = names.iter().map(|pid| taken(dir, &format!("out.{pid}"))).collect();
        // The child executes less.
        all.sort_by_key(|parts| parts.iter().map(|part| part.total()[0]).sum::<i128>());
        all
    };
    assert!(profiled(dir, &options, &["forks"]).status().unwrap().success());
    let whole = profiles();
    assert!(
        profiled(dir, &[&options[..], &["--dump-every=15M-instructions"]].concat(), &["forks"])
            .status()
            .unwrap()
            .success()
    );
    let parts = profiles();
    assert_eq!((whole.len(), parts.len()), (2, 2));
    for (whole, parts) in whole.iter().zip(&parts) {
        assert!(whole.len() == 1 && parts.len() > 1);
        assert_eq!(rows(parts), rows(whole));
    }
}
