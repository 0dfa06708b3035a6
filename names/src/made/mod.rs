//! Names of code that programs make while they run: from `perf-PID.map`, from jitdump files, and from GDB's JIT interface.
//!
//! Such code is replaced: what is asked is what lay at an address when it was translated. The engine says when it is about to translate
//! some ([`Registry::moment`]), and what it counts of it carries that moment's number. A moment knows the time, the length of the
//! perf map and what was on GDB's lists; that, and no more, decides which of the names an address has had is meant:
//! - jitdump: exact, by the time of its records;
//! - GDB's lists: exact, but for what `gdb` says;
//! - perf maps: exact if the program writes each line before it runs the code; else the line may be the next one's (see `perf_map`).
//!
//! Invariants: nothing in the program's files or memory can do more harm than to cost names; a file is only read if it is a regular one, in
//! the program's own view of the file system, and written since the program began; what has been seen of a file stays known when it
//! has been removed, or the program has ended.

mod gdb;
mod jitdump;
mod perf_map;
mod spans;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use grind_symbols::Name;
use grind_types::addr::GuestAddr;
use grind_types::{MappedFile, Module, Pid};
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::Mode;
use nix::time::{ClockId, clock_gettime};

use gdb::Lists;
use jitdump::Dump;
use perf_map::PerfMap;

/// What is known of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The function.
    pub function: Name,
    /// Its first address.
    pub start: GuestAddr,
    /// Behind its last one.
    pub end: GuestAddr,
    /// The file, if it is known.
    pub file: Option<Name>,
    /// The line, from 1; 0: unknown.
    pub line: u32,
}

/// When code was about to be translated.
#[derive(Clone, Copy, Debug)]
struct Moment {
    number: u32,
    /// Of the monotonic clock, in nanoseconds.
    time: u64,
    /// Of the perf map, in bytes.
    length: u64,
}

/// What is known of a process.
#[derive(Clone, Debug)]
struct Process {
    /// As it is called where it runs, once that was asked for.
    inner: Option<i32>,
    /// Its root folder, as it was when it was last asked for: a process that has ended has none, and some write a map at their end.
    root: Option<Arc<File>>,
    began: SystemTime,
    moments: Vec<Moment>,
    map: Option<PerfMap>,
    dumps: Vec<(Arc<MappedFile>, Dump)>,
    /// Modules that have been searched for dumps.
    searched: usize,
    lists: Lists,
    /// Its memory, once it has made code.
    memory: Option<Arc<File>>,
    /// What its parent knew when it began as a copy of that.
    inherited: Option<Arc<Process>>,
    /// How often a perf map has been looked for in vain.
    tried: u32,
}

/// What is known of all processes; shared by whoever asks for names.
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Mutex<All>>);

#[derive(Debug, Default)]
struct All {
    last: u32,
    processes: HashMap<Pid, Process>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new image has been started in a process.
    pub fn began(&self, pid: Pid) {
        self.lock().processes.insert(pid, Process::new(None));
    }

    /// `child` begins as a copy of `parent`.
    pub fn forked(&self, parent: Pid, child: Pid) {
        let mut all = self.lock();
        let known = all.processes.get(&parent).filter(|p| !p.moments.is_empty()).cloned();
        all.processes.insert(child, Process::new(known.map(Arc::new)));
    }

    /// Nothing will be asked about a process any more.
    pub fn forget(&self, pid: Pid) {
        self.lock().processes.remove(&pid);
    }

    /// Code that the process has made is about to be translated; what has been in it so far is in `modules`.
    pub fn moment(&self, pid: Pid, modules: &[Module]) -> u32 {
        let mut all = self.lock();
        let number = all.last.saturating_add(1);
        let Some(p) = all.processes.get_mut(&pid) else { return 0 };
        let same = p.look(pid, modules, number);
        if !same {
            all.last = number;
        }
        all.last
    }

    /// Reads what has been written since.
    pub fn read_on(&self, pid: Pid) {
        if let Some(p) = self.lock().processes.get_mut(&pid) {
            p.read_on(pid);
        }
    }

    /// How many pieces of code have been made known that took the place of others.
    #[must_use]
    pub fn replaced(&self, pid: Pid) -> u32 {
        self.lock().processes.get(&pid).map_or(0, Process::replaced)
    }

    /// Whether there is any name.
    #[must_use]
    pub fn has_names(&self, pid: Pid) -> bool {
        self.lock().processes.get(&pid).is_some_and(Process::has_names)
    }

    /// What lay at an address at a moment ([`u32::MAX`]: at the last one), as far as has been read.
    #[must_use]
    pub fn find(&self, pid: Pid, addr: GuestAddr, moment: u32) -> Option<Found> {
        self.lock().processes.get(&pid)?.find(addr, moment)
    }
}

impl Process {
    /// One that has made no code. Most never do, so nothing is opened.
    fn new(inherited: Option<Arc<Process>>) -> Self {
        Self {
            inner: None,
            root: None,
            // Times of files are those of the last tick.
            began: SystemTime::now() - Duration::from_millis(20),
            moments: Vec::new(),
            map: None,
            dumps: Vec::new(),
            searched: 0,
            lists: Lists::default(),
            memory: None,
            inherited,
            tried: 0,
        }
    }

