//! Which ways between blocks need no counter, because the counts of other blocks tell how often they are taken. Where a
//! conditional branch leads forward and its fall-through is counted by itself, the branch taken is what remains; where a
//! block can only go on in one way, that way is taken as often as the block is executed. Invariants: an uncounted way leads
//! to a block of the same batch that is emitted later, past all that is counted there, so counts follow in one pass over
//! the blocks, and every loop has a counter; whoever enters a block from elsewhere (links, IBL targets, signals) is counted.

use grind_fragments::distances::{self, Distances};
use grind_fragments::fragment_table::{DerivedEdge, FragmentId, NO_COUNTER, Unless};
use grind_fragments::hotness::Bias;
use grind_isa::decode::{Class, Insn, OSZAP, STATUS};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_types::addr::{CacheAddr, GuestAddr};
use iced_x86::OpKind;

use super::{Emitter, Fixup};

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

/// A block of the batch at hand, as the goal of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) block: FragmentId,
    /// Past what is counted there.
    pub(super) free: bool,
    /// Past its way in, because what is deferred to it has not been counted, or has been taken off.
    pub(super) past_way_in: bool,
}

/// What has been settled about a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    pub(super) entry: Entry,
    /// Where its branch, or its way to the next block, leads.
    pub(super) goal: Option<Goal>,
    /// Its conditional branch leads on when it would not, and falls through when it would.
    pub(super) inverted: bool,
    /// Where it is taken is counted there, so that the next block need not be counted.
    pub(super) exit: Option<u32>,
}

/// The way out of a loop, from one of its copies: what counts it stands behind the hot code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    /// Offset of the branch's 32-bit field.
    pub(super) pos: usize,
    pub(super) counter: u32,
    /// Where it leads.
    pub(super) target: GuestAddr,
    pub(super) to: Option<Goal>,
    /// The block that is not executed then.
    pub(super) skipped: FragmentId,
}

/// A short loop, emitted several times in a row, so that no counter has to wait for its last bump: the processor takes
/// longer to store and load again than for a few instructions. And where the loop stores vectors, a store elsewhere among few of
/// those costs nine cycles, among many hardly any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    /// Place of its first block in the order of emission.
    at: usize,
    /// Blocks.
    len: usize,
    copies: usize,
}

impl Loop {
    /// The place in the loop's first copy, and which copy it is in.
    fn place(&self, k: usize) -> Option<(usize, usize)> {
        let n = k.checked_sub(self.at)?;
        (n < self.len * self.copies).then_some((n % self.len, n / self.len))
    }
}

/// The most instructions of a loop that is emitted so often in a row, and of one that is emitted less often.
const SHORT: [usize; 2] = [14, 32];
const COPIES: [usize; 2] = [4, 2];

/// The same where vectors are stored. More of the others would cost more than they gain: most are run a few times.
const COPIES_WITH_VECTORS: [usize; 2] = [16, 4];

/// Whether an instruction stores a vector.
fn stores_vector(insn: &Insn) -> bool {
    let ins = &insn.ins;
    ins.op_count() > 1
        && ins.op0_kind() == OpKind::Memory
        && (1..ins.op_count()).any(|i| ins.op_kind(i) == OpKind::Register && ins.op_register(i).is_vector_register())
}

