//! The report for people. Counts are those of the model; nothing is computed here but percentages.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cg_cli::source_text;
use cg_format::mem::streams::Stream;
use cg_format::mem::{Kind, Object, UNKNOWN, notation};

use crate::model::{Model, Row};
use crate::source::Sources;

const RULE: &str = "--------------------------------------------------------------------------------";

/// How many parts of a stream are shown.
const PARTS: usize = 4;

/// What the report is of, and how it is printed.
pub(crate) struct Style {
    /// The command line.
    pub(crate) invocation: String,
    /// The file, or both files of a difference.
    pub(crate) files: Vec<String>,
    pub(crate) threshold: f64,
    pub(crate) annotate: bool,
    /// Lines around each that has counts.
    pub(crate) context: u64,
}

/// Prints the report.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print(out: &mut dyn Write, model: &Model, style: &Style, sources: &mut Sources<'_>) -> io::Result<()> {
    metadata(out, model, style)?;
    let columns = Columns::new(model);
    if !model.mem.head.events.is_empty() {
        objects(out, model, style, sources, &columns)?;
    }
    match &model.distances {
        Some(distances) => distances.print(out, &section)?,
        None if model.mem.head.reuse.is_some() => {
            writeln!(out, "Stack distances are shown of one file, and not compared\n")?;
        }
        None => {}
    }
    if let Some(sharing) = &model.sharing {
        section(out, "Shared lines")?;
        sharing.print(out, &model.mem, sources)?;
    }
    Ok(())
}

/// Everything about objects.
fn objects(
    out: &mut dyn Write,
    model: &Model,
    style: &Style,
    sources: &mut Sources<'_>,
    columns: &Columns,
) -> io::Result<()> {
    section(out, "Summary")?;
    writeln!(out, "{}", columns.head(model, ""))?;
    writeln!(out)?;
    writeln!(out, "{}", columns.row(model, &model.totals, "PROGRAM TOTALS"))?;
    writeln!(out)?;
    section(out, "Data objects")?;
    writeln!(out, "{}", columns.head(model, "object"))?;
    for row in &model.rows {
        writeln!(out)?;
        writeln!(out, "{}", columns.row(model, &row.counts, &title(&row.object, sources)))?;
        callers(out, &row.object)?;
        uses(out, model, row)?;
        fields(out, model, row, columns)?;
        missed_by(out, model, row, columns)?;
        streams(out, model, row, sources)?;
    }
    if model.hidden > 0 {
        writeln!(out)?;
        writeln!(out, "{} more below the threshold", thousands(model.hidden as i128))?;
    }
    writeln!(out)?;
    if let Some(head) = &model.mem.head.streams
        && head.others > 0
        && model.commands.len() == 1
    {
        writeln!(
            out,
            "{} misses are in no stream, since there were too many of them\n",
            thousands(head.others.into())
        )?;
    }
    if style.annotate {
        annotation(out, model, style, sources, columns)?;
    }
    Ok(())
}

fn section(out: &mut dyn Write, name: &str) -> io::Result<()> {
    writeln!(out, "{RULE}\n-- {name}\n{RULE}")
}

fn metadata(out: &mut dyn Write, model: &Model, style: &Style) -> io::Result<()> {
    section(out, "Metadata")?;
    writeln!(out, "Invocation:       {}", style.invocation)?;
    if let [command] = &model.commands[..] {
        writeln!(out, "{:17} {command}", "Command:")?;
        style.files.iter().try_for_each(|file| writeln!(out, "{:17} {file}", "Data file:"))?;
    } else {
        let sides = model.commands.iter().zip(&style.files).zip([" before", " after"]);
        for ((command, file), side) in sides {
            writeln!(out, "{:17} {command}", format!("Command{side}:"))?;
            writeln!(out, "{:17} {file}", format!("Data file{side}:"))?;
        }
    }
    model.mem.head.desc.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    let names = |of: &[usize]| of.iter().map(|n| &*model.mem.head.events[*n]).collect::<Vec<_>>().join(" ");
    if !model.mem.head.events.is_empty() {
        writeln!(out, "Events recorded:  {}", model.mem.head.events.join(" "))?;
        writeln!(out, "Events shown:     {}", names(&model.show))?;
        writeln!(out, "Event sort order: {}", names(&model.sort))?;
    }
    writeln!(out, "Threshold:        {}%", style.threshold)?;
    writeln!(out)
}

/// `1,234,567`.
pub(crate) fn thousands(n: i128) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = if n < 0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn cell(n: i128, whole: i128) -> String {
    match whole {
        0 => thousands(n),
        _ => format!("{} ({:.1}%)", thousands(n), n as f64 * 100.0 / whole as f64),
    }
}

/// How wide the columns are.
struct Columns(Vec<usize>);

impl Columns {
    fn new(model: &Model) -> Self {
        let width = |event: &usize| {
            let of = |counts: &[i128]| cell(counts[*event], model.whole[*event]).len();
            let rows = model.rows.iter().map(|row| of(&row.counts));
            rows.chain([of(&model.totals), model.mem.head.events[*event].len()]).max().unwrap_or(0)
        };
        Self(model.show.iter().map(width).collect())
    }

