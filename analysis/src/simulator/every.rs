//! Records of a run in which every access is told: stack distances of the data accesses of each thread, lines that threads share, TLBs, and
//! the first-level caches, which the program does not simulate by itself then.
//!
//! Each thread has caches and a stack of its own, so that what it counts does not depend on when others run. Invariants: accesses
//! are gone through in program order, an instruction's fetch before its accesses; every access that is told has exactly one
//! place in a histogram, unless only a sample of lines is looked at or nobody asks for distances. Fetches that follow another one from the same line hit,
//! and change nothing: they are left out.

use std::collections::HashMap;

use cg_sim::beyond::{Answer, Ask, Request};
use cg_sim::distance::{LruStack, Sample};
use cg_sim::tlb::{Missed, ThreadTlbs, Tlbs};
use cg_sim::{Geometries, Level1, Port};
use grind_trace::every::repeated::elements;
use grind_trace::every::{Told, Touched, members};
use grind_trace::{CONTEXT_SITE, CONTEXT_WORDS, Done, Site, SiteKind, Target};
use grind_types::Tid;

use super::{BeyondFirst, Nobody, Process, Sites, accesses, object_record};
use crate::counts::EventCounts;
use grind_objects::distances::{self, Tallies, Wanted};

/// What a thread has of its own.
#[derive(Clone, Debug)]
struct Thread {
    stack: LruStack,
    first: Option<Box<Level1>>,
    tlbs: Option<Box<ThreadTlbs>>,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Every {
    distances: Option<Wanted>,
    caches: Option<Geometries>,
    tlbs: Option<Tlbs>,
    /// Bytes of the widest access.
    most: u16,
    line_bits: u32,
    threads: HashMap<Tid, Thread>,
    tallies: Tallies,
}

impl Every {
    /// Nothing has been accessed so far.
    pub(super) fn new(distances: Option<Wanted>, caches: Option<Geometries>, tlbs: Option<Tlbs>) -> Self {
        let line = distances.map_or(0, |wanted| wanted.line);
        let most = caches.as_ref().map_or(line, Geometries::min_line).min(u32::from(u16::MAX)) as u16;
        let (threads, tallies) = (HashMap::new(), Tallies::default());
        let line_bits = line.max(1).trailing_zeros();
        Self { distances, caches, tlbs, most, line_bits, threads, tallies }
    }

    /// Keeps only what a child has that thread `tid` has created.
    pub(super) fn forked(&mut self, tid: Tid, child: Tid) {
        let thread = self.threads.remove(&tid);
        self.threads.clear();
        self.threads.extend(thread.map(|t| (child, t)));
    }

    /// Nothing has been found so far; what threads have of their own is as it is.
    pub(super) fn forget(&mut self) {
        self.tallies = Tallies::default();
    }

    pub(super) fn thread_ended(&mut self, tid: Tid) {
        self.threads.remove(&tid);
    }

    /// Distances, by instruction.
    pub(super) fn found(&self, sites: &[Site]) -> Option<distances::Found> {
        let site = |n: usize| sites.get(n).map(|site| grind_objects::Site { module: site.module, addr: site.addr.0 });
        Some(distances::Found { wanted: self.distances?, sites: self.tallies.found(site) })
    }
}

impl Thread {
    fn new(caches: Option<&Geometries>, tlbs: Option<&Tlbs>) -> Self {
        let first = caches.map(|caches| Box::new(Level1::new(caches)));
        Self { stack: LruStack::new(), first, tlbs: tlbs.map(|tlbs| Box::new(ThreadTlbs::new(tlbs))) }
    }

    /// Uses the lines of an access. `None`: its first one is not looked at. An access to several is as far away as the farthest of
    /// them.
    #[inline(always)]
    fn distance(&mut self, sample: Sample, line_bits: u32, addr: u64, size: u16) -> Option<Option<u64>> {
        let first = addr >> line_bits;
        let last = addr.wrapping_add(u64::from(size.max(1)) - 1) >> line_bits;
        let taken = sample.takes(first);
        let mut farthest = if taken { self.stack.touch(first) } else { None };
        if first != last {
            farthest = self.others(sample, [first, last], u64::MAX >> line_bits, taken, farthest);
        }
        taken.then(|| farthest.map(|distance| sample.scaled(distance)))
    }

