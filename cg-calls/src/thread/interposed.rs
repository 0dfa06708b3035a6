//! Functions of a program that is interpreted, among those of its interpreter: each stands between whoever has the interpreter run it
//! and the function of the interpreter that does. They have no code, so they cost nothing themselves, and frames of theirs are pushed
//! where the driver learns of them, beside those of that function, with the same stack pointer. So they go when that returns.
//!
//! Invariants: nothing is spent while they are pushed; the function that runs them is entered and left as often, as far as hooks
//! are concerned, as if they were not there.

use super::*;

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

    /// The call of the function at `entry` that has just been made, at `site`, was one of the function at `target`, which calls that
    /// by its site `within`.
    pub fn interpose(
        &mut self,
        code: &mut impl Code,
        site: SiteId,
        (target, within): (u64, SiteId),
        entry: u64,
        now: &[u64],
    ) -> bool {
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
        self.push(code, site, target, frame.sp, frame.returns_to, None, now);
        self.interposing = true;
        self.push(code, within, entry, frame.sp, 0, None, now);
        self.interposing = false;
        self.wanted()
    }

    /// The running function calls the one at `target` by `site`, which calls the one at `entry` by `within`, and pushes nothing.
    pub fn call_interposed(
        &mut self,
        code: &mut impl Code,
        site: SiteId,
        (target, within): (u64, SiteId),
        entry: u64,
        now: &[u64],
    ) -> bool {
        let Some(sp) = self.stack.top().map(|top| top.sp) else { return self.wanted() };
        self.push(code, site, target, sp, 0, None, now);
        self.push(code, within, entry, sp, 0, None, now);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{CallersTable, ObjectId, Place, Section, Site};

    /// Functions of 256 bytes; sites are where they are. From 0x8000 on, functions own what runs below them; number 5 is dumped.
    #[derive(Default)]
    struct Small(CallersTable);

    impl Code for Small {
        fn place(&mut self, addr: u64) -> Place {
            let function = FunctionId((addr / 256) as u32);
            Place { function, object: ObjectId(0), section: Section::Text, is_entry: addr.is_multiple_of(256) }
        }
        fn site(&mut self, id: SiteId) -> Site {
            let addr = u64::from(id.0);
            Site { addr, next: addr + 5, block: addr, place: self.place(addr) }
        }
        fn site_before(&mut self, next: u64) -> SiteId {
            SiteId(next as u32 - 5)
        }
        fn function(&mut self, id: FunctionId) -> Function {
            Function { owns: id.0 >= 0x80, dump_before: id.0 == 5, separate_recs: 2, ..Function::PLAIN }
        }
        fn callers(&mut self) -> &mut CallersTable {
            &mut self.0
        }
    }

    const EVALUATE: u64 = 0x300;

    fn calls(chains: bool) -> Calls {
        let chains = chains.then_some(100);
        Calls::new(Config { contexts: true, chains, ..Config::arcs_only(1) }, &[0])
    }

    /// Arcs by the functions of both nodes: how many calls, and what they cost.
    fn arcs(profile: &Profile) -> Vec<(Vec<u32>, Vec<u32>, u64, u64)> {
        let node = |node: NodeIndex| profile.nodes[node.0 as usize].functions.iter().map(|f| f.0).collect();
        let mut all: Vec<_> =
            profile.arcs.iter().map(|arc| (node(arc.from), node(arc.to), arc.calls, arc.costs[0])).collect();
        all.sort();
        all
    }

    #[test]
    fn a_call_of_the_interpreter_is_one_of_the_function_that_it_runs() {
        for chains in [false, true] {
            let (mut calls, code) = (calls(chains), &mut Small::default());
            calls.begin(code, 0x100);
            calls.call(code, SiteId(0x110), EVALUATE, 992, &[10]);
            assert_eq!(calls.just_called(0x400, &[10]), None, "another function");
            assert_eq!(calls.just_called(EVALUATE, &[11]), None, "it has run");
            let site = calls.just_called(EVALUATE, &[10]).expect("just called");
            calls.interpose(code, site, (0x8000, SiteId(0x8001)), EVALUATE, &[10]);
            // It calls another one without a call, and C from there.
            calls.call_interposed(code, SiteId(0x310), (0x8100, SiteId(0x8101)), EVALUATE, &[13]);
            let depth = calls.depth();
            calls.call(code, SiteId(0x320), 0x400, 900, &[15]);
            calls.ret(code, SiteId(0x410), 0x325, 908, &[18]);
            assert_eq!((calls.depth(), calls.innermost(900, &[18])), (depth, Some(992)));
            calls.leave_to(depth - 2, &[20]);
            calls.ret(code, SiteId(0x3f0), 0x115, 1000, &[25]);
            let profile = calls.take(&[30]);
            let expected = [
                (vec![1], vec![0x80], 1, 15),
                (vec![3, 0x80], vec![0x81], 1, 7),
                (vec![3, 0x81], vec![4, 0x81], 1, 3),
                (vec![0x80], vec![3, 0x80], 1, 15),
                (vec![0x81], vec![3, 0x81], 1, 7),
            ];
            assert_eq!(arcs(&profile), expected);
            if chains {
                let chain = |n: usize| (profile.tree.chains[n].calls, profile.tree.costs(n)[0]);
                let all: Vec<_> = (0..profile.tree.chains.len()).map(chain).collect();
                assert_eq!(all.iter().map(|(_, cost)| cost).sum::<u64>(), 30);
                assert!(all.iter().all(|(calls, _)| *calls <= 1), "{all:?}");
            }
        }
    }

    #[test]
    fn the_interpreter_is_entered_once_as_far_as_hooks_are_concerned() {
        const DUMPED: u64 = 0x500;
        let (mut calls, code) = (calls(false), &mut Small::default());
        calls.begin(code, 0x100);
        assert!(calls.call(code, SiteId(0x110), DUMPED, 992, &[10]));
        assert_eq!(calls.take_request(), Some(Request::DumpBefore(FunctionId(5))));
        let site = calls.just_called(DUMPED, &[10]).expect("just called");
        assert!(!calls.interpose(code, site, (0x8000, SiteId(0x8001)), DUMPED, &[10]));
        assert_eq!(calls.take_request(), None);
    }
}
