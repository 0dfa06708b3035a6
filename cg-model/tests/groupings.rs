//! Functions by their numbers, on profiles of real programs: beside a naive twin that follows from the rules alone, and beside what
//! `callgrind_annotate` shows, which puts functions together by file and name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use cg_format::callgrind::{Call, FunctionId, Jump, Names, Outcome, PartHeader, Position, Sink, read};
use cg_format::count::TooLarge;
use cg_model::{Collector, Cost, Detail, Functions, Model, Rules};

fn model(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cg-report/tests/data").join(name);
    let input = cg_cli::input::open(OsStr::new(&path), &Arc::default()).unwrap();
    let mut collected = Collector::new(false);
    let Outcome { header, parts, names, .. } = read(input, name, &mut collected).unwrap();
    let rules = Rules { cycles: true, here: None };
    Model::new(name.to_owned(), header, parts, &names, collected, rules).unwrap()
}

/// What happened where, and the sum of each part; and for the twin, all rows and calls as they come.
#[derive(Default)]
struct Tally {
    detail: Detail,
    sums: Vec<Cost>,
    naive: Naive,
}

/// What a profile says, one by one.
#[derive(Default)]
struct Naive {
    rows: Vec<(usize, Vec<i64>)>,
    calls: Vec<(usize, usize, u64, Vec<i64>)>,
}

impl Naive {
    /// Functions that can be got to from `from`, by any number of calls but none.
    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            let callees = self.calls.iter().filter(|(caller, ..)| *caller == at).map(|(_, callee, ..)| *callee);
            next.extend(callees.collect::<BTreeSet<_>>().into_iter().filter(|callee| reached.insert(*callee)));
        }
        reached
    }

    /// By function: the functions that it reaches and that reach it, itself included if there is any.
    fn groups(&self, count: usize) -> Vec<BTreeSet<usize>> {
        let reached: Vec<_> = (0..count).map(|function| self.reached(function)).collect();
        let both = |a: usize, b: &usize| reached[a].contains(b) && reached[*b].contains(&a);
        (0..count)
            .map(|function| reached[function].iter().copied().filter(|other| both(function, other)).collect())
            .collect()
    }
}

fn values(costs: &[i64], event: usize) -> i64 {
    costs.get(event).copied().unwrap_or(0)
}

impl Sink for Tally {
    fn part(&mut self, header: &PartHeader) {
        self.detail.part(header);
        self.sums.push(Cost::default());
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        self.sums.last_mut().unwrap().add(costs)?;
        self.naive.rows.push((function.index(), costs.to_vec()));
        self.detail.row(function, at, costs)
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        self.naive.calls.push((function.index(), call.callee.index(), call.count, costs.to_vec()));
        self.detail.call(function, at, call, costs)
    }

    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump) {
        self.detail.jump(function, at, jump);
    }
}

fn functions(name: &str) -> (Functions, Detail, Names, Naive) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cg-report/tests/data").join(name);
    let input = cg_cli::input::open(OsStr::new(&path), &Arc::default()).unwrap();
    let mut tally = Tally::default();
    let Outcome { header, parts, names, .. } = read(input, name, &mut tally).unwrap();
    let Tally { mut detail, sums, naive } = tally;
    detail.finish().unwrap();
    (Functions::new(name.to_owned(), header, parts, &sums, &names, &detail).unwrap(), detail, names, naive)
}

