//! What processes of a tree cost, as `cg_annotate --by-process` prints it.

use std::fs;
use std::process::Command;

/// A tree as grind writes it: make starts a shell, which starts two compilers.
const TREE: &str = "\
cmd: make
events: Ir Dr
# tree: 1
# counts: Ir Dr
# process: 3 parent: 2 pid: 13 status: exited 0
# executable: /usr/bin/cc
# command: cc a.c
# cost: 300 30
fl=cc.c
fn=parse
1 200 20
fn=emit
7 100 10
summary: 300 30
# process: 4 parent: 2 pid: 14 status: killed 9
# executable: /usr/bin/cc
# command: cc b.c
# cost: 500 5
fl=cc.c
fn=parse
1 500 5
summary: 800 35
# process: 2 parent: 1 pid: 12 status: exited 1
# executable: /bin/sh
# command: sh -c cc
# cost: 150 0
fl=sh.c
fn=main
1 100
fl=cc.c
fn=parse
2 50
summary: 950 35
# process: 1 parent: 0 pid: 11 status: exited 2
# executable: /usr/bin/make
# command: make
# cost: 50 5
fl=make.c
fn=main
1 50 5
summary: 1000 40
";

fn run(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tree"), TREE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cg_annotate"));
    let output = command.arg("--by-process").args(args).arg("tree").current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn processes_programs_and_functions_are_shown() {
    let line = "-".repeat(80);
    let expected = format!(
        "4 processes, 3 failed\nIr: 1,000\nDr: 40\n\n{line}\n-- Processes\n{line}\n\
         \u{20}    Ir own         Ir incl  process\n\
         \u{20} 50 (5.0%)  1,000 (100.0%)  make  [exited 2]\n\
         150 (15.0%)     950 (95.0%)    sh -c cc  [exited 1]\n\
         300 (30.0%)     300 (30.0%)      cc a.c\n\
         500 (50.0%)     500 (50.0%)      cc b.c  [killed 9]\n\n\
         {line}\n-- Programs\n{line}\n\
         \u{20}    Ir own         Ir incl  executable\n\
         800 (80.0%)     800 (80.0%)  /usr/bin/cc  [2 processes, 1 failed]\n\
         150 (15.0%)     950 (95.0%)  /bin/sh  [failed]\n\
         \u{20} 50 (5.0%)  1,000 (100.0%)  /usr/bin/make  [failed]\n\n\
         {line}\n-- Functions\n{line}\n\
         \u{20}        Ir  file:function, and by executable\n\
         750 (75.0%)  cc.c:parse\n\
         700 (70.0%)      /usr/bin/cc\n\
         \u{20} 50 (5.0%)      /bin/sh\n\
         100 (10.0%)  cc.c:emit\n\
         100 (10.0%)      /usr/bin/cc\n\
         100 (10.0%)  sh.c:main\n\
         100 (10.0%)      /bin/sh\n\
         \u{20} 50 (5.0%)  make.c:main\n\
         \u{20} 50 (5.0%)      /usr/bin/make\n"
    );
    assert_eq!(run(&[]), expected);
}

#[test]
fn folding_thresholds_events_and_json_can_be_asked_for() {
    let folded = run(&["--fold-by=s/ .[.]c//", "--threshold=20"]);
    assert!(folded.contains("800 (80.0%)     800 (80.0%)      cc  [2 processes, 1 failed]\n"), "{folded}");
    assert!(folded.contains("\nfunctions below the threshold of 20%: 3\n"), "{folded}");
    let reads = run(&["--show=Dr,Ir", "--sort=Dr"]);
    assert!(reads.contains("30 (75.0%)   30 (75.0%)  300 (30.0%)     300 (30.0%)      cc a.c\n"), "{reads}");
    let json = run(&["--json"]);
    let process = "{\"id\":4,\"parent\":2,\"pid\":14,\"processes\":1,\"failed\":1,\"status\":\"killed 9\",\"executable\":\
                   \"/usr/bin/cc\",\"command\":\"cc b.c\",\"own\":[500,5],\"inclusive\":[500,5]}";
    assert!(
        json.split_whitespace().collect::<String>().contains(&process.split_whitespace().collect::<String>()),
        "{json}"
    );
}
