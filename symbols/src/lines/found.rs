//! From rows of line programs to the lines of addresses: rows come in the order in which they are read, and none is stored
//! that cannot matter. What a row is, and which one decides, is said in [`super`].

use std::collections::{HashMap, HashSet};

use crate::names::{Interner, sanitised};
use crate::program::Row;
use crate::{NameId, Place, Svma};

/// The best row so far for one asked address, among rows that begin behind the asked address before it.
#[derive(Clone, Copy, Default)]
struct Slot {
    start: u64,
    /// 0: no row yet.
    length: u16,
    unit: u32,
    file: u32,
    line: u32,
}

/// Offered rows, one slot per asked address.
///
/// The row that decides for an address is the last that begins at or before it. So of the rows that begin between two
/// neighbouring asked addresses only the last can ever matter: it is kept in the slot of the upper one, and an address
/// whose own slot is empty is decided by the nearest slot below. This needs no sorting and no memory per row.
pub(super) struct Slots<'a> {
    addresses: &'a [Svma],
    slots: Vec<Slot>,
    /// Where the last row went; the next one mostly goes nearby.
    cursor: usize,
}

impl Slots<'_> {
    pub(super) fn any_in(&self, begin: u64, end: u64) -> bool {
        let first = self.addresses.partition_point(|a| a.0 < begin);
        self.addresses.get(first).is_some_and(|a| a.0 < end)
    }

    #[inline]
    fn offer(&mut self, row: &Slot) {
        const NEAR: usize = 8;
        let below = |a: &Svma| a.0 < row.start;
        let ahead = &self.addresses[self.cursor..];
        let fits = self.cursor == 0 || below(&self.addresses[self.cursor - 1]);
        let near = if fits { ahead.iter().take(NEAR).position(|a| !below(a)) } else { None };
        self.cursor = match near {
            Some(steps) => self.cursor + steps,
            None => self.addresses.partition_point(below),
        };
        if let Some(slot) = self.slots.get_mut(self.cursor)
            && row.start >= slot.start
        {
            *slot = *row;
        }
    }
}

/// The rows of all programs that are run, and what they come to.
pub(super) struct Run<'a> {
    pub(super) slots: Slots<'a>,
    executable: &'a [(u64, u64)],
    pub(super) shift: u64,
    /// The row offered last.
    last: Slot,
}

impl<'a> Run<'a> {
    pub(super) fn new(addresses: &'a [Svma], executable: &'a [(u64, u64)], shift: u64) -> Self {
        let slots = Slots { addresses, slots: vec![Slot::default(); addresses.len()], cursor: 0 };
        Run { slots, executable, shift, last: Slot::default() }
    }

    pub(super) fn row(&mut self, row: Row, unit: u32) {
        const MAX_LENGTH: u64 = 4095;
        const MAX_LINE: u32 = (1 << 20) - 1;
        if row.end == row.start || row.line > MAX_LINE {
            return;
        }
        let length = row.end.wrapping_sub(row.start);
        let length = if row.end < row.start || length > MAX_LENGTH { 1 } else { length as u16 };
        let start = row.start.wrapping_add(self.shift);
        if !self.executable.iter().any(|&(low, high)| low <= start && start < high) {
            return;
        }
        let last = &mut self.last;
        let joined = u64::from(last.length) + u64::from(length);
        if last.start.wrapping_add(last.length.into()) == start && last.line == row.line && joined <= MAX_LENGTH {
            last.length = joined as u16;
        } else {
            *last = Slot { start, length, unit, file: row.file, line: row.line };
        }
        self.slots.offer(last);
    }

    /// The files, by unit and index, that asked addresses come from.
    pub(super) fn needed(&self) -> HashSet<(u32, u32)> {
        let mut needed = HashSet::new();
        let mut last = None;
        for found in self.found().flatten() {
            let file = Some((found.unit, found.file));
            if file != last {
                needed.extend(file);
                last = file;
            }
        }
        needed
    }

    /// The row that each asked address belongs to.
    fn found(&self) -> impl Iterator<Item = Option<Slot>> {
        let mut best = Slot::default();
        self.slots.slots.iter().zip(self.slots.addresses).map(move |(slot, at)| {
            if slot.length > 0 {
                best = *slot;
            }
            (best.length != 0 && at.0 - best.start < u64::from(best.length)).then_some(best)
        })
    }

    /// Hands the results on; `name` gives the name of a unit's file.
    pub(super) fn finish(
        &self,
        name: impl Fn(u32, u32) -> Option<Vec<u8>>,
        places: &mut [Place],
        files: &mut Interner,
    ) {
        let mut known: HashMap<(u32, u32), NameId> = HashMap::new();
        let mut last = ((0, 0), None);
        for (found, place) in self.found().zip(places) {
            let Some(found) = found else { continue };
            let key = (found.unit, found.file);
            let id = match last {
                (last, Some(id)) if last == key => id,
                _ => *known.entry(key).or_insert_with(|| {
                    name(found.unit, found.file).map_or(NameId::UNKNOWN, |n| files.intern(sanitised(&n)))
                }),
            };
            last = (key, Some(id));
            place.file = id;
            place.line = found.line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`Slots`] must come to, by looking at all rows for each address.
    fn naive(rows: &[Slot], at: u64) -> Option<u32> {
        let mut best: Option<&Slot> = None;
        for row in rows.iter().filter(|r| r.start <= at) {
            if best.is_none_or(|b| row.start >= b.start) {
                best = Some(row);
            }
        }
        best.filter(|b| at - b.start < u64::from(b.length)).map(|b| b.line)
    }

    #[test]
    fn slots_decide_as_a_search_of_all_rows() {
        let mut seed = 88_172_645_463_325_252u64;
        let mut random = move |end: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % end
        };
        for round in 0..200 {
            let space = 20 + round * 3;
            // Runs of ascending rows, as sequences are, in any order and overlapping.
            let mut rows = Vec::new();
            for _ in 0..random(12) {
                let mut start = random(space);
                for _ in 0..random(20) {
                    let length = 1 + random(9) as u16;
                    rows.push(Slot { start, length, unit: 0, file: 1, line: rows.len() as u32 + 1 });
                    start += random(10);
                }
            }
            let mut addresses: Vec<Svma> = (0..random(60)).map(|_| Svma(random(space + 40))).collect();
            addresses.sort();
            let mut run = Run::new(&addresses, &[], 0);
            rows.iter().for_each(|row| run.slots.offer(row));
            let mut places = vec![Place::default(); addresses.len()];
            run.finish(|_, _| None, &mut places, &mut Interner::new());
            for (at, place) in addresses.iter().zip(&places) {
                assert_eq!(place.line, naive(&rows, at.0).unwrap_or(0), "round {round}, address {at:?}");
            }
        }
    }
}
