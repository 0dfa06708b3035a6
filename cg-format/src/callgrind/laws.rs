//! What is true of every call graph, whatever was profiled and with which options. Tests ask this of each profile that they
//! make: [`breaches`] names function, arc and both numbers of whatever is not so.
//!
//! Per part and event:
//! 1. The rows add up to `summary:` and `totals:`.
//! 2. No cost is negative.
//! 3. No arc costs more than everything. Arcs within a cycle are left out: a recursive call's cost is in that of the call
//!    around it, so they may add up to more.
//! 4. What calls of a function cost is at most its own cost and that of its calls. It is less where the function ran without
//!    a caller, too: as the first one of a thread, or as a handler. Functions of a cycle are taken together.
//! 5. What whole chains of calls cost by themselves adds up to what everything costs, if there are chains.
//! 6. A conditional jump jumps at most as often as it is executed.
//!
//! Which functions ran without a caller is told by [`roots`]: tests that know their program compare that with what they know.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;

use super::error::ReadError;
use super::model::{JumpKind, Part, Site};
use super::names::{FunctionId, Names};
use super::profile::Profile;
use super::read::{PartEnd, read};

/// A law that a profile does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The part, by its place in the file, from 1.
    pub part: usize,
    /// The event, or nothing where it is none's.
    pub event: String,
    /// What is broken, and where.
    pub law: Law,
    /// What the profile says.
    pub found: i128,
    /// What it should be, or at most be.
    pub bound: i128,
}

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// A line of sums (`summary:` or `totals:`) is not the sum of the rows.
    Sum(&'static str),
    /// Chains of calls do not add up to the rows.
    Chains,
    /// A function, or an arc of it, has a negative cost.
    Negative(String),
    /// An arc costs more than everything.
    ArcAboveTotal(String),
    /// A function, or a cycle of several, was called for more than it and its calls cost.
    CalledForMore(String),
    /// A conditional jump jumps more often than it is executed.
    Jump(String),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, event, law, found, bound } = self;
        write!(f, "part {part}, {event}: ")?;
        match law {
            Law::Sum(line) => write!(f, "`{line}` says {found}, the rows add up to {bound}"),
            Law::Chains => write!(f, "chains of calls add up to {found}, the rows to {bound}"),
            Law::Negative(what) => write!(f, "{what} costs {found}"),
            Law::ArcAboveTotal(arc) => write!(f, "the arc {arc} costs {found} of {bound} in all"),
            Law::CalledForMore(function) => {
                write!(f, "calls of {function} cost {found}, but it and what it calls {bound}")
            }
            Law::Jump(place) => write!(f, "{place} jumps {found} times of {bound}"),
        }
    }
}

/// Reads a profile and says what is wrong with it, in the order of the file.
///
/// # Errors
/// What is not of this format.
pub fn breaches(input: impl Read, name: &str) -> Result<Vec<Breach>, ReadError> {
    let mut profile = Profile::default();
    let outcome = read(input, name, &mut profile)?;
    let mut found = Vec::new();
    for (at, (part, end)) in profile.parts.iter().zip(&outcome.parts).enumerate() {
        Graph::new(at + 1, part, &outcome.names).check(end, &mut found);
    }
    Ok(found)
}

/// The functions of a part that ran without a caller, and what that cost of the first event. Of a cycle, one is named.
#[must_use]
pub fn roots(part: &Part, names: &Names) -> Vec<(FunctionId, i128)> {
    let graph = Graph::new(1, part, names);
    let mut least: Vec<Option<FunctionId>> = vec![None; graph.cycles];
    for body in part.bodies().iter().map(|body| body.function) {
        let known = &mut least[graph.cycle_of[&body]];
        *known = Some(known.map_or(body, |known| known.min(body)));
    }
    let sums = graph.sums(0);
    let of = |(function, sum): (Option<FunctionId>, Sums)| Some((function?, sum.own + sum.calls - sum.called));
    least.into_iter().zip(sums).filter_map(of).filter(|(_, cost)| *cost > 0).collect()
}

/// Of a function, or the functions of a cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    own: i128,
    /// What calls of others cost.
    calls: i128,
    /// What calls by others cost.
    called: i128,
}

struct Graph<'a> {
    number: usize,
    part: &'a Part,
    names: &'a Names,
    /// The cycle of each function: one of its own, if it is in none.
    cycle_of: HashMap<FunctionId, usize>,
    cycles: usize,
}

