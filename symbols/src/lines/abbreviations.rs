//! Tables of abbreviations, each read once.
//!
//! Many units may use one table, and the tables of a hostile file may overlap: then reading them for each unit takes the
//! square of the file's size. So a table ends, at the latest, where the next one that is used begins, and one that is used
//! again is kept until its last use. Whoever asks for units in the order of the file gets what the library would read.

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{Abbreviations, DebugAbbrev, DebugAbbrevOffset, Dwarf, LittleEndian, Unit, UnitHeader};

use super::Slice;

/// The tables that the units of a file use.
pub(super) struct Tables<'a> {
    section: &'a [u8],
    /// Where they begin, in ascending order.
    starts: Vec<usize>,
    /// How many units are still to use a table, and the table, if more than one does.
    shared: HashMap<usize, (usize, Option<Arc<Abbreviations>>)>,
}

impl<'a> Tables<'a> {
    /// The tables of `section` that the units of `dwarf` use.
    pub(super) fn of(dwarf: &Dwarf<Slice<'a>>, section: &'a [u8]) -> Self {
        let mut starts = Vec::new();
        let mut headers = dwarf.units();
        // What is broken ends the units for whoever reads them, too.
        while let Ok(Some(header)) = headers.next() {
            starts.push(header.debug_abbrev_offset().0);
        }
        starts.sort_unstable();
        let shared = starts.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
        let shared = shared.map(|same| (same[0], (same.len(), None))).collect();
        starts.dedup();
        Self { section, starts, shared }
    }

    /// The unit of a header.
    pub(super) fn unit(
        &mut self,
        dwarf: &Dwarf<Slice<'a>>,
        header: UnitHeader<Slice<'a>>,
    ) -> gimli::Result<Unit<Slice<'a>>> {
        let start = header.debug_abbrev_offset().0;
        let next = self.starts.partition_point(|other| *other <= start);
        let end = self.starts.get(next).map_or(self.section.len(), |end| (*end).min(self.section.len()));
        let read = || DebugAbbrev::new(&self.section[..end], LittleEndian).abbreviations(DebugAbbrevOffset(start));
        let table = match self.shared.get_mut(&start) {
            None => Arc::new(read()?),
            Some((uses, known)) => {
                let table = match known.take() {
                    Some(table) => table,
                    None => Arc::new(read()?),
                };
                *uses = uses.saturating_sub(1);
                if *uses > 0 {
                    *known = Some(Arc::clone(&table));
                }
                table
            }
        };
        Unit::new_with_abbreviations(dwarf, header, table)
    }
}
