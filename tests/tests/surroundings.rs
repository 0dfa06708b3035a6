//! What surrounds a program: a terminal, limits on memory, a user with few rights, programs that cannot be followed. It must
//! be to the program, and to whoever has started it, as if there were no grind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use grind_tests::build::{Source, compile};
use grind_tests::compare::assert_same;
use grind_tests::profile::Profile;
use grind_tests::run::Job;
use grind_tests::tools;

fn build(dir: &Path, name: &str, source: &str) -> PathBuf {
    let (file, out) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&file, source).expect("a source file");
    let words = ["gcc", "-O1", "-w", "-o"].map(str::to_owned).into_iter();
    compile(&words.chain([&out, &file].map(|p| p.display().to_string())).collect::<Vec<_>>(), dir);
    out
}

/// A shell that gives its command a terminal of its own. It types ^Z when the command says that it is ready, lets it go on
/// once it has stopped, and types ^C when it says so. Prints all that can be seen of that.
const TERMINAL: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
static int master;
static void until(const char *text) {
    static char seen[65536];
    static size_t n, from;
    char *found;
    while (!(found = strstr(seen + from, text))) {
        ssize_t got = read(master, seen + n, sizeof seen - n - 1);
        if (got <= 0) { printf("end of the terminal before %s: %s\n", text, seen); exit(9); }
        n += (size_t)got;
    }
    from = (size_t)(found - seen) + strlen(text);
    printf("saw %s\n", text);
}
int main(int argc, char **argv) {
    int say[2], hear[2];
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master) || pipe(say) || pipe(hear)) return 9;
    pid_t leader = fork();
    if (leader == 0) {
        setsid();
        int end = open(ptsname(master), O_RDWR), status;
        close(master);
        signal(SIGTTOU, SIG_IGN);
        pid_t job = fork();
        if (job == 0) {
            setpgid(0, 0), tcsetpgrp(end, getpid());
            signal(SIGTTOU, SIG_DFL);
            dup2(end, 0), dup2(end, 1), dup2(end, 2);
            if (end > 2) close(end);
            close(say[0]), close(say[1]), close(hear[0]), close(hear[1]);
            execv(argv[1], argv + 1);
            _exit(127);
        }
        setpgid(job, job), tcsetpgrp(end, job);
        while (waitpid(job, &status, WUNTRACED | WCONTINUED) == job) {
            char text[64], c;
            int n = WIFSTOPPED(status) ? sprintf(text, "stopped by %d\n", WSTOPSIG(status))
                : WIFCONTINUED(status) ? sprintf(text, "continued\n")
                : WIFSIGNALED(status) ? sprintf(text, "killed by %d\n", WTERMSIG(status))
                                      : sprintf(text, "exited %d\n", WEXITSTATUS(status));
            tcsetpgrp(end, getpgrp());
            write(say[1], text, n);
            if (WIFSTOPPED(status)) {
                tcsetpgrp(end, job);
                kill(-job, SIGCONT);
            } else if (!WIFCONTINUED(status)) {
                // The terminal is still there when its output is read.
                read(hear[0], &c, 1);
                _exit(0);
            } else {
                tcsetpgrp(end, job);
            }
        }
        _exit(9);
    }
    close(say[1]);
    char text[256];
    ssize_t n;
    until("ready");
    write(master, "\x1a", 1);
    // Stopped, and continued.
    for (size_t got = 0; got < strlen("stopped by 20\ncontinued\n"); got += (size_t)n) {
        if ((n = read(say[0], text, sizeof text - 1)) <= 0) return 9;
        text[n] = 0, printf("%s", text);
    }
    until("on again");
    write(master, "\x03", 1);
    if (argc > 2 && !strcmp(argv[argc - 1], "caught")) until("interrupted once");
    if ((n = read(say[0], text, sizeof text - 1)) <= 0) return 9;
    text[n] = 0, printf("%s", text);
    write(hear[1], "x", 1);
    waitpid(leader, 0, 0);
    return 0;
}
"#;

