//! Lines from DWARF 2 to 5.
//!
//! Line programs are found through the units in `.debug_info`; a unit's program is run only if the unit covers an asked
//! address (or does not say what it covers). The rows are never stored: each is offered to the first asked address at or
//! behind its start, and one pass at the end hands the results on (see [`Slots`]).
//!
//! The rules are those of the reference tool, found by experiment, odd ones included:
//! - A row holds from its address to that of the next row of its sequence. Of all rows the one that begins last at or
//!   before an address decides; if it does not reach the address there is no line, even if an earlier one would. Of rows
//!   that begin together, the one read last decides. Empty rows do not count; "is a statement" does not matter.
//! - A row longer than 4095 bytes, or whose successor lies before it, holds for one byte.
//! - A row that goes on where the row before it ended, with the same line number, is taken as part of that row, file
//!   included, up to 4095 bytes in all. (This may name the wrong one of two files; the reference does.)
//! - A line number above 1048575 is no line.
//! - A file is `directory/name`, joined as they stand. A relative directory is put behind the compilation directory.
//!   Directory 0 of DWARF 2-4 is the compilation directory, `.` if there is none. An unknown file is `???`, with line.
//!
//! With split DWARF the line programs stay in the linked file, and so do the units' directories and ranges; `.dwo` and
//! `.dwp` files hold nothing that is needed here and are not opened.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gimli::{DebugLineOffset, Dwarf, EndianSlice, LineProgramHeader, LittleEndian, Reader as _, SectionId, Unit};

use super::{
    NameId, Place, Svma,
    image::Image,
    locate,
    names::{Interner, sanitised},
    symbols::shift,
};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

const SECTIONS: [SectionId; 9] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// Contents of the sections that are needed for lines.
#[derive(Debug, Default)]
pub(super) struct DwarfSections {
    contents: [Vec<u8>; SECTIONS.len()],
    /// `.debug_str` of the file that several debug files share.
    alternate_strings: Vec<u8>,
    /// Added to the addresses in these sections to get addresses of the main file.
    shift: u64,
}

impl DwarfSections {
    /// Reads the sections of `image`, and those it lacks from the file that `debug` gives.
    pub(super) fn load<'a>(
        image: &'a Image,
        folder: Option<&Path>,
        roots: &[PathBuf],
        debug: impl Fn() -> Option<&'a Image>,
    ) -> (DwarfSections, Vec<String>) {
        let mut problems = Vec::new();
        let mut sections = DwarfSections::default();
        let home = if image.has_data(".debug_info") && image.has_data(".debug_line") {
            image
        } else {
            let Some(debug) = debug() else { return (sections, problems) };
            sections.shift = shift(image.section(".text").map(|s| s.address), debug);
            debug
        };
        for (id, contents) in SECTIONS.iter().zip(&mut sections.contents) {
            match home.data(id.name()) {
                Ok(data) => *contents = data.unwrap_or_default(),
                Err(problem) => problems.push(problem),
            }
        }
        if home.has_data(".gnu_debugaltlink") {
            let found = locate::alternate_file(home, folder, roots);
            problems.extend(found.warnings);
            match found.image.map(|i| i.data(".debug_str")) {
                Some(Ok(data)) => sections.alternate_strings = data.unwrap_or_default(),
                Some(Err(problem)) => problems.push(problem),
                None => {}
            }
        }
        (sections, problems)
    }

    fn contents(&self, id: SectionId) -> &[u8] {
        SECTIONS.iter().position(|s| *s == id).map_or(&[], |i| &self.contents[i])
    }

    fn dwarf(&self) -> Dwarf<Slice<'_>> {
        let load = |data| -> Result<Slice<'_>, gimli::Error> { Ok(EndianSlice::new(data, LittleEndian)) };
        let mut dwarf = Dwarf::load(|id| load(self.contents(id))).unwrap_or_default();
        let alternate = |id| match id {
            SectionId::DebugStr => load(&self.alternate_strings),
            _ => load(&[]),
        };
        let _ = dwarf.load_sup(alternate);
        dwarf
    }
}

