//! Cache use, contexts and write-back against twins that say literally what is meant.

use std::collections::HashMap;

use crate::twin::{Access, Hierarchy, Kind, Random, accesses, geometry, hierarchies};
use cg_sim::context::{ContextLastLevel, ContextLevel1};
use cg_sim::usage::{Cost, Level, LinesDiffer, Owner, Residents, Usage, UsageLastLevel};
use cg_sim::writeback::{Action, WriteBackLastLevel, WriteThrough};
use cg_sim::{Geometries, Geometry, LastLevel, Level1, Port};

fn port(a: Access) -> Port {
    if a.kind == Kind::Fetch { Port::Fetch } else { Port::Data }
}

/// A line in a slow cache: what is known of it besides its number.
#[derive(Clone, Default)]
struct Info {
    line: u64,
    /// Where it is: a set's first slots are taken first, as by a cache that fills from the end of its list.
    slot: usize,
    count: u64,
    /// The bytes that were accessed.
    bytes: Vec<bool>,
    owner: Option<Owner>,
    below: usize,
    context: u32,
    old: bool,
    dirty: bool,
}

/// A cache as lists of lines, the newest first.
#[derive(Clone)]
struct Slow {
    sets: Vec<Vec<Info>>,
    line: u64,
}

impl Slow {
    fn new(g: Geometry) -> Self {
        let (sets, assoc) = (g.sets() as usize, g.assoc() as usize);
        let line =
            |set, way| Info { slot: set * assoc + way, bytes: vec![false; g.line() as usize], ..Info::default() };
        Self {
            sets: (0..sets).map(|set| (0..assoc).map(|way| line(set, way)).collect()).collect(),
            line: u64::from(g.line()),
        }
    }

    fn set(&mut self, line: u64) -> &mut Vec<Info> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line % sets) as usize]
    }

    /// The line, now the newest; and what it replaced, if it was not there.
    fn touch(&mut self, line: u64) -> (&mut Info, Option<Info>) {
        let bytes = vec![false; self.line as usize];
        let set = self.set(line);
        let at = set.iter().position(|l| l.line == line);
        let mut found = set.remove(at.unwrap_or(set.len() - 1));
        let old = at.is_none().then(|| {
            let new = Info { line, slot: found.slot, bytes, ..Info::default() };
            std::mem::replace(&mut found, new)
        });
        set.insert(0, found);
        (&mut set[0], old)
    }

    fn in_slot(&mut self, slot: usize) -> &mut Info {
        self.sets.iter_mut().flatten().find(|l| l.slot == slot).unwrap()
    }
}

/// Who got what, and who holds how many lines.
#[derive(Default)]
struct Book {
    now: Owner,
    costs: HashMap<(Level, Owner), Cost>,
    held: HashMap<(Level, Owner), i64>,
    /// What was loaded, one after the other.
    lines: Vec<(Level, u64)>,
}

impl Residents for Book {
    fn loaded(&mut self, level: Level, line: u64) -> Owner {
        self.lines.push((level, line));
        *self.held.entry((level, self.now)).or_default() += 1;
        self.now
    }

    fn evicted(&mut self, level: Level, owner: Owner, cost: Cost) {
        *self.held.get_mut(&(level, owner)).unwrap() -= 1;
        let sum = self.costs.entry((level, owner)).or_default();
        sum.ac_cost += cost.ac_cost;
        sum.sp_loss += cost.sp_loss;
        sum.used += cost.used;
    }
}

struct SlowUsage {
    caches: [Slow; 2],
    ll: Slow,
}

impl SlowUsage {
    fn retire(&mut self, level: Level, old: Info, collecting: bool, book: &mut Book) {
        let Some(owner) = old.owner else { return };
        let mut cost = Cost::default();
        if collecting && old.count > 0 {
            cost.ac_cost = 1000 / old.count;
            // Parts of a 32nd of a line: bytes, or more of them, or less.
            let size = old.bytes.len();
            let part = (size / 32).max(1);
            cost.sp_loss = old.bytes.chunks(part).filter(|p| !p.contains(&true)).count() as u64 * part as u64;
            cost.used = old.bytes.iter().filter(|b| **b).count() as u64;
        }
        if collecting && level == Level::L1 {
            let below = self.ll.in_slot(old.below);
            below.count += old.count;
            below.bytes.iter_mut().zip(&old.bytes).for_each(|(b, o)| *b |= o);
        }
        book.evicted(level, owner, cost);
    }

