//! The memory layout that emitted code and grind share: per-thread slots, the system-call table, the table of indirect
//! branches. Emitted code has these offsets as immediates, so nothing here may be computed differently elsewhere.
//!
//! A *slot* is what `gs` points to (and r11, to the middle of the slot words that are used most: [`BASE`]): the lines of the
//! thread's data cache, so that emitted code gets to these without an offset, a header page with scratch space, then 64-bit
//! counters (block counters and counters of single instructions). Slots are windows of one shared file that grind reads too, so
//! counts outlive the guest. Exactly one thread at a time runs on a slot. A thread has a slot for each context of the
//! statistics it is in: all up to [`COUNTERS`] and all from [`TRACE_AREA`] on are the same memory, mapped several times; only the
//! counters are each slot's own.

pub mod registers;
pub mod shared_memory;

/// Bytes of a slot. Only touched pages take memory.
pub const SLOT_SIZE: u64 = 64 << 20;

/// Where lines are in the data cache, by the low bits of their numbers: the negated address of a line. At the beginning, since
/// offsets of a byte make each check shorter.
pub const DATA_TAGS: u64 = 0;
/// Beside that, when the line was used last: nothing else has to be known for a hit, and it is on one line of the processor's
/// own cache.
pub const DATA_TIMES: u64 = DATA_TAGS + 8;
/// From one entry to the next, there and below.
pub const DATA_ENTRY: u64 = 16;
/// Entries of each.
pub const DATA_ENTRIES: u64 = 16384;

/// The tag of an entry whose line has had to go: with it added, no address of the program is in a line; and its lower bits are
/// those of no line. (At first an entry has the tag of a line of another entry.) Code has it as an immediate of 32 bits.
pub const NOTHING: u64 = i32::MAX as u64 - 7;

/// Offset of the last entry from the first one, which is all bits of an entry's offset.
pub const LAST_ENTRY: u32 = ((DATA_ENTRIES - 1) * DATA_ENTRY) as u32;

/// Offset of a slot's header.
pub const HEADER: u64 = DATA_TAGS + DATA_ENTRY * DATA_ENTRIES;
/// Its bytes.
pub const HEADER_SIZE: u64 = 4096;
/// Offset of the counters, which follow.
pub const COUNTERS: u64 = HEADER + HEADER_SIZE;

/// Offset in a slot of what tracing needs: the frames of calls that are followed, the state of the thread's own caches and
/// predictors (all zeros at first), then the trace buffer, then a page that cannot be written.
pub const TRACE_AREA: u64 = SIMULATED - (9 << 20);

/// Where the state of caches and predictors begins in it.
const SIMULATED: u64 = SLOT_SIZE - (24 << 20);

/// Counters in a slot.
pub const MAX_COUNTERS: u32 = ((TRACE_AREA - COUNTERS) / 8) as u32;

