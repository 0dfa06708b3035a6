//! IBL targets: where the table of indirect branches leads. An IBL target checks that the target is the one that it is for, and
//! leads on to the next of its chain if not. Invariants: whatever leads to an IBL target has saved rcx in its slot word and
//! left the target where [`Way`] says, so that every IBL target of a chain finds the same state; no other register and no flag
//! is changed on the way.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_asm::instructions::has_rorx;
use grind_fragments::fragment_table::{FragmentTable, Way};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_types::addr::{CacheAddr, GuestAddr};

use super::Emitted;
use super::request::Requests;
use crate::pairs::PairCode;

/// An IBL target that was emitted: it becomes reachable through the table when the code is in place.
#[derive(Clone, Copy, Debug)]
pub struct IblTarget {
    /// The guest address it is for.
    pub pc: GuestAddr,
    /// What leads to it.
    pub way: Way,
    /// Offset of its first byte.
    pub pos: usize,
    /// Offset of the byte that says how far to go on if it is the right one: with 0 it leads on to the next of its chain, too.
    pub matches: usize,
    /// Offset of the 32-bit field that leads to the next IBL target of the chain.
    pub next: usize,
}

impl Emitted {
    /// An IBL target for `pc`, in front of its body. It compares the remainder of all 64 bits: no two addresses of a program have the
    /// same remainder and the same entry (a test shows that), so nothing else gets past it. It leaves flags alone even where
    /// they are dead at `pc`: a target that it is not for, and that nobody may have seen yet, may need them.
    pub(super) fn ibl_target(&mut self, pc: GuestAddr, way: Way) {
        let c = &mut self.code;
        let pos = c.pos();
        if std::is_x86_feature_detected!("sse4.2") {
            c.mov_imm(Gpr::RCX, remainder_before(pc).into());
            match way {
                // crc32 rcx, [rsp-8]
                Way::Return | Way::Paired => dynasm!(c; crc32 rcx, QWORD [rsp - 8]),
                // crc32 rcx, gs:[target]
                Way::Jump | Way::Call => c.crc32_gs(Gpr::RCX, layout::TARGET.at()),
            }
        } else {
            match way {
                // mov rcx, [rsp-8]
                Way::Return | Way::Paired => dynasm!(c; mov rcx, [rsp - 8]),
                Way::Jump | Way::Call => c.reload(Gpr::RCX, layout::TARGET),
            }
            c.zero_if_equal_slowly(pc);
        }
        let ok = c.jrcxz();
        let next = c.jmp();
        c.patch_short(ok);
        self.code.reload(Gpr::RCX, SlotWord::Rcx);
        self.ibl_targets.push(IblTarget { pc, way, pos, matches: ok, next });
    }
}

/// Lowest bits of a return's target that do not choose its entry, where they can be got rid of. Neighbouring targets share a
/// line of the processor's cache then, or even an entry: their IBL targets are a chain of conditional jumps, which are
/// better predicted than one indirect jump with many targets. The cases of a switch shall not share entries.
const RETURN_SHIFT: u8 = 6;

/// Which bits choose the entry of an IBL target behind a call: nearly each shall have one of its own, since whoever comes second in
/// a chain has been predicted to be first. From one call's end to the next one's there are 8 bytes and more, mostly.
pub const PAIR_BITS: u32 = (layout::PAIR_ENTRIES as u32 - 1) << PAIR_SHIFT;
const PAIR_SHIFT: u32 = 3;

/// The entry of a target in its table.
pub fn entry_of(way: Way, target: GuestAddr) -> u32 {
    let target = target.0;
    match way {
        Way::Paired => (target as u32 & PAIR_BITS) >> PAIR_SHIFT,
        Way::Return if has_rorx() => (target >> RETURN_SHIFT & (layout::IBL_ENTRIES - 1)) as u32,
        Way::Jump | Way::Call | Way::Return => (target & (layout::IBL_ENTRIES - 1)) as u32,
    }
}

/// The polynomial of `crc32`, from its highest power down, turned around as the instruction works.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// What `crc32` has to begin with to end with 0 after the 64 bits of `pc`.
fn remainder_before(pc: GuestAddr) -> u32 {
    pc.0.to_be_bytes()
        .iter()
        .fold(0, |after, byte| after << 8 ^ BEFORE_A_BYTE[(after >> 24) as usize] ^ u32::from(*byte))
}

