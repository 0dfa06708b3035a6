//! Requests from a program to the profiler that runs it: Valgrind's client requests, in Rust.
//!
//! Outside a profiler a request does nothing, costs a handful of instructions and answers with its default. Under grind,
//! and under Valgrind itself, it is recognised by a sequence of instructions that no compiler emits and counts as one
//! instruction. The numbers here are the one list of requests of the workspace: the engine reads it, and the C headers in
//! `include/` are compared with it by a test. This crate never allocates, needs no standard library, and compiles to
//! nothing on other processors.
//!
//! # Example
//!
//! Profile one part of a program, run as `grind --instr-at-start=no ./program`:
//!
//! ```
//! use grind_client_requests::cachegrind;
//!
//! let input = (0..1000u64).collect::<Vec<_>>(); // not counted
//! cachegrind::start_instrumentation();
//! let sum: u64 = input.iter().sum(); // counted
//! cachegrind::stop_instrumentation();
//! assert_eq!(sum, 499_500);
//! ```
#![no_std]

mod raw;

use core::ffi::CStr;

pub use raw::request;

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $c:literal;)*) => {
        /// Every request that has a number. Names and numbers are Valgrind's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u64)]
        pub enum Request {
            $($(#[$doc])* $name = $code,)*
        }

        impl Request {
            /// All requests, by ascending number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The request of this number.
            ///
            /// ```
            /// use grind_client_requests::Request;
            /// assert_eq!(Request::from_code(0x1001), Some(Request::RunningOnValgrind));
            /// assert_eq!(Request::from_code(0x1000), None);
            /// ```
            #[must_use]
            pub const fn from_code(code: u64) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name of its number in the C headers.
            #[must_use]
            pub const fn c_name(self) -> &'static str {
                match self {
                    $(Self::$name => $c,)*
                }
            }
        }
    };
}

