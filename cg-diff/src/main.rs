//! `cg_diff`: prints the difference of two cachegrind profiles, the second minus the first, as a profile.
//!
//! Lines are given up: the difference is by function, as line 0, since lines move between two versions of a program.
//! Every function of either profile is listed, also one without a change.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use cg_cli::json::Json;
use cg_cli::progress::Progress;
use cg_cli::rename::Renamer;
use cg_cli::substitute::Substitution;
use cg_cli::{exit, load, options as cli, paths};
use cg_format::cachegrind::{Detail, Profile, ReadOptions, write_functions};
use clap::{CommandFactory, Parser};

/// Print the difference of two profiles, the second minus the first, as a profile by function.
///
/// New scripts rather use cg_annotate --diff, which keeps lines and explains itself.
#[derive(Debug, Parser)]
#[command(name = "cg_diff", version, infer_long_args = true, max_term_width = 100)]
struct Options {
    /// Rename source files by s/OLD/NEW/, with flags g (all matches) and i (ignore case)
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, value_parser = substitution)]
    mod_filename: Option<Substitution>,

    /// Rename functions by s/OLD/NEW/, with flags g (all matches) and i (ignore case)
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, value_parser = substitution)]
    mod_funcname: Option<Substitution>,

    /// Rename source files so that those of two builds in different folders meet
    #[arg(long, conflicts_with = "mod_filename")]
    match_paths: bool,

    /// Print the difference as JSON, for programs
    #[arg(long)]
    json: bool,

    /// The profile before; - is standard input; .gz, .xz and .zst are read as they are
    #[arg(value_name = "cachegrind-out-file1")]
    before: OsString,

    /// The profile after
    #[arg(value_name = "cachegrind-out-file2")]
    after: OsString,
}

fn substitution(text: &str) -> Result<Substitution, String> {
    Substitution::parse(text).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    match cli::parse(Options::command(), std::env::args_os()) {
        Ok(options) => exit::finish("cg_diff", run(&options)),
        Err(code) => code,
    }
}

fn run(options: &Options) -> anyhow::Result<u8> {
    let names = [&options.before, &options.after];
    load::check_stdin(&names.map(Clone::clone))?;
    let read = ReadOptions { detail: Detail::Functions, ..ReadOptions::default() };
    let progress = Progress::start("cg_diff");
    let mut loaded = load::pair(names, &read, &progress.counter)?;
    drop(progress);
    let matching = match options.mod_filename {
        Some(_) => None,
        None => paths::matching("cg_diff", options.match_paths, [&loaded[0].profile, &loaded[1].profile])?,
    };
    let mut renamer = Renamer::new(options.mod_filename.as_ref().or(matching.as_ref()), options.mod_funcname.as_ref());
    for side in &mut loaded {
        renamer.rename(&mut side.profile)?;
    }
    load::subtract(&mut loaded, names)?;
    let [before, after] = loaded;
    let mut profile = before.profile;
    let [first, second] = names.map(|name| name.as_encoded_bytes());
    profile.header.desc = vec![[b"Files compared:   ", first, b"; ", second].concat()];
    profile.header.cmd = [&before.headers[0].cmd[..], b"; ", &after.headers[0].cmd].concat();
    let mut out = io::stdout().lock();
    if options.json {
        out.write_all(json(&profile, options).as_bytes()).context("standard output")?;
    } else {
        write_functions(&mut out, &profile).context("standard output")?;
    }
    out.flush().context("standard output")?;
    Ok(exit::SUCCESS)
}

/// The difference as JSON; the schema is described in the manual.
fn json(profile: &Profile, options: &Options) -> String {
    let mut json = Json::default();
    json.begin_object();
    json.name("schema", b"cg_diff");
    json.key("version");
    json.integer(1);
    json.name("file_before", options.before.as_encoded_bytes());
    json.name("file_after", options.after.as_encoded_bytes());
    json.name("command", &profile.header.cmd);
    json.key("events");
    json.begin_array();
    profile.header.events.iter().for_each(|event| json.string(event.as_bytes()));
    json.end_array();
    json.integers("total", profile.total().iter().copied());
    json.key("functions");
    json.begin_array();
    let mut functions: Vec<_> = profile
        .files()
        .flat_map(|file| file.functions().map(move |function| (file.name(), function.name(), function.rows())))
        .filter(|(_, _, rows)| !rows.is_empty())
        .collect();
    functions.sort_by_key(|(file, function, _)| (*file, *function));
    for (file, function, rows) in functions {
        json.begin_object();
        json.name("file", file);
        json.name("function", function);
        json.integers("counts", rows.counts(0));
        json.end_object();
    }
    json.end_array();
    json.end_object();
    json.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
