//! What was counted, on its way from the engine to the profile.
//!
//! An instruction may have several entries: its executions, its misses and its branches come from different places, and it
//! may have been translated more than once. They are added up when the profile is made, so nothing here has to look for
//! an instruction. What the engine tells in stretches is taken apart only for who asks. Only the events of the run are kept.

use grind_session::{Counts, Stretch};

use grind_types::addr::GuestAddr;
use grind_types::{InstructionCount, StaticEvents};

use crate::cycles::{self, Cycles};
use cg_format::events::{self, Caches, Tlbs};

/// How many events there are.
pub const EVENTS: usize = 27;

/// The counts of one instruction. The names are those of the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "cg_format::events says what they mean")]
pub struct EventCounts {
    pub ir: u64,
    pub i1mr: u64,
    pub i2mr: u64,
    pub ilmr: u64,
    pub dr: u64,
    pub d1mr: u64,
    pub d2mr: u64,
    pub dlmr: u64,
    pub dw: u64,
    pub d1mw: u64,
    pub d2mw: u64,
    pub dlmw: u64,
    pub bc: u64,
    pub bcm: u64,
    pub bi: u64,
    pub bim: u64,
    pub dt1mr: u64,
    pub dt1mw: u64,
    pub it1mr: u64,
    pub dt2mr: u64,
    pub dt2mw: u64,
    pub it2mr: u64,
    pub oc_d1: u64,
    pub oc_l2: u64,
    pub oc_ll: u64,
    pub alloc_count: u64,
    pub alloc_size: u64,
}

impl EventCounts {
    /// Adds others, event by event.
    pub fn add(&mut self, other: &Self) {
        self.all().into_iter().zip(other.in_order()).for_each(|(sum, n)| *sum = sum.wrapping_add(n));
    }

    /// The counts in the order of a cachegrind profile.
    #[must_use]
    pub fn in_order(&self) -> [u64; EVENTS] {
        let mut copy = *self;
        copy.all().map(|n| *n)
    }

    fn all(&mut self) -> [&mut u64; EVENTS] {
        let Self { ir, i1mr, i2mr, ilmr, dr, d1mr, d2mr, dlmr, dw, d1mw, d2mw, dlmw, bc, bcm, bi, bim, .. } = self;
        let Self { dt1mr, dt1mw, it1mr, dt2mr, dt2mw, it2mr, oc_d1, oc_l2, oc_ll, alloc_count, alloc_size, .. } = self;
        [
            ir,
            i1mr,
            i2mr,
            ilmr,
            dr,
            d1mr,
            d2mr,
            dlmr,
            dw,
            d1mw,
            d2mw,
            dlmw,
            bc,
            bcm,
            bi,
            bim,
            dt1mr,
            dt1mw,
            it1mr,
            dt2mr,
            dt2mw,
            it2mr,
            oc_d1,
            oc_l2,
            oc_ll,
            alloc_count,
            alloc_size,
        ]
    }
}

/// Which events are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Those of the caches.
    pub caches: Caches,
    /// Those of branches.
    pub branch: bool,
    /// Those of TLBs.
    pub tlbs: Tlbs,
    /// Those of contexts in the caches.
    pub contexts: bool,
    /// Those of allocations.
    pub allocations: bool,
}

impl Events {
    /// How many they are.
    #[must_use]
    pub fn len(self) -> usize {
        let pairs = usize::from(self.contexts) + usize::from(self.allocations);
        let second = usize::from(self.contexts && self.caches == Caches::Three);
        let branch = if self.branch { 4 } else { 0 };
        1 + self.simulated() + branch + events::tlbs(self.tlbs).len() + 2 * pairs + second
    }

    fn simulated(self) -> usize {
        match self.caches {
            Caches::None => 0,
            Caches::Two => 8,
            Caches::Three => 11,
        }
    }

    /// Never: instructions are always counted.
    #[must_use]
    pub fn is_empty(self) -> bool {
        false
    }

    /// Tells the counts of these events, in the order of a profile.
    fn columns(self, counts: &EventCounts, mut tell: impl FnMut(u64)) {
        let all = counts.in_order();
        let (any, three) = (self.caches.any(), self.caches == Caches::Three);
        let groups = [
            (true, 0..1),
            (any, 1..2),
            (three, 2..3),
            (any, 3..6),
            (three, 6..7),
            (any, 7..10),
            (three, 10..11),
            (any, 11..12),
            (self.branch, 12..16),
            (self.tlbs != Tlbs::None, 16..19),
            (self.tlbs == Tlbs::Two, 19..22),
            (self.contexts, 22..23),
            (self.contexts && three, 23..24),
            (self.contexts, 24..25),
            (self.allocations, 25..EVENTS),
        ];
        for (_, columns) in groups.into_iter().filter(|(wanted, _)| *wanted) {
            all[columns].iter().for_each(|&n| tell(n));
        }
    }

