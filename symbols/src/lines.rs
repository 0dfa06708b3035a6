//! Lines from DWARF 2 to 5.
//!
//! Line programs are found through the units in `.debug_info`; a unit's program is run only if the unit covers an asked
//! address (or does not say what it covers). Where `.debug_info` is compressed, inflating it would take most of the time:
//! then the programs of `.debug_line` are run without it, but for those whose first address `.debug_aranges` gives to a
//! unit that covers no asked address; provided that they are all of DWARF 5, which repeats the compilation directory in the
//! program's header, and that nothing in them is odd. The rows are never stored: each is
//! offered to the first asked address at or behind its start, and one pass at the end hands the results on (see
//! [`found`]). Sections are read when they are needed, and only then.
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
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gimli::{
    AttributeValue, DebugAranges, DebugLine, DebugLineOffset, DebugLineStr, Dwarf, EndianSlice, IncompleteLineProgram,
    LineProgramHeader, LittleEndian, SectionId, Unit,
};

use super::problems::Problems;
use super::{
    Place, Svma,
    image::Image,
    locate,
    names::Interner,
    program::{Program, Steps},
    symbols::shift,
};

mod abbreviations;
mod found;

use abbreviations::Tables;
use found::Run;

pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;

const SECTIONS: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
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
    contents: [OnceLock<Vec<u8>>; SECTIONS.len()],
    /// `.debug_str` of the file that several debug files share.
    alternate_strings: OnceLock<Vec<u8>>,
    /// Its `.debug_info` and `.debug_abbrev`.
    alternate_entries: OnceLock<[Vec<u8>; 2]>,
}

/// Where an object's line information is.
pub(super) struct Home<'a> {
    pub(super) image: &'a Image,
    /// Added to the addresses in its sections to get addresses of the main file.
    pub(super) shift: u64,
    pub(super) folder: Option<&'a Path>,
    roots: &'a [PathBuf],
}

impl<'a> Home<'a> {
    /// `image` itself, or else the separate file that `debug` gives.
    pub(super) fn of(
        image: &'a Image,
        folder: Option<&'a Path>,
        roots: &'a [PathBuf],
        debug: impl Fn() -> Option<&'a Image>,
    ) -> Option<Home<'a>> {
        if image.has_data(".debug_info") && image.has_data(".debug_line") {
            return Some(Home { image, shift: 0, folder, roots });
        }
        let debug = debug()?;
        Some(Home { image: debug, shift: shift(image.section(".text").map(|s| s.address), debug), folder, roots })
    }
}

impl Home<'_> {
    /// Whether there may be a line for any address.
    pub(super) fn has_lines(&self) -> bool {
        self.image.has_data(".debug_line")
    }
}

/// The sections of an object's home, read when they are asked for.
pub(super) struct Reader<'a> {
    pub(super) sections: &'a DwarfSections,
    pub(super) home: &'a Home<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn contents(&self, id: SectionId, problems: &mut Problems) -> &'a [u8] {
        let Some(at) = SECTIONS.iter().position(|s| *s == id) else { return &[] };
        self.sections.contents[at].get_or_init(|| match self.home.image.data(id.name()) {
            Ok(data) => data.unwrap_or_default(),
            Err(problem) => {
                problems.push(problem);
                Vec::new()
            }
        })
    }

    fn alternate_strings(&self, problems: &mut Problems) -> &'a [u8] {
        self.sections.alternate_strings.get_or_init(|| {
            if !self.home.image.has_data(".gnu_debugaltlink") {
                return Vec::new();
            }
            let found = locate::alternate_file(self.home.image, self.home.folder, self.home.roots);
            problems.extend("", &found.warnings);
            match found.image.map(|i| i.data(".debug_str")) {
                Some(Ok(data)) => data.unwrap_or_default(),
                Some(Err(problem)) => {
                    problems.push(problem);
                    Vec::new()
                }
                None => Vec::new(),
            }
        })
    }

    /// All sections, and those of the shared file that say what functions are called.
    pub(super) fn dwarf_with_alternate(&self, problems: &mut Problems) -> Dwarf<Slice<'a>> {
        let mut dwarf = self.dwarf(problems);
        let [info, abbreviations] = self.sections.alternate_entries.get_or_init(|| {
            if !self.home.image.has_data(".gnu_debugaltlink") {
                return Default::default();
            }
            let found = locate::alternate_file(self.home.image, self.home.folder, self.home.roots).image;
            let data = |name| found.as_ref().and_then(|i| i.data(name).ok().flatten()).unwrap_or_default();
            [data(".debug_info"), data(".debug_abbrev")]
        });
        let strings = self.alternate_strings(problems);
        let section = |id| match id {
            SectionId::DebugStr => strings,
            SectionId::DebugInfo => info,
            SectionId::DebugAbbrev => abbreviations,
            _ => &[][..],
        };
        let _ = dwarf.load_sup(|id| Ok::<_, gimli::Error>(EndianSlice::new(section(id), LittleEndian)));
        dwarf
    }

    fn dwarf(&self, problems: &mut Problems) -> Dwarf<Slice<'a>> {
        let slice = |data| EndianSlice::new(data, LittleEndian);
        let load = |id| Ok::<_, gimli::Error>(slice(self.contents(id, problems)));
        let mut dwarf = Dwarf::load(load).unwrap_or_default();
        let strings = self.alternate_strings(problems);
        let _ =
            dwarf.load_sup(|id| Ok::<_, gimli::Error>(slice(if id == SectionId::DebugStr { strings } else { &[] })));
        dwarf
    }
}

