//! What a run executes, function by function, while it does: on a terminal as a picture that answers to keys, and as text.
//!
//! The run is called anew for each look, so that others can ask it in between. On a terminal somebody else waits for its answers: keys
//! are answered whatever the run does, and the terminal is what it was when the picture is gone. Nothing is drawn that is on the
//! terminal already, and nothing here tells the run what to do.
#![forbid(unsafe_code)]

mod draw;
mod screen;
mod state;
mod table;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Activity, ActivityRequest, Client, ClientError};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

pub use screen::{Screen, Signals};
use state::State;
pub use table::text;

/// How long from one look to the next, unless somebody says otherwise.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// As many functions as a terminal may have rows.
const MOST: usize = 500;

/// How long is waited for an answer before it is looked for keys, and whether all is over.
const KEYS: Duration = Duration::from_millis(50);

/// The answers of a run may take one part of so many of a processor's time.
const SHARE: u32 = 25;

/// How a picture ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A key wanted it.
    Quit,
    /// There is no run any more.
    Over,
    /// Who shows it wanted it.
    Told,
}

/// Why nothing can be shown any more.
#[derive(Debug)]
pub enum ViewError {
    /// The terminal cannot be written to, or read.
    Terminal(io::Error),
    /// The run does not answer as it should.
    Run(ClientError),
    /// The thread that asks the run has ended.
    NobodyAsks,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminal(error) => write!(f, "the terminal: {error}"),
            Self::Run(error) => error.fmt(f),
            Self::NobodyAsks => write!(f, "nobody asks the run any more"),
        }
    }
}

impl std::error::Error for ViewError {}

impl From<io::Error> for ViewError {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// Asks run `pid`, whose folder lies below `base`, once.
///
/// # Errors
/// As [`Client::activity`].
pub fn ask(base: &Path, pid: u32, wanted: &ActivityRequest) -> Result<Activity, ClientError> {
    Client::connect(base, pid)?.activity(wanted)
}

/// Whether a run is not there any more.
#[must_use]
pub fn is_over(error: &ClientError) -> bool {
    matches!(error, ClientError::NoRun(_))
}

/// A run that is looked at, and what is known of it.
#[derive(Debug)]
pub struct View {
    base: PathBuf,
    interval: Duration,
    /// It may not be there yet, or not be there for a while: its end is told by somebody else.
    comes_and_goes: bool,
    state: State,
}

impl View {
    /// A view of run `pid`, whose folder lies below `base`, and which runs `command`. `wanted` says which functions are shown.
    #[must_use]
    pub fn new(base: PathBuf, pid: u32, command: &str, wanted: ActivityRequest, interval: Duration) -> Self {
        let state = State::new(pid, command, ActivityRequest { limit: MOST, ..wanted });
        Self { base, interval, comes_and_goes: false, state }
    }

    /// The run may not listen yet: that it does not listen is no end.
    #[must_use]
    pub fn of_one_that_begins(self) -> Self {
        Self { comes_and_goes: true, ..self }
    }

    /// Shows the run until a key ends that, the run is over, or `told` says so.
    ///
    /// # Errors
    /// The terminal or the run fails.
    pub fn show(&mut self, screen: &mut Screen, told: &dyn Fn() -> bool) -> Result<Ending, ViewError> {
        let (requests, answers) = asker(self.base.clone(), self.state.pid());
        let mut due = Instant::now();
        let (mut waiting, mut changed) = (false, true);
        while !told() {
            if std::mem::take(&mut changed) {
                screen.terminal.draw(|frame| draw::draw(frame, &mut self.state))?;
            }
            if !waiting && !self.state.is_paused() && Instant::now() >= due {
                waiting = requests.send(self.state.wanted()).is_ok();
                due = Instant::now() + self.interval;
            }
            match answers.recv_timeout(KEYS) {
                Ok(answer) => {
                    waiting = false;
                    match answer {
                        Ok(activity) => {
                            due = due.max(Instant::now() + rest(activity.took));
                            self.state.take(activity);
                            changed = true;
                        }
                        // Soon again.
                        Err(error) if is_over(&error) && self.comes_and_goes => due = Instant::now() + KEYS,
                        Err(error) if is_over(&error) => return Ok(Ending::Over),
                        Err(error) => return Err(ViewError::Run(error)),
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(ViewError::NobodyAsks),
            }
            // Crossterm would read for ever from a terminal that is gone, if it waited there when that goes.
            screen.is_there()?;
            while event::poll(Duration::ZERO)? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        changed = true;
                        if self.state.key(key) {
                            return Ok(Ending::Quit);
                        }
                    }
                    Event::Resize(..) => changed = true,
                    _ => {}
                }
            }
        }
        Ok(Ending::Told)
    }
}

/// How long a run is left alone whose answer took so many microseconds of processor time.
fn rest(took: u64) -> Duration {
    Duration::from_micros(took).saturating_mul(SHARE)
}

/// A thread that asks a run, as often as it is told to.
fn asker(base: PathBuf, pid: u32) -> (Sender<ActivityRequest>, Receiver<Result<Activity, ClientError>>) {
    let (requests, requested) = channel::<ActivityRequest>();
    let (answers, answered) = channel();
    thread::spawn(move || {
        for wanted in requested {
            if answers.send(ask(&base, pid, &wanted)).is_err() {
                break;
            }
        }
    });
    (requests, answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_long_is_asked_seldom() {
        assert!(rest(5_000) < INTERVAL);
        assert_eq!(rest(100_000), Duration::from_millis(2500));
        assert!(rest(u64::MAX) > Duration::from_secs(1 << 40));
    }
}
