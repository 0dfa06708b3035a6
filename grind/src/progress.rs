//! The line on a terminal that shows how far the programs are while they run: instructions, how fast they are executed, time,
//! threads.
//!
//! It must never mix with anything else on the terminal: it begins on a line of its own, is taken away before grind or a program
//! that is followed writes there, and at the end; it keeps away from terminals that a program has switched to its own use, or
//! that belong to another job. And it must cost the programs nothing that could be measured: the engine is asked twice a second, or
//! so seldom that the answers take less than a hundredth of its time, and what programs write is watched while a line is there.
//!
//! A thread writes it, so that a terminal that takes nothing (`^S`) keeps nobody else waiting who does not write to it.
//! What programs write that are not followed, or by `io_uring`, is not seen.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grind_session::Tally;
use grind_types::{Pid, Tid};
use nix::sys::termios::{LocalFlags, OutputFlags, tcgetattr};
use nix::unistd::{getpgrp, gettid, tcgetpgrp};

use crate::os;

/// The line appears after so long.
const FIRST: Duration = Duration::from_secs(1);
/// And is written anew after so long.
const AGAIN: Duration = Duration::from_millis(500);
/// An answer of the engine may take one part of so many of the time until the next one.
const SHARE: u32 = 100;
/// A question is repeated after so long, if the engine was about to wait when it came.
const REPEAT: Duration = Duration::from_millis(20);
/// Who has written to the terminal has it for so long, and each time for twice as long, up to the other.
const QUIET: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// So many times a program may be stopped because it writes to something else; then the line goes for a while.
const STOPS: u32 = 20;
/// That while.
const BUSY: Duration = Duration::from_secs(2);
/// `/dev/tty`: whatever terminal the process has.
const OWN_TERMINAL: u64 = 5 << 8;

#[derive(Debug)]
struct State {
    /// The run is over.
    over: bool,
    /// When the engine is to be asked, and that it is time.
    next: Instant,
    due: bool,
    /// What is to be written.
    wanted: Option<String>,
    /// A line is there.
    shown: bool,
}

#[derive(Debug)]
struct Shared {
    terminal: File,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, text: &str) {
        // A terminal that is gone shows nothing.
        let _ = (&self.terminal).write_all(text.as_bytes());
    }

    fn clear(&self, state: &mut State) {
        state.wanted = None;
        if std::mem::take(&mut state.shown) {
            self.write("\r\x1b[K");
        }
    }

    /// Whether the terminal takes lines at present: it belongs to this job, and shows what is written and typed line by line.
    fn is_ours(&self) -> bool {
        tcgetpgrp(&self.terminal) == Ok(getpgrp())
            && tcgetattr(&self.terminal).is_ok_and(|now| {
                now.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO)
                    && now.output_flags.contains(OutputFlags::OPOST)
            })
    }
}

/// A handle that takes the line away before something else is written.
#[derive(Clone, Debug)]
pub struct Line(Arc<Shared>);

impl Line {
    /// Takes the line away, if it is there.
    pub fn clear(&self) {
        self.0.clear(&mut self.0.lock());
    }
}

/// Shows the line while it lives.
#[derive(Debug)]
pub struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Which device the terminal is.
    device: u64,
    start: Instant,
    /// When the engine was asked.
    asked: Instant,
    /// What was told the last time, and when.
    last: (Instant, Tally),
    /// For how long who writes to the terminal has it.
    quiet: Duration,
    /// Writes to other things while the line is there.
    stops: u32,
}

