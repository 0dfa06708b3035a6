//! Lines that the threads of a process have shared, as they are asked for and as they are found: who has used which bytes, by the
//! object that lies there if objects are asked for, and by the instructions that did.
//!
//! The model is [`cg_sim::sharing`], rows of the file are made in [`super::report`], and records are gone through in
//! the simulator of `grind_analysis`. Invariant: threads are told apart by the order in which they were born, so that numbers are those of every run.

pub mod told;

use std::collections::HashMap;
use std::ops::Range;

use cg_format::mem::sharing::{self as rows, Order, SharingHead};
use cg_sim::sharing::{self, Move, NO_OBJECT, Place, Touch};
use grind_trace::Done;
use grind_types::Tid;

use super::{Images, Objects, Site};

/// What is to be found of shared lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Which threads use which bytes of them, and how.
    Lines,
    /// How often, too.
    Counts,
    /// Beside lines, how often these go from thread to thread as the threads of this run take turns.
    Order,
}

impl Detail {
    /// The one of that name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "lines" => Some(Self::Lines),
            "counts" => Some(Self::Counts),
            "order" => Some(Self::Order),
            _ => None,
        }
    }
}

/// Shared lines that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of a line.
    pub line: u32,
    /// What of them.
    pub detail: Detail,
}

/// Accesses of an instruction, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Its site.
    pub site: u32,
    /// What they do.
    pub done: Done,
    /// The first byte.
    pub addr: u64,
    /// Bytes of each.
    pub size: u16,
    /// How many there are.
    pub times: u64,
}

/// How the accesses of a process are shared among its threads.
#[derive(Clone, Debug)]
pub struct Sharing {
    lines: sharing::Sharing,
    line_bytes: u64,
    detail: Detail,
    /// Numbers of those that live.
    threads: HashMap<Tid, u32>,
}

impl Sharing {
    /// Those of a process whose first thread is `tid`; lines have so many bytes, at most [`sharing::MOST`].
    #[must_use]
    pub fn new(Wanted { line, detail }: Wanted, tid: Tid) -> Self {
        let mut all = Self {
            lines: sharing::Sharing::new(line),
            line_bytes: line.clamp(1, sharing::MOST).into(),
            detail,
            threads: HashMap::new(),
        };
        all.born(tid);
        all
    }

    /// A thread begins.
    pub fn born(&mut self, tid: Tid) {
        let number = self.lines.begins();
        if let Some(before) = self.threads.insert(tid, number) {
            self.lines.ends(before);
        }
    }

    /// A thread has ended.
    pub fn ended(&mut self, tid: Tid) {
        if let Some(number) = self.threads.remove(&tid) {
            self.lines.ends(number);
        }
    }

    /// Goes on in a process that `child` is the only thread of, a copy of `tid`.
    pub fn forked(&mut self, tid: Tid, child: Tid) {
        let number = self.threads.remove(&tid);
        self.lines.forked(number);
        self.threads.clear();
        match number {
            Some(number) => _ = self.threads.insert(child, number),
            None => self.born(child),
        }
    }

    /// Forgets what has been found.
    pub fn forget(&mut self) {
        self.lines.forget();
    }

    /// What lies at addresses may be something else from now on, but for what [`Sharing::close`] is told of.
    pub fn look_again(&mut self) {
        self.lines.settle();
    }

    /// Something else lies there from now on.
    pub fn close(&mut self, place: Range<u64>) {
        self.lines.close(place);
    }

    /// The number of a thread, if others live beside it.
    #[must_use]
    pub fn sharer(&self, tid: Tid) -> Option<u32> {
        self.threads.get(&tid).copied().filter(|_| !self.lines.alone())
    }

