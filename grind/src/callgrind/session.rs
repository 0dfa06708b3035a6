//! The callgrind tool's share in a session: announces processes to the recorder, and knows what it has to say of them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use callgrind_control_protocol::{Answer, Status, Tool};
use cg_cli::saved::Saved;
use cg_format::callgrind::Header;
use grind_analysis::callgrind::dump_service::{DumpService, Statistics};
use grind_analysis::callgrind::dumps::Written;
use grind_analysis::callgrind::objects_part::WrittenObjects;
use grind_analysis::simulator::Finding;
use grind_names::boundaries::Boundaries;
use grind_session::ProcessReport;
use grind_types::{Module, Pid, Query};

/// See the module's description.
#[derive(Debug)]
pub struct CallSession {
    dump_service: DumpService,
    boundaries: Boundaries,
    /// The names of the events.
    events: Vec<String>,
    /// The command of each process.
    commands: HashMap<Pid, Vec<OsString>>,
}

impl CallSession {
    /// A session without processes.
    #[must_use]
    pub fn new(dump_service: DumpService, boundaries: Boundaries, events: Vec<String>) -> CallSession {
        CallSession { dump_service, boundaries, events, commands: HashMap::new() }
    }

    /// Where functions begin and end in `module`.
    pub fn boundaries(&mut self, module: &Module) -> Vec<u64> {
        self.boundaries.of(module)
    }

    /// Process `pid` begins to run `args`; its profile is `file`.
    pub fn started(&mut self, pid: Pid, args: &[OsString], file: PathBuf) {
        self.dump_service.begin(pid, args, file);
        self.commands.insert(pid, args.to_vec());
    }

    /// The same for `child`, a copy of `parent`.
    pub fn forked(&mut self, parent: Pid, child: Pid, file: PathBuf) {
        if let Some(args) = self.commands.get(&parent).cloned() {
            self.started(child, &args, file);
        }
    }

    /// Something has failed: what is written from here on is incomplete.
    pub fn incomplete(&self, what: &str) {
        self.dump_service.incomplete(what);
    }

    /// The header of a file that begins with process `pid`, which runs `args`, and the names of the events.
    #[must_use]
    pub fn header(&self, pid: Pid, args: &[OsString]) -> (Header, &[String]) {
        (self.dump_service.header(pid, args), &self.events)
    }

    /// The parts that were written since this was last asked.
    #[must_use]
    pub fn written(&self, pid: Pid) -> Vec<Written> {
        self.dump_service.written(pid)
    }

    /// The data objects of the parts that were written since this was last asked.
    #[must_use]
    pub fn objects(&self, pid: Pid) -> Vec<WrittenObjects> {
        self.dump_service.objects(pid)
    }

    /// What has missed in process `pid`, which is being looked at, by instruction.
    #[must_use]
    pub fn findings(&self, pid: Pid) -> Vec<Finding> {
        self.dump_service.findings(pid)
    }

    /// For a verbose log: what the back-dating tree of a process was like that has ended.
    #[must_use]
    pub fn tree(&self, pid: Pid) -> Option<String> {
        let Statistics { nodes, most_nodes, created, pruned, arcs } = self.dump_service.tree(pid)?;
        Some(format!(
            "Cache use: {nodes:.1} nodes on average, {most_nodes} at most; {created} created, {pruned} pruned; \
             {arcs} call arcs"
        ))
    }

    /// The process has ended, or goes on with a program that is not followed: the files that were written last, and what
    /// all parts add up to, as [`DumpService::end`] says it.
    pub fn ended(&mut self, pid: Pid) -> (Vec<Written>, Option<(Vec<i128>, u64)>) {
        self.commands.remove(&pid);
        let written = self.dump_service.written(pid);
        (written, self.dump_service.end(pid))
    }

    /// Process `report.pid` stands still, and the recorder has done what was asked: the answer, if these files were `written` for
    /// it.
    #[must_use]
    pub fn answer(&self, report: &ProcessReport<'_>, ask: &Query, written: &[Written]) -> Answer {
        match ask {
            Query::Look => Answer::from(&self.status(report)),
            Query::Dump(_) => dumped(written),
            Query::Zero
            | Query::ToggleCollect
            | Query::Collect(_)
            | Query::Peek
            | Query::SkipObject(_)
            | Query::Describe(_) => Answer::Done(Vec::new()),
        }
    }

    fn status(&self, report: &ProcessReport<'_>) -> Status {
        let pid = report.pid;
        let progress = self.dump_service.progress(pid).unwrap_or_default();
        let words = self.commands.get(&pid).map(|args| args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>());
        Status {
            command: words.unwrap_or_default().join(" "),
            tool: Tool::Callgrind,
            instrumentation: report.counting,
            events: self.events.clone(),
            part: self.dump_service.part(pid),
            totals: Vec::new(),
            figures: progress.figures,
            threads: progress.threads,
        }
    }
}

/// The names of the files, or why there is none.
fn dumped(written: &[Written]) -> Answer {
    let mut names = Vec::new();
    for file in written {
        match &file.saved {
            Saved::AsAsked => names.push(file.path.display().to_string()),
            Saved::Elsewhere(_, instead) => names.push(instead.display().to_string()),
            Saved::Nowhere(reason) => return Answer::Refused(format!("{}: {reason}", file.path.display())),
        }
    }
    Answer::Done(names)
}
