//! The process that the user started, and the tracer behind it.
//!
//! A shell waits for the program's end, not for that of the daemons it left behind; those are profiled until they end, too.
//! So grind splits: the *supervisor* is what the user started and has a process ID of; it passes signals on, stops when the
//! program stops, and ends as the program ends. The *tracer*, its child, does all the work and lives until the last
//! followed process has ended. The supervisor must never look into a guest, and never outlive the first process for long.
//!
//! If the supervisor is killed, so is the first process (its profile is written); what it started lives on, as it would natively. A
//! process that ran before is left to itself instead, and so it is for signals that end programs: those go to the tracer.
//! If the tracer is killed, the kernel kills everything that it traced.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use grind_session::{Exit, FirstProcess};
use grind_types::Pid;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd;

use crate::os;
use crate::view::LiveView;

/// Milliseconds after which a supervisor that was continued alone lets the program go on, too.
const PATIENCE: i32 = 100;

/// What the tracer tells the supervisor: a kind and a number.
type Message = [i32; 2];
const STARTED: i32 = 1;
const STOPPED: i32 = 2;
const CONTINUED: i32 = 3;
/// Nothing is left to be traced.
const ENDED: i32 = 4;
/// By a status; others live on.
const EXITED_BEFORE_OTHERS: i32 = 5;
/// By a signal; others live on.
const KILLED_BEFORE_OTHERS: i32 = 6;

/// How grind ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Code(u8),
    /// By this signal, as the program did.
    Signal(i32),
}

/// Which of the two processes this is.
#[derive(Debug)]
pub enum Side {
    /// The supervisor, after the end of the first process.
    Supervisor(Ending),
    /// The tracer, which is to run the program and to report with this.
    Tracer(Reporter),
}

/// The tracer's line to the supervisor.
#[derive(Debug)]
pub struct Reporter {
    line: PipeWriter,
}

/// Splits the process in two. `visits`: the first process, if it runs already. The supervisor shows the run by `view`, if there is one. Signals
/// must be passed on already. No other thread may exist.
///
/// # Errors
/// When there is no room for another process or pipe.
pub fn split(visits: Option<Pid>, view: Option<LiveView>) -> io::Result<Side> {
    let (reader, writer) = io::pipe()?;
    match os::fork_tracer()? {
        Some(tracer) => {
            drop(writer);
            let mut view = view;
            view.iter_mut().for_each(LiveView::keep);
            if let Some(visited) = visits {
                os::pass_signals_to(Some(Pid(tracer.as_raw())));
                view.iter_mut().for_each(|view| view.begin(visited));
            }
            Ok(Side::Supervisor(supervisor(reader, tracer, view)))
        }
        None => {
            if let Some(view) = view {
                view.give_up();
            }
            Ok(Side::Tracer(Reporter { line: writer }))
        }
    }
}

/// Waits for the first process's end, doing as it does.
fn supervisor(mut line: PipeReader, tracer: unistd::Pid, mut view: Option<LiveView>) -> Ending {
    let mut program = None;
    let mut ended = false;
    while let Some([kind, value]) = receive(&mut line) {
        match kind {
            STARTED => {
                let pid = Pid(value);
                program = Some(pid);
                os::pass_signals_to(program);
                view.iter_mut().for_each(|view| view.begin(pid));
            }
            STOPPED => {
                // The terminal is somebody else's from now on.
                view.iter_mut().for_each(LiveView::pause);
                os::stop_by(value);
                view.iter_mut().for_each(LiveView::go_on);
                // Usually whoever continued this process has continued the whole job.
                if !os::readable_within(&line, PATIENCE) {
                    program.into_iter().for_each(os::continue_process);
                }
            }
            ENDED => {
                os::pass_signals_to(None);
                view.iter_mut().for_each(LiveView::end);
                ended = true;
            }
            EXITED_BEFORE_OTHERS => return Ending::Code((value & 0xff) as u8),
            KILLED_BEFORE_OTHERS => return Ending::Signal(value),
            _ => {}
        }
    }
    loop {
        match waitpid(tracer, None) {
            Ok(WaitStatus::Exited(_, code)) => return Ending::Code((code & 0xff) as u8),
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                if !ended {
                    let text = "grind: the tracer was killed, and what it followed with it: no profile was written\n";
                    // Standard error may be closed; there is nobody left to tell.
                    let _ = io::stderr().write_all(text.as_bytes());
                }
                return Ending::Signal(signal as i32);
            }
            // A real-time signal has no name here.
            Err(nix::errno::Errno::EINVAL) | Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return Ending::Code(1),
        }
    }
}

fn receive(line: &mut PipeReader) -> Option<Message> {
    let mut bytes = [0; 8];
    line.read_exact(&mut bytes).ok()?;
    let [a, b, c, d, e, f, g, h] = bytes;
    Some([i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])])
}

impl Reporter {
    fn send(&mut self, message: Message) {
        let [kind, value] = message.map(i32::to_ne_bytes);
        // A supervisor that is gone needs no news.
        let _ = self.line.write_all(&[kind, value].concat());
    }

    /// The first process has been started.
    pub fn started(&mut self, pid: Pid) {
        os::kill_with_the_supervisor(Some(pid));
        self.send([STARTED, pid.0]);
    }

    /// How the first process fares.
    pub fn fares(&mut self, how: FirstProcess) {
        match how {
            FirstProcess::Stopped(signal) => self.send([STOPPED, signal]),
            FirstProcess::Continued => {
                self.send([CONTINUED, 0]);
                os::continue_process(Pid(unistd::getppid().as_raw()));
            }
            FirstProcess::Ended { exit, alone } => {
                os::kill_with_the_supervisor(None);
                let message = match (alone, exit) {
                    (true, _) => [ENDED, 0],
                    (false, Exit::Code(code)) => [EXITED_BEFORE_OTHERS, code],
                    (false, Exit::Signal(signal)) => [KILLED_BEFORE_OTHERS, signal],
                };
                if !alone {
                    os::leave_the_terminal();
                }
                self.send(message);
            }
        }
    }
}
