//! `--live`: a report of a run that goes on, which grows by a part whenever the run writes one.
//!
//! The run counts; this only asks it. A part that it writes sets its counts to 0, so that the sum of all parts is the profile that it would
//! have written in one piece; the report is that sum. Parts that others had the run write are taken in, too. When the run has ended, its
//! last part is, and the report stays. Requests go to the run one after the other; it is asked how far it is no more often than
//! [`OFTEN`], however many pages are open.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use callgrind_control_protocol::{Client, ClientError, Request, Status};
use cg_cli::json::Json;

use crate::html::{Data, Page};
use crate::serve::{Content, Source};

/// How long an answer of the run is good for.
const OFTEN: Duration = Duration::from_millis(250);
/// How long the last part of a run that has ended is waited for; where all parts are in one file, nothing tells that it is there.
const GRACE: Duration = Duration::from_secs(30);
const GRACE_COMBINED: Duration = Duration::from_secs(3);
/// What the first part that is asked for says of itself in the profile.
const HINT: &str = "cg_report --live";
/// As many versions of the report are kept: pages that are open still fetch columns of the one before.
const KEPT: usize = 2;

/// Makes the page of some files.
type Make<'a> = Box<dyn FnMut(&[OsString]) -> anyhow::Result<Page> + 'a>;

/// A run and the report of its parts so far.
pub(crate) struct Live<'a> {
    base: PathBuf,
    pid: u32,
    make: Make<'a>,
    files: Files,
    /// The report, with its version, the newest last.
    pages: Vec<(u64, Page)>,
    /// What the run has said last, and when.
    status: Status,
    asked: Instant,
    ended: bool,
    /// Since when there is no such process.
    gone: Option<Instant>,
    /// What went wrong last, for the reader.
    fault: String,
}

/// Where a run writes its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Files {
    /// What the names of all parts begin with; the last one has no other name.
    stem: PathBuf,
    /// All parts are in one file.
    combined: bool,
    /// What is older is of another run of this number.
    since: SystemTime,
}

impl<'a> Live<'a> {
    /// Has the run write a part, and makes the report of all parts so far.
    ///
    /// # Errors
    /// There is no such run, it writes no parts, or they make no report.
    pub(crate) fn start(base: &Path, pid: u32, make: Make<'a>) -> anyhow::Result<Self> {
        let mut client = Client::connect(base, pid)?;
        let before = client.status()?;
        let written = client.ask(&Request::Dump(HINT.to_owned()))?;
        let status = client.status()?;
        let first = written.first().with_context(|| format!("PID {pid}: it has written no part"))?;
        let files = Files::of(Path::new(first), before.part);
        let mut live = Self {
            base: base.to_owned(),
            pid,
            make,
            files,
            pages: Vec::new(),
            status,
            asked: Instant::now(),
            ended: false,
            gone: None,
            fault: String::new(),
        };
        live.renew()?;
        Ok(live)
    }

    /// Makes the report anew if there are more files than it has.
    fn renew(&mut self) -> anyhow::Result<()> {
        let files = self.files.found(self.status.part, self.ended);
        if files.is_empty() {
            bail!("PID {}: its parts are not there: {}", self.pid, self.files.stem.display());
        }
        let page = (self.make)(&files)?;
        let version = self.pages.last().map_or(1, |(version, _)| version + 1);
        self.pages.push((version, page));
        if self.pages.len() > KEPT {
            self.pages.remove(0);
        }
        Ok(())
    }

    /// Asks how far the run is, unless that is known well enough.
    fn look(&mut self) {
        if self.ended || self.asked.elapsed() < OFTEN {
            return;
        }
        self.asked = Instant::now();
        let status = Client::connect(&self.base, self.pid).and_then(|mut client| client.status());
        match status {
            Ok(status) => {
                let more = status.part != self.status.part;
                self.status = status;
                if more {
                    self.take();
                }
            }
            Err(error) => self.missed(&error),
        }
    }

    /// The run did not answer: it has ended, or takes its time. One that has ended still writes its last part.
    fn missed(&mut self, error: &ClientError) {
        if self.ended {
            return;
        }
        let there = Path::new(&format!("/proc/{}", self.pid)).exists();
        if !self.files.ended() {
            if there || matches!(error, ClientError::Silent(_)) {
                self.fault = error.to_string();
                return;
            }
            let grace = if self.files.combined { GRACE_COMBINED } else { GRACE };
            if self.gone.get_or_insert_with(Instant::now).elapsed() < grace {
                return;
            }
        }
        self.ended = true;
        self.status.threads.clear();
        self.take();
    }

