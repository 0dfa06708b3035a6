//! What the golden cases do not show: JSON that is documented, odd inputs, readers that go away.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use grind_tests::json::{documented, printed};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/profiles").join(name)
}

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mem_annotate")).args(args).current_dir(folder).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn the_manual_describes_every_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = |name| text(&run(folder.path(), &["--json", &golden(name).display().to_string()]).stdout);
    let printed: BTreeSet<_> = ["triad.mem", "counts.mem"].into_iter().flat_map(|name| printed(&json(name))).collect();
    let documented = documented(include_str!("../src/narrative.roff"));
    let missing: BTreeSet<_> = printed.difference(&documented).collect();
    assert!(missing.is_empty() && printed.len() > 20, "{missing:?}");
}

#[test]
fn the_newest_file_is_shown_if_none_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = run(folder.path(), &[]);
    assert!(!none.status.success() && text(&none.stderr).contains("no mem.out* here"), "{none:?}");
    fs::copy(golden("triad.mem"), folder.path().join("mem.out.7")).expect("a copy");
    fs::write(folder.path().join("mem.out.8.data"), "events: D1mr\n").expect("a file");
    let newest = run(folder.path(), &[]);
    assert!(newest.status.success() && text(&newest.stderr).contains("this is 'mem.out.7'"), "{newest:?}");
    let data = run(folder.path(), &["mem.out.8.data"]);
    assert!(data.status.code() == Some(1) && text(&data.stderr).contains("cg_annotate reads it"), "{data:?}");
    let one = run(folder.path(), &["--diff", "mem.out.7"]);
    assert!(!one.status.success() && text(&one.stderr).contains("--diff takes two files"), "{one:?}");
}

#[test]
fn standard_input_and_readers_that_go_away() {
    let whole = fs::read(golden("transpose.mem")).expect("a file");
    let program = || Command::new(env!("CARGO_BIN_EXE_mem_annotate"));
    let mut child = program().arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(&whole).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && text(&output.stdout).contains("Data file:        <stdin>"), "{output:?}");
    let mut child = program();
    let mut child =
        child.arg(golden("transpose.mem")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// Whatever is changed in a file: a report, or a message and a status.
#[test]
fn damaged_files_are_refused_or_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read(golden("triad.mem")).expect("a file");
    let mut state = 11u64;
    let mut random = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut shown = 0;
    for _ in 0..150 {
        let mut bytes = whole.clone();
        for _ in 0..=random(2) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = b"0123456789-"[random(11)],
                1 => bytes.insert(at, b"9\"{}[],:-\n"[random(10)]),
                _ => bytes.truncate(at + 1),
            }
        }
        fs::write(folder.path().join("m"), &bytes).expect("a file");
        let output = run(folder.path(), &["--threshold=0", "m"]);
        match output.status.code() {
            Some(0) => shown += 1,
            Some(1) => assert!(text(&output.stderr).starts_with("mem_annotate: error: m: "), "{output:?}"),
            _ => panic!("{output:?}"),
        }
    }
    assert!(shown > 0, "some changes do no harm");
}
