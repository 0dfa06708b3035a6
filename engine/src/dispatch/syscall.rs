//! System calls that stop before they run. Most only need something done before or after: those run from a gadget that
//! stops again behind them. Calls that emitted code lets through never come here.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use grind_code_cache::CallStop;
use grind_guest::image::Remote;
use grind_guest::int80::{self, replaces};
use grind_guest::process::State;
use grind_layout::SlotWord;
use grind_ptrace::maps;
use grind_ptrace::{self as tracee, How, Regs, Stopped};
use grind_session::Notice;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::{Pid, Tid};
use nix::libc;

use super::{Dispatcher, life};
use grind_guest::resume::{answer, go_on, run};

/// The longest argument vector that is looked at for `--trace-children-skip-by-arg`.
const MAX_ARGS: u64 = 1 << 20;

impl Dispatcher<'_> {
    /// `t` is at the stop before a system call; `go` is its `syscall` instruction.
    pub(super) fn syscall(&mut self, t: Stopped, next: GuestAddr, go: CacheAddr) {
        let tid = t.tid();
        let Ok(regs) = t.regs() else { return };
        let args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        // The kernel takes the number from eax.
        let nr = i64::from(regs.rax as i32);
        self.before_output(tid, nr, args);
        let how = self.time_call(tid, next);
        self.goes_to_call(tid, go);
        if super::deadly::CALLS.contains(&nr)
            && let Some(deadly) = self.deadly_call(tid, nr, args)
        {
            return self.die_by_call(t, args, deadly);
        }
        self.may_make_code(tid, nr, args);
        if self.hand_trap_on(tid, nr, args) {
            return answer(t, regs, go, next, 0);
        }
        match nr {
            libc::SYS_rseq if !self.process_of(tid).is_some_and(|p| p.joined) => {
                answer(t, regs, go, next, -i64::from(libc::ENOSYS));
            }
            libc::SYS_rt_sigaction if args[0] as i32 == libc::SIGTRAP => self.trap_action(t, regs, args, go, next),
            libc::SYS_rt_sigprocmask => self.trap_mask(t, regs, args, (go, next), how),
            libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork if self.no_more_births(tid) => {
                self.warn_no_more_births(tid);
                answer(t, regs, go, next, -i64::from(libc::EAGAIN));
            }
            libc::SYS_rt_sigreturn => {
                self.trap_returns(&t, regs.rsp);
                let traps = self.frame_traps(tid, regs.rsp);
                self.begin_return(t, go, traps);
            }
            libc::SYS_execve | libc::SYS_execveat => self.exec(t, regs, nr, args, go),
            libc::SYS_arch_prctl => self.arch_prctl(t, regs, args, go, next),
            libc::SYS_shmat if replaces(nr, args) => self.follow(t, nr, args, next),
            libc::SYS_madvise if !replaces(nr, args) => run(t, go, how),
            libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_pkey_mprotect
            | libc::SYS_mremap
            | libc::SYS_remap_file_pages
            | libc::SYS_madvise
            | libc::SYS_shmdt => self.change_mappings(t, (nr, args), go, next, how),
            libc::SYS_mmap if args[3] & libc::MAP_FIXED as u64 != 0 => {
                self.change_mappings(t, (nr, args), go, next, how);
            }
            libc::SYS_brk | libc::SYS_process_madvise => match self.as_mapping(tid, nr, args) {
                Some(same) => self.change_mappings(t, same, go, next, how),
                None => run(t, go, how),
            },
            libc::SYS_getrlimit | libc::SYS_setrlimit | libc::SYS_prlimit64 => {
                self.limit_call(t, regs, nr, args, go, next);
            }
            libc::SYS_mlockall => self.lock_all(t, regs, args[0], go, next),
            libc::SYS_seccomp => self.confine(t, go),
            libc::SYS_prctl if args[0] as i32 == libc::PR_SET_SECCOMP => self.confine(t, go),
            libc::SYS_ptrace => {
                self.warn_of_ptrace(tid);
                run(t, go, how);
            }
            libc::SYS_sched_setaffinity | libc::SYS_sched_getaffinity => {
                self.guest_minds_processors();
                run(t, go, how);
            }
            libc::SYS_clone if args[0] & libc::CLONE_UNTRACED as u64 != 0 => {
                // It would run our code without anybody to serve its stops.
                let mut regs = regs;
                regs.rdi &= !(libc::CLONE_UNTRACED as u64);
                go_on(t, regs, go);
            }
            _ => run(t, go, how),
        }
    }

    pub(super) fn warn_no_more_births(&mut self, tid: Tid) {
        self.warn_once(tid, "too many threads and processes at a time: no more can be created (EAGAIN)");
    }

    pub(super) fn warn_of_ptrace(&mut self, tid: Tid) {
        self.warn_once(
            tid,
            "the program uses ptrace, but it and its children are being traced already: the kernel refuses; \
             run the tracer natively and grind below it",
        );
    }

    fn confine(&mut self, t: Stopped, go: CacheAddr) {
        if let Some(t) = self.before_confinement(t) {
            run(t, go, How::Continue);
        }
    }

    /// The program is about to forbid system calls to itself. What the engine is likely to need some of is done before: it can
    /// only be done in spite of a filter where the user may suspend those.
    pub(super) fn before_confinement(&mut self, t: Stopped) -> Option<Stopped> {
        tracee::expect_filters();
        let tid = t.tid();
        let mut t = self.own_code_cache(t)?;
        let (code_cache, _) = self.code_cache_and_state(tid)?;
        let pid = self.process_of(tid)?.pid;
        self.learn_map(tid, &code_cache);
        let wanted = code_cache.borrow().out_of_reach();
        for pc in wanted {
            t = self.chunk_near(t, pid, &code_cache, pc)?;
        }
        Some(t)
    }

    /// Whether there is no slot for another thread, those that may be on their way included.
    pub(super) fn no_more_births(&self, tid: Tid) -> bool {
        self.process_of(tid).is_some_and(|p| p.pool.borrow().is_exhausted())
    }

    /// A system call that was let through has answered EFAULT or EINTR; `rip` is where its program goes on. If the kernel was
    /// kept from writing to a page whose code has been translated, that is not the guest's fault: once more. (The kernel asks
    /// for a buffer before it takes anything away, but for datagrams and a few counters.) So it is if another thread has taken
    /// the signal that interrupted this one.
    pub(super) fn call_failed(&mut self, t: Stopped, go: CacheAddr, rip: CacheAddr) {
        let tid = t.tid();
        let Ok(mut regs) = t.regs() else { return };
        let nr = self.slot_word(tid, SlotWord::T2);
        if regs.rax as i64 == -i64::from(libc::EINTR) {
            regs.orig_rax = nr;
            if !self.interrupted_for_another(tid, &regs) {
                return run(t, rip, How::Continue);
            }
            regs.orig_rax = u64::MAX;
            regs.rax = nr;
            return go_on(t, regs, go);
        }
        let protected = self.code_cache_and_state(tid).is_some_and(|(s, _)| s.borrow().protects());
        if !protected {
            return run(t, rip, How::Continue);
        }
        let Some(t) = self.open_range(t, GuestAddr(0), GuestAddr(u64::MAX)) else { return };
        let Ok(mut regs) = t.regs() else { return };
        regs.rax = nr;
        go_on(t, regs, go);
    }

    /// Tells the user something, the first time.
    pub(super) fn warn_once(&mut self, tid: Tid, text: &'static str) {
        if self.warned.insert(text) {
            let pid = self.threads.get(&tid).map_or(Pid::led_by(tid), |th| th.pid);
            self.session.notice(pid, Notice::Warning(text.into()));
        }
    }

    /// Whether the memory that the call changes holds code that has been translated, or is known to be executable: what is
    /// known of it may not be true afterwards.
    pub(super) fn concerns_code(&self, tid: Tid, nr: i64, args: [u64; 6]) -> bool {
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return false };
        let code_cache = code_cache.borrow();
        let touches = |(start, end): (GuestAddr, GuestAddr)| {
            code_cache.trans.touches(start, end)
                || code_cache.once_protected_in(start, end)
                || code_cache.executable_in(start, end)
                || code_cache.relies_on(start, end)
        };
        matches!(nr, libc::SYS_shmat | libc::SYS_shmdt) || ranges(nr, args).into_iter().any(touches)
    }

    /// The call that changes mappings in the same way as one that has no range of its own.
    fn as_mapping(&self, tid: Tid, nr: i64, args: [u64; 6]) -> Option<(i64, [u64; 6])> {
        match nr {
            libc::SYS_brk => int80::shrinks(tid, args[0]),
            _ => int80::drops(&self.process_of(tid)?.memory, args, 8),
        }
    }

    /// What had been found in the code of a process need not be true any more.
    fn may_make_code(&mut self, tid: Tid, nr: i64, args: [u64; 6]) {
        if matches!(nr, libc::SYS_mprotect | libc::SYS_pkey_mprotect)
            && args[2] & libc::PROT_EXEC as u64 != 0
            && let Some(pid) = self.threads.get(&tid).map(|th| th.pid)
        {
            self.code_changes(pid);
        }
    }

    /// Nothing that has been translated is concerned; but bytes read beside it may be about to change.
    pub(super) fn drop_unused(&self, tid: Tid, nr: i64, args: [u64; 6]) {
        if let Some((code_cache, _)) = self.code_cache_and_state(tid) {
            let mut code_cache = code_cache.borrow_mut();
            let opened = opens(nr, args);
            ranges(nr, args).into_iter().for_each(|(start, end)| code_cache.drop_unused(start, end, opened));
        }
    }

    /// Lets a call run that changes mappings as the call `nr` would, with these arguments: with a stop behind it if that concerns code.
    fn change_mappings(&mut self, t: Stopped, (nr, args): (i64, [u64; 6]), go: CacheAddr, next: GuestAddr, how: How) {
        if self.concerns_code(t.tid(), nr, args) {
            return self.follow(t, nr, args, next);
        }
        self.drop_unused(t.tid(), nr, args);
        run(t, go, how);
    }

    /// Lets the call run with a stop behind it.
    fn follow(&mut self, t: Stopped, nr: i64, args: [u64; 6], next: GuestAddr) {
        let tid = t.tid();
        let mut args = args;
        with_range(tid, nr, &mut args);
        let Some(t) = self.make_way(t, nr, args) else { return };
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let gadget = code_cache.borrow().gadget.at;
        self.set_state(tid, State::Call { nr, args, next });
        run(t, CacheAddr(gadget), How::Continue);
    }

    /// A call that changes these mappings is about to be made.
    fn make_way(&mut self, t: Stopped, nr: i64, args: [u64; 6]) -> Option<Stopped> {
        let tid = t.tid();
        let t = self.own_code_cache(t)?;
        if opens(nr, args) {
            self.expect_discards(tid);
        }
        if gives_away(nr) {
            // The kernel may give these addresses to another thread before the call returns: nothing may be left of what is
            // there now. Pages that are moved would take their protection along to where nobody expects it.
            let t = self.vacate(t, args[0], args[1])?;
            if let Some((code_cache, _)) = self.code_cache_and_state(tid) {
                code_cache.borrow_mut().unprotect_range(GuestAddr(args[0]), GuestAddr(args[0].saturating_add(args[1])));
            }
            return Some(t);
        }
        Some(t)
    }

    /// Code is written to: from now on it may be thrown away for what its file holds.
    pub(super) fn expect_discards(&self, tid: Tid) {
        if let Some((code_cache, _)) = self.code_cache_and_state(tid) {
            for nr in [libc::SYS_madvise, libc::SYS_process_madvise] {
                code_cache.borrow().stop_before(nr, CallStop::Served, true);
            }
        }
    }

    /// A call of another table that does what `nr` does is about to be made.
    pub(super) fn before_mapping(&mut self, t: Stopped, nr: i64, args: &mut [u64; 6]) -> Option<Stopped> {
        with_range(t.tid(), nr, args);
        self.may_make_code(t.tid(), nr, *args);
        if self.concerns_code(t.tid(), nr, *args) {
            return self.make_way(t, nr, *args);
        }
        self.drop_unused(t.tid(), nr, *args);
        Some(t)
    }

    /// Makes all translations of `start..start + len` dead and gives protected pages there back to the guest.
    fn vacate(&mut self, t: Stopped, start: u64, len: u64) -> Option<Stopped> {
        let (start, end) = (GuestAddr(start), GuestAddr(start.saturating_add(len)));
        let t = self.open_range(t, start, end)?;
        if let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) {
            self.tell_code(t.tid(), &code_cache);
            code_cache.borrow_mut().kill_range(start, end);
            code_cache.borrow_mut().forget_map();
        }
        Some(t)
    }

    /// The call has returned.
    pub(super) fn after_call(&mut self, t: Stopped, nr: i64, args: [u64; 6], next: GuestAddr) {
        let Some((t, regs)) = self.finish_call(t, nr, args, next) else { return };
        if t.set_regs(&regs).is_ok() {
            self.enter(t, next);
        }
    }

    /// Follows what the call did; the registers are the guest's afterwards, but for rip.
    pub(super) fn finish_call(
        &mut self,
        t: Stopped,
        nr: i64,
        args: [u64; 6],
        next: GuestAddr,
    ) -> Option<(Stopped, Regs)> {
        let mut regs = t.regs().ok()?;
        regs.rcx = next.0;
        self.after_mapping(t, nr, args, regs.rax).map(|t| (t, regs))
    }

    /// Follows what a call that changes mappings, and has returned `result`, did.
    pub(super) fn after_mapping(&mut self, t: Stopped, nr: i64, args: [u64; 6], result: u64) -> Option<Stopped> {
        if (-4095..0).contains(&(result as i64)) {
            return Some(t);
        }
        // Meanwhile another thread may have translated what has vanished, or what has taken its place: of that, the
        // protection is true.
        let t = if gives_away(nr) { self.vacate(t, args[0], args[1])? } else { t };
        let changed = match nr {
            libc::SYS_munmap | libc::SYS_shmdt => None,
            libc::SYS_mremap => Some((result, args[2])),
            libc::SYS_mmap => Some((result, args[1])),
            libc::SYS_shmat => Some((args[0], mapped_length(t.tid(), args[0]))),
            _ => Some((args[0], args[1])),
        };
        if let (Some((start, len)), Some((code_cache, _))) = (changed, self.code_cache_and_state(t.tid())) {
            let (start, end) = (GuestAddr(start), GuestAddr(start.saturating_add(len)));
            self.tell_code(t.tid(), &code_cache);
            let mut code_cache = code_cache.borrow_mut();
            code_cache.kill_range(start, end);
            // These two change what is mapped, and leave its protection as it is.
            if !matches!(nr, libc::SYS_madvise | libc::SYS_remap_file_pages) {
                code_cache.unprotect_range(start, end);
            }
            code_cache.forget_map();
        }
        Some(t)
    }

    fn exec(&mut self, t: Stopped, regs: Regs, nr: i64, args: [u64; 6], go: CacheAddr) {
        let tid = t.tid();
        let (folder, path, argv) = match nr {
            libc::SYS_execve => (libc::AT_FDCWD, args[0], args[1]),
            _ => (args[0] as i32, args[1], args[2]),
        };
        let Some((t, follow)) = self.before_exec(t, folder, path, argv, 8) else { return };
        self.set_state(tid, State::Exec { follow });
        go_on(t, regs, go);
    }

    /// A program is about to be executed: the one that the string at `path_at` names, relative to descriptor `folder`, with the
    /// arguments that the pointers at `argv_at`, of `size` bytes each, lead to. Also tells whether it is followed.
    pub(super) fn before_exec(
        &mut self,
        t: Stopped,
        folder: i32,
        path_at: u64,
        argv_at: u64,
        size: u64,
    ) -> Option<(Stopped, bool)> {
        let tid = t.tid();
        let p = self.process_of(tid)?;
        let pid = p.pid;
        let pointer = |at: u64| match size {
            4 => p.memory.array::<4>(at).map(|w| u64::from(u32::from_le_bytes(w))),
            _ => p.memory.word(at),
        };
        let path = p.memory.c_string(path_at, 4096).unwrap_or_default();
        let mut argv = Vec::new();
        while (argv.len() as u64) < MAX_ARGS
            && let Some(at) = pointer(argv_at + size * argv.len() as u64).filter(|&a| a != 0)
        {
            let Some(arg) = p.memory.c_string(at, 128 << 10) else { break };
            argv.push(OsString::from_vec(arg));
        }
        let mut path = PathBuf::from(OsString::from_vec(path));
        if folder == libc::AT_FDCWD || path.is_absolute() {
            path = life::resolve(tid, &path);
        } else {
            path = std::fs::read_link(format!("/proc/{tid}/fd/{folder}")).unwrap_or_default().join(path);
        }
        let follow = self.session.follow_exec(pid, &path, &argv);
        // What is not followed must not stay confined.
        self.unpin();
        let personality = life::personality(follow);
        let (code_cache, _) = self.code_cache_and_state(tid)?;
        let gadget = code_cache.borrow().gadget;
        let p = self.process_of(tid)?;
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        remote.raw(libc::SYS_personality, [personality, 0, 0, 0, 0, 0]);
        let t = remote.thread.take()?;
        let t = if follow { t } else { self.hand_traps_over(t)? };
        Some((t, follow))
    }

    fn arch_prctl(&mut self, t: Stopped, regs: Regs, args: [u64; 6], go: CacheAddr, next: GuestAddr) {
        const ARCH_SET_GS: u64 = 0x1001;
        const ARCH_GET_GS: u64 = 0x1004;
        let tid = t.tid();
        let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { return };
        let result = match args[0] {
            ARCH_SET_GS if args[1] >= 1 << 47 => -i64::from(libc::EPERM),
            ARCH_SET_GS => {
                p.pool.borrow().set_slot_word(th.slot, SlotWord::GuestGs, args[1]);
                0
            }
            ARCH_GET_GS => {
                let v = p.pool.borrow().slot_word(th.slot, SlotWord::GuestGs);
                match p.memory.write(args[1], &v.to_le_bytes()) {
                    Ok(()) => 0,
                    Err(_) => -i64::from(libc::EFAULT),
                }
            }
            _ => return run(t, go, How::Continue),
        };
        answer(t, regs, go, next, result);
    }
}

