//! SIGTRAP belongs to the guest and to the engine alike: every stop in translated code is one. If the kernel has to force a
//! SIGTRAP that is blocked or ignored, it unblocks it and takes the guest's handler away. So once a program shows that it
//! minds SIGTRAP, what it does with it is kept here, and the kernel sees it neither blocked nor ignored: `rt_sigaction` for it
//! and `rt_sigprocmask` are carried out by the engine, the frames of handlers and `rt_sigreturn` are made to agree, and a
//! SIGTRAP that arrives while the guest blocks it is held back.
//!
//! A program minds SIGTRAP as soon as it says what is to be done with it, or blocks it, be it together with all other signals
//! for a moment. Before that nothing is kept of it, and the kernel is asked. Invariant: a thread runs translated code with a
//! SIGTRAP that the kernel does not block; what a program that is not followed inherits is what the guest had asked for.
//!
//! To see who blocks it costs a stop for every `rt_sigprocmask`, and there are programs that make millions. Whoever has made
//! [`MASKS_LOOKED_AT`] of them without ever saying what is to be done with SIGTRAP does not mind it: from then on the kernel alone
//! knows its masks, and a SIGTRAP that it blocks comes through where the kernel has to force one of the engine's.
//!
//! Not covered: waiting for SIGTRAP with `sigwait`, `signalfd` or `sigpending`, and masks that are set by `int 0x80`.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use grind_code_cache::{CallStop, MASKS_LOOKED_AT};
use grind_guest::image::Remote;
use grind_guest::process::{Process, State};
use grind_ptrace::kinds::bit;
use grind_ptrace::status::Status;
use grind_ptrace::{self as tracee, How, Regs, Stop, Stopped};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::{Pid, Tid};
use nix::libc;

use super::Dispatcher;
use super::signal::ACTION_SIZE;
use grind_guest::resume::{answer, run};

/// SIGTRAP's bit in a set of signals.
const TRAP: u64 = bit(libc::SIGTRAP);

/// Where in a thread's slot a `struct sigaction` may be put: behind the slot words.
const ACTION_OFFSET: u64 = 3072;

/// Offset of the signal mask in a `struct ucontext`: flags, link, stack, then 256 bytes of registers.
const UC_SIGMASK: u64 = 8 + 8 + 24 + 256;

/// What a process, as it sees itself, does with SIGTRAP.
#[derive(Clone, Debug, Default)]
pub(super) struct Traps {
    /// It has said what is to be done with it, or has inherited that.
    acts: bool,
    ignored: bool,
    /// Threads that block it.
    blocked: HashSet<Tid>,
    /// What is to be delivered to a thread once it does not block it any more.
    held: HashMap<Tid, libc::siginfo_t>,
}

impl Traps {
    /// Whether it is told what is to be done with it, or blocks it, or is owed one.
    fn matter(&self) -> bool {
        self.acts || !self.blocked.is_empty() || !self.held.is_empty()
    }
}

