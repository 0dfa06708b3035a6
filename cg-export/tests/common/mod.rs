//! What the tests of this crate share: real profiles, a naive reader of them, and readers of other programs.
//!
//! The naive reader knows nothing of the crates under test, so that a mistake there cannot hide itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use grind_tests::{run, tools};

/// Costs by name.
pub(crate) type ByName = BTreeMap<String, i128>;

/// What a profile says, read naively.
#[derive(Debug, Default)]
pub(crate) struct Naive {
    pub(crate) events: Vec<String>,
    /// Self cost by event and function; those of 0 are left out.
    pub(crate) own: BTreeMap<String, ByName>,
    /// Calls by caller and callee.
    pub(crate) calls: BTreeMap<(String, String), u64>,
    /// Inclusive cost by event, then by caller and callee.
    pub(crate) inclusive: BTreeMap<String, BTreeMap<(String, String), i128>>,
    /// Totals of the first event, part by part.
    pub(crate) parts: Vec<i128>,
    /// Stacks are those of whole chains of calls, in whose names levels of recursion are not told apart.
    pub(crate) whole: bool,
}

impl Naive {
    /// Reads a callgrind profile without compressed strings and positions, of lines alone.
    pub(crate) fn read(path: &Path) -> Self {
        let mut naive = Self::default();
        let (mut function, mut callee, mut call) = (String::new(), String::new(), None);
        let text = std::fs::read(path).unwrap();
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some(events) = line.strip_prefix("events: ") {
                naive.events = events.split(' ').map(str::to_owned).collect();
                naive.parts.push(0);
            } else if let Some(name) = line.strip_prefix("fn=") {
                function = name.to_owned();
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("calls=") {
                call = Some(rest.split(' ').next().unwrap().parse::<u64>().unwrap());
            } else if line.starts_with(|c: char| c.is_ascii_digit()) {
                let costs: Vec<i128> = line.split(' ').skip(1).map(|cost| cost.parse().unwrap()).collect();
                let count = call.take();
                if let Some(count) = count {
                    *naive.calls.entry((function.clone(), callee.clone())).or_default() += count;
                } else if let Some(cost) = costs.first() {
                    *naive.parts.last_mut().unwrap() += cost;
                }
                for (event, cost) in naive.events.iter().zip(costs).filter(|(_, cost)| *cost != 0) {
                    if count.is_some() {
                        let of = naive.inclusive.entry(event.clone()).or_default();
                        *of.entry((function.clone(), callee.clone())).or_default() += cost;
                    } else {
                        *naive.own.entry(event.clone()).or_default().entry(function.clone()).or_default() += cost;
                    }
                }
            }
        }
        assert!(!naive.own.is_empty(), "{}: no costs", path.display());
        naive
    }

    /// Self cost of an event by function without its callers. No name in the profiles has an apostrophe of its own.
    pub(crate) fn heads(&self, event: &str) -> ByName {
        let mut heads = ByName::new();
        for (name, cost) in self.own.get(event).into_iter().flatten() {
            let mut parts = name.split('\'');
            let mut head = parts.next().unwrap().to_owned();
            let level = parts.next().filter(|level| level.bytes().all(|byte| byte.is_ascii_digit()));
            if let Some(level) = level.filter(|_| !self.whole) {
                head = format!("{head}'{level}");
            }
            *heads.entry(head).or_default() += cost;
        }
        heads
    }

    pub(crate) fn total(&self, event: &str) -> i128 {
        self.own.get(event).map_or(0, |own| own.values().sum())
    }
}

