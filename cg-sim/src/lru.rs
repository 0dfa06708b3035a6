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

    /// Accesses `size` bytes at `addr`, at least one. Returns whether any of their lines had to be loaded.
    ///
    /// An access to two lines makes both the most recently used of their sets, in order.
    #[inline]
    pub fn access(&mut self, addr: u64, size: u32) -> bool {
        let first = addr >> self.line_bits;
        let last = addr.wrapping_add(u64::from(size).max(1) - 1) >> self.line_bits;
        let missed = self.touch(first);
        if first == last { missed } else { self.straddle(first, last) | missed }
    }

    /// The lines after `first` up to `last`; two are the usual case, but nothing here limits their number.
    #[cold]
    #[inline(never)]
    fn straddle(&mut self, first: u64, last: u64) -> bool {
        let mut missed = false;
        let mut line = first;
        let end = u64::MAX >> self.line_bits;
        while line != last {
            // Past the last line of the address space comes the first.
            line = if line == end { 0 } else { line + 1 };
            missed |= self.touch(line);
        }
        missed
    }

    /// Makes `line` the most recently used of its set. Returns whether it had to be loaded.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let start = (line & self.set_mask) as usize * self.assoc;
        let set = &mut self.lines[start..start + self.assoc];
        match self.assoc {
            1 => front::<1>(set, line),
            2 => front::<2>(set, line),
            4 => front::<4>(set, line),
            8 => front::<8>(set, line),
            _ => front_any(set, line),
        }
    }
}

/// Moves `line` to the front, out of its place or else in place of the last. Returns whether it was not there.
///
/// Without branches on what is found: which way hits cannot be predicted.
#[inline]
fn front<const N: usize>(set: &mut [u64], line: u64) -> bool {
    let Some(set) = set.first_chunk_mut::<N>() else { return true };
    let old = *set;
    let mut found = false;
    let mut carried = line;
    for way in 0..N {
        set[way] = if found { old[way] } else { carried };
        carried = old[way];
        found |= old[way] == line;
    }
    !found
}

fn front_any(set: &mut [u64], line: u64) -> bool {
    let mut carried = line;
    for entry in set {
        std::mem::swap(entry, &mut carried);
        if carried == line {
            return false;
        }
    }
    true
}
