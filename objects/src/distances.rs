//! Stack distances of a process's data accesses, as they are asked for and as they are found: of every access, or within bounds of those
//! that miss D1 ([`Bounded`]).
//!
//! Each thread's are those of its own accesses: what others use meanwhile does not count. Rows of the file are made in
//! [`super::report`], and records are gone through in the simulator of `grind_analysis`.

use std::collections::HashMap;

use cg_format::mem::reuse::{BINS, ReuseHead};
use cg_sim::bounds::{Bounds, Gone};
use cg_sim::distance::{self, Histogram, Sample};
use grind_trace::LineBrought;
use grind_types::Tid;
use grind_types::hash::Map;

use super::Site;

const _: () = assert!(BINS == distance::BINS);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of a line: a power of two.
    pub line: u32,
    /// Which lines are looked at.
    pub sample: Sample,
    /// Bounds are, of what misses a first-level cache of so many sets and ways. `None`: of every access the distance itself.
    pub bounds: Option<[u32; 2]>,
}

/// The accesses of an instruction.
#[derive(Clone, Debug)]
pub struct Row {
    /// The instruction.
    pub site: Site,
    /// What they access, if objects are asked for.
    pub object: Option<u32>,
    /// By distance; with bounds by the lower one.
    pub least: Histogram,
    /// With bounds by the upper one.
    pub most: Option<Box<Histogram>>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was asked for.
    pub wanted: Wanted,
    /// By instruction, and by object if those are asked for, in no order.
    pub sites: Vec<Row>,
}

impl Found {
    /// What the first line of a file says of them; rows are counted when it is finished.
    #[must_use]
    pub fn head(&self) -> ReuseHead {
        let hits = self.wanted.bounds.map(|_| 0);
        ReuseHead { count: 0, line: self.wanted.line.into(), sample: self.wanted.sample.rate(), accesses: 0, hits }
    }
}

/// How many bins lie beside one another, for those distances that most accesses have.
const NEAR: usize = 7;

/// Distances by the number of a site.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    /// The first bins of each site, and the lines that are new.
    near: Vec<[u64; NEAR + 1]>,
    /// Those beyond.
    far: Vec<Option<Box<Histogram>>>,
    /// By site and object, if objects are asked for.
    of_objects: Map<(u32, u32), Box<Histogram>>,
}

impl Tallies {
    /// There are so many sites.
    pub fn resize(&mut self, sites: usize) {
        self.near.resize(sites, [0; NEAR + 1]);
        self.far.resize(sites, None);
    }

    /// An access of a site, at this distance, or of a line that is new.
    #[inline]
    pub fn add(&mut self, site: u32, distance: Option<u64>) {
        let near = &mut self.near[site as usize];
        match distance {
            None => near[NEAR] += 1,
            Some(distance) if distance < 1 << (NEAR - 1) => near[distance::bin(distance)] += 1,
            Some(_) => self.far[site as usize].get_or_insert_default().add(distance),
        }
    }

    /// The same of an access to an object.
    pub fn add_of(&mut self, site: u32, object: u32, distance: Option<u64>) {
        self.of_objects.entry((site, object)).or_default().add(distance);
    }

    fn of(&self, site: usize) -> Histogram {
        let mut all = self.far[site].as_deref().copied().unwrap_or_default();
        let [near @ .., first] = &self.near[site];
        all.bins[..NEAR].copy_from_slice(near);
        all.first = *first;
        all
    }

    /// By instruction, in no order; `site` is that of a number.
    #[must_use]
    pub fn found(&self, site: impl Fn(usize) -> Option<Site>) -> Vec<Row> {
        let mut rows: HashMap<(Site, Option<u32>), Row> = HashMap::new();
        let of_sites = (0..self.near.len()).map(|n| (n, None, self.of(n)));
        let of_objects = self.of_objects.iter().map(|((n, object), least)| (*n as usize, Some(*object), **least));
        for (n, object, least) in of_sites.chain(of_objects) {
            let Some(site) = site(n).filter(|_| least != Histogram::default()) else { continue };
            let new = || Row { site, object, least: Histogram::default(), most: None };
            rows.entry((site, object)).or_insert_with(new).least.merge(&least);
        }
        rows.into_values().collect()
    }
}

/// What is known of the access whose miss is told next.
#[derive(Clone, Copy, Debug, Default)]
struct Access {
    /// Its lines that were brought in so far.
    lines: u32,
    /// The farthest of them.
    bounds: [u64; 2],
    /// One of them was never used before.
    first: bool,
}

/// A thread's.
#[derive(Clone, Debug)]
struct Thread {
    bounds: Bounds,
    access: Access,
}

/// The bounds of what a process's threads miss.
///
/// Invariants: each miss has one place in the histograms of its instruction; a line of an access to two that is hit is counted in its
/// upper bound, since it may be the farther one.
#[derive(Clone, Debug)]
pub struct Bounded {
    wanted: Wanted,
    shape: [u32; 2],
    line_bits: u32,
    threads: HashMap<Tid, Thread>,
    /// The thread whose records are gone through.
    running: Option<(Tid, Thread)>,
    /// By site: by the lower bound, and by the upper one.
    tallies: Vec<Option<Box<[Histogram; 2]>>>,
    /// By site and object, if objects are asked for.
    of_objects: Map<(u32, u32), Box<[Histogram; 2]>>,
}

