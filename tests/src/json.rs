//! The keys of JSON reports: those that a program prints, and those that its manual names.

use std::collections::BTreeSet;

/// The keys of a JSON text that is written one key a line.
#[must_use]
pub fn printed(json: &str) -> BTreeSet<String> {
    let named = |line: &str| line.trim_start().strip_prefix('"')?.split_once("\": ").map(|(key, _)| key.to_owned());
    json.lines().filter_map(named).collect()
}

/// The keys that the section on JSON names in bold; `manual` is roff. None if it has no such section.
#[must_use]
pub fn documented(manual: &str) -> BTreeSet<String> {
    let section = manual.split_once(".SH JSON\n").map_or("", |(_, section)| section);
    let section = section.split_once("\n.SH ").map_or(section, |(section, _)| section);
    let bold = section.lines().filter_map(|line| line.strip_prefix(".B ").or_else(|| line.strip_prefix(".BR ")));
    let words = bold.flat_map(str::split_whitespace).filter(|word| word.len() > 1);
    words.filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')).map(str::to_owned).collect()
}
