//! What can be wrong with a callgrind profile.
//!
//! A message says what is wrong with a line and quotes it; which line and which input stand before it. Nothing here decides
//! what is an error.

use std::fmt;

use crate::count::TooLarge;
use crate::text::InputError;

/// Why a profile could not be read: `NAME:LINE: cause`.
pub type ReadError = crate::ReadError<ReadErrorKind>;

/// What is wrong with an input.
#[derive(Debug)]
pub enum ReadErrorKind {
    /// There are no lines to read.
    Input(InputError),
    /// The `version:` line names another version than 1.
    Version(String),
    /// The `positions:` line names something unknown.
    BadPositions(String),
    /// Costs, or the end of the input, before an `events:` line.
    NoEvents,
    /// There is nothing at all.
    Empty,
    /// An event's name is not UTF-8 or comes twice.
    BadEvent(String),
    /// There are more than [`MOST_EVENTS`](crate::events::MOST_EVENTS) events.
    TooManyEvents,
    /// The line is of no known kind; the text is its beginning.
    Malformed(String),
    /// A position or a cost is no number.
    BadNumber(String),
    /// There are more costs than events.
    TooManyCosts,
    /// A position before the first of the file or above 64 bits, or a line above 32 bits.
    BadPosition,
    /// A cost or a sum does not fit in 64 bits.
    TooLarge,
    /// Costs before any `fn=` line.
    NoFunction,
    /// `calls=` without `cfn=` before it.
    NoCallee,
    /// A `calls=`, `jump=` or `jcnd=` line without a position on the next.
    NoSource,
}

impl fmt::Display for ReadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Version(text) => write!(f, "version {text} of the format is not known here, only version 1"),
            Self::BadPositions(text) => write!(f, "unknown kind of position: {text}"),
            Self::NoEvents => f.write_str("missing an `events:` line"),
            Self::Empty => f.write_str(
                "missing an `events:` line: it is empty, as a profile is whose program was killed or goes on, or whose disk \
                 was full",
            ),
            Self::BadEvent(name) => write!(f, "event `{name}` is listed twice or is not UTF-8"),
            Self::TooManyEvents => f.write_str("more than 256 events: this is no profile"),
            Self::Malformed(text) => write!(f, "malformed line: {text}"),
            Self::BadNumber(text) => write!(f, "malformed number in line: {text}"),
            Self::TooManyCosts => f.write_str("more costs than events"),
            Self::BadPosition => f.write_str("a position is out of range"),
            Self::TooLarge => f.write_str("a cost or a sum of costs is larger than 64 bits hold"),
            Self::NoFunction => f.write_str("costs before the first `fn=` line"),
            Self::NoCallee => f.write_str("`calls=` without a `cfn=` line before it"),
            Self::NoSource => f.write_str("a call or jump without the line of its costs after it"),
        }
    }
}

impl From<TooLarge> for ReadErrorKind {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}

impl From<InputError> for ReadErrorKind {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl std::error::Error for ReadErrorKind {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(error) => error.source(),
            _ => None,
        }
    }
}
