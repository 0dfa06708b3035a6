//! Runs a program on generated profiles and prints its throughput beside that of `wc -l`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A run of a program.
pub(crate) struct Run {
    /// Wall-clock seconds.
    seconds: f64,
    /// Seconds of processor time, all threads together.
    processor: f64,
    /// The most memory it had, in MB.
    memory: f64,
}

/// Runs `program` three times, its output thrown away, and takes the fastest.
pub(crate) fn best_of_three(program: &str, args: &[&str]) -> Run {
    let runs = (0..3).map(|_| run(program, args));
    runs.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("three runs")
}

fn run(program: &str, args: &[&str]) -> Run {
    // GNU time knows processor time and memory of a child; the standard library does not.
    let start = Instant::now();
    let output = Command::new("/usr/bin/time")
        .args(["-f", "%U %S %M", program])
        .args(args)
        .stdout(Stdio::null())
        .output()
        .expect("/usr/bin/time (package `time`) is needed");
    let seconds = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {text}");
    let last: Vec<f64> = text.lines().last().unwrap_or("").split(' ').map(|word| word.parse().unwrap()).collect();
    Run { seconds, processor: last[0] + last[1], memory: last[2] / 1024.0 }
}

/// Prints a line of the table: `program` against `wc -l` on the same files.
pub(crate) fn report(what: &str, program: &str, args: &[&str], files: &[&Path]) {
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let megabytes = bytes as f64 / 1e6;
    let own = best_of_three(program, args);
    let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let yardstick = best_of_three("wc", &[&["-l"], &names[..]].concat());
    println!(
        "{what:<44} {megabytes:>8.1} MB {:>8.3} s {:>7.0} MB/s {:>7.0} MB/s per core {:>8.1} MB memory   wc -l {:>7.0} MB/s",
        own.seconds,
        megabytes / own.seconds,
        megabytes / own.processor,
        own.memory,
        megabytes / yardstick.seconds,
    );
}
