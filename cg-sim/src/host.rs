//! The caches of the processor that this runs on, as far as CPUID tells.
//!
//! [`detect`] finds them, [`configure`] makes of them, and of what the user asked for, shapes that can be simulated. CPUID
//! is a parameter, so that other processors can be tried. Nothing here fails: what cannot be found out is replaced by
//! [`FALLBACK`], with a note for the user.
//!
//! Sources: Intel SDM volume 2A, CPUID leaves 2 and 4; AMD APM volume 3, leaves 8000_0005, 8000_0006 and 8000_001D.

use std::fmt;

use crate::geometry::{Defect, Geometries, Geometry};

/// CPUID: from leaf and subleaf to eax, ebx, ecx, edx.
pub type Cpuid<'a> = &'a dyn Fn(u32, u32) -> [u32; 4];

/// CPUID of the processor that this runs on.
#[must_use]
pub fn cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    let r = std::arch::x86_64::__cpuid_count(leaf, subleaf);
    [r.eax, r.ebx, r.ecx, r.edx]
}

/// The shape of a cache as CPUID tells it; whether it can be simulated is another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Bytes.
    pub size: u32,
    /// Lines a set.
    pub assoc: u32,
    /// Bytes a line.
    pub line: u32,
}

/// What is simulated where the caches are not known: first levels and last level.
pub const FALLBACK: [Found; 3] = [
    Found { size: 65536, assoc: 2, line: 64 },
    Found { size: 65536, assoc: 2, line: 64 },
    Found { size: 262_144, assoc: 8, line: 64 },
];

/// Something the user should know of how the caches were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// There are first-level caches only.
    NoLastLevel,
    /// The last level is this one, beyond the second.
    Level(u32),
    /// The instruction cache holds so many thousand micro-operations; how many bytes is a guess.
    TraceCache {
        /// Its size in micro-operations / 1024.
        found: u32,
        /// The size that is simulated, in bytes.
        simulated: u32,
    },
    /// Nothing was found: [`FALLBACK`] is used.
    Fallback,
    /// The last level was changed so that it can be simulated.
    Adjusted {
        /// What there is.
        from: Found,
        /// What is simulated.
        to: Found,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLastLevel => f.write_str("warning: L2 cache not installed, ignore LL results."),
            Self::Level(n) => write!(f, "warning: L{n} cache found, using its data for the LL simulation."),
            Self::TraceCache { found, simulated } => write!(
                f,
                "warning: Pentium 4 with {found} KB micro-op instruction trace cache\n\
                 \x20        Simulating a {} KB I-cache with 32 B lines",
                simulated / 1024
            ),
            Self::Fallback => {
                f.write_str("Warning: Cannot auto-detect cache config, using defaults.\n         Run with -v to see.")
            }
            Self::Adjusted { from, to } => {
                let line = |f: &mut fmt::Formatter<'_>, word: &str, cache: &Found| {
                    let Found { size, assoc, line } = cache;
                    let size = with_commas(*size);
                    write!(f, "warning: {word} LL cache: line_size {line}  assoc {assoc}  total_size {size}")
                };
                line(f, "specified", from)?;
                f.write_str("\n")?;
                line(f, "simulated", to)
            }
        }
    }
}

/// A cache of this processor has a shape that cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// `I1`, `D1` or `LL`.
    pub name: &'static str,
    /// Its shape.
    pub found: Found,
    /// Which rule it breaks.
    pub defect: Defect,
    /// Whether the user gave another shape, so that it does not matter.
    pub replaced: bool,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, found: Found { size, assoc, line }, defect, replaced } = self;
        write!(f, "Auto-detected {name} cache configuration not supported: {defect}")?;
        write!(f, "\n  {name}: {} B, {assoc}-way, {line} B lines", with_commas(*size))?;
        if !replaced {
            write!(f, "\nBypass this message by using option --{name}=...")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unsupported {}

/// The caches to simulate, and what the user should be told of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The shapes.
    pub geometries: Geometries,
    /// Notes, in the order in which they are to be shown.
    pub notes: Vec<Note>,
    /// Caches that cannot be simulated but were replaced by the user.
    pub replaced: Vec<Unsupported>,
}

/// What the user asked for, where he did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The first-level instruction cache.
    pub i1: Option<Geometry>,
    /// The first-level data cache.
    pub d1: Option<Geometry>,
    /// The last-level cache.
    pub ll: Option<Geometry>,
}

