//! The check of code lines: each one that a block comes to is looked up by its number, which tells where its time is. A line in the
//! cache gets its time in line; one that is not takes the miss path ([`super::miss_path`]).
//!
//! Invariant: where checks of accesses follow before the same instruction, their registers are taken here, once for all.

use grind_layout as layout;
use grind_layout::registers::Gpr;
use grind_trace::SiteKind;

use grind_asm::instructions::E;
use grind_isa::decode::{Insn, STATUS};

use super::Emitter;
use super::cold::{Cold, Lines, NO_LINES};
use super::lines::lines_of;
use super::taken::Taken;

impl Emitter<'_> {
    /// The check of the line of `insn`, which begins a block and lies in one line, in front of that.
    pub(super) fn check_line(&mut self, insn: &Insn) {
        let lines = self.new_lines(insn);
        // No accesses are checked here, so no registers are taken.
        let taken = self.check_fetch(insn, 0, lines, None);
        debug_assert!(taken.is_none());
    }

    /// The lines that `insn` is fetched from and that have not been fetched from last, as [`layout::LINE`] times their numbers
    /// and the offsets of their sets.
    pub(super) fn new_lines(&mut self, insn: &Insn) -> Lines {
        let mut lines = NO_LINES;
        let Some(f) = self.tracer.settings.fetches else { return lines };
        let (first, last) = lines_of(insn, f);
        let mut n = 0;
        for line in [first, last] {
            if line != self.tracer.line {
                self.tracer.line = line;
                let set = (line & u64::from(f.sets - 1)) as u32 * f.ways * 8;
                lines[n] = (self.trans.line_number(line) * layout::LINE, set);
                n += 1;
            }
        }
        lines
    }

    /// Checks new `lines`. `block`: the one of which the instruction is one, unless it is the first. Returns registers for the
    /// checks that follow, if they are taken already.
    pub(super) fn check_fetch(&mut self, insn: &Insn, i: usize, lines: Lines, block: Option<u32>) -> Option<Taken> {
        let uses = self.tracer.settings.keeps_uses();
        let (first, last) = self.tracer.settings.fetches.map_or((0, 0), |f| lines_of(insn, f));
        let n = lines.iter().filter(|l| **l != NO_LINES[0]).count();
        // Where the first line is a new one, so is another one behind it.
        let second = n == 1 && last != first;
        let site = self.trace_site(insn, if uses { SiteKind::CodeLine { block, second } } else { SiteKind::Fetch });
        let mut waiting = [0; 2];
        let mut taken = None;
        if insn.live & STATUS != 0 {
            for k in 0..n {
                waiting[k] = self.line_check_keeping_flags(i, lines[k].0);
            }
        } else {
            let groups = self.tracer.plan.groups.last().is_some_and(|g| g.at == i);
            if groups {
                let but = self.used_by_later(i);
                taken = Some(self.take_among(insn, self.tracer.plan.registers[i].dead, 2, &but));
            }
            let c = &mut self.out.code;
            for k in 0..n {
                c.load_gs32(Gpr::R10, layout::LINES as u32 + lines[k].0);
                c.op_reg(0x85, Gpr::R10, Gpr::R10); // test
                waiting[k] = c.jcc_away(E);
                c.gs_base8(0x89, Gpr::R9, Gpr::R10, 0);
                if k + 1 < n || !groups {
                    c.increment(Gpr::R9);
                }
            }
        }
        // Of two lines the first one; of one, that, which is the last one in any case.
        let bits = self.tracer.settings.fetches.map_or(0, |f| f.line.trailing_zeros());
        let at = self.tracer.settings.tlbs.map(|_| if n == 2 { first } else { last } << bits);
        // (Nothing is in registers that have been taken.)
        let back = self.out.code.pos();
        for &from in &waiting[..n] {
            self.tracer.cold.push(Cold::Fetch { from, back, lines, site, at });
        }
        taken
    }

    /// Emits the check for one code line without touching flags; returns the field of the jump that leaves it. r10 is free.
    fn line_check_keeping_flags(&mut self, i: usize, line: u32) -> usize {
        let at = layout::LINES as u32 + line;
        let free = self.tracer.plan.registers[i].dead & Gpr::RCX.bit() != 0;
        let c = &mut self.out.code;
        if !free {
            c.mov_reg(Gpr::R10, Gpr::RCX);
        }
        c.load_gs32(Gpr::RCX, at);
        let absent = c.jrcxz();
        let present = c.jmp_short();
        c.patch_short(absent);
        if !free {
            c.mov_reg(Gpr::RCX, Gpr::R10);
        }
        let leave = c.jmp();
        c.patch_short(present);
        c.gs_base8(0x89, Gpr::R9, Gpr::RCX, 0);
        c.lea_disp(Gpr::R9, Gpr::R9, 1);
        if !free {
            c.mov_reg(Gpr::RCX, Gpr::R10);
        }
        leave
    }
}
