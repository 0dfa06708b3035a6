//! The branch predictor: of a conditional branch whether it is taken, of an indirect one where it leads.
//!
//! Conditional branches: 16,384 two-bit counters that saturate, chosen by the low seven bits of the branch's address and the
//! outcomes of the last seven conditional branches. Indirect ones: 512 last targets, chosen by the low nine bits of the
//! address, without tags. Everything starts at zero: not taken, target 0. A thread has a predictor of its own.

/// Outcomes that are remembered, and bits of the address that are used with them.
const BITS: u32 = 7;
const MASK: u32 = (1 << BITS) - 1;
const COUNTERS: usize = 1 << (2 * BITS);
const TARGETS: usize = 512;

/// The state of the predictor of one thread.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// The last outcomes, the newest in the lowest bit. Bits above [`BITS`] are of no use.
    history: u32,
    counters: Box<[u8; COUNTERS]>,
    targets: Box<[u64; TARGETS]>,
}

impl Default for Predictor {
    fn default() -> Self {
        Self::new()
    }
}

impl Predictor {
    /// A predictor that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { history: 0, counters: Box::new([0; COUNTERS]), targets: Box::new([0; TARGETS]) }
    }

    /// The conditional branch at `addr` is or is not `taken`. Returns whether that was mispredicted.
    #[inline]
    pub fn conditional(&mut self, addr: u64, taken: bool) -> bool {
        let index = ((self.history & MASK) << BITS) | (addr as u32 & MASK);
        let counter = &mut self.counters[index as usize];
        // Bit 0: the outcome; bits 1 and 2: the counter.
        let state = usize::from(*counter) * 2 + usize::from(taken);
        // Without branches: outcomes that are hard to predict here are hard to predict in the host, too.
        const NEXT: [u8; 8] = [0, 1, 0, 2, 1, 3, 2, 3];
        *counter = NEXT[state & 7];
        self.history = self.history << 1 | u32::from(taken);
        (state >= 4) != taken
    }

    /// The indirect jump or call at `addr` leads to `target`. Returns whether that was mispredicted.
    #[inline]
    pub fn indirect(&mut self, addr: u64, target: u64) -> bool {
        let last = &mut self.targets[addr as usize % TARGETS];
        let wrong = *last != target;
        *last = target;
        wrong
    }
}
