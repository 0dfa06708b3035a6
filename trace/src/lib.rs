//! The trace: what emitted code tells about events that counters cannot hold, how it travels to the thread that analyses it,
//! and what a word of it means. Each guest thread writes 32-bit words into a buffer of its slot; grind takes full buffers
//! over and hands them to a [`Sink`] on a thread of its own, while the guest runs on.
//!
//! Invariants: a thread's records arrive in program order; a record is never cut in two; a site is announced before a record
//! names it; memory is bounded, because the guest waits when the sink is behind.

mod accesses;
mod brought;
pub mod every;
pub mod follow;
pub mod frames;
mod moves;
pub mod objects;
pub mod operands;
mod settings;
mod transfer;

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use grind_isa::cpuid::BASELINE_XCR0;
pub use grind_isa::events::resolve::{Done, Touch};
use grind_isa::events::resolve::{State, resolve};
use grind_layout as layout;
use grind_types::addr::GuestAddr;
use grind_types::frames::FrameFunction;
use grind_types::{Module, Pid, Query, StaticEvents, Tid};

pub use crate::accesses::CachePort;
pub use crate::brought::{CODE_BROUGHT, CODE_BROUGHT_WORDS, LINE_BROUGHT, LineBrought};
use crate::follow::{Book, CallContext, Calls, Counts, Names, Outcome};
pub use crate::moves::{LINE_MOVED, LINE_READ, LINE_UNPLACED, LINE_UPGRADED, LINE_WRITTEN, MOVED_WORDS};
pub use crate::settings::{CallTrace, EveryAccess, FirstLevel, FirstTlb, FirstTlbs, ToldFirst, TraceSettings};
pub use crate::transfer::Transfer;

/// An instruction of a [`Block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address.
    pub addr: GuestAddr,
    /// Its length in bytes.
    pub len: u8,
    /// Whether an execution of the block is one of the instruction. (If not, records of its own tell how often.)
    pub counted: bool,
    /// Whether a basic block ends with it, however code is translated: it may give control away, or asks for a stop.
    pub ends_block: bool,
    /// What an execution does.
    pub events: StaticEvents,
}

/// Instructions that are executed one after the other: all of a list, or the first ones. Copies share the list.
#[derive(Clone)]
pub struct Instructions {
    all: Arc<[Instruction]>,
    n: usize,
}

impl Instructions {
    /// The first `n` of these, if there are so many.
    #[must_use]
    pub fn first(&self, n: usize) -> Instructions {
        Instructions { all: self.all.clone(), n: n.min(self.n) }
    }
}

impl From<Vec<Instruction>> for Instructions {
    fn from(all: Vec<Instruction>) -> Instructions {
        Instructions { n: all.len(), all: all.into() }
    }
}

impl Deref for Instructions {
    type Target = [Instruction];
    fn deref(&self) -> &[Instruction] {
        &self.all[..self.n]
    }
}

impl fmt::Debug for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Instructions that are executed one after the other.
#[derive(Clone, Debug)]
pub struct Block {
    /// Index of its module.
    pub module: u32,
    /// At least one; each begins where the last one ends.
    pub instructions: Instructions,
}

/// A line of a thread's data cache makes place for another one, which an access brings in. Told in place of a miss where uses
/// are kept: the words of the record of a site of kind [`SiteKind::Read`], [`SiteKind::Write`], [`SiteKind::Modify`] or
/// [`SiteKind::Sized`] are the site, `way` (with bit 0 set if the access is to two lines, and bit 1 if this is the second of
/// them), `count`, `parts`, and the address of the access (two words). Behind those of an access to two lines comes a record of [`LINES_REPLACED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineReplaced {
    /// Where the line lies in the cache: a multiple of [`LineReplaced::WAY`], below that times the number of its lines.
    pub way: u32,
    /// How often the line that goes has been accessed: at most `u32::MAX`.
    pub count: u32,
    /// The 32 parts of it that have been.
    pub parts: u32,
    /// The address of the access.
    pub addr: u64,
    /// The access is to two lines.
    pub one_of_two: bool,
    /// The line that comes is the second of them.
    pub second: bool,
}

