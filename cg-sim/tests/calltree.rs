//! The back-dating tree against the paper's method 1: every line remembers all calls that were active when it was loaded.

use std::collections::HashMap;

use crate::twin::Random;
use cg_sim::calltree::{Costs, Node, Stack, Tree};

/// What a line remembers.
#[derive(Clone)]
struct Line {
    stack: u64,
    arcs: Vec<u32>,
}

#[derive(Clone, Default)]
struct Method1 {
    arcs: HashMap<u32, Costs>,
    total: Costs,
    /// Resident lines, by name.
    lines: HashMap<u64, Line>,
    /// Costs so far of each stack since it was new: what a caller gets that is found out later.
    stacks: HashMap<u64, Costs>,
}

fn add(to: &mut Costs, costs: &Costs) {
    to.iter_mut().zip(costs).for_each(|(a, b)| *a += b);
}

impl Method1 {
    fn evict(&mut self, name: u64, costs: &Costs) {
        let line = self.lines.remove(&name).unwrap();
        for arc in &line.arcs {
            add(self.arcs.entry(*arc).or_default(), costs);
        }
        add(&mut self.total, costs);
        add(self.stacks.entry(line.stack).or_default(), costs);
    }

    fn underflow(&mut self, stack: u64, arc: u32) {
        let so_far = self.stacks.get(&stack).copied().unwrap_or_default();
        add(self.arcs.entry(arc).or_default(), &so_far);
        self.lines.values_mut().filter(|l| l.stack == stack).for_each(|l| l.arcs.push(arc));
    }

    fn settle(&mut self) {
        // What was shown is not given to a caller that is found out later.
        self.stacks.clear();
    }

    fn zero(&mut self) {
        self.arcs.clear();
        self.total = Costs::default();
        self.stacks.clear();
    }
}

/// A process: some stacks (threads, signal handlers), and lines that come and go.
#[derive(Clone)]
struct World {
    tree: Tree,
    twin: Method1,
    /// Name, stack, and the arcs of its active calls.
    stacks: Vec<(u64, Stack, Vec<u32>)>,
    resident: Vec<(u64, Node)>,
    names: u64,
}

