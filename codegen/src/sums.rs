//! What a piece of code executes, known when it is emitted, in the kinds that a thread's totals have. It knows nothing of where
//! that is counted.

use grind_isa::decode::{Class, Insn};
use grind_trace::follow::TOTALS;

use grind_types::StaticEvents;

/// What has been executed, as a thread's totals are.
pub(super) type Sums = [u32; TOTALS];

/// Adds one execution of an instruction; `bus` has the locked ones ([`grind_trace::follow::bus_total`]).
pub(super) fn add_execution(sums: &mut Sums, insn: &Insn, facts: StaticEvents, bus: Option<usize>) {
    let locked = bus.map(|at| (at, sums[at] + u32::from(facts.bus)));
    sums[0] += u32::from(insn.class != Class::RepCompare);
    sums[1] += u32::from(facts.reads);
    sums[2] += u32::from(facts.writes) + u32::from(facts.modifies);
    sums[3] += u32::from(facts.conditional);
    sums[4] += u32::from(facts.indirect);
    locked.into_iter().for_each(|(at, n)| sums[at] = n);
}
