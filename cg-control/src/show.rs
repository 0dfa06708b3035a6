//! How a status is shown.

use std::io::Write;

use anyhow::{Context, bail};
use callgrind_control_protocol::Status;
use cg_format::show::commas;

/// The name of the program of a run.
pub(crate) fn program(status: &Status) -> &str {
    let path = status.command.split_whitespace().next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or(path)
}

/// One line about a run: its command with its arguments, and nothing behind that if `figures` follow, which say the rest;
/// programs look for that line.
pub(crate) fn heading(out: &mut dyn Write, pid: u32, status: &Status, figures: bool) -> anyhow::Result<()> {
    let command = Some(status.command.trim()).filter(|command| !command.is_empty()).unwrap_or("?");
    let off = if status.instrumentation || figures { "" } else { " (instrumentation off)" };
    writeln!(out, "PID {pid}: {command}{off}").context("standard output")
}

/// The figures of a run.
pub(crate) fn figures(out: &mut dyn Write, status: &Status) -> anyhow::Result<()> {
    let figures = status.figures.iter().map(|(name, value)| (name.as_str(), commas(i128::from(*value))));
    let instrumentation = if status.instrumentation { "on" } else { "off" };
    let lines: Vec<(&str, String)> = [
        ("instrumentation", instrumentation.to_owned()),
        ("part", status.part.to_string()),
        ("threads", status.threads.len().to_string()),
        ("events", status.events.join(" ")),
    ]
    .into_iter()
    .chain(figures)
    .collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    for (name, value) in lines {
        writeln!(out, "  {:<width$} {value}", format!("{name}:")).context("standard output")?;
    }
    Ok(())
}

/// The indices of the events that a list names; all for an empty one.
pub(crate) fn events(status: &Status, list: &str) -> anyhow::Result<Vec<usize>> {
    if list.is_empty() {
        return Ok((0..status.events.len()).collect());
    }
    list.split(',')
        .map(|name| match status.events.iter().position(|event| event == name) {
            Some(at) => Ok(at),
            None => bail!("event `{name}` is not counted there; the run counts {}", status.events.join(" ")),
        })
        .collect()
}

/// Counts of the process, if it knows them, and of its threads.
pub(crate) fn totals(out: &mut dyn Write, status: &Status, events: &[usize]) -> anyhow::Result<()> {
    let process = Some((&status.totals[..], "process".to_owned())).filter(|(totals, _)| !totals.is_empty());
    let threads = status.threads.iter().map(|thread| (&thread.total[..], format!("thread {}", thread.id)));
    let rows: Vec<(&[u64], String)> = process.into_iter().chain(threads).collect();
    table(out, status, events, &rows)
}

/// Calls that are going on, the innermost first.
pub(crate) fn stacks(out: &mut dyn Write, status: &Status, events: Option<&[usize]>) -> anyhow::Result<()> {
    for thread in &status.threads {
        writeln!(out, "  thread {}", thread.id).context("standard output")?;
        let rows: Vec<(&[u64], String)> = thread
            .frames
            .iter()
            .rev()
            .enumerate()
            .map(|(depth, frame)| {
                let calls = commas(i128::from(frame.calls));
                (&frame.cost[..], format!("[{depth:>2}] {} ({calls}x)", frame.function))
            })
            .collect();
        table(out, status, events.unwrap_or_default(), &rows)?;
    }
    Ok(())
}

fn table(out: &mut dyn Write, status: &Status, events: &[usize], rows: &[(&[u64], String)]) -> anyhow::Result<()> {
    let cell =
        |costs: &[u64], event: usize| costs.get(event).map_or_else(|| "-".to_owned(), |cost| commas((*cost).into()));
    let widths: Vec<usize> = events
        .iter()
        .map(|event| {
            rows.iter().map(|(costs, _)| cell(costs, *event).len()).fold(status.events[*event].len(), usize::max)
        })
        .collect();
    let line = |cells: Vec<String>| -> String {
        cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}  ")).collect()
    };
    if !events.is_empty() {
        let heading = line(events.iter().map(|event| status.events[*event].clone()).collect());
        writeln!(out, "  {}", heading.trim_end()).context("standard output")?;
    }
    for (costs, name) in rows {
        let cells = line(events.iter().map(|event| cell(costs, *event)).collect());
        writeln!(out, "  {cells}{name}").context("standard output")?;
    }
    Ok(())
}
