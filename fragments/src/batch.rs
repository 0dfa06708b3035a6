//! What is translated at one stop: the block that the guest needs now, and those it will probably need next. Blocks are
//! found before any is emitted, so a loop head inside a block splits it instead of being translated twice. The liveness of
//! status flags is settled here too, because it needs the successors.
//!
//! The likeliest block comes first, and none that is not likely enough at all: one that is never run costs more than its
//! translation, since it keeps those that do run apart (cache lines, pages, branch targets), nearly as much as the stop
//! that it might have saved.

mod decoded;
mod registers;

use std::collections::BinaryHeap;

use grind_isa::decode::{self, Class, Insn, STATUS};
use grind_layout::registers::StolenRegisters;
use grind_types::addr::GuestAddr;
use iced_x86::{ConditionCode, InstructionInfoFactory};

use crate::code_reader::CodeReader;
use crate::distances;
use crate::hotness::{Bias, Hotness};

pub use registers::Registers;

/// The most blocks translated at a stop.
pub(crate) const BUDGET: usize = 64;

/// Likelihood of what is certain.
const CERTAIN: u32 = 1 << 16;

/// Blocks less likely than this to be run, given that the first one is, are left for later; unless the guest has turned
/// out to go where it was expected to, see [`Batch::discover`].
const LEAST: u32 = CERTAIN / 100 * 50;

/// A block found, not emitted yet. It is entered at its first instruction only; behind conditional branches it may go on.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Where it begins.
    pub pc: GuestAddr,
    /// The address behind it.
    pub end: GuestAddr,
    /// First of its instructions in [`Batch::insns`].
    pub first: usize,
    /// Instructions.
    pub n: usize,
    /// A call returns to it: it gets an IBL target.
    pub return_site: bool,
}

/// An address to go on from. The likeliest is the greatest; among equals the one found first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    likely: u32,
    order: std::cmp::Reverse<u32>,
    pc: GuestAddr,
    return_site: bool,
}

/// Blocks found from one address.
#[derive(Debug)]
pub struct Batch {
    /// The blocks, in the order in which they will lie.
    pub blocks: Vec<Found>,
    /// Their instructions.
    pub insns: Vec<Insn>,
    /// What is decoded is kept for other programs that map the same.
    pub keeps: bool,
    /// By instruction, if so: where it is among those that are kept.
    places: Vec<decoded::Place>,
    queue: BinaryHeap<Candidate>,
    index: Index,
    /// The likelihood that a block must have at present.
    least: u32,
    /// The likeliest of the blocks that were left for later: as a rule, both ways out of the last one that was found.
    left: Vec<GuestAddr>,
    /// Code that is not translated here: which flags are live there.
    ahead: Vec<(GuestAddr, u8)>,
    /// By instruction, if somebody wants to know.
    registers: Vec<Registers>,
    info: InstructionInfoFactory,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            insns: Vec::new(),
            keeps: false,
            places: Vec::new(),
            queue: BinaryHeap::new(),
            index: Index::default(),
            least: LEAST,
            left: Vec::new(),
            ahead: Vec::new(),
            registers: Vec::new(),
            info: InstructionInfoFactory::new(),
        }
    }
}

