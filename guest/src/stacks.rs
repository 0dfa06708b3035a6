//! The native stacks of a process, as frame descriptions and frame pointers tell of them. Nothing of the process is changed.
//!
//! What a frame pointer alone tells of is only believed if a call stands in front of the address that is returned to; a stack ends
//! at the first frame that is not believed. Invariant: what has been read of modules is used for as long as mappings stay as they
//! are, and no longer.

use std::cell::RefCell;
use std::collections::HashMap;

use grind_ptrace::maps::{self, Region};
use grind_ptrace::{Memory, Regs};
use grind_trace::NativeFrame;
use grind_types::Tid;
use grind_types::addr::GuestAddr;
use grind_unwind::{Kind, Mapping, Method, Registers, Stack, Unwinder};

/// Bytes of a page.
const PAGE: usize = 4096;

/// The most frames that are read: some microseconds each.
const MOST: usize = 1024;

/// Bytes of the longest call: prefixes, two of opcode and operand, an index, a displacement.
const MOST_OF_A_CALL: usize = 9;

/// What the stacks of a process are read with, for as long as its mappings stay as they are.
#[derive(Debug, Default)]
pub struct Stacks(Option<Box<Read>>);

#[derive(Debug)]
struct Read {
    mappings: Vec<Mapping>,
    unwinder: Unwinder,
    /// What whoever knows when code is mapped calls the mappings, if they were asked for by that.
    version: Option<u64>,
}

/// A process as stacks are read from it.
struct Guest<'a> {
    memory: &'a Memory,
    /// One of its threads, which stands still: another may have ended, and `/proc` shows no mappings by that.
    tid: Tid,
    /// The page that a word was last read from: the next one is mostly on it, too.
    page: RefCell<(u64, Vec<u8>)>,
}

impl grind_unwind::Memory for Guest<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let (start, offset) = (at & !(PAGE as u64 - 1), at as usize % PAGE);
        if into.len() > 16 || offset + into.len() > PAGE {
            return self.memory.read(at, into);
        }
        let (known, page) = &mut *self.page.borrow_mut();
        if *known != start || page.is_empty() {
            page.resize(PAGE, 0);
            let n = self.memory.read(start, page);
            page.truncate(n);
            *known = start;
        }
        let there = page.get(offset..).unwrap_or_default();
        let n = there.len().min(into.len());
        into[..n].copy_from_slice(&there[..n]);
        n
    }

    fn program(&self) -> Option<std::fs::File> {
        std::fs::File::open(format!("/proc/{}/exe", self.tid)).ok()
    }
}

impl Stacks {
    /// The frames of thread `tid`, which is at `pc` and has these registers, as descriptions and frame pointers tell of
    /// them: `most` of them at most. `is_ours` says what lies in the process's memory without being the program's.
    pub fn stack(
        &mut self,
        (tid, memory): (Tid, &Memory),
        is_ours: impl Fn(u64) -> bool,
        (pc, regs): (u64, &Regs),
        most: usize,
    ) -> Option<Stack> {
        let read = self.read(tid, is_ours)?;
        let guest = Guest { memory, tid, page: RefCell::default() };
        Some(read.unwinder.stack(&guest, &registers(regs, pc), most))
    }

    /// What the process of `tid` has mapped at present, read as far as it has been asked for.
    fn read(&mut self, tid: Tid, is_ours: impl Fn(u64) -> bool) -> Option<&mut Read> {
        let mut files = HashMap::new();
        let mut file_of = |r: &Region| {
            let next = files.len() as u64;
            let has_file = r.inode != 0 || r.name == b"[vdso]";
            has_file.then(|| *files.entry((r.device, r.inode)).or_insert(next))
        };
        let regions = maps::read(tid).ok()?;
        // Nothing of the program returns to translated code.
        let mappings: Vec<Mapping> = regions
            .iter()
            .filter(|r| !is_ours(r.start))
            .map(|r| Mapping { start: r.start, end: r.end, offset: r.offset, executable: r.exec, file: file_of(r) })
            .collect();
        if self.0.as_ref().is_none_or(|read| read.mappings != mappings) {
            let unwinder = Unwinder::new(mappings.clone());
            self.0 = Some(Box::new(Read { mappings, unwinder, version: None }));
        }
        self.0.as_deref_mut()
    }

