//! Records of a run in which caches or branches are simulated while emitted code follows calls: only what missed is told, and in
//! front of it the frames that have come since the last record. So the thread's calls are brought to where they were at each
//! miss, which is then booked on what ran, and on everything that was active, as where all is told.
//!
//! Where nothing is collected, totals stand still.
//!
//! Invariants: totals that emitted code keeps are not touched here; records are gone through before anything is done about the
//! thread at a stop, so they all belong to the frames that were shown at the last one.

use cg_calls::{Calls, Each};
use cg_sim::beyond::Ask;
use grind_trace::every::repeated::repeated;
use grind_trace::follow::{self, FRAME_TOLD, FRAME_WORDS, NO_CALL_EDGE, Names};
use grind_trace::operands;
use grind_trace::{Done, SiteKind, object_words};
use grind_types::own_memory;
use grind_types::{Pid, Tid};

use super::super::code::Catalogue;
use super::by_object::{ByObject, DataMiss};
use super::chains::{self, Kept};
use super::last_level::{self, Known, Last, Simulated, What};
use super::process::Process;
use super::thread::Thread;
use super::{Recorder, Space};
use crate::callgrind::columns::{Columns, Depth, Missed};
use crate::simulator::AHEAD;

impl Recorder {
    /// Goes through what a thread has recorded.
    pub(super) fn follow_misses(&mut self, pid: Pid, tid: Tid, names: &Names, words: &[u32]) {
        let kept = self.config.kept;
        let _ = self.with_followed(pid, tid, |p, t, catalogue, space| {
            let Some(mut simulated) = p.simulated.take() else { return };
            simulated.last.run(tid);
            p.by_object.iter_mut().for_each(|by_object| by_object.objects.thread(tid));
            let mut at = Records { rest: words, ahead: words, kept: kept.iter().flatten().count() };
            loop {
                if at.ahead.len() >= at.rest.len() {
                    at.ahead = at.rest;
                    (0..AHEAD).for_each(|_| simulated.look_ahead(t, &mut at));
                }
                match simulated.ordinary(t, (p.columns, &kept), (&mut p.by_object, space), &mut at) {
                    Some(First { site, missed, depth, addr }) => {
                        p.missed_first(&mut simulated, t, catalogue, (site, depth));
                        let size = simulated.known[site as usize].size;
                        p.missed_object(t, space, (site, addr.map(|addr| (addr, size)), depth));
                        if t.calls.collecting() {
                            p.columns.missed(missed, depth, |event| t.now[event] += 1);
                        }
                    }
                    None => {
                        let after = p.follow_miss(&mut simulated, t, catalogue, (space, names, &kept), at.rest);
                        let Some(rest) = after else { break };
                        at.rest = rest;
                    }
                }
            }
            p.simulated = Some(simulated);
        });
    }
}

/// A miss that is to be counted for what runs for the first time.
struct First {
    site: u32,
    missed: Missed,
    depth: Depth,
    /// What was accessed, if it was data.
    addr: Option<u64>,
}

/// Records that are left, and those of them whose needs nobody has asked for yet.
struct Records<'w> {
    rest: &'w [u32],
    ahead: &'w [u32],
    /// Totals that each call or return is told with.
    kept: usize,
}

impl Records<'_> {
    /// Asks for what the next record of those that are ahead will need. Goes no further than to one that is not ordinary.
    #[inline(always)]
    fn look_ahead(&mut self, known: &[Known], level: &impl Ask, calls: &Calls) {
        let Some((&number, operands)) = self.ahead.split_first() else { return };
        if let Some(words) = object_words(number) {
            self.ahead = self.ahead.get(words..).unwrap_or_default();
            return;
        }
        if number & FRAME_TOLD != 0 {
            let words = if chains::each(number).is_some() { 2 * self.kept } else { FRAME_WORDS - 1 };
            self.ahead = operands.get(words..).unwrap_or_default();
            return;
        }
        let Some(known) = known.get(number as usize) else { return };
        let (line, after) = match (known.what, operands) {
            (What::Fetch, _) => (Some(known.addr), operands),
            (What::Access, [low, high, after @ ..]) => (Some(operands::joined(*low, *high)), after),
            (What::Branch, _) => (None, operands),
            _ => return,
        };
        self.ahead = after;
        if let Some(line) = line {
            level.looks_at(line).into_iter().flatten().for_each(own_memory::prefetch);
        }
        if let Some(counts) = calls.counts_of(known.place) {
            own_memory::prefetch(counts);
        }
    }
}

impl Simulated {
    /// As [`Records::look_ahead`], where there are levels that can be asked.
    fn look_ahead(&self, t: &Thread, at: &mut Records) {
        match &self.last {
            Last::Plain(level) => at.look_ahead(&self.known, level, &t.calls),
            Last::Deep(levels) => at.look_ahead(&self.known, &**levels, &t.calls),
            Last::Absent | Last::Elaborate(_) => {}
        }
    }

    /// Goes through ordinary records, up to one that is none, or to a miss that is to be counted for what runs for the first time.
    /// Returns that, which is not among those that are left any more.
    fn ordinary(
        &mut self,
        t: &mut Thread,
        columns: (Columns, &Kept),
        objects: (&mut Option<Box<ByObject>>, &Space),
        at: &mut Records,
    ) -> Option<First> {
        match &mut self.last {
            Last::Plain(level) => Self::ordinary_of(&self.known, level, t, columns, objects, at),
            Last::Deep(levels) => Self::ordinary_of(&self.known, &mut **levels, t, columns, objects, at),
            Last::Absent | Last::Elaborate(_) => None,
        }
    }

