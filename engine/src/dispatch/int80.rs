//! System calls by `int 0x80`: another table of numbers, 32-bit arguments, no register touched but rax. Such an instruction
//! always stops. Its call is made from a place of its own in the code cache, behind which the thread stops again, and what
//! the call does to mappings, processes and images is followed as if it had been made by `syscall`.
//!
//! Invariants: the instruction has been counted when its call begins, and not if the thread is taken back to it, be it that a
//! signal came first or that the call is made again; signals are never held back, so that they interrupt a call that waits.
//!
//! Not covered: what these calls tell of limits (`getrlimit`) and of memory that is locked, and 32-bit handlers of signals.

use grind_fragments::fragment_table::FragmentId;
use grind_guest::process::State;
use grind_ptrace::restart::{self, Restart, restarts};
use grind_ptrace::{self as tracee, How, Memory, Regs, Stopped, is_sent};
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use nix::libc;

use super::Dispatcher;
use super::signal::{called_from, caught};
use super::syscall::replaces;

/// Bytes of the instruction.
const LEN: u64 = 2;

/// Numbers in the table that `int 0x80` uses, where the engine minds them.
pub(super) mod nr {
    pub(in crate::dispatch) const RESTART_SYSCALL: u32 = 0;
    pub(super) const FORK: u32 = 2;
    pub(super) const EXECVE: u32 = 11;
    pub(super) const PTRACE: u32 = 26;
    pub(super) const OLD_MMAP: u32 = 90;
    pub(super) const MUNMAP: u32 = 91;
    pub(super) const IPC: u32 = 117;
    pub(super) const SIGRETURN: u32 = 119;
    pub(super) const CLONE: u32 = 120;
    pub(super) const MPROTECT: u32 = 125;
    pub(super) const MREMAP: u32 = 163;
    pub(super) const PRCTL: u32 = 172;
    pub(super) const RT_SIGRETURN: u32 = 173;
    pub(super) const RT_SIGTIMEDWAIT: u32 = 177;
    pub(super) const VFORK: u32 = 190;
    pub(super) const MMAP2: u32 = 192;
    pub(super) const MADVISE: u32 = 219;
    pub(super) const IO_GETEVENTS: u32 = 247;
    pub(super) const EPOLL_WAIT: u32 = 256;
    pub(super) const REMAP_FILE_PAGES: u32 = 257;
    pub(super) const EPOLL_PWAIT: u32 = 319;
    pub(super) const SECCOMP: u32 = 354;
    pub(super) const EXECVEAT: u32 = 358;
    pub(super) const PKEY_MPROTECT: u32 = 380;
    pub(super) const RSEQ: u32 = 386;
    pub(super) const SHMAT: u32 = 397;
    pub(super) const SHMDT: u32 = 398;
    pub(super) const SEMTIMEDOP: u32 = 420;
    pub(super) const RT_SIGTIMEDWAIT_64: u32 = 421;
    pub(super) const CLONE3: u32 = 435;
    pub(super) const EPOLL_PWAIT2: u32 = 441;

    /// Calls of `IPC`: what its first argument says, less a version in the upper half.
    pub(super) const IPC_SEMOP: u64 = 1;
    pub(super) const IPC_SEMTIMEDOP: u64 = 4;
    pub(super) const IPC_SHMAT: u64 = 21;
    pub(super) const IPC_SHMDT: u64 = 22;
}

/// A call that a thread is making.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pc: GuestAddr,
    next: GuestAddr,
    /// The block that the instruction is the last one of.
    block: FragmentId,
    nr: u32,
    args: [u64; 6],
    /// The call of the other table that changes mappings in the same way, with its arguments.
    mapping: Option<(i64, [u64; 6])>,
    /// Whether the program that it may execute is followed.
    pub(super) follow: bool,
}

impl Call {
    /// Whether the call creates a thread or process.
    pub(super) fn births(&self) -> bool {
        matches!(self.nr, nr::FORK | nr::VFORK | nr::CLONE | nr::CLONE3)
    }

    /// The flags of a call that creates a thread or process; `third` is what clone3 would read.
    pub(super) fn flags_of_birth(&self, clone3: impl Fn(u64) -> Option<u64>) -> u64 {
        match self.nr {
            nr::CLONE => self.args[0],
            nr::CLONE3 => clone3(self.args[0]).unwrap_or(0),
            nr::VFORK => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
            _ => 0,
        }
    }

