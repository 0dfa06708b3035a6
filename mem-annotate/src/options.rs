//! The command line of `mem_annotate`: the one definition of its options. The manual page and the completions are made from it.

use std::ffi::OsString;

use cg_cli::options::threshold;
use cg_cli::source_map::Mapping;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Parser};

/// Show which data objects of a program were missed, in which steps, what caches of other sizes would miss, and which lines threads
/// share.
#[derive(Debug, Parser)]
#[command(name = "mem_annotate", version, infer_long_args = true, max_term_width = 100)]
pub(crate) struct Options {
    /// Print the difference of two files by object: the second minus the first
    #[arg(long)]
    pub(crate) diff: bool,

    /// Show only these events, in this order
    #[arg(long, value_name = "A,B,C")]
    pub(crate) show: Option<String>,

    /// Sort by these events; the first also decides what is above the threshold [default: the misses of the first level,
    /// reads and writes together]
    #[arg(long, value_name = "A,B,C")]
    pub(crate) sort: Option<String>,

    /// Show objects, streams, functions, lines and what threads share with at least this percentage of the total, from 0 to 20
    #[arg(long, value_name = "N", default_value = "0.1", allow_negative_numbers = true, value_parser = threshold)]
    pub(crate) threshold: f64,

    /// Print the source lines that allocate, with the counts of what they have allocated
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "no_annotate")]
    annotate: bool,

    /// Do not print source lines [default]
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "annotate")]
    no_annotate: bool,

    /// With --annotate: print this many lines of source before and after each line that has counts
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) context: u64,

    /// Print the report as JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,

    /// Read source files whose names begin with OLD where they begin with NEW instead; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = OsStringValueParser::new().try_map(|text| Mapping::parse(&text)))]
    pub(crate) map_source: Vec<Mapping>,

    /// The file of data objects (two with --diff; several are parts of one run, and added up) [default: the newest mem.out* here]; -
    /// is standard input; .gz, .xz and .zst are read as they are
    #[arg(value_name = "mem-out-file")]
    pub(crate) files: Vec<OsString>,
}

impl Options {
    /// Whether source files are printed.
    pub(crate) fn annotates(&self) -> bool {
        self.annotate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound_and_the_last_spelling_wins() {
        Options::command().debug_assert();
        let annotates = |args: &[&str]| {
            Options::try_parse_from(["mem_annotate"].iter().chain(args).chain(&["x"])).expect("options").annotates()
        };
        assert!(!annotates(&[]) && annotates(&["--annotate"]) && annotates(&["--no-a", "--annotate"]));
        assert!(!annotates(&["--annotate", "--no-annotate"]));
        for wrong in ["--threshold=21", "--threshold=nan", "--context=-1", "--map-source=x"] {
            assert!(Options::try_parse_from(["mem_annotate", wrong]).is_err(), "{wrong}");
        }
    }
}
