//! Columns of counts: how wide they are and what stands in a cell.
//!
//! A cell is a count and, unless switched off, one or two percentages of the event's total. Counts are aligned on the
//! right, and so are percentages among themselves. All rows of a table must be announced before the first is printed.

use std::io::{self, Write};

use cg_format::show::{Cell, Total};

use crate::counts::View;
use crate::model::Model;

/// A table's columns, one for each shown event.
pub(crate) struct Columns<'a> {
    model: &'a Model,
    percentages: bool,
    /// What counts are percentages of, for each event of the profile.
    totals: Vec<Total>,
    expected: Vec<Expected>,
    widths: Vec<Widths>,
    /// Room for a row, used again and again.
    text: Vec<u8>,
}

/// What stands in a column. Among counts of one sign the largest is the widest, and so is its percentage.
#[derive(Clone, Copy, Default)]
struct Expected {
    plain: Extremes,
    with_cumulative: Extremes,
    cumulative: Extremes,
}

/// The smallest and the largest of some counts.
#[derive(Clone, Copy)]
struct Extremes([i128; 2]);

impl Default for Extremes {
    fn default() -> Self {
        Self([i128::MAX, i128::MIN])
    }
}

impl Extremes {
    fn add(&mut self, count: i128) {
        let [least, most] = self.0;
        self.0 = [least.min(count), most.max(count)];
    }

    /// Both, if there were any counts.
    fn counts(self) -> impl Iterator<Item = i128> {
        let [least, most] = self.0;
        self.0.into_iter().filter(move |_| least <= most)
    }
}

#[derive(Clone, Copy, Default)]
struct Widths {
    count: usize,
    /// Of the first percentage, with the blank and the bracket before it.
    first: usize,
    /// Of the cumulative percentage, with the blank before it; only some tables have it.
    second: usize,
    /// Of the closing bracket, if any percentage is shown.
    close: usize,
}

impl Widths {
    fn whole(self) -> usize {
        self.count + self.percentages()
    }

    fn percentages(self) -> usize {
        self.first + self.second + self.close
    }
}

impl<'a> Columns<'a> {
    pub(crate) fn new(model: &'a Model, percentages: bool) -> Self {
        let columns = model.show.len();
        let (expected, widths) = (vec![Expected::default(); columns], vec![Widths::default(); columns]);
        let totals = model.profile.total().iter().map(|total| Total::new(*total)).collect();
        Self { model, percentages, totals, expected, widths, text: Vec::new() }
    }

    /// Announces a row of counts.
    pub(crate) fn expect<'c>(&mut self, counts: impl Into<View<'c>>) {
        let counts = counts.into();
        for (expected, event) in self.expected.iter_mut().zip(&self.model.show) {
            expected.plain.add(counts.of(*event));
        }
    }

    /// Announces a row of counts with cumulative counts.
    pub(crate) fn expect_cumulative<'c>(&mut self, counts: impl Into<View<'c>>, cumulative: &[i128]) {
        let counts = counts.into();
        for (expected, event) in self.expected.iter_mut().zip(&self.model.show) {
            expected.with_cumulative.add(counts.of(*event));
            expected.cumulative.add(cumulative[*event]);
        }
    }

    /// No more rows: columns become as wide as what stands in them and as their headings.
    pub(crate) fn seal(&mut self) {
        let names = self.model.names(&self.model.show);
        for (i, (event, name)) in self.model.show.iter().zip(names).enumerate() {
            let Expected { plain, with_cumulative, cumulative } = self.expected[i];
            let counts = || plain.counts().chain(with_cumulative.counts());
            // A count of 0 without a cumulative percentage has none at all.
            let first = plain.counts().filter(|count| *count != 0).chain(with_cumulative.counts());
            let share = |count| length(|cell| cell.percent(self.totals[*event].percent(count)));
            let mut width = Widths {
                count: counts().map(|count| length(|cell| cell.commas(count))).max().unwrap_or(0),
                ..Widths::default()
            };
            if self.percentages {
                // The blank and the bracket, or the comma and the blank, before each of them.
                width.first = first.map(|count| share(count) + 2).max().unwrap_or(0);
                width.second = cumulative.counts().map(|count| share(count) + 2).max().unwrap_or(0);
                width.close = usize::from(width.first > 0);
            }
            width.count = width.count.max(name.chars().count().saturating_sub(width.percentages()));
            self.widths[i] = width;
        }
        let cells = self.widths.iter().map(|width| width.whole() + 1);
        self.text.resize(cells.sum::<usize>() + 1, b' ');
    }

    /// Prints the heading and ends the line after `rest`.
    pub(crate) fn heading(&self, out: &mut dyn Write, indent: &str, rest: &str) -> io::Result<()> {
        out.write_all(indent.as_bytes())?;
        for (width, name) in self.widths.iter().zip(self.model.names(&self.model.show)) {
            let missing = width.whole().saturating_sub(name.chars().count());
            write!(out, "{name}{:_<missing$} ", "")?;
        }
        if !rest.is_empty() {
            write!(out, " {rest}")?;
        }
        out.write_all(b"\n")
    }

    /// Prints the cells of a row and the two blanks after them.
    pub(crate) fn row<'c>(&mut self, out: &mut dyn Write, counts: impl Into<View<'c>>) -> io::Result<()> {
        let (counts, percentages) = (counts.into(), self.percentages);
        self.cells(out, |cell, width, event, total| {
            let count = counts.of(event);
            cell.blanks(width.second);
            if percentages && count != 0 {
                cell.byte(b')');
                cell.percent(total.percent(count));
                cell.byte(b'(');
            }
            cell.blanks(width.percentages());
            cell.commas(count);
        })
    }

    /// Prints the cells of a row with cumulative percentages and the two blanks after them.
    pub(crate) fn cumulative_row<'c>(
        &mut self,
        out: &mut dyn Write,
        counts: impl Into<View<'c>>,
        cumulative: &[i128],
    ) -> io::Result<()> {
        let (counts, percentages) = (counts.into(), self.percentages);
        self.cells(out, |cell, width, event, total| {
            if percentages {
                cell.byte(b')');
                cell.percent(total.percent(cumulative[event]));
                cell.blanks(width.second);
                cell.byte(b',');
                cell.percent(total.percent(counts.of(event)));
                cell.byte(b'(');
                cell.blanks(width.percentages());
            }
            cell.commas(counts.of(event));
        })
    }

    /// Prints the cells of a line without counts and the two blanks after them.
    pub(crate) fn missing(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.cells(out, |cell, width, _, _| {
            cell.blanks(width.percentages());
            cell.byte(b'.');
        })
    }

    /// Prints a row of cells, each filled from its end by `fill`, and the two blanks after them.
    fn cells(
        &mut self,
        out: &mut dyn Write,
        mut fill: impl FnMut(&mut Cell<'_>, Widths, usize, Total),
    ) -> io::Result<()> {
        // Where cells end does not depend on what they hold, so the processor can work on several of them.
        let mut place = self.text.len() - 1;
        let mut cell = Cell::new(&mut self.text);
        for (width, event) in self.widths.iter().zip(&self.model.show).rev() {
            cell.at(place - 1);
            fill(&mut cell, *width, *event, self.totals[*event]);
            place -= width.whole() + 1;
        }
        out.write_all(&self.text)
    }
}

