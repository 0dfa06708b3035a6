//! The model against its slow twin, on random events: sensible ones, and every kind of nonsense.

use crate::common::{Program, at};
use crate::naive::{Maps, Naive};
use cg_calls::{Calls, Config, JumpKind, Request, Section, SiteId};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

const FUNCTIONS: u64 = 9;
const HIGH: u64 = 0x7000_0000;
const OTHER: std::ops::Range<u64> = 0x1000_0000..0x1001_0000;

fn program(random: &mut Random) -> Program {
    let mut program = Program::default();
    let plain = random.chance(30);
    for f in 1..=FUNCTIONS as u32 {
        program.objects.insert(f, u32::from(f > 6));
        if plain {
            continue;
        }
        program.set(f, |about| {
            about.separate_recs = random.of(&[0, 1, 2, 2, 3]);
            about.separate_callers = random.of(&[0, 0, 1, 2, 3]);
            about.skip = random.chance(15);
            about.pop_on_jump = random.chance(10);
            about.group = random.of(&[0, 0, 0, 0, 0, 1, 2]);
            if random.chance(30) {
                about.toggle_collect = random.chance(30);
                about.dump_before = random.chance(15);
                about.dump_after = random.chance(15);
                about.zero_before = random.chance(15);
            }
        });
        if random.chance(15) {
            program.sections.insert(f, Section::Plt);
        }
    }
    for f in 1..=FUNCTIONS as u32 {
        for offset in [0, 0x20, 0x30, 0x44, 0x80] {
            program.id(at(f, offset));
        }
    }
    program
}

struct Both {
    fast: Calls,
    slow: Naive,
    program: Program,
    now: Vec<u64>,
    dumps: Vec<Maps>,
    log: Vec<String>,
}

impl Both {
    fn requests(&mut self, wanted: bool) {
        let expected = std::mem::take(&mut self.slow.requests);
        let mut got = Vec::new();
        while let Some(request) = self.fast.take_request() {
            got.push(request);
        }
        assert_eq!(wanted, !got.is_empty());
        assert_eq!(got, expected, "requests after\n{}", self.log.join("\n"));
        for request in got {
            match request {
                Request::Zero(_) => {
                    self.fast.zero(&self.now);
                    self.slow.forget(&self.now);
                }
                Request::DumpBefore(_) | Request::DumpAfter(_) => self.dump(),
            }
        }
    }

    fn dump(&mut self) {
        let got = Maps::of(&self.fast.take(&self.now));
        let expected = self.slow.take(&self.now);
        assert_eq!(got, expected, "after\n{}", self.log.join("\n"));
        self.dumps.push(got);
        self.log.push("dump".into());
    }

    fn event(&mut self, random: &mut Random, sp: &mut u64, contexts: bool) {
        for total in &mut self.now {
            *total += random.below(9);
        }
        let site: SiteId = {
            let addr = at(random.below(FUNCTIONS) as u32 + 1, random.of(&[0, 0x20, 0x30, 0x44, 0x80]));
            self.program.id(addr)
        };
        let entry = at(random.below(FUNCTIONS) as u32 + 1, 0);
        let anywhere = entry + random.of(&[0, 0, 0x10, 0x25, 0x35]);
        if random.chance(4) {
            *sp = match random.below(4) {
                0 => HIGH - random.below(64) * 8,
                1 => OTHER.start + random.below(OTHER.end - OTHER.start) / 8 * 8,
                2 => sp.saturating_add(random.below(20) * 8),
                _ => sp.saturating_sub(random.below(20) * 8),
            };
        }
        let kind = random.below(100);
        self.log.push(format!(
            "{kind}: site {:#x} entry {entry:#x} anywhere {anywhere:#x} sp {sp:#x}",
            self.program.addr(site)
        ));
        let (fast, slow, program, now) = (&mut self.fast, &mut self.slow, &mut self.program, &self.now);
        let wanted = match kind {
            0..35 => {
                *sp -= 8 + random.below(3) * 8;
                let target = if random.chance(90) { entry } else { anywhere };
                slow.call(site, target, *sp, now);
                fast.call(program, site, target, *sp, now)
            }
            35..65 => {
                *sp += 8 + random.below(4) * 8;
                let target = program.addr(site) + 5;
                slow.ret(site, target, *sp, now);
                fast.ret(program, site, target, *sp, now)
            }
            65..85 => {
                let kind = random.of(&[JumpKind::Always, JumpKind::Conditional, JumpKind::FallThrough]);
                slow.jump(site, anywhere, *sp, kind, now);
                fast.jump(program, site, anywhere, *sp, kind, now)
            }
            85..88 => {
                let stack = random.chance(40).then_some(OTHER);
                let interrupted = *sp;
                *sp = if stack.is_some() { OTHER.end - 256 } else { *sp - 512 };
                slow.signal_enter(entry, interrupted, stack.clone(), now);
                fast.signal_enter(program, entry, interrupted, stack, now)
            }
            88..92 => {
                slow.signal_leave(now);
                fast.signal_leave(now)
            }
            92 if random.chance(20) => {
                slow.end(now);
                let wanted = fast.end(now);
                self.requests(wanted);
                self.slow.begin(anywhere);
                self.fast.begin(&mut self.program, anywhere)
            }
            93 if random.chance(30) => {
                slow.switch_collect(now);
                fast.toggle_collect(now);
                false
            }
            94 if random.chance(30) => {
                self.dump();
                false
            }
            _ => {
                if contexts {
                    let counter = random.below(20) as u32;
                    slow.block(counter);
                    fast.block(counter);
                    slow.cost(counter + 5, 1, 3);
                    fast.cost(counter + 5, 1, 3);
                }
                false
            }
        };
        self.requests(wanted);
    }
}

fn run(seed: u64) -> u64 {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let contexts = random.chance(70);
    let config = Config {
        contexts,
        most_callers: 3,
        skip_direct_recursion: random.chance(20),
        collect_jumps: random.chance(50),
        collect_at_start: random.chance(80),
        chains: random.chance(70).then_some(usize::MAX),
        ..Config::arcs_only(2)
    };
    let program = program(&mut random);
    let now = vec![random.below(1000), random.below(1000)];
    let fast = Calls::new(config.clone(), &now);
    let slow = Naive::new(config, program.clone(), &now);
    let mut both = Both { fast, slow, program, now, dumps: Vec::new(), log: vec![format!("seed {seed}")] };
    let start = at(1, 0);
    both.fast.begin(&mut both.program, start);
    both.slow.begin(start);
    let mut sp = HIGH;
    for _ in 0..300 {
        both.event(&mut random, &mut sp, contexts);
    }
    let wanted = both.fast.end(&both.now);
    both.slow.end(&both.now);
    both.requests(wanted);
    both.dump();
    both.dumps.iter().map(|maps| maps.arcs.values().map(|(n, _)| n).sum::<u64>()).sum()
}

#[test]
fn random_events() {
    let seeds = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(400);
    let calls: u64 = (1..=seeds).map(run).sum();
    assert!(calls > seeds * 20, "only {calls} calls in {seeds} runs");
}
