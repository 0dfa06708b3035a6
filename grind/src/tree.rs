//! `--tree=FILE`: one profile of all processes of a run, a block for each.
//!
//! There is one runner for the whole tree, whose calls come one after another, so it alone writes the file: a block as soon as a
//! process has ended, in one piece. Invariants: whenever a block has been written the file is a profile of all processes that
//! have ended so far; what cannot be written to its end is taken back, and the process's profile goes to a file of its own; a
//! process that was created has one block, however it ends.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cg_cli::saved::{Saved, save_text};
use cg_format::cachegrind::{Profile, write_header, write_rows};
use cg_format::callgrind::{Header, Names, Part, PartHeader, WriteOptions, Writer};
use cg_format::tree::{Process, Status, write_head, write_process};
use grind_analysis::dump;
use grind_session::Exit;
use grind_types::Pid;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// What is known of a process that has not ended.
#[derive(Debug)]
struct Member {
    id: u64,
    parent: u64,
    /// What it is about to become: path and command.
    next: Option<(Vec<u8>, Vec<u8>)>,
    /// Parts of a profile of calls, to be written when it ends, and what they add up to.
    parts: (Vec<u8>, Vec<i128>),
}

/// What is told of a process at its end.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The id that the system gave it.
    pub pid: Pid,
    /// How it ended, if that is known.
    pub exit: Option<Exit>,
    /// The program that it ran last.
    pub executable: &'a Path,
    /// Its arguments.
    pub args: &'a [OsString],
}

/// The file.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    /// The file, or why there is none.
    file: Result<Flock<File>, String>,
    /// The header, which a profile of a single process has, too.
    head: Vec<u8>,
    /// So many bytes are good.
    length: u64,
    /// What a process without a profile has in its place, if that is not nothing.
    empty: Vec<u8>,
    /// Of all blocks, if the format has a summary.
    total: Option<Vec<i128>>,
    events: usize,
    members: HashMap<Pid, Member>,
    last: u64,
}

impl Tree {
    /// A file of profiles without calls. `profile`: an empty one of the first process.
    #[must_use]
    pub fn of_lines(path: PathBuf, profile: &Profile) -> Tree {
        let mut head = Vec::new();
        write_header(&mut head, profile).expect("memory takes everything");
        let total = vec![0; profile.header.events.len()];
        Tree::begin(path, head, Vec::new(), &profile.header.events, Some(total))
    }

    /// A file of profiles with calls, with the header of the first process.
    #[must_use]
    pub fn of_calls(path: PathBuf, header: &Header, events: &[String]) -> Tree {
        let mut head = Vec::new();
        let mut writer = Writer::new(WriteOptions::default());
        writer.header(&mut head, header).expect("memory takes everything");
        let part = Part::new(PartHeader { number: Some(1), events: events.to_vec(), ..PartHeader::default() });
        let mut empty = Vec::new();
        writer.part(&mut empty, &Names::default(), &part, &[]).expect("memory takes everything");
        Tree::begin(path, head, empty, events, None)
    }