requests! {
    /// How many profilers run the program, one inside the other: 0 natively.
    RunningOnValgrind = 0x1001, "VG_USERREQ__RUNNING_ON_VALGRIND";
    /// (start, length): the program has changed code there.
    DiscardTranslations = 0x1002, "VG_USERREQ__DISCARD_TRANSLATIONS";
    /// Whether the tool replaces `malloc`: profilers do not.
    ReplacesMalloc = 0x1003, "VG_USERREQ__REPLACES_MALLOC";
    /// (buffer, size): the tool's name; answers its length with the final NUL.
    GetToolname = 0x1004, "VG_USERREQ__GET_TOOLNAME";
    /// (function): calls it untranslated with the thread's number.
    ClientCall0 = 0x1101, "VG_USERREQ__CLIENT_CALL0";
    /// The same with one argument more.
    ClientCall1 = 0x1102, "VG_USERREQ__CLIENT_CALL1";
    /// The same with two arguments more.
    ClientCall2 = 0x1103, "VG_USERREQ__CLIENT_CALL2";
    /// The same with three arguments more.
    ClientCall3 = 0x1104, "VG_USERREQ__CLIENT_CALL3";
    /// Errors found so far: a profiler finds none.
    CountErrors = 0x1201, "VG_USERREQ__COUNT_ERRORS";
    /// (command): what a debugger would say with `monitor`.
    GdbMonitorCommand = 0x1202, "VG_USERREQ__GDB_MONITOR_COMMAND";
    /// (option): changes an option of the profiler.
    CloChange = 0x1203, "VG_USERREQ__CLO_CHANGE";
    /// (address, size, red zone, zeroed): a block has been allocated.
    MalloclikeBlock = 0x1301, "VG_USERREQ__MALLOCLIKE_BLOCK";
    /// (address, red zone): it has been freed.
    FreelikeBlock = 0x1302, "VG_USERREQ__FREELIKE_BLOCK";
    /// (pool, red zone, zeroed, flags)
    CreateMempool = 0x1303, "VG_USERREQ__CREATE_MEMPOOL";
    /// (pool)
    DestroyMempool = 0x1304, "VG_USERREQ__DESTROY_MEMPOOL";
    /// (pool, address, size)
    MempoolAlloc = 0x1305, "VG_USERREQ__MEMPOOL_ALLOC";
    /// (pool, address)
    MempoolFree = 0x1306, "VG_USERREQ__MEMPOOL_FREE";
    /// (pool, address, size)
    MempoolTrim = 0x1307, "VG_USERREQ__MEMPOOL_TRIM";
    /// (old pool, new pool)
    MoveMempool = 0x1308, "VG_USERREQ__MOVE_MEMPOOL";
    /// (pool, old address, new address, size)
    MempoolChange = 0x1309, "VG_USERREQ__MEMPOOL_CHANGE";
    /// (pool)
    MempoolExists = 0x130a, "VG_USERREQ__MEMPOOL_EXISTS";
    /// (address, old size, new size, red zone)
    ResizeinplaceBlock = 0x130b, "VG_USERREQ__RESIZEINPLACE_BLOCK";
    /// (format, arguments by value): superseded.
    Printf = 0x1401, "VG_USERREQ__PRINTF";
    /// The same with a stack trace: superseded.
    PrintfBacktrace = 0x1402, "VG_USERREQ__PRINTF_BACKTRACE";
    /// (format, address of a `va_list`): prints to the log; answers the number of bytes.
    PrintfValistByRef = 0x1403, "VG_USERREQ__PRINTF_VALIST_BY_REF";
    /// The same with a stack trace.
    PrintfBacktraceValistByRef = 0x1404, "VG_USERREQ__PRINTF_BACKTRACE_VALIST_BY_REF";
    /// (lowest, highest address): this is a stack; answers its number.
    StackRegister = 0x1501, "VG_USERREQ__STACK_REGISTER";
    /// (number)
    StackDeregister = 0x1502, "VG_USERREQ__STACK_DEREGISTER";
    /// (number, lowest, highest address)
    StackChange = 0x1503, "VG_USERREQ__STACK_CHANGE";
    /// (descriptor, address, size, delta): debug information of Windows.
    LoadPdbDebuginfo = 0x1601, "VG_USERREQ__LOAD_PDB_DEBUGINFO";
    /// (address, buffer of 64 bytes): the source line of an instruction.
    MapIpToSrcloc = 0x1701, "VG_USERREQ__MAP_IP_TO_SRCLOC";
    /// (1 or -1): reports errors no longer, or again.
    ChangeErrDisablement = 0x1801, "VG_USERREQ__CHANGE_ERR_DISABLEMENT";
    /// Prepares for injected code (a test of Valgrind's).
    VexInitForIri = 0x1901, "VG_USERREQ__VEX_INIT_FOR_IRI";
    /// (address): where a Valgrind that is run itself keeps its threads.
    InnerThreads = 0x1902, "VG_USERREQ__INNER_THREADS";
    /// Cachegrind: count from here on.
    CachegrindStartInstrumentation = 0x4347_0000, "VG_USERREQ__CG_START_INSTRUMENTATION";
    /// Cachegrind: do not count from here on.
    CachegrindStopInstrumentation = 0x4347_0001, "VG_USERREQ__CG_STOP_INSTRUMENTATION";
    /// Callgrind: write the costs so far as a part of the profile.
    CallgrindDumpStats = 0x4354_0000, "VG_USERREQ__DUMP_STATS";
    /// Callgrind: forget the costs so far.
    CallgrindZeroStats = 0x4354_0001, "VG_USERREQ__ZERO_STATS";
    /// Callgrind: collect costs no longer, or again.
    CallgrindToggleCollect = 0x4354_0002, "VG_USERREQ__TOGGLE_COLLECT";
    /// Callgrind: (reason) as `DumpStats`, with a reason that the part shows.
    CallgrindDumpStatsAt = 0x4354_0003, "VG_USERREQ__DUMP_STATS_AT";
    /// Callgrind: instrument from here on.
    CallgrindStartInstrumentation = 0x4354_0004, "VG_USERREQ__START_INSTRUMENTATION";
    /// Callgrind: do not instrument from here on.
    CallgrindStopInstrumentation = 0x4354_0005, "VG_USERREQ__STOP_INSTRUMENTATION";
    /// Callgrind: (path) what functions of that object cost is their callers' from here on. (CodSpeed's fork of Valgrind 3.26.)
    CallgrindAddObjSkip = 0x4354_0006, "VG_USERREQ__ADD_OBJ_SKIP";
    /// Callgrind: (text) the next part is described by it. (The same.)
    CallgrindAddDesc = 0x4354_0007, "VG_USERREQ__ADD_DESC";
    /// grind: (context) books what follows to this context of the statistics.
    GrindPushContext = 0x4752_0000, "VG_USERREQ__GR_PUSH_CONTEXT";
    /// grind: back to the context before the last push.
    GrindPopContext = 0x4752_0001, "VG_USERREQ__GR_POP_CONTEXT";
    /// grind: (name) answers the number of the context of this name.
    GrindNameContext = 0x4752_0002, "VG_USERREQ__GR_NAME_CONTEXT";
}

