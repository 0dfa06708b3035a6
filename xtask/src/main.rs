//! `cargo xtask`: what developers of grind do daily, a command each. It only starts cargo with the right words, and installs; what
//! is tested, and how, is for the tests themselves.
#![forbid(unsafe_code)]

mod areas;
mod cycles;
mod held_up;
mod install;
mod package;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand, ValueEnum};

/// What developers of grind do daily.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the tests of one area of the code; without one, list the areas
    Test {
        /// Its name
        area: Option<String>,
        /// Hold threads up at random meanwhile, so that tests fail which hang on what comes first
        #[arg(long)]
        held_up: bool,
        /// Words for the tests themselves: parts of their names, --ignored, --nocapture
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Write the expectations of golden tests anew (then look at the difference); without an area, list them
    Bless {
        /// Its name
        area: Option<String>,
    },
    /// Measure what profiling costs
    Bench {
        /// Words for the bench command, such as fib --repeats 3
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Make the plot and the table of the README anew from recorded runs
    Figures,
    /// Make the README anew: the plot and the table from recorded runs, what its first commands print, and, with --pictures, those of
    /// a report (which want node, npm and chromium)
    Readme {
        /// Take pictures of a report, too
        #[arg(long)]
        pictures: bool,
    },
    /// Run a fuzz target on kept inputs and mutations of them
    Fuzz {
        /// Words for the fuzz driver: a target, --seconds N, --seed N
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<String>,
    },
    /// Compare emitted code with its listings
    Listings,
    /// Check the documents: links, names of files and tests, lengths, figures
    Docs,
    /// Make the tables of cycles anew from llvm-mca
    Cycles {
        /// The programs' version, as in llvm-mca-19
        #[arg(long, default_value = "19")]
        llvm: String,
    },
    /// Build the programs, for release
    Build,
    /// Build and install programs, manual pages, completions and headers
    Install {
        /// Where: an absolute path, such as /usr/local
        prefix: PathBuf,
        /// A folder that stands for the root, for packagers
        #[arg(long, value_name = "FOLDER")]
        destdir: Option<PathBuf>,
    },
    /// Build, and make packages for others to install
    Package {
        /// Which kinds; all if none is named
        kinds: Vec<package::Kind>,
        /// Also try each: install it where nothing else is, use it, take it away (a Debian package wants root, lintian, debootstrap)
        #[arg(long = "try")]
        tries: bool,
    },
    /// Take away what `install` has installed
    Uninstall {
        /// Where it was installed
        prefix: PathBuf,
        /// A folder that stands for the root, for packagers
        #[arg(long, value_name = "FOLDER")]
        destdir: Option<PathBuf>,
    },
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")
}

fn cargo(words: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    eprintln!("cargo {}", words.join(" "));
    let status = Command::new(cargo).args(words).envs(environment.iter().copied()).current_dir(root()?).status();
    ensure!(status.context("cannot run cargo")?.success(), "cargo {} failed", words.join(" "));
    Ok(())
}

fn area(name: &str) -> Result<&'static areas::Area> {
    let Some(area) = areas::find(name) else { bail!("no area is called {name:?}; there are\n{}", areas::list(false)) };
    Ok(area)
}

/// Builds the tests of an area, and the programs that they would build.
fn build_tests(name: &str) -> Result<()> {
    cargo(&["build", "--workspace", "--bins"], &[])?;
    for run in area(name)?.runs {
        let packages = run.split(|word| *word == "--").next().unwrap_or_default();
        cargo(&[&["test", "--no-run"], packages].concat(), &[])?;
    }
    Ok(())
}

/// The tests of an area, with more words for each run.
fn test(name: &str, words: &[String], environment: &[(&str, &str)]) -> Result<()> {
    for run in area(name)?.runs {
        cargo(&arguments(run, words), environment)?;
    }
    Ok(())
}

/// The words of one run. Names among `words` come instead of an area's modules, since the harness runs what fits either.
fn arguments<'a>(run: &[&'a str], words: &'a [String]) -> Vec<&'a str> {
    let modules = run.iter().position(|word| *word == "--").unwrap_or(run.len());
    let named = words.iter().any(|word| !word.starts_with('-'));
    let mut all = vec!["test"];
    all.extend(&run[..modules]);
    // Of what is behind `--` there may be several.
    all.push("--");
    if !named {
        all.extend(run.iter().skip(modules + 1));
    }
    all.extend(words.iter().map(String::as_str));
    all
}

fn figures() -> Result<()> {
    cargo(&["run", "-p", "grind-bench", "--bin", "figures"], &[])
}