/// Reads, now, the sections that [`resolve`] is going to ask for; gives back what was wrong with them.
pub(super) fn prepare(sections: &DwarfSections, home: &Home<'_>) -> Problems {
    let mut problems = Problems::default();
    if !home.has_lines() {
        return problems;
    }
    let reader = Reader { sections, home };
    // The others are needed as a rule only where nothing is compressed, and reading them is quick then.
    for id in [SectionId::DebugLine, SectionId::DebugLineStr, SectionId::DebugAranges] {
        reader.contents(id, &mut problems);
    }
    problems
}

/// Writes file and line of each of the sorted `addresses` into `places`; gives back what was wrong with the sections.
/// Rows that begin outside the `executable` ranges do not count.
pub(super) fn resolve(
    sections: &DwarfSections,
    home: &Home<'_>,
    executable: &[(u64, u64)],
    addresses: &[Svma],
    places: &mut [Place],
    files: &mut Interner,
) -> Problems {
    let mut problems = Problems::default();
    if addresses.is_empty() || !home.has_lines() {
        return problems;
    }
    let reader = Reader { sections, home };
    let done = home.image.is_compressed(".debug_info")
        && without_units(&reader, executable, addresses, places, files, &mut problems).is_some();
    if !done {
        with_units(&reader, executable, addresses, places, files, &mut problems);
    }
    problems
}

/// Runs all programs of `.debug_line` as they stand there. `None`, with nothing written, if that is not enough.
fn without_units(
    reader: &Reader<'_>,
    executable: &[(u64, u64)],
    addresses: &[Svma],
    places: &mut [Place],
    files: &mut Interner,
    problems: &mut Problems,
) -> Option<()> {
    let lines = reader.contents(SectionId::DebugLine, problems);
    let strings =
        DebugLineStr::from(EndianSlice::new(reader.contents(SectionId::DebugLineStr, problems), LittleEndian));
    let mut run = Run::new(addresses, executable, reader.home.shift);
    let mut offsets = Vec::new();
    let mut steps = Steps::default();
    let missed = Missed::of(reader.contents(SectionId::DebugAranges, problems), &run);
    let mut at = 0;
    while at < lines.len() {
        let (program, next) = Program::of_version_5(lines, at)?;
        if program.first_address().is_some_and(|a| missed.contains(a)) {
            offsets.push(at);
            at = next;
            continue;
        }
        program.run(&mut steps, |row| run.row(row, offsets.len() as u32))?;
        offsets.push(at);
        at = next;
    }
    let section = DebugLine::from(EndianSlice::new(lines, LittleEndian));
    let mut tables: HashMap<u32, FileTable<'_>> = HashMap::new();
    let text = |value| match value {
        AttributeValue::String(text) => Some(text),
        AttributeValue::DebugLineStrRef(offset) => strings.get_str(offset).ok(),
        _ => None,
    };
    let mut names = HashMap::new();
    for (unit, file) in run.needed() {
        let table = match tables.entry(unit) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let offset = DebugLineOffset(*offsets.get(unit as usize)?);
                let program = section.program(offset, 8, None, None).ok()?;
                let directory = Some(text(*program.header().include_directories().first()?)?);
                new.insert(FileTable { program, directory })
            }
        };
        // Each text that the name is made of must be known.
        let odd = std::cell::Cell::new(false);
        let known = |value| {
            text(value).or_else(|| {
                odd.set(true);
                None
            })
        };
        let name = table.file_name(known, file);
        if odd.get() {
            return None;
        }
        names.insert((unit, file), name);
    }
    run.finish(|unit, file| names.get(&(unit, file)).cloned().flatten(), places, files);
    Some(())
}