impl Progress {
    /// Begins, if standard error is a terminal. To be called by the thread that runs the engine, when there may be threads.
    #[must_use]
    pub fn start() -> Option<Self> {
        let terminal = os::duplicate(2).ok()?;
        let device = terminal.metadata().ok().filter(|m| m.file_type().is_char_device())?.rdev();
        tcgetattr(&terminal).ok()?;
        let start = Instant::now();
        let state = State { over: false, next: start + FIRST, due: false, wanted: None, shown: false };
        let shared = Arc::new(Shared { terminal, state: Mutex::new(state), changed: Condvar::new() });
        os::be_interrupted();
        let (runner, writes) = (Tid(gettid().as_raw()), Arc::clone(&shared));
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || keep_on(&writes, runner)).ok()?;
        let last = (start, Tally::default());
        Some(Self { shared, thread: Some(thread), device, start, asked: start, last, quiet: QUIET[0], stops: 0 })
    }

    /// A handle to the line.
    #[must_use]
    pub fn line(&self) -> Line {
        Line(Arc::clone(&self.shared))
    }

    /// Whether the engine is to tell how far the processes are.
    pub fn is_due(&mut self) -> bool {
        // A thread that is writing keeps nobody waiting.
        let Ok(mut state) = self.shared.state.try_lock() else { return false };
        self.asked = Instant::now();
        std::mem::take(&mut state.due)
    }

    /// Shows how far the processes are. Returns whether a line is there.
    pub fn show(&mut self, tally: &Tally) -> bool {
        let now = Instant::now();
        let (since, before) = std::mem::replace(&mut self.last, (now, tally.clone()));
        let shared = Arc::clone(&self.shared);
        let Ok(mut state) = shared.state.try_lock() else { return false };
        state.next = now + AGAIN.max((now - self.asked) * SHARE);
        let text = text(tally, &before, now - since, now - self.start);
        // Who waits may be waiting for somebody at this terminal.
        let Some(text) = text.filter(|_| shared.is_ours()) else {
            shared.clear(&mut state);
            return false;
        };
        self.stops = 0;
        state.wanted = Some(text);
        shared.changed.notify_all();
        true
    }

    /// Process `pid` is about to write to `descriptor`. Returns whether the line is still there.
    pub fn before_output(&mut self, pid: Pid, descriptor: i32) -> bool {
        let to = fs::metadata(format!("/proc/{pid}/fd/{descriptor}"));
        let terminal =
            to.is_ok_and(|m| m.file_type().is_char_device() && [self.device, OWN_TERMINAL].contains(&m.rdev()));
        self.stops += 1;
        if !terminal && self.stops < STOPS {
            return true;
        }
        let mut state = self.shared.lock();
        self.shared.clear(&mut state);
        // An answer that comes yet would show the line behind what is written now.
        state.due = false;
        state.next = Instant::now() + if terminal { self.quiet } else { BUSY };
        if terminal {
            self.quiet = (self.quiet * 2).min(QUIET[1]);
        }
        false
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks the engine, thread `runner`, when it is time, and writes what comes of it.
fn keep_on(shared: &Shared, runner: Tid) {
    let mut state = shared.lock();
    while !state.over {
        let now = Instant::now();
        if let Some(text) = state.wanted.take() {
            let columns = os::columns(&shared.terminal).unwrap_or(80);
            // On a line of its own: blanks up to the last column lead to the next line unless they begin in the first one.
            let fresh = if state.shown { String::new() } else { format!("{:1$}", "", columns - 1) };
            let text: String = text.chars().take(columns - 1).collect();
            state.shown = true;
            shared.write(&format!("{fresh}\r{text}\x1b[K"));
        } else if state.due {
            drop(state);
            os::interrupt(runner);
            thread::sleep(Duration::from_micros(200));
            state = shared.lock();
            if state.due && !state.over {
                state = wait(shared, state, REPEAT);
            }
        } else if now >= state.next {
            state.due = true;
        } else {
            let rest = state.next - now;
            state = wait(shared, state, rest);
        }
    }
    shared.clear(&mut state);
}

fn wait<'s>(shared: &Shared, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
    shared.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
}

