//! The fast loop against the events that it stands for: random walks through functions, stubs and levels of recursion, told as
//! records and as events, give the same profile and the same total.

#[allow(unreachable_pub, reason = "shared by several tests")]
mod common;

use cg_calls::{Calls, Config, JumpKind, Node, Packed, Section, SiteId, Step, StepKind};
use common::{Program, at};

/// A walk, as records and as what they mean.
#[derive(Default)]
struct Walk {
    steps: Vec<Step>,
    words: Vec<u32>,
    /// Index of each record in `words`.
    records: Vec<usize>,
}

impl Walk {
    fn tell(&mut self, step: Step, sp: u64, target: u64) {
        let same = |s: &Step| (s.kind, s.cell, s.site, s.target) == (step.kind, step.cell, step.site, step.target);
        let number = self.steps.iter().position(same).unwrap_or_else(|| {
            self.steps.push(step);
            self.steps.len() - 1
        });
        self.records.push(self.words.len());
        self.words.push(number as u32);
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        match step.kind {
            StepKind::Block => {}
            StepKind::Call | StepKind::Jump => self.words.extend(halves(sp)),
            _ => self.words.extend([halves(sp), halves(target)].concat()),
        }
    }
}

/// One record, by the events of the model; its length.
fn event(calls: &mut Calls, program: &mut Program, walk: &Walk, at: usize, now: &mut u64) -> usize {
    *now += u64::from(walk.steps[walk.words[at] as usize].cost);
    event_at(calls, program, walk, at, &[*now])
}

/// The same, once its costs are in the totals.
fn event_at(calls: &mut Calls, program: &mut Program, walk: &Walk, at: usize, total: &[u64]) -> usize {
    let step = walk.steps[walk.words[at] as usize];
    let long = |i: usize| u64::from(walk.words[at + i]) | u64::from(walk.words[at + i + 1]) << 32;
    calls.block(step.cell);
    match step.kind {
        StepKind::Block => return 1,
        StepKind::Call => {
            calls.call(program, step.site, step.target, long(1), total);
            return 3;
        }
        StepKind::Jump => {
            calls.jump(program, step.site, step.target, long(1), JumpKind::Conditional, total);
            return 3;
        }
        StepKind::CallIndirect => calls.call(program, step.site, long(3), long(1), total),
        StepKind::Return => calls.ret(program, step.site, long(3), long(1), total),
        StepKind::JumpIndirect | StepKind::Other => {
            calls.jump(program, step.site, long(3), long(1), JumpKind::Always, total)
        }
    };
    5
}

fn walk(program: &mut Program, seed: u64, length: usize) -> Walk {
    let mut state = seed * 2 + 1;
    let mut random = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut walk = Walk::default();
    let functions = 6;
    // (function, stack pointer of its frame, where it returns to)
    let mut stack = vec![(1u64, 1u64 << 40, 0u64)];
    while walk.records.len() < length {
        let (running, sp, _) = *stack.last().expect("never empty");
        let cell = (running * 8 + random(3)) as u32 + 1;
        let cost = cell % 7 + 1;
        let pick = random(20);
        let offset = 0x10 + 8 * random(2);
        let site = program.id(at(running as u32, offset));
        let block = Step { kind: StepKind::Block, cell, cost, site, target: 0 };
        match pick {
            0..5 => walk.tell(block, 0, 0),
            5 => {
                // Within the function, or a call at its end.
                let callee = 1 + random(functions);
                let target = if random(2) == 0 { at(running as u32, 0x60) } else { at(callee as u32, 0) };
                let sp = if stack.len() > 1 && random(4) > 0 { sp } else { sp - 8 * random(2) };
                if target & 0xff == 0 && random(3) == 0 {
                    // Through its stub.
                    let stub = callee as u32 + 10;
                    walk.tell(Step { kind: StepKind::Jump, target: at(stub, 0), ..block }, sp, 0);
                    let site = program.id(at(stub, 4));
                    let (cell, cost) = (stub * 8, 2);
                    walk.tell(Step { kind: StepKind::JumpIndirect, cell, cost, site, target: 0 }, sp, target);
                    stack.last_mut().expect("never empty").0 = callee;
                    continue;
                }
                if target & 0xff == 0 {
                    stack.last_mut().expect("never empty").0 = callee;
                }
                match random(2) {
                    0 => walk.tell(Step { kind: StepKind::JumpIndirect, ..block }, sp, target),
                    _ => walk.tell(Step { kind: StepKind::Jump, target, ..block }, sp, 0),
                }
            }
            6 => {
                let jump = Step { kind: StepKind::JumpIndirect, ..block };
                walk.tell(jump, sp, at(running as u32, 0x40 + random(4)));
            }
            7..13 if stack.len() < 40 => {
                let callee = 1 + random(functions);
                let (target, new) = (at(callee as u32, 0), sp - 16 - 8 * random(3));
                let next = at(running as u32, offset) + 5;
                match random(3) {
                    0 => walk.tell(Step { kind: StepKind::Call, target, ..block }, new, 0),
                    1 => walk.tell(Step { kind: StepKind::CallIndirect, ..block }, new, target),
                    _ => {
                        // Through the callee's stub, as a rule.
                        let stub = callee as u32 + 10;
                        walk.tell(Step { kind: StepKind::Call, target: at(stub, 0), ..block }, new, 0);
                        let site = program.id(at(stub, 4));
                        let (cell, cost) = (stub * 8, 2);
                        let other = 1 + random(functions);
                        let to = if random(8) == 0 { at(other as u32, 0) } else { target };
                        walk.tell(Step { kind: StepKind::JumpIndirect, cell, cost, site, target: 0 }, new, to);
                        stack.push((if to == target { callee } else { other }, new, next));
                        continue;
                    }
                }
                stack.push((callee, new, next));
            }
            13..19 if stack.len() > 1 => {
                // Now and then out of several frames at once.
                let frames = if random(15) == 0 { 1 + random(stack.len() as u64 - 1) as usize } else { 1 };
                let (_, left, next) = stack[stack.len() - frames];
                stack.truncate(stack.len() - frames);
                walk.tell(Step { kind: StepKind::Return, ..block }, left + 8, next);
            }
            _ => walk.tell(block, 0, 0),
        }
    }
    walk
}

