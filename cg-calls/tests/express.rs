//! The fast loop against the events that it stands for: random walks through functions, stubs and levels of recursion, told as
//! records and as events, give the same profile and the same total.

#[allow(unreachable_pub, reason = "shared by several tests")]
mod common;

use cg_calls::{Calls, Config, JumpKind, Section, Step, StepKind};
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
    let step = walk.steps[walk.words[at] as usize];
    let long = |i: usize| u64::from(walk.words[at + i]) | u64::from(walk.words[at + i + 1]) << 32;
    calls.block(step.cell);
    *now += u64::from(step.cost);
    let total = [*now];
    match step.kind {
        StepKind::Block => return 1,
        StepKind::Call => {
            calls.call(program, step.site, step.target, long(1), &total);
            return 3;
        }
        StepKind::Jump => {
            calls.jump(program, step.site, step.target, long(1), JumpKind::Conditional, &total);
            return 3;
        }
        StepKind::CallIndirect => calls.call(program, step.site, long(3), long(1), &total),
        StepKind::Return => calls.ret(program, step.site, long(3), long(1), &total),
        StepKind::JumpIndirect | StepKind::Other => {
            calls.jump(program, step.site, long(3), long(1), JumpKind::Always, &total)
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
        let sorted = |mut calls: Calls| {
            let mut profile = calls.take(&now);
            let name = |n: cg_calls::NodeIndex, p: &cg_calls::Profile| p.nodes[n.0 as usize].clone();
            let copy = profile.clone();
            let mut arcs: Vec<_> = std::mem::take(&mut profile.arcs)
                .into_iter()
                .map(|a| (name(a.from, &copy), a.site, a.target, name(a.to, &copy), a.calls, a.costs))
                .collect();
            let mut cells: Vec<_> = std::mem::take(&mut profile.cells)
                .into_iter()
                .map(|c| (name(c.node, &copy), c.cell, c.executions, c.costs))
                .collect();
            let mut skipped: Vec<_> = std::mem::take(&mut profile.skipped)
                .into_iter()
                .map(|s| (name(s.node, &copy), s.site, s.costs))
                .collect();
            arcs.sort();
            cells.sort();
            skipped.sort();
            (arcs, cells, skipped, profile.collected)
        };
        assert_eq!(sorted(records.0), sorted(events.0), "seed {seed}");
    }
    assert!(fast > 500_000, "only {fast} words went the fast way");
}
