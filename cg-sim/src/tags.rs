//! Short tags: a number of 16 bits for each stretch of memory as long as a cache has sets, in the order of their first use.
//! A program uses few of them at a time, so what is looked up mostly is a small table.
//!
//! Invariant: a tag is not 0 and means one stretch for ever; those that found no tag have none for ever.

use std::collections::HashMap;

/// Entries of the table that is looked at first.
const RECENT: usize = 512;

/// See the module's description.
#[derive(Clone, Debug)]
pub(crate) struct Tags {
    /// By the low bits of stretches: one of them, and its tag, or 0.
    recent: Box<[(u64, u16); RECENT]>,
    all: HashMap<u64, u16>,
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self { recent: Box::new([(0, 0); RECENT]), all: HashMap::new() }
    }

    /// The tag of a stretch, unless there were too many before it.
    #[inline]
    pub(crate) fn of(&mut self, stretch: u64) -> Option<u16> {
        let (known, tag) = self.recent[stretch as usize % RECENT];
        if known == stretch && tag != 0 { Some(tag) } else { self.find(stretch) }
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, stretch: u64) -> Option<u16> {
        let next = u16::try_from(self.all.len() + 1).ok();
        let tag = match (self.all.get(&stretch), next) {
            (Some(tag), _) => *tag,
            (None, Some(next)) => *self.all.entry(stretch).or_insert(next),
            (None, None) => return None,
        };
        self.recent[stretch as usize % RECENT] = (stretch, tag);
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stay_and_run_out() {
        let mut tags = Tags::new();
        let stretch = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n >> 3;
        for n in 0..100_000 {
            let expected = u16::try_from(n + 1).ok();
            assert_eq!(tags.of(stretch(n)), expected, "{n}");
            let before = n / 2;
            assert_eq!(tags.of(stretch(before)), u16::try_from(before + 1).ok(), "{n}, {before}");
        }
        assert_eq!(tags.of(stretch(0)), Some(1));
    }
}
