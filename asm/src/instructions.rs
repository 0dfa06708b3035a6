//! Instructions that only simulation needs, as bytes. What is said of `asm` holds here, but that arithmetic changes flags.

use grind_isa::events::Address;
use grind_layout::registers::{Gpr, StolenRegisters};
use grind_layout::{self as layout, SlotWord};
use iced_x86::Register;

use crate::Asm;

// Condition codes.

/// Below (unsigned), or carry.
pub const BELOW: u8 = 2;
/// Above or equal (unsigned).
pub const ABOVE_EQUAL: u8 = 3;
/// Equal.
pub const E: u8 = 4;
/// Not equal.
pub const NE: u8 = 5;
/// Above (unsigned).
pub const ABOVE: u8 = 7;
/// Negative.
pub const SIGN: u8 = 8;
/// Not negative.
pub const NOT_SIGN: u8 = 9;
/// Greater (signed).
pub const GREATER: u8 = 15;

// Shifts, as the digits of their opcodes.

/// To the left.
pub const SHL: u8 = 4;
/// To the right, zeros behind.
pub const SHR: u8 = 5;
/// To the right, the sign behind.
pub const SAR: u8 = 7;

/// 64-bit operands, as a bit of the REX prefix.
const WIDE: u8 = 8;

/// A REX prefix without any bits, which chooses sil and the like.
const EVEN_EMPTY: u8 = 0x40;

/// Behind a miss path's return address: the stack pointer is restored by four bytes, rax by two, and there is a jump.
pub const MISS_PATH_DESCRIPTION: i32 = 4 + 2 + 5;

/// Behind that of the miss path of a second line: the stack pointer is restored by four bytes, and two registers by three each, or
/// there is as much behind the jump.
pub const SECOND_DESCRIPTION: i32 = 4 + 2 * 3 + 5;

/// Whether the processor can rotate without touching flags (BMI2).
#[must_use]
#[inline]
pub fn has_rorx() -> bool {
    std::is_x86_feature_detected!("bmi2")
}

impl Asm {
    /// A REX prefix with these bits, if there are any.
    fn rex(&mut self, bits: u8) {
        if bits != 0 {
            self.bytes(&[0x40 | bits]);
        }
    }

    /// `op reg, [base + offset]`; `rex` has [`WIDE`], [`EVEN_EMPTY`] or nothing.
    fn memory(&mut self, gs: bool, rex: u8, op: &[u8], reg: u8, base: Gpr, offset: i32) {
        if gs {
            self.bytes(&[0x65]);
        }
        self.rex(rex | (reg >> 3) << 2 | base.0 >> 3);
        self.bytes(op);
        let (mode, len) = crate::displacement(base, offset);
        self.bytes(&[mode | (reg & 7) << 3 | base.0 & 7]);
        if base.0 & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.first_bytes(&offset.to_le_bytes(), len);
    }

    /// `op reg, gs:[base + offset]` (64 bits)
    #[inline]
    pub fn gs_index(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: u32) {
        self.memory(true, WIDE, &[opcode], reg.0, base, offset as i32);
    }

    /// `cmovcc reg, gs:[base + offset]`
    #[inline]
    pub fn gs_cmov(&mut self, condition: u8, reg: Gpr, base: Gpr, offset: u32) {
        self.memory(true, WIDE, &[0x0f, 0x40 | condition], reg.0, base, offset as i32);
    }

    /// `btr qword gs:[base + offset], bit`: a bit below 64, if it is to be one of that word.
    #[inline]
    pub fn gs_reset_bit(&mut self, bit: Gpr, base: Gpr, offset: u32) {
        self.memory(true, WIDE, &[0x0f, 0xb3], bit.0, base, offset as i32);
    }

    /// `shlx` (`left`) or `shrx to, qword [rip + distance], by`: shifts a constant, keeping the flags. Returns the offset of the
    /// distance.
    pub fn shift_literal(&mut self, left: bool, to: Gpr, by: Gpr) -> usize {
        self.bytes(&[
            0xc4,
            0x62 | (!to.0 >> 3 & 1) << 7,
            0x80 | (!by.0 & 15) << 3 | if left { 1 } else { 3 },
            0xf7,
            (to.0 & 7) << 3 | 5,
        ]);
        self.bytes(&[0; 4]);
        self.pos() - 4
    }