impl Dispatcher<'_> {
    fn traps_of(&mut self, tid: Tid) -> Option<&mut Traps> {
        let pid = self.threads.get(&tid)?.pid;
        self.traps.get_mut(&pid)
    }

    pub(super) fn trap_blocked(&self, tid: Tid) -> bool {
        let pid = self.threads.get(&tid).map(|th| th.pid);
        pid.and_then(|p| self.traps.get(&p)).is_some_and(|t| t.blocked.contains(&tid))
    }

    /// Whether process `pid` does anything with SIGTRAP just now.
    pub(super) fn minds_traps(&self, pid: Pid) -> bool {
        self.traps.get(&pid).is_some_and(Traps::matter)
    }

    /// From now on the process's dealings with SIGTRAP are looked after.
    fn mind_traps(&mut self, tid: Tid) {
        if let Some(th) = self.threads.get(&tid).filter(|_| self.masks_are_followed(tid)) {
            self.traps.entry(th.pid).or_default();
        }
    }

    fn masks_are_followed(&self, tid: Tid) -> bool {
        self.code_cache_and_state(tid).is_some_and(|(code_cache, _)| code_cache.borrow().masks_left > 0)
    }

    /// One more `rt_sigprocmask` of `tid` is looked at. If there have been enough, and no process with the same translations minds
    /// SIGTRAP or blocks it just now, it is the last one.
    fn look_at_mask(&mut self, tid: Tid) {
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let left = code_cache.borrow().masks_left;
        if left > 1 {
            code_cache.borrow_mut().masks_left = left - 1;
            return;
        }
        let sharing = |p: &Process| Rc::ptr_eq(&p.code_cache, &code_cache);
        let pids: Vec<Pid> = self.processes.iter().filter(|(_, p)| sharing(p)).map(|(pid, _)| *pid).collect();
        if pids.iter().any(|pid| self.minds_traps(*pid)) {
            return;
        }
        pids.iter().for_each(|pid| drop(self.traps.remove(pid)));
        code_cache.borrow_mut().masks_left = 0;
        code_cache.borrow().stop_before(libc::SYS_rt_sigprocmask, CallStop::Served, false);
    }

    /// A process says what is to be done with SIGTRAP: its masks are looked at in any case.
    fn act_on_traps(&mut self, tid: Tid) {
        if let Some((code_cache, _)) = self.code_cache_and_state(tid) {
            code_cache.borrow_mut().masks_left = MASKS_LOOKED_AT;
            code_cache.borrow().stop_before(libc::SYS_rt_sigprocmask, CallStop::Served, true);
        }
        self.mind_traps(tid);
        if let Some(traps) = self.traps_of(tid) {
            traps.acts = true;
        }
    }

    /// Thread `former` of process `pid` has executed a program, and is called as the process is from now on.
    pub(super) fn traps_renamed(&mut self, former: Tid, pid: Pid) {
        if let Some(traps) = self.traps.get_mut(&pid) {
            let blocks = traps.blocked.contains(&former);
            traps.blocked = blocks.then_some(Tid::main_of(pid)).into_iter().collect();
        }
    }

    /// A new image inherits what is blocked or ignored. Before anything runs in it.
    pub(super) fn traps_of_image(&mut self, t: &Stopped) {
        let tid = t.tid();
        let pid = Pid::led_by(tid);
        let before = self.traps.remove(&pid).unwrap_or_default();
        let mask = t.sigmask().unwrap_or(0);
        let ignored = before.ignored || Status::of(tid).signals("SigIgn") & TRAP != 0;
        let blocked = before.blocked.contains(&tid) || mask & TRAP != 0;
        if mask & TRAP != 0 {
            let _ = t.set_sigmask(mask & !TRAP);
        }
        if ignored || blocked {
            let blocked = blocked.then_some(tid).into_iter().collect();
            self.traps.insert(pid, Traps { acts: true, ignored, blocked, held: HashMap::new() });
        }
    }

    /// Process `pid` runs already, and its threads stand still: what it blocks or ignores, or does otherwise.
    pub(super) fn traps_of_attached<'t>(&mut self, pid: Pid, threads: impl Iterator<Item = &'t Stopped>) {
        let status = Status::of(Tid::main_of(pid));
        let [ignored, caught] = ["SigIgn", "SigCgt"].map(|set| status.signals(set) & TRAP != 0);
        let mut blocked = HashSet::new();
        for t in threads {
            if let Some(mask) = t.sigmask().ok().filter(|mask| mask & TRAP != 0) {
                let _ = t.set_sigmask(mask & !TRAP);
                blocked.insert(t.tid());
            }
        }
        if ignored || caught || !blocked.is_empty() {
            self.traps.insert(pid, Traps { acts: true, ignored, blocked, held: HashMap::new() });
        }
    }

    /// Thread `child` of `child_pid` has been created by `tid` of `pid`.
    pub(super) fn traps_of_child(&mut self, pid: Pid, tid: Tid, child_pid: Pid, child: Tid) {
        let Some(traps) = self.traps.get_mut(&pid) else { return };
        let blocks = traps.blocked.contains(&tid);
        if pid == child_pid {
            if blocks {
                traps.blocked.insert(child);
            }
            return;
        }
        let blocked = blocks.then_some(child).into_iter().collect();
        let own = Traps { acts: traps.acts, ignored: traps.ignored, blocked, held: HashMap::new() };
        self.traps.insert(child_pid, own);
    }

    /// Whether the SIGTRAP that is about to be delivered comes from a process and is blocked or ignored: it is held back, or
    /// forgotten.
    pub(super) fn withhold_trap(&mut self, t: &Stopped) -> bool {
        let tid = t.tid();
        let Ok(info) = t.siginfo() else { return false };
        let Some(traps) = self.traps_of(tid) else { return false };
        if info.si_code > 0 {
            return false;
        }
        if traps.blocked.contains(&tid) {
            // One at a time, as the kernel keeps them.
            traps.held.entry(tid).or_insert(info);
            return true;
        }
        traps.ignored
    }

    /// Hands a SIGTRAP that has been held back to a thread whose registers are the guest's. `None` if there was one.
    pub(super) fn release_trap(&mut self, t: Stopped) -> Option<Stopped> {
        let tid = t.tid();
        let Some(traps) = self.traps_of(tid) else { return Some(t) };
        if traps.blocked.contains(&tid) {
            return Some(t);
        }
        let ignored = traps.ignored;
        match traps.held.remove(&tid) {
            Some(info) if !ignored => {
                if t.set_siginfo(&info).is_ok() {
                    self.set_state(tid, State::Guest);
                    self.deliver(t, libc::SIGTRAP);
                }
                None
            }
            _ => Some(t),
        }
    }

    /// `tid` is about to make this system call. If that sends a SIGTRAP to another thread that is followed, the thread gets it when
    /// it stands still, and the call is not to be made: the kernel keeps one SIGTRAP for a thread, and that of a breakpoint may just
    /// wait. (What somebody outside sends in that moment, between the breakpoint and its stop, the kernel forgets.)
    pub(super) fn hand_trap_on(&mut self, tid: Tid, nr: i64, args: [u64; 6]) -> bool {
        let [first, second, third, ..] = args.map(|a| a as i32);
        let (group, to, signal) = match nr {
            libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => (Some(Pid(first)), Tid(second), third),
            libc::SYS_tkill => (None, Tid(first), second),
            _ => return false,
        };
        if signal != libc::SIGTRAP || to == tid {
            return false;
        }
        let (Some(from), Some(other)) = (self.threads.get(&tid), self.threads.get(&to)) else { return false };
        if group.is_some_and(|group| group != other.pid) {
            return false;
        }
        let (sender, receiver) = (Status::of(tid), Status::of(to));
        // Numbers mean the same to both and to the engine, and the kernel would let it through.
        let known = sender.id("NSpid") == Some(tid.0) && receiver.id("NSpid") == Some(to.0) && !sender.is_confined();
        let Some(uid) = sender.user().filter(|_| known && (from.pid == other.pid || sender.same_user(&receiver)))
        else {
            return false;
        };
        let info = if nr == libc::SYS_rt_tgsigqueueinfo {
            // What it says is the sender's; the kernel looks closer at what only it may say.
            let mut bytes = [0; size_of::<libc::siginfo_t>()];
            let read = self.process_of(tid).map_or(0, |p| p.memory.read(args[3], &mut bytes));
            let info = tracee::said(signal, &bytes);
            if read < bytes.len() || info.si_code >= 0 || info.si_code == libc::SI_TKILL {
                return false;
            }
            info
        } else {
            tracee::sent_by(signal, from.pid, uid)
        };
        tracee::keep(to, info);
        tracee::interrupt(to);
        true
    }

    fn set_trap_blocked(&mut self, tid: Tid, on: bool) {
        if let Some(traps) = self.traps_of(tid) {
            if on {
                traps.blocked.insert(tid);
            } else {
                traps.blocked.remove(&tid);
            }
        }
    }

    /// A handler begins, with SIGTRAP blocked or not as far as the kernel is concerned: the frame shows what the guest had.
    pub(super) fn trap_blocked_in_handler(&mut self, t: &Stopped, on: bool) {
        let tid = t.tid();
        if on {
            self.mind_traps(tid);
        }
        if self.traps_of(tid).is_none() {
            return;
        }
        if self.trap_blocked(tid)
            && let (Ok(regs), Some(p)) = (t.regs(), self.process_of(tid))
        {
            // The return address, then the context.
            let at = regs.rsp + 8 + UC_SIGMASK;
            if let Some(mask) = p.memory.word(at) {
                let _ = p.memory.write(at, &(mask | TRAP).to_le_bytes());
            }
        }
        if on {
            self.set_trap_blocked(tid, true);
        }
    }

    /// `rt_sigreturn` is about to restore the context at `context`: the kernel must not block SIGTRAP.
    pub(super) fn trap_returns(&mut self, t: &Stopped, context: u64) {
        let tid = t.tid();
        if !self.masks_are_followed(tid) {
            return;
        }
        let Some(p) = self.process_of(tid) else { return };
        let at = context + UC_SIGMASK;
        let Some(mask) = p.memory.word(at) else { return };
        if mask & TRAP != 0 {
            let _ = p.memory.write(at, &(mask & !TRAP).to_le_bytes());
            self.mind_traps(tid);
        }
        self.set_trap_blocked(tid, mask & TRAP != 0);
    }

    pub(super) fn raw(&mut self, t: Stopped, nr: i64, args: [u64; 6]) -> Option<(Stopped, Option<u64>)> {
        let (code_cache, _) = self.code_cache_and_state(t.tid())?;
        let gadget = code_cache.borrow().gadget;
        let p = self.process_of(t.tid())?;
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        let value = remote.raw(nr, args);
        remote.thread.map(|t| (t, value))
    }

    /// Gives `signal` an action, as the kernel knows it.
    pub(super) fn act(&mut self, t: Stopped, signal: i32, action: &[u8; ACTION_SIZE]) -> Option<Stopped> {
        let at = self.gs(t.tid()) + ACTION_OFFSET;
        let _ = self.process_of(t.tid())?.memory.write(at, action);
        let (t, _) = self.raw(t, libc::SYS_rt_sigaction, [signal as u64, at, 0, 8, 0, 0])?;
        Some(t)
    }

    /// `rt_sigaction` for SIGTRAP.
    pub(super) fn trap_action(&mut self, t: Stopped, regs: Regs, args: [u64; 6], go: CacheAddr, next: GuestAddr) {
        let tid = t.tid();
        let [_, new, old, size, ..] = args;
        let Some(p) = self.process_of(tid) else { return };
        let action = p.memory.array::<ACTION_SIZE>(new);
        if size != 8 || new != 0 && action.is_none() {
            // The kernel says what is wrong.
            return run(t, go, How::Continue);
        }
        let mut t = t;
        if old != 0 {
            let query = [libc::SIGTRAP as u64, 0, old, 8, 0, 0];
            let Some((thread, done)) = self.raw(t, libc::SYS_rt_sigaction, query) else { return };
            t = thread;
            if done.is_none() {
                return answer(t, regs, go, next, -i64::from(libc::EFAULT));
            }
            if self.traps_of(tid).is_some_and(|traps| traps.ignored)
                && let Some(p) = self.process_of(tid)
            {
                let _ = p.memory.write(old, &(libc::SIG_IGN as u64).to_le_bytes());
            }
        }
        if let (true, Some(mut action)) = (new != 0, action) {
            self.act_on_traps(tid);
            let ignore = action[..8] == (libc::SIG_IGN as u64).to_le_bytes();
            if ignore {
                action[..8].fill(0);
            }
            if let Some(traps) = self.traps_of(tid) {
                traps.ignored = ignore;
                if ignore {
                    // As the kernel forgets what is pending.
                    traps.held.clear();
                }
            }
            let Some(thread) = self.act(t, libc::SIGTRAP, &action) else { return };
            t = thread;
        }
        answer(t, regs, go, next, 0);
    }

    /// `rt_sigprocmask`, which may be the first call that shows that the process minds SIGTRAP.
    pub(super) fn trap_mask(
        &mut self,
        t: Stopped,
        regs: Regs,
        args: [u64; 6],
        (go, next): (CacheAddr, GuestAddr),
        resumed: How,
    ) {
        let tid = t.tid();
        self.look_at_mask(tid);
        let [how, set_at, old_at, size, ..] = args;
        let blocks = |set: u64| set & TRAP != 0 && how as i32 != libc::SIG_UNBLOCK;
        if set_at != 0 && self.process_of(tid).and_then(|p| p.memory.word(set_at)).is_some_and(blocks) {
            self.mind_traps(tid);
        }
        if self.traps_of(tid).is_none() || size != 8 {
            return run(t, go, resumed);
        }
        let (Some(p), Ok(kernel)) = (self.process_of(tid), t.sigmask()) else { return };
        let mask = kernel & !TRAP | if self.trap_blocked(tid) { TRAP } else { 0 };
        let mut now = mask;
        if set_at != 0 {
            let Some(set) = p.memory.word(set_at) else {
                return answer(t, regs, go, next, -i64::from(libc::EFAULT));
            };
            now = match how as i32 {
                libc::SIG_BLOCK => mask | set,
                libc::SIG_UNBLOCK => mask & !set,
                libc::SIG_SETMASK => set,
                _ => return answer(t, regs, go, next, -i64::from(libc::EINVAL)),
            } & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
            if t.set_sigmask(now & !TRAP).is_err() {
                return;
            }
        }
        let written = old_at == 0 || p.memory.write(old_at, &mask.to_le_bytes()).is_ok();
        self.set_trap_blocked(tid, now & TRAP != 0);
        let result = if written { 0 } else { -i64::from(libc::EFAULT) };
        let waiting = self.traps_of(tid).is_some_and(|traps| traps.held.contains_key(&tid));
        if !waiting || now & TRAP != 0 {
            return answer(t, regs, go, next, result);
        }
        // The handler runs before the call returns.
        let mut regs = regs;
        regs.rax = result as u64;
        regs.rcx = next.0;
        regs.r11 = regs.eflags;
        regs.rip = next.0;
        if t.set_regs(&regs).is_ok()
            && let Some(t) = self.release_trap(t)
        {
            self.enter(t, next);
        }
    }

    /// Lets the kernel ignore SIGTRAP. The `int3` behind a remote call would undo that: between the stops of a system call.
    fn ignore_trap(&mut self, t: Stopped) -> Option<Stopped> {
        let at = self.gs(t.tid()) + ACTION_OFFSET;
        let mut action = [0; ACTION_SIZE];
        action[..8].copy_from_slice(&(libc::SIG_IGN as u64).to_le_bytes());
        let _ = self.process_of(t.tid())?.memory.write(at, &action);
        let (code_cache, _) = self.code_cache_and_state(t.tid())?;
        let (saved, mask) = (t.regs().ok()?, t.sigmask().ok()?);
        let mut regs = saved;
        regs.rip = code_cache.borrow().gadget.at;
        regs.rax = libc::SYS_rt_sigaction as u64;
        regs.orig_rax = u64::MAX;
        [regs.rdi, regs.rsi, regs.rdx, regs.r10] = [libc::SIGTRAP as u64, at, 0, 8];
        t.set_sigmask(!0).ok()?;
        t.set_regs(&regs).ok()?;
        let mut t = t;
        for _ in 0..2 {
            match t.resume_and_wait(How::Syscall, 0) {
                Ok((next, Stop::Syscall)) => t = next,
                Ok((next, stop)) => {
                    // Killed in between.
                    self.stopped(next, stop);
                    return None;
                }
                Err(_) => return None,
            }
        }
        t.set_regs(&saved).ok()?;
        t.set_sigmask(mask).ok()?;
        Some(t)
    }

    /// A SIGTRAP that has been held back from `tid`, which is left to itself, is the kernel's to hold.
    pub(super) fn hand_held_trap_over(&mut self, tid: Tid) {
        if let Some(info) = self.traps_of(tid).and_then(|traps| traps.held.remove(&tid)) {
            tracee::keep(tid, info);
        }
    }

    /// The process is about to execute a program that is not followed: what it does with SIGTRAP is the kernel's business.
    pub(super) fn hand_traps_over(&mut self, t: Stopped) -> Option<Stopped> {
        let tid = t.tid();
        let Some(traps) = self.traps_of(tid) else { return Some(t) };
        let ignored = traps.ignored;
        let t = if ignored { self.ignore_trap(t)? } else { t };
        if self.trap_blocked(tid)
            && let Ok(mask) = t.sigmask()
        {
            let _ = t.set_sigmask(mask | TRAP);
        }
        Some(t)
    }
}
