//! What cargo calls instead of an executable: becomes grind, which runs it, and notes where the profile will be.
//!
//! Everything that must be known comes in variables of the environment, which grind and the program do not see any more.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The first argument of a call as runner.
pub(crate) const WORD: &str = "--as-runner";
/// Where profiles go.
pub(crate) const FOLDER: &str = "CARGO_GRIND_FOLDER";
/// The file that gets the path of each profile, a line each.
pub(crate) const LIST: &str = "CARGO_GRIND_LIST";
/// Options of grind, as [`joined`] puts them; the tool is the first.
pub(crate) const OPTIONS: &str = "CARGO_GRIND_OPTIONS";

/// What stands between options of grind in a variable; no option has it.
const SEPARATOR: u8 = 0x1f;

/// Options of grind as the value of a variable.
pub(crate) fn joined(options: &[OsString]) -> OsString {
    let words: Vec<&[u8]> = options.iter().map(|o| o.as_bytes()).collect();
    OsString::from_vec(words.join(&SEPARATOR))
}

/// Where a program of grind is: beside this one, or else wherever PATH leads.
pub(crate) fn program(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(name));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

/// The name of an executable without the hash that cargo gives to those of tests.
fn stem(executable: &Path) -> String {
    let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match name.rsplit_once('-') {
        Some((stem, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => stem.to_owned(),
        _ => name,
    }
}

/// A profile's path that this call of cargo has not used yet: tests of a library and of a program may have one name.
fn unused(folder: &Path, tool: &str, name: &str, list: &str) -> PathBuf {
    let taken = |path: &PathBuf| list.lines().any(|l| Path::new(l) == path);
    let first = folder.join(format!("{tool}.out.{name}"));
    let others = (2..).map(|n| folder.join(format!("{tool}.out.{name}.{n}")));
    std::iter::once(first).chain(others).find(|path| !taken(path)).unwrap_or_default()
}

/// Becomes grind with the executable and its arguments.
///
/// # Errors
/// Only those from before grind runs.
pub(crate) fn run(words: &[OsString]) -> Result<u8> {
    let variable = |name: &str| std::env::var_os(name).with_context(|| format!("{name} is not set: cargo calls this"));
    let (folder, list, options) = (variable(FOLDER)?, variable(LIST)?, variable(OPTIONS)?);
    let executable = words.first().context("no executable is named")?;
    let options: Vec<&OsStr> = options.as_bytes().split(|b| *b == SEPARATOR).map(OsStr::from_bytes).collect();
    let tool = options.first().and_then(|o| o.to_str()).and_then(|o| o.strip_prefix("--tool=")).context("a tool")?;
    let listed = std::fs::read_to_string(&list).unwrap_or_default();
    let profile = unused(Path::new(&folder), tool, &stem(Path::new(executable)), &listed);
    let mut out = OpenOptions::new().append(true).create(true).open(&list).context("the list of profiles")?;
    writeln!(out, "{}", profile.display())?;
    // Old news would look like new.
    let _ = std::fs::remove_file(&profile);
    let mut file = OsString::from(format!("--{tool}-out-file="));
    file.push(literal(&profile));
    let mut command = Command::new(program("grind"));
    command.arg("-q").args(&options).arg(file).arg("--").args(words);
    let error = command.env_remove(FOLDER).env_remove(LIST).env_remove(OPTIONS).exec();
    Err(error).with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))
}

/// A path as `--…-out-file` takes it literally.
fn literal(path: &Path) -> OsString {
    let mut bytes = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        bytes.extend(std::iter::repeat_n(*byte, if *byte == b'%' { 2 } else { 1 }));
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_named_after_what_ran() {
        assert_eq!(stem(Path::new("/t/release/deps/parser-0123456789abcdef")), "parser");
        assert_eq!(stem(Path::new("/t/release/my-tool")), "my-tool");
        let folder = Path::new("/t/grind");
        assert_eq!(unused(folder, "cachegrind", "a", ""), folder.join("cachegrind.out.a"));
        let list = "/t/grind/cachegrind.out.a\n/t/grind/cachegrind.out.a.2\n";
        assert_eq!(unused(folder, "cachegrind", "a", list), folder.join("cachegrind.out.a.3"));
    }

    #[test]
    fn a_percent_sign_in_a_path_is_itself() {
        assert_eq!(literal(Path::new("/100%p/x")), "/100%%p/x");
    }
}
