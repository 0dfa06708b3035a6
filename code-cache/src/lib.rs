//! The translations of one address space: code-cache chunks, the tables that emitted code reads, the book of blocks, and
//! the modules that code comes from; how a block is found, and how it dies. `translate` makes it, `map` knows what is executable,
//! `link` puts code in its place and joins it. Processes that forked share a space until one of them changes its executable
//! mappings. Code once written stays where it is, since other threads may be running it.

pub mod dead;
mod fixed;
pub mod flush;
mod follow;
mod ibl_targets;
mod link;
mod map;
mod translate;
mod waiting;

use grind_codegen::PairCode as _;
use grind_codegen::request::{self, Requests};
use grind_codegen::{self as emit, Work, miss_path, stack};
use grind_layout::shared_memory::SharedMemory;
use grind_layout::{self as layout, SlotWord};
use grind_ptrace::{Gadget, Home};

use grind_asm::Asm;
use grind_fragments::batch::Batch;
use grind_fragments::code_reader::CodeWindows;
use grind_fragments::fragment_table::{FragmentTable, StubKind, Way};
use grind_isa::cpuid;
use grind_trace::follow::CallContextId;
use grind_trace::frames::FrameHooks;
use grind_trace::objects::Watched;
use grind_trace::{SpaceId, TraceSettings};
use grind_types::Module;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::hash::Map;
use grind_types::own_memory::AHEAD;

use dead::DeadStops;
use fixed::Fixed;
use ibl_targets::IblTargets;
use waiting::Waiting;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// Room that a chunk must have left before a batch is begun: the most that 64 blocks can take.
const BATCH_ROOM: u64 = 4 << 20;

/// Offset in the first chunk of the name that our memory has in the guest's maps.
const NAME_OFFSET: u64 = 32;

const PAGE: u64 = 4096;

/// Bytes of code in a large page's place from which on it pays.
const LARGE_FROM: u64 = 256 << 10;

/// A stretch of code cache.
#[derive(Debug)]
pub struct Chunk {
    /// Where the program has it.
    pub guest: CacheAddr,
    /// The same memory, as the engine has it.
    pub host: SharedMemory,
    /// Bytes that code is in, from its beginning on.
    pub used: u64,
    /// Bytes for which large pages have been asked.
    pub large: u64,
    /// Bytes that have been touched, if that is more than what is used.
    pub touched: u64,
    /// Where its code asks for what has not been translated; if not, it stops.
    pub requests: Option<Requests>,
}

impl Chunk {
    /// An empty one.
    pub fn new(guest: CacheAddr, host: SharedMemory) -> Self {
        Self { guest, host, used: 0, large: 0, touched: 0, requests: None }
    }

    /// Touches a page or two of what will be used next, so that writing code there needs no page.
    fn touch_ahead(&mut self) {
        self.touched = self.touched.max(self.used.next_multiple_of(PAGE));
        if self.touched < (self.used + AHEAD as u64).min(layout::CHUNK_SIZE) {
            self.host.write(self.touched as usize, &[0]);
            self.touched += PAGE;
        }
    }

    /// Asks for large pages where there is so much code that it pays: a program whose caches are simulated has several times
    /// as much code as without.
    pub fn enlarge(&mut self) {
        while self.large + LARGE_FROM <= self.used {
            self.host.collapse(self.large as usize);
            self.large += layout::LARGE_PAGE;
        }
    }

    /// Where code is put next.
    fn next(&self) -> CacheAddr {
        self.guest.plus(self.used)
    }

    fn contains(&self, a: CacheAddr) -> bool {
        a.since(self.guest) < layout::CHUNK_SIZE
    }

    /// Whether code in this chunk reaches `pc`, and what is around it, with 32-bit displacements.
    fn reaches(&self, pc: GuestAddr) -> bool {
        let margin = 1 << 28;
        let low = self.guest.plus(layout::CHUNK_SIZE).0.wrapping_sub(pc.0) as i64;
        let high = pc.0.wrapping_sub(self.guest.0) as i64;
        low < (1 << 31) - margin && high < (1 << 31) - margin
    }
}

/// The last IBL target of a chain.
#[derive(Clone, Copy, Debug)]
struct Tail {
    /// The field that leads on.
    next: CacheAddr,
}

/// An executable mapping.
#[derive(Clone, Copy, Debug)]
struct ExecRange {
    start: GuestAddr,
    end: GuestAddr,
    module: u32,
    /// Its contents may change without a system call: writable, or a shared mapping of a file that may be mapped elsewhere.
    self_modifying: bool,
    /// Of a shared mapping: the file, and the offset of `start` in it.
    shared: Option<(u64, u64)>,
}

