//! Packages: what `install` installs, as a Debian package, as a tarball and as a wheel, each tried where nothing else is.
//!
//! All of them hold the files of the one list of [`crate::install`]; nothing is listed twice. A package made twice from the same
//! commit has the same bytes: times are that of the commit (or `SOURCE_DATE_EPOCH`), owners are nobody's. What is made lies in
//! `package/` of cargo's target folder, and nothing is written elsewhere but what the trials put into folders of their own.

mod deb;
mod elf;
mod tarball;
mod trial;
mod wheel;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

/// The version of all that is packaged.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A Debian package (wants debhelper)
    Deb,
    /// A compressed tar archive with a script that installs (wants binutils)
    Tarball,
    /// A wheel for pip (wants binutils)
    Wheel,
}

/// What packages are made of.
#[derive(Clone, Copy, Debug)]
struct Source<'p> {
    /// The workspace.
    root: &'p Path,
    /// Where the built programs are.
    built: &'p Path,
    /// Where packages go.
    out: &'p Path,
}

/// Makes packages of these kinds from what is built; returns their paths.
///
/// # Errors
/// If a program that makes one is missing or fails, or a file cannot be read or written.
pub(crate) fn make(root: &Path, built: &Path, out: &Path, kinds: &[Kind]) -> Result<Vec<(Kind, PathBuf)>> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let source = Source { root, built, out };
    let one = |kind: &Kind| {
        let path = match kind {
            Kind::Deb => deb::make(source),
            Kind::Tarball => tarball::make(source),
            Kind::Wheel => wheel::make(source),
        };
        Ok((*kind, path?))
    };
    kinds.iter().map(one).collect()
}

/// Installs a package where nothing else is, uses it, and takes it away again.
///
/// # Errors
/// What went wrong, with what the commands printed.
pub(crate) fn trial(kind: Kind, package: &Path) -> Result<()> {
    trial::run(kind, package)
}

/// Runs a command to its end; its standard output.
fn command(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{program} failed with {}:\n{out}{err}", output.status);
    Ok(out.into_owned())
}

/// Seconds since 1970 that files of packages are of.
fn time(root: &Path) -> Result<u64> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let text = match given {
        Some(text) => text,
        None => command(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))
            .context("without a git repository SOURCE_DATE_EPOCH must be set")?,
    };
    text.trim().parse().with_context(|| format!("{:?} is no time", text.trim()))
}

