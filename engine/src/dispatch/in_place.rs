//! Instructions that run where the program has them, one step at a time: those that the decoder does not know, and writes to
//! the page that they stand on.
//!
//! Such an instruction is counted before it runs. Invariants: it runs with the guest's own gs base and with all signals held
//! back that it does not cause itself; whatever ends its step, it has been counted if it has been executed, and not
//! otherwise. A thread that is told to stop before it has begun is taken back to where it was.

use grind_fragments::fragment_table::FragmentId;
use grind_guest::counts::Corrections;
use grind_guest::process::State;
use grind_layout::SlotWord;
use grind_ptrace::kinds::{ASYNCHRONOUS, fault_pending};
use grind_ptrace::{self as tracee, How, Regs, Stopped, is_sent};
use grind_types::Tid;
use grind_types::addr::GuestAddr;
use nix::libc;

use super::Dispatcher;

/// A step in an instruction's original place, as [`State::InPlace`] has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) pc: GuestAddr,
    pub(super) block: FragmentId,
    pub(super) executed: u16,
    pub(super) mask: u64,
}

impl Dispatcher<'_> {
    /// Lets one instruction run where the program has it: the last of the first `executed` instructions of `block` (`None`:
    /// of all), which have been counted.
    pub(super) fn in_place(
        &mut self,
        t: Stopped,
        mut regs: Regs,
        pc: GuestAddr,
        block: FragmentId,
        executed: Option<u16>,
    ) {
        let tid = t.tid();
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let executed = executed.unwrap_or_else(|| code_cache.borrow().trans.block(block).n);
        regs.rip = pc.0;
        regs.gs_base = self.slot_word(tid, SlotWord::GuestGs);
        let Ok(mask) = t.sigmask() else { return };
        if t.set_regs(&regs).is_ok() && t.set_sigmask(mask | ASYNCHRONOUS).is_ok() {
            self.set_state(tid, State::InPlace { pc, block, executed, mask });
            t.go_on(How::Step, 0);
        }
    }

    /// The step has ended with `signal`.
    pub(super) fn after_step(&mut self, t: Stopped, signal: i32, step: Step) {
        let tid = t.tid();
        let (Ok(mut regs), Ok(info)) = (t.regs(), t.siginfo()) else { return };
        let sent = is_sent(&info) && signal != libc::SIGSTOP;
        if sent {
            tracee::keep(tid, info);
            if regs.rip == step.pc.0 {
                t.go_on(How::Step, 0);
                return;
            }
            // In place of the step's own.
        }
        self.keep_guest_gs(tid, &regs);
        regs.gs_base = self.gs(tid);
        if t.set_regs(&regs).is_err() || t.set_sigmask(step.mask).is_err() {
            return;
        }
        if sent || signal == libc::SIGTRAP {
            // A step that went nowhere (a jump to itself, a repeated instruction) goes on from there.
            return self.enter(t, GuestAddr(regs.rip));
        }
        if signal == libc::SIGSEGV && self.write_to_code(&t, &info) {
            // It writes to a second page that was protected: once more.
            return self.write_in_place(t, &info, regs, step.block, step.executed);
        }
        // It faulted: it has not been executed.
        self.uncount_last(tid, step.block, step.executed);
        self.set_state(tid, State::Guest);
        self.deliver(t, signal);
    }

    /// `t`, in `state`, has stopped because it was told to. If it has not begun its step, it will begin anew; what its state
    /// is then.
    pub(super) fn take_back(&mut self, t: &Stopped, state: State) -> State {
        let State::InPlace { pc, block, executed, mask } = state else { return state };
        let tid = t.tid();
        let Ok(mut regs) = t.regs() else { return state };
        if regs.rip != pc.0 || fault_pending(tid) {
            return state;
        }
        regs.gs_base = self.gs(tid);
        if t.set_regs(&regs).is_err() || t.set_sigmask(mask).is_err() {
            return state;
        }
        self.uncount_last(tid, block, executed);
        self.set_state(tid, State::Guest);
        State::Guest
    }

    fn keep_guest_gs(&mut self, tid: Tid, regs: &Regs) {
        if let Some(th) = self.threads.get(&tid)
            && let Some(p) = self.processes.get(&th.pid)
        {
            p.pool.borrow().set_slot_word(th.slot, SlotWord::GuestGs, regs.gs_base);
        }
    }

    /// Of the first `executed` instructions of `block`, which have been counted, the last one has not been executed.
    pub(super) fn uncount_last(&mut self, tid: Tid, block: FragmentId, executed: u16) {
        self.correct_last(tid, block, executed, Corrections::not_the_last, [executed, executed - 1]);
    }

    /// Of the first `executed` instructions of `block`, the last one has not been counted.
    pub(super) fn count_last(&mut self, tid: Tid, block: FragmentId, executed: u16) {
        self.correct_last(tid, block, executed, Corrections::the_last_too, [executed - 1, executed]);
    }

    fn correct_last(
        &mut self,
        tid: Tid,
        block: FragmentId,
        executed: u16,
        correct: fn(&mut Corrections, FragmentId, u16),
        [counted, is]: [u16; 2],
    ) {
        let told = self.process_of(tid).and_then(|p| p.code_cache.borrow().trans.block(block).told);
        if let Some(told) = told {
            return self.tell_correction(tid, told, counted.into(), is.into());
        }
        let collecting = self.collecting(tid);
        let context = self.context(tid);
        let Some(th) = self.threads.get(&tid) else { return };
        let Some(p) = self.processes.get_mut(&th.pid) else { return };
        if th.counted_slot(p.counting) == Some(th.slot) && collecting {
            correct(&mut p.books.of(context).corrections, block, executed);
        }
    }
}
