//! A few instructions, as bytes: all that emitted code adds to the guest's own. Nothing here touches the guest's flags or
//! memory, except where a name says so. Every method appends to the buffer.

pub mod instructions;

use dynasmrt::{AssemblyOffset, DynasmApi};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};

/// How an operand's displacement from `base` is told: the bits for that of a ModRM byte, and how many bytes it has. (rbp and
/// r13 cannot be the base without one.)
#[inline]
pub fn displacement(base: Gpr, displacement: i32) -> (u8, usize) {
    match i8::try_from(displacement) {
        Ok(0) if base.low() != 5 => (0, 0),
        Ok(_) => (0x40, 1),
        Err(_) => (0x80, 4),
    }
}

/// `mov gs:[…], r11`, behind a system call: what nothing else begins with.
pub const PUT_AWAY: [u8; 5] = [0x65, 0x4c, 0x89, 0x1c, 0x25];

/// `mov r9, gs:[…]`, behind that: what nothing else begins with.
pub const R9_BACK: [u8; 5] = [0x65, 0x4c, 0x8b, 0x0c, 0x25];

/// `call rel32`
pub const CALL: u8 = 0xe8;

/// `int3`
pub const TRAP: u8 = 0xcc;

/// `syscall`
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A buffer of code whose first byte will stand at `base`.
#[derive(Debug, Default)]
pub struct Asm {
    /// The bytes so far.
    pub buf: Vec<u8>,
    /// Where the first of them will be.
    pub base: u64,
}

/// Code whose registers are fixed is written as text, by [`dynasmrt::dynasm!`].
impl DynasmApi for Asm {
    fn offset(&self) -> AssemblyOffset {
        AssemblyOffset(self.pos())
    }

    fn push(&mut self, byte: u8) {
        self.buf.push(byte);
    }

    fn align(&mut self, alignment: usize, with: u8) {
        while !self.pos().is_multiple_of(alignment) {
            self.buf.push(with);
        }
    }
}

impl Extend<u8> for Asm {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        self.buf.extend(bytes);
    }
}

impl<'a> Extend<&'a u8> for Asm {
    fn extend<T: IntoIterator<Item = &'a u8>>(&mut self, bytes: T) {
        self.buf.extend(bytes);
    }
}

impl Asm {
    /// The address of the next byte.
    #[inline]
    pub fn here(&self) -> u64 {
        self.base + self.buf.len() as u64
    }

    /// The offset of the next byte.
    #[inline]
    pub fn pos(&self) -> usize {
        self.buf.len()
    }

