//! Numbers in profiles, as fast as they can be read without unsafe code.
//!
//! A number is right or reported as too long; nothing is ever rounded or wrapped unnoticed.

/// Numbers of more digits are left to the careful way.
pub(crate) const DIGITS: usize = 15;

const ZEROS: u64 = 0x3030_3030_3030_3030;

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
    fn every_number_is_read() {
        let mut text: Vec<u8> = Vec::new();
        let mut wanted = Vec::new();
        for i in 0..3000_u64 {
            let digits = (i * 7 % 15 + 1) as u32;
            let value = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_u64.pow(digits);
            let start = text.len();
            text.extend_from_slice(value.to_string().as_bytes());
            wanted.push((start, text.len(), value));
            text.push((i * 3) as u8);
        }
        text.resize(text.len() + 8, b'7');
        for (start, end, value) in wanted {
            assert_eq!(number(&text, start, end), value);
        }
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
