//! What is wrong with a file, for the log: a hostile one can be wrong in millions of places, with names as long as the file, and the log
//! needs the first few. Must never take memory that grows with what is wrong.

use std::fmt::{self, Display, Write};

/// So many are kept.
const MOST: usize = 50;

/// So many bytes are kept of each.
const LONGEST: usize = 1000;

/// The first few things that are wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Keeps one more, if there have not been many yet.
    pub(super) fn push(&mut self, what: impl Display) {
        if self.0.len() < MOST {
            let mut start = Start(String::new());
            if write!(start, "{what}").is_err() {
                start.0.push('…');
            }
            self.0.push(start.0);
        }
    }

    /// The same with all of them, each behind a word on what they are about.
    pub(super) fn extend(&mut self, of: &str, more: &Problems) {
        more.0.iter().for_each(|what| self.push(format_args!("{of}{what}")));
    }

    /// All that are kept.
    pub(super) fn as_slice(&self) -> &[String] {
        &self.0
    }
}

/// The first [`LONGEST`] bytes of a text.
struct Start(String);

impl Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST - self.0.len();
        let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_wrong_takes_little() {
        let mut problems = Problems::default();
        problems.push("short");
        (0..1000).for_each(|_| problems.push("é".repeat(1 << 20)));
        let mut of_file = Problems::default();
        of_file.extend("file: ", &problems);
        assert_eq!(of_file.as_slice()[0], "file: short");
        assert_eq!(of_file.as_slice().len(), MOST);
        assert!(of_file.as_slice().iter().all(|what| what.len() <= LONGEST + '…'.len_utf8()));
        assert!(of_file.as_slice()[1].ends_with("é…"), "{}", of_file.as_slice()[1]);
    }
}
