//! How well the lines of caches are used before they are evicted: temporal locality cost and spatial loss.
//!
//! A line's use is how often it was accessed while it was resident and which of its bytes were, in 32 parts. At its eviction
//! that becomes costs for whoever loaded it: 1000 divided by the number of accesses, and the bytes of the parts that were
//! never accessed. The last level sees no accesses but the first ones, so a line's use in a first level is added to the
//! slot of the last level that it came from when it leaves the first one.
//!
//! Which accesses miss differs from [`crate::hierarchy`] in two ways, as it does in the reference: only those lines of an
//! access go to the last level that missed the first one, and a line goes there by its first byte. Every access has to be
//! simulated, also those to the newest line. Line numbers are compared whole; the reference ignores the upper 32 bits.

use std::ops::Range;

use crate::geometry::{Geometries, Geometry};
use crate::hierarchy::{Port, Served};
use crate::large::Large;
use crate::sets::Sets;
use crate::slots::SlotLru;
use crate::tags::Tags;

/// Who loaded a line, as the caller knows it; the model only keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// A node of the tree of call chains, for costs of callers.
    pub node: u32,
    /// The instruction, for self costs.
    pub site: u32,
}

/// Where a line was resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// A first-level cache, of instructions or data.
    L1,
    /// The last level.
    LastLevel,
}

/// What a line cost, known when it is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// 1000 divided by the number of accesses, rounded down; 0 if there was none.
    pub ac_cost: u64,
    /// Bytes that were never accessed; 0 if none ever was.
    pub sp_loss: u64,
    /// The other ones; 0 if none ever was accessed.
    pub used: u64,
}

/// Told of lines that come and go. Every line that is loaded is given back once: at its eviction, or by [`Usage::flush`].
pub trait Residents {
    /// The line of this number is loaded by the access that is being simulated. Returns to whom it belongs.
    fn loaded(&mut self, level: Level, line: u64) -> Owner;
    /// The line that `owner` loaded is evicted and cost this much.
    fn evicted(&mut self, level: Level, owner: Owner, cost: Cost);
}

/// The caches have lines of different sizes, whose uses cannot be added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinesDiffer;

impl std::fmt::Display for LinesDiffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cache use can only be measured with lines of the same size in all caches")
    }
}

impl std::error::Error for LinesDiffer {}

/// The use of a resident line.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Accesses; stays at the largest number, whose costs are those of any large one.
    count: u32,
    /// The 32 parts that were accessed.
    parts: u32,
}

/// Where a resident line came from.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    owner: Option<Owner>,
    /// In a first level: the slot of the last level that the line came from.
    below: u32,
}

/// 1000 divided by its index; what is not there is 0.
const AC_COSTS: [u16; 1001] = {
    let mut costs = [0; 1001];
    let mut count = 1;
    while count < costs.len() {
        costs[count] = (1000 / count) as u16;
        count += 1;
    }
    costs
};

impl Use {
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.parts |= other.parts;
    }

    #[inline]
    fn cost(self, line: u32) -> Cost {
        if self.count == 0 {
            return Cost::default();
        }
        // A division takes longer than all else here.
        let ac_cost = AC_COSTS.get(self.count as usize).copied().unwrap_or(0);
        let sp_loss = u64::from((32 - self.parts.count_ones()) * line / 32);
        Cost { ac_cost: ac_cost.into(), sp_loss, used: u64::from(line) - sp_loss }
    }
}

/// The parts that bytes `first` to `last` of a line of `1 << line_bits` bytes touch, one bit each.
#[inline]
#[must_use]
pub fn parts(line_bits: u32, first: u32, last: u32) -> u32 {
    // Lines below 32 bytes have more parts than bytes.
    let low = (first << 5) >> line_bits;
    let high = ((((last + 1) << 5) + (1 << line_bits) - 1) >> line_bits) - 1;
    (u32::MAX >> (31 - (high - low))) << low
}

/// A slot of a first level: 16 bytes, which each access to the line changes.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// When the line was used last.
    time: u64,
    used: Use,
}

/// Where a line is, probably: the line's number and its slot.
#[derive(Clone, Copy, Debug)]
struct Hint {
    line: u64,
    slot: u32,
}

/// Entries of the table of hints, which is looked up by the low bits of line numbers.
const HINTS: usize = 1024;

