//! Makes a program image ready: maps counters, tables and a code cache into it. Into a fresh one before its first instruction;
//! then it also takes away what would differ from run to run (AT_RANDOM) or from machine to machine (AT_HWCAP). Into one that runs
//! already while all of its threads stand still. The new mappings are put where neither the kernel nor the program's heap and
//! stack are going to be.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;

use grind_code_cache::{Chunk, CodeCache};
use grind_isa::cpuid;
use grind_layout as layout;
use grind_layout::shared_memory::SharedMemory;
use grind_ptrace::limits::Descriptor;
use grind_ptrace::maps::{self, Region};
use grind_ptrace::status::limit;
use grind_ptrace::{Gadget, Memory, RemoteError, Stopped};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::{EngineError, Tid};
use nix::libc;

use crate::slots::SlotPool;

const MIB: u64 = 1 << 20;

/// Room kept free below the stack's present end, at least.
const STACK_ROOM: u64 = 16 * MIB;

/// Bytes below the stack pointer that code may use without moving it (System V ABI).
const RED_ZONE: u64 = 128;

/// What is attempted where it is asked what is mapped.
const MAPS: &str = "reading /proc/PID/maps";

/// A fixed pattern in place of the kernel's 16 random bytes: programs take stack guards and hash seeds from there.
const RANDOM: [u8; 16] = *b"grind\x8f\x1b\xd4\x67\xa2\x39\xee\x50\xc3\x7d\x06";

/// A thread that may be asked to make system calls; none if it died meanwhile.
pub struct Remote<'m> {
    /// The thread.
    pub thread: Option<Stopped>,
    /// Where it makes them from.
    pub gadget: Gadget,
    /// The memory of its process.
    pub memory: &'m Memory,
}

