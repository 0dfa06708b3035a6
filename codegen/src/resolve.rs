//! Where the branches of a batch lead once all of it has been emitted. Invariants: what is not known yet leads to a stub of its
//! own, which says which field is to be led elsewhere; a call leads to where a block is called, which takes back what it has
//! pushed, and so does its stub.

use grind_asm::CALL;
use grind_types::addr::CacheAddr;

use grind_fragments::fragment_table::StubKind;

use super::Emitter;
use crate::pairs::PairCode;
use crate::request::RequestCode;

impl Emitter<'_> {
    /// Gives every branch its way: to a block of this batch, to one that was there, or to a stub.
    pub(super) fn resolve(&mut self) {
        let fixups = std::mem::take(&mut self.out.fixups);
        for &f in &fixups {
            let calls = self.out.code.buf[f.pos - 1] == CALL;
            if let Some(id) = f.to.map(|g| g.block).or_else(|| self.trans.lookup(f.target, self.call_context)) {
                let b = *self.trans.block(id);
                let free = f.to.is_some_and(|g| g.free);
                let past_way_in = f.to.is_some_and(|g| g.past_way_in);
                // Within the batch that has been settled with the block's place.
                let past = self.work.past_front.binary_search(&f.pos).is_ok();
                // Who has not taken off what is deferred there goes by its way in.
                let body = match () {
                    () if calls => self.called_entry(id),
                    () if free => Some(b.cache.plus(b.bump_end.into())),
                    () if past && (past_way_in || !self.trans.deferred.contains_key(&id)) => Some(b.cache),
                    () if past_way_in => self.trans.deferred.get(&id).map(|c| c.entry),
                    () => Some(b.entry),
                };
                let from = CacheAddr(self.out.code.base + f.pos as u64 + 4);
                if let Some(body) = body.filter(|to| i32::try_from(to.since(from) as i64).is_ok()) {
                    self.out.code.patch_rel32(f.pos, body.0);
                    // It cannot be taken back where something is deferred.
                    if !past_way_in {
                        self.out.links.push((f.pos, f.target));
                    }
                    continue;
                }
            }
            let site = CacheAddr(self.out.code.base + f.pos as u64);
            let call_context = self.call_context;
            let id = self.trans.add_stub(StubKind::Exit { target: f.target, site, call_context });
            let here = self.out.code.here();
            self.out.code.patch_rel32(f.pos, here);
            if calls {
                self.out.code.called();
            }
            let pos = self.out.code.pos();
            if let Some(requests) = &self.requests {
                self.out.code.ask(id, requests);
                continue;
            }
            self.out.stubs.push((pos, id));
            self.out.code.stop(id);
        }
        self.out.fixups = fixups;
    }
}
