//! `cg_merge`: adds cachegrind profiles up into one.
//!
//! Files, functions and lines keep the order in which they first came; `desc:` and `cmd:` are the first input's. An
//! output file appears whole or not at all. Whether an input has `desc:` lines makes no difference.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use cg_cli::progress::Progress;
use cg_cli::{exit, input, load, options as cli};
use cg_format::atomic::write_file;
use cg_format::cachegrind::{ReadOptions, Summary, SummaryRule, write_stored};
use clap::{CommandFactory, Parser};

/// Add profiles up into one, line by line.
#[derive(Debug, Parser)]
#[command(name = "cg_merge", version, infer_long_args = true, max_term_width = 100)]
struct Options {
    /// Write to FILE, all or nothing, instead of standard output
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Profiles to add up; - is standard input; .gz, .xz and .zst are read as they are
    #[arg(required = true, value_name = "cachegrind-out-file")]
    files: Vec<OsString>,
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
    // The reference does not look at the summary; a merged profile gets a right one in any case.
    let read = ReadOptions { summary: SummaryRule::Ignored, ..ReadOptions::default() };
    let loaded = load::sum(&options.files, &read, &progress.counter)?;
    drop(progress);
    for (file, summary) in options.files.iter().zip(&loaded.summaries) {
        let cause = match summary {
            Summary::Right => continue,
            Summary::Missing => "missing `summary:` line: the profile may be cut short",
            Summary::Wrong => "`summary:` line doesn't match computed total",
        };
        let _ = writeln!(io::stderr(), "cg_merge: warning: {}: {cause}", input::name(file));
    }
    match &options.output {
        Some(path) => write_file(path, 0o666, |out| write_stored(out, &loaded.profile))?,
        None => {
            let mut out = io::stdout().lock();
            write_stored(&mut out, &loaded.profile).and_then(|()| out.flush()).context("standard output")?;
        }
    }
    // The process ends: giving millions of small pieces back one by one would take longer than reading them.
    std::mem::forget(loaded);
    Ok(exit::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_definition_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn manual_and_completions_are_up_to_date() {
        let man = Path::new(env!("CARGO_MANIFEST_DIR")).join("../man");
        let narrative = include_str!("narrative.roff");
        let wrong = cg_cli::manual::check(&man, &Options::command(), narrative).unwrap();
        assert!(wrong.is_empty(), "run the tests with BLESS=1 to write {wrong:?}");
    }
}
