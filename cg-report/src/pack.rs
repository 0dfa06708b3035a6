//! Columns: lists of numbers and texts as they stand in the report, each compressed by itself so that the page unpacks
//! what it shows and nothing else.
//!
//! A column of numbers is written in as few bytes a value as its largest one needs: all first bytes, then all second
//! ones, and so on, which compresses well. Signed columns and differences are folded so that small sizes are small
//! numbers. The page's `data/columns.ts` is the other end; `tests` here are its twin in Rust.
//!
//! Compressing takes longer than making columns, so threads do it meanwhile, in pieces that do not know of each other. How
//! they are cut and where they stand never depends on which thread was done first: the same profile makes the same
//! report. No more than a few pieces wait uncompressed.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::{Compress, Compression, FlushCompress, Status};

/// More threads than this would wait for the one that makes the columns.
const MOST_THREADS: usize = 4;

/// How hard columns are compressed: with 6, reports are half a percent smaller and take a fifth longer.
const LEVEL: u32 = 5;
/// How hard the page's program is compressed, which is small and in every report.
const HARDEST: u32 = 9;

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

/// An event of a side, and the number that its columns have: the event's number on the new side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) event: usize,
    pub(crate) number: usize,
}

/// Bytes that are compressed at once.
const PIECE: usize = 1 << 19;

/// Room for what a piece is longer when it cannot be compressed.
const ROOM: usize = 64;

/// A piece of a column, to compress or compressed.
#[derive(Debug)]
struct Piece {
    /// The number of the column.
    column: usize,
    /// The number of the piece within it.
    at: usize,
    last: bool,
    bytes: Vec<u8>,
}

/// What a thread has compressed.
type Done = io::Result<Vec<Piece>>;

/// A column of bytes or of text that is made while others are; see [`Pack::begin`].
#[derive(Debug)]
pub(crate) struct Growing {
    column: usize,
    /// Pieces that were handed on.
    pieces: usize,
    /// What comes next; whoever makes the column puts it here.
    pub(crate) next: Vec<u8>,
}

/// Columns in the making.
#[derive(Debug)]
pub(crate) struct Pack {
    /// Where each stands is not known before the end.
    columns: Vec<Column>,
    jobs: SyncSender<Piece>,
    threads: Vec<JoinHandle<Done>>,
}

/// Columns that are done.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) columns: Vec<Column>,
    pub(crate) text: Text,
}

/// The columns one after another, compressed and in base64. That is written as it is made; it is there as a whole only where it is
/// served.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// Compressed, each of some columns.
    packed: Vec<Vec<u8>>,
    /// So many of them are what the page shows first.
    first: usize,
    whole: OnceCell<String>,
}

impl Text {
    /// How many characters it has.
    pub(crate) fn len(&self) -> usize {
        self.packed.iter().map(|bytes| characters(bytes.len())).sum()
    }

    /// Writes what the page shows first.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write_first(&self, out: &mut dyn Write) -> io::Result<()> {
        Self::write(&self.packed[..self.first], out)
    }

    /// Writes what comes behind that.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write_rest(&self, out: &mut dyn Write) -> io::Result<()> {
        Self::write(&self.packed[self.first..], out)
    }

    fn write(packed: &[Vec<u8>], mut out: &mut dyn Write) -> io::Result<()> {
        for bytes in packed {
            let mut encoder = EncoderWriter::new(&mut out, &STANDARD);
            encoder.write_all(bytes)?;
            encoder.finish()?;
        }
        Ok(())
    }

    /// All of it.
    pub(crate) fn whole(&self) -> &str {
        self.whole.get_or_init(|| {
            let mut text = String::with_capacity(self.len());
            self.packed.iter().for_each(|bytes| STANDARD.encode_string(bytes, &mut text));
            text
        })
    }

    fn push(&mut self, bytes: Vec<u8>, first: bool) {
        self.packed.push(bytes);
        self.first += usize::from(first);
    }
}

#[cfg(test)]
impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self { packed: vec![bytes.to_vec()], first: 1, whole: OnceCell::new() }
    }
}

