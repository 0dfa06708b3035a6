//! Calls that emitted code follows: what happens where it cannot go on by itself. The sink, which is at hand, learns what has
//! happened since it was asked last, decides, and emitted code goes on with what it says; if that is so every time, a bridge
//! is built. Nothing here happens unless calls are followed.
//!
//! Invariants: the sink has caught up with a thread whenever anything about that thread is told to it, and emitted code goes
//! on with what the sink says afterwards; counters are counted once, by [`Dispatcher::collect_counters`].

use std::cell::RefCell;
use std::time::Instant;

use grind_code_cache::CodeCache;
use grind_fragments::fragment_table::{FragmentId, StubKind};
use grind_guest::counts::{exits, length_at};
use grind_guest::image::Remote;
use grind_guest::process::Process;
use grind_guest::slots::SlotId;
use grind_layout::{self as layout, SlotWord};
use grind_ptrace::kinds::address_of;
use grind_ptrace::{Regs, register};
use grind_trace::Transfer;
use grind_trace::follow::{CallContextId, Counts, Outcome, StackEffect, TOTALS};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use grind_types::{Pid, Tid};
use nix::libc;

use super::announce::announce;
use super::flush::Reason;
use super::{Dispatcher, How, Stopped};

/// What a transfer of control has led to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Followed {
    pub(super) target: GuestAddr,
    pub(super) call_context: CallContextId,
    outcome: Option<Outcome>,
}

/// Where what is called by code of this call context returns to, if it has to be translated for that: a return to code that has been
/// translated by then is the faster one.
fn returns_to(
    code_cache: &RefCell<CodeCache>,
    call_context: CallContextId,
    outcome: &Outcome,
) -> Option<(GuestAddr, CallContextId)> {
    match outcome.always {
        Some(StackEffect::Push { returns_to, .. })
            if returns_to != 0 && code_cache.borrow().executable(GuestAddr(returns_to)) =>
        {
            Some((GuestAddr(returns_to), code_cache.borrow_mut().trans.follow.caller(call_context)))
        }
        _ => None,
    }
}

