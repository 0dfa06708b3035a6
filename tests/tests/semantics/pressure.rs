//! Random pressure: programs of the semantics, with random options that have translations thrown away, made anew, asked for
//! without a stop and kept in little room, while somebody sends signals of any kind that they let pass. Each must do what it
//! does natively. For a minute in CI, for an hour by
//!
//! ```text
//! GRIND_PRESSURE_SECONDS=3600 cargo test --release -p grind-tests random_pressure -- --nocapture
//! ```
//!
//! `GRIND_PRESSURE_SEED` runs the same choices again, as far as time lets it; `GRIND_PRESSURE_PROGRAMS` names a part of the names
//! of the programs that are run.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grind_tests::build::Source;
use grind_tests::compare::assert_same;
use grind_tests::disturb::Disturbance;
use grind_tests::run::{Job, Outcome};
use grind_tests::tools;

/// What cannot be compared: the program is told that it may not trace; and one that takes SIGCHLD from a descriptor may be sent
/// its first one just before it blocks that, by somebody who has seen that it does not.
const LEFT_OUT: [&str; 2] = ["process_ptraces_its_child", "signal_signalfd"];

/// One of each is taken.
const OPTIONS: [&[&str]; 5] = [
    &["--hot-after=1", "--hot-after=1000", "--hot-after=20000", "--hot-after=0", ""],
    &["--code-limit=4", "--code-limit=16", ""],
    &["--beside=always", "--beside=never", ""],
    &["--pair-calls-from=0", ""],
    &[
        "",
        "--cache-sim=yes",
        "--cache-sim=yes --branch-sim=yes",
        "--tool=callgrind",
        "--tool=callgrind --cache-sim=yes",
    ],
];

/// A run that takes longer is told of.
const SLOW: Duration = Duration::from_secs(20);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name}={v:?} is no number")))
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

fn programs() -> Vec<String> {
    let entries = std::fs::read_dir(tools::fixtures("semantics")).expect("the folder of programs");
    let names = entries.map(|e| e.expect("a folder entry").file_name().into_string().expect("a name in ASCII"));
    let mut names: Vec<String> = names.filter_map(|n| Some(n.strip_suffix(".c")?.to_owned())).collect();
    names.retain(|n| !LEFT_OUT.contains(&n.as_str()));
    if let Ok(part) = std::env::var("GRIND_PRESSURE_PROGRAMS") {
        names.retain(|n| n.contains(&part));
    }
    names.sort();
    names
}

#[test]
fn random_pressure_changes_nothing() {
    let seconds = number("GRIND_PRESSURE_SECONDS").unwrap_or(60);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_nanos() as u64;
    let seed = number("GRIND_PRESSURE_SEED").unwrap_or_else(now);
    println!("GRIND_PRESSURE_SEED={seed}");
    let mut random = Random(seed);
    let names = programs();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut built: HashMap<String, Option<(PathBuf, Outcome)>> = HashMap::new();
    let (start, mut runs) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        let name = &names[random.below(names.len())];
        let options: Vec<&str> = OPTIONS.iter().flat_map(|of| of[random.below(of.len())].split_whitespace()).collect();
        let job = |program: &PathBuf, work: &PathBuf, disturbed| {
            let _ = std::fs::remove_dir_all(work);
            std::fs::create_dir_all(work).expect("a folder");
            let words = [program.display().to_string()];
            // Whoever is interrupted all the time, and has code made anew all the time, takes long.
            (words, Duration::from_secs(300), disturbed)
        };
        let known = built.entry(name.clone()).or_insert_with(|| {
            let source = Source::open("semantics", name);
            source.runs_here().then(|| {
                let folder = dir.path().join(name);
                std::fs::create_dir(&folder).expect("a new folder");
                let program = source.build(&folder, false);
                let work = folder.join("work");
                let (words, limit, disturbed) = job(&program, &work, Disturbance::None);
                let native = Job { limit, disturbed, ..Job::new(words, &work) }.native();
                (program, native)
            })
        });
        let Some((program, native)) = known else { continue };
        let profiler: Vec<String> =
            tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect();
        let work = program.with_file_name("work");
        let (words, limit, disturbed) = job(program, &work, Disturbance::Kinds);
        let begun = Instant::now();
        let tested = Job { limit, disturbed, ..Job::new(words, &work) }.profiled(&profiler);
        assert_same(&format!("{name} {}", options.join(" ")), native, &tested.outcome, &tested.log);
        runs += 1;
        if begun.elapsed() > SLOW {
            println!("{name} {} took {:?}", options.join(" "), begun.elapsed());
        }
    }
    println!("{runs} runs of {} programs in {:?}, 0 differences", built.len(), start.elapsed());
    assert!(runs > 0, "not even one run");
}
