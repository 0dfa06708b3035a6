//! What begins on a page of guest code: asked for every branch of everything that is translated, so an answer takes no search.
//! Invariants: the live blocks stand in the order of their addresses, each address once, so that the place of one follows from
//! how many bits are set in front of its own; what is told of a block here is what the table has.

use grind_types::addr::GuestAddr;

use super::{Fragment, FragmentId};

/// A page of guest code.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// Which of its bytes begin a live block: a bit each.
    starts: [u64; 64],
    /// How many live blocks begin in front of each 64 bytes.
    before: [u16; 64],
    /// The live blocks that begin on it, in order.
    live: Vec<Live>,
    /// Other blocks with code on it; some may be dead.
    tails: Vec<FragmentId>,
}

/// What is asked most of a live block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) id: FragmentId,
    /// As in [`Fragment`].
    pub(super) dead_in: u16,
    /// As in [`Fragment`].
    pub(super) live_in: u8,
    /// Where it begins on the page.
    offset: u16,
}

impl Default for Page {
    fn default() -> Self {
        Self { starts: [0; 64], before: [0; 64], live: Vec::new(), tails: Vec::new() }
    }
}

/// The word that has an address's bit, and that bit.
fn place(pc: GuestAddr) -> (usize, u64) {
    ((pc.0 as usize & 0xfff) >> 6, 1 << (pc.0 & 63))
}

/// By a word: 1 for each word behind it.
static BEHIND: [[u16; 64]; 64] = {
    let mut table = [[0; 64]; 64];
    let mut word = 0;
    while word < 64 {
        let mut i = word + 1;
        while i < 64 {
            table[word][i] = 1;
            i += 1;
        }
        word += 1;
    }
    table
};

impl Page {
    /// Whether a live block begins at `pc`.
    pub(super) fn begins(&self, pc: GuestAddr) -> bool {
        let (word, bit) = place(pc);
        self.starts[word] & bit != 0
    }

    /// How many live blocks begin on the page in front of `pc`.
    fn rank(&self, pc: GuestAddr) -> usize {
        let (word, bit) = place(pc);
        usize::from(self.before[word]) + (self.starts[word] & (bit - 1)).count_ones() as usize
    }

    /// The live block at `pc`.
    pub(super) fn at(&self, pc: GuestAddr) -> Option<Live> {
        self.begins(pc).then(|| self.live[self.rank(pc)])
    }

    /// The first address from `pc` on at which a live block of this page begins.
    pub(super) fn next(&self, pc: GuestAddr) -> Option<GuestAddr> {
        Some(pc.page().plus(self.live.get(self.rank(pc))?.offset.into()))
    }

    /// Adds a block that begins here.
    pub(super) fn insert(&mut self, block: &Fragment, id: FragmentId) {
        if self.begins(block.pc) {
            // Of the copies of a loop, the first one is the one to be entered.
            self.tails.push(id);
            return;
        }
        let Fragment { pc, dead_in, live_in, .. } = *block;
        self.live.insert(self.rank(pc), Live { id, dead_in, live_in, offset: (pc.0 & 0xfff) as u16 });
        let (word, bit) = place(pc);
        self.starts[word] |= bit;
        // All of them at once, so that there are no branches.
        self.before.iter_mut().zip(&BEHIND[word]).for_each(|(n, one)| *n += one);
    }

    /// Adds a block that begins elsewhere.
    pub(super) fn insert_tail(&mut self, id: FragmentId) {
        self.tails.push(id);
    }

    /// The block at `pc` is dead, if it is `id`.
    pub(super) fn forget(&mut self, pc: GuestAddr, id: FragmentId) {
        if self.at(pc).is_none_or(|live| live.id != id) {
            return;
        }
        self.live.remove(self.rank(pc));
        let (word, bit) = place(pc);
        self.starts[word] &= !bit;
        self.before.iter_mut().zip(&BEHIND[word]).for_each(|(n, one)| *n -= one);
    }

    /// Keeps those blocks for which `keep` says so.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(FragmentId) -> bool) {
        let mut live = std::mem::take(&mut self.live).into_iter();
        let mut n = 0;
        for word in 0..64 {
            self.before[word] = n;
            let mut bits = self.starts[word];
            while bits != 0 {
                let bit = bits & bits.wrapping_neg();
                bits ^= bit;
                match live.next().filter(|l| keep(l.id)) {
                    Some(kept) => {
                        self.live.push(kept);
                        n += 1;
                    }
                    None => self.starts[word] &= !bit,
                }
            }
        }
        self.tails.retain(|id| keep(*id));
    }

    /// Nothing of it has been translated.
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.tails.is_empty()
    }
}
