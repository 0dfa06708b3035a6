//! What takes minutes: signals without pause, many threads, many processes. Nothing may be lost, and grind must not grow.
//!
//! ```text
//! cargo test --release -p grind-tests stress:: -- --ignored --nocapture --test-threads=1
//! ```
//!
//! `GRIND_STRESS_SECONDS` (60) is how long the threads run, `GRIND_STRESS_FORKS` (5000) how many processes there are. In CI the
//! same runs with a second and 200 forks.
//!
//! All of the semantics and the real commands can be interrupted a thousand times a second, too (`disturb`):
//!
//! ```text
//! GRIND_DISTURB=1 cargo test --release -p grind-tests -- --nocapture --test-threads=1 semantics:: commands::
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grind_tests::build::{Source, compile};
use grind_tests::compare::assert_same;
use grind_tests::disturb::Disturbance;
use grind_tests::profile::Profile;
use grind_tests::run::Job;
use grind_tests::tools;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name}={v:?} is no number")))
}

/// Calls `counted`, always the same number of instructions, and prints how often.
const THREADS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static atomic_ulong calls, ticks;
static volatile int stop;
__attribute__((noinline)) unsigned long counted(unsigned long h) {
    for (int i = 0; i < 50; i++) h = h * 6364136223846793005 + (unsigned long)i;
    return h;
}
static void tick(int s) { (void)s; ticks++; }
static void *thread(void *arg) {
    unsigned long h = (unsigned long)arg, n = 0;
    while (!stop) { h = counted(h); n++; if (n % 64 == 0) { struct timespec t = {0, 1000}; nanosleep(&t, 0); } }
    calls += n;
    return (void *)h;
}
int main(int argc, char **argv) {
    int threads = atoi(argv[1]), seconds = atoi(argv[2]), us = atoi(argv[3]);
    (void)argc;
    struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &a, 0);
    sigaction(SIGUSR1, &a, 0);
    pthread_t t[threads];
    for (long i = 0; i < threads; i++) if (pthread_create(&t[i], 0, thread, (void *)i)) return 9;
    struct itimerval v = {{0, us}, {0, us}};
    if (us) setitimer(ITIMER_REAL, &v, 0);
    time_t end = time(0) + seconds;
    for (unsigned i = 0; time(0) < end; i++) {
        if (us) pthread_kill(t[i % threads], SIGUSR1);
        struct timespec nap = {0, 500000};
        nanosleep(&nap, 0);
    }
    stop = 1;
    for (int i = 0; i < threads; i++) pthread_join(t[i], 0);
    printf("%lu %lu\n", (unsigned long)calls, (unsigned long)ticks);
    return 0;
}
"#;

/// Forks in batches; every child calls `counted` once. Prints how many ended well.
const FORKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long counted(unsigned long h) {
    for (int i = 0; i < 50; i++) h = h * 6364136223846793005 + (unsigned long)i;
    return h;
}
int main(int argc, char **argv) {
    int forks = atoi(argv[1]), ok = 0;
    (void)argc;
    for (int done = 0; done < forks;) {
        int batch = forks - done < 20 ? forks - done : 20;
        for (int i = 0; i < batch; i++) if (fork() == 0) _exit(counted(7) == 0);
        for (int i = 0; i < batch; i++) { int st; if (wait(&st) > 0 && st == 0) ok++; }
        done += batch;
    }
    printf("%d\n", ok);
    return 0;
}
"#;

