//! Every format, opened by its own reader: costs must be those of the profile, function by function.
//!
//! Readers that are not installed are skipped, with the reason; where `CI` is set they must be there.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{ByName, Naive, STACKS, exported, import, output, profiles, python, reader};
use grind_tests::tools;

/// Writes each profile in a format, with stacks made in each way; gives the files, in the order of [`expected`].
fn written(folder: &Path, format: &str, more: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for (name, path) in profiles() {
        for (i, stacks) in STACKS.iter().enumerate() {
            let args = [&["--format", format][..], stacks, more].concat();
            let file = folder.join(format!("{name}{i}.{format}"));
            fs::write(&file, exported(&args, &[path])).unwrap();
            files.push(file);
        }
    }
    files
}

/// The profile of each file that [`written`] gives.
fn expected() -> impl Iterator<Item = (&'static str, Naive)> {
    profiles().iter().flat_map(|(name, path)| {
        STACKS.iter().map(move |stacks| {
            let naive = Naive::read(path);
            (*name, Naive { whole: *name == "chains" && stacks.is_empty(), ..naive })
        })
    })
}

fn check(profiles: Vec<Vec<(String, ByName)>>, events_of: impl Fn(&Naive) -> Vec<String>) {
    assert_eq!(profiles.len(), expected().count());
    for ((name, naive), found) in expected().zip(profiles) {
        let events = events_of(&naive);
        assert_eq!(found.len(), events.len(), "{name}");
        for (event, (title, own)) in events.iter().zip(found) {
            assert!(
                title.is_empty() || title.split(' ').next() == Some(event) || events.len() == 1,
                "{title} for {event}"
            );
            assert_eq!(own, naive.heads(event), "{name} {event}");
        }
    }
}

/// The lines of a table of pprof: flat value and function.
fn pprof_table(text: &str) -> ByName {
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    rows.map(|row| {
        let mut words = row.split_whitespace();
        let flat = words.next().unwrap().parse().unwrap_or_else(|_| panic!("{row}"));
        let name: Vec<&str> = words.skip(4).filter(|word| *word != "(inline)").collect();
        (name.join(" "), flat)
    })
    .filter(|(_, flat)| *flat != 0)
    .collect()
}

fn go_pprof(file: &Path, event: &str, report: &str) -> String {
    output(
        Command::new("go")
            .args(["tool", "pprof", report, "-nodecount=0", "-nodefraction=0", "-edgefraction=0", "-symbolize=none"])
            .arg(format!("-sample_index={event}"))
            .arg(file)
            .stderr(Stdio::null()),
    )
}

