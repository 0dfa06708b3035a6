//! A tree with fewer nodes: those that nobody holds, that no stack stands on and that have just one child are taken out, and the
//! way to that child is a *run* of arcs. What is released below is given to all arcs of a run, so no sum changes; what a
//! node had is passed on when it is taken out.
//!
//! That is done when there are as many nodes as lines, and again not before a sixteenth as many have come since (of lines or of
//! nodes, whatever there are more of: each is looked at); a quarter, if hardly any could be taken out. So of what nobody holds
//! or stands on only those nodes stay where chains part, of which there are fewer than chains.
//!
//! Invariants: children of a node have different first arcs; nodes that a stack stands on are reached over single arcs.

use super::{LISTS, NONE, STANDING, Tree};

/// In an arc's number: it is that of a run.
const RUN: u32 = 1 << 31;

/// Sequences of two arcs and more.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    all: Vec<Vec<u32>>,
    free: Vec<u32>,
}

/// Whether an arc's number is that of a run.
#[inline]
fn is_run(arc: u32) -> bool {
    arc & RUN != 0 && arc != NONE
}

impl Runs {
    /// The arcs that a number stands for; none in a root.
    pub(super) fn arcs<'a>(&'a self, arc: &'a u32) -> &'a [u32] {
        match *arc {
            NONE => &[],
            run if is_run(run) => &self.all[(run & !RUN) as usize],
            _ => std::slice::from_ref(arc),
        }
    }

    /// The same, of a number that nobody has any more.
    fn take(&mut self, arc: u32) -> Vec<u32> {
        match arc {
            NONE => Vec::new(),
            run if is_run(run) => {
                self.free.push(run & !RUN);
                std::mem::take(&mut self.all[(run & !RUN) as usize])
            }
            _ => vec![arc],
        }
    }

    /// A number for these arcs.
    fn put(&mut self, arcs: Vec<u32>) -> u32 {
        match arcs[..] {
            [] => NONE,
            [arc] => arc,
            _ => {
                let at = self.free.pop().unwrap_or_else(|| {
                    self.all.push(Vec::new());
                    self.all.len() as u32 - 1
                });
                self.all[at as usize] = arcs;
                at | RUN
            }
        }
    }

    /// The first arc of a number that is not a root's.
    #[inline]
    pub(super) fn first(&self, arc: u32) -> u32 {
        if arc & RUN == 0 { arc } else { self.arcs(&arc).first().copied().unwrap_or(NONE) }
    }

    /// A number that nobody has any more.
    #[inline]
    pub(super) fn forget(&mut self, arc: u32) {
        if is_run(arc) {
            self.take(arc);
        }
    }
}

impl Tree {
    /// Takes nodes out if there are too many.
    #[inline]
    pub(super) fn tidy(&mut self) {
        if self.statistics.nodes >= self.most {
            let before = self.statistics.nodes;
            self.take_out();
            let nodes = self.statistics.nodes;
            let share = if before - nodes < before / 16 { 4 } else { 16 };
            self.most = self.lines.max(nodes + self.lines.max(nodes) / share);
        }
    }

    /// Whether a node only leads on.
    fn leads_on(&self, node: u32) -> bool {
        let entry = &self.entries[node as usize];
        entry.held == 0 && entry.children % LISTS == 1
    }

    #[cold]
    #[inline(never)]
    fn take_out(&mut self) {
        let mut free = self.unused();
        let mut parts = Vec::new();
        for end in 0..self.entries.len() as u32 {
            if free[end as usize] || self.leads_on(end) {
                continue;
            }
            let (mut above, arc) = (self.entries[end as usize].parent, self.entries[end as usize].arc);
            let mut highest = end;
            parts.clear();
            parts.push(arc);
            while above != NONE && self.leads_on(above) {
                self.pass_on(above);
                if highest != end {
                    self.free(highest);
                    free[highest as usize] = true;
                }
                highest = above;
                let entry = &self.entries[above as usize];
                parts.push(entry.arc);
                above = entry.parent;
            }
            if highest == end {
                continue;
            }
            let arcs: Vec<u32> = parts.drain(..).rev().flat_map(|part| self.runs.take(part)).collect();
            if above != NONE {
                self.disown(above, arcs[0], highest);
            }
            self.free(highest);
            free[highest as usize] = true;
            let first = arcs.first().copied();
            let arc = self.runs.put(arcs);
            let entry = &mut self.entries[end as usize];
            (entry.parent, entry.arc) = (above, arc);
            if let Some(first) = first.filter(|_| above != NONE) {
                self.adopt(above, first, end);
            }
        }
    }

    /// A node without children is not in use any more.
    fn free(&mut self, node: u32) {
        self.free.push(node);
        self.statistics.nodes -= 1;
        self.statistics.pruned += 1;
    }

    /// The node one arc below `parent` on the way to `child`, which is reached over a run.
    #[cold]
    #[inline(never)]
    pub(super) fn part_run(&mut self, parent: u32, child: u32) -> u32 {
        let mut rest = self.runs.take(self.entries[child as usize].arc);
        let first = rest.remove(0);
        self.disown(parent, first, child);
        let middle = self.make(parent, first);
        self.adopt(parent, first, middle);
        let next = rest[0];
        let arc = self.runs.put(rest);
        let entry = &mut self.entries[child as usize];
        (entry.parent, entry.arc) = (middle, arc);
        self.adopt(middle, next, child);
        debug_assert_eq!(self.entries[middle as usize].held, STANDING);
        middle
    }
}