impl World {
    fn new(lines: u64) -> Self {
        Self { tree: Tree::new(lines), twin: Method1::default(), stacks: Vec::new(), resident: Vec::new(), names: 0 }
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    fn evict(&mut self, at: usize, random: &mut Random) {
        let (name, node) = self.resident.swap_remove(at);
        let costs = [random.below(1000), random.below(64), random.below(3), 0];
        self.twin.evict(name, &costs);
        self.tree.release(node, &costs);
    }

    fn compare(&mut self, arcs: u32) {
        self.tree.settle();
        for arc in 0..arcs {
            assert_eq!(self.tree.arc(arc), self.twin.arcs.get(&arc).copied().unwrap_or_default(), "arc {arc}");
        }
        assert_eq!(self.tree.root_costs(), self.twin.total);
        self.twin.settle();
    }

    /// A step of some thread.
    fn step(&mut self, random: &mut Random, arcs: u32, lines: usize) {
        if self.stacks.is_empty() || random.one_in(500) && self.stacks.len() < 4 {
            let name = self.name();
            self.stacks.push((name, Stack::new(), Vec::new()));
        }
        let which = random.below(self.stacks.len() as u64) as usize;
        match random.below(100) {
            0..30 => {
                let arc = random.below(u64::from(arcs)) as u32;
                let (_, stack, calls) = &mut self.stacks[which];
                if calls.len() < 40 {
                    stack.call(arc);
                    calls.push(arc);
                }
            }
            30..56 => {
                let (name, stack, calls) = &mut self.stacks[which];
                if calls.pop().is_some() {
                    stack.leave(&mut self.tree);
                } else {
                    // Instrumentation was switched on in the middle: the caller is new.
                    let arc = random.below(u64::from(arcs)) as u32;
                    stack.underflow(&mut self.tree, arc);
                    self.twin.underflow(*name, arc);
                }
            }
            56..58 => {
                // longjmp, an exception.
                let (_, stack, calls) = &mut self.stacks[which];
                for _ in 0..random.below(calls.len() as u64 + 1) {
                    calls.pop();
                    stack.leave(&mut self.tree);
                }
            }
            58 if random.one_in(20) => {
                // The thread or handler ends; its lines stay.
                let (_, mut stack, _) = self.stacks.swap_remove(which);
                stack.end(&mut self.tree);
            }
            59 if random.one_in(200) => {
                self.tree.zero();
                self.twin.zero();
            }
            60..80 => {
                let name = self.name();
                let (stack_name, stack, calls) = &mut self.stacks[which];
                let node = stack.node(&mut self.tree);
                self.tree.hold(node);
                self.twin.lines.insert(name, Line { stack: *stack_name, arcs: calls.clone() });
                self.resident.push((name, node));
                if self.resident.len() > lines {
                    let at = random.below(self.resident.len() as u64) as usize;
                    self.evict(at, random);
                }
            }
            80..82 if !self.resident.is_empty() => {
                let at = random.below(self.resident.len() as u64) as usize;
                self.evict(at, random);
            }
            _ => {}
        }
    }

    fn finish(mut self, random: &mut Random, arcs: u32) {
        while !self.resident.is_empty() {
            let at = self.resident.len() - 1;
            self.evict(at, random);
        }
        for (_, stack, _) in &mut self.stacks {
            stack.end(&mut self.tree);
        }
        self.compare(arcs);
        let s = self.tree.statistics();
        assert_eq!((s.nodes, s.created), (0, s.pruned), "nodes were left over: {s:?}");
        assert!(s.created > 0 && s.max > 0 && s.sum / s.releases.max(1) <= s.max);
    }
}

#[test]
fn inclusive_costs_are_those_of_method_1() {
    for seed in 0..90 {
        let mut random = Random::new(seed);
        let arcs = [3, 10, 200][(seed % 3) as usize];
        let lines = [4, 64, 700][(seed / 3 % 3) as usize];
        // Nodes are taken out all the time, sometimes, or never.
        let mut world = World::new([0, 40, u64::MAX / 2][(seed / 9 % 3) as usize]);
        for step in 0..20_000 {
            world.step(&mut random, arcs, lines);
            if step % 4001 == 4000 {
                world.compare(arcs);
            }
        }
        // A forked child goes on alone.
        let mut child = world.clone();
        for _ in 0..2000 {
            child.step(&mut random, arcs, lines);
            world.step(&mut random, arcs, lines);
        }
        child.finish(&mut random, arcs);
        world.finish(&mut random, arcs);
    }
}

/// Without a zeroing or a settling in between, nothing is lost, and a function has at least what its calls brought.
#[test]
fn arcs_out_of_the_root_sum_up_to_the_total() {
    let mut tree = Tree::new(1 << 20);
    let mut stack = Stack::new();
    let mut expected = 0;
    let mut held = Vec::new();
    for outer in 0..3 {
        stack.call(outer);
        for inner in 10..13 {
            stack.call(inner);
            let node = stack.node(&mut tree);
            tree.hold(node);
            held.push(node);
            stack.leave(&mut tree);
        }
        stack.leave(&mut tree);
    }
    assert_eq!(tree.statistics().nodes, 1 + 3 + 9);
    for (i, node) in held.into_iter().enumerate() {
        tree.release(node, &[1 << i, 0, 0, 0]);
        expected += 1 << i;
    }
    assert_eq!(tree.statistics().nodes, 1, "only the root is left, which the stack stands on");
    stack.end(&mut tree);
    assert_eq!(tree.root_costs()[0], expected);
    assert_eq!((0..3).map(|arc| tree.arc(arc)[0]).sum::<u64>(), expected);
    assert_eq!((10..13).map(|arc| tree.arc(arc)[0]).sum::<u64>(), expected);
    assert_eq!(tree.arc(11)[0], 0b010_010_010);
}

#[test]
fn calls_that_load_nothing_make_no_nodes() {
    let mut tree = Tree::new(1 << 20);
    let mut stack = Stack::new();
    for arc in 0..100_000 {
        stack.call(arc % 7);
        stack.call(arc % 3);
        stack.leave(&mut tree);
        stack.leave(&mut tree);
    }
    stack.leave(&mut tree);
    stack.underflow(&mut tree, 5);
    stack.end(&mut tree);
    assert_eq!(tree.statistics().created, 0);
}

/// Beside the nodes that are held or stood on there are just those where chains part, and as many as may come in between.
#[test]
fn the_tree_stays_as_small_as_the_cache() {
    const LINES: usize = 100;
    const DEPTH: usize = 100;
    let mut most = [0, 0];
    for (lines, most) in [LINES as u64, u64::MAX / 2].into_iter().zip(&mut most) {
        let mut random = Random::new(77);
        let (mut tree, mut stack) = (Tree::new(lines), Stack::new());
        let mut resident = Vec::new();
        for _ in 0..200_000 {
            match random.below(20) {
                0..9 if stack.depth() < DEPTH => stack.call(random.below(1000) as u32),
                9..18 => stack.leave(&mut tree),
                18 if random.one_in(100) => stack.leave_to(&mut tree, random.below(10) as usize),
                _ => {
                    let node = stack.node(&mut tree);
                    tree.hold(node);
                    resident.push(node);
                    if resident.len() > LINES {
                        let node = resident.swap_remove(random.below(LINES as u64) as usize);
                        tree.release(node, &[1, 0, 0, 0]);
                    }
                }
            }
        }
        *most = tree.statistics().max as usize;
    }
    // The first root and the last frames, which come before anybody looks.
    let bound = 2 * (LINES + 1) + (DEPTH + 1) + (2 * LINES + DEPTH + 2) / 4 + DEPTH;
    assert!(most[0] <= bound && bound < most[1], "{most:?}, {bound}");
}
