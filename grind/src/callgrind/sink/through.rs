//! Records of a run whose last level is written back: writes reach it that hit the first level, so every access is told, and
//! the first levels are simulated here.
//!
//! Each thread has first levels of its own, as they have where the program simulates them itself. Invariant: accesses go
//! through the caches in program order, an instruction's fetch before its accesses. Fetches that follow another one from the
//! same lines hit, and change nothing: they are left out.

use cg_sim::writeback::{Action, Outcome, WriteThrough};
use grind_engine::trace::{Done, SiteKind, Special, Target};

use super::simulated::{Last, Simulated};
use super::{Catalogue, Process, Space, Thread, word};
use crate::callgrind::columns::Missed;

impl Process {
    /// What a record tells of fetches and accesses; `record` begins with the site's number.
    pub(super) fn through(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        record: &[u32],
    ) {
        let Some(&number) = record.first() else { return };
        let mut touch = |site: u32, addr: u64, size: u16| {
            let outcome = touch(simulated, t, site, addr, size);
            if outcome != Outcome::L1 {
                self.missed(simulated, t, catalogue, site, outcome);
            }
        };
        let site = space.sites[number as usize];
        match site.kind {
            SiteKind::Stretch { members, .. } => {
                touch(number, site.addr.0, site.len.into());
                let bases = record[1..].as_chunks::<2>().0;
                for at in (number + 1..).take(members.into()) {
                    let SiteKind::Member { group, offset, size, .. } = space.sites[at as usize].kind else { return };
                    let Some([low, high]) = bases.get(usize::from(group)) else { return };
                    touch(at, word(*low, *high).wrapping_add(offset.into()), size);
                }
            }
            SiteKind::Special { index, .. } => {
                for made in space.specials.get(index as usize).map(|s: &Special| s.touches(record)).unwrap_or_default()
                {
                    let at = match made.done {
                        Done::Read => number + 1,
                        Done::Write => number + 2,
                        Done::Modify => number + 3,
                    };
                    touch(at, made.address, u16::try_from(made.size).unwrap_or(u16::MAX));
                }
            }
            SiteKind::Repeated { size, .. } => {
                elements(site.kind, record, |at_target, addr| {
                    touch(number + 1 + u32::from(at_target), addr, size.into())
                });
            }
            _ => {}
        }
    }
}

/// Accesses `size` bytes on behalf of a site.
fn touch(simulated: &mut Simulated, t: &mut Thread, site: u32, addr: u64, size: u16) -> Outcome {
    let (Some(shapes), Last::Elaborate(level)) = (&simulated.shapes, &mut simulated.last) else { return Outcome::L1 };
    let action = match simulated.known[site as usize].missed {
        Missed::Fetch => Action::Fetch,
        Missed::Write => Action::Write,
        Missed::Read | Missed::Conditional | Missed::Indirect => Action::Read,
    };
    let caches = t.through.get_or_insert_with(|| Box::new(WriteThrough::new(shapes)));
    let size = if action == Action::Fetch { size } else { size.min(simulated.most) };
    caches.access(level, action, addr, size.into())
}

/// Calls `each` for every access of a repeated instruction, in program order: whether it is at \[rdi\], and its address.
pub(super) fn elements(kind: SiteKind, record: &[u32], mut each: impl FnMut(bool, u64)) {
    let SiteKind::Repeated { size, source, target, target_first, narrow } = kind else { return };
    let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
    let [count, mut from, mut to, left, from_after, to_after] =
        [1, 3, 5, 7, 9, 11].map(|n| word(record[n], record[n + 1]) & mask);
    let down = (from_after.wrapping_sub(from) | to_after.wrapping_sub(to)) as i64;
    let step = if down < 0 { u64::from(size).wrapping_neg() } else { size.into() };
    let at_target = target != Target::Unused;
    for _ in 0..count.wrapping_sub(left) & mask {
        if at_target && target_first {
            each(true, to);
        }
        if source {
            each(false, from);
        }
        if at_target && !target_first {
            each(true, to);
        }
        from = from.wrapping_add(step) & mask;
        to = to.wrapping_add(step) & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: SiteKind, registers: [u64; 6]) -> Vec<(bool, u64)> {
        let mut record = vec![0];
        record.extend(registers.into_iter().flat_map(|r| [r as u32, (r >> 32) as u32]));
        let mut found = Vec::new();
        elements(kind, &record, |at_target, addr| found.push((at_target, addr)));
        found
    }

    #[test]
    fn elements_come_in_the_order_of_the_instruction() {
        let moves =
            SiteKind::Repeated { size: 8, source: true, target: Target::Write, target_first: false, narrow: false };
        let upwards = [(false, 100), (true, 500), (false, 108), (true, 508)];
        assert_eq!(told(moves, [3, 100, 500, 1, 116, 516]), upwards);
        let downwards = [(false, 100), (true, 500), (false, 92), (true, 492)];
        assert_eq!(told(moves, [2, 100, 500, 0, 84, 484]), downwards);
        let compares =
            SiteKind::Repeated { size: 1, source: true, target: Target::Read, target_first: true, narrow: true };
        assert_eq!(told(compares, [7 << 32 | 1, 9 << 32 | 100, 500, 7 << 32, 101, 501]), [(true, 500), (false, 100)]);
        let fills =
            SiteKind::Repeated { size: 2, source: false, target: Target::Write, target_first: false, narrow: false };
        assert_eq!(told(fills, [2, 77, 500, 0, 77, 504]), [(true, 500), (true, 502)]);
        assert_eq!(told(fills, [2, 77, 500, 2, 77, 500]), []);
    }
}
