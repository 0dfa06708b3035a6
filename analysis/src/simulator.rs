//! The analysing end of the trace: sends what missed the first level of the caches to the model of those beyond, and counts
//! by site what it finds, and what was mispredicted.
//!
//! It runs on a thread of its own, beside the program. It never loses a record and never waits for the program; nothing here
//! knows options or files. A process's findings are complete when the engine reports the process's end, and are taken from
//! [`Findings`] then.

mod contexts;
mod every;
mod pages;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use cg_sim::beyond::{Answer, Ask, Inclusion, Request};
use cg_sim::included::{self, Included};
use cg_sim::tlb::{Behind, Tlbs};
use cg_sim::{Beyond, Geometries, LastLevel, Levels};
use grind_trace::every::Told;
use grind_trace::operands;
use grind_trace::{
    BYTES_USED, BYTES_WORDS, CODE_BROUGHT, CODE_BROUGHT_WORDS, CODE_WAY, CONTEXT_SITE, CachePort, LINE_BROUGHT,
    LINE_MOVED, LineBrought, MOVED_WORDS, PAGE_MISSED, PAGE_WORDS, Sink, Site, SiteKind, SpaceId, Special,
    object_words,
};
use grind_types::addr::GuestAddr;
use grind_types::fault;
use grind_types::own_memory;
use grind_types::{Module, Pid, Query, Tid};

use crate::counts::EventCounts;
use grind_objects::distances::Bounded;
use grind_objects::sharing::told::{self, Shared};
use grind_objects::{self as objects, Images, Objects, Reader, distances, sharing};
use pages::add_pages;

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
    /// The same of second levels.
    pub reuse_l2: Reuse,
    /// The same of the last level.
    pub reuse_ll: Reuse,
    /// What was missed by object, if that was asked for.
    pub objects: objects::Found,
    /// After how many other lines lines were accessed again, if that was asked for.
    pub distances: Option<distances::Found>,
    /// Lines that threads shared, if that was asked for.
    pub sharing: Option<sharing::Found>,
    /// What the last level would have taken out of first levels, if it includes them.
    pub included: Option<included::Counts>,
}

/// What was found of processes that have ended, by process.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Mutex<HashMap<Pid, Found>>>);

impl Findings {
    /// What was found of `pid`, once.
    #[must_use]
    pub fn take(&self, pid: Pid) -> Found {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid).unwrap_or_default()
    }

    pub(crate) fn put(&self, pid: Pid, found: Found) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, found);
    }
}

/// How many records the look ahead is in front: what is asked for takes as long to come as these are dealt with.
pub(crate) const AHEAD: usize = 12;

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
    /// A mispredicted branch.
    Branch,
    /// All others.
    Rare,
}

/// The sites of a set of translations.
#[derive(Clone, Debug, Default)]
struct Sites {
    hot: Vec<Hot>,
    all: Vec<Site>,
    /// The same for every access, if that is told.
    told: Vec<Told>,
    specials: Vec<Special>,
    /// Files that are mapped, if objects are asked for.
    images: Images,
}

impl Sites {
    /// What records of shared lines are of.
    fn of(&self) -> told::Sites<'_> {
        told::Sites { all: &self.all, specials: &self.specials, images: &self.images }
    }
}

/// First- and last-level misses of a site (mispredictions: the first).
#[derive(Clone, Copy, Debug, Default)]
struct Tally([u64; 2]);

/// What is asked for what first levels did not have.
#[derive(Clone, Debug, Default)]
enum BeyondFirst {
    /// No caches are simulated, or contexts have them.
    #[default]
    Nothing,
    Plain(LastLevel),
    Deep(Box<Beyond>),
}

/// Nobody: no caches are simulated.
struct Nobody;

impl Ask for Nobody {
    #[inline(always)]
    fn second(&self) -> bool {
        false
    }

    #[inline(always)]
    fn ask(&mut self, _: Request) -> Answer {
        Answer::Last
    }

    #[inline(always)]
    fn looks_at(&self, _: u64) -> [Option<usize>; 2] {
        [None; 2]
    }
}

/// Calls of allocators and bytes, by context and by where they returned to.
type Allocations = HashMap<(u64, objects::Site), [u64; 2]>;

