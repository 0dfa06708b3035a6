//! What the engine's own mappings must not cost the program: they count for RLIMIT_AS, `mlockall` would lock them, page by
//! page (terabytes are reserved, though hardly any used). So a limit that the program sets is what it may map itself: the
//! kernel is told so much more, and the program is shown what it has set. `mlockall` locks each of its own mappings.
//!
//! A limit that was there before the program began is the kernel's business; the engine then makes do with less.

use grind_guest::process::Process;
use grind_layout as layout;
use grind_ptrace::limits::{self, Limits};
use grind_ptrace::maps;
use grind_ptrace::status::{Status, limit};
use grind_ptrace::{How, Regs, Stopped};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::{Pid, Tid};
use nix::libc;

use super::Dispatcher;
use grind_guest::resume::{answer, run};

/// Where in a thread's slot a `struct rlimit` may be put: behind the slot words.
const LIMIT_OFFSET: u64 = 3072;

/// Chunks that may be added once the program's hard limit has been set.
const MOST_CHUNKS: u64 = 64;

fn plus(limit: u64, more: u64) -> u64 {
    // Without a limit there is none with more, either.
    if limit == libc::RLIM_INFINITY { limit } else { limit.saturating_add(more).min(libc::RLIM_INFINITY - 1) }
}

/// Address space that the engine takes in a process: now, and at most.
fn overhead(p: &Process) -> (u64, u64) {
    let fixed = p.pool.borrow().span().1 + layout::TABLES_SIZE;
    let chunks = p.code_cache.borrow().chunks.len() as u64;
    (fixed + chunks * layout::CHUNK_SIZE, fixed + MOST_CHUNKS * layout::CHUNK_SIZE)
}

/// What the kernel is to be told when a process wants `limits`.
fn for_the_kernel(p: &Process, limits: Limits) -> Limits {
    let (now, most) = overhead(p);
    let hard = plus(limits[1], most);
    [plus(limits[0], now).min(hard), hard]
}

/// Sets the limit of another process. If it is refused, the program has less than it wanted.
fn set(pid: Pid, limits: Limits) {
    limits::set(Tid(pid.0), libc::RLIMIT_AS, limits);
}