    /// The lines behind the first one, where they are more, or lie at the end of the address space.
    #[cold]
    fn others(
        &mut self,
        sample: Sample,
        [first, last]: [u64; 2],
        end: u64,
        taken: bool,
        mut farthest: Option<u64>,
    ) -> Option<u64> {
        let mut line = first;
        while line != last {
            line = if line == end { 0 } else { line + 1 };
            if sample.takes(line) {
                let distance = self.stack.touch(line);
                // A line that is new is farther than any other.
                farthest = if taken { farthest.zip(distance).map(|(a, b)| a.max(b)) } else { farthest };
            }
        }
        farthest
    }
}

/// What `tid` has recorded.
pub(super) fn records(p: &mut Process, sites: &Sites, tid: Tid, words: &[u32]) {
    let Some(mut every) = p.every.take() else { return };
    every.tallies.resize(sites.all.len());
    p.pages.resize(if every.tlbs.is_some() { sites.all.len() } else { 0 }, [0; 2]);
    let mut thread =
        every.threads.remove(&tid).unwrap_or_else(|| Thread::new(every.caches.as_ref(), every.tlbs.as_ref()));
    let mut beyond = std::mem::take(&mut p.beyond);
    match &mut beyond {
        BeyondFirst::Nothing => go_through(p, &mut every, &mut thread, sites, &mut Nobody, words),
        BeyondFirst::Plain(last_level) => go_through(p, &mut every, &mut thread, sites, last_level, words),
        BeyondFirst::Deep(levels) => {
            levels.run(tid.0);
            p.second.resize(if levels.second() { sites.hot.len() } else { 0 }, 0);
            go_through(p, &mut every, &mut thread, sites, &mut **levels, words);
        }
    }
    p.beyond = beyond;
    every.threads.insert(tid, thread);
    p.every = Some(every);
}

fn go_through(
    p: &mut Process,
    every: &mut Every,
    thread: &mut Thread,
    sites: &Sites,
    asked: &mut impl Ask,
    words: &[u32],
) {
    let Every { distances, tallies, line_bits, most, threads, .. } = every;
    let mut rare = std::mem::take(&mut p.rare);
    let mut seen = Seen {
        sample: distances.map(|wanted| wanted.sample),
        line_bits: *line_bits,
        most: *most,
        tallies,
        thread,
        others: threads,
        sites,
        asked,
        process: p,
    };
    let mut rest = words;
    while let Some((&number, operands)) = rest.split_first() {
        let Some(told) = sites.told.get(number as usize) else {
            let behind = match number {
                CONTEXT_SITE => rest.get(CONTEXT_WORDS..),
                _ => seen.object(rest),
            };
            rest = behind.unwrap_or_default();
            continue;
        };
        if let Told::Stretch { groups, members: n, len } = *told {
            let Some((bases, behind)) = operands.split_at_checked(2 * usize::from(groups)) else { break };
            rest = behind;
            seen.fetch(number, len);
            let from = number as usize + 1;
            let told = sites.told.get(from..from + usize::from(n)).unwrap_or_default();
            members(told, number + 1, bases, |touched| seen.touch(touched));
            continue;
        }
        let kind = sites.all[number as usize].kind;
        let Some((record, behind)) = rest.split_at_checked(kind.words()) else { break };
        rest = behind;
        seen.other(number, kind, record, &mut rare);
    }
    p.rare = rare;
}

/// What a thread's accesses are shown to.
struct Seen<'a, A> {
    sample: Option<Sample>,
    line_bits: u32,
    most: u16,
    tallies: &'a mut Tallies,
    thread: &'a mut Thread,
    /// All other threads.
    others: &'a HashMap<Tid, Thread>,
    sites: &'a Sites,
    asked: &'a mut A,
    process: &'a mut Process,
}

