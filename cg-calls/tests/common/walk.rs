//! Random walks through functions, stubs and levels of recursion, as records, and what comes of them.

use cg_calls::{Calls, JumpKind, Node, NodeIndex, Section, SiteId, Step, StepKind};

use super::{Program, at};

/// A walk, as records and as what they mean.
#[derive(Default)]
pub(crate) struct Walk {
    pub steps: Vec<Step>,
    pub words: Vec<u32>,
    /// Index of each record in `words`.
    pub records: Vec<usize>,
}

impl Walk {
    fn tell(&mut self, step: Step, sp: u64, target: u64) {
        let same =
            |s: &Step| (s.kind, s.counter, s.site, s.target) == (step.kind, step.counter, step.site, step.target);
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
pub(crate) fn event(calls: &mut Calls, program: &mut Program, walk: &Walk, at: usize, now: &mut u64) -> usize {
    *now += u64::from(walk.steps[walk.words[at] as usize].cost);
    event_at(calls, program, walk, at, &[*now])
}

/// The same, once its costs are in the totals.
pub(crate) fn event_at(calls: &mut Calls, program: &mut Program, walk: &Walk, at: usize, total: &[u64]) -> usize {
    calls.block(walk.steps[walk.words[at] as usize].counter);
    transfer_at(calls, program, walk, at, total)
}

/// The same without the execution of the block.
pub(crate) fn transfer_at(calls: &mut Calls, program: &mut Program, walk: &Walk, at: usize, total: &[u64]) -> usize {
    let step = walk.steps[walk.words[at] as usize];
    let long = |i: usize| u64::from(walk.words[at + i]) | u64::from(walk.words[at + i + 1]) << 32;
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

/// A walk of so many records.
pub(crate) fn walk(program: &mut Program, seed: u64, length: usize) -> Walk {
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
        let counter = (running * 8 + random(3)) as u32 + 1;
        let cost = counter % 7 + 1;
        let pick = random(20);
        // An instruction either calls, or returns, or jumps.
        let first = match pick {
            7..13 => 0x20,
            13..19 => 0x30,
            _ => 0x10,
        };
        let offset = first + 8 * random(2);
        let site = program.id(at(running as u32, offset));
        let ends = counter as u16 % 3;
        let block = Step { kind: StepKind::Block, ends, counter, cost, site, target: 0 };
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
                    let (counter, cost) = (stub * 8, 2);
                    walk.tell(Step { kind: StepKind::JumpIndirect, ends, counter, cost, site, target: 0 }, sp, target);
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
                        if random(3) == 0 {
                            // It is not bound yet, and goes on behind its own jump.
                            let (site, counter) = (program.id(at(stub, 2)), stub * 8 + 1);
                            let jump = Step { kind: StepKind::JumpIndirect, ends, counter, cost: 3, site, target: 0 };
                            walk.tell(jump, new, at(stub, 3));
                        }
                        let site = program.id(at(stub, 4));
                        let (counter, cost) = (stub * 8, 2);
                        let other = 1 + random(functions);
                        let to = if random(8) == 0 { at(other as u32, 0) } else { target };
                        walk.tell(Step { kind: StepKind::JumpIndirect, ends, counter, cost, site, target: 0 }, new, to);
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

pub(crate) type Rows<K, V> = Vec<(K, V, Vec<u64>)>;

/// All rows of a profile, in an order of their own.
#[derive(Debug, PartialEq)]
pub(crate) struct Sorted {
    pub arcs: Rows<(Node, SiteId, u64, Node), u64>,
    pub counters: Rows<(Node, u32), u64>,
    pub skipped: Rows<Node, SiteId>,
    pub collected: Vec<u64>,
}

/// What a thread has found since the last time.
pub(crate) fn sorted(calls: &mut Calls, now: &[u64]) -> Sorted {
    let profile = calls.take(now);
    let name = |n: NodeIndex| profile.nodes[n.0 as usize].clone();
    let arc = |a: &cg_calls::Arc| ((name(a.from), a.site, a.target, name(a.to)), a.calls, a.costs.clone());
    let mut arcs: Vec<_> = profile.arcs.iter().map(arc).collect();
    let counter = |c: &cg_calls::Counter| ((name(c.node), c.counter), c.executions, c.costs.clone());
    let mut counters: Vec<_> = profile.counters.iter().map(counter).collect();
    let mut skipped: Vec<_> = profile.skipped.iter().map(|s| (name(s.node), s.site, s.costs.clone())).collect();
    arcs.sort();
    counters.sort();
    skipped.sort();
    Sorted { arcs, counters, skipped, collected: profile.collected }
}

/// A program for such walks.
pub(crate) fn program() -> Program {
    let mut program = Program::default();
    for f in 1..7 {
        program.set(f, |about| about.separate_recs = 1 + (f % 3) as u16);
        program.set(f + 10, |about| about.skip = true);
        program.sections.insert(f + 10, Section::Plt);
    }
    program
}
