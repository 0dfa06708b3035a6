//! How counts and percentages look in reports.

use std::fmt::{self, Write};

/// A count with commas between thousands.
///
/// ```
/// assert_eq!(cg_format::show::commas(-1234567), "-1,234,567");
/// ```
#[must_use]
pub fn commas(count: i128) -> String {
    let mut room = [0; Cell::WIDEST];
    let mut cell = Cell::new(&mut room);
    cell.commas(count);
    cell.to_string()
}

/// Cells of a table in the making, from the last character of the last one to the first: reports have many, and aligned on
/// the right. What does not fit into the room for them is lost.
#[derive(Debug)]
pub struct Cell<'a> {
    /// Blank before `start`.
    bytes: &'a mut [u8],
    start: usize,
    /// Where the cell at hand ends.
    end: usize,
}

/// All numbers of up to three digits as three digits after a comma.
static GROUPS: [[u8; 4]; 1000] = {
    let mut groups = [[b','; 4]; 1000];
    let mut number = 0;
    while number < groups.len() {
        groups[number] = [b',', digit(number / 100), digit(number / 10), digit(number)];
        number += 1;
    }
    groups
};

/// All tenths up to 100% as percentages, behind blanks.
static TENTHS: [[u8; 8]; 1001] = {
    let mut texts = [[b' '; 8]; 1001];
    let mut tenths = 0;
    while tenths < texts.len() {
        let [hundreds, tens] = match tenths {
            1000.. => [b'1', b'0'],
            100.. => [b' ', digit(tenths / 100)],
            _ => [b' '; 2],
        };
        texts[tenths] = [b' ', b' ', hundreds, tens, digit(tenths / 10), b'.', digit(tenths), b'%'];
        tenths += 1;
    }
    texts
};

/// The last digit of a number.
const fn digit(number: usize) -> u8 {
    b'0' + (number % 10) as u8
}

impl<'a> Cell<'a> {
    /// Room for any count, and for any percentage below 10^100.
    pub const WIDEST: usize = 160;

    /// A cell at the end of `room`, which becomes blank.
    #[must_use]
    pub fn new(room: &'a mut [u8]) -> Self {
        room.fill(b' ');
        let end = room.len();
        Self { bytes: room, start: end, end }
    }

    /// Begins another cell, which ends at `place`, before what there is.
    #[inline]
    pub fn at(&mut self, place: usize) {
        (self.start, self.end) = (place, place);
    }

    /// What the cell at hand holds.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Puts a character before the others.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        if let Some(start) = self.start.checked_sub(1) {
            self.start = start;
            self.bytes[start] = byte;
        }
    }

    /// Puts blanks before the others until the cell has `length` characters.
    #[inline]
    pub fn blanks(&mut self, length: usize) {
        self.start = self.start.min(self.end.saturating_sub(length));
    }

    /// Puts a count before the others, with commas between thousands.
    pub fn commas(&mut self, count: i128) {
        let mut rest = count.unsigned_abs();
        while rest > u128::from(u64::MAX) {
            self.group((rest % 1000) as usize);
            rest /= 1000;
        }
        let mut rest = rest as u64;
        while rest >= 1000 {
            self.group((rest % 1000) as usize);
            rest /= 1000;
        }
        self.small(rest as usize);
        if count < 0 {
            self.byte(b'-');
        }
    }

    /// Puts a percentage before the others, with one digit after the point, or `n/a`.
    pub fn percent(&mut self, percent: Option<f64>) {
        let Some(percent) = percent else { return self.put(b"n/a") };
        let tenths = percent.abs() * 10.0;
        let whole = tenths as usize;
        let rest = tenths - whole as f64;
        // Rounding is only in doubt near a half; the product is off by less than 10^-9.
        if whole < 1000 && (rest - 0.5).abs() > 0.000_001 {
            let nearest = whole + usize::from(rest > 0.5);
            self.put_behind_blanks(TENTHS[nearest], 4 + usize::from(nearest > 99) + usize::from(nearest > 999));
            if percent.is_sign_negative() {
                self.byte(b'-');
            }
        } else {
            self.put(format!("{percent:.1}%").as_bytes());
        }
    }

    fn put(&mut self, text: &[u8]) {
        text.iter().rev().for_each(|byte| self.byte(*byte));
    }

    /// Puts the last `length` bytes of `text` before the others, whose first ones are blanks: whole words are stored faster.
    #[inline]
    fn put_behind_blanks<const N: usize>(&mut self, text: [u8; N], length: usize) {
        if let Some((_, place)) = self.bytes[..self.start].split_last_chunk_mut() {
            *place = text;
            self.start -= length;
        } else {
            self.put(&text[N - length..]);
        }
    }

    /// Three digits and the comma before them.
    #[inline]
    fn group(&mut self, group: usize) {
        self.put_behind_blanks(GROUPS[group], 4);
    }

    /// A number below 1000 without zeros before it.
    #[inline]
    fn small(&mut self, number: usize) {
        let length = 1 + usize::from(number > 9) + usize::from(number > 99);
        let digits = u32::MAX << (8 * (4 - length));
        let blanks = u32::from_le_bytes([b' '; 4]) & !digits;
        self.put_behind_blanks((u32::from_le_bytes(GROUPS[number]) & digits | blanks).to_le_bytes(), length);
    }
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().iter().try_for_each(|byte| f.write_char(char::from(*byte)))
    }
}

