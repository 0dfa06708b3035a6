//! What records of every access say: the sites of stretches in a form that is quickly gone through, and the accesses of each.
//!
//! Nothing is simulated or counted here. Invariant: accesses come in the order in which the program makes them.

pub mod repeated;

use crate::{Done, SiteKind, operands};

/// What a site is where every access is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Instructions in a row, whose accesses are those of the next sites.
    Stretch {
        /// Addresses in the record.
        groups: u8,
        /// Accesses.
        members: u8,
        /// Bytes of the first instruction.
        len: u8,
    },
    /// An access of the stretch before.
    Member {
        /// Which address it counts from.
        group: u8,
        /// What is done.
        done: Done,
        /// Bytes from there.
        offset: u16,
        /// Bytes.
        size: u16,
    },
    /// Another one.
    Other,
}

// There are many, and they are read in the order of the program.
const _: () = assert!(size_of::<Told>() <= 8);

impl Told {
    /// What a site is, whose instruction has so many bytes.
    #[must_use]
    pub fn new(kind: SiteKind, len: u8) -> Self {
        match kind {
            SiteKind::Stretch { groups, members, .. } => Self::Stretch { groups, members, len },
            SiteKind::Member { group, done, offset, size } => Self::Member { group, done, offset, size },
            _ => Self::Other,
        }
    }
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Its site.
    pub site: u32,
    /// What is done.
    pub done: Done,
    /// The first byte.
    pub addr: u64,
    /// Bytes.
    pub size: u16,
}

/// Calls `touch` for each access of a stretch: `members` are the sites behind its own, the first of which has number `first`,
/// `bases` the words behind its site in its record.
#[inline(always)]
pub fn members(members: &[Told], first: u32, bases: &[u32], mut touch: impl FnMut(Touched)) {
    let bases = bases.as_chunks::<2>().0;
    for (told, site) in members.iter().zip(first..) {
        let Told::Member { group, done, offset, size } = *told else { return };
        let Some([low, high]) = bases.get(usize::from(group)) else { return };
        let addr = operands::joined(*low, *high).wrapping_add(offset.into());
        touch(Touched { site, done, addr, size });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_its_accesses_in_order() {
        let kinds = [
            SiteKind::Stretch { instructions: 3, bytes: 9, groups: 2, members: 3, tells: None },
            SiteKind::Member { group: 0, done: Done::Read, offset: 8, size: 4 },
            SiteKind::Member { group: 0, done: Done::Write, offset: 0, size: 8 },
            SiteKind::Member { group: 1, done: Done::Modify, offset: 3, size: 1 },
            SiteKind::Conditional,
        ];
        let told: Vec<Told> = kinds.iter().map(|kind| Told::new(*kind, 3)).collect();
        assert_eq!((told[0], told[4]), (Told::Stretch { groups: 2, members: 3, len: 3 }, Told::Other));
        let all = |bases: &[u32]| {
            let mut found = Vec::new();
            members(&told[1..], 8, bases, |t| found.push((t.site, t.done, t.addr, t.size)));
            found
        };
        let expected =
            [(8, Done::Read, 0x7_0000_1008, 4), (9, Done::Write, 0x7_0000_1000, 8), (10, Done::Modify, 2, 1)];
        assert_eq!(all(&[0x1000, 7, u32::MAX, u32::MAX]), expected, "addresses wrap round");
        assert_eq!(all(&[0x1000, 7]), expected[..2], "a record that was cut off");
    }
}
