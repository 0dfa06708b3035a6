//! Calls that are followed elsewhere against the events that they stand for. What emitted code does is written out here as
//! plainly as can be: a stack of call edges, the calls of each function that are going on, and what was said of each site the
//! last time. Some costs are misses, which are told, with the frames that have come since the last one in front, and gone
//! through later. Random walks, told and followed, give the same profile and the same totals, part by part; also where functions
//! switch collection on and off, which makes totals stand still here.

use std::collections::HashMap;

use crate::common::walk::{Walk, event_at, program, sorted, transfer_at, walk};
use crate::common::{Program, at};
use cg_calls::{Again, Calls, Config, FunctionId, Here, Made, Settled, Shown, SiteId, StepKind, View};

/// Frames that are shown at most: few, so that the window moves.
const MOST: usize = 8;

/// The first counter of misses.
const MISSES: u32 = 10_000;

/// What an execution of a counter costs: instructions, reads, and no misses.
fn costs_of(counter: u32, cost: u32) -> [u64; 3] {
    [cost.into(), u64::from(counter % 3), 0]
}

/// What is told between questions.
#[derive(Clone, Copy, Debug)]
enum Told {
    Frame(usize, u32),
    Depth(usize),
    Miss(u32),
}

/// What is known of a site that has led somewhere.
#[derive(Clone, Copy, Debug)]
struct Bridge {
    settled: Settled,
    to: Here,
    call_edge: u32,
}

/// The emitted code of one thread.
#[derive(Default)]
struct Follower {
    totals: [u64; 2],
    /// Misses that have been gone through.
    missed: u64,
    records: Vec<Told>,
    /// How many frames there were at the last record, and the total at the entry of the last one that was told.
    told: (usize, u64),
    here: Option<Here>,
    /// What was shown the last time, and the stack as it is.
    shown: Vec<Shown>,
    frames: Vec<Shown>,
    /// There are others below them.
    hides: bool,
    active: HashMap<FunctionId, u64>,
    bridges: HashMap<(SiteId, Here, u64), Vec<Bridge>>,
    call_edges: Vec<(Again, Settled)>,
    executed: HashMap<(u32, Here), u64>,
    /// Calls, and what those cost that have returned.
    called: HashMap<u32, (u64, [u64; 2])>,
    /// Events that nobody was asked about.
    alone: u64,
}

impl Follower {
    fn here(&self) -> Here {
        self.here.expect("it has begun")
    }

    /// The stack pointer of the innermost frame: below all, there is one that nothing leaves, or everything.
    fn top(&self) -> u64 {
        self.frames.last().map_or(if self.hides { 0 } else { u64::MAX }, |f| f.sp)
    }

    /// What a bridge does; false if it cannot.
    fn cross(&mut self, bridge: Bridge, sp: u64) -> bool {
        let top = self.top();
        let Settled::Push { made, levels, .. } = bridge.settled else { return top >= sp };
        let pushes = matches!(made, Made::Call | Made::Stub);
        if pushes && top < sp + 8 || !pushes && (top < sp || top == u64::MAX) {
            return false;
        }
        if !matches!(made, Made::Stub | Made::JumpToStub) {
            let active = self.active.entry(bridge.to.function).or_default();
            let last = bridge.to.level + 1 == levels;
            if levels > 1
                && (last && *active < u64::from(bridge.to.level) || !last && *active != u64::from(bridge.to.level))
            {
                return false;
            }
            // Nobody asks how many there are on the last level.
            *active += u64::from(!last);
            self.called.entry(bridge.call_edge).or_default().0 += 1;
        }
        let sp = if pushes { sp } else { top };
        if !self.here().collecting || !bridge.to.collecting {
            // Totals do not tell it from the last one that was told.
            self.told.0 = usize::MAX;
        }
        let [instructions, reads] = self.totals;
        self.frames.push(Shown { sp, entered: [instructions, reads, 0, 0, 0], call_edge: bridge.call_edge });
        self.here = Some(bridge.to);
        true
    }