/// Takes the README's pictures of the report that its commands make.
fn take_pictures(root: &Path) -> Result<()> {
    const COMMANDS: &str = "gcc -g -O1 -ffile-prefix-map=\"$PWD=.\" -o words docs/examples/words.c &&
        \"$1/grind\" -q --tool=callgrind --dump-instr=yes --callgrind-out-file=\"$2/words\" ./words < LICENSE-APACHE &&
        \"$1/cg_report\" -o \"$2/words.html\" \"$2/words\" && rm words && cd cg-report/web &&
        npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && node screenshots.mjs \"$2/words.html\" find";
    build()?;
    let folder = built()?.with_file_name("readme");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let status =
        Command::new("bash").args(["-ec", COMMANDS, "readme"]).arg(built()?).arg(folder).current_dir(root).status();
    ensure!(status.context("cannot run bash")?.success(), "the pictures could not be taken");
    Ok(())
}

fn build() -> Result<()> {
    let programs = install::programs(root()?)?;
    let words: Vec<&str> =
        ["build", "--release"].into_iter().chain(programs.iter().flat_map(|p| ["--bin", p.as_str()])).collect();
    cargo(&words, &[])
}

/// Where cargo puts what it builds for release. (This program is built by it, too.)
fn built() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.ancestors().nth(2).context("the target folder")?.join("release"))
}

fn main() -> ExitCode {
    match run(Options::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("cargo xtask: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Test { area: Some(area), held_up: false, words } => test(&area, &words, &[]),
        Task::Test { area: Some(area), held_up: true, words } => {
            build_tests(&area)?;
            held_up::meanwhile(|| test(&area, &words, &[]))
        }
        Task::Test { area: None, .. } => {
            print!("{}", areas::list(false));
            Ok(())
        }
        Task::Bless { area: Some(area) } => {
            ensure!(
                areas::find(&area).is_none_or(|a| a.golden),
                "{area} has no golden files; these have:\n{}",
                areas::list(true)
            );
            test(&area, &[], &[("BLESS", "1")])?;
            println!("Look at the difference before you commit it: git diff");
            Ok(())
        }
        Task::Bless { area: None } => {
            print!("{}", areas::list(true));
            Ok(())
        }
        Task::Bench { words } => {
            passed_on(&["run", "--release", "-p", "grind-bench", "--bin", "grind-bench", "--"], &words)
        }
        Task::Figures => figures(),
        Task::Readme { pictures } => {
            figures()?;
            test("book", &["readme".to_owned()], &[("BLESS", "1")])?;
            if pictures {
                take_pictures(root()?)?;
            }
            println!("Look at the difference before you commit it: git diff");
            Ok(())
        }
        Task::Fuzz { words } => passed_on(&["run", "--release", "-p", "grind-fuzz", "--bin", "fuzz", "--"], &words),
        Task::Listings => test("listings", &[], &[]),
        Task::Docs => test("documents", &[], &[]),
        Task::Cycles { llvm } => cycles::make(root()?, &llvm),
        Task::Build => build(),
        Task::Install { prefix, destdir } => {
            ensure!(prefix.is_absolute(), "{} is no absolute path", prefix.display());
            build()?;
            let target = install::target(&prefix, destdir.as_deref());
            let n = install::install(root()?, &built()?, &target)?;
            println!("{n} files below {}", target.display());
            Ok(())
        }
        Task::Package { kinds, tries } => {
            let kinds = if kinds.is_empty() { package::Kind::value_variants() } else { &kinds };
            build()?;
            let built = built()?;
            let out = built.with_file_name("package");
            for (kind, path) in package::make(root()?, &built, &out, kinds)? {
                println!("{}", path.display());
                if tries {
                    package::trial(kind, &path)?;
                    println!("  was installed, used and removed");
                }
            }
            Ok(())
        }
        Task::Uninstall { prefix, destdir } => {
            ensure!(prefix.is_absolute(), "{} is no absolute path", prefix.display());
            let target = install::target(&prefix, destdir.as_deref());
            let n = install::uninstall(root()?, &target)?;
            println!("{n} files are gone from {}", target.display());
            Ok(())
        }
    }
}

fn passed_on(words: &[&str], more: &[String]) -> Result<()> {
    let all: Vec<&str> = words.iter().copied().chain(more.iter().map(String::as_str)).collect();
    cargo(&all, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_instead_of_modules_and_flags_beside_them() {
        let run = ["-p", "grind-tests", "--", "words::", "layers::"];
        let with = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments(&run, &words).join(" ")
        };
        assert_eq!(with(&[]), "test -p grind-tests -- words:: layers::");
        assert_eq!(with(&["--nocapture"]), "test -p grind-tests -- words:: layers:: --nocapture");
        assert_eq!(with(&["of_ids"]), "test -p grind-tests -- of_ids");
        assert_eq!(arguments(&run[..2], &[]).join(" "), "test -p grind-tests --");
    }
}
