//! Where numbers end: a bit for each byte of a text, set if it is no digit.
//!
//! All bits of a piece are made at once, before anything is read: that has neither branches nor anything to wait for.
//! Here nothing is decided about the text; a place that is handed out wants to be looked at.

/// The bytes that are looked at together.
pub(crate) const BLOCK: usize = 64;

/// The bits of a piece of text, and room for those of the next one.
#[derive(Default)]
pub(crate) struct Marks {
    words: Vec<u64>,
}

impl Marks {
    /// Makes the bits of `text`, but for what is behind its last whole block.
    pub(crate) fn make(&mut self, text: &[u8]) {
        self.words.clear();
        self.words.extend(text.as_chunks::<BLOCK>().0.iter().map(others));
        // Blocks may begin anywhere: the last one takes bits of two words as well.
        self.words.push(u64::MAX);
    }

    /// The ends at `at` and behind it.
    #[inline(always)]
    pub(crate) fn from(&self, at: usize) -> Ends<'_> {
        Ends { marks: self, base: at, left: self.block(at) }
    }

    /// The bits of the block that begins at `at`, which may be anywhere. Behind the text nothing is a digit.
    #[inline(always)]
    fn block(&self, at: usize) -> u64 {
        let (word, shift) = (at / BLOCK, at % BLOCK);
        let Some([low, high, ..]) = self.words.get(word..) else { return u64::MAX };
        // Not by 64, which would be too far.
        low >> shift | high << 1 << (BLOCK - 1 - shift)
    }
}

/// Hands out the places of bytes that are no digits, in order.
#[derive(Clone)]
pub(crate) struct Ends<'a> {
    marks: &'a Marks,
    base: usize,
    /// A bit for each byte from `base` on that is no digit and was not handed out.
    left: u64,
}

impl Ends<'_> {
    /// The place of the next byte that is no digit.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> usize {
        while self.left == 0 {
            self.base += BLOCK;
            self.left = self.marks.block(self.base);
        }
        let place = self.base + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        place
    }
}

/// A bit for each byte that is no digit.
#[inline(always)]
fn others(block: &[u8; BLOCK]) -> u64 {
    // A loop that is done 16 bytes at a time.
    let mut weights = [0_u8; BLOCK];
    for (i, (weight, byte)) in weights.iter_mut().zip(block).enumerate() {
        *weight = if byte.is_ascii_digit() { 0 } else { 1 << (i % 8) };
    }
    let mut bits = 0;
    for (i, eight) in weights.as_chunks::<8>().0.iter().enumerate() {
        // The highest byte of the product is the sum of all eight.
        bits |= (u64::from_le_bytes(*eight).wrapping_mul(0x0101_0101_0101_0101) >> 56) << (8 * i);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_found() {
        let mut text: Vec<u8> = Vec::new();
        let mut wanted = Vec::new();
        for i in 0..3000_u64 {
            let (length, start) = (i as usize * 7 % 15 + 1, text.len());
            text.resize(start + length, b'0' + (i % 10) as u8);
            wanted.push((start, text.len()));
            // Every byte that is no digit ends a number.
            let other = (i * 3 % 246) as u8;
            text.push(if other < b'0' { other } else { other + 10 });
        }
        text.resize(text.len() + BLOCK, b'7');
        let mut marks = Marks::default();
        marks.make(b"what was there before");
        marks.make(&text);
        for from in 0..70 {
            let mut ends = marks.from(wanted[from].0);
            for (_, end) in &wanted[from..] {
                assert_eq!(ends.next(), *end);
            }
        }
    }

    #[test]
    fn ends_are_found_from_any_place_and_behind_any_number_of_digits() {
        for length in 0..300 {
            let mut text = vec![b'1'; length];
            text.push(b'\n');
            text.resize(length + 1 + BLOCK, b'7');
            let mut marks = Marks::default();
            marks.make(&text);
            for at in 0..=length {
                assert_eq!(marks.from(at).next(), length, "from {at}");
            }
            assert!(marks.from(length + 1).next() > length);
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
            assert_eq!(others(&block), wanted, "{block:?}");
        }
    }
}
