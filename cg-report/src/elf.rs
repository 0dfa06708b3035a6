//! Object files that ran: their code and their symbols, read as far as they are asked for.
//!
//! A profile may name any file: only regular files are opened, and a file that is no ELF object is as good as none.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SectionKind, SymbolKind};

use crate::inline::Inlines;
use crate::names::demangled;
use crate::stubs::stubs;

/// A symbol of code.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub(crate) start: u64,
    /// Behind its last byte; its start if the file does not say.
    pub(crate) end: u64,
    raw: String,
    /// As a programmer would write it: most names are never shown.
    demangled: OnceCell<String>,
}

impl Symbol {
    /// A symbol of code from `start` to `end`.
    pub(crate) fn new(start: u64, end: u64, raw: String) -> Self {
        Self { start, end, raw, demangled: OnceCell::new() }
    }

    pub(crate) fn name(&self) -> &str {
        self.demangled.get_or_init(|| demangled(&self.raw))
    }
}

/// Code of an object file, which is read where it is asked for: of a large program little is executed.
#[derive(Debug)]
struct Section {
    start: u64,
    /// Where it stands in the file, and how many bytes it has.
    offset: u64,
    size: u64,
}

/// What is known of an object file.
#[derive(Debug)]
pub(crate) struct Elf {
    reader: File,
    sections: Vec<Section>,
    /// By where they start; of several in one place the first.
    pub(crate) symbols: Rc<Vec<Symbol>>,
    /// What leads to functions of other objects, likewise: the file has no symbols for these, so they are none here either.
    pub(crate) stubs: Rc<Vec<Symbol>>,
    pub(crate) inlines: Option<Inlines>,
    /// What is mapped: where in the file, how many bytes, and the address.
    segments: Vec<(u64, u64, u64)>,
    /// In hexadecimal digits; empty if it has none.
    pub(crate) build: String,
}

impl Elf {
    /// Reads the object file called `name` in the profile, below `root` if there is one.
    pub(crate) fn open(name: &[u8], root: Option<&Path>) -> Option<Self> {
        let path = Path::new(OsStr::from_bytes(name));
        let path = match root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        };
        // Looked at before it is opened: opening a pipe would wait.
        let meta = std::fs::metadata(&path).ok()?;
        if !meta.is_file() {
            return None;
        }
        let reader = File::open(&path).ok()?;
        let cache = ReadCache::new(&reader);
        let file = object::File::parse(&cache).ok()?;
        let mut sections = Vec::new();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            // What a damaged file says of its size is not believed.
            let Some((offset, size)) = section.file_range() else { continue };
            if offset.checked_add(size).is_some_and(|end| end <= meta.len()) {
                sections.push(Section { start: section.address(), offset, size });
            }
        }
        let mut symbols: Vec<Symbol> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| {
                let start = symbol.address();
                let end = start.checked_add(symbol.size())?;
                Some(Symbol::new(start, end, symbol.name().ok()?.to_owned()))
            })
            .collect();
        symbols.sort_by(|a, b| (a.start, b.end).cmp(&(b.start, a.end)));
        symbols.dedup_by_key(|symbol| symbol.start);
        let inlines = Inlines::of(&file);
        let named = stubs(&file).into_iter().map(|stub| Symbol::new(stub.start, stub.end, stub.name));
        let stubs = Rc::new(named.collect());
        let mapped = |segment: object::Segment<'_, '_, _>| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        };
        let segments = file.segments().map(mapped).collect();
        let build = file.build_id().ok().flatten().unwrap_or_default();
        let build = build.iter().map(|byte| format!("{byte:02x}")).collect();
        drop(cache);
        Some(Self { reader, sections, symbols: Rc::new(symbols), stubs, inlines, segments, build })
    }

    /// The bytes from `start` to `end`, as far as they are code of one section and can be read.
    pub(crate) fn bytes(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        self.sections.iter().find_map(|section| {
            let from = start.checked_sub(section.start).filter(|from| *from < section.size)?;
            let to = end.checked_sub(section.start)?.min(section.size);
            let mut bytes = vec![0; usize::try_from(to.checked_sub(from)?).ok()?];
            self.reader.read_exact_at(&mut bytes, section.offset + from).ok()?;
            Some(bytes)
        })
    }

    /// The address of a place in the file, if it is mapped.
    pub(crate) fn address(&self, place: u64) -> Option<u64> {
        self.segments.iter().find_map(|(offset, size, address)| {
            let behind = place.checked_sub(*offset).filter(|behind| behind < size)?;
            address.checked_add(behind)
        })
    }

    /// The symbol whose code holds an address.
    pub(crate) fn symbol(&self, addr: u64) -> Option<&Symbol> {
        holding(&self.symbols, addr)
    }
}

/// The symbol of a sorted list whose code holds an address.
pub(crate) fn holding(symbols: &[Symbol], addr: u64) -> Option<&Symbol> {
    let symbol = &symbols[symbols.partition_point(|symbol| symbol.start <= addr).checked_sub(1)?];
    (symbol.start == addr || addr < symbol.end).then_some(symbol)
}