/// A first-level cache. A line that is used at a known time is in its set if it is among the last ones used, so a hit only
/// stores the time; and a table mostly knows where the line is. Its entries are about lines that are resident, or about none.
#[derive(Clone, Debug)]
struct First {
    hints: Box<[Hint; HINTS]>,
    slots: Box<[Slot]>,
    /// Line numbers by slot; all start as line 0.
    lines: Box<[u64]>,
    origins: Box<[Origin]>,
    clock: u64,
    set_mask: u64,
    assoc: usize,
    line_bits: u32,
}

impl First {
    fn new(geometry: Geometry) -> Self {
        let count = (geometry.sets() * geometry.assoc()) as usize;
        Self {
            // No line has this number.
            hints: Box::new([Hint { line: u64::MAX, slot: 0 }; HINTS]),
            slots: vec![Slot::default(); count].into(),
            lines: vec![0; count].into(),
            origins: vec![Origin::default(); count].into(),
            clock: 0,
            set_mask: u64::from(geometry.sets()) - 1,
            assoc: geometry.assoc() as usize,
            line_bits: geometry.line_bits(),
        }
    }

    /// Uses `line` if the table of hints knows it to be resident; says whether it was.
    #[inline]
    fn hit(&mut self, line: u64, used: Use) -> bool {
        let hint = self.hints[line as usize % HINTS];
        if hint.line != line {
            return false;
        }
        self.clock += 1;
        let slot = &mut self.slots[hint.slot as usize];
        slot.time = self.clock;
        slot.used.add(used);
        true
    }

    /// Whether the table of hints knows `line` to be resident.
    #[inline]
    fn knows(&self, line: u64) -> bool {
        self.hints[line as usize % HINTS].line == line
    }

    /// Where `line` is; or, if it is not resident, where the line of its set is that was used longest ago.
    fn find(&self, line: u64) -> (usize, bool) {
        let start = (line & self.set_mask) as usize * self.assoc;
        let lines = &self.lines[start..start + self.assoc];
        if let Some(at) = lines.iter().position(|l| *l == line) {
            return (start + at, true);
        }
        let times = self.slots[start..start + self.assoc].iter().map(|s| s.time);
        let oldest = times.enumerate().min_by_key(|(_, time)| *time).map_or(0, |(at, _)| at);
        (start + oldest, false)
    }

    /// `line` is used, in `slot`: from now on it is there.
    fn take_place(&mut self, slot: usize, line: u64) {
        let old = self.lines[slot];
        let hint = &mut self.hints[old as usize % HINTS];
        if hint.line == old {
            hint.line = u64::MAX;
        }
        self.lines[slot] = line;
        self.hints[line as usize % HINTS] = Hint { line, slot: slot as u32 };
        self.clock += 1;
        self.slots[slot].time = self.clock;
    }

    /// Puts another use in a slot, and returns what was there, if anything.
    fn replace(&mut self, slot: usize, new: Use, owner: Option<Owner>) -> Option<(Use, Origin, Owner)> {
        let used = std::mem::replace(&mut self.slots[slot].used, new);
        let origin = std::mem::replace(&mut self.origins[slot], Origin { owner, below: 0 });
        origin.owner.map(|owner| (used, origin, owner))
    }
}

/// The last-level cache of one process.
#[derive(Clone, Debug)]
pub struct UsageLastLevel {
    /// Line numbers by slot; all start as line 0.
    lines: Box<[u64]>,
    /// What is searched, if every line that has been here has a tag: those of what is above the set in line numbers.
    sets: Sets,
    tags: Tags,
    fits: bool,
    uses: Large<Use>,
    owners: Box<[Option<Owner>]>,
    set_mask: u64,
    assoc: usize,
    line: u32,
}

impl UsageLastLevel {
    /// An empty one.
    #[must_use]
    pub fn new(geometries: &Geometries) -> Self {
        Self::prepared(geometries, &mut |_| ())
    }

    /// The same. Calls `prepare` with the addresses of memory that it will look things up in often, here and there, before it
    /// is touched: whole multiples of 2 MiB, if it is so large.
    #[must_use]
    pub fn prepared(geometries: &Geometries, prepare: &mut dyn FnMut(Range<usize>)) -> Self {
        let ll = geometries.ll;
        let count = (ll.sets() * ll.assoc()) as usize;
        Self {
            lines: vec![0; count].into(),
            sets: Sets::new(ll.sets() as usize, ll.assoc() as usize, prepare),
            tags: Tags::new(),
            fits: true,
            uses: Large::new(count, Use::default(), prepare),
            owners: vec![None; count].into(),
            set_mask: u64::from(ll.sets()) - 1,
            assoc: ll.assoc() as usize,
            line: ll.line(),
        }
    }

