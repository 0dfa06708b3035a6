//! The facts, instruction by instruction, and against what the decoder's library says of all opcodes.

use std::fmt::Write as _;

use grind_types::addr::GuestAddr;
use iced_x86::Register;

use super::{Access, Counts, Kind, Place, When, accesses, branch, counts};
use crate::decode::{Insn, decode_one};

const PC: GuestAddr = GuestAddr(0x40_0000);

fn insn(bytes: &[u8]) -> Insn {
    decode_one(bytes, PC, true)
}

fn of(insn: &Insn) -> Vec<Access> {
    let mut out = Vec::new();
    accesses(insn, &mut out);
    out
}

/// One access in short: `r8 [rsp]`.
fn short(a: &Access) -> String {
    let mut s = String::new();
    s.push(match a.kind {
        Kind::Read => 'r',
        Kind::Write => 'w',
        Kind::Modify => 'm',
    });
    let (address, more) = match a.place {
        Place::At(address) => (address, String::new()),
        Place::PlusAl(address) => (address, "+al".to_owned()),
        Place::Bit(address, register) => (address, format!("+{register:?}>>3").to_lowercase()),
        Place::Element { address, index, lane, wide } => {
            (address, format!("+{index:?}[{lane}{}]*{}", if wide { "q" } else { "d" }, address.scale).to_lowercase())
        }
        Place::Compacted { address, component, offset } => (address, format!("+component{component}+{offset}")),
    };
    let _ = write!(s, "{} ", a.size);
    if address.segment != Register::None {
        let _ = write!(s, "{:?}:", address.segment);
    }
    s.push('[');
    if address.base != Register::None {
        let _ = write!(s, "{:?}", address.base);
    }
    if address.index != Register::None {
        let _ = write!(s, "+{:?}*{}", address.index, address.scale);
    }
    if address.displacement != 0 {
        let sign = if address.displacement < 0 { '-' } else { '+' };
        let _ = write!(s, "{sign}{:#x}", address.displacement.unsigned_abs());
    }
    s.push_str(&more);
    s.push(']');
    if address.narrow {
        s.push_str(" narrow");
    }
    match a.when {
        When::Always => {}
        When::Iteration => s.push_str(" each"),
        When::Sign { mask, lane, size } => {
            let _ = write!(s, " if {mask:?}[{lane}x{size}]");
        }
        When::Bit { mask, lane } => {
            let _ = write!(s, " if {mask:?}[{lane}]");
        }
        When::Span { mask, lanes, shape } => {
            let _ = write!(s, " {shape:?} of {mask:?}[0..{lanes}]");
        }
        When::Requested(bits) => {
            let _ = write!(s, " if requested {bits:#x}");
        }
    }
    s.to_lowercase()
}

fn facts(bytes: &[u8]) -> String {
    of(&insn(bytes)).iter().map(short).collect::<Vec<_>>().join(", ")
}

#[test]
fn common_instructions() {
    let table: &[(&[u8], &str)] = &[
        (&[0x8b, 0x04, 0x98], "r4 [rax+rbx*4]"),
        (&[0x89, 0x44, 0x24, 0x08], "w4 [rsp+0x8]"),
        (&[0x48, 0x01, 0x07], "m8 [rdi]"),
        (&[0x48, 0x39, 0x07], "r8 [rdi]"),
        (&[0xf0, 0xff, 0x07], "r4 [rdi], m4 [rdi]"),
        (&[0x87, 0x07], "r4 [rdi], m4 [rdi]"),
        (&[0xf0, 0x0f, 0xb1, 0x0f], "m4 [rdi]"),
        (&[0x8d, 0x07], ""),
        (&[0x0f, 0x1f, 0x00], ""),
        (&[0x0f, 0x18, 0x08], ""),
        (&[0x0f, 0xae, 0x38], ""),
        (&[0x0f, 0x44, 0x07], "r4 [rdi]"),
        (&[0x0f, 0x94, 0x07], "w1 [rdi]"),
        (&[0x8b, 0x05, 0x10, 0, 0, 0], "r4 [+0x400016]"),
        (&[0x64, 0x8b, 0x07], "r4 fs:[rdi]"),
        (&[0x67, 0x8b, 0x07], "r4 [edi] narrow"),
        (&[0x0f, 0xa3, 0x0f], "r1 [rdi+ecx>>3]"),
        (&[0x0f, 0xba, 0x27, 0x05], "r4 [rdi]"),
        (&[0xd7], "r1 [rbx+al]"),
        (&[0xd9, 0xc9], ""),
        (&[0xdb, 0x2f], "r10 [rdi]"),
        (&[0xd9, 0x37], "w28 [rdi]"),
        (&[0xdd, 0x37], "w108 [rdi]"),
    ];
    for (bytes, want) in table {
        assert_eq!(facts(bytes), *want, "{:?}", insn(bytes).ins);
    }
}

