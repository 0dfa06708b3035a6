//! Translations in their places: how emitted code gets into the cache and becomes reachable, how branches are made to lead to
//! it and are taken back. Other threads may be running all of it meanwhile, so every change of code that has been there is
//! one indivisible store.

use grind_asm::{Asm, CALL};
use grind_codegen::PairCode as _;
use grind_codegen::{self as emit, Emitted};
use grind_fragments::fragment_table::{FragmentId, StubKind, Way};
use grind_layout as layout;
use grind_trace::follow::CallContextId;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use super::{Chunk, CodeCache, Tail};

impl CodeCache {
    /// Makes sure that an indirect branch to the block finds it without a stop.
    pub fn add_ibl_target(&mut self, id: FragmentId, way: Way) {
        let b = *self.trans.block(id);
        let Some(chunk) = self.chunks.iter().position(|c| c.contains(b.cache)) else { return };
        if self.chunks[chunk].used + 256 > layout::CHUNK_SIZE {
            return;
        }
        let base = self.chunks[chunk].next();
        let requests = self.chunks[chunk].requests;
        let emitted = emit::emit_ibl_target(base, b.pc, way, b.entry, &mut self.trans, requests.as_ref());
        self.commit(chunk, &emitted);
    }

    /// The same, if it has not been done and translations are entered in this way.
    pub fn expect_ibl_target(&mut self, id: FragmentId, way: Way) {
        let pc = self.trans.block(id).pc;
        if (self.pairs || matches!(way, Way::Jump | Way::Return)) && !self.ibl_targets.has(way, pc) {
            self.add_ibl_target(id, way);
        }
    }

    /// Puts code in its place and makes its IBL targets reachable.
    pub(super) fn commit(&mut self, chunk: usize, e: &Emitted) {
        let base = CacheAddr(e.code.base);
        let c = &mut self.chunks[chunk];
        c.host.write(base.since(c.guest) as usize, &e.code.buf);
        c.used = (c.used + e.code.buf.len() as u64).next_multiple_of(16);
        if self.trace.settings.any() {
            c.enlarge();
        }
        for l in &e.ibl_targets {
            let slot = emit::entry_of(l.way, l.pc);
            let entry = (l.way.table() + u64::from(slot) * 8) as usize;
            let (ibl_target, next) = (base.plus(l.pos as u64), base.plus(l.next as u64));
            self.ibl_targets.add(l.way, l.pc, base.plus(l.matches as u64));
            if l.way == Way::Paired {
                // The newest one first: it is where a call has been translated last.
                let first = CacheAddr(self.tables.u64(entry));
                if first != self.empty_entry(l.way) {
                    self.lead(next, first);
                }
                self.tables.store_u64(entry, ibl_target.0);
                continue;
            }
            match self.chains.insert((l.way, slot), Tail { next }) {
                Some(tail) => self.lead(tail.next, ibl_target),
                None => self.tables.store_u64(entry, ibl_target.0),
            }
        }
    }

    pub(super) fn host(&self, cache: CacheAddr) -> Option<(&Chunk, usize)> {
        self.chunks.iter().find(|c| c.contains(cache)).map(|c| (c, cache.since(c.guest) as usize))
    }

    /// Whether `a` is in the code cache.
    pub fn is_cache(&self, a: CacheAddr) -> bool {
        self.chunks.iter().any(|c| c.contains(a))
    }

    /// The byte at a cache address.
    pub fn cache_byte(&self, a: CacheAddr) -> Option<u8> {
        self.host(a).map(|(c, at)| c.host.u8(at))
    }

    /// Whether a system call is made at a cache address.
    pub fn calls_at(&self, a: CacheAddr) -> bool {
        (self.cache_byte(a), self.cache_byte(a.plus(1))) == (Some(0x0f), Some(0x05))
    }

    /// Whether flags are pushed at a cache address.
    pub fn pushes_flags_at(&self, a: CacheAddr) -> bool {
        let mut code = [0; 15];
        self.read_cache(a, &mut code);
        let ins = Decoder::with_ip(64, &code, a.0, DecoderOptions::NONE).decode();
        matches!(ins.mnemonic(), Mnemonic::Pushf | Mnemonic::Pushfq)
    }

    /// Reads translated code; what lies outside the cache is left as it is.
    pub fn read_cache(&self, a: CacheAddr, bytes: &mut [u8]) {
        if let Some((c, at)) = self.host(a)
            && at + bytes.len() <= layout::CHUNK_SIZE as usize
        {
            c.host.read(at, bytes);
        }
    }

    /// The stub whose `int3` is at `a`.
    pub fn stub_at(&self, a: CacheAddr) -> Option<StubKind> {
        let (c, at) = self.host(a)?;
        if c.host.u8(at) != 0xcc || at as u64 + 5 > layout::CHUNK_SIZE {
            return None;
        }
        let stub = self.trans.stubs.get(c.host.u32(at + 1) as usize)?;
        (stub.addr == a).then_some(stub.kind)
    }

