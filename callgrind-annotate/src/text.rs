//! The report as text, with the layout that scripts know from the reference.
//!
//! Colour only adds escape sequences around what is printed without it.

use std::io::{self, Write};
use std::path::PathBuf;

use cg_cli::color::Palette;
use cg_cli::source_text;
use cg_format::show::commas;

use crate::columns::Columns;
use crate::model::{Entry, Link, Model};
use crate::options::Tree;
use crate::source::{Source, Sources};
use cg_model::Cost;

/// What the options say about the look of the report.
pub(crate) struct Style {
    pub(crate) percentages: bool,
    pub(crate) tree: Tree,
    pub(crate) auto: bool,
    pub(crate) context: u64,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) wanted: Vec<Vec<u8>>,
    pub(crate) palette: Palette,
}

/// Prints the whole report.
pub(crate) fn print(
    out: &mut dyn Write,
    model: &Model,
    style: &Style,
    table: &[usize],
    shown: usize,
    sources: &Sources<'_>,
) -> anyhow::Result<()> {
    metadata(out, model, style)?;
    totals(out, model, style)?;
    functions(out, model, style, table, shown)?;
    let mut annotated = Cost::default();
    for source in &sources.found {
        section(out, style, &[source_kind(source), &source.title].concat())?;
        if source.lines.is_empty() {
            line(out, &[b"  No information has been collected for ", &source.name, b"\n"])?;
            continue;
        }
        known(out, model, style, source, &mut annotated)?;
    }
    if !sources.missing.is_empty() {
        section(out, style, b"The following files chosen for auto-annotation could not be found:")?;
        for name in &sources.missing {
            line(out, &[b"  ", name])?;
        }
        out.write_all(b"\n")?;
    }
    if sources.found.iter().any(|source| !source.lines.is_empty()) {
        let mut columns = Columns::new(model, style.percentages);
        columns.expect(&annotated);
        headed(out, style, &columns, "")?;
        columns.row(out, Some(&annotated))?;
        out.write_all(b" events annotated\n\n")?;
    }
    Ok(())
}

fn source_kind(source: &Source<'_>) -> &'static [u8] {
    if source.wanted { b"-- User-annotated source: " } else { b"-- Auto-annotated source: " }
}

fn rule(out: &mut dyn Write, style: &Style) -> io::Result<()> {
    let Palette { heading, reset, .. } = style.palette;
    writeln!(out, "{heading}{:->80}{reset}", "")
}

fn section(out: &mut dyn Write, style: &Style, title: &[u8]) -> io::Result<()> {
    let Palette { heading, reset, .. } = style.palette;
    rule(out, style)?;
    line(out, &[heading.as_bytes(), title, reset.as_bytes()])?;
    rule(out, style)
}

fn headed(out: &mut dyn Write, style: &Style, columns: &Columns<'_>, rest: &str) -> io::Result<()> {
    rule(out, style)?;
    columns.heading(out, rest)?;
    rule(out, style)
}

fn line(out: &mut dyn Write, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| out.write_all(part))?;
    out.write_all(b"\n")
}

/// So many parts are described one by one.
const MOST_PARTS: usize = 10;

