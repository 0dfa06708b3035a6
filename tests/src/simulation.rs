//! The programs of `cache/` and the caches that they are run with, for all who compare simulated events.
//!
//! Each program sets its stack pointer to a place of its own before anything else, so that every address that it uses is the
//! same natively, under the reference and under grind. Its first lines may say
//!
//! ```text
//! widest: 64           (the largest access in bytes, if more than 32: no cache may have smaller lines)
//! oracle: twin         (the reference cannot run it)
//! differs: Bc Bcm      (events that deliberately differ from the reference's; the header says why)
//! ```

use crate::build::Source;
use crate::costs::Costs;
use crate::run::{Job, Outcome};
use crate::tools;

/// The programs of `cache/`, by name.
pub fn programs() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(tools::fixtures("cache"))
        .expect("the folder of programs")
        .map(|e| e.expect("a folder entry").file_name().into_string().expect("a name in ASCII"))
        .filter_map(|n| n.strip_suffix(".s").or(n.strip_suffix(".c")).map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// Size in bytes, associativity, line size in bytes.
pub type Cache = (u64, u64, u64);

/// The caches of one run.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// For code.
    pub i1: Cache,
    /// For data.
    pub d1: Cache,
    /// Behind both.
    pub ll: Cache,
}

/// What programs are run with: usual sizes; small ones with odd lines; direct-mapped ones; the
/// smallest lines that the reference takes on a processor with AVX.
pub const GEOMETRIES: [Geometry; 8] = [
    Geometry { i1: (32768, 8, 64), d1: (32768, 8, 64), ll: (262_144, 8, 64) },
    Geometry { i1: (1024, 2, 32), d1: (2048, 4, 32), ll: (16384, 4, 64) },
    Geometry { i1: (2048, 1, 64), d1: (1024, 1, 128), ll: (32768, 1, 256) },
    Geometry { i1: (512, 2, 32), d1: (1024, 8, 32), ll: (8192, 16, 32) },
    // Odd numbers of ways, and more than walks have code for each of.
    Geometry { i1: (768, 3, 64), d1: (1280, 5, 64), ll: (98304, 3, 64) },
    Geometry { i1: (2560, 20, 64), d1: (3072, 24, 64), ll: (40960, 20, 64) },
    // Three groups of ways (the engine finds the way used longest ago by groups of four).
    Geometry { i1: (3072, 12, 64), d1: (3072, 12, 64), ll: (49152, 12, 64) },
    // More sets than the engine's table has entries.
    Geometry { i1: (32768, 8, 64), d1: (2 << 20, 1, 64), ll: (4 << 20, 1, 64) },
];

impl Geometry {
    /// The smallest line of the three.
    pub fn smallest_line(&self) -> u64 {
        self.i1.2.min(self.d1.2).min(self.ll.2)
    }

    /// The options that say so.
    pub fn options(&self) -> Vec<String> {
        let text = |name, (size, ways, line): Cache| format!("--{name}={size},{ways},{line}");
        vec![text("I1", self.i1), text("D1", self.d1), text("LL", self.ll)]
    }
}

/// The geometries that `source` can be run with.
pub fn geometries(source: &Source) -> Vec<Geometry> {
    let widest: u64 = source.words("widest").first().map_or(32, |w| w.parse().expect("a number of bytes"));
    GEOMETRIES.into_iter().filter(|g| g.smallest_line() >= widest).collect()
}

/// All events, in the order of the file.
pub const EVENTS: [&str; 13] =
    ["Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw", "Bc", "Bcm", "Bi", "Bim"];

/// The events that `source` has in common with the reference.
pub fn common_events(source: &Source) -> Vec<&'static str> {
    let differs = source.words("differs");
    EVENTS.into_iter().filter(|e| !differs.iter().any(|d| d == e)).collect()
}

/// Whether the reference can run it.
pub fn has_reference(source: &Source) -> bool {
    source.words("oracle") != ["twin"]
}

/// Runs `job` under `profiler` with both simulations and this geometry.
///
/// # Panics
/// If the program does not end with 0, or there is not one good profile.
pub fn simulate(profiler: &[String], job: &Job<'_>, geometry: &Geometry) -> (Outcome, Costs) {
    let mut words = profiler.to_vec();
    words.extend(["--cache-sim=yes".into(), "--branch-sim=yes".into()]);
    words.extend(geometry.options());
    let done = job.profiled(&words);
    assert!(done.outcome.status.success(), "under {}: {}\nlog:\n{}", words[0], done.outcome.show(), done.log);
    assert_eq!(done.raw.len(), 1, "one profile is expected; {}\nlog:\n{}", done.outcome.show(), done.log);
    let costs = Costs::parse(&done.raw[0].1).unwrap_or_else(|e| panic!("{e:#}"));
    assert_eq!(costs.events, EVENTS, "the events of the profile");
    (done.outcome, costs)
}

/// The reference, making no branches disappear and keeping every load.
pub fn reference() -> Vec<String> {
    ["valgrind", "--tool=cachegrind", "--vex-guest-chase=no", "--vex-iropt-level=0"].map(str::to_owned).to_vec()
}
