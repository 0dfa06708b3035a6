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

/// Three digits of all numbers that have no more, each with a comma before them.
static GROUPS: [[u8; 4]; 1000] = {
    let mut groups = [[b','; 4]; 1000];
    let mut number = 0;
    while number < groups.len() {
        groups[number] =
            [b',', b'0' + (number / 100) as u8, b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    groups
};

const BLANKS: u32 = u32::from_le_bytes([b' '; 4]);

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
            self.group((rest % 1000) as u64);
            rest /= 1000;
        }
        let mut rest = rest as u64;
        while rest >= 1000 {
            self.group(rest % 1000);
            rest /= 1000;
        }
        self.number(rest);
        if count < 0 {
            self.byte(b'-');
        }
    }

    /// Puts a percentage before the others, with one digit after the point, or `n/a`.
    pub fn percent(&mut self, percent: Option<f64>) {
        let Some(percent) = percent else { return self.put(b"n/a") };
        let tenths = percent.abs() * 10.0;
        let whole = tenths as u32;
        let rest = tenths - f64::from(whole);
        // Rounding is only in doubt near a half; the product is off by less than 10^-9.
        if tenths < 1e6 && (rest - 0.5).abs() > 0.000_001 {
            let nearest = whole + u32::from(rest > 0.5);
            self.byte(b'%');
            self.byte(b'0' + (nearest % 10) as u8);
            self.byte(b'.');
            self.number(u64::from(nearest / 10));
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

    /// Three digits and the comma before them.
    #[inline]
    fn group(&mut self, group: u64) {
        if let Some((before, place)) = self.bytes[..self.start].split_last_chunk_mut() {
            *place = GROUPS[group as usize];
            self.start = before.len();
        }
    }

    /// A number without zeros before it.
    #[inline]
    fn number(&mut self, mut number: u64) {
        if let Some(group) = GROUPS.get(number as usize)
            && let Some((_, place)) = self.bytes[..self.start].split_last_chunk_mut()
        {
            // Without branches, since nobody can guess how many digits there are.
            let length = 1 + u32::from(number > 9) + u32::from(number > 99);
            let digits = u32::MAX << (8 * (4 - length));
            *place = (u32::from_le_bytes(*group) & digits | BLANKS & !digits).to_le_bytes();
            self.start -= length as usize;
            return;
        }
        loop {
            self.byte(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                break;
            }
        }
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
#[inline]
pub fn percent(count: i128, total: i128) -> Option<f64> {
    if total == 0 {
        return None;
    }
    if let (Ok(dividend), Ok(divisor)) = (i64::try_from(count * 100), i64::try_from(total))
        && dividend.max(divisor) <= EXACT
        && dividend.min(divisor) >= -EXACT
    {
        // Both are doubles, and the processor rounds their quotient correctly.
        return Some(dividend as f64 / divisor as f64);
    }
    let size = quotient(count.unsigned_abs() * 100, total.unsigned_abs());
    Some(if (count < 0) == (total < 0) { size } else { -size })
}

/// A percentage with one digit after the point, or `n/a`; below 10^100.
#[must_use]
pub fn percent_text(percent: Option<f64>) -> String {
    let mut room = [0; Cell::WIDEST];
    let mut cell = Cell::new(&mut room);
    cell.percent(percent);
    cell.to_string()
}

/// Doubles hold all whole numbers up to this one.
const EXACT: i64 = 1 << 53;

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
