//! The simulation of a process that has left context 0: whatever is found belongs to the context of its thread, and caches
//! know which context brought in each of their lines.
//!
//! A line is old after a change of context, until it is hit for the first time. In a first-level cache the changes of its
//! thread count; in the last level those of the process: a thread that changes to the context which another one changed to
//! last makes nothing old, since it mostly follows that one. Counts are kept by context and site, so that programs with many
//! contexts need memory only for what happened in them.

use std::collections::{HashMap, HashSet};

use cg_sim::beyond::{Answer, Ask as _, Request};
use cg_sim::context::{ContextBeyond, ContextLastLevel, OldIn};
use grind_trace::operands;
use grind_trace::{
    BYTES_USED, CODE_BROUGHT, CONTEXT_SITE, CONTEXT_WORDS, LINE_BROUGHT, LINE_LOADED, LINE_MOVED, LINE_REUSED,
    LINE_WORDS, Site, SiteKind,
};
use grind_types::Tid;

use super::{BeyondFirst, Finding, Found, HotKind, Process, Reuse, Sites, accesses, brought, misses, object_record};
use crate::counts::EventCounts;

/// One thread's part.
#[derive(Clone, Debug, Default)]
struct Own {
    /// Index of its context.
    context: u32,
    /// By the address of a line: index of the context that brought it into the first-level data cache last, if not 0. Only
    /// what is said of lines that are there matters.
    owners: HashMap<u64, u32>,
}

/// What has been found in one context.
#[derive(Clone, Debug)]
struct Book {
    context: u64,
    sites: HashMap<u32, EventCounts>,
}

/// What is asked for what first levels did not have, with contexts.
#[derive(Clone, Debug)]
enum Last {
    Nothing,
    Plain(Box<ContextLastLevel>),
    Deep(Box<ContextBeyond>),
}

impl Last {
    /// An access in `context`: whether the second and the last level did not have it. `reused`: as theirs.
    fn missed(&mut self, request: Request, context: u32, reused: &mut impl FnMut(OldIn, u32)) -> Option<[bool; 2]> {
        match self {
            Self::Nothing => None,
            Self::Plain(last) => {
                let mut reused = |_, owner| reused(OldIn::Last, owner);
                Some([false, last.access(request.addr, request.size, context, &mut reused).missed_ll()])
            }
            Self::Deep(levels) => {
                let answer = levels.access(request, context, reused);
                Some([answer != Answer::Second, answer == Answer::Memory])
            }
        }
    }

    fn change(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Plain(last) => last.change(),
            Self::Deep(levels) => levels.change(),
        }
    }
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Contexts {
    books: Vec<Book>,
    index: HashMap<u64, u32>,
    last_level: Last,
    /// Index of the context that a thread changed to last.
    last: u32,
    threads: HashMap<Tid, Own>,
    /// Reuses by finder and owner, in the first levels, in the last, and in second ones.
    reuse: [HashMap<(u32, u32), u64>; 3],
}

impl Contexts {
    /// All is in context 0 so far.
    pub(super) fn new(beyond: BeyondFirst, threads: &HashSet<Tid>) -> Self {
        Self {
            books: vec![Book { context: 0, sites: HashMap::new() }],
            index: HashMap::from([(0, 0)]),
            last_level: match beyond {
                BeyondFirst::Nothing => Last::Nothing,
                BeyondFirst::Plain(last_level) => Last::Plain(Box::new(ContextLastLevel::of(&last_level))),
                BeyondFirst::Deep(levels) => Last::Deep(Box::new(ContextBeyond::of(*levels))),
            },
            last: 0,
            threads: threads.iter().map(|tid| (*tid, Own::default())).collect(),
            reuse: Default::default(),
        }
    }

    /// Keeps only what a child has that thread `tid` has created.
    pub(super) fn forked(&mut self, tid: Tid, child: Tid) {
        let thread = self.threads.remove(&tid);
        self.threads.clear();
        self.threads.extend(thread.map(|t| (child, t)));
        if let Last::Deep(levels) = &mut self.last_level {
            levels.forked(tid.0, child.0);
        }
    }

    /// Nothing has been found so far; caches and contexts are as they are.
    pub(super) fn forget(&mut self) {
        self.books.iter_mut().for_each(|book| book.sites.clear());
        self.reuse.iter_mut().for_each(HashMap::clear);
    }

    pub(super) fn thread_ended(&mut self, tid: Tid) {
        self.threads.remove(&tid);
        if let Last::Deep(levels) = &mut self.last_level {
            levels.ended(tid.0);
        }
    }

    fn index_of(&mut self, context: u64) -> u32 {
        let next = self.books.len() as u32;
        let index = *self.index.entry(context).or_insert(next);
        if index == next {
            self.books.push(Book { context, sites: HashMap::new() });
        }
        index
    }

    /// Thread `tid` is in `context` from here on. `began`: nothing of it has been seen before.
    fn change(&mut self, tid: Tid, context: u64, began: bool) {
        let to = self.index_of(context);
        let Some(own) = self.threads.get_mut(&tid) else { return };
        if own.context == to {
            return;
        }
        own.context = to;
        if began {
            return;
        }
        if let Last::Deep(levels) = &mut self.last_level {
            levels.change_own(tid.0);
        }
        if std::mem::replace(&mut self.last, to) != to {
            self.last_level.change();
        }
    }

