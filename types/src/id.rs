//! Who is meant: a process or one of its threads. To the kernel both are numbers of one kind, and the first thread of a process has
//! the process's; here each has its type, so that nobody asks a thread for what its process has, or the other way round. Who knows
//! that a thread is the first one of its process says so ([`Tid::main_of`], [`Pid::led_by`]).
//!
//! The numbers are those of grind's own PID namespace. They are taken out only to ask the kernel, to be written, or to be told to a
//! crate that knows of no processes.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub i32);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// A process (a thread group).
    Pid
}
id! {
    /// A thread, of whichever process.
    Tid
}

impl Pid {
    /// That of grind itself.
    #[must_use]
    pub fn own() -> Self {
        Self(std::process::id().cast_signed())
    }

    /// The process whose first thread this is.
    #[must_use]
    pub const fn led_by(first: Tid) -> Self {
        Self(first.0)
    }
}

impl Tid {
    /// The first thread of a process, which has its number. It may have ended before the process: then it has no memory any more.
    #[must_use]
    pub const fn main_of(pid: Pid) -> Self {
        Self(pid.0)
    }

    /// Whether it is the first thread of this process.
    #[must_use]
    pub const fn leads(self, pid: Pid) -> bool {
        self.0 == pid.0
    }
}
