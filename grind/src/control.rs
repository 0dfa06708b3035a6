//! Being looked at, and told what to do, while programs run: a listener for each process, and the requests that wait.
//!
//! The protocol is the crate `callgrind_control_protocol`. Listening happens on threads that never touch a profile: they
//! interrupt the thread that runs the engine until it has taken the request. A process is only ever told what was asked
//! of it by its number. A run that cannot listen is profiled all the same. Every request gets one answer, if only that the process
//! has ended meanwhile.
//!
//! To listen takes a folder, a socket and a thread, which short programs would pay for longer than they run: so it can wait until a process has
//! run for a while, for which one thread looks at the clock. Invariant: whoever is forgotten does not listen, nor begins to.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Answer, Asked, Listener, PATIENCE, Queue, Request, Tool, folder};
use grind_session::{ControlRequest, Instrumentation, Wanted};
use grind_types::{Pid, Query, Tid};
use nix::sys::signal::{Signal, kill};
use nix::unistd;

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

/// A process that runs for less is not listened for, where that can wait.
const SHORT: Duration = Duration::from_millis(50);

/// Who listens, and who will.
#[derive(Debug, Default)]
struct Runs {
    listening: BTreeMap<Pid, Run>,
    /// Those that will, and from when on, the first one first.
    due: VecDeque<(Instant, Pid)>,
    /// Nobody will any more.
    over: bool,
}

/// What the thread that looks at the clock knows, too.
#[derive(Debug)]
struct Common {
    base: PathBuf,
    tool: Tool,
    /// The thread that runs the engine.
    runner: Tid,
    runs: Mutex<Runs>,
    /// There is news of who is due.
    news: Condvar,
}

/// All processes that listen.
#[derive(Debug)]
pub struct Control {
    common: Arc<Common>,
    /// The thread that looks at the clock, if there is one.
    clock: Option<JoinHandle<()>>,
    /// What the engine is about to be asked.
    current: Option<(Pid, Asked)>,
    /// What it will have done some time after it has been asked, by process.
    later: BTreeMap<Pid, Vec<Asked>>,
    /// The process that was the first to be listened for.
    first: Option<Pid>,
}

