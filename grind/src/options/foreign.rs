//! What belongs to other tools: options meant for one of them alone, and what is said of one that the chosen tool lacks.
//!
//! `--TOOL:name=value`, and `--TOOL:--name=value`, is `--name=value` for that tool and nothing for every other: an option
//! file serves all tools. A tool that nobody has is no reason to drop a word silently; it is likely to be mistyped.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::{Tool, callgrind, table};

/// Valgrind's tools that grind has not, with those of their options that no other tool of this list has had before, which
/// tells what somebody wanted who gives one.
const TOOLS: &[(&str, &[&str])] = &[
    (
        "memcheck",
        &[
            "--leak-check",
            "--leak-resolution",
            "--leak-check-heuristics",
            "--show-leak-kinds",
            "--errors-for-leak-kinds",
            "--show-reachable",
            "--show-possibly-lost",
            "--track-origins",
            "--undef-value-errors",
            "--expensive-definedness-checks",
            "--partial-loads-ok",
            "--keep-stacktraces",
            "--show-mismatched-frees",
            "--show-realloc-size-zero",
            "--freelist-vol",
            "--freelist-big-blocks",
            "--workaround-gcc296-bugs",
            "--ignore-range-below-sp",
            "--ignore-ranges",
            "--malloc-fill",
            "--free-fill",
            "--xtree-leak",
            "--xtree-leak-file",
            "--xtree-memory",
            "--xtree-memory-file",
        ],
    ),
    (
        "helgrind",
        &[
            "--track-lockorders",
            "--history-level",
            "--history-backtrace-size",
            "--delta-stacktrace",
            "--conflict-cache-size",
            "--check-stack-refs",
            "--ignore-thread-creation",
            "--free-is-write",
            "--check-cond-signal-mutex",
        ],
    ),
    (
        "drd",
        &[
            "--check-stack-var",
            "--exclusive-threshold",
            "--shared-threshold",
            "--first-race-only",
            "--join-list-vol",
            "--report-signal-unlocked",
            "--segment-merging",
            "--segment-merging-interval",
            "--show-confl-seg",
            "--show-stack-usage",
            "--ptrace-addr",
        ],
    ),
    (
        "massif",
        &[
            "--massif-out-file",
            "--heap",
            "--heap-admin",
            "--stacks",
            "--pages-as-heap",
            "--depth",
            "--ignore-fn",
            "--threshold",
            "--peak-inaccuracy",
            "--time-unit",
            "--detailed-freq",
            "--max-snapshots",
        ],
    ),
    ("dhat", &["--dhat-out-file", "--mode"]),
    ("lackey", &["--basic-counts", "--trace-mem", "--trace-superblocks", "--detailed-counts", "--fnname"]),
    ("none", &[]),
    ("nulgrind", &[]),
    ("exp-bbv", &["--bb-out-file", "--pc-out-file", "--interval-size", "--instr-count-only"]),
    ("exp-dhat", &[]),
    ("exp-sgcheck", &[]),
];

/// The word without its tool, if it is for this one; nothing if it is for another; else the word.
pub(super) fn for_this_tool(word: OsString, this: Tool) -> Option<OsString> {
    let Some(rest) = word.as_bytes().strip_prefix(b"--") else { return Some(word) };
    let end = rest.iter().position(|byte| matches!(byte, b':' | b'=')).unwrap_or(rest.len());
    let (tool, Some((b':', name))) = (&rest[..end], rest[end..].split_first()) else { return Some(word) };
    if tool == this.name().as_bytes() {
        let dashes: &[u8] = if name.starts_with(b"-") { b"" } else { b"--" };
        return Some(OsString::from_vec([dashes, name].concat()));
    }
    let known = TOOLS.iter().map(|(known, _)| *known).chain(table::TOOLS.iter().copied());
    known.into_iter().all(|known| known.as_bytes() != tool).then_some(word)
}

/// Valgrind's tool that has the option `name`, if neither of grind's has.
pub(super) fn tool_of(name: &str) -> Option<&'static str> {
    TOOLS.iter().find(|(_, options)| options.contains(&name)).map(|(tool, _)| *tool)
}

/// What to say to somebody who gives `tool` the option `name`, which it does not have.
pub(super) fn hint(name: &str, tool: Tool) -> Option<String> {
    let other = match tool {
        Tool::Cachegrind => Tool::Callgrind,
        Tool::Callgrind => Tool::Cachegrind,
    };
    if other.find(name).is_some() || other == Tool::Callgrind && callgrind::numbered(name).is_some() {
        let other = other.name();
        return Some(format!("It is an option of {other}: it needs --tool={other}."));
    }
    tool_of(name).map(|owner| {
        format!("It is an option of Valgrind's {owner}, which grind does not have: grind counts what is executed.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: &str, tool: Tool) -> Option<String> {
        for_this_tool(word.into(), tool).map(|word| word.into_string().unwrap())
    }

    #[test]
    fn a_tool_in_front_of_a_name_decides_who_gets_the_option() {
        for (given, cachegrind, callgrind) in [
            ("--cachegrind:cache-sim=yes", Some("--cache-sim=yes"), None),
            ("--callgrind:dump-instr=yes", None, Some("--dump-instr=yes")),
            ("--callgrind:--dump-instr=yes", None, Some("--dump-instr=yes")),
            ("--callgrind:-v", None, Some("-v")),
            ("--memcheck:leak-check=no", None, None),
            ("--memcheck:bogus", None, None),
            ("--exp-bbv:x=1", None, None),
            ("--mencheck:x=1", Some("--mencheck:x=1"), Some("--mencheck:x=1")),
            ("--log-file=memcheck:x", Some("--log-file=memcheck:x"), Some("--log-file=memcheck:x")),
            ("-callgrind:x", Some("-callgrind:x"), Some("-callgrind:x")),
            ("--:x", Some("--:x"), Some("--:x")),
        ] {
            assert_eq!(word(given, Tool::Cachegrind).as_deref(), cachegrind, "{given}");
            assert_eq!(word(given, Tool::Callgrind).as_deref(), callgrind, "{given}");
        }
    }

    #[test]
    fn no_option_of_grind_is_said_to_be_anothers() {
        for (_, options) in TOOLS {
            for name in *options {
                for tool in [Tool::Cachegrind, Tool::Callgrind] {
                    assert!(tool.find(name).is_none(), "{name}");
                }
            }
        }
    }

    #[test]
    fn hints_name_the_tool() {
        assert!(hint("--dump-instr", Tool::Cachegrind).unwrap().contains("--tool=callgrind"));
        assert!(hint("--separate-recs7", Tool::Cachegrind).unwrap().contains("--tool=callgrind"));
        assert!(hint("--instr-at-start", Tool::Callgrind).unwrap().contains("--tool=cachegrind"));
        assert!(hint("--leak-check", Tool::Callgrind).unwrap().contains("memcheck"));
        assert_eq!(hint("--bogus", Tool::Callgrind), None);
    }
}