/// Writes file and line of each of the sorted `addresses` into `places`; gives back what was wrong with the sections.
/// Rows that begin outside the `executable` ranges do not count.
pub(super) fn resolve(
    sections: &DwarfSections,
    executable: &[(u64, u64)],
    addresses: &[Svma],
    places: &mut [Place],
    files: &mut Interner,
) -> Vec<String> {
    if addresses.is_empty() || sections.contents(SectionId::DebugLine).is_empty() {
        return Vec::new();
    }
    let dwarf = sections.dwarf();
    let mut problems = Vec::new();
    let mut run = Run {
        slots: Slots { addresses, slots: vec![Slot::default(); addresses.len()], cursor: 0 },
        executable,
        shift: sections.shift,
        done: HashSet::new(),
        // Programs do not overlap; those of a hostile file may a little.
        budget: 2 * sections.contents(SectionId::DebugLine).len() as u64,
        last: Slot::default(),
        units: Vec::new(),
    };
    // Units may share their abbreviations and the header of a line program, and a hostile file has thousands of units
    // that share large ones. No honest file comes near this limit.
    const MAX_TIME: Duration = Duration::from_secs(60);
    let start = Instant::now();
    let mut unplaced = Vec::new();
    let mut missed = HashSet::new();
    let mut headers = dwarf.units();
    loop {
        if start.elapsed() > MAX_TIME {
            problems.push("reading .debug_info takes too long, the rest is left out".to_owned());
            break;
        }
        let header = match headers.next() {
            Ok(Some(header)) => header,
            Ok(None) => break,
            Err(e) => {
                problems.push(format!("section .debug_info: {e}"));
                break;
            }
        };
        let unit = match dwarf.unit(header) {
            Ok(unit) => unit,
            Err(e) => {
                problems.push(format!("a unit in .debug_info: {e}"));
                continue;
            }
        };
        let Some(program) = &unit.line_program else { continue };
        let DebugLineOffset(offset) = program.header().offset();
        match coverage(&dwarf, &unit, &run) {
            Coverage::Hit => run.unit(unit, &mut problems),
            Coverage::Miss => {
                missed.insert(offset);
            }
            // Units that share the program of another one (partial units) need not say what it covers.
            Coverage::Unknown => unplaced.push((offset, header)),
        }
    }
    for (offset, header) in unplaced {
        if !missed.contains(&offset)
            && !run.done.contains(&offset)
            && let Ok(unit) = dwarf.unit(header)
        {
            run.unit(unit, &mut problems);
        }
    }
    run.finish(&dwarf, places, files);
    problems
}

/// What a unit says about the asked addresses.
enum Coverage {
    Hit,
    /// It covers none of them.
    Miss,
    Unknown,
}

fn coverage(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>, run: &Run<'_, '_>) -> Coverage {
    let Ok(mut ranges) = dwarf.unit_ranges(unit) else { return Coverage::Unknown };
    let mut any = false;
    loop {
        match ranges.next() {
            Ok(Some(range)) => {
                any = true;
                if run.slots.any_in(range.begin.wrapping_add(run.shift), range.end.wrapping_add(run.shift)) {
                    return Coverage::Hit;
                }
            }
            Ok(None) if any => return Coverage::Miss,
            Ok(None) | Err(_) => return Coverage::Unknown,
        }
    }
}

/// The best row so far for one asked address, among rows that begin behind the asked address before it.
#[derive(Clone, Copy, Default)]
struct Slot {
    start: u64,
    /// 0: no row yet.
    length: u16,
    unit: u32,
    file: u32,
    line: u32,
}

/// Offered rows, one slot per asked address.
///
/// The row that decides for an address is the last that begins at or before it. So of the rows that begin between two
/// neighbouring asked addresses only the last can ever matter: it is kept in the slot of the upper one, and an address
/// whose own slot is empty is decided by the nearest slot below. This needs no sorting and no memory per row.
struct Slots<'a> {
    addresses: &'a [Svma],
    slots: Vec<Slot>,
    /// Where the last row went; the next one mostly goes nearby.
    cursor: usize,
}

impl Slots<'_> {
    fn any_in(&self, begin: u64, end: u64) -> bool {
        let first = self.addresses.partition_point(|a| a.0 < begin);
        self.addresses.get(first).is_some_and(|a| a.0 < end)
    }

    fn offer(&mut self, row: Slot) {
        const NEAR: usize = 8;
        let below = |a: &Svma| a.0 < row.start;
        let ahead = &self.addresses[self.cursor..];
        let fits = self.cursor == 0 || below(&self.addresses[self.cursor - 1]);
        let near = if fits { ahead.iter().take(NEAR).position(|a| !below(a)) } else { None };
        self.cursor = match near {
            Some(steps) => self.cursor + steps,
            None => self.addresses.partition_point(below),
        };
        if let Some(slot) = self.slots.get_mut(self.cursor)
            && row.start >= slot.start
        {
            *slot = row;
        }
    }
}

/// A unit whose program was run.
struct RunUnit<'a> {
    header: LineProgramHeader<Slice<'a>>,
    directory: Option<Slice<'a>>,
    unit: Unit<Slice<'a>>,
}

struct Run<'a, 'b> {
    slots: Slots<'a>,
    executable: &'a [(u64, u64)],
    shift: u64,
    /// Offsets of programs that were run.
    done: HashSet<usize>,
    budget: u64,
    /// The row offered last.
    last: Slot,
    units: Vec<RunUnit<'b>>,
}

