//! `--format=dot`, `json` and `chrome`: the call graph, everything, and the parts of a profile.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::graph::Graph;
use crate::load::{Input, lossy};

/// Writes the call graph for Graphviz, by one event. Functions whose inclusive cost is below `threshold` percent are left
/// out, and arcs from or to them; how many is said in the title. Each node and arc has its exact numbers in attributes of
/// its own (`self`, `inclusive`; `calls`, `cost`), which `dot -Tjson` and other readers keep.
///
/// # Errors
/// `out` cannot be written; so do the functions below.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn dot(out: &mut dyn Write, input: &Input, graph: &Graph, event: usize, threshold: f64) -> io::Result<()> {
    let total = input.total[event];
    let names = &input.names;
    let percent = |cost: i64| if total == 0 { 0.0 } else { cost as f64 * 100.0 / total as f64 };
    let all: Vec<_> = names.functions().collect();
    let shown = |function: usize| threshold <= 0.0 || percent(graph.inclusive[function][event]).abs() >= threshold;
    let count = all.iter().filter(|function| shown(function.index())).count();
    let title = format!(
        "{}\n{}: {total}\n{} of {} functions have at least {threshold}% of it",
        input.command(),
        input.events[event],
        count,
        all.len()
    );
    writeln!(out, "digraph profile {{")?;
    writeln!(
        out,
        "  graph [label={}, labelloc=t, event={}, total=\"{total}\"]",
        quoted(&title),
        quoted(&input.events[event])
    )?;
    writeln!(out, "  node [shape=box, style=filled]")?;
    for function in all.iter().filter(|function| shown(function.index())) {
        let at = function.index();
        let (own, inclusive) = (graph.own[at][event], graph.inclusive[at][event]);
        let name = lossy(names.function_name(*function));
        let of = names.get(*function);
        let cycle = if graph.members[graph.group[at]].len() > 1 { "\nin a cycle" } else { "" };
        let label =
            format!("{name}\n{inclusive} ({:.2}%)\nself {own} ({:.2}%){cycle}", percent(inclusive), percent(own));
        writeln!(
            out,
            "  n{at} [label={}, function={}, file={}, object={}, self=\"{own}\", inclusive=\"{inclusive}\", \
             fillcolor=\"0.08 {:.3} 1.0\"]",
            quoted(&label),
            quoted(&name),
            quoted(&lossy(names.file_name(of.file))),
            quoted(&lossy(names.object_name(of.object))),
            (percent(inclusive) / 100.0).clamp(0.0, 1.0),
        )?;
    }
    for arc in &input.arcs {
        let (from, to) = (arc.caller.index(), arc.callee.index());
        if !shown(from) || !shown(to) {
            continue;
        }
        let cost = arc.costs[event];
        // Within a cycle costs contain each other and mean nothing.
        let inside = graph.group[from] == graph.group[to];
        let label = if inside { format!("{}x", arc.count) } else { format!("{cost}\n{}x", arc.count) };
        let width = if inside { 1.0 } else { (percent(cost) / 12.5).clamp(0.0, 8.0) + 0.5 };
        writeln!(
            out,
            "  n{from} -> n{to} [label={}, calls=\"{}\", cost=\"{cost}\", penwidth={width:.2}{}]",
            quoted(&label),
            arc.count,
            if inside { ", style=dashed" } else { "" }
        )?;
    }
    writeln!(out, "}}")
}

/// A string of the dot language; line breaks are those of a label.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\0' => {}
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The version of the JSON document, as `cg_export(1)` describes it.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    creator: String,
    command: String,
    pid: Option<u64>,
    description: Vec<String>,
    events: &'a [String],
    event_meanings: Map<String, Value>,
    totals: &'a [i64],
    parts: Vec<PartOut<'a>>,
    functions: Vec<FunctionOut<'a>>,
    lines: Vec<LineOut<'a>>,
    calls: Vec<CallOut<'a>>,
}

#[derive(Serialize)]
struct PartOut<'a> {
    number: Option<u64>,
    thread: Option<u64>,
    description: Vec<String>,
    totals: &'a [i64],
}

#[derive(Serialize)]
struct FunctionOut<'a> {
    name: String,
    file: String,
    object: String,
    /// The cycle that it is a member of: functions of the same number call each other in circles.
    cycle: Option<usize>,
    #[serde(rename = "self")]
    own: &'a [i64],
    inclusive: &'a [i64],
}