#[derive(Clone, Debug)]
struct Process {
    space: SpaceId,
    beyond: BeyondFirst,
    tallies: Vec<Tally>,
    /// By site: misses of second levels, if there are any.
    second: Vec<u64>,
    /// By site: misses of first- and second-level TLBs, if there are any.
    pages: Vec<[u64; 2]>,
    /// What threads have of TLBs behind those that the program simulates by itself.
    buffers: HashMap<Tid, Behind>,
    /// Those of the thread whose records are gone through.
    running: Option<Behind>,
    tlbs: Option<Tlbs>,
    /// Of sites whose number of accesses is not known in advance.
    rare: HashMap<u32, EventCounts>,
    /// Threads that have recorded anything.
    seen: HashSet<Tid>,
    /// What was missed by object, if that is asked for.
    objects: Option<Box<Objects>>,
    /// Misses are told by these, and not only what allocators do.
    by_object: bool,
    /// If calls of allocators are counted.
    allocations: Option<Allocations>,
    /// What threads share.
    shared: Shared,
    /// Bounds of the distances of what is missed, if they are asked for.
    bounded: Option<Box<Bounded>>,
    /// What the last level would take out of first levels, if it includes them.
    included: Option<Box<Included>>,
    /// What there is instead if every access is told.
    every: Option<Box<every::Every>>,
    /// What there is instead once a thread has left context 0. What was found before belongs to it.
    contexts: Option<Box<contexts::Contexts>>,
}

/// How many lines of one cache each context found that another one had brought in: reuses by (finder, owner).
pub type Reuse = BTreeMap<(u64, u64), u64>;

/// See the module's description.
#[derive(Debug)]
pub struct Simulator {
    geometries: Option<Geometries>,
    /// Beyond the first level, if that is more than their last level.
    levels: Option<Levels>,
    tlbs: Option<Tlbs>,
    /// These are simulated from every access, and not by the program itself.
    tlbs_of_every: bool,
    spaces: HashMap<SpaceId, Sites>,
    processes: HashMap<Pid, Process>,
    findings: Findings,
    anew: bool,
    /// Where variables of files are, if objects are asked for.
    images: Option<Reader>,
    /// Addresses of misses are folded.
    streams: bool,
    /// Calls of allocators are events.
    allocations: bool,
    /// Misses are told by object, and not only what allocators do.
    by_object: bool,
    /// Every access is told, for this, or when lines that go were used last.
    distances: Option<distances::Wanted>,
    /// Lines that threads share are found.
    sharing: Option<sharing::Wanted>,
    /// That takes every access.
    sharing_of_every: bool,
}

impl Simulator {
    /// A simulator of these caches (or none), and the place where its findings will be.
    #[must_use]
    pub fn new(geometries: Option<Geometries>) -> (Self, Findings) {
        let findings = Findings::default();
        let (spaces, processes) = (HashMap::new(), HashMap::new());
        let simulator = Self {
            geometries,
            levels: None,
            tlbs: None,
            tlbs_of_every: false,
            spaces,
            processes,
            findings: findings.clone(),
            anew: false,
            images: None,
            streams: false,
            allocations: false,
            by_object: false,
            distances: None,
            sharing: None,
            sharing_of_every: false,
        };
        (simulator, findings)
    }

    /// Simulates these levels beyond the first, instead of the last level alone.
    pub fn with_levels(&mut self, levels: Option<Levels>) {
        self.levels = levels;
    }

    /// Simulates these TLBs: from every access, or from what first levels have missed.
    pub fn with_tlbs(&mut self, tlbs: Option<Tlbs>, of_every: bool) {
        (self.tlbs, self.tlbs_of_every) = (tlbs, of_every && tlbs.is_some());
    }

    /// Books what is missed on objects, too. `images` reads where those of files are.
    /// `streams`: and folds the addresses of each.
    pub fn find_objects(&mut self, images: Reader, streams: bool) {
        self.images = Some(images);
        (self.by_object, self.streams) = (true, streams);
    }

    /// Calls of allocators are counted where they are made. `images` as of [`Simulator::find_objects`].
    pub fn count_allocations(&mut self, images: Reader) {
        self.images = Some(images);
        self.allocations = true;
    }

