//! Columns of counts: how wide they are and what stands in a cell.
//!
//! A cell is a count and, unless switched off, one or two percentages of the event's total. Counts are aligned on the
//! right, and so are percentages among themselves. All rows of a table must be announced before the first is printed.

use std::io::{self, Write};

use cg_format::show::{percent, push_commas, push_percent};

use crate::model::Model;

/// A table's columns, one for each shown event.
pub(crate) struct Columns<'a> {
    model: &'a Model,
    percentages: bool,
    widths: Vec<Widths>,
    /// Room for a row, used again and again.
    text: String,
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
        Self { model, percentages, widths: vec![Widths::default(); model.show.len()], text: String::new() }
    }

    /// Announces a row of counts.
    pub(crate) fn expect(&mut self, counts: &[i128]) {
        let mut text = std::mem::take(&mut self.text);
        for (i, event) in self.model.show.iter().enumerate() {
            let count = counts[*event];
            let length = length(&mut text, |text| push_commas(text, count));
            let share =
                length_if(self.percentages && count != 0, &mut text, |text| self.push_share(text, *event, count));
            let width = &mut self.widths[i];
            width.count = width.count.max(length);
            if let Some(share) = share {
                // The blank and the bracket before it.
                width.first = width.first.max(share + 2);
                width.close = 1;
            }
        }
        self.text = text;
    }

    /// Announces a row of counts with cumulative counts.
    pub(crate) fn expect_cumulative(&mut self, counts: &[i128], cumulative: &[i128]) {
        let mut text = std::mem::take(&mut self.text);
        for (i, event) in self.model.show.iter().enumerate() {
            let count = length(&mut text, |text| push_commas(text, counts[*event]));
            let [first, second] = [counts, cumulative]
                .map(|counts| length(&mut text, |text| self.push_share(text, *event, counts[*event])));
            let width = &mut self.widths[i];
            width.count = width.count.max(count);
            if self.percentages {
                width.first = width.first.max(first + 2);
                // The comma and the blank before it.
                width.second = width.second.max(second + 2);
                width.close = 1;
            }
        }
        self.text = text;
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
    pub(crate) fn row(&mut self, out: &mut dyn Write, counts: &[i128]) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        for (width, event) in self.widths.iter().zip(&self.model.show) {
            let count = counts[*event];
            right(&mut text, width.count, |text| push_commas(text, count));
            if self.percentages && count != 0 {
                right(&mut text, width.first, |text| {
                    text.push_str(" (");
                    self.push_share(text, *event, count);
                });
                text.push(')');
            } else {
                pad(&mut text, width.first + width.close);
            }
            pad(&mut text, width.second + 1);
        }
        self.finish(out, text)
    }

    /// Prints the cells of a row with cumulative percentages and the two blanks after them.
    pub(crate) fn cumulative_row(
        &mut self,
        out: &mut dyn Write,
        counts: &[i128],
        cumulative: &[i128],
    ) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        for (width, event) in self.widths.iter().zip(&self.model.show) {
            right(&mut text, width.count, |text| push_commas(text, counts[*event]));
            if self.percentages {
                right(&mut text, width.first, |text| {
                    text.push_str(" (");
                    self.push_share(text, *event, counts[*event]);
                });
                text.push(',');
                right(&mut text, width.second - 1, |text| {
                    text.push(' ');
                    self.push_share(text, *event, cumulative[*event]);
                });
                text.push(')');
            }
            text.push(' ');
        }
        self.finish(out, text)
    }

    /// Prints the cells of a line without counts and the two blanks after them.
    pub(crate) fn missing(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        for width in &self.widths {
            right(&mut text, width.count, |text| text.push('.'));
            pad(&mut text, width.percentages() + 1);
        }
        self.finish(out, text)
    }

    /// Prints the cells in `text`, which is kept for the next row.
    fn finish(&mut self, out: &mut dyn Write, mut text: String) -> io::Result<()> {
        text.push(' ');
        let result = out.write_all(text.as_bytes());
        self.text = text;
        result
    }

    fn push_share(&self, text: &mut String, event: usize, count: i128) {
        push_percent(text, percent(count, self.model.profile.total()[event]));
    }
}

/// How long the text is that `push` appends; everything appended is ASCII.
fn length(text: &mut String, push: impl FnOnce(&mut String)) -> usize {
    text.clear();
    push(text);
    text.len()
}

fn length_if(wanted: bool, text: &mut String, push: impl FnOnce(&mut String)) -> Option<usize> {
    wanted.then(|| length(text, push))
}

/// Appends what `push` does, at least `width` long, blanks before it.
fn right(text: &mut String, width: usize, push: impl FnOnce(&mut String)) {
    let start = text.len();
    push(text);
    const BLANKS: &str = "                                                                ";
    let missing = width.saturating_sub(text.len() - start);
    match BLANKS.get(..missing) {
        Some(blanks) => text.insert_str(start, blanks),
        // Only the name of an event can be that long.
        None => text.insert_str(start, &" ".repeat(missing)),
    }
}

fn pad(text: &mut String, width: usize) {
    text.extend(std::iter::repeat_n(' ', width));
}