    fn access(&mut self, a: Access, collecting: bool, book: &mut Book) -> u8 {
        let which = port(a) as usize;
        let line_size = self.ll.line;
        let mut served = 0;
        let mut lines: Vec<u64> = (0..u64::from(a.size)).map(|i| a.addr.wrapping_add(i) / line_size).collect();
        lines.dedup();
        for line in lines {
            let (info, old) = self.caches[which].touch(line);
            info.count += 1;
            let part = (line_size / 32).max(1);
            for byte in (0..u64::from(a.size)).map(|i| a.addr.wrapping_add(i)).filter(|b| b / line_size == line) {
                let first = byte % line_size / part * part;
                (first..first + part).for_each(|b| info.bytes[b as usize] = true);
            }
            let Some(old) = old else { continue };
            info.owner = Some(book.loaded(Level::L1, line));
            self.retire(Level::L1, old, collecting, book);
            let (below, old) = self.ll.touch(line);
            let slot = below.slot;
            served = served.max(if old.is_some() { 2 } else { 1 });
            if let Some(old) = old {
                below.owner = Some(book.loaded(Level::LastLevel, line));
                self.retire(Level::LastLevel, old, collecting, book);
            }
            self.caches[which].touch(line).0.below = slot;
        }
        served
    }

    fn flush(&mut self, book: &mut Book) {
        for which in [1, 0] {
            let all: Vec<Info> = self.caches[which].sets.iter_mut().flatten().map(std::mem::take).collect();
            all.into_iter().for_each(|l| self.retire(Level::L1, l, true, book));
        }
        let all: Vec<Info> = self.ll.sets.iter_mut().flatten().map(std::mem::take).collect();
        all.into_iter().for_each(|l| self.retire(Level::LastLevel, l, true, book));
    }
}

#[test]
fn the_use_of_lines_equals_its_twin() {
    let g = geometry;
    let more = [
        Geometries { i1: g(1024, 2, 128), d1: g(1024, 1, 128), ll: g(4096, 4, 128) },
        Geometries { i1: g(512, 2, 16), d1: g(256, 4, 16), ll: g(1024, 4, 16) },
        Geometries { i1: g(1024, 2, 64), d1: g(1024, 4, 64), ll: g(1024, 2, 64) },
    ];
    let mut tested = 0;
    for (index, g) in hierarchies().iter().chain(&more).enumerate() {
        let Ok(mut usage) = Usage::new(g) else {
            assert!(g.i1.line() != g.ll.line() || g.d1.line() != g.ll.line());
            continue;
        };
        if g.ll.size() > 65536 {
            // The twin looks for slots one by one.
            continue;
        }
        tested += 1;
        let mut random = Random::new(index as u64 + 4000);
        let mut ll = UsageLastLevel::new(g);
        let mut slow = SlowUsage { caches: [Slow::new(g.d1), Slow::new(g.i1)], ll: Slow::new(g.ll) };
        let (mut book, mut expected) = (Book::default(), Book::default());
        let mut served = [0; 3];
        for (n, a) in accesses(&mut random, 6000).into_iter().enumerate() {
            let now = Owner { node: random.below(5) as u32, site: random.below(20) as u32 };
            (book.now, expected.now) = (now, now);
            let collecting = n / 700 % 4 != 3;
            let by = usage.access(&mut ll, port(a), a.addr, a.size, collecting, &mut book);
            assert_eq!(by as u8, slow.access(a, collecting, &mut expected), "access {n}, {a:x?}, {g:?}");
            served[by as usize] += 1;
        }
        assert_eq!(book.costs, expected.costs, "{g:?}");
        assert_eq!(book.held, expected.held);
        assert!(served.iter().all(|n| *n > 0) && book.costs.values().any(|c| c.sp_loss > 0));
        usage.flush(&mut ll, true, &mut book);
        ll.flush(true, &mut book);
        slow.flush(&mut expected);
        assert_eq!(book.costs, expected.costs);
        assert!(book.held.values().all(|n| *n == 0), "every line is given back");
    }
    assert!(tested >= 7, "{tested}");
    let bad = Geometries { i1: geometry(512, 2, 32), ..more[0] };
    assert_eq!(Usage::new(&bad).unwrap_err(), LinesDiffer);
}