    /// A thread of this number makes accesses. `site` is asked where that is, `objects` for what lies there.
    #[inline]
    pub fn touch(
        &mut self,
        thread: u32,
        used: Use,
        site: impl Fn() -> Site,
        mut objects: Option<(&mut Objects, &Images)>,
    ) {
        let Use { site: number, done, addr, size, times } = used;
        let (reads, writes) = (done != Done::Write, done != Done::Read);
        let line = self.line_bytes;
        let place = |addr: u64| lies(addr, line, &site, &mut objects);
        let touch = Touch { addr, size, reads, writes, site: number };
        if times == 1 {
            self.lines.touch(thread, touch, place);
        } else {
            self.lines.sweep(thread, touch, times, place);
        }
    }

    /// The number of a thread that lives.
    #[must_use]
    pub fn living(&self, tid: Tid) -> Option<u32> {
        self.threads.get(&tid).copied()
    }

    /// A thread of this number has come by the line of an address; nobody knows how if there was no room for that.
    pub fn moved(
        &mut self,
        thread: u32,
        addr: u64,
        how: Option<Move>,
        site: impl Fn() -> Site,
        mut objects: Option<(&mut Objects, &Images)>,
    ) {
        let line = self.line_bytes;
        match how {
            Some(how) => self.lines.moved(thread, addr, how, |addr| lies(addr, line, &site, &mut objects)),
            None => self.lines.unplaced(),
        }
    }

    /// All that was shared; `site` is asked where a site is.
    #[must_use]
    pub fn found(self, site: impl Fn(u32) -> Site) -> Found {
        let mut found = self.lines.found();
        if self.detail != Detail::Counts {
            // What has been told is not every access.
            let uses = found.rows.iter_mut().flat_map(|row| &mut row.uses);
            uses.for_each(|used| (used.reads, used.writes) = (0, 0));
        }
        let uses =
            |row: &sharing::Row| row.uses.iter().map(|used| used.sites.iter().map(|n| site(*n)).collect()).collect();
        let sites = found.rows.iter().map(uses).collect();
        Found { found, sites, detail: self.detail }
    }
}

/// What lies at an address that an instruction accesses, in a line of so many bytes.
fn lies(addr: u64, line: u64, site: &impl Fn() -> Site, objects: &mut Option<(&mut Objects, &Images)>) -> Place {
    let start = addr & !(line - 1);
    let lies = start..start.saturating_add(line);
    match objects {
        Some((objects, images)) => {
            let found = objects.lies(images, addr, lies, site());
            Place { object: found.object, start: found.start, known: found.known }
        }
        None => Place { object: NO_OBJECT, start, known: lies },
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Rows, and sums by number of the object.
    pub found: sharing::Found,
    /// For each use of each row the instructions.
    pub sites: Vec<Vec<Vec<Site>>>,
    /// What has been looked for.
    pub detail: Detail,
}

impl Found {
    /// What the first line of a file says of them; rows are counted when it is finished.
    #[must_use]
    pub fn head(&self) -> SharingHead {
        let (line, threads, others) = (self.found.line.into(), self.found.threads as u64, self.found.others);
        let uncounted = self.detail != Detail::Counts;
        let order = (self.detail == Detail::Order).then(|| Order {
            handed_over: self.found.handed_over,
            unplaced: self.found.unplaced,
            ..Order::default()
        });
        SharingHead { line, threads, others, uncounted, order, ..SharingHead::default() }
    }

    /// The events of an object's lines.
    #[must_use]
    pub fn events(&self) -> &'static [&'static str] {
        match self.detail {
            Detail::Lines => &rows::LINES,
            Detail::Counts => &rows::EVENTS,
            Detail::Order => &rows::ORDER,
        }
    }

    /// How often each of these has been.
    #[must_use]
    pub fn of_object(&self, number: usize) -> Vec<u64> {
        let of = u32::try_from(number).ok().and_then(|n| self.found.objects.get(&n)).copied().unwrap_or_default();
        match self.detail {
            Detail::Lines => of.lines.into(),
            Detail::Counts => of.accesses.into(),
            Detail::Order => of.lines.into_iter().chain(of.moves).collect(),
        }
    }
}
