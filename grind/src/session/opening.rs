//! What the log says when a process begins: who runs what, and with `-v` how. It says nothing of counts, which there are none of yet.

use std::ffi::OsString;

use grind_isa::cpuid::CpuModel;
use grind_types::Pid;

use super::Runner;
use crate::log::{Voice, command_line};
use crate::options::LogTarget;

impl Runner<'_> {
    /// The command of a process that begins to run `args`: as it was given, if that was a script, to whose words the kernel,
    /// or a shell in its place, has added those of its interpreter.
    pub(super) fn command(&mut self, pid: Pid, first: bool, args: &[OsString]) -> Vec<OsString> {
        let given = self.given.1.remove(&pid).unwrap_or_default();
        let given = if first { std::mem::take(&mut self.given.0) } else { given };
        match given.split_first() {
            Some((_, rest)) if args.len() > given.len() && args.ends_with(rest) => given,
            _ => args.to_vec(),
        }
    }

    pub(super) fn banner(&mut self, pid: Pid) {
        if self.options.verbosity < 1 {
            return;
        }
        let Some(process) = self.processes.get(&pid).cloned() else { return };
        let mut lines =
            format!("{}\nCommand: {}\n", self.invocation.banner(self.options.tool), command_line(&process.args));
        if matches!(self.options.log, LogTarget::File(_)) {
            lines.push_str(&format!("Parent PID: {}\n", process.parent));
        }
        self.user(pid, &lines);
    }

    pub(super) fn verbose_start(&mut self, pid: Pid) {
        if self.options.verbosity < 2 {
            return;
        }
        let mut lines = String::from("Options:");
        for word in &self.options.words {
            lines.push_str(&format!("\n   {}", word.to_string_lossy()));
        }
        if let Ok(version) = std::fs::read_to_string("/proc/version") {
            lines.push_str(&format!("\nContents of /proc/version:\n  {}", version.trim_end()));
        }
        lines.push_str(&format!(
            "\nProcessor shown to the program: {}",
            match self.options.cpu {
                CpuModel::Baseline => "baseline (a fixed Haswell-class model)",
                CpuModel::Host => "that of this machine",
            }
        ));
        self.log.say(pid, Voice::Detail, &lines);
    }

    pub(super) fn describe_simulation(&mut self, pid: Pid) {
        for note in self.simulation.notes() {
            self.log.say(pid, Voice::Detail, note);
        }
        for remark in self.simulation.remarks() {
            self.log.say(pid, Voice::User, remark);
        }
        if self.options.verbosity > 1
            && let Some(configuration) = self.simulation.configuration()
        {
            self.log.say(pid, Voice::User, &configuration);
        }
    }
}
