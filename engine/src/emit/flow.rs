//! Which ways between blocks need no counter, because the counts of other blocks tell how often they are taken. Where a
//! conditional branch leads forward and its fall-through is counted by itself, the branch taken is what remains; where a
//! block can only go on in one way, that way is taken as often as the block is executed. Invariants: an uncounted way leads
//! to a block of the same batch that is emitted later, past all that is counted there, so counts follow in one pass over
//! the blocks, and every loop has a counter; whoever enters a block from elsewhere (links, landings, signals) is counted.

use super::{Emitter, Fixup};
use crate::arena;
use crate::decode::{Class, OSZAP};
use crate::transtab::{BlockId, Flow, NO_CELL};

/// Where a block's execution is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing leads past the counter: it is bumped wherever that is cheapest.
    #[default]
    Anywhere,
    /// In front.
    Front,
    /// What stands in front counts how often the branch before it is not taken; its own counter is elsewhere.
    Edge,
    /// Elsewhere: the block before it runs into it uncounted.
    Free,
}

/// What has been settled about a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    pub(super) entry: Entry,
    /// Its branch, or its way to the next block, is uncounted.
    pub(super) free: bool,
}

impl Emitter<'_> {
    /// Settles it for all blocks, in the order of their emission.
    pub(super) fn plan_flows(&mut self, order: &[usize]) {
        self.plan = vec![Plan::default(); order.len()];
        if !self.with_flows {
            return;
        }
        let mut place = vec![0; order.len()];
        for (k, &i) in order.iter().enumerate() {
            place[i] = k;
        }
        let first = self.trans.next_block().0;
        let id = |k: usize| BlockId(first + k as u32);
        let blocks = &self.batch.blocks;
        let mut flows = Vec::new();
        for (k, &i) in order.iter().enumerate() {
            let b = &blocks[i];
            let last = &self.batch.insns[b.first + b.n - 1];
            // A later block where counting by itself costs no more than elsewhere.
            let later = |target: u64| {
                let j = self.batch.find(target)?;
                let flags_dead = self.batch.insns[blocks[j].first].live & OSZAP == 0;
                (place[j] > k && flags_dead).then_some(place[j])
            };
            match last.class {
                Class::Jcc => {
                    let next = later(last.next()).filter(|&n| n == k + 1 && !blocks[order[n]].return_site);
                    let (Some(n), Some(t)) = (next, later(last.target())) else { continue };
                    self.plan[k].free = true;
                    self.plan[n].entry = Entry::Edge;
                    if self.plan[t].entry == Entry::Anywhere {
                        self.plan[t].entry = Entry::Front;
                    }
                    flows.push(Flow { to: id(t), from: id(k), unless: Some(id(n)) });
                }
                c if matches!(c, Class::Jmp | Class::Call) || !c.ends_block() => {
                    let target = if c.ends_block() { last.target() } else { last.next() };
                    let Some(t) = later(target) else { continue };
                    self.plan[k].free = true;
                    let runs_into = t == k + 1 && c != Class::Call && !blocks[order[t]].return_site;
                    if runs_into {
                        self.plan[t].entry = Entry::Free;
                    } else if self.plan[t].entry == Entry::Anywhere {
                        self.plan[t].entry = Entry::Front;
                    }
                    flows.push(Flow { to: id(t), from: id(k), unless: None });
                }
                _ => {}
            }
        }
        flows.sort_unstable();
        self.trans.flows.append(&mut flows);
    }

    /// The ways in from elsewhere to blocks that are run into uncounted. `first` is the first block of the batch.
    pub(super) fn entries(&mut self, first: BlockId) {
        for k in 0..self.plan.len() {
            if !matches!(self.plan[k].entry, Entry::Edge | Entry::Free) {
                continue;
            }
            let id = BlockId(first.0 + k as u32);
            let entry = self.out.code.here();
            let b = *self.trans.block(id);
            debug_assert!(b.live_in & OSZAP == 0 && (b.edge != NO_CELL) == (self.plan[k].entry == Entry::Edge));
            self.out.code.bump(arena::cell_offset(b.cell), b.live_in);
            self.out.code.align_field(1);
            self.trans.add_way_in(self.out.code.here(), id);
            let pos = self.out.code.jmp();
            self.out.fixups.push(Fixup { pos, target: b.pc, free: true });
            self.trans.set_entry(id, entry);
        }
    }
}
