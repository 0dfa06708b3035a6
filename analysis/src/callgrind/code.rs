//! The program's code as the model sees it: which function an address belongs to, from symbol tables alone, while the program
//! runs. For the file, names and source lines are looked up all at once when a part is written ([`resolved`]).
//!
//! A function is a symbol of an object. Code without a symbol is a function of its own at each address that is called, named
//! by its address in the object. Numbers are given in the order in which things are first met and never change; what they
//! stand for does not change either when memory is mapped anew.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use cg_calls::{CallersTable, Code, Function, FunctionId, ObjectId, Place, Section, Site, SiteId};
use grind_names::opened::{OpenObject, Opened};
use grind_symbols::{Name, SectionKind, Svma};
use grind_types::hash::Map;
use grind_types::{MappedFile, Module};

use super::counters::Counters;
use super::settings::Settings;
use crate::cycles::Pricing;

mod interpreted;
mod made;
mod resolved;

use interpreted::Interpreted;
use made::MadeFunctions;
pub use resolved::Resolved;

/// Where an object's code comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A file, and what was mapped under its name.
    File(PathBuf, Arc<MappedFile>),
    /// An image that no file has, such as the vDSO.
    Image(Arc<[u8]>),
    /// Memory that the program filled itself.
    Anonymous,
}

impl Origin {
    /// Where the code of a module comes from.
    #[must_use]
    pub fn of(module: &Module) -> Self {
        match (&module.image, &module.path, &module.file) {
            (Some(image), ..) => Self::Image(image.clone()),
            (None, Some(path), Some(file)) if !module.is_made() => Self::File(path.clone(), file.clone()),
            _ => Self::Anonymous,
        }
    }
}

/// Bits of an address that a program has.
const ADDRESS_BITS: u32 = 48;

/// How often other code may come to lie where there was some; whatever comes after that is taken for what is there last.
const MOST_REPLACED: usize = 4096;

/// A piece of an object in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// Offset in the object of the byte at `start`.
    offset: u64,
    object: u32,
}

#[derive(Clone, Debug)]
struct Known {
    name: Vec<u8>,
    object: Option<Arc<OpenObject>>,
}

#[derive(Clone, Debug)]
struct KnownFunction {
    object: u32,
    /// Its first address, as symbols of the object have it.
    start: u64,
    name: Name,
    linkage: bool,
}

/// A function that has a symbol, all of it in one section.
#[derive(Clone, Debug)]
struct Whole {
    object: u32,
    /// As symbols of the object have it.
    range: Range<u64>,
    function: FunctionId,
    section: Section,
}

/// Everything that is known of a process's code.
#[derive(Clone, Debug)]
pub struct Catalogue {
    settings: Settings,
    opened: Opened,
    objects: Vec<Known>,
    by_origin: HashMap<Origin, u32>,
    /// Sorted and disjoint.
    mappings: Vec<Mapping>,
    /// What was there before something else came to lie in its place, the oldest first. Addresses of that are told apart from others by
    /// [`Catalogue::told`].
    replaced: Vec<Mapping>,
    functions: Vec<KnownFunction>,
    by_start: Map<(u32, u64), FunctionId>,
    /// The function that was looked up last: what is asked next lies mostly in the same one.
    last: Option<Whole>,
    /// Names of code that the program made.
    made: MadeFunctions,
    /// Functions that an interpreter runs.
    interpreted: Interpreted,
    sites: Vec<Site>,
    /// How much had been replaced when each became known.
    site_ages: Vec<u32>,
    by_next: Map<u64, SiteId>,
    callers: CallersTable,
    /// What is executed as one.
    pub counters: Counters,
}

impl Catalogue {
    /// How a function is to be treated.
    fn treated(&self, known: &KnownFunction) -> Function {
        let object = &self.objects[known.object as usize].name;
        let interpreted = self.interpreted.function(known.start).map(|function| &function.name[..]);
        let treated = self.settings.function(interpreted.unwrap_or(&known.name), object, known.linkage);
        let trampoline = || self.settings.frames.is_some() && self.names_trampoline(known);
        Function { owns: interpreted.is_some() || trampoline(), ..treated }
    }

