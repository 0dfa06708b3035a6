//! Guesses of the lines that are needed next, from those that a first-level cache did not have.
//!
//! Three rules, each that of processors that were built, in its plainest form: the next line; the same step again, by
//! instruction; the next lines of a stream in a page. What is guessed depends on nothing but the accesses that are told. Nothing
//! here knows what a cache holds: a guess may be there already.
//!
//! Sources: J. Baer, T. Chen, "An Effective On-Chip Preloading Scheme to Reduce Data Access Penalty" (Supercomputing 1991; the
//! table of steps and its four states); Intel 64 and IA-32 Architectures Optimization Reference Manual, "Hardware Prefetching"
//! (one stream forwards or backwards in a page of 4 KiB, 32 streams, two lines at a time).

use std::collections::HashSet;
use std::fmt;

/// Which prefetcher there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// None.
    #[default]
    None,
    /// The line behind each that is asked for.
    NextLine,
    /// For each instruction that has gone on by the same step: that step once more. Data only.
    Stride,
    /// In a page in which three accesses in a row went the same way: the next two lines that way, up to its end.
    Stream,
}

impl Prefetch {
    /// All, by name.
    pub const NAMES: &[&str] = &["none", "nextline", "stride", "stream"];

    /// That of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::None, Self::NextLine, Self::Stride, Self::Stream].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Prefetch {
    /// Whether most of the lines that an instruction asks for, at these addresses one after the other, have been guessed before, by what it has
    /// asked for itself. A line has `line` bytes.
    #[must_use]
    pub fn covers(self, line: u32, instruction: u64, addresses: impl Iterator<Item = u64>) -> bool {
        let bits = line.max(1).ilog2();
        let (mut prefetcher, mut guessed) = (Prefetcher::new(self, bits), HashSet::new());
        let (mut asked, mut known) = (0u32, 0u32);
        for addr in addresses {
            asked += 1;
            known += u32::from(guessed.contains(&(addr >> bits)));
            guessed.extend(prefetcher.follow(instruction, addr, true).into_iter().flatten());
        }
        known > asked / 2
    }
}

/// Instructions whose steps are known at a time.
const STEPS: usize = 64;

/// Streams that are followed at a time.
const STREAMS: usize = 32;

/// Bytes of a page, as a shift.
const PAGE: u32 = 12;

/// How sure a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trust {
    #[default]
    Initial,
    Transient,
    Steady,
    None,
}

/// What is known of an instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    instruction: u64,
    last: u64,
    step: u64,
    trust: Trust,
}

/// What is known of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    page: u64,
    last: u64,
    down: bool,
    /// Steps in a row that went the same way.
    run: u8,
}

/// One thread's prefetcher.
#[derive(Clone, Debug)]
pub(crate) struct Prefetcher {
    kind: Prefetch,
    line_bits: u32,
    /// By [`Prefetcher::slot`].
    steps: Box<[Step]>,
    /// The most recently used first.
    streams: Vec<Stream>,
}

impl Prefetcher {
    /// One that knows nothing yet, for lines of `1 << line_bits` bytes.
    pub(crate) fn new(kind: Prefetch, line_bits: u32) -> Self {
        let steps = if kind == Prefetch::Stride { STEPS } else { 0 };
        Self { kind, line_bits, steps: vec![Step::default(); steps].into(), streams: Vec::new() }
    }

    fn slot(instruction: u64) -> usize {
        (instruction ^ instruction >> 6) as usize % STEPS
    }

    /// The instruction at `instruction` has asked for `addr` (data, or code: itself). Returns the lines to load, by number.
    #[inline]
    pub(crate) fn follow(&mut self, instruction: u64, addr: u64, data: bool) -> [Option<u64>; 2] {
        let line = addr >> self.line_bits;
        let most = u64::MAX >> self.line_bits;
        match self.kind {
            Prefetch::None => [None; 2],
            Prefetch::NextLine => [(line < most).then_some(line + 1), None],
            Prefetch::Stride if !data => [None; 2],
            Prefetch::Stride => {
                let next = self.step(instruction, addr).map(|next| next >> self.line_bits);
                [next.filter(|next| *next != line), None]
            }
            Prefetch::Stream => self.stream(addr >> PAGE, line),
        }
    }