/// What is known outside a batch.
pub trait Known {
    /// Flags live at the start of a block that has been translated already.
    fn live_in(&self, pc: GuestAddr) -> Option<u8>;
    /// Whether a translated block begins at `pc`.
    fn begins(&self, pc: GuestAddr) -> bool;
    /// No translated block begins between `pc` (inclusive) and the address returned (exclusive), which is above `pc`
    /// unless one begins at `pc`.
    fn none_before(&self, pc: GuestAddr) -> GuestAddr;
    /// The first boundary of functions or sections in `start..end`.
    fn boundary_in(&self, _start: GuestAddr, _end: GuestAddr) -> Option<GuestAddr> {
        None
    }
    /// Whether a jump from one address to another leads to code of the same call context.
    fn stays(&self, _from: GuestAddr, _to: GuestAddr) -> bool {
        true
    }
    /// Whether calls lead to code of the same call context.
    fn calls_stay(&self) -> bool {
        true
    }
    /// How many conditional branches a block may go on behind.
    fn through(&self) -> usize {
        0
    }
    /// Whether flags are looked for where blocks lead: calls are followed, and no code changes without a system call.
    fn looks_for_flags(&self) -> bool {
        false
    }
    /// Whether anybody asks for [`Batch::registers_of`].
    fn wants_registers(&self) -> bool {
        false
    }
    /// The registers that emitted code has taken.
    fn stolen_registers(&self) -> StolenRegisters {
        StolenRegisters::default()
    }
    /// Registers that are overwritten before they are read from the start of a block that has been translated already.
    fn dead_in(&self, _pc: GuestAddr) -> Option<u16> {
        None
    }
    /// Whether a block may rely on what others do with registers.
    fn relies_on_others(&self) -> bool {
        false
    }
    /// The word at `at`, if it cannot change as long as what is translated of the instruction `user` lives.
    fn fixed_word(&self, _at: GuestAddr, _user: &Insn) -> Option<u64> {
        None
    }
    /// What has been executed before, if anything is known of that.
    fn hotness(&self) -> Option<&Hotness> {
        None
    }
    /// Whether code at `pc` may be translated before the guest gets there.
    fn may_look_ahead(&self, pc: GuestAddr) -> bool;
}

/// Where a batch's blocks are, by their address.
#[derive(Debug)]
struct Index([u8; Index::SIZE]);

impl Default for Index {
    fn default() -> Self {
        Self([0; Self::SIZE])
    }
}

impl Index {
    /// At least twice [`BUDGET`], which a few splits may exceed.
    const SIZE: usize = 256;

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn slots(pc: GuestAddr) -> impl Iterator<Item = usize> {
        let first = (pc.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize;
        (0..Self::SIZE).map(move |i| (first + i) % Self::SIZE)
    }

    fn get(&self, pc: GuestAddr, blocks: &[Found]) -> Option<usize> {
        for slot in Self::slots(pc) {
            match self.0[slot] {
                0 => return None,
                i if blocks[usize::from(i) - 1].pc == pc => return Some(usize::from(i) - 1),
                _ => {}
            }
        }
        None
    }

    /// Takes note that block `i` begins at `pc`.
    fn set(&mut self, pc: GuestAddr, i: usize) {
        if let Some(slot) = Self::slots(pc).find(|&s| self.0[s] == 0) {
            self.0[slot] = i as u8 + 1;
        }
    }
}

/// How likely it is that a block goes on to its next instruction, and to its branch's target, once it is run, sooner or later:
/// shares seen in compilers, two interpreters, a database, an assembler, a linker and git, which hardly differ.
fn likelihoods(last: &Insn, hotness: Option<&Hotness>) -> (u32, u32) {
    let percent = |p: u32| CERTAIN / 100 * p;
    if let Some(bias) = hotness.filter(|_| last.class == Class::Jcc).and_then(|hotness| hotness.bias(last)) {
        return match bias {
            Bias::Next => (CERTAIN, percent(2)),
            Bias::Target => (percent(2), CERTAIN),
            Bias::Neither => (CERTAIN, CERTAIN),
        };
    }
    match last.class {
        // What a compiler has put out of the way.
        Class::Jcc if distances::is_far(last.next(), last.target()) => (percent(99), percent(2)),
        Class::Jcc | Class::Loop if last.target() <= last.pc() => (percent(75), percent(85)),
        Class::Jcc => match last.ins.condition_code() {
            ConditionCode::e => (percent(78), percent(67)),
            ConditionCode::ne => (percent(82), percent(55)),
            // Errors.
            ConditionCode::s => (percent(93), percent(30)),
            _ => (percent(83), percent(62)),
        },
        Class::Loop => (percent(80), percent(60)),
        _ => (CERTAIN, CERTAIN),
    }
}

impl Batch {
    /// One for translations of their own of a process that has been forked.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { keeps: self.keeps, ..Self::default() }
    }

