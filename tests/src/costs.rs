//! All events of a `cachegrind.out` file, by line of the source and by function: what the oracles of the simulations compare.
//! Lines are of files alone, not of functions, since tools name what has no symbol differently.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// File name without folders, and line.
pub type Line = (String, u64);

/// The counts of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Names of the events.
    pub events: Vec<String>,
    /// Counts by line, one for each event; lines with zeros only are left out.
    pub lines: BTreeMap<Line, Vec<u64>>,
    /// Counts by path of the file and name of the function, likewise.
    pub functions: BTreeMap<(String, String), Vec<u64>>,
}

impl Costs {
    /// Reads a profile.
    ///
    /// # Errors
    /// What is not of this format, and a summary that is not the sum of the lines.
    pub fn parse(bytes: &[u8]) -> Result<Costs> {
        let text = String::from_utf8_lossy(bytes);
        let mut costs = Costs::default();
        let (mut path, mut function) = (String::new(), String::new());
        let mut summary = None;
        for (i, line) in text.lines().enumerate() {
            let at = || format!("line {}: {line:?}", i + 1);
            ensure!(summary.is_none(), "{}: text after `summary:`", at());
            if let Some(names) = line.strip_prefix("events: ") {
                costs.events = names.split_whitespace().map(str::to_owned).collect();
            } else if let Some(name) = line.strip_prefix("fl=").or_else(|| line.strip_prefix("fi=")) {
                path = name.to_owned();
                function.clear();
            } else if let Some(name) = line.strip_prefix("fn=") {
                function = name.to_owned();
            } else if let Some(n) = line.strip_prefix("summary:") {
                summary = Some(numbers(n).with_context(at)?);
            } else if line.starts_with(|c: char| c.is_ascii_digit()) {
                let mut n = numbers(line).with_context(at)?;
                ensure!((2..=costs.events.len() + 1).contains(&n.len()), "{}: wrong number of counts", at());
                n.resize(costs.events.len() + 1, 0);
                add(&mut costs.functions, (path.clone(), function.clone()), &n[1..]);
                costs.add((base_name(&path), n[0]), &n[1..]);
            } else if !["desc:", "cmd:", "#"].iter().any(|p| line.starts_with(p)) && !line.is_empty() {
                bail!("{}: not a line of this format", at());
            }
        }
        let mut summary = summary.context("no `summary:` line")?;
        summary.resize(costs.events.len(), 0);
        let sums = costs.sums();
        ensure!(summary == sums, "summary says {summary:?}, the lines add up to {sums:?}");
        Ok(costs)
    }

    /// Adds counts to a line. Code without a line is of no file: tools differ in what they know of it.
    pub fn add(&mut self, mut line: Line, counts: &[u64]) {
        if line.1 == 0 {
            line.0 = "???".to_owned();
        }
        add(&mut self.lines, line, counts);
    }

    /// Sums over all lines.
    pub fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.events.len()];
        for counts in self.lines.values() {
            for (sum, n) in sums.iter_mut().zip(counts) {
                *sum += n;
            }
        }
        sums
    }

    /// Where the two differ in one of `events`, a line for each difference.
    ///
    /// # Panics
    /// If one of the two lacks an event.
    pub fn differences(&self, other: &Costs, events: &[&str]) -> Vec<String> {
        let column = |c: &Costs, e: &str| {
            c.events.iter().position(|name| name == e).unwrap_or_else(|| panic!("no {e} among {:?}", c.events))
        };
        let mut found = Vec::new();
        let mut lines: Vec<&Line> = self.lines.keys().chain(other.lines.keys()).collect();
        lines.sort();
        lines.dedup();
        for line in lines {
            let count = |c: &Costs, e| c.lines.get(line).map_or(0, |n| n[column(c, e)]);
            let differ: Vec<String> = events
                .iter()
                .map(|e| (e, count(self, e), count(other, e)))
                .filter(|(_, a, b)| a != b)
                .map(|(e, a, b)| format!("{e} {a} expected, {b} got"))
                .collect();
            if !differ.is_empty() {
                found.push(format!("{}:{}: {}", line.0, line.1, differ.join("; ")));
            }
        }
        found
    }
}

fn add<K: Ord>(all: &mut BTreeMap<K, Vec<u64>>, key: K, counts: &[u64]) {
    if counts.iter().all(|&n| n == 0) {
        return;
    }
    let sums = all.entry(key).or_insert_with(|| vec![0; counts.len()]);
    for (sum, n) in sums.iter_mut().zip(counts) {
        *sum += n;
    }
}

fn numbers(text: &str) -> Result<Vec<u64>> {
    // A dot stands for an event that a line does not have.
    text.split_whitespace()
        .map(|w| if w == "." { Ok(0) } else { w.parse().with_context(|| format!("{w:?} is no count")) })
        .collect()
}

/// A path without its folders.
pub fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "desc: D1 cache: 64 B\ncmd: x\nevents: Ir Dr\nfl=/s/a.c\nfn=f\n3 10 2\n3 1\nsummary: 11 2\n";

    #[test]
    fn sums_a_line() {
        let c = Costs::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(c.lines[&("a.c".to_owned(), 3)], [11, 2]);
        assert_eq!(c.functions[&("/s/a.c".to_owned(), "f".to_owned())], [11, 2]);
    }

    #[test]
    fn differences_name_line_and_event() {
        let a = Costs::parse(GOOD.as_bytes()).unwrap();
        let b = Costs::parse(GOOD.replace("3 10 2", "3 10 3").replace("11 2", "11 3").as_bytes()).unwrap();
        assert_eq!(a.differences(&b, &["Ir", "Dr"]), ["a.c:3: Dr 2 expected, 3 got"]);
        assert!(a.differences(&b, &["Ir"]).is_empty());
    }

    #[test]
    fn refuses_a_wrong_summary() {
        assert!(Costs::parse(GOOD.replace("11 2", "11 3").as_bytes()).is_err());
    }
}
