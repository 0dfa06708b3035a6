//! What `/proc/TID/status` and `/proc/TID/limits` say of a thread. Of one that is gone they say nothing: empty sets, no tracer, no
//! limits.

use std::fmt::Display;

use grind_types::Tid;

/// A soft limit of a thread or process, by the name that the kernel gives it there (`Max open files`); `u64::MAX` if there is none.
pub fn limit(id: impl Display, name: &str) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse().unwrap_or(u64::MAX))
}

/// A thread's status at one moment.
pub struct Status(String);

impl Status {
    /// What it says now.
    pub fn of(tid: Tid) -> Self {
        Self(std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default())
    }

    /// The value of the line `name:`.
    fn value(&self, name: &str) -> &str {
        self.0.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().trim()
    }

    /// A set of signals, bit n-1 for signal n: `SigPnd` and the like.
    pub fn signals(&self, name: &str) -> u64 {
        u64::from_str_radix(self.value(name), 16).unwrap_or(0)
    }

    /// A number, or the last one of several: an id as the thread itself sees it (`NSpid`, `NStgid`).
    pub fn id(&self, name: &str) -> Option<i32> {
        self.value(name).split_whitespace().last()?.parse().ok()
    }

    /// Whether it has ended, and that has not been asked for.
    pub fn is_zombie(&self) -> bool {
        self.value("State").starts_with('Z')
    }

    /// The real user.
    pub fn user(&self) -> Option<u32> {
        self.value("Uid").split_whitespace().next()?.parse().ok()
    }

    /// Whether all of its users are those of another thread.
    pub fn same_user(&self, other: &Self) -> bool {
        self.value("Uid") == other.value("Uid")
    }

    /// Whether it has forbidden system calls to itself.
    pub fn is_confined(&self) -> bool {
        !matches!(self.value("Seccomp"), "" | "0")
    }

    /// Whether the calling thread is its tracer.
    pub fn is_traced_by_us(&self) -> bool {
        self.value("TracerPid").parse() == Ok(nix::unistd::gettid().as_raw())
    }
}
