//! To the boundary of a guest's instruction, from wherever a thread stands in translated code: what it has executed is booked,
//! and its registers become the guest's. Invariants: what counts a block, and what has been executed of it, agree afterwards;
//! a step that faults has not been executed.

use grind_fragments::fragment_table::{NO_REG, STUB_BYTES, StateMapEntry, StubKind};
use grind_guest::recover::{self, Boundary, CachePosition};
use grind_layout::SlotWord;
use grind_ptrace::{How, Regs, Stop, Stopped, register};
use grind_types::Tid;
use grind_types::addr::CacheAddr;
use nix::libc;

use super::{Dispatcher, trapflag};

impl Dispatcher<'_> {
    /// Books what has been executed of a block that was left at `b`.
    pub(super) fn correct(&mut self, tid: Tid, b: &Boundary, regs: &Regs) {
        let Some(th) = self.threads.get(&tid) else { return };
        let Some(p) = self.processes.get_mut(&th.pid) else { return };
        if th.counted_slot(p.counting) != Some(th.slot) {
            return;
        }
        let block = *p.code_cache.borrow().trans.block(b.block);
        if let Some(told) = block.told {
            let counted = if b.bumped { usize::from(block.n) } else { 0 };
            let deferred = {
                let trans = &p.code_cache.borrow().trans;
                // What led there has been counted with it, if it has; but then what was to be counted with the next one has not.
                let with = if b.bumped { trans.taken_off.get(&b.block) } else { Some(&b.block) };
                with.and_then(|with| trans.deferred.get(with)).cloned().unwrap_or_default()
            };
            for part in deferred.parts {
                self.tell_correction(tid, part.block, 0, part.executed.into());
                part.jump.into_iter().for_each(|counter| self.count_jump(tid, counter));
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
                corrections.take_off(rep.counter, left);
            }
            if let Some(site) = rep.site {
                self.record_repeat(tid, site, regs, false);
            }
        }
    }

    /// Gives the guest its registers at `b`; rip becomes the original address.
    pub(super) fn at_boundary(&mut self, tid: Tid, b: &Boundary, regs: &mut Regs) {
        self.leaves_before_call(tid, b);
        self.correct(tid, b, regs);
        self.call_leaves(tid, b);
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        regs.rip = code_cache.borrow().trans.pc_of(b.block, b.executed).0;
        for (r, word) in b.held.into_iter().flatten().zip([SlotWord::Held1, SlotWord::Held2]) {
            if r != NO_REG {
                *register(regs, r) = self.slot_word(tid, word);
            }
        }
        if b.after_call {
            regs.rcx = regs.rip;
        }
    }

    /// Steps until the guest's state is whole; registers are then the guest's, rip included.
    pub(super) fn step_to_boundary(&mut self, t: Stopped, regs: Regs) -> Option<(Stopped, Regs)> {
        let tid = t.tid();
        let (mut t, mut regs) = (t, regs);
        loop {
            let (code_cache, _) = self.code_cache_and_state(tid)?;
            let cache_position = match recover::cache_position(&code_cache.borrow(), regs.rip) {
                CachePosition::Stub(StubKind::Asked) => CachePosition::Stub(self.asked_for(tid)?),
                cache_position => cache_position,
            };
            match cache_position {
                CachePosition::Boundary(b) => {
                    self.at_boundary(tid, &b, &mut regs);
                    return Some((t, regs));
                }
                CachePosition::Stub(StubKind::Exit { target, .. }) => {
                    regs.rip = target.0;
                    return Some((t, regs));
                }
                CachePosition::Stub(StubKind::IblMiss { way }) => {
                    regs.rip = self.indirect_target(tid, &mut regs, way).0;
                    return Some((t, regs));
                }
                CachePosition::Stub(kind @ (StubKind::Transfer { .. } | StubKind::Return { .. })) => {
                    regs.rip = self.follow_on(tid, kind, &mut regs).target.0;
                    return Some((t, regs));
                }
                CachePosition::Stub(_) | CachePosition::Elsewhere => return Some((t, regs)),
                CachePosition::Between => {}
            }
            let entry = code_cache.borrow().trans.state_map_entry(CacheAddr(regs.rip));
            if let Some(StateMapEntry::RepeatMissPath { site }) = entry
                && regs.rax != 0
            {
                // It would take very many steps.
                self.finish_repeat(tid, site, &mut regs);
                t.set_regs(&regs).ok()?;
            }
            let stub = code_cache.borrow().stub_at(CacheAddr(regs.rip));
            if let Some(
                kind @ (StubKind::MissPath { .. }
                | StubKind::SavedX87 { .. }
                | StubKind::Watched { .. }
                | StubKind::Framed { .. }),
            ) = stub
            {
                t = self.ready_to_serve(t, kind)?;
                self.serve_within(&t, kind);
                regs.rip += STUB_BYTES;
                t.set_regs(&regs).ok()?;
                continue;
            }
            let pushes_flags = !trapflag::traps(&regs) && code_cache.borrow().pushes_flags_at(CacheAddr(regs.rip));
            match t.resume_and_wait(How::Step, 0) {
                Ok((next, Stop::Signal(libc::SIGTRAP))) => {
                    t = next;
                    regs = t.regs().ok()?;
                    if pushes_flags {
                        self.hide_step_at(tid, regs.rsp);
                    }
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
                    if recover::own_push(&code_cache.borrow(), &mut regs) {
                        next.set_regs(&regs).ok()?;
                        t = next;
                        continue;
                    }
                    let slot = self.threads.get(&tid).map(|th| th.slot)?;
                    let pool = self.process_of(tid)?.pool.clone();
                    let b = recover::at_fault(&code_cache.borrow(), &mut regs, |o| {
                        pool.borrow().slot_word_at(slot, u16::from(o))
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
}