impl<A: Ask> Seen<'_, A> {
    #[inline(always)]
    fn fetch(&mut self, site: u32, len: u8) {
        let addr = self.sites.hot[site as usize].addr;
        self.look_up(Port::Fetch, site, addr, len.into());
        if let Some(first) = &mut self.thread.first
            && first.misses(Port::Fetch, addr, len.into())
        {
            self.missed(site, addr, len.into(), false);
        }
    }

    #[inline(always)]
    fn touch(&mut self, touched: Touched) {
        let Touched { site, addr, size, .. } = touched;
        if let Some(sample) = self.sample
            && let Some(distance) = self.thread.distance(sample, self.line_bits, addr, size)
        {
            let p = &mut *self.process;
            match p.objects.as_deref_mut().filter(|_| p.by_object) {
                Some(objects) => {
                    let at = &self.sites.all[site as usize];
                    let at = grind_objects::Site { module: at.module, addr: at.addr.0 };
                    let object = objects.at(&self.sites.images, addr, at);
                    self.tallies.add_of(site, object, distance);
                }
                None => self.tallies.add(site, distance),
            }
        }
        let p = &mut *self.process;
        p.shared.touch(p.objects.as_deref_mut().filter(|_| p.by_object), self.sites.of(), touched);
        self.look_up(Port::Data, site, addr, size);
        if let Some(first) = &mut self.thread.first
            && first.misses(Port::Data, addr, size.into())
        {
            self.missed(site, addr, size, true);
        }
    }

    /// Looks the pages of an access up in the TLBs, if there are any.
    #[inline(always)]
    fn look_up(&mut self, port: Port, site: u32, addr: u64, size: u16) {
        if let Some(tlbs) = &mut self.thread.tlbs {
            let Missed { first, second } = tlbs.access(port, addr, size.into());
            if first {
                let [one, two] = &mut self.process.pages[site as usize];
                *one += 1;
                *two += u64::from(second);
            }
        }
    }

    #[inline(never)]
    fn missed(&mut self, site: u32, addr: u64, size: u16, data: bool) {
        let (p, n) = (&mut *self.process, site as usize);
        let instruction = self.sites.hot[n].addr;
        let answer = self.asked.ask(Request { instruction, addr, size: size.into(), data });
        if let Some(included) = &mut p.included {
            let all = || std::iter::once(&*self.thread).chain(self.others.values()).filter_map(|of| of.first.as_ref());
            self.asked.each_left(|addresses| included.counted(all().any(|first| first.holds(&addresses))));
        }
        p.tallies[n].0[0] += 1;
        p.tallies[n].0[1] += u64::from(answer == Answer::Memory);
        if self.asked.second() {
            p.second[n] += u64::from(answer != Answer::Second);
        }
        if let Some(objects) = p.objects.as_mut().filter(|_| data && p.by_object) {
            let site = &self.sites.all[n];
            objects.missed_at(&self.sites.images, site, (addr, size), answer == Answer::Memory);
        }
    }

    /// A record that is none of a site. The words behind it, if it is one of objects.
    fn object<'w>(&mut self, words: &'w [u32]) -> Option<&'w [u32]> {
        let p = &mut *self.process;
        let rest = object_record(&mut p.objects, &mut p.allocations, 0, words);
        p.shared.close(p.objects.as_deref_mut());
        rest
    }

    /// Records that are none of stretches.
    fn other(&mut self, number: u32, kind: SiteKind, record: &[u32], rare: &mut HashMap<u32, EventCounts>) {
        let most = self.most;
        match kind {
            SiteKind::Conditional | SiteKind::Indirect => self.process.tallies[number as usize].0[0] += 1,
            SiteKind::Special { index, .. } => {
                let made = self.sites.specials.get(index as usize).map(|s| s.touches(record));
                for made in made.unwrap_or_default() {
                    let (behind, done) = match made.done {
                        Done::Read => (1, Done::Read),
                        Done::Write => (2, Done::Write),
                        Done::Modify => (3, Done::Modify),
                    };
                    let size = u16::try_from(made.size).unwrap_or(u16::MAX).min(most);
                    self.touch(Touched { site: number + behind, done, addr: made.address, size });
                }
                accesses(kind, record, &self.sites.specials, rare.entry(number).or_default());
            }
            SiteKind::Repeated { size, target, .. } => {
                elements(kind, record, |at_target, addr| {
                    let done = if at_target && target == Target::Write { Done::Write } else { Done::Read };
                    self.touch(Touched { site: number + 1 + u32::from(at_target), done, addr, size: size.into() });
                });
                accesses(kind, record, &self.sites.specials, rare.entry(number).or_default());
            }
            _ => {}
        }
    }
}
