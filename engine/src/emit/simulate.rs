//! What a traced block does besides counting: it keeps its thread's first-level caches, as least-recently-used caches that
//! know for each line when it was used last, and records what misses them.
//!
//! A line that was used at a known time is in the cache, so a hit is settled in line: compare, and store the time. All else
//! (misses, accesses to two lines, lines that the table has lost sight of) goes to the routines of [`super::walk`]. Checks
//! stand before their instructions, so records are in program order, a fetch before the accesses of its instruction.
//!
//! Times: the clock is moved on once for all uses of a *segment* (a block, or what is left of it behind an instruction whose
//! uses are not known in advance), by two for each, since an access may use two lines; each use knows how far back its own
//! time is. Invariants: later uses have later times, within a thread; the highest word of a record is written first, so that
//! one that does not fit any more faults before anything of it is there.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::Emitter;
use super::instructions::{ABOVE, E, NE};
use super::plan::{Group, NO_LINE, Plan, is_special};
use super::walk::{Repeat, access_words, emit_repeat_walk, fetch_words};
use crate::api::StaticEvents;
use crate::arena::{self, Scratch};
use crate::asm::Gpr;
use crate::decode::{Class, Insn, STATUS};
use crate::events::{self, Access, Kind, Place, When};
use crate::trace::{FirstLevel, Site, SiteKind, Special, Target, TraceSettings};
use crate::transtab::{NO_REG, Point, StubKind};

/// Lines that an instruction is fetched from: 8 times the number, and the offset of the set; zeros if it is only one.
type Lines = [(u32, u32); 2];

/// What remains to be emitted behind the hot code.
#[derive(Clone, Debug)]
enum Cold {
    /// An instruction whose line is not in the cache, or may not be.
    Fetch { from: usize, back: usize, lines: Lines, before: u32, site: u32 },
    /// A group of accesses that is not settled. Unless its `address` is to be computed again, `a` is that less the address of
    /// the line in the table's entry `b`.
    Accesses { from: usize, back: usize, a: Gpr, b: Gpr, address: Option<(Place, i64)>, words: Vec<u32> },
}

/// Registers for the checks before one instruction, and which of them have to be given back.
#[derive(Clone, Copy, Debug)]
struct Taken {
    regs: [Gpr; 3],
    spilled: [bool; 3],
}

/// Where they are saved.
const TAKEN: [Scratch; 3] = [Scratch::T1, Scratch::T2, Scratch::T3];
const HELD: [Scratch; 3] = [Scratch::Held1, Scratch::Held2, Scratch::Held3];

/// What tracing needs while a batch is emitted.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    settings: TraceSettings,
    cold: Vec<Cold>,
    accesses: Vec<Access>,
    /// For the block at hand: the code line that was fetched from last.
    line: u64,
    plan: Plan,
    /// Registers that no instruction of the block touches and that the checks use throughout; the third holds the clock.
    held: Vec<Gpr>,
    /// Offsets in the code between which they hold our values.
    held_from: usize,
    held_to: usize,
    /// How much of the present segment's time is still to come.
    left: u32,
    /// Whether the host has PEXT (BMI2).
    extract: bool,
}

impl Tracer {
    pub(super) fn new(settings: TraceSettings) -> Self {
        Self { settings, extract: std::arch::is_x86_feature_detected!("bmi2"), ..Self::default() }
    }

    /// Whether there is anything to trace.
    pub(super) fn active(&self) -> bool {
        self.settings.any()
    }

    /// The registers that are held in the block that was just emitted at `start`, and from where to where.
    pub(super) fn held(&self, start: usize) -> ([u8; 3], u32, u32) {
        if self.held.is_empty() {
            return ([NO_REG; 3], 0, 0);
        }
        let regs = std::array::from_fn(|n| self.held.get(n).map_or(NO_REG, |r| r.0));
        (regs, (self.held_from - start) as u32, (self.held_to - start) as u32)
    }

    /// Takes the time of one use of up to two lines: how much earlier than the clock it is.
    fn time(&mut self) -> u32 {
        self.left -= 2;
        self.left + 1
    }
}