impl ExecRange {
    fn contains(&self, pc: GuestAddr) -> bool {
        (self.start..self.end).contains(&pc)
    }
}

/// A page that the guest may not write to at present, because code that it shows has been translated.
#[derive(Clone, Copy, Debug)]
pub struct Protected {
    /// Where that code is translated from: this page, or another mapping of the same file.
    pub code: GuestAddr,
    /// The protection to be given back.
    pub prot: i32,
}

/// What its translations record, and how the sink knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpaceTrace {
    /// What the present translations record.
    pub settings: TraceSettings,
    /// What translations record where something is to be recorded at all.
    pub recorded: TraceSettings,
    /// What the sink knows its translations by.
    pub id: SpaceId,
    /// Sites that have been announced.
    pub announced: usize,
    /// Special ones among them.
    pub announced_specials: usize,
    /// Blocks that have been announced.
    pub announced_blocks: usize,
    /// The sink does not know the present modules.
    pub map_changed: bool,
    /// Where the miss paths of [`miss_path::all`] are, in that order; 0 for none.
    pub miss_paths: [CacheAddr; 5],
    /// Offset of their end in the first chunk.
    pub(crate) miss_paths_end: u64,
    /// Since when calls are told that will be followed once that pays.
    pub told_since: Option<Instant>,
    /// How many words have been since then.
    pub told_words: u64,
}

impl SpaceTrace {
    /// Whether translations are plain for the time being: they record nothing, though there is something to be recorded at
    /// other times.
    pub fn plain(&self) -> bool {
        self.recorded.any() && !self.settings.any()
    }
}

/// Why a system call stops before it runs: each reason is a bit of the call's byte in the table that emitted code looks into.
#[derive(Clone, Copy, Debug)]
pub enum CallStop {
    /// The dispatcher serves it.
    Served = 1,
    /// It may write where the driver has something that it would spoil.
    Watched = 2,
    /// Every call is recorded.
    Recorded = 4,
}

/// See the module's description.
#[derive(Debug)]
pub struct CodeCache {
    /// What has been translated.
    pub trans: FragmentTable,
    /// What code has been executed from.
    pub modules: Vec<Module>,
    /// Where functions and sections of each module begin and end, if calls are recorded: sorted addresses.
    boundaries: Vec<Arc<[u64]>>,
    watched: Watched,
    /// How often it has been read what is mapped.
    pub maps_learnt: u64,
    /// Hooks of interpreters, if frames are recorded.
    hooks: FrameHooks,
    ranges: Vec<ExecRange>,
    /// The memory for code; the first chunk has the engine's own code at its beginning.
    pub chunks: Vec<Chunk>,
    /// Where they are, but for the gadget.
    pub home: Home,
    /// Where the program has the tables.
    pub tables_at: u64,
    /// The same memory, as the engine has it.
    pub tables: SharedMemory,
    /// Calls and returns are pairs (`emit::pairs`); or they will be when all is translated anew.
    pub pairs: bool,
    pairs_due: bool,
    chains: Map<(Way, u32), Tail>,
    ibl_targets: IblTargets,
    /// Branch fields that lead to the translation of this guest address, which is self-modifying code.
    incoming: Map<(GuestAddr, CallContextId), Vec<CacheAddr>>,
    /// Branches to code that is not there yet, as far as that is looked at.
    waiting: Waiting,
    /// Where system calls are made from on the program's behalf.
    pub gadget: Gadget,
    /// There was no room for a chunk near some code.
    pub far: bool,
    /// The guest sees the baseline processor.
    pub masked: bool,
    /// What is recorded.
    pub trace: SpaceTrace,
    /// Changes of context of the statistics are made by translations.
    pub contexts: bool,
    /// Address spaces that use it.
    pub users: u32,
    /// Bytes of code from which on all is to be thrown away.
    pub code_limit: u64,
    /// Bytes of executable files from which on calls and returns are pairs.
    pub pairs_from: u64,
    /// Steps of counters from which on it pays to translate all anew.
    pub hotness_due: u64,
    /// So many more calls of `rt_sigprocmask` are looked at ([`crate::dispatch`]); 0: none stops any more.
    pub masks_left: u32,
    /// Pages that the guest may not write to at present.
    protected: BTreeMap<GuestAddr, Protected>,
    /// Pages that are, or have been, protected.
    once_writable: BTreeSet<GuestAddr>,
    dead_stops: DeadStops,
    /// Words that cannot change without a stop.
    fixed: RefCell<Fixed>,
    /// Pages that blocks of the last translation lie on.
    fresh: Vec<GuestAddr>,
    batch: Batch,
    code: CodeWindows,
    work: Work,
}

