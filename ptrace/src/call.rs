//! What the kernel says of the system call whose beginning or end a thread has stopped at. It looks, and changes nothing.

#![allow(unsafe_code)]

use nix::libc;

use super::Stopped;

/// `PTRACE_GET_SYSCALL_INFO` of the kernel's `ptrace.h`, and what it calls a beginning.
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const ENTRY: u64 = 1;

/// `AUDIT_ARCH_X86_64` of the kernel's `audit.h`.
const X86_64: u64 = 0xc000_003e;

/// A system call that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number. `None`: it is one of another table (`int 0x80`, x32).
    pub nr: Option<i64>,
    /// Its arguments.
    pub args: [u64; 6],
}

impl Stopped {
    /// The call that the thread, which has stopped for one ([`super::Stop::Syscall`]), is about to make. `None`: it has been made.
    pub fn call(&self) -> Option<Call> {
        // Of the kernel's `struct ptrace_syscall_info`: kind and table in halves of the first word, two addresses, then number and
        // arguments.
        let mut words = [0u64; 10];
        // SAFETY: the kernel writes at most as many bytes to `words` as it is told that there are.
        let r = unsafe { libc::ptrace(GET_SYSCALL_INFO, self.tid.0, size_of_val(&words), &raw mut words) };
        if r < size_of_val(&words) as i64 || words[0] & 0xff != ENTRY {
            return None;
        }
        let [head, _, _, nr, args @ ..] = words;
        /// What marks numbers of x32.
        const X32: u64 = 1 << 30;
        let own = head >> 32 == X86_64 && nr & X32 == 0;
        // The kernel takes the number from eax.
        Some(Call { nr: own.then_some(i64::from(nr as i32)), args })
    }
}
