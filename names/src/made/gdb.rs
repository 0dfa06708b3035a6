//! GDB's interface to code that is made at run time: a list in the program's memory, `__jit_debug_descriptor`, of ELF files that
//! exist in memory only, each of which describes a piece of code. Programs enter a piece before they run it.
//!
//! The list is looked at each time such code is about to be translated, which is after it was entered and, if it has been replaced,
//! before anything else of that place is translated: so what has left the list since is known, too. Not seen: a file that was replaced
//! by another one of the same length at the same place, in an entry at the same place that is not the newest.
//!
//! Invariant: what is in the program's memory is not to be trusted; whatever it is, it costs names.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use grind_symbols::{Inlined, Name, Options, sanitised};
use grind_types::Module;
use grind_types::addr::GuestAddr;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use super::spans::{Line, Span, Spans};
use crate::mapped;

/// What the list is known by.
const DESCRIPTOR: &[u8] = b"__jit_debug_descriptor";

/// Entries that are followed at most.
const MOST_ENTRIES: usize = 1 << 20;

/// Larger files are not read.
const MOST_BYTES: u64 = 256 << 20;

/// An entry: where the next one is, and where its file is, of how many bytes.
type Entry = [u64; 4];

/// A list.
#[derive(Clone, Debug)]
struct List {
    /// Where its descriptor is.
    at: u64,
    /// The first entry as it was seen last, and what its file was like.
    first: (u64, u64),
}

/// What is known of a process's lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    /// Modules that have been searched for lists.
    searched: usize,
    lists: Vec<List>,
    /// By where they are: the file of each.
    entries: HashMap<u64, (u64, u64)>,
    /// By the numbers of moments.
    spans: Spans,
    hasher: RandomState,
}

