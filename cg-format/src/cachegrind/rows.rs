//! The rows of a profile: line numbers and their counts, the rows of a function side by side in one large vector.
//!
//! Profiles list lines in ascending order and profiles of one program list the same lines, so the row of the next line
//! is nearly always the one after the last, or new and at the end of everything. Those two cases are tried first and
//! allocate nothing; a search comes second; a hash index is built only for a larger function whose lines came out of order.
//! Each line of a function has exactly one row. A function that grows after another one has begun moves to the end, with
//! room to grow, as a vector would: what is left behind is at most about as much as what is kept.

use std::collections::HashMap;

use super::cells::Cells;
use crate::count::{TooLarge, within_limit};

/// Where the rows of a function lie; indices of cells.
#[derive(Clone, Debug)]
pub(super) struct Span {
    start: usize,
    end: usize,
    // Boxed since there are millions of spans, nearly all without it.
    extra: Option<Box<Extra>>,
}

/// What only a function has that grew late or out of order.
#[derive(Clone, Debug, Default)]
struct Extra {
    /// The end of the cells that are the function's, used or not; 0 if it was never moved.
    room: usize,
    /// The lines are not in ascending order any more.
    unsorted: bool,
    /// The number of the row of each line, if they are unsorted and more than [`SMALL`].
    index: Option<HashMap<u64, usize>>,
}

/// So many rows are looked through one by one.
const SMALL: usize = 16;

/// No cell.
const NONE: usize = usize::MAX;

/// The rows of all functions, and which row is expected next.
#[derive(Clone, Debug)]
pub(super) struct Store {
    cells: Cells,
    /// The cells of a row: the line and its counts.
    stride: usize,
    /// The cell at which the row of the next line is guessed to begin, in the function that was last aimed at.
    cursor: usize,
    /// The cell after a row that was found elsewhere while the cursor waits for its line, or [`NONE`]: another guess.
    /// Lines that came late lie at the end, where they are found one after another.
    second: usize,
}

/// The rows of a function.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    cells: &'a Cells,
    stride: usize,
    start: usize,
    end: usize,
}

impl<'a> Rows<'a> {
    /// The number of rows.
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) / self.stride
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The line number of a row, counted from 0; each line has one row, and line 0 is "unknown".
    ///
    /// # Panics
    /// When there are not that many rows; so do the other methods that take a row.
    #[must_use]
    pub fn line(self, row: usize) -> u64 {
        self.cells.line(self.at(row))
    }

    /// The line numbers of all rows.
    pub fn lines(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        (0..self.len()).map(move |row| self.line(row))
    }

    /// The number of counts of a row: one for each event.
    #[must_use]
    pub fn width(self) -> usize {
        self.stride - 1
    }

    /// The count of event `column` in a row.
    #[must_use]
    pub fn count(self, row: usize, column: usize) -> i128 {
        assert!(column < self.width());
        self.cells.get(self.at(row) + 1 + column)
    }

    /// The counts of a row, in the order of the events.
    #[must_use]
    pub fn counts(self, row: usize) -> Vec<i128> {
        (0..self.width()).map(|column| self.count(row, column)).collect()
    }

    /// The sum of the counts of event `column`.
    ///
    /// # Errors
    /// [`TooLarge`] when the sum passes [`crate::count::LIMIT`].
    pub fn sum(self, column: usize) -> Result<i128, TooLarge> {
        if let Some(cells) = self.cells.narrow(self.start, self.end - self.start) {
            // No memory holds so many rows of 64 bits that this could pass the limit.
            return Ok(cells.chunks_exact(self.stride).map(|row| i128::from(row[1 + column])).sum());
        }
        (0..self.len()).try_fold(0, |sum, row| crate::count::sum(sum, self.count(row, column)))
    }

    /// The counts of the only row, if there is just one and none of them passes 64 bits.
    #[must_use]
    pub fn only(self) -> Option<&'a [i64]> {
        (self.len() == 1).then(|| self.narrow(0)).flatten().map(|(_, counts)| counts)
    }

    /// The line and its counts, if none of them passes 64 bits.
    pub(super) fn narrow(self, row: usize) -> Option<(u64, &'a [i64])> {
        let (line, counts) = self.cells.narrow(self.at(row), self.stride)?.split_first()?;
        Some((*line as u64, counts))
    }

    /// Adds a row to `sums`, event by event.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum passes [`crate::count::LIMIT`].
    pub fn add_row_to(self, row: usize, sums: &mut [i128]) -> Result<(), TooLarge> {
        let at = self.at(row);
        if let Some(counts) = self.cells.narrow(at + 1, self.width()) {
            // The upper halves of sums, all in one: most are 0.
            let mut upper = 0;
            for (value, count) in sums.iter_mut().zip(counts) {
                // What was within the limit before cannot overflow.
                *value += i128::from(*count);
                let half = (*value >> 64) as i64;
                upper |= half ^ half >> 63;
            }
            let fine = upper == 0 || sums.iter().all(|sum| within_limit(*sum));
            return if fine { Ok(()) } else { Err(TooLarge) };
        }
        for (column, value) in sums.iter_mut().enumerate().take(self.width()) {
            *value = crate::count::sum(*value, self.cells.get(at + 1 + column))?;
        }
        Ok(())
    }

    /// Adds all rows to `sums`, event by event.
    ///
    /// # Errors
    /// As [`Rows::add_row_to`].
    pub fn add_to(self, sums: &mut [i128]) -> Result<(), TooLarge> {
        (0..self.len()).try_for_each(|row| self.add_row_to(row, sums))
    }

    fn at(self, row: usize) -> usize {
        assert!(row < self.len());
        self.start + row * self.stride
    }
}

