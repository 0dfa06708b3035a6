//! Makes new inputs from old ones: cuts, copies, joins, strewn words and damaged bytes.
//!
//! The same seed makes the same inputs. An input never grows beyond [`LARGEST`].

/// The largest input made, in bytes.
pub const LARGEST: usize = 1 << 14;

/// Xorshift, so that a run can be repeated by its seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % bound as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let (a, b) = (self.below(length + 1), self.below(length + 1));
        // Mostly short: long ones destroy what is there.
        let end = if self.below(4) > 0 { a + self.below(16).min(length - a) } else { a.max(b) };
        a.min(end)..end
    }
}

/// An input made from one of `corpus`, to which `words` may be added.
pub fn mutate(random: &mut Random, corpus: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = corpus.get(random.below(corpus.len().max(1))).cloned().unwrap_or_default();
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        match random.below(8) {
            0 if !input.is_empty() => {
                let at = random.below(input.len());
                input[at] = random.below(256) as u8;
            }
            1 if !input.is_empty() => {
                let at = random.below(input.len());
                input[at] ^= 1 << random.below(8);
            }
            2 => drop(input.drain(random.range(input.len()))),
            3 => {
                let copy = input[random.range(input.len())].to_vec();
                for _ in 0..=random.below(3) {
                    input.splice(at..at, copy.iter().copied());
                }
            }
            4 if !corpus.is_empty() => {
                let other = &corpus[random.below(corpus.len())];
                let part = other[random.range(other.len())].to_vec();
                input.splice(random.range(input.len()), part);
            }
            5 => drop(input.splice(random.range(input.len()), words[random.below(words.len())].bytes())),
            _ => drop(input.splice(at..at, words[random.below(words.len())].bytes())),
        }
        input.truncate(LARGEST);
    }
    input
}
