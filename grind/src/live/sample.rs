//! What a process executes while it runs, function by function, for who looks at it: two halves, so that the program never waits for
//! names. [`Gathering`] is where the engine's counts are, and only copies numbers; [`Namer`] may be on another thread, finds out
//! once what each piece of code belongs to, and tells what has come since an earlier snapshot.
//!
//! Counts are read while they go on, so what is told is near the truth of a moment, never more; profiles are made elsewhere. Counts
//! that have become smaller (they were collected or set to zero) begin at 0 again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{ActiveFunction, ActiveThread, Activity, ActivityRequest};
use grind_analysis::counts::{CountTable, Events};
use grind_analysis::dump::{Made, code_of, offset_of};
use grind_analysis::simulator::Finding;
use grind_names::made::Registry;
use grind_names::symbolizer::{Place, Symbolizer};
use grind_session::{Counts, ProcessReport};
use grind_types::addr::GuestAddr;
use grind_types::{InstructionCount, Module, Pid, StaticEvents, Tid};

/// What an access is that reads and writes the same bytes: the tools have it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modified {
    /// A read, as cachegrind has it.
    Read,
    /// A write, as callgrind has it.
    Written,
}

/// So many snapshots of a process are kept: those that several may still name who look at it.
const KEPT: usize = 8;

/// A piece of code: what of it is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    module: u32,
    start: u64,
    made: u32,
    bytes: u16,
    instructions: u16,
    /// What a single instruction does; of misses that were found, nothing.
    facts: u64,
}

/// An instruction of a piece, with what one count of the piece says of it, by event.
#[derive(Clone, Debug)]
struct Instruction {
    module: u32,
    addr: GuestAddr,
    made: u32,
    costs: Vec<u64>,
}

/// Numbers of a moment, on their way to who has names for them.
#[derive(Debug)]
pub struct Sample {
    pid: Pid,
    at: Instant,
    /// The processor time that it took to get here.
    pub(super) took: Duration,
    /// When the process began.
    began: Instant,
    events: Events,
    /// Modules and pieces that there were not before.
    modules: Vec<Module>,
    pieces: Vec<Vec<Instruction>>,
    /// How often each piece was executed.
    executed: Vec<(u32, u64)>,
    /// What was found of instructions besides, by event.
    found: Vec<(u32, Vec<u64>)>,
    threads: Vec<ActiveThread>,
}

/// The pieces of a process that have been told of.
#[derive(Debug)]
pub struct Gathering {
    began: Instant,
    modules: usize,
    known: HashMap<Key, u32>,
}

impl Gathering {
    /// Nothing is known of a process that began then.
    #[must_use]
    pub fn new(began: Instant) -> Self {
        Self { began, modules: 0, known: HashMap::new() }
    }