impl LineReplaced {
    /// Words of a record.
    pub const WORDS: usize = 6;

    /// From one way to the next one.
    pub const WAY: u32 = layout::DATA_WAY as u32;

    /// The number of the line that comes, where lines have `1 << bits` bytes.
    #[inline]
    #[must_use]
    pub fn line(&self, bits: u32) -> u64 {
        (self.addr >> bits).wrapping_add(u64::from(self.second))
    }

    /// From the words of a record behind its site; nothing if they are too few.
    #[inline]
    #[must_use]
    pub fn from_words(words: &[u32]) -> Option<Self> {
        let &[way, count, parts, low, high, ..] = words else { return None };
        let addr = operands::joined(low, high);
        Some(Self { way: way & !3, count, parts, addr, one_of_two: way & 1 != 0, second: way & 2 != 0 })
    }

    /// The words of its record, with the site that says what it is.
    pub fn words(self, site: u32) -> [u32; Self::WORDS] {
        let way = self.way | u32::from(self.one_of_two) | u32::from(self.second) << 1;
        let [low, high] = operands::halves(self.addr);
        [site, way, self.count, self.parts, low, high]
    }
}

/// In records of [`SiteKind::CodeLine`]: from one way of the code cache to the next one.
pub const CODE_WAY: u32 = 8;

/// In place of a site's number: an access to two lines is over, at least one of which was missed. Operand: its site.
pub const LINES_REPLACED: u32 = u32::MAX - 3;

/// Words of a record of [`LINES_REPLACED`].
pub const REPLACED_WORDS: usize = 2;

/// In place of a site's number: how a line has been used that stays. Operands: where it lies, how often it has been accessed,
/// which parts, as in [`LineReplaced`]. Told of all lines that have been used before a thread ends, or ceases to record.
pub const LINE_USED: u32 = u32::MAX - 4;

/// Words of a record of [`LINE_USED`].
pub const USED_WORDS: usize = 4;

/// The kind of event that a site records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// Fetching the instruction has missed the first level. No operands.
    Fetch,
    /// The same where uses of lines are kept. Operand: where the line lies in the code cache that the instruction's takes the
    /// place of, as a multiple of [`CODE_WAY`]; 1 more if two lines are looked for and this is the second; 2 more if two lines
    /// are. Then a record of [`LINES_REPLACED`] follows those of its lines.
    CodeLine {
        /// The block of which the instruction is one, if it is not its first. What is before it has been executed, but not
        /// been told yet.
        block: Option<u32>,
        /// Of the instruction's two lines the first one is known to be there: only the second is looked for.
        second: bool,
    },
    /// Reading so many bytes has missed the first level. Operand: the address.
    Read(u16),
    /// Writing so many bytes has missed. Operand: the address.
    Write(u16),
    /// Reading and writing the same bytes has missed. Operand: the address.
    Modify(u16),
    /// An access of a special instruction has missed the first level. Operands: the address, then its size in bytes (one
    /// word).
    Sized {
        /// What it does.
        done: Done,
    },
    /// Instructions in a row are fetched, which lie in one code line or are a single one, and make accesses (only with
    /// [`TraceSettings::every`]). Operands: for each group of them the address that its offsets count from. They are those
    /// of the next sites, which are [`SiteKind::Member`]s, in program order.
    Stretch {
        /// Instructions; the site's is the first.
        instructions: u16,
        /// Their bytes.
        bytes: u16,
        /// Groups of accesses. All accesses of a group lie within the length of a data line (or there is only one).
        groups: u8,
        /// Accesses in all.
        members: u8,
        /// The block that it begins, if blocks are told: it is executed.
        tells: Option<u32>,
    },
    /// An access of the stretch before. No records.
    Member {
        /// Its group; no smaller than that of the member before.
        group: u8,
        /// What is done.
        done: Done,
        /// Bytes from the group's address.
        offset: u16,
        /// Bytes.
        size: u16,
    },
    /// A conditional branch was mispredicted. No operands.
    Conditional,
    /// The target of an indirect jump or call was mispredicted. No operands.
    Indirect,
    /// A repeated string instruction has ended, or was interrupted: tells how often it has accessed memory, and where.
    /// Operands: rcx, rsi, rdi before it; rcx, rsi, rdi after it; rsi or rdi is of no meaning, and the same, if it is not used.
    /// Its misses have sites of their own: the next one for \[rsi\], the one after that for \[rdi\].
    Repeated {
        /// Bytes of an element.
        size: u8,
        /// Reads \[rsi\].
        source: bool,
        /// What is done at \[rdi\].
        target: Target,
        /// Reads \[rdi\] before \[rsi\].
        target_first: bool,
        /// Only the low 32 bits of the registers count.
        narrow: bool,
    },
    /// An instruction whose accesses depend on a mask, a vector of indices or the like has been executed. Operands:
    /// registers, for [`Special::touches`]. Its misses have sites of their own: the next one for what is read, then one for what
    /// is written, then one for what is modified.
    Special {
        /// Number in the list of its space's special sites.
        index: u32,
        /// Words of a record.
        words: u16,
    },
    /// A block is executed. No operands.
    Block {
        /// Its number in the list of its space's blocks.
        block: u32,
    },
    /// A transfer of control. Operands: the stack pointer after it; for indirect ones and returns the target.
    Transfer {
        /// Which one.
        how: Transfer,
        /// The block that it ends.
        block: u32,
        /// The record also tells that the block is executed.
        tells: bool,
    },
    /// A direct jump that gets neither to a boundary nor over one, or a conditional one that is taken, where jumps are counted: no
    /// call, and no frame is left by it. Operand: the stack pointer. Never recorded where calls are followed: the executions
    /// of what it tells of are counted there.
    Jump {
        /// Which one.
        how: Transfer,
        /// The block that it ends.
        block: u32,
        /// The record also tells that the block is executed.
        tells: bool,
    },
    /// A repeated instruction has ended or was interrupted. Operand: how often it has been executed in all by the thread.
    Executions {
        /// The block that it belongs to.
        block: u32,
    },
}

