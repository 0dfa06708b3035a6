//! What a driver is told while a process goes on: at the guest's requests and from outside. The programs know what they do
//! between two requests, so every answer is compared with a number that they are built to give.
//!
//! All in one test: the engine waits for every child of the process that it is in, so nothing may run beside it.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grind_isa::cpuid::CpuModel;
use grind_session::{
    Beside, ControlRequest, Exit, FirstProcess, Instrumentation, Notice, OwnCode, ProcessReport, Program, Session,
    Settings, Wanted,
};
use grind_tests::{apart, tools};
use grind_trace::TraceSettings;
use grind_types::{Pid, Query, Tid};

/// Instructions by address.
type Counts = HashMap<u64, u64>;

/// Remembers what it was told.
#[derive(Default)]
struct Driver {
    pid: Option<Pid>,
    asked: Vec<(Option<Tid>, Query, Counts)>,
    end: Option<Counts>,
    control_requests: Vec<Wanted>,
    /// Wishes are served one at a time.
    served: Cell<usize>,
}

fn counts(report: &ProcessReport<'_>) -> Counts {
    let mut counts = Counts::new();
    for c in report.counts.instructions() {
        *counts.entry(c.addr.0).or_default() += c.count;
    }
    counts
}

impl Session for Driver {
    fn follow_exec(&mut self, _: Pid, _: &Path, _: &[OsString]) -> bool {
        false
    }
    fn image_started(&mut self, pid: Pid, _: Option<Pid>, _: &Path, _: &[OsString]) {
        self.pid = Some(pid);
    }
    fn first_process(&mut self, _: FirstProcess) {}
    fn forked(&mut self, _: Pid, _: Pid) {}
    fn process_ends(&mut self, report: &ProcessReport<'_>) {
        self.end = Some(counts(report));
    }
    fn asked(&mut self, report: &ProcessReport<'_>, tid: Option<Tid>, ask: &Query) {
        assert_eq!((Some(report.pid), report.exit), (self.pid, None));
        self.asked.push((tid, ask.clone(), counts(report)));
    }
    fn control_request(&mut self) -> Option<ControlRequest> {
        let pid = self.pid?;
        let n = self.served.get();
        self.served.set(n + 1);
        if n % 2 == 1 {
            return None;
        }
        let what = self.control_requests.get(n / 2)?.clone();
        Some(ControlRequest { pid, what })
    }
    fn client_print(&mut self, _: Pid, _: &[u8]) {}
    fn redundant_instrumentation(&mut self, _: Pid, _: Instrumentation) {
        panic!("callgrind's requests may be redundant");
    }
    fn tool_name(&self) -> &str {
        "callgrind"
    }
    fn notice(&mut self, _: Pid, notice: Notice) {
        panic!("{notice:?}");
    }
}

/// Runs `source` as a program under the engine.
fn run(dir: &Path, name: &str, source: &str, mut driver: Driver) -> Driver {
    let file = dir.join(format!("{name}.c"));
    let path = dir.join(name);
    std::fs::write(&file, source).unwrap();
    let include = tools::workspace_root().join("include");
    let words = ["-O1", "-g", "-static", "-pthread", "-Wall", "-Werror", "-o"];
    let built = Command::new("gcc").args(words).arg(&path).arg("-I").arg(include).arg(&file).status().unwrap();
    assert!(built.success(), "{name} does not compile");
    let program = Program { path: path.clone(), args: vec![path.into()], env: Vec::new() };
    let settings = Settings {
        cpu: CpuModel::Baseline,
        count_at_start: grind_session::AtStart::Counting,
        code_limit: u64::MAX,
        pairs_from: u64::MAX,
        hot_after: 0,
        trace: TraceSettings::default(),
        contexts: false,
        beside: Beside::default(),
        programs_follow: true,
        own_code: OwnCode::default(),
        look_every: None,
    };
    let exit = grind_engine::run(&program, &settings, &mut driver).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(exit, Exit::Code(0), "{name}");
    driver
}

/// `later - earlier`; nothing may ever shrink.
fn since(later: &Counts, earlier: &Counts) -> Counts {
    for (addr, count) in earlier {
        // A system call that is interrupted and begins again has not been executed after all: one a thread.
        let now = later.get(addr).copied().unwrap_or(0);
        assert!(now + 5 >= *count, "{addr:#x} shrinks from {count} to {now}");
    }
    let less = |addr: &u64| earlier.get(addr).copied().unwrap_or(0);
    later.iter().map(|(addr, c)| (*addr, c.saturating_sub(less(addr)))).filter(|(_, c)| *c > 0).collect()
}

/// How often the most frequent instruction of these was executed.
fn most(counts: &Counts) -> u64 {
    counts.values().copied().max().unwrap_or(0)
}

const WORK: &str = r#"
#include <callgrind.h>
#include <pthread.h>
#include <unistd.h>
#include <signal.h>
static volatile unsigned sink;
__attribute__((noinline)) static void work(unsigned n)
{
    while (n--) sink += n ^ (n >> 3 & 1 ? 5 : 9);
}
"#;

