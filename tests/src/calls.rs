//! A naive reader of `callgrind.out` files without any compression, a second one beside cg-format's so that neither hides the
//! other's mistakes: what tests compare that make a profile in two ways.

use std::collections::{BTreeMap, BTreeSet};

/// Self costs by function and line, then calls and their costs by caller, line, and callee.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// By what they are of, as text.
    pub counts: BTreeMap<String, u64>,
    /// The sums of all parts, by event.
    pub summary: Vec<u64>,
}

/// Reads a profile without any compression. Rows of several files or objects in one function count as theirs.
///
/// # Panics
/// If it is none.
pub fn parse(bytes: &[u8]) -> Told {
    let text = String::from_utf8_lossy(bytes);
    let mut told = Told::default();
    let (mut object, mut file, mut function, mut callee) = Default::default();
    let mut call = None;
    let mut jump = None;
    let mut events: Vec<&str> = Vec::new();
    let mut positions = 1;
    let mut chains = Chains::default();
    for line in text.lines() {
        let of = |key: &str| line.strip_prefix(key).map(str::to_owned);
        if let Some(name) = of("ob=") {
            object = name;
        } else if let Some(name) = of("fl=").or(of("fi=")).or(of("fe=")) {
            file = name;
        } else if let Some(name) = of("fn=") {
            function = name;
        } else if let Some(name) = of("cfn=") {
            callee = name;
        } else if let Some(rest) = of("calls=") {
            call = rest.split(' ').next().map(|n| n.parse().expect("a number"));
        } else if let Some(rest) = of("jump=").or(of("jcnd=")) {
            jump = Some(rest);
        } else if let Some(kinds) = line.strip_prefix("positions:") {
            positions = kinds.split_whitespace().count();
        } else if let Some(names) = line.strip_prefix("events:") {
            events = names.split_whitespace().collect();
        } else if let Some(totals) = of("summary:") {
            told.summary.resize(events.len(), 0);
            for (sum, total) in told.summary.iter_mut().zip(totals.split_whitespace()) {
                *sum += total.parse::<u64>().expect("a total");
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (at, costs) = words.split_at(positions);
            let costs: Vec<u64> = costs.iter().map(|cost| cost.parse().expect("a cost")).collect();
            let here: String = format!("{object} {file} {function} {}", at.join(" "));
            if let Some(jump) = jump.take() {
                *told.counts.entry(format!("{here} jumps {jump}")).or_default() += 1;
                continue;
            }
            let mut add = |key, n: u64| *told.counts.entry(key).or_default() += n;
            let of = call.take().map_or(here.clone(), |calls| {
                add(format!("{here} -> {callee}: calls"), calls);
                format!("{here} -> {callee}: cost")
            });
            for (event, cost) in events.iter().zip(costs) {
                add(if *event == "Ir" { of.clone() } else { format!("{of} {event}") }, cost);
            }
        } else if let Some(range) = line.strip_prefix("desc: Timerange: Basic block ") {
            // How many there were hangs on what was executed alone, too.
            let (begins, ends) = range.split_once(" - ").expect("two numbers");
            let [begins, ends] = [begins, ends].map(|n| n.parse::<u64>().expect("a number of blocks"));
            *told.counts.entry("basic blocks".to_owned()).or_default() += ends - begins;
        } else if line.starts_with('#') {
            chains.line(line, &events, &mut told.counts);
        }
    }
    let _: (String, String, String, String) = (object, file, function, callee);
    told.counts.retain(|_, n| *n != 0);
    told
}

/// What has been read of whole chains of calls.
#[derive(Default)]
struct Chains {
    place: [String; 2],
    functions: Vec<String>,
    /// The callers of the next one.
    chain: Vec<usize>,
}

impl Chains {
    /// A line that is a comment to others.
    fn line(&mut self, line: &str, events: &[&str], counts: &mut BTreeMap<String, u64>) {
        if line.starts_with("#chains:") {
            self.functions.clear();
        } else if let Some(name) = line.strip_prefix("#ob=") {
            self.place[0] = name.to_owned();
        } else if let Some(name) = line.strip_prefix("#fl=") {
            self.place[1] = name.to_owned();
        } else if let Some(name) = line.strip_prefix("#fn=") {
            self.functions.push(format!("{} {} {name}", self.place[0], self.place[1]));
        } else if let Some(numbers) = line.strip_prefix("#c=") {
            let numbers: Vec<u64> = numbers.split(' ').map(|n| n.parse().expect("a number")).collect();
            self.chain.truncate(numbers[0] as usize);
            self.chain.push(numbers[1] as usize);
            let functions: Vec<&str> = self.chain.iter().map(|n| &self.functions[*n][..]).collect();
            let chain = functions.join(" / ");
            *counts.entry(format!("chain {chain}: calls")).or_default() += numbers[2];
            for (event, cost) in events.iter().zip(&numbers[3..]) {
                *counts.entry(format!("chain {chain} {event}")).or_default() += cost;
            }
        }
    }
}

impl Told {
    /// Where `self`, which was told, and `followed` differ in what is `wanted`, a line for each difference.
    pub fn differences(&self, followed: &Told, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let keys: BTreeSet<&String> = self.counts.keys().chain(followed.counts.keys()).collect();
        keys.into_iter()
            .filter(|key| wanted(key) && self.counts.get(*key) != followed.counts.get(*key))
            .map(|key| format!("{key}: told {:?}, followed {:?}", self.counts.get(key), followed.counts.get(key)))
            .collect()
    }
}
