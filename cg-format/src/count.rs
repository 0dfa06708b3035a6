//! Event counts: exact integers, small in memory while they are small.
//!
//! A count is signed, since the difference of two profiles is a profile too. Counts are kept in 64 bits until one does
//! not fit; then its table alone widens to 128 bits. A count whose size exceeds [`LIMIT`] is refused, never wrapped or
//! rounded: below the limit a percentage can be computed without overflow.

use std::fmt;

/// The largest size of a count: 10^36, a hundredth of what 128 bits hold.
pub const LIMIT: i128 = 1_000_000_000_000_000_000_000_000_000_000_000_000;

/// A count or a sum of counts is larger than [`LIMIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count is larger than 10^36")
    }
}

impl std::error::Error for TooLarge {}

/// Why text is not a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseCountError {
    /// The text is not an optional sign and decimal digits.
    NotANumber,
    /// The size is above [`LIMIT`].
    TooLarge,
}

/// `a + b`, unless the sum is beyond [`LIMIT`].
pub fn sum(a: i128, b: i128) -> Result<i128, TooLarge> {
    match a.checked_add(b) {
        Some(value) if (-LIMIT..=LIMIT).contains(&value) => Ok(value),
        _ => Err(TooLarge),
    }
}

/// The count that `text` spells: an optional sign and decimal digits, nothing else.
pub fn parse(text: &[u8]) -> Result<i128, ParseCountError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ParseCountError::NotANumber);
    }
    let mut value: i128 = 0;
    for digit in digits {
        value = value * 10 + i128::from(digit - b'0');
        if value > LIMIT {
            return Err(ParseCountError::TooLarge);
        }
    }
    Ok(if negative { -value } else { value })
}

/// Rows of counts, all of the same width, stored one after another.
#[derive(Clone, Debug)]
pub struct CountTable {
    width: usize,
    rows: usize,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

impl CountTable {
    /// A table without rows, for `width` events a row.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width, rows: 0, cells: Cells::Narrow(Vec::new()) }
    }

    /// The number of events a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row of zeros and returns its index.
    pub fn push_zeros(&mut self) -> usize {
        let row = self.rows;
        self.rows += 1;
        match &mut self.cells {
            Cells::Narrow(cells) => cells.resize(self.rows * self.width, 0),
            Cells::Wide(cells) => cells.resize(self.rows * self.width, 0),
        }
        row
    }

    /// Adds a row that holds `counts`, one for each event.
    pub(crate) fn push_narrow(&mut self, counts: &[i64]) -> usize {
        debug_assert_eq!(counts.len(), self.width);
        let row = self.rows;
        self.rows += 1;
        match &mut self.cells {
            Cells::Narrow(cells) => cells.extend_from_slice(counts),
            Cells::Wide(cells) => cells.extend(counts.iter().copied().map(i128::from)),
        }
        row
    }

    /// Adds `counts`, one for each event, to a row.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum passes [`LIMIT`]; the row then holds an unspecified mixture.
    pub fn add_narrow(&mut self, row: usize, counts: &[i64]) -> Result<(), TooLarge> {
        let at = row * self.width;
        if let Cells::Narrow(cells) = &mut self.cells {
            let cells = &mut cells[at..at + self.width];
            // Sums first, doubts later: a loop without branches is done several counts at a time.
            let mut overflows = 0;
            for (cell, count) in cells.iter_mut().zip(counts) {
                let sum = cell.wrapping_add(*count);
                overflows |= (sum ^ *cell) & (sum ^ *count);
                *cell = sum;
            }
            if overflows >= 0 {
                return Ok(());
            }
            for (cell, count) in cells.iter_mut().zip(counts) {
                *cell = cell.wrapping_sub(*count);
            }
        }
        let cells = self.widen();
        for (cell, count) in cells[at..].iter_mut().zip(counts) {
            *cell = sum(*cell, i128::from(*count))?;
        }
        Ok(())
    }

