//! Keeps grind and the guest on one processor while only one of them can run anyway. A stop and its answer then cost a
//! fraction of what they cost across processors. As soon as there is a second thread, or the guest asks about processors,
//! everybody is free again, and the guest sees what it would have seen.

use grind_types::Tid;

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd;

use super::Dispatcher;

/// Whether and how grind and its guest are kept together.
#[derive(Debug, Default)]
pub(super) enum Pin {
    /// Not now.
    #[default]
    Free,
    /// This thread of the guest; it and grind had these processors before.
    Together { tid: Tid, guest: Box<CpuSet>, grind: Box<CpuSet> },
    /// Not any more: the guest has its own ideas about processors.
    Never,
}

impl Pin {
    pub(super) fn is_together(&self) -> bool {
        matches!(self, Self::Together { .. })
    }

    /// How many processors grind may run on, when it is not kept on one.
    pub(super) fn processors(&self) -> usize {
        let count = |set: &CpuSet| (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).count();
        match self {
            Self::Together { grind, .. } => count(grind),
            Self::Free | Self::Never => sched_getaffinity(unistd::Pid::from_raw(0)).map_or(1, |set| count(&set)),
        }
    }
}

impl Dispatcher<'_> {
    /// After threads have come or gone: together if there is just one.
    pub(super) fn settle_pin(&mut self) {
        let only = if self.threads.len() == 1 { self.threads.keys().next().copied() } else { None };
        match (&self.pin, only) {
            (Pin::Free, Some(tid)) => self.pin_together(tid),
            (Pin::Together { tid, .. }, _) if only != Some(*tid) => {
                self.unpin();
                self.settle_pin();
            }
            _ => {}
        }
    }

    fn pin_together(&mut self, tid: Tid) {
        let me = unistd::Pid::from_raw(0);
        let them = unistd::Pid::from_raw(tid.0);
        let (Ok(guest), Ok(grind), Ok(here)) = (sched_getaffinity(them), sched_getaffinity(me), sched_getcpu()) else {
            return;
        };
        let mut one = CpuSet::new();
        // Not where the guest may not be.
        if !guest.is_set(here).unwrap_or(false) || one.set(here).is_err() {
            return;
        }
        if sched_setaffinity(me, &one).is_ok() && sched_setaffinity(them, &one).is_ok() {
            self.pin = Pin::Together { tid, guest: Box::new(guest), grind: Box::new(grind) };
        } else {
            let _ = sched_setaffinity(me, &grind);
        }
    }

    /// Lets grind go to where its only thread, which is returned, is not. `None`: there is no such place.
    pub(super) fn step_aside(&mut self) -> Option<Tid> {
        let Pin::Together { tid, grind, .. } = &self.pin else { return None };
        let mut others = **grind;
        others.unset(sched_getcpu().ok()?).ok()?;
        sched_setaffinity(unistd::Pid::from_raw(0), &others).ok().map(|()| *tid)
    }

    /// Lets grind go back to where the program is.
    pub(super) fn step_back(&mut self) {
        let Pin::Together { tid, .. } = &self.pin else { return };
        if let Ok(there) = sched_getaffinity(unistd::Pid::from_raw(tid.0)) {
            let _ = sched_setaffinity(unistd::Pid::from_raw(0), &there);
        }
    }

    /// Everybody may run anywhere again.
    pub(super) fn unpin(&mut self) {
        self.beside_no_more();
        if let Pin::Together { tid, guest, grind } = std::mem::take(&mut self.pin) {
            let _ = sched_setaffinity(unistd::Pid::from_raw(tid.0), &guest);
            let _ = sched_setaffinity(unistd::Pid::from_raw(0), &grind);
        }
    }

    /// The guest is about to ask for its processors, or to choose some.
    pub(super) fn guest_minds_processors(&mut self) {
        self.unpin();
        self.pin = Pin::Never;
    }
}
