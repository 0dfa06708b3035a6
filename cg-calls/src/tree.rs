//! The call tree: what each whole chain of calls costs by itself. A node is a function as it was reached by one chain of callers,
//! up to a thread's or a signal handler's first function.
//!
//! A chain holds a function no oftener than so many levels of its recursion are told apart; a call that is deeper goes back to the
//! innermost of those nodes, so the tree is finite whatever recurses. It has at most so many chains as it is told: what is called
//! by others that come then belongs to nodes of their functions alone, below a node for all of them.
//!
//! Invariants: the self costs of all nodes add up to what was collected, whatever the program does to its stack, since each
//! stretch between two events is booked once, on the node that ran; a node's number is greater than its parent's; numbers are never
//! forgotten, as the stack holds them.

use rustc_hash::FxHashMap;

use crate::code::FunctionId;
use crate::meter::Meter;
use crate::table::NONE;

/// The node that is above all.
const ROOT: u32 = 0;
/// The node above the functions of chains that there was no room for.
const BEYOND: u32 = 1;

/// A chain of calls, as it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The number of the chain of its caller, which comes before it; none if there is no caller.
    pub parent: Option<u32>,
    /// The function that ran; none for the one above functions whose chains there was no room for.
    pub function: Option<FunctionId>,
    /// How often it was called there, while costs were collected.
    pub calls: u64,
}

/// Chains of calls with their self costs. Chains that have cost nothing, with all that they called, are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree {
    /// By number: callers before what they call.
    pub chains: Vec<Chain>,
    /// Side by side, as many as there are costs for each.
    costs: Vec<u64>,
}

impl CallTree {
    /// The self costs of a chain.
    #[must_use]
    pub fn costs(&self, chain: usize) -> &[u64] {
        let width = self.costs.len() / self.chains.len().max(1);
        &self.costs[chain * width..][..width]
    }

    /// Adds the chains of `other`, whose costs must be the same.
    pub fn merge(&mut self, other: CallTree) {
        if self.chains.is_empty() {
            *self = other;
            return;
        }
        let width = self.costs.len() / self.chains.len();
        let key = |chain: &Chain| (chain.parent, chain.function);
        let mut known: FxHashMap<_, u32> = self.chains.iter().zip(0..).map(|(chain, n)| (key(chain), n)).collect();
        let mut numbers: Vec<u32> = Vec::with_capacity(other.chains.len());
        for (n, chain) in other.chains.iter().enumerate() {
            let parent = chain.parent.map(|parent| numbers[parent as usize]);
            let next = u32::try_from(self.chains.len()).expect("fewer than 2^32 chains");
            let number = *known.entry((parent, chain.function)).or_insert(next);
            if number == next {
                self.chains.push(Chain { parent, calls: 0, ..*chain });
                self.costs.resize(self.costs.len() + width, 0);
            }
            self.chains[number as usize].calls += chain.calls;
            let sums = &mut self.costs[number as usize * width..][..width];
            sums.iter_mut().zip(other.costs(n)).for_each(|(sum, cost)| *sum = sum.wrapping_add(*cost));
            numbers.push(number);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    function: u32,
    calls: u64,
    /// The function that it called last, and the node that is.
    last: (u32, u32),
}

/// What a call edge, by a number from elsewhere, means here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// The function that is called; `NONE`: one that is skipped.
    pub(crate) function: u32,
    /// Whether costs are collected there.
    pub(crate) counts: bool,
}

/// A call or a return that is told elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// A call of the call edge with that number.
    Call(u32),
    /// A return from so many calls.
    Return(u32),
}

/// A thread's place in its tree, and the tree.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    width: usize,
    /// The most chains.
    limit: usize,
    nodes: Vec<Node>,
    costs: Vec<u64>,
    children: FxHashMap<(u32, u32), u32>,
    at: u32,
    /// The nodes of the calls that are going on, the outermost first: to where each returns.
    callers: Vec<u32>,
    /// The reading up to which costs have been booked.
    booked: Vec<u64>,
    /// By call edge.
    told: Vec<Option<Told>>,
}

impl Walk {
    pub(crate) fn new(width: usize, limit: usize) -> Walk {
        let node = |parent| Node { parent, function: NONE, calls: 0, last: (NONE, NONE) };
        Walk {
            width,
            limit,
            nodes: vec![node(NONE), node(ROOT)],
            costs: vec![0; 2 * width],
            children: FxHashMap::default(),
            at: ROOT,
            callers: Vec::new(),
            booked: vec![0; width],
            told: Vec::new(),
        }
    }

    /// How many calls, and interrupted states, are going on.
    pub(crate) fn depth(&self) -> usize {
        self.callers.len()
    }

    /// Books what was spent since the last event on what has run.
    #[inline]
    pub(crate) fn book(&mut self, meter: &Meter, now: &[u64]) {
        let at = self.at as usize * self.width;
        let costs = &mut self.costs[at..at + self.width];
        for (i, (cost, booked)) in costs.iter_mut().zip(&mut self.booked).enumerate() {
            let reading = meter.read(now, i);
            *cost = cost.wrapping_add(reading.wrapping_sub(*booked));
            *booked = reading;
        }
    }

