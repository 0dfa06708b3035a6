//! Columns of counts, as the reference has them.
//!
//! A column is as wide as the largest count of a table and, with percentages, nine more; a count that is wider, such as a
//! call's, moves what stands behind it. A percentage has five characters: two digits after the point, or one where there
//! are three before it.

use std::io::{self, Write};

use cg_format::show::{commas, percent};

use crate::model::Model;
use cg_model::Cost;

/// The columns of a table.
pub(crate) struct Columns<'a> {
    model: &'a Model,
    percentages: bool,
    widths: Vec<usize>,
}

/// The width of ` (12.34%)`.
const PERCENTAGE: usize = 9;

impl<'a> Columns<'a> {
    pub(crate) fn new(model: &'a Model, percentages: bool) -> Self {
        let widths = model.names(model.show.iter().copied()).iter().map(|name| name.chars().count()).collect();
        Self { model, percentages, widths }
    }

    /// Makes room for a row.
    pub(crate) fn expect(&mut self, cost: &Cost) {
        for (width, event) in self.widths.iter_mut().zip(&self.model.show) {
            if let Some(value) = cost.get(*event) {
                let percentage = if self.percentages { PERCENTAGE } else { 0 };
                *width = (*width).max(commas(i128::from(value)).len() + percentage);
            }
        }
    }

    /// Prints the heading; `rest` stands in the column of names.
    pub(crate) fn heading(&self, out: &mut dyn Write, rest: &str) -> io::Result<()> {
        for (width, name) in self.widths.iter().zip(self.model.names(self.model.show.iter().copied())) {
            write!(out, "{name:<width$} ")?;
        }
        writeln!(out, "{rest}")
    }

    /// Prints the cells of a row; nothing was ever mentioned of `None`.
    pub(crate) fn row(&self, out: &mut dyn Write, cost: Option<&Cost>) -> io::Result<()> {
        for (width, event) in self.widths.iter().zip(&self.model.show) {
            let value = cost.and_then(|cost| cost.get(*event));
            let count = value.map_or_else(|| ".".to_owned(), |value| commas(i128::from(value)));
            let percentage = match value {
                _ if !self.percentages => String::new(),
                Some(value) if value != 0 => {
                    let total = self.model.total.cost.value(*event);
                    let value = percent(i128::from(value), i128::from(total)).unwrap_or(0.0);
                    if -9.995 < value && value < 99.995 {
                        format!(" ({value:5.2}%)")
                    } else {
                        format!(" ({value:5.1}%)")
                    }
                }
                _ => " ".repeat(PERCENTAGE),
            };
            let room = width.saturating_sub(percentage.chars().count());
            write!(out, "{count:>room$}{percentage} ")?;
        }
        Ok(())
    }
}
