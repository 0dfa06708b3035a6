//! The options of TLBs: whether they are simulated, and their shapes. Nothing here simulates.

use cg_sim::machine::Machine;
use cg_sim::tlb::{Shape, Tlbs};

use super::value::{Kind, Value};
use super::{Options, Wrong};

/// What the help calls the value of each.
pub(super) const SHAPE: Kind = Kind::Text("entries,ways");

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// They are simulated.
    pub simulated: bool,
    /// That of data, if its shape is given.
    pub data: Option<Shape>,
    /// The same for code.
    pub code: Option<Shape>,
    /// The same for the second level of both.
    pub second: Option<Shape>,
}

impl Wanted {
    /// Those that are simulated, if any are: what is not given is the machine's, or the usual.
    #[must_use]
    pub fn tlbs(&self, machine: Option<&Machine>) -> Option<Tlbs> {
        let known = machine.map_or_else(Tlbs::default, Machine::tlbs);
        let Self { simulated, data, code, second } = *self;
        simulated.then(|| Tlbs {
            data: data.unwrap_or(known.data),
            code: code.unwrap_or(known.code),
            second: second.or(known.second),
        })
    }

    /// An option that asks for something that is only there where TLBs are simulated.
    #[must_use]
    pub fn option(&self) -> Option<&'static str> {
        let Self { data, code, second, .. } = *self;
        [(data, "--DTLB"), (code, "--ITLB"), (second, "--STLB")]
            .into_iter()
            .find_map(|(given, name)| given.map(|_| name))
    }
}

fn shape(value: Value<'_>) -> Result<Shape, Wrong> {
    let text = match value {
        Value::Text(text) => text.to_string_lossy(),
        _ => "".into(),
    };
    Shape::parse(&text).map_err(|error| vec![format!("Bad argument '{text}', {error}")].into())
}

pub(super) fn simulated(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.tlbs.simulated = v.is_yes();
    Ok(())
}

pub(super) fn data(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.tlbs.data = Some(shape(v)?);
    Ok(())
}

pub(super) fn code(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.tlbs.code = Some(shape(v)?);
    Ok(())
}

pub(super) fn second(o: &mut Options, v: Value<'_>) -> Result<(), Wrong> {
    o.tlbs.second = Some(shape(v)?);
    Ok(())
}