/// For each entry of [`DATA_TAGS`], the offset of its line's way in [`DATA_WAYS`], in the lower half of a word, if uses of
/// lines are kept. What is used all the time comes first, so that one large page holds it.
pub const DATA_PLACES: u64 = SIMULATED;
/// In the upper half: how many lines of this entry are in the cache that it does not show, since it shows another one, or
/// none. If there are none, a line that it does not show is not in the cache.
pub const DATA_HIDDEN: u64 = DATA_PLACES + 4;
/// Counters of the branch predictor: a byte each, by seven bits of the branch's address, then by twice the history.
pub const PREDICTOR_COUNTERS: u64 = DATA_PLACES + DATA_ENTRY * DATA_ENTRIES;
/// The last targets of indirect branches, by nine bits of their addresses.
pub const TARGETS: u64 = PREDICTOR_COUNTERS + 128 * 256;
/// Constants of the predictor: for each counter and outcome the next counter, then whether it was wrong (0 or 4).
pub const OUTCOMES: u64 = TARGETS + 512 * 8;
/// The data cache, set by set: for each [`GROUP`] of ways a word, the index of one of them ([`GROUP_INDEX`]), and a time above that
/// ([`GROUP_TIME`]), before which none of them has been used last.
pub const DATA_GROUPS: u64 = OUTCOMES + 4096;
/// Ways of a group, next to one another.
pub const GROUP: u64 = 4;
/// What a way's index is from that of the one before it.
pub const GROUP_INDEX: u64 = 2;
/// The bits of such a word below the time. (There is room for a thread's accesses of some months above them.)
pub const GROUP_TIME: u32 = 11;
/// Lines that a first-level data cache may have if it has such words.
pub const MOST_GROUPED: u64 = (1 << GROUP_TIME) / GROUP_INDEX;
/// The data cache, set by set: for each way the negated address of its line, if no entry shows that.
pub const DATA_WAYS: u64 = DATA_GROUPS + (8 * MOST_GROUPED / GROUP).next_multiple_of(4096);
/// Bytes of a way of the data cache.
pub const DATA_WAY: u64 = 16;
/// Beside that, where its time is, from [`NOWHERE`] on: at its entry, which is in front of that, if the entry shows the line;
/// if it does not, at the way's words in [`DATA_OWN`]; and 0 if nothing has been in the way yet. In all three places the time
/// follows upon a tag, or upon a word where a tag may be written.
pub const DATA_WHERE: u64 = DATA_WAYS + 8;
/// [`SlotWord::Nowhere`] and [`SlotWord::Never`], which are behind all entries and before all ways.
pub const NOWHERE: u64 = SlotWord::Nowhere.at() as u64;
/// Lines that a first-level cache may have.
pub const MAX_CACHE: u64 = 1 << 18;
/// The code cache, set by set: for each way [`LINE`] times the number of its line.
pub const CODE_WAYS: u64 = DATA_WAYS + DATA_WAY * MAX_CACHE;
/// The same: for each way when its line was fetched from last. All ways of a set are side by side, so that it takes little to find
/// the one that was longest ago.
pub const CODE_TIMES: u64 = CODE_WAYS + 8 * MAX_CACHE;
/// Code lines: by number, where the time of each is in [`CODE_TIMES`] (the offset in the slot), 0 if it is not in the cache.
pub const LINES: u64 = CODE_TIMES + 8 * MAX_CACHE;
/// Bytes of what is known of a code line.
pub const LINE: u32 = 4;
/// Numbers that code lines can have, 0 (no line) included.
pub const MAX_LINES: u32 = 1 << 20;
/// Offset of the trace buffer.
pub const TRACE_BUFFER: u64 = LINES + (LINE * MAX_LINES) as u64;
/// Bytes of a segment of it. (A full one stops its thread, for as long as 2000 records take.)
pub const TRACE_SIZE: u64 = 1 << 20;
/// From one segment to the next: behind each is a page where writing faults, the sign that the segment is full.
pub const TRACE_STRIDE: u64 = TRACE_SIZE + 4096;
/// Segments of the trace buffer. While the guest fills one, the sink reads others.
pub const TRACE_SEGMENTS: u64 = 5;
/// When the lines of the data cache that no entry shows were used last: for each way, at the same distance as in [`DATA_WAYS`],
/// a tag that nobody reads, and the time.
pub const DATA_OWN: u64 = TRACE_BUFFER + TRACE_ALL;
/// How the lines of the data cache have been used, if that is kept: for each way, at the same distance as in [`DATA_WAYS`],
/// the bytes that were accessed (a bit each, from the line's first one), and how many accesses there were.
pub const DATA_USES: u64 = DATA_OWN + DATA_WAY * MAX_CACHE;
/// Lines that a first-level data cache may have if their uses are kept.
pub const MOST_USED: u64 = 1 << 14;
/// Where TLBs are simulated: what is known of that of data, set by set, for each way [`PAGE_WAY`] bytes: its page's address, and one
/// more (0: none); when the page was used last, but for lines that are shown; those lines, a bit each ([`page_bit`]). (How lines are used is
/// not kept then.)
pub const DATA_PAGES: u64 = DATA_USES;
/// Bytes of a way of a TLB.
pub const PAGE_WAY: u64 = 32;
/// Pages that a first-level TLB may have.
pub const MOST_PAGES: u64 = 1024;
/// The same of that of code.
pub const CODE_PAGES: u64 = DATA_PAGES + PAGE_WAY * MOST_PAGES;
/// For each way of the code cache, at twice the distance as in [`CODE_WAYS`], the address of its line, and the way of that line's page in
/// [`CODE_PAGES`].
pub const CODE_OWNERS: u64 = CODE_PAGES + PAGE_WAY * MOST_PAGES;
/// Lines that a first-level code cache may have beside a TLB.
pub const MOST_OWNED: u64 = 1 << 12;
/// Where it is told who uses which bytes of lines: for each entry of [`DATA_TAGS`], at the same distance, the bytes that the thread is not known to
/// have read, a bit each, of the line of which [`BYTES_TAGS`] has the tag; and behind that those that it is not known to have
/// written. An entry that shows a line has it here, too. (How lines are used is not kept then, nor are there TLBs.)
pub const BYTES: u64 = DATA_USES;
/// Bytes that have not been read, and not been written, in an entry.
pub const UNREAD: u64 = BYTES;
/// The same for writing.
pub const UNWRITTEN: u64 = BYTES + 8;
/// At the same distance the tag of the line.
pub const BYTES_TAGS: u64 = BYTES + DATA_ENTRY * DATA_ENTRIES;
/// Bytes of a line, if that is told.
pub const BYTES_LINE: u32 = 64;
/// Where it is told which lines go from thread to thread, a slot belongs to no thread and says which thread has which line. Its entries have 16 bytes: the
/// address of a line, which stays (0: none yet), and who has it: [`owner_word`] of who has written it last, or [`owner_bit`] of each that
/// has read it since. A line is in one of [`OWNER_PROBES`] entries, one behind the other, from [`owner_entry`] on.
pub const OWNED_LINES: u64 = 1 << 21;
/// Entries that a line may be in.
pub const OWNER_PROBES: u32 = 8;
/// Behind the entries, in that slot: how many slots may be a thread's.
pub const SLOTS_USED: u64 = 16 * OWNED_LINES;
/// What the bits of an address above those of 4 MiB are multiplied by, so that what is far apart begins at entries that have nothing to do
/// with each other: as much memory as has been used is touched.
pub const OWNER_SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// The entry from which on a line is looked for.
pub const fn owner_entry(line: u64) -> u64 {
    let far = (line >> 22).wrapping_mul(OWNER_SPREAD) >> (64 - OWNED_LINES.trailing_zeros());
    far.wrapping_add(line / BYTES_LINE as u64) & (OWNED_LINES - 1)
}
/// Slots whose numbers are so far apart have the same [`owner_bit`].
pub const OWNER_BITS: u32 = 63;
/// The bit of a slot.
pub const fn owner_bit(slot: u32) -> u64 {
    1 << (slot % OWNER_BITS)
}
/// What tells that a thread of a slot has written a line last: a bit that is no slot's; which bit that slot has, in six bits; the number of
/// the thread in [`OWNER_TID`] bits from bit 32 on; that of the slot.
pub const fn owner_word(slot: u32, thread: u32) -> u64 {
    1 << OWNER_BITS
        | ((slot % OWNER_BITS) as u64) << 56
        | ((thread & ((1 << OWNER_TID) - 1)) as u64) << 32
        | slot as u64
}
/// Bits of the number of a thread. (No thread has a larger one.)
pub const OWNER_TID: u32 = 24;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The bit of a line, by its number, among those of its page that are shown.
pub const fn page_bit(line_number: u64) -> u64 {
    line_number & 63
}
/// Bytes of the trace buffer.
pub const TRACE_ALL: u64 = TRACE_STRIDE * TRACE_SEGMENTS;