/// By its highest byte: what has been before a remainder, eight bits of 0 ago.
const BEFORE_A_BYTE: [u32; 256] = {
    let mut table = [0; 256];
    let mut high = 0;
    while high < 256 {
        let mut r = (high as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            let odd = r >> 31;
            r = (r ^ (POLYNOMIAL * odd)) << 1 | odd;
            bit += 1;
        }
        table[high] = r;
        high += 1;
    }
    table
};

/// Code at IBL targets.
pub(super) trait IblTargetCode {
    /// Turns a target in rcx into the number of its entry.
    fn entry_number(&mut self, way: Way);
    /// Makes rcx zero if it is `pc`, and something else if not, on older processors: through rax.
    fn zero_if_equal_slowly(&mut self, pc: GuestAddr);
}

impl IblTargetCode for Asm {
    fn entry_number(&mut self, way: Way) {
        if way == Way::Return && has_rorx() {
            dynasm!(self; rorx ecx, ecx, RETURN_SHIFT as i8);
        }
        dynasm!(self; movzx ecx, cx);
    }

    fn zero_if_equal_slowly(&mut self, pc: GuestAddr) {
        self.spill(SlotWord::T1, Gpr::RAX);
        dynasm!(self; mov rax, QWORD pc.0.wrapping_neg() as i64);
        self.lea_sum(Gpr::RCX, Gpr::RAX);
        self.reload(Gpr::RAX, SlotWord::T1);
    }
}

/// An IBL target by itself, for a block that has been emitted without one.
pub fn emit_ibl_target(
    base: CacheAddr,
    pc: GuestAddr,
    way: Way,
    body: CacheAddr,
    trans: &mut FragmentTable,
    requests: Option<&Requests>,
) -> Emitted {
    let mut e = Emitted::new(base.0);
    e.ibl_target(pc, way);
    if way == Way::Call {
        e.code.called();
    }
    let field = e.code.jmp();
    e.code.patch_rel32(field, body.0);
    e.place_misses(trans, requests);
    for &(pos, id) in &e.stubs {
        trans.stubs[id as usize].addr = base.plus(pos as u64);
    }
    e
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `crc32` makes of `pc` if it begins with `before`, a bit at a time.
    fn remainder(before: u32, pc: GuestAddr) -> u32 {
        (0..64).fold(before, |r, bit| {
            let r = r ^ (pc.0 >> bit & 1) as u32;
            (r >> 1) ^ (POLYNOMIAL * (r & 1))
        })
    }

    #[test]
    fn a_remainder_is_made_zero_by_its_address() {
        for pc in [0, 1, 0x40_1000, 0x5555_5555_4321, 0x7fff_f7ff_ffff, u64::MAX, 0x8000_0000_0000_0001].map(GuestAddr)
        {
            assert_eq!(remainder(remainder_before(pc), pc), 0, "{pc:#x}");
            // Like the instruction: the CRC of iSCSI, without its first and last turn.
            assert_ne!(remainder(remainder_before(pc), GuestAddr(pc.0 ^ 1)), 0, "{pc:#x}");
        }
        assert_eq!(!remainder(u32::MAX, GuestAddr(u64::from_le_bytes(*b"12345678"))), 0x6087_809a);
    }

    /// Which bits of an address choose its entry.
    fn entry_bits(way: Way) -> u64 {
        (0..64).filter(|bit| entry_of(way, GuestAddr(1 << bit)) != 0).map(|bit| 1 << bit).sum()
    }

    /// All that there is to know of an address that has got to an IBL target is its entry and its remainder. Both are linear (over
    /// bits), so two addresses agree in them if their difference has neither: there must be none but 0.
    #[test]
    fn no_other_address_has_the_same_entry_and_the_same_remainder() {
        for way in Way::ALL {
            let bits = entry_bits(way);
            assert_eq!(bits.count_ones(), way.entries().ilog2(), "{way:?}");
            // Below 2^47, where programs are. Bits that choose the entry cannot differ; of the others each must have a remainder
            // that is not a sum of those of others: Gauss's elimination.
            let mut basis: Vec<u32> = Vec::new();
            for bit in (0..47).filter(|bit| bits >> bit & 1 == 0) {
                let left = basis.iter().fold(remainder(0, GuestAddr(1 << bit)), |r, b| r.min(r ^ b));
                assert_ne!(left, 0, "{way:?}: bit {bit}");
                basis.push(left);
                basis.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
    }
}
