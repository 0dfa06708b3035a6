//! Signals that kill a process at once. If somebody sends one that has no handler, and a thread does not block it, the kernel
//! kills all threads before the sender goes on; but only if nobody traces them. Traced, they live until one of them takes the
//! signal, and another one may take it first that waits for it, or do something that it would not have lived to do. So where a
//! process has several threads, one that sends such a signal to its own process dies of it there and then, and so does one that
//! is about to wait for signals while such a signal waits for the process. One that sends it to its group of processes has the
//! others get it first, while the threads of its own stand still.
//!
//! Invariant: nothing dies here that would not have died natively: where a filter of system calls may refuse to send, the kernel
//! is left to it. Not covered: a thread that waits for the signal already when somebody else sends it, and is woken by something
//! else before the thread that is to die of it.

use grind_ptrace::kinds::bit;
use grind_ptrace::status::Status;
use grind_ptrace::{self as tracee, How, Stopped};
use grind_types::Tid;
use nix::libc;

use super::Dispatcher;

/// Calls that send signals, or wait for them.
pub(super) const CALLS: [i64; 6] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_rt_sigtimedwait,
];

/// What does not kill unless there is a handler, or stops, or writes a core, which is not done at once.
const NOT_AT_ONCE: u64 = bit(libc::SIGCHLD)
    | bit(libc::SIGCONT)
    | bit(libc::SIGURG)
    | bit(libc::SIGWINCH)
    | bit(libc::SIGSTOP)
    | bit(libc::SIGTSTP)
    | bit(libc::SIGTTIN)
    | bit(libc::SIGTTOU)
    | bit(libc::SIGQUIT)
    | bit(libc::SIGILL)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGABRT)
    | bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGSEGV)
    | bit(libc::SIGXCPU)
    | bit(libc::SIGXFSZ)
    | bit(libc::SIGSYS);

/// What a system call does to the process that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deadly {
    /// It dies of this signal, before the call returns.
    Process(i32),
    /// It does, and others get the signal by the same call.
    Group(i32),
}

impl Dispatcher<'_> {
    /// How the process of `tid` is killed by the system call that it is about to make, or before it.
    pub(super) fn deadly_call(&self, tid: Tid, nr: i64, args: [u64; 6]) -> Option<Deadly> {
        let threads = &self.process_of(tid)?.threads;
        if threads.len() < 2 {
            return None;
        }
        if nr == libc::SYS_rt_sigtimedwait {
            let own = Status::of(tid);
            let waiting = own.signals("ShdPnd") & kills_at_once(&own);
            let open = threads.iter().fold(0, |open, &t| open | takes(t));
            let deadly = waiting & open;
            let signal = deadly.trailing_zeros() as i32 + 1;
            return (deadly != 0 && !tracee::is_first(tid)).then_some(Deadly::Process(signal));
        }
        let (to, signal) = match nr {
            libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => (args[1], args[2]),
            _ => (args[0], args[1]),
        };
        let (to, signal) = (to as i32, signal as i32);
        if !(1..=64).contains(&signal) || bit(signal) & NOT_AT_ONCE != 0 {
            return None;
        }
        let own = Status::of(tid);
        if kills_at_once(&own) & bit(signal) == 0 || own.is_confined() {
            return None;
        }
        // (`kill(-1)` leaves out who makes it.)
        let group = nr == libc::SYS_kill && (to == 0 || to < -1 && own.id("NSpgid") == Some(-to));
        let hit = match nr {
            libc::SYS_kill | libc::SYS_rt_sigqueueinfo => {
                (group || own.id("NStgid") == Some(to)) && threads.iter().any(|&t| takes(t) & bit(signal) != 0)
            }
            _ => threads.iter().any(|&t| Status::of(t).id("NSpid") == Some(to) && takes(t) & bit(signal) != 0),
        };
        let deadly = if group { Deadly::Group(signal) } else { Deadly::Process(signal) };
        (hit && !tracee::is_first(tid)).then_some(deadly)
    }

    /// `t`, at the stop before a system call that is deadly, dies of it, and all of its process.
    pub(super) fn die_by_call(&mut self, t: Stopped, args: [u64; 6], deadly: Deadly) {
        match deadly {
            Deadly::Process(signal) => Self::die_of(t, signal),
            Deadly::Group(signal) => {
                let tid = t.tid();
                let Some(pid) = self.threads.get(&tid).map(|th| th.pid) else { return };
                let held = self.stand_still(pid, Some(tid));
                match self.raw(t, libc::SYS_kill, args) {
                    Some((t, _)) => {
                        // The others never go on: the kernel kills them where they stand.
                        self.standstill = None;
                        Self::die_of(t, signal);
                    }
                    // It has been killed meanwhile.
                    None => self.go_on_all(held),
                }
            }
        }
    }

    /// `t`, at the stop before a system call, dies of `signal`, and all of its process.
    fn die_of(t: Stopped, signal: i32) {
        if let Ok(mask) = t.sigmask()
            && t.set_sigmask(mask & !bit(signal)).is_ok()
        {
            t.go_on(How::Continue, signal);
        }
    }
}

/// The signals that kill a thread with this status, and all of its process at once.
fn kills_at_once(status: &Status) -> u64 {
    !(status.signals("SigCgt") | status.signals("SigIgn") | NOT_AT_ONCE)
}

/// The signals that `tid` does not block. Whoever waits for some with `sigtimedwait` does not block those for that long, but is
/// not killed by them.
fn takes(tid: Tid) -> u64 {
    let call = std::fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap_or_default();
    let waits = call.split(' ').next().and_then(|nr| nr.parse().ok()) == Some(libc::SYS_rt_sigtimedwait);
    let blocked = || tracee::blocked_beneath(tid).unwrap_or_else(|| Status::of(tid).signals("SigBlk"));
    if waits { 0 } else { !blocked() }
}
