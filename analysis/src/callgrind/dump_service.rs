//! Where the two sides of a run meet: the recorder, which finds out what was collected, on its thread; and the session, which
//! knows names of files and talks to people, on the engine's.
//!
//! The recorder writes a part as soon as it is due; what became of it the session learns when it asks. Invariant: a process
//! is announced before anything of it is recorded, so no part is without a file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grind_types::Pid;

use callgrind_control_protocol::Thread;
use cg_calls::Profile;
use cg_format::callgrind::Header;

use super::code::Catalogue;
use super::dumps::{About, Dumps, Shared, Written};
use super::objects_part::{ObjectsPart, WrittenObjects};
use super::parts::Trigger;
use crate::simulator::Finding;
use grind_session::broken;

/// What was found since the last part.
#[derive(Clone, Debug)]
pub struct Found {
    /// Why it was taken.
    pub trigger: Trigger,
    /// What the program has said of it.
    pub descriptions: Vec<Vec<u8>>,
    /// How many blocks have been executed in all.
    pub blocks: u64,
    /// The calls and costs of each thread, by number of thread (from 1), in ascending order.
    pub threads: Vec<(u64, Profile)>,
    /// What was found at data objects, if they are asked for.
    pub objects: Option<ObjectsPart>,
}

/// How far a process is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Figures by name.
    pub figures: Vec<(String, u64)>,
    /// The threads.
    pub threads: Vec<Thread>,
}

/// What the back-dating tree of a process was like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Nodes, on average over all lines that were evicted.
    pub nodes: f64,
    /// The most nodes there were at a time.
    pub most_nodes: u64,
    /// Nodes ever made.
    pub created: u64,
    /// Nodes whose costs went to their callers.
    pub pruned: u64,
    /// Call arcs that had nodes.
    pub arcs: u64,
}

#[derive(Debug, Default)]
struct Process {
    dumps: Option<Dumps>,
    written: Vec<Written>,
    objects: Vec<WrittenObjects>,
    progress: Option<Progress>,
    statistics: Option<Statistics>,
    findings: Vec<Finding>,
}