impl<'a> Graph<'a> {
    fn new(number: usize, part: &'a Part, names: &'a Names) -> Self {
        let mut calls: HashMap<FunctionId, Vec<FunctionId>> = HashMap::new();
        let mut order = Vec::new();
        let mut know = |calls: &mut HashMap<_, _>, function| {
            calls.entry(function).or_insert_with(|| {
                order.push(function);
                Vec::new()
            });
        };
        for body in part.bodies() {
            know(&mut calls, body.function);
            for entry in &body.entries {
                if let Site::Call { call, .. } = entry.site {
                    know(&mut calls, call.callee);
                    calls.entry(body.function).or_default().push(call.callee);
                }
            }
        }
        let (cycle_of, cycles) = cycles(&order, &calls);
        Self { number, part, names, cycle_of, cycles }
    }

    fn name(&self, function: FunctionId) -> String {
        String::from_utf8_lossy(self.names.function_name(function)).into_owned()
    }

    fn sums(&self, event: usize) -> Vec<Sums> {
        let mut sums = vec![Sums::default(); self.cycles];
        for body in self.part.bodies() {
            let here = self.cycle_of[&body.function];
            for entry in &body.entries {
                match entry.site {
                    Site::Row { costs } => sums[here].own += i128::from(body.costs(costs)[event]),
                    Site::Call { call, costs } => {
                        let (there, cost) = (self.cycle_of[&call.callee], i128::from(body.costs(costs)[event]));
                        if here != there {
                            sums[here].calls += cost;
                            sums[there].called += cost;
                        }
                    }
                    Site::Jump(_) => {}
                }
            }
        }
        sums
    }

    fn check(&self, end: &PartEnd, found: &mut Vec<Breach>) {
        let totals = self.part.total();
        let chains = self.part.chains().total();
        for (event, name) in self.part.header.events.iter().enumerate() {
            let mut breach = |law, found_here, bound| {
                found.push(Breach { part: self.number, event: name.clone(), law, found: found_here, bound });
            };
            for (line, stated) in [("summary:", &end.summary), ("totals:", &end.totals)] {
                if let Some(stated) = stated {
                    let stated = stated.get(event).copied().unwrap_or(0);
                    if stated != totals[event] {
                        breach(Law::Sum(line), stated, totals[event]);
                    }
                }
            }
            if !self.part.chains().all().is_empty() && chains[event] != totals[event] {
                breach(Law::Chains, chains[event], totals[event]);
            }
            for body in self.part.bodies() {
                for entry in &body.entries {
                    match entry.site {
                        Site::Row { costs } if body.costs(costs)[event] < 0 => {
                            let what = format!("{} in line {}", self.name(body.function), entry.at.place.line);
                            breach(Law::Negative(what), body.costs(costs)[event].into(), 0);
                        }
                        Site::Call { call, costs } => {
                            let cost = i128::from(body.costs(costs)[event]);
                            let (from, to) = (body.function, call.callee);
                            let line = entry.at.place.line;
                            let arc = || format!("{} (line {line}) -> {}", self.name(from), self.name(to));
                            if cost < 0 {
                                breach(Law::Negative(arc()), cost, 0);
                            } else if cost > totals[event] && self.cycle_of[&from] != self.cycle_of[&to] {
                                breach(Law::ArcAboveTotal(arc()), cost, totals[event]);
                            }
                        }
                        _ => {}
                    }
                }
            }
            for (cycle, sums) in self.sums(event).into_iter().enumerate() {
                if sums.called > sums.own + sums.calls {
                    let mut members: Vec<String> =
                        self.cycle_of.iter().filter(|(_, c)| **c == cycle).map(|(f, _)| self.name(*f)).collect();
                    members.sort();
                    breach(Law::CalledForMore(members.join(", ")), sums.called, sums.own + sums.calls);
                }
            }
        }
        self.check_jumps(found);
    }

    fn check_jumps(&self, found: &mut Vec<Breach>) {
        for body in self.part.bodies() {
            for entry in &body.entries {
                if let Site::Jump(jump) = entry.site
                    && let JumpKind::Conditional { taken, executed } = jump.kind
                    && taken > executed
                {
                    let place = format!("{} in line {}", self.name(body.function), entry.at.place.line);
                    let (part, event) = (self.number, "jumps".to_owned());
                    let (found_here, bound) = (taken.into(), executed.into());
                    found.push(Breach { part, event, law: Law::Jump(place), found: found_here, bound });
                }
            }
        }
    }
}

