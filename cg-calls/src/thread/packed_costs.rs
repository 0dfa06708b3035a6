//! What [`Calls::fast_path`] does with costs where there are several, and with records of a simulation that stand among the
//! others.
//!
//! Invariant: no sum of packed costs ever overflows into the next one; see [`PackedCosts::RUN`].

use super::Calls;
use super::Step;
use super::fast_path::{Costs, Several};

/// What one execution of a counter costs, of the costs that are known from its instructions, as far as they fit into a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed(u32);

/// Bits of each cost in a [`Packed`], the lowest first.
const BITS: [u32; Packed::COSTS] = [8, 8, 8, 2, 2, 4];

impl Packed {
    /// How many costs fit.
    pub const COSTS: usize = 6;

    /// Packs these; nothing, if one of them is too large.
    pub fn new(costs: [u64; Self::COSTS]) -> Option<Packed> {
        let (mut word, mut at) = (0, 0);
        for (cost, bits) in costs.into_iter().zip(BITS) {
            if cost >> bits != 0 {
                return None;
            }
            word |= (cost as u32) << at;
            at += bits;
        }
        Some(Packed(word))
    }

    /// The word, for [`Step::cost`].
    pub fn word(self) -> u32 {
        self.0
    }
}

/// Which costs a packed word has: their indices among the totals. Those that are not counted are always 0, and may have any
/// index.
pub type Places = [usize; Packed::COSTS];

/// Sums of packed words, as long as they are few.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// The first cost, below bit 16, and the third.
    even: u64,
    second: u64,
    /// The last three: 16 bits each.
    last: u64,
}

/// The last three costs of a packed word, 16 bits each, by its highest byte.
const SPREAD: [u64; 256] = {
    let mut spread = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        spread[byte] = (byte as u64 & 3) | (byte as u64 >> 2 & 3) << 16 | (byte as u64 >> 4) << 32;
        byte += 1;
    }
    spread
};

impl Sums {
    /// So many words can be added: 257 times 255 is less than 2^16.
    const FEW: usize = 257;

    #[inline(always)]
    fn add(&mut self, word: u32) {
        self.even += u64::from(word & 0x00ff_00ff);
        self.second += u64::from(word >> 8 & 0xff);
        self.last += SPREAD[(word >> 24) as usize];
    }

    /// All sums.
    fn all(self) -> [u64; Packed::COSTS] {
        let low = |word: u64| word & 0xffff;
        [low(self.even), self.second, self.even >> 16, low(self.last), low(self.last >> 16), self.last >> 32]
    }
}

/// Several costs.
struct PackedCosts<'a, const W: usize, M> {
    places: &'a Places,
    all: Several<W, M>,
    /// What its reading does not have yet.
    sums: Sums,
}

impl<const W: usize, M: FnMut(u32, &[u32], &mut [u64; W]) -> Option<(u32, usize)>> Costs for PackedCosts<'_, W, M> {
    const COSTS: usize = W;
    const RUN: usize = Sums::FEW / 2 - 1;

    #[inline(always)]
    fn add(&mut self, cost: u32) {
        self.sums.add(cost);
    }

    #[inline]
    fn settle(&mut self) {
        for (place, sum) in self.places.iter().zip(std::mem::take(&mut self.sums).all()) {
            self.all.reading[*place] += sum;
        }
    }

    #[inline]
    fn enter(&self, entered: &mut [u64], depth: usize) {
        self.all.enter(entered, depth);
    }

    #[inline]
    fn leave(&self, entered: &[u64], depth: usize, arc: &mut [u64]) {
        self.all.leave(entered, depth, arc);
    }

    #[inline]
    fn skip(&mut self, cost: u32, others: &mut [u64]) {
        self.add(cost);
        let mut sums = Sums::default();
        sums.add(cost);
        for (place, sum) in self.places.iter().zip(sums.all()) {
            others[*place] += sum;
        }
    }

    #[inline]
    fn other(&mut self, number: u32, words: &[u32]) -> Option<(u32, usize)> {
        self.all.other(number, words)
    }
}

impl Calls {
    /// As [`Calls::fast_path`], with steps whose costs are [`Packed`]; adds those to `now`. `miss` is asked about records that
    /// are not ordinary, with their number and all words from there on: it adds what it knows to the totals, and answers with
    /// the counter that this is a cost of, and the record's words; nothing, if the record is not its concern.
    ///
    /// # Panics
    /// If `W` is not the number of costs, or `places` has an index beyond it.
    pub fn fast_path_wide<const W: usize>(
        &mut self,
        places: &Places,
        steps: &[Step],
        words: &[u32],
        now: &mut [u64],
        miss: impl FnMut(u32, &[u32], &mut [u64; W]) -> Option<(u32, usize)>,
    ) -> usize {
        let reading = std::array::from_fn(|i| self.meter.read(now, i));
        let mut costs = PackedCosts { places, all: Several { reading, miss }, sums: Sums::default() };
        let done = self.fast_path_by(&mut costs, steps, words);
        if done > 0 {
            self.meter.totals_of(&costs.all.reading, now);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_packed_if_they_fit() {
        let costs = [255, 3, 200, 1, 2, 15];
        let packed = Packed::new(costs).expect("small costs");
        let mut sums = Sums::default();
        sums.add(packed.word());
        assert_eq!(sums.all(), costs);
        assert_eq!(Packed::new([256, 0, 0, 0, 0, 0]), None);
        assert_eq!(Packed::new([1, 0, 0, 4, 0, 0]), None);
    }

    #[test]
    fn sums_of_the_largest_costs_do_not_meet() {
        let most = BITS.map(|bits| (1 << bits) - 1);
        let word = Packed::new(most).expect("what fits").word();
        let mut sums = Sums::default();
        (0..Sums::FEW).for_each(|_| sums.add(word));
        assert_eq!(sums.all(), most.map(|cost| cost * Sums::FEW as u64));
    }
}
