//! Several runs of one thing on a side of a comparison: the one in the middle is shown, and how far the others are from it.
//!
//! A run is shown as a whole, so that its figures add up; medians of single figures would not. What the others say is kept
//! as the least and the largest value of each figure.

use std::io;

use cg_model::Functions;

use crate::pack::{Pack, Shown};

/// Least and largest values of functions, one for each event.
#[derive(Debug, Default)]
struct Span {
    least: Vec<Vec<i64>>,
    most: Vec<Vec<i64>>,
}

/// All runs of a side.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The one that is shown, by its place among them.
    pub(crate) shown: usize,
    /// What each is called, and its totals by event.
    pub(crate) all: Vec<(String, Vec<i64>)>,
    own: Span,
    inclusive: Span,
}

/// The place of the one in the middle by its total; of two in the middle, that of the smaller one. 0 if there are none.
pub(crate) fn middle(totals: impl Iterator<Item = i128>) -> usize {
    let mut order: Vec<(i128, usize)> = totals.zip(0..).collect();
    order.sort_unstable();
    order.get(order.len().saturating_sub(1) / 2).map_or(0, |(_, at)| *at)
}

impl Runs {
    /// None yet, of which one will be shown.
    pub(crate) fn new(shown: usize) -> Self {
        Self { shown, all: Vec::new(), own: Span::default(), inclusive: Span::default() }
    }

    /// Adds a run. All have the same functions and events.
    pub(crate) fn add(&mut self, model: &Functions) {
        let events = 0..model.events.len();
        let totals = events.clone().map(|event| model.total.cost.value(event)).collect();
        self.all.push((model.input.clone(), totals));
        for event in events {
            self.own.add(event, model.own(event));
            self.inclusive.add(event, model.inclusive(event));
        }
    }

    /// Packs what functions cost at least and at most.
    pub(crate) fn pack(&self, pack: &mut Pack, prefix: &str, events: &[Shown]) -> io::Result<()> {
        for (kind, span) in [("self", &self.own), ("incl", &self.inclusive)] {
            for (end, values) in [("least", &span.least), ("most", &span.most)] {
                for Shown { event, number } in events {
                    let values = values.get(*event).map_or(&[][..], Vec::as_slice);
                    pack.costs(format!("{prefix}run.{kind}.{end}.{number}"), values.iter().copied())?;
                }
            }
        }
        Ok(())
    }
}

impl Span {
    fn add(&mut self, event: usize, values: impl Iterator<Item = i64>) {
        match (self.least.get_mut(event), self.most.get_mut(event)) {
            (Some(least), Some(most)) => values.zip(least).zip(most).for_each(|((value, least), most)| {
                *least = value.min(*least);
                *most = value.max(*most);
            }),
            _ => {
                let values: Vec<i64> = values.collect();
                self.least.push(values.clone());
                self.most.push(values);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_in_the_middle_is_found_by_its_total() {
        let of = |totals: &[i128]| middle(totals.iter().copied());
        assert_eq!((of(&[]), of(&[7]), of(&[9, 1]), of(&[9, 1, 5]), of(&[4, 4, 1, 9])), (0, 0, 1, 2, 0));
    }

    #[test]
    fn spans_hold_all_values() {
        let mut span = Span::default();
        for values in [[3, 5], [4, 1], [2, 9]] {
            span.add(0, values.into_iter());
        }
        assert_eq!((span.least, span.most), (vec![vec![2, 1]], vec![vec![4, 9]]));
    }
}
