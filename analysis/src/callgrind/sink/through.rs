//! Records of a run whose last level is written back: writes reach it that hit the first level, so every access is told, and
//! the first levels are simulated here.
//!
//! Each thread has first levels of its own, as they have where the program simulates them itself. Invariant: accesses go
//! through the caches in program order, an instruction's fetch before its accesses. Fetches that follow another one from the
//! same lines hit, and change nothing: they are left out.

use cg_sim::writeback::{Action, Outcome, WriteThrough};
use grind_trace::{Done, SiteKind, Special};

use super::super::code::Catalogue;
use super::Space;
use super::last_level::{Last, Simulated};
use super::meaning::word;
use super::process::Process;
use super::thread::Thread;
use crate::callgrind::columns::Missed;
use crate::every::repeated::elements;

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
                self.missed(simulated, t, catalogue, site, outcome.into());
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