    /// `shlx` (`left`) or `shrx to, gs:[base + offset], by`
    pub fn gs_shift_by(&mut self, left: bool, to: Gpr, base: Gpr, offset: u32, by: Gpr) {
        self.bytes(&[
            0x65,
            0xc4,
            0x42 | (!to.0 >> 3 & 1) << 7 | (!base.0 >> 3 & 1) << 5,
            0x80 | (!by.0 & 15) << 3 | if left { 1 } else { 3 },
            0xf7,
            0x80 | (to.0 & 7) << 3 | base.0 & 7,
        ]);
        if base.low() == Gpr::RSP.0 {
            self.bytes(&[0x24]);
        }
        self.bytes(&offset.to_le_bytes());
    }

    /// `test reg, mask`, of as many bits as there must be. Where they are too many for an immediate, they are looked for in memory: returns
    /// the offset of the distance to that, from behind it.
    pub fn test_bits(&mut self, reg: Gpr, mask: u64) -> Option<usize> {
        match (u8::try_from(mask), u32::try_from(mask)) {
            (Ok(mask), _) => self.bytes(&[0x40 | reg.high(), 0xf6, 0xc0 | reg.low(), mask]),
            (_, Ok(mask)) => {
                self.bytes(&[0x40 | reg.high(), 0xf7, 0xc0 | reg.low()]);
                self.bytes(&mask.to_le_bytes());
            }
            _ => {
                self.bytes(&[0x48 | reg.high() << 2, 0x85, reg.low() << 3 | 5, 0, 0, 0, 0]);
                return Some(self.pos() - 4);
            }
        }
        None
    }

    /// `shlx` (`left`) or `shrx to, from, by`
    pub fn shift_by(&mut self, left: bool, to: Gpr, from: Gpr, by: Gpr) {
        self.bytes(&[
            0xc4,
            0x42 | (!to.0 >> 3 & 1) << 7 | (!from.0 >> 3 & 1) << 5,
            0x80 | (!by.0 & 15) << 3 | if left { 1 } else { 3 },
            0xf7,
            0xc0 | (to.0 & 7) << 3 | from.0 & 7,
        ]);
    }

    /// `popcnt to, from`
    #[inline]
    pub fn count_bits(&mut self, to: Gpr, from: Gpr) {
        self.bytes(&[0xf3, 0x48 | (to.0 >> 3) << 2 | from.0 >> 3, 0x0f, 0xb8, 0xc0 | (to.0 & 7) << 3 | from.0 & 7]);
    }

    /// `pext to, from, mask`
    pub fn extract_by(&mut self, to: Gpr, from: Gpr, mask: Gpr) {
        self.bytes(&[
            0xc4,
            0x42 | (!to.0 >> 3 & 1) << 7 | (!mask.0 >> 3 & 1) << 5,
            0x80 | (!from.0 & 15) << 3 | 2,
            0xf5,
            0xc0 | (to.0 & 7) << 3 | mask.0 & 7,
        ]);
    }

    /// `cmovcc reg, from`
    #[inline]
    pub fn cmov(&mut self, condition: u8, reg: Gpr, from: Gpr) {
        self.bytes(&[
            0x48 | (reg.0 >> 3) << 2 | from.0 >> 3,
            0x0f,
            0x40 | condition,
            0xc0 | (reg.0 & 7) << 3 | from.0 & 7,
        ]);
    }

    /// `movzx reg32, byte gs:[base + offset]`
    pub(crate) fn gs_byte(&mut self, reg: Gpr, base: Gpr, offset: u32) {
        self.memory(true, 0, &[0x0f, 0xb6], reg.0, base, offset as i32);
    }

    /// `mov byte gs:[base + offset], reg8`
    pub(crate) fn gs_store_byte(&mut self, reg: Gpr, base: Gpr, offset: u32) {
        self.memory(true, EVEN_EMPTY, &[0x88], reg.0, base, offset as i32);
    }

    /// `movzx reg32, byte gs:[offset]`
    pub(crate) fn load_gs8(&mut self, reg: Gpr, offset: u32) {
        self.bytes(&[0x41 | (reg.0 >> 3) << 2, 0x0f, 0xb6]);
        self.slot_operand(reg.0, offset);
    }

