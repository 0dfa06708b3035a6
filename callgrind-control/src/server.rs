//! The run's end: listens, reads requests, and queues them for whoever can do what they say.
//!
//! A thread of its own does the listening, one client after another. It never touches the profile: a request waits in
//! the queue until the run takes it, does it and answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::message::{Answer, Request};
use crate::place::{self, Tool};
use crate::{PATIENCE, VERSION};

/// A request is a line of at most so many bytes.
const LONGEST: u64 = 1 << 16;

/// A socket that is listening; it and its folder disappear with it.
#[derive(Debug)]
pub struct Listener {
    base: PathBuf,
    tool: Tool,
    pid: u32,
    socket: Option<UnixListener>,
}

/// Requests to a run, in the order in which they came. Dropping it ends the listening.
#[derive(Debug)]
pub struct Queue {
    /// Until the end.
    asked: Option<Receiver<Asked>>,
    unanswered: Arc<Unanswered>,
    /// Removes the socket, last of all.
    _listener: Listener,
    /// The listening socket by another name: shutting it down ends the waiting for clients.
    waiting: UnixStream,
    stop: Arc<AtomicBool>,
}

/// How many requests have been read whose answers have not been written.
#[derive(Debug, Default)]
struct Unanswered {
    count: Mutex<usize>,
    fewer: Condvar,
}

impl Unanswered {
    /// One more, as long as what is returned lives.
    fn one(&self) -> One<'_> {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        One(self)
    }

    /// Waits until there are none, but not for a client that does not read.
    fn none(&self) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.fewer.wait_timeout_while(count, PATIENCE / 10, |count| *count > 0);
    }
}

/// One of those that are unanswered.
struct One<'a>(&'a Unanswered);

impl Drop for One<'_> {
    fn drop(&mut self) {
        *self.0.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.fewer.notify_all();
    }
}

/// A request that waits for its answer. Dropped without one, it is refused.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    answer: Sender<Answer>,
}

impl Asked {
    /// Answers. A client that went away is no error.
    pub fn answer(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }
}

impl Listener {
    /// Listens for process `pid`, which runs under `tool`, in its folder below `base`, which is [`crate::folder`] but in tests.
    ///
    /// # Errors
    /// The folder or the socket cannot be made, or somebody else made it.
    pub fn bind(base: &Path, tool: Tool, pid: u32) -> io::Result<Self> {
        let path = place::create(base, tool, pid)?;
        let socket = UnixListener::bind(path)?;
        Ok(Self { base: base.to_owned(), tool, pid, socket: Some(socket) })
    }

    /// Serves clients on a thread. `wake` is called there after each request that was queued, so that a run that waits
    /// for its program can look at the queue.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn start(mut self, wake: impl Fn() + Send + 'static) -> io::Result<Queue> {
        let socket = self.socket.take().ok_or_else(|| io::Error::other("the socket is in use"))?;
        let waiting = UnixStream::from(OwnedFd::from(socket.try_clone()?));
        let (sender, asked) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (pid, stopped) = (self.pid, Arc::clone(&stop));
        let unanswered = Arc::new(Unanswered::default());
        let waits = Arc::clone(&unanswered);
        thread::Builder::new().name("control".to_owned()).spawn(move || {
            for client in socket.incoming() {
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                // A client that misbehaves is left alone; the next one is served.
                let _ = client.and_then(|client| serve(&client, pid, &sender, &waits, &wake));
            }
        })?;
        Ok(Queue { asked: Some(asked), unanswered, _listener: self, waiting, stop })
    }
}

impl Queue {
    /// The next request, if there is one; never waits.
    #[must_use]
    pub fn next(&self) -> Option<Asked> {
        self.asked.as_ref()?.try_recv().ok()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Requests that nobody takes any more are refused with the queue. Makes the thread look, even if somebody has removed the folder.
        let _ = self.waiting.shutdown(Shutdown::Both);
        // Nobody waits for it: short programs would for longer than they take. But who has asked gets an answer, also if this is
        // the last thing that the run does.
        self.asked = None;
        self.unanswered.none();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        place::remove(&self.base, self.tool, self.pid);
    }
}

fn serve(
    client: &UnixStream,
    pid: u32,
    queue: &Sender<Asked>,
    unanswered: &Unanswered,
    wake: &impl Fn(),
) -> io::Result<()> {
    // Short, since the end of a run waits for it.
    client.set_read_timeout(Some(PATIENCE / 10))?;
    client.set_write_timeout(Some(PATIENCE / 10))?;
    let mut out = client;
    writeln!(out, "grind-control {VERSION} {pid}")?;
    let mut input = BufReader::new(client);
    loop {
        let mut line = String::new();
        if input.by_ref().take(LONGEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let _until_written = unanswered.one();
        let answer = match line.strip_suffix('\n').map(Request::parse) {
            None => Answer::Refused("the request is no line".to_owned()),
            Some(Err(cause)) => Answer::Refused(cause),
            Some(Ok(request)) => {
                let (sender, answer) = mpsc::channel();
                // Where nobody takes requests any more, this one is dropped at once.
                if queue.send(Asked { request, answer: sender }).is_ok() {
                    wake();
                }
                match answer.recv_timeout(PATIENCE) {
                    Ok(answer) => answer,
                    Err(_) => Answer::Refused("the run did not get to it".to_owned()),
                }
            }
        };
        out.write_all(answer.text().as_bytes())?;
        if !line.ends_with('\n') {
            return Ok(());
        }
    }
}
