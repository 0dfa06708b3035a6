//! The options of simulated caches: their shapes and policies, what there is between and beyond them, and known machines.
//!
//! The texts for wrong shapes are the reference's. Nothing here simulates, or looks at the machine that this runs on.

use cg_sim::beyond::Inclusion;
use cg_sim::geometry::ParseError;
use cg_sim::host::Given;
use cg_sim::machine::{MACHINES, Machine};
use cg_sim::policy::{Policy, ShapeError, parse_shape};
use cg_sim::prefetch::Prefetch;
use cg_sim::{Geometry, Levels};

use super::value::{Kind, Value};
use super::{Options, Wrong};

/// What the help calls the value of a first-level cache.
pub(super) const FIRST: Kind = Kind::Text("size,assoc,line_size");
/// The same of a cache that has a policy.
pub(super) const WITH_POLICY: Kind = Kind::Text("size,assoc,line_size[,policy]");
/// Which machines there are is for [`machine`] to say.
pub(super) const NAME: Kind = Kind::Text("name");
pub(super) const INCLUSION: Kind = Kind::Choice(Inclusion::NAMES);
pub(super) const PREFETCH: Kind = Kind::Choice(Prefetch::NAMES);

/// What is asked for beyond the shapes of first and last levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A known machine, for whatever is not given.
    pub machine: Option<&'static Machine>,
    /// The second level.
    pub second: Option<(Geometry, Policy)>,
    /// The policy of the last level, if its shape is given.
    pub last_policy: Policy,
    /// What the last level holds of the second.
    pub inclusion: Option<Inclusion>,
    /// What is loaded before it is asked for.
    pub prefetch: Prefetch,
}

impl Wanted {
    /// The caches that are given, by options or as those of a machine.
    #[must_use]
    pub fn given(&self, caches: Given) -> Given {
        let machine = self.machine.map(Machine::given).unwrap_or_default();
        Given { i1: caches.i1.or(machine.i1), d1: caches.d1.or(machine.d1), ll: caches.ll.or(machine.ll) }
    }

    /// The levels beyond the first, of which the last has shape `ll`; `caches` are those that options give.
    #[must_use]
    pub fn levels(&self, caches: Given, ll: Geometry) -> Levels {
        let machine = self.machine.map(Machine::levels);
        let policy = match machine {
            Some(machine) if caches.ll.is_none() => machine.last.1,
            _ => self.last_policy,
        };
        Levels {
            second: self.second.or_else(|| machine.and_then(|machine| machine.second)),
            last: (ll, policy),
            inclusion: self.inclusion.or(machine.map(|machine| machine.inclusion)).unwrap_or_default(),
            prefetch: self.prefetch,
        }
    }

    /// An option that asks for something that is only there where caches are simulated.
    #[must_use]
    pub fn option(&self) -> Option<&'static str> {
        [
            (self.machine.is_some(), "--machine"),
            (self.second.is_some(), "--L2"),
            (self.inclusion.is_some(), "--inclusion"),
            (self.prefetch != Prefetch::None, "--prefetcher"),
        ]
        .into_iter()
        .find_map(|(asked, name)| asked.then_some(name))
    }
}

/// A shape with its policy.
fn shape(value: Value<'_>) -> Result<(Geometry, Policy), Wrong> {
    let text = match value {
        Value::Text(text) => text.to_string_lossy(),
        _ => "".into(),
    };
    parse_shape(&text).map_err(|error| {
        let bad = format!("Bad argument '{text}'");
        match error {
            ShapeError::Numbers(ParseError::Malformed) => vec![bad].into(),
            ShapeError::Numbers(ParseError::Overflow) => vec![error.to_string()].into(),
            ShapeError::Numbers(ParseError::Defect(defect)) => {
                Wrong { before: vec![defect.to_string()], why: vec![bad] }
            }
            ShapeError::Policy(policy) => vec![bad, policy.to_string()].into(),
        }
    })
}

/// The shape of a first-level cache.
pub(super) fn first(value: Value<'_>) -> Result<Geometry, Wrong> {
    match shape(value)? {
        (shape, Policy::Lru) => Ok(shape),
        (_, policy) => Err(vec![format!(
            "Not supported: {policy} in a first-level cache, which the program itself simulates and which replaces the line used \
             longest ago (lru)"
        )]
        .into()),
    }
}

pub(super) fn second(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.levels.second = Some(shape(v)?);
    Ok(())
}

pub(super) fn last(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    let (shape, policy) = shape(v)?;
    (o.caches.ll, o.levels.last_policy) = (Some(shape), policy);
    Ok(())
}

pub(super) fn inclusion(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.levels.inclusion = word(v).and_then(Inclusion::by_name);
    Ok(())
}

pub(super) fn prefetcher(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.levels.prefetch = word(v).and_then(Prefetch::by_name).unwrap_or_default();
    Ok(())
}

pub(super) fn machine(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    let name = word(v).unwrap_or_default();
    let machine = Machine::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = MACHINES.iter().map(|machine| machine.name).collect();
        vec![format!("Bad argument, should be help or one of {}", names.join(", "))]
    })?;
    o.levels.machine = Some(machine);
    Ok(())
}

fn word(value: Value<'_>) -> Option<&str> {
    match value {
        Value::Text(text) => text.to_str(),
        _ => None,
    }
}

/// What `--machine=help` prints.
#[must_use]
pub fn machines() -> String {
    MACHINES.iter().map(|machine| format!("{machine}\n")).collect()
}
