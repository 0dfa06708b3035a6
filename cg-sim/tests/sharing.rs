//! Shared lines beside a naive twin: a log of every byte that every access has used, from which all is found anew by comparing each
//! byte with each, without masks, tables or sums.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cg_sim::sharing::{Move, NO_OBJECT, OfObject, Place, RowUse, SITES, Sharing, Touch};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A byte that an access has used.
#[derive(Clone, Copy)]
struct Used {
    thread: u32,
    /// The object and where it begins: of the first byte of the access in the line.
    lies: (u32, u64),
    byte: u64,
    reads: bool,
    writes: bool,
    /// The access: bytes of one count once.
    access: usize,
    site: u32,
    at: u32,
}

#[derive(Default)]
struct Twin {
    line: u64,
    now: u32,
    lives: Vec<(u32, Option<u32>)>,
    log: Vec<Used>,
    accesses: usize,
    /// Lines by who has used them how, with sums by use; and sums by object.
    rows: BTreeMap<Shape, (u64, Vec<Sums>)>,
    objects: BTreeMap<u32, OfObject>,
}

/// Truly or falsely; by thread and place in order: object, bytes read, bytes written.
type Shape = (bool, Vec<(u32, u32, BTreeSet<u64>, BTreeSet<u64>)>);
/// Offset, reads, writes, sites.
type Sums = (i64, u64, u64, BTreeSet<u32>);

impl Twin {
    fn living(&self) -> Vec<u32> {
        (0..self.lives.len() as u32).filter(|n| self.lives[*n as usize].1.is_none()).collect()
    }

    fn begins(&mut self) {
        self.now += 1;
        self.lives.push((self.now, None));
    }

    fn ends(&mut self, thread: u32) {
        self.lives[thread as usize].1 = Some(self.now);
        self.now += 1;
    }

    fn touch(&mut self, thread: u32, touch: Touch, place: impl Fn(u64) -> Place) {
        if self.living().len() < 2 {
            return;
        }
        let mut lies = (0, 0);
        for n in 0..u64::from(touch.size.max(1)) {
            let byte = touch.addr + n;
            if n == 0 || byte.is_multiple_of(self.line) {
                let place = place(byte);
                lies = (place.object, place.start);
                self.accesses += 1;
            }
            let (reads, writes, site) = (touch.reads, touch.writes, touch.site);
            self.log.push(Used { thread, lies, byte, reads, writes, access: self.accesses, site, at: self.now });
        }
    }

    fn close(&mut self, range: Range<u64>) {
        let lines: BTreeSet<u64> = range.map(|byte| byte / self.line).collect();
        let (gone, stays) = self.log.iter().partition(|used| lines.contains(&(used.byte / self.line)));
        self.log = stays;
        let gone: Vec<Used> = gone;
        for line in lines {
            let of_line: Vec<Used> = gone.iter().copied().filter(|used| used.byte / self.line == line).collect();
            self.judge(line * self.line, &of_line);
        }
    }

    fn judge(&mut self, start: u64, log: &[Used]) {
        let threads: BTreeSet<u32> = log.iter().map(|used| used.thread).collect();
        let whiles = |thread: u32| {
            let times: Vec<u32> = log.iter().filter(|used| used.thread == thread).map(|used| used.at).collect();
            *times.iter().min().unwrap()..=*times.iter().max().unwrap()
        };
        let lived_then = |a: u32, b: u32| {
            let (from, to) = self.lives[b as usize];
            whiles(a).any(|at| from <= at && to.is_none_or(|to| at <= to))
        };
        let (mut sharers, mut truly) = (BTreeSet::new(), false);
        for &a in &threads {
            for &b in threads.iter().filter(|b| **b != a) {
                let write = log.iter().any(|used| (used.thread == a || used.thread == b) && used.writes);
                if !(write && lived_then(a, b) && lived_then(b, a)) {
                    continue;
                }
                sharers.extend([a, b]);
                for x in log.iter().filter(|x| x.thread == a && x.writes) {
                    truly |= log.iter().any(|y| y.thread == b && y.byte == x.byte);
                }
            }
        }
        if sharers.is_empty() {
            return;
        }
        let uses: BTreeSet<(u32, u64, u32)> = log
            .iter()
            .filter(|used| sharers.contains(&used.thread))
            .map(|used| (used.thread, used.lies.1, used.lies.0))
            .collect();
        let (mut shape, mut sums, mut there) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (thread, place, object) in uses {
            let mine: Vec<&Used> =
                log.iter().filter(|used| used.thread == thread && used.lies == (object, place)).collect();
            let bytes = |which: fn(&Used) -> bool| -> BTreeSet<u64> {
                mine.iter().filter(|used| which(used)).map(|used| used.byte - start).collect()
            };
            let count = |which: fn(&Used) -> bool| {
                let accesses: BTreeSet<usize> = mine.iter().filter(|u| which(u)).map(|used| used.access).collect();
                accesses.len() as u64
            };
            let (reads, writes) = (count(|used| used.reads), count(|used| used.writes));
            shape.push((thread, object, bytes(|used| used.reads), bytes(|used| used.writes)));
            let sites = mine.iter().map(|used| used.site).collect();
            sums.push((start as i64 - place as i64, reads, writes, sites));
            if object != NO_OBJECT {
                let of = self.objects.entry(object).or_default();
                of.accesses[if truly { 2 } else { 0 }] += reads;
                of.accesses[if truly { 3 } else { 1 }] += writes;
                of.lines[usize::from(truly)] += u64::from(there.insert(object));
            }
        }
        let row =
            self.rows.entry((truly, shape)).or_insert_with(|| (0, vec![(i64::MAX, 0, 0, BTreeSet::new()); sums.len()]));
        row.0 += 1;
        for (sum, more) in row.1.iter_mut().zip(sums) {
            *sum = (sum.0.min(more.0), sum.1 + more.1, sum.2 + more.2, &sum.3 | &more.3);
        }
    }
}

