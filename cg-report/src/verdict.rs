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
    before: i128,
    after: i128,
    /// Growth in percent; none if it starts from 0.
    growth: Option<f64>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, before, after, growth } = self;
        let growth = growth.map_or_else(|| "from nothing".to_owned(), |growth| format!("by {growth:.2}%"));
        let (before, after) = (commas(*before), commas(*after));
        write!(f, "{} grew {growth}, from {before} to {after}: more than {}%", bound.event, bound.percent)
    }
}

/// The bounds that were exceeded; events may be formulas.
pub(crate) fn verdicts(sides: &[Side], bounds: &[Bound], formulas: &[Formula]) -> anyhow::Result<Vec<Verdict>> {
    let [new, base] = sides else { return Ok(Vec::new()) };
    let total = |side: &Side, name: &str| {
        let cost = |at: usize| side.model.total.cost.value(at);
        if let Some(at) = side.model.events.iter().position(|event| event == name) {
            return anyhow::Ok(i128::from(cost(at)));
        }
        let known = formula::known(&side.model.events, formulas)?;
        let (_, terms) = known.iter().find(|(known, _)| known == name).with_context(|| {
            let events = side.model.events.join(" ");
            format!("{}: --fail-above event `{name}` did not appear in input: it has {events}", side.model.input)
        })?;
        Ok(terms.value(cost).round() as i128)
    };
    let mut failed = Vec::new();
    for bound in bounds {
        let (before, after) = (total(base, &bound.event)?, total(new, &bound.event)?);
        let growth = percent(after - before, before.abs());
        // From nothing to something is more than any percentage.
        if growth.map_or(after > before, |growth| growth > bound.percent) {
            failed.push(Verdict { bound: bound.clone(), before, after, growth });
        }
    }
    Ok(failed)
}