#[derive(Debug)]
struct Inner {
    about: About,
    /// What has failed that must not, if something has.
    broken: Option<String>,
    processes: HashMap<Pid, Process>,
    /// There while no part is being written.
    shared: Option<Shared>,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct DumpService(Arc<Mutex<Inner>>);

impl DumpService {
    /// A dump service for a run.
    #[must_use]
    pub fn new(about: About) -> DumpService {
        let shared = about.settings.tree.then(|| Shared::new(&about.settings));
        DumpService(Arc::new(Mutex::new(Inner { about, broken: None, processes: HashMap::new(), shared })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a panic left is as good as anything.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- The session's side --------------------------------------------------------------------------------------

    /// Process `pid` begins to run `args`; its profile is `file`.
    pub fn begin(&self, pid: Pid, args: &[OsString], file: PathBuf) {
        let mut inner = self.inner();
        let dumps = Dumps::new(inner.about.clone(), pid, args, file);
        inner.processes.insert(pid, Process { dumps: Some(dumps), ..Process::default() });
    }

    /// The header of a file that begins with process `pid`, which runs `args`.
    #[must_use]
    pub fn header(&self, pid: Pid, args: &[OsString]) -> Header {
        self.inner().about.header(pid, args)
    }

    /// The number of the part that is being collected.
    #[must_use]
    pub fn part(&self, pid: Pid) -> u64 {
        self.inner().processes.get(&pid).and_then(|p| p.dumps.as_ref()).map_or(1, Dumps::number)
    }

    /// The files that were written since this was last asked.
    #[must_use]
    pub fn written(&self, pid: Pid) -> Vec<Written> {
        self.inner().processes.get_mut(&pid).map(|p| std::mem::take(&mut p.written)).unwrap_or_default()
    }

    /// The objects of parts that were written since this was last asked.
    #[must_use]
    pub fn objects(&self, pid: Pid) -> Vec<WrittenObjects> {
        self.inner().processes.get_mut(&pid).map(|p| std::mem::take(&mut p.objects)).unwrap_or_default()
    }

    /// How far the process is, if the recorder was just asked.
    #[must_use]
    pub fn progress(&self, pid: Pid) -> Option<Progress> {
        self.inner().processes.get_mut(&pid)?.progress.take()
    }

    /// What has missed in the process since the last part, by instruction, if the recorder was just asked.
    #[must_use]
    pub fn findings(&self, pid: Pid) -> Vec<Finding> {
        self.inner().processes.get_mut(&pid).map(|p| std::mem::take(&mut p.findings)).unwrap_or_default()
    }

    /// What the tree of a process was like that has ended, if there was one.
    #[must_use]
    pub fn tree(&self, pid: Pid) -> Option<Statistics> {
        self.inner().processes.get(&pid)?.statistics
    }

    /// The process has ended: what its parts add up to, and how many executions in them are of instructions that the model of cycles
    /// does not have.
    #[must_use]
    pub fn end(&self, pid: Pid) -> Option<(Vec<i128>, u64)> {
        let dumps = self.inner().processes.remove(&pid)?.dumps?;
        Some((dumps.total().to_vec(), dumps.unknown()))
    }

    /// Something has failed that must not: what is written from here on is incomplete. (Either side may tell, the first counts.)
    pub fn incomplete(&self, what: &str) {
        self.inner().broken.get_or_insert_with(|| what.to_owned());
    }

    // ---- The recorder's side -------------------------------------------------------------------------------------

    /// Writes a part.
    pub fn write(&self, pid: Pid, found: Found, catalogue: &mut Catalogue) {
        let Found { trigger, descriptions, blocks, threads, objects } = found;
        // The session must not wait while debug information is read: it may be asked for something.
        let (dumps, broken, mut shared) = {
            let mut inner = self.inner();
            let dumps = inner.processes.get_mut(&pid).and_then(|p| p.dumps.take());
            let shared = if dumps.is_some() { inner.shared.take() } else { None };
            (dumps, inner.broken.clone(), shared)
        };
        let Some(mut dumps) = dumps else { return };
        if let Some(shared) = &mut shared {
            dumps.exchange(shared);
        }
        let number = dumps.number();
        let written =
            broken::caught(|| dumps.write((&trigger, descriptions), blocks, threads, catalogue, broken.as_deref()));
        let objects = objects.map(|objects| {
            let found = objects.resolve(catalogue);
            WrittenObjects { number, last: trigger == Trigger::End, why: trigger.description(), found }
        });
        let failed = dumps.has_failed();
        if let Some(mut shared) = shared {
            dumps.exchange(&mut shared);
            self.inner().shared = Some(shared);
        }
        if let Some(p) = self.inner().processes.get_mut(&pid) {
            p.dumps = Some(dumps);
            p.objects.extend(objects);
            match written {
                // The part is there; whoever looks after panics tells of this one.
                Ok(written) if failed => {
                    p.written.extend(written);
                    resume_unwind(Box::new("debug information cannot be read"));
                }
                Ok(written) => p.written.extend(written),
                Err(panic) => resume_unwind(panic),
            }
        }
    }

    /// Costs were set to zero.
    pub fn zeroed(&self, pid: Pid, blocks: u64) {
        if let Some(dumps) = self.inner().processes.get_mut(&pid).and_then(|p| p.dumps.as_mut()) {
            dumps.zeroed(blocks);
        }
    }

    /// The process has ended, and its back-dating tree was like this.
    pub fn statistics(&self, pid: Pid, statistics: Statistics) {
        if let Some(p) = self.inner().processes.get_mut(&pid) {
            p.statistics = Some(statistics);
        }
    }

    /// Says what was found of the process while it goes on.
    pub fn report_findings(&self, pid: Pid, findings: Vec<Finding>) {
        if let Some(p) = self.inner().processes.get_mut(&pid) {
            p.findings = findings;
        }
    }

    /// Says how far the process is.
    pub fn report(&self, pid: Pid, progress: Progress) {
        if let Some(p) = self.inner().processes.get_mut(&pid) {
            p.progress = Some(progress);
        }
    }
}
