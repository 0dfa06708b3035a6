//! What grew, as text: a table of functions for each event, and changed sources with the counts of both sides.
//!
//! Columns are as wide as what stands in them. Nothing of it is in a report unless it was asked for, so the reference's layout
//! stays what it is.

use std::io::{self, Write};

use cg_cli::color::Palette;
use cg_cli::source_text;
use cg_format::show::commas;

use crate::growth::{self, ChangedLine, FunctionVerdict, Growth};
use crate::model::Model;
use crate::source::Source;
use crate::style::{Style, number};

/// How many functions standard error names for a bound.
const MOST_TOLD: usize = 10;

/// A change, with its sign.
pub(crate) fn signed(count: i128) -> String {
    if count > 0 { format!("+{}", commas(count)) } else { commas(count) }
}

/// A growth.
pub(crate) fn percent(growth: Option<f64>) -> String {
    growth.map_or_else(|| "new".to_owned(), |growth| format!("{growth:+.2}%"))
}

/// Prints a table for each shown event.
pub(crate) fn functions(out: &mut dyn Write, model: &Model, changed: &[Growth<'_>]) -> io::Result<()> {
    for event in &model.show {
        let all = growth::of_event(changed, *event);
        let name = model.names(&[*event])[0];
        if all.is_empty() {
            writeln!(out, "{name}: no function changed\n")?;
            continue;
        }
        let heading = [format!("{name} before"), "after".to_owned(), "change".to_owned(), "growth".to_owned()];
        let cells = |growth: &&Growth<'_>| {
            let [before, after] = &growth.sides;
            let change = signed(growth.change(*event));
            [commas(before[*event]), commas(after[*event]), change, percent(growth.percent(*event))]
        };
        let shown: Vec<[String; 4]> = all.iter().take(growth::MOST).map(cells).collect();
        let widths = widths(shown.iter().chain([&heading]));
        row(out, &heading, &widths)?;
        out.write_all(b"file:function\n\n")?;
        for (cells, growth) in shown.iter().zip(&all) {
            row(out, cells, &widths)?;
            out.write_all(&[growth.file, b":", growth.function, b"\n"].concat())?;
        }
        if all.len() > growth::MOST {
            writeln!(out, "... and {} more", all.len() - growth::MOST)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn widths<'c, const N: usize>(rows: impl Iterator<Item = &'c [String; N]>) -> [usize; N] {
    rows.fold([0; N], |widths, row| std::array::from_fn(|i| widths[i].max(row[i].chars().count())))
}

fn row(out: &mut dyn Write, cells: &[String], widths: &[usize]) -> io::Result<()> {
    cells.iter().zip(widths).try_for_each(|(cell, width)| write!(out, "{cell:>width$}  "))
}

/// Prints a changed source: lines of the first text alone are marked by `-`, those of the second by `+`.
pub(crate) fn source(
    out: &mut dyn Write,
    model: &Model,
    style: &Style,
    source: &Source,
    lines: &[ChangedLine<'_>],
) -> io::Result<()> {
    let Palette { faint, reset, .. } = style.palette;
    let names = model.pair.iter().flat_map(|pair| &pair.originals).map(|names| names.get(&source.name));
    for (mark, name) in ["-", "+"].into_iter().zip(names.map(|names| names.and_then(|names| names.first()))) {
        let name = name.unwrap_or(&source.name);
        out.write_all(&[mark.as_bytes(), b" ", name, b"\n"].concat())?;
    }
    out.write_all(b"\n")?;
    // Three cells for each event.
    let cells = |line: &ChangedLine<'_>| -> Vec<String> {
        let cells = model.show.iter().flat_map(|event| {
            let [before, after] = &line.counts;
            let of = |side: &Option<Vec<i128>>| side.as_ref().map(|counts| counts[*event]);
            let (before, after) = (of(before), of(after));
            let text = |count: Option<i128>| count.map_or_else(|| ".".to_owned(), commas);
            let change = (before.is_some() || after.is_some()).then(|| after.unwrap_or(0) - before.unwrap_or(0));
            [text(before), text(after), change.map_or_else(|| ".".to_owned(), signed)]
        });
        cells.collect()
    };
    let heading: Vec<String> = model
        .names(&model.show)
        .into_iter()
        .flat_map(|name| [format!("{name} before"), "after".to_owned(), "change".to_owned()])
        .collect();
    let mut widths: Vec<usize> = heading.iter().map(String::len).collect();
    for line in lines {
        widths.iter_mut().zip(cells(line)).for_each(|(width, cell)| *width = (*width).max(cell.len()));
    }
    row(out, &heading, &widths)?;
    out.write_all(b"\n\n")?;
    let counted = |line: &ChangedLine<'_>| line.counts.iter().any(Option::is_some);
    let places = (1..).zip(lines).filter(|(_, line)| counted(line)).map(|(place, _)| place);
    for (low, high) in source_text::ranges(places, style.context) {
        let (low, high) = (low as usize - 1, (high as usize).min(lines.len()));
        let mark = lines[low].numbers[1].or(lines[low].numbers[0]).unwrap_or(1);
        if low > 0 {
            writeln!(out, "{faint}-- line {mark} {:->40}{reset}", "")?;
        }
        for line in &lines[low..high] {
            row(out, &cells(line), &widths)?;
            let mark: &[u8] = match line.numbers {
                [Some(_), None] => b"- ",
                [None, Some(_)] => b"+ ",
                _ => b"  ",
            };
            out.write_all(&[mark, line.text, b"\n"].concat())?;
        }
    }
    out.write_all(b"\n")
}

/// Lines for standard error about functions that a bound does not let pass.
pub(crate) fn verdict_lines(verdict: &FunctionVerdict<'_>) -> Vec<String> {
    let FunctionVerdict { bound, event, failed } = verdict;
    let mut lines: Vec<String> = failed
        .iter()
        .take(MOST_TOLD)
        .map(|growth| {
            let [before, after] = growth.sides.each_ref().map(|side| commas(side[*event]));
            let by =
                growth.percent(*event).map_or_else(|| "from nothing".to_owned(), |percent| format!("by {percent:.2}%"));
            let name = String::from_utf8_lossy(&[growth.file, b":", growth.function].concat()).into_owned();
            let bound_percent = number(bound.percent);
            format!("{name}: {} grew {by}, from {before} to {after}: more than {bound_percent}%", bound.event)
        })
        .collect();
    if failed.len() > MOST_TOLD {
        lines.push(format!("... and {} more functions", failed.len() - MOST_TOLD));
    }
    lines
}
