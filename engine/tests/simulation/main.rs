//! What instructions access, judged by the reference: static programs are single-stepped natively, their accesses resolved
//! from the registers by `engine::events` and simulated by a naive model, and every event of every line compared with
//! Cachegrind's. Emitted code is not involved: if this holds and a whole run differs, the fault is in the emitted checks.
//!
//! A program's header names events that differ deliberately, and why.
#![allow(unsafe_code)] // reading the extended state of a traced process

mod model;
mod twin;

use grind_tests::build::Source;
use grind_tests::compare::assert_none;
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
        let reference = simulation::simulate(&simulation::reference(), &job, geometry);
        assert_none(&format!("{name} with {geometry:?}"), &reference.differences(twin, &events));
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
    bigcode branches chase fxsave gather jumptable lock masked masked_gather maskmovdqu matrix random rep rmw sizes sort
    stack straddles strides x87 xsave xsave_partial
}
