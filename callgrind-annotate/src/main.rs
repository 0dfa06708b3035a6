//! `callgrind_annotate`: prints callgrind profiles.
//!
//! The text report has the reference's layout, as scripts parse it. The program never writes a file and never changes
//! one; what it cannot read it names.
#![forbid(unsafe_code)]

mod columns;
mod json;
mod model;
mod options;
mod source;
mod text;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use cg_cli::by_process::{Question, Report};
use cg_cli::color::Palette;
use cg_cli::progress::Progress;
use cg_cli::{exit, input, options as cli};
use cg_format::callgrind::Outcome;
use clap::CommandFactory;

use cg_model::{Collector, Rules};
use model::Model;
use options::Options;
use text::Style;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let options: Options = match cli::parse(Options::command(), args) {
        Ok(options) => options,
        Err(code) => return code,
    };
    exit::finish("callgrind_annotate", run(&options))
}

fn run(options: &Options) -> anyhow::Result<u8> {
    source::check_folders(&options.include)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let file = match &options.file {
        Some(file) => file.clone(),
        None => {
            let file = default_file()?;
            if !options.json {
                writeln!(out, "Reading data from '{}'...", file.display())?;
            }
            file
        }
    };
    if options.by_process {
        let text = by_process(options, &file)?;
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")?;
        return Ok(exit::SUCCESS);
    }
    let here = model::here();
    let rules = Rules { cycles: options.cycles(), here: here.as_deref() };
    let profile = load(&file, options.annotates() || !options.sources.is_empty(), rules)?;
    let mut model = Model::new(profile, options.inclusive());
    model.select(options.show.as_deref(), options.sort.as_deref(), options.threshold)?;
    let style = Style {
        percentages: options.percentages(),
        tree: options.tree,
        auto: options.annotates(),
        context: options.context,
        folders: options.include.clone(),
        wanted: options.sources.iter().map(|name| name.as_bytes().to_vec()).collect(),
        palette: Palette::for_stdout(options.color),
    };
    let table = model.table();
    let shown = model.shown(&table);
    let sources =
        source::find(&model, &table[..shown], style.auto, &style.wanted, &style.folders, &options.map_source)?;
    if options.json {
        let report = json::report(&model, &style, &table[..shown], &sources);
        out.write_all(report.as_bytes()).context("standard output")?;
    } else {
        text::print(&mut out, &model, &style, &table, shown, &sources).context("cannot print the report")?;
    }
    out.flush().context("standard output")?;
    drop(sources);
    // The process ends: giving millions of small pieces back one by one would take longer than the report.
    std::mem::forget(model);
    Ok(exit::SUCCESS)
}

fn by_process(options: &Options, file: &OsString) -> anyhow::Result<String> {
    let progress = Progress::start("callgrind_annotate");
    let question = Question {
        fold: (options.fold || !options.fold_by.is_empty()).then_some(&options.fold_by),
        show: options.show.as_deref(),
        sort: options.sort.as_deref(),
        threshold: 100.0 - options.threshold,
    };
    let report = Report::read(std::slice::from_ref(file), question, &progress.counter)?;
    Ok(if options.json { report.json() } else { report.text() })
}

fn load(file: &OsStr, by_line: bool, rules: Rules<'_>) -> anyhow::Result<cg_model::Model> {
    let name = input::name(file);
    let progress = Progress::start("callgrind_annotate");
    let opened = input::open_profile(file, &progress.counter);
    let opened = opened.map_err(|why| anyhow!("File {name} not opened: {why}"))?;
    let mut collected = Collector::new(by_line);
    let outcome = cg_format::callgrind::read(opened, &name, &mut collected)?;
    drop(progress);
    if outcome.unnamed > 0 {
        let text = format!(
            "{name}: a number stands for a name that the profile does not have ({} times): it is shown as (NUMBER) or ???",
            outcome.unnamed
        );
        // Nobody may be there to read it.
        let _ = writeln!(io::stderr(), "callgrind_annotate: warning: {text}");
    }
    let Outcome { header, parts, names, .. } = outcome;
    Ok(cg_model::Model::new(name, header, parts, &names, collected, rules)?)
}

/// The first profile of the current folder, by name.
fn default_file() -> anyhow::Result<OsString> {
    let mut names: Vec<OsString> = fs::read_dir(".")
        .context("the current folder")?
        .filter_map(|entry| entry.ok().map(|entry| entry.file_name()))
        .collect();
    names.sort();
    for prefix in [&b"callgrind.out"[..], b"cachegrind.out"] {
        if let Some(name) = names.iter().find(|name| name.as_bytes().starts_with(prefix)) {
            return Ok(name.clone());
        }
    }
    bail!("no profile is named, and there is no callgrind.out* or cachegrind.out* here");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
