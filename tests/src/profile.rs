//! A naive reader of `cachegrind.out` files, a second one beside cg-format's so that neither hides the other's mistakes.
//!
//! It accepts nothing that the format does not allow, and it checks that `summary:` is the sum of the lines.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// File, function and line.
pub type Place = (String, String, u64);

/// The instruction counts of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The command line in the file.
    pub command: String,
    /// Instructions by place; no zero counts.
    pub ir: BTreeMap<Place, u64>,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// Anything that is not a well-formed file with an `Ir` event, and a summary that is not the sum.
    pub fn parse(bytes: &[u8]) -> Result<Profile> {
        let text = String::from_utf8_lossy(bytes);
        let mut p = Profile::default();
        let (mut file, mut function) = (String::new(), String::new());
        let mut column = None;
        let mut events = 0;
        let mut summary = None;
        for (i, line) in text.lines().enumerate() {
            let at = || format!("line {}: {line:?}", i + 1);
            ensure!(summary.is_none(), "{}: text after `summary:`", at());
            if let Some(cmd) = line.strip_prefix("cmd: ") {
                p.command = cmd.to_owned();
            } else if let Some(names) = line.strip_prefix("events: ") {
                let names: Vec<_> = names.split_whitespace().collect();
                column = Some(names.iter().position(|n| *n == "Ir").context("no Ir among the events")?);
                events = names.len();
            } else if let Some(name) = line.strip_prefix("fl=") {
                file = name.to_owned();
                function.clear();
            } else if let Some(name) = line.strip_prefix("fn=") {
                ensure!(!file.is_empty(), "{}: `fn=` before `fl=`", at());
                function = name.to_owned();
            } else if let Some(costs) = line.strip_prefix("summary:") {
                summary = Some(numbers(costs).with_context(at)?);
            } else if line.starts_with(|c: char| c.is_ascii_digit()) {
                let numbers = numbers(line).with_context(at)?;
                let column = column.with_context(|| format!("{}: before `events:`", at()))?;
                ensure!(!function.is_empty(), "{}: before `fn=`", at());
                ensure!((2..=events + 1).contains(&numbers.len()), "{}: wrong number of counts", at());
                let count = numbers.get(column + 1).copied().unwrap_or(0);
                if count != 0 {
                    *p.ir.entry((file.clone(), function.clone(), numbers[0])).or_default() += count;
                }
            } else if !(line.starts_with("desc:") || line.starts_with('#') || line.is_empty()) {
                bail!("{}: not a line of this format", at());
            }
        }
        ensure!(!p.command.is_empty(), "no `cmd:` line");
        let summary = summary.context("no `summary:` line")?;
        let column = column.context("no `events:` line")?;
        let stated = summary.get(column).copied().unwrap_or(0);
        ensure!(stated == p.total(), "summary says {stated}, the lines add up to {}", p.total());
        Ok(p)
    }

    /// All instructions.
    pub fn total(&self) -> u64 {
        self.ir.values().sum()
    }

    /// Counts by file and function.
    pub fn functions(&self) -> BTreeMap<(String, String), u64> {
        let mut sums = BTreeMap::new();
        for ((file, function, _), n) in &self.ir {
            *sums.entry((file.clone(), function.clone())).or_default() += n;
        }
        sums
    }

    /// Counts by function alone.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for ((_, function, _), n) in &self.ir {
            *sums.entry(function.clone()).or_default() += n;
        }
        sums
    }
}

fn numbers(text: &str) -> Result<Vec<u64>> {
    text.split_whitespace().map(|w| w.parse().with_context(|| format!("{w:?} is no count"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "cmd: ./a b\nevents: Dr Ir\nfl=a.c\nfn=main\n3 1 10\n4 2 5\nfl=???\nfn=???\n0 0 7\nsummary: 3 22\n";

    #[test]
    fn reads_counts_of_the_ir_column() {
        let p = Profile::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(p.total(), 22);
        assert_eq!(p.functions()[&("a.c".to_owned(), "main".to_owned())], 15);
    }

    #[test]
    fn refuses_what_is_wrong() {
        for (from, to) in [
            ("22", "23"),
            ("Ir", "Xr"),
            ("fn=main", "main"),
            ("summary: 3 22\n", ""),
            ("cmd: ./a b\n", ""),
            ("3 1 10", "3"),
        ] {
            assert!(Profile::parse(GOOD.replacen(from, to, 1).as_bytes()).is_err(), "{from} -> {to}");
        }
    }
}