    fn head(&self, model: &Model, what: &str) -> String {
        let names =
            model.show.iter().zip(&self.0).map(|(event, width)| format!("{:_<width$} ", model.mem.head.events[*event]));
        format!("{} {what}", names.collect::<String>()).trim_end().to_owned()
    }

    fn row(&self, model: &Model, counts: &[i128], what: &str) -> String {
        let cells = model
            .show
            .iter()
            .zip(&self.0)
            .map(|(event, width)| format!("{:>width$} ", cell(counts[*event], model.whole[*event])));
        format!("{} {what}", cells.collect::<String>())
    }

    fn empty(&self) -> String {
        " ".repeat(self.0.iter().map(|width| width + 1).sum::<usize>() + 1)
    }
}

/// An object in a line: what it is called, where it is from, how large it is.
fn title(object: &Object, sources: &mut Sources<'_>) -> String {
    let at = |object: &Object| match object.line {
        0 => object.file.clone(),
        line => format!("{}:{line}", object.file),
    };
    let in_function = if object.function.is_empty() { String::new() } else { format!(" {}", object.function) };
    match object.kind {
        Kind::Heap => {
            let name = sources.variable(object);
            let blocks = match object.blocks {
                1 => format!("{} bytes", thousands(object.bytes.into())),
                n => format!(
                    "{} blocks, {} bytes, at most {} at a time",
                    thousands(n.into()),
                    thousands(object.bytes.into()),
                    thousands(object.peak_bytes.into())
                ),
            };
            let place = if object.line > 0 { format!("  {}{in_function}", at(object)) } else { String::new() };
            format!("{name}{place} ({blocks})")
        }
        Kind::Variable | Kind::Section => {
            format!("{}  {} ({} bytes)", object.name, at(object), thousands(object.bytes.into()))
        }
        Kind::Stack => format!("[stack] {}  {}", object.name, at(object)),
        Kind::Unknown => format!("{}  (all other memory)", object.name),
    }
}

/// Who has called the function that allocates, as far as that tells objects apart.
fn callers(out: &mut dyn Write, object: &Object) -> io::Result<()> {
    for caller in &object.callers {
        let place = match caller.line {
            0 => String::new(),
            line => format!("  {}:{line}", caller.file),
        };
        writeln!(out, "    called by {}{place}", caller.function)?;
    }
    Ok(())
}

/// How much of the lines that were loaded for an object was accessed before they left a cache, if that was measured.
fn uses(out: &mut dyn Write, model: &Model, row: &Row) -> io::Result<()> {
    let Some(line) = model.mem.head.uses.filter(|_| model.commands.len() == 1) else { return Ok(()) };
    let count = |event: &str| {
        let at = model.mem.head.events.iter().position(|known| known == event);
        at.and_then(|at| row.object.counts.get(at)).copied().unwrap_or(0)
    };
    let of_level = |(used, lost, level): (&str, &str, &str)| {
        let (used, lost) = (count(used), count(lost));
        let lines = used.saturating_add(lost) as f64 / line as f64;
        (lines > 0.0).then(|| format!("{:.1} of each line that left {level}", used as f64 / lines))
    };
    let levels = [("Used1", "SpLoss1", "the first level"), ("Used2", "SpLoss2", "the last one")];
    let levels: Vec<String> = levels.into_iter().filter_map(of_level).collect();
    if levels.is_empty() {
        return Ok(());
    }
    writeln!(out, "    of {line} bytes were used: {}", levels.join(", "))
}

/// What of an object is missed: by member if it is known which structure it is, else where it is not all of the same eight bytes.
fn fields(out: &mut dyn Write, model: &Model, row: &Row, columns: &Columns) -> io::Result<()> {
    if model.commands.len() > 1 {
        return Ok(());
    }
    let mut write = |counts: &[u64], what: &str| {
        if !model.matters(counts) {
            return Ok(());
        }
        let mut all: Vec<i128> = counts.iter().map(|n| i128::from(*n)).collect();
        all.resize(row.counts.len(), 0);
        writeln!(out, "{}", columns.row(model, &all, what))
    };
    if let Some(members) = &row.object.members {
        for member in &members.missed {
            let what = match &*member.name {
                "" => "  between the members".to_owned(),
                name => {
                    let last = member.offset.saturating_add(member.bytes).saturating_sub(1);
                    let bytes = match member.bytes {
                        1 => format!("byte {last}"),
                        _ => format!("bytes {} to {last}", member.offset),
                    };
                    format!("  .{name}  {bytes} of {}", members.bytes)
                }
            };
            write(&member.counts, &what)?;
        }
        return Ok(());
    }
    let fields = &row.object.fields;
    for field in fields.iter().filter(|_| fields.len() > 1) {
        write(&field.counts, &format!("  bytes {} to {}", field.offset, field.offset.saturating_add(7)))?;
    }
    Ok(())
}

