//! Random programs end in the same state natively and under grind, with the number of instructions that stepping counts.
//!
//! `GRIND_RANDOM_PROGRAMS` is how many (70 by default, over a million instructions in all), `GRIND_RANDOM_ROUNDS` how often
//! each runs its functions (120), `GRIND_RANDOM_SEED` the first seed. A failure names its seed and keeps its source. A hundred
//! million instructions take some minutes:
//!
//! ```text
//! GRIND_RANDOM_PROGRAMS=1200 GRIND_RANDOM_ROUNDS=600 cargo test --release -p grind-tests --test random -- --nocapture
//! ```

use std::process::Command;

use grind_tests::random::{Features, program};
use grind_tests::run::Job;
use grind_tests::{step, tools};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name}={v:?} is no number")))
}

/// Runs one program; what is wrong with it, or its number of instructions.
fn check(seed: u64, rounds: u32, dir: &std::path::Path) -> Result<u64, String> {
    let source = dir.join(format!("random{seed}.s"));
    let out = dir.join(format!("random{seed}"));
    std::fs::write(&source, program(seed, 6, rounds, Features::of_this_processor())).expect("a writable folder");
    let built = Command::new("gcc").args(["-static", "-nostdlib", "-no-pie", "-o"]).arg(&out).arg(&source).output();
    let built = built.expect("gcc");
    if !built.status.success() {
        return Err(format!("does not assemble:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    let job = Job::new([out.display().to_string()], dir);
    let native = job.native();
    if !native.status.success() {
        return Err(format!("fails natively: {}", native.status));
    }
    let tested = job.grind();
    if native.status != tested.outcome.status {
        return Err(format!("ends with {}\n{}", tested.outcome.status, tested.log));
    }
    if native.stdout != tested.outcome.stdout {
        let at = native.stdout.iter().zip(&tested.outcome.stdout).position(|(a, b)| a != b);
        return Err(format!("the state differs, first at byte {at:?} (2048 of memory, then registers)"));
    }
    let counts = step::count(&out, dir).map_err(|e| format!("{e:#}"))?;
    let (expected, got) = (counts.values().sum::<u64>(), tested.only().total());
    if expected == got { Ok(got) } else { Err(format!("{got} instructions, but {expected} by single-stepping")) }
}

fn batch(part: u64) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let (first, programs) = (number("GRIND_RANDOM_SEED", 1), number("GRIND_RANDOM_PROGRAMS", 70));
    let rounds = number("GRIND_RANDOM_ROUNDS", 120) as u32;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (mut total, mut wrong) = (0, Vec::new());
    // Two parts, so that two processors are busy.
    for seed in (first..first + programs).filter(|s| s % 2 == part) {
        match check(seed, rounds, dir.path()) {
            Ok(n) => total += n,
            Err(e) => wrong.push(format!("seed {seed}: {e}")),
        }
        // They pile up otherwise.
        if wrong.last().is_none_or(|w| !w.starts_with(&format!("seed {seed}:"))) {
            for name in [format!("random{seed}"), format!("random{seed}.s")] {
                let _ = std::fs::remove_file(dir.path().join(name));
            }
        }
    }
    println!("{total} instructions in agreement");
    if !wrong.is_empty() {
        panic!(
            "{} of {} programs, sources in {}:\n{}",
            wrong.len(),
            programs / 2,
            dir.keep().display(),
            wrong.join("\n")
        );
    }
}

#[test]
fn even_seeds() {
    batch(0);
}

#[test]
fn odd_seeds() {
    batch(1);
}
