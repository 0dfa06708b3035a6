//! What emitted code can do by itself once the sink has said what a transfer of control means: bridges, chained from the
//! place where a block is left. The newest stands first; an indirect branch with many targets gets a table of its own, by
//! some bits of the target, in front of the chain.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_codegen::bridge::{self, Bridge};
use grind_fragments::fragment_table::{FragmentId, StubKind};
use grind_layout as layout;
use grind_trace::SiteKind;
use grind_trace::Transfer;
use grind_trace::follow::{BridgeChain, CallContextId, CallEdge, CallKind, MOST_TOLD, Outcome, StackEffect, TOTALS};
use grind_types::addr::{CacheAddr, GuestAddr};

use super::CodeCache;

/// Bytes that a bridge takes at most.
const BRIDGE_ROOM: u64 = 1024;

/// Targets of an indirect branch from which on it has a table.
const MANY: usize = 4;

/// Where a stop is for returns that emitted code cannot follow, in the first chunk.
pub(super) const UNMATCHED_RETURN: u64 = 40;

/// Bits of a target that choose its entry in a table.
fn entry_of(target: GuestAddr) -> u64 {
    target.0 >> 3 & 255
}

impl CodeCache {
    /// Where the stop for unmatched returns is.
    pub fn unmatched_return(&self) -> CacheAddr {
        self.chunks.first().map_or(CacheAddr(0), |c| c.guest.plus(UNMATCHED_RETURN))
    }

    /// How the site of a told transfer transfers control, and where the instruction and the next one are.
    pub fn told_transfer(&self, told: u32) -> Option<Transfer> {
        match self.trans.trace_sites.get(told as usize)?.kind {
            SiteKind::Transfer { how, .. } => Some(how),
            _ => None,
        }
    }

    /// What the transfer of a told site to `target` comes to, as far as others tell.
    pub fn has_met(&self, told: u32, from: CallContextId, target: GuestAddr) -> Option<Outcome> {
        let site = self.trans.trace_sites.get(told as usize)?;
        let SiteKind::Transfer { how, .. } = site.kind else { return None };
        self.trans.follow.has_met(how, from, target.0, site.addr.0.wrapping_add(site.len.into()))
    }

    /// From now on emitted code does what `outcome` says where the site `told` leads from `from` to `target`, whose translation is
    /// `block`. Returns the number of the call edge, if it is one. `root` is the field by which the site is left.
    pub fn build_bridge(
        &mut self,
        (told, from, root): (u32, CallContextId, CacheAddr),
        target: GuestAddr,
        block: FragmentId,
        outcome: Outcome,
    ) -> Option<u32> {
        let always = outcome.always?;
        let how = self.told_transfer(told)?;
        let indirect = matches!(how, Transfer::CallIndirect | Transfer::JumpIndirect);
        let (to, to_block) = (self.trans.block(block).call_context, *self.trans.block(block));
        let mut b = Bridge {
            indirect: indirect.then_some(target),
            always,
            live: if self.self_modifying(target) { u8::MAX } else { to_block.live_in },
            function: outcome.to.function,
            level: outcome.to.level,
            recursive: outcome.from.function == outcome.to.function,
            counters: [0; 1 + TOTALS],
            totals: self.trace.settings.totals(),
            jumps: None,
            call_edge: 0,
            dead: if self.self_modifying(target) { 0 } else { to_block.dead_in },
            live_after: u8::MAX,
            dead_after: 0,
            through: false,
            told: self.trace.settings.tells_each(),
            off: outcome.from.off || outcome.to.off,
            unmatched_return: 0,
            stolen_registers: self.trace.settings.stolen_registers(),
        };
        let mut call_edge = None;
        let mut after = None;
        if let StackEffect::Push { kind, returns_to, .. } = always {
            if outcome.to.function >= layout::MOST_FUNCTIONS || outcome.to.level > 100 {
                return None;
            }
            let number = self.trans.follow.call_edge(CallEdge { kind, site: told, from, target: target.0, to });
            if b.told && number >= MOST_TOLD {
                return None;
            }
            call_edge = Some(number);
            b.call_edge = number;
            b.through = kind == CallKind::Through;
            if returns_to != 0 {
                let returns_to = GuestAddr(returns_to);
                let id = self.trans.follow.caller(from);
                let known = self.trans.lookup(returns_to, id);
                if let Some(known) = known.filter(|_| !self.self_modifying(returns_to)) {
                    b.live_after = self.trans.block(known).live_in;
                    b.dead_after = self.trans.block(known).dead_in;
                }
                after = Some((returns_to, id, known));
            }
        }
        let i = self.chunks.iter().position(|c| c.contains(root))?;
        if self.chunks[i].used + BRIDGE_ROOM > layout::CHUNK_SIZE {
            return call_edge;
        }
        if let Some(number) = call_edge {
            for what in std::iter::once(None).chain(b.totals.iter().map(|&total| Some(total as u8))) {
                let counter = self.trans.new_counter();
                b.counters[what.map_or(0, |total| 1 + usize::from(total))] = counter;
                self.trans.follow.counters.push((counter, number, what));
            }
        }
        let jumps = matches!(how, Transfer::Jump(_) | Transfer::Taken(_) | Transfer::JumpIndirect);
        if jumps && always == StackEffect::Nothing && self.trace.settings.calls.is_some_and(|c| c.jumps) {
            let counter = self.trans.new_counter();
            self.trans.follow.jumps.push((counter, told, from, target.0));
            b.jumps = Some(counter);
        }
        let unmatched_return = self.unmatched_return();
        let chunk = &self.chunks[i];
        let base = chunk.next();
        let near = i32::try_from(unmatched_return.since(base) as i64).is_ok_and(|d| d.abs() < 0x7fff_0000);
        let mut code = Asm { buf: Vec::with_capacity(512), base: base.0 };
        // Stops of its own: one for unmatched returns where the common one is too far, one for what it returns to.
        let stop = |code: &mut Asm, trans: &mut grind_fragments::fragment_table::FragmentTable, kind| {
            let id = trans.add_stub(kind);
            trans.stubs[id as usize].addr = CacheAddr(code.here());
            code.stop(id);
            id
        };
        b.unmatched_return = unmatched_return.0;
        if !near {
            b.unmatched_return = code.here();
            stop(&mut code, &mut self.trans, StubKind::Return { in_rcx: false });
        }
        let start = CacheAddr(code.here());
        let built = bridge::emit(&mut code, &b);
        let mut chain = self.trans.follow.chains.remove(&root).unwrap_or_default();
        if chain.head == CacheAddr(0) {
            chain.stop = self.led_to(root);
            chain.head = chain.stop;
        }
        let mut late = Vec::new();
        let mut returns_at = None;
        if let Some((pos, onward)) = built.returns {
            returns_at = Some(base.plus(pos as u64));
            if let (Some(onward), Some((pc, call_context, known))) = (onward, after) {
                let site = base.plus(onward as u64);
                let here = code.here();
                code.patch_rel32(onward, here);
                stop(&mut code, &mut self.trans, StubKind::Exit { target: pc, site, call_context });
                late.extend(known.map(|known| (site, known)));
            }
        }
        // Fields that lead elsewhere are set when the code is in its place, since that may be far away.
        let chunk = &mut self.chunks[i];
        chunk.host.write(base.since(chunk.guest) as usize, &code.buf);
        chunk.used = (chunk.used + code.buf.len() as u64).next_multiple_of(16);
        let table = chain.table;
        let next = match table {
            Some(table) => {
                let at = layout::TARGET_TABLES + u64::from(table) * layout::TARGET_TABLE + 8 * entry_of(target);
                CacheAddr(self.tables.u64(at as usize))
            }
            None => chain.head,
        };
        for field in built.else_ {
            self.lead(base.plus(field as u64), next);
        }
        self.link(base.plus(built.onward as u64), block);
        for (site, known) in late {
            self.link(site, known);
        }
        if let (Some(number), Some(returns_at)) = (call_edge, returns_at) {
            self.trans.follow.returns[number as usize] = returns_at;
            self.trans.follow.by_return.insert(returns_at, number);
        }
        self.trans.follow.led.entry(target.0 >> 12).or_default().push(root);
        chain.bridges.push((target, start));
        match table {
            Some(table) => {
                let at = layout::TARGET_TABLES + u64::from(table) * layout::TARGET_TABLE + 8 * entry_of(target);
                self.tables.store_u64(at as usize, start.0);
            }
            None => {
                chain.head = start;
                self.lead(root, start);
                if indirect && chain.bridges.len() == MANY {
                    self.give_table(i, root, &mut chain);
                }
            }
        }
        self.trans.follow.chains.insert(root, chain);
        call_edge
    }

