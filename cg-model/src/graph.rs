//! Cycles of a call graph: groups of functions of which each can reach each other.
//!
//! Inclusive cost means nothing within a cycle: a call from one member to another contains calls of the first again.
//! The cost of a cycle as a whole does, and so does what each member spends itself and outside the cycle.

/// For each node the number of its group; nodes are in one group if and only if each can reach the other.
///
/// Groups are numbered in the order in which they are completed, callees first. The search keeps its own stack, since
/// call graphs are deeper than ours is.
///
/// # Panics
/// When there are 2^32 nodes, whose names fit in no memory.
pub fn groups(nodes: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Vec<usize> {
    let targets = Targets::new(nodes, edges);
    let mut search = Search {
        order: vec![UNSEEN; nodes],
        low: vec![0; nodes],
        group: vec![UNSEEN; nodes],
        waiting: Vec::new(),
        seen: 0,
        groups: 0,
    };
    for node in 0..nodes {
        if search.order[node] == UNSEEN {
            search.from(node, &targets);
        }
    }
    search.group
}

const UNSEEN: usize = usize::MAX;

/// Where edges lead, by where they begin: there may be millions.
struct Targets {
    /// Where those of each node begin, and where the last ones end.
    from: Vec<usize>,
    to: Vec<u32>,
}

impl Targets {
    fn new(nodes: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut from = vec![0; nodes + 1];
        edges.clone().for_each(|(node, _)| from[node + 1] += 1);
        for node in 0..nodes {
            from[node + 1] += from[node];
        }
        let mut next = from.clone();
        let mut to = vec![0; from[nodes]];
        for (node, target) in edges {
            to[next[node]] = u32::try_from(target).expect("fewer than 2^32 nodes fit in memory");
            next[node] += 1;
        }
        Self { from, to }
    }

    fn get(&self, node: usize, at: usize) -> Option<usize> {
        self.to[self.from[node]..self.from[node + 1]].get(at).map(|target| *target as usize)
    }
}

/// Tarjan's algorithm.
struct Search {
    order: Vec<usize>,
    /// The first node, in order, that a node is known to reach.
    low: Vec<usize>,
    group: Vec<usize>,
    /// Nodes whose group is not complete.
    waiting: Vec<usize>,
    seen: usize,
    groups: usize,
}

impl Search {
    fn from(&mut self, start: usize, targets: &Targets) {
        let mut path = vec![(start, 0)];
        self.enter(start);
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if let Some(target) = targets.get(node, *next) {
                *next += 1;
                if self.order[target] == UNSEEN {
                    self.enter(target);
                    path.push((target, 0));
                } else if self.group[target] == UNSEEN {
                    self.low[node] = self.low[node].min(self.order[target]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent] = self.low[*parent].min(self.low[node]);
            }
            if self.low[node] == self.order[node] {
                while let Some(member) = self.waiting.pop() {
                    self.group[member] = self.groups;
                    if member == node {
                        break;
                    }
                }
                self.groups += 1;
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.order[node] = self.seen;
        self.low[node] = self.seen;
        self.seen += 1;
        self.waiting.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow, obvious twin: everything that each node reaches.
    fn naive(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; nodes]; nodes];
        for (node, row) in reach.iter_mut().enumerate() {
            row[node] = true;
        }
        for _ in 0..nodes {
            for (from, to) in edges {
                for row in &mut reach {
                    row[*to] |= row[*from];
                }
            }
        }
        reach
    }

    #[test]
    fn groups_are_those_of_mutual_reach() {
        let mut state: u64 = 7;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..300 {
            let nodes = 1 + random(12);
            let edges: Vec<_> = (0..round % 30).map(|_| (random(nodes), random(nodes))).collect();
            let groups = groups(nodes, edges.iter().copied());
            let reach = naive(nodes, &edges);
            for a in 0..nodes {
                for b in 0..nodes {
                    assert_eq!(groups[a] == groups[b], reach[a][b] && reach[b][a], "{edges:?}: {a} and {b}");
                }
            }
            for (from, to) in edges {
                assert!(groups[to] <= groups[from], "callees come first");
            }
        }
    }

    #[test]
    fn a_long_chain_needs_no_stack_of_ours() {
        let count = 1_000_000;
        let groups = groups(count, (1..count).map(|node| (node - 1, node)));
        assert_eq!(groups[0], count - 1);
    }
}
