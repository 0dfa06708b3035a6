//! How blocks are made: what is known outside a batch, the batch, its code, and its place in a chunk. Invariant: nothing is found or
//! decided here that counts would hang on; that is for the emitter, by what the space records.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use grind_codegen::Emitter;
use grind_fragments::batch::Known;
use grind_fragments::code_reader::VSYSCALL_PAGE;
use grind_fragments::fragment_table::{FragmentId, FragmentTable};
use grind_fragments::hotness::Hotness;
use grind_isa::decode::Insn;
use grind_layout as layout;
use grind_layout::registers::StolenRegisters;
use grind_ptrace::Memory;
use grind_trace::follow::CallContextId;
use grind_trace::objects::Watched;
use grind_types::addr::GuestAddr;
use grind_types::subject;

use super::{Chunk, CodeCache, ExecRange, map};
use crate::fixed::Fixed;

/// Counters that must be left before a batch is begun: more than 64 blocks of 200 instructions can need.
const BATCH_COUNTERS: u32 = 64 * 256;

/// The most conditional branches that a block goes on behind where blocks are told: it is told once, where it is left.
const THROUGH: usize = 6;

/// What is known outside a batch.
struct Outside<'a> {
    call_context: CallContextId,
    /// Calls lead to other call contexts.
    followed: bool,
    /// It is known where functions and sections begin and end.
    bounded: bool,
    /// No code changes without a system call.
    steady: bool,
    /// What is emitted besides the guest's instructions needs many registers.
    registers: bool,
    stolen_registers: StolenRegisters,
    crosses: &'a dyn Fn(GuestAddr, GuestAddr) -> bool,
    trans: &'a FragmentTable,
    ranges: &'a [ExecRange],
    boundaries: &'a [Arc<[u64]>],
    watched: Option<&'a Watched>,
    through: usize,
    /// The chunk that the code is for.
    chunk: &'a Chunk,
    /// What is known of words that cannot change, and the memory that has them. Not where jumps are told one by one, nor where
    /// another process, whose memory may differ, uses the same translations.
    fixed: Option<(&'a RefCell<Fixed>, &'a Memory)>,
    /// The range that was asked for last.
    last: Cell<(GuestAddr, GuestAddr)>,
}

impl Known for Outside<'_> {
    fn live_in(&self, pc: GuestAddr) -> Option<u8> {
        self.trans.state_in(pc, self.call_context).map(|(live, _)| live)
    }

    fn begins(&self, pc: GuestAddr) -> bool {
        self.trans.begins(pc, self.call_context)
    }

    fn none_before(&self, pc: GuestAddr) -> GuestAddr {
        self.trans.next_begin(pc, self.call_context)
    }

    fn through(&self) -> usize {
        self.through
    }

    fn boundary_in(&self, start: GuestAddr, end: GuestAddr) -> Option<GuestAddr> {
        if !self.bounded && self.watched.is_none() {
            return None;
        }
        let range = self.ranges.iter().find(|r| r.contains(start))?;
        if let Some(watched) = self.watched {
            // Calls are not told then.
            return watched.next(range.module, start.0).map(GuestAddr).filter(|b| *b < end);
        }
        let list = self.boundaries.get(range.module as usize)?;
        list.get(list.partition_point(|b| *b < start.0)).map(|b| GuestAddr(*b)).filter(|b| *b < end)
    }

    fn stays(&self, from: GuestAddr, to: GuestAddr) -> bool {
        !self.followed || !(self.crosses)(from, to)
    }

    fn calls_stay(&self) -> bool {
        !self.followed
    }

    fn looks_for_flags(&self) -> bool {
        self.followed && self.steady
    }

    fn wants_registers(&self) -> bool {
        self.registers
    }

    fn stolen_registers(&self) -> StolenRegisters {
        self.stolen_registers
    }

    fn dead_in(&self, pc: GuestAddr) -> Option<u16> {
        self.trans.state_in(pc, self.call_context).map(|(_, dead)| dead)
    }

    fn relies_on_others(&self) -> bool {
        self.steady
    }

    fn fixed_word(&self, at: GuestAddr, user: &Insn) -> Option<u64> {
        let (fixed, memory) = self.fixed?;
        fixed.borrow_mut().target(memory, at, (user.pc(), user.next())).map(|target| target.0)
    }

    fn hotness(&self) -> Option<&Hotness> {
        (!self.trans.hotness.is_empty()).then_some(&self.trans.hotness)
    }

    fn may_look_ahead(&self, pc: GuestAddr) -> bool {
        if !self.chunk.reaches(pc) {
            return false;
        }
        let (start, end) = self.last.get();
        if pc >= start && pc < end {
            return true;
        }
        let Some(r) = self.ranges.iter().find(|r| r.contains(pc)) else { return false };
        self.last.set((r.start, r.end));
        true
    }
}

