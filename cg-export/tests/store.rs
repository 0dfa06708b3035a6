//! The data set over many runs: the documented queries find in made-up profiles what was put into them.
#![cfg(feature = "parquet")]

#[path = "../examples/synthetic.rs"]
mod synthetic;

use std::path::Path;
use std::process::Command;

use crate::common::{have_modules, python, reader};
use grind_tests::tools;
use synthetic::Year;

/// Who can be asked, by module and program.
fn engines() -> impl Iterator<Item = &'static str> {
    let known: [(_, &[&str], &[&str]); 2] = [("duckdb", &["duckdb"], &[]), ("spark", &["pyspark"], &["java"])];
    known
        .into_iter()
        .filter(|(_, modules, programs)| have_modules(modules) && tools::have(programs))
        .map(|known| known.0)
}

fn queries(year: Year) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    for commit in 0..year.commits {
        let files = year.write(folder.path(), commit).unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_cg_export"))
            .args(["--format=parquet", "--benchmark=model", "--run=1", "-o"])
            .arg(&store)
            .arg(format!("--commit={}", Year::commit(commit)))
            .arg(format!("--time={}", year.time(commit)))
            .args(&files)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::fs::remove_dir_all(files[0].parent().unwrap()).unwrap();
    }
    let files = Command::new("du").args(["-sh"]).arg(&store).output().unwrap();
    eprintln!("{}", String::from_utf8_lossy(&files.stdout));
    let docs = tools::workspace_root().join("docs/queries");
    for engine in engines() {
        let done = python().arg(reader("queries.py")).arg(engine).arg(&store).arg(&docs).output().unwrap();
        eprintln!("{}", String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success());
        let answers: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        check(year, &answers, &docs);
    }
}

fn check(year: Year, answers: &serde_json::Value, docs: &Path) {
    let rows = |name: &str| answers[name].as_array().unwrap().clone();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let exactly = |value: &serde_json::Value, expected: u64| value.as_u64() == Some(expected);

    let middle = year.commits / 2;
    let regressions = rows("regressions");
    assert_eq!(regressions.len(), 1, "{regressions:?}");
    let found = &regressions[0];
    assert_eq!((&found["function"], &found["commit"]), (&"regressed".into(), &Year::commit(middle).into()));
    assert!(exactly(&found["before"], year.ranks * 1_000_000) && exactly(&found["after"], year.ranks * 1_200_000));
    assert!((number(&found["percent"]) - 20.0).abs() < 1e-9);

    let shares = rows("growing_shares");
    assert_eq!(shares.len(), 10);
    assert_eq!(shares[0]["function"], "creeping");
    assert_eq!(shares[1]["function"], "regressed");
    let whole = |commit| -> u64 {
        (0..year.ranks)
            .map(|rank| year.profile(commit, rank))
            .map(|text| text.rsplit(' ').next().unwrap().trim().parse::<u64>().unwrap())
            .sum()
    };
    for (column, commit) in [("first_percent", 0), ("last_percent", year.commits - 1)] {
        let cost: u64 = (0..year.ranks).map(|rank| year.cost("creeping", commit, rank)).sum();
        #[allow(clippy::cast_precision_loss)]
        let percent = 100.0 * cost as f64 / whole(commit) as f64;
        assert!((number(&shares[0][column]) - percent).abs() < 0.001, "{column}: {} for {percent}", shares[0][column]);
    }

    let balance = rows("load_balance");
    assert_eq!(balance.len() as u64, year.functions + 3);
    let solve = &balance[0];
    assert_eq!(solve["function"], "solve");
    assert!(exactly(&solve["min"], 2_000_000) && exactly(&solve["max"], 4_000_000));
    assert!(exactly(&solve["max_rank"], year.ranks - 1) && exactly(&solve["ranks"], year.ranks));
    #[allow(clippy::cast_precision_loss)]
    let mean = (2_000_000 * (year.ranks + 1)) as f64 / year.ranks as f64;
    assert!((number(&solve["mean"]) - mean).abs() < 1e-3);
    assert!((number(&solve["max_by_mean"]) - 4_000_000.0 / mean).abs() < 0.001);

    // Each query of the documents was run.
    let documented = std::fs::read_dir(docs)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "sql"));
    assert_eq!(documented.count(), answers.as_object().unwrap().len());
}

#[test]
fn documented_queries_find_what_was_put_into_a_year_of_profiles() {
    queries(Year { commits: 60, ranks: 4, functions: 40 });
}

#[test]
#[ignore = "takes minutes; CI runs the same over 60 commits: cargo test --release -p cg-export store:: -- --ignored --nocapture"]
fn documented_queries_answer_over_ten_thousand_profiles() {
    queries(Year { commits: 2500, ranks: 4, functions: 1000 });
}
