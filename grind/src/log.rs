//! The log: lines in front of which stands the process that they speak of.
//!
//! `==PID==` is grind speaking to the user, `--PID--` detail or a warning about the run itself, `**PID**` what the program
//! prints through a client request. A line is written with one system call, so lines of several processes never mix.
//! A log that cannot be written (a full disk, a closed pipe) never disturbs the program.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use grind_types::Pid;

use cg_cli::expand::{Sequence, Template};

use crate::progress::Line;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// `==PID==`
    User,
    /// `--PID--`
    Detail,
    /// `**PID**`
    Program,
}

impl Voice {
    fn mark(self) -> &'static str {
        match self {
            Self::User => "==",
            Self::Detail => "--",
            Self::Program => "**",
        }
    }
}

/// Where lines go.
#[derive(Debug)]
pub enum Target {
    /// One open file for all processes.
    Shared(Rc<File>),
    /// A file for each process.
    Each(Template),
}

/// What is kept for one process.
#[derive(Debug)]
struct Stream {
    file: Rc<File>,
    silent: bool,
    /// The last text did not end its line, and was spoken so.
    unfinished: Option<Voice>,
}

/// The log of all processes.
#[derive(Debug)]
pub struct Log {
    target: Target,
    start: Option<Instant>,
    streams: HashMap<Pid, Stream>,
    /// What may be on the terminal.
    line: Option<Line>,
}

