//! Whole runs, from the outside: what the program, the log and the profile are like under grind.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Answer, Place, total, unmarked};

#[test]
fn output_and_status_are_the_programs() {
    let place = Place::new();
    for script in [
        "echo out; echo err >&2; exit 7",
        "exit 0",
        "exit 255",
        "grep 'Sig[PBIC]' /proc/self/status",
        "ulimit -a",
        "tr '\\0' '\\n' </proc/self/cmdline",
        "pwd; umask; env | grep -v '^_='",
        "echo a b c | cat | wc -w",
        "cd /proc/self/fd && echo *",
    ] {
        let native = place.natively(&["/bin/sh", "-c", script]);
        let grind = place.grind(&["-q", "--cachegrind-out-file=/dev/null", "/bin/sh", "-c", script]);
        assert_eq!((grind.code, &grind.out, &grind.err), (native.code, &native.out, &native.err), "{script}");
    }
}

#[test]
fn input_reaches_the_program() {
    let place = Place::new();
    let input = place.put("input", b"one\ntwo\n", 0o600);
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
    let output = command
        .args(["-q", "--cachegrind-out-file=/dev/null", "cat"])
        .stdin(fs::File::open(input).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"one\ntwo\n");
}

#[test]
fn death_by_a_signal_is_passed_on() {
    let place = Place::new();
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("PIPE", 13), ("INT", 2), ("USR1", 10)] {
        let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
        let script = format!("kill -{name} $$");
        let out = format!("--cachegrind-out-file=out.{name}");
        let output = command.args(["-q", &out, "/bin/sh", "-c", &script]).output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{name}");
        assert!(output.stderr.is_empty());
        assert!(total(&place.only(&format!("out.{name}"))) > 10_000, "{name}: the profile is written all the same");
    }
    assert!(!place.names().iter().any(|n| n.starts_with("core")), "{:?}", place.names());
}

#[test]
fn log_and_profile_agree() {
    let place = Place::new();
    let answer = place.grind(&["/bin/echo", "a b"]);
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), "a b\n"));
    let profile = place.only("cachegrind.out.");
    let lines = unmarked(&answer.err);
    assert_eq!(lines.len(), 10, "{}", answer.err);
    assert_eq!(lines[3..6], ["Command: /bin/echo a\\ b", "", ""]);
    let shown = lines[6].strip_prefix("I refs:        ").unwrap().replace(',', "");
    assert_eq!(shown, total(&profile).to_string());
    assert!(profile.starts_with("cmd: /bin/echo a b\nevents: Ir\nfl="), "{profile}");
    let pid = answer.err[2..].split('=').next().unwrap();
    assert!(place.path(&format!("cachegrind.out.{pid}")).exists(), "the profile has the PID of the log");
    assert!(answer.err.lines().all(|l| l.starts_with(&format!("=={pid}== "))));
    let name = format!("cachegrind.out.{pid}");
    assert_eq!(lines[7..], ["", &format!("Profile: {name}"), &format!("To read it: cg_annotate {name}")]);
}

#[test]
fn the_same_run_gives_the_same_profile() {
    let place = Place::new();
    for name in ["a", "b"] {
        place.grind(&["-q", &format!("--cachegrind-out-file=out.{name}"), "/bin/echo", "x"]);
    }
    assert_eq!(place.only("out.a"), place.only("out.b"));
}

#[test]
fn children_have_profiles_and_logs_of_their_own() {
    let place = Place::new();
    let script = "(exit 3); echo $?";
    let answer = place.grind(&["--log-file=log.%p", "--cachegrind-out-file=out.%p", "/bin/sh", "-c", script]);
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("3\n", ""));
    let names = place.names();
    let count = |prefix: &str| names.iter().filter(|n| n.starts_with(prefix)).count();
    assert_eq!((count("log."), count("out.")), (2, 2), "{names:?}");
    let logs: Vec<String> =
        names.iter().filter(|n| n.starts_with("log.")).map(|n| fs::read_to_string(place.path(n)).unwrap()).collect();
    for log in &logs {
        let lines = unmarked(log);
        assert_eq!(lines[3], "Command: /bin/sh -c (exit\\ 3);\\ echo\\ $?");
        assert!(lines[4].starts_with("Parent PID: "));
        assert!(lines[lines.len() - 4].starts_with("I refs: "), "{log}");
    }

    let silent =
        place.grind(&["--child-silent-after-fork=yes", "--cachegrind-out-file=silent.%p", "/bin/sh", "-c", script]);
    assert_eq!(silent.err.matches("I refs:").count(), 1, "{}", silent.err);
    assert_eq!(place.names().iter().filter(|n| n.starts_with("silent.")).count(), 2);
}

