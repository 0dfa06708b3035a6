//! Every access as a record: the naive model, fed with what the engine records, finds the same misses for every line of the
//! source as when it is fed with what single-stepping sees. So nothing is missing, doubled, or in another order.
//!
//! All in one test: the engine waits for every child of the process that it is in, so nothing may run beside it.
#![allow(unsafe_code)] // reading the extended state of a traced process

#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/twin.rs"]
mod twin;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};

use grind_isa::cpuid::CpuModel;
use grind_session::{Beside, Exit, Instrumentation, Notice, OwnCode, ProcessReport, Program, Session, Settings};
use grind_trace::{Done, EveryAccess, Sink, Site, SiteKind, SpaceId, Special, Target, TraceSettings};
use grind_types::{Pid, Tid};

use grind_tests::apart;
use grind_tests::build::Source;
use grind_tests::compare::assert_none;
use grind_tests::costs::Costs;
use grind_tests::simulation::{self, EVENTS, Geometry};
use grind_tests::tools;
use model::{Caches, Misses};

/// A driver with nothing to do.
struct Quiet;

impl Session for Quiet {
    fn follow_exec(&mut self, _: Pid, _: &Path, _: &[OsString]) -> bool {
        false
    }
    fn image_started(&mut self, _: Pid, _: Option<Pid>, _: &Path, _: &[OsString]) {}
    fn forked(&mut self, _: Pid, _: Pid) {}
    fn process_ends(&mut self, _: &ProcessReport<'_>) {}
    fn client_print(&mut self, _: Pid, _: &[u8]) {}
    fn redundant_instrumentation(&mut self, _: Pid, _: Instrumentation) {}
    fn tool_name(&self) -> &str {
        "callgrind"
    }
    fn notice(&mut self, _: Pid, notice: Notice) {
        panic!("{notice:?}");
    }
}

/// What was found by address of the instruction, in the order of [`EVENTS`].
#[derive(Default)]
struct Found {
    costs: BTreeMap<u64, [u64; EVENTS.len()]>,
    fetched: u64,
    repeated: bool,
}

/// The naive model at the end of the trace.
struct Modelled {
    sites: Vec<Site>,
    specials: Vec<Special>,
    caches: Caches,
    found: Arc<Mutex<Found>>,
}

fn add(counts: &mut [u64], m: Misses) {
    counts[0] += 1;
    counts[1] += m.l1;
    counts[2] += m.ll;
}

fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Modelled {
    fn access(&mut self, addr: u64, done: Done, address: u64, size: u64) {
        let m = self.caches.data(addr, address, size);
        let mut found = self.found.lock().unwrap();
        let counts = found.costs.entry(addr).or_default();
        add(if done == Done::Write { &mut counts[6..9] } else { &mut counts[3..6] }, m);
    }

    fn record(&mut self, number: usize, record: &[u32]) {
        let site = self.sites[number];
        match site.kind {
            SiteKind::Stretch { instructions, bytes, groups, members, tells } => {
                assert_eq!(tells, None, "no calls are recorded");
                let m = self.caches.fetch(site.addr.0, bytes.into());
                let mut found = self.found.lock().unwrap();
                found.fetched += u64::from(instructions);
                let counts = found.costs.entry(site.addr.0).or_default();
                counts[1] += m.l1;
                counts[2] += m.ll;
                drop(found);
                let mut last = 0;
                for n in 1..=usize::from(members) {
                    let member = self.sites[number + n];
                    let SiteKind::Member { group, done, offset, size } = member.kind else { panic!("{member:?}") };
                    assert!((last..groups).contains(&group));
                    last = group;
                    let at = 1 + 2 * usize::from(group);
                    let address = word(record[at], record[at + 1]) + u64::from(offset);
                    self.access(member.addr.0, done, address, size.into());
                }
            }
            SiteKind::Repeated { size, source, target, target_first, narrow } => {
                self.found.lock().unwrap().repeated = true;
                let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
                let register = |n: usize| word(record[n], record[n + 1]) & mask;
                let [count, from, to, left, from_after, to_after] = [1, 3, 5, 7, 9, 11].map(register);
                let back = (from_after as i64) < from as i64 || (to_after as i64) < to as i64;
                for n in 0..count.wrapping_sub(left) & mask {
                    let moved = n * u64::from(size);
                    let at =
                        |start: u64| if back { start.wrapping_sub(moved) } else { start.wrapping_add(moved) } & mask;
                    let read_source = |s: &mut Self| {
                        if source {
                            s.access(site.addr.0, Done::Read, at(from), size.into());
                        }
                    };
                    if !target_first {
                        read_source(self);
                    }
                    match target {
                        Target::Unused => {}
                        Target::Read => self.access(site.addr.0, Done::Read, at(to), size.into()),
                        Target::Write => self.access(site.addr.0, Done::Write, at(to), size.into()),
                    }
                    if target_first {
                        read_source(self);
                    }
                }
            }
            SiteKind::Special { index, .. } => {
                for touch in self.specials[index as usize].touches(record) {
                    self.access(site.addr.0, touch.done, touch.address, touch.size);
                }
            }
            kind => panic!("a record of {kind:?}"),
        }
    }
}

impl Sink for Modelled {
    fn sites(&mut self, _: SpaceId, sites: &[Site], specials: &[Special]) {
        self.sites.extend_from_slice(sites);
        self.specials.extend_from_slice(specials);
    }
    fn space_copied(&mut self, _: SpaceId, _: SpaceId) {}
    fn image(&mut self, _: Pid, _: SpaceId) {}
    fn moved(&mut self, _: Pid, _: SpaceId) {}
    fn forked(&mut self, _: Pid, _: Tid, _: Pid) {}
    fn records(&mut self, _: Pid, _: Tid, words: &[u32]) {
        let mut rest = words;
        while let Some(&number) = rest.first() {
            let (record, after) = rest.split_at(self.sites[number as usize].kind.words());
            self.record(number as usize, record);
            rest = after;
        }
    }
    fn thread_ended(&mut self, _: Pid, _: Tid) {}
    fn process_ended(&mut self, _: Pid) {}
}

/// What the model finds in the engine's records of `program`.
fn traced(program: &Path, g: &Geometry) -> Found {
    let found = Arc::new(Mutex::new(Found::default()));
    let sink = Modelled { sites: Vec::new(), specials: Vec::new(), caches: Caches::new(g), found: found.clone() };
    let every = EveryAccess { code_line: g.i1.2 as u32, data_line: g.d1.2 as u32, widest: g.smallest_line() as u32 };
    let settings = Settings {
        cpu: CpuModel::Baseline,
        count_at_start: grind_session::AtStart::Counting,
        code_limit: u64::MAX,
        pairs_from: u64::MAX,
        hot_after: 0,
        trace: TraceSettings { every: Some(every), ..TraceSettings::default() },
        contexts: false,
        beside: Beside::default(),
        programs_follow: true,
        own_code: OwnCode::default(),
        look_every: None,
    };
    let args = vec![program.as_os_str().to_owned()];
    let run = Program { path: program.to_owned(), args, env: Vec::new() };
    let exit = grind_engine::run_traced(&run, &settings, &mut Quiet, Box::new(sink));
    assert_eq!(exit.unwrap_or_else(|e| panic!("{}: {e}", program.display())), Exit::Code(0));
    std::mem::take(&mut *found.lock().unwrap())
}

fn main() {
    if !tools::have(&["addr2line"]) {
        return;
    }
    let events: Vec<&str> = EVENTS.into_iter().filter(|e| *e != "Ir" && !e.starts_with('B')).collect();
    apart::each(&simulation::programs(), |name| {
        let source = Source::open("cache", name);
        if !source.runs_here() {
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = source.build(dir.path(), true);
        let geometries = simulation::geometries(&source);
        let twins = twin::simulate(&program, dir.path(), &geometries).unwrap_or_else(|e| panic!("{e:#}"));
        for (geometry, twin) in geometries.iter().zip(&twins) {
            let found = traced(&program, geometry);
            let addresses: Vec<u64> = found.costs.keys().copied().collect();
            let lines = twin::lines_of(&program, &addresses).unwrap_or_else(|e| panic!("{e:#}"));
            let mut got = Costs { events: EVENTS.map(str::to_owned).to_vec(), ..Costs::default() };
            for (address, counts) in &found.costs {
                got.add(lines[address].clone(), counts);
            }
            assert_none(&format!("{name} with {geometry:?}"), &twin.differences(&got, &events));
            // Each iteration of a repeated instruction is an execution, but fetched once here.
            if !found.repeated {
                assert_eq!(found.fetched, twin.sums()[0], "{name}: instructions");
            }
            assert!(found.fetched > 0 && found.fetched <= twin.sums()[0], "{name}: instructions");
        }
        println!("{name}: ok");
    });
}