/// The code of units that cover no asked address, after `.debug_aranges`. A program whose first address lies in it need not
/// be run.
struct Missed(Vec<(u64, u64)>);

impl Missed {
    /// Nothing is missed if the section is broken or absent.
    fn of(section: &[u8], run: &Run<'_>) -> Self {
        let mut ranges = Vec::new();
        let mut headers = DebugAranges::new(section, LittleEndian).headers();
        let mut read = || -> gimli::Result<()> {
            while let Some(header) = headers.next()? {
                let (before, mut hit) = (ranges.len(), false);
                let mut entries = header.entries();
                while let Some(entry) = entries.next()? {
                    let range = (entry.address(), entry.range().end);
                    hit |= run.slots.any_in(range.0.wrapping_add(run.shift), range.1.wrapping_add(run.shift));
                    ranges.push(range);
                }
                if hit {
                    ranges.truncate(before);
                }
            }
            Ok(())
        };
        if read().is_err() {
            return Missed(Vec::new());
        }
        ranges.sort_unstable();
        Missed(ranges)
    }

    fn contains(&self, address: u64) -> bool {
        let behind = self.0.partition_point(|r| r.0 <= address);
        behind.checked_sub(1).is_some_and(|i| address < self.0[i].1)
    }
}

/// Runs the programs of the units that cover an asked address.
fn with_units(
    reader: &Reader<'_>,
    executable: &[(u64, u64)],
    addresses: &[Svma],
    places: &mut [Place],
    files: &mut Interner,
    problems: &mut Problems,
) {
    let dwarf = reader.dwarf(problems);
    let mut run = Run::new(addresses, executable, reader.home.shift);
    let mut units = Units {
        done: HashSet::new(),
        // Programs do not overlap; those of a hostile file may a little.
        budget: 2 * reader.contents(SectionId::DebugLine, problems).len() as u64,
        steps: Steps::default(),
        run: Vec::new(),
    };
    // Units may share their ranges and the header of a line program, and a hostile file has thousands of units that share
    // large ones. No honest file comes near this limit, in bytes that are looked at.
    let shared = [SectionId::DebugLine, SectionId::DebugRanges, SectionId::DebugRngLists];
    let mut effort = shared.iter().map(|id| reader.contents(*id, problems).len() as u64).sum::<u64>() * 64 + (1 << 20);
    let mut tables = Tables::of(&dwarf, reader.contents(SectionId::DebugAbbrev, problems));
    let mut unplaced = Vec::new();
    let mut missed = HashSet::new();
    let mut headers = dwarf.units();
    loop {
        if effort == 0 {
            problems.push("units of .debug_info share more than is reasonable, the rest is left out");
            break;
        }
        let header = match headers.next() {
            Ok(Some(header)) => header,
            Ok(None) => break,
            Err(e) => {
                problems.push(format_args!("section .debug_info: {e}"));
                break;
            }
        };
        let unit = match tables.unit(&dwarf, header) {
            Ok(unit) => unit,
            Err(e) => {
                problems.push(format_args!("a unit in .debug_info: {e}"));
                continue;
            }
        };
        let Some(program) = &unit.line_program else { continue };
        let DebugLineOffset(offset) = program.header().offset();
        effort = effort.saturating_sub(program.header().header_length() as u64);
        let asked = |begin: u64, end: u64| run.slots.any_in(begin.wrapping_add(run.shift), end.wrapping_add(run.shift));
        match coverage(&dwarf, &unit, asked, &mut effort) {
            Coverage::Hit => units.run(unit, &mut run, problems),
            Coverage::Miss => {
                missed.insert(offset);
            }
            // Units that share the program of another one (partial units) need not say what it covers.
            // (Where they are is kept, and not what their headers say: a file may have hundreds of thousands.)
            Coverage::Unknown => {
                unplaced.push((offset, header.debug_info_offset(), program.header().header_length() as u64))
            }
        }
    }
    for (offset, unit, size) in unplaced {
        if !missed.contains(&offset)
            && !units.done.contains(&offset)
            && let Some(left) = effort.checked_sub(size)
            && let Some(Ok(header)) = unit.map(|unit| dwarf.debug_info.header_from_offset(unit))
            && let Ok(unit) = dwarf.unit(header)
        {
            effort = left;
            units.run(unit, &mut run, problems);
        }
    }
    let name = |unit: u32, file| {
        let unit = units.run.get(unit as usize)?;
        unit.table.file_name(|value| dwarf.attr_string(&unit.unit, value).ok(), file)
    };
    run.finish(name, places, files);
}

