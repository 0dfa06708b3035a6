//! Inclusive costs that become known long after the calls that caused them: the back-dating tree.
//!
//! What a cached line cost is known when it is evicted; then it belongs to the calls that were active when it was loaded.
//! (Weidendorfer and Breitbart, "Inclusive Cost Attribution for Cache Use Profiling", ICCS 2016.) A [`Node`] stands for such
//! a chain of calls; the chain is the way from the node to its root. Whoever loads a line holds the node of the running
//! function, and releases it with a cost when the line goes. A node that nobody holds, that has no children and that no
//! stack stands on is pruned: its costs go to its call arc and to its parent. So each active call of a chain is charged
//! once for each line, as if every line remembered the list of calls that were active when it was loaded; the twin in the
//! tests does just that. An arc that is on a chain twice (recursion) is charged twice.
//!
//! As many nodes as lines hold, in whatever caches, and those that stacks stand on are needed. Beside them there may be others
//! that only lead to them: not many more than there are lines in the largest cache, or than are held, whatever is more (`runs`).
//!
//! Most calls load no line. So a [`Stack`] only notes a call, and a node is made for it when it is asked for.
//!
//! Invariants: a node's parent exists; a cost that was released is in exactly one of: a node, the arcs and roots above it;
//! pruning changes no sum that [`Tree::settle`] would show.

mod runs;

use rustc_hash::FxHashMap;

use runs::Runs;

/// Costs of one kind of line each: AcCost1, SpLoss1, AcCost2, SpLoss2.
pub type Costs = [u64; 4];

#[inline]
fn add(to: &mut Costs, costs: &Costs) {
    to.iter_mut().zip(costs).for_each(|(a, b)| *a += b);
}

/// A chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node(u32);

impl Node {
    /// As a number, for an [`crate::usage::Owner`].
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The node with this number, which came from [`Node::number`].
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}

const NONE: u32 = u32::MAX;

/// In place of the node before: it is in no list.
const UNLISTED: u32 = u32::MAX - 1;

/// Children that a node lists. Most have one or two, and come and go with every line; a table costs more than that.
const LISTED: u32 = 8;

/// In [`Entry::held`]. A cache has fewer lines.
const STANDING: u32 = 1 << 31;

/// In [`Entry::children`]. There are no more nodes than lines and frames.
const LISTS: u32 = 1 << 28;

const _: () = assert!(size_of::<Entry>() == 64 && LISTED < u32::MAX / LISTS);

/// One of the processor's cache lines: where there are many nodes, most are not in its caches.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Entry {
    /// [`NONE`]: a root.
    parent: u32,
    /// The call that leads from the parent here, or a run of them; [`NONE`] in a root, but for those that a run leads to.
    arc: u32,
    /// Lines that were loaded here and are still resident; and [`STANDING`], if a stack has this node as one of its frames.
    held: u32,
    /// Children, below [`LISTS`]; and that times how many of them are listed.
    children: u32,
    /// The child that was asked for last.
    last_child: u32,
    /// The list of children, up to [`LISTED`]; the others are in the tree's table.
    first_child: u32,
    /// In the parent's list: the next one and the one before. A node that is not in it has [`UNLISTED`] for the latter.
    next: u32,
    previous: u32,
    /// What was released here, or came from pruned children.
    costs: Costs,
}

/// What the tree was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Nodes now.
    pub nodes: u64,
    /// The most there were at a time.
    pub max: u64,
    /// Sum of the numbers of nodes at each release, for an average.
    pub sum: u64,
    /// Releases.
    pub releases: u64,
    /// Nodes ever made.
    pub created: u64,
    /// Nodes whose costs went to their parents.
    pub pruned: u64,
}

/// The chains of all threads and signal handlers of a process, and the inclusive costs of its call arcs.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Lines that may hold a node; and so many nodes that it is worth while to see which could go.
    lines: u64,
    most: u64,
    runs: Runs,
    entries: Vec<Entry>,
    /// Indices of entries that are not in use.
    free: Vec<u32>,
    /// From parent and arc to the child, for those that are not listed.
    children: FxHashMap<u64, u32>,
    /// By number of the arc.
    arcs: Vec<Costs>,
    /// Costs of chains whose roots are gone, and of roots when settled.
    roots: Costs,
    statistics: Statistics,
}

