//! Programs that have the processor check alignment (AC in RFLAGS). Records lie at multiples of four bytes, so emitted code would
//! fault where it writes them: such an instruction runs without the check, for one step. The guest's own accesses keep it.

use grind_ptrace::{How, Regs, Stop, Stopped};
use grind_types::Tid;
use grind_types::addr::CacheAddr;
use iced_x86::{Decoder, DecoderOptions, Register};
use nix::libc;

use super::Dispatcher;

/// The alignment check in RFLAGS.
const AC: u64 = 1 << 18;

/// `si_code` of a SIGBUS because of that.
const BUS_ADRALN: i32 = 1;

impl Dispatcher<'_> {
    /// Whether `tid` has got a signal because an access of emitted code's own is not aligned.
    pub(super) fn is_unaligned_record(&self, tid: Tid, info: &libc::siginfo_t, regs: &Regs) -> bool {
        if info.si_signo != libc::SIGBUS || info.si_code != BUS_ADRALN || regs.eflags & AC == 0 {
            return false;
        }
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return false };
        let code_cache = code_cache.borrow();
        if !code_cache.is_cache(CacheAddr(regs.rip)) {
            return false;
        }
        let mut code = [0; 16];
        code_cache.read_cache(CacheAddr(regs.rip), &mut code);
        // The guest's own accesses by gs run where the program has them, and r11 is not its own here.
        let ins = Decoder::with_ip(64, &code, regs.rip, DecoderOptions::NONE).decode();
        ins.segment_prefix() == Register::GS || ins.memory_base() == Register::R11
    }

    /// Steps over one instruction without the check; how that ended.
    pub(super) fn step_unchecked(&self, t: Stopped, mut regs: Regs) -> Option<(Stopped, Stop)> {
        regs.eflags &= !AC;
        t.set_regs(&regs).ok()?;
        let (t, stop) = t.resume_and_wait(How::Step, 0).ok()?;
        if matches!(stop, Stop::Signal(_)) {
            let mut regs = t.regs().ok()?;
            regs.eflags |= AC;
            t.set_regs(&regs).ok()?;
        }
        Some((t, stop))
    }
}
