//! What one instruction accesses, given the registers it starts with: the slow and obvious twin of emitted checks, what tests
//! compare with other tools, and the answer for instructions that emitted code does not judge itself (masks, vectors of
//! indices). It decodes anew each time, so it must never be asked about common instructions; it reads no guest memory.

use std::arch::x86_64::__cpuid_count;
use std::sync::LazyLock;

use grind_types::addr::GuestAddr;
use iced_x86::Register;

use super::{Access, Address, Branch, Kind, Place, Shape, When};
use crate::decode::decode_one;

/// A thread's registers before an instruction.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub general: [u64; 16],
    /// Base of fs.
    pub fs_base: u64,
    /// Base of gs.
    pub gs_base: u64,
    /// The ZMM registers, from their lowest byte; as many as the processor has, or those that are known.
    pub vectors: Vec<[u8; 64]>,
    /// k0 to k7.
    pub masks: [u64; 8],
    /// What the guest sees of XCR0.
    pub xcr0: u64,
}

/// What is done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Done {
    /// A load.
    Read,
    /// A store.
    Write,
    /// Both, of the same bytes, as one access.
    Modify,
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Touch {
    /// What is done.
    pub done: Done,
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// The branch event that an instruction makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// It is taken or not.
    Conditional,
    /// It goes where a register or memory says.
    Indirect,
}

/// One instruction, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Its length in bytes.
    pub len: usize,
    /// What it accesses, in program order; of a repeated string instruction, what its next iteration accesses, if any.
    pub touches: Vec<Touch>,
    /// Its branch event.
    pub jump: Option<Jump>,
}

/// Resolves the instruction at `pc` that `bytes` begin with. `baseline`: the guest sees the baseline processor.
pub fn resolve(bytes: &[u8], pc: GuestAddr, state: &State, baseline: bool) -> Resolved {
    let insn = decode_one(bytes, pc, baseline);
    let mut accesses = Vec::new();
    super::accesses(&insn, &mut accesses);
    let wide = !accesses.iter().any(|a| matches!(a.place, Place::At(a) if a.narrow));
    let count = if wide { state.general[1] } else { state.general[1] & 0xffff_ffff };
    let touches = accesses.iter().filter_map(|a| touch(a, state, count)).collect();
    let jump = super::branch(&insn).map(|b| match b {
        Branch::Conditional => Jump::Conditional,
        Branch::Indirect => Jump::Indirect,
    });
    Resolved { len: insn.len(), touches, jump }
}

fn touch(a: &Access, state: &State, count: u64) -> Option<Touch> {
    let done = match a.kind {
        Kind::Read => Done::Read,
        Kind::Write => Done::Write,
        Kind::Modify => Done::Modify,
    };
    let mut address = place(a.place, state);
    let mut size = u64::from(a.size);
    match a.when {
        When::Always => {}
        When::Iteration => {
            if count == 0 {
                return None;
            }
        }
        When::Sign { mask, lane, size } => {
            let last = usize::from(lane + 1) * usize::from(size) - 1;
            if vector(state, mask)[last] & 0x80 == 0 {
                return None;
            }
        }
        When::Bit { mask, lane } => {
            if state.masks[mask.number()] >> lane & 1 == 0 {
                return None;
            }
        }
        When::Span { mask, lanes, shape } => {
            let all = if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 };
            let set = state.masks[mask.number()] & all;
            if set == 0 {
                return None;
            }
            let element = size / u64::from(lanes);
            match shape {
                Shape::Whole => {}
                Shape::Extent => {
                    let first = u64::from(set.trailing_zeros());
                    let last = 63 - u64::from(set.leading_zeros());
                    address = address.wrapping_add(first * element);
                    size = (last + 1 - first) * element;
                }
                Shape::Packed => size = u64::from(set.count_ones()) * element,
            }
        }
        When::Requested(components) => {
            if requested(state) & components == 0 {
                return None;
            }
        }
    }
    Some(Touch { done, address, size })
}

/// The components that XSAVE and kin are asked for.
fn requested(state: &State) -> u64 {
    let low = state.general[0] & 0xffff_ffff;
    (low | state.general[2] << 32) & state.xcr0
}

fn vector(state: &State, register: Register) -> [u8; 64] {
    state.vectors.get(register.number()).copied().unwrap_or([0; 64])
}

fn general(state: &State, register: Register) -> u64 {
    if !register.is_gpr() {
        return 0;
    }
    let whole = state.general[register.full_register().number()];
    match register.size() {
        8 => whole,
        4 => whole & 0xffff_ffff,
        2 => whole & 0xffff,
        _ => whole & 0xff,
    }
}

fn place(place: Place, state: &State) -> u64 {
    let sum = |a: Address, more: u64| {
        let index = general(state, a.index).wrapping_mul(u64::from(a.scale));
        let index = if a.index == Register::None { 0 } else { index };
        let base = if a.base == Register::None { 0 } else { general(state, a.base) };
        let sum = base.wrapping_add(index).wrapping_add(a.displacement as u64).wrapping_add(more);
        let sum = if a.narrow { sum & 0xffff_ffff } else { sum };
        let segment = match a.segment {
            Register::FS => state.fs_base,
            Register::GS => state.gs_base,
            _ => 0,
        };
        sum.wrapping_add(segment)
    };
    match place {
        Place::At(a) => sum(a, 0),
        Place::PlusAl(a) => sum(a, state.general[0] & 0xff),
        Place::Bit(a, register) => {
            let value = general(state, register);
            let bit = match register.size() {
                2 => i64::from(value as i16),
                4 => i64::from(value as i32),
                _ => value as i64,
            };
            sum(a, (bit >> 3) as u64)
        }
        Place::Element { address, index, lane, wide } => {
            let v = vector(state, index);
            let at = usize::from(lane) * if wide { 8 } else { 4 };
            let low = i32::from_le_bytes([v[at], v[at + 1], v[at + 2], v[at + 3]]);
            let value = if wide {
                let high = i32::from_le_bytes([v[at + 4], v[at + 5], v[at + 6], v[at + 7]]);
                i64::from(high) << 32 | i64::from(low as u32)
            } else {
                i64::from(low)
            };
            sum(address, (value as u64).wrapping_mul(u64::from(address.scale)))
        }
        Place::Compacted { address, component, offset } => {
            let mut at = 576;
            for c in 2..component {
                if requested(state) >> c & 1 != 0 {
                    at = aligned(at, c) + COMPONENTS[usize::from(c)].size;
                }
            }
            sum(address, aligned(at, component) + u64::from(offset))
        }
    }
}

/// Where a component begins in the compacted form, if the one before ends at `at`.
fn aligned(at: u64, component: u8) -> u64 {
    if COMPONENTS[usize::from(component)].aligned { at.next_multiple_of(64) } else { at }
}

/// How a component of the state lies in the compacted form.
struct Compacted {
    /// Bytes.
    size: u64,
    aligned: bool,
}

/// By the numbers of those that instructions are known to save. (In a virtual machine each CPUID is a way out of it.)
static COMPONENTS: LazyLock<[Compacted; 10]> = LazyLock::new(|| {
    std::array::from_fn(|component| {
        let leaf = __cpuid_count(0xd, component as u32);
        Compacted { size: leaf.eax.into(), aligned: leaf.ecx & 2 != 0 }
    })
});
