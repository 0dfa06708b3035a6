//! The models against their twins, on random traces.

use std::collections::{HashMap, VecDeque};

use crate::twin::{Access, Hierarchy, Kind, Random, accesses, geometry, hierarchies};
use cg_sim::{Geometries, LastLevel, Level1, Port, Predictor, Served};

fn access(l1: &mut Level1, ll: &mut LastLevel, a: Access) -> Served {
    match a.kind {
        Kind::Fetch => l1.fetch(ll, a.addr, a.size),
        Kind::Read | Kind::Write => l1.data(ll, a.addr, a.size),
    }
}

#[test]
fn caches_equal_their_twins() {
    for (index, g) in hierarchies().iter().enumerate() {
        for seed in 0..12 {
            let mut random = Random::new(seed * 100 + index as u64);
            let (mut l1, mut ll, mut twin) = (Level1::new(g), LastLevel::new(g), Hierarchy::new(g));
            let mut served = [0u32; 3];
            for a in accesses(&mut random, 4000) {
                let expected = twin.access(a);
                assert_eq!(access(&mut l1, &mut ll, a) as u8, expected, "{a:x?} with {g:?}, seed {seed}");
                served[usize::from(expected)] += 1;
            }
            assert!(served.iter().all(|n| *n > 0), "a trace that tests nothing: {served:?} with {g:?}, seed {seed}");
        }
    }
}

impl cg_sim::Access for Access {
    fn port(&self) -> Port {
        if self.kind == Kind::Fetch { Port::Fetch } else { Port::Data }
    }

    fn addr(&self) -> u64 {
        self.addr
    }

    fn size(&self) -> u32 {
        self.size
    }
}

#[test]
fn many_at_once_are_like_one_by_one() {
    let mut all = hierarchies();
    all.push(Geometries { ll: geometry(4096, 16, 64), ..all[5] });
    all.push(Geometries { i1: geometry(512, 8, 64), d1: geometry(512, 8, 64), ll: geometry(4096, 16, 64) });
    all.push(Geometries { i1: geometry(512, 8, 64), d1: geometry(1536, 12, 64), ll: geometry(2048, 4, 64) });
    for (index, g) in all.iter().enumerate() {
        let mut random = Random::new(index as u64 + 900);
        let (mut l1, mut ll, mut twin) = (Level1::new(g), LastLevel::new(g), Hierarchy::new(g));
        for batch in accesses(&mut random, 8000).chunks(777) {
            let mut missed = Vec::new();
            l1.replay(&mut ll, batch, |a, served| missed.push((a.addr, served as u8)));
            let expected: Vec<(u64, u8)> =
                batch.iter().map(|a| (a.addr, twin.access(*a))).filter(|(_, by)| *by > 0).collect();
            assert_eq!(missed, expected, "{g:?}");
        }
    }
}

/// Leaving out accesses all of whose lines are the newest of their sets changes no other answer, and those left out are
/// hits. It does not matter whether those to several lines are left out, too.
#[test]
fn accesses_to_the_newest_lines_may_be_left_out() {
    for several in [false, true] {
        leave_out(several);
    }
}

fn leave_out(several: bool) {
    for (index, g) in hierarchies().iter().enumerate() {
        for seed in 0..12 {
            let mut random = Random::new(seed * 100 + index as u64 + 50);
            let (mut l1, mut ll, mut all) = (Level1::new(g), LastLevel::new(g), Hierarchy::new(g));
            // What the guest's own filter knows: the newest line of each set, starting as 0.
            let mut newest = [vec![0u64; g.i1.sets() as usize], vec![0u64; g.d1.sets() as usize]];
            let (mut left_out, mut straddles, mut straddles_left_out) = (0, 0, 0);
            for a in accesses(&mut random, 4000) {
                let shape = if a.kind == Kind::Fetch { g.i1 } else { g.d1 };
                let lines = all.first(a.kind).lines(a.addr, a.size);
                let table = &mut newest[usize::from(a.kind != Kind::Fetch)];
                let set = |line: u64| (line % u64::from(shape.sets())) as usize;
                let drop = (several || lines.len() == 1) && lines.iter().all(|line| table[set(*line)] == *line);
                assert_eq!(drop, (several || lines.len() == 1) && all.changes_nothing(a));
                straddles_left_out += u32::from(drop && lines.len() > 1);
                for line in &lines {
                    table[set(*line)] = *line;
                }
                straddles += u32::from(lines.len() > 1);
                let expected = all.access(a);
                if drop {
                    assert_eq!(expected, 0, "{a:x?}");
                    left_out += 1;
                } else {
                    assert_eq!(access(&mut l1, &mut ll, a) as u8, expected, "{a:x?} with {g:?}, seed {seed}");
                }
            }
            assert!(left_out > 100 && straddles > 50, "{left_out} {straddles}");
            assert!(!several || straddles_left_out > 5 || g.i1.sets() == 1, "{straddles_left_out}");
        }
    }
}

