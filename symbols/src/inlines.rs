//! Which functions were inlined where, from DWARF 2 to 5.
//!
//! Units that cover an asked address are read entry by entry; an inlined function (`DW_TAG_inlined_subroutine`) is a frame
//! with the frame that it was inlined into. What is asked gets its innermost frame. Names are those of the function that was
//! inlined (`DW_AT_abstract_origin`, in this unit, another one, or the file that several debug files share): the linkage name if
//! it has one anywhere, else the plain one. Where debug information is split (`-gsplit-dwarf`), the entries come from the `.dwp`
//! or `.dwo` file that has the unit's identifier, and from no other.
//!
//! It must never loop or run away on an input: chains of origins are followed so many steps, reading stops after a minute,
//! and what is broken costs frames, never the profile.
//!
//! Invariants: a frame is inlined into one that was made before it; code without a frame is that of the function itself.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, Dwarf, DwarfPackage, DwoId, EndianSlice, LittleEndian,
    SectionId, Unit, UnitOffset, constants,
};

use super::image::Image;
use super::lines::{Coverage, DwarfSections, Home, Reader, Slice, coverage, file_name};
use super::names::{Interner, Name, NameId, sanitised};
use super::problems::Problems;
use super::{InlineFrame, Svma};

/// No honest file comes near this limit.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Ranges that are read for a byte of entries, at most.
const EFFORT: u64 = 16;

/// The most entries between an inlined function and what has its name.
const MAX_ORIGINS: usize = 16;

/// The innermost frames of asked addresses.
pub(super) struct Found {
    /// Every frame, the outer ones before those inlined into them.
    pub(super) frames: Vec<InlineFrame>,
    /// For each asked address the number of its innermost frame, from 1; 0: nothing is inlined there.
    pub(super) innermost: Vec<u32>,
    /// What was wrong with the sections.
    pub(super) problems: Problems,
}

/// The innermost inlined function of each of the sorted `addresses`. `shown` says how a name of the file is shown.
pub(super) fn resolve(
    sections: &DwarfSections,
    home: &Home<'_>,
    addresses: &[Svma],
    shown: &dyn Fn(&[u8]) -> Name,
    functions: &mut Interner,
    files: &mut Interner,
) -> Found {
    let mut problems = Problems::default();
    let reader = Reader { sections, home };
    let size = reader.contents(SectionId::DebugInfo, &mut problems).len() as u64;
    let frames = Frames {
        addresses,
        shift: home.shift,
        shown,
        functions,
        files,
        frames: Vec::new(),
        innermost: vec![0; addresses.len()],
        effort: size * EFFORT + (1 << 20),
    };
    if addresses.is_empty() {
        return Found { frames: frames.frames, innermost: frames.innermost, problems };
    }
    let mut dwarf = reader.dwarf_with_alternate(&mut problems);
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    let mut search = Search { frames, home, package: None, started: Instant::now() };
    search.units(&dwarf, &mut problems);
    Found { frames: search.frames.frames, innermost: search.frames.innermost, problems }
}

/// Frames as they are found.
struct Frames<'a> {
    addresses: &'a [Svma],
    shift: u64,
    shown: &'a dyn Fn(&[u8]) -> Name,
    functions: &'a mut Interner,
    files: &'a mut Interner,
    frames: Vec<InlineFrame>,
    innermost: Vec<u32>,
    /// Ranges that may still be read: entries of a hostile file may share large lists.
    effort: u64,
}

impl Frames<'_> {
    /// The positions of the asked addresses in a range of addresses of the sections.
    fn asked_in(&self, begin: u64, end: u64) -> std::ops::Range<usize> {
        // What the linker has left out begins at 0.
        if begin == 0 || end <= begin {
            return 0..0;
        }
        let at = |limit: u64| self.addresses.partition_point(|a| a.0 < limit);
        let (begin, end) = (begin.wrapping_add(self.shift), end.wrapping_add(self.shift));
        at(begin)..at(end)
    }
}

