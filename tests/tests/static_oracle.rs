//! Static programs without libc: exact counts by file, function and line, beside what they print and how they end.
//!
//! Two oracles that know nothing of each other: Valgrind, place by place, and single-stepping, function by function.
//! Programs named `reference_*` do what Valgrind 3.19 refuses or gets wrong, as their headers say: only stepping judges them.

use std::path::Path;

use grind_tests::build::Source;
use grind_tests::compare::{assert_none, assert_same, differences};
use grind_tests::profile::Profile;
use grind_tests::run::Job;
use grind_tests::{step, tools};

/// Profiles in an order that does not depend on process ids.
fn by_size(mut profiles: Vec<Profile>) -> Vec<Profile> {
    profiles.sort_by_key(|p| (p.total(), format!("{:?}", p.ir)));
    profiles
}

fn check(name: &str) {
    let source = Source::open("programs", name);
    if !source.runs_here() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    let native = job.native();
    let tested = job.grind();
    assert_same(name, &native, &tested.outcome, &tested.log);
    let got = by_size(tested.profiles());

    let oracle = source.words("oracle");
    let ignored = source.words("ignore");
    let skip = |function: &str| ignored.iter().any(|i| i == function);
    let mut judged = false;
    if (oracle.is_empty() || oracle == ["valgrind"]) && tools::have(&["valgrind"]) {
        let reference = job.valgrind();
        assert_same(&format!("{name} under the reference"), &native, &reference.outcome, &reference.log);
        let expected = by_size(reference.profiles());
        assert_eq!(expected.len(), got.len(), "number of profiles");
        for (expected, got) in expected.iter().zip(&got) {
            if ignored.is_empty() {
                assert_eq!(expected.total(), got.total(), "{name}: all instructions, against Valgrind");
            }
            let differ = differences(&expected.ir, &got.ir, |(_, function, _)| skip(function));
            assert_none(&format!("{name}: places, against Valgrind"), &differ);
        }
        judged = true;
    }
    if oracle.is_empty() || oracle == ["steps"] {
        check_by_stepping(name, &program, dir.path(), &got);
        judged = true;
    }
    assert!(judged || !oracle.is_empty(), "{name}: no oracle judged it");
}

fn check_by_stepping(name: &str, program: &Path, dir: &Path, got: &[Profile]) {
    let counts = step::count(program, dir).unwrap_or_else(|e| panic!("{e:#}"));
    let expected = step::by_function(program, &counts).unwrap_or_else(|e| panic!("{e:#}"));
    let [got] = got else { panic!("{name}: one process, so one profile is expected") };
    assert_eq!(expected.values().sum::<u64>(), got.total(), "{name}: all instructions, against single-stepping");
    assert_none(
        &format!("{name}: functions, against single-stepping"),
        &differences(&expected, &got.by_name(), |_| false),
    );
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn no_program_is_forgotten() {
            let mut named = vec![$(stringify!($name).to_owned()),*];
            let mut there: Vec<String> = std::fs::read_dir(tools::fixtures("programs"))
                .expect("the folder of programs")
                .map(|e| e.expect("a folder entry").file_name().into_string().expect("a name in ASCII"))
                .filter_map(|n| n.strip_suffix(".s").or(n.strip_suffix(".c")).map(str::to_owned))
                .collect();
            named.sort();
            there.sort();
            assert_eq!(named, there);
        }
    };
}

programs! {
    addressing and2 callret far flags jcc jumptable large lock loops midinsn pagecross partial redzone rep_strings selfloops
    strings_norep vectors x87 xsave
    c_constants c_fork c_fork_caches c_interpreter c_mapped_code c_signals c_sort c_threads c_vector
    reference_faults reference_lacks
}