    /// Their names, in the order of a profile.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        use cg_format::events::{ALLOC_COUNT, ALLOC_SIZE, OC_D1, OC_L2, OC_LL, cachegrind};
        let tlbs = events::tlbs(self.tlbs).iter().copied();
        let three = self.caches == Caches::Three;
        let contexts = [OC_D1, OC_L2, OC_LL].into_iter().filter(|of| self.contexts && (three || *of != OC_L2));
        let allocations = [ALLOC_COUNT, ALLOC_SIZE].into_iter().filter(|_| self.allocations);
        let all = cachegrind(self.caches, self.branch).into_iter().chain(tlbs).chain(contexts).chain(allocations);
        all.map(|e| e.name).collect()
    }
}

/// The counts of a process: what the engine reports of instructions, which is left where it is, and what was found out besides.
///
/// Its rows are the engine's stretches of instructions, then the engine's single ones, then those that were added.
#[derive(Debug)]
pub struct CountTable<'a> {
    events: Events,
    instructions: &'a Counts<'a>,
    /// The rows behind those.
    places: Vec<(usize, GuestAddr)>,
    /// One row of `events.len()` values for each of `places`.
    values: Vec<u64>,
    /// What estimates cycles, if they are asked for: further columns behind those of the events.
    cycles: Option<&'a Cycles>,
}

impl<'a> CountTable<'a> {
    /// A table of executions of instructions, for these events.
    #[must_use]
    pub fn new(events: Events, instructions: &'a Counts<'a>) -> Self {
        Self { events, instructions, places: Vec::new(), values: Vec::new(), cycles: None }
    }

    /// With estimated cycles.
    #[must_use]
    pub fn with_cycles(self, cycles: Option<&'a Cycles>) -> Self {
        Self { cycles, ..self }
    }