impl Store {
    /// No rows, for `width` events a row.
    pub(super) fn new(width: usize) -> Self {
        Self { cells: Cells::default(), stride: width + 1, cursor: 0, second: NONE }
    }

    /// A function without rows.
    pub(super) fn span(&self) -> Span {
        Span { start: self.cells.len(), end: self.cells.len(), extra: None }
    }

    pub(super) fn rows(&self, span: &Span) -> Rows<'_> {
        Rows { cells: &self.cells, stride: self.stride, start: span.start, end: span.end }
    }

    /// From here on rows are added to `span`, and lines from its start are expected.
    pub(super) fn aim(&mut self, span: &Span) {
        self.cursor = span.start;
        self.second = NONE;
    }

    /// Changes the sign of every count.
    pub(super) fn negate(&mut self) {
        self.cells.negate(self.stride);
    }

    /// Adds counts to a line of the function aimed at.
    #[inline(always)]
    pub(super) fn add_narrow(&mut self, span: &mut Span, line: u64, counts: &[i64]) -> Result<(), TooLarge> {
        if self.cursor < span.end {
            if self.cells.add_to_line(self.cursor, line, counts) {
                self.cursor += self.stride;
                return Ok(());
            }
        } else if span.end == self.cells.len()
            && span.extra.is_none()
            && (span.start == span.end || self.cells.line(span.end - self.stride) < line)
            && self.cells.push_narrow(line, counts)
        {
            span.end += self.stride;
            self.cursor = span.end;
            return Ok(());
        }
        let at = self.row_for(span, line);
        self.cells.add_narrow(at + 1, counts)
    }

    /// As [`Store::add_narrow`], for counts of any size.
    pub(super) fn add_wide(&mut self, span: &mut Span, line: u64, counts: &[i128]) -> Result<(), TooLarge> {
        let at = self.row_for(span, line);
        self.cells.add_wide(at + 1, counts)
    }

    /// Adds all rows of another store's function.
    pub(super) fn add_rows(&mut self, span: &mut Span, rows: Rows<'_>) -> Result<(), TooLarge> {
        for row in 0..rows.len() {
            let (at, line) = (rows.at(row), rows.line(row));
            match rows.cells.narrow(at + 1, rows.width()) {
                Some(counts) => self.add_narrow(span, line, counts)?,
                None => self.add_wide(span, line, &rows.counts(row))?,
            }
        }
        Ok(())
    }

    /// The cell at which the row of `line` begins; the row is made if it is not there.
    #[inline(never)]
    fn row_for(&mut self, span: &mut Span, line: u64) -> usize {
        let Some(at) = self.find(span, line) else {
            let at = self.append(span, line);
            // A new row at the end leaves a cursor in the middle where it is: that line is still to come.
            if self.cursor == at {
                self.cursor = at + self.stride;
            }
            return at;
        };
        if self.cursor < span.end && self.cells.line(self.cursor) > line {
            self.second = at + self.stride;
        } else {
            self.cursor = at + self.stride;
        }
        at
    }

    fn find(&self, span: &Span, line: u64) -> Option<usize> {
        // A line or two may be left out.
        let guesses = [self.cursor, self.cursor + self.stride, self.cursor + 2 * self.stride, self.second];
        if let Some(at) = guesses.into_iter().find(|at| *at < span.end && self.cells.line(*at) == line) {
            return Some(at);
        }
        let rows = self.rows(span);
        let extra = span.extra.as_deref().filter(|extra| extra.unsorted);
        if rows.is_empty() || extra.is_none() && rows.line(rows.len() - 1) < line {
            return None;
        }
        let place = |row| span.start + row * self.stride;
        if rows.len() <= SMALL {
            return rows.lines().position(|other| other == line).map(place);
        }
        if let Some(index) = extra.and_then(|extra| extra.index.as_ref()) {
            return index.get(&line).copied().map(place);
        }
        let (mut low, mut high) = (0, rows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if rows.line(middle) < line {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < rows.len() && rows.line(low) == line).then(|| place(low))
    }

    /// Makes a row of zeros for a line that has none.
    fn append(&mut self, span: &mut Span, line: u64) -> usize {
        let rows = self.rows(span);
        let number = rows.len();
        if number > 0 && rows.line(number - 1) > line {
            span.extra.get_or_insert_default().unsorted = true;
        }
        let mut room = 0;
        if let Some(extra) = span.extra.as_deref_mut() {
            room = extra.room;
            if let Some(index) = &mut extra.index {
                index.insert(line, number);
            } else if extra.unsorted && number >= SMALL {
                extra.index = Some(rows.lines().chain([line]).zip(0..).collect());
            }
        }
        if span.end == self.cells.len() {
            self.cells.push_zeros(self.stride);
        } else if room <= span.end {
            self.relocate(span);
        }
        let at = span.end;
        self.cells.set_line(at, line);
        span.end += self.stride;
        at
    }

    /// Moves a function to the end of everything, with room to grow.
    fn relocate(&mut self, span: &mut Span) {
        let (length, start) = (span.end - span.start, self.cells.len());
        let room = (2 * length).max(2 * self.stride);
        self.cells.copy_to_end(span.start..span.end);
        self.cells.push_zeros(room - length);
        // The cursor is of this function: nobody else is being added to.
        self.cursor = self.cursor - span.start + start;
        self.second = NONE;
        *span = Span { start, end: start + length, extra: span.extra.take() };
        span.extra.get_or_insert_default().room = start + room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(store: &Store, span: &Span) -> Vec<(u64, i128)> {
        let rows = store.rows(span);
        (0..rows.len()).map(|row| (rows.line(row), rows.count(row, 0))).collect()
    }

    #[test]
    fn rows_keep_the_order_of_first_appearance() {
        let mut store = Store::new(1);
        let mut span = store.span();
        store.aim(&span);
        for line in [5, 7, 3, 7, 9, 5, 3, 0] {
            store.add_narrow(&mut span, line, &[1]).unwrap();
        }
        assert_eq!(pairs(&store, &span), [(5, 2), (7, 2), (3, 2), (9, 1), (0, 1)]);
    }

    #[test]
    fn any_order_gives_the_rows_that_a_map_gives() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for lines in [3, 15, 16, 17, 18, 40, 200] {
            let mut store = Store::new(1);
            let mut spans = [store.span(), store.span()];
            let mut wanted: [Vec<(u64, i128)>; 2] = Default::default();
            for _ in 0..60 {
                let which = random(2) as usize;
                store.aim(&spans[which]);
                let (first, step, back) = (random(lines), random(3), random(4) == 0);
                for i in 0..random(25) {
                    let line = if back { (first + 9 * lines - i) % lines } else { (first + i * step) % lines };
                    store.add_narrow(&mut spans[which], line, &[i as i64]).unwrap();
                    match wanted[which].iter_mut().find(|(other, _)| *other == line) {
                        Some((_, count)) => *count += i128::from(i),
                        None => wanted[which].push((line, i128::from(i))),
                    }
                }
            }
            for (span, wanted) in spans.iter().zip(&wanted) {
                assert_eq!(pairs(&store, span), *wanted, "{lines} lines");
            }
        }
    }

    #[test]
    fn gaps_are_filled_at_the_end() {
        let mut store = Store::new(1);
        let mut span = store.span();
        for (lines, count) in [([1, 2, 4].as_slice(), 1), (&[1, 3, 4, 8], 10)] {
            store.aim(&span);
            lines.iter().for_each(|line| store.add_narrow(&mut span, *line, &[count]).unwrap());
        }
        assert_eq!(pairs(&store, &span), [(1, 11), (2, 1), (4, 11), (3, 10), (8, 10)]);
    }

    #[test]
    fn functions_that_grow_by_turns_keep_their_rows_in_bounded_space() {
        let mut store = Store::new(2);
        let mut spans = [store.span(), store.span(), store.span()];
        for line in 0..1000 {
            for (number, span) in spans.iter_mut().enumerate() {
                store.aim(span);
                // Every other function has its lines out of order.
                let line = if number == 1 { line ^ 5 } else { line };
                store.add_narrow(span, line, &[number as i64, 1]).unwrap();
                store.add_narrow(span, line, &[0, 1]).unwrap();
            }
        }
        for (number, span) in spans.iter().enumerate() {
            let rows = store.rows(span);
            assert_eq!(rows.len(), 1000);
            for row in 0..1000 {
                let line = if number == 1 { row as u64 ^ 5 } else { row as u64 };
                assert_eq!((rows.line(row), rows.counts(row)), (line, vec![number as i128, 2]));
            }
        }
        assert!(store.cells.len() < 5 * 3 * 3 * 1000, "{} cells", store.cells.len());
    }

    #[test]
    fn a_function_widens_with_all_others_and_keeps_its_lines() {
        let mut store = Store::new(1);
        let mut span = store.span();
        store.aim(&span);
        store.add_narrow(&mut span, u64::MAX - 1, &[i64::MAX]).unwrap();
        store.add_narrow(&mut span, u64::MAX, &[-1]).unwrap();
        store.aim(&span);
        store.add_narrow(&mut span, u64::MAX - 1, &[1]).unwrap();
        store.add_narrow(&mut span, u64::MAX, &[-1]).unwrap();
        assert_eq!(pairs(&store, &span), [(u64::MAX - 1, i128::from(i64::MAX) + 1), (u64::MAX, -2)]);
        store.negate();
        assert_eq!(pairs(&store, &span), [(u64::MAX - 1, i128::from(i64::MIN)), (u64::MAX, 2)]);
    }
}
