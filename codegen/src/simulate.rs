//! What a traced block does besides counting: it keeps its thread's first-level caches, as least-recently-used caches that
//! know for each line when it was used last, and records what misses them.
//!
//! A line that was used at a known time is in the cache, so a hit is settled in line: compare, and store the time. All else
//! (misses, accesses to two lines, lines that the table has lost sight of) goes on behind the hot code, in [`super::cold`].
//! Checks stand before their instructions, so records are in program order, a fetch before the accesses of its instruction.
//!
//! Times: the clock is in r9 ([`grind_layout::registers::StolenRegisters`]). It is moved on before a use of a line of data, and behind one of a line
//! of code, or by the use of data that follows that, so it is never below the time of a line of data, and above those of all
//! lines of code. Only the order of times counts. Invariants: of two uses of a set the later one has the later time, within a
//! thread; the highest word of a record is written first, so that one that does not fit any more faults before anything of it
//! is there.

use grind_asm::instructions::{ABOVE, NE, NOT_SIGN, SAR};
use grind_fragments::batch::Registers;
use grind_fragments::fragment_table::NO_REG;
use grind_isa::decode::{Class, Insn, STATUS};
use grind_isa::events::{self, Access, Kind, Place};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::{FirstLevel, Site, SiteKind, TraceSettings};
use grind_types::StaticEvents;
use iced_x86::Register;

use super::Emitter;
use super::bytes::{Used, bytes};
use super::cold::{Cold, NO_LINES, Unsettled};
use super::every::{self, Stretch};
use super::lines::lines_of;
use super::miss_path::access_words;
use super::pairs::extracts_fast;
use super::plan::{Group, NO_LINE, Plan, is_special};
use super::taken::Taken;

/// Where registers that a block holds are saved.
const HELD: [SlotWord; 2] = [SlotWord::Held1, SlotWord::Held2];

/// What tracing needs while a batch is emitted.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    pub(super) settings: TraceSettings,
    pub(super) cold: Vec<Cold>,
    pub(super) accesses: Vec<Access>,
    /// For the block at hand: the code line that was fetched from last.
    pub(super) line: u64,
    pub(super) plan: Plan,
    /// If every access is recorded: what of the block is still to come, the next one last.
    pub(super) stretches: Vec<Stretch>,
    /// Registers that no instruction of the block touches and that what is recorded uses throughout. And whether the guest's
    /// values of them are saved, because they are needed.
    pub(super) held: Vec<(Gpr, bool)>,
    /// Offsets in the code between which they hold our values.
    held_from: usize,
    held_to: usize,
    /// Whether the host has PEXT, and as fast as other instructions.
    pub(super) extract: bool,
}

impl Tracer {
    pub(super) fn new(settings: TraceSettings) -> Self {
        Self { settings, extract: extracts_fast(), ..Self::default() }
    }

    /// Whether there is anything to trace.
    pub(super) fn active(&self) -> bool {
        self.settings.any()
    }

    /// Whether it is kept what instructions do.
    pub(super) fn keeps_facts(&self) -> bool {
        self.active() || self.settings.forms
    }

    /// Whether there is anything to check before instructions.
    pub(super) fn checks(&self) -> bool {
        self.settings.checks()
    }

    /// The code cache, if fetches are simulated.
    pub(super) fn fetches(&self) -> Option<FirstLevel> {
        self.settings.fetches
    }

    /// The code line that a block's first instruction comes behind. `unchecked`: its own.
    pub(super) fn line_before(&self, insns: &[Insn], unchecked: bool) -> u64 {
        match self.settings.fetches {
            Some(f) if unchecked => lines_of(&insns[0], f).0,
            _ => NO_LINE,
        }
    }

    /// The registers that are held in the block that was just emitted at `start`, and from where to where.
    pub(super) fn held(&self, start: usize) -> ([u8; 2], u32, u32) {
        if self.held.iter().all(|(_, saved)| !saved) {
            return ([NO_REG; 2], 0, 0);
        }
        let regs = std::array::from_fn(|n| self.held.get(n).filter(|h| h.1).map_or(NO_REG, |h| h.0.0));
        (regs, (self.held_from - start) as u32, (self.held_to - start) as u32)
    }
}