    /// Functions of the object at `path` are skipped from now on.
    pub fn skip_object(&mut self, path: &[u8]) {
        self.settings.obj_skip.push(path.to_vec());
    }

    /// A process without code, the names of which are those of what is `opened`.
    #[must_use]
    pub fn new(settings: Settings, opened: Opened) -> Catalogue {
        // Objects 0: what is in no mapping.
        let nowhere = Known { name: b"???".to_vec(), object: None };
        Catalogue {
            settings,
            opened,
            objects: vec![nowhere],
            by_origin: HashMap::new(),
            mappings: Vec::new(),
            replaced: Vec::new(),
            functions: Vec::new(),
            by_start: Map::default(),
            last: None,
            made: MadeFunctions::default(),
            interpreted: Interpreted::default(),
            sites: Vec::new(),
            site_ages: Vec::new(),
            by_next: Map::default(),
            callers: CallersTable::default(),
            counters: Counters::default(),
        }
    }

    /// Estimates cycles, if there is a `pricing`. Nothing has been counted yet.
    #[must_use]
    pub fn with_pricing(self, pricing: Option<Pricing>) -> Catalogue {
        Catalogue { counters: Counters::priced(pricing), ..self }
    }

    /// Code of `origin` lies at `start .. end` from now on; `offset` is where its first byte is in the object. Says whether it
    /// takes the place of other code: what has been added by then, counters and sites, is of that.
    pub fn map(&mut self, start: u64, end: u64, offset: u64, origin: &Origin) -> bool {
        let object = self.object(origin);
        let mut pieces = Vec::with_capacity(self.mappings.len() + 1);
        let before = self.replaced.len();
        for old in self.mappings.drain(..) {
            let (first, last) = (old.start.max(start), old.end.min(end));
            let same = old.object == object
                && (self.objects[object as usize].object.is_none()
                    || old.offset.wrapping_sub(old.start) == offset.wrapping_sub(start));
            if first < last && !same && self.replaced.len() < MOST_REPLACED {
                let offset = old.offset.wrapping_add(first - old.start);
                self.replaced.push(Mapping { start: first, end: last, offset, ..old });
            }
            // What the new one covers is gone; what it leaves stays.
            if old.start < start.min(old.end) {
                pieces.push(Mapping { end: start.min(old.end), ..old });
            }
            if old.end > end.max(old.start) {
                let from = end.max(old.start);
                pieces.push(Mapping { start: from, offset: old.offset.wrapping_add(from - old.start), ..old });
            }
        }
        if start < end {
            pieces.push(Mapping { start, end, offset, object });
        }
        pieces.sort_unstable_by_key(|piece| piece.start);
        self.mappings = pieces;
        self.counters.age = self.replaced.len() as u32;
        self.replaced.len() > before
    }

    /// How an address is told of what became known when so much had been replaced: as it is, or, if other code has come to lie
    /// there since, with what that was in the bits that no address of a program has.
    fn told(&self, addr: u64, age: u32) -> u64 {
        self.since(addr, age).next().unwrap_or(addr)
    }

    /// How it is told as one of each piece that has been replaced there since then, the oldest first.
    fn since(&self, addr: u64, age: u32) -> impl DoubleEndedIterator<Item = u64> {
        let pieces = self.replaced.iter().enumerate().skip(age as usize);
        let there = pieces.filter(move |(_, m)| (m.start..m.end).contains(&addr));
        there.map(move |(i, _)| addr | (i as u64 + 1) << ADDRESS_BITS)
    }

    /// The same of the target of a call of `function`: what it was when that was there.
    fn told_target(&mut self, addr: u64, function: FunctionId) -> u64 {
        let all: Vec<u64> = std::iter::once(addr).chain(self.since(addr, 0).rev()).collect();
        let is_there = |told: &u64| {
            let (object, at) = self.locate(*told);
            self.function_of(object, at).0 == function
        };
        all.into_iter().find(is_there).unwrap_or(addr)
    }