    fn ordinary_of(
        sites: &[Known],
        level: &mut impl Ask,
        t: &mut Thread,
        (columns, kept): (Columns, &Kept),
        (by_object, space): (&mut Option<Box<ByObject>>, &Space),
        at: &mut Records,
    ) -> Option<First> {
        let places = columns.first_missed();
        loop {
            let (&number, operands) = at.rest.split_first()?;
            if number & FRAME_TOLD != 0 {
                if object_words(number).is_some() {
                    return None;
                }
                if let Some(told) = chains::each(number) {
                    let (_, rest) = chains::take(at.rest, kept, &mut t.now)?;
                    match told {
                        // Of a call edge that has not been met, somebody else has to be asked.
                        Each::Call(call_edge) if !t.calls.told_known_call(call_edge, &t.now) => return None,
                        Each::Call(_) => {}
                        Each::Return(frames) => t.calls.told_return(frames, &t.now),
                    }
                    at.rest = rest;
                    at.look_ahead(sites, level, &t.calls);
                    continue;
                }
                let depth = follow::depth_told(number)?;
                let (&call_edge, after) = operands.split_first()?;
                if call_edge == NO_CALL_EDGE {
                    t.calls.told_depth(depth);
                } else if !t.calls.told_known_frame((depth, call_edge), &t.now) {
                    return None;
                }
                at.rest = after;
                at.look_ahead(sites, level, &t.calls);
                continue;
            }
            let known = *sites.get(number as usize)?;
            let (addr, after) = match (known.what, operands) {
                (What::Fetch, _) => (Some(known.addr), operands),
                (What::Access, [low, high, after @ ..]) => (Some(operands::joined(*low, *high)), after),
                (What::Branch, _) => (None, operands),
                _ => return None,
            };
            at.rest = after;
            at.look_ahead(sites, level, &t.calls);
            let depth = addr.map_or(Depth::FIRST, |addr| last_level::asked(level, &known, addr, known.size));
            if !t.calls.missed_again(known.place, depth.index(), &t.now) {
                let addr = addr.filter(|_| known.what == What::Access);
                return Some(First { site: number, missed: known.missed, depth, addr });
            }
            if !t.calls.collecting() {
                continue;
            }
            if let (Some(by_object), Some(addr), What::Access) = (by_object.as_deref_mut(), addr, known.what) {
                let miss = DataMiss { site: &space.sites[number as usize], addr, size: known.size, depth };
                by_object.missed(&space.images, (&t.calls, &mut t.missed), &miss);
            }
            let column = places[known.missed as usize];
            t.now[column] += 1;
            (1..=depth.index()).for_each(|level| t.now[column + Columns::TO_NEXT_LEVEL * level] += 1);
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
        (space, names, kept): (&Space, &Names, &Kept),
        words: &'w [u32],
    ) -> Option<&'w [u32]> {
        let (&number, operands) = words.split_first()?;
        if let Some(rest) = self.object_record(t, catalogue, (words, true)) {
            return Some(rest);
        }
        if let Some((told, rest)) = chains::take(words, kept, &mut t.now) {
            self.chain(t, catalogue, (space, names), told);
            return Some(rest);
        }
        if let Some(depth) = follow::depth_told(number) {
            let (&call_edge, rest) = operands.split_first()?;
            if call_edge == NO_CALL_EDGE {
                t.calls.told_depth(depth);
            } else {
                t.calls.told_frame(catalogue, (depth, call_edge), &t.now, |catalogue, call_edge| {
                    self.again(call_edge, names, catalogue, &space.functions)
                });
            }
            return Some(rest);
        }
        let known = *simulated.known.get(number as usize)?;
        let missed = known.missed;
        let mut data = None;
        let (depth, rest) = match known.what {
            What::Branch => (Depth::FIRST, operands),
            What::Fetch => (simulated.last.missed(&known, known.addr, known.size), operands),
            What::Access => {
                let (addr, rest) = operands::number(operands)?;
                data = Some((addr, known.size));
                (simulated.last.missed(&known, addr, known.size), rest)
            }
            What::Sized => {
                let (addr, size, rest) = operands::number_and_word(operands)?;
                data = Some((addr, size as u16));
                (simulated.last.missed(&known, addr, size as u16), rest)
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
                    let counter = self.single_counter(catalogue, addr);
                    for (event, n) in (dr..).zip(counts).filter(|(_, n)| *n != 0) {
                        t.calls.spent(counter, event, n, &t.now);
                    }
                }
                return Some(rest);
            }
            What::Told | What::Stretch => return None,
        };
        if !t.calls.missed_again(known.place, depth.index(), &t.now) {
            self.missed_first(simulated, t, catalogue, (number, depth));
        }
        self.missed_object(t, space, (number, data, depth));
        // What the counter costs, but one or two columns, not all of them.
        if t.calls.collecting() {
            self.columns.missed(missed, depth, |event| t.now[event] += 1);
        }
        Some(rest)
    }

    /// A site has missed as it has not yet for what runs.
    #[cold]
    #[inline(never)]
    fn missed_first(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        (site, depth): (u32, Depth),
    ) {
        let counter = self.counter_of_miss(simulated, catalogue, site, depth);
        let width = t.now.len();
        let costs = &self.costs[counter as usize * width..][..width];
        let place = simulated.known[site as usize].place;
        t.calls.missed((place, depth.index()), counter, costs, &t.now);
    }
}
