//! What instructions access, judged by the reference: static programs are single-stepped natively, their accesses resolved
//! from the registers by `engine::events` and simulated by a naive model, and every event of every line compared with
//! Cachegrind's. Emitted code is not involved: if this holds and a whole run differs, the fault is in the emitted checks.
//!
//! A program's header names events that differ deliberately, and why.
#![allow(unsafe_code)] // reading the extended state of a traced process

mod fuzz;
mod model;
mod twin;

use cg_sim::Levels;
use cg_sim::beyond::Inclusion;
use cg_sim::policy::parse_shape;
use cg_sim::prefetch::Prefetch;
use grind_tests::build::Source;
use grind_tests::compare::{assert_none, assert_same};
use grind_tests::run::Job;
use grind_tests::{simulation, tools};

/// Compares one program with the reference in all its geometries.
fn check(name: &str) {
    let source = Source::open("cache", name);
    if !source.runs_here() || !simulation::has_reference(&source) || !tools::have(&["valgrind", "addr2line"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), true);
    let geometries = simulation::geometries(&source);
    let job = Job::new([program.display().to_string()], dir.path());
    let native = job.native();
    assert!(native.status.success(), "{name} itself: {}", native.show());
    let twins = twin::simulate(&program, dir.path(), &geometries).unwrap_or_else(|e| panic!("{e:#}"));
    let events = simulation::common_events(&source);
    for (geometry, twin) in geometries.iter().zip(&twins) {
        let (_, reference) = simulation::simulate(&simulation::reference(), &job, geometry);
        assert_none(&format!("{name} with {geometry:?}"), &reference.differences(twin, &events));
    }
}

/// The same simulation, done by grind as a whole: every event of every line, those included in which the reference differs.
fn check_grind(name: &str) {
    let source = Source::open("cache", name);
    if !source.runs_here() || !tools::have(&["addr2line"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    let native = job.native();
    assert!(native.status.success(), "{name} itself: {}", native.show());
    let geometries = simulation::geometries(&source);
    let twins = twin::simulate(&program, dir.path(), &geometries).unwrap_or_else(|e| panic!("{e:#}"));
    for (geometry, twin) in geometries.iter().zip(&twins) {
        let (_, got) = simulation::simulate(tools::under_test(), &job, geometry);
        assert_none(&format!("{name} with {geometry:?}"), &twin.differences(&got, &simulation::EVENTS));
    }
}

/// The seeds of random programs: `GRIND_RANDOM_PROGRAMS` is how many (10 by default), `GRIND_RANDOM_SEED` the first.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name}={v:?} is no number")))
    };
    let first = number("GRIND_RANDOM_SEED", 1);
    first..first + number("GRIND_RANDOM_PROGRAMS", 10)
}