    /// Lets the branch whose field is at `site` lead to a block from now on.
    pub fn link(&mut self, site: CacheAddr, to: FragmentId) {
        let b = *self.trans.block(to);
        log::trace!(target: subject::LINK, "the branch at {site:#x} leads to {:#x} now", b.pc);
        self.note_link(site, b.pc, b.call_context);
        if !self.is_call(site) {
            self.lead(site, b.entry);
        } else if let Some(called) = self.called(to) {
            self.lead(site, called);
        }
    }

    /// Whether the branch whose field is at `site` is a call.
    fn is_call(&self, site: CacheAddr) -> bool {
        self.cache_byte(site.minus(1)) == Some(CALL)
    }

    /// Where a block is called. `None`: there is no room for that.
    fn called(&mut self, id: FragmentId) -> Option<CacheAddr> {
        let b = *self.trans.block(id);
        if b.called != CacheAddr(0) {
            return Some(b.called);
        }
        let c = self.chunks.iter_mut().find(|c| c.contains(b.entry))?;
        if c.used + 64 > layout::CHUNK_SIZE {
            return None;
        }
        let at = c.next();
        let code = emit::emit_called(at, &b);
        c.host.write(c.used as usize, &code.buf);
        c.used += 16;
        self.trans.set_called(id, at);
        Some(at)
    }

    /// Remembers a branch to code that may have to be taken back.
    pub(super) fn note_link(&mut self, site: CacheAddr, target: GuestAddr, call_context: CallContextId) {
        if self.self_modifying(target) {
            self.incoming.entry((target, call_context)).or_default().push(site);
        }
    }

    /// Lets the branches that lead to a dead block's address stop instead, and its IBL target match nothing.
    pub(super) fn unlink(&mut self, pc: GuestAddr, call_context: CallContextId) {
        for way in Way::ALL {
            if let Some(at) = self.ibl_targets.remove(way, pc)
                && let Some((c, offset)) = self.host(at)
            {
                c.host.store_u8(offset, 0);
            }
        }
        for site in self.incoming.remove(&(pc, call_context)).unwrap_or_default() {
            let Some(i) = self.chunks.iter().position(|c| c.contains(site)) else { continue };
            if self.chunks[i].used + 64 > layout::CHUNK_SIZE {
                // No room for a stub: the dead block's first byte stops it.
                continue;
            }
            let id = self.trans.add_stub(StubKind::Exit { target: pc, site, call_context });
            let calls = self.is_call(site);
            let c = &mut self.chunks[i];
            let stub = c.next();
            let mut code = Asm { buf: Vec::new(), base: stub.0 };
            if calls {
                code.called();
            }
            self.trans.stubs[id as usize].addr = CacheAddr(code.here());
            code.stop(id);
            c.host.write(c.used as usize, &code.buf);
            c.used += 16;
            c.host.store_u32(site.since(c.guest) as usize, stub.since(site.plus(4)) as u32);
        }
    }

    /// Lets the branch whose field is at `site` lead to cache address `target`.
    pub(super) fn lead(&mut self, site: CacheAddr, target: CacheAddr) {
        let Some(i) = self.chunks.iter().position(|c| c.contains(site)) else { return };
        let mut to = target;
        if i32::try_from(target.since(site.plus(4)) as i64).is_err() {
            // Too far for the field: over a jump through memory, in the branch's own chunk.
            let c = &mut self.chunks[i];
            if c.used + 64 > layout::CHUNK_SIZE {
                return;
            }
            to = c.next();
            let mut code = vec![0xff, 0x25, 0, 0, 0, 0];
            code.extend_from_slice(&target.0.to_le_bytes());
            c.host.write(c.used as usize, &code);
            c.used += 64;
        }
        let c = &self.chunks[i];
        c.host.store_u32(site.since(c.guest) as usize, to.since(site.plus(4)) as u32);
    }

    /// Marks translations of `start..end`, and of jumps through words there, as dead: whoever gets to one stops at its first
    /// byte. Returns how many there were.
    pub fn kill_range(&mut self, start: GuestAddr, end: GuestAddr) -> usize {
        self.code.clear();
        let mut killed = self.trans.kill_range(start, end);
        for (start, end) in self.fixed.get_mut().forget(start, end) {
            killed.extend(self.trans.kill_range(start, end));
        }
        if !killed.is_empty() {
            log::debug!(target: subject::SMC, "{} fragments of {start:#x}..{end:#x} are dead", killed.len());
            self.forget_bridges(start, end);
        }
        for &id in &killed {
            let b = *self.trans.block(id);
            self.unlink(b.pc, b.call_context);
            for at in b.ways_in() {
                if let Some((c, at)) = self.host(at) {
                    c.host.store_u8(at, 0xcc);
                }
            }
        }
        killed.len()
    }

    /// Lets what enters a dead block from elsewhere lead to its successor, if there is room for a jump and it gets there. Only
    /// while no thread can be inside the dead block's first bytes.
    pub fn forward(&mut self, dead: FragmentId, to: FragmentId) -> bool {
        let from = *self.trans.block(dead);
        let to = self.trans.block(to).entry;
        let rel = to.since(from.entry.plus(5)) as i64;
        let (Ok(rel), true, Some((c, at))) = (i32::try_from(rel), from.len >= 5, self.host(from.entry)) else {
            return false;
        };
        c.host.write(at + 1, &rel.to_le_bytes());
        c.host.store_u8(at, 0xe9);
        true
    }
}