    /// Takes new parts into the report; it stays as it is if that fails.
    fn take(&mut self) {
        self.fault = self.renew().err().map(|error| format!("{error:#}")).unwrap_or_default();
    }

    /// Has the run do something.
    fn tell(&mut self, request: &Request) -> Result<(), ClientError> {
        let mut client = Client::connect(&self.base, self.pid)?;
        client.ask(request)?;
        if *request == Request::Kill {
            return Ok(());
        }
        self.status = client.status()?;
        self.asked = Instant::now();
        if matches!(request, Request::Dump(_)) {
            self.take();
        }
        Ok(())
    }

    fn version(&self) -> u64 {
        self.pages.last().map_or(0, |(version, _)| *version)
    }

    /// How far the run is, as the page has it; numbers are text, since those of JavaScript have 53 bits.
    fn told(&self) -> String {
        let Status { command, tool, instrumentation, events, part, totals, threads, .. } = &self.status;
        let mut json = Json::default();
        let numbers = |json: &mut Json, key: &str, values: &[u64]| {
            json.key(key);
            json.begin_array();
            values.iter().for_each(|value| json.string(value.to_string().as_bytes()));
            json.end_array();
        };
        json.begin_object();
        json.key("version");
        json.integer(i128::from(self.version()));
        json.key("pid");
        json.integer(i128::from(self.pid));
        json.key("ended");
        json.boolean(self.ended);
        json.key("fault");
        json.string(self.fault.as_bytes());
        json.key("command");
        json.string(command.as_bytes());
        json.key("tool");
        json.string(tool.name().as_bytes());
        json.key("instrumentation");
        json.boolean(*instrumentation);
        json.key("part");
        json.integer(i128::from(*part));
        json.key("events");
        json.begin_array();
        events.iter().for_each(|event| json.string(event.as_bytes()));
        json.end_array();
        numbers(&mut json, "totals", totals);
        json.key("threads");
        json.begin_array();
        for thread in threads {
            json.begin_object();
            json.key("id");
            json.integer(i128::from(thread.id));
            numbers(&mut json, "total", &thread.total);
            json.key("frames");
            json.begin_array();
            for frame in &thread.frames {
                json.begin_object();
                json.key("function");
                json.string(frame.function.as_bytes());
                json.key("calls");
                json.string(frame.calls.to_string().as_bytes());
                numbers(&mut json, "cost", &frame.cost);
                json.end_object();
            }
            json.end_array();
            json.end_object();
        }
        json.end_array();
        json.end_object();
        json.finish()
    }

    fn page(&self, version: &str) -> Option<&Page> {
        let version = version.parse::<u64>().ok()?;
        self.pages.iter().find(|(known, _)| *known == version).map(|(_, page)| page)
    }
}

impl Source for Live<'_> {
    fn get(&mut self, path: &str) -> Option<Content<'_>> {
        if path == "live" {
            self.look();
            return Some(("application/json", Cow::Owned(self.told().into_bytes())));
        }
        if path.is_empty() {
            let mut html = Vec::new();
            let (version, page) = self.pages.last()?;
            page.write(&Data::Live(*version), &mut html).ok()?;
            return Some(("text/html; charset=utf-8", Cow::Owned(html)));
        }
        let (kind, rest) = path.split_once('/')?;
        match kind {
            "head" => Some(("application/json", Cow::Borrowed(self.page(rest)?.head.as_bytes()))),
            "data" => {
                let (version, range) = rest.split_once('/')?;
                Some(("text/plain", Cow::Borrowed(self.page(version)?.part(range)?.as_bytes())))
            }
            _ => None,
        }
    }

    fn listens(&self) -> bool {
        true
    }

    fn post(&mut self, path: &str) -> Option<Content<'_>> {
        let request = match path {
            "dump" => Request::Dump(HINT.to_owned()),
            "zero" => Request::Zero,
            "instrumentation/on" => Request::Instrumentation(true),
            "instrumentation/off" => Request::Instrumentation(false),
            "kill" => Request::Kill,
            _ => return None,
        };
        match self.tell(&request) {
            Ok(()) => {}
            // What it did not do is told; that it has ended is seen at the next look.
            Err(ClientError::Refused { cause, .. }) => self.fault = cause,
            Err(error) => self.missed(&error),
        }
        Some(("application/json", Cow::Owned(self.told().into_bytes())))
    }
}