/// Where the segment begins that the position `pos` is in, or at the end of; and where the next one does.
pub const fn trace_segment(pos: u64) -> (u64, u64) {
    let number = pos.saturating_sub(TRACE_BUFFER) / TRACE_STRIDE;
    (TRACE_BUFFER + number * TRACE_STRIDE, TRACE_BUFFER + (number + 1) % TRACE_SEGMENTS * TRACE_STRIDE)
}

/// Offset of the frames of calls that are followed: at first one that only the sink can pop. Behind their end is a page that
/// cannot be written.
pub const FRAMES: u64 = TRACE_AREA;
/// Bytes of a frame: stack pointer, first total at entry, where its return is dealt with, the other totals.
pub const FRAME: u64 = 64;
/// Offset in a frame of the address of the code that deals with its return; the stack pointer comes first.
pub const FRAME_RETURN: u64 = 16;
/// Offset in a frame of its call edge's number.
pub const FRAME_CALL_EDGE: u64 = 56;
/// How many totals a thread may have.
pub const TOTALS: usize = 5;
/// The most frames of calls that emitted code knows.
pub const WINDOW: usize = 1024;
/// Offset in a frame of a total at entry, by its index in [`TOTAL_WORDS`].
pub const fn frame_entered(total: usize) -> u64 {
    if total == 0 { 8 } else { 16 + 8 * total as u64 }
}
/// The words of a thread's totals, as far as calls are concerned.
pub const TOTAL_WORDS: [SlotWord; TOTALS] =
    [SlotWord::Total, SlotWord::Reads, SlotWord::Writes, SlotWord::Conditionals, SlotWord::Indirects];
