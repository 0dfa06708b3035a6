//! Translating ahead what a process is likely to ask for, by what earlier ones asked for ([`grind_fragments::orders`]).
//!
//! Invariant: nothing is translated ahead that has to be read when it is needed (code that may change), or that depends on who has
//! called (call contexts).

use grind_fragments::fragment_table::Way;
use grind_fragments::orders::{Entry, Pace};
use grind_trace::follow::CallContextId;
use grind_types::Tid;
use grind_types::addr::GuestAddr;

use grind_code_cache::CodeCache;
use grind_ptrace::Memory;

use super::Dispatcher;

impl Dispatcher<'_> {
    /// Thread `tid` has asked for the code at `pc`, in this way if by an indirect branch, and it is there. What it is likely to ask for
    /// next is translated and linked.
    pub(super) fn look_ahead(&mut self, tid: Tid, pc: GuestAddr, way: Option<Way>) {
        // Where emitted code follows calls, code is that of a call context; a process has its own. Where an interpreter's frames are
        // told, what is known of its code comes first.
        let frames = self.settings.trace.calls.is_some_and(|calls| calls.frames);
        if !self.settings.programs_follow || frames || self.follows(tid) {
            return;
        }
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let Some(pid) = self.threads.get(&tid).map(|th| th.pid) else { return };
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let mut code_cache = code_cache.borrow_mut();
        let Some(module) = code_cache.module_at(pc).filter(|_| !code_cache.self_modifying(pc)) else { return };
        let pace = p
            .paces
            .entry(module)
            .or_insert_with(|| code_cache.place_of(module).map_or_else(Pace::default, |place| self.orders.pace(place)));
        let next = self.orders.next(pc, way, pace);
        if !next.is_empty() {
            translate_all(&mut code_cache, next, &p.memory);
        }
        if code_cache.is_full() {
            self.full = Some(pid);
        }
    }
}

fn translate_all(code_cache: &mut CodeCache, entries: &[Entry], memory: &Memory) {
    for entry in entries {
        let known = code_cache.trans.lookup(entry.pc, CallContextId::NONE);
        let wanted = known.is_none() && code_cache.is_ordinary(entry.pc);
        let id = match known {
            None if wanted && !code_cache.is_full() => code_cache.translate(entry.pc, CallContextId::NONE, memory),
            known => known,
        };
        if let Some(id) = id {
            entry.ways().for_each(|way| code_cache.expect_ibl_target(id, way));
        }
    }
    code_cache.link_waiting();
}