    /// Finds stack distances: every access is told, and not only those that miss, so first levels are simulated, too; or bounds, from
    /// what is told of lines that go.
    pub fn find_distances(&mut self, wanted: Option<distances::Wanted>) {
        self.distances = wanted;
    }

    /// It is told when threads begin: finds which lines they share, from every access, or from those that use other bytes than their thread
    /// is known to have used.
    pub fn find_sharing(&mut self, wanted: Option<sharing::Wanted>, of_every: bool) {
        (self.sharing, self.sharing_of_every) = (wanted, of_every && wanted.is_some());
    }

    fn hears_all(&self) -> bool {
        self.distances.is_some_and(|wanted| wanted.bounds.is_none()) || self.sharing_of_every || self.tlbs_of_every
    }

    /// Forked processes have nothing of what was found before they were created.
    pub fn forks_count_anew(&mut self) {
        self.anew = true;
    }
}

impl Sink for Simulator {
    fn sites(&mut self, space: SpaceId, sites: &[Site], specials: &[Special]) {
        let all = self.hears_all();
        let to = self.spaces.entry(space).or_default();
        let most = self.geometries.as_ref().map_or(u32::MAX, Geometries::min_line).min(u32::from(u16::MAX)) as u16;
        to.hot.extend(sites.iter().map(|s| {
            let (size, kind) = match s.kind {
                SiteKind::Fetch => (u16::from(s.len), HotKind::Fetch),
                SiteKind::Read(size) | SiteKind::Write(size) | SiteKind::Modify(size) => {
                    (size.min(most), HotKind::Access)
                }
                SiteKind::Conditional | SiteKind::Indirect => (0, HotKind::Branch),
                _ => (0, HotKind::Rare),
            };
            Hot { addr: s.addr.0, size, kind }
        }));
        if all {
            to.told.extend(sites.iter().map(|s| Told::new(s.kind, s.len)));
        }
        to.all.extend_from_slice(sites);
        to.specials.extend_from_slice(specials);
    }

    fn space_copied(&mut self, from: SpaceId, to: SpaceId) {
        let copy = self.spaces.get(&from).cloned().unwrap_or_default();
        self.spaces.insert(to, copy);
    }

    fn image(&mut self, pid: Pid, space: SpaceId) {
        let includes = self.levels.is_some_and(|levels| levels.inclusion == Inclusion::Inclusive);
        let beyond = match (&self.geometries, &self.levels) {
            (None, _) => BeyondFirst::Nothing,
            (Some(_), Some(levels)) => {
                let mut beyond = Box::new(Beyond::new(levels));
                beyond.tell_left();
                BeyondFirst::Deep(beyond)
            }
            (Some(geometries), None) => BeyondFirst::Plain(LastLevel::new(geometries)),
        };
        match &beyond {
            BeyondFirst::Nothing => {}
            BeyondFirst::Plain(last_level) => own_memory::prefer_large_pages_within(last_level.addresses()),
            BeyondFirst::Deep(levels) => own_memory::prefer_large_pages_within(levels.addresses()),
        }
        let line = self.geometries.as_ref().filter(|_| self.streams).map(|g| g.d1.line());
        let of = || line.map_or_else(Objects::default, |line| Objects::with_streams(line.into()));
        let mut objects = self.images.is_some().then(|| Box::new(of()));
        let sharing = self.sharing.map(|wanted| sharing::Sharing::new(wanted, Tid::main_of(pid)));
        objects.iter_mut().filter(|_| sharing.is_some()).for_each(|objects| objects.watch());
        let all = self.hears_all();
        let most = self.geometries.as_ref().map_or(u32::MAX, Geometries::min_line).min(u32::from(u16::MAX)) as u16;
        self.processes.insert(
            pid,
            Process {
                space,
                beyond,
                objects,
                by_object: self.by_object,
                allocations: self.allocations.then(HashMap::new),
                tallies: Vec::new(),
                second: Vec::new(),
                pages: Vec::new(),
                buffers: HashMap::new(),
                running: None,
                tlbs: self.tlbs,
                rare: HashMap::new(),
                seen: HashSet::new(),
                shared: Shared::new(sharing, most),
                bounded: self.distances.and_then(Bounded::new).map(Box::new),
                included: self.geometries.filter(|_| includes).map(|g| Box::new(Included::new(g.d1, g.i1))),
                every: all.then(|| Box::new(every::Every::new(self.distances, self.geometries, self.tlbs))),
                contexts: None,
            },
        );
    }