impl Remote<'_> {
    /// The thread itself: what `/proc` shows of its process is asked by it, since the first thread may have ended, which has no memory
    /// then.
    fn tid(&self, what: &'static str) -> Result<Tid, EngineError> {
        let gone = || EngineError::Os { what, source: io::Error::from_raw_os_error(libc::ESRCH) };
        self.thread.as_ref().map(Stopped::tid).ok_or_else(gone)
    }

    /// What is mapped in its process.
    fn regions(&self) -> Result<Vec<Region>, EngineError> {
        maps::read(self.tid(MAPS)?).map_err(|source| EngineError::Os { what: MAPS, source })
    }

    fn call(&mut self, what: &'static str, nr: i64, args: [u64; 6]) -> Result<u64, EngineError> {
        let gone = || EngineError::Os { what, source: io::Error::from_raw_os_error(libc::ESRCH) };
        let t = self.thread.take().ok_or_else(gone)?;
        let (t, r) = self.gadget.call(t, nr, args);
        self.thread = t;
        r.map_err(|e| match e {
            RemoteError::Errno(n) if n == libc::ENOMEM => {
                EngineError::NoMemory { what, source: io::Error::from_raw_os_error(n) }
            }
            RemoteError::Errno(n) => EngineError::Os { what, source: io::Error::from_raw_os_error(n) },
            RemoteError::Gone => gone(),
        })
    }

    /// Any system call, for its result.
    pub fn raw(&mut self, nr: i64, args: [u64; 6]) -> Option<u64> {
        self.call("system call", nr, args).ok()
    }

    /// A memfd that the guest creates and grind opens; the guest's descriptor is returned too. `name_at` is an address in
    /// the guest that holds a C string.
    fn shared_file(&mut self, name_at: u64) -> Result<(File, u64), EngineError> {
        let what = "creating shared memory in the program";
        let tid = self.tid(what)?;
        let create = [name_at, u64::from(libc::MFD_CLOEXEC), 0, 0, 0, 0];
        let fd = self.call(what, libc::SYS_memfd_create, create).or_else(|e| match e {
            // It may be the program that has opened as many as it may: that is no reason to have no memory.
            e if is_out_of_descriptors(&e) => {
                let _lent = Descriptor::lend(tid);
                self.call(what, libc::SYS_memfd_create, create)
            }
            e => Err(e),
        })?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{tid}/fd/{fd}"))
            .map_err(|source| EngineError::Os { what, source })?;
        Ok((file, fd))
    }

    /// Maps all of a shared file; `at` is a control request, or with one of the `MAP_FIXED…` flags an order.
    fn map(
        &mut self,
        what: &'static str,
        (at, len): (u64, u64),
        prot: i32,
        flags: i32,
        fd: u64,
    ) -> Result<u64, EngineError> {
        let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE | flags) as u64;
        let at = self.call(what, libc::SYS_mmap, [at, len, prot as u64, flags, fd, 0])?;
        // A core of the program is to show the program alone (and not to take hours). If that is refused, it does.
        self.raw(libc::SYS_madvise, [at, len, libc::MADV_DONTDUMP as u64, 0, 0, 0]);
        Ok(at)
    }

    /// Maps new shared memory into the program, once `fill` has filled it.
    fn shared(&mut self, new: &New, fill: impl FnOnce(&SharedMemory)) -> Result<(u64, SharedMemory), EngineError> {
        let &New { what, name_at, at, size, prot, how } = new;
        let here = |source| EngineError::Os { what, source };
        match self.shared_file(name_at) {
            Ok((file, fd)) => {
                file.set_len(size).map_err(here)?;
                let host = SharedMemory::map_aligned(&file, 0, size as usize).map_err(here)?;
                fill(&host);
                let guest = self.map(what, (at, size), prot, how, fd)?;
                self.close(fd)?;
                Ok((guest, host))
            }
            Err(e) if is_out_of_descriptors(&e) => self.segment(new, fill),
            Err(e) => Err(e),
        }
    }

    /// The same without a descriptor: memory of System V's has none.
    fn segment(&mut self, new: &New, fill: impl FnOnce(&SharedMemory)) -> Result<(u64, SharedMemory), EngineError> {
        const SHM_NORESERVE: i32 = 0o10000;
        let &New { what, at, size, prot, how, .. } = new;
        let only_read = if prot & libc::PROT_WRITE == 0 { libc::SHM_RDONLY } else { 0 };
        let runs = if prot & libc::PROT_EXEC != 0 { libc::SHM_EXEC } else { 0 };
        let instead = if how & libc::MAP_FIXED != 0 { libc::SHM_REMAP } else { 0 };
        let flags = (libc::IPC_CREAT | 0o600 | SHM_NORESERVE) as u64;
        let id = self.call(what, libc::SYS_shmget, [libc::IPC_PRIVATE as u64, size, flags, 0, 0, 0])?;
        let host = SharedMemory::attach(id as i32, size as usize);
        let guest = host.map_err(|source| EngineError::Os { what, source }).and_then(|host| {
            fill(&host);
            let flags = (only_read | runs | instead) as u64;
            Ok((self.call(what, libc::SYS_shmat, [id, at, flags, 0, 0, 0])?, host))
        });
        if !SharedMemory::forget(id as i32) {
            self.raw(libc::SYS_shmctl, [id, libc::IPC_RMID as u64, 0, 0, 0, 0]);
        }
        if let Ok((guest, _)) = guest {
            self.raw(libc::SYS_madvise, [guest, size, libc::MADV_DONTDUMP as u64, 0, 0, 0]);
        }
        guest
    }

    fn close(&mut self, fd: u64) -> Result<(), EngineError> {
        self.call("close", libc::SYS_close, [fd, 0, 0, 0, 0, 0]).map(drop)
    }
}

/// Shared memory that a program is to have.
struct New {
    what: &'static str,
    /// An address in the guest that holds a C string.
    name_at: u64,
    /// Where: a control request if `how` is 0.
    at: u64,
    /// In bytes.
    size: u64,
    prot: i32,
    /// 0, `MAP_FIXED` or `MAP_FIXED_NOREPLACE`.
    how: i32,
}

