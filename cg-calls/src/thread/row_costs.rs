//! What [`Calls::fast_path`] does with costs that do not fit into a word: each step has a whole row of them, which is added as it is.
//!
//! Invariant: a reading is complete at any time.

use super::Calls;
use super::Step;
use super::fast_path::{Costs, Several};

/// Rows of costs.
struct RowCosts<'a, const W: usize, M> {
    /// By what [`Step::cost`] says.
    rows: &'a [[u64; W]],
    all: Several<W, M>,
}

impl<const W: usize, M> RowCosts<'_, W, M> {
    /// A row that there is not costs nothing.
    #[inline(always)]
    fn row(&self, cost: u32) -> &[u64; W] {
        const { assert!(W > 0) };
        self.rows.get(cost as usize).unwrap_or(&[0; W])
    }
}

impl<const W: usize, M: FnMut(u32, &[u32], &mut [u64; W]) -> Option<(u32, usize)>> Costs for RowCosts<'_, W, M> {
    const COSTS: usize = W;
    const RUN: usize = usize::MAX;

    #[inline(always)]
    fn add(&mut self, cost: u32) {
        let row = *self.row(cost);
        self.all.reading.iter_mut().zip(row).for_each(|(sum, cost)| *sum += cost);
    }

    #[inline(always)]
    fn settle(&mut self) {}

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
        others.iter_mut().zip(self.row(cost)).for_each(|(sum, cost)| *sum += cost);
    }

    #[inline]
    fn other(&mut self, number: u32, words: &[u32]) -> Option<(u32, usize)> {
        self.all.other(number, words)
    }
}

impl Calls {
    /// As [`Calls::fast_path_wide`], with steps whose [`Step::cost`] is the number of a row of `rows`, which stand side by side.
    ///
    /// # Panics
    /// If `W` is not the number of costs.
    pub fn fast_path_rows<const W: usize>(
        &mut self,
        rows: &[u64],
        steps: &[Step],
        words: &[u32],
        now: &mut [u64],
        miss: impl FnMut(u32, &[u32], &mut [u64; W]) -> Option<(u32, usize)>,
    ) -> usize {
        let reading = std::array::from_fn(|i| self.meter.read(now, i));
        let mut costs = RowCosts { rows: rows.as_chunks().0, all: Several { reading, miss } };
        let done = self.fast_path_by(&mut costs, steps, words);
        if done > 0 {
            self.meter.totals_of(&costs.all.reading, now);
        }
        done
    }
}
