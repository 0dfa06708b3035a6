//! Source files beside their counts: which can be shown, and what each line of them costs.
//!
//! A file is shown only if all files that its counts came from can be read and are the same. Only regular files are
//! read: a profile may name anything, a device or a pipe too.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use crate::model::{Model, Outer, Sums, UNKNOWN, add};

/// A file above the threshold, with what there is to print.
pub(crate) struct Source {
    pub(crate) name: Vec<u8>,
    /// The files whose counts it carries; without renaming just itself.
    pub(crate) originals: Vec<Vec<u8>>,
    /// Counts by line; line 0 is "unknown".
    pub(crate) lines: BTreeMap<u64, Sums>,
    pub(crate) text: Text,
    /// Profiles that are older than all the originals.
    pub(crate) outdated: Vec<String>,
}

/// The text of a source file, or why there is none.
pub(crate) enum Text {
    Known(Vec<u8>),
    Unreadable,
    NotIdentical,
}

/// Where the counts of the profile went, in the order of the report.
pub(crate) struct Coverage {
    /// Sums, as in [`LABELS`].
    pub(crate) sums: [Sums; 6],
}

/// What the sums of [`Coverage`] are. The blanks, also the one at the end, are those of the reference.
pub(crate) const LABELS: [&str; 6] = [
    "  annotated: files known & above threshold & readable, line numbers known",
    "  annotated: files known & above threshold & readable, line numbers unknown",
    "unannotated: files known & above threshold & two or more non-identical",
    "unannotated: files known & above threshold & unreadable ",
    "unannotated: files known & below threshold",
    "unannotated: files unknown",
];

/// The files to be annotated, by name, and the sums of all others.
pub(crate) fn plan<'a>(model: &'a Model, files: &[Outer<'a>]) -> anyhow::Result<(Vec<&'a [u8]>, Coverage)> {
    let mut shown: Vec<&[u8]> = files.iter().map(|file| file.name).filter(|name| *name != UNKNOWN).collect();
    shown.sort_unstable();
    let mut coverage = Coverage { sums: std::array::from_fn(|_| model.zeros()) };
    for file in model.profile.files() {
        let sum = if file.name() == UNKNOWN {
            &mut coverage.sums[5]
        } else if shown.binary_search(&file.name()).is_err() {
            &mut coverage.sums[4]
        } else {
            continue;
        };
        for function in file.functions() {
            function.rows().add_to(sum)?;
        }
    }
    Ok((shown, coverage))
}

impl Coverage {
    /// Books the counts of a file that was annotated, or could not be.
    pub(crate) fn add(&mut self, source: &Source) -> anyhow::Result<()> {
        for (line, counts) in &source.lines {
            let kind = match source.text {
                Text::Known(_) if *line > 0 => 0,
                Text::Known(_) => 1,
                Text::NotIdentical => 2,
                Text::Unreadable => 3,
            };
            add(&mut self.sums[kind], counts)?;
        }
        Ok(())
    }
}

impl Source {
    /// Looks at the files behind `name`.
    pub(crate) fn open(model: &Model, name: &[u8]) -> anyhow::Result<Self> {
        let originals = model.originals_of(name);
        let lines = model.lines(name)?;
        let read: io::Result<Vec<(Vec<u8>, SystemTime)>> = originals.iter().map(|name| read_source(name)).collect();
        let (text, oldest) = match read {
            Err(_) => (Text::Unreadable, None),
            Ok(texts) if texts.windows(2).any(|pair| pair[0].0 != pair[1].0) => (Text::NotIdentical, None),
            Ok(texts) => {
                let oldest = texts.iter().map(|(_, time)| *time).min();
                (texts.into_iter().next().map_or(Text::Unreadable, |(text, _)| Text::Known(text)), oldest)
            }
        };
        let mut outdated = Vec::new();
        if let Some(oldest) = oldest {
            for (input, _) in &model.inputs {
                // Standard input has no time, and a name may have gone since it was read.
                if fs::metadata(input).and_then(|meta| meta.modified()).is_ok_and(|time| oldest > time) {
                    outdated.push(input.clone());
                }
            }
        }
        Ok(Self { name: name.to_vec(), originals, lines, text, outdated })
    }
}

fn read_source(name: &[u8]) -> io::Result<(Vec<u8>, SystemTime)> {
    let path = Path::new(OsStr::from_bytes(name));
    // Looked at before it is opened: opening a pipe would wait.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut file = File::open(path)?;
    let time = file.metadata()?.modified()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((text, time))
}

/// The lines of a text, from 1, without their ends.
pub(crate) fn text_lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = (!text.is_empty()).then(|| body.split(|byte| *byte == b'\n')).into_iter().flatten();
    (1..).zip(lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)))
}

/// Ranges of lines to print: every line with counts and `context` lines around it, joined where they overlap.
pub(crate) fn ranges(lines: &BTreeMap<u64, Sums>, context: u64) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for line in lines.keys().filter(|line| **line > 0) {
        let (low, high) = (line.saturating_sub(context).max(1), line.saturating_add(context));
        match ranges.last_mut() {
            Some((_, last)) if low <= *last => *last = high,
            _ => ranges.push((low, high)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_they_end() {
        let lines = |text: &[u8]| text_lines(text).map(|(_, line)| line.to_vec()).collect::<Vec<_>>();
        assert!(lines(b"").is_empty());
        assert_eq!(lines(b"\n"), [b""]);
        assert_eq!(lines(b"a\r\nb"), [b"a", b"b"]);
        assert_eq!(lines(b"a\n\n"), [&b"a"[..], b""]);
    }

    #[test]
    fn ranges_are_joined_when_they_share_a_line() {
        let lines = |numbers: &[u64]| numbers.iter().map(|line| (*line, Vec::new())).collect();
        assert_eq!(ranges(&lines(&[0, 3, 10]), 2), [(1, 5), (8, 12)]);
        assert_eq!(ranges(&lines(&[3, 7]), 2), [(1, 9)]);
        assert_eq!(ranges(&lines(&[3, 8]), 2), [(1, 5), (6, 10)]);
        assert_eq!(ranges(&lines(&[4, 5]), 0), [(4, 4), (5, 5)]);
        assert_eq!(ranges(&lines(&[u64::MAX]), 8), [(u64::MAX - 8, u64::MAX)]);
    }
}
