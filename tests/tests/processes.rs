//! What somebody sees who waits for grind, signals it, or kills it: the program, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grind_tests::tools;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What a test waits for at most: the machine may be busy.
const LIMIT: Duration = Duration::from_secs(30);

fn grind(dir: &Path, words: &[&str]) -> Command {
    let tool = tools::under_test();
    let mut command = Command::new(&tool[0]);
    command.args(&tool[1..]).arg("--cachegrind-out-file=cg.%p").arg("--log-file=log.%p").args(words);
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().expect("a process id"))
}

fn files(dir: &Path, prefix: &str) -> Vec<String> {
    let names = fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").file_name());
    let mut names: Vec<_> = names.filter_map(|n| n.into_string().ok()).filter(|n| n.starts_with(prefix)).collect();
    names.sort();
    names
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All profiles are whole.
fn whole(dir: &Path, names: &[String]) {
    for name in names {
        let text = fs::read(dir.join(name)).expect("a profile");
        grind_tests::profile::Profile::parse(&text).unwrap_or_else(|e| panic!("{name}: {e:#}"));
    }
}

#[test]
fn the_command_returns_while_its_daemon_is_profiled() {
    let dir = tempfile::tempdir().expect("a folder");
    let script = "( setsid sh -c 'while [ ! -e stop ]; do sleep 0.1; done; echo > stopped' <&- >&- 2>&- & ); exit 7";
    let mut command = grind(dir.path(), &["--trace-children=no", "sh", "-c", script]);
    // Also for whoever reads its output to the end.
    let output = command.output().expect("grind");
    assert_eq!(output.status.code(), Some(7));
    assert!(!dir.path().join("stopped").exists());
    let before = files(dir.path(), "cg.");
    assert!(!before.is_empty(), "the profile of the first process is there when it ends");
    fs::write(dir.path().join("stop"), "").expect("a file");
    until("the daemon ends", || dir.path().join("stopped").exists());
    whole(dir.path(), &files(dir.path(), "cg."));
}

#[test]
fn a_daemon_writes_its_profile_when_it_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    let script = "( while [ ! -e stop ]; do read -t 0.1 x < /dev/zero; done <&- >&- 2>&- & ); exit 0";
    let status = grind(dir.path(), &["bash", "-c", script]).output().expect("grind").status;
    assert_eq!(status.code(), Some(0));
    let before = files(dir.path(), "cg.").len();
    fs::write(dir.path().join("stop"), "").expect("a file");
    until("the daemon's profile", || files(dir.path(), "cg.").len() > before);
    whole(dir.path(), &files(dir.path(), "cg."));
}

#[test]
fn killing_grind_kills_the_program_and_leaves_its_profile() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut child = grind(dir.path(), &["bash", "-c", "echo $$ > pid; while :; do :; done"]).spawn().expect("grind");
    let mut guest = None;
    until("the program starts", || {
        guest = fs::read_to_string(dir.path().join("pid")).ok().and_then(|t| t.trim().parse().ok());
        guest.is_some()
    });
    kill(pid(&child), Signal::SIGKILL).expect("grind is there");
    assert_eq!(child.wait().expect("grind ends").signal(), Some(9));
    let guest = Pid::from_raw(guest.expect("read"));
    until("the program is gone", || kill(guest, None).is_err());
    until("its profile", || !files(dir.path(), "cg.").is_empty());
    whole(dir.path(), &files(dir.path(), "cg."));
    assert!(files(dir.path(), ".").is_empty(), "nothing half-written is left");
}

#[test]
fn killing_the_program_leaves_its_profile() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = grind(dir.path(), &["bash", "-c", "for i in 1 2 3; do :; done; kill -KILL $$"]).output();
    assert_eq!(output.expect("grind").status.signal(), Some(9));
    let names = files(dir.path(), "cg.");
    assert_eq!(names.len(), 1);
    whole(dir.path(), &names);
}

