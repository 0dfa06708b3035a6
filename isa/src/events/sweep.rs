//! All opcodes against what the decoder's library says that they access. It describes instructions by what may be touched;
//! where these facts say something else, the instruction stands in one of the lists below, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

use super::{Access, Kind, Place, When, kind, of_instruction};

/// Kind, bytes, base, index, scale, displacement.
type Fact = (char, usize, Register, Register, u32, u64);

fn theirs(ins: &Instruction, factory: &mut InstructionInfoFactory) -> Vec<Fact> {
    let memory = factory.info(ins).used_memory();
    let facts = memory.iter().filter_map(|m| {
        let kind = match m.access() {
            OpAccess::Read | OpAccess::CondRead => 'r',
            OpAccess::Write | OpAccess::CondWrite => 'w',
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => 'm',
            OpAccess::None | OpAccess::NoMemAccess => return None,
        };
        let scale = if m.index() == Register::None { 1 } else { m.scale() };
        Some((kind, m.memory_size().size(), m.base(), m.index(), scale, m.displacement()))
    });
    let mut facts: Vec<Fact> = facts.collect();
    facts.sort();
    facts
}

fn ours(accesses: &[Access]) -> Vec<Fact> {
    let facts = accesses.iter().map(|a| {
        let kind = match a.kind {
            Kind::Read => 'r',
            Kind::Write => 'w',
            Kind::Modify => 'm',
        };
        let (Place::At(at) | Place::PlusAl(at) | Place::Bit(at, _)) = a.place else {
            unreachable!("elements are compared otherwise")
        };
        let index = if matches!(a.place, Place::PlusAl(_)) { Register::AL } else { at.index };
        (kind, usize::from(a.size), at.base, index, u32::from(at.scale), at.displacement as u64)
    });
    let mut facts: Vec<Fact> = facts.collect();
    facts.sort();
    facts
}

/// Instructions of a program that the two describe differently, and why.
fn explained(ins: &Instruction) -> Option<&'static str> {
    use Mnemonic as M;
    let locked = ins.has_lock_prefix() || ins.mnemonic() == M::Xchg;
    Some(match ins.mnemonic() {
        _ if kind::is_hint(ins.mnemonic()) => "advice, and bounds that no kernel supports",
        M::Bt | M::Bts | M::Btr | M::Btc => "the byte that holds the bit",
        M::Fxsave | M::Fxsave64 | M::Fxrstor | M::Fxrstor64 => "register by register",
        M::Xsave | M::Xsave64 | M::Xsaveopt | M::Xsaveopt64 | M::Xsavec | M::Xsavec64 | M::Xrstor | M::Xrstor64 => {
            "register by register"
        }
        M::Iret | M::Iretd | M::Iretq | M::Retf | M::Int | M::Int1 | M::Int3 | M::Uiret | M::Sysexit => "far transfers",
        M::Call | M::Jmp if ins.is_call_far_indirect() || ins.is_jmp_far_indirect() => "far transfers",
        M::Enter => "the frames of outer levels",
        M::Tileloadd | M::Tileloaddt1 | M::Tilestored => "tiles, whose shape is not in the instruction",
        _ if locked => "a read before the modification",
        _ => return None,
    })
}

/// Whether a program may execute it at all.
fn is_for_programs(ins: &Instruction) -> bool {
    !ins.is_privileged() && !ins.is_invalid()
}

