//! The levels beyond the first against a hierarchy of automata that is asked line by line, against the plain last level, and
//! against pycachesim where that is installed.

use crate::twin;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::twin::policies::{Automaton, automaton};
use crate::twin::{Kind, Random, accesses, geometry};
use cg_sim::beyond::{Answer, Ask as _, Beyond, Clash, Inclusion, Levels, Request, Seen};
use cg_sim::policy::{Policy, parse_shape};
use cg_sim::prefetch::Prefetch;
use cg_sim::{Geometries, LastLevel, Served};

fn levels(second: &str, last: &str, inclusion: Inclusion, prefetch: Prefetch) -> Levels {
    let second = (!second.is_empty()).then(|| parse_shape(second).unwrap());
    let levels = Levels { second, last: parse_shape(last).unwrap(), inclusion, prefetch };
    assert_eq!(levels.check(), Ok(()));
    levels
}

/// The hierarchy as one would explain it.
struct Twin {
    levels: Levels,
    seconds: BTreeMap<i32, Box<dyn Automaton>>,
    last: Box<dyn Automaton>,
    /// Lines that memory had to give, and how often.
    memory: BTreeMap<u64, u32>,
}

impl Twin {
    fn new(levels: Levels) -> Self {
        let last = automaton(levels.last.0, levels.last.1);
        Self { levels, seconds: BTreeMap::new(), last, memory: BTreeMap::new() }
    }

    fn lines(addr: u64, size: u64, line: u64) -> Vec<u64> {
        let mut lines: Vec<u64> = (0..size).map(|byte| addr.wrapping_add(byte) / line).collect();
        lines.dedup();
        lines
    }

    /// The last level has a line, or gets it. Whether it had it.
    fn last_has(&mut self, line: u64) -> bool {
        if self.last.touch(line) {
            return true;
        }
        *self.memory.entry(line).or_default() += 1;
        if let Some(gone) = self.last.fill(line)
            && self.levels.inclusion == Inclusion::Inclusive
        {
            for second in self.seconds.values_mut() {
                second.remove(gone);
            }
        }
        false
    }

    /// A second level that does not have a line gets it, and of the last level so many bytes.
    fn load(&mut self, thread: i32, line: u64, addr: u64, size: u64) -> bool {
        let had = if self.levels.inclusion == Inclusion::Exclusive {
            let had = self.last.remove(line);
            if !had {
                *self.memory.entry(line).or_default() += 1;
            }
            had
        } else {
            let lines = Self::lines(addr, size, u64::from(self.levels.last.0.line()));
            lines.into_iter().filter(|&line| !self.last_has(line)).count() == 0
        };
        let gone = self.seconds.get_mut(&thread).unwrap().fill(line);
        if let Some(gone) = gone
            && self.levels.inclusion == Inclusion::Exclusive
            && !self.last.touch(gone)
        {
            self.last.fill(gone);
        }
        had
    }

    fn access(&mut self, thread: i32, addr: u64, size: u64) -> u8 {
        let bytes = |shape: cg_sim::Geometry| u64::from(shape.line());
        let Some((shape, policy)) = self.levels.second else {
            let line = bytes(self.levels.last.0);
            let lines = Self::lines(addr, size, line);
            let had = lines.into_iter().filter(|&line| !self.last_has(line)).count() == 0;
            if self.levels.prefetch == Prefetch::NextLine
                && addr / line < u64::MAX / line
                && !self.last.has(addr / line + 1)
            {
                self.last_has(addr / line + 1);
            }
            return if had { 1 } else { 2 };
        };
        self.seconds.entry(thread).or_insert_with(|| automaton(shape, policy));
        let line = bytes(shape);
        let mut answer = 0;
        for number in Self::lines(addr, size, line) {
            if self.seconds.get_mut(&thread).unwrap().touch(number) {
                continue;
            }
            // The bytes of the access that are in this line.
            let inside: Vec<u64> = (0..size).map(|n| addr.wrapping_add(n)).filter(|at| at / line == number).collect();
            let had = self.load(thread, number, inside[0], inside.len() as u64);
            answer = answer.max(if had { 1 } else { 2 });
        }
        let next = addr / line + 1;
        if self.levels.prefetch == Prefetch::NextLine
            && addr / line < u64::MAX / line
            && !self.seconds[&thread].has(next)
        {
            self.load(thread, next, next * line, line);
        }
        answer
    }

