//! What grind says to people: warnings about profiles that mislead, and `grind doctor`.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::Place;

const LOOP: &str = r"
#include <stdlib.h>
static volatile int kept;
static int __attribute__((noinline)) turn(int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + i; return s; }
int main(int argc, char **argv) { kept = turn(argc > 1 ? atoi(argv[1]) : 3000000); return 0; }
";

const WITHOUT_LINES: &str = "are in code without lines";
const WITHOUT_NAMES: &str = "are in code without names";
const UNOPTIMIZED: &str = "built without optimization";
const EMPTY: &str = "nothing was counted";

#[test]
fn profiles_that_mislead_are_warned_of() {
    let place = Place::new();
    let all = [WITHOUT_LINES, WITHOUT_NAMES, UNOPTIMIZED, EMPTY];
    let cases: [(&[&str], &[&str], &[&str]); 7] = [
        (&["-g", "-O1"], &[], &[]),
        (&["-O1"], &[], &[WITHOUT_LINES]),
        (&["-O1", "-s"], &[], &[WITHOUT_NAMES]),
        (&["-g"], &[], &[UNOPTIMIZED]),
        (&["-g", "-O1"], &["--instr-at-start=no"], &[EMPTY]),
        (&["-g", "-O0"], &["--tool=callgrind"], &[UNOPTIMIZED]),
        (&["-g", "-O1"], &["--tool=callgrind", "--collect-atstart=no"], &[EMPTY]),
    ];
    symlink(env!("CARGO_BIN_EXE_grind"), place.path("valgrind")).unwrap();
    for (how, options, expected) in cases {
        let Some(program) = place.compile("program", LOOP, how) else { return };
        let mut words = options.to_vec();
        words.push(match options.contains(&"--tool=callgrind") {
            true => "--callgrind-out-file=out",
            false => "--cachegrind-out-file=out",
        });
        words.push(program.to_str().unwrap());
        let said = place.grind(&words).err;
        assert!(said.contains("refs") || said.contains("Collected"), "{said}");
        let warned: Vec<&str> = all.iter().copied().filter(|text| said.contains(text)).collect();
        assert_eq!(warned, expected, "{how:?} {options:?}: {said}");
        // What is wanted quiet is, and what takes Valgrind's place says what Valgrind says.
        words.insert(0, "-q");
        assert_eq!(place.grind(&words).err, "", "{how:?} {options:?}");
        words.remove(0);
        let said = place.command(&place.path("valgrind")).args(&words).output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("refs") || said.contains("Collected"), "{said}");
        assert!(!all.iter().any(|text| said.contains(text)), "{said}");
    }
}

#[test]
fn the_doctor_tries_and_tells() {
    let place = Place::new();
    let answer = place.grind(&["doctor"]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    for wanted in ["ok    processor", "ok    tracing", "caches", "C library", "Exact, and the same in every run"] {
        assert!(answer.out.contains(wanted), "{wanted:?} in {}", answer.out);
    }
    assert_eq!(place.names(), Vec::<String>::new(), "nothing is left behind");

    let answer = place.grind(&["doctor", "/no/such/program"]);
    assert!(answer.code == Some(1) && answer.out.contains("FAILS program"), "{}", answer.out);
    let Some(program) = place.compile("program", LOOP, &["-g"]) else { return };
    let answer = place.grind(&["doctor", program.to_str().unwrap()]);
    assert!(
        answer.out.contains("program has names and lines") && answer.out.contains("not optimized"),
        "{}",
        answer.out
    );

    // A program of that name is one like any other, and Valgrind knows no doctor.
    std::fs::rename(&program, place.path("doctor")).unwrap();
    assert!(place.grind(&["--cachegrind-out-file=out", "./doctor", "1"]).err.contains("refs"));
    symlink(env!("CARGO_BIN_EXE_grind"), place.path("valgrind")).unwrap();
    let said = place.command(Path::new("./valgrind")).arg("doctor").env("PATH", "/nowhere").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stderr), "valgrind: doctor: command not found\n");
}

#[test]
fn a_program_that_lies_here_is_pointed_at() {
    let place = Place::new();
    place.put("tool", b"#!/bin/sh\n", 0o755);
    let answer = place.grind(&["tool"]);
    let wanted = "grind: tool: command not found (there is one in this folder: ./tool)\n";
    assert_eq!((answer.code, answer.err.as_str()), (Some(127), wanted));
    let answer = place.grind(&["other"]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(127), "grind: other: command not found\n"));
}
