//! How operands of records are read: words of 32 bits, of which two are one number of 64 bits, the low one first. Whoever goes through records
//! reads them by these. Never panics: a record that has been cut off gives nothing.

/// The number that two words are.
#[inline(always)]
#[must_use]
pub const fn joined(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The two words that a number is.
#[inline(always)]
#[must_use]
pub const fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// A number at the start of `operands`, an address for instance, and what is behind it.
#[inline(always)]
#[must_use]
pub const fn number(operands: &[u32]) -> Option<(u64, &[u32])> {
    match operands {
        [low, high, behind @ ..] => Some((joined(*low, *high), behind)),
        _ => None,
    }
}

/// A number and a word, such as an address and a size, and what is behind them.
#[inline(always)]
#[must_use]
pub const fn number_and_word(operands: &[u32]) -> Option<(u64, u32, &[u32])> {
    match operands {
        [low, high, word, behind @ ..] => Some((joined(*low, *high), *word, behind)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_apart_is_read_as_it_was() {
        for n in [0, 1, 0xffff_ffff, 1 << 32, 0x1234_5678_9abc_def0, u64::MAX] {
            let [low, high] = halves(n);
            assert_eq!(number(&[low, high, 7]), Some((n, &[7][..])));
            assert_eq!(number_and_word(&[low, high, 7]), Some((n, 7, &[][..])));
        }
        assert_eq!((number(&[1]), number_and_word(&[1, 2])), (None, None));
    }
}
