//! The only user of ptrace. A [`Stopped`] value is the right to look into a thread and to change it; resuming consumes it,
//! so nothing can be asked of a running thread. A value that is dropped without being resumed leaves the thread stopped:
//! whoever does that keeps the thread on a list.
//!
//! All calls must come from the thread that attached.

mod attach;
mod call;
mod first;
mod home;
pub mod kinds;
mod late;
pub mod launch;
pub mod limits;
pub mod mapped_files;
pub mod maps;
mod memory;
mod owed;
mod remote;
pub mod restart;
pub mod schedule;
mod spell;
pub mod status;
pub mod tick;

pub use attach::join;
pub use call::Call;
pub use first::is_first;
pub use home::{Home, leave, settle};
pub use late::{ended, is_sent, keep, renamed, said, sent_by};
pub use memory::Memory;
pub use remote::{Gadget, RemoteError};
pub use spell::{blocked_beneath, long_enough, spells};

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grind_types::{Pid, Tid};

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd;

/// A thread's general registers, as ptrace names them.
pub type Regs = libc::user_regs_struct;

/// A general register by its hardware number.
pub fn register(regs: &mut Regs, n: u8) -> &mut u64 {
    match n {
        0 => &mut regs.rax,
        1 => &mut regs.rcx,
        2 => &mut regs.rdx,
        3 => &mut regs.rbx,
        4 => &mut regs.rsp,
        5 => &mut regs.rbp,
        6 => &mut regs.rsi,
        7 => &mut regs.rdi,
        8 => &mut regs.r8,
        9 => &mut regs.r9,
        10 => &mut regs.r10,
        11 => &mut regs.r11,
        12 => &mut regs.r12,
        13 => &mut regs.r13,
        14 => &mut regs.r14,
        _ => &mut regs.r15,
    }
}

/// The thread is gone (killed from outside): nothing more can be done with it, its end will be reported by `wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// What ptrace answers.
pub type Result<T> = std::result::Result<T, Gone>;

/// The trap flag in RFLAGS.
pub const TRAP_FLAG: u64 = 1 << 8;

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Until the next stop.
    Continue,
    /// For one instruction, or to the first instruction of a signal handler.
    Step,
    /// To the next entry into, or exit from, a system call.
    Syscall,
    /// Stay stopped, but notice SIGCONT (group-stop).
    Listen,
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal is about to be delivered.
    Signal(i32),
    /// Entry to or exit from a system call.
    Syscall,
    /// One of the `PTRACE_EVENT_…`.
    Event {
        /// Which.
        event: i32,
        /// Its signal: SIGTRAP, or the stopping signal for `PTRACE_EVENT_STOP`.
        signal: i32,
    },
}

/// What `wait` tells.
#[derive(Debug)]
pub enum Wait {
    /// It stopped.
    Stopped(Stopped, Stop),
    /// It has ended.
    Exited {
        /// Which thread.
        tid: Tid,
        /// The status that it has ended with.
        status: i32,
    },
    /// It was killed.
    Killed {
        /// Which thread.
        tid: Tid,
        /// The signal that killed it.
        signal: i32,
    },
    /// No thread is left.
    Nothing,
    /// A signal came, whose handler does not restart system calls.
    Interrupted,
}

/// A thread in a ptrace stop.
#[derive(Debug)]
#[must_use = "a stopped thread stays stopped until it is resumed"]
pub struct Stopped {
    tid: Tid,
}

fn gone<T>(r: nix::Result<T>) -> Result<T> {
    r.map_err(|_| Gone)
}

/// Offset of rip in the kernel's `struct user`.
const RIP_OFFSET: usize = std::mem::offset_of!(Regs, rip);

/// That of RFLAGS.
const EFLAGS_OFFSET: usize = std::mem::offset_of!(Regs, eflags);

impl Stopped {
    /// The kernel's thread id.
    pub fn tid(&self) -> Tid {
        self.tid
    }

    /// As ptrace's calls take it.
    fn raw(&self) -> unistd::Pid {
        unistd::Pid::from_raw(self.tid.0)
    }

    /// All general registers, as the program has them but for those that translated code holds for a while.
    pub fn regs(&self) -> Result<Regs> {
        let mut regs = self.raw_regs()?;
        home::show(self, &mut regs)?;
        Ok(regs)
    }

    /// Sets all general registers.
    pub fn set_regs(&self, regs: &Regs) -> Result<()> {
        let mut regs = *regs;
        home::hide(self, &mut regs)?;
        self.set_raw_regs(regs)
    }

    /// All general registers, as the kernel has them: in translated code some are ours.
    pub fn raw_regs(&self) -> Result<Regs> {
        gone(ptrace::getregs(self.raw()))
    }

