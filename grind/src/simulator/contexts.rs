//! The simulation of a process that has left context 0: whatever is found belongs to the context of its thread, and caches
//! know which context brought in each of their lines.
//!
//! A line is old after a change of context, until it is hit for the first time. In a first-level cache the changes of its
//! thread count; in the last level those of the process: a thread that changes to the context which another one changed to
//! last makes nothing old, since it mostly follows that one. Counts are kept by context and site, so that programs with many
//! contexts need memory only for what happened in them.

use std::collections::HashMap;

use cg_sim::context::{ContextLastLevel, ContextLevel1};
use cg_sim::usage::Level;
use cg_sim::{Geometries, LastLevel, Port, Predictor, Served};
use grind_engine::trace::{CONTEXT_SITE, CONTEXT_WORDS, Site};

use super::{Caches, Finding, Found, HotKind, Process, Sites, Thread, misses, word};
use crate::contexts::Reuse;
use crate::counts::EventCounts;

/// One thread's part.
#[derive(Clone, Debug)]
struct Own {
    level1: Option<ContextLevel1>,
    /// Index of its context.
    context: u32,
}

/// What has been found in one context.
#[derive(Clone, Debug)]
struct Book {
    context: u64,
    sites: HashMap<u32, EventCounts>,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Contexts {
    books: Vec<Book>,
    index: HashMap<u64, u32>,
    last_level: Option<ContextLastLevel>,
    /// Index of the context that a thread changed to last.
    last: u32,
    threads: HashMap<i32, Own>,
    /// Reuses by finder and owner, in the first levels and in the last.
    reuse: [HashMap<(u32, u32), u64>; 2],
}

impl Contexts {
    /// All is in context 0 so far.
    pub(super) fn new(last_level: Option<&LastLevel>, threads: &HashMap<i32, Thread>) -> Self {
        let own = |t: &Thread| Own { level1: t.level1.as_ref().map(ContextLevel1::of), context: 0 };
        Self {
            books: vec![Book { context: 0, sites: HashMap::new() }],
            index: HashMap::from([(0, 0)]),
            last_level: last_level.map(ContextLastLevel::of),
            last: 0,
            threads: threads.iter().map(|(tid, t)| (*tid, own(t))).collect(),
            reuse: Default::default(),
        }
    }

    /// Keeps only what a child has that thread `tid` has created.
    pub(super) fn forked(&mut self, tid: i32, child: i32) {
        let thread = self.threads.remove(&tid);
        self.threads.clear();
        self.threads.extend(thread.map(|t| (child, t)));
    }

    pub(super) fn thread_ended(&mut self, tid: i32) {
        self.threads.remove(&tid);
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
    fn change(&mut self, tid: i32, context: u64, began: bool) {
        let to = self.index_of(context);
        let Some(own) = self.threads.get_mut(&tid) else { return };
        if own.context == to {
            return;
        }
        own.context = to;
        if began {
            return;
        }
        if let Some(level1) = &mut own.level1 {
            level1.change();
        }
        if std::mem::replace(&mut self.last, to) != to
            && let Some(last_level) = &mut self.last_level
        {
            last_level.change();
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
    }
}

/// What `tid` has recorded, of a process that has contexts.
pub(super) fn records(p: &mut Process, sites: &Sites, geometries: Option<&Geometries>, tid: i32, words: &[u32]) {
    let Some(contexts) = &mut p.contexts else { return };
    let predictor = match p.threads.get_mut(&tid) {
        Some(thread) => &mut thread.predictor,
        None => &mut Predictor::new(),
    };
    let mut began = !contexts.threads.contains_key(&tid);
    contexts.threads.entry(tid).or_insert_with(|| Own { level1: geometries.map(ContextLevel1::new), context: 0 });
    let mut rest = words;
    while let Some((&site, operands)) = rest.split_first() {
        if site == CONTEXT_SITE {
            let Some(([low, high], after)) = operands.split_first_chunk() else { return };
            const { assert!(CONTEXT_WORDS == 3) };
            rest = after;
            contexts.change(tid, word(*low, *high), std::mem::take(&mut began));
            continue;
        }
        began = false;
        let Some(hot) = sites.hot.get(site as usize) else { return };
        let kind = sites.all[site as usize].kind;
        let Some((record, after)) = rest.split_at_checked(kind.words()) else { return };
        rest = after;
        let Contexts { books, last_level, threads, reuse, .. } = &mut **contexts;
        let Some(own) = threads.get_mut(&tid) else { return };
        let context = own.context;
        let mut old = [0u64; 2];
        let mut reused = |level, owner| {
            let n = usize::from(level == Level::LastLevel);
            old[n] += 1;
            *reuse[n].entry((context, owner)).or_default() += 1;
        };
        let mut counts = EventCounts::default();
        let mut rare = false;
        match (hot.kind, &mut own.level1, last_level) {
            (HotKind::Conditional, ..) => {
                counts = misses(kind, predictor.conditional(hot.addr, record[1] != 0).into(), 0);
            }
            (HotKind::Indirect, ..) => {
                counts = misses(kind, predictor.indirect(hot.addr, word(record[1], record[2])).into(), 0);
            }
            (HotKind::Fetch | HotKind::Access, Some(level1), Some(ll)) => {
                let (port, addr) = match hot.kind {
                    HotKind::Fetch => (Port::Fetch, hot.addr),
                    _ => (Port::Data, word(record[1], record[2])),
                };
                let served = level1.access(ll, port, addr, hot.size.into(), context, &mut reused);
                counts = misses(kind, served.missed_l1().into(), served.missed_ll().into());
            }
            (HotKind::Rare, Some(level1), Some(ll)) => {
                let Some(g) = geometries else { return };
                let data = |addr, size| -> Served { level1.access(ll, Port::Data, addr, size, context, &mut reused) };
                Caches { data, geometries: g }.rare(kind, record, &sites.specials, &mut counts);
                rare = true;
            }
            (HotKind::Fetch | HotKind::Access | HotKind::Rare, ..) => {}
        }
        [counts.oc_d1, counts.oc_ll] = old;
        if rare || counts != EventCounts::default() {
            books[context as usize].sites.entry(site).or_default().add(&counts);
        }
    }
}
