//! Files that appear whole or not at all.
//!
//! A profile is worth nothing when half of it is missing, and a half-written one looks like a good one until it is
//! read. So output goes to a temporary file in the same folder, which takes the target's name only once everything is
//! written. On any failure the temporary file is removed and the target keeps what it held.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, process};

/// Why an output file could not be written.
#[derive(Debug)]
pub struct AtomicError {
    /// The file that was asked for.
    pub path: PathBuf,
    /// What was being done: `create`, `write` or `rename`.
    pub action: &'static str,
    /// The system's answer.
    pub cause: io::Error,
}

impl fmt::Display for AtomicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot {} the output file: {}", self.path.display(), self.action, self.cause)
    }
}

impl std::error::Error for AtomicError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Writes `path` through `fill`; the file changes only if everything succeeds.
///
/// `mode` is the permission of a new file before the umask (profiles: `0o600`); a file that exists keeps its own. A
/// symbolic link stays a link. A target that is no regular file, such as `/dev/stdout` or a pipe, is written directly.
///
/// # Errors
/// [`AtomicError`] names the target and the step that failed. An error that `fill` returns counts as a failed write.
///
/// # Example
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("cachegrind.out.7");
/// cg_format::atomic::write_file(&path, 0o600, |out| out.write_all(b"cmd: x\n")).unwrap();
/// assert_eq!(std::fs::read(&path).unwrap(), b"cmd: x\n");
/// ```
pub fn write_file(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), AtomicError> {
    let failed = |action| move |cause| AtomicError { path: path.to_owned(), action, cause };
    let existing = fs::metadata(path).ok();
    if let Some(meta) = &existing {
        let kind = meta.file_type();
        if meta.is_dir() {
            return Err(failed("create")(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
            let file = OpenOptions::new().write(true).open(path).map_err(failed("create"))?;
            return fill_and_flush(file, fill).map_err(failed("write"));
        }
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (file, temporary) = create_beside(&target, mode).map_err(failed("create"))?;
    if let Some(meta) = &existing {
        // A file that others may read stays so; failing to keep that is no reason to lose the profile.
        let _ = file.set_permissions(fs::Permissions::from_mode(meta.permissions().mode() & 0o7777));
    }
    fill_and_flush(file, fill).map_err(failed("write"))?;
    fs::rename(&temporary.path, &target).map_err(failed("rename"))?;
    temporary.keep();
    Ok(())
}

fn fill_and_flush(file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    fill(&mut out)?;
    out.flush()
}

/// Removes its file when dropped, unless kept: covers errors and panics alike.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn create_beside(target: &Path, mode: u32) -> io::Result<(File, Temporary)> {
    let name = target.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    for attempt in 0.. {
        let mut hidden = OsString::from(".");
        // A long name plus the suffix could pass the limit on names; its beginning is enough to recognise it.
        hidden.push(if name.len() > 200 { std::ffi::OsStr::new("profile") } else { name });
        hidden.push(format!(".{}.{attempt}.tmp", process::id()));
        let path = target.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Ok(file) => return Ok((file, Temporary { path })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("the loop returns")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_has_the_mode_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_file(&path, 0o600, |out| out.write_all(b"all")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "before").unwrap();
        let error = write_file(&path, 0o600, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        })
        .unwrap_err();
        assert!(error.to_string().ends_with("cannot write the output file: disk full"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn links_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "before").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write_file(&link, 0o600, |out| out.write_all(b"after")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"after");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn devices_are_written_directly_and_folders_refused() {
        write_file(Path::new("/dev/null"), 0o600, |out| out.write_all(b"gone")).unwrap();
        let full = write_file(Path::new("/dev/full"), 0o600, |out| out.write_all(b"gone")).unwrap_err();
        assert_eq!(full.action, "write");
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write_file(folder.path(), 0o600, |_| Ok(())).unwrap_err().action, "create");
        let nowhere = folder.path().join("no/such/out");
        assert_eq!(write_file(&nowhere, 0o600, |_| Ok(())).unwrap_err().action, "create");
    }
}