    /// What was known of code in `start..end` is void: whoever leads there asks the sink again.
    pub(super) fn forget_bridges(&mut self, start: GuestAddr, end: GuestAddr) {
        if self.trans.follow.led.is_empty() || start >= end {
            return;
        }
        let (first, last) = (start.0 >> 12, (end.0 - 1) >> 12);
        let led = &mut self.trans.follow.led;
        let pages: Vec<u64> = if last - first < led.len() as u64 {
            (first..=last).filter(|page| led.contains_key(page)).collect()
        } else {
            led.keys().copied().filter(|page| (first..=last).contains(page)).collect()
        };
        for page in pages {
            for root in self.trans.follow.led.remove(&page).unwrap_or_default() {
                if let Some(chain) = self.trans.follow.chains.remove(&root) {
                    self.lead(root, chain.stop);
                }
            }
        }
    }

    /// Where the branch whose field is at `site` leads.
    fn led_to(&self, site: CacheAddr) -> CacheAddr {
        let Some((c, at)) = self.host(site) else { return CacheAddr(0) };
        let distance = c.host.u32(at) as i32;
        site.plus(4).plus(i64::from(distance) as u64)
    }

    /// Puts a table in front of a chain. (Where a site is left, the target is in rcx.)
    fn give_table(&mut self, chunk: usize, root: CacheAddr, chain: &mut BridgeChain) {
        let number = self.trans.follow.tables;
        if number >= layout::MOST_TARGET_TABLES || !std::is_x86_feature_detected!("bmi2") {
            return;
        }
        let c = &mut self.chunks[chunk];
        let base = c.next();
        let mut code = Asm { buf: Vec::new(), base: base.0 };
        let at = layout::TARGET_TABLES + u64::from(number) * layout::TARGET_TABLE;
        let table = (self.tables_at + at) as i32;
        dynasm!(code; rorx ecx, ecx, 3; movzx ecx, cl; jmp QWORD [rcx * 8 + table]);
        c.host.write(base.since(c.guest) as usize, &code.buf);
        c.used = (c.used + code.buf.len() as u64).next_multiple_of(16);
        let entry = chain.head.0.to_le_bytes();
        let all: Vec<u8> = entry.iter().copied().cycle().take(layout::TARGET_TABLE as usize).collect();
        self.tables.write(at as usize, &all);
        for &(target, bridge) in &chain.bridges {
            self.tables.store_u64((at + 8 * entry_of(target)) as usize, bridge.0);
        }
        self.trans.follow.tables += 1;
        chain.table = Some(number);
        chain.head = base;
        self.lead(root, base);
    }
}
