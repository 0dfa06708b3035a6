//! Caches and branches simulated with calls, beside Valgrind's Callgrind: every event of every instruction, and of every call
//! with all that it called, is equal, in several geometries and in every kind of simulation.
//!
//! What may differ, and why: the reference does not tell the costs of the block that ends the program; it puts code of its own
//! in place of what returns from signal handlers; a program's header names events that deliberately differ. Blocks that end
//! with a client request belong to the part before it in one tool and to the one after it in the other, so functions that
//! make any are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cg_format::callgrind::{Entry, FunctionId, Names, Part, Site, read_profile};
use grind_tests::build::Source;
use grind_tests::compare::assert_none;
use grind_tests::costs::Costs;
use grind_tests::run::Job;
use grind_tests::simulation::{self, GEOMETRIES, Geometry};
use grind_tests::{laws, run, tools};

/// Values by event.
type Counts = BTreeMap<String, i64>;

/// What is compared of a part. Without events that did not happen.
#[derive(Debug, Default)]
struct Told {
    /// By function and address.
    own: BTreeMap<(String, u64), Counts>,
    /// By caller, address, callee and target: with all that was called, and how often as `calls`.
    arcs: BTreeMap<(String, u64, String, u64), Counts>,
}

fn told(names: &Names, part: &Part) -> Told {
    let text = |id| String::from_utf8_lossy(names.function_name(id)).into_owned();
    let mut told = Told::default();
    let add = |to: &mut Counts, costs: &[i64]| {
        for (event, n) in part.header.events.iter().zip(costs).filter(|(_, n)| **n != 0) {
            *to.entry(event.clone()).or_default() += n;
        }
    };
    for body in part.bodies() {
        let function = text(body.function);
        for entry in &body.entries {
            let at = entry.at.place.addr;
            match &entry.site {
                Site::Row { costs } => {
                    add(told.own.entry((function.clone(), at)).or_default(), body.costs(*costs));
                }
                Site::Call { call, costs } => {
                    let key = (function.clone(), at, text(call.callee), call.target.addr);
                    let known = told.arcs.entry(key).or_default();
                    add(known, body.costs(*costs));
                    *known.entry("calls".into()).or_default() += i64::try_from(call.count).expect("a count");
                }
                Site::Jump(_) => {}
            }
        }
    }
    told.own.retain(|_, counts| !counts.is_empty());
    told
}

/// The parts that `profiler` writes, in order, and the names of the events.
fn parts(profiler: &[String], options: &[String], program: &Path, dir: &Path) -> (Vec<String>, Vec<Told>) {
    let out = dir.join(format!("profile-of-{}", profiler.len()));
    let numbered = |i: usize| PathBuf::from(format!("{}.{i}", out.display()));
    let mut words = profiler.to_vec();
    // Compressed, the reference's numbers of names and distances between positions are not always right.
    let plain = ["-q", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no"];
    words.extend(plain.map(str::to_owned));
    words.push(format!("--callgrind-out-file={}", out.display()));
    words.extend(options.iter().cloned().chain([program.display().to_string()]));
    let output = run::command(&words, dir).output().expect("the profiler runs");
    assert!(out.is_file(), "{words:?}: no profile: {}", String::from_utf8_lossy(&output.stderr));
    let mut files: Vec<_> = (1..).map(numbered).take_while(|p| p.is_file()).collect();
    files.push(out.clone());
    let mut events = Vec::new();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read(&file).expect("a profile");
        std::fs::remove_file(&file).expect("a profile");
        if profiler[0] != "valgrind" {
            laws::check(&text, &format!("{words:?}"));
        }
        let profile = read_profile(&text[..], &file.display().to_string()).unwrap_or_else(|e| panic!("{e}"));
        for part in &profile.parts {
            events.clone_from(&part.header.events);
            found.push(told(&profile.names, part));
        }
    }
    (events, found)
}

fn grind() -> Vec<String> {
    [tools::under_test(), &["--tool=callgrind".to_owned()]].concat()
}

fn reference() -> Vec<String> {
    ["valgrind", "--tool=callgrind", "--vex-guest-chase=no", "--vex-iropt-level=0"].map(str::to_owned).to_vec()
}

