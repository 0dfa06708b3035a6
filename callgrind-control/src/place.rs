//! Where the sockets are, and that nobody else can be behind them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const SOCKET: &str = "control";

/// The tool that a run uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tool {
    /// It follows calls.
    #[default]
    Callgrind,
    /// It counts by line.
    Cachegrind,
}

impl Tool {
    /// All of them.
    pub const ALL: [Tool; 2] = [Tool::Callgrind, Tool::Cachegrind];

    /// Its name, as `--tool` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Callgrind => "callgrind",
            Self::Cachegrind => "cachegrind",
        }
    }

    /// What the name of the folder of a run begins with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Callgrind => "grind-callgrind-",
            Self::Cachegrind => "grind-cachegrind-",
        }
    }
}

/// The folder that holds the folders of all runs: `$XDG_RUNTIME_DIR`, if that is an absolute path of a folder, else
/// `/tmp`.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && path.is_dir())
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The folder of a run.
pub(crate) fn run_folder(base: &Path, tool: Tool, pid: u32) -> PathBuf {
    base.join(format!("{}{pid}", tool.prefix()))
}

/// The socket of a run.
pub(crate) fn socket(base: &Path, tool: Tool, pid: u32) -> PathBuf {
    run_folder(base, tool, pid).join(SOCKET)
}

/// Whose folder has this name.
fn named(name: &OsStr) -> Option<(Tool, u32)> {
    let name = name.to_str()?;
    let (tool, pid) = Tool::ALL.into_iter().find_map(|tool| Some((tool, name.strip_prefix(tool.prefix())?)))?;
    // `007` is not what a run would call itself.
    Some((tool, pid.parse::<u32>().ok().filter(|number| number.to_string() == pid)?))
}

/// The run whose socket is `path`: the folder that holds its folder, and its process. `None`: no run has such a socket.
#[must_use]
pub fn of_socket(path: &Path) -> Option<(PathBuf, u32)> {
    let folder = path.parent().filter(|_| path.file_name().is_some_and(|name| name == SOCKET))?;
    let (_, pid) = named(folder.file_name()?)?;
    let base = folder.parent().filter(|base| !base.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((base.to_owned(), pid))
}

/// The runs that have a folder of ours, in ascending order; one may have ended without clearing up.
pub(crate) fn pids(base: &Path) -> io::Result<Vec<(u32, Tool)>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir(base)? {
        let entry = entry?;
        let Some((tool, pid)) = named(&entry.file_name()) else { continue };
        if check(&entry.path()).is_ok() {
            pids.push((pid, tool));
        }
    }
    pids.sort_unstable_by_key(|(pid, _)| *pid);
    Ok(pids)
}

/// Calls a run: whatever its tool is.
pub(crate) fn call(base: &Path, pid: u32) -> io::Result<UnixStream> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for tool in Tool::ALL {
        match check(&run_folder(base, tool, pid)).and_then(|()| UnixStream::connect(socket(base, tool, pid))) {
            Ok(stream) => return Ok(stream),
            // What one that has ended left behind says least.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => failure = error,
            Err(_) => {}
        }
    }
    Err(failure)
}

/// Makes the folder of a run; one that an earlier process of this number left behind is taken over.
pub(crate) fn create(base: &Path, tool: Tool, pid: u32) -> io::Result<PathBuf> {
    let folder = run_folder(base, tool, pid);
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            check(&folder)?;
            match fs::remove_file(folder.join(SOCKET)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        other => other?,
    }
    Ok(folder.join(SOCKET))
}

/// Removes the folder of a run.
pub(crate) fn remove(base: &Path, tool: Tool, pid: u32) {
    let _ = fs::remove_file(socket(base, tool, pid));
    let _ = fs::remove_dir(run_folder(base, tool, pid));
}

/// Refuses a folder that somebody else owns or may enter, and links.
pub(crate) fn check(folder: &Path) -> io::Result<()> {
    let denied =
        |cause: &str| io::Error::new(io::ErrorKind::PermissionDenied, format!("{}: {cause}", folder.display()));
    let meta = fs::symlink_metadata(folder)?;
    if !meta.is_dir() {
        return Err(denied("this is no folder"));
    }
    // The files of a process in /proc belong to whom it acts as.
    if meta.uid() != fs::metadata("/proc/self")?.uid() {
        return Err(denied("it belongs to somebody else"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(denied("others may enter it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const C: Tool = Tool::Callgrind;

    #[test]
    fn only_folders_of_our_own_count() {
        let base = tempfile::tempdir().unwrap();
        create(base.path(), C, 7).unwrap();
        create(base.path(), C, 30).unwrap();
        assert_eq!(fs::metadata(run_folder(base.path(), C, 7)).unwrap().mode() & 0o777, 0o700);
        for name in ["grind-callgrind-x", "grind-callgrind-08", "grind-callgrind-", "other-9"] {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        symlink(run_folder(base.path(), C, 7), run_folder(base.path(), C, 8)).unwrap();
        fs::create_dir(run_folder(base.path(), C, 9)).unwrap();
        fs::set_permissions(run_folder(base.path(), C, 9), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(pids(base.path()).unwrap(), [(7, C), (30, C)]);
        assert!(create(base.path(), C, 8).is_err() && create(base.path(), C, 9).is_err());
        create(base.path(), C, 7).unwrap();
        remove(base.path(), C, 7);
        assert_eq!(pids(base.path()).unwrap(), [(30, C)]);
    }

    #[test]
    fn a_socket_says_whose_it_is() {
        let base = tempfile::tempdir().unwrap();
        let path = create(base.path(), Tool::Cachegrind, 12).unwrap();
        assert_eq!(path, base.path().join("grind-cachegrind-12/control"));
        assert_eq!(of_socket(&path), Some((base.path().to_owned(), 12)));
        assert_eq!(of_socket(Path::new("grind-callgrind-7/control")), Some((".".into(), 7)));
        for other in ["control", "grind-callgrind-7", "grind-callgrind-07/control", "/tmp/grind-memcheck-7/control"] {
            assert_eq!(of_socket(Path::new(other)), None, "{other}");
        }
    }
}