    fn begin(path: PathBuf, mut head: Vec<u8>, empty: Vec<u8>, events: &[String], total: Option<Vec<i128>>) -> Tree {
        write_head(&mut head, events).expect("memory takes everything");
        let file = open(&path);
        let (events, members) = (events.len(), HashMap::new());
        let mut tree = Tree { path, file, head, length: 0, empty, total, events, members, last: 0 };
        let head = tree.head.clone();
        if let Err(reason) = tree.append(&head) {
            tree.file = Err(reason);
        }
        tree
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A process has been created, by `parent` if that is followed.
    pub fn created(&mut self, pid: Pid, parent: Option<Pid>) {
        self.last += 1;
        let parent = parent.and_then(|pid| self.members.get(&pid)).map_or(0, |m| m.id);
        self.members
            .insert(pid, Member { id: self.last, parent, next: None, parts: (Vec::new(), vec![0; self.events]) });
    }

    /// Whether the process has a block to come.
    #[must_use]
    pub fn knows(&self, pid: Pid) -> bool {
        self.members.contains_key(&pid)
    }

    /// The process is about to become something that is not followed.
    pub fn leaves_for(&mut self, pid: Pid, path: &Path, args: &[OsString]) {
        if let Some(member) = self.members.get_mut(&pid) {
            member.next = Some((path.as_os_str().as_bytes().to_vec(), dump::command(args)));
        }
    }

    /// It did: nothing more will be heard of it, and what it did before is in no profile, but for parts that were told.
    ///
    /// # Errors
    /// The block could not be written.
    pub fn left(&mut self, pid: Pid) -> Result<(), String> {
        let Some(member) = self.members.remove(&pid) else { return Ok(()) };
        let (executable, command) = member.next.unwrap_or_default();
        let process = Process {
            id: member.id,
            parent: member.parent,
            pid: pid.0.unsigned_abs().into(),
            processes: 1,
            status: Status::Left,
            executable,
            command,
            cost: member.parts.1,
        };
        let mut text = Vec::new();
        let written = write_process(&mut text, &process).and_then(|()| self.rows(&mut text, None));
        text.extend_from_slice(if member.parts.0.is_empty() { &self.empty } else { &member.parts.0 });
        written.map_err(|error| error.to_string()).and_then(|()| self.append(&text))
    }

    /// A part of the profile of calls of a process, and what it adds up to.
    pub fn part(&mut self, pid: Pid, text: &[u8], total: &[i128]) {
        if let Some(member) = self.members.get_mut(&pid) {
            member.parts.0.extend_from_slice(text);
            member.parts.1.iter_mut().zip(total).for_each(|(sum, more)| *sum += more);
        }
    }

    /// A process has ended: its profile without calls. `incomplete` says that something is missing, and what.
    pub fn ended(&mut self, ended: Ended<'_>, profile: &Profile, incomplete: Option<&str>, spare: &Path) -> Saved {
        let Some(member) = self.members.remove(&ended.pid) else { return Saved::Nowhere("it is unknown".into()) };
        let mut text = Vec::new();
        let process = block(&ended, &member, profile.total().to_vec());
        let written = write_process(&mut text, &process)
            .and_then(|()| note(&mut text, incomplete))
            .and_then(|()| self.rows(&mut text, Some(profile)));
        match written.map_err(|error| error.to_string()).and_then(|()| self.append(&text)) {
            Ok(()) => {
                for (sum, count) in self.total.iter_mut().flatten().zip(profile.total()) {
                    *sum += count;
                }
                Saved::AsAsked
            }
            Err(reason) => {
                let path = self.beside(ended.pid, spare);
                alone(reason, dump::save(profile, &path, spare), path)
            }
        }
    }

    /// The same, with calls: its parts were told by [`Tree::part`].
    pub fn ended_calls(&mut self, ended: Ended<'_>, spare: &Path) -> Saved {
        let Some(member) = self.members.remove(&ended.pid) else { return Saved::Nowhere("it is unknown".into()) };
        let mut text = Vec::new();
        let process = block(&ended, &member, member.parts.1.clone());
        let written = write_process(&mut text, &process);
        text.extend_from_slice(if member.parts.0.is_empty() { &self.empty } else { &member.parts.0 });
        match written.map_err(|error| error.to_string()).and_then(|()| self.append(&text)) {
            Ok(()) => Saved::AsAsked,
            Err(reason) => {
                let path = self.beside(ended.pid, spare);
                let saved = save_text(&path, "callgrind.out", spare, |out| {
                    out.write_all(&self.head)?;
                    out.write_all(&text)
                });
                alone(reason, saved, path)
            }
        }
    }

    fn rows(&self, text: &mut Vec<u8>, profile: Option<&Profile>) -> io::Result<()> {
        let Some(total) = &self.total else { return Ok(()) };
        match profile {
            Some(profile) => {
                let total: Vec<i128> = total.iter().zip(profile.total()).map(|(a, b)| a + b).collect();
                write_rows(text, profile, &total)
            }
            None => write_rows(text, &Profile::new(Vec::<String>::new()), total),
        }
    }

    /// Where the profile of a single process goes if the file takes no more. What is no file has no place beside it.
    fn beside(&self, pid: Pid, spare: &Path) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{pid}"));
        match self.path.metadata() {
            Ok(meta) if !meta.is_file() => spare.join(name),
            _ => self.path.with_file_name(name),
        }
    }

    /// All of `text` or nothing of it.
    fn append(&mut self, text: &[u8]) -> Result<(), String> {
        let file = self.file.as_mut().map_err(|reason| reason.clone())?;
        match file.write_all(text) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A pipe has no length; nobody reads on from it then.
                let _ = file.set_len(self.length);
                Err(crate::resolve::reason(&error))
            }
        }
    }
}

