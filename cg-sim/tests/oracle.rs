//! The models against Valgrind itself: what its `lackey` says a program does to memory, simulated here, must give the
//! misses that its Cachegrind and Callgrind count. The program has no library, so it does the same every time.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cg_sim::usage::{Cost, Level, Owner, Residents, Usage, UsageLastLevel};
use cg_sim::writeback::{Action, WriteBackLastLevel, WriteThrough};
use cg_sim::{Geometries, Geometry, LastLevel, Level1, Port, Served};

/// What `lackey` calls an access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fetch,
    Load,
    Store,
    Modify,
}

struct Place {
    folder: PathBuf,
    trace: Vec<(Kind, u64, u32)>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Place {
    /// The program and its trace; `None`, with a reason, where that cannot be had.
    fn new(name: &str) -> Option<Self> {
        for tool in ["valgrind", "cc"] {
            if Command::new(tool).arg("--version").output().is_err() {
                assert!(std::env::var_os("CI").is_none(), "{tool} is needed in CI");
                eprintln!("skipped: {tool} is not installed");
                return None;
            }
        }
        let folder = std::env::temp_dir().join(format!("cg-sim-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut place = Self { folder, trace: Vec::new() };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/memory.c");
        let built = Command::new("cc")
            .args(["-O1", "-nostdlib", "-static", "-fno-stack-protector", "-fno-tree-vectorize", "-o"])
            .arg(place.folder.join("memory"))
            .arg(source)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let output = place.valgrind("lackey", &["--trace-mem=yes"]);
        place.trace = String::from_utf8(output.stderr).unwrap().lines().filter_map(access).collect();
        assert!(place.trace.len() > 1_000_000);
        Some(place)
    }

    fn valgrind(&self, tool: &str, options: &[&str]) -> Output {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let output = Command::new("valgrind")
            .env_clear()
            .env("PATH", path)
            .current_dir(&self.folder)
            .arg(format!("--tool={tool}"))
            .args(["--vex-guest-chase=no", "--vex-iropt-level=0"])
            .args(options)
            .arg("./memory")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The line of a profile that begins with `key`, by events.
    fn counts(&self, tool: &str, options: &[&str], key: &str) -> HashMap<String, u64> {
        let file = self.folder.join("out");
        let mut all = vec![format!("--{tool}-out-file={}", file.display()), "--cache-sim=yes".to_owned()];
        all.extend(options.iter().map(|o| (*o).to_owned()));
        self.valgrind(tool, &all.iter().map(String::as_str).collect::<Vec<_>>());
        let text = fs::read_to_string(file).unwrap();
        let line = |key: &str| text.lines().rev().find_map(|l| l.strip_prefix(key)).unwrap().trim().to_owned();
        let values = line(key);
        let mut values = values.split(' ').map(|v| v.parse().unwrap());
        line("events: ").split(' ').map(|event| (event.to_owned(), values.next().unwrap_or(0))).collect()
    }
}

/// `I  04001090,3` and ` L 1fff000,8`.
fn access(line: &str) -> Option<(Kind, u64, u32)> {
    let kind = match line.get(..3)? {
        "I  " => Kind::Fetch,
        " L " => Kind::Load,
        " S " => Kind::Store,
        " M " => Kind::Modify,
        _ => return None,
    };
    let (addr, size) = line[3..].trim().split_once(',')?;
    Some((kind, u64::from_str_radix(addr, 16).ok()?, size.parse().ok()?))
}

fn shape(text: &str) -> Geometry {
    Geometry::parse(text).unwrap()
}

/// Options, and what they ask for.
fn hierarchy([i1, d1, ll]: [&str; 3]) -> (Vec<String>, Geometries) {
    let options = vec![format!("--I1={i1}"), format!("--D1={d1}"), format!("--LL={ll}")];
    (options, Geometries { i1: shape(i1), d1: shape(d1), ll: shape(ll) })
}

fn add(counts: &mut HashMap<String, u64>, event: &str, n: u64) {
    *counts.entry(event.to_owned()).or_default() += n;
}

/// Counts an access. `write`: whether it is booked as a write. `dirty`: whether a dirty line was evicted.
fn book(counts: &mut HashMap<String, u64>, kind: Kind, write: bool, served: Served, dirty: Option<bool>) {
    let (refs, l1, ll, lld) = match kind {
        Kind::Fetch => ("Ir", "I1mr", "ILmr", "ILdmr"),
        _ if write => ("Dw", "D1mw", "DLmw", "DLdmw"),
        _ => ("Dr", "D1mr", "DLmr", "DLdmr"),
    };
    add(counts, refs, 1);
    add(counts, l1, u64::from(served.missed_l1()));
    add(counts, ll, u64::from(served.missed_ll()));
    if let Some(dirty) = dirty {
        add(counts, lld, u64::from(dirty));
    }
}

const SHAPES: [[&str; 3]; 4] = [
    ["8192,2,64", "4096,4,64", "65536,8,64"],
    ["32768,8,64", "32768,8,64", "262144,16,64"],
    ["4096,1,32", "8192,1,32", "131072,1,64"],
    ["1024,16,64", "2048,4,128", "61440,15,64"],
];

#[test]
fn misses_are_cachegrinds() {
    let Some(place) = Place::new("misses") else { return };
    for shapes in SHAPES {
        let (options, g) = hierarchy(shapes);
        let (mut l1, mut ll) = (Level1::new(&g), LastLevel::new(&g));
        let mut ours = HashMap::new();
        for (kind, addr, size) in &place.trace {
            let port = if *kind == Kind::Fetch { Port::Fetch } else { Port::Data };
            let served = l1.access(&mut ll, port, *addr, *size);
            book(&mut ours, *kind, *kind == Kind::Store, served, None);
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        assert_eq!(ours, place.counts("cachegrind", &options, "summary: "), "{shapes:?}");
    }
}

#[test]
fn write_back_and_prefetching_are_callgrinds() {
    let Some(place) = Place::new("write-back") else { return };
    for shapes in [SHAPES[0], SHAPES[1]] {
        // Both together differ, since Callgrind does not find again what it prefetched.
        for (option, write_back, prefetch) in [
            ("--simulate-wb=yes", true, false),
            ("--simulate-hwpref=yes", false, true),
            ("--simulate-wb=no", false, false),
        ] {
            let (mut options, g) = hierarchy(shapes);
            options.push(option.to_owned());
            let (mut l1, mut ll) = (WriteThrough::new(&g), WriteBackLastLevel::new(&g, write_back, prefetch));
            let mut ours = HashMap::new();
            for (kind, addr, size) in &place.trace {
                let (action, write) = match kind {
                    Kind::Fetch => (Action::Fetch, false),
                    Kind::Load => (Action::Read, false),
                    Kind::Store | Kind::Modify => (Action::Write, true),
                };
                let outcome = l1.access(&mut ll, action, *addr, *size) as u8;
                let served = [Served::L1, Served::LastLevel, Served::Memory, Served::Memory][usize::from(outcome)];
                book(&mut ours, *kind, write, served, write_back.then_some(outcome == 3));
            }
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            assert_eq!(ours, place.counts("callgrind", &options, "summary: "), "{shapes:?} {option}");
        }
    }
}

/// Sums of the costs of lines, by level; those loaded by instructions that Callgrind forgets are left out.
#[derive(Default)]
struct Sums {
    levels: [Cost; 2],
    /// Of the instruction that is being executed: whether it is forgotten.
    forgotten: bool,
}

impl Residents for Sums {
    fn loaded(&mut self, _: Level, _: u64) -> Owner {
        Owner { node: 0, site: u32::from(self.forgotten) }
    }

    fn evicted(&mut self, level: Level, owner: Owner, cost: Cost) {
        if owner.site == 0 {
            let sum = &mut self.levels[usize::from(level == Level::LastLevel)];
            sum.ac_cost += cost.ac_cost;
            sum.sp_loss += cost.sp_loss;
        }
    }
}

#[test]
fn the_use_of_lines_is_callgrinds() {
    let Some(place) = Place::new("use") else { return };
    for shapes in [SHAPES[0], SHAPES[1], ["2048,2,32", "4096,4,32", "65536,8,32"]] {
        let (mut options, g) = hierarchy(shapes);
        options.push("--cacheuse=yes".to_owned());
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        // Misses are right in the summary, which lacks the costs. The totals lack what the last block does: the line that
        // it loads is charged to nobody.
        let mut theirs = place.counts("callgrind", &options, "summary: ");
        let totals = place.counts("callgrind", &options, "totals: ");
        assert!(theirs["Ir"] - totals["Ir"] < 10);

        let (mut usage, mut ll, mut sums) = (Usage::new(&g).unwrap(), UsageLastLevel::new(&g), Sums::default());
        let mut ours = HashMap::new();
        for (kind, addr, size) in &place.trace {
            let port = if *kind == Kind::Fetch { Port::Fetch } else { Port::Data };
            let executed = ours.get("Ir").copied().unwrap_or_default() + u64::from(*kind == Kind::Fetch);
            sums.forgotten = executed > totals["Ir"];
            let served = usage.access(&mut ll, port, *addr, *size, true, &mut sums);
            book(&mut ours, *kind, matches!(kind, Kind::Store | Kind::Modify), served, None);
        }
        usage.flush(&mut ll, true, &mut sums);
        ll.flush(true, &mut sums);
        for (level, sum) in [("1", sums.levels[0]), ("2", sums.levels[1])] {
            for (event, n) in [("AcCost", sum.ac_cost), ("SpLoss", sum.sp_loss)] {
                let event = format!("{event}{level}");
                add(&mut ours, &event, n);
                theirs.insert(event.clone(), totals[&event]);
            }
        }
        assert_eq!(ours, theirs, "{shapes:?}");
    }
}
