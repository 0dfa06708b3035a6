//! Numbers and positions of the callgrind format.
//!
//! A number is right or reported as out of range; nothing is ever rounded or wrapped unnoticed.

use crate::count::TooLarge;
use crate::text::digits::{DIGITS, digits};
use crate::text::lines::PAD;

/// The position that `text` starts with and how long it is: absolute, or relative to `last`. No value if it is out of
/// range, nothing at all if there is no number. `text` must have at least [`PAD`] bytes after its line.
#[inline]
pub(super) fn position(text: &[u8], last: u64) -> Option<(Option<u64>, usize)> {
    let (value, length) = match text[0] {
        b'*' => (Some(last), 1),
        b'+' => {
            let (value, length) = unsigned(&text[1..])?;
            (value.and_then(|value| last.checked_add(value)), length + 1)
        }
        b'-' => {
            let (value, length) = unsigned(&text[1..])?;
            (value.and_then(|value| last.checked_sub(value)), length + 1)
        }
        _ => unsigned(text)?,
    };
    // A blank, the end of the line, or the padding.
    (text[length] <= b' ').then_some((value, length))
}

/// The number that `text` starts with, decimal or hexadecimal, and its length; no value above 64 bits.
#[inline]
fn unsigned(text: &[u8]) -> Option<(Option<u64>, usize)> {
    let (value, length) = digits(text);
    if length == 1 && value == 0 && matches!(text[1], b'x' | b'X') {
        let mut value = Some(0_u64);
        let mut length = 2;
        while let Some(digit) = char::from(text[length]).to_digit(16) {
            value = value.filter(|value| value >> 60 == 0).map(|value| value << 4 | u64::from(digit));
            length += 1;
        }
        return (length > 2).then_some((value, length));
    }
    if length > DIGITS {
        let parsed = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.parse().ok());
        return Some((parsed, length));
    }
    (length > 0).then_some((Some(value), length))
}

/// A cost of an unusual form: long, hexadecimal or negative. Negative ones come as their two's complement.
#[cold]
pub(super) fn careful(text: &[u8]) -> Option<Result<(u64, usize), TooLarge>> {
    let negative = text[0] == b'-';
    let (value, length) = unsigned(&text[usize::from(negative)..])?;
    let length = length + usize::from(negative);
    if text[length] > b' ' {
        return None;
    }
    let Some(value) = value else { return Some(Err(TooLarge)) };
    if negative && value > 1 << 63 {
        return Some(Err(TooLarge));
    }
    Some(Ok((if negative { value.wrapping_neg() } else { value }, length)))
}

/// A whole word as a number: decimal or hexadecimal.
pub(super) fn number(word: &[u8]) -> Option<Result<u64, TooLarge>> {
    let padded = padded(word)?;
    let (value, length) = unsigned(&padded)?;
    (length == word.len()).then(|| value.ok_or(TooLarge))
}

/// A whole word as a cost, which may be negative, as [`careful`] has it.
pub(super) fn cost(word: &[u8]) -> Option<Result<u64, TooLarge>> {
    let padded = padded(word)?;
    let cost = careful(&padded)?;
    cost.map(|(cost, length)| (length == word.len()).then_some(cost)).transpose()
}

/// A whole word as a position, relative to `last` or not; no value if it is out of range.
pub(super) fn whole_position(word: &[u8], last: u64) -> Option<Option<u64>> {
    let padded = padded(word)?;
    let (value, length) = position(&padded, last)?;
    (length == word.len()).then_some(value)
}

/// A word with what the functions above want behind it. No number is longer.
fn padded(word: &[u8]) -> Option<[u8; LONGEST + PAD]> {
    let mut buffer = [0; LONGEST + PAD];
    buffer.get_mut(..word.len().min(LONGEST + 1)).filter(|_| word.len() <= LONGEST)?.copy_from_slice(word);
    Some(buffer)
}

const LONGEST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow, obvious twin.
    fn naive(word: &str, last: u64) -> Option<Option<u64>> {
        let absolute = |text: &str| {
            let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
            let all = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            all.then(|| u64::from_str_radix(digits, radix).ok())
        };
        match word.chars().next()? {
            '*' => (word == "*").then_some(Some(last)),
            '+' => Some(absolute(&word[1..])?.and_then(|value| last.checked_add(value))),
            '-' => Some(absolute(&word[1..])?.and_then(|value| last.checked_sub(value))),
            _ => absolute(word),
        }
    }

    #[test]
    fn positions_are_what_they_seem() {
        let numbers = ["0", "7", "00", "12345678", "123456789012345", "1234567890123456", "18446744073709551615"];
        let others =
            ["18446744073709551616", "", "0x", "0x0", "0xfF", "0xffffffffffffffff", "0x10000000000000000", "x1", "1x"];
        for text in numbers.iter().chain(&others) {
            for sign in ["", "+", "-", "*", "--"] {
                for last in [0, 9, u64::MAX] {
                    let word = format!("{sign}{text}");
                    assert_eq!(whole_position(word.as_bytes(), last), naive(&word, last), "{word} from {last}");
                    if sign.is_empty() {
                        let plain = naive(&word, 0).map(|value| value.ok_or(TooLarge));
                        assert_eq!(number(word.as_bytes()), plain, "{word}");
                    }
                }
            }
        }
        assert_eq!(number(&[b'1'; 41]), None);
    }

    #[test]
    fn unusual_costs_are_read_carefully() {
        let read = |text: &str| careful(format!("{text}\n\0\0\0\0\0\0\0\0").as_bytes());
        assert_eq!(read("18446744073709551615"), Some(Ok((u64::MAX, 20))));
        assert_eq!(read("-2"), Some(Ok((u64::MAX - 1, 2))));
        assert_eq!(read("0x1f"), Some(Ok((31, 4))));
        assert_eq!(read("-9223372036854775808"), Some(Ok((1 << 63, 20))));
        assert_eq!(read("-9223372036854775809"), Some(Err(TooLarge)));
        assert_eq!(read("18446744073709551616"), Some(Err(TooLarge)));
        assert_eq!(read("1.5"), None);
        assert_eq!(read("-"), None);
    }
}
