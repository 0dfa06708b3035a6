//! `--fail-above`: whether totals grew by more than is allowed.

use std::fmt;

use anyhow::Context;
use cg_format::show::{commas, percent};

use crate::formula::{self, Formula};
use crate::load::Side;
use crate::options::Bound;

/// A bound that was exceeded.
#[derive(Debug)]
pub(crate) struct Verdict {
    bound: Bound,
    before: String,
    after: String,
    /// Growth in percent; none if it starts from 0.
    growth: Option<f64>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, before, after, growth } = self;
        let growth = growth.map_or_else(|| "from nothing".to_owned(), |growth| format!("by {growth:.2}%"));
        write!(f, "{} grew {growth}, from {before} to {after}: more than {}%", bound.event, bound.percent)
    }
}

/// A total: what is counted has all its digits, a ratio may have no value.
#[derive(Clone, Copy, Debug)]
enum Figure {
    Count(i128),
    Ratio(Option<f64>),
}

impl Figure {
    fn value(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Ratio(ratio) => ratio.unwrap_or(0.0),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Count(count) => commas(count),
            Self::Ratio(Some(ratio)) => format!("{ratio:.4}"),
            Self::Ratio(None) => "nothing".to_owned(),
        }
    }

    /// Growth since a figure in percent; none if that is 0.
    fn growth(self, before: Self) -> Option<f64> {
        if let (Self::Count(after), Self::Count(before)) = (self, before) {
            return percent(after - before, before.abs());
        }
        let before = before.value();
        (before != 0.0).then(|| (self.value() - before) * 100.0 / before.abs())
    }
}

/// The bounds that were exceeded; events may be formulas.
pub(crate) fn verdicts(sides: &[Side], bounds: &[Bound], formulas: &[Formula]) -> anyhow::Result<Vec<Verdict>> {
    let [new, base] = sides else { return Ok(Vec::new()) };
    let total = |side: &Side, name: &str| {
        let cost = |at: usize| side.model.total.cost.value(at);
        if let Some(at) = side.model.events.iter().position(|event| event == name) {
            return anyhow::Ok(Figure::Count(i128::from(cost(at))));
        }
        let known = formula::known(&side.model.events, formulas)?;
        let (_, terms) = known.iter().find(|(known, _)| known == name).with_context(|| {
            let events = side.model.events.join(" ");
            format!("{}: --fail-above event `{name}` did not appear in input: it has {events}", side.model.input)
        })?;
        let value = terms.value(cost);
        Ok(if terms.is_ratio() { Figure::Ratio(value) } else { Figure::Count(value.unwrap_or(0.0).round() as i128) })
    };
    let mut failed = Vec::new();
    for bound in bounds {
        let (before, after) = (total(base, &bound.event)?, total(new, &bound.event)?);
        let growth = after.growth(before);
        // From nothing to something is more than any percentage.
        if growth.map_or(after.value() > before.value(), |growth| growth > bound.percent) {
            failed.push(Verdict { bound: bound.clone(), before: before.text(), after: after.text(), growth });
        }
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_of_counts_is_exact_and_of_ratios_as_near_as_it_gets() {
        let count = |n: i128| Figure::Count(n);
        let ratio = |n: f64| Figure::Ratio(Some(n));
        assert_eq!(count(103).growth(count(100)), Some(3.0));
        assert_eq!((count(1).growth(count(0)), ratio(1.5).growth(Figure::Ratio(None))), (None, None));
        assert_eq!(ratio(1.5).growth(ratio(2.0)), Some(-25.0));
        assert_eq!(
            [count(12_345).text(), ratio(0.25).text(), Figure::Ratio(None).text()],
            ["12,345", "0.2500", "nothing"]
        );
    }
}