#[test]
fn other_programs_are_followed_if_wanted() {
    let place = Place::new();
    let commands = |prefix: &str, options: &[&str]| {
        let out = format!("--cachegrind-out-file={prefix}.%p");
        let mut args = vec!["-q", out.as_str()];
        args.extend(options);
        args.extend(["/bin/sh", "-c", "/bin/echo x; /usr/bin/env true; true"]);
        let answer = place.grind(&args);
        assert_eq!((answer.code, answer.out.as_str(), answer.err.as_str()), (Some(0), "x\n", ""));
        let mut commands: Vec<String> = place
            .names()
            .iter()
            .filter(|n| n.starts_with(&format!("{prefix}.")))
            .map(|n| {
                let profile = fs::read_to_string(place.path(n)).unwrap();
                assert!(total(&profile) > 1000);
                profile.lines().next().unwrap().strip_prefix("cmd: ").unwrap().to_owned()
            })
            .collect();
        commands.sort();
        commands
    };
    let shell = "/bin/sh -c /bin/echo x; /usr/bin/env true; true";
    assert_eq!(commands("no", &[]), [shell]);
    assert_eq!(commands("yes", &["--trace-children=yes"]), ["/bin/echo x", shell, "true"]);
    assert_eq!(commands("skip", &["--trace-children=yes", "--trace-children-skip=*/env"]), ["/bin/echo x", shell]);
    assert_eq!(commands("arg", &["--trace-children=yes", "--trace-children-skip-by-arg=x"]), [shell, "true"]);
}

#[test]
fn scripts_run_with_and_without_interpreter() {
    let place = Place::new();
    place.put("script", b"#!/bin/sh -e\necho \"$0 $1\"\n", 0o755);
    place.put("text", b"echo \"$0 $1\"\n", 0o755);
    for name in ["./script", "./text"] {
        let answer = place.grind(&["-q", "--cachegrind-out-file=/dev/null", name, "x"]);
        assert_eq!((answer.out, answer.err, answer.code), (format!("{name} x\n"), String::new(), Some(0)));
    }
}

/// The kernel, or a shell, is given other words than those that were typed.
#[test]
fn logs_and_profiles_show_scripts_as_they_were_typed() {
    let place = Place::new();
    place.put("inner", b"#!/bin/sh -e\nexit 0\n", 0o755);
    place.put("script", b"#!/bin/sh -e\n./inner y z\nexit 0\n", 0o755);
    place.put("text", b"exit 0\n", 0o755);
    for (tool, prefix) in [("cachegrind", "cmd: "), ("callgrind", "cmd:  ")] {
        for (words, options, commands) in [
            (["./script", "x"], &[][..], &["./script x"][..]),
            (["./text", "x"], &[], &["./text x"]),
            (["./script", "x"], &["--trace-children=yes"], &["./script x", "./inner y z"]),
        ] {
            let tool_option = format!("--tool={tool}");
            let out = format!("--{tool}-out-file=out");
            let answer = place.grind(&[&[&tool_option[..], &out], options, &words].concat());
            assert_eq!(answer.code, Some(0), "{}", answer.err);
            let shown: Vec<&str> = answer
                .err
                .lines()
                .filter_map(|line| line.split_once(" Command: ").map(|(_, command)| command))
                .collect();
            assert_eq!(shown, commands, "{tool}");
            let profile = place.only("out");
            let cmd = profile.lines().find_map(|line| line.strip_prefix(prefix));
            assert_eq!(cmd, Some(commands[0]), "{tool}: it ends last");
        }
    }
}

/// Only where somebody reads it: not in quiet runs, and not in Valgrind's place, whose logs are compared.
#[test]
fn a_log_ends_with_the_profile_and_what_reads_it() {
    let place = Place::new();
    let answer = place.grind(&["--tool=callgrind", "--callgrind-out-file=my out", "true"]);
    let end = ["Profile: my\\ out", "To read it: callgrind_annotate my\\ out"];
    assert!(unmarked(&answer.err).ends_with(&end), "{}", answer.err);
    let answer = place.grind(&["--tool=callgrind", "--callgrind-out-file=/dev/null", "true"]);
    assert!(!answer.err.contains("Profile:"), "{}", answer.err);
    let valgrind = place.path("valgrind");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_grind"), &valgrind).unwrap();
    let answer: Answer = place.command(&valgrind).args(["--tool=callgrind", "true"]).output().unwrap().into();
    assert!(!answer.err.contains("Profile:"), "{}", answer.err);
    // What filters of Valgrind's test suites leave of it.
    let lines = unmarked(&answer.err);
    let begin = lines.iter().position(|line| line.starts_with("Callgrind, a ")).expect("the first line");
    let empty = lines.iter().position(|line| line.is_empty()).expect("an empty line");
    assert!(begin == 0 && lines[..empty].iter().any(|line| line.starts_with("Command: ")), "{}", answer.err);
    assert!(
        lines[empty..].iter().all(|line| !line.contains("grind-") && !line.contains("Copyright")),
        "{}",
        answer.err
    );
}

