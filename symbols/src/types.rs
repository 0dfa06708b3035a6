//! Which structure a variable is, and which one a pointer leads to, from DWARF 2 to 5.
//!
//! A variable is known by its address. Where an allocator is called, the pointer is known by its name: one of the function that has
//! the call (the innermost one, if functions are inlined there), or else a global one. If there are several of that name, all must have
//! the same type. Split debug information, type units and what is declared elsewhere are not followed: they cost the answer.
//!
//! It must never give a layout that is not the variable's, nor loop or run away on an input: chains of types are followed so many
//! steps, structures so deep, and of each file so many bytes of entries are read in all, so that answers depend on nothing but the file
//! and what was asked before.
//!
//! Invariant: whatever cannot be told with certainty has no layout, and nothing is guessed.

mod pointers;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, EndianSlice,
    Section as _, Unit, UnitOffset, constants,
};

use super::layout::{DEEPEST, Described, Layout, MOST, Record, layout};
use super::lines::{Home, Reader, Slice};
use super::names::{Name, sanitised};
use super::problems::Problems;
use super::{Object, Svma};

/// Bytes of entries that are read of a file, at most. No honest program comes near this limit with what it asks.
const MOST_READ: u64 = 1 << 30;

/// The most entries between a variable and its type, or between two of which one completes the other.
const MOST_STEPS: usize = 64;

/// The most variables of which the types are kept for one address.
const MOST_AT: usize = 4;

/// So many units are kept while variables are looked for.
const MOST_UNITS: usize = 256;

/// The most entries that a structure may have below it.
const MOST_BELOW: usize = 1 << 16;

/// No name of a member or a structure is longer.
const LONGEST_NAME: usize = 1024;

/// Bytes of names of members that are kept for a question: many members may have the same, long name in the file.
const ROOM: usize = 8 << 20;

/// What is known of the types of a file so far.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// By the address of a variable, in the file's own sections: where the entries of its type are.
    variables: OnceLock<HashMap<u64, Vec<usize>>>,
    /// Which code units say that they have: begin, end, and the unit's number.
    ranges: OnceLock<Vec<(u64, u64, usize)>>,
    /// Bytes of headers of line programs that have been read: each unit has one, and all may have the same.
    headers: AtomicU64,
    /// Bytes of entries that have been read.
    read: AtomicU64,
}

/// What a pointer leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointee {
    /// Its layout.
    pub layout: Layout,
    /// What the source calls the structure: by its own name, and by those that are defined to mean it.
    pub names: Vec<Name>,
}

type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

impl Object {
    /// The layout of the variable of so many bytes at an address, or of an element of it, if that is a structure.
    #[must_use]
    pub fn layout_of_variable(&self, at: Svma, size: u64) -> Option<Layout> {
        self.with_types(|reading, shift| {
            let types = reading.types;
            let variables = types.variables.get_or_init(|| reading.variables().unwrap_or_default());
            let places = variables.get(&at.0.wrapping_sub(shift))?;
            let mut layouts = places.iter().map(|place| {
                let found = reading.typed_at(DebugInfoOffset(*place))?;
                // What the symbol says is another thing if their sizes differ.
                (found.size == size && found.open.is_none()).then(|| reading.layout(&found)).flatten()
            });
            let first = layouts.next()??;
            layouts.all(|layout| layout.as_ref() == Some(&first)).then_some(first)
        })
    }

    /// What the pointer called `name` leads to where the call at an address is.
    #[must_use]
    pub fn pointee(&self, call: Svma, name: &[u8]) -> Option<Pointee> {
        self.with_types(|reading, shift| {
            let mut names = Vec::new();
            let mut structure = None;
            for at in reading.pointers(call.0.wrapping_sub(shift), name)? {
                let at = reading.led_to(at?, &mut names)?;
                // All of them must mean the same.
                if structure.replace(at).is_some_and(|before| before != at) {
                    return None;
                }
            }
            let found = reading.typed_at(structure?)?;
            let mut layout = reading.layout(&found)?;
            match names.first() {
                Some(name) if layout.name.is_empty() => layout.name = name.clone(),
                _ => names.push(layout.name.clone()),
            }
            Some(Pointee { layout, names })
        })
    }