    fn set_raw_regs(&self, regs: Regs) -> Result<()> {
        gone(ptrace::setregs(self.raw(), regs))
    }

    /// The thread, whose program has not set the trap flag, has stopped after a step from `from`. If the instruction there may set
    /// the flag, the kernel takes its own for one that the instruction has set, and so it does at the next step (`enable_single_step` in
    /// `arch/x86/kernel/step.c`).
    fn hide_step(&self, from: u64) -> Result<()> {
        let flags = gone(ptrace::read_user(self.raw(), EFLAGS_OFFSET as ptrace::AddressType))? as u64;
        if flags & TRAP_FLAG == 0 {
            return Ok(());
        }
        let regs = self.regs()?;
        if regs.rip != from && self.sets_trap_flag(from) {
            return Ok(());
        }
        self.set_regs(&Regs { eflags: regs.eflags & !TRAP_FLAG, ..regs })
    }

    /// Whether the instruction at `at` loads the flags: `popf` or `iret`, behind whatever prefixes.
    fn sets_trap_flag(&self, at: u64) -> bool {
        let byte = |i: u64| ptrace::read(self.raw(), (at + i) as ptrace::AddressType).map_or(0, |word| word as u8);
        let is_prefix =
            |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
        matches!((0..15).map(byte).find(|b| !is_prefix(b)), Some(0x9d | 0xcf))
    }

    /// The instruction pointer alone.
    pub fn rip(&self) -> Result<u64> {
        gone(ptrace::read_user(self.raw(), RIP_OFFSET as ptrace::AddressType)).map(|v| v as u64)
    }

    /// Sets the instruction pointer alone.
    pub fn set_rip(&self, rip: u64) -> Result<()> {
        let now = self.rip()?;
        if home::is_translated(self.tid, rip) != home::is_translated(self.tid, now) || home::differs(self, now, rip) {
            return self.set_regs(&Regs { rip, ..self.regs()? });
        }
        gone(ptrace::write_user(self.raw(), RIP_OFFSET as ptrace::AddressType, rip as libc::c_long))
    }

    /// The signal that is about to be delivered.
    pub fn siginfo(&self) -> Result<libc::siginfo_t> {
        gone(ptrace::getsiginfo(self.raw()))
    }

    /// Changes the signal that is about to be delivered.
    pub fn set_siginfo(&self, info: &libc::siginfo_t) -> Result<()> {
        gone(ptrace::setsiginfo(self.raw(), info))
    }

    /// The number that came with an event: a new thread's id, the former id at exec, the exit status.
    pub fn event_message(&self) -> Result<u64> {
        gone(ptrace::getevent(self.raw())).map(|v| v as u64)
    }

    /// Whether it stands in a stop of this event: not if it has been killed since.
    pub fn stands_at(&self, event: i32) -> bool {
        self.siginfo().is_ok_and(|i| i.si_code == event << 8 | libc::SIGTRAP)
    }

    /// Whether it has been killed since it stopped. It goes on by itself then, and its end will be told.
    pub fn has_been_killed(&self) -> bool {
        self.rip().is_err() || self.stands_at(libc::PTRACE_EVENT_EXIT)
    }

    /// Whether the instruction before the one that comes next is a breakpoint.
    fn is_behind_breakpoint(&self) -> bool {
        let before =
            self.rip().and_then(|rip| gone(ptrace::read(self.raw(), rip.wrapping_sub(1) as ptrace::AddressType)));
        before.is_ok_and(|word| word & 0xff == 0xcc)
    }

    /// The set of blocked signals, bit n-1 for signal n.
    #[allow(unsafe_code)]
    pub fn sigmask(&self) -> Result<u64> {
        let mut mask = 0u64;
        // SAFETY: the kernel writes 8 bytes (the size given) to `mask`, which is 8 bytes long and outlives the call.
        let r = unsafe { libc::ptrace(libc::PTRACE_GETSIGMASK, self.tid.0, 8usize, &raw mut mask) };
        if r < 0 { Err(Gone) } else { Ok(mask) }
    }

    /// Sets the blocked signals.
    #[allow(unsafe_code)]
    pub fn set_sigmask(&self, mask: u64) -> Result<()> {
        // SAFETY: the kernel reads 8 bytes (the size given) from `mask`, which is 8 bytes long and outlives the call.
        let r = unsafe { libc::ptrace(libc::PTRACE_SETSIGMASK, self.tid.0, 8usize, &raw const mask) };
        if r < 0 { Err(Gone) } else { Ok(()) }
    }

