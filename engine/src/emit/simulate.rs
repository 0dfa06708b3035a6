//! What a traced block does besides counting: checks that drop the fetches and accesses which change nothing in a simulated
//! cache (those to the line used last in its set), and records of the others, written behind the hot code.
//!
//! Each check stands before its instruction, so records are in program order, a fetch before the accesses of its
//! instruction. Invariants: the filter's table holds, for every set, the line that the simulated cache used last, or nothing;
//! an access that is not to that line, or that touches two lines, is recorded; the highest word of a record is written first,
//! so that one that does not fit any more faults before anything of it is there.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::Emitter;
use crate::api::StaticEvents;
use crate::arena::{self, Scratch};
use crate::asm::{Asm, Gpr};
use crate::decode::{Class, Insn, STATUS};
use crate::events::{self, Access, Address, Kind, Place, When};
use crate::trace::{Filter, Site, SiteKind, Special, Target, TraceSettings};
use crate::transtab::NO_REG;

/// A code line number that no line has.
const NO_LINE: u64 = u64::MAX;

/// What remains to be emitted behind the hot code.
#[derive(Clone, Debug)]
enum Cold {
    /// An instruction whose line was not the last used of its set.
    Fetch { from: usize, back: usize, lines: [(u32, u32); 2], n: usize, site: u32 },
    /// An access that was not to the line last used in its set. `a` is the address less that line's, `b` the offset in the
    /// table.
    Access { from: usize, back: usize, a: Gpr, b: Gpr, c: Gpr, size: u16, site: u32 },
}

/// What tracing needs while a batch is emitted.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    settings: TraceSettings,
    cold: Vec<Cold>,
    accesses: Vec<Access>,
    /// For the block at hand: the code line that was fetched from last.
    line: u64,
    /// Two registers that no instruction of the block touches, once they are in use.
    held: Option<(Gpr, Gpr)>,
    /// Offsets in the code between which they hold our values.
    held_from: usize,
    held_to: usize,
}

impl Tracer {
    pub(super) fn new(settings: TraceSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Whether there is anything to trace.
    pub(super) fn active(&self) -> bool {
        self.settings.any()
    }

    /// The registers that are held in the block that was just emitted at `start`, and from where to where.
    pub(super) fn held(&self, start: usize) -> ([u8; 2], u16, u16) {
        match self.held {
            Some((a, b)) => ([a.0, b.0], (self.held_from - start) as u16, (self.held_to - start) as u16),
            None => ([NO_REG; 2], 0, 0),
        }
    }
}

/// The entry of a filter's table for the line at `address`.
fn entries(f: Filter) -> u32 {
    f.sets.min(arena::MAX_FILTER)
}

/// XCHG with memory locks without a prefix.
fn exchanges_memory(ins: &iced_x86::Instruction) -> bool {
    ins.mnemonic() == iced_x86::Mnemonic::Xchg && (0..2).any(|n| ins.op_kind(n) == iced_x86::OpKind::Memory)
}

impl Emitter<'_> {
    /// Takes two registers for the checks of a block, if it has enough accesses to be worth it.
    pub(super) fn begin_traced_block(&mut self, insns: &[Insn]) {
        self.tracer.line = NO_LINE;
        self.tracer.held = None;
        if self.tracer.settings.accesses.is_none() {
            return;
        }
        let mut used = 1u16 << Gpr::RSP.0;
        let mut checks = 0;
        for insn in insns {
            self.tracer.accesses.clear();
            events::accesses(insn, &mut self.tracer.accesses);
            checks += self.tracer.accesses.len();
            for u in self.info.info(&insn.ins).used_registers() {
                let r = u.register();
                if r.is_gpr() {
                    used |= 1 << r.full_register().number();
                }
            }
        }
        if checks < 2 {
            return;
        }
        // rax first: LAHF needs it.
        let mut free = (0..16u8).filter(|r| used >> r & 1 == 0).map(Gpr);
        if let (Some(b), Some(a)) = (free.next(), free.next()) {
            self.tracer.held = Some((a, b));
            self.out.code.spill(Scratch::Held1, a);
            self.out.code.spill(Scratch::Held2, b);
            self.tracer.held_from = self.out.code.pos();
            self.tracer.held_to = usize::MAX;
        }
    }

