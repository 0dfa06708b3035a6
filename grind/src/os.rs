//! The few system calls that safe wrappers do not offer, and nothing else: duplicating a descriptor by number, signal
//! dispositions, death by a signal.
//!
//! Grind must outlive the signals that the terminal sends to it and to the program alike (the profile would be lost), pass
//! on those that are sent to it alone, and end as the program ended. The handlers here are async-signal-safe: they read
//! an atomic and call `kill`. Handlers, unlike ignored signals, are not inherited through `execve`, so the program starts
//! with the dispositions it has natively.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, raise, sigaction, sigprocmask};

/// A duplicate of descriptor `fd` that the program does not inherit.
///
/// # Errors
/// When `fd` is not open.
pub fn duplicate(fd: i32) -> io::Result<File> {
    // SAFETY: fcntl takes any number; a descriptor that is not open is answered with EBADF.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 64) };
    let copy = Errno::result(copy).map_err(io::Error::from)?;
    // SAFETY: the descriptor has just been created and nothing else knows it.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// The process that signals are passed on to; 0: none yet.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// Names the process that signals sent to grind are passed on to.
pub fn pass_signals_to(pid: i32) {
    PROGRAM.store(pid, Ordering::Relaxed);
}

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let program = PROGRAM.load(Ordering::Relaxed);
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    // The terminal signals the whole process group: the program has had its own copy.
    if program > 0 && code != libc::SI_KERNEL {
        let errno = Errno::last_raw();
        // SAFETY: kill is async-signal-safe and has no memory effects.
        unsafe { libc::kill(program, signal) };
        Errno::set_raw(errno);
    }
}

/// Makes grind survive the signals that end a program, and pass on those that were sent to grind alone.
///
/// A signal that was ignored when grind started stays ignored, for the program too.
///
/// # Errors
/// When the kernel refuses (it does not).
pub fn pass_on_signals() -> io::Result<()> {
    let action = SigAction::new(SigHandler::SigAction(pass_on), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2] {
        // SAFETY: the handler only does what is safe in one.
        let old = unsafe { sigaction(signal, &action) }?;
        if matches!(old.handler(), SigHandler::SigIgn) {
            // SAFETY: the previous disposition is put back.
            unsafe { sigaction(signal, &old) }?;
        }
    }
    Ok(())
}

/// Ends grind by `signal`, as the program ended; without a core dump, which would be of the wrong process.
///
/// Returns only if the signal does not kill.
pub fn die_by(signal: i32) {
    let Ok(signal) = Signal::try_from(signal) else { return die_by_number(signal) };
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default disposition runs no code of ours.
    let _ = unsafe { sigaction(signal, &default) };
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&set), None);
    let _ = raise(signal);
}

/// The same for real-time signals, which have no name.
fn die_by_number(signal: i32) {
    // SAFETY: plain system calls; the sets are initialised by sigemptyset before they are read.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}
