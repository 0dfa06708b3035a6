//! Client requests: rax points to the request's code and five arguments, rdx holds the default result and receives the
//! result. Requests of other tools, and those that make no sense here, get the default. Their numbers are at home in the crate
//! `grind-client-requests`.

use grind_client_requests::Request;
use grind_guest::process::{Process, State};
use grind_ptrace::{Regs, Stopped};
use grind_session::Instrumentation;
use grind_types::Query;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;

use super::flush::Reason;
use super::{Dispatcher, go_on};

/// The tools whose requests are served, by the names that drivers give.
const CACHEGRIND: &str = "cachegrind";
pub(super) const CALLGRIND: &str = "callgrind";

/// Frames that are shown of a stack, as the reference does.
const SHOWN_FRAMES: usize = 12;

/// The longest text that is printed at a request.
const MAX_TEXT: usize = 1 << 16;

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
                let text = p.memory.c_string(a1, MAX_TEXT).map(|f| format(p, &f, &mut VaList { at: a2 }));
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

/// A `va_list` in the guest (System V ABI for x86-64, 3.5.7): offsets into a register save area, then the stack.
struct VaList {
    at: u64,
}

impl VaList {
    fn general(&mut self, p: &Process) -> u64 {
        self.next(p, 0, 48, 8)
    }

    fn floating(&mut self, p: &Process) -> f64 {
        f64::from_bits(self.next(p, 4, 176, 16))
    }

    fn next(&mut self, p: &Process, field: u64, limit: u32, step: u32) -> u64 {
        let m = &p.memory;
        let offset = m.array::<4>(self.at + field).map_or(limit, u32::from_le_bytes);
        if offset < limit {
            let _ = m.write(self.at + field, &(offset + step).to_le_bytes());
            let area = m.word(self.at + 16).unwrap_or(0);
            m.word(area + u64::from(offset)).unwrap_or(0)
        } else {
            let stack = m.word(self.at + 8).unwrap_or(0);
            let _ = m.write(self.at + 8, &(stack + 8).to_le_bytes());
            m.word(stack).unwrap_or(0)
        }
    }
}

/// `printf` with the conversions that C programs use; an unknown one is printed as it is.
fn format(p: &Process, f: &[u8], args: &mut VaList) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = f;
    while let Some((&c, tail)) = rest.split_first() {
        rest = tail;
        if c != b'%' {
            out.push(c);
            continue;
        }
        let start = rest;
        let flags_end = rest.iter().position(|b| !b"-+ #0'".contains(b)).unwrap_or(rest.len());
        let flags = &rest[..flags_end];
        rest = &rest[flags_end..];
        let mut left = flags.contains(&b'-');
        let number = |rest: &mut &[u8], args: &mut VaList| -> Option<i64> {
            if rest.first() == Some(&b'*') {
                *rest = &rest[1..];
                return Some(i64::from(args.general(p) as i32));
            }
            let n = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, tail) = rest.split_at(n);
            *rest = tail;
            std::str::from_utf8(digits).ok()?.parse().ok()
        };
        let mut width = number(&mut rest, args).unwrap_or(0);
        if width < 0 {
            left = true;
            width = -width;
        }
        let mut precision = None;
        if rest.first() == Some(&b'.') {
            rest = &rest[1..];
            precision = Some(number(&mut rest, args).unwrap_or(0));
        }
        let size_end = rest.iter().position(|b| !b"hlLqjzt".contains(b)).unwrap_or(rest.len());
        let size = &rest[..size_end];
        rest = &rest[size_end..];
        let Some((&conversion, tail)) = rest.split_first() else {
            out.push(b'%');
            out.extend_from_slice(start);
            break;
        };
        rest = tail;
        let wide = size.iter().any(|b| b"lqjzt".contains(b));
        let signed = |v: u64| match size {
            b"hh" => i64::from(v as i8),
            b"h" => i64::from(v as i16),
            _ if wide => v as i64,
            _ => i64::from(v as i32),
        };
        let unsigned = |v: u64| match size {
            b"hh" => u64::from(v as u8),
            b"h" => u64::from(v as u16),
            _ if wide => v,
            _ => u64::from(v as u32),
        };
        let digits = |s: String| match precision {
            Some(n) if (s.len() as i64) < n => "0".repeat((n - s.len() as i64) as usize) + &s,
            _ => s,
        };
        let (sign, body): (&str, Vec<u8>) = match conversion {
            b'%' => ("", b"%".to_vec()),
            b'c' => ("", vec![args.general(p) as u8]),
            b's' => {
                let at = args.general(p);
                let limit = precision.map_or(MAX_TEXT, |n| n.max(0) as usize);
                ("", p.memory.c_string(at, limit).unwrap_or_else(|| b"(null)".to_vec()))
            }
            b'd' | b'i' => {
                let v = signed(args.general(p));
                let sign = if v < 0 {
                    "-"
                } else if flags.contains(&b'+') {
                    "+"
                } else if flags.contains(&b' ') {
                    " "
                } else {
                    ""
                };
                (sign, digits(v.unsigned_abs().to_string()).into_bytes())
            }
            b'u' => ("", digits(unsigned(args.general(p)).to_string()).into_bytes()),
            b'x' | b'X' | b'o' => {
                let v = unsigned(args.general(p));
                let s = match conversion {
                    b'x' => format!("{v:x}"),
                    b'X' => format!("{v:X}"),
                    _ => format!("{v:o}"),
                };
                let prefix = match (flags.contains(&b'#') && v != 0, conversion) {
                    (true, b'x') => "0x",
                    (true, b'X') => "0X",
                    (true, b'o') => "0",
                    _ => "",
                };
                (prefix, digits(s).into_bytes())
            }
            b'p' => ("0x", format!("{:x}", args.general(p)).into_bytes()),
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
                let v = args.floating(p);
                let n = precision.unwrap_or(6).max(0) as usize;
                let s = match conversion {
                    b'e' | b'E' => format!("{:.n$e}", v.abs()),
                    b'g' | b'G' => format!("{}", v.abs()),
                    _ => format!("{:.n$}", v.abs()),
                };
                (if v.is_sign_negative() { "-" } else { "" }, s.into_bytes())
            }
            _ => {
                out.push(b'%');
                rest = start;
                continue;
            }
        };
        let pad = (width as usize).saturating_sub(sign.len() + body.len());
        let zero = flags.contains(&b'0') && !left && !b"sc%".contains(&conversion);
        let fill = |n: usize, c: u8| std::iter::repeat_n(c, n);
        if !left && !zero {
            out.extend(fill(pad, b' '));
        }
        out.extend_from_slice(sign.as_bytes());
        if zero {
            out.extend(fill(pad, b'0'));
        }
        out.extend_from_slice(&body);
        if left {
            out.extend(fill(pad, b' '));
        }
    }
    out
}