/// The caches to simulate: those `given`, and for the others those of the processor.
///
/// # Errors
/// When a first-level cache of the processor cannot be simulated and is not given.
pub fn configure(given: Given, cpuid: Cpuid<'_>) -> Result<Configuration, Unsupported> {
    let (found, mut notes) = detect(cpuid);
    let all_given = given.i1.is_some() && given.d1.is_some() && given.ll.is_some();
    let [i1, d1, mut ll] = found.unwrap_or_else(|| {
        if !all_given {
            notes.push(Note::Fallback);
        }
        FALLBACK
    });
    if let Some(to) = adjusted(ll) {
        notes.push(Note::Adjusted { from: ll, to });
        ll = to;
    }
    let mut replaced = Vec::new();
    let mut choose = |name, found: Found, given: Option<Geometry>| {
        let signed = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        match Geometry::new(signed(found.size), signed(found.assoc), signed(found.line)) {
            Ok(geometry) => Ok(given.unwrap_or(geometry)),
            Err(defect) => {
                let unsupported = Unsupported { name, found, defect, replaced: given.is_some() };
                let geometry = given.ok_or(unsupported)?;
                replaced.push(unsupported);
                Ok(geometry)
            }
        }
    };
    let geometries = Geometries {
        i1: choose("I1", i1, given.i1)?,
        d1: choose("D1", d1, given.d1)?,
        ll: choose("LL", ll, given.ll)?,
    };
    Ok(Configuration { geometries, notes, replaced })
}

/// A last level of nearly the same size whose number of sets is a power of two, if that of `cache` is not.
///
/// The sets become fewer, down to a power of two, and the lines a set more.
fn adjusted(cache: Found) -> Option<Found> {
    let Found { size, assoc, line } = cache;
    let set = assoc.checked_mul(line).filter(|n| *n > 0)?;
    let sets = size / set;
    if sets == 0 {
        return None;
    }
    let fewer = 1 << sets.ilog2();
    // Rounded: assoc * sets / fewer + 1/2.
    let more = u32::try_from((2 * u64::from(assoc) * u64::from(sets) + fewer) / (2 * fewer)).ok()?;
    let to = Found { size: u32::try_from(u64::from(line) * u64::from(more) * fewer).ok()?, assoc: more, line };
    (to != cache).then_some(to)
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Code,
    /// Thousands of micro-operations instead of bytes.
    Trace,
    Both,
}

#[derive(Clone, Copy, Debug)]
struct Cache {
    kind: Kind,
    level: u32,
    shape: Found,
}

/// The first-level instruction cache, the data cache and the last level of the processor; and what is odd about them.
#[must_use]
pub fn detect(cpuid: Cpuid<'_>) -> (Option<[Found; 3]>, Vec<Note>) {
    let mut notes = Vec::new();
    let [max, b, c, d] = cpuid(0, 0);
    let vendor: Vec<u8> = [b, d, c].iter().flat_map(|r| r.to_le_bytes()).collect();
    let caches = match vendor.as_slice() {
        b"GenuineIntel" => intel(cpuid, max),
        b"AuthenticAMD" | b"HygonGenuine" => amd(cpuid, false),
        b"CentaurHauls" => amd(cpuid, true),
        _ => Vec::new(),
    };
    let levels = caches.iter().map(|c| c.level).max().unwrap_or_default();
    let find = |level, kinds: &[Kind]| caches.iter().find(|c| c.level == level && kinds.contains(&c.kind));
    let last = find(levels, &[Kind::Both]);
    if !caches.is_empty() && last.is_none() {
        notes.push(Note::NoLastLevel);
    }
    if last.is_some() && levels > 2 {
        notes.push(Note::Level(levels));
    }
    let (Some(code), Some(data), Some(last)) = (find(1, &[Kind::Code, Kind::Trace]), find(1, &[Kind::Data]), last)
    else {
        return (None, notes);
    };
    let mut i1 = code.shape;
    if code.kind == Kind::Trace {
        let found = i1.size / 1024;
        let size = if found <= 16 { 16 * 1024 } else { 32 * 1024 };
        notes.push(Note::TraceCache { found, simulated: size });
        i1 = Found { size, line: 32, ..i1 };
    }
    (Some([i1, data.shape, last.shape]), notes)
}