/// System calls that stop before they run: those that change threads, processes, mappings or signal handling in a way that
/// the engine must follow. Everything else goes straight to the kernel.
const STOPPING_CALLS: [i64; 29] = {
    use nix::libc as l;
    [
        l::SYS_mmap,
        l::SYS_munmap,
        l::SYS_mprotect,
        l::SYS_mremap,
        l::SYS_pkey_mprotect,
        l::SYS_remap_file_pages,
        l::SYS_shmat,
        l::SYS_shmdt,
        l::SYS_rt_sigreturn,
        l::SYS_rt_sigaction,
        l::SYS_rt_sigprocmask,
        l::SYS_tkill,
        l::SYS_tgkill,
        l::SYS_rt_tgsigqueueinfo,
        l::SYS_execve,
        l::SYS_execveat,
        l::SYS_clone,
        l::SYS_arch_prctl,
        l::SYS_rseq,
        l::SYS_sched_setaffinity,
        l::SYS_sched_getaffinity,
        l::SYS_ptrace,
        l::SYS_seccomp,
        l::SYS_prctl,
        l::SYS_modify_ldt,
        l::SYS_getrlimit,
        l::SYS_setrlimit,
        l::SYS_prlimit64,
        l::SYS_mlockall,
    ]
};

/// So many calls of `rt_sigprocmask` are looked at in programs that only block SIGTRAP together with all else.
pub const MASKS_LOOKED_AT: u32 = 1000;

impl CodeCache {
    /// Whether translations are plain where nothing is recorded: only where calls are followed. (Cachegrind's caches and predictors
    /// go on where they were.)
    pub fn may_be_plain(&self) -> bool {
        let follows = self.trace.recorded.followed() || self.trace.told_since.is_some();
        // What allocators do is recorded everywhere.
        follows && !self.trans.follow.given_up && !self.trace.recorded.objects
    }

    /// A code cache around freshly mapped tables, without chunks.
    pub fn new(tables_at: u64, tables: SharedMemory, masked: bool) -> Self {
        for nr in STOPPING_CALLS {
            tables.store_u8((layout::SYSCALL_TABLE as usize) + nr as usize, CallStop::Served as u8);
        }
        // The tables of IBL targets, which are behind that and are filled at once, are as much work as hundreds of small pages.
        tables.collapse(0);
        tables.store_u64(layout::PAIR_BITS as usize, emit::PAIR_BITS.into());
        for (word, at) in cpuid::Table::baseline().words().zip((layout::CPUID_TABLE as usize..).step_by(8)) {
            tables.store_u64(at, word);
        }
        Self {
            trans: FragmentTable::default(),
            modules: Vec::new(),
            boundaries: Vec::new(),
            watched: Watched::default(),
            maps_learnt: 0,
            hooks: FrameHooks::default(),
            ranges: Vec::new(),
            chunks: Vec::new(),
            home: Home::default(),
            tables_at,
            tables,
            pairs: false,
            pairs_due: false,
            chains: Map::default(),
            ibl_targets: IblTargets::default(),
            incoming: Map::default(),
            waiting: Waiting::default(),
            gadget: Gadget::new(0),
            far: false,
            masked,
            trace: SpaceTrace::default(),
            contexts: false,
            users: 1,
            code_limit: u64::MAX,
            pairs_from: u64::MAX,
            hotness_due: 0,
            masks_left: MASKS_LOOKED_AT,
            dead_stops: DeadStops::default(),
            protected: BTreeMap::new(),
            once_writable: BTreeSet::new(),
            fixed: RefCell::default(),
            fresh: Vec::new(),
            batch: Batch::default(),
            code: CodeWindows::default(),
            work: Work::default(),
        }
    }

