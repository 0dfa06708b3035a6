//! Caches and TLBs of known processors, by name, and where each of their numbers is from.
//!
//! A field that no source gives says so, and is what is simulated without one. Nothing here is found out on the machine that
//! this runs on; [`crate::host`] does that.

use std::fmt;

use crate::beyond::{Inclusion, Levels};
use crate::geometry::Geometry;
use crate::host::Given;
use crate::policy::{Policy, parse_shape};
use crate::prefetch::Prefetch;
use crate::tlb::{Shape, Tlbs};

/// A processor's caches and TLBs.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    /// What it is called here.
    pub name: &'static str,
    /// Which processor it is.
    pub what: &'static str,
    /// I1, D1, L2 and LL, as their options have them, with the source of each.
    caches: [(&'static str, &'static str); 4],
    /// What LL holds of L2, with the source.
    inclusion: (Inclusion, &'static str),
    /// DTLB, ITLB and STLB, as their options have them, with the source of each.
    tlbs: [(&'static str, &'static str); 3],
}

const SKYLAKE: &str = "table of the Core i7-6700K in AnandTech's article on AMD's Zen, 2016";
const UOPS: &str = "uops.info/cache.html, Core i5-1035G1";
const SERVER: &str = "Intel Optimization Reference Manual, Skylake Server microarchitecture";
const ZEN2: &str = "AMD Software Optimization Guide 56305 (family 17h, models 30h and later)";
const ZEN3: &str = "AMD Software Optimization Guide 56665 (family 19h)";
const SKYLAKE_TLBS: &str = "Intel Optimization Reference Manual (248966-045), table 2-15";
const ICELAKE_STLB: &str = "Intel Optimization Reference Manual, Ice Lake Client microarchitecture";
const ICELAKE_TLBS: &str = "Intel Optimization Reference Manual, Ice Lake Client microarchitecture (of reads)";

/// Those of AMD's processors, of which the same is known.
const ZEN_TLBS: [(&str, &str); 3] = [
    ("64,64", "WikiChip, Zen 2: 64 pages, fully associative (Zen 3: assumed to be the same)"),
    ("64,64", "7-cpu.com, Zen 2: 64 pages, fully associative (Zen 3: assumed to be the same)"),
    (
        "2048,16",
        "WikiChip, Zen 2: 2048 pages, of data only (instructions have 512 of their own, which is not simulated); ways: not found, 16 \
         is assumed",
    ),
];

/// All, in the order in which they are listed.
pub const MACHINES: &[Machine] = &[
    Machine {
        name: "skylake",
        what: "Intel Core i7-6700K (Skylake, four cores)",
        caches: [
            ("32768,8,64", SKYLAKE),
            ("32768,8,64", SKYLAKE),
            (
                "262144,4,64,qlru:H00_M1_R2_U1",
                "sizes: as I1; policy: nanoBench's cacheSim.py, measured on Coffee Lake, assumed to be the same",
            ),
            (
                "8388608,16,64,qlru:H11_M1_R0_U0",
                "sizes: as I1; policy: nanoBench's cacheSim.py, measured on Coffee Lake, assumed to be the same",
            ),
        ],
        inclusion: (Inclusion::Inclusive, "Intel Optimization Reference Manual, last level cache of client processors"),
        tlbs: [("64,4", SKYLAKE_TLBS), ("128,8", SKYLAKE_TLBS), ("1536,12", SKYLAKE_TLBS)],
    },
    Machine {
        name: "skylake-server",
        what: "Intel Xeon (Skylake Server, eight cores)",
        caches: [
            ("32768,8,64", SERVER),
            ("32768,8,64", SERVER),
            ("1048576,16,64", "sizes: as I1; policy: not found, lru is assumed"),
            ("11534336,11,64", "sizes: as I1 (1.375 MiB for each of eight cores); policy: not found, lru is assumed"),
        ],
        inclusion: (Inclusion::None, "the same manual: not inclusive"),
        tlbs: [("64,4", SKYLAKE_TLBS), ("128,8", SKYLAKE_TLBS), ("1536,12", SKYLAKE_TLBS)],
    },
    Machine {
        name: "icelake",
        what: "Intel Core i5-1035G1 (Ice Lake, four cores)",
        caches: [
            ("32768,8,64", "Intel Optimization Reference Manual, Ice Lake Client microarchitecture"),
            ("49152,12,64", UOPS),
            ("524288,8,64,qlru:H00_M1_R0_U1", UOPS),
            (
                "6291456,12,64,qlru:H00_M1_R0_U1",
                "uops.info/cache.html, Core i5-1035G1: the policy of the sets that always have the same; the others adapt",
            ),
        ],
        inclusion: (Inclusion::None, "not found, none is assumed"),
        tlbs: [("64,4", ICELAKE_TLBS), ("128,8", "not found, Skylake's is assumed"), ("2048,16", ICELAKE_STLB)],
    },
    Machine {
        name: "zen2",
        what: "AMD Zen 2 (one complex of four cores)",
        caches: [
            ("32768,8,64", ZEN2),
            ("32768,8,64", ZEN2),
            ("524288,8,64", "sizes: as I1; policy: not found, lru is assumed"),
            ("16777216,16,64", "sizes: as I1; policy: not found, lru is assumed"),
        ],
        inclusion: (
            Inclusion::Exclusive,
            "the same guide: LL is filled with what leaves L2, and is mostly exclusive of it",
        ),
        tlbs: ZEN_TLBS,
    },
    Machine {
        name: "zen3",
        what: "AMD Zen 3 (one complex of eight cores)",
        caches: [
            ("32768,8,64", ZEN3),
            ("32768,8,64", ZEN3),
            ("524288,8,64", "sizes: as I1; policy: not found, lru is assumed"),
            ("33554432,16,64", "sizes: as I1; policy: not found, lru is assumed"),
        ],
        inclusion: (
            Inclusion::Exclusive,
            "the same guide: LL is filled with what leaves L2, and is mostly exclusive of it",
        ),
        tlbs: ZEN_TLBS,
    },
];