fn intel(cpuid: Cpuid<'_>, max: u32) -> Vec<Cache> {
    if max < 2 {
        return Vec::new();
    }
    let mut caches = Vec::new();
    let mut times = 1;
    let mut time = 0;
    while time < times {
        let mut registers = cpuid(2, 0);
        if time == 0 {
            // The lowest byte is no descriptor but how often to ask. No processor says more than once.
            times = (registers[0] & 0xff).min(16);
            if times == 0 {
                break;
            }
        }
        registers[0] &= !0xff;
        for descriptor in registers.iter().filter(|r| **r >> 31 == 0).flat_map(|r| r.to_le_bytes()) {
            if descriptor == 0xff {
                // "Ask leaf 4."
                return enumerate(cpuid, 4);
            }
            caches.extend(INTEL.iter().find(|(number, ..)| *number == descriptor).map(
                |&(_, level, kind, kib, assoc, line)| {
                    // Family 15, model 6 uses one of the numbers for its third level.
                    let level = if descriptor == 0x49 && family_and_model(cpuid) == (15, 6) { 3 } else { level };
                    Cache { kind, level, shape: Found { size: kib * 1024, assoc, line } }
                },
            ));
        }
        time += 1;
    }
    caches
}

fn family_and_model(cpuid: Cpuid<'_>) -> (u32, u32) {
    let signature = cpuid(1, 0)[0];
    let family = signature >> 8 & 15;
    let model = signature >> 4 & 15;
    match family {
        15 => (15 + (signature >> 20 & 0xff), model | signature >> 12 & 0xf0),
        _ => (family, model | if family == 6 { signature >> 12 & 0xf0 } else { 0 }),
    }
}

/// What the leaves say that describe one cache a subleaf: Intel's 4, AMD's 8000_001D.
fn enumerate(cpuid: Cpuid<'_>, leaf: u32) -> Vec<Cache> {
    let mut caches = Vec::new();
    // More than any processor has: a faulty hypervisor must not keep us here.
    for subleaf in 0..32 {
        let [a, b, c, _] = cpuid(leaf, subleaf);
        let kind = match a & 31 {
            0 => break,
            1 => Kind::Data,
            2 => Kind::Code,
            3 => Kind::Both,
            _ => continue,
        };
        let (assoc, parts, line) = ((b >> 22) + 1, (b >> 12 & 0x3ff) + 1, (b & 0xfff) + 1);
        let size = u64::from(assoc) * u64::from(parts) * u64::from(line) * (u64::from(c) + 1);
        // Whole KiB only.
        let size = u32::try_from(size / 1024 * 1024).unwrap_or_default();
        caches.push(Cache { kind, level: a >> 5 & 7, shape: Found { size, assoc, line } });
    }
    caches
}

fn amd(cpuid: Cpuid<'_>, centaur: bool) -> Vec<Cache> {
    let max = cpuid(0x8000_0000, 0)[0];
    if max < 0x8000_0006 {
        return Vec::new();
    }
    let [_, _, d1, i1] = cpuid(0x8000_0005, 0);
    let first = |kind, r: u32| {
        let (size, line) = ((r >> 24) * 1024, r & 0xff);
        // All ones: one set.
        let assoc = match r >> 16 & 0xff {
            0xff => size.checked_div(line).unwrap_or_default(),
            n => n,
        };
        Cache { kind, level: 1, shape: Found { size, assoc, line } }
    };
    let mut caches = vec![first(Kind::Code, i1), first(Kind::Data, d1)];
    let [_, _, l2, l3] = cpuid(0x8000_0006, 0);
    let (l2_size, l3_size) = ((l2 >> 16) * 1024, (l3 >> 18).saturating_mul(512 * 1024));
    for (level, size, register) in [(2, l2_size, l2), (3, l3_size, l3)] {
        if size == 0 {
            continue;
        }
        let line = register & 0xff;
        let plain = match register >> 12 & 15 {
            1 => 1,
            2 => 2,
            4 => 4,
            6 => 8,
            8 => 16,
            10 => 32,
            11 => 48,
            12 => 64,
            13 => 96,
            14 => 128,
            15 => size.checked_div(line).unwrap_or(1),
            // 9 means: ask leaf 8000_001D.
            _ => 1,
        };
        let mut shape = Found { size, assoc: plain, line };
        if centaur && level == 2 {
            shape = Found { size, assoc: 16, line: 64 };
        } else if register >> 12 & 15 == 9 && max >= 0x8000_001d {
            let caches = enumerate(cpuid, 0x8000_001d);
            if let Some(cache) = caches.iter().find(|c| c.level == level && c.kind == Kind::Both && c.shape.size > 0) {
                shape = cache.shape;
            }
        }
        caches.push(Cache { kind: Kind::Both, level, shape });
    }
    caches
}

