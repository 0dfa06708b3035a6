//! The same run at two commits, and what has changed.
//!
//! A commit is checked out as a work tree of git's in a folder of the target folder, and taken away again, whatever happens; what
//! it builds stays, so that a second comparison is fast. The user's own files are only ever read.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::build::{self, Ran};
use crate::options::{Options, Show, Tool, Verb};
use crate::{runner, show};

fn git(here: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).current_dir(here).output().context("cannot run git")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", words.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// A commit, checked out.
struct Tree {
    repository: PathBuf,
    path: PathBuf,
}

impl Tree {
    fn new(repository: &Path, commit: &str, path: PathBuf) -> Result<Self> {
        // One that was left behind by a run that was killed.
        let tree = Self { repository: repository.to_owned(), path };
        tree.remove();
        git(repository, &["worktree", "add", "--quiet", "--detach", &tree.path.to_string_lossy(), commit])?;
        Ok(tree)
    }

    fn remove(&self) {
        // There may be none.
        let _ = git(&self.repository, &["worktree", "remove", "--force", &self.path.to_string_lossy()]);
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Profiles at both commits and shows the differences; the status is that of cargo, if it failed.
///
/// # Errors
/// If something cannot be done, or nothing can be compared.
pub(crate) fn run(options: &Options) -> Result<u8> {
    let usage = "say what to compare with, and what to run: cargo grind compare main run -- input";
    let [commits, verb, words @ ..] = &options.words[..] else { bail!("{usage}") };
    let commits = commits.to_str().context("the name of a commit is no UTF-8")?;
    let verb = verb.to_str().and_then(|v| Verb::from_str(v, false).ok()).filter(|v| *v != Verb::Compare);
    let verb = verb.with_context(|| format!("after {commits} comes run, test, bench or example: {usage}"))?;
    ensure!(options.tool == Tool::Cachegrind, "profiles of calls are compared by cg_report NEW --base OLD");
    let (base, head) = match commits.split_once("..") {
        Some((base, head)) => (base, Some(head)),
        None => (commits, None),
    };
    let here = std::env::current_dir()?;
    let target = build::target_folder(&here)?;
    let own = target.join("grind");
    let at = |commit: &str, name: &str| -> Result<Ran> {
        let out = own.join(name);
        let id = git(&here, &["rev-parse", "--verify", "--quiet", &format!("{commit}^{{commit}}")])
            .map_err(|_| anyhow::anyhow!("git knows no commit {commit:?}"))?;
        let below = git(&here, &["rev-parse", "--show-prefix"])?;
        std::fs::create_dir_all(&out)?;
        let tree = Tree::new(&here, &id, out.join("tree"))?;
        build::profile(options, verb, words, &tree.path.join(below), &out, Some(&out.join("target")))
    };
    let before = at(base, "base")?;
    if before.status != 0 {
        eprintln!("cargo grind: cargo failed at {base}");
        return Ok(before.status);
    }
    let after = match head {
        Some(head) => at(head, "head")?,
        None => build::profile(options, verb, words, &here, &own.join("head"), None)?,
    };
    if after.status != 0 {
        return Ok(after.status);
    }
    compare(options, &own, &before.profiles, &after.profiles, [base, head.unwrap_or("the files here")])
}

/// Shows the difference of each pair of profiles of one name.
fn compare(options: &Options, out: &Path, before: &[PathBuf], after: &[PathBuf], names: [&str; 2]) -> Result<u8> {
    let mut pairs = 0;
    for (paths, others, at) in [(before, after, names[0]), (after, before, names[1])] {
        for path in paths.iter().filter(|path| !others.iter().any(|o| o.file_name() == path.file_name())) {
            eprintln!("cargo grind: only {at} has {}", path.file_name().unwrap_or_default().to_string_lossy());
        }
    }
    for new in after {
        let Some(old) = before.iter().find(|old| old.file_name() == new.file_name()) else { continue };
        pairs += 1;
        let mut name = OsString::from("difference.");
        name.push(new.file_name().unwrap_or_default());
        let difference = out.join(name);
        let file = File::create(&difference).with_context(|| format!("cannot write {}", difference.display()))?;
        let mut command = Command::new(runner::program("cg_diff"));
        command.arg("--match-paths").arg(old).stdout(file);
        show::run(command, new)?;
        eprintln!("cargo grind: {} minus {}: {}", names[1], names[0], difference.display());
        if options.show != Show::Nothing {
            let mut command = Command::new(runner::program("cg_annotate"));
            command.args(["--no-annotate", "--no-show-percs"]).arg(format!("--threshold={}", options.threshold));
            show::run(command, &difference)?;
        }
    }
    ensure!(pairs > 0, "no program ran at both commits, so that nothing can be compared");
    Ok(0)
}
