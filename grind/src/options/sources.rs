//! Where options come from besides the command line: a file in the home folder, an environment variable, a file in the
//! current folder, in this order.
//!
//! A file that someone else could have written is never read: it must be a regular file, owned by the user and not
//! writable by everyone. The current folder's file is left out when it is the home folder's.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The words from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The place, as messages name it.
    pub name: String,
    /// Its words.
    pub words: Vec<OsString>,
}

/// The names under which options are kept; they follow the name that grind was called by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The file in the home and current folders.
    pub file: &'static str,
    /// The environment variable.
    pub variable: &'static str,
}

/// Reads all sources. The second part is a warning for each file that exists but was left out.
#[must_use]
pub fn read(
    names: Names,
    home: Option<&Path>,
    current: &Path,
    variable: Option<OsString>,
) -> (Vec<Source>, Vec<String>) {
    let mut sources = Vec::new();
    let mut warnings = Vec::new();
    let file = |folder: &Path, name: String, sources: &mut Vec<Source>, warnings: &mut Vec<String>| match read_file(
        &folder.join(names.file),
    ) {
        Ok(Some(text)) => sources.push(Source { name, words: words(&text) }),
        Ok(None) => {}
        Err(why) => warnings.push(format!("{name} was not read: {why}")),
    };
    if let Some(home) = home {
        file(home, format!("~/{}", names.file), &mut sources, &mut warnings);
    }
    if let Some(text) = variable {
        sources.push(Source { name: format!("${}", names.variable), words: words(text.as_bytes()) });
    }
    let at_home = home.is_some_and(|h| match (fs::metadata(h), fs::metadata(current)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    });
    if !at_home {
        file(current, format!("./{}", names.file), &mut sources, &mut warnings);
    }
    (sources, warnings)
}

/// The contents of `path`; `None` if there is no such file; the reason if it must not or cannot be read.
fn read_file(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    // Of the open file, so that it cannot be exchanged after the check.
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err("it belongs to another user; chown it or pass the options directly".to_owned());
    }
    if meta.mode() & 0o002 != 0 {
        return Err("everyone may write to it; run `chmod o-w` on it".to_owned());
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|e| e.to_string())?;
    Ok(Some(text))
}

/// The words of `text`: everything between blanks; a line that starts with `#` is a comment.
fn words(text: &[u8]) -> Vec<OsString> {
    text.split(|&b| b == b'\n')
        .filter(|line| !line.trim_ascii_start().starts_with(b"#"))
        .flat_map(|line| line.split(u8::is_ascii_whitespace))
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

/// The value of the environment variable `name`, if it is set.
#[must_use]
pub fn environment(name: &OsStr) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const NAMES: Names = Names { file: ".grindrc", variable: "GRIND_OPTS" };

    fn put(folder: &Path, text: &str, mode: u32) {
        let path = folder.join(".grindrc");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn all_words(sources: &[Source]) -> Vec<String> {
        sources.iter().flat_map(|s| &s.words).map(|w| w.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn home_then_variable_then_current() {
        let (home, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(home.path(), "# mine\n-q  --time-stamp=yes\n", 0o600);
        put(here.path(), "-v\n", 0o644);
        let (sources, warnings) = read(NAMES, Some(home.path()), here.path(), Some("--demangle=no".into()));
        assert_eq!(all_words(&sources), ["-q", "--time-stamp=yes", "--demangle=no", "-v"]);
        assert!(warnings.is_empty());
    }

    #[test]
    fn files_that_others_could_have_written_are_left_out() {
        let here = tempfile::tempdir().unwrap();
        put(here.path(), "-v", 0o666);
        let (sources, warnings) = read(NAMES, None, here.path(), None);
        assert!(sources.is_empty());
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("./.grindrc was not read: everyone may write to it"), "{warnings:?}");

        fs::remove_file(here.path().join(".grindrc")).unwrap();
        fs::create_dir(here.path().join(".grindrc")).unwrap();
        let (_, warnings) = read(NAMES, None, here.path(), None);
        assert_eq!(warnings, ["./.grindrc was not read: it is not a regular file"]);
    }

    #[test]
    fn the_home_folder_counts_once() {
        let home = tempfile::tempdir().unwrap();
        put(home.path(), "-v", 0o600);
        let (sources, _) = read(NAMES, Some(home.path()), home.path(), None);
        assert_eq!(all_words(&sources), ["-v"]);
    }
}