    /// For each of `pcs` where the function begins that it is in, by the description that covers it, or where the one before it ends:
    /// an instruction begins there. `None`: none before it is described.
    pub fn instructions_before(
        &mut self,
        (tid, memory): (Tid, &Memory),
        is_ours: impl Fn(u64) -> bool,
        pcs: &[GuestAddr],
    ) -> Vec<Option<GuestAddr>> {
        let Some(read) = self.read(tid, is_ours) else { return vec![None; pcs.len()] };
        let guest = Guest { memory, tid, page: RefCell::default() };
        let mut before = |pc: GuestAddr| {
            let function = read.unwinder.function(&guest, pc.0)?;
            let at = if function.contains(&pc.0) { function.start } else { function.end };
            (at <= pc.0).then_some(GuestAddr(at))
        };
        pcs.iter().map(|&pc| before(pc)).collect()
    }

    /// The calls that are active in such a thread; the innermost first.
    pub fn calls(
        &mut self,
        (tid, memory): (Tid, &Memory),
        is_ours: impl Fn(u64) -> bool,
        at: (u64, &Regs),
    ) -> Vec<NativeFrame> {
        match self.read(tid, is_ours) {
            Some(_) => self.calls_again((tid, memory), at, MOST),
            None => Vec::new(),
        }
    }

    /// Where the calls return to that are active in a thread which is at `pc` and has these registers, the innermost first: `most` at
    /// most, and none behind one that is not believed. Of a function that a signal has interrupted it is the address behind the first
    /// byte of its next instruction. While `version` is the same, no other code is mapped.
    pub fn callers(
        &mut self,
        (tid, memory): (Tid, &Memory),
        is_ours: impl Fn(u64) -> bool,
        at: (u64, &Regs),
        (most, version): (usize, u64),
    ) -> Vec<GuestAddr> {
        if self.0.as_ref().is_none_or(|read| read.version != Some(version)) {
            let Some(read) = self.read(tid, is_ours) else { return Vec::new() };
            read.version = Some(version);
        }
        // What a handler returns to is no function of the program's.
        let frames = self.calls_again((tid, memory), at, most.saturating_mul(2).saturating_add(1));
        let next = frames.iter().skip(1).map(Some).chain([None]);
        let callers = frames.iter().zip(next).map(|(frame, next)| match (frame.interrupted, next) {
            (None, _) => frame.returns_to,
            (Some(_), next) => next.map_or(0, |next| next.at.wrapping_add(1)),
        });
        callers.take_while(|to| *to != 0).take(most).map(GuestAddr).collect()
    }

    /// As [`Stacks::calls`], with what has been read of mappings; of so many frames.
    fn calls_again(
        &mut self,
        (tid, memory): (Tid, &Memory),
        (pc, regs): (u64, &Regs),
        most: usize,
    ) -> Vec<NativeFrame> {
        let Some(read) = self.0.as_deref_mut() else { return Vec::new() };
        let guest = Guest { memory, tid, page: RefCell::default() };
        let stack = read.unwinder.stack(&guest, &registers(regs, pc), most);
        let mappings = &read.mappings[..];
        let executable = |at| mappings.iter().any(|m| m.executable && (m.start..m.end).contains(&at));
        let call = |returns_to| call_before(&guest, executable, returns_to);
        let mut frames: Vec<NativeFrame> = Vec::with_capacity(stack.frames.len());
        for (i, frame) in stack.frames.iter().enumerate() {
            let caller = stack.frames.get(i + 1);
            if caller.is_some_and(|caller| caller.kind == Kind::Interrupted) {
                // This one only hands back to the kernel: the one before is the handler.
                if let (Some(handler), Some(sp)) = (frames.last_mut(), frame.cfa) {
                    handler.interrupted = Some(sp);
                    continue;
                }
            }
            let returns_to = caller.map_or(0, |caller| caller.pc);
            let sp = frame.cfa.unwrap_or(0).wrapping_sub(8);
            let at = if frame.kind == Kind::Called { call(frame.pc).unwrap_or(frame.lookup()) } else { frame.lookup() };
            frames.push(NativeFrame { at, sp, returns_to, interrupted: None });
            let doubtful = frame.by == Some(Method::FramePointer) && caller.is_some();
            if doubtful && call(returns_to).is_none() {
                break;
            }
        }
        frames
    }
}