    /// Adds all that was found.
    pub(super) fn add_to(self, sites: &[Site], found: &mut Found) {
        for book in &self.books {
            for (&site, &counts) in &book.sites {
                let site = &sites[site as usize];
                let finding = Finding { module: site.module as usize, addr: site.addr, context: book.context, counts };
                found.findings.push(finding);
            }
        }
        let named = |reuse: &HashMap<(u32, u32), u64>| -> Reuse {
            let context = |index: u32| self.books[index as usize].context;
            reuse.iter().map(|(&(finder, owner), &n)| ((context(finder), context(owner)), n)).collect()
        };
        found.reuse_d1 = named(&self.reuse[0]);
        found.reuse_ll = named(&self.reuse[1]);
        found.reuse_l2 = named(&self.reuse[2]);
    }
}

/// What `tid` has recorded, of a process that has contexts.
pub(super) fn records(p: &mut Process, sites: &Sites, tid: Tid, words: &[u32]) {
    let Some(contexts) = &mut p.contexts else { return };
    let mut began = !contexts.threads.contains_key(&tid);
    contexts.threads.entry(tid).or_default();
    if let Last::Deep(levels) = &mut contexts.last_level {
        levels.levels().run(tid.0);
    }
    let mut rest = words;
    while let Some((&site, operands)) = rest.split_first() {
        if site == CONTEXT_SITE {
            let Some((context, after)) = operands::number(operands) else { return };
            const { assert!(CONTEXT_WORDS == 3) };
            rest = after;
            contexts.change(tid, context, std::mem::take(&mut began));
            continue;
        }
        began = false;
        if site == LINE_BROUGHT || site == CODE_BROUGHT {
            let Some(behind) = brought(&mut p.included, &mut None, rest) else { return };
            rest = behind;
            continue;
        }
        let Contexts { books, last_level, threads, reuse, .. } = &mut **contexts;
        let Some(own) = threads.get_mut(&tid) else { return };
        let context = own.context;
        let mut count = |site: u32, counts: &EventCounts| {
            if *counts != EventCounts::default() {
                books[context as usize].sites.entry(site).or_default().add(counts);
            }
        };
        if site == LINE_LOADED || site == LINE_REUSED {
            let Some((line, by, after)) = operands::number_and_word(operands) else { return };
            const { assert!(LINE_WORDS == 4) };
            rest = after;
            if site == LINE_LOADED {
                own.owners.insert(line, context);
            } else {
                let owner = own.owners.get(&line).copied().unwrap_or(0);
                *reuse[0].entry((context, owner)).or_default() += 1;
                count(by, &EventCounts { oc_d1: 1, ..EventCounts::default() });
            }
            continue;
        }
        let Some(hot) = sites.hot.get(site as usize) else {
            if site == BYTES_USED {
                let objects = p.objects.as_deref_mut().filter(|_| p.by_object);
                let Some(behind) = p.shared.bytes_used(objects, sites.of(), rest) else { return };
                rest = behind;
                continue;
            }
            if site == LINE_MOVED {
                let objects = p.objects.as_deref_mut().filter(|_| p.by_object);
                let Some(behind) = p.shared.line_moved(objects, sites.of(), rest) else { return };
                rest = behind;
                continue;
            }
            let id = books[context as usize].context;
            let Some(behind) = object_record(&mut p.objects, &mut p.allocations, id, rest) else { return };
            p.shared.close(p.objects.as_deref_mut());
            rest = behind;
            continue;
        };
        let kind = sites.all[site as usize].kind;
        let Some((record, after)) = rest.split_at_checked(kind.words()) else { return };
        rest = after;
        let (addr, size) = match (hot.kind, kind) {
            (HotKind::Branch, _) => {
                count(site, &misses(kind, [1, 0, 0]));
                continue;
            }
            (HotKind::Fetch, _) => (hot.addr, hot.size),
            (HotKind::Access, _) => (operands::joined(record[1], record[2]), hot.size),
            (HotKind::Rare, SiteKind::Sized { .. }) => (operands::joined(record[1], record[2]), record[3] as u16),
            (HotKind::Rare, _) => {
                let mut counts = EventCounts::default();
                accesses(kind, record, &sites.specials, &mut counts);
                count(site, &counts);
                p.shared.done(p.objects.as_deref_mut().filter(|_| p.by_object), sites.of(), site, record);
                continue;
            }
        };
        let data = !matches!(hot.kind, HotKind::Fetch);
        if let Some(included) = p.included.as_mut().filter(|_| !data) {
            included.fetched(hot.addr, hot.size);
        }
        let request = Request { instruction: hot.addr, addr, size: size.into(), data };
        let mut old = [0; 2];
        let missed = last_level.missed(request, context, &mut |of, owner| {
            let second = usize::from(of == OldIn::Second);
            old[second] += 1;
            *reuse[1 + second].entry((context, owner)).or_default() += 1;
        });
        let Some([missed_second, missed_ll]) = missed else { return };
        if let (Some(included), Last::Deep(levels)) = (&mut p.included, &mut *last_level) {
            levels.levels().each_left(|addresses| included.left(&addresses));
        }
        if let Some(objects) = p.objects.as_mut().filter(|_| data && p.by_object) {
            objects.missed_at(&sites.images, &sites.all[site as usize], (addr, size), missed_ll);
        }
        let mut counts = misses(kind, [1, missed_second.into(), missed_ll.into()]);
        [counts.oc_ll, counts.oc_l2] = old;
        count(site, &counts);
    }
}