#[test]
fn a_run_of_accesses_to_a_line_is_one_call() {
    let g = hierarchies()[0];
    let mut random = Random::new(31);
    let (mut one, mut one_ll, mut one_book) = (Usage::new(&g).unwrap(), UsageLastLevel::new(&g), Book::default());
    let (mut run, mut run_ll, mut run_book) = (Usage::new(&g).unwrap(), UsageLastLevel::new(&g), Book::default());
    for _ in 0..20_000 {
        let owner = Owner { node: 0, site: random.below(9) as u32 };
        (one_book.now, run_book.now) = (owner, owner);
        let port = if random.one_in(2) { Port::Data } else { Port::Fetch };
        let line = 0x1000 + random.below(200) * 32;
        let pieces = 1 + random.below(8);
        let size = 1 + random.below(4);
        let mut first = None;
        for piece in 0..pieces {
            let by = one.access(&mut one_ll, port, line + piece * size, size as u32, true, &mut one_book);
            first = first.or(Some(by));
        }
        let (size, count) = ((pieces * size) as u32, pieces as u32);
        let by = run.access_run(&mut run_ll, port, line, size, count, true, &mut run_book);
        assert_eq!(Some(by), first);
        assert_eq!(run_book.costs, one_book.costs);
    }
    assert!(one_book.costs.len() > 10);
}

#[test]
fn a_line_costs_what_the_paper_says() {
    let g = Geometries { i1: geometry(128, 1, 64), d1: geometry(128, 1, 64), ll: geometry(1024, 2, 64) };
    let (mut usage, mut ll, mut book) = (Usage::new(&g).unwrap(), UsageLastLevel::new(&g), Book::default());
    let mut at = |site, addr| {
        book.now = Owner { node: 0, site };
        usage.access(&mut ll, Port::Data, addr, 4, true, &mut book);
    };
    // Site 1 loads a line of which 4 + 4 bytes are used, 3 times; site 2 evicts it from D1.
    at(1, 0x1000);
    at(9, 0x1004);
    at(9, 0x1000);
    at(2, 0x1080);
    // Back again: it comes from the last level.
    at(3, 0x1008);
    usage.flush(&mut ll, true, &mut book);
    ll.flush(true, &mut book);
    let cost = |level, site| book.costs.get(&(level, Owner { node: 0, site })).map(|c| (c.ac_cost, c.sp_loss));
    assert_eq!(cost(Level::L1, 1), Some((333, 56)));
    assert_eq!(cost(Level::L1, 2), Some((1000, 60)));
    assert_eq!(cost(Level::L1, 3), Some((1000, 60)));
    assert_eq!(cost(Level::LastLevel, 1), Some((250, 52)));
    assert_eq!(cost(Level::LastLevel, 2), Some((1000, 60)));
    assert_eq!(cost(Level::LastLevel, 3), None);
}

#[test]
fn reuse_between_contexts_equals_a_bit_in_every_line() {
    for (index, g) in hierarchies().iter().enumerate().filter(|(_, g)| g.ll.size() < 65536) {
        let mut random = Random::new(index as u64 + 7000);
        let (mut l1, mut ll) = (ContextLevel1::new(g), ContextLastLevel::new(g));
        let (mut plain, mut plain_ll) = (Level1::new(g), LastLevel::new(g));
        let mut slow = [Slow::new(g.d1), Slow::new(g.i1), Slow::new(g.ll)];
        let mut context = 0;
        let (mut seen, mut expected) = (HashMap::new(), HashMap::new());
        // Misses of one cache; hits on old lines are booked.
        fn literal(cache: &mut Slow, a: Access, context: u32, mut reused: impl FnMut(u32)) -> bool {
            let mut lines: Vec<u64> = (0..u64::from(a.size)).map(|i| a.addr.wrapping_add(i) / cache.line).collect();
            lines.dedup();
            let mut missed = false;
            for line in lines {
                let (info, old) = cache.touch(line);
                if old.is_some() {
                    missed = true;
                    info.context = context;
                } else if std::mem::take(&mut info.old) {
                    reused(info.context);
                }
            }
            missed
        }
        for a in accesses(&mut random, 8000) {
            if random.one_in(40) {
                context = random.below(6) as u32;
                l1.change();
                ll.change();
                // The walk that the fast model does without.
                slow.iter_mut().flat_map(|c| c.sets.iter_mut().flatten()).for_each(|l| l.old = true);
            }
            let by = l1.access(&mut ll, port(a), a.addr, a.size, context, &mut |level, owner| {
                *seen.entry((level, owner, context)).or_insert(0u32) += 1;
            });
            let mut book = |level, owner| *expected.entry((level, owner, context)).or_insert(0u32) += 1;
            let missed = match port(a) {
                Port::Data => literal(&mut slow[0], a, context, |owner| book(Level::L1, owner)),
                Port::Fetch => literal(&mut slow[1], a, context, |_| {}),
            };
            let served = match missed {
                false => 0,
                true => 1 + u8::from(literal(&mut slow[2], a, context, |owner| book(Level::LastLevel, owner))),
            };
            assert_eq!(by as u8, served);
            assert_eq!(by, plain.access(&mut plain_ll, port(a), a.addr, a.size), "misses are the usual ones");
            assert_eq!(seen, expected, "{a:x?} {g:?}");
        }
        assert!(seen.iter().any(|((level, ..), _)| *level == Level::L1), "{seen:?}");
        assert!(seen.iter().any(|((_, owner, context), _)| owner != context));
    }
}

