//! The program's code as the model sees it: which function an address belongs to, from symbol tables alone, while the program
//! runs; and, for the file, names and source lines, all at once when a part is written.
//!
//! A function is a symbol of an object. Code without a symbol is a function of its own at each address that is called, named
//! by its address in the object. Numbers are given in the order in which things are first met and never change; what they
//! stand for does not change either when memory is mapped anew.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use cg_calls::{Code, Function, FunctionId, NodeIndex, ObjectId, Place, Profile, Section, Site, SiteId};

use super::cells::Cells;
use super::rows::{self, OwnCosts, Program, Source};
use super::settings::Settings;
use crate::debuginfo::{self, Name, Object, SectionKind, Svma};
use grind_engine::hash::Map;

/// Where an object's code comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// An image that no file has, such as the vDSO.
    Image(Arc<[u8]>),
    /// Memory that the program filled itself.
    Anonymous,
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
    object: Option<Arc<Object>>,
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
    names: debuginfo::Options,
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
    sites: Vec<Site>,
    /// How much had been replaced when each became known.
    site_ages: Vec<u32>,
    by_next: Map<u64, SiteId>,
    /// What is executed as one.
    pub cells: Cells,
}

impl Catalogue {
    /// A process without code. `names` says how functions are named.
    #[must_use]
    pub fn new(settings: Settings, names: debuginfo::Options) -> Catalogue {
        // Objects 0: what is in no mapping.
        let nowhere = Known { name: b"???".to_vec(), object: None };
        Catalogue {
            settings,
            names,
            objects: vec![nowhere],
            by_origin: HashMap::new(),
            mappings: Vec::new(),
            replaced: Vec::new(),
            functions: Vec::new(),
            by_start: Map::default(),
            last: None,
            sites: Vec::new(),
            site_ages: Vec::new(),
            by_next: Map::default(),
            cells: Cells::default(),
        }
    }