/// A copy of a file at `to`, without debug information if it is a built program.
fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let folder = to.parent().context("a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    std::fs::set_permissions(to, Permissions::from_mode(mode)).with_context(|| to.display().to_string())?;
    if elf::is_elf(&std::fs::read(to)?) {
        command(Command::new("strip").arg("--strip-debug").arg(to))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    /// Programs that are none, but for one, which is the shell: a program with a loader.
    fn built(folder: &Path) -> PathBuf {
        let built = folder.join("built");
        std::fs::create_dir(&built).unwrap();
        for program in crate::install::programs(root()).unwrap() {
            std::fs::write(built.join(&program), format!("#!/bin/sh\necho {program} runs\n")).unwrap();
        }
        std::fs::copy("/bin/sh", built.join("cg_diff")).unwrap();
        built
    }

    /// Makes a package twice; it must have the same bytes. Returns its path.
    fn made(kind: Kind, folder: &Path) -> PathBuf {
        let built = built(folder);
        let make = |out: &str| make(root(), &built, &folder.join(out), &[kind]).unwrap().remove(0).1;
        let (first, second) = (make("first"), make("second"));
        assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap(), "packages can be made again");
        let left = std::fs::read_dir(folder.join("first")).unwrap().count();
        assert_eq!(left, 1, "nothing but the package is left");
        first
    }

    #[test]
    fn a_tarball_installs_in_an_empty_folder_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let package = made(Kind::Tarball, dir.path());
        let script = r#"
            cd "$1"; tar xf "$2"; mkdir prefix
            ./grind-*/install.sh "$1/prefix with a blank"
            "prefix with a blank/libexec/grind/valgrind"
            "prefix with a blank/bin/cg_annotate"
            ./grind-*/install.sh "$1/prefix with a blank" # over what is there
            ls "prefix with a blank/share/man/man1/grind.1" "prefix with a blank/include/grind"
            ./grind-*/install.sh --uninstall "$1/prefix with a blank"
            find "prefix with a blank" ! -type d
            find "prefix with a blank" -name grind
            ! ./grind-*/install.sh relative/path 2>&1"#;
        let said = command(Command::new("sh").args(["-euc", script, "sh"]).arg(dir.path()).arg(&package)).unwrap();
        let said = said.replace(&dir.path().display().to_string(), "/AT");
        let expected = "grind is installed in /AT/prefix with a blank; programs are in /AT/prefix with a blank/bin\n\
            grind runs\ncg_annotate runs\n\
            grind is installed in /AT/prefix with a blank; programs are in /AT/prefix with a blank/bin\n\
            prefix with a blank/share/man/man1/grind.1\n\nprefix with a blank/include/grind:\n\
            cachegrind.h\ncallgrind.h\nvalgrind.h\ngrind is gone from /AT/prefix with a blank\n\
            usage: ./install.sh [--uninstall] PREFIX    (an absolute path, such as $HOME/.local)\n";
        let home = std::env::var("HOME").unwrap_or_default();
        assert_eq!(said.replace(&home, "$HOME"), expected);
    }

    #[test]
    fn a_wheel_records_all_that_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let package = made(Kind::Wheel, dir.path());
        let name = package.file_name().unwrap().to_str().unwrap();
        let tag = name.strip_prefix(&format!("grind_profiler-{VERSION}-")).unwrap().strip_suffix(".whl").unwrap();
        assert!(tag.starts_with("py3-none-manylinux_2_") && !tag.contains("musl"), "a dynamic program: {tag}");
        let mut zip = zip::ZipArchive::new(std::fs::File::open(&package).unwrap()).unwrap();
        let mut members = BTreeMap::new();
        for index in 0..zip.len() {
            let mut member = zip.by_index(index).unwrap();
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).unwrap();
            members.insert(member.name().unwrap().into_owned(), (bytes, member.unix_mode().unwrap()));
        }
        let text = |name: &str| {
            let name = format!("grind_profiler-{VERSION}.{name}");
            String::from_utf8(members.get(&name).unwrap_or_else(|| panic!("no {name}")).0.clone()).unwrap()
        };
        assert!(text("dist-info/WHEEL").contains(&format!("Tag: {tag}\n")));
        assert!(text("dist-info/METADATA").contains("\nName: grind-profiler\n"));
        for program in ["data/scripts/grind", "data/scripts/callgrind_control", "data/data/libexec/grind/valgrind"] {
            assert!(text(program).contains(" runs"));
            assert_eq!(members[&format!("grind_profiler-{VERSION}.{program}")].1 & 0o777, 0o755, "{program}");
        }
        let record = text("dist-info/RECORD");
        let listed: Vec<&str> = record.lines().map(|l| l.split(',').next().unwrap()).collect();
        assert_eq!(listed.len(), members.len());
        assert!(listed.iter().all(|name| members.contains_key(*name)));
        let length = text("data/scripts/grind").len();
        assert!(record.lines().any(|l| l.contains("scripts/grind,sha256=") && l.ends_with(&format!(",{length}"))));
    }

    #[test]
    fn the_debian_package_has_its_parts() {
        let mode = |name: &str| std::fs::metadata(root().join("debian").join(name)).unwrap().permissions().mode();
        assert!(mode("rules") & 0o111 != 0, "make runs debian/rules");
        for name in ["control", "copyright", "source/format"] {
            assert!(mode(name) != 0);
        }
    }

    #[test]
    fn a_failing_command_says_what_it_said() {
        let wrong = command(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"])).unwrap_err().to_string();
        assert!(wrong.contains("one") && wrong.contains("two") && wrong.contains('3'), "{wrong}");
    }

    #[test]
    fn the_debian_changelog_is_of_this_version() {
        let log = std::fs::read_to_string(root().join("debian/changelog")).unwrap();
        assert!(log.starts_with(&format!("grind ({VERSION}) ")), "debian/changelog must begin with version {VERSION}");
    }
}