impl CodeCache {
    /// Translates the block at `pc` and what is likely to follow. The caller has made sure that `pc` is executable and that
    /// there is a chunk. `None`: nothing can be read there.
    pub fn translate(&mut self, pc: GuestAddr, call_context: CallContextId, memory: &Memory) -> Option<FragmentId> {
        if pc.page() == VSYSCALL_PAGE {
            self.module_for_vsyscall();
        }
        if self.trans.counters() > layout::MAX_COUNTERS - BATCH_COUNTERS
            || self.trans.lines() > layout::MAX_LINES - BATCH_COUNTERS
        {
            return None;
        }
        let chunk = self.chunk_for(pc)?;
        let settings = self.trace.settings;
        let ranges = &self.ranges;
        let boundaries = &self.boundaries;
        let crosses = |from: GuestAddr, to: GuestAddr| {
            let Some(r) = ranges.iter().find(|r| r.contains(from)) else { return true };
            if !r.contains(to) {
                return true;
            }
            let Some(list) = boundaries.get(r.module as usize) else { return false };
            let place = |pc: GuestAddr| list.partition_point(|b| *b <= pc.0);
            let to_place = place(to);
            to_place != place(from) || to_place > 0 && list[to_place - 1] == to.0
        };
        let any_self_modifying = self.any_self_modifying();
        // What reads its target is told of, or that it is indirect.
        let told = settings.any() && (!settings.followed() || settings.checks());
        let outside = Outside {
            call_context,
            followed: settings.followed(),
            bounded: settings.calls.is_some(),
            steady: !any_self_modifying,
            registers: settings.any(),
            stolen_registers: settings.stolen_registers(),
            crosses: &crosses,
            trans: &self.trans,
            ranges: &self.ranges,
            boundaries: &self.boundaries,
            watched: self.trace.recorded.objects.then_some(&self.watched),
            through: if settings.calls.is_some() && settings.every.is_none() { THROUGH } else { 0 },
            chunk: &self.chunks[chunk],
            fixed: (!told && self.users == 1).then_some((&self.fixed, memory)),
            last: Cell::default(),
        };
        let self_modifying = |start: GuestAddr, end: GuestAddr| {
            any_self_modifying
                && (outside.ranges.iter().any(|r| r.self_modifying && start < r.end && r.start < end)
                    || self.once_writable.range(start.page()..end).next().is_some())
        };
        let until = |pc| map::executable_until(ranges, pc);
        self.batch.discover(pc, self.masked, &mut self.code.reader(memory, &self_modifying, &until), &outside);
        log::trace!(target: subject::LINK, "{} blocks from {pc:#x} on are translated", self.batch.blocks.len());
        if !self.batch.blocks.is_empty() {
            self.fresh.clear();
            for b in self.batch.blocks.iter().filter(|_| any_self_modifying) {
                for page in [b.pc, b.end.minus(1)].map(GuestAddr::page) {
                    if !self.fresh.contains(&page) {
                        self.fresh.push(page);
                    }
                }
            }
            let last = Cell::new((GuestAddr(0), GuestAddr(0), 0));
            let module_of = |pc: GuestAddr| {
                let (start, end, module) = last.get();
                if pc >= start && pc < end {
                    return module;
                }
                let Some(r) = ranges.iter().find(|r| r.contains(pc)) else { return 0 };
                last.set((r.start, r.end, r.module));
                r.module
            };
            let base = self.chunks[chunk].next();
            let watched = self.trace.recorded.objects.then_some(&self.watched);
            let is_watched = |pc: GuestAddr| watched.and_then(|watched| watched.at(module_of(pc), pc.0));
            let hooks = self.trace.settings.frames().then_some(&self.hooks);
            let hook_at = |pc: GuestAddr| hooks.and_then(|hooks| hooks.at(module_of(pc), pc.0));
            // Branches to code that changes are taken back, which uncounted ones cannot be; what records needs every entry.
            let derived_edges = !self.self_modifying(pc) && !self.trace.settings.any() && !self.trace.recorded.objects;
            self.trans.begin_batch();
            let emitted = Emitter::new(&self.batch, &mut self.trans, base, self.tables_at, &module_of, &mut self.work)
                .with_derived_edges(derived_edges)
                .traced(self.trace.settings, self.masked)
                .with_contexts(self.contexts)
                .call_context(call_context)
                .in_pairs(self.pairs)
                .asking(self.chunks[chunk].requests)
                .bounded(&crosses, !any_self_modifying)
                .watching(&is_watched)
                .hooking(&hook_at)
                .emit();
            for &(pos, target) in emitted.links.iter().filter(|_| any_self_modifying) {
                self.note_link(base.plus(pos as u64), target, call_context);
            }
            self.commit(chunk, &emitted);
            self.work.recycle(emitted);
        }
        self.trans.lookup(pc, call_context)
    }
}
