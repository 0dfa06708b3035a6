//! Records of a run whose last level is written back: writes reach it that hit the first level, so every access is told, and
//! the first levels are simulated here.
//!
//! Each thread has first levels of its own, as they have where the program simulates them itself. Invariant: accesses go
//! through the caches in program order, an instruction's fetch before its accesses. Fetches that follow another one from the
//! same lines hit, and change nothing: they are left out.

use cg_sim::writeback::{Action, Outcome, WriteThrough};
use grind_trace::every::members;
use grind_trace::every::repeated::elements;
use grind_trace::{Done, SiteKind, Special, Target};

use super::super::code::Catalogue;
use super::Space;
use super::last_level::{Last, Simulated};
use super::process::Process;
use super::thread::Thread;

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
        // Taken out, so that what is missed can be counted meanwhile.
        let told = std::mem::take(&mut simulated.told);
        let most = simulated.most;
        let mut touch = |action: Action, site: u32, addr: u64, size: u16| {
            let outcome = touch(simulated, t, action, addr, size);
            if outcome != Outcome::L1 {
                self.missed(simulated, t, catalogue, site, outcome.into());
                let data = (action != Action::Fetch).then_some((addr, size));
                self.missed_object(t, space, (site, data, outcome.into()));
            }
        };
        let site = space.sites[number as usize];
        match site.kind {
            SiteKind::Stretch { members: n, .. } => {
                touch(Action::Fetch, number, site.addr.0, site.len.into());
                let from = number as usize + 1;
                let behind = told.get(from..from + usize::from(n)).unwrap_or_default();
                members(behind, number + 1, &record[1..], |made| {
                    touch(data(made.done), made.site, made.addr, made.size);
                });
            }
            SiteKind::Special { index, .. } => {
                for made in space.specials.get(index as usize).map(|s: &Special| s.touches(record)).unwrap_or_default()
                {
                    let at = match made.done {
                        Done::Read => number + 1,
                        Done::Write => number + 2,
                        Done::Modify => number + 3,
                    };
                    let size = u16::try_from(made.size).unwrap_or(u16::MAX).min(most);
                    touch(data(made.done), at, made.address, size);
                }
            }
            SiteKind::Repeated { size, target, .. } => {
                elements(site.kind, record, |at_target, addr| {
                    let action = if at_target && target == Target::Write { Action::Write } else { Action::Read };
                    touch(action, number + 1 + u32::from(at_target), addr, size.into());
                });
            }
            _ => {}
        }
        simulated.told = told;
    }
}

/// What an access does to a cache of data.
fn data(done: Done) -> Action {
    if done == Done::Read { Action::Read } else { Action::Write }
}

/// Accesses `size` bytes.
#[inline(always)]
fn touch(simulated: &mut Simulated, t: &mut Thread, action: Action, addr: u64, size: u16) -> Outcome {
    let (Some(shapes), Last::Elaborate(level)) = (&simulated.shapes, &mut simulated.last) else { return Outcome::L1 };
    let caches = t.through.get_or_insert_with(|| Box::new(WriteThrough::new(shapes)));
    caches.access(level, action, addr, size.into())
}
