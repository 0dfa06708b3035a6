//! `cargo run --release -p grind-bench`: what profiling costs, in one table.
//!
//! For each program of a fixed set it prints the native time and grind's slowdown (and Valgrind's with `--valgrind`), medians
//! of interleaved runs; then start-up, memory, and how cost grows with cold code, hot code and threads. It only measures:
//! that counts are right is for the tests.
#![forbid(unsafe_code)]

mod cacheuse;
mod growth;
mod measure;
mod record;
mod set;
mod simulation;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use measure::{median, peak_mib, seconds};

/// Prints what profiling costs: native time, slowdowns, start-up, memory, growth.
#[derive(Debug, Parser)]
struct Options {
    /// Programs to run (default: all). Names as in the table.
    names: Vec<String>,
    /// Runs of each program, natively and under grind.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Run Valgrind (the same tool, exact counts, no simulation) too, once or as often as given.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "1", default_value_t = 0)]
    valgrind: u32,
    /// Only the tables of simulation.
    #[arg(long, conflicts_with_all = ["table_only", "no_simulation"])]
    only_simulation: bool,
    /// Only the table of cache use.
    #[arg(long, conflicts_with_all = ["table_only", "only_simulation"])]
    only_cacheuse: bool,
    /// No tables of simulation.
    #[arg(long)]
    no_simulation: bool,
    /// The tool to measure: cachegrind or callgrind (of Valgrind, too).
    #[arg(long, default_value = "cachegrind", value_parser = ["cachegrind", "callgrind"])]
    tool: String,
    /// Only the table of programs: no simulation, start-up, memory and growth.
    #[arg(long)]
    table_only: bool,
    /// No memory measurements.
    #[arg(long)]
    no_memory: bool,
    /// The program to measure (default: grind of this workspace, built with --release).
    #[arg(long)]
    grind: Option<PathBuf>,
    /// A folder for every single time (raw.csv) and what the machine is (env.toml).
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
}

/// How to run a command natively, under grind and under Valgrind.
struct Ways {
    grind: Vec<String>,
    valgrind: Option<Vec<String>>,
    dir: PathBuf,
    /// Every time that was taken, for `--record`.
    times: RefCell<Vec<record::Time>>,
}

impl Ways {
    fn under(profiler: &[String], words: &[String]) -> Vec<String> {
        profiler.iter().chain(words).cloned().collect()
    }

    /// Notes a time for `--record`; passes it on.
    fn noted(&self, program: &'static str, metric: &'static str, by: &'static str, seconds: f64) -> f64 {
        self.times.borrow_mut().push(record::Time { program, metric, by, seconds });
        seconds
    }

    /// Medians of interleaved runs: native, grind, Valgrind. With a name of the program and of what is measured, every time is
    /// noted.
    fn times(
        &self,
        of: Option<(&'static str, &'static str)>,
        words: &[String],
        repeats: u32,
        valgrind: u32,
    ) -> Result<(f64, f64, Option<f64>)> {
        let note = |by, time| of.map_or(time, |(program, metric)| self.noted(program, metric, by, time));
        let (mut native, mut grind, mut reference) = (Vec::new(), Vec::new(), Vec::new());
        // One run that does not count fills the page cache.
        seconds(words, &self.dir)?;
        for round in 0..repeats.max(valgrind) {
            if round < repeats {
                native.push(note("native", seconds(words, &self.dir)?));
                grind.push(note("grind", seconds(&Ways::under(&self.grind, words), &self.dir)?));
            }
            if let Some(v) = self.valgrind.as_ref().filter(|_| round < valgrind) {
                reference.push(note("valgrind", seconds(&Ways::under(v, words), &self.dir)?));
            }
        }
        Ok((median(&native), median(&grind), Some(median(&reference)).filter(|_| !reference.is_empty())))
    }
}

fn grind(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().with_context(|| path.display().to_string());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let built =
        Command::new(cargo).args(["build", "--quiet", "--release", "-p", "grind"]).current_dir(root).status()?;
    ensure!(built.success(), "`cargo build --release -p grind` failed");
    let exe = std::env::current_exe()?;
    let target = exe.parent().and_then(Path::parent).context("the target folder")?;
    target.join("release/grind").canonicalize().context("target/release/grind is missing")
}