    /// A line that missed its first level. Returns its slot, and whether it was there.
    fn access(&mut self, line: u64, collecting: bool, residents: &mut impl Residents) -> (u32, bool) {
        let set = (line & self.set_mask) as usize;
        let start = set * self.assoc;
        let tag = self.tags.of(line >> self.set_mask.count_ones());
        self.fits &= tag.is_some();
        let tag = tag.unwrap_or(0);
        // (Line 0 is in many ways at first.)
        let found = if self.fits && line != 0 {
            self.sets.find(set, tag)
        } else {
            self.lines[start..start + self.assoc].iter().position(|l| *l == line)
        };
        if let Some(way) = found {
            self.sets.touch(set, way);
            return ((start + way) as u32, true);
        }
        let way = self.sets.oldest(set);
        let slot = start + way;
        self.lines[slot] = line;
        self.sets.put(set, way, tag);
        self.sets.touch(set, way);
        let owner = residents.loaded(Level::LastLevel, line);
        self.replace(slot, Some(owner), collecting, residents);
        (slot as u32, false)
    }

    fn replace(&mut self, slot: usize, owner: Option<Owner>, collecting: bool, residents: &mut impl Residents) {
        let used = std::mem::take(&mut self.uses[slot]);
        if let Some(owner) = std::mem::replace(&mut self.owners[slot], owner) {
            let cost = if collecting { used.cost(self.line) } else { Cost::default() };
            residents.evicted(Level::LastLevel, owner, cost);
        }
    }

    /// The binary logarithm of the bytes of a line.
    #[must_use]
    pub fn line_bits(&self) -> u32 {
        self.line.trailing_zeros()
    }

    /// Evicts everything, after the first levels of all threads were flushed.
    pub fn flush(&mut self, collecting: bool, residents: &mut impl Residents) {
        for slot in 0..self.uses.len() {
            self.replace(slot, None, collecting, residents);
        }
    }
}

/// The first-level caches of one thread.
#[derive(Clone, Debug)]
pub struct Usage {
    /// By port.
    caches: [First; 2],
}

impl Usage {
    /// Empty ones.
    ///
    /// # Errors
    /// When not all caches have lines of the same size.
    pub fn new(geometries: &Geometries) -> Result<Self, LinesDiffer> {
        let Geometries { i1, d1, ll } = geometries;
        if i1.line() != ll.line() || d1.line() != ll.line() {
            return Err(LinesDiffer);
        }
        Ok(Self { caches: [First::new(*d1), First::new(*i1)] })
    }

    /// `count` accesses in a row of the same port (at least one), which all hit, and together touch `parts` of the line
    /// with this number. Does nothing and says no if the line is not resident; it may say so of one that is. Then
    /// [`Usage::access`] it is.
    #[inline]
    pub fn hit(&mut self, port: Port, line: u64, count: u32, parts: u32) -> bool {
        self.caches[port as usize].hit(line, Use { count, parts })
    }

    /// The same for accesses that all touch `parts` of this line and `more` parts of the next one.
    #[inline]
    pub fn hit_both(&mut self, port: Port, line: u64, count: u32, [parts, more]: [u32; 2]) -> bool {
        let cache = &mut self.caches[port as usize];
        cache.knows(line + 1)
            && cache.hit(line, Use { count, parts })
            && cache.hit(line + 1, Use { count, parts: more })
    }

    /// Accesses `size` bytes at `addr` (at least one).
    ///
    /// While `collecting` is false, lines that are evicted cost nothing, and their use is forgotten.
    pub fn access(
        &mut self,
        ll: &mut UsageLastLevel,
        port: Port,
        addr: u64,
        size: u32,
        collecting: bool,
        residents: &mut impl Residents,
    ) -> Served {
        self.access_run(ll, port, addr, size, 1, collecting, residents)
    }

    /// `count` accesses in a row of the same port (at least one) to the same line, which together touch all of `size` bytes
    /// at `addr`: the instructions of a block that are in one line, say. What the first of them answers is returned; the
    /// others hit.
    #[expect(clippy::too_many_arguments, reason = "the state of two levels, an access, and whom to tell")]
    pub fn access_run(
        &mut self,
        ll: &mut UsageLastLevel,
        port: Port,
        addr: u64,
        size: u32,
        count: u32,
        collecting: bool,
        residents: &mut impl Residents,
    ) -> Served {
        let cache = &mut self.caches[port as usize];
        let line_bits = cache.line_bits;
        let mut served = Served::L1;
        SlotLru::each_line(line_bits, addr, size, |line, first, last| {
            let used = Use { count, parts: parts(line_bits, first, last) };
            if cache.hit(line, used) {
                return;
            }
            let (slot, hit) = cache.find(line);
            cache.take_place(slot, line);
            if hit {
                cache.slots[slot].used.add(used);
            } else {
                let by = load(cache, slot, line, used, ll, collecting, residents);
                served = served.max(by);
            }
        });
        served
    }