#[test]
fn functions_by_numbers_are_those_of_the_rules() {
    let mut cycles = 0;
    for name in ["exact.cg", "rust.cg.xz", "cpp.cg.xz", "cc1.cg.xz", "rust.cachegrind.xz", "threads-01.cg.xz"] {
        let (functions, detail, names, naive) = functions(name);
        let count = names.functions().len();
        let groups = naive.groups(count);
        let within = |a: usize, b: usize| groups[a].contains(&b);
        let rows: BTreeSet<usize> = naive.rows.iter().map(|(function, _)| *function).collect();
        assert!(functions.rows.iter().copied().eq((0..count).map(|function| rows.contains(&function))), "{name}: rows");
        let in_cycle = |function: usize| groups[function].len() > 1;
        assert!(functions.cycle.iter().map(|cycle| *cycle > 0).eq((0..count).map(in_cycle)), "{name}: cycles");
        for (a, b) in groups.iter().enumerate().flat_map(|(a, group)| group.iter().map(move |b| (a, *b))) {
            assert_eq!(functions.cycle[a], functions.cycle[b], "{name}: of one cycle");
        }
        // They are numbered by the names of their first members.
        let named = |id: FunctionId| [names.file_name(names.get(id).file), b":", names.function_name(id)].concat();
        let mut members: Vec<FunctionId> = names.functions().filter(|id| in_cycle(id.index())).collect();
        members.sort_by_key(|id| named(*id));
        let mut most = 0;
        for id in members {
            let number = functions.cycle[id.index()];
            assert!(number <= most + 1, "{name}: cycle {number} after {most}");
            most = most.max(number);
        }
        let numbers: BTreeSet<&BTreeSet<usize>> = groups.iter().filter(|group| group.len() > 1).collect();
        assert_eq!(functions.cycles(), numbers.len(), "{name}");
        cycles += numbers.len();
        for event in 0..functions.events.len() + 1 {
            let mut own = vec![0; count];
            naive.rows.iter().for_each(|(function, costs)| own[*function] += values(costs, event));
            let (mut seen, mut spent) = (vec![None; count], own.clone());
            for (caller, callee, _, costs) in naive.calls.iter().filter(|(a, b, ..)| !within(*a, *b)) {
                *seen[*callee].get_or_insert(0) += values(costs, event);
                spent[*caller] += values(costs, event);
            }
            let inclusive = (0..count).map(|at| seen[at].filter(|_| !in_cycle(at)).unwrap_or(0).max(spent[at]));
            assert!(functions.own(event).eq(own.iter().copied()), "{name}: self costs");
            assert!(functions.inclusive(event).eq(inclusive), "{name}: inclusive costs, event {event}");
            // Of whole cycles: what their members spent, or what was seen of them.
            let of = |cycle: usize, costs: &dyn Fn(usize) -> i64| {
                (0..count).filter(|at| functions.cycle[*at] as usize == cycle + 1).map(costs).sum::<i64>()
            };
            let all = 0..functions.cycles();
            assert!(functions.cycle_own(event).eq(all.clone().map(|cycle| of(cycle, &|at| own[at]))), "{name}: cycles");
            let whole = all.map(|cycle| of(cycle, &|at| spent[at]).max(of(cycle, &|at| seen[at].unwrap_or(0))));
            assert!(functions.cycle_inclusive(event).eq(whole), "{name}: cycles, event {event}");
            assert_eq!((functions.seen(&detail, event), functions.spent(&detail, event)), (seen, spent), "{name}");
        }
        let mut calls: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        naive
            .calls
            .iter()
            .for_each(|(caller, callee, count, _)| *calls.entry((*caller, *callee)).or_default() += count);
        let between = functions.calls.iter().map(|call| {
            assert_eq!(functions.within(call.caller, call.callee), within(call.caller.index(), call.callee.index()));
            ((call.caller.index(), call.callee.index()), call.count)
        });
        assert!(between.eq(calls), "{name}: calls");
    }
    assert!(cycles > 0, "one of them has cycles");
}

#[test]
fn functions_have_the_costs_that_callgrind_annotate_shows() {
    for name in ["exact.cg", "rust.cg.xz", "cpp.cg.xz", "cc1.cg.xz", "rust.cachegrind.xz"] {
        let shown = model(name);
        let (whole, _, ids, _) = functions(name);
        assert_eq!((&shown.total.cost, &shown.part_totals), (&whole.total.cost, &whole.part_totals), "{name}");
        let mut inclusive: HashMap<(&[u8], &[u8]), Vec<&Cost>> = HashMap::new();
        for entry in &shown.entries {
            if let (Some(file), Some(function)) = (&entry.file, &entry.function) {
                inclusive.entry((file, function)).or_default().push(&entry.inclusive);
            }
        }
        let key = |id: FunctionId| (ids.file_name(ids.get(id).file), ids.function_name(id));
        let mut names: HashMap<(&[u8], &[u8]), usize> = HashMap::new();
        ids.functions().for_each(|id| *names.entry(key(id)).or_default() += 1);
        let costs: Vec<Vec<i64>> = (0..whole.events.len()).map(|event| whole.inclusive(event).collect()).collect();
        let mut same = 0;
        for id in ids.functions() {
            let mine: Vec<i64> = costs.iter().map(|costs| costs[id.index()]).collect();
            let Some(inclusive) = inclusive.get(&key(id)) else {
                assert!(mine.iter().all(|cost| *cost == 0), "{name}: only its name is known");
                continue;
            };
            // Names in several objects are one entry there.
            if names[&key(id)] == 1 {
                let is_mine = |cost: &&&Cost| mine.iter().enumerate().all(|(event, n)| cost.value(event) == *n);
                assert!(inclusive.iter().any(|cost| is_mine(&cost)), "{name}: {:?}", key(id));
                same += 1;
            }
        }
        assert!(same * 2 > names.len(), "{name}: {same} of {}", names.len());
        let functions = shown.entries.iter().filter(|entry| entry.function.is_some());
        let sum = functions.map(|entry| i128::from(entry.own.value(0))).sum::<i128>();
        assert_eq!(sum, whole.own(0).map(i128::from).sum::<i128>(), "{name}");
    }
}