    /// What [`Call::mapping`] is.
    fn as_mapping(&self, memory: &Memory) -> Option<(i64, [u64; 6])> {
        let a = self.args;
        Some(match self.nr {
            nr::MUNMAP => (libc::SYS_munmap, a),
            nr::MPROTECT => (libc::SYS_mprotect, a),
            nr::PKEY_MPROTECT => (libc::SYS_pkey_mprotect, a),
            nr::MREMAP => (libc::SYS_mremap, a),
            nr::MMAP2 => (libc::SYS_mmap, a),
            nr::OLD_MMAP => {
                let words = memory.array::<24>(a[0])?;
                let word = |i: usize| words[4 * i..].first_chunk().map_or(0, |w| u64::from(u32::from_le_bytes(*w)));
                (libc::SYS_mmap, [0, 1, 2, 3, 4, 5].map(word))
            }
            nr::REMAP_FILE_PAGES => (libc::SYS_remap_file_pages, a),
            nr::MADVISE if replaces(libc::SYS_madvise, a) => (libc::SYS_madvise, a),
            nr::SHMAT if replaces(libc::SYS_shmat, a) => (libc::SYS_shmat, a),
            nr::SHMDT => (libc::SYS_shmdt, a),
            nr::IPC if a[0] & 0xffff == nr::IPC_SHMAT && replaces(libc::SYS_shmat, [a[1], a[4], a[2], 0, 0, 0]) => {
                (libc::SYS_shmat, [a[1], a[4], a[2], 0, 0, 0])
            }
            nr::IPC if a[0] & 0xffff == nr::IPC_SHMDT => (libc::SYS_shmdt, [a[4], 0, 0, 0, 0, 0]),
            _ => return None,
        })
    }

    /// Whether the call waits without end, and the kernel never makes it again; with `limited` also if it has a time limit.
    fn never_made_again(&self, limited: bool) -> bool {
        let a = self.args;
        let forever = match self.nr {
            nr::EPOLL_WAIT | nr::EPOLL_PWAIT => (a[3] as i32) < 0,
            nr::EPOLL_PWAIT2 | nr::SEMTIMEDOP => a[3] == 0,
            nr::RT_SIGTIMEDWAIT | nr::RT_SIGTIMEDWAIT_64 => a[2] == 0,
            nr::IO_GETEVENTS => a[4] == 0,
            nr::IPC if a[0] & 0xffff == nr::IPC_SEMOP => true,
            // Its time limit is the last argument.
            nr::IPC if a[0] & 0xffff == nr::IPC_SEMTIMEDOP => a[5] == 0,
            _ => return false,
        };
        forever || limited
    }
}

/// Whether the instruction between these addresses is `int 0x80`.
pub(super) fn is_at(memory: &Memory, pc: GuestAddr, next: GuestAddr) -> bool {
    let mut bytes = vec![0; next.since(pc).min(15) as usize];
    let read = memory.read(pc.0, &mut bytes);
    let ins = Decoder::with_ip(64, &bytes[..read], pc.0, DecoderOptions::NONE).decode();
    ins.mnemonic() == Mnemonic::Int && ins.immediate8() == 0x80
}

