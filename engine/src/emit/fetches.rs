//! The check of code lines: each one that a block comes to is looked up by its number. A line in the cache gets its time in line;
//! one that is not is walked ([`super::walk`]).
//!
//! Invariant: where checks of accesses follow before the same instruction, their registers are taken here, once for all.

use super::Emitter;
use super::cold::{Cold, Lines};
use super::instructions::E;
use super::lines::lines_of;
use super::simulate::Taken;
use crate::arena::{self, Scratch};
use crate::asm::Gpr;
use crate::decode::{Insn, STATUS};
use crate::trace::SiteKind;

/// No lines, see [`Lines`].
pub(super) const NO_LINES: Lines = [(0, 0); 2];

impl Emitter<'_> {
    /// The check of the line of `insn`, which begins a block and lies in one line, in front of that; `time` is how far it moves the
    /// clock for the block.
    pub(super) fn check_line(&mut self, insn: &Insn, time: u32) {
        let lines = self.new_lines(insn);
        // No accesses are checked here, so none of its registers are kept.
        let taken = self.check_fetch(insn, 0, time + 2, lines, None);
        debug_assert!(taken.is_none());
    }

    /// The lines that `insn` is fetched from and that have not been fetched from last, as 8 times their numbers and the offsets of
    /// their sets.
    pub(super) fn new_lines(&mut self, insn: &Insn) -> Lines {
        let mut lines = NO_LINES;
        let Some(f) = self.tracer.settings.fetches else { return lines };
        let (first, last) = lines_of(insn, f);
        let mut n = 0;
        for line in [first, last] {
            if line != self.tracer.line {
                self.tracer.line = line;
                let set = (line & u64::from(f.sets - 1)) as u32 * f.ways * 8;
                lines[n] = (self.trans.line_number(line) * 8, set);
                n += 1;
            }
        }
        lines
    }

    /// Checks new `lines`, and moves the clock on by `moves` before. `block`: the one of which the instruction is one, unless it is
    /// the first. Returns registers for the checks that follow, if they are taken already.
    pub(super) fn check_fetch(
        &mut self,
        insn: &Insn,
        i: usize,
        moves: u32,
        lines: Lines,
        block: Option<u32>,
    ) -> Option<Taken> {
        let uses = self.tracer.settings.keeps_uses();
        let (first, last) = self.tracer.settings.fetches.map_or((0, 0), |f| lines_of(insn, f));
        let n = lines.iter().filter(|l| **l != NO_LINES[0]).count();
        // Where the first line is a new one, so is another one behind it.
        let second = n == 1 && last != first;
        let site = self.trace_site(insn, if uses { SiteKind::CodeLine { block, second } } else { SiteKind::Fetch });
        let (timed, reserve) = (self.tracer.fetches_timed, self.tracer.reserve);
        let before: [u32; 2] = std::array::from_fn(|k| if timed && k < n { self.tracer.time() - 1 } else { reserve });
        let mut waiting = [0; 2];
        let mut taken = None;
        // Where it goes on behind the walk: registers that have been taken come back as they were, and are given back here.
        let back;
        if insn.live & STATUS != 0 {
            self.move_clock(insn, i, moves);
            for k in 0..n {
                waiting[k] = self.line_check_keeping_flags(i, lines[k].0, before[k]);
            }
            back = self.out.code.pos();
        } else {
            let groups = self.tracer.plan.groups.last().is_some_and(|g| g.at == i);
            let but = if groups { self.used_by_later(i) } else { Vec::new() };
            let dead = self.tracer.plan.registers[i].dead;
            let regs = self.take_among(insn, dead, if groups { 2 } else { 1 }, &but);
            let held = self.clock();
            let clock = held.unwrap_or(regs.regs[0]);
            if held.is_none() || moves > 0 {
                self.out.code.load_gs(clock, Scratch::Clock.at());
            }
            if moves > 0 {
                self.out.code.lea_disp(clock, clock, moves as i32);
                self.out.code.store_gs(Scratch::Clock.at(), clock);
            }
            // The time of all of them, unless each has one.
            let mut time = clock;
            if !timed && reserve > 0 {
                time = regs.regs[0];
                self.out.code.lea_disp(time, clock, -(reserve as i32));
            }
            for k in 0..n {
                let at = arena::LINES as u32 + lines[k].0;
                // (All of the time: its low half alone may be 0, and the walk takes it that one of the lines is missed.)
                self.out.code.cmp_gs_zero(at);
                waiting[k] = self.out.code.jcc_away(E);
                if timed {
                    // (With so many lines, the clock is loaded again.)
                    time = regs.regs[0];
                    self.out.code.time(time, held, before[k]);
                }
                self.out.code.store_gs(at, time);
            }
            back = self.out.code.pos();
            if groups {
                taken = Some(regs);
            } else {
                self.give_back(regs);
            }
        }
        for &from in &waiting[..n] {
            self.tracer.cold.push(Cold::Fetch { from, back, lines, before: before[0], site });
        }
        taken
    }

    /// Emits the check for one code line without touching flags; returns the field of the jump that leaves it.
    fn line_check_keeping_flags(&mut self, i: usize, line: u32, before: u32) -> usize {
        let at = arena::LINES as u32 + line;
        let free =
            self.holding().take(2).any(|r| r == Gpr::RCX) || self.tracer.plan.registers[i].dead >> Gpr::RCX.0 & 1 != 0;
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
        let time = self.time_in(Gpr::RCX, before);
        self.out.code.store_gs(at, time);
        if !free {
            self.out.code.reload(Gpr::RCX, Scratch::T3);
        }
        leave
    }
}
