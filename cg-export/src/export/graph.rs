//! The call graph of a profile: which functions call each other in circles, and what functions cost with all they call.
//!
//! Inclusive costs are those of `cg-model`, so that all programs tell the same. What is added here is what sharing out
//! needs: groups of functions that reach each other, and what callers from outside saw of each member.

use cg_format::callgrind::{Call, PartEnd, PartHeader, Place, Position, Sink};
use cg_model::{Collector, Cost, Grouping, Model, ModelError, Rules};

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
        let model = model(input)?;
        let full = |cost: &Cost| (0..width).map(|event| cost.value(event)).collect::<Vec<i64>>();
        // The entry of a function has its number.
        let functions = &model.entries[..count];
        let own = functions.iter().map(|entry| full(&entry.own)).collect();
        let inclusive = functions.iter().map(|entry| full(&entry.inclusive)).collect();
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

fn model(input: &Input) -> Result<Model, ModelError> {
    let header = PartHeader { events: input.events.clone(), ..PartHeader::default() };
    let mut collector = Collector::new(false);
    collector.part(&header);
    for row in &input.rows {
        let place = Place { addr: 0, line: row.line };
        collector.row(row.function, Position { place, file: row.file }, &row.costs)?;
    }
    for arc in &input.arcs {
        let at = Position { place: Place::default(), file: input.names.get(arc.caller).file };
        let call = Call { callee: arc.callee, target: Place::default(), count: arc.count };
        collector.call(arc.caller, at, &call, &arc.costs)?;
    }
    let parts = vec![PartEnd { header: Box::new(header), summary: None, totals: None }];
    let rules = Rules { grouping: Grouping::Function, cycles: true, here: None };
    Model::new(input.name.clone(), input.header.clone(), parts, &input.names, collector, rules)
}
