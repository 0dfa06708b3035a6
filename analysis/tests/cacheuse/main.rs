//! Inclusive costs of cache use on recorded traces of a real program: calls, recursion, threads, signal handlers that are
//! interrupted and jumped out of, longjmp, fork, dumps, instrumentation and collection switched off and on. The recorder and a
//! twin that remembers all active calls for each line hear the same trace; to the last unit they must find the same.
//!
//! All in one test: the engine waits for every child of the process that it is in, so nothing may run beside it.

mod twin;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use grind_isa::cpuid::CpuModel;
use grind_names::opened::Opened;
use grind_session::{Beside, Exit, Instrumentation, Notice, OwnCode, ProcessReport, Program, Session, Settings};
use grind_trace::{Block, CallTrace, EveryAccess, FirstLevel, Handler, Sink, Site, SpaceId, Special, TraceSettings};
use grind_types::{Module, Pid, Query, Tid};

use cg_format::callgrind::{Site as Place, laws, read_profile};
use cg_sim::{Geometries, Geometry};
use grind_analysis::callgrind::dump_service::DumpService;
use grind_analysis::callgrind::dumps::About;
use grind_analysis::callgrind::settings::{CacheUse, Change, Settings as ControlRequests};
use grind_analysis::callgrind::sink::Recorder;
use grind_names::boundaries::Boundaries;
use twin::{Costs, Found, Twin};

struct Driver {
    dump_service: DumpService,
    boundaries: Boundaries,
    dir: PathBuf,
}

impl Session for Driver {
    fn follow_exec(&mut self, _: Pid, _: &Path, _: &[OsString]) -> bool {
        false
    }
    fn image_started(&mut self, pid: Pid, _: Option<Pid>, _: &Path, args: &[OsString]) {
        self.dump_service.begin(pid, args, self.dir.join(format!("out.{pid}")));
    }
    fn forked(&mut self, _: Pid, child: Pid) {
        self.dump_service.begin(child, &[], self.dir.join(format!("out.{child}")));
    }
    fn process_ends(&mut self, _: &ProcessReport<'_>) {}
    fn boundaries(&mut self, module: &Module) -> Vec<u64> {
        self.boundaries.of(module)
    }
    fn client_print(&mut self, _: Pid, _: &[u8]) {}
    fn redundant_instrumentation(&mut self, _: Pid, _: Instrumentation) {}
    fn tool_name(&self) -> &str {
        "callgrind"
    }
    fn notice(&mut self, _: Pid, notice: Notice) {
        panic!("{notice:?}");
    }
}

/// Two sinks that hear the same.
struct Both(Recorder, Twin);

macro_rules! both {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => {
        $(fn $name(&mut self, $($arg: $kind),*) {
            self.0.$name($($arg),*);
            self.1.$name($($arg),*);
        })*
    };
}

impl Sink for Both {
    both! {
        sites(space: SpaceId, sites: &[Site], specials: &[Special]);
        blocks(space: SpaceId, blocks: &[Block]);
        mapped(space: SpaceId, modules: &[Module]);
        space_copied(from: SpaceId, to: SpaceId);
        image(pid: Pid, space: SpaceId);
        moved(pid: Pid, space: SpaceId);
        forked(parent: Pid, tid: Tid, child: Pid);
        records(pid: Pid, tid: Tid, words: &[u32]);
        asked(pid: Pid, tid: Option<Tid>, ask: &Query);
        corrected(pid: Pid, tid: Tid, block: u32, counted: usize, executed: usize);
        signal_begins(pid: Pid, tid: Tid, handler: &Handler);
        signal_ends(pid: Pid, tid: Tid);
        recording(pid: Pid, tid: Tid, on: bool);
        thread_ended(pid: Pid, tid: Tid);
        process_ended(pid: Pid);
    }
}

/// What the parts of process `pid` in `dir` tell, all together; every part keeps the rule that what a function that nobody
/// calls twice at a time costs is its own costs and those of its calls.
fn written(dir: &Path, pid: Pid) -> Found {
    let mut found = Found::default();
    let name = format!("out.{pid}");
    let mut parts = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        if file != name && !file.starts_with(&format!("{name}.")) {
            continue;
        }
        parts += 1;
        let text = std::fs::read(&path).unwrap();
        let broken = laws::breaches(&text[..], &file).unwrap_or_else(|e| panic!("{e}"));
        assert!(broken.is_empty(), "{file}: {}", broken[0]);
        let profile = read_profile(&text[..], &file).unwrap_or_else(|e| panic!("{e}"));
        for part in &profile.parts {
            let first = part.header.events.iter().position(|e| e == "AcCost1").unwrap();
            let costs = |row: &[i64]| -> Costs { row[first..first + 4].try_into().unwrap() };
            // By function: its own costs and calls, and what it was called for.
            let mut sums: HashMap<_, [Costs; 2]> = HashMap::new();
            for body in part.bodies() {
                for entry in &body.entries {
                    match &entry.site {
                        Place::Row { costs: at } => {
                            let costs = costs(body.costs(*at));
                            twin::add(found.own.entry(entry.at.place.addr).or_default(), costs);
                            twin::add(&mut sums.entry(body.function).or_default()[0], costs);
                        }
                        Place::Call { call, costs: at } => {
                            let costs = costs(body.costs(*at));
                            let arc = (entry.at.place.addr, call.target.addr);
                            twin::add(found.arcs.entry(arc).or_default(), costs);
                            twin::add(&mut sums.entry(body.function).or_default()[0], costs);
                            twin::add(&mut sums.entry(call.callee).or_default()[1], costs);
                        }
                        Place::Jump(_) => {}
                    }
                }
            }
            for (function, [has, was_called_for]) in sums {
                let name = String::from_utf8_lossy(profile.names.function_name(function)).into_owned();
                // These are roots, or run below them: handlers, threads, where instrumentation begins.
                let root = [
                    "_start",
                    "handler",
                    "main",
                    "clone",
                    "(below main)",
                    "begun_here",
                    "start_thread",
                    "restore",
                    // What returns from handlers has no symbol.
                    "0x",
                ];
                if !root.iter().any(|r| name.contains(r)) {
                    assert_eq!(has, was_called_for, "{file}: {name}");
                }
            }
        }
    }
    assert!(parts > 0, "no profile of {pid}");
    found
}