#[test]
fn signals_sent_to_grind_reach_the_program() {
    let dir = tempfile::tempdir().expect("a folder");
    for (signal, name) in [(Signal::SIGTERM, "TERM"), (Signal::SIGUSR1, "USR1"), (Signal::SIGWINCH, "WINCH")] {
        let script = format!("trap 'echo got {name}; exit 5' {name}; : > ready; while :; do :; done");
        let child = grind(dir.path(), &["bash", "-c", &script]).spawn().expect("grind");
        until("the program is ready", || dir.path().join("ready").exists());
        kill(pid(&child), signal).expect("grind is there");
        let output = child.wait_with_output().expect("grind ends");
        assert_eq!(output.status.code(), Some(5), "{name}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("got {name}\n"));
        fs::remove_file(dir.path().join("ready")).expect("the file");
    }
}

#[test]
fn grind_stops_and_continues_with_the_program() {
    let dir = tempfile::tempdir().expect("a folder");
    for signal in ["STOP", "TSTP"] {
        let child = grind(dir.path(), &["bash", "-c", &format!("kill -{signal} $$; echo on; exit 6")]).spawn();
        let child = child.expect("grind");
        let stopped = waitpid(pid(&child), Some(WaitPidFlag::WUNTRACED)).expect("grind stops");
        let expected = if signal == "STOP" { Signal::SIGSTOP } else { Signal::SIGTSTP };
        assert_eq!(stopped, WaitStatus::Stopped(pid(&child), expected));
        kill(pid(&child), Signal::SIGCONT).expect("grind is there");
        let output = child.wait_with_output().expect("grind ends");
        assert_eq!((output.status.code(), &*output.stdout), (Some(6), &b"on\n"[..]), "{signal}");
    }
}

#[test]
fn dispositions_and_closed_descriptors_are_inherited() {
    let dir = tempfile::tempdir().expect("a folder");
    let tool = tools::under_test().join(" ");
    for ignored in ["", "trap '' PIPE", "trap '' CHLD HUP", "trap '' PIPE INT TERM USR2"] {
        for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"] {
            let run = |tool: &str, to: &str| {
                // What shows it is no shell: that would change dispositions itself.
                let script =
                    format!("{ignored}\nexec 3>{to}\n{tool} grep -E '^Sig(Ign|Blk)' /proc/self/status 1>&3 {closed}");
                let script = script.replace("1>&3 1>&-", "1>&-");
                let status = Command::new("bash").args(["-c", &script]).current_dir(dir.path()).status();
                status.expect("bash").code()
            };
            let native = run("", "native");
            let tested = run(&format!("{tool} --log-file=log --cachegrind-out-file=/dev/null"), "tested");
            assert_eq!(native, tested, "{ignored} {closed}");
            let read = |name| fs::read_to_string(dir.path().join(name)).expect("the output");
            assert_eq!(read("native"), read("tested"), "{ignored} {closed}");
        }
    }
}

/// Needs a file system of its own, so a user namespace, or to be root.
#[test]
fn a_full_disk_costs_a_warning_and_no_profile() {
    let dir = tempfile::tempdir().expect("a folder");
    let probe = Command::new("unshare").args(["-rm", "true"]).status();
    if !probe.is_ok_and(|s| s.success()) {
        eprintln!("skipped: no user namespaces here");
        return;
    }
    let tool = tools::under_test().join(" ");
    fs::create_dir(dir.path().join("spare")).expect("a folder");
    // Full, then read-only.
    for fill in ["head -c 100M /dev/zero > full/x 2>/dev/null", "mount -o remount,ro full"] {
        let script = format!(
            "mkdir -p full; mount -t tmpfs -o size=64k none full && : > full/old; \
             TMPDIR=$PWD/spare {tool} --log-file=log --cachegrind-out-file=$PWD/full/old \
             sh -c '{fill}; exit 3'; echo $?; ls -A full; wc -c < full/old"
        );
        let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(dir.path()).output();
        let output = output.expect("unshare");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.starts_with("3\n"), "the status is the program's\n{text}");
        assert!(text.ends_with("\n0\n"), "what was there is as it was\n{text}");
        assert!(!text.contains(".tmp"), "{text}");
        let log = fs::read_to_string(dir.path().join("log")).expect("the log");
        assert!(log.contains("so the profile is in"), "{log}");
        let spare = files(&dir.path().join("spare"), "");
        assert!(!spare.is_empty(), "{log}");
        whole(&dir.path().join("spare"), &spare);
    }
}

/// What is translated ahead for a program that has run before changes none of its counts: neither of instructions nor of misses.
#[test]
fn programs_that_run_again_count_the_same() {
    for options in [&[][..], &["--cache-sim=yes", "--branch-sim=yes"], &["--hot-after=0", "--pair-calls-from=0"]] {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("text"), "b\na\nc\n").expect("a file");
        let script = "i=0; while [ $i -lt 5 ]; do /bin/true; wc text; cat text; i=$((i + 1)); done";
        let words = [options, &["--trace-children=yes", "sh", "-c", script]].concat();
        let output = grind(dir.path(), &words).output().expect("grind");
        assert!(output.status.success(), "{output:?}");
        let mut profiles: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in files(dir.path(), "cg.") {
            let text = fs::read_to_string(dir.path().join(name)).expect("a profile");
            let (command, counts) = text.split_once("events:").expect("a profile");
            profiles.entry(command.lines().last().expect("a command").to_owned()).or_default().push(counts.to_owned());
        }
        for (command, counts) in profiles.iter().filter(|(command, _)| !command.contains("while")) {
            assert_eq!(counts.len(), 5, "{command}");
            assert!(counts.iter().all(|other| *other == counts[0]), "{options:?}, {command}");
        }
        assert_eq!(profiles.len(), 4, "{:?}", profiles.keys());
    }
}
