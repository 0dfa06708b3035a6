//! Lines on their way to an output, gathered in large pieces, for the writers of both formats.
//!
//! Nothing here knows a format. What cannot stand within a line is escaped, so that what is written can be read back; no
//! number is ever rounded.

use std::io::{self, Write};

/// Lines, of which the last one may be incomplete.
pub(crate) struct Lines<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
}

const PIECE: usize = 1 << 16;

impl<'o> Lines<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, buffer: Vec::with_capacity(PIECE + 4096) }
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        self.buffer.push(byte);
        self
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(bytes);
        self
    }

    /// A name, or other text of the user's; what would end the line is escaped.
    pub(crate) fn name(&mut self, name: &[u8]) -> &mut Self {
        for (i, byte) in name.iter().enumerate() {
            match byte {
                b'\n' => self.buffer.extend_from_slice(b"\\n"),
                // At the end of a line it would be taken for a part of the line's end.
                b'\r' if i + 1 == name.len() => self.buffer.extend_from_slice(b"\\r"),
                _ => self.buffer.push(*byte),
            }
        }
        self
    }

    /// A whole line: a key and what belongs to it.
    pub(crate) fn line(&mut self, key: &[u8], text: &[u8]) -> io::Result<()> {
        self.bytes(key).name(text).end()
    }

    #[inline]
    pub(crate) fn decimal(&mut self, value: u64) -> &mut Self {
        push_number(&mut self.buffer, value);
        self
    }

    #[inline]
    pub(crate) fn signed(&mut self, value: i64) -> &mut Self {
        if value < 0 {
            self.buffer.push(b'-');
        }
        self.decimal(value.unsigned_abs())
    }

    pub(crate) fn wide(&mut self, value: i128) -> &mut Self {
        match i64::try_from(value) {
            Ok(narrow) => self.signed(narrow),
            Err(_) => self.bytes(value.to_string().as_bytes()),
        }
    }

    /// Ends the line.
    ///
    /// # Errors
    /// Whatever the output answers.
    #[inline]
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= PIECE {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// Whatever the output answers.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.out.write_all(&self.buffer)
    }
}

/// Appends a number.
fn push_number(buffer: &mut Vec<u8>, number: u64) {
    const EIGHT: u64 = 100_000_000;
    if number < EIGHT {
        let digits = eight_digits(number);
        // The last digit is there in any case.
        let zeros = (digits | 1 << 56).trailing_zeros() & !7;
        buffer.extend_from_slice(&((digits | ZEROS) >> zeros).to_le_bytes());
        buffer.truncate(buffer.len() - zeros as usize / 8);
    } else {
        push_number(buffer, number / EIGHT);
        buffer.extend_from_slice(&(eight_digits(number % EIGHT) | ZEROS).to_le_bytes());
    }
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The digits of a number below 10^8, one in each byte, the first in the lowest: fours, pairs and digits side by side.
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - tens * 10) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_like_the_librarys() {
        let mut numbers: Vec<u64> = (0..20_000).chain([u64::MAX, u64::MAX - 1, u64::from(u32::MAX)]).collect();
        for exponent in 0..20 {
            let power = 10_u64.pow(exponent);
            numbers.extend([power - 1, power, power + 1, power.saturating_mul(9), power.wrapping_mul(7_777_777)]);
        }
        let mut number = 1_u64;
        for shift in 0..64 {
            number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            numbers.push(number >> shift);
        }
        for number in numbers {
            let mut text = b"x".to_vec();
            push_number(&mut text, number);
            assert_eq!(String::from_utf8(text).unwrap(), format!("x{number}"));
        }
    }

    #[test]
    fn eight_digits_are_right_throughout() {
        for number in (0..100_000_000).step_by(37) {
            let text = (eight_digits(number) | ZEROS).to_le_bytes();
            assert_eq!(text.as_slice(), format!("{number:08}").as_bytes());
        }
    }
}
