//! What another program measured: stacks with costs, and how they become a callgrind profile.
//!
//! Self costs are those of the innermost frames. A call's inclusive cost is that of all stacks with the call in them, each
//! once, however deep it recurs: so it is never above the total. How often calls were made is not known from samples; the
//! profile says 0.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use cg_format::callgrind::{Call, FunctionId, Header, Part, PartHeader, Place, Position, Profile, context_name};
use cg_format::count::TooLarge;

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its name, as the other program has it.
    pub name: Vec<u8>,
    /// The source file; empty if it is not known.
    pub file: Vec<u8>,
    /// The object; empty if it is not known.
    pub object: Vec<u8>,
    /// The source line; 0 if it is not known.
    pub line: u32,
    /// Where in the object's code it was, if that is known.
    pub spot: Option<Spot>,
    /// Whether it was inlined into the next one outwards, whose code it ran in.
    pub inlined: bool,
}

/// A place in an object's code, whatever address it had in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Spot {
    /// So many bytes behind the beginning of the function that the frame names.
    InFunction(u64),
    /// So many bytes behind the beginning of the object's file.
    InFile(u64),
}

/// A stack and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The innermost first; at least one.
    pub frames: Vec<Frame>,
    /// A value for each event; missing ones at the end are 0.
    pub costs: Vec<u64>,
}

/// All that was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// What ran; empty if it is not known.
    pub command: Vec<u8>,
    /// What was measured.
    pub events: Vec<String>,
    /// The samples.
    pub stacks: Vec<Stack>,
    /// Build ids of objects, in hexadecimal digits, as far as they are known.
    pub builds: BTreeMap<Vec<u8>, String>,
}

/// An event was asked for that was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEvent {
    /// What was asked for.
    pub name: String,
    /// What there is.
    pub known: Vec<String>,
}

impl fmt::Display for NoEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no event `{}`, but: {}", self.name, self.known.join(" "))
    }
}

impl std::error::Error for NoEvent {}

impl Measured {
    /// Keeps these events alone, in this order. Samples that have none of them go.
    ///
    /// # Errors
    /// There is no event of one of the names.
    pub fn select(&mut self, wanted: impl IntoIterator<Item = String>) -> Result<(), NoEvent> {
        let mut places = Vec::new();
        for name in wanted {
            let found = self.events.iter().position(|event| *event == name);
            places.push(found.ok_or_else(|| NoEvent { name, known: self.events.clone() })?);
        }
        self.events = places.iter().map(|at| self.events[*at].clone()).collect();
        for stack in &mut self.stacks {
            stack.costs = places.iter().map(|at| stack.costs.get(*at).copied().unwrap_or(0)).collect();
        }
        self.stacks.retain(|stack| stack.costs.iter().any(|cost| *cost != 0));
        Ok(())
    }

    /// Makes a profile of it, with so many callers in the names of functions.
    ///
    /// # Errors
    /// A sum is too large.
    pub fn profile(&self, format: &str, callers: usize) -> Result<Profile, TooLarge> {
        let mut profile = Profile {
            header: Header {
                creator: concat!("cg_import-", env!("CARGO_PKG_VERSION")).as_bytes().to_vec(),
                pid: None,
                cmd: [b" ", &self.command[..]].concat(),
                desc: vec![format!("Imported from: {format}; numbers of calls are not known").into_bytes()],
            },
            ..Profile::default()
        };
        let events = self.events.iter().map(|event| fit(event)).collect();
        let mut part = Part::new(PartHeader { number: Some(1), events, ..PartHeader::default() });
        // Stacks are many and places few, so sums are made here.
        let mut rows: BTreeMap<(FunctionId, Position), usize> = BTreeMap::new();
        let mut row_costs: Vec<((FunctionId, Position), Vec<u64>)> = Vec::new();
        let mut calls: BTreeMap<(FunctionId, FunctionId, Position), usize> = BTreeMap::new();
        let mut call_costs: Vec<((FunctionId, FunctionId, Position), Vec<u64>)> = Vec::new();
        for stack in &self.stacks {
            let mut functions = Vec::with_capacity(stack.frames.len());
            for (depth, frame) in stack.frames.iter().enumerate() {
                let above = stack.frames[depth + 1..].iter().take(callers).map(|frame| &frame.name[..]);
                let name = context_name(&frame.name, 1, above);
                let names = &mut profile.names;
                let file = names.file(if frame.file.is_empty() { b"???" } else { &frame.file });
                let object = names.object(&frame.object);
                let at = Position { place: Place { addr: 0, line: frame.line }, file };
                functions.push((names.function(&name, file, object), at));
            }
            let Some(innermost) = functions.first() else { continue };
            add(&mut rows, &mut row_costs, *innermost, &stack.costs)?;
            let mut seen = HashSet::new();
            for pair in functions.windows(2).rev() {
                let [(callee, _), (caller, at)] = [pair[0], pair[1]];
                if seen.insert((caller, callee)) {
                    add(&mut calls, &mut call_costs, (caller, callee, at), &stack.costs)?;
                }
            }
        }
        for ((function, at), costs) in row_costs {
            part.add_row(function, at, &costs)?;
        }
        for ((caller, callee, at), costs) in call_costs {
            part.add_call(caller, at, Call { callee, target: Place::default(), count: 0 }, &costs)?;
        }
        profile.parts.push(part);
        Ok(profile)
    }
}

fn add<K: Copy + Ord>(
    finder: &mut BTreeMap<K, usize>,
    sums: &mut Vec<(K, Vec<u64>)>,
    key: K,
    costs: &[u64],
) -> Result<(), TooLarge> {
    let at = *finder.entry(key).or_insert_with(|| {
        sums.push((key, Vec::new()));
        sums.len() - 1
    });
    let sum = &mut sums[at].1;
    if sum.len() < costs.len() {
        sum.resize(costs.len(), 0);
    }
    for (sum, cost) in sum.iter_mut().zip(costs) {
        *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
    }
    Ok(())
}

/// A name of an event as the format wants it: without blanks.
fn fit(event: &str) -> String {
    let fit: String = event.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
    if fit.is_empty() { "samples".to_owned() } else { fit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::callgrind::Site;

    #[test]
    fn a_call_counts_once_a_stack_however_deep_it_recurs() {
        let frames = |names: &[&str]| {
            names.iter().map(|name| Frame { name: name.as_bytes().to_vec(), ..Frame::default() }).collect()
        };
        let measured = Measured {
            command: b"x".to_vec(),
            events: vec!["samples".into()],
            stacks: vec![
                Stack { frames: frames(&["f", "f", "f", "main"]), costs: vec![5] },
                Stack { frames: frames(&["f", "main"]), costs: vec![2] },
            ],
            ..Measured::default()
        };
        let profile = measured.profile("test", 0).unwrap();
        let part = &profile.parts[0];
        let mut costs = Vec::new();
        for body in part.bodies() {
            for entry in &body.entries {
                let name = |function| String::from_utf8(profile.names.function_name(function).to_vec()).unwrap();
                match entry.site {
                    Site::Row { costs: at } => costs.push((name(body.function), String::new(), body.costs(at)[0])),
                    Site::Call { call, costs: at } => {
                        costs.push((name(body.function), name(call.callee), body.costs(at)[0]))
                    }
                    Site::Jump(_) => {}
                }
            }
        }
        costs.sort();
        let expected = [("f", "", 7), ("f", "f", 5), ("main", "f", 7)];
        assert_eq!(costs, expected.map(|(a, b, cost)| (a.to_owned(), b.to_owned(), cost)));
    }
}
