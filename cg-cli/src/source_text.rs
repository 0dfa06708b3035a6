//! Source files for the annotating programs: their text, its lines, and which of those are shown.
//!
//! Only regular files are opened, since opening a pipe would wait.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// The text of a source file, and when that was changed last.
///
/// # Errors
/// The file cannot be read, or is no regular file.
pub fn read(path: &Path) -> io::Result<(Vec<u8>, SystemTime)> {
    // Looked at before it is opened.
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
pub fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = (!text.is_empty()).then(|| body.split(|byte| *byte == b'\n')).into_iter().flatten();
    (1..).zip(lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)))
}

/// Ranges of lines to show, both ends included: every line of `counted`, which ascends, with `context` lines around it,
/// joined where they overlap. Line 0 is none.
pub fn ranges(counted: impl Iterator<Item = u64>, context: u64) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for line in counted.filter(|line| *line > 0) {
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
    fn lines_are_counted_like_an_editor_does() {
        let lines = |text: &'static [u8]| lines(text).collect::<Vec<_>>();
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"\n"), [(1, &b""[..])]);
        assert_eq!(lines(b"a\n\n"), [(1, &b"a"[..]), (2, b"")]);
        assert_eq!(lines(b"a\r\n\nb\n"), [(1, &b"a"[..]), (2, b""), (3, b"b")]);
    }

    #[test]
    fn ranges_are_joined_where_they_overlap() {
        let ranges = |lines: &[u64], context| ranges(lines.iter().copied(), context);
        assert_eq!(ranges(&[0, 3, 10], 2), [(1, 5), (8, 12)]);
        assert_eq!(ranges(&[3, 7], 2), [(1, 9)]);
        assert_eq!(ranges(&[3, 8], 2), [(1, 5), (6, 10)]);
        assert_eq!(ranges(&[4, 5], 0), [(4, 4), (5, 5)]);
        assert_eq!(ranges(&[u64::MAX], 8), [(u64::MAX - 8, u64::MAX)]);
    }
}