    /// For a cache that is simulated elsewhere: an access has missed it, and `line` comes into `slot`, in place of one
    /// that was accessed `count` times, in `parts`. Returns who has answered.
    ///
    /// # Panics
    /// When the cache has no such slot.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the state of two levels, a line, and whom to tell")]
    pub fn replaced(
        &mut self,
        ll: &mut UsageLastLevel,
        port: Port,
        slot: usize,
        line: u64,
        (count, parts): (u32, u32),
        collecting: bool,
        residents: &mut impl Residents,
    ) -> Served {
        let cache = &mut self.caches[port as usize];
        cache.slots[slot].used = Use { count, parts };
        load(cache, slot, line, Use::default(), ll, collecting, residents)
    }

    /// The addresses that [`Usage::replaced`] will have to look at to put `line` in `slot`, so that the processor need not wait
    /// for one line's after the other; 0 is none.
    #[inline]
    #[must_use]
    pub fn look_ahead(&self, ll: &UsageLastLevel, port: Port, slot: usize, line: u64) -> [usize; 2] {
        let below = self.caches[port as usize].origins.get(slot).map_or(0, |o| o.below);
        let goes = ll.uses.get(below as usize).map_or(0, |used| std::ptr::from_ref(used).addr());
        [ll.sets.address((line & ll.set_mask) as usize), goes]
    }

    /// For a cache that is simulated elsewhere: the line in `slot` has been accessed `count` times so far, in `parts`. It is
    /// evicted with that by [`Usage::flush`].
    ///
    /// # Panics
    /// When the cache has no such slot.
    pub fn used(&mut self, port: Port, slot: usize, (count, parts): (u32, u32)) {
        self.caches[port as usize].slots[slot].used = Use { count, parts };
    }

    /// Evicts everything: at the end of a run, or of a thread.
    pub fn flush(&mut self, ll: &mut UsageLastLevel, collecting: bool, residents: &mut impl Residents) {
        for port in [Port::Fetch, Port::Data] {
            let cache = &mut self.caches[port as usize];
            for slot in 0..cache.slots.len() {
                evict(cache, slot, Use::default(), None, ll, collecting, residents);
            }
        }
    }
}

/// Loads `line`, of which `first` is the first use, into a slot of a first level.
fn load(
    cache: &mut First,
    slot: usize,
    line: u64,
    first: Use,
    ll: &mut UsageLastLevel,
    collecting: bool,
    residents: &mut impl Residents,
) -> Served {
    let owner = residents.loaded(Level::L1, line);
    evict(cache, slot, first, Some(owner), ll, collecting, residents);
    let (below, hit) = ll.access(line, collecting, residents);
    cache.origins[slot].below = below;
    if hit { Served::LastLevel } else { Served::Memory }
}

/// Puts another use in a slot of a first level; what was there is evicted, its use added to the last level's.
fn evict(
    cache: &mut First,
    slot: usize,
    new: Use,
    owner: Option<Owner>,
    ll: &mut UsageLastLevel,
    collecting: bool,
    residents: &mut impl Residents,
) {
    let Some((used, origin, owner)) = cache.replace(slot, new, owner) else { return };
    let cost = if collecting {
        // The slot's line may be another one by now; as in the reference, it is taken for the same.
        ll.uses[origin.below as usize].add(used);
        used.cost(ll.line)
    } else {
        Cost::default()
    };
    residents.evicted(Level::L1, owner, cost);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_bytes() {
        for line_bits in 4..=8 {
            let line = 1u32 << line_bits;
            for first in 0..line {
                for last in first..line {
                    let slow = (first..=last).fold(0u32, |bits, byte| {
                        (0..32)
                            .filter(|part| {
                                // Part and byte overlap, on a scale of line * 32.
                                part * line < (byte + 1) * 32 && byte * 32 < (part + 1) * line
                            })
                            .fold(bits, |bits, part| bits | 1 << part)
                    });
                    assert_eq!(parts(line_bits, first, last), slow, "{line}: {first}-{last}");
                }
            }
        }
    }
}
