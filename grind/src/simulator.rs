//! The analysing end of the trace: feeds every recorded event to the models of `cg-sim` and keeps what they find by site.
//!
//! It runs on a thread of its own, beside the program. It never loses a record and never waits for the program; nothing here
//! knows options or files. A process's findings are complete when the engine reports the process's end, and are taken from
//! [`Findings`] then.

mod contexts;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cg_sim::{Geometries, LastLevel, Level1, Predictor, Served};
use grind_engine::addr::GuestAddr;
use grind_engine::trace::{CONTEXT_SITE, Done, Sink, Site, SiteKind, SpaceId, Special, Target};

use crate::contexts::Reuse;
use crate::counts::EventCounts;

/// What was found of one instruction: misses, mispredictions, and accesses that only the trace knows.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    /// Its module, as an index into the report's.
    pub module: usize,
    /// The instruction.
    pub addr: GuestAddr,
    /// The context of the statistics.
    pub context: u64,
    /// How often what happened.
    pub counts: EventCounts,
}

/// What was found of a process.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By instruction and context.
    pub findings: Vec<Finding>,
    /// How many lines of the first-level data caches each context found that another had brought in.
    pub reuse_d1: Reuse,
    /// The same of the last level.
    pub reuse_ll: Reuse,
}

/// What was found of processes that have ended, by process.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Mutex<HashMap<i32, Found>>>);

impl Findings {
    /// What was found of `pid`, once.
    #[must_use]
    pub fn take(&self, pid: i32) -> Found {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid).unwrap_or_default()
    }

    fn put(&self, pid: i32, found: Found) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, found);
    }
}

/// What the hot loop needs of a site.
#[derive(Clone, Copy, Debug)]
struct Hot {
    addr: u64,
    /// Bytes of the access or of the instruction, at most a line of the smallest cache for an access.
    size: u16,
    kind: HotKind,
}

#[derive(Clone, Copy, Debug)]
enum HotKind {
    Fetch,
    Access,
    Conditional,
    Indirect,
    /// All others.
    Rare,
}

/// The sites of a set of translations.
#[derive(Clone, Debug, Default)]
struct Sites {
    hot: Vec<Hot>,
    all: Vec<Site>,
    specials: Vec<Special>,
}

/// First- and last-level misses of a site (mispredictions: the first).
#[derive(Clone, Copy, Debug, Default)]
struct Tally([u64; 2]);

/// What a thread has of its own.
#[derive(Clone, Debug)]
struct Thread {
    level1: Option<Level1>,
    predictor: Predictor,
}

#[derive(Clone, Debug)]
struct Process {
    space: SpaceId,
    last_level: Option<LastLevel>,
    threads: HashMap<i32, Thread>,
    tallies: Vec<Tally>,
    /// Of sites whose number of accesses is not known in advance.
    rare: HashMap<u32, EventCounts>,
    /// What there is instead, but for predictors, once a thread has left context 0. What was found before belongs to it.
    contexts: Option<Box<contexts::Contexts>>,
}

/// See the module's description.
#[derive(Debug)]
pub struct Simulator {
    geometries: Option<Geometries>,
    spaces: HashMap<SpaceId, Sites>,
    processes: HashMap<i32, Process>,
    findings: Findings,
}

impl Simulator {
    /// A simulator of these caches (or none), and the place where its findings will be.
    #[must_use]
    pub fn new(geometries: Option<Geometries>) -> (Self, Findings) {
        let findings = Findings::default();
        (Self { geometries, spaces: HashMap::new(), processes: HashMap::new(), findings: findings.clone() }, findings)
    }
}

impl Sink for Simulator {
    fn sites(&mut self, space: SpaceId, sites: &[Site], specials: &[Special]) {
        let to = self.spaces.entry(space).or_default();
        let most = self.geometries.as_ref().map_or(u32::MAX, Geometries::min_line).min(u32::from(u16::MAX)) as u16;
        to.hot.extend(sites.iter().map(|s| {
            let (size, kind) = match s.kind {
                SiteKind::Fetch => (u16::from(s.len), HotKind::Fetch),
                SiteKind::Read(size) | SiteKind::Write(size) | SiteKind::Modify(size) => {
                    (size.min(most), HotKind::Access)
                }
                SiteKind::Conditional => (0, HotKind::Conditional),
                SiteKind::Indirect => (0, HotKind::Indirect),
                _ => (0, HotKind::Rare),
            };
            Hot { addr: s.addr.0, size, kind }
        }));
        to.all.extend_from_slice(sites);
        to.specials.extend_from_slice(specials);
    }

    fn space_copied(&mut self, from: SpaceId, to: SpaceId) {
        let copy = self.spaces.get(&from).cloned().unwrap_or_default();
        self.spaces.insert(to, copy);
    }

