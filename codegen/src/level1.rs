//! The miss path of a thread's first-level data cache, as [`crate::miss_path`] emits it, for accesses that the engine itself has to
//! make: those of special instructions, and of repeated ones that were interrupted. The thread is stopped meanwhile.
//!
//! It must do the same to the state in the slot as the emitted miss path, to the last time; the tests run both side by side.

use grind_layout::{self as layout, SlotWord};

use grind_trace::{FirstLevel, FirstTlb, LineBrought, LineReplaced};

use crate::miss_path::Repeat;

mod pages;

/// Where the state is: 64-bit words by their offset in a slot.
pub trait Words {
    /// The word at this offset.
    fn get(&self, at: u64) -> u64;
    /// Sets the word at this offset.
    fn set(&mut self, at: u64, value: u64);

    /// Sets words from `at` on.
    fn set_all(&mut self, at: u64, values: &[u64]) {
        for (at, &value) in (at..).step_by(8).zip(values) {
            self.set(at, value);
        }
    }
}

/// What has happened to a line, once there are contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Its address.
    pub line: u64,
    /// It has been brought in; if not, it has been used for the first time since the context changed.
    pub loaded: bool,
}

/// The half of a word of [`layout::DATA_PLACES`] that is a place.
const PLACE: u64 = u32::MAX as u64;

/// Offset of a line's entry in each of the tables.
fn entry_of(line: u64, cache: FirstLevel) -> u64 {
    (line >> cache.line.trailing_zeros()) % layout::DATA_ENTRIES * layout::DATA_ENTRY
}

/// What a way has to say of where its line's time is, if that follows upon this place: an entry, or [`own`].
fn from_nowhere(place: u64) -> u64 {
    place.wrapping_sub(layout::NOWHERE)
}

/// A way's own words, where the time of its line is if no entry shows that.
fn own(way: u64) -> u64 {
    layout::DATA_OWN + way
}

/// Whether a line is shown by an entry, if its way says this of where its time is.
fn is_shown(place: u64) -> bool {
    place.cast_signed() < 0
}

/// The line of a way, which its entry has shown, is shown no more: which it is, and its time, is its way's own from now on.
fn stop_showing(words: &mut impl Words, way: u64, entry: u64) {
    words.set(layout::DATA_WAYS + way, words.get(layout::DATA_TAGS + entry));
    words.set(layout::DATA_WHERE + way, from_nowhere(own(way)));
    words.set(own(way) + 8, words.get(layout::DATA_TIMES + entry));
    hide(words, entry, 1);
}

/// So many more lines of an entry are in the cache without being shown.
fn hide(words: &mut impl Words, entry: u64, more: i64) {
    let at = layout::DATA_PLACES + entry;
    words.set(at, words.get(at).wrapping_add_signed(more << 32));
}

/// Makes an empty cache of what is all zeros: line 0 is in each way of the first set, as the model has it, and one of them shows.
/// A cache that is none of that is left alone: a forked process goes on with its creator's.
/// `pages`: there is a TLB, in which page 0 is not, so none shows.
pub fn prepare(words: &mut impl Words, cache: FirstLevel, pages: bool) {
    // More lines than there can ever be, so that line 0 is looked for as long as one is left: nobody keeps count of these.
    const HIDDEN: u64 = 1 << 62;
    if words.get(layout::DATA_PLACES) == 0 {
        if pages {
            words.set(layout::DATA_TAGS, layout::NOTHING);
        } else {
            words.set(layout::DATA_WHERE, from_nowhere(layout::DATA_TAGS));
        }
        words.set(layout::DATA_PLACES, HIDDEN);
        let first_ways: Vec<u64> =
            (0..cache.groups()).map(|group| group * layout::GROUP * layout::GROUP_INDEX).collect();
        words.set_all(layout::DATA_GROUPS, &first_ways);
    }
}

/// What is known of lines is forgotten, so that the next access to each takes the miss path; lines used before now are old.
pub fn forget_lines(words: &mut impl Words, cache: FirstLevel) {
    for way in 0..u64::from(cache.sets) * u64::from(cache.ways) {
        let way = way * layout::DATA_WAY;
        let place = words.get(layout::DATA_WHERE + way);
        if is_shown(place) {
            let entry = place.wrapping_add(layout::NOWHERE);
            stop_showing(words, way, entry);
            words.set(layout::DATA_TAGS + entry, layout::NOTHING);
        }
    }
    words.set(u64::from(SlotWord::ContextTime.at()), words.get(u64::from(SlotWord::Clock.at())) + 1);
}

