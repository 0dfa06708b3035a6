//! Runs a target on an input and tells crash, hang and greed apart.
//!
//! A target that panics, or took too much, is found out by [`limits`](crate::limits). One that does not come to an end
//! cannot be stopped from inside, so a watching thread keeps its input and ends the process. One that kills the process
//! (a stack that overflows) leaves its input in the *cell*, a file in memory that whoever started the process reads.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io, process, thread};

use crate::Target;
use crate::limits::{Fault, LONGEST, Spent, check, processor_time};

/// Watches the runs of a target.
#[derive(Debug)]
pub struct Watch {
    target: &'static Target,
    /// Where inputs with faults are kept.
    faults: PathBuf,
    running: Arc<Mutex<Option<Run>>>,
    cell: Option<File>,
}

/// The processor time spent before a run, and its input.
type Run = (Duration, Vec<u8>);

impl Watch {
    /// Starts to watch; inputs with faults are written into `faults`, and each input into `cell` before it runs.
    #[must_use]
    pub fn new(target: &'static Target, faults: &Path, cell: Option<File>) -> Self {
        let running = Arc::new(Mutex::new(None::<Run>));
        let seen = Arc::clone(&running);
        let folder = faults.to_owned();
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(100));
                let guard = seen.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((start, input)) = &*guard else { continue };
                // Twice as long: those that end are told as they are.
                let time = processor_time().saturating_sub(*start);
                if time > 2 * LONGEST {
                    eprintln!("{}: {}", target.name, kept(&folder, target, Fault::Hang(time), input));
                    process::exit(1);
                }
            }
        });
        Self { target, faults: faults.to_owned(), running, cell }
    }

    /// Runs the target on `input` and says what it took.
    ///
    /// # Errors
    /// What was wrong; the text names the file that keeps the input. A run without an end ends the process.
    pub fn run(&self, input: &[u8]) -> Result<Spent, String> {
        let set = |value| *self.running.lock().unwrap_or_else(PoisonError::into_inner) = value;
        if let Some(cell) = &self.cell {
            put(cell, input).map_err(|error| format!("the file for running inputs: {error}"))?;
        }
        set(Some((processor_time(), input.to_vec())));
        let result = check(self.target, input);
        set(None);
        result.map_err(|fault| format!("{}: {}", self.target.name, kept(&self.faults, self.target, fault, input)))
    }
}

/// Puts an input into the cell: its length, and itself.
fn put(cell: &File, input: &[u8]) -> io::Result<()> {
    cell.write_all_at(input, 8)?;
    cell.write_all_at(&(input.len() as u64).to_le_bytes(), 0)
}

/// The input that was put into the cell last.
///
/// # Errors
/// There is none.
pub fn left(cell: &File) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    cell.read_exact_at(&mut length, 0)?;
    let mut input = vec![0; usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?];
    cell.read_exact_at(&mut input, 8)?;
    Ok(input)
}

/// Writes an input with a fault to a file, and says both.
#[must_use]
pub fn kept(folder: &Path, target: &Target, fault: Fault, input: &[u8]) -> String {
    // A plain checksum: the same input always gets the same name.
    let sum = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let path = folder.join(format!("{}-{}-{sum:016x}", target.name, fault.word()));
    match fs::create_dir_all(folder).and_then(|()| fs::write(&path, input)) {
        Ok(()) => format!("{fault}: {}", path.display()),
        Err(error) => format!("{fault}: {}: {error}; the input was {input:?}", path.display()),
    }
}