fn bits(mask: u64) -> BTreeSet<u64> {
    (0..64).filter(|n| mask >> n & 1 == 1).collect()
}

/// Runs random threads over memory in which blocks come and go, and compares. Returns how many rows there were, and how many of them
/// truly shared.
fn compare(seed: u64) -> (usize, usize) {
    let mut random = Random(seed);
    let line = [16, 32, 64][random.below(3) as usize];
    // Few lines, or more than a table has sets.
    let lines = if random.below(8) == 0 { 3000 } else { 1 + random.below(12) };
    let memory = lines * line;
    let base = 0x1000u64;
    let mut twin = Twin { line, ..Twin::default() };
    let mut sharing = Sharing::new(line as u32);
    let mut blocks: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    for _ in 0..=random.below(2) {
        assert_eq!(sharing.begins() as usize, twin.lives.len());
        twin.begins();
    }
    for _ in 0..200 + random.below(600) {
        let living = twin.living();
        match random.below(40) {
            0 if twin.lives.len() < 9 => {
                assert_eq!(sharing.begins() as usize, twin.lives.len());
                twin.begins();
            }
            1 if living.len() > 1 => {
                let thread = living[random.below(living.len() as u64) as usize];
                sharing.ends(thread);
                twin.ends(thread);
            }
            2 | 3 => {
                // A block is born where others, which are gone, may have been; or one is gone.
                let start = base + random.below(memory);
                let end = (start + 1 + random.below(if lines > 12 { memory } else { 3 * line })).min(base + memory);
                let under: Vec<(u64, u64)> =
                    blocks.iter().map(|(s, (e, _))| (*s, *e)).filter(|(s, e)| *s < end && start < *e).collect();
                for (start, end) in under {
                    blocks.remove(&start);
                    sharing.close(start..end);
                    twin.close(start..end);
                }
                if random.below(3) > 0 {
                    blocks.insert(start, (end, random.below(3) as u32));
                }
                sharing.close(start..end);
                twin.close(start..end);
            }
            _ => {
                let thread = living[random.below(living.len() as u64) as usize];
                let kind = random.below(6);
                let touch = Touch {
                    addr: base + random.below(memory - 1),
                    size: [0, 1, 2, 4, 8, 16][random.below(6) as usize],
                    reads: kind != 0,
                    writes: kind < 2,
                    site: random.below(7) as u32,
                };
                let place = |addr: u64| match blocks.range(..=addr).next_back().filter(|(_, (end, _))| addr < *end) {
                    Some((start, (end, object))) => Place { object: *object, start: *start, known: *start..*end },
                    None => Place { object: NO_OBJECT, start: addr / line * line, known: addr..addr + 1 },
                };
                sharing.touch(thread, touch, place);
                twin.touch(thread, touch, place);
            }
        }
    }
    twin.close(base..base + memory + 64);
    let found = sharing.found();
    assert_eq!((u64::from(found.line), found.threads, found.others), (line, twin.lives.len(), 0), "{seed}");
    let mut rows = BTreeMap::new();
    for row in found.rows {
        let shape = |u: &RowUse| (u.thread, u.object, bits(u.read), bits(u.written));
        let sums = |u: &RowUse| (u.offset, u.reads, u.writes, u.sites.iter().copied().collect::<BTreeSet<u32>>());
        let key: Shape = (row.truly, row.uses.iter().map(shape).collect());
        let before = rows.insert(key, (row.lines, row.uses.iter().map(sums).collect::<Vec<Sums>>()));
        assert_eq!(before, None, "{seed}: a row twice");
    }
    // Of many places in code some are enough.
    for (sums, all) in rows.values_mut().zip(twin.rows.values()).flat_map(|(row, all)| row.1.iter_mut().zip(&all.1)) {
        if sums.3.is_subset(&all.3) && sums.3.len() >= SITES.min(all.3.len()) {
            sums.3.clone_from(&all.3);
        }
    }
    assert_eq!(rows, twin.rows, "{seed}");
    assert_eq!(found.objects.into_iter().collect::<BTreeMap<_, _>>(), twin.objects, "{seed}");
    (rows.len(), rows.keys().filter(|(truly, _)| *truly).count())
}

