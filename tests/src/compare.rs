//! Says where two profiles or outcomes differ, one line for each difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use crate::run::Outcome;

/// Differences between two tables of counts, as `key: expected N, got M`; keys for which `skip` holds are left out.
pub fn differences<K: Ord + Clone + Debug>(
    expected: &BTreeMap<K, u64>,
    got: &BTreeMap<K, u64>,
    skip: impl Fn(&K) -> bool,
) -> Vec<String> {
    let keys: BTreeSet<&K> = expected.keys().chain(got.keys()).collect();
    let count = |m: &BTreeMap<K, u64>, k| m.get(k).copied().unwrap_or(0);
    keys.into_iter()
        .filter(|k| !skip(k) && count(expected, k) != count(got, k))
        .map(|k| format!("{k:?}: expected {}, got {}", count(expected, k), count(got, k)))
        .collect()
}

/// Fails, listing the first forty differences, unless there are none.
///
/// # Panics
/// If there is a difference.
pub fn assert_none(what: &str, differences: &[String]) {
    let shown = &differences[..differences.len().min(40)];
    assert!(differences.is_empty(), "{what}: {} differ:\n  {}", differences.len(), shown.join("\n  "));
}

/// Fails unless both runs gave the same output and ended the same way.
///
/// # Panics
/// If they differ.
pub fn assert_same(what: &str, native: &Outcome, got: &Outcome, log: &str) {
    assert!(
        native == got,
        "{what}: behaves differently\n native:\n{}\n under test:\n{}\n log: {}",
        native.show(),
        got.show(),
        log.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n   ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_off_by_one_is_seen() {
        let a = BTreeMap::from([("f", 10), ("g", 3)]);
        let b = BTreeMap::from([("f", 11), ("g", 3)]);
        assert_eq!(differences(&a, &b, |_| false), [r#""f": expected 10, got 11"#]);
        assert!(differences(&a, &b, |k| *k == "f").is_empty());
        assert_eq!(differences(&a, &BTreeMap::new(), |_| false).len(), 2);
    }
}
