//! How often code has been executed, as far as it had been when its translations were thrown away: which way conditional
//! branches go, and what is worth translating together. It must never decide what is counted, only where: counts do not
//! depend on it, time does.

use std::cmp::Reverse;

use grind_isa::decode::Insn;
use grind_types::addr::GuestAddr;
use grind_types::hash::Map;

/// Where a conditional branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// On to the next instruction, nearly always.
    Next,
    /// To its target, nearly always.
    Target,
    /// Now here, now there.
    Neither,
}

/// Executions that say something.
const ENOUGH: u64 = 64;

/// One in so many is seldom.
const SELDOM: u64 = 16;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Hotness {
    /// Executions of blocks, by where they begin.
    begin: Map<GuestAddr, u64>,
    /// The same, by the address behind them.
    end: Map<GuestAddr, u64>,
}

impl Hotness {
    /// A block has been executed `n` times.
    pub fn note(&mut self, begin: GuestAddr, end: GuestAddr, n: u64) {
        for sum in [self.begin.entry(begin).or_default(), self.end.entry(end).or_default()] {
            *sum = sum.saturating_add(n);
        }
    }

    /// Whether nothing is known of any code.
    pub fn is_empty(&self) -> bool {
        self.begin.is_empty()
    }

    /// Where blocks begin that have been executed at least `least` times, the hottest first.
    pub fn hot(&self, least: u64) -> Vec<GuestAddr> {
        let hot = self.begin.iter().filter(|(_, n)| **n >= least);
        let mut hot: Vec<(Reverse<u64>, GuestAddr)> = hot.map(|(pc, n)| (Reverse(*n), *pc)).collect();
        hot.sort_unstable();
        hot.into_iter().map(|(_, pc)| pc).collect()
    }

    /// Where a conditional branch goes, if it has been executed often enough to tell.
    pub fn bias(&self, branch: &Insn) -> Option<Bias> {
        let all = self.end.get(&branch.next()).copied().filter(|n| *n >= ENOUGH)?;
        let at = |pc: GuestAddr| self.begin.get(&pc).copied().unwrap_or(0);
        let (next, target) = (at(branch.next()), at(branch.target()));
        let few = all / SELDOM;
        // Others may lead there, too: what is executed seldom is not gone to often, but not the other way round. A target
        // that is executed as often as all there is, is where both ways meet again.
        Some(if target <= few || (next..=next + few).contains(&all) && target + few >= all {
            Bias::Next
        } else if next <= few {
            Bias::Target
        } else {
            Bias::Neither
        })
    }
}

#[cfg(test)]
mod tests {
    use grind_layout::registers::StolenRegisters;
    use grind_types::{Pid, Tid};

    use grind_ptrace::Memory;

    use super::*;
    use crate::batch::Batch;
    use crate::code_reader::CodeWindows;
    use crate::testing::Untranslated;

    const AT: GuestAddr = GuestAddr(0x40_0000);

    /// Of a branch over five bytes that has been executed a thousand times.
    fn bias(on: u64, away: u64) -> Option<Bias> {
        let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
        // jnz 1f; nop; ...; 1: ret
        let mut cache = CodeWindows::holding(AT, &[0x75, 5, 0x90, 0x90, 0x90, 0x90, 0xc3, 0xc3]);
        let mut batch = Batch::default();
        let mut reader = cache.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX));
        batch.discover(AT, true, &mut reader, &Untranslated(AT..AT.plus(0x1000), StolenRegisters::default()));
        let branch = *batch.insns_of(&batch.blocks[0]).last()?;
        assert_eq!((branch.next(), branch.target()), (AT.plus(2), AT.plus(7)));
        let mut hotness = Hotness::default();
        assert_eq!(hotness.bias(&branch), None);
        hotness.note(AT, AT.plus(2), 10);
        assert_eq!(hotness.bias(&branch), None, "too few");
        hotness.note(AT, AT.plus(2), 990);
        hotness.note(AT.plus(2), AT.plus(7), on);
        hotness.note(AT.plus(7), AT.plus(8), away);
        hotness.bias(&branch)
    }

    #[test]
    fn what_is_seldom_executed_is_seldom_gone_to() {
        assert_eq!(bias(990, 10), Some(Bias::Next));
        assert_eq!(bias(10, 990), Some(Bias::Target));
        assert_eq!(bias(500, 500), Some(Bias::Neither));
    }

    #[test]
    fn where_others_lead_to_tells_nothing() {
        assert_eq!(bias(1000, 500), Some(Bias::Neither), "half of those that are next come from elsewhere");
        assert_eq!(bias(5000, 600), Some(Bias::Neither));
        assert_eq!(bias(980, 1000), Some(Bias::Next), "the ways meet at the target");
        assert_eq!(bias(980, 5000), Some(Bias::Next), "others lead there, too");
        assert_eq!(bias(400, 1000), Some(Bias::Neither));
    }
}
