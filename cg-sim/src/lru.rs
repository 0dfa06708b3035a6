//! A set-associative cache that replaces the least recently used line.
//!
//! Lines are known by their number, the address divided by the line size. A set is a contiguous list of numbers, the most
//! recently used first. All entries start as line 0, so line 0 hits from the start and no other line does: that is the
//! reference's behaviour, and the reason why "empty" needs no mark: another line is never numbered 0, whatever its set.

use crate::geometry::Geometry;

/// The tags of one cache.
#[derive(Clone, Debug)]
pub struct Lru {
    /// `assoc` line numbers for each set.
    lines: Box<[u64]>,
    set_mask: u64,
    assoc: usize,
    line_bits: u32,
}

impl Lru {
    /// A cache that holds nothing (but line 0).
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        Self {
            lines: vec![0; geometry.sets() as usize * geometry.assoc() as usize].into(),
            set_mask: u64::from(geometry.sets()) - 1,
            assoc: geometry.assoc() as usize,
            line_bits: geometry.line_bits(),
        }
    }

    /// Lines a set.
    #[must_use]
    pub fn assoc(&self) -> usize {
        self.assoc
    }

    /// The numbers of the lines, set by set, the most recently used first.
    pub(crate) fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// How far an address is shifted to become a line's number.
    pub(crate) fn line_bits(&self) -> u32 {
        self.line_bits
    }

    /// Whether a line of these addresses is there. Changes nothing.
    pub(crate) fn holds(&self, addresses: &std::ops::Range<u64>) -> bool {
        let ends = [addresses.start, addresses.end.wrapping_sub(1)].map(|addr| addr >> self.line_bits);
        let set = |line: u64| &self.lines[(line & self.set_mask) as usize * self.assoc..][..self.assoc];
        // (Line 0, of which a set has as many as it has ways, never came.)
        (ends[0].max(1)..=ends[1]).any(|line| set(line).contains(&line))
    }

    /// Where the lines are known, the most recently used one first, among which `addr` is looked for.
    #[inline]
    pub(crate) fn address(&self, addr: u64) -> usize {
        let set = (addr >> self.line_bits & self.set_mask) as usize;
        self.lines.get(set * self.assoc).map_or(0, |line| std::ptr::from_ref(line).addr())
    }

    /// Accesses `size` bytes at `addr`, at least one. Returns whether any of their lines had to be loaded.
    ///
    /// An access to two lines makes both the most recently used of their sets, in order.
    #[inline]
    pub fn access(&mut self, addr: u64, size: u32) -> bool {
        self.any().access(addr, size)
    }

    /// As [`Lru::access`]: faster where a set has as many lines as in first-level caches of processors.
    #[inline]
    pub(crate) fn access_usual(&mut self, addr: u64, size: u32) -> bool {
        // Each is a copy of the code in which the number of ways is a constant.
        match self.assoc {
            8 => self.fixed::<8>().access(addr, size),
            12 => self.fixed::<12>().access(addr, size),
            _ => self.access(addr, size),
        }
    }

    /// The cache, which has `N` lines a set: faster, for many accesses in a row.
    #[inline]
    pub(crate) fn fixed<const N: usize>(&mut self) -> Ways<'_, Fixed<N>> {
        assert_eq!(self.assoc, N, "lines a set");
        Ways { sets: &mut self.lines, set_mask: self.set_mask, line_bits: self.line_bits, assoc: Fixed }
    }

    /// The cache, whatever its shape, as [`Lru::fixed`] hands it out.
    #[inline]
    pub(crate) fn any(&mut self) -> Ways<'_, Any> {
        Ways { sets: &mut self.lines, set_mask: self.set_mask, line_bits: self.line_bits, assoc: Any(self.assoc) }
    }
}

/// How many lines a set has.
pub(crate) trait Assoc: Copy {
    fn get(self) -> usize;
}

/// Known when grind is compiled.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<const N: usize>;

impl<const N: usize> Assoc for Fixed<N> {
    #[inline(always)]
    fn get(self) -> usize {
        N
    }
}

/// Known when it runs.
#[derive(Clone, Copy)]
pub(crate) struct Any(usize);

impl Assoc for Any {
    #[inline(always)]
    fn get(self) -> usize {
        self.0
    }
}

/// A borrowed cache.
pub(crate) struct Ways<'a, A> {
    sets: &'a mut [u64],
    set_mask: u64,
    line_bits: u32,
    assoc: A,
}

impl<A: Assoc> Ways<'_, A> {
    /// As [`Lru::access`].
    #[inline(always)]
    pub(crate) fn access(&mut self, addr: u64, size: u32) -> bool {
        let first = addr >> self.line_bits;
        let last = addr.wrapping_add(u64::from(size).max(1) - 1) >> self.line_bits;
        let missed = self.touch(first);
        if first == last {
            missed
        } else if last == first + 1 {
            self.touch(last) | missed
        } else {
            self.rest(first, last) | missed
        }
    }

    /// The lines after `first` up to `last`, where they are many, or lie at the end of the address space.
    #[cold]
    fn rest(&mut self, first: u64, last: u64) -> bool {
        let mut missed = false;
        let mut line = first;
        let end = u64::MAX >> self.line_bits;
        while line != last {
            line = if line == end { 0 } else { line + 1 };
            missed |= self.touch(line);
        }
        missed
    }

    /// Moves every line of the set one place back, up to the one where `line` was, and puts `line` first. Returns whether
    /// it was not there.
    ///
    /// Measured against walks without branches, against searching all ways at once, and against time stamps: where a hit
    /// will be is predicted well enough, if every way has a branch of its own.
    #[inline(always)]
    fn touch(&mut self, line: u64) -> bool {
        let assoc = self.assoc.get();
        let start = (line & self.set_mask) as usize * assoc;
        let mut carried = line;
        for entry in &mut self.sets[start..start + assoc] {
            std::mem::swap(entry, &mut carried);
            if carried == line {
                return false;
            }
        }
        true
    }
}
