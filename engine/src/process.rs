//! Guest processes and threads as the hub sees them, and the sum of what each process has executed. Counts come from the
//! cells of its threads' slots; what the cells cannot know (blocks that were left in the middle) is kept here as
//! corrections.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use crate::addr::GuestAddr;
use crate::api::{InstructionCount, StaticEvents};
use crate::contexts::{Books, ThreadContexts};
use crate::follow::Frame;
use crate::hash::Map;
use crate::slots::{SlotId, SlotPool};
use crate::space::Space;
use crate::tracee::Memory;
use crate::transtab::{Block, BlockId, NO_CELL, TransTab, Unless};

/// What a thread is doing, as far as its next stop is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has been announced by its creator, or has stopped for the first time, but not both.
    New,
    /// It runs translated code.
    Cache,
    /// Its registers are the guest's, rip included: a jump to where no code is, about to fault by itself.
    Guest,
    /// A signal was handed over; the next stop is at the first instruction of its handler.
    Handler,
    /// It executes rt_sigreturn; the next stop is where the frame says, with the trap flag set or not.
    SigReturn { traps: bool },
    /// It executes one instruction in its original place.
    /// It is the last of the first `executed` instructions of `block`, and has been counted.
    InPlace { pc: u64, block: BlockId, executed: u16, mask: u64 },
    /// It executes a system call after which grind has work to do.
    Call { nr: i64, args: [u64; 6], next: u64 },
    /// It makes a system call by `int 0x80`, from a place in the code cache behind which it stops.
    OtherCall,
    /// It is about to execute, or in, execve.
    Exec { follow: bool },
}

/// A thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) pid: i32,
    pub(crate) state: State,
    /// The slot that gs points to, or that has the header of the one that it points to.
    pub(crate) slot: SlotId,
    /// The slot for the other state of instrumentation, once it was needed.
    pub(crate) other: Option<SlotId>,
    /// Change over to the other slot at the next stop.
    pub(crate) switch: bool,
    /// Its end has been seen, its counts are in the sum.
    pub(crate) folded: bool,
    pub(crate) contexts: ThreadContexts,
    /// What emitted code knew of its calls the last time, if it follows them.
    pub(crate) frames: RefCell<Vec<Frame>>,
    /// Where its own trap flag has stopped it last.
    pub(crate) trapped_at: Option<u64>,
}

/// Instructions that were executed without their block being counted, or the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Corrections {
    /// To be added to a block's count.
    whole: Map<u32, i64>,
    /// To be added to the count of the first `k` instructions of a block.
    head: Map<u64, i64>,
    /// To be added to a cell of its own.
    cells: Map<u32, i64>,
}

impl Corrections {
    /// A block was left after `executed` instructions; `bumped` tells whether its execution has been counted. Nothing flows
    /// on from it.
    pub(crate) fn left(&mut self, id: BlockId, block: &Block, executed: u16, bumped: bool) {
        let mut bumped = bumped;
        if !bumped && block.edge != NO_CELL {
            // The branch in front of it has been counted as not taken, so far only by being counted at all.
            let c = self.cells.entry(block.edge).or_default();
            *c = c.wrapping_add(1);
            bumped = true;
        }
        if bumped {
            *self.whole.entry(id.0).or_default() -= 1;
        }
        if executed > 0 {
            *self.head.entry(u64::from(id.0) << 16 | u64::from(executed)).or_default() += 1;
        }
    }

    /// Of `executed` instructions of a block that have been counted, the last one has not been executed after all.
    pub(crate) fn not_the_last(&mut self, block: BlockId, executed: u16) {
        let key = |k: u16| u64::from(block.0) << 16 | u64::from(k);
        *self.head.entry(key(executed)).or_default() -= 1;
        if executed > 1 {
            *self.head.entry(key(executed - 1)).or_default() += 1;
        }
    }

    /// Those of another book, too.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.whole.iter().for_each(|(&k, &n)| *self.whole.entry(k).or_default() += n);
        other.head.iter().for_each(|(&k, &n)| *self.head.entry(k).or_default() += n);
        for (&k, &n) in &other.cells {
            let c = self.cells.entry(k).or_default();
            *c = c.wrapping_add(n);
        }
    }

    /// `n` too many have been counted in `cell`.
    pub(crate) fn take_off(&mut self, cell: u32, n: u64) {
        let c = self.cells.entry(cell).or_default();
        *c = c.wrapping_sub(n as i64);
    }
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) space: Rc<RefCell<Space>>,
    /// One for each address space: processes after vfork have the same.
    pub(crate) mm: Rc<()>,
    pub(crate) pool: Rc<RefCell<SlotPool>>,
    pub(crate) memory: Memory,
    pub(crate) threads: Vec<i32>,
    /// It shares its parent's memory, and the thread that created it waits until it ends or executes a program.
    pub(crate) vforked: bool,
    /// Counts of threads that have ended, and of the parent at fork.
    pub(crate) books: Books,
    /// Names of contexts, from [`crate::contexts::NAMED`] on.
    pub(crate) names: Vec<Vec<u8>>,
    /// A pop too many has been reported.
    pub(crate) popped_too_many: bool,
    /// What it has set RLIMIT_AS to, if it has.
    pub(crate) address_limit: Option<[u64; 2]>,
    /// Instructions are being counted.
    pub(crate) counting: bool,
    pub(crate) exe: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// Its profile has been handed over.
    pub(crate) reported: bool,
}

