//! The command line of `cg_annotate`: the one definition of its options.
//!
//! The manual page and the completions are made from it. Old spellings (`--auto=yes`, `--show-percs=no`) are read but
//! not advertised more than needed.

use std::ffi::OsString;

use cg_cli::color::When;
use cg_cli::options::YesNo;
use cg_cli::options::threshold;
use cg_cli::source_map::Mapping;
use cg_cli::substitute::Substitution;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Parser};

/// Print a profile: totals, the most expensive functions, and the source lines with their counts.
#[derive(Debug, Parser)]
#[command(name = "cg_annotate", version, infer_long_args = true, max_term_width = 100)]
pub(crate) struct Options {
    /// Print the difference of two profiles: the second minus the first
    #[arg(long)]
    pub(crate) diff: bool,

    /// Print what each function costs in each context that the program has named by client requests
    #[arg(long, conflicts_with_all = ["diff", "json", "github_summary"])]
    pub(crate) by_context: bool,

    /// Print what each process of a tree costs (`grind --tree=FILE`), itself and with all that it started, and functions by
    /// program
    #[arg(long, conflicts_with_all = ["diff", "by_context", "github_summary"])]
    pub(crate) by_process: bool,

    /// With --by-process: make processes one that run the same command
    #[arg(long, requires = "by_process")]
    pub(crate) fold: bool,

    /// The same, commands being the same after s/OLD/NEW/; may be repeated
    #[arg(long, value_name = "REGEX", requires = "by_process", value_parser = substitution)]
    pub(crate) fold_by: Vec<Substitution>,

    /// Rename source files by s/OLD/NEW/, with flags g (all matches) and i (ignore case)
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, value_parser = substitution)]
    pub(crate) mod_filename: Option<Substitution>,

    /// Rename functions by s/OLD/NEW/, with flags g (all matches) and i (ignore case)
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, value_parser = substitution)]
    pub(crate) mod_funcname: Option<Substitution>,

    /// Show only these events, in this order
    #[arg(long, value_name = "A,B,C")]
    pub(crate) show: Option<String>,

    /// Sort by these events; the first also decides what is above the threshold
    #[arg(long, value_name = "A,B,C")]
    pub(crate) sort: Option<String>,

    /// Show functions with at least this percentage of the total, from 0 to 20
    #[arg(long, value_name = "N", default_value = "0.1", allow_negative_numbers = true, value_parser = threshold)]
    pub(crate) threshold: f64,

    /// Show percentages beside counts [default]
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

    /// Print source files with their counts [default]
    #[arg(long, action = ArgAction::SetTrue, overrides_with_all = ["annotate", "no_annotate", "auto"])]
    annotate: bool,

    /// Do not print source files
    #[arg(long, action = ArgAction::SetTrue, overrides_with_all = ["annotate", "no_annotate", "auto"])]
    no_annotate: bool,

    /// Old spelling of --annotate and --no-annotate
    #[arg(
        long,
        value_name = "yes|no",
        require_equals = true,
        hide_possible_values = true,
        overrides_with_all = ["annotate", "no_annotate", "auto"]
    )]
    auto: Option<YesNo>,

    /// Print this many lines of source before and after each line that has counts
    #[arg(long, value_name = "N", default_value_t = 8, aliases = ["c", "co"])]
    pub(crate) context: u64,

    /// Print the report as JSON, for programs
    #[arg(long, conflicts_with = "github_summary")]
    pub(crate) json: bool,

    /// Print the totals and the functions above the threshold as Markdown tables
    #[arg(long)]
    pub(crate) github_summary: bool,

    /// With --diff: end with exit status 3 if the total of EVENT grew by more than PERCENT; may be repeated
    #[arg(long, value_name = "EVENT:PERCENT", requires = "diff", value_parser = bound)]
    pub(crate) fail_above: Vec<Bound>,

    /// With --diff: the same for each function with at least --threshold percent of a total; may be repeated
    #[arg(long, value_name = "EVENT:PERCENT", requires = "diff", value_parser = bound)]
    pub(crate) fail_above_function: Vec<Bound>,

    /// With --diff: show each function's counts before and after, and changed source files with the counts of both sides;
    /// bounds show that, too
    #[arg(long, requires = "diff")]
    pub(crate) growth: bool,

    /// With --diff: rename source files so that those of two builds in different folders meet
    #[arg(long, requires = "diff", conflicts_with = "mod_filename")]
    pub(crate) match_paths: bool,

    /// Read source files whose names begin with OLD where they begin with NEW instead; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = OsStringValueParser::new().try_map(|text| Mapping::parse(&text)))]
    pub(crate) map_source: Vec<Mapping>,

    /// When to colour the report
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub(crate) color: When,

    /// Profiles to add up [default: the newest cachegrind.out* here]; - is standard input; .gz, .xz and .zst are read as
    /// they are
    #[arg(value_name = "cachegrind-out-file")]
    pub(crate) files: Vec<OsString>,
}

