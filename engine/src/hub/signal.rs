//! Signals. A signal that the guest does not catch is the kernel's business: nothing is touched, so an interrupted system
//! call restarts where it was. For a caught one, the thread is brought to an instruction's boundary, gets the guest's own
//! registers, and the kernel builds the frame; the first instruction of the handler is then translated like any other code.
//! A handler therefore sees original addresses, and may change the frame: `rt_sigreturn` restores whatever it says.

use nix::libc;

use super::Hub;
use super::in_place::Step;
use super::status::Status;
use super::switch::counted_slot;
use super::trapflag::set_trap_flag;
use crate::arena::Scratch;
use crate::process::State;
use crate::recreate::{self, Boundary, Spot};
use crate::tracee::{How, Regs, Stop, Stopped, register};
use crate::transtab::{NO_REG, Point, STUB_BYTES, StubKind};

pub(super) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signals that an instruction causes.
pub(super) const FAULTS: u64 =
    bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL) | bit(libc::SIGFPE) | bit(libc::SIGTRAP);

/// All others: held back while the engine steps a thread.
pub(super) const ASYNCHRONOUS: u64 = !FAULTS;

impl Hub<'_> {
    /// A signal is about to be delivered to `t`.
    pub(super) fn signal(&mut self, t: Stopped, signal: i32, state: State) {
        let tid = t.tid();
        match state {
            State::New => {
                let _ = t.resume(How::Continue, signal);
            }
            State::Handler if signal == libc::SIGTRAP => self.handler_begins(t),
            State::SigReturn { traps } if signal == libc::SIGTRAP && !self.in_cache(&t) => {
                // Not before: a signal that comes first leaves the handler where it is, and the call is made once more.
                self.tell_handler_ends(tid);
                if traps && !set_trap_flag(&t) {
                    return;
                }
                let Some(t) = self.release_trap(t) else { return };
                let Ok(rip) = t.rip() else { return };
                self.enter(t, rip);
            }
            State::InPlace { block, executed, mask, .. } => {
                self.after_step(t, signal, Step { block, executed, mask });
            }
            State::Guest | State::Handler => self.deliver(t, signal),
            // Nothing comes of it: the call that is about to begin is still to be stepped over.
            State::SigReturn { .. } if self.in_cache(&t) && signal == libc::SIGTRAP && self.withhold_trap(&t) => {
                let _ = t.resume(How::Step, 0);
            }
            State::SigReturn { .. } if self.in_cache(&t) && !caught(tid, signal) => {
                let _ = t.resume(How::Step, signal);
            }
            State::SigReturn { .. } if self.in_cache(&t) => {
                // It came before rt_sigreturn could begin: its handler's frame must not show where that stands in the cache.
                self.set_state(tid, State::Cache);
                self.signal_in_cache(t, signal);
            }
            State::SigReturn { .. } => {
                // A frame that cannot be restored: the kernel sends SIGSEGV. The registers are the guest's.
                self.tell_handler_ends(tid);
                self.set_state(tid, State::Guest);
                self.deliver(t, signal);
            }
            State::Call { nr, args, next } if signal == libc::SIGTRAP => {
                let Some((space, _)) = self.space_and_state(tid) else { return };
                if t.rip() == Ok(space.borrow().gadget.0 + 3) {
                    self.after_call(t, nr, args, next);
                } else {
                    let _ = t.resume(How::Continue, signal);
                }
            }
            State::OtherCall => self.signal_in_int80(t, signal),
            State::Call { nr, args, next } => self.signal_in_call(t, signal, nr, args, next),
            State::Cache | State::Exec { .. } => self.signal_in_cache(t, signal),
        }
    }

    pub(super) fn in_cache(&self, t: &Stopped) -> bool {
        let space = self.space_and_state(t.tid()).map(|(s, _)| s);
        t.rip().is_ok_and(|rip| space.is_some_and(|s| s.borrow().is_cache(rip)))
    }

    /// Books what has been executed of a block that was left at `b`.
    pub(super) fn correct(&mut self, tid: i32, b: &Boundary, regs: &Regs) {
        let Some(th) = self.threads.get(&tid) else { return };
        let Some(p) = self.processes.get_mut(&th.pid) else { return };
        if counted_slot(th, p.counting) != Some(th.slot) {
            return;
        }
        let block = *p.space.borrow().trans.block(b.block);
        if let Some(told) = block.told {
            let counted = if b.bumped { usize::from(block.n) } else { 0 };
            let carried = {
                let trans = &p.space.borrow().trans;
                // What led there has been counted with it, if it has; but then what was to be counted with the next one has not.
                let with = if b.bumped { trans.taken_off.get(&b.block) } else { Some(&b.block) };
                with.and_then(|with| trans.carried.get(with)).cloned().unwrap_or_default()
            };
            for (block, executed) in carried.parts {
                self.tell_correction(tid, block, 0, executed.into());
            }
            return self.correct_told(tid, told, counted, b, regs);
        }
        let collecting = self.uncollected.get(&tid).is_none_or(|u| u.since.is_none());
        let context = super::contexts::booked_to(th, p, regs.gs_base);
        let corrections = &mut p.books.of(context).corrections;
        if collecting {
            corrections.left(b.block, &block, b.executed, b.bumped);
        }
        if let Some(rep) = b.rep {
            let left = if rep.address32 { regs.rcx & 0xffff_ffff } else { regs.rcx };
            if collecting {
                corrections.take_off(rep.cell, left);
            }
            if let Some(site) = rep.site {
                self.record_repeat(tid, site, regs);
            }
        }
    }

    /// Gives the guest its registers at `b`; rip becomes the original address.
    pub(super) fn at_boundary(&mut self, tid: i32, b: &Boundary, regs: &mut Regs) {
        self.correct(tid, b, regs);
        let Some((space, _)) = self.space_and_state(tid) else { return };
        regs.rip = space.borrow().trans.pc_of(b.block, b.executed);
        for (r, word) in b.held.into_iter().flatten().zip([Scratch::Held1, Scratch::Held2]) {
            if r != NO_REG {
                *register(regs, r) = self.scratch(tid, word);
            }
        }
        if b.after_call {
            regs.rcx = regs.rip;
        }
    }

    fn signal_in_cache(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        let (Ok(mut regs), Ok(info)) = (t.regs(), t.siginfo()) else { return };
        // From the kernel, because of an instruction.
        let fault = bit(signal) & FAULTS != 0 && info.si_code > 0;
        if fault {
            if signal == libc::SIGSEGV && self.trace_full(tid, &info, &mut regs) {
                if t.set_regs(&regs).is_ok() {
                    let _ = t.resume(How::Continue, 0);
                }
                return;
            }
            if self.is_unaligned_record(tid, &info, &regs) {
                let Ok(mask) = t.sigmask() else { return };
                if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
                    return;
                }
                let Some((t, stop)) = self.step_unchecked(t, regs) else { return };
                if t.set_sigmask(mask).is_err() {
                    return;
                }
                match stop {
                    Stop::Signal(libc::SIGTRAP) => {
                        let _ = t.resume(How::Continue, 0);
                    }
                    stop => self.stopped(t, stop),
                }
                return;
            }
            if signal == libc::SIGSEGV && self.write_to_code(&t, &info) {
                // The guest changes code: let it, and run it again.
                return self.allow_write(t, &info, regs);
            }
            if signal == libc::SIGSEGV && self.stale_protection(&t, &info) {
                let _ = t.resume(How::Continue, 0);
                return;
            }
            if self.request_is_elsewhere(tid, &mut regs) {
                if t.set_regs(&regs).is_ok() {
                    let _ = t.resume(How::Continue, 0);
                }
                return;
            }
            let Some((space, _)) = self.space_and_state(tid) else { return };
            if recreate::own_push(&space.borrow(), &mut regs) {
                if t.set_regs(&regs).is_ok() {
                    let _ = t.resume(How::Continue, 0);
                }
                return;
            }
            let cache_rip = regs.rip;
            let b = {
                let slot = self.threads.get(&tid).map(|th| th.slot);
                let pool = self.process_of(tid).map(|p| p.pool.clone());
                let scratch = |offset| match (slot, &pool) {
                    (Some(slot), Some(pool)) => pool.borrow().scratch_at(slot, u16::from(offset)),
                    _ => 0,
                };
                recreate::at_fault(&space.borrow(), &mut regs, scratch)
            };
            if let Some(b) = b {
                self.at_boundary(tid, &b, &mut regs);
                let mut info = info;
                if address_of(&info) == cache_rip {
                    set_address(&mut info, regs.rip);
                    let _ = t.set_siginfo(&info);
                }
            }
            if t.set_regs(&regs).is_err() {
                return;
            }
            self.set_state(tid, State::Guest);
            return self.deliver(t, signal);
        }
        if !caught(tid, signal) {
            self.call_again(&t, signal);
            let _ = t.resume(How::Continue, signal);
            return;
        }
        self.interrupted_after_all(&mut regs);
        let Some((space, _)) = self.space_and_state(tid) else { return };
        let between = recreate::spot(&space.borrow(), regs.rip) == Spot::Between;
        let at = regs.rip;
        if !between {
            // Above all after an interrupted system call: the kernel may be about to restore a mask (sigsuspend, ppoll),
            // which setting one would undo.
            let Some((t, regs)) = self.step_to_boundary(t, regs) else { return };
            if t.set_regs(&regs).is_ok() && t.set_siginfo(&called_from(info, at, regs.rip)).is_ok() {
                self.set_state(tid, State::Guest);
                self.deliver(t, signal);
            }
            return;
        }
        let Ok(mask) = t.sigmask() else { return };
        if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
            return;
        }
        let Some((t, regs)) = self.step_to_boundary(t, regs) else { return };
        if t.set_regs(&regs).is_ok() && t.set_sigmask(mask).is_ok() && t.set_siginfo(&info).is_ok() {
            self.set_state(tid, State::Guest);
            self.deliver(t, signal);
        }
    }

    /// Steps until the guest's state is whole; registers are then the guest's, rip included.
    pub(super) fn step_to_boundary(&mut self, t: Stopped, regs: Regs) -> Option<(Stopped, Regs)> {
        let tid = t.tid();
        let (mut t, mut regs) = (t, regs);
        loop {
            let (space, _) = self.space_and_state(tid)?;
            let spot = match recreate::spot(&space.borrow(), regs.rip) {
                Spot::Stub(StubKind::Asked) => Spot::Stub(self.asked_for(tid)?),
                spot => spot,
            };
            match spot {
                Spot::Boundary(b) => {
                    self.at_boundary(tid, &b, &mut regs);
                    return Some((t, regs));
                }
                Spot::Stub(StubKind::Exit { target, .. }) => {
                    regs.rip = target;
                    return Some((t, regs));
                }
                Spot::Stub(StubKind::IblMiss { way }) => {
                    regs.rip = self.indirect_target(tid, &mut regs, way);
                    return Some((t, regs));
                }
                Spot::Stub(kind @ (StubKind::Transfer { .. } | StubKind::Return { .. })) => {
                    regs.rip = self.follow_on(tid, kind, &mut regs).target;
                    return Some((t, regs));
                }
                Spot::Stub(_) | Spot::Elsewhere => return Some((t, regs)),
                Spot::Between => {}
            }
            let point = space.borrow().trans.point(regs.rip);
            if let Some(Point::RepeatWalk { site }) = point
                && regs.rax != 0
            {
                // It would take very many steps.
                self.finish_repeat(tid, site, &mut regs);
                t.set_regs(&regs).ok()?;
            }
            let stub = space.borrow().stub_at(regs.rip);
            if let Some(kind @ (StubKind::Walk { .. } | StubKind::SavedX87 { .. })) = stub {
                self.serve_within(&t, kind);
                regs.rip += STUB_BYTES;
                t.set_regs(&regs).ok()?;
                continue;
            }
            match t.resume_and_wait(How::Step, 0) {
                Ok((next, Stop::Signal(libc::SIGTRAP))) => {
                    t = next;
                    regs = t.regs().ok()?;
                }
                Ok((next, Stop::Signal(_))) => {
                    // The instruction faults: its beginning is the boundary, and it will fault again.
                    regs = next.regs().ok()?;
                    if let Ok(info) = next.siginfo()
                        && self.trace_full(tid, &info, &mut regs)
                    {
                        next.set_regs(&regs).ok()?;
                        t = next;
                        continue;
                    }
                    if next.siginfo().is_ok_and(|info| self.is_unaligned_record(tid, &info, &regs)) {
                        match self.step_unchecked(next, regs)? {
                            (next, Stop::Signal(libc::SIGTRAP)) => {
                                t = next;
                                regs = t.regs().ok()?;
                                continue;
                            }
                            (next, stop) => {
                                self.stopped(next, stop);
                                return None;
                            }
                        }
                    }
                    if recreate::own_push(&space.borrow(), &mut regs) {
                        next.set_regs(&regs).ok()?;
                        t = next;
                        continue;
                    }
                    let slot = self.threads.get(&tid).map(|th| th.slot)?;
                    let pool = self.process_of(tid)?.pool.clone();
                    let b = recreate::at_fault(&space.borrow(), &mut regs, |o| {
                        pool.borrow().scratch_at(slot, u16::from(o))
                    });
                    if let Some(b) = b {
                        self.at_boundary(tid, &b, &mut regs);
                    }
                    return Some((next, regs));
                }
                Ok((next, stop)) => {
                    self.stopped(next, stop);
                    return None;
                }
                Err(_) => return None,
            }
        }
    }

    /// A signal while the thread makes a system call that grind follows. None of them blocks: it is over, or has not begun.
    fn signal_in_call(&mut self, t: Stopped, signal: i32, nr: i64, args: [u64; 6], next: u64) {
        let tid = t.tid();
        let Ok(info) = t.siginfo() else { return };
        if !caught(tid, signal) {
            let _ = t.resume(How::Continue, signal);
            return;
        }
        let (Some((space, _)), Ok(mask), Ok(rip)) = (self.space_and_state(tid), t.sigmask(), t.rip()) else { return };
        let mut t = t;
        if rip == space.borrow().gadget.0 {
            if t.set_sigmask(mask | ASYNCHRONOUS).is_err() {
                return;
            }
            match t.resume_and_wait(How::Step, 0) {
                Ok((next, Stop::Signal(_))) => t = next,
                Ok((next, stop)) => return self.stopped(next, stop),
                Err(_) => return,
            }
        }
        let Some((t, mut regs)) = self.finish_call(t, nr, args, next) else { return };
        regs.rip = next;
        if t.set_regs(&regs).is_ok() && t.set_sigmask(mask).is_ok() && t.set_siginfo(&info).is_ok() {
            self.set_state(tid, State::Guest);
            self.deliver(t, signal);
        }
    }

    /// Hands `signal` to a thread whose registers are the guest's.
    pub(super) fn deliver(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        if caught(tid, signal) && !blocked_fault(&t, signal) {
            let Some(t) = self.open_frame(t) else { return };
            self.set_state(tid, State::Handler);
            let _ = t.resume(How::Step, signal);
            return;
        }
        // Ignored, deadly or stopping. If the thread survives, it goes on as a guest.
        let Ok(rip) = t.rip() else { return };
        let deadly = bit(signal) & FAULTS != 0;
        if deadly {
            self.set_state(tid, State::Guest);
            let _ = t.resume(How::Continue, signal);
        } else {
            let standing = self.standing(tid, rip);
            let (t, id) = self.translation(t, rip, standing);
            let Some(t) = t else { return };
            if let Some(id) = id {
                let Some((space, _)) = self.space_and_state(tid) else { return };
                let body = space.borrow().trans.block(id).entry;
                self.set_state(tid, State::Cache);
                if t.set_rip(body).is_err() {
                    return;
                }
            }
            let _ = t.resume(How::Continue, signal);
        }
    }

    /// The kernel has built the frame; rip is the handler's.
    fn handler_begins(&mut self, t: Stopped) {
        let Ok(rip) = t.rip() else { return };
        self.tell_handler(&t);
        // Our stops are SIGTRAPs: a handler that blocks them would make the kernel reset the guest's own action for it.
        if let Ok(mask) = t.sigmask()
            && mask & bit(libc::SIGTRAP) != 0
        {
            let _ = t.set_sigmask(mask & !bit(libc::SIGTRAP));
            self.trap_blocked_in_handler(&t, true);
        } else {
            self.trap_blocked_in_handler(&t, false);
        }
        self.enter(t, rip);
    }
}