/// Characters of so many bytes in base64.
fn characters(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
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
        // All in one pass: with many events, most time goes by waiting for memory.
        let (count, least, largest) = values
            .clone()
            .fold((0, 0, 0), |(count, least, largest), value| (count + 1, value.min(least), value.max(largest)));
        if least < 0 {
            let largest = fold(least).max(fold(largest));
            self.planes(name.into(), count, largest, values.map(fold), true, false)
        } else {
            self.planes(name.into(), count, largest as u64, values.map(|value| value as u64), false, false)
        }
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, name: impl Into<String>, text: Vec<u8>) -> io::Result<()> {
        let count = text.len();
        self.push(name.into(), text, count, 1, false, false)
    }

    /// Begins a column that is not kept in memory while it is made.
    pub(crate) fn begin(&mut self, name: impl Into<String>) -> Growing {
        Growing { column: self.add(name.into(), 0, 1, false, false), pieces: 0, next: Vec::new() }
    }

    /// Hands on what has come, if it is enough.
    pub(crate) fn grow(&mut self, growing: &mut Growing) -> io::Result<()> {
        if growing.next.len() < PIECE {
            return Ok(());
        }
        let bytes = std::mem::replace(&mut growing.next, Vec::with_capacity(PIECE + PIECE / 8));
        self.columns[growing.column].count += bytes.len();
        growing.pieces += 1;
        self.send(Piece { column: growing.column, at: growing.pieces - 1, last: false, bytes })
    }

    /// Ends a column.
    pub(crate) fn end(&mut self, growing: Growing) -> io::Result<()> {
        let Growing { column, pieces, next } = growing;
        self.columns[column].count += next.len();
        if self.columns[column].count == 0 {
            return Ok(());
        }
        self.send(Piece { column, at: pieces, last: true, bytes: next })
    }

    /// Waits until all is compressed, and puts it together: columns that are wanted first, by their names, before all others.
    ///
    /// # Errors
    /// Those of the encoder, which writes to memory.
    pub(crate) fn finish(self, at_first: impl Fn(&str) -> bool) -> io::Result<Packed> {
        let Self { mut columns, jobs, threads } = self;
        // This is what the threads end of.
        drop(jobs);
        let mut done: Vec<Piece> = Vec::new();
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|_| Err(gone()))?);
        }
        let first: Vec<bool> = columns.iter().map(|column| at_first(&column.name)).collect();
        done.sort_unstable_by_key(|piece| (!first[piece.column], piece.column, piece.at));
        let mut text = Text::default();
        let mut start = 0;
        let mut whole: Vec<u8> = Vec::new();
        for Piece { column, at, last, mut bytes } in done {
            // Those of several pieces are put together, the others stay where they are.
            if at == 0 && last {
                bytes.shrink_to_fit();
                whole = bytes;
            } else {
                whole.extend(bytes);
            }
            if last {
                let length = characters(whole.len());
                (columns[column].start, columns[column].length) = (start, length);
                start += length;
                text.push(std::mem::take(&mut whole), first[column]);
            }
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
        self.planes(name, count, largest, values, signed, delta)
    }

    fn planes(
        &mut self,
        name: String,
        count: usize,
        largest: u64,
        values: impl Iterator<Item = u64> + Clone,
        signed: bool,
        delta: bool,
    ) -> io::Result<()> {
        let width = match largest {
            0 => 0,
            largest if largest > u64::from(u32::MAX) => 8,
            largest => (8 - largest.leading_zeros() as usize / 8) as u8,
        };
        let size = count * usize::from(width);
        if size > PIECE {
            return self.pieces(Column { name, start: 0, length: 0, count, width, signed, delta }, values);
        }
        let mut bytes = vec![0; size];
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

    /// Sends a large column a piece at a time. Values are asked for once for each of their bytes, which takes less than memory for all.
    fn pieces(&mut self, column: Column, values: impl Iterator<Item = u64> + Clone) -> io::Result<()> {
        let width = usize::from(column.width);
        let count = (column.count * width).div_ceil(PIECE);
        self.columns.push(column);
        let column = self.columns.len() - 1;
        let mut at = 0;
        let mut bytes = Vec::with_capacity(PIECE);
        for plane in 0..width {
            for value in values.clone() {
                bytes.push(value.to_le_bytes()[plane]);
                if bytes.len() == PIECE {
                    let bytes = std::mem::replace(&mut bytes, Vec::with_capacity(PIECE));
                    self.send(Piece { column, at, last: at + 1 == count, bytes })?;
                    at += 1;
                }
            }
        }
        if bytes.is_empty() { Ok(()) } else { self.send(Piece { column, at, last: true, bytes }) }
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
        let column = self.add(name, count, width, signed, delta);
        if bytes.len() <= PIECE {
            return if bytes.is_empty() { Ok(()) } else { self.send(Piece { column, at: 0, last: true, bytes }) };
        }
        let pieces = bytes.len().div_ceil(PIECE);
        bytes
            .chunks(PIECE)
            .enumerate()
            .try_for_each(|(at, bytes)| self.send(Piece { column, at, last: at + 1 == pieces, bytes: bytes.to_vec() }))
    }

    /// Gives the number of a column whose place is not known yet.
    fn add(&mut self, name: String, count: usize, width: u8, signed: bool, delta: bool) -> usize {
        self.columns.push(Column { name, start: 0, length: 0, count, width, signed, delta });
        self.columns.len() - 1
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        self.jobs.send(piece).map_err(|_| gone())
    }
}

