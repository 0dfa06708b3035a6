//! What happens when a thread gets to a translation that has died, because its guest code has changed or gone: it goes on with
//! what is there now. Most ways to it have been taken back when it died (`code_cache::link`); those that could not be stop here
//! each time, which must not go on for long.

use std::rc::Rc;

use grind_fragments::fragment_table::FragmentId;
use grind_guest::recover::Boundary;
use grind_ptrace::{How, Stopped};
use grind_types::addr::CacheAddr;
use grind_types::subject;

use super::Dispatcher;

impl Dispatcher<'_> {
    /// The thread got to a block whose guest code has changed or gone.
    /// `at` is where it would have entered it.
    pub(super) fn dead_block(&mut self, t: Stopped, dead: FragmentId, at: CacheAddr) {
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return };
        let (pc, call_context) = {
            let s = code_cache.borrow();
            let b = s.trans.block(dead);
            (b.pc, b.call_context)
        };
        log::debug!(target: subject::SMC, "thread {} got to a dead fragment of {pc:#x}", t.tid());
        // Where it came from may have counted it already.
        let place = code_cache.borrow().trans.place(at);
        if let (Some(p), Ok(regs)) = (place, t.regs()) {
            let b =
                Boundary { block: p.block, executed: 0, bumped: p.bumped, after_call: false, rep: None, held: None };
            self.correct(t.tid(), &b, &regs);
        }
        let (t, id) = self.translation(t, pc, call_context);
        let Some(t) = t else { return };
        let Some(id) = id else { return self.run_off(t, pc) };
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return };
        let alone = self.process_of(t.tid()).is_some_and(|p| p.threads.len() == 1 && Rc::strong_count(&p.mm) == 1)
            && code_cache.borrow().users == 1;
        let at_entry = at == code_cache.borrow().trans.block(dead).entry;
        let forwarded = alone && at_entry && code_cache.borrow_mut().forward(dead, id);
        if !forwarded && code_cache.borrow_mut().got_to_dead(dead) {
            // Once this thread goes on.
            self.full = self.threads.get(&t.tid()).map(|th| th.pid);
        }
        let body = code_cache.borrow().trans.block(id).entry;
        if t.set_rip(body.0).is_ok() {
            t.go_on(How::Continue, 0);
        }
    }
}