    /// These bytes, as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// The first `len` of `bytes`: a few too many are written first, which takes less than to find out how to write just those.
    pub fn first_bytes<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        let end = self.pos() + len.min(N);
        self.buf.extend_from_slice(bytes);
        self.buf.truncate(end);
    }

    fn imm32(&mut self, v: u32) {
        self.bytes(&v.to_le_bytes());
    }

    /// Overwrites the 32-bit field at `pos`, so that it leads from its own end to `target`.
    ///
    /// The caller has made sure that the distance fits.
    #[inline]
    pub fn patch_rel32(&mut self, pos: usize, target: u64) {
        let from = self.base + pos as u64 + 4;
        let rel = target.wrapping_sub(from) as i64;
        debug_assert!(i32::try_from(rel).is_ok(), "distance {rel:#x} does not fit");
        self.buf[pos..pos + 4].copy_from_slice(&(rel as i32).to_le_bytes());
    }

    /// The operand at `offset` from `gs`, as r11 leads there: a ModRM byte, with `reg`, and a displacement.
    pub(crate) fn slot_operand(&mut self, reg: u8, offset: u32) {
        let distance = offset.cast_signed() - layout::BASE as i32;
        let (mode, len) = displacement(Gpr::R11, distance);
        self.bytes(&[mode | (reg & 7) << 3 | Gpr::R11.low()]);
        self.first_bytes(&distance.to_le_bytes(), len);
    }

    /// `op reg, gs:[offset]` or the other way round, with 64 bits: by r11 where that leads there by one byte. (Not elsewhere: some
    /// processors expect a word that is loaded to be one that was stored by the same register and distance, and are often wrong
    /// about counters.)
    pub fn gs_op(&mut self, opcode: u8, reg: Gpr, offset: u32) {
        if i8::try_from(offset.cast_signed() - layout::BASE as i32).is_ok() {
            self.bytes(&[0x49 | reg.high() << 2, opcode]);
            self.slot_operand(reg.0, offset);
        } else {
            self.bytes(&[0x65, 0x48 | reg.high() << 2, opcode, reg.low() << 3 | 4, 0x25]);
            self.imm32(offset);
        }
    }

    /// Behind a system call: the program's r11 to its word.
    #[inline]
    pub fn put_r11_away(&mut self) {
        self.bytes(&PUT_AWAY);
        self.imm32(SlotWord::R11.at());
    }

    /// Behind that: the word that r9 holds.
    #[inline]
    pub fn take_r9_back(&mut self, word: SlotWord) {
        self.bytes(&R9_BACK);
        self.imm32(word.at());
    }

    /// `rdgsbase r11`
    #[inline]
    pub fn slot_base_to_r11(&mut self) {
        self.bytes(&[0xf3, 0x49, 0x0f, 0xae, 0xcb]);
    }

    /// The address of slot words into r11; `gs` has the base of gs.
    #[inline]
    pub fn base_to_r11(&mut self, gs: Gpr) {
        self.lea_disp(Gpr::R11, gs, layout::BASE as i32);
    }

    /// `mov gs:[offset], reg`
    #[inline]
    pub fn store_gs(&mut self, offset: u32, reg: Gpr) {
        self.gs_op(0x89, reg, offset);
    }

    /// `mov reg, gs:[offset]`
    #[inline]
    pub fn load_gs(&mut self, reg: Gpr, offset: u32) {
        self.gs_op(0x8b, reg, offset);
    }

    /// `movzx reg32, word gs:[offset]`
    #[inline]
    pub fn load_gs_u16(&mut self, reg: Gpr, offset: u32) {
        self.bytes(&[0x41 | reg.high() << 2, 0x0f, 0xb7]);
        self.slot_operand(reg.0, offset);
    }

    /// `mov reg32, gs:[offset]`
    #[inline]
    pub fn load_gs32(&mut self, reg: Gpr, offset: u32) {
        self.bytes(&[0x65]);
        if reg.high() != 0 {
            self.bytes(&[0x44]);
        }
        self.bytes(&[0x8b, reg.low() << 3 | 4, 0x25]);
        self.imm32(offset);
    }

    /// Saves `reg` to its slot word.
    #[inline]
    pub fn spill(&mut self, slot: SlotWord, reg: Gpr) {
        self.store_gs(slot.at(), reg);
    }

    /// Takes `reg` back from its slot word.
    #[inline]
    pub fn reload(&mut self, reg: Gpr, slot: SlotWord) {
        self.load_gs(reg, slot.at());
    }

    /// `inc qword gs:[offset]`: changes OF, SF, ZF, AF and PF.
    pub(crate) fn inc_gs(&mut self, offset: u32) {
        self.gs_op(0xff, Gpr(0), offset);
    }

    /// `add qword gs:[offset], 1`: changes all status flags, but is one operation less than `inc`, which must keep CF.
    #[inline]
    pub fn add_one_gs(&mut self, offset: u32) {
        self.gs_op(0x83, Gpr(0), offset);
        self.bytes(&[1]);
    }

    /// Adds one to `gs:[offset]`, where at most CF of the status flags is among `live`.
    #[inline]
    pub fn bump(&mut self, offset: u32, live: u8) {
        if live == 0 {
            self.add_one_gs(offset);
        } else {
            self.inc_gs(offset);
        }
    }

    /// `lea reg, [base + disp]`
    pub fn lea_disp(&mut self, reg: Gpr, base: Gpr, disp: i32) {
        let rex = 0x48 | reg.high() << 2 | base.high();
        let short = i8::try_from(disp);
        let mode = if short.is_ok() { 0x40 } else { 0x80 };
        self.bytes(&[rex, 0x8d, mode | reg.low() << 3 | base.low()]);
        if base.low() == 4 {
            self.bytes(&[0x24]);
        }
        match short {
            Ok(d) => self.bytes(&[d as u8]),
            Err(_) => self.imm32(disp as u32),
        }
    }

    /// `lea reg, [reg + index]`
    #[inline]
    pub fn lea_sum(&mut self, reg: Gpr, index: Gpr) {
        self.lea_sum_disp(reg, index, 0);
    }

    /// `lea reg, [reg + index + disp]`
    #[inline]
    pub fn lea_sum_disp(&mut self, reg: Gpr, index: Gpr, disp: i32) {
        debug_assert!(index != Gpr::RSP);
        let rex = 0x48 | reg.high() << 2 | index.high() << 1 | reg.high();
        let (mode, len) = displacement(reg, disp);
        self.bytes(&[rex, 0x8d, mode | 4 | reg.low() << 3, index.low() << 3 | reg.low()]);
        self.first_bytes(&disp.to_le_bytes(), len);
    }

    /// `mov reg, imm64`, in its shortest form; returns the offset of the constant.
    pub fn mov_imm(&mut self, reg: Gpr, v: u64) -> usize {
        if let Ok(v) = u32::try_from(v) {
            if reg.high() != 0 {
                self.bytes(&[0x41]);
            }
            self.bytes(&[0xb8 | reg.low()]);
            self.imm32(v);
            self.pos() - 4
        } else {
            self.bytes(&[0x48 | reg.high(), 0xb8 | reg.low()]);
            self.bytes(&v.to_le_bytes());
            self.pos() - 8
        }
    }

    /// `mov reg, value` where `value` may be near: `lea reg, [rip + d]` then. Returns the offset of the constant or distance.
    pub fn mov_address(&mut self, reg: Gpr, value: u64) -> usize {
        let rel = value.wrapping_sub(self.here() + 7) as i64;
        match i32::try_from(rel) {
            Ok(rel) if value > u64::from(u32::MAX) => {
                self.bytes(&[0x48 | reg.high() << 2, 0x8d, 5 | reg.low() << 3]);
                self.imm32(rel as u32);
                self.pos() - 4
            }
            _ => self.mov_imm(reg, value),
        }
    }

    /// `mov reg, from`
    #[inline]
    pub fn mov_reg(&mut self, reg: Gpr, from: Gpr) {
        self.bytes(&[0x48 | from.high() << 2 | reg.high(), 0x89, 0xc0 | from.low() << 3 | reg.low()]);
    }

    /// `mov reg32, from32` (clears the upper half)
    #[inline]
    pub fn mov_reg32(&mut self, reg: Gpr, from: Gpr) {
        let rex = 0x40 | from.high() << 2 | reg.high();
        if rex != 0x40 {
            self.bytes(&[rex]);
        }
        self.bytes(&[0x89, 0xc0 | from.low() << 3 | reg.low()]);
    }

    /// `mov reg, [reg]`
    #[inline]
    pub fn load_through(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.high() << 2 | reg.high(), 0x8b, 0x40 | reg.low() << 3 | reg.low()]);
        if reg.low() == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&[0]);
    }

    /// `op reg, gs:[base + offset]`, or the other way round, with 64 bits and an offset of one byte, whatever it is.
    #[inline]
    pub fn gs_frame(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: i8) {
        self.bytes(&[0x65, 0x48 | reg.high() << 2 | base.high(), opcode]);
        self.short_operand(reg, base, offset);
    }

    /// `mov gs:[base + offset], reg`
    #[inline]
    pub fn store_frame(&mut self, base: Gpr, offset: i8, reg: Gpr) {
        self.gs_frame(0x89, reg, base, offset);
    }

    /// `cmp gs:[base + offset], reg`
    #[inline]
    pub fn cmp_frame(&mut self, base: Gpr, offset: i8, reg: Gpr) {
        self.gs_frame(0x39, reg, base, offset);
    }

    /// `mov dword gs:[base + offset], value`
    #[inline]
    pub fn store_frame_imm(&mut self, base: Gpr, offset: i8, value: u32) {
        self.bytes(&[0x65, 0x40 | base.high(), 0xc7]);
        self.short_operand(Gpr(0), base, offset);
        self.imm32(value);
    }

    /// The operand `[base + offset]` with an offset of one byte, whatever it is.
    fn short_operand(&mut self, reg: Gpr, base: Gpr, offset: i8) {
        self.bytes(&[0x40 | reg.low() << 3 | base.low()]);
        if base.low() == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&offset.to_le_bytes());
    }

    /// `cmp qword gs:[offset], value`
    #[inline]
    pub fn cmp_gs(&mut self, offset: u32, value: i8) {
        self.gs_op(0x83, Gpr(7), offset);
        self.bytes(&value.to_le_bytes());
    }

    /// `mov qword gs:[offset], 0`
    #[inline]
    pub fn zero_gs(&mut self, offset: u32) {
        self.gs_op(0xc7, Gpr(0), offset);
        self.imm32(0);
    }

    /// `crc32 reg, qword gs:[offset]`, by r11
    #[inline]
    pub fn crc32_gs(&mut self, reg: Gpr, offset: u32) {
        debug_assert!(reg.high() == 0);
        self.bytes(&[0xf2, 0x49, 0x0f, 0x38, 0xf1]);
        self.slot_operand(reg.0, offset);
    }

    /// `setcc reg8`, with a REX prefix; `condition` is the low nibble of the opcode.
    #[inline]
    pub fn set_condition(&mut self, condition: u8, reg: Gpr) {
        self.bytes(&[0x40 | reg.high(), 0x0f, 0x90 | condition, 0xc0 | reg.low()]);
    }

    /// `movzx reg32, reg8`, with a REX prefix
    #[inline]
    pub fn zero_extend8(&mut self, reg: Gpr) {
        self.bytes(&[0x40 | reg.high() << 2 | reg.high(), 0x0f, 0xb6, 0xc0 | reg.low() << 3 | reg.low()]);
    }

    /// `movzx reg, al`
    #[inline]
    pub fn zero_extend_al(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.high() << 2, 0x0f, 0xb6, 0xc0 | reg.low() << 3]);
    }

    /// `push value`, of five bytes, sign-extended
    #[inline]
    pub fn push_imm32(&mut self, value: u32) {
        self.bytes(&[0x68]);
        self.imm32(value);
    }

    /// `push [rip + d]`, with a distance to be patched; returns the field's offset.
    #[inline]
    pub fn push_literal(&mut self) -> usize {
        self.bytes(&[0xff, 0x35, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// `call rel32` with a field to be patched, which must have been aligned; returns the field's offset.
    #[inline]
    pub fn call(&mut self) -> usize {
        self.bytes(&[CALL, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// `jecxz` with an 8-bit distance to be patched by [`Asm::patch_short`]; returns the field's offset.
    #[inline]
    pub fn jecxz(&mut self) -> usize {
        self.bytes(&[0x67]);
        self.jrcxz()
    }

    /// Fills up with traps until `full` says that it is enough.
    #[inline]
    pub fn fill_with_traps(&mut self, full: impl Fn(&Self) -> bool) {
        while !full(self) {
            self.bytes(&[TRAP]);
        }
    }

    /// Fills up with `n` bytes (at most 3) that do nothing.
    #[inline]
    pub fn nop(&mut self, n: usize) {
        self.bytes(match n {
            0 => &[],
            1 => &[0x90],
            2 => &[0x66, 0x90],
            _ => &[0x0f, 0x1f, 0x00],
        });
    }

    /// Makes sure that a 32-bit field `ahead` bytes further on does not cross a cache line, so that it can be patched by
    /// one store while other threads run the code.
    #[inline]
    pub fn align_field(&mut self, ahead: usize) {
        let at = (self.here() + ahead as u64) & 63;
        if at > 60 {
            self.nop((64 - at) as usize);
        }
    }

    /// `jmp rel32` with a field to be patched; returns the field's offset.
    #[inline]
    pub fn jmp(&mut self) -> usize {
        self.align_field(1);
        self.bytes(&[0xe9, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// `jcc rel32` with a field to be patched; returns the field's offset. `condition` is the low nibble of the opcode.
    #[inline]
    pub fn jcc(&mut self, condition: u8) -> usize {
        self.align_field(2);
        self.bytes(&[0x0f, 0x80 | condition, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// `jrcxz` with an 8-bit distance to be patched by [`Asm::patch_short`]; returns the field's offset.
    #[inline]
    pub fn jrcxz(&mut self) -> usize {
        self.bytes(&[0xe3, 0]);
        self.pos() - 1
    }

    /// `jmp rel8`, to be patched by [`Asm::patch_short`].
    #[inline]
    pub fn jmp_short(&mut self) -> usize {
        self.bytes(&[0xeb, 0]);
        self.pos() - 1
    }

    /// Lets the 8-bit distance at `pos` lead here.
    #[inline]
    pub fn patch_short(&mut self, pos: usize) {
        let d = self.pos() - pos - 1;
        debug_assert!(d < 128);
        self.buf[pos] = d as u8;
    }

    /// `int3` with the number of its stub behind it.
    #[inline]
    pub fn stop(&mut self, stub: u32) {
        self.bytes(&[0xcc]);
        self.imm32(stub);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

    fn listing(asm: &Asm) -> Vec<String> {
        let mut f = GasFormatter::new();
        Decoder::with_ip(64, &asm.buf, asm.base, DecoderOptions::NONE)
            .iter()
            .map(|i| {
                let mut s = String::new();
                f.format(&i, &mut s);
                s
            })
            .collect()
    }

    #[test]
    fn every_form_reads_as_its_name_says() {
        let mut a = Asm { buf: vec![], base: 0x7000_0000_0000 };
        for r in [0u8, 3, 4, 5, 8, 12, 13, 15].map(Gpr) {
            a.store_gs(0x1008, r);
            a.load_gs(r, 0x1008);
            a.lea_disp(r, r, 1);
            a.lea_disp(r, r, 0x1234);
            if r != Gpr::RSP {
                a.lea_sum(r, Gpr::RCX);
                a.lea_sum(Gpr::RDX, r);
            }
            a.mov_imm(r, 7);
            a.mov_imm(r, 0x1234_5678_9abc_def0);
            a.mov_address(r, 0x7000_0000_1000);
            a.mov_reg(r, Gpr::RCX);
            a.mov_reg32(Gpr::RDX, r);
            a.load_through(r);
        }
        a.inc_gs(0x2000);
        a.add_one_gs(0x2008);
        a.load_gs_u16(Gpr::RCX, SlotWord::Rax.at());
        a.spill(SlotWord::T1, Gpr(12));
        a.reload(Gpr(13), SlotWord::Conditionals);
        a.put_r11_away();
        assert!(a.buf.windows(5).any(|w| w == PUT_AWAY));
        a.slot_base_to_r11();
        a.base_to_r11(Gpr::R11);
        let text = listing(&a).join("\n");
        let want = |s: &str| assert!(text.contains(s), "{s:?} is missing in\n{text}");
        want("mov %r12,%gs:0x1008\n");
        want("mov %gs:0x1008,%r13\n");
        want("lea 1(%rsp),%rsp\n");
        want("lea 0x1234(%r13),%r13\n");
        want("(%r12,%rcx),%r12\n");
        want("mov $7,%r8d\n");
        want("$0x123456789ABCDEF0,%r15\n");
        want("mov %r8d,%edx\n");
        want("incq %gs:0x2000");
        want("addq $1,%gs:0x2008");
        want("movzwl -0x80(%r11),%ecx");
        want("mov %r12,-0x70(%r11)");
        want("mov 0x30(%r11),%r13");
        want("mov %r11,%gs:0x40048\nrdgsbase %r11\nlea 0x40080(%r11),%r11");
        assert!(!text.contains("bad"), "{text}");
    }
}