/// Opens a log file: created or emptied, readable by all, not inherited by the program.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    // Appending: a log may be shared by several processes, even with another grind.
    let file = OpenOptions::new().append(true).create(true).mode(0o644).open(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

impl Log {
    /// A log; with time stamps relative to now if asked for.
    #[must_use]
    pub fn new(target: Target, time_stamps: bool) -> Self {
        Self { target, start: time_stamps.then(Instant::now), streams: HashMap::new(), line: None }
    }

    /// A line that has to go from the terminal before anything is written.
    pub fn clears(&mut self, line: Line) {
        self.line = Some(line);
    }

    /// Starts to log for `pid`. Returns the file that could not be opened; the log then goes to standard error.
    pub fn begin(&mut self, pid: Pid, sequence: &mut Sequence) -> Option<(PathBuf, io::Error)> {
        let mut failure = None;
        let file = match &self.target {
            Target::Shared(file) => Rc::clone(file),
            Target::Each(template) => {
                let path = template.expand(pid.0, sequence);
                match open(&path).or_else(|e| {
                    let instead = crate::os::duplicate(2);
                    failure = Some((path, e));
                    instead
                }) {
                    Ok(file) => Rc::new(file),
                    Err(_) => return failure,
                }
            }
        };
        self.streams.insert(pid, Stream { file, silent: false, unfinished: None });
        failure
    }

    /// Goes on for `child`, a copy of `parent`. Returns whether it has a file of its own, and any failure to open it.
    pub fn fork(
        &mut self,
        parent: Pid,
        child: Pid,
        silent: bool,
        sequence: &mut Sequence,
    ) -> (bool, Option<(PathBuf, io::Error)>) {
        let own = matches!(&self.target, Target::Each(template) if template.has_pid());
        if own && !silent {
            let failure = self.begin(child, sequence);
            return (true, failure);
        }
        if let Some(stream) = self.streams.get(&parent) {
            let silent = silent || stream.silent;
            let copy = Stream { file: Rc::clone(&stream.file), silent, unfinished: None };
            self.streams.insert(child, copy);
        }
        (false, None)
    }

    /// Whether nothing is logged for `pid`.
    #[must_use]
    pub fn is_silent(&self, pid: Pid) -> bool {
        self.streams.get(&pid).is_none_or(|s| s.silent)
    }

    /// Whether a log has been begun for `pid`.
    #[must_use]
    pub fn knows(&self, pid: Pid) -> bool {
        self.streams.contains_key(&pid)
    }

    /// Lets `pid` speak again, after it was silenced by a fork.
    pub fn unsilence(&mut self, pid: Pid) {
        if let Some(stream) = self.streams.get_mut(&pid) {
            stream.silent = false;
        }
    }

    /// Closes the log of `pid`.
    pub fn end(&mut self, pid: Pid) {
        self.streams.remove(&pid);
    }

    /// Logs whole lines (without a line end after the last).
    pub fn say(&mut self, pid: Pid, voice: Voice, lines: &str) {
        let start = self.start;
        let Some(stream) = self.streams.get_mut(&pid).filter(|s| !s.silent) else { return };
        let mut out = Vec::new();
        if stream.unfinished.take().is_some() {
            out.push(b'\n');
        }
        let prefix = prefix(pid, voice, start);
        for line in lines.split('\n') {
            out.extend_from_slice(prefix.as_bytes());
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        self.line.iter().for_each(Line::clear);
        let _ = (&*stream.file).write_all(&out);
    }

    /// Logs text as it comes: lines may be incomplete and be continued by the next call.
    pub fn text(&mut self, pid: Pid, voice: Voice, text: &[u8]) {
        let start = self.start;
        let Some(stream) = self.streams.get_mut(&pid).filter(|s| !s.silent) else { return };
        if text.is_empty() {
            return;
        }
        let prefix = prefix(pid, voice, start);
        let mut out = Vec::new();
        match stream.unfinished {
            Some(last) if last == voice => {}
            Some(_) => {
                out.push(b'\n');
                out.extend_from_slice(prefix.as_bytes());
            }
            None => out.extend_from_slice(prefix.as_bytes()),
        }
        let body = text.strip_suffix(b"\n").unwrap_or(text);
        for (index, line) in body.split(|&b| b == b'\n').enumerate() {
            if index > 0 {
                out.push(b'\n');
                out.extend_from_slice(prefix.as_bytes());
            }
            out.extend_from_slice(line);
        }
        let complete = text.ends_with(b"\n");
        if complete {
            out.push(b'\n');
        }
        stream.unfinished = (!complete).then_some(voice);
        self.line.iter().for_each(Line::clear);
        let _ = (&*stream.file).write_all(&out);
    }
}

fn prefix(pid: Pid, voice: Voice, start: Option<Instant>) -> String {
    let mark = voice.mark();
    let mut prefix = mark.to_owned();
    if let Some(start) = start {
        prefix.push_str(&stamp(start.elapsed()));
        prefix.push(' ');
    }
    let _ = write!(prefix, "{pid}{mark} ");
    prefix
}

/// `days:hours:minutes:seconds.milliseconds`
fn stamp(elapsed: Duration) -> String {
    let s = elapsed.as_secs();
    let (days, hours, minutes, seconds) = (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60);
    format!("{days:02}:{hours:02}:{minutes:02}:{seconds:02}.{:03}", elapsed.subsec_millis())
}

/// A command line as one line: blanks, angle brackets and backslashes escaped, control characters shown as `_`.
#[must_use]
pub fn command_line(args: &[std::ffi::OsString]) -> String {
    let mut line = String::new();
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            line.push(' ');
        }
        for c in arg.to_string_lossy().chars() {
            match c {
                ' ' | '<' | '>' | '\\' => line.extend(['\\', c]),
                c if c.is_control() => line.push('_'),
                c => line.push(c),
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{OsStr, OsString};

    fn log() -> (Log, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        (Log::new(Target::Shared(Rc::new(file.reopen().unwrap())), false), file)
    }

    fn contents(file: &tempfile::NamedTempFile) -> String {
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn every_line_is_marked() {
        let (mut log, file) = log();
        log.begin(Pid(7), &mut Sequence::default());
        log.say(Pid(7), Voice::User, "one\ntwo");
        log.say(Pid(7), Voice::Detail, "three");
        log.say(Pid(7), Voice::User, "");
        log.say(Pid(8), Voice::User, "unknown process");
        assert_eq!(contents(&file), "==7== one\n==7== two\n--7-- three\n==7== \n");
    }

    #[test]
    fn the_program_may_print_parts_of_lines() {
        let (mut log, file) = log();
        log.begin(Pid(7), &mut Sequence::default());
        log.text(Pid(7), Voice::Program, b"hello\n");
        log.text(Pid(7), Voice::Program, b"no newline");
        log.text(Pid(7), Voice::Program, b"two\nlines\n");
        log.text(Pid(7), Voice::Program, b"open");
        log.say(Pid(7), Voice::User, "closed");
        assert_eq!(contents(&file), "**7** hello\n**7** no newlinetwo\n**7** lines\n**7** open\n==7== closed\n");
    }

    #[test]
    fn children_may_be_silent_or_have_files() {
        let (mut log, file) = log();
        let mut sequence = Sequence::default();
        log.begin(Pid(1), &mut sequence);
        log.fork(Pid(1), Pid(2), true, &mut sequence);
        log.fork(Pid(1), Pid(3), false, &mut sequence);
        for pid in [1, 2, 3] {
            log.say(Pid(pid), Voice::User, "x");
        }
        assert_eq!(contents(&file), "==1== x\n==3== x\n");

        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("log.%p.%n");
        let template = Template::parse(name.as_os_str(), |_| None).unwrap();
        let mut log = Log::new(Target::Each(template), false);
        log.begin(Pid(1), &mut sequence);
        assert!(log.fork(Pid(1), Pid(2), false, &mut sequence).0);
        assert!(!log.fork(Pid(1), Pid(3), true, &mut sequence).0);
        log.say(Pid(2), Voice::User, "two");
        assert_eq!(std::fs::read_to_string(folder.path().join("log.2.1")).unwrap(), "==2== two\n");
        assert!(!folder.path().join("log.3.1").exists());
    }

    #[test]
    fn time_stamps_count_from_the_start() {
        assert_eq!(stamp(Duration::from_millis(431)), "00:00:00:00.431");
        assert_eq!(stamp(Duration::from_secs(90_061)), "01:01:01:01.000");
    }

    #[test]
    fn command_lines_are_one_line() {
        let args: Vec<OsString> = ["sh", "-c", "a > b\n\\", "é"].iter().map(OsString::from).collect();
        assert_eq!(command_line(&args), "sh -c a\\ \\>\\ b_\\\\ é");
        assert_eq!(command_line(&[OsStr::new("").into()]), "");
    }
}
