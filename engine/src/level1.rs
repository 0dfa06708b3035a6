//! The walk of a thread's first-level data cache, as [`crate::emit::walk`] emits it, for accesses that the engine itself has to
//! make: those of special instructions, and of repeated ones that were interrupted. The thread is stopped meanwhile.
//!
//! It must do the same to the state in the slot as the emitted walk, to the last time; the tests run both side by side.

use crate::arena::{self, Scratch};
use crate::emit::walk::Repeat;
use crate::trace::FirstLevel;

/// Where the state is: 64-bit words by their offset in a slot.
pub(crate) trait Words {
    fn get(&self, at: u64) -> u64;
    fn set(&mut self, at: u64, value: u64);
}

/// What has happened to a line, once there are contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Its address.
    pub(crate) line: u64,
    /// It has been brought in; if not, it has been used for the first time since the context changed.
    pub(crate) loaded: bool,
}

/// See the module's description.
pub(crate) struct Walker<W> {
    pub(crate) words: W,
    pub(crate) cache: FirstLevel,
    /// What is to be recorded of the last access's lines, before its miss.
    pub(crate) touched: Vec<Touched>,
}

impl<W: Words> Walker<W> {
    /// Offset of a line's entry in each of the tables.
    fn entry(&self, line: u64) -> u64 {
        let number = line >> self.cache.line.trailing_zeros();
        number % arena::DATA_ENTRIES * 8
    }

    /// Uses a line; returns whether it was missed.
    fn touch(&mut self, line: u64, time: u64) -> bool {
        let entry = self.entry(line);
        if self.words.get(arena::DATA_TAGS + entry) == line.wrapping_neg() {
            let way = self.words.get(arena::DATA_PLACES + entry);
            self.words.set(arena::DATA_WAYS + way + 8, time);
            return false;
        }
        let set = line >> self.cache.line.trailing_zeros() & u64::from(self.cache.sets - 1);
        let ways = u64::from(self.cache.ways);
        let mut of_set = (0..ways).map(|w| (set * ways + w) * arena::DATA_WAY);
        let holds = |way: &u64| self.words.get(arena::DATA_WAYS + way) == line;
        let found = of_set.clone().find(holds);
        let changed = self.words.get(Scratch::ContextTime as u64);
        match found {
            Some(way) if self.words.get(arena::DATA_WAYS + way + 8) < changed => {
                self.touched.push(Touched { line, loaded: false });
            }
            None if changed != 0 => self.touched.push(Touched { line, loaded: true }),
            _ => {}
        }
        let way = match found {
            Some(way) => way,
            None => {
                let first = of_set.next().unwrap_or(0);
                let time_of = |way: u64| self.words.get(arena::DATA_WAYS + way + 8);
                let way = of_set.fold(first, |least, w| if time_of(w) < time_of(least) { w } else { least });
                let old = self.words.get(arena::DATA_WAYS + way);
                let forgotten = arena::DATA_TAGS + self.entry(old);
                if self.words.get(forgotten) == old.wrapping_neg() {
                    // The address of a line that has another entry.
                    self.words.set(forgotten, (!old & u64::from(self.cache.line)).wrapping_neg());
                }
                self.words.set(arena::DATA_WAYS + way, line);
                way
            }
        };
        self.words.set(arena::DATA_WAYS + way + 8, time);
        self.words.set(arena::DATA_TAGS + entry, line.wrapping_neg());
        self.words.set(arena::DATA_PLACES + entry, way);
        found.is_none()
    }

    /// Accesses `size` bytes, at least one and at most a line; returns whether a line was missed.
    pub(crate) fn access(&mut self, address: u64, size: u64) -> bool {
        self.touched.clear();
        let clock = self.words.get(Scratch::Clock as u64).wrapping_add(2);
        self.words.set(Scratch::Clock as u64, clock);
        let line = |a: u64| a & !u64::from(self.cache.line - 1);
        let (first, last) = (line(address), line(address.wrapping_add(size - 1)));
        let missed = self.touch(first, clock - 1);
        if first == last { missed } else { self.touch(last, clock) | missed }
    }

    /// What a repeated instruction has done: `before` and `after` are rcx, rsi and rdi. Calls `tell` with what there is to
    /// record of an access: what has happened to its lines, its address if it missed, and whether it was at \[rdi\].
    pub(crate) fn repeat(
        &mut self,
        r: Repeat,
        before: [u64; 3],
        after: [u64; 3],
        mut tell: impl FnMut(&[Touched], Option<u64>, bool),
    ) {
        let mask = if r.narrow { u64::from(u32::MAX) } else { u64::MAX };
        let [count, from, to] = before.map(|v| v & mask);
        let [count_after, from_after, to_after] = after.map(|v| v & mask);
        let down = (from_after.wrapping_sub(from) | to_after.wrapping_sub(to)) as i64;
        let (size, line) = (u64::from(r.size), u64::from(self.cache.line));
        let step = if down < 0 { size.wrapping_neg() } else { size };
        let mut left = count.wrapping_sub(count_after) & mask;
        let (mut from, mut to) = (from, to);
        while left > 0 {
            for at_target in r.order() {
                let address = if at_target { to } else { from };
                let missed = self.access(address, size);
                if missed || !self.touched.is_empty() {
                    tell(&self.touched, missed.then_some(address), at_target);
                }
            }
            left -= 1;
            from = from.wrapping_add(step) & mask;
            to = to.wrapping_add(step) & mask;
            if r.contends(self.cache) {
                continue;
            }
            // Those that stay within the lines that the last one was in hit, and change nothing.
            let room = |address: u64| match (address & (line - 1), down < 0) {
                (at, false) if at >= size => (line - at) / size,
                (at, true) if at + 2 * size <= line => at / size + 1,
                _ => 0,
            };
            let skip = r.order().map(|at_target| room(if at_target { to } else { from })).fold(left, u64::min);
            left -= skip;
            from = from.wrapping_add(step.wrapping_mul(skip)) & mask;
            to = to.wrapping_add(step.wrapping_mul(skip)) & mask;
        }
    }
}
