//! System calls of a program that runs its own code. A call passes if the engine would do nothing about it but let it run; all others
//! are made by translated code. Invariant: none passes that makes code, changes or removes some, or has to do with SIGTRAP, nor one that
//! creates a thread or process, or executes a program.

use grind_guest::int80::replaces;
use grind_ptrace::kinds::bit;
use grind_types::Tid;
use grind_types::addr::GuestAddr;
use nix::libc;

use super::super::Dispatcher;
use super::super::syscall::ranges;

impl Dispatcher<'_> {
    /// Whether `tid` may make this call by itself.
    pub(super) fn passes(&mut self, tid: Tid, nr: i64, args: [u64; 6]) -> bool {
        let makes_code = args[2] & libc::PROT_EXEC as u64 != 0;
        match nr {
            libc::SYS_mmap => {
                let fixed = args[3] & libc::MAP_FIXED as u64 != 0;
                !makes_code && (!fixed || self.changes_data(tid, nr, args))
            }
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => !makes_code && self.changes_data(tid, nr, args),
            libc::SYS_munmap | libc::SYS_mremap => self.changes_data(tid, nr, args),
            libc::SYS_madvise => !replaces(nr, args) || self.changes_data(tid, nr, args),
            libc::SYS_rt_sigaction => args[0] as i32 != libc::SIGTRAP,
            libc::SYS_rt_sigprocmask => {
                let set = self.process_of(tid).and_then(|p| p.memory.word(args[1]));
                args[0] as i32 == libc::SIG_UNBLOCK || args[1] == 0 || set.is_some_and(|s| s & bit(libc::SIGTRAP) == 0)
            }
            libc::SYS_prctl => args[0] as i32 != libc::PR_SET_SECCOMP,
            libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork | libc::SYS_personality => false,
            _ => self.code_cache_and_state(tid).is_some_and(|(code_cache, _)| !code_cache.borrow().serves(nr)),
        }
    }

    /// Whether a call changes mappings that are neither code nor anything that translations rely on. They are not kept any longer
    /// then.
    fn changes_data(&mut self, tid: Tid, nr: i64, args: [u64; 6]) -> bool {
        let Some(pid) = self.threads.get(&tid).map(|th| th.pid) else { return false };
        let touches = |(start, end): (GuestAddr, GuestAddr)| {
            self.own_code
                .running
                .get(&pid)
                .is_none_or(|r| r.planted.code.iter().any(|c| c.start < end && start < c.end))
        };
        if self.concerns_code(tid, nr, args) || ranges(nr, args).into_iter().any(touches) {
            self.code_changes(pid);
            return false;
        }
        self.drop_unused(tid, nr, args);
        true
    }
}