/// A search through the units of an object.
struct Search<'a> {
    frames: Frames<'a>,
    home: &'a Home<'a>,
    /// Sections of the object's `.dwp` file, once it has been looked for.
    package: Option<Option<SplitFile>>,
    started: Instant,
}

impl Search<'_> {
    fn units(&mut self, dwarf: &Dwarf<Slice<'_>>, problems: &mut Problems) {
        let mut names = Names::new(dwarf);
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if self.started.elapsed() > MAX_TIME {
                problems.push("reading .debug_info takes too long, inlined functions are left out");
                return;
            }
            let Ok(unit) = dwarf.unit(header) else { continue };
            let mut effort = self.frames.effort;
            let asked = |begin, end| !self.frames.asked_in(begin, end).is_empty();
            let covered = coverage(dwarf, &unit, asked, &mut effort);
            self.frames.effort = effort;
            if matches!(covered, Coverage::Miss) {
                continue;
            }
            let read = match unit.dwo_id {
                Some(id) if is_skeleton(&unit) => self.split(dwarf, &unit, id),
                _ => self.frames.unit(&mut names, &unit).map_err(|e| e.to_string()),
            };
            if let Err(problem) = read {
                problems.push(format_args!("a unit in .debug_info: {problem}"));
            }
        }
    }

    /// The unit whose skeleton is `skeleton`, in a file of its own.
    fn split(&mut self, parent: &Dwarf<Slice<'_>>, skeleton: &Unit<Slice<'_>>, id: DwoId) -> Result<(), String> {
        if self.package.is_none() {
            self.package = Some(self.home.image.path.as_deref().and_then(|path| {
                let mut name = path.as_os_str().to_owned();
                name.push(".dwp");
                SplitFile::open(Path::new(&name))
            }));
        }
        if let Some(Some(file)) = &self.package {
            let load = |section: SectionId| Ok::<_, gimli::Error>(file.slice(section));
            let package = DwarfPackage::load(load, EndianSlice::new(&[], LittleEndian)).map_err(|e| e.to_string())?;
            if let Some(dwarf) = package.find_cu(id, parent).map_err(|e| e.to_string())? {
                return self.frames.split_unit(&dwarf, skeleton, id);
            }
        }
        let Some(name) = skeleton.dwo_name().ok().flatten().and_then(|n| parent.attr_string(skeleton, n).ok()) else {
            return Err("it is split, and does not say which file has the rest".to_owned());
        };
        let file = candidates(name.slice(), skeleton.comp_dir.map(|d| d.slice()), self.home.folder);
        let Some(file) = file.iter().find_map(|path| SplitFile::open(path)) else {
            return Err(format!("{} not found", Path::new(OsStr::from_bytes(name.slice())).display()));
        };
        let mut dwarf = Dwarf::load(|section| Ok::<_, gimli::Error>(file.slice(section))).map_err(|e| e.to_string())?;
        dwarf.make_dwo(parent);
        self.frames.split_unit(&dwarf, skeleton, id)
    }
}

/// Whether the entries of the unit are in another file: it has nothing below its root.
fn is_skeleton(unit: &Unit<Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    matches!(entries.next_dfs(), Ok(Some(root)) if !root.has_children())
}

/// Where a `.dwo` file may be.
fn candidates(name: &[u8], comp_dir: Option<&[u8]>, folder: Option<&Path>) -> Vec<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    let mut all: Vec<PathBuf> = comp_dir.iter().map(|d| Path::new(OsStr::from_bytes(d)).join(name)).collect();
    all.push(name.to_path_buf());
    if let Some(folder) = folder {
        all.push(folder.join(name));
        all.extend(name.file_name().map(|file| folder.join(file)));
    }
    all.retain(|path| path.is_absolute());
    all
}

