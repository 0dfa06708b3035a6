//! The command line of `cg_report`: the one definition of its options.
//!
//! The manual page and the completions are made from it. An option that is not built is not here.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use cg_cli::substitute::Substitution;
use clap::{ArgGroup, Parser, ValueEnum};

use crate::formula::Formula;

/// Make one HTML file of profiles, to look at in a browser without a network: functions, call graphs, flame graphs and
/// sources. Several profiles are added up.
#[derive(Debug, Parser)]
#[command(name = "cg_report", version, infer_long_args = true, max_term_width = 100)]
#[command(group(ArgGroup::new("serving").args(["serve", "live"]).multiple(true)))]
pub(crate) struct Options {
    /// Where to write the report; - is standard output [default: the first profile's name with .html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<OsString>,

    /// Open the report in $BROWSER, or in what xdg-open finds
    #[arg(long)]
    pub(crate) open: bool,

    /// Serve the report from this machine alone, at an address that nobody can guess, instead of writing a file: parts of it are
    /// sent when they are looked at, so that there is no limit to its size [default: any free port]
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        conflicts_with_all = ["output", "max_size", "fail_above"]
    )]
    pub(crate) serve: Option<SocketAddr>,

    /// Serve a report of a run of grind that goes on, by its process: it begins with a part that the run is asked to write, and grows by each
    /// further one, which the page can ask for
    #[arg(
        long,
        value_name = "PID",
        conflicts_with_all = ["output", "max_size", "fail_above", "base", "separate", "label", "mem", "files"]
    )]
    pub(crate) live: Option<u32>,

    /// With --serve or --live: go on when the page has been closed for ten minutes
    #[arg(long, requires = "serving", conflicts_with_all = ["output", "max_size", "fail_above"])]
    pub(crate) keep: bool,

    /// Show the data objects of the same run, too: its mem.out file, with misses by object, streams, stack distances and shared lines, as far as
    /// it has them
    #[arg(long, value_name = "FILE")]
    pub(crate) mem: Option<OsString>,

    /// Lay what another profiler measured beside the counts, as an event Smp: the output of perf script, a profile of pprof's format, folded
    /// stacks, or lines such as 'lib.so+0x1a2b 12'. Parts of the profile are added up then
    #[arg(long, value_name = "FILE", conflicts_with_all = ["base", "separate", "live"])]
    pub(crate) samples: Option<OsString>,

    /// With --samples: what was measured, if that is more than one thing, such as cycles:u [default: the first one]
    #[arg(long, value_name = "NAME", requires = "samples")]
    pub(crate) samples_event: Option<String>,

    /// Compare with this profile: everything in the report is then told of both, and as a difference. Several files on a side are runs
    /// of one thing: the one in the middle is shown, with how far the others are from it; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Vec<OsString>,

    /// Do not begin with the sum of several profiles but with the first one; the page switches between them
    #[arg(long, conflicts_with_all = ["base", "parts"])]
    pub(crate) separate: bool,

    /// What a profile is called instead of by its file: the first name is the first profile's, and so on; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Vec<String>,

    /// Show an event that is computed from others: a sum, such as Work='Ir + 10 Bm', or a ratio of sums, such as PerK='1000 L1m / Ir'; may be
    /// repeated
    #[arg(long, value_name = "NAME=FORMULA", value_parser = Formula::parse)]
    pub(crate) event: Vec<Formula>,

    /// Fail, with status 3, if the total of an event grew by more than this percentage since the base; may be repeated
    #[arg(long, value_name = "EVENT:PERCENT", value_parser = bound, requires = "base")]
    pub(crate) fail_above: Vec<Bound>,

    /// Show only these events, in this order; others are not in the report
    #[arg(long, value_name = "A,B,C")]
    pub(crate) show: Option<String>,

    /// The event that the report begins with [default: the first one]
    #[arg(long, value_name = "A")]
    pub(crate) sort: Option<String>,

    /// Whether the text of source files becomes part of the report
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Sources::Embed)]
    pub(crate) source: Sources,

    /// How much source text the report may hold, such as 16M; the most expensive files come first
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size)]
    pub(crate) source_limit: u64,

    /// Look for source files here too; may be repeated
    #[arg(short = 'I', long, value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,

    /// Rename source files by s/OLD/NEW/, with flags g (all matches) and i (ignore case)
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, value_parser = Substitution::parse)]
    pub(crate) mod_filename: Option<Substitution>,

    /// Rename functions by s/OLD/NEW/, with flags g (all matches) and i (ignore case)
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, value_parser = Substitution::parse)]
    pub(crate) mod_funcname: Option<Substitution>,

    /// Whose machine code becomes part of the report: of functions that make up 99.9 % of the self cost, of all, or of none
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Code::Hot)]
    pub(crate) code: Code,

    /// Look for the object files that ran below this folder, as in an image of another system
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// Whether parts of profiles, such as dumps and threads, can be looked at one by one, or only their sum is in the report
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Parts::Keep)]
    pub(crate) parts: Parts,

    /// Whether functions that a run told apart by callers or levels of recursion (f'2, f'g'main) are one at first and the page has a
    /// switch (both), are one (merge), or stand apart (apart)
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Contexts::Both)]
    pub(crate) contexts: Contexts,

    /// Have source lines link to an editor: vscode, vscodium, cursor, zed, idea, sublime, textmate, emacs, or an address with {file} and {line}
    #[arg(long, value_name = "EDITOR", value_parser = editor, conflicts_with = "redact")]
    pub(crate) editor: Option<String>,

    /// Leave out sources, folders of files and objects, the command line and descriptions of the run
    #[arg(long)]
    pub(crate) redact: bool,

    /// Refuse to write a larger report
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = size)]
    pub(crate) max_size: u64,

    /// Profiles, to be added up; - is standard input; .gz, .xz and .zst are read as they are
    #[arg(value_name = "FILE", required_unless_present = "live")]
    pub(crate) files: Vec<OsString>,
}

