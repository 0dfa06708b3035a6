//! Somebody who interrupts every thread of a program under test, from outside, a thousand times a second, with signals that it
//! ignores: whatever the program executes, in whatever way it was linked, it goes on being interrupted, and nothing that it does
//! may change.
//!
//! `GRIND_DISTURB=1` sends SIGURG. `GRIND_DISTURB=kinds` sends any of the 31 kinds at random that the thread lets pass at that
//! moment, by `tgkill`, `kill` and `sigqueue` in turn: those that it ignores, or that do nothing by default and have no handler.
//! Where nothing else is, that is SIGURG, SIGWINCH and SIGCHLD; a program that ignores more gets more. Nobody sends what would
//! be seen: a caught signal runs a handler, a blocked one waits to be fetched, and SIGCONT lets whoever is stopped go on.
//! Who ignores a signal for a while only, as system(3) does, may be hit by it afterwards: programs under test do not.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::build::compile;

/// The threads of all descendants of a process's child (which traces them), in turn: at most 8 of them a millisecond,
/// and a fiftieth as many after 100,000 signals. What it writes at its end is how many signals it has sent.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { MOST = 4096 };
static int pids[MOST], tids[MOST], n;
static unsigned long by_kind[65];
// The signals that a thread neither catches nor blocks, and that do nothing to it.
static unsigned long long void_for(int tid) {
    char path[64], line[256];
    unsigned long long blocked = ~0ull, ignored = 0, caught = ~0ull;
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "SigBlk: %llx", &blocked);
        sscanf(line, "SigIgn: %llx", &ignored);
        sscanf(line, "SigCgt: %llx", &caught);
    }
    if (f) fclose(f);
    unsigned long long nothing = 1ull << (SIGURG - 1) | 1ull << (SIGWINCH - 1) | 1ull << (SIGCHLD - 1);
    unsigned long long not_these = 1ull << (SIGCONT - 1) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
    return (ignored | (nothing & ~caught)) & ~blocked & ~caught & ~not_these & 0x7fffffff;
}
static int disturb_by_kind(int pid, int tid, unsigned long at) {
    unsigned long long set = void_for(tid);
    if (!set) return 0;
    int kind = 1 + rand() % 31;
    while (!(set >> (kind - 1) & 1)) kind = kind % 31 + 1;
    by_kind[kind]++;
    if (at % 3 == 0) return syscall(SYS_tgkill, pid, tid, kind) == 0;
    // Another thread may take it, which may do otherwise.
    if (void_for(pid) != set) return 0;
    if (at % 3 == 1) return kill(pid, kind) == 0;
    return sigqueue(pid, kind, (union sigval){.sival_int = 1}) == 0;
}
// Whether a process has not executed its program yet: it still ignores what the profiler does, and will not.
static int is_profiler(int pid, const char *profiler) {
    char path[64], exe[4096];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t length = readlink(path, exe, sizeof exe - 1);
    exe[length < 0 ? 0 : length] = 0;
    return length < 0 || strcmp(exe, profiler) == 0;
}
static volatile sig_atomic_t over;
static void end(int s) { (void)s; over = 1; }
// Children of all threads of a process; its threads are listed if it is not the tracer.
static void walk(int pid, int depth, const char *profiler) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    struct dirent *e;
    int listed = depth > 1 && !is_profiler(pid, profiler);
    while (tasks && (e = readdir(tasks))) {
        int tid = atoi(e->d_name), child;
        if (!tid) continue;
        if (listed && n < MOST) pids[n] = pid, tids[n++] = tid;
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
        FILE *f = fopen(path, "r");
        while (f && depth < 30 && fscanf(f, "%d", &child) == 1) walk(child, depth + 1, profiler);
        if (f) fclose(f);
    }
    if (tasks) closedir(tasks);
}
int main(int argc, char **argv) {
    unsigned long sent = 0, at = 0;
    int kinds = argc > 2;
    char path[64], profiler[4096];
    snprintf(path, sizeof path, "/proc/%s/exe", argv[1]);
    ssize_t length = readlink(path, profiler, sizeof profiler - 1);
    profiler[length < 0 ? 0 : length] = 0;
    signal(SIGTERM, end);
    srand((unsigned)getpid());
    for (unsigned round = 0; !over; round++) {
        if (round % 32 == 0) n = 0, walk(atoi(argv[1]), 0, profiler);
        for (int i = 0; i < 8 && i < n; i++, at++)
            sent += kinds ? disturb_by_kind(pids[at % n], tids[at % n], at)
                          : syscall(SYS_tgkill, pids[at % n], tids[at % n], SIGURG) == 0;
        // If each signal has all code thrown away (`--hot-after=1`), nobody would ever get to an end.
        struct timespec t = {0, sent < 100000 ? 1000000 : 50000000};
        nanosleep(&t, 0);
    }
    printf("%lu\n", sent);
    return 0;
}
"#;

/// How programs under test are disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Not at all.
    None,
    /// By SIGURG.
    Urgent,
    /// By any of the 31 kinds that does nothing to them.
    Kinds,
}

/// How programs under test shall be disturbed where a test does not say so itself: `GRIND_DISTURB`.
pub fn wanted() -> Disturbance {
    match std::env::var("GRIND_DISTURB") {
        Ok(how) if how == "kinds" => Disturbance::Kinds,
        Ok(_) => Disturbance::Urgent,
        Err(_) => Disturbance::None,
    }
}

/// Begins to disturb what the profiler with this process id runs.
///
/// # Panics
/// If the disturbing program cannot be built or started.
pub fn begin(profiler: u32, how: Disturbance) -> Option<Child> {
    if how == Disturbance::None {
        return None;
    }
    let child = Command::new(program())
        .arg(profiler.to_string())
        .args((how == Disturbance::Kinds).then_some("kinds"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the disturbing program");
    Some(child)
}

/// Ends it; how many signals it has sent.
///
/// # Panics
/// If it cannot be ended.
pub fn end(child: Child) -> u64 {
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().expect("a process id"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it still runs");
    let output = child.wait_with_output().expect("its output");
    // It says nothing if it has not even begun.
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
}

fn program() -> &'static Path {
    // Built once for all tests of an executable, in a folder that is not removed.
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary folder").keep();
        let source = dir.join("disturb.c");
        std::fs::write(&source, SOURCE).expect("a source file");
        let out = dir.join("disturb");
        let words = ["gcc", "-O1", "-o"].map(str::to_owned).into_iter();
        compile(&words.chain([out.display().to_string(), source.display().to_string()]).collect::<Vec<_>>(), &dir);
        out
    })
}
