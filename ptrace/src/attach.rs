//! Joining a thread that runs already, and leaving it to itself again. Until [`Stopped::follow`] it is looked at and no more: if the
//! tracer gives up or dies before, it goes on as if nothing had been.

#![allow(unsafe_code)]

use std::io;

use grind_types::Tid;

use nix::libc;
use nix::sys::ptrace;
use nix::unistd;

use super::{Gone, OPTIONS, Result, SUSPEND_SECCOMP, Stopped, interrupt, late, owed};

/// Attaches to `tid`, which may be of any process, and tells it to stop. Nothing that it starts is attached to yet.
pub fn join(tid: Tid) -> io::Result<()> {
    ptrace::seize(unistd::Pid::from_raw(tid.0), ptrace::Options::empty()).map_err(io::Error::from)?;
    interrupt(tid);
    Ok(())
}

impl Stopped {
    /// From now on what the thread starts is attached to, too, and it is killed if grind dies.
    pub fn follow(&self) -> Result<()> {
        // SAFETY: the request takes no pointers.
        let r = unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, self.tid.0, 0usize, OPTIONS as usize) };
        if r < 0 { Err(Gone) } else { Ok(()) }
    }

    /// Whether its own filters of system calls can be suspended.
    pub fn may_suspend_filters(&self) -> bool {
        // SAFETY: the requests take no pointers.
        unsafe {
            libc::ptrace(libc::PTRACE_SETOPTIONS, self.tid.0, 0usize, SUSPEND_SECCOMP as usize) == 0
                && libc::ptrace(libc::PTRACE_SETOPTIONS, self.tid.0, 0usize, 0usize) == 0
        }
    }

    /// Where its `struct rseq` is, if it has told the kernel of one (the kernel's `struct ptrace_rseq_configuration`).
    pub fn rseq(&self) -> Option<u64> {
        const GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
        let mut found = [0u64; 3];
        // SAFETY: the kernel writes at most as many bytes to `found` as it is told that there are.
        let r = unsafe { libc::ptrace(GET_RSEQ_CONFIGURATION, self.tid.0, size_of_val(&found), &raw mut found) };
        (r > 0 && found[0] != 0).then_some(found[0])
    }

    /// Lets the thread go for good, with the signals that were kept for it.
    pub fn leave(self) -> Result<()> {
        owed::settled(self.tid);
        late::send(self.tid);
        self.detach(0)
    }
}
