//! `mem_annotate`: shows which data objects of a program were missed, in which steps its instructions walked over them, what caches
//! of other sizes would miss, and which lines threads share.
//!
//! Reads what `grind --objects=yes`, `grind --reuse-dist=exact` and `grind --sharing=lines` write. The program never writes a file and never changes one; what it cannot read it names.
#![forbid(unsafe_code)]

mod json;
mod model;
mod options;
mod reuse;
mod sharing;
mod source;
mod text;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use cg_cli::progress::{Counter, Progress};
use cg_cli::{exit, input, load, newest, options as cli};
use cg_format::mem::Mem;
use clap::CommandFactory;

use model::Model;
use options::Options;
use source::Sources;
use text::Style;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let mut options: Options = match cli::parse(Options::command(), args.iter().cloned()) {
        Ok(options) => options,
        Err(code) => return code,
    };
    if options.files.is_empty() && !options.diff {
        let Some(newest) = newest::profile(newest::MEMORY) else {
            let text = format!(
                "no file is named, and there is no {}* here: `grind --cache-sim=yes --objects=yes PROGRAM` makes one",
                newest::MEMORY
            );
            return cli::usage_error(Options::command(), &text);
        };
        // Nobody may be there to read it.
        let _ =
            writeln!(io::stderr(), "mem_annotate: no file is named: this is '{}', the newest here", newest.display());
        options.files.push(newest);
    }
    if options.diff && options.files.len() != 2 {
        return cli::usage_error(Options::command(), "--diff takes two files");
    }
    exit::finish("mem_annotate", run(&options, &args))
}

fn run(options: &Options, args: &[OsString]) -> anyhow::Result<u8> {
    load::check_stdin(&options.files)?;
    let progress = Progress::start("mem_annotate");
    let mut files = options.files.iter().map(|path| read(path, &progress.counter));
    let before = if options.diff { files.next().transpose()? } else { None };
    let mut mem = files.next().transpose()?.context("no file is named")?;
    for (part, path) in files.zip(options.files.iter().skip(1)) {
        mem.add_part(part?).map_err(|differs| anyhow!("{}: {differs}", input::name(path)))?;
    }
    drop(progress);
    let mut model = Model::new(before, mem)?;
    model.select(options.show.as_deref(), options.sort.as_deref(), options.threshold)?;
    let style = Style {
        invocation: args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" "),
        files: options.files.iter().map(|path| input::name(path)).collect(),
        threshold: options.threshold,
        annotate: options.annotates(),
        context: options.context,
    };
    let mut sources = Sources::new(&options.map_source);
    let mut out = BufWriter::with_capacity(1 << 14, io::stdout().lock());
    if options.json {
        out.write_all(json::report(&model, &style, &mut sources).as_bytes()).context("standard output")?;
    } else {
        text::print(&mut out, &model, &style, &mut sources).context("cannot print the report")?;
    }
    out.flush().context("standard output")?;
    Ok(exit::SUCCESS)
}

fn read(path: &OsStr, counter: &Arc<Counter>) -> anyhow::Result<Mem> {
    let name = input::name(path);
    let from = input::open_profile(path, counter).map_err(|reason| anyhow!("{name}: {reason}"))?;
    Mem::read(&mut BufReader::new(from)).map_err(|error| {
        let hint = error.hint(&name, "; this is the profile of the objects: cg_annotate reads it");
        anyhow!("{name}: {error}{hint}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