#[test]
fn random_programs() {
    if !tools::have(&["valgrind", "addr2line", "gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    // The reference makes branches of LOCK and REP, which these programs are full of.
    let events: Vec<&str> = simulation::EVENTS.into_iter().filter(|e| !e.starts_with("Bc")).collect();
    let geometry = simulation::GEOMETRIES[1];
    let (mut wrong, mut unlike) = (Vec::new(), 0);
    let seeds = seeds();
    for seed in seeds.clone() {
        let program = fuzz::build(seed, true, dir.path());
        let job = Job::new([program.display().to_string()], dir.path());
        let native = job.native();
        assert!(native.status.success(), "seed {seed} itself: {}", native.show());
        let twins = twin::simulate(&program, dir.path(), &[geometry]).unwrap_or_else(|e| panic!("{e:#}"));
        let (outcome, reference) = simulation::simulate(&simulation::reference(), &job, &geometry);
        // Now and then a NaN has another sign there, and all that follows is different.
        if outcome.stdout != native.stdout {
            unlike += 1;
            continue;
        }
        wrong.extend(reference.differences(&twins[0], &events).into_iter().map(|d| format!("seed {seed}: {d}")));
    }
    if !wrong.is_empty() {
        eprintln!("sources in {}", dir.keep().display());
    }
    assert_none("random programs", &wrong);
    let all = seeds.end - seeds.start;
    assert!(unlike * 4 <= all, "{unlike} of {all} programs end in another state under the reference");
}

/// Everything that the processor has, under grind, in caches whose lines hold the largest access.
#[test]
fn random_programs_under_grind() {
    if !tools::have(&["addr2line", "gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let geometries: Vec<_> = simulation::GEOMETRIES.into_iter().filter(|g| g.smallest_line() >= 64).collect();
    let mut wrong = Vec::new();
    for seed in seeds() {
        let program = fuzz::build(seed, false, dir.path());
        let job = Job::new([program.display().to_string()], dir.path());
        let native = job.native();
        assert!(native.status.success(), "seed {seed} itself: {}", native.show());
        let twins = twin::simulate(&program, dir.path(), &geometries).unwrap_or_else(|e| panic!("{e:#}"));
        for (geometry, twin) in geometries.iter().zip(&twins) {
            let (outcome, got) = simulation::simulate(tools::under_test(), &job, geometry);
            assert_same(&format!("seed {seed}"), &native, &outcome, "");
            let differ = twin.differences(&got, &simulation::EVENTS);
            wrong.extend(differ.into_iter().map(|d| format!("seed {seed}, {geometry:?}: {d}")));
        }
    }
    if !wrong.is_empty() {
        eprintln!("sources in {}", dir.keep().display());
    }
    assert_none("random programs", &wrong);
}

/// Levels beyond small first-level caches: second and last, inclusion and prefetcher.
const LEVELS: [(&str, &str, &str, &str); 9] = [
    ("", "8192,4,64,plru", "inclusive", "stream"),
    ("", "8192,4,64,plru", "none", "none"),
    ("", "8192,4,64,random:5", "none", "stream"),
    ("4096,4,64", "8192,4,64", "none", "none"),
    ("4096,4,64,plru", "8192,8,64,qlru:H11_M1_R0_U0", "inclusive", "none"),
    ("4096,4,64,qlru:H00_M1_R2_U1", "8192,2,64,nru", "inclusive", "nextline"),
    ("4096,2,64,fifo", "8192,4,64", "exclusive", "none"),
    ("4096,4,64,srrip", "8192,4,64,drrip", "exclusive", "stride"),
    ("3072,12,64,lru3plru4", "16384,4,128,brrip", "none", "stride"),
];

/// Programs with levels beyond the first: every event of every line is that of a replay of all accesses, single-stepped.
#[test]
fn levels_beyond_the_first_under_grind() {
    if !tools::have(&["addr2line"]) {
        return;
    }
    for name in ["matrix", "sort", "chase", "straddles", "rep"] {
        let source = Source::open("cache", name);
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = source.build(dir.path(), true);
        let job = Job::new([program.display().to_string()], dir.path());
        let g = simulation::Geometry { i1: (1024, 2, 64), d1: (1024, 2, 64), ll: (8192, 4, 64) };
        let cases = LEVELS.map(|(second, last, inclusion, prefetcher)| {
            let second = (!second.is_empty()).then(|| parse_shape(second).expect("a shape"));
            let last = parse_shape(last).expect("a shape");
            let inclusion = Inclusion::by_name(inclusion).expect("inclusion");
            (g, Levels { second, last, inclusion, prefetch: Prefetch::by_name(prefetcher).expect("a prefetcher") })
        });
        let twins = twin::simulate_levels(&program, dir.path(), &cases).unwrap_or_else(|e| panic!("{e:#}"));
        for ((second, last, inclusion, prefetcher), twin) in LEVELS.into_iter().zip(&twins) {
            let mut words = tools::under_test().to_vec();
            words
                .extend(["--cache-sim=yes", "--branch-sim=yes", "--I1=1024,2,64", "--D1=1024,2,64"].map(str::to_owned));
            words.push(format!("--LL={last}"));
            words.extend((!second.is_empty()).then(|| format!("--L2={second}")));
            words.extend([format!("--inclusion={inclusion}"), format!("--prefetcher={prefetcher}")]);
            let done = job.profiled(&words);
            assert!(done.outcome.status.success(), "{name} under {words:?}: {}", done.log);
            let got = grind_tests::costs::Costs::parse(&done.raw[0].1).unwrap_or_else(|e| panic!("{e:#}"));
            assert_eq!(got.events, twin.events, "{name} {words:?}");
            let events: Vec<&str> = twin.events.iter().map(String::as_str).collect();
            assert_none(&format!("{name} with {words:?}"), &twin.differences(&got, &events));
            let sum = |event: &str| {
                let at = got.events.iter().position(|e| e == event);
                at.map_or(0, |at| got.sums()[at])
            };
            assert!(sum("I1mr") + sum("D1mr") > 0, "{name} misses nothing");
        }
    }
}

/// TLBs: usual ones and small ones; of one set, of one way, of odd numbers of ways; with and without a second level.
const TLBS: [twin::Tlbs; 6] = [
    ((64, 4), (128, 8), Some((1536, 12))),
    ((4, 2), (2, 1), Some((8, 2))),
    ((3, 3), (1, 1), None),
    ((2, 1), (4, 4), Some((6, 3))),
    ((1, 1), (2, 2), Some((4, 1))),
    ((20, 20), (3, 3), None),
];

/// The options that ask for them.
fn tlb_options((data, code, second): twin::Tlbs) -> Vec<String> {
    let text = |name, (entries, ways): (u64, u64)| format!("--{name}={entries},{ways}");
    let mut words = vec!["--tlb-sim=yes".to_owned(), text("DTLB", data), text("ITLB", code)];
    words.extend(second.map(|second| text("STLB", second)));
    words
}

/// Compares a program with its twin, with two of the TLBs, by its number, and these caches.
fn check_tlbs(
    (what, number): (&str, usize),
    job: &Job<'_>,
    program: &std::path::Path,
    g: simulation::Geometry,
    wrong: &mut Vec<String>,
) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let shapes = [TLBS[number % 3], TLBS[number % 3 + 3]];
    let cases = shapes.map(|tlbs| (g, tlbs));
    let twins = twin::simulate_tlbs(program, dir.path(), &cases).unwrap_or_else(|e| panic!("{e:#}"));
    for (tlbs, twin) in shapes.into_iter().zip(&twins) {
        let words = [tools::under_test(), &["--cache-sim=yes".into(), "--branch-sim=yes".into()]].concat();
        let words = [words, g.options(), tlb_options(tlbs)].concat();
        let done = job.profiled(&words);
        assert!(done.outcome.status.success(), "{what} under {words:?}: {}", done.log);
        let got = grind_tests::costs::Costs::parse(&done.raw[0].1).unwrap_or_else(|e| panic!("{e:#}"));
        assert_eq!(got.events, twin.events, "{what} {words:?}");
        let events: Vec<&str> = twin.events.iter().map(String::as_str).collect();
        wrong.extend(twin.differences(&got, &events).into_iter().map(|d| format!("{what}, {g:?}, {tlbs:?}: {d}")));
    }
}

/// TLBs of a whole program: every event of every line is that of the naive model, single-stepped.
fn check_tlbs_of(name: &str) {
    let source = Source::open("cache", name);
    if !tools::have(&["addr2line"]) || !source.runs_here() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    // Each with some caches: those of random programs are the usual ones.
    let geometries = simulation::geometries(&source);
    let mut wrong = Vec::new();
    let number = name.len();
    check_tlbs((name, number), &job, &program, geometries[number % geometries.len()], &mut wrong);
    assert_none("TLBs", &wrong);
}

/// The same for random programs.
#[test]
fn tlbs_of_random_programs_under_grind() {
    if !tools::have(&["addr2line", "gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut wrong = Vec::new();
    for seed in seeds() {
        let program = fuzz::build(seed, false, dir.path());
        let job = Job::new([program.display().to_string()], dir.path());
        let what = format!("seed {seed}");
        check_tlbs((&what, seed as usize), &job, &program, simulation::GEOMETRIES[0], &mut wrong);
    }
    if !wrong.is_empty() {
        eprintln!("sources in {}", dir.keep().display());
    }
    assert_none("TLBs of random programs", &wrong);
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        mod under_grind {
            $(#[test] fn $name() { super::check_grind(stringify!($name)); })*
        }

        mod with_tlbs_under_grind {
            $(#[test] fn $name() { super::check_tlbs_of(stringify!($name)); })*
        }

        #[test]
        fn no_program_is_forgotten() {
            let mut named = vec![$(stringify!($name).to_owned()),*];
            named.sort();
            assert_eq!(named, simulation::programs());
        }
    };
}

programs! {
    aliases avx512 bigcode branches chains chase fxsave gather jumptable lock masked masked_gather maskmovdqu matrix odd operands
    pieces random rep rmw sizes sort stack straddles strides taken x87 xsave xsave_partial
}