/// Leaving out accesses to the newest lines changes nothing, if at a change of context it is forgotten which these are.
#[test]
fn accesses_may_be_left_out_between_changes_of_context() {
    for (index, g) in hierarchies().iter().enumerate() {
        let mut random = Random::new(index as u64 + 8000);
        let (mut all, mut all_ll) = (ContextLevel1::new(g), ContextLastLevel::new(g));
        let (mut some, mut some_ll) = (ContextLevel1::new(g), ContextLastLevel::new(g));
        let mut newest = [vec![0u64; g.d1.sets() as usize], vec![0u64; g.i1.sets() as usize]];
        let (mut context, mut left_out) = (0, 0);
        let (mut booked, mut expected) = (HashMap::new(), HashMap::new());
        for a in accesses(&mut random, 8000) {
            if random.one_in(60) {
                context = random.below(4) as u32;
                for (l1, ll) in [(&mut all, &mut all_ll), (&mut some, &mut some_ll)] {
                    l1.change();
                    ll.change();
                }
                // No line has this number.
                newest[0].fill(u64::MAX);
            }
            let by = all.access(&mut all_ll, port(a), a.addr, a.size, context, &mut |level, owner| {
                *expected.entry((level, owner, context)).or_insert(0u32) += 1;
            });
            let shape = if port(a) == Port::Data { g.d1 } else { g.i1 };
            let mut lines: Vec<u64> =
                (0..u64::from(a.size)).map(|i| a.addr.wrapping_add(i) >> shape.line_bits()).collect();
            lines.dedup();
            let table = &mut newest[port(a) as usize];
            let set = |line: u64| (line % u64::from(shape.sets())) as usize;
            if lines.iter().all(|line| table[set(*line)] == *line) {
                left_out += 1;
                assert_eq!(by as u8, 0);
                continue;
            }
            lines.iter().for_each(|line| table[set(*line)] = *line);
            let seen = some.access(&mut some_ll, port(a), a.addr, a.size, context, &mut |level, owner| {
                *booked.entry((level, owner, context)).or_insert(0u32) += 1;
            });
            assert_eq!(seen, by);
        }
        assert_eq!(booked, expected);
        assert!(left_out > 200);
    }
}

/// Streams by name, prefetching and write-back spelled out.
struct SlowWriteBack {
    first: [Slow; 2],
    ll: Slow,
    streams: HashMap<u64, Vec<u64>>,
    write_back: bool,
    prefetch: bool,
}

impl SlowWriteBack {
    fn new(g: &Geometries, write_back: bool, prefetch: bool) -> Self {
        let first = [Slow::new(g.d1), Slow::new(g.i1)];
        Self { first, ll: Slow::new(g.ll), streams: HashMap::new(), write_back, prefetch }
    }

    /// The last line of each stream and those in a row before it, the newest last.
    fn follow(&mut self, addr: u64) {
        let line = addr / self.ll.line;
        let run = self.streams.entry(addr / 4096 % 8).or_insert_with(|| vec![0]);
        let last = run[run.len() - 1];
        if line == last {
            return;
        }
        let neighbour = line.abs_diff(last) == 1;
        let same_way = run.len() < 2 || (run[run.len() - 1] > run[run.len() - 2]) == (line > last);
        if neighbour && same_way {
            run.push(line);
        } else {
            *run = vec![line];
        }
        if run.len() >= 3 {
            let ahead =
                if line > last { addr.wrapping_add(5 * self.ll.line) } else { addr.wrapping_sub(5 * self.ll.line) };
            self.ll.touch(ahead / self.ll.line);
        }
    }