    fn object(&mut self, origin: &Origin) -> u32 {
        if let Some(known) = self.by_origin.get(origin) {
            return *known;
        }
        let known = match origin {
            Origin::File(path, file) => {
                Known { name: path.as_os_str().as_encoded_bytes().to_vec(), object: Some(self.opened.file(path, file)) }
            }
            Origin::Image(bytes) => Known { name: b"???".to_vec(), object: Some(self.opened.image(bytes)) },
            Origin::Anonymous => Known { name: b"???".to_vec(), object: None },
        };
        let number = u32::try_from(self.objects.len()).expect("fewer than 2^32 objects");
        self.objects.push(known);
        self.by_origin.insert(origin.clone(), number);
        number
    }

    /// How many functions are known.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Registers an instruction that transfers control.
    pub fn add_site(&mut self, addr: u64, next: u64, block: u64) -> SiteId {
        let place = self.place(addr);
        let id = SiteId(u32::try_from(self.sites.len()).expect("fewer than 2^32 sites"));
        self.sites.push(Site { addr, next, block, place });
        self.site_ages.push(self.counters.age);
        self.by_next.insert(next, id);
        id
    }

    /// Where the call is that returns to `next`, if it is known.
    #[must_use]
    pub fn call_before(&self, next: u64) -> Option<u64> {
        self.by_next.get(&next).map(|id| self.sites[id.0 as usize].addr)
    }

    /// The name of a function.
    #[must_use]
    pub fn name(&self, id: FunctionId) -> &[u8] {
        &self.functions[id.0 as usize].name
    }

    /// What tells a function from all others, whatever their numbers: the name of its object (of memory that the program filled itself:
    /// its own), and its first address there. And
    /// that address in memory, where the object is now.
    #[must_use]
    pub fn identity(&self, id: FunctionId) -> ((&[u8], u64), u64) {
        let known = &self.functions[id.0 as usize];
        let object = &self.objects[known.object as usize];
        // Functions that a program makes come and go; they are told apart by their names.
        let whose = if object.object.is_some() { &object.name[..] } else { &known.name };
        let at = self.mappings.iter().filter(|m| m.object == known.object).find_map(|m| {
            let first = match &object.object {
                Some(o) => o.svma_of_offset(m.offset)?.0,
                None => m.start,
            };
            let offset = known.start.checked_sub(first)?;
            (offset < m.end - m.start).then_some(m.start + offset)
        });
        ((whose, known.start), at.unwrap_or(known.start))
    }

    /// The object of an address, and the address within it.
    fn locate(&self, addr: u64) -> (u32, u64) {
        if let Some(object) = self.interpreted.object(addr) {
            return (object, addr);
        }
        let replaced = (addr >> ADDRESS_BITS).checked_sub(1).and_then(|i| self.replaced.get(i as usize));
        if let Some(mapping) = replaced {
            return self.locate_in(mapping, addr & ((1 << ADDRESS_BITS) - 1));
        }
        let index = self.mappings.partition_point(|m| m.end <= addr);
        match self.mappings.get(index).filter(|m| m.start <= addr) {
            Some(mapping) => self.locate_in(mapping, addr),
            None => (0, addr),
        }
    }

    /// The same of many, which are sorted: most lie where the one before lay.
    fn locate_sorted(&self, addrs: &[u64]) -> Vec<(u32, u64)> {
        let mut all = Vec::with_capacity(addrs.len());
        let mut rest = &self.mappings[..];
        for addr in addrs {
            while let Some((_, behind)) = rest.split_first().filter(|(m, _)| m.end <= *addr) {
                rest = behind;
            }
            let mapping = rest.first().filter(|m| m.start <= *addr && self.interpreted.object(*addr).is_none());
            all.push(mapping.map_or_else(|| self.locate(*addr), |mapping| self.locate_in(mapping, *addr)));
        }
        all
    }

    fn locate_in(&self, mapping: &Mapping, addr: u64) -> (u32, u64) {
        let offset = (addr - mapping.start).wrapping_add(mapping.offset);
        match &self.objects[mapping.object as usize].object {
            Some(object) => (mapping.object, object.svma_of_offset(offset).map_or(offset, |at| at.0)),
            None => (mapping.object, addr),
        }
    }

