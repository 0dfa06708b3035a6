//! Slots: where a thread's counters live (see `layout`). One file a program image holds them all; forked processes use other
//! slots of the same file, so neither threads nor forks need a system call in the guest to get one. A slot is handed out
//! zeroed; whoever gives it back has read it.

mod mapped;
mod owners;
mod trace;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

use grind_codegen::level1::{self, Words};
use grind_layout::shared_memory::SharedMemory;
use grind_layout::{self as layout, SlotWord};
use grind_trace::follow::{Calls, FIRST, Frame, NO_CALL_EDGE, TOTALS, WINDOW};
use grind_trace::{FirstLevel, TraceSettings};
use grind_types::addr::CacheAddr;
use grind_types::hash::Map;
use nix::fcntl::{FallocateFlags, fallocate};

use mapped::Mapped;
pub use trace::Segment;

/// Number of a slot in its pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotId(pub u32);

/// The slots of one image and its forks.
#[derive(Debug)]
pub struct SlotPool {
    file: File,
    base: u64,
    free: Vec<u32>,
    /// Free ones whose header shows another slot's in some process: never to be a thread's first slot again.
    aliases: Vec<u32>,
    next: u32,
    count: u32,
    /// Trace buffers of slots, as grind sees them, once they have been needed.
    traces: HashMap<u32, Arc<SharedMemory>>,
    mapped: Mapped,
    /// Slots that have been given large pages.
    large: Vec<u32>,
    /// By slot: up to where its trace buffer has been read while its thread ran on.
    read: HashMap<u32, u64>,
    /// Given back, but somebody still reads their trace buffers.
    lingering: Vec<u32>,
}

/// Slots that get large pages.
const MOST_LARGE: usize = 4;

/// Words of a frame as emitted code has it.
type FrameWords = [u64; (layout::FRAME / 8) as usize];

fn frame_words(frame: &Frame, returns: &[CacheAddr], odd: CacheAddr) -> FrameWords {
    let at =
        if frame.call_edge == NO_CALL_EDGE { 0 } else { returns.get(frame.call_edge as usize).map_or(0, |at| at.0) };
    let mut words = FrameWords::default();
    words[0] = frame.sp;
    words[(layout::FRAME_RETURN / 8) as usize] = if at == 0 { odd.0 } else { at };
    words[(layout::FRAME_CALL_EDGE / 8) as usize] = frame.call_edge.into();
    for (i, total) in frame.entered.into_iter().enumerate() {
        words[(layout::frame_entered(i) / 8) as usize] = total;
    }
    words
}

/// Frames that are read at a time to find one that is as it was.
const LOOKED_AT: usize = 8;

impl SlotPool {
    /// Slots in `file`, which is mapped at `base` in the guest.
    pub fn new(file: File, base: u64, count: u32) -> Self {
        Self {
            file,
            base,
            free: Vec::new(),
            aliases: Vec::new(),
            next: 0,
            count,
            traces: HashMap::new(),
            read: HashMap::new(),
            mapped: Mapped::default(),
            large: Vec::new(),
            lingering: Vec::new(),
        }
    }

    /// Asks for large pages where a thread that simulates caches finds what it uses all the time. Only a few threads get them,
    /// since there is much on such a page that is never used.
    pub fn enlarge(&mut self, id: SlotId) {
        if self.large.contains(&id.0) || self.large.len() >= MOST_LARGE {
            return;
        }
        self.large.push(id.0);
        for part in layout::LARGE_PARTS {
            let at = u64::from(id.0) * layout::SLOT_SIZE + part;
            if let Ok(memory) = SharedMemory::map_aligned(&self.file, at, layout::LARGE_PAGE as usize) {
                memory.collapse(0);
            }
        }
    }

    /// A zeroed slot; `None` when all are in use.
    pub fn take(&mut self) -> Option<SlotId> {
        for id in std::mem::take(&mut self.lingering) {
            self.give_back(SlotId(id));
        }
        if let Some(id) = self.free.pop() {
            return Some(SlotId(id));
        }
        (self.next < self.count).then(|| {
            self.next += 1;
            SlotId(self.next - 1)
        })
    }

