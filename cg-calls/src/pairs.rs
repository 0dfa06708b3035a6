//! How often a place that costs something had each of two outcomes, by the node that ran: misses that the last level answered, and
//! those that memory did. Each outcome is a counter; whichever comes next, it is counted in the same place, which says whom it counts
//! for, too.
//!
//! Invariants: what is in a pair belongs to the node that the pair names, and is in no other table; a count that is not zero has a
//! counter.

use crate::table::{NONE, Table};

/// How often a place had each outcome, for one node.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Pair {
    node: u32,
    counts: [u32; 2],
}

impl Pair {
    const NOBODY: Pair = Pair { node: NONE, counts: [0; 2] };
}

// Both of a place are on one line of the processor's cache.
const _: () = assert!(size_of::<[Pair; 2]>() == 32);

/// The pairs of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    /// By place, for an even node and an odd one: levels of recursion next to each other do not get in each other's way.
    all: Vec<[Pair; 2]>,
    /// By place: the counters of its outcomes, or [`NONE`].
    counters: Vec<[u32; 2]>,
}

impl Pairs {
    /// Counts an outcome for `node` if that had it the last time; says whether.
    #[inline]
    pub(crate) fn count_again(&mut self, place: u32, outcome: usize, node: u32) -> bool {
        match self.all.get_mut(place as usize).map(|pair| &mut pair[(node & 1) as usize]) {
            Some(pair) if pair.node == node => match pair.counts.get_mut(outcome) {
                Some(count) if !matches!(*count, 0 | u32::MAX) => {
                    *count += 1;
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Where the counts of a place are, in memory: what [`Pairs::count_again`] will look at.
    #[inline]
    pub(crate) fn address(&self, place: u32) -> Option<usize> {
        self.all.get(place as usize).map(|pair| std::ptr::from_ref(pair).addr())
    }

    /// Counts an outcome, which is this counter, for `node`.
    #[cold]
    #[inline(never)]
    pub(crate) fn count(
        &mut self,
        counters: &mut Table<(u32, u32)>,
        (place, outcome): (u32, usize),
        counter: u32,
        node: u32,
    ) {
        let at = place as usize;
        if at >= self.all.len() {
            let room = (at + 1).max(self.all.len() * 2);
            self.all.resize(room, [Pair::NOBODY; 2]);
            self.counters.resize(room, [NONE; 2]);
        }
        self.counters[at][outcome] = counter;
        let parity = (node & 1) as usize;
        if self.all[at][parity].node != node || self.all[at][parity].counts[outcome] == u32::MAX {
            self.settle_pair(counters, at, parity);
            self.all[at][parity].node = node;
        }
        // Rows are in the order in which they were first seen.
        counters.row((node, counter));
        self.all[at][parity].counts[outcome] += 1;
    }

    /// Tells what pairs count, by counter, in pieces.
    pub(crate) fn executions(&self, tell: &mut impl FnMut(u32, u64)) {
        for (pairs, counters) in self.all.iter().zip(&self.counters) {
            for pair in pairs {
                let counted = counters.iter().zip(pair.counts).filter(|(_, count)| *count != 0);
                counted.for_each(|(counter, count)| tell(*counter, count.into()));
            }
        }
    }

    /// Books what pairs count, by node and counter.
    pub(crate) fn settle(&mut self, counters: &mut Table<(u32, u32)>) {
        for at in 0..self.all.len() {
            (0..2).for_each(|parity| self.settle_pair(counters, at, parity));
        }
    }

    fn settle_pair(&mut self, counters: &mut Table<(u32, u32)>, at: usize, parity: usize) {
        let Pair { node, counts } = std::mem::replace(&mut self.all[at][parity], Pair::NOBODY);
        for (counter, count) in self.counters[at].into_iter().zip(counts) {
            if count != 0 {
                let row = counters.row((node, counter));
                counters.add(row, count.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::arcs::Book;
    use crate::table::executions;

    /// As a table by place, outcome and node counts.
    #[test]
    fn pairs_count_what_a_table_would() {
        let mut book = Book::new(1);
        let mut naive = std::collections::BTreeMap::new();
        let mut random = 1u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (random >> 40) as u32 % 7;
            let outcome = (random >> 50) as usize & 1;
            // For a while the same few, so that most are counted again.
            let node = (random >> 55) as u32 % 2 + step / 1000 % 3;
            let counter = 10 * place + outcome as u32;
            if !book.pairs.count_again(place, outcome, node) {
                book.count_outcome(place, outcome, counter, node);
            }
            *naive.entry((node, counter)).or_insert(0) += 1;
            if step % 500 == 250 {
                let mut told = std::collections::BTreeMap::new();
                book.executions(&mut |counter, n| *told.entry(counter).or_insert(0) += n);
                let mut wanted = std::collections::BTreeMap::new();
                naive.iter().for_each(|((_, counter), n)| *wanted.entry(*counter).or_insert(0) += n);
                assert_eq!(
                    told.into_iter().filter(|(_, n)| *n != 0).collect::<Vec<_>>(),
                    wanted.into_iter().collect::<Vec<_>>()
                );
            }
            if step % 5000 == 4999 {
                book.pairs.settle(&mut book.counters);
            }
        }
        let mut found: Vec<_> = book.counters.rows().map(|(key, counts)| (key, executions(counts[0]))).collect();
        found.sort_unstable();
        assert_eq!(found, naive.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_full_count_is_booked_and_goes_on() {
        let mut book = Book::new(1);
        book.count_outcome(3, 1, 8, 5);
        book.pairs.all[3][1].counts[1] = u32::MAX;
        assert!(!book.pairs.count_again(3, 1, 5));
        book.count_outcome(3, 1, 8, 5);
        assert!(book.pairs.count_again(3, 1, 5));
        book.pairs.settle(&mut book.counters);
        let row = book.counters.row((5, 8));
        assert_eq!(executions(book.counters.at(row)[0]), u64::from(u32::MAX) + 2);
    }
}