/// The profiles that every format is tested with: a plain one with all simulations, one with contexts, one of many parts.
pub(crate) fn profiles() -> &'static [(&'static str, PathBuf)] {
    static PROFILES: OnceLock<(tempfile::TempDir, Vec<(&'static str, PathBuf)>)> = OnceLock::new();
    let (_, profiles) = PROFILES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let kinds: [(&str, &[&str]); 4] = [
            ("plain", &["--cache-sim=yes", "--branch-sim=yes"]),
            ("contexts", &["--separate-callers=50"]),
            ("chains", &["--separate-callers=all"]),
            ("parts", &["--dump-every-bb=20000", "--combine-dumps=yes"]),
        ];
        let profiles = kinds.iter().map(|(name, options)| {
            let path = folder.path().join(name);
            let mut words = tools::under_test().to_vec();
            words.extend(["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"].map(str::to_owned));
            words.push(format!("--callgrind-out-file={}", path.display()));
            words.extend(options.iter().copied().chain(["ls", "-l", "/usr"]).map(str::to_owned));
            let done = run::command(&words, folder.path()).output().unwrap();
            assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
            (*name, path)
        });
        let profiles = profiles.collect();
        (folder, profiles)
    });
    profiles
}

/// Ways to make stacks of a profile.
pub(crate) const STACKS: [&[&str]; 3] = [&[], &["--stacks=flat"], &["--stacks=estimated"]];

pub(crate) fn export(args: &[&str], files: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cg_export")).args(args).args(files).output().unwrap()
}

pub(crate) fn exported(args: &[&str], files: &[&Path]) -> Vec<u8> {
    let output = export(args, files);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn import(args: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cg_import")).args(args).arg(file).output().unwrap()
}

/// Runs a program and gives what it printed.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

/// A script of `tests/readers`.
pub(crate) fn reader(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers").join(name)
}

/// A python with what `.ci/run` installs for it.
pub(crate) fn python() -> Command {
    let mut python = Command::new("python3");
    let mut path = tools::workspace_root().join("target/python").into_os_string();
    if let Some(more) = std::env::var_os("PYTHONPATH") {
        path.push(":");
        path.push(more);
    }
    python.env("PYTHONPATH", path);
    python
}

/// Whether python has all these modules. A missing one fails the test where `CI` is set.
pub(crate) fn have_modules(modules: &[&str]) -> bool {
    if !tools::have(&["python3"]) {
        return false;
    }
    let missing: Vec<_> = modules
        .iter()
        .filter(|module| !python().args(["-c", &format!("import {module}")]).output().unwrap().status.success())
        .collect();
    told(&missing)
}

/// The folder of the npm package `speedscope`, if it is there.
pub(crate) fn speedscope() -> Option<PathBuf> {
    let folder = tools::workspace_root().join("target/node/node_modules/speedscope");
    let there =
        tools::have(&["node"]) && told(if folder.exists() { &[] } else { &["target/node/node_modules/speedscope"] });
    there.then_some(folder)
}

fn told<T: std::fmt::Debug>(missing: &[T]) -> bool {
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "not found: {missing:?} (CI is set, so nothing may be skipped)");
    eprintln!("skipped: not found: {missing:?}");
    false
}

/// What a script of `tests/readers` printed of files: for each of them profiles, by name, with costs by function.
pub(crate) fn sums(json: &str) -> Vec<Vec<(String, ByName)>> {
    let whole = |value: &serde_json::Value| {
        let number = value.as_f64().expect("a number");
        assert!(number.fract() == 0.0 && number.abs() < 9e15, "{number} is not exact");
        #[allow(clippy::cast_possible_truncation)]
        let number = number as i128;
        number
    };
    let files: serde_json::Value = serde_json::from_str(json).unwrap();
    let files = files.as_array().unwrap().iter().map(|profiles| {
        let profiles = profiles.as_array().unwrap().iter().map(|profile| {
            let own = profile["self"].as_object().unwrap().iter();
            let own: ByName =
                own.map(|(name, cost)| (name.clone(), whole(cost))).filter(|(_, cost)| *cost != 0).collect();
            assert_eq!(own.values().sum::<i128>(), whole(&profile["total"]), "the reader's own total");
            (profile["name"].as_str().unwrap().to_owned(), own)
        });
        profiles.collect()
    });
    files.collect()
}