    /// So many more can be taken at least.
    #[inline]
    pub fn room(&self) -> usize {
        (self.count - self.next) as usize
    }

    /// A slot for counters only, zeroed, whose header is going to be another one's.
    pub fn take_alias(&mut self) -> Option<SlotId> {
        if let Some(id) = self.aliases.pop() {
            return Some(SlotId(id));
        }
        // The last ones are for threads.
        if self.is_low() { None } else { self.take() }
    }

    /// The thread of this slot begins with no frame, unless it has begun: its first total is not 0 ([`FIRST`]).
    pub fn begin_calls(&self, id: SlotId) {
        if self.slot_word(id, SlotWord::TopFrame) == 0 {
            self.set_slot_word(id, SlotWord::TopFrame, layout::FRAMES);
            self.set_slot_word(id, SlotWord::Total, FIRST);
        }
    }

    /// Gives back what [`SlotPool::take_alias`] gave.
    #[inline]
    pub fn give_back_alias(&mut self, id: SlotId) {
        if self.punch(id, layout::COUNTERS, layout::TRACE_AREA - layout::COUNTERS) {
            self.aliases.push(id.0);
        }
    }

    /// Makes the first `n` counters 0, of which no others are in use.
    #[inline]
    pub fn clear_counters(&self, id: SlotId, n: u32) {
        if !self.punch(id, layout::COUNTERS, layout::TRACE_AREA - layout::COUNTERS) {
            self.set_words(id, layout::COUNTERS, &vec![0; n as usize]);
        }
    }

    fn punch(&self, id: SlotId, offset: u64, len: u64) -> bool {
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let start = u64::from(id.0) * layout::SLOT_SIZE + offset;
        fallocate(&self.file, flags, start as i64, len as i64).is_ok()
    }

    /// The slot that starts at `gs`.
    #[inline]
    pub fn at(&self, gs: u64) -> Option<SlotId> {
        let offset = gs.checked_sub(self.base)?;
        let id = offset / layout::SLOT_SIZE;
        (offset.is_multiple_of(layout::SLOT_SIZE) && id < u64::from(self.count)).then_some(SlotId(id as u32))
    }

    fn left(&self) -> usize {
        self.free.len() + (self.count - self.next) as usize
    }

