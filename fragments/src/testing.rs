//! What tests of this crate, and of those that translate, begin with. Nothing else may use it.

use std::ops::Range;

use grind_layout::registers::StolenRegisters;
use grind_trace::follow::CallContextId;
use grind_types::addr::{CacheAddr, GuestAddr};

use crate::batch::Known;
use crate::fragment_table::{Fragment, NO_COUNTER, NO_REG};

/// Nothing has been translated yet; what lies in the range may be looked at. These registers are taken.
pub struct Untranslated(pub Range<GuestAddr>, pub StolenRegisters);

impl Known for Untranslated {
    fn live_in(&self, _pc: GuestAddr) -> Option<u8> {
        None
    }

    fn begins(&self, _pc: GuestAddr) -> bool {
        false
    }

    fn none_before(&self, pc: GuestAddr) -> GuestAddr {
        pc.plus(1)
    }

    fn wants_registers(&self) -> bool {
        true
    }

    fn stolen_registers(&self) -> StolenRegisters {
        self.1
    }

    fn may_look_ahead(&self, pc: GuestAddr) -> bool {
        self.0.contains(&pc)
    }
}

/// A block that has nothing special about it.
pub fn block(pc: GuestAddr, guest_len: u16, cache: CacheAddr) -> Fragment {
    Fragment {
        pc,
        call_context: CallContextId(0),
        cache,
        entry: cache,
        called: CacheAddr(0),
        len: 16,
        counter: 0,
        edge: NO_COUNTER,
        derived_edges_in: false,
        shapes: 0,
        n: 0,
        bump_end: 0,
        module: 0,
        guest_len,
        live_in: 0,
        dead_in: 0,
        held: [NO_REG; 2],
        held_from: 0,
        held_to: 0,
        told: None,
        dead: false,
    }
}
