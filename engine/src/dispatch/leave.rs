//! Leaving processes to themselves while they run: their threads are brought to addresses of their own, as for a flush, their counts
//! are taken, everything of the engine's is taken out of their memory, and they go on untraced. What is written of them is written
//! when they run again: to be profiled stops a program no longer than it must.
//!
//! Invariants: a thread that is left has the registers, the signal mask and the processors that it would have, and its system call,
//! if it waited in one, is made once more; no thread of an address space goes on before all of them can. A process whose thread waits
//! for a child of vfork's is left when that has become another program.

use std::rc::Rc;

use grind_guest::image::{self, Remote};
use grind_layout::SlotWord;
use grind_ptrace::{self as tracee, Stopped, maps};
use grind_session::Exit;
use grind_types::Pid;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use nix::libc;

use super::Dispatcher;
use super::attach::syscall_in;
use super::flush::{Flush, Reason};
use super::life::{personality, release};

impl Dispatcher<'_> {
    /// Process `pid` is to be left.
    pub(super) fn leave_soon(&mut self, pid: Pid) {
        if self.processes.contains_key(&pid) && !self.leaving.contains(&pid) {
            self.leaving.push(pid);
            self.look_at_leaving();
        }
    }

    /// Begins to leave whom it can: what was begun may have been given up since.
    pub(super) fn look_at_leaving(&mut self) {
        for pid in std::mem::take(&mut self.leaving) {
            let Some(first) = self.processes.get(&pid).and_then(|p| p.threads.first().copied()) else { continue };
            self.leaving.push(pid);
            if !self.is_flushing(first) {
                self.begin_flush(pid, Reason::Leaving);
            }
        }
    }

    /// All threads of an address space stand at addresses of their own: they are left.
    pub(super) fn leave(&mut self, flush: Flush) {
        let pids: Vec<Pid> = self.processes.values().filter(|p| flush.is_of(&p.mm)).map(|p| p.pid).collect();
        log::debug!(target: subject::PROCESS, "processes {pids:?} are left");
        self.unpin();
        let mut threads: Vec<Stopped> = Vec::new();
        for (tid, t) in flush.into_waiting() {
            self.hand_held_trap_over(tid);
            threads.extend(self.hand_traps_over(t));
        }
        // It may write to its own code again.
        if let Some(t) = threads.pop() {
            threads.extend(self.open_range(t, GuestAddr(0), GuestAddr(u64::MAX)));
        }
        for t in &threads {
            let tid = t.tid();
            let guest_gs = self.slot_word(tid, SlotWord::GuestGs);
            self.fold_thread(tid);
            // From here on its registers are what they are.
            tracee::leave(tid);
            if let Ok(mut regs) = t.regs() {
                regs.gs_base = guest_gs;
                regs.orig_rax = u64::MAX;
                let _ = t.set_regs(&regs);
            }
        }
        let threads = self.take_out(&pids, threads);
        for t in threads {
            let tid = t.tid();
            let _ = t.leave();
            self.forget_thread(tid);
        }
        for &pid in &pids {
            if let Some(limits) = self.processes.get(&pid).and_then(|p| p.address_limit) {
                Self::hand_limits_over(pid, limits);
            }
        }
        for pid in pids {
            self.report(pid, None);
            self.traps.remove(&pid);
            self.forget_own_code(pid);
            if let Some(p) = self.processes.remove(&pid) {
                release(&p);
            }
            if pid == self.main {
                self.left = true;
                if self.attached {
                    self.exit = Some(Exit::Code(0));
                }
            }
        }
        self.settle_pin();
    }

    /// Takes everything of the engine's out of the memory of `threads`, which are those of `pids`; returns those that live on.
    fn take_out(&mut self, pids: &[Pid], mut threads: Vec<Stopped>) -> Vec<Stopped> {
        let Some(p) = pids.first().and_then(|pid| self.processes.get(pid)) else { return threads };
        let Some(Ok(regions)) = threads.first().map(|t| maps::read(t.tid())) else { return threads };
        let code_cache = p.code_cache.borrow();
        let theirs: Vec<_> = regions.into_iter().filter(|r| !code_cache.is_cache(CacheAddr(r.start))).collect();
        let Some(gadget) = syscall_in(&p.memory, &theirs) else { return threads };
        let mut living = Vec::new();
        let mut cleared = false;
        while let Some(t) = threads.pop() {
            let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
            // Programs that are started run without randomisation of addresses; what they start need not.
            if !self.attached {
                remote.raw(libc::SYS_personality, [personality(false), 0, 0, 0, 0, 0]);
            }
            if !cleared {
                image::clear(&mut remote, &code_cache, &p.pool.borrow());
                cleared = remote.thread.is_some();
            }
            living.extend(remote.thread.take());
        }
        living
    }
}

impl Flush {
    /// Whether it is of this address space.
    pub(super) fn is_of(&self, mm: &Rc<()>) -> bool {
        Rc::ptr_eq(&self.mm, mm)
    }
}
