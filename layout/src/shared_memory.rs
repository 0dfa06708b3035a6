//! Memory that grind and the guest both map: a memfd (or a segment) that the guest created, seen from grind's side. Emitted code runs from
//! it while grind changes it, so all writes to places that may be running go through the atomic methods. Offsets are
//! checked; nothing here hands out references into the memory.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use nix::libc;

/// Bytes of a page.
const PAGE: usize = 4096;

/// A writable shared mapping of part of a file.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
}

impl SharedMemory {
    /// Maps `len` bytes of `file` from `offset` on (a multiple of the page size).
    pub fn map(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses; it aliases no Rust object.
        let p = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        match NonNull::new(p.cast::<u8>()) {
            Some(start) if p != libc::MAP_FAILED => Ok(Self { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Maps `len` bytes of `file` at an address that is a multiple of a large page, if there is room.
    pub fn map_aligned(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        const LARGE: usize = crate::LARGE_PAGE as usize;
        let whole = len + LARGE;
        // SAFETY: a new mapping at an address that the kernel chooses; it aliases no Rust object, and nobody can touch it.
        let room = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if room == libc::MAP_FAILED {
            return Self::map(file, offset, len);
        }
        let before = (room as usize).next_multiple_of(LARGE) - room as usize;
        // SAFETY: within the mapping that was just made, which is ours and refers to nothing.
        let at = unsafe { room.byte_add(before) };
        // SAFETY: replaces a part of that mapping.
        let p = unsafe {
            libc::mmap(
                at,
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        let failed = (p == libc::MAP_FAILED).then(io::Error::last_os_error);
        let (kept, behind) = if failed.is_some() { (0, whole) } else { (len, whole - before - len) };
        // SAFETY: what is left of the first mapping before and behind; nothing refers to it.
        unsafe {
            if kept > 0 && before > 0 {
                libc::munmap(room, before);
            }
            if behind > 0 {
                libc::munmap(if kept > 0 { at.byte_add(len) } else { room }, behind);
            }
        }
        match (failed, NonNull::new(p.cast::<u8>())) {
            (None, Some(start)) => Ok(Self { start, len }),
            (Some(e), _) => Err(e),
            (None, None) => Err(io::Error::from(io::ErrorKind::OutOfMemory)),
        }
    }

    /// Attaches the `len` bytes of a segment of System V's (`shmget`), which lives on until all who have attached it are gone: nobody
    /// can attach it later but those who know its number now.
    pub fn attach(segment: i32, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses; it aliases no Rust object.
        let p = unsafe { libc::shmat(segment, std::ptr::null(), 0) };
        match NonNull::new(p.cast::<u8>()) {
            Some(start) if p as isize != -1 => Ok(Self { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes a segment out of the system's list, so that it goes with the last who has attached it. Whether the kernel lets us.
    pub fn forget(segment: i32) -> bool {
        // SAFETY: nothing is read or written.
        unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) == 0 }
    }

    /// Asks for one large page in place of the small ones at `offset`, in the file, so for everybody who maps it: at least one of
    /// them has been touched. The processor then finds addresses there faster, and nobody asks for the others one by one; nothing
    /// else changes, and it is no matter if there is none.
    pub fn collapse(&self, offset: usize) {
        const MADV_COLLAPSE: libc::c_int = 25;
        let len = crate::LARGE_PAGE as usize;
        if offset.checked_add(len).is_some_and(|end| end <= self.len) {
            let at = self.check(offset, len);
            // SAFETY: within the mapping; contents stay as they are.
            unsafe { libc::madvise(at.cast(), len, MADV_COLLAPSE) };
        }
    }

    fn check(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len),
            "offset {offset:#x} is outside the mapping"
        );
        // SAFETY: just checked to be inside the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Copies `bytes` to `offset`, where nothing runs yet.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.check(offset, bytes.len());
        // SAFETY: `to` is valid for that many bytes; `bytes` is a Rust object, so it is not part of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Makes `n` 8-byte words from `offset` on `word`, where nobody reads them yet. Their pages are asked for at once, since
    /// every one would be a fault, which costs more than filling it.
    pub fn fill(&self, offset: usize, word: u64, n: usize) {
        let (to, len) = (self.check(offset, n * 8), n * 8);
        assert!(offset.is_multiple_of(PAGE), "{offset:#x} does not begin a page");
        // SAFETY: a part of our own mapping, whose contents it does not change. Kernels that do not know the advice (before
        // 5.14) refuse, and nothing is lost.
        unsafe { libc::madvise(to.cast(), len, libc::MADV_POPULATE_WRITE) };
        let mut page = [0; PAGE];
        page.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&word.to_le_bytes()));
        for at in (0..len).step_by(PAGE) {
            self.write(offset + at, &page[..PAGE.min(len - at)]);
        }
    }

    /// Copies from `offset` to `bytes`.
    #[inline]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        let from = self.check(offset, bytes.len());
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Copies `words.len()` words from `offset`.
    #[inline]
    pub fn read_words(&self, offset: usize, words: &mut [u32]) {
        let from = self.check(offset, words.len() * 4);
        // SAFETY: `from` is valid for so many bytes; `words` is a Rust object, so it is not part of the mapping, and every
        // bit pattern is a word.
        unsafe { std::ptr::copy_nonoverlapping(from, words.as_mut_ptr().cast::<u8>(), words.len() * 4) };
    }

    /// Copies `n` bytes from `offset` on to the same place in another mapping.
    #[inline]
    pub fn copy_to(&self, to: &Self, offset: usize, n: usize) {
        let (from, to) = (self.check(offset, n), to.check(offset, n));
        // SAFETY: both are valid for `n` bytes; two mappings never overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, n) };
    }

    /// Reads one byte.
    #[inline]
    pub fn load_u8(&self, offset: usize) -> u8 {
        // SAFETY: in bounds; a byte is always aligned; it may be replaced meanwhile, but only by whole bytes.
        unsafe { AtomicU8::from_ptr(self.check(offset, 1)) }.load(Ordering::SeqCst)
    }

    /// Replaces one byte, visible to running code at once.
    #[inline]
    pub fn store_u8(&self, offset: usize, v: u8) {
        // SAFETY: in bounds; a byte is always aligned; the guest only executes or reads it.
        unsafe { AtomicU8::from_ptr(self.check(offset, 1)) }.store(v, Ordering::SeqCst);
    }

    /// Replaces 4 bytes that lie in one cache line.
    ///
    /// They need not be aligned: x86 stores within a line are indivisible (Intel SDM 3A, 9.1.1), but Rust's atomics ask
    /// for alignment, so the store is written out.
    pub fn store_u32(&self, offset: usize, v: u32) {
        let p = self.check(offset, 4);
        debug_assert!(p as usize & 63 <= 60, "a patched field crosses a cache line");
        if p as usize & 3 == 0 {
            // SAFETY: in bounds and aligned.
            unsafe { AtomicU32::from_ptr(p.cast()) }.store(v, Ordering::SeqCst);
        } else {
            // SAFETY: in bounds; one `mov`, which is indivisible within a cache line.
            unsafe {
                std::arch::asm!("mov dword ptr [{p}], {v:e}", p = in(reg) p, v = in(reg) v, options(nostack, preserves_flags))
            };
        }
    }

    /// Replaces 8 aligned bytes.
    #[inline]
    pub fn store_u64(&self, offset: usize, v: u64) {
        assert!(offset.is_multiple_of(8));
        // SAFETY: in bounds and aligned (the mapping starts on a page).
        unsafe { AtomicU64::from_ptr(self.check(offset, 8).cast()) }.store(v, Ordering::SeqCst);
    }

    /// Reads 8 aligned bytes that the guest may be changing.
    #[inline]
    pub fn load_u64(&self, offset: usize) -> u64 {
        assert!(offset.is_multiple_of(8));
        // SAFETY: in bounds and aligned (the mapping starts on a page).
        unsafe { AtomicU64::from_ptr(self.check(offset, 8).cast()) }.load(Ordering::SeqCst)
    }

    /// Replaces 8 aligned bytes if they are `old`; whether they were.
    #[inline]
    pub fn replace_u64(&self, offset: usize, old: u64, new: u64) -> bool {
        assert!(offset.is_multiple_of(8));
        // SAFETY: in bounds and aligned (the mapping starts on a page).
        let word = unsafe { AtomicU64::from_ptr(self.check(offset, 8).cast()) };
        word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Reads 4 bytes.
    #[inline]
    pub fn u32(&self, offset: usize) -> u32 {
        let mut b = [0; 4];
        self.read(offset, &mut b);
        u32::from_le_bytes(b)
    }

    /// Reads 8 bytes, which nobody is changing.
    #[inline]
    pub fn u64(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&self, offset: usize) -> u8 {
        let mut b = [0];
        self.read(offset, &mut b);
        b[0]
    }
}

/// Reads `n` 32-bit words of `file` from `offset` on into `words`, which is emptied first. What cannot be read is left out.
pub fn read_words(file: &File, offset: u64, n: usize, words: &mut Vec<u32>) {
    use std::os::unix::fs::FileExt;
    words.clear();
    words.resize(n, 0);
    // SAFETY: `n` initialised words, seen as their bytes; every bit pattern is a word.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), n * 4) };
    if file.read_exact_at(bytes, offset).is_err() {
        words.clear();
    }
}

// SAFETY: the mapping belongs to no thread, and nothing here hands out references into it: who reads while another writes
// gets old or new bytes, as from the guest, which writes whenever it likes.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LARGE_PAGE;

    #[test]
    fn a_large_page_holds_what_was_there() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(3 * LARGE_PAGE).expect("room");
        let memory = SharedMemory::map_aligned(&file, LARGE_PAGE, 2 * LARGE_PAGE as usize).expect("mapped");
        assert!((memory.start.as_ptr() as u64).is_multiple_of(LARGE_PAGE));
        memory.write(4096, b"before");
        memory.collapse(0);
        // Not there as a whole: left alone.
        memory.collapse(LARGE_PAGE as usize + 4096);
        let other = SharedMemory::map(&file, LARGE_PAGE, 8192).expect("mapped");
        let mut bytes = [0; 6];
        other.read(4096, &mut bytes);
        assert_eq!(&bytes, b"before");
        other.write(4096, b"behind");
        memory.read(4096, &mut bytes);
        assert_eq!(&bytes, b"behind");
    }
}
