//! The head of the report: everything that is not a column, as JSON. `web/src/data/head.ts` has its types.

use cg_cli::json::Json;
use cg_format::callgrind::{FunctionId, Names, ObjectId};
use cg_format::events;

use crate::code::Found;
use crate::formula::Formula;
use crate::load::Side;
use crate::pack::Column;
use crate::samples;
use crate::sources::Source;

/// The version of what head and columns look like.
const SCHEMA: i128 = 3;

/// Something that the reader of the report should know before believing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// What kind it is, for the page.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// What stands in the head.
pub(crate) struct Head<'a> {
    pub(crate) title: &'a str,
    pub(crate) names: &'a Names,
    /// The new side, and the base if there is one.
    pub(crate) sides: &'a [Side],
    /// Totals of the base, one for each event that is shown.
    pub(crate) base_totals: &'a [i64],
    /// Functions that are the same by their bodies alone: new and base.
    pub(crate) renamed: &'a [(FunctionId, FunctionId)],
    /// Indices of the events of the first side that are shown.
    pub(crate) show: &'a [usize],
    /// Events that are computed of those.
    pub(crate) formulas: &'a [Formula],
    /// What profiles are called, in the order of all files.
    pub(crate) labels: &'a [String],
    /// Whether the report begins with the first profile alone.
    pub(crate) separate: bool,
    /// The event to begin with, an index into `show` and then `formulas`.
    pub(crate) sort: usize,
    pub(crate) sources: &'a [Source],
    /// What source lines link to.
    pub(crate) editor: Option<&'a str>,
    /// What became of the object files of functions whose code was to be shown.
    pub(crate) objects: &'a [(ObjectId, Found)],
    /// Whether there were to be sources.
    pub(crate) embeds: bool,
    pub(crate) redacted: bool,
    pub(crate) warnings: &'a [Warning],
    pub(crate) columns: &'a [Column],
}

