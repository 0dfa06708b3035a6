//! Kinds of signals: which ones instructions cause, which stop whole processes. It looks at numbers and at what the kernel says of
//! a thread, never at the dispatcher's state, so that everything else may use it.

use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};

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

/// What the handler is told of a signal: one because of a system call that a filter has caught names the address behind the
/// call, which is `cache` for the kernel and `guest` for the program.
pub fn called_from(info: libc::siginfo_t, cache: CacheAddr, guest: GuestAddr) -> libc::siginfo_t {
    let mut info = info;
    if info.si_signo == libc::SIGSYS && info.si_code > 0 && CacheAddr(address_of(&info)) == cache {
        set_address(&mut info, guest.0);
    }
    info
}

/// Changes the address in the siginfo of a fault, or of a system call that was caught.
#[allow(unsafe_code)]
pub fn set_address(info: &mut libc::siginfo_t, address: u64) {
    // SAFETY: the kernel's siginfo_t has si_addr at byte 16 on x86-64 and is 128 bytes long.
    unsafe { std::ptr::from_mut(info).cast::<u64>().add(2).write(address) };
}
