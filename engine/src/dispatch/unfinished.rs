//! What a thread was counting when it was killed. It stands wherever it happened to be, maybe between two instructions of ours that
//! count the same: a total and a counter, or a frame and what it cost. It will never get to the boundary of an instruction, where they
//! agree, by itself; so what is left of that is done here, as the processor would have.
//!
//! Invariants: nothing is read or written but the thread's slot; the first instruction that does anything else, or that may branch,
//! ends it. (Nothing of ours that counts has either in its middle.)

use grind_codegen::level1::Words;
use grind_guest::counting::execute;
use grind_guest::recover::{self, CachePosition};
use grind_layout::SlotWord;
use grind_ptrace::Stopped;
use grind_types::addr::CacheAddr;
use iced_x86::{Decoder, DecoderOptions};

use super::Dispatcher;

/// So many instructions at most are between two boundaries and only count.
const MOST: usize = 64;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

impl Dispatcher<'_> {
    /// Finishes that for `t`, which will not go on. Returns where it stands then.
    pub(super) fn finish_counting(&mut self, t: &Stopped) -> Option<u64> {
        let p = self.process_of(t.tid()).filter(|_| self.follows(t.tid()))?;
        let mut regs = t.raw_regs().ok()?;
        let slot = p.pool.borrow().at(regs.gs_base)?;
        let pool = p.pool.borrow();
        let mut words = pool.words(slot);
        let code_cache = p.code_cache.borrow();
        let total = u64::from(SlotWord::Total.at());
        let in_r9 = code_cache.trace.settings.stolen_registers().total();
        if in_r9 && words.get(total) != regs.r9 {
            // It is the guest's: at a system call, where nothing is being counted.
            return None;
        }
        for _ in 0..MOST {
            if recover::cache_position(&code_cache, regs.rip) != CachePosition::Between {
                break;
            }
            let mut bytes = [0; LONGEST];
            code_cache.read_cache(CacheAddr(regs.rip), &mut bytes);
            let mut decoder = Decoder::with_ip(64, &bytes, regs.rip, DecoderOptions::NONE);
            if execute(&decoder.decode(), &mut regs, &mut words).is_none() {
                break;
            }
        }
        if in_r9 {
            words.set(total, regs.r9);
        }
        Some(regs.rip)
    }
}