    /// The function at an address of an object, and its range, if it has a symbol.
    fn function_of(&mut self, object: u32, at: u64) -> (FunctionId, Option<Range<u64>>) {
        let known = self.objects[object as usize].object.as_ref();
        if known.is_none()
            && let Some(made) = self.made_function(object, at)
        {
            return made;
        }
        let known = self.objects[object as usize].object.as_ref();
        let range = known.and_then(|o| o.function_range(Svma(at))).map(|(start, end)| start.0..end.0);
        let start = range.as_ref().map_or(at, |range| range.start);
        if let Some(id) = self.by_start.get(&(object, start)) {
            return (*id, range);
        }
        let linkage = known.is_some_and(|o| o.section_at(Svma(at)) == SectionKind::Linkage);
        let name = known
            .and_then(|o| o.function_at(Svma(at)))
            .unwrap_or_else(|| format!("{at:#018x}{}", if linkage { " [PLT]" } else { "" }).into_bytes().into());
        let id = FunctionId(u32::try_from(self.functions.len()).expect("fewer than 2^32 functions"));
        self.functions.push(KnownFunction { object, start, name, linkage });
        self.by_start.insert((object, start), id);
        (id, range)
    }

    fn section_at(&self, object: u32, at: u64) -> Section {
        match &self.objects[object as usize].object {
            None => Section::Other(0),
            Some(known) => match known.section_at(Svma(at)) {
                SectionKind::Text => Section::Text,
                SectionKind::Linkage => Section::Plt,
                SectionKind::Other => Section::Other(0),
            },
        }
    }
}

impl Code for Catalogue {
    fn place(&mut self, addr: u64) -> Place {
        let (object, at) = self.locate(addr);
        if let Some(Whole { function, section, range, .. }) =
            self.last.as_ref().filter(|last| last.object == object && last.range.contains(&at))
        {
            let is_entry = range.start == at;
            return Place { function: *function, object: ObjectId(object), section: *section, is_entry };
        }
        let (function, range) = self.function_of(object, at);
        let section = self.section_at(object, at);
        let is_entry = range.as_ref().is_some_and(|range| range.start == at);
        let whole = range
            .filter(|r| [r.start, r.end.saturating_sub(1)].iter().all(|&at| self.section_at(object, at) == section));
        self.last = whole.map(|range| Whole { object, range, function, section }).or(self.last.take());
        Place { function, object: ObjectId(object), section, is_entry }
    }

    fn site(&mut self, id: SiteId) -> Site {
        self.sites[id.0 as usize]
    }

    fn site_before(&mut self, next: u64) -> SiteId {
        match self.by_next.get(&next) {
            Some(known) => *known,
            None => self.add_site(next.wrapping_sub(1), next, next.wrapping_sub(1)),
        }
    }

    fn site_of_call(&mut self, addr: u64, next: u64) -> SiteId {
        match self.by_next.get(&next) {
            Some(known) => *known,
            None => self.add_site(addr, next, addr),
        }
    }

    fn start(&mut self, addr: u64) -> u64 {
        let function = self.place(addr).function;
        self.identity(function).1
    }

    fn function(&mut self, id: FunctionId) -> Function {
        self.treated(&self.functions[id.0 as usize])
    }

    fn callers(&mut self) -> &mut CallersTable {
        &mut self.callers
    }
}

#[cfg(test)]
mod tests {
    use grind_types::StaticEvents;
    use grind_types::addr::GuestAddr;

    use grind_trace::Instruction;

    use super::*;
    use crate::callgrind::rows::{self, Program};
    use cg_calls::{Calls, Config, Profile};
    use cg_format::callgrind::{Names, PartHeader, Site as Entry};

    use crate::callgrind::columns::Columns;

    fn file(path: &std::path::Path) -> Origin {
        Origin::File(path.to_owned(), Arc::new(MappedFile::at(path)))
    }

