//! A thread's place in its call tree: moved where frames are pushed and popped, here or, where calls are followed elsewhere, as that
//! tells of each. It must never touch a frame: those that are told of are caught up with apart (`followed`).
//!
//! Invariant: what was spent is booked before the place changes; there are as many callers as there are frames and interrupted
//! states, once what was told has been caught up with.

use super::*;
use crate::tree::{Each, Told};

impl Calls {
    /// Books what was spent until `now` on the chain that runs.
    #[inline]
    pub(super) fn chain_booked(&mut self, now: &[u64]) {
        if let Some(walk) = &mut self.walk {
            walk.book(&self.meter, now);
        }
    }

    /// A function begins, called by the one that runs; `NONE`: one that is skipped.
    #[inline]
    pub(super) fn chain_enter(&mut self, function: u32, now: &[u64]) {
        if let Some(walk) = &mut self.walk {
            walk.book(&self.meter, now);
            let functions = &self.functions;
            walk.enter(function, self.meter.collecting(), || levels_of(functions, function));
        }
    }

    /// The innermost frame goes, or the innermost state.
    #[inline]
    pub(super) fn chain_leave(&mut self, now: &[u64]) {
        if let Some(walk) = &mut self.walk {
            walk.book(&self.meter, now);
            walk.leave();
        }
    }

    /// Another state goes on, with its own meter.
    pub(super) fn chain_resumed(&mut self, now: &[u64]) {
        if let Some(walk) = &mut self.walk {
            walk.changed_meter(&self.meter, now);
        }
    }

    /// A call of that call edge was made elsewhere at `now`; `again` says what that is.
    #[inline]
    pub fn told_call<C: Code>(
        &mut self,
        code: &mut C,
        call_edge: u32,
        now: &[u64],
        again: impl FnOnce(&mut C, u32) -> Option<Again>,
    ) {
        if self.told_known_call(call_edge, now) {
            return;
        }
        let told = again(code, call_edge).map(|again| self.told_of(code, call_edge, &again));
        if let Some(walk) = &mut self.walk {
            walk.tell(call_edge, told.unwrap_or(Told { function: NONE, counts: false }));
        }
        self.told_known_call(call_edge, now);
    }

    /// The same, if it is known what the call edge means; says whether.
    #[inline]
    pub fn told_known_call(&mut self, call_edge: u32, now: &[u64]) -> bool {
        let Some(walk) = &mut self.walk else { return true };
        let Some(told) = walk.told(call_edge) else { return false };
        walk.book(&self.meter, now);
        let functions = &self.functions;
        walk.enter(told.function, told.counts, || levels_of(functions, told.function));
        true
    }

    /// So many calls have returned elsewhere at `now`.
    #[inline]
    pub fn told_return(&mut self, calls: u32, now: &[u64]) {
        if let Some(walk) = &mut self.walk {
            walk.book(&self.meter, now);
            (0..calls).for_each(|_| walk.leave());
        }
    }

    /// Many calls and returns that were made elsewhere, each with the total that it was made at, where there is one cost alone, which
    /// is kept elsewhere. Returns how many have been dealt with: the next one is a call of which nobody knows what it means.
    pub fn told_many(&mut self, now: &mut [u64], all: impl Iterator<Item = (Each, u64)>) -> usize {
        let (Some(walk), [now], Some([ahead])) = (&mut self.walk, now, self.meter.ahead()) else { return 0 };
        let functions = &self.functions;
        let (done, last) = walk.many(*ahead, all, |function| levels_of(functions, function));
        *now = last.unwrap_or(*now);
        done
    }
}

fn levels_of(functions: &[Known], function: u32) -> u32 {
    functions.get(function as usize).and_then(|known| known.about).as_ref().map_or(1, costs::levels)
}