fn key(parent: u32, arc: u32) -> u64 {
    u64::from(parent) << 32 | u64::from(arc)
}

impl Tree {
    /// One without chains, for caches with about so many lines.
    #[must_use]
    pub fn new(lines: u64) -> Self {
        Self {
            lines,
            most: lines,
            runs: Runs::default(),
            entries: Vec::new(),
            free: Vec::new(),
            children: FxHashMap::default(),
            arcs: Vec::new(),
            roots: Costs::default(),
            statistics: Statistics::default(),
        }
    }

    /// A line is loaded by the function at the end of this chain.
    #[inline]
    pub fn hold(&mut self, node: Node) {
        self.entries[node.0 as usize].held += 1;
    }

    /// A line that was loaded there is gone, and cost this much.
    #[inline]
    pub fn release(&mut self, node: Node, costs: &Costs) {
        let entry = &mut self.entries[node.0 as usize];
        entry.held -= 1;
        add(&mut entry.costs, costs);
        self.statistics.sum += self.statistics.nodes;
        self.statistics.releases += 1;
        if entry.held == 0 && entry.children == 0 {
            self.prune(node.0);
        }
    }

    /// Moves all costs to where they belong, as if every node were pruned; the nodes stay. To be called before
    /// [`Tree::arc`] or [`Tree::root_costs`] are looked at, at a dump or at the end.
    pub fn settle(&mut self) {
        self.settle_nodes(true);
    }

    /// The same, but roots keep what they have, for a caller that may be [found out](Stack::underflow) later: not before a dump.
    pub fn settle_calls(&mut self) {
        self.settle_nodes(false);
    }

    fn settle_nodes(&mut self, roots: bool) {
        // Children before parents: by depth, the deepest first.
        let mut depths: Vec<(u32, u32)> = Vec::new();
        let mut depth_of: Vec<u32> = vec![NONE; self.entries.len()];
        let free = self.unused();
        for start in (0..self.entries.len() as u32).filter(|at| !free[*at as usize]) {
            let mut way = vec![start];
            let mut at = start;
            let base = loop {
                if depth_of[at as usize] != NONE {
                    way.pop();
                    break depth_of[at as usize] + 1;
                }
                at = self.entries[at as usize].parent;
                if at == NONE {
                    break 0;
                }
                way.push(at);
            };
            for (above, node) in way.iter().rev().enumerate() {
                depth_of[*node as usize] = base + above as u32;
                depths.push((base + above as u32, *node));
            }
        }
        depths.sort_unstable_by(|a, b| b.cmp(a));
        for (_, node) in depths {
            if roots || self.entries[node as usize].arc != NONE {
                self.pass_on(node);
            }
        }
    }

    /// Inclusive costs of a call arc, as far as they are settled or pruned.
    #[must_use]
    pub fn arc(&self, arc: u32) -> Costs {
        self.arcs.get(arc as usize).copied().unwrap_or_default()
    }

    /// The same; from now on the arc has none.
    pub fn take_arc(&mut self, arc: u32) -> Costs {
        self.arcs.get_mut(arc as usize).map(std::mem::take).unwrap_or_default()
    }

    /// The arcs of all nodes.
    #[must_use]
    pub fn arcs_of_nodes(&self) -> std::collections::HashSet<u32> {
        let used = self.entries.iter().zip(self.unused()).filter(|(_, free)| !free);
        used.flat_map(|(e, _)| self.runs.arcs(&e.arc)).copied().collect()
    }

    /// Which entries are not in use.
    fn unused(&self) -> Vec<bool> {
        let mut unused = vec![false; self.entries.len()];
        self.free.iter().for_each(|at| unused[*at as usize] = true);
        unused
    }

    /// Costs of all chains together, as far as they are settled or their roots are gone.
    #[must_use]
    pub fn root_costs(&self) -> Costs {
        self.roots
    }

    /// Forgets all costs; lines that are resident will still cost.
    pub fn zero(&mut self) {
        self.entries.iter_mut().for_each(|e| e.costs = Costs::default());
        self.arcs.clear();
        self.roots = Costs::default();
    }

