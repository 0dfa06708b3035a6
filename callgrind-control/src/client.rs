//! The asking end. It talks to the run that it names, or to nobody.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::activity::{Activity, ActivityRequest};
use crate::lines::plain;
use crate::message::{Request, Status};
use crate::place::{self, Tool};
use crate::{PATIENCE, VERSION};

/// No line of an answer is longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// A talk with one run.
#[derive(Debug)]
pub struct Client {
    pid: u32,
    input: BufReader<UnixStream>,
}

/// Why a run could not be asked.
#[derive(Debug)]
pub enum ClientError {
    /// No run of this number listens.
    NoRun(u32),
    /// Its folder is not ours alone.
    NotOurs(io::Error),
    /// It greets as somebody else; nothing was asked.
    Stranger {
        /// The process that was named.
        pid: u32,
        /// The greeting.
        greeting: String,
    },
    /// It refused.
    Refused {
        /// The run.
        pid: u32,
        /// Its words.
        cause: String,
    },
    /// It did not say anything for [`PATIENCE`].
    Silent(u32),
    /// It answers in a way that is not understood.
    Garbled {
        /// The run.
        pid: u32,
        /// What is wrong.
        cause: String,
    },
    /// The talk broke down.
    Io(u32, io::Error),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRun(pid) => write!(f, "PID {pid}: no run of this number can be controlled"),
            Self::NotOurs(cause) => write!(f, "{cause}"),
            Self::Stranger { pid, greeting } => {
                write!(f, "PID {pid}: somebody else answers, so nothing was asked: {greeting}")
            }
            Self::Refused { pid, cause } => write!(f, "PID {pid}: {cause}"),
            Self::Silent(pid) => write!(f, "PID {pid}: no answer for {} seconds", PATIENCE.as_secs()),
            Self::Garbled { pid, cause } => write!(f, "PID {pid}: the answer is not understood: {cause}"),
            Self::Io(pid, cause) => write!(f, "PID {pid}: {cause}"),
        }
    }
}

impl std::error::Error for ClientError {}

/// The runs that listen below `base`, in ascending order.
///
/// # Errors
/// The folder cannot be read.
pub fn runs(base: &Path) -> io::Result<Vec<u32>> {
    Ok(runs_by_tool(base)?.into_iter().map(|(pid, _)| pid).collect())
}

/// As [`runs`], with the tool of each.
///
/// # Errors
/// The folder cannot be read.
pub fn runs_by_tool(base: &Path) -> io::Result<Vec<(u32, Tool)>> {
    let runs = place::pids(base)?;
    Ok(runs.into_iter().filter(|(pid, tool)| UnixStream::connect(place::socket(base, *tool, *pid)).is_ok()).collect())
}

impl Client {
    /// Calls the run of process `pid`.
    ///
    /// # Errors
    /// Nobody is there, or not the one that was named.
    pub fn connect(base: &Path, pid: u32) -> Result<Self, ClientError> {
        let stream = place::call(base, pid).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ClientError::NoRun(pid),
            _ => ClientError::NotOurs(error),
        })?;
        let broken = |error| ClientError::Io(pid, error);
        stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
        let mut client = Self { pid, input: BufReader::new(stream) };
        let greeting = client.line()?;
        if greeting != format!("grind-control {VERSION} {pid}") {
            return Err(ClientError::Stranger { pid, greeting });
        }
        Ok(client)
    }

    /// Asks, and gives the lines of the answer.
    ///
    /// # Errors
    /// The run refuses, says nothing, or nothing that makes sense.
    pub fn ask(&mut self, request: &Request) -> Result<Vec<String>, ClientError> {
        let pid = self.pid;
        let mut out = self.input.get_ref();
        out.write_all(format!("{}\n", request.line()).as_bytes()).map_err(|error| ClientError::Io(pid, error))?;
        let mut lines = Vec::new();
        loop {
            let line = self.line()?;
            if let Some(text) = line.strip_prefix(' ') {
                lines.push(plain(text));
            } else if line == "ok" {
                return Ok(lines);
            } else if let Some(cause) = line.strip_prefix("error ") {
                return Err(ClientError::Refused { pid, cause: plain(cause) });
            } else {
                return Err(ClientError::Garbled { pid, cause: line });
            }
        }
    }

    /// Asks how far the run is.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn status(&mut self) -> Result<Status, ClientError> {
        let lines = self.ask(&Request::Status)?;
        Status::parse(&lines).map_err(|cause| ClientError::Garbled { pid: self.pid, cause })
    }

    /// Asks what has been executed since an earlier snapshot.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn activity(&mut self, wanted: &ActivityRequest) -> Result<Activity, ClientError> {
        let lines = self.ask(&Request::Functions(wanted.clone()))?;
        Activity::parse(&lines).map_err(|cause| ClientError::Garbled { pid: self.pid, cause })
    }

    fn line(&mut self) -> Result<String, ClientError> {
        let pid = self.pid;
        let mut line = String::new();
        let length = self.input.by_ref().take(LONGEST).read_line(&mut line).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Silent(pid),
            _ => ClientError::Io(pid, error),
        })?;
        if length == 0 {
            return Err(ClientError::Garbled { pid, cause: "it hung up".to_owned() });
        }
        match line.strip_suffix('\n') {
            Some(line) => Ok(line.to_owned()),
            None => Err(ClientError::Garbled { pid, cause: "a line does not end".to_owned() }),
        }
    }
}
