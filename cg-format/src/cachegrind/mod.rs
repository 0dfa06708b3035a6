//! `cachegrind.out`: the profile in memory, its reader and its writer.
//!
//! The format, as read here. Lines end with `\n` or `\r\n`. First any number of `desc:` lines, one `cmd:` line and one
//! `events:` line, in this order; then, in any order and as often as they like:
//!
//! - `fl=NAME` starts a file; the function is `<unspecified>` until an `fn=` line names it;
//! - `fn=NAME` starts a function of that file;
//! - `LINE COUNT...` adds counts to a line of the function, missing ones at the end being 0; line 0 is "unknown";
//! - `summary: COUNT...` holds the totals, which must equal the sums;
//! - empty lines and lines that start with `#` mean nothing.
//!
//! The same file, function or line may come again: its counts add up. Counts may be negative.

mod cells;
mod columns;
mod names;
mod profile;
mod read;
mod rows;
mod write;

pub use profile::{FileEntry, FunctionEntry, Header, MergeError, Profile, UNSPECIFIED};
pub use read::{Detail, ReadError, ReadErrorKind, ReadOptions, ReadOutcome, Summary, SummaryRule, read, read_more};
pub use rows::Rows;
pub use write::{WriteError, write, write_functions, write_header, write_rows, write_stored};
