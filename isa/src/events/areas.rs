//! The save areas: FXSAVE, XSAVE and kin, register by register, as the reference does. It must never look at the header that
//! an area has in memory: a component counts if the instruction is asked for it.

use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

use iced_x86::{Instruction, Mnemonic};

use super::{Access, Address, Kind, Place, When};

/// A state component beyond x87 and SSE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component {
    /// Its number.
    number: u8,
    /// Its offset in the standard form.
    offset: u16,
    /// Bytes.
    size: u16,
    /// Bytes of one access.
    unit: u16,
}

/// What the baseline processor has: the upper halves of the YMM registers.
pub(super) const BASELINE: [Component; 1] = [Component { number: 2, offset: 576, size: 256, unit: 16 }];

/// What this processor has, and the kernel may have enabled, but for the tiles.
fn host() -> &'static [Component] {
    static HOST: OnceLock<Vec<Component>> = OnceLock::new();
    HOST.get_or_init(|| {
        // Upper halves of YMM, mask registers, upper halves of ZMM, ZMM16 to 31, protection keys.
        [(2, 16), (5, 8), (6, 32), (7, 64), (9, 8)]
            .into_iter()
            .filter_map(|(number, unit)| {
                let leaf = __cpuid_count(0xd, u32::from(number));
                let (size, offset) = (u16::try_from(leaf.eax).ok()?, u16::try_from(leaf.ebx).ok()?);
                (size != 0).then_some(Component { number, offset, size, unit: unit.min(size) })
            })
            .collect()
    })
}

/// Appends the accesses of an instruction that works on a save area; false if it does not.
pub(super) fn special(ins: &Instruction, address: Address, out: &mut Vec<Access>) -> bool {
    use Mnemonic as M;
    match ins.mnemonic() {
        M::Fxsave | M::Fxsave64 => legacy(Kind::Write, address, [When::Always; 3], out),
        M::Fxrstor | M::Fxrstor64 => legacy(Kind::Read, address, [When::Always; 3], out),
        M::Xsave | M::Xsave64 | M::Xsaveopt | M::Xsaveopt64 | M::Xsavec | M::Xsavec64 | M::Xrstor | M::Xrstor64 => {
            xsave(ins, host(), out)
        }
        _ => return false,
    }
    true
}

/// x87, then MXCSR, then the XMM registers.
fn legacy(kind: Kind, address: Address, when: [When; 3], out: &mut Vec<Access>) {
    let mut add = |offset, size, when| {
        out.push(Access { kind, size, place: Place::At(address.plus(offset)), when });
    };
    add(0, 160, when[0]);
    add(24, 8, when[1]);
    for n in 0..16 {
        add(160 + 16 * n, 16, when[2]);
    }
}

pub(super) fn xsave(ins: &Instruction, components: &[Component], out: &mut Vec<Access>) {
    use Mnemonic as M;
    let address = Address::of_operand(ins);
    let restores = matches!(ins.mnemonic(), M::Xrstor | M::Xrstor64);
    let compacts = matches!(ins.mnemonic(), M::Xsavec | M::Xsavec64);
    let kind = if restores { Kind::Read } else { Kind::Write };
    let header = |kind, offset, size| Access::always(kind, size, address.plus(offset));
    if restores {
        out.push(header(Kind::Read, 512, 8));
        out.push(header(Kind::Read, 520, 8));
        out.push(header(Kind::Read, 528, 8));
    }
    // MXCSR goes with SSE and with AVX.
    legacy(kind, address, [When::Requested(1), When::Requested(6), When::Requested(2)], out);
    for c in components {
        for offset in (0..c.size).step_by(usize::from(c.unit)) {
            let place = if compacts {
                Place::Compacted { address, component: c.number, offset }
            } else {
                Place::At(address.plus(i64::from(c.offset + offset)))
            };
            out.push(Access { kind, size: c.unit, place, when: When::Requested(1 << c.number) });
        }
    }
    match ins.mnemonic() {
        M::Xsave | M::Xsave64 | M::Xsaveopt | M::Xsaveopt64 => out.push(header(Kind::Modify, 512, 1)),
        // XSTATE_BV and XCOMP_BV are written, not updated.
        M::Xsavec | M::Xsavec64 => out.push(header(Kind::Write, 512, 16)),
        _ => {}
    }
}
