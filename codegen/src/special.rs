//! Simulation of what is not an access at an address that stands in the instruction: repeated string instructions, those whose
//! accesses depend on masks and the like, and branches, which are predicted.
//!
//! Invariants: a record holds what the registers were when the instruction began; no flag is changed but where they are dead;
//! the highest word of a record is written first.

use grind_fragments::fragment_table::{StateMapEntry, StubKind};
use grind_isa::decode::Insn;
use grind_isa::events::{self, Access, Kind, Place, When};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::{Done, SiteKind, Special, Target};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::Emitter;
use super::cold::Cold;
use super::miss_path::{Repeat, Repeated, emit_repeat_miss_path};
use super::stack::{SAVED_RCX, frames_told};
use super::taken::UNRECORDED;
use crate::stack::StackCode;

impl Emitter<'_> {
    /// A repeated string instruction is about to begin: remembers where it starts. Returns the number of its site, if its
    /// accesses are recorded.
    pub(super) fn before_repeat(&mut self, insn: &Insn) -> Option<u32> {
        if !self.tracer.settings.data() {
            return None;
        }
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
        c.spill(SlotWord::Repeat, Gpr::RCX);
        c.spill(SlotWord::RepeatSource, Gpr(6));
        c.spill(SlotWord::RepeatTarget, Gpr(7));
        Some(site)
    }

    /// A repeated string instruction has ended: records how often it accessed memory, and takes along the miss path what it accessed.
    pub(super) fn after_repeat(&mut self, insn: &Insn, site: u32) {
        // Its registers are needed: none of those that it overwrites.
        let taken = self.take_among(insn, 0, 2, &UNRECORDED);
        let [a, b, _] = taken.regs;
        self.tell_stack(a);
        let c = &mut self.out.code;
        c.load_gs(a, SlotWord::TracePos.at());
        // The highest word first.
        let SiteKind::Repeated { size, source, target, target_first, narrow } =
            self.trans.trace_sites[site as usize].kind
        else {
            return;
        };
        let repeat = Repeat { size, source, target, target_first, narrow };
        // A register that the instruction does not use may be one that the block holds, which the checks change.
        for (used, register, word, at) in [
            (target != Target::Unused, Gpr(7), SlotWord::RepeatTarget, 44),
            (source, Gpr(6), SlotWord::RepeatSource, 36),
        ] {
            if used {
                c.gs_base8(0x89, register, a, at);
            } else {
                c.reload(b, word);
                c.gs_base8(0x89, b, a, at);
            }
        }
        c.gs_base8(0x89, Gpr::RCX, a, 28);
        for (word, at) in [(SlotWord::RepeatTarget, 20), (SlotWord::RepeatSource, 12), (SlotWord::Repeat, 4)] {
            c.reload(b, word);
            c.gs_base8(0x89, b, a, at);
        }
        c.store_site(a, site);
        c.lea_disp(a, a, 52);
        c.store_gs(SlotWord::TracePos.at(), a);
        if self.call_recorder.followed() && !self.off {
            self.total_accesses(repeat, [a, b]);
        }
        self.give_back(taken);
        if let Some(f) = self.tracer.settings.accesses {
            let settings = &self.tracer.settings;
            let each = settings.keeps_uses() || repeat.contends(f, settings.tlbs.map(|tlbs| tlbs.data));
            let told = Repeated { each, bytes: settings.keeps_owners() };
            let again = emit_repeat_miss_path(&mut self.out.code, f, repeat, site, told);
            self.work.state_map.push((again, StateMapEntry::RepeatMissPath { site }));
        }
    }

    /// Adds what a repeated string instruction, which has just ended, has accessed to the thread's totals. These registers may be
    /// changed.
    fn total_accesses(&mut self, repeat: Repeat, [n, total]: [Gpr; 2]) {
        let c = &mut self.out.code;
        c.reload(n, SlotWord::Repeat);
        c.mov_reg(total, Gpr::RCX);
        c.not(total);
        c.lea_sum(n, total);
        c.lea_disp(n, n, 1);
        if repeat.narrow {
            c.mov_reg32(n, n);
        }
        for at_target in repeat.order() {
            let writes = at_target && repeat.target == Target::Write;
            let word = if writes { SlotWord::Writes } else { SlotWord::Reads };
            c.load_gs(total, word.at());
            c.lea_sum(total, n);
            c.store_gs(word.at(), total);
        }
    }

    /// Records the registers that decide what `insn` accesses.
    pub(super) fn record_special(&mut self, insn: &Insn, i: usize, list: &[Access]) {
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
        for done in [Done::Read, Done::Write, Done::Modify] {
            self.trace_site(insn, SiteKind::Sized { done });
        }
        let dead = self.tracer.plan.registers[i].dead;
        let taken = self.take_among(insn, dead, 2, &UNRECORDED);
        let [a, b, _] = taken.regs;
        self.tell_stack(a);
        self.out.code.load_gs(a, SlotWord::TracePos.at());
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
        let stolen_registers = self.stolen_registers();
        let c = &mut self.out.code;
        c.reload(b, SlotWord::GuestGs);
        c.gs_index(0x89, b, a, Special::GS as u32);
        c.rdfsbase(b);
        c.gs_index(0x89, b, a, Special::FS as u32);
        for r in (0..16).rev().map(Gpr).filter(|&r| r != a && r != b) {
            let value = r.kept(stolen_registers).map_or(r, |word| {
                c.reload(b, word);
                b
            });
            c.gs_index(0x89, value, a, (Special::GENERAL + 8 * usize::from(r.0)) as u32);
        }
        c.store_site(a, site);
        c.lea_disp(a, a, (words * 4) as i32);
        c.store_gs(SlotWord::TracePos.at(), a);
        self.give_back(taken);
        if self.tracer.settings.accesses.is_none() {
            return;
        }
        // The engine takes them along the miss path.
        self.out.code.spill(SlotWord::Clock, Gpr::R9);
        let pos = self.out.code.pos();
        let id = self.trans.add_stub(StubKind::MissPath { site, off: self.off });
        self.out.stubs.push((pos, id));
        self.out.code.stop(id);
        self.out.code.reload(Gpr::R9, SlotWord::Clock);
    }

    /// Predicts a conditional branch that the flags decide; keeps them.
    pub(super) fn check_condition(&mut self, insn: &Insn, i: usize) {
        let condition = insn.ins.condition_code() as u8 - 1;
        let site = self.trace_site(insn, SiteKind::Conditional);
        let taken = self.take(insn, i, 3);
        let mut regs = taken.regs;
        if let Some(n) = regs.iter().position(|r| !UNRECORDED.contains(r)) {
            regs.swap(0, n);
        }
        let [a, b, d] = regs;
        let c = &mut self.out.code;
        c.set_condition(condition, b);
        c.zero_extend8(b);
        if !frames_told(&self.tracer.settings) {
            c.predict(insn.pc().0, site, [a, b, d]);
        } else {
            c.predict_alone(insn.pc().0, [a, b, d]);
            let given = [a, d].contains(&Gpr::RCX);
            if b != Gpr::RCX {
                if !given {
                    c.store_gs(SAVED_RCX, Gpr::RCX);
                }
                c.mov_reg(Gpr::RCX, b);
            }
            let right = c.jrcxz();
            let from = c.jmp_away();
            c.patch_short(right);
            let back = c.pos();
            if b != Gpr::RCX && !given {
                c.load_gs(Gpr::RCX, SAVED_RCX);
            }
            self.tracer.cold.push(Cold::Mispredicted { from, back, site, free: a });
        }
        self.give_back(taken);
    }

    /// In one arm of a branch that looks at rcx: predicts it.
    pub(super) fn record_arm(&mut self, insn: &Insn, site: Option<u32>, taken: bool) {
        let Some(site) = site else { return };
        let c = &mut self.out.code;
        let (a, b, d) = (Gpr::RAX, Gpr::RDX, Gpr::RCX);
        c.spill(SlotWord::T1, a);
        c.spill(SlotWord::T2, b);
        c.spill(SlotWord::T3, d);
        c.mov_imm(b, u64::from(taken));
        if !frames_told(&self.tracer.settings) {
            c.predict(insn.pc().0, site, [a, b, d]);
        } else {
            c.predict_alone(insn.pc().0, [a, b, d]);
            c.mov_reg(d, b);
            let right = c.jrcxz();
            c.tell_stack(a);
            c.record_site(a, site);
            c.patch_short(right);
        }
        let c = &mut self.out.code;
        c.reload(d, SlotWord::T3);
        c.reload(b, SlotWord::T2);
        c.reload(a, SlotWord::T1);
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
        let last = layout::TARGETS as u32 + (insn.pc().0 & 511) as u32 * 8;
        let c = &mut self.out.code;
        c.spill(SlotWord::T3, Gpr::RAX);
        c.load_gs(Gpr::RAX, last);
        c.store_gs(last, Gpr::RCX);
        c.not(Gpr::RAX);
        c.lea_sum(Gpr::RCX, Gpr::RAX);
        c.lea_disp(Gpr::RCX, Gpr::RCX, 1); // this target less the last one
        let same = c.jrcxz();
        self.tell_stack(Gpr::RAX);
        let c = &mut self.out.code;
        c.record_site(Gpr::RAX, site);
        c.patch_short(same);
        c.load_gs(Gpr::RCX, last);
        c.reload(Gpr::RAX, SlotWord::T3);
    }
}
