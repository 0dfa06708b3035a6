//! Programs that run already are joined (`--pid`) and left again. What they do is as if nobody had been there, what is counted while
//! they are followed is exact, and nothing of the profiler's stays with them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Client, Request, runs};
use grind_tests::build::Source;
use grind_tests::profile::Profile;
use grind_tests::{calls, laws, run, tools};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The programs.
static PROGRAMS: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Builds one; tests run side by side.
fn program(name: &str) -> PathBuf {
    static BUILT: AtomicUsize = AtomicUsize::new(0);
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let at = PROGRAMS.path().join(format!("{name}-{}", BUILT.fetch_add(1, Ordering::Relaxed)));
    let source = Source::open("attach", name);
    let mut words = vec!["cc".to_owned(), include, "-o".into(), at.display().to_string()];
    words.extend(source.words("cc"));
    words.push(source.path.display().to_string());
    grind_tests::build::compile(&words, PROGRAMS.path());
    at
}

/// A program that runs by itself; it is killed in the end.
struct Alone {
    child: Child,
    dir: tempfile::TempDir,
}

impl Alone {
    fn start(program: &Path, args: &[&str]) -> Self {
        Self::start_with(program, args, Path::new("/nonexistent"))
    }

    /// The program with a window, before that.
    fn ready() -> Self {
        let mut alone = Self::start(&program("window"), &[]);
        assert_eq!(alone.says(), b'r');
        alone
    }

    /// As [`Alone::start`], where runs that listen do so below `base`.
    fn start_with(program: &Path, args: &[&str], base: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        let child = command
            .args(args)
            .env("XDG_RUNTIME_DIR", base)
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Self { child: child.spawn().unwrap(), dir }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap())
    }

    /// Grind, about to follow it.
    fn profiler(&self, options: &[&str]) -> Command {
        let mut words = tools::under_test().to_vec();
        words.push(format!("--pid={}", self.child.id()));
        words.extend(options.iter().map(|&option| option.to_owned()));
        run::command(&words, self.dir.path())
    }

    /// Follows it for a while.
    fn visit(&self, options: &[&str]) {
        let output = self.profiler(&["-q"]).args(options).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        // Of this machine's caches it says what it takes of them.
        let quiet = text.lines().all(|line| line.contains("cache found, using its data"));
        assert!(output.status.success() && quiet, "{options:?}: {}, {text}", output.status);
    }

    /// What `/proc` shows of it: mappings, descriptors, threads with what they block, and who traces it.
    fn seen(&self) -> String {
        let proc = PathBuf::from(format!("/proc/{}", self.child.id()));
        let mut seen = fs::read_to_string(proc.join("maps")).unwrap();
        let names = |folder: &str| {
            let mut all: Vec<_> = fs::read_dir(proc.join(folder)).unwrap().map(|e| e.unwrap().file_name()).collect();
            all.sort();
            all
        };
        seen += &format!("{:?}\n", names("fd"));
        for thread in names("task") {
            let status = fs::read_to_string(proc.join("task").join(&thread).join("status")).unwrap();
            let lines = ["TracerPid:", "SigBlk:", "SigIgn:", "SigCgt:", "SigPnd:", "Cpus_allowed:", "State:"];
            let wanted = status.lines().filter(|l| lines.iter().any(|wanted| l.starts_with(wanted)));
            seen += &format!("{thread:?}: {}\n", wanted.collect::<Vec<_>>().join(" "));
        }
        seen
    }

    /// The next byte that it writes.
    fn says(&mut self) -> u8 {
        let mut byte = [0];
        self.child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        byte[0]
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }

    /// It goes on, and says each of these when it has got so far.
    fn goes_through(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.go_on();
            assert_eq!(self.says(), byte);
        }
    }

    /// It goes on to its end.
    fn ends_well(&mut self) {
        self.go_on();
        self.ends("");
    }

    /// Its end.
    fn ends(&mut self, output: &str) {
        let mut text = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success() && text == output, "{status}, {text}");
    }

    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.path().join(name)).unwrap()
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn state(pid: Pid) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().filter(|l| l.starts_with("State:") || l.starts_with("TracerPid:")).collect::<Vec<_>>().join(" ")
}

fn follows(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default().contains("memfd:grind")
}

const MODES: [&[&str]; 5] = [
    &["--cachegrind-out-file=out"],
    &[
        "--cachegrind-out-file=out",
        "--cache-sim=yes",
        "--branch-sim=yes",
        "--I1=32768,8,64",
        "--D1=32768,8,64",
        "--LL=8388608,16,64",
    ],
    &["--tool=callgrind", "--callgrind-out-file=out"],
    &[
        "--tool=callgrind",
        "--callgrind-out-file=out",
        "--cache-sim=yes",
        "--I1=32768,8,64",
        "--D1=32768,8,64",
        "--LL=8388608,16,64",
        "--dump-instr=yes",
    ],
    &["--tool=callgrind", "--callgrind-out-file=out", "--collect-jumps=yes", "--instr-atstart=no"],
];

