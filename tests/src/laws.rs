//! Holds profiles of calls to the laws that are true of every call graph (see [`cg_format::callgrind::laws`]). Every test that
//! makes such a profile calls this; it must never expect anything of the program.

use cg_format::callgrind::laws;

/// Makes sure that the profile keeps the laws.
///
/// # Panics
/// If not, or if it cannot be read.
pub fn check(profile: &[u8], name: &str) {
    let found = laws::breaches(profile, name).unwrap_or_else(|error| panic!("{error}"));
    let shown: Vec<String> = found.iter().take(20).map(ToString::to_string).collect();
    assert!(found.is_empty(), "{name}: {} laws are broken:\n{}", found.len(), shown.join("\n"));
}
