//! The processes of a run, as the recorder knows them. A forked process goes on from what is known of its parent, and most execute
//! another program before they tell anything: so what is known is copied when somebody asks for one of the two. Invariant: as long
//! as a fork waits, nothing changes in its parent but what emitted code has been shown, since whoever wants to change anything asks for
//! it here.

use std::collections::HashMap;

use cg_calls::Config;
use grind_names::made::Registry;
use grind_trace::SpaceId;
use grind_types::{Pid, Tid};

use super::super::dump_service::DumpService;
use super::process::Process;

/// A process that has been forked, and how it goes on.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) parent: Pid,
    /// The thread of it that forked.
    pub(super) tid: Tid,
    pub(super) child: Pid,
    /// What was collected so far is the parent's alone.
    pub(super) anew: bool,
    /// Emitted code follows calls.
    pub(super) followed: bool,
    pub(super) config: Config,
    pub(super) made: Registry,
    pub(super) dump_service: DumpService,
}

impl Fork {
    /// Whether the calls that are going on in the child, and their totals, are those of the thread of its parent `p` that forked.
    fn begins_as_its_parent(&self, p: &Process) -> bool {
        let alone = p.threads.len() == 1 && p.by_object.is_none() && p.simulated.is_none();
        alone && !self.anew && self.followed && p.threads.get(&self.tid).is_some_and(|thread| thread.recording)
    }

    /// The child, which goes on from what is known of its parent `p`.
    fn of(&self, p: &Process) -> Process {
        let first = Tid::main_of(self.child);
        let mut forked = p.copy(self.made.clone(), self.child);
        forked.by_object.iter_mut().for_each(|by_object| by_object.objects.forked(self.tid, first));
        if let Some(simulated) = &mut forked.simulated {
            simulated.forked(self.tid, first);
        }
        let thread = forked.threads.remove(&self.tid);
        for other in forked.threads.keys().copied().collect::<Vec<_>>() {
            forked.end_thread(other);
        }
        if let Some(mut thread) = thread {
            // Its counters begin anew.
            thread.executions.clear();
            thread.calls.show_all();
            thread.idle = None;
            if !thread.recording && self.followed {
                // What stood in for the parent's calls is the parent's.
                thread.change_over(false, &self.config);
            }
            if forked.by_kernel {
                thread.number = u64::try_from(self.child.0).unwrap_or(thread.number);
            }
            forked.threads.insert(first, thread);
        }
        if self.anew {
            forked.begin_anew(self.child, &self.dump_service);
        }
        forked
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Processes {
    all: HashMap<Pid, Process>,
    /// The last fork, as long as nothing has been copied for it.
    waiting: Option<Fork>,
}

impl Processes {
    /// Copies what the fork that waits needs.
    fn settle(&mut self) {
        if let Some(fork) = self.waiting.take()
            && let Some(parent) = self.all.get(&fork.parent)
        {
            let child = fork.of(parent);
            self.all.insert(fork.child, child);
        }
    }

    /// The same, if it is about this process.
    fn settle_for(&mut self, pid: Pid) {
        if self.waiting.as_ref().is_some_and(|fork| pid == fork.parent || pid == fork.child) {
            self.settle();
        }
    }

    /// A process has been forked.
    pub(super) fn fork(&mut self, fork: Fork) {
        self.settle();
        self.waiting = Some(fork);
    }

    /// A process runs a program from now on, and this is all that is known of it.
    pub(super) fn begin(&mut self, pid: Pid, process: Process) {
        if self.waiting.as_ref().is_some_and(|fork| pid == fork.child) {
            self.waiting = None;
        }
        self.settle_for(pid);
        self.all.insert(pid, process);
    }

    /// A process.
    pub(super) fn get_mut(&mut self, pid: Pid) -> Option<&mut Process> {
        self.settle_for(pid);
        self.all.get_mut(&pid)
    }

    /// A process that emitted code is going to be shown the calls of thread `tid` of, and under which number that thread is there. What
    /// is shown changes nothing of what is known, so a fork may go on waiting: its child is shown its creator's calls.
    pub(super) fn shown(&mut self, pid: Pid, tid: Tid) -> Option<(&mut Process, Tid)> {
        let (of, by) = match &self.waiting {
            Some(fork) if fork.parent == pid => (pid, tid),
            Some(fork) if fork.child == pid && fork.begins_as_its_parent(self.all.get(&fork.parent)?) => {
                let (parent, creator) = (fork.parent, fork.tid);
                self.all.get_mut(&parent)?.threads.get_mut(&creator)?.calls.show_all();
                (parent, creator)
            }
            _ => {
                self.settle_for(pid);
                (pid, tid)
            }
        };
        Some((self.all.get_mut(&of)?, by))
    }

    /// A process that has ended.
    pub(super) fn remove(&mut self, pid: Pid) -> Option<Process> {
        self.settle_for(pid);
        self.all.remove(&pid)
    }

    /// How often each process of a space has heard at least what is mapped there; nothing if there is no such process. One that has
    /// been forked has heard what its parent has.
    pub(super) fn version(&self, space: SpaceId) -> Option<usize> {
        self.all.values().filter(|p| p.space == space).map(|p| p.version).min()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.waiting.is_none()
    }
}

#[cfg(test)]
mod tests {
    use cg_format::events::Caches;
    use grind_names::opened::Opened;

    use super::super::super::code::Catalogue;
    use super::super::super::columns::Columns;
    use super::super::super::dumps::About;
    use super::super::super::settings::Settings;
    use super::*;

    const PARENT: Pid = Pid(1);
    const CHILD: Pid = Pid(2);

    fn process(blocks: u64) -> Process {
        let columns = Columns::of(Settings::default().events(Caches::None, false));
        let catalogue = Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()));
        let mut process = Process::new(SpaceId::default(), catalogue, columns, None, None, None);
        process.blocks = blocks;
        process
    }

