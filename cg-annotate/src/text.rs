//! The report as text, byte for byte as scripts know it from the reference.
//!
//! Colour only adds escape sequences around what is printed without it.

use std::io::{self, Write};

use cg_cli::color::Palette;
use cg_cli::source_text;

use crate::columns::Columns;
use crate::counts::add;
use crate::model::{Model, Outer, Verdict};
use crate::source::{Coverage, LABELS, Source, Text, plan};
use crate::style::{Style, number};
use crate::{grown, growth};

/// Prints the whole report.
pub(crate) fn print(out: &mut dyn Write, model: &Model, style: &Style) -> anyhow::Result<()> {
    metadata(out, model, style)?;
    summary(out, model, style)?;
    if style.growth
        && let Some(pair) = &model.pair
    {
        section(out, style, b"Function growth")?;
        grown::functions(out, model, &growth::changed(model, pair)?)?;
    }
    let files = model.by_file()?;
    table(out, model, style, &files, &FILES)?;
    table(out, model, style, &model.by_function(&files)?, &FUNCTIONS)?;
    if !style.annotate {
        return Ok(());
    }
    let (names, mut coverage) = plan(model, &files)?;
    drop(files);
    for name in names {
        let source = Source::open(model, name)?;
        coverage.add(&source)?;
        annotated(out, model, style, &source)?;
    }
    annotation_summary(out, model, style, &coverage)?;
    Ok(())
}

fn section(out: &mut dyn Write, style: &Style, title: &[u8]) -> io::Result<()> {
    let [before, behind] = [style.palette.heading, style.palette.reset].map(str::as_bytes);
    let bar = &[b'-'; 80];
    line(out, &[before, bar, behind])?;
    line(out, &[before, b"-- ", title, behind])?;
    line(out, &[before, bar, behind])
}

fn line(out: &mut dyn Write, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| out.write_all(part))?;
    out.write_all(b"\n")
}

fn metadata(out: &mut dyn Write, model: &Model, style: &Style) -> io::Result<()> {
    section(out, style, b"Metadata")?;
    line(out, &[b"Invocation:       ", &style.invocation])?;
    let headers: Vec<_> = model.inputs.iter().map(|(_, header)| header).collect();
    if headers.iter().all(|header| header.desc == headers[0].desc) {
        headers[0].desc.iter().try_for_each(|desc| line(out, &[desc]))?;
    } else {
        for (i, header) in (1..).zip(&headers) {
            writeln!(out, "Description {i}:")?;
            header.desc.iter().try_for_each(|desc| line(out, &[desc]))?;
        }
    }
    if let [header] = headers[..] {
        line(out, &[b"Command:          ", &header.cmd])?;
    } else {
        for (i, header) in headers.iter().enumerate() {
            let label = format!("Command {}:", i + 1);
            match headers[..i].iter().position(|other| other.cmd == header.cmd) {
                Some(first) => writeln!(out, "{label:<17} (same as Command {})", first + 1)?,
                None => line(out, &[format!("{label:<17} ").as_bytes(), &header.cmd])?,
            }
        }
    }
    let all: Vec<usize> = (0..model.profile.header.events.len()).collect();
    writeln!(out, "Events recorded:  {}", model.names(&all).join(" "))?;
    writeln!(out, "Events shown:     {}", model.names(&model.show).join(" "))?;
    writeln!(out, "Event sort order: {}", model.names(&model.sort).join(" "))?;
    writeln!(out, "Threshold:        {}%", number(style.threshold))?;
    writeln!(out, "Annotation:       {}", if style.annotate { "on" } else { "off" })?;
    out.write_all(b"\n")
}

fn summary(out: &mut dyn Write, model: &Model, style: &Style) -> io::Result<()> {
    section(out, style, b"Summary")?;
    let mut columns = Columns::new(model, style.percentages);
    columns.expect(model.profile.total());
    columns.seal();
    columns.heading(out, "", "")?;
    out.write_all(b"\n")?;
    columns.row(out, model.profile.total())?;
    out.write_all(b"PROGRAM TOTALS\n\n")
}

/// The words of a table.
struct Words {
    title: &'static [u8],
    heading: &'static str,
    mark: &'static str,
}

const FILES: Words = Words { title: b"File:function summary", heading: "file:function", mark: "< " };
const FUNCTIONS: Words = Words { title: b"Function:file summary", heading: "function:file", mark: "> " };

