//! Reads the tables of objects while the program runs, in a thread of its own, so that its end need not wait for them. It
//! changes no answer: an object reads what it needs once, whoever asks first, and others wait for that. What goes wrong
//! here (no thread, no second processor) costs the time that is not saved.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::Key;
use crate::debuginfo::{Object, Options};

/// Objects that have been begun, and the thread that reads them.
#[derive(Debug)]
pub(super) struct Ahead {
    begun: Arc<Mutex<HashMap<Key, Arc<Object>>>>,
    /// The way to the thread, once there is one.
    work: Option<Sender<(Key, PathBuf, Options)>>,
    /// Where it may run: the engine keeps itself and the program on one processor.
    processors: Option<CpuSet>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { begun: Arc::default(), work: None, processors: sched_getaffinity(Pid::from_raw(0)).ok() }
    }
}

impl Ahead {
    /// Lets the file at `path` be read soon.
    pub(super) fn read(&mut self, key: Key, path: &Path, options: &Options) {
        if self.work.is_none() {
            self.work = self.start();
        }
        if let Some(work) = &self.work {
            // A thread that is gone reads nothing: then it is read later.
            let _ = work.send((key, path.to_owned(), options.clone()));
        }
    }

    /// The object, if it has been begun.
    pub(super) fn begun(&self, key: &Key) -> Option<Arc<Object>> {
        self.begun.lock().ok()?.get(key).cloned()
    }

    fn start(&self) -> Option<Sender<(Key, PathBuf, Options)>> {
        let (work, orders) = mpsc::channel::<(Key, PathBuf, Options)>();
        let (begun, processors) = (self.begun.clone(), self.processors);
        let read = move || {
            if let Some(processors) = processors {
                let _ = sched_setaffinity(Pid::from_raw(0), &processors);
            }
            for (key, path, options) in orders {
                let object = {
                    let Ok(mut begun) = begun.lock() else { return };
                    if begun.contains_key(&key) {
                        continue;
                    }
                    let object = Arc::new(Object::open(&path, &options));
                    begun.insert(key, object.clone());
                    object
                };
                object.prepare();
            }
        };
        thread::Builder::new().name("objects".into()).spawn(read).ok().map(|_| work)
    }
}