    /// Lets the thread go on, delivering `signal` (0: none) where the stop allows it. If it was told to stop and has not
    /// done so yet, it does before it executes anything.
    pub fn resume(self, how: How, signal: i32) -> Result<()> {
        // (Whoever takes a step is in the middle of something.)
        if how == How::Continue || how == How::Syscall {
            late::send(self.tid);
            if signal == 0 && spell::goes_on(&self)? {
                return self.resume_midway(How::Syscall, 0);
            }
        }
        self.resume_midway(how, signal)
    }

    /// As [`Self::resume`], where nothing is left to do if the thread has been killed meanwhile: its end is waited for as that of
    /// any other.
    pub fn go_on(self, how: How, signal: i32) {
        let _ = self.resume(how, signal);
    }

    /// As [`Self::resume`], but without the signals that were kept for the thread: it is in the middle of something.
    pub fn resume_midway(self, how: How, signal: i32) -> Result<()> {
        if how != How::Listen && owed::stops(self.tid) {
            interrupt(self.tid);
        }
        self.go(how, signal)
    }

    /// As [`Self::resume`] without a signal, but these are blocked, too, until it has run for as long as this, if it is interrupted
    /// then ([`long_enough`]), makes a system call, or stops for something that is not the engine's.
    pub fn resume_undisturbed(self, blocked: u64, long: Duration) -> Result<()> {
        spell::begin(self.tid, blocked, long);
        self.resume(How::Continue, 0)
    }

    /// Lets the thread finish what it is in the middle of: a step, or a fault whose signal is still to come. It is told to
    /// stop once it has stopped for that.
    pub fn finish(self, how: How) -> Result<()> {
        owed::told(self.tid);
        self.go(how, 0)
    }

    #[allow(unsafe_code)]
    fn go(&self, how: How, signal: i32) -> Result<()> {
        let request = match how {
            How::Continue => libc::PTRACE_CONT,
            How::Step => libc::PTRACE_SINGLESTEP,
            How::Syscall => libc::PTRACE_SYSCALL,
            How::Listen => libc::PTRACE_LISTEN,
        };
        if how != How::Listen {
            home::goes_on(self)?;
        }
        // SAFETY: these requests take no pointers.
        let r = unsafe { libc::ptrace(request, self.tid.0, 0usize, signal as usize) };
        if r < 0 { Err(Gone) } else { Ok(()) }
    }

    /// Lets the thread go for good, untraced, delivering `signal` (0: none).
    pub fn detach(self, signal: i32) -> Result<()> {
        gone(ptrace::detach(self.raw(), Signal::try_from(signal).ok()))
    }

    /// Resumes and waits until this same thread stops again; other threads stay as they are. A stop that somebody has asked
    /// for, or a signal that stops the process, is passed over: the thread is told to stop again when it is resumed. A signal
    /// that somebody has sent is kept until the thread goes on by itself. If it ends, the next wait tells of that.
    pub fn resume_and_wait(self, how: How, signal: i32) -> Result<(Self, Stop)> {
        let tid = self.tid;
        let mut signal = signal;
        let (from, trapped) = self.regs().map(|regs| (regs.rip, regs.eflags & TRAP_FLAG != 0))?;
        let (t, stop) = loop {
            self.go(how, signal)?;
            match wait_for(tid) {
                Ok(Wait::Stopped(_, Stop::Event { event: libc::PTRACE_EVENT_STOP, .. })) => {
                    owed::told(tid);
                    signal = 0;
                }
                // It cannot be blocked. Once delivered it holds for the whole process, until there is a SIGCONT.
                Ok(Wait::Stopped(t, Stop::Signal(libc::SIGSTOP))) => {
                    signal = if t.would_not_stop() { 0 } else { libc::SIGSTOP };
                }
                Ok(Wait::Stopped(t, Stop::Signal(by))) => {
                    let Some(info) = t.siginfo().ok().filter(is_sent) else { break (t, Stop::Signal(by)) };
                    keep(tid, info);
                    // If it was a SIGTRAP, that of the step, or of our breakpoint, may have been left out for it.
                    let done = match how {
                        How::Step => t.rip()? != from,
                        _ => by == libc::SIGTRAP && t.is_behind_breakpoint(),
                    };
                    if done {
                        break (t, Stop::Signal(libc::SIGTRAP));
                    }
                    signal = 0;
                }
                Ok(Wait::Stopped(t, stop)) => break (t, stop),
                Ok(end @ (Wait::Exited { .. } | Wait::Killed { .. })) => {
                    ENDS.with_borrow_mut(|ends| ends.push((tid, end)));
                    return Err(Gone);
                }
                Ok(Wait::Nothing | Wait::Interrupted) | Err(_) => return Err(Gone),
            }
        };
        if how == How::Step && !trapped && matches!(stop, Stop::Signal(_)) {
            t.hide_step(from)?;
        }
        Ok((t, stop))
    }
}