/// Creates processes that fork (or vfork) in a loop, and kills them at it, or lets another of their threads end them. Every
/// child calls `counted` once. Prints how many children there were.
const KILLED: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* How often a process was about to be created, and how many have been. */
static struct { atomic_ulong forks, born; } *shared;
__attribute__((noinline)) unsigned long counted(unsigned long h) {
    for (int i = 0; i < 50; i++) h = h * 6364136223846793005 + (unsigned long)i;
    return h;
}
static void *forks(void *borrowed) {
    for (;;) {
        shared->forks++;
        pid_t child = borrowed ? vfork() : fork();
        if (child == 0) { shared->born++; _exit(counted(7) == 0); }
        waitpid(child, 0, 0);
    }
}
/* Until some moment during the `n`th fork from now. */
static void wait_for(unsigned long n, long ns) {
    unsigned long enough = shared->forks + n;
    while (shared->forks < enough) {}
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}
int main(int argc, char **argv) {
    int times = atoi(argv[1]);
    (void)argc;
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    srand(1);
    for (int i = 0; i < times; i++) {
        void *borrowed = i & 1 ? &shared : 0;
        unsigned long n = 2 + (unsigned long)i / 4 % 2;
        long ns = rand() % 300000;
        pid_t creator = fork();
        if (creator == 0) {
            pthread_t t;
            if (!(i & 2)) forks(borrowed);
            pthread_create(&t, 0, forks, borrowed);
            wait_for(n, ns);
            _exit(0);
        }
        if (!(i & 2)) { wait_for(n, ns); kill(creator, SIGKILL); }
        while (wait(0) > 0) {}
    }
    printf("%lu\n", (unsigned long)shared->born);
    return 0;
}
"#;

/// Starts processes that become another program again and again, most with a second thread, and kills them at it. Prints how
/// many it has killed.
const EXECS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *waits(void *arg) { for (;;) pause(); return arg; }
static void again(char *name, int n) {
    char digits[12];
    snprintf(digits, sizeof digits, "%d", n);
    execl("/proc/self/exe", name, "again", digits, (char *)0);
    _exit(2);
}
int main(int argc, char **argv) {
    int n = atoi(argv[argc - 1]), killed = 0;
    if (argc == 3) {
        pthread_t t;
        if (n % 3 != 0) pthread_create(&t, 0, waits, 0);
        again(argv[0], n);
    }
    srand(1);
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) again(argv[0], i);
        usleep((useconds_t)rand() % 20000);
        kill(child, SIGKILL);
        int st;
        if (waitpid(child, &st, 0) == child && WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL) killed++;
    }
    printf("%d\n", killed);
    return 0;
}
"#;

/// Two children, one after the other, with the same id: the kernel is told which one comes next, again and again, since others
/// take ids, too. Every child calls `counted` once. Prints the id; ends with 77 if the kernel does not listen.
const SAME_ID: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long counted(unsigned long h) {
    for (int i = 0; i < 50; i++) h = h * 6364136223846793005 + (unsigned long)i;
    return h;
}
int main(void) {
    int first = fork(), st;
    if (first == 0) _exit(counted(7) == 0);
    wait(&st);
    for (int i = 0; i < 100; i++) {
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (!last || fprintf(last, "%d", first - 1) < 0 || fclose(last)) return 77;
        int next = fork();
        if (next == 0) _exit(getpid() == first && counted(7) == 0);
        wait(&st);
        if (next == first) { printf("%d\n", first); return 0; }
    }
    return 77;
}
"#;

/// A timer that a program does not know of: a real-time signal a thousand times a second from before `main` on.
const TIMER: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
static volatile unsigned long ticks;
static void tick(int s) { (void)s; ticks++; }
__attribute__((constructor)) static void start(void) {
    struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGRTMAX - 3, &a, 0);
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 3};
    timer_t t;
    timer_create(CLOCK_MONOTONIC, &e, &t);
    struct itimerspec v = {{0, 1000000}, {0, 1000000}};
    timer_settime(t, 0, &v, 0);
}
"#;

fn build(dir: &Path, source: &str, name: &str, words: &[&str]) -> PathBuf {
    let file = dir.join(format!("{name}.c"));
    fs::write(&file, source).expect("a source file");
    let out = dir.join(name);
    let mut all = vec!["gcc".to_owned(), "-g".into(), "-O1".into(), "-o".into(), out.display().to_string()];
    all.push(file.display().to_string());
    all.extend(words.iter().map(|w| (*w).to_owned()));
    compile(&all, dir);
    out
}

/// What grind's processes use: descriptors, resident memory in KiB, zombies.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    descriptors: usize,
    resident: u64,
    zombies: usize,
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|w| w.parse().ok()).collect()
}