/// What a unit says about the asked addresses.
pub(super) enum Coverage {
    Hit,
    /// It covers none of them.
    Miss,
    Unknown,
}

/// Whether a unit covers addresses that `any_in` knows; reading stops when no `effort` is left.
pub(super) fn coverage(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    any_in: impl Fn(u64, u64) -> bool,
    effort: &mut u64,
) -> Coverage {
    /// Bytes of a range in a list, at least.
    const RANGE: u64 = 2;
    match claimed(dwarf, unit) {
        Ok(Claimed::Range(begin, end)) if any_in(begin, end) => Coverage::Hit,
        Ok(Claimed::Range(..)) => Coverage::Miss,
        Ok(Claimed::List(mut ranges)) => {
            let mut any = false;
            while *effort > 0 {
                *effort = effort.saturating_sub(RANGE);
                match ranges.next() {
                    Ok(Some(range)) if any_in(range.begin, range.end) => return Coverage::Hit,
                    Ok(Some(_)) => any = true,
                    Ok(None) if any => return Coverage::Miss,
                    Ok(None) | Err(_) => return Coverage::Unknown,
                }
            }
            Coverage::Unknown
        }
        Ok(Claimed::Nothing) | Err(_) => Coverage::Unknown,
    }
}

/// What a unit says that it covers.
enum Claimed<'a> {
    Nothing,
    Range(u64, u64),
    List(gimli::RngListIter<Slice<'a>>),
}

/// As the library's `unit_ranges`, which adds what a file says without a look at the sum.
fn claimed<'a>(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>) -> gimli::Result<Claimed<'a>> {
    let mut entries = unit.entries();
    entries.next_dfs()?;
    let root = entries.current().ok_or(gimli::Error::MissingUnitDie)?;
    let (mut begin, mut end, mut size) = (None, None, None);
    for attribute in root.attrs() {
        match (attribute.name(), attribute.value()) {
            (gimli::DW_AT_low_pc, value) => begin = dwarf.attr_address(unit, value)?,
            (gimli::DW_AT_high_pc, AttributeValue::Udata(length)) => size = Some(length),
            (gimli::DW_AT_high_pc, value) => end = dwarf.attr_address(unit, value)?,
            (gimli::DW_AT_ranges, value) => {
                if let Some(list) = dwarf.attr_ranges(unit, value)? {
                    return Ok(Claimed::List(list));
                }
            }
            _ => {}
        }
    }
    let behind = |begin: u64| if let Some(size) = size { begin.checked_add(size) } else { end };
    Ok(begin.and_then(|begin| Some(Claimed::Range(begin, behind(begin)?))).unwrap_or(Claimed::Nothing))
}

/// The names of a program's files.
struct FileTable<'a> {
    /// Its header may be large, so there is no copy of it.
    program: IncompleteLineProgram<Slice<'a>>,
    /// The compilation directory.
    directory: Option<Slice<'a>>,
}

/// A unit whose program was run.
struct RunUnit<'a> {
    table: FileTable<'a>,
    unit: Unit<Slice<'a>>,
}

/// The units whose programs were run.
struct Units<'a> {
    /// Offsets of their programs.
    done: HashSet<usize>,
    /// Bytes of programs that may still be run.
    budget: u64,
    steps: Steps,
    run: Vec<RunUnit<'a>>,
}

impl<'a> Units<'a> {
    fn run(&mut self, mut unit: Unit<Slice<'a>>, run: &mut Run<'_>, problems: &mut Problems) {
        let Some(program) = unit.line_program.take() else { return };
        let header = program.header();
        let DebugLineOffset(offset) = header.offset();
        if !self.done.insert(offset) {
            return;
        }
        let size = header.raw_program_buf().len() as u64 + header.header_length() as u64;
        let Some(budget) = self.budget.checked_sub(size) else {
            problems.push("line programs overlap, some are left out");
            return;
        };
        self.budget = budget;
        let index = self.run.len() as u32;
        if Program::of(header).run(&mut self.steps, |row| run.row(row, index)).is_none() {
            problems.push(format_args!("line program at {offset:#x} is broken"));
        }
        self.run.push(RunUnit { table: FileTable { program, directory: unit.comp_dir }, unit });
    }
}