/// A file that nobody else is writing a tree to.
fn open(path: &Path) -> Result<Flock<File>, String> {
    let reason = |error: io::Error| crate::resolve::reason(&error);
    let file = File::options().append(true).create(true).mode(0o600).open(path).map_err(reason)?;
    let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => "another run is writing it".to_owned(),
        error => reason(error.into()),
    })?;
    if file.metadata().map_err(reason)?.is_file() {
        file.set_len(0).map_err(reason)?;
    }
    Ok(file)
}

fn block(ended: &Ended<'_>, member: &Member, cost: Vec<i128>) -> Process {
    Process {
        id: member.id,
        parent: member.parent,
        pid: ended.pid.0.unsigned_abs().into(),
        processes: 1,
        status: match ended.exit {
            Some(Exit::Code(status)) => Status::Exited(status),
            Some(Exit::Signal(signal)) => Status::Killed(signal),
            None => Status::Unknown,
        },
        executable: ended.executable.as_os_str().as_bytes().to_vec(),
        command: dump::command(ended.args),
        cost,
    }
}

fn note(text: &mut Vec<u8>, incomplete: Option<&str>) -> io::Result<()> {
    match incomplete {
        Some(what) => {
            writeln!(text, "# {}", String::from_utf8_lossy(&grind_session::broken::description(what)).trim_end())
        }
        None => Ok(()),
    }
}

/// What became of a profile that the tree did not take, for this `reason`.
fn alone(reason: String, saved: Saved, path: PathBuf) -> Saved {
    match saved {
        Saved::AsAsked => Saved::Elsewhere(reason, path),
        Saved::Elsewhere(_, path) => Saved::Elsewhere(reason, path),
        Saved::Nowhere(_) => Saved::Nowhere(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::cachegrind::{ReadOptions, read};
    use std::fs;

    fn profile(count: i128) -> Profile {
        let mut profile = Profile::new(["Ir"]);
        profile.add(b"a.c", b"f", 1, &[count]).unwrap();
        profile
    }

    fn end(tree: &mut Tree, pid: Pid, count: i128, spare: &Path) -> Saved {
        let ended = Ended { pid, exit: Some(Exit::Code(0)), executable: Path::new("/bin/x"), args: &["x".into()] };
        tree.ended(ended, &profile(count), None, spare)
    }

    /// Whatever comes afterwards: what a run that is killed has written is a profile.
    #[test]
    fn the_file_is_a_profile_after_each_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        fs::write(&path, "what an earlier run left").unwrap();
        let mut tree = Tree::of_lines(path.clone(), &profile(0));
        tree.created(Pid(1), None);
        tree.created(Pid(2), Some(Pid(1)));
        tree.created(Pid(3), Some(Pid(1)));
        assert_eq!(end(&mut tree, Pid(3), 5, folder.path()), Saved::AsAsked);
        let total = || read(&fs::read(&path).unwrap()[..], "tree", &ReadOptions::default()).unwrap().total().to_vec();
        assert_eq!(total(), [5]);
        tree.leaves_for(Pid(2), Path::new("/bin/y"), &["y".into()]);
        tree.left(Pid(2)).unwrap();
        assert_eq!(total(), [5]);
        assert_eq!(end(&mut tree, Pid(1), 7, folder.path()), Saved::AsAsked);
        assert_eq!(total(), [12]);
        assert!(!tree.knows(Pid(1)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_second_run_does_not_write_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        let mut first = Tree::of_lines(path.clone(), &profile(0));
        first.created(Pid(1), None);
        assert_eq!(end(&mut first, Pid(1), 5, folder.path()), Saved::AsAsked);
        let before = fs::read(&path).unwrap();
        let mut second = Tree::of_lines(path.clone(), &profile(0));
        second.created(Pid(8), None);
        let alone = folder.path().join("tree.8");
        let saved = end(&mut second, Pid(8), 9, folder.path());
        assert_eq!(saved, Saved::Elsewhere("another run is writing it".into(), alone.clone()));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(read(&fs::read(alone).unwrap()[..], "alone", &ReadOptions::default()).unwrap().total(), [9]);
    }

    #[test]
    fn what_the_file_does_not_take_is_kept_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::of_lines("/dev/full".into(), &profile(0));
        tree.created(Pid(8), None);
        let saved = end(&mut tree, Pid(8), 9, folder.path());
        assert_eq!(saved, Saved::Elsewhere("No space left on device".into(), folder.path().join("full.8")));
    }
}
