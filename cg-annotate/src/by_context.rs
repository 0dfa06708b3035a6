//! `--by-context`: which function costs how much in which context of the statistics, as tables of functions x contexts, one
//! for each shown event.
//!
//! A profile belongs to the context that a `desc:` line of it names. One that names none is the sum over contexts: the
//! profiles beside it are taken instead, which grind names after it. Counts are exact; percentages are of the total of an
//! event over all contexts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use cg_cli::color::Palette;
use cg_cli::load;
use cg_cli::progress::Progress;
use cg_cli::rename::Renamer;
use cg_format::cachegrind::{Detail, Header, Profile, ReadOptions};
use cg_format::count::sum;
use cg_format::show::{commas, percent, percent_text};

use crate::options::Options;
use crate::style::number;

/// What stands between the name of a profile of all contexts and the name of one of them.
const SUFFIX: &[u8] = b".ctx-";

/// File and function.
type Place = (Vec<u8>, Vec<u8>);

/// Everything that the tables show.
#[derive(Debug)]
struct Tables {
    events: Vec<String>,
    command: Vec<u8>,
    /// Names of contexts, in the order of their columns.
    contexts: Vec<String>,
    /// For each function, and each context, counts of all events; nothing where it was never executed.
    rows: BTreeMap<Place, Vec<Vec<i128>>>,
    /// Counts of all events for each context.
    totals: Vec<Vec<i128>>,
}

/// Prints the tables.
///
/// # Errors
/// Inputs that cannot be read, count different events, or have no contexts; output that cannot be written.
pub(crate) fn run(options: &Options, invocation: &[u8]) -> anyhow::Result<()> {
    let tables = read(options)?;
    let index = |option: &str, list: &str| -> anyhow::Result<Vec<usize>> {
        let names = cg_cli::options::comma_list(list);
        names.iter().map(|name| cg_cli::options::event(option, name, &tables.events)).collect()
    };
    let show = match &options.show {
        Some(list) => index("--show", list)?,
        None => vec![0],
    };
    let sort = match &options.sort {
        Some(list) => Some(index("--sort", list)?),
        None => None,
    };
    let palette = Palette::for_stdout(options.color);
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    print(&mut out, &tables, &show, sort.as_deref(), options, invocation, palette).context("standard output")?;
    out.flush().context("standard output")
}

/// The name of the context that a profile belongs to.
fn context_of(header: &Header) -> Option<String> {
    let name = header.desc.iter().find_map(|d| d.strip_prefix(b"Context:"))?;
    Some(String::from_utf8_lossy(name).trim().to_owned())
}

fn read(options: &Options) -> anyhow::Result<Tables> {
    load::check_stdin(&options.files)?;
    let read = ReadOptions { detail: Detail::Functions, ..ReadOptions::default() };
    let progress = Progress::start("cg_annotate");
    let mut renamer = Renamer::new(options.mod_filename.as_ref(), options.mod_funcname.as_ref());
    let mut seen = HashSet::new();
    let mut parts: Vec<(String, Profile)> = Vec::new();
    let mut waiting: Vec<OsString> = options.files.iter().rev().cloned().collect();
    let mut events: Option<(String, Vec<String>)> = None;
    while let Some(file) = waiting.pop() {
        if file != "-" && !seen.insert(std::fs::canonicalize(&file).unwrap_or_else(|_| PathBuf::from(&file))) {
            continue;
        }
        let name = cg_cli::input::name(&file);
        let mut profile = load::sum(std::slice::from_ref(&file), &read, &progress.counter)?.profile;
        match &events {
            Some((first, events)) if *events != profile.header.events => {
                let (here, there) = (profile.header.events.join(" "), events.join(" "));
                bail!("{name}: events in data files don't match: `{here}` here, `{there}` in {first}");
            }
            Some(_) => {}
            None => events = Some((name.clone(), profile.header.events.clone())),
        }
        match context_of(&profile.header) {
            Some(context) => {
                renamer.rename(&mut profile)?;
                parts.push((context, profile));
            }
            None => {
                let beside = beside(&file)?;
                if beside.is_empty() {
                    bail!(
                        "{name}: no context is named in it, and no profiles of contexts ({name}.ctx-*) are beside it"
                    );
                }
                waiting.extend(beside.into_iter().rev());
            }
        }
    }
    drop(progress);
    let (_, events) = events.ok_or_else(|| anyhow!("no input files"))?;
    tables(events, parts)
}

/// The profiles of contexts beside the one that is their sum, by name.
fn beside(file: &OsStr) -> anyhow::Result<Vec<OsString>> {
    let path = Path::new(file);
    let Some(name) = path.file_name().filter(|_| file != "-") else { return Ok(Vec::new()) };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let what = || folder.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(what)? {
        let other = entry.with_context(what)?.file_name();
        if other.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(SUFFIX)) {
            found.push(path.with_file_name(other).into_os_string());
        }
    }
    found.sort();
    Ok(found)
}

