//! What would be written to a terminal that shows something else: it is kept, and written once the terminal is free again.
//!
//! Standard descriptors that are the terminal become another one, a pseudo-terminal, before there is a program, which inherits
//! that: it still writes to a terminal, and in the order in which it does. Input comes from nowhere. What is read there is kept in a file
//! without a name. Invariants: nothing that was written is lost, unless that file cannot be written to, which is told; whatever
//! happens, the descriptors are what they were when this is gone.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nix::pty::openpty;
use nix::sys::termios::{OutputFlags, tcgetattr};
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, getpgrp, tcgetpgrp};

use crate::{os, resolve};

/// `/dev/tty`: whatever terminal the process has.
const OWN_TERMINAL: u64 = 5 << 8;

/// Milliseconds after which it is looked whether what is kept is to be written.
const LOOK: i32 = 50;

/// Why a terminal cannot be used.
#[derive(Debug)]
pub enum NoTerminal {
    /// Standard error is none.
    None,
    /// It belongs to another job, or is not this process's.
    Another,
    /// There can be no pseudo-terminal.
    Io(io::Error),
}

impl fmt::Display for NoTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(
                f,
                "--live shows the run on a terminal, and standard error is none: without --live, `cg_control top` shows it from \
                 another terminal"
            ),
            Self::Another => write!(
                f,
                "--live needs the terminal for itself, and it belongs to another job: start grind in the foreground, or look by \
                 `cg_control top` from another terminal"
            ),
            Self::Io(error) => write!(f, "--live: there can be no pseudo-terminal: {}", resolve::reason(error)),
        }
    }
}

impl std::error::Error for NoTerminal {}

impl From<io::Error> for NoTerminal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What the thread that keeps is told.
#[derive(Debug, Default)]
struct Wishes {
    /// The terminal is free.
    pass: AtomicBool,
    /// Nobody that is waited for writes any more.
    over: AtomicBool,
}

/// Says that the terminal is free.
#[derive(Clone, Debug)]
pub struct Release(Arc<Wishes>);

impl Release {
    /// From now on everything is written to the terminal, what was kept first.
    pub fn release(&self) {
        self.0.pass.store(true, Ordering::SeqCst);
    }
}

/// See the module's description.
#[derive(Debug)]
pub struct Held {
    terminal: File,
    /// Whose standard descriptors lead elsewhere; none in the process that has given this up.
    replaced: Vec<i32>,
    wishes: Arc<Wishes>,
    master: Option<File>,
    thread: Option<JoinHandle<()>>,
}

/// Whether a descriptor is this terminal.
fn is(fd: impl AsFd, device: u64) -> bool {
    let metadata = fd.as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    metadata.is_ok_and(|m| m.file_type().is_char_device() && [device, OWN_TERMINAL].contains(&m.rdev()))
}

impl Held {
    /// Keeps what is written to standard error's terminal from now on. There may be no other thread yet, and none before
    /// [`Held::keep`].
    ///
    /// # Errors
    /// There is no terminal, or it is not ours to take.
    pub fn begin() -> Result<Self, NoTerminal> {
        let terminal = os::duplicate(2).map_err(|_| NoTerminal::None)?;
        let mut modes = tcgetattr(&terminal).map_err(|_| NoTerminal::None)?;
        if !is_ours(&terminal) {
            return Err(NoTerminal::Another);
        }
        // Bytes stay as they are: the terminal will do with them what it does.
        modes.output_flags.remove(OutputFlags::OPOST);
        let size = os::size(&terminal);
        let pair = openpty(size.as_ref(), &modes).map_err(io::Error::from)?;
        let master = os::duplicate(pair.master.as_raw_fd())?;
        drop(pair.master);
        let slave = File::from(pair.slave);
        let device = terminal.metadata()?.rdev();
        let ours = [is(io::stdin(), device), is(io::stdout(), device), true];
        let nothing = File::open("/dev/null")?;
        let wishes = Arc::default();
        let mut held = Self { terminal, replaced: Vec::new(), wishes, master: Some(master), thread: None };
        for (fd, _) in (0..).zip(ours).filter(|(_, ours)| *ours) {
            place(fd, if fd == 0 { &nothing } else { &slave })?;
            held.replaced.push(fd);
        }
        Ok(held)
    }

    /// Whether the terminal still belongs to this job.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        is_ours(&self.terminal)
    }

    /// The terminal itself.
    ///
    /// # Errors
    /// There can be no more descriptors.
    pub fn terminal(&self) -> io::Result<File> {
        os::duplicate(self.terminal.as_raw_fd())
    }

    /// Begins to read what is written, on a thread.
    ///
    /// # Errors
    /// There can be no more threads: then it passes on nothing before the end.
    pub fn keep(&mut self) -> io::Result<()> {
        let (Some(master), terminal) = (&self.master, self.terminal()?) else { return Ok(()) };
        let master = os::duplicate(master.as_raw_fd())?;
        let wishes = Arc::clone(&self.wishes);
        let keep = move || keep_on(&master, &terminal, &wishes);
        self.thread = Some(thread::Builder::new().name("output".to_owned()).spawn(keep)?);
        Ok(())
    }

    /// Who may say that the terminal is free.
    #[must_use]
    pub fn release(&self) -> Release {
        Release(Arc::clone(&self.wishes))
    }

    /// This process is another one than that which reads: its descriptors stay as they are.
    pub fn give_up(&mut self) {
        self.replaced.clear();
        self.master = None;
    }
}

