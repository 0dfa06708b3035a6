//! The command line of `callgrind_annotate`: the one definition of its options.
//!
//! The manual page and the completions are made from it. Every switch may be written `--x`, `--x=yes` and `--x=no`.

use std::ffi::OsString;
use std::path::PathBuf;

use cg_cli::color::When;
use cg_cli::options::YesNo;
use cg_cli::source_map::Mapping;
use cg_cli::substitute::Substitution;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Parser, ValueEnum};

/// Print a profile with a call graph: totals, the most expensive functions, who calls them and whom they call, and the
/// source lines with their counts.
#[derive(Debug, Parser)]
#[command(name = "callgrind_annotate", version, infer_long_args = true, max_term_width = 100)]
pub(crate) struct Options {
    /// Print what each process of a tree costs (`grind --tree=FILE`), itself and with all that it started, and functions by
    /// program; what is below 100 less --threshold percent is left out
    #[arg(long)]
    pub(crate) by_process: bool,

    /// With --by-process: make processes one that run the same command
    #[arg(long, requires = "by_process")]
    pub(crate) fold: bool,

    /// The same, commands being the same after s/OLD/NEW/; may be repeated
    #[arg(long, value_name = "REGEX", requires = "by_process", value_parser = substitution)]
    pub(crate) fold_by: Vec<Substitution>,

    /// Show only these events, in this order
    #[arg(long, value_name = "A,B,C")]
    pub(crate) show: Option<String>,

    /// Sort by these events; a threshold may follow each, as in Ir:90,Dr
    #[arg(long, value_name = "A,B,C")]
    pub(crate) sort: Option<String>,

    /// Show functions until this percentage of the first sort event is covered, from 0 to 100
    #[arg(long, value_name = "N", default_value = "99", allow_negative_numbers = true, value_parser = threshold)]
    pub(crate) threshold: f64,

    /// Show percentages beside counts [default: yes]
    #[arg(
        long,
        value_name = "yes|no",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes",
        hide_possible_values = true,
        overrides_with_all = ["show_percs", "no_show_percs"]
    )]
    show_percs: Option<YesNo>,

    /// Show counts only
    #[arg(long, action = ArgAction::SetTrue, overrides_with_all = ["show_percs", "no_show_percs"])]
    no_show_percs: bool,

    /// Print the source files of the functions shown, with their counts [default: yes]
    #[arg(
        long,
        value_name = "yes|no",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes",
        hide_possible_values = true,
        overrides_with_all = ["auto", "annotate", "no_annotate"]
    )]
    auto: Option<YesNo>,

    /// Same as --auto=yes
    #[arg(long, action = ArgAction::SetTrue, overrides_with_all = ["auto", "annotate", "no_annotate"])]
    annotate: bool,

    /// Same as --auto=no
    #[arg(long, action = ArgAction::SetTrue, overrides_with_all = ["auto", "annotate", "no_annotate"])]
    no_annotate: bool,

    /// Print this many lines of source before and after each line that has counts
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) context: u64,

    /// Show functions with the cost of what they call [default: no]
    #[arg(
        long,
        value_name = "yes|no",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes",
        hide_possible_values = true,
        overrides_with = "inclusive"
    )]
    inclusive: Option<YesNo>,

    /// Show with each function its callers, the functions it calls, or both
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Tree::None, overrides_with = "tree")]
    pub(crate) tree: Tree,

    /// Find cycles of functions that call each other and show their cost once; with no, numbers are those of the
    /// reference, and costs of recursive calls add up beyond 100% [default: yes]
    #[arg(
        long,
        value_name = "yes|no",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes",
        hide_possible_values = true,
        overrides_with = "cycles"
    )]
    cycles: Option<YesNo>,

    /// Look for source files here too; may be repeated
    #[arg(short = 'I', long, value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,

    /// Read source files whose names begin with OLD where they begin with NEW instead; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = OsStringValueParser::new().try_map(|text| Mapping::parse(&text)))]
    pub(crate) map_source: Vec<Mapping>,

    /// Print the report as JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,

    /// When to colour the report
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub(crate) color: When,

    /// The profile [default: the first callgrind.out*, else cachegrind.out*, here]; - is standard input; .gz, .xz and
    /// .zst are read as they are
    #[arg(value_name = "callgrind-out-file")]
    pub(crate) file: Option<OsString>,

    /// Source files to print whatever they cost
    #[arg(value_name = "source-files")]
    pub(crate) sources: Vec<OsString>,
}