fn field(pid: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?.trim().to_owned())
}

/// Looks at the tracer behind `front` until it ends: in the middle of its time (it starts slowly where much else runs), and the most that was seen after it.
fn watch(mut front: Child, limit: Duration) -> (String, Use, Use) {
    let start = Instant::now();
    let mut samples = Vec::new();
    let status = loop {
        if let Some(status) = front.try_wait().expect("a child") {
            break status;
        }
        assert!(start.elapsed() < limit, "not finished after {limit:?}");
        if let Some(&tracer) = children(front.id()).first() {
            let descriptors = fs::read_dir(format!("/proc/{tracer}/fd")).map_or(0, Iterator::count);
            let resident = field(tracer, "VmRSS").and_then(|v| v.split(' ').next()?.parse().ok()).unwrap_or(0);
            let zombies =
                children(tracer).into_iter().filter(|&c| field(c, "State").is_some_and(|s| s.starts_with('Z'))).count();
            if descriptors > 0 && resident > 0 {
                samples.push(Use { descriptors, resident, zombies });
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
    let mut out = String::new();
    std::io::Read::read_to_string(&mut front.stdout.take().expect("piped"), &mut out).expect("its output");
    let middle = samples.len() / 2;
    let early = samples.get(middle).copied().unwrap_or_default();
    let most = |f: fn(&Use) -> u64| samples.iter().skip(middle).map(f).max().unwrap_or(0);
    let late = Use {
        descriptors: most(|u| u.descriptors as u64) as usize,
        resident: most(|u| u.resident),
        zombies: most(|u| u.zombies as u64) as usize,
    };
    (out, early, late)
}

/// Each process has its own profile, even if its id is another one's, too: there are many here, other tests have theirs, and
/// one of these has ids given out again.
fn start(dir: &Path, words: &[&str]) -> Child {
    let tool = tools::under_test();
    let mut command = Command::new(&tool[0]);
    command.args(&tool[1..]).args(["-q", "--cachegrind-out-file=cg.%p.%n"]).args(words);
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("grind")
}

/// Instructions of function `counted` over all profiles in `dir`, and how many profiles there are.
fn counted(dir: &Path) -> (u64, usize) {
    let names = fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path());
    let profiles: Vec<_> =
        names.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cg."))).collect();
    let sum = profiles
        .iter()
        .map(|path| {
            let p = Profile::parse(&fs::read(path).expect("a profile")).unwrap_or_else(|e| panic!("{path:?}: {e:#}"));
            p.by_name().get("counted").copied().unwrap_or(0)
        })
        .sum();
    (sum, profiles.len())
}

fn threads_under_signals(threads: u64, seconds: u64) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let mut each = Vec::new();
    for us in ["0", "1000"] {
        let dir = tempfile::tempdir().expect("a folder");
        let program = build(dir.path(), THREADS, "threads", &["-pthread"]);
        let seconds = if us == "0" { 1 } else { seconds };
        let words = [&*program.display().to_string(), &threads.to_string(), &seconds.to_string(), us];
        let (out, early, late) = watch(start(dir.path(), &words), Duration::from_secs(seconds * 10 + 120));
        let mut numbers = out.split_whitespace().map(|w| w.parse::<u64>().expect("a number"));
        let (calls, ticks) = (numbers.next().expect("calls"), numbers.next().expect("ticks"));
        let (instructions, _) = counted(dir.path());
        println!(
            "{threads} threads, {seconds} s: {calls} calls, {ticks} signals, {instructions} instructions; {early:?} -> {late:?}"
        );
        assert!(calls > 0 && (us == "0" || ticks > 0));
        assert_eq!(instructions % calls, 0, "{instructions} instructions in {calls} equal calls");
        each.push(instructions / calls);
        assert!(late.descriptors <= early.descriptors + 8, "descriptors: {early:?} -> {late:?}");
        assert!(late.zombies <= 2, "{late:?}");
    }
    assert_eq!(each[0], each[1], "instructions a call, without and with signals");
}

fn many_forks(forks: u64) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build(dir.path(), FORKS, "forks", &[]);
    let begin = Instant::now();
    let child = start(dir.path(), &[&program.display().to_string(), &forks.to_string()]);
    let (out, early, late) = watch(child, Duration::from_secs(forks / 2 + 120));
    assert_eq!(out, format!("{forks}\n"));
    let (instructions, profiles) = counted(dir.path());
    let seconds = begin.elapsed().as_secs_f64();
    println!("{forks} forks in {seconds:.1} s, {profiles} profiles: {early:?} -> {late:?}");
    assert_eq!(profiles as u64, forks + 1);
    // 50 rounds of some instructions, and the function's frame: the same for all.
    assert_eq!(instructions % forks, 0, "{instructions}");
    assert!(instructions / forks > 150, "{instructions}");
    assert!(late.descriptors <= early.descriptors + 60, "descriptors of 20 processes at a time: {early:?} -> {late:?}");
    assert!(late.resident <= early.resident * 2 + 50_000, "memory: {early:?} -> {late:?}");
    assert!(late.zombies <= 20, "{late:?}");
}