    /// What the process has executed by now. `findings` are those of a simulator, if there is one.
    pub fn sample(
        &mut self,
        report: &ProcessReport<'_>,
        (events, modified): (Events, Modified),
        findings: &[Finding],
    ) -> Sample {
        let mut sample = Sample {
            pid: report.pid,
            at: Instant::now(),
            took: Duration::ZERO,
            began: self.began,
            events,
            modules: report.modules.get(self.modules..).unwrap_or_default().to_vec(),
            pieces: Vec::new(),
            executed: Vec::new(),
            found: Vec::new(),
            threads: Vec::new(),
        };
        self.modules = self.modules.max(report.modules.len());
        let counts = report.counts;
        for s in counts.stretches() {
            let key = Key {
                module: s.module,
                start: s.start.0,
                made: s.made,
                bytes: s.bytes,
                instructions: s.instructions,
                facts: u64::MAX,
            };
            let instructions = || counts.instructions_of(s).map(|(_, one)| as_told(one, modified)).collect();
            let piece = self.piece(key, &mut sample, instructions);
            sample.executed.push((piece, s.count));
        }
        for one in counts.singles() {
            let key = Key {
                module: one.module as u32,
                start: one.addr.0,
                made: one.made,
                bytes: one.len.into(),
                instructions: 1,
                facts: facts(one.events),
            };
            let piece = self.piece(key, &mut sample, || vec![as_told(*one, modified)]);
            sample.executed.push((piece, one.count));
        }
        let none = Counts::default();
        let mut table = CountTable::new(events, &none);
        findings.iter().for_each(|f| table.add(f.module, f.addr, &f.counts));
        for (row, f) in findings.iter().enumerate() {
            let (module, start, made) = (f.module as u32, f.addr.0, u32::MAX);
            let key = Key { module, start, made, bytes: 0, instructions: 0, facts: 0 };
            let one = InstructionCount {
                module: f.module,
                addr: f.addr,
                len: 0,
                count: 0,
                events: StaticEvents::default(),
                made,
            };
            let piece = self.piece(key, &mut sample, || vec![one]);
            let mut sums = vec![0; events.len()];
            table.add_row(row, &mut sums);
            sample.found.push((piece, sums.into_iter().map(settled).collect()));
        }
        sample.threads = report
            .threads
            .iter()
            .map(|thread| ActiveThread {
                id: u64::from(thread.tid.0.unsigned_abs()),
                instructions: settled(thread.instructions.cast_signed().into()),
                name: name_of(report.pid, thread.tid),
            })
            .collect();
        sample
    }

    /// The number of a piece; one that is new is described.
    fn piece(&mut self, key: Key, sample: &mut Sample, instructions: impl FnOnce() -> Vec<InstructionCount>) -> u32 {
        let next = self.known.len() as u32;
        let piece = *self.known.entry(key).or_insert(next);
        if piece == next {
            sample.pieces.push(described(sample.events, instructions()));
        }
        piece
    }
}

/// An instruction whose modifications are what the tool has them be.
fn as_told(mut one: InstructionCount, modified: Modified) -> InstructionCount {
    if modified == Modified::Written {
        one.events.writes += std::mem::take(&mut one.events.modifies);
    }
    one
}

/// What an instruction does, as a number.
fn facts(events: StaticEvents) -> u64 {
    let bytes = [
        events.reads,
        events.writes,
        events.modifies,
        u8::from(events.conditional),
        u8::from(events.indirect),
        u8::from(events.bus),
        1,
        0,
    ];
    u64::from_le_bytes(bytes)
}

fn described(events: Events, instructions: Vec<InstructionCount>) -> Vec<Instruction> {
    let counts = Counts::from(instructions.iter().map(|one| InstructionCount { count: 1, ..*one }).collect::<Vec<_>>());
    let table = CountTable::new(events, &counts);
    let costs = |row: usize| {
        let mut sums = vec![0; events.len()];
        table.add_row(row, &mut sums);
        sums.into_iter().map(settled).collect()
    };
    let of = |(row, one): (usize, &InstructionCount)| Instruction {
        module: one.module as u32,
        addr: one.addr,
        made: one.made,
        costs: costs(row),
    };
    instructions.iter().enumerate().map(of).collect()
}

/// A count that may have been read between two that belong together, so that their difference is below 0.
fn settled(count: i128) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// The name of a thread, as the kernel knows it.
fn name_of(pid: Pid, tid: Tid) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// What was executed until a moment.
#[derive(Debug)]
struct Snapshot {
    number: u64,
    at: Instant,
    /// By function, one number for each event.
    costs: Vec<u64>,
    threads: BTreeMap<u64, u64>,
}

/// What is known of a process.
#[derive(Debug, Default)]
struct Process {
    modules: Vec<Module>,
    /// By piece: functions, with what a count of the piece says of them.
    pieces: Vec<Vec<(u32, Vec<u64>)>>,
    snapshots: VecDeque<Snapshot>,
}