/// What `--tree` shows around a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tree {
    /// The function alone
    None,
    /// Its callers
    Caller,
    /// What it calls
    Calling,
    /// Both
    Both,
}

impl Tree {
    /// Whether callers are shown.
    pub(crate) fn callers(self) -> bool {
        matches!(self, Self::Caller | Self::Both)
    }

    /// Whether callees are shown.
    pub(crate) fn callees(self) -> bool {
        matches!(self, Self::Calling | Self::Both)
    }
}

impl Options {
    /// Whether percentages are shown.
    pub(crate) fn percentages(&self) -> bool {
        !self.no_show_percs && self.show_percs != Some(YesNo::No)
    }

    /// Whether source files are printed because of their cost.
    pub(crate) fn annotates(&self) -> bool {
        !self.no_annotate && self.auto != Some(YesNo::No)
    }

    /// Whether functions are shown with the cost of what they call.
    pub(crate) fn inclusive(&self) -> bool {
        self.inclusive == Some(YesNo::Yes)
    }

    /// Whether cycles are found.
    pub(crate) fn cycles(&self) -> bool {
        self.cycles != Some(YesNo::No)
    }
}

fn substitution(text: &str) -> Result<Substitution, String> {
    Substitution::parse(text).map_err(|error| error.to_string())
}

fn threshold(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("it must be a number from 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(args: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from(["callgrind_annotate"].iter().chain(args))
    }

    #[test]
    fn the_definition_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn switches_have_all_their_spellings_and_the_last_one_wins() {
        assert!(!parse(&[]).unwrap().inclusive());
        assert!(parse(&["--inclusive"]).unwrap().inclusive());
        assert!(parse(&["--inclusive=no", "--inclusive=yes"]).unwrap().inclusive());
        assert!(!parse(&["--inclusive", "--inclusive=no"]).unwrap().inclusive());
        assert!(parse(&[]).unwrap().cycles() && !parse(&["--cycles=no"]).unwrap().cycles());
        assert!(!parse(&["--auto=no"]).unwrap().annotates());
        assert!(parse(&["--auto=no", "--annotate"]).unwrap().annotates());
        assert!(!parse(&["--auto=yes", "--no-annotate"]).unwrap().annotates());
        assert!(!parse(&["--show-percs=no"]).unwrap().percentages());
        assert!(parse(&["--no-show-percs", "--show-percs"]).unwrap().percentages());
        assert!(parse(&["--inclusive", "file"]).unwrap().file.is_some());
    }

    #[test]
    fn folders_of_sources_have_all_their_spellings() {
        for args in [&["-I=a"][..], &["-Ia"], &["-I", "a"], &["--include=a"], &["--include", "a"], &["--includ", "a"]] {
            let options = parse(&[args, &["-I=b", "file", "x.c", "y.c"]].concat()).unwrap();
            assert_eq!(options.include, [PathBuf::from("a"), PathBuf::from("b")], "{args:?}");
            assert_eq!(options.sources.len(), 2);
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for args in [["--threshold=101"], ["--threshold=-1"], ["--threshold=x"], ["--context=x"], ["--tree=x"]] {
            assert!(parse(&args).is_err(), "{args:?}");
        }
        assert_eq!(parse(&["--tree=calling"]).unwrap().tree, Tree::Calling);
        assert!(parse(&["--inc"]).is_err(), "--include or --inclusive");
    }
}
