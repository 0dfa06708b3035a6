//! From where a block is left to where that leads, once the sink has said what happens whenever it does: what is known of a
//! transfer of control, as code. Also the code that deals with returns from the calls that it makes.
//!
//! A bridge first makes sure that everything is as it was when it was built: the target (of an indirect branch), the stack
//! pointer below the innermost frame, the callee's level of recursion. If not, it changes nothing and leads on, in the end
//! to a stop. Invariants: on its way in, rcx has been saved if the transfer is indirect, or a return; r10 is free, as
//! between all instructions where anything is traced, and r8 where caches or predictors are simulated; where nothing is, r9 is
//! the thread's total; a frame is there whole or not at all, since [`SlotWord::TopFrame`] is moved last; the first store to a new
//! frame is the one that may fault, before anything else has changed; flags that may be read where it leads are kept.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_asm::instructions::has_rorx;
use grind_isa::decode::STATUS;
use grind_layout::registers::{Gpr, StolenRegisters};
use grind_layout::{self as layout, FRAME, SlotWord, TARGET};
use grind_trace::follow::{CALL_TOLD, CallKind, RETURN_TOLD, StackEffect, TOTALS};
use grind_types::addr::GuestAddr;

use super::taken::UNRECORDED;
use crate::follow::FollowCode;

const BELOW: u8 = 2;
const NOT_EQUAL: u8 = 5;
const EQUAL: u8 = 4;

/// What a bridge does.
#[derive(Clone, Copy, Debug)]
pub struct Bridge {
    /// The target that it is for, if the transfer is indirect.
    pub indirect: Option<GuestAddr>,
    /// What it does to the frames, whoever comes by.
    pub always: StackEffect,
    /// The flags that may be read at the target.
    pub live: u8,
    /// The callee's function, for calls.
    pub function: u32,
    /// Its level: how many calls of it are going on.
    pub level: u32,
    /// The caller is the same function, so the level is certain.
    pub recursive: bool,
    /// The call edge's counters: calls, then inclusive costs by total.
    pub counters: [u32; 1 + TOTALS],
    /// The totals that there are.
    pub totals: &'static [usize],
    /// Counts that it is gone through, where nothing is pushed and jumps count.
    pub jumps: Option<u32>,
    /// The call edge's number, for frames that are told.
    pub call_edge: u32,
    /// Registers that are not needed at the target, a bit each.
    pub dead: u16,
    /// The flags that may be read where it returns to.
    pub live_after: u8,
    /// Registers that are not needed there, a bit each.
    pub dead_after: u16,
    /// Whether a return pops the frame below, too, and comes from it.
    pub through: bool,
    /// The call is told, and its return.
    pub told: bool,
    /// Nothing is collected before it, or behind, so that totals do not tell frames from others.
    pub off: bool,
    /// Where a stop for returns is that nobody can follow.
    pub unmatched_return: u64,
    /// Registers that are not the program's.
    pub stolen_registers: StolenRegisters,
}

impl Bridge {
    /// Whether the call counts among those of its function that are going on: on the last level nobody asks how many there are.
    fn is_counted(&self) -> bool {
        !matches!(self.always, StackEffect::Push { levels, .. } if self.level + 1 >= levels)
    }
}

/// A bridge that was emitted: 32-bit fields to be led somewhere.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// To the target's translation.
    pub onward: usize,
    /// To what comes next if it is not for this.
    pub else_: Vec<usize>,
    /// Offset of the code for returns, and its fields to where the call returns to (if that is known).
    pub returns: Option<(usize, Option<usize>)>,
}

/// The register by which a bridge reaches frames, and whether it has to be saved. (None that may be free: a fault there would
/// not show it.)
#[derive(Clone, Copy)]
struct Base {
    frame: Gpr,
    saved: bool,
}