    /// Code of `origin` lies at `start .. end` from now on; `offset` is where its first byte is in the object. Says whether it
    /// takes the place of other code: what has been added by then, cells and sites, is of that.
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
        self.cells.age = self.replaced.len() as u32;
        self.replaced.len() > before
    }

    /// How an address is told of what became known when so much had been replaced: as it is, or, if other code has come to lie
    /// there since, with what that was in the bits that no address of a program has.
    fn told(&self, addr: u64, age: u32) -> u64 {
        let since = self.replaced.get(age as usize..).unwrap_or_default();
        match since.iter().position(|m| (m.start..m.end).contains(&addr)) {
            Some(i) => addr | (u64::from(age) + i as u64 + 1) << ADDRESS_BITS,
            None => addr,
        }
    }

    /// The same of the target of a call of `function`: what it was when that was there.
    fn told_target(&mut self, addr: u64, function: FunctionId) -> u64 {
        let ages = (0..self.cells.age).rev().map(|age| self.told(addr, age));
        let all: Vec<u64> = std::iter::once(addr).chain(ages.filter(|told| *told != addr)).collect();
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
            Origin::File(path) => Known {
                name: path.as_os_str().as_encoded_bytes().to_vec(),
                object: Some(Arc::new(Object::open(path, &self.names))),
            },
            Origin::Image(bytes) => Known {
                name: b"???".to_vec(),
                object: Some(Arc::new(Object::from_image(bytes.to_vec(), "vdso", &self.names))),
            },
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
        self.site_ages.push(self.cells.age);
        self.by_next.insert(next, id);
        id
    }

    /// The name of a function.
    #[must_use]
    pub fn name(&self, id: FunctionId) -> &[u8] {
        &self.functions[id.0 as usize].name
    }

    /// What tells a function from all others, whatever their numbers: the name of its object, and its first address there. And
    /// that address in memory, where the object is now.
    #[must_use]
    pub fn identity(&self, id: FunctionId) -> ((&[u8], u64), u64) {
        let known = &self.functions[id.0 as usize];
        let object = &self.objects[known.object as usize];
        let at = self.mappings.iter().filter(|m| m.object == known.object).find_map(|m| {
            let first = match &object.object {
                Some(o) => o.svma_of_offset(m.offset)?.0,
                None => m.start,
            };
            let offset = known.start.checked_sub(first)?;
            (offset < m.end - m.start).then_some(m.start + offset)
        });
        ((&object.name, known.start), at.unwrap_or(known.start))
    }

    /// The object of an address, and the address within it.
    fn locate(&self, addr: u64) -> (u32, u64) {
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

    /// Of targets of calls and jumps that other code has lain at, and the functions that those were of: how they are told.
    fn replaced_targets(&mut self, profile: &Profile) -> HashMap<(u64, FunctionId), u64> {
        if self.replaced.is_empty() {
            return HashMap::new();
        }
        let arcs = profile.arcs.iter().map(|arc| (arc.target, arc.to));
        let all = arcs.chain(profile.jumps.iter().map(|jump| (jump.target, jump.to)));
        let all = all.map(|(target, to)| (target, profile.nodes[to.0 as usize].functions[0]));
        all.map(|(target, function)| ((target, function), self.told_target(target, function))).collect()
    }

    /// The address of a site, as it is told.
    fn site_addr(&self, id: SiteId) -> u64 {
        self.told(self.sites[id.0 as usize].addr, self.site_ages[id.0 as usize])
    }

    /// The instructions of a cell, and what one execution of each costs.
    fn cell(&self, cell: u32) -> impl Iterator<Item = (u64, &[u64])> {
        let age = self.cells.age_of(cell);
        self.cells.of(cell).map(move |(addr, costs)| (self.told(addr, age), costs))
    }

    /// The address of the first of them.
    fn cell_start(&self, cell: u32) -> u64 {
        self.told(self.cells.start(cell), self.cells.age_of(cell))
    }

    /// Looks up everything that a part of `profile` and `own` needs. Slow: debug information is read.
    #[must_use]
    pub fn resolve(&mut self, profile: &Profile, own: &[OwnCosts]) -> Resolved<'_> {
        let targets = self.replaced_targets(profile);
        let target = |target: u64, to: NodeIndex| {
            let function = profile.nodes[to.0 as usize].functions[0];
            *targets.get(&(target, function)).unwrap_or(&target)
        };
        let site = |id: SiteId| self.site_addr(id);
        let mut addrs: Vec<u64> = own.iter().map(|(addr, _)| *addr).collect();
        addrs.extend(profile.arcs.iter().flat_map(|arc| [site(arc.site), target(arc.target, arc.to)]));
        addrs.extend(profile.jumps.iter().flat_map(|jump| [site(jump.site), target(jump.target, jump.to)]));
        addrs.extend(profile.skipped.iter().map(|row| site(row.site)));
        // Cells count for several nodes. In the order of their addresses, most of what follows is sorted already.
        let cells = profile.cells.iter().map(|row| (self.cell_start(row.cell), row.cell));
        let mut cells: Vec<(u64, u32)> = cells.collect();
        cells.sort_unstable();
        cells.dedup();
        addrs.extend(cells.into_iter().flat_map(|(_, cell)| self.cell(cell)).map(|(addr, _)| addr));
        addrs.sort();
        addrs.dedup();

        let mut functions_at = HashMap::new();
        for (addr, _) in own {
            functions_at.entry(*addr).or_insert_with(|| {
                let (object, at) = self.locate(*addr);
                self.function_of(object, at).0
            });
        }
        // For each object the addresses to ask for: of instructions, and of where functions begin.
        let mut asked: HashMap<u32, Vec<Svma>> = HashMap::new();
        let located: Vec<(u32, u64)> = addrs.iter().map(|addr| self.locate(*addr)).collect();
        let starts = self.functions.iter().map(|f| (f.object, f.start));
        for (object, at) in located.iter().copied().chain(starts) {
            asked.entry(object).or_default().push(Svma(at));
        }
        let mut files: Vec<Name> = vec![Arc::from(&b"???"[..])];
        let mut lines: HashMap<u32, Answers> = HashMap::new();
        for (object, mut at) in asked {
            let Some(known) = &self.objects[object as usize].object else { continue };
            at.sort_unstable();
            at.dedup();
            let resolution = known.resolve(&at);
            let first = files.len();
            files.extend(resolution.files);
            lines.insert(object, Answers { at, places: resolution.places, first, next: 0 });
        }
        let mut line_of = |object: u32, at: u64| -> (u32, u32) {
            let found = lines.get_mut(&object).and_then(|answers| answers.of(at, files.len()));
            found.unwrap_or_default()
        };
        let function_files = self.functions.iter().map(|f| line_of(f.object, f.start).0).collect();
        let described = |(object, at): (u32, u64)| {
            let (file, line) = line_of(object, at);
            Described { file, line, at }
        };
        let sources = located.into_iter().map(described).collect();
        Resolved { catalogue: self, targets, functions_at, files, function_files, addrs, sources, next: Cell::new(0) }
    }
}

/// What is known of the addresses of an object.
struct Answers {
    /// Sorted.
    at: Vec<Svma>,
    places: Vec<debuginfo::Place>,
    /// The number of its first file among those of all objects.
    first: usize,
    /// Which is likely to be asked for next.
    next: usize,
}

impl Answers {
    /// File and line of an address. There are `files` of all objects.
    fn of(&mut self, at: u64, files: usize) -> Option<(u32, u32)> {
        let index = find(&self.at, self.next, |svma| svma.0, at)?;
        self.next = index + 1;
        let place = self.places.get(index)?;
        let file = self.first.checked_add(place.file.index()).filter(|file| *file < files);
        Some((file.unwrap_or(0) as u32, place.line))
    }
}

