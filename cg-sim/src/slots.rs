//! A set-associative cache like [`crate::lru`], whose lines stay in one place, so that something can be kept about them.
//!
//! A slot is where a line lies from being loaded to being replaced; users keep arrays with one element a slot. As there,
//! all slots start as line 0.

use crate::geometry::Geometry;
use crate::lru::Lru;

/// Tags and the order of use; what else is known about a line is the user's.
#[derive(Clone, Debug)]
pub(crate) struct SlotLru {
    /// Line numbers, for each set the most recently used first.
    lines: Box<[u64]>,
    /// Beside each of them its slot.
    slots: Box<[u32]>,
    set_mask: u64,
    assoc: usize,
    line_bits: u32,
}

impl SlotLru {
    pub(crate) fn new(geometry: Geometry) -> Self {
        let count = geometry.sets() * geometry.assoc();
        Self {
            lines: vec![0; count as usize].into(),
            slots: (0..count).collect(),
            set_mask: u64::from(geometry.sets()) - 1,
            assoc: geometry.assoc() as usize,
            line_bits: geometry.line_bits(),
        }
    }

    /// A cache that holds what `lru` does.
    pub(crate) fn of(lru: &Lru) -> Self {
        let lines: Box<[u64]> = lru.lines().into();
        let slots = (0..lines.len() as u32).collect();
        let (assoc, line_bits) = (lru.assoc(), lru.line_bits());
        Self { set_mask: (lines.len() / assoc) as u64 - 1, lines, slots, assoc, line_bits }
    }

    /// How many slots there are.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The number of the line that `addr` is in.
    #[inline]
    pub(crate) fn line(&self, addr: u64) -> u64 {
        addr >> self.line_bits
    }

    /// Calls `each` for every line of an access, in order: its number, its first and its last byte.
    #[inline]
    pub(crate) fn each_line(line_bits: u32, addr: u64, size: u32, mut each: impl FnMut(u64, u32, u32)) {
        let within = (1u64 << line_bits) - 1;
        let mut at = addr;
        let mut left = u64::from(size).max(1);
        let start = at & within;
        if start + left <= within + 1 {
            // Nearly all.
            return each(at >> line_bits, start as u32, (start + left - 1) as u32);
        }
        while left > 0 {
            let start = at & within;
            let here = left.min(within + 1 - start);
            each(at >> line_bits, start as u32, (start + here - 1) as u32);
            at = at.wrapping_add(here);
            left -= here;
        }
    }

    /// How far an address is shifted to become a line's number.
    #[inline]
    pub(crate) fn line_bits(&self) -> u32 {
        self.line_bits
    }

    /// Makes `line` the most recently used of its set. Returns its slot, and whether it was there; if not, what was in the
    /// slot is gone.
    #[inline]
    pub(crate) fn touch(&mut self, line: u64) -> (usize, bool) {
        let start = (line & self.set_mask) as usize * self.assoc;
        let lines = &mut self.lines[start..start + self.assoc];
        let slots = &mut self.slots[start..start + self.assoc];
        if lines[0] == line {
            return (slots[0] as usize, true);
        }
        let mut at = 1;
        while at < lines.len() && lines[at] != line {
            at += 1;
        }
        let hit = at < lines.len();
        let at = at.min(lines.len() - 1);
        let slot = slots[at];
        lines.copy_within(..at, 1);
        slots.copy_within(..at, 1);
        (lines[0], slots[0]) = (line, slot);
        (slot as usize, hit)
    }
}
