//! Profiles of trees of processes: one file of either format, with a block of lines for each process.
//!
//! Such a file is a profile like any other. What is said of processes stands in lines that begin with `#`, which mean nothing
//! to readers that look for a sum alone:
//!
//! ```text
//! # tree: 1                                    the version of this, behind the file's header
//! # counts: Ir Dr                              the events of the `cost:` lines
//! # process: 2 parent: 1 pid: 813 status: exited 0
//! # executable: /usr/bin/cc
//! # command: cc -c a.c
//! # cost: 1200 310                             what it spent itself
//! fl=... fn=... or a part of callgrind's       where it spent that
//! summary: 5000 900                            cachegrind's alone: of all blocks so far
//! ```
//!
//! Blocks stand in the order in which processes ended, so a child may stand before its parent; numbers are in the order in
//! which processes began. A parent of 0 is none. A block is complete where its rows add up to its `cost:`; what a run that was
//! cut short left is a profile as far as its blocks are complete. `processes: N` behind `process:` says that a block is the sum
//! of several.
//!
//! Invariant: a block is text of its format by itself, given the header of the file: names are not defined in other blocks.

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use crate::count::parse;
use crate::text::out::Lines;
use crate::text::{shown, without_cr, words};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It exited with this status.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// It went on as a program that was not followed, whose cost is not known.
    Left,
    /// Nobody knows, or it is not the same for the processes of a block.
    Unknown,
}

impl Status {
    /// Whether it tells of a failure: another exit status than 0, or a signal.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Killed(_)) || matches!(self, Self::Exited(status) if status != 0)
    }

    fn parse(kind: &[u8], number: Option<&[u8]>) -> Option<Self> {
        let number = number.map(|word| std::str::from_utf8(word).ok()?.parse::<i32>().ok());
        match (kind, number) {
            (b"exited", Some(status)) => status.map(Self::Exited),
            (b"killed", Some(signal)) => signal.map(Self::Killed),
            (b"left", None) => Some(Self::Left),
            (b"unknown", None) => Some(Self::Unknown),
            _ => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited {status}"),
            Self::Killed(signal) => write!(f, "killed {signal}"),
            Self::Left => f.write_str("left"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// A process, or several that were made one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number in the file, from 1.
    pub id: u64,
    /// The number of the process that created it; 0 for none.
    pub parent: u64,
    /// The id that the system gave it.
    pub pid: u64,
    /// How many processes it stands for.
    pub processes: u64,
    /// How it ended.
    pub status: Status,
    /// The program that it ran last, as a path.
    pub executable: Vec<u8>,
    /// Its arguments, separated by blanks.
    pub command: Vec<u8>,
    /// What it spent itself, event by event.
    pub cost: Vec<i128>,
}

impl Process {
    /// The process that a line begins to tell of, as `# process: 2 parent: 1 pid: 813 status: exited 0`; nothing if it is no such line.
    #[must_use]
    pub fn begun_by(line: &[u8]) -> Option<Self> {
        line.starts_with(BEGIN).then(|| parse_process(line)).flatten()
    }
}

/// What a block begins with.
const BEGIN: &[u8] = b"# process:";

/// Writes what stands before the first block, behind the header of the file.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_head<S: AsRef<str>>(out: &mut dyn Write, events: &[S]) -> io::Result<()> {
    let events: Vec<&str> = events.iter().map(AsRef::as_ref).collect();
    writeln!(out, "# tree: 1\n# counts: {}", events.join(" "))
}

/// Writes what stands at the beginning of a block.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_process(out: &mut dyn Write, process: &Process) -> io::Result<()> {
    let Process { id, parent, pid, processes, status, .. } = process;
    write!(out, "# process: {id} parent: {parent} pid: {pid} ")?;
    if *processes != 1 {
        write!(out, "processes: {processes} ")?;
    }
    writeln!(out, "status: {status}")?;
    let mut lines = Lines::new(out);
    lines.line(b"# executable: ", &process.executable)?;
    lines.line(b"# command: ", &process.command)?;
    lines.bytes(b"# cost:");
    for count in &process.cost {
        lines.byte(b' ').wide(*count);
    }
    lines.end()?;
    lines.finish()
}

/// Which format a file is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Without calls.
    Cachegrind,
    /// With calls.
    Callgrind,
}

/// A block of a file.
#[derive(Clone, Debug)]
pub struct Block {
    /// Whose it is.
    pub process: Process,
    /// The line that it begins at, from 1.
    pub line: u64,
    /// A profile of its own: the header of the file and the lines of the block.
    pub text: Vec<u8>,
}

