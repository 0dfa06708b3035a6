//! Columns of counts: how wide they are and what stands in a cell.
//!
//! A cell is a count and, unless switched off, one or two percentages of the event's total. Counts are aligned on the
//! right, and so are percentages among themselves. All rows of a table must be announced before the first is printed.

use std::io::{self, Write};

use cg_format::show::{commas, percent, percent_text};

use crate::model::Model;

/// A table's columns, one for each shown event.
pub(crate) struct Columns<'a> {
    model: &'a Model,
    percentages: bool,
    widths: Vec<Widths>,
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
    fn percentages(self) -> usize {
        self.first + self.second + self.close
    }
}

impl<'a> Columns<'a> {
    pub(crate) fn new(model: &'a Model, percentages: bool) -> Self {
        Self { model, percentages, widths: vec![Widths::default(); model.show.len()] }
    }

    /// Announces a row of counts.
    pub(crate) fn expect(&mut self, counts: &[i128]) {
        for (i, event) in self.model.show.iter().enumerate() {
            let percentage = self.percentage(*event, counts[*event]);
            let width = &mut self.widths[i];
            width.count = width.count.max(commas(counts[*event]).len());
            if let Some(text) = percentage {
                width.first = width.first.max(text.len());
                width.close = 1;
            }
        }
    }

    /// Announces a row of counts with cumulative counts.
    pub(crate) fn expect_cumulative(&mut self, counts: &[i128], cumulative: &[i128]) {
        for (i, event) in self.model.show.iter().enumerate() {
            let [first, second] = [counts, cumulative].map(|counts| self.full_percentage(*event, counts[*event]));
            let width = &mut self.widths[i];
            width.count = width.count.max(commas(counts[*event]).len());
            if self.percentages {
                width.first = width.first.max(first.len() + 2);
                // The comma and the blank before it.
                width.second = width.second.max(second.len() + 2);
                width.close = 1;
            }
        }
    }

    /// No more rows: columns become as wide as their headings.
    pub(crate) fn seal(&mut self) {
        for (width, name) in self.widths.iter_mut().zip(self.model.names(&self.model.show)) {
            width.count = width.count.max(name.chars().count().saturating_sub(width.percentages()));
        }
    }

    /// Prints the heading and ends the line after `rest`.
    pub(crate) fn heading(&self, out: &mut dyn Write, indent: &str, rest: &str) -> io::Result<()> {
        out.write_all(indent.as_bytes())?;
        for (width, name) in self.widths.iter().zip(self.model.names(&self.model.show)) {
            let missing = (width.count + width.percentages()).saturating_sub(name.chars().count());
            write!(out, "{name}{:_<missing$} ", "")?;
        }
        if !rest.is_empty() {
            write!(out, " {rest}")?;
        }
        out.write_all(b"\n")
    }

    /// Prints the cells of a row and the two blanks after them.
    pub(crate) fn row(&self, out: &mut dyn Write, counts: &[i128]) -> io::Result<()> {
        for (width, event) in self.widths.iter().zip(&self.model.show) {
            write!(out, "{:>1$}", commas(counts[*event]), width.count)?;
            match self.percentage(*event, counts[*event]) {
                Some(text) => write!(out, "{text:>0$})", width.first)?,
                None => pad(out, width.first + width.close)?,
            }
            pad(out, width.second + 1)?;
        }
        out.write_all(b" ")
    }

    /// Prints the cells of a row with cumulative percentages and the two blanks after them.
    pub(crate) fn cumulative_row(&self, out: &mut dyn Write, counts: &[i128], cumulative: &[i128]) -> io::Result<()> {
        for (width, event) in self.widths.iter().zip(&self.model.show) {
            write!(out, "{:>1$}", commas(counts[*event]), width.count)?;
            if self.percentages {
                let [first, second] = [counts, cumulative].map(|counts| self.full_percentage(*event, counts[*event]));
                write!(out, "{:>1$},", format!(" ({first}"), width.first)?;
                write!(out, "{:>1$})", format!(" {second}"), width.second - 1)?;
            }
            out.write_all(b" ")?;
        }
        out.write_all(b" ")
    }

    /// Prints the cells of a line without counts and the two blanks after them.
    pub(crate) fn missing(&self, out: &mut dyn Write) -> io::Result<()> {
        for width in &self.widths {
            write!(out, "{:>1$}", ".", width.count)?;
            pad(out, width.percentages() + 1)?;
        }
        out.write_all(b" ")
    }

    /// The percentage beside a count, without the closing bracket; zeros have none.
    fn percentage(&self, event: usize, count: i128) -> Option<String> {
        (self.percentages && count != 0).then(|| format!(" ({}", self.full_percentage(event, count)))
    }

    fn full_percentage(&self, event: usize, count: i128) -> String {
        percent_text(percent(count, self.model.profile.total()[event]))
    }
}

fn pad(out: &mut dyn Write, width: usize) -> io::Result<()> {
    write!(out, "{:width$}", "")
}