thread_local! {
    /// Ends that were seen while just that thread was waited for, and that the dispatcher has still to be told of.
    static ENDS: RefCell<Vec<(Tid, Wait)>> = const { RefCell::new(Vec::new()) };
}

/// An end of `tid` (`None`: of any thread) that has been seen already.
fn seen_end(tid: Option<Tid>) -> Option<Wait> {
    ENDS.with_borrow_mut(|ends| {
        let i = ends.iter().position(|(t, _)| tid.is_none_or(|tid| *t == tid))?;
        Some(ends.swap_remove(i).1)
    })
}

/// Waits for any traced thread, and for a child that is not traced any more. (Not with WCONTINUED: a tracer takes that news
/// away from the real parent.)
pub fn wait_any() -> io::Result<Wait> {
    wait(None, libc::__WALL | libc::WUNTRACED)
}

/// Looks so often at a thread, while others have something to tell, before it naps in between.
const GLANCES: u32 = 200;

/// Waits for one thread. [`Wait::Nothing`]: it is gone; if it was the first one of its process, its end is told once the others
/// have ended, and these may have to be let go on for that.
fn wait_for(tid: Tid) -> io::Result<Wait> {
    let mut glances = 0;
    loop {
        match has_news(tid) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            // Nobody is left.
            Err(_) => return wait(Some(tid), libc::__WALL | libc::WNOHANG),
        }
        match wait(Some(tid), libc::__WALL | libc::WNOHANG) {
            Ok(Wait::Interrupted) => {}
            other => return other,
        }
        glances += 1;
        if glances < GLANCES {
            std::thread::yield_now();
        } else if is_zombie(tid) {
            return Ok(Wait::Nothing);
        } else {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Sleeps until a thread has something to tell, this one or another, and leaves that untold.
#[allow(unsafe_code)]
fn has_news(tid: Tid) -> io::Result<()> {
    if ENDS.with_borrow(|ends| ends.iter().any(|(t, _)| *t == tid)) {
        return Ok(());
    }
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
    // SAFETY: a siginfo of zeros is one, and the kernel writes to it, which outlives the call.
    let r = unsafe { libc::waitid(libc::P_ALL, 0, &mut std::mem::zeroed(), flags) };
    if r == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether a thread has ended, and that is still to be told.
fn is_zombie(tid: Tid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"))
}

/// Waits for one thread, but not for long: `None` if it does not stop, as a thread that the kernel does not interrupt.
pub fn wait_briefly(tid: Tid) -> Option<Wait> {
    wait_within(tid, Duration::from_millis(200))
}

/// What happens to one thread, if anything does in that time.
pub fn wait_within(tid: Tid, limit: Duration) -> Option<Wait> {
    look(Some(tid), libc::__WALL, limit)
}

/// What has happened to one thread, if anything has.
pub fn wait_now(tid: Tid) -> Option<Wait> {
    let nothing = |w: &Wait| matches!(w, Wait::Interrupted | Wait::Nothing);
    wait(Some(tid), libc::__WALL | libc::WUNTRACED | libc::WNOHANG).ok().filter(|w| !nothing(w))
}

/// What has happened to any thread, if anything has.
pub fn wait_any_now() -> Option<Wait> {
    wait(None, libc::__WALL | libc::WUNTRACED | libc::WNOHANG).ok().filter(|w| !matches!(w, Wait::Interrupted))
}

/// As [`wait_any`], but not for long.
pub fn wait_any_briefly() -> Option<Wait> {
    look(None, libc::__WALL | libc::WUNTRACED, Duration::from_millis(100))
}

fn look(tid: Option<Tid>, flags: i32, limit: Duration) -> Option<Wait> {
    let start = Instant::now();
    let mut nap = Duration::from_micros(20);
    while start.elapsed() < limit {
        match wait(tid, flags | libc::WNOHANG) {
            Ok(Wait::Nothing) => return Some(Wait::Nothing),
            Ok(Wait::Interrupted) => {}
            Ok(other) => return Some(other),
            Err(_) => return None,
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(2));
    }
    None
}

/// What has happened to a thread (`None`: to any).
#[allow(unsafe_code)]
fn wait(tid: Option<Tid>, flags: i32) -> io::Result<Wait> {
    if let Some(end) = seen_end(tid) {
        return Ok(end);
    }
    let mut status = 0;
    // SAFETY: the kernel writes one int to `status`.
    let r = unsafe { libc::waitpid(tid.map_or(-1, |tid| tid.0), &raw mut status, flags) };
    if r > 0 {
        return Ok(classify(Tid(r), status));
    }
    if r == 0 {
        // With WNOHANG: not yet.
        return Ok(Wait::Interrupted);
    }
    let e = io::Error::last_os_error();
    match e.raw_os_error() {
        Some(libc::EINTR) => Ok(Wait::Interrupted),
        Some(libc::ECHILD) => Ok(Wait::Nothing),
        _ => Err(e),
    }
}

fn classify(tid: Tid, status: i32) -> Wait {
    if libc::WIFEXITED(status) {
        owed::settled(tid);
        spell::gone(tid);
        Wait::Exited { tid, status: libc::WEXITSTATUS(status) }
    } else if libc::WIFSIGNALED(status) {
        owed::settled(tid);
        spell::gone(tid);
        Wait::Killed { tid, signal: libc::WTERMSIG(status) }
    } else {
        let signal = libc::WSTOPSIG(status);
        let event = status >> 16;
        let stop = if event != 0 {
            if event == libc::PTRACE_EVENT_STOP {
                owed::settled(tid);
            }
            Stop::Event { event, signal }
        } else if signal == libc::SIGTRAP | 0x80 {
            Stop::Syscall
        } else {
            Stop::Signal(signal)
        };
        if event == libc::PTRACE_EVENT_EXEC {
            // What was known under this id was of the process's first thread, which is gone if another one has executed the program.
            home::leave(tid);
            spell::gone(tid);
        }
        let t = Stopped { tid };
        // (Who is gone by now has nothing that could be lost.)
        let _ = home::stopped(&t);
        let _ = spell::stopped(&t, stop);
        if let Stop::Signal(signal) = stop {
            late::arrived(&t, signal);
        }
        Wait::Stopped(t, stop)
    }
}

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_EXITKILL;

/// Attaches to `pid` without stopping it; everything that it starts is attached too, and killed if grind dies.
pub fn seize(pid: Pid) -> io::Result<()> {
    ptrace::seize(unistd::Pid::from_raw(pid.0), ptrace::Options::from_bits_truncate(OPTIONS)).map_err(io::Error::from)
}

/// Some thread has installed, or inherited, a filter of system calls.
static FILTERS: AtomicBool = AtomicBool::new(false);

/// From now on the program's own filters (seccomp) are suspended during remote system calls, if the user may do that.
pub fn expect_filters() {
    FILTERS.store(true, Ordering::Relaxed);
}

/// `PTRACE_O_SUSPEND_SECCOMP` of the kernel's `ptrace.h`.
const SUSPEND_SECCOMP: libc::c_int = 1 << 21;

/// Lets the filters of a stopped thread pass everything, or not any more.
#[allow(unsafe_code)]
fn suspend_filters(tid: Tid, yes: bool) {
    if FILTERS.load(Ordering::Relaxed) {
        let options = if yes { OPTIONS | SUSPEND_SECCOMP } else { OPTIONS };
        // SAFETY: the request takes no pointers. Without the right to do so it changes nothing.
        unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, tid.0, 0usize, options as usize) };
    }
}

/// A thread that has stopped is to do so again (`PTRACE_EVENT_STOP`) once it is resumed, but not before it has finished what it
/// is in the middle of ([`Stopped::finish`]).
pub fn stops_later(tid: Tid) {
    owed::told(tid);
}

/// Tells a thread to stop (`PTRACE_EVENT_STOP`), running or not: it does so when it has come to an end of what it is in the
/// middle of, whatever else it stops for on the way.
#[allow(unsafe_code)]
pub fn interrupt(tid: Tid) {
    owed::told(tid);
    // SAFETY: the request takes no pointers. A thread that is gone needs no stop.
    unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid.0, 0usize, 0usize) };
}

/// All registers zero: for tests.
#[doc(hidden)]
#[must_use]
pub fn no_regs() -> Regs {
    Regs {
        r15: 0,
        r14: 0,
        r13: 0,
        r12: 0,
        rbp: 0,
        rbx: 0,
        r11: 0,
        r10: 0,
        r9: 0,
        r8: 0,
        rax: 0,
        rcx: 0,
        rdx: 0,
        rsi: 0,
        rdi: 0,
        orig_rax: 0,
        rip: 0,
        cs: 0,
        eflags: 0,
        rsp: 0,
        ss: 0,
        fs_base: 0,
        gs_base: 0,
        ds: 0,
        es: 0,
        fs: 0,
        gs: 0,
    }
}
