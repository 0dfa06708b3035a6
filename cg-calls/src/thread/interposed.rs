//! Functions of a program that is interpreted, among those of its interpreter: each stands between whoever has the interpreter run it
//! and the function of the interpreter that does. They have no code, so they cost nothing themselves, and frames of theirs are pushed
//! where the driver learns of them, beside those of that function, with the same stack pointer. So they go when that returns.
//!
//! Invariants: nothing is spent while they are pushed; the function that runs them is entered and left as often, as far as hooks
//! are concerned, as if they were not there.

use super::*;

/// A function of the program, and the function of the interpreter that runs it.
#[derive(Clone, Copy, Debug)]
pub struct Interposed {
    /// Where the former is: no code is there.
    pub target: u64,
    /// The site in it that calls the latter.
    pub within: SiteId,
    /// Where that begins.
    pub entry: u64,
}

impl Calls {
    /// How many frames there are.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// The stack pointer of the innermost frame of the state that runs, when frames that `sp` has left are gone.
    pub fn innermost(&mut self, sp: u64, now: &[u64]) -> Option<u64> {
        self.unwind(sp, now);
        self.stack.top().filter(|_| self.stack.len() > self.bottom).map(|top| top.sp)
    }

    /// The site of the call of the function at `entry` that has just been made, if it has, and nothing has been spent since.
    #[must_use]
    pub fn just_called(&self, entry: u64, now: &[u64]) -> Option<SiteId> {
        let top = self.stack.top().filter(|_| self.stack.len() > self.bottom)?;
        let entered = self.stack.entered(self.stack.len() - 1);
        if entered.iter().enumerate().any(|(i, then)| self.meter.read(now, i) != *then) {
            return None;
        }
        if top.arc == NONE {
            return (self.skip != NONE).then(|| self.book.skips.keys[self.skip as usize].0);
        }
        let key = &self.book.arcs.keys[top.arc as usize];
        (key.target == entry).then_some(key.site)
    }

    /// The call of the interpreter's function that has just been made, at `site`, was one of the program's.
    pub fn interpose(&mut self, code: &mut impl Code, site: SiteId, function: Interposed, now: &[u64]) -> bool {
        let Some(frame) = self.stack.top().copied() else { return self.wanted() };
        if frame.arc != NONE {
            let calls = &mut self.book.arcs.counts(frame.arc)[0];
            *calls = calls.saturating_sub(1);
            if let Some(walk) = &mut self.walk {
                walk.uncall(self.meter.collecting());
            }
        }
        self.interposing = true;
        self.pop(now);
        self.interposing = false;
        self.push(code, site, function.target, frame.sp, frame.returns_to, None, now);
        // It has been entered by the call that was taken back.
        self.interposing = true;
        self.push(code, function.within, function.entry, frame.sp, 0, None, now);
        self.interposing = false;
        self.wanted()
    }

    /// The running function calls the program's by `site`, and pushes nothing.
    pub fn call_interposed(&mut self, code: &mut impl Code, site: SiteId, function: Interposed, now: &[u64]) -> bool {
        let Some(sp) = self.stack.top().map(|top| top.sp) else { return self.wanted() };
        self.push(code, site, function.target, sp, 0, None, now);
        self.push(code, function.within, function.entry, sp, 0, None, now);
        self.wanted()
    }

    /// All but so many frames are left.
    pub fn leave_to(&mut self, depth: usize, now: &[u64]) -> bool {
        while self.stack.len() > depth.max(self.bottom) {
            self.pop(now);
        }
        self.wanted()
    }
}