    /// What the tree is and was like.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    #[cold]
    #[inline(never)]
    fn make(&mut self, parent: u32, arc: u32) -> u32 {
        let entry = Entry {
            parent,
            arc,
            held: STANDING,
            children: 0,
            last_child: NONE,
            first_child: NONE,
            next: NONE,
            previous: UNLISTED,
            costs: Costs::default(),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        let statistics = &mut self.statistics;
        statistics.created += 1;
        statistics.nodes += 1;
        statistics.max = statistics.max.max(statistics.nodes);
        at
    }

    /// The child of `parent` over `arc`, with a stack standing on it.
    #[inline]
    fn child(&mut self, parent: u32, arc: u32) -> u32 {
        let last = self.entries[parent as usize].last_child;
        if let Some(entry) = self.entries.get_mut(last as usize)
            && entry.arc == arc
        {
            // A stack never stands on a node that another one stands on: every stack has a root of its own.
            entry.held |= STANDING;
            return last;
        }
        let child = match self.find(parent, arc) {
            Some(child) if self.entries[child as usize].arc != arc => self.part_run(parent, child),
            Some(child) => {
                self.entries[child as usize].held |= STANDING;
                child
            }
            None => {
                let child = self.make(parent, arc);
                self.adopt(parent, arc, child);
                child
            }
        };
        self.entries[parent as usize].last_child = child;
        child
    }

    /// The child of `parent` over `arc`, or over a run that begins with it, if there is one.
    fn find(&self, parent: u32, arc: u32) -> Option<u32> {
        let entry = &self.entries[parent as usize];
        let mut at = entry.first_child;
        while at != NONE {
            let child = &self.entries[at as usize];
            if self.runs.first(child.arc) == arc {
                return Some(at);
            }
            at = child.next;
        }
        if entry.children % LISTS == entry.children / LISTS {
            None
        } else {
            self.children.get(&key(parent, arc)).copied()
        }
    }

    /// `child` becomes one of `parent`, over `arc`, or a run that begins with it.
    fn adopt(&mut self, parent: u32, arc: u32, child: u32) {
        let above = &mut self.entries[parent as usize];
        above.children += 1;
        if above.children / LISTS == LISTED {
            self.children.insert(key(parent, arc), child);
            self.entries[child as usize].previous = UNLISTED;
            return;
        }
        above.children += LISTS;
        let next = std::mem::replace(&mut above.first_child, child);
        let entry = &mut self.entries[child as usize];
        (entry.next, entry.previous) = (next, NONE);
        if next != NONE {
            self.entries[next as usize].previous = child;
        }
    }

    /// `child` is no child of `parent` any more, to which `arc` led, or a run that begins with it.
    fn disown(&mut self, parent: u32, arc: u32, child: u32) {
        let Entry { next, previous, .. } = self.entries[child as usize];
        if previous == UNLISTED {
            self.children.remove(&key(parent, arc));
        } else if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if previous < UNLISTED {
            self.entries[previous as usize].next = next;
        }
        let above = &mut self.entries[parent as usize];
        above.children -= 1;
        if previous != UNLISTED {
            above.children -= LISTS;
        }
        if previous == NONE {
            above.first_child = next;
        }
        if above.last_child == child {
            above.last_child = NONE;
        }
    }

    /// No stack stands on `node` any more.
    #[inline]
    fn leave(&mut self, node: u32) {
        let entry = &mut self.entries[node as usize];
        entry.held &= !STANDING;
        if entry.held == 0 && entry.children == 0 {
            self.prune(node);
        }
    }

    /// Gives the costs of a node to its arc and its parent.
    fn pass_on(&mut self, node: u32) {
        let entry = &mut self.entries[node as usize];
        let costs = std::mem::take(&mut entry.costs);
        let (parent, arc) = (entry.parent, entry.arc);
        let above = if parent == NONE { &mut self.roots } else { &mut self.entries[parent as usize].costs };
        if costs == Costs::default() {
            return;
        }
        add(above, &costs);
        for &arc in self.runs.arcs(&arc) {
            let arc = arc as usize;
            if self.arcs.len() <= arc {
                self.arcs.resize(arc + 1, Costs::default());
            }
            add(&mut self.arcs[arc], &costs);
        }
    }

    #[inline(never)]
    fn prune(&mut self, node: u32) {
        let mut at = node;
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.held > 0 || entry.children > 0 {
                return;
            }
            let (parent, arc) = (entry.parent, entry.arc);
            self.pass_on(at);
            if parent != NONE {
                self.disown(parent, self.runs.first(arc), at);
            }
            self.runs.forget(arc);
            self.free.push(at);
            self.statistics.nodes -= 1;
            self.statistics.pruned += 1;
            at = parent;
        }
    }
}

