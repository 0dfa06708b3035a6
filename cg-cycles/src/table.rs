//! Tables: what each form costs on a processor. As text, so that a difference can be read:
//!
//! ```text
//! # comments
//! width 6
//! ports HWPort0 HWPort1 …
//! L T U USES FORM FORM …
//! ```
//!
//! with latency and reciprocal throughput in hundredths of a cycle, micro-operations, and what is used: `-` for nothing, else pairs
//! `PORTS:N` with commas between them, where PORTS is a hexadecimal mask of ports any of which serves, and N hundredths of cycles.

use std::collections::HashMap;
use std::fmt;

use crate::forms::Form;

/// Time on any of some ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    /// A bit for each port that will do.
    pub ports: u32,
    /// Hundredths of cycles.
    pub time: u32,
}

/// What an instruction costs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// From its operands to its result, in hundredths of cycles.
    pub latency: u32,
    /// Between two of them that do not depend on each other, in hundredths of cycles.
    pub throughput: u32,
    /// Micro-operations.
    pub operations: u32,
    /// What it uses.
    pub uses: Vec<Use>,
}

/// What instructions cost on a processor.
#[derive(Clone, Debug)]
pub struct Table {
    /// Micro-operations that the front end delivers in a cycle.
    pub width: u32,
    entries: Vec<Entry>,
    by_form: HashMap<Form, u32>,
}

/// A table that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTable {
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for BadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the table of cycles makes no sense", self.line)
    }
}

impl std::error::Error for BadTable {}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// At the first line that makes no sense.
    pub fn parse(text: &str) -> Result<Table, BadTable> {
        let names = Form::by_name();
        let mut table = Table { width: 0, entries: Vec::new(), by_form: HashMap::new() };
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            table.line(line, &names).ok_or(BadTable { line: at + 1 })?;
        }
        if table.width == 0 { Err(BadTable { line: 1 }) } else { Ok(table) }
    }

    fn line(&mut self, line: &str, names: &HashMap<String, Form>) -> Option<()> {
        let mut words = line.split(' ');
        match words.next()? {
            "width" => self.width = words.next()?.parse().ok()?,
            "ports" => {}
            latency => {
                let mut number = || words.next()?.parse().ok();
                let (throughput, operations) = (number()?, number()?);
                let uses = match words.next()? {
                    "-" => Vec::new(),
                    uses => uses.split(',').map(parse_use).collect::<Option<_>>()?,
                };
                let index = self.entries.len() as u32;
                self.entries.push(Entry { latency: latency.parse().ok()?, throughput, operations, uses });
                for name in words {
                    self.by_form.insert(*names.get(name)?, index);
                }
            }
        }
        Some(())
    }

    /// What a form costs, if that is known.
    #[must_use]
    pub fn of(&self, form: Form) -> Option<&Entry> {
        self.by_form.get(&form).map(|at| &self.entries[*at as usize])
    }

    /// The forms that have an entry, in no order.
    pub fn forms(&self) -> impl Iterator<Item = Form> {
        self.by_form.keys().copied()
    }
}

fn parse_use(text: &str) -> Option<Use> {
    let (ports, time) = text.split_once(':')?;
    Some(Use { ports: u32::from_str_radix(ports, 16).ok()?, time: time.parse().ok()? })
}

/// Writes a table: `width`, the names of ports, and entries by forms; `about` stands above it, a comment each line.
#[must_use]
pub fn write(about: &[String], width: u32, ports: &[String], entries: &[(Form, Entry)]) -> String {
    let mut text: String = about.iter().map(|line| format!("# {line}\n")).collect();
    text += &format!("width {width}\nports {}\n", ports.join(" "));
    let mut same: std::collections::BTreeMap<&Entry, Vec<String>> = std::collections::BTreeMap::new();
    for (form, entry) in entries {
        same.entry(entry).or_default().push(form.name());
    }
    for (entry, mut names) in same {
        names.sort();
        let uses: Vec<String> = entry.uses.iter().map(|u| format!("{:x}:{}", u.ports, u.time)).collect();
        let uses = if uses.is_empty() { "-".to_owned() } else { uses.join(",") };
        let Entry { latency, throughput, operations, .. } = entry;
        text += &format!("{latency} {throughput} {operations} {uses} {}\n", names.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let forms: Vec<Form> = ["Nopd", "Add_rm64_r64", "Add_rm64_r64+m"].map(|n| Form::by_name()[n]).into();
        let entry = Entry { latency: 500, throughput: 50, operations: 2, uses: vec![Use { ports: 0x63, time: 100 }] };
        let bare = Entry { latency: 0, throughput: 17, operations: 1, uses: Vec::new() };
        let all = [(forms[0], bare.clone()), (forms[1], bare.clone()), (forms[2], entry.clone())];
        let text = write(&["about".to_owned()], 6, &["p0".to_owned()], &all);
        assert_eq!(text, "# about\nwidth 6\nports p0\n0 17 1 - Add_rm64_r64 Nopd\n500 50 2 63:100 Add_rm64_r64+m\n");
        let table = Table::parse(&text).unwrap();
        assert_eq!((table.width, table.of(forms[2]), table.of(forms[0])), (6, Some(&entry), Some(&bare)));
        assert_eq!(table.of(Form::by_name()["Cpuid"]), None);
        for bad in ["", "width x\n", "width 6\n1 2\n", "width 6\n1 2 3 x Nopd\n", "width 6\n1 2 3 - Nothing\n"] {
            assert!(Table::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_tables_that_come_with_this_are_read() {
        for model in crate::MODELS {
            let table = model.table().unwrap();
            assert!(table.forms().count() > 2000, "{}", model.name);
        }
    }
}