/// Why a tree could not be read.
#[derive(Debug)]
pub enum TreeError {
    /// The input could not be read.
    Input(io::Error),
    /// It says nothing of processes.
    NoTree,
    /// The line, given by its number and its beginning, is not what should stand there.
    Malformed(u64, String),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::NoTree => f.write_str("it says nothing of processes: `grind --tree=FILE` makes a file that does"),
            Self::Malformed(line, text) => write!(f, "line {line}: malformed line about a process: {text}"),
        }
    }
}

impl std::error::Error for TreeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for TreeError {
    fn from(error: io::Error) -> Self {
        Self::Input(error)
    }
}

/// No line of a profile has so many bytes.
const LONGEST: u64 = 1 << 24;

/// So many bytes of a file without the mark of a tree are looked at.
const HEAD: usize = 1 << 20;

/// Reads a file block by block, of which one is in memory at a time.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    format: Format,
    events: Vec<String>,
    head: Vec<u8>,
    line: u64,
    /// The `# process:` line that ended the block before; empty at the end.
    next: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    /// Reads up to the first block.
    ///
    /// # Errors
    /// [`TreeError`]; so do the methods below.
    pub fn new(input: R) -> Result<Self, TreeError> {
        let format = Format::Cachegrind;
        let mut reader = Self { input, format, events: Vec::new(), head: Vec::new(), line: 0, next: Vec::new() };
        let mut line = Vec::new();
        loop {
            if !reader.read_line(&mut line)? || reader.head.len() > HEAD {
                return Err(TreeError::NoTree);
            }
            if reader.line == 1 && line.starts_with(b"# callgrind format") {
                reader.format = Format::Callgrind;
            }
            if line.starts_with(BEGIN) {
                break;
            }
            if let Some(events) = line.strip_prefix(b"# counts:") {
                reader.events = words(trimmed(events)).map(shown).collect();
            }
            // Rows before the mark are of another kind of file.
            if line.starts_with(b"fl=") || line.starts_with(b"fn=") || line.starts_with(b"summary:") {
                return Err(TreeError::NoTree);
            }
            reader.head.append(&mut line);
        }
        if reader.events.is_empty() {
            return Err(TreeError::NoTree);
        }
        reader.next = line;
        Ok(reader)
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The events that costs are of.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The header of the file, up to the first block.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The next block; none at the end.
    pub fn next_block(&mut self) -> Result<Option<Block>, TreeError> {
        if self.next.is_empty() {
            return Ok(None);
        }
        let first = std::mem::take(&mut self.next);
        let (at, width) = (self.line, self.events.len());
        let malformed = |line: u64, text: &[u8]| TreeError::Malformed(line, shown(without_cr(text)));
        let mut process = parse_process(trimmed(&first)).ok_or_else(|| malformed(at, trimmed(&first)))?;
        let mut text = self.head.clone();
        let mut line = Vec::new();
        while self.read_line(&mut line)? {
            if line.starts_with(b"# process:") {
                self.next = line;
                break;
            }
            if let Some(path) = line.strip_prefix(b"# executable: ") {
                process.executable = trimmed(path).to_vec();
            } else if let Some(command) = line.strip_prefix(b"# command: ") {
                process.command = trimmed(command).to_vec();
            } else if let Some(cost) = line.strip_prefix(b"# cost:") {
                let cost: Result<Vec<i128>, _> = words(trimmed(cost)).map(parse).collect();
                process.cost = cost.map_err(|_| malformed(self.line, trimmed(&line)))?;
                if process.cost.len() > width {
                    return Err(malformed(self.line, trimmed(&line)));
                }
                process.cost.resize(width, 0);
            } else {
                text.append(&mut line);
            }
            line.clear();
        }
        Ok(Some(Block { process, line: at, text }))
    }

    fn read_line(&mut self, line: &mut Vec<u8>) -> Result<bool, TreeError> {
        line.clear();
        (&mut self.input).take(LONGEST).read_until(b'\n', line)?;
        if line.len() as u64 == LONGEST {
            return Err(
                io::Error::new(io::ErrorKind::InvalidData, "a line is longer than any profile has: 16 MiB").into()
            );
        }
        self.line += u64::from(!line.is_empty());
        Ok(!line.is_empty())
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    without_cr(line.strip_suffix(b"\n").unwrap_or(line))
}

fn parse_process(line: &[u8]) -> Option<Process> {
    let mut process = Process {
        id: 0,
        parent: 0,
        pid: 0,
        processes: 1,
        status: Status::Unknown,
        executable: Vec::new(),
        command: Vec::new(),
        cost: Vec::new(),
    };
    let mut words = words(line.strip_prefix(b"#")?);
    while let Some(key) = words.next() {
        let mut number = || -> Option<u64> { std::str::from_utf8(words.next()?).ok()?.parse().ok() };
        match key {
            b"process:" => process.id = number()?,
            b"parent:" => process.parent = number()?,
            b"pid:" => process.pid = number()?,
            b"processes:" => process.processes = number()?,
            b"status:" => process.status = Status::parse(words.next()?, words.next())?,
            _ => return None,
        }
    }
    (process.id > 0 && process.processes > 0).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cachegrind;

    fn process(id: u64, parent: u64, status: Status, cost: i128) -> Process {
        Process {
            id,
            parent,
            pid: 100 + id,
            processes: 1,
            status,
            executable: b"/bin/x".to_vec(),
            command: b"x a\nb".to_vec(),
            cost: vec![cost],
        }
    }

    fn file() -> Vec<u8> {
        let mut text = b"desc: d\ncmd: x\nevents: Ir\n".to_vec();
        write_head(&mut text, &["Ir"]).unwrap();
        write_process(&mut text, &process(2, 1, Status::Killed(9), 5)).unwrap();
        text.extend_from_slice(b"fl=a\nfn=f\n1 5\nsummary: 5\n");
        write_process(&mut text, &process(1, 0, Status::Exited(3), 7)).unwrap();
        text.extend_from_slice(b"fl=a\nfn=f\n1 3\nfn=g\n2 4\nsummary: 12\n");
        let folded = Process { processes: 4, ..process(3, 1, Status::Left, 0) };
        write_process(&mut text, &folded).unwrap();
        text
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = file();
        let mut reader = Reader::new(&text[..]).unwrap();
        assert_eq!((reader.format(), reader.events()), (Format::Cachegrind, &["Ir".to_owned()][..]));
        let mut blocks = Vec::new();
        while let Some(block) = reader.next_block().unwrap() {
            blocks.push(block);
        }
        let escaped = |p: Process| Process { command: b"x a\\nb".to_vec(), ..p };
        assert_eq!(blocks[0].process, escaped(process(2, 1, Status::Killed(9), 5)));
        assert_eq!(blocks[1].process, escaped(process(1, 0, Status::Exited(3), 7)));
        assert_eq!(blocks[2].process, escaped(Process { processes: 4, ..process(3, 1, Status::Left, 0) }));
        let options = cachegrind::ReadOptions { summary: cachegrind::SummaryRule::Ignored, ..Default::default() };
        let profile = cachegrind::read(&blocks[1].text[..], "b", &options).unwrap();
        assert_eq!(profile.total(), [7]);
    }

    /// Whoever knows nothing of trees sees the sum.
    #[test]
    fn the_file_is_a_profile_of_the_sum() {
        let profile = cachegrind::read(&file()[..], "tree", &cachegrind::ReadOptions::default()).unwrap();
        assert_eq!(profile.total(), [12]);
    }

    #[test]
    fn other_files_and_wrong_lines_are_refused() {
        let plain = b"cmd: x\nevents: Ir\nfl=a\nfn=f\n1 5\nsummary: 5\n";
        assert!(matches!(Reader::new(&plain[..]), Err(TreeError::NoTree)));
        assert!(matches!(Reader::new(&b""[..]), Err(TreeError::NoTree)));
        let head = "cmd: x\nevents: Ir\n# tree: 1\n# counts: Ir\n";
        for wrong in [
            "# process: 0 parent: 0 pid: 1 status: exited 0\n",
            "# process: x\n",
            "# process:\n",
            "# process: 1 parent: 0 pid: 1 status: exited\n",
            "# process: 1 parent: 0 pid: 1 status: danced 1\n",
            "# process: 1 processes: 0\n",
            "# process: 1 what: 0\n",
            "# process: 1\n# cost: x\n",
            "# process: 1\n# cost: 1 2\n",
            "# process: 1\n# cost: 99999999999999999999999999999999999999999\n",
        ] {
            let text = format!("{head}{wrong}");
            let mut reader = Reader::new(text.as_bytes()).unwrap();
            assert!(matches!(reader.next_block(), Err(TreeError::Malformed(..))), "{wrong}");
        }
    }
}
