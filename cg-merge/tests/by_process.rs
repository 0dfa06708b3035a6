//! Trees of processes made one, and smaller.

use std::fs;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cg_merge")).args(args).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const HEAD: &str = "desc: d\ncmd: make\nevents: Ir\n# tree: 1\n# counts: Ir\n";

fn block(id: u64, parent: u64, status: &str, command: &str, cost: u64, sum: u64) -> String {
    let executable = command.split(' ').next().unwrap();
    format!(
        "# process: {id} parent: {parent} pid: 7 status: {status}\n# executable: /{executable}\n# command: {command}\n\
         # cost: {cost}\nfl=a\nfn={executable}\n1 {cost}\nsummary: {sum}\n"
    )
}

#[test]
fn trees_are_put_together_and_processes_folded() {
    let folder = tempfile::tempdir().unwrap();
    let tree = [
        HEAD,
        &block(2, 1, "exited 0", "cc a.c", 10, 10),
        &block(3, 1, "exited 1", "cc b.c", 20, 30),
        &block(1, 0, "exited 0", "make", 1, 31),
    ]
    .concat();
    fs::write(folder.path().join("a"), &tree).unwrap();
    let (code, both, _) = run(folder.path(), &["--by-process", "a", "a"]);
    assert_eq!(code, Some(0));
    let expected = [
        HEAD,
        &block(1, 0, "exited 0", "make", 1, 1),
        &block(2, 1, "exited 0", "cc a.c", 10, 11),
        &block(3, 1, "exited 1", "cc b.c", 20, 31),
        &block(4, 0, "exited 0", "make", 1, 32),
        &block(5, 4, "exited 0", "cc a.c", 10, 42),
        &block(6, 4, "exited 1", "cc b.c", 20, 62),
    ]
    .concat();
    assert_eq!(both, expected);
    let folded = run(folder.path(), &["--by-process", "--fold-by=s/ .*//", "-o", "folded", "a", "a"]);
    assert_eq!(folded, (Some(0), String::new(), String::new()));
    let text = fs::read_to_string(folder.path().join("folded")).unwrap();
    let several = |text: String, n: u64| text.replace("pid: 7", &format!("pid: 7 processes: {n}"));
    let expected =
        [HEAD, &several(block(1, 0, "exited 0", "make", 2, 2), 2), &several(block(2, 1, "unknown", "cc", 60, 62), 4)]
            .concat();
    assert_eq!(text, expected);
    // The sum is that of any merge, and what is folded can be folded again.
    let sum = |names: &[&str]| run(folder.path(), names).1.lines().last().unwrap().to_owned();
    assert_eq!(sum(&["a", "a"]), "summary: 62");
    assert_eq!(sum(&["folded"]), "summary: 62");
    assert!(run(folder.path(), &["--by-process", "--fold", "folded", "folded"]).1.contains("processes: 8 "));
}

#[test]
fn what_is_no_tree_or_not_whole_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain"), "cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5\n").unwrap();
    let (code, _, message) = run(folder.path(), &["--by-process", "plain"]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("cg_merge: error: plain: it says nothing of processes"), "{message}");
    let cut = [HEAD, &block(1, 0, "exited 0", "make", 1, 1).replace("1 1\n", "")].concat();
    fs::write(folder.path().join("cut"), cut).unwrap();
    let (_, _, message) = run(folder.path(), &["--by-process", "cut"]);
    assert!(message.contains("process 1, from line 6 on: its rows do not add up"), "{message}");
}
