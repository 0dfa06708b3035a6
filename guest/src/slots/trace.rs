//! The trace buffers of slots: which part of one has been recorded and not been read yet, and who may read it.
//!
//! Invariants: every word is read once, in the order in which it was recorded; a segment is not written to while somebody else
//! reads it; where the guest goes on to record is changed only while its thread stands still, or waits for an answer.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use grind_layout::shared_memory::{SharedMemory, read_words};
use grind_layout::{self as layout, SlotWord};

use super::{SlotId, SlotPool};

/// What has been recorded.
#[derive(Debug)]
pub enum Segment {
    /// In the memory where it was recorded.
    There {
        /// The trace buffer.
        memory: Arc<SharedMemory>,
        /// Where it begins in there, in bytes.
        offset: usize,
        /// How many words it has.
        words: usize,
    },
    /// Taken from there, because that could not be mapped.
    Copied(Vec<u32>),
}

impl Segment {
    /// How many words there are.
    pub fn words(&self) -> usize {
        match self {
            Self::There { words, .. } => *words,
            Self::Copied(words) => words.len(),
        }
    }

    /// Copies it over the beginning of `buffer`, which grows if need be; returns how many words there are.
    pub fn read(&self, buffer: &mut Vec<u32>) -> usize {
        match self {
            Self::There { memory, offset, words } => {
                if buffer.len() < *words {
                    buffer.resize(*words, 0);
                }
                memory.read_words(*offset, &mut buffer[..*words]);
                *words
            }
            Self::Copied(words) => {
                buffer.clone_from(words);
                words.len()
            }
        }
    }
}

impl SlotPool {
    /// What has been recorded on a slot since the last time, which goes on in the next segment. Nothing will be written to it
    /// before [`layout::TRACE_SEGMENTS`] - 1 more have been taken.
    pub fn take_trace(&mut self, id: SlotId) -> Option<Segment> {
        let (start, words) = self.unread(id);
        let (begin, next) = layout::trace_segment(start);
        let read = self.read.remove(&id.0).is_some();
        if words == 0 {
            if read {
                // All of it.
                self.set_slot_word(id, SlotWord::TracePos, begin);
            }
            return None;
        }
        let slot = u64::from(id.0) * layout::SLOT_SIZE;
        if !self.traces.contains_key(&id.0)
            && let Ok(m) = SharedMemory::map(&self.file, slot + layout::TRACE_BUFFER, layout::TRACE_ALL as usize)
        {
            self.traces.insert(id.0, Arc::new(m));
        }
        self.set_slot_word(id, SlotWord::TracePos, next);
        Some(match self.traces.get(&id.0) {
            Some(memory) => {
                Segment::There { memory: memory.clone(), offset: (start - layout::TRACE_BUFFER) as usize, words }
            }
            None => {
                let mut copy = Vec::new();
                read_words(&self.file, slot + start, words, &mut copy);
                Segment::Copied(copy)
            }
        })
    }

    /// Where what has been recorded on a slot, and has not been read, begins, and how many words it is.
    fn unread(&self, id: SlotId) -> (u64, usize) {
        let pos = self.slot_word(id, SlotWord::TracePos);
        let (start, _) = layout::trace_segment(pos);
        let end = pos.min(start + layout::TRACE_SIZE);
        let from = self.read.get(&id.0).copied().filter(|read| (start..=end).contains(read)).unwrap_or(start);
        (from, end.saturating_sub(from) as usize / 4)
    }

    /// What has been recorded on a slot, and has not been read, into `buffer`, while its thread runs on, if that is at most so many
    /// words. Nobody reads it again.
    pub fn read_trace_ahead(&mut self, id: SlotId, most: usize, buffer: &mut Vec<u32>) {
        let (from, words) = self.unread(id);
        buffer.clear();
        if (1..=most).contains(&words) {
            read_words(&self.file, u64::from(id.0) * layout::SLOT_SIZE + from, words, buffer);
            self.read.insert(id.0, from + 4 * words as u64);
        }
    }

    /// Drops what has been recorded on a slot since the last time.
    pub fn drop_trace(&mut self, id: SlotId) {
        self.read.remove(&id.0);
        let (start, _) = layout::trace_segment(self.slot_word(id, SlotWord::TracePos));
        self.set_slot_word(id, SlotWord::TracePos, start);
    }

    /// Bytes that the present segment of the trace buffer has room for.
    pub fn trace_room(&self, id: SlotId) -> u64 {
        let pos = self.slot_word(id, SlotWord::TracePos);
        (layout::trace_segment(pos).0 + layout::TRACE_SIZE).saturating_sub(pos)
    }

    /// The last `n` words of the trace buffer.
    pub fn last_record(&self, id: SlotId, n: usize) -> Vec<u32> {
        let end = self.slot_word(id, SlotWord::TracePos);
        let mut words = Vec::new();
        if let Some(at) = end.checked_sub(4 * n as u64).filter(|&at| at >= layout::trace_segment(end).0) {
            read_words(&self.file, u64::from(id.0) * layout::SLOT_SIZE + at, n, &mut words);
        }
        words
    }

    /// Writes a record, for which there must be room.
    pub fn append_trace(&self, id: SlotId, record: &[u32]) {
        let at = self.slot_word(id, SlotWord::TracePos);
        let bytes: Vec<u8> = record.iter().flat_map(|w| w.to_le_bytes()).collect();
        if self.file.write_all_at(&bytes, u64::from(id.0) * layout::SLOT_SIZE + at).is_ok() {
            self.set_slot_word(id, SlotWord::TracePos, at + bytes.len() as u64);
        }
    }