/// An instruction that records registers instead of accesses.
#[derive(Clone, Debug)]
pub struct Special {
    /// The bytes of the instruction, with zeros behind it.
    pub bytes: [u8; 15],
    /// Its address.
    pub addr: GuestAddr,
    /// The program sees the baseline processor.
    pub masked: bool,
    /// Mask register, if there is one.
    pub mask: Option<u8>,
    /// Vector registers in the record, in order.
    pub vectors: [Option<u8>; 2],
}

impl Special {
    /// Offset in bytes of the general registers in a record; the bases of fs and gs, and a mask register follow.
    pub const GENERAL: usize = 4;
    /// Offset of the base of fs.
    pub const FS: usize = Self::GENERAL + 16 * 8;
    /// Offset of the base of gs.
    pub const GS: usize = Self::FS + 8;
    /// Offset of the mask register.
    pub const MASK: usize = Self::GS + 8;
    /// Offset of the first vector register.
    pub const VECTORS: usize = Self::MASK + 8;

    /// Words of a record with `n` vector registers.
    pub fn words(n: usize) -> usize {
        (Self::VECTORS + 64 * n) / 4
    }

    /// What an execution whose record is `words` (its site included) accesses, in program order.
    #[must_use]
    pub fn touches(&self, words: &[u32]) -> Vec<Touch> {
        let word = |at: usize| operands::joined(words[at / 4], words[at / 4 + 1]);
        let mut state = State {
            general: std::array::from_fn(|r| word(Self::GENERAL + 8 * r)),
            fs_base: word(Self::FS),
            gs_base: word(Self::GS),
            xcr0: if self.masked { BASELINE_XCR0 } else { u64::MAX >> 1 },
            ..State::default()
        };
        if let Some(k) = self.mask {
            state.masks[usize::from(k)] = word(Self::MASK);
        }
        for (n, v) in self.vectors.iter().enumerate() {
            let Some(v) = *v else { continue };
            state.vectors.resize(state.vectors.len().max(usize::from(v) + 1), [0; 64]);
            for (to, from) in state.vectors[usize::from(v)]
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(&words[(Self::VECTORS + 64 * n) / 4..])
            {
                *to = from.to_le_bytes();
            }
        }
        resolve(&self.bytes, self.addr, &state, self.masked).touches
    }
}