    /// Whether what is said of inclusion holds.
    fn check(&self) {
        if self.levels.inclusion == Inclusion::Inclusive {
            for line in self.memory.keys() {
                assert!(self.last.has(*line) || !self.seconds.values().any(|second| second.has(*line)));
            }
        }
    }
}

#[test]
fn hierarchies_equal_their_twins() {
    use Inclusion::{Exclusive, Inclusive, None};
    let cases = [
        ("", "4096,4,64,fifo", None, Prefetch::None),
        ("", "4096,8,64,plru", None, Prefetch::NextLine),
        ("", "16384,4,64,drrip", None, Prefetch::None),
        ("1024,2,64", "4096,4,64", None, Prefetch::None),
        ("1024,2,64,plru", "4096,4,64,qlru:H11_M1_R0_U0", None, Prefetch::NextLine),
        ("1024,2,32", "4096,4,128,srrip", None, Prefetch::None),
        ("1024,2,128,nru", "4096,4,32,fifo", None, Prefetch::NextLine),
        ("1024,4,64", "4096,4,64", Inclusive, Prefetch::None),
        ("2048,4,64", "2048,2,64,brrip", Inclusive, Prefetch::NextLine),
        ("1024,4,64,qlru:H00_M1_R2_U1", "2048,8,64,qlru:H11_M1_R0_U0", Inclusive, Prefetch::None),
        ("1024,4,64", "4096,4,64", Exclusive, Prefetch::None),
        ("4096,4,64,fifo", "2048,4,64,plru", Exclusive, Prefetch::NextLine),
        ("1024,4,64,plru", "1024,4,64,nru", Exclusive, Prefetch::None),
    ];
    for (second, last, inclusion, prefetch) in cases {
        let levels = levels(second, last, inclusion, prefetch);
        for seed in 0..8 {
            let mut random = Random::new(seed + 77);
            let (mut beyond, mut twin) = (Beyond::new(&levels), Twin::new(levels));
            let (mut loads, mut answers) = (BTreeMap::<u64, u32>::new(), [0u32; 3]);
            let mut thread = 1;
            for a in accesses(&mut random, 4000) {
                if random.one_in(50) {
                    thread = 1 + random.below(3) as i32;
                }
                beyond.run(thread);
                let request = Request { instruction: 7, addr: a.addr, size: a.size, data: a.kind != Kind::Fetch };
                let answer = beyond.observed(request, &mut |seen| {
                    if let Seen::Loaded(line) = seen {
                        *loads.entry(line).or_default() += 1;
                    }
                });
                let expected = twin.access(thread, a.addr, a.size.into());
                assert_eq!(answer as u8, expected, "{a:x?} of {thread} with {levels:?}, seed {seed}");
                answers[usize::from(expected)] += 1;
            }
            assert_eq!(loads, twin.memory, "{levels:?}, seed {seed}");
            assert!(answers[2] > 0 && answers[1] > 0, "{answers:?}, {levels:?}, seed {seed}");
            assert_eq!(answers[0] > 0, levels.second.is_some());
            twin.check();
        }
    }
}

