//! Estimated stacks: what a function spent is shared out among the ways that lead to it.
//!
//! A call graph knows what each caller saw of a function, but not which of its callers' callers it was for. It is taken to
//! be the same for all, in proportion to what callers saw. A group of functions that call each other in circles is entered
//! from outside by one of its members; the others are reached from there by the shortest way.
//!
//! Shares are rounded so that their sum is the self cost of the function, exactly. Ways that are worth less than a ten
//! thousandth of the profile in every event are put together under a frame `[other callers]`, and so are too many.

use std::collections::{HashSet, VecDeque};

use cg_format::count::TooLarge;

use crate::graph::Graph;
use crate::load::Input;
use crate::stacks::{Frame, FrameTable, Stack};

/// Ways below this share of the total are not told apart.
const LEAST: f64 = 1e-4;
/// Ways longer than this are put together as well: no viewer shows more.
const DEEPEST: usize = 500;
/// So many ways are told apart at most: a large cycle may be entered by many.
const MOST: usize = 1 << 20;
/// The frame above functions whose ways were put together.
pub(crate) const OTHERS: &[u8] = b"[other callers]";

/// A way to a function, and its share of that function in each event.
struct Way {
    function: usize,
    parent: Option<usize>,
    depth: usize,
    shares: Vec<f64>,
}

/// Makes stacks by estimation.
pub(crate) fn stacks(
    input: &Input,
    graph: &Graph,
    frame_of: &[usize],
    table: &mut FrameTable,
) -> Result<Vec<Stack>, TooLarge> {
    let ways = ways(input, graph);
    let mut of_function: Vec<Vec<usize>> = vec![Vec::new(); graph.own.len()];
    for (i, way) in ways.iter().enumerate() {
        of_function[way.function].push(i);
    }
    let others = table.intern(Frame { name: OTHERS.to_vec(), file: Vec::new(), object: Vec::new() });
    let width = input.events.len();
    let mut stacks = Vec::new();
    for (function, own) in graph.own.iter().enumerate() {
        if own.iter().all(|cost| *cost == 0) {
            continue;
        }
        let mut given = vec![0_i64; width];
        let mut reached = vec![0_f64; width];
        for way in &of_function[function] {
            let way = &ways[*way];
            let mut costs = vec![0; width];
            for event in 0..width {
                reached[event] += way.shares[event];
                let upto = portion(own[event], reached[event]);
                costs[event] = upto - given[event];
                given[event] = upto;
            }
            if costs.iter().any(|cost| *cost != 0) {
                stacks.push(Stack { frames: frames(&ways, way, frame_of), place: None, costs });
            }
        }
        let rest: Vec<i64> = own.iter().zip(&given).map(|(own, given)| own - given).collect();
        if rest.iter().any(|cost| *cost != 0) {
            stacks.push(Stack { frames: vec![frame_of[function], others], place: None, costs: rest });
        }
    }
    Ok(stacks)
}

/// So much of `whole`, never more. Shares of a function sum up to 1 but for rounding, which must not leave a unit over.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn portion(whole: i64, share: f64) -> i64 {
    if share >= 1.0 - 1e-9 { whole } else { ((whole as f64 * share.max(0.0)) as i64).min(whole) }
}

fn frames(ways: &[Way], way: &Way, frame_of: &[usize]) -> Vec<usize> {
    let mut frames = vec![frame_of[way.function]];
    let mut parent = way.parent;
    while let Some(at) = parent {
        frames.push(frame_of[ways[at].function]);
        parent = ways[at].parent;
    }
    frames
}

#[allow(clippy::cast_precision_loss)]
fn ways(input: &Input, graph: &Graph) -> Vec<Way> {
    let width = input.events.len();
    let least: Vec<f64> = input.total.iter().map(|total| (*total as f64 * LEAST).max(0.5)).collect();
    // What of each group no caller outside saw, and what all that comes into it sums up to.
    let mut entered = vec![vec![0_f64; width]; graph.members.len()];
    let mut spent = vec![vec![0_f64; width]; graph.members.len()];
    for function in 0..graph.own.len() {
        let group = graph.group[function];
        for event in 0..width {
            entered[group][event] += graph.seen[function][event] as f64;
            spent[group][event] += graph.inclusive[function][event] as f64;
        }
    }
    let whole: Vec<Vec<f64>> = entered
        .iter()
        .zip(&spent)
        .map(|(entered, spent)| entered.iter().zip(spent).map(|(entered, spent)| entered.max(*spent)).collect())
        .collect();
    let mut ways: Vec<Way> = Vec::new();
    let mut waiting: VecDeque<(usize, Option<usize>, Vec<f64>)> = VecDeque::new();
    for group in (0..graph.members.len()).rev() {
        let shares: Vec<f64> = (0..width)
            .map(|event| {
                let all = whole[group][event];
                if all > 0.0 { (all - entered[group][event]) / all } else { 0.0 }
            })
            .collect();
        if worth(&shares, &whole[group], &least) {
            waiting.push_back((entry(graph, group), None, shares));
        }
    }
    while let Some((entry, parent, shares)) = waiting.pop_front() {
        let depth = parent.map_or(0, |parent: usize| ways[parent].depth + 1);
        if depth > DEEPEST || ways.len() > MOST {
            continue;
        }
        let group = graph.group[entry];
        for at in enter(graph, input, entry, parent, &shares, &mut ways) {
            for arc in &graph.calls[ways[at].function] {
                let arc = &input.arcs[*arc];
                let callee = arc.callee.index();
                let to = graph.group[callee];
                if to == group {
                    continue;
                }
                let shares: Vec<f64> = (0..width)
                    .map(|event| {
                        let all = whole[to][event];
                        if all > 0.0 { shares[event] * arc.costs[event] as f64 / all } else { 0.0 }
                    })
                    .collect();
                if worth(&shares, &whole[to], &least) {
                    waiting.push_back((callee, Some(at), shares));
                }
            }
        }
    }
    ways
}

/// Whether a way is worth a line in some event.
fn worth(shares: &[f64], whole: &[f64], least: &[f64]) -> bool {
    shares.iter().zip(whole).zip(least).any(|((share, whole), least)| share * whole >= *least)
}

/// The member by which a group is taken to be entered where no caller is known: the one that most of its cost is under.
fn entry(graph: &Graph, group: usize) -> usize {
    let members = graph.members[group].iter().copied();
    members.rev().max_by_key(|member| graph.inclusive[*member].first().copied()).unwrap_or_default()
}

/// Ways to all members of a group from the one that is entered, breadth first.
fn enter(
    graph: &Graph,
    input: &Input,
    entry: usize,
    parent: Option<usize>,
    shares: &[f64],
    ways: &mut Vec<Way>,
) -> Vec<usize> {
    let group = graph.group[entry];
    let mut found = Vec::new();
    let mut reached = HashSet::from([entry]);
    let mut queue = VecDeque::from([(entry, parent)]);
    while let Some((function, parent)) = queue.pop_front() {
        let depth = parent.map_or(0, |parent| ways[parent].depth + 1);
        ways.push(Way { function, parent, depth, shares: shares.to_vec() });
        let at = ways.len() - 1;
        found.push(at);
        for arc in &graph.calls[function] {
            let callee = input.arcs[*arc].callee.index();
            if graph.group[callee] == group && reached.insert(callee) {
                queue.push_back((callee, Some(at)));
            }
        }
    }
    found
}
