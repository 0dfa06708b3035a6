//! Branches that stop because nothing is translated where they lead, by where that is: when something is, ahead of being asked for,
//! they are linked to it, and nobody has to stop for that. What has been linked since may be linked once more.

use grind_fragments::fragment_table::{FragmentId, StubKind};
use grind_trace::follow::CallContextId;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::hash::Map;

use super::CodeCache;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// So many stubs and fragments have been looked at.
    stubs: usize,
    fragments: usize,
    /// The fields of branches, by the guest address that they lead to.
    sites: Map<GuestAddr, Vec<CacheAddr>>,
}

impl CodeCache {
    /// Links what waits for what has been translated since this was last called.
    pub fn link_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        while let Some(stub) = self.trans.stubs.get(waiting.stubs) {
            waiting.stubs += 1;
            if let StubKind::Exit { target, site, call_context: CallContextId::NONE } = stub.kind {
                match self.trans.lookup(target, CallContextId::NONE) {
                    Some(id) => self.link(site, id),
                    None => waiting.sites.entry(target).or_default().push(site),
                }
            }
        }
        while let Some(b) = self.trans.blocks.get(waiting.fragments) {
            let (id, pc) = (FragmentId(waiting.fragments as u32), b.pc);
            waiting.fragments += 1;
            if self.trans.lookup(pc, CallContextId::NONE) == Some(id) {
                waiting.sites.remove(&pc).unwrap_or_default().into_iter().for_each(|site| self.link(site, id));
            }
        }
        self.waiting = waiting;
    }
}
