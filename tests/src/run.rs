//! Runs a command to its end, natively or under a profiler, with a deadline, and collects what it did.
//!
//! Every command gets its own process group, which is killed as a whole at the deadline and after the end: nothing that a
//! test starts outlives it. With `GRIND_DISTURB` set, what runs under a profiler is interrupted all the time. Output goes to
//! files, so a full pipe cannot stop a program and a straggler cannot stop a test.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::profile::Profile;
use crate::{
    disturb::{self, Disturbance},
    laws, tools,
};

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit status, or the signal that killed it.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Outcome {
    /// Status and output in readable form, for messages.
    pub fn show(&self) -> String {
        format!("  {}\n  stdout: {}\n  stderr: {}", self.status, excerpt(&self.stdout), excerpt(&self.stderr))
    }
}

fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= 1500 {
        return format!("{text:?}");
    }
    let cut = |i: usize| (i..).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len());
    format!("{:?} ... {:?} ({} bytes)", &text[..cut(700)], &text[cut(text.len() - 700)..], bytes.len())
}

/// A command to run, with its folder, time limit and environment.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The command, as words.
    pub words: Vec<String>,
    /// Where it runs.
    pub dir: &'a Path,
    /// When it is given up.
    pub limit: Duration,
    /// Whether children that execute other programs are profiled too.
    pub trace_children: bool,
    /// How it is interrupted all the time under a profiler, see [`disturb`].
    pub disturbed: Disturbance,
}

/// Whether the profiler says that it has panicked. The program may well not notice, nor who reads what was written.
pub fn has_failed(log: &str) -> bool {
    log.contains("error: grind has failed")
}

impl<'a> Job<'a> {
    /// A job with a limit of one minute that does not follow children.
    pub fn new<S: Into<String>>(words: impl IntoIterator<Item = S>, dir: &'a Path) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        Job { words, dir, limit: Duration::from_secs(60), trace_children: false, disturbed: disturb::wanted() }
    }

    /// Runs it natively.
    pub fn native(&self) -> Outcome {
        run(&self.words, self.dir, self.limit, Disturbance::None).0
    }

    /// Runs it under the program under test.
    pub fn grind(&self) -> Profiled {
        self.profiled(tools::under_test())
    }

    /// Runs it under the reference.
    pub fn valgrind(&self) -> Profiled {
        self.profiled(&tools::valgrind())
    }

    /// Runs it under `profiler`.
    pub fn profiled(&self, profiler: &[String]) -> Profiled {
        let out = tempfile::tempdir().expect("a temporary folder");
        let mut words = profiler.to_vec();
        let calls = profiler.iter().any(|w| w == "--tool=callgrind");
        let tool = if calls { "callgrind" } else { "cachegrind" };
        words.push(format!("--{tool}-out-file={}/cg.%p", out.path().display()));
        words.push(format!("--log-file={}/log.%p", out.path().display()));
        if self.trace_children {
            words.push("--trace-children=yes".into());
        }
        words.extend(self.words.iter().cloned());
        let (outcome, first) = run(&words, self.dir, self.limit, self.disturbed);
        let mut profiles = Vec::new();
        let mut log = String::new();
        for entry in fs::read_dir(out.path()).expect("the temporary folder") {
            let path = entry.expect("a folder entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = fs::read(&path).expect("a file just written");
            match name.strip_prefix("cg.") {
                Some(pid) => profiles.push((pid.to_owned(), text)),
                None => log.push_str(&String::from_utf8_lossy(&text)),
            }
        }
        profiles.sort_by_key(|(name, _)| as_begun(name, first));
        assert!(!has_failed(&log), "{log}");
        Profiled { outcome, raw: profiles, log }
    }
}

/// What a command did under a profiler.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// Status and output of the program.
    pub outcome: Outcome,
    /// The profile files in the order in which their processes began: (id, bytes).
    pub raw: Vec<(String, Vec<u8>)>,
    /// The logs of all processes.
    pub log: String,
}

impl Profiled {
    /// All profiles, read and checked, in the order in which their processes began.
    ///
    /// # Panics
    /// If there is none, or one that cannot be read.
    pub fn profiles(&self) -> Vec<Profile> {
        assert!(!self.raw.is_empty(), "no profile was written; {}\nlog:\n{}", self.outcome.show(), self.log);
        self.raw
            .iter()
            .map(|(pid, bytes)| match Profile::parse(bytes) {
                Ok(p) => p,
                Err(e) => panic!("profile of process {pid}: {e:#}\nlog:\n{}", self.log),
            })
            .collect()
    }

    /// Makes sure that there are profiles of calls, each with sums and arcs that agree with its rows.
    ///
    /// # Panics
    /// If not.
    pub fn check_calls(&self) {
        assert!(!self.raw.is_empty(), "no profile was written; {}\nlog:\n{}", self.outcome.show(), self.log);
        for (pid, bytes) in &self.raw {
            let text = String::from_utf8_lossy(bytes);
            let of = |key| text.lines().filter_map(|l| l.strip_prefix(key)).map(str::trim).collect::<Vec<_>>();
            assert_eq!(of("summary:"), of("totals:"), "profile of process {pid}");
            assert!(!of("summary:").is_empty(), "profile of process {pid}");
            laws::check(bytes, &format!("profile of process {pid}"));
        }
    }