/// See the module's description.
pub struct MissPathAsm<W> {
    /// The state.
    pub words: W,
    /// The cache that it is the state of.
    pub cache: FirstLevel,
    /// What is to be recorded of the last access's lines, before its miss.
    pub touched: Vec<Touched>,
    /// How lines are used is kept.
    pub uses: bool,
    /// Which bytes of lines are used is told.
    pub bytes: bool,
    /// When lines that go were used last is told.
    pub ages: bool,
    /// What is to be recorded of that, before the last access's miss.
    pub brought: Vec<LineBrought>,
    /// What is to be recorded of the last access's lines, if it is.
    pub replaced: Vec<LineReplaced>,
    /// The TLB beside it, if there is one.
    pub tlb: Option<FirstTlb>,
    /// What is to be recorded of the last access's pages, before its miss ([`grind_trace::PAGE_MISSED`]).
    pub page_misses: Vec<u64>,
}

/// The parts of a line of `line` bytes (32 or 64) that bytes touch, a bit each.
pub(crate) fn parts_of_bytes(bytes: u64, line: u32) -> u32 {
    if line == 32 {
        return bytes as u32;
    }
    let pairs = bytes | bytes >> 1;
    (0..32).fold(0, |parts, part| parts | (((pairs >> (2 * part)) & 1) as u32) << part)
}

impl<W: Words> MissPathAsm<W> {
    /// One of a cache with this state.
    pub fn new(words: W, cache: FirstLevel, uses: bool) -> Self {
        let (touched, brought, replaced, page_misses) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (bytes, ages) = (false, false);
        Self { words, cache, touched, uses, bytes, ages, brought, replaced, tlb: None, page_misses }
    }

    /// With a TLB beside it.
    #[must_use]
    pub fn with_tlb(self, tlb: Option<FirstTlb>) -> Self {
        Self { tlb, ..self }
    }

    /// Where it is told which bytes of lines are used, or not.
    #[must_use]
    pub fn telling(self, bytes: bool) -> Self {
        Self { bytes, ..self }
    }

    /// Where it is told when lines that go were used last, or not.
    #[must_use]
    pub fn aging(self, ages: bool) -> Self {
        Self { ages, ..self }
    }

    /// See [`entry_of`].
    fn entry(&self, line: u64) -> u64 {
        entry_of(line, self.cache)
    }

    /// Uses a line, for an access that begins at that address; returns whether it was missed. `bytes` are those that are accessed; `both`: so is another line.
    fn touch(&mut self, (line, access): (u64, u64), time: u64, bytes: u64, both: bool) -> bool {
        let (way, missed) = self.place((line, access), time, both);
        if self.uses {
            let at = layout::DATA_USES + way;
            self.words.set(at, self.words.get(at) | bytes);
            self.words.set(at + 8, self.words.get(at + 8) + 1);
        }
        missed
    }