/// What a string instruction does at \[rdi\].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Nothing.
    Unused,
    /// It reads.
    Read,
    /// It writes.
    Write,
}

impl SiteKind {
    /// Words of a record, the site's number included.
    #[must_use]
    pub fn words(self) -> usize {
        match self {
            Self::Fetch | Self::Conditional | Self::Indirect => 1,
            Self::CodeLine { .. } => 2,
            Self::Read(_) | Self::Write(_) | Self::Modify(_) => 3,
            Self::Sized { .. } => 4,
            Self::Repeated { .. } => 13,
            Self::Special { words, .. } => words as usize,
            Self::Block { .. } | Self::Member { .. } => 1,
            Self::Stretch { groups, .. } => 1 + 2 * groups as usize,
            Self::Transfer { how: Transfer::CallIndirect | Transfer::Return | Transfer::JumpIndirect, .. } => 5,
            Self::Transfer { .. } | Self::Jump { .. } | Self::Executions { .. } => 3,
        }
    }
}

/// In place of a site's number: the thread changes its context of the statistics. Operand: the context (two words). It may be
/// the one that it is in already.
pub const CONTEXT_SITE: u32 = u32::MAX;

/// Words of a record of [`CONTEXT_SITE`].
pub const CONTEXT_WORDS: usize = 3;

/// In place of a site's number, once there are contexts: a line is brought into the thread's data cache. Operands: its
/// address (two words), the site of the access.
pub const LINE_LOADED: u32 = u32::MAX - 1;

/// The same: a line of the thread's data cache is hit for the first time since the thread has changed its context.
pub const LINE_REUSED: u32 = u32::MAX - 2;

/// Words of a record of [`LINE_LOADED`] and [`LINE_REUSED`].
pub const LINE_WORDS: usize = 4;

/// In place of a site's number: an access, or a fetch, has missed a page in a first-level TLB. Operands: its site; then (two words) the
/// address of its line, and 1 if another page of the same access has been missed before.
pub const PAGE_MISSED: u32 = u32::MAX - 16;

/// Words of a record of [`PAGE_MISSED`].
pub const PAGE_WORDS: usize = 4;

/// In place of a site's number: an access of the thread uses bytes that it has not used in this way before, as far as is known. Operands:
/// its site, and its address (two words).
pub const BYTES_USED: u32 = u32::MAX - 15;

/// Words of a record of [`BYTES_USED`].
pub const BYTES_WORDS: usize = 4;

/// In place of a site's number: the thread calls an allocator, of calls within one another the outermost. Operands: which one
/// ([`objects::Allocator::word`]); then, two words each, its first three arguments, where its return address lies, and that
/// address.
pub const ALLOCATOR_CALLED: u32 = u32::MAX - 5;

/// Words of a record of [`ALLOCATOR_CALLED`].
pub const CALLED_WORDS: usize = 12;

/// Added to which allocator it is: nothing is counted where it is called, and its block lives all the same.
pub const NOT_COUNTED: u32 = 1 << 31;

/// In place of a site's number, behind [`ALLOCATOR_CALLED`] or another one of these: who has called that function, if callers tell
/// blocks apart, the nearest first. Operands: where that call returns to (two words), the index of the module of that address.
pub const ALLOCATOR_CALLER: u32 = u32::MAX - 14;

/// Words of a record of [`ALLOCATOR_CALLER`].
pub const CALLER_WORDS: usize = 4;

/// In place of a site's number: that call has returned. Operands: the address of the block (two words; 0 if there is none), where
/// it has returned to (two words), the index of the module of that address.
pub const ALLOCATOR_RETURNED: u32 = u32::MAX - 9;

/// Words of a record of [`ALLOCATOR_RETURNED`].
pub const RETURNED_WORDS: usize = 6;

