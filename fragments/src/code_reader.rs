//! Guest code, read with few system calls: windows of some pages are kept from stop to stop. What may change without the
//! engine being told (writable code) is never kept; whoever learns of a change, or that something may change from now on,
//! says [`CodeWindows::clear`].
//!
//! Invariant: what a reader gives has been read from where it says. A window is made of runs of bytes, each the answer to one read;
//! there is no place in it for bytes that nobody has read.

use grind_types::hash::Map;

use grind_isa::decode::CodeBytes;
use grind_ptrace::Memory;
use grind_types::addr::GuestAddr;

/// Bytes of a window.
const WINDOW: u64 = 1 << 14;
/// More bytes are read, so that an instruction that begins in a window is whole.
const OVERLAP: u64 = 32;
const PAGE: u64 = 4096;
/// Windows kept; all are dropped when there are more.
const KEPT: usize = 2048;

/// The page of the legacy system calls.
pub const VSYSCALL_PAGE: GuestAddr = GuestAddr(0xffff_ffff_ff60_0000);

/// Bytes that follow one another in memory, as one read has found them.
#[derive(Debug)]
struct Run {
    at: GuestAddr,
    bytes: Vec<u8>,
}

impl Run {
    /// What is mapped from `at` up to `end`, without a gap.
    fn read(memory: &Memory, at: GuestAddr, end: GuestAddr) -> Self {
        let mut bytes = vec![0; end.0.saturating_sub(at.0) as usize];
        let n = memory.read(at.0, &mut bytes);
        bytes.truncate(n);
        Self { at, bytes }
    }

    fn holds(&self, pc: GuestAddr) -> bool {
        pc.0.checked_sub(self.at.0).is_some_and(|start| start < self.bytes.len() as u64)
    }

    /// The bytes from `pc` on.
    fn from(&self, pc: GuestAddr) -> &[u8] {
        pc.0.checked_sub(self.at.0).and_then(|start| self.bytes.get(start as usize..)).unwrap_or(&[])
    }
}

/// Windows read so far.
#[derive(Debug, Default)]
pub struct CodeWindows {
    /// By their first addresses. Each run begins at a page of its own: the first one of the window, or one behind a gap, so there is as a rule
    /// one run in a window, and there are never more than it has pages.
    windows: Map<GuestAddr, Vec<Run>>,
    /// Those of `windows` that hold code that may change at any time.
    self_modifying: Vec<GuestAddr>,
}

impl CodeWindows {
    /// Forgets everything: code may have changed.
    #[inline]
    pub fn clear(&mut self) {
        self.windows.clear();
        self.self_modifying.clear();
    }

    /// A cache that holds `code` at `base` (the start of a window), instead of a process's memory.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn holding(base: GuestAddr, code: &[u8]) -> Self {
        let mut cache = Self::default();
        cache.windows.insert(base, vec![Run { at: base, bytes: code.to_vec() }]);
        cache
    }

    /// A reader of the code of one process. `self_modifying` tells whether any byte of a range may change at any time; `until` up to
    /// where memory can be executed without a gap from an address on (that address, if it cannot).
    pub fn reader<'a>(
        &'a mut self,
        memory: &'a Memory,
        self_modifying: &'a dyn Fn(GuestAddr, GuestAddr) -> bool,
        until: &'a dyn Fn(GuestAddr) -> GuestAddr,
    ) -> CodeReader<'a> {
        if self.windows.len() > KEPT {
            self.clear();
        }
        for base in self.self_modifying.drain(..) {
            self.windows.remove(&base);
        }
        CodeReader { cache: self, memory, self_modifying, until }
    }
}

/// Reads code for one batch.
pub struct CodeReader<'a> {
    cache: &'a mut CodeWindows,
    memory: &'a Memory,
    self_modifying: &'a dyn Fn(GuestAddr, GuestAddr) -> bool,
    until: &'a dyn Fn(GuestAddr) -> GuestAddr,
}

