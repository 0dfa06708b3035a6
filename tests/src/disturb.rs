//! Somebody who interrupts every thread of a program under test, from outside, a thousand times a second, with a signal that
//! is ignored by default (SIGURG): whatever the program executes, in whatever way it was linked, it goes on being interrupted,
//! and nothing that it does may change.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::build::compile;

/// The threads of all descendants of a process's child (which traces them), in turn: at most 8 of them a millisecond. What it
/// writes at its end is how many signals it has sent.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { MOST = 4096 };
static int pids[MOST], tids[MOST], n;
static volatile sig_atomic_t over;
static void end(int s) { (void)s; over = 1; }
// Children of all threads of a process; its threads are listed if it is not the tracer.
static void walk(int pid, int depth) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    struct dirent *e;
    while (tasks && (e = readdir(tasks))) {
        int tid = atoi(e->d_name), child;
        if (!tid) continue;
        if (depth > 1 && n < MOST) pids[n] = pid, tids[n++] = tid;
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
        FILE *f = fopen(path, "r");
        while (f && depth < 30 && fscanf(f, "%d", &child) == 1) walk(child, depth + 1);
        if (f) fclose(f);
    }
    if (tasks) closedir(tasks);
}
int main(int argc, char **argv) {
    unsigned long sent = 0, at = 0;
    (void)argc;
    signal(SIGTERM, end);
    for (unsigned round = 0; !over; round++) {
        if (round % 32 == 0) n = 0, walk(atoi(argv[1]), 0);
        for (int i = 0; i < 8 && i < n; i++, at++)
            sent += syscall(SYS_tgkill, pids[at % n], tids[at % n], SIGURG) == 0;
        struct timespec t = {0, 1000000};
        nanosleep(&t, 0);
    }
    printf("%lu\n", sent);
    return 0;
}
"#;

/// Whether programs under test shall be disturbed: `GRIND_DISTURB` is set.
pub fn wanted() -> bool {
    std::env::var_os("GRIND_DISTURB").is_some()
}

/// Begins to disturb what the profiler with this process id runs.
///
/// # Panics
/// If the disturbing program cannot be built or started.
pub fn begin(profiler: u32) -> Child {
    Command::new(program())
        .arg(profiler.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the disturbing program")
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