/// Calls `f` with one instruction of every encoding: opcode, prefix, width, length, mask, each with a memory operand.
fn every_encoding(mut f: impl FnMut(&Instruction)) {
    let mut see = |bytes: &[u8]| {
        let mut all = bytes.to_vec();
        // modrm [rbx+disp8], displacement, immediates.
        all.resize(15, 0x11);
        let ins = Decoder::with_ip(64, &all, 0x40_0000, DecoderOptions::MPX).decode();
        if !ins.is_invalid() {
            f(&ins);
        }
    };
    for reg in 0..8u8 {
        for rm in [0x43, 0x44] {
            let modrm = reg << 3 | rm;
            for op in 0..=255u8 {
                for prefix in [&[][..], &[0x66], &[0xf2], &[0xf3], &[0xf0], &[0x67]] {
                    for rex in [&[][..], &[0x48]] {
                        for map in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
                            see(&[prefix, rex, map, &[op, modrm]].concat());
                        }
                    }
                }
                for map in 1..=3u8 {
                    for low in 0..16u8 {
                        // W and vvvv = none or xmm1, L, pp.
                        let (w, lpp) = (low & 8, low & 7);
                        for vvvv in [0x78u8, 0x70] {
                            see(&[0xc4, 0xe0 | map, w << 4 | vvvv | lpp, op, modrm]);
                        }
                    }
                }
                for map in 1..=6u8 {
                    for pp in 0..4u8 {
                        for w in [0u8, 0x80] {
                            for last in [0x08u8, 0x28, 0x48, 0x09, 0x29, 0x49, 0x18, 0x38, 0x58, 0x19, 0x39, 0x59] {
                                for vvvv in [0x78u8, 0x70] {
                                    see(&[0x62, 0xf0 | map, w | vvvv | 4 | pp, last, op, modrm]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_opcode_agrees_with_the_decoder_or_says_why_not() {
    let mut factory = InstructionInfoFactory::new();
    let mut seen = BTreeSet::new();
    let mut with_memory = BTreeSet::new();
    let mut used = BTreeMap::new();
    let mut wrong = Vec::new();
    every_encoding(|ins| {
        let fresh = seen.insert((ins.code() as u32, ins.op_mask() as u32, ins.has_lock_prefix(), ins.is_broadcast()));
        if !fresh || !is_for_programs(ins) || ins.is_vsib() {
            return;
        }
        let mut accesses = Vec::new();
        of_instruction(ins, &mut accesses);
        let theirs = theirs(ins, &mut factory);
        if !theirs.is_empty() {
            with_memory.insert(ins.code() as u32);
        }
        // Element by element, or under a mask: judged as a whole.
        let lanes = accesses.iter().all(|a| matches!(a.when, When::Sign { .. })) && accesses.len() > 1;
        if lanes {
            let sum: usize = accesses.iter().map(|a| usize::from(a.size)).sum();
            let first = ours(&accesses[..1]);
            if theirs.len() != 1 || theirs[0].1 != sum || theirs[0].0 != first[0].0 || theirs[0].5 != first[0].5 {
                wrong.push(format!("{:?}: {theirs:x?}, not {accesses:x?}", ins.code()));
            }
            return;
        }
        if let Some(reason) = explained(ins) {
            used.insert(reason, ins.code());
            return;
        }
        let ours = ours(&accesses);
        if ours != theirs {
            wrong.push(format!("{:?}: {theirs:x?}, not {ours:x?}", ins.code()));
        }
    });
    assert!(wrong.is_empty(), "{} opcodes:\n{}", wrong.len(), wrong.join("\n"));
    // The sweep reaches what it should, and no reason is idle.
    assert!(with_memory.len() > 2000, "only {} opcodes with memory", with_memory.len());
    assert_eq!(used.len(), 7, "{used:?}");
    assert!(Code::values().len() <= kind::CODES);
}

#[test]
fn gathers_and_scatters_have_as_many_elements_as_fit() {
    let mut found = BTreeMap::new();
    for op in [0x90u8, 0x91, 0x92, 0x93, 0xa0, 0xa1, 0xa2, 0xa3] {
        for w in [0u8, 0x80] {
            for last in [0x09u8, 0x29, 0x49] {
                let ins = decode(&[0x62, 0xf2, w | 0x7d, last, op, 0x04, 0x1b]);
                let mut out = Vec::new();
                of_instruction(&ins, &mut out);
                assert!(out.iter().all(|a| matches!(a.when, When::Bit { mask: Register::K1, .. })), "{:?}", ins.code());
                found.insert(format!("{:?}", ins.code()), (out.len(), out[0].size));
            }
            for l in [0u8, 4] {
                let ins = decode(&[0xc4, 0xe2, w | 0x69 | l, op, 0x04, 0x1b]);
                if ins.is_invalid() {
                    continue;
                }
                let mut out = Vec::new();
                of_instruction(&ins, &mut out);
                let signs = out.iter().all(|a| matches!(a.when, When::Sign { mask, .. } if mask.number() == 2));
                assert!(signs, "{:?}", ins.code());
                found.insert(format!("{:?}", ins.code()), (out.len(), out[0].size));
            }
        }
    }
    for (name, elements) in [
        ("EVEX_Vpgatherdd_zmm_k1_vm32z", (16, 4)),
        ("EVEX_Vpgatherdq_zmm_k1_vm32y", (8, 8)),
        ("EVEX_Vpgatherqd_ymm_k1_vm64z", (8, 4)),
        ("EVEX_Vpgatherqd_xmm_k1_vm64x", (2, 4)),
        ("EVEX_Vscatterdps_vm32x_k1_xmm", (4, 4)),
        ("EVEX_Vscatterqpd_vm64y_k1_ymm", (4, 8)),
        ("VEX_Vpgatherqd_xmm_vm64x_xmm", (2, 4)),
        ("VEX_Vpgatherqd_xmm_vm64y_xmm", (4, 4)),
        ("VEX_Vgatherdpd_ymm_vm32x_ymm", (4, 8)),
        ("VEX_Vgatherdps_ymm_vm32y_ymm", (8, 4)),
    ] {
        assert_eq!(found.get(name), Some(&elements), "{name}");
    }
    assert_eq!(found.len(), 24 * 2 + 16);
}

fn decode(bytes: &[u8]) -> Instruction {
    Decoder::with_ip(64, bytes, 0x40_0000, DecoderOptions::MPX).decode()
}