/// In place of a site's number: what happens to the block of memory at an address. Operands: the address (two words), and one of
/// [`OBJECT_FREED`], [`OBJECT_GIVEN_BACK`], [`OBJECT_POOL_GONE`].
pub const OBJECT_DIED: u32 = u32::MAX - 6;

/// Words of a record of [`OBJECT_DIED`].
pub const DIED_WORDS: usize = 4;

/// It is taken back.
pub const OBJECT_FREED: u32 = 0;

/// The program says that it is taken back: a block of [`OBJECT_CARVED`].
pub const OBJECT_GIVEN_BACK: u32 = 1;

/// The program says that all blocks of a pool are taken back. The address is that of the pool.
pub const OBJECT_POOL_GONE: u32 = 2;

/// In place of a site's number: the program says that a part of its memory is a block of its own. Operands, two words each: its
/// address, its bytes, the address behind the request, the pool (0: none); then the index of the module of that address. It
/// hides what it lies in, until it or that is gone.
pub const OBJECT_CARVED: u32 = u32::MAX - 7;

/// Words of a record of [`OBJECT_CARVED`].
pub const CARVED_WORDS: usize = 10;

/// In place of a site's number: the program says that a block has another size now. Operands, two words each: its address, its
/// bytes.
pub const OBJECT_RESIZED: u32 = u32::MAX - 8;

/// Words of a record of [`OBJECT_RESIZED`].
pub const RESIZED_WORDS: usize = 5;

/// In place of a site's number: the program says that blocks of a pool, or parts of them, are taken back which lie outside of a place.
/// Operands, two words each: the pool, the address of the place, its bytes.
pub const OBJECT_POOL_TRIMMED: u32 = u32::MAX - 10;

/// Words of a record of [`OBJECT_POOL_TRIMMED`].
pub const TRIMMED_WORDS: usize = 7;

/// In place of a site's number: the program says that the blocks of a pool are of another one now. Operands, two words each: the
/// pool, the other one.
pub const OBJECT_POOL_MOVED: u32 = u32::MAX - 11;

/// Words of a record of [`OBJECT_POOL_MOVED`].
pub const POOL_MOVED_WORDS: usize = 5;

/// How many words a record has that begins with this in place of a site's number, if it is about objects.
#[must_use]
pub fn object_words(first: u32) -> Option<usize> {
    match first {
        ALLOCATOR_CALLED => Some(CALLED_WORDS),
        ALLOCATOR_CALLER => Some(CALLER_WORDS),
        ALLOCATOR_RETURNED => Some(RETURNED_WORDS),
        OBJECT_DIED => Some(DIED_WORDS),
        OBJECT_CARVED => Some(CARVED_WORDS),
        OBJECT_RESIZED => Some(RESIZED_WORDS),
        OBJECT_POOL_TRIMMED => Some(TRIMMED_WORDS),
        OBJECT_POOL_MOVED => Some(POOL_MOVED_WORDS),
        _ => None,
    }
}

/// A place in the program that records events. Its number is the first word of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Index of the instruction's module.
    pub module: u32,
    /// Length of the instruction in bytes.
    pub len: u8,
    /// The instruction.
    pub addr: GuestAddr,
    /// What is recorded.
    pub kind: SiteKind,
}

/// Number of a set of translations; its sites are numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(pub u32);

/// A signal handler that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Its address.
    pub addr: GuestAddr,
    /// The stack pointer of the code that it interrupts.
    pub sp: u64,
    /// The stack that it runs on, if that is not the one of the interrupted code.
    pub stack: Option<Range<u64>>,
}

/// An active call of a thread that begins to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFrame {
    /// An address within the function: where it is, or the call that it has made (or is about to return behind, if what stands
    /// there is no call).
    pub at: u64,
    /// Where its return address is.
    pub sp: u64,
    /// Where it returns to; 0 for the outermost one.
    pub returns_to: u64,
    /// It is a signal handler: the stack pointer of what it has interrupted, which is the next frame.
    pub interrupted: Option<u64>,
}

