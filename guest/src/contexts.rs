//! Contexts of the statistics: which a thread is in and has been in, and the books of a process, one for each context. A
//! context is a number that the program chose, or one that stands for a name. The books hold what threads have counted in
//! slots that are given up; what is still in slots is added by `dispatch::contexts`. The sum over the books is what would have
//! been counted without contexts.

use std::borrow::Cow;

use grind_fragments::fragment_table::FragmentTable;
use grind_types::hash::Map;
use grind_types::{InstructionCount, Tid};

use crate::counts::{self, Corrections, Counts, block_counts};
use crate::slots::SlotId;

/// The first number of a context that has a name.
pub const NAMED: u64 = 1 << 32;

/// What a thread knows of contexts, beside what is in its slot's header.
#[derive(Clone, Debug, Default)]
pub struct ThreadContexts {
    /// The context that the counters of its counted slot with a header of its own are booked to.
    pub home: u64,
    /// The slots whose headers show that one, and the contexts that their counters are booked to; the oldest first.
    pub extra: Vec<(u64, SlotId)>,
    /// Contexts to return to, below those in the header; bottom first.
    pub below: Vec<u64>,
    /// It has pushed a context.
    pub own: bool,
    /// The thread whose changes of context it follows.
    pub leader: Option<Tid>,
    /// The context to change over to at the next stop.
    pub follow: Option<u64>,
}

/// Sums of counters. There may be many books, each with few counters, so only the first one is a plain list.
#[derive(Clone, Debug)]
enum Counters {
    List(Vec<u64>),
    Few(Map<u32, u64>),
}

/// What has been counted in one context.
#[derive(Clone, Debug)]
pub struct Book {
    /// Its number.
    pub context: u64,
    counters: Counters,
    /// What the counters cannot know.
    pub corrections: Corrections,
    /// Counts from translations that have been thrown away, by address.
    earlier: Vec<InstructionCount>,
}

impl Book {
    fn new(context: u64, counters: Counters) -> Self {
        Self { context, counters, corrections: Corrections::default(), earlier: Vec::new() }
    }

    /// The executions of every instruction. The same address may occur several times.
    pub fn counts<'a>(&self, trans: &'a FragmentTable) -> Counts<'a> {
        counts::counts(trans, &self.sums(), &self.corrections, &self.earlier)
    }

    /// How many instructions these are.
    fn executed(&self, trans: &FragmentTable) -> u64 {
        counts::executed(trans, &self.sums(), &self.corrections, &self.earlier)
    }

    /// How often each block was executed, but for parts of blocks.
    pub fn block_counts(&self, trans: &FragmentTable) -> Vec<u64> {
        block_counts(trans, &self.sums(), &self.corrections)
    }

    /// The book as it goes on when the translations have been thrown away: what has been counted is kept by address.
    fn without_counters(&self, trans: &FragmentTable) -> Self {
        let key = |c: &InstructionCount| (c.addr, c.module, c.len, c.events, c.made);
        let mut counts: Vec<InstructionCount> = self.counts(trans).instructions().collect();
        // Two long runs, nearly sorted already, which a stable sort makes use of.
        counts.sort_by_key(key);
        counts.dedup_by(|next, first| {
            let same = key(next) == key(first);
            if same {
                first.count = first.count.wrapping_add(next.count);
            }
            same
        });
        counts.shrink_to_fit();
        let counters = match self.counters {
            Counters::List(_) => Counters::List(Vec::new()),
            Counters::Few(_) => Counters::Few(Map::default()),
        };
        Self { earlier: counts, ..Self::new(self.context, counters) }
    }

    /// There will be counts of counters below this one.
    pub fn expect(&mut self, counters: u32) {
        if let Counters::List(list) = &mut self.counters
            && list.len() < counters as usize
        {
            list.resize(counters as usize, 0);
        }
    }

    /// Adds to a counter.
    pub fn add(&mut self, counter: u32, n: u64) {
        match &mut self.counters {
            Counters::List(list) => {
                let i = counter as usize;
                if list.len() <= i {
                    list.resize(i + 1, 0);
                }
                list[i] = list[i].wrapping_add(n);
            }
            Counters::Few(few) => {
                let sum = few.entry(counter).or_default();
                *sum = sum.wrapping_add(n);
            }
        }
    }

    /// The sums of all counters, as far as there are any.
    pub fn sums(&self) -> Cow<'_, [u64]> {
        match &self.counters {
            Counters::List(list) => Cow::Borrowed(list),
            Counters::Few(few) => {
                let mut list = vec![0; few.keys().max().map_or(0, |&k| k as usize + 1)];
                few.iter().for_each(|(&counter, &n)| list[counter as usize] = n);
                Cow::Owned(list)
            }
        }
    }

    fn add_all(&mut self, other: &Self) {
        match &other.counters {
            Counters::List(list) => list.iter().enumerate().for_each(|(i, &n)| self.add(i as u32, n)),
            Counters::Few(few) => few.iter().for_each(|(&counter, &n)| self.add(counter, n)),
        }
        self.corrections.add_all(&other.corrections);
        self.earlier.extend_from_slice(&other.earlier);
    }
}

