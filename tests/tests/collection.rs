//! Collecting costs is switched on and off from outside (`callgrind_control --collection`), for all threads at once: nothing is counted
//! in between, everything else is, to the instruction, and the laws of call graphs hold, whoever follows the calls.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Client, Request, Status, runs};
use grind_tests::{build, laws, run, tools};

/// Computes once for each byte that it gets, and answers. With an argument another thread computes all the time, and a timer interrupts.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
static volatile unsigned sink, over;
__attribute__((noinline)) void leaf(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void step(void) { for (volatile int i = 0; i < 100; i++) leaf(1000); }
__attribute__((noinline)) void tick(int signal) { static volatile int n; while (n++ < 50) sink++; n = 0; (void)signal; }
static void *other(void *p) { while (!over) leaf(100); return p; }
int main(int argc, char **argv)
{
    char c;
    pthread_t thread;
    (void)argv;
    if (argc > 1) {
        struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
        struct itimerval often = { { 0, 700 }, { 0, 700 } };
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &often, 0);
        pthread_create(&thread, 0, other, 0);
    }
    while (read(0, &c, 1) == 1) {
        step();
        if (write(1, &c, 1) != 1) return 1;
    }
    if (argc > 1) {
        over = 1;
        pthread_join(thread, 0);
    }
    return 0;
}
"#;

struct Running {
    child: Child,
    pid: u32,
    dir: tempfile::TempDir,
}

impl Running {
    /// The program under grind, when it listens.
    fn start(options: &[&str], args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("p.c"), PROGRAM).unwrap();
        let words = ["cc", "-O1", "-g", "-pthread", "-o", "p", "p.c"].map(str::to_owned);
        build::compile(&words, dir.path());
        let mut words = tools::under_test().to_vec();
        words.extend(["-q", "--tool=callgrind", "--callgrind-out-file=out"].map(str::to_owned));
        words.extend(options.iter().map(|&option| option.to_owned()));
        words.push(dir.path().join("p").display().to_string());
        words.extend(args.iter().map(|&arg| arg.to_owned()));
        let mut command = run::command(&words, dir.path());
        command.env("XDG_RUNTIME_DIR", dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        let start = Instant::now();
        let pid = loop {
            if let [pid] = runs(dir.path()).unwrap()[..] {
                break pid;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        };
        Self { child, pid, dir }
    }

    fn step(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        self.child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }

    fn client(&self) -> Client {
        Client::connect(self.dir.path(), self.pid).unwrap()
    }

    fn collect(&self, on: bool) {
        assert_eq!(self.client().ask(&Request::Collection(on)).unwrap(), [""; 0]);
    }

    fn status(&self) -> Status {
        self.client().status().unwrap()
    }

    /// Its end: the profile, which keeps the laws.
    fn ends(&mut self) -> String {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        let bytes = std::fs::read(self.dir.path().join("out")).unwrap();
        laws::check(&bytes, "out");
        String::from_utf8(bytes).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a function has cost by itself, in instructions.
fn cost(profile: &str, function: &str) -> u64 {
    let (mut inside, mut after_call, mut sum) = (false, false, 0);
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            inside = known(profile, name, function);
        } else if line.starts_with("calls=") {
            after_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            if inside && !after_call {
                sum += line.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            }
            after_call = false;
        }
    }
    sum
}

/// Whether `(N)` or `(N) name` is that function.
fn known(profile: &str, name: &str, function: &str) -> bool {
    let number = name.split(' ').next().unwrap_or_default();
    profile.lines().any(|line| {
        let defined = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn="));
        defined.is_some_and(|defined| defined == format!("{number} {function}"))
    })
}

/// The ways in which costs are recorded: whoever follows the calls, with caches and without, and from where collection begins.
const WAYS: [(&[&str], bool); 6] = [
    (&[], true),
    (&["--cache-sim=yes", "--branch-sim=yes"], true),
    (&["--tell-calls=yes"], true),
    (&["--tell-calls=yes", "--cache-sim=yes"], true),
    (&["--collect-atstart=no", "--separate-callers=2"], false),
    (&["--collect-jumps=yes", "--collect-systime=yes"], true),
];

#[test]
fn what_is_collected_is_exact() {
    let one = {
        let mut run = Running::start(&[], &[]);
        run.step();
        cost(&run.ends(), "leaf")
    };
    assert!(one > 300_000, "{one}");
    for (options, at_start) in WAYS {
        let mut run = Running::start(options, &[]);
        let mut collected = 0;
        let mut on = at_start;
        for wanted in [true, false, false, true, true, false, true, false] {
            if wanted != on || collected == 3 {
                // Who asks for the state that it is in changes nothing.
                run.collect(wanted);
                on = wanted;
            }
            run.step();
            collected += u64::from(on);
        }
        let profile = run.ends();
        let found: u64 = if options.contains(&"--separate-callers=2") {
            profile_cost_of_all_contexts(&profile)
        } else {
            cost(&profile, "leaf")
        };
        assert_eq!(found, one * collected, "{options:?}");
    }
}

/// Of functions with their callers in their names.
fn profile_cost_of_all_contexts(profile: &str) -> u64 {
    let names = profile.lines().filter_map(|line| line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")));
    let mut of_leaf: Vec<&str> = names
        .filter_map(|name| name.split_once(' '))
        .map(|(_, name)| name)
        .filter(|name| name.starts_with("leaf'") || *name == "leaf")
        .collect();
    of_leaf.sort_unstable();
    of_leaf.dedup();
    of_leaf.into_iter().map(|name| cost(profile, name)).sum()
}

/// Threads that compute, wait and are interrupted all the while.
#[test]
fn nothing_is_collected_while_that_is_off() {
    for options in [&[][..], &["--cache-sim=yes"], &["--tell-calls=yes"]] {
        let mut run = Running::start(options, &["all"]);
        let total = |status: &Status| status.threads.iter().map(|t| t.total[0]).sum::<u64>();
        for _ in 0..8 {
            run.step();
            run.collect(false);
            let off = total(&run.status());
            run.step();
            std::thread::sleep(Duration::from_millis(10));
            assert_eq!(total(&run.status()), off, "{options:?}");
            run.collect(true);
            let start = Instant::now();
            while total(&run.status()) <= off {
                assert!(start.elapsed() < Duration::from_secs(20), "it is not collected again: {options:?}");
            }
        }
        run.ends();
    }
}

#[test]
fn what_has_no_collection_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let bin = tools::build(&["cg-control"]).expect("built").join("cg_control");
    let mut words = tools::under_test().to_vec();
    words.extend(["-q", "--cachegrind-out-file=out", "sleep", "60"].map(str::to_owned));
    let mut run = run::command(&words, dir.path());
    let mut run = run.env("XDG_RUNTIME_DIR", dir.path()).spawn().unwrap();
    let start = Instant::now();
    while runs(dir.path()).unwrap().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    let ask = |words: &[&str]| Command::new(&bin).args(words).env("XDG_RUNTIME_DIR", dir.path()).output().unwrap();
    let pid = runs(dir.path()).unwrap()[0].to_string();
    let refused = ask(&["--collection=off", &pid]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("--instr switches counting"), "{text}");
    assert!(ask(&["--kill", &pid]).status.success());
    let _ = run.wait();
    assert!(Path::new(&dir.path().join("out")).exists());
}