/// Bytes of all frames: twice the window.
pub const FRAMES_SIZE: u64 = 2 * FRAME * WINDOW as u64;
/// Offset of the numbers of calls of each function that are going on.
pub const ACTIVE: u64 = FRAMES + FRAMES_SIZE + 4096;
/// Functions that there is room for.
pub const MOST_FUNCTIONS: u32 = 1 << 20;

/// Offset of a thread's table of contexts: for the low bits of each, its number and what gs must be in it (0: not known).
pub const CONTEXT_TABLE: u64 = SLOT_SIZE - (16 << 10);
/// Entries of that table, of 16 bytes.
pub const CONTEXT_ENTRIES: u64 = 256;
/// Offset of the contexts to return to, bottom first, of 8 bytes each.
pub const CONTEXT_STACK: u64 = SLOT_SIZE - (8 << 10);
/// The most of them; more are kept elsewhere.
pub const CONTEXT_DEPTH: u64 = 512;
/// Offset in a slot of words where registers are saved around records.
pub const SAVES: u32 = HEADER as u32 + 256;
/// Offset in a slot of the end of a stack that has room for 64 words: what the miss paths of caches are told, where they return
/// to, and the registers that they save.
pub const MISS_PATH_STACK: u64 = HEADER + 2048;

/// Slots that are reserved at first; each is 64 MiB of address space. Fewer are tried when the guest has a limit.
pub const SLOT_COUNTS: [u32; 5] = [16_384, 1024, 128, 16, 4];

/// Where the slots are put, when that is free: far below what the kernel uses first, and where sanitizers (ThreadSanitizer above
/// all, which looks) expect a program's own mappings. Up to 0x7f80_0000_0000.
pub const SLOTS_HINT: u64 = 0x7e80_0000_0000;

