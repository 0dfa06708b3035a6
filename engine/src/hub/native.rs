//! Tells whoever follows calls what is active in a thread that begins to be recorded in the middle of things: without it, that
//! would have no callers, and would return to functions that nobody knows to have called it. It is asked for once, when recording
//! begins, and never afterwards. Nothing of the thread is changed.

use super::Hub;
use crate::recreate::{self, Spot};
use crate::space::Space;
use crate::tracee::Stopped;
use crate::transtab::StubKind;

impl Hub<'_> {
    /// Tells the sink what is active in `t`, which has just begun to be recorded.
    pub(super) fn tell_stack(&mut self, t: &Stopped) {
        if self.settings.trace.calls.is_none() {
            return;
        }
        let tid = t.tid();
        let (Some((space, _)), Ok(regs)) = (self.space_and_state(tid), t.regs()) else { return };
        let Some(pc) = guest_address(&space.borrow(), regs.rip) else { return };
        let Some(p) = self.process_of_mut(tid) else { return };
        let (pid, frames) = (p.pid, p.stacks.of(p.pid, &p.memory, pc, &regs));
        if let (Some(feed), true) = (&self.feed, frames.len() > 1) {
            super::trace::announce(feed, &mut space.borrow_mut());
            feed.stands(pid, tid, frames);
        }
    }
}

/// Where the program is, for a thread that has stopped at `rip`.
fn guest_address(space: &Space, rip: u64) -> Option<u64> {
    match recreate::spot(space, rip) {
        Spot::Boundary(b) => {
            let index = if b.after_call { b.executed.saturating_sub(1) } else { b.executed };
            Some(space.trans.pc_of(b.block, index))
        }
        Spot::Elsewhere => Some(rip),
        Spot::Stub(_) | Spot::Between => match space.stub_at(rip.wrapping_sub(1)) {
            Some(StubKind::Emulate { pc, .. }) => Some(pc),
            _ => None,
        },
    }
}
