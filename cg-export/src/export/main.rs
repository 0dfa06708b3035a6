//! `cg_export`: writes profiles in the formats of other programs.
//!
//! Numbers are never changed: whatever the format, the self cost of each function is that of the profile. Stacks are exact
//! where contexts were recorded; what is estimated is only written on request, and marked.
#![forbid(unsafe_code)]

mod estimate;
mod graph;
mod graphs;
mod load;
mod options;
mod pprof;
mod stacks;
#[cfg(feature = "parquet")]
mod store;
mod viewers;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use cg_cli::progress::{Counter, Progress};
use cg_cli::{exit, load as inputs, options as cli};
use cg_format::atomic::write_file;
use clap::CommandFactory;
use clap::error::ErrorKind;

use graph::Graph;
use load::Input;
use options::{Format, Options};
use stacks::{Kind, Stacks};

fn main() -> ExitCode {
    let options: Options = match cli::parse(Options::command(), std::env::args_os()) {
        Ok(options) => options,
        Err(code) => return code,
    };
    if let Some(message) = options.conflict() {
        let _ = Options::command().error(ErrorKind::ArgumentConflict, message).print();
        return ExitCode::from(exit::USAGE);
    }
    exit::finish("cg_export", run(&options))
}

fn run(options: &Options) -> anyhow::Result<u8> {
    inputs::check_stdin(&options.files)?;
    let progress = Progress::start("cg_export");
    if options.format == Format::Parquet {
        store(options, &progress.counter)?;
        return Ok(exit::SUCCESS);
    }
    let read = |path| Input::read(path, &progress.counter);
    let inputs: Vec<Input> = options.files.iter().map(|path| read(path)).collect::<anyhow::Result<_>>()?;
    drop(progress);
    let input = inputs.first().context("no profile is named")?;
    let stacks = || -> anyhow::Result<Stacks> {
        let stacks = Stacks::new(input, options.stacks).with_context(|| input.name.clone())?;
        if stacks.kind == Kind::Flat && options.stacks.is_none() && !input.arcs.is_empty() {
            let _ = writeln!(
                io::stderr(),
                "cg_export: note: {}: no contexts were recorded, so functions stand without stacks; --stacks=estimated \
                 shares costs out along the call graph, grind --separate-callers=all records them",
                input.name
            );
        }
        Ok(stacks)
    };
    let graph = || Graph::new(input).with_context(|| input.name.clone());
    match options.format {
        Format::Pprof => {
            if options.stacks == Some(Kind::Estimated) {
                input.refuse_negative("an estimate")?;
            }
            let stacks = stacks()?;
            if options.output.is_none() && io::stdout().is_terminal() {
                bail!("pprof is no text: write it to a file (-o FILE) or into a pipe");
            }
            output(options, |out| pprof::write(out, input, &stacks))
        }
        Format::Speedscope => {
            input.refuse_negative("speedscope")?;
            let stacks = stacks()?;
            output(options, |out| viewers::speedscope(out, input, &stacks))
        }
        Format::Folded => {
            input.refuse_negative("the folded format")?;
            let event = input.event(options.event.as_deref())?;
            let stacks = stacks()?;
            output(options, |out| viewers::folded(out, &stacks, event))
        }
        Format::Firefox => {
            input.refuse_negative("the Firefox Profiler")?;
            let stacks = stacks()?;
            output(options, |out| viewers::firefox(out, input, &stacks))
        }
        Format::Chrome => {
            inputs.iter().try_for_each(|input| input.refuse_negative("a trace"))?;
            output(options, |out| graphs::chrome(out, &inputs))
        }
        Format::Dot => {
            let event = input.event(options.event.as_deref())?;
            let graph = graph()?;
            output(options, |out| graphs::dot(out, input, &graph, event, options.threshold.unwrap_or(0.5)))
        }
        Format::Json => {
            let graph = graph()?;
            output(options, |out| graphs::json(out, input, &graph))
        }
        Format::Parquet => bail!("parquet has no single output"),
    }?;
    Ok(exit::SUCCESS)
}

/// Writes to the file that was named, all or nothing, or to standard output.
fn output(options: &Options, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    match &options.output {
        Some(path) => write_file(path, 0o666, |out| write(out))?,
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            write(&mut out).and_then(|()| out.flush()).context("standard output")?;
        }
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn store(options: &Options, counter: &Arc<Counter>) -> anyhow::Result<()> {
    store::write(options, counter)
}

#[cfg(not(feature = "parquet"))]
fn store(_options: &Options, _counter: &Arc<Counter>) -> anyhow::Result<()> {
    bail!("this cg_export was built without the feature `parquet`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
