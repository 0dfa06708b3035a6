//! Calls that emitted code follows by itself (see [`grind_trace::follow`]): the recorder's side. It decides what emitted code
//! has not met before, by the same rules as everywhere, and takes over what that has counted.
//!
//! Invariant: what is said of a call context to emitted code are numbers of the space ([`super::functions`]), never the
//! process's own.

use std::collections::HashMap;
use std::panic::resume_unwind;

use cg_calls::{Again, Code as _, Config, Here, JumpKind, Made, Settled, Shown, View};
use grind_trace::SpaceId;
use grind_trace::follow::{self, Book, CallContext, CallKind, Names, Outcome, StackEffect, WINDOW};
use grind_types::fault;
use grind_types::{Pid, Tid};

use super::super::code::Catalogue;
use super::functions::Functions;
use super::meaning::{Kind, NOTHING};
use super::process::{Process, lock};
use super::thread::Thread;
use super::{Recorder, Space};
use grind_session::broken;

impl Process {
    fn call_context(&mut self, here: Here, catalogue: &mut Catalogue, functions: &mut Functions) -> CallContext {
        CallContext {
            function: self.followed.number(here.function, catalogue, functions),
            callers: self.followed.callers_number(here.callers, catalogue, functions),
            level: here.level,
            skip: here.skip.and_then(|site| self.followed.told.get(&site).copied()),
            off: !here.collecting,
        }
    }

    fn here(&mut self, call_context: CallContext, catalogue: &mut Catalogue, functions: &Functions) -> Here {
        Here {
            function: self.followed.function(call_context.function, catalogue, functions),
            callers: self.followed.callers(call_context.callers, catalogue, functions),
            level: call_context.level,
            skip: call_context.skip.and_then(|told| self.hot.get(told as usize)).map(|hot| hot.site),
            collecting: !call_context.off,
        }
    }

    pub(super) fn again(
        &mut self,
        call_edge: u32,
        names: &Names,
        catalogue: &mut Catalogue,
        functions: &Functions,
    ) -> Option<Again> {
        let call_edge = *names.call_edges.get(call_edge as usize)?;
        let made = match call_edge.kind {
            CallKind::Call => Made::Call,
            CallKind::Jump => Made::Jump,
            CallKind::Stub => Made::Stub,
            CallKind::JumpToStub => Made::JumpToStub,
            CallKind::Through => Made::Through,
        };
        let site = self.hot.get(call_edge.site as usize)?.site;
        let from = self.here(names.call_contexts[call_edge.from.0 as usize], catalogue, functions);
        let to = self.here(names.call_contexts[call_edge.to.0 as usize], catalogue, functions);
        Some(Again { made, site, from, target: call_edge.target, to })
    }
}

/// A thread of a process, what that runs, and the names of its code, up to date.
fn with_thread<T>(
    p: &mut Process,
    tid: Tid,
    (spaces, config): (&mut HashMap<SpaceId, Space>, &Config),
    act: impl FnOnce(&mut Process, &mut Thread, &mut Catalogue, &mut Space) -> T,
) -> Option<T> {
    let space = spaces.get_mut(&p.space)?;
    let catalogue = p.catalogue.clone();
    let mut catalogue = lock(&catalogue);
    p.learn_space(space, &mut catalogue, config.costs);
    p.thread(tid, config);
    // Taken out, so that the process can be asked about everything else meanwhile.
    let mut thread = p.threads.remove(&tid)?;
    // Calls may have been told before.
    let (calls, now) = thread.live();
    calls.gate(true, now);
    let answer = broken::caught(|| act(p, &mut thread, &mut catalogue, space));
    p.threads.insert(tid, thread);
    Some(answer.unwrap_or_else(|panic| resume_unwind(panic)))
}

impl Recorder {
    /// The process, what it runs, and the names of its code, up to date.
    pub(super) fn with_followed<T>(
        &mut self,
        pid: Pid,
        tid: Tid,
        act: impl FnOnce(&mut Process, &mut Thread, &mut Catalogue, &mut Space) -> T,
    ) -> Option<T> {
        let Self { processes, spaces, config, .. } = self;
        with_thread(processes.get_mut(pid)?, tid, (spaces, config), act)
    }

    pub(super) fn pull_stack_followed(&mut self, pid: Pid, tid: Tid, book: &Book, calls: &follow::Calls) {
        let kept = self.config.kept;
        let _ = self.with_followed(pid, tid, |p, t, catalogue, space| {
            let frame = |f: &follow::Frame| Shown { sp: f.sp, entered: f.entered, call_edge: f.call_edge };
            let frames: Vec<Shown> = calls.frames.iter().map(frame).collect();
            let functions = &space.functions;
            let (live, now) = t.live();
            for (event, total) in kept.into_iter().zip(calls.totals) {
                event.into_iter().for_each(|event| now[event] = total);
            }
            live.pull_stack(catalogue, (calls.kept, &frames), now, |catalogue, call_edge| {
                p.again(call_edge, &book.names, catalogue, functions)
            });
        });
    }

    pub(super) fn show_followed(&mut self, pid: Pid, tid: Tid, made: Option<u32>, all: bool) -> Option<follow::Calls> {
        let Self { processes, spaces, config, .. } = self;
        let kept = config.kept;
        let (process, tid) = processes.shown(pid, tid)?;
        with_thread(process, tid, (spaces, config), |p, t, catalogue, space| {
            let (calls, now) = t.live();
            let totals = kept.map(|event| event.map_or(0, |event| now[event]));
            let View { kept, frames, hides } = calls.show(made, all, WINDOW);
            let frames =
                frames.into_iter().map(|f| follow::Frame { sp: f.sp, entered: f.entered, call_edge: f.call_edge });
            let active = calls.activities().into_iter();
            let active = active.map(|(f, n)| (p.followed.number(f, catalogue, &mut space.functions), n));
            follow::Calls { totals, kept, frames: frames.collect(), hides, active: active.collect() }
        })
    }

