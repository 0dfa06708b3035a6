//! Whether files can be written, found out before the program runs.
//!
//! The proof leaves nothing behind: no empty file, and an old profile keeps its contents. It can be outdated by the end of
//! the run; writing the profile then still reports its own failure.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use cg_cli::expand::Template;
use nix::libc;
use nix::unistd::{AccessFlags, access};

use crate::resolve::reason;

/// A file that cannot be written. Exit code 1.
#[derive(Debug)]
pub struct Unwritable {
    /// What it was to hold: `profile`, `log`.
    pub what: &'static str,
    /// The option that names another file.
    pub option: &'static str,
    /// The file, as it was named.
    pub path: PathBuf,
    /// Its folder, if it is that in which no file can be made.
    pub folder: Option<PathBuf>,
    /// The reason.
    pub cause: io::Error,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the {} '{}': ", self.what, self.path.display())?;
        if let Some(folder) = &self.folder {
            write!(f, "folder '{}': ", folder.display())?;
        }
        write!(f, "{}; name another place with {}=FILE", reason(&self.cause), self.option)
    }
}

impl std::error::Error for Unwritable {}

/// Proves that the files of `template` can be written.
///
/// # Errors
/// When they cannot. A folder that depends on the process ID cannot be judged beforehand and passes.
pub fn prove(template: &Template, what: &'static str, option: &'static str) -> Result<(), Unwritable> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause| Unwritable { what, option, path, folder: None, cause }
    };
    let folder_failed = |path: &Path, folder: &Path| {
        // The current folder has no other name in the message.
        let named = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let (path, folder) = (path.to_owned(), Some(named));
        move |cause| Unwritable { what, option, path, folder, cause }
    };
    if let Some(file) = template.fixed_name() {
        match fs::metadata(&file) {
            Ok(meta) if meta.is_dir() => return Err(failed(&file)(io::Error::from_raw_os_error(libc::EISDIR))),
            Ok(meta) if !meta.is_file() => {
                // Not opened: the reader of a pipe would take the proof for the profile.
                return access(&file, AccessFlags::W_OK).map_err(|e| failed(&file)(e.into()));
            }
            Ok(_) => drop(OpenOptions::new().write(true).open(&file).map_err(failed(&file))?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(&file)(e)),
        }
        // Where a link leads is where the profile will be.
        let target = fs::canonicalize(&file).unwrap_or(file.clone());
        let folder = match target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        };
        return prove_folder(&folder).map_err(folder_failed(&file, &folder));
    }
    match template.fixed_folder() {
        Some(folder) => prove_folder(&folder).map_err(folder_failed(&template.pattern(), &folder)),
        None => Ok(()),
    }
}

/// Creates a nameless file, or, where the file system has none such, one that is removed at once.
fn prove_folder(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn prove_path(path: &Path) -> Result<(), String> {
        let template = Template::parse(path.as_os_str(), |_| None).unwrap();
        prove(&template, "profile", "--cachegrind-out-file").map_err(|e| e.to_string())
    }

    #[test]
    fn the_proof_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        prove_path(&folder.path().join("new")).unwrap();
        prove_path(&folder.path().join("new.%p")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let old = folder.path().join("old");
        fs::write(&old, "kept").unwrap();
        prove_path(&old).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        prove_path(Path::new("/dev/null")).unwrap();
        prove_path(&folder.path().join("%p/x")).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent/x");
        assert_eq!(
            prove_path(&absent).unwrap_err(),
            format!(
                "cannot write the profile '{}': folder '{}': No such file or directory; name another place with \
                 --cachegrind-out-file=FILE",
                absent.display(),
                folder.path().join("absent").display()
            )
        );
        let patterned = prove_path(&folder.path().join("absent/x.%p")).unwrap_err();
        assert!(
            patterned.contains("/absent/x.%p': folder '") && patterned.contains("/absent/': No such"),
            "{patterned}"
        );
        assert!(prove_path(folder.path()).unwrap_err().contains("Is a directory"));
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(prove_path(&folder.path().join("file/x")).unwrap_err().contains("Not a directory"));
        if !nix::unistd::geteuid().is_root() {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
            assert!(prove_path(&folder.path().join("x")).unwrap_err().contains("Permission denied"));
        }
    }
}