/// The strongly connected components, by Tarjan's algorithm without recursion: the number of each function's, and how many.
fn cycles(order: &[FunctionId], calls: &HashMap<FunctionId, Vec<FunctionId>>) -> (HashMap<FunctionId, usize>, usize) {
    let mut found: HashMap<FunctionId, usize> = HashMap::new();
    let mut cycles = 0;
    // When a function was met, and the earliest one on the stack that it leads to.
    let mut met: HashMap<FunctionId, (usize, usize)> = HashMap::new();
    let mut stack: Vec<FunctionId> = Vec::new();
    for first in order {
        if met.contains_key(first) {
            continue;
        }
        // A function and how many of its calls have been followed.
        let mut path: Vec<(FunctionId, usize)> = vec![(*first, 0)];
        while let Some((function, next)) = path.last_mut() {
            let function = *function;
            if *next == 0 {
                let now = met.len();
                met.insert(function, (now, now));
                stack.push(function);
            }
            if let Some(callee) = calls[&function].get(*next) {
                *next += 1;
                match met.get(callee).copied() {
                    None => path.push((*callee, 0)),
                    Some((when, _)) if !found.contains_key(callee) => {
                        let low = &mut met.get_mut(&function).expect("it has been met").1;
                        *low = (*low).min(when);
                    }
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            let (when, low) = met[&function];
            if let Some((above, _)) = path.last() {
                let above = &mut met.get_mut(above).expect("it has been met").1;
                *above = (*above).min(low);
            }
            if low == when {
                while let Some(member) = stack.pop() {
                    found.insert(member, cycles);
                    if member == function {
                        break;
                    }
                }
                cycles += 1;
            }
        }
    }
    (found, cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "events: Ir Dr\nfn=main\n1 10 1\ncfn=f\ncalls=2 1\n2 90 3\nfn=f\n3 30 3\ncfn=g\ncalls=1 1\n4 60\n\
                        fn=g\n5 40\ncfn=g'2\ncalls=1 1\n6 20\nfn=g'2\n7 20\ncfn=g'2\ncalls=9 1\n7 190\ntotals: 100 4\n";

    fn broken(from: &str, to: &str) -> Vec<String> {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD);
        breaches(text.as_bytes(), "p").unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_call_graph_keeps_the_laws() {
        assert_eq!(breaches(GOOD.as_bytes(), "p").unwrap(), []);
    }

    #[test]
    fn what_is_broken_is_named_with_both_numbers() {
        assert_eq!(broken("totals: 100", "totals: 101"), ["part 1, Ir: `totals:` says 101, the rows add up to 100"]);
        assert_eq!(broken("4 60", "4 61"), ["part 1, Ir: calls of g cost 61, but it and what it calls 60"]);
        let above = broken("2 90 3", "2 101 3");
        assert_eq!(above[0], "part 1, Ir: the arc main (line 2) -> f costs 101 of 100 in all");
        assert_eq!(broken("2 90 3", "2 90 4"), ["part 1, Dr: calls of f cost 4, but it and what it calls 3"]);
        assert_eq!(broken("1 10 1", "1 12 1\n1 -2")[0], "part 1, Ir: main in line 1 costs -2");
        let jumps = broken("fn=main\n", "fn=main\njcnd=3/2 5\n1\n");
        assert_eq!(jumps, ["part 1, jumps: main in line 1 jumps 3 times of 2"]);
    }

    #[test]
    fn a_function_that_is_called_by_what_it_calls_is_one_with_it() {
        // Called from outside for 30, of which each call around another holds the other's cost, too.
        let text = "events: Ir\nfn=main\n1 1\ncfn=a\ncalls=1 1\n1 30\nfn=a\n1 10\ncfn=b\ncalls=3 1\n1 45\nfn=b\n1 20\n\
                    cfn=a\ncalls=2 1\n1 31\ntotals: 31\n";
        assert_eq!(breaches(text.as_bytes(), "p").unwrap(), []);
        let text = text.replace("1 30\n", "1 31\n");
        let found: Vec<_> = breaches(text.as_bytes(), "p").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(found, ["part 1, Ir: calls of a, b cost 31, but it and what it calls 30"]);
    }

    #[test]
    fn roots_are_what_ran_without_a_caller() {
        let text = GOOD.replace("5 40", "5 45").replace("totals: 100", "totals: 105");
        assert_eq!(breaches(text.as_bytes(), "p").unwrap(), []);
        let profile = super::super::read_profile(text.as_bytes(), "p").unwrap();
        let roots = roots(&profile.parts[0], &profile.names);
        let named: Vec<_> = roots.iter().map(|(f, n)| (profile.names.function_name(*f), *n)).collect();
        assert_eq!(named.len(), 2);
        assert!(named.contains(&(&b"main"[..], 100)) && named.contains(&(&b"g"[..], 5)), "{named:?}");
    }
}
