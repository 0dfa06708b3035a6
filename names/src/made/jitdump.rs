//! `jit-PID.dump`, which programs map as executable so that profilers see its name: records of code that is made or moved, and of its
//! lines, each with the time. So what lay at an address at a moment is known exactly.
//!
//! Invariant: what a record says of lengths is held against the file, and one that does not fit ends what is read; bytes of code are
//! passed over.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use grind_symbols::{Name, sanitised};
use grind_types::addr::GuestAddr;

use super::spans::{Line, Span, Spans, end_of};

const MAGIC: u32 = 0x4a69_5444;

/// The times of records are ticks of the processor.
const TICKS: u64 = 1;

const LOAD: u32 = 0;
const MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;

/// Bytes in front of a record: kind, length, time.
const HEAD: usize = 16;

/// Of a record, but for code, so much is read at most.
const MOST_BYTES: usize = 64 << 20;

/// Where writers of the first hour have lines begin: behind the ELF header of the file that perf makes of a record.
const ELF_HEADER: u64 = 0x40;

/// A dump, as far as it has been read.
#[derive(Clone, Debug)]
pub(super) struct Dump {
    file: Arc<File>,
    /// Up to where it has been read; 0: not even its header.
    read: u64,
    /// By time, in nanoseconds of the monotonic clock.
    spans: Spans,
    /// Lines of code that has not been told of yet, by its address.
    lines: HashMap<GuestAddr, Arc<[Line]>>,
    /// Pieces by the numbers of their code.
    by_index: HashMap<u64, (GuestAddr, Name, Arc<[Line]>)>,
    /// It can be made nothing of, or time is not told in nanoseconds.
    odd: bool,
}

impl Dump {
    /// The dump in this file.
    pub(super) fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            read: 0,
            spans: Spans::default(),
            lines: HashMap::new(),
            by_index: HashMap::new(),
            odd: false,
        }
    }

    fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    fn begin(&mut self) -> Option<()> {
        let head: [u8; 40] = self.bytes(0)?;
        let mut head = Fields(&head);
        let (magic, _version, size) = (head.u32()?, head.u32()?, head.u32()?);
        let (_machine, _padding, _pid) = (head.u32()?, head.u32()?, head.u32()?);
        let (_time, flags) = (head.u64()?, head.u64()?);
        self.odd = magic != MAGIC || flags & TICKS != 0 || size < 40;
        self.read = size.into();
        Some(())
    }

    /// Reads what has been added to it.
    pub(super) fn read_on(&mut self) {
        if self.read == 0 && self.begin().is_none() {
            return;
        }
        let length = self.file.metadata().map_or(0, |m| m.len());
        while !self.odd {
            let Some(head) = self.bytes::<HEAD>(self.read) else { return };
            let mut head = Fields(&head);
            let (Some(kind), Some(size), Some(when)) = (head.u32(), head.u32(), head.u64()) else { return };
            let size = size as usize;
            if size < HEAD {
                self.odd = true;
                return;
            }
            let end = self.read + size as u64;
            if end > length {
                // It is being written.
                return;
            }
            let mut body = vec![0; (size - HEAD).min(if kind == LOAD { 1 << 16 } else { MOST_BYTES })];
            if self.file.read_exact_at(&mut body, self.read + HEAD as u64).is_err() {
                return;
            }
            // A record that makes no sense is passed over.
            let _ = self.take(kind, when, Fields(&body));
            self.read = end;
        }
    }

    fn take(&mut self, kind: u32, when: u64, mut body: Fields<'_>) -> Option<()> {
        match kind {
            LOAD => {
                let (_pid, _tid) = (body.u32()?, body.u32()?);
                let (_vma, start, size, index) = (body.u64()?, body.addr()?, body.u64()?, body.u64()?);
                let name = sanitised(body.text()?);
                let lines = self.lines.remove(&start).unwrap_or_default();
                self.by_index.insert(index, (start, name.clone(), lines.clone()));
                self.spans.add(Span { start, end: end_of(start, size)?, when, name, lines });
            }
            MOVE => {
                let (_pid, _tid, _vma) = (body.u32()?, body.u32()?, body.u64()?);
                let (old, new, size, index) = (body.addr()?, body.addr()?, body.u64()?, body.u64()?);
                let (start, name, lines) = self.by_index.get(&index)?.clone();
                (start == old).then_some(())?;
                let moved = |line: &Line| Line { at: new.plus(line.at.since(old)), ..line.clone() };
                let lines: Arc<[Line]> = lines.iter().map(moved).collect();
                self.by_index.insert(index, (new, name.clone(), lines.clone()));
                self.spans.add(Span { start: new, end: end_of(new, size)?, when, name, lines });
            }
            DEBUG_INFO => {
                let (start, n) = (body.addr()?, body.u64()?);
                let mut lines: Vec<Line> = Vec::new();
                for _ in 0..n {
                    let (Some(at), Some(line), Some(_column)) = (body.addr(), body.u32(), body.u32()) else { break };
                    let Some(text) = body.text() else { break };
                    let file = match lines.last() {
                        Some(last) if text == b"\xff" => last.file.clone(),
                        _ => sanitised(text),
                    };
                    lines.push(Line { at, file, line });
                }
                lines.sort_by_key(|line| line.at);
                if lines.first().is_some_and(|first| first.at.0 >= start.0.saturating_add(ELF_HEADER)) {
                    // The first instruction of a function has a line; so this is a writer of that kind.
                    lines.iter_mut().for_each(|line| line.at = line.at.minus(ELF_HEADER));
                }
                self.lines.insert(start, lines.into());
            }
            _ => {}
        }
        Some(())
    }

    /// See [`Spans::replaced`].
    pub(super) fn replaced(&self) -> u32 {
        self.spans.replaced()
    }

    /// What lay at an address at a time.
    pub(super) fn at(&self, addr: GuestAddr, time: u64) -> Option<&Span> {
        self.spans.at(addr, time)
    }
}

