//! A batch of found blocks to bytes. The guest's instructions are copied; around them stand one bump of a counter a block,
//! and what replaces transfers of control. Invariants: no guest flag, register or memory that the guest can see differs
//! from a native run at an instruction's boundary (but flags proved dead); nothing is pushed below rsp that the guest did
//! not push itself (red zone), but by a call or a return below its return address (`pairs`); a 32-bit field that may be patched
//! later lies within one cache line; r11 points to the thread's slot words but right behind a system call, and what the
//! guest has in that and in other registers that are taken ([`grind_layout::registers::StolenRegisters`]) is in these.

mod allocators;
#[cfg(test)]
mod bounds;
pub mod bridge;
mod bytes;
mod calls;
mod cold;
mod contexts;
mod control;
mod deferral;
mod derived_edges;
mod every;
mod fetches;
mod flags;
mod follow;
mod frames;
mod ibl_target;
pub mod level1;
mod lines;
pub mod miss_path;
mod operand;
mod pairs;
mod plan;
mod processor;
mod rep;
pub mod request;
mod resolve;
mod simulate;
mod special;
pub mod stack;
mod sums;
mod taken;
#[cfg(test)]
mod tests;
mod x87;

use grind_asm::Asm;
use grind_fragments::batch::{Batch, Found, Registers};
use grind_fragments::fragment_table::{
    DerivedEdge, Emulate, Fragment, FragmentId, FragmentTable, InsnShape, NO_COUNTER, NOT_SPILLED, StateMapEntry,
    StubKind, Way,
};
use grind_isa::decode::{Class, Insn, OSZAP, STATUS};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::TraceSettings;
use grind_trace::follow::CallContextId;
use grind_trace::objects::Watch;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::frames::FrameHook;
use iced_x86::{Encoder, InstructionInfoFactory};

use derived_edges::Goal;
use request::Requests;

pub use ibl_target::PAIR_BITS;
pub use ibl_target::{IblTarget, emit_ibl_target, entry_of};
pub use pairs::{PairCode, emit_called, extracts_fast};

/// Where one emitted branch leads, when it is not known yet.
#[derive(Clone, Copy, Debug)]
struct Fixup {
    /// Offset of the 32-bit field.
    pos: usize,
    /// Guest address that it leads to.
    target: GuestAddr,
    /// The block of this batch that it leads to, if there is one.
    to: Option<Goal>,
}

/// An emitted batch.
#[derive(Debug, Default)]
pub struct Emitted {
    /// The code.
    pub code: Asm,
    /// 64-bit constants behind the code, and the 32-bit fields that lead to them.
    literals: Vec<u64>,
    literal_uses: Vec<(usize, usize)>,
    /// Offset of the first literal.
    literal_pos: usize,
    /// IBL targets in it.
    pub ibl_targets: Vec<IblTarget>,
    fixups: Vec<Fixup>,
    /// Branches that lead to a translation from the start: offset of the 32-bit field, and the guest address.
    pub links: Vec<(usize, GuestAddr)>,
    /// Stub numbers, by the offset of their `int3`.
    pub stubs: Vec<(usize, u32)>,
}

impl Emitted {
    fn new(base: u64) -> Self {
        Self { code: Asm { buf: Vec::new(), base }, ..Self::default() }
    }

    /// Nothing yet, in the same buffers.
    fn clear(&mut self, base: u64) {
        let Self { code, literals, literal_uses, literal_pos, ibl_targets, fixups, links, stubs } = self;
        code.buf.clear();
        code.base = base;
        literals.clear();
        literal_uses.clear();
        *literal_pos = 0;
        ibl_targets.clear();
        fixups.clear();
        links.clear();
        stubs.clear();
    }

    /// A 64-bit constant behind the code; `pos` is the 32-bit field that shall lead to it.
    fn literal(&mut self, value: u64, pos: usize) -> usize {
        self.literals.push(value);
        self.literal_uses.push((pos, self.literals.len() - 1));
        self.literals.len() - 1
    }