/// A fault whose signal is blocked kills, whatever its handler is.
fn blocked_fault(t: &Stopped, signal: i32) -> bool {
    bit(signal) & FAULTS != 0
        && t.sigmask().is_ok_and(|m| m & bit(signal) != 0)
        && t.siginfo().is_ok_and(|i| i.si_code > 0)
}

/// Whether the guest has a handler for `signal`.
pub(super) fn caught(tid: i32, signal: i32) -> bool {
    Status::of(tid).signals("SigCgt") & bit(signal) != 0
}

/// The address in the siginfo of a fault.
#[allow(unsafe_code)]
pub(super) fn address_of(info: &libc::siginfo_t) -> u64 {
    // SAFETY: only called for signals of the kernel's that carry an address, which SIGSYS has in the same place; the field
    // exists in every siginfo.
    unsafe { info.si_addr() as u64 }
}

/// What the handler is told of a signal: one because of a system call that a filter has caught names the address behind the
/// call, which is `cache` for the kernel and `guest` for the program.
pub(super) fn called_from(info: libc::siginfo_t, cache: u64, guest: u64) -> libc::siginfo_t {
    let mut info = info;
    if info.si_signo == libc::SIGSYS && info.si_code > 0 && address_of(&info) == cache {
        set_address(&mut info, guest);
    }
    info
}

/// Changes the address in the siginfo of a fault, or of a system call that was caught.
#[allow(unsafe_code)]
fn set_address(info: &mut libc::siginfo_t, address: u64) {
    // SAFETY: the kernel's siginfo_t has si_addr at byte 16 on x86-64 and is 128 bytes long.
    unsafe { std::ptr::from_mut(info).cast::<u64>().add(2).write(address) };
}
