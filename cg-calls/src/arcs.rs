//! The book of one thread: what was counted since the last dump, by arc, jump, skipped call and counter.
//!
//! Numbers of entries stay valid for ever, since the stack and the caches of sites hold them; a dump only empties them. An
//! entry has its counts side by side, so that a call or return touches one place.

use crate::code::SiteId;
use crate::pairs::Pairs;
use crate::site_counters::SiteCounters;
use crate::table::{NONE, Table, executions};

/// What an arc is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ArcKey {
    pub(crate) site: SiteId,
    pub(crate) from: u32,
    pub(crate) target: u64,
    pub(crate) to: u32,
}

/// What a jump is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JumpKey {
    pub(crate) arc: ArcKey,
    pub(crate) conditional: bool,
}

/// Executions of a counter by one node that are not in the table yet.
#[derive(Clone, Copy, Debug)]
struct Tally {
    node: u32,
    count: u64,
}

impl Tally {
    const NOBODY: Tally = Tally { node: NONE, count: 0 };
}

/// All counts of one thread since the last dump.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    costs: usize,
    /// A row is the number of calls and the inclusive costs.
    pub(crate) arcs: Table<ArcKey>,
    /// A row is the number of jumps.
    pub(crate) jumps: Table<JumpKey>,
    /// Call sites of skipped functions, with their nodes; a row is the costs of what was skipped.
    pub(crate) skips: Table<(SiteId, u32)>,
    /// By counter, for an even node and an odd one: levels of recursion next to each other do not get in each other's way.
    tallies: Vec<[Tally; 2]>,
    pub(crate) pairs: Pairs,
    /// By node and counter; a row is the number of executions.
    pub(crate) counters: Table<(u32, u32)>,
    /// The extra costs of rows of `counters`, by row: few have any.
    pub(crate) extra: Table<u32>,
}

impl Book {
    pub(crate) fn new(costs: usize) -> Book {
        Book {
            costs,
            arcs: Table::new(costs + 1),
            jumps: Table::new(1),
            skips: Table::new(costs),
            tallies: Vec::new(),
            pairs: Pairs::default(),
            counters: Table::new(1),
            extra: Table::new(costs),
        }
    }

    /// Tells the executions of counters, in pieces.
    pub(crate) fn executions(&self, tell: &mut impl FnMut(u32, u64)) {
        self.counters.rows().for_each(|((_, counter), counts)| tell(counter, executions(counts[0])));
        for (counter, tallies) in (0..).zip(&self.tallies) {
            tallies.iter().filter(|tally| tally.node != NONE).for_each(|tally| tell(counter, tally.count));
        }
        self.pairs.executions(tell);
    }

    #[inline]
    pub(crate) fn execute(&mut self, node: u32, counter: u32) {
        match self.tallies.get_mut(counter as usize).map(|pair| &mut pair[(node & 1) as usize]) {
            Some(tally) if tally.node == node => tally.count += 1,
            _ => self.execute_first(node, counter),
        }
    }

    #[cold]
    #[inline(never)]
    fn execute_first(&mut self, node: u32, counter: u32) {
        let at = counter as usize;
        if at >= self.tallies.len() {
            self.tallies.resize((at + 1).max(self.tallies.len() * 2), [Tally::NOBODY; 2]);
        }
        let tally = &mut self.tallies[at][(node & 1) as usize];
        let before = std::mem::replace(tally, Tally { node, count: 1 });
        // Rows are in the order in which they were first seen.
        self.counters.row((node, counter));
        self.book_tally(counter, before);
    }

    /// Makes site counter number `number` count for `node`.
    #[cold]
    #[inline(never)]
    pub(crate) fn adopt(&mut self, site_counters: &mut SiteCounters, number: usize, node: u32) {
        self.settle_site_counter(site_counters, (node & 1) as usize, number);
        // Rows are in the order in which they were first seen.
        self.counters.row((node, site_counters.ways[number].counter));
        site_counters.adopt(number, node);
    }

    /// Books all executions in site counters.
    pub(crate) fn settle_site_counters(&mut self, site_counters: &mut SiteCounters) {
        for number in 0..site_counters.ways.len() {
            (0..2).for_each(|parity| self.settle_site_counter(site_counters, parity, number));
        }
    }

    /// Books the executions of a counter that are in site counters.
    pub(crate) fn settle_site_counters_of(&mut self, site_counters: &mut SiteCounters, counter: u32) {
        for number in 0..site_counters.ways.len() {
            if site_counters.ways[number].counter == counter {
                (0..2).for_each(|parity| self.settle_site_counter(site_counters, parity, number));
            }
        }
    }

    fn settle_site_counter(&mut self, site_counters: &mut SiteCounters, parity: usize, number: usize) {
        let (node, count) = site_counters.empty(parity, number);
        self.book_tally(site_counters.ways[number].counter, Tally { node, count });
    }

    fn book_tally(&mut self, counter: u32, tally: Tally) {
        if tally.count != 0 {
            let row = self.counters.row((tally.node, counter));
            self.counters.add(row, tally.count);
        }
    }

    /// Books all executions in the table.
    pub(crate) fn settle_counters(&mut self) {
        self.pairs.settle(&mut self.counters);
        for counter in 0..self.tallies.len() {
            for i in 0..2 {
                let tally = self.tallies[counter][i];
                self.tallies[counter][i].count = 0;
                self.book_tally(counter as u32, tally);
            }
        }
    }

    /// An outcome of a place, which is this counter, for `node`.
    pub(crate) fn count_outcome(&mut self, place: u32, outcome: usize, counter: u32, node: u32) {
        self.pairs.count(&mut self.counters, (place, outcome), counter, node);
    }

    pub(crate) fn correct(&mut self, node: u32, counter: u32, n: i64) {
        if let Some(tally) = self.tallies.get_mut(counter as usize).map(|pair| &mut pair[(node & 1) as usize]) {
            let before = *tally;
            tally.count = 0;
            self.book_tally(counter, before);
        }
        let slot = self.counters.row((node, counter));
        let count = &mut self.counters.counts(slot)[0];
        *count = count.wrapping_add_signed(n);
    }

    #[inline]
    pub(crate) fn spend(&mut self, node: u32, counter: u32, event: usize, n: u64) {
        let row = self.counters.row((node, counter));
        self.spend_row(row, event, n);
    }

    /// The same for a row of `counters`.
    #[inline]
    pub(crate) fn spend_row(&mut self, row: u32, event: usize, n: u64) {
        assert!(event < self.costs, "cost {event} of {}", self.costs);
        let extra = self.extra.row(row);
        self.extra.counts(extra)[event] += n;
    }

    /// Sets all counts to zero.
    pub(crate) fn clear(&mut self) {
        self.arcs.clear_counts();
        self.jumps.clear_counts();
        self.skips.clear_counts();
        self.settle_counters();
        self.counters.clear_counts();
        self.extra.clear_counts();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::executions;

    /// Emitted code's counts are told when they are asked for, corrections when they happen.
    #[test]
    fn a_correction_may_come_before_what_it_corrects() {
        let mut book = Book::new(1);
        book.correct(3, 5, -2);
        let row = book.counters.row((3, 5));
        assert_eq!(executions(book.counters.at(row)[0]), 0);
        book.counters.add(row, 10);
        assert_eq!(executions(book.counters.at(row)[0]), 8);
        book.correct(3, 5, 1);
        assert_eq!(executions(book.counters.at(row)[0]), 9);
    }
}
