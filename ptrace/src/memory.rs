//! A guest's memory, read and written from outside through `/proc/PID/mem`. Protections do not matter: execute-only pages
//! can be read, read-only ones written (a private copy is made). Short reads at the end of a mapping are normal.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use grind_types::Tid;

use crate::maps::{self, Region};

/// Access to one address space.
#[derive(Debug)]
pub struct Memory {
    tid: Tid,
    file: File,
}

impl grind_unwind::Memory for Memory {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        Memory::read(self, at, into)
    }

    fn program(&self) -> Option<File> {
        File::open(format!("/proc/{}/exe", self.tid)).ok()
    }
}

impl Memory {
    /// The memory that `tid` has, and the other threads of its process.
    pub fn open(tid: Tid) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{tid}/mem"))?;
        Ok(Self { tid, file })
    }

    /// What is mapped at present.
    pub fn regions(&self) -> io::Result<Vec<Region>> {
        maps::read(self.tid)
    }

    /// Reads as much of `buf` as is mapped from `addr` on; returns the number of bytes.
    pub fn read(&self, addr: u64, buf: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], addr + done as u64) {
                Ok(n) if n > 0 => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        done
    }

    /// Reads exactly `N` bytes.
    pub fn array<const N: usize>(&self, addr: u64) -> Option<[u8; N]> {
        let mut buf = [0; N];
        (self.read(addr, &mut buf) == N).then_some(buf)
    }

    /// Reads a 64-bit word.
    pub fn word(&self, addr: u64) -> Option<u64> {
        self.array(addr).map(u64::from_le_bytes)
    }

    /// Reads bytes up to (without) a zero, at most `limit`.
    pub fn c_string(&self, addr: u64, limit: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = addr;
        while out.len() < limit {
            // Never across a page end: the next page may not be there.
            let n = (4096 - (at & 4095)) as usize;
            let mut buf = [0; 4096];
            let got = self.read(at, &mut buf[..n]);
            if got == 0 {
                return None;
            }
            if let Some(end) = buf[..got].iter().position(|&b| b == 0) {
                out.extend_from_slice(&buf[..end]);
                out.truncate(limit);
                return Some(out);
            }
            out.extend_from_slice(&buf[..got]);
            at += got as u64;
        }
        out.truncate(limit);
        Some(out)
    }

    /// Writes all of `bytes`.
    pub fn write(&self, addr: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, addr)
    }
}
