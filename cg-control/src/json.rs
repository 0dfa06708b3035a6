//! What is said with `--json`. Its shape is documented in `docs/reference/formats.md`.

use callgrind_control_protocol::{Activity, Request, Status};
use cg_cli::json::Json;

/// What there is to say of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pid: u32,
    status: Status,
    served: Vec<(String, Vec<String>)>,
    error: Option<String>,
}

impl Run {
    pub(crate) fn new(pid: u32, status: &Status) -> Self {
        Self { pid, status: status.clone(), served: Vec::new(), error: None }
    }

    /// It has done what was asked, and answered these lines.
    #[allow(clippy::unnecessary_wraps, reason = "what says it as text may fail")]
    pub(crate) fn served(&mut self, request: &Request, lines: &[String]) -> anyhow::Result<()> {
        let word = request.line().split(' ').next().unwrap_or_default().to_owned();
        self.served.push((word, lines.to_vec()));
        Ok(())
    }

    /// It has not.
    pub(crate) fn failed(&mut self, error: &str) {
        self.error = Some(error.to_owned());
    }
}

/// All runs, as one object.
pub(crate) fn runs(runs: &[Run]) -> String {
    let mut json = Json::default();
    json.begin_object();
    json.key("runs");
    json.begin_array();
    for run in runs {
        one(&mut json, run);
    }
    json.end_array();
    json.end_object();
    json.finish()
}

fn one(json: &mut Json, run: &Run) {
    let status = &run.status;
    json.begin_object();
    json.key("pid");
    json.integer(run.pid.into());
    json.name("tool", status.tool.name().as_bytes());
    json.name("command", status.command.as_bytes());
    json.key("instrumentation");
    json.boolean(status.instrumentation);
    json.key("part");
    json.integer(status.part.into());
    json.key("events");
    json.begin_array();
    status.events.iter().for_each(|event| json.string(event.as_bytes()));
    json.end_array();
    if !status.totals.is_empty() {
        json.key("totals");
        costs(json, &status.events, &status.totals);
    }
    json.key("figures");
    json.begin_object();
    for (name, value) in &status.figures {
        json.key(name);
        json.integer((*value).into());
    }
    json.end_object();
    json.key("threads");
    json.begin_array();
    for thread in &status.threads {
        json.begin_object();
        json.key("id");
        json.integer(thread.id.into());
        json.key("total");
        costs(json, &status.events, &thread.total);
        json.key("calls");
        json.begin_array();
        for frame in thread.frames.iter().rev() {
            json.begin_object();
            json.name("function", frame.function.as_bytes());
            json.key("calls");
            json.integer(frame.calls.into());
            json.key("cost");
            costs(json, &status.events, &frame.cost);
            json.end_object();
        }
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.key("requests");
    json.begin_array();
    for (request, lines) in &run.served {
        json.begin_object();
        json.name("request", request.as_bytes());
        json.key("answer");
        json.begin_array();
        lines.iter().for_each(|line| json.string(line.as_bytes()));
        json.end_array();
        json.end_object();
    }
    json.end_array();
    if let Some(error) = &run.error {
        json.name("error", error.as_bytes());
    }
    json.end_object();
}

/// Costs by the names of their events, as far as they are known.
fn costs(json: &mut Json, events: &[String], costs: &[u64]) {
    json.begin_object();
    for (event, cost) in events.iter().zip(costs) {
        json.key(event);
        json.integer((*cost).into());
    }
    json.end_object();
}

/// What a run has executed lately, as one object.
pub(crate) fn activity(pid: u32, activity: &Activity) -> String {
    let mut json = Json::default();
    json.begin_object();
    json.key("pid");
    json.integer(pid.into());
    json.key("microseconds");
    json.integer(activity.micros.into());
    json.key("total");
    costs(&mut json, &activity.events, &activity.total);
    json.key("known_functions");
    json.integer(activity.known.into());
    json.key("threads");
    json.begin_array();
    for thread in &activity.threads {
        json.begin_object();
        json.key("id");
        json.integer(thread.id.into());
        json.name("name", thread.name.as_bytes());
        json.key("instructions");
        json.integer(thread.instructions.into());
        json.end_object();
    }
    json.end_array();
    json.key("functions");
    json.begin_array();
    for function in &activity.functions {
        json.begin_object();
        json.name("function", function.name.as_bytes());
        json.name("file", function.file.as_bytes());
        json.key("cost");
        costs(&mut json, &activity.events, &function.cost);
        json.end_object();
    }
    json.end_array();
    json.end_object();
    json.finish()
}