/// A bound of `--fail-above`.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The event whose total is watched.
    pub(crate) event: String,
    /// The growth in percent that is still allowed.
    pub(crate) percent: f64,
}

impl Options {
    /// Whether percentages are shown.
    pub(crate) fn percentages(&self) -> bool {
        !self.no_show_percs && self.show_percs != Some(YesNo::No)
    }

    /// Whether a reviewer is to see what grew.
    pub(crate) fn shows_growth(&self) -> bool {
        self.growth || !self.fail_above.is_empty() || !self.fail_above_function.is_empty()
    }

    /// Whether both sides of a difference are needed beside it.
    pub(crate) fn needs_sides(&self) -> bool {
        self.diff && (self.shows_growth() || self.json || self.github_summary)
    }

    /// Whether source files are printed.
    pub(crate) fn annotates(&self) -> bool {
        !self.no_annotate && self.auto != Some(YesNo::No)
    }
}

fn substitution(text: &str) -> Result<Substitution, String> {
    Substitution::parse(text).map_err(|error| error.to_string())
}

fn bound(text: &str) -> Result<Bound, String> {
    let wrong = || "it must have the form EVENT:PERCENT, such as Ir:0.5".to_owned();
    let (event, percent) = text.rsplit_once(':').ok_or_else(wrong)?;
    let percent = percent.strip_suffix('%').unwrap_or(percent);
    match percent.parse::<f64>() {
        Ok(percent) if percent.is_finite() && !event.is_empty() => Ok(Bound { event: event.to_owned(), percent }),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(args: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from(["cg_annotate"].iter().chain(args).chain(&["file"]))
    }

    #[test]
    fn the_definition_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn switches_have_all_their_spellings_and_the_last_one_wins() {
        let percs = |args: &[&str]| parse(args).unwrap().percentages();
        assert!(percs(&[]));
        assert!(percs(&["--show-percs"]));
        assert!(percs(&["--no-show-percs", "--show-percs=yes"]));
        assert!(!percs(&["--show-percs", "--no-show-percs"]));
        assert!(!percs(&["--show-percs=no"]));
        assert!(!percs(&["--no-show-p"]));
        assert!(percs(&["--show-percs=no", "--show-percs"]));
        let annotates = |args: &[&str]| parse(args).unwrap().annotates();
        assert!(annotates(&[]));
        assert!(annotates(&["--auto=no", "--annotate"]));
        assert!(annotates(&["--no-annotate", "--auto=yes"]));
        assert!(!annotates(&["--auto=no"]));
        assert!(!annotates(&["--an", "--no-a"]));
        assert!(!annotates(&["--auto=yes", "--no-annotate"]));
    }

    #[test]
    fn long_options_may_be_shortened_while_unique() {
        assert_eq!(parse(&["--thresh=1"]).unwrap().threshold, 1.0);
        assert_eq!(parse(&["--con", "3"]).unwrap().context, 3);
        assert_eq!(parse(&["--c=3"]).unwrap().context, 3);
        assert!(parse(&["--mod-fi=s/a/b/"]).unwrap().mod_filename.is_some());
        assert!(parse(&["--mod=s/a/b/"]).is_err());
        assert!(parse(&["--s=Ir"]).is_err());
    }

    #[test]
    fn wrong_values_are_refused() {
        for args in [["--threshold=21"], ["--threshold=-1"], ["--threshold=nan"], ["--threshold=x"], ["--context=-1"]] {
            assert!(parse(&args).is_err(), "{args:?}");
        }
        for bound in ["Ir", "Ir:", ":1", "Ir:x", "Ir:nan", "Ir:inf"] {
            assert!(parse(&["--diff", "--fail-above", bound]).is_err(), "{bound}");
        }
        assert!(parse(&["--fail-above", "Ir:1"]).is_err(), "needs --diff");
        assert_eq!(parse(&["--diff", "--fail-above=Ir:0.5%"]).unwrap().fail_above[0].percent, 0.5);
        assert!(parse(&["--json", "--github-summary"]).is_err());
    }
}