impl<'a> FileTable<'a> {
    /// `directory/name` of a file; `text` is what an attribute says.
    fn file_name(&self, text: impl Fn(AttributeValue<Slice<'a>>) -> Option<Slice<'a>>, index: u32) -> Option<Vec<u8>> {
        file_name(self.program.header(), self.directory, text, index)
    }
}

/// `directory/name` of a file of a line program whose unit has the compilation directory `base`.
pub(super) fn file_name<'a>(
    header: &LineProgramHeader<Slice<'a>>,
    base: Option<Slice<'a>>,
    text: impl Fn(AttributeValue<Slice<'a>>) -> Option<Slice<'a>>,
    index: u32,
) -> Option<Vec<u8>> {
    let modern = header.version() >= 5;
    let file = if modern {
        header.file_names().get(index as usize)
    } else {
        header.file_names().get((index as usize).checked_sub(1)?)
    };
    let file = file?;
    let name = text(file.path_name())?;
    let directories = header.include_directories();
    let own = file.directory_index();
    let mut path = Vec::new();
    if own == 0 && !modern {
        path.extend_from_slice(base.map_or(&b"."[..], |d| d.slice()));
    } else {
        let position = if modern { Some(own) } else { own.checked_sub(1) };
        let directory =
            position.and_then(|p| usize::try_from(p).ok()).and_then(|p| directories.get(p)).and_then(|d| text(*d));
        if let Some(directory) = directory {
            if let Some(base) = base
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

fn is_absolute(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines = Vec<(Vec<u8>, u32)>;

    /// Both ways through the sections of `image`, every third byte of what is executable.
    fn both_ways(image: &Image, ranges: &[(u64, u64)]) -> [Option<Lines>; 2] {
        let executable = image.executable_ranges();
        let addresses: Vec<Svma> = ranges.iter().flat_map(|&(a, b)| (a..b).step_by(3).map(Svma)).collect();
        let home = Home::of(image, None, &[], || None).unwrap();
        let sections = DwarfSections::default();
        let reader = Reader { sections: &sections, home: &home };
        [false, true].map(|units| {
            let (mut files, mut problems) = (Interner::new(), Problems::default());
            let mut places = vec![Place::default(); addresses.len()];
            if units {
                with_units(&reader, &executable, &addresses, &mut places, &mut files, &mut problems);
            } else {
                without_units(&reader, &executable, &addresses, &mut places, &mut files, &mut problems)?;
            }
            assert_eq!(problems.as_slice(), [""; 0]);
            let files = files.into_names();
            Some(places.iter().map(|p| (files[p.file.index()].to_vec(), p.line)).collect())
        })
    }

    #[test]
    fn units_are_not_needed() {
        let mut images: Vec<PathBuf> = Vec::new();
        // Whatever separate debug files there are, all of other people's making.
        for folder in std::fs::read_dir("/usr/lib/debug/.build-id").into_iter().flatten().flatten() {
            images.extend(std::fs::read_dir(folder.path()).into_iter().flatten().flatten().map(|e| e.path()));
        }
        images.sort();
        let mut compared = 0;
        for path in images {
            let Ok(image) = Image::open(&path) else { continue };
            let small = image.section(".debug_line").is_some_and(|s| s.size < 1 << 20);
            if !image.has_data(".debug_info") || !image.has_data(".debug_line") || !small {
                continue;
            }
            let all = image.executable_ranges();
            // All code, and a part: then other units than those asked for may be left out.
            let part = all.iter().map(|&(a, b)| (a + (b - a) / 3, a + (b - a) / 3 + (b - a) / 50)).collect();
            for ranges in [all, part] {
                if let [Some(without), Some(with)] = both_ways(&image, &ranges) {
                    let differs = without.iter().zip(&with).position(|(a, b)| a != b);
                    assert_eq!(differs, None, "{}", path.display());
                    compared += usize::from(with.iter().any(|p| p.1 != 0));
                }
            }
        }
        // And one of our own, of another version in part.
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("a.c");
        std::fs::write(&source, "int f(int x) {\n  return x * 3;\n}\nint main(void) {\n  return f(1);\n}\n").unwrap();
        for (version, alone) in [("-gdwarf-5", true), ("-gdwarf-4", false)] {
            let out = folder.path().join("a");
            let built = std::process::Command::new("gcc").args([version, "-o"]).arg(&out).arg(&source).status();
            if !built.is_ok_and(|s| s.success()) {
                assert!(std::env::var_os("CI").is_none(), "gcc is missing");
                continue;
            }
            let image = Image::open(&out).unwrap();
            let [without, with] = both_ways(&image, &image.executable_ranges());
            assert_eq!(without.is_some(), alone);
            assert!(with.as_ref().unwrap().iter().any(|p| p.1 == 5));
            assert!(!alone || without == with);
            compared += usize::from(alone);
        }
        eprintln!("{compared} compared");
    }
}
