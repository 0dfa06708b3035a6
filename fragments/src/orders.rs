//! What code the processes of a run asked for, file by file and in which order. A process that asks for the same code is likely to
//! ask for what they asked for next, so some of that is translated with it, while it stands still anyway (`dispatch::ahead`): builds,
//! test suites and scripts run the same programs again and again, and a stop takes as long as some forty fragments.
//!
//! It decides when code is translated, never what is counted. Invariant: whoever turns out to go elsewhere gets little that it does
//! not need: how much it gets doubles while it does what was expected, and falls back at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::Arc;

use grind_types::MappedFile;
use grind_types::addr::GuestAddr;
use grind_types::hash::Map;

use crate::fragment_table::Way;

/// Entries that are translated with one that was not expected, and at most.
const FEW: usize = 4;
const MOST: usize = 64;

/// Files whose orders are pace. Each keeps a descriptor.
const FILES: usize = 256;

/// Entries that are kept of a file.
const ENTRIES: usize = 1 << 16;

/// A file, and where in memory its beginning is.
pub type Place = (Arc<MappedFile>, u64);

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The code at this address.
    pub pc: GuestAddr,
    /// In these ways of indirect branches, a bit each.
    ways: u8,
}

impl Entry {
    /// The ways of indirect branches in which it was asked for.
    pub fn ways(self) -> impl Iterator<Item = Way> {
        Way::ALL.into_iter().filter(move |way| self.ways & bit(*way) != 0)
    }
}

fn bit(way: Way) -> u8 {
    1 << way as u8
}

/// What was asked for of one file.
#[derive(Debug, Default)]
struct Order {
    entries: Vec<Entry>,
    /// By address: which entry that is.
    index: Map<GuestAddr, usize>,
}

/// What all processes have asked for so far.
#[derive(Debug, Default)]
pub struct Orders {
    places: HashMap<Place, usize>,
    orders: Vec<Order>,
}

/// How far ahead of one process is translated in one file, by how well it keeps to the order of that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Which order that is; `None`: none is kept.
    order: Option<usize>,
    /// The entries at which it is expected to ask next.
    expected: (usize, usize),
    /// So many were translated the last time.
    ahead: usize,
}

impl Order {
    /// The entries to translate with the one for `pc`, which has been asked for, in this way if by an indirect branch. The first process
    /// to ask adds to the order.
    fn next(&mut self, pc: GuestAddr, way: Option<Way>, pace: &mut Pace) -> &[Entry] {
        let ways = way.map_or(0, bit);
        let Some(&i) = self.index.get(&pc) else {
            if self.entries.len() < ENTRIES {
                self.index.insert(pc, self.entries.len());
                self.entries.push(Entry { pc, ways });
            }
            // The next one may well be new, too.
            pace.ahead = 0;
            return &[];
        };
        self.entries[i].ways |= ways;
        let as_expected = pace.ahead > 0 && (pace.expected.0..pace.expected.1).contains(&i);
        pace.ahead = if as_expected { (2 * pace.ahead).min(MOST) } else { FEW };
        let end = (i + 1 + pace.ahead).min(self.entries.len());
        // What lies behind may have been translated with something else.
        pace.expected = (end, end + pace.ahead);
        &self.entries[i + 1..end]
    }
}

impl Orders {
    /// The pace of a process that asks for code of the file at `place` for the first time.
    pub fn pace(&mut self, place: Place) -> Pace {
        let known = self.places.len();
        let order = match self.places.entry(place) {
            Occupied(order) => Some(*order.get()),
            Vacant(order) if known < FILES => {
                self.orders.push(Order::default());
                Some(*order.insert(known))
            }
            Vacant(_) => None,
        };
        Pace { order, ..Pace::default() }
    }

    /// What is to be translated with the code at `pc`, for which a process of this pace has asked, in this way if by an indirect branch.
    pub fn next(&mut self, pc: GuestAddr, way: Option<Way>, pace: &mut Pace) -> &[Entry] {
        pace.order.map_or(&[], |order| self.orders[order].next(pc, way, pace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_the_same_gets_more_and_more_ahead() {
        let mut order = Order::default();
        let (mut first, mut second) = (Pace::default(), Pace::default());
        for pc in 0..1000 {
            assert!(order.next(GuestAddr(pc), None, &mut first).is_empty(), "nobody was there before");
        }
        let (mut asks, mut pc) = (0, 0);
        while pc < 1000 {
            let got: Vec<u64> = order.next(GuestAddr(pc), None, &mut second).iter().map(|entry| entry.pc.0).collect();
            assert_eq!(got, (pc + 1..pc + 1 + got.len() as u64).collect::<Vec<_>>());
            pc += 1 + got.len() as u64;
            asks += 1;
        }
        assert!((15..25).contains(&asks), "{asks}");
    }

    #[test]
    fn whoever_goes_elsewhere_gets_little() {
        let mut order = Order::default();
        let mut pace = Pace::default();
        (0..1000).for_each(|pc| drop(order.next(GuestAddr(pc), None, &mut Pace::default()).to_vec()));
        for pc in [0, 500, 20, 900, 40] {
            assert_eq!(order.next(GuestAddr(pc), None, &mut pace).len(), FEW);
        }
        assert!(order.next(GuestAddr(5000), None, &mut pace).is_empty());
        assert_eq!(
            order.next(GuestAddr(41 + FEW as u64), None, &mut pace).len(),
            FEW,
            "not expected after something new"
        );
    }

    #[test]
    fn all_ways_are_remembered() {
        let mut order = Order::default();
        let mut pace = Pace::default();
        for (pc, way) in [(1, None), (2, Some(Way::Return)), (2, Some(Way::Jump)), (2, None)] {
            order.next(GuestAddr(pc), way, &mut pace);
        }
        let next = order.next(GuestAddr(1), None, &mut Pace::default());
        assert_eq!(
            next.iter().map(|e| (e.pc.0, e.ways().collect())).collect::<Vec<(u64, Vec<Way>)>>(),
            [(2, vec![Way::Jump, Way::Return])]
        );
    }
}
