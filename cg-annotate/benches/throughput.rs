//! How fast `cg_annotate --no-annotate` reads: `cargo bench -p cg-annotate`.
//!
//! Profiles of 1 MB, 50 MB and 1 GB, with one event and with thirteen, with ever new keys and with keys that come again.
//! `BENCH_MAX_MB` leaves out what is larger.

#[path = "../../benches/generate.rs"]
mod generate;
#[path = "../../benches/measure.rs"]
mod measure;

use generate::{ALL_EVENTS, Shape, generate, generate_empty};
use measure::Subject;

fn main() {
    let most: u64 = std::env::var("BENCH_MAX_MB").ok().map_or(1000, |text| text.parse().expect("a number of MB"));
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_cg_annotate");
    let (path, empty) = (folder.path().join("profile"), folder.path().join("empty"));
    measure::head();
    for megabytes in [1, 50, 1000].into_iter().filter(|size| *size <= most) {
        for (kind, events, files) in [
            ("13 events, new keys", ALL_EVENTS, 0),
            ("13 events, 300 files", ALL_EVENTS, 300),
            ("Ir only, new keys", "Ir", 0),
        ] {
            generate(&path, &Shape { events, size: megabytes * 1_000_000, files, seed: 1 }).unwrap();
            generate_empty(&empty, events).unwrap();
            let subject = Subject { program, args: &["--no-annotate"], empty: &empty };
            measure::report(&format!("`--no-annotate`, {kind}"), &subject, &[&path]);
            if megabytes == 50 {
                measure::report(&format!("lines, {kind}"), &Subject { args: &[], ..subject }, &[&path]);
            }
        }
    }
}