/// Knows the names of pieces, and what was told of them before.
#[derive(Debug, Default)]
pub struct Namer {
    last: u64,
    /// By number: function and file.
    functions: Vec<(String, String)>,
    numbers: HashMap<(Vec<u8>, Vec<u8>), u32>,
    processes: HashMap<Pid, Process>,
}

impl Namer {
    /// Process `pid` has ended, or runs another program.
    pub fn forget(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// What has come since the snapshot that is named. Names are those of `symbolizer`, and those of `made` of code that the process
    /// made. All samples of a process must be told, in their order.
    pub fn tell(
        &mut self,
        sample: Sample,
        wanted: &ActivityRequest,
        symbolizer: &mut dyn Symbolizer,
        made: &Registry,
    ) -> Activity {
        let mut p = self.processes.remove(&sample.pid).unwrap_or_default();
        p.modules.extend(sample.modules);
        if !sample.pieces.is_empty() {
            self.name(&mut p, &sample.pieces, symbolizer, &Made::of(made, sample.pid));
        }
        let width = sample.events.len();
        let mut costs = vec![0i128; self.functions.len() * width];
        let mut add = |function: u32, costs_of: &[u64], n: i128| {
            let sums = costs[function as usize * width..][..width].iter_mut();
            sums.zip(costs_of).for_each(|(sum, cost)| *sum += n * i128::from(*cost));
        };
        for (piece, n) in sample.executed {
            let n = n.cast_signed().into();
            p.pieces[piece as usize].iter().for_each(|(function, costs)| add(*function, costs, n));
        }
        for (piece, costs) in sample.found {
            p.pieces[piece as usize].iter().for_each(|(function, _)| add(*function, &costs, 1));
        }
        self.last += 1;
        let now = Snapshot {
            number: self.last,
            at: sample.at,
            costs: costs.into_iter().map(settled).collect(),
            threads: sample.threads.iter().map(|t| (t.id, t.instructions)).collect(),
        };
        let before = p.snapshots.iter().find(|s| s.number == wanted.since);
        let activity = self.difference(&now, before, wanted, (sample.events, sample.began, sample.threads));
        p.snapshots.push_back(now);
        if p.snapshots.len() > KEPT {
            p.snapshots.pop_front();
        }
        self.processes.insert(sample.pid, p);
        activity
    }

    fn difference(
        &self,
        now: &Snapshot,
        before: Option<&Snapshot>,
        wanted: &ActivityRequest,
        (events, began, threads): (Events, Instant, Vec<ActiveThread>),
    ) -> Activity {
        let width = events.len();
        let names = events.names();
        let by = names.iter().position(|name| *name == wanted.by).unwrap_or(0);
        let since = |now: u64, before: u64| if now < before { now } else { now - before };
        let mut functions: Vec<(usize, Vec<u64>)> = Vec::new();
        let (mut total, mut known) = (vec![0u64; width], 0);
        for (number, costs) in now.costs.chunks_exact(width).enumerate() {
            let (name, file) = &self.functions[number];
            let fits = name.contains(&wanted.text) || file.contains(&wanted.text);
            known += u64::from(fits && costs.iter().any(|n| *n > 0));
            let old = before.and_then(|s| s.costs.get(number * width..(number + 1) * width));
            let cost: Vec<u64> = match old {
                Some(old) => costs.iter().zip(old).map(|(now, before)| since(*now, *before)).collect(),
                None => costs.to_vec(),
            };
            total.iter_mut().zip(&cost).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
            if fits && cost.iter().any(|n| *n > 0) {
                functions.push((number, cost));
            }
        }
        functions.sort_by(|(a, a_cost), (b, b_cost)| {
            let order = |cost: &[u64]| std::cmp::Reverse((cost[by], cost[0]));
            order(a_cost).cmp(&order(b_cost)).then_with(|| self.functions[*a].cmp(&self.functions[*b]))
        });
        functions.truncate(wanted.limit);
        let old = |id: u64| before.and_then(|s| s.threads.get(&id).copied()).unwrap_or(0);
        let lately = |t: ActiveThread| ActiveThread { instructions: since(t.instructions, old(t.id)), ..t };
        Activity {
            snapshot: now.number,
            took: 0,
            micros: now.at.saturating_duration_since(before.map_or(began, |s| s.at)).as_micros() as u64,
            events: names.into_iter().map(str::to_owned).collect(),
            total,
            known,
            threads: threads.into_iter().map(lately).collect(),
            functions: functions
                .into_iter()
                .map(|(number, cost)| {
                    let (name, file) = self.functions[number].clone();
                    ActiveFunction { name, file, cost }
                })
                .collect(),
        }
    }

    /// Finds out which functions new pieces belong to.
    fn name(&mut self, p: &mut Process, pieces: &[Vec<Instruction>], symbolizer: &mut dyn Symbolizer, made: &Made<'_>) {
        let first = p.pieces.len();
        p.pieces.resize(first + pieces.len(), Vec::new());
        let mut by_module: BTreeMap<u32, Vec<(u64, usize, &Instruction)>> = BTreeMap::new();
        for (piece, one) in (first..).zip(pieces).flat_map(|(piece, all)| all.iter().map(move |one| (piece, one))) {
            let module = p.modules.get(one.module as usize);
            if module.is_some_and(|m| made.any() && m.is_made()) {
                made.tell(one.addr, one.made, |place| {
                    let function = self.number(place);
                    add_to(&mut p.pieces[piece], function, &one.costs);
                });
            } else {
                by_module.entry(one.module).or_default().push((offset_of(module, one.addr), piece, one));
            }
        }
        for (module, mut instructions) in by_module {
            instructions.sort_by_key(|(offset, ..)| *offset);
            let mut offsets: Vec<u64> = instructions.iter().map(|(offset, ..)| *offset).collect();
            offsets.dedup();
            let mut functions = vec![None; offsets.len()];
            symbolizer.places(code_of(p.modules.get(module as usize)), &offsets, &mut |range, place| {
                let function = self.number(place);
                functions.get_mut(range).into_iter().flatten().for_each(|at| *at = Some(function));
            });
            let unknown = self.number(Place::UNKNOWN);
            for (offset, piece, one) in instructions {
                let at = offsets.binary_search(&offset).ok().and_then(|at| functions[at]);
                add_to(&mut p.pieces[piece], at.unwrap_or(unknown), &one.costs);
            }
        }
    }

    fn number(&mut self, place: Place<'_>) -> u32 {
        let next = self.functions.len() as u32;
        let number = *self.numbers.entry((place.function.to_vec(), place.file.to_vec())).or_insert(next);
        if number == next {
            let text = |name: &[u8]| String::from_utf8_lossy(name).replace(['\t', '\n', '\r'], " ");
            self.functions.push((text(place.function), text(place.file)));
        }
        number
    }
}

fn add_to(piece: &mut Vec<(u32, Vec<u64>)>, function: u32, costs: &[u64]) {
    match piece.iter_mut().find(|(f, _)| *f == function) {
        Some((_, sums)) => sums.iter_mut().zip(costs).for_each(|(sum, n)| *sum += n),
        None => piece.push((function, costs.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::events::Caches;
    use grind_analysis::counts::EventCounts;
    use grind_names::symbolizer::Code;
    use grind_session::ThreadTally;
    use std::ops::Range;

    /// Every 16 bytes are a function.
    struct Sixteen(usize);

    impl Symbolizer for Sixteen {
        fn places(&mut self, _: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
            self.0 += offsets.len();
            for (at, offset) in offsets.iter().enumerate() {
                let function = format!("f{}", offset / 16);
                tell(at..at + 1, Place { file: b"a.c", function: function.as_bytes(), line: 1 });
            }
        }
    }

    const EVENTS: Events = Events {
        caches: Caches::Two,
        branch: false,
        tlbs: cg_format::events::Tlbs::None,
        contexts: false,
        allocations: false,
    };

    /// Stretches of two instructions of 4 bytes, with their counts, what was found, and what a thread has executed.
    fn sample(of: &mut Gathering, stretches: &[(u64, u64)], misses: u64, thread: u64) -> Sample {
        let modules = [Module {
            path: None,
            file: None,
            image: Some([0u8; 4].as_slice().into()),
            start: GuestAddr(0x1000),
            end: GuestAddr(0x2000),
            offset: 0,
        }];
        let lengths = [4, 4];
        let counts =
            Counts::of_stretches(stretches.iter().map(|&(offset, n)| (0, GuestAddr(0x1000 + offset), &lengths[..], n)));
        let threads = [ThreadTally { tid: Tid(77), instructions: thread }];
        let report = ProcessReport {
            pid: Pid(1),
            parent: None,
            exe: "/bin/x".into(),
            args: Vec::new(),
            exit: None,
            modules: &modules,
            counts: &counts,
            contexts: &[],
            counting: true,
            threads: &threads,
        };
        let counts = EventCounts { dlmr: misses, d1mr: misses, ..EventCounts::default() };
        let found = [Finding { module: 0, addr: GuestAddr(0x1014), context: 0, counts }];
        of.sample(&report, (EVENTS, Modified::Read), &found)
    }

    #[test]
    fn what_has_come_since_a_snapshot_is_told_by_function() {
        let mut gathering = Gathering::new(Instant::now());
        let (mut namer, mut names, made) = (Namer::default(), Sixteen(0), Registry::default());
        let mut tell = |sample, wanted: &ActivityRequest, names: &mut Sixteen| namer.tell(sample, wanted, names, &made);
        // The second stretch lies in two functions.
        let first = tell(sample(&mut gathering, &[(0, 10), (12, 3)], 5, 26), &ActivityRequest::default(), &mut names);
        let costs = |a: &Activity| -> Vec<(String, u64, u64)> {
            let dlmr = a.events.iter().position(|e| e == "DLmr").unwrap();
            a.functions.iter().map(|f| (f.name.clone(), f.cost[0], f.cost[dlmr])).collect()
        };
        let row = |name: &str, ir, dlmr| (name.to_owned(), ir, dlmr);
        assert_eq!(costs(&first), [row("f0", 23, 0), row("f1", 3, 5)]);
        assert_eq!((first.total[0], first.known, first.threads[0].instructions), (26, 2, 26));
        let asked = names.0;
        let since = ActivityRequest { since: first.snapshot, ..ActivityRequest::default() };
        let second = tell(sample(&mut gathering, &[(0, 11), (12, 3)], 9, 28), &since, &mut names);
        assert_eq!(costs(&second), [row("f0", 2, 0), row("f1", 0, 4)]);
        assert_eq!((second.total[0], second.threads[0].instructions), (2, 2));
        assert_eq!(names.0, asked, "names are asked for once");
        // By another event, so many, and those that fit.
        let by = |by: &str, limit, text: &str| ActivityRequest {
            since: first.snapshot,
            by: by.into(),
            limit,
            text: text.into(),
        };
        let third = tell(sample(&mut gathering, &[(0, 11), (12, 4)], 9, 30), &by("DLmr", 1, ""), &mut names);
        assert_eq!(costs(&third), [row("f1", 1, 4)]);
        let fourth = tell(sample(&mut gathering, &[(0, 11), (12, 4)], 9, 30), &by("Ir", 9, "0"), &mut names);
        assert_eq!((costs(&fourth), fourth.known), (vec![row("f0", 3, 0)], 1));
        // Counts were collected meanwhile; one that is read at a bad moment is none.
        let since = ActivityRequest { since: fourth.snapshot, ..ActivityRequest::default() };
        let fifth = tell(sample(&mut gathering, &[(0, 2), (12, u64::MAX)], 9, 4), &since, &mut names);
        assert_eq!(costs(&fifth), [row("f0", 3, 0)]);
        assert_eq!(fifth.threads[0].instructions, 4);
    }
}