    pub(super) fn call_context_of(&mut self, pid: Pid, tid: Tid, pc: u64) -> Option<CallContext> {
        self.with_followed(pid, tid, |p, t, catalogue, space| {
            t.begun |= t.recording;
            let (calls, _) = t.live();
            calls.begin(catalogue, pc);
            let here = calls.here(catalogue);
            p.call_context(here, catalogue, &mut space.functions)
        })
    }

    /// The system call at `pc`, which the thread begins with, has counted before.
    pub(super) fn count_once(&mut self, pid: Pid, tid: Tid, pc: u64) {
        let _ = self.with_followed(pid, tid, |p, t, catalogue, space| {
            if t.recording && t.counted.is_none() {
                t.begun = true;
                t.calls.begin(catalogue, pc);
                t.calls.begin_ahead(1);
                let here = t.calls.here(catalogue);
                t.counted = Some((pc, p.call_context(here, catalogue, &mut space.functions)));
            }
        });
    }

    pub(super) fn decide(&mut self, pid: Pid, tid: Tid, told: u32, target: u64, sp: u64) -> Option<Outcome> {
        self.with_followed(pid, tid, |p, t, catalogue, space| {
            fault::point("transfer");
            let hot = *p.hot.get(told as usize)?;
            t.begun |= t.recording;
            let start = if hot.counter == NOTHING {
                catalogue.site(hot.site).addr
            } else {
                p.counters[hot.counter as usize].start
            };
            let (calls, now) = t.live();
            calls.begin(catalogue, start);
            let from = calls.here(catalogue);
            let _ = calls.take_settled();
            match hot.kind {
                Kind::Call | Kind::CallIndirect => calls.call(catalogue, hot.site, target, sp, now),
                Kind::Return => calls.ret(catalogue, hot.site, target, sp, now),
                Kind::JumpIndirect => calls.jump(catalogue, hot.site, target, sp, JumpKind::Always, now),
                Kind::Jump(kind) => calls.jump(catalogue, hot.site, target, sp, kind, now),
                Kind::Block | Kind::Within(_) | Kind::Executions | Kind::Other => return None,
            };
            let settled = calls.take_settled();
            let to = calls.here(catalogue);
            let always = settled.map(|settled| match settled {
                Settled::Nothing => StackEffect::Nothing,
                Settled::Push { made, levels, returns_to } => {
                    let kind = match made {
                        Made::Call => CallKind::Call,
                        Made::Jump => CallKind::Jump,
                        Made::Stub => CallKind::Stub,
                        Made::JumpToStub => CallKind::JumpToStub,
                        Made::Through => CallKind::Through,
                    };
                    StackEffect::Push { kind, levels, returns_to }
                }
            });
            // A skipped call that no site is known for cannot be told from others.
            let known = |here: Here, call_context: CallContext| here.skip.is_some() == call_context.skip.is_some();
            let call_contexts = (
                p.call_context(from, catalogue, &mut space.functions),
                p.call_context(to, catalogue, &mut space.functions),
            );
            let always = always.filter(|_| known(from, call_contexts.0) && known(to, call_contexts.1));
            Some(Outcome { from: call_contexts.0, to: call_contexts.1, always })
        })?
    }

    pub(super) fn take_counts(&mut self, pid: Pid, tid: Tid, book: &Book, counts: &follow::Counts) {
        let width = self.config.costs;
        let _ = self.with_followed(pid, tid, |p, t, catalogue, space| {
            let functions = &space.functions;
            let call_context = |id: follow::CallContextId| book.names.call_contexts[id.0 as usize];
            // Where there was no answer, there is no call context: it was the running function that went on, as far as anybody knows.
            let unknown = t.begun.then(|| t.calls.here(catalogue));
            let place = |p: &mut Process, catalogue: &mut Catalogue, id: follow::CallContextId| match id {
                follow::CallContextId::NONE => unknown,
                _ => Some(p.here(call_context(id), catalogue, functions)),
            };
            for &(told, id, n) in &counts.executed {
                let Some(hot) = p.hot.get(told as usize).copied() else { continue };
                // What it ends is a block of its own, and the first that runs.
                let n = t.counts((p.counters[hot.counter as usize].start, call_context(id)), n);
                let Some(here) = place(p, catalogue, id) else { continue };
                t.calls.executed(catalogue, here, hot.counter, n, &p.costs[hot.counter as usize * width..][..width]);
                t.blocks = t.blocks.wrapping_add(n.wrapping_mul(hot.ends.into()));
                if let Kind::Within(kind) = hot.kind {
                    t.calls.jumped(catalogue, here, (hot.site, hot.target), kind, n);
                }
            }
            for &(told, id, target, n) in &counts.jumps {
                let Some(hot) = p.hot.get(told as usize).copied() else { continue };
                let kind = match hot.kind {
                    Kind::Jump(kind) | Kind::Within(kind) => kind,
                    _ => JumpKind::Always,
                };
                let Some(here) = place(p, catalogue, id) else { continue };
                t.calls.jumped(catalogue, here, (hot.site, target), kind, n);
            }
            for &(addr, id, n) in &counts.repeated {
                let counter = p.single_counter(catalogue, addr);
                let Some(here) = place(p, catalogue, id) else { continue };
                t.calls.executed_again(catalogue, here, counter, n);
            }
            for &(call_edge, calls, inclusive) in &counts.call_edges {
                let Some(again) = p.again(call_edge, &book.names, catalogue, functions) else { continue };
                t.calls.called(catalogue, call_edge, &again, calls, inclusive);
            }
        });
    }
}