/// By the numbers that frame descriptions have.
fn registers(r: &Regs, rip: u64) -> Registers {
    let general =
        [r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    Registers { rip, general: general.map(Some) }
}

/// Where the call instruction begins that returns to `at`, as far as the bytes in front of it tell: a direct one must lead to code
/// that is executable; of indirect ones the longest counts, since its prefixes and displacements are a part of it.
fn call_before(memory: &dyn grind_unwind::Memory, executable: impl Fn(u64) -> bool, at: u64) -> Option<u64> {
    let mut code = [0; MOST_OF_A_CALL];
    if memory.read(at.wrapping_sub(MOST_OF_A_CALL as u64), &mut code) != code.len() {
        return None;
    }
    let decoded = |len: usize| {
        let from = at.wrapping_sub(len as u64);
        let insn = iced_x86::Decoder::with_ip(64, &code[MOST_OF_A_CALL - len..], from, 0).decode();
        (insn.len() == len).then_some((from, insn))
    };
    let direct = decoded(5).filter(|(_, insn)| insn.is_call_near() && executable(insn.near_branch_target()));
    let indirect = || (2..=MOST_OF_A_CALL).rev().filter_map(decoded).find(|(_, insn)| insn.is_call_near_indirect());
    direct.or_else(indirect).map(|(from, _)| from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code that ends where the memory ends, at 0x2000.
    struct Code(Vec<u8>);

    impl grind_unwind::Memory for Code {
        fn read(&self, at: u64, into: &mut [u8]) -> usize {
            let from = at.wrapping_sub(0x2000 - self.0.len() as u64) as usize;
            let bytes = self.0.get(from..).unwrap_or_default();
            let n = bytes.len().min(into.len());
            into[..n].copy_from_slice(&bytes[..n]);
            n
        }
    }

    /// How long the call is at the end of `code`, behind other instructions.
    fn call(code: &[u8]) -> Option<u64> {
        let code = [&[0x90; 16], code].concat();
        call_before(&Code(code), |at| (0x1000..0x3000).contains(&at), 0x2000).map(|from| 0x2000 - from)
    }

    #[test]
    fn calls_are_found_in_front_of_where_they_return_to() {
        assert_eq!(call(&[0xe8, 0x10, 0, 0, 0]), Some(5));
        assert_eq!(call(&[0xff, 0xd0]), Some(2));
        assert_eq!(call(&[0x41, 0xff, 0xd4]), Some(3));
        assert_eq!(call(&[0x3e, 0xff, 0xd0]), Some(3));
        assert_eq!(call(&[0xff, 0x55, 0xe8]), Some(3));
        assert_eq!(call(&[0xff, 0x15, 1, 2, 3, 4]), Some(6));
        assert_eq!(call(&[0xff, 0x94, 0x24, 1, 2, 3, 4]), Some(7));
        // A direct call to where no code is; a jump; nothing.
        assert_eq!(call(&[0xe8, 0, 0, 0, 0x40]), None);
        assert_eq!(call(&[0xff, 0xe0]), None);
        assert_eq!(call(&[]), None);
    }
}
