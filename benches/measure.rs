//! Runs a program on generated profiles and prints its throughput beside that of `wc -l`, as rows of a Markdown table.
//!
//! Throughput per core is input by processor time of all threads, medians of several runs: it hardly depends on what else
//! the machine does. A process starts and ends in a millisecond or two, whatever it does, which is most of what a small
//! profile costs; so the time for a profile without counts is measured, too, and taken away in a column of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

/// Seconds that runs of a program take, medians.
struct Times {
    wall: f64,
    /// Of all threads together.
    processor: f64,
}

/// What is measured: a program and how it is called before the names of its inputs.
pub(crate) struct Subject<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [&'a str],
    /// A profile without counts.
    pub(crate) empty: &'a Path,
}

/// Prints the head of the table.
pub(crate) fn head() {
    println!("| what | input | processor time | per core | without start | wall | memory | `wc -l` per core |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
}

/// Prints a row of the table.
pub(crate) fn report(what: &str, subject: &Subject<'_>, files: &[&Path]) {
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let megabytes = bytes as f64 / 1e6;
    let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let args = [subject.args, &names].concat();
    let own = times(subject.program, &args);
    let start = times(subject.program, &[subject.args, &[subject.empty.to_str().unwrap()]].concat());
    let yardstick = times("wc", &[&["-l"], &names[..]].concat());
    println!(
        "| {what} | {megabytes:.1} MB | {:.2} ms | {:.0} MB/s | {:.0} MB/s | {:.0} MB/s | {:.1} MB | {:.0} MB/s |",
        own.processor * 1e3,
        megabytes / own.processor,
        megabytes / (own.processor - start.processor),
        megabytes / own.wall,
        memory(subject.program, &args),
        megabytes / yardstick.processor,
    );
}

/// Runs a program at least 3 times, and up to 41 times within two seconds, its output thrown away.
fn times(program: &str, args: &[&str]) -> Times {
    let (mut walls, mut processors) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    while walls.len() < 3 || (walls.len() < 41 && begin.elapsed() < Duration::from_secs(2)) {
        let (before, start) = (children(), Instant::now());
        let output = Command::new(program).args(args).stdout(Stdio::null()).output().unwrap();
        walls.push(start.elapsed().as_secs_f64());
        processors.push(children() - before);
        assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Times { wall: median(walls), processor: median(processors) }
}

/// Seconds of processor time that all children so far have taken.
fn children() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The most memory that a run has, in MB: GNU time knows it of a single child.
fn memory(program: &str, args: &[&str]) -> f64 {
    let mut timed = Command::new("/usr/bin/time");
    let output = timed.args(["-f", "%M", program]).args(args).stdout(Stdio::null()).output();
    let output = output.expect("/usr/bin/time (package `time`) is needed");
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().last().and_then(|line| line.parse::<f64>().ok()).expect("a number of KiB") / 1024.0
}