#[test]
fn stack_and_strings() {
    let table: &[(&[u8], &str)] = &[
        (&[0x50], "w8 [rsp-0x8]"),
        (&[0x66, 0x50], "w2 [rsp-0x2]"),
        (&[0x6a, 0x01], "w8 [rsp-0x8]"),
        (&[0xff, 0x30], "r8 [rax], w8 [rsp-0x8]"),
        (&[0x58], "r8 [rsp]"),
        (&[0x8f, 0x00], "r8 [rsp], w8 [rax]"),
        (&[0x8f, 0x44, 0x24, 0x08], "r8 [rsp], w8 [rsp+0x10]"),
        (&[0xe8, 0, 0, 0, 0], "w8 [rsp-0x8]"),
        (&[0xff, 0xd0], "w8 [rsp-0x8]"),
        (&[0xff, 0x10], "r8 [rax], w8 [rsp-0x8]"),
        (&[0xff, 0x20], "r8 [rax]"),
        (&[0xc3], "r8 [rsp]"),
        (&[0xc2, 0x10, 0], "r8 [rsp]"),
        (&[0xc9], "r8 [rbp]"),
        (&[0xc8, 0x10, 0, 0], "w8 [rsp-0x8]"),
        (&[0xc8, 0x10, 0, 2], "w8 [rsp-0x8], r8 [rbp-0x8], w8 [rsp-0x10], w8 [rsp-0x18]"),
        (&[0x9c], "w8 [rsp-0x8]"),
        (&[0x9d], "r8 [rsp]"),
        (&[0xa4], "r1 [rsi], w1 [rdi]"),
        (&[0xf3, 0x48, 0xa5], "r8 [rsi] each, w8 [rdi] each"),
        (&[0xf3, 0xa6], "r1 [rdi] each, r1 [rsi] each"),
        (&[0xf2, 0xae], "r1 [rdi] each"),
        (&[0xf3, 0xab], "w4 [rdi] each"),
        (&[0x67, 0xac], "r1 [esi] narrow"),
        (&[0x66, 0x0f, 0xf7, 0xc1], "w16 [rdi]"),
        (&[0x0f, 0x05], ""),
        (&[0xcc], ""),
    ];
    for (bytes, want) in table {
        assert_eq!(facts(bytes), *want, "{:?}", insn(bytes).ins);
    }
}

#[test]
fn branches_and_counts() {
    let none = Counts::default();
    let table: &[(&[u8], Counts)] = &[
        (&[0x74, 0], Counts { conditional: 1, ..none }),
        (&[0xe2, 0], Counts { conditional: 1, ..none }),
        (&[0xe3, 0], Counts { conditional: 1, ..none }),
        (&[0xeb, 0], none),
        (&[0xff, 0x10], Counts { reads: 1, writes: 1, indirect: 1, ..none }),
        (&[0xff, 0xe0], Counts { indirect: 1, ..none }),
        (&[0xc3], Counts { reads: 1, ..none }),
        (&[0x01, 0x07], Counts { modifies: 1, ..none }),
        (&[0xf3, 0xa4], none),
    ];
    for (bytes, want) in table {
        let i = insn(bytes);
        assert_eq!(counts(&i, &of(&i)), *want, "{:?}", i.ins);
    }
    assert_eq!(branch(&insn(&[0x90])), None);
}
