//! `cg_merge`: adds cachegrind profiles up into one.
//!
//! Files, functions and lines keep the order in which they first came; `desc:` and `cmd:` are the first input's. An
//! output file appears whole or not at all. Whether an input has `desc:` lines makes no difference.
#![forbid(unsafe_code)]

mod by_rank;
mod reduce;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cg_cli::load::Loaded;
use cg_cli::processes::{self, Reading};
use cg_cli::progress::{Counter, Progress};
use cg_cli::substitute::Substitution;
use cg_cli::{exit, input, load, options as cli};
use cg_format::atomic::write_file;
use cg_format::cachegrind::{Detail, Profile, ReadOptions, Summary, SummaryRule, read_more, write_stored};
use clap::{CommandFactory, Parser};

use by_rank::{Question, Report};
use reduce::{Place, Sums};

/// Add profiles up into one, line by line.
#[derive(Debug, Parser)]
#[command(name = "cg_merge", version, infer_long_args = true, max_term_width = 100)]
struct Options {
    /// Write to FILE, all or nothing, instead of standard output
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Under a launcher (mpirun, srun): add up together with the other processes, of which each takes a share of the files, or
    /// those that have its rank in their names for %r; FILE must be seen by all
    #[arg(long, requires = "output", conflicts_with_all = ["by_rank", "by_process"])]
    reduce: bool,

    /// With --reduce: what tells this start from others, where the launcher does not say
    #[arg(long, value_name = "NAME", requires = "reduce")]
    job: Option<String>,

    /// With --reduce: how long to wait for another process
    #[arg(long, value_name = "SECONDS", requires = "reduce", default_value_t = 3600)]
    patience: u64,

    /// Instead of the sum, print how evenly the ranks of a parallel program share each function
    #[arg(long)]
    by_rank: bool,

    /// Merge trees of processes (`grind --tree=FILE`) into one: with --fold, processes that run the same command under the same
    /// parent become one
    #[arg(long, conflicts_with = "by_rank")]
    by_process: bool,

    /// With --by-process: make processes one that run the same command
    #[arg(long, requires = "by_process")]
    fold: bool,

    /// The same, commands being the same after s/OLD/NEW/; may be repeated
    #[arg(long, value_name = "REGEX", requires = "by_process", value_parser = Substitution::parse)]
    fold_by: Vec<Substitution>,

    /// With --by-rank: make the rank of a profile from its name by s/OLD/NEW/
    #[arg(long, value_name = "REGEX", requires = "by_rank", value_parser = Substitution::parse)]
    rank: Option<Substitution>,

    /// With --by-rank: the event to look at [default: the first]
    #[arg(long, value_name = "EVENT", requires = "by_rank")]
    event: Option<String>,

    /// With --by-rank: show functions with at least this percentage of the total [default: 0.1]
    #[arg(long, value_name = "N", requires = "by_rank", value_parser = percentage)]
    threshold: Option<f64>,

    /// With --by-rank: print the table as JSON, for programs
    #[arg(long, requires = "by_rank")]
    json: bool,

    /// Profiles to add up; - is standard input; .gz, .xz and .zst are read as they are
    #[arg(required = true, value_name = "cachegrind-out-file")]
    files: Vec<OsString>,
}

fn percentage(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| "a percentage is a number from 0 to 100".to_owned())
}

fn main() -> ExitCode {
    match cli::parse(Options::command(), std::env::args_os()) {
        Ok(options) => exit::finish("cg_merge", run(&options)),
        Err(code) => code,
    }
}

fn run(options: &Options) -> anyhow::Result<u8> {
    load::check_stdin(&options.files)?;
    let progress = Progress::start("cg_merge");
    if options.by_rank {
        let threshold = options.threshold.unwrap_or(0.1);
        let question = Question { event: options.event.as_deref(), rule: options.rank.as_ref(), threshold };
        let report = Report::read(&options.files, question, &progress.counter)?;
        drop(progress);
        let text = if options.json { report.json() } else { report.text() };
        return write(options, |out| out.write_all(text.as_bytes()));
    }
    if options.by_process {
        let fold = (options.fold || !options.fold_by.is_empty()).then_some(&options.fold_by[..]);
        let forest =
            processes::read(&options.files, Reading { fold, detail: Detail::Lines, apart: true }, &progress.counter)?;
        drop(progress);
        return write(options, |out| forest.write(out));
    }
    if let (true, Some(output)) = (options.reduce, &options.output) {
        let place = Place::find(options.job.as_deref(), |name| std::env::var_os(name))?;
        let patience = Duration::from_secs(options.patience);
        reduce::run(&place, &options.files, output, patience, &mut Files { counter: &progress.counter })?;
        return Ok(exit::SUCCESS);
    }
    let loaded = sum(&options.files, &progress.counter)?;
    drop(progress);
    let code = write(options, |out| write_stored(out, &loaded.profile))?;
    // The process ends: giving millions of small pieces back one by one would take longer than reading them.
    std::mem::forget(loaded);
    Ok(code)
}

/// Reads and adds up, and warns of what looks cut short.
fn sum(files: &[OsString], counter: &Arc<Counter>) -> anyhow::Result<Loaded> {
    // The reference does not look at the summary; a merged profile gets a right one in any case.
    let read = ReadOptions { summary: SummaryRule::Ignored, ..ReadOptions::default() };
    let loaded = load::sum(files, &read, counter)?;
    for (file, summary) in files.iter().zip(&loaded.summaries) {
        let cause = match summary {
            Summary::Right => continue,
            Summary::Missing => "missing `summary:` line: the profile may be cut short",
            Summary::Wrong => "`summary:` line doesn't match computed total",
        };
        let _ = writeln!(io::stderr(), "cg_merge: warning: {}: {cause}", input::name(file));
    }
    Ok(loaded)
}

/// Sums of profiles that travel as files.
struct Files<'a> {
    counter: &'a Arc<Counter>,
}

impl Sums for Files<'_> {
    type Sum = Profile;

    fn read(&mut self, files: &[OsString]) -> anyhow::Result<Option<Profile>> {
        if files.is_empty() { Ok(None) } else { Ok(Some(sum(files, self.counter)?.profile)) }
    }

    fn join(&mut self, mut sum: Option<Profile>, more: &Path) -> anyhow::Result<Option<Profile>> {
        if more.metadata().is_ok_and(|meta| meta.len() == 0) {
            // That one had nothing to add up.
            return Ok(sum);
        }
        let name = more.display().to_string();
        let input = input::open(more.as_os_str(), self.counter).with_context(|| name.clone())?;
        read_more(&mut sum, input, &name, &ReadOptions::default())?;
        Ok(sum)
    }

    fn write(&mut self, sum: Option<&Profile>, to: &Path) -> anyhow::Result<()> {
        let fill = |out: &mut dyn Write| sum.map_or(Ok(()), |sum| write_stored(out, sum));
        Ok(write_file(to, 0o666, fill)?)
    }
}

/// Writes to the file that was named, all or nothing, or to standard output.
fn write(options: &Options, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<u8> {
    match &options.output {
        Some(path) => write_file(path, 0o666, |out| fill(out))?,
        None => {
            let mut out = io::stdout().lock();
            fill(&mut out).and_then(|()| out.flush()).context("standard output")?;
        }
    }
    Ok(exit::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
