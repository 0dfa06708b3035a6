//! What is wrong with a file, for the log: a hostile one can be wrong in millions of places, and the log needs the first few. Must never
//! take memory that grows with what is wrong.

/// So many are kept.
const MOST: usize = 50;

/// The first few things that are wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Keeps one more, if there have not been many yet.
    pub(super) fn push(&mut self, what: impl ToString) {
        if self.0.len() < MOST {
            self.0.push(what.to_string());
        }
    }

    /// The same with all of them, each behind a word on what they are about.
    pub(super) fn extend(&mut self, of: &str, more: &Problems) {
        more.0.iter().for_each(|what| self.push(format_args!("{of}{what}")));
    }

    /// All that are kept.
    pub(super) fn as_slice(&self) -> &[String] {
        &self.0
    }
}
