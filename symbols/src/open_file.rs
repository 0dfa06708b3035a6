//! Files that somebody else has opened: a profiler opens what a program maps when it is mapped, and asks for names long after.
//!
//! What must never happen: that bytes are taken for those of the file as it was, when it has been written to meanwhile. So
//! whoever reads asks [`OpenFile::is_unchanged`] after the last byte, not before the first.

use std::fmt::Debug;
use std::fs::File;
use std::io;

/// A file that is open, and what its owner knows of it.
pub trait OpenFile: Debug + Send + Sync {
    /// The file and its length.
    ///
    /// # Errors
    /// Why it could not be opened; [`io::ErrorKind::InvalidInput`] says that it is not a regular file.
    fn file(&self) -> Result<(&File, u64), io::ErrorKind>;

    /// Whether it still holds what it held when it was opened.
    fn is_unchanged(&self) -> bool;
}
