//! What another program measured: stacks with costs, and how they become a callgrind profile.
//!
//! Self costs are those of the innermost frames. A call's inclusive cost is that of all stacks with the call in them, each
//! once, however deep it recurs: so it is never above the total. How often calls were made is not known from samples; the
//! profile says 0.

use std::collections::{BTreeMap, HashSet};

use anyhow::Context;
use cg_format::callgrind::{Call, FunctionId, Header, Part, PartHeader, Place, Position, Profile, context_name};

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) name: Vec<u8>,
    /// The source file; empty if it is not known.
    pub(crate) file: Vec<u8>,
    /// The object; empty if it is not known.
    pub(crate) object: Vec<u8>,
    /// The source line; 0 if it is not known.
    pub(crate) line: u32,
}

/// A stack and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// The innermost first; at least one.
    pub(crate) frames: Vec<Frame>,
    /// A value for each event; missing ones at the end are 0.
    pub(crate) costs: Vec<u64>,
}

/// All that was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) command: Vec<u8>,
    pub(crate) events: Vec<String>,
    pub(crate) stacks: Vec<Stack>,
}

impl Measured {
    /// Makes a profile of it, with so many callers in the names of functions.
    ///
    /// # Errors
    /// A sum is too large.
    pub(crate) fn profile(&self, format: &str, callers: usize) -> anyhow::Result<Profile> {
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
) -> anyhow::Result<()> {
    let at = *finder.entry(key).or_insert_with(|| {
        sums.push((key, Vec::new()));
        sums.len() - 1
    });
    let sum = &mut sums[at].1;
    if sum.len() < costs.len() {
        sum.resize(costs.len(), 0);
    }
    for (sum, cost) in sum.iter_mut().zip(costs) {
        *sum = sum.checked_add(*cost).context("a sum of costs is larger than 64 bits hold")?;
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
