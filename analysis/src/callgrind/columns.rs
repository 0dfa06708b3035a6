//! Where each event stands in a row of costs, and what an execution or a miss adds to which. Nothing is counted here.
//!
//! Callgrind's rules, which are not cachegrind's: a modification is a write; an access that misses the last level counts as a
//! miss of both levels.

use cg_calls::{Packed, PackedPlaces};
use cg_format::callgrind::EventSet;
use cg_sim::beyond::Answer;
use cg_sim::writeback::Outcome;
use grind_trace::follow::bus_total;
use grind_types::StaticEvents;

/// What has missed a cache, or was mispredicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// An instruction, while it was fetched.
    Fetch,
    /// A read.
    Read,
    /// A write or a modification.
    Write,
    /// A conditional branch.
    Conditional,
    /// The target of an indirect jump or call.
    Indirect,
}

/// How many levels had to be asked: an access adds to so many columns of misses, those of its first level and of each one beyond
/// that did not have it, and last that of a dirty line that it displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Depth(u8);

impl Depth {
    /// The first level beyond had it; a branch was mispredicted.
    pub const FIRST: Self = Self(1);

    /// Its number among those that are no hits of the first level, from 0 on.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0).saturating_sub(1)
    }
}

impl From<Outcome> for Depth {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        Self(outcome as u8)
    }
}

impl From<(bool, Answer)> for Depth {
    /// Of an answer, and whether there is a second level.
    #[inline]
    fn from((second, answer): (bool, Answer)) -> Self {
        Self(answer as u8 + u8::from(second))
    }
}

/// Lengths of rows that the fast loop is made for: of branches, of caches, and of both without anything else; and longer ones.
pub const STRIDES: [usize; 5] = [5, 9, 13, 16, 24];

/// The same where cycles are estimated: whole vectors of the processor, since rows are added as they are.
pub const ROW_STRIDES: [usize; 4] = [4, 8, 16, 24];

/// The columns of a run. Column 0 is Ir.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// How many there are.
    pub width: usize,
    /// How many a row has in memory: with records of misses, or with estimated cycles, there are zeros behind the last one.
    pub stride: usize,
    /// Dr, which Dw follows.
    pub accesses: Option<usize>,
    /// I1mr, which those of reads, writes, and of the levels beyond follow.
    misses: Option<usize>,
    /// Bc, which Bcm, Bi and Bim follow.
    branches: Option<usize>,
    /// AcCost1, which SpLoss1, AcCost2 and SpLoss2 follow.
    pub uses: Option<usize>,
    /// Ge.
    pub bus: Option<usize>,
    /// allocCount, which allocSize follows.
    pub allocations: Option<usize>,
    /// sysCount, which the times follow.
    pub system_calls: Option<usize>,
    /// Ct, which Cl and Cb follow.
    pub cycles: Option<usize>,
}

impl Columns {
    /// The columns for these events.
    #[must_use]
    pub fn of(events: EventSet) -> Columns {
        let names = events.names();
        let at = |name: &str| names.iter().position(|n| n == name);
        let mut columns = Columns {
            width: names.len(),
            stride: names.len(),
            accesses: at("Dr"),
            misses: at("I1mr"),
            branches: at("Bc"),
            uses: at("AcCost1"),
            bus: at("Ge"),
            allocations: at("allocCount"),
            system_calls: at("sysCount"),
            cycles: at("Ct"),
        };
        let at_least = |strides: &[usize]| strides.iter().copied().find(|s| *s >= columns.width);
        if columns.uses.is_none() {
            let wanted = match columns.cycles {
                Some(_) => at_least(&ROW_STRIDES),
                None if columns.simulated() => at_least(&STRIDES),
                None => None,
            };
            columns.stride = wanted.unwrap_or(columns.width);
        }
        columns
    }

    /// Whether caches or branches are simulated.
    #[must_use]
    pub fn simulated(&self) -> bool {
        self.misses.is_some() || self.branches.is_some()
    }

