//! Trace buffers of guest threads: a page that cannot be written ends each; the fault on it is the sign to take the buffer
//! over. Also all announcements to the sink. Nothing here happens unless something is traced.

use std::cell::RefCell;

use nix::libc;

use super::{Hub, counted_slot};
use crate::arena::{self, Scratch};
use crate::image::Remote;
use crate::recreate;
use crate::slots::SlotId;
use crate::space::Space;
use crate::tracee::{Regs, Stopped};

impl Hub<'_> {
    /// Makes the slot that `t` is on ready for records. `None` if the thread died over it.
    pub(super) fn ready_trace(&mut self, t: Stopped) -> Option<Stopped> {
        if self.feed.is_none() {
            return Some(t);
        }
        let tid = t.tid();
        let Some(th) = self.threads.get(&tid) else { return Some(t) };
        let Some(p) = self.processes.get(&th.pid) else { return Some(t) };
        let gs = p.pool.borrow().gs(th.slot);
        let gadget = p.space.borrow().gadget;
        if p.pool.borrow().set_scratch(th.slot, Scratch::TracePos, arena::TRACE_BUFFER).is_err() {
            return Some(t);
        }
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        guard(&mut remote, gs);
        remote.thread.take()
    }

    /// A fault at `info`'s address: if it is the end of the thread's trace buffer, that is emptied, and `regs` are such
    /// that the record is written to its beginning.
    pub(super) fn trace_full(&mut self, tid: i32, info: &libc::siginfo_t, regs: &mut Regs) -> bool {
        let Some(th) = self.threads.get(&tid).filter(|_| self.feed.is_some()) else { return false };
        let Some(p) = self.processes.get(&th.pid) else { return false };
        if p.pool.borrow().at(regs.gs_base).is_none() {
            return false;
        }
        let guard = regs.gs_base + arena::TRACE_GUARD;
        let at = super::signal::address_of(info);
        if !(guard..guard + 4096).contains(&at) {
            return false;
        }
        let mut code = [0; 16];
        let base = {
            let space = p.space.borrow();
            if !space.is_cache(regs.rip) {
                return false;
            }
            space.read_cache(regs.rip, &mut code);
            iced_x86::Decoder::with_ip(64, &code, regs.rip, iced_x86::DecoderOptions::NONE).decode().memory_base()
        };
        if !base.is_gpr64() {
            return false;
        }
        let slot = th.slot;
        self.drain(tid, slot);
        *recreate::register(regs, base.number() as u8) = arena::TRACE_BUFFER;
        true
    }

    /// Hands over what a thread has recorded on `slot`, which is empty afterwards.
    pub(super) fn drain(&mut self, tid: i32, slot: SlotId) {
        let Some(feed) = &self.feed else { return };
        let Some(th) = self.threads.get(&tid) else { return };
        let Some(p) = self.processes.get(&th.pid) else { return };
        let pool = p.pool.borrow();
        if counted_slot(th, p.counting) == Some(slot) {
            let mut words = feed.buffer();
            pool.read_trace(slot, &mut words);
            if !words.is_empty() {
                let mut space = p.space.borrow_mut();
                let known = space.trace;
                let trans = &space.trans;
                feed.sites(
                    known.id,
                    &trans.trace_sites[known.announced..],
                    &trans.specials[known.announced_specials..],
                );
                let (sites, specials) = (trans.trace_sites.len(), trans.specials.len());
                space.trace.announced = sites;
                space.trace.announced_specials = specials;
                feed.records(th.pid, tid, words);
            }
        }
        let _ = pool.set_scratch(slot, Scratch::TracePos, arena::TRACE_BUFFER);
    }

    /// A repeated instruction was interrupted: records what it has done so far, as its translation does at its end.
    pub(super) fn record_repeat(&mut self, tid: i32, site: u32, regs: &Regs) {
        let Some(th) = self.threads.get(&tid).filter(|_| self.feed.is_some()) else { return };
        let slot = th.slot;
        // Full buffers stop at a page that only the guest cannot write to.
        self.drain(tid, slot);
        let Some(p) = self.process_of(tid) else { return };
        let pool = p.pool.borrow();
        let before = [Scratch::Repeat, Scratch::RepeatSource, Scratch::RepeatTarget].map(|w| pool.scratch(slot, w));
        let mut record = site.to_le_bytes().to_vec();
        for word in before.into_iter().chain([regs.rcx, regs.rsi, regs.rdi]) {
            record.extend_from_slice(&word.to_le_bytes());
        }
        pool.append_trace(slot, &record);
    }

    /// `own` is a copy of `space`; these processes go on with it. What they recorded before is handed over first.
    pub(super) fn trace_copied(&mut self, space: &RefCell<Space>, own: &RefCell<Space>, moved: &[i32]) {
        if self.feed.is_none() {
            return;
        }
        for pid in moved {
            for tid in self.processes.get(pid).map(|p| p.threads.clone()).unwrap_or_default() {
                self.drain_thread(tid);
            }
        }
        let Some(feed) = &mut self.feed else { return };
        let from = space.borrow().trace.id;
        let to = feed.new_space();
        feed.space_copied(from, to);
        let mut own = own.borrow_mut();
        own.trace = space.borrow().trace;
        own.trace.id = to;
        for &pid in moved {
            feed.moved(pid, to);
        }
    }

    /// Hands over what thread `tid` has recorded so far.
    pub(super) fn drain_thread(&mut self, tid: i32) {
        if self.feed.is_none() {
            return;
        }
        let slot = self.threads.get(&tid).and_then(|th| counted_slot(th, self.processes.get(&th.pid)?.counting));
        if let Some(slot) = slot {
            self.drain(tid, slot);
        }
    }
}

/// Makes the page behind the trace buffer of the slot at `gs` one that cannot be written.
pub(super) fn guard(remote: &mut Remote<'_>, gs: u64) {
    remote.raw(libc::SYS_mprotect, [gs + arena::TRACE_GUARD, 4096, libc::PROT_NONE as u64, 0, 0, 0]);
}
