//! The command line of `cg_export`. An option that means nothing for a format is refused with it, never ignored.

use std::ffi::OsString;
use std::path::PathBuf;

use cg_cli::substitute::Substitution;
use clap::{Parser, ValueEnum};

use crate::stacks::Kind;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// pprof: profile.proto, gzipped
    Pprof,
    /// speedscope's own format
    Speedscope,
    /// Folded stacks, one a line, for flame graphs
    Folded,
    /// A processed profile of the Firefox Profiler
    Firefox,
    /// A trace of the parts of profiles, for Perfetto and Chromium
    Chrome,
    /// The call graph for Graphviz
    Dot,
    /// Everything, as one JSON document
    Json,
    /// A data set of Parquet files, for DuckDB, Spark and others
    Parquet,
}

/// Write profiles in the formats of other programs.
#[derive(Debug, Parser)]
#[command(name = "cg_export", version, infer_long_args = true, max_term_width = 100)]
pub(crate) struct Options {
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) format: Format,

    /// Write to FILE, all or nothing, instead of standard output; for parquet the folder of the data set
    #[arg(short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Where stacks come from [default: contexts if any were recorded, else flat]
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) stacks: Option<Kind>,

    /// For folded and dot: the event to write [default: the first]
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,

    /// For dot: leave out functions with less than this percentage of the total [default: 0.5]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) threshold: Option<f64>,

    /// For parquet: what was measured
    #[arg(long, value_name = "NAME")]
    pub(crate) benchmark: Option<String>,

    /// For parquet: the commit that was measured
    #[arg(long, value_name = "ID")]
    pub(crate) commit: Option<String>,

    /// For parquet: the run, such as its number in CI
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,

    /// For parquet: when, in seconds since 1970 [default: when the file was last changed]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) time: Option<i64>,

    /// For parquet: make the rank of a profile from its name by s/OLD/NEW/
    #[arg(long, value_name = "REGEX", value_parser = Substitution::parse)]
    pub(crate) rank: Option<Substitution>,

    /// Profiles; several for chrome and parquet; - is standard input; .gz, .xz and .zst are read as they are
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<OsString>,
}

fn percent(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| "a percentage is a number from 0 to 100".to_owned())
}

impl Options {
    /// What is wrong with the command line as a whole.
    pub(crate) fn conflict(&self) -> Option<String> {
        use Format::{Chrome, Dot, Firefox, Folded, Parquet, Pprof, Speedscope};
        let name = self.format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let given: [(&str, bool, &[Format]); 8] = [
            ("stacks", self.stacks.is_some(), &[Pprof, Speedscope, Folded, Firefox]),
            ("event", self.event.is_some(), &[Folded, Dot]),
            ("threshold", self.threshold.is_some(), &[Dot]),
            ("benchmark", self.benchmark.is_some(), &[Parquet]),
            ("commit", self.commit.is_some(), &[Parquet]),
            ("run", self.run.is_some(), &[Parquet]),
            ("time", self.time.is_some(), &[Parquet]),
            ("rank", self.rank.is_some(), &[Parquet]),
        ];
        for (option, given, formats) in given {
            if given && !formats.contains(&self.format) {
                return Some(format!("--{option} means nothing with --format={name}"));
            }
        }
        if self.files.len() > 1 && ![Chrome, Parquet].contains(&self.format) {
            return Some(format!("--format={name} takes one profile; cg_merge adds cachegrind profiles up"));
        }
        (self.format == Parquet && self.output.is_none()).then(|| "--format=parquet wants -o FOLDER".to_owned())
    }
}
