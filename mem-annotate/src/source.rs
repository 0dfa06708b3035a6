//! Source files: what allocations are called there, and their lines.
//!
//! A file is read once, and only if it is a regular one. What an allocation is called is the identifier left of the only `=` of its
//! line; it is shown beside file and line and is used for nothing else.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cg_cli::source_map::{Mapping, place};
use cg_cli::source_text;
use cg_format::mem::{Kind, Object};

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    mappings: &'a [Mapping],
    texts: BTreeMap<String, Option<Vec<u8>>>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(mappings: &'a [Mapping]) -> Self {
        Self { mappings, texts: BTreeMap::new() }
    }

    /// Where a file is looked for.
    pub(crate) fn place(&self, file: &str) -> PathBuf {
        place(self.mappings, file.as_bytes())
    }

    /// The text of a file, if it can be read.
    pub(crate) fn text(&mut self, file: &str) -> Option<&[u8]> {
        let place = self.place(file);
        let read = || source_text::read(&place).ok().map(|(text, _)| text);
        self.texts.entry(file.to_owned()).or_insert_with(read).as_deref()
    }

    /// How streams call an object.
    pub(crate) fn variable(&mut self, object: &Object) -> String {
        match object.kind {
            Kind::Heap if object.line > 0 => {
                let text = self.text(&object.file).unwrap_or_default();
                let line = source_text::lines(text).find(|(n, _)| *n == object.line).map(|(_, line)| line);
                line.and_then(assigned).unwrap_or_else(|| object.name.clone())
            }
            Kind::Stack => "[stack]".to_owned(),
            _ => object.name.clone(),
        }
    }
}

/// The identifier left of the only `=` of a line.
fn assigned(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    let code = text.split("//").next().unwrap_or_default();
    let bytes = code.as_bytes();
    let around = |n: usize| n.checked_sub(1).map_or(b' ', |n| bytes[n]);
    let alone = |n: &usize| {
        let after = bytes.get(n + 1).copied().unwrap_or(b' ');
        bytes[*n] == b'=' && !matches!(after, b'=' | b'>') && !b"=!<>+-*/%&|^".contains(&around(*n))
    };
    let mut places = (0..bytes.len()).filter(alone);
    let (at, None) = (places.next()?, places.next()) else { return None };
    let left = code[..at].trim_end();
    let begin = left
        .rfind(|c: char| !(c.is_alphanumeric() || "_.->".contains(c)))
        .map_or(0, |n| n + left[n..].chars().next().map_or(1, char::len_utf8));
    let name = &left[begin..];
    let is_word = |word: &str| {
        let first = word.chars().next();
        first.is_some_and(|c| c.is_alphabetic() || c == '_') && !word.contains(['-', '>'])
    };
    name.split("->").flat_map(|part| part.split('.')).all(is_word).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_called_what_they_are_assigned_to() {
        for (line, name) in [
            ("    double *a = malloc(n * sizeof *a);", Some("a")),
            ("  this->rows = new double[n];", Some("this->rows")),
            ("let v: Vec<u8> = vec![0; n];", None),
            ("let table = vec![0; n]; // x = y", Some("table")),
            ("if ((p = malloc(n)) == NULL)", Some("p")),
            ("int n = 5; char *q = malloc(n);", None),
            ("return malloc(n);", None),
            ("x += f(malloc(1));", None),
            ("rows[i] = malloc(n);", None),
            ("é = malloc(n)", Some("é")),
            ("= malloc(n)", None),
            ("", None),
        ] {
            assert_eq!(assigned(line.as_bytes()).as_deref(), name, "{line}");
        }
    }
}