/// The functions that miss an object, those with the most misses first.
fn missed_by(out: &mut dyn Write, model: &Model, row: &Row, columns: &Columns) -> io::Result<()> {
    for by in row.missed_by.iter().map(|n| &model.mem.missed_by[*n]) {
        let counts: Vec<i128> = by.counts.iter().map(|n| i128::from(*n)).collect();
        let file = if by.file == UNKNOWN { &by.module } else { &by.file };
        writeln!(out, "{}", columns.row(model, &counts, &format!("  in {}  {file}", by.function)))?;
    }
    Ok(())
}

/// The streams of an object, the largest first.
fn streams(out: &mut dyn Write, model: &Model, row: &Row, sources: &mut Sources<'_>) -> io::Result<()> {
    let Some(head) = &model.mem.head.streams else { return Ok(()) };
    let indent = "    ";
    for n in &row.streams {
        let (stream, alone) = (&model.mem.streams[*n], model.alone[*n]);
        let name = sources.variable(&row.object);
        let place = match stream.line {
            0 => stream.function.clone(),
            line => format!("{}:{line} {}", stream.file.rsplit('/').next().unwrap_or_default(), stream.function),
        };
        let used = notation::used(stream, head.line, alone).map(|used| {
            let lost = match head.line - used {
                0 => String::new(),
                lost => format!(", {lost} lost"),
            };
            format!("; {used} of {} bytes of each line used{lost}", head.line)
        });
        let misses = thousands(stream.misses.into());
        for (first, text) in said(stream, &name, alone) {
            let behind = match first {
                true => format!("  {misses} misses{}  {place}", used.as_deref().unwrap_or_default()),
                false => String::new(),
            };
            writeln!(out, "{indent}{text}{behind}")?;
        }
        if let Some(hint) = notation::hint(stream, head.line) {
            writeln!(out, "{indent}  {hint}")?;
        }
        if let Some(ahead) = stream.prefetch {
            writeln!(out, "{indent}  worth a prefetch of what is {} bytes further on ({})", ahead.delta, ahead.kind())?;
        }
    }
    Ok(())
}

/// A stream in lines, the first of which has its sums.
fn said(stream: &Stream, name: &str, alone: bool) -> Vec<(bool, String)> {
    let mut parts: Vec<_> =
        stream.parts.iter().filter(|part| part.misses.saturating_mul(20) >= stream.misses).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.misses));
    let shown: u64 = parts.iter().take(PARTS).map(|part| part.misses).sum();
    let others = stream.misses - shown;
    let irregular = format!("{} {name}[*] irregular", stream.access.word());
    let [first, more @ ..] = &parts[..] else { return vec![(true, irregular)] };
    let text = |part| notation::part(stream, part, name, alone);
    if more.is_empty() && others == 0 {
        return vec![(true, text(first))];
    }
    // What holds of nearly all is said of it.
    if first.misses.saturating_mul(10) >= stream.misses.saturating_mul(9) {
        let rest = stream.misses - first.misses;
        return vec![(true, format!("~{}", text(first))), (false, format!("  + {} irregular", thousands(rest.into())))];
    }
    let mut lines = vec![(true, format!("{} {name} in parts", stream.access.word()))];
    for part in parts.iter().take(PARTS) {
        lines.push((false, format!("  {}: {}", text(part), thousands(part.misses.into()))));
    }
    if others > 0 {
        lines.push((false, format!("  + {} irregular", thousands(others.into()))));
    }
    lines
}

/// Source files with lines that allocate what is shown.
fn annotation(
    out: &mut dyn Write,
    model: &Model,
    style: &Style,
    sources: &mut Sources<'_>,
    columns: &Columns,
) -> io::Result<()> {
    let mut files: BTreeMap<&str, BTreeMap<u64, Vec<i128>>> = BTreeMap::new();
    for row in model.rows.iter().filter(|row| row.object.kind == Kind::Heap && row.object.line > 0) {
        let lines = files.entry(&row.object.file).or_default();
        let sums = lines.entry(row.object.line).or_insert_with(|| vec![0; row.counts.len()]);
        sums.iter_mut().zip(&row.counts).for_each(|(sum, n)| *sum += n);
    }
    for (file, lines) in files {
        section(out, &format!("Annotated source file: {file}"))?;
        let place = sources.place(file);
        let Some(text) = sources.text(file) else {
            writeln!(out, "This file was unreadable: {}\n", place.display())?;
            continue;
        };
        writeln!(out, "{}\n", columns.head(model, ""))?;
        let text: Vec<(u64, &[u8])> = source_text::lines(text).collect();
        for (low, high) in source_text::ranges(lines.keys().copied(), style.context) {
            writeln!(out, "-- line {low} {}", "-".repeat(40))?;
            for (n, line) in text.iter().filter(|(n, _)| (low..=high).contains(n)) {
                let line = String::from_utf8_lossy(line);
                match lines.get(n) {
                    Some(counts) => writeln!(out, "{}", columns.row(model, counts, &line))?,
                    None => writeln!(out, "{}", format!("{}{line}", columns.empty()).trim_end())?,
                }
            }
            writeln!(out, "-- line {high} {}", "-".repeat(40))?;
        }
        let last = text.len() as u64;
        for line in lines.keys().filter(|line| **line > last) {
            writeln!(out, "line {line} is behind the end of the file: it has changed")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
