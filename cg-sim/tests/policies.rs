//! Every policy against an automaton of its bits, written as the papers have it, on random lines; and closed forms.

use crate::twin::policies::automaton;
use crate::twin::{Random, geometry};
use cg_sim::Geometry;
use cg_sim::cache::Cache;
use cg_sim::policy::{Policy, parse_shape};

/// Policies that have an automaton, with a shape that each can have.
const ALL: &[&str] = &[
    "1024,4,64,lru",
    "1024,8,64,lru",
    "256,1,64,lru",
    "1024,4,64,plru",
    "1024,8,64,plru",
    "2048,16,64,plru",
    "256,1,64,plru",
    "4096,64,64,plru",
    "1536,12,64,lru3plru4",
    "1024,4,64,fifo",
    "960,15,64,fifo",
    "1024,8,64,nru",
    "1024,4,64,srrip",
    "1024,8,64,brrip",
    "16384,4,64,drrip",
    "8192,2,64,drrip",
    "256,2,64,drrip",
    "1024,8,64,qlru:H11_M1_R0_U0",
    "1024,4,64,qlru:H00_M1_R2_U1",
    "1024,8,64,qlru:H00_M1_R0_U1",
    "768,12,64,qlru:H11_M1_R1_U2",
    "1024,8,64,qlru:H21_M2_R1_U3",
    "1024,8,64,qlru:H21_M2_R0_U0_UMO",
    "1024,8,64,qlru:H10_M3_R2_U0_UMO",
    "1024,8,64,qlru:H20_M0_R1_U2_UMO",
    "1024,4,64,qlru:H00_M2_R1_U3_UMO",
];

/// Lines with hot ones, sweeps larger than the cache, and steps through one set.
fn line(random: &mut Random, shape: Geometry, round: u64) -> u64 {
    let (sets, all) = (u64::from(shape.sets()), u64::from(shape.sets() * shape.assoc()));
    match random.below(8) {
        0..3 => random.below(all / 2 + 2),
        3..5 => random.below(all + all / 2 + 1),
        5 => round % (all + all / 4 + 1),
        6 => random.below(2 * u64::from(shape.assoc()) + 1) * sets,
        _ => random.below(4 * all),
    }
}

#[test]
fn policies_equal_their_automata() {
    for text in ALL {
        let (shape, policy) = parse_shape(text).unwrap();
        for seed in 0..6 {
            let mut random = Random::new(seed * 31 + text.len() as u64);
            let (mut cache, mut twin) = (Cache::new(shape, policy), automaton(shape, policy));
            let [mut hits, mut displaced, mut removed] = [0; 3];
            for round in 0..20_000 {
                let line = line(&mut random, shape, round);
                // Some runs have holes.
                if seed % 2 == 1 && random.one_in(16) {
                    let was = cache.remove(line);
                    assert_eq!(was, twin.remove(line), "{text}, seed {seed}, round {round}");
                    removed += u32::from(was);
                    continue;
                }
                assert_eq!(cache.has(line), twin.has(line), "{text}, seed {seed}, round {round}");
                let hit = cache.touch(line);
                assert_eq!(hit, twin.touch(line), "{text}, seed {seed}, round {round}");
                if hit {
                    hits += 1;
                } else {
                    let (gone, expected) = (cache.fill(line), twin.fill(line));
                    assert_eq!(gone, expected, "{text}, seed {seed}, round {round}");
                    displaced += u32::from(gone.is_some());
                }
            }
            assert!(hits > 1000 && displaced > 1000, "a trace that tests nothing: {hits} {displaced}, {text}");
            assert!(removed > 100 || seed % 2 == 0, "{removed}, {text}");
        }
    }
}

fn misses(text: &str, lines: impl IntoIterator<Item = u64>) -> u64 {
    let (shape, policy) = parse_shape(text).unwrap();
    let mut cache = Cache::new(shape, policy);
    lines.into_iter().fold(0, |missed, line| {
        if cache.touch(line) {
            return missed;
        }
        cache.fill(line);
        missed + 1
    })
}

