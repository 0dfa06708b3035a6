//! Records of a run in which caches or branches are simulated while emitted code follows calls: only what missed is told, and in
//! front of it the frames that have come since the last record. So the thread's calls are brought to where they were at each
//! miss, which is then booked on what ran, and on everything that was active, as where all is told.
//!
//! Invariants: totals that emitted code keeps are not touched here; records are gone through before anything is done about the
//! thread at a stop, so they all belong to the frames that were shown at the last one.

use cg_sim::writeback::Outcome;
use grind_engine::follow::{self, NO_ROUTE, Names};
use grind_engine::own_memory;
use grind_engine::trace::{Done, Site, SiteKind};

use super::super::code::Catalogue;
use super::process::{Process, Thread, word};
use super::simulated::{Last, Simulated, What, repeated};
use super::{Recorder, Space};
use crate::callgrind::columns::Missed;
use crate::simulator::AHEAD;

impl Recorder {
    /// Goes through what a thread has recorded.
    pub(super) fn follow_misses(&mut self, pid: i32, tid: i32, names: &Names, words: &[u32]) {
        let _ = self.with_followed(pid, tid, |p, t, catalogue, space| {
            if let Some(mut simulated) = p.simulated.take() {
                let mut rest = words;
                let mut ahead = (0..AHEAD).fold(words, |ahead, _| simulated.look_ahead(&space.sites, ahead));
                while let Some(after) = p.follow_miss(&mut simulated, t, catalogue, (space, names), rest) {
                    rest = after;
                    ahead = simulated.look_ahead(&space.sites, ahead);
                }
                p.simulated = Some(simulated);
            }
        });
    }
}

impl Simulated {
    /// Asks for what the record at the start of `records` will need. Returns the records behind it.
    #[inline]
    fn look_ahead<'w>(&self, sites: &[Site], records: &'w [u32]) -> &'w [u32] {
        let Some((&number, operands)) = records.split_first() else { return records };
        if follow::depth_told(number).is_some() {
            return operands.get(1..).unwrap_or_default();
        }
        let Some(known) = self.known.get(number as usize) else { return &[] };
        let line = |addr| {
            if let Last::Plain(level) = &self.last {
                own_memory::prefetch(level.address(addr));
            }
        };
        match (known.what, operands) {
            (What::Branch, _) => operands,
            (What::Fetch, _) => {
                line(known.addr);
                operands
            }
            (What::Access, [low, high, after @ ..]) => {
                line(word(*low, *high));
                after
            }
            _ => {
                let words = sites.get(number as usize).map_or(1, |site| site.kind.words());
                records.get(words..).unwrap_or_default()
            }
        }
    }
}

impl Process {
    /// Deals with the first of these records; returns those behind it.
    #[inline]
    fn follow_miss<'w>(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        (space, names): (&Space, &Names),
        words: &'w [u32],
    ) -> Option<&'w [u32]> {
        let (&number, operands) = words.split_first()?;
        if let Some(depth) = follow::depth_told(number) {
            let (&route, rest) = operands.split_first()?;
            if route == NO_ROUTE {
                t.calls.told_depth(depth);
            } else {
                t.calls.told_frame(catalogue, (depth, route), &t.now, |catalogue, route| {
                    self.again(route, names, catalogue, &space.functions)
                });
            }
            return Some(rest);
        }
        let known = simulated.known.get(number as usize)?;
        let missed = known.missed;
        let write = missed == Missed::Write;
        let (outcome, rest) = match known.what {
            What::Branch => (Outcome::LastLevel, operands),
            What::Fetch => (simulated.last.missed(known.addr, known.size, false), operands),
            What::Access => {
                let ([low, high], rest) = operands.split_first_chunk()?;
                (simulated.last.missed(word(*low, *high), known.size, write), rest)
            }
            What::Sized => {
                let ([low, high, size], rest) = operands.split_first_chunk()?;
                (simulated.last.missed(word(*low, *high), *size as u16, write), rest)
            }
            What::Repeated | What::Special => {
                let addr = known.addr;
                let kind = space.sites[number as usize].kind;
                let (record, rest) = words.split_at_checked(kind.words())?;
                let mut counts = repeated(kind, record);
                if let SiteKind::Special { index, .. } = kind {
                    for touch in space.specials.get(index as usize).map(|s| s.touches(record)).unwrap_or_default() {
                        counts[usize::from(touch.done != Done::Read)] += 1;
                    }
                }
                if let Some(dr) = self.columns.accesses {
                    let cell = self.single_cell(catalogue, addr, self.columns.stride);
                    for (event, n) in (dr..).zip(counts).filter(|(_, n)| *n != 0) {
                        t.calls.spent(cell, event, n, &t.now);
                    }
                }
                return Some(rest);
            }
            What::Told | What::Stretch => return None,
        };
        let cell = self.cell_of_miss(simulated, catalogue, number, outcome);
        let width = t.now.len();
        let costs = &self.costs[cell as usize * width..][..width];
        t.calls.missed(cell, costs, &t.now);
        // What the cell costs, but one or two columns, not all of them.
        self.columns.missed(missed, outcome, |event| t.now[event] += 1);
        Some(rest)
    }
}
