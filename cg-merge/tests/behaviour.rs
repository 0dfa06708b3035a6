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
    let message = "cg_merge: error: /dev/full: cannot write the output file: No space left on device\n";
    assert_eq!(text(&full.stderr), message);
}

/// What a killed merge leaves behind: nothing, or everything.
#[test]
fn a_merge_that_is_interrupted_leaves_no_half_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = String::from("cmd: x\nevents: Ir\n");
    for file in 0..2000 {
        profile += &format!("fl=file{file:04}\nfn=f\n");
        (0..50).for_each(|line| profile += &format!("{line} 1\n"));
    }
    profile += "summary: 100000\n";
    fs::write(folder.path().join("a"), &profile).unwrap();
    let start = std::time::Instant::now();
    assert!(run(folder.path(), &["-o", "whole", "a", "a"]).status.success());
    let whole = fs::read(folder.path().join("whole")).unwrap();
    let step = start.elapsed() / 12;
    for (i, signal) in (0..15).zip(["INT", "TERM", "KILL"].into_iter().cycle()) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cg_merge"))
            .args(["-o", "out", "a", "a"])
            .current_dir(folder.path())
            .spawn()
            .unwrap();
        std::thread::sleep(step * i);
        let kill = format!("kill -{signal} {}", child.id());
        Command::new("sh").args(["-c", &kill]).stderr(std::process::Stdio::null()).status().unwrap();
        child.wait().unwrap();
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name != "a" && name != "whole");
        if !names.is_empty() {
            assert_eq!(names, ["out"], "after {signal}");
            assert!(fs::read(folder.path().join("out")).unwrap() == whole, "after {signal}");
            fs::remove_file(folder.path().join("out")).unwrap();
        }
    }
}

#[test]
fn progress_is_shown_on_a_terminal_and_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let profile = "cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5\n";
    fs::write(folder.path().join("a"), profile).unwrap();
    // `script` runs a command on a terminal of its own.
    let slow = format!("(sleep 2.5; cat a) > pipe & {} pipe > out; wait", env!("CARGO_BIN_EXE_cg_merge"));
    let Ok(shown) = Command::new("script").args(["-qec", &slow, "/dev/null"]).current_dir(folder.path()).output()
    else {
        assert!(std::env::var_os("CI").is_none(), "script (package bsdutils) is missing");
        eprintln!("skipped: script is not installed");
        return;
    };
    let shown = text(&shown.stdout);
    assert!(shown.contains("\rcg_merge: read 0 MB\x1b[K"), "{shown:?}");
    assert!(shown.ends_with("\r\x1b[K"), "{shown:?}");
    assert_eq!(fs::read_to_string(folder.path().join("out")).unwrap(), profile);
    // Neither in a pipe nor for short work.
    let slow = format!("(sleep 1.5; cat a) > pipe & {} pipe 2>&1 | cat; wait", env!("CARGO_BIN_EXE_cg_merge"));
    let piped = Command::new("sh").args(["-c", &slow]).current_dir(folder.path()).output().unwrap();
    assert_eq!(text(&piped.stdout), profile);
    let short = format!("{} a > out", env!("CARGO_BIN_EXE_cg_merge"));
    let short = Command::new("script").args(["-qec", &short, "/dev/null"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(text(&short.stdout), "");
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
