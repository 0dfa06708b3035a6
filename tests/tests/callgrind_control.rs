//! Running programs under callgrind are asked and told things through their sockets, as `callgrind_control` does it: while
//! they compute, while they sleep in a system call, with several threads, and after they have forked.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Client, ClientError, Request, Status, runs};
use grind_tests::{run, tools};

const PROGRAM: &str = r#"
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static volatile unsigned sink;
__attribute__((noinline)) void leaf(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void compute(void) { int i; for (i = 0; i < 1 << 30; i++) { leaf(1000); sink++; } }
__attribute__((noinline)) void rest(void) { for (;;) { sleep(1000); leaf(3); sink++; } }
static void *thread(void *p) { compute(); return p; }
int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    alarm(500);
    if (!strcmp(how, "threads")) {
        pthread_t t;
        pthread_create(&t, 0, thread, 0);
        rest();
    }
    if (!strcmp(how, "forks")) {
        if (fork() == 0) rest();
        compute();
    }
    if (!strcmp(how, "sleeps")) rest();
    compute();
    return 0;
}
"#;

/// A profiled program, which is killed in the end.
struct Running {
    child: Child,
    dir: tempfile::TempDir,
}

impl Running {
    fn start(program: &Path, how: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut words = tools::under_test().to_vec();
        words.extend(["-q", "--tool=callgrind", "--callgrind-out-file=out.%p"].map(str::to_owned));
        words.extend([program.display().to_string(), how.to_owned()]);
        let mut command = run::command(&words, dir.path());
        command.env("XDG_RUNTIME_DIR", dir.path()).stdin(Stdio::null());
        let child = command.stderr(std::fs::File::create(dir.path().join("log")).unwrap()).spawn().unwrap();
        Self { child, dir }
    }

    fn base(&self) -> &Path {
        self.dir.path()
    }

