//! What a last level that includes first-level caches would take out of them: lines that it gives up while I1 or D1 of a thread holds them.
//!
//! First-level caches have gone on by the time that a last level is asked for what they missed, so they keep such a line. None of
//! these lines: what was counted is what such a hierarchy does, to the last miss. Any: it is not, and their number says how near it
//! is. (After the first one caches are others than they would be, and so is what is counted of the next.)
//!
//! Whoever simulates first-level caches tells of each line that is brought in what had to go for it, or the way that it takes; so what
//! they hold is known here, line by line, in program order of each thread. Who knows that otherwise only has lines counted
//! ([`Included::counted`]). Invariant: a way holds what was brought into it last.

use std::ops::Range;

use crate::geometry::Geometry;

/// No line: numbers are addresses shifted by a line's size.
const NONE: u64 = u64::MAX;

/// The lines of a first-level cache.
#[derive(Clone, Debug)]
struct Mirror {
    lines: Box<[u64]>,
    ways: usize,
    set_mask: u64,
    line_bits: u32,
}

impl Mirror {
    fn new(shape: Geometry) -> Self {
        let ways = shape.assoc() as usize;
        Self {
            lines: vec![NONE; shape.sets() as usize * ways].into(),
            ways,
            set_mask: u64::from(shape.sets()) - 1,
            line_bits: shape.line_bits(),
        }
    }

    fn set(&self, line: u64) -> Range<usize> {
        let first = (line & self.set_mask) as usize * self.ways;
        first..first + self.ways
    }

    /// `line` takes the place of another one, or an empty one. (Line 0 may go without ever having come.)
    fn replace(&mut self, line: u64, gone: Option<u64>) {
        let set = self.set(line);
        let ways = &mut self.lines[set];
        let place = gone.and_then(|gone| ways.iter().position(|line| *line == gone));
        if let Some(place) = place.or_else(|| ways.iter().position(|line| *line == NONE)) {
            ways[place] = line;
        }
    }

    /// Whether there is a line of these addresses.
    fn holds(&self, addresses: &Range<u64>) -> bool {
        let ends = [addresses.start, addresses.end.wrapping_sub(1)].map(|addr| addr >> self.line_bits);
        (ends[0]..=ends[1]).any(|line| self.lines[self.set(line)].contains(&line))
    }
}

/// What a thread has of its own.
#[derive(Clone, Debug)]
struct Thread {
    number: i32,
    data: Mirror,
    code: Mirror,
    /// Ways of the code cache that the fetch takes whose miss is told next, and whether it is its last line that takes it.
    taken: Vec<(usize, bool)>,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Included {
    /// Of D1 and I1.
    shapes: [Geometry; 2],
    threads: Vec<Thread>,
    /// Which of them runs.
    at: usize,
    counts: Counts,
}

/// Lines of a last level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that it has given up.
    pub left: u64,
    /// Those of them that a first-level cache held.
    pub held: u64,
}

impl Included {
    /// Nothing is in the caches of any thread; `d1` and `i1` are their shapes.
    #[must_use]
    pub fn new(d1: Geometry, i1: Geometry) -> Self {
        Self { shapes: [d1, i1], threads: Vec::new(), at: 0, counts: Counts::default() }
    }

    /// What is told next is of this thread.
    pub fn run(&mut self, number: i32) {
        if self.threads.get(self.at).is_some_and(|thread| thread.number == number) {
            return;
        }
        let known = self.threads.iter().position(|thread| thread.number == number);
        self.at = known.unwrap_or_else(|| {
            let [data, code] = self.shapes.map(Mirror::new);
            self.threads.push(Thread { number, data, code, taken: Vec::new() });
            self.threads.len() - 1
        });
    }

    /// What the thread has of its own is gone.
    pub fn ended(&mut self, number: i32) {
        self.threads.retain(|thread| thread.number != number);
        self.at = usize::MAX;
    }

    /// A copy of the process goes on with one thread, `child`, which has what `thread` has here.
    pub fn forked(&mut self, thread: i32, child: i32) {
        self.threads.retain(|of| of.number == thread);
        self.threads.iter_mut().for_each(|of| of.number = child);
        self.at = usize::MAX;
    }

    /// Nothing has been counted so far.
    pub fn forget(&mut self) {
        self.counts = Counts::default();
    }

    /// D1 brings in the line at one address, and gives up that at the other, if no way was empty.
    #[inline]
    pub fn data(&mut self, line: u64, gone: Option<u64>) {
        if let Some(Thread { data, .. }) = self.threads.get_mut(self.at) {
            data.replace(line >> data.line_bits, gone.map(|gone| gone >> data.line_bits));
        }
    }

    /// The fetch whose miss is told next takes a way of I1, of all sets one behind the other, for its first line, or its last one.
    #[inline]
    pub fn code(&mut self, way: usize, last: bool) {
        if let Some(thread) = self.threads.get_mut(self.at) {
            thread.taken.push((way, last));
        }
    }

    /// The fetch of `len` bytes from `addr` on that has taken these ways.
    #[inline]
    pub fn fetched(&mut self, addr: u64, len: u16) {
        let Some(Thread { code, taken, .. }) = self.threads.get_mut(self.at) else { return };
        for (way, last) in taken.drain(..) {
            let addr = if last { addr.wrapping_add(u64::from(len.max(1)) - 1) } else { addr };
            if let Some(place) = code.lines.get_mut(way) {
                *place = addr >> code.line_bits;
            }
        }
    }

    /// The last level gives these addresses up.
    #[inline]
    pub fn left(&mut self, addresses: &Range<u64>) {
        let holds = |thread: &Thread| thread.data.holds(addresses) || thread.code.holds(addresses);
        let held = self.threads.iter().any(holds);
        self.counted(held);
    }

    /// It gives a line up that a first-level cache holds, or not.
    #[inline]
    pub fn counted(&mut self, held: bool) {
        self.counts.left += 1;
        self.counts.held += u64::from(held);
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
