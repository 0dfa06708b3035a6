//! Calls that are followed elsewhere against the events that they stand for. What emitted code does is written out here as
//! plainly as can be: a stack of routes, the calls of each function that are going on, and what was said of each site the
//! last time. Random walks, told and followed, give the same profile and the same totals, part by part.

#[allow(unreachable_pub, reason = "shared by several tests")]
mod common;

use std::collections::HashMap;

use cg_calls::{Again, Calls, Config, FunctionId, Here, Made, Settled, Shown, SiteId, StepKind};
use common::walk::{Walk, event, program, sorted, transfer_at, walk};
use common::{Program, at};

/// Frames that are shown at most: few, so that the window moves.
const MOST: usize = 8;

/// What is known of a site that has led somewhere.
#[derive(Clone, Copy, Debug)]
struct Bridge {
    settled: Settled,
    to: Here,
    route: u32,
}

/// The emitted code of one thread.
#[derive(Default)]
struct Follower {
    total: u64,
    here: Option<Here>,
    /// What was shown the last time, and the stack as it is.
    shown: Vec<Shown>,
    frames: Vec<Shown>,
    active: HashMap<FunctionId, u64>,
    bridges: HashMap<(SiteId, Here, u64), Vec<Bridge>>,
    routes: Vec<(Again, Settled)>,
    executed: HashMap<(u32, Here), u64>,
    /// Calls, and what those cost that have returned.
    called: HashMap<u32, (u64, u64)>,
    /// Events that nobody was asked about.
    alone: u64,
}

impl Follower {
    fn here(&self) -> Here {
        self.here.expect("it has begun")
    }

    /// The stack pointer of the innermost frame: below all, there is one that nothing leaves.
    fn top(&self) -> u64 {
        self.frames.last().map_or(u64::MAX, |f| f.sp)
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
            if levels > 1 && (last && *active < bridge.to.level.into() || !last && *active != bridge.to.level.into()) {
                return false;
            }
            *active += 1;
            self.called.entry(bridge.route).or_default().0 += 1;
        }
        let sp = if pushes { sp } else { top };
        self.frames.push(Shown { sp, entered: self.total, route: bridge.route });
        self.here = Some(bridge.to);
        true
    }

    /// A return; false if somebody has to be asked.
    fn return_to(&mut self, target: u64, sp: u64) -> bool {
        while let Some(&top) = self.frames.last() {
            let Some((again, Settled::Push { made, returns_to, .. })) = self.routes.get(top.route as usize).copied()
            else {
                return false;
            };
            let further = returns_to == 0;
            if matches!(made, Made::Stub | Made::JumpToStub) || top.sp + 8 != sp || !further && target != returns_to {
                return false;
            }
            self.called.entry(top.route).or_default().1 += self.total - top.entered;
            let active = self.active.entry(again.to.function).or_default();
            *active -= 1;
            self.frames.truncate(self.frames.len() - if made == Made::Through { 2 } else { 1 });
            self.here = Some(Here { skip: None, ..again.from });
            if !further {
                return true;
            }
        }
        false
    }

    fn catch_up(&mut self, calls: &mut Calls, program: &mut Program) {
        let same = |(a, b): &(&Shown, &Shown)| (a.sp, a.entered) == (b.sp, b.entered);
        let kept = self.shown.iter().zip(&self.frames).take_while(same).count();
        let routes = &self.routes;
        calls.catch_up(program, (kept, &self.frames[kept..]), &[self.total], |_, route| {
            routes.get(route as usize).map(|(again, _)| *again)
        });
        self.shown.clone_from(&self.frames);
    }

    fn go_on(&mut self, calls: &mut Calls, made: Option<u32>, all: bool) {
        let (kept, frames) = calls.show(made, all, MOST);
        self.shown.truncate(kept);
        self.shown.extend(frames);
        self.frames.clone_from(&self.shown);
        self.active.extend(calls.activities());
    }

    /// Deals with the record at `index`.
    fn record(&mut self, calls: &mut Calls, program: &mut Program, walk: &Walk, index: usize) {
        let step = walk.steps[walk.words[index] as usize];
        let long = |i: usize| u64::from(walk.words[index + i]) | u64::from(walk.words[index + i + 1]) << 32;
        self.total += u64::from(step.cost);
        *self.executed.entry((step.cell, self.here())).or_default() += 1;
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
        self.catch_up(calls, program);
        let from = calls.here();
        let _ = calls.take_settled();
        transfer_at(calls, program, walk, index, &[self.total]);
        let settled = calls.take_settled();
        let to = calls.here();
        self.here = Some(to);
        self.go_on(calls, None, false);
        let Some(settled) = settled.filter(|_| step.kind != StepKind::Return) else { return };
        let mut route = Shown::NO_ROUTE;
        if let Settled::Push { made, .. } = settled {
            route = self.routes.len() as u32;
            self.routes.push((Again { made, site: step.site, from, target, to }, settled));
            self.go_on(calls, Some(route), false);
        }
        self.bridges.entry((step.site, from, target)).or_default().push(Bridge { settled, to, route });
    }

    /// Hands over what has been counted.
    fn hand_over(&mut self, calls: &mut Calls, program: &mut Program, costs: &HashMap<u32, u64>) {
        self.catch_up(calls, program);
        for ((cell, here), n) in self.executed.drain() {
            calls.executed(program, here, cell, n, costs[&cell]);
        }
        for (route, (n, inclusive)) in self.called.drain() {
            calls.called(program, route, &self.routes[route as usize].0, n, inclusive);
        }
    }
}

#[test]
fn told_and_followed_agree_part_by_part() {
    let (mut alone, mut all) = (0, 0);
    for seed in 1..120 {
        let mut program = program();
        let walk = walk(&mut program, seed, 3000);
        let costs: HashMap<u32, u64> = walk.steps.iter().map(|s| (s.cell, s.cost.into())).collect();
        let config = Config { contexts: true, ..Config::arcs_only(1) };
        let new = |program: &mut Program| {
            let mut calls = Calls::new(config.clone(), &[0]);
            calls.begin(program, at(1, 0));
            calls
        };
        let mut told = new(&mut program);
        let mut calls = new(&mut program);
        let mut follower = Follower { here: Some(calls.here()), ..Follower::default() };
        follower.go_on(&mut calls, None, true);
        let mut now = 0;
        for (n, &index) in walk.records.iter().enumerate() {
            event(&mut told, &mut program, &walk, index, &mut now);
            follower.record(&mut calls, &mut program, &walk, index);
            assert_eq!(follower.here(), told.here(), "seed {seed}, record {n}");
            assert_eq!(follower.total, now, "seed {seed}, record {n}");
            if n % 700 == 699 || n + 1 == walk.records.len() {
                follower.hand_over(&mut calls, &mut program, &costs);
                assert_eq!(sorted(&mut calls, &[now]), sorted(&mut told, &[now]), "seed {seed}, record {n}");
                follower.go_on(&mut calls, None, true);
            }
        }
        alone += follower.alone;
        all += walk.records.len() as u64;
    }
    assert!(alone * 4 > all, "only {alone} of {all} records were followed without a question");
}
