//! What our writer makes of the reference's profiles, in the eyes of other programs: `tests/consumers/check` runs them.
//!
//! KCachegrind is left to the script alone, since it takes half a minute and a display.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use cg_format::callgrind::{WriteOptions, Writer, read_profile};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rewrites a profile and compares both; a program that is missing is skipped by the script, which says so.
fn compare(scratch: &Path, original: &Path, options: WriteOptions) {
    let profile = read_profile(File::open(original).unwrap(), &original.display().to_string()).unwrap();
    let rewritten = scratch.join("rewritten.out");
    Writer::new(options).profile(&mut File::create(&rewritten).unwrap(), &profile).unwrap();
    let output = Command::new(root().join("tests/consumers/check"))
        .arg("--quick")
        .args([&rewritten, original])
        .env("CALLGRIND_ANNOTATE", env!("CARGO_BIN_EXE_callgrind_annotate"))
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    eprintln!("{}\n{report}", original.display());
    assert!(output.status.success(), "{}: {report}", original.display());
}

#[test]
fn rewritten_profiles_mean_the_same_to_other_programs() {
    let scratch = tempfile::tempdir().unwrap();
    let compressed = WriteOptions::default();
    let plain = WriteOptions { compress_strings: false, compress_positions: false };
    for (name, options) in [
        ("wordfreq-plain", plain),
        ("wordfreq-instr", compressed),
        ("collatz-ctx", compressed),
        ("matmul-use", compressed),
    ] {
        let original = root().join(format!("tests/golden/profiles/{name}.clout"));
        compare(scratch.path(), &original.canonicalize().unwrap(), options);
    }
}

#[test]
fn a_fresh_profile_of_the_reference_is_read_and_rewritten() {
    let scratch = tempfile::tempdir().unwrap();
    let original = scratch.path().join("original.out");
    let run = Command::new("valgrind")
        .args(["-q", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes", "--branch-sim=yes"])
        .arg(format!("--callgrind-out-file={}", original.display()))
        .args(["sort", "/dev/null"])
        .output();
    match run {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "valgrind: {error}");
            eprintln!("skipped: valgrind: {error}");
            return;
        }
    }
    compare(scratch.path(), &original, WriteOptions::default());
}
