//! The misses of a process as streams: one for each instruction and each object that it misses, and each thread.
//!
//! What a thread has folded is put behind what those before it have when it ends. The number of streams is bounded; misses of those
//! for which there is no room are counted together, so that nothing is lost.

use std::collections::HashMap;
use std::ops::Range;

use grind_types::Tid;

use cg_format::mem::streams::{Access, Ahead, Grid};
use rustc_hash::FxHashMap;

use super::Site;
use cg_format::mem::fold::{Fold, Folded};

/// How many streams are kept.
const MOST: usize = 1 << 16;

/// What a stream belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The number of the object.
    pub object: u32,
    /// The instruction.
    pub site: Site,
    /// What it does.
    pub access: Access,
}

/// A miss.
#[derive(Clone, Debug)]
pub(super) struct Miss {
    pub(super) addr: u64,
    /// Bytes of the access.
    pub(super) size: u64,
    /// Where the object, or its block, lies, if it has a place: starts are counted from its first byte.
    pub(super) place: Option<Range<u64>>,
    pub(super) last_level: bool,
}

#[derive(Clone, Debug)]
struct Kept {
    fold: Fold,
    place: Range<u64>,
    size: u64,
    misses: u64,
    last_level: u64,
}

type Table = FxHashMap<Key, Kept>;

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// Bytes of a line of the first-level cache.
    line: u64,
    /// Those of others. (`None`: before any was named.)
    threads: HashMap<Option<Tid>, Table>,
    /// The thread that records, and its streams.
    current: (Option<Tid>, Table),
    /// Of threads that have ended.
    ended: Table,
    kept: usize,
    others: u64,
}

/// A stream that was found.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What it belongs to.
    pub key: Key,
    /// Bytes of an access: of the first one, if they differ.
    pub size: u64,
    /// What starts are counted from, and one past the last byte of what begins there (the same, if that is not known).
    pub place: Range<u64>,
    /// Misses of the first level.
    pub misses: u64,
    /// Of the last one.
    pub last_level: u64,
    /// Its addresses.
    pub folded: Folded,
    /// What is worth loading ahead: `None` until hints are made.
    pub prefetch: Option<Ahead>,
}

/// All streams of a process.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By object and instruction.
    pub streams: Vec<Stream>,
    /// Bytes of a line of the first-level cache.
    pub line: u64,
    /// Misses that are in none.
    pub others: u64,
}

impl Streams {
    pub(super) fn new(line: u64) -> Self {
        let (threads, current, ended) = (HashMap::new(), (None, Table::default()), Table::default());
        Self { line, threads, current, ended, kept: 0, others: 0 }
    }

    /// What is missed from here on is missed by this thread.
    pub(super) fn thread(&mut self, tid: Tid) {
        if self.current.0 != Some(tid) {
            let table = self.threads.remove(&Some(tid)).unwrap_or_default();
            let (before, table) = std::mem::replace(&mut self.current, (Some(tid), table));
            if !table.is_empty() {
                self.threads.insert(before, table);
            }
        }
    }

    pub(super) fn missed(&mut self, key: Key, miss: Miss) {
        let Miss { addr, size, place, last_level } = miss;
        let kept = match self.current.1.entry(key) {
            std::collections::hash_map::Entry::Occupied(kept) => kept.into_mut(),
            std::collections::hash_map::Entry::Vacant(_) if self.kept >= MOST => {
                self.others += 1;
                return;
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                self.kept += 1;
                let fold = Fold::new(Grid { line: self.line, size });
                let place = place.unwrap_or(addr..addr);
                entry.insert(Kept { fold, place, size, misses: 0, last_level: 0 })
            }
        };
        kept.misses += 1;
        kept.last_level += u64::from(last_level);
        kept.fold.push(addr);
    }

    pub(super) fn thread_ended(&mut self, tid: Tid) {
        self.end(Some(tid));
    }

    /// Puts what a thread has missed to what others have that have ended.
    fn end(&mut self, thread: Option<Tid>) {
        let table = match self.current.0 == thread {
            true => std::mem::take(&mut self.current.1),
            false => self.threads.remove(&thread).unwrap_or_default(),
        };
        let mut table: Vec<(Key, Kept)> = table.into_iter().collect();
        table.sort_unstable_by_key(|(key, _)| *key);
        for (key, kept) in table {
            match self.ended.entry(key) {
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert(kept);
                }
                std::collections::hash_map::Entry::Occupied(mut before) => {
                    self.kept -= 1;
                    let before = before.get_mut();
                    before.misses += kept.misses;
                    before.last_level += kept.last_level;
                    before.fold.append(kept.fold);
                }
            }
        }
    }

    /// Begins anew; what there was is returned.
    pub(super) fn anew(&mut self) -> Self {
        let mut new = Self::new(self.line);
        new.current.0 = self.current.0;
        std::mem::replace(self, new)
    }

    /// Forgets all.
    pub(super) fn forget(&mut self) {
        let _ = self.anew();
    }

    pub(super) fn found(mut self) -> Found {
        let mut threads: Vec<Option<Tid>> = self.threads.keys().copied().chain([self.current.0]).collect();
        threads.sort_unstable();
        threads.into_iter().for_each(|thread| self.end(thread));
        let stream = |(key, Kept { fold, place, size, misses, last_level })| Stream {
            key,
            size,
            place,
            misses,
            last_level,
            folded: fold.finish(),
            prefetch: None,
        };
        let mut streams: Vec<Stream> = self.ended.into_iter().map(stream).collect();
        streams.sort_unstable_by_key(|s| s.key);
        Found { streams, line: self.line, others: self.others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(object: u32, addr: u64) -> Key {
        Key { object, site: Site { module: 0, addr }, access: Access::Read }
    }

    fn miss(addr: u64) -> Miss {
        Miss { addr, size: 8, place: Some(4096..9999), last_level: addr.is_multiple_of(128) }
    }

    #[test]
    fn threads_do_not_disturb_one_another() {
        let mut streams = Streams::new(64);
        for n in 0..1000 {
            for thread in 0..4 {
                streams.thread(Tid(thread + 7));
                streams.missed(key(1, 5), miss(4096 + 64_000 * thread as u64 + 64 * n));
            }
        }
        streams.thread_ended(Tid(8));
        streams.thread_ended(Tid(7));
        let found = streams.found();
        let [stream] = &found.streams[..] else { panic!("{found:?}") };
        assert_eq!((stream.misses, stream.last_level, stream.place.start), (4000, 2000, 4096));
        assert_eq!(stream.folded.irregular, 0);
        let grid = Grid { line: 64, size: 8 };
        let got: Vec<u64> = stream.folded.parts.iter().flat_map(|p| p.addresses(0, grid)).collect();
        let of = |thread: u64| (0..1000).map(move |n| 4096 + 64_000 * thread + 64 * n);
        assert_eq!(got, [1, 0, 2, 3].into_iter().flat_map(of).collect::<Vec<u64>>(), "by their ends, then by number");
    }

    #[test]
    fn there_is_an_end_of_what_is_kept() {
        let mut streams = Streams::new(64);
        for n in 0..MOST as u64 + 10 {
            streams.missed(key(1, n), miss(n));
        }
        streams.missed(key(1, 0), miss(0));
        let found = streams.found();
        let sum: u64 = found.streams.iter().map(|s| s.misses).sum();
        assert_eq!((found.streams.len(), found.others, sum), (MOST, 10, MOST as u64 + 1));
    }
}
