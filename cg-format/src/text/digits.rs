//! Numbers in profiles, as fast as they can be read without unsafe code.
//!
//! A number is right or reported as too long; nothing is ever rounded or wrapped unnoticed.

/// Numbers of more digits are left to the careful way.
pub(crate) const DIGITS: usize = 15;

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Finds where numbers end, 64 bytes at a time: knowing all ends early, the processor works on several numbers at once.
///
/// The text must have [`BLOCK`] bytes behind everything that is asked for.
pub(crate) struct Ends {
    base: usize,
    /// A bit for each byte from `base` on that is no digit and was not handed out.
    left: u64,
}

pub(crate) const BLOCK: usize = 64;

impl Ends {
    /// Starts at `at`.
    #[inline]
    pub(crate) fn new(text: &[u8], at: usize) -> Self {
        Self { base: at, left: others(text, at) }
    }

    /// The place of the next byte that is no digit.
    #[inline]
    pub(crate) fn next(&mut self, text: &[u8]) -> usize {
        while self.left == 0 {
            self.base += BLOCK;
            self.left = others(text, self.base);
        }
        let place = self.base + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        place
    }
}

/// A bit for each of the 64 bytes at `at` that is no digit; behind the text there are none.
///
/// Not in line: loops over numbers need the registers.
#[inline(never)]
fn others(text: &[u8], at: usize) -> u64 {
    let Some(block) = text.get(at..).and_then(|text| text.first_chunk::<BLOCK>()) else { return u64::MAX };
    let mut bits = 0;
    for (i, eight) in block.as_chunks::<8>().0.iter().enumerate() {
        let values = u64::from_le_bytes(*eight) ^ ZEROS;
        // The top bit of each byte that is no digit. Without the top bits no sum reaches into the next byte.
        let tops = (((values & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
        // Each of them moves to its place in the highest byte; nothing else gets there.
        bits |= ((tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    bits
}

/// The number in `text[start..end]`, which is 1 to [`DIGITS`] digits long and has 8 bytes behind it.
#[inline]
pub(crate) fn number(text: &[u8], start: usize, end: usize) -> u64 {
    let load =
        |at: usize| text.get(at..).and_then(|text| text.first_chunk::<8>()).map_or(0, |e| u64::from_le_bytes(*e));
    let length = end - start;
    if length <= 8 {
        return eight_digits((load(start) ^ ZEROS) << (64 - 8 * length));
    }
    let high = (load(start) ^ ZEROS) << (64 - 8 * (length - 8));
    eight_digits(high) * 100_000_000 + eight_digits(load(end - 8) ^ ZEROS)
}

/// The number that `text` starts with and how many digits it has; the number is right for up to 19 digits.
///
/// Eight digits are looked at at once, since loops over digits are unpredictable branches: this is most of the work.
#[inline]
pub(crate) fn digits(text: &[u8]) -> (u64, usize) {
    let Some(eight) = text.first_chunk::<8>() else { return more_digits(text, 0, 0) };
    let values = u64::from_le_bytes(*eight) ^ ZEROS;
    // The top bit of each byte that is no digit, right up to the first of them.
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    if others == 0 {
        return more_digits(text, eight_digits(values), 8);
    }
    let length = others.trailing_zeros() / 8;
    if length == 0 {
        return (0, 0);
    }
    (eight_digits(values << (64 - 8 * length)), length as usize)
}

/// The number whose digits are the bytes of `values`, the first in the lowest byte.
#[inline]
pub(crate) fn eight_digits(values: u64) -> u64 {
    const MASK: u64 = 0x0000_00ff_0000_00ff;
    // Pairs, then fours and eights in one step: the upper halves of the products collect the sum.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let low = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let high = ((pairs >> 16) & MASK).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

/// Continues a number after `length` digits.
#[inline(never)]
fn more_digits(text: &[u8], mut value: u64, mut length: usize) -> (u64, usize) {
    while let Some(byte) = text.get(length) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    (value, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_found_and_every_number_read() {
        let mut text: Vec<u8> = Vec::new();
        let mut wanted = Vec::new();
        for i in 0..3000_u64 {
            let digits = (i * 7 % 15 + 1) as u32;
            let value = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_u64.pow(digits);
            let start = text.len();
            text.extend_from_slice(value.to_string().as_bytes());
            wanted.push((start, text.len(), value));
            // Every byte that is no digit ends a number.
            let other = (i * 3 % 246) as u8;
            text.push(if other < b'0' { other } else { other + 10 });
        }
        let end = text.len();
        text.resize(end + BLOCK, b'7');
        for from in 0..70 {
            let mut ends = Ends::new(&text, wanted[from].0);
            for (start, end, value) in &wanted[from..] {
                assert_eq!(ends.next(&text), *end);
                assert_eq!(number(&text, *start, *end), *value);
            }
        }
    }

    #[test]
    fn what_is_no_digit_is_found_everywhere() {
        let mut seed = 1_u64;
        for round in 0..2000_u64 {
            let mut block = [0; BLOCK];
            for (i, byte) in block.iter_mut().enumerate() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Every byte at every place, and then mostly digits.
                *byte = if round < 256 { (round as usize + i) as u8 } else { b'.' + (seed >> 33) as u8 % 14 };
            }
            let wanted = (0..BLOCK).filter(|i| !block[*i].is_ascii_digit()).fold(0, |bits, i| bits | 1_u64 << i);
            assert_eq!(others(&block, 0), wanted, "{block:?}");
        }
        assert_eq!(others(&[b'1'; BLOCK], 1), u64::MAX, "behind the text");
    }

    #[test]
    fn numbers_of_any_length_are_read_at_any_place() {
        for number in
            ["", "0", "7", "42", "007", "1234567", "12345678", "123456789", "999999999999999", "18446744073709551615"]
        {
            for rest in ["", "\n", " 5 6 7 8 9", "/", ":", "-1", "\u{ff}\u{ff}\u{ff}\u{ff}"] {
                let text = format!("{number}{rest}");
                let (value, length) = digits(text.as_bytes());
                assert_eq!(length, number.len(), "{text}");
                if length <= DIGITS {
                    assert_eq!(value, number.parse().unwrap_or(0), "{text}");
                }
            }
        }
    }
}
