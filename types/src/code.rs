//! What the engine's parts and its driver speak of: mapped code, what an instruction does and how often it was executed, and what
//! may be asked about that. No logic, and nothing that depends on another module but addresses and mapped files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::addr::GuestAddr;
use crate::mapped_file::MappedFile;

/// A mapped file, or anonymous memory, that code was executed from.
#[derive(Clone, Debug)]
pub struct Module {
    /// The path as the kernel shows it; `None` for anonymous memory.
    pub path: Option<PathBuf>,
    /// The file that was mapped, whatever `path` leads to now; `None` where there is no path.
    pub file: Option<Arc<MappedFile>>,
    /// The image itself where no file has it (the vDSO), else `None`.
    pub image: Option<Arc<[u8]>>,
    /// First address of this mapping.
    pub start: GuestAddr,
    /// One past its last address.
    pub end: GuestAddr,
    /// File offset that `start` shows. `addr - start + offset` is the file offset of `addr`.
    pub offset: u64,
}

impl Module {
    /// Whether it is memory that a program fills with code by itself: no file, or one that is only there to be shared memory (as the
    /// kernel names that). A file in memory (`/memfd:`) may be a whole program or library, and is not.
    #[must_use]
    pub fn is_made(&self) -> bool {
        const SHARED: [&[u8]; 3] = [b"/dev/zero", b"/SYSV", b"["];
        let path = self.path.as_ref().map(|path| path.as_os_str().as_encoded_bytes());
        self.image.is_none() && path.is_none_or(|path| SHARED.iter().any(|shared| path.starts_with(shared)))
    }

    /// The file that was mapped, and what it is called.
    pub fn mapped(&self) -> Option<(&Path, &MappedFile)> {
        self.path.as_deref().zip(self.file.as_deref())
    }
}

/// How often one instruction was executed.
#[derive(Clone, Copy, Debug)]
pub struct InstructionCount {
    /// Index into [`ProcessReport::modules`].
    pub module: usize,
    /// Its address.
    pub addr: GuestAddr,
    /// Its length in bytes (19 for a client request).
    pub len: u8,
    /// Executions; one more for each iteration of a REP-prefixed one.
    pub count: u64,
    /// What each execution does; only known if something is traced.
    pub events: StaticEvents,
    /// Of code that a program made while it ran: what [`Session::code_made`] said when it was translated; else of no meaning.
    pub made: u32,
}

/// What one execution of an instruction does, whatever the data. Repeated and masked accesses are not in here: the trace has
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StaticEvents {
    /// Loads.
    pub reads: u8,
    /// Stores.
    pub writes: u8,
    /// Loads and stores of the same bytes.
    pub modifies: u8,
    /// It is a conditional branch.
    pub conditional: bool,
    /// It is an indirect jump or call.
    pub indirect: bool,
    /// It locks the bus.
    pub bus: bool,
    /// Its form, if those are asked for ([`trace::TraceSettings::forms`]): the number that the decoder, `iced_x86`, has for its
    /// code, and 0x8000 more if it accesses memory that an operand names; 0: not known.
    pub form: u16,
}

/// What is asked about the counts of a process that goes on afterwards: by the guest itself, through a client request, or
/// from outside, through [`Session::control_request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// How far is it? Nothing changes.
    Look,
    /// What was counted so far is to be kept, and counting begins anew; with the words of whoever asks.
    Dump(Option<Vec<u8>>),
    /// What was counted so far is to be forgotten.
    Zero,
    /// Costs of this thread are to be collected no longer, or again. Its calls are followed all the same.
    ToggleCollect,
    /// Costs of this thread, and of those that begin from now on, are to be collected, or not, whatever was so before.
    Collect(bool),
    /// How often what has been found by now? Nothing changes, and the process goes on meanwhile.
    Peek,
    /// What functions of the object of this path cost is to be their callers' from now on.
    SkipObject(Vec<u8>),
    /// What is kept next is to be described by this, among others.
    Describe(Vec<u8>),
}
