//! Substitutions, `s/old/new/`: parsed and applied.

use cg_cli::substitute::Substitution;

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "substitution",
    run,
    laws: |_| {},
    words: &[
        "s/", "/", "\\/", "\n", "g", "i", "a", "b", "é", ".", "*", "+", "?", "{2}", "{1,3}", "{,9}", "{1000}", "(",
        ")", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?P<n>", "(?P=n)", "(?(1)", "(?i)", "(?x)", "(?#", "|", "^", "$",
        "\\b", "\\d", "\\1", "\\2", "\\g<0>", "\\g<n>", "\\x61", "\\u00e9", "\\N{", "\\Z", "\\A", "[", "]", "[^",
        "[a-z]", "&&", "-", "aaaaaaaa",
    ],
    change: None,
    largest: 1 << 14,
    // The programs that expressions are translated into, and what they note down while they run.
    overhead: 128 << 20,
    besides: |_| 0,
};

/// Takes the first line of `input` for a substitution and applies it to the rest, and to nothing.
fn run(input: &[u8]) {
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
