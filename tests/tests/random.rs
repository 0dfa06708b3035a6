//! Random programs end in the same state natively and under grind, with the number of instructions that they count
//! themselves, and that stepping through the small ones counts.
//!
//! `GRIND_RANDOM_PROGRAMS` is how many (70 by default, over a million instructions in all), `GRIND_RANDOM_ROUNDS` how often
//! each runs its functions (120), `GRIND_RANDOM_SEED` the first seed. A failure names its seed and keeps its source. A hundred
//! million instructions:
//!
//! ```text
//! GRIND_RANDOM_PROGRAMS=600 GRIND_RANDOM_ROUNDS=2000 cargo test --release -p grind-tests random:: -- --nocapture
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use grind_tests::random::{Features, WORDS, program};
use grind_tests::run::{Job, Outcome};
use grind_tests::{selfcount, step, tools};

/// Programs of more instructions are not single-stepped: a million takes 10 s.
const STEPS: u64 = 100_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name}={v:?} is no number")))
}

fn build(source: &str, dir: &Path, name: &str) -> Result<PathBuf, String> {
    let file = dir.join(format!("{name}.s"));
    std::fs::write(&file, source).expect("a writable folder");
    let out = dir.join(name);
    let built = Command::new(WORDS[0]).args(&WORDS[1..]).arg(&out).arg(&file).output().expect("gcc");
    if !built.status.success() {
        return Err(format!("does not assemble:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    Ok(out)
}

/// What a program that counts itself says: the state but for what it counts with, and the count.
fn state_and_count(outcome: &Outcome, source: &str) -> Result<(Vec<u8>, u64), String> {
    let mut state = outcome.stdout.clone();
    let Some((_, end)) = state.split_last_chunk_mut::<{ 4096 - 4064 }>() else {
        return Err(format!("the program that counts itself ends with {}", outcome.show()));
    };
    const { assert!(selfcount::COUNTER == 4096 - 8) };
    let count = end.last_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
    end.fill(0);
    Ok((state, count + selfcount::after_writing(source)))
}

/// Runs one program; what is wrong with it, or its number of instructions.
fn check(seed: u64, rounds: u32, dir: &Path) -> Result<u64, String> {
    let source = program(seed, 6, rounds, Features::of_this_processor());
    let out = build(&source, dir, &format!("random{seed}"))?;
    let job = Job::new([out.display().to_string()], dir);
    let native = job.native();
    if !native.status.success() {
        return Err(format!("fails natively: {}", native.status));
    }
    let twin = build(&selfcount::counting(&source), dir, &format!("random{seed}.counting"))?;
    let (state, expected) = state_and_count(&Job::new([twin.display().to_string()], dir).native(), &source)?;
    if state != native.stdout {
        return Err("the program that counts itself ends in another state".into());
    }
    let tested = job.grind();
    if native.status != tested.outcome.status {
        return Err(format!("ends with {}\n{}", tested.outcome.status, tested.log));
    }
    if native.stdout != tested.outcome.stdout {
        let at = native.stdout.iter().zip(&tested.outcome.stdout).position(|(a, b)| a != b);
        return Err(format!("the state differs, first at byte {at:?} (2048 of memory, then registers)"));
    }
    let got = tested.only().total();
    if expected != got {
        return Err(format!("{got} instructions, but it counts {expected} itself"));
    }
    if expected <= STEPS {
        let steps: u64 = step::count(&out, dir).map_err(|e| format!("{e:#}"))?.values().sum();
        if steps != got {
            return Err(format!("{got} instructions, but {steps} by single-stepping"));
        }
    }
    Ok(got)
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
            for end in ["", ".s", ".counting", ".counting.s"] {
                let _ = std::fs::remove_file(dir.path().join(format!("random{seed}{end}")));
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