/// What to leave out of a comparison.
#[derive(Clone, Copy, Default)]
struct Apart<'a> {
    events: &'a [String],
    /// Their own rows, and arcs from or to them.
    functions: &'a [&'a str],
}

/// Where the two differ, a line for each.
fn differences(expected: &Told, got: &Told, apart: Apart<'_>, last: bool) -> Vec<String> {
    let of = |counts: Option<&Counts>, event: &str| counts.and_then(|c| c.get(event)).copied().unwrap_or(0);
    let differ = |expected: Option<&Counts>, got: Option<&Counts>| -> Vec<(String, i64, i64)> {
        let events: BTreeSet<&String> = [expected, got].into_iter().flatten().flat_map(BTreeMap::keys).collect();
        let compared = events.into_iter().filter(|e| !apart.events.contains(e));
        compared
            .map(|e| (e.clone(), of(expected, e), of(got, e)))
            .filter(|(_, expected, got)| expected != got)
            .collect()
    };
    let named = |name: &str| apart.functions.contains(&name.split('\'').next().unwrap_or(name));
    let mut found = Vec::new();
    // The block that ends the program: one execution more of some instructions of one function.
    let mut lost = Counts::new();
    let mut losers = BTreeSet::new();
    let rows: BTreeSet<_> = expected.own.keys().chain(got.own.keys()).filter(|(f, _)| !named(f)).collect();
    for key in rows {
        let differing = differ(expected.own.get(key), got.own.get(key));
        let executed_more = differing.iter().any(|(event, expected, got)| event == "Ir" && *got == expected + 1);
        if last && executed_more && differing.iter().all(|(_, expected, got)| got > expected) {
            losers.insert(key.0.clone());
            for (event, expected, got) in differing {
                *lost.entry(event).or_default() += got - expected;
            }
        } else if !differing.is_empty() {
            found.push(format!("{} at {:#x}: {differing:?} (event, expected, got)", key.0, key.1));
        }
    }
    if losers.len() > 1 || lost.get("Ir").is_some_and(|n| *n > 16) {
        found.push(format!("more than one block was lost: {lost:?} in {losers:?}"));
    }
    let arcs: BTreeSet<_> = expected.arcs.keys().chain(got.arcs.keys()).collect();
    for key in arcs.into_iter().filter(|(from, _, to, _)| !named(from) && !named(to)) {
        let mut differing = differ(expected.arcs.get(key), got.arcs.get(key));
        // Without caches, the reference's inclusive costs lack that block, too.
        let of_lost = |(event, e, g): &(String, i64, i64)| lost.get(event).is_some_and(|n| *g == e + n);
        if differing.iter().all(of_lost) {
            differing.clear();
        }
        if !differing.is_empty() {
            found.push(format!("{} at {:#x} calls {}: {differing:?}", key.0, key.1, key.2));
        }
    }
    found
}

/// Both tools tell the same of a program.
fn same(source: &Source, options: &[&str], geometry: Option<&Geometry>, apart: &[&str]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), true);
    let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
    let options = [options, geometry.map(Geometry::options).unwrap_or_default()].concat();
    let (events, expected) = parts(&reference(), &options, &program, dir.path());
    let (ours, got) = parts(&grind(), &options, &program, dir.path());
    assert_eq!(ours, events, "{options:?}: events");
    assert_eq!(got.len(), expected.len(), "{options:?}: number of parts");
    let mut differs = source.words("differs");
    if differs.iter().any(|event| event == "DLmw") {
        differs.extend(["ILdmr", "DLdmr", "DLdmw"].map(str::to_owned));
    }
    let apart = Apart { events: &differs, functions: apart };
    assert!(expected.iter().all(|part| !part.own.is_empty()), "{options:?}: the reference has counted nothing");
    let n = got.len();
    for (i, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_none(&format!("{options:?}, part {}", i + 1), &differences(expected, got, apart, i + 1 == n));
    }
}

