//! Trials: a package is installed where nothing else is, used, and taken away without a trace.
//!
//! A tarball goes to an empty folder, a wheel to a new virtual environment, a Debian package through lintian and then into
//! a Debian of its own that debootstrap makes (which wants root and a mirror). What a trial makes lies in a temporary folder.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Kind, command};

/// What is done with any package that is installed below `$AT`: a profile is made and shown, under both names.
const USE: &str = r#"
cd "$AT/try"
grind -q --cachegrind-out-file=a.out ls /
cg_annotate a.out | grep -q 'PROGRAM TOTALS'
grind -q --tool=callgrind --callgrind-out-file=c.out ls /
callgrind_annotate c.out | grep -q 'PROGRAM TOTALS'
cg_report -o c.html c.out
grep -q '<html' c.html
[ "$(PATH=$LIBEXEC:$PATH; valgrind --version | cut -d. -f1)" = valgrind-3 ]
PATH=$LIBEXEC:$PATH valgrind --tool=cachegrind --cachegrind-out-file=v.out true 2>v.log
grep -q 'I *refs' v.log
for program in grind cg_annotate cg_diff mem_annotate cg_merge cg_export cg_import cg_report callgrind_annotate callgrind_control cg_control cargo-grind; do
    "$program" --version >/dev/null
done
"#;

/// Into an empty folder, and away again: nothing may stay.
const TARBALL: &str = r#"
cd "$AT"
tar xf "$PACKAGE"
mkdir try prefix
./grind-*/install.sh "$AT/prefix"
[ -s prefix/share/man/man1/grind.1 ]
PATH="$AT/prefix/bin:/usr/bin:/bin" LIBEXEC="$AT/prefix/libexec/grind" sh -euc "$USE"
./grind-*/install.sh --uninstall "$AT/prefix"
left=$(find prefix ! -type d)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
"#;

/// Into a new virtual environment.
const WHEEL: &str = r#"
cd "$AT"
mkdir try
python3 -m venv v
find v ! -type d | grep -v __pycache__ | sort >before
v/bin/pip install --quiet --no-index --disable-pip-version-check "$PACKAGE"
[ -s v/share/man/man1/grind.1 ]
PATH="$AT/v/bin:/usr/bin:/bin" LIBEXEC="$AT/v/libexec/grind" sh -euc "$USE"
v/bin/pip check --disable-pip-version-check
v/bin/pip uninstall --quiet --yes --disable-pip-version-check grind-profiler
find v ! -type d | grep -v __pycache__ | sort >after
diff before after
"#;

/// Through lintian, and into a Debian with nothing else.
const DEB: &str = r#"
cd "$AT"
lintian --fail-on error,warning "$PACKAGE"
debootstrap --variant=minbase stable root "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >debootstrap.log 2>&1 || {
    tail -n 20 debootstrap.log; exit 1; }
cp "$PACKAGE" root/package.deb
mkdir root/try
trap 'umount root/proc 2>/dev/null || true' EXIT
mount -t proc proc root/proc
in_root() { chroot root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin AT= LIBEXEC=/usr/libexec/grind USE="$USE" sh -euc "$1"; }
in_root 'find / -xdev ! -type d' | grep -v '^/var/\|^/try/' | sort >before
in_root 'dpkg -i /package.deb'
in_root 'dpkg -L grind | grep -q bin/grind'
in_root "$USE"
in_root 'dpkg --purge grind'
in_root 'find / -xdev ! -type d' | grep -v '^/var/\|^/try/' | sort >after
diff before after
"#;

pub(super) fn run(kind: Kind, package: &Path) -> Result<()> {
    let (script, wanted): (_, &[&str]) = match kind {
        Kind::Tarball => (TARBALL, &["tar"]),
        Kind::Wheel => (WHEEL, &["python3"]),
        Kind::Deb => (DEB, &["lintian", "debootstrap", "chroot"]),
    };
    for program in wanted {
        let there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output()?.status.success();
        if !there {
            bail!("the trial wants {program}: install it first");
        }
    }
    let dir = tempfile::tempdir().context("no temporary folder")?;
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).env("AT", dir.path()).env("USE", USE).env("PACKAGE", package);
    command(&mut shell).with_context(|| format!("the trial of {}", package.display()))?;
    Ok(())
}
