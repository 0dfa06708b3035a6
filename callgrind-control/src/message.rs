//! What can be asked and answered, and how it is written. Reading never panics, whatever comes.

use crate::activity::ActivityRequest;
use crate::lines::{escaped, numbers, plain};
use crate::place::Tool;

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `status`: how far the run is; the answer is a [`Status`].
    Status,
    /// `dump [HINT]`: write what was counted as a part and set all counts to 0. The hint stands in the profile. The
    /// answer is the name of the file.
    Dump(String),
    /// `zero`: set all counts to 0.
    Zero,
    /// `instrumentation on|off`.
    Instrumentation(bool),
    /// `collection on|off`: whether costs are collected; calls are followed all the same. Answered when that is so.
    Collection(bool),
    /// `kill`: end the program; its profile is written.
    Kill,
    /// `functions SINCE LIMIT EVENT TEXT`: what has been executed since an earlier snapshot; the answer is an
    /// [`Activity`](crate::Activity).
    Functions(ActivityRequest),
    /// `detach`: leave the program to itself; its profile is written, and it goes on without the profiler.
    Detach,
}

/// What a run says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done; lines of text, as the request has them.
    Done(Vec<String>),
    /// It was not, and why.
    Refused(String),
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Program and arguments.
    pub command: String,
    /// Which tool counts.
    pub tool: Tool,
    /// Whether anything is being counted.
    pub instrumentation: bool,
    /// Names of the events, in the order of all costs.
    pub events: Vec<String>,
    /// The number of the part that is being counted, from 1.
    pub part: u64,
    /// What the process has cost since the part began, by event; empty if only its threads know.
    pub totals: Vec<u64>,
    /// Figures about the run by name, such as `executed-calls`; whatever the run knows.
    pub figures: Vec<(String, u64)>,
    /// The threads.
    pub threads: Vec<Thread>,
}

/// A thread of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number, from 1; in runs of cachegrind the kernel's.
    pub id: u64,
    /// What it cost since the part began, by event; in runs of cachegrind its instructions alone, since it began.
    pub total: Vec<u64>,
    /// Its calls, the outermost first.
    pub frames: Vec<Frame>,
}

/// A call that is going on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// How often its caller has called it from here since the part began.
    pub calls: u64,
    /// Inclusive cost of this call so far.
    pub cost: Vec<u64>,
}

impl Request {
    /// The line that asks.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Status => "status".to_owned(),
            Self::Dump(hint) if hint.is_empty() => "dump".to_owned(),
            Self::Dump(hint) => format!("dump {}", escaped(hint)),
            Self::Zero => "zero".to_owned(),
            Self::Instrumentation(on) => format!("instrumentation {}", if *on { "on" } else { "off" }),
            Self::Collection(on) => format!("collection {}", if *on { "on" } else { "off" }),
            Self::Kill => "kill".to_owned(),
            Self::Functions(wanted) => format!("functions {}", wanted.words()),
            Self::Detach => "detach".to_owned(),
        }
    }

    /// What a line asks.
    ///
    /// # Errors
    /// Why it asks nothing.
    pub fn parse(line: &str) -> Result<Self, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let unknown = || format!("unknown request: {line}");
        match (word, rest) {
            ("dump", hint) => Ok(Self::Dump(plain(hint))),
            ("status", "") => Ok(Self::Status),
            ("zero", "") => Ok(Self::Zero),
            ("instrumentation", "on") => Ok(Self::Instrumentation(true)),
            ("instrumentation", "off") => Ok(Self::Instrumentation(false)),
            ("collection", "on") => Ok(Self::Collection(true)),
            ("collection", "off") => Ok(Self::Collection(false)),
            ("kill", "") => Ok(Self::Kill),
            ("functions", words) => ActivityRequest::parse(words).map(Self::Functions).ok_or_else(unknown),
            ("detach", "") => Ok(Self::Detach),
            _ => Err(unknown()),
        }
    }
}

impl Answer {
    /// The lines of the answer, with their ends.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Done(lines) => {
                let mut text: String = lines.iter().map(|line| format!(" {}\n", escaped(line))).collect();
                text.push_str("ok\n");
                text
            }
            Self::Refused(cause) => format!("error {}\n", escaped(cause)),
        }
    }
}

impl From<&Status> for Answer {
    fn from(status: &Status) -> Self {
        Self::Done(status.lines())
    }
}