    fn mapped(&mut self, space: SpaceId, modules: &[Module]) {
        if let Some(reader) = &mut self.images {
            self.spaces.entry(space).or_default().images = reader.of(modules);
            let of_space = self.processes.values_mut().filter(|p| p.space == space);
            of_space.for_each(|p| p.shared.mapped());
        }
    }

    fn stack(&mut self, pid: Pid, tid: Tid, range: Range<u64>) {
        if let Some(objects) = self.processes.get_mut(&pid).and_then(|p| p.objects.as_mut()) {
            objects.stack(tid, range);
        }
    }

    fn moved(&mut self, pid: Pid, space: SpaceId) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.space = space;
        }
    }

    fn forked(&mut self, parent: Pid, tid: Tid, child: Pid) {
        let Some(mut copy) = self.processes.get(&parent).cloned() else { return };
        let first = Tid::main_of(child);
        copy.seen = copy.seen.take(&tid).map(|_| first).into_iter().collect();
        if let Some(contexts) = &mut copy.contexts {
            contexts.forked(tid, first);
        }
        copy.objects.iter_mut().for_each(|objects| objects.forked(tid, first));
        let buffers = copy.buffers.remove(&tid);
        copy.buffers = buffers.map(|buffers| (first, buffers)).into_iter().collect();
        if let BeyondFirst::Deep(levels) = &mut copy.beyond {
            levels.forked(tid.0, first.0);
        }
        copy.every.iter_mut().for_each(|every| every.forked(tid, first));
        copy.shared.forked(tid, first);
        copy.bounded.iter_mut().for_each(|bounded| bounded.forked(tid, first));
        copy.included.iter_mut().for_each(|included| included.forked(tid.0, first.0));
        if self.anew {
            copy.tallies.fill(Tally::default());
            copy.second.fill(0);
            copy.pages.fill([0; 2]);
            copy.rare.clear();
            copy.allocations.iter_mut().for_each(HashMap::clear);
            copy.contexts.iter_mut().for_each(|contexts| contexts.forget());
            copy.objects.iter_mut().for_each(|objects| objects.forget());
            copy.every.iter_mut().for_each(|every| every.forget());
            copy.shared.forget();
            copy.bounded.iter_mut().for_each(|bounded| bounded.forget());
            copy.included.iter_mut().for_each(|included| included.forget());
        }
        self.processes.insert(child, copy);
    }

    fn records(&mut self, pid: Pid, tid: Tid, words: &[u32]) {
        fault::point("records");
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let Some(sites) = self.spaces.get(&p.space) else { return };
        p.tallies.resize(sites.hot.len(), Tally::default());
        p.objects.iter_mut().for_each(|objects| objects.thread(tid));
        p.shared.runs(tid);
        p.bounded.iter_mut().for_each(|bounded| bounded.runs(tid, sites.hot.len()));
        p.included.iter_mut().for_each(|included| included.run(tid.0));
        if p.every.is_some() {
            return every::records(p, sites, tid, words);
        }
        if p.contexts.is_some() {
            return contexts::records(p, sites, tid, words);
        }
        if words.first().is_some_and(|site| *site != CONTEXT_SITE) {
            p.seen.insert(tid);
        }
        p.running = p.tlbs.map(|tlbs| {
            p.pages.resize(sites.hot.len(), [0; 2]);
            p.buffers.remove(&tid).unwrap_or_else(|| Behind::new(&tlbs))
        });
        let mut beyond = std::mem::take(&mut p.beyond);
        let rest = match &mut beyond {
            BeyondFirst::Nothing => p.go_through(sites, &mut Nobody, words),
            BeyondFirst::Plain(last_level) => p.go_through(sites, last_level, words),
            BeyondFirst::Deep(levels) => {
                levels.run(tid.0);
                p.second.resize(if levels.second() { sites.hot.len() } else { 0 }, 0);
                p.go_through(sites, &mut **levels, words)
            }
        };
        if let Some(buffers) = p.running.take() {
            p.buffers.insert(tid, buffers);
        }
        if let Some(rest) = rest {
            // Contexts have the caches from here on.
            p.contexts = Some(Box::new(contexts::Contexts::new(beyond, &p.seen)));
            contexts::records(p, sites, tid, rest);
        } else {
            p.beyond = beyond;
        }
    }

    fn thread_born(&mut self, pid: Pid, tid: Tid) {
        self.processes.get_mut(&pid).into_iter().for_each(|p| p.shared.thread_born(tid));
    }

    fn thread_ended(&mut self, pid: Pid, tid: Tid) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.seen.remove(&tid);
            p.buffers.remove(&tid);
            p.objects.iter_mut().for_each(|objects| objects.thread_ended(tid));
            p.every.iter_mut().for_each(|every| every.thread_ended(tid));
            p.shared.thread_ended(tid);
            p.bounded.iter_mut().for_each(|bounded| bounded.thread_ended(tid));
            p.included.iter_mut().for_each(|included| included.ended(tid.0));
            if let Some(contexts) = &mut p.contexts {
                contexts.thread_ended(tid);
            }
            if let BeyondFirst::Deep(levels) = &mut p.beyond {
                levels.ended(tid.0);
            }
        }
    }

    /// Tells what was found so far, but for objects, distances and sharing: those are told at the end.
    fn asked(&mut self, pid: Pid, _tid: Option<Tid>, _ask: &Query) {
        let Some(p) = self.processes.get(&pid) else { return };
        let Some(sites) = self.spaces.get(&p.space) else { return };
        self.findings.put(pid, p.found(sites));
    }

    fn process_ended(&mut self, pid: Pid) {
        let Some(mut p) = self.processes.remove(&pid) else { return };
        let Some(sites) = self.spaces.get(&p.space) else { return };
        let mut found = p.found(sites);
        found.objects = p.objects.filter(|_| self.by_object).map(|objects| objects.found()).unwrap_or_default();
        let site = |n: usize| sites.all.get(n).map(|site| objects::Site { module: site.module, addr: site.addr.0 });
        let bounds = p.bounded.map(|bounded| bounded.found(site));
        found.distances = bounds.or_else(|| p.every.and_then(|every| every.found(&sites.all)));
        found.sharing = p.shared.found(&sites.all);
        self.findings.put(pid, found);
    }
}