    /// The same, for a constant that may be there already.
    fn literal_once(&mut self, value: u64, pos: usize) {
        match self.literals.iter().position(|v| *v == value) {
            Some(i) => self.literal_uses.push((pos, i)),
            None => {
                self.literal(value, pos);
            }
        }
    }

    fn place_literals(&mut self) {
        if self.literals.is_empty() {
            return;
        }
        self.code.fill_with_traps(|c| c.pos().is_multiple_of(8));
        self.literal_pos = self.code.pos();
        for &(pos, i) in &self.literal_uses {
            self.code.patch_rel32(pos, self.code.base + (self.literal_pos + 8 * i) as u64);
        }
        for i in 0..self.literals.len() {
            let v = self.literals[i];
            self.code.bytes(&v.to_le_bytes());
        }
    }

    /// Until another IBL target follows in its chain, an IBL target leads to a stop.
    fn place_misses(&mut self, trans: &mut FragmentTable, requests: Option<&Requests>) {
        for i in 0..self.ibl_targets.len() {
            let l = self.ibl_targets[i];
            if let Some(requests) = requests {
                self.code.patch_rel32(l.next, requests.miss(l.way).0);
                continue;
            }
            let id = trans.add_stub(StubKind::IblMiss { way: l.way });
            let here = self.code.here();
            self.code.patch_rel32(l.next, here);
            if l.way == Way::Call {
                self.code.called();
            }
            self.stubs.push((self.code.pos(), id));
            self.code.stop(id);
        }
    }
}

/// How a block's counter is bumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bump {
    /// `inc` before instruction `i`: flags are dead there.
    Inc(usize),
    /// Through a register that is dead at the start.
    Through(Gpr),
    /// Within the translation of the last instruction, where rcx is free.
    InLast,
    /// By saving rax.
    Spill,
    /// It has been done, or there is none.
    Done,
}

/// Buffers that an emitter needs, kept from batch to batch, because to allocate them would take a tenth of the time. What is in
/// them means nothing to the next one.
pub struct Work {
    out: Emitted,
    info: InstructionInfoFactory,
    encoder: Encoder,
    /// Points of the block at hand, by offset.
    state_map: Vec<(usize, StateMapEntry)>,
    /// How blocks are counted, in the order of emission.
    plan: Vec<derived_edges::Plan>,
    loops: Vec<derived_edges::Loop>,
    /// Ways out of copies of loops that are still to be placed.
    exits: Vec<derived_edges::Exit>,
    /// Which blocks begin without a check of their line, in the order of emission.
    fronts: Vec<lines::Front>,
    /// How blocks are checked, in the order of emission; places in that by number of the block.
    checks: Vec<plan::Plan>,
    places: Vec<usize>,
    /// Fields of branches that may lead past what blocks have in front, in order.
    past_front: Vec<usize>,
    /// Where blocks are left by transfers that the sink decides on: 32-bit fields and sites.
    transfers: Vec<(usize, u32)>,
    /// Blocks in the order of their emission, and the same before loops are repeated.
    order: Vec<usize>,
    unrolled: Vec<usize>,
    /// For what is settled before the first block is emitted.
    seen: Vec<bool>,
    place: Vec<usize>,
    heads: Vec<bool>,
    derived_edges: Vec<DerivedEdge>,
}

impl Work {
    fn clear(&mut self) {
        // The rest is filled anew by whoever uses it.
        let Self { state_map, plan, loops, exits, fronts, past_front, transfers, .. } = self;
        state_map.clear();
        plan.clear();
        loops.clear();
        exits.clear();
        fronts.clear();
        past_front.clear();
        transfers.clear();
    }

    /// Takes buffers back that are not needed any more.
    pub fn recycle(&mut self, out: Emitted) {
        self.out = out;
    }
}

