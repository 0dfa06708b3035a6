//! Which function, file and line an instruction belongs to.
//!
//! An [`Object`] stands for one ELF file (or the kernel's vDSO image) that had executed code. It is asked after the run
//! for the addresses that were executed; only then are line programs run, and only those whose unit covers an asked
//! address. Its tables may be read ahead of that ([`Object::prepare`]).
//!
//! What it must never do: fail, panic or run away on an input. The files it reads are as hostile as the program that
//! was profiled, so whatever is missing, broken or absurd costs names (`???`) and leaves a line in
//! [`Object::warnings`], never the profile. Memory and time are bounded by the size of the files.
//!
//! Invariants:
//! - Function names come from symbol tables alone, never from DWARF; lines come from DWARF alone.
//! - All addresses are link-time addresses ([`Svma`]) of the main file, also when the names come from a separate file.
//! - Identifiers in a [`Resolution`] index its own tables; identifier 0 is always `???`.
//! - No name contains a line break or a NUL, so that no file can forge lines of a profile.
//! - The choice among names and lines is that of the reference tool; the modules below say where a rule looks odd.

#![forbid(unsafe_code)]

mod contents;
mod data;
mod demangle;
mod image;
mod inlines;
mod layout;
mod lines;
mod locate;
mod names;
mod open_file;
mod problems;
mod program;
mod symbols;
mod types;

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

pub use data::{Data, Variable};
pub use demangle::demangle;
use image::Image;
pub use layout::{Layout, Member};
use lines::{DwarfSections, Home};
use names::Interner;
pub use names::{Name, NameId, sanitised};
pub use open_file::OpenFile;
use problems::Problems;
use symbols::SymbolTable;
pub use types::Pointee;
use types::Types;

/// A link-time address ("stated virtual memory address"), as written in the file's own headers and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Svma(pub u64);

/// What is said of functions that were inlined into others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inlined {
    /// Nothing: code belongs to the function that has it.
    #[default]
    Hidden,
    /// Costs of a function say which inlined one they belong to (`--read-inline-info=yes`, profiles of calls only).
    Named,
    /// Each is a function of its own (`--separate-inlined=yes`).
    Separate,
}

/// How names are looked for and shown.
#[derive(Clone, Debug)]
pub struct Options {
    /// Show C++ and Rust names as written in the source (`--demangle=`).
    pub demangle: bool,
    /// Keep the names of the start-up functions instead of `(below main)` (`--show-below-main=`).
    pub show_below_main: bool,
    /// What is said of inlined functions.
    pub inlined: Inlined,
    /// Folders that hold separate debug files, in the order in which they are searched.
    pub debug_roots: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            demangle: true,
            show_below_main: false,
            inlined: Inlined::Hidden,
            debug_roots: vec![PathBuf::from("/usr/lib/debug")],
        }
    }
}

/// Where one instruction belongs: indices into the tables of the [`Resolution`] it is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index into [`Resolution::functions`]; [`NameId::UNKNOWN`] without a symbol.
    pub function: NameId,
    /// Index into [`Resolution::files`]; [`NameId::UNKNOWN`] without a line.
    pub file: NameId,
    /// Line number from 1; 0 if unknown (a known file with line 0 is possible).
    pub line: u32,
    /// The number of the innermost inlined function in [`Resolution::inlining`], from 1; 0 if nothing is inlined here, or nobody asked
    /// for it ([`Options::inlined`]).
    pub inlined: u32,
}

/// The kind of section that an address lies in, as far as calls are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// `.text`.
    Text,
    /// Stubs of the procedure linkage table that lead to functions of other objects.
    Linkage,
    /// Any other, or none.
    Other,
}

/// The answer to [`Object::resolve`].
#[derive(Clone, Debug)]
pub struct Resolution {
    /// Distinct function names; the first is `???`.
    pub functions: Vec<Name>,
    /// Distinct file names, each `directory/name` as in the debug info; the first is `???`.
    pub files: Vec<Name>,
    /// One place per asked address, in the order asked.
    pub places: Vec<Place>,
    /// What is inlined there; an outer function comes before those that were inlined into it.
    pub inlining: Vec<InlineFrame>,
}