impl Base {
    /// One that is not needed any more if there is any.
    fn of(dead: u16, indirect: bool) -> Base {
        // As bases of addresses, rsp and r12 would take a byte more. rcx has been saved where the target is in a register.
        let free = UNRECORDED.iter().fold(0, |all, r| all | r.bit());
        let dead = dead & !(1 << 4 | free | 1 << 12) | u16::from(indirect) << Gpr::RCX.0;
        match (0..16).map(Gpr).find(|r| dead & 1 << r.0 != 0) {
            Some(frame) => Base { frame, saved: false },
            None => Base { frame: Gpr::RDX, saved: true },
        }
    }

    fn save(self, c: &mut Asm) {
        if self.saved {
            c.spill(SlotWord::T1, self.frame);
        }
    }

    fn give_back(self, c: &mut Asm) {
        if self.saved {
            c.reload(self.frame, SlotWord::T1);
        }
    }
}

/// Emits a bridge.
pub fn emit(c: &mut Asm, b: &Bridge) -> Built {
    let mut built = Built::default();
    let indirect = b.indirect.is_some();
    if let Some(target) = b.indirect {
        c.reload(Gpr::RCX, TARGET);
        c.zero_if(target);
        let ok = c.jrcxz();
        built.else_.push(c.jmp());
        c.patch_short(ok);
    }
    let keep = b.live & STATUS != 0;
    let rax_dead = b.dead & 1 << Gpr::RAX.0 != 0;
    let flags = |c: &mut Asm, back: bool| match (keep, back) {
        (true, false) => c.put_flags_away(b.stolen_registers, rax_dead),
        (true, true) => c.take_flags_back(b.stolen_registers, rax_dead),
        _ => {}
    };
    let taken = if keep { 1 << Gpr::RAX.0 } else { 0 };
    let base = Base::of(b.dead & !taken, indirect);
    let frame = base.frame;
    base.save(c);
    flags(c, false);
    let mut slow = Vec::new();
    c.load_gs(frame, SlotWord::TopFrame.at());
    if let StackEffect::Push { kind, levels, .. } = b.always {
        let returns = c.push_frame(b, (kind, levels), frame, &mut slow);
        built.returns = Some((returns, None));
    } else {
        c.cmp_frame(frame, 0, Gpr::RSP);
        slow.push(c.jcc(BELOW));
        b.jumps.into_iter().for_each(|counter| c.add_one_gs(layout::counter_offset(counter)));
    }
    let leave = |c: &mut Asm| {
        flags(c, true);
        base.give_back(c);
    };
    leave(c);
    if indirect && b.dead & 1 << Gpr::RCX.0 == 0 {
        c.reload(Gpr::RCX, SlotWord::Rcx);
    }
    built.onward = c.jmp();
    // What comes next takes rcx, if that has been saved before, from where that is.
    slow.into_iter().for_each(|field| c.patch_here(field));
    leave(c);
    built.else_.push(c.jmp());
    if let (StackEffect::Push { kind, returns_to, .. }, Some((field, _))) = (b.always, built.returns) {
        c.patch_here(field);
        let pos = c.pos();
        let onward = match kind {
            CallKind::Stub | CallKind::JumpToStub => {
                // Nobody but its address tells its frame from others.
                let away = c.jmp();
                c.patch_rel32(away, b.unmatched_return);
                None
            }
            _ if returns_to != 0 => Some(c.return_to(b, GuestAddr(returns_to))),
            _ => {
                c.return_further(b);
                None
            }
        };
        built.returns = Some((pos, onward));
    }
    built
}