/// The sections of a `.dwo` or `.dwp` file.
struct SplitFile(HashMap<&'static str, Vec<u8>>);

impl SplitFile {
    fn open(path: &Path) -> Option<SplitFile> {
        // A package's index has places in all of them, also in those that nobody asks for here.
        const SECTIONS: [SectionId; 14] = [
            SectionId::DebugAbbrev,
            SectionId::DebugCuIndex,
            SectionId::DebugInfo,
            SectionId::DebugLine,
            SectionId::DebugLoc,
            SectionId::DebugLocLists,
            SectionId::DebugMacinfo,
            SectionId::DebugMacro,
            SectionId::DebugRngLists,
            SectionId::DebugStr,
            SectionId::DebugStrOffsets,
            SectionId::DebugTuIndex,
            SectionId::DebugTypes,
            SectionId::DebugRanges,
        ];
        let image = Image::open(path).ok()?;
        let section = |id: SectionId| {
            let name = id.dwo_name()?;
            Some((name, image.data(name).ok().flatten()?))
        };
        Some(SplitFile(SECTIONS.into_iter().filter_map(section).collect()))
    }

    fn slice(&self, section: SectionId) -> Slice<'_> {
        let data = section.dwo_name().and_then(|name| self.0.get(name));
        EndianSlice::new(data.map_or(&[], Vec::as_slice), LittleEndian)
    }
}

impl Frames<'_> {
    /// The entries of the unit `id` of a file of split debug information.
    fn split_unit(&mut self, dwarf: &Dwarf<Slice<'_>>, skeleton: &Unit<Slice<'_>>, id: DwoId) -> Result<(), String> {
        let mut names = Names::new(dwarf);
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let mut unit = dwarf.unit(header).map_err(|e| e.to_string())?;
            if unit.dwo_id == Some(id) {
                unit.copy_relocated_attributes(skeleton);
                return self.unit(&mut names, &unit).map_err(|e| e.to_string());
            }
        }
        Err("the file of its split debug information is of another build".to_owned())
    }

    /// The frames of a unit.
    fn unit<'d>(&mut self, names: &mut Names<'_, 'd>, unit: &Unit<Slice<'d>>) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        // Of the entries that the one at hand is within: how deep they are, and which frame code in them has.
        let mut around: Vec<(isize, u32)> = Vec::new();
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while around.last().is_some_and(|(d, _)| *d >= depth) {
                around.pop();
            }
            let mut entry = Inlined::default();
            match abbreviation.tag() {
                constants::DW_TAG_inlined_subroutine => {
                    for &specification in abbreviation.attributes() {
                        let attribute = entries.read_attribute(specification)?;
                        entry.attribute(attribute.name(), attribute.value());
                    }
                    let outer = around.last().map_or(0, |(_, frame)| *frame);
                    let frame = self.frame(names, unit, &entry, outer)?;
                    around.push((depth, frame));
                }
                tag => {
                    // In parts: gimli adds up the lengths of what it skips, and those that the file states may have no sum.
                    let stated = |form| {
                        let variable =
                            [constants::DW_FORM_block, constants::DW_FORM_exprloc, constants::DW_FORM_indirect];
                        variable.contains(&form)
                    };
                    for part in abbreviation.attributes().split_inclusive(|specification| stated(specification.form()))
                    {
                        entries.skip_attributes(part)?;
                    }
                    if tag == constants::DW_TAG_subprogram {
                        around.push((depth, 0));
                    }
                }
            }
        }
        Ok(())
    }

    /// The frame of an inlined function, which becomes the innermost one of its code. If none of that was asked for, it has none of
    /// its own.
    fn frame<'d>(
        &mut self,
        names: &mut Names<'_, 'd>,
        unit: &Unit<Slice<'d>>,
        entry: &Inlined<'d>,
        outer: u32,
    ) -> gimli::Result<u32> {
        let mut frame = None;
        let mut add = |frames: &mut Self, names: &mut Names<'_, 'd>, begin, end| {
            let asked = frames.asked_in(begin, end);
            if !asked.is_empty() {
                let frame = *frame.get_or_insert_with(|| {
                    let declared = entry.origin.and_then(|origin| names.of(unit, origin)).unwrap_or_default();
                    let function = frames.functions.intern((frames.shown)(declared.name.as_deref().unwrap_or(b"???")));
                    let file = declared.file.map_or(NameId::UNKNOWN, |file| frames.files.intern(sanitised(&file)));
                    frames.frames.push(InlineFrame { function, file, outer, call_line: entry.call_line });
                    frames.frames.len() as u32
                });
                frames.innermost[asked].fill(frame);
            }
        };
        let dwarf = names.dwarf;
        if let Some(mut ranges) = entry.ranges.map(|r| dwarf.attr_ranges(unit, r)).transpose()?.flatten() {
            while self.effort > 0
                && let Some(range) = ranges.next()?
            {
                self.effort -= 1;
                add(self, names, range.begin, range.end);
            }
        } else if let (Some(low), Some(high)) = (entry.low, entry.high)
            && let Some(begin) = dwarf.attr_address(unit, low)?
        {
            let end = match high.udata_value() {
                Some(length) => begin.wrapping_add(length),
                None => dwarf.attr_address(unit, high)?.unwrap_or(begin),
            };
            add(self, names, begin, end);
        }
        Ok(frame.unwrap_or(outer))
    }
}