    /// A return; false if somebody has to be asked.
    fn return_to(&mut self, target: u64, sp: u64) -> bool {
        while let Some(&top) = self.frames.last() {
            let Some((again, Settled::Push { made, levels, returns_to })) =
                self.call_edges.get(top.call_edge as usize).copied()
            else {
                return false;
            };
            let further = returns_to == 0;
            if matches!(made, Made::Stub | Made::JumpToStub) || top.sp + 8 != sp || !further && target != returns_to {
                return false;
            }
            let inclusive = &mut self.called.entry(top.call_edge).or_default().1;
            for (sum, (now, then)) in inclusive.iter_mut().zip(self.totals.iter().zip(top.entered)) {
                *sum += now - then;
            }
            let active = self.active.entry(again.to.function).or_default();
            *active -= u64::from(again.to.level + 1 < levels);
            self.frames.truncate(self.frames.len() - if made == Made::Through { 2 } else { 1 });
            self.here = Some(Here { skip: None, ..again.from });
            if !further {
                return true;
            }
        }
        false
    }

    /// A miss of what runs.
    fn miss(&mut self, counter: u32) {
        let entered = self.frames.last().map_or(0, |f| f.entered[0]);
        if self.told != (self.frames.len(), entered) {
            self.told.0 = self.frames.len();
            let known = self.frames.iter().rposition(|f| f.entered[0] < self.told.1).map_or(0, |i| i + 1);
            if known == self.frames.len() {
                self.records.push(Told::Depth(known));
            } else {
                self.told.1 = entered;
                self.records.extend((known..self.frames.len()).map(|i| Told::Frame(i + 1, self.frames[i].call_edge)));
            }
        }
        self.records.push(Told::Miss(counter));
    }

    fn now(&self) -> [u64; 3] {
        [self.totals[0], self.totals[1], self.missed]
    }

    fn all_known(&mut self) {
        self.told = (self.frames.len(), self.frames.last().map_or(0, |f| f.entered[0]).max(1));
    }

    fn pull_stack(&mut self, calls: &mut Calls, program: &mut Program) {
        for record in std::mem::take(&mut self.records) {
            // Totals that are kept here must not matter.
            let now = [0, 0, self.missed];
            match record {
                Told::Depth(depth) | Told::Frame(depth, Shown::NO_CALL_EDGE) => calls.told_depth(depth),
                Told::Frame(depth, call_edge) => calls.told_frame(program, (depth, call_edge), &now, |_, call_edge| {
                    self.call_edges.get(call_edge as usize).map(|(again, _)| *again)
                }),
                Told::Miss(counter) => {
                    let (place, outcome) = (counter / 2, counter as usize % 2);
                    if !calls.missed_again(place, outcome, &now) {
                        calls.missed((place, outcome), counter, &[0, 0, 1], &now);
                    }
                    self.missed += u64::from(calls.collecting());
                }
            }
        }
        // Totals may have stood still: what was entered at the last one may be another one by now.
        let newest = self.shown.last().map_or(0, |f| f.entered[0]);
        let same = |(a, b): &(&Shown, &Shown)| {
            let old = a.entered[0] < newest || b.call_edge == Shown::NO_CALL_EDGE;
            (a.sp, a.entered) == (b.sp, b.entered) && old
        };
        let kept = self.shown.iter().zip(&self.frames).take_while(same).count();
        let call_edges = &self.call_edges;
        calls.pull_stack(program, (kept, &self.frames[kept..]), &self.now(), |_, call_edge| {
            call_edges.get(call_edge as usize).map(|(again, _)| *again)
        });
        self.shown.clone_from(&self.frames);
        self.all_known();
    }

    fn go_on(&mut self, calls: &mut Calls, made: Option<u32>, all: bool) {
        let View { kept, frames, hides } = calls.show(made, all, MOST);
        self.hides = hides;
        self.shown.truncate(kept);
        self.shown.extend(frames);
        self.frames.clone_from(&self.shown);
        self.all_known();
        self.active.extend(calls.activities());
    }

