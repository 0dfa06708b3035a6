//! The kept inputs, and some thousand mutations of them, run through every target.

use std::fs;
use std::path::Path;

use grind_fuzz::mutate::{Random, mutate};
use grind_fuzz::watch::Watch;
use grind_fuzz::{Target, target};

fn short_run(target: &'static Target, mutations: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut corpus: Vec<Vec<u8>> =
        fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(corpus.len() >= 20, "{} has {} kept inputs", target.name, corpus.len());
    corpus.sort();
    let watch = Watch::new(target, Path::new(env!("CARGO_TARGET_TMPDIR")));
    let mut random = Random::new(1);
    for i in 0..corpus.len() + mutations {
        let input = corpus.get(i).cloned().unwrap_or_else(|| mutate(&mut random, &corpus, target.words));
        watch.run(&input).unwrap();
    }
}

#[test]
fn the_reader_survives() {
    short_run(target("reader").unwrap(), 10_000);
}

#[test]
fn substitutions_survive() {
    short_run(target("substitution").unwrap(), 2_000);
}