/// How often each block was executed, but for parts of blocks: from sums of cells.
pub(crate) fn block_counts(trans: &TransTab, sum: &[u64], fix: &Corrections) -> Vec<u64> {
    let get = |cell: u32| sum.get(cell as usize).copied().unwrap_or(0);
    let cell = |cell: u32| get(cell).wrapping_add_signed(fix.cells.get(&cell).copied().unwrap_or(0));
    let mut wholes: Vec<u64> = Vec::with_capacity(trans.blocks.len());
    let mut flows = trans.flows.iter().peekable();
    for (i, b) in trans.blocks.iter().enumerate() {
        let id = i as u32;
        let mut whole = get(b.cell).wrapping_add_signed(fix.whole.get(&id).copied().unwrap_or(0));
        if b.edge != NO_CELL {
            whole = whole.wrapping_add(cell(b.edge));
        }
        while let Some(f) = flows.next_if(|f| f.to.0 == id) {
            whole = whole.wrapping_add(wholes[f.from.0 as usize]);
            match f.unless {
                Some(Unless::Edge(other)) => whole = whole.wrapping_sub(cell(trans.block(other).edge)),
                Some(Unless::Cell(exit)) => whole = whole.wrapping_sub(cell(exit)),
                None => {}
            }
        }
        wholes.push(whole);
    }
    wholes
}

/// Adds to a list that is sorted by address, at an address near its end: what comes before begins at most a block in front of it. What
/// is the same instruction is there once.
fn add_among(list: &mut Vec<InstructionCount>, new: InstructionCount) {
    let mut end = list.len();
    while end > 0 && list[end - 1].addr > new.addr {
        end -= 1;
    }
    // Code that was changed again and again may have had several instructions there, in turn.
    let same = |c: &&mut InstructionCount| (c.module, c.len, c.events) == (new.module, new.len, new.events);
    match list[..end].iter_mut().rev().take_while(|c| c.addr == new.addr).find(same) {
        Some(there) => there.count = there.count.wrapping_add(new.count),
        None => list.insert(end, new),
    }
}

/// The executions of every instruction, from sums of cells.
pub(crate) fn instruction_counts(trans: &TransTab, sum: &[u64], fix: &Corrections) -> Vec<InstructionCount> {
    let mut out: Vec<InstructionCount> = Vec::new();
    let get = |cell: u32| sum.get(cell as usize).copied().unwrap_or(0);
    let mut heads: Map<u32, Vec<(u16, i64)>> = Map::default();
    for (&key, &n) in &fix.head {
        heads.entry((key >> 16) as u32).or_default().push((key as u16, n));
    }
    let cell = |cell: u32| get(cell).wrapping_add_signed(fix.cells.get(&cell).copied().unwrap_or(0));
    let wholes = block_counts(trans, sum, fix);
    // By address: whoever adds them up then finds them sorted, but for those with counters of their own.
    let begun = (0..).zip(&wholes).zip(&trans.blocks).filter(|((id, whole), _)| **whole != 0 || heads.contains_key(id));
    let mut executed: Vec<(u64, u32, u64)> = begun.map(|((id, whole), b)| (b.pc, id, *whole)).collect();
    executed.sort_unstable();
    out.reserve(executed.iter().map(|(_, id, _)| usize::from(trans.block(BlockId(*id)).n)).sum());
    for (_, id, whole) in executed {
        let b = trans.block(BlockId(id));
        let head = heads.get(&id);
        let mut addr = b.pc;
        let overlaps = out.last().is_some_and(|last| last.addr.0 >= addr);
        for (k, shape) in trans.shapes[b.shapes as usize..][..usize::from(b.n)].iter().enumerate() {
            if shape.in_block_count() {
                let extra: i64 =
                    head.map_or(0, |h| h.iter().filter(|(n, _)| usize::from(*n) > k).map(|(_, c)| c).sum());
                let count = whole.wrapping_add_signed(extra);
                if count != 0 {
                    let count = InstructionCount {
                        module: b.module as usize,
                        addr: GuestAddr(addr),
                        len: shape.guest_len() as u8,
                        count,
                        events: trans.facts.get(b.shapes as usize + k).copied().unwrap_or_default(),
                    };
                    if overlaps { add_among(&mut out, count) } else { out.push(count) }
                }
            }
            addr += shape.guest_len();
        }
    }
    for s in &trans.sites {
        let count = cell(s.cell);
        if count != 0 {
            let b = trans.block(s.block);
            let len = trans.shapes[b.shapes as usize + usize::from(s.index)].guest_len() as u8;
            out.push(InstructionCount {
                module: b.module as usize,
                addr: GuestAddr(trans.pc_of(s.block, s.index)),
                len,
                count,
                // Its accesses come with the trace.
                events: StaticEvents::default(),
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_blocks_that_overlap_are_told_in_order_and_once() {
        let mut state = 1u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..200 {
            let mut blocks: Vec<(u64, u64)> = (0..40).map(|_| (random(60), 1 + random(20))).collect();
            blocks.sort_unstable();
            let mut list = Vec::new();
            let mut naive = std::collections::BTreeMap::new();
            for (pc, n) in blocks {
                for addr in pc..pc + n {
                    let (module, len, count) = (random(2) as usize, 1 + random(2) as u8, random(9));
                    *naive.entry((addr, module, len)).or_insert(0) += count;
                    let events = StaticEvents::default();
                    add_among(&mut list, InstructionCount { module, addr: GuestAddr(addr), len, count, events });
                }
            }
            assert!(list.is_sorted_by_key(|c| c.addr));
            let mut found: Vec<_> = list.iter().map(|c| ((c.addr.0, c.module, c.len), c.count)).collect();
            found.sort_unstable();
            assert_eq!(found, naive.into_iter().collect::<Vec<_>>());
        }
    }
}