/// Its command: how often each signal has come. With an argument it catches ^C, and ends a while later.
const IN_TERMINAL: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile int again, interrupted;
static void cont(int s) { again++; }
static void intr(int s) { interrupted++; }
static void say(const char *text) { write(1, text, __builtin_strlen(text)); }
int main(int argc, char **argv) {
    signal(SIGCONT, cont);
    if (argc > 1) signal(SIGINT, intr);
    for (volatile int i = 0; i < 100000; i++);
    say("ready\n");
    while (!again);
    struct timespec t = {0, 200000000};
    nanosleep(&t, 0);
    say(again == 1 ? "on again\n" : "too often\n");
    while (!interrupted);
    for (int i = 0; i < 10; i++) { struct timespec w = {0, 30000000}; nanosleep(&w, 0); }
    say(interrupted == 1 ? "interrupted once\n" : "interrupted too often\n");
    return 7;
}
"#;

#[test]
fn keys_of_a_terminal_stop_and_interrupt() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let terminal = build(dir.path(), "terminal", TERMINAL).display().to_string();
    let inside = build(dir.path(), "inside", IN_TERMINAL).display().to_string();
    for argument in [None, Some("caught")] {
        let run = |before: Vec<String>| {
            let words = std::iter::once(terminal.clone()).chain(before).chain([inside.clone()]);
            Job::new(words.chain(argument.map(str::to_owned)), dir.path()).native()
        };
        let mut grind = tools::under_test().to_vec();
        // execv wants a path.
        grind[0] = tools::find(&grind[0]).expect("the program under test").display().to_string();
        grind.extend(["-q", "--log-file=log", "--cachegrind-out-file=profile"].map(str::to_owned));
        let (native, tested) = (run(Vec::new()), run(grind));
        assert!(native.status.success(), "{}", native.show());
        assert_same("a terminal", &native, &tested, &fs::read_to_string(dir.path().join("log")).unwrap_or_default());
        let profile = fs::read(dir.path().join("profile")).expect("the profile");
        // What it does before it waits, for which there may be no time at all.
        assert!(Profile::parse(&profile).expect("a whole profile").total() > 400_000);
    }
}

/// Joins the group at its first argument, and takes more and more memory. Calls `counted` for each MiB.
const HUNGRY: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long counted(unsigned long h) {
    for (int i = 0; i < 50; i++) h = h * 6364136223846793005 + (unsigned long)i;
    return h;
}
int main(int argc, char **argv) {
    char text[20];
    int f = open(argv[1], O_WRONLY), n = sprintf(text, "%d", getpid());
    if (f < 0 || write(f, text, n) != n) return 77;
    unsigned long h = 1;
    for (int i = 0; i < 1000; i++) {
        h = counted(h);
        char *p = mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return 8;
        memset(p, 1, 1 << 20);
    }
    return h == 7;
}
"#;

/// A group of processes that may have 64 MiB; removed at the end.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let name = format!("grind-test-{}", std::process::id());
        // The first version, which has a tree for each resource, and the second.
        for (root, limit) in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")] {
            let group = Group(Path::new(root).join(&name));
            if Path::new(root).join("cgroup.procs").exists()
                && fs::create_dir(&group.0).is_ok()
                && fs::write(group.0.join(limit), "67108864").is_ok()
            {
                let _ = fs::write(group.0.join("memory.swap.max"), "0");
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn death_for_want_of_memory_leaves_a_profile() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build(dir.path(), "hungry", HUNGRY).display().to_string();
    let Some(group) = Group::new() else {
        eprintln!("skipped: no group of processes with a limit can be made here");
        return;
    };
    let job = Job::new([program, group.0.join("cgroup.procs").display().to_string()], dir.path());
    let (native, tested) = (job.native(), job.grind());
    if native.status.code() == Some(77) {
        eprintln!("skipped: the group cannot be joined here");
        return;
    }
    assert_eq!(native.status.to_string(), "signal: 9 (SIGKILL)");
    assert_same("a hungry program", &native, &tested.outcome, &tested.log);
    if !tools::under_test().iter().any(|w| w == "--tool=callgrind") {
        let counted = tested.only().by_name().get("counted").copied().unwrap_or(0);
        // Some 60 calls of 50 rounds each.
        assert!(
            (40 * 150..64 * 300).contains(&counted),
            "{counted} instructions in the function that is called for each MiB"
        );
    }
}