#[test]
fn pprof_of_go_lists_the_costs_of_all_functions() {
    if !tools::have(&["go"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for ((name, naive), file) in expected().zip(written(folder.path(), "pprof", &[])) {
        // Each look takes half a second.
        for event in naive.events.iter().take(2) {
            assert_eq!(pprof_table(&go_pprof(&file, event, "-top")), naive.heads(event), "{name} {event}");
        }
    }
}

#[test]
fn pprof_of_go_lists_calls_and_what_callers_saw() {
    if !tools::have(&["go"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, path) = profiles().iter().find(|(name, _)| *name == "plain").unwrap();
    let naive = Naive::read(path);
    let file = folder.path().join("pb.gz");
    for stacks in ["flat", "estimated"] {
        fs::write(&file, exported(&["--format=pprof", "--stacks", stacks], &[path])).unwrap();
        let mut calls = ByName::new();
        naive
            .calls
            .iter()
            .for_each(|((_, callee), count)| *calls.entry(callee.clone()).or_default() += i128::from(*count));
        calls.retain(|_, count| *count != 0);
        assert_eq!(pprof_table(&go_pprof(&file, "calls", "-top")), calls, "{stacks}");
        let mut seen = ByName::new();
        naive.inclusive["Ir"].iter().for_each(|((_, callee), cost)| *seen.entry(callee.clone()).or_default() += cost);
        assert_eq!(pprof_table(&go_pprof(&file, "inclusive_Ir", "-top")), seen, "{stacks}");
        let comments = go_pprof(&file, "Ir", "-comments");
        assert_eq!(comments.contains("ESTIMATED"), stacks == "estimated", "{comments}");
        assert_eq!(go_pprof(&file, "Ir", "-tags").contains("estimated"), stacks == "estimated");
    }
}

#[test]
fn speedscope_reads_its_format_folded_stacks_and_traces() {
    let Some(package) = common::speedscope() else { return };
    let folder = tempfile::tempdir().unwrap();
    let read = |files: &[PathBuf]| {
        common::sums(&output(Command::new("node").arg(reader("speedscope.cjs")).arg(&package).args(files)))
    };
    check(read(&written(folder.path(), "speedscope", &[])), |naive| naive.events.clone());
    let mut found = read(&written(folder.path(), "folded", &[]));
    for own in found.iter_mut().flatten() {
        // The mark of estimated stacks has no cost of its own.
        assert!(!own.1.contains_key("[estimated stacks]"));
    }
    check(found, |naive| vec![naive.events[0].clone()]);
    for (name, path) in profiles() {
        let trace = folder.path().join(format!("{name}.json"));
        fs::write(&trace, exported(&["--format=chrome"], &[path])).unwrap();
        let naive = Naive::read(path);
        let parts: ByName = (1..).map(|number| format!("part {number}")).zip(naive.parts).collect();
        assert_eq!(parts.len() > 3, *name == "parts");
        // speedscope shows arguments behind the name.
        let found = read(&[trace]).remove(0).remove(0).1.into_iter();
        let found: ByName = found.map(|(name, cost)| (name.split(" {").next().unwrap().to_owned(), cost)).collect();
        assert_eq!(found, parts, "{name}");
    }
}

#[test]
fn profiles_for_the_firefox_profiler_are_of_its_format() {
    if !common::have_modules(&["json"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), "firefox", &[]);
    check(common::sums(&output(python().arg(reader("firefox.py")).args(files))), |naive| naive.events.clone());
}

/// As it is in the profile, with levels and callers.
#[test]
fn graphviz_draws_graphs_with_the_costs_of_all_functions() {
    if !tools::have(&["dot"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.dot");
    for (name, path) in profiles() {
        fs::write(&file, exported(&["--format=dot"], &[path])).unwrap();
        let svg = output(Command::new("dot").arg("-Tsvg").arg(&file));
        assert!(svg.contains("</svg>") && svg.matches("<g id=\"node").count() > 10, "{name}");
        if *name == "contexts" {
            // Thousands of functions: too much to lay out.
            continue;
        }
        fs::write(&file, exported(&["--format=dot", "--threshold=0"], &[path])).unwrap();
        // A layout that takes no time: just attributes matter.
        let json = output(Command::new("dot").args(["-Kosage", "-Tdot_json"]).arg(&file));
        let graph: serde_json::Value = serde_json::from_str(&json).unwrap();
        let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<i128>().unwrap();
        let naive = Naive::read(path);
        let mut own = ByName::new();
        let objects = graph["objects"].as_array().unwrap();
        for node in objects {
            *own.entry(node["function"].as_str().unwrap().to_owned()).or_default() += number(&node["self"]);
            assert!(number(&node["inclusive"]) >= number(&node["self"]));
            assert!(number(&node["inclusive"]) <= naive.total("Ir"));
        }
        own.retain(|_, cost| *cost != 0);
        assert_eq!(own, naive.own["Ir"], "{name}");
        let (mut calls, mut costs) = (BTreeMap::new(), BTreeMap::new());
        for edge in graph["edges"].as_array().unwrap() {
            let end = |key: &str| {
                objects[usize::try_from(edge[key].as_u64().unwrap()).unwrap()]["function"].as_str().unwrap().to_owned()
            };
            let ends = (end("tail"), end("head"));
            *calls.entry(ends.clone()).or_default() += u64::try_from(number(&edge["calls"])).unwrap();
            *costs.entry(ends).or_default() += number(&edge["cost"]);
        }
        costs.retain(|_, cost: &mut i128| *cost != 0);
        assert_eq!(calls, naive.calls, "{name}");
        assert_eq!(costs, naive.inclusive["Ir"], "{name}");
    }
}

#[test]
fn gprof2dot_reads_folded_stacks_and_imported_profiles() {
    if !common::have_modules(&["gprof2dot"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), "folded", &[]);
    let found = output(python().arg(reader("collapse.py")).arg("collapse").args(&files));
    check(common::sums(&found), |naive| vec![naive.events[0].clone()]);
    let mut imported = Vec::new();
    for file in &files {
        let profile = import(&["--events=Ir"], file);
        assert!(profile.status.success(), "{}", String::from_utf8_lossy(&profile.stderr));
        imported.push(file.with_extension("callgrind"));
        fs::write(imported.last().unwrap(), profile.stdout).unwrap();
    }
    let found = output(python().arg(reader("collapse.py")).arg("callgrind").args(&imported));
    check(common::sums(&found), |naive| vec![naive.events[0].clone()]);
}

#[test]
fn json_has_everything() {
    for (name, path) in profiles() {
        let naive = Naive::read(path);
        let document: serde_json::Value = serde_json::from_slice(&exported(&["--format=json"], &[path])).unwrap();
        let functions = document["functions"].as_array().unwrap();
        let named = |value: &serde_json::Value| {
            functions[usize::try_from(value.as_u64().unwrap()).unwrap()]["name"].as_str().unwrap().to_owned()
        };
        for (event, text) in naive.events.iter().enumerate() {
            let mut sums = [ByName::new(), ByName::new()];
            for function in functions {
                let name = function["name"].as_str().unwrap().to_owned();
                *sums[0].entry(name).or_default() += i128::from(function["self"][event].as_i64().unwrap());
            }
            for line in document["lines"].as_array().unwrap() {
                *sums[1].entry(named(&line["function"])).or_default() +=
                    i128::from(line["costs"][event].as_i64().unwrap());
            }
            for mut sum in sums {
                sum.retain(|_, cost| *cost != 0);
                assert_eq!(sum, naive.own.get(text).cloned().unwrap_or_default(), "{name} {text}");
            }
            assert_eq!(i128::from(document["totals"][event].as_i64().unwrap()), naive.total(text));
        }
        let mut calls = BTreeMap::new();
        for call in document["calls"].as_array().unwrap() {
            *calls.entry((named(&call["caller"]), named(&call["callee"]))).or_default() +=
                call["count"].as_u64().unwrap();
        }
        assert_eq!(calls, naive.calls, "{name}");
        let parts = document["parts"].as_array().unwrap().iter();
        let parts: Vec<i128> = parts.map(|part| i128::from(part["totals"][0].as_i64().unwrap())).collect();
        assert_eq!(parts, naive.parts, "{name}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn duckdb_and_pyarrow_read_the_data_set() {
    if !common::have_modules(&["duckdb", "pyarrow"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let files: Vec<&Path> = profiles().iter().map(|(_, path)| &**path).collect();
    let mut expected = BTreeMap::new();
    for path in &files {
        let text = fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&text);
        let pid = text.lines().find_map(|line| line.strip_prefix("pid: ")).unwrap();
        let naive = Naive::read(path);
        for event in naive.events.iter().filter(|event| naive.own.contains_key(*event)) {
            expected.insert(format!("{pid} {event}"), naive.heads(event));
        }
    }
    let args = ["--format=parquet", "--benchmark=ls -l", "--commit=1e5", "--run=7", "-o", store.to_str().unwrap()];
    // The second time changes nothing.
    for _ in 0..2 {
        exported(&args, &files);
        for how in ["duckdb", "pyarrow"] {
            let found = common::sums(&output(python().arg(reader("table.py")).arg(&store).arg(how)));
            assert_eq!(BTreeMap::from_iter(found.into_iter().flatten()), expected, "{how}");
        }
    }
}