/// What an entry of an inlined function says.
#[derive(Default)]
struct Inlined<'d> {
    low: Option<AttributeValue<Slice<'d>>>,
    high: Option<AttributeValue<Slice<'d>>>,
    ranges: Option<AttributeValue<Slice<'d>>>,
    origin: Option<AttributeValue<Slice<'d>>>,
    call_line: u32,
}

impl<'d> Inlined<'d> {
    fn attribute(&mut self, name: gimli::DwAt, value: AttributeValue<Slice<'d>>) {
        match name {
            constants::DW_AT_low_pc => self.low = Some(value),
            constants::DW_AT_high_pc => self.high = Some(value),
            constants::DW_AT_ranges => self.ranges = Some(value),
            constants::DW_AT_abstract_origin => self.origin = Some(value),
            constants::DW_AT_call_line => {
                self.call_line = value.udata_value().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            }
            _ => {}
        }
    }
}

/// What debug information says of a function.
#[derive(Clone, Default)]
struct Declared {
    name: Option<Rc<[u8]>>,
    /// The file in which it is declared.
    file: Option<Rc<[u8]>>,
}

/// Functions by where their entries are.
struct Names<'a, 'd> {
    dwarf: &'a Dwarf<Slice<'d>>,
    /// Where units begin, in ascending order.
    starts: Vec<DebugInfoOffset>,
    units: HashMap<usize, Rc<Unit<Slice<'d>>>>,
    known: HashMap<usize, Option<Declared>>,
    alternate: Option<Box<Names<'a, 'd>>>,
}

/// What an entry says of a function.
#[derive(Default)]
struct Named<'d> {
    linkage: Option<Slice<'d>>,
    plain: Option<Slice<'d>>,
    file: Option<Rc<[u8]>>,
    /// The entry that may say more.
    origin: Option<AttributeValue<Slice<'d>>>,
}

