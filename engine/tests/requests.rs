//! Code that is asked for without a stop (`Beside::Always`) is counted as code that is stopped for (`Beside::Never`): two
//! runs of the same programs must count every instruction alike. The programs go to new code in every way there is: direct
//! and indirect, there and back, from handlers, in the child of a fork, one instruction at a time.
//!
//! All in one test: the engine waits for every child of the process that it is in, so nothing may run beside it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use grind_isa::cpuid::CpuModel;
use grind_session::{
    Beside, Exit, FirstProcess, Instrumentation, Notice, OwnCode, ProcessReport, Program, Session, Settings,
};
use grind_trace::{FirstLevel, Sink, Site, SpaceId, Special, TraceSettings};
use grind_types::{Pid, Tid};

/// Instructions by address.
type Counts = HashMap<u64, u64>;

/// The counts of every process, in the order of their ends.
#[derive(Default)]
struct Driver(Vec<Counts>);

impl Session for Driver {
    fn follow_exec(&mut self, _: Pid, _: &Path, _: &[OsString]) -> bool {
        false
    }
    fn image_started(&mut self, _: Pid, _: Option<Pid>, _: &Path, _: &[OsString]) {}
    fn first_process(&mut self, _: FirstProcess) {}
    fn forked(&mut self, _: Pid, _: Pid) {}
    fn process_ends(&mut self, report: &ProcessReport<'_>) {
        let mut counts = Counts::new();
        for c in report.counts.instructions() {
            *counts.entry(c.addr.0).or_default() += c.count;
        }
        self.0.push(counts);
    }
    fn client_print(&mut self, _: Pid, _: &[u8]) {}
    fn redundant_instrumentation(&mut self, _: Pid, _: Instrumentation) {}
    fn tool_name(&self) -> &str {
        "cachegrind"
    }
    fn notice(&mut self, _: Pid, notice: Notice) {
        panic!("{notice:?}");
    }
}

/// What one place of the program has recorded, and the record's other words.
type Record = (Site, Vec<u32>);

/// What processes have recorded, in the order of their first records. By places, not by their numbers: those go by the order in
/// which code is translated, which after a fork is whoever is first.
#[derive(Default)]
struct Recorded {
    sites: HashMap<SpaceId, Vec<Site>>,
    code_caches: HashMap<Pid, SpaceId>,
    records: Vec<(Pid, Vec<Record>)>,
}

#[derive(Clone, Default)]
struct Records(Arc<Mutex<Recorded>>);

impl Sink for Records {
    fn sites(&mut self, code_cache: SpaceId, sites: &[Site], _: &[Special]) {
        self.0.lock().unwrap().sites.entry(code_cache).or_default().extend_from_slice(sites);
    }
    fn space_copied(&mut self, from: SpaceId, to: SpaceId) {
        let mut all = self.0.lock().unwrap();
        let sites = all.sites.get(&from).cloned().unwrap_or_default();
        all.sites.insert(to, sites);
    }
    fn image(&mut self, pid: Pid, code_cache: SpaceId) {
        self.moved(pid, code_cache);
    }
    fn moved(&mut self, pid: Pid, code_cache: SpaceId) {
        self.0.lock().unwrap().code_caches.insert(pid, code_cache);
    }
    fn forked(&mut self, parent: Pid, _: Tid, child: Pid) {
        let mut all = self.0.lock().unwrap();
        let code_cache = all.code_caches[&parent];
        all.code_caches.insert(child, code_cache);
    }
    fn records(&mut self, pid: Pid, _: Tid, mut words: &[u32]) {
        let mut all = self.0.lock().unwrap();
        let Recorded { sites, code_caches, records } = &mut *all;
        let sites = &sites[&code_caches[&pid]];
        let at = records.iter().position(|(p, _)| *p == pid).unwrap_or_else(|| {
            records.push((pid, Vec::new()));
            records.len() - 1
        });
        while let Some(&number) = words.first() {
            let site = sites[number as usize];
            let (record, rest) = words.split_at(site.kind.words());
            records[at].1.push((site, record[1..].to_vec()));
            words = rest;
        }
    }
    fn thread_ended(&mut self, _: Pid, _: Tid) {}
    fn process_ended(&mut self, _: Pid) {}
}

/// What a run has found: counts, records by process, and how often it has waited.
struct Found {
    counts: Vec<Counts>,
    records: Vec<Vec<Record>>,
    waits: u64,
}

/// How often this thread has waited for something.
fn waits() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