fn at_requests(dir: &Path) {
    let source = format!(
        r#"{WORK}
int main(void)
{{
    work(100);
    CALLGRIND_DUMP_STATS;
    work(1000);
    CALLGRIND_DUMP_STATS_AT("the second");
    work(50000);
    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
    work(600000);
    CALLGRIND_TOGGLE_COLLECT;
    work(7000);
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_STOP_INSTRUMENTATION;
    work(800000);
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_START_INSTRUMENTATION;
    work(20);
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS;
    work(9000);
    return 0;
}}"#
    );
    let driver = run(dir, "requests", &source, Driver::default());
    let asked: Vec<(Option<Tid>, Query)> = driver.asked.iter().map(|(tid, ask, _)| (*tid, ask.clone())).collect();
    let first = driver.pid.map(Tid::main_of);
    assert_eq!(
        asked,
        [
            (first, Query::Dump(None)),
            (first, Query::Dump(Some(b"the second".into()))),
            (first, Query::Zero),
            (first, Query::Dump(None))
        ]
    );
    let at: Vec<&Counts> = driver.asked.iter().map(|(_, _, counts)| counts).collect();
    let steps: Vec<u64> = at.windows(2).map(|two| most(&since(two[1], two[0]))).collect();
    assert_eq!(steps, [1000, 50000, 7020]);
    // What is not collected is not in the end either.
    assert!(most(&since(driver.end.as_ref().unwrap(), at[3])) <= 1, "the last stretch is not collected");
}

/// Threads that compute, call, fault and sleep while another one asks again and again.
fn among_threads(dir: &Path) {
    let source = format!(
        r#"{WORK}
static volatile int stop;
static volatile unsigned rounds[4];
static void handler(int s) {{ (void)s; sink++; }}
static void *compute(void *p) {{ while (!stop) {{ work(77); rounds[0]++; }} return p; }}
static void *wait(void *p) {{ while (!stop) {{ usleep(300); work(3); }} return p; }}
static void *trap(void *p) {{ while (!stop) {{ raise(SIGUSR1); rounds[1]++; }} return p; }}
static void *ask(void *p)
{{
    int i;
    for (i = 0; i < 40; i++) {{ work(11); CALLGRIND_DUMP_STATS; }}
    return p;
}}
int main(void)
{{
    pthread_t t[5];
    int i;
    void *(*what[5])(void *) = {{ compute, wait, trap, ask, ask }};
    signal(SIGUSR1, handler);
    for (i = 0; i < 5; i++) pthread_create(&t[i], 0, what[i], 0);
    pthread_join(t[3], 0);
    pthread_join(t[4], 0);
    stop = 1;
    for (i = 0; i < 3; i++) pthread_join(t[i], 0);
    return 0;
}}"#
    );
    let driver = run(dir, "threads", &source, Driver::default());
    assert_eq!(driver.asked.len(), 80);
    let end = driver.end.as_ref().unwrap();
    let mut all: Vec<&Counts> = driver.asked.iter().map(|(_, _, counts)| counts).collect();
    all.push(end);
    // Nothing shrinks, however a thread stood at the time, and no count is wrapped.
    for two in all.windows(2) {
        assert!(most(&since(two[1], two[0])) < 1 << 40);
    }
}

fn from_outside(dir: &Path, how: &str, body: &str) {
    let source = format!(
        "{WORK}\n#include <poll.h>\n#include <time.h>\nint main(void) {{ int i; work(9); {body} (void)i; return 0; }}"
    );
    let control_requests = vec![
        Wanted::Query(Query::Look),
        Wanted::Query(Query::Dump(Some(b"hint".into()))),
        Wanted::Instrumentation(Instrumentation::Stop),
        Wanted::Query(Query::Zero),
        Wanted::Instrumentation(Instrumentation::Start),
        Wanted::Query(Query::Look),
    ];
    let me = Tid::main_of(Pid::own());
    let driver = Driver { control_requests, ..Driver::default() };
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let kicker = std::thread::spawn(move || {
        // One that comes while the engine does not wait is lost.
        while !seen.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(20));
            kick(me);
        }
    });
    let driver = run(dir, how, &source, driver);
    over.store(true, Ordering::SeqCst);
    kicker.join().unwrap();
    let asked: Vec<(Option<Tid>, Query)> = driver.asked.iter().map(|(tid, ask, _)| (*tid, ask.clone())).collect();
    assert_eq!(
        asked,
        [Query::Look, Query::Dump(Some(b"hint".into())), Query::Zero, Query::Look].map(|ask| (None, ask)),
        "{how}"
    );
    let mut all: Vec<&Counts> = driver.asked.iter().map(|(_, _, counts)| counts).collect();
    all.push(driver.end.as_ref().unwrap());
    for two in all.windows(2) {
        since(two[1], two[0]);
    }
}

/// Has the engine's thread interrupted by a signal.
#[allow(unsafe_code)]
fn kick(tid: Tid) {
    // SAFETY: takes no pointers.
    unsafe { nix::libc::syscall(nix::libc::SYS_tgkill, nix::libc::getpid(), tid.0, nix::libc::SIGURG) };
}

#[allow(unsafe_code)]
fn be_kicked() {
    extern "C" fn nothing(_: i32) {}
    let handler = nix::sys::signal::SigHandler::Handler(nothing);
    let action = nix::sys::signal::SigAction::new(
        handler,
        nix::sys::signal::SaFlags::empty(),
        nix::sys::signal::SigSet::empty(),
    );
    // SAFETY: the handler does nothing.
    unsafe { nix::sys::signal::sigaction(nix::sys::signal::Signal::SIGURG, &action) }.unwrap();
}

fn main() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let threads = ["threads"; 5];
    apart::each(&[&threads[..], &["requests", "computing", "sleeping", "polling"]].concat(), |part| {
        let dir = tempfile::tempdir().unwrap();
        let dir: PathBuf = dir.path().to_owned();
        be_kicked();
        match part {
            "requests" => at_requests(&dir),
            "threads" => among_threads(&dir),
            "computing" => from_outside(&dir, part, "for (i = 0; i < 1500; i++) work(400000);"),
            "sleeping" => {
                from_outside(&dir, part, "{ struct timespec t = {0, 900000000}; if (nanosleep(&t, 0)) return 1; }");
            }
            _ => from_outside(&dir, part, "if (poll(0, 0, 900) != 0) return 1;"),
        }
        println!("{part}: all answers are right");
    });
}
