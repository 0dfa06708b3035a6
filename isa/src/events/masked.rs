//! Accesses under a mask: the mask moves and gathers of AVX and AVX2 (a vector's sign bits), and everything of AVX-512 (a mask
//! register). It must never drop an access whose mask it cannot know: each says on what it depends.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::{Access, Address, Kind, Place, Shape, When};

/// Appends the accesses of an instruction that is masked or works element by element; false if it is neither.
pub(super) fn special(ins: &Instruction, kind: Kind, address: Address, out: &mut Vec<Access>) -> bool {
    use Mnemonic as M;
    let size = ins.memory_size().element_size();
    if ins.is_vsib() {
        elements(ins, kind, address, out);
        return true;
    }
    match ins.mnemonic() {
        M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq => {
            let mask = ins.op1_register();
            for lane in 0..mask.size() / size {
                out.push(Access {
                    kind,
                    size: size as u16,
                    place: Place::At(address.plus((lane * size) as i64)),
                    when: When::Sign { mask, lane: lane as u8, size: size as u8 },
                });
            }
            true
        }
        _ if ins.op_mask() != Register::None => {
            let access =
                Access { kind, size: ins.memory_size().size() as u16, place: Place::At(address), when: span(ins) };
            out.push(access);
            true
        }
        _ => false,
    }
}

/// Gathers and scatters.
fn elements(ins: &Instruction, kind: Kind, address: Address, out: &mut Vec<Access>) {
    let size = ins.memory_size().element_size();
    let index = ins.memory_index();
    let wide = ins.is_vsib64();
    let vector = if ins.op0_kind() == OpKind::Register { ins.op0_register() } else { ins.op1_register() };
    let lanes = (vector.size() / size).min(index.size() / if wide { 8 } else { 4 });
    for lane in 0..lanes as u8 {
        let when = match ins.op_mask() {
            Register::None => When::Sign { mask: ins.op2_register(), lane, size: size as u8 },
            mask => When::Bit { mask, lane },
        };
        out.push(Access { kind, size: size as u16, place: Place::Element { address, index, lane, wide }, when });
    }
}

/// Which part of its memory operand an AVX-512 instruction accesses under its mask.
fn span(ins: &Instruction) -> When {
    use Mnemonic as M;
    let mask = ins.op_mask();
    let memory = ins.memory_size();
    let widest = (0..ins.op_count())
        .filter(|&n| ins.op_kind(n) == OpKind::Register && ins.op_register(n).is_vector_register())
        .map(|n| ins.op_register(n).size())
        .max()
        .unwrap_or(64);
    let spread = memory.is_broadcast() || is_broadcast(ins.mnemonic());
    if spread {
        let lanes = (widest / memory.element_size()).min(64) as u8;
        return When::Span { mask, lanes, shape: Shape::Whole };
    }
    if reads_whole(ins.mnemonic()) {
        return When::Always;
    }
    let lanes = memory.element_count().min(64) as u8;
    let shape = match ins.mnemonic() {
        M::Vcompressps
        | M::Vcompresspd
        | M::Vpcompressb
        | M::Vpcompressw
        | M::Vpcompressd
        | M::Vpcompressq
        | M::Vexpandps
        | M::Vexpandpd
        | M::Vpexpandb
        | M::Vpexpandw
        | M::Vpexpandd
        | M::Vpexpandq => Shape::Packed,
        _ if lanes <= 1 => Shape::Whole,
        _ => Shape::Extent,
    };
    When::Span { mask, lanes: lanes.max(1), shape }
}

/// One element, or a few, go to all places of the destination.
fn is_broadcast(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Vbroadcastss
            | M::Vbroadcastsd
            | M::Vpbroadcastb
            | M::Vpbroadcastw
            | M::Vpbroadcastd
            | M::Vpbroadcastq
            | M::Vbroadcastf32x2
            | M::Vbroadcastf32x4
            | M::Vbroadcastf32x8
            | M::Vbroadcastf64x2
            | M::Vbroadcastf64x4
            | M::Vbroadcasti32x2
            | M::Vbroadcasti32x4
            | M::Vbroadcasti32x8
            | M::Vbroadcasti64x2
            | M::Vbroadcasti64x4
    )
}

/// The mask is for the result; the operand's elements move about before, so all of it is read (exception classes E4NF to
/// E9NF of the manual).
fn reads_whole(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Vpunpcklbw
            | M::Vpunpcklwd
            | M::Vpunpckldq
            | M::Vpunpcklqdq
            | M::Vpunpckhbw
            | M::Vpunpckhwd
            | M::Vpunpckhdq
            | M::Vpunpckhqdq
            | M::Vunpcklps
            | M::Vunpcklpd
            | M::Vunpckhps
            | M::Vunpckhpd
            | M::Vpacksswb
            | M::Vpackssdw
            | M::Vpackuswb
            | M::Vpackusdw
            | M::Vshufps
            | M::Vshufpd
            | M::Vshuff32x4
            | M::Vshuff64x2
            | M::Vshufi32x4
            | M::Vshufi64x2
            | M::Vpshufb
            | M::Vpshufd
            | M::Vpshufhw
            | M::Vpshuflw
            | M::Vpalignr
            | M::Valignd
            | M::Valignq
            | M::Vpermb
            | M::Vpermw
            | M::Vpermd
            | M::Vpermq
            | M::Vpermps
            | M::Vpermpd
            | M::Vpermilps
            | M::Vpermilpd
            | M::Vpermi2b
            | M::Vpermi2w
            | M::Vpermi2d
            | M::Vpermi2q
            | M::Vpermi2ps
            | M::Vpermi2pd
            | M::Vpermt2b
            | M::Vpermt2w
            | M::Vpermt2d
            | M::Vpermt2q
            | M::Vpermt2ps
            | M::Vpermt2pd
            | M::Vpmultishiftqb
            | M::Vpconflictd
            | M::Vpconflictq
            | M::Vdbpsadbw
            | M::Vmovddup
            | M::Vinsertf32x4
            | M::Vinsertf32x8
            | M::Vinsertf64x2
            | M::Vinsertf64x4
            | M::Vinserti32x4
            | M::Vinserti32x8
            | M::Vinserti64x2
            | M::Vinserti64x4
    ) || matches!(mnemonic, M::V4fmaddps | M::V4fnmaddps | M::V4fmaddss | M::V4fnmaddss | M::Vp4dpwssd | M::Vp4dpwssds)
}
