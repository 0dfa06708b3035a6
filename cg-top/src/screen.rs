//! A terminal that shows pictures: keys come one by one, and what it showed before comes back in the end, however that comes.
//!
//! Invariant: while one of these lives, the terminal is in raw mode; when it is gone, the terminal is as before.

use std::fs::File;
use std::io;

use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Who is told of the keys that interrupt and stop programs (`^C`, `^\`, `^Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// The view: they are keys as all others.
    Keys,
    /// All processes of the terminal's job, by signals, as without a view.
    Job,
}

/// See the module's description.
#[derive(Debug)]
pub struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<File>>,
    /// By another name.
    device: File,
}

impl Screen {
    /// Takes over a terminal that is this process's controlling one.
    ///
    /// # Errors
    /// It is none, or cannot be written to.
    pub fn new(terminal: File, signals: Signals) -> io::Result<Self> {
        enable_raw_mode()?;
        let begun = Self::begin(terminal, signals);
        if begun.is_err() {
            let _ = disable_raw_mode();
        }
        begun
    }

    fn begin(terminal: File, signals: Signals) -> io::Result<Self> {
        if signals == Signals::Job {
            let mut modes = tcgetattr(&terminal)?;
            modes.local_flags |= LocalFlags::ISIG;
            tcsetattr(&terminal, SetArg::TCSANOW, &modes)?;
        }
        let device = terminal.try_clone()?;
        let mut screen = Self { terminal: Terminal::new(CrosstermBackend::new(terminal))?, device };
        // (Ratatui's own clearing asks where the cursor is, on standard output, which may be something else.)
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen, Clear(ClearType::All))?;
        Ok(screen)
    }

    /// Makes sure that the terminal has not been closed.
    ///
    /// # Errors
    /// It has.
    pub(crate) fn is_there(&self) -> io::Result<()> {
        tcgetattr(&self.device)?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
