//! The trace: what emitted code tells about events that counters cannot hold, how it travels to the thread that analyses it,
//! and what a word of it means. Each guest thread writes 32-bit words into a buffer of its slot; grind takes full buffers
//! over and hands them to a [`Sink`] on a thread of its own, while the guest runs on.
//!
//! Invariants: a thread's records arrive in program order; a record is never cut in two; a site is announced before a record
//! names it; memory is bounded, because the guest waits when the sink is behind.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use crate::addr::GuestAddr;
use crate::arena;
use crate::cpuid::BASELINE_XCR0;
pub use crate::events::resolve::{Done, Touch};
use crate::events::resolve::{State, resolve};

/// Full buffers that may wait for the sink before the guest has to.
const QUEUE: usize = 8;

/// What emitted code shall simulate, and record the results of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSettings {
    /// Instruction fetches that miss this cache.
    pub fetches: Option<FirstLevel>,
    /// Data accesses that miss this cache.
    pub accesses: Option<FirstLevel>,
    /// Branches that are mispredicted.
    pub branches: bool,
}

impl TraceSettings {
    /// Whether anything is recorded at all.
    #[must_use]
    pub fn any(&self) -> bool {
        self.fetches.is_some() || self.accesses.is_some() || self.branches
    }
}

/// A first-level cache, which every thread has of its own. It replaces the least recently used line of a set, allocates on
/// writes, and an access to two lines uses one after the other. At first it holds line 0 in every way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstLevel {
    /// Bytes of a line: a power of two, at least 16.
    pub line: u32,
    /// Sets: a power of two.
    pub sets: u32,
    /// Lines in a set.
    pub ways: u32,
    /// Bytes of the largest access that is simulated whole, at most `line`: of a larger one only so many bytes count.
    pub widest: u32,
}

impl FirstLevel {
    /// The most lines that a cache can have.
    pub const MOST_LINES: u64 = arena::MAX_CACHE;
}

/// The kind of event that a site records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteKind {
    /// Fetching the instruction has missed the first level. No operands.
    Fetch,
    /// Reading so many bytes has missed the first level. Operand: the address.
    Read(u16),
    /// Writing so many bytes has missed. Operand: the address.
    Write(u16),
    /// Reading and writing the same bytes has missed. Operand: the address.
    Modify(u16),
    /// An access of a special instruction has missed the first level. Operands: the address, then its size in bytes (one
    /// word).
    Sized {
        /// It writes.
        write: bool,
    },
    /// A conditional branch was mispredicted. No operands.
    Conditional,
    /// The target of an indirect jump or call was mispredicted. No operands.
    Indirect,
    /// A repeated string instruction has ended, or was interrupted: tells how often it has accessed memory. Operands: rcx,
    /// rsi, rdi before it; rcx, rsi, rdi after it. Its misses have sites of their own: the next one for \[rsi\], the one after
    /// that for \[rdi\].
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
    /// registers, for [`Special::touches`]. Its misses have sites of their own: the next one for what is read or modified,
    /// the one after that for what is written.
    Special {
        /// Number in the list of its space's special sites.
        index: u32,
        /// Words of a record.
        words: u16,
    },
}

/// An instruction that records registers instead of accesses.
#[derive(Clone, Debug)]
pub struct Special {
    pub(crate) bytes: [u8; 15],
    pub(crate) addr: u64,
    pub(crate) masked: bool,
    /// Mask register, if there is one.
    pub(crate) mask: Option<u8>,
    /// Vector registers in the record, in order.
    pub(crate) vectors: [Option<u8>; 2],
}

impl Special {
    /// Offset in bytes of the general registers in a record; the bases of fs and gs, and a mask register follow.
    pub(crate) const GENERAL: usize = 4;
    pub(crate) const FS: usize = Self::GENERAL + 16 * 8;
    pub(crate) const GS: usize = Self::FS + 8;
    pub(crate) const MASK: usize = Self::GS + 8;
    pub(crate) const VECTORS: usize = Self::MASK + 8;

    /// Words of a record with `n` vector registers.
    pub(crate) fn words(n: usize) -> usize {
        (Self::VECTORS + 64 * n) / 4
    }

    /// What an execution whose record is `words` (its site included) accesses, in program order.
    #[must_use]
    pub fn touches(&self, words: &[u32]) -> Vec<Touch> {
        let word = |at: usize| u64::from(words[at / 4]) | u64::from(words[at / 4 + 1]) << 32;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            Self::Read(_) | Self::Write(_) | Self::Modify(_) => 3,
            Self::Sized { .. } => 4,
            Self::Repeated { .. } => 13,
            Self::Special { words, .. } => words as usize,
        }
    }
}