/// Programs of `cache/` whose rows the reference tells rightly. Of those with masks it adds the accesses to other
/// instructions' counts.
fn comparable(name: &str) -> bool {
    let source = Source::open("cache", name);
    source.runs_here() && simulation::has_reference(&source) && !name.starts_with("masked")
}

/// Programs of which this part is not about calls: all events of each instruction.
fn all_programs(options: &[&str], geometries: impl Fn(&Source) -> Vec<Geometry>) {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    for name in simulation::programs().iter().filter(|name| comparable(name)) {
        let source = Source::open("cache", name);
        for geometry in geometries(&source) {
            same(&source, options, Some(&geometry), &[]);
        }
    }
}

#[test]
fn instructions() {
    all_programs(&["--cache-sim=yes", "--branch-sim=yes"], |source| {
        let all = simulation::geometries(source);
        all.into_iter().take(2).collect()
    });
}

#[test]
fn instructions_with_unlike_lines() {
    all_programs(&["--cache-sim=yes"], |source| simulation::geometries(source).into_iter().skip(2).collect());
}

/// The smallest caches that hold all of a program's accesses: everything else is small.
fn small(source: &Source) -> Vec<Geometry> {
    simulation::geometries(source).into_iter().min_by_key(|g| g.ll.0).into_iter().collect()
}

#[test]
fn a_last_level_that_is_written_back() {
    all_programs(&["--simulate-wb=yes"], small);
}

#[test]
fn a_prefetcher() {
    all_programs(&["--simulate-hwpref=yes"], small);
}

/// A program of `calls/`, in these ways.
fn calls(name: &str, ways: &[&[&str]], apart: &[&str]) {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    let source = Source::open("calls", name);
    for options in ways {
        // Caches come with the geometry: it is given only where they are wanted.
        let geometry = (*options != ["--branch-sim=yes"]).then_some(&GEOMETRIES[1]);
        same(&source, options, geometry, apart);
    }
}

const BOTH: [&str; 2] = ["--cache-sim=yes", "--branch-sim=yes"];

#[test]
fn calls_of_every_kind() {
    let ways: [&[&str]; 5] =
        [&BOTH, &["--cache-sim=yes"], &["--branch-sim=yes"], &["--simulate-wb=yes"], &["--simulate-hwpref=yes"]];
    calls("tree", &ways, &[]);
    calls("strings", &ways, &[]);
}

#[test]
fn calls_in_several_geometries() {
    if tools::have(&["valgrind", "gcc"]) {
        for geometry in &GEOMETRIES {
            same(&Source::open("calls", "tree"), &BOTH, Some(geometry), &[]);
        }
    }
}

#[test]
fn calls_apart_and_skipped() {
    let [cache, branch] = BOTH;
    let ways: [&[&str]; 4] = [
        &[cache, branch, "--separate-callers=2", "--separate-recs=3"],
        &[cache, branch, "--fn-skip=touch", "--fn-skip=leaf"],
        &[cache, branch, "--separate-recs=1"],
        &["--simulate-wb=yes", "--fn-skip=fib", "--collect-bus=yes"],
    ];
    calls("tree", &ways, &[]);
}

#[test]
fn only_what_is_collected_counts_and_caches_go_on() {
    let [cache, branch] = BOTH;
    let ways: [&[&str]; 3] = [
        &[cache, branch, "--toggle-collect=fib"],
        &[cache, branch, "--toggle-collect=touch", "--toggle-collect=even"],
        &["--simulate-wb=yes", "--toggle-collect=ping"],
    ];
    calls("tree", &ways, &[]);
}

#[test]
fn dumps_and_zeroes() {
    let [cache, branch] = BOTH;
    let ways: [&[&str]; 3] = [
        &[cache, branch, "--dump-before=even", "--dump-after=locked"],
        &[cache, branch, "--zero-before=catcher"],
        &["--simulate-wb=yes", "--dump-after=pong"],
    ];
    calls("tree", &ways, &[]);
}

/// What the handlers' return fetches is the reference's own code there, which is elsewhere: caches that hold everything.
#[test]
fn signal_handlers() {
    if tools::have(&["valgrind", "gcc"]) {
        for options in [&BOTH[..], &["--simulate-wb=yes"]] {
            same(&Source::open("calls", "signals"), options, Some(&GEOMETRIES[0]), &["restore"]);
        }
    }
}

