//! Whose the costs of lines are: the back-dating tree of a process, for what calls cost with all that they called, and the
//! instructions that loaded lines, in their contexts, for self costs.
//!
//! A line may be evicted long after the thread is gone that loaded it. So numbers of owners are the process's, and what is
//! left of a thread that ends is what its owners are called. Where data objects are asked for, what a place has loaded of each is
//! an owner by itself. Invariants: an owner exists as long as a line or a node of
//! the tree refers to it; a cost is in exactly one of: an owner (or the tree), a thread's book, a profile.

use std::collections::HashMap;

use cg_calls::{ArcId, Calls, CounterKey, Node, Profile, SiteId, Spot};
use cg_sim::calltree::{self as tree, Costs, Statistics, Tree};
use cg_sim::usage::{Cost, Level, Owner};

use super::chain::Chain;
use grind_objects::Uses;

/// Whom costs belong to.
#[derive(Clone, Debug)]
enum Whose<L, N> {
    /// The number is free.
    Nobody,
    /// A place in the book of a thread that has not ended.
    Living { thread: u64, place: L },
    /// What was a place in the book of a thread of this number.
    Gone { number: u64, name: Box<N> },
}

type ArcName = (Node, SiteId, u64, Node);

#[derive(Clone, Debug)]
struct SelfCosts {
    whose: Whose<Spot, (Node, CounterKey)>,
    costs: Costs,
    /// The data object that the lines were loaded for, or [`NO_OBJECT`]; and their bytes that were accessed, by level.
    object: u32,
    used: [u64; 2],
    /// Lines.
    held: u64,
}

/// What the owners of one thread are numbered.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// The thread, as the process's book knows it.
    thread: u64,
    /// By place, and object.
    spots: HashMap<(Spot, u32), u32>,
    /// By arc.
    arcs: Vec<u32>,
}

/// In place of an object: none are asked for.
pub(super) const NO_OBJECT: u32 = u32::MAX;

const NONE: u32 = u32::MAX;

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub(super) tree: Tree,
    selfs: Vec<SelfCosts>,
    free_selfs: Vec<u32>,
    arcs: Arcs,
    threads: u64,
    /// The column of AcCost1, which the others follow.
    first_event: usize,
}

/// The numbers of call arcs.
#[derive(Clone, Debug, Default)]
struct Arcs {
    all: Vec<Whose<ArcId, ArcName>>,
    free: Vec<u32>,
    /// How many there have been.
    used: u64,
}

impl Arcs {
    /// The number of an arc of a thread.
    #[inline]
    fn number(&mut self, numbers: &mut Numbers, arc: ArcId) -> u32 {
        match numbers.arcs.get(arc.0 as usize) {
            Some(&number) if number != NONE => number,
            _ => self.add(numbers, arc),
        }
    }

    #[cold]
    fn add(&mut self, numbers: &mut Numbers, arc: ArcId) -> u32 {
        let at = arc.0 as usize;
        if at >= numbers.arcs.len() {
            numbers.arcs.resize(at + 1, NONE);
        }
        let whose = Whose::Living { thread: numbers.thread, place: arc };
        numbers.arcs[at] = put(&mut self.all, &mut self.free, whose);
        self.used += 1;
        numbers.arcs[at]
    }
}

impl Book {
    /// An empty one, for a last level of so many lines.
    pub(super) fn new(first_event: usize, lines: u64) -> Self {
        Self {
            tree: Tree::new(lines),
            selfs: Vec::new(),
            free_selfs: Vec::new(),
            arcs: Arcs::default(),
            threads: 0,
            first_event,
        }
    }

    /// A new thread.
    pub(super) fn thread(&mut self) -> Numbers {
        self.threads += 1;
        Numbers { thread: self.threads, spots: HashMap::new(), arcs: Vec::new() }
    }

    /// The node of what runs in a thread.
    #[inline]
    pub(super) fn node(&mut self, numbers: &mut Numbers, calls: &mut Calls, chain: &mut Chain) -> tree::Node {
        chain.node(calls, &mut self.tree, |arc| self.arcs.number(numbers, arc))
    }

    /// The chain of a thread whose calls have ended.
    pub(super) fn follow(&mut self, numbers: &mut Numbers, calls: &mut Calls, chain: &mut Chain) {
        chain.follow(calls, &mut self.tree, |arc| self.arcs.number(numbers, arc));
    }

    /// The number of a place in a thread's book that loads lines for an object, for self costs.
    pub(super) fn spot(&mut self, numbers: &mut Numbers, spot: Spot, object: u32) -> u32 {
        *numbers.spots.entry((spot, object)).or_insert_with(|| {
            let whose = Whose::Living { thread: numbers.thread, place: spot };
            put(
                &mut self.selfs,
                &mut self.free_selfs,
                SelfCosts { whose, costs: Costs::default(), object, used: [0; 2], held: 0 },
            )
        })
    }

    /// A line is loaded by this owner.
    #[inline]
    pub(super) fn hold(&mut self, owner: Owner) {
        self.selfs[owner.site as usize].held += 1;
        self.tree.hold(tree::Node::from_number(owner.node));
    }

    /// A line that this owner loaded is evicted.
    #[inline]
    pub(super) fn release(&mut self, level: Level, owner: Owner, cost: Cost) {
        let costs = match level {
            Level::L1 => [cost.ac_cost, cost.sp_loss, 0, 0],
            Level::LastLevel => [0, 0, cost.ac_cost, cost.sp_loss],
        };
        let own = &mut self.selfs[owner.site as usize];
        own.held -= 1;
        own.costs.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        own.used[usize::from(level == Level::LastLevel)] += cost.used;
        self.tree.release(tree::Node::from_number(owner.node), &costs);
    }

