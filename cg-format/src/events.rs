//! The events that a profile can count: their names, their meaning, and the order in which a file lists them.
//!
//! This is the only list. A tool that counts asks for one of the sets below and writes counts in that order; a reader
//! accepts any names, since users merge files of other tools, and uses the list only to explain names.

/// The most events that a profile may list: each row has a count for each, however short it is written.
pub const MOST_EVENTS: usize = 256;

/// One kind of event, by the name that profiles and options use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name in `events:` lines and in options such as `--show`.
    pub name: &'static str,
    /// What one unit of the count is, in a few words.
    pub meaning: &'static str,
}

macro_rules! events {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $meaning:literal;)*) => {
        $($(#[$doc])* pub const $id: Event = Event { name: $name, meaning: $meaning };)*
        /// Every event known here, each once.
        pub const ALL: &[Event] = &[$($id),*];
    };
}

events! {
    /// Instructions executed.
    IR = "Ir", "instructions executed";
    /// First-level instruction cache misses.
    I1MR = "I1mr", "first-level instruction cache misses";
    /// Second-level cache misses of instruction fetches.
    I2MR = "I2mr", "second-level cache misses of instruction fetches";
    /// Last-level cache misses of instruction fetches.
    ILMR = "ILmr", "last-level cache misses of instruction fetches";
    /// Data reads.
    DR = "Dr", "data reads";
    /// First-level data cache misses of reads.
    D1MR = "D1mr", "first-level data cache misses of reads";
    /// Second-level cache misses of data reads.
    D2MR = "D2mr", "second-level cache misses of data reads";
    /// Last-level cache misses of data reads.
    DLMR = "DLmr", "last-level cache misses of data reads";
    /// Data writes.
    DW = "Dw", "data writes";
    /// First-level data cache misses of writes.
    D1MW = "D1mw", "first-level data cache misses of writes";
    /// Second-level cache misses of data writes.
    D2MW = "D2mw", "second-level cache misses of data writes";
    /// Last-level cache misses of data writes.
    DLMW = "DLmw", "last-level cache misses of data writes";
    /// Conditional branches executed.
    BC = "Bc", "conditional branches executed";
    /// Conditional branches mispredicted.
    BCM = "Bcm", "conditional branches mispredicted";
    /// Indirect branches executed.
    BI = "Bi", "indirect branches executed";
    /// Indirect branches mispredicted.
    BIM = "Bim", "indirect branches mispredicted";
    /// First-level TLB misses of data reads.
    DT1MR = "DT1mr", "first-level TLB misses of data reads";
    /// First-level TLB misses of data writes.
    DT1MW = "DT1mw", "first-level TLB misses of data writes";
    /// First-level TLB misses of instruction fetches.
    IT1MR = "IT1mr", "first-level TLB misses of instruction fetches";
    /// Second-level TLB misses of data reads.
    DT2MR = "DT2mr", "second-level TLB misses of data reads";
    /// Second-level TLB misses of data writes.
    DT2MW = "DT2mw", "second-level TLB misses of data writes";
    /// Second-level TLB misses of instruction fetches.
    IT2MR = "IT2mr", "second-level TLB misses of instruction fetches";
    /// Dirty last-level lines evicted by instruction fetches.
    ILDMR = "ILdmr", "dirty last-level lines evicted by instruction fetches";
    /// Dirty last-level lines evicted by data reads.
    DLDMR = "DLdmr", "dirty last-level lines evicted by data reads";
    /// Dirty last-level lines evicted by data writes.
    DLDMW = "DLdmw", "dirty last-level lines evicted by data writes";
    /// Temporal locality cost of first-level lines.
    AC_COST1 = "AcCost1", "temporal locality cost of first-level lines";
    /// Spatial loss of first-level lines.
    SP_LOSS1 = "SpLoss1", "bytes never used of evicted first-level lines";
    /// Temporal locality cost of last-level lines.
    AC_COST2 = "AcCost2", "temporal locality cost of last-level lines";
    /// Spatial loss of last-level lines.
    SP_LOSS2 = "SpLoss2", "bytes never used of evicted last-level lines";
    /// Global bus events.
    GE = "Ge", "global bus events (locked instructions)";
    /// Old lines hit in the first level.
    OC_D1 = "OcD1", "first-level data cache hits on lines of before the last change of context";
    /// Old lines hit in the second level.
    OC_L2 = "OcL2", "second-level cache hits on lines of before the last change of context";
    /// Old lines hit in the last level.
    OC_LL = "OcLL", "last-level cache hits on lines of before the last change of context";
    /// Calls of memory allocation.
    ALLOC_COUNT = "allocCount", "calls of memory allocation";
    /// Bytes allocated.
    ALLOC_SIZE = "allocSize", "bytes allocated";
    /// System calls.
    SYS_COUNT = "sysCount", "system calls";
    /// Time spent in system calls.
    SYS_TIME = "sysTime", "elapsed time in system calls";
    /// Estimated cycles by reciprocal throughput.
    CT = "Ct", "estimated cycles by reciprocal throughput of each instruction, in hundredths";
    /// Estimated cycles by latency.
    CL = "Cl", "estimated cycles by latency of each instruction, in hundredths";
    /// Estimated cycles of blocks.
    CB = "Cb", "estimated cycles by what bounds each block (ports, front end), in hundredths";
    /// Processor time spent in system calls.
    SYS_CPU_TIME = "sysCpuTime", "processor time in system calls";
}

/// The event called `name`, if it is one of [`ALL`].
#[must_use]
pub fn by_name(name: &str) -> Option<Event> {
    ALL.iter().copied().find(|event| event.name == name)
}

/// Which caches are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caches {
    /// None.
    #[default]
    None,
    /// First levels and a last one.
    Two,
    /// A second level between them, too.
    Three,
}