impl Common {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, pid: Pid) -> io::Result<Run> {
        let number = u32::try_from(pid.0).map_err(io::Error::other)?;
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
        Ok(Run { queue, waiting })
    }

    /// Listens for whoever is due, until that is over.
    fn look_at_the_clock(&self) {
        let mut runs = self.runs();
        while !runs.over {
            let now = Instant::now();
            let Some(&(when, pid)) = runs.due.front() else {
                runs = self.news.wait(runs).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if when > now {
                runs = self.news.wait_timeout(runs, when - now).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            runs.due.pop_front();
            // While nobody can forget it. One that cannot listen goes without.
            if let Ok(run) = self.listen(pid) {
                runs.listening.insert(pid, run);
            }
        }
    }
}

/// The answer to what comes too late.
fn ended(pid: Pid) -> Answer {
    Answer::Refused(format!("process {pid} has ended"))
}

impl Control {
    /// Nobody listens yet. To be made by the thread that runs the engine.
    #[must_use]
    pub fn new(tool: Tool) -> Control {
        Self::below(folder(), tool)
    }

    fn below(base: PathBuf, tool: Tool) -> Control {
        os::be_interrupted();
        let runner = Tid(unistd::gettid().as_raw());
        let (runs, news) = (Mutex::default(), Condvar::new());
        let common = Arc::new(Common { base, tool, runner, runs, news });
        Control { common, clock: None, current: None, later: BTreeMap::new(), first: None }
    }

    /// Listens for process `pid` at once if it is the first one, and for others later: most end soon, and nobody knows of them.
    ///
    /// # Errors
    /// The socket cannot be made, or there can be no more threads.
    pub fn listen(&mut self, pid: Pid) -> io::Result<()> {
        if *self.first.get_or_insert(pid) != pid {
            return self.listen_later(pid);
        }
        // Of the program that it ran before.
        self.forget(pid);
        let run = self.common.listen(pid)?;
        self.common.runs().listening.insert(pid, run);
        Ok(())
    }

    /// Listens for process `pid` once it has run for a while; if it cannot then, nobody learns of that.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn listen_later(&mut self, pid: Pid) -> io::Result<()> {
        self.forget(pid);
        if self.clock.is_none() {
            let common = self.common.clone();
            let clock = std::thread::Builder::new().name("clock".to_owned());
            self.clock = Some(clock.spawn(move || common.look_at_the_clock())?);
        }
        self.common.runs().due.push_back((Instant::now() + SHORT, pid));
        self.common.news.notify_one();
        Ok(())
    }

    /// Process `pid` has ended, or is not followed any more.
    pub fn forget(&mut self, pid: Pid) {
        let current = self.current.take_if(|(of, _)| *of == pid).map(|(_, asked)| asked);
        for asked in self.later.remove(&pid).unwrap_or_default().into_iter().chain(current) {
            asked.answer(ended(pid));
        }
        let mut runs = self.common.runs();
        runs.due.retain(|(_, due)| *due != pid);
        runs.listening.remove(&pid);
    }

    /// What the engine is to do next. `refused` says why a request cannot be served here, if so.
    pub fn next(&mut self, refused: impl Fn(&Request) -> Option<String>) -> Option<ControlRequest> {
        if let Some((pid, asked)) = self.current.take() {
            asked.answer(ended(pid));
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
                Request::Collection(on) => {
                    let what = Wanted::Collection(*on);
                    self.later.entry(pid).or_default().push(asked);
                    return Some(ControlRequest { pid, what });
                }
                Request::Detach => {
                    asked.answer(Answer::Done(Vec::new()));
                    return Some(ControlRequest { pid, what: Wanted::Detach });
                }
                Request::Kill => {
                    let answer = match kill(unistd::Pid::from_raw(pid.0), Signal::SIGKILL) {
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

    /// The request that the engine has just served, if no thread (`tid`) of process `pid` asked by itself.
    pub fn served(&mut self, pid: Pid, tid: Option<Tid>) -> Option<Asked> {
        Some(self.current.take_if(|(of, _)| tid.is_none() && *of == pid)?.1)
    }

    /// Collection has been switched, as whoever asked last wanted it: those who asked.
    pub fn collection_served(&mut self, pid: Pid) -> Vec<Asked> {
        self.later.remove(&pid).unwrap_or_default()
    }

    /// The next request, with the process that it is for.
    fn queued(&mut self) -> Option<(Pid, Asked)> {
        self.common.runs().listening.iter().find_map(|(pid, run)| {
            let asked = run.queue.next()?;
            run.waiting.store(false, Ordering::SeqCst);
            Some((*pid, asked))
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.common.runs().over = true;
        self.common.news.notify_one();
        // Folders of those that it has begun to listen for are removed with them.
        let _ = self.clock.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_for_a_while_is_listened_for_and_who_is_forgotten_before_never() {
        let base = tempfile::tempdir().expect("a folder");
        let names = || {
            let entries = std::fs::read_dir(base.path()).expect("it is there");
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect::<Vec<_>>()
        };
        let mut control = Control::below(base.path().to_owned(), Tool::Cachegrind);
        (1..=3).for_each(|pid| control.listen_later(Pid(pid)).expect("a thread"));
        control.forget(Pid(1));
        // Another program of the same process begins anew.
        control.listen_later(Pid(2)).expect("a thread");
        let start = Instant::now();
        while names().len() < 2 && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(2 * SHORT);
        let mut found = names();
        found.sort();
        assert_eq!(found, ["grind-cachegrind-2", "grind-cachegrind-3"]);
        control.forget(Pid(3));
        assert_eq!(names(), ["grind-cachegrind-2"]);
        drop(control);
        assert_eq!(names(), [""; 0]);
    }
    #[test]
    fn the_first_process_is_listened_for_at_once_whatever_it_runs_and_others_later() {
        let base = tempfile::tempdir().expect("a folder");
        let listens = |pid: Pid| base.path().join(format!("grind-callgrind-{}", pid.0)).exists();
        let mut control = Control::below(base.path().to_owned(), Tool::Callgrind);
        for _ in 0..2 {
            control.listen(Pid(1)).expect("a socket");
            assert!(listens(Pid(1)));
        }
        control.listen(Pid(2)).expect("a thread");
        assert!(!listens(Pid(2)));
        let start = Instant::now();
        while !listens(Pid(2)) && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(listens(Pid(1)) && listens(Pid(2)));
    }
}
