//! How well cache lines are used (`--cacheuse=yes`): self costs of every instruction beside Callgrind's, and what must hold of
//! inclusive costs, which no other tool has.
//!
//! The programs of `cache/` are static and their addresses fit in 32 bits, of which alone the reference looks at cache tags. What
//! may differ: the reference forgets the block that ends the program, and what its instructions load; it books accesses under
//! masks on other instructions; and what the programs' headers name.

use std::collections::BTreeMap;
use std::path::Path;

use cg_format::callgrind::{Profile, Site, read_profile};
use grind_tests::build::Source;
use grind_tests::compare::assert_none;
use grind_tests::simulation::{GEOMETRIES, Geometry};
use grind_tests::{laws, run, simulation, tools};

const EVENTS: [&str; 13] =
    ["Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw", "AcCost1", "SpLoss1", "AcCost2", "SpLoss2"];

/// Costs of an instruction, one for each event.
type Costs = [i64; EVENTS.len()];

/// Programs in which the reference books accesses on other instructions, or makes others; see the folder's README.
const UNLIKE: [&str; 4] = ["masked", "masked_gather", "pieces", "xsave_partial"];

fn profile(profiler: &[String], options: &[String], program: &[String], dir: &Path) -> Profile {
    let out = dir.join(format!("profile-of-{}", profiler.len()));
    let words =
        [profiler, &["-q".into(), format!("--callgrind-out-file={}", out.display())], options, program].concat();
    let done = run::command(&words, dir).output().expect("the profiler runs");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read(&out).unwrap_or_else(|e| panic!("{}: {e}", out.display()));
    if profiler[0] != "valgrind" {
        laws::check(&text, &format!("{words:?}"));
    }
    read_profile(&text[..], &out.display().to_string()).unwrap_or_else(|e| panic!("{e}"))
}

fn callgrind(name: &str, more: &[&str]) -> Vec<String> {
    let words = if name == "grind" { tools::under_test().to_vec() } else { vec![name.to_owned()] };
    words.into_iter().chain(["--tool=callgrind".to_owned()]).chain(more.iter().map(|w| (*w).to_owned())).collect()
}

/// Self costs by address.
fn by_address(profile: &Profile) -> BTreeMap<u64, Costs> {
    let mut found: BTreeMap<u64, Costs> = BTreeMap::new();
    for part in &profile.parts {
        assert_eq!(part.header.events, EVENTS);
        for body in part.bodies() {
            for entry in &body.entries {
                if let Site::Row { costs } = &entry.site {
                    let sums = found.entry(entry.at.place.addr).or_default();
                    sums.iter_mut().zip(body.costs(*costs)).for_each(|(sum, n)| *sum += n);
                }
            }
        }
    }
    found
}

fn options(g: &Geometry) -> Vec<String> {
    [g.options(), vec!["--cacheuse=yes".into()]].concat()
}

#[test]
fn self_costs_are_callgrinds() {
    if !tools::have(&["valgrind", "gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let small = Geometry { i1: (1024, 2, 64), d1: (1024, 2, 64), ll: (8192, 4, 64) };
    let (mut compared, mut evicted) = (0, 0);
    for name in simulation::programs() {
        let source = Source::open("cache", &name);
        if !source.runs_here() || !simulation::has_reference(&source) || UNLIKE.contains(&name.as_str()) {
            continue;
        }
        let program = [source.build(dir.path(), true).display().to_string()];
        let widest: u64 = source.words("widest").first().map_or(32, |w| w.parse().unwrap());
        for g in [GEOMETRIES[0], small, GEOMETRIES[3]].into_iter().filter(|g| g.smallest_line() >= widest) {
            let reference = callgrind("valgrind", &["--vex-guest-chase=no", "--vex-iropt-level=0"]);
            let theirs = by_address(&profile(&reference, &options(&g), &program, dir.path()));
            let ours = by_address(&profile(&callgrind("grind", &[]), &options(&g), &program, dir.path()));
            let mut wrong = Vec::new();
            for (address, got) in &ours {
                // Only in the block that ends the program are there instructions that the reference does not know.
                let Some(expected) = theirs.get(address) else { continue };
                if expected != got {
                    wrong.push(format!("{address:#x}: {expected:?} expected, {got:?} got"));
                }
                evicted += got[9];
            }
            assert!(theirs.keys().all(|address| ours.contains_key(address)));
            assert!(ours.len() - theirs.len() < 10, "{name}: {} and {}", ours.len(), theirs.len());
            assert_none(&format!("{name} with {g:?}"), &wrong);
            compared += 1;
        }
    }
    assert!(compared > 40 && evicted > 1_000_000, "{compared}, {evicted}");
}

/// What the calls of each function cost, in all: AcCost1, SpLoss1, AcCost2, SpLoss2.
fn inclusive(profile: &Profile) -> BTreeMap<String, [i64; 4]> {
    let mut found: BTreeMap<String, [i64; 4]> = BTreeMap::new();
    for part in &profile.parts {
        for body in part.bodies() {
            for entry in &body.entries {
                if let Site::Call { call, costs } = &entry.site {
                    let name = String::from_utf8_lossy(profile.names.function_name(call.callee)).into_owned();
                    let sums = found.entry(name).or_default();
                    sums.iter_mut().zip(&body.costs(*costs)[9..]).for_each(|(sum, n)| *sum += n);
                }
            }
        }
    }
    found
}

/// The figures of the manual's example, but for a few lines of code and of the stack.
#[test]
fn a_transposition_by_blocks_uses_its_lines() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (tools::workspace_root().join("grind/examples/transpose.c"), dir.path().join("transpose"));
    grind_tests::build::compile(
        &["gcc", "-O1", "-g", "-static", "-Wall", "-Werror", "-o"]
            .map(str::to_owned)
            .into_iter()
            .chain([program.display().to_string(), source.display().to_string()])
            .collect::<Vec<_>>(),
        dir.path(),
    );
    let program = [program.display().to_string()];
    let caches = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64", "--cacheuse=yes"].map(str::to_owned);
    let all = inclusive(&profile(&callgrind("grind", &[]), &caches, &program, dir.path()));
    let near = |got: i64, expected: i64| (got - expected).abs() <= expected / 200 + 2000;
    // 512 x 512 lines of 8 numbers are written one at a time, 32,768 are read whole.
    let [ac1, sp1, ac2, sp2] = all["by_rows"];
    assert!(near(ac1, 266_240_000) && near(ac2, 266_240_000), "{all:?}");
    assert!(near(sp1, 14_680_064) && near(sp2, 14_680_064), "{all:?}");
    let [ac1, _, ac2, sp2] = all["by_blocks"];
    assert!(near(ac2, 2 * 32_768 * 125) && near(sp2, 0) && ac1 < 2 * ac2, "{all:?}");
    // Both call the same function, which has it all; whoever calls both has the sum.
    let both = all["by_rows"][0] + all["by_blocks"][0];
    assert!(near(all["piece"][0], both) && near(all["main"][0], both + all["fill"][0]), "{all:?}");

    // Without the calls, the rest is the same.
    let own = [&caches[..3], &["--cacheuse=self".to_owned()]].concat();
    let own = profile(&callgrind("grind", &[]), &own, &program, dir.path());
    assert_eq!(by_address(&own), by_address(&profile(&callgrind("grind", &[]), &caches, &program, dir.path())));
    assert!(inclusive(&own).values().all(|costs| *costs == [0; 4]));
}