/// A place in the program that records events. Its number is the first word of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Where the trace goes. All calls come from one thread of its own, in the order in which things happened to a process.
pub trait Sink: Send {
    /// More sites of a space; they are numbered on from the last, and so are its special ones among themselves.
    fn sites(&mut self, space: SpaceId, sites: &[Site], specials: &[Special]);
    /// `to` begins as a copy of `from`.
    fn space_copied(&mut self, from: SpaceId, to: SpaceId);
    /// A new image has been started in `pid`: whatever was known of the process is void.
    fn image(&mut self, pid: i32, space: SpaceId);
    /// The process goes on with other translations (a copy of those it had).
    fn moved(&mut self, pid: i32, space: SpaceId);
    /// `child`, whose only thread is `child` too, is a copy of thread `tid` of `parent`.
    fn forked(&mut self, parent: i32, tid: i32, child: i32);
    /// A thread has recorded these words.
    fn records(&mut self, pid: i32, tid: i32, words: &[u32]);
    /// A thread has ended, all its records have been handed over.
    fn thread_ended(&mut self, pid: i32, tid: i32);
    /// The process has ended. What was gathered must be there for [`crate::Session::process_ends`], which is called next.
    fn process_ended(&mut self, pid: i32);
}

/// What travels to the sink's thread.
#[derive(Debug)]
enum Message {
    Sites(SpaceId, Vec<Site>, Vec<Special>),
    SpaceCopied(SpaceId, SpaceId),
    Image(i32, SpaceId),
    Moved(i32, SpaceId),
    Forked(i32, i32, i32),
    Records(i32, i32, Vec<u32>),
    ThreadEnded(i32, i32),
    ProcessEnded(i32, Sender<()>),
}

/// The engine's end of the way to the sink.
#[derive(Debug)]
pub(crate) struct Feed {
    to: Option<SyncSender<Message>>,
    empty: Receiver<Vec<u32>>,
    thread: Option<JoinHandle<()>>,
    spaces: u32,
}

impl Feed {
    /// Starts the sink's thread.
    pub(crate) fn new(sink: Box<dyn Sink>) -> std::io::Result<Self> {
        let (to, from) = sync_channel(QUEUE);
        let (back, empty) = channel();
        let thread = std::thread::Builder::new().name("simulate".into()).spawn(move || serve(sink, &from, &back))?;
        Ok(Self { to: Some(to), empty, thread: Some(thread), spaces: 0 })
    }

    fn send(&self, message: Message) {
        if let Some(to) = &self.to {
            // If the sink's thread has panicked, the run's results are void; dropping the feed passes the panic on.
            let _ = to.send(message);
        }
    }

    pub(crate) fn new_space(&mut self) -> SpaceId {
        self.spaces += 1;
        SpaceId(self.spaces - 1)
    }

    /// An empty buffer, used before if there is one.
    pub(crate) fn buffer(&self) -> Vec<u32> {
        self.empty.try_recv().unwrap_or_default()
    }

    pub(crate) fn sites(&self, space: SpaceId, sites: &[Site], specials: &[Special]) {
        if !sites.is_empty() {
            self.send(Message::Sites(space, sites.to_vec(), specials.to_vec()));
        }
    }

    pub(crate) fn space_copied(&self, from: SpaceId, to: SpaceId) {
        self.send(Message::SpaceCopied(from, to));
    }

    pub(crate) fn image(&self, pid: i32, space: SpaceId) {
        self.send(Message::Image(pid, space));
    }

    pub(crate) fn moved(&self, pid: i32, space: SpaceId) {
        self.send(Message::Moved(pid, space));
    }

    pub(crate) fn forked(&self, parent: i32, tid: i32, child: i32) {
        self.send(Message::Forked(parent, tid, child));
    }

    pub(crate) fn records(&self, pid: i32, tid: i32, words: Vec<u32>) {
        self.send(Message::Records(pid, tid, words));
    }

    pub(crate) fn thread_ended(&self, pid: i32, tid: i32) {
        self.send(Message::ThreadEnded(pid, tid));
    }

    /// Returns when the sink has dealt with everything of the process.
    pub(crate) fn process_ended(&self, pid: i32) {
        let (done, wait) = channel();
        self.send(Message::ProcessEnded(pid, done));
        let _ = wait.recv();
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.to = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn serve(mut sink: Box<dyn Sink>, from: &Receiver<Message>, back: &Sender<Vec<u32>>) {
    for message in from {
        match message {
            Message::Sites(space, sites, specials) => sink.sites(space, &sites, &specials),
            Message::SpaceCopied(from, to) => sink.space_copied(from, to),
            Message::Image(pid, space) => sink.image(pid, space),
            Message::Moved(pid, space) => sink.moved(pid, space),
            Message::Forked(parent, tid, child) => sink.forked(parent, tid, child),
            Message::Records(pid, tid, mut words) => {
                sink.records(pid, tid, &words);
                words.clear();
                let _ = back.send(words);
            }
            Message::ThreadEnded(pid, tid) => sink.thread_ended(pid, tid),
            Message::ProcessEnded(pid, done) => {
                sink.process_ended(pid);
                let _ = done.send(());
            }
        }
    }
}
