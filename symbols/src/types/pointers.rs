//! Which variables a name may mean where some code is, and where their types are.
//!
//! It must never take a variable of another function, or a global one that a local one hides: then nothing is known. What units cover is
//! read once for a file, since each question would read the headers of all units otherwise.

use std::cell::RefCell;

use super::super::lines::{Coverage, coverage};
use super::*;

/// Ranges of code of the functions of a unit that are read, at most, for each question.
const MOST_RANGES: u64 = 1 << 20;

impl<'d> Reading<'_, 'd> {
    /// Where the types of the variables called `name` are that code at an address may mean; there is one at least.
    pub(super) fn pointers(&mut self, address: u64, name: &[u8]) -> Option<Vec<Option<DebugInfoOffset>>> {
        let covers = |begin: u64, end: u64| begin != 0 && begin <= address && address < end;
        let types = self.types;
        let ranges = types.ranges.get_or_init(|| self.ranges());
        let (.., n) = *ranges.iter().find(|(begin, end, _)| covers(*begin, *end))?;
        let unit = self.unit_at(n)?;
        self.spend(self.starts[n].1)?;
        self.pointers_in(&unit, name, covers, &mut { MOST_RANGES })
    }

    /// Which code units say that they have, in their order.
    fn ranges(&mut self) -> Vec<(u64, u64, usize)> {
        // Of lists that no two units share, no more than that can be read; what is kept has to fit.
        let lists = &self.dwarf.ranges;
        let most = lists.debug_ranges().reader().len() + lists.debug_rnglists().reader().len();
        let (mut effort, found) = (most as u64, RefCell::new(Vec::new()));
        for n in 0..self.starts.len() {
            let Some(unit) = self.unit_at(n) else { continue };
            let noted = |begin, end| {
                found.borrow_mut().push((begin, end, n));
                false
            };
            let _: Coverage = coverage(self.dwarf, &unit, noted, &mut effort);
            self.units.remove(&self.starts[n].0.0);
        }
        found.into_inner()
    }

    fn pointers_in(
        &mut self,
        unit: &Rc<Unit<Slice<'d>>>,
        name: &[u8],
        covers: impl Fn(u64, u64) -> bool + Copy,
        effort: &mut u64,
    ) -> Option<Vec<Option<DebugInfoOffset>>> {
        let (mut globals, mut locals) = (Vec::new(), Vec::new());
        // The innermost function that has the code: how deep it is, whether entries are still below it, whether it is a copy.
        let mut function: Option<(isize, bool, bool)> = None;
        // How deep the outermost one is, as long as entries are below it.
        let mut outermost: Option<isize> = None;
        // How deep a function is, or a type, that has not.
        let mut other: Option<isize> = None;
        let mut entries = unit.entries_raw(None).ok()?;
        let mut entry = Entry::null();
        while !entries.is_empty() {
            if !entries.read_entry(&mut entry).ok()? {
                continue;
            }
            let depth = entry.depth();
            for around in [&mut other, &mut outermost] {
                *around = around.filter(|of| depth > *of);
            }
            if let Some((of, below, _)) = &mut function {
                *below &= depth > *of;
            }
            if other.is_some() {
                continue;
            }
            match entry.tag() {
                constants::DW_TAG_subprogram | constants::DW_TAG_inlined_subroutine => {
                    if self.has_code(unit, &entry, covers, effort) {
                        let copy = entry.attr(constants::DW_AT_abstract_origin).is_some();
                        function = Some((depth, true, copy));
                        outermost = outermost.or(Some(depth));
                        locals.clear();
                    } else {
                        other = Some(depth);
                    }
                }
                constants::DW_TAG_structure_type | constants::DW_TAG_class_type | constants::DW_TAG_union_type => {
                    other = Some(depth);
                }
                constants::DW_TAG_variable | constants::DW_TAG_formal_parameter => {
                    let list = match function {
                        Some((_, true, _)) => &mut locals,
                        _ if outermost.is_some() => continue,
                        _ => &mut globals,
                    };
                    let called =
                        self.said(unit, &entry, |reading, unit, entry| Some(reading.text(unit, entry)? == name));
                    if called == Some(true) {
                        list.push(self.type_of(unit, &entry));
                    }
                }
                _ => {}
            }
        }
        // A copy may lack a variable of what it is a copy of, which hides a global one.
        let (_, _, copy) = function?;
        let all = if locals.is_empty() && !copy { globals } else { locals };
        (!all.is_empty()).then_some(all)
    }

    fn has_code(
        &self,
        unit: &Unit<Slice<'d>>,
        entry: &Entry<'d>,
        covers: impl Fn(u64, u64) -> bool,
        effort: &mut u64,
    ) -> bool {
        let dwarf = self.dwarf;
        if let Some(ranges) = entry.attr_value(constants::DW_AT_ranges) {
            let Ok(Some(mut ranges)) = dwarf.attr_ranges(unit, ranges) else { return false };
            while *effort > 0
                && let Ok(Some(range)) = ranges.next()
            {
                *effort -= 1;
                if covers(range.begin, range.end) {
                    return true;
                }
            }
            return false;
        }
        let value = |attribute| entry.attr_value(attribute);
        let address = |value| dwarf.attr_address(unit, value).ok().flatten();
        let Some(begin) = value(constants::DW_AT_low_pc).and_then(address) else { return false };
        let end = match value(constants::DW_AT_high_pc) {
            Some(high) => high.udata_value().map(|length| begin.saturating_add(length)).or_else(|| address(high)),
            None => None,
        };
        end.is_some_and(|end| covers(begin, end))
    }
}
