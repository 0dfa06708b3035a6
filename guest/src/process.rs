//! Guest processes and threads as the dispatcher sees them.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use grind_code_cache::CodeCache;
use grind_fragments::fragment_table::FragmentId;
use grind_fragments::orders::Pace;
use grind_ptrace::Memory;
use grind_trace::follow::Frame;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::hash::Map;
use grind_types::{Pid, Tid};

use crate::contexts::{Books, ThreadContexts};
use crate::slots::{SlotId, SlotPool};
use crate::stacks::Stacks;

/// What a thread is doing, as far as its next stop is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has been announced by its creator, or has stopped for the first time, but not both.
    New,
    /// It runs translated code.
    Cache,
    /// Its registers are the guest's, rip included: a jump to where no code is, about to fault by itself.
    Guest,
    /// It runs its program's own code, its registers are the program's, gs base included, and it stops at every system call.
    Own,
    /// A signal was handed over; the next stop is at the first instruction of its handler.
    Handler,
    /// It executes rt_sigreturn; the next stop is where the frame says.
    SigReturn {
        /// The trap flag is set there.
        traps: bool,
        /// The signals that it blocked.
        mask: u64,
    },
    /// It executes one instruction in its original place, which has been counted.
    InPlace {
        /// Where it is.
        pc: GuestAddr,
        /// Its block.
        block: FragmentId,
        /// Its number in there, from 1 on.
        executed: u16,
        /// The signals that are blocked otherwise.
        mask: u64,
    },
    /// It executes a system call after which grind has work to do.
    Call {
        /// The number of the call.
        nr: i64,
        /// Its arguments.
        args: [u64; 6],
        /// Where the program goes on.
        next: GuestAddr,
    },
    /// It makes a system call by `int 0x80`, from a place in the code cache behind which it stops.
    OtherCall,
    /// It is about to execute, or in, execve.
    Exec {
        /// The program that it executes is followed.
        follow: bool,
    },
}

/// A thread.
#[derive(Debug)]
pub struct Thread {
    /// Its process.
    pub pid: Pid,
    /// What it is doing.
    pub state: State,
    /// The slot that gs points to, or that has the header of the one that it points to.
    pub slot: SlotId,
    /// The slot for the other state of instrumentation, once it was needed.
    pub other: Option<SlotId>,
    /// Change over to the other slot at the next stop.
    pub switch: bool,
    /// Its end has been seen, its counts are in the sum.
    pub folded: bool,
    /// Instructions that its counters told of before they were cleared.
    pub collected: u64,
    /// The statistics contexts that it is in.
    pub contexts: ThreadContexts,
    /// What emitted code knew of its calls the last time, if it follows them.
    pub frames: RefCell<Vec<Frame>>,
    /// What its own trap flag has shown.
    pub traps: Traps,
    /// What it has been through with its last signal.
    pub progress: Progress,
    /// A call that it is about to make once more.
    pub interrupted: Option<Interrupted>,
    /// It has been stopped by job control, which a call that it was in may end for.
    pub job_controlled: bool,
}

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its parent's when it was created, or joined, unless that was grind itself.
    pub parent: Option<Pid>,
    /// Its translations; processes that share memory have the same.
    pub code_cache: Rc<RefCell<CodeCache>>,
    /// One for each address space: processes after vfork have the same.
    pub mm: Rc<()>,
    /// The slots of its threads.
    pub pool: Rc<RefCell<SlotPool>>,
    /// Its memory.
    pub memory: Memory,
    /// Its threads.
    pub threads: Vec<Tid>,
    /// It shares its parent's memory, and the thread that created it waits until it ends or executes a program.
    pub vforked: bool,
    /// Counts of threads that have ended, and of the parent at fork.
    pub books: Books,
    /// Names of contexts, from [`crate::contexts::NAMED`] on.
    pub names: Vec<Vec<u8>>,
    /// A pop too many has been reported.
    pub popped_too_many: bool,
    /// What it has set RLIMIT_AS to, if it has.
    pub address_limit: Option<[u64; 2]>,
    /// Instructions are being counted.
    pub counting: bool,
    /// Instructions whose counters were cleared when the sink was told of them.
    pub collected: u64,
    /// The program that it runs.
    pub exe: PathBuf,
    /// The arguments of that, as they were handed over.
    pub args: Vec<OsString>,
    /// It, or who has forked it, ran already when it was attached to: its C library has told the kernel of a place for restartable
    /// sequences, and relies on that for new threads.
    pub joined: bool,
    /// Its profile has been handed over.
    pub reported: bool,
    /// What its native stacks are read with.
    pub stacks: Stacks,
    /// How far ahead of it is translated, by module.
    pub paces: Map<u32, Pace>,
    /// The slot that says which thread has which line, once there are several threads and it is told which lines go from one to the other.
    pub owners: Cell<Option<SlotId>>,
}

