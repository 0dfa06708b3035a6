//! The native stack of a stopped thread of another process: which functions are active, and where each has its frame.
//!
//! [`Unwinder::stack`] goes from frame to frame by the frame descriptions (`.eh_frame`) that are part of nearly all code, and
//! by frame pointers where there are none. Descriptions are read from the memory of the process: what is mapped there is what
//! runs, whatever has become of the file since, and the vDSO is a module like any other. Only static programs do not say in memory where
//! they are; then the sections of the file are asked ([`Memory::program`]).
//!
//! What it must never do: panic, loop, or read without bound. Memory and registers are those of a program that may be broken or
//! hostile, so each step is checked: a frame ends above the one before (a signal's may be anywhere), a return address lies in code, and
//! there are no more frames than the caller asks for. What cannot be known ends the stack; [`Stack::end`] says why.
//!
//! Invariant: no frame is made up. A frame that only a frame pointer tells of is marked as such ([`Method`]).
#![forbid(unsafe_code)]

mod describe;
mod module;

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;

use describe::Step;
use module::Module;

/// Reads the memory of the process.
pub trait Memory {
    /// Reads as much of `into` as is mapped from `at` on; returns the number of bytes.
    fn read(&self, at: u64, into: &mut [u8]) -> usize;

    /// The file that the process executes, as `/proc/PID/exe` opens it. Without it the functions of static programs are not known
    /// by descriptions.
    fn program(&self) -> Option<File> {
        None
    }
}

impl<F: Fn(u64, &mut [u8]) -> usize> Memory for F {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        self(at, into)
    }
}

fn word(memory: &dyn Memory, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (memory.read(at, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
}

/// A stretch of the process's memory, as `/proc/PID/maps` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Offset in the file of what is at `start`.
    pub offset: u64,
    /// Whether code can run there.
    pub executable: bool,
    /// Equal for mappings of the same file, and for no others; `None` for memory without a file. The vDSO counts as a file.
    pub file: Option<u64>,
}

/// The numbers that frame descriptions give to general registers (System V ABI for x86-64, figure 3.36).
pub mod register {
    /// `rbx`.
    pub const RBX: usize = 3;
    /// `rbp`.
    pub const RBP: usize = 6;
    /// `rsp`.
    pub const RSP: usize = 7;
    /// `r10`, which points to the arguments of functions that align their stack.
    pub const R10: usize = 10;
    /// `r12`.
    pub const R12: usize = 12;
    /// `r13`.
    pub const R13: usize = 13;
    /// `r14`.
    pub const R14: usize = 14;
    /// `r15`.
    pub const R15: usize = 15;
    /// How many there are.
    pub const COUNT: usize = 16;
}

/// The registers of a thread, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The next instruction, or the address that is returned to.
    pub rip: u64,
    /// The general ones, by their numbers in [`register`] (`rax`, `rdx`, `rcx`, `rbx`, `rsi`, `rdi`, `rbp`, `rsp`, `r8` to `r15`).
    pub general: [Option<u64>; register::COUNT],
}

impl Registers {
    /// These three known, which is enough for most code. More are worth setting: some functions find their frame by others.
    #[must_use]
    pub fn new(rip: u64, rsp: u64, rbp: u64) -> Self {
        let mut general = [None; register::COUNT];
        general[register::RSP] = Some(rsp);
        general[register::RBP] = Some(rbp);
        Self { rip, general }
    }
}

/// How a frame came to where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is the innermost one: its `pc` is the next instruction.
    Running,
    /// It has called the one before: its `pc` is the address that will be returned to.
    Called,
    /// A signal interrupted it, whose handler's return is the frame before: its `pc` is the next instruction.
    Interrupted,
}

/// What told where a frame ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A frame description.
    Description,
    /// `rbp`, as a frame pointer: wrong if the function uses the register for something else.
    FramePointer,
}

/// An active function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it goes on; see [`Kind`].
    pub pc: u64,
    /// How it came to be there.
    pub kind: Kind,
    /// Its canonical frame address: the stack pointer once it has returned. 8 bytes below is where its return address is, unless it is
    /// the return of a signal's handler. `None` for the last frame, if nothing tells of it.
    pub cfa: Option<u64>,
    /// What told `cfa`.
    pub by: Option<Method>,
}

impl Frame {
    /// An address within the instruction that the frame is at: the call, where it has called. To be used to look up names, since a call may
    /// be the last instruction of its function.
    #[must_use]
    pub fn lookup(&self) -> u64 {
        if self.kind == Kind::Called { self.pc.wrapping_sub(1) } else { self.pc }
    }
}

