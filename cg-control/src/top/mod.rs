//! `cg_control top`: what a run executes, function by function, while it does: on a terminal as a picture that answers to keys, else
//! as text.
//!
//! The run is called anew for each look, so that others can ask it in between. On a terminal somebody else waits for its answers: keys
//! are answered whatever the run does, and the terminal is what it was when the program ends, however it ends.

mod draw;
mod state;
mod table;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use callgrind_control_protocol::{Activity, ActivityRequest, Client, ClientError, folder};
use cg_cli::exit;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::{Program, choose, json};
use crate::options::Top;
use state::State;

/// How long from one look to the next.
const INTERVAL: Duration = Duration::from_millis(500);

/// As many functions as text shows.
const ROWS: u32 = 20;

/// As many functions as a terminal may have rows.
const MOST: usize = 500;

/// Keys are looked at so often.
const KEYS: Duration = Duration::from_millis(50);

/// Shows the run that `names` means; the only one there is without.
pub(crate) fn run(names: &[String], top: &Top, as_json: bool) -> anyhow::Result<u8> {
    let base = folder();
    let mut chosen = choose(&base, names, true, Program::Cg)?;
    let run = match (chosen.len(), chosen.pop()) {
        (1, Some(run)) => run,
        (0, _) | (_, None) => {
            bail!("there is no run to look at: what runs under `grind`, started by this user, would be shown")
        }
        _ => bail!("name the run to look at: {}", Program::Cg.known(&base)?),
    };
    let (base, pid) = (run.base, run.pid);
    let wanted = ActivityRequest {
        by: top.sort.clone().unwrap_or_else(|| "Ir".to_owned()),
        text: top.filter.clone().unwrap_or_default(),
        ..ActivityRequest::default()
    };
    if !run.status.events.contains(&wanted.by) {
        let events = run.status.events.join(" ");
        bail!("event `{}` is not counted there; the run counts {events}", wanted.by);
    }
    let interval = top.interval.map_or(INTERVAL, |ms| Duration::from_millis(ms.into()));
    // It is called anew below.
    drop(run.client);
    let times = if top.once { Some(1) } else { top.count };
    if times.is_some() || as_json || !io::stdout().is_terminal() {
        let wanted = ActivityRequest { limit: top.rows.unwrap_or(ROWS) as usize, ..wanted };
        return as_text(&base, pid, wanted, interval, times, as_json);
    }
    let state = State::new(pid, &run.status.command, ActivityRequest { limit: MOST, ..wanted });
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let shown = on_terminal(&mut terminal, base, state, interval);
    ratatui::try_restore().context("the terminal")?;
    if shown? == Ending::Over {
        writeln!(io::stdout(), "PID {pid} has ended, or has been left.").context("standard output")?;
    }
    Ok(exit::SUCCESS)
}

/// Asks a run once.
fn ask(base: &Path, pid: u32, wanted: &ActivityRequest) -> Result<Activity, ClientError> {
    Client::connect(base, pid)?.activity(wanted)
}

/// Whether a run is not there any more.
fn is_over(error: &ClientError) -> bool {
    matches!(error, ClientError::NoRun(_))
}

fn as_text(
    base: &Path,
    pid: u32,
    mut wanted: ActivityRequest,
    interval: Duration,
    times: Option<u32>,
    as_json: bool,
) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    // Since when it is to be told.
    wanted.since = ask(base, pid, &wanted)?.snapshot;
    let mut left = times;
    while left != Some(0) {
        thread::sleep(interval);
        let activity = match ask(base, pid, &wanted) {
            Ok(activity) => activity,
            // As many times as there were.
            Err(error) if is_over(&error) && left != times => break,
            Err(error) => return Err(error.into()),
        };
        wanted.since = activity.snapshot;
        let text = match as_json {
            true => json::activity(pid, &activity),
            false => table::text(pid, &activity, &wanted.by),
        };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")?;
        left = left.map(|left| left - 1);
    }
    Ok(exit::SUCCESS)
}

/// How a picture ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// A key wanted it.
    Quit,
    /// There is no run any more.
    Over,
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

fn on_terminal(
    terminal: &mut ratatui::DefaultTerminal,
    base: PathBuf,
    mut state: State,
    interval: Duration,
) -> anyhow::Result<Ending> {
    let (requests, answers) = asker(base, state.pid());
    let mut due = Instant::now();
    let mut waiting = false;
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut state)).context("the terminal")?;
        if !waiting && !state.is_paused() && Instant::now() >= due {
            waiting = requests.send(state.wanted()).is_ok();
            due = Instant::now() + interval;
        }
        if event::poll(KEYS).context("the terminal")?
            && let Event::Key(key) = event::read().context("the terminal")?
            && key.kind != KeyEventKind::Release
            && state.key(key)
        {
            return Ok(Ending::Quit);
        }
        match answers.try_recv() {
            Ok(Ok(activity)) => {
                waiting = false;
                state.take(activity);
            }
            Ok(Err(error)) if is_over(&error) => return Ok(Ending::Over),
            Ok(Err(error)) => return Err(error.into()),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => bail!("nobody asks the run any more"),
        }
    }
}