    fn catalogue() -> Catalogue {
        Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()))
    }

    #[test]
    fn mappings_cover_what_was_there() {
        let mut c = catalogue();
        let anonymous = |c: &mut Catalogue, start, end| c.map(start, end, start, &Origin::Anonymous);
        c.map(100, 200, 1000, &file("/nonexistent/a".as_ref()));
        anonymous(&mut c, 120, 150);
        anonymous(&mut c, 190, 300);
        anonymous(&mut c, 50, 50);
        let shown: Vec<_> = c.mappings.iter().map(|m| (m.start, m.end, m.offset, m.object)).collect();
        assert_eq!(shown, [(100, 120, 1000, 1), (120, 150, 120, 2), (150, 190, 1050, 1), (190, 300, 190, 2)]);
        assert_eq!(c.locate(160), (1, 1060));
        assert_eq!(c.locate(200), (2, 200));
        assert_eq!(c.locate(40), (0, 40));
    }

    #[test]
    fn code_without_symbols_is_named_by_its_address() {
        let mut c = catalogue();
        c.map(0x1000, 0x2000, 0, &Origin::Anonymous);
        let place = c.place(0x1230);
        assert!(!place.is_entry && place.section == Section::Other(0));
        assert_eq!(c.place(0x1230), place);
        assert_ne!(c.place(0x1231).function, place.function);
        let resolved = c.resolve(&Profile::default(), &[]);
        let about = resolved.function(place.function);
        assert_eq!((about.name, about.file, about.object), (&b"0x0000000000001230"[..], &b"???"[..], &b"???"[..]));
    }

    /// This very test program: its own functions, their symbols and lines.
    #[test]
    #[inline(never)]
    fn a_real_object_is_described() {
        let me = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&me).unwrap();
        let mut settings = Settings::default();
        settings.separate_recs = 1;
        let mut c = Catalogue::new(settings, Opened::new(grind_symbols::Options::default()));
        // Mapped at an address that shows whether anything mistakes one kind of address for another.
        let base = 0x5000_0000_0000;
        c.map(base, base + bytes.len() as u64, 0, &file(&me));
        let object = grind_symbols::Object::open(&me, &grind_symbols::Options::default());
        let mut entries = (0..bytes.len() as u64).step_by(16).filter(|offset| {
            let at = object.svma_of_offset(*offset);
            let name = at.and_then(|at| object.function_at(at));
            name.is_some_and(|name| name.ends_with(b"a_real_object_is_described"))
        });
        let inside = entries.next().expect("this function has a symbol");
        let (start, _) = object.function_range(object.svma_of_offset(inside).unwrap()).unwrap();
        let entry = base + inside - (object.svma_of_offset(inside).unwrap().0 - start.0);
        let place = c.place(entry);
        assert!(place.is_entry && place.section == Section::Text);
        let within = c.place(entry + 1);
        assert!(!within.is_entry && within.function == place.function);

        let mut calls = Calls::new(Config { contexts: true, ..Config::arcs_only(1) }, &[0]);
        calls.begin(&mut c, entry);
        let site = c.add_site(entry + 4, entry + 9, entry);
        let instructions = [entry, entry + 4].map(|addr| Instruction {
            addr: GuestAddr(addr),
            len: 4,
            counted: true,
            ends_block: false,
            events: StaticEvents::default(),
        });
        let columns = Columns::of(Settings::default().events(cg_format::events::Caches::None, false));
        let counter = c.counters.add(columns, instructions.to_vec().into());
        calls.block(counter);
        calls.call(&mut c, site, entry, 900, &[2]);
        calls.block(counter);
        let profile = calls.take(&[4]);
        let resolved = c.resolve(&profile, &[]);
        let mut names = Names::default();
        let header = PartHeader { events: vec!["Ir".into()], ..PartHeader::default() };
        let part = rows::part(header, &profile, &[], &resolved, &mut names).unwrap();
        assert_eq!(part.total(), [4]);
        let [body] = part.bodies() else { panic!("one function") };
        let function = names.get(body.function);
        assert!(names.function_name(body.function).ends_with(b"a_real_object_is_described"));
        assert!(names.file_name(function.file).ends_with(b"code.rs"));
        assert_eq!(names.object_name(function.object), me.as_os_str().as_encoded_bytes());
        assert_eq!(body.entries[0].at.place.addr, start.0);
        assert!(body.entries.iter().any(|e| matches!(e.site, Entry::Call { .. })));
    }
}