impl Machine {
    /// That of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        MACHINES.iter().find(|machine| machine.name == name)
    }

    fn cache(&self, at: usize) -> (Geometry, Policy) {
        // A test parses them all.
        parse_shape(self.caches[at].0).expect("a machine's caches are well-formed")
    }

    /// First levels and last level, as if the user had asked for them.
    #[must_use]
    pub fn given(&self) -> Given {
        Given { i1: Some(self.cache(0).0), d1: Some(self.cache(1).0), ll: Some(self.cache(3).0) }
    }

    /// The TLBs.
    #[must_use]
    pub fn tlbs(&self) -> Tlbs {
        // A test parses them all.
        let of = |at: usize| Shape::parse(self.tlbs[at].0).expect("a machine's TLBs are well-formed");
        Tlbs { data: of(0), code: of(1), second: Some(of(2)) }
    }

    /// The levels beyond the first. How it loads what has not been asked for is not said here: there is no prefetcher.
    #[must_use]
    pub fn levels(&self) -> Levels {
        let (second, last) = (Some(self.cache(2)), self.cache(3));
        Levels { second, last, inclusion: self.inclusion.0, prefetch: Prefetch::None }
    }
}

impl fmt::Display for Machine {
    /// Its name, and a line for each field with its source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.what)?;
        for (name, (value, source)) in ["--I1", "--D1", "--L2", "--LL"].into_iter().zip(self.caches) {
            write!(f, "\n    {name}={value}\n        {source}")?;
            if name == "--I1" || name == "--D1" {
                f.write_str(" (its policy is not simulated: lru)")?;
            }
        }
        write!(f, "\n    --inclusion={}\n        {}", self.inclusion.0, self.inclusion.1)?;
        for (name, (value, source)) in ["--DTLB", "--ITLB", "--STLB"].into_iter().zip(self.tlbs) {
            write!(f, "\n    {name}={value}\n        {source}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_machines_can_be_simulated_and_give_their_sources() {
        let mut names = HashSet::new();
        for machine in MACHINES {
            assert!(names.insert(machine.name) && machine.name != "help");
            assert_eq!(Machine::by_name(machine.name), Some(machine));
            let (given, levels) = (machine.given(), machine.levels());
            assert_eq!(levels.check(), Ok(()));
            assert_eq!(given.ll, Some(levels.last.0));
            let sources = machine.caches.iter().map(|(_, source)| *source).chain([machine.inclusion.1]);
            let sources = sources.chain(machine.tlbs.iter().map(|(_, source)| *source));
            assert!(machine.tlbs().second.is_some());
            assert!(sources.into_iter().all(|source| source.len() > 10));
            let shown = machine.to_string();
            assert_eq!(shown.lines().count(), 17, "{shown}");
        }
        assert_eq!(Machine::by_name("help"), None);
    }
}
