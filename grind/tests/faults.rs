//! What becomes of a panic in grind, wherever it is: the program is as it would be natively or, if the engine itself has failed,
//! killed; the profile so far is written and says that it is incomplete; one message asks for a report; the status is the
//! program's, or 125. Faults are made by `GRIND_FAULT` (`grind_types::fault`), which only exists with debug assertions.

use crate::common;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::Place;
use cg_format::callgrind::laws;

/// A program with children, system calls and many calls.
const SCRIPT: &str = "i=0; while [ $i -lt 300 ]; do i=$((i + 1)); done; (echo child; exit 3); echo $i $?; exit 7";

/// What a fault leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// No program, no profile.
    Nothing,
    /// A program that was killed, and its profile.
    Profile,
    /// Output and status of the program, and its profile.
    All,
}

/// Runs it with a fault, and checks what is left.
fn check(options: &[&str], fault: &str, leaves: Leaves) {
    let place = Place::new();
    let what = format!("{options:?} {fault}");
    let tool = if options.contains(&"--tool=callgrind") { "callgrind" } else { "cachegrind" };
    let out = format!("--{tool}-out-file=out.%p");
    let begun = Instant::now();
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
    let output = command.arg("-q").arg(&out).args(options).args(["/bin/sh", "-c", SCRIPT]).env("GRIND_FAULT", fault);
    let answer = common::Answer::from(output.env_remove("RUST_BACKTRACE").output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(60), "{what}: it hangs");
    let told = format!("{what}: {:?} {}\n{}", answer.code, answer.out, answer.err);
    assert_eq!(answer.err.matches("please report it").count(), 1, "{told}");
    assert!(answer.err.contains("grind has failed: a fault was asked for in `"), "{told}");
    assert!(!answer.err.contains("panicked at"), "{told}");
    match leaves {
        Leaves::All => assert_eq!((answer.code, &*answer.out), (Some(7), "child\n300 3\n"), "{told}"),
        Leaves::Profile | Leaves::Nothing => assert_eq!(answer.code, Some(125), "{told}"),
    }
    let files: Vec<String> = place.names().into_iter().filter(|name| name.starts_with("out.")).collect();
    if leaves == Leaves::Nothing {
        assert!(files.is_empty(), "{told}{files:?}");
        return;
    }
    let mut marked = 0;
    for file in &files {
        let profile = std::fs::read_to_string(place.path(file)).unwrap();
        marked += usize::from(
            profile.contains("\ndesc: incomplete: grind has failed: a fault was asked for in `")
                || profile.starts_with("desc: incomplete: grind has failed: a fault was asked for in `"),
        );
        // Those of cachegrind are call graphs without calls.
        let broken = laws::breaches(profile.as_bytes(), file).unwrap_or_else(|e| panic!("{told}{e}"));
        assert!(broken.is_empty(), "{told}{}", broken[0]);
        let sum = profile.lines().find_map(|line| line.strip_prefix("summary: ")).expect("a sum");
        assert!(!sum.starts_with('0'), "{told}an empty profile");
    }
    assert!(marked > 0, "{told}{files:?}");
}

/// The tools, in the ways in which they gather.
const COUNTED: &[&str] = &[];
const SIMULATED: &[&str] = &["--cache-sim=yes"];
const FOLLOWED: &[&str] = &["--tool=callgrind", "--told-first=0"];
const FOLLOWED_AND_SIMULATED: &[&str] = &["--tool=callgrind", "--cache-sim=yes", "--told-first=0"];
const TOLD_FIRST: &[&str] = &["--tool=callgrind", "--told-first=1"];
const TOLD: &[&str] = &["--tool=callgrind", "--tell-calls=yes"];
const USED: &[&str] = &["--tool=callgrind", "--cacheuse=yes", "--I1=1024,2,64", "--D1=1024,2,64", "--LL=65536,2,64"];
const WAYS: [&[&str]; 7] = [COUNTED, SIMULATED, FOLLOWED, FOLLOWED_AND_SIMULATED, TOLD, USED, TOLD_FIRST];

fn each(faults: &[(&str, &[&[&str]])], leaves: Leaves) {
    if !cfg!(debug_assertions) {
        eprintln!("skipped: faults can only be made with debug assertions");
        return;
    }
    for (fault, ways) in faults {
        ways.iter().for_each(|options| check(options, fault, leaves));
    }
}

#[test]
fn before_the_program_begins_there_is_a_message_and_a_status() {
    each(&[("options", &[COUNTED, FOLLOWED]), ("tracer", &[SIMULATED, TOLD])], Leaves::Nothing);
}

#[test]
fn a_fault_of_the_engine_kills_the_program_and_leaves_its_profile() {
    each(&[("engine:3", &WAYS), ("engine:40", &WAYS)], Leaves::Profile);
}

#[test]
fn a_fault_of_a_sink_costs_what_comes_after_it() {
    let told: &[&[&str]] = &[SIMULATED, FOLLOWED_AND_SIMULATED, TOLD, USED];
    let followed: &[&[&str]] = &[FOLLOWED, FOLLOWED_AND_SIMULATED];
    each(&[("records:2", &told[2..]), ("records", &told[..1]), ("transfer:9", followed)], Leaves::All);
    each(&[("transfer:300", followed), ("last", &WAYS[2..])], Leaves::All);
}

#[test]
fn a_fault_of_the_runner_at_the_end_leaves_status_and_counts() {
    each(&[("names", &WAYS), ("end", &WAYS[..2])], Leaves::All);
}