/// A system call, or its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    /// The instruction that makes it.
    pub addr: GuestAddr,
    /// It begins: its time is told when it is over (never, if it does not return).
    pub begins: bool,
    /// It is over. If it neither begins nor ends, it has been interrupted, and may go on: what comes of that is told later.
    pub ends: bool,
    /// Nanoseconds from its beginning, or from where it went on, to its end, or to where the thread stopped within it.
    pub elapsed: u64,
    /// Nanoseconds that a processor spent on it.
    pub processor: u64,
}

/// Where the trace goes. All calls come from one thread of its own, in the order in which things happened to a process.
pub trait Sink: Send {
    /// More sites of a space; they are numbered on from the last, and so are its special ones among themselves.
    fn sites(&mut self, code_cache: SpaceId, sites: &[Site], specials: &[Special]);
    /// More blocks of a space; they are numbered on from the last.
    fn blocks(&mut self, _space: SpaceId, _blocks: &[Block]) {}
    /// What code of a space is executed from, from now on. Modules that are not in the list any more are gone.
    fn mapped(&mut self, _space: SpaceId, _modules: &[Module]) {}
    /// Code that the process has made while it ran is about to be translated, or to be gone to: the number that
    /// `Session::code_made` gave. All that is told of such code from now on is of that moment.
    fn code_made(&mut self, _pid: Pid, _moment: u32) {}
    /// What the code object at an address of the process is from now on that records of [`frames::FrameRecord`] name; nothing if it is no
    /// function.
    fn frame_code(&mut self, _pid: Pid, _code: u64, _function: Option<FrameFunction>) {}
    /// `to` begins as a copy of `from`.
    fn space_copied(&mut self, from: SpaceId, to: SpaceId);
    /// A new image has been started in `pid`: whatever was known of the process is void.
    fn image(&mut self, pid: Pid, code_cache: SpaceId);
    /// The process goes on with other translations (a copy of those it had).
    fn moved(&mut self, pid: Pid, code_cache: SpaceId);
    /// `child`, whose only thread is `child` too, is a copy of thread `tid` of `parent`.
    fn forked(&mut self, parent: Pid, tid: Tid, child: Pid);
    /// The stack of a thread that begins, or of the first one of a new image: where it may grow to. Only if blocks of memory are
    /// recorded.
    fn stack(&mut self, _pid: Pid, _tid: Tid, _range: Range<u64>) {}
    /// A thread has recorded these words.
    fn records(&mut self, pid: Pid, tid: Tid, words: &[u32]);
    /// The same where nothing is counted: they are about objects, and of nothing else.
    fn objects(&mut self, pid: Pid, tid: Tid, words: &[u32]) {
        self.records(pid, tid, words);
    }
    /// Something is asked about the process, by its thread `tid` or from outside (`None`); what its threads have recorded has been
    /// handed over. Whatever the session needs must be there for `Session::asked`, which is called next (but not
    /// for [`Query::ToggleCollect`]).
    fn asked(&mut self, _pid: Pid, _tid: Option<Tid>, _ask: &Query) {}
    /// The block that a thread told of last, `block`, was left early, or was not told: of the first `counted` of its instructions
    /// that have been told, just the first `executed` were executed (there may be more of them, too).
    fn corrected(&mut self, _pid: Pid, _tid: Tid, _block: u32, _counted: usize, _executed: usize) {}
    /// A system call begins or ends. Only if they are asked for.
    fn system_call(&mut self, _pid: Pid, _tid: Tid, _call: &SystemCall) {}
    /// A signal handler begins.
    fn signal_begins(&mut self, _pid: Pid, _tid: Tid, _handler: &Handler) {}
    /// Whether functions that the thread has entered or left have asked for something that takes what all threads have counted. Only
    /// with [`CallTrace::hooks`] and [`CallTrace::followed`].
    fn requests_wait(&mut self, _pid: Pid, _tid: Tid) -> bool {
        false
    }
    /// All threads of the process stand still, and what they have counted has been handed over: does what was asked for.
    fn serve_requests(&mut self, _pid: Pid, _tid: Tid) {}
    /// The thread makes the system call that ends a signal handler.
    fn signal_ends(&mut self, _pid: Pid, _tid: Tid) {}
    /// A thread begins to record (again), or ceases to. A new one is announced like this; the first of a process records, if it
    /// is not.
    fn recording(&mut self, _pid: Pid, _tid: Tid, _on: bool) {}
    /// What is active in a thread that has just begun to record in the middle of things, innermost first.
    fn stands(&mut self, _pid: Pid, _tid: Tid, _frames: &[NativeFrame]) {}
    /// What emitted code has done about calls of a thread since it was told how to go on (only with [`CallTrace::followed`], as
    /// all that follows).
    fn caught_up(&mut self, _pid: Pid, _tid: Tid, _book: &Book, _calls: &Calls) {}
    /// What emitted code shall go on with; `made` is the number of the call edge of the call that was decided on last, if it is
    /// one. `all`: whatever it knew is void. `None`: the process is not known.
    fn goes_on(&mut self, _pid: Pid, _tid: Tid, _made: Option<u32>, _all: bool) -> Option<Calls> {
        None
    }
    /// The thread runs code at `pc`, not because of a transfer: in which call context? `None`: the process is not known.
    fn runs(&mut self, _pid: Pid, _tid: Tid, _book: &Book, _pc: u64) -> Option<CallContext> {
        None
    }
    /// The thread is about to run code at `pc`, as [`Sink::runs`] will say, whose first instruction, a system call, has been
    /// executed before and is not to be counted again.
    fn has_counted(&mut self, _pid: Pid, _tid: Tid, _pc: u64) {}

