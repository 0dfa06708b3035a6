//! The command line: options of this program, then a word, and behind it whatever is cargo's.

use std::ffi::OsString;

use clap::{Parser, ValueEnum};

/// Profile what cargo runs, exactly
#[derive(Debug, Parser)]
#[command(name = "cargo-grind", bin_name = "cargo grind", version, infer_long_args = true, max_term_width = 100)]
pub(crate) struct Options {
    /// What is measured
    #[arg(long, value_name = "TOOL", value_enum, default_value = "cachegrind")]
    pub(crate) tool: Tool,

    /// Give grind an option, as often as needed, such as --grind=--cache-sim=yes
    #[arg(long = "grind", value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) more: Vec<OsString>,

    /// Build as cargo does without --release [default: optimized]
    #[arg(long)]
    pub(crate) dev: bool,

    /// How to show the result
    #[arg(long, value_name = "HOW", value_enum, default_value = "functions")]
    pub(crate) show: Show,

    /// Show functions with at least this percentage of the total
    #[arg(long, value_name = "PERCENT", default_value = "1")]
    pub(crate) threshold: String,

    /// What cargo is to run; or compare, which takes a commit (or BASE..HEAD) and then one of the others
    #[arg(value_name = "run|test|bench|example|compare", value_enum)]
    pub(crate) verb: Verb,

    /// Options and arguments as cargo has them
    #[arg(value_name = "words", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// What grind measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    /// Instructions by function and line
    Cachegrind,
    /// Who calls whom, at what cost
    Callgrind,
}

impl Tool {
    /// As options of grind spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cachegrind => "cachegrind",
            Self::Callgrind => "callgrind",
        }
    }
}

/// How results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// Totals and functions
    Functions,
    /// Source lines as well
    Lines,
    /// A page in the browser
    Report,
    /// Not at all
    Nothing,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verb {
    /// A program of the package
    Run,
    /// Its tests
    Test,
    /// Its benchmarks
    Bench,
    /// One of its examples
    Example,
    /// Another of these words, at two commits
    Compare,
}
