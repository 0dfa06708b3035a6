//! What a run of a target may take of the processor and of memory, and what it took.
//!
//! Time is processor time of the whole process: on a machine that others use, too, the time of day says nothing. Memory is
//! what was allocated at most, by this process's allocator, above what was before. Both are of the process, so only one
//! target may run at a time; [`check`] sees to that.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use peak_alloc::PeakAlloc;

use crate::Target;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The most processor time that a run may take.
pub const LONGEST: Duration = Duration::from_secs(1);
/// The most memory that a run may take, for each byte of its input.
pub const TIMES: usize = 20;
/// What it may take beside, whatever the input: buffers, tables of constants. Targets may say another number.
pub const OVERHEAD: usize = 256 << 10;

/// What a run took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Processor time.
    pub time: Duration,
    /// The most bytes that were allocated at once.
    pub memory: usize,
}

/// What is wrong with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The target panicked.
    Crash,
    /// It took so much time.
    Hang(Duration),
    /// It took so many bytes where it may take so many.
    Memory(usize, usize),
}

impl Fault {
    /// A word for the names of files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Hang(_) => "hang",
            Self::Memory(..) => "memory",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash => f.write_str("crash"),
            Self::Hang(time) => write!(f, "hang: {time:?} of processor time"),
            Self::Memory(taken, may) => write!(f, "memory: {taken} bytes where {may} are allowed"),
        }
    }
}

/// Processor time of this process.
#[must_use]
pub fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// The most memory that `target` may take for an input.
#[must_use]
pub fn most_memory(target: &Target, input: &[u8]) -> usize {
    target.overhead + TIMES * input.len() + (target.besides)(input)
}

/// Runs `target` on `input` and says what that took.
///
/// # Errors
/// It panicked, or took too much. One that does not end is not found out here.
pub fn check(target: &Target, input: &[u8]) -> Result<Spent, Fault> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let start = processor_time();
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let time = processor_time().saturating_sub(start);
    let memory = HEAP.peak_usage().saturating_sub(before);
    let may = most_memory(target, input);
    let laws = || catch_unwind(AssertUnwindSafe(|| (target.laws)(input)));
    match result {
        Err(_) => Err(Fault::Crash),
        Ok(()) if time > LONGEST => Err(Fault::Hang(time)),
        Ok(()) if memory > may => Err(Fault::Memory(memory, may)),
        Ok(()) => laws().map(|()| Spent { time, memory }).map_err(|_| Fault::Crash),
    }
}

/// As [`check`], for libFuzzer, which wants a panic.
///
/// # Panics
/// When the target panics or takes too much.
pub fn insist(target: &Target, input: &[u8]) {
    if let Err(fault) = check(target, input) {
        panic!("{}: {fault}", target.name);
    }
}
