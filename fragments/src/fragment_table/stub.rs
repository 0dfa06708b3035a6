//! Stubs and the state map: what a stop in translated code means, and how the program's state follows from the registers there. Both
//! are written when code is emitted, and read when it stops; neither is ever guessed from bytes of code.

use grind_layout::SlotWord;
use grind_layout::registers::Gpr;
use grind_trace::follow::CallContextId;
use grind_types::addr::{CacheAddr, GuestAddr};

use super::{FragmentId, Way};

/// No register.
pub const NO_REG: u8 = 0xff;

/// No register in no slot word.
pub const NOT_SPILLED: (u8, u8) = (NO_REG, 0);

/// What a stop in the cache means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StubKind {
    /// A direct branch whose target has no fragment yet; `site` is the address of the 32-bit field to patch.
    Exit {
        /// The program's address that it leads to.
        target: GuestAddr,
        /// Where the field is.
        site: CacheAddr,
        /// The call context that it goes on in.
        call_context: CallContextId,
    },
    /// A transfer of control that the sink has to decide on: where it is told, in which call context, and the 32-bit field that
    /// shall lead to what emitted code can do about it from then on. For an indirect one, rcx has been saved and the target
    /// is in [`grind_layout::TARGET`].
    Transfer {
        /// The site that tells it.
        told: u32,
        /// The call context that it is in.
        call_context: CallContextId,
        /// Where the field is.
        root: CacheAddr,
    },
    /// A return that emitted code cannot follow; its site is in [`grind_layout::SlotWord::Returning`]. rcx has been saved; the
    /// target is in rcx, or right below the stack pointer.
    Return {
        /// The target is in rcx.
        in_rcx: bool,
    },
    /// An indirect branch that this IBL target, the last one of its chain, is not for.
    IblMiss {
        /// How it was come by.
        way: Way,
    },
    /// What the stub wants whose number is in [`grind_layout::SlotWord::Request`]: nobody has looked.
    Asked,
    /// A system call that must not simply run. `go` is the address of the `syscall` instruction.
    Syscall {
        /// The address behind the instruction.
        next: GuestAddr,
        /// The address of the `syscall` instruction in translated code.
        go: CacheAddr,
    },
    /// A system call has answered EFAULT or EINTR; its number is in `SlotWord::T2`, its `syscall` instruction at `go`.
    CallFailed {
        /// The address of the `syscall` instruction in translated code.
        go: CacheAddr,
    },
    /// An instruction that grind carries out; execution goes on behind the stub.
    Emulate {
        /// Which one.
        what: Emulate,
        /// Its address.
        pc: GuestAddr,
        /// The address behind it.
        next: GuestAddr,
        /// The block that it is in.
        block: FragmentId,
    },
    /// In front of an instruction whose accesses the engine takes along the miss path: those of the record that was written
    /// last, which is `site`'s. Execution goes on behind the stub.
    MissPath {
        /// The site of the record.
        site: u32,
        /// Nothing is recorded for the time being.
        off: bool,
    },
    /// Behind the instruction at `pc`, which has written down where the last instruction of the x87 was. Execution goes on behind the
    /// stub.
    SavedX87 {
        /// The address of the instruction.
        pc: GuestAddr,
    },
    /// In front of the block at `pc`, where an allocator begins or a call of one returns to. Execution goes on behind the stub.
    Watched {
        /// The address of the block.
        pc: GuestAddr,
        /// Such a call may be returning there.
        returns: bool,
    },
    /// In front of the block at `pc`, where a frame of an interpreter begins or changes, or what it runs is gone. Execution goes on behind
    /// the stub.
    Framed {
        /// The address of the block.
        pc: GuestAddr,
    },
}

/// Instructions that grind carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulate {
    /// CPUID.
    Cpuid,
    /// XGETBV.
    Xgetbv,
    /// A client request.
    ClientRequest,
    /// The question for the number of the context.
    ClientGetNr,
    /// A breakpoint of the program's own.
    Int3,
    /// One that is executed where the program has it.
    InPlace,
}

/// Bytes of a stub.
pub const STUB_BYTES: u64 = 5;

/// A stub: an `int3` and the stub's number.
#[derive(Clone, Copy, Debug)]
pub struct Stub {
    /// Address of the `int3`.
    pub addr: CacheAddr,
    /// What it means.
    pub kind: StubKind,
}

/// How the guest's state follows from the registers at a certain address of translated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMapEntry {
    /// Registers are in slot words: up to four pairs of register number and offset.
    Spilled([(u8, u8); 4]),
    /// As if the instruction had not begun.
    Before,
    /// As if the instruction had ended (a system call has returned).
    After,
    /// A call: what the guest pushes has been pushed.
    Called {
        /// rcx is in its slot word.
        in_rcx: bool,
    },
    /// A client request reads what it asks for; rcx is in the slot word `T1`. A fault is none: this stub goes on.
    Request {
        /// The number of the stub.
        stub: u32,
    },
    /// In a REP-prefixed instruction: rcx iterations, already counted in `counter`, are still to come.
    Rep {
        /// What counts the iterations.
        counter: u32,
        /// The counter register is ecx.
        address32: bool,
        /// Where its accesses are recorded, if they are.
        site: Option<u32>,
        /// Where its executions are told, if they are.
        told: Option<u32>,
    },
    /// Between boundaries, at the start of a loop that takes a repeated instruction's accesses along the miss path:
    /// `emit::miss_path` says what the registers hold.
    RepeatMissPath {
        /// The site of its record.
        site: u32,
    },
}

impl StateMapEntry {
    /// This register alone is in its slot word.
    pub fn spilled(r: Gpr, word: SlotWord) -> Self {
        Self::Spilled([(r.0, word as u8), NOT_SPILLED, NOT_SPILLED, NOT_SPILLED])
    }
}