fn metadata(out: &mut dyn Write, model: &Model, style: &Style) -> io::Result<()> {
    let mut title = format!("Profile data file '{}'", model.input).into_bytes();
    if !model.header.creator.is_empty() {
        title.extend_from_slice(&[b" (creator: ", &model.header.creator[..], b")"].concat());
    }
    section(out, style, &title)?;
    model.header.desc.iter().try_for_each(|desc| line(out, &[desc]))?;
    if let [part] = &model.parts[..] {
        part.header.desc.iter().try_for_each(|desc| line(out, &[desc]))?;
    } else {
        for (i, part) in (1..).zip(&model.parts).take(MOST_PARTS) {
            let thread = part.header.thread.map(|thread| format!(", thread {thread}")).unwrap_or_default();
            write!(out, "Part {}{thread}: ", part.header.number.unwrap_or(i))?;
            line(out, &[&part.header.desc.join(&b"; "[..])])?;
        }
        if model.parts.len() > MOST_PARTS {
            writeln!(out, "and {} parts more", model.parts.len() - MOST_PARTS)?;
        }
    }
    let cmd = model.header.cmd.trim_ascii();
    let mut target = if cmd.is_empty() { b"(unknown)".to_vec() } else { cmd.to_vec() };
    if let Some(pid) = model.header.pid {
        target.extend_from_slice(format!(" (PID {pid}").as_bytes());
        if let [part] = &model.parts[..] {
            if let Some(number) = part.header.number {
                target.extend_from_slice(format!(", part {number}").as_bytes());
            }
            if let Some(thread) = part.header.thread {
                target.extend_from_slice(format!(", thread {thread}").as_bytes());
            }
        } else {
            target.extend_from_slice(format!(", {} parts", model.parts.len()).as_bytes());
        }
        target.push(b')');
    }
    line(out, &[b"Profiled target:  ", &target])?;
    writeln!(out, "Events recorded:  {}", model.events.join(" "))?;
    writeln!(out, "Events shown:     {}", model.names(model.show.iter().copied()).join(" "))?;
    writeln!(out, "Event sort order: {}", model.names(model.sort.iter().map(|(event, _)| *event)).join(" "))?;
    let thresholds: Vec<String> = model.sort.iter().map(|(_, threshold)| threshold.to_string()).collect();
    writeln!(out, "Thresholds:       {}", thresholds.join(" "))?;
    list(out, "Include dirs:     ", style.folders.iter().map(|folder| format!("{}/", folder.display()).into_bytes()))?;
    list(out, "User annotated:   ", style.wanted.iter().cloned())?;
    writeln!(out, "Auto-annotation:  {}", if style.auto { "on" } else { "off" })?;
    out.write_all(b"\n")
}

/// A label and values, each on a line of its own below the first.
fn list(out: &mut dyn Write, label: &str, values: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    out.write_all(label.as_bytes())?;
    let mut first = true;
    for value in values {
        if !std::mem::take(&mut first) {
            write!(out, "{:1$}", "", label.len())?;
        }
        line(out, &[&value])?;
    }
    if first { out.write_all(b"\n") } else { Ok(()) }
}

fn totals(out: &mut dyn Write, model: &Model, style: &Style) -> io::Result<()> {
    let mut columns = Columns::new(model, style.percentages);
    columns.expect(&model.total.cost);
    headed(out, style, &columns, "")?;
    columns.row(out, Some(&model.total.cost))?;
    let note = if model.total.calculated { " (calculated)" } else { "" };
    writeln!(out, " PROGRAM TOTALS{note}\n")
}

/// What stands before the name of an entry.
fn full_name(model: &Model, style: &Style, entry: &Entry, count: Option<u64>) -> Vec<u8> {
    let Palette { name, reset, .. } = style.palette;
    let mut text = [name.as_bytes(), &entry.name[..], reset.as_bytes()].concat();
    let graph = model.inclusive || style.tree != Tree::None;
    if let Some(cycle) = entry.cycle.filter(|_| graph && entry.function.is_some()) {
        text.extend_from_slice(format!(" <cycle {cycle}>").as_bytes());
    }
    if let Some(count) = count {
        text.extend_from_slice(format!(" ({}x)", commas(i128::from(count))).as_bytes());
    }
    if let Some(object) = &entry.object {
        text.extend_from_slice(&[b" [", &object[..], b"]"].concat());
    }
    text
}

fn functions(out: &mut dyn Write, model: &Model, style: &Style, table: &[usize], shown: usize) -> io::Result<()> {
    let mut columns = Columns::new(model, style.percentages);
    table.iter().for_each(|at| columns.expect(model.cost(&model.entries[*at])));
    headed(out, style, &columns, " file:function")?;
    for at in &table[..shown] {
        let entry = &model.entries[*at];
        if style.tree != Tree::None {
            out.write_all(b"\n")?;
        }
        let print = |out: &mut dyn Write, cost, mark: &[u8], other: usize, count| {
            columns.row(out, cost)?;
            line(out, &[mark, &full_name(model, style, &model.entries[other], count)])
        };
        if style.tree.callers() {
            for Link { caller, count, cost, .. } in model.ranked(&entry.callers, |link| link.caller) {
                print(out, cost.as_ref(), b" < ", *caller, Some(*count))?;
            }
        }
        let mark: &[u8] = if style.tree == Tree::None { b" " } else { b" *  " };
        print(out, Some(model.cost(entry)), mark, *at, None)?;
        if style.tree.callees() {
            for Link { callee, count, cost, .. } in model.ranked(&entry.callees, |link| link.callee) {
                print(out, cost.as_ref(), b" >   ", *callee, Some(*count))?;
            }
        }
    }
    out.write_all(b"\n")
}

