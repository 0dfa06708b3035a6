//! Reads the tables of objects while the program runs, in a thread of its own, so that its end need not wait for them. It
//! changes no answer: an object reads what it needs once, whoever asks first, and others wait for that. What goes wrong
//! here (no thread, no second processor) costs the time that is not saved.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use grind_symbols::{Object, Options};
use grind_types::MappedFile;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::Key;
use crate::mapped;

/// Objects that have been begun, and the thread that reads them.
#[derive(Debug)]
pub(super) struct Ahead {
    begun: Arc<Mutex<HashMap<Key, Arc<Object>>>>,
    /// The way to the thread, once there is one.
    work: Option<Sender<Order>>,
    /// Where it may run: the engine keeps itself and the program on one processor.
    processors: Option<CpuSet>,
}

type Order = (Key, Options);

impl Default for Ahead {
    fn default() -> Self {
        Self { begun: Arc::default(), work: None, processors: sched_getaffinity(Pid::from_raw(0)).ok() }
    }
}

impl Ahead {
    /// Lets the file that is mapped under the name `path` be read soon.
    pub(super) fn read(&mut self, path: &Path, file: &Arc<MappedFile>, options: &Options) {
        if self.work.is_none() {
            self.work = self.start();
        }
        if let Some(work) = &self.work {
            // A thread that is gone reads nothing: then it is read later.
            let _ = work.send((Key::File(path.to_owned(), file.clone()), options.clone()));
        }
    }

    /// The object, if it has been begun.
    pub(super) fn begun(&self, key: &Key) -> Option<Arc<Object>> {
        self.begun.lock().ok()?.get(key).cloned()
    }

    fn start(&self) -> Option<Sender<Order>> {
        let (work, orders) = mpsc::channel::<Order>();
        let (begun, processors) = (self.begun.clone(), self.processors);
        let read = move || {
            if let Some(processors) = processors {
                let _ = sched_setaffinity(Pid::from_raw(0), &processors);
            }
            for (key, options) in orders {
                let Key::File(path, file) = &key else { continue };
                let object = {
                    let Ok(mut begun) = begun.lock() else { return };
                    if begun.contains_key(&key) {
                        continue;
                    }
                    let object = Arc::new(mapped::object(path, file, &options));
                    begun.insert(key.clone(), object.clone());
                    object
                };
                object.prepare();
            }
        };
        thread::Builder::new().name("objects".into()).spawn(read).ok().map(|_| work)
    }
}
