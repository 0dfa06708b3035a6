//! From a cache address and the registers there to the guest's state: where the guest is, which registers are elsewhere,
//! and which counts are ahead of, or behind, what has been executed. Nothing here changes the guest; the caller applies
//! what it is told.

use grind_asm::CALL;
use grind_fragments::fragment_table::{FragmentId, NO_REG, StateMapEntry, StubKind, Way};
use grind_types::addr::CacheAddr;

use grind_code_cache::CodeCache;
use grind_layout::SlotWord;
use grind_ptrace::{Regs, register};

/// Where a thread is that stopped in translated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePosition {
    /// At an instruction's boundary.
    Boundary(Boundary),
    /// At a stub that has not been executed: its block is done, the guest is on its way to where the stub says.
    Stub(StubKind),
    /// Between boundaries.
    Between,
    /// Not in the code cache.
    Elsewhere,
}

/// A repeated instruction that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The counter that its remaining iterations have been counted in.
    pub counter: u32,
    /// Its counter is ecx.
    pub address32: bool,
    /// Where its accesses are recorded, if they are.
    pub site: Option<u32>,
    /// Where its executions are told, if they are.
    pub told: Option<u32>,
}

/// An instruction's boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The block that it is in.
    pub block: FragmentId,
    /// Instructions of the block that have been executed.
    pub executed: u16,
    /// Whether the block's counter counts this time.
    pub bumped: bool,
    /// A system call has just returned: rcx is to show the next address.
    pub after_call: bool,
    /// In a repeated instruction: the counter has iterations that are still to come.
    pub rep: Option<Repeat>,
    /// Registers whose values are in the slot words `Held1` and `Held2` ([`NO_REG`]: none).
    pub held: Option<[u8; 2]>,
}

/// What stands at `rip`.
pub fn cache_position(code_cache: &CodeCache, rip: u64) -> CachePosition {
    let here = CacheAddr(rip);
    if let Some(p) = code_cache.trans.place(here) {
        let at = |executed, after_call, rep| {
            let held = held(code_cache, p.block, here);
            CachePosition::Boundary(Boundary { block: p.block, executed, bumped: p.bumped, after_call, rep, held })
        };
        if p.at_start {
            return at(p.index, false, None);
        }
        return match code_cache.trans.state_map_entry(here) {
            Some(StateMapEntry::Before) => at(p.index, false, None),
            Some(StateMapEntry::After) => at(p.index + 1, true, None),
            Some(StateMapEntry::Rep { counter, address32, site, told }) => {
                at(p.index, false, Some(Repeat { counter, address32, site, told }))
            }
            Some(
                StateMapEntry::Spilled(_)
                | StateMapEntry::Called { .. }
                | StateMapEntry::Request { .. }
                | StateMapEntry::RepeatMissPath { .. },
            )
            | None => CachePosition::Between,
        };
    }
    if let Some(kind) = code_cache.stub_at(here) {
        return CachePosition::Stub(kind);
    }
    if code_cache.is_cache(here) { CachePosition::Between } else { CachePosition::Elsewhere }
}

/// The state before the instruction that faulted at `rip`: registers that are in slot words are put back. `None` if no
/// guest instruction can fault there.
pub fn at_fault(code_cache: &CodeCache, regs: &mut Regs, slot_word: impl Fn(u8) -> u64) -> Option<Boundary> {
    let rip = CacheAddr(regs.rip);
    let p = code_cache.trans.place(rip)?;
    let mut rep = None;
    match code_cache.trans.state_map_entry(rip) {
        Some(StateMapEntry::Spilled(pairs)) => {
            for (reg, slot) in pairs {
                if reg != NO_REG {
                    *register(regs, reg) = slot_word(slot);
                }
            }
        }
        Some(StateMapEntry::Called { in_rcx }) => {
            regs.rsp = regs.rsp.wrapping_add(8);
            if in_rcx {
                regs.rcx = slot_word(SlotWord::Rcx as u8);
            }
        }
        Some(StateMapEntry::Request { .. }) => regs.rcx = slot_word(SlotWord::T1 as u8),
        Some(StateMapEntry::Rep { counter, address32, site, told }) => {
            rep = Some(Repeat { counter, address32, site, told })
        }
        _ => {}
    }
    // Last: a register that was saved by the instruction held a value of ours.
    let held = held(code_cache, p.block, rip);
    Some(Boundary { block: p.block, executed: p.index, bumped: p.bumped, after_call: false, rep, held })
}

/// A call or a return at which an address of ours could not be pushed (`emit::pairs`): lets the guest, whose own address there is
/// room for, go on as if it had been taken back already. False if it is something else that has faulted.
pub fn own_push(code_cache: &CodeCache, regs: &mut Regs) -> bool {
    let mut code = [0; 7];
    code_cache.read_cache(CacheAddr(regs.rip), &mut code);
    let field = u32::from_le_bytes([code[3], code[4], code[5], code[6]]);
    let entry = |way: Way, rcx: u64| {
        let table = way.table();
        let known = u64::from(field) == code_cache.tables_at + table && rcx < way.entries();
        known.then(|| code_cache.tables.load_u64((table + rcx * 8) as usize))
    };
    let (to, sp) = match (code, code_cache.trans.state_map_entry(CacheAddr(regs.rip))) {
        ([CALL, a, b, c, d, ..], Some(StateMapEntry::Called { in_rcx: false })) => {
            let distance = i32::from_le_bytes([a, b, c, d]);
            (Some((regs.rip + 5).wrapping_add_signed(distance.into())), regs.rsp.wrapping_sub(8))
        }
        ([0xff, 0x14, 0xcd, ..], Some(StateMapEntry::Called { in_rcx: true })) => {
            (entry(Way::Call, regs.rcx), regs.rsp.wrapping_sub(8))
        }
        ([0xff, 0x34, 0xcd, ..], Some(StateMapEntry::Spilled(_))) => {
            (entry(Way::Paired, regs.rcx), regs.rsp.wrapping_add(8))
        }
        _ => (None, 0),
    };
    let Some(to) = to else { return false };
    regs.rip = to;
    regs.rsp = sp;
    true
}

/// The registers that hold values of ours at `rip`, which is in the body of `block`.
fn held(code_cache: &CodeCache, block: FragmentId, rip: CacheAddr) -> Option<[u8; 2]> {
    let b = code_cache.trans.block(block);
    let at = rip.since(b.cache);
    (b.held != [NO_REG; 2] && (u64::from(b.held_from)..=u64::from(b.held_to)).contains(&at)).then_some(b.held)
}