impl<'b> Run<'_, 'b> {
    fn unit(&mut self, mut unit: Unit<Slice<'b>>, problems: &mut Vec<String>) {
        let Some(program) = unit.line_program.take() else { return };
        let header = program.header().clone();
        let DebugLineOffset(offset) = header.offset();
        if !self.done.insert(offset) {
            return;
        }
        let code = header.raw_program_buf();
        let size = code.len() as u64 + header.header_length() as u64;
        let Some(budget) = self.budget.checked_sub(size) else {
            problems.push("line programs overlap, some are left out".to_owned());
            return;
        };
        self.budget = budget;
        let index = self.units.len() as u32;
        if run_program(&header, |row| self.row(row, index)).is_none() {
            problems.push(format!("line program at {offset:#x} is broken"));
        }
        self.units.push(RunUnit { header, directory: unit.comp_dir, unit });
    }

    fn row(&mut self, row: Row, unit: u32) {
        const MAX_LENGTH: u64 = 4095;
        const MAX_LINE: u32 = (1 << 20) - 1;
        if row.end == row.start || row.line > MAX_LINE {
            return;
        }
        let length = row.end.wrapping_sub(row.start);
        let length = if row.end < row.start || length > MAX_LENGTH { 1 } else { length as u16 };
        let start = row.start.wrapping_add(self.shift);
        if !self.executable.iter().any(|&(low, high)| low <= start && start < high) {
            return;
        }
        let last = &mut self.last;
        let joined = u64::from(last.length) + u64::from(length);
        if last.start.wrapping_add(last.length.into()) == start && last.line == row.line && joined <= MAX_LENGTH {
            last.length = joined as u16;
        } else {
            *last = Slot { start, length, unit, file: row.file, line: row.line };
        }
        self.slots.offer(*last);
    }

    fn finish(self, dwarf: &Dwarf<Slice<'b>>, places: &mut [Place], files: &mut Interner) {
        let mut best = Slot::default();
        let mut last = (0, 0, NameId::UNKNOWN);
        for ((slot, at), place) in self.slots.slots.iter().zip(self.slots.addresses).zip(places) {
            if slot.length > 0 {
                best = *slot;
            }
            if best.length == 0 || at.0 - best.start >= u64::from(best.length) {
                continue;
            }
            if (last.0, last.1) != (best.unit, best.file) || last.2 == NameId::UNKNOWN {
                let name = self.units.get(best.unit as usize).and_then(|u| u.file_name(dwarf, best.file));
                let id = name.map_or(NameId::UNKNOWN, |n| files.intern(sanitised(&n)));
                last = (best.unit, best.file, id);
            }
            place.file = last.2;
            place.line = best.line;
        }
    }
}

impl<'b> RunUnit<'b> {
    /// `directory/name` of a file of this unit's table.
    fn file_name(&self, dwarf: &Dwarf<Slice<'b>>, index: u32) -> Option<Vec<u8>> {
        let text = |value| dwarf.attr_string(&self.unit, value).ok();
        let modern = self.header.version() >= 5;
        let file = if modern {
            self.header.file_names().get(index as usize)
        } else {
            self.header.file_names().get((index as usize).checked_sub(1)?)
        };
        let file = file?;
        let name = text(file.path_name())?;
        let directories = self.header.include_directories();
        let own = file.directory_index();
        let mut path = Vec::new();
        if own == 0 && !modern {
            path.extend_from_slice(self.directory.map_or(&b"."[..], |d| d.slice()));
        } else {
            let position = if modern { Some(own) } else { own.checked_sub(1) };
            let directory =
                position.and_then(|p| usize::try_from(p).ok()).and_then(|p| directories.get(p)).and_then(|d| text(*d));
            if let Some(directory) = directory {
                if let Some(base) = self.directory
                    && !base.is_empty()
                    && !is_absolute(directory.slice())
                {
                    path.extend_from_slice(base.slice());
                    path.push(b'/');
                }
                path.extend_from_slice(directory.slice());
            }
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.slice());
        Some(path)
    }
}

fn is_absolute(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
}

/// One row, with the address of its successor.
struct Row {
    start: u64,
    end: u64,
    file: u32,
    line: u32,
}