    /// `mov byte gs:[offset], reg8`
    pub(crate) fn store_gs8(&mut self, offset: u32, reg: Gpr) {
        self.bytes(&[0x41 | (reg.0 >> 3) << 2, 0x88]);
        self.slot_operand(reg.0, offset);
    }

    /// `mov reg32, [base + offset]`
    #[inline]
    pub fn load32(&mut self, reg: Gpr, base: Gpr, offset: i32) {
        self.memory(false, 0, &[0x8b], reg.0, base, offset);
    }

    /// `op reg, [rsp + offset]` (64 bits)
    #[inline]
    pub fn stack_op(&mut self, opcode: u8, reg: Gpr, offset: i32) {
        self.memory(false, WIDE, &[opcode], reg.0, Gpr::RSP, offset);
    }

    /// `mov qword gs:[base + offset], value`, sign-extended
    #[inline]
    pub fn gs_store_imm(&mut self, base: Gpr, offset: u32, value: i32) {
        self.memory(true, WIDE, &[0xc7], 0, base, offset as i32);
        self.bytes(&value.to_le_bytes());
    }

    /// `mov dword gs:[base + offset], value`
    #[inline]
    pub fn gs_store_imm32(&mut self, base: Gpr, offset: u32, value: i32) {
        self.memory(true, 0, &[0xc7], 0, base, offset as i32);
        self.bytes(&value.to_le_bytes());
    }

    /// `op reg32, gs:[base + offset]` with a short offset
    #[inline]
    pub fn gs_base8_32(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: i8) {
        self.memory(true, 0, &[opcode], reg.0, base, offset.into());
    }

    /// `op reg, gs:[base + offset]` (64 bits) with a short offset
    #[inline]
    pub fn gs_base8(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: i8) {
        self.memory(true, WIDE, &[opcode], reg.0, base, offset.into());
    }

    /// `mov dword gs:[base], site`
    #[inline]
    pub fn store_site(&mut self, base: Gpr, site: u32) {
        self.memory(true, 0, &[0xc7], 0, base, 0);
        self.bytes(&site.to_le_bytes());
    }

    /// `cmp qword gs:[offset], 0`
    #[inline]
    pub fn cmp_gs_zero(&mut self, offset: u32) {
        self.gs_op(0x83, Gpr(7), offset);
        self.bytes(&[0]);
    }

    /// `add qword gs:[offset], value`
    pub fn add_gs(&mut self, offset: u32, value: i32) {
        match i8::try_from(value) {
            Ok(v) => {
                self.gs_op(0x83, Gpr(0), offset);
                self.bytes(&v.to_le_bytes());
            }
            Err(_) => {
                self.gs_op(0x81, Gpr(0), offset);
                self.bytes(&value.to_le_bytes());
            }
        }
    }

    /// `mov dword gs:[offset], value`
    #[inline]
    pub fn store_gs32_imm(&mut self, offset: u32, value: u32) {
        self.bytes(&[0x41, 0xc7]);
        self.slot_operand(0, offset);
        self.bytes(&value.to_le_bytes());
    }

    /// `jmp gs:[offset]`
    #[inline]
    pub fn jmp_gs(&mut self, offset: u32) {
        self.bytes(&[0x41, 0xff]);
        self.slot_operand(4, offset);
    }

    /// `lahf; seto al`: the status flags, as [`Asm::flags_from_ax`] takes them.
    #[inline]
    pub fn flags_to_ax(&mut self) {
        self.bytes(&[0x9f, 0x0f, 0x90, 0xc0]);
    }

    /// `add al, 127; sahf`: the addition overflows if OF was set.
    #[inline]
    pub fn flags_from_ax(&mut self) {
        self.bytes(&[0x04, 0x7f, 0x9e]);
    }

    /// Turns to the stack of miss paths, which is in the slot.
    #[inline]
    pub fn enter_miss_path_stack(&mut self) {
        self.store_gs(SlotWord::GuestStack.at(), Gpr::RSP);
        self.load_gs(Gpr::RSP, SlotWord::MissPathStack.at());
    }