impl Process {
    /// What was found, but for objects, distances and sharing.
    fn found(&self, sites: &Sites) -> Found {
        let p = self;
        let mut found = Vec::new();
        let second = p.second.iter().copied().chain(std::iter::repeat(0));
        let pages = p.pages.iter().copied().chain(std::iter::repeat([0; 2]));
        for (((site, Tally([l1, ll])), l2), pages) in sites.all.iter().zip(&p.tallies).zip(second).zip(pages) {
            if *l1 == 0 && pages[0] == 0 {
                continue;
            }
            let mut c = misses(site.kind, [*l1, l2, *ll]);
            add_pages(site.kind, pages, &mut c);
            found.push(Finding { module: site.module as usize, addr: site.addr, context: 0, counts: c });
        }
        for (&site, &counts) in &p.rare {
            let site = sites.all[site as usize];
            found.push(Finding { module: site.module as usize, addr: site.addr, context: 0, counts });
        }
        for (&(context, site), &[alloc_count, alloc_size]) in p.allocations.iter().flatten() {
            // Within the call that returns there.
            let addr = GuestAddr(site.addr.wrapping_sub(1));
            let counts = EventCounts { alloc_count, alloc_size, ..EventCounts::default() };
            found.push(Finding { module: site.module as usize, addr, context, counts });
        }
        let included = p.included.as_ref().map(|included| included.counts());
        let mut found = Found { findings: found, included, ..Found::default() };
        if let Some(contexts) = p.contexts.clone() {
            contexts.add_to(&sites.all, &mut found);
        }
        found
    }