/// How long a cell is that `fill` fills.
fn length(fill: impl FnOnce(&mut Cell<'_>)) -> usize {
    let mut room = [0; Cell::WIDEST];
    let mut cell = Cell::new(&mut room);
    fill(&mut cell);
    cell.text().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::cachegrind::Profile;
    use cg_format::show::{commas, percent, percent_text};
    use std::collections::HashMap;

    /// Columns whose widths come from every single cell: the slow twin of [`Columns`].
    fn naive(model: &Model, percentages: bool, rows: &[(Vec<i128>, Option<Vec<i128>>)]) -> String {
        let cells = |counts: &[i128], cumulative: Option<&[i128]>, event: usize| {
            let share = |counts: &[i128]| percent_text(percent(counts[event], model.profile.total()[event]));
            let shown = percentages && (counts[event] != 0 || cumulative.is_some());
            let first = if shown { format!(" ({}", share(counts)) } else { String::new() };
            let second = cumulative.filter(|_| percentages).map_or_else(String::new, |all| format!(" {}", share(all)));
            (commas(counts[event]), first, second)
        };
        let mut text = String::new();
        for (counts, cumulative) in rows {
            for event in &model.show {
                let mut widths = [0; 3];
                for (counts, cumulative) in rows {
                    let (count, first, second) = cells(counts, cumulative.as_deref(), *event);
                    let comma = usize::from(!second.is_empty());
                    for (width, length) in widths.iter_mut().zip([count.len(), first.len(), second.len() + comma]) {
                        *width = (*width).max(length);
                    }
                }
                let close = usize::from(widths[1] > 0);
                let name = &model.profile.header.events[*event];
                widths[0] = widths[0].max(name.len().saturating_sub(widths[1] + widths[2] + close));
                let (count, first, second) = cells(counts, cumulative.as_deref(), *event);
                text += &format!("{count:>0$}", widths[0]);
                text += &format!("{first:>0$}", widths[1]);
                if second.is_empty() {
                    text += if first.is_empty() { &" "[..close] } else { ")" };
                    text += &" ".repeat(widths[2]);
                } else {
                    text += &format!(",{second:>0$})", widths[2] - 1);
                }
                text.push(' ');
            }
            text += " \n";
        }
        text
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let long = "x".repeat(300);
        for round in 0..300 {
            let mut profile = Profile::new(["Ir", "D1mr", &long]);
            let mut rows = Vec::new();
            for line in 0..random(5) {
                let counts: Vec<i128> = (0..3)
                    .map(|_| match random(4) {
                        0 => 0,
                        1 => i128::from(random(20)) - 10,
                        2 => i128::from(random(1 << 40)) - (1 << 39),
                        _ => i128::from(random(1 << 30)) * 1_000_000_000_000_000_000_000,
                    })
                    .collect();
                profile.add(b"a.c", b"f", line, &counts).unwrap();
                let cumulative = (round % 3 > 0 && random(2) == 0).then(|| profile.total().to_vec());
                rows.push((counts, cumulative));
            }
            let model = Model::new(profile, Vec::new(), None, HashMap::new());
            for percentages in [true, false] {
                let mut columns = Columns::new(&model, percentages);
                for (counts, cumulative) in &rows {
                    match cumulative {
                        Some(cumulative) => columns.expect_cumulative(counts, cumulative),
                        None => columns.expect(counts),
                    }
                }
                columns.seal();
                let mut out = Vec::new();
                for (counts, cumulative) in &rows {
                    match cumulative {
                        Some(cumulative) => columns.cumulative_row(&mut out, counts, cumulative).unwrap(),
                        None => columns.row(&mut out, counts).unwrap(),
                    }
                    out.push(b'\n');
                }
                assert_eq!(String::from_utf8(out).unwrap(), naive(&model, percentages, &rows), "round {round}");
            }
        }
    }
}