#[test]
fn client_requests() {
    calls("requests", &[&BOTH, &["--simulate-wb=yes"], &["--branch-sim=yes"]], &["run", "enter", "(below main)"]);
}

/// Events whose sums the two tools of grind agree on: they book a modification differently, and Bc is counted with Bcm.
const KINDS: [&[&str]; 9] = [
    &["Ir"],
    &["I1mr"],
    &["ILmr"],
    &["Dr", "Dw"],
    &["D1mr", "D1mw"],
    &["DLmr", "DLmw"],
    &["Bc", "Bcm"],
    &["Bi"],
    &["Bim"],
];

/// What the two tools of grind count is the same, but for the kind of a modification; also of programs that the reference
/// cannot run, or tells wrongly.
#[test]
fn the_other_tool_counts_the_same() {
    if !tools::have(&["gcc"]) {
        return;
    }
    for name in simulation::programs() {
        let source = Source::open("cache", &name);
        if !source.runs_here() {
            continue;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = source.build(dir.path(), true);
        let job = Job::new([program.display().to_string()], dir.path());
        for geometry in simulation::geometries(&source).iter().take(2) {
            let (_, costs) = simulation::simulate(tools::under_test(), &job, geometry);
            let sums: BTreeMap<&str, u64> = simulation::EVENTS.into_iter().zip(costs.sums()).collect();
            let options = [BOTH.map(str::to_owned).to_vec(), geometry.options()].concat();
            let (_, got) = parts(&grind(), &options, &program, dir.path());
            let sum = |events: &[&str]| -> (u64, i64) {
                let ours = got.iter().flat_map(|part| part.own.values());
                let of = |counts: &Counts| events.iter().filter_map(|e| counts.get(*e)).sum::<i64>();
                (events.iter().map(|e| sums[e]).sum(), ours.map(of).sum())
            };
            for events in KINDS {
                let (cachegrind, callgrind) = sum(events);
                assert_eq!(i64::try_from(cachegrind), Ok(callgrind), "{name} {geometry:?}: {events:?}");
            }
        }
    }
}

/// A dynamic program, bound before it begins: what calls outside the loader cost with all that they called. Instructions,
/// accesses and indirect jumps must be equal. Conditional branches may differ by those that the reference has for
/// repetitions, 1 %; misses and mispredictions by what lies elsewhere in memory and by what ran before, 6 % or 20.
#[test]
fn dynamic_program() {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    const AROUND: &[&str] = &[
        "(below main)",
        "__libc_start",
        "call_init",
        "exit",
        "__run_exit_handlers",
        "__cxa_finalize",
        "_dl_",
        "???",
        "0x",
    ];
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = Source::open("dynamic", "c_program").build(dir.path(), false);
    let inclusive = |profiler: Vec<String>| -> BTreeMap<(String, String), Counts> {
        let out = dir.path().join("profile");
        let mut words = profiler;
        words.extend(["-q".to_owned(), format!("--callgrind-out-file={}", out.display())]);
        words.extend(BOTH.map(str::to_owned).into_iter().chain(GEOMETRIES[0].options()));
        words.push(program.display().to_string());
        let output = run::command(&words, dir.path()).env("LD_BIND_NOW", "1").output().expect("the profiler runs");
        assert!(out.is_file(), "no profile: {}", String::from_utf8_lossy(&output.stderr));
        let profile = read_profile(&std::fs::read(&out).expect("a profile")[..], "profile").expect("a profile");
        let part = &profile.parts[0];
        let callees = |entry: &Entry| if let Site::Call { call, .. } = entry.site { Some(call.callee) } else { None };
        let functions = part.bodies().iter().flat_map(|b| b.entries.iter().filter_map(callees).chain([b.function]));
        let of_loader = |id: &FunctionId| {
            let object = profile.names.object_name(profile.names.get(*id).object);
            String::from_utf8_lossy(object).contains("/ld-")
        };
        let name = |id| String::from_utf8_lossy(profile.names.function_name(id)).into_owned();
        let loader: BTreeSet<String> = functions.filter(of_loader).map(name).collect();
        let mut found: BTreeMap<(String, String), Counts> = BTreeMap::new();
        for ((from, _, to, _), counts) in told(&profile.names, part).arcs {
            let around = |name: &String| loader.contains(name) || AROUND.iter().any(|a| name.starts_with(a));
            if !around(&from) && !around(&to) {
                let known = found.entry((from, to)).or_default();
                counts.into_iter().for_each(|(event, n)| *known.entry(event).or_default() += n);
            }
        }
        found
    };
    let (expected, got) = (inclusive(reference()), inclusive(grind()));
    let mut compared = 0;
    let mut found = Vec::new();
    for (arc, expected) in &expected {
        let Some(got) = got.get(arc).filter(|got| got["calls"] == expected["calls"] && got["Ir"] == expected["Ir"])
        else {
            continue;
        };
        compared += 1;
        for event in ["Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw", "Bc", "Bcm", "Bi", "Bim"] {
            let [e, g] = [expected, got].map(|counts| counts.get(event).copied().unwrap_or(0));
            let most = match event {
                "Dr" | "Dw" | "Bi" => 0,
                "Bc" => 100.max(e / 100),
                _ => 20.max(e * 6 / 100),
            };
            if (e - g).abs() > most {
                found.push(format!("{arc:?}: {event} {e} expected, {g} got"));
            }
        }
    }
    let main = expected.iter().filter(|((from, _), _)| from == "main").count();
    assert!(main > 3 && compared > 50, "only {compared} arcs to judge by, {main} of main");
    let of_main = got.keys().filter(|(from, _)| from == "main").count();
    assert_eq!(of_main, main, "calls of main");
    assert_none("dynamic program", &found);
}

/// Forked processes go on with copies of caches and predictors; signals and code that changes disturb nothing: the same
/// sums for each process with either tool, and with every access told.
#[test]
fn processes_count_the_same_with_the_other_tool() {
    if !tools::have(&["gcc"]) {
        return;
    }
    for name in ["c_fork", "c_signals", "c_mapped_code"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = Source::open("programs", name).build(dir.path(), true);
        let sums = |tool: &[&str], prefix: &str| -> Vec<Vec<i128>> {
            let mut words = tools::under_test().to_vec();
            words.extend(["-q"].iter().chain(tool).map(|w| (*w).to_owned()));
            words.extend(BOTH.map(str::to_owned).into_iter().chain(GEOMETRIES[1].options()));
            words.push(program.display().to_string());
            assert!(run::command(&words, dir.path()).output().expect("grind runs").status.success());
            let mut found = Vec::new();
            for file in std::fs::read_dir(dir.path()).expect("a folder").map(|e| e.expect("an entry").path()) {
                if !file.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)) {
                    continue;
                }
                let text = std::fs::read(&file).expect("a profile");
                let sums: BTreeMap<String, i128> = match Costs::parse(&text) {
                    Ok(costs) => costs.events.iter().cloned().zip(costs.sums().into_iter().map(i128::from)).collect(),
                    Err(_) => {
                        let profile = read_profile(&text[..], "profile").expect("a profile");
                        let part = &profile.parts[0];
                        part.header.events.iter().cloned().zip(part.total()).collect()
                    }
                };
                found.push(KINDS.iter().map(|events| events.iter().map(|e| sums[*e]).sum()).collect());
            }
            found.sort();
            found
        };
        let cachegrind = sums(&["--cachegrind-out-file=a.%p"], "a.");
        assert_eq!(cachegrind.len(), if name == "c_fork" { 4 } else { 1 }, "{name}");
        assert_eq!(sums(&["--tool=callgrind", "--callgrind-out-file=b.%p"], "b."), cachegrind, "{name}");
        // In the caches of this program it makes no difference that writes reach the last level.
        let through = sums(&["--tool=callgrind", "--callgrind-out-file=c.%p", "--simulate-wb=yes"], "c.");
        assert_eq!(through, cachegrind, "{name}, every access told");
    }
}