fn killed_while_forking(times: u64) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build(dir.path(), KILLED, "killed", &["-pthread"]);
    let child = start(dir.path(), &[&program.display().to_string(), &times.to_string()]);
    let (out, ..) = watch(child, Duration::from_secs(times / 2 + 60));
    let born: u64 = out.trim().parse().expect("a number");
    let (instructions, profiles) = counted(dir.path());
    println!("{times} processes killed, {born} children, {profiles} profiles");
    assert!(born >= times);
    assert_eq!(instructions % born, 0, "{instructions} instructions of {born} children");
    assert!(instructions / born > 150, "{instructions}");
    assert_eq!(profiles as u64, 1 + times + born);
}

/// Runs commands with a timer that they know nothing of, natively and under grind.
fn timer_over(commands: &[&[&str]]) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let timer = build(dir.path(), TIMER, "timer.so", &["-shared", "-fPIC"]);
    let preload = format!("LD_PRELOAD={}", timer.display());
    for words in commands {
        if !tools::have(&words[..1]) {
            continue;
        }
        let all = ["env", &preload].into_iter().chain(words.iter().copied());
        let job = Job { trace_children: true, limit: Duration::from_secs(120), ..Job::new(all, dir.path()) };
        let (native, tested) = (job.native(), job.grind());
        assert_same(words[0], &native, &tested.outcome, &tested.log);
        tested.profiles();
    }
}

#[test]
fn threads_under_signals_lose_nothing() {
    threads_under_signals(20, 1);
}

#[test]
fn forks_leak_nothing() {
    many_forks(200);
}

/// A creator that is killed may never tell of its child, which must be counted, and must not wait for that.
#[test]
fn children_of_the_killed_are_counted_to_their_end() {
    killed_while_forking(200);
}

/// That is their business, and no failure of the run's.
#[test]
fn programs_may_be_killed_as_they_begin() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build(dir.path(), EXECS, "execs", &["-pthread"]);
    let child = start(dir.path(), &["--trace-children=yes", &program.display().to_string(), "200"]);
    // It succeeds.
    let (out, ..) = watch(child, Duration::from_secs(120));
    assert_eq!(out, "200\n");
}

/// A name with an id in it holds one profile; that another one is gone must not go unsaid.
#[test]
fn a_profile_of_an_id_that_is_used_again_is_missed() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build(dir.path(), SAME_ID, "same", &[]);
    let tool = tools::under_test();
    for (name, kept) in [("cg.%p", 2), ("cg.%p.%n", 3)] {
        let mut command = Command::new(&tool[0]);
        command.args(&tool[1..]).args([&format!("--cachegrind-out-file={name}"), "--log-file=log"]).arg(&program);
        let output = command.current_dir(dir.path()).output().expect("grind");
        if output.status.code() == Some(77) {
            eprintln!("skipped: only root may choose process ids");
            return;
        }
        assert!(output.status.success(), "{}", output.status);
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let log = fs::read_to_string(dir.path().join("log")).expect("the log");
        let warned = log.contains(&format!("an earlier process had the id {id}, too"));
        assert_eq!(warned, kept == 2, "{log}");
        let (_, profiles) = counted(dir.path());
        assert!(profiles >= kept, "{profiles} profiles");
        for entry in fs::read_dir(dir.path()).expect("the folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with("cg.") {
                fs::remove_file(entry.path()).expect("the profile");
            }
        }
    }
}