impl CodeBytes for CodeReader<'_> {
    fn at(&mut self, pc: GuestAddr) -> &[u8] {
        let most = (self.until)(pc).0.saturating_sub(pc.0);
        let base = GuestAddr(pc.0 & !(WINDOW - 1));
        let end = GuestAddr(base.0.saturating_add(WINDOW + OVERLAP));
        let (memory, self_modifying, kept) = (self.memory, self.self_modifying, &mut self.cache.self_modifying);
        let window = self.cache.windows.entry(base).or_insert_with(|| {
            if self_modifying(base, end) {
                kept.push(base);
            }
            if base == VSYSCALL_PAGE { vec![vsyscalls()] } else { vec![Run::read(memory, base, end)] }
        });
        let run = window.iter().position(|run| run.holds(pc)).unwrap_or_else(|| {
            // There is a gap before it, or nothing at all.
            let run = Run::read(memory, pc.page(), end);
            if run.holds(pc) {
                window.push(run);
            }
            window.len() - 1
        });
        let bytes = window[run].from(pc);
        &bytes[..bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX))]
    }
}

/// What the kernel's own page holds: gettimeofday, time and getcpu as system calls, at multiples of 1024.
fn vsyscalls() -> Run {
    let mut bytes = vec![0xcc; PAGE as usize];
    for (at, nr) in [(0usize, 96u32), (0x400, 201), (0x800, 309)] {
        bytes[at] = 0xb8; // mov eax, nr
        bytes[at + 1..at + 5].copy_from_slice(&nr.to_le_bytes());
        bytes[at + 5..at + 8].copy_from_slice(&[0x0f, 0x05, 0xc3]); // syscall; ret
    }
    Run { at: VSYSCALL_PAGE, bytes }
}

#[cfg(test)]
mod tests {
    use grind_types::{Pid, Tid};

    use super::*;

    #[test]
    fn the_vsyscall_page_is_known_without_being_read() {
        let memory = Memory::open(Tid::main_of(Pid::own())).unwrap();
        let mut cache = CodeWindows::default();
        let mut r = cache.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX));
        assert_eq!(r.at(VSYSCALL_PAGE.plus(0x400))[..8], [0xb8, 201, 0, 0, 0, 0x0f, 5, 0xc3]);
    }

    #[test]
    fn windows_overlap_and_nothing_is_there_at_address_zero() {
        let memory = Memory::open(Tid::main_of(Pid::own())).unwrap();
        let mut cache = CodeWindows::default();
        let mut r = cache.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX));
        assert!(r.at(GuestAddr(0x10)).is_empty());
        let data: Vec<u8> = (0..3 * WINDOW as usize).map(|i| (i / 7) as u8).collect();
        for i in (0..2 * WINDOW as usize).step_by(333) {
            let at = GuestAddr(data.as_ptr() as u64 + i as u64);
            let got = r.at(at);
            assert!(got.len() >= OVERLAP as usize);
            assert_eq!(got[..OVERLAP as usize], data[i..i + OVERLAP as usize]);
        }
    }

    #[test]
    fn what_cannot_be_executed_is_not_read() {
        let memory = Memory::open(Tid::main_of(Pid::own())).unwrap();
        let mut cache = CodeWindows::default();
        let data = vec![7u8; WINDOW as usize];
        let at = GuestAddr(data.as_ptr() as u64);
        let until = |_| at.plus(100);
        let mut r = cache.reader(&memory, &|_, _| false, &until);
        assert_eq!(r.at(at.plus(90)), [7; 10]);
        assert!(r.at(at.plus(100)).is_empty() && r.at(at.plus(101)).is_empty());
    }

    #[test]
    fn what_may_change_is_read_anew_for_every_reader() {
        let memory = Memory::open(Tid::main_of(Pid::own())).unwrap();
        let mut cache = CodeWindows::default();
        let mut data = vec![1u8; 3 * WINDOW as usize];
        let at = (data.as_ptr() as u64).next_multiple_of(WINDOW);
        let i = (at - data.as_ptr() as u64) as usize;
        for (first, second, self_modifying) in [(1, 1, false), (2, 3, true)] {
            cache.clear();
            data.fill(first);
            assert_eq!(
                cache.reader(&memory, &|_, _| self_modifying, &|_| GuestAddr(u64::MAX)).at(GuestAddr(at))[0],
                first
            );
            data[i] = if self_modifying { second } else { 9 };
            assert_eq!(
                cache.reader(&memory, &|_, _| self_modifying, &|_| GuestAddr(u64::MAX)).at(GuestAddr(at))[0],
                second
            );
        }
    }
}
