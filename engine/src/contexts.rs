//! Contexts of the statistics: which a thread is in and has been in, and the books of a process, one for each context. A
//! context is a number that the program chose, or one that stands for a name. The books hold what threads have counted in
//! slots that are given up; what is still in slots is added by `dispatch::contexts`. The sum over the books is what would have
//! been counted without contexts.

use std::borrow::Cow;

use crate::counts::{self, Corrections, Counts, block_counts};
use crate::hash::Map;
use crate::slots::SlotId;
use crate::transtab::TransTab;
use crate::types::InstructionCount;

/// The first number of a context that has a name.
pub(crate) const NAMED: u64 = 1 << 32;

/// What a thread knows of contexts, beside what is in its slot's header.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadContexts {
    /// The context that the cells of its counted slot with a header of its own are booked to.
    pub(crate) home: u64,
    /// The slots whose headers show that one, and the contexts that their cells are booked to; the oldest first.
    pub(crate) extra: Vec<(u64, SlotId)>,
    /// Contexts to return to, below those in the header; bottom first.
    pub(crate) below: Vec<u64>,
    /// It has pushed a context.
    pub(crate) own: bool,
    /// The thread whose changes of context it follows.
    pub(crate) leader: Option<i32>,
    /// The context to change over to at the next stop.
    pub(crate) follow: Option<u64>,
}

/// Sums of cells. There may be many books, each with few cells, so only the first one is a plain list.
#[derive(Clone, Debug)]
enum Cells {
    List(Vec<u64>),
    Few(Map<u32, u64>),
}

/// What has been counted in one context.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub(crate) context: u64,
    cells: Cells,
    pub(crate) corrections: Corrections,
    /// Counts from translations that have been thrown away, by address.
    earlier: Vec<InstructionCount>,
}

impl Book {
    fn new(context: u64, cells: Cells) -> Self {
        Self { context, cells, corrections: Corrections::default(), earlier: Vec::new() }
    }

    /// The executions of every instruction. The same address may occur several times.
    pub(crate) fn counts<'a>(&self, trans: &'a TransTab) -> Counts<'a> {
        counts::counts(trans, &self.sums(), &self.corrections, &self.earlier)
    }

    /// How often each block was executed, but for parts of blocks.
    pub(crate) fn block_counts(&self, trans: &TransTab) -> Vec<u64> {
        block_counts(trans, &self.sums(), &self.corrections)
    }

    /// The book as it goes on when the translations have been thrown away: what has been counted is kept by address.
    fn without_cells(&self, trans: &TransTab) -> Self {
        let key = |c: &InstructionCount| (c.addr, c.module, c.len, c.events);
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
        let cells = match self.cells {
            Cells::List(_) => Cells::List(Vec::new()),
            Cells::Few(_) => Cells::Few(Map::default()),
        };
        Self { earlier: counts, ..Self::new(self.context, cells) }
    }

    /// There will be counts of cells below this one.
    pub(crate) fn expect(&mut self, cells: u32) {
        if let Cells::List(list) = &mut self.cells
            && list.len() < cells as usize
        {
            list.resize(cells as usize, 0);
        }
    }

    /// Adds to a cell.
    pub(crate) fn add(&mut self, cell: u32, n: u64) {
        match &mut self.cells {
            Cells::List(list) => {
                let i = cell as usize;
                if list.len() <= i {
                    list.resize(i + 1, 0);
                }
                list[i] = list[i].wrapping_add(n);
            }
            Cells::Few(few) => {
                let sum = few.entry(cell).or_default();
                *sum = sum.wrapping_add(n);
            }
        }
    }

    /// The sums of all cells, as far as there are any.
    pub(crate) fn sums(&self) -> Cow<'_, [u64]> {
        match &self.cells {
            Cells::List(list) => Cow::Borrowed(list),
            Cells::Few(few) => {
                let mut list = vec![0; few.keys().max().map_or(0, |&k| k as usize + 1)];
                few.iter().for_each(|(&cell, &n)| list[cell as usize] = n);
                Cow::Owned(list)
            }
        }
    }

    fn add_all(&mut self, other: &Self) {
        match &other.cells {
            Cells::List(list) => list.iter().enumerate().for_each(|(i, &n)| self.add(i as u32, n)),
            Cells::Few(few) => few.iter().for_each(|(&cell, &n)| self.add(cell, n)),
        }
        self.corrections.add_all(&other.corrections);
        self.earlier.extend_from_slice(&other.earlier);
    }
}

/// The books of a process. Context 0 always has one.
#[derive(Clone, Debug)]
pub(crate) struct Books {
    all: Vec<Book>,
    index: Map<u64, usize>,
}

impl Default for Books {
    fn default() -> Self {
        let zero = Book::new(0, Cells::List(Vec::new()));
        Self { all: vec![zero], index: [(0, 0)].into_iter().collect() }
    }
}

impl Books {
    /// The book of a context, opened if need be.
    pub(crate) fn of(&mut self, context: u64) -> &mut Book {
        let next = self.all.len();
        let i = *self.index.entry(context).or_insert(next);
        if i == next {
            self.all.push(Book::new(context, Cells::Few(Map::default())));
        }
        &mut self.all[i]
    }

    /// The books as they go on when the translations have been thrown away; these hold the counts of all cells.
    pub(crate) fn without_cells(&self, trans: &TransTab) -> Self {
        Self { all: self.all.iter().map(|b| b.without_cells(trans)).collect(), index: self.index.clone() }
    }

    /// All books, that of context 0 first, the others in the order in which they were opened.
    pub(crate) fn all(&self) -> &[Book] {
        &self.all
    }

    /// Whether there has ever been another context than 0.
    pub(crate) fn many(&self) -> bool {
        self.all.len() > 1
    }

    /// All counts, whatever their context.
    pub(crate) fn sum(&self) -> Cow<'_, Book> {
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
            let cell = (n * 31 % 97) as u32;
            books.of(context).add(cell, n);
            books.of(context).corrections.take_off(cell, 3);
            one.of(0).add(cell, n);
            one.of(0).corrections.take_off(cell, 3);
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
