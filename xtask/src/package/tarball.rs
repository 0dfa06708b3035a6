//! The tarball of a release: programs, manual pages, completions, headers, licences, and a script that installs them.
//!
//! The script has no list of its own: it installs what lies below `bin`, `include`, `libexec` and `share`, and takes the same away.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Source, VERSION, command, copy, time};
use crate::install::{From, items};

/// Installs the release that it lies in. For any POSIX shell.
const SCRIPT: &str = r#"#!/bin/sh
# Installs this release of grind:  ./install.sh PREFIX       takes it away again:  ./install.sh --uninstall PREFIX
set -eu
usage() { echo "usage: ./install.sh [--uninstall] PREFIX    (an absolute path, such as $HOME/.local)" >&2; exit 2; }
remove=
if [ "${1-}" = --uninstall ]; then remove=1; shift; fi
[ $# -eq 1 ] || usage
case $1 in /*) prefix=$1 ;; *) usage ;; esac
cd "$(dirname "$0")"
find bin include libexec share ! -type d | sort | while IFS= read -r file; do
    if [ -z "$remove" ]; then mkdir -p "$prefix/$(dirname "$file")"; fi
    rm -f "$prefix/$file"
    if [ -z "$remove" ]; then cp -P "$file" "$prefix/$file"; fi
done
if [ -n "$remove" ]; then
    # Those that are grind's alone, unless somebody else has put something into them.
    rmdir "$prefix/include/grind" "$prefix/libexec/grind" 2>/dev/null || true
    echo "grind is gone from $prefix"
else
    echo "grind is installed in $prefix; programs are in $prefix/bin"
fi
"#;

pub(super) fn make(source: Source<'_>) -> Result<PathBuf> {
    let Source { root, built, out } = source;
    let name = format!("grind-{VERSION}-x86_64-linux");
    let tree = out.join(&name);
    if tree.exists() {
        std::fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    for item in items(root, built)? {
        let to = tree.join(&item.to);
        match &item.from {
            From::File(from) => copy(from, &to, item.mode)?,
            From::Link(leads) => {
                std::fs::create_dir_all(to.parent().context("a folder")?)?;
                symlink(leads, &to).with_context(|| format!("cannot make {}", to.display()))?;
            }
        }
    }
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root.join(file), &tree.join(file), 0o644)?;
    }
    let script = tree.join("install.sh");
    std::fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
    std::fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    let package = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw,a-s"]);
    tar.arg(format!("--mtime=@{}", time(root)?)).arg("-czf").arg(&package).arg("-C").arg(out).arg(&name);
    command(&mut tar)?;
    std::fs::remove_dir_all(&tree)?;
    Ok(package)
}
