//! Code that a program makes while it runs has the names that the program gives it, and code that took the place of other code has its
//! own: by perf maps, jitdump files and GDB's JIT interface, in both tools, in memory of its own and in shared memory, and in a copy
//! of the process that made it.

use std::collections::BTreeMap;
use std::path::Path;

use grind_tests::build::compile;
use grind_tests::run::Job;
use grind_tests::tools;

/// Self costs by names of functions, with the names of files that are known.
fn costs(profile: &[u8]) -> BTreeMap<String, (u64, String)> {
    let (mut all, mut names): (BTreeMap<String, (u64, String)>, BTreeMap<String, String>) = Default::default();
    let (mut function, mut file, mut call) = (String::new(), String::new(), false);
    let mut name = |kind: char, text: &str| {
        let number = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        match number.filter(|(number, _)| number.parse::<u32>().is_ok()) {
            Some((number, "")) => names[&format!("{kind}{number}")].clone(),
            Some((number, rest)) => {
                names.insert(format!("{kind}{number}"), rest.trim_start().to_owned());
                rest.trim_start().to_owned()
            }
            None => text.to_owned(),
        }
    };
    for line in String::from_utf8_lossy(profile).lines() {
        if let Some(text) = line.strip_prefix("fn=") {
            function = name('f', text);
        } else if let Some(text) = line.strip_prefix("cfn=") {
            name('f', text);
        } else if let Some(text) = line.strip_prefix("fl=") {
            file = name('l', text);
        } else if let Some(text) = ["fi=", "fe=", "cfi=", "cfl="].iter().find_map(|key| line.strip_prefix(key)) {
            name('l', text);
        } else if line.starts_with("calls=") {
            call = true;
        } else if line.starts_with(['+', '-', '*']) || line.starts_with(|c: char| c.is_ascii_digit()) {
            if std::mem::take(&mut call) {
                continue;
            }
            let cost = line.split(' ').nth(1).map_or(0, |n| n.parse::<u64>().expect("a number"));
            let entry = all.entry(function.clone()).or_default();
            entry.0 += cost;
            entry.1.clone_from(&file);
        }
    }
    all
}

/// What the functions that are made cost, by process.
fn made(maker: &Path, options: &[&str], words: &[&str], dir: &Path) -> Vec<[(u64, String); 3]> {
    let path = maker.display().to_string();
    let command = std::iter::once(path.as_str()).chain(words.iter().copied());
    let way: Vec<String> = tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect();
    let done = Job::new(command, dir).profiled(&way);
    assert!(done.outcome.status.success(), "{options:?} {words:?}: {}\n{}", done.outcome.show(), done.log);
    let of = |profile: &Vec<u8>| {
        let mut all = costs(profile);
        ["first", "second", "beside"].map(|name| all.remove(name).unwrap_or_default())
    };
    let mut all: Vec<_> = done.raw.iter().map(|(_, profile)| of(profile)).collect();
    all.sort();
    all
}

#[test]
fn code_has_the_name_that_it_had_when_it_ran() {
    let dir = tempfile::tempdir().expect("a folder");
    let maker = dir.path().join("maker");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/made/maker.c");
    let words = ["gcc", "-O1", "-w", "-pthread", "-o"].map(str::to_owned).into_iter();
    compile(&words.chain([&maker, &source].map(|p| p.display().to_string())).collect::<Vec<_>>(), dir.path());
    let each = |times: u64| 2 * times + 2;
    let expected = |line: &str, second: u64| {
        [(each(1000), line), (second * each(500), line), (each(30), line)].map(|(n, file)| (n, file.to_owned()))
    };
    let tools: [&[&str]; 3] = [&[], &["--tool=callgrind"], &["--tool=callgrind", "--tell-calls=yes"]];
    for options in tools {
        for words in [&["map"][..], &["map", "shared"], &["map", "thread"], &["gdb"], &["gdb", "thread"]] {
            let found = made(&maker, options, words, dir.path());
            assert_eq!(found, [expected("???", 3), expected("???", 4)], "{options:?} {words:?}: parent and child");
        }
        for words in [&["dump"][..], &["dump", "shared"], &["dump", "thread"]] {
            let found = made(&maker, options, words, dir.path());
            assert_eq!(found, [expected("made.x", 3)], "{options:?} {words:?}");
        }
    }
    // What is written only when the program ends: with times it is exact where names are asked for at the end.
    assert_eq!(made(&maker, &[], &["late"], dir.path()), [expected("made.x", 3)]);
    // Where there is neither time nor order, nothing is lost, and what is alone at its place has its name.
    let found = made(&maker, &[], &["buffered"], dir.path());
    let all = found.iter().find(|all| all[2].0 > 0).expect("the parent's");
    assert_eq!((all[0].0 + all[1].0, all[2].0), (each(1000) + 3 * each(500), each(30)));
}
