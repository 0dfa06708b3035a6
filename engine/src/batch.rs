//! What is translated at one stop: the block that the guest needs now, and those it will probably need next. Blocks are
//! found before any is emitted, so a loop head inside a block splits it instead of being translated twice. The liveness of
//! status flags is settled here too, because it needs the successors.

use std::collections::VecDeque;

use crate::code_reader::CodeReader;
use crate::decode::{self, Class, Insn, STATUS};

/// The most blocks translated at a stop. Measured on a compiler: fewer means more stops, more means code that is never run.
const BUDGET: usize = 64;

/// A block found, not emitted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) pc: u64,
    /// First of its instructions in [`Batch::insns`].
    pub(crate) first: usize,
    /// Instructions.
    pub(crate) n: usize,
    /// A call returns to it: it gets a landing.
    pub(crate) return_site: bool,
}

/// Blocks found from one address.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) blocks: Vec<Found>,
    pub(crate) insns: Vec<Insn>,
    queue: VecDeque<(u64, bool)>,
}

/// What is known outside a batch.
pub(crate) trait Known {
    /// Flags live at the start of a block that has been translated already.
    fn live_in(&self, pc: u64) -> Option<u8>;
    /// Whether a translated block begins at `pc`.
    fn begins(&self, pc: u64) -> bool;
    /// Whether code at `pc` may be translated before the guest gets there.
    fn may_look_ahead(&self, pc: u64) -> bool;
}

impl Batch {
    /// Finds blocks from `pc` on. Nothing is found if nothing is mapped there.
    pub(crate) fn discover(&mut self, pc: u64, masked: bool, reader: &mut CodeReader<'_>, known: &impl Known) {
        self.blocks.clear();
        self.insns.clear();
        self.queue.clear();
        self.queue.push_back((pc, false));
        while let Some((at, return_site)) = self.queue.pop_front() {
            if at != pc && (known.begins(at) || !known.may_look_ahead(at)) {
                continue;
            }
            if let Some(i) = self.containing(at) {
                let i = if self.blocks[i].pc == at { Some(i) } else { self.split(i, at) };
                if let Some(i) = i {
                    self.blocks[i].return_site |= return_site;
                    continue;
                }
                // In the middle of an instruction: a block of its own, over the same bytes.
            }
            if self.blocks.len() >= BUDGET {
                continue;
            }
            let first = self.insns.len();
            let blocks = &self.blocks;
            let n = decode::decode_block(
                reader,
                at,
                masked,
                |a| blocks.iter().any(|b| b.pc == a) || known.begins(a),
                &mut self.insns,
            );
            if n == 0 {
                continue;
            }
            self.blocks.push(Found { pc: at, first, n, return_site });
            let last = self.insns[first + n - 1];
            let class = last.class;
            if class.goes_on() {
                let returns = matches!(class, Class::Call | Class::CallIndirect | Class::CallNoRedirect);
                self.queue.push_back((last.next(), returns));
            }
            if matches!(class, Class::Jcc | Class::Loop | Class::Jmp | Class::Call) {
                self.queue.push_back((last.target(), false));
            }
        }
        self.settle_flags(known);
    }

    /// The block that `at` lies in.
    fn containing(&self, at: u64) -> Option<usize> {
        self.blocks.iter().position(|b| at >= b.pc && at < self.insns[b.first + b.n - 1].next())
    }

    /// Cuts block `i` in two at `at`; `None` if no instruction begins there.
    fn split(&mut self, i: usize, at: u64) -> Option<usize> {
        let b = self.blocks[i];
        let k = self.insns[b.first..b.first + b.n].iter().position(|x| x.pc() == at)?;
        self.blocks[i].n = k;
        self.blocks.push(Found { pc: at, first: b.first + k, n: b.n - k, return_site: false });
        Some(self.blocks.len() - 1)
    }

    /// The instructions of a block.
    pub(crate) fn insns_of(&self, b: &Found) -> &[Insn] {
        &self.insns[b.first..b.first + b.n]
    }

    /// The index of the block that begins at `pc`.
    pub(crate) fn find(&self, pc: u64) -> Option<usize> {
        self.blocks.iter().position(|b| b.pc == pc)
    }

    /// Walks backwards from "everything may be read" until two passes over all blocks are done: every value in between is
    /// on the safe side.
    fn settle_flags(&mut self, known: &impl Known) {
        for _ in 0..2 {
            for i in (0..self.blocks.len()).rev() {
                let b = self.blocks[i];
                let mut live = self.live_out(&b, known);
                for insn in self.insns[b.first..b.first + b.n].iter_mut().rev() {
                    live = live & !decode::flags_killed(&insn.ins) | decode::flags_read(&insn.ins);
                    if insn.class == Class::Syscall {
                        // r11 shows the flags.
                        live = STATUS;
                    }
                    insn.live = live;
                }
            }
        }
    }

    fn live_in(&self, pc: u64, known: &impl Known) -> u8 {
        match self.find(pc) {
            Some(i) => self.insns[self.blocks[i].first].live,
            None => known.live_in(pc).unwrap_or(STATUS),
        }
    }

    fn live_out(&self, b: &Found, known: &impl Known) -> u8 {
        let last = self.insns[b.first + b.n - 1];
        match last.class {
            Class::Jmp | Class::Call => self.live_in(last.target(), known),
            Class::Jcc | Class::Loop => self.live_in(last.target(), known) | self.live_in(last.next(), known),
            c if !c.ends_block() => self.live_in(last.next(), known),
            _ => STATUS,
        }
    }
}