impl Lists {
    /// Looks at the lists of the process whose memory this is, at a moment.
    pub(super) fn look(&mut self, memory: &File, modules: &[Module], moment: u64) {
        for module in modules.get(self.searched..).unwrap_or_default() {
            if let Some(at) = descriptor(module)
                && self.lists.iter().all(|list| list.at != at)
            {
                self.lists.push(List { at, first: (0, 0) });
            }
        }
        self.searched = modules.len();
        for i in 0..self.lists.len() {
            // Version, what is being done, to which entry, and the first one.
            let Some([_, _, first]) = words(memory, self.lists[i].at) else { continue };
            let head = self.file_of(memory, first);
            let mark = head.as_ref().map_or(0, |(_, bytes)| self.hash(bytes));
            if (first, mark) != self.lists[i].first {
                self.lists[i].first = (first, mark);
                self.walk(memory, first, moment);
            }
        }
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    fn file_of(&self, memory: &File, entry: u64) -> Option<(Entry, Vec<u8>)> {
        let fields: Entry = words(memory, entry)?;
        let [_, _, at, size] = fields;
        if size > MOST_BYTES {
            return None;
        }
        let mut bytes = vec![0; size as usize];
        memory.read_exact_at(&mut bytes, at).ok()?;
        Some((fields, bytes))
    }

    /// Takes over what is new: new entries come first.
    fn walk(&mut self, memory: &File, first: u64, moment: u64) {
        let (mut at, mut seen) = (first, HashSet::new());
        let mut new = Vec::new();
        while at != 0 && seen.len() < MOST_ENTRIES && seen.insert(at) {
            let Some([next, _, file, size]) = words::<4>(memory, at) else { break };
            // The newest is new whatever it looks like: its file differs from what was there.
            if at != first && self.entries.get(&at) == Some(&(file, size)) {
                break;
            }
            self.entries.insert(at, (file, size));
            new.push(at);
            at = next;
        }
        for entry in new.into_iter().rev() {
            if let Some((_, bytes)) = self.file_of(memory, entry) {
                describe(&bytes, moment, &mut self.spans);
            }
        }
    }

    /// Whether anything new was found at this moment.
    pub(super) fn has_seen(&self, moment: u64) -> bool {
        self.spans.last().is_some_and(|last| last.when == moment)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// See [`Spans::replaced`].
    pub(super) fn replaced(&self) -> u32 {
        self.spans.replaced()
    }

    /// What lay at an address at a moment.
    pub(super) fn at(&self, addr: GuestAddr, moment: u64) -> Option<&Span> {
        self.spans.at(addr, moment)
    }
}

/// So many words of a program's memory.
fn words<const N: usize>(memory: &File, at: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    let mut bytes = [0; 8];
    for (i, word) in words.iter_mut().enumerate() {
        memory.read_exact_at(&mut bytes, at.checked_add(8 * i as u64)?).ok()?;
        *word = u64::from_le_bytes(bytes);
    }
    Some(words)
}

/// Where a module has a list, if it has one, in memory.
fn descriptor(module: &Module) -> Option<u64> {
    let (path, file) = (module.path.as_ref()?, module.file.as_ref()?);
    let (opened, length) = file.file().ok()?;
    if length > MOST_BYTES * 4 {
        return None;
    }
    let data = object::ReadCache::new(opened);
    let elf = ElfFile64::<object::Endianness, _>::parse(&data).ok()?;
    let named = |symbol: &object::read::elf::ElfSymbol64<'_, '_, _, _>| symbol.name_bytes() == Ok(DESCRIPTOR);
    let symbol = elf.dynamic_symbols().find(named).or_else(|| elf.symbols().find(named))?;
    let at = symbol.address();
    (at != 0).then_some(())?;
    let bare = Options { inlined: Inlined::Hidden, ..Options::default() };
    let svma = mapped::object(path, file, &bare).svma_of_offset(module.offset)?.0;
    Some(module.start.0.wrapping_sub(svma).wrapping_add(at))
}

/// Takes over the functions of a file.
fn describe(bytes: &[u8], moment: u64, spans: &mut Spans) {
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(bytes) else { return };
    let relocatable = elf.kind() == object::ObjectKind::Relocatable;
    let mut functions: Vec<(u64, u64, Name)> = Vec::new();
    for symbol in elf.symbols().filter(|s| s.kind() == SymbolKind::Text && !s.is_undefined()) {
        let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
        let within = section.as_ref().map_or(0, |s| s.address());
        let start = if relocatable { within.wrapping_add(symbol.address()) } else { symbol.address() };
        let rest = section.map_or(0, |s| s.address().saturating_add(s.size()).saturating_sub(start));
        let size = if symbol.size() > 0 { symbol.size() } else { rest };
        let Ok(name) = symbol.name_bytes() else { continue };
        functions.push((start, start.saturating_add(size), sanitised(name)));
    }
    let lines: Arc<[Line]> = lines(&elf).unwrap_or_default().into();
    functions.sort();
    for (start, end, name) in functions {
        let first = lines.partition_point(|line| line.at.0 <= start).saturating_sub(1);
        let last = lines.partition_point(|line| line.at.0 < end);
        let own: Arc<[Line]> = lines.get(first..last).unwrap_or_default().into();
        spans.add(Span { start: GuestAddr(start), end: GuestAddr(end), when: moment, name, lines: own });
    }
}

/// The lines of a file.
fn lines(elf: &ElfFile64<'_>) -> Option<Vec<Line>> {
    let section = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let data = elf.section_by_name(id.name()).and_then(|s| s.data().ok()).unwrap_or(&[]);
        Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section).ok()?;
    let mut all = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Some(program) = unit.line_program.clone() else { continue };
        let mut names: HashMap<u64, Name> = HashMap::new();
        let mut rows = program.rows();
        while let Ok(Some((header, row))) = rows.next_row() {
            if row.end_sequence() {
                continue;
            }
            let file = names.entry(row.file_index()).or_insert_with(|| {
                let text = |value| dwarf.attr_string(&unit, value).ok().map(|s| s.slice().to_vec());
                let entry = header.file(row.file_index());
                let name = entry.and_then(|f| text(f.path_name())).unwrap_or_else(|| b"???".to_vec());
                let folder = entry.and_then(|f| f.directory(header)).and_then(text);
                match folder {
                    Some(folder) if !name.starts_with(b"/") && !folder.is_empty() => {
                        sanitised(&[&folder[..], b"/", &name].concat())
                    }
                    _ => sanitised(&name),
                }
            });
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            all.push(Line { at: GuestAddr(row.address()), file: file.clone(), line });
        }
    }
    all.sort_by_key(|line| line.at);
    Some(all)
}
