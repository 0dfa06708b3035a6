//! Being looked at, and told what to do, while programs run: a listener for each process, and the requests that wait.
//!
//! The protocol is the crate `callgrind_control_protocol`. Listening happens on threads that never touch a profile: they
//! interrupt the thread that runs the engine until it has taken the request. A process is only ever told what was asked
//! of it by its number. A run that cannot listen is profiled all the same.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Asked, Listener, PATIENCE, Queue, folder};

use crate::os;

/// A process that listens.
#[derive(Debug)]
struct Run {
    queue: Queue,
    /// A request is in the queue.
    waiting: Arc<AtomicBool>,
}

impl Drop for Run {
    fn drop(&mut self) {
        // Its thread need not go on interrupting.
        self.waiting.store(false, Ordering::SeqCst);
    }
}

/// All processes that listen.
#[derive(Debug)]
pub struct Control {
    base: PathBuf,
    /// The thread that runs the engine.
    runner: i32,
    runs: BTreeMap<i32, Run>,
}

impl Control {
    /// Nobody listens yet. To be made by the thread that runs the engine.
    #[must_use]
    pub fn new() -> Control {
        os::be_interrupted();
        Control { base: folder(), runner: nix::unistd::gettid().as_raw(), runs: BTreeMap::new() }
    }

    /// Listens for process `pid`.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn listen(&mut self, pid: i32) -> io::Result<()> {
        // Of the program that it ran before.
        self.runs.remove(&pid);
        let number = u32::try_from(pid).map_err(io::Error::other)?;
        let waiting = Arc::new(AtomicBool::new(false));
        let (runner, asked) = (self.runner, waiting.clone());
        let queue = Listener::bind(&self.base, number)?.start(move || {
            asked.store(true, Ordering::SeqCst);
            let start = Instant::now();
            let mut nap = Duration::from_micros(200);
            // A signal that comes just before the runner begins to wait is lost.
            while asked.load(Ordering::SeqCst) && start.elapsed() < PATIENCE {
                os::interrupt(runner);
                std::thread::sleep(nap);
                nap = (nap * 2).min(Duration::from_millis(20));
            }
        })?;
        self.runs.insert(pid, Run { queue, waiting });
        Ok(())
    }

    /// Process `pid` has ended, or is not followed any more.
    pub fn forget(&mut self, pid: i32) {
        self.runs.remove(&pid);
    }

    /// The next request, with the process that it is for.
    pub fn next(&mut self) -> Option<(i32, Asked)> {
        self.runs.iter().find_map(|(pid, run)| {
            let asked = run.queue.next()?;
            run.waiting.store(false, Ordering::SeqCst);
            Some((*pid, asked))
        })
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
