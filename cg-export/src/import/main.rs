//! `cg_import`: makes callgrind profiles of what other programs measured.
//!
//! Costs are taken as they are. What the other program does not know, such as numbers of calls, is 0 or left out and never
//! made up.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use cg_cli::progress::Progress;
use cg_cli::{exit, input, options as cli};
use cg_exchange::measured::Measured;
use cg_exchange::read;
use cg_format::atomic::write_file;
use cg_format::callgrind::{WriteOptions, Writer};
use clap::{CommandFactory, Parser, ValueEnum};

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// By what the file looks like
    Auto,
    /// The output of `perf script`
    Perf,
    /// profile.proto, as pprof, Go and many others write it
    Pprof,
    /// Folded stacks, one a line
    Folded,
    /// Places in objects, one a line: `lib.so+0x1a2b 12`
    Offsets,
}

/// Make a callgrind profile of what another program measured.
#[derive(Debug, Parser)]
#[command(name = "cg_import", version, infer_long_args = true, max_term_width = 100)]
struct Options {
    /// What the file is
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "auto")]
    format: Format,

    /// Write to FILE, all or nothing, instead of standard output
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Take only these events, in this order; for folded stacks and offsets the name of what they count [default: all; samples]
    #[arg(long, value_name = "A,B,C")]
    events: Option<String>,

    /// Keep so many callers of each function in its name, as grind does; `all` keeps whole stacks
    #[arg(long, value_name = "N", default_value = "0", value_parser = callers)]
    separate_callers: usize,

    /// What was measured; - is standard input; .gz, .xz and .zst are read as they are
    #[arg(value_name = "FILE")]
    file: OsString,
}

fn callers(text: &str) -> Result<usize, String> {
    if text == "all" {
        return Ok(usize::MAX);
    }
    text.parse().map_err(|_| "a number of callers, or `all`".to_owned())
}

fn main() -> ExitCode {
    match cli::parse(Options::command(), std::env::args_os()) {
        Ok(options) => exit::finish("cg_import", run(&options)),
        Err(code) => code,
    }
}

fn run(options: &Options) -> anyhow::Result<u8> {
    let name = input::name(&options.file);
    let progress = Progress::start("cg_import");
    let mut bytes = Vec::new();
    let mut opened = input::open(&options.file, &progress.counter).with_context(|| name.clone())?;
    opened.read_to_end(&mut bytes).with_context(|| name.clone())?;
    drop(progress);
    let profile = import(options, &bytes).with_context(|| name.clone())?;
    let mut writer = Writer::new(WriteOptions::default());
    match &options.output {
        Some(path) => write_file(path, 0o666, |out| writer.profile(out, &profile))?,
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            writer.profile(&mut out, &profile).and_then(|()| out.flush()).context("standard output")?;
        }
    }
    Ok(exit::SUCCESS)
}

fn import(options: &Options, bytes: &[u8]) -> anyhow::Result<cg_format::callgrind::Profile> {
    let format = match (options.format, read::kind(bytes)) {
        (Format::Auto, read::Kind::Perf) => Format::Perf,
        (Format::Auto, read::Kind::Folded) => Format::Folded,
        (Format::Auto, read::Kind::Pprof) => Format::Pprof,
        (Format::Auto, read::Kind::Offsets) => Format::Offsets,
        (format, _) => format,
    };
    let events = options.events.as_deref();
    let (name, measured) = match format {
        Format::Perf => ("perf script", select(read::perf(bytes)?, events)?),
        Format::Folded => ("folded stacks", read::folded(bytes, events.unwrap_or("samples"))?),
        Format::Offsets => ("places in objects", read::offsets(bytes, events.unwrap_or("samples"))?),
        Format::Auto | Format::Pprof => ("pprof", select(read::pprof(bytes)?, events)?),
    };
    if measured.stacks.is_empty() {
        bail!("there is no sample in it");
    }
    measured.profile(name, options.separate_callers).map_err(|_| anyhow!("a sum of costs is larger than 64 bits hold"))
}

/// Keeps the events that are wanted.
fn select(mut measured: Measured, wanted: Option<&str>) -> anyhow::Result<Measured> {
    if let Some(wanted) = wanted {
        measured.select(cli::comma_list(wanted)).context("--events")?;
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
