//! How the lines of a thread's code cache have been used, found out when one has to go: from how often each block has been
//! executed, which is told anyway.
//!
//! A line is used by the blocks that have instructions in it, each execution of which is so many fetches of so many parts of
//! it. So a resident line remembers how often they had been executed when it came; the difference is its use. Invariants:
//! instructions of a block follow one another in memory, so all that a block fetches from a line it fetches at one time, and
//! when one of its instructions misses, just the lines before have been used by it; a block that is known only since a line
//! has come has been executed only since.

use std::collections::HashMap;

use crate::usage::parts;

/// In place of a counter: there is none.
pub const NO_COUNTER: u32 = u32::MAX;

/// What one execution of a block is for a line.
#[derive(Clone, Copy, Debug)]
struct User {
    counter: u32,
    /// Instructions that are fetched from it.
    fetches: u32,
    /// The parts of it that they touch.
    parts: u32,
}

/// A line of code.
#[derive(Clone, Debug)]
struct Line {
    number: u64,
    users: Vec<User>,
}

/// Where a site fetches.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// The lines that are looked for, up to two.
    pub lines: [u32; 2],
    /// The counter of its block, unless it is the first instruction of that.
    pub counter: u32,
}

/// What is known of a process's code, by lines.
#[derive(Clone, Debug, Default)]
pub struct Code {
    bits: u32,
    by_number: HashMap<u64, u32>,
    lines: Vec<Line>,
}

/// A line that some part of an instruction lies in.
struct Piece {
    line: u64,
    parts: u32,
}

impl Code {
    /// Nothing is known; lines have `1 << bits` bytes.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self { bits, ..Self::default() }
    }

    fn line(&mut self, number: u64) -> u32 {
        *self.by_number.entry(number).or_insert_with(|| {
            self.lines.push(Line { number, users: Vec::new() });
            self.lines.len() as u32 - 1
        })
    }

    /// The number of a line's address here.
    ///
    /// # Panics
    /// When there is no such line.
    #[must_use]
    pub fn number(&self, line: u32) -> u64 {
        self.lines[line as usize].number
    }

    fn pieces(&self, addr: u64, len: u8) -> impl Iterator<Item = Piece> + use<> {
        let bits = self.bits;
        let last = addr + u64::from(len.max(1)) - 1;
        (addr >> bits..=last >> bits).map(move |line| {
            let start = line << bits;
            let low = addr.saturating_sub(start) as u32;
            let high = (last - start).min((1 << bits) - 1) as u32;
            Piece { line, parts: parts(bits, low, high) }
        })
    }

    /// Learns of a block, of instructions at these addresses with these lengths.
    pub fn add_block(&mut self, block: impl Iterator<Item = (u64, u8)>, counter: u32) {
        for (addr, len) in block {
            for Piece { line, parts } in self.pieces(addr, len) {
                let line = self.line(line) as usize;
                let users = &mut self.lines[line].users;
                match users.last_mut().filter(|u| u.counter == counter) {
                    Some(user) => {
                        user.fetches += 1;
                        user.parts |= parts;
                    }
                    None => users.push(User { counter, fetches: 1, parts }),
                }
            }
        }
    }

    /// Learns of an instruction that may miss, in the block of this counter; only its last byte's line, if `second`.
    pub fn add_fetch(&mut self, addr: u64, len: u8, counter: u32, second: bool) -> Fetch {
        let last = addr + u64::from(len.max(1)) - 1;
        let first = if second { last } else { addr };
        Fetch { lines: [first, last].map(|at| self.line(at >> self.bits)), counter }
    }
}

/// A line as a thread has it.
#[derive(Clone, Debug, Default)]
struct Resident {
    is: bool,
    /// How often each of the line's users had been executed when it came; those that are not here, never.
    before: Vec<u64>,
    /// Fetches that are no executions of blocks, and fewer ones than those.
    more: i64,
    parts: u32,
}

/// The code cache of a thread.
#[derive(Clone, Debug, Default)]
pub struct CodeUse {
    /// By counter: how often the block has been executed.
    executed: Vec<u64>,
    /// By line.
    lines: Vec<Resident>,
    /// By way: the line.
    ways: Vec<Option<u32>>,
}

impl CodeUse {
    /// The block of a counter is executed.
    #[inline]
    pub fn execute(&mut self, counter: u32) {
        match self.executed.get_mut(counter as usize) {
            Some(count) => *count += 1,
            None => self.execute_first(counter),
        }
    }

    #[cold]
    fn execute_first(&mut self, counter: u32) {
        let at = counter as usize;
        self.executed.resize((at + 1).max(2 * self.executed.len()), 0);
        self.executed[at] = 1;
    }

    fn count(&self, counter: u32) -> u64 {
        self.executed.get(counter as usize).copied().unwrap_or(0)
    }

    /// A line comes into `way` because `fetch` has missed it (its second line, if `second`). Returns how the line that was
    /// there has been used: how often, and which parts.
    pub fn replace(&mut self, code: &Code, way: usize, fetch: Fetch, second: bool) -> (u32, u32) {
        let line = fetch.lines[usize::from(second)];
        if way >= self.ways.len() {
            self.ways.resize(way + 1, None);
        }
        let old = self.ways[way].replace(line);
        let used = old.map_or((0, 0), |old| {
            let before = (fetch.counter != NO_COUNTER && code.number(old) < code.number(line)).then_some(fetch.counter);
            let used = self.used(code, old, before);
            self.lines[old as usize].is = false;
            used
        });
        if line as usize >= self.lines.len() {
            self.lines.resize(line as usize + 1, Resident::default());
        }
        let Self { executed, lines, .. } = self;
        let resident = &mut lines[line as usize];
        (resident.is, resident.more, resident.parts) = (true, 0, 0);
        resident.before.clear();
        let counts =
            code.lines[line as usize].users.iter().map(|u| executed.get(u.counter as usize).copied().unwrap_or(0));
        resident.before.extend(counts);
        used
    }

    /// How a line has been used since it came, if the block of `unfinished` has used it, too, but has not been told.
    fn used(&self, code: &Code, line: u32, unfinished: Option<u32>) -> (u32, u32) {
        let resident = &self.lines[line as usize];
        let before = resident.before.iter().copied().chain(std::iter::repeat(0));
        let (mut count, mut parts) = (resident.more, resident.parts);
        for (user, before) in code.lines[line as usize].users.iter().zip(before) {
            let times = self.count(user.counter) - before + u64::from(unfinished == Some(user.counter));
            if times > 0 {
                count = count.saturating_add_unsigned(times.saturating_mul(user.fetches.into()));
                parts |= user.parts;
            }
        }
        (u32::try_from(count.max(0)).unwrap_or(u32::MAX), parts)
    }

    /// An instruction is fetched `times` times (or fewer, if that is negative) beside what blocks say.
    pub fn fetch(&mut self, code: &Code, addr: u64, len: u8, times: i64) {
        for Piece { line, parts } in code.pieces(addr, len) {
            let known = code.by_number.get(&line).and_then(|line| self.lines.get_mut(*line as usize));
            if let Some(resident) = known.filter(|r| r.is) {
                resident.more = resident.more.saturating_add(times);
                resident.parts |= if times > 0 { parts } else { 0 };
            }
        }
    }

    /// The cache is emptied: tells each way's line's use.
    pub fn empty(&mut self, code: &Code, mut tell: impl FnMut(usize, (u32, u32))) {
        for (way, line) in std::mem::take(&mut self.ways).into_iter().enumerate() {
            let Some(line) = line else { continue };
            tell(way, self.used(code, line, None));
            self.lines[line as usize].is = false;
        }
    }
}