    /// The profile of the only process.
    pub fn only(&self) -> Profile {
        let mut all = self.profiles();
        assert_eq!(all.len(), 1, "one process, so one profile is expected");
        all.remove(0)
    }
}

/// The environment of every test: small, fixed, the same natively and under a profiler.
fn environment(dir: &Path) -> Vec<(&'static str, OsString)> {
    let mut env: Vec<(&str, OsString)> = vec![
        ("HOME", dir.into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("PYTHONHASHSEED", "0".into()),
        ("PERL_HASH_SEED", "0".into()),
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("TERM", "dumb".into()),
    ];
    for name in ["PATH", "RUSTUP_HOME", "CARGO_HOME", "GRIND_OPTS", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            env.push((name, value));
        }
    }
    // Toolchain managers look below HOME, which is another one here.
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        for (name, below) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            if std::env::var_os(name).is_none() && home.join(below).is_dir() {
                env.push((name, home.join(below).into()));
            }
        }
    }
    env
}

/// A command with the tests' environment, in a process group of its own.
pub fn command(words: &[String], dir: &Path) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(dir).env_clear().envs(environment(dir)).process_group(0);
    command
}

/// Where a file called `name`, an id and what follows it, comes among those of processes that began after `first`: process ids
/// grow, and begin anew below `first` when there are no more.
fn as_begun(name: &str, first: Pid) -> (bool, i32, usize, String) {
    let (id, rest) = name.split_at(name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len()));
    let id = id.parse().unwrap_or(i32::MAX);
    (id < first.as_raw(), id, rest.len(), rest.to_owned())
}

/// What it did, and the id of its first process.
fn run(words: &[String], dir: &Path, limit: Duration, disturbed: Disturbance) -> (Outcome, Pid) {
    let out = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| out.path().join(name);
    let mut child = command(words, dir)
        .stdin(Stdio::null())
        .stdout(File::create(file("stdout")).expect("a file for the output"))
        .stderr(File::create(file("stderr")).expect("a file for the output"))
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", words[0]));
    let group = Pid::from_raw(child.id().try_into().expect("a process id"));
    let disturber = disturb::begin(child.id(), disturbed);
    // A machine that stands still as a whole, for minutes even, makes nobody late: its clock may go on meanwhile.
    let (mut waited, mut looked) = (Duration::ZERO, Instant::now());
    let mut nap = Duration::from_micros(500);
    let mut left = String::new();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break Some(status);
        }
        waited += looked.elapsed().min(Duration::from_secs(1));
        looked = Instant::now();
        if waited > limit {
            left = states(group);
            break None;
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(20));
    };
    if let Some(disturber) = disturber {
        eprintln!("disturbed {} times", disturb::end(disturber));
    }
    // Stragglers of the group, or all of it; it is no error that there are none left.
    let _ = killpg(group, Signal::SIGKILL);
    let read = |name| fs::read(file(name)).expect("the output just written");
    let Some(status) = status else {
        let _ = child.wait();
        let dead = ExitStatus::from_raw(Signal::SIGKILL as i32);
        let partial = Outcome { status: dead, stdout: read("stdout"), stderr: read("stderr") };
        panic!("{words:?}: not finished after {limit:?}; killed\n{}\n{left}", partial.show());
    };
    (Outcome { status, stdout: read("stdout"), stderr: read("stderr") }, group)
}

#[test]
fn processes_come_in_the_order_in_which_they_began_though_ids_begin_anew() {
    let mut names = ["301.t2", "301.t10", "32767", "4000", "301", "32766.t1", "302"];
    names.sort_by_key(|name| as_begun(name, Pid::from_raw(32_765)));
    assert_eq!(names, ["32766.t1", "32767", "301", "301.t2", "301.t10", "302", "4000"]);
}

/// What the threads of a process group are doing, twice, a moment apart: whether they hang, or are only slow.
fn states(group: Pid) -> String {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let mut text = String::new();
    for _ in 0..2 {
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = process.file_name().to_string_lossy().into_owned();
            let stat = read(format!("/proc/{pid}/stat"));
            // State, parent and group come behind the name, which may hold anything.
            let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
            if rest.split(' ').nth(2).and_then(|g| g.parse().ok()) != Some(group.as_raw()) {
                continue;
            }
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let dir = task.path().display().to_string();
                let status = read(format!("{dir}/status"));
                let of = |key: &str| status.lines().find(|l| l.starts_with(key)).unwrap_or("").replace('\t', " ");
                let shown = ["Name:", "State:", "TracerPid:", "SigPnd:", "ShdPnd:", "voluntary_ctxt_switches:"].map(of);
                let call = read(format!("{dir}/syscall"));
                text.push_str(&format!("  {dir}: {}; {}", shown.join(" "), call.trim()));
                text.push_str(&format!(" {}\n", read(format!("{dir}/schedstat")).trim()));
            }
        }
        text.push('\n');
        std::thread::sleep(Duration::from_millis(300));
    }
    text
}
