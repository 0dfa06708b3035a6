//! Where the sockets are, and that nobody else can be behind them.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "grind-callgrind-";
const SOCKET: &str = "control";

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
pub(crate) fn run_folder(base: &Path, pid: u32) -> PathBuf {
    base.join(format!("{PREFIX}{pid}"))
}

/// The socket of a run.
pub(crate) fn socket(base: &Path, pid: u32) -> PathBuf {
    run_folder(base, pid).join(SOCKET)
}

/// The runs that have a folder of ours, in ascending order; one may have ended without clearing up.
pub(crate) fn pids(base: &Path) -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir(base)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        // `007` is not what a run would call itself.
        let Some(pid) = pid.parse::<u32>().ok().filter(|number| number.to_string() == pid) else { continue };
        if check(&entry.path()).is_ok() {
            pids.push(pid);
        }
    }
    pids.sort_unstable();
    Ok(pids)
}

/// Makes the folder of a run; one that an earlier process of this number left behind is taken over.
pub(crate) fn create(base: &Path, pid: u32) -> io::Result<PathBuf> {
    let folder = run_folder(base, pid);
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
pub(crate) fn remove(base: &Path, pid: u32) {
    let _ = fs::remove_file(socket(base, pid));
    let _ = fs::remove_dir(run_folder(base, pid));
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

    #[test]
    fn only_folders_of_our_own_count() {
        let base = tempfile::tempdir().unwrap();
        create(base.path(), 7).unwrap();
        create(base.path(), 30).unwrap();
        assert_eq!(fs::metadata(run_folder(base.path(), 7)).unwrap().mode() & 0o777, 0o700);
        for name in ["grind-callgrind-x", "grind-callgrind-08", "grind-callgrind-", "other-9"] {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        symlink(run_folder(base.path(), 7), run_folder(base.path(), 8)).unwrap();
        fs::create_dir(run_folder(base.path(), 9)).unwrap();
        fs::set_permissions(run_folder(base.path(), 9), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(pids(base.path()).unwrap(), [7, 30]);
        assert!(create(base.path(), 8).is_err() && create(base.path(), 9).is_err());
        create(base.path(), 7).unwrap();
        remove(base.path(), 7);
        assert_eq!(pids(base.path()).unwrap(), [30]);
    }
}