/// XCHG with memory locks without a prefix.
fn exchanges_memory(ins: &iced_x86::Instruction) -> bool {
    ins.mnemonic() == iced_x86::Mnemonic::Xchg && (0..2).any(|n| ins.op_kind(n) == iced_x86::OpKind::Memory)
}

impl Emitter<'_> {
    /// Plans the block's checks, and takes registers for them if that pays.
    pub(super) fn begin_traced_block(&mut self, insns: &[Insn]) {
        self.tracer.line = NO_LINE;
        self.tracer.held.clear();
        let plan = Plan::of(insns, &self.tracer.settings, &mut self.info);
        let mut free: Vec<Gpr> = (0..16u8).filter(|r| plan.free >> r & 1 != 0).map(Gpr).take(plan.hold).collect();
        if free.len() == 3 && free[2] == Gpr::RCX {
            // Where flags are live, a line is looked up through rcx.
            free.swap(0, 2);
        }
        self.tracer.plan = plan;
        for (&r, word) in free.iter().zip(HELD) {
            self.out.code.spill(word, r);
        }
        self.tracer.held = free;
        self.tracer.held_from = self.out.code.pos();
        self.tracer.held_to = usize::MAX;
    }

    /// The registers that are held at present.
    fn holding(&self) -> &[Gpr] {
        if self.tracer.held_to == usize::MAX { &self.tracer.held } else { &[] }
    }

    /// The register that holds the clock, if one does.
    fn clock(&self) -> Option<Gpr> {
        self.holding().get(2).copied()
    }

    /// Gives the block's own registers back.
    pub(super) fn end_held(&mut self) {
        if self.tracer.held_to == usize::MAX {
            self.tracer.held_to = self.out.code.pos();
            for (&r, word) in self.tracer.held.iter().zip(HELD) {
                self.out.code.reload(r, word);
            }
        }
    }

    /// The checks before instruction `i` of a block.
    pub(super) fn check(&mut self, insns: &[Insn], i: usize) {
        let insn = &insns[i];
        if let Some(&(_, time)) = self.tracer.plan.segments.last().filter(|s| s.0 == i) {
            self.tracer.plan.segments.pop();
            self.tracer.left = time;
            if time > 0 {
                self.move_clock(insn, i, time);
            }
        }
        if let Some(f) = self.tracer.settings.fetches {
            self.check_fetch(insn, i, f);
        }
        if let Some(f) = self.tracer.settings.accesses {
            self.check_accesses(insns, i, f);
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

    /// What the executions of an instruction count by themselves.
    pub(super) fn facts(&mut self, insn: &Insn) -> StaticEvents {
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
        }
    }

    fn trace_site(&mut self, insn: &Insn, kind: SiteKind) -> u32 {
        let site = Site {
            module: (self.module_of)(insn.pc()),
            len: insn.len() as u8,
            addr: crate::addr::GuestAddr(insn.pc()),
            kind,
        };
        self.trans.new_trace_site(site)
    }

    /// Moves the clock on by `time`, before any of its uses.
    fn move_clock(&mut self, insn: &Insn, i: usize, time: u32) {
        let clock = self.clock();
        if clock.is_none() && insn.live & STATUS == 0 {
            self.out.code.add_gs(Scratch::Clock as u32, time as i32);
            return;
        }
        let taken = if clock.is_none() { Some(self.take(insn, i, 1)) } else { None };
        let c = &mut self.out.code;
        if let Some(r) = clock.or(taken.map(|t| t.regs[0])) {
            c.load_gs(r, Scratch::Clock as u32);
            c.lea_disp(r, r, time as i32);
            c.store_gs(Scratch::Clock as u32, r);
        }
        if let Some(taken) = taken {
            self.give_back(taken);
        }
    }

    /// A register that holds the time `before` the clock: `free`, or the one that holds the clock.
    fn time_in(&mut self, free: Gpr, before: u32) -> Gpr {
        let clock = self.clock();
        let c = &mut self.out.code;
        match clock {
            Some(r) if before == 0 => return r,
            Some(r) => c.lea_disp(free, r, -(before as i32)),
            None => {
                c.load_gs(free, Scratch::Clock as u32);
                if before > 0 {
                    c.lea_disp(free, free, -(before as i32));
                }
            }
        }
        free
    }

    fn check_fetch(&mut self, insn: &Insn, i: usize, f: FirstLevel) {
        let (first, last) = lines_of(insn, f);
        let mut lines = [(0, 0); 2];
        let mut n = 0;
        for line in [first, last] {
            if line != self.tracer.line {
                self.tracer.line = line;
                let set = (line & u64::from(f.sets - 1)) as u32 * f.ways * 8;
                lines[n] = (self.trans.line_number(line) * 8, set);
                n += 1;
            }
        }
        if n == 0 {
            return;
        }
        let site = self.trace_site(insn, SiteKind::Fetch);
        let mut before = [0; 2];
        let mut waiting = [0; 2];
        for k in 0..n {
            before[k] = self.tracer.time();
            waiting[k] = self.line_check(insn, i, lines[k].0, before[k]);
        }
        let back = self.out.code.pos();
        for &from in &waiting[..n] {
            self.tracer.cold.push(Cold::Fetch { from, back, lines, before: before[0], site });
        }
    }

    /// Emits the check for one code line; returns the field of the jump that leaves it.
    fn line_check(&mut self, insn: &Insn, i: usize, line: u32, before: u32) -> usize {
        let at = arena::LINES as u32 + line;
        if insn.live & STATUS == 0 {
            self.out.code.cmp_gs_zero(at);
            let leave = self.out.code.jcc_away(E);
            let taken = self.take(insn, i, 1);
            let time = self.time_in(taken.regs[0], before - 1);
            self.out.code.store_gs(at, time);
            self.give_back(taken);
            return leave;
        }
        // Without touching flags.
        let free = self.holding().iter().take(2).any(|&r| r == Gpr::RCX)
            || self.tracer.plan.registers[i].dead >> Gpr::RCX.0 & 1 != 0;
        let c = &mut self.out.code;
        if !free {
            c.spill(Scratch::T3, Gpr::RCX);
        }
        c.load_gs(Gpr::RCX, at);
        let absent = c.jrcxz();
        let present = c.jmp_short();
        c.patch_short(absent);
        if !free {
            c.reload(Gpr::RCX, Scratch::T3);
        }
        let leave = c.jmp();
        c.patch_short(present);
        let time = self.time_in(Gpr::RCX, before - 1);
        self.out.code.store_gs(at, time);
        if !free {
            self.out.code.reload(Gpr::RCX, Scratch::T3);
        }
        leave
    }

    /// The checks of all groups that begin with instruction `i`.
    fn check_accesses(&mut self, insns: &[Insn], i: usize, f: FirstLevel) {
        let begins = |g: &Group| g.at == i;
        if !self.tracer.plan.groups.last().is_some_and(begins) {
            return;
        }
        let insn = &insns[i];
        let live = insn.live & STATUS != 0;
        let plain = |g: &Group| matches!(g.members[0].access.place, Place::At(_));
        let groups = self.tracer.plan.groups.iter().rev().take_while(|g| begins(g));
        let registers = self.tracer.plan.registers[i];
        let rcx_dead = registers.dead >> Gpr::RCX.0 & 1 != 0;
        // Groups of later instructions may have been moved here: what they use is not for the checks.
        let mut but: Vec<Gpr> = Vec::new();
        for group in groups.clone().filter(|g| g.members[0].insn != i) {
            if let Place::At(at) = group.members[0].access.place {
                but.extend([at.base, at.index].iter().filter(|r| r.is_gpr()).map(|r| Gpr(r.number() as u8)));
            }
        }
        let rcx_used = registers.used >> Gpr::RCX.0 & 1 != 0 && !rcx_dead || but.contains(&Gpr::RCX);
        if live && self.tracer.extract && !rcx_used && groups.clone().all(plain) {
            let rcx_held = self.holding().iter().take(2).any(|&r| r == Gpr::RCX);
            let given = rcx_held || rcx_dead;
            but.push(Gpr::RCX);
            let taken = self.take_among(insn, registers.dead, 2, &but);
            let [a, b, _] = taken.regs;
            if !given {
                self.out.code.spill(Scratch::T3, Gpr::RCX);
            }
            while let Some(group) = self.tracer.plan.groups.pop_if(|g| begins(g)) {
                self.check_group(insns, &group, f, [a, b], Some(Gpr::RCX));
            }
            if !given {
                self.out.code.reload(Gpr::RCX, Scratch::T3);
            }
            self.give_back(taken);
            return;
        }
        let taken = self.take_among(insn, registers.dead, 2, &but);
        let [a, b, _] = taken.regs;
        if live {
            self.save_flags(b);
        }
        while let Some(group) = self.tracer.plan.groups.pop_if(|g| begins(g)) {
            self.check_group(insns, &group, f, [a, b], None);
        }
        if live {
            self.restore_flags(b);
        }
        self.give_back(taken);
    }

    /// Saves the status flags. `free` is a register that may be changed.
    fn save_flags(&mut self, free: Gpr) {
        let c = &mut self.out.code;
        if free != Gpr::RAX {
            c.spill(Scratch::Rax, Gpr::RAX);
        }
        c.bytes(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
        c.spill(Scratch::Flags, Gpr::RAX);
        if free != Gpr::RAX {
            c.reload(Gpr::RAX, Scratch::Rax);
        }
    }

    fn restore_flags(&mut self, free: Gpr) {
        let c = &mut self.out.code;
        if free != Gpr::RAX {
            c.spill(Scratch::Rax, Gpr::RAX);
        }
        c.reload(Gpr::RAX, Scratch::Flags);
        c.bytes(&[0x04, 0x7f, 0x9e]); // add al, 127 (sets OF again); sahf
        if free != Gpr::RAX {
            c.reload(Gpr::RAX, Scratch::Rax);
        }
    }

    /// The address of an access, and `offset`, into `a`; `b` and the flags may be changed.
    fn access_address(&mut self, place: &Place, offset: i64, a: Gpr, b: Gpr) {
        let c = &mut self.out.code;
        let (address, segment) = match *place {
            Place::At(address)
            | Place::PlusAl(address)
            | Place::Bit(address, _)
            | Place::Element { address, .. }
            | Place::Compacted { address, .. } => (address, address.segment),
        };
        c.lea_address(a, &address.plus(offset));
        match *place {
            Place::PlusAl(_) => {
                c.bytes(&[0x48 | (b.0 >> 3) << 2, 0x0f, 0xb6, 0xc0 | (b.0 & 7) << 3]); // movzx b, al
                c.lea_sum(a, b);
            }
            Place::Bit(_, bit) => {
                c.sign_extended(b, bit);
                c.bytes(&[0x48 | b.0 >> 3, 0xc1, 0xf8 | b.0 & 7, 3]); // sar b, 3
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
                c.reload(b, Scratch::GuestGs);
                c.lea_sum(a, b);
            }
            _ => {}
        }
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
        let mut before = 0;
        let mut members = Vec::with_capacity(group.members.len());
        for m in &group.members {
            let kind = match m.access.kind {
                Kind::Read => SiteKind::Read(m.size),
                Kind::Write => SiteKind::Write(m.size),
                Kind::Modify => SiteKind::Modify(m.size),
            };
            let site = self.trace_site(&insns[m.insn], kind);
            before = self.tracer.time();
            members.push((site, before, m.offset, m.size));
        }
        let place = group.members[0].access.place;
        self.access_address(&place, group.from_first, a, b);
        let room = i32::from(f.line as u16 - group.span);
        let c = &mut self.out.code;
        let (from, address) = if let Some(t) = keeping_flags {
            debug_assert!(t == Gpr::RCX);
            c.extract(b, a, Scratch::EntryBits);
            c.gs_entry(0x8b, t, b, arena::DATA_TAGS);
            c.lea_sum(a, t);
            // Beyond the line if what is above its bits is not 0.
            c.lea_disp(a, a, i32::from(group.span) - 1);
            c.extract(t, a, Scratch::LineBits);
            let inside = c.jrcxz();
            let from = c.jmp();
            c.patch_short(inside);
            (from, Some((place, group.from_first)))
        } else {
            if self.tracer.extract {
                c.extract(b, a, Scratch::EntryBits);
            } else {
                c.entry(b, a, f.line.trailing_zeros());
            }
            c.gs_entry(0x03, a, b, arena::DATA_TAGS);
            c.cmp_imm(a, room);
            (c.jcc_away(ABOVE), None)
        };
        c.gs_entry(0x8b, b, b, arena::DATA_PLACES);
        let time = self.time_in(a, before - 1);
        let c = &mut self.out.code;
        c.gs_index(0x89, time, b, arena::DATA_WAYS as u32 + 8);
        let back = c.pos();
        let words = access_words(group.span, before, &members);
        self.tracer.cold.push(Cold::Accesses { from, back, a, b, address, words });
    }

    /// Emits what was left for later.
    pub(super) fn cold_parts(&mut self) {
        let parts = std::mem::take(&mut self.tracer.cold);
        for part in parts {
            let c = &mut self.out.code;
            match part {
                Cold::Fetch { from, back, lines, before, site } => {
                    c.patch_here(from);
                    // Two stores of 12 bytes and a jump of 8; what describes the fetch follows.
                    let what = c.here() + 32;
                    c.store_gs32_imm(Scratch::WalkWhat as u32, what as u32);
                    c.store_gs32_imm(Scratch::WalkWhat as u32 + 4, (what >> 32) as u32);
                    c.jmp_gs(Scratch::FetchWalk as u32);
                    debug_assert_eq!(c.here(), what);
                    let go_on = back as i32 - c.pos() as i32;
                    c.words(&fetch_words(site, before, lines, go_on));
                }
                Cold::Accesses { from, back, a, b, address, mut words } => {
                    c.patch_here(from);
                    match address {
                        Some((place, offset)) => self.access_address(&place, offset, a, b),
                        None => c.gs_entry(0x2b, a, b, arena::DATA_TAGS),
                    }
                    let c = &mut self.out.code;
                    c.store_gs(Scratch::WalkAddress as u32, a);
                    let what = c.lea_ahead(b);
                    c.store_gs(Scratch::WalkWhat as u32, b);
                    c.jmp_gs(Scratch::AccessWalk as u32);
                    c.patch_here(what);
                    words[0] = (back as i32 - c.pos() as i32) as u32;
                    c.words(&words);
                }
            }
        }
    }

    /// A repeated string instruction is about to begin: remembers where it starts. Returns the number of its site, if its
    /// accesses are recorded.
    pub(super) fn before_repeat(&mut self, insn: &Insn) -> Option<u32> {
        self.tracer.settings.accesses?;
        let mut list = std::mem::take(&mut self.tracer.accesses);
        list.clear();
        events::accesses(insn, &mut list);
        let (mut source, mut target, mut size, mut narrow) = (false, Target::Unused, 0, false);
        for a in &list {
            size = a.size as u8;
            if let Place::At(at) = a.place {
                narrow |= at.narrow;
                if matches!(at.base, Register::RSI | Register::ESI) {
                    source = true;
                } else {
                    target = if a.kind == Kind::Read { Target::Read } else { Target::Write };
                }
            }
        }
        let target_first = target == Target::Read
            && list
                .first()
                .is_some_and(|a| matches!(a.place, Place::At(at) if matches!(at.base, Register::RDI | Register::EDI)));
        self.tracer.accesses = list;
        let site = self.trace_site(insn, SiteKind::Repeated { size, source, target, target_first, narrow });
        self.trace_site(insn, SiteKind::Read(size.into()));
        let at_target =
            if target == Target::Write { SiteKind::Write(size.into()) } else { SiteKind::Read(size.into()) };
        self.trace_site(insn, at_target);
        let c = &mut self.out.code;
        c.spill(Scratch::Repeat, Gpr::RCX);
        c.spill(Scratch::RepeatSource, Gpr(6));
        c.spill(Scratch::RepeatTarget, Gpr(7));
        Some(site)
    }

    /// A repeated string instruction has ended: records how often it accessed memory, and walks what it accessed.
    pub(super) fn after_repeat(&mut self, insn: &Insn, site: u32) {
        let Some(f) = self.tracer.settings.accesses else { return };
        // Its registers are needed: none of those that it overwrites.
        let taken = self.take_unused(insn, 2);
        let [a, b, _] = taken.regs;
        let c = &mut self.out.code;
        c.load_gs(a, Scratch::TracePos as u32);
        // The highest word first.
        c.gs_base8(0x89, Gpr(7), a, 44);
        c.gs_base8(0x89, Gpr(6), a, 36);
        c.gs_base8(0x89, Gpr::RCX, a, 28);
        for (word, at) in [(Scratch::RepeatTarget, 20), (Scratch::RepeatSource, 12), (Scratch::Repeat, 4)] {
            c.reload(b, word);
            c.gs_base8(0x89, b, a, at);
        }
        c.store_site(a, site);
        c.lea_disp(a, a, 52);
        c.store_gs(Scratch::TracePos as u32, a);
        self.give_back(taken);
        if let SiteKind::Repeated { size, source, target, target_first, narrow } =
            self.trans.trace_sites[site as usize].kind
        {
            let repeat = Repeat { size, source, target, target_first, narrow };
            let again = emit_repeat_walk(&mut self.out.code, f, repeat, site);
            self.points.push((again, Point::RepeatWalk { site }));
        }
    }

    /// Records the registers that decide what `insn` accesses.
    fn record_special(&mut self, insn: &Insn, i: usize, list: &[Access]) {
        let (mut mask, mut vectors, mut n) = (None, [None; 2], 0);
        let mut add = |r: Register| {
            let number = Some(r.number() as u8);
            if !vectors.contains(&number) && n < 2 {
                vectors[n] = number;
                n += 1;
            }
        };
        for a in list {
            match a.when {
                When::Sign { mask, .. } => add(mask),
                When::Bit { mask: k, .. } | When::Span { mask: k, .. } => mask = Some(k),
                When::Always | When::Iteration | When::Requested(_) => {}
            }
            if let Place::Element { index, .. } = a.place {
                add(index);
            }
        }
        let wide = list.iter().any(|a| {
            matches!(a.when, When::Bit { .. } | When::Span { .. })
                || matches!(a.place, Place::Element { index, .. } if index.is_zmm() || index.number() > 15)
        });
        let mut bytes = [0; 15];
        bytes[..insn.bytes().len()].copy_from_slice(insn.bytes());
        let special = Special {
            bytes,
            addr: insn.pc(),
            masked: self.masked,
            mask: mask.map(|k: Register| k.number() as u8),
            vectors,
        };
        let words = Special::words(n);
        self.trans.specials.push(special);
        let index = (self.trans.specials.len() - 1) as u32;
        let site = self.trace_site(insn, SiteKind::Special { index, words: words as u16 });
        for write in [false, true] {
            self.trace_site(insn, SiteKind::Sized { write });
        }
        let taken = self.take(insn, i, 2);
        let [a, b, _] = taken.regs;
        self.out.code.load_gs(a, Scratch::TracePos as u32);
        // The highest word first: whatever is there must fit into what the page behind the buffer has.
        self.out.code.gs_index(0x89, a, a, (words * 4 - 8) as u32);
        let at = |offset: usize| {
            let base = Register::RAX + u32::from(a.0);
            MemoryOperand::new(base, Register::None, 1, offset as i64, 8, false, Register::GS)
        };
        for (n, v) in vectors.iter().enumerate().rev() {
            let Some(v) = *v else { continue };
            let to = at(Special::VECTORS + 64 * n);
            let store = if wide {
                Instruction::with2(Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm, to, Register::ZMM0 + u32::from(v))
            } else {
                Instruction::with2(Code::VEX_Vmovdqu_ymmm256_ymm, to, Register::YMM0 + u32::from(v))
            };
            self.encode(&store.expect("a store of a vector register"));
        }
        if let Some(k) = mask {
            let store = Instruction::with2(Code::VEX_Kmovq_m64_kr, at(Special::MASK), k);
            self.encode(&store.expect("a store of a mask register"));
        }
        let c = &mut self.out.code;
        c.reload(b, Scratch::GuestGs);
        c.gs_index(0x89, b, a, Special::GS as u32);
        c.rdfsbase(b);
        c.gs_index(0x89, b, a, Special::FS as u32);
        for r in (0..16).rev().map(Gpr).filter(|&r| r != a && r != b) {
            c.gs_index(0x89, r, a, (Special::GENERAL + 8 * usize::from(r.0)) as u32);
        }
        c.store_site(a, site);
        c.lea_disp(a, a, (words * 4) as i32);
        c.store_gs(Scratch::TracePos as u32, a);
        self.give_back(taken);
        // The engine walks them.
        let pos = self.out.code.pos();
        let id = self.trans.add_stub(StubKind::Walk { site });
        self.out.stubs.push((pos, id));
        self.out.code.stop(id);
    }

    /// What is known of lines of the data cache is forgotten, so that the next access to each is walked; lines used before
    /// now are old. rdx is free, and so are the flags.
    pub(super) fn forget_lines(&mut self) {
        let Some(cache) = self.tracer.settings.accesses else { return };
        let c = &mut self.out.code;
        c.spill(Scratch::T3, Gpr::RCX);
        c.store_gs(arena::SAVES, Gpr::RAX);
        // The table tells of no line that is not in the cache, so it is enough to go through that: mostly it is smaller.
        let bytes = arena::DATA_WAY * u64::from(cache.sets) * u64::from(cache.ways);
        c.mov_imm(Gpr::RAX, 0);
        c.mov_imm(Gpr::RCX, bytes.wrapping_neg());
        let again = c.pos();
        c.gs_index(0x8b, Gpr::RDX, Gpr::RCX, (arena::DATA_WAYS + bytes) as u32);
        c.entry(Gpr::RDX, Gpr::RDX, cache.line.trailing_zeros());
        c.gs_entry(0x89, Gpr::RAX, Gpr::RDX, arena::DATA_TAGS);
        c.alu_imm(0, Gpr::RCX, arena::DATA_WAY as i32);
        c.jcc_back(NE, again);
        c.load_gs(Gpr::RAX, arena::SAVES);
        // The first entry: the address of a line that has another one.
        c.mov_imm(Gpr::RCX, u64::from(cache.line).wrapping_neg());
        c.store_gs(arena::DATA_TAGS as u32, Gpr::RCX);
        c.load_gs(Gpr::RCX, Scratch::Clock as u32);
        c.lea_disp(Gpr::RCX, Gpr::RCX, 1);
        c.store_gs(Scratch::ContextTime as u32, Gpr::RCX);
        c.reload(Gpr::RCX, Scratch::T3);
    }

    /// `n` registers for the checks before instruction `i`: those that the block holds, those that are dead, others that are
    /// saved. If rax is among them it is the second, which is good for [`Self::save_flags`].
    fn take(&mut self, insn: &Insn, i: usize, n: usize) -> Taken {
        let dead = self.tracer.plan.registers[i].dead;
        self.take_among(insn, dead, n, &[])
    }

    /// The same, of registers that the instruction does not use.
    fn take_unused(&mut self, insn: &Insn, n: usize) -> Taken {
        self.take_among(insn, 0, n, &[])
    }

    fn take_among(&mut self, insn: &Insn, dead: u16, n: usize, but: &[Gpr]) -> Taken {
        let mut taken = Taken { regs: [Gpr::RAX; 3], spilled: [false; 3] };
        let held: Vec<Gpr> = self.holding().to_vec();
        let given = held.iter().copied().take(2);
        let dead = (0..16).map(Gpr).filter(|r| dead >> r.0 & 1 != 0 && !held.contains(r));
        let mut have = 0;
        for r in given.chain(dead).filter(|r| !but.contains(r)).take(n) {
            taken.regs[have] = r;
            have += 1;
        }
        if n == 2 && have == 2 && taken.regs[0] == Gpr::RAX {
            taken.regs.swap(0, 1);
        }
        let mut not: Vec<Register> = held.iter().chain(but).chain(&taken.regs[..have]).map(|&r| register(r)).collect();
        for (k, word) in TAKEN.into_iter().enumerate().take(n).skip(have) {
            let r = self.free_register(&insn.ins, &not);
            not.push(r);
            taken.regs[k] = Gpr(r.number() as u8);
            taken.spilled[k] = true;
            self.out.code.spill(word, taken.regs[k]);
        }
        taken
    }

    fn give_back(&mut self, taken: Taken) {
        for ((r, spilled), word) in taken.regs.into_iter().zip(taken.spilled).zip(TAKEN) {
            if spilled {
                self.out.code.reload(r, word);
            }
        }
    }

    /// Predicts a conditional branch that the flags decide; keeps them.
    fn check_condition(&mut self, insn: &Insn, i: usize) {
        let condition = insn.ins.condition_code() as u8 - 1;
        let site = self.trace_site(insn, SiteKind::Conditional);
        let taken = self.take(insn, i, 3);
        let [a, b, d] = taken.regs;
        let c = &mut self.out.code;
        c.bytes(&[0x40 | b.0 >> 3, 0x0f, 0x90 | condition, 0xc0 | b.0 & 7]); // setcc
        c.bytes(&[0x40 | (b.0 >> 3) << 2 | b.0 >> 3, 0x0f, 0xb6, 0xc0 | (b.0 & 7) << 3 | b.0 & 7]); // movzx
        c.predict(insn.pc(), site, [a, b, d]);
        self.give_back(taken);
    }

    /// In one arm of a branch that looks at rcx: predicts it.
    pub(super) fn record_arm(&mut self, insn: &Insn, site: Option<u32>, taken: bool) {
        let Some(site) = site else { return };
        let c = &mut self.out.code;
        let (a, b, d) = (Gpr::RAX, Gpr::RDX, Gpr::RCX);
        c.spill(Scratch::T1, a);
        c.spill(Scratch::T2, b);
        c.spill(Scratch::T3, d);
        c.mov_imm(b, u64::from(taken));
        c.predict(insn.pc(), site, [a, b, d]);
        c.reload(d, Scratch::T3);
        c.reload(b, Scratch::T2);
        c.reload(a, Scratch::T1);
    }

    /// The site of a branch that looks at rcx, if branches are predicted.
    pub(super) fn arm_site(&mut self, insn: &Insn) -> Option<u32> {
        self.tracer.settings.branches.then(|| self.trace_site(insn, SiteKind::Conditional))
    }

    /// Predicts the target of an indirect jump or call, which is in rcx. No flag is changed.
    pub(super) fn record_indirect(&mut self, insn: &Insn) {
        if !self.tracer.settings.branches || events::branch(insn).is_none() {
            return;
        }
        let site = self.trace_site(insn, SiteKind::Indirect);
        let last = arena::TARGETS as u32 + (insn.pc() & 511) as u32 * 8;
        let c = &mut self.out.code;
        c.spill(Scratch::T3, Gpr::RAX);
        c.load_gs(Gpr::RAX, last);
        c.store_gs(last, Gpr::RCX);
        c.not(Gpr::RAX);
        c.lea_sum(Gpr::RCX, Gpr::RAX);
        c.lea_disp(Gpr::RCX, Gpr::RCX, 1); // this target less the last one
        let same = c.jrcxz();
        c.load_gs(Gpr::RAX, Scratch::TracePos as u32);
        c.store_site(Gpr::RAX, site);
        c.lea_disp(Gpr::RAX, Gpr::RAX, 4);
        c.store_gs(Scratch::TracePos as u32, Gpr::RAX);
        c.patch_short(same);
        c.load_gs(Gpr::RCX, last);
        c.reload(Gpr::RAX, Scratch::T3);
    }
}

/// The first and the last code line of an instruction.
fn lines_of(insn: &Insn, f: FirstLevel) -> (u64, u64) {
    let bits = f.line.trailing_zeros();
    (insn.pc() >> bits, (insn.next() - 1) >> bits)
}

/// The register's name for the encoder.
fn register(r: Gpr) -> Register {
    Register::RAX + u32::from(r.0)
}
