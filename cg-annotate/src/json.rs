//! The report as JSON. The schema is described in the manual; a change that could break a reader raises [`VERSION`].

use cg_cli::json::Json;

use crate::growth::{self, ChangedLine, FunctionVerdict, Growth};
use crate::model::{Inner, Model, Outer, Verdict};
use crate::source::{Source, Text, plan};
use crate::style::Style;

/// The version of the schema.
pub(crate) const VERSION: i128 = 1;

/// Keys of the sums of the annotation summary, in the order of [`crate::source::LABELS`].
const COVERAGE: [&str; 6] = [
    "annotated_line_known",
    "annotated_line_unknown",
    "unannotated_not_identical",
    "unannotated_unreadable",
    "unannotated_below_threshold",
    "unannotated_unknown_file",
];

/// The whole report.
pub(crate) fn report(
    model: &Model,
    style: &Style,
    verdicts: &[Verdict<'_>],
    of_functions: &[FunctionVerdict<'_>],
) -> anyhow::Result<String> {
    let mut json = Json::default();
    json.begin_object();
    json.name("schema", b"cg_annotate");
    json.key("version");
    json.integer(VERSION);
    json.name("invocation", &style.invocation);
    json.key("inputs");
    json.begin_array();
    for (file, header) in &model.inputs {
        json.begin_object();
        json.name("file", file.as_bytes());
        json.key("desc");
        json.begin_array();
        header.desc.iter().for_each(|desc| json.string(desc));
        json.end_array();
        json.name("command", &header.cmd);
        json.end_object();
    }
    json.end_array();
    json.key("difference");
    json.boolean(model.sides.is_some());
    let all: Vec<usize> = (0..model.profile.header.events.len()).collect();
    for (key, indices) in [("events", &all), ("events_shown", &model.show), ("events_sort", &model.sort)] {
        json.key(key);
        json.begin_array();
        model.names(indices).iter().for_each(|name| json.string(name.as_bytes()));
        json.end_array();
    }
    json.key("threshold_percent");
    json.float(style.threshold);
    json.integers("total", model.profile.total().iter().copied());
    if let Some([before, after]) = &model.sides {
        json.integers("total_before", before.iter().copied());
        json.integers("total_after", after.iter().copied());
    }
    gate(&mut json, verdicts);
    if !of_functions.is_empty() {
        json.key("fail_above_function");
        json.begin_array();
        for FunctionVerdict { bound, failed, .. } in of_functions {
            json.begin_object();
            json.name("event", bound.event.as_bytes());
            json.key("bound_percent");
            json.float(bound.percent);
            json.key("failed");
            json.boolean(!failed.is_empty());
            grown(&mut json, "functions", failed);
            json.end_object();
        }
        json.end_array();
    }
    if let Some(pair) = &model.pair {
        grown(&mut json, "growth", &growth::changed(model, pair)?);
    }
    let files = model.by_file()?;
    outers(&mut json, "files", "functions", &files);
    outers(&mut json, "functions", "files", &model.by_function(&files)?);
    if style.annotate {
        annotation(&mut json, model, &files)?;
    }
    json.end_object();
    Ok(json.finish())
}

fn gate(json: &mut Json, verdicts: &[Verdict<'_>]) {
    if verdicts.is_empty() {
        return;
    }
    json.key("fail_above");
    json.begin_array();
    for verdict in verdicts {
        json.begin_object();
        json.name("event", verdict.bound.event.as_bytes());
        json.key("bound_percent");
        json.float(verdict.bound.percent);
        json.key("growth_percent");
        match verdict.growth {
            Some(growth) => json.float(growth),
            None => json.null(),
        }
        json.key("failed");
        json.boolean(verdict.failed);
        json.end_object();
    }
    json.end_array();
}

fn grown(json: &mut Json, key: &str, all: &[Growth<'_>]) {
    json.key(key);
    json.begin_array();
    for growth in all {
        json.begin_object();
        json.name("file", growth.file);
        json.name("function", growth.function);
        let [before, after] = &growth.sides;
        json.integers("before", before.iter().copied());
        json.integers("after", after.iter().copied());
        json.key("growth_percent");
        json.begin_array();
        for event in 0..before.len() {
            match growth.percent(event) {
                Some(percent) => json.float(percent),
                None => json.null(),
            }
        }
        json.end_array();
        json.end_object();
    }
    json.end_array();
}

/// The lines of a changed file of which either side has counts.
fn changed_lines(json: &mut Json, lines: &[ChangedLine<'_>]) {
    json.key("changed_lines");
    json.begin_array();
    for line in lines.iter().filter(|line| line.counts.iter().any(Option::is_some)) {
        json.begin_object();
        for (key, number) in ["line_before", "line_after"].into_iter().zip(line.numbers) {
            json.key(key);
            match number {
                Some(number) => json.integer(i128::from(number)),
                None => json.null(),
            }
        }
        for (key, counts) in ["before", "after"].into_iter().zip(&line.counts) {
            match counts {
                Some(counts) => json.integers(key, counts.iter().copied()),
                None => {
                    json.key(key);
                    json.null();
                }
            }
        }
        json.name("text", line.text);
        json.end_object();
    }
    json.end_array();
}

fn outers(json: &mut Json, key: &str, inner_key: &str, outers: &[Outer<'_>]) {
    json.key(key);
    json.begin_array();
    for outer in outers {
        json.begin_object();
        json.name("name", outer.name);
        json.integers("counts", outer.counts.view().iter());
        json.key(inner_key);
        json.begin_array();
        for Inner { name, counts } in &outer.inner {
            json.begin_object();
            json.name("name", name);
            json.integers("counts", counts.view().iter());
            json.end_object();
        }
        json.end_array();
        json.end_object();
    }
    json.end_array();
}

fn annotation(json: &mut Json, model: &Model, files: &[Outer<'_>]) -> anyhow::Result<()> {
    let (names, mut coverage) = plan(model, files)?;
    json.key("sources");
    json.begin_array();
    for name in names {
        let source = Source::open(model, name)?;
        coverage.add(&source)?;
        json.begin_object();
        json.name("name", &source.name);
        json.key("originals");
        json.begin_array();
        source.originals.iter().for_each(|name| json.string(name));
        json.end_array();
        json.name(
            "state",
            match source.text {
                Text::Known(_) => b"annotated",
                Text::Unreadable => b"unreadable",
                Text::NotIdentical => b"not identical",
                Text::Changed(_) => b"changed",
            },
        );
        json.key("newer_than");
        json.begin_array();
        source.outdated.iter().for_each(|input| json.string(input.as_bytes()));
        json.end_array();
        let text: Vec<&[u8]> = match &source.text {
            Text::Known(text) => cg_cli::source_text::lines(text).map(|(_, line)| line).collect(),
            Text::Unreadable | Text::NotIdentical | Text::Changed(_) => Vec::new(),
        };
        json.key("lines");
        json.begin_array();
        for (line, counts) in &source.lines {
            json.begin_object();
            json.key("line");
            json.integer(i128::from(*line));
            json.integers("counts", counts.iter().copied());
            if let Some(content) = line.checked_sub(1).and_then(|i| text.get(usize::try_from(i).ok()?)) {
                json.name("text", content);
            }
            json.end_object();
        }
        json.end_array();
        if let (Text::Changed(texts), Some(pair)) = (&source.text, &model.pair) {
            changed_lines(json, &growth::lines(model, pair, &source.name, texts.each_ref().map(|text| &text[..]))?);
        }
        json.end_object();
    }
    json.end_array();
    json.key("annotation");
    json.begin_object();
    for (key, sums) in COVERAGE.iter().zip(&coverage.sums) {
        json.integers(key, sums.iter().copied());
    }
    json.end_object();
    Ok(())
}