impl Emitter<'_> {
    /// Repeats short loops.
    pub(super) fn unroll(&mut self) {
        if !self.with_derived_edges {
            return;
        }
        let batch = self.batch;
        let last = |i: usize| batch.insns_of(&batch.blocks[i]).last();
        // Most batches have none.
        let heads = &mut self.work.heads;
        heads.clear();
        heads.resize(batch.blocks.len(), false);
        for i in 0..batch.blocks.len() {
            if let Some(l) = last(i).filter(|l| l.class == Class::Jcc && l.target() <= l.pc())
                && let Some(head) = batch.find(l.target())
            {
                heads[head] = true;
            }
        }
        if !heads.contains(&true) {
            return;
        }
        let heads = &self.work.heads;
        let order = std::mem::take(&mut self.work.order);
        let mut out = std::mem::take(&mut self.work.unrolled);
        out.clear();
        let mut k = 0;
        while k < order.len() {
            let head = &batch.blocks[order[k]];
            let (mut insns, mut end) = (0, None);
            if heads[order[k]] && batch.insns[head.first].live & OSZAP == 0 {
                for n in 0..4 {
                    let Some(&i) = order.get(k + n) else { break };
                    let b = &batch.blocks[i];
                    let Some(l) = last(i) else { break };
                    insns += b.n;
                    if b.return_site || insns > SHORT[1] {
                        break;
                    }
                    if l.class == Class::Jcc && l.target() == head.pc {
                        end = Some(n);
                        break;
                    }
                    let next = order.get(k + n + 1).map(|&j| batch.blocks[j].pc);
                    // A loop within is what counts.
                    let within =
                        matches!(l.class, Class::Jcc | Class::Loop) && (head.pc..=l.pc()).contains(&l.target());
                    let goes_next = match l.class {
                        Class::Jmp => next == Some(l.target()),
                        Class::Jcc => !within && next == Some(l.next()),
                        c => !c.ends_block() && next == Some(l.next()),
                    };
                    if !goes_next {
                        break;
                    }
                }
            }
            let Some(n) = end else {
                out.push(order[k]);
                k += 1;
                continue;
            };
            let stores = order[k..=k + n].iter().any(|&i| batch.insns_of(&batch.blocks[i]).iter().any(stores_vector));
            let copies = if stores { COPIES_WITH_VECTORS } else { COPIES }[usize::from(insns > SHORT[0])];
            self.work.loops.push(Loop { at: out.len(), len: n + 1, copies });
            for _ in 0..copies {
                out.extend_from_slice(&order[k..=k + n]);
            }
            k += n + 1;
        }
        (self.work.order, self.work.unrolled) = (out, order);
    }

    /// Takes note of where the conditional branches of the batch lead.
    fn note_distances(&mut self) {
        for b in &self.batch.blocks {
            let last = &self.batch.insns[b.first + b.n - 1];
            if last.class == Class::Jcc {
                let module = (self.module_of)(last.pc());
                self.trans.distances.entry(module).or_default().note(last.next(), last.target());
            }
        }
    }

    /// Whether a conditional branch is probably taken so seldom that it is cheaper to count that than where it falls through.
    fn seldom(&self, last: &Insn) -> bool {
        if let Some(bias) = self.trans.hotness.bias(last) {
            return bias == Bias::Next;
        }
        let of_module = || self.trans.distances.get(&(self.module_of)(last.pc())).is_some_and(Distances::laid_out);
        distances::is_far(last.next(), last.target()) || last.target() > last.next() && of_module()
    }

    /// Whether a conditional branch is known to go to its target, which should stand behind it then.
    pub(super) fn turned(&self, last: &Insn) -> bool {
        self.with_derived_edges && last.class == Class::Jcc && self.trans.hotness.bias(last) == Some(Bias::Target)
    }

    /// Settles it for all blocks, in the order of their emission.
    pub(super) fn plan_derived_edges(&mut self, order: &[usize]) {
        self.work.plan.resize(order.len(), Plan::default());
        if !self.with_derived_edges {
            return;
        }
        self.note_distances();
        let mut place = std::mem::take(&mut self.work.place);
        place.clear();
        place.resize(self.batch.blocks.len(), usize::MAX);
        for (k, &i) in order.iter().enumerate() {
            place[i] = place[i].min(k);
        }
        let first = self.trans.next_block().0;
        let id = |k: usize| FragmentId(first + k as u32);
        let blocks = &self.batch.blocks;
        // Whoever runs into it would run into its IBL target. One behind a call is not in the way.
        let lands = |i: usize| blocks[i].return_site && !self.pairs;
        // Where branches lead back to. Those are counted, and the shortest way in is for them.
        let mut heads = std::mem::take(&mut self.work.heads);
        heads.clear();
        heads.resize(order.len(), false);
        for (k, &i) in order.iter().enumerate() {
            let b = &blocks[i];
            let last = &self.batch.insns[b.first + b.n - 1];
            if matches!(last.class, Class::Jcc | Class::Jmp | Class::Call | Class::Loop)
                && let Some(j) = self.batch.find(last.target()).filter(|&j| place[j] <= k)
            {
                heads[place[j]] = true;
            }
        }
        let mut derived_edges = std::mem::take(&mut self.work.derived_edges);
        for (k, &i) in order.iter().enumerate() {
            let b = &blocks[i];
            let last = &self.batch.insns[b.first + b.n - 1];
            let here = self.work.loops.iter().find_map(|l| l.place(k).map(|(n, copy)| (l, n, copy)));
            let repeated = here.is_some_and(|(l, n, copy)| n + 1 == l.len && copy + 1 < l.copies);
            let behind = order.get(k + 1).filter(|&&j| !lands(j) && blocks[j].pc == last.target());
            let turned = here.is_none() && behind.is_some() && self.turned(last);
            let inverted = repeated || turned;
            // Which of its copies a branch leads to: the one that it runs into, else the one in the same copy of a loop.
            let find = |target: GuestAddr| {
                let j = self.batch.find(target)?;
                if order.get(k + 1) == Some(&j) && !lands(j) {
                    return Some(k + 1);
                }
                let inner =
                    here.and_then(|(l, n, _)| (n + 1..l.len).find(|&m| order[l.at + m] == j).map(|m| k - n + m));
                Some(inner.unwrap_or(place[j]))
            };
            // Later, and where counting in front costs no more than elsewhere.
            let fine = |t: usize| t > k && self.batch.insns[blocks[order[t]].first].live & OSZAP == 0;
            let (target, next) = if inverted { (last.next(), last.target()) } else { (last.target(), last.next()) };
            self.work.plan[k].inverted = inverted;
            match last.class {
                Class::Jcc
                    if find(next) == Some(k + 1)
                        && fine(k + 1)
                        && (repeated || (turned || self.seldom(last)) && !heads[k + 1] && !lands(order[k + 1])) =>
                {
                    // Loops are repeated more often than they are left.
                    let counter = self.trans.new_counter();
                    self.work.plan[k].exit = Some(counter);
                    self.work.plan[k].goal =
                        find(target).map(|t| Goal { block: id(t), free: false, past_way_in: false });
                    self.work.plan[k + 1].entry = Entry::Free;
                    derived_edges.push(DerivedEdge {
                        to: id(k + 1),
                        from: id(k),
                        unless: Some(Unless::Counter(counter)),
                    });
                }
                Class::Jcc => {
                    let Some(t) = find(target) else { continue };
                    let n = k + 1;
                    let free = fine(t) && find(next) == Some(n) && fine(n) && !heads[n];
                    self.work.plan[k].goal = Some(Goal { block: id(t), free, past_way_in: false });
                    if free {
                        self.work.plan[n].entry = Entry::Edge;
                        if self.work.plan[t].entry == Entry::Anywhere {
                            self.work.plan[t].entry = Entry::Front;
                        }
                        derived_edges.push(DerivedEdge { to: id(t), from: id(k), unless: Some(Unless::Edge(id(n))) });
                    }
                }
                c if c == Class::Jmp || c == Class::Call && !self.pairs || !c.ends_block() => {
                    let Some(t) = find(if c.ends_block() { target } else { next }) else { continue };
                    let runs_into = t == k + 1 && c != Class::Call && !lands(order[t]);
                    let free = fine(t) && !(runs_into && heads[t]);
                    self.work.plan[k].goal = Some(Goal { block: id(t), free, past_way_in: false });
                    if free {
                        if runs_into {
                            self.work.plan[t].entry = Entry::Free;
                        } else if self.work.plan[t].entry == Entry::Anywhere {
                            self.work.plan[t].entry = Entry::Front;
                        }
                        derived_edges.push(DerivedEdge { to: id(t), from: id(k), unless: None });
                    }
                }
                _ => {}
            }
        }
        derived_edges.sort_unstable();
        self.trans.derived_edges.append(&mut derived_edges);
        (self.work.place, self.work.heads, self.work.derived_edges) = (place, heads, derived_edges);
    }

    /// The ways in from elsewhere to blocks that are run into uncounted. `first` is the first block of the batch.
    pub(super) fn entries(&mut self, first: FragmentId) {
        for k in 0..self.work.plan.len() {
            if !matches!(self.work.plan[k].entry, Entry::Edge | Entry::Free) {
                continue;
            }
            let id = FragmentId(first.0 + k as u32);
            let entry = self.out.code.here();
            let b = *self.trans.block(id);
            debug_assert!(b.live_in & OSZAP == 0 && (b.edge != NO_COUNTER) == (self.work.plan[k].entry == Entry::Edge));
            self.out.code.bump(layout::counter_offset(b.counter), b.live_in);
            self.out.code.align_field(1);
            self.trans.add_way_in(CacheAddr(self.out.code.here()), id);
            let pos = self.out.code.jmp();
            let to = Some(Goal { block: id, free: true, past_way_in: false });
            self.out.fixups.push(Fixup { pos, target: b.pc, to });
            self.trans.set_entry(id, CacheAddr(entry));
        }
    }

    /// The ways out of copies of loops, and those that are seldom taken.
    pub(super) fn place_exits(&mut self) {
        for i in 0..self.work.exits.len() {
            let e = self.work.exits[i];
            let begin = self.out.code.here();
            self.out.code.patch_rel32(e.pos, begin);
            let live = self.batch.find(e.target).map_or(STATUS, |t| self.batch.insns[self.batch.blocks[t].first].live);
            let counter = layout::counter_offset(e.counter);
            self.trans.add_way_out(CacheAddr(begin), e.skipped);
            if live & OSZAP == 0 {
                self.out.code.bump(counter, live);
            } else {
                self.out.code.spill(SlotWord::Rax, Gpr::RAX);
                self.trans.add_way_out(CacheAddr(self.out.code.here()), e.skipped);
                self.out.code.load_gs(Gpr::RAX, counter);
                self.trans.add_way_out(CacheAddr(self.out.code.here()), e.skipped);
                self.out.code.lea_disp(Gpr::RAX, Gpr::RAX, 1);
                self.trans.add_way_out(CacheAddr(self.out.code.here()), e.skipped);
                self.out.code.store_gs(counter, Gpr::RAX);
                self.out.code.reload(Gpr::RAX, SlotWord::Rax);
            }
            let pos = self.out.code.jmp();
            self.out.fixups.push(Fixup { pos, target: e.target, to: e.to });
        }
    }
}