/// Whether a call gives addresses back to the kernel.
fn gives_away(nr: i64) -> bool {
    matches!(nr, libc::SYS_munmap | libc::SYS_mremap | libc::SYS_shmdt)
}

/// The memory whose mappings a call changes, as far as that is known before.
pub(super) fn ranges(nr: i64, args: [u64; 6]) -> Vec<(GuestAddr, GuestAddr)> {
    let range = |start: u64, len: u64| (GuestAddr(start), GuestAddr(start.saturating_add(len)));
    let mut all = vec![range(args[0], args[1])];
    if nr == libc::SYS_mremap && args[3] & libc::MREMAP_FIXED as u64 != 0 {
        all.push(range(args[4], args[2]));
    }
    all
}

/// Whether a call lets code be written to.
fn opens(nr: i64, args: [u64; 6]) -> bool {
    matches!(nr, libc::SYS_mprotect | libc::SYS_pkey_mprotect) && args[2] & libc::PROT_WRITE as u64 != 0
}

/// Calls for segments of shared memory have their ranges in their own way: it becomes the first two arguments, as in all
/// others. How long a segment is, is known where it is attached: of one that is to be attached the length is 0.
fn with_range(tid: Tid, nr: i64, args: &mut [u64; 6]) {
    match nr {
        libc::SYS_shmdt => args[1] = mapped_length(tid, args[0]),
        // `SHM_RND` rounds down to a page.
        libc::SYS_shmat => (args[0], args[1]) = (args[1] & !0xfff, 0),
        _ => {}
    }
}

/// Bytes of the shared memory segment that `tid` has attached at `start`.
fn mapped_length(tid: Tid, start: u64) -> u64 {
    let regions = maps::read(tid).unwrap_or_default();
    let first = regions.iter().find(|r| r.start == start);
    let mut end = start;
    for r in &regions {
        // Several, if parts of it have been given rights of their own.
        if r.start == end && first.is_some_and(|f| f.inode == r.inode) {
            end = r.end;
        }
    }
    end - start
}