/// Runs a line program and gives each row to `emit`; `None` if it breaks off in the middle.
///
/// Own instead of the library's: only four registers matter, sequences at odd addresses must not be dropped, and a
/// broken program still gives the rows before the break.
fn run_program(header: &LineProgramHeader<Slice<'_>>, mut emit: impl FnMut(Row)) -> Option<()> {
    let mut code = header.raw_program_buf();
    let (line_base, line_range) = (i64::from(header.line_base()), header.line_range());
    let (opcode_base, step) = (header.opcode_base(), u64::from(header.minimum_instruction_length()));
    if line_range == 0 {
        return None;
    }
    let lengths = header.standard_opcode_lengths();
    let (mut address, mut file, mut line) = (0u64, 1u64, 1u64);
    let mut open: Option<Row> = None;
    let mut row = |address: u64, file: u64, line: u64, last: bool| {
        if let Some(mut before) = open.take() {
            before.end = address;
            emit(before);
        }
        if !last {
            let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            open = Some(Row { start: address, end: address, file: small(file), line: small(line) });
        }
    };
    while !code.is_empty() {
        let opcode = code.read_u8().ok()?;
        if opcode >= opcode_base {
            let adjusted = opcode - opcode_base;
            address = address.wrapping_add(u64::from(adjusted / line_range).wrapping_mul(step));
            line = line.wrapping_add_signed(line_base + i64::from(adjusted % line_range));
            row(address, file, line, false);
            continue;
        }
        match gimli::DwLns(opcode) {
            gimli::DwLns(0) => {
                let length = usize::try_from(code.read_uleb128().ok()?).ok()?;
                let mut body = code.split(length).ok()?;
                if body.is_empty() {
                    continue;
                }
                match gimli::DwLne(body.read_u8().ok()?) {
                    gimli::DW_LNE_end_sequence => {
                        row(address, file, line, true);
                        (address, file, line) = (0, 1, 1);
                    }
                    gimli::DW_LNE_set_address => address = body.read_u64().ok()?,
                    _ => {}
                }
            }
            gimli::DW_LNS_copy => row(address, file, line, false),
            gimli::DW_LNS_advance_pc => address = address.wrapping_add(code.read_uleb128().ok()?.wrapping_mul(step)),
            gimli::DW_LNS_advance_line => line = line.wrapping_add_signed(code.read_sleb128().ok()?),
            gimli::DW_LNS_set_file => file = code.read_uleb128().ok()?,
            gimli::DW_LNS_set_column | gimli::DW_LNS_set_isa => code.skip_leb128().ok()?,
            gimli::DW_LNS_const_add_pc => {
                let by = u64::from((255 - opcode_base) / line_range);
                address = address.wrapping_add(by.wrapping_mul(step));
            }
            gimli::DW_LNS_fixed_advance_pc => address = address.wrapping_add(code.read_u16().ok()?.into()),
            gimli::DW_LNS_negate_stmt
            | gimli::DW_LNS_set_basic_block
            | gimli::DW_LNS_set_prologue_end
            | gimli::DW_LNS_set_epilogue_begin => {}
            _ => {
                for _ in 0..*lengths.slice().get(usize::from(opcode) - 1)? {
                    code.skip_leb128().ok()?;
                }
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`Slots`] must come to, by looking at all rows for each address.
    fn naive(rows: &[Slot], at: u64) -> Option<u32> {
        let mut best: Option<&Slot> = None;
        for row in rows.iter().filter(|r| r.start <= at) {
            if best.is_none_or(|b| row.start >= b.start) {
                best = Some(row);
            }
        }
        best.filter(|b| at - b.start < u64::from(b.length)).map(|b| b.line)
    }

    #[test]
    fn slots_decide_as_a_search_of_all_rows() {
        let mut seed = 88_172_645_463_325_252u64;
        let mut random = move |end: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % end
        };
        for round in 0..200 {
            let space = 20 + round * 3;
            // Runs of ascending rows, as sequences are, in any order and overlapping.
            let mut rows = Vec::new();
            for _ in 0..random(12) {
                let mut start = random(space);
                for _ in 0..random(20) {
                    let length = 1 + random(9) as u16;
                    rows.push(Slot { start, length, unit: 0, file: 1, line: rows.len() as u32 + 1 });
                    start += random(10);
                }
            }
            let mut addresses: Vec<Svma> = (0..random(60)).map(|_| Svma(random(space + 40))).collect();
            addresses.sort();
            let slots = Slots { addresses: &addresses, slots: vec![Slot::default(); addresses.len()], cursor: 0 };
            let mut run = Run {
                slots,
                executable: &[],
                shift: 0,
                done: HashSet::new(),
                budget: 0,
                last: Slot::default(),
                units: Vec::new(),
            };
            rows.iter().for_each(|row| run.slots.offer(*row));
            let mut places = vec![Place::default(); addresses.len()];
            run.finish(&Dwarf::default(), &mut places, &mut Interner::new());
            for (at, place) in addresses.iter().zip(&places) {
                assert_eq!(place.line, naive(&rows, at.0).unwrap_or(0), "round {round}, address {at:?}");
            }
        }
    }
}
