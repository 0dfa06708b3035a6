//! Where the program under test and the reference are.
//!
//! The program under test is `target/<profile>/grind` beside the test executable. Cargo has no stable way for one package
//! to depend on another's executable, so the first test that needs it runs `cargo build -p grind` with the same profile;
//! plain `cargo test --workspace` therefore works on a fresh clone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The command, as words, that the tests put before a program to profile it: grind whose emitted code follows calls from the first
/// one on, unless `--told-first` comes behind it.
///
/// # Panics
/// If grind cannot be built.
pub fn under_test() -> &'static [String] {
    // The outcome is kept, so that a failed build is reported by every test but tried once.
    static BIN: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    let bin = BIN.get_or_init(|| match std::env::var("GRIND_BIN") {
        Ok(words) if !words.trim().is_empty() => {
            let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            // The tests change directory, so a relative path is taken from the workspace root.
            let from_root = workspace_root().join(&words[0]);
            if words[0].contains('/') && from_root.exists() {
                words[0] = from_root.display().to_string();
            }
            Ok(words)
        }
        // Most programs here are so short that their calls would only ever be told.
        _ => Ok(vec![build_grind()?.display().to_string(), "--callgrind:told-first=0".to_owned()]),
    });
    bin.as_ref().unwrap_or_else(|e| panic!("{e}"))
}

/// Whether the tests are being tested: something other than grind is in its place.
pub fn is_replaced() -> bool {
    std::env::var("GRIND_BIN").is_ok_and(|v| !v.trim().is_empty())
}

/// The root of the workspace.
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace")
}

/// A folder of this crate (`programs`, `semantics`).
pub fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The folder of the programs of this build, in which those of `packages` are as the sources are now. Where `GRIND_BUILT` is set,
/// whoever runs the tests says that they are: `cargo test --workspace` has built all of them before the first test runs, and
/// would build much of that again for a few packages, whose dependencies have other features then.
///
/// # Errors
/// What failed, if building did.
pub fn build(packages: &[&str]) -> Result<PathBuf, String> {
    let exe = std::env::current_exe().expect("the path of the test executable");
    // target/<profile>/deps/<test>
    let dir = exe.parent().and_then(Path::parent).expect("target/<profile>/deps");
    if std::env::var_os("GRIND_BUILT").is_some() {
        return Ok(dir.to_path_buf());
    }
    let profile = match dir.file_name().and_then(|n| n.to_str()).expect("a profile folder") {
        "debug" => "dev",
        other => other,
    };
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--bins", "--profile", profile]).current_dir(workspace_root());
    for package in packages {
        command.args(["-p", package]);
    }
    let built = command.status().expect("cargo can be run");
    if built.success() { Ok(dir.to_path_buf()) } else { Err(format!("`{command:?}` failed: {built}")) }
}

fn build_grind() -> Result<PathBuf, String> {
    let bin = build(&["grind"])?.join("grind");
    if bin.is_file() { Ok(bin) } else { Err(format!("{} is missing after `cargo build -p grind`", bin.display())) }
}

/// The path of a program in `PATH`.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|p| p.exists());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(program)).find(|p| p.is_file())
}

/// Whether all `programs` are there; if not, says what is missing. A missing program fails the test where `CI` is set.
pub fn have(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|p| find(p).is_none()).collect();
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "not found: {missing:?} (CI is set, so nothing may be skipped)");
    eprintln!("skipped: not found: {missing:?}");
    false
}

/// The reference command: exact instruction counts, no simulation.
pub fn valgrind() -> Vec<String> {
    ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--vex-guest-chase=no"].map(str::to_owned).to_vec()
}
