//! The call graph of a profile: which functions call each other in circles, and what functions cost with all they call.
//!
//! Inclusive cost as in `callgrind_annotate`: outside of cycles what callers saw, or what a function spent and its callees
//! did, whichever is more: the second is more where not all callers are known, as for handlers of signals and starts of
//! threads. A member of a cycle has what it spent itself and outside the cycle. So nothing is ever above the total.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use cg_format::count::TooLarge;

use crate::load::{Input, add};

/// The call graph; functions by their numbers.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Self cost of each function.
    pub(crate) own: Vec<Vec<i64>>,
    /// Inclusive cost of each function.
    pub(crate) inclusive: Vec<Vec<i64>>,
    /// What callers outside of its group saw of each function.
    pub(crate) seen: Vec<Vec<i64>>,
    /// The group of each function: functions that reach each other. Callees have lower numbers.
    pub(crate) group: Vec<usize>,
    /// Members of each group.
    pub(crate) members: Vec<Vec<usize>>,
    /// Calls by caller: indices of arcs.
    pub(crate) calls: Vec<Vec<usize>>,
}

impl Graph {
    /// Builds it.
    ///
    /// # Errors
    /// A sum is too large.
    pub(crate) fn new(input: &Input) -> Result<Self, TooLarge> {
        let count = input.names.functions().len();
        let width = input.events.len();
        let mut own = input.own()?;
        own.iter_mut().for_each(|costs| costs.resize(width, 0));
        let mut graph = DiGraph::<(), ()>::with_capacity(count, input.arcs.len());
        let nodes: Vec<NodeIndex> = (0..count).map(|_| graph.add_node(())).collect();
        let mut calls = vec![Vec::new(); count];
        for (i, arc) in input.arcs.iter().enumerate() {
            graph.add_edge(nodes[arc.caller.index()], nodes[arc.callee.index()], ());
            calls[arc.caller.index()].push(i);
        }
        let mut group = vec![0; count];
        let mut members = Vec::new();
        for (number, nodes) in kosaraju_scc(&graph).into_iter().enumerate() {
            let mut nodes: Vec<usize> = nodes.into_iter().map(NodeIndex::index).collect();
            nodes.sort_unstable();
            nodes.iter().for_each(|node| group[*node] = number);
            members.push(nodes);
        }
        let mut seen = vec![vec![0; width]; count];
        let mut below = own.clone();
        let mut cyclic = vec![false; count];
        let mut called = vec![false; count];
        for arc in &input.arcs {
            let (caller, callee) = (arc.caller.index(), arc.callee.index());
            if group[caller] == group[callee] {
                cyclic[callee] = true;
            } else {
                called[callee] = true;
                add(&mut seen[callee], &arc.costs)?;
                add(&mut below[caller], &arc.costs)?;
            }
        }
        let inclusive = (0..count)
            .map(|node| {
                let (below, seen) = (&below[node], &seen[node]);
                // What nobody called has not been seen to cost 0.
                let single = members[group[node]].len() == 1 && !cyclic[node] && called[node];
                let larger = below.iter().zip(seen).map(|(below, seen)| if single { *below.max(seen) } else { *below });
                larger.collect()
            })
            .collect();
        Ok(Self { own, inclusive, seen, group, members, calls })
    }
}
