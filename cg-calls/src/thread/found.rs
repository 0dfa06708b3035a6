//! Calls that were going on before anybody watched: the driver has found them on the thread's native stack. They become frames like
//! those that are pushed by calls, which began just now. Invariant: nothing hangs on their beginnings (no dump, no zeroing, no
//! change of collection), since those have not been seen; a dump after them is made.

use super::*;

/// A call that is going on, as the native stack has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native {
    /// An address within the function: where it is, or the call that it has made.
    pub at: u64,
    /// The stack pointer after the call: where its return address is.
    pub sp: u64,
    /// Where it returns to; 0 if nobody knows.
    pub returns_to: u64,
    /// It is a signal handler: the stack pointer of what it has interrupted.
    pub interrupted: Option<u64>,
}

impl Calls {
    /// The thread begins to be watched while these calls are going on, the innermost first. Instead of [`begin`](Calls::begin).
    pub fn begin_within(&mut self, code: &mut impl Code, calls: &[Native], now: &[u64]) {
        let Some((outermost, inner)) = calls.split_last() else { return };
        if self.begun {
            return;
        }
        self.finding = true;
        self.begun = true;
        let start = code.start(outermost.at);
        self.begin_root(code, start);
        for (i, call) in inner.iter().enumerate().rev() {
            let start = code.start(call.at);
            match call.interrupted {
                Some(sp) => {
                    // On a stack of its own, if its frame is not below what it has interrupted.
                    let all = &calls[..=i];
                    let lowest = all.iter().map(|c| c.sp).min().unwrap_or(call.sp);
                    let stack = (call.sp > sp || sp - call.sp > FAR).then(|| lowest.saturating_sub(FAR)..call.sp + 8);
                    self.signal_enter(code, start, sp, stack, now);
                }
                None => {
                    let site = code.site_of_call(calls[i + 1].at, call.returns_to);
                    self.push(code, site, start, call.sp, call.returns_to, None, now);
                }
            }
        }
        self.finding = false;
        self.followed.stale = true;
    }
}

/// A signal's frame is smaller than this, and so is what handlers need of a stack, as a rule.
const FAR: u64 = 1 << 16;