    /// Where a line is that is used, from now on, and whether it was missed.
    fn place(&mut self, (line, access): (u64, u64), time: u64, both: bool) -> (u64, bool) {
        let entry = self.entry(line);
        if self.words.get(layout::DATA_TAGS + entry) == line.wrapping_neg() {
            self.words.set(layout::DATA_TIMES + entry, time);
            return (self.words.get(layout::DATA_PLACES + entry) & PLACE, false);
        }
        let page = self.tlb.map(|tlb| self.use_page(tlb, line, time));
        let cache = self.cache;
        let ways_for = |line: u64| {
            let set = line >> cache.line.trailing_zeros() & u64::from(cache.sets - 1);
            let ways = u64::from(cache.ways);
            (0..ways).map(move |w| (set * ways + w) * layout::DATA_WAY)
        };
        let mut of_set = ways_for(line);
        let place = |way: u64| self.words.get(layout::DATA_WHERE + way);
        let holds =
            |way: &u64| self.words.get(layout::DATA_WAYS + way) == line.wrapping_neg() && !is_shown(place(*way));
        let found = if self.hidden(entry) == 0 { None } else { of_set.clone().find(holds) };
        let changed = self.words.get(u64::from(SlotWord::ContextTime.at()));
        match found {
            Some(way) if self.words.get(own(way) + 8) < changed => {
                self.touched.push(Touched { line, loaded: false });
            }
            None if changed != 0 => self.touched.push(Touched { line, loaded: true }),
            _ => {}
        }
        let tag = self.words.get(layout::DATA_TAGS + entry);
        if tag != layout::NOTHING && self.entry(tag.wrapping_neg()) == entry {
            // (Where there are more sets than entries, it is of another set.)
            let other = ways_for(tag.wrapping_neg()).find(|way| place(*way) == from_nowhere(entry));
            debug_assert!(other.is_some(), "a line that is shown is in a way");
            if let Some(other) = other {
                if page.is_some() {
                    pages::leave(&mut self.words, entry);
                }
                stop_showing(&mut self.words, other, entry);
            }
        }
        let way = match found {
            Some(way) => {
                hide(&mut self.words, entry, -1);
                way
            }
            None => {
                let first = of_set.next().unwrap_or(0);
                let time_of = |way: u64| {
                    let place = self.words.get(layout::DATA_WHERE + way);
                    self.words.get(layout::NOWHERE.wrapping_add(place) + 8)
                };
                let way = of_set.fold(first, |least, w| if time_of(w) < time_of(least) { w } else { least });
                let place = self.words.get(layout::DATA_WHERE + way);
                if self.ages {
                    let used = self.words.get(layout::NOWHERE.wrapping_add(place) + 8);
                    let at =
                        if is_shown(place) { layout::NOWHERE.wrapping_add(place) } else { layout::DATA_WAYS + way };
                    let gone = (used != 0).then(|| [self.words.get(at).wrapping_neg(), used]);
                    self.brought.push(LineBrought { line, gone, now: time });
                }
                if is_shown(place) {
                    let shown = layout::NOWHERE.wrapping_add(place);
                    if page.is_some() {
                        pages::leave(&mut self.words, shown);
                    }
                    self.words.set(shown, layout::NOTHING);
                } else if place != 0 {
                    let old = self.words.get(layout::DATA_WAYS + way);
                    hide(&mut self.words, entry_of(old.wrapping_neg(), self.cache), -1);
                }
                if self.uses {
                    let (parts, count) = self.used(way);
                    let way = way as u32;
                    self.replaced.push(LineReplaced {
                        way,
                        count,
                        parts,
                        addr: access,
                        one_of_two: both,
                        second: both && access < line,
                    });
                    self.words.set(layout::DATA_USES + u64::from(way), 0);
                    self.words.set(layout::DATA_USES + u64::from(way) + 8, 0);
                }
                way
            }
        };
        self.words.set(layout::DATA_WHERE + way, from_nowhere(entry));
        self.words.set(layout::DATA_TIMES + entry, time);
        self.words.set(layout::DATA_TAGS + entry, line.wrapping_neg());
        if self.bytes && self.words.get(layout::BYTES_TAGS + entry) != line.wrapping_neg() {
            self.words.set(layout::BYTES_TAGS + entry, line.wrapping_neg());
            let unknown = self.words.get(u64::from(SlotWord::BytesUnknown.at()));
            self.words.set(layout::UNREAD + entry, unknown);
            self.words.set(layout::UNWRITTEN + entry, unknown);
        }
        if self.uses {
            self.words.set(layout::DATA_PLACES + entry, way | self.words.get(layout::DATA_PLACES + entry) & !PLACE);
        }
        if let Some(page) = page {
            pages::show(&mut self.words, entry, page);
        }
        (way, found.is_none())
    }

    /// How many lines are in the cache that this entry does not show.
    fn hidden(&self, entry: u64) -> u64 {
        self.words.get(layout::DATA_PLACES + entry) & !PLACE
    }

    /// The parts of the line in a way that have been accessed, and how often.
    pub fn used(&self, way: u64) -> (u32, u32) {
        let at = layout::DATA_USES + way;
        let count = u32::try_from(self.words.get(at + 8)).unwrap_or(u32::MAX);
        (parts_of_bytes(self.words.get(at), self.cache.line), count)
    }

