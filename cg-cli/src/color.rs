//! Colour: on a terminal, unless told otherwise, and never by accident in a pipe or a file.
//!
//! The bytes of the report are the same with and without colour but for the escape sequences around them.

use std::env;
use std::io::{self, IsTerminal};

/// When to colour, as `--color` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum When {
    /// If standard output is a terminal and `NO_COLOR` is unset or empty.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The escape sequences of a report; all empty without colour.
#[derive(Clone, Copy, Debug, Default)]
pub struct Palette {
    /// Around headings.
    pub heading: &'static str,
    /// Around names that stand out.
    pub name: &'static str,
    /// Around warnings.
    pub warning: &'static str,
    /// Around text that matters less.
    pub faint: &'static str,
    /// Ends each of them.
    pub reset: &'static str,
}

impl Palette {
    /// The palette for standard output.
    #[must_use]
    pub fn for_stdout(when: When) -> Self {
        let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self::choose(when, unwanted, io::stdout().is_terminal() && env::var_os("TERM").is_none_or(|t| t != "dumb"))
    }

    fn choose(when: When, unwanted: bool, terminal: bool) -> Self {
        match when {
            When::Always => Self::colored(),
            When::Auto if terminal && !unwanted => Self::colored(),
            When::Auto | When::Never => Self::default(),
        }
    }

    fn colored() -> Self {
        Self { heading: "\x1b[1m", name: "\x1b[36m", warning: "\x1b[33m", faint: "\x1b[2m", reset: "\x1b[0m" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_needs_a_terminal_and_no_veto() {
        let colored = |when, unwanted, terminal| !Palette::choose(when, unwanted, terminal).reset.is_empty();
        assert!(colored(When::Auto, false, true));
        assert!(!colored(When::Auto, false, false));
        assert!(!colored(When::Auto, true, true));
        assert!(colored(When::Always, true, false));
        assert!(!colored(When::Never, false, true));
    }
}
