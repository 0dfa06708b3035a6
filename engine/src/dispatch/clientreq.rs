//! Client requests: rax points to the request's code and five arguments, rdx holds the default result and receives the
//! result. Requests of other tools, and those that make no sense here, get the default. Their numbers are at home in the crate
//! `grind-client-requests`.

use grind_client_requests::Request;
use grind_guest::printf;
use grind_guest::process::State;
use grind_guest::resume::go_on;
use grind_ptrace::{Regs, Stopped};
use grind_session::Instrumentation;
use grind_types::Query;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;

use super::Dispatcher;
use super::flush::Reason;

/// The tools whose requests are served, by the names that drivers give.
const CACHEGRIND: &str = "cachegrind";
pub(super) const CALLGRIND: &str = "callgrind";

/// Frames that are shown of a stack, as the reference does.
const SHOWN_FRAMES: usize = 12;

/// The longest text that is read at a request.
const MAX_TEXT: usize = printf::MAX_TEXT;

impl Dispatcher<'_> {
    /// Serves the request that `t` makes. `next` is the program's address behind it, `rip` that behind its stub.
    pub(super) fn client_request(&mut self, t: Stopped, mut regs: Regs, next: GuestAddr, rip: CacheAddr) {
        let tid = t.tid();
        let Some(p) = self.process_of(tid) else { return };
        let pid = p.pid;
        let mut words = [0u64; 6];
        for (i, w) in words.iter_mut().enumerate() {
            *w = p.memory.word(regs.rax + 8 * i as u64).unwrap_or(0);
        }
        let [code, a1, a2, ..] = words;
        log::debug!(target: subject::REQUEST, "thread {tid} makes request {code:#x} ({a1:#x}, {a2:#x})");
        let default = regs.rdx;
        match Request::from_code(code) {
            Some(Request::RunningOnValgrind) => regs.rdx = 1,
            Some(Request::DiscardTranslations) => {
                regs.rdx = 0;
                if a2 > 0 {
                    let Some(t) = self.own_code_cache(t) else { return };
                    if let Some((code_cache, _)) = self.code_cache_and_state(tid) {
                        code_cache.borrow_mut().kill_range(GuestAddr(a1), GuestAddr(a1.saturating_add(a2)));
                    }
                    return go_on(t, regs, rip);
                }
            }
            Some(Request::GetToolname) => {
                let name = self.session.tool_name().as_bytes();
                let full = name.len() as u64 + 1;
                if a2 > 0 {
                    let mut text = name[..name.len().min(a2 as usize - 1)].to_vec();
                    text.push(0);
                    let _ = p.memory.write(a1, &text);
                }
                regs.rdx = full;
            }
            Some(Request::CountErrors) => regs.rdx = 0,
            Some(
                request @ (Request::Printf
                | Request::PrintfBacktrace
                | Request::PrintfValistByRef
                | Request::PrintfBacktraceValistByRef),
            ) => {
                // The arguments are a va_list: of the older requests by value (as an address, all the same on x86-64).
                let text = p.memory.c_string(a1, MAX_TEXT).map(|f| printf::format(p, &f, a2));
                if let Some(text) = text {
                    regs.rdx = text.len() as u64;
                    let with_stack = matches!(request, Request::PrintfBacktrace | Request::PrintfBacktraceValistByRef);
                    let stack = with_stack.then(|| self.native_stack(tid, &regs, next, SHOWN_FRAMES)).flatten();
                    self.session.client_print(pid, &text);
                    if let (Some(stack), Some((code_cache, _))) = (stack, self.code_cache_and_state(tid)) {
                        let frames: Vec<_> = stack.frames.iter().map(|f| GuestAddr(f.lookup())).collect();
                        let modules = code_cache.borrow().mapped_modules();
                        self.session.client_stack(pid, &modules, &frames);
                    }
                }
            }
            Some(request @ (Request::CachegrindStartInstrumentation | Request::CachegrindStopInstrumentation))
                if self.session.tool_name() == CACHEGRIND =>
            {
                let on = request == Request::CachegrindStartInstrumentation;
                if p.counting == on {
                    let what = if on { Instrumentation::Start } else { Instrumentation::Stop };
                    self.session.redundant_instrumentation(pid, what);
                }
                return self.instrument_and_go_on(t, regs, rip, on);
            }
            Some(request) if self.session.tool_name() == CALLGRIND => {
                regs.rdx = 0;
                match request {
                    Request::CallgrindStartInstrumentation => return self.instrument_and_go_on(t, regs, rip, true),
                    Request::CallgrindStopInstrumentation => return self.instrument_and_go_on(t, regs, rip, false),
                    Request::CallgrindDumpStats => return self.ask_and_go_on(t, regs, rip, Query::Dump(None)),
                    Request::CallgrindDumpStatsAt => {
                        let text = p.memory.c_string(a1, MAX_TEXT).unwrap_or_default();
                        return self.ask_and_go_on(t, regs, rip, Query::Dump(Some(text)));
                    }
                    Request::CallgrindAddObjSkip => {
                        let path = p.memory.c_string(a1, MAX_TEXT).unwrap_or_default();
                        return self.skip_object(t, regs, rip, path);
                    }
                    Request::CallgrindAddDesc => {
                        let text = p.memory.c_string(a1, MAX_TEXT).unwrap_or_default();
                        let ask = Query::Describe(text);
                        self.tell(tid, |trace_channel, pid| trace_channel.asked(pid, Some(tid), &ask));
                    }
                    Request::CallgrindZeroStats => return self.ask_and_go_on(t, regs, rip, Query::Zero),
                    Request::CallgrindToggleCollect => {
                        self.toggle_collect(tid);
                        if self.follows(tid) {
                            regs.rip = rip.0;
                            return self.enter_anew(t, regs);
                        }
                    }
                    _ => regs.rdx = default,
                }
            }
            Some(
                request @ (Request::MalloclikeBlock
                | Request::FreelikeBlock
                | Request::ResizeinplaceBlock
                | Request::MempoolAlloc
                | Request::MempoolFree
                | Request::MempoolTrim
                | Request::MoveMempool
                | Request::MempoolChange
                | Request::DestroyMempool),
            ) => {
                let [_, arguments @ ..] = words;
                self.object_request(tid, request, arguments, next);
            }
            Some(Request::GrindPushContext) => return self.push_context(t, regs, rip, a1),
            Some(Request::GrindPopContext) => return self.pop_context(t, regs, rip),
            Some(Request::GrindNameContext) => regs.rdx = self.name_context(tid, a1),
            _ => {}
        }
        go_on(t, regs, rip);
    }

    fn instrument_and_go_on(&mut self, t: Stopped, mut regs: Regs, rip: CacheAddr, on: bool) {
        let tid = t.tid();
        regs.rdx = 0;
        if on && self.is_plain(tid) {
            return self.record_from_here(t, Regs { rip: rip.0, ..regs });
        }
        let Some(t) = self.instrument(t, on) else { return };
        regs.gs_base = self.gs(tid);
        if self.follows(tid) {
            regs.rip = rip.0;
            return self.enter_anew(t, regs);
        }
        go_on(t, regs, rip);
    }

    /// Functions of an object are skipped from here on. What is known of calls may be about them: everything begins anew.
    fn skip_object(&mut self, t: Stopped, mut regs: Regs, rip: CacheAddr, path: Vec<u8>) {
        let tid = t.tid();
        let Some(t) = self.wait_for_turn(t) else { return };
        let Some(pid) = self.process_of(tid).map(|p| p.pid) else { return };
        self.ask(pid, Some(tid), &Query::SkipObject(path));
        if let Some((code_cache, _)) = self.code_cache_and_state(tid) {
            code_cache.borrow_mut().trans.follow.forget_decisions();
        }
        if !self.follows(tid) || self.is_plain(tid) {
            return go_on(t, regs, rip);
        }
        regs.rip = rip.0;
        if t.set_regs(&regs).is_err() {
            return;
        }
        let Some(t) = self.leave_cache(t, regs) else { return };
        self.begin_flush(pid, Reason::Anew);
        if self.is_flushing(tid) {
            self.park(t, State::Guest);
        } else if let Ok(pc) = t.rip() {
            // Its creator waits in translations that cannot be thrown away now (vfork).
            self.enter(t, GuestAddr(pc));
        }
    }

    fn ask_and_go_on(&mut self, t: Stopped, regs: Regs, rip: CacheAddr, ask: Query) {
        let tid = t.tid();
        // Another thread has been first: this one comes up again when that has been dealt with.
        if let Some(t) = self.wait_for_turn(t)
            && let Some(pid) = self.process_of(tid).map(|p| p.pid)
        {
            self.ask(pid, Some(tid), &ask);
            go_on(t, regs, rip);
        }
    }
}
