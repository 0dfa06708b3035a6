//! What is on the picture, and what keys do to it. Nothing here knows a terminal or a run.

use callgrind_control_protocol::{Activity, ActivityRequest};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// See the module's description.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pid: u32,
    command: String,
    wanted: ActivityRequest,
    pub(crate) activity: Option<Activity>,
    /// The first function that is shown.
    pub(crate) first: usize,
    paused: bool,
    /// The text that is being typed, if one is.
    typed: Option<String>,
    pub(crate) threads: bool,
}

impl State {
    /// Nothing is known yet of process `pid`, which runs `command`.
    pub(crate) fn new(pid: u32, command: &str, wanted: ActivityRequest) -> Self {
        Self {
            pid,
            command: command.to_owned(),
            wanted,
            activity: None,
            first: 0,
            paused: false,
            typed: None,
            threads: true,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// What is to be asked next.
    pub(crate) fn wanted(&self) -> ActivityRequest {
        self.wanted.clone()
    }

    /// The event that functions are sorted by.
    pub(crate) fn by(&self) -> &str {
        &self.wanted.by
    }

    /// What the last line says.
    pub(crate) fn footer(&self) -> String {
        if let Some(typed) = &self.typed {
            return format!("show names with: {typed}_   (Enter: do, Esc: do not)");
        }
        let pause = if self.paused { "go on" } else { "pause" };
        let filter = match self.wanted.text.as_str() {
            "" => "/ filter".to_owned(),
            text => format!("/ filter: {text}"),
        };
        format!("q quit  p {pause}  <> sort by {}  {filter}  t threads  arrows scroll", self.wanted.by)
    }

    /// The run has answered.
    pub(crate) fn take(&mut self, activity: Activity) {
        self.wanted.since = activity.snapshot;
        // Of a pause nothing is shown; what came meanwhile is in the next answer.
        if !self.paused {
            self.activity = Some(activity);
        }
    }

    /// A key was pressed. Whether that is the end.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if let Some(typed) = &mut self.typed {
            match key.code {
                KeyCode::Enter => {
                    self.wanted.text = std::mem::take(typed);
                    self.typed = None;
                    self.first = 0;
                }
                KeyCode::Esc => self.typed = None,
                KeyCode::Backspace => {
                    typed.pop();
                }
                KeyCode::Char(c) if !c.is_control() => typed.push(c),
                _ => {}
            }
            return false;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typed = Some(self.wanted.text.clone()),
            KeyCode::Char('t') => self.threads = !self.threads,
            KeyCode::Char('<') | KeyCode::Left => self.sort(-1),
            KeyCode::Char('>' | 's') | KeyCode::Right => self.sort(1),
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::Down => self.first += 1,
            KeyCode::PageUp => self.first = self.first.saturating_sub(20),
            KeyCode::PageDown => self.first += 20,
            KeyCode::Home => self.first = 0,
            _ => {}
        }
        false
    }

    /// Sorts by an event before or behind the one that it is.
    fn sort(&mut self, by: isize) {
        let Some(activity) = self.activity.as_mut().filter(|a| !a.events.is_empty()) else { return };
        let events = &activity.events;
        let at = events.iter().position(|event| *event == self.wanted.by).unwrap_or(0);
        let at = at.cast_signed().wrapping_add(by).rem_euclid(events.len().cast_signed()).cast_unsigned();
        self.wanted.by.clone_from(&events[at]);
        self.first = 0;
        // What is there is sorted at once; what is not comes with the next answer.
        activity.functions.sort_by_key(|f| std::cmp::Reverse(f.cost.get(at).copied()));
    }
}