fn is_out_of_descriptors(e: &EngineError) -> bool {
    matches!(e, EngineError::Os { source, .. } if source.raw_os_error() == Some(libc::EMFILE))
}

/// Sets up a new image whose first instruction is about to run.
pub fn prepare(remote: &mut Remote<'_>, masked: bool) -> Result<(CodeCache, SlotPool), EngineError> {
    let gone = || EngineError::Os { what: "reading registers", source: io::Error::from_raw_os_error(libc::ESRCH) };
    let t = remote.thread.as_ref().ok_or_else(gone)?;
    let (tid, regs) = (t.tid(), t.regs().map_err(|_| gone())?);
    // The entry point lends its place to the first system calls.
    let entry = regs.rip;
    let os = |source| EngineError::Os { what: "writing to the program's memory", source };
    let mut lent = [0; 16];
    if remote.memory.read(entry, &mut lent) != lent.len() {
        return Err(os(io::Error::from_raw_os_error(libc::EFAULT)));
    }
    let mut code = [0; 16];
    code[..3].copy_from_slice(&Gadget::BYTES);
    code[8..14].copy_from_slice(b"grind\0");
    remote.memory.write(entry, &code).map_err(os)?;
    remote.gadget = Gadget::new(entry);
    let result = map_all(remote, GuestAddr(entry), entry + 8, masked);
    remote.memory.write(entry, &lent).map_err(os)?;
    if masked {
        steady_auxv(remote.memory, tid, regs.rsp);
    }
    result
}

/// Sets up an image that runs already: nothing is written to its code. `remote` has a gadget that the image has itself, and a thread
/// in no system call.
pub fn prepare_running(remote: &mut Remote<'_>) -> Result<(CodeCache, SlotPool), EngineError> {
    const NAME: &[u8; 6] = b"grind\0";
    let gone = || EngineError::Os { what: "reading registers", source: io::Error::from_raw_os_error(libc::ESRCH) };
    let regs = remote.thread.as_ref().ok_or_else(gone)?.regs().map_err(|_| gone())?;
    let os = |source| EngineError::Os { what: "writing to the program's stack", source };
    // Where the frame of a signal would be.
    let name_at = (regs.rsp - RED_ZONE - NAME.len() as u64) & !7;
    let mut lent = [0; NAME.len()];
    if remote.memory.read(name_at, &mut lent) != lent.len() {
        return Err(os(io::Error::from_raw_os_error(libc::EFAULT)));
    }
    remote.memory.write(name_at, NAME).map_err(os)?;
    let result = map_all(remote, GuestAddr(regs.rip), name_at, false);
    remote.memory.write(name_at, &lent).map_err(os)?;
    result
}

/// Takes everything that was mapped into an image out of it; `remote` as for [`prepare_running`]. What cannot be unmapped stays.
pub fn clear(remote: &mut Remote<'_>, code_cache: &CodeCache, pool: &SlotPool) {
    let chunks = code_cache.chunks.iter().map(|c| (c.guest.0, layout::CHUNK_SIZE));
    let parts = chunks.chain([(code_cache.tables_at, layout::TABLES_SIZE), pool.span()]);
    for (at, size) in parts {
        remote.raw(libc::SYS_munmap, [at, size, 0, 0, 0, 0]);
    }
}

