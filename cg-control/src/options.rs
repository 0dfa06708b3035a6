//! The command lines of `callgrind_control` and `cg_control`: the one definition of their options.
//!
//! The manual page and the completions are made from it. A value that may be left out must be joined to its option, so
//! that a process number is never taken for one.

use clap::{ArgAction, Args, Parser, ValueEnum};

/// Look at profiles with call graphs that are being made, and tell their runs what to do.
#[derive(Debug, Parser)]
#[command(name = "callgrind_control", version, infer_long_args = true, max_term_width = 100)]
pub(crate) struct Callgrind {
    #[command(flatten)]
    pub(crate) options: Options,
}

/// Look at profiles that are being made, also live, and tell their runs what to do.
///
/// `cg_control top [pid|name|socket]` shows what a run executes, function by function, while it does.
#[derive(Debug, Parser)]
#[command(name = "cg_control", version, infer_long_args = true, max_term_width = 100)]
pub(crate) struct Cg {
    #[command(flatten)]
    pub(crate) options: Options,

    #[command(flatten)]
    pub(crate) top: Top,
}

/// What both programs have.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Show figures about the run
    #[arg(short, long)]
    pub(crate) stat: bool,

    /// Show the calls that are going on, thread by thread
    #[arg(short, long)]
    pub(crate) back: bool,

    /// Show counts of events, of all or of these
    #[arg(short, long = "events", value_name = "A,B", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) events: Option<String>,

    /// Write what was counted as a part of the profile and begin anew; HINT stands in the part
    #[arg(short, long, value_name = "HINT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) dump: Option<String>,

    /// Set all counts to 0
    #[arg(short, long)]
    pub(crate) zero: bool,

    /// End the program; its profile is written
    #[arg(short, long)]
    pub(crate) kill: bool,

    /// Leave the program to itself: its profile is written, and it goes on without the profiler
    #[arg(long)]
    pub(crate) detach: bool,

    /// Switch counting on or off
    #[arg(short, long = "instr", value_name = "on|off", value_enum, hide_possible_values = true)]
    pub(crate) instrumentation: Option<OnOff>,

    /// Switch collecting costs on or off, of all threads; calls are followed all the same (callgrind)
    #[arg(long, value_name = "on|off", value_enum, hide_possible_values = true)]
    pub(crate) collection: Option<OnOff>,

    /// Say everything as JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,

    /// Show what is being asked
    #[arg(short, long = "verbose", visible_short_alias = 'l', visible_alias = "long", action = ArgAction::SetTrue)]
    pub(crate) verbose: bool,

    /// Runs, by the number of their process, the path of their socket or the name of their program [default for looking: all]
    #[arg(value_name = "pid|name")]
    pub(crate) runs: Vec<String>,
}

/// How `cg_control top` shows a run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Top {
    /// With top: say it once, as text
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,

    /// With top: say it so many times, as text
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,

    /// With top: milliseconds from one time to the next [default: 500]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(50..=60_000))]
    pub(crate) interval: Option<u32>,

    /// With top: sort functions by this event [default: Ir]
    #[arg(long, value_name = "EVENT")]
    pub(crate) sort: Option<String>,

    /// With top: show functions and files alone whose names contain this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// With top, as text: show so many functions [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rows: Option<u32>,
}

impl Top {
    /// Whether anything of it was given.
    pub(crate) fn is_given(&self) -> bool {
        let Self { once, count, interval, sort, filter, rows } = self;
        *once || sort.is_some() || filter.is_some() || [count, interval, rows].into_iter().any(Option::is_some)
    }
}

/// The value of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// On.
    On,
    /// Off.
    Off,
}

impl Options {
    /// Whether a run is asked to do something rather than just looked at.
    pub(crate) fn acts(&self) -> bool {
        let switches = self.instrumentation.is_some() || self.collection.is_some();
        switches || self.dump.is_some() || self.zero || self.kill || self.detach
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(args: &[&str]) -> Result<Options, clap::Error> {
        Callgrind::try_parse_from(["callgrind_control"].iter().chain(args)).map(|parsed| parsed.options)
    }

    #[test]
    fn the_definition_is_sound() {
        Callgrind::command().debug_assert();
        Cg::command().debug_assert();
    }

    #[test]
    fn a_process_is_never_taken_for_a_value() {
        let options = parse(&["-d", "4711"]).unwrap();
        assert_eq!((options.dump.as_deref(), &options.runs[..]), (Some(""), &["4711".to_owned()][..]));
        let options = parse(&["-e", "-b", "4711"]).unwrap();
        assert_eq!((options.events.as_deref(), options.back), (Some(""), true));
        assert_eq!(parse(&["--dump=here", "1"]).unwrap().dump.as_deref(), Some("here"));
        assert_eq!(parse(&["-d=here", "1"]).unwrap().dump.as_deref(), Some("here"));
        assert_eq!(parse(&["-e=Ir,Dr"]).unwrap().events.as_deref(), Some("Ir,Dr"));
        assert_eq!(parse(&["-i", "on", "7"]).unwrap().instrumentation, Some(OnOff::On));
        assert_eq!(parse(&["--instr=off", "7"]).unwrap().instrumentation, Some(OnOff::Off));
        assert!(parse(&["-i", "7"]).is_err());
        let options = parse(&["--collection=off", "7"]).unwrap();
        assert!(options.collection == Some(OnOff::Off) && options.acts());
        assert!(parse(&["-l"]).unwrap().verbose && parse(&["--long"]).unwrap().verbose);
        assert!(parse(&["-z", "7"]).unwrap().acts() && !parse(&["-seb"]).unwrap().acts());
    }
}
