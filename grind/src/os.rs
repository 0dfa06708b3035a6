//! The few system calls that safe wrappers do not offer, and nothing else: duplicating a descriptor by number, signal
//! dispositions, the second process, stops and death by a signal.
//!
//! Grind must outlive the signals that the terminal sends to it and to the program alike (the profile would be lost), pass
//! on those that are sent to it alone, and end as the program ended. The handlers here are async-signal-safe: they read
//! atomics and call `kill`. Handlers, unlike ignored signals, are not inherited through `execve`, so the program starts
//! with the dispositions it has natively.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use grind_types::{Pid, Tid};

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

/// The process that signals are passed on to, and in the tracer the one that dies with the supervisor; 0: none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// This is the tracer: nothing is passed on.
static TRACER: AtomicBool = AtomicBool::new(false);

/// The supervisor died before there was a program.
static ORPHAN: AtomicBool = AtomicBool::new(false);

/// Signals that have come while there was nobody to pass them on to, a bit each.
static EARLY: AtomicU64 = AtomicU64::new(0);

/// Names the process that signals sent to grind are passed on to, if there is one. Those that came before there was one it gets now.
pub fn pass_signals_to(pid: Option<Pid>) {
    PROGRAM.store(pid.map_or(0, |pid| pid.0), Ordering::SeqCst);
    let Some(pid) = pid else { return };
    let early = EARLY.swap(0, Ordering::SeqCst);
    for signal in (1..=64).filter(|signal| early >> (signal - 1) & 1 != 0) {
        // SAFETY: takes no pointers.
        unsafe { libc::kill(pid.0, signal) };
    }
}

/// Names the process that is killed when the supervisor dies, if there is one. For the tracer only.
pub fn kill_with_the_supervisor(pid: Option<Pid>) {
    PROGRAM.store(pid.map_or(0, |pid| pid.0), Ordering::SeqCst);
    if let Some(pid) = pid.filter(|_| ORPHAN.load(Ordering::SeqCst)) {
        // SAFETY: takes no pointers.
        unsafe { libc::kill(pid.0, libc::SIGKILL) };
    }
}

/// The signal that the kernel sends to the tracer when the supervisor dies.
fn supervisor_died() -> libc::c_int {
    libc::SIGRTMAX()
}

/// The run is to end, and the process that it has joined to go on without it.
static LEAVE: AtomicBool = AtomicBool::new(false);

/// Has SIGALRM come every 20 ms from now on: whoever has looked whether to leave, and was about to wait, has missed the signal, and whoever
/// is about to join somebody can only leave later.
fn wake_often() {
    let time = libc::timeval { tv_sec: 0, tv_usec: 20_000 };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: a system call that reads the structure, which a signal handler may make, too.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}

extern "C" fn leave(_: libc::c_int) {
    if LEAVE.swap(true, Ordering::SeqCst) {
        return;
    }
    let errno = Errno::last_raw();
    wake_often();
    Errno::set_raw(errno);
}

/// Interrupts whatever waits.
extern "C" fn wake(_: libc::c_int) {}

/// Lets the signals that end programs, and the supervisor's death, end the run of this tracer, but not the process that it has joined:
/// system calls are interrupted, and [`is_to_leave`] says so.
pub fn leave_on_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, supervisor_died()] {
        catch(signal, leave as *const () as libc::sighandler_t, 0);
    }
    // Whether or not it was ignored: it is the timer's.
    handle(libc::SIGALRM, wake as *const () as libc::sighandler_t, 0);
    if ORPHAN.load(Ordering::SeqCst) {
        LEAVE.store(true, Ordering::SeqCst);
    }
}

/// Whether the run is to end.
pub fn is_to_leave() -> bool {
    LEAVE.load(Ordering::SeqCst)
}

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let program = PROGRAM.load(Ordering::SeqCst);
    let errno = Errno::last_raw();
    if TRACER.load(Ordering::Relaxed) {
        if signal == supervisor_died() {
            ORPHAN.store(true, Ordering::SeqCst);
            if program > 0 {
                // SAFETY: kill is async-signal-safe and has no memory effects.
                unsafe { libc::kill(program, libc::SIGKILL) };
            }
        }
        Errno::set_raw(errno);
        return;
    }
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    if program == 0 {
        EARLY.fetch_or(1 << (signal - 1), Ordering::SeqCst);
    }
    // SAFETY: take no pointers, and are async-signal-safe.
    let leads = unsafe { libc::getsid(0) == libc::getpid() };
    // The terminal signals the whole process group: the program has had its own copy. But when it goes, only who leads its session
    // learns of that.
    let mine_alone = signal == libc::SIGHUP && leads;
    if program > 0 && (code != libc::SI_KERNEL || mine_alone) {
        // SAFETY: both calls are async-signal-safe; `info` is valid as above and only read.
        unsafe {
            // Of sigqueue: with its value. The kernel takes no other code from outside.
            if code >= 0 || libc::syscall(libc::SYS_rt_sigqueueinfo, program, signal, info) < 0 {
                libc::kill(program, signal);
            }
        }
        Errno::set_raw(errno);
    }
}