fn warning(out: &mut dyn Write, style: &Style, lines: &[Vec<u8>]) -> io::Result<()> {
    let Palette { warning, reset, .. } = style.palette;
    let bar = "@".repeat(80);
    writeln!(out, "{warning}{bar}\n{}@@\n{bar}", "@@ WARNING ".repeat(7))?;
    lines.iter().try_for_each(|text| line(out, &[text]))?;
    writeln!(out, "{bar}{reset}\n")
}

fn known(
    out: &mut dyn Write,
    model: &Model,
    style: &Style,
    source: &Source<'_>,
    annotated: &mut Cost,
) -> anyhow::Result<()> {
    if source.newer {
        let what = [
            b"@ Source file '",
            &source.name[..],
            b"' is more recent than input file '",
            model.input.as_bytes(),
            b"'.",
        ];
        warning(out, style, &[what.concat(), b"@ Annotations may not be correct.".to_vec()])?;
    }
    let mut columns = Columns::new(model, style.percentages);
    source.lines.values().filter_map(|line| line.cost.as_ref()).for_each(|cost| columns.expect(cost));
    columns.heading(out, "")?;
    out.write_all(b"\n")?;
    let last = chunks(out, model, style, source, &columns, annotated)?;
    let beyond: Vec<_> = source.lines.iter().filter(|(number, _)| u64::from(**number) > last).collect();
    for (number, line) in &beyond {
        columns.row(out, line.cost.as_ref())?;
        writeln!(out, " <bogus line {number}>")?;
        calls(out, model, style, line, &columns)?;
    }
    out.write_all(b"\n")?;
    if !beyond.is_empty() {
        let text = [b"@@ Information recorded about lines past the end of '", &source.name[..], b"'."].concat();
        warning(out, style, &[text])?;
    }
    if let Some(line) = source.lines.get(&0) {
        columns.row(out, line.cost.as_ref())?;
        self::line(out, &[b" <counts for unidentified lines in ", &source.name, b">"])?;
        calls(out, model, style, line, &columns)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Prints the parts of a text that have counts; gives the number of lines that the text has, if that matters.
fn chunks(
    out: &mut dyn Write,
    model: &Model,
    style: &Style,
    source: &Source<'_>,
    columns: &Columns<'_>,
    annotated: &mut Cost,
) -> anyhow::Result<u64> {
    let Palette { faint, reset, .. } = style.palette;
    let mark = |out: &mut dyn Write, number| writeln!(out, "{faint}-- line {number} {:->40}{reset}", "");
    let mut lines = source_text::lines(&source.text);
    let mut last = 0;
    for (low, high) in source_text::ranges(source.lines.keys().map(|line| u64::from(*line)), style.context) {
        if low != 1 {
            mark(out, low)?;
        }
        while last < low - 1 {
            let Some((number, _)) = lines.next() else { return Ok(last) };
            last = number;
        }
        while last < high {
            let Some((number, content)) = lines.next() else { return Ok(last) };
            last = number;
            let counts = u32::try_from(number).ok().and_then(|number| source.lines.get(&number));
            columns.row(out, counts.and_then(|line| line.cost.as_ref()))?;
            line(out, &[b" ", content])?;
            if let Some(counts) = counts {
                if let Some(cost) = &counts.cost {
                    annotated.add_cost(cost)?;
                }
                calls(out, model, style, counts, columns)?;
            }
        }
        mark(out, high)?;
    }
    Ok(last.max(lines.last().map_or(0, |(number, _)| number)))
}

fn calls(
    out: &mut dyn Write,
    model: &Model,
    style: &Style,
    line: &crate::model::SourceLine,
    columns: &Columns<'_>,
) -> io::Result<()> {
    let Palette { faint, reset, .. } = style.palette;
    for call in model.ranked_calls(line) {
        columns.row(out, call.cost.as_ref())?;
        let name = &model.entries[call.callee].name;
        let count = format!(" ({}x){reset}", commas(i128::from(call.count)));
        self::line(out, &[b" ", faint.as_bytes(), b"=> ", name, count.as_bytes()])?;
    }
    Ok(())
}
