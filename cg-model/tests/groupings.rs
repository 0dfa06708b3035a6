//! Both ways to put functions together say the same of what they share, on profiles of real programs.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use cg_format::callgrind::{Call, FunctionId, Jump, Names, Outcome, PartHeader, Position, Sink, read};
use cg_format::count::TooLarge;
use cg_model::{Collector, Cost, Detail, Functions, Grouping, Model, Rules};

fn model(name: &str, grouping: Grouping) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cg-report/tests/data").join(name);
    let input = cg_cli::input::open(OsStr::new(&path), &Arc::default()).unwrap();
    let mut collected = Collector::new(false);
    let Outcome { header, parts, names, .. } = read(input, name, &mut collected).unwrap();
    let rules = Rules { grouping, cycles: true, here: None };
    Model::new(name.to_owned(), header, parts, &names, collected, rules).unwrap()
}

/// What happened where, and the sum of each part.
#[derive(Default)]
struct Tally {
    detail: Detail,
    sums: Vec<Cost>,
}

impl Sink for Tally {
    fn part(&mut self, header: &PartHeader) {
        self.detail.part(header);
        self.sums.push(Cost::default());
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        self.sums.last_mut().unwrap().add(costs)?;
        self.detail.row(function, at, costs)
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        self.detail.call(function, at, call, costs)
    }

    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump) {
        self.detail.jump(function, at, jump);
    }
}

fn functions(name: &str) -> (Functions, Detail, Names) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cg-report/tests/data").join(name);
    let input = cg_cli::input::open(OsStr::new(&path), &Arc::default()).unwrap();
    let mut tally = Tally::default();
    let Outcome { header, parts, names, .. } = read(input, name, &mut tally).unwrap();
    let Tally { mut detail, sums } = tally;
    detail.finish().unwrap();
    (Functions::new(name.to_owned(), header, parts, &sums, &names, &detail).unwrap(), detail, names)
}

#[test]
fn functions_by_numbers_are_those_of_the_model() {
    let mut cycles = 0;
    for name in ["exact.cg", "rust.cg.xz", "cpp.cg.xz", "cc1.cg.xz", "rust.cachegrind.xz", "threads-01.cg.xz"] {
        let model = model(name, Grouping::Function);
        let (functions, detail, names) = functions(name);
        assert_eq!((&functions.total.cost, &functions.part_totals), (&model.total.cost, &model.part_totals), "{name}");
        let (own, whole) = model.entries.split_at(names.functions().len());
        let cycle = |entry: &cg_model::Entry| entry.cycle.map_or(0, |cycle| u32::try_from(cycle).unwrap());
        assert!(functions.cycle.iter().copied().eq(own.iter().map(cycle)), "{name}: cycles");
        assert!(functions.rows.iter().copied().eq(own.iter().map(|entry| entry.rows)), "{name}: rows");
        assert_eq!(functions.cycles(), whole.len(), "{name}");
        cycles += whole.len();
        for event in 0..model.events.len() + 1 {
            assert!(functions.own(event).eq(own.iter().map(|entry| entry.own.value(event))), "{name}: self");
            assert!(
                functions.inclusive(event).eq(own.iter().map(|entry| entry.inclusive.value(event))),
                "{name}: {event}"
            );
            assert!(functions.cycle_own(event).eq(whole.iter().map(|entry| entry.own.value(event))), "{name}: cycles");
            assert!(
                functions.cycle_inclusive(event).eq(whole.iter().map(|entry| entry.inclusive.value(event))),
                "{name}"
            );
            let (mut seen, mut spent) = (vec![None; own.len()], vec![0; own.len()]);
            own.iter().zip(&mut spent).for_each(|(entry, spent)| *spent = entry.own.value(event));
            for link in model.links.iter().filter(|link| link.caller.max(link.callee) < own.len()) {
                if let Some(cost) = &link.cost {
                    *seen[link.callee].get_or_insert(0) += cost.value(event);
                    spent[link.caller] += cost.value(event);
                }
            }
            assert_eq!((functions.seen(&detail, event), functions.spent(&detail, event)), (seen, spent), "{name}");
        }
        let mut links: Vec<_> = model.links.iter().filter(|link| link.caller.max(link.callee) < own.len()).collect();
        links.sort_by_key(|link| (link.caller, link.callee));
        let links = links.iter().map(|link| (link.caller, link.callee, link.count, link.cost.is_none()));
        let between = functions.calls.iter().map(|call| {
            (call.caller.index(), call.callee.index(), call.count, functions.within(call.caller, call.callee))
        });
        assert!(between.eq(links), "{name}: calls");
    }
    assert!(cycles > 0, "one of them has cycles");
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
