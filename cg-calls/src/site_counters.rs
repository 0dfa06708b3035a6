//! What the fast loop needs of each kind of record, side by side: how often it was executed by which node, and the calls that
//! were made before.
//!
//! A site counter is what one record means; it has a tally for an even node and one for an odd one, so that levels of recursion next
//! to each other do not get in each other's way. A call edge is a call that was made before from the same site in the same
//! context, with nothing left to find out but the level of recursion. Invariants: executions in a site counter belong to the node
//! that the site counter names, and are in no other table; forgetting a call edge costs time only.

use crate::code::SiteId;
use crate::contexts::PathId;
use crate::step::{Step, StepKind};
use crate::table::NONE;
use rustc_hash::FxHashMap;

/// What a record means, and how often it was executed by one node.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct SiteCounter {
    /// See [`SiteCounter::tag`]; NONE if it counts for nobody.
    tag: u32,
    pub(crate) cost: u32,
    pub(crate) count: u64,
}

const _: () = assert!(size_of::<SiteCounter>() == 16);

impl SiteCounter {
    /// Bits of a tag that are the node's.
    const NODE: u32 = (1 << 28) - 1;

    /// Says in one word what a record means and whom it counts for, so that one comparison tells both. A block's is the node.
    #[inline]
    pub(crate) fn tag(kind: StepKind, node: u32) -> u32 {
        node | (kind as u32) << 28
    }

    /// Whether it is of this kind, and counts for the node.
    #[inline]
    pub(crate) fn is(&self, kind: StepKind, node: u32) -> bool {
        self.tag == SiteCounter::tag(kind, node)
    }

    /// Whether it counts for the node.
    #[inline]
    pub(crate) fn is_of(&self, node: u32) -> bool {
        (self.tag ^ node) & SiteCounter::NODE == 0
    }
}

/// How a call edge begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    /// A call.
    Call,
    /// A call of a skipped stub.
    Stub,
    /// A jump to a skipped stub.
    JumpToStub,
    /// The jump out of that stub; the site is the one of the call.
    Through,
    /// A jump that is a call.
    Jump,
}

/// What a call edge is known by: the kind, the site (of a jump out of a stub, too), where it leads, and the caller's context and
/// node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallEdgeKey {
    pub(crate) kind: CallKind,
    pub(crate) site: u32,
    pub(crate) jump: u32,
    pub(crate) target: u64,
    pub(crate) path: PathId,
    pub(crate) node: u32,
}

/// Levels of recursion that a call edge can lead to.
pub(crate) const LEVELS: usize = 2;

/// A call that was made before.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct CallEdge {
    pub(crate) kind: CallKind,
    /// The caller's.
    pub(crate) node: u32,
    pub(crate) path: PathId,
    /// The callee's.
    pub(crate) to_path: PathId,
    pub(crate) first_node: u32,
    pub(crate) recursions: u32,
    pub(crate) function: u32,
    /// The arc to each level, if it is known. (To a stub: the row of what is skipped.)
    pub(crate) arcs: [u32; LEVELS],
    pub(crate) returns_to: u64,
    /// The level that it led to the last time.
    pub(crate) last: u32,
}

impl CallEdge {
    /// The callee's level of recursion, counted from 0, if it is its `active`th call that is going on.
    #[inline]
    pub(crate) fn level(&self, active: u32) -> u32 {
        active.min(self.recursions).wrapping_sub(1)
    }

    /// The node of the callee and the arc to it on a level, if that is known.
    #[inline]
    pub(crate) fn leads_to(&self, level: u32) -> Option<(u32, u32)> {
        let arc = *self.arcs.get(level as usize)?;
        (arc != NONE).then_some((self.first_node + level, arc))
    }
}

/// Entries of the table in front of the map.
const NEAR: usize = 4096;

/// All call edges of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallEdges {
    all: Vec<CallEdge>,
    keys: Vec<CallEdgeKey>,
    by_key: FxHashMap<CallEdgeKey, u32>,
    /// Call edges that were looked for lately, by some bits of their keys; empty before there is any.
    near: Vec<u32>,
}

impl CallEdges {
    #[inline]
    fn bits(key: &CallEdgeKey) -> usize {
        let mixed =
            (u64::from(key.site) << 32 ^ key.target).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(key.node) << 52;
        (mixed >> 52) as usize % NEAR
    }

