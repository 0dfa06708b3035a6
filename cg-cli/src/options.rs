//! Reading of command lines: the spellings that users of the reference have in their scripts.
//!
//! Long options may be shortened as long as they stay unique; a switch may be written `--x`, `--no-x`, `--x=yes` or
//! `--x=no`. Whatever is given twice, the last one wins.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
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
    // Scripts add options behind those of their Makefiles.
    let mut command = command.args_override_self(true);
    let result = command.try_get_matches_from_mut(args).and_then(|mut found| T::from_arg_matches_mut(&mut found));
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
            let error = match ambiguity(&command, &error) {
                Some(message) => command.error(ErrorKind::UnknownArgument, message),
                None => error,
            };
            let _ = error.print();
            ExitCode::from(exit::USAGE)
        }
    })
}

/// What to say of an option that is unknown only because it is the beginning of several.
fn ambiguity(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let start = unknown.strip_prefix("--").filter(|start| !start.is_empty())?;
    let start = start.split('=').next().unwrap_or_default();
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let options = arguments.filter_map(|argument| argument.get_long()).filter(|option| option.starts_with(start));
    let options: Vec<String> = options.map(|option| format!("--{option}")).collect();
    let message = format!("ambiguous option: --{start} could be {}", options.join(", "));
    (error.kind() == ErrorKind::UnknownArgument && options.len() > 1).then_some(message)
}

/// Prints a usage error in the manner of the reference and gives its exit code, which there is not [`exit::USAGE`].
#[must_use]
pub fn usage_error(mut command: clap::Command, message: &str) -> ExitCode {
    let program = command.get_name().to_owned();
    let usage = command.render_usage();
    let _ = writeln!(std::io::stderr(), "{usage}\n{program}: error: {message}");
    ExitCode::from(exit::FAILURE)
}

/// The index of the event `name`, which `option` names, among those of a profile.
///
/// # Errors
/// There is no such event; the error says which there are.
pub fn event(option: &str, name: &str, events: &[String]) -> anyhow::Result<usize> {
    let found = events.iter().position(|event| event == name);
    found.ok_or_else(|| {
        let there = events.join(", ");
        anyhow::anyhow!("{option} event `{name}` did not appear in `events:` line, which has {there}")
    })
}

/// A percentage below which nothing is shown: Cachegrind's tools take them from 0 to 20.
///
/// # Errors
/// When it is none.
pub fn threshold(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=20.0).contains(&value) => Ok(value),
        _ => Err("it must be a number from 0 to 20".to_owned()),
    }
}

/// Splits `A,B,C`.
#[must_use]
pub fn comma_list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[test]
    fn the_beginning_of_several_options_is_called_ambiguous() {
        let options = ["show", "show-percs", "sort", "threshold"];
        let command = Command::new("x").infer_long_args(true).args(options.map(|name| Arg::new(name).long(name)));
        let told = |arg: &str| {
            let error = command.clone().try_get_matches_from(["x", arg]).unwrap_err();
            ambiguity(&command, &error)
        };
        assert_eq!(told("--s=Ir").unwrap(), "ambiguous option: --s could be --show, --show-percs, --sort");
        assert_eq!(told("--sh").unwrap(), "ambiguous option: --sh could be --show, --show-percs");
        assert_eq!(told("--x"), None);
        assert_eq!(told("-s"), None);
        assert_eq!(told("--so"), None, "its value is missing, that is all");
    }
}