fn is_ours(terminal: &File) -> bool {
    tcgetpgrp(terminal) == Ok(getpgrp())
}

/// Makes standard descriptor `fd` another name of `file`.
fn place(fd: i32, file: &File) -> io::Result<()> {
    match fd {
        0 => dup2_stdin(file)?,
        1 => dup2_stdout(file)?,
        _ => dup2_stderr(file)?,
    }
    Ok(())
}

impl Drop for Held {
    fn drop(&mut self) {
        for fd in self.replaced.drain(..) {
            // Descriptors that are open can be duplicated.
            let _ = place(fd, &self.terminal);
        }
        self.wishes.over.store(true, Ordering::SeqCst);
        self.release().release();
        match (self.thread.take(), self.master.take()) {
            (Some(thread), _) => {
                let _ = thread.join();
            }
            (None, Some(master)) => keep_on(&master, &self.terminal, &self.wishes),
            (None, None) => {}
        }
    }
}

/// Reads what comes until nobody can write any more, or nobody is waited for and there is nothing left.
fn keep_on(master: &File, terminal: &File, wishes: &Wishes) {
    let mut kept = Kept::default();
    let mut bytes = vec![0; 1 << 16];
    loop {
        // In this order: what was written before all was over is read.
        let over = wishes.over.load(Ordering::SeqCst);
        if wishes.pass.load(Ordering::SeqCst) {
            kept.write_to(terminal);
        }
        if !os::readable_within(master, if over { 0 } else { LOOK }) {
            if over {
                return;
            }
            continue;
        }
        let mut from = master;
        let read = match from.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Nobody has it open any more.
            Ok(0) | Err(_) => return kept.write_to(terminal),
            Ok(read) => &bytes[..read],
        };
        if wishes.pass.load(Ordering::SeqCst) {
            kept.write_to(terminal);
            // A terminal that is gone shows nothing.
            let _ = (&mut &*terminal).write_all(read);
        } else {
            kept.add(read);
        }
    }
}

/// What is kept.
#[derive(Debug, Default)]
struct Kept {
    file: Option<File>,
    /// What could not be kept, in bytes, and why.
    lost: Option<(u64, io::Error)>,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let written = match (&mut self.lost, &mut self.file) {
            // What comes later would not be in its place.
            (Some((lost, _)), _) => {
                *lost += bytes.len() as u64;
                return;
            }
            (None, Some(file)) => file.write_all(bytes),
            (None, none) => tempfile::tempfile().and_then(|file| none.insert(file).write_all(bytes)),
        };
        if let Err(error) = written {
            self.lost = Some((bytes.len() as u64, error));
        }
    }

    fn write_to(&mut self, mut terminal: &File) {
        if let Some(mut file) = self.file.take() {
            // A terminal that is gone shows nothing.
            let _ = file.seek(SeekFrom::Start(0)).and_then(|_| io::copy(&mut file, &mut terminal));
        }
        if let Some((bytes, error)) = self.lost.take() {
            let reason = resolve::reason(&error);
            let _ = writeln!(
                terminal,
                "grind: {bytes} bytes of output could not be kept while the run was shown: {reason}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written while it is kept comes in the end, in its order, before what comes then.
    #[test]
    fn what_is_kept_comes_before_what_comes_later() {
        let pair = openpty(None, None).unwrap();
        let mut modes = tcgetattr(&pair.slave).unwrap();
        modes.output_flags.remove(OutputFlags::OPOST);
        nix::sys::termios::tcsetattr(&pair.slave, nix::sys::termios::SetArg::TCSANOW, &modes).unwrap();
        let (master, mut slave) = (File::from(pair.master), File::from(pair.slave));
        let mut screen = tempfile::tempfile().unwrap();
        let shown = |screen: &mut File| {
            let mut text = String::new();
            screen.seek(SeekFrom::Start(0)).unwrap();
            screen.read_to_string(&mut text).unwrap();
            screen.seek(SeekFrom::End(0)).unwrap();
            text
        };
        let wishes = Arc::new(Wishes::default());
        let thread = {
            let (wishes, screen) = (wishes.clone(), screen.try_clone().unwrap());
            thread::spawn(move || keep_on(&master, &screen, &wishes))
        };
        let many = "one line\n".repeat(20_000);
        slave.write_all(many.as_bytes()).unwrap();
        assert_eq!(shown(&mut screen), "");
        Release(wishes.clone()).release();
        slave.write_all(b"last").unwrap();
        // Somebody who is not waited for has it open still.
        wishes.over.store(true, Ordering::SeqCst);
        thread.join().unwrap();
        assert!(shown(&mut screen) == many + "last");
    }
}
