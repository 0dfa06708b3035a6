//! Profiles of cachegrind's format: read, written and read again.

use cg_format::cachegrind::{
    Detail, Profile, ReadError, ReadErrorKind, ReadOptions, SummaryRule, read, write, write_functions, write_stored,
};

use cg_format::events::MOST_EVENTS;

use super::text;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "cachegrind",
    run,
    laws,
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
    change: Some(text::change),
    largest: 1 << 16,
    // Tables that begin with room for what most profiles have.
    overhead: 1 << 20,
    besides: rows,
};

/// Each row has a number for each event, however few it is written with, and each file a function without a name. A table
/// that grows is there three times over for a moment.
fn rows(input: &[u8]) -> usize {
    let mut lines = input.split(|byte| *byte == b'\n');
    let events = lines.find(|line| line.starts_with(b"events:")).unwrap_or_default();
    let events = events.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
    let (mut rows, mut files) = (0, 0);
    for line in lines {
        rows += usize::from(line.first().is_some_and(u8::is_ascii_digit));
        files += usize::from(line.starts_with(b"fl="));
    }
    3 * 8 * (events.min(MOST_EVENTS) * rows + 4 * files)
}

fn run(input: &[u8]) {
    let _ = read(input, "x", &ReadOptions::default());
    let _ = read(input, "x", &ReadOptions { detail: Detail::Functions, summary: SummaryRule::Ignored });
}

/// What is right must survive being written, and its difference to itself is zero.
fn laws(input: &[u8]) {
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