    /// Another meter is read from now on; what was spent until now has been booked.
    pub(crate) fn changed_meter(&mut self, meter: &Meter, now: &[u64]) {
        meter.read_into(now, &mut self.booked);
    }

    /// So much of the first cost has been booked elsewhere before.
    pub(crate) fn begin_ahead(&mut self, n: i64) {
        self.booked[0] = self.booked[0].wrapping_add_signed(n);
    }

    /// A function is called, of which so many `levels` are told apart; `NONE`: it is skipped, so its caller goes on.
    #[inline]
    pub(crate) fn enter(&mut self, function: u32, counts: bool, levels: impl FnOnce() -> u32) {
        self.callers.push(self.at);
        if function != NONE {
            self.at = self.child(self.at, function, levels);
            self.nodes[self.at as usize].calls += u64::from(counts);
        }
    }

    /// The call that was made last is none; it is still to be left. `counts`: as when it was made.
    pub(crate) fn uncall(&mut self, counts: bool) {
        let calls = &mut self.nodes[self.at as usize].calls;
        *calls = calls.saturating_sub(u64::from(counts));
    }

    /// A call returns.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.at = self.callers.pop().unwrap_or(ROOT);
    }

    /// What a call edge means, if that is known.
    #[inline]
    pub(crate) fn told(&self, call_edge: u32) -> Option<Told> {
        *self.told.get(call_edge as usize)?
    }

    /// It is known from now on.
    pub(crate) fn tell(&mut self, call_edge: u32, told: Told) {
        let at = call_edge as usize;
        if at >= self.told.len() {
            self.told.resize(at + 1, None);
        }
        self.told[at] = Some(told);
    }

    /// Calls and returns, each with the total of the one cost that there is, which is `ahead` of the reading: up to one that is not
    /// known. Returns how many that are, and the last total.
    pub(crate) fn many(
        &mut self,
        ahead: u64,
        all: impl Iterator<Item = (Each, u64)>,
        levels: impl Fn(u32) -> u32,
    ) -> (usize, Option<u64>) {
        debug_assert_eq!(self.width, 1, "one cost alone");
        let (mut done, mut last) = (0, None);
        for (each, total) in all {
            let told = match each {
                Each::Return(_) => None,
                Each::Call(call_edge) => match self.told(call_edge) {
                    None => break,
                    told => told,
                },
            };
            let reading = total.wrapping_sub(ahead);
            let (cost, booked) = (&mut self.costs[self.at as usize], &mut self.booked[0]);
            *cost = cost.wrapping_add(reading.wrapping_sub(*booked));
            *booked = reading;
            match (each, told) {
                (Each::Call(_), Some(told)) => self.enter(told.function, told.counts, || levels(told.function)),
                (Each::Return(calls), _) => (0..calls).for_each(|_| self.leave()),
                (Each::Call(_), None) => {}
            }
            (done, last) = (done + 1, Some(total));
        }
        (done, last)
    }

    /// A function runs that nobody is known to have called.
    pub(crate) fn begin(&mut self, function: u32, levels: impl FnOnce() -> u32) {
        self.at = self.child(ROOT, function, levels);
    }

    /// Nothing runs any more, and nothing is going on.
    pub(crate) fn end(&mut self, meter: &Meter, now: &[u64]) {
        self.book(meter, now);
        self.callers.clear();
        self.at = ROOT;
    }

    #[inline]
    fn child(&mut self, parent: u32, function: u32, levels: impl FnOnce() -> u32) -> u32 {
        let (last, child) = self.nodes[parent as usize].last;
        if last == function {
            return child;
        }
        let child = match self.children.get(&(parent, function)) {
            Some(child) => *child,
            None => self.learn(parent, function, levels()),
        };
        self.nodes[parent as usize].last = (function, child);
        child
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, parent: u32, function: u32, levels: u32) -> u32 {
        let mut innermost = NONE;
        let (mut above, mut found) = (parent, 0);
        while above != NONE {
            let node = self.nodes[above as usize];
            if node.function == function {
                innermost = if innermost == NONE { above } else { innermost };
                found += 1;
            }
            above = node.parent;
        }
        if found >= levels {
            if self.children.len() < self.limit {
                self.children.insert((parent, function), innermost);
            }
            return innermost;
        }
        if self.children.len() < self.limit {
            return self.add(parent, function);
        }
        match self.children.get(&(BEYOND, function)) {
            Some(child) => *child,
            None => self.add(BEYOND, function),
        }
    }

    fn add(&mut self, parent: u32, function: u32) -> u32 {
        let number = u32::try_from(self.nodes.len()).ok().filter(|n| *n != NONE).expect("fewer than 2^32 chains");
        self.nodes.push(Node { parent, function, calls: 0, last: (NONE, NONE) });
        self.costs.resize(self.costs.len() + self.width, 0);
        self.children.insert((parent, function), number);
        number
    }

    /// What has been booked; it is zero from here on.
    pub(crate) fn take(&mut self) -> CallTree {
        let width = self.width;
        // What was spent while nobody was known to run is nobody's, as what is beyond the limit.
        let (nobody, rest) = self.costs.split_at_mut(width);
        rest.iter_mut().zip(nobody).for_each(|(cost, more)| *cost = cost.wrapping_add(*more));
        let mut kept: Vec<bool> = self.costs.chunks_exact(width).map(|costs| costs.iter().any(|n| *n != 0)).collect();
        for n in (1..self.nodes.len()).rev() {
            if kept[n] {
                kept[self.nodes[n].parent as usize] = true;
            }
        }
        let mut tree = CallTree::default();
        let mut numbers = vec![NONE; self.nodes.len()];
        for (n, node) in self.nodes.iter().enumerate().skip(1).filter(|(n, _)| kept[*n]) {
            numbers[n] = tree.chains.len() as u32;
            let parent = Some(numbers[node.parent as usize]).filter(|parent| *parent != NONE);
            let function = Some(node.function).filter(|function| *function != NONE).map(FunctionId);
            tree.chains.push(Chain { parent, function, calls: node.calls });
            tree.costs.extend_from_slice(&self.costs[n * width..][..width]);
        }
        self.costs.fill(0);
        // A call that has just begun is the next part's, if it has cost nothing.
        self.nodes.iter_mut().zip(kept).filter(|(_, kept)| *kept).for_each(|(node, _)| node.calls = 0);
        tree
    }

    /// Sets everything to zero.
    pub(crate) fn zero(&mut self) {
        self.costs.fill(0);
        self.nodes.iter_mut().for_each(|node| node.calls = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(walk: &mut Walk, meter: &Meter, now: &mut u64, n: u64) {
        *now += n;
        walk.book(meter, &[*now]);
    }

    fn shown(tree: &CallTree) -> Vec<(Option<u32>, u32, u64, u64)> {
        let chains = tree.chains.iter().enumerate();
        chains.map(|(n, c)| (c.parent, c.function.map_or(99, |f| f.0), c.calls, tree.costs(n)[0])).collect()
    }

    #[test]
    fn recursion_that_is_not_told_apart_goes_back_to_its_innermost_level() {
        let (meter, mut now) = (Meter::new(&[0], true, false), 0);
        let mut walk = Walk::new(1, 100);
        walk.begin(1, || 2);
        for function in [2, 1, 2, 1, 2] {
            spend(&mut walk, &meter, &mut now, 1);
            walk.enter(function, true, || 2);
        }
        spend(&mut walk, &meter, &mut now, 10);
        for _ in 0..5 {
            walk.leave();
            spend(&mut walk, &meter, &mut now, 100);
        }
        let tree = walk.take();
        let expected = [(None, 1, 0, 101), (Some(0), 2, 1, 101), (Some(1), 1, 2, 202), (Some(2), 2, 2, 111)];
        assert_eq!(shown(&tree), expected);
        assert_eq!((walk.depth(), walk.take().chains.len()), (0, 0));
    }

    #[test]
    fn chains_beyond_the_limit_are_functions_alone() {
        let (meter, mut now) = (Meter::new(&[0], true, false), 0);
        let mut walk = Walk::new(1, 2);
        walk.begin(1, || 1);
        for function in [2, 3, 4, 3, NONE, 3] {
            walk.enter(function, true, || 1);
            spend(&mut walk, &meter, &mut now, 1);
        }
        (0..6).for_each(|_| walk.leave());
        spend(&mut walk, &meter, &mut now, 5);
        let expected = [(None, 99, 0, 0), (None, 1, 0, 5), (Some(1), 2, 1, 1), (Some(0), 3, 3, 4), (Some(0), 4, 1, 1)];
        assert_eq!(shown(&walk.take()), expected);
    }

    #[test]
    fn trees_of_threads_are_added_up_chain_by_chain() {
        let chain = |parent, function, calls| Chain { parent, function: Some(FunctionId(function)), calls };
        let mut one = CallTree { chains: vec![chain(None, 1, 0), chain(Some(0), 2, 3)], costs: vec![1, 2, 3, 4] };
        let two = CallTree {
            chains: vec![chain(None, 2, 1), chain(None, 1, 0), chain(Some(1), 3, 1), chain(Some(1), 2, 1)],
            costs: vec![5, 5, 6, 6, 7, 7, 8, 8],
        };
        one.merge(two);
        let expected = [chain(None, 1, 0), chain(Some(0), 2, 4), chain(None, 2, 1), chain(Some(0), 3, 1)];
        assert_eq!(one.chains, expected);
        assert_eq!(one.costs, [7, 8, 11, 12, 5, 5, 7, 7]);
        let mut none = CallTree::default();
        none.merge(one.clone());
        assert_eq!(none, one);
    }
}