#[test]
fn what_is_shared_is_what_a_log_of_bytes_says() {
    let (mut all, mut truly) = (0, 0);
    for seed in 0..500 {
        let (rows, some) = compare(seed);
        (all, truly) = (all + rows, truly + some);
    }
    assert!(all - truly > 500 && truly > 500, "{truly} of {all}");
}

/// Two threads and a third one at the same line.
#[test]
fn only_threads_that_meet_share() {
    let touch = |addr, writes| Touch { addr, size: 8, reads: true, writes, site: 1 };
    let place = |addr: u64| Place { object: 5, start: 0x100, known: addr & !63..(addr & !63) + 64 };
    let mut sharing = Sharing::new(64);
    let main = sharing.begins();
    sharing.touch(main, touch(0x100, true), place);
    assert!(sharing.alone());
    let first = sharing.begins();
    sharing.touch(first, touch(0x100, true), place);
    sharing.ends(first);
    // It is over before this one reads it, and before the next one begins.
    sharing.touch(main, touch(0x100, true), place);
    let second = sharing.begins();
    let third = sharing.begins();
    sharing.touch(second, touch(0x108, true), place);
    sharing.touch(third, touch(0x110, false), place);
    sharing.touch(third, touch(0x208, false), place);
    sharing.touch(second, touch(0x208, false), place);
    let found = sharing.found();
    let uses: Vec<_> =
        found.rows.iter().flat_map(|row| &row.uses).map(|u| (u.thread, u.offset, u.read, u.written)).collect();
    assert_eq!((found.rows.len(), found.rows[0].truly, found.threads), (1, false, 4));
    assert_eq!(uses, [(second, 0, 0xff00, 0xff00), (third, 0, 0xff_0000, 0)], "and nobody writes the other line");
    assert_eq!(found.objects[&5], OfObject { lines: [1, 0], accesses: [2, 1, 0, 0], ..OfObject::default() });
}

#[test]
fn a_child_shares_nothing_with_its_creators_threads() {
    let touch = |addr| Touch { addr, size: 1, reads: false, writes: true, site: 0 };
    let place = |addr: u64| Place { object: NO_OBJECT, start: addr & !63, known: addr..addr + 1 };
    let mut sharing = Sharing::new(64);
    let [a, b] = [sharing.begins(), sharing.begins()];
    sharing.touch(a, touch(0), place);
    sharing.touch(b, touch(1), place);
    let mut child = sharing.clone();
    child.forked(Some(b));
    assert!(child.alone());
    let c = child.begins();
    child.touch(c, touch(2), place);
    let anew = {
        let mut child = child.clone();
        child.forget();
        child.found()
    };
    let lines =
        |found: cg_sim::sharing::Found| found.rows.iter().map(|row| (row.lines, row.uses.len())).collect::<Vec<_>>();
    assert_eq!((lines(sharing.found()), lines(child.found()), lines(anew)), (vec![(1, 2)], vec![(1, 2)], vec![]));
}

/// Accesses one behind the other, told at once, beside the same told one by one, over blocks that end within lines.
#[test]
fn what_is_swept_over_is_what_each_access_uses() {
    let mut shared = 0;
    for seed in 0..300 {
        let mut random = Random(seed);
        let ends: Vec<u64> = (0..6).map(|_| 0x1000 + random.below(700)).collect();
        let place = |addr: u64| {
            let start = ends.iter().copied().filter(|end| *end <= addr).max().unwrap_or(0x1000);
            let end = ends.iter().copied().filter(|end| *end > addr).min().unwrap_or(u64::MAX);
            Place { object: (start % 5) as u32, start, known: start..end }
        };
        let mut all = [Sharing::new(64), Sharing::new(64)];
        all.iter_mut().for_each(|one| _ = (one.begins(), one.begins()));
        for _ in 0..12 {
            let (thread, n) = (random.below(2) as u32, random.below(40));
            let size = [1, 2, 4, 8][random.below(4) as usize];
            let writes = random.below(2) == 0;
            let touch = Touch { addr: 0x1000 + random.below(500), size, reads: !writes, writes, site: 1 };
            let [swept, each] = &mut all;
            swept.sweep(thread, touch, n, place);
            for k in 0..n {
                each.touch(thread, Touch { addr: touch.addr + k * u64::from(size), ..touch }, place);
            }
        }
        let rows = all.map(|one| {
            let rows = one.found().rows.into_iter();
            let shape = |u: &RowUse| (u.thread, u.object, u.offset, u.read, u.written);
            rows.map(|row| (row.truly, row.lines, row.uses.iter().map(shape).collect()))
                .collect::<BTreeSet<(_, _, Vec<_>)>>()
        });
        assert_eq!(rows[0], rows[1], "{seed}");
        shared += rows[0].len();
    }
    assert!(shared > 300, "{shared}");
}