    /// Finds blocks from `pc` on. Nothing is found if nothing is mapped there.
    ///
    /// A guest that comes back for just what was the likeliest to follow runs through new code in a straight
    /// line: then more and more is found at a time.
    pub fn discover(&mut self, pc: GuestAddr, masked: bool, reader: &mut CodeReader<'_>, known: &impl Known) {
        // To find instructions again takes about as long as to decode them; to find out what they do with registers takes longer.
        let keeps = self.keeps && known.wants_registers();
        if keeps {
            decoded::begin(masked);
        }
        self.blocks.clear();
        self.insns.clear();
        self.places.clear();
        self.queue.clear();
        self.index.clear();
        let expected = self.left.contains(&pc);
        self.left.clear();
        self.ahead.clear();
        // What has been executed before is known better.
        let expected = expected && known.hotness().is_none();
        self.least = if expected { self.least / 4 * 3 } else { LEAST.min(self.least / 2 * 3) }.max(CERTAIN >> 12);
        let mut candidates = 0;
        let mut candidate = |pc, likely, return_site| {
            candidates += 1;
            Candidate { likely, order: std::cmp::Reverse(candidates), pc, return_site }
        };
        self.queue.push(candidate(pc, CERTAIN, false));
        while let Some(Candidate { likely, pc: at, return_site, .. }) = self.queue.pop() {
            if let Some(i) = self.find(at) {
                self.blocks[i].return_site |= return_site;
                continue;
            }
            if at != pc && (known.begins(at) || !known.may_look_ahead(at)) {
                continue;
            }
            if let Some(i) = self.containing(at).and_then(|i| self.split(i, at)) {
                self.blocks[i].return_site |= return_site;
                continue;
            }
            // New, or in the middle of an instruction: then a block of its own, over the same bytes.
            if self.blocks.len() >= BUDGET || likely < self.least {
                if self.left.len() < 2 {
                    self.left.push(at);
                }
                continue;
            }
            let first = self.insns.len();
            let ahead = self.blocks.iter().map(|b| b.pc).filter(|&b| b > at).min().unwrap_or(GuestAddr(u64::MAX));
            // Up to `clear` (exclusive) no block begins.
            let mut clear = ahead.min(known.none_before(at.plus(1)));
            let boundary = known.boundary_in(at.plus(1), GuestAddr(u64::MAX)).unwrap_or(GuestAddr(u64::MAX));
            let stop = |a: GuestAddr| {
                if a >= boundary {
                    return true;
                }
                if a < clear {
                    return false;
                }
                if known.begins(a) || self.blocks.iter().any(|b| b.pc == a) {
                    return true;
                }
                let ahead = self.blocks.iter().map(|b| b.pc).filter(|&b| b > a).min().unwrap_or(GuestAddr(u64::MAX));
                clear = ahead.min(known.none_before(a.plus(1)));
                false
            };
            let (through, insns) = (known.through(), &mut self.insns);
            let n = if keeps {
                decoded::decode_block(reader, at, masked, through, stop, (insns, &mut self.places))
            } else {
                decode::decode_block(reader, at, masked, through, stop, insns)
            };
            if n == 0 {
                continue;
            }
            let mut last = self.insns[first + n - 1];
            if let Some(target) = last.target_at().and_then(|at| known.fixed_word(at, &last)).map(GuestAddr)
                && let Some(direct) = last.leading_to(target)
            {
                last = direct;
                self.insns[first + n - 1] = direct;
            }
            let class = last.class;
            self.index.set(at, self.blocks.len());
            self.blocks.push(Found { pc: at, end: last.next(), first, n, return_site });
            let scale = |likely: u32, share: u32| ((u64::from(likely) * u64::from(share)) >> 16) as u32;
            let mut likely = likely;
            let within = if known.through() > 0 { first..first + n - 1 } else { 0..0 };
            for insn in &self.insns[within] {
                if insn.class == Class::Jcc {
                    let (on, taken) = likelihoods(insn, known.hotness());
                    if known.stays(insn.pc(), insn.target()) {
                        self.queue.push(candidate(insn.target(), scale(likely, taken), false));
                    }
                    likely = scale(likely, on);
                }
            }
            let (on, taken) = likelihoods(&last, known.hotness());
            let scaled = |share: u32| scale(likely, share);
            let calls = matches!(class, Class::Call | Class::CallIndirect | Class::CallNoRedirect);
            if class.goes_on() && (calls || known.stays(last.pc(), last.next())) {
                // Where calls are followed, whoever returns has not looked for an IBL target.
                self.queue.push(candidate(last.next(), scaled(on), calls && known.calls_stay()));
            }
            let stays = match class {
                Class::Call => known.calls_stay(),
                Class::Jcc | Class::Loop | Class::Jmp => known.stays(last.pc(), last.target()),
                _ => false,
            };
            if stays {
                self.queue.push(candidate(last.target(), scaled(taken), false));
            }
            if class == Class::Call && !stays {
                self.look_at(last.target(), masked, reader);
            }
        }
        if known.looks_for_flags() {
            self.look_ahead(masked, reader, known);
        }
        self.settle_flags(known);
        if known.wants_registers() {
            self.settle_registers(known);
        }
    }