impl Request {
    /// Its number.
    #[must_use]
    pub const fn code(self) -> u64 {
        self as u64
    }
}

/// How many profilers run the program, one inside the other: 0 natively, 1 under grind or Valgrind.
///
/// ```
/// if grind_client_requests::running_on_valgrind() > 0 {
///     // leave out what takes long
/// }
/// ```
#[must_use]
pub fn running_on_valgrind() -> u64 {
    raw::harmless(0, Request::RunningOnValgrind, [0; 5])
}

/// Says that the code in these bytes has been changed, where the profiler cannot notice by itself.
///
/// ```
/// let code = [0xc3u8; 16]; // a just-in-time compiler's buffer
/// grind_client_requests::discard_translations(code.as_ptr(), code.len());
/// ```
pub fn discard_translations(start: *const u8, length: usize) {
    raw::harmless(0, Request::DiscardTranslations, [start as u64, length as u64, 0, 0, 0]);
}

/// The name of the tool that runs the program, as bytes of `buffer`; `None` natively or if it does not fit.
///
/// ```
/// let mut buffer = [0; 32];
/// if let Some(tool) = grind_client_requests::tool_name(&mut buffer) {
///     assert_eq!(tool, b"cachegrind");
/// }
/// ```
#[must_use]
pub fn tool_name(buffer: &mut [u8]) -> Option<&[u8]> {
    let size = buffer.len() as u64;
    let length = raw::harmless(0, Request::GetToolname, [buffer.as_mut_ptr() as u64, size, 0, 0, 0]);
    let length = usize::try_from(length).ok()?.checked_sub(1)?;
    buffer.get(..length)
}

/// Prints `text` to the profiler's log, each line marked with the process; answers the number of bytes, 0 natively.
///
/// ```
/// grind_client_requests::print(c"half-way\n");
/// ```
pub fn print(text: &CStr) -> u64 {
    raw::print(Request::PrintfValistByRef, text)
}

/// The same, followed by a stack trace where the tool has one.
///
/// ```
/// grind_client_requests::print_with_backtrace(c"how did we get here?\n");
/// ```
pub fn print_with_backtrace(text: &CStr) -> u64 {
    raw::print(Request::PrintfBacktraceValistByRef, text)
}

/// Requests to the tool `cachegrind`.
pub mod cachegrind {
    use crate::{Request, raw};

    /// Counts from here on. A warning is logged if it counts already.
    pub fn start_instrumentation() {
        raw::harmless(0, Request::CachegrindStartInstrumentation, [0; 5]);
    }

    /// Counts no longer. A warning is logged if it does not count already.
    pub fn stop_instrumentation() {
        raw::harmless(0, Request::CachegrindStopInstrumentation, [0; 5]);
    }
}

/// Contexts of the statistics: what a thread executes in one of them is counted apart, too. Only grind knows these requests;
/// under Valgrind, and natively, nothing happens.
///
/// A context is a number of the program's own choosing, or a name. Every program starts in context 0. Each thread has a stack
/// of its own; a thread that has pushed nothing is in the context of the thread that created it.
///
/// ```
/// use grind_client_requests::contexts::{Context, NamedContext};
///
/// static LOAD: NamedContext = NamedContext::new(c"load");
/// static SUM: NamedContext = NamedContext::new(c"sum");
///
/// let numbers: Vec<u64> = {
///     let _context = LOAD.enter();
///     (0..1000).collect() // counted as "load"
/// };
/// let _context = SUM.enter();
/// let mut sum = 0;
/// for (n, chunk) in numbers.chunks(100).enumerate() {
///     let _context = Context::enter(n as u64 + 1);
///     sum += chunk.iter().sum::<u64>(); // counted as contexts 1 to 10, by chunk
/// }
/// assert_eq!(sum, 499_500);
/// ```
pub mod contexts {
    use crate::{Request, raw};
    use core::ffi::CStr;
    use core::marker::PhantomData;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// What this thread executes from here on belongs to `context`.
    #[inline(always)]
    pub fn push_context(context: u64) {
        raw::harmless(0, Request::GrindPushContext, [context, 0, 0, 0, 0]);
    }