impl Dispatcher<'_> {
    /// `t` is before the `int 0x80` at `pc`, which ends `block` and has been counted; `regs` are the guest's.
    pub(super) fn int80(&mut self, t: Stopped, mut regs: Regs, pc: GuestAddr, next: GuestAddr, block: FragmentId) {
        let tid = t.tid();
        let args = [regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi, regs.rbp].map(|r| u64::from(r as u32));
        let mut call = Call { pc, next, block, nr: regs.rax as u32, args, mapping: None, follow: false };
        let mut t = t;
        match call.nr {
            // Frames of another kind, which lead to code of another kind: in its place, as far as that goes.
            nr::SIGRETURN | nr::RT_SIGRETURN => return self.in_place(t, regs, pc, block, None),
            nr::RSEQ => return self.int80_answered(t, regs, next, libc::ENOSYS),
            nr::FORK | nr::CLONE | nr::VFORK | nr::CLONE3 if self.no_more_births(tid) => {
                self.warn_no_more_births(tid);
                return self.int80_answered(t, regs, next, libc::EAGAIN);
            }
            nr::CLONE => regs.rbx &= !(libc::CLONE_UNTRACED as u64),
            nr::PTRACE => self.warn_of_ptrace(tid),
            nr::SECCOMP | nr::PRCTL if call.nr == nr::SECCOMP || args[0] as i32 == libc::PR_SET_SECCOMP => {
                let Some(thread) = self.before_confinement(t) else { return };
                t = thread;
            }
            nr::EXECVE | nr::EXECVEAT => {
                let (folder, path, argv) = match call.nr {
                    nr::EXECVE => (libc::AT_FDCWD, args[0], args[1]),
                    _ => (args[0] as i32, args[1], args[2]),
                };
                let Some((thread, follow)) = self.before_exec(t, folder, path, argv, 4) else { return };
                (t, call.follow) = (thread, follow);
            }
            _ => {
                call.mapping = self.process_of(tid).and_then(|p| call.as_mapping(&p.memory));
                if let Some((nr, args)) = &mut call.mapping {
                    let Some(thread) = self.before_mapping(t, *nr, args) else { return };
                    t = thread;
                }
            }
        }
        self.other_calls.insert(tid, call);
        self.make_int80(t, regs);
    }

    fn make_int80(&mut self, t: Stopped, mut regs: Regs) {
        let tid = t.tid();
        let Some(at) = self.int80_gadget(tid) else { return };
        regs.rip = at;
        // In no system call any more, as far as restarting is concerned.
        regs.orig_rax = u64::MAX;
        if t.set_regs(&regs).is_ok() {
            self.set_state(tid, State::OtherCall);
            t.go_on(How::Continue, 0);
        }
    }

    fn int80_answered(&mut self, t: Stopped, mut regs: Regs, next: GuestAddr, errno: i32) {
        regs.rax = -i64::from(errno) as u64;
        if t.set_regs(&regs).is_ok() {
            self.enter(t, next);
        }
    }

    fn int80_gadget(&self, tid: Tid) -> Option<u64> {
        self.code_cache_and_state(tid).map(|(s, _)| s.borrow().gadget.int80())
    }

    /// A signal is about to be delivered to a thread that makes such a call; the stop behind it is one, too.
    pub(super) fn signal_in_int80(&mut self, t: Stopped, signal: i32) {
        let tid = t.tid();
        let Some(at) = self.int80_gadget(tid) else { return };
        let Ok(rip) = t.rip() else { return };
        if signal == libc::SIGTRAP {
            if rip == at + LEN + 1 {
                if let Some(info) = t.siginfo().ok().filter(is_sent) {
                    // In place of the breakpoint's.
                    tracee::keep(tid, info);
                }
                return self.after_int80(t);
            }
            if self.withhold_trap(&t) {
                t.go_on(How::Continue, 0);
                return;
            }
        }
        if !caught(tid, signal) {
            self.int80_again(&t, signal);
            t.go_on(How::Continue, signal);
            return;
        }
        let (Ok(info), Ok(regs)) = (t.siginfo(), t.regs()) else { return };
        if self.is_to_restart(tid, &regs) {
            return self.call_with_signal(t, info);
        }
        // The kernel gives the call its result, or has it made again, behind the handler.
        if let Some(t) = self.leave_int80(t, false)
            && let Ok(now) = t.rip()
            && t.set_siginfo(&called_from(info, CacheAddr(at + LEN), GuestAddr(now))).is_ok()
        {
            self.deliver(t, signal);
        }
    }

    /// The call has returned.
    fn after_int80(&mut self, t: Stopped) {
        let tid = t.tid();
        let (Some(call), Ok(mut regs)) = (self.other_calls.get(&tid).copied(), t.regs()) else { return };
        let mut t = t;
        let protects = self.code_cache_and_state(tid).is_some_and(|(s, _)| s.borrow().protects());
        if regs.rax as i64 == -i64::from(libc::EFAULT) && protects {
            // As after `syscall`: it may be because of pages that the engine has protected.
            let Some(t) = self.open_range(t, GuestAddr(0), GuestAddr(u64::MAX)) else { return };
            regs.rax = call.nr.into();
            return self.make_int80(t, regs);
        }
        t = match self.int80_done(t, &call, &regs) {
            Some(t) => t,
            None => return,
        };
        regs.rip = call.next.0;
        regs.orig_rax = u64::MAX;
        if t.set_regs(&regs).is_ok() {
            self.enter(t, call.next);
        }
    }

    /// Follows what a call that has returned did.
    fn int80_done(&mut self, t: Stopped, call: &Call, regs: &Regs) -> Option<Stopped> {
        self.other_calls.remove(&t.tid());
        match call.mapping {
            Some((nr, args)) => self.after_mapping(t, nr, args, regs.rax),
            None => Some(t),
        }
    }

    /// Brings a thread that makes such a call to the guest's own addresses: before the instruction if the call has not begun,
    /// behind it if it has returned. One that was interrupted stands behind it, and the kernel sees to the rest; with `again`
    /// it is made again by the guest.
    pub(super) fn leave_int80(&mut self, t: Stopped, again: bool) -> Option<Stopped> {
        let tid = t.tid();
        let call = self.other_calls.get(&tid).copied()?;
        let at = self.int80_gadget(tid)?;
        let mut regs = t.regs().ok()?;
        let restart = restarts(&regs).filter(|_| again).or_else(|| {
            let for_nothing = again && regs.rax as i64 == -i64::from(libc::EINTR) && call.never_made_again(true);
            for_nothing.then_some(Restart::Same)
        });
        let t = if regs.rip == at || restart.is_some() {
            match restart {
                Some(Restart::Continued) => regs.rax = nr::RESTART_SYSCALL.into(),
                Some(Restart::Same) => regs.rax = regs.orig_rax,
                None => {}
            }
            regs.rip = call.pc.0;
            regs.orig_rax = u64::MAX;
            self.other_calls.remove(&tid);
            let executed = self.process_of(tid)?.code_cache.borrow().trans.block(call.block).n;
            self.uncount_last(tid, call.block, executed);
            t
        } else {
            regs.rip = call.next.0;
            self.int80_done(t, &call, &regs)?
        };
        t.set_regs(&regs).ok()?;
        self.set_state(tid, State::Guest);
        Some(t)
    }

    /// `t` is about to go on after `signal` (0: a stop of the engine's own), which has no handler: if its call was interrupted
    /// for nothing, and the kernel does not make it again, that is done here.
    pub(super) fn int80_again(&mut self, t: &Stopped, signal: i32) {
        let tid = t.tid();
        let (Some(call), Some(at), Ok(mut regs)) = (self.other_calls.get(&tid), self.int80_gadget(tid), t.regs())
        else {
            return;
        };
        if regs.rip != at + LEN || signal != 0 && !restart::ignored(tid, signal) {
            return;
        }
        if regs.rax as i64 == -i64::from(libc::EINTR) && call.never_made_again(signal == 0) {
            regs.rip = at;
            regs.rax = call.nr.into();
            regs.orig_rax = u64::MAX;
            let _ = t.set_regs(&regs);
        }
        self.kernel_makes_again(tid, &regs);
    }

    /// The thread is about to end: if its call has not begun, the instruction has not been executed.
    pub(super) fn int80_never_made(&mut self, t: &Stopped) {
        let tid = t.tid();
        let Some(call) = self.other_calls.get(&tid).copied() else { return };
        if let (Ok(rip), Some(at)) = (t.rip(), self.int80_gadget(tid))
            && rip == at
            && let Some(p) = self.process_of(tid)
        {
            let executed = p.code_cache.borrow().trans.block(call.block).n;
            self.uncount_last(tid, call.block, executed);
        }
    }

    /// Thread `child` has been created by `tid`, perhaps by such a call: it comes out of the same one.
    pub(super) fn born_of_int80(&mut self, tid: Tid, child: Tid) {
        if let Some(call) = self.other_calls.get(&tid).copied() {
            self.other_calls.insert(child, call);
        }
    }

    /// Where a thread that such a call has created begins, if one has.
    pub(super) fn begins_behind_int80(&mut self, tid: Tid) -> Option<GuestAddr> {
        self.other_calls.remove(&tid).map(|call| call.next)
    }
}