fn differences<K: std::fmt::LowerHex + std::hash::Hash + Eq + Ord + Copy>(
    expected: &HashMap<K, Costs>,
    got: &HashMap<K, Costs>,
    show: impl Fn(K) -> String,
) -> Vec<String> {
    let mut keys: Vec<K> = expected.keys().chain(got.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let of = |m: &HashMap<K, Costs>, k: &K| m.get(k).copied().unwrap_or_default();
    let differ = keys.iter().filter(|k| of(expected, k) != of(got, k));
    differ.map(|k| format!("{}: {:?} expected, {:?} got", show(*k), of(expected, k), of(got, k))).collect()
}

/// Runs the program with these words and control requests, and compares.
fn check(name: &str, program: &Path, words: &[&str], mut control_requests: ControlRequests) {
    let dir = tempfile::tempdir().unwrap();
    let shape = |size, ways, line| Geometry::parse(&format!("{size},{ways},{line}")).unwrap();
    let geometries = Geometries { i1: shape(1024, 2, 64), d1: shape(2048, 4, 64), ll: shape(16384, 4, 64) };
    let shapes = [(8, 2, 64), (8, 4, 64), (64, 4, 64)];
    (control_requests.cache_use, control_requests.dump_instr) = (CacheUse::Yes, true);
    let events = control_requests.events(cg_format::events::Caches::Two, false);
    let about = About {
        creator: "test".into(),
        events,
        caches: Vec::new(),
        estimate: None,
        settings: control_requests.clone(),
        spare: std::env::temp_dir(),
    };
    let dump_service = DumpService::new(about);
    let opened = Opened::new(grind_symbols::Options::default());
    let recorder = Recorder::new(
        control_requests.clone(),
        opened.clone(),
        events,
        (Some(&geometries), None),
        dump_service.clone(),
    );
    let twin = Twin::new(control_requests, shapes);
    let expected = twin.found.clone();
    let every = EveryAccess { code_line: 64, data_line: 64, widest: 64 };
    let trace = TraceSettings { every: Some(every), calls: Some(CallTrace::default()), ..TraceSettings::default() };
    let driver = Driver { dump_service, boundaries: Boundaries::new(opened), dir: dir.path().to_owned() };
    run(program, words, trace, driver, Both(recorder, twin));

    let expected = std::mem::take(&mut *expected.lock().unwrap());
    assert_eq!(expected.len(), 2, "{name}: it forks once");
    for (pid, expected) in expected {
        let got = written(dir.path(), pid);
        let mut wrong = differences(&expected.own, &got.own, |k| format!("{k:#x}"));
        let calls: HashMap<(u64, u64), Costs> = got.arcs;
        let mut keys: Vec<(u64, u64)> = expected.arcs.keys().chain(calls.keys()).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let of = |m: &HashMap<(u64, u64), Costs>| m.get(&key).copied().unwrap_or_default();
            if of(&expected.arcs) != of(&calls) {
                wrong.push(format!("call {key:x?}: {:?} expected, {:?} got", of(&expected.arcs), of(&calls)));
            }
        }
        let shown = &wrong[..wrong.len().min(30)];
        assert!(wrong.is_empty(), "{name}, process {pid}: {} differ:\n{}", wrong.len(), shown.join("\n"));
        let sum = |costs: &HashMap<(u64, u64), Costs>| costs.values().map(|c| c[0]).sum::<i64>();
        assert!(expected.own.len() > 50 && sum(&expected.arcs) > 100_000, "{name}: {}", expected.own.len());
    }
    println!("{name}: ok");
}

