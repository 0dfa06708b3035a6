//! The TLB of data beside the miss path in Rust, as [`crate::miss_path`]'s pages emit it: which page has to go, and which lines are shown
//! no more for it. It must do the same to the state in the slot.

use grind_layout as layout;
use grind_trace::{FirstLevel, FirstTlb};

use super::{MissPathAsm, Words, entry_of, from_nowhere, stop_showing};

/// Offsets in a way: its tag, the time that is kept, the lines that are shown.
const TIME: u64 = layout::DATA_PAGES + 8;
const SHOWN: u64 = layout::DATA_PAGES + 16;

/// What a way says of the page of an address.
fn tag(address: u64) -> u64 {
    address & !(layout::PAGE - 1) | 1
}

/// The bit of the line that an entry shows.
fn bit(entry: u64) -> u64 {
    1 << layout::page_bit(entry / layout::DATA_ENTRY)
}

/// The entries of the lines of a page whose bits these are.
fn entries(tag: u64, mut shown: u64, cache: FirstLevel) -> impl Iterator<Item = u64> {
    let first = (entry_of(tag & !1, cache) / layout::DATA_ENTRY) & !63;
    std::iter::from_fn(move || {
        let bit = (shown != 0).then(|| u64::from(shown.trailing_zeros()))?;
        shown &= shown - 1;
        Some((first + bit) * layout::DATA_ENTRY)
    })
}

/// An entry shows its line no more: its page keeps when it was used last.
pub(super) fn leave(words: &mut impl Words, entry: u64) {
    let way = words.get(layout::DATA_PLACES + entry) & u64::from(u32::MAX);
    words.set(TIME + way, words.get(TIME + way).max(words.get(layout::DATA_TIMES + entry)));
    words.set(SHOWN + way, words.get(SHOWN + way) & !bit(entry));
}

/// An entry shows a line whose page is in `way`.
pub(super) fn show(words: &mut impl Words, entry: u64, way: u64) {
    let at = layout::DATA_PLACES + entry;
    words.set(at, words.get(at) & !u64::from(u32::MAX) | way);
    words.set(SHOWN + way, words.get(SHOWN + way) | bit(entry));
}

impl<W: Words> MissPathAsm<W> {
    /// Uses the page of a line that is not shown: its way. Misses are added to those of the access.
    pub(super) fn use_page(&mut self, tlb: FirstTlb, line: u64, time: u64) -> u64 {
        let set = (line / layout::PAGE) & u64::from(tlb.sets - 1);
        let ways = u64::from(tlb.ways);
        let of_set = (0..ways).map(|way| (set * ways + way) * layout::PAGE_WAY);
        let found = of_set.clone().find(|way| self.words.get(layout::DATA_PAGES + way) == tag(line));
        let way = found.unwrap_or_else(|| {
            let way = self.oldest_page(of_set.collect());
            let entries = entries(self.words.get(layout::DATA_PAGES + way), self.words.get(SHOWN + way), self.cache);
            for entry in entries {
                self.hide_line(entry);
            }
            self.words.set(layout::DATA_PAGES + way, tag(line));
            self.words.set(SHOWN + way, 0);
            self.page_misses.push(line | u64::from(!self.page_misses.is_empty()));
            way
        });
        self.words.set(TIME + way, time);
        way
    }

    /// The way of the page used longest ago: of those whose times that are kept are the earliest one, the first whose lines tell no later
    /// one.
    fn oldest_page(&mut self, all: Vec<u64>) -> u64 {
        loop {
            let kept = |way: &u64| self.words.get(TIME + way);
            let way = all.iter().copied().min_by_key(|way| (kept(way), *way)).unwrap_or(0);
            let entries = entries(self.words.get(layout::DATA_PAGES + way), self.words.get(SHOWN + way), self.cache);
            let last = entries.map(|entry| self.words.get(layout::DATA_TIMES + entry)).max().unwrap_or(0);
            if last <= self.words.get(TIME + way) {
                return way;
            }
            self.words.set(TIME + way, last);
        }
    }

    /// The line of an entry is shown no more, but stays in the cache.
    fn hide_line(&mut self, entry: u64) {
        let line = self.words.get(layout::DATA_TAGS + entry).wrapping_neg();
        let cache = self.cache;
        let set = line >> cache.line.trailing_zeros() & u64::from(cache.sets - 1);
        let ways = u64::from(cache.ways);
        let way = (0..ways)
            .map(|w| (set * ways + w) * layout::DATA_WAY)
            .find(|way| self.words.get(layout::DATA_WHERE + way) == from_nowhere(entry));
        debug_assert!(way.is_some(), "a line that is shown is in a way");
        if let Some(way) = way {
            stop_showing(&mut self.words, way, entry);
            self.words.set(layout::DATA_TAGS + entry, layout::NOTHING);
        }
    }
}