impl Status {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("command: {}", self.command),
            format!("tool: {}", self.tool.name()),
            format!("instrumentation: {}", if self.instrumentation { "on" } else { "off" }),
            format!("events: {}", self.events.join(" ")),
            format!("part: {}", self.part),
        ];
        if !self.totals.is_empty() {
            lines.push(format!("totals: {}", numbers(&self.totals)));
        }
        lines.extend(self.figures.iter().map(|(name, value)| format!("{name}: {value}")));
        for thread in &self.threads {
            lines.push(format!("thread: {}", thread.id));
            lines.push(format!("total: {}", numbers(&thread.total)));
            for frame in &thread.frames {
                let counts = [&frame.cost[..], &[frame.calls]].concat();
                lines.push(format!("frame: {} {}", numbers(&counts), frame.function));
            }
        }
        lines
    }

    /// The status that lines say. Keys that are not known are figures.
    ///
    /// # Errors
    /// Which line says nothing.
    pub fn parse(lines: &[String]) -> Result<Self, String> {
        let mut status = Self::default();
        for line in lines {
            let bad = || format!("this is no status: {line}");
            let (key, value) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, ""))).ok_or_else(bad)?;
            let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
            let list = |text: &str| text.split_whitespace().map(number).collect::<Result<Vec<u64>, _>>();
            match key {
                "command" => status.command = value.to_owned(),
                "tool" => status.tool = Tool::ALL.into_iter().find(|tool| tool.name() == value).ok_or_else(bad)?,
                "totals" => status.totals = list(value)?,
                "instrumentation" => status.instrumentation = value == "on",
                // What costs mean must be known before them.
                "events" if !status.threads.is_empty() => return Err(bad()),
                "events" => status.events = value.split_whitespace().map(str::to_owned).collect(),
                "part" => status.part = number(value)?,
                "thread" => status.threads.push(Thread { id: number(value)?, ..Thread::default() }),
                "total" => status.threads.last_mut().ok_or_else(bad)?.total = list(value)?,
                "frame" => {
                    // One number for each event, the calls, and a name that may hold blanks.
                    let mut words = value.splitn(status.events.len() + 2, ' ');
                    let cost = words.by_ref().take(status.events.len()).map(number).collect::<Result<_, _>>()?;
                    let calls = number(words.next().ok_or_else(bad)?)?;
                    let function = words.next().ok_or_else(bad)?.to_owned();
                    let frame = Frame { function, calls, cost };
                    status.threads.last_mut().ok_or_else(bad)?.frames.push(frame);
                }
                _ => status.figures.push((key.to_owned(), number(value)?)),
            }
        }
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_being_a_line() {
        let hint = "a \\ b\nc\r\\n".to_owned();
        for request in [
            Request::Status,
            Request::Dump(String::new()),
            Request::Dump(hint),
            Request::Zero,
            Request::Instrumentation(true),
            Request::Instrumentation(false),
            Request::Collection(true),
            Request::Collection(false),
            Request::Kill,
            Request::Detach,
            Request::Functions(ActivityRequest::default()),
            Request::Functions(ActivityRequest { by: "\r\\\n".into(), ..ActivityRequest::default() }),
            Request::Functions(ActivityRequest { since: 7, limit: 20, by: "DLmr".into(), text: "a b\\\n::c ".into() }),
        ] {
            let line = request.line();
            assert!(!line.contains(['\n', '\r']), "{line:?}");
            assert_eq!(Request::parse(&line), Ok(request));
        }
        for line in [
            "",
            "stat",
            "zero now",
            "instrumentation",
            "instrumentation yes",
            "collection",
            "collection toggle",
            "KILL",
            "functions",
            "functions 1 2",
            "functions x 2 Ir ",
        ] {
            assert!(Request::parse(line).is_err(), "{line:?}");
        }
    }

    /// As before the first event is known.
    #[test]
    fn a_frame_without_costs_survives_being_a_line() {
        let frames = vec![Frame { function: "main".into(), calls: 2, cost: Vec::new() }];
        let threads = vec![Thread { id: 1, total: Vec::new(), frames }];
        let status = Status { threads, ..Status::default() };
        assert_eq!(Status::parse(&status.lines()), Ok(status));
    }

    #[test]
    fn a_status_survives_being_lines() {
        let status = Status {
            command: "./a b".into(),
            instrumentation: true,
            events: vec!["Ir".into(), "Dr".into()],
            part: 3,
            tool: Tool::Cachegrind,
            totals: vec![9, 8],
            figures: vec![("executed-calls".into(), 12)],
            threads: vec![
                Thread {
                    id: 1,
                    total: vec![5, 6],
                    frames: vec![Frame { function: "operator new(unsigned long)".into(), calls: 2, cost: vec![3, 4] }],
                },
                Thread { id: 2, total: vec![0, 0], frames: Vec::new() },
            ],
        };
        assert_eq!(Status::parse(&status.lines()), Ok(status));
        assert_eq!(Status::parse(&Status::default().lines()), Ok(Status::default()));
        let late = ["thread: 1", "frame: 2 main", "events: Ir"].map(str::to_owned);
        assert!(Status::parse(&late).is_err(), "costs before their events");
        for line in
            ["x", "part: y", "frame: 1 2 f", "total: 1", "thread: -1", "figure: no", "tool: memcheck", "totals: x"]
        {
            assert!(Status::parse(&[line.to_owned()]).is_err(), "{line}");
        }
    }
}