/// Slot words in a slot's header, by their offsets in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum SlotWord {
    /// Guest rax while a counter is bumped; the target of an indirect branch ([`TARGET`]).
    Rax = 0,
    /// Guest rcx while an indirect branch is looked up.
    Rcx = 8,
    /// A register that stands in for an address (1st).
    T1 = 16,
    /// A register that stands in for an address (2nd).
    T2 = 24,
    /// The gs base that the guest believes to have.
    GuestGs = 32,
    /// A register that a traced block uses for its own ends (1st).
    Held1 = 40,
    /// A register that a traced block uses for its own ends (2nd).
    Held2 = 48,
    /// rax with the guest's status flags in its low 16 bits, as LAHF and SETO give them.
    Flags = 56,
    /// The program's r9, where emitted code has taken that, too.
    R9 = 64,
    /// The program's r11.
    R11 = 72,
    /// A register that stands in for one that is bound in an instruction ([`crate::registers::StolenRegisters`]).
    StandIn = 80,
    /// The site of the return that is under way.
    Returning = 88,
    /// The address of an access that is to take the miss path.
    MissPathAddress = 96,
    /// The program's r10, where emitted code has taken that, too.
    R10 = 104,
    /// A register that is needed while a record is written, or that stands in for a second one that is bound.
    T3 = 112,
    /// The program's r8, where emitted code has taken that, too.
    R8 = 120,
    /// Offset from gs of the next free byte of the trace buffer. From here on, words belong to the slot, not to the thread.
    TracePos = 128,
    /// Where single accesses to two lines take the miss path whose first one is known, and has its time.
    SecondMissPath = 136,
    /// Offset from gs of the innermost frame of the calls that are followed.
    TopFrame = 144,
    /// Instructions that the thread has executed, as far as calls are concerned. Where nothing is simulated they are in r9 while
    /// translated code runs.
    Total = 152,
    /// Its reads, the same way; but for what special instructions do, only their blocks'.
    Reads = 160,
    /// Its writes and modifications.
    Writes = 168,
    /// Its conditional branches.
    Conditionals = 176,
    /// Its indirect jumps and calls.
    Indirects = 184,
    /// Counts uses of cache lines; the value is the time of the last one. In r9 while translated code runs.
    Clock = 192,
    /// Twice the outcomes of the last seven conditional branches: a byte.
    History = 200,
    /// Where data accesses take the miss path through the cache; 0 as long as the slot is not ready.
    AccessMissPath = 208,
    /// Where fetches are.
    FetchMissPath = 216,
    /// What the stack pointer must be for a miss path to be called.
    MissPathStack = 224,
    /// The guest's stack pointer meanwhile.
    GuestStack = 232,
    /// A constant: the bits of a data address that choose its line's entry in the tables.
    EntryBits = 240,
    /// A constant: the bits of a data address that are its line's.
    LineBits = 248,
    /// The context that the thread is in (see `dispatch::contexts`).
    Context = 1024,
    /// What gs must be in that context; 0: the base of the slot that has this header.
    ContextBase = 1032,
    /// Contexts on the stack in the header.
    ContextDepth = 1040,
    /// Not 0: every change of context stops, because other threads follow it.
    ContextStops = 1048,
    /// One more than [`SlotWord::Clock`] at the last change of context; 0: there has been none.
    ContextTime = 1056,
    /// The stub whose work is asked for: its number, in the low half (see `emit::request`).
    Request = 1152,
    /// Not 0: the request has not been seen yet.
    Posted = 1160,
    /// Not 0: the engine looks at requests all the time.
    Listening = 1216,
    /// Where the guest goes on; 0: the engine does not know yet.
    Answer = 1224,
    /// rcx before a repeated string instruction.
    Repeat = 1280,
    /// rsi before it.
    RepeatSource = 1288,
    /// rdi before it.
    RepeatTarget = 1296,
    /// [`SlotWord::TopFrame`] when something was recorded last.
    ToldFrame = 1328,
    /// The total at the entry of the last frame that has been told.
    ToldTotal = 1336,
    /// Where frames are told; it goes on at [`SlotWord::StackReturn`].
    StackMissPath = 1344,
    /// Where that goes on to.
    StackReturn = 1352,
    /// The counter of a repeated string instruction before it.
    RepeatCounter = 1360,
    /// A tag that nobody reads ([`NOWHERE`]).
    Nowhere = 1376,
    /// The time of what has never been used: 0.
    Never = 1384,
    /// Where the return address of the call of an allocator lies that the thread is in, of calls within one another the outermost;
    /// 0: it is in none.
    AllocatorFrame = 1392,
    /// Where that call puts the address of the block; 0: it returns it.
    AllocatorResult = 1400,
    /// Where the interpreter keeps the address of the frame that the thread runs, as it was when one was entered last.
    FrameHolder = 1408,
    /// 1: a page of the access that takes the miss path has been missed already.
    PageAgain = 1416,
    /// 1: a line of the fetch that takes the miss path has been missed.
    LineMissed = 1424,
    /// What the thread is not known to have used of a line that it has not used for long: all bytes, or, as long as nobody wants to
    /// know, none.
    BytesUnknown = 1432,
    /// Where it is told which bytes accesses use.
    BytesPath = 1440,
    /// Where the process keeps which thread has which line ([`OWNED_LINES`]); 0: nobody wants to know.
    LineOwners = 1448,
    /// What an entry of that says if the thread has written its line last ([`owner_word`]).
    OwnerWord = 1456,
    /// The bit of those that have a line that nobody has written since ([`owner_bit`]).
    OwnerBit = 1464,
    /// Where the slots begin.
    SlotsAt = 1472,
}

