//! The miss path of what a repeated string instruction has accessed, behind that instruction in the block.

use grind_asm::Asm;
use grind_asm::instructions::{BELOW, E, GREATER, NOT_SIGN, SHR, SIGN};

use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::{FirstLevel, FirstTlb, Target};

use super::{R8, RAX, RBX, RCX, RDI, RDX, RSI, access_words, bytes_words};
use crate::miss_path::MissPathCode;

/// A repeated string instruction, as [`grind_trace::SiteKind::Repeated`] says.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// Bytes of an element.
    pub size: u8,
    /// Elements are read at rsi.
    pub source: bool,
    /// What happens at rdi.
    pub target: Target,
    /// It happens at rdi first.
    pub target_first: bool,
    /// Addresses have 32 bits.
    pub narrow: bool,
}

/// What of it is told.
#[derive(Clone, Copy, Debug)]
pub struct Repeated {
    /// Each iteration counts.
    pub each: bool,
    /// Which bytes it uses, line by line, so that it is known who has them.
    pub bytes: bool,
}

impl Repeat {
    /// What an iteration does, in order: whether at \[rdi\].
    pub fn order(self) -> impl Iterator<Item = bool> {
        let target = self.target != Target::Unused;
        [(target && self.target_first, true), (self.source, false), (target && !self.target_first, true)]
            .into_iter()
            .filter_map(|(is, at_target)| is.then_some(at_target))
    }

    /// Whether two lines may contend for the only place of their set, so that every iteration counts.
    /// The same of two pages, if there is a TLB.
    pub(crate) fn contends(self, cache: FirstLevel, tlb: Option<FirstTlb>) -> bool {
        (cache.ways == 1 || tlb.is_some_and(|tlb| tlb.ways == 1)) && self.source && self.target != Target::Unused
    }
}

/// Takes along the miss path what a repeated instruction has accessed, from the slot words with its registers before to its registers after.
/// After an iteration, those that stay within the same lines all hit and change nothing, so they are skipped, unless
/// `each` is wanted: who has a line has all its bytes. All registers
/// and flags come back as they were. Returns where the loop begins: with rax iterations to go, by rcx bytes from rbx and rdx
/// on.
pub(crate) fn emit_repeat_miss_path(
    c: &mut Asm,
    cache: FirstLevel,
    repeat: Repeat,
    site: u32,
    told: Repeated,
) -> usize {
    const REGISTERS: [Gpr; 7] = [RAX, RCX, RDX, RBX, RSI, RDI, R8];
    let saves = layout::SAVES + 128;
    let flags = saves + 8 * REGISTERS.len() as u32;
    let size = i32::from(repeat.size);
    let log = repeat.size.trailing_zeros() as u8;
    for (n, r) in REGISTERS.into_iter().enumerate() {
        c.store_gs(saves + 8 * n as u32, r);
    }
    c.flags_to_ax();
    c.store_gs(flags, RAX);
    c.reload(RAX, SlotWord::Repeat);
    c.reload(RBX, SlotWord::RepeatSource);
    c.reload(RDX, SlotWord::RepeatTarget);
    let narrow = |c: &mut Asm, registers: &[Gpr]| {
        for &r in registers.iter().filter(|_| repeat.narrow) {
            c.mov_reg32(r, r);
        }
    };
    narrow(c, &[RCX, RSI, RDI, RBX, RDX]);
    c.op_reg(0x29, RAX, RCX);
    narrow(c, &[RAX]); // rax: iterations that are left; rbx, rdx: where
    c.mov_imm(RCX, size as u64); // rcx: the step
    // By a register that the instruction uses: another one may have been changed.
    let (moved, from) = if repeat.source { (RSI, RBX) } else { (RDI, RDX) };
    c.op_reg(0x29, moved, from);
    let up = c.jcc(NOT_SIGN);
    c.not(RCX);
    c.lea_disp(RCX, RCX, 1);
    c.patch_here(up);
    let again = c.pos();
    c.op_reg(0x85, RAX, RAX);
    let end = c.jcc(E);
    for at_target in repeat.order() {
        c.mov_reg(RSI, if at_target { RDX } else { RBX });
        let member = (site + 1 + u32::from(at_target), 0, size as u16);
        let over = c.miss_path_of_accesses(RSI, &access_words(&[member], size as u16));
        c.patch_here(over);
        if told.bytes {
            c.mov_reg(RSI, if at_target { RDX } else { RBX });
            let writes = at_target && repeat.target == Target::Write;
            let over = c.bytes_told(RSI, &bytes_words(&[(member.0, member.1, member.2, [!writes, writes])]));
            c.patch_here(over);
        }
    }
    c.lea_disp(RAX, RAX, -1);
    c.op_reg(0x01, RBX, RCX);
    c.op_reg(0x01, RDX, RCX);
    narrow(c, &[RBX, RDX]);
    if told.each {
        c.jmp_back(again);
    } else {
        c.mov_reg(RSI, RAX); // rsi: iterations to skip
        for at_target in repeat.order() {
            c.mov_reg(RDI, if at_target { RDX } else { RBX });
            c.and_imm(RDI, cache.line as i32 - 1); // rdi: the offset in the line
            c.mov_imm(R8, 0); // r8: iterations in the line that the last one was in
            c.op_reg(0x85, RCX, RCX);
            let down = c.jcc(SIGN);
            c.cmp_imm(RDI, size);
            let none_up = c.jcc(BELOW);
            c.mov_imm(R8, cache.line.into());
            c.op_reg(0x29, R8, RDI);
            c.shift(SHR, R8, log);
            let have = c.jmp();
            c.patch_here(down);
            c.cmp_imm(RDI, cache.line as i32 - 2 * size);
            let none_down = c.jcc(GREATER);
            c.mov_reg(R8, RDI);
            c.shift(SHR, R8, log);
            c.lea_disp(R8, R8, 1);
            for field in [have, none_up, none_down] {
                c.patch_here(field);
            }
            c.op_reg(0x39, R8, RSI);
            c.cmov(BELOW, RSI, R8);
        }
        c.op_reg(0x29, RAX, RSI);
        c.multiply_by(RSI, RCX);
        c.op_reg(0x01, RBX, RSI);
        c.op_reg(0x01, RDX, RSI);
        narrow(c, &[RBX, RDX]);
        c.jmp_back(again);
    }
    c.patch_here(end);
    c.load_gs(RAX, flags);
    c.flags_from_ax();
    for (n, r) in REGISTERS.into_iter().enumerate() {
        c.load_gs(r, saves + 8 * n as u32);
    }
    again
}
