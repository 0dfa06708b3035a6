//! Contexts of the statistics at the end of a run: what each is called, where its profile goes, and the tables that end the
//! log. The counts themselves come from the engine and the simulator; nothing here changes them.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cg_format::show::commas;
use grind_analysis::simulator::Reuse;

/// A context as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its number.
    pub context: u64,
    /// Its name, or its number in decimal.
    pub name: String,
}

impl Named {
    /// The context `context`, whose name is `name` if the program gave it one.
    #[must_use]
    pub fn new(context: u64, name: Option<&[u8]>) -> Self {
        let name = match name {
            // The name is part of lines of text.
            Some(name) => String::from_utf8_lossy(name).replace(|c: char| c.is_control(), " ").trim().to_owned(),
            None => context.to_string(),
        };
        Self { context, name }
    }

    /// The text of the line `desc:` that names it in its profile.
    #[must_use]
    pub fn description(&self) -> Vec<u8> {
        format!("Context:          {}", self.name).into_bytes()
    }
}

/// Where the profiles of `contexts` go: beside `main`, each with the context's name in its own. No two are the same.
#[must_use]
pub fn paths(main: &Path, contexts: &[Named]) -> Vec<PathBuf> {
    let mut taken = HashSet::new();
    contexts
        .iter()
        .map(|c| {
            let keep = |c: char| c.is_ascii_alphanumeric() || "-_.+=,".contains(c);
            let mut tidy: String = c.name.chars().map(|c| if keep(c) { c } else { '_' }).take(100).collect();
            if tidy.is_empty() {
                tidy.push('_');
            }
            let mut unique = tidy.clone();
            let mut n = 2;
            while !taken.insert(unique.clone()) {
                unique = format!("{tidy}~{n}");
                n += 1;
            }
            let mut path = OsString::from(main);
            path.push(format!(".ctx-{unique}"));
            path.into()
        })
        .collect()
}

/// The table contexts x totals: a column for each of `events`, and the share of the first one. `totals` is by context, the
/// sum last.
#[must_use]
pub fn totals(contexts: &[Named], events: &[&str], totals: &[Vec<i128>]) -> String {
    let first = |row: &[i128]| row.first().copied().unwrap_or_default();
    let all = totals.last().map_or(0, |row| first(row));
    let mut head = vec!["context".to_owned()];
    head.extend(events.iter().map(|e| (*e).to_owned()));
    head.insert(2.min(head.len()), String::new());
    let mut rows = vec![head];
    let names = contexts.iter().map(|c| c.name.as_str()).chain(["(all)"]);
    for (name, counts) in names.zip(totals) {
        let mut row = vec![name.to_owned()];
        row.extend(counts.iter().map(|n| commas(*n)));
        #[allow(clippy::cast_precision_loss, reason = "a percentage to be read by people")]
        let share = if all == 0 { 0.0 } else { first(counts) as f64 * 100.0 / all as f64 };
        row.insert(2.min(row.len()), format!("{share:.1}%"));
        rows.push(row);
    }
    format!("Contexts:\n{}", aligned(&rows))
}

/// The matrix of reuses in one level of caches; empty if there were none.
#[must_use]
pub fn reuse(level: &str, contexts: &[Named], reuse: &Reuse) -> String {
    if reuse.is_empty() {
        return String::new();
    }
    let involved = |c: &&Named| reuse.keys().any(|(finder, owner)| [*finder, *owner].contains(&c.context));
    let shown: Vec<&Named> = contexts.iter().filter(involved).collect();
    let mut rows = vec![vec![format!("{level}: found by \\ from")]];
    rows[0].extend(shown.iter().map(|c| c.name.clone()));
    for finder in &shown {
        let mut row = vec![finder.name.clone()];
        let cell = |owner: &&Named| reuse.get(&(finder.context, owner.context)).copied().unwrap_or_default();
        row.extend(shown.iter().map(|owner| commas(cell(owner).into())));
        rows.push(row);
    }
    aligned(&rows)
}

/// Rows of cells: the first column to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |k: usize| rows.iter().filter_map(|r| r.get(k)).map(|c| c.chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = format!("  {:<w$}", row[0], w = widths[0]);
        for (cell, w) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>w$}");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.pop();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts(names: &[&str]) -> Vec<Named> {
        names.iter().enumerate().map(|(i, n)| Named { context: i as u64, name: (*n).to_owned() }).collect()
    }

    #[test]
    fn paths_are_tidy_and_differ() {
        let all = contexts(&["0", "conv 1/a", "conv_1_a", "", "0", ".."]);
        let paths = paths(Path::new("d/out.7"), &all);
        let shown: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        let expected = ["0", "conv_1_a", "conv_1_a~2", "_", "0~2", ".."].map(|n| format!("d/out.7.ctx-{n}"));
        assert_eq!(shown, expected);
    }

    #[test]
    fn names_are_one_line() {
        assert_eq!(Named::new(7, None).name, "7");
        let named = Named::new(1 << 32, Some(b"a\nb\xff "));
        assert_eq!(named.name, "a b\u{fffd}");
        assert_eq!(named.description(), "Context:          a b\u{fffd}".as_bytes());
    }

    #[test]
    fn tables_are_aligned() {
        let all = contexts(&["0", "conv1"]);
        assert_eq!(
            totals(&all, &["Ir", "Dr"], &[vec![1000, 5], vec![3000, 0], vec![4000, 5]]),
            "Contexts:\n  context     Ir          Dr\n  0        1,000   25.0%   5\n  conv1    3,000   75.0%   0\n  \
             (all)    4,000  100.0%   5"
        );
        assert_eq!(
            totals(&all, &["Ir"], &[vec![0], vec![0], vec![0]]),
            "Contexts:\n  context  Ir\n  0         0  0.0%\n  conv1     0  0.0%\n  (all)     0  0.0%"
        );
        assert_eq!(reuse("D1", &all, &Reuse::new()), "");
        let found = Reuse::from([((1, 0), 12), ((1, 1), 3456)]);
        assert_eq!(
            reuse("D1", &all, &found),
            "  D1: found by \\ from   0  conv1\n  0                     0      0\n  conv1                12  3,456"
        );
    }
}
