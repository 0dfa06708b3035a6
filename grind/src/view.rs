//! `--live`: a run is shown on the terminal while it goes on, by the process that waits for it. The picture is the crate `cg_top`'s, which
//! asks the run as anybody may. What the program, and grind, would write to that terminal meanwhile is held back.
//!
//! Invariants: what happens to the picture changes nothing for the program; when the program stops or has ended, the terminal is
//! as it was before.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use callgrind_control_protocol::{ActivityRequest, folder};
use cg_top::{INTERVAL, Screen, Signals, View};
use grind_types::Pid;

use crate::held::{Held, NoTerminal};

/// See the module's description.
#[derive(Debug)]
pub struct LiveView {
    command: String,
    /// What is to be shown, while it is not.
    view: Option<View>,
    showing: Option<Showing>,
    /// After all else.
    held: Held,
}

/// A thread that shows the run, and hands it back if it was told to end.
#[derive(Debug)]
struct Showing {
    told: Arc<AtomicBool>,
    thread: JoinHandle<Option<View>>,
}

impl LiveView {
    /// Takes the terminal. There may be no other thread yet, and none before there are two processes.
    ///
    /// # Errors
    /// There is no terminal, or it is not ours to take.
    pub fn take_terminal(command: &[OsString]) -> Result<Self, NoTerminal> {
        let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        Ok(Self { command: command.join(" "), view: None, showing: None, held: Held::begin()? })
    }

    /// In the process that shows nothing.
    pub fn give_up(mut self) {
        self.held.give_up();
    }

    /// Begins to keep what is written. From here on there may be threads.
    pub fn keep(&mut self) {
        if self.held.keep().is_err() {
            // It is passed on in the end.
            self.held.release().release();
        }
    }

    /// Begins to show process `pid`.
    pub fn begin(&mut self, pid: Pid) {
        if self.command.is_empty() {
            // Of one that runs already.
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            self.command = String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned();
        }
        let view = View::new(folder(), pid.0.unsigned_abs(), &self.command, ActivityRequest::default(), INTERVAL);
        self.view = Some(view.of_one_that_begins());
        self.go_on();
    }

    /// Takes the picture away for a while. What is written is kept all the same.
    pub fn pause(&mut self) {
        if let Some(Showing { told, thread }) = self.showing.take() {
            told.store(true, Ordering::SeqCst);
            self.view = thread.join().ok().flatten();
        }
    }

    /// Shows the run again, unless somebody wanted it to be gone.
    pub fn go_on(&mut self) {
        // Who is continued in the background has no terminal to show anything on.
        if !self.held.is_ours() {
            return self.end();
        }
        let Some(mut view) = self.view.take() else { return };
        let told = Arc::new(AtomicBool::new(false));
        let (asked, release, terminal) = (Arc::clone(&told), self.held.release(), self.held.terminal());
        let show = move || {
            let shown = terminal.map_err(cg_top::ViewError::from).and_then(|terminal| {
                let mut screen = Screen::new(terminal, Signals::Job)?;
                view.show(&mut screen, &|| asked.load(Ordering::SeqCst))
            });
            if matches!(shown, Ok(cg_top::Ending::Told)) {
                return Some(view);
            }
            // It is held back as all else, and comes behind it.
            if let Err(error) = shown {
                let text = format!("grind: the run is not shown any more, and goes on: {error}\n");
                let _ = io::stderr().write_all(text.as_bytes());
            }
            release.release();
            None
        };
        let thread = thread::Builder::new().name("view".to_owned()).spawn(show).ok();
        match thread {
            Some(thread) => self.showing = Some(Showing { told, thread }),
            None => self.held.release().release(),
        }
    }

    /// There is nothing more to be shown: what is written goes to the terminal.
    pub fn end(&mut self) {
        self.pause();
        self.view = None;
        self.held.release().release();
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.end();
    }
}
