//! Cache and branch simulation, line by line: every event of every program of `cache/` under grind equals the reference's, in
//! several geometries, but for those that a program's header names with the reason. And they are the same where hot code is
//! translated anew meanwhile, again and again.

use grind_tests::build::Source;
use grind_tests::compare::{assert_none, assert_same};
use grind_tests::run::Job;
use grind_tests::{simulation, tools};

fn check(name: &str) {
    let source = Source::open("cache", name);
    if !source.runs_here() || !simulation::has_reference(&source) || !tools::have(&["valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    let native = job.native();
    let events = simulation::common_events(&source);
    for geometry in simulation::geometries(&source) {
        let (outcome, got) = simulation::simulate(tools::under_test(), &job, &geometry);
        assert_same(name, &native, &outcome, "");
        let anew = [tools::under_test(), &["--hot-after=2000".to_owned()]].concat();
        let (outcome, got_anew) = simulation::simulate(&anew, &job, &geometry);
        assert_same(name, &native, &outcome, "");
        assert_none(&format!("{name} made anew with {geometry:?}"), &got.differences(&got_anew, &events));
        let (_, expected) = simulation::simulate(&simulation::reference(), &job, &geometry);
        assert_none(&format!("{name} with {geometry:?}"), &expected.differences(&got, &events));
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

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
    pieces random rep rmw sizes sort
    stack straddles strides taken x87 xsave xsave_partial
}

#[test]
fn a_forked_process_goes_on_with_its_creators_caches() {
    if !tools::have(&["valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = Source::open("programs", "c_fork_caches").build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    for geometry in simulation::GEOMETRIES {
        // Of each process, in some order.
        let summaries = |profiler: &[String]| {
            let options = [&["--cache-sim=yes".to_owned()], &geometry.options()[..]].concat();
            let done = job.profiled(&[profiler, &options].concat());
            assert!(done.outcome.status.success(), "{}\nlog:\n{}", done.outcome.show(), done.log);
            let summary = |text: &str| text.lines().find(|l| l.starts_with("summary:")).map(str::to_owned);
            let profiles = done.raw.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes));
            let mut all: Vec<_> = profiles.map(|text| summary(&text).expect("a summary")).collect();
            all.sort();
            all
        };
        let got = summaries(tools::under_test());
        assert_eq!(got.len(), 4);
        assert_eq!(got, summaries(&simulation::reference()), "{geometry:?}");
    }
}