    /// Accesses `size` bytes, at least one and at most a line; returns whether a line was missed.
    pub fn access(&mut self, address: u64, size: u64) -> bool {
        self.touched.clear();
        self.brought.clear();
        self.replaced.clear();
        self.page_misses.clear();
        let clock = self.words.get(u64::from(SlotWord::Clock.at())).wrapping_add(2);
        self.words.set(u64::from(SlotWord::Clock.at()), clock);
        let line = |a: u64| a & !u64::from(self.cache.line - 1);
        let (first, last) = (line(address), line(address.wrapping_add(size - 1)));
        let all = u64::MAX >> (64 - size.clamp(1, 64));
        let both = first != last;
        // (Other lines are longer than 64 bytes, and their uses are not kept.)
        let within = u64::MAX >> (64 - self.cache.line.min(64));
        let missed = self.touch((first, address), clock - 1, all << ((address - first) & 63) & within, both);
        if both {
            self.touch((last, address), clock, all >> (last.wrapping_sub(address) & 63), true) | missed
        } else {
            missed
        }
    }

    /// What a repeated instruction has done: `before` and `after` are rcx, rsi and rdi. Calls `tell` where there is
    /// something to record of an access: with itself, the access's address if it missed, and whether it was at \[rdi\].
    pub fn repeat(
        &mut self,
        r: Repeat,
        before: [u64; 3],
        after: [u64; 3],
        mut tell: impl FnMut(&Self, Option<u64>, bool),
    ) {
        let mask = if r.narrow { u64::from(u32::MAX) } else { u64::MAX };
        let [count, from, to] = before.map(|v| v & mask);
        let [count_after, from_after, to_after] = after.map(|v| v & mask);
        let down = (from_after.wrapping_sub(from) | to_after.wrapping_sub(to)) as i64;
        let (size, line) = (u64::from(r.size), u64::from(self.cache.line));
        let step = if down < 0 { size.wrapping_neg() } else { size };
        let mut left = count.wrapping_sub(count_after) & mask;
        let (mut from, mut to) = (from, to);
        while left > 0 {
            for at_target in r.order() {
                let address = if at_target { to } else { from };
                let missed = self.access(address, size);
                if missed || !self.touched.is_empty() || !self.page_misses.is_empty() {
                    tell(self, missed.then_some(address), at_target);
                }
            }
            left -= 1;
            from = from.wrapping_add(step) & mask;
            to = to.wrapping_add(step) & mask;
            if self.uses || r.contends(self.cache, self.tlb) {
                continue;
            }
            // Those that stay within the lines that the last one was in hit, and change nothing.
            let room = |address: u64| match (address & (line - 1), down < 0) {
                (at, false) if at >= size => (line - at) / size,
                (at, true) if at + 2 * size <= line => at / size + 1,
                _ => 0,
            };
            let skip = r.order().map(|at_target| room(if at_target { to } else { from })).fold(left, u64::min);
            left -= skip;
            from = from.wrapping_add(step.wrapping_mul(skip)) & mask;
            to = to.wrapping_add(step.wrapping_mul(skip)) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use cg_sim::bounds::{Bounds, Gone};
    use cg_sim::context::{ContextLastLevel, ContextLevel1};
    use cg_sim::distance::LruStack;
    use cg_sim::usage::{Cost, Level, Owner, Residents, Usage, UsageLastLevel};
    use cg_sim::{Geometries, Geometry, LastLevel, Level1, Port, Served};
    use grind_trace::Target;

    use super::*;

    #[derive(Default)]
    struct Memory(HashMap<u64, u64>);

    impl Words for Memory {
        fn get(&self, at: u64) -> u64 {
            self.0.get(&at).copied().unwrap_or(0)
        }

        fn set(&mut self, at: u64, value: u64) {
            self.0.insert(at, value);
        }
    }

    fn random(seed: &mut u64, end: u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed % end
    }

    /// Size, ways, line.
    const SHAPES: [(u64, u32, u32); 7] =
        [(32768, 8, 64), (1024, 1, 64), (2048, 4, 32), (512, 8, 64), (1536, 3, 16), (1 << 20, 4, 32), (2 << 20, 1, 64)];

    fn pair(shape: (u64, u32, u32)) -> (MissPathAsm<Memory>, Level1, LastLevel) {
        let (size, ways, line) = shape;
        let geometry = Geometry::new(size as i32, ways as i32, line as i32).expect("a geometry");
        let all = Geometries { i1: geometry, d1: geometry, ll: geometry };
        let cache = FirstLevel { line, sets: geometry.sets(), ways, widest: line };
        let mut memory = Memory::default();
        prepare(&mut memory, cache, false);
        (MissPathAsm::new(memory, cache, false), Level1::new(&all), LastLevel::new(&all))
    }

    #[test]
    fn it_misses_when_the_model_does() {
        for shape in SHAPES {
            let (mut miss_path_asm, mut model, mut ll) = pair(shape);
            let mut seed = 88_172_645_463_325_252u64;
            let mut missed = 0;
            for round in 0..60_000 {
                // Near, far enough to contend for entries of the table, and in line 0.
                let page = [0, 0x40_0000, 0x80_0000, 0x7fff_f000_0000][random(&mut seed, 4) as usize];
                let end = if round % 5 == 0 { 2_000_000 } else { 3 * shape.0 / 2 };
                let address = page + random(&mut seed, end);
                let size = 1 + random(&mut seed, shape.2.into());
                let expected = model.data(&mut ll, address, size as u32) != Served::L1;
                assert_eq!(
                    miss_path_asm.access(address, size),
                    expected,
                    "{shape:?}, round {round}: {size} at {address:#x}"
                );
                missed += u64::from(expected);
            }
            assert!(missed > 1000);
        }
    }

    /// With a TLB, lines are missed as without, and pages as the model says.
    #[test]
    fn pages_are_missed_when_the_model_does() {
        let pages = |sets, ways| FirstTlb { sets, ways };
        let tlbs = [pages(16, 4), pages(1, 1), pages(1, 6), pages(8, 1), pages(2, 3)];
        for (shape, tlb) in SHAPES.into_iter().filter(|s| s.2 == 64).flat_map(|s| tlbs.map(|tlb| (s, tlb))) {
            let (mut miss_path_asm, mut model, mut ll) = pair(shape);
            let mut memory = Memory::default();
            prepare(&mut memory, miss_path_asm.cache, true);
            miss_path_asm = MissPathAsm::new(memory, miss_path_asm.cache, false).with_tlb(Some(tlb));
            let shape_of_tlb = cg_sim::tlb::Shape::new(tlb.sets * tlb.ways, tlb.ways).expect("a shape");
            let mut buffer = cg_sim::tlb::Tlb::new(shape_of_tlb);
            let mut seed = 2_463_534_242u64;
            let (mut missed, mut hits_of_lines) = (0, 0);
            for round in 0..30_000 {
                let base = [0, 0x40_0000, 0x7fff_f000_0000][random(&mut seed, 3) as usize];
                // Some pages again and again, and others now and then; of each a few lines, which are not all in the same sets.
                let page = random(&mut seed, if round % 7 == 0 { 200 } else { 30 });
                let address = base + page * layout::PAGE + page * 7 % 62 * 64 + random(&mut seed, 190);
                let size = 1 + random(&mut seed, shape.2.into());
                let line = model.data(&mut ll, address, size as u32) != Served::L1;
                let mut expected = Vec::new();
                let first = address & !u64::from(shape.2 - 1);
                for line in [first, (address + size - 1) & !u64::from(shape.2 - 1)] {
                    if buffer.misses(line / layout::PAGE) {
                        expected.push(line | u64::from(!expected.is_empty()));
                    }
                }
                let got = miss_path_asm.access(address, size);
                let what = format!("{shape:?}, {tlb:?}, round {round}: {size} at {address:#x}");
                assert_eq!((got, &miss_path_asm.page_misses), (line, &expected), "{what}");
                missed += expected.len();
                hits_of_lines += usize::from(!line && !expected.is_empty());
            }
            assert!(missed > 500, "{shape:?}, {tlb:?}: {missed}");
            assert!(shape.0 < 8192 || hits_of_lines > 30, "{shape:?}, {tlb:?}: {hits_of_lines}");
        }
    }

    /// What is told of lines that go bounds the distance of each miss, of accesses to two lines, too.
    #[test]
    fn lines_that_go_bound_distances() {
        for shape in SHAPES {
            let (mut miss_path_asm, ..) = pair(shape);
            miss_path_asm.ages = true;
            let FirstLevel { sets, ways, .. } = miss_path_asm.cache;
            let bits = shape.2.trailing_zeros();
            let (mut bounds, mut stack) = (Bounds::new(sets, ways), LruStack::new());
            let mut seed = 88_172_645_463_325_252u64;
            let (mut again, mut two) = (0, 0);
            for round in 0..60_000 {
                let page = [0x40_0000, 0x80_0000, 0x7fff_f000_0000][random(&mut seed, 3) as usize];
                let end = if round % 5 == 0 { 600_000 } else { 3 * shape.0 / 2 };
                let (address, size) = (page + random(&mut seed, end), 1 + random(&mut seed, shape.2.into()));
                let lines = [address >> bits, (address + size - 1) >> bits];
                let distances: Vec<_> =
                    lines[..1 + usize::from(lines[0] != lines[1])].iter().map(|line| stack.touch(*line)).collect();
                let exact = distances.iter().try_fold(0, |far, distance| Some(distance.as_ref()?.max(&far).to_owned()));
                let missed = miss_path_asm.access(address, size);
                assert_eq!(missed, !miss_path_asm.brought.is_empty());
                let mut known = Some([0, 0]);
                for brought in &miss_path_asm.brought {
                    let words = brought.words();
                    assert_eq!(LineBrought::read(&words), Some((*brought, &[][..])));
                    assert!(lines.contains(&(brought.line >> bits)));
                    let gone = brought.gone.map(|[line, time]| Gone { line: line >> bits, time });
                    let bound = bounds.brought(brought.line >> bits, gone, brought.now);
                    known = known.zip(bound).map(|(a, b)| [a[0].max(b[0]), a[1].max(b[1])]);
                }
                if distances.len() == 2 && miss_path_asm.brought.len() == 1 {
                    two += 1;
                    known = known.map(|[least, most]| {
                        [least, lines.iter().fold(most, |most, line| most.max(bounds.at_most(*line)))]
                    });
                }
                let what = format!("{shape:?}, round {round}: {size} at {address:#x}");
                match (known, exact) {
                    _ if !missed => {}
                    (Some([least, most]), Some(exact)) => {
                        again += 1;
                        assert!((least..=most).contains(&exact), "{what}: {least}..={most}, but {exact}");
                    }
                    (known, exact) => assert_eq!(known.is_none(), exact.is_none(), "{what}"),
                }
            }
            assert!(again > 1000 && two > 100, "{shape:?}: {again}, {two}");
        }
    }

    /// What was evicted, with the number of its load as its owner.
    #[derive(Default)]
    struct Evicted {
        loads: u32,
        costs: Vec<(Level, Owner, Cost)>,
    }

    impl Residents for Evicted {
        fn loaded(&mut self, _: Level, _: u64) -> Owner {
            self.loads += 1;
            Owner { node: self.loads, site: 0 }
        }

        fn evicted(&mut self, level: Level, owner: Owner, cost: Cost) {
            self.costs.push((level, owner, cost));
        }
    }

    #[test]
    fn lines_are_used_as_the_model_says() {
        for shape in SHAPES.into_iter().filter(|s| matches!(s.2, 32 | 64)) {
            let (mut miss_path_asm, ..) = pair(shape);
            miss_path_asm.uses = true;
            let geometry = Geometry::new(shape.0 as i32, shape.1 as i32, shape.2 as i32).expect("a geometry");
            let all = Geometries { i1: geometry, d1: geometry, ll: geometry };
            let mut models = [(), ()].map(|()| Usage::new(&all).expect("lines of one size"));
            let mut lasts = [(), ()].map(|()| UsageLastLevel::new(&all));
            let mut evicted = [Evicted::default(), Evicted::default()];
            let mut seed = 2_463_534_242u64;
            for round in 0..40_000 {
                let page = [0, 0x40_0000, 0x7fff_f000_0000][random(&mut seed, 3) as usize];
                let address = page + random(&mut seed, 3 * shape.0 / 2);
                let size = 1 + random(&mut seed, shape.2.into());
                let [model, fed] = &mut models;
                let [of_model, of_fed] = &mut evicted;
                let expected = model.access(&mut lasts[0], Port::Data, address, size as u32, true, of_model);
                let missed = miss_path_asm.access(address, size);
                let mut served = Served::L1;
                for line in &miss_path_asm.replaced {
                    let words = line.words(7);
                    assert_eq!(LineReplaced::from_words(&words[1..]), Some(*line));
                    assert_eq!(line.addr, address);
                    assert_eq!(line.one_of_two, address % u64::from(shape.2) + size > shape.2.into());
                    let (slot, number) = (line.way / LineReplaced::WAY, line.line(shape.2.trailing_zeros()));
                    let used = (line.count, line.parts);
                    served =
                        served.max(fed.replaced(&mut lasts[1], Port::Data, slot as usize, number, used, true, of_fed));
                }
                assert_eq!((missed, served), (expected != Served::L1, expected), "{shape:?}, round {round}");
                assert_eq!(of_fed.costs, of_model.costs, "{shape:?}, round {round}: {size} at {address:#x}");
            }
            // Those that stay.
            for slot in 0..u64::from(miss_path_asm.cache.sets * miss_path_asm.cache.ways) {
                let (parts, count) = miss_path_asm.used(slot * layout::DATA_WAY);
                models[1].used(Port::Data, slot as usize, (count, parts));
            }
            for ((model, last), of) in models.iter_mut().zip(&mut lasts).zip(&mut evicted) {
                model.flush(last, true, of);
                last.flush(true, of);
                of.costs.sort_by_key(|(level, owner, _)| (*level == Level::L1, owner.node));
            }
            assert_eq!(evicted[1].costs, evicted[0].costs, "{shape:?}");
            assert!(evicted[0].costs.len() > 1000, "{shape:?}");
        }
    }

    #[test]
    fn what_contexts_reuse_is_what_the_model_says() {
        for shape in SHAPES {
            let (mut miss_path_asm, ..) = pair(shape);
            let geometry = Geometry::new(shape.0 as i32, shape.1 as i32, shape.2 as i32).expect("a geometry");
            let all = Geometries { i1: geometry, d1: geometry, ll: geometry };
            let (mut model, mut ll) = (ContextLevel1::new(&all), ContextLastLevel::new(&all));
            let mut seed = 362_436_069u64;
            let mut owners: HashMap<u64, u32> = HashMap::new();
            let (mut context, mut reuses) = (0, 0);
            for round in 0..40_000 {
                if random(&mut seed, 150) == 0 {
                    let next = random(&mut seed, 5) as u32;
                    if next != context {
                        context = next;
                        model.change();
                        forget_lines(&mut miss_path_asm.words, miss_path_asm.cache);
                    }
                }
                let page = [0, 0x40_0000, 0x7fff_f000_0000][random(&mut seed, 3) as usize];
                let address = page + random(&mut seed, 3 * shape.0 / 2);
                let size = 1 + random(&mut seed, shape.2.into());
                let mut expected = Vec::new();
                model.access(&mut ll, Port::Data, address, size as u32, context, &mut |level, owner| {
                    if level == Level::L1 {
                        expected.push(owner);
                    }
                });
                miss_path_asm.access(address, size);
                let mut got = Vec::new();
                for t in &miss_path_asm.touched {
                    if t.loaded {
                        owners.insert(t.line, context);
                    } else {
                        got.push(owners.get(&t.line).copied().unwrap_or(0));
                    }
                }
                assert_eq!(got, expected, "{shape:?}, round {round}: {size} at {address:#x}");
                reuses += got.len();
            }
            assert!(reuses > 100, "{shape:?}: {reuses}");
        }
    }

    #[test]
    fn a_repeated_instruction_is_what_its_iterations_are() {
        for shape in SHAPES {
            let (mut miss_path_asm, mut model, mut ll) = pair(shape);
            let mut seed = 1_234_567u64;
            for round in 0..2000 {
                let size = 1u64 << random(&mut seed, 4);
                let target = [Target::Unused, Target::Read, Target::Write][random(&mut seed, 3) as usize];
                let r = Repeat {
                    size: size as u8,
                    source: target == Target::Unused || random(&mut seed, 2) == 0,
                    target,
                    target_first: target == Target::Read && random(&mut seed, 2) == 0,
                    narrow: random(&mut seed, 4) == 0,
                };
                let n = random(&mut seed, 300);
                let step = if random(&mut seed, 3) == 0 { size.wrapping_neg() } else { size };
                let [from, to] = [0; 2].map(|_: u64| 0x10_0000 + random(&mut seed, 4 * shape.0));
                let at = |start: u64, k: u64| start.wrapping_add(step.wrapping_mul(k));
                let mut expected = Vec::new();
                for k in 0..n {
                    for at_target in r.order() {
                        let address = at(if at_target { to } else { from }, k);
                        if model.data(&mut ll, address, size as u32) != Served::L1 {
                            expected.push((address, at_target));
                        }
                    }
                }
                // What the instruction does not use stays as it is.
                let moved = |used, start| if used { at(start, n) } else { start };
                let after = [7, moved(r.source, from), moved(target != Target::Unused, to)];
                let mut got = Vec::new();
                miss_path_asm.repeat(r, [n + 7, from, to], after, |_, missed, at_target| {
                    got.extend(missed.map(|a| (a, at_target)))
                });
                assert_eq!(got, expected, "{shape:?}, round {round}: {r:?}");
            }
        }
    }
}