/// `1,234,567`
fn with_commas(number: u32) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Descriptors of leaf 2: number, level, kind, size in KiB, lines a set, bytes a line.
#[rustfmt::skip]
const INTEL: &[(u8, u32, Kind, u32, u32, u32)] = {
    use Kind::{Both, Code, Data, Trace};
    &[
        (0x06, 1, Code, 8, 4, 32), (0x08, 1, Code, 16, 4, 32), (0x09, 1, Code, 32, 4, 64), (0x30, 1, Code, 32, 8, 64),
        (0x0a, 1, Data, 8, 2, 32), (0x0c, 1, Data, 16, 4, 32), (0x0d, 1, Data, 16, 4, 64), (0x0e, 1, Data, 24, 6, 64),
        (0x2c, 1, Data, 32, 8, 64), (0x60, 1, Data, 16, 8, 64), (0x66, 1, Data, 8, 4, 64), (0x67, 1, Data, 16, 4, 64),
        (0x68, 1, Data, 32, 4, 64),
        (0x70, 1, Trace, 12, 8, 1), (0x71, 1, Trace, 16, 8, 1), (0x72, 1, Trace, 32, 8, 1), (0x73, 1, Trace, 64, 8, 1),
        (0x1d, 2, Both, 128, 2, 64), (0x21, 2, Both, 256, 8, 64), (0x24, 2, Both, 1024, 16, 64),
        (0x39, 2, Both, 128, 4, 64), (0x3a, 2, Both, 192, 6, 64), (0x3b, 2, Both, 128, 2, 64),
        (0x3c, 2, Both, 256, 4, 64), (0x3d, 2, Both, 384, 6, 64), (0x3e, 2, Both, 512, 4, 64),
        (0x41, 2, Both, 128, 4, 32), (0x42, 2, Both, 256, 4, 32), (0x43, 2, Both, 512, 4, 32),
        (0x44, 2, Both, 1024, 4, 32), (0x45, 2, Both, 2048, 4, 32), (0x48, 2, Both, 3072, 12, 64),
        (0x49, 2, Both, 4096, 16, 64), (0x4e, 2, Both, 6144, 24, 64),
        (0x78, 2, Both, 1024, 4, 64), (0x79, 2, Both, 128, 8, 64), (0x7a, 2, Both, 256, 8, 64),
        (0x7b, 2, Both, 512, 8, 64), (0x7c, 2, Both, 1024, 8, 64), (0x7d, 2, Both, 2048, 8, 64),
        (0x7f, 2, Both, 512, 2, 64), (0x80, 2, Both, 512, 8, 64), (0x82, 2, Both, 256, 8, 32),
        (0x83, 2, Both, 512, 8, 32), (0x84, 2, Both, 1024, 8, 32), (0x85, 2, Both, 2048, 8, 32),
        (0x86, 2, Both, 512, 4, 64), (0x87, 2, Both, 1024, 8, 64),
        (0x22, 3, Both, 512, 4, 64), (0x23, 3, Both, 1024, 8, 64), (0x25, 3, Both, 2048, 8, 64),
        (0x29, 3, Both, 4096, 8, 64), (0x46, 3, Both, 4096, 4, 64), (0x47, 3, Both, 8192, 8, 64),
        (0x4a, 3, Both, 6144, 12, 64), (0x4b, 3, Both, 8192, 16, 64), (0x4c, 3, Both, 12288, 12, 64),
        (0x4d, 3, Both, 16384, 16, 64), (0xd0, 3, Both, 512, 4, 64), (0xd1, 3, Both, 1024, 4, 64),
        (0xd2, 3, Both, 2048, 4, 64), (0xd6, 3, Both, 1024, 8, 64), (0xd7, 3, Both, 2048, 8, 64),
        (0xd8, 3, Both, 4096, 8, 64), (0xdc, 3, Both, 1536, 12, 64), (0xdd, 3, Both, 3072, 12, 64),
        (0xde, 3, Both, 6144, 12, 64), (0xe2, 3, Both, 2048, 16, 64), (0xe3, 3, Both, 4096, 16, 64),
        (0xe4, 3, Both, 8192, 16, 64), (0xea, 3, Both, 12288, 24, 64), (0xeb, 3, Both, 18432, 24, 64),
        (0xec, 3, Both, 24576, 24, 64),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor described by some leaves; all others are zero.
    fn machine(vendor: &[u8; 12], leaves: &[(u32, u32, [u32; 4])]) -> impl Fn(u32, u32) -> [u32; 4] + use<> {
        let word = |at: usize| u32::from_le_bytes([vendor[at], vendor[at + 1], vendor[at + 2], vendor[at + 3]]);
        let first = [13, word(0), word(8), word(4)];
        let leaves = leaves.to_vec();
        move |leaf, subleaf| match leaf {
            0 => first,
            _ => leaves.iter().find(|(l, s, _)| (*l, *s) == (leaf, subleaf)).map(|(.., r)| *r).unwrap_or_default(),
        }
    }

    fn shapes(configuration: &Configuration) -> String {
        let Geometries { i1, d1, ll } = configuration.geometries;
        format!("{i1}; {d1}; {ll}")
    }

    fn notes(configuration: &Configuration) -> String {
        configuration.notes.iter().map(Note::to_string).collect::<Vec<_>>().join("\n")
    }

    /// Leaf 4 of a server whose last level has 15 ways.
    const SERVER: &[(u32, u32, [u32; 4])] = &[
        (2, 0, [0x00fe_ff01, 0xf0, 0, 0]),
        (4, 0, [0x21, 0x02c0_003f, 63, 0]),
        (4, 1, [0x22, 0x01c0_003f, 63, 0]),
        (4, 2, [0x43, 0x03c0_003f, 2047, 0]),
        (4, 3, [0x63, 0x0380_003f, 114_687, 0]),
    ];

    #[test]
    fn leaf_4_is_enumerated() {
        let cpuid = machine(b"GenuineIntel", SERVER);
        let c = configure(Given::default(), &cpuid).unwrap();
        assert_eq!(
            shapes(&c),
            "32768 B, 64 B, 8-way associative; 49152 B, 64 B, 12-way associative; 109051904 B, 64 B, 26-way associative"
        );
        assert_eq!(
            notes(&c),
            "warning: L3 cache found, using its data for the LL simulation.\n\
             warning: specified LL cache: line_size 64  assoc 15  total_size 110,100,480\n\
             warning: simulated LL cache: line_size 64  assoc 26  total_size 109,051,904"
        );
    }

    #[test]
    fn what_is_given_comes_first() {
        let cpuid = machine(b"GenuineIntel", SERVER);
        let given = Given {
            d1: Some(Geometry::new(1024, 2, 32).unwrap()),
            ll: Some(Geometry::new(4096, 4, 64).unwrap()),
            i1: None,
        };
        let c = configure(given, &cpuid).unwrap();
        assert_eq!(
            shapes(&c),
            "32768 B, 64 B, 8-way associative; 1024 B, 32 B, 2-way associative; 4096 B, 64 B, 4-way associative"
        );
    }

    #[test]
    fn descriptors_are_looked_up() {
        // What QEMU's default processor says.
        let c = configure(Given::default(), &machine(b"GenuineIntel", &[(2, 0, [1, 0, 0x4d, 0x2c_307d])])).unwrap();
        assert_eq!(
            shapes(&c),
            "32768 B, 64 B, 8-way associative; 32768 B, 64 B, 8-way associative; 16777216 B, 64 B, 16-way associative"
        );
        assert_eq!(notes(&c), "warning: L3 cache found, using its data for the LL simulation.");
        // A Pentium 4: 12K micro-operations, 8 KiB data, 512 KiB last level.
        let c = configure(Given::default(), &machine(b"GenuineIntel", &[(2, 0, [1, 0, 0, 0x7b_7066])])).unwrap();
        assert_eq!(
            shapes(&c),
            "16384 B, 32 B, 8-way associative; 8192 B, 64 B, 4-way associative; 524288 B, 64 B, 8-way associative"
        );
        assert_eq!(
            notes(&c),
            "warning: Pentium 4 with 12 KB micro-op instruction trace cache\n         Simulating a 16 KB I-cache with 32 B lines"
        );
        // One number with two meanings.
        for (signature, levels) in [(0xf65, 3), (0x6f6, 2)] {
            let cpuid = machine(b"GenuineIntel", &[(1, 0, [signature, 0, 0, 0]), (2, 0, [1, 0, 0, 0x49_302c])]);
            let (found, notes) = detect(&cpuid);
            assert_eq!(found.unwrap()[2], Found { size: 4 << 20, assoc: 16, line: 64 });
            assert_eq!(notes.len(), usize::from(levels == 3));
        }
    }

    #[test]
    fn amd_leaves_are_read() {
        let l1 = [0, 0, 0x2008_0140, 0x2008_0140];
        // An older one: codes of associativity.
        let old = [(0x8000_0000, 0, [0x8000_0008, 0, 0, 0]), (0x8000_0005, 0, l1)];
        let leaf6 = |l2, l3| (0x8000_0006, 0, [0, 0, l2, l3]);
        let cpuid = machine(b"AuthenticAMD", &[old[0], old[1], leaf6(0x0200_8140, 0x0030_b140)]);
        let c = configure(Given::default(), &cpuid).unwrap();
        assert!(shapes(&c).ends_with("; 6291456 B, 64 B, 48-way associative"), "{c:?}");
        assert_eq!(shapes(&c).split("; ").next(), Some("32768 B, 64 B, 8-way associative"));
        // Without a third level.
        let cpuid = machine(b"AuthenticAMD", &[old[0], old[1], leaf6(0x0200_8140, 0)]);
        assert_eq!(detect(&cpuid).0.unwrap()[2], Found { size: 512 * 1024, assoc: 16, line: 64 });
        assert!(detect(&cpuid).1.is_empty());
        // A newer one says "ask 8000_001D", and the answer is there.
        let cpuid = machine(
            b"AuthenticAMD",
            &[
                (0x8000_0000, 0, [0x8000_0021, 0, 0, 0]),
                old[1],
                leaf6(0x0200_6140, 0x0200_9140),
                (0x8000_001d, 0, [0x121, 0x01c0_003f, 63, 0]),
                (0x8000_001d, 1, [0x122, 0x01c0_003f, 63, 0]),
                (0x8000_001d, 2, [0x143, 0x01c0_003f, 1023, 0]),
                (0x8000_001d, 3, [0x163, 0x03c0_003f, 32767, 0]),
            ],
        );
        assert_eq!(detect(&cpuid).0.unwrap()[2], Found { size: 32 << 20, assoc: 16, line: 64 });
        let cpuid = machine(b"CentaurHauls", &[old[0], old[1], leaf6(0x0080_1140, 0)]);
        assert_eq!(detect(&cpuid).0.unwrap()[2], Found { size: 128 * 1024, assoc: 16, line: 64 });
    }

    #[test]
    fn unknown_processors_fall_back_with_a_warning() {
        for cpuid in [machine(b"Unheard of!!", &[]), machine(b"GenuineIntel", &[]), machine(b"AuthenticAMD", &[])] {
            let c = configure(Given::default(), &cpuid).unwrap();
            assert_eq!(
                shapes(&c),
                "65536 B, 64 B, 2-way associative; 65536 B, 64 B, 2-way associative; 262144 B, 64 B, 8-way associative"
            );
            assert_eq!(
                notes(&c),
                "Warning: Cannot auto-detect cache config, using defaults.\n         Run with -v to see."
            );
            let g = Some(Geometry::new(1024, 2, 32).unwrap());
            assert!(configure(Given { i1: g, d1: g, ll: g }, &cpuid).unwrap().notes.is_empty());
        }
        let (found, notes) = detect(&machine(b"GenuineIntel", &[(2, 0, [1, 0, 0, 0x302c])]));
        assert_eq!((found, notes), (None, vec![Note::NoLastLevel]));
    }

    #[test]
    fn a_first_level_that_cannot_be_simulated_must_be_given() {
        let mut leaves = SERVER.to_vec();
        leaves[2].2[2] = 47;
        let cpuid = machine(b"GenuineIntel", &leaves);
        let error = configure(Given::default(), &cpuid).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Auto-detected I1 cache configuration not supported: Cache set count is not a power of two.\n  \
             I1: 24,576 B, 8-way, 64 B lines\nBypass this message by using option --I1=..."
        );
        let given = Given { i1: Some(Geometry::new(1024, 2, 32).unwrap()), ..Given::default() };
        let c = configure(given, &cpuid).unwrap();
        assert_eq!(c.replaced.len(), 1);
        assert!(!c.replaced[0].to_string().contains("Bypass"));
    }

    #[test]
    fn hostile_answers_do_no_harm() {
        for vendor in [b"GenuineIntel", b"AuthenticAMD", b"CentaurHauls"] {
            for word in [0, 1, 3, 0x49, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x0123_4567, 0x0020_0fff] {
                let plain = machine(vendor, &[]);
                let cpuid = move |leaf, _: u32| if leaf == 0 { plain(0, 0) } else { [word; 4] };
                let _ = configure(Given::default(), &cpuid);
            }
        }
        let _ = configure(Given::default(), &cpuid);
    }
}