impl Caches {
    /// Whether there are any.
    #[must_use]
    pub fn any(self) -> bool {
        self != Self::None
    }
}

/// Which translation lookaside buffers are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tlbs {
    /// None.
    #[default]
    None,
    /// First levels.
    One,
    /// A second level behind them, too.
    Two,
}

/// The events of TLBs, in their order in a profile: behind those of caches and branches.
#[must_use]
pub fn tlbs(tlbs: Tlbs) -> &'static [Event] {
    let all: &[Event] = &[DT1MR, DT1MW, IT1MR, DT2MR, DT2MW, IT2MR];
    match tlbs {
        Tlbs::None => &[],
        Tlbs::One => &all[..3],
        Tlbs::Two => all,
    }
}

/// The events of a cachegrind profile, in the order of its `events:` line.
#[must_use]
pub fn cachegrind(caches: Caches, branch_sim: bool) -> Vec<Event> {
    let mut events = vec![IR];
    match caches {
        Caches::None => {}
        Caches::Two => events.extend([I1MR, ILMR, DR, D1MR, DLMR, DW, D1MW, DLMW]),
        Caches::Three => events.extend([I1MR, I2MR, ILMR, DR, D1MR, D2MR, DLMR, DW, D1MW, D2MW, DLMW]),
    }
    if branch_sim {
        events.extend([BC, BCM, BI, BIM]);
    }
    events
}

/// The events of a callgrind profile, in the order of its `events:` line, which is not cachegrind's.
///
/// The simulations beyond these add their events at the end, in the order of [`ALL`].
#[must_use]
pub fn callgrind(caches: Caches, branch_sim: bool) -> Vec<Event> {
    let mut events = vec![IR];
    match caches {
        Caches::None => {}
        Caches::Two => events.extend([DR, DW, I1MR, D1MR, D1MW, ILMR, DLMR, DLMW]),
        Caches::Three => events.extend([DR, DW, I1MR, D1MR, D1MW, I2MR, D2MR, D2MW, ILMR, DLMR, DLMW]),
    }
    if branch_sim {
        events.extend([BC, BCM, BI, BIM]);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, event) in ALL.iter().enumerate() {
            assert!(ALL[..i].iter().all(|other| other.name != event.name), "{} is listed twice", event.name);
            assert_eq!(by_name(event.name), Some(*event));
        }
        assert_eq!(by_name("ir"), None);
    }

    #[test]
    fn sets_have_the_order_of_the_files() {
        let names = |events: Vec<Event>| events.iter().map(|e| e.name).collect::<Vec<_>>().join(" ");
        assert_eq!(names(cachegrind(Caches::None, false)), "Ir");
        let three = "Ir I1mr I2mr ILmr Dr D1mr D2mr DLmr Dw D1mw D2mw DLmw";
        assert_eq!(names(cachegrind(Caches::Three, false)), three);
        let three = "Ir Dr Dw I1mr D1mr D1mw I2mr D2mr D2mw ILmr DLmr DLmw Bc Bcm Bi Bim";
        assert_eq!(names(callgrind(Caches::Three, true)), three);
        assert_eq!(names(tlbs(Tlbs::Two).to_vec()), "DT1mr DT1mw IT1mr DT2mr DT2mw IT2mr");
        assert_eq!(names(tlbs(Tlbs::One).to_vec()), "DT1mr DT1mw IT1mr");
        assert_eq!(names(tlbs(Tlbs::None).to_vec()), "");
        assert_eq!(names(cachegrind(Caches::Two, true)), "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim");
        assert_eq!(names(callgrind(Caches::Two, true)), "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim");
    }
}
