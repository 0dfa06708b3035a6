//! Event counts: exact integers and the limit that they have.
//!
//! A count is signed, since the difference of two profiles is a profile too. A count whose size exceeds [`LIMIT`] is
//! refused, never wrapped or rounded: below the limit a percentage can be computed without overflow.

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

/// Whether a count is not beyond [`LIMIT`].
#[inline]
pub(crate) fn within_limit(count: i128) -> bool {
    count.wrapping_add(LIMIT) as u128 <= 2 * LIMIT as u128
}

/// `a + b`, unless the sum is beyond [`LIMIT`].
#[inline]
pub fn sum(a: i128, b: i128) -> Result<i128, TooLarge> {
    match a.checked_add(b) {
        Some(value) if within_limit(value) => Ok(value),
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
}
