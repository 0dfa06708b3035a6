//! `cg_annotate`: prints cachegrind profiles.
//!
//! The text report equals the reference's byte for byte, as scripts parse it. The program never writes a file and never
//! changes one; what it cannot read it names.
#![forbid(unsafe_code)]

mod by_context;
mod columns;
mod counts;
mod grown;
mod growth;
mod json;
mod load;
mod markdown;
mod model;
mod options;
mod source;
mod style;
mod text;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::Context;
use cg_cli::by_process::{Question, Report};
use cg_cli::color::Palette;
use cg_cli::progress::Progress;
use cg_cli::{exit, newest, options as cli};
use clap::CommandFactory;

use options::Options;
use style::Style;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let mut options: Options = match cli::parse(Options::command(), args.iter().cloned()) {
        Ok(options) => options,
        Err(code) => return code,
    };
    if options.diff && options.files.len() != 2 {
        return cli::usage_error(Options::command(), "argument --diff: requires exactly two Cachegrind output files");
    }
    if options.files.is_empty() {
        let Some(newest) = newest::profile(newest::CACHEGRIND) else {
            let other = newest::profile(newest::CALLGRIND)
                .map(|name| format!("; callgrind_annotate reads '{}'", name.display()));
            let text = format!(
                "no profile is named, and there is no {}* here: `grind PROGRAM` makes one{}",
                newest::CACHEGRIND,
                other.unwrap_or_default()
            );
            return cli::usage_error(Options::command(), &text);
        };
        // Nobody may be there to read it.
        let _ =
            writeln!(io::stderr(), "cg_annotate: no profile is named: this is '{}', the newest here", newest.display());
        options.files.push(newest);
    }
    exit::finish("cg_annotate", run(&options, &args))
}

fn run(options: &Options, args: &[OsString]) -> anyhow::Result<u8> {
    let invocation = args.iter().map(|arg| arg.as_bytes()).collect::<Vec<_>>().join(&b' ');
    if options.by_process {
        return by_process(options);
    }
    if options.by_context {
        return by_context::run(options, &invocation).map(|()| exit::SUCCESS);
    }
    let mut model = load::model(options)?;
    model.select(options.show.as_deref(), options.sort.as_deref(), options.threshold)?;
    let verdicts = model.verdicts(&options.fail_above)?;
    let of_functions = match &model.pair {
        Some(pair) => growth::verdicts(&model, pair, &options.fail_above_function, options.threshold)?,
        None => Vec::new(),
    };
    let style = Style {
        invocation,
        threshold: options.threshold,
        percentages: options.percentages(),
        annotate: options.annotates(),
        context: options.context,
        growth: options.shows_growth(),
        palette: Palette::for_stdout(options.color),
    };
    // The gate decides even if nobody reads the report to its end.
    let printed = print(options, &model, &style, &verdicts, &of_functions);
    let mut failed = false;
    for verdict in verdicts.iter().filter(|verdict| verdict.failed) {
        failed = true;
        let _ = writeln!(io::stderr(), "cg_annotate: {}", text::verdict_line(verdict));
    }
    for line in of_functions.iter().flat_map(grown::verdict_lines) {
        failed = true;
        let _ = writeln!(io::stderr(), "cg_annotate: {line}");
    }
    drop((verdicts, of_functions));
    // The process ends: giving millions of small pieces back one by one would take longer than the report.
    std::mem::forget(model);
    match printed {
        Err(error) if failed && exit::is_broken_pipe(&error) => Ok(exit::GATE),
        Err(error) => Err(error),
        Ok(()) => Ok(if failed { exit::GATE } else { exit::SUCCESS }),
    }
}

fn by_process(options: &Options) -> anyhow::Result<u8> {
    cg_cli::load::check_stdin(&options.files)?;
    let progress = Progress::start("cg_annotate");
    let question = Question {
        fold: (options.fold || !options.fold_by.is_empty()).then_some(&options.fold_by),
        show: options.show.as_deref(),
        sort: options.sort.as_deref(),
        threshold: options.threshold,
    };
    let report = Report::read(&options.files, question, &progress.counter)?;
    drop(progress);
    let text = if options.json { report.json() } else { report.text() };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")?;
    Ok(exit::SUCCESS)
}

fn print(
    options: &Options,
    model: &model::Model,
    style: &Style,
    verdicts: &[model::Verdict<'_>],
    of_functions: &[growth::FunctionVerdict<'_>],
) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 14, io::stdout().lock());
    if options.json {
        out.write_all(json::report(model, style, verdicts, of_functions)?.as_bytes()).context("standard output")?;
    } else if options.github_summary {
        out.write_all(markdown::report(model, verdicts, of_functions)?.as_bytes()).context("standard output")?;
    } else {
        text::print(&mut out, model, style).context("cannot print the report")?;
    }
    out.flush().context("standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