impl Dispatcher<'_> {
    /// Whether emitted code follows the calls of `tid`.
    pub(super) fn follows(&self, tid: Tid) -> bool {
        self.settings.trace.followed()
            && self.process_of(tid).is_some_and(|p| p.code_cache.borrow().trace.settings.followed())
    }

    /// Follows the calls of processes that have told theirs for long enough.
    pub(super) fn follow_what_pays(&mut self) {
        if self.settings.trace.calls.is_none_or(|calls| calls.told_first.is_never()) || !self.can_follow() {
            return;
        }
        let due = |p: &&Process| {
            let code_cache = p.code_cache.borrow();
            let due = code_cache.follows_now() && !code_cache.trace.plain();
            if due {
                let (words, sites) = (code_cache.trace.told_words, code_cache.trans.trace_sites.len());
                log::debug!(target: subject::FLUSH, "process {}: {words} words of {sites} sites told", p.pid);
            }
            due
        };
        let due: Vec<Pid> = self.processes.values().filter(due).map(|p| p.pid).collect();
        for pid in due {
            self.begin_flush(pid, Reason::Anew);
        }
    }

    /// Whether there is somebody to decide on calls. To tell them needs no answer.
    pub(super) fn can_follow(&self) -> bool {
        self.trace_channel.as_ref().is_some_and(|trace_channel| trace_channel.health().is_whole())
    }

    fn slot_of(&self, tid: Tid) -> Option<SlotId> {
        self.threads.get(&tid).filter(|th| !th.folded).map(|th| th.slot)
    }

    /// Tells the sink what emitted code has done about the calls of `tid`.
    pub(super) fn pull_stack(&self, tid: Tid) {
        let (Some(trace_channel), Some(slot), Some(p)) = (&self.trace_channel, self.slot_of(tid), self.process_of(tid))
        else {
            return;
        };
        if !self.follows(tid) {
            return;
        }
        self.drain(tid, slot);
        announce(trace_channel, &mut p.code_cache.borrow_mut());
        let code_cache = p.code_cache.borrow();
        let Some(th) = self.threads.get(&tid) else { return };
        let calls = {
            let mut shown = th.frames.borrow_mut();
            let calls = p.pool.borrow().calls(slot, &shown, &code_cache.trans.follow.by_return);
            shown.truncate(calls.kept);
            shown.extend_from_slice(&calls.frames);
            calls
        };
        self.frames_known(tid, slot);
        let _ = trace_channel.ask(|sink| {
            sink.caught_up(p.pid, tid, &code_cache.trans.follow, &calls);
            Some(())
        });
    }

    /// Lets emitted code go on with what the sink says of `tid`; `made` is the call edge of the call that was decided on last.
    pub(super) fn push_stack(&self, tid: Tid, made: Option<u32>) {
        self.show(tid, made, false);
    }

    /// The same where whatever it knew is void.
    pub(super) fn push_stack_whole(&self, tid: Tid) {
        self.show(tid, None, true);
    }

    fn show(&self, tid: Tid, made: Option<u32>, all: bool) {
        let (Some(trace_channel), Some(slot), Some(p)) = (&self.trace_channel, self.slot_of(tid), self.process_of(tid))
        else {
            return;
        };
        if !self.follows(tid) {
            return;
        }
        let Some(th) = self.threads.get(&tid) else { return };
        if let Some(calls) = trace_channel.ask(|sink| sink.goes_on(p.pid, tid, made, all)) {
            let code_cache = p.code_cache.borrow();
            let mut shown = th.frames.borrow_mut();
            shown.truncate(calls.kept);
            shown.extend_from_slice(&calls.frames);
            p.pool.borrow().set_calls(slot, &calls, &code_cache.trans.follow.returns, code_cache.unmatched_return());
            drop(shown);
            self.frames_known(tid, slot);
        }
    }

    /// Where frames are told: the sink knows all that there are.
    fn frames_known(&self, tid: Tid, slot: SlotId) {
        let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { return };
        if self.settings.trace.simulates() {
            let entered = th.frames.borrow().last().map_or(0, |frame| frame.entered[0]).max(1);
            p.pool.borrow().frames_known(slot, entered);
        }
    }

    /// Whom code at `pc` counts for that `tid` is about to run.
    pub(super) fn call_context(&mut self, tid: Tid, pc: GuestAddr) -> CallContextId {
        if !self.follows(tid) {
            return CallContextId::NONE;
        }
        self.know_map(tid, pc);
        self.pull_stack(tid);
        let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid)) else {
            return CallContextId::NONE;
        };
        let call_context = {
            let code_cache = p.code_cache.borrow();
            trace_channel.ask(|sink| sink.runs(p.pid, tid, &code_cache.trans.follow, pc.0))
        };
        self.push_stack(tid, None);
        call_context.map_or(CallContextId::NONE, |s| p.code_cache.borrow_mut().trans.follow.call_context(s))
    }

    /// The instruction at `pc`, which `tid` is about to execute, has been executed before as far as its counts are concerned.
    pub(super) fn has_counted(&mut self, tid: Tid, pc: GuestAddr) {
        self.know_map(tid, pc);
        self.pull_stack(tid);
        if let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid)) {
            let _ = trace_channel.ask(|sink| {
                sink.has_counted(p.pid, tid, pc.0);
                Some(())
            });
        }
    }

    /// Sees to it that the sink knows what is mapped at `pc`, and the driver that code there may be new.
    fn know_map(&mut self, tid: Tid, pc: GuestAddr) {
        let Some(code_cache) = self.process_of(tid).map(|p| p.code_cache.clone()) else { return };
        let unknown = !code_cache.borrow().executable(pc);
        if unknown {
            self.learn_map(tid, &code_cache);
        }
        self.note_made(tid, &code_cache, pc);
        if unknown && code_cache.borrow().users > 1 {
            // It is not true of others.
            code_cache.borrow_mut().forget_map();
        }
    }

    /// Lets a thread go on as code of whatever call context the sink says; its registers are those that it has stopped with, or
    /// these.
    pub(super) fn enter_anew(&mut self, t: Stopped, regs: Regs) {
        if t.set_regs(&regs).is_ok()
            && let Some(t) = self.leave_cache(t, regs)
            && let Ok(rip) = t.rip()
        {
            self.enter(t, GuestAddr(rip));
        }
    }

    /// A stop at a transfer that emitted code could not follow.
    pub(super) fn follow_transfer(&mut self, t: Stopped, kind: StubKind) {
        let tid = t.tid();
        let Some(t) = (if self.hooks() { self.wait_for_turn(t) } else { Some(t) }) else { return };
        let began = Instant::now();
        if let StubKind::Transfer { told, .. } = kind
            && !self.decided.contains_key(&tid)
            && let Some(bridge) = self.has_met(tid, kind, self.target_of(tid, self.transfer(tid, told)))
        {
            if t.set_rip(bridge.0).is_ok() {
                t.go_on(How::Continue, 0);
            }
            return;
        }
        let Ok(mut regs) = t.regs() else { return };
        let followed = self.follow_on(tid, kind, &mut regs);
        self.serve_requests_of(tid);
        let Followed { target, call_context, outcome } = followed;
        // It keeps the registers that it has stopped with until it goes on.
        let (t, id) = self.translation(t, target, call_context);
        let Some(t) = t else { return };
        let Some(id) = id else {
            if t.set_regs(&regs).is_ok() {
                self.run_off(t, target);
            }
            return;
        };
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        if let Some(pid) = self.process_of(tid).map(|p| p.pid) {
            self.is_in_vain(pid, &code_cache, (kind, &followed), began);
        }
        let t = match (kind, outcome) {
            (StubKind::Transfer { told, call_context, root }, Some(outcome)) => {
                let t = match returns_to(&code_cache, call_context, &outcome) {
                    Some((pc, caller)) => self.translation(t, pc, caller).0,
                    None => Some(t),
                };
                if t.is_some() {
                    self.bridge(tid, (told, call_context, root), (target, id), outcome);
                }
                t
            }
            _ => Some(t),
        };
        let Some(t) = t else { return };
        regs.rip = code_cache.borrow().trans.block(id).entry.0;
        if t.set_regs(&regs).is_ok() {
            t.go_on(How::Continue, 0);
        }
    }

    /// The same for a thread that asks, and waits for an answer: where it goes on. `None`: that takes a stop, which follows.
    pub(super) fn follow_asked(&mut self, tid: Tid, kind: StubKind) -> Option<CacheAddr> {
        let began = Instant::now();
        let (code_cache, _) = self.code_cache_and_state(tid)?;
        let StubKind::Transfer { told, .. } = kind else { return None };
        let target = self.target_of(tid, self.transfer(tid, told));
        let pid = self.process_of(tid)?.pid;
        if !self.can_translate(tid, target) {
            return None;
        }
        if let Some(bridge) = self.has_met(tid, kind, target) {
            return Some(bridge);
        }
        let followed = self.decide(tid, kind, (told, target), self.slot_word(tid, SlotWord::T2));
        if self.requests_wait(tid) {
            // For that, it has to stand still like all others.
            self.decided.insert(tid, followed);
            return None;
        }
        let Some(id) = self.translation_asked(tid, target, followed.call_context) else {
            // There is nothing to be read, and the sink has been told.
            self.decided.insert(tid, followed);
            return None;
        };
        self.is_in_vain(pid, &code_cache, (kind, &followed), began);
        if let (StubKind::Transfer { told, call_context, root }, Some(outcome)) = (kind, followed.outcome) {
            if let Some((pc, caller)) = returns_to(&code_cache, call_context, &outcome)
                && self.can_translate(tid, pc)
            {
                self.translation_asked(tid, pc, caller);
            }
            self.bridge(tid, (told, call_context, root), (target, id), outcome);
        }
        if code_cache.borrow().is_full() {
            self.full = Some(pid);
        }
        let entry = code_cache.borrow().trans.block(id).entry;
        Some(entry)
    }

    /// Where a bridge to `target` begins that is built without asking the sink, if the sink has met such a transfer elsewhere. The
    /// thread goes through that, so nothing has to be told.
    fn has_met(&mut self, tid: Tid, kind: StubKind, target: GuestAddr) -> Option<CacheAddr> {
        let StubKind::Transfer { told, call_context, root } = kind else { return None };
        let shared = self.process_of(tid)?.code_cache.clone();
        let (id, outcome) = {
            let code_cache = shared.borrow();
            let book = &code_cache.trans.follow;
            if book.leads(root, target) {
                // It is not as it was met.
                return None;
            }
            let outcome = code_cache.has_met(told, call_context, target)?;
            // As long as that is there, it is the same function.
            (code_cache.trans.lookup(target, book.known_call_context(outcome.to)?)?, outcome)
        };
        if let Some((pc, caller)) = returns_to(&shared, call_context, &outcome)
            && self.can_translate(tid, pc)
        {
            self.translation_asked(tid, pc, caller);
        }
        let mut code_cache = shared.borrow_mut();
        if code_cache.trans.block(id).dead {
            return None;
        }
        code_cache.build_bridge((told, call_context, root), target, id, outcome);
        code_cache.trans.follow.bridge(root, target)
    }

    /// Whether code at `pc` can be translated without a stop of `tid`, if it can be read.
    fn can_translate(&self, tid: Tid, pc: GuestAddr) -> bool {
        self.process_of(tid).is_some_and(|p| {
            let code_cache = p.code_cache.borrow();
            !code_cache.is_full() && code_cache.is_ordinary(pc)
        })
    }

    /// The translation at `pc`, where that is so.
    fn translation_asked(&mut self, tid: Tid, pc: GuestAddr, call_context: CallContextId) -> Option<FragmentId> {
        let p = self.process_of(tid)?;
        let code_cache = p.code_cache.clone();
        let known = code_cache.borrow().trans.lookup(pc, call_context);
        if known.is_some() {
            return known;
        }
        self.note_made(tid, &code_cache, pc);
        let p = self.process_of(tid)?;
        code_cache.borrow_mut().translate(pc, call_context, &p.memory)
    }

    /// Whether the calls of `pid` are such that nearly each is decided on, as this one was: then to tell them is faster, and
    /// everything begins anew.
    fn is_in_vain(
        &mut self,
        pid: Pid,
        code_cache: &RefCell<CodeCache>,
        (kind, followed): (StubKind, &Followed),
        began: Instant,
    ) {
        let builds = matches!((kind, followed.outcome), (StubKind::Transfer { root, .. }, Some(o)) if o.always.is_some()
            && !code_cache.borrow().trans.follow.leads(root, followed.target));
        if !builds && code_cache.borrow_mut().trans.follow.in_vain(began) {
            self.full = Some(pid);
        }
    }

    /// Lets emitted code do from now on what `outcome` says of the transfer by `site` to `target`, whose translation is `id`.
    fn bridge(
        &mut self,
        tid: Tid,
        site: (u32, CallContextId, CacheAddr),
        (target, id): (GuestAddr, FragmentId),
        outcome: Outcome,
    ) {
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        if code_cache.borrow().trans.block(id).dead {
            return;
        }
        let made = code_cache.borrow_mut().build_bridge(site, target, id, outcome);
        let how = code_cache.borrow().told_transfer(site.0);
        let by_caller = self.settings.trace.calls.is_some_and(|calls| calls.by_caller);
        code_cache.borrow_mut().trans.follow.meet(how, target.0, &outcome, by_caller);
        if made.is_some() {
            self.push_stack(tid, made);
        }
    }

    fn transfer(&self, tid: Tid, told: u32) -> Option<Transfer> {
        self.process_of(tid)?.code_cache.borrow().told_transfer(told)
    }

    /// Where a transfer of `tid` leads that is no return.
    fn target_of(&self, tid: Tid, how: Option<Transfer>) -> GuestAddr {
        match how {
            Some(Transfer::CallIndirect | Transfer::JumpIndirect) => GuestAddr(self.slot_word(tid, layout::TARGET)),
            Some(Transfer::Call(to) | Transfer::Jump(to) | Transfer::Taken(to) | Transfer::Onward(to)) => to,
            Some(Transfer::Return) | None => GuestAddr(0),
        }
    }

    /// Has the sink decide on the transfer of a stub. Registers are the guest's afterwards, but for rip.
    pub(super) fn follow_on(&mut self, tid: Tid, kind: StubKind, regs: &mut Regs) -> Followed {
        let (told, target) = match kind {
            StubKind::Transfer { told, .. } => {
                let how = self.transfer(tid, told);
                if how.is_some_and(Transfer::is_indirect) {
                    regs.rcx = self.slot_word(tid, SlotWord::Rcx);
                }
                (told, self.target_of(tid, how))
            }
            StubKind::Return { in_rcx } => {
                let target = if in_rcx {
                    regs.rcx
                } else {
                    let memory = self.process_of(tid).map(|p| p.memory.word(regs.rsp.wrapping_sub(8)));
                    memory.flatten().unwrap_or(0)
                };
                regs.rcx = self.slot_word(tid, SlotWord::Rcx);
                (self.slot_word(tid, SlotWord::Returning) as u32, GuestAddr(target))
            }
            _ => (0, GuestAddr(0)),
        };
        match self.decided.remove(&tid) {
            Some(followed) => followed,
            None => self.decide(tid, kind, (told, target), regs.rsp),
        }
    }

    /// Has the sink decide on a transfer to `target` with this stack pointer.
    fn decide(&mut self, tid: Tid, kind: StubKind, (told, target): (u32, GuestAddr), sp: u64) -> Followed {
        let none = Followed { target, call_context: CallContextId::NONE, outcome: None };
        self.know_map(tid, target);
        self.pull_stack(tid);
        let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid)) else { return none };
        let outcome = {
            let code_cache = p.code_cache.borrow();
            trace_channel.ask(|sink| sink.transfer(p.pid, tid, &code_cache.trans.follow, told, target.0, sp))
        };
        self.push_stack(tid, None);
        let Some(outcome) = outcome else { return none };
        let book = &mut p.code_cache.borrow_mut().trans.follow;
        let call_context = book.call_context(outcome.to);
        // Code of another call context may have been left over from before everything began anew.
        let expected =
            matches!(kind, StubKind::Transfer { call_context, .. } if book.call_context(outcome.from) == call_context);
        Followed { target, call_context, outcome: expected.then_some(outcome) }
    }

    /// Whether functions may ask for something, and the sink does not do that by itself.
    fn hooks(&self) -> bool {
        self.settings.trace.calls.is_some_and(|calls| calls.followed && calls.hooks)
    }

    fn requests_wait(&self, tid: Tid) -> bool {
        let (Some(trace_channel), Some(p)) =
            (self.trace_channel.as_ref().filter(|_| self.hooks()), self.process_of(tid))
        else {
            return false;
        };
        trace_channel.ask(|sink| Some(sink.requests_wait(p.pid, tid))).unwrap_or(false)
    }

    /// Has the sink do what functions ask for that `tid`, which stands still, has entered or left. While another question is dealt with,
    /// that waits for the next time.
    pub(super) fn serve_requests_of(&mut self, tid: Tid) {
        if self.standstill.is_some() || !self.requests_wait(tid) {
            return;
        }
        let Some(pid) = self.process_of(tid).map(|p| p.pid) else { return };
        let held = self.stand_still_collected(pid, Some(tid));
        if let Some(trace_channel) = self.trace_channel.as_ref().filter(|_| self.processes.contains_key(&pid)) {
            let _ = trace_channel.ask(|sink| {
                sink.serve_requests(pid, tid);
                Some(())
            });
        }
        self.push_stack_all(pid);
        self.go_on_all(held);
    }

    /// A jump of `tid` is not among what has been executed, but has been made.
    pub(super) fn count_jump(&self, tid: Tid, counter: u32) {
        let (Some(slot), Some(p)) = (self.slot_of(tid), self.process_of(tid)) else { return };
        p.pool.borrow().take_off_counter(slot, counter, u64::MAX);
    }

    /// Hands over what `tid`'s counters have counted, which are zero afterwards.
    pub(super) fn collect_counters(&mut self, tid: Tid) {
        let Some(slot) = self.slot_of(tid).filter(|_| self.follows(tid)) else { return };
        self.pull_stack(tid);
        let (Some(trace_channel), Some(p), Some(th)) =
            (&self.trace_channel, self.process_of(tid), self.threads.get(&tid))
        else {
            return;
        };
        let code_cache = p.code_cache.borrow();
        let trans = &code_cache.trans;
        let mut counters = Vec::new();
        p.pool.borrow().add_counters(slot, trans.counters(), &mut counters);
        p.pool.borrow().clear_counters(slot, trans.counters());
        if th.counted_slot(p.counting) != Some(slot) {
            return;
        }
        let get = |counter: u32| counters.get(counter as usize).copied().unwrap_or(0);
        let mut counts = Counts::default();
        let mut collected = 0u64;
        for (&(_, site, call_context), n) in trans.follow.exits.iter().zip(exits(trans, &counters)) {
            if n != 0 {
                collected = collected.wrapping_add(n.wrapping_mul(length_at(trans, site)));
                counts.executed.push((site, call_context, n));
            }
        }
        for &(counter, site, call_context, target) in &trans.follow.jumps {
            if get(counter) != 0 {
                counts.jumps.push((site, call_context, target, get(counter)));
            }
        }
        for site in &trans.sites {
            if get(site.counter) != 0 {
                let call_context = trans.block(site.block).call_context;
                collected = collected.wrapping_add(get(site.counter));
                counts.repeated.push((trans.pc_of(site.block, site.index).0, call_context, get(site.counter)));
            }
        }
        for &(counter, call_edge, total) in &trans.follow.counters {
            let mut inclusive = [0; TOTALS];
            match (get(counter), total) {
                (0, _) => {}
                (n, None) => counts.call_edges.push((call_edge, n, inclusive)),
                (n, Some(total)) => {
                    inclusive[usize::from(total)] = n;
                    counts.call_edges.push((call_edge, 0, inclusive));
                }
            }
        }
        let _ = trace_channel.ask(|sink| {
            sink.counted(p.pid, tid, &trans.follow, &counts);
            Some(())
        });
        drop(code_cache);
        let pid = p.pid;
        if let Some(th) = self.threads.get_mut(&tid) {
            th.collected = th.collected.wrapping_add(collected);
        }
        if let Some(p) = self.processes.get_mut(&pid) {
            p.collected = p.collected.wrapping_add(collected);
        }
    }

    /// The same for all threads of a process.
    pub(super) fn collect_counters_all(&mut self, pid: Pid) {
        for tid in self.processes.get(&pid).map(|p| p.threads.clone()).unwrap_or_default() {
            self.collect_counters(tid);
        }
    }

    /// Emitted code goes on with what the sink says, for all threads of a process.
    pub(super) fn push_stack_all(&self, pid: Pid) {
        for &tid in self.processes.get(&pid).map(|p| &p.threads[..]).unwrap_or_default() {
            self.push_stack_whole(tid);
        }
    }

    /// Makes the slot that `t` is on ready for frames. `None` if the thread died over it.
    pub(super) fn ready_frames(&mut self, t: Stopped) -> Option<Stopped> {
        let tid = t.tid();
        let (Some(slot), Some(p)) = (self.slot_of(tid), self.process_of(tid)) else { return Some(t) };
        let (gs, gadget) = (p.pool.borrow().gs(slot), p.code_cache.borrow().gadget);
        p.pool.borrow().begin_calls(slot);
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        let page = gs + layout::FRAMES + layout::FRAMES_SIZE;
        remote.raw(libc::SYS_mprotect, [page, 4096, libc::PROT_NONE as u64, 0, 0, 0]);
        remote.thread.take()
    }

    /// A fault of `tid` where the frames that emitted code sees end: makes room for more.
    pub(super) fn frames_full(&self, tid: Tid, info: &libc::siginfo_t, regs: &mut Regs) -> bool {
        let Some(p) = self.process_of(tid).filter(|_| self.follows(tid)) else { return false };
        if p.pool.borrow().at(regs.gs_base).is_none() {
            return false;
        }
        let Some(base) = super::trace::base_of_access(&p.code_cache.borrow(), regs.rip) else { return false };
        let at = address_of(info).wrapping_sub(regs.gs_base + layout::FRAMES);
        if !(layout::FRAMES_SIZE..layout::FRAMES_SIZE + 4096).contains(&at) {
            return false;
        }
        self.pull_stack(tid);
        self.push_stack(tid, None);
        *register(regs, base.number() as u8) = self.slot_word(tid, SlotWord::TopFrame);
        true
    }
}