    /// What has been recorded on a slot since the last time, into `buffer`; it goes on where that begins.
    pub fn read_trace(&mut self, id: SlotId, buffer: &mut Vec<u32>) {
        let (from, words) = self.unread(id);
        buffer.clear();
        if words > 0 {
            read_words(&self.file, u64::from(id.0) * layout::SLOT_SIZE + from, words, buffer);
        }
        if self.read.remove(&id.0).is_some() || words > 0 {
            self.set_slot_word(id, SlotWord::TracePos, layout::trace_segment(from).0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::tests::pool;

    /// Records words as the guest does; what is taken of them.
    fn record(pool: &mut SlotPool, id: SlotId, words: &[u32]) -> Segment {
        pool.append_trace(id, words);
        pool.take_trace(id).expect("something recorded")
    }

    #[test]
    fn segments_follow_one_another_and_come_round() {
        let mut pool = pool();
        let id = pool.take().expect("a slot");
        pool.set_slot_word(id, SlotWord::TracePos, layout::TRACE_BUFFER);
        assert!(pool.take_trace(id).is_none(), "nothing has been recorded");
        let taken: Vec<Segment> =
            (0..layout::TRACE_SEGMENTS as u32).map(|n| record(&mut pool, id, &[n, n + 1, n + 2])).collect();
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), layout::TRACE_BUFFER, "round");
        let mut buffer = Vec::new();
        for (n, segment) in taken.iter().enumerate() {
            let words = segment.read(&mut buffer);
            assert_eq!(buffer[..words], [n as u32, n as u32 + 1, n as u32 + 2]);
        }
        // A full one ends where the page begins that cannot be written.
        let end = layout::TRACE_BUFFER + layout::TRACE_SIZE;
        pool.set_slot_word(id, SlotWord::TracePos, end);
        assert_eq!(pool.trace_room(id), 0);
        assert_eq!(pool.take_trace(id).expect("a full one").read(&mut buffer), layout::TRACE_SIZE as usize / 4);
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), layout::TRACE_BUFFER + layout::TRACE_STRIDE);
    }

    #[test]
    fn what_has_been_read_while_a_thread_ran_on_is_not_read_again() {
        let mut pool = pool();
        let id = pool.take().expect("a slot");
        let begin = layout::TRACE_BUFFER;
        pool.set_slot_word(id, SlotWord::TracePos, begin);
        let ahead = |pool: &mut SlotPool, most| {
            let mut buffer = vec![9];
            pool.read_trace_ahead(id, most, &mut buffer);
            buffer
        };
        let rest = |pool: &mut SlotPool| {
            let mut buffer = vec![9];
            pool.read_trace(id, &mut buffer);
            buffer
        };
        assert_eq!(ahead(&mut pool, 10), []);
        pool.append_trace(id, &[1, 2, 3]);
        assert_eq!(ahead(&mut pool, 2), [], "too much at once");
        assert_eq!(ahead(&mut pool, 3), [1, 2, 3]);
        pool.append_trace(id, &[4]);
        assert_eq!(ahead(&mut pool, 3), [4]);
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), begin + 16, "it goes on where it was");
        pool.append_trace(id, &[5, 6]);
        assert_eq!(rest(&mut pool), [5, 6]);
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), begin);
        // All of it, and then it is asked for, or dropped.
        pool.append_trace(id, &[7]);
        assert_eq!(ahead(&mut pool, 3), [7]);
        assert_eq!(rest(&mut pool), []);
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), begin);
        pool.append_trace(id, &[7]);
        assert_eq!(ahead(&mut pool, 3), [7]);
        pool.drop_trace(id);
        pool.append_trace(id, &[8]);
        assert_eq!(rest(&mut pool), [8]);
        // A full one, of which some has been read, and one of which all has: its thread goes on at its beginning.
        let size = layout::TRACE_SIZE as usize / 4;
        pool.append_trace(id, &vec![1; size - 2]);
        assert_eq!(ahead(&mut pool, size).len(), size - 2);
        pool.append_trace(id, &[2, 3]);
        let mut buffer = Vec::new();
        let n = pool.take_trace(id).expect("the rest").read(&mut buffer);
        assert_eq!(buffer[..n], [2, 3]);
        let second = begin + layout::TRACE_STRIDE;
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), second);
        pool.append_trace(id, &vec![4; size]);
        assert_eq!((ahead(&mut pool, size).len(), pool.trace_room(id)), (size, 0));
        assert!(pool.take_trace(id).is_none());
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), second);
        pool.append_trace(id, &[5]);
        assert_eq!(rest(&mut pool), [5]);
    }

    #[test]
    fn a_slot_is_not_used_again_while_its_trace_is_read() {
        let mut pool = pool();
        let id = pool.take().expect("a slot");
        pool.set_slot_word(id, SlotWord::TracePos, layout::TRACE_BUFFER);
        let segment = record(&mut pool, id, &[7, 8]);
        pool.give_back(id);
        let other = pool.take().expect("another slot");
        assert_ne!(other, id);
        assert_eq!(pool.take(), None, "all are in use");
        let mut buffer = Vec::new();
        let words = segment.read(&mut buffer);
        assert_eq!(buffer[..words], [7, 8]);
        drop(segment);
        assert_eq!(pool.take(), Some(id));
        assert_eq!(pool.slot_word(id, SlotWord::TracePos), 0, "zeroed");
    }
}