    /// Where calls are followed, the ends of blocks are counted, and there flags are dead only if they are at the target.
    fn look_ahead(&mut self, masked: bool, reader: &mut CodeReader<'_>, known: &impl Known) {
        for i in 0..self.blocks.len() {
            let b = self.blocks[i];
            for k in b.first..b.first + b.n {
                let insn = self.insns[k];
                let is_last = k + 1 == b.first + b.n;
                let next = (is_last && insn.class.goes_on()).then(|| insn.next());
                let target = matches!(insn.class, Class::Jcc | Class::Loop | Class::Jmp).then(|| insn.target());
                for pc in next.into_iter().chain(target) {
                    if self.find(pc).is_none() && known.live_in(pc).is_none() && known.may_look_ahead(pc) {
                        self.look_at(pc, masked, reader);
                    }
                }
            }
        }
    }

    /// Takes note of the flags that are live at `pc`, as far as its first instructions tell.
    fn look_at(&mut self, pc: GuestAddr, masked: bool, reader: &mut CodeReader<'_>) {
        if !self.ahead.iter().any(|(at, _)| *at == pc) {
            self.ahead.push((pc, decode::flags_live_at(reader, pc, masked)));
        }
    }

    /// The flags that are live at an address that is not translated here, as far as it has been looked at.
    #[inline]
    pub fn live_ahead(&self, pc: GuestAddr) -> u8 {
        self.ahead.iter().find(|(at, _)| *at == pc).map_or(STATUS, |(_, live)| *live)
    }

    /// The block that `at` lies in.
    fn containing(&self, at: GuestAddr) -> Option<usize> {
        self.blocks.iter().position(|b| at >= b.pc && at < b.end)
    }

    /// Cuts block `i` in two at `at`; `None` if no instruction begins there.
    fn split(&mut self, i: usize, at: GuestAddr) -> Option<usize> {
        let b = self.blocks[i];
        let k = self.insns[b.first..b.first + b.n].iter().position(|x| x.pc() == at)?;
        if self.blocks.len() >= Index::SIZE - 2 {
            return None;
        }
        self.blocks[i].n = k;
        self.blocks[i].end = at;
        self.index.set(at, self.blocks.len());
        self.blocks.push(Found { pc: at, first: b.first + k, n: b.n - k, return_site: false, ..b });
        Some(self.blocks.len() - 1)
    }

    /// The instructions of a block.
    #[inline]
    pub fn insns_of(&self, b: &Found) -> &[Insn] {
        &self.insns[b.first..b.first + b.n]
    }

    /// The index of the block that begins at `pc`.
    #[inline]
    pub fn find(&self, pc: GuestAddr) -> Option<usize> {
        self.index.get(pc, &self.blocks)
    }

    /// Takes along the miss path backwards from "everything may be read" until two passes over all blocks are done: every value in between is
    /// on the safe side. Where no block hangs on an earlier one, the second pass would change nothing.
    fn settle_flags(&mut self, known: &impl Known) {
        for _ in 0..2 {
            let mut settled = true;
            for i in (0..self.blocks.len()).rev() {
                let b = self.blocks[i];
                let mut live = self.live_out(i, known, &mut settled);
                for k in (b.first..b.first + b.n).rev() {
                    let insn = &self.insns[k];
                    if insn.class == Class::Jcc && k + 1 < b.first + b.n {
                        live |= self.live_in(insn.target(), i, known, &mut settled);
                    }
                    let insn = &mut self.insns[k];
                    live = live & !insn.kills | insn.reads;
                    insn.live = live;
                }
            }
            if settled {
                break;
            }
        }
    }

