//! Columns: lists of numbers and texts as they stand in the report, each compressed by itself so that the page unpacks
//! what it shows and nothing else.
//!
//! A column of numbers is written in as few bytes a value as its largest one needs: all first bytes, then all second
//! ones, and so on, which compresses well. Signed columns and differences are folded so that small sizes are small
//! numbers. The page's `data/columns.ts` is the other end; `tests` here are its twin in Rust.
//!
//! Compressing takes longer than making columns, so threads do it meanwhile. Where a column stands never depends on
//! which thread was done first: the same profile makes the same report. No more than a few columns wait uncompressed.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// More threads than this would wait for the one that makes the columns.
const MOST_THREADS: usize = 4;

/// How hard columns are compressed: with 6, reports are half a percent smaller and take a fifth longer.
const LEVEL: u32 = 5;

/// How a column is written; all that the page needs to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Where its text begins among all columns, in characters.
    pub(crate) start: usize,
    /// How long that is.
    pub(crate) length: usize,
    /// How many values it has; of a text, bytes.
    pub(crate) count: usize,
    /// Bytes a value: 0 if all are 0, else 1 to 4 or 8.
    pub(crate) width: u8,
    /// Whether values are folded because some are negative.
    pub(crate) signed: bool,
    /// Whether each value is the difference from the one before.
    pub(crate) delta: bool,
}

/// Bytes to compress, and the number of their column.
type Job = (usize, Vec<u8>);
/// Columns that a thread has compressed.
type Done = io::Result<Vec<Job>>;

/// Columns in the making.
#[derive(Debug)]
pub(crate) struct Pack {
    /// Where each stands is not known before the end.
    columns: Vec<Column>,
    jobs: SyncSender<Job>,
    threads: Vec<JoinHandle<Done>>,
}

/// Columns that are done.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) columns: Vec<Column>,
    /// The columns one after another, compressed and in base64.
    pub(crate) text: String,
}

impl Pack {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system gives none.
    pub(crate) fn new() -> io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let (jobs, queue) = sync_channel(1);
        let queue = Arc::new(Mutex::new(queue));
        let thread = |_| {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new().name("pack".to_owned()).spawn(move || work(&queue))
        };
        let threads = (0..count).map(thread).collect::<io::Result<_>>()?;
        Ok(Self { columns: Vec::new(), jobs, threads })
    }

    /// Adds counts.
    pub(crate) fn numbers(
        &mut self,
        name: impl Into<String>,
        values: impl Iterator<Item = u64> + Clone,
    ) -> io::Result<()> {
        self.folded(name.into(), values, false, false)
    }

    /// Adds counts of which neighbours are alike, such as places in ascending order.
    pub(crate) fn close(
        &mut self,
        name: impl Into<String>,
        values: impl Iterator<Item = u64> + Clone,
    ) -> io::Result<()> {
        let steps = values.scan(0_u64, |last, value| {
            let step = value.wrapping_sub(*last) as i64;
            *last = value;
            Some(fold(step))
        });
        self.folded(name.into(), steps, true, true)
    }

    /// Adds costs.
    pub(crate) fn costs(
        &mut self,
        name: impl Into<String>,
        values: impl Iterator<Item = i64> + Clone,
    ) -> io::Result<()> {
        if values.clone().any(|value| value < 0) {
            self.folded(name.into(), values.map(fold), true, false)
        } else {
            self.folded(name.into(), values.map(|value| value as u64), false, false)
        }
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, name: impl Into<String>, text: Vec<u8>) -> io::Result<()> {
        let count = text.len();
        self.push(name.into(), text, count, 1, false, false)
    }

    /// Waits until all is compressed, and puts it together.
    ///
    /// # Errors
    /// Those of the encoder, which writes to memory.
    pub(crate) fn finish(self) -> io::Result<Packed> {
        let Self { mut columns, jobs, threads } = self;
        // This is what the threads end of.
        drop(jobs);
        let mut done: Vec<Job> = Vec::with_capacity(columns.len());
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|_| Err(gone()))?);
        }
        done.sort_unstable_by_key(|(at, _)| *at);
        let mut text = String::with_capacity(done.iter().map(|(_, bytes)| bytes.len().div_ceil(3) * 4).sum());
        for (at, bytes) in done {
            columns[at].start = text.len();
            STANDARD.encode_string(&bytes, &mut text);
            columns[at].length = text.len() - columns[at].start;
        }
        Ok(Packed { columns, text })
    }

    fn folded(
        &mut self,
        name: String,
        values: impl Iterator<Item = u64> + Clone,
        signed: bool,
        delta: bool,
    ) -> io::Result<()> {
        let (count, largest) = values.clone().fold((0, 0), |(count, largest), value| (count + 1, value.max(largest)));
        let width = match largest {
            0 => 0,
            largest if largest > u64::from(u32::MAX) => 8,
            largest => (8 - largest.leading_zeros() as usize / 8) as u8,
        };
        let mut bytes = vec![0; count * usize::from(width)];
        match width {
            0 => {}
            1 => bytes.iter_mut().zip(values).for_each(|(byte, value)| *byte = value as u8),
            _ => {
                let mut planes: Vec<&mut [u8]> = bytes.chunks_exact_mut(count).collect();
                for (at, value) in values.enumerate() {
                    for (plane, byte) in planes.iter_mut().zip(value.to_le_bytes()) {
                        plane[at] = byte;
                    }
                }
            }
        }
        self.push(name, bytes, count, width, signed, delta)
    }

    fn push(
        &mut self,
        name: String,
        bytes: Vec<u8>,
        count: usize,
        width: u8,
        signed: bool,
        delta: bool,
    ) -> io::Result<()> {
        let at = self.columns.len();
        self.columns.push(Column { name, start: 0, length: 0, count, width, signed, delta });
        if bytes.is_empty() { Ok(()) } else { self.jobs.send((at, bytes)).map_err(|_| gone()) }
    }
}

