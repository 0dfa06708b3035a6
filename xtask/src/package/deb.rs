//! The Debian package, by debhelper and the files of `debian/`.
//!
//! It is made in a folder of cargo's target folder, which lies in the workspace, so that the rules find it: debhelper leaves
//! files beside `debian/` and cleans what it takes for rubbish, and neither must happen to the sources.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Source, VERSION, command, copy, time};

pub(super) fn make(source: Source<'_>) -> Result<PathBuf> {
    let Source { root, out, .. } = source;
    ensure!(
        out.starts_with(root),
        "a Debian package is made below the workspace: unset CARGO_TARGET_DIR, {} is not",
        out.display()
    );
    let tree = out.join("deb");
    if tree.exists() {
        std::fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    for file in files(&root.join("debian"))? {
        let below = file.strip_prefix(root).context("below the workspace")?.to_owned();
        let mode = if below.ends_with("debian/rules") { 0o755 } else { 0o644 };
        copy(&file, &tree.join(below), mode)?;
    }
    for file in ["README.md", "CHANGELOG.md"] {
        copy(&root.join(file), &tree.join(file), 0o644)?;
    }
    let mut rules = Command::new("debian/rules");
    rules.arg("binary").current_dir(&tree).env("DEB_RULES_REQUIRES_ROOT", "no").env("DEB_DESTDIR", out);
    rules.env("SOURCE_DATE_EPOCH", time(root)?.to_string());
    command(&mut rules).context("install debhelper (apt-get install debhelper), if it is missing")?;
    let package = out.join(format!("grind_{VERSION}_amd64.deb"));
    ensure!(package.is_file(), "debhelper made no {}", package.display());
    Ok(package)
}

/// All files below a folder.
fn files(folder: &std::path::Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}