    /// The flags that are live at `pc`, which block `from` leads to. Says if that is not `settled` because it is an earlier
    /// block's.
    fn live_in(&self, pc: GuestAddr, from: usize, known: &impl Known, settled: &mut bool) -> u8 {
        match self.find(pc) {
            Some(i) => {
                *settled &= i > from;
                self.insns[self.blocks[i].first].live
            }
            None => known.live_in(pc).unwrap_or_else(|| self.live_ahead(pc)),
        }
    }

    fn live_out(&self, i: usize, known: &impl Known, settled: &mut bool) -> u8 {
        let b = &self.blocks[i];
        let last = &self.insns[b.first + b.n - 1];
        let mut live_in = |pc| self.live_in(pc, i, known, settled);
        match last.class {
            Class::Call if !known.calls_stay() => self.live_ahead(last.target()),
            Class::Jmp | Class::Call => live_in(last.target()),
            Class::Jcc | Class::Loop => live_in(last.target()) | live_in(last.next()),
            c if !c.ends_block() => live_in(last.next()),
            _ => STATUS,
        }
    }
}

#[cfg(test)]
mod tests {
    use grind_ptrace::Memory;
    use grind_types::{Pid, Tid};

    use super::*;
    use crate::code_reader::CodeWindows;
    use crate::testing::Untranslated;

    const AT: GuestAddr = GuestAddr(0x40_0000);

    fn discover(batch: &mut Batch, code: &[u8], pc: GuestAddr) -> Vec<(u64, usize)> {
        let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
        let mut cache = CodeWindows::holding(AT, code);
        batch.discover(
            pc,
            true,
            &mut cache.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX)),
            &Untranslated(AT..AT.plus(0x1000), StolenRegisters::default()),
        );
        let mut found: Vec<_> = batch.blocks.iter().map(|b| (b.pc.since(AT), b.n)).collect();
        found.sort_unstable();
        for b in &batch.blocks {
            assert_eq!(batch.insns_of(b)[0].pc(), b.pc);
            assert_eq!(batch.insns_of(b)[b.n - 1].next(), b.end);
            assert_eq!(batch.blocks[batch.find(b.pc).unwrap()].pc, b.pc);
        }
        found
    }

    #[test]
    fn a_leader_inside_a_block_splits_it_however_unlikely() {
        // nop; 1: nop; js 2f (too unlikely); nop; jmp 1b; 2: ret
        let code = [0x90, 0x90, 0x78, 0x03, 0x90, 0xeb, 0xfa, 0xc3];
        assert_eq!(discover(&mut Batch::default(), &code, AT), [(0, 1), (1, 2), (4, 2)]);
    }

    #[test]
    fn the_unlikely_is_left_unless_the_guest_keeps_coming_back_for_it() {
        // A chain of blocks, each behind a branch to the end: jnz, not taken.
        let mut code = Vec::new();
        for i in 0..60u8 {
            code.extend([0x90, 0x75, 180 - 3 * i - 3]);
        }
        code.truncate(42 * 3);
        code.extend([0xc3; 60]);
        let mut batch = Batch::default();
        let mut pc = AT;
        let mut sizes = Vec::new();
        for _ in 0..6 {
            let found = discover(&mut batch, &code, pc);
            sizes.push(found.len());
            match batch.left.first() {
                Some(&next) => pc = next,
                None => break,
            }
        }
        assert!(sizes[0] < 10, "{sizes:?}");
        assert!(sizes.windows(2).take(2).all(|w| w[1] >= w[0]) && sizes[2] > sizes[0], "{sizes:?}");
        // Somewhere else: back to the beginning's caution, by and by.
        let least = batch.least;
        discover(&mut batch, &code, AT);
        assert!(batch.least > least);
    }
}