/// The line, if anything was executed since `before`, `interval` ago: of several processes that which executes most.
fn text(now: &Tally, before: &Tally, interval: Duration, run: Duration) -> Option<String> {
    let had = |pid| before.processes.iter().find(|p| p.pid == pid).map_or(0, |p| p.instructions);
    // A thread's counters are read while it runs.
    let grown = |pid, instructions: u64| instructions.saturating_sub(had(pid));
    let busiest = now.processes.iter().max_by_key(|p| grown(p.pid, p.instructions))?;
    let more = grown(busiest.pid, busiest.instructions);
    if more == 0 {
        return None;
    }
    let rate = (more as f64 / interval.as_secs_f64().max(1e-3)) as u64;
    let of = match now.processes.len() {
        1 => String::new(),
        n => format!(", process {} of {n}", busiest.pid),
    };
    let threads = if busiest.threads == 1 { String::new() } else { format!(", {} threads", busiest.threads) };
    let (all, rate, time) = (short(busiest.instructions), short(rate), duration(run));
    Some(format!("grind: {all} instructions, {rate} a second, {time}{threads}{of}"))
}

/// A number with three digits and a letter for what it is a multiple of.
fn short(n: u64) -> String {
    let (value, letter) = match n {
        0..1_000 => return n.to_string(),
        1_000..1_000_000 => (n as f64 / 1e3, 'k'),
        1_000_000..1_000_000_000 => (n as f64 / 1e6, 'M'),
        _ => (n as f64 / 1e9, 'G'),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {letter}")
}

fn duration(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use grind_session::ProcessTally;

    use super::*;

    fn tally(processes: &[(Pid, u64, usize)]) -> Tally {
        let one = |&(pid, instructions, threads)| ProcessTally { pid, instructions, threads };
        Tally { processes: processes.iter().map(one).collect() }
    }

    #[test]
    fn the_line_is_about_the_process_that_executes_most() {
        let (half, run) = (Duration::from_millis(500), Duration::from_secs(62));
        let text = |now: &[_], before: &[_]| text(&tally(now), &tally(before), half, run);
        let one = text(&[(Pid(7), 12_345_678_901, 1)], &[(Pid(7), 11_345_678_901, 1)]);
        assert_eq!(one.as_deref(), Some("grind: 12.3 G instructions, 2.00 G a second, 1 min 2 s"));
        let more = text(&[(Pid(7), 5_000, 1), (Pid(9), 4_000, 3)], &[(Pid(7), 4_900, 1), (Pid(8), 1, 1)]);
        assert_eq!(
            more.as_deref(),
            Some("grind: 4.00 k instructions, 8.00 k a second, 1 min 2 s, 3 threads, process 9 of 2")
        );
        assert_eq!(text(&[(Pid(7), 5_000, 1)], &[(Pid(7), 5_000, 1)]), None, "it waits");
        assert_eq!(text(&[], &[]), None);
    }

    #[test]
    fn a_question_asked_before_a_program_wrote_to_the_terminal_is_not_answered() {
        let terminal = File::options().write(true).open("/dev/null").unwrap();
        let device = terminal.metadata().unwrap().rdev();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&terminal);
        let start = Instant::now();
        let state = State { over: false, next: start, due: true, wanted: None, shown: true };
        let shared = Arc::new(Shared { terminal, state: Mutex::new(state), changed: Condvar::new() });
        let last = (start, Tally::default());
        let mut progress =
            Progress { shared, thread: None, device, start, asked: start, last, quiet: QUIET[0], stops: 0 };
        assert!(!progress.before_output(Pid(std::process::id().cast_signed()), descriptor));
        assert!(!progress.is_due());
        let state = progress.shared.lock();
        assert!(!state.shown && state.next > start + QUIET[0] / 2);
    }

    #[test]
    fn numbers_have_three_digits() {
        let cases = [(999, "999"), (1_000, "1.00 k"), (9_994, "9.99 k"), (9_996, "10.0 k"), (123_456, "123 k")];
        cases.into_iter().for_each(|(n, text)| assert_eq!(short(n), text));
        assert_eq!((short(99_960_000), short(1_234_000_000_000)), ("100 M".into(), "1234 G".into()));
    }
}
