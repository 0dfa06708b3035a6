//! Source files: what allocations are called there, and their lines.
//!
//! A file is read once, and only if it is a regular one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cg_cli::source_map::{Mapping, place};
use cg_cli::source_text;
use cg_format::mem::{Kind, Object, notation};

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
        let line = match object.kind {
            Kind::Heap if object.line > 0 => {
                let text = self.text(&object.file).unwrap_or_default();
                source_text::lines(text).find(|(n, _)| *n == object.line).map(|(_, line)| line)
            }
            _ => None,
        };
        notation::variable(object, line)
    }
}
