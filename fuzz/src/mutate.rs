//! Makes new inputs from old ones: cuts, copies, joins, strewn words, damaged bytes, and whatever a target knows itself.
//!
//! The same seed makes the same inputs. An input never grows beyond the target's largest.

use crate::Target;

/// Xorshift, so that a run can be repeated by its seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((self.bits() >> 11) % bound as u64) as usize
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A number as files hold them: small, a power of two or next to one, or anything.
    pub fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(20) as u64,
            1 => (1_u64 << self.below(64)).wrapping_add(self.below(5) as u64).wrapping_sub(2),
            2 => u64::MAX - self.below(3) as u64,
            _ => self.bits() >> self.below(64),
        }
    }

    /// A range of what is `length` long: mostly short, since long ones destroy what is there.
    pub fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let (a, b) = (self.below(length + 1), self.below(length + 1));
        let end = if self.below(4) > 0 { a + self.below(16).min(length - a) } else { a.max(b) };
        a.min(end)..end
    }
}

/// An input made from one of `corpus`.
pub fn mutate(random: &mut Random, corpus: &[Vec<u8>], target: &Target) -> Vec<u8> {
    let mut input = corpus.get(random.below(corpus.len().max(1))).cloned().unwrap_or_default();
    for _ in 0..=random.below(6) {
        change(random, &mut input, corpus, target);
    }
    input
}

/// Changes `input` once.
pub fn change(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>], target: &Target) {
    match target.change {
        Some(change) if random.below(3) > 0 => change(random, input),
        _ => blindly(random, input, corpus, target.words),
    }
    input.truncate(target.largest);
}

fn blindly(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str]) {
    let at = random.below(input.len() + 1);
    match random.below(9) {
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
            let other = random.pick(corpus);
            let part = other[random.range(other.len())].to_vec();
            input.splice(random.range(input.len()), part);
        }
        5 if !words.is_empty() => drop(input.splice(random.range(input.len()), random.pick(words).bytes())),
        // What costs more than it should shows when there is much of it.
        6 if random.below(8) == 0 => {
            let copy = input[random.range(input.len())].to_vec();
            let times = 1 << random.below(14);
            if !copy.is_empty() && copy.len() * times <= 1 << 18 {
                input.splice(at..at, copy.repeat(times));
            }
        }
        _ if !words.is_empty() => drop(input.splice(at..at, random.pick(words).bytes())),
        _ => {}
    }
}
