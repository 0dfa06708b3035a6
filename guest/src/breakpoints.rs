//! Breakpoints in a program's own code: at client requests, and at instructions that differ by processor where the program sees the
//! baseline one. What is executable is looked through once; it stays as it is until a system call changes it, which the engine
//! follows.
//!
//! Invariants: only private memory is written to, so that no file changes; what is written to is what was found; where it is not known
//! what bytes are, there is no breakpoint at all, and the program does not run its own code.

use std::collections::HashMap;
use std::ops::Range;

use crate::process::Process;
use grind_isa::breakpoints::{self, Verdict};
use grind_ptrace::maps::{self, Region};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::{Pid, Tid};

/// `int3`.
const INT3: u8 = 0xcc;

/// Code without a file that is looked through each time; more of it is somebody's who makes code.
const MOST_WITHOUT_FILE: u64 = 1 << 20;

/// So much is decoded at most to know what some bytes are.
const MOST_DECODED: u64 = 256 << 10;

/// The longest instruction, in bytes.
const MAX_INSN_LEN: u64 = 15;

/// What has been found, by process and mapping.
#[derive(Debug, Default)]
pub struct Breakpoints(HashMap<Pid, HashMap<Mapped, Option<Vec<GuestAddr>>>>);

/// The breakpoints that are in the memory of a process.
#[derive(Debug, Default)]
pub struct Planted {
    /// Where, and what was there.
    bytes: Vec<(GuestAddr, u8)>,
    /// All code that the process has.
    pub code: Vec<Range<GuestAddr>>,
}

impl Planted {
    /// Whether there is one at `at`.
    pub fn has(&self, at: GuestAddr) -> bool {
        self.bytes.iter().any(|(planted, _)| *planted == at)
    }

    /// Makes the code of `p` what it was.
    pub fn take_out(&self, p: &Process) {
        for &(at, byte) in &self.bytes {
            // (Who is gone has nothing to be put right.)
            let _ = p.memory.write(at.0, &[byte]);
        }
    }
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    device: (u32, u32),
    inode: u64,
}

impl Breakpoints {
    /// Nothing that was found in process `pid` holds any more.
    pub fn forget(&mut self, pid: Pid) {
        self.0.remove(&pid);
    }

    /// Puts breakpoints into the memory of process `p`, whose thread `tid` stands still; returns them.
    /// `None`: that cannot be done, and nothing has changed.
    pub fn plant(&mut self, p: &mut Process, tid: Tid, masked: bool) -> Option<Planted> {
        let code_cache = p.code_cache.clone();
        let is_ours = |at: u64| code_cache.borrow().is_cache(CacheAddr(at));
        let regions = maps::read(tid).ok()?;
        let code = |r: &&Region| r.exec && !r.name.starts_with(b"[v") && !is_ours(r.start);
        let mut places = Vec::new();
        let mut planted = Planted::default();
        for r in regions.iter().filter(code) {
            if r.write || r.shared || !r.read || r.inode == 0 && r.end - r.start > MOST_WITHOUT_FILE {
                return None;
            }
            let found = if r.inode == 0 {
                search(p, tid, r, masked, is_ours)
            } else {
                let mapped = Mapped { start: r.start, end: r.end, offset: r.offset, device: r.device, inode: r.inode };
                let known = self.0.entry(p.pid).or_default();
                known.entry(mapped).or_insert_with(|| search(p, tid, r, masked, is_ours)).clone()
            };
            places.extend(found?);
            planted.code.push(GuestAddr(r.start)..GuestAddr(r.end));
        }
        for at in places {
            let was = p.memory.array::<1>(at.0).filter(|&[byte]| byte != INT3);
            let Some([was]) = was.filter(|_| p.memory.write(at.0, &[INT3]).is_ok()) else {
                // Neither the program's own breakpoint nor what cannot be written to is one of ours.
                planted.take_out(p);
                return None;
            };
            planted.bytes.push((at, was));
        }
        Some(planted)
    }
}

/// The places of region `r`. `None`: it cannot be read, or there are bytes of which it is not known what they are.
fn search(
    p: &mut Process,
    tid: Tid,
    r: &Region,
    masked: bool,
    is_ours: impl Fn(u64) -> bool,
) -> Option<Vec<GuestAddr>> {
    let mut code = vec![0; usize::try_from(r.end - r.start).ok()?];
    // (Beyond the end of its file nothing is.)
    let n = p.memory.read(r.start, &mut code);
    code.truncate(n);
    let mut places: Vec<u64> = breakpoints::requests(&code).into_iter().map(|at| r.start + at as u64).collect();
    if masked {
        let suspects: Vec<GuestAddr> =
            breakpoints::suspects(&code).into_iter().map(|at| GuestAddr(r.start + at as u64)).collect();
        let starts = p.stacks.instructions_before((tid, &p.memory), is_ours, &suspects);
        for (&GuestAddr(suspect), start) in suspects.iter().zip(starts) {
            let start = start.map_or(r.start, |at| at.0).max(r.start);
            let end = (suspect + MAX_INSN_LEN).min(r.start + n as u64);
            if suspect - start > MOST_DECODED {
                return None;
            }
            let bytes = &code[(start - r.start) as usize..(end - r.start) as usize];
            match breakpoints::judge(bytes, start, suspect) {
                Verdict::Differs(at) => places.push(at),
                Verdict::Harmless => {}
                Verdict::Unknown => {
                    log::debug!(
                        target: grind_types::subject::DISPATCH,
                        "it is not known what is at {suspect:#x}, read from {start:#x} on"
                    );
                    return None;
                }
            }
        }
    }
    places.sort_unstable();
    places.dedup();
    Some(places.into_iter().map(GuestAddr).collect())
}
