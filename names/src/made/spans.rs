//! Pieces of code that have names, in the order in which they were made known, and what lay at an address at a moment. Invariant: a
//! piece that was made known later takes the place of what it covers of earlier ones, from then on.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use grind_symbols::Name;
use grind_types::addr::GuestAddr;

use super::Found;

/// A piece of code.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) start: GuestAddr,
    /// Behind its last byte.
    pub(super) end: GuestAddr,
    /// When it was made known, by the clock of whoever did that; never less than that of the one before.
    pub(super) when: u64,
    pub(super) name: Name,
    /// Ascending addresses from which on code is of a line of a file. Empty: nothing is known of lines.
    pub(super) lines: Arc<[Line]>,
}

/// From where on code is of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at: GuestAddr,
    pub(super) file: Name,
    pub(super) line: u32,
}

impl Span {
    /// The pages that it lies on; it has bytes.
    fn pages(&self) -> Range<u64> {
        self.start.0 >> PAGE_BITS..(self.end.minus(1).0 >> PAGE_BITS) + 1
    }

    /// What it says of an address within it.
    pub(super) fn at(&self, addr: GuestAddr) -> Found {
        let behind = self.lines.partition_point(|line| line.at <= addr);
        let line = behind.checked_sub(1).map(|i| &self.lines[i]);
        Found {
            function: self.name.clone(),
            start: self.start,
            end: self.end,
            file: line.map(|line| line.file.clone()),
            line: line.map_or(0, |line| line.line),
        }
    }
}

/// The address behind `size` bytes from `start` on; `None` where there are not so many.
pub(super) fn end_of(start: GuestAddr, size: u64) -> Option<GuestAddr> {
    start.0.checked_add(size).map(GuestAddr)
}

/// Addresses are looked up by pages of this size.
const PAGE_BITS: u32 = 12;

/// Whatever is on more pages is in a list of its own.
const MOST_PAGES: u64 = 256;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    all: Vec<Span>,
    pages: HashMap<u64, Vec<u32>>,
    large: Vec<u32>,
    replaced: u32,
}

impl Spans {
    /// Makes a piece known.
    pub(super) fn add(&mut self, span: Span) {
        if span.start >= span.end || span.end.0 >> 48 != 0 {
            return;
        }
        let covers = |other: &u32| {
            let other = &self.all[*other as usize];
            other.start < span.end && span.start < other.end && (other.start, &other.name) != (span.start, &span.name)
        };
        let mut near = span.pages().take(MOST_PAGES as usize).filter_map(|page| self.pages.get(&page)).flatten();
        self.replaced += u32::from(near.any(covers));
        let Ok(number) = u32::try_from(self.all.len()) else { return };
        let pages = span.pages();
        if pages.end - pages.start > MOST_PAGES {
            self.large.push(number);
        } else {
            pages.for_each(|page| self.pages.entry(page).or_default().push(number));
        }
        self.all.push(span);
    }

    /// How many of them came to lie where there was another one.
    pub(super) fn replaced(&self) -> u32 {
        self.replaced
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The one that was made known last.
    pub(super) fn last(&self) -> Option<&Span> {
        self.all.last()
    }

    /// All pieces that this address has been in, the first one first.
    pub(super) fn covering(&self, addr: GuestAddr) -> impl DoubleEndedIterator<Item = &Span> {
        let here = self.pages.get(&(addr.0 >> PAGE_BITS)).map_or(&[][..], |list| list);
        let mut all: Vec<&Span> = here
            .iter()
            .chain(&self.large)
            .map(|&number| &self.all[number as usize])
            .filter(|span| (span.start..span.end).contains(&addr))
            .collect();
        all.sort_by_key(|span| span.when);
        all.into_iter()
    }

    /// The one that was there at a moment.
    pub(super) fn at(&self, addr: GuestAddr, when: u64) -> Option<&Span> {
        self.covering(addr).rev().find(|span| span.when <= when)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn span(start: u64, end: u64, when: u64, name: &str) -> Span {
        Span { start: GuestAddr(start), end: GuestAddr(end), when, name: name.as_bytes().into(), lines: Arc::new([]) }
    }

    #[test]
    fn what_came_later_takes_the_place_of_what_it_covers() {
        let mut spans = Spans::default();
        for one in [
            span(0x1000, 0x3000, 1, "a"),
            span(0x1800, 0x2000, 2, "b"),
            span(0x0, 0x1000_0000, 3, "large"),
            span(0x1900, 0x1a00, 4, "c"),
            span(0x1900, 0x1900, 5, "empty"),
            span(u64::MAX - 5, u64::MAX, 5, "nowhere"),
        ] {
            spans.add(one);
        }
        let name = |addr, when| spans.at(GuestAddr(addr), when).map(|s| String::from_utf8_lossy(&s.name).into_owned());
        let name = |addr, when| name(addr, when).unwrap_or_default();
        assert_eq!([name(0x1900, 0), name(0x1900, 1), name(0x1900, 2), name(0x1900, 3)], ["", "a", "b", "large"]);
        assert_eq!([name(0x1900, 4), name(0x1a00, 4), name(0x2fff, 2), name(0x3000, 2)], ["c", "large", "a", ""]);
        assert_eq!(name(u64::MAX - 2, 9), "");
    }
}
