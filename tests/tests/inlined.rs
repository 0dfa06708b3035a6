//! Inlined functions in profiles: named beside costs, and as functions of their own. Whatever is said of them, sums are those of
//! the functions that have the code.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use cg_format::callgrind::{Profile, Site, read_profile};
use grind_tests::{profile, run, tools};

const PROGRAM: &str = r#"
#include "inline.h"
static inline __attribute__((always_inline)) unsigned outer(unsigned n) {
    unsigned sum = inner(n);
    for (unsigned i = 0; i < n; i++) sum += inner(sum ^ i);
    return sum + called(n);
}
__attribute__((noinline)) unsigned work(unsigned n) { return outer(n) + inner(n + 1); }
__attribute__((noinline)) unsigned deep(unsigned n) { return n ? outer(n) + deep(n - 1) : 0; }
int main(int argc, char **argv) { (void)argv; return (work(30 * argc) + deep(5)) & 1; }
"#;

const HEADER: &str = r#"
static volatile unsigned sink;
static inline __attribute__((always_inline)) unsigned inner(unsigned x) { sink += x; return x * x + 3; }
__attribute__((noinline)) unsigned called(unsigned x) { return x * sink; }
"#;

/// The program, built in a folder of its own.
fn program(dir: &Path) {
    std::fs::write(dir.join("main.c"), PROGRAM).expect("a source");
    std::fs::write(dir.join("inline.h"), HEADER).expect("a header");
    let built = Command::new("gcc").args(["-O2", "-g", "-o", "program", "main.c"]).current_dir(dir).status();
    assert!(built.is_ok_and(|s| s.success()), "gcc is needed");
}

fn file_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Cost by function, those of our files only.
fn counted(dir: &Path, option: &str) -> BTreeMap<(String, String), u64> {
    let out = dir.join("cachegrind.out");
    let words = [format!("--cachegrind-out-file={}", out.display()), option.to_owned(), "./program".to_owned()];
    let done =
        run::command(&[tools::under_test().to_vec(), words.to_vec()].concat(), dir).output().expect("grind runs");
    assert!(done.status.code().is_some_and(|c| c < 2), "{}", String::from_utf8_lossy(&done.stderr));
    let all = profile::Profile::parse(&std::fs::read(out).expect("a profile")).expect("one that can be read");
    let ours = all.functions().into_iter().map(|((file, function), n)| ((file_of(&file).to_owned(), function), n));
    ours.filter(|((file, _), _)| ["main.c", "inline.h"].contains(&file.as_str())).collect()
}

