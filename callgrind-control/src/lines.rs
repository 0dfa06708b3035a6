//! How texts and numbers are written in a line of the talk. Whatever a text holds, it is part of one line.

use std::fmt::Write;

/// Numbers, with a blank between them.
pub(crate) fn numbers(values: &[u64]) -> String {
    let mut text = String::new();
    for value in values {
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}{value}");
    }
    text
}

/// A text as part of a line.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

/// The text that part of a line stands for.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    out
}
