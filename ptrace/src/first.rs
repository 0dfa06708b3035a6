//! The first process of a PID namespace. The kernel keeps it from being killed or stopped by its own kind: it drops what has no
//! handler, but for what comes from a namespace above, and a fault of its own. If it is traced, two things are different: a stop
//! that it sends to itself holds, and a fault does not kill it but happens again for ever. Here it is known, and so is which
//! stops would not hold.

use grind_types::Tid;

use nix::libc;

use super::{Stopped, is_sent};

impl Stopped {
    /// Whether its process is the first one of a namespace.
    pub fn is_first_of_namespace(&self) -> bool {
        is_first(self.tid)
    }

    /// Whether the SIGSTOP that it is about to be given would never have got to it if nobody traced it.
    #[allow(unsafe_code)]
    pub fn would_not_stop(&self) -> bool {
        // SAFETY: what a process has sent says who that is; if it is in a namespace above, it has no number.
        let from_inside = |info: &libc::siginfo_t| is_sent(info) && unsafe { info.si_pid() } != 0;
        self.is_first_of_namespace() && self.siginfo().is_ok_and(|info| from_inside(&info))
    }
}

/// Whether `tid` belongs to the first process of a PID namespace.
pub fn is_first(tid: Tid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|l| l.strip_prefix("NStgid:")).unwrap_or_default();
    ids.split_whitespace().last() == Some("1")
}
