//! Columns of numbers as digits, which are taken out of the text first and made binary later: all numbers of a row side
//! by side without a branch, or, where only sums matter, sums of many rows at once.
//!
//! A place of a column holds up to [`ROWS`] digits of one decimal place without a carry, so a row is added with one
//! addition of 16 bytes for each number. Sums are exact: the caller settles before a place could overflow.

use crate::text::digits::{DIGITS, eight_digits};
use crate::text::ends::{Ends, Marks};

/// The bytes up to the end of a number that are looked at; more than [`DIGITS`].
const PLACES: usize = 16;

/// A digit in each byte, eight at a time; within them the first is the lowest. The first is none: it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    high: u64,
    low: u64,
}

/// Stands in the place that is no digit's if the number is negative.
const NEGATIVE: u64 = 0x80;

impl Places {
    /// The number's negative.
    #[inline]
    pub(super) fn negated(self) -> Self {
        Self { high: self.high | NEGATIVE, low: self.low }
    }

    /// The number without its sign.
    #[inline]
    pub(super) fn size(self) -> i64 {
        (eight_digits(self.high) * 100_000_000 + eight_digits(self.low)) as i64
    }
}

/// So many numbers are taken at a time.
const STEP: usize = 4;

/// So many rows fit before [`Columns::settle`] must be called: 28 nines are 252.
pub(super) const ROWS: u32 = 28;

/// Sums of rows, one for each column.
pub(super) struct Columns {
    /// The row that is being read. What is behind its last number is of rows before.
    row: Vec<Places>,
    sums: Vec<Places>,
    rows: u32,
}

/// What is left of the places up to the end of a number of so many digits. The mask also makes digits of characters.
const MASKS: [Places; DIGITS + 1] = {
    let mut masks = [Places { high: 0, low: 0 }; DIGITS + 1];
    let mut length = 1;
    while length <= DIGITS {
        let mask = 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_u128 << (8 * (PLACES - length));
        masks[length] = Places { high: mask as u64, low: (mask >> 64) as u64 };
        length += 1;
    }
    masks
};

impl Columns {
    pub(super) fn new(columns: usize) -> Self {
        Self { row: vec![Places::default(); columns], sums: vec![Places::default(); columns], rows: 0 }
    }

    /// Adds rows of plain numbers from `at` on, and gives the place behind them and how many they were.
    ///
    /// It stops at the end, at whatever is not [`plain`], and when [`Columns::settle`] must be called.
    pub(super) fn add_plain_rows(&mut self, text: &[u8], at: usize, end: usize, marks: &Marks) -> (usize, u32) {
        if self.sums.len() < STEP {
            self.add_plain_rows_by::<1>(text, at, end, marks)
        } else {
            self.add_plain_rows_by::<STEP>(text, at, end, marks)
        }
    }

    // Not in line: the loop over numbers needs the registers.
    #[inline(never)]
    fn add_plain_rows_by<const N: usize>(
        &mut self,
        text: &[u8],
        mut at: usize,
        end: usize,
        marks: &Marks,
    ) -> (usize, u32) {
        let mut ends = marks.from(at);
        let mut rows = 0;
        // Mostly it is a line of another kind that ends them.
        while self.rows + rows < ROWS && at < end && text[at].is_ascii_digit() {
            // No byte overflows into the next one: see `ROWS`.
            let add = |sum: &mut Places, digits: Places| {
                *sum = Places { high: sum.high + digits.high, low: sum.low + digits.low };
            };
            let Some(next) = plain::<N>(&mut self.sums, text, at, &mut ends, add) else {
                self.take_back(text, at, marks);
                break;
            };
            at = next;
            rows += 1;
        }
        self.rows += rows;
        (at, rows)
    }

    /// Subtracts what a row that is not plain has added.
    #[inline(never)]
    fn take_back(&mut self, text: &[u8], at: usize, marks: &Marks) {
        let mut added = 0;
        let _ = plain::<1>(&mut self.row, text, at, &mut marks.from(at), |_, _| added += 1);
        let _ = plain::<1>(&mut self.sums[..added], text, at, &mut marks.from(at), |sum, digits| {
            *sum = Places { high: sum.high - digits.high, low: sum.low - digits.low };
        });
    }

    /// Whether [`Columns::settle`] must be called before the next row.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.rows == ROWS
    }

    /// Room for the numbers of a row, to be filled by [`digits_before`].
    #[inline]
    pub(super) fn row(&mut self) -> &mut [Places] {
        &mut self.row
    }

    /// The first `filled` numbers of the row; the others are 0.
    #[inline]
    pub(super) fn numbers(&self, filled: usize, negative: bool, numbers: &mut [i64]) {
        let row = &self.row[..filled];
        for (number, digits) in numbers.iter_mut().zip(row) {
            *number = digits.size();
        }
        if negative {
            for (number, digits) in numbers.iter_mut().zip(row) {
                if digits.high & NEGATIVE != 0 {
                    *number = Places { high: digits.high ^ NEGATIVE, low: digits.low }.size().wrapping_neg();
                }
            }
        }
        numbers[filled..].fill(0);
    }

    /// Adds the first `filled` numbers of the row, none of them negative; true if [`Columns::settle`] must be called before the
    /// next one.
    #[inline]
    pub(super) fn add(&mut self, filled: usize) -> bool {
        for (sum, digits) in self.sums.iter_mut().zip(&self.row[..filled]) {
            // No byte overflows into the next one: see `ROWS`.
            *sum = Places { high: sum.high + digits.high, low: sum.low + digits.low };
        }
        self.rows += 1;
        self.rows == ROWS
    }

    /// Adds the sums to `totals`, each less than 28 * 10^15, and starts again from 0.
    pub(super) fn settle(&mut self, totals: &mut [i64]) {
        if self.rows == 0 {
            return;
        }
        for (total, sum) in totals.iter_mut().zip(&mut self.sums) {
            let Places { high, low } = std::mem::take(sum);
            *total += (value(high) * 100_000_000 + value(low)) as i64;
        }
        self.rows = 0;
    }
}

