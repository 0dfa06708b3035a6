//! Runs the golden cases of one tool; included by the golden test of each program.
//!
//! A case can only pass by comparison: a missing expectation, an unknown tool or an empty list of cases is a failure.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

/// A system header that one case prints.
const HEADER: &str = "/usr/include/c++/12/bits/stl_algo.h";

/// Runs all cases of `tool`, whose binary is `program`.
pub(crate) fn run(tool: &str, program: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let scratch = tempfile::tempdir().unwrap();
    copy(&golden, scratch.path());
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let cases = fs::read_to_string(golden.join("cases.tsv")).unwrap();
    let mut count = 0;
    let mut failures = BTreeMap::new();
    for row in cases.lines() {
        let mut fields = row.split('\t');
        let (Some(name), Some(case_tool), Some(arguments), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            panic!("cases.tsv: a row needs three fields: {row}");
        };
        if case_tool != tool {
            continue;
        }
        count += 1;
        if name == "ann-branch-cpp" && !Path::new(HEADER).exists() {
            assert!(std::env::var_os("CI").is_none(), "{HEADER} is missing");
            eprintln!("skipped {name}: {HEADER} is missing");
            continue;
        }
        let output =
            Command::new(program).args(arguments.split(' ')).current_dir(scratch.path()).output().expect("it runs");
        let expected = golden.join("expected");
        if bless {
            write(&expected, name, program, tool, &output);
        } else if let Err(problem) = compare(&expected, name, program, tool, &output) {
            failures.insert(name.to_owned(), problem);
        }
    }
    assert!(count > 0, "cases.tsv has no case of {tool}");
    for (name, problem) in &failures {
        eprintln!("{name}: {problem}");
    }
    assert!(failures.is_empty(), "{} of {count} cases failed", failures.len());
}

fn compare(expected: &Path, name: &str, program: &str, tool: &str, output: &Output) -> Result<(), String> {
    let read = |ending: &str| {
        let path = expected.join(format!("{name}.{ending}"));
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let (stdout, stderr) = (read("stdout")?, String::from_utf8(read("stderr")?).unwrap());
    let exit: i32 = String::from_utf8(read("exit")?).unwrap().trim().parse().map_err(|_| "bad .exit file")?;
    let code = output.status.code().ok_or("ended by a signal")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    if (exit == 0) != (code == 0) {
        return Err(format!("exit status {code} instead of {exit}: {complaint}"));
    }
    if exit != 0 {
        let missing: Vec<String> =
            causes(name, &stderr).into_iter().filter(|cause| !complaint.contains(cause)).collect();
        return if missing.is_empty() { Ok(()) } else { Err(format!("{complaint:?} lacks {missing:?}")) };
    }
    let own = normal(&output.stdout, program, tool);
    // The reference's order among equal costs is random.
    let bag = tool == "callgrind_annotate";
    let comparable = |text: &[u8]| {
        let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        if bag {
            lines.sort();
        }
        lines
    };
    if comparable(&own) == comparable(&stdout) {
        return Ok(());
    }
    let (own, stdout) =
        if bag { (comparable(&own).join(&b'\n'), comparable(&stdout).join(&b'\n')) } else { (own, stdout) };
    let (own, stdout) = (String::from_utf8_lossy(&own), String::from_utf8_lossy(&stdout));
    let mut lines = own.lines().zip(stdout.lines()).enumerate();
    Err(match lines.find(|(_, (own, expected))| own != expected) {
        Some((i, (own, expected))) => format!("line {}:\n  got      {own:?}\n  expected {expected:?}", i + 1),
        None => format!("{} lines instead of {}", own.lines().count(), stdout.lines().count()),
    })
}

/// What our message must say, given the reference's.
fn causes(name: &str, stderr: &str) -> Vec<String> {
    if name == "err-no-fl" {
        // The reference only notices that counts got lost; we say which line loses them.
        return vec!["bad/no-fl.cgout:3: ".to_owned()];
    }
    let message = stderr.split_once(": error: ").map_or(stderr, |(_, message)| message).trim_end();
    if let Some((cause, file)) = message.strip_prefix("[Errno 2] ").and_then(|rest| rest.split_once(": ")) {
        return vec![cause.to_owned(), file.trim_matches('\'').to_owned()];
    }
    message.lines().map(str::to_owned).collect()
}

fn write(expected: &Path, name: &str, program: &str, tool: &str, output: &Output) {
    let write = |ending: &str, bytes: &[u8]| fs::write(expected.join(format!("{name}.{ending}")), bytes).unwrap();
    write("stdout", &normal(&output.stdout, program, tool));
    write("stderr", &output.stderr);
    write("exit", format!("{}\n", output.status.code().unwrap()).as_bytes());
}

/// The output with the program's path reduced to its name.
fn normal(stdout: &[u8], program: &str, tool: &str) -> Vec<u8> {
    let (long, short) = (format!("Invocation:       {program} "), format!("Invocation:       {tool} "));
    let lines = stdout.split_inclusive(|byte| *byte == b'\n');
    lines
        .flat_map(|line| match line.strip_prefix(long.as_bytes()) {
            Some(rest) => [short.as_bytes(), rest].concat(),
            None => line.to_vec(),
        })
        .collect()
}

/// Copies a folder; everything but profiles is made old.
fn copy(from: &Path, to: &Path) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800);
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target: PathBuf = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&path, &target);
        } else {
            fs::write(&target, fs::read(&path).unwrap()).unwrap();
            if path.extension().is_none_or(|ending| ending != "cgout" && ending != "clout") {
                File::options().write(true).open(&target).unwrap().set_modified(old).unwrap();
            }
        }
    }
}
