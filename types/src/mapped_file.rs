//! The file behind mapped code, opened when it is mapped: what runs is what it holds then, whatever has become of its name when
//! names are looked up.
//!
//! How it is found is its finder's. It must never be opened a second time by its name: another file may have that by then.
//!
//! Invariant: a [`MappedFile`] stands for one content. If the file is written to later on, [`MappedFile::is_unchanged`] says so, and then nothing may
//! be read from it.

use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;

/// What tells one content of a file from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The number of the file's device, as the file says it.
    pub device: u64,
    /// The file's number there.
    pub inode: u64,
    /// Its length in bytes.
    pub size: u64,
    /// When it was written to last: seconds, nanoseconds.
    modified: (i64, i64),
}

impl Stamp {
    /// That of an open file.
    ///
    /// # Errors
    /// As the kernel's.
    pub fn of(file: &File) -> io::Result<Self> {
        let m = file.metadata()?;
        Ok(Self { device: m.dev(), inode: m.ino(), size: m.size(), modified: (m.mtime(), m.mtime_nsec()) })
    }

    /// Whether this content was written later than another one.
    #[must_use]
    pub fn is_written_after(&self, other: &Self) -> bool {
        self.modified > other.modified
    }
}

/// A file as it was when code of it was mapped. Equal if it is the same file with the same content.
#[derive(Debug)]
pub struct MappedFile {
    /// As the memory map shows them.
    device: (u32, u32),
    inode: u64,
    content: Result<(File, Stamp), io::ErrorKind>,
}

impl PartialEq for MappedFile {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for MappedFile {}

impl Hash for MappedFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl MappedFile {
    /// The file at `path`, as if it had just been mapped.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { device: (0, 0), inode: 0, content: open(path).map_err(|e| e.kind()) }
    }

    /// What has been found behind a mapping whose device and inode the memory map shows like this.
    #[must_use]
    pub fn found(device: (u32, u32), inode: u64, content: io::Result<(File, Stamp)>) -> Self {
        Self { device, inode, content: content.map_err(|e| e.kind()) }
    }

    fn identity(&self) -> ((u32, u32), u64, Option<Stamp>) {
        (self.device, self.inode, self.content.as_ref().ok().map(|c| c.1))
    }

    /// The file and its length.
    ///
    /// # Errors
    /// Why it could not be opened when it was mapped: not found means that no name leads to it any more.
    pub fn file(&self) -> Result<(&File, u64), io::ErrorKind> {
        self.content.as_ref().map(|(file, stamp)| (file, stamp.size)).map_err(|e| *e)
    }

    /// What tells its content from others, if it could be opened.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        self.content.as_ref().ok().map(|(_, stamp)| *stamp)
    }

    /// Whether it still holds what it held when it was mapped.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.content.as_ref().is_ok_and(|(file, stamp)| Stamp::of(file).is_ok_and(|now| now == *stamp))
    }

    /// Whether it is the same file, whatever has been written to it since it was mapped first.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether a mapping whose device and inode the memory map shows like this is of this file.
    #[must_use]
    pub fn is_behind(&self, device: (u32, u32), inode: u64) -> bool {
        (self.device, self.inode) == (device, inode)
    }
}

/// Opens a regular file for reading; nothing else is opened, for that might have an effect.
///
/// # Errors
/// Invalid input where it is something else than a regular file; as the kernel's otherwise.
pub fn open(path: &Path) -> io::Result<(File, Stamp)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let stamp = Stamp::of(&file)?;
    Ok((file, stamp))
}