/// Fields of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn addr(&mut self) -> Option<GuestAddr> {
        self.u64().map(GuestAddr)
    }

    /// Bytes up to a 0, which is passed over.
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn record(kind: u32, when: u64, words: &[u64], text: &[u8]) -> Vec<u8> {
        let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).chain(text.iter().copied()).collect();
        let mut all = kind.to_le_bytes().to_vec();
        all.extend((body.len() as u32 + 16).to_le_bytes());
        all.extend(when.to_le_bytes());
        all.extend(body);
        all
    }

    fn header(flags: u64) -> Vec<u8> {
        let mut all = Vec::new();
        [MAGIC, 1, 40, 62, 0, 7].iter().for_each(|w| all.extend(w.to_le_bytes()));
        [5u64, flags].iter().for_each(|w| all.extend(w.to_le_bytes()));
        all
    }

    fn show(dump: &Dump, addr: u64, time: u64) -> String {
        let addr = GuestAddr(addr);
        let Some(found) = dump.at(addr, time).map(|span| span.at(addr)) else { return String::new() };
        let file = found.file.unwrap_or_else(|| b"???".as_slice().into());
        format!("{} {}:{}", String::from_utf8_lossy(&found.function), String::from_utf8_lossy(&file), found.line)
    }

    #[test]
    fn code_that_is_made_moved_and_replaced_is_told_by_time() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line = |at: u64, line: u32, file: &[u8]| {
            let mut all = at.to_le_bytes().to_vec();
            all.extend(line.to_le_bytes());
            all.extend(0u32.to_le_bytes());
            all.extend(file);
            all
        };
        let lines = [line(0x1000, 3, b"a.x\0"), line(0x1008, 4, b"\xff\0")].concat();
        let mut all = header(0);
        all.extend(record(DEBUG_INFO, 9, &[0x1000, 2], &lines));
        all.extend(record(LOAD, 10, &[0, 0x1000, 0x1000, 16, 1], b"first\0code"));
        all.extend(record(MOVE, 20, &[0, 0x5000, 0x1000, 0x5000, 16, 1], b""));
        all.extend(record(LOAD, 30, &[0, 0x1000, 0x1000, 32, 2], b"second\0code"));
        all.extend(record(99, 30, &[1], b"what a later version has"));
        file.write_all(&all[..all.len() - 5]).unwrap();
        let mut dump = Dump::new(file.reopen().unwrap());
        dump.read_on();
        file.write_all(&all[all.len() - 5..]).unwrap();
        file.write_all(&record(LOAD, 40, &[0, 0x2000, 0x2000, 32, 3], b"third\0")).unwrap();
        dump.read_on();
        assert_eq!([show(&dump, 0x1004, 9), show(&dump, 0x1004, 10)], ["", "first a.x:3"]);
        assert_eq!([show(&dump, 0x1009, 29), show(&dump, 0x1009, 30)], ["first a.x:4", "second ???:0"]);
        assert_eq!([show(&dump, 0x5009, 19), show(&dump, 0x5009, 20)], ["", "first a.x:4"]);
        assert_eq!([show(&dump, 0x2000, 39), show(&dump, 0x2000, 40)], ["", "third ???:0"]);
    }

    #[test]
    fn whatever_is_in_the_file_it_costs_names_only() {
        let good = [header(0), record(LOAD, 10, &[0, 0x1000, 0x1000, 16, 1], b"f\0")].concat();
        for cut in 0..good.len() {
            for bad in [0u8, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[cut] = bad;
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), &bytes).unwrap();
                let mut dump = Dump::new(file.reopen().unwrap());
                dump.read_on();
                std::fs::write(file.path(), &bytes[..cut]).unwrap();
                let mut dump = Dump::new(file.reopen().unwrap());
                dump.read_on();
            }
        }
        // Other clocks cannot be compared with ours.
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [&header(TICKS)[..], &good[40..]].concat()).unwrap();
        let mut dump = Dump::new(file.reopen().unwrap());
        dump.read_on();
        assert_eq!(show(&dump, 0x1000, u64::MAX), "");
    }
}
