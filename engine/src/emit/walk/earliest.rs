//! Which way of a set was used longest ago, for the walks of both caches: the times of all ways are compared as numbers with a fraction,
//! two at a time, since there is an instruction for the smaller one of these, but none of integers on many processors.
//!
//! A time, its way's number below it and above it the exponent of a normal number that is positive, is in the order of the times. Such
//! a number raises no flag of MXCSR and needs no help of microcode. Instructions of SSE change no more than 128 bits of a register, so
//! that is all that is saved. Invariants: xmm0 and xmm1 come back as they were; times are below 2^57.

use super::RSI;
use crate::arena;
use crate::asm::{Asm, Gpr};

/// The most ways: what is below a time has so many values.
pub(super) const MOST: u32 = 16;

/// A register and the half of it that a time goes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    xmm: u8,
    high: bool,
}

/// Bits above a time: the exponent of a number that is not small, and one of the largest.
const NUMBER: u64 = 1 << 62;
const LARGE: u64 = 0x7fe << 52;

/// Bits below a time.
const WAY_BITS: u8 = MOST.trailing_zeros() as u8;

/// Into rsi: the number of the way with the earliest time. `load` loads the time of a way.
pub(super) fn earliest(c: &mut Asm, ways: u32, load: impl Fn(&mut Asm, u32, Half)) {
    debug_assert!(ways <= MOST);
    let saves = [arena::VECTOR_SAVES, arena::VECTOR_SAVES + 16];
    c.gs_vector(&[0x0f, 0x29], 0, saves[0]); // movaps
    c.gs_vector(&[0x0f, 0x29], 1, saves[1]);
    let mut fields = Vec::new();
    let mut constants = Vec::new();
    for way in (0..ways).step_by(2) {
        let xmm = u8::from(way == 0);
        load(c, way, Half { xmm, high: false });
        let pair = way + 1 < ways;
        if pair {
            load(c, way + 1, Half { xmm, high: true });
        }
        c.bytes(&[0x66, 0x0f, 0x73, 0xf0 | xmm, WAY_BITS]); // psllq
        c.bytes(&[0x0f, 0x56, 5 | xmm << 3, 0, 0, 0, 0]); // orps xmm, [rip + d]
        fields.push(c.pos() - 4);
        constants.push([NUMBER | u64::from(way), if pair { NUMBER | u64::from(way + 1) } else { LARGE }]);
        if way > 0 {
            c.bytes(&[0x66, 0x0f, 0x5d, 0xc8]); // minpd xmm1, xmm0
        }
    }
    c.bytes(&[0x0f, 0x12, 0xc1]); // movhlps xmm0, xmm1
    c.bytes(&[0xf2, 0x0f, 0x5d, 0xc8]); // minsd xmm1, xmm0
    c.bytes(&[0x66, 0x48, 0x0f, 0x7e, 0xc8 | RSI.0]); // movq rsi, xmm1
    c.and_imm(RSI, MOST as i32 - 1);
    c.gs_vector(&[0x0f, 0x28], 0, saves[0]);
    c.gs_vector(&[0x0f, 0x28], 1, saves[1]);
    let over = c.jmp();
    // (The processor wants them aligned.)
    while c.here() % 16 != 0 {
        c.nop(1);
    }
    for (field, pair) in fields.into_iter().zip(constants) {
        c.patch_here(field);
        pair.into_iter().for_each(|word| c.bytes(&word.to_le_bytes()));
    }
    c.patch_here(over);
}

impl Asm {
    /// `movq` (the lower half, clearing the upper one) or `movhpd xmm, gs:[base + index + offset]`
    pub(super) fn load_half(&mut self, to: Half, base: Gpr, index: Option<Gpr>, offset: u32) {
        let (prefix, op) = if to.high { (0x66, 0x16) } else { (0xf3, 0x7e) };
        let x = index.map_or(0, |r| r.0 >> 3);
        self.bytes(&[0x65, prefix, 0x40 | x << 1 | base.0 >> 3, 0x0f, op]);
        let reg = to.xmm << 3;
        match index {
            Some(index) => self.bytes(&[0x84 | reg, (index.0 & 7) << 3 | base.0 & 7]),
            None => self.bytes(&[0x80 | reg | base.0 & 7]),
        }
        self.bytes(&offset.to_le_bytes());
    }

    /// `op xmm, gs:[offset]`
    fn gs_vector(&mut self, op: &[u8], xmm: u8, offset: u32) {
        self.bytes(&[0x65]);
        self.bytes(op);
        self.bytes(&[4 | xmm << 3, 0x25]);
        self.bytes(&offset.to_le_bytes());
    }
}
