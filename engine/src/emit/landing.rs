//! Landings: where the table of indirect branches leads. A landing checks that the target is the one that it is for, and
//! leads on to the next of its chain if not. Invariants: whatever leads to a landing has saved rcx in its scratch word and
//! left the target where [`Way`] says, so that every landing of a chain finds the same state; no other register and no flag
//! is changed on the way.

use super::Emitted;
use crate::arena::{self, Scratch};
use crate::asm::Gpr;
use crate::transtab::{StubKind, TransTab, Way};

/// A landing that was emitted: it becomes reachable through the table when the code is in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landing {
    /// The guest address it is for.
    pub(crate) pc: u64,
    /// What leads to it.
    pub(crate) way: Way,
    /// Offset of its first byte.
    pub(crate) pos: usize,
    /// Offset of the lowest byte of what the target is compared with: another one makes the landing match nothing, since
    /// only targets with equal low 16 bits get to it.
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
        c.spill(Scratch::T1, Gpr::RAX);
        match way {
            // mov rcx, [rsp-8]
            Way::Return => c.bytes(&[0x48, 0x8b, 0x4c, 0x24, 0xf8]),
            Way::Jump => c.reload(Gpr::RCX, arena::TARGET),
        }
        c.bytes(&[0x48, 0xb8]);
        let low_byte = c.pos();
        c.bytes(&pc.wrapping_neg().to_le_bytes());
        c.lea_sum(Gpr::RCX, Gpr::RAX);
        c.reload(Gpr::RAX, Scratch::T1);
        let ok = c.jrcxz();
        let next = c.jmp();
        c.patch_short(ok);
        self.code.reload(Gpr::RCX, Scratch::Rcx);
        self.landings.push(Landing { pc, way, pos, low_byte, next });
    }
}

/// A landing by itself, for a block that has been emitted without one.
pub(crate) fn emit_landing(base: u64, pc: u64, way: Way, body: u64, trans: &mut TransTab) -> Emitted {
    let mut e = Emitted::new(base);
    e.landing(pc, way);
    let field = e.code.jmp();
    e.code.patch_rel32(field, body);
    e.place_misses(trans);
    for &(pos, id) in &e.stubs {
        trans.stubs[id as usize].addr = base + pos as u64;
    }
    debug_assert!(matches!(trans.stubs.last().map(|s| s.kind), Some(StubKind::IblMiss { .. })));
    e
}