    /// What this thread executes from here on belongs to the context before the last push. A pop too many is ignored; the
    /// first one is reported.
    #[inline(always)]
    pub fn pop_context() {
        raw::harmless(0, Request::GrindPopContext, [0; 5]);
    }

    /// The number of the context with this name, the same every time: none below 2^32. 0 natively.
    #[must_use]
    pub fn context_named(name: &CStr) -> u64 {
        raw::harmless(0, Request::GrindNameContext, [name.as_ptr() as u64, 0, 0, 0, 0])
    }

    /// While it lives, its thread is in a context. It leaves it when it is dropped.
    #[derive(Debug)]
    #[must_use = "the context ends when this is dropped"]
    pub struct Context {
        /// The stack is the thread's.
        not_send: PhantomData<*const ()>,
    }

    impl Context {
        /// Pushes a context.
        #[inline(always)]
        pub fn enter(context: u64) -> Self {
            push_context(context);
            Self { not_send: PhantomData }
        }
    }

    impl Drop for Context {
        #[inline(always)]
        fn drop(&mut self) {
            pop_context();
        }
    }

    /// A context with a name, whose number is asked for once.
    #[derive(Debug)]
    pub struct NamedContext {
        name: &'static CStr,
        number: AtomicU64,
    }

    impl NamedContext {
        /// The context with this name.
        #[must_use]
        pub const fn new(name: &'static CStr) -> Self {
            Self { name, number: AtomicU64::new(0) }
        }

        /// Pushes it.
        #[inline(always)]
        pub fn enter(&self) -> Context {
            let mut number = self.number.load(Ordering::Relaxed);
            if number == 0 {
                number = context_named(self.name);
                self.number.store(number, Ordering::Relaxed);
            }
            Context::enter(number)
        }
    }
}

/// Requests to the tool `callgrind`; every other tool ignores them.
pub mod callgrind {
    use crate::{Request, raw};
    use core::ffi::CStr;

    /// Writes the costs so far as a part of the profile, and starts again from zero.
    pub fn dump_stats() {
        raw::harmless(0, Request::CallgrindDumpStats, [0; 5]);
    }

    /// The same; the part shows `reason`.
    pub fn dump_stats_at(reason: &CStr) {
        raw::harmless(0, Request::CallgrindDumpStatsAt, [reason.as_ptr() as u64, 0, 0, 0, 0]);
    }

    /// Forgets the costs so far.
    pub fn zero_stats() {
        raw::harmless(0, Request::CallgrindZeroStats, [0; 5]);
    }

    /// Collects costs no longer, or again.
    pub fn toggle_collect() {
        raw::harmless(0, Request::CallgrindToggleCollect, [0; 5]);
    }

    /// Instruments from here on.
    pub fn start_instrumentation() {
        raw::harmless(0, Request::CallgrindStartInstrumentation, [0; 5]);
    }

    /// Instruments no longer: the program runs faster and nothing is collected.
    pub fn stop_instrumentation() {
        raw::harmless(0, Request::CallgrindStopInstrumentation, [0; 5]);
    }

    /// What functions of the object at `path` (absolute, without symbolic links) cost is their callers' from here on. grind and
    /// CodSpeed's fork of Valgrind know it.
    pub fn add_obj_skip(path: &CStr) {
        raw::harmless(0, Request::CallgrindAddObjSkip, [path.as_ptr() as u64, 0, 0, 0, 0]);
    }

    /// The next part of the profile is described by `text`, among others. grind and CodSpeed's fork of Valgrind know it.
    pub fn add_desc(text: &CStr) {
        raw::harmless(0, Request::CallgrindAddDesc, [text.as_ptr() as u64, 0, 0, 0, 0]);
    }
}