/// As starters of interpreters do, which look like the interpreter to those who call them.
#[test]
fn a_program_that_becomes_another_says_why_there_is_no_profile() {
    let place = Place::new();
    place.put("starter", b"#!/bin/sh\n/bin/true\nexec /bin/echo x\n", 0o755);
    for tool in ["--tool=cachegrind", "--tool=callgrind"] {
        let answer = place.grind(&[tool, "./starter"]);
        assert_eq!(answer.out, "x\n");
        let warnings: Vec<&str> = answer.err.lines().filter(|line| line.contains("Warning: ")).collect();
        assert_eq!(warnings.len(), 1, "of the first process alone: {}", answer.err);
        assert!(
            warnings[0].contains("which is not followed: there is no profile of it (--trace-children=yes"),
            "{warnings:?}"
        );
    }
    let answer = place.grind(&["-q", "./starter"]);
    assert_eq!(answer.err, "");
    assert!(!place.names().iter().any(|name| name.contains(".out.")), "{:?}", place.names());
    let answer = place.grind(&["--trace-children=yes", "./starter"]);
    assert!(!answer.err.contains("Warning: "), "{}", answer.err);
}

#[test]
fn names_of_functions_that_fit_nothing_are_told_at_the_end() {
    let place = Place::new();
    let options = ["--tool=callgrind", "--callgrind-out-file=out", "--dump-before=mian", "--pop-on-jump=*alloc"];
    let answer = place.grind(&[&options[..], &["/bin/sh", "-c", "(exit 1); /bin/true; exit 0"]].concat());
    let told: Vec<&str> = answer.err.lines().filter(|line| line.contains("Warning: --")).collect();
    assert_eq!(told.len(), 1, "{}", answer.err);
    assert!(told[0].contains("--dump-before=mian: no function that has run has this name"), "{told:?}");
}

#[test]
fn the_profile_is_kept_if_its_place_disappears() {
    let place = Place::new();
    fs::create_dir(place.path("results")).unwrap();
    fs::create_dir(place.path("spare")).unwrap();
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
    let answer: Answer = command
        .env("TMPDIR", place.path("spare"))
        .args(["-q", "--cachegrind-out-file=results/out", "rmdir", "results"])
        .output()
        .unwrap()
        .into();
    assert_eq!(answer.code, Some(0), "the status stays the program's");
    let lines = unmarked(&answer.err);
    assert_eq!(lines[0], "error: can't open output data file 'results/out': No such file or directory");
    let kept = lines[1].strip_prefix("       ... so the profile is in '").unwrap().strip_suffix("'.").unwrap();
    assert!(kept.starts_with(place.path("spare").to_str().unwrap()), "{kept}");
    assert!(total(&fs::read_to_string(kept).unwrap()) > 10_000);
}

#[test]
fn the_profile_can_go_into_a_pipe() {
    let place = Place::new();
    let pipe = place.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).unwrap());
    let answer = place.grind(&["-q", "--cachegrind-out-file=pipe", "true"]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""));
    assert!(total(&reader.join().unwrap()) > 10_000);
    let answer = place.grind(&["-q", "--cachegrind-out-file=/dev/stdout", "true"]);
    assert!(total(&answer.out) > 10_000);
}

/// Starts `args` under grind and waits until the program has printed a line.
fn start(place: &Place, args: &[&str]) -> std::process::Child {
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
    let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    child
}

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap().success());
}

#[test]
fn signals_to_grind_reach_the_program() {
    let place = Place::new();
    let script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let child = start(&place, &["-q", "--cachegrind-out-file=out", "/bin/sh", "-c", script]);
    send("TERM", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("caught\n"));
    assert!(total(&place.only("out")) > 10_000);

    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let script = "echo ready; exec sleep 60";
        let out = format!("--cachegrind-out-file=out.{name}");
        let child = start(&place, &["-q", &out, "--trace-children=yes", "/bin/sh", "-c", script]);
        std::thread::sleep(Duration::from_millis(100));
        send(name, child.id());
        assert_eq!(child.wait_with_output().unwrap().status.signal(), Some(number));
        assert!(place.path(&format!("out.{name}")).exists());
    }
}