    /// Calls the miss path whose address is in a slot word, on the stack of miss paths, and turns back to the guest's. (A return to
    /// the call is predicted; a jump to where it goes on would not be.)
    #[inline]
    pub fn call_miss_path(&mut self, miss_path: SlotWord) {
        self.bytes(&[0x41, 0xff]);
        self.slot_operand(2, miss_path.at());
        self.load_gs(Gpr::RSP, SlotWord::GuestStack.at());
    }

    /// `xchg rax, reg`, of two bytes, which do nothing if that is rax.
    #[inline]
    pub fn exchange_rax(&mut self, reg: Gpr) {
        self.bytes(&if reg == Gpr::RAX { [0x66, 0x90] } else { [0x48 | reg.0 >> 3, 0x90 | reg.0 & 7] });
    }

    /// `push value`, which is below 2^31
    pub fn push_imm(&mut self, value: u32) {
        match i8::try_from(value) {
            Ok(short) => self.bytes(&[0x6a, short as u8]),
            Err(_) => {
                self.bytes(&[0x68]);
                self.bytes(&value.to_le_bytes());
            }
        }
    }

    /// Into `reg`: the address that a miss path returns to, [`MISS_PATH_DESCRIPTION`] or [`SECOND_DESCRIPTION`] bytes before what
    /// describes it.
    #[inline]
    pub fn miss_path_return_address(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.0 >> 3 << 2, 0x8b, 0x04 | (reg.0 & 7) << 3, 0x24]); // mov reg, [rsp]
    }

    /// Returns from a miss path.
    #[inline]
    pub fn miss_path_returns(&mut self) {
        self.bytes(&[0xc3]);
    }

    /// `op reg, from` (64 bits): for opcodes whose destination is the r/m operand.
    #[inline]
    pub fn op_reg(&mut self, opcode: u8, reg: Gpr, from: Gpr) {
        self.bytes(&[0x48 | (from.0 >> 3) << 2 | reg.0 >> 3, opcode, 0xc0 | (from.0 & 7) << 3 | reg.0 & 7]);
    }

    /// `cmp reg, value`
    #[inline]
    pub fn cmp_imm(&mut self, reg: Gpr, value: i32) {
        self.alu_imm(7, reg, value);
    }

    /// `and reg, value`
    #[inline]
    pub fn and_imm(&mut self, reg: Gpr, value: i32) {
        self.alu_imm(4, reg, value);
    }

    /// `op reg, imm` (64 bits) of the operation that has this digit: 0 add, 1 or, 4 and, 5 sub, 6 xor, 7 cmp.
    pub fn alu_imm(&mut self, digit: u8, reg: Gpr, value: i32) {
        let modrm = 0xc0 | digit << 3 | reg.0 & 7;
        match i8::try_from(value) {
            Ok(v) => self.bytes(&[0x48 | reg.0 >> 3, 0x83, modrm, v as u8]),
            Err(_) => {
                self.bytes(&[0x48 | reg.0 >> 3, 0x81, modrm]);
                self.bytes(&value.to_le_bytes());
            }
        }
    }

    /// `shl`, `shr`, `sar` (digits 4, 5, 7) of 64 bits
    #[inline]
    pub fn shift(&mut self, digit: u8, reg: Gpr, n: u8) {
        self.bytes(&[0x48 | reg.0 >> 3, 0xc1, 0xc0 | digit << 3 | reg.0 & 7, n]);
    }

    /// `imul reg, from, value`
    #[inline]
    pub fn multiply(&mut self, reg: Gpr, from: Gpr, value: i32) {
        self.bytes(&[0x48 | (reg.0 >> 3) << 2 | from.0 >> 3, 0x69, 0xc0 | (reg.0 & 7) << 3 | from.0 & 7]);
        self.bytes(&value.to_le_bytes());
    }

    /// `imul reg, from`
    #[inline]
    pub fn multiply_by(&mut self, reg: Gpr, from: Gpr) {
        self.bytes(&[0x48 | (reg.0 >> 3) << 2 | from.0 >> 3, 0x0f, 0xaf, 0xc0 | (reg.0 & 7) << 3 | from.0 & 7]);
    }

    /// `not reg`: changes no flag.
    #[inline]
    pub fn not(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.0 >> 3, 0xf7, 0xd0 | reg.0 & 7]);
    }

    /// `mov reg, -1`
    #[inline]
    pub fn mov_all_ones(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.0 >> 3, 0xc7, 0xc0 | reg.0 & 7, 0xff, 0xff, 0xff, 0xff]);
    }

    /// The line that entry `b` shows is used. Changes the flags.
    #[inline]
    pub fn use_entry(&mut self, b: Gpr) {
        self.increment(Gpr::R9);
        self.gs_index(0x89, Gpr::R9, b, layout::DATA_TIMES as u32);
    }

    /// Into `to`: the offset of the entry, in the tables of lines, for address `from`.
    pub fn entry(&mut self, to: Gpr, from: Gpr, line_bits: u32) {
        let shift = (line_bits - layout::DATA_ENTRY.trailing_zeros()) as u8;
        if line_bits + layout::DATA_ENTRIES.trailing_zeros() > 32 {
            self.mov_reg(to, from);
            self.shift(SHR, to, shift);
        } else if has_rorx() {
            // rorx to32, from32, shift: what is turned to the top is not an entry's.
            let (high_to, high_from) = (!to.0 >> 3 & 1, !from.0 >> 3 & 1);
            self.bytes(&[0xc4, 0x43 | high_to << 7 | high_from << 5, 0x7b, 0xf0]);
            self.bytes(&[0xc0 | (to.0 & 7) << 3 | from.0 & 7, shift]);
        } else {
            self.mov_reg32(to, from);
            if to.0 > 7 {
                self.bytes(&[0x41]);
            }
            self.bytes(&[0xc1, 0xe8 | to.0 & 7, shift]); // shr
        }
        self.and_imm32(to, layout::LAST_ENTRY);
    }

    /// `and reg32, value`
    #[inline]
    pub fn and_imm32(&mut self, reg: Gpr, value: u32) {
        match reg {
            Gpr::RAX => self.bytes(&[0x25]),
            _ if reg.0 > 7 => self.bytes(&[0x41, 0x81, 0xe0 | reg.0 & 7]),
            _ => self.bytes(&[0x81, 0xe0 | reg.0 & 7]),
        }
        self.bytes(&value.to_le_bytes());
    }

    /// `pext to, from, gs:[mask]`: changes no flag.
    #[inline]
    pub fn extract(&mut self, to: Gpr, from: Gpr, mask: SlotWord) {
        self.bytes(&[0xc4, 0x42 | (!to.0 >> 3 & 1) << 7, 0x80 | (!from.0 & 15) << 3 | 2, 0xf5]);
        self.slot_operand(to.0, mask.at());
    }

    /// `op reg, gs:[index * 8 + offset]` (64 bits)
    #[inline]
    pub fn gs_scaled(&mut self, opcode: u8, reg: Gpr, index: Gpr, offset: u64) {
        debug_assert!(index != Gpr::RSP);
        self.bytes(&[0x65, 0x48 | (reg.0 >> 3) << 2 | (index.0 >> 3) << 1]);
        self.bytes(&[opcode, (reg.0 & 7) << 3 | 4, 0xc5 | (index.0 & 7) << 3]);
        self.bytes(&(offset as u32).to_le_bytes());
    }

    /// `prefetcht0 gs:[base + offset]`
    #[inline]
    pub fn gs_prefetch(&mut self, base: Gpr, offset: u32) {
        self.memory(true, 0, &[0x0f, 0x18], 1, base, offset as i32);
    }

    /// `op reg32, gs:[base + offset]`
    #[inline]
    pub fn gs_index32(&mut self, opcode: u8, reg: Gpr, base: Gpr, offset: u32) {
        self.memory(true, 0, &[opcode], reg.0, base, offset as i32);
    }

    /// `op dword gs:[base + offset], n`, the operation by its digit
    #[inline]
    pub fn gs_index32_by(&mut self, digit: u8, base: Gpr, offset: u32, n: i8) {
        self.gs_index32(0x83, Gpr(digit), base, offset);
        self.bytes(&n.to_le_bytes());
    }

    /// `op qword gs:[base + offset], n`, the operation by its digit
    #[inline]
    pub fn gs_index_by(&mut self, digit: u8, base: Gpr, offset: u32, n: i8) {
        self.memory(true, WIDE, &[0x83], digit, base, offset as i32);
        self.bytes(&n.to_le_bytes());
    }

    /// `inc reg`
    #[inline]
    pub fn increment(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.0 >> 3, 0xff, 0xc0 | reg.0 & 7]);
    }

    /// `neg reg`
    #[inline]
    pub fn negate(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.0 >> 3, 0xf7, 0xd8 | reg.0 & 7]);
    }

    /// `adc reg, 0`
    #[inline]
    pub fn add_deferral(&mut self, reg: Gpr) {
        self.bytes(&[0x48 | reg.0 >> 3, 0x83, 0xd0 | reg.0 & 7, 0]);
    }

    /// `lea reg, [address]`, without its segment's base.
    /// What the program has in a register that is taken is loaded into `reg` and, if there are two of them, `other` first; no
    /// other part of the address is in these. Returns whether `other` is changed.
    pub fn lea_address(&mut self, reg: Gpr, other: Gpr, address: &Address, stolen_registers: StolenRegisters) -> bool {
        let named = [address.base, address.index].map(|r| r.is_gpr().then(|| Gpr(r.number() as u8)));
        let mut brought: [Option<Gpr>; 2] = [None; 2];
        let mut place = named;
        for n in 0..2 {
            let Some((r, word)) = named[n].and_then(|r| r.kept(stolen_registers).map(|word| (r, word))) else {
                continue;
            };
            let to = if brought[0].is_none_or(|first| first == r) { reg } else { other };
            if !brought.contains(&Some(r)) {
                self.reload(to, word);
                brought[usize::from(to == other)] = Some(r);
            }
            place[n] = Some(to);
        }
        let both = brought[1].is_some();
        let [base, index] = place;
        let displacement = address.displacement;
        if base.is_none() && index.is_none() {
            let at = if address.narrow { displacement as u64 & 0xffff_ffff } else { displacement as u64 };
            self.mov_address(reg, at);
            return false;
        }
        if let (Some(base), None, 0, false) = (base, index, displacement, address.narrow) {
            // Shorter, and many processors do it by renaming.
            if base != reg {
                self.mov_reg(reg, base);
            }
            return false;
        }
        if address.narrow {
            self.bytes(&[0x67]);
        }
        let x = index.map_or(0, |r| r.0 >> 3);
        let b = base.map_or(0, |r| r.0 >> 3);
        self.bytes(&[0x48 | (reg.0 >> 3) << 2 | x << 1 | b, 0x8d]);
        // Without a base there are always four bytes.
        let distance = displacement as i32;
        let (mode, len) = base.map_or((0, 4), |base| crate::displacement(base, distance));
        let needs_sib = index.is_some() || base.is_none_or(|r| r.0 & 7 == 4);
        if needs_sib {
            let scale = address.scale.max(1).trailing_zeros() as u8;
            self.bytes(&[
                mode | (reg.0 & 7) << 3 | 4,
                scale << 6 | index.map_or(4, |r| r.0 & 7) << 3 | base.map_or(5, |r| r.0 & 7),
            ]);
        } else {
            self.bytes(&[mode | (reg.0 & 7) << 3 | base.map_or(5, |r| r.0 & 7)]);
        }
        self.first_bytes(&distance.to_le_bytes(), len);
        both
    }

    /// `movsx`/`movsxd`/`mov to, from`: a general register of 16, 32 or 64 bits as a signed number.
    pub fn sign_extended(&mut self, to: Gpr, from: Register, stolen_registers: StolenRegisters) {
        let mut f = from.number() as u8;
        if let Some(word) = Gpr(f).kept(stolen_registers) {
            self.reload(to, word);
            f = to.0;
        }
        let rex = 0x48 | (to.0 >> 3) << 2 | f >> 3;
        let modrm = 0xc0 | (to.0 & 7) << 3 | f & 7;
        match from.size() {
            2 => self.bytes(&[rex, 0x0f, 0xbf, modrm]),
            4 => self.bytes(&[rex, 0x63, modrm]),
            _ => self.bytes(&[rex, 0x8b, modrm]),
        }
    }

    /// `rdfsbase reg`
    #[inline]
    pub fn rdfsbase(&mut self, reg: Gpr) {
        self.bytes(&[0xf3, 0x48 | reg.0 >> 3, 0x0f, 0xae, 0xc0 | reg.0 & 7]);
    }

    /// `jmp` to an offset in this buffer
    #[inline]
    pub fn jmp_back(&mut self, to: usize) {
        self.bytes(&[0xe9]);
        let rel = to as i64 - (self.pos() as i64 + 4);
        self.bytes(&(rel as i32).to_le_bytes());
    }

    /// `jcc` to an offset in this buffer
    #[inline]
    pub fn jcc_back(&mut self, condition: u8, to: usize) {
        let field = self.jcc(condition);
        self.patch_rel32(field, self.base + to as u64);
    }

    /// `jcc` with a 32-bit distance that is patched before anything runs, wherever it lies; returns the field's offset.
    #[inline]
    pub fn jcc_away(&mut self, condition: u8) -> usize {
        self.bytes(&[0x0f, 0x80 | condition, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// `lea reg, [rip + d]`, with a distance to be patched by [`Asm::patch_rel32`]; returns the field's offset.
    #[inline]
    pub fn lea_ahead(&mut self, reg: Gpr) -> usize {
        self.bytes(&[0x48 | (reg.0 >> 3) << 2, 0x8d, 5 | (reg.0 & 7) << 3, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// `jmp` with a 32-bit distance that is patched before anything runs, wherever it lies; returns the field's offset.
    #[inline]
    pub fn jmp_away(&mut self) -> usize {
        self.bytes(&[0xe9, 0, 0, 0, 0]);
        self.pos() - 4
    }

    /// Lets the 32-bit distance at `field` lead here.
    #[inline]
    pub fn patch_here(&mut self, field: usize) {
        let here = self.here();
        self.patch_rel32(field, here);
    }

    /// Predicts the conditional branch at `pc` as `cg_sim::Predictor` does; `b` says whether it is taken (0 or 1). A record
    /// is always written, and kept if the prediction was wrong. No flag is changed; all three registers are.
    #[inline]
    pub fn predict(&mut self, pc: u64, site: u32, regs: [Gpr; 3]) {
        let [a, b, _] = regs;
        self.predict_alone(pc, regs);
        self.load_gs(a, SlotWord::TracePos.at());
        self.store_site(a, site);
        self.lea_sum(a, b);
        self.store_gs(SlotWord::TracePos.at(), a);
    }

    /// The same without a record: `b` is 0 if the prediction was right.
    pub fn predict_alone(&mut self, pc: u64, [a, b, d]: [Gpr; 3]) {
        let counter = layout::PREDICTOR_COUNTERS as u32 + (pc & 127) as u32 * 256;
        self.load_gs8(a, SlotWord::History.at());
        self.gs_byte(d, a, counter);
        self.lea_twice(d, b, d); // twice the counter, and the outcome
        self.lea_sum(b, a);
        self.lea_sum(b, b);
        self.store_gs8(SlotWord::History.at(), b);
        self.gs_byte(b, d, layout::OUTCOMES as u32);
        self.gs_store_byte(b, a, counter);
        self.gs_byte(b, d, layout::OUTCOMES as u32 + 8);
    }

    /// A record of a site alone. Changes `pos`.
    #[inline]
    pub fn record_site(&mut self, pos: Gpr, site: u32) {
        self.load_gs(pos, SlotWord::TracePos.at());
        self.store_site(pos, site);
        self.lea_disp(pos, pos, 4);
        self.store_gs(SlotWord::TracePos.at(), pos);
    }

    /// `lea reg, [base + index * 2]`
    fn lea_twice(&mut self, reg: Gpr, base: Gpr, index: Gpr) {
        debug_assert!(index != Gpr::RSP);
        let rex = 0x48 | (reg.0 >> 3) << 2 | (index.0 >> 3) << 1 | base.0 >> 3;
        self.bytes(&[rex, 0x8d, 0x44 | (reg.0 & 7) << 3, 0x40 | (index.0 & 7) << 3 | base.0 & 7, 0]);
    }

    /// These words, as data.
    #[inline]
    pub fn words(&mut self, words: &[u32]) {
        for w in words {
            self.bytes(&w.to_le_bytes());
        }
    }
}
