//! How long system calls take, if somebody wants to know: each of them stops when it begins and when it ends.
//!
//! A call that is interrupted by a stop of another kind (a signal, a new thread) is timed up to there. If new code makes it once more, it
//! is the same call, which goes on. What a call does is never changed. Nothing here happens unless system calls are recorded.

use std::time::{Duration, Instant};

use grind_ptrace::restart::makes_again;
use grind_ptrace::schedule::Schedule;
use grind_ptrace::{How, Stopped};
use grind_trace::SystemCall;
use grind_types::Tid;
use grind_types::addr::GuestAddr;

use super::Dispatcher;

/// A system call that is being made.
#[derive(Debug)]
pub(super) struct Timed {
    addr: GuestAddr,
    /// When it began, and how much processor time the thread had used then.
    begun: Option<(Instant, Duration)>,
}

impl Dispatcher<'_> {
    /// Thread `tid` is about to make the system call that ends at `next`; answers how it is to go on.
    pub(super) fn time_call(&mut self, tid: Tid, next: GuestAddr) -> How {
        if !self.process_of(tid).is_some_and(|p| p.code_cache.borrow().trace.settings.system_calls) {
            return How::Continue;
        }
        // The instruction has two bytes.
        let addr = next.minus(2);
        self.timed.insert(tid, Timed { addr, begun: None });
        if self.was_interrupted.is_none_or(|call| call.pc != addr) {
            let call = SystemCall { addr, begins: true, ends: false, elapsed: 0, processor: 0 };
            self.tell(tid, |trace_channel, pid| trace_channel.system_call(pid, tid, call));
        }
        How::Syscall
    }

    /// A stop at the entry into or the exit from a system call.
    pub(super) fn call_stop(&mut self, t: Stopped) {
        let how = match self.timed.get_mut(&t.tid()) {
            Some(timed) if timed.begun.is_none() => {
                timed.begun = Some((Instant::now(), Schedule::of(t.tid()).ran));
                How::Syscall
            }
            _ => {
                // An interrupted call that may go on ends here as well.
                let over = t.regs().map_or(true, |regs| makes_again(&regs).is_none());
                self.call_left(t.tid(), over);
                How::Continue
            }
        };
        t.go_on(how, 0);
    }

    /// The thread has stopped: a system call that it was in counts up to here, and may be `over`.
    pub(super) fn call_left(&mut self, tid: Tid, over: bool) {
        if !self.settings.trace.system_calls {
            return;
        }
        let Some(Timed { addr, begun: Some((start, used)) }) = self.timed.remove(&tid) else { return };
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let elapsed = nanoseconds(start.elapsed());
        let processor = nanoseconds(Schedule::of(tid).ran.saturating_sub(used));
        let call = SystemCall { addr, begins: false, ends: over, elapsed, processor };
        self.tell(tid, |trace_channel, pid| trace_channel.system_call(pid, tid, call));
    }
}