    /// Adds `counts`, one for each event, to a row.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum passes [`LIMIT`]; the row then holds an unspecified mixture.
    pub fn add_wide(&mut self, row: usize, counts: &[i128]) -> Result<(), TooLarge> {
        let at = row * self.width;
        let cells = self.widen();
        for (cell, count) in cells[at..].iter_mut().zip(counts) {
            *cell = sum(*cell, *count)?;
        }
        Ok(())
    }

    /// Adds row `from` of `other` to row `to` of this table.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum passes [`LIMIT`].
    pub fn add_row(&mut self, to: usize, other: &Self, from: usize) -> Result<(), TooLarge> {
        let at = from * other.width;
        match &other.cells {
            Cells::Narrow(cells) => self.add_narrow(to, &cells[at..at + other.width]),
            Cells::Wide(cells) => self.add_wide(to, &cells[at..at + other.width]),
        }
    }

    /// The count of event `column` in a row.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> i128 {
        match &self.cells {
            Cells::Narrow(cells) => i128::from(cells[row * self.width + column]),
            Cells::Wide(cells) => cells[row * self.width + column],
        }
    }

    /// The counts of a row, in the order of the events.
    #[must_use]
    pub fn row(&self, row: usize) -> Vec<i128> {
        (0..self.width).map(|column| self.get(row, column)).collect()
    }

    /// Adds a row to `sums`, event by event.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum passes [`LIMIT`].
    pub fn add_row_to(&self, row: usize, sums: &mut [i128]) -> Result<(), TooLarge> {
        let at = row * self.width;
        for (column, value) in sums.iter_mut().enumerate() {
            match &self.cells {
                Cells::Narrow(cells) => *value = sum(*value, i128::from(cells[at + column]))?,
                Cells::Wide(cells) => *value = sum(*value, cells[at + column])?,
            }
        }
        Ok(())
    }

    /// Changes the sign of every count.
    pub fn negate(&mut self) {
        if let Cells::Narrow(cells) = &mut self.cells
            && !cells.contains(&i64::MIN)
        {
            cells.iter_mut().for_each(|cell| *cell = -*cell);
            return;
        }
        self.widen().iter_mut().for_each(|cell| *cell = -*cell);
    }

    fn widen(&mut self) -> &mut Vec<i128> {
        if let Cells::Narrow(cells) = &self.cells {
            self.cells = Cells::Wide(cells.iter().copied().map(i128::from).collect());
        }
        match &mut self.cells {
            Cells::Wide(cells) => cells,
            Cells::Narrow(_) => unreachable!("widened above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_or_refused() {
        assert_eq!(parse(b"0"), Ok(0));
        assert_eq!(parse(b"-12"), Ok(-12));
        assert_eq!(parse(b"+7"), Ok(7));
        assert_eq!(parse(b"99999999999999999999999"), Ok(99_999_999_999_999_999_999_999));
        assert_eq!(parse(b"1000000000000000000000000000000000000"), Ok(LIMIT));
        assert_eq!(parse(b"1000000000000000000000000000000000001"), Err(ParseCountError::TooLarge));
        assert_eq!(parse(&[b'9'; 4000]), Err(ParseCountError::TooLarge));
        for text in [&b""[..], b"-", b"1x", b"0x10", b" 1", b"1_000", b"--1"] {
            assert_eq!(parse(text), Err(ParseCountError::NotANumber), "{text:?}");
        }
    }

    #[test]
    fn a_table_widens_when_a_sum_does_not_fit() {
        let mut table = CountTable::new(2);
        let row = table.push_zeros();
        table.add_narrow(row, &[i64::MAX, 1]).unwrap();
        table.add_narrow(row, &[1, -2]).unwrap();
        assert_eq!(table.row(row), [i128::from(i64::MAX) + 1, -1]);
        table.negate();
        assert_eq!(table.row(row), [i128::from(i64::MIN), 1]);
        assert_eq!(table.add_wide(row, &[-LIMIT, 0]), Err(TooLarge));
    }

    #[test]
    fn the_smallest_narrow_count_can_be_negated() {
        let mut table = CountTable::new(1);
        let row = table.push_narrow(&[i64::MIN]);
        table.negate();
        assert_eq!(table.row(row), [-i128::from(i64::MIN)]);
    }
}