/// Compresses what comes until nothing comes any more.
fn work(queue: &Mutex<Receiver<Piece>>) -> Done {
    let mut done = Vec::new();
    loop {
        // Bound first: a lock that lives as long as the loop's body would let one thread work alone.
        let piece = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(piece) = piece else { return Ok(done) };
        done.push(Piece { bytes: deflated(&piece.bytes, piece.last, LEVEL)?, ..piece });
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
    Ok(STANDARD.encode(deflated(bytes, true, HARDEST)?))
}

/// Compresses a piece; what follows may be appended unless it is the `last` one.
fn deflated(bytes: &[u8], last: bool, level: u32) -> io::Result<Vec<u8>> {
    let mut encoder = Compress::new(Compression::new(level), false);
    let flush = if last { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut out = Vec::with_capacity(bytes.len() / 2 + ROOM);
    loop {
        let rest = &bytes[usize::try_from(encoder.total_in()).map_err(io::Error::other)?..];
        let status = encoder.compress_vec(rest, &mut out, flush).map_err(io::Error::other)?;
        // Whatever did not fit is still in the encoder if there is no room left.
        if status == Status::StreamEnd || (!last && out.len() < out.capacity()) {
            // It stays until all is done.
            out.shrink_to_fit();
            return Ok(out);
        }
        out.reserve(bytes.len() / 4 + ROOM);
    }
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
        let text = &pack.text.whole()[column.start..column.start + column.length];
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
        let long: Vec<u64> = (0..3 * PIECE as u64 / 2).map(|at| at * at % 1021).collect();
        pack.numbers("long", long.iter().copied()).unwrap();
        let (mut grown, mut whole, none) = (pack.begin("grown"), pack.begin("whole"), pack.begin("none"));
        for at in 0..2 * PIECE {
            grown.next.push((at * at % 251) as u8);
            whole.next.push((at % 7) as u8);
            pack.grow(&mut grown).unwrap();
            pack.grow(&mut whole).unwrap();
        }
        // One ends with a piece, the other one within one.
        grown.next.push(8);
        [grown, whole, none].into_iter().for_each(|growing| pack.end(growing).unwrap());
        let pack = pack.finish(|name| name == "whole" || name == "n3").unwrap();
        let mut parts = [Vec::new(), Vec::new()];
        pack.text.write_first(&mut parts[0]).unwrap();
        pack.text.write_rest(&mut parts[1]).unwrap();
        for column in pack.columns.iter().filter(|column| column.length > 0) {
            let first = column.start + column.length <= parts[0].len();
            assert_eq!(first, ["whole", "n3"].contains(&&*column.name), "{}", column.name);
            assert!(first || column.start >= parts[0].len());
        }
        assert_eq!(parts.concat(), pack.text.whole().as_bytes());
        assert_eq!(unpack(&pack, "long"), long.iter().map(|value| i128::from(*value)).collect::<Vec<_>>());
        let expected: Vec<i128> = (0..2 * PIECE as i128).map(|at| at * at % 251).chain([8]).collect();
        assert_eq!(unpack(&pack, "grown"), expected);
        assert_eq!(unpack(&pack, "whole"), (0..2 * PIECE as i128).map(|at| at % 7).collect::<Vec<_>>());
        assert_eq!(unpack(&pack, "none"), [0_i128; 0]);
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