/// What the trap flag that a thread has set itself has shown it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traps {
    /// Before which instruction, the last time.
    shown: Option<GuestAddr>,
    /// How far it has come since on the way in to that instruction's block, from its beginning. Further on that way, nothing
    /// has been executed.
    pub passed: Option<u64>,
    /// Where in the code cache the last trap was, shown or not.
    pub last: CacheAddr,
    /// Whether the guest had set the flag when a handler was about to begin.
    pub on_at_signal: bool,
}

impl Traps {
    /// There is a trap before the instruction at `pc`, `way_in` into what leads in to its block, if it is on that way. Whether
    /// it is to be shown.
    pub fn at(&mut self, pc: GuestAddr, way_in: Option<u64>) -> bool {
        if self.shown == Some(pc) && way_in.is_some_and(|offset| self.passed.is_none_or(|passed| passed < offset)) {
            self.passed = way_in;
            return false;
        }
        (self.shown, self.passed) = (Some(pc), way_in);
        true
    }
}

/// What a thread has been through with its last signal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// How long it had run when it went on, and where in translated code it did.
    pub went_on: Option<(Duration, CacheAddr)>,
    /// The signals that have come since it has last moved.
    pub came: u64,
    /// One of them has come again.
    pub again: bool,
}

/// A system call that has been interrupted by a stop of the engine's and is about to be made once more by new code, as the kernel
/// would have done.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted {
    /// Where in the guest's code that is.
    pub pc: GuestAddr,
    /// And where in translated code; 0 until the thread is there.
    pub at: CacheAddr,
    /// What the kernel had left in rax.
    pub result: u64,
    /// Which call it was.
    pub nr: u64,
    /// The fragment that counts it, and which of its instructions it is, from 1: where it began, and the one at `at` once the thread is
    /// there.
    pub counted_by: (FragmentId, u16),
    /// Where it counts.
    pub counts: CallCounts,
}

/// Where a thread stands whose call was interrupted for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// At the call's instruction, which it is about to execute.
    Before(u64),
    /// Behind it. The kernel, which it has not left, is about to have it made again.
    Behind(u64),
    /// At its instruction or behind it: the engine has it made again with a signal that has a handler, which interrupts it in the end.
    Interrupted(u64),
}

/// Where a call counts that is made once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallCounts {
    /// Where it is made once more: it has been taken off where it began.
    Anew,
    /// Where it began, since the thread's counters have changed: it is to be taken off where it is made once more.
    Before,
    /// The same, and the sink, which follows calls, knows: it takes it off, unless instrumentation ends before.
    Known,
}

impl Thread {
    /// A thread of process `pid` that has just been heard of.
    pub fn new(pid: Pid, state: State, slot: SlotId, contexts: ThreadContexts) -> Self {
        Self {
            pid,
            state,
            slot,
            other: None,
            switch: false,
            folded: false,
            collected: 0,
            contexts,
            frames: RefCell::default(),
            traps: Traps::default(),
            progress: Progress::default(),
            interrupted: None,
            job_controlled: false,
        }
    }

    /// A slot that counts nothing anybody reads, and one that does: which of a thread's two is it on?
    pub fn counted_slot(&self, counting: bool) -> Option<SlotId> {
        // While a switch is pending, the thread is still on the slot of the former state.
        if counting != self.switch { Some(self.slot) } else { self.other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_way_in_to_a_block_a_trap_is_shown_once() {
        let mut traps = Traps::default();
        assert!(traps.at(GuestAddr(0x40), Some(0)), "a branch has led there");
        traps.passed = None;
        assert!(!traps.at(GuestAddr(0x40), Some(0)), "from the entry");
        assert!(!traps.at(GuestAddr(0x40), Some(16)), "and on");
        assert!(traps.at(GuestAddr(0x40), Some(0)), "it branches to itself");
        assert!(traps.at(GuestAddr(0x44), None));
        assert!(traps.at(GuestAddr(0x40), Some(16)), "a branch past what counts");
        assert!(traps.at(GuestAddr(0x40), Some(16)), "and another one");
    }
}