/// Gives the counts of the row at `at` to `take`, each with its column, and then the place behind the row, if it is plain:
/// all counts are there, none is negative or too long, and a single blank is before each. That it is not may turn out
/// after some counts were taken.
///
/// `N` numbers are taken at a time, since a tenth of the instructions are the loop's otherwise; that changes nothing else.
#[inline(always)]
fn plain<const N: usize>(
    columns: &mut [Places],
    text: &[u8],
    at: usize,
    ends: &mut Ends<'_>,
    mut take: impl FnMut(&mut Places, Places),
) -> Option<usize> {
    let mut end = ends.next();
    if !(1..=DIGITS).contains(&(end - at)) {
        return None;
    }
    let mut behind = text[end];
    let mut next = |column: &mut Places| {
        if behind != b' ' {
            return None;
        }
        let before = end;
        end = ends.next();
        // The number and what is behind it.
        let window = text.get(..=end)?.last_chunk::<{ PLACES + 1 }>()?;
        behind = window[PLACES];
        // Without a digit the index is too large.
        let mask = MASKS[1..].get((end - before).wrapping_sub(2))?;
        let eight = |at: usize| window[at..].first_chunk::<8>().map_or(0, |eight| u64::from_le_bytes(*eight));
        take(column, Places { high: eight(0) & mask.high, low: eight(8) & mask.low });
        Some(())
    };
    let (steps, rest) = columns.as_chunks_mut::<N>();
    for step in steps {
        // No loop: as many as there are is what the compiler writes out.
        step.iter_mut().try_for_each(&mut next)?;
    }
    for column in rest {
        next(column)?;
    }
    (behind == b'\n').then_some(end + 1)
}

/// The digits of the number of `length` digits, at most [`DIGITS`], that ends at `end`, in the last places; nothing if
/// there are less than 16 bytes before `end`.
#[inline]
pub(super) fn digits_before(text: &[u8], end: usize, length: usize) -> Option<Places> {
    let mask = MASKS.get(length)?;
    let (high, low) = text.get(..end)?.last_chunk::<PLACES>()?.split_at(PLACES / 2);
    let eight = |text: &[u8]| text.first_chunk::<8>().map_or(0, |eight| u64::from_le_bytes(*eight));
    Some(Places { high: eight(high) & mask.high, low: eight(low) & mask.low })
}

/// The sum that eight places hold, each up to 255; below 2^32.
fn value(places: u64) -> u64 {
    const MASK: u64 = 0x0000_ffff_0000_ffff;
    let pairs = (places & 0x00ff_00ff_00ff_00ff) * 10 + ((places >> 8) & 0x00ff_00ff_00ff_00ff);
    // As in `eight_digits`: the upper halves of the products collect the sum.
    let low = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let high = ((pairs >> 16) & MASK).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_columns_are_those_of_their_numbers() {
        let mut sums = Columns::new(3);
        let mut totals = [0_i64; 3];
        let mut wanted = [0_i64; 3];
        for row in 0..1000_u64 {
            let filled = 1 + row as usize % 3;
            for (column, wanted) in wanted.iter_mut().enumerate().take(filled) {
                let digits = ((row * 7 + column as u64 * 3) % DIGITS as u64 + 1) as u32;
                // Nines are what fills the places.
                let number = if row < 500 {
                    10_u64.pow(digits) - 1
                } else {
                    row.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_u64.pow(digits)
                };
                let text = format!("123456789 123456789-{number}:77");
                let length = number.to_string().len();
                sums.row()[column] = digits_before(text.as_bytes(), 20 + length, length).unwrap();
                *wanted += number as i64;
            }
            if sums.add(filled) {
                sums.settle(&mut totals);
            }
        }
        sums.settle(&mut totals);
        sums.settle(&mut totals);
        assert_eq!(totals, wanted);
    }

    #[test]
    fn the_largest_numbers_fill_no_place() {
        let mut sums = Columns::new(1);
        let text = [b'9'; PLACES];
        for row in 1..=ROWS {
            sums.row()[0] = digits_before(&text, PLACES, DIGITS).unwrap();
            assert_eq!(sums.add(1), row == ROWS);
        }
        let mut totals = [1];
        sums.settle(&mut totals);
        assert_eq!(totals, [28 * 999_999_999_999_999 + 1]);
    }

    #[test]
    fn too_little_text_and_too_many_digits_are_refused() {
        assert_eq!(digits_before(&[b'1'; 40], 15, 3), None);
        assert_eq!(digits_before(&[b'1'; 40], 41, 3), None);
        assert_eq!(digits_before(&[b'1'; 40], 40, DIGITS + 1), None);
    }
}
