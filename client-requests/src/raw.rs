//! The instruction sequence itself: the only unsafe code of the crate.
//!
//! Four rotations of RDI, 128 bits in all and so without effect, then `xchg rbx, rbx`. A profiler that meets these 19
//! bytes reads the request from the six words at RAX and puts the answer into RDX; a processor just goes on. The encoding
//! of each instruction matters, not only its meaning: a test runs it under Valgrind.
#![allow(unsafe_code)]

use core::ffi::CStr;

use crate::Request;

/// Makes any request; answers `default` natively.
///
/// # Safety
/// What the request makes the profiler do with `args` must be allowed: it may write to buffers, or call functions, that
/// they point to.
///
/// ```
/// # #![allow(unsafe_code)]
/// use grind_client_requests::{Request, request};
/// // SAFETY: this request takes no arguments.
/// let errors = unsafe { request(7, Request::CountErrors.code(), [0; 5]) };
/// assert!(errors == 7 || errors == 0);
/// ```
#[inline(always)]
pub unsafe fn request(default: u64, code: u64, args: [u64; 5]) -> u64 {
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    {
        let block = [code, args[0], args[1], args[2], args[3], args[4]];
        let answer;
        // SAFETY: RDI ends as it began and RBX is exchanged with itself; the profiler only reads `block`, which outlives
        // the request, and does to other memory what the caller has vouched for. The compiler is told that memory and
        // flags may change.
        unsafe {
            core::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") block.as_ptr(),
                inout("rdx") default => answer,
                options(nostack),
            );
        }
        answer
    }
    #[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
    {
        let _ = (code, args);
        default
    }
}

/// A request whose arguments the callers, all in this crate, have made sure of.
#[inline(always)]
pub(crate) fn harmless(default: u64, code: Request, args: [u64; 5]) -> u64 {
    // SAFETY: the callers pass plain numbers, or the addresses and sizes of buffers that they borrow.
    unsafe { request(default, code.code(), args) }
}

/// What `va_list` is on this platform.
#[repr(C)]
struct VaList {
    /// Bytes of the general registers used up; 48: all six.
    general: u32,
    /// Bytes of general and vector registers used up; 176: all.
    vector: u32,
    /// The arguments on the stack.
    overflow: *const *const core::ffi::c_char,
    /// The saved registers; not looked at, for all are used up.
    saved: *const u8,
}

/// Prints `text` with the format `%s`, so that percent signs in it are safe.
pub(crate) fn print(code: Request, text: &CStr) -> u64 {
    let argument = text.as_ptr();
    let list = VaList { general: 48, vector: 176, overflow: &raw const argument, saved: core::ptr::null() };
    harmless(0, code, [c"%s".as_ptr() as u64, &raw const list as u64, 0, 0, 0])
}