    /// Few are left: births must be watched.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.left() <= (self.count as usize / 4).clamp(1, 256)
    }

    /// So few are left that births which have begun already may need them.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.left() <= (self.count as usize / 32).min(32)
    }

    /// Gives a slot back; its contents are lost.
    pub fn give_back(&mut self, id: SlotId) {
        self.read.remove(&id.0);
        if let Some(memory) = self.traces.remove(&id.0)
            && Arc::strong_count(&memory) > 1
        {
            self.traces.insert(id.0, memory);
            self.lingering.push(id.0);
            return;
        }
        // Without holes in files (never seen on a memfd), the slot is simply not used again.
        if self.punch(id, 0, layout::SLOT_SIZE) {
            self.free.push(id.0);
        }
    }

    /// Where the slots begin in the guest, and how many bytes they take.
    #[inline]
    pub fn span(&self) -> (u64, u64) {
        (self.base, u64::from(self.count) * layout::SLOT_SIZE)
    }

    /// What gs must be for a thread to use the slot.
    #[inline]
    pub fn gs(&self, id: SlotId) -> u64 {
        self.base + u64::from(id.0) * layout::SLOT_SIZE
    }

    /// Reads a slot word.
    #[inline]
    pub fn slot_word(&self, id: SlotId, word: SlotWord) -> u64 {
        self.slot_word_at(id, word as u16)
    }

    /// Reads a slot word by its offset.
    #[inline]
    pub fn slot_word_at(&self, id: SlotId, offset: u16) -> u64 {
        self.word(id, layout::HEADER + u64::from(offset))
    }

    /// Writes a slot word.
    #[inline]
    pub fn set_slot_word(&self, id: SlotId, word: SlotWord, v: u64) {
        self.set_words(id, word.at().into(), &[v]);
    }

    /// Sees to it that the clock of the caches of a slot is not 0, which says of a line of code that it is not in the cache.
    #[inline]
    pub fn start_clock(&self, id: SlotId) {
        if self.slot_word(id, SlotWord::Clock) == 0 {
            self.set_slot_word(id, SlotWord::Clock, 1);
        }
    }

    /// The slot words of a slot, where the guest has them.
    #[inline]
    pub fn header(&self, id: SlotId) -> Option<Rc<SharedMemory>> {
        self.mapped.part(&self.file, id.0, layout::HEADER, layout::HEADER_SIZE as usize).map(|(memory, _)| memory)
    }

    /// Copies the slot words of a thread: it goes on with another slot.
    #[inline]
    pub fn copy_slot_words(&self, from: SlotId, to: SlotId) {
        let mut words = [0; layout::THREAD_WORDS];
        self.read(from, layout::HEADER, &mut words);
        self.write(to, layout::HEADER, &words);
        self.copy_allocator_call(from, to);
    }

    /// The thread of slot `to` is in the same call of an allocator as that of `from`.
    pub fn copy_allocator_call(&self, from: SlotId, to: SlotId) {
        for word in [SlotWord::AllocatorFrame, SlotWord::AllocatorResult] {
            self.set_slot_word(to, word, self.slot_word(from, word));
        }
    }

    /// Reads a word at any offset of a slot.
    #[inline]
    pub fn word(&self, id: SlotId, offset: u64) -> u64 {
        let mut word = [0];
        self.read_words_at(id, offset, &mut word);
        word[0]
    }

    /// Writes words from any offset of a slot on.
    pub fn set_words(&self, id: SlotId, offset: u64, words: &[u64]) {
        let mapped = self.mapped.part(&self.file, id.0, offset, words.len() * 8);
        if let (Some((memory, at)), [word]) = (&mapped, words) {
            memory.store_u64(*at, *word);
            return;
        }
        let bytes = bytes_of(words);
        match mapped {
            Some((memory, at)) => memory.write(at, &bytes),
            None => self.write(id, offset, &bytes),
        }
    }

    /// The words of a slot, as the state of its thread's caches.
    #[inline]
    pub fn words(&self, id: SlotId) -> SlotWords<'_> {
        SlotWords { pool: self, slot: id }
    }

    /// The state of a thread's data cache, read as a whole.
    pub fn data_cache(&self, id: SlotId, cache: FirstLevel, kept: DataKept) -> DataCache {
        let ways = 2 * u64::from(cache.sets) * u64::from(cache.ways);
        let parts = [
            (u64::from(SlotWord::Clock.at()), 1),
            (u64::from(SlotWord::ContextTime.at()), 1),
            (layout::DATA_WAYS, ways),
            (layout::DATA_OWN, ways),
            (layout::DATA_TAGS, layout::DATA_ENTRY * layout::DATA_ENTRIES / 8),
            (layout::DATA_PLACES, layout::DATA_ENTRY * layout::DATA_ENTRIES / 8),
            match kept {
                DataKept::Uses => (layout::DATA_USES, ways),
                DataKept::Pages => (layout::DATA_PAGES, layout::PAGE_WAY * layout::MOST_PAGES / 8),
                DataKept::Bytes => (layout::BYTES, 2 * layout::DATA_ENTRY * layout::DATA_ENTRIES / 8),
                DataKept::Nothing => (layout::DATA_USES, 0),
            },
        ];
        DataCache(parts.map(|(at, n)| {
            let mut bytes = vec![0; n as usize * 8];
            self.read(id, at, &mut bytes);
            (at, bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
        }))
    }

    /// Writes it back.
    #[inline]
    pub fn set_data_cache(&self, id: SlotId, state: &DataCache) {
        for (at, words) in &state.0 {
            self.write(id, *at, &bytes_of(words));
        }
    }

    /// Of a thread it is not known any more which bytes of lines it has used. `unknown`: what of lines that it has not used for long it
    /// is not known to have used from here on.
    pub fn forget_bytes(&self, id: SlotId, unknown: u64) {
        self.set_slot_word(id, SlotWord::BytesUnknown, unknown);
        let entries = vec![unknown; (2 * layout::DATA_ENTRIES) as usize];
        self.write(id, layout::BYTES, &bytes_of(&entries));
    }

    /// Copies the state of caches and predictors: the child of a fork goes on with it. `ranges` are offsets in a slot.
    pub fn copy_ranges(&self, from: SlotId, to: SlotId, ranges: &[(u64, u64)]) {
        let mut bytes = Vec::new();
        for &(at, len) in ranges {
            bytes.resize(len as usize, 0);
            self.read(from, at, &mut bytes);
            self.write(to, at, &bytes);
        }
    }

    /// What emitted code knows of the calls of the thread on a slot. `shown`: what it knew the last time; `call_edges`: the call edges
    /// of frames, by where their returns are dealt with.
    pub fn calls(&self, id: SlotId, shown: &[Frame], call_edges: &Map<CacheAddr, u32>) -> Calls {
        let mut words = [0; 1 + TOTALS];
        self.read_words_at(id, u64::from(SlotWord::TopFrame.at()), &mut words);
        let [top, totals @ ..] = words;
        let most = layout::FRAMES_SIZE / layout::FRAME - 1;
        let n = (top.saturating_sub(layout::FRAMES) / layout::FRAME).min(most) as usize;
        const WORDS: usize = size_of::<FrameWords>() / 8;
        // What is as it was: a frame that is the same has the same ones below it. Those that were pushed since are not below the
        // total at which the last of the others was; and none that only the sink can pop is one of them.
        let newest = shown.last().map_or(0, |frame| frame.entered[0]);
        let call_edge = |w: &FrameWords| {
            call_edges.get(&CacheAddr(w[(layout::FRAME_RETURN / 8) as usize])).copied().unwrap_or(NO_CALL_EDGE)
        };
        let same = |w: &FrameWords, known: &Frame| {
            w[..2] == [known.sp, known.entered[0]] && (known.entered[0] < newest || call_edge(w) == NO_CALL_EDGE)
        };
        let mut kept = n.min(shown.len());
        let mut read = Vec::new();
        let mut first = n;
        loop {
            let from = kept.saturating_sub(LOOKED_AT);
            let mut more = vec![0; (first - from) * WORDS];
            self.read_words_at(id, layout::FRAMES + layout::FRAME * (from as u64 + 1), &mut more);
            more.append(&mut read);
            (read, first) = (more, from);
            let frames = read.as_chunks::<WORDS>().0;
            while kept > first && !same(&frames[kept - 1 - first], &shown[kept - 1]) {
                kept -= 1;
            }
            if kept > first || kept == 0 {
                break;
            }
        }
        let frame = |w: &FrameWords| Frame {
            sp: w[0],
            entered: std::array::from_fn(|i| w[(layout::frame_entered(i) / 8) as usize]),
            call_edge: call_edge(w),
        };
        let frames = read.as_chunks::<WORDS>().0[kept - first..].iter().map(frame).collect();
        Calls { totals, kept, frames, hides: false, active: Vec::new() }
    }

    fn read_words_at(&self, id: SlotId, offset: u64, words: &mut [u64]) {
        if let Some((memory, at)) = self.mapped.part(&self.file, id.0, offset, words.len() * 8) {
            words.iter_mut().enumerate().for_each(|(i, word)| *word = memory.load_u64(at + 8 * i));
            return;
        }
        let mut bytes = vec![0; words.len() * 8];
        // A hole reads as zeros, which is what it means.
        self.read(id, offset, &mut bytes);
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }

    /// Lets emitted code go on with these calls. `returns`: where returns of call edges are dealt with; `odd`: where others are.
    pub fn set_calls(&self, id: SlotId, calls: &Calls, returns: &[CacheAddr], odd: CacheAddr) {
        // A stack pointer is never below the lowest one, so that the check of each bridge fails there.
        let sp = if calls.hides { 0 } else { u64::MAX };
        let bottom = Frame { sp, entered: [0; TOTALS], call_edge: NO_CALL_EDGE };
        debug_assert!(calls.kept + calls.frames.len() <= WINDOW);
        let words = |f: &Frame| frame_words(f, returns, odd);
        // Below all, one that only the sink can pop.
        let new: Vec<u64> =
            (calls.kept == 0).then_some(&bottom).into_iter().chain(&calls.frames).flat_map(words).collect();
        let first = if calls.kept == 0 { 0 } else { calls.kept as u64 + 1 };
        self.set_words(id, layout::FRAMES + layout::FRAME * first, &new);
        let top = layout::FRAMES + layout::FRAME * (calls.kept + calls.frames.len()) as u64;
        let [a, b, c, d, e] = calls.totals;
        self.set_words(id, u64::from(SlotWord::TopFrame.at()), &[top, a, b, c, d, e]);
        for &(function, n) in &calls.active {
            if function < layout::MOST_FUNCTIONS {
                self.set_words(id, layout::ACTIVE + 8 * u64::from(function), &[n]);
            }
        }
    }

    /// The sink knows all frames of the thread on a slot; `entered` is the total at the entry of the innermost one.
    #[inline]
    pub fn frames_known(&self, id: SlotId, entered: u64) {
        let top = self.slot_word(id, SlotWord::TopFrame);
        self.set_words(id, u64::from(SlotWord::ToldFrame.at()), &[top, entered]);
    }

    /// Writes bytes from any offset of a slot on.
    ///
    /// # Panics
    /// Panics if the memory cannot be had: what is not written would be counted wrong, or lead the program astray.
    #[inline]
    pub fn write(&self, id: SlotId, offset: u64, bytes: &[u8]) {
        if let Err(e) = self.file.write_all_at(bytes, u64::from(id.0) * layout::SLOT_SIZE + offset) {
            panic!("{} bytes at {offset:#x} of slot {} cannot be written: {e}", bytes.len(), id.0);
        }
    }

    /// Reads bytes from any offset of a slot on.
    fn read(&self, id: SlotId, offset: u64, bytes: &mut [u8]) {
        if let Err(e) = self.file.read_exact_at(bytes, u64::from(id.0) * layout::SLOT_SIZE + offset) {
            panic!("{} bytes at {offset:#x} of slot {} cannot be read: {e}", bytes.len(), id.0);
        }
    }

    /// Makes the state of caches and predictors all zeros. `ranges` are offsets in a slot, and lengths.
    #[inline]
    pub fn clear_ranges(&self, id: SlotId, ranges: &[(u64, u64)]) {
        ranges.iter().for_each(|&(at, len)| self.write(id, at, &vec![0; len as usize]));
    }

    /// See [`level1::forget_lines`].
    pub fn forget_lines(&self, id: SlotId, cache: FirstLevel) {
        let mut state = self.data_cache(id, cache, DataKept::Nothing);
        level1::forget_lines(&mut state, cache);
        self.set_data_cache(id, &state);
    }

    /// Takes `n` off a counter; returns what remains.
    pub fn take_off_counter(&self, id: SlotId, counter: u32, n: u64) -> u64 {
        let at = u64::from(layout::counter_offset(counter));
        let mut b = [0; 8];
        self.read(id, at, &mut b);
        let remains = u64::from_le_bytes(b).wrapping_sub(n);
        self.write(id, at, &remains.to_le_bytes());
        remains
    }

    /// Adds the first `n` counters to `sum` (grown as needed).
    #[inline]
    pub fn add_counters(&self, id: SlotId, n: u32, sum: &mut Vec<u64>) {
        if sum.len() < n as usize {
            sum.resize(n as usize, 0);
        }
        self.each_counter(id, n, |counter, n| sum[counter as usize] = sum[counter as usize].wrapping_add(n));
    }

    /// Calls `add` for every counter of the first `n` that is not 0.
    pub fn each_counter(&self, id: SlotId, n: u32, mut add: impl FnMut(u32, u64)) {
        let n = n as usize;
        let mut buf = vec![0; (n * 8).min(1 << 16)];
        let mut done = 0;
        while done < n {
            let k = (n - done).min(buf.len() / 8);
            let bytes = &mut buf[..k * 8];
            self.read(id, layout::COUNTERS + done as u64 * 8, bytes);
            for (i, b) in bytes.as_chunks::<8>().0.iter().enumerate().filter(|(_, b)| **b != [0; 8]) {
                add((done + i) as u32, u64::from_le_bytes(*b));
            }
            done += k;
        }
    }
}

