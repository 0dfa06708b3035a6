//! Being looked at, and told what to do, while programs run: a listener for each process, and the requests that wait.
//!
//! The protocol is the crate `callgrind_control_protocol`. Listening happens on threads that never touch a profile: they
//! interrupt the thread that runs the engine until it has taken the request. A process is only ever told what was asked
//! of it by its number. A run that cannot listen is profiled all the same. Every request gets one answer, if only that the process
//! has ended meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Answer, Asked, Listener, PATIENCE, Queue, Request, Tool, folder};
use grind_session::{ControlRequest, Instrumentation, Wanted};
use grind_types::Query;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

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
    tool: Tool,
    /// The thread that runs the engine.
    runner: i32,
    runs: BTreeMap<i32, Run>,
    /// What the engine is about to be asked.
    current: Option<(i32, Asked)>,
}

impl Control {
    /// Nobody listens yet. To be made by the thread that runs the engine.
    #[must_use]
    pub fn new(tool: Tool) -> Control {
        os::be_interrupted();
        let runner = nix::unistd::gettid().as_raw();
        Control { base: folder(), tool, runner, runs: BTreeMap::new(), current: None }
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
        let queue = Listener::bind(&self.base, self.tool, number)?.start(move || {
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

    /// What the engine is to do next. `refused` says why a request cannot be served here, if so.
    pub fn next(&mut self, refused: impl Fn(&Request) -> Option<String>) -> Option<ControlRequest> {
        if let Some((pid, asked)) = self.current.take() {
            asked.answer(Answer::Refused(format!("process {pid} has ended")));
        }
        loop {
            let (pid, asked) = self.queued()?;
            if let Some(cause) = refused(&asked.request) {
                asked.answer(Answer::Refused(cause));
                continue;
            }
            let what = match &asked.request {
                Request::Status => Wanted::Query(Query::Look),
                Request::Dump(_) => Wanted::Query(Query::Dump(Some(asked.request.line().into_bytes()))),
                Request::Zero => Wanted::Query(Query::Zero),
                Request::Functions(_) => Wanted::Peek,
                Request::Instrumentation(on) => {
                    let what = if *on { Instrumentation::Start } else { Instrumentation::Stop };
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
            return Some(ControlRequest { pid, what });
        }
    }

    /// The request that the engine has just served, if thread `tid` (0: none) of process `pid` did not ask by itself.
    pub fn served(&mut self, pid: i32, tid: i32) -> Option<Asked> {
        Some(self.current.take_if(|(of, _)| tid == 0 && *of == pid)?.1)
    }

    /// The next request, with the process that it is for.
    fn queued(&mut self) -> Option<(i32, Asked)> {
        self.runs.iter().find_map(|(pid, run)| {
            let asked = run.queue.next()?;
            run.waiting.store(false, Ordering::SeqCst);
            Some((*pid, asked))
        })
    }
}
