//! `cg_control top`: which run is shown, on a terminal as a picture, else as text. What there is to see is the crate `cg_top`'s.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use callgrind_control_protocol::{ActivityRequest, folder};
use cg_cli::exit;
use cg_top::{Ending, INTERVAL, Screen, Signals, View, ask, is_over};

use super::{Program, choose, json};
use crate::options::Top;

/// As many functions as text shows.
const ROWS: u32 = 20;

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
    let mut view = View::new(base, pid, &run.status.command, wanted, interval);
    let terminal = File::from(io::stdout().as_fd().try_clone_to_owned().context("standard output")?);
    let mut screen = Screen::new(terminal, Signals::Keys).context("the terminal")?;
    let shown = view.show(&mut screen, &|| false);
    drop(screen);
    if shown? == Ending::Over {
        writeln!(io::stdout(), "PID {pid} has ended, or has been left.").context("standard output")?;
    }
    Ok(exit::SUCCESS)
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
            false => cg_top::text(pid, &activity, &wanted.by),
        };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")?;
        left = left.map(|left| left - 1);
    }
    Ok(exit::SUCCESS)
}
