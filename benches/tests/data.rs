//! What is recorded of experiments and runs can be read, belongs to decisions that exist, and the README shows what it says.

use std::fs;
use std::path::Path;

use grind_bench::data::{self, Verdict};
use grind_bench::figures;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn experiments_are_whole_and_belong_to_decisions() {
    let text = fs::read_to_string(root().join("benches/experiments.toml")).unwrap();
    let experiments = data::experiments(&text).unwrap();
    assert!(experiments.iter().any(|e| e.verdict == Verdict::Dropped));
    let decisions: Vec<String> = fs::read_dir(root().join("docs/decisions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for e in experiments {
        let Some(number) = e.decision else { continue };
        assert!(
            decisions.iter().any(|d| d.starts_with(&format!("{number}-"))),
            "experiment {:?} belongs to decision {number}, which is not in docs/decisions",
            e.id
        );
    }
}

#[test]
fn wrong_experiments_are_refused() {
    let right = "[[experiment]]\nid = \"a\"\nafter = \"b\"\nresult = \"c\"\nverdict = \"kept\"\n";
    assert_eq!(data::experiments(right).unwrap().len(), 1);
    for (from, to) in [
        ("id = \"a\"", "id = \"A b\""),
        ("after = \"b\"", "after = \" \""),
        ("result = \"c\"\n", ""),
        ("kept", "good"),
        ("id = \"a\"", "id = \"a\"\nfaster = 3"),
        ("id = \"a\"", "id = \"a\"\ndate = \"2026-13-01\""),
        ("id = \"a\"", "id = \"a\"\ncommit = \"later\""),
        ("id = \"a\"", "id = \"a\"\ndecision = \"12\""),
    ] {
        let wrong = right.replace(from, to);
        assert!(data::experiments(&wrong).is_err(), "{wrong}");
    }
    assert!(data::experiments(&right.repeat(2)).is_err(), "two of the same name");
}

#[test]
fn raw_times_become_medians_over_native_ones() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("env.toml"), "date = \"2026-11-25\"\ncpu = \"x\"\ncores = 2\n").unwrap();
    let raw = "program,metric,by,seconds\nfib,count,native,1.0\nfib,count,grind,3.0\nfib,count,native,2.0\n\
               fib,count,grind,9.0\nfib,count,native,4.0\nfib,count,grind,5.0\n";
    fs::write(dir.path().join("raw.csv"), raw).unwrap();
    let run = data::run(dir.path()).unwrap();
    assert_eq!(run.value("fib", "count", "grind"), Some(2.5));
    assert_eq!(run.value("fib", "seconds", "native"), Some(2.0));
    fs::write(dir.path().join("raw.csv"), raw.replace("9.0", "-1")).unwrap();
    assert!(data::run(dir.path()).is_err());
}

#[test]
fn figures_are_up_to_date() {
    for (path, text) in figures::made(root()).unwrap() {
        let there = fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(there == text, "{path} is not what the data say: cargo run -p grind-bench --bin figures");
    }
}
