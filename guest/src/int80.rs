//! System calls by `int 0x80`: their numbers, and what a call of that table does. It looks at arguments and at what they point to; who makes
//! the call, and follows what it has done, is `engine::dispatch::int80`. Invariant: nothing is changed.

use grind_fragments::fragment_table::FragmentId;
use grind_ptrace::{Memory, maps};
use grind_types::Tid;
use grind_types::addr::GuestAddr;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use nix::libc;

/// Numbers in the table that `int 0x80` uses, where the engine minds them (arch/x86/entry/syscalls/syscall_32.tbl of Linux).
#[allow(missing_docs)]
pub mod nr {
    pub const RESTART_SYSCALL: u32 = 0;
    pub const FORK: u32 = 2;
    pub const EXECVE: u32 = 11;
    pub const PTRACE: u32 = 26;
    pub const BRK: u32 = 45;
    pub const OLD_MMAP: u32 = 90;
    pub const MUNMAP: u32 = 91;
    pub const IPC: u32 = 117;
    pub const SIGRETURN: u32 = 119;
    pub const CLONE: u32 = 120;
    pub const MPROTECT: u32 = 125;
    pub const MREMAP: u32 = 163;
    pub const PRCTL: u32 = 172;
    pub const RT_SIGRETURN: u32 = 173;
    pub const RT_SIGTIMEDWAIT: u32 = 177;
    pub const VFORK: u32 = 190;
    pub const MMAP2: u32 = 192;
    pub const MADVISE: u32 = 219;
    pub const IO_GETEVENTS: u32 = 247;
    pub const EPOLL_WAIT: u32 = 256;
    pub const REMAP_FILE_PAGES: u32 = 257;
    pub const EPOLL_PWAIT: u32 = 319;
    pub const SECCOMP: u32 = 354;
    pub const EXECVEAT: u32 = 358;
    pub const PKEY_MPROTECT: u32 = 380;
    pub const RSEQ: u32 = 386;
    pub const SHMAT: u32 = 397;
    pub const SHMDT: u32 = 398;
    pub const SEMTIMEDOP: u32 = 420;
    pub const RT_SIGTIMEDWAIT_64: u32 = 421;
    pub const CLONE3: u32 = 435;
    pub const PROCESS_MADVISE: u32 = 440;
    pub const EPOLL_PWAIT2: u32 = 441;

    /// Calls of `IPC`: what its first argument says, less a version in the upper half.
    pub const IPC_SEMOP: u64 = 1;
    pub const IPC_SEMTIMEDOP: u64 = 4;
    pub const IPC_SHMAT: u64 = 21;
    pub const IPC_SHMDT: u64 = 22;
}

/// A call that a thread is making.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The instruction.
    pub pc: GuestAddr,
    /// What is behind it.
    pub next: GuestAddr,
    /// The block that the instruction is the last one of.
    pub block: FragmentId,
    /// The number of the call.
    pub nr: u32,
    /// Its arguments.
    pub args: [u64; 6],
    /// The call of the other table that changes mappings in the same way, with its arguments.
    pub mapping: Option<(i64, [u64; 6])>,
    /// Whether the program that it may execute is followed.
    pub follow: bool,
}

impl Call {
    /// Whether the call creates a thread or process.
    pub fn births(&self) -> bool {
        matches!(self.nr, nr::FORK | nr::VFORK | nr::CLONE | nr::CLONE3)
    }

    /// The flags of a call that creates a thread or process; `third` is what clone3 would read.
    pub fn flags_of_birth(&self, clone3: impl Fn(u64) -> Option<u64>) -> u64 {
        match self.nr {
            nr::CLONE => self.args[0],
            nr::CLONE3 => clone3(self.args[0]).unwrap_or(0),
            nr::VFORK => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
            _ => 0,
        }
    }

    /// What [`Call::mapping`] is, of a call of `tid`.
    pub fn as_mapping(&self, tid: Tid, memory: &Memory) -> Option<(i64, [u64; 6])> {
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
            nr::BRK => shrinks(tid, a[0])?,
            nr::PROCESS_MADVISE => drops(memory, a, 4)?,
            nr::IPC if a[0] & 0xffff == nr::IPC_SHMAT && replaces(libc::SYS_shmat, [a[1], a[4], a[2], 0, 0, 0]) => {
                (libc::SYS_shmat, [a[1], a[4], a[2], 0, 0, 0])
            }
            nr::IPC if a[0] & 0xffff == nr::IPC_SHMDT => (libc::SYS_shmdt, [a[4], 0, 0, 0, 0, 0]),
            _ => return None,
        })
    }

    /// Whether the call waits without end, and the kernel never makes it again; with `limited` also if it has a time limit.
    pub fn never_made_again(&self, limited: bool) -> bool {
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
pub fn is_at(memory: &Memory, pc: GuestAddr, next: GuestAddr) -> bool {
    let mut bytes = vec![0; next.since(pc).min(15) as usize];
    let read = memory.read(pc.0, &mut bytes);
    let ins = Decoder::with_ip(64, &bytes[..read], pc.0, DecoderOptions::NONE).decode();
    ins.mnemonic() == Mnemonic::Int && ins.immediate8() == 0x80
}

/// What `brk` does if it is asked for the heap to end at `end`: `munmap` of what lies behind, or nothing to mappings that are there.
pub fn shrinks(tid: Tid, end: u64) -> Option<(i64, [u64; 6])> {
    let (start, is_end) = maps::heap(&maps::read(tid).ok()?)?;
    let end = end.checked_next_multiple_of(4096)?;
    (start <= end && end < is_end).then(|| (libc::SYS_munmap, [end, is_end - end, 0, 0, 0, 0]))
}

/// What `process_madvise` with these arguments does if the process is its own: `madvise` of all that lies between the first and the last
/// byte of its ranges, each of them two words of `size` bytes; nothing if it leaves contents as they are.
pub fn drops(memory: &Memory, args: [u64; 6], size: usize) -> Option<(i64, [u64; 6])> {
    /// As many ranges as the kernel takes (`UIO_MAXIOV`).
    const MOST: u64 = 1024;
    let advice = [0, 0, args[3], 0, 0, 0];
    if !replaces(libc::SYS_madvise, advice) {
        return None;
    }
    let mut bytes = vec![0; args[2].min(MOST) as usize * 2 * size];
    let read = memory.read(args[1], &mut bytes);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b));
    let ranges = bytes[..read].chunks_exact(2 * size).map(|pair| {
        let start = word(&pair[..size]);
        (start, start.saturating_add(word(&pair[size..])))
    });
    let (start, end) = ranges.reduce(|(start, end), (s, e)| (start.min(s), end.max(e)))?;
    Some((libc::SYS_madvise, [start, end - start, args[3], 0, 0, 0]))
}

/// Whether a call that need not do so puts something else in the place of what is mapped.
pub fn replaces(nr: i64, args: [u64; 6]) -> bool {
    match nr {
        libc::SYS_shmat => args[2] & libc::SHM_REMAP as u64 != 0,
        libc::SYS_madvise => matches!(args[2] as i32, libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE),
        _ => false,
    }
}
