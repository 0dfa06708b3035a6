//! Frames of interpreters: what there is in an interpreter's code that says which function of the interpreted program runs, and what
//! is known of such a function. Whoever knows an interpreter finds the places; whoever runs it knows nothing but them.
//!
//! Invariant: what a hook reads of the program's memory is there whenever the program executes the instruction that it is at.

/// Where a frame says which code object it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeAt {
    /// Offset in the frame of the word with its address.
    pub offset: i8,
    /// The lowest bits of that word which are no part of the address, but say something about it.
    pub tags: u8,
}

impl CodeAt {
    /// The address in that word.
    #[must_use]
    pub fn address(self, word: u64) -> u64 {
        word & !u64::from(self.tags)
    }
}

/// A place in an interpreter's code, in front of an instruction. Registers are by their hardware numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameHook {
    /// A function begins that runs a frame of the interpreter, and those that it pushes itself.
    Entered {
        /// The register with the address of the frame.
        frame: u8,
        /// Where that has its code object.
        code: CodeAt,
        /// Where the interpreter keeps the address of the frame that runs, if instructions cannot be told by that alone: a register, and
        /// an offset from it.
        holder: Option<(u8, i8)>,
    },
    /// The instruction makes another frame the one that runs.
    Switched {
        /// The register with the address of the frame.
        frame: u8,
        /// As above.
        code: CodeAt,
        /// It does so only if it stores to where [`FrameHook::Entered`] has said: the register that it stores by, and the offset.
        holder: Option<(u8, i8)>,
    },
    /// A function begins that takes a code object back.
    Gone {
        /// The register with its address.
        code: u8,
    },
}

/// A function of the interpreted program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FrameFunction {
    /// Its name, with whatever it lies in.
    pub name: Vec<u8>,
    /// Its source file, as the interpreter has it.
    pub file: Vec<u8>,
    /// The first line of it; 0: unknown.
    pub line: u32,
}

/// Reads memory of the program: from an address on, as much as there is. Returns how many bytes that were.
pub type ReadMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> usize;