/// What becomes of source files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sources {
    /// Their text is part of the report.
    Embed,
    /// The report has their names only.
    None,
}

/// What becomes of parts of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Parts {
    /// Each can be looked at alone, and any of them together; not in a comparison.
    Keep,
    /// Only their sum is in the report.
    Sum,
}

/// What becomes of functions that were told apart by their callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contexts {
    /// All of a function are one, and the page can show each by itself.
    Both,
    /// All of a function are one.
    Merge,
    /// Each stands by itself.
    Apart,
}

/// Which functions have machine code in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Code {
    /// The most expensive ones, up to 99.9 % of the self cost.
    Hot,
    /// All that rows with addresses name.
    All,
    /// None.
    None,
}

/// A bound of `--fail-above`.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The event whose total is watched.
    pub(crate) event: String,
    /// The growth in percent that is still allowed.
    pub(crate) percent: f64,
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

/// Addresses by which editors open a line of a file.
const EDITORS: [(&str, &str); 8] = [
    ("vscode", "vscode://file{file}:{line}"),
    ("vscodium", "vscodium://file{file}:{line}"),
    ("cursor", "cursor://file{file}:{line}"),
    ("zed", "zed://file{file}:{line}"),
    ("idea", "idea://open?file={file}&line={line}"),
    ("sublime", "subl://open?url=file://{file}&line={line}"),
    ("textmate", "txmt://open?url=file://{file}&line={line}"),
    ("emacs", "emacs://open?url=file://{file}&line={line}"),
];

/// Schemes of which browsers run, load or send something: no editor's.
const FORBIDDEN: [&str; 11] =
    ["javascript", "data", "vbscript", "blob", "about", "file", "view-source", "http", "https", "ws", "wss"];

/// What source lines link to.
fn editor(text: &str) -> Result<String, String> {
    if let Some((_, address)) = EDITORS.iter().find(|(name, _)| *name == text) {
        return Ok((*address).to_owned());
    }
    let known = EDITORS.map(|(name, _)| name).join(", ");
    let Some((scheme, _)) = text.split_once(':').filter(|_| text.contains("{file}")) else {
        return Err(format!("it is {known}, or an address such as myeditor://{{file}}:{{line}}"));
    };
    let sound = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    if !sound || FORBIDDEN.contains(&scheme.to_ascii_lowercase().as_str()) || text.contains(char::is_control) {
        return Err(format!("`{scheme}:` opens no editor"));
    }
    Ok(text.to_owned())
}

/// A size in bytes, with K, M or G for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let size = digits.parse::<u64>().ok().and_then(|size| size.checked_mul(unit));
    size.ok_or_else(|| format!("`{text}` is no size such as 500K, 16M or 1G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_are_names_or_addresses() {
        assert_eq!(editor("vscode").unwrap(), "vscode://file{file}:{line}");
        assert_eq!(editor("my-ed+1:open?{file}").unwrap(), "my-ed+1:open?{file}");
        for wrong in [
            "vi",
            "javascript:alert({file})",
            "HTTPS://x/{file}",
            "x://{line}",
            "1x:{file}",
            "a b:{file}",
            "x:{file}\n",
        ] {
            assert!(editor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units_of_1024() {
        assert_eq!((size("7"), size("2K"), size("3m"), size("1G")), (Ok(7), Ok(2048), Ok(3 << 20), Ok(1 << 30)));
        for wrong in ["", "M", "-1", "1T", "99999999999G", "é"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