    /// Goes through what a thread has recorded. Returns what is left where contexts begin.
    fn go_through<'w>(&mut self, sites: &Sites, asked: &mut impl Ask, words: &'w [u32]) -> Option<&'w [u32]> {
        let mut rest = words;
        // Of misses as many, where each comes behind its lines.
        let records = if self.bounded.is_some() { 2 * AHEAD } else { AHEAD };
        let mut ahead =
            (0..records).fold(words, |ahead, _| look_ahead(&self.tallies, &self.bounded, asked, sites, ahead));
        while let Some((&site, operands)) = rest.split_first() {
            ahead = look_ahead(&self.tallies, &self.bounded, asked, sites, ahead);
            if site == CONTEXT_SITE {
                return Some(rest);
            }
            let Some(hot) = sites.hot.get(site as usize) else {
                if site == LINE_BROUGHT || site == CODE_BROUGHT {
                    rest = brought(&mut self.included, &mut self.bounded, rest)?;
                    continue;
                }
                if site == PAGE_MISSED {
                    rest = self.page_missed(rest)?;
                    continue;
                }
                if site == BYTES_USED {
                    let objects = self.objects.as_deref_mut().filter(|_| self.by_object);
                    rest = self.shared.bytes_used(objects, sites.of(), rest)?;
                    continue;
                }
                if site == LINE_MOVED {
                    let objects = self.objects.as_deref_mut().filter(|_| self.by_object);
                    rest = self.shared.line_moved(objects, sites.of(), rest)?;
                    continue;
                }
                rest = object_record(&mut self.objects, &mut self.allocations, 0, rest)?;
                self.shared.close(self.objects.as_deref_mut());
                continue;
            };
            let tally = &mut self.tallies[site as usize].0;
            let mut last_level = |addr, size: u16, data| {
                let answer = asked.ask(Request { instruction: hot.addr, addr, size: size.into(), data });
                if asked.second() {
                    self.second[site as usize] += u64::from(answer != Answer::Second);
                }
                if let Some(included) = &mut self.included {
                    if !data {
                        included.fetched(hot.addr, hot.size);
                    }
                    asked.each_left(|addresses| included.left(&addresses));
                }
                answer == Answer::Memory
            };
            let mut book = |addr, size: u16, missed| {
                let objects = self.objects.as_mut().filter(|_| self.by_object);
                let at = &sites.all[site as usize];
                let object = objects.map(|objects| objects.missed_at(&sites.images, at, (addr, size), missed));
                if let Some(bounded) = &mut self.bounded {
                    bounded.missed(site, addr, size, object);
                }
            };
            match hot.kind {
                HotKind::Fetch => {
                    rest = operands;
                    tally[0] += 1;
                    tally[1] += u64::from(last_level(hot.addr, hot.size, false));
                }
                HotKind::Access => {
                    let (addr, after) = operands::number(operands)?;
                    rest = after;
                    let missed = last_level(addr, hot.size, true);
                    tally[0] += 1;
                    tally[1] += u64::from(missed);
                    book(addr, hot.size, missed);
                }
                HotKind::Branch => {
                    rest = operands;
                    tally[0] += 1;
                }
                HotKind::Rare => {
                    let kind = sites.all[site as usize].kind;
                    let (record, after) = rest.split_at_checked(kind.words())?;
                    rest = after;
                    if let SiteKind::Sized { .. } = kind {
                        let (addr, size) = (operands::joined(record[1], record[2]), record[3] as u16);
                        let missed = last_level(addr, size, true);
                        tally[0] += 1;
                        tally[1] += u64::from(missed);
                        book(addr, size, missed);
                    } else {
                        accesses(kind, record, &sites.specials, self.rare.entry(site).or_default());
                        let objects = self.objects.as_deref_mut().filter(|_| self.by_object);
                        self.shared.done(objects, sites.of(), site, record);
                    }
                }
            }
        }
        None
    }
}

