//! What the readers of both formats share: whole lines out of an input, words and numbers out of a line, and errors that
//! name the line; and the writers: lines on their way out.
//!
//! Nothing here knows a format, and nothing panics on input. Blanks are what the reference's language takes for blanks.

pub(crate) mod digits;
pub(crate) mod ends;
pub(crate) mod lines;
pub(crate) mod out;

use std::error::Error;
use std::fmt;
use std::io;

/// Why a profile could not be read: `NAME:LINE: cause`. A cause that the system gave is told by [`Error::source`].
#[derive(Debug)]
pub struct ReadError<K> {
    /// The name that the caller gave the input.
    pub name: String,
    /// The line at fault, from 1; none if the fault is not in a line.
    pub line: Option<u64>,
    /// What is wrong.
    pub kind: K,
}

impl<K: fmt::Display> fmt::Display for ReadError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl<K: Error> Error for ReadError<K> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}

/// Why there are no further lines, whatever the format.
#[derive(Debug)]
pub enum InputError {
    /// The input could not be read; the answer of the system or of a decompressor is the source.
    Io(io::Error),
    /// A line is longer than any profile has: 16 MiB.
    LineTooLong,
}

impl InputError {
    /// The error of a reader that has read `lines` lines before.
    pub(crate) fn after<K: From<Self>>(self, name: &str, lines: u64) -> ReadError<K> {
        let line = matches!(self, Self::LineTooLong).then_some(lines + 1);
        ReadError { name: name.to_owned(), line, kind: self.into() }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io(_) => "cannot read",
            Self::LineTooLong => "a line is longer than 16 MiB: this is no profile",
        })
    }
}

impl Error for InputError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(cause) => Some(cause),
            Self::LineTooLong => None,
        }
    }
}

/// The first line of `text`, without its end.
pub(crate) fn first_line(text: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
    &text[..end]
}

/// A line without the carriage returns at its end.
pub(crate) fn without_cr(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    &line[..end]
}

/// What stands between blanks.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty())
}

pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// The beginning of a line, fit for a message.
pub(crate) fn shown(line: &[u8]) -> String {
    const MOST: usize = 200;
    let cut = &line[..line.len().min(MOST)];
    let mut text: String = String::from_utf8_lossy(cut)
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if line.len() > MOST {
        text.push('…');
    }
    text
}