#[test]
fn functions_of_their_own_take_their_cost_from_those_that_have_the_code() {
    let dir = tempfile::tempdir().expect("a folder");
    program(dir.path());
    let (whole, apart) = (counted(dir.path(), "--separate-inlined=no"), counted(dir.path(), "--separate-inlined=yes"));
    let sum = |all: &BTreeMap<(String, String), u64>| all.values().sum::<u64>();
    assert_eq!(sum(&whole), sum(&apart));
    let names = |all: &BTreeMap<(String, String), u64>| {
        let mut names: Vec<String> = all.keys().map(|(_, function)| function.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(names(&whole), ["called", "deep", "main", "work"]);
    assert_eq!(names(&apart), ["called", "deep", "inner", "main", "outer", "work"]);
    let inner = &apart[&("inline.h".to_owned(), "inner".to_owned())];
    // 30 + 2 calls of one, and 5 + 1, 4 + 1 … of the other: at least four instructions each.
    assert!(*inner >= 4 * (32 + 20), "{inner}");
    assert_eq!(
        whole[&("inline.h".to_owned(), "called".to_owned())],
        apart[&("inline.h".to_owned(), "called".to_owned())]
    );
}

fn with_calls(dir: &Path, options: &[&str]) -> Profile {
    let out = dir.join("callgrind.out");
    let mut words = vec!["--tool=callgrind".to_owned(), format!("--callgrind-out-file={}", out.display())];
    words.extend(options.iter().map(|o| (*o).to_owned()));
    words.push("./program".to_owned());
    let done = run::command(&[tools::under_test().to_vec(), words].concat(), dir).output().expect("grind runs");
    assert!(done.status.code().is_some_and(|c| c < 2), "{}", String::from_utf8_lossy(&done.stderr));
    read_profile(&std::fs::read(out).expect("a profile")[..], "profile").expect("one that can be read")
}

/// Self costs, and those of calls to others, by function: of ours.
fn costs(profile: &Profile) -> BTreeMap<String, (i64, i64)> {
    let mut all = BTreeMap::new();
    for body in profile.parts.iter().flat_map(|part| part.bodies()) {
        let name = String::from_utf8_lossy(profile.names.function_name(body.function)).into_owned();
        let file = String::from_utf8_lossy(profile.names.file_name(profile.names.get(body.function).file)).into_owned();
        if !["main.c", "inline.h"].contains(&file_of(&file)) {
            continue;
        }
        let sums: &mut (i64, i64) = all.entry(name).or_default();
        for entry in &body.entries {
            match entry.site {
                Site::Row { costs } => sums.0 += body.costs(costs)[0],
                Site::Call { call, costs } if call.callee != body.function => sums.1 += body.costs(costs)[0],
                _ => {}
            }
        }
    }
    all
}

/// Self costs by the inlined function that the profile names beside them.
fn named(profile: &Profile) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for body in profile.parts.iter().flat_map(|part| part.bodies()) {
        for entry in &body.entries {
            if let (Site::Row { costs }, Some(inlined)) = (entry.site, entry.inlined) {
                let name = String::from_utf8_lossy(profile.names.function_name(inlined)).into_owned();
                *all.entry(name).or_default() += body.costs(costs)[0];
            }
        }
    }
    all
}

#[test]
fn calls_of_inlined_functions_are_a_partition_of_what_has_the_code() {
    let dir = tempfile::tempdir().expect("a folder");
    program(dir.path());
    for more in
        [&[][..], &["--dump-instr=yes"], &["--collect-jumps=yes"], &["--separate-recs=3"], &["--separate-callers=2"]]
    {
        let run = |option: &str| with_calls(dir.path(), &[more, &[option]].concat());
        let (hidden, shown, apart) =
            (run("--read-inline-info=no"), run("--read-inline-info=yes"), run("--separate-inlined=yes"));
        let total = |p: &Profile| p.parts.iter().map(|part| part.total()[0]).sum::<i128>();
        assert!(total(&hidden) == total(&shown) && total(&shown) == total(&apart), "{more:?}");
        assert_eq!(costs(&hidden), costs(&shown), "{more:?}: naming them changes nothing else");
        let (before, after) = (costs(&hidden), costs(&apart));
        for (function, (own, calls)) in &before {
            let (own_apart, calls_apart) = after[function];
            assert!(own_apart <= *own, "{more:?}: {function}");
            if !function.starts_with("deep") {
                assert_eq!(own + calls, own_apart + calls_apart, "{more:?}: inclusive cost of {function}");
            }
        }
        let inlined: BTreeMap<String, i64> = after
            .iter()
            .filter(|(name, _)| !before.contains_key(*name))
            .map(|(name, (own, _))| (name.clone(), *own))
            .collect();
        let ours: BTreeMap<String, i64> =
            named(&shown).into_iter().filter(|(name, _)| ["inner", "outer"].contains(&name.as_str())).collect();
        assert_eq!(ours.keys().collect::<Vec<_>>(), ["inner", "outer"], "{more:?}");
        assert_eq!(inlined, ours, "{more:?}: both views say the same");
    }
}

#[test]
fn readers_that_do_not_know_inlined_functions_read_on() {
    let dir = tempfile::tempdir().expect("a folder");
    program(dir.path());
    let annotated = |option: &str| {
        with_calls(dir.path(), &[option]);
        let reader = Path::new("/usr/bin/callgrind_annotate");
        if !reader.exists() {
            assert!(std::env::var_os("CI").is_none(), "callgrind_annotate of Valgrind is missing");
            eprintln!("skipped: callgrind_annotate of Valgrind is not installed");
            return None;
        }
        let done = Command::new(reader)
            .args(["--auto=no", "callgrind.out"])
            .current_dir(dir.path())
            .output()
            .expect("it runs");
        assert!(done.status.success());
        // The number of the process differs.
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        Some(text.lines().filter(|l| !l.starts_with("Profiled target")).map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(annotated("--read-inline-info=yes"), annotated("--read-inline-info=no"));
}
