//! The native stack of a guest's thread that stands still: who called whom, as the program's own memory tells it.

use std::collections::HashMap;

use grind_unwind::{Mapping, Registers, Stack, Unwinder};

use super::Hub;
use crate::maps::Region;
use crate::tracee::Regs;

impl Hub<'_> {
    /// The stack of thread `tid`, whose registers are the guest's and which is at `pc`; `most` frames of it at most.
    pub(super) fn native_stack(&self, tid: i32, regs: &Regs, pc: u64, most: usize) -> Option<Stack> {
        let p = self.process_of(tid)?;
        let regions = p.memory.regions().ok()?;
        let space = p.space.borrow();
        // Nothing of the guest's returns to translated code.
        let own = |r: &&Region| !space.is_cache(r.start);
        Some(Unwinder::new(mappings(regions.iter().filter(own))).stack(&p.memory, &registers(regs, pc), most))
    }
}

fn registers(r: &Regs, rip: u64) -> Registers {
    let general =
        [r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    Registers { rip, general: general.map(Some) }
}

fn mappings<'a>(regions: impl Iterator<Item = &'a Region>) -> Vec<Mapping> {
    let mut files = HashMap::new();
    let mut file_of = |r: &Region| {
        let next = files.len() as u64;
        let has_file = r.inode != 0 || r.name == b"[vdso]";
        has_file.then(|| *files.entry((r.device, r.inode)).or_insert(next))
    };
    regions
        .map(|r| Mapping { start: r.start, end: r.end, offset: r.offset, executable: r.exec, file: file_of(r) })
        .collect()
}