/// XCHG with memory locks without a prefix.
fn exchanges_memory(ins: &iced_x86::Instruction) -> bool {
    ins.mnemonic() == iced_x86::Mnemonic::Xchg && (0..2).any(|n| ins.op_kind(n) == iced_x86::OpKind::Memory)
}

impl Emitter<'_> {
    /// Plans the block's checks, and takes registers for them if that pays. `unchecked`: it is known to be entered from the
    /// line of its first instruction.
    pub(super) fn begin_traced_block(&mut self, insns: &[Insn], registers: &[Registers], unchecked: bool) {
        self.tracer.line = self.tracer.line_before(insns, unchecked);
        self.tracer.held.clear();
        let k = self.deferrals.here;
        let plan = match self.tracer.settings.every {
            Some(e) => {
                let (stretches, plan) = every::plan(insns, registers, e);
                self.tracer.stretches = stretches;
                plan
            }
            None => std::mem::take(&mut self.work.checks[k]),
        };
        let held: Vec<_> = plan.hold.iter().enumerate().map(|(n, &r)| (r, n >= plan.unneeded)).collect();
        self.tracer.plan = plan;
        for (&(r, _), word) in held.iter().zip(HELD).filter(|((_, saved), _)| *saved) {
            self.out.code.spill(word, r);
        }
        self.tracer.held = held;
        self.tracer.held_from = self.out.code.pos();
        self.tracer.held_to = usize::MAX;
    }

    /// What stands in front of a block, for those who come from elsewhere, begins.
    pub(super) fn begin_front(&mut self, plan: Plan) {
        self.tracer.plan = plan;
        self.tracer.line = NO_LINE;
        self.tracer.held.clear();
    }

    /// The registers that are held at present.
    pub(super) fn holding(&self) -> impl Iterator<Item = Gpr> + use<'_> {
        let held = if self.tracer.held_to == usize::MAX { &self.tracer.held[..] } else { &[] };
        held.iter().map(|h| h.0)
    }

    /// Gives the block's own registers back.
    pub(super) fn end_held(&mut self) {
        if self.tracer.held_to == usize::MAX {
            self.tracer.held_to = self.out.code.pos();
            for (&(r, _), word) in self.tracer.held.iter().zip(HELD).filter(|((_, saved), _)| *saved) {
                self.out.code.reload(r, word);
            }
        }
    }

    /// The checks before instruction `i` of a block.
    pub(super) fn check(&mut self, insns: &[Insn], i: usize) {
        let insn = &insns[i];
        let lines = self.new_lines(insn);
        let mut taken = None;
        if lines[0] != NO_LINES[0] {
            let block = self.call_recorder.block().filter(|_| i > 0);
            taken = self.check_fetch(insn, i, lines, block);
        }
        self.record_stretch(insns, i);
        if let Some(f) = self.tracer.settings.accesses {
            self.check_accesses(insns, i, f, taken);
        }
        if self.tracer.settings.data() {
            let mut list = std::mem::take(&mut self.tracer.accesses);
            list.clear();
            events::accesses(insn, &mut list);
            if is_special(&list) {
                self.record_special(insn, i, &list);
            }
            self.tracer.accesses = list;
        }
        if self.tracer.settings.branches && insn.class == Class::Jcc {
            self.check_condition(insn, i);
        }
    }

    /// What the executions of an instruction count by themselves, and its form; nothing where nobody wants to know.
    pub(super) fn facts(&mut self, insn: &Insn) -> StaticEvents {
        if !self.tracer.settings.counts_events() {
            return StaticEvents::default();
        }
        self.tracer.accesses.clear();
        events::accesses(insn, &mut self.tracer.accesses);
        let mut c = events::counts(insn, &self.tracer.accesses);
        if is_special(&self.tracer.accesses) {
            // The trace counts them all.
            (c.reads, c.writes, c.modifies) = (0, 0, 0);
        }
        StaticEvents {
            reads: c.reads as u8,
            writes: c.writes as u8,
            modifies: c.modifies as u8,
            conditional: c.conditional != 0,
            indirect: c.indirect != 0,
            bus: insn.ins.has_lock_prefix() || exchanges_memory(&insn.ins),
            form: if self.tracer.settings.forms { form_of(&insn.ins) } else { 0 },
        }
    }

    pub(super) fn trace_site(&mut self, insn: &Insn, kind: SiteKind) -> u32 {
        let site = Site { module: (self.module_of)(insn.pc()), len: insn.len() as u8, addr: insn.pc(), kind };
        self.trans.new_trace_site(site)
    }

    /// Groups of later instructions may have been moved to instruction `i`: what they use is not for the checks.
    pub(super) fn used_by_later(&self, i: usize) -> Vec<Gpr> {
        let later = self.tracer.plan.groups.iter().rev().take_while(|g| g.at == i).filter(|g| g.members[0].insn != i);
        let mut but = Vec::new();
        for group in later {
            if let Place::At(at) = group.members[0].access.place {
                but.extend([at.base, at.index].iter().filter(|r| r.is_gpr()).map(|r| Gpr(r.number() as u8)));
            }
        }
        but.retain(|r| r.kept(self.stolen_registers()).is_none());
        but
    }

    /// The checks of all groups that begin with instruction `i`, by registers that may be `taken` already, if flags are dead.
    fn check_accesses(&mut self, insns: &[Insn], i: usize, f: FirstLevel, taken: Option<Taken>) {
        if self.tracer.plan.groups.last().is_none_or(|g| g.at != i) {
            return;
        }
        let insn = &insns[i];
        let live = insn.live & STATUS != 0;
        if live && self.check_keeping_flags(insns, i, f) {
            return;
        }
        let dead = self.tracer.plan.registers[i].dead;
        let but = self.used_by_later(i);
        let taken = taken.unwrap_or_else(|| self.take_among(insn, dead, 2, &but));
        let [a, b, _] = taken.regs;
        if live {
            self.save_flags(b);
        }
        self.check_groups(insns, i, f, [a, b], None);
        if live {
            self.restore_flags(b);
        }
        self.give_back(taken);
    }

    /// The checks of these groups, by registers that have been taken.
    pub(super) fn check_groups(
        &mut self,
        insns: &[Insn],
        i: usize,
        f: FirstLevel,
        regs: [Gpr; 2],
        keeping_flags: Option<Gpr>,
    ) {
        while let Some(group) = self.tracer.plan.groups.pop_if(|g| g.at == i) {
            self.check_group(insns, &group, f, regs, keeping_flags);
        }
    }

    /// The address of an access, and `offset`, into `a`; `b` and the flags may be changed. Returns whether `b` is.
    pub(super) fn access_address(&mut self, place: &Place, offset: i64, a: Gpr, b: Gpr) -> bool {
        let stolen_registers = self.stolen_registers();
        let c = &mut self.out.code;
        let (address, segment) = match *place {
            Place::At(address)
            | Place::PlusAl(address)
            | Place::Bit(address, _)
            | Place::Element { address, .. }
            | Place::Compacted { address, .. } => (address, address.segment),
        };
        let both = c.lea_address(a, b, &address.plus(offset), stolen_registers);
        match *place {
            Place::PlusAl(_) => {
                c.zero_extend_al(b);
                c.lea_sum(a, b);
            }
            Place::Bit(_, bit) => {
                c.sign_extended(b, bit, stolen_registers);
                c.shift(SAR, b, 3);
                c.lea_sum(a, b);
            }
            Place::At(_) | Place::Element { .. } | Place::Compacted { .. } => {}
        }
        match segment {
            Register::FS => {
                c.rdfsbase(b);
                c.lea_sum(a, b);
            }
            Register::GS => {
                c.reload(b, SlotWord::GuestGs);
                c.lea_sum(a, b);
            }
            _ => return both || matches!(place, Place::PlusAl(_) | Place::Bit(..)),
        }
        true
    }

    /// Whether it matters in which order a group's two lines are used, if they are of two pages.
    pub(super) fn orders_neighbours(&self) -> bool {
        self.tracer.settings.tlbs.is_some_and(|tlbs| tlbs.orders_neighbours())
    }

    /// `keeping_flags`: rcx, if it may be changed and the flags may not.
    fn check_group(
        &mut self,
        insns: &[Insn],
        group: &Group,
        f: FirstLevel,
        [a, b]: [Gpr; 2],
        keeping_flags: Option<Gpr>,
    ) {
        let mut members = Vec::with_capacity(group.members.len());
        for m in &group.members {
            let kind = match m.access.kind {
                Kind::Read => SiteKind::Read(m.size),
                Kind::Write => SiteKind::Write(m.size),
                Kind::Modify => SiteKind::Modify(m.size),
            };
            let site = self.trace_site(&insns[m.insn], kind);
            members.push((site, m.offset, m.size));
        }
        let place = group.members[0].access.place;
        let words = access_words(&members, group.span);
        let sites = members.iter().map(|member| member.0);
        let mut used = self.tracer.settings.keeps_bytes().then(|| Used::by(group, sites));
        let both = !self.tracer.settings.keeps_uses() && !self.orders_neighbours();
        if keeping_flags.is_none() && both && group.is_wide() {
            return self.check_both_lines(group, f, [a, b], words, used);
        }
        self.access_address(&place, group.from_first, a, b);
        let c = &mut self.out.code;
        let from = if let Some(t) = keeping_flags {
            debug_assert!(t == Gpr::RCX);
            c.extract(b, a, SlotWord::EntryBits);
            c.lea_sum(b, b);
            c.gs_scaled(0x8b, t, b, layout::DATA_TAGS);
            // Beyond the line if what is above its bits is not 0.
            c.lea_sum_disp(a, t, i32::from(group.span) - 1);
            c.extract(t, a, SlotWord::LineBits);
            let inside = c.jrcxz();
            let from = c.jmp();
            c.patch_short(inside);
            from
        } else {
            self.find_line(a, b, f, group.span)
        };
        if keeping_flags.is_some() {
            self.out.code.lea_disp(Gpr::R9, Gpr::R9, 1);
            self.out.code.gs_scaled(0x89, Gpr::R9, b, layout::DATA_TIMES);
        } else {
            self.out.code.use_entry(b);
        }
        if self.tracer.settings.keeps_uses() {
            // The offset in the line once more.
            if self.access_address(&place, group.from_first, a, b) {
                self.entry_of(a, b, f);
            }
            self.out.code.gs_index(0x03, a, b, layout::DATA_TAGS as u32);
            self.out.code.gs_index32(0x8b, b, b, layout::DATA_PLACES as u32);
            let bytes = members.iter().fold(0, |all, &(_, offset, size)| all | bytes(size) << offset);
            self.use_line(a, b, bytes, members.len());
        }
        if let Some(used) = &mut used {
            self.check_bytes(used, false, [a, b], true);
        }
        let back = self.out.code.pos();
        let (offset, live) = (group.from_first, keeping_flags.is_some());
        let group = Unsettled { place, offset, span: group.span, a, b, live, words, used };
        self.tracer.cold.push(Cold::Accesses { from, back, cache: f, group });
    }

    /// Turns address `a` into its offset in a line that the table knows, whose entry is in `b` then. Returns the field of a jump
    /// that leaves if `span` bytes do not lie in such a line.
    fn find_line(&mut self, a: Gpr, b: Gpr, f: FirstLevel, span: u16) -> usize {
        self.entry_of(a, b, f);
        let c = &mut self.out.code;
        c.gs_index(0x03, a, b, layout::DATA_TAGS as u32);
        c.cmp_imm(a, i32::from(f.line as u16 - span));
        c.jcc_away(ABOVE)
    }

    /// Checks the line of a group's lowest byte, and that of its highest one, which may be the same. Flags may be changed.
    fn check_both_lines(
        &mut self,
        group: &Group,
        f: FirstLevel,
        [a, b]: [Gpr; 2],
        words: Vec<u32>,
        mut used: Option<Used>,
    ) {
        let place = group.members[0].access.place;
        let mut from = Vec::with_capacity(2);
        for last in [false, true] {
            let to_byte = if last { i64::from(group.span) - 1 } else { 0 };
            self.access_address(&place, group.from_first + to_byte, a, b);
            from.push(self.find_line(a, b, f, 1));
            self.out.code.use_entry(b);
            if let Some(used) = &mut used {
                self.check_bytes(used, last, [a, b], true);
                // Both lines have to be there before anything is told.
                from.extend(used.unknown_so_far(last));
            }
        }
        let back = self.out.code.pos();
        self.tracer.cold.push(Cold::MissPath {
            from,
            back,
            place,
            offset: group.from_first,
            regs: [a, b],
            words,
            used,
        });
    }

    /// Notes `n` accesses to `bytes`, counted from the offset in its line that is in `a`, of the line whose way is in `b`. Changes
    /// `a` and the flags.
    pub(super) fn use_line(&mut self, a: Gpr, b: Gpr, bytes: u64, n: usize) {
        let pos = self.out.code.shift_literal(true, a, a);
        self.out.literal_once(bytes, pos);
        let c = &mut self.out.code;
        c.gs_index(0x09, a, b, layout::DATA_USES as u32);
        c.gs_index_by(0, b, layout::DATA_USES as u32 + 8, n as i8); // add
    }

    /// What is known of lines of the data cache is forgotten, so that the next access to each takes the miss path; lines used before
    /// now are old. rdx is free, and so are the flags.
    pub(super) fn forget_lines(&mut self) {
        let Some(cache) = self.tracer.settings.accesses else { return };
        let c = &mut self.out.code;
        c.spill(SlotWord::T3, Gpr::RCX);
        c.store_gs(layout::SAVES, Gpr::RAX);
        // The table tells of no line that is not in the cache, so it is enough to go through that: mostly it is smaller. As
        // [`crate::level1::forget_lines`] does.
        let bytes = layout::DATA_WAY * u64::from(cache.sets) * u64::from(cache.ways);
        c.mov_imm(Gpr::RCX, bytes.wrapping_neg());
        let again = c.pos();
        let (place, own) = ((layout::DATA_WHERE + bytes) as u32, layout::DATA_OWN + bytes);
        let entry = |table: u64| (layout::NOWHERE + table) as u32;
        c.gs_index(0x8b, Gpr::RDX, Gpr::RCX, place);
        c.op_reg(0x85, Gpr::RDX, Gpr::RDX);
        let not_shown = c.jcc(NOT_SIGN);
        // Its time is its way's own from now on.
        c.gs_index(0x8b, Gpr::RAX, Gpr::RDX, entry(layout::DATA_TIMES));
        c.gs_index(0x89, Gpr::RAX, Gpr::RCX, own as u32 + 8);
        c.gs_index(0x8b, Gpr::RAX, Gpr::RDX, entry(layout::DATA_TAGS));
        c.gs_index(0x89, Gpr::RAX, Gpr::RCX, (layout::DATA_WAYS + bytes) as u32);
        c.lea_disp(Gpr::RAX, Gpr::RCX, (own - layout::NOWHERE) as i32);
        c.gs_index(0x89, Gpr::RAX, Gpr::RCX, place);
        c.gs_store_imm(Gpr::RDX, entry(layout::DATA_TAGS), layout::NOTHING as i32);
        c.gs_index32_by(0, Gpr::RDX, entry(layout::DATA_HIDDEN), 1);
        c.patch_here(not_shown);
        c.alu_imm(0, Gpr::RCX, layout::DATA_WAY as i32);
        c.jcc_back(NE, again);
        c.load_gs(Gpr::RAX, layout::SAVES);
        c.lea_disp(Gpr::RCX, Gpr::R9, 1);
        c.store_gs(SlotWord::ContextTime.at(), Gpr::RCX);
        c.reload(Gpr::RCX, SlotWord::T3);
    }
}

/// See [`StaticEvents::form`].
fn form_of(instruction: &iced_x86::Instruction) -> u16 {
    const MEMORY: u16 = 0x8000;
    let memory = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == iced_x86::OpKind::Memory);
    instruction.code() as u16 | if memory { MEMORY } else { 0 }
}