/// Compresses what comes until nothing comes any more.
fn work(queue: &Mutex<Receiver<Job>>) -> Done {
    let mut done = Vec::new();
    loop {
        // Bound first: a lock that lives as long as the loop's body would let one thread work alone.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((at, bytes)) = job else { return Ok(done) };
        done.push((at, deflated(&bytes)?));
    }
}

/// What is said if all threads have ended early, which they do of nothing that is known.
fn gone() -> io::Error {
    io::Error::other("a thread that compresses has ended")
}

/// Bytes as they stand in the page: compressed and in base64.
///
/// # Errors
/// Those of the encoder, which writes to memory.
pub(crate) fn packed(bytes: &[u8]) -> io::Result<String> {
    Ok(STANDARD.encode(deflated(bytes)?))
}

fn deflated(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Makes small negative numbers small: 0, -1, 1, -2 become 0, 1, 2, 3.
fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn unpack(pack: &Packed, name: &str) -> Vec<i128> {
        let column = pack.columns.iter().find(|column| column.name == name).unwrap();
        let text = &pack.text[column.start..column.start + column.length];
        let packed = STANDARD.decode(text).unwrap();
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap_or_default();
        let mut last = 0_u64;
        (0..column.count)
            .map(|i| {
                let value = (0..usize::from(column.width))
                    .map(|plane| u64::from(bytes[plane * column.count + i]) << (8 * plane))
                    .fold(0, |a, b| a | b);
                let unfolded = (value >> 1) as i64 ^ -((value & 1) as i64);
                if column.delta {
                    last = last.wrapping_add(unfolded as u64);
                    i128::from(last)
                } else if column.signed {
                    i128::from(unfolded)
                } else {
                    i128::from(value)
                }
            })
            .collect()
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let mut pack = Pack::new().unwrap();
        let lists: [&[u64]; 7] = [
            &[],
            &[0, 0, 0],
            &[1, 255, 3],
            &[256, 7, 70_000],
            &[1 << 24, 5, u64::from(u32::MAX)],
            &[1 << 32, 0, 1 << 53, u64::MAX],
            &[0xffff_ffff_ff60_0000, 0x40_1000, 3],
        ];
        for (i, list) in lists.iter().enumerate() {
            pack.numbers(format!("n{i}"), list.iter().copied()).unwrap();
            pack.close(format!("c{i}"), list.iter().copied()).unwrap();
        }
        let costs = [0, -1, i64::MAX, i64::MIN, 77];
        pack.costs("costs", costs.iter().copied()).unwrap();
        let pack = pack.finish().unwrap();
        for (i, list) in lists.iter().enumerate() {
            let expected: Vec<i128> = list.iter().map(|value| i128::from(*value)).collect();
            assert_eq!(unpack(&pack, &format!("n{i}")), expected);
            assert_eq!(unpack(&pack, &format!("c{i}")), expected);
        }
        assert_eq!(unpack(&pack, "costs"), costs.map(i128::from));
        let widths: Vec<u8> = (0..6).map(|i| pack.columns[2 * i].width).collect();
        assert_eq!(widths, [0, 0, 1, 3, 4, 8], "as few bytes as are needed");
    }
}
