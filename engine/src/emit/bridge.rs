//! From where a block is left to where that leads, once the sink has said what happens whenever it does: what is known of a
//! transfer of control, as code. Also the code that deals with returns from the calls that it makes.
//!
//! A bridge first makes sure that everything is as it was when it was built: the target (of an indirect branch), the stack
//! pointer below the innermost frame, the callee's level of recursion. If not, it changes nothing and leads on, in the end
//! to a stop. Invariants: on its way in, rcx has been saved if the transfer is indirect, or a return; a frame is there
//! whole or not at all, since [`Scratch::TopFrame`] is moved last; the first store to a new frame is the one that may
//! fault, before anything else has changed; flags that may be read where it leads are kept.

use crate::arena::{self, FRAME, Scratch, TARGET};
use crate::asm::{Asm, Gpr};
use crate::decode::STATUS;
use crate::follow::{Always, NO_ROUTE, RouteKind};

const BELOW: u8 = 2;
const NOT_EQUAL: u8 = 5;
const EQUAL: u8 = 4;

/// What a bridge does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bridge {
    /// The target that it is for, if the transfer is indirect.
    pub(crate) indirect: Option<u64>,
    pub(crate) always: Always,
    /// The flags that may be read at the target.
    pub(crate) live: u8,
    /// The callee's function and level, for calls.
    pub(crate) function: u32,
    pub(crate) level: u32,
    /// Number of the route, and its counters: calls, inclusive costs.
    pub(crate) route: u32,
    pub(crate) cells: [u32; 2],
    /// The flags that may be read where it returns to.
    pub(crate) live_after: u8,
    /// Whether a return pops the frame below, too, and comes from it.
    pub(crate) through: bool,
    /// Where a stop for returns is that nobody can follow.
    pub(crate) odd_return: u64,
}

/// A bridge that was emitted: 32-bit fields to be led somewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Built {
    /// To the target's translation.
    pub(crate) onward: usize,
    /// To what comes next if it is not for this.
    pub(crate) else_: Vec<usize>,
    /// Offset of the code for returns, and its fields to where the call returns to (if that is known).
    pub(crate) returns: Option<(usize, Option<usize>)>,
}

/// Emits a bridge.
pub(crate) fn emit(c: &mut Asm, b: &Bridge) -> Built {
    let mut built = Built::default();
    if let Some(target) = b.indirect {
        c.reload(Gpr::RCX, TARGET);
        c.zero_if(target);
        let ok = c.jrcxz();
        built.else_.push(c.jmp());
        c.patch_short(ok);
    }
    let keep = b.live & STATUS != 0;
    let flags = |c: &mut Asm, back: bool| match (keep, back) {
        (true, false) => c.put_flags_away(),
        (true, true) => c.take_flags_back(),
        _ => {}
    };
    if b.indirect.is_none() {
        c.spill(Scratch::Rcx, Gpr::RCX);
    }
    flags(c, false);
    let mut slow = Vec::new();
    let (kind, levels, returns_to) = match b.always {
        Always::Nothing => {
            c.load_gs(Gpr::RCX, Scratch::TopFrame as u32);
            c.cmp_frame(Gpr::RCX, 0, Gpr::RSP);
            slow.push(c.jcc(BELOW));
            flags(c, true);
            c.reload(Gpr::RCX, Scratch::Rcx);
            built.onward = c.jmp();
            slow.into_iter().for_each(|field| c.lead_here(field));
            flags(c, true);
            c.reload(Gpr::RCX, Scratch::Rcx);
            built.else_.push(c.jmp());
            return built;
        }
        Always::Push { kind, levels, returns_to } => (kind, levels, returns_to),
    };
    c.spill(Scratch::T1, Gpr::RDX);
    c.load_gs(Gpr::RDX, Scratch::TopFrame as u32);
    let pushes = matches!(kind, RouteKind::Call | RouteKind::Stub);
    if pushes {
        // Nothing may share the place of the return address.
        c.lea_disp(Gpr::RCX, Gpr::RSP, 8);
        c.cmp_frame(Gpr::RDX, 0, Gpr::RCX);
    } else {
        if kind != RouteKind::Through {
            c.cmp_frame_none(Gpr::RDX, arena::FRAME_ROUTE as i8);
            slow.push(c.jcc(EQUAL));
        }
        c.cmp_frame(Gpr::RDX, 0, Gpr::RSP);
    }
    slow.push(c.jcc(BELOW));
    let stub = matches!(kind, RouteKind::Stub | RouteKind::JumpToStub);
    let active = (arena::ACTIVE + 8 * u64::from(b.function)) as u32;
    if !stub && levels > 1 {
        c.cmp_gs(active, b.level as i8);
        slow.push(c.jcc(if b.level + 1 == levels { BELOW } else { NOT_EQUAL }));
    }
    let at = |offset: u64| (FRAME + offset) as i8;
    if pushes {
        c.store_frame(Gpr::RDX, at(0), Gpr::RSP);
    } else {
        c.gs_frame(0x8b, Gpr::RCX, Gpr::RDX, 0);
        c.store_frame(Gpr::RDX, at(0), Gpr::RCX);
    }
    c.load_gs(Gpr::RCX, Scratch::Total as u32);
    c.store_frame(Gpr::RDX, at(arena::FRAME_ENTERED), Gpr::RCX);
    let returns = c.lea_rip(Gpr::RCX);
    c.store_frame(Gpr::RDX, at(arena::FRAME_RETURN), Gpr::RCX);
    c.store_frame_imm(Gpr::RDX, at(arena::FRAME_ROUTE), b.route);
    if !stub {
        c.add_one_gs(active);
        c.add_one_gs(arena::cell_offset(b.cells[0]));
    }
    c.lea_disp(Gpr::RDX, Gpr::RDX, FRAME as i32);
    c.store_gs(Scratch::TopFrame as u32, Gpr::RDX);
    flags(c, true);
    c.reload(Gpr::RDX, Scratch::T1);
    c.reload(Gpr::RCX, Scratch::Rcx);
    built.onward = c.jmp();

    slow.into_iter().for_each(|field| c.lead_here(field));
    flags(c, true);
    c.reload(Gpr::RDX, Scratch::T1);
    c.reload(Gpr::RCX, Scratch::Rcx);
    built.else_.push(c.jmp());

    if stub {
        c.patch_rel32(returns, b.odd_return);
    } else {
        c.lead_here(returns);
        let pos = c.pos();
        let onward = if returns_to != 0 { Some(c.return_to(b, returns_to)) } else { None };
        if onward.is_none() {
            c.return_further(b);
        }
        built.returns = Some((pos, onward));
    }
    built
}