/// `near`: code that is going to be translated. `name_at`: an address in the guest that holds a C string, for now.
fn map_all(
    remote: &mut Remote<'_>,
    near: GuestAddr,
    name_at: u64,
    masked: bool,
) -> Result<(CodeCache, SlotPool), EngineError> {
    let io_error = |what| move |source| EngineError::Os { what, source };
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let regions = remote.regions()?;
    // Counters.
    let (slots, fd) = remote.shared_file(name_at)?;
    let mut pool = None;
    for count in layout::SLOT_COUNTS {
        let size = u64::from(count) * layout::SLOT_SIZE;
        let at = if free(&regions, layout::SLOTS_HINT, size) { layout::SLOTS_HINT } else { 0 };
        slots.set_len(size).map_err(io_error("sizing the counters"))?;
        match remote.map("counters", (at, size), rw, 0, fd) {
            Ok(base) => {
                pool = Some((base, count));
                break;
            }
            Err(EngineError::NoMemory { .. }) if Some(&count) != layout::SLOT_COUNTS.last() => {}
            Err(e) => return Err(e),
        }
    }
    remote.close(fd)?;
    let (base, count) = pool.unwrap_or_default();
    let pool = SlotPool::new(slots, base, count);
    // Tables and code.
    let regions = remote.regions()?;
    let tables_at = tables_place(&regions).ok_or_else(|| EngineError::NoMemory {
        what: "tables",
        source: io::Error::other("nothing is free below 2 GiB"),
    })?;
    let (size, prot, how) = (layout::TABLES_SIZE, libc::PROT_READ, libc::MAP_FIXED_NOREPLACE);
    let (_, tables) = remote.shared(&New { what: "tables", name_at, at: tables_at, size, prot, how }, |_| ())?;
    let mut code_cache = CodeCache::new(tables_at, tables, masked);
    let chunk = map_chunk(remote, near, name_at)?;
    code_cache.add_chunk(chunk.0, chunk.1);
    remote.gadget = code_cache.gadget;
    Ok((code_cache, pool))
}

/// Maps one more chunk of code cache, near `pc`.
pub fn add_chunk(remote: &mut Remote<'_>, code_cache: &mut CodeCache, pc: GuestAddr) -> Result<(), EngineError> {
    let (guest, host) = map_chunk(remote, pc, code_cache.name_at())?;
    code_cache.add_chunk(guest, host);
    code_cache.far |= !code_cache.has_chunk_for(pc);
    Ok(())
}

fn map_chunk(remote: &mut Remote<'_>, pc: GuestAddr, name_at: u64) -> Result<(CacheAddr, SharedMemory), EngineError> {
    let regions = remote.regions()?;
    let at = chunk_place(&regions, pc, stack_limit(remote.tid(MAPS)?));
    let (size, prot) = (layout::CHUNK_SIZE, libc::PROT_READ | libc::PROT_EXEC);
    let how = if at == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let (guest, host) = remote.shared(&New { what: "code cache", name_at, at, size, prot, how }, |_| ())?;
    Ok((CacheAddr(guest), host))
}

/// Gives a process that has forked translations of its own: copies of all chunks and tables, at the same addresses.
pub fn diverge(remote: &mut Remote<'_>, code_cache: &CodeCache) -> Result<CodeCache, EngineError> {
    let copy = |remote: &mut Remote<'_>, at: u64, prot, from: &SharedMemory, size: u64, used: &[Range<u64>]| {
        let new = New { what: "code cache", name_at: code_cache.name_at(), at, size, prot, how: libc::MAP_FIXED };
        let fill = |host: &SharedMemory| {
            used.iter().for_each(|r| from.copy_to(host, r.start as usize, (r.end - r.start) as usize));
        };
        remote.shared(&new, fill).map(|(_, host)| host)
    };
    let used = layout::TARGET_TABLES + layout::TARGET_TABLE * u64::from(code_cache.trans.follow.tables);
    let pairs = layout::PAIR_BITS..if code_cache.pairs { layout::ALLOCATORS_STOP } else { layout::CALL_TABLE };
    let objects = code_cache.trace.recorded.objects;
    let allocators = layout::ALLOCATORS_STOP..if objects { layout::TABLES_SIZE } else { layout::ALLOCATORS_STOP };
    let codes = layout::FRAME_CODES
        ..layout::FRAME_CODES + if code_cache.trace.settings.frames() { 8 * layout::FRAME_CODE_ENTRIES } else { 0 };
    let tables = copy(
        remote,
        code_cache.tables_at,
        libc::PROT_READ,
        &code_cache.tables,
        layout::TABLES_SIZE,
        &[0..used, pairs, allocators, codes],
    )?;
    let mut chunks = Vec::new();
    for c in &code_cache.chunks {
        let prot = libc::PROT_READ | libc::PROT_EXEC;
        let host = copy(remote, c.guest.0, prot, &c.host, layout::CHUNK_SIZE, std::slice::from_ref(&(0..c.used)))?;
        chunks.push(Chunk { used: c.used, requests: c.requests, ..Chunk::new(c.guest, host) });
    }
    Ok(code_cache.copy_with(tables, chunks))
}

