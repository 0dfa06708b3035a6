//! The report for programs, as the manual describes it.

use cg_cli::json::Json;
use cg_format::mem::{Object, notation};

use crate::model::{Model, Row};
use crate::source::Sources;
use crate::text::Style;

fn list<'a>(json: &mut Json, key: &str, texts: impl IntoIterator<Item = &'a str>) {
    json.key(key);
    json.begin_array();
    texts.into_iter().for_each(|text| json.string(text.as_bytes()));
    json.end_array();
}

/// The whole report.
pub(crate) fn report(model: &Model, style: &Style, sources: &mut Sources<'_>) -> String {
    let mut json = Json::default();
    let head = &model.mem.head;
    let names = |of: &[usize]| of.iter().map(|n| &*head.events[*n]).collect::<Vec<&str>>();
    json.begin_object();
    json.name("schema", b"mem_annotate");
    json.key("version");
    json.integer(1);
    list(&mut json, "files", style.files.iter().map(String::as_str));
    list(&mut json, "commands", model.commands.iter().map(String::as_str));
    json.key("difference");
    json.boolean(model.commands.len() == 2);
    list(&mut json, "desc", head.desc.iter().map(String::as_str));
    list(&mut json, "events", head.events.iter().map(String::as_str));
    list(&mut json, "events_shown", names(&model.show));
    list(&mut json, "events_sort", names(&model.sort));
    json.key("threshold_percent");
    json.float(style.threshold);
    json.integers("total", model.totals.iter().copied());
    json.key("objects");
    json.begin_array();
    model.rows.iter().for_each(|row| object(&mut json, model, row, sources));
    json.end_array();
    json.key("objects_below_threshold");
    json.integer(model.hidden as i128);
    if let Some(distances) = &model.distances {
        json.key("distances");
        distances.json(&mut json);
    }
    if let Some(sharing) = &model.sharing {
        json.key("sharing");
        sharing.json(&mut json, &model.mem, sources);
    }
    json.end_object();
    json.finish()
}

/// The structure that an object is, and what of it was missed.
fn members(json: &mut Json, object: &Object) {
    let Some(members) = &object.members else { return json.null() };
    json.begin_object();
    json.name("type", members.name.as_bytes());
    json.key("bytes");
    json.integer(members.bytes.into());
    json.key("missed");
    json.begin_array();
    for member in &members.missed {
        json.begin_object();
        json.name("name", member.name.as_bytes());
        for (key, n) in [("offset", member.offset), ("bytes", member.bytes)] {
            json.key(key);
            json.integer(n.into());
        }
        json.integers("counts", member.counts.iter().map(|n| i128::from(*n)));
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

fn object(json: &mut Json, model: &Model, row: &Row, sources: &mut Sources<'_>) {
    let object = &row.object;
    json.begin_object();
    json.name("kind", object.kind.word().as_bytes());
    json.name("name", object.name.as_bytes());
    json.name("variable", sources.variable(object).as_bytes());
    json.name("file", object.file.as_bytes());
    json.key("line");
    json.integer(object.line.into());
    json.name("function", object.function.as_bytes());
    json.key("callers");
    json.begin_array();
    for caller in &object.callers {
        json.begin_object();
        json.name("function", caller.function.as_bytes());
        json.name("file", caller.file.as_bytes());
        json.key("line");
        json.integer(caller.line.into());
        json.end_object();
    }
    json.end_array();
    for (key, n) in [("bytes", object.bytes), ("blocks", object.blocks), ("peak_bytes", object.peak_bytes)] {
        json.key(key);
        json.integer(n.into());
    }
    json.integers("counts", row.counts.iter().copied());
    json.key("fields");
    json.begin_array();
    for field in &object.fields {
        json.begin_object();
        json.key("offset");
        json.integer(field.offset.into());
        json.integers("counts", field.counts.iter().map(|n| i128::from(*n)));
        json.end_object();
    }
    json.end_array();
    json.key("members");
    members(json, object);
    json.key("missed_by");
    json.begin_array();
    for by in row.missed_by.iter().map(|n| &model.mem.missed_by[*n]) {
        json.begin_object();
        json.name("function", by.function.as_bytes());
        json.name("file", by.file.as_bytes());
        json.name("module", by.module.as_bytes());
        json.integers("counts", by.counts.iter().map(|n| i128::from(*n)));
        json.end_object();
    }
    json.end_array();
    json.key("streams");
    json.begin_array();
    let name = sources.variable(object);
    for n in &row.streams {
        let (stream, alone) = (&model.mem.streams[*n], model.alone[*n]);
        json.begin_object();
        json.name("access", stream.access.word().as_bytes());
        json.name("file", stream.file.as_bytes());
        json.key("line");
        json.integer(stream.line.into());
        json.name("function", stream.function.as_bytes());
        for (key, n) in [
            ("size", stream.size),
            ("executions", stream.executions),
            ("misses", stream.misses),
            ("last_level", stream.last_level),
            ("irregular", stream.irregular),
        ] {
            json.key(key);
            json.integer(n.into());
        }
        json.key("line_bytes_used");
        let line = model.mem.head.streams.as_ref().map_or(0, |head| head.line);
        match notation::used(stream, line, alone) {
            Some(used) => json.integer(used.into()),
            None => json.null(),
        }
        json.key("prefetch");
        match stream.prefetch {
            Some(ahead) => {
                json.begin_object();
                json.key("delta");
                json.integer(ahead.delta.into());
                json.name("type", ahead.kind().as_bytes());
                json.end_object();
            }
            None => json.null(),
        }
        json.key("parts");
        json.begin_array();
        for part in &stream.parts {
            json.begin_object();
            json.name("steps", notation::part(stream, part, &name, alone).as_bytes());
            json.key("misses");
            json.integer(part.misses.into());
            json.end_object();
        }
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.end_object();
}