    /// The names of its columns.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let cycles = self.cycles.map(|_| Cycles::names());
        self.events.names().into_iter().chain(cycles.into_iter().flatten()).collect()
    }

    /// How many they are.
    #[must_use]
    pub fn width(&self) -> usize {
        self.events.len() + self.cycles.map_or(0, |_| cycles::EVENTS)
    }

    /// What estimates cycles.
    #[must_use]
    pub fn cycles(&self) -> Option<&'a Cycles> {
        self.cycles
    }

    fn add_cycles(&self, n: u64, each: impl FnOnce(&Cycles) -> [u64; cycles::EVENTS], sums: &mut [i128]) {
        if let Some(cycles) = self.cycles {
            let columns = sums[self.events.len()..].iter_mut();
            columns.zip(each(cycles)).for_each(|(sum, cost)| *sum += i128::from(n) * i128::from(cost));
        }
    }

    /// The events, which are its columns.
    #[must_use]
    pub fn events(&self) -> Events {
        self.events
    }

    /// Adds counts of the instruction at `addr`, which lies in `module` (an index into the report's modules).
    pub fn add(&mut self, module: usize, addr: GuestAddr, counts: &EventCounts) {
        self.places.push((module, addr));
        self.events.columns(counts, |column| self.values.push(column));
    }

    /// The rows that are stretches, the first ones.
    #[must_use]
    pub fn stretches(&self) -> &'a [Stretch] {
        self.instructions.stretches()
    }

    /// Module and address of the rows behind those, and at which moment the program had made the code, if it did (at the last one,
    /// as far as is known, of what was found out besides).
    pub fn singles(&self) -> impl Iterator<Item = (usize, GuestAddr, u32)> {
        let singles = self.instructions.singles().iter().map(|one| (one.module, one.addr, one.made));
        singles.chain(self.places.iter().map(|&(module, addr)| (module, addr, u32::MAX)))
    }

    /// The instructions of a row that is a stretch: the bytes from its beginning to each, and by which number
    /// [`CountTable::add_part`] knows it.
    pub fn parts(&self, row: usize) -> impl Iterator<Item = (u64, u16)> {
        let stretch = &self.instructions.stretches()[row];
        self.instructions.instructions_of(stretch).map(|(number, one)| (one.addr.since(stretch.start), number))
    }

    /// Adds the counts of one instruction of a row that is a stretch, in the order of the events.
    pub fn add_part(&self, row: usize, number: u16, sums: &mut [i128]) {
        let stretch = &self.instructions.stretches()[row];
        self.add_executions(stretch.count, 1, self.instructions.events_of(stretch, number), sums);
        self.add_cycles(stretch.count, |cycles| cycles.of(self.instructions, stretch, number), sums);
    }

    /// Adds the counts of a row, in the order of the events.
    ///
    /// # Panics
    /// When there is no such row, or fewer sums than events.
    pub fn add_row(&self, row: usize, sums: &mut [i128]) {
        let (stretches, singles) = (self.instructions.stretches(), self.instructions.singles());
        if let Some(stretch) = stretches.get(row) {
            self.add_cycles(stretch.count, |cycles| cycles.of_stretch(self.instructions, stretch), sums);
            if self.events.len() == 1 {
                self.add_executions(stretch.count, stretch.instructions, StaticEvents::default(), sums);
            } else {
                for (_, InstructionCount { count, events, .. }) in self.instructions.instructions_of(stretch) {
                    self.add_executions(count, 1, events, sums);
                }
            }
            return;
        }
        if let Some(one) = singles.get(row - stretches.len()) {
            self.add_cycles(one.count, |cycles| cycles.of_single(one.events.form), sums);
            return self.add_executions(one.count, 1, one.events, sums);
        }
        let width = self.events.len();
        let values = &self.values[(row - stretches.len() - singles.len()) * width..][..width];
        sums[..width].iter_mut().zip(values).for_each(|(sum, n)| *sum += i128::from(*n));
    }

    /// What all rows add up to, in the order of the names.
    #[must_use]
    pub fn total(&self) -> Vec<i128> {
        let mut sums = vec![0; self.width()];
        let rows = self.instructions.stretches().len() + self.instructions.singles().len() + self.places.len();
        (0..rows).for_each(|row| self.add_row(row, &mut sums));
        sums
    }

    /// Adds `n` executions of each of so many instructions that do the same.
    fn add_executions(&self, n: u64, instructions: u16, each: StaticEvents, sums: &mut [i128]) {
        if self.events.len() == 1 {
            sums[0] += i128::from(n) * i128::from(instructions);
            return;
        }
        let times = |events: u8| n.wrapping_mul(u64::from(events));
        let counts = EventCounts {
            ir: n,
            // Cachegrind books a modification as a read.
            dr: times(each.reads).wrapping_add(times(each.modifies)),
            dw: times(each.writes),
            bc: times(each.conditional.into()),
            bi: times(each.indirect.into()),
            ..EventCounts::default()
        };
        let mut sums = sums.iter_mut();
        self.events.columns(&counts, |column| {
            if let Some(sum) = sums.next() {
                *sum += i128::from(column) * i128::from(instructions);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(table: &CountTable<'_>, index: usize) -> Vec<i128> {
        let mut sums = vec![0; table.events().len()];
        table.add_row(index, &mut sums);
        sums
    }

    #[test]
    fn columns_are_in_the_order_of_the_names() {
        let counts = EventCounts {
            ir: 1,
            i1mr: 2,
            ilmr: 3,
            dr: 4,
            d1mr: 5,
            dlmr: 6,
            dw: 7,
            d1mw: 8,
            dlmw: 9,
            bc: 10,
            bcm: 11,
            bi: 12,
            bim: 13,
            oc_d1: 14,
            oc_l2: 27,
            oc_ll: 15,
            dt1mr: 21,
            dt1mw: 22,
            it1mr: 23,
            dt2mr: 24,
            dt2mw: 25,
            it2mr: 26,
            i2mr: 16,
            d2mr: 17,
            d2mw: 18,
            alloc_count: 19,
            alloc_size: 20,
        };
        for (caches, branch, names, row) in [
            (Caches::None, false, "Ir", &[1][..]),
            (
                Caches::Three,
                true,
                "Ir I1mr I2mr ILmr Dr D1mr D2mr DLmr Dw D1mw D2mw DLmw Bc Bcm Bi Bim",
                &[1, 2, 16, 3, 4, 5, 17, 6, 7, 8, 18, 9, 10, 11, 12, 13],
            ),
            (Caches::Two, false, "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
            (Caches::None, true, "Ir Bc Bcm Bi Bim", &[1, 10, 11, 12, 13]),
            (
                Caches::Two,
                true,
                "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim",
                &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
            ),
        ] {
            let events = Events { caches, branch, ..Events::default() };
            let none = Counts::default();
            let mut table = CountTable::new(events, &none);
            table.add(3, GuestAddr(4), &EventCounts::default());
            table.add(5, GuestAddr(6), &counts);
            assert_eq!((events.len(), events.names().join(" ")), (row.len(), names.to_owned()));
            assert_eq!((sums(&table, 1), table.singles().nth(1)), (row.to_vec(), Some((5, GuestAddr(6), u32::MAX))));
            assert_eq!(table.singles().count(), 2);
        }
        let none = Counts::default();
        let events = Events { caches: Caches::Two, branch: false, tlbs: Tlbs::One, contexts: true, allocations: true };
        let mut table = CountTable::new(events, &none);
        table.add(0, GuestAddr(0), &counts);
        let names = "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw DT1mr DT1mw IT1mr OcD1 OcLL allocCount allocSize";
        assert_eq!(table.events().names().join(" "), names);
        assert_eq!(sums(&table, 0), [1, 2, 3, 4, 5, 6, 7, 8, 9, 21, 22, 23, 14, 15, 19, 20]);
        let three = Events { caches: Caches::Three, tlbs: Tlbs::None, ..events };
        let mut table = CountTable::new(three, &none);
        table.add(0, GuestAddr(0), &counts);
        assert!(table.events().names().join(" ").ends_with(" DLmw OcD1 OcL2 OcLL allocCount allocSize"));
        assert_eq!((three.len(), sums(&table, 0)[12..].to_vec()), (17, vec![14, 27, 15, 19, 20]));
        let mut table = CountTable::new(Events { tlbs: Tlbs::Two, ..Events::default() }, &none);
        table.add(0, GuestAddr(0), &counts);
        assert_eq!(table.events().names().join(" "), "Ir DT1mr DT1mw IT1mr DT2mr DT2mw IT2mr");
        assert_eq!(sums(&table, 0), [1, 21, 22, 23, 24, 25, 26]);
    }
}
