//! The name that grind was called by. Under the name `valgrind` it takes Valgrind's place: wrappers find the version line,
//! the option files and the message prefix that they expect.

use std::ffi::OsStr;
use std::path::Path;

use crate::options::Tool;
use crate::options::sources::Names;

/// Grind's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The Valgrind version whose behaviour grind follows and that wrappers are shown. Three numbers and nothing else:
/// wrappers parse exactly that.
pub const AS_VALGRIND: &str = "3.28.0";

/// A name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// `grind`, or any name but the following.
    Grind,
    /// `valgrind`.
    Valgrind,
}

impl Invocation {
    /// The name in `argv[0]`.
    #[must_use]
    pub fn from_argv0(argv0: Option<&OsStr>) -> Self {
        let name = argv0.map(Path::new).and_then(Path::file_name);
        if name == Some(OsStr::new("valgrind")) { Self::Valgrind } else { Self::Grind }
    }

    /// The name as messages show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Grind => "grind",
            Self::Valgrind => "valgrind",
        }
    }

    /// Where options are kept.
    #[must_use]
    pub fn option_names(self) -> Names {
        match self {
            Self::Grind => Names { file: ".grindrc", variable: "GRIND_OPTS" },
            Self::Valgrind => Names { file: ".valgrindrc", variable: "VALGRIND_OPTS" },
        }
    }

    /// What `--version` prints.
    #[must_use]
    pub fn version(self, verbose: bool) -> String {
        match (self, verbose) {
            (Self::Grind, false) => format!("grind-{VERSION}"),
            (Self::Grind, true) => format!("grind-{VERSION}, in the manner of valgrind-{AS_VALGRIND}"),
            (Self::Valgrind, false) => format!("valgrind-{AS_VALGRIND}"),
            (Self::Valgrind, true) => format!("valgrind-{AS_VALGRIND}-grind-{VERSION}"),
        }
    }

    /// What a callgrind profile says that it was created by.
    #[must_use]
    pub fn creator(self) -> String {
        match self {
            Self::Grind => format!("grind-{VERSION}"),
            Self::Valgrind => format!("callgrind-{AS_VALGRIND}"),
        }
    }

    /// The first lines of a log. In Valgrind's place they begin as its do: filters of test suites look for these beginnings,
    /// and delete from the first one to the next empty line.
    #[must_use]
    pub fn banner(self, tool: Tool) -> String {
        let (what, using) = match (self, tool) {
            (Self::Grind, Tool::Cachegrind) => {
                ("Cachegrind, an exact instruction profiler", format!("grind-{VERSION}"))
            }
            (Self::Grind, Tool::Callgrind) => ("Callgrind, an exact profiler of calls", format!("grind-{VERSION}")),
            (Self::Valgrind, tool) => {
                let what = match tool {
                    Tool::Cachegrind => "Cachegrind, a high-precision tracing profiler",
                    Tool::Callgrind => "Callgrind, a call-graph generating cache profiler",
                };
                (what, format!("Valgrind-{AS_VALGRIND}, whose place grind-{VERSION} takes"))
            }
        };
        format!(
            "{what}\n\
             Copyright (C) 2026, and MIT or Apache-2.0 licensed, by the grind authors\n\
             Using {using}; rerun with -h for more"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides() {
        for (argv0, invocation) in [
            (Some("grind"), Invocation::Grind),
            (Some("/opt/bin/valgrind"), Invocation::Valgrind),
            (Some("valgrind"), Invocation::Valgrind),
            (Some("valgrind.bin"), Invocation::Grind),
            (Some("/"), Invocation::Grind),
            (None, Invocation::Grind),
        ] {
            assert_eq!(Invocation::from_argv0(argv0.map(OsStr::new)), invocation, "{argv0:?}");
        }
    }

    #[test]
    fn wrappers_can_read_the_version() {
        // `valgrind-` and exactly three numbers.
        let version = Invocation::Valgrind.version(false);
        let numbers: Vec<u32> =
            version.strip_prefix("valgrind-").unwrap().split('.').map(|n| n.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 3);
        assert!(numbers[0] == 3 && numbers[1] >= 22, "instr-at-start came with 3.22");
    }

    #[test]
    fn filters_find_the_banner_of_the_tool() {
        for (tool, begin) in [(Tool::Cachegrind, "Cachegrind, a "), (Tool::Callgrind, "Callgrind, a ")] {
            let banner = Invocation::Valgrind.banner(tool);
            let lines: Vec<&str> = banner.lines().collect();
            assert!(lines[0].starts_with(begin), "{banner}");
            assert!(lines[1].starts_with("Copyright (C) ") && lines[2].starts_with("Using Valgrind-3."), "{banner}");
            assert!(lines.iter().all(|line| !line.is_empty()), "the first empty line ends the banner");
        }
    }
}
