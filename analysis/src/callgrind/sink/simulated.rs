//! Records of a run in which caches or branches are simulated: what the first level missed and what was mispredicted stand
//! among the blocks and transfers of control, in program order, so they are booked on what runs at that moment.
//!
//! A miss is a counter of its own: an instruction that is not executed, and costs a miss. So misses are counted like blocks, and
//! as fast. A miss is told before the block that it happened in, which makes no difference: a block lies in one function, and
//! what runs changes where a block has been told. What the simulation keeps (the last level) goes on while nothing is
//! collected; only instrumentation that is switched off empties it, as in the reference.

use grind_trace::every::repeated::repeated;
use grind_trace::frames::FrameRecord;
use grind_trace::operands;
use grind_trace::{Done, SiteKind};
use grind_types::Tid;

use super::super::code::Catalogue;
use super::Space;
use super::last_level::{Simulated, What};
use super::meaning::NOTHING;
use super::misses::{spend, told};
use super::process::Process;
use super::thread::Thread;
use crate::callgrind::columns::Depth;

impl Process {
    /// Goes through records up to one after which a function asks for something, or a part is due; returns what is left.
    pub(super) fn follow_simulated<'w>(
        &mut self,
        tid: Tid,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> &'w [u32] {
        // Out of their places, so that nothing has to be looked for at each record.
        let (Some(mut simulated), Some(mut t)) = (self.simulated.take(), self.threads.remove(&tid)) else { return &[] };
        simulated.last.run(tid);
        let rest = self.go_through(&mut simulated, &mut t, catalogue, space, words);
        self.threads.insert(tid, t);
        self.simulated = Some(simulated);
        rest
    }

    fn go_through<'w>(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> &'w [u32] {
        let mut rest = words;
        loop {
            // Where every access is told, hardly two records of calls follow one another.
            if t.pause == u64::MAX && simulated.shapes.is_none() && self.by_object.is_none() {
                let rows = self.columns.cycles.is_some();
                let done = match self.columns.stride {
                    8 if rows => self.fast_by_rows::<8>(simulated, t, catalogue, rest),
                    16 if rows => self.fast_by_rows::<16>(simulated, t, catalogue, rest),
                    24 if rows => self.fast_by_rows::<24>(simulated, t, catalogue, rest),
                    _ if rows => 0,
                    5 => self.fast::<5>(simulated, t, catalogue, rest),
                    9 => self.fast::<9>(simulated, t, catalogue, rest),
                    13 => self.fast::<13>(simulated, t, catalogue, rest),
                    16 => self.fast::<16>(simulated, t, catalogue, rest),
                    24 => self.fast::<24>(simulated, t, catalogue, rest),
                    _ => 0,
                };
                rest = &rest[done..];
            }
            let Some((&number, operands)) = rest.split_first() else { return rest };
            let Some(known) = simulated.known.get_mut(number as usize) else {
                if let Some(after) = self.object_record(t, catalogue, (rest, false)) {
                    rest = after;
                    continue;
                }
                let Some((record, after)) = FrameRecord::split(rest) else { return &[] };
                rest = after;
                if self.codes.framed(t, catalogue, record) {
                    return rest;
                }
                continue;
            };
            if !t.begun {
                t.begun = true;
                // Where its block begins, if that is what it tells of.
                let told = self.hot.get(number as usize).filter(|hot| hot.counter != NOTHING);
                t.calls.begin(catalogue, told.map_or(known.addr, |hot| self.counters[hot.counter as usize].start));
            }
            let mut data = None;
            let depth = match known.what {
                What::Told => {
                    let Some(hot) = self.hot.get(number as usize) else { return &[] };
                    if t.blocks >= t.pause && hot.counter != NOTHING {
                        return rest;
                    }
                    let Some((after, asks)) = told(t, hot, &self.costs, catalogue, number, operands) else {
                        return &[];
                    };
                    rest = after;
                    if asks {
                        return rest;
                    }
                    continue;
                }
                What::Branch => {
                    rest = operands;
                    Depth::FIRST
                }
                What::Fetch => {
                    rest = operands;
                    simulated.last.missed(known, known.addr, known.size)
                }
                What::Access => {
                    let Some((addr, after)) = operands::number(operands) else { return &[] };
                    rest = after;
                    data = Some((addr, known.size));
                    simulated.last.missed(known, addr, known.size)
                }
                What::Sized => {
                    let Some((addr, size, after)) = operands::number_and_word(operands) else { return &[] };
                    rest = after;
                    data = Some((addr, size as u16));
                    simulated.last.missed(known, addr, size as u16)
                }
                What::Repeated | What::Special => {
                    let kind = space.sites[number as usize].kind;
                    let Some((record, after)) = rest.split_at_checked(kind.words()) else { return &[] };
                    rest = after;
                    let mut counts = repeated(kind, record);
                    if let SiteKind::Special { index, .. } = kind {
                        for touch in space.specials.get(index as usize).map(|s| s.touches(record)).unwrap_or_default() {
                            counts[usize::from(touch.done != Done::Read)] += 1;
                        }
                    }
                    self.accesses(t, catalogue, known.addr, counts);
                    if simulated.shapes.is_some() {
                        self.through(simulated, t, catalogue, space, record);
                    }
                    continue;
                }
                What::Stretch => {
                    let kind = space.sites[number as usize].kind;
                    let Some((record, after)) = rest.split_at_checked(kind.words()) else { return &[] };
                    if let SiteKind::Stretch { tells: Some(block), .. } = kind {
                        if t.blocks >= t.pause {
                            return rest;
                        }
                        let counter = self.counter_of_block[block as usize];
                        t.blocks += u64::from(self.counters[counter as usize].ends);
                        spend(t, counter, &self.costs);
                    }
                    rest = after;
                    self.through(simulated, t, catalogue, space, record);
                    continue;
                }
            };
            self.missed(simulated, t, catalogue, number, depth);
            self.missed_object(t, space, (number, data, depth));
        }
    }

    /// Goes through ordinary records, and through misses among them; returns how many words those are.
    fn fast<const W: usize>(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        words: &[u32],
    ) -> usize {
        let places = self.columns.places();
        // Counters may be added meanwhile, but no steps.
        let steps = std::mem::take(&mut self.steps);
        let miss =
            |number: u32, words: &[u32], now: &mut [u64; W]| self.miss_among(simulated, catalogue, number, words, now);
        let done = t.calls.fast_path_wide(&places, &steps, words, &mut t.now, miss);
        self.steps = steps;
        done
    }

    /// The same where what an execution costs is a row by itself.
    fn fast_by_rows<const W: usize>(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        words: &[u32],
    ) -> usize {
        let steps = std::mem::take(&mut self.steps);
        // Counters that are added meanwhile are those of misses, which no step executes: they come behind the others.
        let mut rows = std::mem::take(&mut self.costs);
        let miss =
            |number: u32, words: &[u32], now: &mut [u64; W]| self.miss_among(simulated, catalogue, number, words, now);
        let done = t.calls.fast_path_rows(&rows, &steps, words, &mut t.now, miss);
        self.steps = steps;
        rows.append(&mut self.costs);
        self.costs = rows;
        done
    }

    /// If the record that begins with site `number` tells of a miss: adds that to the totals, and answers with its counter and the
    /// record's words.
    #[inline]
    fn miss_among<const W: usize>(
        &mut self,
        simulated: &mut Simulated,
        catalogue: &mut Catalogue,
        number: u32,
        words: &[u32],
        now: &mut [u64; W],
    ) -> Option<(u32, usize)> {
        let known = simulated.known.get(number as usize)?;
        let (depth, length) = match (known.what, words) {
            (What::Branch, _) => (Depth::FIRST, 1),
            (What::Fetch, _) => (simulated.last.missed(known, known.addr, known.size), 1),
            (What::Access, [_, low, high, ..]) => {
                (simulated.last.missed(known, operands::joined(*low, *high), known.size), 3)
            }
            _ => return None,
        };
        self.columns.missed(known.missed, depth, |event| now[event] += 1);
        Some((self.counter_of_miss(simulated, catalogue, number, depth), length))
    }
}
