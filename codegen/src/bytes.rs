//! Which bytes of lines accesses use, where that is told: what a thread has used before, in this way, is known by a bit of the line's
//! entry ([`layout::UNREAD`]), and a group of accesses that finds all its bits known goes on. All else is left to the routine of
//! [`super::miss_path`], which knows each access, notes its bytes and tells of it.
//!
//! Nothing is stored here, so what the engine forgets while the thread runs on is forgotten. Invariant: an entry is looked at only where it is
//! known to show the line: behind the check of that, or behind what has settled it.

use grind_asm::instructions::NE;
use grind_isa::events::{Kind, Place};
use grind_layout as layout;
use grind_layout::registers::Gpr;

use super::Emitter;
use super::miss_path::{MissPathCode, bytes_words};
use super::plan::Group;

/// What a group of accesses uses.
#[derive(Clone, Debug)]
pub(super) struct Used {
    place: Place,
    /// The lowest address, from that of the place.
    offset: i64,
    /// Bytes from there to the end of the highest access.
    span: u16,
    /// What is read and what is written, a bit for each byte from the lowest one on.
    read: u64,
    written: u64,
    /// What describes it to the routine.
    words: Vec<u32>,
    /// Fields of jumps that leave where something is not known.
    unknown: Vec<usize>,
}

impl Used {
    /// What a group uses whose accesses have these sites.
    pub(super) fn by(group: &Group, sites: impl Iterator<Item = u32>) -> Self {
        let (mut read, mut written) = (0, 0);
        let mut members = Vec::with_capacity(group.members.len());
        for (m, site) in group.members.iter().zip(sites) {
            let of = bytes(m.size) << m.offset;
            let (reads, writes) = (m.access.kind != Kind::Write, m.access.kind != Kind::Read);
            read |= if reads { of } else { 0 };
            written |= if writes { of } else { 0 };
            members.push((site, m.offset, m.size, [reads, writes]));
        }
        Self {
            place: group.members[0].access.place,
            offset: group.from_first,
            span: group.span,
            read,
            written,
            words: bytes_words(&members),
            unknown: Vec::new(),
        }
    }
}

impl Used {
    /// Fields of jumps that have left so far, unless those to the last line are among them.
    pub(super) fn unknown_so_far(&mut self, last: bool) -> Vec<usize> {
        if last { Vec::new() } else { std::mem::take(&mut self.unknown) }
    }
}

impl Emitter<'_> {
    /// Checks the bytes that lie in the line of the lowest one, or, if `last`, in that of the highest one. `fresh`: `a` is the address
    /// of that byte, or what is left of it in its line, and `b` the entry. Changes both, and the flags.
    pub(super) fn check_bytes(&mut self, used: &mut Used, last: bool, [a, b]: [Gpr; 2], fresh: bool) {
        let all = [(layout::UNREAD, used.read), (layout::UNWRITTEN, used.written)];
        for (n, (word, mask)) in all.into_iter().filter(|(_, mask)| *mask != 0).enumerate() {
            if n > 0 || !fresh {
                let offset = used.offset + if last { i64::from(used.span) - 1 } else { 0 };
                // The entry is what it was, unless its register has been needed.
                if self.access_address(&used.place, offset, a, b) || n == 0 {
                    self.out.code.entry(b, a, layout::BYTES_LINE.trailing_zeros());
                }
            }
            let c = &mut self.out.code;
            let mask = if last {
                // The last byte's bit comes to the top, and what is below the line is 0.
                c.not(a);
                mask << (64 - used.span)
            } else {
                mask
            };
            c.gs_shift_by(last, a, b, word as u32, a);
            if let Some(pos) = c.test_bits(a, mask) {
                self.out.literal_once(mask, pos);
            }
            used.unknown.push(self.out.code.jcc_away(NE));
        }
    }

    /// Behind what has settled a group: looks at its bytes in both lines, if they are two, and tells of what is not known; it goes on at
    /// `back`, as do those that have found something in line.
    pub(super) fn tell_bytes(&mut self, mut used: Used, regs: [Gpr; 2], back: u64) {
        self.check_bytes(&mut used, false, regs, false);
        if used.span > 1 {
            self.check_bytes(&mut used, true, regs, false);
        }
        let known = self.out.code.jmp_away();
        self.out.code.patch_rel32(known, back);
        self.tell_unknown(used, regs, back);
    }

    /// The same where it is known that something is to be told.
    pub(super) fn tell_unknown(&mut self, used: Used, [a, b]: [Gpr; 2], back: u64) {
        used.unknown.iter().for_each(|field| self.out.code.patch_here(*field));
        self.access_address(&used.place, used.offset, a, b);
        let field = self.out.code.bytes_told(a, &used.words);
        self.out.code.patch_rel32(field, back);
    }
}

/// So many bytes, a bit each, from bit 0 on.
pub(super) fn bytes(size: u16) -> u64 {
    u64::MAX >> (64 - size.clamp(1, 64))
}
