//! Who asks from outside while programs run: listening for them, what cannot be served, and who looks at what runs.

use grind_names::opened::Opened;
use grind_session::{ControlRequest, Notice, ProcessReport, Session as _, Wanted};
use grind_types::Pid;

use callgrind_control_protocol::{Request, Tool as ControlTool};

use super::Runner;
use crate::control::Control;
use crate::live::Live;
use crate::live::sample::Modified;
use crate::options::Tool;
use crate::{os, resolve};

impl Runner<'_> {
    /// Processes can be asked from outside. To be called by the thread that runs the engine, when there may be threads.
    pub fn listens(&mut self, opened: Opened) {
        let tool = match self.options.tool {
            Tool::Callgrind => ControlTool::Callgrind,
            Tool::Cachegrind => ControlTool::Cachegrind,
        };
        self.control = Some(Control::new(tool));
        self.live = Some(Live::new(opened, self.made()));
    }

    /// Process `pid` begins to run a program, or to be followed: it can be asked.
    pub(super) fn listen(&mut self, pid: Pid) {
        if let Some(live) = &mut self.live {
            live.forget(pid);
        }
        let Some(control) = &mut self.control else { return };
        // Cachegrind says nothing of it, and its logs are compared; callgrind says at once whether it listens.
        let calls = self.options.tool == Tool::Callgrind;
        let listens = if calls { control.listen(pid) } else { control.listen_later(pid) };
        match listens {
            Ok(()) if calls && self.options.verbosity > 0 => {
                self.user(pid, "For interactive control, run 'callgrind_control -h'.");
            }
            Ok(()) => {}
            Err(error) => {
                let reason = resolve::reason(&error);
                self.notice(
                    pid,
                    match calls {
                        true => Notice::Warning(format!("callgrind_control cannot reach this run: {reason}")),
                        false => Notice::Detail(format!("cg_control cannot reach this run: {reason}")),
                    },
                );
            }
        }
    }

    /// What somebody outside wants next.
    pub(super) fn next_request(&mut self) -> Option<ControlRequest> {
        let told = self.options.tool == Tool::Callgrind && !self.options.callgrind.followed();
        let lines = self.options.tool == Tool::Cachegrind;
        let refused = |request: &Request| {
            let cause = match request {
                Request::Functions(_) if told => {
                    "calls are told one by one here, so there are no counters to look at while the program runs: --back and \
                     --dump show what is known"
                }
                Request::Collection(_) if lines => {
                    "cachegrind collects the costs of whatever it counts: --instr switches counting"
                }
                _ => return None,
            };
            Some(cause.to_owned())
        };
        let next = self.control.as_mut()?.next(refused);
        if next.as_ref().is_some_and(|next| next.what == Wanted::Peek) {
            self.peek_began = os::thread_time();
        }
        next
    }

    /// Somebody looks at what a process executes.
    pub(super) fn look(&mut self, report: &ProcessReport<'_>) {
        let Some(asked) = self.control.as_mut().and_then(|control| control.served(report.pid, None)) else { return };
        let (Some(live), Some(process)) = (&mut self.live, self.processes.get(&report.pid)) else { return };
        let (found, modified) = match &self.calls {
            Some(calls) => (calls.findings(report.pid), Modified::Written),
            None => (self.findings.take(report.pid).findings, Modified::Read),
        };
        live.answer(report, process.began, (self.simulation.events(), modified), &found, (asked, self.peek_began));
    }
}