    /// Deals with the record at `index`.
    fn record(&mut self, calls: &mut Calls, program: &mut Program, walk: &Walk, index: usize) {
        let step = walk.steps[walk.words[index] as usize];
        let long = |i: usize| u64::from(walk.words[index + i]) | u64::from(walk.words[index + i + 1]) << 32;
        let [instructions, reads, _] = costs_of(step.counter, step.cost);
        if self.here().collecting {
            self.totals[0] += instructions;
            self.totals[1] += reads;
        }
        *self.executed.entry((step.counter, self.here())).or_default() += 1;
        let target = match step.kind {
            StepKind::Block => return,
            StepKind::Call | StepKind::Jump => step.target,
            _ => long(3),
        };
        let sp = long(1);
        self.alone += 1;
        let from = self.here();
        if step.kind == StepKind::Return {
            if self.return_to(target, sp) {
                return;
            }
        } else {
            let known = self.bridges.get(&(step.site, from, target)).cloned().unwrap_or_default();
            if known.into_iter().any(|bridge| self.cross(bridge, sp)) {
                return;
            }
        }
        self.alone -= 1;
        self.pull_stack(calls, program);
        let from = calls.here(program);
        let _ = calls.take_settled();
        transfer_at(calls, program, walk, index, &self.now());
        let settled = calls.take_settled();
        let to = calls.here(program);
        self.here = Some(to);
        self.go_on(calls, None, false);
        let Some(settled) = settled.filter(|_| step.kind != StepKind::Return) else { return };
        let mut call_edge = Shown::NO_CALL_EDGE;
        if let Settled::Push { made, .. } = settled {
            call_edge = self.call_edges.len() as u32;
            self.call_edges.push((Again { made, site: step.site, from, target, to }, settled));
            self.go_on(calls, Some(call_edge), false);
        }
        self.bridges.entry((step.site, from, target)).or_default().push(Bridge { settled, to, call_edge });
    }

    /// Hands over what has been counted.
    fn hand_over(&mut self, calls: &mut Calls, program: &mut Program, costs: &HashMap<u32, [u64; 3]>) {
        self.pull_stack(calls, program);
        for ((counter, here), n) in self.executed.drain() {
            calls.executed(program, here, counter, n, &costs[&counter]);
        }
        for (call_edge, (n, [instructions, reads])) in self.called.drain() {
            let inclusive = [instructions, reads, 0, 0, 0];
            calls.called(program, call_edge, &self.call_edges[call_edge as usize].0, n, inclusive);
        }
    }
}

#[test]
fn told_and_followed_agree_part_by_part() {
    agree(&[], true, false, &|_| {});
}

#[test]
fn told_and_followed_agree_where_callers_tell_contexts_apart() {
    agree(&[], true, false, &|program| (1..7).for_each(|f| program.set(f, |about| about.separate_callers = 2)));
    agree(&[], true, true, &|program| {
        (1..7).for_each(|f| program.set(f, |about| about.separate_callers = f as u16 % 4))
    });
    agree(&[2, 4], false, false, &|program| program.set(3, |about| about.separate_callers = 3));
    agree(&[], true, false, &|program| {
        (1..7).for_each(|f| program.set(f, |about| (about.separate_callers, about.separate_recs) = (1, 3)));
    });
}

#[test]
fn told_and_followed_agree_where_functions_have_groups() {
    let groups = |program: &mut Program| (2..6).for_each(|f| program.set(f, |about| about.group = 1 + f % 2));
    agree(&[], true, false, &groups);
    agree(&[], true, true, &|program| {
        groups(program);
        (1..7).for_each(|f| program.set(f, |about| about.separate_callers = 2));
    });
}

#[test]
fn told_and_followed_agree_where_functions_switch_collection() {
    agree(&[3], false, false, &|_| {});
    agree(&[2, 4, 6], true, false, &|_| {});
    agree(&[1, 2, 3, 4, 5, 6], false, false, &|_| {});
}

#[test]
fn told_and_followed_agree_where_requests_switch_collection() {
    agree(&[], true, true, &|_| {});
    agree(&[2, 5], false, true, &|_| {});
}

/// Walks a program of which these functions switch collection, which is on or off at first; now and then, so does a request.
/// `set` says what else is asked for. Calls are followed from the first on, or told at first.
fn agree(switching: &[u32], collect_at_start: bool, requests: bool, set: &dyn Fn(&mut Program)) {
    for told_first in [false, true] {
        agree_from(told_first, switching, collect_at_start, requests, set);
    }
}