/// See [`SlotPool::words`]. A hole reads as zeros, which is what it means.
pub struct SlotWords<'a> {
    pool: &'a SlotPool,
    slot: SlotId,
}

impl Words for SlotWords<'_> {
    fn get(&self, at: u64) -> u64 {
        let mut b = [0; 8];
        self.pool.read(self.slot, at, &mut b);
        u64::from_le_bytes(b)
    }

    fn set(&mut self, at: u64, value: u64) {
        self.pool.write(self.slot, at, &value.to_le_bytes());
    }

    fn set_all(&mut self, at: u64, values: &[u64]) {
        self.pool.write(self.slot, at, &bytes_of(values));
    }
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// What is kept of a data cache beside its lines and their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKept {
    /// Nothing.
    Nothing,
    /// How lines are used.
    Uses,
    /// Of which pages they are.
    Pages,
    /// Which bytes of them are used.
    Bytes,
}

impl DataKept {
    /// What these settings want kept.
    #[must_use]
    pub fn by(settings: &TraceSettings) -> Self {
        match settings {
            _ if settings.keeps_uses() => Self::Uses,
            _ if settings.keeps_bytes() => Self::Bytes,
            TraceSettings { tlbs: Some(_), .. } => Self::Pages,
            _ => Self::Nothing,
        }
    }
}