    /// The processes, once there are so many of them.
    fn pids(&self, n: usize) -> Vec<u32> {
        let start = Instant::now();
        loop {
            let pids = runs(self.base()).unwrap();
            if pids.len() == n {
                return pids;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{pids:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A status that `ready` likes.
    fn wait_for(&self, pid: u32, ready: impl Fn(&Status) -> bool) -> Status {
        let start = Instant::now();
        loop {
            if let Ok(status) = Client::connect(self.base(), pid).and_then(|mut c| c.status())
                && ready(&status)
            {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "it does not get there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn ask(&self, pid: u32, request: &Request) -> Vec<String> {
        Client::connect(self.base(), pid)
            .and_then(|mut c| c.ask(request))
            .unwrap_or_else(|e| panic!("{request:?}: {e}"))
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.base().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its profile is written to the folder, which must not vanish before.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let pids = runs(self.base()).unwrap_or_default();
            if pids.is_empty() {
                break;
            }
            for pid in pids {
                let _ = Client::connect(self.base(), pid).and_then(|mut c| c.ask(&Request::Kill));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            let log = self.file("log");
            assert!(!run::has_failed(&log), "{log}");
        }
    }
}

fn build(dir: &Path) -> std::path::PathBuf {
    let (file, path) = (dir.join("prog.c"), dir.join("prog"));
    std::fs::write(&file, PROGRAM).unwrap();
    let words = ["-O1", "-g", "-static", "-pthread", "-Wall", "-Werror", "-o"];
    assert!(Command::new("gcc").args(words).arg(&path).arg(&file).status().unwrap().success());
    path
}

/// The program, built and started; and the folder that it is in.
fn started(how: &str) -> Option<(tempfile::TempDir, Running)> {
    if !tools::have(&["gcc"]) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let run = Running::start(&build(dir.path()), how);
    Some((dir, run))
}

fn runs_function(status: &Status, name: &str) -> bool {
    status.threads.iter().any(|t| t.frames.iter().any(|f| f.function == name))
}

fn total(status: &Status) -> u64 {
    status.threads.iter().map(|t| t.total.iter().sum::<u64>()).sum()
}

/// Whether summary, totals and the part agree; the summary.
fn summary(text: &str) -> u64 {
    let of = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim().parse::<u64>().ok());
    assert_eq!(of("summary:"), of("totals:"));
    of("summary:").unwrap()
}

fn all_requests(how: &str, function: &str) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path());
    let run = Running::start(&program, how);
    let other = Running::start(&program, how);
    let (pid, untouched) = (run.pids(1)[0], other.pids(1)[0]);
    let status = run.wait_for(pid, |s| runs_function(s, function));
    assert!(status.instrumentation && status.events == ["Ir"] && status.part == 1);
    assert!(status.command.ends_with(&format!("prog {how}")), "{}", status.command);
    // The outermost frame has all that its thread has spent, and each has more than those that it called.
    for thread in &status.threads {
        let costs: Vec<u64> = thread.frames.iter().map(|f| f.cost[0]).collect();
        assert!(costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
        assert_eq!(costs.first(), thread.total.first());
    }
    other.wait_for(untouched, |s| runs_function(s, function));

    assert_eq!(run.ask(pid, &Request::Dump("a hint".into())), [format!("out.{pid}.1")].map(|f| run.path(&f)));
    let part = run.file(&format!("out.{pid}.1"));
    assert!(part.contains("\ndesc: Trigger: dump a hint\n"), "{part}");
    assert!(summary(&part) >= total(&status));
    run.ask(pid, &Request::Zero);
    run.ask(pid, &Request::Instrumentation(false));
    let off = run.wait_for(pid, |s| !s.instrumentation);
    assert_eq!(off.part, 2);
    std::thread::sleep(Duration::from_millis(50));
    let later = run.wait_for(pid, |s| !s.instrumentation);
    let settled = run.wait_for(pid, |_| true);
    assert_eq!(total(&later), total(&settled), "nothing is collected any more");
    run.ask(pid, &Request::Instrumentation(true));
    let on = run.wait_for(pid, |s| s.instrumentation);
    if how != "sleeps" {
        run.wait_for(pid, |s| total(s) > total(&on) + 10_000);
    }
    assert_eq!(run.ask(pid, &Request::Dump(String::new())).len(), 1);
    summary(&run.file(&format!("out.{pid}.2")));
    run.ask(pid, &Request::Kill);
    let start = Instant::now();
    while runs(run.base()).unwrap().contains(&pid) {
        assert!(start.elapsed() < Duration::from_secs(20), "it lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(run.file(&format!("out.{pid}")).contains("Program termination"));
    assert!(matches!(Client::connect(run.base(), pid).map(drop), Err(ClientError::NoRun(_))));

    // Nothing of that was done to the other run.
    let status = other.wait_for(untouched, |_| true);
    assert!(status.instrumentation && status.part == 1);
}

impl Running {
    fn path(&self, name: &str) -> String {
        self.base().join(name).display().to_string().replace(&format!("{}/", self.base().display()), "")
    }
}

#[test]
fn a_program_that_computes() {
    all_requests("computes", "leaf");
}

#[test]
fn a_program_that_sleeps_in_a_system_call() {
    all_requests("sleeps", "rest");
}

#[test]
fn a_program_with_threads() {
    all_requests("threads", "leaf");
}

/// A sleeper whose sleep goes on in code that counts has not been counted again yet when the next question is there already.
#[test]
fn a_sleeper_has_never_less_than_nothing() {
    let Some((_dir, run)) = started("threads") else { return };
    let pid = run.pids(1)[0];
    run.wait_for(pid, |s| s.threads.len() == 2 && runs_function(s, "rest"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let status = run.wait_for(pid, |_| true);
                    let most = status.threads.iter().flat_map(|t| &t.total).max();
                    assert!(most < Some(&(1 << 40)), "{status:?}");
                }
            });
        }
        for _ in 0..30 {
            run.ask(pid, &Request::Instrumentation(false));
            run.ask(pid, &Request::Zero);
            run.ask(pid, &Request::Instrumentation(true));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_process_and_its_child_are_two_runs() {
    let Some((_dir, run)) = started("forks") else { return };
    let pids: BTreeSet<u32> = run.pids(2).into_iter().collect();
    let child = *pids
        .iter()
        .find(|pid| {
            run.wait_for(**pid, |s| total(s) > 0).part == 1 && {
                std::thread::sleep(Duration::from_millis(300));
                runs_function(&run.wait_for(**pid, |_| true), "rest")
            }
        })
        .expect("one of them sleeps");
    run.ask(child, &Request::Dump(String::new()));
    for pid in pids {
        assert_eq!(run.wait_for(pid, |_| true).part, if pid == child { 2 } else { 1 });
        run.ask(pid, &Request::Kill);
    }
}

/// Parts that are written by time add up to the whole, and no arc of one is of another's time.
#[test]
fn parts_by_time_add_up_to_the_whole() {
    const PROGRAM: &str = r#"
static volatile unsigned sink;
__attribute__((noinline)) void leaf(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void phase(unsigned n) { while (n--) leaf(1000); }
int main(void) { for (int i = 0; i < 8; i++) phase(80000); return 0; }
"#;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("p.c"), PROGRAM).unwrap();
    let words = ["cc", "-O1", "-g", "-o", "p", "p.c"].map(str::to_owned);
    grind_tests::build::compile(&words, dir.path());
    let total = |name: &str| {
        let bytes = std::fs::read(at(name)).unwrap();
        grind_tests::laws::check(&bytes, name);
        let text = String::from_utf8(bytes).unwrap();
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap().parse::<u64>().unwrap();
        (total, text.contains("desc: Trigger: --dump-every=100ms"))
    };
    let profile = |options: &[&str]| {
        let mut words = tools::under_test().to_vec();
        words.extend(["-q", "--tool=callgrind", "--callgrind-out-file=out"].map(str::to_owned));
        words.extend(options.iter().map(|&option| option.to_owned()));
        words.push(at("p").display().to_string());
        assert!(run::command(&words, dir.path()).status().unwrap().success());
        let names = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let parts: Vec<String> = names.filter(|name| name.starts_with("out")).collect();
        let totals: Vec<(u64, bool)> = parts.iter().map(|name| total(name)).collect();
        parts.iter().for_each(|name| std::fs::remove_file(at(name)).unwrap());
        totals
    };
    let whole = profile(&[]);
    let parts = profile(&["--dump-every=100ms"]);
    assert_eq!(whole.len(), 1);
    assert!(parts.len() > 2 && parts.iter().filter(|(_, by_time)| *by_time).count() >= parts.len() - 1, "{parts:?}");
    assert_eq!(parts.iter().map(|(total, _)| total).sum::<u64>(), whole[0].0);
}
