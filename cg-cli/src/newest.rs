//! The newest profile here: what is meant where none is named, and what may have been meant where one is not found.
//!
//! Only names in the current folder are looked at, never contents. Of profiles of the same time the last by name is taken,
//! so that the answer does not depend on the order of a folder.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// How profiles of cachegrind are called.
pub const CACHEGRIND: &str = "cachegrind.out";
/// How profiles of callgrind are called.
pub const CALLGRIND: &str = "callgrind.out";
/// How files of data objects are called.
pub const MEMORY: &str = "mem.out";
/// What the profile beside such a file is called behind it.
const BESIDE: &[u8] = b".data";
/// What stands between the name of a profile of all contexts and that of one: such are shown with the former.
const CONTEXT: &[u8] = b".ctx-";

/// The name of the newest profile whose name begins with `start`, if there is one.
#[must_use]
pub fn profile(start: &str) -> Option<OsString> {
    let entries = fs::read_dir(".").ok()?.flatten();
    let profiles = entries.filter_map(|entry| {
        let name = entry.file_name();
        let bytes = name.as_bytes();
        if !bytes.starts_with(start.as_bytes()) || start == MEMORY && bytes.ends_with(BESIDE) {
            return None;
        }
        if bytes.windows(CONTEXT.len()).any(|part| part == CONTEXT) {
            return None;
        }
        let meta = fs::metadata(entry.path()).ok().filter(|meta| meta.is_file())?;
        Some((meta.modified().ok()?, name))
    });
    profiles.max().map(|(_, name)| name)
}

/// What to say behind "no such file" about the newest profiles that there are; empty if there are none.
#[must_use]
pub fn instead() -> String {
    let names = [CACHEGRIND, CALLGRIND].into_iter().filter_map(profile);
    let names: Vec<String> = names.map(|name| format!("'{}'", name.display())).collect();
    if names.is_empty() { String::new() } else { format!(" (the newest profile here is {})", names.join(", or ")) }
}
