//! How fast `cg_merge` merges: `cargo bench -p cg-merge`.
//!
//! 200 profiles of one program, which mostly have the same lines; and one file of 1 GB, and two halves of it, to see
//! what the second core brings. `BENCH_MAX_MB` leaves out what is larger.

#[path = "../../benches/generate.rs"]
mod generate;
#[path = "../../benches/measure.rs"]
mod measure;

use std::path::{Path, PathBuf};

use generate::{ALL_EVENTS, Shape, generate, generate_empty};
use measure::Subject;

fn main() {
    let most: u64 = std::env::var("BENCH_MAX_MB").ok().map_or(1000, |text| text.parse().expect("a number of MB"));
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    measure::head();
    let merge = |what: &str, count: u64, each: u64, files: u64, events| {
        if count * each > most {
            return;
        }
        let paths: Vec<PathBuf> = (0..count).map(|i| folder.path().join(format!("profile{i}"))).collect();
        for (seed, path) in (1..).zip(&paths) {
            generate(path, &Shape { events, size: each * 1_000_000, files, seed }).unwrap();
        }
        generate_empty(&empty, events).unwrap();
        let files: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let subject = Subject { program: env!("CARGO_BIN_EXE_cg_merge"), args: &[], empty: &empty };
        measure::report(what, &subject, &files);
    };
    merge("200 x 1 MB, 13 events", 200, 1, 0, ALL_EVENTS);
    merge("200 x 5 MB, 13 events", 200, 5, 0, ALL_EVENTS);
    merge("200 x 5 MB, Ir only", 200, 5, 0, "Ir");
    merge("1 x 1000 MB, 300 files, 13 events", 1, 1000, 300, ALL_EVENTS);
    merge("2 x 500 MB, 300 files, 13 events", 2, 500, 300, ALL_EVENTS);
}
