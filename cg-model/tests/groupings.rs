//! Both ways to put functions together say the same of what they share, on profiles of real programs.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use cg_format::callgrind::{Outcome, read};
use cg_model::{Collector, Cost, Grouping, Model, Rules};

fn model(name: &str, grouping: Grouping) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cg-report/tests/data").join(name);
    let input = cg_cli::input::open(OsStr::new(&path), &Arc::default()).unwrap();
    let mut collected = Collector::new(false);
    let Outcome { header, parts, names, .. } = read(input, name, &mut collected).unwrap();
    let rules = Rules { grouping, cycles: true, here: None };
    Model::new(name.to_owned(), header, parts, &names, collected, rules).unwrap()
}

#[test]
fn functions_have_the_costs_that_callgrind_annotate_shows() {
    for name in ["exact.cg", "rust.cg.xz", "cpp.cg.xz", "cc1.cg.xz", "rust.cachegrind.xz"] {
        let shown = model(name, Grouping::FileAndName);
        let whole = model(name, Grouping::Function);
        assert_eq!(shown.total.cost, whole.total.cost, "{name}");
        let mut inclusive: HashMap<(&[u8], &[u8]), Vec<&Cost>> = HashMap::new();
        for entry in &shown.entries {
            if let (Some(file), Some(function)) = (&entry.file, &entry.function) {
                inclusive.entry((file, function)).or_default().push(&entry.inclusive);
            }
        }
        let mut names: HashMap<(&[u8], &[u8]), usize> = HashMap::new();
        for entry in &whole.entries {
            if let (Some(file), Some(function)) = (&entry.file, &entry.function) {
                *names.entry((file, function)).or_default() += 1;
            }
        }
        let mut same = 0;
        for entry in &whole.entries {
            let (Some(file), Some(function)) = (&entry.file, &entry.function) else { continue };
            let key = (file.as_slice(), function.as_slice());
            let Some(inclusive) = inclusive.get(&key) else {
                assert_eq!(entry.inclusive, Cost::default(), "{name}: only its name is known");
                continue;
            };
            // Names in several objects are one entry there.
            if names[&key] == 1 {
                assert!(inclusive.contains(&&entry.inclusive), "{name}: {}", String::from_utf8_lossy(&entry.name));
                same += 1;
            }
        }
        assert!(same * 2 > names.len(), "{name}: {same} of {}", names.len());
        let sum = |model: &Model| {
            let functions = model.entries.iter().filter(|entry| entry.function.is_some());
            functions.map(|entry| i128::from(entry.own.value(0))).sum::<i128>()
        };
        assert_eq!(sum(&shown), sum(&whole), "{name}");
    }
}
