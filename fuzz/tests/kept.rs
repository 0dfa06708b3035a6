//! The kept inputs, and some thousand mutations of them, run through every target.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use grind_fuzz::mutate::{Random, mutate};
use grind_fuzz::watch::Watch;
use grind_fuzz::{TARGETS, target};

/// Memory is measured of the whole process, so that one test at a time may make inputs.
static ALONE: Mutex<()> = Mutex::new(());

fn short_run(name: &str, mutations: usize) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = target(name).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut corpus: Vec<Vec<u8>> =
        fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(corpus.len() >= 20, "{} has {} kept inputs", target.name, corpus.len());
    corpus.sort();
    let watch = Watch::new(target, Path::new(env!("CARGO_TARGET_TMPDIR")), None);
    let mut random = Random::new(1);
    for i in 0..corpus.len() + mutations {
        let input = corpus.get(i).cloned().unwrap_or_else(|| mutate(&mut random, &corpus, target));
        watch.run(&input).unwrap();
    }
}

/// One test a target, so that each is told apart.
macro_rules! short_runs {
    ($($name:ident: $mutations:literal;)+) => {
        const SHORT: &[&str] = &[$(stringify!($name)),+];
        $(
            #[test]
            fn $name() {
                short_run(stringify!($name), $mutations);
            }
        )+
    };
}

short_runs! {
    cachegrind: 8_000;
    callgrind: 8_000;
    control: 2_000;
    cxx: 20_000;
    elf: 2_000;
    mem: 8_000;
    options: 2_000;
    substitution: 2_000;
}

#[test]
fn every_target_has_a_short_run() {
    assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), SHORT);
}
