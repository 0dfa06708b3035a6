//! Costs that become known long after they arose: whose they will be, and the active calls as they change.
//!
//! Such a cost is no difference of totals, so inclusive costs do not follow from it here: whoever knows which calls were active
//! when it arose adds it to their arcs. The driver keeps the active calls in a form of its own, which it brings up to date by
//! [`Calls::changes`] when it needs them; what came and went in between is not told.
//!
//! Invariant: places and arcs stay valid for ever, whatever dumps are taken; a cost that is added to a place counts as
//! collected.

use super::*;
use crate::profile::CounterKey;

/// Where costs of a counter belong that arise now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spot {
    /// The counter, in the running node: by row.
    Counter(u32),
    /// The call of what is skipped.
    Skipped(u32),
}

/// A call arc, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArcId(pub u32);

/// What has happened to the function that was running first, below all calls. Nothing was active then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootChange {
    /// It ended: the next one has nothing to do with it.
    Ended,
    /// It returned to a caller that was running before anybody watched; it had been called by this arc.
    Called(ArcId),
}

/// What the active calls are now, beside what they were when it was asked for last.
#[derive(Clone, Debug)]
pub struct Changes {
    /// So many frames, from the outermost one, are the same.
    pub kept: usize,
    /// What happened to the root, in order; `kept` is 0 if anything did.
    pub root: Vec<RootChange>,
}

/// A key that stays the same as long as [`Calls::spot`] answers the same for each counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallContext {
    node: u32,
    skip: u32,
}

impl CallContext {
    /// That of nobody.
    pub const NOBODY: CallContext = CallContext { node: NONE, skip: NONE };
}

impl Calls {
    /// What decides where costs belong now.
    #[inline]
    pub fn call_context(&self) -> CallContext {
        CallContext { node: self.node, skip: self.skip }
    }

    /// Where costs of `counter` belong that arise now. Only with contexts, and once the thread has begun.
    pub fn spot(&mut self, counter: u32) -> Spot {
        if self.skip == NONE {
            Spot::Counter(self.book.counters.row((self.node, counter)))
        } else {
            Spot::Skipped(self.skip)
        }
    }

    /// `n` of the cost `event` that arose when `spot` was told.
    ///
    /// # Panics
    /// If there is no such cost.
    pub fn spend_deferred(&mut self, spot: Spot, event: usize, n: u64) {
        match spot {
            Spot::Counter(row) => self.book.spend_row(row, event, n),
            Spot::Skipped(row) => self.book.skips.counts(row)[event] += n,
        }
        self.done[event] += n;
    }

    /// The same as part of what a call cost with all that it called.
    ///
    /// # Panics
    /// If there is no such cost.
    pub fn spend_deferred_on_arc(&mut self, arc: ArcId, event: usize, n: u64) {
        self.book.arcs.counts(arc.0)[1 + event] += n;
    }

    /// What has changed since this was asked for last.
    pub fn changes(&mut self) -> Changes {
        Changes { kept: self.stack.take_lowest(), root: self.roots.replace(Vec::new()).unwrap_or_default() }
    }

    /// Whether nothing can have changed, and no handler runs: one that has just begun has no frames.
    #[inline]
    pub fn unchanged(&self, frames: usize) -> bool {
        self.stack.lowest() == frames
            && self.stack.len() == frames
            && self.outer.is_empty()
            && self.roots.as_ref().is_some_and(Vec::is_empty)
    }

    /// Something happens to the root.
    pub(super) fn root_changed(&mut self, change: RootChange) {
        if let Some(roots) = &mut self.roots {
            roots.push(change);
        }
    }

    /// How many frames there are: calls that have not returned.
    pub fn frames(&self) -> usize {
        self.stack.len()
    }

    /// The call arc of a frame, from the outermost one; none if its costs are its caller's.
    pub fn frame_arc(&self, frame: usize) -> Option<ArcId> {
        Some(self.stack.frame(frame).arc).filter(|arc| *arc != NONE).map(ArcId)
    }

    /// How many frames there are below each of the active signal handlers, the outermost first.
    pub fn handlers(&self) -> impl Iterator<Item = usize> + '_ {
        // Each interrupted state knows its own bottom, the running one's is apart.
        self.outer.iter().map(|o| o.bottom).skip(1).chain((!self.outer.is_empty()).then_some(self.bottom))
    }

    /// What a spot is, for a profile without this thread.
    pub fn describe_spot(&self, spot: Spot) -> (Node, CounterKey) {
        match spot {
            Spot::Counter(row) => {
                let (node, counter) = self.book.counters.keys[row as usize];
                (self.describe_node(node), CounterKey::Counter(counter))
            }
            Spot::Skipped(row) => {
                let (site, node) = self.book.skips.keys[row as usize];
                (self.describe_node(node), CounterKey::Skipped(site))
            }
        }
    }

    /// What an arc is, for a profile without this thread: caller, site, target, callee.
    pub fn describe_arc(&self, arc: ArcId) -> (Node, SiteId, u64, Node) {
        let key = self.book.arcs.keys[arc.0 as usize];
        (self.describe_node(key.from), key.site, key.target, self.describe_node(key.to))
    }

    /// A function in its context, by its number in this thread.
    pub fn describe(&self, node: u32) -> Node {
        self.describe_node(node)
    }

    /// What runs, in its context: a number that means the same for as long as this thread is known. `None`: nothing does.
    #[inline]
    #[must_use]
    pub fn running(&self) -> Option<u32> {
        (self.node != NONE).then_some(self.node)
    }

    fn describe_node(&self, node: u32) -> Node {
        let (functions, recursion) = self.contexts.node(node);
        Node { functions: functions.to_vec(), recursion }
    }
}
