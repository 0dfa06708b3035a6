//! The call graph of a profile: which functions call each other in circles, and what functions cost with all they call.
//!
//! Inclusive costs are those of `cg-model`, so that all programs tell the same. What is added here is what sharing out
//! needs: groups of functions that reach each other, and what callers from outside saw of each member.

use cg_format::callgrind::{Call, PartEnd, PartHeader, Place, Position, Sink};
use cg_model::{Cost, Detail, Functions, ModelError};

use crate::load::{Input, add};

/// The call graph; functions by their numbers.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Self cost of each function.
    pub(crate) own: Vec<Vec<i64>>,
    /// Inclusive cost of each function.
    pub(crate) inclusive: Vec<Vec<i64>>,
    /// What callers outside of its group saw of each function.
    pub(crate) seen: Vec<Vec<i64>>,
    /// The group of each function: functions that reach each other. Callees have lower numbers.
    pub(crate) group: Vec<usize>,
    /// Members of each group.
    pub(crate) members: Vec<Vec<usize>>,
    /// Calls by caller: indices of arcs.
    pub(crate) calls: Vec<Vec<usize>>,
}

impl Graph {
    /// Builds it.
    ///
    /// # Errors
    /// A sum is too large.
    pub(crate) fn new(input: &Input) -> Result<Self, ModelError> {
        let count = input.names.functions().len();
        let width = input.events.len();
        let functions = functions(input)?;
        let table = |of: &dyn Fn(usize) -> Vec<i64>| {
            let mut table = vec![vec![0; width]; count];
            for event in 0..width {
                table.iter_mut().zip(of(event)).for_each(|(costs, cost)| costs[event] = cost);
            }
            table
        };
        let own = table(&|event| functions.own(event).collect());
        let inclusive = table(&|event| functions.inclusive(event).collect());
        let ends = input.arcs.iter().map(|arc| (arc.caller.index(), arc.callee.index()));
        let group = cg_model::groups(count, ends.clone());
        let mut members = vec![Vec::new(); group.iter().max().map_or(0, |last| last + 1)];
        group.iter().enumerate().for_each(|(function, group)| members[*group].push(function));
        let mut calls = vec![Vec::new(); count];
        let mut seen = vec![vec![0; width]; count];
        for (i, (caller, callee)) in ends.enumerate() {
            calls[caller].push(i);
            if group[caller] != group[callee] {
                add(&mut seen[callee], &input.arcs[i].costs)?;
            }
        }
        Ok(Self { own, inclusive, seen, group, members, calls })
    }
}

/// What functions cost, by their numbers.
fn functions(input: &Input) -> Result<Functions, ModelError> {
    let header = PartHeader { events: input.events.clone(), ..PartHeader::default() };
    let (mut detail, mut sum) = (Detail::default(), Cost::default());
    detail.part(&header);
    for row in &input.rows {
        let place = Place { addr: 0, line: row.line };
        sum.add(&row.costs)?;
        detail.row(row.function, Position { place, file: row.file }, &row.costs)?;
    }
    for arc in &input.arcs {
        let at = Position { place: Place::default(), file: input.names.get(arc.caller).file };
        let call = Call { callee: arc.callee, target: Place::default(), count: arc.count };
        detail.call(arc.caller, at, &call, &arc.costs)?;
    }
    detail.finish()?;
    let parts = vec![PartEnd { header: Box::new(header), summary: None, totals: None }];
    Functions::new(input.name.clone(), input.header.clone(), parts, &[sum], &input.names, &detail)
}
