//! Which system calls that a stop has interrupted are made once more: by the kernel, or because nobody but the engine has
//! interrupted them. It looks at registers and at what the kernel says of a thread, and changes nothing.

use grind_types::Tid;

use nix::libc;

use crate::Regs;
use crate::kinds::bit;
use crate::status::Status;

/// How the kernel is going to let a thread make its system call once more.
#[derive(Clone, Copy, Debug)]
pub enum Restart {
    /// By the same call.
    Same,
    /// By `restart_syscall`, which knows how much of it is done.
    Continued,
}

/// Whether the kernel is going to do that: what it leaves in rax meanwhile.
pub fn restarts(regs: &Regs) -> Option<Restart> {
    const ERESTARTSYS: i64 = 512;
    const ERESTARTNOINTR: i64 = 513;
    const ERESTARTNOHAND: i64 = 514;
    const ERESTART_RESTARTBLOCK: i64 = 516;
    if (regs.orig_rax as i64) < 0 {
        return None;
    }
    match -(regs.rax as i64) {
        ERESTARTSYS | ERESTARTNOINTR | ERESTARTNOHAND => Some(Restart::Same),
        ERESTART_RESTARTBLOCK => Some(Restart::Continued),
        _ => None,
    }
}

/// The number of the system call that a thread, which nobody but the engine has interrupted, makes once more when it leaves the
/// cache.
pub fn makes_again(regs: &Regs) -> Option<u64> {
    match restarts(regs) {
        Some(Restart::Same) => Some(regs.orig_rax),
        Some(Restart::Continued) => Some(libc::SYS_restart_syscall as u64),
        None => interrupted(regs, true).then_some(regs.orig_rax),
    }
}

/// Signals that are ignored unless something is done about them.
const IGNORED_BY_DEFAULT: u64 = bit(libc::SIGCHLD) | bit(libc::SIGCONT) | bit(libc::SIGURG) | bit(libc::SIGWINCH);

/// Whether the registers are those of a thread whose call waits, was interrupted, and is not made again by the kernel; of
/// those with a time limit only if `limited`.
pub fn interrupted(regs: &Regs, limited: bool) -> bool {
    if regs.rax as i64 != -i64::from(libc::EINTR) {
        return false;
    }
    let forever = match regs.orig_rax as i64 {
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => (regs.r10 as i32) < 0,
        libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => regs.r10 == 0,
        libc::SYS_rt_sigtimedwait => regs.rdx == 0,
        libc::SYS_io_getevents => regs.r8 == 0,
        libc::SYS_semop => true,
        _ => return false,
    };
    forever || limited
}

/// Whether `tid` ignores `signal`, of its own accord or because everybody does.
pub fn ignored(tid: Tid, signal: i32) -> bool {
    ignored_by(&Status::of(tid)) & bit(signal) != 0
}

/// Whether a signal waits for `tid` that it ignores: it may have interrupted a call, though another is delivered first.
pub fn ignored_pending(tid: Tid) -> bool {
    let status = Status::of(tid);
    let waits = (status.signals("SigPnd") | status.signals("ShdPnd")) & !status.signals("SigBlk");
    waits & ignored_by(&status) != 0
}

fn ignored_by(status: &Status) -> u64 {
    // The first process of a namespace is not even killed.
    let default = if status.id("NStgid") == Some(1) { !0 } else { IGNORED_BY_DEFAULT };
    let by_default = default & !status.signals("SigCgt");
    by_default | status.signals("SigIgn")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::no_regs;

    fn regs(nr: i64, r10: u64, rdx: u64) -> Regs {
        Regs { orig_rax: nr as u64, rax: -i64::from(libc::EINTR) as u64, r10, rdx, ..no_regs() }
    }

    #[test]
    fn only_waits_without_end_are_made_again_after_a_signal() {
        let forever = u64::from(u32::MAX);
        assert!(interrupted(&regs(libc::SYS_epoll_wait, forever, 0), false));
        assert!(!interrupted(&regs(libc::SYS_epoll_wait, 100, 0), false));
        assert!(interrupted(&regs(libc::SYS_epoll_wait, 100, 0), true));
        assert!(interrupted(&regs(libc::SYS_rt_sigtimedwait, 8, 0), false));
        assert!(!interrupted(&regs(libc::SYS_rt_sigtimedwait, 8, 0x1000), false));
        // The kernel makes it again, unless there was a handler.
        assert!(!interrupted(&regs(libc::SYS_read, 0, 0), true));
        let mut ready = regs(libc::SYS_epoll_wait, forever, 0);
        ready.rax = 1;
        assert!(!interrupted(&ready, true));
    }
}