type Rows<K, V> = Vec<(K, V, Vec<u64>)>;

/// All rows of a profile, in an order of their own.
#[derive(Debug, PartialEq)]
struct Sorted {
    arcs: Rows<(Node, SiteId, u64, Node), u64>,
    cells: Rows<(Node, u32), u64>,
    skipped: Rows<Node, SiteId>,
    collected: Vec<u64>,
}

fn sorted(mut calls: Calls, now: &[u64]) -> Sorted {
    let profile = calls.take(now);
    let name = |n: cg_calls::NodeIndex| profile.nodes[n.0 as usize].clone();
    let arc = |a: &cg_calls::Arc| ((name(a.from), a.site, a.target, name(a.to)), a.calls, a.costs.clone());
    let mut arcs: Vec<_> = profile.arcs.iter().map(arc).collect();
    let cell = |c: &cg_calls::Cell| ((name(c.node), c.cell), c.executions, c.costs.clone());
    let mut cells: Vec<_> = profile.cells.iter().map(cell).collect();
    let mut skipped: Vec<_> = profile.skipped.iter().map(|s| (name(s.node), s.site, s.costs.clone())).collect();
    arcs.sort();
    cells.sort();
    skipped.sort();
    Sorted { arcs, cells, skipped, collected: profile.collected }
}

#[test]
fn records_and_events_agree() {
    let mut fast = 0;
    for seed in 1..200 {
        let mut program = Program::default();
        for f in 1..7 {
            program.set(f, |about| about.separate_recs = 1 + (f % 3) as u16);
            program.set(f + 10, |about| about.skip = true);
            program.sections.insert(f + 10, Section::Plt);
        }
        let walk = walk(&mut program, seed, 3000);
        let config = Config { contexts: true, ..Config::arcs_only(1) };
        let [mut records, mut events] = [(); 2].map(|()| {
            let mut calls = Calls::new(config.clone(), &[0]);
            calls.begin(&mut program, at(1, 0));
            (calls, 0u64)
        });
        let (mut done, mut executed) = (0, 0);
        while done < walk.words.len() {
            let n = records.0.express(&walk.steps, &walk.words[done..], &mut records.1, &mut executed);
            done += n;
            fast += n;
            if done < walk.words.len() {
                done += event(&mut records.0, &mut program, &walk, done, &mut records.1);
                executed += 1;
            }
        }
        for &at in &walk.records {
            event(&mut events.0, &mut program, &walk, at, &mut events.1);
        }
        assert_eq!(records.1, events.1, "seed {seed}");
        assert_eq!(executed, walk.records.len() as u64, "seed {seed}");
        let [now] = [[events.1]];
        assert_eq!(sorted(records.0, &now), sorted(events.0, &now), "seed {seed}");
    }
    assert!(fast > 500_000, "only {fast} words went the fast way");
}

/// Costs of the fast loop for several of them: six of executions, two of misses.
const COSTS: usize = 8;
/// Records of misses, and the number of the first one's cell.
const MISSES: u32 = 10;
const FIRST_MISS: u32 = 5000;

/// What an execution costs, of those costs that are known from it.
fn known_costs(step: &Step) -> [u64; Packed::COSTS] {
    let cell = u64::from(step.cell);
    // Some do not fit into a packed word.
    let reads = if cell.is_multiple_of(13) { 300 } else { cell % 5 };
    [step.cost.into(), reads, cell % 4, cell % 3, cell % 2, cell / 3 % 2]
}

/// The walk with misses here and there; their steps are the last ones.
fn with_misses(mut walk: Walk) -> (Walk, u32) {
    let first = walk.steps.len() as u32;
    for n in 0..MISSES {
        let cell = FIRST_MISS + n;
        walk.steps.push(Step { kind: StepKind::Other, cell, cost: 0, site: SiteId(0), target: 0 });
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
        let mut program = Program::default();
        for f in 1..7 {
            program.set(f, |about| about.separate_recs = 1 + (f % 3) as u16);
            program.set(f + 10, |about| about.skip = true);
            program.sections.insert(f + 10, Section::Plt);
        }
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
        let (mut done, mut executed, mut misses) = (0, 0, 0);
        while done < walk.words.len() {
            let places = std::array::from_fn(|i| i);
            let n = records.0.express_wide::<COSTS>(
                &places,
                &steps,
                &walk.words[done..],
                &mut records.1,
                &mut executed,
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
                executed += u64::from(walk.words[done] < first_miss);
                misses += u64::from(walk.words[done] >= first_miss);
                done += slowly(&mut records.0, &mut records.1, done);
            }
        }
        for &at in &walk.records {
            slowly(&mut events.0, &mut events.1, at);
        }
        assert_eq!(records.1, events.1, "seed {seed}");
        assert_eq!(executed + misses, walk.records.len() as u64, "seed {seed}");
        let now = events.1;
        assert_eq!(sorted(records.0, &now), sorted(events.0, &now), "seed {seed}");
    }
    assert!(fast > 400_000, "only {fast} words went the fast way");
}