impl Dispatcher<'_> {
    /// `getrlimit`, `setrlimit` and `prlimit`.
    pub(super) fn limit_call(
        &mut self,
        t: Stopped,
        regs: Regs,
        nr: i64,
        args: [u64; 6],
        go: CacheAddr,
        next: GuestAddr,
    ) {
        let tid = t.tid();
        let Some(p) = self.process_of(tid) else { return };
        let (resource, new, old) = match nr {
            libc::SYS_getrlimit => (args[0], 0, args[1]),
            libc::SYS_setrlimit => (args[0], args[1], 0),
            _ => (args[1], args[2], args[3]),
        };
        if resource as u32 != libc::RLIMIT_AS || new == 0 && p.address_limit.is_none() {
            return run(t, go, How::Continue);
        }
        // The kernel takes any thread for its process, by the number that it has in the caller's namespace.
        let whose = if nr == libc::SYS_prlimit64 { args[0] as i32 } else { 0 };
        let is_own = |&thread: &Tid| Status::of(thread).id("NSpid") == Some(whose);
        if whose != 0 && !p.threads.iter().any(is_own) {
            return run(t, go, How::Continue);
        }
        let former = p.address_limit.or_else(|| limits::of(tid, libc::RLIMIT_AS));
        let wanted = if new == 0 {
            None
        } else {
            match (p.memory.word(new), p.memory.word(new + 8)) {
                (Some(soft), Some(hard)) => Some([soft, hard]),
                _ => return answer(t, regs, go, next, -i64::from(libc::EFAULT)),
            }
        };
        let mut t = t;
        if let Some(wanted) = wanted {
            if wanted[0] > wanted[1] {
                return answer(t, regs, go, next, -i64::from(libc::EINVAL));
            }
            let bytes: Vec<u8> = for_the_kernel(p, wanted).iter().flat_map(|v| v.to_le_bytes()).collect();
            let at = self.gs(tid) + LIMIT_OFFSET;
            let _ = p.memory.write(at, &bytes);
            let call = [libc::RLIMIT_AS.into(), at, 0, 0, 0, 0];
            let Some((thread, done)) = self.raw(t, libc::SYS_setrlimit, call) else { return };
            t = thread;
            if done.is_none() {
                return answer(t, regs, go, next, -i64::from(libc::EPERM));
            }
            if let Some(p) = self.process_of_mut(tid) {
                p.address_limit = Some(wanted);
            }
        }
        if let (true, Some(former), Some(p)) = (old != 0, former, self.process_of(tid)) {
            let bytes: Vec<u8> = former.iter().flat_map(|v| v.to_le_bytes()).collect();
            if p.memory.write(old, &bytes).is_err() {
                return answer(t, regs, go, next, -i64::from(libc::EFAULT));
            }
        }
        answer(t, regs, go, next, 0);
    }

    /// Another chunk is going to be mapped into `pid`.
    pub(super) fn make_room_for_chunk(&self, pid: Pid) {
        if let Some(p) = self.processes.get(&pid)
            && let Some(limits) = p.address_limit
        {
            let [soft, hard] = for_the_kernel(p, limits);
            set(pid, [plus(soft, layout::CHUNK_SIZE).min(hard), hard]);
        }
    }

    /// A new image in `pid` has got its mappings; its process has set `limits` before.
    pub(super) fn limits_of_image(&mut self, pid: Pid, limits: Limits) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.address_limit = Some(limits);
            set(pid, for_the_kernel(p, limits));
        }
    }

    /// `pid` goes on with a program that is not followed.
    pub(super) fn hand_limits_over(pid: Pid, limits: Limits) {
        set(pid, limits);
    }

    /// `mlockall` with MCL_CURRENT.
    pub(super) fn lock_all(&mut self, t: Stopped, regs: Regs, flags: u64, go: CacheAddr, next: GuestAddr) {
        const CURRENT: u64 = libc::MCL_CURRENT as u64;
        const ONFAULT: u64 = libc::MCL_ONFAULT as u64;
        let tid = t.tid();
        if flags & CURRENT == 0 || flags & !(CURRENT | ONFAULT | libc::MCL_FUTURE as u64) != 0 {
            return run(t, go, How::Continue);
        }
        let Some(p) = self.process_of(tid) else { return };
        let regions = maps::read(tid).unwrap_or_default();
        let slots = p.pool.borrow().span();
        let own = |at: u64| {
            let s = p.code_cache.borrow();
            at.wrapping_sub(slots.0) < slots.1
                || at.wrapping_sub(s.tables_at) < layout::TABLES_SIZE
                || s.chunks.iter().any(|c| at.wrapping_sub(c.guest.0) < layout::CHUNK_SIZE)
        };
        let kernels = |name: &[u8]| name.starts_with(b"[v");
        let theirs: Vec<_> = regions.iter().filter(|r| !own(r.start) && !kernels(&r.name)).collect();
        let size: u64 = theirs.iter().map(|r| r.end - r.start).sum();
        match lockable(p.pid) {
            0 => return answer(t, regs, go, next, -i64::from(libc::EPERM)),
            limit if limit < size => return answer(t, regs, go, next, -i64::from(libc::ENOMEM)),
            _ => {}
        }
        let mut t = t;
        let mut calls: Vec<(i64, [u64; 6])> = Vec::new();
        if flags & !CURRENT & !ONFAULT != 0 {
            calls.push((libc::SYS_mlockall, [flags & !CURRENT, 0, 0, 0, 0, 0]));
        }
        let how = if flags & ONFAULT != 0 { u64::from(libc::MLOCK_ONFAULT) } else { 0 };
        calls.extend(theirs.iter().map(|r| (libc::SYS_mlock2, [r.start, r.end - r.start, how, 0, 0, 0])));
        for (nr, args) in calls {
            // What cannot be brought in is locked all the same, and no error of mlockall's.
            match self.raw(t, nr, args) {
                Some((thread, _)) => t = thread,
                None => return,
            }
        }
        answer(t, regs, go, next, 0);
    }
}

/// Bytes that a process may lock.
fn lockable(pid: Pid) -> u64 {
    const CAP_IPC_LOCK: u32 = 14;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let capable = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    if capable.and_then(|v| u64::from_str_radix(v.trim(), 16).ok()).is_some_and(|set| set >> CAP_IPC_LOCK & 1 != 0) {
        return u64::MAX;
    }
    limit(pid, "Max locked memory").unwrap_or(u64::MAX)
}
