//! The debug-info reader against the reference tool, against odd layouts of debug files, and against broken files.
//!
//! Programs are compiled on the spot; a test whose tools are missing says so and passes, except that the reference tool
//! must be there if the environment variable CI is set.

mod callgrind;
mod files;
mod hostile;
mod inlines;
mod names;
mod oracle;
mod types;

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The standard place of `tool`, if it is installed.
fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whether all of `names` are installed; says which is not.
fn have(names: &[&str]) -> bool {
    let missing: Vec<_> = names.iter().filter(|n| tool(n).is_none()).collect();
    if !missing.is_empty() {
        eprintln!("skipped: {missing:?} not installed");
    }
    missing.is_empty()
}

/// Runs a command in `folder` and panics with its output if it fails.
fn run<S: AsRef<OsStr>>(folder: &Path, program: &str, args: &[S]) {
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let list: Vec<_> = args.iter().map(|a| a.as_ref().to_string_lossy().into_owned()).collect();
    assert!(
        output.status.success(),
        "{program} {list:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