impl Head<'_> {
    /// The head as JSON.
    pub(crate) fn json(&self) -> String {
        let mut json = Json::default();
        json.begin_object();
        json.key("schema");
        json.integer(SCHEMA);
        json.key("version");
        json.string(env!("CARGO_PKG_VERSION").as_bytes());
        json.key("title");
        json.string(self.title.as_bytes());
        json.key("redacted");
        json.boolean(self.redacted);
        if let Some(editor) = self.editor {
            json.key("editor");
            json.string(editor.as_bytes());
        }
        json.key("embeds");
        json.boolean(self.embeds);
        json.key("functions");
        json.integer(self.names.functions().len() as i128);
        self.events(&mut json);
        json.key("formulas");
        json.begin_array();
        for Formula { name, text } in self.formulas {
            json.begin_object();
            json.key("name");
            json.string(name.as_bytes());
            json.key("formula");
            json.string(text.as_bytes());
            json.end_object();
        }
        json.end_array();
        json.key("separate");
        json.boolean(self.separate);
        json.key("primary");
        json.integer(self.sort as i128);
        json.key("sides");
        json.begin_array();
        let mut first = 0;
        for (at, side) in self.sides.iter().enumerate() {
            let own = self.show.iter().map(|event| side.model.total.cost.value(*event)).collect();
            let totals: Vec<i64> = if at == 0 { own } else { self.base_totals.to_vec() };
            self.side(&mut json, side, &totals, first);
            first += side.runs.as_ref().map_or(side.inputs.len(), |runs| runs.all.len());
        }
        json.end_array();
        self.parts(&mut json);
        self.samples(&mut json);
        json.key("renamed");
        json.begin_array();
        for (new, base) in self.renamed {
            json.begin_object();
            json.key("f");
            json.integer(new.index() as i128);
            json.key("from");
            json.integer(base.index() as i128);
            json.end_object();
        }
        json.end_array();
        json.key("sources");
        json.begin_array();
        for Source { file, state, path } in self.sources {
            json.begin_object();
            json.key("file");
            json.integer(file.index() as i128);
            json.key("state");
            json.string(state.word().as_bytes());
            let path = path.as_ref().filter(|_| self.editor.is_some()).and_then(|path| std::path::absolute(path).ok());
            if let Some(path) = path.as_ref().and_then(|path| path.to_str()) {
                json.key("path");
                json.string(path.as_bytes());
            }
            json.end_object();
        }
        json.end_array();
        json.key("objects");
        json.begin_array();
        for (object, found) in self.objects {
            json.begin_object();
            json.key("object");
            json.integer(object.index() as i128);
            json.key("state");
            json.string(found.word().as_bytes());
            json.end_object();
        }
        json.end_array();
        json.key("warnings");
        json.begin_array();
        for Warning { kind, text } in self.warnings {
            json.begin_object();
            json.key("kind");
            json.string(kind.as_bytes());
            json.key("text");
            json.string(text.as_bytes());
            json.end_object();
        }
        json.end_array();
        json.key("columns");
        json.begin_object();
        for column in self.columns {
            let flags = i128::from(column.signed) + 2 * i128::from(column.delta);
            let (start, length, count) = (column.start as i128, column.length as i128, column.count as i128);
            json.integers(&column.name, [start, length, count, i128::from(column.width), flags]);
        }
        json.end_object();
        json.end_object();
        json.finish()
    }

    fn events(&self, json: &mut Json) {
        let model = &self.sides[0].model;
        json.key("events");
        json.begin_array();
        for at in self.show {
            let name = &model.events[*at];
            let types = model.parts.iter().flat_map(|part| &part.header.types);
            let told = types.into_iter().find(|told| told.name == name.as_bytes()).map(|told| told.meaning.clone());
            let meaning = told.or_else(|| events::by_name(name).map(|event| event.meaning.as_bytes().to_vec()));
            json.begin_object();
            json.key("name");
            json.string(name.as_bytes());
            json.key("column");
            json.integer(*at as i128);
            json.key("meaning");
            json.string(&meaning.unwrap_or_default());
            json.key("spread");
            json.boolean(self.sides[0].sampled.is_some() && name == samples::EVENT);
            json.end_object();
        }
        json.end_array();
    }

    /// What became of samples.
    fn samples(&self, json: &mut Json) {
        let Some(sampled) = &self.sides[0].sampled else { return };
        json.key("samples");
        json.begin_object();
        let (name, kind, event) = (&sampled.name, sampled.kind, &sampled.event);
        for (key, text) in [("name", name.as_str()), ("kind", kind), ("event", event.as_str())] {
            json.key(key);
            json.string(text.as_bytes());
        }
        for (key, count) in [("total", sampled.total), ("matched", sampled.matched), ("placed", sampled.placed)] {
            json.key(key);
            json.integer(i128::from(count));
        }
        json.key("unmatched");
        json.integer(sampled.lost.len() as i128);
        json.key("lost");
        json.begin_array();
        for (object, name, count) in sampled.told() {
            json.begin_object();
            json.name("object", object);
            json.name("name", name);
            json.key("count");
            json.integer(i128::from(*count));
            json.end_object();
        }
        json.end_array();
        json.end_object();
    }

    /// Parts that can be looked at one by one, in the order of their columns.
    fn parts(&self, json: &mut Json) {
        let Side { model, parts, inputs, processes, .. } = &self.sides[0];
        let files = inputs.iter().enumerate().flat_map(|(at, (_, header, count))| vec![(at, header.pid); *count]);
        let known = model.parts.iter().zip(&model.part_totals).zip(files).zip(processes);
        json.key("parts");
        json.begin_array();
        for ((((part, total), (input, pid)), process), _) in known.zip(parts) {
            let pid = process.as_ref().map(|process| process.pid).or(pid);
            json.begin_object();
            json.key("input");
            json.integer(input as i128);
            for (key, number) in [("pid", pid), ("number", part.header.number), ("thread", part.header.thread)] {
                if let Some(number) = number {
                    json.key(key);
                    json.integer(i128::from(number));
                }
            }
            if let Some(process) = process {
                json.name("program", crate::names::last(&process.executable));
                json.name("command", if self.redacted { b"" } else { process.command.trim_ascii() });
            }
            json.key("desc");
            json.begin_array();
            part.header.desc.iter().filter(|_| !self.redacted).for_each(|line| json.string(line));
            json.end_array();
            json.key("totals");
            json.begin_array();
            self.show.iter().for_each(|event| json.string(total.value(*event).to_string().as_bytes()));
            json.end_array();
            json.end_object();
        }
        json.end_array();
    }

    /// What a file is called, by its place among all of them.
    fn called<'b>(&'b self, name: &'b str, at: usize) -> &'b [u8] {
        match self.labels.get(at) {
            Some(label) => label.as_bytes(),
            None if self.redacted => crate::names::last(name.as_bytes()),
            None => name.as_bytes(),
        }
    }

    /// A side whose first file has this place among all of them.
    fn side(&self, json: &mut Json, side: &Side, totals: &[i64], first: usize) {
        let model = &side.model;
        json.begin_object();
        json.key("command");
        json.string(if self.redacted { b"" } else { model.header.cmd.trim_ascii() });
        json.key("creator");
        json.string(&model.header.creator);
        json.key("addresses");
        json.boolean(side.addresses);
        json.key("jumps");
        json.boolean(side.jumps);
        json.key("calculated");
        json.boolean(model.total.calculated);
        // As text: numbers of JavaScript have 53 bits.
        json.key("totals");
        json.begin_array();
        totals.iter().for_each(|total| json.string(total.to_string().as_bytes()));
        json.end_array();
        json.key("inputs");
        json.begin_array();
        let shown = side.runs.as_ref().map_or(0, |runs| runs.shown);
        for ((name, header, parts), at) in side.inputs.iter().zip(first + shown..) {
            json.begin_object();
            json.key("name");
            json.string(self.called(name, at));
            json.key("parts");
            json.integer(*parts as i128);
            json.key("desc");
            json.begin_array();
            header.desc.iter().filter(|_| !self.redacted).for_each(|line| json.string(line));
            json.end_array();
            json.end_object();
        }
        json.end_array();
        json.key("shown");
        json.integer(shown as i128);
        json.key("runs");
        json.begin_array();
        for ((name, totals), at) in side.runs.iter().flat_map(|runs| &runs.all).zip(first..) {
            json.begin_object();
            json.key("name");
            json.string(self.called(name, at));
            json.key("totals");
            json.begin_array();
            for event in self.show {
                // Sides may count in different orders; what only one of them counts is not shown.
                let name = &self.sides[0].model.events[*event];
                let own = side.model.events.iter().position(|known| known == name);
                let total = own.and_then(|own| totals.get(own)).copied().unwrap_or(0);
                json.string(total.to_string().as_bytes());
            }
            json.end_array();
            json.end_object();
        }
        json.end_array();
        json.end_object();
    }
}