/// Random moves beside a list of them: what the rows have is what has moved to those who share a line, the rest has been handed over, and
/// objects have all of it.
#[test]
fn moves_are_in_the_rows_of_those_who_share() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let mut all = Sharing::new(64);
        let threads: Vec<u32> = (0..4).map(|_| all.begins()).collect();
        // Two blocks a line.
        let place = |addr: u64| {
            let start = addr & !31;
            Place { object: (start / 32 % 3) as u32, start, known: start..start + 32 }
        };
        let mut log: Vec<(u32, u64, Move)> = Vec::new();
        for step in 0..600 {
            // One of them ends half-way, so nobody meets it behind that.
            let thread = threads[random.below(if step < 300 { 4 } else { 3 }) as usize];
            if step == 300 {
                all.ends(threads[3]);
            }
            let addr = 64 * random.below(30) + random.below(64);
            let writes = random.below(2) == 0;
            let touch = Touch { addr, size: 1, reads: !writes, writes, site: 1 };
            all.touch(thread, touch, place);
            let from = threads[random.below(4) as usize];
            let how = match random.below(4) {
                0 => Move::Read(from),
                1 => Move::Written(from),
                2 => Move::Upgraded,
                _ => continue,
            };
            all.moved(thread, addr, how, place);
            log.push((thread, addr, how));
        }
        all.unplaced();
        let found = all.found();
        assert_eq!(found.unplaced, 1);
        let mut rows = [0; 3];
        let mut moved: BTreeMap<(u32, Option<u32>, bool), u64> = BTreeMap::new();
        for used in found.rows.iter().flat_map(|row| &row.uses) {
            let sums = used.moves.sums();
            (0..3).for_each(|n| rows[n] += sums[n]);
            for (from, [reads, writes]) in &used.moves.from {
                *moved.entry((used.thread, Some(*from), false)).or_default() += reads;
                *moved.entry((used.thread, Some(*from), true)).or_default() += writes;
            }
            *moved.entry((used.thread, None, true)).or_default() += used.moves.upgrades;
        }
        let of = |how: &Move| match how {
            Move::Read(_) => 0,
            Move::Written(_) => 1,
            Move::Upgraded => 2,
        };
        let mut sums = [0; 3];
        let mut objects = [[0; 3]; 3];
        let mut most: BTreeMap<(u32, Option<u32>, bool), u64> = BTreeMap::new();
        for (thread, addr, how) in &log {
            sums[of(how)] += 1;
            objects[(addr / 32 % 3) as usize][of(how)] += 1;
            let key = match how {
                Move::Read(from) => (*thread, Some(*from), false),
                Move::Written(from) => (*thread, Some(*from), true),
                Move::Upgraded => (*thread, None, true),
            };
            *most.entry(key).or_default() += 1;
        }
        for n in 0..3 {
            assert_eq!(rows[n] + found.handed_over[n], sums[n], "{seed}");
            assert_eq!(found.objects[&(n as u32)].moves, objects[n], "{seed}");
        }
        assert!(rows.iter().all(|n| *n > 0), "{seed}");
        let within = |(key, n): (&_, &u64)| most.get(key).copied().unwrap_or(0) >= *n;
        assert!(moved.iter().all(within), "{seed}: {moved:?}, {most:?}");
    }
    // A line that only one thread has used is in no row.
    let mut all = Sharing::new(64);
    let [first, second] = [0, 0].map(|_| all.begins());
    let place = |addr: u64| Place { object: 0, start: addr, known: addr..addr + 64 };
    all.touch(first, Touch { addr: 64, size: 8, reads: true, writes: true, site: 0 }, place);
    all.moved(first, 64, Move::Written(second), place);
    let found = all.found();
    assert_eq!((found.rows.len(), found.handed_over), (0, [0, 1, 0]));
}