    /// That is void: what has been counted has not been executed yet, and no part ends before the thread is told to be about to run it again.
    fn counts_yet(&mut self, _pid: Pid, _tid: Tid) {}

    /// The same thread is about to be taken off the block that begins with that instruction, which it has not executed: it is still to be.
    fn is_unmade(&mut self, _pid: Pid, _tid: Tid) {}
    /// The site `told` transfers control to `target`; `sp` is the stack pointer there.
    fn transfer(&mut self, _pid: Pid, _tid: Tid, _book: &Book, _told: u32, _target: u64, _sp: u64) -> Option<Outcome> {
        None
    }
    /// A thread whose calls are followed has recorded these words: what it missed, and the frames that came before it, as it had
    /// them.
    fn recorded(&mut self, _pid: Pid, _tid: Tid, _names: &Names, _words: &[u32]) {}
    /// What a thread has executed and called since this was told last.
    fn counted(&mut self, _pid: Pid, _tid: Tid, _book: &Book, _counts: &Counts) {}
    /// A call of this sink has panicked with this message. From here on it is told only what emitted code has counted up to now,
    /// of births, and how threads and processes end: what it has gathered is to be marked as incomplete.
    fn broke(&mut self, _what: &str) {}
    /// A thread begins to live, none of whose records have been handed over yet. Not told of the first one of an image, nor of that
    /// of a process that is forked. Only with [`TraceSettings::lives`].
    fn thread_born(&mut self, _pid: Pid, _tid: Tid) {}
    /// A thread has ended, all its records have been handed over.
    fn thread_ended(&mut self, pid: Pid, tid: Tid);
    /// The process has ended. What was gathered must be there for `Session::process_ends`, which is called next.
    fn process_ended(&mut self, pid: Pid);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    /// Readers tell records apart by these alone, whichever of them a run can have.
    #[test]
    fn no_two_kinds_of_records_have_the_same_number() {
        let mut known = HashMap::from([(0, "CONTEXT_SITE")]);
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).expect("the sources");
        let files = files.map(|file| file.expect("a file").path()).filter(|path| path.is_file());
        let sources: Vec<String> = files.map(|path| std::fs::read_to_string(path).expect("a source")).collect();
        for line in sources.iter().flat_map(|source| source.lines()) {
            let Some((name, number)) =
                line.strip_prefix("pub const ").and_then(|l| l.split_once(": u32 = u32::MAX - "))
            else {
                continue;
            };
            let number: u32 = number.trim_end_matches(';').parse().expect("a number");
            assert_eq!(known.insert(number, name), None, "{name} has the number of another");
        }
        assert!(known.len() > 16, "{known:?}");
    }
}