/// Signals that are not passed on: those that cannot be caught, that an instruction causes, or that concern grind itself.
const OWN: [libc::c_int; 10] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGCONT,
    libc::SIGCHLD,
    libc::SIGPIPE,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// Makes grind survive the signals that end or stop a program, and pass on those that were sent to grind alone.
///
/// A signal that was ignored when grind started stays ignored, for the program too.
pub fn pass_on_signals() {
    for signal in (1..=libc::SIGRTMAX()).filter(|s| !OWN.contains(s)) {
        catch(signal, pass_on as *const () as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_RESTART);
    }
}

/// Installs `handler` unless the signal is ignored, or is one of the C library's own.
fn catch(signal: libc::c_int, handler: libc::sighandler_t, flags: libc::c_int) {
    // SAFETY: the structure is plain data and valid for the call.
    let ignored = unsafe {
        let mut old = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(signal, std::ptr::null(), &raw mut old) != 0 || old.sa_sigaction == libc::SIG_IGN
    };
    if !ignored {
        handle(signal, handler, flags);
    }
}

/// Installs `handler`.
fn handle(signal: libc::c_int, handler: libc::sighandler_t, flags: libc::c_int) {
    // SAFETY: the structure is plain data and valid for the call; the handlers only do what is safe in one.
    unsafe {
        let mut new = std::mem::zeroed::<libc::sigaction>();
        new.sa_sigaction = handler;
        new.sa_flags = flags;
        libc::sigaction(signal, &raw const new, std::ptr::null_mut());
    }
}

/// Splits off the tracer: its process ID in the supervisor, `None` in the tracer. No other thread may exist.
///
/// # Errors
/// When there can be no more processes.
pub fn fork_tracer() -> io::Result<Option<nix::unistd::Pid>> {
    let supervisor = nix::unistd::getpid();
    // SAFETY: there is one thread, so the child may do anything.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(Some(child)),
        nix::unistd::ForkResult::Child => {
            TRACER.store(true, Ordering::SeqCst);
            // SAFETY: takes no pointers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, supervisor_died()) };
            if nix::unistd::getppid() != supervisor {
                ORPHAN.store(true, Ordering::SeqCst);
            }
            Ok(None)
        }
    }
}

/// The supervisor is about to end with processes left: the tracer must keep neither the terminal nor a pipe to or from the supervisor's
/// neighbours. The log has a descriptor of its own.
pub fn leave_the_terminal() {
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
    let _ = nix::unistd::setsid();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for fd in 0..3 {
            // SAFETY: the three standard descriptors belong to nobody in particular.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
}

/// The signal that interrupts the thread that runs the engine.
fn interruption() -> libc::c_int {
    libc::SIGRTMAX() - 1
}

extern "C" fn nothing(_: libc::c_int) {}

/// Lets [`interrupt`] interrupt system calls of this process's threads.
pub fn be_interrupted() {
    // SAFETY: the structure is plain data and valid for the call; the handler does nothing.
    unsafe {
        let mut new = std::mem::zeroed::<libc::sigaction>();
        new.sa_sigaction = nothing as *const () as libc::sighandler_t;
        libc::sigaction(interruption(), &raw const new, std::ptr::null_mut());
    }
}

/// Interrupts the system call that thread `tid` of this process is in.
pub fn interrupt(tid: Tid) {
    // SAFETY: takes no pointers.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid.0, interruption()) };
}

/// Stops this process as `signal` stops one; returns when it has been continued.
pub fn stop_by(signal: i32) {
    if signal == libc::SIGSTOP {
        let _ = raise(Signal::SIGSTOP);
        return;
    }
    // SAFETY: the default disposition runs no code of ours; the structures are valid for the calls.
    unsafe {
        let mut old = std::mem::zeroed::<libc::sigaction>();
        let mut new = std::mem::zeroed::<libc::sigaction>();
        new.sa_sigaction = libc::SIG_DFL;
        if libc::sigaction(signal, &raw const new, &raw mut old) == 0 {
            libc::raise(signal);
            libc::sigaction(signal, &raw const old, std::ptr::null_mut());
        }
    }
}

/// The processor time of this thread so far.
pub fn thread_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map(Duration::from).unwrap_or_default()
}

/// How large a terminal is.
pub fn size(terminal: &impl AsRawFd) -> Option<libc::winsize> {
    // SAFETY: the structure is plain data and valid for the call, which writes to nothing else.
    unsafe {
        let mut size = std::mem::zeroed::<libc::winsize>();
        (libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) == 0).then_some(size)
    }
}

/// How many columns a terminal has.
pub fn columns(terminal: &impl AsRawFd) -> Option<usize> {
    size(terminal).map(|size| size.ws_col.into()).filter(|&columns| columns > 0)
}

/// Whether something can be read from `file` within some milliseconds, if only its end.
pub fn readable_within(file: &impl AsRawFd, milliseconds: i32) -> bool {
    let mut wanted = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, valid for the call.
    unsafe { libc::poll(&raw mut wanted, 1, milliseconds) != 0 }
}

/// Continues a stopped process, unless it is the first one of the system, whose children those are that have no parent any more.
pub fn continue_process(pid: Pid) {
    if pid.0 > 1 {
        // SAFETY: takes no pointers. A process that is gone needs nothing.
        unsafe { libc::kill(pid.0, libc::SIGCONT) };
    }
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
