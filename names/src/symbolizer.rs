//! The boundary to debug information: from code in a file to the source lines that it was made from.
//!
//! The runner asks after the run, once for each object, for all addresses at once. Whatever the object looks like, each
//! address gets an answer; `???` and line 0 stand for what is not known.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use grind_types::MappedFile;

/// The name of an unknown file or function.
pub const UNKNOWN: &[u8] = b"???";

/// Where code came from.
#[derive(Clone, Copy, Debug)]
pub enum Code<'a> {
    /// A file, under the name by which the kernel shows it, and what was mapped under that name.
    File(&'a Path, &'a Arc<MappedFile>),
    /// An image that no file has, such as the vDSO.
    Image(&'a [u8]),
    /// Memory that a program filled itself.
    Anonymous,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file, or [`UNKNOWN`].
    pub file: &'a [u8],
    /// The function, or [`UNKNOWN`].
    pub function: &'a [u8],
    /// The line, from 1; 0: unknown.
    pub line: u32,
}

impl Place<'_> {
    /// Nothing is known.
    pub const UNKNOWN: Place<'static> = Place { file: UNKNOWN, function: UNKNOWN, line: 0 };
}

/// Tells places in the source. Implementations keep what they have read: the same objects are asked for again for every
/// process.
pub trait Symbolizer {
    /// Calls `tell(range, place)` for ranges of neighbours in `offsets` that have the same place, so that each of them is in
    /// exactly one, in any order.
    ///
    /// `offsets` are offsets in the file or image (for anonymous memory: addresses), ascending and distinct.
    fn places(&mut self, code: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>));

    /// As [`Symbolizer::places`], of stretches of instructions, given as ranges of offsets, each not empty, by where they begin:
    /// tells of some of them the one place that all of their instructions have. The others are to be asked for one by one.
    fn stretches(&mut self, _code: Code<'_>, _: &[Range<u64>], _tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {}

    /// Code of this file, which is mapped under this name, is likely to be asked about later on.
    fn expect(&mut self, _path: &Path, _file: &Arc<MappedFile>) {}

    /// What has gone wrong since the last call, one line each, for a verbose log.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Knows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Symbolizer for Nothing {
    fn places(&mut self, _code: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
        tell(0..offsets.len(), Place::UNKNOWN);
    }
}
