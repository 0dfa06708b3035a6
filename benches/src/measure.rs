//! Runs a command and takes its wall-clock time, or the memory of all its processes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

fn start(words: &[String], dir: &Path) -> Result<Child> {
    Command::new(&words[0])
        .args(&words[1..])
        .current_dir(dir)
        .env("PYTHONHASHSEED", "0")
        .env("PERL_HASH_SEED", "0")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", words[0]))
}

fn finish(words: &[String], child: Child) -> Result<()> {
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{words:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Wall-clock seconds of one run.
///
/// # Errors
/// If it cannot be started or fails.
pub(crate) fn seconds(words: &[String], dir: &Path) -> Result<f64> {
    let begin = Instant::now();
    let child = start(words, dir)?;
    finish(words, child)?;
    Ok(begin.elapsed().as_secs_f64())
}

/// The largest sum, over all processes of the command, of memory in MiB: resident pages, shared ones divided among those
/// that share them. Sampled every 10 ms, so short peaks may be missed.
///
/// # Errors
/// If it cannot be started or fails.
pub(crate) fn peak_mib(words: &[String], dir: &Path) -> Result<f64> {
    let mut child = start(words, dir)?;
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        peak = peak.max(tree_kib(child.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
    finish(words, child)?;
    Ok(peak as f64 / 1024.0)
}

fn tree_kib(pid: u32) -> u64 {
    // A process may end at any moment; then it has no memory.
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let pss =
        rollup.lines().find_map(|l| l.strip_prefix("Pss:")).and_then(|l| l.split_whitespace().next()?.parse().ok());
    let mut sum: u64 = pss.unwrap_or(0);
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        sum += children.split_whitespace().filter_map(|c| c.parse().ok()).map(tree_kib).sum::<u64>();
    }
    sum
}

/// The middle value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