    /// The number of a call edge, if there is one.
    #[inline]
    pub(crate) fn find(&mut self, key: &CallEdgeKey) -> Option<u32> {
        let at = Self::bits(key);
        let &number = self.near.get(at)?;
        if self.keys.get(number as usize) == Some(key) {
            return Some(number);
        }
        self.find_far(key, at)
    }

    #[cold]
    fn find_far(&mut self, key: &CallEdgeKey, at: usize) -> Option<u32> {
        let number = *self.by_key.get(key)?;
        self.near[at] = number;
        Some(number)
    }

    /// The call edge `number` leads to this level now.
    #[cold]
    #[inline(never)]
    pub(crate) fn turn(&mut self, number: u32, level: u32) {
        if let Some(call_edge) = self.all.get_mut(number as usize) {
            call_edge.last = level;
        }
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&CallEdge> {
        self.all.get(number as usize)
    }

    /// Remembers that `call_edge` leads to its level `level` by `arc`.
    pub(crate) fn remember(&mut self, key: CallEdgeKey, call_edge: CallEdge, level: usize, arc: u32) {
        if level >= LEVELS {
            return;
        }
        if self.near.is_empty() {
            self.near.resize(NEAR, NONE);
        }
        let next = self.all.len() as u32;
        let number = *self.by_key.entry(key).or_insert(next);
        if number == next {
            self.all.push(call_edge);
            self.keys.push(key);
        }
        self.near[Self::bits(&key)] = number;
        self.all[number as usize].arcs[level] = arc;
    }
}

/// Where a site counter leads.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct SiteCounterWays {
    pub(crate) kind: StepKind,
    /// See [`Step::ends`].
    pub(crate) ends: u16,
    pub(crate) site: SiteId,
    /// By parity of the node: the call edge the last time.
    pub(crate) last: [u32; 2],
    /// If it is direct.
    pub(crate) target: u64,
    pub(crate) counter: u32,
}

/// All site counters of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteCounters {
    /// For even nodes and for odd ones.
    pub(crate) site_counters: [Vec<SiteCounter>; 2],
    pub(crate) ways: Vec<SiteCounterWays>,
    /// Basic blocks that have ended with executions that are no longer here.
    pub(crate) ended: u64,
}

impl SiteCounters {
    /// Learns of more steps.
    pub(crate) fn grow(&mut self, steps: &[Step]) {
        let Some(new) = steps.get(self.ways.len()..) else { return };
        for step in new {
            let site_counter = SiteCounter { tag: NONE, cost: step.cost, count: 0 };
            self.site_counters.iter_mut().for_each(|site_counters| site_counters.push(site_counter));
            let Step { kind, ends, site, target, counter, .. } = *step;
            self.ways.push(SiteCounterWays { kind, ends, site, last: [NONE; 2], target, counter });
        }
    }

    /// Makes site counter `number` count for `node`.
    ///
    /// # Panics
    /// If there are more nodes than a tag can tell apart.
    pub(crate) fn adopt(&mut self, number: usize, node: u32) {
        assert!(node < SiteCounter::NODE, "fewer than 2^28 nodes");
        let parity = (node & 1) as usize;
        let ways = &mut self.ways[number];
        ways.last[parity] = NONE;
        self.site_counters[parity][number].tag = SiteCounter::tag(ways.kind, node);
    }

    /// The node that executions in site counter `number` belong to, and how many those are; there are none then.
    pub(crate) fn empty(&mut self, parity: usize, number: usize) -> (u32, u64) {
        let site_counter = &mut self.site_counters[parity][number];
        let count = std::mem::take(&mut site_counter.count);
        self.ended += count * u64::from(self.ways[number].ends);
        (site_counter.tag & SiteCounter::NODE, count)
    }

    /// How many basic blocks have ended with the executions in site counters, those that have been emptied meanwhile too.
    pub(crate) fn ended(&self) -> u64 {
        let all = self.site_counters.iter().flat_map(|site_counters| site_counters.iter().zip(&self.ways));
        self.ended + all.map(|(site_counter, ways)| site_counter.count * u64::from(ways.ends)).sum::<u64>()
    }
}
