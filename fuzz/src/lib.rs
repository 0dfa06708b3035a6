//! What is done with an input at random: the targets, for libFuzzer and for the plain driver alike.
//!
//! A target panics when a law is broken; time and memory are watched by whoever calls it. Targets read and write nothing
//! outside, and do the same for the same input.

pub mod mutate;
pub mod watch;

use cg_cli::substitute::Substitution;
use cg_format::cachegrind::{
    Detail, Profile, ReadError, ReadErrorKind, ReadOptions, SummaryRule, read, write, write_functions, write_stored,
};

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also that of the folder of its inputs.
    pub name: &'static str,
    /// Runs it on an input.
    pub run: fn(&[u8]),
    /// Words that its inputs are made of.
    pub words: &'static [&'static str],
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "reader",
        run: reader,
        words: &[
            "desc: a\n",
            "cmd: x\n",
            "events: ",
            "Ir",
            " Dr",
            "\n",
            "fl=",
            "fn=",
            "a.c",
            "summary: ",
            "# c\n",
            "\r\n",
            "\r",
            "\t",
            " ",
            "0",
            "1 1\n",
            "2 1\n",
            "-1",
            "+1",
            "999999999999999",
            "1000000000000000",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551616",
            "1000000000000000000000000000000000000",
            "<unspecified>",
            "???",
            "\0",
            "é",
        ],
    },
    Target {
        name: "substitution",
        run: substitution,
        words: &[
            "s/", "/", "\\/", "\n", "g", "i", "a", "b", "é", ".", "*", "+", "?", "{2}", "{1,3}", "{,9}", "{1000}", "(",
            ")", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?P<n>", "(?P=n)", "(?(1)", "(?i)", "(?x)", "(?#", "|", "^",
            "$", "\\b", "\\d", "\\1", "\\2", "\\g<0>", "\\g<n>", "\\x61", "\\u00e9", "\\N{", "\\Z", "\\A", "[", "]",
            "[^", "[a-z]", "&&", "-", "aaaaaaaa",
        ],
    },
];

/// The target called `name`.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Reads `input` as a profile; what is right must survive being written, and its difference to itself is zero.
pub fn reader(input: &[u8]) {
    let options = |detail, summary| ReadOptions { detail, summary };
    let lines = read(input, "x", &options(Detail::Lines, SummaryRule::Required));
    let functions = read(input, "x", &options(Detail::Functions, SummaryRule::Required));
    // A sum of large counts may pass the limit in one way of adding and not in the other.
    let large = |result: &Result<Profile, ReadError>| {
        result.as_ref().is_err_and(|error| matches!(error.kind, ReadErrorKind::TooLarge))
    };
    if let Err(error) = &lines {
        assert!(error.to_string().starts_with("x:"), "{error}");
        let same = functions.as_ref().is_err_and(|other| other.line == error.line);
        assert!(same || large(&lines) || large(&functions), "{error}");
    }
    let Ok(lenient) = read(input, "x", &options(Detail::Lines, SummaryRule::Ignored)) else {
        assert!(lines.is_err());
        return;
    };
    same(&lenient, &reread(|out| write_stored(out, &lenient)), "as stored");
    let sorted = reread(|out| write(out, &lenient));
    assert_eq!(bytes(|out| write(out, &sorted)), bytes(|out| write(out, &lenient)), "sorted");
    if let Ok(functions) = functions {
        assert_eq!(functions.total(), lenient.total());
        let written = reread(|out| write_functions(out, &functions));
        assert_eq!(written.total(), functions.total());
    }
    let mut zero = lenient.clone();
    zero.negate();
    zero.merge(&lenient).expect("a difference to itself");
    assert!(zero.total().iter().all(|count| *count == 0));
    let mut twice = lenient.clone();
    if twice.merge(&lenient).is_ok() {
        assert!(twice.total().iter().zip(lenient.total()).all(|(two, one)| *two == 2 * one));
        zero.merge(&twice).expect("twice itself");
        same(&twice, &zero, "zero and twice");
    }
}

fn bytes<E: std::fmt::Debug>(fill: impl Fn(&mut dyn std::io::Write) -> Result<(), E>) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out).expect("memory takes everything");
    out
}

fn reread<E: std::fmt::Debug>(fill: impl Fn(&mut dyn std::io::Write) -> Result<(), E>) -> Profile {
    let text = bytes(fill);
    read(&text[..], "y", &ReadOptions::default()).expect("what was written can be read")
}

fn same(one: &Profile, other: &Profile, what: &str) {
    assert_eq!(one.header, other.header, "{what}");
    assert_eq!(bytes(|out| write_stored(out, one)), bytes(|out| write_stored(out, other)), "{what}");
}

/// Takes the first line of `input` for a substitution and applies it to the rest, and to nothing.
pub fn substitution(input: &[u8]) {
    let (text, name) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &b"path/to/file.c"[..]),
    };
    let text = String::from_utf8_lossy(text);
    match Substitution::parse(&text) {
        Err(error) => {
            assert!(error.at <= text.chars().count(), "{error}");
            assert!(!error.to_string().is_empty());
        }
        Ok(substitution) => {
            // An expression may give up on a name, with an error.
            let _ = substitution.apply(b"");
            let _ = substitution.apply(name);
        }
    }
}
