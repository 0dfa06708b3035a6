//! Code that programs make while they run: the driver is told before it is translated, and what is counted of it takes on the
//! number that the driver gave. So code that took the place of other code can be told apart from that by whoever knows names.
//! Invariant: a block of such code has the number of a moment at which its bytes were there already, and after which they have not
//! changed before it was translated; a program waits meanwhile, or is asked again if it has changed the code.

use std::cell::RefCell;

use grind_code_cache::CodeCache;
use grind_types::Tid;
use grind_types::addr::GuestAddr;

use super::Dispatcher;
use super::announce::announce;

impl Dispatcher<'_> {
    /// Code at `pc` is about to be translated for thread `tid`, which waits, or is about to be gone to.
    pub(super) fn note_made(&mut self, tid: Tid, code_cache: &RefCell<CodeCache>, pc: GuestAddr) {
        if code_cache.borrow().is_made(pc) {
            self.note_moment(tid, code_cache);
        }
    }

    /// Any code is about to be translated, for thread `tid`.
    pub(super) fn note_all_made(&mut self, tid: Tid, code_cache: &RefCell<CodeCache>) {
        if code_cache.borrow().has_made() {
            self.note_moment(tid, code_cache);
        }
    }

    fn note_moment(&mut self, tid: Tid, code_cache: &RefCell<CodeCache>) {
        let Some(pid) = self.process_of(tid).map(|p| p.pid) else { return };
        let made = self.session.code_made(pid, &code_cache.borrow().modules);
        if !code_cache.borrow_mut().trans.now_made(made) || self.settings.trace.calls.is_none() {
            return;
        }
        // What was executed there before it changed has been told when it did; what has not been told yet may be the call that led to it.
        if let Some(trace_channel) = &self.trace_channel {
            announce(trace_channel, &mut code_cache.borrow_mut());
            trace_channel.code_made(pid, made);
        }
    }
}