/// Runs the program, which must end well.
fn run(program: &Path, words: &[&str], trace: TraceSettings, mut driver: Driver, sink: impl Sink + 'static) {
    let settings = Settings {
        cpu: CpuModel::Baseline,
        count_at_start: grind_session::AtStart::Counting,
        code_limit: u64::MAX,
        pairs_from: u64::MAX,
        hot_after: 0,
        trace,
        contexts: false,
        beside: Beside::default(),
        programs_follow: true,
        own_code: OwnCode::default(),
        look_every: None,
    };
    let args = std::iter::once(program.as_os_str().to_owned()).chain(words.iter().map(Into::into)).collect();
    let program = Program { path: program.to_owned(), args, env: Vec::new() };
    let exit = grind_engine::run_traced(&program, &settings, &mut driver, Box::new(sink));
    assert_eq!(exit.unwrap_or_else(|e| panic!("{words:?}: {e}")), Exit::Code(0));
}

/// What all files of a run of the program say but for the numbers of processes, in order: what each instruction and each call
/// costs. (What is told decides where blocks end, so how many there are. A call that is in several of them is one of each, and
/// left out where it cost nothing.) `kept`: how lines are used is kept by the program itself, and only misses are told.
fn files(program: &Path, words: &[&str], mut control_requests: ControlRequests, d1: &str, kept: bool) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let shape = |text: &str| Geometry::parse(text).unwrap();
    let line = d1.rsplit(',').next().unwrap();
    let geometries =
        Geometries { i1: shape(&format!("1024,2,{line}")), d1: shape(d1), ll: shape(&format!("16384,4,{line}")) };
    (control_requests.cache_use, control_requests.dump_instr, control_requests.uses_kept) = (CacheUse::Yes, true, kept);
    let events = control_requests.events(cg_format::events::Caches::Two, false);
    let spare = std::env::temp_dir();
    let about = About {
        creator: "test".into(),
        events,
        caches: Vec::new(),
        estimate: None,
        settings: control_requests.clone(),
        spare,
    };
    let dump_service = DumpService::new(about);
    let opened = Opened::new(grind_symbols::Options::default());
    let recorder =
        Recorder::new(control_requests, opened.clone(), events, (Some(&geometries), None), dump_service.clone());
    let Geometries { i1, d1, .. } = geometries;
    let [code, data] =
        [i1, d1].map(|g| FirstLevel { line: g.line(), sets: g.sets(), ways: g.assoc(), widest: g.line() });
    if kept && !data.keeps_uses() {
        eprintln!("uses of lines are not kept here");
    }
    let every = EveryAccess { code_line: i1.line(), data_line: d1.line(), widest: d1.line() };
    let trace = TraceSettings {
        every: Some(every).filter(|_| !kept),
        fetches: Some(code).filter(|_| kept),
        accesses: Some(data).filter(|_| kept),
        uses: kept,
        calls: Some(CallTrace::default()),
        ..TraceSettings::default()
    };
    let driver = Driver { dump_service, boundaries: Boundaries::new(opened), dir: dir.path().to_owned() };
    run(program, words, trace, driver, recorder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let header = text.lines().filter(|l| l.starts_with("summary: ") || l.starts_with("totals: "));
            let profile = read_profile(text.as_bytes(), "").unwrap_or_else(|e| panic!("{e}"));
            let name = |function| String::from_utf8_lossy(profile.names.function_name(function)).into_owned();
            let mut sums: BTreeMap<String, Vec<i64>> = BTreeMap::new();
            for body in profile.parts.iter().flat_map(|part| part.bodies()) {
                for entry in &body.entries {
                    let (to, costs) = match &entry.site {
                        Place::Row { costs } => (String::new(), body.costs(*costs)),
                        Place::Call { call, costs } => {
                            let callee = format!(" calls {} at {:#x}", name(call.callee), call.target.addr);
                            (callee, body.costs(*costs))
                        }
                        Place::Jump(_) => continue,
                    };
                    let key = format!("{} {:#x}{to}:", name(body.function), entry.at.place.addr);
                    let sum = sums.entry(key).or_insert_with(|| vec![0; costs.len()]);
                    sum.iter_mut().zip(costs).for_each(|(sum, n)| *sum += n);
                }
            }
            let rows = sums.into_iter().map(|(key, sum)| format!("{key} {sum:?}"));
            header.map(str::to_owned).chain(rows).collect::<Vec<_>>().join("\n")
        })
        .collect()
}

