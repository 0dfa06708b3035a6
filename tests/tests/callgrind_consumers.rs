//! Profiles that grind has written of real programs, opened by the programs that people open them with
//! (`tests/consumers/check`, which says what it skips and why).

use std::process::Command;

use grind_tests::{run, tools};

fn check(words: &[&str], options: &[&str], script: &[&str]) {
    if !tools::have(&[words[0]]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("profile");
    let mut all = tools::under_test().to_vec();
    all.extend(["-q", "--tool=callgrind"].map(str::to_owned));
    all.push(format!("--callgrind-out-file={}", out.display()));
    all.extend(options.iter().chain(words).map(|w| (*w).to_owned()));
    let done = run::command(&all, dir.path()).output().unwrap();
    assert!(done.status.success(), "{all:?}: {}", String::from_utf8_lossy(&done.stderr));
    let output =
        Command::new(tools::fixtures("consumers").join("check")).args(script).arg(&out).output().expect("the script");
    let report = String::from_utf8_lossy(&output.stdout);
    eprintln!("{words:?} {options:?}\n{report}");
    assert!(output.status.success(), "{words:?} {options:?}: {report}");
}

#[test]
fn a_plain_profile() {
    check(&["ls", "-l", "/usr"], &[], &["--quick"]);
}

#[test]
fn instructions_jumps_and_contexts() {
    check(
        &["perl", "-e", "print sort 1..50"],
        &["--dump-instr=yes", "--collect-jumps=yes", "--separate-callers=1"],
        &["--quick"],
    );
}

#[test]
fn costs_of_all_kinds() {
    check(&["ls", "/"], &["--collect-bus=yes", "--collect-systime=nsec"], &["--quick"]);
}

/// Takes half a minute: KCachegrind needs a display of its own.
#[test]
fn kcachegrind_opens_it() {
    check(&["ls", "-l", "/usr"], &["--dump-instr=yes", "--collect-jumps=yes"], &[]);
}

/// Builds crates from the network, once a machine.
#[test]
#[ignore = "builds two runners from the network: cargo test -p grind-tests callgrind_consumers:: -- --ignored --nocapture gungraun"]
fn suites_of_gungraun_and_its_predecessor_say_the_same_as_over_valgrind() {
    let programs = tools::build(&["grind"]).expect("the program");
    let output = Command::new(tools::fixtures("consumers").join("gungraun"))
        .args([programs.join("grind"), tools::workspace_root().join("target/clients")])
        .output()
        .expect("the script");
    let report = String::from_utf8_lossy(&output.stdout);
    eprintln!("{report}");
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
}

/// Installs clients from the network, once a machine.
#[test]
#[ignore = "installs four clients from the network: cargo test -p grind-tests callgrind_consumers:: -- --ignored --nocapture clients"]
fn clients_of_valgrind_count_as_over_valgrind() {
    let programs = tools::build(&["grind", "callgrind-annotate"]).expect("the programs");
    let output = Command::new(tools::fixtures("consumers").join("clients"))
        .args([programs.join("grind"), tools::workspace_root().join("target/clients")])
        .output()
        .expect("the script");
    let report = String::from_utf8_lossy(&output.stdout);
    eprintln!("{report}");
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
}
