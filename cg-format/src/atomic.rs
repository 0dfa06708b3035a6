//! Files that appear whole or not at all.
//!
//! A profile is worth nothing when half of it is missing, and a half-written one looks like a good one until it is
//! read. So output goes to a file without a name on the same file system, which gets the target's name only once
//! everything is written: whatever ends the program before, even a kill, leaves nothing behind and the target as it was.
//! A file that is there already cannot be replaced in one step, so the new one is called something hidden for an instant.
//! File systems without nameless files get a hidden temporary file, removed on any failure. What would end the program
//! while such a file is there waits until it is gone, but for SIGKILL, which cannot wait.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, process};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::linkat;

/// Why an output file could not be written. The system's answer is told by [`std::error::Error::source`] alone.
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
        write!(f, "{}: cannot {} the output file", self.path.display(), self.action)
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
            return fill_and_flush(&file, fill).map_err(failed("write"));
        }
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let keep_mode = |file: &File| {
        if let Some(meta) = &existing {
            // A file that others may read stays so; failing to keep that is no reason to lose the profile.
            let _ = file.set_permissions(fs::Permissions::from_mode(meta.permissions().mode() & 0o7777));
        }
    };
    if let Some(mut file) = create_nameless(&target, mode) {
        keep_mode(&file);
        fill_and_flush(&file, fill).map_err(failed("write"))?;
        if name(&file, &target).is_ok() {
            return Ok(());
        }
        // Nothing is lost yet: what cannot be named can be copied.
        let (copy, temporary) = create_beside(&target, mode).map_err(failed("create"))?;
        keep_mode(&copy);
        file.rewind().and_then(|()| io::copy(&mut file, &mut &copy)).map_err(failed("write"))?;
        return temporary.rename(&target).map_err(failed("rename"));
    }
    let (file, temporary) = create_beside(&target, mode).map_err(failed("create"))?;
    keep_mode(&file);
    fill_and_flush(&file, fill).map_err(failed("write"))?;
    temporary.rename(&target).map_err(failed("rename"))
}

fn fill_and_flush(file: &File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    fill(&mut out)?;
    out.flush()
}

/// How a file without a name is called until it has one.
fn handle(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A file without a name that can get `target`, if the file system has such files.
fn create_nameless(target: &Path, mode: u32) -> Option<File> {
    let folder = match target.parent()? {
        folder if folder.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(mode).custom_flags(OFlag::O_TMPFILE.bits());
    let file = options.open(folder).ok()?;
    handle(&file).exists().then_some(file)
}

/// Gives a file without a name that of `target`.
fn name(file: &File, target: &Path) -> io::Result<()> {
    let handle = handle(file);
    let link = |path: &Path| linkat(AT_FDCWD, &handle, AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW);
    match link(target) {
        Err(Errno::EEXIST) => {}
        result => return Ok(result?),
    }
    let held = HeldSignals::new();
    for attempt in 0.. {
        let path = hidden(target, attempt)?;
        match link(&path) {
            Ok(()) => return Temporary { path, _held: held }.rename(target),
            Err(Errno::EEXIST) if attempt < 1000 => {}
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the loop returns")
}

/// Removes its file when dropped, unless kept: covers errors and panics alike.
struct Temporary {
    path: PathBuf,
    // Dropped after the file is gone.
    _held: HeldSignals,
}

/// Makes the signals that users end programs with wait while it lives. Only this thread's are held: a program with others
/// that take them ends as before.
struct HeldSignals {
    before: Option<SigSet>,
}

impl HeldSignals {
    fn new() -> Self {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT].into_iter().collect();
        Self { before: set.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok() }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // There is nothing to be done about a mask that cannot be set, and it always can.
        let _ = self.before.map(|mask| mask.thread_set_mask());
    }
}

impl Temporary {
    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A hidden name beside `target`.
fn hidden(target: &Path, attempt: u32) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut hidden = OsString::from(".");
    // A long name plus the suffix could pass the limit on names; its beginning is enough to recognise it.
    hidden.push(if name.len() > 200 { std::ffi::OsStr::new("profile") } else { name });
    hidden.push(format!(".{}.{attempt}.tmp", process::id()));
    Ok(target.with_file_name(hidden))
}

fn create_beside(target: &Path, mode: u32) -> io::Result<(File, Temporary)> {
    let held = HeldSignals::new();
    for attempt in 0.. {
        let path = hidden(target, attempt)?;
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Ok(file) => return Ok((file, Temporary { path, _held: held })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("the loop returns")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signalfd::{SfdFlags, SignalFd};

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_to_be_seen_before_everything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        if create_nameless(&path, 0o600).is_none() {
            eprintln!("skipped: this file system has no files without a name");
            return;
        }
        for text in ["first", "second"] {
            let before = names(folder.path());
            write_file(&path, 0o600, |out| {
                out.write_all(text.as_bytes())?;
                out.flush()?;
                assert_eq!(names(folder.path()), before);
                Ok(())
            })
            .unwrap();
            assert_eq!(names(folder.path()), ["out"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_temporary_file_does_where_there_are_no_nameless_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (file, temporary) = create_beside(&path, 0o600).unwrap();
        fill_and_flush(&file, |out| out.write_all(b"all")).unwrap();
        temporary.rename(&path).unwrap();
        assert_eq!(names(folder.path()), ["out"]);
        drop(create_beside(&path, 0o600).unwrap());
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn an_interrupt_waits_while_there_is_a_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let pending = || SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_NONBLOCK).unwrap().read_signal().unwrap();
        let before = SigSet::thread_get_mask().unwrap();
        let (file, temporary) = create_beside(&path, 0o600).unwrap();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // This thread would not come back from it.
            nix::sys::signal::raise(signal).unwrap();
            assert_eq!(pending().map(|info| info.ssi_signo), Some(signal as u32));
        }
        fill_and_flush(&file, |out| out.write_all(b"all")).unwrap();
        temporary.rename(&path).unwrap();
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
        drop(create_beside(&path, 0o600).unwrap());
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
        assert_eq!(names(folder.path()), ["out"]);
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
        assert!(error.to_string().ends_with("out: cannot write the output file"), "{error}");
        assert_eq!(error.cause.to_string(), "disk full");
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