    fn image(&mut self, pid: i32, space: SpaceId) {
        self.processes.insert(
            pid,
            Process {
                space,
                last_level: self.geometries.as_ref().map(LastLevel::new),
                threads: HashMap::new(),
                tallies: Vec::new(),
                rare: HashMap::new(),
                contexts: None,
            },
        );
    }

    fn moved(&mut self, pid: i32, space: SpaceId) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.space = space;
        }
    }

    fn forked(&mut self, parent: i32, tid: i32, child: i32) {
        let Some(mut copy) = self.processes.get(&parent).cloned() else { return };
        let thread = copy.threads.remove(&tid);
        copy.threads.clear();
        copy.threads.extend(thread.map(|t| (child, t)));
        if let Some(contexts) = &mut copy.contexts {
            contexts.forked(tid, child);
        }
        self.processes.insert(child, copy);
    }

    fn records(&mut self, pid: i32, tid: i32, words: &[u32]) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let Some(sites) = self.spaces.get(&p.space) else { return };
        p.tallies.resize(sites.hot.len(), Tally::default());
        let geometries = self.geometries.as_ref();
        let thread = p
            .threads
            .entry(tid)
            .or_insert_with(|| Thread { level1: geometries.map(Level1::new), predictor: Predictor::new() });
        let mut rest = words;
        if p.contexts.is_some() {
            return contexts::records(p, sites, geometries, tid, rest);
        }
        while let Some((&site, operands)) = rest.split_first() {
            if site == CONTEXT_SITE {
                p.contexts = Some(Box::new(contexts::Contexts::new(p.last_level.as_ref(), &p.threads)));
                return contexts::records(p, sites, geometries, tid, rest);
            }
            let Some(hot) = sites.hot.get(site as usize) else { return };
            let tally = &mut p.tallies[site as usize].0;
            match hot.kind {
                HotKind::Fetch => {
                    rest = operands;
                    if let (Some(level1), Some(ll)) = (&mut thread.level1, &mut p.last_level) {
                        count(tally, level1.fetch(ll, hot.addr, hot.size.into()));
                    }
                }
                HotKind::Access => {
                    let Some(([low, high], after)) = operands.split_first_chunk() else { return };
                    rest = after;
                    if let (Some(level1), Some(ll)) = (&mut thread.level1, &mut p.last_level) {
                        count(tally, level1.data(ll, word(*low, *high), hot.size.into()));
                    }
                }
                HotKind::Conditional => {
                    let Some((&taken, after)) = operands.split_first() else { return };
                    rest = after;
                    tally[0] += u64::from(thread.predictor.conditional(hot.addr, taken != 0));
                }
                HotKind::Indirect => {
                    let Some(([low, high], after)) = operands.split_first_chunk() else { return };
                    rest = after;
                    tally[0] += u64::from(thread.predictor.indirect(hot.addr, word(*low, *high)));
                }
                HotKind::Rare => {
                    let kind = sites.all[site as usize].kind;
                    let Some((record, after)) = rest.split_at_checked(kind.words()) else { return };
                    rest = after;
                    if let (Some(level1), Some(ll), Some(g)) = (&mut thread.level1, &mut p.last_level, geometries) {
                        let mut caches = Caches { data: |addr, size| level1.data(ll, addr, size), geometries: g };
                        caches.rare(kind, record, &sites.specials, p.rare.entry(site).or_default());
                    }
                }
            }
        }
    }

    fn thread_ended(&mut self, pid: i32, tid: i32) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.threads.remove(&tid);
            if let Some(contexts) = &mut p.contexts {
                contexts.thread_ended(tid);
            }
        }
    }

    fn process_ended(&mut self, pid: i32) {
        let Some(p) = self.processes.remove(&pid) else { return };
        let Some(sites) = self.spaces.get(&p.space) else { return };
        let mut found = Vec::new();
        for (site, Tally([l1, ll])) in sites.all.iter().zip(&p.tallies) {
            if *l1 == 0 {
                continue;
            }
            let c = misses(site.kind, *l1, *ll);
            found.push(Finding { module: site.module as usize, addr: site.addr, context: 0, counts: c });
        }
        for (site, counts) in p.rare {
            let site = sites.all[site as usize];
            found.push(Finding { module: site.module as usize, addr: site.addr, context: 0, counts });
        }
        let mut found = Found { findings: found, ..Found::default() };
        if let Some(contexts) = p.contexts {
            contexts.add_to(&sites.all, &mut found);
        }
        self.findings.put(pid, found);
    }
}

/// So many misses (mispredictions) of a site that is not a rare one.
fn misses(kind: SiteKind, l1: u64, ll: u64) -> EventCounts {
    let mut c = EventCounts::default();
    match kind {
        SiteKind::Fetch => (c.i1mr, c.ilmr) = (l1, ll),
        // Cachegrind books a modification as a read.
        SiteKind::Read(_) | SiteKind::Modify(_) => (c.d1mr, c.dlmr) = (l1, ll),
        SiteKind::Write(_) => (c.d1mw, c.dlmw) = (l1, ll),
        SiteKind::Conditional => c.bcm = l1,
        SiteKind::Indirect => c.bim = l1,
        _ => {}
    }
    c
}

