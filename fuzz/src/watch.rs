//! Runs a target on an input and tells crash, hang and greed apart.
//!
//! A target that panics is caught. One that takes too long or too much memory cannot be stopped from inside, so a
//! watching thread keeps its input and ends the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, process, thread};

use crate::Target;

/// The most processor time that the process may spend on an input, in ticks of a hundredth of a second: on a machine
/// that others use, too, the time of day says nothing.
pub const LONGEST: u64 = 1000;
/// The most memory that the process may hold, in KiB.
pub const MOST_MEMORY: u64 = 1 << 20;

/// Watches the runs of a target.
#[derive(Debug)]
pub struct Watch {
    target: &'static Target,
    /// Where inputs with faults are kept.
    faults: PathBuf,
    running: Arc<Mutex<Option<Run>>>,
}

/// The processor time spent before a run, and its input.
type Run = (u64, Vec<u8>);

impl Watch {
    /// Starts to watch; inputs with faults are written into `faults`.
    #[must_use]
    pub fn new(target: &'static Target, faults: &Path) -> Self {
        let running = Arc::new(Mutex::new(None::<Run>));
        let seen = Arc::clone(&running);
        let folder = faults.to_owned();
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(100));
                let guard = seen.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((start, input)) = &*guard else { continue };
                let fault = if processor_time() > start + LONGEST {
                    "hang"
                } else if memory() > MOST_MEMORY {
                    "memory"
                } else {
                    continue;
                };
                eprintln!("{}: {fault}: {}", target.name, keep(&folder, target, fault, input));
                process::exit(1);
            }
        });
        Self { target, faults: faults.to_owned(), running }
    }

    /// Runs the target on `input`.
    ///
    /// # Errors
    /// It panicked; the text names the file that keeps the input. Hangs and greed end the process.
    pub fn run(&self, input: &[u8]) -> Result<(), String> {
        let set = |value| *self.running.lock().unwrap_or_else(PoisonError::into_inner) = value;
        set(Some((processor_time(), input.to_vec())));
        let result = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        set(None);
        result.map_err(|_| format!("{}: crash: {}", self.target.name, keep(&self.faults, self.target, "crash", input)))
    }
}

/// Writes an input with a fault to a file and names it, or says why that is impossible.
fn keep(folder: &Path, target: &Target, fault: &str, input: &[u8]) -> String {
    // A plain checksum: the same input always gets the same name.
    let sum = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let path = folder.join(format!("{}-{fault}-{sum:016x}", target.name));
    match fs::create_dir_all(folder).and_then(|()| fs::write(&path, input)) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("{}: {error}; the input was {input:?}", path.display()),
    }
}

/// Processor time of this process, in ticks; 0 if it is not known.
fn processor_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may hold anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Resident memory of this process, in KiB; 0 if it is not known.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
