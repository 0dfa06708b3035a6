//! Calling cargo: with line tables, optimized unless otherwise wished, and with this program as the runner.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::options::{Options, Verb};
use crate::runner;

/// What a call of cargo came to.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Cargo's exit status.
    pub(crate) status: u8,
    /// The profiles that were written, in the order of the runs.
    pub(crate) profiles: Vec<PathBuf>,
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The target folder of the package in the folder `here`.
///
/// # Errors
/// If there is no package, in cargo's words.
pub(crate) fn target_folder(here: &Path) -> Result<PathBuf> {
    let mut command = cargo();
    let output = command.args(["metadata", "--no-deps", "--format-version=1"]).current_dir(here).output();
    let output = output.context("cannot run cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("what cargo metadata prints")?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata names no target folder")?.into())
}

/// The words for cargo: the command, and `--release` where nothing else is said about that. What is behind `--` is not cargo's.
fn words(options: &Options, verb: Verb, typed: &[OsString]) -> Vec<OsString> {
    let command: &[&str] = match verb {
        Verb::Run => &["run"],
        Verb::Test => &["test"],
        Verb::Bench => &["bench"],
        Verb::Example => &["run", "--example"],
        Verb::Compare => unreachable!("compare has another word behind it"),
    };
    let mut words: Vec<OsString> = command.iter().map(Into::into).collect();
    words.extend(typed.iter().cloned());
    let cargos = typed.iter().take_while(|w| *w != "--");
    let says =
        cargos.into_iter().any(|w| w == "--release" || w == "-r" || w.as_encoded_bytes().starts_with(b"--profile"));
    // Cargo optimizes benchmarks only.
    let wanted = match (options.dev, verb == Verb::Bench) {
        (false, false) => Some("--release"),
        (true, true) => Some("--profile=dev"),
        _ => None,
    };
    if let Some(word) = wanted.filter(|_| !says) {
        // Behind `run`, and before the name of an example.
        words.insert(1, word.into());
    }
    words
}

/// The profile of cargo that the words choose, if they name one.
fn named_profile(typed: &[OsString]) -> Option<String> {
    let cargos: Vec<&OsStr> = typed.iter().take_while(|w| *w != "--").map(OsString::as_os_str).collect();
    let apart = cargos.windows(2).find(|pair| pair[0] == "--profile").map(|pair| pair[1].to_string_lossy());
    let joined = cargos.iter().find_map(|w| w.to_str()?.strip_prefix("--profile=").map(Into::into));
    Some(joined.or(apart)?.into_owned())
}

/// Runs cargo in the folder `here`; profiles go to the folder `out`. With `target`, cargo builds there.
///
/// # Errors
/// If cargo cannot be run, or a file not be written.
pub(crate) fn profile(
    options: &Options,
    verb: Verb,
    typed: &[OsString],
    here: &Path,
    out: &Path,
    target: Option<&Path>,
) -> Result<Ran> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let list = out.join("profiles");
    std::fs::write(&list, "").with_context(|| format!("cannot write {}", list.display()))?;
    let mut command = cargo();
    // As TOML, so that blanks in the path are not taken for the end of a word.
    let own = std::env::current_exe().context("the path of this program")?;
    let own = serde_json::to_string(own.to_str().context("the path of this program is no UTF-8")?)?;
    for target in ["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"] {
        command.args(["--config", &format!("target.{target}.runner=[{own}, \"{}\"]", runner::WORD)]);
    }
    command.args(words(options, verb, typed)).current_dir(here);
    let mut grind: Vec<OsString> = vec![format!("--tool={}", options.tool.name()).into()];
    grind.extend(options.more.iter().cloned());
    command.env(runner::OPTIONS, runner::joined(&grind)).env(runner::FOLDER, out).env(runner::LIST, &list);
    let more = named_profile(typed);
    for name in ["release", "bench", "dev", "test"].into_iter().chain(more.as_deref()) {
        let name = name.to_uppercase().replace('-', "_");
        command.env(format!("CARGO_PROFILE_{name}_DEBUG"), "line-tables-only");
        command.env(format!("CARGO_PROFILE_{name}_STRIP"), "none");
    }
    if let Some(target) = target {
        command.env("CARGO_TARGET_DIR", target);
    }
    let status = command.status().context("cannot run cargo")?;
    let listed = std::fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let profiles = listed.lines().map(PathBuf::from).filter(|path| path.is_file()).collect();
    let status = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(Ran { status, profiles })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn told(line: &str) -> String {
        let options = Options::parse_from(format!("cargo-grind {line}").split(' '));
        let words = words(&options, options.verb, &options.words);
        words.iter().map(|w| w.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_cargos_stays_as_it_is() {
        assert_eq!(told("run --bin x -- -q --release"), "run --release --bin x -- -q --release");
        assert_eq!(told("--dev run -p x"), "run -p x");
        assert_eq!(told("test --profile ci name"), "test --profile ci name");
        assert_eq!(told("test -r"), "test -r");
        assert_eq!(told("example fast 1 2"), "run --release --example fast 1 2");
        assert_eq!(told("bench --bench speed"), "bench --bench speed");
        assert_eq!(told("--dev bench x"), "bench --profile=dev x");
        let named = |words: &[&str]| named_profile(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(named(&["--profile", "my-own"]).as_deref(), Some("my-own"));
        assert_eq!(named(&["--profile=ci", "--", "--profile=x"]).as_deref(), Some("ci"));
        assert_eq!(named(&["--", "--profile=x"]), None);
    }
}