fn table(out: &mut dyn Write, model: &Model, style: &Style, outers: &[Outer<'_>], words: &Words) -> anyhow::Result<()> {
    let Palette { name: name_color, reset, .. } = style.palette;
    let mut columns = Columns::new(model, style.percentages);
    let mut cumulative = model.zeros();
    for outer in outers {
        add(&mut cumulative, &outer.counts)?;
        columns.expect_cumulative(&outer.counts, &cumulative);
        outer.inner.iter().for_each(|inner| columns.expect(&inner.counts));
    }
    columns.seal();
    section(out, style, words.title)?;
    columns.heading(out, "  ", words.heading)?;
    out.write_all(b"\n")?;
    cumulative.fill(0);
    for outer in outers {
        add(&mut cumulative, &outer.counts)?;
        out.write_all(words.mark.as_bytes())?;
        columns.cumulative_row(out, &outer.counts, &cumulative)?;
        let [before, behind] = [name_color, reset].map(str::as_bytes);
        match &outer.inner[..] {
            [inner] if inner.counts.view() == outer.counts.view() => {
                line(out, &[before, outer.name, behind, b":", inner.name])?
            }
            _ => {
                line(out, &[before, outer.name, behind, b":"])?;
                for inner in &outer.inner {
                    out.write_all(b"  ")?;
                    columns.row(out, &inner.counts)?;
                    line(out, &[b"  ", inner.name])?;
                }
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn annotated(out: &mut dyn Write, model: &Model, style: &Style, source: &Source) -> anyhow::Result<()> {
    section(out, style, &[b"Annotated source file: ", &source.name[..]].concat())?;
    let refusal: &[u8] = match &source.text {
        Text::Known(text) => {
            for input in &source.outdated {
                let head = format!("@ Original source files are all newer than data file '{input}':");
                let files = source.originals.iter().map(|name| [b"@ - ", &name[..]].concat());
                let rest = [b"@ Annotations may not be correct.".to_vec()];
                let lines: Vec<Vec<u8>> = [head.into_bytes()].into_iter().chain(files).chain(rest).collect();
                warning(out, style, &lines)?;
                out.write_all(b"\n")?;
            }
            return Ok(known(out, model, style, source, text)?);
        }
        Text::Changed(texts) => {
            let Some(pair) = &model.pair else { return Ok(()) };
            let lines = growth::lines(model, pair, &source.name, texts.each_ref().map(|text| &text[..]))?;
            return Ok(grown::source(out, model, style, source, &lines)?);
        }
        Text::Unreadable => b"Unannotated because one or more of these original files are unreadable:",
        Text::NotIdentical => b"Unannotated because two or more of these original files are not identical:",
    };
    line(out, &[refusal])?;
    source.originals.iter().try_for_each(|name| line(out, &[b"- ", name]))?;
    Ok(out.write_all(b"\n")?)
}

fn warning(out: &mut dyn Write, style: &Style, lines: &[Vec<u8>]) -> io::Result<()> {
    let Palette { warning, reset, .. } = style.palette;
    // One less than other bars: as long as the words below it.
    let bar = "@".repeat(79);
    writeln!(out, "{warning}{bar}\n{}@@\n{bar}", "@@ WARNING ".repeat(7))?;
    lines.iter().try_for_each(|text| line(out, &[text]))?;
    writeln!(out, "{bar}{reset}")
}

fn known(out: &mut dyn Write, model: &Model, style: &Style, source: &Source, text: &[u8]) -> io::Result<()> {
    let mut columns = Columns::new(model, style.percentages);
    source.lines.values().for_each(|counts| columns.expect(counts));
    columns.seal();
    columns.heading(out, "", "")?;
    out.write_all(b"\n")?;
    if let Some(counts) = source.lines.get(&0) {
        columns.row(out, counts)?;
        out.write_all(b"<unknown (line 0)>\n\n")?;
    }
    let last = chunks(out, style, source, text, &mut columns)?;
    let beyond: Vec<_> = source.lines.range(last + 1..).filter(|(number, _)| **number > 0).collect();
    if !beyond.is_empty() {
        out.write_all(b"\n")?;
        for (number, counts) in beyond {
            columns.row(out, counts)?;
            writeln!(out, "<bogus line {number}>")?;
        }
        out.write_all(b"\n")?;
        let text = [b"@@ Information recorded about lines past the end of '", &source.name[..], b"'."].concat();
        warning(out, style, &[text])?;
    }
    // A file of which no line is known ends after its counts.
    if source.lines.keys().any(|number| *number > 0) {
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Prints the parts of a text that have counts; gives the last line that the text has, as far as it was looked at.
fn chunks(
    out: &mut dyn Write,
    style: &Style,
    source: &Source,
    text: &[u8],
    columns: &mut Columns<'_>,
) -> io::Result<u64> {
    let Palette { faint, reset, .. } = style.palette;
    let mark = |out: &mut dyn Write, number| writeln!(out, "{faint}-- line {number} {:->40}{reset}", "");
    let mut lines = source_text::lines(text);
    let mut last = 0;
    for (low, high) in source_text::ranges(source.lines.keys().copied(), style.context) {
        while last < low - 1 {
            let Some((number, _)) = lines.next() else { return Ok(last) };
            last = number;
        }
        if low != 1 {
            mark(out, low)?;
        }
        while last < high {
            let Some((number, content)) = lines.next() else { return Ok(last) };
            last = number;
            match source.lines.get(&number) {
                Some(counts) => columns.row(out, counts)?,
                None => columns.missing(out)?,
            }
            line(out, &[content])?;
        }
        mark(out, high)?;
    }
    Ok(last)
}

fn annotation_summary(out: &mut dyn Write, model: &Model, style: &Style, coverage: &Coverage) -> io::Result<()> {
    section(out, style, b"Annotation summary")?;
    let mut columns = Columns::new(model, style.percentages);
    coverage.sums.iter().for_each(|counts| columns.expect(counts));
    columns.seal();
    columns.heading(out, "", "")?;
    out.write_all(b"\n")?;
    for (counts, label) in coverage.sums.iter().zip(LABELS) {
        columns.row(out, counts)?;
        line(out, &[label.as_bytes()])?;
    }
    out.write_all(b"\n")
}

/// One line for standard error about a bound that was passed.
pub(crate) fn verdict_line(verdict: &Verdict<'_>) -> String {
    use cg_format::show::commas;
    let Verdict { bound, before, after, growth, .. } = verdict;
    let growth = growth.map_or_else(|| "from nothing".to_owned(), |growth| format!("by {growth:.2}%"));
    let (before, after) = (commas(*before), commas(*after));
    format!("{} grew {growth}, from {before} to {after}: more than {}%", bound.event, number(bound.percent))
}