#[inline]
fn count(tally: &mut [u64; 2], served: Served) {
    tally[0] += u64::from(served.missed_l1());
    tally[1] += u64::from(served.missed_ll());
}

#[inline]
fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The caches as one thread sees them: what becomes of an access of so many bytes.
struct Caches<'a, F> {
    data: F,
    geometries: &'a Geometries,
}

impl<F: FnMut(u64, u32) -> Served> Caches<'_, F> {
    /// Events whose accesses are not known in advance; `counts` gets the accesses, too.
    fn rare(&mut self, kind: SiteKind, record: &[u32], specials: &[Special], counts: &mut EventCounts) {
        match kind {
            SiteKind::Special { index, .. } => {
                let most = u64::from(self.geometries.min_line());
                for touch in specials.get(index as usize).map(|s| s.touches(record)).unwrap_or_default() {
                    self.access(touch.address, touch.size.min(most) as u32, touch.done == Done::Write, counts);
                }
            }
            SiteKind::Repeated { size, source, target, target_first, narrow } => {
                let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
                let at = |n: usize| word(record[1 + 2 * n], record[2 + 2 * n]) & mask;
                let (from, to) = (at(1), at(2));
                let down = at(4).wrapping_sub(from) as i64 | at(5).wrapping_sub(to) as i64;
                let iterations = at(0).wrapping_sub(at(3)) & mask;
                let step = if down < 0 { u64::from(size).wrapping_neg() } else { size.into() };
                self.repeat(Repeat { size, source, target, target_first, mask, step }, iterations, from, to, counts);
            }
            _ => {}
        }
    }

    fn access(&mut self, addr: u64, size: u32, write: bool, counts: &mut EventCounts) {
        let served = (self.data)(addr, size);
        let (all, l1, ll) = if write {
            (&mut counts.dw, &mut counts.d1mw, &mut counts.dlmw)
        } else {
            (&mut counts.dr, &mut counts.d1mr, &mut counts.dlmr)
        };
        *all += 1;
        *l1 += u64::from(served.missed_l1());
        *ll += u64::from(served.missed_ll());
    }

    /// Iterations of a string instruction, one by one where it matters: after one of them, those that stay within the same
    /// lines all hit and change nothing, unless two lines contend for the only place of their set.
    fn repeat(&mut self, r: Repeat, iterations: u64, from: u64, to: u64, counts: &mut EventCounts) {
        let (mut from, mut to) = (from, to);
        let line = u64::from(self.geometries.d1.line());
        let contended = self.geometries.d1.assoc() == 1 && r.source && r.target != Target::Unused;
        let mut left = iterations;
        while left > 0 {
            r.each(from, to, |addr, write| self.access(addr, r.size.into(), write, counts));
            left -= 1;
            from = from.wrapping_add(r.step) & r.mask;
            to = to.wrapping_add(r.step) & r.mask;
            if contended {
                continue;
            }
            // How many more stay within the lines that the last one used?
            let room = |addr: u64| {
                let z = u64::from(r.size);
                let last = addr.wrapping_sub(r.step);
                if last & (line - 1) > line - z || last / line != addr / line {
                    0
                } else if r.step == z {
                    (line - (addr & (line - 1))) / z
                } else {
                    (addr & (line - 1)) / z + u64::from(addr & (line - 1) <= line - z)
                }
            };
            let mut skip = left;
            if r.source {
                skip = skip.min(room(from));
            }
            if r.target != Target::Unused {
                skip = skip.min(room(to));
            }
            counts.dr += skip * (u64::from(r.source) + u64::from(r.target == Target::Read));
            counts.dw += skip * u64::from(r.target == Target::Write);
            left -= skip;
            from = from.wrapping_add(r.step.wrapping_mul(skip)) & r.mask;
            to = to.wrapping_add(r.step.wrapping_mul(skip)) & r.mask;
        }
    }
}

/// A repeated string instruction.
#[derive(Clone, Copy)]
struct Repeat {
    size: u8,
    source: bool,
    target: Target,
    target_first: bool,
    mask: u64,
    step: u64,
}

impl Repeat {
    /// The accesses of one iteration, in order.
    fn each(&self, from: u64, to: u64, mut access: impl FnMut(u64, bool)) {
        let target = |access: &mut dyn FnMut(u64, bool)| match self.target {
            Target::Unused => {}
            Target::Read => access(to, false),
            Target::Write => access(to, true),
        };
        if self.target_first {
            target(&mut access);
        }
        if self.source {
            access(from, false);
        }
        if !self.target_first {
            target(&mut access);
        }
    }
}