/// See [`SlotPool::data_cache`]: parts of a slot, by their offsets.
pub struct DataCache([(u64, Vec<u64>); 7]);

impl DataCache {
    fn place(&self, at: u64) -> Option<(usize, usize)> {
        let part = self.0.iter().position(|(from, words)| (*from..from + 8 * words.len() as u64).contains(&at))?;
        Some((part, (at - self.0[part].0) as usize / 8))
    }
}

impl Words for DataCache {
    fn get(&self, at: u64) -> u64 {
        self.place(at).map_or(0, |(part, n)| self.0[part].1[n])
    }

    fn set(&mut self, at: u64, value: u64) {
        if let Some((part, n)) = self.place(at) {
            self.0[part].1[n] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn pool() -> SlotPool {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(2 * layout::SLOT_SIZE).expect("room for slots");
        SlotPool::new(file, layout::SLOTS_HINT, 2)
    }

    #[test]
    fn words_are_the_same_through_mappings_and_the_file() {
        let n = mapped::MOST as u32 + 3;
        let file = tempfile::tempfile().expect("a file");
        file.set_len(u64::from(n) * layout::SLOT_SIZE).expect("room for slots");
        let pool = SlotPool::new(file, layout::SLOTS_HINT, n);
        let at = |id: u32, offset: u64| u64::from(id) * layout::SLOT_SIZE + offset;
        for id in 0..n {
            pool.set_slot_word(SlotId(id), SlotWord::Request, (id + 7).into());
        }
        for id in 0..n {
            let mut word = [0; 8];
            pool.file.read_exact_at(&mut word, at(id, u64::from(SlotWord::Request.at()))).expect("a word");
            assert_eq!(u64::from_le_bytes(word), u64::from(id + 7));
            pool.file.write_all_at(&3u64.to_le_bytes(), at(id, u64::from(SlotWord::Answer.at()))).expect("room");
            assert_eq!(pool.slot_word(SlotId(id), SlotWord::Answer), 3);
        }
        assert!(pool.header(SlotId(0)).is_some() && pool.header(SlotId(n - 1)).is_none());
        // Frames, in a pool of which no mapping has been made, and in this one, which has no more.
        for pool in [&self::pool(), &pool] {
            pool.set_words(SlotId(1), layout::FRAMES + 8, &[4, 5, 6]);
            let mut bytes = [0; 24];
            pool.file.read_exact_at(&mut bytes, at(1, layout::FRAMES + 8)).expect("words");
            assert_eq!(bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect::<Vec<_>>(), [4, 5, 6]);
            assert_eq!(pool.word(SlotId(1), layout::FRAMES + 16), 5);
        }
    }
}