/// Offset from `gs` of what r11 points to in translated code: so that many slot words are a byte's offset away from it.
pub const BASE: u64 = HEADER + 128;

/// What r11 is in translated code if this is the base of gs.
pub const fn base_of(gs: u64) -> u64 {
    gs.wrapping_add(BASE)
}

impl SlotWord {
    /// Offset from `gs`.
    pub const fn at(self) -> u32 {
        HEADER as u32 + self as u32
    }
}

/// The target of an indirect jump or call while it is looked up.
pub const TARGET: SlotWord = SlotWord::Rax;

/// Offset of a counter from `gs`.
pub const fn counter_offset(counter: u32) -> u32 {
    COUNTERS as u32 + counter * 8
}

/// One byte for each value of the low 16 bits of rax at a system call: 0 runs it, 1 stops first.
pub const SYSCALL_TABLE: u64 = 0;
/// Bytes of the system-call table.
pub const SYSCALL_TABLE_SIZE: u64 = 1 << 16;
/// Offset of the table for indirect jumps and calls in the tables' mapping: an IBL target's address for each value of some low
/// bits of a target (`emit::entry_of`).
pub const JUMP_TABLE: u64 = SYSCALL_TABLE_SIZE;
/// Offset of the same for returns.
pub const RETURN_TABLE: u64 = JUMP_TABLE + IBL_ENTRIES * 8;
/// Entries in each of those, and in that for calls.
pub const IBL_ENTRIES: u64 = 1 << 16;
/// Offset of tables of the targets of single branches, where calls are followed.
pub const TARGET_TABLES: u64 = RETURN_TABLE + IBL_ENTRIES * 8;
/// Bytes of such a table.
pub const TARGET_TABLE: u64 = 256 * 8;
/// The most of them.
pub const MOST_TARGET_TABLES: u32 = 2048;
/// Offset of a word: the bits of a return's target that choose its entry among the IBL targets behind calls.
pub const PAIR_BITS: u64 = TARGET_TABLES + TARGET_TABLE * MOST_TARGET_TABLES as u64;
/// Offset of what CPUID answers, in rows (`grind_isa::cpuid::Row`), behind that word.
pub const CPUID_TABLE: u64 = PAIR_BITS + 64;
/// Bytes that it may have.
pub const CPUID_TABLE_SIZE: u64 = CALL_TABLE - CPUID_TABLE;
/// Offset of the table for indirect calls that push what is taken back. It, and the next one, are there for programs only whose
/// calls and returns are pairs.
pub const CALL_TABLE: u64 = PAIR_BITS + 4096;
/// Offset of the table of IBL targets behind calls.
pub const PAIR_TABLE: u64 = CALL_TABLE + IBL_ENTRIES * 8;
/// Its entries.
pub const PAIR_ENTRIES: u64 = 1 << 20;
/// Offset of the table of code objects of interpreters that are known: the address of each, by some bits of it ([`frame_code_entry`]); 0:
/// none. It is where [`PAIR_TABLE`] is, since calls and returns are no pairs where calls are told.
pub const FRAME_CODES: u64 = PAIR_TABLE;
/// Its entries.
pub const FRAME_CODE_ENTRIES: u64 = 1 << 16;
/// Low bits of the address of a code object that say nothing.
pub const FRAME_CODE_SHIFT: u32 = 4;
/// Offset of a word: not 0 if calls of allocators stop, rather than be recorded by emitted code. It, and the next one, are there
/// for programs only whose blocks of memory are recorded.
pub const ALLOCATORS_STOP: u64 = PAIR_TABLE + PAIR_ENTRIES * 8;
/// Offset of the table of the addresses that calls of allocators are known to return to: by the low bits of each, or in
/// one of the next entries ([`ALLOCATOR_PROBES`]); 0: none.
pub const ALLOCATOR_RETURNS: u64 = ALLOCATORS_STOP + 4096;
/// Entries of that which low bits choose.
pub const ALLOCATOR_ENTRIES: u64 = 1 << 14;
/// In how many entries, from the one that the low bits choose on, an address may be.
pub const ALLOCATOR_PROBES: u64 = 4;
/// The offset of the entry in [`FRAME_CODES`] of the code object at an address.
pub const fn frame_code_entry(address: u64) -> u64 {
    FRAME_CODES + 8 * (address >> FRAME_CODE_SHIFT & (FRAME_CODE_ENTRIES - 1))
}
/// Bytes of all tables.
pub const TABLES_SIZE: u64 = ALLOCATOR_RETURNS + (ALLOCATOR_ENTRIES * 8) + 4096;