impl<'a, 'd> Names<'a, 'd> {
    fn new(dwarf: &'a Dwarf<Slice<'d>>) -> Self {
        let mut starts = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            starts.extend(header.debug_info_offset());
        }
        let alternate = dwarf.sup().map(|alternate| Box::new(Names::new(alternate)));
        Names { dwarf, starts, units: HashMap::new(), known: HashMap::new(), alternate }
    }

    /// The function whose entry `origin` of `unit` leads to.
    fn of(&mut self, unit: &Unit<Slice<'d>>, origin: AttributeValue<Slice<'d>>) -> Option<Declared> {
        match origin {
            AttributeValue::UnitRef(at) => {
                let key = at.to_debug_info_offset(&unit.header).map_or(usize::MAX, |o| o.0);
                self.remembered(key, |names| names.search(unit, at))
            }
            AttributeValue::DebugInfoRef(at) => self.in_other_unit(at),
            AttributeValue::DebugInfoRefSup(at) => self.alternate.as_mut()?.in_other_unit(at),
            _ => None,
        }
    }

    fn remembered(&mut self, key: usize, search: impl FnOnce(&mut Self) -> Option<Declared>) -> Option<Declared> {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let declared = search(self);
        self.known.insert(key, declared.clone());
        declared
    }

    fn in_other_unit(&mut self, at: DebugInfoOffset) -> Option<Declared> {
        self.remembered(at.0, |names| {
            let (unit, at) = names.unit_of(at)?;
            names.search(&unit, at)
        })
    }

    /// The unit that has the entry at `at`, and where in it.
    fn unit_of(&mut self, at: DebugInfoOffset) -> Option<(Rc<Unit<Slice<'d>>>, UnitOffset)> {
        let behind = self.starts.partition_point(|start| *start <= at);
        let start = *self.starts.get(behind.checked_sub(1)?)?;
        let header = self.dwarf.debug_info.header_from_offset(start).ok()?;
        let within = at.to_unit_offset(&header)?;
        let unit = match self.units.entry(start.0) {
            std::collections::hash_map::Entry::Occupied(known) => known.get().clone(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(Rc::new(self.dwarf.unit(header).ok()?)).clone()
            }
        };
        Some((unit, within))
    }

    /// The linkage name of an entry or those that it leads to, or else the first plain one; the first file.
    fn search(&mut self, unit: &Unit<Slice<'d>>, at: UnitOffset) -> Option<Declared> {
        let mut named = self.entry(unit, at)?;
        let mut declared = Declared::default();
        let mut other: Option<Rc<Unit<Slice<'d>>>> = None;
        for _ in 0..MAX_ORIGINS {
            declared.file = declared.file.or(named.file);
            if let Some(linkage) = named.linkage {
                return Some(Declared { name: Some(linkage.slice().into()), ..declared });
            }
            declared.name = declared.name.or(named.plain.map(|name| name.slice().into()));
            named = match named.origin {
                Some(AttributeValue::UnitRef(at)) => self.entry(other.as_deref().unwrap_or(unit), at)?,
                Some(AttributeValue::DebugInfoRef(at)) => {
                    let (found, at) = self.unit_of(at)?;
                    let entry = self.entry(&found, at)?;
                    other = Some(found);
                    entry
                }
                Some(AttributeValue::DebugInfoRefSup(at)) => {
                    let shared = self.alternate.as_mut().and_then(|a| a.in_other_unit(at)).unwrap_or_default();
                    declared = Declared { name: shared.name.or(declared.name), file: declared.file.or(shared.file) };
                    break;
                }
                _ => break,
            };
        }
        Some(declared)
    }

    fn entry(&self, unit: &Unit<Slice<'d>>, at: UnitOffset) -> Option<Named<'d>> {
        let mut entries = unit.entries_raw(Some(at)).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut named = Named::default();
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification).ok()?;
            let text = |value| self.dwarf.attr_string(unit, value).ok();
            match attribute.name() {
                constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => {
                    named.linkage = text(attribute.value());
                }
                constants::DW_AT_name => named.plain = text(attribute.value()),
                constants::DW_AT_decl_file => {
                    let number = match attribute.value() {
                        AttributeValue::FileIndex(n) => Some(n),
                        other => other.udata_value(),
                    };
                    let number = number.and_then(|n| u32::try_from(n).ok());
                    let file = unit
                        .line_program
                        .as_ref()
                        .zip(number)
                        .and_then(|(program, number)| file_name(program.header(), unit.comp_dir, text, number));
                    named.file = file.map(Rc::from);
                }
                constants::DW_AT_abstract_origin | constants::DW_AT_specification => {
                    named.origin = Some(attribute.value());
                }
                _ => {}
            }
        }
        Some(named)
    }
}