    /// Adds a chunk that has been mapped into the guest. The first one gets what is there only once: the gadget for remote
    /// system calls and the stub behind empty entries of the indirect-branch table.
    pub fn add_chunk(&mut self, guest: CacheAddr, host: SharedMemory) {
        let chunk = Chunk::new(guest, host);
        self.chunks.push(chunk);
        self.trans.add_chunk(guest);
        let gadget = if self.chunks.len() == 1 { Gadget::LEN } else { 0 };
        self.home.add(guest.plus(gadget)..guest.plus(layout::CHUNK_SIZE));
        if self.chunks.len() == 1 {
            let chunk = &mut self.chunks[0];
            chunk.host.write(0, &Gadget::BYTES);
            chunk.host.write(Gadget::INT80_OFFSET as usize, &Gadget::INT80_BYTES);
            self.gadget = Gadget::new(guest.0);
            for (way, at) in flush::EMPTY_ENTRIES {
                let id = self.trans.add_stub(StubKind::IblMiss { way });
                let mut code = Asm { buf: Vec::new(), base: guest.plus(at).0 };
                if way == Way::Call {
                    code.called();
                }
                self.trans.stubs[id as usize].addr = CacheAddr(code.here());
                code.stop(id);
                chunk.host.write(at as usize, &code.buf);
            }
            let id = self.trans.add_stub(StubKind::Return { in_rcx: false });
            self.trans.stubs[id as usize].addr = guest.plus(follow::UNMATCHED_RETURN);
            let mut stop = vec![0xcc];
            stop.extend_from_slice(&id.to_le_bytes());
            chunk.host.write(follow::UNMATCHED_RETURN as usize, &stop);
            chunk.host.write(NAME_OFFSET as usize, b"grind\0");
            chunk.used = flush::FIRST_USED;
        }
        self.place_requests(self.chunks.len() - 1);
        if self.chunks.len() == 1 {
            self.empty_tables();
        }
    }

    /// Puts the code by which stubs ask into a chunk that has no translations yet.
    fn place_requests(&mut self, chunk: usize) {
        let c = &mut self.chunks[chunk];
        let (code, requests) =
            request::emit_requests(c.next(), &mut self.trans, self.trace.settings.stolen_registers());
        c.host.write(c.used as usize, &code.buf);
        c.used = (c.used + code.buf.len() as u64).next_multiple_of(64);
        c.requests = Some(requests);
    }

    /// The same translations in other memory, for a process that no longer shares them.
    pub fn copy_with(&self, tables: SharedMemory, chunks: Vec<Chunk>) -> Self {
        Self {
            trans: self.trans.clone(),
            modules: self.modules.clone(),
            boundaries: self.boundaries.clone(),
            watched: self.watched.clone(),
            maps_learnt: self.maps_learnt,
            hooks: self.hooks.clone(),
            ranges: self.ranges.clone(),
            chunks,
            home: self.home.copy(),
            tables_at: self.tables_at,
            tables,
            pairs: self.pairs,
            pairs_due: self.pairs_due,
            chains: self.chains.clone(),
            ibl_targets: self.ibl_targets.clone(),
            incoming: self.incoming.clone(),
            waiting: self.waiting.clone(),
            gadget: self.gadget,
            far: self.far,
            masked: self.masked,
            trace: self.trace,
            contexts: self.contexts,
            users: 1,
            code_limit: self.code_limit,
            pairs_from: self.pairs_from,
            hotness_due: self.hotness_due,
            masks_left: self.masks_left,
            dead_stops: self.dead_stops.clone(),
            protected: self.protected.clone(),
            once_writable: self.once_writable.clone(),
            fixed: self.fixed.clone(),
            fresh: Vec::new(),
            batch: self.batch.copy(),
            code: CodeWindows::default(),
            work: Work::default(),
        }
    }

    /// Other programs are likely to map the same code.
    pub fn expect_more_programs(&mut self) {
        self.batch.keeps = true;
    }

    /// Its translations shall record what these settings say. Before the first one.
    pub fn trace_with(&mut self, settings: TraceSettings, id: SpaceId) {
        self.home.take(settings.stolen_registers());
        self.trace = SpaceTrace { settings, recorded: settings, id, ..SpaceTrace::default() };
        self.ask_as_settings_say();
        if settings.system_calls {
            self.stop_before_all_calls(true);
        }
        if settings.objects && settings.followed() && !settings.simulates() {
            // Nothing tells which calls are going on but stops.
            self.stop_allocators();
        }
        let frames = stack::frames_told(&settings);
        let Some(chunk) = self.chunks.first_mut() else { return };
        for (at, emit) in self.trace.miss_paths.iter_mut().zip(miss_path::all(&settings, frames)) {
            let Some(emit) = emit else { continue };
            let mut code = Asm { buf: Vec::new(), base: chunk.next().0 };
            emit(&mut code);
            chunk.host.write(chunk.used as usize, &code.buf);
            chunk.used = (chunk.used + code.buf.len() as u64).next_multiple_of(64);
            *at = CacheAddr(code.base);
        }
        self.trace.miss_paths_end = chunk.used;
        if settings.calls.is_some_and(|calls| calls.followed && !calls.told_first.is_never()) {
            self.follow_calls(false);
            self.trace.told_since = Some(Instant::now());
        }
    }

