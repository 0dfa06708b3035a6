//! Costs whose last events may never have been mentioned.
//!
//! A profile leaves out zeros at the end of a row. The report shows a dot for an event that no row of a thing mentions,
//! and 0 for one that a row does: so a cost is a list of values that may be shorter than the list of events.

use cg_format::count::TooLarge;

/// Values of the first events; the others were never mentioned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost(Vec<i64>);

impl Cost {
    /// The value of an event, if it was ever mentioned.
    pub fn get(&self, event: usize) -> Option<i64> {
        self.0.get(event).copied()
    }

    /// The value of an event.
    pub fn value(&self, event: usize) -> i64 {
        self.get(event).unwrap_or(0)
    }

    /// Adds values.
    #[inline]
    pub fn add(&mut self, values: &[i64]) -> Result<(), TooLarge> {
        if self.0.len() < values.len() {
            self.0.resize(values.len(), 0);
        }
        for (sum, value) in self.0.iter_mut().zip(values) {
            *sum = sum.checked_add(*value).ok_or(TooLarge)?;
        }
        Ok(())
    }

    /// Adds another cost.
    pub fn add_cost(&mut self, other: &Self) -> Result<(), TooLarge> {
        self.add(&other.0)
    }

    /// The larger one of each value.
    pub fn max(mut self, other: &Self) -> Self {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), i64::MIN);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(own, value)| *own = (*own).max(*value));
        self
    }

    /// The values that were mentioned.
    pub fn values(&self) -> &[i64] {
        &self.0
    }
}

impl From<Vec<i64>> for Cost {
    fn from(values: Vec<i64>) -> Self {
        Self(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_mentioned_stays_so() {
        let mut cost = Cost::default();
        assert_eq!((cost.get(0), cost.value(0)), (None, 0));
        cost.add(&[1]).unwrap();
        cost.add(&[2, 0]).unwrap();
        assert_eq!((cost.get(0), cost.get(1), cost.get(2)), (Some(3), Some(0), None));
        assert_eq!(cost.add(&[i64::MAX]), Err(TooLarge));
        assert_eq!(Cost::from(vec![1]).max(&Cost::from(vec![0, -2])), Cost::from(vec![1, -2]));
    }
}
