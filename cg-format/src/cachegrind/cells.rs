//! Cells: counts and line numbers one after another, 64 bits each until a count does not fit.
//!
//! A count is never wrapped or rounded: the first sum that passes 64 bits makes all cells 128 bits wide, and a sum beyond
//! [`crate::count::LIMIT`] is refused. Lines are whole 64-bit numbers in either width.

use std::ops::Range;

use super::names::ROOM;
use crate::count::{TooLarge, sum};

/// A vector of cells.
#[derive(Clone, Debug)]
pub(super) enum Cells {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

impl Default for Cells {
    fn default() -> Self {
        Self::Narrow(Vec::with_capacity(ROOM / size_of::<i64>()))
    }
}

impl Cells {
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Narrow(cells) => cells.len(),
            Self::Wide(cells) => cells.len(),
        }
    }

    /// The count at `at`.
    #[inline]
    pub(super) fn get(&self, at: usize) -> i128 {
        match self {
            Self::Narrow(cells) => i128::from(cells[at]),
            Self::Wide(cells) => cells[at],
        }
    }

    /// The line at `at`.
    #[inline]
    pub(super) fn line(&self, at: usize) -> u64 {
        match self {
            Self::Narrow(cells) => cells[at] as u64,
            Self::Wide(cells) => cells[at] as u64,
        }
    }

    pub(super) fn set_line(&mut self, at: usize, line: u64) {
        match self {
            Self::Narrow(cells) => cells[at] = line as i64,
            Self::Wide(cells) => cells[at] = i128::from(line),
        }
    }

    /// `count` counts from `at` on, if they are narrow.
    pub(super) fn narrow(&self, at: usize, count: usize) -> Option<&[i64]> {
        match self {
            Self::Narrow(cells) => Some(&cells[at..at + count]),
            Self::Wide(_) => None,
        }
    }

    /// Adds counts to the row at `at` if it is that of `line`, cells are narrow and remain so. Otherwise nothing is done.
    #[inline]
    pub(super) fn add_to_line(&mut self, at: usize, line: u64, counts: &[i64]) -> bool {
        let Self::Narrow(cells) = self else { return false };
        let row = &mut cells[at..=at + counts.len()];
        row[0] as u64 == line && add(&mut row[1..], counts)
    }

    /// Adds a row to the end, if cells are narrow.
    #[inline]
    pub(super) fn push_narrow(&mut self, line: u64, counts: &[i64]) -> bool {
        let Self::Narrow(cells) = self else { return false };
        cells.push(line as i64);
        cells.extend_from_slice(counts);
        true
    }

    pub(super) fn push_zeros(&mut self, count: usize) {
        match self {
            Self::Narrow(cells) => cells.resize(cells.len() + count, 0),
            Self::Wide(cells) => cells.resize(cells.len() + count, 0),
        }
    }

    pub(super) fn copy_to_end(&mut self, range: Range<usize>) {
        match self {
            Self::Narrow(cells) => cells.extend_from_within(range),
            Self::Wide(cells) => cells.extend_from_within(range),
        }
    }

    /// Adds counts to those from `at` on.
    pub(super) fn add_narrow(&mut self, at: usize, counts: &[i64]) -> Result<(), TooLarge> {
        if let Self::Narrow(cells) = self
            && add(&mut cells[at..at + counts.len()], counts)
        {
            return Ok(());
        }
        for (cell, count) in self.widen()[at..].iter_mut().zip(counts) {
            *cell = sum(*cell, i128::from(*count))?;
        }
        Ok(())
    }

    /// As [`Cells::add_narrow`], for counts of any size.
    pub(super) fn add_wide(&mut self, at: usize, counts: &[i128]) -> Result<(), TooLarge> {
        for (cell, count) in self.widen()[at..].iter_mut().zip(counts) {
            *cell = sum(*cell, *count)?;
        }
        Ok(())
    }

    /// Changes the sign of every count; each row of `stride` cells begins with its line.
    pub(super) fn negate(&mut self, stride: usize) {
        if let Self::Narrow(cells) = self
            && cells.chunks(stride).all(|row| !row[1..].contains(&i64::MIN))
        {
            cells.chunks_mut(stride).flat_map(|row| &mut row[1..]).for_each(|cell| *cell = -*cell);
            return;
        }
        self.widen().chunks_mut(stride).flat_map(|row| &mut row[1..]).for_each(|cell| *cell = -*cell);
    }

    /// The cells, 128 bits each.
    fn widen(&mut self) -> &mut Vec<i128> {
        if let Self::Narrow(cells) = self {
            // A line above 2^63 becomes negative here, and `line` takes its low 64 bits all the same.
            *self = Self::Wide(cells.iter().copied().map(i128::from).collect());
        }
        match self {
            Self::Wide(cells) => cells,
            Self::Narrow(_) => unreachable!("widened above"),
        }
    }
}

/// Adds counts to cells, unless a sum does not fit; then nothing is changed.
#[inline]
fn add(cells: &mut [i64], counts: &[i64]) -> bool {
    // Sums first, doubts later: a loop without branches is done several counts at a time.
    let mut overflows = 0;
    for (cell, count) in cells.iter_mut().zip(counts) {
        let sum = cell.wrapping_add(*count);
        overflows |= (sum ^ *cell) & (sum ^ *count);
        *cell = sum;
    }
    if overflows < 0 {
        for (cell, count) in cells.iter_mut().zip(counts) {
            *cell = cell.wrapping_sub(*count);
        }
    }
    overflows >= 0
}