    /// Gives all costs to those they belong to, for a part (or because a thread has ended, which is none): `threads` are those
    /// that have not ended; for others there are profiles, with the numbers of their threads. `tell` hears what of it is of which
    /// object, and who loaded that.
    pub(super) fn settle<'a>(
        &mut self,
        part: bool,
        threads: impl Iterator<Item = (&'a Numbers, &'a mut Calls)>,
        mut tell: impl FnMut(Node, u32, Uses),
    ) -> Vec<(u64, Profile)> {
        let mut threads: HashMap<u64, &mut Calls> = threads.map(|(n, calls)| (n.thread, calls)).collect();
        let mut gone: HashMap<u64, Profile> = HashMap::new();
        if part {
            self.tree.settle();
        } else {
            self.tree.settle_calls();
        }
        let first = self.first_event;
        let row = |costs: &Costs| {
            let mut row = vec![0; first + costs.len()];
            row[first..].copy_from_slice(costs);
            row
        };
        for (number, own) in self.selfs.iter_mut().enumerate() {
            let costs = std::mem::take(&mut own.costs);
            let used = std::mem::take(&mut own.used);
            let of_object = (own.object != NO_OBJECT && (costs, used) != Default::default()).then(|| {
                let [ac_cost1, sp_loss1, ac_cost2, sp_loss2] = costs;
                [ac_cost1, sp_loss1, ac_cost2, sp_loss2, used[0], used[1]]
            });
            match &own.whose {
                Whose::Living { thread, place } => {
                    if let Some(calls) = threads.get_mut(thread) {
                        spend(&costs, first, |event, n| calls.spend_deferred(*place, event, n));
                        of_object.into_iter().for_each(|of| tell(calls.describe_spot(*place).0, own.object, of));
                    }
                }
                Whose::Gone { number: thread, name } => {
                    of_object.into_iter().for_each(|of| tell(name.0.clone(), own.object, of));
                    if costs != Costs::default() {
                        let (node, key) = (**name).clone();
                        gone.entry(*thread).or_default().add_deferred(node, key, row(&costs));
                    }
                    if own.held == 0 {
                        own.whose = Whose::Nobody;
                        self.free_selfs.push(number as u32);
                    }
                }
                Whose::Nobody => {}
            }
        }
        let used = self.tree.arcs_of_nodes();
        for (number, whose) in self.arcs.all.iter_mut().enumerate() {
            let costs = self.tree.take_arc(number as u32);
            match whose {
                Whose::Living { thread, place } => {
                    if let Some(calls) = threads.get_mut(thread) {
                        spend(&costs, first, |event, n| calls.spend_deferred_on_arc(*place, event, n));
                    }
                }
                Whose::Gone { number: thread, name } => {
                    if costs != Costs::default() {
                        gone.entry(*thread).or_default().add_deferred_arc((**name).clone(), row(&costs));
                    }
                    if !used.contains(&(number as u32)) {
                        *whose = Whose::Nobody;
                        self.arcs.free.push(number as u32);
                    }
                }
                Whose::Nobody => {}
            }
        }
        let mut gone: Vec<(u64, Profile)> = gone.into_iter().collect();
        gone.sort_by_key(|(number, _)| *number);
        gone
    }

    /// A thread has ended, its chain has been left and all costs settled: what it still owns gets names.
    pub(super) fn thread_ended(&mut self, numbers: &Numbers, number: u64, calls: &Calls) {
        for (at, own) in self.selfs.iter_mut().enumerate() {
            let Whose::Living { thread, place } = own.whose else { continue };
            if thread != numbers.thread {
                continue;
            }
            own.whose = if own.held == 0 {
                self.free_selfs.push(at as u32);
                Whose::Nobody
            } else {
                Whose::Gone { number, name: Box::new(calls.describe_spot(place)) }
            };
        }
        let used = self.tree.arcs_of_nodes();
        for (at, whose) in self.arcs.all.iter_mut().enumerate() {
            let Whose::Living { thread, place } = *whose else { continue };
            if thread != numbers.thread {
                continue;
            }
            *whose = if used.contains(&(at as u32)) {
                Whose::Gone { number, name: Box::new(calls.describe_arc(place)) }
            } else {
                self.arcs.free.push(at as u32);
                Whose::Nobody
            };
        }
    }

    /// Forgets all costs; lines that are resident will still cost.
    pub(super) fn zero(&mut self) {
        self.tree.zero();
        self.selfs.iter_mut().for_each(|own| (own.costs, own.used) = Default::default());
    }

    /// What the tree is and was like, and how many call arcs it has seen.
    pub(super) fn statistics(&self) -> (Statistics, u64) {
        (self.tree.statistics(), self.arcs.used)
    }
}

/// Tells each cost that is not zero, with its column.
fn spend(costs: &Costs, first: usize, mut on: impl FnMut(usize, u64)) {
    costs.iter().enumerate().filter(|(_, n)| **n != 0).for_each(|(i, n)| on(first + i, *n));
}

/// Puts something in a list at a free place, or at its end.
fn put<T>(list: &mut Vec<T>, free: &mut Vec<u32>, new: T) -> u32 {
    match free.pop() {
        Some(at) => {
            list[at as usize] = new;
            at
        }
        None => {
            list.push(new);
            u32::try_from(list.len() - 1).expect("fewer than 2^32 owners")
        }
    }
}