/// Whether nothing is mapped in `at..at + size`.
fn free(regions: &[Region], at: u64, size: u64) -> bool {
    regions.iter().all(|r| r.end <= at || r.start >= at + size)
}

/// A place below 2 GiB, as high as possible: a heap grows towards it from below, and low addresses shall go on faulting.
fn tables_place(regions: &[Region]) -> Option<u64> {
    let top = (1u64 << 31) - MIB - layout::TABLES_SIZE;
    (0..1024).map(|n| (top - n * MIB) & !0xfff).find(|&at| free(regions, at, layout::TABLES_SIZE))
}

/// The limit of the main thread's stack, in bytes.
fn stack_limit(tid: Tid) -> u64 {
    limit(tid, "Max stack size").map_or(8 * MIB, |limit| limit.min(u64::MAX >> 1))
}

/// An address for a chunk near `pc`; 0 leaves it to the kernel.
fn chunk_place(regions: &[Region], pc: GuestAddr, stack_limit: u64) -> u64 {
    let pc = pc.0;
    let size = layout::CHUNK_SIZE;
    let reach = (1u64 << 31) - (1 << 29);
    let window = (pc.saturating_sub(reach).max(16 * MIB), pc.saturating_add(reach));
    let mut best: Option<(u64, u64)> = None;
    for (start, end) in maps::gaps(regions, 0x1_0000) {
        let next = regions.iter().find(|r| r.start == end);
        let previous = regions.iter().find(|r| r.end == start);
        let below_stack = next.is_some_and(|r| r.name == b"[stack]");
        // A heap, or one that is still to come, grows up from whatever lies below; mappings grow down into the gap under
        // the lowest one of their area.
        let heap_below = previous.is_some_and(|r| !below_stack && !r.name.starts_with(b"/memfd:grind"));
        let mappings_above = next.is_some_and(|r| r.start >= 0x6000_0000_0000);
        let low = start.saturating_add(if heap_below { 1 << 30 } else { MIB });
        let high = end.saturating_sub(match (below_stack, mappings_above) {
            (true, _) => stack_limit.saturating_add(STACK_ROOM),
            (_, true) => 1 << 30,
            _ => MIB,
        });
        let (low, high) = (low.max(window.0), high.min(window.1));
        if high < low || high - low < size {
            continue;
        }
        // As near as possible, and where large pages may be used.
        let large = layout::LARGE_PAGE;
        let at = if low > pc { low } else { high - size } & !(large - 1);
        let at = if at < low { low.next_multiple_of(large) } else { at };
        let distance = at.abs_diff(pc);
        if at + size <= high && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, at));
        }
    }
    best.map_or(0, |(_, at)| at)
}