/// Why a stack has no more frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last frame is the outermost one: its description, or a return address or frame pointer of 0, says so.
    Outermost,
    /// As many frames as were asked for.
    TooDeep,
    /// Nothing credible tells of the caller of the last frame.
    Unknown,
}

/// The active functions of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// From the innermost to the outermost one; at least one.
    pub frames: Vec<Frame>,
    /// Why there are no more.
    pub end: End,
}

/// Reads stacks of one process, for as long as its mappings stay as they are. Descriptions are read once a module.
#[derive(Debug)]
pub struct Unwinder {
    mappings: Vec<Mapping>,
    /// By where their files begin in memory.
    modules: HashMap<u64, Option<Module>>,
    context: gimli::UnwindContext<usize>,
}

impl Unwinder {
    /// For a process with these mappings.
    #[must_use]
    pub fn new(mut mappings: Vec<Mapping>) -> Self {
        mappings.sort_by_key(|m| m.start);
        Self { mappings, modules: HashMap::new(), context: gimli::UnwindContext::new() }
    }

    /// The stack of a thread with these registers, `most` frames of it at most.
    pub fn stack(&mut self, memory: &dyn Memory, registers: &Registers, most: usize) -> Stack {
        let mut at = *registers;
        let mut kind = Kind::Running;
        let mut frames = Vec::new();
        loop {
            let mut frame = Frame { pc: at.rip, kind, cfa: None, by: None };
            let step = self.step(memory, &at, frame.lookup());
            if let Some((step, by)) = &step {
                frame.cfa = step.cfa;
                frame.by = Some(*by);
            }
            frames.push(frame);
            let end = match step {
                _ if frames.len() >= most => End::TooDeep,
                None => End::Unknown,
                Some((Step { caller: None, .. }, _)) => End::Outermost,
                Some((Step { caller: Some(caller), .. }, _)) if caller.rip == 0 => End::Outermost,
                Some((Step { caller: Some(caller), signal, .. }, _)) => {
                    let above = caller.general[register::RSP] > at.general[register::RSP];
                    if (above || signal) && self.executable(caller.rip).is_some() {
                        kind = if signal { Kind::Interrupted } else { Kind::Called };
                        at = caller;
                        continue;
                    }
                    End::Unknown
                }
            };
            return Stack { frames, end };
        }
    }

    /// The addresses of the function whose description covers `pc`; if there is none, of one that is described, before it or elsewhere.
    pub fn function(&mut self, memory: &dyn Memory, pc: u64) -> Option<Range<u64>> {
        let header = self.header_of(self.executable(pc)?)?;
        let mappings = &self.mappings;
        let module = self.modules.entry(header).or_insert_with(|| Module::read(memory, mappings, header));
        describe::function(module.as_ref()?, pc)
    }

    /// The mapping that holds code at `at`.
    fn executable(&self, at: u64) -> Option<usize> {
        let index = self.mappings.partition_point(|m| m.start <= at).checked_sub(1)?;
        let m = &self.mappings[index];
        (m.executable && at < m.end).then_some(index)
    }

    fn step(&mut self, memory: &dyn Memory, at: &Registers, pc: u64) -> Option<(Step, Method)> {
        let described = self.executable(pc).and_then(|index| {
            let header = self.header_of(index)?;
            let mappings = &self.mappings;
            let module = self.modules.entry(header).or_insert_with(|| Module::read(memory, mappings, header));
            describe::step(module.as_ref()?, memory, &mut self.context, at, pc)
        });
        match described {
            Some(step) => Some((step, Method::Description)),
            None => by_frame_pointer(memory, at).map(|step| (step, Method::FramePointer)),
        }
    }

    /// Where the file behind a mapping begins in memory.
    fn header_of(&self, index: usize) -> Option<u64> {
        let file = self.mappings[index].file?;
        let before = self.mappings[..=index].iter().rev();
        before.take(module::MOST_MAPPINGS).find(|m| m.file == Some(file) && m.offset == 0).map(|m| m.start)
    }
}

/// The caller of a function that has pushed `rbp` and made it point there.
fn by_frame_pointer(memory: &dyn Memory, at: &Registers) -> Option<Step> {
    let (rsp, rbp) = (at.general[register::RSP]?, at.general[register::RBP]?);
    if rbp == 0 {
        return Some(Step { cfa: None, caller: None, signal: false });
    }
    if rbp < rsp || !rbp.is_multiple_of(8) {
        return None;
    }
    let cfa = rbp.checked_add(16)?;
    let mut caller = Registers::new(word(memory, rbp + 8)?, cfa, word(memory, rbp)?);
    // Who uses frame pointers saves the others as ever, but nobody tells where.
    caller.general[register::RSP] = Some(cfa);
    Some(Step { cfa: Some(cfa), caller: Some(caller), signal: false })
}