impl Resolution {
    /// The names of what is inlined at a place, the innermost function first.
    pub fn inlined(&self, place: Place) -> impl Iterator<Item = &Name> {
        let frame = |number: u32| self.inlining.get((number as usize).checked_sub(1)?);
        let all = std::iter::successors(frame(place.inlined), move |inner| frame(inner.outer));
        all.filter_map(|frame| self.functions.get(frame.function.index()))
    }

    /// The innermost function of a place, inlined or not.
    #[must_use]
    pub fn innermost(&self, place: Place) -> NameId {
        let frame = (place.inlined as usize).checked_sub(1).and_then(|at| self.inlining.get(at));
        frame.map(|frame| frame.function).filter(|name| *name != NameId::UNKNOWN).unwrap_or(place.function)
    }
}

/// The answer to [`Object::resolve_stretches`].
#[derive(Clone, Debug)]
pub struct StretchResolution {
    /// Distinct function names; the first is `???`.
    pub functions: Vec<Name>,
    /// One for each stretch, in the order asked: the function, with no file and no line, if that is known of all of it.
    pub places: Vec<Option<NameId>>,
}

/// A function that was inlined somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineFrame {
    /// Which one, by the names of functions that come with this.
    pub function: NameId,
    /// The file in which it is declared, by those of files.
    pub file: NameId,
    /// The frame that it was inlined into, by its number; 0: the function that has the code.
    pub outer: u32,
    /// The line of the call there; 0: unknown.
    pub call_line: u32,
}

/// One ELF file and what is known about its addresses.
#[derive(Debug)]
pub struct Object {
    name: String,
    image: Option<Image>,
    /// The folder to which relative links of the object refer; none for an image that is not a file.
    folder: Option<PathBuf>,
    options: Options,
    debug: OnceLock<Option<Image>>,
    symbols: OnceLock<SymbolTable>,
    dwarf: DwarfSections,
    types: Types,
    warnings: Mutex<Problems>,
}

impl Object {
    /// Opens the ELF file at `path`. Always succeeds: a file that cannot be read is an object without names.
    pub fn open(path: &Path, options: &Options) -> Object {
        Object::new(path.display().to_string(), Image::open(path), Object::folder(path), options)
    }

    /// An ELF file that is, or was, mapped under the name `path`. Always succeeds, too; what has been written to since it was mapped has
    /// no names but those that were read before.
    pub fn mapped(path: &Path, file: Box<dyn OpenFile>, options: &Options) -> Object {
        Object::new(path.display().to_string(), Image::mapped(path, file), Object::folder(path), options)
    }

    /// Links are looked for next to the real file, as the kernel names it in the program's memory map.
    fn folder(path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        real.parent().map(Path::to_path_buf)
    }

    /// An object from memory, for example the vDSO; `name` is used in warnings only.
    pub fn from_image(bytes: Vec<u8>, name: &str, options: &Options) -> Object {
        Object::new(name.to_owned(), Image::from_bytes(bytes), None, options)
    }

    fn new(name: String, image: Result<Image, String>, folder: Option<PathBuf>, options: &Options) -> Object {
        let object = Object {
            name,
            image: None,
            folder,
            options: options.clone(),
            debug: OnceLock::new(),
            symbols: OnceLock::new(),
            dwarf: DwarfSections::default(),
            types: Types::default(),
            warnings: Mutex::default(),
        };
        match image {
            Ok(image) => {
                object.warn_all(image.warnings());
                Object { image: Some(image), ..object }
            }
            Err(cause) => {
                object.warn(&cause);
                object
            }
        }
    }