/// `count` as a percentage of `total`, correctly rounded whatever their size; nothing if `total` is 0.
///
/// Zero of a negative total is -0.0, as the reports show it. Both must be within [`crate::count::LIMIT`].
#[must_use]
pub fn percent(count: i128, total: i128) -> Option<f64> {
    Total::new(total).percent(count)
}

/// What counts are percentages of: see [`percent`].
#[derive(Clone, Copy, Debug)]
pub struct Total {
    total: i128,
    /// The total, if it is one of the doubles below which all whole numbers are, and not 0.
    double: Option<f64>,
}

/// Doubles hold all whole numbers up to this one.
const EXACT: i64 = 1 << 53;

impl Total {
    /// A total within [`crate::count::LIMIT`].
    #[must_use]
    pub fn new(total: i128) -> Self {
        let fits = total != 0 && (-i128::from(EXACT)..=i128::from(EXACT)).contains(&total);
        Self { total, double: fits.then_some(total as f64) }
    }

    /// The percentage that `count` is, as [`percent`] gives it.
    #[inline]
    #[must_use]
    pub fn percent(self, count: i128) -> Option<f64> {
        if let (Some(total), Ok(count)) = (self.double, i64::try_from(count))
            && count.unsigned_abs() <= EXACT as u64 / 100
        {
            // Both are doubles, and the processor rounds their quotient correctly.
            return Some((count * 100) as f64 / total);
        }
        self.wide_percent(count)
    }

    fn wide_percent(self, count: i128) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        let size = quotient(count.unsigned_abs() * 100, self.total.unsigned_abs());
        Some(if (count < 0) == (self.total < 0) { size } else { -size })
    }
}

/// A percentage with one digit after the point, or `n/a`; below 10^100.
#[must_use]
pub fn percent_text(percent: Option<f64>) -> String {
    let mut room = [0; Cell::WIDEST];
    let mut cell = Cell::new(&mut room);
    cell.percent(percent);
    cell.to_string()
}

/// The double next to `dividend / divisor`.
fn quotient(dividend: u128, divisor: u128) -> f64 {
    if dividend == 0 {
        return 0.0;
    }
    // Divide bit by bit until the quotient has more bits than a double; what remains only has to be non-zero.
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    let mut shift = 0;
    while quotient < 1 << 56 {
        rest <<= 1;
        quotient <<= 1;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1;
        }
        shift += 1;
    }
    quotient |= u128::from(rest != 0);
    quotient as f64 * 2f64.powi(-shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::LIMIT;

    #[test]
    fn commas_stand_between_thousands() {
        for (count, text) in [
            (0, "0"),
            (7, "7"),
            (10, "10"),
            (999, "999"),
            (-1000, "-1,000"),
            (123_456, "123,456"),
            (1_000_007, "1,000,007"),
        ] {
            assert_eq!(commas(count), text);
        }
        assert!(commas(-LIMIT).starts_with("-1,000,000"));
        let mut count: i128 = 1;
        for i in 0..3000_i128 {
            count = (count * 7 + i) % LIMIT;
            assert_eq!(commas(count).replace(',', ""), count.to_string());
            assert!(
                commas(count).rsplit(',').skip(1).zip(commas(count).rsplit(',')).all(|(_, group)| group.len() == 3)
            );
        }
        assert_eq!(commas(i128::MIN).len(), 1 + 39 + 12);
    }

    #[test]
    fn percentages_are_rounded_as_the_language_does() {
        let mut value: f64 = 0.05;
        while value < 1e7 {
            for percent in
                [value, -value, value.next_up(), value.next_down(), (value * 20.0).round() / 20.0, value.floor()]
            {
                assert_eq!(percent_text(Some(percent)), format!("{percent:.1}%"));
            }
            value *= 1.003;
        }
        for percent in [0.0, -0.0, 0.04, -0.04, 0.05, 0.15, 0.25, 0.35, 99.95, 99.949, -1e38, f64::MIN_POSITIVE] {
            assert_eq!(percent_text(Some(percent)), format!("{percent:.1}%"));
        }
    }

    #[test]
    fn percentages_are_exact() {
        assert_eq!(percent(1, 0), None);
        assert_eq!(percent_text(percent(0, -6)), "-0.0%");
        assert_eq!(percent_text(percent(0, -LIMIT)), "-0.0%");
        assert_eq!(percent(0, 1 << 53), Some(0.0));
        assert_eq!(percent_text(percent(-2, -6)), "33.3%");
        assert_eq!(percent_text(percent(LIMIT, LIMIT)), "100.0%");
        assert_eq!(percent(LIMIT, 1), Some(1e38));
        assert_eq!(percent(1, LIMIT), Some(1e-34));
        // Not what doubles would give: the operands are rounded there.
        assert_eq!(percent((1 << 60) + 1, 3), Some(38_430_716_820_228_233_000.0));
        for (count, total) in [(1_i128, 3_i128), (9_007_199_254_740_991, 7), (90_071_992_547_409, 11)] {
            let scaled = percent(count * 1_000_000_007, total * 1_000_000_007);
            assert_eq!(scaled, percent(count, total), "{count} of {total}");
        }
    }
}
