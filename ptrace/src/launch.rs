//! Starts the program: a child that waits until it is attached to, then becomes the program, with address randomisation
//! off. A failure of `execve` comes back as an errno. Between fork and exec only async-signal-safe calls are made.
//!
//! The program inherits what grind's caller gave grind, also where Rust's start-up changes it before `main`: that ignores
//! SIGPIPE and opens closed standard descriptors. What they were is found out by a function that the loader calls.

#![allow(unsafe_code)]

use std::ffi::{CString, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use grind_types::{EngineError, Pid};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A child that has been attached to and told to go on to `execve`.
#[derive(Debug)]
pub struct Launched {
    /// Its number.
    pub pid: Pid,
    /// Gets the errno if `execve` fails, else is closed by it.
    failure: io::PipeReader,
}

impl Launched {
    /// Why `execve` failed; call after the child has ended without having become the program.
    pub fn failure(mut self) -> Option<io::Error> {
        let mut b = [0; 4];
        self.failure.read_exact(&mut b).ok()?;
        Some(io::Error::from_raw_os_error(i32::from_ne_bytes(b)))
    }
}

/// Address randomisation off; everything else as grind itself has it.
pub fn guest_personality() -> u64 {
    original_personality() | libc::ADDR_NO_RANDOMIZE as u64
}

/// The personality that programs have which grind does not follow.
pub fn original_personality() -> u64 {
    // SAFETY: a query; it takes no pointers.
    let now = unsafe { libc::personality(0xffff_ffff) };
    u64::from(now.max(0) as u32)
}

/// The limits that stand in grind's own way: sparse files of many gigabytes, and a descriptor for every process.
const OWN_LIMITS: [Resource; 2] = [Resource::RLIMIT_FSIZE, Resource::RLIMIT_NOFILE];

/// Lifts grind's own limits as far as is allowed; returns what they were, for the program.
fn lift_limits() -> [Option<libc::rlimit>; 2] {
    OWN_LIMITS.map(|r| {
        let (soft, hard) = getrlimit(r).ok()?;
        // More than the hard limit is for root, and only if it is in the way.
        if soft != hard {
            let _ = setrlimit(r, hard, hard);
        }
        if r == Resource::RLIMIT_FSIZE && hard != libc::RLIM_INFINITY {
            let _ = setrlimit(r, libc::RLIM_INFINITY, libc::RLIM_INFINITY);
        }
        Some(libc::rlimit { rlim_cur: soft, rlim_max: hard })
    })
}

/// What the caller had before Rust's start-up: bit n-1 for an ignored signal n of [`RESTORED`], bits 60 to 62 for closed
/// standard descriptors.
static INHERITED: AtomicU64 = AtomicU64::new(0);

/// Signals whose disposition Rust's start-up, or grind, changes for this process.
const RESTORED: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGCHLD];

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    let mut bits = 0;
    // SAFETY: system calls that read dispositions into a local, and ask about descriptors by number; SIGCHLD is set to its
    // default since nobody can be waited for while it is ignored.
    unsafe {
        for signal in RESTORED {
            let mut old = std::mem::zeroed::<libc::sigaction>();
            if libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0 && old.sa_sigaction == libc::SIG_IGN {
                bits |= 1 << (signal - 1);
            }
        }
        for fd in 0..3 {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                bits |= 1 << (60 + fd);
            }
        }
        if bits & 1 << (libc::SIGCHLD - 1) != 0 {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
    INHERITED.store(bits, Ordering::Relaxed);
}

/// Puts back what the caller had. Async-signal-safe.
fn restore_inherited() {
    let bits = INHERITED.load(Ordering::Relaxed);
    // SAFETY: plain system calls.
    unsafe {
        for signal in RESTORED {
            let ignored = bits & 1 << (signal - 1) != 0;
            libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL });
        }
        for fd in 0..3 {
            if bits & 1 << (60 + fd) != 0 {
                libc::close(fd);
            }
        }
    }
}

/// Starts `program`.
pub fn launch(path: &Path, args: &[OsString], env: &[OsString]) -> Result<Launched, EngineError> {
    let os = |what| move |source| EngineError::Os { what, source };
    let path = c_string(path.as_os_str().as_bytes()).map_err(os("the program's path"))?;
    let strings = |v: &[std::ffi::OsString], what| -> Result<Vec<CString>, EngineError> {
        v.iter().map(|s| c_string(s.as_bytes())).collect::<io::Result<_>>().map_err(os(what))
    };
    let args = strings(args, "the program's arguments")?;
    let env = strings(env, "the program's environment")?;
    let pointers = |v: &[CString]| -> Vec<*const libc::c_char> {
        v.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, envp) = (pointers(&args), pointers(&env));
    let (go_in, mut go_out) = io::pipe().map_err(os("pipe"))?;
    let (failure, failure_in) = io::pipe().map_err(os("pipe"))?;
    let personality = guest_personality();
    let limits = lift_limits();
    // SAFETY: the child only makes system calls on data prepared above, then becomes the program or exits.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(EngineError::Os { what: "fork", source: io::Error::last_os_error() });
    }
    if pid == 0 {
        // SAFETY: all pointers are to live, terminated arrays; read, personality, setrlimit, execve, write and _exit are
        // async-signal-safe.
        unsafe {
            libc::close(go_out.as_raw_fd());
            let mut b = 0u8;
            if libc::read(go_in.as_raw_fd(), (&raw mut b).cast(), 1) != 1 {
                libc::_exit(1);
            }
            restore_inherited();
            libc::personality(personality as libc::c_ulong);
            for (resource, limit) in OWN_LIMITS.iter().zip(&limits) {
                if let Some(limit) = limit {
                    libc::setrlimit(*resource as libc::__rlimit_resource_t, limit);
                }
            }
            libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr());
            let e = *libc::__errno_location();
            libc::write(failure_in.as_raw_fd(), (&raw const e).cast(), 4);
            libc::_exit(127);
        }
    }
    drop((go_in, failure_in));
    if let Err(source) = crate::seize(Pid(pid)) {
        // The child sees the end of the pipe and exits.
        drop(go_out);
        // SAFETY: no pointers are kept.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        return Err(EngineError::PtraceForbidden { source });
    }
    go_out.write_all(&[1]).map_err(os("starting the program"))?;
    Ok(Launched { pid: Pid(pid), failure })
}
