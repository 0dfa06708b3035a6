//! How fast the models consume what a program really does.
//!
//! `cargo bench -p cg-sim` records what a program does to memory with Valgrind's `lackey`, leaves out the accesses to the
//! most recently used line of their set, as emitted code does, and replays the rest: nanoseconds a record, and millions of
//! records a second. `cargo bench -p cg-sim -- PROGRAM ARGS…` takes another program. Without Valgrind a random trace with
//! similar rates stands in. Nothing is asserted here; the tests do that.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use cg_sim::usage::{Cost, Level, Owner, Residents, Usage, UsageLastLevel};
use cg_sim::{Access, Geometries, Geometry, LastLevel, Level1, Port};

/// One access: address, size, whether it fetches an instruction.
#[derive(Clone, Copy)]
struct Record {
    addr: u64,
    size: u32,
    fetch: bool,
}

impl Access for Record {
    #[inline]
    fn port(&self) -> Port {
        if self.fetch { Port::Fetch } else { Port::Data }
    }

    #[inline]
    fn addr(&self) -> u64 {
        self.addr
    }

    #[inline]
    fn size(&self) -> u32 {
        self.size
    }
}

/// Raw accesses that are recorded at most.
const LIMIT: usize = 40_000_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|w| !w.starts_with("--bench")).collect();
    let programs: Vec<Vec<String>> = match words.is_empty() {
        true => [
            "xz -c /bin/bash",
            "sort -R /etc/services",
            "perl -e print(join(',',map{$_**2}(1..50000)))",
            "gzip -9 -c /bin/bash",
        ]
        .iter()
        .map(|line| line.split(' ').map(str::to_owned).collect())
        .collect(),
        false => vec![words],
    };
    let shape = |size, assoc, line| Geometry::new(size, assoc, line).expect("a shape that can be simulated");
    let hierarchies = [
        ("32K/8 32K/8 8M/16", shape(32768, 8, 64), shape(8 << 20, 16, 64)),
        ("32K/8 48K/12 36M/18", shape(49152, 12, 64), shape(37_748_736, 18, 64)),
        ("32K/8 16K/1 1M/4", shape(16384, 1, 64), shape(1 << 20, 4, 64)),
    ];
    for program in programs {
        let raw = record(&program).unwrap_or_else(|| {
            println!("valgrind or {} is missing: a random trace instead", program[0]);
            random()
        });
        replay_usage(&program[0], &raw);
        for (name, d1, ll) in hierarchies {
            let geometries = Geometries { i1: shape(32768, 8, 64), d1, ll };
            let records = filtered(&raw, &geometries);
            let (l1, best, misses) = (0..5)
                .map(|_| replay(&records, &geometries))
                .fold((0, f64::INFINITY, 0), |(_, best, _), (l1, time, memory)| (l1, best.min(time), memory));
            let n = records.len() as f64;
            println!(
                "{:10} {name:20} {:4.1}% of {} accesses; of these {:4.1}% miss L1, {:4.1}% LL: {:5.2} ns, {:5.1} M/s",
                program[0],
                n * 100.0 / raw.len() as f64,
                raw.len(),
                l1 as f64 * 100.0 / n,
                misses as f64 * 100.0 / n,
                best * 1e9 / n,
                n / best / 1e6
            );
        }
    }
}

/// Nothing but the least that a user of cache use has to do.
struct Sum(u64);

impl Residents for Sum {
    fn loaded(&mut self, _: Level, _: u64) -> Owner {
        Owner::default()
    }

    fn evicted(&mut self, _: Level, owner: Owner, cost: Cost) {
        self.0 += cost.ac_cost + u64::from(owner.node);
    }
}

