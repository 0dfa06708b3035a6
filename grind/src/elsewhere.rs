//! The next `valgrind` on PATH, for tools that grind has not: who calls grind `valgrind` may want one of them.
//!
//! Nothing here ever comes back to this program: it is known by its file, whatever links lead there. Only what stands behind
//! it on PATH is looked at, so that several copies hand on at most once each; where it is not on PATH itself, the process
//! says so to those behind it in [`MARK`], and nobody hands on twice.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{AccessFlags, access};

/// A variable that says which process has handed its command on.
const MARK: &str = "GRIND_HANDED_ON";

/// The program that takes over.
#[derive(Debug, PartialEq, Eq)]
struct Next {
    path: PathBuf,
    /// Whether it might lead back here.
    marked: bool,
}

/// Becomes the next `valgrind` on PATH, called with `args`, in which its own name is not. Comes back only if there is none (`Ok`) or it cannot be run.
///
/// # Errors
/// The program that was found, and why it does not run.
pub fn hand_over(args: &[OsString]) -> Result<(), (PathBuf, io::Error)> {
    let own = std::process::id().to_string();
    if std::env::var_os(MARK).is_some_and(|mark| mark == *own) {
        return Ok(());
    }
    let Some(next) = next(Path::new("/proc/self/exe"), std::env::var_os("PATH").as_deref()) else { return Ok(()) };
    let mut command = Command::new(&next.path);
    command.args(args);
    if next.marked {
        command.env(MARK, own);
    }
    let error = command.exec();
    Err((next.path, error))
}

fn next(own: &Path, search_path: Option<&OsStr>) -> Option<Next> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let own = identity(own)?;
    let folders = search_path?.as_bytes().split(|byte| *byte == b':');
    let candidates: Vec<PathBuf> = folders
        .map(|folder| Path::new(if folder.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(folder) }))
        .map(|folder| folder.join("valgrind"))
        .collect();
    let here = candidates.iter().rposition(|path| identity(path) == Some(own));
    let behind = here.map_or(0, |at| at + 1);
    let fits = |path: &&PathBuf| path.is_file() && access(path.as_path(), AccessFlags::X_OK).is_ok();
    let path = candidates[behind..].iter().find(fits)?.clone();
    Some(Next { path, marked: here.is_none() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_what_stands_behind_is_next() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let [one, two, three, four, none] = ["one", "two", "three", "four", "none"].map(folder);
        let program = |path: PathBuf| {
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let own = program(one.join("grind"));
        symlink("grind", one.join("valgrind")).unwrap();
        fs::hard_link(&own, three.join("valgrind")).unwrap();
        let other = program(two.join("valgrind"));
        let last = program(four.join("valgrind"));
        fs::create_dir(none.join("valgrind")).unwrap();
        let next = |folders: &[&PathBuf]| {
            let path = std::env::join_paths(folders).unwrap();
            next(&own, Some(&path)).map(|next| (next.path, next.marked))
        };
        assert_eq!(next(&[&one, &two]), Some((other.clone(), false)));
        assert_eq!(next(&[&two, &one]), None, "what is before us may have called us");
        assert_eq!(next(&[&one, &two, &three, &four]), Some((last, false)), "behind the last place where we are");
        assert_eq!(next(&[&none, &two]), Some((other, true)), "from outside PATH");
        assert_eq!(next(&[&one, &none]), None, "a folder is no program");
        assert_eq!(super::next(&own, None), None);
    }
}