    /// What one execution of an instruction costs; `counted`: it counts as one. Zeros at the end are left out.
    #[must_use]
    pub fn execution(&self, counted: bool, events: StaticEvents) -> Vec<u64> {
        let mut costs = vec![0; self.width];
        costs[0] = u64::from(counted);
        if let Some(dr) = self.accesses {
            costs[dr] = events.reads.into();
            costs[dr + 1] = u64::from(events.writes) + u64::from(events.modifies);
        }
        if let Some(bc) = self.branches {
            costs[bc] = events.conditional.into();
            costs[bc + 2] = events.indirect.into();
        }
        if let Some(bus) = self.bus {
            costs[bus] = events.bus.into();
        }
        trimmed(costs)
    }

    /// A row of what one execution costs, with what its cycles are estimated at ([`crate::cycles`]).
    #[must_use]
    pub fn with_cycles(&self, row: &[u64], cycles: [u64; crate::cycles::EVENTS]) -> Vec<u64> {
        let mut costs = row.to_vec();
        if let Some(first) = self.cycles {
            costs.resize(self.width, 0);
            costs[first..][..cycles.len()].copy_from_slice(&cycles);
        }
        trimmed(costs)
    }

    /// Where the costs of executions stand, as [`Columns::packed`] has them.
    #[must_use]
    pub fn places(&self) -> PackedPlaces {
        let (dr, bc) = (self.accesses.unwrap_or(0), self.branches.unwrap_or(0));
        let dw = self.accesses.map_or(0, |dr| dr + 1);
        let bi = self.branches.map_or(0, |bc| bc + 2);
        [0, dr, dw, bc, bi, self.bus.unwrap_or(0)]
    }

    /// The totals that emitted code keeps where it follows calls, in the order of [`grind_trace::follow::Totals`].
    #[must_use]
    pub fn kept(&self) -> [Option<usize>; 5] {
        let (dr, bc) = (self.accesses, self.branches);
        let mut kept = [Some(0), dr, dr.map(|at| at + 1), bc, bc.map(|at| at + 2)];
        if let Some(at) = self.bus.and_then(|_| bus_total(dr.is_some(), bc.is_some())) {
            kept[at] = self.bus;
        }
        kept
    }

    /// A row that executions cost in one word, if it fits.
    #[must_use]
    pub fn packed(&self, row: &[u64]) -> Option<Packed> {
        let of = |at: Option<usize>| at.and_then(|at| row.get(at)).copied().unwrap_or(0);
        let (dr, bc) = (self.accesses, self.branches);
        Packed::new([of(Some(0)), of(dr), of(dr.map(|at| at + 1)), of(bc), of(bc.map(|at| at + 2)), of(self.bus)])
    }

    /// What a miss of this depth costs (any, for branches). Zeros at the end are left out.
    #[must_use]
    pub fn miss(&self, missed: Missed, depth: Depth) -> Vec<u64> {
        let mut costs = vec![0; self.width];
        self.missed(missed, depth, |event| costs[event] = 1);
        trimmed(costs)
    }

    /// The same, one column after the other.
    #[inline]
    pub fn missed(&self, missed: Missed, depth: Depth, mut tell: impl FnMut(usize)) {
        let port = match missed {
            Missed::Fetch => Some(0),
            Missed::Read => Some(1),
            Missed::Write => Some(2),
            Missed::Conditional | Missed::Indirect => None,
        };
        match (port, self.misses, self.branches) {
            (Some(port), Some(first), _) => {
                (0..usize::from(depth.0)).for_each(|level| tell(first + Self::TO_NEXT_LEVEL * level + port))
            }
            (None, _, Some(bc)) => tell(bc + if missed == Missed::Conditional { 1 } else { 3 }),
            _ => {}
        }
    }

    /// From the column of misses of a level to that of those that the next level has missed, too.
    pub const TO_NEXT_LEVEL: usize = 3;

    /// The column of each kind of [`Missed`]; for caches, of the first level.
    #[must_use]
    pub fn first_missed(&self) -> [usize; 5] {
        let (first, bc) = (self.misses.unwrap_or(0), self.branches.unwrap_or(0));
        [first, first + 1, first + 2, bc + 1, bc + 3]
    }

