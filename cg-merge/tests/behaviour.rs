//! What the golden cases do not show: output files, several cores, odd inputs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cg_merge")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn an_output_file_is_whole_or_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a"), "cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5\n").unwrap();
    fs::write(at("bad"), "cmd: x\nevents: Ir\nfl=a\nfn=f\n1 x\nsummary: 5\n").unwrap();
    let output = run(folder.path(), &["-o", "out", "a", "a"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()));
    let merged = "cmd: x\nevents: Ir\nfl=a\nfn=f\n1 10\nsummary: 10\n";
    assert_eq!(fs::read_to_string(at("out")).unwrap(), merged);
    fs::set_permissions(at("out"), fs::Permissions::from_mode(0o604)).unwrap();
    let output = run(folder.path(), &["-o", "out", "a", "bad"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "cg_merge: error: bad:5: malformed or too many event counts\n");
    assert_eq!(fs::read_to_string(at("out")).unwrap(), merged);
    // An input may be the output.
    assert!(run(folder.path(), &["-o", "out", "out", "a"]).status.success());
    assert_eq!(fs::read_to_string(at("out")).unwrap(), merged.replace("10", "15"));
    assert_eq!(fs::metadata(at("out")).unwrap().permissions().mode() & 0o777, 0o604);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left behind");
    let full = run(folder.path(), &["-o", "/dev/full", "a"]);
    assert_eq!(full.status.code(), Some(1));
    assert!(text(&full.stderr).contains("/dev/full: cannot write the output file"), "{}", text(&full.stderr));
}

#[test]
fn many_inputs_on_several_cores_merge_as_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    let mut expected = std::collections::BTreeMap::new();
    for i in 0..12_u64 {
        let mut profile = format!("desc: run {i}\ncmd: x {i}\nevents: Ir\n");
        let mut total = 0;
        for file in 0..40 {
            profile += &format!("fl=file{}\n", (file * (i + 3)) % 50);
            for function in 0..5 {
                profile += &format!("fn=f{}\n", (function * (i + 1)) % 7);
                for line in 0..50 {
                    let line = (line * (2 * i + 1)) % 97;
                    profile += &format!("{line} {}\n", i + line);
                    total += i + line;
                    let key = ((file * (i + 3)) % 50, (function * (i + 1)) % 7, line);
                    *expected.entry(key).or_insert(0) += i + line;
                }
            }
        }
        profile += &format!("summary: {total}\n");
        names.push(format!("p{i}"));
        fs::write(folder.path().join(&names[i as usize]), profile).unwrap();
    }
    let args: Vec<&str> = names.iter().map(String::as_str).collect();
    let at_once = run(folder.path(), &args).stdout;
    fs::write(folder.path().join("sum"), run(folder.path(), &args[..1]).stdout).unwrap();
    for name in &args[1..] {
        assert!(run(folder.path(), &["-o", "sum", "sum", name]).status.success());
    }
    assert_eq!(text(&at_once), fs::read_to_string(folder.path().join("sum")).unwrap());
    let (mut found, mut file, mut function) = (std::collections::BTreeMap::new(), 0, 0);
    for line in text(&at_once).lines().skip(3) {
        if let Some(name) = line.strip_prefix("fl=file") {
            file = name.parse().unwrap();
        } else if let Some(name) = line.strip_prefix("fn=f") {
            function = name.parse().unwrap();
        } else if !line.starts_with("summary:") {
            let (number, count) = line.split_once(' ').unwrap();
            found.insert((file, function, number.parse().unwrap()), count.parse().unwrap());
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn a_missing_summary_is_warned_of_and_other_events_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cut"), "cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\n").unwrap();
    fs::write(folder.path().join("other"), "cmd: x\nevents: Ir Dr\nfl=a\nfn=f\n1 5\nsummary: 5\n").unwrap();
    let output = run(folder.path(), &["cut"]);
    assert!(output.status.success());
    let warning = "cg_merge: warning: cut: missing `summary:` line: the profile may be cut short\n";
    assert_eq!(text(&output.stderr), warning);
    let output = run(folder.path(), &["cut", "other"]);
    assert_eq!(output.status.code(), Some(1));
    let message = "cg_merge: error: other: events in data files don't match: `Ir Dr` here, `Ir` in cut\n";
    assert_eq!(text(&output.stderr), message);
    assert_eq!(run(folder.path(), &[]).status.code(), Some(2));
}
