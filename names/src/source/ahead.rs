//! Reads the tables of objects while the program runs, in a thread of its own, so that its end need not wait for them. It
//! changes no answer: an object reads what it needs once, whoever asks first, and others wait for that. What goes wrong
//! here (no thread, no second processor) costs the time that is not saved.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

use grind_types::MappedFile;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::opened::Opened;

/// The thread that reads, and what it has been told to.
#[derive(Debug)]
pub(super) struct Ahead {
    opened: Opened,
    ordered: HashSet<Order>,
    /// The way to the thread, once there is one.
    work: Option<Sender<Order>>,
    /// Where it may run: the engine keeps itself and the program on one processor.
    processors: Option<CpuSet>,
}

/// A file, under the name by which it is mapped.
type Order = (PathBuf, Arc<MappedFile>);

impl Ahead {
    /// Nothing has been ordered.
    pub(super) fn new(opened: Opened) -> Self {
        Self { opened, ordered: HashSet::new(), work: None, processors: sched_getaffinity(Pid::from_raw(0)).ok() }
    }

    /// Lets the file that is mapped under the name `path` be read soon.
    pub(super) fn read(&mut self, path: &Path, file: &Arc<MappedFile>) {
        let order = (path.to_owned(), file.clone());
        if !self.ordered.insert(order.clone()) {
            return;
        }
        if self.work.is_none() {
            self.work = self.start();
        }
        if let Some(work) = &self.work {
            // A thread that is gone reads nothing: then it is read later.
            let _ = work.send(order);
        }
    }

    fn start(&self) -> Option<Sender<Order>> {
        let (work, orders) = mpsc::channel::<Order>();
        let (opened, processors) = (self.opened.clone(), self.processors);
        let read = move || {
            if let Some(processors) = processors {
                let _ = sched_setaffinity(Pid::from_raw(0), &processors);
            }
            for (path, file) in orders {
                opened.file(&path, &file).prepare();
            }
        };
        thread::Builder::new().name("objects".into()).spawn(read).ok().map(|_| work)
    }
}