/// Without anything that is new, it is the last level that has always been simulated; but for line 0, which that one has from
/// the start.
#[test]
fn a_plain_last_level_is_the_last_level() {
    for (index, g) in twin::hierarchies().into_iter().enumerate() {
        let levels =
            Levels { second: None, last: (g.ll, Policy::Lru), inclusion: Inclusion::None, prefetch: Prefetch::None };
        assert!(levels.plain());
        let mut random = Random::new(index as u64);
        let (mut plain, mut beyond) = (LastLevel::new(&g), Beyond::new(&levels));
        for a in accesses(&mut random, 8000) {
            // Not the first line, and not round the end.
            if a.addr < 4096 || a.addr > u64::MAX - 4096 {
                continue;
            }
            let request = Request { instruction: 0, addr: a.addr, size: a.size, data: true };
            let expected = match plain.access(a.addr, a.size) {
                Served::Memory => Answer::Memory,
                _ => Answer::Last,
            };
            assert_eq!(beyond.access(request), expected, "{a:x?} with {g:?}");
        }
    }
}

#[test]
fn threads_have_second_levels_of_their_own() {
    let levels = levels("1024,2,64", "4096,4,64", Inclusion::None, Prefetch::None);
    let mut beyond = Beyond::new(&levels);
    let request = Request { instruction: 0, addr: 0x1000, size: 8, data: true };
    let ask = |beyond: &mut Beyond, thread| {
        beyond.run(thread);
        beyond.access(request)
    };
    assert_eq!([1, 1, 2, 2, 1].map(|thread| ask(&mut beyond, thread)), {
        use Answer::{Last, Memory, Second};
        [Memory, Second, Last, Second, Second]
    });
    // A child has what the thread had that created it, a thread of the same number as one that ended nothing.
    let mut child = beyond.clone();
    child.forked(2, 9);
    assert_eq!(ask(&mut child, 9), Answer::Second);
    assert_eq!(ask(&mut child, 1), Answer::Last);
    beyond.ended(2);
    assert_eq!((ask(&mut beyond, 2), ask(&mut beyond, 1)), (Answer::Last, Answer::Second));
    beyond.ended(1);
    beyond.ended(2);
    assert_eq!(ask(&mut beyond, 3), Answer::Last);
}

/// Two sweeps over more lines than one level holds and fewer than both: an exclusive last level has what the second one
/// could not keep; an inclusive one makes the second level useless.
#[test]
fn exclusion_adds_sizes_up() {
    let sweeps = |inclusion| {
        let mut beyond = Beyond::new(&levels("2048,32,64", "2048,32,64", inclusion, Prefetch::None));
        let mut answers = [0; 3];
        for line in (0..10).flat_map(|_| 1..=60) {
            let request = Request { instruction: 0, addr: line * 64, size: 8, data: true };
            answers[beyond.access(request) as usize] += 1;
        }
        answers
    };
    assert_eq!(sweeps(Inclusion::Exclusive), [0, 540, 60]);
    assert_eq!(sweeps(Inclusion::Inclusive), [0, 0, 600]);
    assert_eq!(sweeps(Inclusion::None), [0, 0, 600]);
}