impl Asm {
    /// Makes rcx zero if it is `pc`, and something else if not.
    fn zero_if(&mut self, pc: u64) {
        if super::landing::has_rorx() {
            self.zero_if_equal(pc);
            return;
        }
        self.spill(Scratch::T3, Gpr::RAX);
        self.mov_imm(Gpr::RAX, pc.wrapping_neg());
        self.lea_sum(Gpr::RCX, Gpr::RAX);
        self.reload(Gpr::RAX, Scratch::T3);
    }

    /// Lets the 32-bit field lead here.
    fn lead_here(&mut self, field: usize) {
        let here = self.here();
        self.patch_rel32(field, here);
    }

    /// `lea reg, [rip + …]`; returns the field.
    fn lea_rip(&mut self, reg: Gpr) -> usize {
        self.bytes(&[0x48 | (reg.0 >> 3) << 2, 0x8d, 5 | (reg.0 & 7) << 3, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// Closes the innermost frame, which rdx points to: books its cost, and pops it. rcx is overwritten.
    fn close(&mut self, b: &Bridge) {
        self.load_gs(Gpr::RCX, Scratch::Total as u32);
        self.gs_frame(0x2b, Gpr::RCX, Gpr::RDX, arena::FRAME_ENTERED as i8); // sub rcx, gs:[…]
        self.gs_word(0x01, Gpr::RCX, arena::cell_offset(b.cells[1])); // add gs:[…], rcx
        self.bytes(&[0x65, 0x48, 0xff, 0x0c, 0x25]); // dec gs:[…]
        self.bytes(&((arena::ACTIVE + 8 * u64::from(b.function)) as u32).to_le_bytes());
        self.lea_disp(Gpr::RDX, Gpr::RDX, -(FRAME as i32) * if b.through { 2 } else { 1 });
        self.store_gs(Scratch::TopFrame as u32, Gpr::RDX);
    }

    /// A return to where the call came from: the return address is in rcx (saved) and right below the stack pointer, rdx (saved)
    /// points to the frame. Returns the field that leads there. Flags are dead only if it is that return, so until that is
    /// certain, none is changed.
    fn return_to(&mut self, b: &Bridge, returns_to: u64) -> usize {
        // As a rule nothing else can be there; but the guest may have written to its stack.
        self.zero_if(returns_to);
        let there = self.jrcxz();
        let odd = self.jmp();
        self.patch_short(there);
        self.gs_frame(0x8b, Gpr::RCX, Gpr::RDX, 0); // mov rcx, gs:[rdx]
        self.bytes(&[0x48, 0xf7, 0xd1]); // not rcx
        self.bytes(&[0x48, 0x8d, 0x4c, 0x0c, 0xf9]); // lea rcx, [rsp + rcx - 7]
        let right = self.jrcxz();
        self.lead_here(odd);
        let field = self.jmp();
        self.patch_rel32(field, b.odd_return);
        self.patch_short(right);
        let keep = b.live_after & STATUS != 0;
        if keep {
            self.put_flags_away();
        }
        self.close(b);
        if keep {
            self.take_flags_back();
        }
        self.reload(Gpr::RDX, Scratch::T1);
        self.reload(Gpr::RCX, Scratch::Rcx);
        self.jmp()
    }

    /// A return from what a jump led to: on to the frame below.
    fn return_further(&mut self, b: &Bridge) {
        self.spill(Scratch::T2, Gpr::RCX);
        self.put_flags_away();
        self.lea_disp(Gpr::RCX, Gpr::RSP, -8);
        self.cmp_frame(Gpr::RDX, 0, Gpr::RCX);
        let displaced = self.jcc(NOT_EQUAL);
        self.close(b);
        self.take_flags_back();
        self.reload(Gpr::RCX, Scratch::T2);
        self.jmp_frame(Gpr::RDX, arena::FRAME_RETURN as i8);
        self.lead_here(displaced);
        self.take_flags_back();
        self.reload(Gpr::RCX, Scratch::T2);
        let field = self.jmp();
        self.patch_rel32(field, b.odd_return);
    }
}

const _: () = assert!(NO_ROUTE == u32::MAX && FRAME + arena::FRAME_ROUTE < 128);