#[test]
fn the_program_does_not_outlive_grind() {
    let place = Place::new();
    let script = "echo $$; while :; do sleep 0.05; done";
    let mut child = start(&place, &["-q", "--cachegrind-out-file=/dev/null", "/bin/sh", "-c", script]);
    let grind = child.id();
    let children = fs::read_to_string(format!("/proc/{grind}/task/{grind}/children")).unwrap();
    let program: u32 = children.split_whitespace().next().unwrap().parse().unwrap();
    send("KILL", grind);
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    // A process that has ended may linger as a zombie until its new parent looks.
    let alive = || {
        fs::read_to_string(format!("/proc/{program}/stat"))
            .is_ok_and(|s| !s.rsplit(')').next().unwrap().starts_with(" Z"))
    };
    while alive() {
        assert!(Instant::now() < deadline, "process {program} goes on without grind");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const REQUESTS: &str = r#"
#include <stdio.h>
#include <unistd.h>
#include <cachegrind.h>
#include <callgrind.h>
static volatile unsigned sum;
static __attribute__((noinline)) void work(unsigned n) { while (n--) sum += n; }
int main(void)
{
    char tool[16] = "";
    printf("running %u\n", RUNNING_ON_VALGRIND);
    printf("toolname %u %s\n", VALGRIND_GET_TOOLNAME(tool, sizeof(tool)), tool);
    printf("printed %d\n", VALGRIND_PRINTF("%d %s\n", 1, "two"));
    printf("unknown %lu\n", VALGRIND_DO_CLIENT_REQUEST_EXPR(42, 0x12345678, 0, 0, 0, 0, 0));
    CACHEGRIND_START_INSTRUMENTATION;
    work(100000);
    CACHEGRIND_STOP_INSTRUMENTATION;
    work(10000000);
    CALLGRIND_DUMP_STATS;
    return 0;
}
"#;

#[test]
fn programs_can_speak_to_grind() {
    let place = Place::new();
    let Some(program) = place.compile("requests", REQUESTS, &["-O1"]) else { return };
    let program = program.to_str().unwrap();
    let answer = place.grind(&["-q", "--instr-at-start=no", "--cachegrind-out-file=out", program]);
    assert_eq!(answer.out, "running 1\ntoolname 11 cachegrind\nprinted 6\nunknown 42\n");
    assert!(answer.err.starts_with("**") && answer.err.ends_with("** 1 two\n"), "{}", answer.err);
    let counted = total(&place.only("out"));
    assert!((300_000..1_000_000).contains(&counted), "only the part between start and stop counts: {counted}");

    let answer = place.grind(&["-q", "--cachegrind-out-file=out", program]);
    let lines = unmarked(&answer.err);
    assert_eq!(
        lines[1..],
        ["warning: CACHEGRIND_START_INSTRUMENTATION called,", "         but instrumentation is already enabled",],
        "{}",
        answer.err
    );
}

#[test]
fn requests_before_the_start_count_nothing() {
    let place = Place::new();
    let answer = place.grind(&["--instr-at-start=no", "--cachegrind-out-file=out", "true"]);
    assert_eq!(total(&place.only("out")), 0);
    assert!(answer.err.contains("== I refs:        0\n"), "{}", answer.err);
}

#[test]
fn time_stamps_and_descriptors() {
    let place = Place::new();
    let script = format!(
        "{} --time-stamp=yes --log-fd=9 --cachegrind-out-file=/dev/null true 9>log; \
         {} --log-fd=77 --cachegrind-out-file=/dev/null true",
        env!("CARGO_BIN_EXE_grind"),
        env!("CARGO_BIN_EXE_grind")
    );
    let answer = place.natively(&["/bin/sh", "-c", &script]);
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.lines().all(|l| l.starts_with("==00:00:00:")), "{log}");
    assert!(
        answer.err.starts_with("grind: --log-fd=77: Bad file descriptor; logging to standard error instead\n=="),
        "{}",
        answer.err
    );
}

#[test]
fn a_log_that_nobody_reads_disturbs_nothing() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
    let output =
        command.args(["--cachegrind-out-file=out", "/bin/sh", "-c", "exit 4"]).stderr(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(total(&place.only("out")) > 10_000);
}

#[test]
fn the_engine_says_what_it_does_to_who_asks() {
    let place = Place::new();
    let run = |log: Option<&str>| -> String {
        let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
        command.envs(log.map(|log| ("GRIND_LOG", log)));
        let script = "trap 'exit 3' USR1; kill -USR1 $$; :";
        let output = command.args(["-q", "--cachegrind-out-file=/dev/null", "/bin/sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(run(None), "");
    let said = run(Some("signal=debug"));
    assert!(said.lines().all(|line| line.starts_with("grind: signal: ")) && said.contains("signal 10"), "{said}");
    let said = run(Some("trace"));
    for subject in ["dispatch", "link", "signal", "process"] {
        assert!(said.contains(&format!("grind: {subject}: ")), "{subject}\n{said}");
    }
    let said = run(Some("sgnal=debug"));
    assert!(said.contains("'sgnal=debug' is not known") && said.contains("signal, request"), "{said}");
}
