//! Showing results, by the programs that show profiles.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::options::{Options, Show, Tool};
use crate::runner;

/// Shows a profile as the options say.
///
/// # Errors
/// If the program that shows it cannot be run or fails.
pub(crate) fn profile(options: &Options, path: &Path) -> Result<()> {
    eprintln!("cargo grind: profile {}", path.display());
    let threshold = &options.threshold;
    let command = match (options.show, options.tool) {
        (Show::Nothing, _) => return Ok(()),
        (Show::Report, _) => {
            let mut command = Command::new(runner::program("cg_report"));
            command.arg("--open");
            command
        }
        (show, Tool::Cachegrind) => {
            let mut command = Command::new(runner::program("cg_annotate"));
            command.arg(format!("--threshold={threshold}"));
            command.arg(if show == Show::Lines { "--annotate" } else { "--no-annotate" });
            command
        }
        (show, Tool::Callgrind) => {
            let threshold: f64 = threshold.parse().with_context(|| format!("{threshold:?} is no percentage"))?;
            let mut command = Command::new(runner::program("callgrind_annotate"));
            // Its threshold says how much of the total is shown.
            command.arg(format!("--threshold={}", 100.0 - threshold));
            command.arg(if show == Show::Lines { "--auto=yes" } else { "--auto=no" });
            command
        }
    };
    run(command, path)
}

/// Runs a program on a file, to its end.
pub(crate) fn run(mut command: Command, path: &Path) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.arg(path).status().with_context(|| {
        format!("cannot run {program}, which shows profiles: is it on PATH? The profile is {}", path.display())
    })?;
    ensure!(status.success(), "{program} {} failed with {status}", path.display());
    Ok(())
}
