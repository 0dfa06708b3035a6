//! What of a process has missed so far, for who looks at it while it goes on: misses by instruction, added up over whoever ran.
//!
//! Invariant: nothing changes by being looked at; what is told is what has been booked since the last part.

use cg_calls::{Counter, Profile};
use grind_trace::Site;

use super::last_level::{Last, NONE, Simulated};
use super::process::Process;
use crate::callgrind::columns::Missed;
use crate::counts::EventCounts;
use crate::simulator::Finding;
use cg_sim::beyond::Ask;

impl Process {
    /// What the instructions of these sites have missed, and what was mispredicted.
    pub(super) fn findings(&self, sites: &[Site]) -> Vec<Finding> {
        let Some(simulated) = &self.simulated else { return Vec::new() };
        let mut executions = vec![0u64; self.counters.len()];
        let mut add = |counter: u32, n: u64| {
            if let Some(sum) = executions.get_mut(counter as usize) {
                *sum = sum.saturating_add(n);
            }
        };
        self.threads.values().for_each(|t| t.calls.executions(&mut add));
        let ended = self.ended.iter().flat_map(|(_, Profile { counters, .. })| counters);
        ended.for_each(|Counter { counter, executions, .. }| add(*counter, *executions));
        let of = |counter: u32| executions.get(counter as usize).copied().unwrap_or(0);
        let missed = simulated.known.iter().zip(sites).filter(|(known, _)| known.place != NONE);
        let found = missed.map(|(known, site)| Finding {
            module: site.module as usize,
            addr: site.addr,
            context: 0,
            counts: simulated.counts(known.missed, simulated.counters[known.place as usize].map(of)),
        });
        found.filter(|found| found.counts != EventCounts::default()).collect()
    }
}

impl Simulated {
    /// What it means that so many misses went so deep.
    fn counts(&self, missed: Missed, [first, second, third]: [u64; 3]) -> EventCounts {
        let three = matches!(&self.last, Last::Deep(levels) if levels.second());
        let (all, beyond) = (first + second + third, second + third);
        let last = if three { third } else { beyond };
        let second = if three { beyond } else { 0 };
        let mut counts = EventCounts::default();
        match missed {
            Missed::Fetch => (counts.i1mr, counts.i2mr, counts.ilmr) = (all, second, last),
            Missed::Read => (counts.d1mr, counts.d2mr, counts.dlmr) = (all, second, last),
            Missed::Write => (counts.d1mw, counts.d2mw, counts.dlmw) = (all, second, last),
            Missed::Conditional => counts.bcm = all,
            Missed::Indirect => counts.bim = all,
        }
        counts
    }
}