impl Default for Work {
    fn default() -> Self {
        Self {
            out: Emitted::default(),
            info: InstructionInfoFactory::new(),
            encoder: Encoder::new(64),
            state_map: Vec::new(),
            plan: Vec::new(),
            loops: Vec::new(),
            exits: Vec::new(),
            fronts: Vec::new(),
            checks: Vec::new(),
            places: Vec::new(),
            past_front: Vec::new(),
            transfers: Vec::new(),
            order: Vec::new(),
            unrolled: Vec::new(),
            seen: Vec::new(),
            place: Vec::new(),
            heads: Vec::new(),
            derived_edges: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

/// Turns batches into code.
pub struct Emitter<'a> {
    batch: &'a Batch,
    trans: &'a mut FragmentTable,
    /// Address of the system-call and indirect-branch tables (below 2 GiB).
    tables: u64,
    module_of: &'a dyn Fn(GuestAddr) -> u32,
    out: Emitted,
    work: &'a mut Work,
    /// For the block at hand: its bump, its counter, where the bump was done (offset).
    bump: Bump,
    counter: u32,
    bump_end: usize,
    current: FragmentId,
    tracer: simulate::Tracer,
    call_recorder: calls::CallRecorder,
    /// Whether a way from one address to another gets to, or over, a boundary of functions.
    crosses: &'a dyn Fn(GuestAddr, GuestAddr) -> bool,
    /// What calls of allocators there are at an address.
    watched: &'a dyn Fn(GuestAddr) -> Option<Watch>,
    /// What hook of an interpreter there is at an address.
    hooks: &'a dyn Fn(GuestAddr) -> Option<FrameHook>,
    masked: bool,
    /// The plan of the block at hand.
    here: derived_edges::Plan,
    with_derived_edges: bool,
    with_contexts: bool,
    /// Whom executions count for.
    call_context: CallContextId,
    /// Nothing is collected in that.
    off: bool,
    /// Where stubs ask, if they need not stop.
    requests: Option<Requests>,
    deferrals: deferral::Deferrals,
    /// Calls and returns are pairs.
    pairs: bool,
    /// The block at hand gets a way in for calls, in front of it.
    callable: bool,
    /// It ends with a call that returns here.
    returns_to: Option<GuestAddr>,
}

impl<'a> Emitter<'a> {
    /// Emits `batch` to `base`, into `trans`; `tables` is where the process has the tables, `module_of` says what an address is in.
    #[inline(always)]
    pub fn new(
        batch: &'a Batch,
        trans: &'a mut FragmentTable,
        base: CacheAddr,
        tables: u64,
        module_of: &'a dyn Fn(GuestAddr) -> u32,
        work: &'a mut Work,
    ) -> Self {
        work.clear();
        let mut out = std::mem::take(&mut work.out);
        out.clear(base.0);
        Self {
            batch,
            trans,
            tables,
            module_of,
            out,
            work,
            bump: Bump::Spill,
            counter: 0,
            bump_end: 0,
            current: FragmentId(0),
            tracer: simulate::Tracer::default(),
            call_recorder: calls::CallRecorder::default(),
            crosses: &|_, _| false,
            watched: &|_| None,
            hooks: &|_| None,
            masked: false,
            here: derived_edges::Plan::default(),
            with_derived_edges: true,
            with_contexts: false,
            call_context: CallContextId::NONE,
            off: false,
            requests: None,
            deferrals: deferral::Deferrals::default(),
            pairs: false,
            callable: false,
            returns_to: None,
        }
    }

    /// Stubs ask before they stop.
    #[inline(always)]
    pub fn asking(mut self, requests: Option<Requests>) -> Self {
        self.requests = requests;
        self
    }

    /// The code shall also record what a simulation needs.
    /// `masked`: the guest sees the baseline processor.
    #[inline(always)]
    pub fn traced(mut self, settings: TraceSettings, masked: bool) -> Self {
        self.masked = masked;
        self.tracer = simulate::Tracer::new(settings);
        self.call_recorder = calls::CallRecorder::new(settings.calls, settings.every.is_some());
        self
    }

    /// Where functions begin and end: whether a way from one address to another gets to, or over, a boundary.
    /// `steady`: no code changes without a system call.
    #[inline(always)]
    pub fn bounded(mut self, crosses: &'a dyn Fn(GuestAddr, GuestAddr) -> bool, steady: bool) -> Self {
        self.crosses = crosses;
        self.call_recorder.steady = steady;
        self
    }

    /// Where allocators begin, and calls of them return to: that is recorded.
    #[inline(always)]
    pub fn watching(mut self, watched: &'a dyn Fn(GuestAddr) -> Option<Watch>) -> Self {
        self.watched = watched;
        self
    }

    /// Where frames of interpreters begin and change: that is recorded.
    #[inline(always)]
    pub fn hooking(mut self, hooks: &'a dyn Fn(GuestAddr) -> Option<FrameHook>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Whether blocks may lead to others uncounted.
    #[inline(always)]
    pub fn with_derived_edges(mut self, yes: bool) -> Self {
        self.with_derived_edges = yes;
        self
    }

    /// Emits all blocks and adds them, their stubs and their points to the table.
    pub fn emit(mut self) -> Emitted {
        self.order();
        self.unroll();
        let order = std::mem::take(&mut self.work.order);
        let first = self.trans.next_block();
        self.plan_derived_edges(&order);
        self.plan_fronts(&order);
        self.plan_checks(&order);
        self.plan_deferrals(&order);
        let called = self.called_within();
        for (k, &i) in order.iter().enumerate() {
            let b = self.batch.blocks[i];
            self.here = self.work.plan[k];
            self.deferrals.here = k;
            // Only a block without an IBL target can be run into.
            let next = order.get(k + 1).filter(|_| self.work.fronts[k + 1].run_into).map(|&j| self.batch.blocks[j]);
            // Nothing in front of it gets there in a straight line.
            let apart = k == 0 || !self.leads_on(order[k - 1], b.pc);
            let plain = matches!(self.here.entry, derived_edges::Entry::Anywhere | derived_edges::Entry::Front)
                && !self.has_front(k);
            self.callable = self.pairs && apart && plain && (k == 0 || called.contains(&b.pc));
            let behind = next.filter(|n| self.pairs || !n.return_site).map(|n| n.pc);
            self.block(&b, behind, self.work.fronts[k].unchecked);
            self.land_behind_call(behind);
        }
        self.fronts(first, &order);
        self.cold_parts();
        self.cold_transfers();
        self.place_ways_in();
        self.place_transfers();
        self.entries(first);
        self.place_exits();
        self.resolve();
        self.out.place_misses(self.trans, self.requests.as_ref());
        self.out.place_literals();
        for &(pos, id) in &self.out.stubs {
            self.trans.stubs[id as usize].addr = CacheAddr(self.out.code.base + pos as u64);
        }
        self.work.order = order;
        self.out
    }

    /// Whether block `i` goes on with the one at `pc` by its last instruction alone.
    fn leads_on(&self, i: usize, pc: GuestAddr) -> bool {
        let last = &self.batch.insns_of(&self.batch.blocks[i])[self.batch.blocks[i].n - 1];
        last.class.goes_on() && last.next() == pc
            || matches!(last.class, Class::Jmp | Class::Jcc | Class::Loop) && last.target() == pc
    }

    /// Blocks that run into one another stand together.
    fn order(&mut self) {
        let n = self.batch.blocks.len();
        let (mut seen, mut order) = (std::mem::take(&mut self.work.seen), std::mem::take(&mut self.work.order));
        seen.clear();
        seen.resize(n, false);
        order.clear();
        for start in 0..n {
            let mut at = Some(start);
            while let Some(i) = at.filter(|&i| !seen[i]) {
                seen[i] = true;
                order.push(i);
                let b = &self.batch.blocks[i];
                let last = &self.batch.insns[b.first + b.n - 1];
                let target = self.turned(last).then(|| self.batch.find(last.target())).flatten();
                at = if let Some(target) = target.filter(|&i| !seen[i]) {
                    Some(target)
                } else if last.class.goes_on() {
                    self.batch.find(last.next())
                } else if last.class == Class::Jmp {
                    self.batch.find(last.target())
                } else {
                    None
                };
            }
        }
        (self.work.seen, self.work.order) = (seen, order);
    }

    fn block(&mut self, b: &Found, next_in_order: Option<GuestAddr>, unchecked: bool) {
        let insns = self.batch.insns_of(b);
        if b.return_site && !self.pairs {
            self.out.ibl_target(b.pc, Way::Return);
        }
        let called = if self.callable { self.out.code.here() } else { 0 };
        if self.callable {
            self.out.code.called();
        }
        let start = self.out.code.pos();
        self.current = self.trans.next_block();
        self.counter = self.trans.new_counter();
        let mut edge = NO_COUNTER;
        self.bump_end = start;
        self.bump = match self.here.entry {
            derived_edges::Entry::Anywhere => self.choose_bump(insns),
            derived_edges::Entry::Front => Bump::Inc(0),
            derived_edges::Entry::Edge => {
                edge = self.trans.new_counter();
                Bump::Inc(0)
            }
            derived_edges::Entry::Free => Bump::Done,
        };
        if self.call_recorder.active() {
            self.bump = Bump::Done;
            self.begin_told_block();
        }
        self.work.state_map.clear();
        let shapes = self.trans.shapes.len() as u32;
        let checked = self.tracer.checks();
        let told = self.call_recorder.active();
        // Then there is nothing to do about most instructions.
        let counts_only = !told && !self.tracer.keeps_facts();
        let mut gone = false;
        let early = self.early_exit(insns);
        let bus = self.tracer.settings.bus_total();
        for (i, insn) in insns.iter().enumerate() {
            let from = self.out.code.pos();
            match self.bump {
                Bump::Inc(at) if at == i => {
                    self.out
                        .code
                        .bump(layout::counter_offset(if edge == NO_COUNTER { self.counter } else { edge }), insn.live);
                    self.bump_end = self.out.code.pos();
                }
                Bump::Through(r) if i == 0 => self.bump_through(r),
                Bump::Spill if i == 0 => {
                    self.out.code.spill(SlotWord::Rax, Gpr::RAX);
                    self.bump_through(Gpr::RAX);
                    self.out.code.reload(Gpr::RAX, SlotWord::Rax);
                }
                _ => {}
            }
            if i == 0
                && let Some(watch) = (self.watched)(b.pc)
            {
                self.watch(b.pc, watch, insn.live);
            }
            if i == 0
                && let Some(hook) = (self.hooks)(b.pc)
            {
                self.frame_hook(b.pc, hook, insn.live);
            }
            if counts_only && insn.is_copied() {
                self.out.code.first_bytes(insn.raw(), insn.len());
                let cache = (self.out.code.pos() - from) as u16;
                self.trans.shapes.push(InsnShape { guest: insn.len() as u8, cache });
                continue;
            }
            if early == Some(i) {
                self.count_early(insns);
            }
            if checked {
                if i == 0 {
                    self.begin_traced_block(insns, self.batch.registers_of(b), unchecked);
                }
                self.check(insns, i);
                if insn.class.ends_block() {
                    self.end_held();
                }
            }
            let facts = (self.tracer.keeps_facts() || told).then(|| self.facts(insn));
            self.call_recorder.at((i + 1, insns.len()), insn, facts.unwrap_or_default(), bus);
            if i + 1 == insns.len() {
                self.tell_before_last(insn);
            }
            let elsewhere = self.insn(insn, i, next_in_order);
            if i + 1 == insns.len() && insn.class != Class::Loop {
                gone = self.tell_onward(insn);
            }
            self.trans.facts.extend(facts);
            let cache = self.out.code.pos() - from;
            debug_assert!(cache < 1 << 16);
            self.trans.shapes.push(InsnShape {
                guest: insn.len() as u8 | if elsewhere { InsnShape::COUNTED_ELSEWHERE } else { 0 },
                cache: cache as u16,
            });
        }
        if checked {
            self.end_held();
        }
        let last = &insns[insns.len() - 1];
        if self.call_recorder.active() {
            self.bump_end = self.bump_end.min(self.out.code.pos());
        }
        let guest_len = last.next().since(b.pc) as u16;
        // The way on to the next instruction, unless that follows right here.
        if last.class.goes_on()
            && !matches!(last.class, Class::Call | Class::CallIndirect | Class::CallNoRedirect | Class::Loop)
            && !gone
        {
            match last.class {
                Class::Jcc if self.here.inverted => self.go(last.target(), next_in_order, None),
                Class::Jcc => self.go_from(last, last.next(), next_in_order, self.past_way_in(last.next())),
                c if c.ends_block() => self.go_from(last, last.next(), next_in_order, None),
                _ => {
                    let goal = self.here.goal.or_else(|| self.past_way_in(last.next()));
                    self.go_from(last, last.next(), next_in_order, goal);
                }
            }
        }
        if self.deferrals_end(insns) {
            if self.out.code.pos() == start {
                // It must be possible to kill it without what it runs into.
                self.out.code.nop(1);
            }
            self.bump_end = self.out.code.pos();
        }
        let begin = CacheAddr(self.out.code.base + start as u64);
        let (held, held_from, held_to) = self.tracer.held(start);
        let dead_in = self.batch.registers_of(b).first().map_or(0, |r| r.dead);
        self.trans.add_fragment(Fragment {
            pc: b.pc,
            call_context: self.call_context,
            cache: begin,
            entry: begin,
            called: CacheAddr(called),
            len: (self.out.code.pos() - start) as u32,
            counter: self.counter,
            edge,
            derived_edges_in: self.here.entry != derived_edges::Entry::Anywhere,
            shapes,
            n: insns.len() as u16,
            bump_end: (self.bump_end - start) as u32,
            module: (self.module_of)(b.pc),
            guest_len,
            live_in: insns[0].live,
            dead_in,
            held,
            held_from,
            held_to,
            told: self.call_recorder.block(),
            dead: false,
        });
        self.end_told_block(b, insns);
        for &(pos, entry) in &self.work.state_map {
            self.trans.add_state_map_entry(CacheAddr(self.out.code.base + pos as u64), entry);
        }
    }

    fn bump_through(&mut self, r: Gpr) {
        let offset = layout::counter_offset(self.counter);
        self.out.code.load_gs(r, offset);
        self.out.code.lea_disp(r, r, 1);
        self.out.code.store_gs(offset, r);
        self.bump_end = self.out.code.pos();
    }

    fn choose_bump(&mut self, insns: &[Insn]) -> Bump {
        // Best where CF is dead too.
        let dead = |flags: u8| insns.iter().position(|x| x.live & flags == 0);
        if let Some(i) = dead(STATUS).or_else(|| dead(OSZAP)) {
            return Bump::Inc(i);
        }
        match insns[insns.len() - 1].class {
            Class::Ret | Class::JmpIndirect | Class::CallIndirect | Class::CallNoRedirect | Class::Syscall => {
                Bump::InLast
            }
            _ if self.stolen_registers().has(Gpr::R10) => Bump::Through(Gpr::R10),
            _ => self.dead_register(insns).map_or(Bump::Spill, Bump::Through),
        }
    }

    /// A register that is written before it is read, seen from the first instruction.
    fn dead_register(&mut self, insns: &[Insn]) -> Option<Gpr> {
        let mut read = 1u16 << Gpr::RSP.0;
        for insn in insns {
            if !matches!(insn.class, Class::Plain | Class::Jcc | Class::Jmp | Class::Call) {
                return None;
            }
            let r = Registers::of(insn, &mut self.work.info);
            let dead = r.overwritten & !read;
            if dead != 0 {
                return Some(Gpr(dead.trailing_zeros() as u8));
            }
            read |= r.used & !r.overwritten;
            if insn.class == Class::Jcc {
                // Where it is taken, what is written behind it may be needed.
                return None;
            }
        }
        None
    }

    fn state_map_entry(&mut self, entry: StateMapEntry) {
        self.work.state_map.push((self.out.code.pos(), entry));
    }

    /// Emits one instruction; true if its executions are counted elsewhere than by the block.
    fn insn(&mut self, insn: &Insn, index: usize, next_in_order: Option<GuestAddr>) -> bool {
        match insn.class {
            Class::Plain => {
                self.plain(insn);
                if let Some((offset, _)) = insn.saved_x87_address() {
                    self.check_x87_address(insn, offset);
                }
            }
            Class::GsMemory if insn.names_taken(self.stolen_registers()) => self.with_taken(insn),
            Class::GsMemory => self.through_slot_word(&insn.ins, [NOT_SPILLED; 2], &[]),
            Class::Jcc => {
                // iced numbers the conditions as the hardware does, after "none".
                let condition = insn.ins.condition_code() as u8 - 1;
                let inverted = self.here.inverted;
                let pos = self.out.code.jcc(condition ^ u8::from(inverted));
                let target = if inverted { insn.next() } else { insn.target() };
                if let Some(counter) = self.here.exit {
                    let skipped = FragmentId(self.current.0 + 1);
                    self.work.exits.push(derived_edges::Exit { pos, counter, target, to: self.here.goal, skipped });
                } else if !self.tell_taken(insn, pos) {
                    self.note_branch(insn, target, pos);
                    self.out.fixups.push(Fixup { pos, target, to: self.here.goal });
                }
            }
            Class::Loop => self.short_branch(insn),
            Class::Jmp => {
                if !self.tell_transfer(insn) {
                    let goal = self.here.goal.or_else(|| self.past_way_in(insn.target()));
                    self.go_from(insn, insn.target(), next_in_order, goal);
                }
                if self.with_derived_edges && self.out.code.pos() == self.bump_end {
                    // Where it is entered past its counter shall not be where the next block begins, which may outlive it.
                    self.out.code.nop(1);
                }
            }
            Class::Call if self.pairs => self.call_direct(insn),
            Class::Call => {
                self.push_return(insn.next());
                if !self.tell_transfer(insn) {
                    let pos = self.out.code.jmp();
                    self.out.fixups.push(Fixup { pos, target: insn.target(), to: self.here.goal });
                }
            }
            Class::CallIndirect | Class::CallNoRedirect => {
                self.indirect_target(insn);
                self.record_indirect(insn);
                if self.pairs {
                    self.find_entry(Way::Call);
                    self.state_map_entry(StateMapEntry::spilled(Gpr::RCX, SlotWord::Rcx));
                    self.call_entry(insn);
                    return false;
                }
                self.state_map_entry(StateMapEntry::spilled(Gpr::RCX, SlotWord::Rcx));
                self.push_return(insn.next());
                if !self.tell_transfer(insn) {
                    self.look_up(Way::Jump);
                }
            }
            Class::JmpIndirect => {
                self.indirect_target(insn);
                self.record_indirect(insn);
                if !self.tell_transfer(insn) {
                    self.look_up(Way::Jump);
                }
            }
            Class::Ret => self.ret(insn),
            Class::Syscall => self.syscall(insn),
            Class::RepMove => self.rep_move(insn, index),
            Class::RepCompare => {
                self.rep_compare(insn, index);
                return true;
            }
            Class::XsaveMasked => {
                self.xsave(insn);
                if let Some((offset, _)) = insn.saved_x87_address() {
                    self.check_x87_address(insn, offset);
                }
            }
            Class::Cpuid => self.cpuid(insn),
            Class::Xgetbv => self.xgetbv(insn),
            Class::ClientRequest => self.client_request(insn),
            Class::ClientGetNr => self.stop(insn, Emulate::ClientGetNr),
            Class::Int3 => self.stop(insn, Emulate::Int3),
            Class::InPlace => self.stop(insn, Emulate::InPlace),
        }
        false
    }

    fn copy(&mut self, insn: &Insn) {
        self.out.code.bytes(insn.bytes());
    }
}