    /// The address that the instruction will access next, if its step is sure.
    fn step(&mut self, instruction: u64, addr: u64) -> Option<u64> {
        let step = &mut self.steps[Self::slot(instruction)];
        if step.instruction != instruction {
            *step = Step { instruction, last: addr, ..Step::default() };
            return None;
        }
        let again = addr == step.last.wrapping_add(step.step);
        let (trust, learn) = match (step.trust, again) {
            (Trust::Initial | Trust::Transient | Trust::Steady, true) => (Trust::Steady, false),
            (Trust::None, true) => (Trust::Transient, false),
            (Trust::Initial, false) => (Trust::Transient, true),
            (Trust::Steady, false) => (Trust::Initial, false),
            (Trust::Transient | Trust::None, false) => (Trust::None, true),
        };
        if learn {
            step.step = addr.wrapping_sub(step.last);
        }
        (step.last, step.trust) = (addr, trust);
        (trust == Trust::Steady).then(|| addr.wrapping_add(step.step))
    }

    fn stream(&mut self, page: u64, line: u64) -> [Option<u64>; 2] {
        match self.streams.iter().position(|stream| stream.page == page) {
            Some(at) => self.streams[..=at].rotate_right(1),
            None => {
                self.streams.truncate(STREAMS - 1);
                self.streams.insert(0, Stream { page, last: line, ..Stream::default() });
            }
        }
        let stream = &mut self.streams[0];
        if line == stream.last {
            return [None; 2];
        }
        let down = line < stream.last;
        stream.run = if down == stream.down { (stream.run + 1).min(2) } else { 1 };
        (stream.last, stream.down) = (line, down);
        if stream.run < 2 {
            return [None; 2];
        }
        // Lines larger than a page have no neighbours in it.
        let lines = PAGE.saturating_sub(self.line_bits);
        [1, 2].map(|n| if down { line.checked_sub(n) } else { line.checked_add(n) }.filter(|l| l >> lines == page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guesses(kind: Prefetch, accesses: &[(u64, u64)]) -> Vec<Vec<u64>> {
        let mut prefetcher = Prefetcher::new(kind, 6);
        let each = |&(instruction, addr): &(u64, u64)| {
            prefetcher.follow(instruction, addr, true).into_iter().flatten().collect()
        };
        accesses.iter().map(each).collect()
    }

    #[test]
    fn names_are_those_of_kinds() {
        for name in Prefetch::NAMES {
            assert_eq!(Prefetch::by_name(name).map(|kind| kind.to_string()).as_deref(), Some(*name));
        }
        assert_eq!(Prefetch::by_name("Stride"), None);
    }

    #[test]
    fn the_next_line_is_the_next() {
        assert_eq!(guesses(Prefetch::NextLine, &[(1, 0), (1, 127), (1, u64::MAX)]), [vec![1], vec![2], vec![]]);
        assert_eq!(guesses(Prefetch::None, &[(1, 0)]), [vec![]; 1]);
    }

    #[test]
    fn a_step_is_sure_when_it_has_come_twice() {
        // Two instructions. A break costs one guess, since the step is kept.
        let a = |addr| (0x1000, addr);
        let b = |addr| (0x1001, addr);
        let told = [a(0), a(256), b(64_000), a(512), b(63_872), a(768), b(63_744), a(7), a(263), b(63_616), a(264)];
        let expected: [&[u64]; 11] = [&[], &[], &[], &[12], &[], &[16], &[994], &[], &[8], &[992], &[]];
        assert_eq!(guesses(Prefetch::Stride, &told), expected);
        // Steps within a line ask for nothing, and code has none.
        assert_eq!(guesses(Prefetch::Stride, &[a(0), a(8), a(16), a(24)]), vec![Vec::<u64>::new(); 4]);
        let mut code = Prefetcher::new(Prefetch::Stride, 6);
        assert!((0..9).all(|n| code.follow(64 * n, 64 * n, false) == [None; 2]));
    }

    #[test]
    fn a_stream_goes_on_to_the_end_of_its_page() {
        let told: Vec<(u64, u64)> = [60, 61, 62, 63, 64, 63, 62, 61].map(|line| (1, line * 64)).into();
        let expected: [&[u64]; 8] = [&[], &[], &[63], &[], &[], &[], &[], &[60, 59]];
        assert_eq!(guesses(Prefetch::Stream, &told), expected);
        // The first lines of memory.
        let told: Vec<(u64, u64)> = [3, 2, 1, 0].map(|line| (1, line * 64)).into();
        let expected: [&[u64]; 4] = [&[], &[], &[0], &[]];
        assert_eq!(guesses(Prefetch::Stream, &told), expected);
    }

    #[test]
    fn the_stream_that_was_used_longest_ago_is_forgotten() {
        let page = |n: u64, line: u64| (1, n << PAGE | line << 6);
        let mut told = vec![page(0, 0), page(0, 1)];
        told.extend((1..32).map(|n| page(n, 0)));
        told.push(page(0, 2));
        told.extend((32..64).map(|n| page(n, 0)));
        told.push(page(0, 3));
        let found = guesses(Prefetch::Stream, &told);
        assert_eq!((&found[33], &found[66]), (&vec![3, 4], &vec![]));
    }
}
