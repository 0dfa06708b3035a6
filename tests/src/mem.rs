//! Runs whose accesses to memory are looked at: totals of each process, and its file of data objects (`mem.out`).

use std::collections::BTreeMap;
use std::path::Path;

use cg_format::mem::Mem;

use crate::run::Job;
use crate::tools;

/// What a process left.
#[derive(Debug)]
pub struct Process {
    /// Totals by event.
    pub events: BTreeMap<String, u64>,
    /// The bytes of its profile.
    pub profile: Vec<u8>,
    /// Its file of data objects, if it has one.
    pub mem: Option<Mem>,
}

/// The totals of a profile, by event.
///
/// # Panics
/// If it has none.
pub fn totals(profile: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(profile);
    let words = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let counts = words("summary:").into_iter().map(|n| n.parse().expect("a number")).chain(std::iter::repeat(0));
    words("events:").into_iter().zip(counts).collect()
}

/// Runs `words` under grind with these options; every process in the order in which they began.
///
/// # Panics
/// If the program fails, or leaves nothing that can be read.
pub fn processes(options: &[&str], words: &[&str], dir: &Path) -> Vec<Process> {
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut profiler = tools::under_test().to_vec();
    profiler.push(format!("--mem-out-file={}/mem.%p", out.path().display()));
    profiler.extend(options.iter().map(|o| (*o).to_owned()));
    let done = Job::new(words.iter().copied(), dir).profiled(&profiler);
    assert!(done.outcome.status.success(), "{options:?}: {}\n{}", done.outcome.show(), done.log);
    assert!(!done.raw.is_empty(), "{}", done.log);
    let of = |(pid, profile): &(String, Vec<u8>)| {
        let text = std::fs::read(out.path().join(format!("mem.{pid}"))).ok();
        let mem = text.map(|text| Mem::read(&mut text.as_slice()).unwrap_or_else(|e| panic!("{pid}: {e}")));
        Process { events: totals(profile), profile: profile.clone(), mem }
    };
    done.raw.iter().map(of).collect()
}
