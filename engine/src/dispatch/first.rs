//! The first process of a PID namespace (`tracee::first`) and its faults. Whoever traces it has to let it go for it to die: its
//! counts are taken, its registers are its own, and the instruction that has faulted faults again with nobody looking.
//!
//! Invariant: it dies natively before it executes anything else of its own.

use grind_guest::process::State;
use grind_layout::SlotWord;
use grind_ptrace::status::Status;
use grind_ptrace::{How, Stopped};
use grind_session::Exit;
use grind_types::Pid;
use nix::libc;

use super::Dispatcher;

/// Where no program has code.
const NOWHERE: u64 = 8;

/// `int3`, and the two bytes of `int $3`.
const INT3: u8 = 0xcc;
const INT_3: [u8; 2] = [0xcd, 3];

impl Dispatcher<'_> {
    /// `t`, whose registers are the guest's, dies of a fault that has no handler, or which is blocked. `forced`: the kernel has
    /// found it, and not an instruction that could find it again.
    pub(super) fn die_untraced(&mut self, t: Stopped, signal: i32, forced: bool) {
        let tid = t.tid();
        let Ok(mut regs) = t.regs() else { return };
        regs.gs_base = self.slot_word(tid, SlotWord::GuestGs);
        regs.orig_rax = u64::MAX;
        if forced {
            regs.rip = NOWHERE;
        } else if signal == libc::SIGTRAP {
            let before = self.process_of(tid).and_then(|p| p.memory.array::<2>(regs.rip.wrapping_sub(2)));
            match before {
                Some([_, INT3]) => regs.rip -= 1,
                Some(INT_3) => regs.rip -= 2,
                _ => {}
            }
        }
        if t.set_regs(&regs).is_err() {
            return;
        }
        let how = Exit::Signal(signal);
        self.fold(tid, Some(how));
        let ours = Status::of(tid).id("PPid").map(Pid) == Some(Pid::own());
        if t.detach(0).is_ok() && !ours {
            // Nobody will tell of its end.
            self.ended(tid, how);
        }
    }

    /// `t` has been sent a SIGSTOP that would not have stopped it: it goes on.
    pub(super) fn go_on_past_stop(&mut self, t: Stopped) {
        let how = match self.threads.get(&t.tid()).map(|th| th.state) {
            Some(State::InPlace { .. } | State::Handler | State::SigReturn { .. }) => How::Step,
            Some(State::Cache) => {
                self.call_again(&t, libc::SIGSTOP);
                How::Continue
            }
            _ => How::Continue,
        };
        t.go_on(how, 0);
    }
}
