//! The options of stack distances: whether they are found, and of which lines. Nothing here finds any.

use super::value::{Kind, Value};
use super::{Options, Wrong};

/// Which distances there are.
pub(super) const WHICH: Kind = Kind::Choice(&["no", "bounds", "exact"]);
/// Of how many lines one is looked at.
pub(super) const RATE: Kind = Kind::Int { min: 0, max: MOST };

/// Larger samples would have no line of any program.
const MOST: i64 = 1 << 20;

/// Of what distances are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Of what misses D1, within bounds.
    Bounds,
    /// Of every access.
    Exact,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Distances are found, of every access or of misses.
    pub which: Option<Which>,
    /// One line of so many is looked at: a power of two. `None`: all are.
    pub sample: Option<u32>,
}

pub(super) fn which(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.distances.which = match v {
        Value::Text(text) if text == "bounds" => Some(Which::Bounds),
        Value::Text(text) if text == "exact" => Some(Which::Exact),
        _ => None,
    };
    Ok(())
}

pub(super) fn rate(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    let Value::Int(n) = v else { return Ok(()) };
    let rate = u32::try_from(n).unwrap_or(0);
    if rate > 0 && !rate.is_power_of_two() {
        return Err(
            vec![format!("Bad argument '{n}': one line of 2, 4, 8 or another power of two; 0: all lines")].into()
        );
    }
    o.distances.sample = (rate > 0).then_some(rate);
    Ok(())
}
