//! Limits of resources of a thread's process (`prlimit`), which the engine moves for its own sake only: what it maps counts, and so do
//! descriptors by which the program's memory becomes shared. Invariant: what is lent is given back before the thread goes on.

use grind_types::Tid;
use nix::libc;

/// A soft and a hard limit.
pub type Limits = [u64; 2];

/// What is limited, as in `RLIMIT_AS`.
pub type Resource = libc::__rlimit_resource_t;

/// The limits of `tid`'s process. `None`: it is gone, or another user's.
#[allow(unsafe_code)]
pub fn of(tid: Tid, resource: Resource) -> Option<Limits> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for the call.
    let r = unsafe { libc::prlimit(tid.0, resource, std::ptr::null(), &raw mut now) };
    (r == 0).then_some([now.rlim_cur, now.rlim_max])
}

/// Sets them. Whether the kernel lets it: to raise a hard limit needs a privilege.
#[allow(unsafe_code)]
pub fn set(tid: Tid, resource: Resource, [soft, hard]: Limits) -> bool {
    let new = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the structure is valid for the call.
    unsafe { libc::prlimit(tid.0, resource, &raw const new, std::ptr::null_mut()) == 0 }
}

/// A descriptor that a process may open besides those that it may, for as long as this lives.
#[derive(Debug)]
pub struct Descriptor {
    tid: Tid,
    limits: Limits,
}

impl Descriptor {
    /// Lends `tid`'s process one. `None`: nobody may.
    pub fn lend(tid: Tid) -> Option<Self> {
        let limits = of(tid, libc::RLIMIT_NOFILE)?;
        // Also above a limit that was set when more were open.
        let open = std::fs::read_dir(format!("/proc/{tid}/fd")).ok()?.count() as u64;
        let soft = open.max(limits[0]) + 1;
        set(tid, libc::RLIMIT_NOFILE, [soft, soft.max(limits[1])]).then_some(Self { tid, limits })
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // (Whoever is gone needs no limit, and to lower one is always allowed.)
        set(self.tid, libc::RLIMIT_NOFILE, self.limits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_descriptor_is_lent_and_taken_back() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
        // It has been loaded when it answers.
        child.stdin.as_mut().expect("a pipe").write_all(b"?").expect("a question");
        child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("an answer");
        let tid = Tid(child.id().cast_signed());
        let before = of(tid, libc::RLIMIT_NOFILE).expect("limits of a child");
        let open = std::fs::read_dir(format!("/proc/{tid}/fd")).expect("what is open").count() as u64;
        assert!(set(tid, libc::RLIMIT_NOFILE, [3, before[1]]));
        {
            let _lent = Descriptor::lend(tid).expect("a descriptor");
            assert_eq!(of(tid, libc::RLIMIT_NOFILE), Some([open.max(3) + 1, before[1]]));
        }
        assert_eq!(of(tid, libc::RLIMIT_NOFILE), Some([3, before[1]]));
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(Descriptor::lend(tid).is_none());
    }
}
