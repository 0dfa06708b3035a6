//! Reads experiments and runs, and refuses what is not as it should be, so that a figure that nobody can place does not get in.
//!
//! A run is a folder: `env.toml` says of what machine and code it is, `raw.csv` has every single time (`--record` of the bench
//! command writes both), or `table.csv` has what a table of medians said. Ratios of raw times are medians over medians.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// What became of an experiment.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The code is as it was tried.
    Kept,
    /// The code is as it was before.
    Dropped,
    /// Measured to know; nothing was to be changed.
    Reference,
    /// It cannot be told.
    Inconclusive,
}

/// An experiment. What is not known of it is missing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name: small letters, digits and hyphens.
    pub id: String,
    /// When its result was written down: `2026-11-25`.
    pub date: Option<String>,
    /// The commit that did so.
    pub commit: Option<String>,
    /// What was there.
    pub before: Option<String>,
    /// What was tried, or looked at.
    pub after: String,
    /// Processor.
    pub machine: Option<String>,
    /// Names of the bench command's programs, or what else was run.
    #[serde(default)]
    pub programs: Vec<String>,
    /// What was measured.
    pub metric: Option<String>,
    /// Runs.
    pub n: Option<String>,
    /// What of them counts.
    pub statistic: Option<String>,
    /// What was found.
    pub result: String,
    /// What became of it.
    pub verdict: Verdict,
    /// The number of the decision that it belongs to.
    pub decision: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiments {
    experiment: Vec<Experiment>,
}

/// The experiments of a file's text, each checked.
///
/// # Errors
/// Says which experiment is wrong, and how.
pub fn experiments(text: &str) -> Result<Vec<Experiment>> {
    let all: Experiments = toml::from_str(text).context("experiments")?;
    let mut ids = BTreeSet::new();
    for e in &all.experiment {
        check(e).with_context(|| format!("experiment {:?}", e.id))?;
        ensure!(ids.insert(&e.id), "two experiments are called {:?}", e.id);
    }
    Ok(all.experiment)
}

fn check(e: &Experiment) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    ensure!(!e.id.is_empty() && e.id.chars().all(plain), "an id has small letters, digits and hyphens");
    for (what, text) in [("after", &e.after), ("result", &e.result)] {
        ensure!(!text.trim().is_empty(), "`{what}` is empty");
    }
    let optional = [&e.commit, &e.before, &e.machine, &e.metric, &e.n, &e.statistic];
    ensure!(optional.iter().all(|o| o.as_ref().is_none_or(|t| !t.trim().is_empty())), "a field that is there is empty");
    ensure!(e.programs.iter().all(|p| !p.trim().is_empty()), "a program has no name");
    if let Some(date) = &e.date {
        check_date(date)?;
    }
    if let Some(commit) = &e.commit {
        ensure!(commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{commit:?} is no commit");
    }
    if let Some(d) = &e.decision {
        ensure!(
            d.len() == 4 && d.chars().all(|c| c.is_ascii_digit()),
            "{d:?} is no number of a decision (four digits)"
        );
    }
    Ok(())
}

fn check_date(date: &str) -> Result<()> {
    let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let part = |range: std::ops::Range<usize>| date.get(range).and_then(|p| p.parse::<u32>().ok()).unwrap_or(0);
    ensure!(
        shape == "0000-00-00" && (1..=12).contains(&part(5..7)) && (1..=31).contains(&part(8..10)),
        "{date:?} is no date (as in 2026-11-25)"
    );
    Ok(())
}

/// What is said of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// When.
    pub date: String,
    /// Processor.
    pub cpu: String,
    /// How many of them.
    pub cores: u32,
    /// MiB of last level that a run with caches simulates.
    pub last_level_mib: Option<u32>,
    /// The code.
    pub commit: Option<String>,
    /// The code that `before` stands for.
    pub before: Option<String>,
    /// `wall` or `processor`.
    pub clock: Option<String>,
    /// Version of the kernel.
    pub kernel: Option<String>,
    /// Version of Valgrind.
    pub valgrind: Option<String>,
    /// What the run was for.
    pub title: Option<String>,
    /// What was written down beside the figures.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How a metric was measured.
    #[serde(default)]
    pub statistic: BTreeMap<String, String>,
}

