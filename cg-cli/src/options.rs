//! Reading of command lines: the spellings that users of the reference have in their scripts.
//!
//! Long options may be shortened as long as they stay unique; a switch may be written `--x`, `--no-x`, `--x=yes` or
//! `--x=no`, and the last one wins.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{FromArgMatches, ValueEnum};

use crate::exit;

/// The value of a switch in its `--x=yes` form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum YesNo {
    /// On.
    Yes,
    /// Off.
    No,
}

/// Parses a command line, or says how to end: after `--help` and `--version` with success, else with a message.
///
/// # Errors
/// The exit code to end with; everything was printed already.
pub fn parse<T: FromArgMatches>(
    command: clap::Command,
    args: impl IntoIterator<Item = OsString>,
) -> Result<T, ExitCode> {
    let program = command.get_name().to_owned();
    let version = command.get_version().unwrap_or_default().to_owned();
    let result = command.clone().try_get_matches_from(args).and_then(|mut found| T::from_arg_matches_mut(&mut found));
    result.map_err(|error| match error.kind() {
        ErrorKind::DisplayVersion => {
            let _ = writeln!(std::io::stdout(), "{program}-{version}");
            ExitCode::from(exit::SUCCESS)
        }
        ErrorKind::DisplayHelp => {
            let _ = error.print();
            ExitCode::from(exit::SUCCESS)
        }
        _ => {
            let _ = error.print();
            ExitCode::from(exit::USAGE)
        }
    })
}

/// Prints a usage error in the manner of the reference and gives its exit code, which there is not [`exit::USAGE`].
#[must_use]
pub fn usage_error(mut command: clap::Command, message: &str) -> ExitCode {
    let program = command.get_name().to_owned();
    let usage = command.render_usage();
    let _ = writeln!(std::io::stderr(), "{usage}\n{program}: error: {message}");
    ExitCode::from(exit::FAILURE)
}

/// Splits `A,B,C`.
#[must_use]
pub fn comma_list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}
