//! Installing what was built: programs, manual pages, completions, headers, and grind under Valgrind's name in a folder of its own.
//!
//! What is installed follows from the repository: a program is whatever has a manual page `man/NAME.1`. The list of files is
//! made once, for installing and for taking away, so that nothing that was installed is left behind. Nothing outside of the
//! prefix is ever touched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// A copy of a file.
    File(PathBuf),
    /// A symbolic link that leads there.
    Link(&'static str),
}

/// One thing that is installed.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) from: From,
    /// Below the prefix.
    pub(crate) to: String,
    /// Permissions; 0 for a link.
    pub(crate) mode: u32,
}

/// The names of the programs: those that have a manual page.
///
/// # Errors
/// If the manual pages cannot be read.
pub(crate) fn programs(root: &Path) -> Result<Vec<String>> {
    let man = root.join("man");
    let mut names = Vec::new();
    for entry in fs::read_dir(&man).with_context(|| man.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".1").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// All that is installed, of programs in the folder `built`.
///
/// # Errors
/// If the repository's files cannot be listed.
pub(crate) fn items(root: &Path, built: &Path) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut put = |from: PathBuf, to: String, mode| items.push(Item { from: From::File(from), to, mode });
    for name in programs(root)? {
        put(built.join(&name), format!("bin/{name}"), 0o755);
        put(root.join(format!("man/{name}.1")), format!("share/man/man1/{name}.1"), 0o644);
        let completions = root.join("man/completions");
        for (file, to) in [
            (format!("{name}.bash"), format!("share/bash-completion/completions/{name}")),
            (format!("{name}.fish"), format!("share/fish/vendor_completions.d/{name}.fish")),
            (format!("_{name}"), format!("share/zsh/site-functions/_{name}")),
        ] {
            let from = completions.join(file);
            if from.is_file() {
                put(from, to, 0o644);
            }
        }
    }
    let include = root.join("include");
    for entry in fs::read_dir(&include).with_context(|| include.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".h") {
            put(entry.path(), format!("include/grind/{name}"), 0o644);
        }
    }
    items.push(Item { from: From::Link("../../bin/grind"), to: "libexec/grind/valgrind".into(), mode: 0 });
    Ok(items)
}

/// The prefix below the folder for packagers, if there is one.
pub(crate) fn target(prefix: &Path, destdir: Option<&Path>) -> PathBuf {
    match destdir {
        Some(dir) => dir.join(prefix.strip_prefix("/").unwrap_or(prefix)),
        None => prefix.to_owned(),
    }
}

/// Installs what was built in the folder `built`; returns how many files there are.
///
/// # Errors
/// If a file is missing, before anything is installed; or if one cannot be written.
pub(crate) fn install(root: &Path, built: &Path, target: &Path) -> Result<usize> {
    let items = items(root, built)?;
    for item in &items {
        if let From::File(from) = &item.from {
            ensure!(from.is_file(), "{} is missing: has it been built?", from.display());
        }
    }
    for item in &items {
        let to = target.join(&item.to);
        let folder = to.parent().unwrap_or(target);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // A program that runs cannot be written to, but replaced.
        remove(&to)?;
        match &item.from {
            From::File(from) => {
                fs::copy(from, &to).with_context(|| format!("cannot write {}", to.display()))?;
                fs::set_permissions(&to, fs::Permissions::from_mode(item.mode))
                    .with_context(|| to.display().to_string())?;
            }
            From::Link(leads) => {
                std::os::unix::fs::symlink(leads, &to).with_context(|| format!("cannot make {}", to.display()))?;
            }
        }
    }
    Ok(items.len())
}

/// Takes away what [`install`] installs, and the folders that are only grind's.
///
/// # Errors
/// If a file is there and cannot be removed.
pub(crate) fn uninstall(root: &Path, target: &Path) -> Result<usize> {
    let mut removed = 0;
    for item in items(root, Path::new(""))? {
        removed += usize::from(remove(&target.join(&item.to))?);
    }
    for folder in ["include/grind", "libexec/grind"] {
        // One that somebody else has put something into stays.
        let _ = fs::remove_dir(target.join(folder));
    }
    Ok(removed)
}

/// Removes a file, if there is one; says whether there was.
fn remove(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e).with_context(|| format!("cannot remove {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    fn files(below: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut folders = vec![below.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else {
                    found.insert(path.strip_prefix(below).unwrap().display().to_string());
                }
            }
        }
        found
    }

    #[test]
    fn what_is_installed_is_taken_away_again() {
        let dir = tempfile::tempdir().unwrap();
        let built = dir.path().join("built");
        fs::create_dir(&built).unwrap();
        let programs = programs(root()).unwrap();
        assert!(programs.iter().any(|p| p == "grind") && programs.iter().any(|p| p == "cg_annotate"), "{programs:?}");
        for program in &programs {
            fs::write(built.join(program), "#!/bin/sh\necho it runs\n").unwrap();
        }
        let target = target(Path::new("/opt/grind"), Some(&dir.path().join("package")));
        assert_eq!(target, dir.path().join("package/opt/grind"));
        let other = target.join("bin/other");
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::write(&other, "").unwrap();

        let n = install(root(), &built, &target).unwrap();
        let there = files(&target);
        assert_eq!(there.len(), n + 1);
        for name in ["bin/grind", "share/man/man1/grind.1", "share/bash-completion/completions/grind"] {
            assert!(there.contains(name), "{name} is missing in {there:?}");
        }
        assert!(there.contains("include/grind/valgrind.h") && there.contains("share/zsh/site-functions/_grind"));
        let said = std::process::Command::new(target.join("libexec/grind/valgrind")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "it runs\n", "the link leads to the program");
        // Once more, over what is there.
        assert_eq!(install(root(), &built, &target).unwrap(), n);

        assert_eq!(uninstall(root(), &target).unwrap(), n);
        assert_eq!(files(&target), BTreeSet::from(["bin/other".to_owned()]));
        assert!(!target.join("include/grind").exists());
    }

    #[test]
    fn nothing_is_installed_if_something_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let wrong = install(root(), dir.path(), &dir.path().join("opt")).unwrap_err();
        assert!(wrong.to_string().contains("is missing"), "{wrong}");
        assert!(!dir.path().join("opt").exists());
    }
}