fn main() -> Result<()> {
    let options = Options::parse();
    let work = tempfile::tempdir()?;
    let dir = work.path().to_owned();
    let tool = options.tool.as_str();
    let profile = |name: &str| format!("--{tool}-out-file={}/{name}.%p", dir.display());
    let own = vec![
        grind(options.grind.as_deref())?.display().to_string(),
        "-q".into(),
        format!("--tool={tool}"),
        profile("grind"),
    ];
    let valgrind = (options.valgrind > 0).then(|| {
        let words = ["valgrind", "-q", "--cache-sim=no", "--vex-guest-chase=no"];
        words.iter().map(|w| (*w).to_owned()).chain([format!("--tool={tool}"), profile("valgrind")]).collect()
    });
    let ways = Ways { grind: own, valgrind, dir: dir.clone(), times: RefCell::default() };
    let wanted = |name: &str| options.names.is_empty() || options.names.iter().any(|n| n == name);
    let set = set::prepare(&dir, wanted)?;
    ensure!(!set.is_empty(), "no program of the set is called {:?}", options.names);

    let failed = measure_all(&ways, &set, &options)?;
    if let Some(folder) = &options.record {
        record::write(folder, &ways.times.borrow(), options.valgrind > 0)?;
    }
    ensure!(failed == 0, "{failed} programs failed");
    Ok(())
}

/// All tables that are wanted; returns how many programs failed.
fn measure_all(ways: &Ways, set: &[set::Program], options: &Options) -> Result<usize> {
    if options.only_cacheuse {
        return cacheuse::table(ways, set, options.repeats, options.valgrind);
    }
    if options.only_simulation {
        return simulation::tables(ways, set, options.repeats, options.valgrind);
    }
    let mut failed = counting(ways, set, options);
    if !options.table_only && !options.no_simulation {
        failed += simulation::tables(ways, set, options.repeats, options.valgrind)?;
        failed += cacheuse::table(ways, set, options.repeats, options.valgrind)?;
    }
    if !options.table_only {
        growth::start_up(ways, options.repeats, options.valgrind)?;
        if !options.no_memory {
            memory(ways, set)?;
        }
        growth::cold_hot_threads(ways, options.repeats)?;
    }
    Ok(failed)
}

/// The table of programs without simulation; returns how many failed.
fn counting(ways: &Ways, set: &[set::Program], options: &Options) -> usize {
    println!(
        "{:<16} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "program", "native s", "grind s", "slowdown", "valgrind", "slowdown"
    );
    let (mut own_ratios, mut reference_ratios) = (Vec::new(), Vec::new());
    let mut failed = 0;
    let metric = if options.tool == "callgrind" { "calls" } else { "count" };
    for program in set {
        match ways.times(Some((program.name, metric)), &program.words, options.repeats, options.valgrind) {
            Ok((native, grind, reference)) => {
                let (time, ratio) = match reference {
                    Some(t) => (format!("{t:.3}"), format!("{:.2}", t / native)),
                    None => ("-".into(), "-".into()),
                };
                println!(
                    "{:<16} {native:>9.3} {grind:>9.3} {:>9.2} {time:>9} {ratio:>9}",
                    program.name,
                    grind / native
                );
                if program.in_mean {
                    own_ratios.push(grind / native);
                    reference_ratios.extend(reference.map(|t| t / native));
                }
            }
            Err(e) => {
                failed += 1;
                println!("{:<16} failed: {e:#}", program.name);
            }
        }
    }
    let label = "geometric mean of the single-threaded, compiled or interpreted ones";
    println!("{label}: grind {}, Valgrind {}", mean(&own_ratios), mean(&reference_ratios));
    failed
}

/// The geometric mean, as text.
fn mean(ratios: &[f64]) -> String {
    match ratios.len() {
        0 => "-".to_owned(),
        n => format!("{:.2}", (ratios.iter().map(|x| x.ln()).sum::<f64>() / n as f64).exp()),
    }
}

fn memory(ways: &Ways, set: &[set::Program]) -> Result<()> {
    println!("\npeak memory, MiB, of all processes (shared pages counted once); added: over native");
    println!("{:<16} {:>9} {:>9} {:>9} {:>9} {:>9}", "program", "native", "grind", "added", "valgrind", "added");
    for program in set {
        let native = peak_mib(&program.words, &ways.dir)?;
        let show = |profiler: &[String]| match peak_mib(&Ways::under(profiler, &program.words), &ways.dir) {
            Ok(m) => format!("{m:>9.1} {:>9.1}", m - native),
            Err(_) => format!("{:>9} {:>9}", "failed", "-"),
        };
        let own = show(&ways.grind);
        let reference = ways.valgrind.as_deref().map_or_else(|| format!("{:>9} {:>9}", "-", "-"), show);
        println!("{:<16} {native:>9.1} {own} {reference}", program.name);
    }
    Ok(())
}