impl Bounded {
    /// Nothing has been missed so far. `None`: no bounds are wanted.
    #[must_use]
    pub fn new(wanted: Wanted) -> Option<Self> {
        let (shape, line_bits) = (wanted.bounds?, wanted.line.max(1).trailing_zeros());
        let (threads, tallies, of_objects) = (HashMap::new(), Vec::new(), Map::default());
        Some(Self { wanted, shape, line_bits, threads, running: None, tallies, of_objects })
    }

    /// Records of this thread are next, of so many sites.
    pub fn runs(&mut self, tid: Tid, sites: usize) {
        self.tallies.resize_with(sites.max(self.tallies.len()), || None);
        if self.running.as_ref().is_some_and(|(running, _)| *running == tid) {
            return;
        }
        self.threads.extend(self.running.take());
        let [sets, ways] = self.shape;
        let new = || Thread { bounds: Bounds::new(sets, ways), access: Access::default() };
        self.running = Some((tid, self.threads.remove(&tid).unwrap_or_else(new)));
    }

    /// A line is brought in.
    #[inline]
    pub fn brought(&mut self, LineBrought { line, gone, now }: LineBrought) {
        let Some((_, Thread { bounds, access })) = &mut self.running else { return };
        let gone = gone.map(|[line, time]| Gone { line: line >> self.line_bits, time });
        access.lines += 1;
        match bounds.brought(line >> self.line_bits, gone, now) {
            Some([least, most]) => access.bounds = [access.bounds[0].max(least), access.bounds[1].max(most)],
            None => access.first = true,
        }
    }

    /// The addresses, in this process, of what will be looked at for a record of a line that is brought in: of it, and of the one that goes.
    #[inline]
    #[must_use]
    pub fn looks_at(&self, LineBrought { line, gone, .. }: LineBrought) -> [Option<usize>; 2] {
        let Some((_, Thread { bounds, .. })) = &self.running else { return [None; 2] };
        let at = |addr: u64| bounds.address(addr >> self.line_bits);
        [at(line), gone.and_then(|[line, _]| at(line))]
    }

    /// The access that these lines were brought in for has missed, at this object, if objects are asked for.
    #[inline]
    pub fn missed(&mut self, site: u32, addr: u64, size: u16, object: Option<u32>) {
        let Some((_, Thread { bounds, access })) = &mut self.running else { return };
        let Access { lines, bounds: [least, mut most], first } = std::mem::take(access);
        let ends = [addr, addr.wrapping_add(u64::from(size.max(1)) - 1)].map(|addr| addr >> self.line_bits);
        if lines == 1 && ends[0] != ends[1] {
            // Which of the two was missed is not looked up: it has been used just now, and is not far.
            most = ends.iter().fold(most, |most, line| most.max(bounds.at_most(*line)));
        }
        let tally = match object {
            Some(object) => self.of_objects.entry((site, object)).or_default(),
            None => self.tallies[site as usize].get_or_insert_default(),
        };
        for (tally, bound) in tally.iter_mut().zip([least, most]) {
            tally.add((!first).then_some(bound));
        }
    }

    /// Keeps only what a child has that thread `tid` has created.
    pub fn forked(&mut self, tid: Tid, child: Tid) {
        self.threads.extend(self.running.take());
        let thread = self.threads.remove(&tid);
        self.threads.clear();
        self.threads.extend(thread.map(|thread| (child, thread)));
    }

    /// Nothing has been found so far; what threads have used is as it is.
    pub fn forget(&mut self) {
        self.tallies.fill(None);
        self.of_objects.clear();
    }

    /// A thread has ended.
    pub fn thread_ended(&mut self, tid: Tid) {
        self.threads.extend(self.running.take());
        self.threads.remove(&tid);
    }

    /// What was found; `site` is the instruction of a number.
    #[must_use]
    pub fn found(self, site: impl Fn(usize) -> Option<Site>) -> Found {
        let mut rows: HashMap<(Site, Option<u32>), Row> = HashMap::new();
        let of_sites = self.tallies.into_iter().enumerate().filter_map(|(n, tally)| Some((n, None, tally?)));
        let of_objects = self.of_objects.into_iter().map(|((n, object), tally)| (n as usize, Some(object), tally));
        for (n, object, tally) in of_sites.chain(of_objects) {
            let Some(site) = site(n) else { continue };
            let [least, most] = *tally;
            let new = || Row { site, object, least: Histogram::default(), most: None };
            let row = rows.entry((site, object)).or_insert_with(new);
            row.least.merge(&least);
            row.most.get_or_insert_default().merge(&most);
        }
        Found { wanted: self.wanted, sites: rows.into_values().collect() }
    }
}