/// Threads that compute, wait in all kinds of calls, send and get signals, start threads and programs, make code: all of it while they
/// are joined and left again and again.
#[test]
fn a_program_that_minds_is_joined_and_left_again_and_again() {
    let patient = program("patient");
    let visits = |mode: &[&str]| {
        let mut alone = Alone::start(&patient, &["5000"]);
        let end = Instant::now() + Duration::from_millis(4000);
        let mut visits = 0;
        while Instant::now() < end {
            alone.visit(&[mode, &["--duration=60ms"]].concat());
            visits += 1;
        }
        eprintln!("{mode:?}: {visits} visits");
        alone.ends("");
    };
    std::thread::scope(|s| MODES.iter().for_each(|mode| drop(s.spawn(|| visits(mode)))));
}

/// The profiler's own is a shell here.
#[test]
fn a_log_names_the_parent_of_who_is_joined() {
    let mut alone = Alone::ready();
    let mut shell = vec!["sh".to_owned(), "-c".into(), "\"$@\"; exit $?".into(), "sh".into()];
    shell.extend_from_slice(tools::under_test());
    shell.extend([format!("--pid={}", alone.child.id()), "--duration=50ms".into(), "--log-file=log".into()]);
    let output = run::command(&shell, alone.dir.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = String::from_utf8(alone.file("log")).unwrap();
    assert!(log.contains(&format!("Parent PID: {}\n", std::process::id())), "{log}");
    alone.goes_through(b"wd");
    alone.ends_well();
}

#[test]
fn nothing_stays_with_a_program_that_is_left() {
    let mut alone = Alone::ready();
    let pid = alone.pid();
    until("it waits", || state(pid).contains("S (sleeping)"));
    let before = alone.seen();
    for mode in MODES {
        alone.visit(&[mode, &["--duration=50ms"]].concat());
        until("it waits", || state(pid).contains("S (sleeping)"));
        assert_eq!(before, alone.seen(), "{mode:?}");
    }
    alone.goes_through(b"wd");
    alone.ends_well();
}

/// What is executed between two marks is the same whether the program was started under grind or joined before the first. (The C
/// library starts threads in another way where it has no restartable sequences.)
#[test]
fn a_window_counts_the_same_as_from_a_start() {
    let window = program("window");
    let cachegrind = ["-q", "--cpu=host", "--instr-at-start=no", "--cachegrind-out-file=out"];
    let callgrind = ["-q", "--cpu=host", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=out"];
    let plain = ["--compress-strings=no", "--compress-pos=no"];
    let counts = |options: &[&str], joined: bool| -> BTreeMap<String, u64> {
        let mut alone = if joined {
            Alone::start(&window, &[])
        } else {
            let words = tools::under_test();
            let args = words[1..].iter().map(String::as_str).chain(options.iter().copied());
            Alone::start(Path::new(&words[0]), &args.chain([window.to_str().unwrap()]).collect::<Vec<_>>())
        };
        assert_eq!(alone.says(), b'r');
        let pid = alone.pid();
        let profiler = joined.then(|| {
            let profiler = alone.profiler(options).spawn().unwrap();
            until("it is followed", || follows(pid));
            profiler
        });
        alone.goes_through(b"wd");
        alone.ends_well();
        if let Some(mut profiler) = profiler {
            assert!(profiler.wait().unwrap().success());
        }
        if !options.contains(&"--tool=callgrind") {
            let functions = Profile::parse(&alone.file("out")).unwrap().functions();
            return functions.into_iter().map(|((file, name), n)| (format!("{file} {name}"), n)).collect();
        }
        // The window is in the part that was dumped.
        let bytes = alone.file("out.1");
        laws::check(&bytes, "window");
        calls::parse(&bytes).counts
    };
    for options in [cachegrind.to_vec(), [&callgrind[..], &plain[..]].concat()] {
        let [started, joined] = [false, true].map(|joined| {
            let mut counts = counts(&options, joined);
            // (Who waits for a thread may have to wait, or not.)
            let own = |name: &str| {
                name.contains("window.c")
                    && !["pthread_", "-> within", "-> work"].iter().any(|other| name.contains(other))
            };
            counts.retain(|name, _| own(name));
            counts
        });
        assert!(started.values().sum::<u64>() > 13_000_000, "{started:?}");
        assert_eq!(started, joined);
    }
}

/// Functions that were active before have callers, and costs of their own and of what they call.
#[test]
fn who_was_active_before_is_a_caller() {
    let mut alone = Alone::ready();
    alone.goes_through(b"w");
    let pid = alone.pid();
    let options = ["-q", "--tool=callgrind", "--callgrind-out-file=out", "--compress-strings=no", "--compress-pos=no"];
    let mut profiler = alone.profiler(&options).spawn().unwrap();
    until("it is followed", || follows(pid));
    alone.goes_through(b"d");
    alone.ends_well();
    assert!(profiler.wait().unwrap().success());
    let bytes = alone.file("out.1");
    laws::check(&bytes, "out.1");
    let told = calls::parse(&bytes);
    // Both were called before, and cost what was executed below them since.
    for (caller, callee) in [("within", "outer"), ("main", "within")] {
        let cost = told
            .counts
            .iter()
            .filter(|(key, _)| key.contains(&format!(" {caller} ")) && key.contains(&format!("-> {callee}: cost")));
        let cost: u64 = cost.map(|(_, n)| n).sum();
        assert!(cost > 10_000_000, "{caller} -> {callee}: {cost}\n{told:#?}");
    }
}

/// Whatever the run is about to do when it is told to end.
#[test]
fn a_visit_that_is_to_end_when_it_begins_does() {
    let window = program("window");
    let mut alone = Alone::start(&window, &[]);
    assert_eq!(alone.says(), b'r');
    let pid = alone.pid();
    for _ in 0..25 {
        let mut command = alone.profiler(&["--cachegrind-out-file=out"]);
        let mut profiler = command.stderr(Stdio::null()).spawn().unwrap();
        while state(pid).contains("TracerPid:\t0") {
            assert!(profiler.try_wait().unwrap().is_none(), "it has not been told to");
        }
        signal(&profiler, Signal::SIGTERM);
        let ended = until_it_ends(&mut profiler);
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", state(pid));
        assert!(!follows(pid), "{}", state(pid));
    }
    alone.goes_through(b"wd");
    alone.ends_well();
}

/// How a run ends, unless that takes too long: then it is killed.
fn until_it_ends(profiler: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if let Some(status) = profiler.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    profiler.kill().unwrap();
    profiler.wait().unwrap();
    None
}

#[test]
fn a_visit_ends_in_many_ways() {
    let window = program("window");
    // What is ignored where the tests run, as in the background of a shell, is ignored by grind, too.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).map(|set| set.trim().to_owned()).unwrap();
    let ignored = u64::from_str_radix(&ignored, 16).unwrap();
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let signals = signals.into_iter().filter(|&signal| ignored >> (signal as i32 - 1) & 1 == 0);
    for end in signals.map(Some).chain([None]) {
        let mut alone = Alone::start(&window, &[]);
        assert_eq!(alone.says(), b'r');
        let pid = alone.pid();
        let mut command = alone.profiler(&["--cachegrind-out-file=out"]);
        if end.is_none() {
            command.arg("--duration=300ms");
        }
        let mut profiler = command.stderr(Stdio::null()).spawn().unwrap();
        until("it is followed", || follows(pid));
        if let Some(end) = end {
            signal(&profiler, end);
        }
        assert!(profiler.wait().unwrap().success(), "{end:?}");
        assert!(!follows(pid) && state(pid).contains("TracerPid:\t0"), "{end:?}: {}", state(pid));
        Profile::parse(&alone.file("out")).unwrap();
        alone.goes_through(b"wd");
        alone.ends_well();
    }
}

fn signal(profiler: &Child, signal: Signal) {
    kill(Pid::from_raw(profiler.id().try_into().unwrap()), signal).unwrap();
}

/// Whoever kills grind kills the process that the user sees; the tracer behind it leaves the program and writes the profile.
#[test]
fn a_program_outlives_a_profiler_that_is_killed() {
    let mut alone = Alone::ready();
    let pid = alone.pid();
    let mut profiler = alone.profiler(&["-q", "--cachegrind-out-file=out"]).spawn().unwrap();
    until("it is followed", || follows(pid));
    alone.goes_through(b"w");
    signal(&profiler, Signal::SIGKILL);
    let _ = profiler.wait();
    until("it is left", || !follows(pid) && state(pid).contains("TracerPid:\t0"));
    until("there is a profile", || Profile::parse(&fs::read(alone.dir.path().join("out")).unwrap_or_default()).is_ok());
    alone.goes_through(b"d");
    alone.ends_well();
}

#[test]
fn a_program_that_job_control_has_stopped_stays_stopped() {
    let mut alone = Alone::ready();
    let pid = alone.pid();
    kill(pid, Signal::SIGSTOP).unwrap();
    until("it is stopped", || state(pid).contains("T (stopped)"));
    alone.visit(&["--cachegrind-out-file=out", "--duration=100ms"]);
    until("it is stopped", || state(pid).contains("T (stopped)"));
    kill(pid, Signal::SIGCONT).unwrap();
    alone.goes_through(b"wd");
    alone.ends_well();
}

#[test]
fn a_visit_lasts_until_a_dump() {
    let mut alone = Alone::ready();
    let pid = alone.pid();
    let options = ["-q", "--tool=callgrind", "--callgrind-out-file=out", "--until-dump=yes"];
    let mut profiler = alone.profiler(&options).spawn().unwrap();
    until("it is followed", || follows(pid));
    alone.goes_through(b"wd");
    assert!(profiler.wait().unwrap().success());
    assert!(!follows(pid));
    laws::check(&alone.file("out.1"), "out.1");
    alone.ends_well();
}

/// Whether it was started under grind or joined, a program is left when somebody outside wants it, and goes on.
#[test]
fn somebody_outside_has_a_program_left() {
    for joined in [false, true] {
        let window = program("window");
        let options = ["-q", "--tool=callgrind", "--callgrind-out-file=out"];
        let base = tempfile::tempdir().unwrap();
        let mut alone = if joined {
            Alone::start(&window, &[])
        } else {
            let words = tools::under_test();
            let args = words[1..].iter().map(String::as_str).chain(options);
            let args: Vec<&str> = args.chain([window.to_str().unwrap()]).collect();
            Alone::start_with(Path::new(&words[0]), &args, base.path())
        };
        assert_eq!(alone.says(), b'r');
        let mut profiler = joined.then(|| {
            let mut profiler = alone.profiler(&options);
            profiler.env("XDG_RUNTIME_DIR", base.path()).spawn().unwrap()
        });
        until("it listens", || runs(base.path()).is_ok_and(|pids| pids.len() == 1));
        let pid = Pid::from_raw(runs(base.path()).unwrap()[0].try_into().unwrap());
        alone.goes_through(b"w");
        let mut client = Client::connect(base.path(), pid.as_raw().try_into().unwrap()).unwrap();
        client.ask(&Request::Detach).unwrap();
        until("it is left", || !follows(pid) && state(pid).contains("TracerPid:\t0"));
        alone.goes_through(b"d");
        alone.ends_well();
        if let Some(profiler) = &mut profiler {
            assert!(profiler.wait().unwrap().success());
        }
        laws::check(&alone.file("out"), "out");
    }
}

#[test]
fn what_cannot_be_joined_is_refused_in_a_sentence() {
    let mut alone = Alone::start(&program("patient"), &["60000", "sleeps"]);
    let pid = alone.pid();
    until("it has threads", || fs::read_dir(format!("/proc/{pid}/task")).unwrap().count() > 1);
    let thread = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .find(|t| *t != pid.to_string())
        .unwrap();
    let refused = |options: &[&str], why: &str| {
        let mut words = tools::under_test().to_vec();
        words.extend(options.iter().map(|&option| option.to_owned()));
        let output = run::command(&words, alone.dir.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && text.contains(why), "{options:?}: {}, {text}", output.status);
    };
    refused(&["--pid=4194303"], "cannot attach to process 4194303: there is no such process");
    refused(&[&format!("--pid={thread}")], &format!("it is a thread of process {pid} (--pid={pid})"));
    refused(&["--pid=2"], "process 2");
    refused(&["--pid=x"], "Invalid integer value 'x'");
    refused(&[&format!("--pid={pid}"), "true"], "there is no program to start as well ('true')");
    refused(&["--duration=1s", "true"], "--duration needs --pid");
    refused(&["--duration=soon", "true"], "Invalid time 'soon' (as in 10s, 500ms, 2m)");
    let without_first = Alone::start(&program("alone_at_last"), &[]);
    until("its first thread has ended", || state(without_first.pid()).contains("Z (zombie)"));
    refused(&[&format!("--pid={}", without_first.pid())], "its first thread has ended");
    // Another tracer.
    let mut first = alone.profiler(&["-q", "--cachegrind-out-file=out"]).spawn().unwrap();
    until("it is followed", || follows(pid));
    refused(&[&format!("--pid={pid}")], "traces it already, and there can be one tracer only");
    signal(&first, Signal::SIGINT);
    assert!(first.wait().unwrap().success());
    // One that has ended.
    alone.child.kill().unwrap();
    until("it has ended", || state(pid).contains("Z (zombie)"));
    let mut words = tools::under_test().to_vec();
    words.push(format!("--pid={pid}"));
    let output = run::command(&words, alone.dir.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("it has ended"), "{output:?}");
}
