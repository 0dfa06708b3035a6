//! Where caches or predictors are simulated and emitted code follows calls: in front of a record stand the frames that have come
//! since the last one, so that whoever reads it knows which calls are going on. Calls and returns pay nothing for that.
//!
//! A frame is not new if the total at its entry is below that of the last frame that was told: what was there then has been told,
//! and whatever is pushed later has a higher one. (The same one is possible after a part has been taken, when all frames are
//! as if they had been entered at that moment, and the block at hand had been counted already; so such frames are told again,
//! which does no harm. While nothing is collected, totals stand still: there, a call forgets which frame was told last, so that
//! those with the same total are told again.) Invariants: frames are told from the outside inwards, each with its number, before the record that
//! they stand for; a record's highest word is written first, so that none is there by half; below all frames is one whose total
//! at entry is 0, less than any that was told; no register and no flag of the guest is changed by the routine.

use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::TraceSettings;
use grind_trace::follow::{FRAME_TOLD, FRAME_WORDS, NO_CALL_EDGE};

use grind_asm::Asm;
use grind_asm::instructions::{BELOW, E, NE};

use super::Emitter;

/// Where the routine saves registers: behind those of the miss paths.
const SAVED: u32 = layout::SAVES + 224;

/// Where a branch that was predicted wrongly has rcx.
pub(super) const SAVED_RCX: u32 = SAVED + 32;

/// Whether frames are told.
pub fn frames_told(settings: &TraceSettings) -> bool {
    settings.followed() && settings.simulates()
}

/// Tells frames where code jumps to it; it goes on where [`SlotWord::StackReturn`] says.
pub(crate) fn emit_stack_miss_path(c: &mut Asm) {
    let regs = [Gpr::RAX, Gpr::RCX, Gpr::RDX];
    for (n, r) in regs.into_iter().enumerate() {
        c.store_gs(SAVED + 8 * n as u32, r);
    }
    c.flags_to_ax();
    c.store_gs(SAVED + 24, Gpr::RAX);
    c.tell_frames(regs);
    c.load_gs(Gpr::RAX, SAVED + 24);
    c.flags_from_ax();
    for (n, r) in regs.into_iter().enumerate() {
        c.load_gs(r, SAVED + 8 * n as u32);
    }
    c.jmp_gs(SlotWord::StackReturn.at());
}

/// Code that tells frames.
pub(super) trait StackCode {
    /// Tells the frames that are new. Changes these registers and the flags.
    fn tell_frames(&mut self, registers: [Gpr; 3]);
    /// Records at `pos`, which is moved on, that `frame` is the innermost one, and its call edge, which is in `value`. Changes that.
    fn tell_frame(&mut self, pos: Gpr, frame: Gpr, value: Gpr);
    /// Has the routine tell frames; changes `free`.
    fn tell_stack(&mut self, free: Gpr);
}

impl StackCode for Asm {
    fn tell_frames(&mut self, [pos, frame, value]: [Gpr; 3]) {
        let entered = layout::frame_entered(0) as i8;
        self.load_gs(frame, SlotWord::TopFrame.at());
        self.load_gs(value, SlotWord::ToldTotal.at());
        self.gs_op(0x39, frame, SlotWord::ToldFrame.at()); // cmp gs:[…], frame
        let other = self.jcc_away(NE);
        self.cmp_frame(frame, entered, value);
        let all_told = self.jcc_away(E);
        self.patch_here(other);
        self.store_gs(SlotWord::ToldFrame.at(), frame);
        self.gs_frame(0x8b, pos, frame, entered);
        // Below the outermost one that may be new.
        let again = self.pos();
        self.cmp_frame(frame, entered, value);
        let found = self.jcc_away(BELOW);
        self.lea_disp(frame, frame, -(layout::FRAME as i32));
        self.jmp_back(again);
        self.patch_here(found);
        self.gs_op(0x3b, frame, SlotWord::TopFrame.at()); // cmp frame, gs:[…]
        let none = self.jcc_away(E);
        self.store_gs(SlotWord::ToldTotal.at(), pos);
        self.load_gs(pos, SlotWord::TracePos.at());
        let next = self.pos();
        self.lea_disp(frame, frame, layout::FRAME as i32);
        self.gs_base8_32(0x8b, value, frame, layout::FRAME_CALL_EDGE as i8);
        self.tell_frame(pos, frame, value);
        self.gs_op(0x3b, frame, SlotWord::TopFrame.at());
        self.jcc_back(NE, next);
        let told = self.jmp_away();
        self.patch_here(none);
        self.load_gs(pos, SlotWord::TracePos.at());
        self.mov_imm(value, NO_CALL_EDGE.into());
        self.tell_frame(pos, frame, value);
        self.patch_here(told);
        self.patch_here(all_told);
    }

    fn tell_frame(&mut self, pos: Gpr, frame: Gpr, value: Gpr) {
        self.gs_base8_32(0x89, value, pos, 4);
        self.lea_disp(value, frame, FRAME_TOLD.cast_signed());
        self.gs_base8_32(0x89, value, pos, 0);
        self.lea_disp(pos, pos, 4 * FRAME_WORDS as i32);
        self.store_gs(SlotWord::TracePos.at(), pos);
    }

    fn tell_stack(&mut self, free: Gpr) {
        let back = self.lea_ahead(free);
        self.store_gs(SlotWord::StackReturn.at(), free);
        self.jmp_gs(SlotWord::StackMissPath.at());
        self.patch_here(back);
    }
}

impl Emitter<'_> {
    /// A record is about to be written: tells the frames that stand in front of it, if any do. Changes `free`.
    pub(super) fn tell_stack(&mut self, free: Gpr) {
        if frames_told(&self.tracer.settings) {
            self.out.code.tell_stack(free);
        }
    }
}

const _: () = assert!(layout::SLOT_SIZE < FRAME_TOLD as u64);
