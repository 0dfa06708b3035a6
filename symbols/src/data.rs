//! Data objects of symbol tables: globals and statics, by link-time address; and where functions of given names begin.
//!
//! Counted are symbols of type OBJECT (or COMMON) with a name, an address and a size. Of several names for one address the largest
//! object wins, then the shortest name, then alphabetical order. Where one lies within another, an address belongs to the one that
//! begins last before it, and to none if that ends before it: no name rather than a wrong one.
//!
//! Invariant: in [`Data`] the objects are sorted by their addresses, which are distinct.

use super::image::{Image, string_at, u32_at, u64_at};
use super::names::{Name, sanitised};
use super::{Object, Svma, demangle, symbols};

/// A global or a static.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its link-time address.
    pub start: Svma,
    /// One past its last byte.
    pub end: Svma,
    /// Its name, as it is shown.
    pub name: Name,
}

/// The data objects of a file.
#[derive(Clone, Debug, Default)]
pub struct Data {
    variables: Vec<Variable>,
    sections: Vec<Variable>,
    /// The lowest and one past the highest link-time address that is loaded.
    loaded: (u64, u64),
}

impl Data {
    /// The lowest and one past the highest link-time address that is loaded.
    #[must_use]
    pub fn loaded(&self) -> (Svma, Svma) {
        (Svma(self.loaded.0), Svma(self.loaded.1))
    }

    /// The number of what is at an address: of the variable, else of the section.
    #[must_use]
    pub fn at(&self, at: Svma) -> Option<usize> {
        let find = |list: &[Variable]| {
            let n = list.partition_point(|v| v.start.0 <= at.0).checked_sub(1)?;
            (at.0 < list[n].end.0).then_some(n)
        };
        find(&self.variables).or_else(|| find(&self.sections).map(|n| self.variables.len() + n))
    }

    /// What has this number, and whether it is a variable.
    #[must_use]
    pub fn get(&self, n: usize) -> Option<(&Variable, bool)> {
        let section = || self.sections.get(n.checked_sub(self.variables.len())?).map(|v| (v, false));
        self.variables.get(n).map(|v| (v, true)).or_else(section)
    }
}

/// The types of symbols.
const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const COMMON: u8 = 5;

impl Object {
    /// Its data objects.
    #[must_use]
    pub fn data(&self) -> Data {
        let Some(image) = &self.image else { return Data::default() };
        let mut variables = Vec::new();
        self.each_symbol(image, |kind, start, size, name| {
            if matches!(kind, OBJECT | COMMON) && size > 0 {
                variables.push((start, start.saturating_add(size), name.to_vec()));
            }
        });
        variables.sort_by(|(a, a_end, a_name), (b, b_end, b_name)| {
            a.cmp(b).then(b_end.cmp(a_end)).then(a_name.len().cmp(&b_name.len())).then(a_name.cmp(b_name))
        });
        variables.dedup_by_key(|v| v.0);
        let variable = |(start, end, name): (u64, u64, Vec<u8>)| {
            let shown = self.options.demangle.then(|| demangle::demangle(&name)).flatten().unwrap_or(name);
            Variable { start: Svma(start), end: Svma(end), name: sanitised(&shown) }
        };
        let mut sections: Vec<Variable> = image
            .loaded_sections()
            .map(|s| {
                let name = [b"[", &s.name[..], b"]"].concat();
                let end = s.address.saturating_add(s.size);
                Variable { start: Svma(s.address), end: Svma(end), name: sanitised(&name) }
            })
            .collect();
        sections.sort_by_key(|s| s.start.0);
        Data { variables: variables.into_iter().map(variable).collect(), sections, loaded: image.loaded() }
    }

    /// Where functions begin whose names are known to `wanted`, as offsets in the file, and what that says of them.
    pub fn functions_named<T>(&self, wanted: impl Fn(&[u8]) -> Option<T>) -> Vec<(u64, T)> {
        let Some(image) = &self.image else { return Vec::new() };
        let mut found = Vec::new();
        self.each_symbol(image, |kind, start, _, name| {
            if kind == FUNCTION
                && let (Some(offset), Some(what)) = (image.offset_of_svma(start), wanted(name))
            {
                found.push((offset, what));
            }
        });
        found.sort_by_key(|(offset, _)| *offset);
        found.dedup_by_key(|(offset, _)| *offset);
        found
    }

    /// Tells type, address, size and name of every symbol that is defined, of all tables that there are.
    pub(super) fn each_symbol(&self, image: &Image, mut tell: impl FnMut(u8, u64, u64, &[u8])) {
        let main_text = image.section(".text").map(|s| s.address);
        let mut read = |image: &Image, symbols: &str, strings: &str, shift: u64| {
            let load = |name: &str| {
                image.data(name).unwrap_or_else(|problem| {
                    self.warn(&problem);
                    None
                })
            };
            let (symbols, strings) = (load(symbols).unwrap_or_default(), load(strings).unwrap_or_default());
            for symbol in symbols.chunks_exact(SYMBOL) {
                let (Some(name), Some(value), Some(size)) = (u32_at(symbol, 0), u64_at(symbol, 8), u64_at(symbol, 16))
                else {
                    continue;
                };
                let (kind, section) = (symbol[4] & 15, u16::from_le_bytes([symbol[6], symbol[7]]));
                // Defined in a section, not absolute.
                if section == 0 || section >= 0xff00 || value == 0 {
                    continue;
                }
                let Some(name) = string_at(&strings, name as usize).filter(|name| !name.is_empty()) else { continue };
                let name = name.split(|b| *b == b'@').next().unwrap_or(name);
                tell(kind, value.wrapping_add(shift), size, name);
            }
        };
        if image.has_data(".symtab") {
            read(image, ".symtab", ".strtab", 0);
        } else if let Some(debug) = self.debug_image().filter(|debug| debug.has_data(".symtab")) {
            read(debug, ".symtab", ".strtab", symbols::shift(main_text, debug));
        }
        read(image, ".dynsym", ".dynstr", 0);
    }
}

/// Bytes of a symbol.
const SYMBOL: usize = 24;
