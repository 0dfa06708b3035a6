//! Which threads have been told to stop and have not done so yet. To the kernel, a stop of any kind is an answer to
//! `PTRACE_INTERRUPT` (a new thread's birth that is reported just then, the end of a step, a system call's end), and
//! [`super::Stopped::resume_and_wait`] passes stops over; whoever waits for the thread would wait for ever.
//!
//! Invariant: a thread that has been told to stop is told again whenever it goes on, until it has stopped with
//! `PTRACE_EVENT_STOP` and the dispatcher has seen that. What must never happen: that a thread is told before the step that it is
//! to take, or before the signal of an instruction that it has executed: it would never get there.
//!
//! The list belongs to the thread that traces, as everything that ptrace knows does.

use std::cell::RefCell;

use grind_types::Tid;

thread_local! {
    /// Few at a time, and mostly none.
    static TOLD: RefCell<Vec<Tid>> = const { RefCell::new(Vec::new()) };
}

/// `tid` is to stop.
pub(super) fn told(tid: Tid) {
    TOLD.with_borrow_mut(|list| {
        if !list.contains(&tid) {
            list.push(tid);
        }
    });
}

/// `tid` has stopped, or ended.
pub(super) fn settled(tid: Tid) {
    TOLD.with_borrow_mut(|list| {
        if let Some(i) = list.iter().position(|&t| t == tid) {
            list.swap_remove(i);
        }
    });
}

/// Whether `tid` is still to stop.
pub(super) fn stops(tid: Tid) -> bool {
    TOLD.with_borrow(|list| list.contains(&tid))
}