/// Which of the `sorted` has this key, which is likely to be that of `guess`, or of one behind it.
fn find<T>(sorted: &[T], guess: usize, key_of: impl Fn(&T) -> u64, key: u64) -> Option<usize> {
    const NEAR: usize = 16;
    for (i, item) in sorted.iter().enumerate().skip(guess).take(NEAR) {
        match key_of(item).cmp(&key) {
            Ordering::Less => {}
            Ordering::Equal => return Some(i),
            Ordering::Greater => break,
        }
    }
    sorted.binary_search_by_key(&key, key_of).ok()
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

    fn function(&mut self, id: FunctionId) -> Function {
        let known = &self.functions[id.0 as usize];
        self.settings.function(&known.name, known.linkage)
    }
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug)]
struct Described {
    /// Its number.
    file: u32,
    line: u32,
    /// The address in its object.
    at: u64,
}

/// A catalogue with the names and lines that one part needs.
#[derive(Debug)]
pub struct Resolved<'a> {
    catalogue: &'a Catalogue,
    /// See [`Catalogue::replaced_targets`].
    targets: HashMap<(u64, FunctionId), u64>,
    functions_at: HashMap<u64, FunctionId>,
    /// By number; the first is that of an unknown one.
    files: Vec<Name>,
    /// The files of the catalogue's functions.
    function_files: Vec<u32>,
    /// All addresses that may be asked for, sorted.
    addrs: Vec<u64>,
    /// The same of each of them.
    sources: Vec<Described>,
    /// The one that is likely to be asked for next.
    next: Cell<usize>,
}

impl Program for Resolved<'_> {
    fn function(&self, id: FunctionId) -> rows::Described<'_> {
        let known = &self.catalogue.functions[id.0 as usize];
        rows::Described {
            name: &known.name,
            file: &self.files[self.function_files[id.0 as usize] as usize],
            object: &self.catalogue.objects[known.object as usize].name,
            skipped: self.catalogue.settings.function(&known.name, known.linkage).skip,
        }
    }

    fn function_at(&self, addr: u64) -> FunctionId {
        self.functions_at[&addr]
    }

    fn source(&self, addr: u64) -> Source<'_> {
        match find(&self.addrs, self.next.get(), |at| *at, addr) {
            Some(index) => {
                self.next.set(index + 1);
                let Described { file, line, at } = self.sources[index];
                Source { file: &self.files[file as usize], line, addr: at }
            }
            None => Source { file: b"???", line: 0, addr },
        }
    }

    fn site(&self, id: SiteId) -> u64 {
        self.catalogue.site_addr(id)
    }

    fn target(&self, addr: u64, function: FunctionId) -> u64 {
        *self.targets.get(&(addr, function)).unwrap_or(&addr)
    }

    fn cell(&self, cell: u32) -> impl Iterator<Item = (u64, &[u64])> {
        self.catalogue.cell(cell)
    }

    fn start(&self, cell: u32) -> u64 {
        self.catalogue.cell_start(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_calls::{Calls, Config};
    use cg_format::callgrind::{Names, PartHeader, Site as Entry};
    use grind_engine::StaticEvents;
    use grind_engine::addr::GuestAddr;
    use grind_engine::trace::Instruction;

    use crate::callgrind::columns::Columns;

    fn catalogue() -> Catalogue {
        Catalogue::new(Settings::default(), debuginfo::Options::default())
    }

    #[test]
    fn what_is_looked_for_is_found_from_wherever_one_begins() {
        let sorted: Vec<u64> = (0..100).map(|i| i * i / 3 + i).collect();
        for guess in 0..=sorted.len() {
            for key in 0..3500 {
                assert_eq!(
                    find(&sorted, guess, |k| *k, key),
                    sorted.iter().position(|k| *k == key),
                    "{key} from {guess}"
                );
            }
        }
    }

    #[test]
    fn mappings_cover_what_was_there() {
        let mut c = catalogue();
        let anonymous = |c: &mut Catalogue, start, end| c.map(start, end, start, &Origin::Anonymous);
        c.map(100, 200, 1000, &Origin::File("/nonexistent/a".into()));
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
        let mut c = Catalogue::new(settings, debuginfo::Options::default());
        // Mapped at an address that shows whether anything mistakes one kind of address for another.
        let base = 0x5000_0000_0000;
        c.map(base, base + bytes.len() as u64, 0, &Origin::File(me.clone()));
        let object = Object::open(&me, &debuginfo::Options::default());
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
            events: StaticEvents::default(),
        });
        let columns = Columns::of(Settings::default().events(false, false));
        let cell = c.cells.add(columns, instructions.to_vec().into());
        calls.block(cell);
        calls.call(&mut c, site, entry, 900, &[2]);
        calls.block(cell);
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