#[test]
fn a_sweep_is_foreseen() {
    let sweep = |prefetch| {
        let mut beyond = Beyond::new(&levels("1024,2,64", "4096,4,64", Inclusion::None, prefetch));
        let mut answers = [0; 3];
        for line in 64..128 {
            let request = Request { instruction: 5, addr: line * 64, size: 8, data: true };
            answers[beyond.access(request) as usize] += 1;
        }
        answers
    };
    // The first line of all; the first three, of which steps are learnt; the first three of the page.
    assert_eq!(sweep(Prefetch::None), [0, 0, 64]);
    assert_eq!(sweep(Prefetch::NextLine), [63, 0, 1]);
    assert_eq!(sweep(Prefetch::Stride), [61, 0, 3]);
    assert_eq!(sweep(Prefetch::Stream), [61, 0, 3]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let shape = |text: &str| parse_shape(text).unwrap();
    let with = |second: Option<&str>, inclusion| {
        let second = second.map(shape);
        Levels { second, last: shape("4096,4,64"), inclusion, prefetch: Prefetch::None }.check()
    };
    use Inclusion::{Exclusive, Inclusive, None};
    assert_eq!(with(Option::None, None), Ok(()));
    assert_eq!(with(Option::None, Inclusive), Ok(()), "first levels are included");
    assert_eq!(with(Option::None, Exclusive), Err(Clash::NoSecond(Exclusive)));
    assert_eq!(with(Some("1024,2,32"), None), Ok(()));
    assert_eq!(with(Some("1024,2,32"), Exclusive), Err(Clash::Lines(Exclusive, [32, 64])));
    assert_eq!(with(Some("8192,2,64"), Inclusive), Err(Clash::Smaller([8192, 4096])));
    assert_eq!(with(Some("8192,2,64"), Exclusive), Ok(()));
}

/// pycachesim knows LRU and FIFO, and levels that load from each other.
#[test]
fn misses_are_pycachesims() {
    const SCRIPT: &str = "
import sys
from cachesim import CacheSimulator, Cache, MainMemory
s2, w2, p2, s3, w3, p3 = sys.argv[1:]
memory = MainMemory()
l3 = Cache('L3', int(s3), int(w3), 64, p3)
memory.load_to(l3)
memory.store_from(l3)
l2 = Cache('L2', int(s2), int(w2), 64, p2, store_to=l3, load_from=l3)
caches = CacheSimulator(l2, memory)
for line in sys.stdin:
    caches.load(int(line), length=1)
print(l2.stats()['MISS_count'], l3.stats()['MISS_count'])
";
    let python = std::env::var("CACHESIM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import cachesim"]).output();
    if !there.is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: {python} has no pycachesim (CACHESIM_PYTHON names another one)");
        return;
    }
    for (index, (p2, p3)) in
        [("lru", "lru"), ("fifo", "lru"), ("lru", "fifo"), ("fifo", "fifo")].into_iter().enumerate()
    {
        let levels = levels(&format!("8192,8,64,{p2}"), &format!("32768,4,64,{p3}"), Inclusion::None, Prefetch::None);
        let mut random = Random::new(index as u64 + 40);
        let mut beyond = Beyond::new(&levels);
        let (mut told, mut missed) = (String::new(), [0; 2]);
        for round in 0..30_000u64 {
            let addr = 0x10_0000
                + match random.below(4) {
                    0 => random.below(4096),
                    1 => random.below(40_000),
                    2 => random.below(100_000),
                    _ => round * 64 % 36_000,
                };
            told.push_str(&format!("{addr}\n"));
            let answer = beyond.access(Request { instruction: 0, addr, size: 1, data: true });
            missed[0] += u32::from(answer >= Answer::Last);
            missed[1] += u32::from(answer == Answer::Memory);
        }
        let (p2, p3) = (p2.to_uppercase(), p3.to_uppercase());
        let mut child = Command::new(&python)
            .args(["-c", SCRIPT, "16", "8", &p2, "128", "4", &p3])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(told.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        assert_eq!(found.trim(), format!("{} {}", missed[0], missed[1]), "{p2} {p3}");
        assert!(missed[1] > 1000 && missed[0] > missed[1], "{missed:?}");
    }
}

#[test]
fn shapes_of_all_hierarchies_have_levels() {
    // So that nothing is asked of a shape that it cannot have.
    for Geometries { ll, .. } in twin::hierarchies() {
        let last = (ll, Policy::Random(1));
        let levels = Levels { second: Some((geometry(512, 2, 32), Policy::Fifo)), last, ..levels_of(last) };
        let mut beyond = Beyond::new(&levels);
        let mut random = Random::new(4);
        for a in accesses(&mut random, 500) {
            assert!(beyond.looks_at(a.addr).iter().all(|at| at.is_some_and(|at| at != 0)));
            beyond.access(Request { instruction: 0, addr: a.addr, size: a.size, data: true });
        }
        assert!(!beyond.addresses().is_empty());
    }
}

fn levels_of(last: (cg_sim::Geometry, Policy)) -> Levels {
    Levels { second: None, last, inclusion: Inclusion::None, prefetch: Prefetch::Stream }
}