    /// From this column on, [`Columns::execution`] has nothing but zeros.
    #[must_use]
    pub fn of_executions(&self) -> usize {
        let of_cycles = self.cycles.map(|ct| ct + crate::cycles::EVENTS);
        let ends =
            [self.accesses.map(|dr| dr + 2), self.branches.map(|bc| bc + 3), self.bus.map(|ge| ge + 1), of_cycles];
        ends.into_iter().flatten().max().unwrap_or(1)
    }
}

/// Without the zeros at the end: there are rows by the million.
fn trimmed(mut costs: Vec<u64>) -> Vec<u64> {
    let used = costs.iter().rposition(|n| *n != 0).map_or(0, |at| at + 1);
    costs.truncate(used);
    costs.shrink_to_fit();
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::callgrind::SystemTime;
    use cg_format::events::Caches;

    fn named(events: EventSet, costs: &[u64]) -> String {
        let names = events.names();
        assert!(costs.len() <= names.len() && costs.last() != Some(&0), "{costs:?}");
        let found = names.iter().zip(costs).filter(|(_, n)| **n != 0).map(|(name, n)| format!("{name} {n}"));
        found.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_happens_is_booked_under_its_name() {
        let all = EventSet {
            caches: Caches::Two,
            write_back: true,
            branch_sim: true,
            cache_use: false,
            bus: true,
            allocations: false,
            system_calls: Some(SystemTime::Nanoseconds),
            cycles: true,
        };
        let columns = Columns::of(all);
        let events =
            StaticEvents { reads: 2, writes: 3, modifies: 4, conditional: true, indirect: true, bus: true, form: 0 };
        assert_eq!(named(all, &columns.execution(true, events)), "Ir 1, Dr 2, Dw 7, Bc 1, Bi 1, Ge 1");
        assert_eq!(columns.execution(false, StaticEvents::default()), [0; 0]);
        assert_eq!(columns.execution(true, StaticEvents::default()), [1]);
        let miss = |what, outcome: Outcome| named(all, &columns.miss(what, outcome.into()));
        assert_eq!(miss(Missed::Fetch, Outcome::LastLevel), "I1mr 1");
        assert_eq!(miss(Missed::Read, Outcome::Memory), "D1mr 1, DLmr 1");
        assert_eq!(miss(Missed::Write, Outcome::MemoryDirty), "D1mw 1, DLmw 1, DLdmw 1");
        assert_eq!(miss(Missed::Conditional, Outcome::L1), "Bcm 1");
        assert_eq!(miss(Missed::Indirect, Outcome::L1), "Bim 1");
        assert_eq!(columns.system_calls, Some(17));
        assert_eq!(
            named(all, &columns.with_cycles(&columns.execution(true, events), [25, 100, 17])),
            "Ir 1, Dr 2, Dw 7, Bc 1, Bi 1, Ge 1, Ct 25, Cl 100, Cb 17"
        );
        let cycles = Columns::of(EventSet { cycles: true, ..EventSet::default() });
        assert_eq!((cycles.width, cycles.stride, cycles.with_cycles(&[1], [0; 3])), (4, 4, vec![1]));
        let three = EventSet { caches: Caches::Three, ..EventSet::default() };
        let columns = Columns::of(three);
        let miss = |what, answer: Answer| named(three, &columns.miss(what, (true, answer).into()));
        assert_eq!(miss(Missed::Fetch, Answer::Second), "I1mr 1");
        assert_eq!(miss(Missed::Write, Answer::Last), "D1mw 1, D2mw 1");
        assert_eq!(miss(Missed::Read, Answer::Memory), "D1mr 1, D2mr 1, DLmr 1");
        assert!(columns.simulated());
    }

    #[test]
    fn what_is_not_simulated_has_no_place() {
        let columns = Columns::of(EventSet { bus: true, ..EventSet::default() });
        let events =
            StaticEvents { reads: 2, writes: 3, modifies: 4, conditional: true, indirect: true, bus: true, form: 0 };
        assert_eq!(columns.execution(true, events), [1, 1]);
        assert!(!columns.simulated());
        let branches = EventSet { branch_sim: true, ..EventSet::default() };
        assert_eq!(named(branches, &Columns::of(branches).execution(true, events)), "Ir 1, Bc 1, Bi 1");
    }
}
