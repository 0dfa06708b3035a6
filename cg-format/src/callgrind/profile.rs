//! A whole callgrind profile, kept as it was read: for those who need all of it at a time.

use std::io::Read;

use super::error::ReadError;
use super::model::{Call, Header, Jump, Part, PartHeader, Position};
use super::names::{FunctionId, Names};
use super::read::{Sink, read};
use crate::count::TooLarge;

/// A whole profile; as a [`Sink`] it keeps everything that is read.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What stands before the parts.
    pub header: Header,
    /// Names of objects, files and functions.
    pub names: Names,
    /// The parts, in their order.
    pub parts: Vec<Part>,
}

impl Sink for Profile {
    fn part(&mut self, header: &PartHeader) {
        self.parts.push(Part::new(header.clone()));
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        self.last().push_row(function, at, costs);
        Ok(())
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        self.last().push_call(function, at, *call, costs);
        Ok(())
    }

    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump) {
        self.last().add_jump(function, at, *jump);
    }

    fn inlined(&mut self, function: Option<FunctionId>) {
        self.last().set_inlined(function);
    }

    fn chain(&mut self, depth: usize, function: FunctionId, calls: u64, costs: &[i64]) -> Result<(), TooLarge> {
        self.last().push_chain(depth, function, calls, costs)
    }
}

impl Profile {
    fn last(&mut self) -> &mut Part {
        self.parts.last_mut().expect("rows come after the part's header")
    }
}

/// Reads a profile and keeps all of it.
///
/// # Errors
/// As [`read`].
pub fn read_profile(input: impl Read, name: &str) -> Result<Profile, ReadError> {
    let mut profile = Profile::default();
    let outcome = read(input, name, &mut profile)?;
    profile.header = outcome.header;
    profile.names = outcome.names;
    Ok(profile)
}
