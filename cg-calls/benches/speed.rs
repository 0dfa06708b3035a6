//! How many events a second the model takes. Run with `cargo bench -p cg-calls --bench speed`.

#[allow(dead_code, unreachable_pub, reason = "the tests use all of it")]
#[path = "../tests/common/mod.rs"]
mod common;

use cg_calls::{Calls, Config};
use common::{Program, at};

/// Seconds that this thread has spent on a processor.
fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    stat.split_whitespace().next().and_then(|w| w.parse::<f64>().ok()).expect("a number") / 1e9
}

struct Fib {
    program: Program,
    calls: Calls,
    now: Vec<u64>,
    sites: [cg_calls::SiteId; 3],
    events: u64,
}

impl Fib {
    fn run(&mut self, n: u32, sp: u64) {
        if n >= 2 {
            for (i, n) in [(0, n - 1), (1, n - 2)] {
                self.now[0] += 7;
                self.calls.call(&mut self.program, self.sites[i], 256, sp - 16, &self.now);
                self.run(n, sp - 16);
                self.now[0] += 3;
                self.calls.ret(&mut self.program, self.sites[2], 256 + 0x25, sp - 8, &self.now);
                self.events += 2;
            }
        }
    }
}

fn recursion() {
    for (costs, contexts) in [(1, false), (1, true), (9, false), (9, true)] {
        let mut program = Program::default();
        program.set(1, |f| f.separate_recs = 2);
        let sites = [0x20, 0x30, 0x40].map(|offset| program.id(at(1, offset)));
        let now = vec![0; costs];
        let config = Config { contexts, ..Config::arcs_only(costs) };
        let mut calls = Calls::new(config, &now);
        calls.begin(&mut program, at(1, 0));
        let mut fib = Fib { program, calls, now, sites, events: 0 };
        let start = seconds();
        fib.run(36, 1 << 40);
        let seconds = seconds() - start;
        println!("{costs} costs, contexts {contexts}: {:.1} M events/s", fib.events as f64 / seconds / 1e6);
        assert_eq!(fib.calls.take(&fib.now).collected, fib.now);
    }
}

/// Calls of 3,000 functions from 9,000 sites, through PLT stubs, by random walk.
fn wide() {
    for contexts in [false, true] {
        let mut program = Program::default();
        for f in 10_000..13_000 {
            program.set(f, |f| f.skip = true);
            program.sections.insert(f, cg_calls::Section::Plt);
        }
        for f in 1..3000 {
            program.set(f, |f| f.separate_recs = 2);
        }
        let mut sites = Vec::new();
        for f in 1..3000 {
            sites.push([0x20, 0x30, 0x40].map(|o| program.id(at(f, o))));
        }
        let plt: Vec<_> = (10_000..13_000).map(|f| program.id(at(f, 0))).collect();
        let mut now = vec![0];
        let mut calls = Calls::new(Config { contexts, ..Config::arcs_only(1) }, &now);
        calls.begin(&mut program, at(1, 0));
        let mut stack = vec![1u32];
        let mut random = 88_172_645_463_325_252_u64;
        // The walk is made first, so that only the model is measured.
        let mut walk = Vec::new();
        for _ in 0..2_000_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let running = *stack.last().expect("never empty");
            if stack.len() > 1 && (random % 64 < 31 || stack.len() > 50) {
                stack.pop();
                walk.push((sites[running as usize - 1][0], u64::MAX, stack.len() as u64, false));
            } else {
                let which = (random >> 8) % 3;
                let callee = ((u64::from(running) * 7 + which * 13 + u64::from(which == 2) * (random >> 20 & 1)) % 2999)
                    as u32
                    + 1;
                stack.push(callee);
                walk.push((sites[running as usize - 1][which as usize], at(callee, 0), stack.len() as u64, which == 0));
            }
        }
        let start = seconds();
        let mut events = 0;
        for (site, target, depth, through_plt) in &walk {
            now[0] += 5;
            let sp = (1 << 40) - depth * 32;
            if *target == u64::MAX {
                calls.ret(&mut program, *site, 0, sp - 24, &now);
            } else if *through_plt {
                let stub = at(10_000 + (*target / 256) as u32, 0);
                calls.call(&mut program, *site, stub, sp, &now);
                now[0] += 1;
                let site = plt[(*target / 256) as usize];
                calls.jump(&mut program, site, *target, sp, cg_calls::JumpKind::Always, &now);
                events += 1;
            } else {
                calls.call(&mut program, *site, *target, sp, &now);
            }
            events += 1;
        }
        let seconds = seconds() - start;
        println!("wide, contexts {contexts}: {:.1} M events/s", f64::from(events) / seconds / 1e6);
        assert_eq!(calls.take(&now).collected, now);
    }
}

/// Blocks of recursive functions: six for each call, two levels of recursion.
fn blocks() {
    let mut program = Program::default();
    program.set(1, |f| f.separate_recs = 2);
    let (site, ret) = (program.id(at(1, 0x20)), program.id(at(1, 0x40)));
    let mut calls = Calls::new(Config { contexts: true, ..Config::arcs_only(1) }, &[0]);
    calls.begin(&mut program, at(1, 0));
    let start = seconds();
    let mut events = 0u64;
    for round in 0..2_000_000u64 {
        let now = [round * 10];
        for block in 0..3 {
            calls.block(block);
        }
        calls.call(&mut program, site, at(1, 0), 992, &now);
        for block in 0..3 {
            calls.block(block);
        }
        calls.ret(&mut program, ret, at(1, 0x25), 1000, &now);
        events += 8;
    }
    let seconds = seconds() - start;
    println!("blocks and calls: {:.1} M events/s", events as f64 / seconds / 1e6);
    assert_eq!(calls.take(&[20_000_000]).counters.iter().map(|c| c.executions).sum::<u64>(), 12_000_000);
}

fn main() {
    recursion();
    wide();
    blocks();
}
