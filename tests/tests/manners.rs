//! The table of manners: what programs answer to the mistakes of people who use them for the first time, and to first uses that are
//! right. Each row is a command in a folder with a program and its profiles, the status, and what the answer must say: the
//! name of what is wrong, and a next step.

use std::process::{Command, Stdio};

use grind_tests::tools;

/// Command, status, what it must print on either stream.
type Row = (&'static str, i32, &'static [&'static str]);

const MISTAKES: [Row; 26] = [
    ("grind", 1, &["no program specified", "For example: grind ./program"]),
    ("grind --cach-sim=yes ./words", 1, &["Unknown option: --cach-sim=yes", "Did you mean '--cache-sim=yes'?"]),
    ("grind --cache-sim=maybe ./words", 1, &["'maybe'", "should be 'yes' or 'no'"]),
    ("grind --branch-sim ./words", 1, &["did you mean '--branch-sim=yes'?"]),
    ("grind --dump-instr=yes ./words", 1, &["option of callgrind", "needs --tool=callgrind"]),
    ("grind --leak-check=full ./words", 1, &["Valgrind's memcheck", "which grind does not have"]),
    ("grind --tool=gprof ./words", 1, &["'gprof'", "cachegrind, callgrind only"]),
    (
        "grind --cachegrind-out-file=absent/x ./words",
        1,
        &["'absent'", "name another place with --cachegrind-out-file="],
    ),
    ("grind ./absent", 127, &["./absent: No such file or directory"]),
    ("grind words", 127, &["command not found", "there is one in this folder: ./words"]),
    ("grind ./", 126, &["./: is a directory"]),
    ("grind ./text.txt", 126, &["Permission denied", "chmod +x"]),
    (
        "cg_annotate cachegrind.out.1",
        1,
        &["cachegrind.out.1: No such file", "the newest profile here is 'cachegrind.out.7'"],
    ),
    ("cg_annotate callgrind.out.7", 1, &["profile with a call graph", "callgrind_annotate reads"]),
    ("cg_annotate empty", 1, &["it is empty", "killed or goes on, or whose disk was full"]),
    ("cg_annotate --show=Foo cachegrind.out.7", 1, &["`Foo`", "which has Ir"]),
    ("cg_annotate --treshold=5 cachegrind.out.7", 2, &["--treshold", "similar argument exists: '--threshold'"]),
    ("cg_annotate --threshold=abc cachegrind.out.7", 2, &["'abc'", "a number from 0 to 20"]),
    ("cg_annotate --fail-above=Ir --diff cachegrind.out.7 cachegrind.out.7", 2, &["EVENT:PERCENT, such as Ir:0.5"]),
    ("cg_merge -o absent/x cachegrind.out.7", 1, &["absent/x", "cannot create the output file"]),
    ("mem_annotate cachegrind.out.7", 1, &["cachegrind.out.7: line 1", "none of `grind --objects=yes`"]),
    ("mem_annotate", 1, &["no mem.out* here", "`grind --cache-sim=yes --objects=yes PROGRAM` makes one"]),
    ("cg_diff cachegrind.out.7", 2, &["<cachegrind-out-file2>", "Usage: cg_diff"]),
    ("cg_report absent", 1, &["absent: No such file", "the newest profile here is"]),
    ("cg_export --format=foo cachegrind.out.7", 2, &["'foo'", "possible values: pprof, speedscope"]),
    ("callgrind_control --dump 999999999", 1, &["999999999: no run of this number"]),
];

const FIRST_USES: [Row; 10] = [
    ("grind --help", 0, &["usage: grind [options] program", "needed most", "--tool=<name>"]),
    ("grind --version", 0, &["grind-"]),
    ("grind doctor ./words", 0, &["ok    tracing", "has names and lines"]),
    ("grind ./words < text.txt", 0, &["441 words", "I refs:", "Profile: cachegrind.out.", "To read it: cg_annotate"]),
    ("grind --tool=callgrind ./words < text.txt", 0, &["Collected", "To read it: callgrind_annotate"]),
    ("cg_annotate", 0, &["no profile is named: this is", "PROGRAM TOTALS"]),
    ("callgrind_annotate callgrind.out.7", 0, &["PROGRAM TOTALS", "words.c:find"]),
    ("cg_annotate --diff cachegrind.out.7 cachegrind.out.7", 0, &["PROGRAM TOTALS"]),
    ("cg_report -o page.html callgrind.out.7 && grep -c '<html' page.html", 0, &["1"]),
    ("cg_export --format=folded callgrind.out.7", 0, &["read_word "]),
];

#[test]
fn mistakes_and_first_uses_are_answered_with_a_next_step() {
    if tools::is_replaced() || !tools::have(&["gcc", "bash"]) {
        return;
    }
    let packages = [
        "grind",
        "cg-annotate",
        "cg-diff",
        "mem-annotate",
        "cg-merge",
        "cg-report",
        "cg-export",
        "callgrind-annotate",
        "cg-control",
    ];
    let programs = tools::build(&packages).expect("the programs");
    let dir = tempfile::tempdir().expect("a folder");
    let bash = |command: &str| {
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("exec 2>&1\n{command}")]).current_dir(dir.path()).env("PATH", path);
        let output = bash.env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).output().expect("bash");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let root = tools::workspace_root().display();
    let made = bash(&format!(
        "set -e; gcc -g -O1 -o words {root}/docs/examples/words.c; cp {root}/LICENSE-APACHE text.txt; touch empty
         grind -q --cachegrind-out-file=cachegrind.out.7 ./words < text.txt
         grind -q --tool=callgrind --callgrind-out-file=callgrind.out.7 ./words < text.txt"
    ));
    assert_eq!(made.0, Some(0), "{}", made.1);
    let mut wrong = String::new();
    for (command, status, says) in MISTAKES.iter().chain(&FIRST_USES) {
        let (ended, text) = bash(command);
        let missing: Vec<_> = says.iter().filter(|part| !text.contains(**part)).collect();
        if ended != Some(*status) || !missing.is_empty() || text.contains("os error") || text.contains("panicked") {
            wrong += &format!("$ {command}\n{text}ended with {ended:?}, not {status}; does not say {missing:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