#[derive(Serialize)]
struct LineOut<'a> {
    function: usize,
    file: String,
    line: u32,
    costs: &'a [i64],
}

#[derive(Serialize)]
struct CallOut<'a> {
    caller: usize,
    callee: usize,
    count: u64,
    inclusive: &'a [i64],
}

/// Writes everything as one JSON document. Lines and calls name functions by their place in `functions`.
pub(crate) fn json(out: &mut dyn Write, input: &Input, graph: &Graph) -> io::Result<()> {
    let names = &input.names;
    let text = |lines: &[Vec<u8>]| lines.iter().map(|line| lossy(line)).collect();
    // Cycles are counted from 1, in the order of their first members.
    let mut cycles: HashMap<usize, usize> = HashMap::new();
    let functions = names.functions().map(|function| {
        let (at, of) = (function.index(), names.get(function));
        let cycle = (graph.members[graph.group[at]].len() > 1).then(|| {
            let next = cycles.len() + 1;
            *cycles.entry(graph.group[at]).or_insert(next)
        });
        FunctionOut {
            name: lossy(names.function_name(function)),
            file: lossy(names.file_name(of.file)),
            object: lossy(names.object_name(of.object)),
            cycle,
            own: &graph.own[at],
            inclusive: &graph.inclusive[at],
        }
    });
    let document = Document {
        format: "grind profile",
        version: VERSION,
        creator: lossy(&input.header.creator),
        command: input.command(),
        pid: input.header.pid,
        description: text(&input.header.desc),
        events: &input.events,
        event_meanings: input.types.iter().map(|kind| (lossy(&kind.name), json!(lossy(&kind.meaning)))).collect(),
        totals: &input.total,
        parts: input
            .parts
            .iter()
            .map(|part| PartOut {
                number: part.header.number,
                thread: part.header.thread,
                description: text(&part.header.desc),
                totals: &part.total,
            })
            .collect(),
        functions: functions.collect(),
        lines: input
            .rows
            .iter()
            .map(|row| LineOut {
                function: row.function.index(),
                file: lossy(names.file_name(row.file)),
                line: row.line,
                costs: &row.costs,
            })
            .collect(),
        calls: input
            .arcs
            .iter()
            .map(|arc| CallOut {
                caller: arc.caller.index(),
                callee: arc.callee.index(),
                count: arc.count,
                inclusive: &arc.costs,
            })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// Writes the parts of profiles as a trace of events: a process for each profile, a row for each thread, a slice for each
/// part. A part begins where the one before it of the same thread ends and takes a microsecond for each unit of the first
/// event: the axis is that event, not time. All totals are arguments of the slice.
pub(crate) fn chrome(out: &mut dyn Write, inputs: &[Input]) -> io::Result<()> {
    let mut events = Vec::new();
    let mut axes = Vec::new();
    for (i, input) in inputs.iter().enumerate() {
        let pid = input.header.pid.unwrap_or(i as u64 + 1);
        let axis = input.events.first().map_or("", String::as_str);
        if !axes.contains(&axis) {
            axes.push(axis);
        }
        events
            .push(json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": input.command()}}));
        let mut ends: HashMap<u64, i64> = HashMap::new();
        for (number, part) in input.parts.iter().enumerate() {
            let thread = part.header.thread.unwrap_or(0);
            let length = part.total.first().copied().unwrap_or(0);
            let start = *ends.entry(thread).or_default();
            ends.insert(thread, start.saturating_add(length));
            let mut args: Map<String, Value> =
                input.events.iter().zip(&part.total).map(|(event, cost)| (event.clone(), json!(cost))).collect();
            let trigger: Vec<String> = part.header.desc.iter().map(|line| lossy(line)).collect();
            args.insert("description".to_owned(), json!(trigger));
            let number = part.header.number.unwrap_or(number as u64 + 1);
            events.push(json!({
                "ph": "X", "name": format!("part {number}"), "cat": "part", "pid": pid, "tid": thread,
                "ts": start, "dur": length, "args": args,
            }));
        }
    }
    let document = json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"axis": format!("a microsecond is one {}; it is no time", axes.join(" or ")), "exact": "yes"},
    });
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}