/// The active calls of a thread or of a signal handler.
///
/// A stack has to be [ended](Stack::end) before it is dropped, or its chain stays in the tree.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The first one has no call: it stands for the function in which the thread or handler was first seen.
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// [`NONE`]: the frame is none of a call, and shares the node of the one below.
    arc: u32,
    /// [`NONE`] until it is asked for; the frames below one that has a node have one, too.
    node: u32,
}

impl Default for Stack {
    fn default() -> Self {
        Self::new()
    }
}

impl Stack {
    /// One without calls.
    #[must_use]
    pub fn new() -> Self {
        Self { frames: vec![Frame { arc: NONE, node: NONE }] }
    }

    /// How many frames there are.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// A function is called over `arc`, a number below 2^31 that the caller gave this pair of functions.
    #[inline]
    pub fn call(&mut self, arc: u32) {
        self.frames.push(Frame { arc, node: NONE });
    }

    /// Something is called that belongs to its caller. It is left like a call.
    #[inline]
    pub fn pass(&mut self) {
        self.frames.push(Frame { arc: NONE, node: NONE });
    }

    /// The last frame is left, because its call returns or in another way. Does nothing where there is none.
    #[inline]
    pub fn leave(&mut self, tree: &mut Tree) {
        if self.frames.len() > 1
            && let Some(frame) = self.frames.pop()
            && frame.node != NONE
            && frame.arc != NONE
        {
            tree.leave(frame.node);
        }
    }

    /// Leaves the last frames until there are no more than `depth`.
    #[inline]
    pub fn leave_to(&mut self, tree: &mut Tree, depth: usize) {
        while self.depth() > depth {
            self.leave(tree);
        }
    }

    /// Without an active call the function returns nevertheless: its caller was never seen to call it. `arc` is the call
    /// that must have been; it gets the costs of everything that happened since the stack was new.
    ///
    /// # Panics
    /// When a call is active.
    pub fn underflow(&mut self, tree: &mut Tree, arc: u32) {
        assert_eq!(self.depth(), 0, "a call is active, whose return this is");
        let below = self.frames[0].node;
        if below == NONE {
            return;
        }
        let caller = tree.make(NONE, NONE);
        let entry = &mut tree.entries[below as usize];
        (entry.parent, entry.arc) = (caller, arc);
        tree.adopt(caller, arc, below);
        self.frames[0].node = caller;
        tree.leave(below);
    }

    /// The chain of the active calls.
    #[inline]
    pub fn node(&mut self, tree: &mut Tree) -> Node {
        let top = self.frames[self.frames.len() - 1].node;
        if top != NONE { Node(top) } else { self.make(tree) }
    }

    fn make(&mut self, tree: &mut Tree) -> Node {
        tree.tidy();
        let known = self.frames.iter().rposition(|f| f.node != NONE);
        let (mut node, first) = match known {
            Some(at) => (self.frames[at].node, at + 1),
            None => {
                self.frames[0].node = tree.make(NONE, NONE);
                (self.frames[0].node, 1)
            }
        };
        for frame in &mut self.frames[first..] {
            if frame.arc != NONE {
                node = tree.child(node, frame.arc);
            }
            frame.node = node;
        }
        Node(node)
    }

    /// All calls are left: the thread or handler ends, or instrumentation does.
    pub fn end(&mut self, tree: &mut Tree) {
        self.leave_to(tree, 0);
        let root = std::mem::replace(&mut self.frames[0].node, NONE);
        if root != NONE {
            tree.leave(root);
        }
    }
}
