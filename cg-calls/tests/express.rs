//! The fast loop against the events that it stands for: random walks through functions, stubs and levels of recursion, told as
//! records and as events, give the same profile and the same total.

use crate::common::at;
use crate::common::walk::{Walk, event, event_at, program, sorted, walk};
use cg_calls::{Calls, Config, Packed, SiteId, Step, StepKind};

#[test]
fn records_and_events_agree() {
    let mut fast = 0;
    for seed in 1..200 {
        let mut program = program();
        let walk = walk(&mut program, seed, 3000);
        let config = Config { contexts: true, ..Config::arcs_only(1) };
        let [mut records, mut events] = [(); 2].map(|()| {
            let mut calls = Calls::new(config.clone(), &[0]);
            calls.begin(&mut program, at(1, 0));
            (calls, 0u64)
        });
        let ends = |at: usize| u64::from(walk.steps[walk.words[at] as usize].ends);
        let (mut done, mut ended) = (0, 0);
        while done < walk.words.len() {
            let n = records.0.fast_path(&walk.steps, &walk.words[done..], &mut records.1);
            done += n;
            fast += n;
            if done < walk.words.len() {
                ended += ends(done);
                done += event(&mut records.0, &mut program, &walk, done, &mut records.1);
            }
        }
        for &at in &walk.records {
            event(&mut events.0, &mut program, &walk, at, &mut events.1);
        }
        assert_eq!(records.1, events.1, "seed {seed}");
        let all: u64 = walk.records.iter().map(|at| ends(*at)).sum();
        assert_eq!(records.0.ended() + ended, all, "seed {seed}");
        let [now] = [[events.1]];
        assert_eq!(sorted(&mut records.0, &now), sorted(&mut events.0, &now), "seed {seed}");
    }
    assert!(fast > 500_000, "only {fast} words went the fast way");
}

/// Costs of the fast loop for several of them: six of executions, two of misses.
const COSTS: usize = 8;
/// Records of misses, and the number of the first one's counter.
const MISSES: u32 = 10;
const FIRST_MISS: u32 = 5000;

/// What an execution costs, of those costs that are known from it.
fn known_costs(step: &Step) -> [u64; Packed::COSTS] {
    let counter = u64::from(step.counter);
    // Some do not fit into a packed word.
    let reads = if counter.is_multiple_of(13) { 300 } else { counter % 5 };
    [step.cost.into(), reads, counter % 4, counter % 3, counter % 2, counter / 3 % 2]
}

/// The walk with misses here and there; their steps are the last ones.
fn with_misses(mut walk: Walk) -> (Walk, u32) {
    let first = walk.steps.len() as u32;
    for n in 0..MISSES {
        let counter = FIRST_MISS + n;
        walk.steps.push(Step { kind: StepKind::Other, ends: 0, counter, cost: 0, site: SiteId(0), target: 0 });
    }
    let (mut words, mut records) = (Vec::new(), Vec::new());
    let ends = walk.records.iter().skip(1).copied().chain([walk.words.len()]);
    for (i, (&at, end)) in walk.records.iter().zip(ends).enumerate() {
        if i % 7 < 2 {
            records.push(words.len());
            words.push(first + (i / 7 + at) as u32 % MISSES);
        }
        records.push(words.len());
        words.extend(&walk.words[at..end]);
    }
    (Walk { words, records, ..walk }, first)
}

#[test]
fn several_costs_and_misses_agree_with_events() {
    let mut fast = 0;
    for seed in 1..150 {
        let mut program = program();
        let (walk, first_miss) = with_misses(walk(&mut program, seed, 3000));
        // As the fast loop wants them.
        let steps: Vec<Step> = walk
            .steps
            .iter()
            .map(|step| match Packed::new(known_costs(step)).filter(|_| step.kind != StepKind::Other) {
                Some(packed) => Step { cost: packed.word(), ..*step },
                None => Step { kind: StepKind::Other, ..*step },
            })
            .collect();
        let config = Config { contexts: true, ..Config::arcs_only(COSTS) };
        let [mut records, mut events] = [(); 2].map(|()| {
            let mut calls = Calls::new(config.clone(), &[0; COSTS]);
            calls.begin(&mut program, at(1, 0));
            (calls, [0u64; COSTS])
        });
        let mut slowly = |calls: &mut Calls, now: &mut [u64; COSTS], at: usize| {
            let number = walk.words[at];
            if number >= first_miss {
                let miss = number - first_miss;
                now[Packed::COSTS + miss as usize % 2] += 1;
                calls.block(FIRST_MISS + miss);
                return 1;
            }
            let step = &walk.steps[number as usize];
            now.iter_mut().zip(known_costs(step)).for_each(|(now, cost)| *now += cost);
            event_at(calls, &mut program, &walk, at, now)
        };
        let ends = |at: usize| u64::from(walk.steps[walk.words[at] as usize].ends);
        let (mut done, mut ended, mut misses) = (0, 0, 0);
        while done < walk.words.len() {
            let places = std::array::from_fn(|i| i);
            let n = records.0.fast_path_wide::<COSTS>(
                &places,
                &steps,
                &walk.words[done..],
                &mut records.1,
                |number, words, now| {
                    assert_eq!(number, words[0]);
                    // One kind is left to the events.
                    let miss = number.checked_sub(first_miss).filter(|miss| *miss != 3)?;
                    now[Packed::COSTS + miss as usize % 2] += 1;
                    misses += 1;
                    Some((FIRST_MISS + miss, 1))
                },
            );
            done += n;
            fast += n;
            if done < walk.words.len() {
                ended += ends(done);
                misses += usize::from(walk.words[done] >= first_miss);
                done += slowly(&mut records.0, &mut records.1, done);
            }
        }
        for &at in &walk.records {
            slowly(&mut events.0, &mut events.1, at);
        }
        assert_eq!(records.1, events.1, "seed {seed}");
        let all: u64 = walk.records.iter().map(|at| ends(*at)).sum();
        assert_eq!(records.0.ended() + ended, all, "seed {seed}");
        let missed = walk.records.iter().filter(|at| walk.words[**at] >= first_miss).count();
        assert_eq!(misses, missed, "seed {seed}");
        let now = events.1;
        assert_eq!(sorted(&mut records.0, &now), sorted(&mut events.0, &now), "seed {seed}");
    }
    assert!(fast > 400_000, "only {fast} words went the fast way");
}
