//! The rows of one function: line numbers and their counts, in the order in which the lines first came.
//!
//! Profiles list lines in ascending order and profiles of one program list the same lines, so the row of the next line
//! is nearly always the one after the last. That guess is tried first; a search comes second; a hash index is built
//! only for a function whose lines came out of order. Each line has exactly one row.

use std::collections::HashMap;

use crate::count::{CountTable, TooLarge};

/// Lines of a function with their counts.
#[derive(Clone, Debug)]
pub struct Rows {
    lines: Vec<u64>,
    counts: CountTable,
    /// The row that the next line is guessed to have.
    cursor: usize,
    /// Row of each line, once the lines are not in ascending order any more.
    // Boxed since there are millions of these, nearly all without an index: 8 bytes instead of 48.
    #[allow(clippy::box_collection)]
    index: Option<Box<HashMap<u64, usize>>>,
}

impl Rows {
    pub(crate) fn new(width: usize) -> Self {
        Self { lines: Vec::new(), counts: CountTable::new(width), cursor: 0, index: None }
    }

    /// The line numbers, each once; 0 stands for "unknown line".
    #[must_use]
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// The counts: row `i` belongs to `lines()[i]`.
    #[must_use]
    pub fn counts(&self) -> &CountTable {
        &self.counts
    }

    pub(crate) fn counts_mut(&mut self) -> &mut CountTable {
        &mut self.counts
    }

    /// Lines from the start are expected again.
    pub(crate) fn rewind(&mut self) {
        self.cursor = 0;
    }

    #[inline]
    pub(crate) fn add_narrow(&mut self, line: u64, counts: &[i64]) -> Result<(), TooLarge> {
        if self.lines.get(self.cursor) == Some(&line) {
            let row = self.cursor;
            self.cursor += 1;
            return self.counts.add_narrow(row, counts);
        }
        match self.find(line) {
            Some(row) => self.counts.add_narrow(row, counts),
            None => {
                self.append(line);
                self.counts.push_narrow(counts);
                Ok(())
            }
        }
    }

    /// Adds to line 0 where no other line is kept.
    #[inline]
    pub(crate) fn add_to_only_row(&mut self, counts: &[i64]) -> Result<(), TooLarge> {
        self.cursor = 0;
        self.add_narrow(0, counts)
    }

    pub(crate) fn add_wide(&mut self, line: u64, counts: &[i128]) -> Result<(), TooLarge> {
        let row = self.row_for(line);
        self.counts.add_wide(row, counts)
    }

    pub(crate) fn add_rows(&mut self, other: &Self) -> Result<(), TooLarge> {
        self.rewind();
        for (from, line) in other.lines.iter().enumerate() {
            let row = self.row_for(*line);
            self.counts.add_row(row, &other.counts, from)?;
        }
        Ok(())
    }

    fn row_for(&mut self, line: u64) -> usize {
        self.find(line).unwrap_or_else(|| {
            self.append(line);
            self.counts.push_zeros()
        })
    }

    fn find(&mut self, line: u64) -> Option<usize> {
        let row = if self.lines.get(self.cursor) == Some(&line) {
            Some(self.cursor)
        } else if let Some(index) = &self.index {
            index.get(&line).copied()
        } else if self.lines.last().is_none_or(|last| *last < line) {
            None
        } else {
            self.lines.binary_search(&line).ok()
        };
        if let Some(row) = row {
            self.cursor = row + 1;
        }
        row
    }

    /// Records a line that is not there yet; the caller pushes its counts.
    fn append(&mut self, line: u64) {
        let row = self.lines.len();
        if let Some(index) = &mut self.index {
            index.insert(line, row);
        } else if self.lines.last().is_some_and(|last| *last > line) {
            let mut index: HashMap<u64, usize> = self.lines.iter().copied().zip(0..).collect();
            index.insert(line, row);
            self.index = Some(Box::new(index));
        }
        // A cursor at the end stays there; one in the middle still points at the line to come.
        if self.cursor == row {
            self.cursor += 1;
        }
        self.lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(rows: &Rows) -> Vec<(u64, i128)> {
        rows.lines().iter().enumerate().map(|(row, line)| (*line, rows.counts().get(row, 0))).collect()
    }

    #[test]
    fn rows_keep_the_order_of_first_appearance() {
        let mut rows = Rows::new(1);
        for line in [5, 7, 3, 7, 9, 5, 3, 0] {
            rows.add_narrow(line, &[1]).unwrap();
        }
        assert_eq!(pairs(&rows), [(5, 2), (7, 2), (3, 2), (9, 1), (0, 1)]);
    }

    #[test]
    fn gaps_are_filled_at_the_end() {
        let mut rows = Rows::new(1);
        for line in [1, 2, 4] {
            rows.add_narrow(line, &[1]).unwrap();
        }
        rows.rewind();
        for line in [1, 3, 4, 8] {
            rows.add_narrow(line, &[10]).unwrap();
        }
        assert_eq!(pairs(&rows), [(1, 11), (2, 1), (4, 11), (3, 10), (8, 10)]);
    }
}
