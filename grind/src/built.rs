//! How a program was built, as far as its file tells: whether it has names and lines, and whether it was optimized.
//!
//! This is for advice only, never for a profile. The file is as hostile as any: whatever is broken or absurd is as if it were not
//! there, and what is read is bounded.

use std::fs::File;
use std::path::{Path, PathBuf};

use gimli::{AttributeValue, DwarfSections, EndianSlice, LittleEndian, SectionId};
use object::read::ReadCache;
use object::{Object, ObjectSection};

/// Sections above this are not read (bytes): advice must not cost the end of a run.
const MOST: u64 = 32 << 20;
/// Units that are looked at; a program is seldom built in two ways.
const UNITS: usize = 200;

/// What the file of a program, or its separate file, has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// A table of symbols, so that functions have names.
    pub names: bool,
    /// Line tables, so that costs have files and lines.
    pub lines: bool,
    /// Whether the compiler was told to optimize. Only gcc writes down what it was told.
    pub optimized: Option<bool>,
}

/// Looks at the file of a program, and where it is stripped at the one in `/usr/lib/debug` by its build ID. None if it is no ELF
/// file that can be read.
#[must_use]
pub fn look(path: &Path) -> Option<Built> {
    let (mut built, id) = one(path)?;
    if !(built.names && built.lines)
        && let Some((separate, _)) = id.and_then(|id| one(&separate_file(&id)?))
    {
        built.names |= separate.names;
        built.lines |= separate.lines;
        built.optimized = built.optimized.or(separate.optimized);
    }
    Some(built)
}

fn separate_file(id: &[u8]) -> Option<PathBuf> {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (head, rest) = hex.split_at_checked(2)?;
    Some(format!("/usr/lib/debug/.build-id/{head}/{rest}.debug").into())
}

/// What one file has, and its build ID.
fn one(path: &Path) -> Option<(Built, Option<Vec<u8>>)> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let has = |name: &str| file.section_by_name(name).is_some_and(|s| s.size() > 0);
    let built = Built {
        names: has(".symtab"),
        lines: has(".debug_line"),
        optimized: optimized(producers(&file).unwrap_or_default().iter().map(String::as_str)),
    };
    Some((built, file.build_id().ok().flatten().map(<[u8]>::to_vec)))
}

/// What the compilers say of themselves, a text for each unit.
fn producers<'d>(file: &impl Object<'d>) -> Option<Vec<String>> {
    let load = |id: SectionId| -> Result<Vec<u8>, gimli::Error> {
        let wanted =
            matches!(id, SectionId::DebugInfo | SectionId::DebugAbbrev | SectionId::DebugStr | SectionId::DebugLineStr);
        let section = file.section_by_name(id.name()).filter(|section| wanted && section.size() <= MOST);
        let compressed = section.and_then(|section| section.compressed_data().ok());
        let data = compressed.filter(|data| data.uncompressed_size <= MOST).and_then(|data| data.decompress().ok());
        Ok(data.map_or_else(Vec::new, std::borrow::Cow::into_owned))
    };
    let sections = DwarfSections::load(load).ok()?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut found = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if found.len() == UNITS {
            break;
        }
        let text = (|| {
            let abbreviations = dwarf.abbreviations(&header).ok()?;
            let mut entries = header.entries(&abbreviations);
            let root = entries.next_dfs().ok()??;
            let text = match root.attr_value(gimli::DW_AT_producer)? {
                AttributeValue::String(text) => text,
                AttributeValue::DebugStrRef(at) => dwarf.string(at).ok()?,
                AttributeValue::DebugLineStrRef(at) => dwarf.line_string(at).ok()?,
                _ => return None,
            };
            Some(text.to_string_lossy().into_owned())
        })();
        found.push(text.unwrap_or_default());
    }
    Some(found)
}

/// Whether any unit of gcc's was optimized; nothing if there is no such unit.
fn optimized<'t>(producers: impl Iterator<Item = &'t str>) -> Option<bool> {
    let of_gcc = |text: &&str| text.starts_with("GNU ") && !text.starts_with("GNU AS");
    let told = |text: &str| text.split(' ').rfind(|word| word.starts_with("-O")).is_some_and(|word| word != "-O0");
    producers.filter(of_gcc).map(told).reduce(|one, other| one || other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcc_tells_whether_it_optimizes() {
        let asked = |texts: &[&str]| optimized(texts.iter().copied());
        assert_eq!(asked(&["GNU C17 12.2.0 -mtune=generic -march=x86-64 -g"]), Some(false));
        assert_eq!(asked(&["GNU C17 12.2.0 -g -O2 -O0"]), Some(false), "the last one counts");
        assert_eq!(asked(&["GNU C17 12.2.0 -g", "GNU C++17 12.2.0 -g -O -fPIC"]), Some(true));
        assert_eq!(asked(&["GNU AS 2.40", "clang LLVM (rustc version 1.88.0)", ""]), None);
    }

    #[test]
    fn what_is_no_program_has_nothing() {
        assert_eq!(look(Path::new("/dev/null")), None);
        assert_eq!(look(Path::new("/nothing/here")), None);
        assert_eq!(look(Path::new(file!())), None);
        let own = look(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.names && own.lines, "tests are built with lines: {own:?}");
    }
}
