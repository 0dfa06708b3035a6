//! Rows of shared lines as text: what is counted, who uses which bytes, what follows from it. Invariant: what is said of a row is that
//! row's; nothing is left out here.

use std::io::{self, Write};

use cg_format::mem::sharing::{Moved, Order, Shared, SharedUse, Which};
use cg_format::mem::{Kind, Mem, UNKNOWN};
use cg_format::show::commas as thousands;

use super::{Counted, plain_name};
use crate::source::Sources;

/// What is said behind rows that tell of an order.
pub(super) fn said_of_order(out: &mut dyn Write, order: &Order) -> io::Result<()> {
    let n = |n: u64| thousands(n.into());
    let [reads, writes, upgrades] = order.moves.map(n);
    writeln!(
        out,
        "\nAs the threads of this run took turns, and the next run's will not: lines were read {reads} times and written {writes} times when another \
         thread had written them last, and written {upgrades} times when others had read them since (upgrades)"
    )?;
    if order.handed_over != [0; 3] {
        let [reads, writes, upgrades] = order.handed_over.map(n);
        writeln!(
            out,
            "Lines that are not shared, but handed over, beside these: {reads}, {writes} and {upgrades} times"
        )?;
    }
    if order.unplaced > 0 {
        writeln!(out, "There was no room to know who had the lines of {} accesses", n(order.unplaced))?;
    }
    Ok(())
}

/// A line of the table: lines, what is counted of them, and what is behind that.
pub(super) struct Said {
    pub(super) counts: [Option<String>; 3],
    pub(super) text: String,
}

pub(super) fn title(which: Which, names: &[String]) -> String {
    let which = match which {
        Which::False => "FALSE",
        Which::True => "true ",
    };
    format!("{which}  {}", names.join(", "))
}

/// A row: its sums, who uses what, and what follows from it.
pub(super) fn of_row(row: &Shared, counted: Counted, mem: &Mem, line: u64, sources: &mut Sources<'_>) -> Vec<Said> {
    let mut names: Vec<String> = Vec::new();
    let mut uses = Vec::new();
    for used in &row.uses {
        let name = match used.object.and_then(|n| mem.objects.get(n)) {
            Some(object) if object.kind == Kind::Heap => sources.variable(object),
            _ => plain_name(mem, used),
        };
        let text = format!("  T{} {}{}{}", used.thread, bytes(used, &name), places(used), from(used));
        if !names.contains(&name) {
            names.push(name);
        }
        let count = |n: u64| Some(thousands(n.into()));
        let [first, second] = counted.used(used);
        uses.push(Said { counts: [None, count(first), count(second)], text });
    }
    let sums = counted.row(row).map(|n| Some(thousands(n.into())));
    let follows = match row.which {
        Which::False => {
            format!("no byte that one writes is used by another: give each of them lines of {line} bytes of its own")
        }
        Which::True => format!("written by one and used by another: bytes {} of the line", met(row)),
    };
    let first = Said { counts: sums, text: title(row.which, &names) };
    let last = Said { counts: [None, None, None], text: format!("    {follows}") };
    std::iter::once(first).chain(uses).chain([last]).collect()
}

/// `reads and writes counts+0..7`.
fn bytes(used: &SharedUse, name: &str) -> String {
    let of = |runs: &[(u64, u64)]| {
        let run = |(from, to): &(u64, u64)| {
            let at = |n: u64| i128::from(used.offset) + i128::from(n);
            format!("{}..{}", at(*from), at(to.saturating_sub(1)))
        };
        format!("{name}+{}", runs.iter().map(run).collect::<Vec<_>>().join(","))
    };
    match (&used.read[..], &used.written[..]) {
        (read, []) => format!("reads {}", of(read)),
        ([], written) => format!("writes {}", of(written)),
        (read, written) if read == written => format!("reads and writes {}", of(read)),
        (read, written) => format!("reads {}, writes {}", of(read), of(written)),
    }
}

fn places(used: &SharedUse) -> String {
    let place = |place: &cg_format::mem::sharing::SourceLine| match place.line {
        0 if place.function == UNKNOWN => None,
        0 => Some(place.function.clone()),
        line => Some(format!("{}:{line} {}", place.file.rsplit('/').next().unwrap_or_default(), place.function)),
    };
    match used.places.iter().filter_map(place).collect::<Vec<_>>() {
        none if none.is_empty() => String::new(),
        all => format!("  {}", all.join(", ")),
    }
}

/// From whom the thread has got the lines, if that was told.
fn from(used: &SharedUse) -> String {
    let one =
        |moved: &Moved| format!("T{} {}", moved.from, thousands(i128::from(moved.reads) + i128::from(moved.writes)));
    match &used.moves[..] {
        [] => String::new(),
        all => format!("  (from {})", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

/// The bytes that one thread writes and another one uses.
fn met(row: &Shared) -> String {
    let has = |runs: &[(u64, u64)], byte: u64| runs.iter().any(|(from, to)| (*from..*to).contains(&byte));
    let meets = |byte: u64| {
        row.uses.iter().filter(|used| has(&used.written, byte)).any(|writer| {
            let other = |used: &&SharedUse| used.thread != writer.thread;
            row.uses.iter().filter(other).any(|used| has(&used.read, byte) || has(&used.written, byte))
        })
    };
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for byte in (0..64).filter(|byte| meets(*byte)) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == byte => *last = byte,
            _ => runs.push((byte, byte)),
        }
    }
    runs.iter().map(|(from, to)| format!("{from}..{to}")).collect::<Vec<_>>().join(",")
}

pub(super) fn table(out: &mut dyn Write, rows: &[Said], counted: Counted) -> io::Result<()> {
    let titles = counted.titles();
    let mut widths: Vec<usize> = titles.iter().map(|title| title.len()).collect();
    for row in rows {
        let lengths = row.counts.iter().map(|cell| cell.as_ref().map_or(0, String::len));
        widths.iter_mut().zip(lengths).for_each(|(width, length)| *width = length.max(*width));
    }
    let head: String = titles.iter().zip(&widths).map(|(title, width)| format!("{title:_>width$}  ")).collect();
    writeln!(out, "{head}sharing")?;
    for row in rows {
        if row.counts[0].is_some() {
            writeln!(out)?;
        }
        let cells = row.counts.iter().zip(&widths);
        let text: String = cells.map(|(cell, width)| format!("{:>width$}  ", cell.as_deref().unwrap_or(""))).collect();
        writeln!(out, "{text}{}", row.text)?;
    }
    Ok(())
}