/// A record of a line that a first-level cache brings in. The words behind it.
#[inline]
fn brought<'w>(
    included: &mut Option<Box<Included>>,
    bounded: &mut Option<Box<Bounded>>,
    record: &'w [u32],
) -> Option<&'w [u32]> {
    if record.first() == Some(&CODE_BROUGHT) {
        let ([_, way], rest) = record.split_first_chunk::<CODE_BROUGHT_WORDS>()?;
        included.iter_mut().for_each(|included| included.code((way / CODE_WAY) as usize, way & 1 != 0));
        return Some(rest);
    }
    let (brought, rest) = LineBrought::read(record)?;
    included.iter_mut().for_each(|included| included.data(brought.line, brought.gone.map(|[line, _]| line)));
    bounded.iter_mut().for_each(|bounded| bounded.brought(brought));
    Some(rest)
}

/// A record that is none of a site, in a context. The words behind it, if it is one of objects.
fn object_record<'w>(
    objects: &mut Option<Box<Objects>>,
    allocations: &mut Option<Allocations>,
    context: u64,
    words: &'w [u32],
) -> Option<&'w [u32]> {
    let objects = objects.as_mut()?;
    let rest = objects.record(words);
    if let (Some(allocations), Some(allocated)) = (allocations, objects.allocated()) {
        let [count, bytes] = allocations.entry((context, allocated.site)).or_default();
        (*count, *bytes) = (*count + 1, bytes.wrapping_add(allocated.size));
    }
    rest
}

/// Asks for what the record at the start of `records` will need of the tables, which are mostly larger than the processor's
/// caches. Returns the records behind it.
#[inline(always)]
fn look_ahead<'a>(
    tallies: &[Tally],
    bounded: &Option<Box<Bounded>>,
    asked: &impl Ask,
    sites: &Sites,
    records: &'a [u32],
) -> &'a [u32] {
    let Some((&site, operands)) = records.split_first() else { return records };
    let Some(hot) = sites.hot.get(site as usize) else {
        if let (LINE_BROUGHT, Some(bounded)) = (site, bounded) {
            let Some((brought, rest)) = LineBrought::read(records) else { return &[] };
            bounded.looks_at(brought).into_iter().flatten().for_each(own_memory::prefetch);
            return rest;
        }
        let words = match site {
            LINE_BROUGHT => Some(LineBrought::WORDS),
            CODE_BROUGHT => Some(CODE_BROUGHT_WORDS),
            PAGE_MISSED => Some(PAGE_WORDS),
            BYTES_USED => Some(BYTES_WORDS),
            LINE_MOVED => Some(MOVED_WORDS),
            _ => object_words(site),
        };
        return words.and_then(|words| records.get(words..)).unwrap_or_default();
    };
    own_memory::prefetch(std::ptr::from_ref(&tallies[site as usize]).addr());
    let line = |addr| {
        asked.looks_at(addr).into_iter().flatten().for_each(own_memory::prefetch);
    };
    match (hot.kind, operands) {
        (HotKind::Fetch, _) => {
            line(hot.addr);
            operands
        }
        (HotKind::Access, [low, high, after @ ..]) => {
            line(operands::joined(*low, *high));
            after
        }
        (HotKind::Access, _) => &[],
        (HotKind::Branch, _) => operands,
        (HotKind::Rare, _) => records.get(sites.all[site as usize].kind.words()..).unwrap_or_default(),
    }
}

/// So many misses (mispredictions) of a site that is not a rare one.
fn misses(kind: SiteKind, [l1, l2, ll]: [u64; 3]) -> EventCounts {
    let mut c = EventCounts::default();
    match (CachePort::of(kind), kind) {
        (Some(CachePort::Fetch), _) => (c.i1mr, c.i2mr, c.ilmr) = (l1, l2, ll),
        (Some(CachePort::Write), _) => (c.d1mw, c.d2mw, c.dlmw) = (l1, l2, ll),
        (Some(CachePort::Read), _) => (c.d1mr, c.d2mr, c.dlmr) = (l1, l2, ll),
        (None, SiteKind::Conditional) => c.bcm = l1,
        (None, SiteKind::Indirect) => c.bim = l1,
        _ => {}
    }
    c
}

/// Adds the accesses of an instruction that are not known in advance.
fn accesses(kind: SiteKind, record: &[u32], specials: &[Special], counts: &mut EventCounts) {
    let [reads, writes] = kind.accesses(record, specials);
    (counts.dr, counts.dw) = (counts.dr + reads, counts.dw + writes);
}
