//! Which events a run counts, in the order of its `events:` line, which is not cachegrind's.

use super::model::EventType;
use crate::events::{self, Caches, Event};

/// What a run counts beside instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSet {
    /// Accesses and misses of the simulated caches.
    pub caches: Caches,
    /// Dirty lines that misses evict; only with two levels of caches.
    pub write_back: bool,
    /// Branches and their mispredictions.
    pub branch_sim: bool,
    /// How well cache lines are used; only with two levels of caches.
    pub cache_use: bool,
    /// Locked instructions.
    pub bus: bool,
    /// Calls of allocators, and the bytes that they were asked for.
    pub allocations: bool,
    /// System calls and the time in them.
    pub system_calls: Option<SystemTime>,
    /// Estimated cycles.
    pub cycles: bool,
}

/// The unit of the time in system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemTime {
    /// Milliseconds of elapsed time.
    Milliseconds,
    /// Microseconds of elapsed time.
    Microseconds,
    /// Nanoseconds of elapsed time, and of processor time as an event of its own.
    Nanoseconds,
}

impl EventSet {
    /// The events, in the order of the file.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let mut list = events::callgrind(self.caches, false);
        if self.caches == Caches::Two && self.write_back {
            list.extend([events::ILDMR, events::DLDMR, events::DLDMW]);
        }
        if self.branch_sim {
            list.extend([events::BC, events::BCM, events::BI, events::BIM]);
        }
        if self.caches == Caches::Two && self.cache_use {
            list.extend([events::AC_COST1, events::SP_LOSS1, events::AC_COST2, events::SP_LOSS2]);
        }
        if self.bus {
            list.push(events::GE);
        }
        if self.allocations {
            list.extend([events::ALLOC_COUNT, events::ALLOC_SIZE]);
        }
        if let Some(unit) = self.system_calls {
            list.extend([events::SYS_COUNT, events::SYS_TIME]);
            if unit == SystemTime::Nanoseconds {
                list.push(events::SYS_CPU_TIME);
            }
        }
        if self.cycles {
            list.extend([events::CT, events::CL, events::CB]);
        }
        list
    }

    /// The names of [`EventSet::events`].
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.events().iter().map(|event| event.name.to_owned()).collect()
    }

    /// The `event:` lines that say what a unit of the events is.
    #[must_use]
    pub fn types(&self) -> Vec<EventType> {
        let event = |event: Event, unit: &str| EventType {
            name: event.name.as_bytes().to_vec(),
            meaning: format!("{} ({unit})", event.name).into_bytes(),
        };
        match self.system_calls {
            None => Vec::new(),
            Some(SystemTime::Milliseconds) => vec![event(events::SYS_TIME, "elapsed ms")],
            Some(SystemTime::Microseconds) => vec![event(events::SYS_TIME, "elapsed us")],
            Some(SystemTime::Nanoseconds) => {
                vec![event(events::SYS_TIME, "elapsed ns"), event(events::SYS_CPU_TIME, "system cpu ns")]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_events_have_the_order_of_the_file() {
        let all = EventSet {
            caches: Caches::Two,
            write_back: true,
            branch_sim: true,
            cache_use: true,
            bus: true,
            allocations: true,
            system_calls: Some(SystemTime::Nanoseconds),
            cycles: true,
        };
        assert_eq!(
            all.names().join(" "),
            "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw ILdmr DLdmr DLdmw Bc Bcm Bi Bim AcCost1 SpLoss1 AcCost2 SpLoss2 Ge \
             allocCount allocSize sysCount sysTime sysCpuTime Ct Cl Cb"
        );
        assert_eq!(all.types().len(), 2);
        let some = EventSet { write_back: true, bus: true, ..EventSet::default() };
        assert_eq!(some.names().join(" "), "Ir Ge");
        let branches = EventSet { branch_sim: true, ..EventSet::default() };
        assert_eq!(branches.events(), events::callgrind(Caches::None, true));
    }
}