    fn fork(parent: Pid, child: Pid) -> Fork {
        let settings = Settings::default();
        let about = About {
            creator: "test".into(),
            events: settings.events(Caches::None, false),
            caches: Vec::new(),
            estimate: None,
            settings: settings.clone(),
            spare: std::env::temp_dir(),
        };
        Fork {
            parent,
            tid: Tid::main_of(parent),
            child,
            anew: false,
            followed: true,
            config: settings.config(1),
            made: Registry::default(),
            dump_service: DumpService::new(about),
        }
    }

    fn one() -> Processes {
        let mut processes = Processes::default();
        processes.begin(PARENT, process(5));
        processes
    }

    #[test]
    fn a_child_goes_on_from_what_its_parent_was_when_it_forked() {
        let change = |p: Option<&mut Process>| p.expect("it is known").blocks += 100;
        type Ask<'a> = &'a dyn Fn(&mut Processes);
        let asks: [(&str, Ask<'_>); 4] = [
            ("the child", &|all| change(all.get_mut(CHILD))),
            ("its parent", &|all| change(all.get_mut(PARENT))),
            ("its parent ends", &|all| assert_eq!(all.remove(PARENT).expect("it is known").blocks, 5)),
            ("its parent executes another program", &|all| all.begin(PARENT, process(0))),
        ];
        for (who, ask) in asks {
            let mut all = one();
            all.fork(fork(PARENT, CHILD));
            assert!(!all.is_empty());
            ask(&mut all);
            assert_eq!(all.get_mut(CHILD).expect("it is known").blocks % 100, 5, "{who} is asked for first");
        }
        let mut all = one();
        all.fork(fork(PARENT, CHILD));
        // The next one is its child's.
        all.fork(fork(CHILD, Pid(3)));
        assert_eq!(all.get_mut(Pid(3)).expect("it is known").blocks, 5);
    }

    #[test]
    fn to_be_shown_calls_is_no_reason_for_a_copy() {
        let first = Tid::main_of(PARENT);
        let config = Settings::default().config(1);
        let mut all = one();
        all.get_mut(PARENT).expect("it is known").thread(first, &config).recording = true;
        all.fork(fork(PARENT, CHILD));
        for (pid, of) in [(PARENT, 5), (CHILD, 5), (PARENT, 5)] {
            let (p, tid) = all.shown(pid, Tid::main_of(pid)).expect("it is known");
            assert_eq!((p.blocks, tid), (of, first));
        }
        assert!(all.waiting.is_some());
        // What its parent has done since is not the child's.
        all.get_mut(PARENT).expect("it is known").blocks += 100;
        let (p, tid) = all.shown(CHILD, Tid::main_of(CHILD)).expect("it is known");
        assert_eq!((p.blocks, tid), (5, Tid::main_of(CHILD)));
        // Who begins anew has no calls of its creator's.
        let mut all = one();
        all.get_mut(PARENT).expect("it is known").thread(first, &config).recording = true;
        all.fork(Fork { anew: true, ..fork(PARENT, CHILD) });
        let (_, tid) = all.shown(CHILD, Tid::main_of(CHILD)).expect("it is known");
        assert_eq!((tid, all.waiting.is_some()), (Tid::main_of(CHILD), false));
    }

    #[test]
    fn a_child_that_executes_another_program_is_never_a_copy() {
        let mut all = one();
        all.fork(fork(PARENT, CHILD));
        all.begin(CHILD, process(0));
        all.get_mut(PARENT).expect("it is known").blocks += 1;
        assert_eq!(all.get_mut(CHILD).expect("it is known").blocks, 0);
        assert!(all.remove(CHILD).is_some() && all.remove(PARENT).is_some() && all.is_empty());
        // A fork of a process that nobody knows is none.
        all.fork(fork(PARENT, CHILD));
        assert!(all.get_mut(CHILD).is_none() && all.is_empty());
    }
}
