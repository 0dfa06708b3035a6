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

/// What a run took, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// By the clock on the wall.
    pub(crate) wall: f64,
    /// Of processors, for all its processes and threads, to 10 ms.
    pub(crate) cpu: f64,
}

/// Both times of one run.
///
/// # Errors
/// If it cannot be started or fails.
pub(crate) fn cost(words: &[String], dir: &Path) -> Result<Cost> {
    let before = children()?;
    let wall = seconds(words, dir)?;
    Ok(Cost { wall, cpu: children()? - before })
}

/// Processor time of all children that have been waited for, and of theirs, in seconds (`cutime` and `cstime` in
/// `proc_pid_stat(5)`, in ticks of 10 ms on every Linux system for x86-64).
fn children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|f| f.parse::<f64>().ok());
    // The fields behind the name: the first is the third of all.
    let (Some(user), Some(system)) = (ticks(16 - 3), ticks(17 - 3)) else { anyhow::bail!("/proc/self/stat: {stat:?}") };
    Ok((user + system) / 100.0)
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