/// Going round through one line more than there is room for: nothing is ever found again by those that keep the newest lines;
/// the others keep some.
#[test]
fn cyclic_accesses_have_closed_forms() {
    let rounds = 1000;
    let cycle = |lines: u64| (0..rounds).flat_map(move |_| 0..lines);
    for policy in ["lru", "fifo"] {
        assert_eq!(misses(&format!("512,8,64,{policy}"), cycle(8)), 8);
        assert_eq!(misses(&format!("512,8,64,{policy}"), cycle(9)), 9 * rounds);
    }
    // A line that is loaded is old when all are: the next one replaces the first way, round by round one line later.
    assert_eq!(misses("512,8,64,srrip", cycle(9)), 9 * rounds);
    // What is loaded as useless goes at once, all but each thirty-second: so the first seven ways stay.
    let kept = misses("512,8,64,brrip", cycle(9));
    assert!(kept < 3 * rounds, "{kept}");
    // In both of two sets: one follows one policy, one the other.
    let duel = misses("2048,8,64,drrip", cycle(36));
    assert!(duel < 36 * rounds && duel > 18 * rounds, "{duel}");
}

/// The two accesses that tell LRU and tree-PLRU apart: the tree forgets what was used before the other half was.
#[test]
fn a_tree_is_not_an_order() {
    let lines = [0, 1, 2, 3, 0, 4, 1, 2];
    // LRU: 4 replaces 1, 1 replaces 2, 2 replaces 3. Tree: 4 replaces 2, and 1 is there.
    assert_eq!((misses("256,4,64,lru", lines), misses("256,4,64,plru", lines)), (7, 6));
}

#[test]
fn random_choices_follow_from_the_seed_alone() {
    let shape = geometry(4096, 16, 64);
    let run = |seed| {
        let mut random = Random::new(3);
        let mut cache = Cache::new(shape, Policy::Random(seed));
        let mut displaced = Vec::new();
        for _ in 0..20_000 {
            let line = random.below(128);
            if !cache.touch(line) {
                displaced.push(cache.fill(line));
            }
        }
        displaced
    };
    let displaced = run(0);
    assert_eq!(displaced, run(0));
    assert!(displaced != run(1) && run(1) != run(2));
    // Nothing is displaced before a set is full.
    assert!(displaced.iter().filter(|gone| gone.is_none()).count() == 64);
    // And each way of a full set is taken about as often as any other: a line more than there are ways stays so long.
    let mut cache = Cache::new(geometry(512, 8, 64), Policy::Random(7));
    let mut at: Vec<u64> = (0..8).collect();
    at.iter().for_each(|line| assert_eq!(cache.fill(*line), None));
    let mut taken = [0u32; 8];
    for line in 8..80_008 {
        let gone = cache.fill(line).unwrap();
        let way = at.iter().position(|other| *other == gone).unwrap();
        (at[way], taken[way]) = (line, taken[way] + 1);
    }
    assert!(taken.iter().all(|n| (9_500..10_500).contains(n)), "{taken:?}");
}

#[test]
fn a_copy_goes_on_alone() {
    for text in ALL {
        let (shape, policy) = parse_shape(text).unwrap();
        let mut random = Random::new(9);
        let mut cache = Cache::new(shape, policy);
        let go = |cache: &mut Cache, lines: &[u64]| {
            lines.iter().map(|line| cache.touch(*line) || cache.fill(*line) == Some(u64::MAX)).collect::<Vec<_>>()
        };
        let mut some = |n| (0..n).map(|round| line(&mut random, shape, round)).collect::<Vec<_>>();
        let (before, one, other) = (some(500), some(500), some(500));
        go(&mut cache, &before);
        let mut copy = cache.clone();
        let alone = go(&mut cache.clone(), &other);
        go(&mut cache, &one);
        assert_eq!(go(&mut copy, &other), alone);
    }
}

/// What is looked up and filled in one go is as if it were done one after the other.
#[test]
fn accesses_are_lookups_and_fills() {
    for text in ALL.iter().chain(&["1024,16,64,lru", "1024,8,64,random:3", "3072,3,64,lru"]) {
        let (shape, policy) = parse_shape(text).unwrap();
        let mut random = Random::new(11);
        let (mut at_once, mut apart) = (Cache::new(shape, policy), Cache::new(shape, policy));
        for round in 0..10_000 {
            let line = line(&mut random, shape, round);
            if random.one_in(32) {
                assert_eq!(at_once.remove(line), apart.remove(line));
                continue;
            }
            let hit = apart.touch(line);
            if !hit {
                apart.fill(line);
            }
            assert_eq!(at_once.access(line), hit, "{text}, round {round}");
        }
    }
}
