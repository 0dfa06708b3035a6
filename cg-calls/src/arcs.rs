//! The book of one thread: what was counted since the last dump, by arc, jump, skipped call and cell.
//!
//! Numbers of entries stay valid for ever, since the stack and the caches of sites hold them; a dump only empties them. An
//! entry has its counts side by side, so that a call or return touches one place.

use crate::code::SiteId;
use crate::hash::FastMap;

/// No arc, or no skipped call.
pub(crate) const NONE: u32 = u32::MAX;

/// What an arc is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ArcKey {
    pub(crate) site: SiteId,
    pub(crate) from: u32,
    pub(crate) target: u64,
    pub(crate) to: u32,
}

/// What a jump is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JumpKey {
    pub(crate) arc: ArcKey,
    pub(crate) conditional: bool,
}

/// Where the costs of a cell are.
#[derive(Clone, Copy, Debug)]
struct LastSlot {
    node: u32,
    slot: u32,
}

/// A table of rows of `width` counts, found by key.
#[derive(Clone, Debug)]
pub(crate) struct Table<K> {
    width: usize,
    pub(crate) keys: Vec<K>,
    counts: Vec<u64>,
    index: FastMap<K, u32>,
}

impl<K: Copy + Eq + std::hash::Hash> Table<K> {
    fn new(width: usize) -> Table<K> {
        Table { width, keys: Vec::new(), counts: Vec::new(), index: FastMap::default() }
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

    pub(crate) fn clear_counts(&mut self) {
        self.counts.fill(0);
    }
}

/// All counts of one thread since the last dump.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    costs: usize,
    /// A row is the number of calls and the inclusive costs.
    pub(crate) arcs: Table<ArcKey>,
    /// A row is the number of jumps.
    pub(crate) jumps: Table<JumpKey>,
    /// Call sites of skipped functions, with their nodes; a row is the costs of what was skipped.
    pub(crate) skips: Table<(SiteId, u32)>,
    last: Vec<LastSlot>,
    /// By node and cell; a row is the number of executions.
    pub(crate) cells: Table<(u32, u32)>,
    /// The extra costs of each row of `cells`; shorter, if the last ones have none.
    pub(crate) extra: Vec<u64>,
}

impl Book {
    pub(crate) fn new(costs: usize) -> Book {
        Book {
            costs,
            arcs: Table::new(costs + 1),
            jumps: Table::new(1),
            skips: Table::new(costs),
            last: Vec::new(),
            cells: Table::new(1),
            extra: Vec::new(),
        }
    }

    #[inline]
    fn slot(&mut self, node: u32, cell: u32) -> u32 {
        match self.last.get(cell as usize) {
            Some(last) if last.node == node => last.slot,
            _ => self.find_slot(node, cell),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_slot(&mut self, node: u32, cell: u32) -> u32 {
        let slot = self.cells.row((node, cell));
        let cell = cell as usize;
        if cell >= self.last.len() {
            self.last.resize(cell + 1, LastSlot { node: u32::MAX, slot: 0 });
        }
        self.last[cell] = LastSlot { node, slot };
        slot
    }

    #[inline]
    pub(crate) fn execute(&mut self, node: u32, cell: u32) {
        let slot = self.slot(node, cell);
        self.cells.counts(slot)[0] += 1;
    }

    pub(crate) fn correct(&mut self, node: u32, cell: u32, n: i64) {
        let slot = self.slot(node, cell);
        let count = &mut self.cells.counts(slot)[0];
        *count = count.saturating_add_signed(n);
    }

    #[inline]
    pub(crate) fn spend(&mut self, node: u32, cell: u32, event: usize, n: u64) {
        assert!(event < self.costs, "cost {event} of {}", self.costs);
        let at = self.slot(node, cell) as usize * self.costs + event;
        if at >= self.extra.len() {
            self.extra.resize(self.cells.keys.len() * self.costs, 0);
        }
        self.extra[at] += n;
    }

    /// Sets all counts to zero.
    pub(crate) fn clear(&mut self) {
        self.arcs.clear_counts();
        self.jumps.clear_counts();
        self.skips.clear_counts();
        self.cells.clear_counts();
        self.extra.clear();
    }
}
