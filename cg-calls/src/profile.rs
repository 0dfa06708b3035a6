//! What the model found out, as plain data: the rows of one dump.
//!
//! Profiles of several threads can be merged into one; nodes are the same if they have the same functions and the same level
//! of recursion. Everything is in an order that depends only on the events, never on addresses of memory or on hashing.

use std::collections::HashMap;

use crate::code::{FunctionId, SiteId};
use crate::tree::CallTree;

/// The number of a node in [`Profile::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// A function in its context.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// The function itself, then its callers, nearest first, as many as are told apart.
    pub functions: Vec<FunctionId>,
    /// The level of recursion, 1 for the outermost; the last level that is told apart stands for all deeper ones.
    pub recursion: u32,
}

/// Calls from one site to one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arc {
    /// The caller.
    pub from: NodeIndex,
    /// The instruction that called. It need not lie in the caller: what is skipped calls on behalf of its caller.
    pub site: SiteId,
    /// The address that was called.
    pub target: u64,
    /// The callee.
    pub to: NodeIndex,
    /// How often. 0 for calls that were counted in an earlier dump, and went on.
    pub calls: u64,
    /// Inclusive costs.
    pub costs: Vec<u64>,
}

/// What costs are booked on, within a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterKey {
    /// A counter.
    Counter(u32),
    /// A call of what is skipped.
    Skipped(SiteId),
}

/// Jumps from one site to one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jump {
    /// The node that jumped.
    pub from: NodeIndex,
    /// The instruction that jumped.
    pub site: SiteId,
    /// The address that was jumped to.
    pub target: u64,
    /// The node that runs there.
    pub to: NodeIndex,
    /// Whether it depends on a condition.
    pub conditional: bool,
    /// How often it was taken.
    pub count: u64,
}

/// What skipped functions cost, booked on the site that called them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// The caller.
    pub node: NodeIndex,
    /// The instruction that called.
    pub site: SiteId,
    /// Costs, beside those of the instruction itself.
    pub costs: Vec<u64>,
}

/// What was told of one counter in one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter {
    /// The node that was running.
    pub node: NodeIndex,
    /// The counter, by the driver's numbering.
    pub counter: u32,
    /// Executions told by [`Calls::block`](crate::Calls::block).
    pub executions: u64,
    /// Costs told by [`Calls::cost`](crate::Calls::cost); empty if there were none.
    pub costs: Vec<u64>,
}

/// The rows of one dump, of one thread or several. Rows without any count are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Nodes that rows refer to.
    pub nodes: Vec<Node>,
    /// Call arcs. A row with calls may have no costs.
    pub arcs: Vec<Arc>,
    /// Jumps within and between functions, if they were asked for.
    pub jumps: Vec<Jump>,
    /// Costs of skipped functions.
    pub skipped: Vec<Skipped>,
    /// Costs and executions by context, if contexts were asked for.
    pub counters: Vec<Counter>,
    /// What the totals grew by while collecting, signal handlers included.
    pub collected: Vec<u64>,
    /// Whole chains of calls, if they were asked for.
    pub tree: CallTree,
}

/// `to += from`, where an empty one means zeros.
fn add(to: &mut Vec<u64>, from: &[u64]) {
    if to.len() < from.len() {
        to.resize(from.len(), 0);
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// Adds rows to rows; those with the same key become one.
fn merge_rows<R, K: Eq + std::hash::Hash>(
    into: &mut Vec<R>,
    from: Vec<R>,
    key: impl Fn(&R) -> K,
    add: impl Fn(&mut R, &R),
) {
    let mut index: HashMap<K, usize> = into.iter().enumerate().map(|(i, row)| (key(row), i)).collect();
    for row in from {
        match index.get(&key(&row)) {
            Some(i) => add(&mut into[*i], &row),
            None => {
                index.insert(key(&row), into.len());
                into.push(row);
            }
        }
    }
}

impl Profile {
    fn node(&mut self, node: Node) -> NodeIndex {
        let known = self.nodes.iter().position(|n| *n == node);
        let at = known.unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        });
        NodeIndex(u32::try_from(at).expect("fewer than 2^32 nodes"))
    }

    /// Adds costs that became known after their thread was gone, and counts them as collected.
    pub fn add_deferred(&mut self, node: Node, key: CounterKey, costs: Vec<u64>) {
        let node = self.node(node);
        add(&mut self.collected, &costs);
        match key {
            CounterKey::Counter(counter) => self.counters.push(Counter { node, counter, executions: 0, costs }),
            CounterKey::Skipped(site) => self.skipped.push(Skipped { node, site, costs }),
        }
    }

    /// Adds what a call cost besides, with all that it called, of the same kind.
    pub fn add_deferred_arc(&mut self, (from, site, target, to): (Node, SiteId, u64, Node), costs: Vec<u64>) {
        let (from, to) = (self.node(from), self.node(to));
        self.arcs.push(Arc { from, site, target, to, calls: 0, costs });
    }

    /// Adds the rows of `other`, whose costs must be the same.
    pub fn merge(&mut self, other: Profile) {
        let mut index: HashMap<Node, u32> =
            self.nodes.iter().cloned().enumerate().map(|(i, node)| (node, i as u32)).collect();
        let renumbered: Vec<NodeIndex> = other
            .nodes
            .into_iter()
            .map(|node| {
                let next = u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes");
                let number = *index.entry(node.clone()).or_insert(next);
                if number == next {
                    self.nodes.push(node);
                }
                NodeIndex(number)
            })
            .collect();
        let new = |old: NodeIndex| renumbered[old.0 as usize];
        let arcs = other.arcs.into_iter().map(|r| Arc { from: new(r.from), to: new(r.to), ..r }).collect();
        merge_rows(
            &mut self.arcs,
            arcs,
            |r| (r.from, r.site, r.target, r.to),
            |a, b| {
                a.calls += b.calls;
                add(&mut a.costs, &b.costs);
            },
        );
        let jumps = other.jumps.into_iter().map(|r| Jump { from: new(r.from), to: new(r.to), ..r }).collect();
        merge_rows(
            &mut self.jumps,
            jumps,
            |r| (r.from, r.site, r.target, r.to, r.conditional),
            |a, b| a.count += b.count,
        );
        let skipped = other.skipped.into_iter().map(|r| Skipped { node: new(r.node), ..r }).collect();
        merge_rows(&mut self.skipped, skipped, |r| (r.node, r.site), |a, b| add(&mut a.costs, &b.costs));
        let counters = other.counters.into_iter().map(|r| Counter { node: new(r.node), ..r }).collect();
        merge_rows(
            &mut self.counters,
            counters,
            |r| (r.node, r.counter),
            |a, b| {
                a.executions += b.executions;
                add(&mut a.costs, &b.costs);
            },
        );
        add(&mut self.collected, &other.collected);
        self.tree.merge(other.tree);
    }
}
