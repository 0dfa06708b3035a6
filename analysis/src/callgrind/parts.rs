//! The names of profile files: one for the whole, one for each part that is written in the middle, one for each thread.
//!
//! With the base name `F`: the last part is `F`, earlier ones are `F.1`, `F.2`, …; with threads apart each has a suffix,
//! `F-01`, `F.1-02`. If parts are combined, all go to `F`, those of all threads too. Numbers begin at 1 in every process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Why a part was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The program has ended: the last part.
    End,
    /// The program asked for it, perhaps with a text.
    Request(Option<Vec<u8>>),
    /// `--dump-before=` of this function.
    Before(Vec<u8>),
    /// `--dump-after=` of this function.
    After(Vec<u8>),
    /// `--dump-every-bb=`.
    Blocks(u64),
    /// Somebody asked for it from outside, with these words.
    Command(Vec<u8>),
}

impl Trigger {
    /// The text of the part's `desc: Trigger:` line, `Trigger:` included.
    #[must_use]
    pub fn description(&self) -> Vec<u8> {
        let (text, rest): (&str, &[u8]) = match self {
            Trigger::End => ("Program termination", b""),
            Trigger::Request(None) => ("Client Request", b""),
            Trigger::Request(Some(text)) => ("Client Request: ", text),
            Trigger::Before(function) => ("--dump-before=", function),
            Trigger::After(function) => ("--dump-after=", function),
            Trigger::Blocks(n) => return format!("Trigger: --dump-every-bb={n}").into_bytes(),
            Trigger::Command(words) => ("", words),
        };
        [b"Trigger: ", text.as_bytes(), rest].concat()
    }
}

/// The parts of one process.
#[derive(Clone, Debug)]
pub struct Parts {
    base: PathBuf,
    combined: bool,
    next: u64,
}

/// Where a part goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The file.
    pub path: PathBuf,
    /// The part is written behind what the file has.
    pub append: bool,
}

impl Parts {
    /// Those of a process whose profile is `base`; `combined`: all in one file.
    #[must_use]
    pub fn new(base: PathBuf, combined: bool) -> Parts {
        Parts { base, combined, next: 1 }
    }

    /// The number of the next part, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.next
    }

    /// The files of the next part: one for each of `threads` (numbers from 1), or one for all if there are none.
    pub fn next(&mut self, trigger: &Trigger, threads: &[u64]) -> Vec<Destination> {
        let number = self.next;
        self.next += 1;
        if self.combined {
            let path = &self.base;
            let share = |index| Destination { path: path.clone(), append: number > 1 || index > 0 };
            return (0..threads.len().max(1)).map(share).collect();
        }
        let infix = if *trigger == Trigger::End { String::new() } else { format!(".{number}") };
        let name = |suffix: String| Destination {
            path: with_suffix(&self.base, &[&infix[..], &suffix].concat()),
            append: false,
        };
        if threads.is_empty() {
            return vec![name(String::new())];
        }
        threads.iter().map(|thread| name(format!("-{thread:02}"))).collect()
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(destinations: &[Destination]) -> Vec<String> {
        let show = |d: &Destination| format!("{}{}", d.path.display(), if d.append { " +" } else { "" });
        destinations.iter().map(show).collect()
    }

    #[test]
    fn parts_and_threads_have_their_suffixes() {
        let mut parts = Parts::new("d/out".into(), false);
        assert_eq!(parts.number(), 1);
        assert_eq!(names(&parts.next(&Trigger::Request(None), &[])), ["d/out.1"]);
        assert_eq!(
            names(&parts.next(&Trigger::Before(b"f".into()), &[1, 12, 123])),
            ["d/out.2-01", "d/out.2-12", "d/out.2-123"]
        );
        assert_eq!(names(&parts.next(&Trigger::End, &[1])), ["d/out-01"]);
        assert_eq!(names(&parts.next(&Trigger::End, &[])), ["d/out"]);
    }

    #[test]
    fn combined_parts_share_a_file() {
        let mut parts = Parts::new("out".into(), true);
        assert_eq!(names(&parts.next(&Trigger::Blocks(5), &[])), ["out"]);
        assert_eq!(names(&parts.next(&Trigger::End, &[])), ["out +"]);

        let mut parts = Parts::new("out".into(), true);
        assert_eq!(names(&parts.next(&Trigger::Blocks(5), &[1, 2])), ["out", "out +"]);
        assert_eq!(names(&parts.next(&Trigger::End, &[1, 2])), ["out +", "out +"]);
    }

    #[test]
    fn triggers_are_described() {
        for (trigger, text) in [
            (Trigger::End, "Trigger: Program termination"),
            (Trigger::Request(None), "Trigger: Client Request"),
            (Trigger::Request(Some(b"here".into())), "Trigger: Client Request: here"),
            (Trigger::Before(b"f".into()), "Trigger: --dump-before=f"),
            (Trigger::After(b"f".into()), "Trigger: --dump-after=f"),
            (Trigger::Blocks(70), "Trigger: --dump-every-bb=70"),
            (Trigger::Command(b"dump hint".into()), "Trigger: dump hint"),
        ] {
            assert_eq!(String::from_utf8(trigger.description()).unwrap(), text);
        }
    }
}
