//! Rows of counts by key. A row keeps its number for ever, since stacks and caches of sites hold it.

use rustc_hash::FxHashMap;

/// No row: no arc, no skipped call, no node, no counter.
pub(crate) const NONE: u32 = u32::MAX;

/// What a row's count of executions says: none where a correction has met nothing to correct (it was in the part before).
pub(crate) fn executions(count: u64) -> u64 {
    count.cast_signed().max(0).cast_unsigned()
}

/// A table of rows of `width` counts, found by key.
#[derive(Clone, Debug)]
pub(crate) struct Table<K> {
    width: usize,
    pub(crate) keys: Vec<K>,
    pub(crate) counts: Vec<u64>,
    index: FxHashMap<K, u32>,
}

impl<K: Copy + Eq + std::hash::Hash> Table<K> {
    pub(crate) fn new(width: usize) -> Table<K> {
        Table { width, keys: Vec::new(), counts: Vec::new(), index: FxHashMap::default() }
    }

    /// The row of a key, made if there is none.
    pub(crate) fn row(&mut self, key: K) -> u32 {
        let keys = &mut self.keys;
        let counts = &mut self.counts;
        let width = self.width;
        *self.index.entry(key).or_insert_with(|| {
            let row = u32::try_from(keys.len()).ok().filter(|row| *row != NONE).expect("fewer than 2^32 rows");
            keys.push(key);
            counts.resize(counts.len() + width, 0);
            row
        })
    }

    /// The counts of a key, if there is a row.
    pub(crate) fn find(&self, key: K) -> Option<&[u64]> {
        self.index.get(&key).map(|row| self.at(*row))
    }

    #[inline]
    pub(crate) fn counts(&mut self, row: u32) -> &mut [u64] {
        let start = row as usize * self.width;
        &mut self.counts[start..start + self.width]
    }

    /// The same, to look at.
    pub(crate) fn at(&self, row: u32) -> &[u64] {
        &self.counts[row as usize * self.width..][..self.width]
    }

    /// Keys and counts, in the order in which they were first seen.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (K, &[u64])> {
        self.keys.iter().copied().zip(self.counts.chunks_exact(self.width))
    }

    /// Adds to the first count of a row. A correction may have come before what it corrects, if that is told later: so it may be less
    /// than nothing for a while ([`executions`]).
    pub(crate) fn add(&mut self, row: u32, n: u64) {
        let count = &mut self.counts(row)[0];
        *count = count.wrapping_add(n);
    }

    pub(crate) fn clear_counts(&mut self) {
        self.counts.fill(0);
    }
}