#[test]
fn a_copy_goes_on_alone() {
    let g = hierarchies()[0];
    let mut random = Random::new(5);
    let (mut l1, mut ll, mut twin) = (Level1::new(&g), LastLevel::new(&g), Hierarchy::new(&g));
    for a in accesses(&mut random, 1000) {
        access(&mut l1, &mut ll, a);
        twin.access(a);
    }
    let (mut child, mut child_ll, mut child_twin) = (l1.clone(), ll.clone(), twin.clone());
    for a in accesses(&mut random, 1000) {
        assert_eq!(access(&mut l1, &mut ll, a) as u8, twin.access(a));
    }
    for a in accesses(&mut random, 1000) {
        assert_eq!(access(&mut child, &mut child_ll, a) as u8, child_twin.access(a));
    }
}

#[test]
fn line_0_is_there_from_the_start() {
    for g in hierarchies() {
        let (mut l1, mut ll) = (Level1::new(&g), LastLevel::new(&g));
        assert_eq!(l1.data(&mut ll, 0, 8), Served::L1);
        assert_eq!(l1.fetch(&mut ll, 1, 3), Served::L1);
        assert_eq!(l1.data(&mut ll, u64::from(g.d1.line().max(g.ll.line())) - 1, 2), Served::Memory);
    }
}

/// The predictor in other words: outcomes as a list, counters and targets found by keys.
#[derive(Default)]
struct SlowPredictor {
    outcomes: VecDeque<bool>,
    counters: HashMap<(Vec<bool>, u64), i32>,
    targets: HashMap<u64, u64>,
}

impl SlowPredictor {
    fn conditional(&mut self, addr: u64, taken: bool) -> bool {
        self.outcomes.resize(7.max(self.outcomes.len()), false);
        let recent: Vec<bool> = self.outcomes.iter().take(7).copied().collect();
        let counter = self.counters.entry((recent, addr % 128)).or_insert(0);
        let wrong = (*counter >= 2) != taken;
        *counter = (*counter + if taken { 1 } else { -1 }).clamp(0, 3);
        self.outcomes.push_front(taken);
        self.outcomes.truncate(7);
        wrong
    }

    fn indirect(&mut self, addr: u64, target: u64) -> bool {
        self.targets.insert(addr % 512, target).unwrap_or(0) != target
    }
}

#[test]
fn the_predictor_equals_its_twin() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let (mut fast, mut slow) = (Predictor::new(), SlowPredictor::default());
        let mut wrong = [0, 0];
        for i in 0..20_000u64 {
            let addr = random.below(1 << (4 + 4 * (seed % 4)));
            let taken = if addr.is_multiple_of(3) { i % 5 != 0 } else { random.one_in(2) };
            let expected = slow.conditional(addr, taken);
            assert_eq!(fast.conditional(addr, taken), expected, "branch {i}, seed {seed}");
            wrong[usize::from(expected)] += 1;
            let target = random.below(3);
            assert_eq!(fast.indirect(addr, target), slow.indirect(addr, target), "jump {i}, seed {seed}");
        }
        assert!(wrong.iter().all(|n| *n > 1000));
    }
}