/// Where filters cannot be suspended, since the user may not do that.
#[test]
fn filters_of_system_calls_work_for_ordinary_users() {
    if !tools::have(&["gcc", "setpriv"]) {
        return;
    }
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new(nobody[0]).args(&nobody[1..]).arg("true").status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: only root may become somebody else");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a folder");
    open(dir.path(), 0o755);
    let mut grind = tools::under_test().to_vec();
    // Its own place may not be everybody's.
    let copy = dir.path().join("grind");
    fs::copy(tools::find(&grind[0]).expect("the program under test"), &copy).expect("a copy");
    grind[0] = copy.display().to_string();
    for name in [
        "process_seccomp_filter",
        "process_seccomp_strict",
        "process_seccomp_traps",
        "process_user_namespace",
        "corner_int80",
    ] {
        let work = dir.path().join(format!("{name}.work"));
        fs::create_dir(&work).expect("a folder");
        open(&work, 0o777);
        let program = Source::open("semantics", name).build(dir.path(), false);
        open(&program, 0o755);
        let run = |before: &[String]| {
            let words = nobody.iter().map(|w| (*w).to_owned()).chain(before.iter().cloned());
            let job = Job::new(words.chain([program.display().to_string()]), &work);
            Job { limit: Duration::from_secs(30), ..job }.native()
        };
        let mut before = grind.clone();
        before.extend(["--log-file=log.%p", "--cachegrind-out-file=cg.%p"].map(str::to_owned));
        let (native, tested) = (run(&[]), run(&before));
        assert_same(name, &native, &tested, "");
        let written = fs::read_dir(&work).expect("the folder").flatten();
        let profiles: Vec<_> = written.filter(|e| e.file_name().to_string_lossy().starts_with("cg.")).collect();
        assert!(!profiles.is_empty(), "{name}");
        for entry in profiles {
            Profile::parse(&fs::read(entry.path()).expect("a profile")).unwrap_or_else(|e| panic!("{name}: {e:#}"));
        }
    }
}

/// Programs of another architecture, and those with another user's rights: they run as ever, and it is said why they have no
/// profile.
#[test]
fn programs_that_cannot_be_followed_run_all_the_same() {
    if !tools::have(&["as", "ld"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("old.s"), ".globl _start\n_start: mov $1, %eax\nmov $7, %ebx\nint $0x80\n").expect("a source file");
    for words in [["as", "--32", "-o", "old.o", "old.s"], ["ld", "-melf_i386", "-o", "old", "old.o"]] {
        assert!(Command::new(words[0]).args(&words[1..]).current_dir(dir.path()).status().expect("binutils").success());
    }
    if Command::new(at("old")).status().is_err() {
        eprintln!("skipped: this kernel runs no 32-bit programs");
        return;
    }
    fs::copy("/usr/bin/id", at("rights")).expect("a copy");
    fs::set_permissions(at("rights"), fs::Permissions::from_mode(0o4755)).expect("a file");
    let script = "./old; echo $?; ./rights -u; ./old; echo $?; ./rights -u; exit 5";
    let job = Job { trace_children: true, ..Job::new(["sh", "-c", script], dir.path()) };
    let (native, tested) = (job.native(), job.grind());
    assert_same("programs that cannot be followed", &native, &tested.outcome, &tested.log);
    let said = |what: &str| tested.log.lines().filter(|l| l.contains(what)).count();
    // One warning each time.
    assert_eq!(
        (said("is a 32-bit program"), said("set-uid or set-gid"), said("not profiled: ")),
        (2, 2, 4),
        "{}",
        tested.log
    );
}