/// A run: what was found, by program, metric, who ran it (`native`, `grind`, `valgrind`, `before`), and series.
#[derive(Clone, Debug)]
pub struct Run {
    /// What is said of it.
    pub env: Environment,
    /// Times native, but for metrics that name a unit.
    pub values: BTreeMap<(String, String, String, String), f64>,
}

impl Run {
    /// The slowdown of a program in a metric, first series.
    #[must_use]
    pub fn value(&self, program: &str, metric: &str, by: &str) -> Option<f64> {
        self.values.get(&(program.into(), metric.into(), by.into(), "1".into())).copied()
    }
}

/// Reads the run of a folder.
///
/// # Errors
/// Says which file is wrong, and in which line.
pub fn run(folder: &Path) -> Result<Run> {
    let path = folder.join("env.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let env: Environment = toml::from_str(&text).with_context(|| path.display().to_string())?;
    check_date(&env.date).with_context(|| path.display().to_string())?;
    let mut values = BTreeMap::new();
    let (table, raw) = (folder.join("table.csv"), folder.join("raw.csv"));
    if table.is_file() {
        for (n, fields) in rows(&table, "program,metric,by,series,value")? {
            let value = number(&table, n, &fields[4])?;
            let key = (fields[0].clone(), fields[1].clone(), fields[2].clone(), fields[3].clone());
            ensure!(values.insert(key, value).is_none(), "{}:{n}: a second value", table.display());
        }
    } else if raw.is_file() {
        values = medians(&raw)?;
    } else if !folder.join("throughput.csv").is_file() {
        bail!("{}: neither table.csv nor raw.csv nor throughput.csv", folder.display());
    }
    Ok(Run { env, values })
}

/// All runs of a folder of runs, by the names of their folders.
///
/// # Errors
/// As [`run`].
pub fn runs(folder: &Path) -> Result<BTreeMap<String, Run>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        found.insert(entry.file_name().to_string_lossy().into_owned(), run(&entry.path())?);
    }
    Ok(found)
}

/// Medians of raw times over those of native ones, of the same metric.
fn medians(raw: &Path) -> Result<BTreeMap<(String, String, String, String), f64>> {
    let mut times: BTreeMap<(String, String, String), Vec<f64>> = BTreeMap::new();
    for (n, fields) in rows(raw, "program,metric,by,seconds")? {
        let key = (fields[0].clone(), fields[1].clone(), fields[2].clone());
        times.entry(key).or_default().push(number(raw, n, &fields[3])?);
    }
    let middle: BTreeMap<_, _> = times.iter().map(|(key, times)| (key.clone(), median(times))).collect();
    let mut values = BTreeMap::new();
    for ((program, metric, by), time) in &middle {
        let native = middle.get(&(program.clone(), metric.clone(), "native".into()));
        let native = native.with_context(|| format!("{}: no native time of {program}, {metric}", raw.display()))?;
        let (metric, value) = if by == "native" { ("seconds", *time) } else { (metric.as_str(), time / native) };
        values.entry((program.clone(), metric.into(), by.clone(), "1".into())).or_insert(value);
    }
    Ok(values)
}

/// The middle value; of an even number, the mean of the two in the middle. There must be one.
fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 }
}

/// The rows behind a header, with the numbers of their lines. No field has a comma in it.
fn rows(path: &Path, header: &str) -> Result<Vec<(usize, Vec<String>)>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut lines = text.lines().enumerate();
    ensure!(lines.next().is_some_and(|(_, l)| l == header), "{}: the header is not {header:?}", path.display());
    let fields = header.split(',').count();
    lines
        .map(|(n, line)| {
            let row: Vec<String> = line.split(',').map(str::to_owned).collect();
            ensure!(row.len() == fields, "{}:{}: {} fields, not {fields}", path.display(), n + 1, row.len());
            Ok((n + 1, row))
        })
        .collect()
}

fn number(path: &Path, line: usize, text: &str) -> Result<f64> {
    let value: f64 = text.parse().with_context(|| format!("{}:{line}: {text:?} is no number", path.display()))?;
    ensure!(value.is_finite() && value > 0.0, "{}:{line}: {text:?} is not above 0", path.display());
    Ok(value)
}