    /// What is there at a moment; says if that is as at the last one.
    fn look(&mut self, pid: Pid, modules: &[Module], number: u32) -> bool {
        self.find_dumps(modules);
        if self.memory.is_none() {
            self.memory = File::open(shown(pid).join("mem")).ok().map(Arc::new);
        }
        if let Some(memory) = &self.memory {
            self.lists.look(memory, modules, number.into());
        }
        self.find_map(pid);
        let length = self.map.as_mut().map_or(0, PerfMap::length);
        let same = self.moments.last().is_some_and(|last| last.length == length);
        if same && self.dumps.is_empty() && !self.lists.has_seen(number.into()) {
            return true;
        }
        let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| Duration::from(t).as_nanos() as u64);
        self.moments.push(Moment { number, time, length });
        false
    }

    fn find_dumps(&mut self, modules: &[Module]) {
        for module in modules.get(self.searched..).unwrap_or_default() {
            let (Some(path), Some(mapped)) = (&module.path, &module.file) else { continue };
            let is_dump = |name: &str| name.strip_prefix("jit-").is_some_and(|n| n.ends_with(".dump"));
            if !path.file_name().and_then(|name| name.to_str()).is_some_and(is_dump)
                || self.dumps.iter().any(|(known, _)| known.is_same_file(mapped))
            {
                continue;
            }
            if let Ok((file, _)) = mapped.file()
                && let Ok(file) = file.try_clone()
            {
                self.dumps.push((mapped.clone(), Dump::new(file)));
            }
        }
        self.searched = modules.len();
    }

    /// Looks for the perf map, as long as there is none.
    fn find_map(&mut self, pid: Pid) {
        /// Where there is none so far, it is looked for less often.
        const OFTEN: u32 = 64;
        if self.map.as_ref().is_some_and(PerfMap::is_named) {
            return;
        }
        self.tried = self.tried.wrapping_add(1);
        if self.map.is_none() && self.tried > OFTEN && !self.tried.is_multiple_of(16) {
            return;
        }
        let inner = *self.inner.get_or_insert_with(|| inner(pid).unwrap_or(pid.0));
        if let Ok(root) = File::open(shown(pid).join("root")) {
            self.root = Some(Arc::new(root));
        }
        let Some(root) = &self.root else { return };
        if let Some(file) = open_map(root, inner, self.began) {
            self.map = Some(PerfMap::new(file));
        }
    }

    fn read_on(&mut self, pid: Pid) {
        if self.map.is_none() && !self.moments.is_empty() {
            self.tried = 0;
            self.find_map(pid);
        }
        if let Some(map) = &mut self.map {
            map.read_on();
        }
        self.dumps.iter_mut().for_each(|(_, dump)| dump.read_on());
        if let Some(parent) = &mut self.inherited {
            // What it wrote before the fork may have been in a buffer.
            let parent = Arc::make_mut(parent);
            if let Some(map) = &mut parent.map {
                map.read_on();
            }
            parent.dumps.iter_mut().for_each(|(_, dump)| dump.read_on());
        }
    }

    fn has_names(&self) -> bool {
        self.map.as_ref().is_some_and(|map| !map.is_empty())
            || !self.dumps.is_empty()
            || !self.lists.is_empty()
            || self.inherited.as_ref().is_some_and(|parent| parent.has_names())
    }

    fn replaced(&self) -> u32 {
        let map = self.map.as_ref().map_or(0, PerfMap::replaced);
        let dumps = self.dumps.iter().map(|(_, dump)| dump.replaced());
        let inherited = self.inherited.as_ref().map_or(0, |parent| parent.replaced());
        dumps.chain([map, self.lists.replaced(), inherited]).fold(0, u32::wrapping_add)
    }

    fn find(&self, addr: GuestAddr, number: u32) -> Option<Found> {
        let behind = self.moments.partition_point(|m| m.number <= number);
        let own = behind.checked_sub(1).map(|at| self.moments[at]).and_then(|moment| {
            let dumped = self.dumps.iter().filter_map(|(_, dump)| dump.at(addr, moment.time)).max_by_key(|s| s.when);
            let listed = || self.lists.at(addr, moment.number.into());
            let mapped = || self.map.as_ref()?.at(addr, moment.length);
            dumped.or_else(listed).or_else(mapped).map(|span| span.at(addr))
        });
        own.or_else(|| self.inherited.as_ref()?.find(addr, number))
    }
}

/// Where `/proc` shows the memory and the folders of a process: not by its first thread if that has ended, while others go on.
fn shown(pid: Pid) -> PathBuf {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let has = |path: &PathBuf| fs::read_link(path.join("root")).is_ok();
    if has(&process) {
        return process;
    }
    let mut tasks = fs::read_dir(process.join("task")).into_iter().flatten().flatten().map(|task| task.path());
    tasks.find(has).unwrap_or(process)
}

/// What a process is called where it runs.
fn inner(pid: Pid) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}

/// Opens the perf map of a process whose root folder is `root`, if there is one that it can have written: a regular file, found as the
/// process finds it.
fn open_map(root: &File, inner: i32, began: SystemTime) -> Option<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let name = format!("tmp/perf-{inner}.map");
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let opened = match openat2(root.as_fd(), name.as_str(), how) {
        Err(nix::errno::Errno::ENOSYS | nix::errno::Errno::EPERM) => {
            // Without the means to follow links as the process does, none is followed.
            openat(root.as_fd(), name.as_str(), flags | OFlag::O_NOFOLLOW, Mode::empty())
        }
        other => other,
    };
    let file = File::from(opened.ok()?);
    let about = file.metadata().ok()?;
    (about.is_file() && about.modified().is_ok_and(|at| at >= began)).then_some(file)
}

#[cfg(test)]
mod tests;