    /// Asks the entries of the file. `None` if it has none.
    fn with_types<T>(&self, ask: impl FnOnce(&mut Reading<'_, '_>, u64) -> Option<T>) -> Option<T> {
        let image = self.image.as_ref()?;
        let home = Home::of(image, self.folder.as_deref(), &self.options.debug_roots, || self.debug_image())?;
        let reader = Reader { sections: &self.dwarf, home: &home };
        let mut problems = Problems::default();
        let mut dwarf = reader.dwarf_with_alternate(&mut problems);
        self.warn_all(&problems);
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let mut starts = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            starts.extend(header.debug_info_offset().map(|at| (at, header.length_including_self() as u64)));
        }
        let (units, records) = (HashMap::new(), HashMap::new());
        ask(&mut Reading { types: &self.types, dwarf: &dwarf, starts, units, records, room: ROOM }, home.shift)
    }
}

/// The type that is read.
#[derive(Clone, Debug)]
struct Typed {
    size: u64,
    /// The structure that it is, or that its elements are.
    of: Option<Rc<Record>>,
    array: bool,
    /// It is an array whose length is not said.
    open: Option<()>,
    /// The name that was defined to mean it.
    name: Vec<u8>,
}

/// An entry that refers to another one of these.
#[derive(Clone, Copy)]
enum To {
    Unit(UnitOffset),
    Info(DebugInfoOffset),
}

fn reference(entry: &Entry<'_>, attribute: gimli::DwAt) -> Option<To> {
    match entry.attr_value(attribute)? {
        AttributeValue::UnitRef(at) => Some(To::Unit(at)),
        AttributeValue::DebugInfoRef(at) => Some(To::Info(at)),
        _ => None,
    }
}

fn number(entry: &Entry<'_>, attribute: gimli::DwAt) -> Option<u64> {
    entry.attr_value(attribute)?.udata_value()
}

/// An operation of one operand of variable length, if it is all that an expression has.
fn operand(expression: &[u8], operation: u8) -> Option<u64> {
    let (first, rest) = expression.split_first()?;
    let mut rest = EndianSlice::new(rest, gimli::LittleEndian);
    let n = gimli::Reader::read_uleb128(&mut rest).ok()?;
    (*first == operation && rest.is_empty()).then_some(n)
}

/// Where a member lies in its structure.
fn location(entry: &Entry<'_>) -> Option<u64> {
    match entry.attr_value(constants::DW_AT_data_member_location) {
        None => Some(0),
        Some(AttributeValue::Exprloc(expression)) => operand(expression.0.slice(), constants::DW_OP_plus_uconst.0),
        Some(value) => value.udata_value(),
    }
}

struct Reading<'a, 'd> {
    types: &'a Types,
    dwarf: &'a Dwarf<Slice<'d>>,
    /// Where units begin, in ascending order, and their bytes.
    starts: Vec<(DebugInfoOffset, u64)>,
    units: HashMap<usize, Rc<Unit<Slice<'d>>>>,
    /// Structures by where their entries are; those that are being read are none.
    records: HashMap<usize, Option<Rc<Record>>>,
    /// What is left of [`ROOM`].
    room: usize,
}

