//! The callgrind tool's share in a session: announces processes, answers the program and those who ask from outside.
//!
//! Every request gets one answer, if only that the process has ended meanwhile.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use callgrind_control_protocol::{Answer, Asked, Request, Status};
use cg_format::callgrind::Header;
use grind_analysis::callgrind::boundaries::Boundaries;
use grind_analysis::callgrind::dump_service::{DumpService, Statistics};
use grind_analysis::callgrind::dumps::Written;
use grind_analysis::saved::Saved;
use grind_session::{AtStart, ControlRequest, Instrumentation, Wanted};
use grind_types::{Module, Query};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::control::Control;

/// What is known of a process here.
#[derive(Clone, Debug)]
struct Process {
    args: Vec<OsString>,
    instrumentation: bool,
}

/// See the module's description.
#[derive(Debug)]
pub struct CallSession {
    dump_service: DumpService,
    boundaries: Boundaries,
    control: Control,
    /// The names of the events.
    events: Vec<String>,
    instr_at_start: AtStart,
    processes: HashMap<i32, Process>,
    /// What the engine is about to call [`CallSession::asked`] for.
    current: Option<(i32, Asked)>,
}

impl CallSession {
    /// A session without processes. To be made by the thread that runs the engine.
    #[must_use]
    pub fn new(
        dump_service: DumpService,
        boundaries: Boundaries,
        events: Vec<String>,
        instr_at_start: AtStart,
    ) -> CallSession {
        let control = Control::new();
        CallSession {
            dump_service,
            boundaries,
            control,
            events,
            instr_at_start,
            processes: HashMap::new(),
            current: None,
        }
    }

    /// Where functions begin and end in `module`.
    pub fn boundaries(&mut self, module: &Module) -> Vec<u64> {
        self.boundaries.of(module)
    }

    /// Process `pid` begins to run `args`; its profile is `file`.
    ///
    /// # Errors
    /// Nobody can ask the process anything.
    pub fn started(&mut self, pid: i32, args: &[OsString], file: PathBuf) -> io::Result<()> {
        let instrumentation = match self.instr_at_start {
            AtStart::Counting => true,
            AtStart::NotCounting => false,
            // What it has executed before is known, if it has.
            AtStart::Inherited => self.processes.get(&pid).is_some_and(|p| p.instrumentation),
        };
        self.begin(pid, args, file, instrumentation)
    }

    /// The same for `child`, a copy of `parent`.
    ///
    /// # Errors
    /// As [`CallSession::started`].
    pub fn forked(&mut self, parent: i32, child: i32, file: PathBuf) -> io::Result<()> {
        let Some(p) = self.processes.get(&parent).cloned() else { return Ok(()) };
        self.begin(child, &p.args, file, p.instrumentation)
    }

    fn begin(&mut self, pid: i32, args: &[OsString], file: PathBuf, instrumentation: bool) -> io::Result<()> {
        self.dump_service.begin(pid, args, file);
        self.processes.insert(pid, Process { args: args.to_vec(), instrumentation });
        self.control.listen(pid)
    }

    /// Something has failed: what is written from here on is incomplete.
    pub fn incomplete(&self, what: &str) {
        self.dump_service.incomplete(what);
    }

    /// The header of a file that begins with process `pid`, which runs `args`, and the names of the events.
    #[must_use]
    pub fn header(&self, pid: i32, args: &[OsString]) -> (Header, &[String]) {
        (self.dump_service.header(pid, args), &self.events)
    }

    /// The parts that were written since this was last asked.
    #[must_use]
    pub fn written(&self, pid: i32) -> Vec<Written> {
        self.dump_service.written(pid)
    }

    /// For a verbose log: what the back-dating tree of a process was like that has ended.
    #[must_use]
    pub fn tree(&self, pid: i32) -> Option<String> {
        let Statistics { nodes, most_nodes, created, pruned, arcs } = self.dump_service.tree(pid)?;
        Some(format!(
            "Cache use: {nodes:.1} nodes on average, {most_nodes} at most; {created} created, {pruned} pruned; \
             {arcs} call arcs"
        ))
    }

    /// The process has ended, or goes on with a program that is not followed: the files that were written last, and what
    /// all parts add up to.
    pub fn ended(&mut self, pid: i32) -> (Vec<Written>, Option<Vec<i128>>) {
        self.control.forget(pid);
        self.processes.remove(&pid);
        let written = self.dump_service.written(pid);
        (written, self.dump_service.end(pid))
    }

    /// The program itself has switched instrumentation on or off.
    pub fn switched(&mut self, pid: i32, on: bool) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.instrumentation = on;
        }
    }

    /// What somebody outside wants next.
    pub fn control_request(&mut self) -> Option<ControlRequest> {
        if let Some((pid, asked)) = self.current.take() {
            asked.answer(Answer::Refused(format!("process {pid} has ended")));
        }
        loop {
            let (pid, asked) = self.control.take()?;
            let ask = match &asked.request {
                Request::Status => Query::Look,
                Request::Dump(_) => Query::Dump(Some(asked.request.line().into_bytes())),
                Request::Zero => Query::Zero,
                Request::Instrumentation(on) => {
                    let what = if *on { Instrumentation::Start } else { Instrumentation::Stop };
                    self.switched(pid, *on);
                    asked.answer(Answer::Done(Vec::new()));
                    return Some(ControlRequest { pid, what: Wanted::Instrumentation(what) });
                }
                Request::Detach => {
                    asked.answer(Answer::Done(Vec::new()));
                    return Some(ControlRequest { pid, what: Wanted::Detach });
                }
                Request::Kill => {
                    let answer = match kill(Pid::from_raw(pid), Signal::SIGKILL) {
                        Ok(()) => Answer::Done(Vec::new()),
                        Err(error) => Answer::Refused(error.desc().to_owned()),
                    };
                    asked.answer(answer);
                    continue;
                }
            };
            self.current = Some((pid, asked));
            return Some(ControlRequest { pid, what: Wanted::Query(ask) });
        }
    }

    /// Process `pid` stands still, and the recorder has done what was asked, by thread `tid` or from outside (0). Returns
    /// the files that were written.
    pub fn asked(&mut self, pid: i32, tid: i32, ask: &Query) -> Vec<Written> {
        let written = self.dump_service.written(pid);
        let Some((_, asked)) = self.current.take_if(|(of, _)| tid == 0 && *of == pid) else { return written };
        let answer = match ask {
            Query::Look => Answer::from(&self.status(pid)),
            Query::Dump(_) => dumped(&written),
            Query::Zero | Query::ToggleCollect | Query::SkipObject(_) | Query::Describe(_) => Answer::Done(Vec::new()),
        };
        asked.answer(answer);
        written
    }

    fn status(&self, pid: i32) -> Status {
        let progress = self.dump_service.progress(pid).unwrap_or_default();
        let known = self.processes.get(&pid);
        let words = known.map(|p| p.args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>());
        Status {
            command: words.unwrap_or_default().join(" "),
            instrumentation: known.is_some_and(|p| p.instrumentation),
            events: self.events.clone(),
            part: self.dump_service.part(pid),
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