/// Code of bridges.
trait BridgeCode {
    /// Makes rcx zero if it is `pc`, and something else if not.
    fn zero_if(&mut self, pc: GuestAddr);
    /// Pushes the frame of a call; the innermost one is at `frame`. Returns the field that leads to what deals with its return.
    fn push_frame(&mut self, b: &Bridge, kind_and_levels: (CallKind, u32), frame: Gpr, slow: &mut Vec<usize>) -> usize;
    /// Where one of the thread's totals is: in a register that is ours, or else it is loaded into this one.
    fn total(&mut self, stolen_registers: StolenRegisters, total: usize, into: Gpr) -> Gpr;
    /// Closes the innermost frame, at r10: books its cost, and pops it. rcx, r10 and flags are overwritten.
    fn close(&mut self, b: &Bridge);
    /// Records a call or a return, with the totals. Changes these registers; `pos`, by which it may fault, is none that may be free.
    fn tell_each(&mut self, b: &Bridge, told: u32, pos: Gpr, value: Gpr);
    /// Makes rcx zero if the stack pointer has just taken the return address from the place of the frame at r10.
    fn zero_if_there(&mut self);
    /// Unless rcx is zero, it is a return that this cannot follow.
    fn is_odd_unless_zero(&mut self, b: &Bridge);
    /// A return to where the call came from: the return address is in rcx (saved) and right below the stack pointer, the frame at
    /// r10. Returns the field that leads there. Flags are dead only if it is that return, so until that is certain, none is
    /// changed.
    fn return_to(&mut self, b: &Bridge, returns_to: GuestAddr) -> usize;
    /// A return from what a jump led to: on to the frame below.
    fn return_further(&mut self, b: &Bridge);
}

impl BridgeCode for Asm {
    fn zero_if(&mut self, pc: GuestAddr) {
        if has_rorx() {
            // Less the lower half, turned, and less what the upper half then is.
            let lower = (pc.0 as u32 as i32).wrapping_neg();
            dynasm!(self; lea rcx, [rcx + lower]);
            let upper = (pc.0.wrapping_add(lower as u64) >> 32) as i32;
            if upper != 0 {
                dynasm!(self; rorx rcx, rcx, 32);
                self.lea_disp(Gpr::RCX, Gpr::RCX, upper.wrapping_neg());
            }
            return;
        }
        self.spill(SlotWord::T3, Gpr::RAX);
        self.mov_imm(Gpr::RAX, pc.0.wrapping_neg());
        self.lea_sum(Gpr::RCX, Gpr::RAX);
        self.reload(Gpr::RAX, SlotWord::T3);
    }

    fn push_frame(&mut self, b: &Bridge, (kind, levels): (CallKind, u32), frame: Gpr, slow: &mut Vec<usize>) -> usize {
        let value = Gpr::R10;
        let pushes = matches!(kind, CallKind::Call | CallKind::Stub);
        if pushes {
            // Nothing may share the place of the return address.
            self.lea_disp(value, Gpr::RSP, 8);
            self.cmp_frame(frame, 0, value);
        } else {
            // It has the place of the frame below, of which there must be one.
            self.gs_frame(0x8b, value, frame, 0);
            self.op_reg(0x39, value, Gpr::RSP);
        }
        slow.push(self.jcc(BELOW));
        if !pushes {
            self.cmp_imm(value, -1);
            slow.push(self.jcc(EQUAL));
        }
        let stub = matches!(kind, CallKind::Stub | CallKind::JumpToStub);
        let active = (layout::ACTIVE + 8 * u64::from(b.function)) as u32;
        if !stub && levels > 1 && !b.recursive {
            self.cmp_gs(active, b.level as i8);
            slow.push(self.jcc(if b.level + 1 == levels { BELOW } else { NOT_EQUAL }));
        }
        let at = |offset: u64| (FRAME + offset) as i8;
        self.store_frame(frame, at(0), if pushes { Gpr::RSP } else { value });
        for &total in b.totals {
            let now = self.total(b.stolen_registers, total, value);
            self.store_frame(frame, at(layout::frame_entered(total)), now);
        }
        if b.totals.len() > 1 {
            self.store_frame_imm(frame, at(layout::FRAME_CALL_EDGE), b.call_edge);
            if b.off {
                self.store_gs32_imm(SlotWord::ToldFrame.at(), 0);
            }
        }
        let returns = self.lea_ahead(value);
        self.store_frame(frame, at(layout::FRAME_RETURN), value);
        if !stub {
            if b.is_counted() {
                self.add_one_gs(active);
            }
            self.add_one_gs(layout::counter_offset(b.counters[0]));
        }
        self.lea_disp(frame, frame, FRAME as i32);
        self.store_gs(SlotWord::TopFrame.at(), frame);
        if b.told {
            self.tell_each(b, CALL_TOLD + b.call_edge, frame, value);
        }
        returns
    }