fn found(program: &Path, trace: TraceSettings, beside: Beside, code_limit: u64, hot_after: u64) -> Found {
    let settings = Settings {
        cpu: CpuModel::Baseline,
        count_at_start: grind_session::AtStart::Counting,
        code_limit,
        pairs_from: u64::MAX,
        hot_after,
        trace,
        contexts: false,
        beside,
        programs_follow: true,
        own_code: OwnCode::default(),
        look_every: None,
    };
    let run = Program { path: program.to_owned(), args: vec![program.into()], env: Vec::new() };
    let mut driver = Driver::default();
    let before = waits();
    let records = Records::default();
    let exit = match trace.any() {
        true => grind_engine::run_traced(&run, &settings, &mut driver, Box::new(records.clone())),
        false => grind_engine::run(&run, &settings, &mut driver),
    };
    assert_eq!(exit.unwrap_or_else(|e| panic!("{beside:?}: {e}")), Exit::Code(0), "{beside:?}");
    let waits = waits() - before;
    let records =
        std::mem::take(&mut records.0.lock().unwrap().records).into_iter().map(|(_, records)| records).collect();
    Found { counts: driver.0, records, waits }
}

/// Functions that are reached one by one, through a table and directly.
fn program() -> String {
    let mut text = String::from(
        r"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned sum;
static volatile sig_atomic_t steps;
static void handler(int s) { sum += s; }
static void stepped(int s) { steps++; }
",
    );
    for i in 0..N {
        let _ = writeln!(
            text,
            "__attribute__((noinline)) static void f{i}(unsigned n) {{ if (n % {} == 0) sum += n ^ {i}; \
             else do sum *= {i}; while (n-- % 3); }}",
            i % 7 + 2
        );
    }
    let table: Vec<String> = (0..N).map(|i| format!("f{i}")).collect();
    let _ = writeln!(text, "static void (*const table[])(unsigned) = {{ {} }};", table.join(", "));
    text.push_str(
        r#"
static void traps(int on)
{
    if (on) __asm__ volatile("lea -128(%%rsp),%%rsp; pushf; orl $0x100,(%%rsp); popf; lea 128(%%rsp),%%rsp" ::: "cc", "memory");
    else __asm__ volatile("lea -128(%%rsp),%%rsp; pushf; andl $~0x100,(%%rsp); popf; lea 128(%%rsp),%%rsp" ::: "cc", "memory");
}
int main(void)
{
    unsigned i;
    int status;
    signal(SIGUSR1, handler);
    signal(SIGTRAP, stepped);
    for (i = 0; i < N / 2; i++) {
        table[i * 7 % (N / 2)](i);
        if (i % 16 == 3) raise(SIGUSR1);
    }
    traps(1);
    for (; i < N / 2 + 20; i++) table[i](i);
    traps(0);
    if (steps < 20 * 5) return 1;
    if (fork() == 0) {
        for (; i < N - 100; i++) table[i](i);
        _exit(0);
    }
    wait(&status);
    for (; i < N; i++) table[i](i);
    return status;
}
"#,
    );
    text.replace(" N ", &format!(" {N} "))
        .replace("N /", &format!("{N} /"))
        .replace("N;", &format!("{N};"))
        .replace("N -", &format!("{N} -"))
}

/// Functions in the program.
const N: usize = 1500;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let (file, path) = (dir.path().join("many.c"), dir.path().join("many"));
    std::fs::write(&file, program()).unwrap();
    let built = Command::new("gcc").args(["-O1", "-static", "-o"]).arg(&path).arg(&file).status().unwrap();
    assert!(built.success(), "the program does not compile");
    let caches = |sets, ways, line| Some(FirstLevel { sets, ways, line, widest: line });
    let simulated = TraceSettings {
        fetches: caches(32, 2, 64),
        accesses: caches(16, 2, 64),
        branches: true,
        ..TraceSettings::default()
    };
    for trace in [TraceSettings::default(), simulated] {
        for (code_limit, hot_after) in [(u64::MAX, 0), (256 << 10, 0), (u64::MAX, 2000)] {
            let stopping = found(&path, trace, Beside::Never, code_limit, 0);
            assert_eq!(stopping.counts.len(), 2, "a parent and a child");
            let asking = found(&path, trace, Beside::Always, code_limit, hot_after);
            for (expected, found) in stopping.counts.iter().zip(&asking.counts) {
                let differ = expected.iter().filter(|(addr, n)| found.get(addr) != Some(n));
                let first: Vec<_> =
                    differ.take(5).map(|(addr, n)| (format!("{addr:#x}"), *n, found.get(addr))).collect();
                assert_eq!((first.as_slice(), expected.len()), (&[][..], found.len()));
            }
            let all = |found: &Found| found.counts.iter().map(|c| c.values().sum::<u64>()).collect::<Vec<_>>();
            assert_eq!(all(&stopping), all(&asking));
            // Where everything is translated once, blocks begin and end at the same places.
            let once = code_limit == u64::MAX && hot_after == 0;
            if once {
                assert!(stopping.records == asking.records, "what was missed differs");
                assert_eq!(stopping.records.len(), if trace.any() { 2 } else { 0 });
            }
            // Unless it had no other processor to do it on.
            if std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) && once {
                let (stops, fewer) = (stopping.waits, asking.waits);
                assert!(fewer < stops * 3 / 4, "{stops} stops, {fewer} of them where none should be needed");
            }
        }
    }
}
