//! Kinds of signals: which ones instructions cause, which stop whole processes. It looks at numbers and at what the kernel says of
//! a thread, never at the dispatcher's state, so that everything else may use it.

use grind_types::Tid;

use nix::libc;

use crate::status::Status;

/// A signal in a mask, as the kernel has them.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signals that an instruction causes.
pub const FAULTS: u64 =
    bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL) | bit(libc::SIGFPE) | bit(libc::SIGTRAP);

/// All others: held back while the engine steps a thread.
pub const ASYNCHRONOUS: u64 = !FAULTS;

/// Whether `signal`, that of a `PTRACE_EVENT_STOP`, says that the thread's process is stopped.
pub fn stops_processes(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

/// Whether a signal that an instruction has caused waits for the thread: a fault's, or that of a system call which a filter traps. It
/// names the address where the thread stands, so the thread must stay there until it comes.
pub fn fault_pending(tid: Tid) -> bool {
    let status = Status::of(tid);
    status.signals("SigPnd") & !status.signals("SigBlk") & (FAULTS | bit(libc::SIGSYS)) != 0
}

/// The address in the siginfo of a fault.
#[allow(unsafe_code)]
pub fn address_of(info: &libc::siginfo_t) -> u64 {
    // SAFETY: only called for signals of the kernel's that carry an address, which SIGSYS has in the same place; the field
    // exists in every siginfo.
    unsafe { info.si_addr() as u64 }
}