    fn total(&mut self, stolen_registers: StolenRegisters, total: usize, into: Gpr) -> Gpr {
        if total == 0 && stolen_registers.total() {
            return Gpr::R9;
        }
        self.load_gs(into, layout::TOTAL_WORDS[total].at());
        into
    }

    fn close(&mut self, b: &Bridge) {
        for &total in b.totals {
            let now = self.total(b.stolen_registers, total, Gpr::RCX);
            if now != Gpr::RCX {
                self.mov_reg(Gpr::RCX, now);
            }
            self.gs_frame(0x2b, Gpr::RCX, Gpr::R10, layout::frame_entered(total) as i8); // sub rcx, gs:[r10 + …]
            self.gs_op(0x01, Gpr::RCX, layout::counter_offset(b.counters[1 + total])); // add gs:[…], rcx
        }
        if b.is_counted() {
            self.add_gs((layout::ACTIVE + 8 * u64::from(b.function)) as u32, -1);
        }
        let frames = if b.through { 2 } else { 1 };
        self.lea_disp(Gpr::R10, Gpr::R10, -(FRAME as i32) * frames);
        self.store_gs(SlotWord::TopFrame.at(), Gpr::R10);
        if b.told {
            self.tell_each(b, RETURN_TOLD + frames.unsigned_abs(), Gpr::RCX, Gpr::R10);
        }
    }

    fn tell_each(&mut self, b: &Bridge, told: u32, pos: Gpr, value: Gpr) {
        self.load_gs(pos, SlotWord::TracePos.at());
        for (n, &total) in b.totals.iter().enumerate().rev() {
            let now = self.total(b.stolen_registers, total, value);
            self.store_frame(pos, 4 + 8 * n as i8, now);
        }
        self.store_frame_imm(pos, 0, told);
        self.lea_disp(pos, pos, 4 + 8 * b.totals.len() as i32);
        self.store_gs(SlotWord::TracePos.at(), pos);
    }

    fn zero_if_there(&mut self) {
        self.gs_frame(0x8b, Gpr::RCX, Gpr::R10, 0); // mov rcx, gs:[r10]
        dynasm!(self; not rcx; lea rcx, [rsp + rcx - 7]);
    }

    fn is_odd_unless_zero(&mut self, b: &Bridge) {
        let zero = self.jrcxz();
        let odd = self.jmp();
        self.patch_rel32(odd, b.unmatched_return);
        self.patch_short(zero);
    }

    fn return_to(&mut self, b: &Bridge, returns_to: GuestAddr) -> usize {
        // As a rule nothing else can be in the frame's place; but the guest may have written to its stack.
        self.zero_if(returns_to);
        self.is_odd_unless_zero(b);
        self.zero_if_there();
        self.is_odd_unless_zero(b);
        let keep = b.live_after & STATUS != 0;
        let rax_dead = b.dead_after & 1 << Gpr::RAX.0 != 0;
        if keep {
            self.put_flags_away(b.stolen_registers, rax_dead);
        }
        self.close(b);
        if keep {
            self.take_flags_back(b.stolen_registers, rax_dead);
        }
        if b.dead_after & 1 << Gpr::RCX.0 == 0 {
            self.reload(Gpr::RCX, SlotWord::Rcx);
        }
        self.jmp()
    }

    fn return_further(&mut self, b: &Bridge) {
        self.zero_if_there();
        self.is_odd_unless_zero(b);
        self.put_flags_away(b.stolen_registers, false);
        self.close(b);
        self.take_flags_back(b.stolen_registers, false);
        dynasm!(self; mov rcx, [rsp - 8]);
        self.jmp_to_return();
    }
}

const _: () = assert!(FRAME + layout::FRAME_CALL_EDGE < 128);
