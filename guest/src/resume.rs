//! How a stopped thread goes on that stands before a system call, or in the middle of something. Invariant: each of these lets the
//! thread go on exactly once, or says how that is to be done.

use grind_ptrace::kinds::fault_pending;
use grind_ptrace::{How, Regs, Stopped};
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};

use crate::process::State;

/// Goes on at `rip`.
pub fn go_on(t: Stopped, mut regs: Regs, rip: CacheAddr) {
    regs.rip = rip.0;
    if t.set_regs(&regs).is_ok() {
        t.go_on(How::Continue, 0);
    }
}

/// Runs the system call at `go`.
pub fn run(t: Stopped, go: CacheAddr, how: How) {
    if t.set_rip(go.0).is_ok() {
        t.go_on(how, 0);
    }
}

/// Goes on as if the system call at `go` had returned `result`.
pub fn answer(t: Stopped, mut regs: Regs, go: CacheAddr, next: GuestAddr, result: i64) {
    regs.rax = result as u64;
    regs.rcx = next.0;
    regs.r11 = regs.eflags;
    go_on(t, regs, go.plus(2));
}

/// How a thread that has been told to stop has to go on first, if it is in the middle of something that ends with a stop of its
/// own.
pub fn middle(tid: Tid, state: State) -> Option<How> {
    match state {
        State::InPlace { .. } | State::Handler | State::SigReturn { .. } => Some(How::Step),
        // It has got to a stub, or faulted, and this stop has only come first.
        _ => fault_pending(tid).then_some(How::Continue),
    }
}