impl<'d> Reading<'_, 'd> {
    /// Whether so many bytes of entries may be read.
    fn spend(&self, bytes: u64) -> Option<()> {
        let before = self.types.read.fetch_add(bytes, Ordering::Relaxed);
        (before.saturating_add(bytes) <= MOST_READ).then_some(())
    }

    fn unit_at(&mut self, n: usize) -> Option<Rc<Unit<Slice<'d>>>> {
        let (start, _) = *self.starts.get(n)?;
        if let Some(known) = self.units.get(&start.0) {
            return Some(known.clone());
        }
        // As many as of sections whose units share none, and a few questions more.
        let most = self.dwarf.debug_line.reader().len() as u64 * 64 + (1 << 20);
        if self.types.headers.load(Ordering::Relaxed) > most {
            return None;
        }
        let header = self.dwarf.debug_info.header_from_offset(start).ok()?;
        let unit = Rc::new(self.dwarf.unit(header).ok()?);
        let length = unit.line_program.as_ref().map_or(0, |program| program.header().header_length() as u64);
        self.types.headers.fetch_add(length, Ordering::Relaxed);
        self.units.insert(start.0, unit.clone());
        Some(unit)
    }

    /// The unit of an entry, and where in it that is.
    fn find(&mut self, at: DebugInfoOffset) -> Option<(Rc<Unit<Slice<'d>>>, UnitOffset)> {
        let n = self.starts.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let unit = self.unit_at(n)?;
        let within = at.to_unit_offset(&unit.header)?;
        Some((unit, within))
    }

    fn follow(&mut self, unit: &Rc<Unit<Slice<'d>>>, to: To) -> Option<(Rc<Unit<Slice<'d>>>, UnitOffset)> {
        match to {
            To::Unit(at) => Some((unit.clone(), at)),
            To::Info(at) => self.find(at),
        }
    }

    fn entry(&self, unit: &Unit<Slice<'d>>, at: UnitOffset) -> Option<Entry<'d>> {
        let mut entries = unit.entries_raw(Some(at)).ok()?;
        let mut entry = Entry::null();
        entries.read_entry(&mut entry).ok()?.then_some(entry)
    }

    fn text(&self, unit: &Unit<Slice<'d>>, entry: &Entry<'d>) -> Option<&'d [u8]> {
        let name = self.dwarf.attr_string(unit, entry.attr_value(constants::DW_AT_name)?).ok()?.slice();
        (name.len() <= LONGEST_NAME).then_some(name)
    }

    /// What an entry says, or one that it completes, or is a copy of.
    fn said<T>(
        &mut self,
        unit: &Rc<Unit<Slice<'d>>>,
        entry: &Entry<'d>,
        ask: impl Fn(&mut Self, &Rc<Unit<Slice<'d>>>, &Entry<'d>) -> Option<T>,
    ) -> Option<T> {
        let (mut unit, mut entry) = (unit.clone(), entry.clone());
        for _ in 0..MOST_STEPS {
            if let Some(answer) = ask(self, &unit, &entry) {
                return Some(answer);
            }
            let origin = reference(&entry, constants::DW_AT_specification)
                .or_else(|| reference(&entry, constants::DW_AT_abstract_origin))?;
            let (next, at) = self.follow(&unit, origin)?;
            entry = self.entry(&next, at)?;
            unit = next;
        }
        None
    }

    /// Where the type of a variable is.
    fn type_of(&mut self, unit: &Rc<Unit<Slice<'d>>>, variable: &Entry<'d>) -> Option<DebugInfoOffset> {
        self.said(unit, variable, |reading, unit, entry| {
            let (unit, at) = reading.follow(unit, reference(entry, constants::DW_AT_type)?)?;
            at.to_debug_info_offset(&unit.header)
        })
    }

    /// All variables that have an address.
    fn variables(&mut self) -> Option<HashMap<u64, Vec<usize>>> {
        let mut found: HashMap<u64, Vec<usize>> = HashMap::new();
        for n in 0..self.starts.len() {
            self.spend(self.starts[n].1)?;
            let Some(unit) = self.unit_at(n) else { continue };
            let Ok(mut entries) = unit.entries_raw(None) else { continue };
            let mut entry = Entry::null();
            while !entries.is_empty() {
                match entries.read_entry(&mut entry) {
                    Ok(true) if entry.tag() == constants::DW_TAG_variable => {}
                    Ok(_) => continue,
                    Err(_) => break,
                }
                let Some(AttributeValue::Exprloc(place)) = entry.attr_value(constants::DW_AT_location) else {
                    continue;
                };
                let Some(address) = self.address(&unit, place.0.slice()) else { continue };
                let Some(at) = self.type_of(&unit, &entry) else { continue };
                let all = found.entry(address).or_default();
                if !all.contains(&at.0) && all.len() < MOST_AT {
                    all.push(at.0);
                }
            }
            if self.units.len() > MOST_UNITS {
                self.units.clear();
            }
        }
        Some(found)
    }

    /// The address that is all of an expression.
    fn address(&self, unit: &Unit<Slice<'d>>, expression: &[u8]) -> Option<u64> {
        match expression.split_first()? {
            (first, rest) if *first == constants::DW_OP_addr.0 => Some(u64::from_le_bytes(rest.try_into().ok()?)),
            _ => {
                let index = operand(expression, constants::DW_OP_addrx.0)?;
                self.dwarf.address(unit, gimli::DebugAddrIndex(usize::try_from(index).ok()?)).ok()
            }
        }
    }

    fn typed_at(&mut self, at: DebugInfoOffset) -> Option<Typed> {
        let (unit, _) = self.find(at)?;
        self.typed(&unit, To::Info(at), 0, &mut Vec::new())
    }

    fn layout(&self, typed: &Typed) -> Option<Layout> {
        let mut layout = layout(typed.of.as_deref()?)?;
        if layout.name.is_empty() {
            layout.name = sanitised(&typed.name);
        }
        Some(layout)
    }

    /// The type behind names that were defined to mean it, and what is said of how it is used.
    fn stripped(&mut self, at: DebugInfoOffset, names: &mut Vec<Name>) -> Option<(Rc<Unit<Slice<'d>>>, UnitOffset)> {
        let (mut unit, mut at) = self.find(at)?;
        for _ in 0..MOST_STEPS {
            let entry = self.entry(&unit, at)?;
            match entry.tag() {
                constants::DW_TAG_typedef => names.extend(self.text(&unit, &entry).map(sanitised)),
                constants::DW_TAG_const_type
                | constants::DW_TAG_volatile_type
                | constants::DW_TAG_restrict_type
                | constants::DW_TAG_atomic_type => {}
                _ => return Some((unit, at)),
            }
            (unit, at) = self.follow(&unit, reference(&entry, constants::DW_AT_type)?)?;
        }
        None
    }

    /// A type. `names` are told those that are defined to mean it.
    fn typed(&mut self, unit: &Rc<Unit<Slice<'d>>>, to: To, depth: usize, names: &mut Vec<Name>) -> Option<Typed> {
        if depth > DEEPEST {
            return None;
        }
        let (unit, at) = self.follow(unit, to)?;
        let before = names.len();
        let (unit, at) = self.stripped(at.to_debug_info_offset(&unit.header)?, names)?;
        let name = names.get(before).map_or(Vec::new(), |name| name.to_vec());
        let entry = self.entry(&unit, at)?;
        let size = number(&entry, constants::DW_AT_byte_size);
        let plain = |size| Some(Typed { size, of: None, array: false, open: None, name: Vec::new() });
        match entry.tag() {
            constants::DW_TAG_base_type | constants::DW_TAG_enumeration_type => plain(size?),
            constants::DW_TAG_pointer_type
            | constants::DW_TAG_reference_type
            | constants::DW_TAG_rvalue_reference_type => plain(size.unwrap_or(unit.encoding().address_size.into())),
            constants::DW_TAG_structure_type | constants::DW_TAG_class_type | constants::DW_TAG_union_type => {
                let key = at.to_debug_info_offset(&unit.header)?.0;
                let known = match self.records.get(&key) {
                    Some(known) => known.clone(),
                    None => {
                        self.records.insert(key, None);
                        let record = self.record(&unit, at, &entry, depth).map(Rc::new);
                        self.records.insert(key, record.clone());
                        record
                    }
                };
                let record = known?;
                Some(Typed { size: record.size, of: Some(record), array: false, open: None, name })
            }
            constants::DW_TAG_array_type => self.array(&unit, at, &entry, depth),
            _ => None,
        }
    }

    fn array(&mut self, unit: &Rc<Unit<Slice<'d>>>, at: UnitOffset, entry: &Entry<'d>, depth: usize) -> Option<Typed> {
        if entry.attr(constants::DW_AT_byte_stride).is_some() || entry.attr(constants::DW_AT_bit_stride).is_some() {
            return None;
        }
        let element = self.typed(unit, reference(entry, constants::DW_AT_type)?, depth + 1, &mut Vec::new())?;
        let (mut count, mut open) = (1u64, element.open);
        self.each_below(unit, at, |_, _, below, depth| {
            if depth != 1 || below.tag() != constants::DW_TAG_subrange_type {
                return Some(());
            }
            if below.attr(constants::DW_AT_lower_bound).is_some_and(|bound| bound.udata_value() != Some(0)) {
                return None;
            }
            let bound = below.attr_value(constants::DW_AT_upper_bound);
            let all = number(below, constants::DW_AT_count);
            // (The upper bound of an array without elements is -1.)
            let bound = bound.map(|value| value.udata_value().or(value.sdata_value().map(i64::cast_unsigned)));
            let one = match (all, bound) {
                (Some(count), _) => count,
                (None, Some(bound)) => match bound? {
                    bound if bound == u64::MAX || bound == u32::MAX.into() => 0,
                    bound => bound + 1,
                },
                (None, None) => 0,
            };
            open = open.or((one == 0).then_some(()));
            count = count.checked_mul(one)?;
            Some(())
        })?;
        let size = element.size.checked_mul(count)?;
        Some(Typed { size, array: true, open, ..element })
    }

    /// Where what a pointer leads to is, behind what only says how it is used. `names` are told those that are defined to mean it.
    fn led_to(&mut self, pointer: DebugInfoOffset, names: &mut Vec<Name>) -> Option<DebugInfoOffset> {
        let (unit, at) = self.stripped(pointer, &mut Vec::new())?;
        let pointer = self.entry(&unit, at)?;
        if pointer.tag() != constants::DW_TAG_pointer_type {
            return None;
        }
        let (unit, at) = self.follow(&unit, reference(&pointer, constants::DW_AT_type)?)?;
        let (unit, at) = self.stripped(at.to_debug_info_offset(&unit.header)?, names)?;
        at.to_debug_info_offset(&unit.header)
    }

    /// Tells every entry below one, and how deep it is below it.
    fn each_below(
        &mut self,
        unit: &Rc<Unit<Slice<'d>>>,
        at: UnitOffset,
        mut tell: impl FnMut(&mut Self, &Rc<Unit<Slice<'d>>>, &Entry<'d>, isize) -> Option<()>,
    ) -> Option<()> {
        let mut entries = unit.entries_raw(Some(at)).ok()?;
        let mut entry = Entry::null();
        let mut top = true;
        for _ in 0..MOST_BELOW {
            if !top && (entries.is_empty() || entries.next_depth() <= 0) {
                return Some(());
            }
            let before = entries.next_offset();
            let any = entries.read_entry(&mut entry).ok()?;
            self.spend((entries.next_offset().0 - before.0) as u64)?;
            if any && !top {
                tell(self, unit, &entry, entry.depth())?;
            }
            top = false;
        }
        None
    }

    /// A structure, as far as its members can be read; what is not known of it has no member.
    fn record(
        &mut self,
        unit: &Rc<Unit<Slice<'d>>>,
        at: UnitOffset,
        entry: &Entry<'d>,
        depth: usize,
    ) -> Option<Record> {
        let elsewhere = [constants::DW_AT_declaration, constants::DW_AT_signature];
        if elsewhere.iter().any(|attribute| entry.attr(*attribute).is_some()) {
            return None;
        }
        let mut record = Record {
            name: self.text(unit, entry).unwrap_or_default().to_vec(),
            size: number(entry, constants::DW_AT_byte_size)?,
            ..Record::default()
        };
        // Whether the entry at each depth is what has members of a variant.
        let mut variants = (false, false);
        self.each_below(unit, at, |reading, unit, below, deep| {
            match deep {
                1 => variants = (below.tag() == constants::DW_TAG_variant_part, false),
                2 => variants.1 = variants.0 && below.tag() == constants::DW_TAG_variant,
                _ => {}
            }
            let base = below.tag() == constants::DW_TAG_inheritance;
            let member = base || below.tag() == constants::DW_TAG_member;
            if member
                && (deep == 1 || deep == 3 && variants.1)
                && let Some(described) = reading.described(unit, below, base, depth, &mut record.open)
            {
                reading.room = reading.room.checked_sub(described.name.len())?;
                record.members.push(described);
            }
            (record.members.len() <= MOST).then_some(())
        })?;
        Some(record)
    }

    fn described(
        &mut self,
        unit: &Rc<Unit<Slice<'d>>>,
        member: &Entry<'d>,
        base: bool,
        depth: usize,
        open: &mut bool,
    ) -> Option<Described> {
        // Static members lie elsewhere, and bases that several classes share where the object says.
        let elsewhere = [constants::DW_AT_external, constants::DW_AT_declaration, constants::DW_AT_virtuality];
        if elsewhere.iter().any(|attribute| member.attr(*attribute).is_some()) {
            return None;
        }
        let typed = self.typed(unit, reference(member, constants::DW_AT_type)?, depth + 1, &mut Vec::new());
        let Some(typed) = typed else {
            // What is not known may be longer than it looks.
            *open = true;
            return None;
        };
        *open |= typed.open.is_some() || typed.of.as_ref().is_some_and(|record| record.open);
        let name = match base {
            true => typed.of.as_ref()?.name.clone(),
            false => self.text(unit, member).unwrap_or_default().to_vec(),
        };
        let (mut start, mut size) = (location(member)?, typed.size);
        if let Some(bits) = number(member, constants::DW_AT_bit_size) {
            let first = match number(member, constants::DW_AT_data_bit_offset) {
                Some(first) => start.checked_mul(8)?.checked_add(first)?,
                None => {
                    let unit = number(member, constants::DW_AT_byte_size).unwrap_or(typed.size);
                    let behind = number(member, constants::DW_AT_bit_offset)?.checked_add(bits)?;
                    start.checked_add(unit)?.checked_mul(8)?.checked_sub(behind)?
                }
            };
            start = first / 8;
            size = first.checked_add(bits)?.div_ceil(8) - start;
        }
        Some(Described { name, start, size, of: typed.of, array: typed.array, base })
    }
}