/// Numbers by size, then names in the order in which they came.
fn order(parts: &[(String, Profile)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in parts {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names.sort_by_key(|name| name.parse::<u64>().map_or((1, 0), |n| (0, n)));
    names
}

fn tables(events: Vec<String>, parts: Vec<(String, Profile)>) -> anyhow::Result<Tables> {
    let contexts = order(&parts);
    let column: HashMap<&str, usize> = contexts.iter().enumerate().map(|(i, c)| (c.as_str(), i)).collect();
    let zeros = vec![vec![0; events.len()]; contexts.len()];
    let mut rows: BTreeMap<Place, Vec<Vec<i128>>> = BTreeMap::new();
    let mut totals = zeros.clone();
    for (context, profile) in &parts {
        let at = column[context.as_str()];
        for (total, n) in totals[at].iter_mut().zip(profile.total()) {
            *total = sum(*total, *n)?;
        }
        for file in profile.files() {
            for function in file.functions() {
                let place = (file.name().to_vec(), function.name().to_vec());
                function.rows().add_to(&mut rows.entry(place).or_insert_with(|| zeros.clone())[at])?;
            }
        }
    }
    let command = parts.first().map(|(_, p)| p.header.cmd.clone()).unwrap_or_default();
    Ok(Tables { events, command, contexts, rows, totals })
}

/// A row: counts by context, their sum last.
fn with_sum(counts: &[Vec<i128>], event: usize) -> anyhow::Result<Vec<i128>> {
    let mut row: Vec<i128> = counts.iter().map(|c| c[event]).collect();
    row.push(row.iter().try_fold(0, |all, n| sum(all, *n))?);
    Ok(row)
}

fn print(
    out: &mut dyn Write,
    tables: &Tables,
    show: &[usize],
    sort: Option<&[usize]>,
    options: &Options,
    invocation: &[u8],
    palette: Palette,
) -> anyhow::Result<()> {
    let heading = |out: &mut dyn Write, title: &str| {
        let (color, reset, rule) = (palette.heading, palette.reset, "-".repeat(80));
        writeln!(out, "{color}{rule}{reset}\n{color}-- {title}{reset}\n{color}{rule}{reset}")
    };
    heading(out, "Metadata")?;
    for (label, text) in [("Invocation:       ", invocation), ("Command:          ", &tables.command)] {
        out.write_all(label.as_bytes())?;
        out.write_all(text)?;
        out.write_all(b"\n")?;
    }
    writeln!(out, "Events recorded:  {}", tables.events.join(" "))?;
    writeln!(out, "Threshold:        {}%\n", number(options.threshold))?;

    let mut files_of: HashMap<&[u8], usize> = HashMap::new();
    for (_, function) in tables.rows.keys() {
        *files_of.entry(function).or_default() += 1;
    }
    for &event in show {
        heading(out, &format!("Function x context: {}", tables.events[event]))?;
        let total = with_sum(&tables.totals, event)?;
        let all = total.last().copied().unwrap_or_default();
        let sort = sort.unwrap_or(std::slice::from_ref(&event));
        let mut rows = Vec::new();
        for ((file, function), counts) in &tables.rows {
            let row = with_sum(counts, event)?;
            let keys: Vec<i128> = sort
                .iter()
                .map(|&e| with_sum(counts, e).map(|r| r.last().map_or(0, |n| n.abs())))
                .collect::<anyhow::Result<_>>()?;
            let size = row.last().map_or(0, |n| n.unsigned_abs());
            // As everywhere, a row without counts is shown if nothing is asked of it.
            if size as f64 >= options.threshold * all.unsigned_abs() as f64 / 100.0 && row.iter().any(|&n| n != 0) {
                let mut name = String::from_utf8_lossy(function).into_owned();
                if files_of[function.as_slice()] > 1 {
                    name.push_str(&format!(" ({})", String::from_utf8_lossy(file)));
                }
                rows.push((std::cmp::Reverse(keys), name, row));
            }
        }
        rows.sort();
        let cell = |n: i128| match options.percentages() && n != 0 {
            true => format!("{} ({})", commas(n), percent_text(percent(n, all))),
            false => commas(n),
        };
        let heads = tables.contexts.iter().map(String::as_str).chain(["(all)"]);
        let mut widths: Vec<usize> = heads.clone().map(|h| h.chars().count()).collect();
        for row in rows.iter().map(|(_, _, row)| row).chain([&total]) {
            widths.iter_mut().zip(row).for_each(|(w, n)| *w = (*w).max(cell(*n).chars().count()));
        }
        for (head, &width) in heads.zip(&widths) {
            let missing = width - head.chars().count();
            write!(out, "{head}{:_<missing$}  ", "")?;
        }
        writeln!(out, "function\n")?;
        let rows = rows.iter().map(|(_, name, row)| (name.as_str(), row));
        for (name, row) in [("PROGRAM TOTALS", &total)].into_iter().chain(rows) {
            for (n, &width) in row.iter().zip(&widths) {
                write!(out, "{:>width$}  ", if *n == 0 { ".".to_owned() } else { cell(*n) })?;
            }
            writeln!(out, "{}{name}{}", palette.name, palette.reset)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
