//! What the golden cases do not show: renaming, JSON, odd inputs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use grind_tests::json::{documented, printed as keys};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cg_diff")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let profile = |name: &str, version: &str, count: u64| {
        let text = format!(
            "cmd: x {version}\nevents: Ir\nfl={version}/a.c\nfn=f.{version}\n1 {count}\n2 1\nsummary: {}\n",
            count + 1
        );
        fs::write(folder.path().join(name), text).unwrap();
    };
    profile("one", "v1", 5);
    profile("two", "v2", 7);
    folder
}

#[test]
fn renamed_files_and_functions_meet() {
    let folder = folder();
    let args = [r"--mod-filename=s/v\d+\/(.*)/\1/", r"--mod-funcname=s/\.v\d$//", "one", "two"];
    let expected = "desc: Files compared:   one; two\ncmd: x v1; x v2\nevents: Ir\nfl=a.c\nfn=f\n0 2\nsummary: 2\n";
    assert_eq!(text(&run(folder.path(), &args).stdout), expected);
}

#[test]
fn files_of_builds_in_two_folders_meet_if_that_is_wanted() {
    let folder = folder();
    let output = run(folder.path(), &["--mod-funcname=s/\\.v.//", "one", "two"]);
    assert!(
        text(&output.stderr)
            .starts_with("cg_diff: 1 source files differ only by a folder, 'v1/' and 'v2/': --match-paths")
    );
    let output = run(folder.path(), &["--mod-funcname=s/\\.v.//", "--match-paths", "one", "two"]);
    assert!(text(&output.stdout).ends_with("fl=a.c\nfn=f\n0 2\nsummary: 2\n"), "{}", text(&output.stdout));
}

#[test]
fn a_difference_to_itself_is_zero() {
    let folder = folder();
    let expected =
        "desc: Files compared:   one; one\ncmd: x v1; x v1\nevents: Ir\nfl=v1/a.c\nfn=f.v1\n0 0\nsummary: 0\n";
    assert_eq!(text(&run(folder.path(), &["one", "one"]).stdout), expected);
}

#[test]
fn json_lists_functions() {
    let folder = folder();
    let json = text(&run(folder.path(), &["--json", "one", "two"]).stdout);
    assert!(
        json.starts_with("{\n  \"schema\": \"cg_diff\",\n  \"version\": 1,\n  \"file_before\": \"one\",\n"),
        "{json}"
    );
    assert!(json.contains("\"total\": [2],\n"), "{json}");
    assert!(json.contains("\"file\": \"v1/a.c\",\n      \"function\": \"f.v1\",\n      \"counts\": [-6]\n"), "{json}");
}

#[test]
fn the_manual_names_the_keys_of_the_json() {
    const MANUAL: &str = include_str!("../src/narrative.roff");
    let folder = folder();
    fs::write(folder.path().join("odd"), b"cmd: x\nevents: Ir\nfl=caf\xe9.c\nfn=f\n1 5\nsummary: 5\n").unwrap();
    let output = run(folder.path(), &["--json", "one", "odd"]).stdout;
    let printed = keys(&text(&output));
    assert_eq!(printed.contains("file_hex"), documented(MANUAL).contains("_hex"));
    let without = |keys: BTreeSet<String>| keys.into_iter().filter(|key| !key.ends_with("_hex")).collect::<Vec<_>>();
    assert_eq!(without(printed), without(documented(MANUAL)));
}

#[test]
fn wrong_inputs_are_refused() {
    let folder = folder();
    fs::write(folder.path().join("bad"), "cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 6\n").unwrap();
    let output = run(folder.path(), &["one", "bad"]);
    assert_eq!(output.status.code(), Some(1));
    let message =
        "cg_diff: error: bad:6: `summary:` line doesn't match computed total\n- summary:  [6]\n- computed: [5]\n";
    assert_eq!(text(&output.stderr), message);
    assert_eq!(run(folder.path(), &["one"]).status.code(), Some(2));
    assert_eq!(run(folder.path(), &["one", "two", "bad"]).status.code(), Some(2));
    assert_eq!(run(folder.path(), &["-", "-"]).status.code(), Some(1));
}