    fn access(&mut self, a: Access) -> u8 {
        let lines = |size: u64| {
            let mut lines: Vec<u64> = (0..u64::from(a.size)).map(|i| a.addr.wrapping_add(i) / size).collect();
            lines.dedup();
            lines
        };
        let first = &mut self.first[port(a) as usize];
        let missed = lines(first.line).into_iter().filter(|line| first.touch(*line).1.is_some()).count() > 0;
        let write = a.kind == Kind::Write && self.write_back;
        if !missed && !write {
            return 0;
        }
        if self.prefetch {
            self.follow(a.addr);
        }
        let mut outcome = 1;
        for line in lines(self.ll.line) {
            let (info, old) = self.ll.touch(line);
            info.dirty |= write;
            outcome = outcome.max(match old {
                None => 1,
                Some(Info { dirty: false, .. }) => 2,
                Some(_) => 3,
            });
        }
        if missed { outcome } else { 0 }
    }
}

#[test]
fn write_back_and_prefetching_equal_their_twin() {
    for (index, g) in hierarchies().iter().enumerate().filter(|(_, g)| g.ll.size() < 300_000) {
        for (write_back, prefetch) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut random = Random::new(index as u64 + 9000);
            let (mut l1, mut ll) = (WriteThrough::new(g), WriteBackLastLevel::new(g, write_back, prefetch));
            let mut slow = SlowWriteBack::new(g, write_back, prefetch);
            let mut plain = Hierarchy::new(g);
            let mut outcomes = [0; 4];
            let mut trace = accesses(&mut random, 6000);
            // Streams up and down.
            for start in 0..20u64 {
                let base = 0x80_0000 + start * 0x3000;
                let line = u64::from(g.ll.line());
                trace.extend((0..30).map(|i| {
                    let addr = if start % 2 == 0 { base + i * line } else { base - i * line };
                    Access { kind: if i % 3 == 0 { Kind::Write } else { Kind::Read }, addr, size: 4 }
                }));
            }
            for a in trace {
                let action = match a.kind {
                    Kind::Fetch => Action::Fetch,
                    Kind::Read => Action::Read,
                    Kind::Write => Action::Write,
                };
                let by = l1.access(&mut ll, action, a.addr, a.size) as u8;
                assert_eq!(by, slow.access(a), "{a:x?} {g:?} {write_back} {prefetch}");
                if !write_back && !prefetch {
                    assert_eq!(by, plain.access(a));
                }
                outcomes[usize::from(by)] += 1;
            }
            assert!(outcomes[..3].iter().all(|n| *n > 0) && (outcomes[3] > 0) == write_back, "{outcomes:?}");
            let (up, down) = ll.prefetched();
            if prefetch && g.d1.line() <= g.ll.line() {
                assert!(up > 20 && down > 20, "{up} {down} {g:?}");
            }
            assert!(prefetch || (up, down) == (0, 0));
        }
    }
}

/// The last level knows stretches of memory by short numbers, which run out.
#[test]
fn memory_that_is_all_over_the_address_space() {
    let g = Geometries { i1: geometry(128, 1, 64), d1: geometry(128, 1, 64), ll: geometry(1024, 2, 64) };
    let mut random = Random::new(91);
    let (mut usage, mut ll) = (Usage::new(&g).unwrap(), UsageLastLevel::new(&g));
    let mut slow = SlowUsage { caches: [Slow::new(g.d1), Slow::new(g.i1)], ll: Slow::new(g.ll) };
    let (mut book, mut expected) = (Book::default(), Book::default());
    let mut served = [0; 3];
    for n in 0..150_000u64 {
        let owner = Owner { node: 0, site: random.below(9) as u32 };
        (book.now, expected.now) = (owner, owner);
        // Lines of a set are 512 bytes apart.
        let far = n.saturating_sub(random.below(4)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let addr = far.wrapping_mul(512) + 64 * random.below(2);
        let a = Access { addr, size: 8, ..accesses(&mut random, 1)[0] };
        let by = usage.access(&mut ll, port(a), a.addr, a.size, true, &mut book);
        assert_eq!(by as u8, slow.access(a, true, &mut expected), "access {n}");
        served[by as usize] += 1;
    }
    assert!(served.iter().all(|n| *n > 10_000), "{served:?}");
    usage.flush(&mut ll, true, &mut book);
    ll.flush(true, &mut book);
    slow.flush(&mut expected);
    assert_eq!(book.costs, expected.costs);
}
