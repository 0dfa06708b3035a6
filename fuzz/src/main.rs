//! The plain driver: runs a target on its kept inputs and on mutations of them, for as long as it is told.
//!
//! It needs nothing but stable Rust, and knows nothing of coverage: libFuzzer finds new inputs, this one repeats and
//! varies them. It ends with 0 only if no input made the target panic, hang or take too much memory.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use grind_fuzz::mutate::{Random, mutate};
use grind_fuzz::watch::Watch;

/// Run a fuzz target on inputs at random.
#[derive(Debug, Parser)]
#[command(name = "fuzz")]
struct Options {
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,

    /// Start of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Inputs to start from instead of the kept ones
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,

    /// Where inputs with faults are kept
    #[arg(long, value_name = "FOLDER", default_value = "fuzz-faults")]
    faults: PathBuf,

    /// reader or substitution
    target: String,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> anyhow::Result<()> {
    let target = grind_fuzz::target(&options.target).with_context(|| format!("no target `{}`", options.target))?;
    let folder = match &options.corpus {
        Some(folder) => folder.clone(),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).join(target.name),
    };
    let mut corpus = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        corpus.push(fs::read(entry?.path())?);
    }
    // A folder has no order of its own, and the run shall depend on the seed alone.
    corpus.sort();
    let watch = Watch::new(target, &options.faults);
    corpus.iter().try_for_each(|input| watch.run(input)).map_err(anyhow::Error::msg)?;
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut random = Random::new(options.seed);
    let mut runs = corpus.len();
    while Instant::now() < end {
        watch.run(&mutate(&mut random, &corpus, target.words)).map_err(anyhow::Error::msg)?;
        runs += 1;
    }
    println!("{}: {runs} inputs in {} s: no crash, no hang, no excess of memory", target.name, options.seconds);
    Ok(())
}