/// Whether misses are told or everything: the profiles are the same.
fn check_kept(name: &str, program: &Path, words: &[&str], control_requests: &ControlRequests) {
    for d1 in ["2048,4,64", "1024,1,64", "32768,8,64", "2048,4,32"] {
        let [told, kept] = [false, true].map(|kept| files(program, words, control_requests.clone(), d1, kept));
        assert_eq!(told.len(), kept.len(), "{name}, {d1}");
        assert!(told.iter().map(|file| file.lines().count()).sum::<usize>() > 500, "{name}, {d1}");
        for (told, kept) in told.iter().zip(&kept) {
            let differ = told.lines().zip(kept.lines()).filter(|(a, b)| a != b);
            let shown: Vec<String> = differ.take(20).map(|(a, b)| format!("{a}\n    {b}")).collect();
            assert!(told == kept, "{name}, {d1}: told, and kept:\n{}", shown.join("\n"));
        }
    }
    println!("{name}, kept: ok");
}

/// A child that is forked beside another thread has what that has executed and how it has used its lines until then: `touch_lines`
/// reads 8 bytes of each of 16 lines, 50 times if the other thread waits after that, or at least as often if it goes on.
fn check_beside(program: &Path) {
    for (goes_on, kept) in [(false, false), (false, true), (true, false), (true, true)] {
        let words = if goes_on { &["on"][..] } else { &[] };
        let files = files(program, words, ControlRequests::default(), "32768,8,64", kept);
        assert_eq!(files.len(), 2);
        for file in &files {
            let rows = file.lines().filter(|l| l.starts_with("touch_lines ") && !l.contains(" calls "));
            let costs: Vec<[i64; 2]> = rows
                .map(|row| {
                    let numbers = row.rsplit('[').next().unwrap().trim_end_matches(']');
                    let numbers: Vec<i64> = numbers.split(", ").map(|n| n.parse().unwrap()).collect();
                    let [.., ac1, sp1, _, _] = numbers[..] else { panic!("{row}") };
                    [ac1, sp1]
                })
                .collect();
            let fits = |[ac1, sp1]: &[i64; 2]| {
                let most = 16 * (1000 / 50);
                *sp1 == 16 * 56 && if goes_on { *ac1 <= most } else { *ac1 == most }
            };
            assert!(costs.iter().any(fits), "it goes on: {goes_on}, kept: {kept}: {costs:?}");
        }
    }
    println!("forked beside a thread: ok");
}

fn main() {
    if Command::new("gcc").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "gcc is missing");
        eprintln!("skipped: no gcc");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [program, beside] = ["many", "beside"].map(|name| dir.path().join(name));
    let words = "-O1 -g -static -no-pie -pthread -fno-optimize-sibling-calls -fcf-protection=none -I";
    for (source, program) in [("many.c", &program), ("beside.c", &beside)] {
        let built = Command::new("gcc")
            .args(words.split(' '))
            .arg(root.join("../include"))
            .arg("-o")
            .arg(program)
            .arg(root.join("tests/cacheuse").join(source))
            .status();
        assert!(built.unwrap().success());
    }
    check_beside(&beside);
    check_kept("requests", &program, &["requests", "alone"], &ControlRequests::default());
    let mut toggled = ControlRequests::default();
    toggled.add_rule("stage".as_ref(), Change::ToggleCollect);
    check_kept("toggled", &program, &["requests", "alone"], &toggled);
    check("plain", &program, &[], ControlRequests::default());
    check("with requests", &program, &["requests"], ControlRequests::default());
    let rule = |name: &str, change| {
        let mut control_requests = ControlRequests::default();
        control_requests.add_rule(name.as_ref(), change);
        control_requests
    };
    let mut apart = ControlRequests::default();
    apart.separate_callers = 3;
    check("callers apart", &program, &["requests"], apart);
    check("skipped", &program, &["requests"], rule("touch", Change::Skip));
    check("more skipped", &program, &["requests"], rule("o*", Change::Skip));
    check("toggled", &program, &["requests"], rule("stage", Change::ToggleCollect));
}
