//! What can keep the engine from running a guest. Each message names the cause and, where there is one, the remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::id::Pid;

/// Why the engine could not run, or go on running, the program.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineError {
    /// `execve` refused the program.
    Exec {
        /// The program.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The kernel or a security module forbids tracing.
    PtraceForbidden {
        /// The kernel's reason.
        source: io::Error,
    },
    /// A process that runs cannot be joined.
    Attach {
        /// The process.
        pid: Pid,
        /// Why not, as a sentence without its end.
        why: String,
    },
    /// No room for the code cache or the counters in the guest.
    NoMemory {
        /// What was to be mapped.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A system call on the guest's behalf failed.
    Os {
        /// What was attempted.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The engine itself has failed; the driver has been told ([`Session::broke`]), and the program was killed.
    Broken {
        /// The message of the panic.
        what: String,
    },
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exec { path, source } => write!(f, "{}: {source}", path.display()),
            Self::PtraceForbidden { source } => write!(
                f,
                "cannot trace the program: {source}; ptrace must be allowed \
                 (kernel.yama.ptrace_scope below 3, CAP_SYS_PTRACE or a seccomp profile that permits it in a container)"
            ),
            Self::Attach { pid, why } => write!(f, "cannot attach to process {pid}: {why}"),
            Self::NoMemory { what, source } => write!(
                f,
                "no memory for the {what} in the program's address space: {source}; raise `ulimit -v` or free memory"
            ),
            Self::Os { what, source } => write!(f, "{what}: {source}"),
            Self::Broken { what } => write!(f, "internal error: {what}"),
        }
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Exec { source, .. }
            | Self::PtraceForbidden { source }
            | Self::NoMemory { source, .. }
            | Self::Os { source, .. } => Some(source),
            Self::Attach { .. } | Self::Broken { .. } => None,
        }
    }
}