fn agree_from(told_first: bool, switching: &[u32], collect_at_start: bool, requests: bool, set: &dyn Fn(&mut Program)) {
    let (mut alone, mut all, mut most_callers, mut in_skipped) = (0, 0, 0, 0);
    for seed in 1..60 {
        let mut program = program();
        switching.iter().for_each(|&f| program.set(f, |about| about.toggle_collect = true));
        set(&mut program);
        most_callers = program.about.values().map(|about| about.separate_callers).max().unwrap_or(0);
        let walk = walk(&mut program, seed, 3000);
        let costs: HashMap<u32, [u64; 3]> =
            walk.steps.iter().map(|s| (s.counter, costs_of(s.counter, s.cost))).collect();
        let kept = [Some(0), Some(1), None, None, None];
        let config = Config { contexts: true, most_callers, collect_at_start, kept, ..Config::arcs_only(3) };
        let new = |program: &mut Program, gated: bool, now: [u64; 3]| {
            let mut calls = Calls::new(Config { gated, ..config.clone() }, &now);
            calls.begin(program, at(1, 0));
            calls
        };
        let mut told = new(&mut program, false, [0; 3]);
        // None is entered at 0.
        let mut calls = new(&mut program, !told_first, [1, 0, 0]);
        // From this record on. If it can be where something has been executed of a call that is skipped.
        let mut begins = if told_first { (seed as usize * 29 + 7) % 600 } else { 0 };
        let latest = begins + if told_first && seed.is_multiple_of(2) { 500 } else { 0 };
        let mut follower = Follower::default();
        let (mut now, mut skipped) = ([0; 3], None);
        for (n, &index) in walk.records.iter().enumerate() {
            let stays = skipped.is_some() && told.here(&mut program).skip == skipped;
            skipped = told.here(&mut program).skip;
            if n == begins && n < latest && !stays {
                begins += 1;
            }
            if n == begins {
                in_skipped += u32::from(stays);
                let then = [now[0] + 1, now[1], now[2]];
                calls.gate(true, &then);
                let totals = [then[0], then[1]];
                follower = Follower { here: Some(calls.here(&mut program)), totals, missed: now[2], ..follower };
                follower.go_on(&mut calls, None, true);
            }
            // Before its block, as a fetch or an access is. Now and then, or often.
            for miss in 0..3 {
                if (n as u64 * 7 + seed * 3 + miss * 5).is_multiple_of(3 + seed % 11) {
                    let counter = MISSES + (n as u32 + miss as u32) % 5;
                    told.block(counter);
                    now[2] += 1;
                    if n < begins {
                        calls.block(counter);
                    } else {
                        follower.miss(counter);
                    }
                }
            }
            let step = walk.steps[walk.words[index] as usize];
            now.iter_mut().zip(costs[&step.counter]).for_each(|(now, cost)| *now += cost);
            event_at(&mut told, &mut program, &walk, index, &now);
            if n < begins {
                event_at(&mut calls, &mut program, &walk, index, &[now[0] + 1, now[1], now[2]]);
                continue;
            }
            follower.record(&mut calls, &mut program, &walk, index);
            assert_eq!(follower.here(), told.here(&mut program), "seed {seed}, record {n} {told_first} {begins}");
            if requests && n % 37 == 31 {
                follower.pull_stack(&mut calls, &mut program);
                told.toggle_collect(&now);
                calls.toggle_collect(&follower.now());
                follower.here = Some(calls.here(&mut program));
                follower.go_on(&mut calls, None, false);
            }
            if switching.is_empty() && !requests {
                assert_eq!(follower.totals, [now[0] + 1, now[1]], "seed {seed}, record {n}");
            }
            if n % 700 == 699 || n + 1 == walk.records.len() {
                follower.hand_over(&mut calls, &mut program, &costs);
                assert_eq!(sorted(&mut calls, &follower.now()), sorted(&mut told, &now), "seed {seed}, record {n}");
                if switching.is_empty() && !requests {
                    assert_eq!(follower.missed, now[2], "seed {seed}, record {n}");
                }
                follower.go_on(&mut calls, None, true);
            }
        }
        alone += follower.alone;
        all += (walk.records.len() - begins) as u64;
    }
    let few = if most_callers == 0 { 4 } else { 8 };
    assert!(alone * few > all, "only {alone} of {all} records were followed without a question");
    assert!(!told_first || in_skipped > 5, "only {in_skipped} times while something was skipped");
}
