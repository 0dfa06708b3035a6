//! `--by-rank`: sums over ranks, by a naive reader; odd names; many profiles.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cg_merge")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn profile(rows: &[(&str, i64)]) -> String {
    let mut text = String::from("cmd: x\nevents: Ir Dr\nfl=a.c\n");
    rows.iter().for_each(|(name, cost)| _ = write!(text, "fn={name}\n1 {} 1\n2 {}\n", cost / 2, cost - cost / 2));
    let total: i64 = rows.iter().map(|(_, cost)| cost).sum();
    text + &format!("summary: {total} {}\n", rows.len())
}

#[test]
fn the_table_tells_how_evenly_ranks_share_functions() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("cg.0"), profile(&[("even", 100), ("solve", 300), ("tiny", 0)])).unwrap();
    fs::write(at("cg.1"), profile(&[("even", 100), ("solve", 700)])).unwrap();
    fs::write(at("cg.2"), profile(&[("even", 101), ("solve", 200), ("root", 1_500)])).unwrap();
    let output = run(folder.path(), &["--by-rank", "cg.2", "cg.0", "cg.1"]);
    let expected = "\
Ir: 3 ranks, 3 profiles

min   mean    max  max/mean  max rank   lost   lost %  file:function
400  1,000  1,801     1.800         2  2,402   80.0%  TOTAL
  0    500  1,500     3.000         2  3,000  100.0%  a.c:root
200    400    700     1.750         1    900   30.0%  a.c:solve
100    100    101     1.007         2      2    0.1%  a.c:even

lost: what the ranks together wait for the one with the most, if they wait for each other there
functions below the threshold: 1
";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&text(&output.stdout)), squeezed(expected), "{}", text(&output.stdout));
    let reads = run(folder.path(), &["--by-rank", "--event=Dr", "--json", "--threshold=0", "cg.0", "cg.1", "cg.2"]);
    let json = text(&reads.stdout);
    assert!(json.contains("\"event\": \"Dr\"") && json.contains("\"sum\": 8,"), "{json}");
}

/// A rank may have run several programs, and ranks may be anywhere in names.
#[test]
fn profiles_of_a_rank_are_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, cost) in [("n.rank1.7", 10), ("n.rank0.8", 4), ("n.rank1.9", 5), ("n.rank10.3", 1)] {
        fs::write(at(name), profile(&[("f", cost)])).unwrap();
    }
    let files = ["n.rank1.7", "n.rank0.8", "n.rank1.9", "n.rank10.3"];
    let output = run(folder.path(), &[&["--by-rank", "--json"][..], &files].concat());
    let json = text(&output.stdout);
    let members = ["\"ranks\": 3", "\"profiles\": 4", "\"min\": 1", "\"max\": 15", "\"sum\": 20", "\"max_rank\": 1"];
    members.iter().for_each(|member| assert!(json.contains(member), "{member}: {json}"));
    // By the other number.
    let output = run(folder.path(), &[&["--by-rank", "--json", r"--rank=s/.*\.//"][..], &files].concat());
    assert!(text(&output.stdout).contains("\"max_rank\": 7"), "{}", text(&output.stdout));
}

#[test]
fn callgrind_profiles_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        let text = format!("events: Ir\nfl=a.c\nfn=main\n1 {}\ncfn=f\ncalls=1 1\n1 50\nfn=f\n2 50\n", 10 + rank * 10);
        fs::write(folder.path().join(format!("cg.{rank}")), text).unwrap();
    }
    let output = text(&run(folder.path(), &["--by-rank", "cg.0", "cg.1"]).stdout);
    let row = |name: &str| {
        output.lines().find(|line| line.ends_with(name)).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("a.c:main"), "10 15 20 1.333 1 10 7.7% a.c:main", "{output}");
    assert_eq!(row("a.c:f"), "50 50 50 1.000 0 0 0.0% a.c:f");
}

#[test]
fn what_tells_no_rank_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a"), profile(&[("f", 1)])).unwrap();
    fs::write(at("cg.0"), profile(&[("f", 1)])).unwrap();
    fs::write(at("cg.1"), "cmd: x\nevents: Dw\nfl=a\nfn=f\n1 1\nsummary: 1\n").unwrap();
    let failed = |args: &[&str], code, message: &str| {
        let output = run(folder.path(), args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(text(&output.stderr).contains(message), "{args:?}: {}", text(&output.stderr));
    };
    failed(&["--by-rank", "a"], 1, "a: its name does not tell a rank; --rank=s/OLD/NEW/ makes one of it");
    failed(&["--by-rank", "--rank=s/a/x/", "a"], 1, "a: --rank makes `x` of it, which is no rank");
    failed(&["--by-rank", "cg.0", "cg.1"], 1, "cg.1: there is no event `Ir`, but: Dw");
    failed(&["--by-rank", "-", "cg.1"], 1, "does not tell a rank");
    failed(&["--json", "a"], 2, "--by-rank");
    failed(&["--rank=s/a/b/", "a"], 2, "--by-rank");
}

/// A thousand ranks, on however many cores: as one after another by hand.
#[test]
fn a_thousand_ranks_are_as_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let cost = |rank: i64, function: i64| (rank * 7919 + function * 104_729) % 1000 + 1;
    let files: Vec<String> = (0..1000).map(|rank| format!("cg.{rank}")).collect();
    for (rank, file) in (0..).zip(&files) {
        let names: Vec<(String, i64)> = (0..5).map(|function| (format!("f{function}"), cost(rank, function))).collect();
        let rows: Vec<(&str, i64)> = names.iter().map(|(name, cost)| (&name[..], *cost)).collect();
        fs::write(folder.path().join(file), profile(&rows)).unwrap();
    }
    let mut args = vec!["--by-rank", "--threshold=0"];
    args.extend(files.iter().map(String::as_str));
    let output = text(&run(folder.path(), &args).stdout).replace(',', "");
    for function in 0..5 {
        let costs: Vec<i64> = (0..1000).map(|rank| cost(rank, function)).collect();
        let most = *costs.iter().max().unwrap();
        let rank = costs.iter().position(|cost| *cost == most).unwrap();
        let name = format!("a.c:f{function}");
        let row: Vec<&str> = output.lines().find(|line| line.ends_with(&name)).unwrap().split_whitespace().collect();
        let mean = (costs.iter().sum::<i64>() + 500) / 1000;
        let expected = [costs.iter().min().unwrap().to_string(), mean.to_string(), most.to_string()];
        assert_eq!(&row[..3], expected, "{output}");
        assert_eq!(row[4], rank.to_string());
    }
}
