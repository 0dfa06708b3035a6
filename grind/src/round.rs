//! Rounds in which each process that is followed is named once: the engine asks for one request after the other, until there is none.

use grind_types::Pid;

/// A round, or none.
#[derive(Debug, Default)]
pub struct Round(Option<Vec<Pid>>);

impl Round {
    /// Whether one is under way.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The next process of a round, which begins with those of `followed` if none is under way; `None` ends it.
    pub fn next(&mut self, followed: impl Iterator<Item = Pid>) -> Option<Pid> {
        let next = self.0.get_or_insert_with(|| followed.collect()).pop();
        if next.is_none() {
            self.0 = None;
        }
        next
    }
}