#[test]
fn commands_under_a_timer_do_the_same() {
    timer_over(&[
        &["perl", "-e", "my $s = 0; $s += $_ * $_ % 7 for 1..200000; print qq{$s\n}"],
        &[
            "sqlite3",
            ":memory:",
            "with recursive c(n) as (select 1 union all select n + 1 from c where n < 20000) select sum(n), max(hex(n)) from c",
        ],
    ]);
}

/// An ignored signal may come at any moment: between a handler's end and the call that restores what it interrupted, too.
#[test]
fn ignored_signals_change_nothing() {
    let mut profiler = tools::under_test().to_vec();
    // So that each system call takes its time.
    profiler.extend(["--tool=callgrind".to_owned(), "--collect-systime=yes".into()]);
    for name in ["signal_altstack", "signal_many_threads_timer", "signal_siglongjmp_out_of_handler", "signal_ppoll"] {
        if !tools::have(&["gcc"]) {
            return;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let program = Source::open("semantics", name).build(dir.path(), false);
        let job = Job { disturbed: Disturbance::Urgent, ..Job::new([program.display().to_string()], dir.path()) };
        let native = job.native();
        for _ in 0..4 {
            let tested = job.profiled(&profiler);
            assert_same(name, &native, &tested.outcome, &tested.log);
        }
    }
}

#[test]
#[ignore = "takes minutes; CI runs the same with less: see the top of this file for the command"]
fn two_hundred_threads_under_signals_for_a_minute() {
    threads_under_signals(200, number("GRIND_STRESS_SECONDS", 60));
}

#[test]
#[ignore = "takes minutes; CI runs the same with less: see the top of this file for the command"]
fn five_thousand_forks() {
    many_forks(number("GRIND_STRESS_FORKS", 5000));
}

#[test]
#[ignore = "takes minutes; CI runs the same with less: see the top of this file for the command"]
fn a_timer_over_many_commands() {
    timer_over(&[
        &[
            "bash",
            "-c",
            "for ((i=0;i<5000;i++)); do s=$((s+i*i)); done; echo $s; seq 2000 | sort -rn | tail -1; x=$(echo sub); echo $x",
        ],
        &["sh", "-c", "seq 1 200000 | xz -1 | xz -d | sha1sum"],
        &[
            "sh",
            "-c",
            "seq 1 200000 | gzip -9n | bzip2 | bzip2 -d | sha1sum; seq 1 50000 | zstd -q -T2 | zstd -dq | md5sum",
        ],
        &[
            "/usr/bin/python3",
            "-c",
            "import json, threading\nd = json.dumps({str(i): [i] * 5 for i in range(5000)})\nt = [threading.Thread(target=lambda: json.loads(d)) for _ in range(5)]\n[x.start() for x in t]; [x.join() for x in t]\nprint(len(d))",
        ],
        &[
            "perl",
            "-e",
            "my %h; $h{$_ % 977} .= chr(65 + $_ % 26) for 1..100000; my $n = 0; for (sort keys %h) { $n++ while $h{$_} =~ /[AEIOU]/g } print qq{$n\n}",
        ],
        &["luajit", "-e", "local s = 0 for i = 1, 2e7 do s = (s * 31 + i) % 1000003 end print(s)"],
        &["ruby", "-e", "p 4.times.map { |i| Thread.new { (0..20000).map { |x| x * x % 7 }.sum * i } }.map(&:value)"],
        &["php", "-r", "$s = 0; for ($i = 0; $i < 2000000; $i++) { $s = ($s * 31 + $i) % 1000003; } echo $s;"],
        &[
            "node",
            "-e",
            "let s = 0; for (let i = 0; i < 1e6; i++) s = (s * 31 + i) % 1000003; console.log(s, JSON.stringify([...Array(5000).keys()]).length)",
        ],
        &["sh", "-c", "echo 'int main(void) { return 3; }' > t.c; gcc -O2 -o t t.c && ./t; echo $?"],
        &["sh", "-c", "openssl prime -generate -bits 64 -hex >/dev/null; openssl prime 1000003"],
        &["awk", "BEGIN { for (i = 0; i < 300000; i++) s = (s * 31 + i) % 1000003; print s }"],
        &["tclsh", "/dev/null"],
        &["guile", "--no-auto-compile", "-c", "(display (let f ((n 22)) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))))"],
        &[
            "lua5.4",
            "-e",
            "local t = {} for i = 1, 200000 do t[#t + 1] = tostring(i * 7 % 1009) end table.sort(t) print(t[1], t[#t])",
        ],
    ]);
}

/// Two threads, one after the other, write code into one area again and again and run it; a third one is in a system call.
const REWRITES: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { BLOCKS = 2000 };
static int wait_here[2];
static void build(unsigned char *p, unsigned seed) {
    memcpy(p, "\x48\x89\xf8", 3); // mov rax, rdi
    p += 3;
    for (int i = 0; i < BLOCKS; i++) {
        seed = seed * 1103515245 + 12345;
        memcpy(p, "\x48\x05....\x48\xc1\xc0\x05\xa8\x04\x74\x03\x48\xff\xc0", 17); // add, rol, test, je, inc
        memcpy(p + 2, &seed, 4);
        p[5] &= 0x7f;
        p += 17;
    }
    *p = 0xc3;
}
static void *rewrite(void *arg) {
    unsigned char *area = mmap(0, BLOCKS * 17 + 16, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) exit(9);
    unsigned long h = 1;
    for (unsigned r = 1; r <= 40; r++) {
        build(area, r + (unsigned)(long)arg);
        for (int i = 0; i < 3; i++) h = ((unsigned long (*)(unsigned long))area)(h);
    }
    return (void *)h;
}
static void *sleeper(void *arg) {
    char c;
    return (void *)(long)(read(wait_here[0], &c, 1) + c + (long)arg);
}
int main(void) {
    pthread_t s, t;
    void *a, *b, *c;
    if (pipe(wait_here) || pthread_create(&s, 0, sleeper, (void *)5)) return 9;
    a = rewrite((void *)100);
    if (pthread_create(&t, 0, rewrite, (void *)200) || pthread_join(t, &b)) return 9;
    if (write(wait_here[1], "x", 1) != 1 || pthread_join(s, &c)) return 9;
    printf("%p %p %p\n", a, b, c);
    return 0;
}
"#;

#[test]
fn code_that_is_thrown_away_is_counted() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build(dir.path(), REWRITES, "rewrites", &["-pthread"]);
    let run = |limit: &str| {
        let tool = tools::under_test();
        let output = Command::new(&tool[0])
            .args(&tool[1..])
            .args(["-q", &format!("--code-limit={limit}"), "--cachegrind-out-file=counts"])
            .arg(&program)
            .current_dir(dir.path())
            .output()
            .expect("grind");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let profile = fs::read_to_string(dir.path().join("counts")).expect("the profile");
        let total = profile.lines().find_map(|l| l.strip_prefix("summary: ")).expect("a summary").to_owned();
        (String::from_utf8_lossy(&output.stdout).into_owned(), total)
    };
    let native = Command::new(&program).output().expect("the program");
    let (all, some) = (run("512"), run("4"));
    assert_eq!(all.0, String::from_utf8_lossy(&native.stdout));
    assert_eq!(all.0, some.0);
    // Whether a thread has to wait for another one is up to chance, and some instructions of the C library.
    let [all, some] = [all.1, some.1].map(|n| n.trim().parse::<u64>().expect("a number"));
    assert!(all > 1_900_000 && all.abs_diff(some) < 500, "{all} and {some}");
}
