//! Signals that were taken from the kernel while the engine had a thread do something for it: a step, a system call. Most are
//! blocked meanwhile, but not those that an instruction may cause, because the kernel takes a handler away if it has to force
//! one that is blocked; so one of these that somebody sends comes in the middle. It is kept here, and sent again when the
//! thread goes on by itself. What the kernel then says of its sender is replaced by what it had said before.
//!
//! Invariants: a signal that somebody has sent is never taken for one of the step's own instruction; none is lost, but where
//! the kernel itself would have kept just one; none is sent again before the thread may be interrupted.
//!
//! The list belongs to the thread that traces, as everything that ptrace knows does.

use std::cell::RefCell;

use grind_types::{Pid, Tid};

use nix::libc;

use super::Stopped;

/// Signals from here on are queued, and not kept once each.
const FIRST_QUEUED: i32 = 32;

struct Late {
    tid: Tid,
    info: libc::siginfo_t,
    /// It waits in the kernel.
    sent: bool,
}

thread_local! {
    /// Few at a time, and mostly none.
    static LATE: RefCell<Vec<Late>> = const { RefCell::new(Vec::new()) };
}

/// Whether somebody has sent a signal: another process, the thread itself, a timer; and it is not because of an instruction.
pub fn is_sent(info: &libc::siginfo_t) -> bool {
    info.si_code <= 0
}

/// `tid` is to get this later.
pub fn keep(tid: Tid, info: libc::siginfo_t) {
    LATE.with_borrow_mut(|late| {
        let once = info.si_signo < FIRST_QUEUED;
        let waits = |l: &Late| l.tid == tid && l.info.si_signo == info.si_signo && !l.sent;
        if !(once && late.iter().any(waits)) {
            late.push(Late { tid, info, sent: false });
        }
    });
}

/// What a signal says that `pid` of user `uid` has sent to a thread by `tgkill`.
pub fn sent_by(signo: i32, pid: Pid, uid: u32) -> libc::siginfo_t {
    let mut words = [0; 32];
    [words[0], words[2], words[4], words[5]] = [signo as u32, libc::SI_TKILL as u32, pid.0 as u32, uid];
    from_words(words)
}

/// What the sender says of a signal that is queued, by the bytes of its `siginfo_t`.
pub fn said(signo: i32, bytes: &[u8; 128]) -> libc::siginfo_t {
    let mut words = [0; 32];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words[0] = signo as u32;
    from_words(words)
}

/// What is said in these words.
#[allow(unsafe_code)]
fn from_words(words: [u32; 32]) -> libc::siginfo_t {
    // SAFETY: both have 128 bytes, and any bytes are a siginfo.
    unsafe { std::mem::transmute(words) }
}

/// `tid` goes on by itself: whatever was kept of its signals is sent to it. Not while one of the same kind waits, as that of a
/// breakpoint does where the thread has been told to stop right behind it: the kernel would keep just that one. It stops for that
/// at once, and goes on once more.
pub(super) fn send(tid: Tid) {
    LATE.with_borrow_mut(|late| {
        let mut kept = late.iter_mut().filter(|l| l.tid == tid && !l.sent).peekable();
        let waiting = if kept.peek().is_some() { waiting(tid) } else { 0 };
        for l in kept.filter(|l| l.info.si_signo >= FIRST_QUEUED || waiting >> (l.info.si_signo - 1) & 1 == 0) {
            l.sent = true;
            signal(tid, l.info.si_signo);
        }
    });
}

/// The signals that wait for this thread alone.
fn waiting(tid: Tid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

/// `t` has stopped for a signal: if it is one of ours, it is what it was before.
pub(super) fn arrived(t: &Stopped, signo: i32) {
    LATE.with_borrow_mut(|late| {
        let Some(i) = late.iter().position(|l| l.sent && l.tid == t.tid && l.info.si_signo == signo) else { return };
        if t.siginfo().is_ok_and(|now| is_ours(&now)) {
            let _ = t.set_siginfo(&late.swap_remove(i).info);
        }
    });
}

/// `tid` has ended.
pub fn ended(tid: Tid) {
    LATE.with_borrow_mut(|late| late.retain(|l| l.tid != tid));
}

/// The thread `from` is called `to` from now on, since it has executed a program.
pub fn renamed(from: Tid, to: Tid) {
    if from != to {
        ended(to);
        LATE.with_borrow_mut(|late| late.iter_mut().filter(|l| l.tid == from).for_each(|l| l.tid = to));
    }
}

/// Whether the kernel says that this process has sent it.
#[allow(unsafe_code)]
fn is_ours(info: &libc::siginfo_t) -> bool {
    // SAFETY: what `tgkill` sends has a sender.
    let by = |info: &libc::siginfo_t| unsafe { info.si_pid() };
    // From a namespace above the thread's own the sender has no number.
    info.si_code == libc::SI_TKILL && (by(info) == 0 || Pid(by(info)) == Pid::own())
}

/// Sends one.
#[allow(unsafe_code)]
fn signal(tid: Tid, signo: i32) {
    // SAFETY: the call takes no pointers. A thread that is gone needs no signal.
    unsafe { libc::syscall(libc::SYS_tkill, tid.0, signo) };
}
