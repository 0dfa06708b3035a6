//! Forms of instructions: what tables have entries for. A form is an instruction as the decoder names it (mnemonic, operand sizes,
//! encoding), and whether it accesses memory.
//!
//! [`samples`] finds, by trying encodings, one instruction of each form. Its registers differ from one another, since an instruction
//! that clears a register is not a typical one.

use std::collections::BTreeMap;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind};

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form(u16);

/// Set where memory is accessed.
const MEMORY: u16 = 0x8000;

impl Form {
    /// That of an instruction.
    #[must_use]
    pub fn of(instruction: &Instruction) -> Self {
        let memory = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
        Self::new(instruction.code(), memory)
    }

    /// By its parts.
    #[must_use]
    pub fn new(code: Code, memory: bool) -> Self {
        Self(code as u16 | if memory { MEMORY } else { 0 })
    }

    /// As a number, which is that of the code, and 0x8000 more where memory is accessed.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// The form of this number.
    #[must_use]
    pub fn from_number(number: u16) -> Self {
        Self(number)
    }

    /// As tables name it: the decoder's name, `+m` behind it where memory is accessed.
    #[must_use]
    pub fn name(self) -> String {
        let code = Code::try_from(usize::from(self.0 & !MEMORY)).unwrap_or(Code::INVALID);
        format!("{code:?}{}", if self.0 & MEMORY != 0 { "+m" } else { "" })
    }

    /// The forms by their names.
    #[must_use]
    pub fn by_name() -> std::collections::HashMap<String, Form> {
        let both = |code| [Form::new(code, false), Form::new(code, true)];
        Code::values().flat_map(both).map(|form| (form.name(), form)).collect()
    }
}

/// Tries an encoding: what is in front of ModRM, and that.
fn try_one(all: &mut BTreeMap<Form, Vec<u8>>, head: &[u8], modrm: u8) {
    let mut bytes = [1u8; 24];
    bytes[..head.len()].copy_from_slice(head);
    bytes[head.len()] = modrm;
    let mut decoder = Decoder::with_ip(64, &bytes[..15], 0x1000, DecoderOptions::NONE);
    let instruction = decoder.decode();
    // What begins with a prefix that means nothing has another encoding without it.
    if !instruction.is_invalid() {
        let form = Form::of(&instruction);
        let known = all.get(&form).map_or(usize::MAX, Vec::len);
        if instruction.len() < known {
            all.insert(form, bytes[..instruction.len()].to_vec());
        }
    }
}

/// Register numbers of ModRM: those of an opcode's group, and an operand that is another register or memory.
fn modrms() -> impl Iterator<Item = u8> {
    (0..8u8).rev().flat_map(|reg| {
        let other = if reg == 2 { 3 } else { 2 };
        [0xc0 | reg << 3 | other, reg << 3 | 7]
    })
}

/// One instruction of each form, as bytes.
#[must_use]
pub fn samples() -> BTreeMap<Form, Vec<u8>> {
    let mut all = BTreeMap::new();
    let maps: [&[u8]; 4] = [&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
    let prefixes: [&[u8]; 4] = [&[], &[0x66], &[0xf2], &[0xf3]];
    for map in maps {
        for opcode in 0..=255u8 {
            for prefix in prefixes {
                for rex in [&[][..], &[0x48]] {
                    let head = [prefix, rex, map, &[opcode]].concat();
                    modrms().for_each(|modrm| try_one(&mut all, &head, modrm));
                }
            }
            if !map.is_empty() {
                let number = match map {
                    [_, 0x38] => 2,
                    [_, 0x3a] => 3,
                    _ => 1,
                };
                for bits in 0..16u8 {
                    // W, register 5 as the further operand, length and prefix.
                    let last = (bits & 8) << 4 | 0x50 | (bits & 7);
                    for further in [last, last | 0x78] {
                        let head = [0xc4, 0xe0 | number, further, opcode];
                        modrms().for_each(|modrm| try_one(&mut all, &head, modrm));
                    }
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_sample_of_each_form_that_compilers_use() {
        let all = samples();
        for (form, bytes) in &all {
            let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
            assert_eq!((Form::of(&instruction), instruction.len()), (*form, bytes.len()));
        }
        let names = Form::by_name();
        for name in [
            "Add_rm64_r64",
            "Add_rm64_r64+m",
            "Mov_r32_rm32+m",
            "Lea_r64_m+m",
            "Jne_rel8_64",
            "Call_rel32_64",
            "Retnq",
            "Imul_r64_rm64",
            "Div_rm64",
            "Mulsd_xmm_xmmm64",
            "VEX_Vfmadd231ps_ymm_ymm_ymmm256",
            "VEX_Vpaddd_ymm_ymm_ymmm256+m",
            "Cmpxchg_rm64_r64+m",
            "Pshufb_xmm_xmmm128",
            "Setne_rm8",
            "Push_r64",
            "Tzcnt_r64_rm64",
            "VEX_Andn_r64_r64_rm64",
        ] {
            assert!(all.contains_key(&names[name]), "{name}");
        }
        assert!(all.len() > 2500, "{}", all.len());
    }

    #[test]
    fn names_are_those_of_forms() {
        for (name, form) in Form::by_name() {
            assert_eq!((form.name(), Form::from_number(form.number())), (name, form));
        }
    }
}