    /// Gives the block's own registers back.
    pub(super) fn end_held(&mut self) {
        if let Some((a, b)) = self.tracer.held
            && self.tracer.held_to == usize::MAX
        {
            self.tracer.held_to = self.out.code.pos();
            self.out.code.reload(a, Scratch::Held1);
            self.out.code.reload(b, Scratch::Held2);
        }
    }

    /// The checks before instruction `insn`.
    pub(super) fn check(&mut self, insn: &Insn) {
        if let Some(f) = self.tracer.settings.fetches {
            self.check_fetch(insn, f);
        }
        if let Some(f) = self.tracer.settings.accesses {
            let mut list = std::mem::take(&mut self.tracer.accesses);
            list.clear();
            events::accesses(insn, &mut list);
            if is_special(&list) {
                self.record_special(insn, &list, f);
            } else if !list.is_empty() {
                self.check_accesses(insn, &list, f);
            }
            self.tracer.accesses = list;
        }
        if self.tracer.settings.branches && insn.class == Class::Jcc {
            self.check_condition(insn);
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

    fn check_fetch(&mut self, insn: &Insn, f: Filter) {
        let bits = f.line.trailing_zeros();
        let first = insn.pc() >> bits;
        let last = (insn.next() - 1) >> bits;
        if first == self.tracer.line && last == first {
            return;
        }
        let site = self.trace_site(insn, SiteKind::Fetch);
        let entry = |line: u64| (line & u64::from(entries(f) - 1)) as u32;
        let mut lines = [(entry(first), self.trans.line_number(first)), (entry(last), self.trans.line_number(last))];
        let mut waiting = [usize::MAX; 2];
        let mut n = 0;
        if first != self.tracer.line {
            waiting[0] = self.line_check(insn, lines[0]);
            n += 1;
        }
        if last != first {
            waiting[1] = self.line_check(insn, lines[1]);
            n += 1;
        }
        if last == first {
            lines[1] = lines[0];
        }
        let _ = n;
        let back = self.out.code.pos();
        let count = if last == first { 1 } else { 2 };
        for from in waiting.into_iter().filter(|&w| w != usize::MAX) {
            self.tracer.cold.push(Cold::Fetch { from, back, lines, n: count, site });
        }
        self.tracer.line = last;
    }

    /// Emits the comparison for one code line; returns the field of the jump that leaves it.
    fn line_check(&mut self, insn: &Insn, (entry, number): (u32, u32)) -> usize {
        let at = arena::FETCH_TABLE as u32 + entry * 4;
        if insn.live & STATUS == 0 {
            let c = &mut self.out.code;
            c.cmp_gs32(at, number);
            return c.jcc(NE);
        }
        // Without touching flags.
        let free = matches!(self.tracer.held, Some((a, b)) if a == Gpr::RCX || b == Gpr::RCX)
            && self.tracer.held_to == usize::MAX;
        let c = &mut self.out.code;
        if !free {
            c.spill(Scratch::T3, Gpr::RCX);
        }
        c.load_gs32(Gpr::RCX, at);
        c.lea_disp32(Gpr::RCX, Gpr::RCX, (number as i32).wrapping_neg());
        let same = c.jrcxz();
        if !free {
            c.reload(Gpr::RCX, Scratch::T3);
        }
        let leave = c.jmp();
        c.patch_short(same);
        if !free {
            c.reload(Gpr::RCX, Scratch::T3);
        }
        leave
    }

    fn check_accesses(&mut self, insn: &Insn, list: &[Access], f: Filter) {
        if list.iter().all(|a| a.when != When::Always) {
            return;
        }
        let ((a, b), given) = self.scratch_registers(insn);
        let live = insn.live & STATUS != 0;
        if live {
            self.save_flags(b);
        }
        for access in list {
            self.check_access(insn, access, f, a, b);
        }
        if live {
            self.restore_flags(b);
        }
        self.return_registers((a, b), given);
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

    /// The address of an access into `a`; `b` and the flags may be changed.
    fn access_address(&mut self, place: &Place, a: Gpr, b: Gpr) {
        let c = &mut self.out.code;
        let (address, segment) = match *place {
            Place::At(address)
            | Place::PlusAl(address)
            | Place::Bit(address, _)
            | Place::Element { address, .. }
            | Place::Compacted { address, .. } => (address, address.segment),
        };
        c.lea_address(a, &address);
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

    fn check_access(&mut self, insn: &Insn, access: &Access, f: Filter, a: Gpr, b: Gpr) {
        if access.when != When::Always {
            return;
        }
        let size = access.size.min(f.widest as u16);
        let kind = match access.kind {
            Kind::Read => SiteKind::Read(size),
            Kind::Write => SiteKind::Write(size),
            Kind::Modify => SiteKind::Modify(size),
        };
        let site = self.trace_site(insn, kind);
        self.access_address(&access.place, a, b);
        let c = &mut self.out.code;
        c.table_offset(b, a, f);
        c.gs_index(0x2b, a, b, arena::ACCESS_TABLE as u32); // sub a, gs:[b + table]
        c.cmp_imm(a, i32::from(f.line as u16 - size));
        let from = c.jcc(ABOVE);
        let back = c.pos();
        // Any third register will do.
        let third = (0..16).map(Gpr).find(|&r| r != a && r != b && r != Gpr::RSP).expect("there are sixteen");
        self.tracer.cold.push(Cold::Access { from, back, a, b, c: third, size, site });
    }

    /// Emits what was left for later.
    pub(super) fn cold_parts(&mut self) {
        let parts = std::mem::take(&mut self.tracer.cold);
        let (fetch, data) = (self.tracer.settings.fetches, self.tracer.settings.accesses);
        for part in parts {
            let c = &mut self.out.code;
            let here = c.here();
            match part {
                Cold::Fetch { from, back, lines, n, site } => {
                    let _ = fetch;
                    c.patch_rel32(from, here);
                    for &(entry, number) in &lines[..n] {
                        c.store_gs32_imm(arena::FETCH_TABLE as u32 + entry * 4, number);
                    }
                    c.spill(Scratch::T3, Gpr::RAX);
                    c.load_gs(Gpr::RAX, Scratch::TracePos as u32);
                    c.store_site(Gpr::RAX, site);
                    c.lea_disp(Gpr::RAX, Gpr::RAX, 4);
                    c.store_gs(Scratch::TracePos as u32, Gpr::RAX);
                    c.reload(Gpr::RAX, Scratch::T3);
                    c.jmp_back(back);
                }
                Cold::Access { from, back, a, b, c: third, size, site } => {
                    let Some(f) = data else { continue };
                    let table = arena::ACCESS_TABLE as u32;
                    c.patch_rel32(from, here);
                    c.gs_index(0x03, a, b, table); // add a, gs:[b + table]: the address again
                    c.spill(Scratch::T3, third);
                    c.mov_reg(third, a);
                    c.and_imm(third, -(f.line as i32));
                    c.gs_index(0x89, third, b, table); // mov gs:[b + table], third
                    if size > 1 {
                        // Its last byte may lie in another line; that one was used last in its set then.
                        c.lea_disp(third, a, i32::from(size) - 1);
                        c.table_offset(b, third, f);
                        c.and_imm(third, -(f.line as i32));
                        c.gs_index(0x89, third, b, table);
                    }
                    c.load_gs(third, Scratch::TracePos as u32);
                    c.gs_base8(0x89, a, third, 4); // mov gs:[third + 4], a
                    c.store_site(third, site);
                    c.lea_disp(third, third, 12);
                    c.store_gs(Scratch::TracePos as u32, third);
                    c.reload(third, Scratch::T3);
                    c.jmp_back(back);
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
        let c = &mut self.out.code;
        c.spill(Scratch::Repeat, Gpr::RCX);
        c.spill(Scratch::RepeatSource, Gpr(6));
        c.spill(Scratch::RepeatTarget, Gpr(7));
        Some(site)
    }

    /// A repeated string instruction has ended: records what it did. The filter's table does not follow its accesses, so it
    /// is emptied.
    pub(super) fn after_repeat(&mut self, insn: &Insn, site: u32) {
        let Some(f) = self.tracer.settings.accesses else { return };
        let ((a, b), given) = self.scratch_registers(insn);
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
        c.empty_table(f);
        self.return_registers((a, b), given);
    }

    /// Records the registers that decide what `insn` accesses.
    fn record_special(&mut self, insn: &Insn, list: &[Access], f: Filter) {
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
        let ((a, b), given) = self.scratch_registers(insn);
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
        c.empty_table(f);
        self.return_registers((a, b), given);
    }

    /// Two registers that `insn` does not use; they are saved unless the block holds some anyway.
    fn scratch_registers(&mut self, insn: &Insn) -> ((Gpr, Gpr), bool) {
        if let Some(regs) = self.tracer.held.filter(|_| self.tracer.held_to == usize::MAX) {
            return (regs, true);
        }
        let r2 = self.free_register(&insn.ins, &[]);
        let r1 = self.free_register(&insn.ins, &[r2]);
        let (a, b) = (Gpr(r1.number() as u8), Gpr(r2.number() as u8));
        self.out.code.spill(Scratch::T1, a);
        self.out.code.spill(Scratch::T2, b);
        ((a, b), false)
    }

    fn return_registers(&mut self, (a, b): (Gpr, Gpr), given: bool) {
        if !given {
            self.out.code.reload(a, Scratch::T1);
            self.out.code.reload(b, Scratch::T2);
        }
    }

    /// Records the outcome of a conditional branch that the flags decide.
    fn check_condition(&mut self, insn: &Insn) {
        let condition = insn.ins.condition_code() as u8 - 1;
        let site = self.trace_site(insn, SiteKind::Conditional);
        let ((a, b), given) = self.scratch_registers(insn);
        let c = &mut self.out.code;
        c.mov_imm(a, 0);
        c.bytes(&[0x40 | a.0 >> 3, 0x0f, 0x90 | condition, 0xc0 | a.0 & 7]);
        c.load_gs(b, Scratch::TracePos as u32);
        c.gs_base8_32(0x89, a, b, 4);
        c.store_site(b, site);
        c.lea_disp(b, b, 8);
        c.store_gs(Scratch::TracePos as u32, b);
        self.return_registers((a, b), given);
    }

    /// In one arm of a branch that looks at rcx: records which.
    pub(super) fn record_arm(&mut self, site: Option<u32>, taken: bool) {
        let Some(site) = site else { return };
        let c = &mut self.out.code;
        c.spill(Scratch::T3, Gpr::RAX);
        c.load_gs(Gpr::RAX, Scratch::TracePos as u32);
        c.bytes(&[0x65, 0xc7, 0x40, 4]); // mov dword gs:[rax + 4], taken
        c.bytes(&u32::from(taken).to_le_bytes());
        c.store_site(Gpr::RAX, site);
        c.lea_disp(Gpr::RAX, Gpr::RAX, 8);
        c.store_gs(Scratch::TracePos as u32, Gpr::RAX);
        c.reload(Gpr::RAX, Scratch::T3);
    }

    /// The site of a branch that looks at rcx, if branches are recorded.
    pub(super) fn arm_site(&mut self, insn: &Insn) -> Option<u32> {
        self.tracer.settings.branches.then(|| self.trace_site(insn, SiteKind::Conditional))
    }

    /// Records the target of an indirect jump or call, which is in rcx.
    pub(super) fn record_indirect(&mut self, insn: &Insn) {
        if !self.tracer.settings.branches || events::branch(insn).is_none() {
            return;
        }
        let site = self.trace_site(insn, SiteKind::Indirect);
        let c = &mut self.out.code;
        c.spill(Scratch::T3, Gpr::RAX);
        c.load_gs(Gpr::RAX, Scratch::TracePos as u32);
        c.gs_base8(0x89, Gpr::RCX, Gpr::RAX, 4);
        c.store_site(Gpr::RAX, site);
        c.lea_disp(Gpr::RAX, Gpr::RAX, 12);
        c.store_gs(Scratch::TracePos as u32, Gpr::RAX);
        c.reload(Gpr::RAX, Scratch::T3);
    }
}

/// Whether accesses depend on more than addresses.
fn is_special(list: &[Access]) -> bool {
    list.iter().any(|a| {
        !matches!(a.when, When::Always | When::Iteration)
            || matches!(a.place, Place::Element { .. } | Place::Compacted { .. })
    })
}

/// Condition codes.
const NE: u8 = 5;
const ABOVE: u8 = 7;

/// Instructions that only tracing needs.
impl Asm {
    /// `op reg, gs:[base + offset]` (64 bits)
    fn gs_index(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: u32) {
        debug_assert!(base != Gpr::RSP);
        self.bytes(&[0x65, 0x48 | (reg.0 >> 3) << 2 | base.0 >> 3, opcode, 0x80 | (reg.0 & 7) << 3 | base.0 & 7]);
        if base.0 & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&offset.to_le_bytes());
    }

    /// Empties the table of the data filter.
    fn empty_table(&mut self, f: Filter) {
        self.spill(Scratch::T3, Gpr::RCX);
        self.mov_imm(Gpr::RCX, u64::from(entries(f)) * 8);
        let again = self.pos();
        self.gs_zero(Gpr::RCX, arena::ACCESS_TABLE as u32 - 8);
        self.lea_disp(Gpr::RCX, Gpr::RCX, -8);
        let done = self.jrcxz();
        self.jmp_back(again);
        self.patch_short(done);
        self.reload(Gpr::RCX, Scratch::T3);
    }

    /// `mov qword gs:[base + offset], 0`
    fn gs_zero(&mut self, base: Gpr, offset: u32) {
        debug_assert!(base.0 & 7 != 4);
        self.bytes(&[0x65, 0x48 | base.0 >> 3, 0xc7, 0x80 | base.0 & 7]);
        self.bytes(&offset.to_le_bytes());
        self.bytes(&[0; 4]);
    }

    /// `op reg32, gs:[base + offset]` with a short offset
    fn gs_base8_32(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: i8) {
        self.bytes(&[0x65, 0x40 | (reg.0 >> 3) << 2 | base.0 >> 3, opcode, 0x40 | (reg.0 & 7) << 3 | base.0 & 7]);
        if base.0 & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&offset.to_le_bytes());
    }

    /// `op reg, gs:[base + offset]` (64 bits) with a short offset
    fn gs_base8(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: i8) {
        self.bytes(&[0x65, 0x48 | (reg.0 >> 3) << 2 | base.0 >> 3, opcode, 0x40 | (reg.0 & 7) << 3 | base.0 & 7]);
        if base.0 & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&offset.to_le_bytes());
    }

    /// `mov dword gs:[base], site`
    fn store_site(&mut self, base: Gpr, site: u32) {
        self.bytes(&[0x65, 0x40 | base.0 >> 3, 0xc7, 0x40 | base.0 & 7]);
        if base.0 & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&[0]);
        self.bytes(&site.to_le_bytes());
    }

    /// `cmp dword gs:[offset], value`
    fn cmp_gs32(&mut self, offset: u32, value: u32) {
        self.bytes(&[0x65, 0x81, 0x3c, 0x25]);
        self.bytes(&offset.to_le_bytes());
        self.bytes(&value.to_le_bytes());
    }

    /// `mov dword gs:[offset], value`
    fn store_gs32_imm(&mut self, offset: u32, value: u32) {
        self.bytes(&[0x65, 0xc7, 0x04, 0x25]);
        self.bytes(&offset.to_le_bytes());
        self.bytes(&value.to_le_bytes());
    }

    /// `mov reg32, gs:[offset]`
    fn load_gs32(&mut self, reg: Gpr, offset: u32) {
        self.bytes(&[0x65, 0x40 | (reg.0 >> 3) << 2, 0x8b, (reg.0 & 7) << 3 | 4, 0x25]);
        self.bytes(&offset.to_le_bytes());
    }

    /// `lea reg32, [base + disp]` (clears the upper half)
    fn lea_disp32(&mut self, reg: Gpr, base: Gpr, disp: i32) {
        debug_assert!(base.0 & 7 != 4);
        self.bytes(&[0x40 | (reg.0 >> 3) << 2 | base.0 >> 3, 0x8d, 0x80 | (reg.0 & 7) << 3 | base.0 & 7]);
        self.bytes(&disp.to_le_bytes());
    }

    /// `cmp reg, value`
    fn cmp_imm(&mut self, reg: Gpr, value: i32) {
        self.alu_imm(7, reg, value);
    }

    /// `and reg, value`
    fn and_imm(&mut self, reg: Gpr, value: i32) {
        self.alu_imm(4, reg, value);
    }

    fn alu_imm(&mut self, digit: u8, reg: Gpr, value: i32) {
        let modrm = 0xc0 | digit << 3 | reg.0 & 7;
        match i8::try_from(value) {
            Ok(v) => self.bytes(&[0x48 | reg.0 >> 3, 0x83, modrm, v as u8]),
            Err(_) => {
                self.bytes(&[0x48 | reg.0 >> 3, 0x81, modrm]);
                self.bytes(&value.to_le_bytes());
            }
        }
    }

    /// Into `to`: the offset, in the table of 64-bit entries, of the set that address `from` belongs to.
    fn table_offset(&mut self, to: Gpr, from: Gpr, f: Filter) {
        self.mov_reg32(to, from);
        let shift = f.line.trailing_zeros() - 3;
        self.bytes(&[0x40 | to.0 >> 3, 0xc1, 0xe8 | to.0 & 7, shift as u8]); // shr
        self.bytes(&[0x40 | to.0 >> 3, 0x81, 0xe0 | to.0 & 7]); // and
        self.bytes(&((entries(f) - 1) * 8).to_le_bytes());
    }

    /// `lea reg, [address]`, without its segment's base.
    fn lea_address(&mut self, reg: Gpr, address: &Address) {
        let number = |r: Register| Gpr(r.number() as u8);
        let gpr = |r: Register| r.is_gpr().then(|| number(r));
        let (base, index) = (gpr(address.base), gpr(address.index));
        let displacement = address.displacement;
        if base.is_none() && index.is_none() {
            let at = if address.narrow { displacement as u64 & 0xffff_ffff } else { displacement as u64 };
            self.mov_imm(reg, at);
            return;
        }
        if address.narrow {
            self.bytes(&[0x67]);
        }
        let x = index.map_or(0, |r| r.0 >> 3);
        let b = base.map_or(0, |r| r.0 >> 3);
        self.bytes(&[0x48 | (reg.0 >> 3) << 2 | x << 1 | b, 0x8d]);
        let short = i8::try_from(displacement).ok().filter(|_| base.is_some());
        let mode = match (base, short) {
            (None, _) => 0,
            (Some(_), Some(_)) => 0x40,
            (Some(_), None) => 0x80,
        };
        let needs_sib = index.is_some() || base.is_none_or(|r| r.0 & 7 == 4);
        if needs_sib {
            let scale = address.scale.max(1).trailing_zeros() as u8;
            self.bytes(&[
                mode | (reg.0 & 7) << 3 | 4,
                scale << 6 | index.map_or(4, |r| r.0 & 7) << 3 | base.map_or(5, |r| r.0 & 7),
            ]);
        } else {
            self.bytes(&[mode | (reg.0 & 7) << 3 | base.map_or(5, |r| r.0 & 7)]);
        }
        match short {
            Some(d) => self.bytes(&[d as u8]),
            None => self.bytes(&(displacement as i32).to_le_bytes()),
        }
    }

    /// `movsx`/`movsxd`/`mov to, from`: a general register of 16, 32 or 64 bits as a signed number.
    fn sign_extended(&mut self, to: Gpr, from: Register) {
        let f = from.number() as u8;
        let rex = 0x48 | (to.0 >> 3) << 2 | f >> 3;
        let modrm = 0xc0 | (to.0 & 7) << 3 | f & 7;
        match from.size() {
            2 => self.bytes(&[rex, 0x0f, 0xbf, modrm]),
            4 => self.bytes(&[rex, 0x63, modrm]),
            _ => self.bytes(&[rex, 0x8b, modrm]),
        }
    }

    /// `rdfsbase reg`
    fn rdfsbase(&mut self, reg: Gpr) {
        self.bytes(&[0xf3, 0x48 | reg.0 >> 3, 0x0f, 0xae, 0xc0 | reg.0 & 7]);
    }

    /// `jmp` to an offset in this buffer
    fn jmp_back(&mut self, to: usize) {
        self.bytes(&[0xe9]);
        let rel = to as i64 - (self.pos() as i64 + 4);
        self.bytes(&(rel as i32).to_le_bytes());
    }
}
