//! Names as a report shows them: of symbols as a programmer would write them, of files without their folders.
//!
//! A name that has no other form is shown as it is.

/// The last part of a path.
pub(crate) fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The name that a programmer would write, as profiles have it.
pub(crate) fn demangled(name: &str) -> String {
    let shown = grind_symbols::demangle(name.as_bytes());
    shown.map_or_else(|| name.to_owned(), |shown| String::from_utf8_lossy(&shown).into_owned())
}
