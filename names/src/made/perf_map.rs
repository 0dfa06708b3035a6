//! `perf-PID.map`: lines of an address, a size (both hexadecimal) and a name, written by a program about code that it makes.
//!
//! There is no time in it. What is known of that is how long the file was at moments: a line that was there before a piece of code was
//! translated speaks of that code, or of what was there before. Programs that write each line at once (CPython, PHP, Erlang) say
//! so exactly what lay where; of others (V8), which keep lines back until a buffer is full, a line that comes with the next buffer may
//! be meant.
//!
//! Invariant: only whole lines are read, and what cannot be a line is left out; memory is bounded by the size of the file.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use grind_symbols::sanitised;
use grind_types::addr::GuestAddr;

use super::spans::{Span, Spans, end_of};

/// Longer files are read up to here.
const MOST_BYTES: u64 = 1 << 30;

/// A map, as far as it has been read.
#[derive(Clone, Debug)]
pub(super) struct PerfMap {
    file: Arc<File>,
    /// Bytes up to the end of the last whole line that has been read.
    read: u64,
    /// By bytes of the file up to the end of their lines.
    spans: Spans,
    /// Lengths of the file at moments, ascending.
    lengths: Vec<u64>,
    /// A length was seen that is not the end of a line: the program does not write line by line.
    buffered: bool,
}

impl PerfMap {
    /// The map in this file.
    pub(super) fn new(file: File) -> Self {
        Self { file: Arc::new(file), read: 0, spans: Spans::default(), lengths: Vec::new(), buffered: false }
    }

    /// Whether the file has still its name.
    pub(super) fn is_named(&self) -> bool {
        self.file.metadata().is_ok_and(|m| m.nlink() > 0)
    }

    /// How long it is now.
    pub(super) fn length(&mut self) -> u64 {
        let length = self.file.metadata().map_or(0, |m| m.len()).min(MOST_BYTES);
        if length < self.lengths.last().copied().unwrap_or(0) {
            // It has been begun anew; what has been read of it stays known.
            self.read = 0;
            self.lengths.clear();
        }
        if self.lengths.last() != Some(&length) {
            self.lengths.push(length);
            let mut last = [0];
            let ends = length == 0 || self.file.read_at(&mut last, length - 1).is_ok_and(|n| n == 1) && last == *b"\n";
            self.buffered |= !ends;
        }
        length
    }

    /// Reads what has been added to it.
    pub(super) fn read_on(&mut self) {
        let length = self.length();
        let mut text = vec![0; length.saturating_sub(self.read) as usize];
        let mut n = 0;
        while let Ok(more @ 1..) = self.file.read_at(&mut text[n..], self.read + n as u64) {
            n += more;
        }
        let whole = memchr::memrchr(b'\n', &text[..n]).map_or(0, |at| at + 1);
        let mut at = self.read;
        for line in text[..whole].split_inclusive(|b| *b == b'\n') {
            at += line.len() as u64;
            if let Some((start, end, name)) = parse(line) {
                self.spans.add(Span { start, end, when: at, name: sanitised(name), lines: Arc::new([]) });
            }
        }
        self.read = at;
    }

    /// See [`Spans::replaced`].
    pub(super) fn replaced(&self) -> u32 {
        self.spans.replaced()
    }

    /// What lay at an address when the file was so long.
    pub(super) fn at(&self, addr: GuestAddr, length: u64) -> Option<&Span> {
        let known = || self.spans.at(addr, length);
        let later = || self.spans.covering(addr).find(|span| span.when > length);
        if self.buffered {
            // The line may have been in the buffer that was written next.
            let next = self.lengths.iter().copied().find(|l| *l > length).unwrap_or(u64::MAX);
            // The line that this buffer ended in the middle of comes with it, too.
            if later().is_some_and(|span| span.when <= next) {
                return self.spans.at(addr, next);
            }
        }
        known().or_else(later)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

/// Start, end and name of a line.
fn parse(line: &[u8]) -> Option<(GuestAddr, GuestAddr, &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut words = line.splitn(3, |b| *b == b' ');
    let mut number = || {
        let word = std::str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next()?;
    (!name.is_empty() && size > 0).then_some(())?;
    let start = GuestAddr(start);
    Some((start, end_of(start, size)?, name))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn name(map: &PerfMap, addr: u64, length: u64) -> String {
        map.at(GuestAddr(addr), length).map(|s| String::from_utf8_lossy(&s.name).into_owned()).unwrap_or_default()
    }

    #[test]
    fn lines_are_read_and_others_left_out() {
        assert_eq!(parse(b"7f00 10 a b::c\n"), Some((GuestAddr(0x7f00), GuestAddr(0x7f10), &b"a b::c"[..])));
        assert_eq!(
            parse(b"0x7f00 0x1 JS:~f x.js:1"),
            Some((GuestAddr(0x7f00), GuestAddr(0x7f01), &b"JS:~f x.js:1"[..]))
        );
        for bad in ["", "7f00", "7f00 10", "7f00 10 ", "7f00 0 f", "g 1 f", "-1 1 f", "ffffffffffffffff 2 f", "\u{0}"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn code_has_the_name_that_was_known_when_it_was_made() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut map = PerfMap::new(file.reopen().unwrap());
        let before = map.length();
        file.write_all(b"1000 10 first\n").unwrap();
        let first = map.length();
        map.read_on();
        file.write_all(b"1000 20 second\n").unwrap();
        let second = map.length();
        map.read_on();
        assert_eq!(name(&map, 0x1008, before), "first", "there was no line, so it is the first one's");
        assert_eq!([name(&map, 0x1008, first), name(&map, 0x1008, second)], ["first", "second"]);
        assert_eq!([name(&map, 0x1018, first), name(&map, 0x1020, second)], ["second", ""]);
    }

    #[test]
    fn what_was_kept_in_a_buffer_is_looked_for_there() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut map = PerfMap::new(file.reopen().unwrap());
        // The first buffer ends in the middle of a line.
        file.write_all(b"1000 10 old\n2000 10 oth").unwrap();
        let first = map.length();
        file.write_all(b"er\n1000 10 new\n").unwrap();
        let second = map.length();
        map.read_on();
        assert!(map.buffered);
        assert_eq!([name(&map, 0x1000, 0), name(&map, 0x1000, first)], ["old", "new"]);
        assert_eq!([name(&map, 0x2000, first), name(&map, 0x1000, second)], ["other", "new"]);
    }

    #[test]
    fn a_file_that_is_begun_anew_is_read_anew() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut map = PerfMap::new(file.reopen().unwrap());
        std::fs::write(file.path(), "1000 10 of_another_program\n").unwrap();
        map.read_on();
        std::fs::write(file.path(), "1000 10 mine\n").unwrap();
        let length = map.length();
        map.read_on();
        assert_eq!(name(&map, 0x1000, length), "mine");
    }
}