/// The books of a process. Context 0 always has one.
#[derive(Clone, Debug)]
pub struct Books {
    all: Vec<Book>,
    index: Map<u64, usize>,
}

impl Default for Books {
    fn default() -> Self {
        let zero = Book::new(0, Counters::List(Vec::new()));
        Self { all: vec![zero], index: [(0, 0)].into_iter().collect() }
    }
}

impl Books {
    /// The book of a context, opened if need be.
    pub fn of(&mut self, context: u64) -> &mut Book {
        let next = self.all.len();
        let i = *self.index.entry(context).or_insert(next);
        if i == next {
            self.all.push(Book::new(context, Counters::Few(Map::default())));
        }
        &mut self.all[i]
    }

    /// The books as they go on when the translations have been thrown away; these hold the counts of all counters.
    pub fn without_counters(&self, trans: &FragmentTable) -> Self {
        Self { all: self.all.iter().map(|b| b.without_counters(trans)).collect(), index: self.index.clone() }
    }

    /// All books, that of context 0 first, the others in the order in which they were opened.
    pub fn all(&self) -> &[Book] {
        &self.all
    }

    /// Whether there has ever been another context than 0.
    pub fn many(&self) -> bool {
        self.all.len() > 1
    }

    /// How many instructions have been executed, whatever their context.
    pub fn executed(&self, trans: &FragmentTable) -> u64 {
        self.all.iter().fold(0, |sum, book| sum.wrapping_add(book.executed(trans)))
    }

    /// All counts, whatever their context.
    pub fn sum(&self) -> Cow<'_, Book> {
        let [first, rest @ ..] = self.all.as_slice() else { unreachable!("context 0 has a book") };
        if rest.is_empty() {
            return Cow::Borrowed(first);
        }
        let mut sum = first.clone();
        rest.iter().for_each(|book| sum.add_all(book));
        Cow::Owned(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_books_is_that_of_one_book() {
        let mut books = Books::default();
        let mut one = Books::default();
        for n in 0..1000u64 {
            let context = [0, 7, NAMED, u64::MAX][n as usize * 7 % 4];
            let counter = (n * 31 % 97) as u32;
            books.of(context).add(counter, n);
            books.of(context).corrections.take_off(counter, 3);
            one.of(0).add(counter, n);
            one.of(0).corrections.take_off(counter, 3);
        }
        assert!(books.many() && !one.many());
        assert_eq!(books.all().iter().map(|b| b.context).collect::<Vec<_>>(), [0, u64::MAX, NAMED, 7]);
        let (all, same) = (books.sum(), one.sum());
        assert_eq!(all.sums(), same.sums());
        assert_eq!(all.corrections, same.corrections);
        let parts: u64 = books.all().iter().map(|b| b.sums().iter().sum::<u64>()).sum();
        assert_eq!(parts, (0..1000).sum::<u64>());
    }
}
