//! Landings: where the table of indirect branches leads. A landing checks that the target is the one that it is for, and
//! leads on to the next of its chain if not. Invariants: whatever leads to a landing has saved rcx in its scratch word and
//! left the target where [`Way`] says, so that every landing of a chain finds the same state; no other register and no flag
//! is changed on the way.

use super::Emitted;
use super::request::Requests;
use crate::arena::{self, Scratch};
use crate::asm::{Asm, Gpr};
use crate::transtab::{TransTab, Way};

/// A landing that was emitted: it becomes reachable through the table when the code is in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landing {
    /// The guest address it is for.
    pub(crate) pc: u64,
    /// What leads to it.
    pub(crate) way: Way,
    /// Offset of its first byte.
    pub(crate) pos: usize,
    /// Offset of the lowest byte of what the target is compared with: with [`OTHER_ENTRY`] changed in it the landing matches
    /// nothing, since only targets with the same entry get to it.
    pub(crate) low_byte: usize,
    /// Offset of the 32-bit field that leads to the next landing of the chain.
    pub(crate) next: usize,
}

impl Emitted {
    /// A landing for `pc`, in front of its body. It leaves flags alone even where they are dead at `pc`: a target that it is
    /// not for, and that nobody may have seen yet, may need them.
    pub(super) fn landing(&mut self, pc: u64, way: Way) {
        let c = &mut self.code;
        let pos = c.pos();
        match way {
            // mov rcx, [rsp-8]
            Way::Return => c.bytes(&[0x48, 0x8b, 0x4c, 0x24, 0xf8]),
            Way::Jump => c.reload(Gpr::RCX, arena::TARGET),
        }
        let low_byte = if has_rorx() { c.zero_if_equal(pc) } else { c.zero_if_equal_slowly(pc) };
        let ok = c.jrcxz();
        let next = c.jmp();
        c.patch_short(ok);
        self.code.reload(Gpr::RCX, Scratch::Rcx);
        self.landings.push(Landing { pc, way, pos, low_byte, next });
    }
}

/// Whether the processor can rotate without touching flags (BMI2).
pub(super) fn has_rorx() -> bool {
    std::is_x86_feature_detected!("bmi2")
}

/// Lowest bits of a return's target that do not choose its entry, where they can be got rid of. Neighbouring targets share a
/// line of the processor's cache then, or even an entry: their landings are a chain of conditional jumps, which large
/// programs have better predicted than one indirect jump with many targets. The cases of a switch shall not share entries.
const RETURN_SHIFT: u8 = 6;

/// A bit in the lowest byte of a target, or of its negative, that chooses its entry.
pub(crate) const OTHER_ENTRY: u8 = 0x80;

const _: () = assert!(OTHER_ENTRY as u32 == 1 << 7 && RETURN_SHIFT <= 7);

/// The entry of a target in its table.
pub(crate) fn entry_of(way: Way, target: u64) -> u32 {
    let shift = if way == Way::Return && has_rorx() { RETURN_SHIFT } else { 0 };
    ((target >> shift) & (arena::IBL_ENTRIES - 1)) as u32
}

impl Asm {
    /// Turns a target in rcx into the number of its entry.
    pub(super) fn entry_number(&mut self, way: Way) {
        if way == Way::Return && has_rorx() {
            self.bytes(&[0xc4, 0xe3, 0x7b, 0xf0, 0xc9, RETURN_SHIFT]); // rorx ecx, ecx, RETURN_SHIFT
        }
        self.bytes(&[0x0f, 0xb7, 0xc9]); // movzx ecx, cx
    }

    /// Makes rcx zero if it is `pc`, and something else if not; returns the offset of the lowest byte of what it is
    /// compared with.
    pub(super) fn zero_if_equal(&mut self, pc: u64) -> usize {
        // Less the lower half, turned, and less what the upper half then is.
        let lower = (pc as u32 as i32).wrapping_neg();
        self.bytes(&[0x48, 0x8d, 0x89]); // lea rcx, [rcx + lower]
        let low_byte = self.pos();
        self.bytes(&lower.to_le_bytes());
        let upper = (pc.wrapping_add(lower as u64) >> 32) as i32;
        if upper != 0 {
            self.bytes(&[0xc4, 0xe3, 0xfb, 0xf0, 0xc9, 32]); // rorx rcx, rcx, 32
            self.lea_disp(Gpr::RCX, Gpr::RCX, upper.wrapping_neg());
        }
        low_byte
    }

    /// The same on older processors, through rax.
    fn zero_if_equal_slowly(&mut self, pc: u64) -> usize {
        self.spill(Scratch::T1, Gpr::RAX);
        self.bytes(&[0x48, 0xb8]);
        let low_byte = self.pos();
        self.bytes(&pc.wrapping_neg().to_le_bytes());
        self.lea_sum(Gpr::RCX, Gpr::RAX);
        self.reload(Gpr::RAX, Scratch::T1);
        low_byte
    }
}

/// A landing by itself, for a block that has been emitted without one.
pub(crate) fn emit_landing(
    base: u64,
    pc: u64,
    way: Way,
    body: u64,
    trans: &mut TransTab,
    requests: Option<&Requests>,
) -> Emitted {
    let mut e = Emitted::new(base);
    e.landing(pc, way);
    let field = e.code.jmp();
    e.code.patch_rel32(field, body);
    e.place_misses(trans, requests);
    for &(pos, id) in &e.stubs {
        trans.stubs[id as usize].addr = base + pos as u64;
    }
    e
}
