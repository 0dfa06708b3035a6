//! `callgrind.out`, version 1: profiles with a call graph, their data model, writer and reader.
//!
//! A file holds one or more parts (dumps), each with its own events, positions and totals. A part is a list of
//! functions; a function has rows of self costs, calls with their count and inclusive cost, and jumps, each at a
//! position: an instruction's address in its object, a line, and the file of that line, which differs from the
//! function's own where code was inlined.
//!
//! Behind its functions a part may have whole chains of calls, as a tree ([`Chains`]).
//!
//! Names are written once, as `(7) name`, and later as `(7)`; objects, files and functions are numbered apart. Positions
//! are written relative to the one before where that is short. Costs of 0 at the end of a row are left out; a reader that
//! cares can tell them from zeros that were written.
//!
//! [`Writer`] takes [`Part`]s, which are plain data, and writes them in an order that depends on names and positions
//! alone. Its `summary:` and `totals:` lines are the sum of the rows, so they agree with them and with each other.
//! [`read`] hands what it finds to a [`Sink`] as it goes, so that memory need not grow with the file; [`Profile`] is the
//! sink that keeps everything, and what it kept can be written again. Columns of basic blocks (`positions: bb`) are read
//! over: nothing here has a use for them.

mod chains;
mod error;
mod events;
pub mod laws;
mod model;
mod names;
mod numbers;
mod profile;
mod read;
mod write;

pub use chains::{Chain, Chains};
pub use error::{ReadError, ReadErrorKind};
pub use events::{EventSet, SystemTime};
pub use model::{
    Body, Call, Entry, EventType, Header, Jump, JumpKind, Part, PartHeader, Place, Position, Positions, Site,
    command_line, context_name,
};
pub use names::{FileId, Function, FunctionId, IdHasher, Names, ObjectId};
pub use profile::{Profile, read_profile};
pub use read::{Outcome, PartEnd, Sink, read};
pub use write::{WriteOptions, Writer};