impl Files {
    /// Those of a run that has called its part `number` so.
    fn of(path: &Path, number: u64) -> Self {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let infix = format!(".{number}");
        // A part of a thread has the thread's number behind its own.
        let plain = match name.iter().rposition(|byte| *byte == b'-') {
            Some(at) if !name[at + 1..].is_empty() && name[at + 1..].iter().all(u8::is_ascii_digit) => &name[..at],
            _ => name,
        };
        let numbered = plain.strip_suffix(infix.as_bytes()).or_else(|| name.strip_suffix(infix.as_bytes()));
        let since = fs::metadata(path).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let stem = path.with_file_name(OsString::from_vec(numbered.unwrap_or(name).to_vec()));
        Self { stem, combined: numbered.is_none(), since }
    }

    /// Whether the last part is there.
    fn ended(&self) -> bool {
        !self.combined && self.all().iter().any(|(part, newer, _)| part.is_none() && *newer)
    }

    /// The files of parts below `next`; the last one, too, if the run has `ended`.
    fn found(&self, next: u64, ended: bool) -> Vec<OsString> {
        if self.combined {
            return if self.stem.exists() { vec![self.stem.clone().into()] } else { Vec::new() };
        }
        let wanted = self.all().into_iter().filter(|(part, newer, _)| match part {
            Some(number) => *number < next || ended && *newer,
            None => ended && *newer,
        });
        wanted.map(|(.., path)| path.into()).collect()
    }

    /// All files that have names of parts, in the order of those: number, whether it is no older than the first part that was asked
    /// for, and the file.
    fn all(&self) -> Vec<(Option<u64>, bool, PathBuf)> {
        let folder = self.stem.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let stem = self.stem.file_name().unwrap_or_default().as_bytes();
        let digits = |text: &[u8]| {
            std::str::from_utf8(text)
                .ok()
                .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|text| text.parse::<u64>().ok())
        };
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(rest) = name.as_bytes().strip_prefix(stem) else { continue };
            let (number, thread) = match rest.iter().position(|byte| *byte == b'-') {
                Some(at) => (&rest[..at], digits(&rest[at + 1..])),
                None => (rest, Some(0)),
            };
            let number = match number.strip_prefix(b".") {
                Some(number) => digits(number).map(Some),
                None if number.is_empty() => Some(None),
                None => None,
            };
            if let (Some(number), Some(thread)) = (number, thread) {
                let newer = entry.metadata().and_then(|meta| meta.modified()).is_ok_and(|time| time >= self.since);
                all.push((number, thread, newer, entry.path()));
            }
        }
        // The last part has no number and comes last.
        all.sort_by_key(|(number, thread, ..)| (number.unwrap_or(u64::MAX), *thread));
        all.into_iter().map(|(number, _, newer, path)| (number, newer, path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_the_name_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let names = |files: &Files, next, ended| -> Vec<String> {
            let name = |file: OsString| Path::new(&file).file_name().unwrap().to_str().unwrap().to_owned();
            files.found(next, ended).into_iter().map(name).collect()
        };
        for name in ["out-7.1", "out-7.2", "out-7.10", "out-7.1.html", "out-70.1", "out-7.x", "out-7.2-01"] {
            fs::write(path(name), "x").unwrap();
        }
        let files = Files::of(&path("out-7.2"), 2);
        assert_eq!((files.stem.clone(), files.combined), (path("out-7"), false));
        assert_eq!(names(&files, 3, false), ["out-7.1", "out-7.2", "out-7.2-01"]);
        assert!(!files.ended());
        fs::write(path("out-7"), "x").unwrap();
        fs::write(path("out-7-02"), "x").unwrap();
        assert!(files.ended());
        assert_eq!(names(&files, 2, true), ["out-7.1", "out-7.2", "out-7.2-01", "out-7.10", "out-7", "out-7-02"]);
        // Files of an earlier process of this number are nobody's.
        let old = Files { since: SystemTime::now() + Duration::from_secs(60), ..files };
        assert_eq!(names(&old, 2, true), ["out-7.1"]);
        assert_eq!(Files::of(&path("out-7.2-01"), 2).stem, path("out-7"));
        let combined = Files::of(&path("out-7"), 2);
        assert_eq!((combined.combined, names(&combined, 5, false)), (true, vec!["out-7".to_owned()]));
    }
}
