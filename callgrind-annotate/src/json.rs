//! The report as JSON. The schema is described in the manual; a change that could break a reader raises [`VERSION`].

use cg_cli::json::Json;

use crate::model::{Entry, Link, Model};
use crate::source::{Source, Sources};
use crate::text::Style;
use cg_model::Cost;

/// The version of the schema.
pub(crate) const VERSION: i128 = 1;

/// The whole report.
pub(crate) fn report(model: &Model, style: &Style, shown: &[usize], sources: &Sources<'_>) -> String {
    let mut json = Json::default();
    json.begin_object();
    json.name("schema", b"callgrind_annotate");
    json.key("version");
    json.integer(VERSION);
    json.name("file", model.input.as_bytes());
    json.name("creator", &model.header.creator);
    json.key("pid");
    optional(&mut json, model.header.pid);
    json.name("command", model.header.cmd.trim_ascii());
    strings(&mut json, "desc", &model.header.desc);
    json.key("parts");
    json.begin_array();
    for part in &model.parts {
        json.begin_object();
        json.key("part");
        optional(&mut json, part.header.number);
        json.key("thread");
        optional(&mut json, part.header.thread);
        strings(&mut json, "desc", &part.header.desc);
        json.end_object();
    }
    json.end_array();
    let all: Vec<usize> = (0..model.events.len()).collect();
    let sort: Vec<usize> = model.sort.iter().map(|(event, _)| *event).collect();
    for (key, events) in [("events", &all), ("events_shown", &model.show), ("events_sort", &sort)] {
        let names: Vec<Vec<u8>> =
            model.names(events.iter().copied()).iter().map(|name| name.as_bytes().to_vec()).collect();
        strings(&mut json, key, &names);
    }
    json.key("thresholds_percent");
    json.begin_array();
    model.sort.iter().for_each(|(_, threshold)| json.float(*threshold));
    json.end_array();
    json.key("inclusive");
    json.boolean(model.inclusive);
    json.key("total_calculated");
    json.boolean(model.total.calculated);
    cost(&mut json, "total", model, &model.total.cost);
    json.key("functions");
    json.begin_array();
    for at in shown {
        function(&mut json, model, &model.entries[*at]);
    }
    json.end_array();
    if style.auto || !style.wanted.is_empty() {
        json.key("sources");
        json.begin_array();
        sources.found.iter().for_each(|source| annotated(&mut json, model, source));
        json.end_array();
        strings(&mut json, "sources_missing", &sources.missing);
    }
    json.end_object();
    json.finish()
}

fn optional(json: &mut Json, value: Option<u64>) {
    match value {
        Some(value) => json.integer(i128::from(value)),
        None => json.null(),
    }
}

fn strings(json: &mut Json, key: &str, values: &[Vec<u8>]) {
    json.key(key);
    json.begin_array();
    values.iter().for_each(|value| json.string(value));
    json.end_array();
}

/// Values of all events: what the profile does not mention is 0.
fn cost(json: &mut Json, key: &str, model: &Model, cost: &Cost) {
    json.integers(key, (0..model.events.len()).map(|event| i128::from(cost.value(event))));
}

fn identity(json: &mut Json, entry: &Entry) {
    json.name("name", &entry.name);
    for (key, value) in [("file", &entry.file), ("function", &entry.function), ("object", &entry.object)] {
        match value {
            Some(value) => json.name(key, value),
            None => {
                json.key(key);
                json.null();
            }
        }
    }
    json.key("cycle");
    optional(json, entry.cycle.map(|cycle| cycle as u64));
}

fn function(json: &mut Json, model: &Model, entry: &Entry) {
    json.begin_object();
    identity(json, entry);
    cost(json, "self", model, &entry.own);
    cost(json, "inclusive", model, &entry.inclusive);
    json.key("callers");
    links(json, model, &model.ranked(&entry.callers, |link| link.caller), |link| link.caller);
    json.key("callees");
    links(json, model, &model.ranked(&entry.callees, |link| link.callee), |link| link.callee);
    json.end_object();
}

fn links(json: &mut Json, model: &Model, links: &[&Link], other: impl Fn(&Link) -> usize) {
    json.begin_array();
    for link in links {
        json.begin_object();
        identity(json, &model.entries[other(link)]);
        calls(json, model, link.count, link.cost.as_ref());
        json.end_object();
    }
    json.end_array();
}

fn calls(json: &mut Json, model: &Model, count: u64, inclusive: Option<&Cost>) {
    json.key("calls");
    json.integer(i128::from(count));
    match inclusive {
        Some(inclusive) => cost(json, "inclusive", model, inclusive),
        None => {
            json.key("inclusive");
            json.null();
        }
    }
}

fn annotated(json: &mut Json, model: &Model, source: &Source<'_>) {
    json.begin_object();
    json.name("name", &source.name);
    json.name("found", &source.title);
    json.key("newer");
    json.boolean(source.newer);
    let text: Vec<&[u8]> = cg_cli::source_text::lines(&source.text).map(|(_, line)| line).collect();
    json.key("lines");
    json.begin_array();
    for (number, line) in source.lines {
        json.begin_object();
        json.key("line");
        json.integer(i128::from(*number));
        cost(json, "self", model, line.cost.as_ref().unwrap_or(&Cost::default()));
        if let Some(content) = number.checked_sub(1).and_then(|at| text.get(at as usize)) {
            json.name("text", content);
        }
        json.key("calls");
        json.begin_array();
        for call in model.ranked_calls(line) {
            json.begin_object();
            identity(json, &model.entries[call.callee]);
            calls(json, model, call.count, call.cost.as_ref());
            json.end_object();
        }
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.end_object();
}
