//! The plain driver: runs a target on its kept inputs and on mutations of them, for as long as it is told.
//!
//! It needs nothing but stable Rust, and knows nothing of coverage: libFuzzer finds new inputs, this one repeats and
//! varies them. It ends with 0 only if no input made the target panic, hang or take too much memory. The runs are done by
//! a process of its own, so that an input that kills it is found out, too.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use grind_fuzz::Target;
use grind_fuzz::limits::{Fault, Spent, processor_time};
use grind_fuzz::mutate::{Random, mutate};
use grind_fuzz::watch::{self, Watch};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Run a fuzz target on inputs at random.
#[derive(Debug, Parser)]
#[command(name = "fuzz")]
struct Options {
    /// For how long, in processor time of the runs
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,

    /// Start of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Inputs to start from beside the kept ones; an input to run, and no other, if it is a file
    #[arg(long, value_name = "PATH")]
    corpus: Option<PathBuf>,

    /// Where inputs with faults are kept
    #[arg(long, value_name = "FOLDER", default_value = "fuzz-faults")]
    faults: PathBuf,

    /// This is the process that runs them: standard input is the file for the running one
    #[arg(long, hide = true)]
    runs: bool,

    /// The target: the name of a folder of `fuzz/corpus`
    target: String,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match grind_fuzz::target(&options.target) {
        None => Err(anyhow::anyhow!("no target `{}`", options.target)),
        Some(target) if options.runs => run(&options, target),
        Some(target) => start(&options, target),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the process that runs the inputs; what it died of is kept.
fn start(options: &Options, target: &Target) -> anyhow::Result<ExitCode> {
    let cell = File::from(memfd_create("input", MFdFlags::empty()).context("a file in memory")?);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).arg("--runs").stdin(Stdio::from(cell.try_clone()?));
    let status = command.status().context("the process that runs the inputs")?;
    if status.code().is_some() {
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let input = watch::left(&cell).context("the input that was running")?;
    bail!("{}: {status}: {}", target.name, watch::kept(&options.faults, target, Fault::Crash, &input));
}

fn run(options: &Options, target: &'static Target) -> anyhow::Result<ExitCode> {
    let cell = File::options().write(true).open("/proc/self/fd/0").context("standard input is no file")?;
    let watch = Watch::new(target, &options.faults, Some(cell));
    let mut most = Most::default();
    if let Some(file) = options.corpus.as_ref().filter(|path| path.is_file()) {
        most.run(&watch, target, &fs::read(file)?)?;
        println!("{}: {most}", target.name);
        return Ok(ExitCode::SUCCESS);
    }
    let kept = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).join(target.name);
    let mut corpus = Vec::new();
    for folder in [Some(&kept), options.corpus.as_ref()].into_iter().flatten() {
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            corpus.push(fs::read(entry?.path())?);
        }
    }
    // A folder has no order of its own, and the run shall depend on the seed alone.
    corpus.sort();
    let (start, clock) = (processor_time(), Instant::now());
    corpus.iter().try_for_each(|input| most.run(&watch, target, input))?;
    let mut random = Random::new(options.seed);
    let end = start + Duration::from_secs(options.seconds);
    while processor_time() < end {
        most.run(&watch, target, &mutate(&mut random, &corpus, target))?;
    }
    let (time, clock) = ((processor_time() - start).as_secs(), clock.elapsed().as_secs());
    println!("{}: {most}; {time} s of processor time, {clock} s by the clock, no fault", target.name);
    Ok(ExitCode::SUCCESS)
}

/// How many inputs ran, and the most that any of them took.
#[derive(Default)]
struct Most {
    inputs: u64,
    time: Duration,
    /// Bytes beyond what is allowed to every input, and the length of the input.
    memory: (usize, usize),
}

impl Most {
    fn run(&mut self, watch: &Watch, target: &Target, input: &[u8]) -> anyhow::Result<()> {
        let Spent { time, memory } = watch.run(input).map_err(anyhow::Error::msg)?;
        self.inputs += 1;
        self.time = self.time.max(time);
        let beyond = memory.saturating_sub(target.overhead);
        if beyond * self.memory.1.max(1) >= self.memory.0 * input.len().max(1) {
            self.memory = (beyond, input.len());
        }
        Ok(())
    }
}

impl std::fmt::Display for Most {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (beyond, length) = self.memory;
        let times = beyond as f64 / length.max(1) as f64;
        write!(f, "{} inputs, at most {} ms and {times:.1} times the input", self.inputs, self.time.as_millis())
    }
}