/// Cache use, for which nothing may be left out.
fn replay_usage(program: &str, raw: &[Record]) {
    let shape = |size, assoc, line| Geometry::new(size, assoc, line).expect("a shape that can be simulated");
    let g = Geometries { i1: shape(32768, 8, 64), d1: shape(32768, 8, 64), ll: shape(8 << 20, 16, 64) };
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let (mut usage, mut ll) = (Usage::new(&g).expect("lines are the same"), UsageLastLevel::new(&g));
        let mut sum = Sum(0);
        let clock = Instant::now();
        let start = seconds(clock);
        for r in raw {
            usage.access(&mut ll, r.port(), r.addr, r.size, true, &mut sum);
        }
        best = best.min(seconds(clock) - start);
        std::hint::black_box(sum.0);
    }
    let n = raw.len() as f64;
    println!("{program:10} use of lines, all accesses: {:5.2} ns, {:5.1} M/s", best * 1e9 / n, n / best / 1e6);
}

fn record(program: &[String]) -> Option<Vec<Record>> {
    let mut child = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--log-fd=2"])
        .args(program)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut records = Vec::new();
    for line in BufReader::new(child.stderr.take()?).split(b'\n') {
        // "I  04001090,3", " L 1fff000,8", " S …", " M …"
        let line = line.ok()?;
        let [a, b, b' ', rest @ ..] = line.as_slice() else { continue };
        let fetch = match (a, b) {
            (b'I', b' ') => true,
            (b' ', b'L' | b'S' | b'M') => false,
            _ => continue,
        };
        let text = std::str::from_utf8(rest).ok()?.trim();
        let Some((addr, size)) = text.split_once(',') else { continue };
        let (Ok(addr), Ok(size)) = (u64::from_str_radix(addr, 16), size.parse()) else { continue };
        records.push(Record { addr, size, fetch });
        if records.len() == LIMIT {
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    (records.len() > 100_000).then_some(records)
}

fn random() -> Vec<Record> {
    let mut state = 1u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    };
    (0..LIMIT)
        .map(|i| {
            let hot = next() % 1000;
            let span = if hot < 980 { 1 << 14 } else { 1 << 25 };
            Record { addr: 0x7f00_0000_0000 + next() % span, size: 8, fetch: i % 3 == 0 }
        })
        .collect()
}

fn filtered(raw: &[Record], g: &Geometries) -> Vec<Record> {
    let mut newest = [vec![0u64; g.d1.sets() as usize], vec![0u64; g.i1.sets() as usize]];
    let mut kept = Vec::new();
    for record in raw {
        let shape = if record.fetch { g.i1 } else { g.d1 };
        let (first, last) =
            (record.addr >> shape.line_bits(), (record.addr + u64::from(record.size) - 1) >> shape.line_bits());
        let table = &mut newest[usize::from(record.fetch)];
        let set = |line: u64| (line % u64::from(shape.sets())) as usize;
        if table[set(first)] == first && table[set(last)] == last {
            continue;
        }
        table[set(first)] = first;
        table[set(last)] = last;
        kept.push(*record);
    }
    kept
}

/// Seconds of processor time that this thread has used; where the kernel does not tell, of the clock.
fn seconds(start: Instant) -> f64 {
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = used.as_deref().and_then(|text| text.split(' ').next()).and_then(|n| n.parse::<u64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |n| n as f64 / 1e9)
}

/// First-level misses, seconds, and misses of all caches.
fn replay(records: &[Record], geometries: &Geometries) -> (u64, f64, u64) {
    let (mut l1, mut ll) = (Level1::new(geometries), LastLevel::new(geometries));
    let mut served = [0u64; 3];
    // Long enough for a clock that may be coarse.
    let times = 10_000_000 / records.len() + 1;
    let clock = Instant::now();
    let start = seconds(clock);
    let mut warm = [0u64; 3];
    for pass in 0..times {
        let served = if pass == 0 { &mut served } else { &mut warm };
        for batch in records.chunks(4096) {
            l1.replay(&mut ll, batch, |_, by| served[by as usize] += 1);
        }
    }
    (served[1] + served[2], (seconds(clock) - start) / times as f64, served[2])
}