/// Bytes of a large page.
pub const LARGE_PAGE: u64 = 2 << 20;

/// Where large pages of a slot begin that a thread uses all the time while caches are simulated: of data lines and counters, of
/// what else is known of data, and of code lines.
pub const LARGE_PARTS: [u64; 3] = [0, SIMULATED, LINES / LARGE_PAGE * LARGE_PAGE];

/// Bytes of a code-cache chunk.
pub const CHUNK_SIZE: u64 = 64 << 20;

/// Bytes of slot words that belong to the thread.
pub const THREAD_WORDS: usize = SlotWord::TracePos as usize;

const _: () =
    assert!(CONTEXT_TABLE + 16 * CONTEXT_ENTRIES <= CONTEXT_STACK && CONTEXT_STACK + 8 * CONTEXT_DEPTH <= SLOT_SIZE);
const _: () = assert!(SlotWord::Never.at() as u64 == NOWHERE + 8);
const _: () = assert!(SlotWord::SlotsAt.at() as u64 + 8 <= MISS_PATH_STACK - 64 * 8 && ALLOCATOR_PROBES <= 4096 / 8);
const _: () = assert!(FRAME_CODE_ENTRIES <= PAIR_ENTRIES);
const _: () = assert!(DATA_USES + DATA_WAY * MOST_USED <= CONTEXT_TABLE && TRACE_BUFFER.is_multiple_of(4096));
const _: () = assert!(CODE_OWNERS + 16 * MOST_OWNED <= CONTEXT_TABLE);
const _: () =
    assert!(SLOTS_USED + 8 <= SLOT_SIZE && BYTES_TAGS + DATA_ENTRY * DATA_ENTRIES <= CONTEXT_TABLE && BYTES_LINE == 64);
const _: () = assert!(COUNTERS + 8 * MAX_COUNTERS as u64 <= SLOT_SIZE && SLOT_SIZE < 1 << 31);
const _: () = assert!(ACTIVE + 8 * MOST_FUNCTIONS as u64 <= SIMULATED && FRAMES_SIZE.is_multiple_of(4096));
// The engine reads and writes these all at once.
const _: () = {
    let mut n = 0;
    while n < TOTAL_WORDS.len() {
        assert!(TOTAL_WORDS[n].at() == SlotWord::TopFrame.at() + 8 * (n as u32 + 1));
        n += 1;
    }
};
const _: () = assert!(SIMULATED.is_multiple_of(LARGE_PAGE) && SLOTS_HINT.is_multiple_of(LARGE_PAGE));
const _: () =
    assert!(TABLES_SIZE.is_multiple_of(4096) && CHUNK_SIZE.is_multiple_of(4096) && PAIR_TABLE.is_multiple_of(4096));