    /// What went wrong so far, one message each, for a verbose log. Grows as tables are read.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().map(|w| w.as_slice().to_vec()).unwrap_or_default()
    }

    fn warn(&self, what: &str) {
        if let Ok(mut warnings) = self.warnings.lock() {
            warnings.push(format_args!("{}: {what}", self.name));
        }
    }

    fn warn_all(&self, what: &Problems) {
        if let Ok(mut warnings) = self.warnings.lock() {
            warnings.extend(&format!("{}: ", self.name), what);
        }
    }

    /// The link-time address of the byte at `offset` of the file, if it is part of an executable segment.
    pub fn svma_of_offset(&self, offset: u64) -> Option<Svma> {
        self.image.as_ref()?.svma_of_offset(offset)
    }

    /// The link-time addresses of stretches of bytes of the file, given by where they begin and end, in the order of their
    /// beginnings: of the first byte and behind the last one. `None` unless all bytes of each are part of an executable segment,
    /// and follow one another there.
    pub fn svmas_of_stretches(&self, stretches: &[Range<u64>]) -> Option<Vec<(Svma, Svma)>> {
        let image = self.image.as_ref()?;
        let (first, end) = (stretches.first()?.start, stretches.iter().map(|s| s.end).max()?);
        // As a rule all of them are in one segment.
        let shift = image.svma_of_range(first, end).map(|at| at.0.wrapping_sub(first));
        let shifted = |s: &Range<u64>| {
            let start = match shift {
                Some(shift) => s.start.wrapping_add(shift),
                None => image.svma_of_range(s.start, s.end)?.0,
            };
            Some((Svma(start), Svma(start.checked_add(s.end - s.start)?)))
        };
        let addresses: Vec<_> = stretches.iter().map(shifted).collect::<Option<_>>()?;
        addresses.is_sorted_by_key(|a| a.0).then_some(addresses)
    }

    /// The name of the function that covers `at`.
    pub fn function_at(&self, at: Svma) -> Option<Name> {
        let symbol = self.symbols().find(at.0)?;
        Some(self.shown(symbol.name))
    }

    /// What kind of section `at` lies in.
    pub fn section_at(&self, at: Svma) -> SectionKind {
        let within = |name: &str| {
            let section = self.image.as_ref().and_then(|image| image.section(name));
            section.is_some_and(|s| (s.address..s.address.saturating_add(s.size)).contains(&at.0))
        };
        if within(".text") {
            SectionKind::Text
        } else if within(".plt") || within(".plt.sec") {
            SectionKind::Linkage
        } else {
            SectionKind::Other
        }
    }

    /// The addresses `[start, end)` for which [`Object::function_at`] gives the same symbol as for `at`.
    pub fn function_range(&self, at: Svma) -> Option<(Svma, Svma)> {
        let symbol = self.symbols().find(at.0)?;
        Some((Svma(symbol.start), Svma(symbol.end)))
    }

    /// The file offsets at which functions and sections of executable code begin or end, in ascending order.
    pub fn boundaries(&self) -> Vec<u64> {
        let Some(image) = &self.image else { return Vec::new() };
        let mut all: Vec<u64> = self.symbols().ranges().flat_map(|(start, end)| [start, end]).collect();
        for name in [".text", ".plt", ".plt.sec"] {
            all.extend(image.section(name).into_iter().flat_map(|s| [s.address, s.address.saturating_add(s.size)]));
        }
        let mut offsets: Vec<u64> = all.into_iter().filter_map(|at| image.offset_of_svma(at)).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// The file and line of the instruction at `at`. For more than a few addresses use [`Object::resolve`].
    pub fn line_at(&self, at: Svma) -> Option<(Name, u32)> {
        let resolution = self.resolve(&[at]);
        let place = resolution.places[0];
        (place.file != NameId::UNKNOWN || place.line != 0)
            .then(|| (resolution.files[place.file.index()].clone(), place.line))
    }

    /// Places of many addresses at once. Sorted addresses are answered fastest; any order is right.
    pub fn resolve(&self, addresses: &[Svma]) -> Resolution {
        if addresses.is_sorted() {
            return self.resolve_sorted(addresses);
        }
        let mut order: Vec<u32> = (0..addresses.len() as u32).collect();
        order.sort_by_key(|&i| addresses[i as usize]);
        let sorted: Vec<Svma> = order.iter().map(|&i| addresses[i as usize]).collect();
        let mut resolution = self.resolve_sorted(&sorted);
        let mut places = vec![Place::default(); addresses.len()];
        for (place, &i) in resolution.places.iter().zip(&order) {
            places[i as usize] = *place;
        }
        resolution.places = places;
        resolution
    }

    fn resolve_sorted(&self, addresses: &[Svma]) -> Resolution {
        let mut places = vec![Place::default(); addresses.len()];
        let mut functions = Interner::new();
        let symbols = self.symbols();
        let mut room = room_for_names(symbols);
        let mut cursor = symbols.cursor();
        let mut last = None;
        for (place, at) in places.iter_mut().zip(addresses) {
            let Some(index) = cursor.find(at.0) else { continue };
            let id = match last {
                Some((i, id)) if i == index => id,
                _ => functions.intern(self.shown_within(&mut room, symbols.name(index))),
            };
            last = Some((index, id));
            place.function = id;
        }

        let mut files = Interner::new();
        let mut inlining = Vec::new();
        if let Some(image) = &self.image
            && !addresses.is_empty()
            && let Some(home) =
                Home::of(image, self.folder.as_deref(), &self.options.debug_roots, || self.debug_image())
        {
            let executable = image.executable_ranges();
            self.warn_all(&lines::resolve(&self.dwarf, &home, &executable, addresses, &mut places, &mut files));
            if self.options.inlined != Inlined::Hidden {
                let shown = |raw: &[u8]| self.shown(raw);
                let found = inlines::resolve(&self.dwarf, &home, addresses, &shown, &mut functions, &mut files);
                self.warn_all(&found.problems);
                places.iter_mut().zip(found.innermost).for_each(|(place, frame)| place.inlined = frame);
                inlining = found.frames;
            }
        }
        Resolution { functions: functions.into_names(), files: files.into_names(), places, inlining }
    }

    /// Places of many stretches of code at once, given by their first bytes and what is behind their last ones, in the order of
    /// their first bytes: of those that have just one, which is that of all of their instructions. Where there are lines, they
    /// have to be asked for one by one: see [`Object::has_lines`].
    pub fn resolve_stretches(&self, stretches: &[(Svma, Svma)]) -> StretchResolution {
        let mut functions = Interner::new();
        let mut places = vec![None; stretches.len()];
        let symbols = self.symbols();
        let mut room = room_for_names(symbols);
        let mut cursor = symbols.cursor();
        let mut last = (None, NameId::UNKNOWN);
        for (place, (start, end)) in places.iter_mut().zip(stretches) {
            let Some(index) = cursor.find_all(start.0, end.0) else { continue };
            if index != last.0 {
                let id =
                    index.map_or(NameId::UNKNOWN, |i| functions.intern(self.shown_within(&mut room, symbols.name(i))));
                last = (index, id);
            }
            *place = Some(last.1);
        }
        StretchResolution { functions: functions.into_names(), places }
    }

    /// Whether there may be a line for any address.
    pub fn has_lines(&self) -> bool {
        self.image.as_ref().is_some_and(|image| {
            Home::of(image, self.folder.as_deref(), &self.options.debug_roots, || self.debug_image())
                .is_some_and(|home| home.has_lines())
        })
    }

    /// Reads, now, the tables that [`Object::resolve`] is going to need. Another thread may be doing the same.
    pub fn prepare(&self) {
        self.symbols();
        if let Some(image) = &self.image
            && let Some(home) =
                Home::of(image, self.folder.as_deref(), &self.options.debug_roots, || self.debug_image())
        {
            self.warn_all(&lines::prepare(&self.dwarf, &home));
        }
    }

    /// The name as the profile shows it, if there is `room` for it, which it takes; else `???`.
    fn shown_within(&self, room: &mut usize, raw: &[u8]) -> Name {
        let name = self.shown(raw);
        match room.checked_sub(name.len()) {
            Some(left) => {
                *room = left;
                name
            }
            None => {
                self.warn("names are too long in all, some are left out");
                Arc::from(&b"???"[..])
            }
        }
    }

    /// The name as the profile shows it.
    fn shown(&self, raw: &[u8]) -> Name {
        if !self.options.show_below_main && symbols::is_below_main(raw) {
            return Arc::from(&b"(below main)"[..]);
        }
        if self.options.demangle
            && let Some(name) = demangle(raw)
        {
            return sanitised(&name);
        }
        sanitised(raw)
    }

    fn debug_image(&self) -> Option<&Image> {
        self.debug
            .get_or_init(|| {
                let image = self.image.as_ref()?;
                let found = locate::debug_file(image, self.folder.as_deref(), &self.options.debug_roots);
                self.warn_all(&found.warnings);
                found.image
            })
            .as_ref()
    }

    fn symbols(&self) -> &SymbolTable {
        self.symbols.get_or_init(|| {
            let Some(image) = &self.image else { return SymbolTable::default() };
            let (table, problems) = symbols::load(image, || self.debug_image());
            self.warn_all(&problems);
            table
        })
    }
}

/// Bytes of all names that are shown at once. Names may share their bytes in the file, and stand for much longer texts when they
/// are demangled; so all of them together could be as long as the square of a hostile file, and longer.
fn room_for_names(symbols: &SymbolTable) -> usize {
    symbols.names_size().saturating_mul(16).saturating_add(1 << 20)
}