/// Gives the auxiliary vector the same contents everywhere: 16 fixed "random" bytes, the baseline's features, and no vDSO.
fn steady_auxv(memory: &Memory, tid: Tid, rsp: u64) {
    let Some(auxv) = auxv_address(memory, tid, rsp) else { return };
    let mut at = auxv;
    while let (Some(key), Some(value)) = (memory.word(at), memory.word(at + 8)) {
        match key {
            libc::AT_NULL => break,
            libc::AT_RANDOM => {
                let _ = memory.write(value, &RANDOM);
            }
            libc::AT_HWCAP => {
                let _ = memory.write(at + 8, &u64::from(cpuid::baseline(1, 0)[3]).to_le_bytes());
            }
            libc::AT_HWCAP2 => {
                let _ = memory.write(at + 8, &[0; 8]);
            }
            // The vDSO's code depends on the clock (it waits for a consistent reading) and on the kernel; without it,
            // programs ask by system call.
            libc::AT_SYSINFO_EHDR => {
                let _ = memory.write(at, &libc::AT_IGNORE.to_le_bytes());
            }
            _ => {}
        }
        at += 16;
    }
}

/// Behind argc, argv and envp on the new stack.
fn auxv_address(memory: &Memory, tid: Tid, rsp: u64) -> Option<u64> {
    let argc = memory.word(rsp)?;
    let mut at = rsp + 8 * (argc.min(1 << 24) + 2);
    let mut words = [0u8; 4096];
    loop {
        let n = memory.read(at, &mut words) & !7;
        if n == 0 {
            return None;
        }
        if let Some(i) = words[..n].as_chunks::<8>().0.iter().position(|w| *w == [0; 8]) {
            let auxv = at + 8 * i as u64 + 8;
            // Check against what the kernel shows.
            let shown = std::fs::read(format!("/proc/{tid}/auxv")).ok()?;
            let mut there = vec![0; shown.len()];
            return (memory.read(auxv, &mut there) == shown.len() && there == shown).then_some(auxv);
        }
        at += n as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, end: u64, name: &str) -> Region {
        Region {
            start,
            end,
            read: true,
            write: false,
            exec: true,
            shared: false,
            offset: 0,
            device: (0, 0),
            inode: 0,
            name: name.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_chunk_for_libraries_lies_between_them_and_the_stack() {
        let regions = [
            region(0x5555_5555_4000, 0x5555_5556_0000, "/bin/true"),
            region(0x7fff_f7fc_0000, 0x7fff_f7ff_f000, "/lib/ld.so"),
            region(0x7fff_fffd_e000, 0x7fff_ffff_f000, "[stack]"),
        ];
        let at = chunk_place(&regions, GuestAddr(0x7fff_f7fd_0000), 8 * MIB);
        assert!(at > 0x7fff_f7ff_f000 && at + layout::CHUNK_SIZE < 0x7fff_fffd_e000 - 8 * MIB, "{at:#x}");
        assert!(at.is_multiple_of(layout::LARGE_PAGE), "{at:#x}");
        let at = chunk_place(&regions, GuestAddr(0x5555_5555_5000), 8 * MIB);
        assert!(at < 0x5555_5555_4000 && at > 0x5555_0000_0000, "{at:#x}");
        // A stack of 100 MiB leaves no room there: below the libraries, but not where the next ones go.
        let at = chunk_place(&regions, GuestAddr(0x7fff_f7fd_0000), 100 * MIB);
        assert!(at < 0x7fff_f7fc_0000 - (1 << 29) && at != 0, "{at:#x}");
    }

    #[test]
    fn a_chunk_for_a_fixed_executable_leaves_its_heap_room() {
        let regions = [
            region(0x40_0000, 0x4c_0000, "/bin/static"),
            region(0x4c_0000, 0x4e_0000, "[heap]"),
            region(0x7fe7_0000, 0x7ff0_0000, "/memfd:grind (deleted)"),
            region(0x7fff_fffd_e000, 0x7fff_ffff_f000, "[stack]"),
        ];
        let at = chunk_place(&regions, GuestAddr(0x40_1000), 8 * MIB);
        assert!((0x4e_0000 + (1 << 30)..1 << 31).contains(&at), "{at:#x}");
    }
}