    /// The parts of a slot that hold the state of its thread's caches and predictors: offsets and lengths.
    pub fn simulated_state(&self) -> Vec<(u64, u64)> {
        let mut parts = self.simulated_caches();
        if self.trace.recorded.branches {
            parts.push((u64::from(SlotWord::History.at()), 8));
            parts.push((layout::PREDICTOR_COUNTERS, layout::OUTCOMES - layout::PREDICTOR_COUNTERS));
        }
        parts
    }

    /// The same of the caches alone.
    pub fn simulated_caches(&self) -> Vec<(u64, u64)> {
        let settings = self.trace.recorded;
        let mut parts = vec![(u64::from(SlotWord::Clock.at()), 8)];
        if let Some(c) = settings.fetches {
            let lines = u64::from(layout::LINE) * u64::from(self.trans.lines() + 1);
            parts.push((layout::LINES, lines.next_multiple_of(8)));
            let ways = 8 * u64::from(c.sets) * u64::from(c.ways);
            parts.extend([(layout::CODE_WAYS, ways), (layout::CODE_TIMES, ways)]);
        }
        if let Some(c) = settings.accesses {
            parts.push((u64::from(SlotWord::ContextTime.at()), 8));
            let ways = layout::DATA_WAY * u64::from(c.sets) * u64::from(c.ways);
            parts.extend([(layout::DATA_WAYS, ways), (layout::DATA_OWN, ways)]);
            if c.groups() > 0 {
                parts.push((layout::DATA_GROUPS, c.groups() * 8));
            }
            parts.extend(
                [layout::DATA_TAGS, layout::DATA_PLACES].map(|at| (at, layout::DATA_ENTRY * layout::DATA_ENTRIES)),
            );
            if settings.keeps_uses() {
                parts.push((layout::DATA_USES, ways));
            }
            if settings.keeps_bytes() {
                parts.push((
                    layout::BYTES,
                    layout::BYTES_TAGS - layout::BYTES + layout::DATA_ENTRY * layout::DATA_ENTRIES,
                ));
            }
            if settings.tlbs.is_some() {
                parts.push((layout::DATA_PAGES, layout::CODE_OWNERS + 16 * layout::MOST_OWNED - layout::DATA_PAGES));
            }
        }
        parts
    }

    /// Where the guest finds a C string that names our files.
    pub fn name_at(&self) -> u64 {
        self.chunks.first().map_or(0, |c| c.guest.plus(NAME_OFFSET).0)
    }

    fn chunk_for(&self, pc: GuestAddr) -> Option<usize> {
        let room = |c: &Chunk| c.used + BATCH_ROOM <= layout::CHUNK_SIZE;
        let near = self.chunks.iter().position(|c| c.reaches(pc) && room(c));
        // Where nothing near was to be had, code goes anywhere, with longer sequences.
        if self.far { near.or_else(|| self.chunks.iter().position(room)) } else { near }
    }

    /// Whether code at `pc` can be translated without another chunk.
    pub fn has_chunk_for(&self, pc: GuestAddr) -> bool {
        self.chunk_for(pc).is_some()
    }

    /// Whether this system call stops before it runs from now on, for that reason. It runs without a stop once there is none.
    pub fn stop_before(&self, nr: i64, why: CallStop, on: bool) {
        let at = layout::SYSCALL_TABLE as usize + nr as usize;
        let others = self.tables.load_u8(at) & !(why as u8);
        self.tables.store_u8(at, if on { others | why as u8 } else { others });
    }

    /// Whether this system call stops before it runs for another reason than that all are recorded.
    pub fn serves(&self, nr: i64) -> bool {
        let known = (0..layout::SYSCALL_TABLE_SIZE as i64).contains(&nr);
        known && self.tables.load_u8(layout::SYSCALL_TABLE as usize + nr as usize) & !(CallStop::Recorded as u8) != 0
    }

    /// The same for every system call, in order to record them.
    fn stop_before_all_calls(&self, on: bool) {
        (0..layout::SYSCALL_TABLE_SIZE as i64).for_each(|nr| self.stop_before(nr, CallStop::Recorded, on));
    }

    /// Lets the system calls that create threads and processes stop before they run.
    pub fn stop_before_births(&self) {
        use nix::libc as l;
        for nr in [l::SYS_clone, l::SYS_clone3, l::SYS_fork, l::SYS_vfork] {
            self.stop_before(nr, CallStop::Served, true);
        }
    }

    /// Asks for a little of the memory that the next translations will need, while nobody waits: a page that is touched for the
    /// first time takes longer than a block.
    pub fn make_room_ahead(&mut self) {
        if let Some(chunk) = self.chunks.iter_mut().rev().find(|c| c.used > 0) {
            chunk.touch_ahead();
        }
        self.trans.make_room_ahead();
    }
}
