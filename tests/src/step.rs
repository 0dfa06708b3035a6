//! The second oracle: runs a program natively, one instruction at a time, and counts by address.
//!
//! It knows nothing of translation, so it is right where the reference is not (blocks left by a fault, REP LODS). It is for
//! single-threaded programs of some hundred thousand instructions: each costs two context switches. An instruction that
//! faults is not counted (`int3` and `syscall` do not fault); a REP-prefixed one counts one for each iteration and one for the
//! test that ends it, as grind does. The program must not block SIGTRAP: a step then resets its handler.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Sees every step of a program.
pub trait Visitor {
    /// The thread is about to execute the instruction at `regs.rip`.
    ///
    /// # Errors
    /// What the visitor cannot go on with.
    fn before(&mut self, pid: Pid, regs: &libc::user_regs_struct) -> Result<()> {
        let _ = (pid, regs);
        Ok(())
    }

    /// It did, which counts `executions`; no registers if it has ended.
    ///
    /// # Errors
    /// What the visitor cannot go on with.
    fn executed(
        &mut self,
        before: &libc::user_regs_struct,
        after: Option<&libc::user_regs_struct>,
        executions: u64,
    ) -> Result<()>;
}

#[derive(Default)]
struct Counter(BTreeMap<u64, u64>);

impl Visitor for Counter {
    fn executed(
        &mut self,
        before: &libc::user_regs_struct,
        _after: Option<&libc::user_regs_struct>,
        executions: u64,
    ) -> Result<()> {
        *self.0.entry(before.rip).or_default() += executions;
        ensure!(self.0.len() < 1_000_000, "too large a program to step through");
        Ok(())
    }
}

/// Counts executions by address until the program ends.
///
/// # Errors
/// If the program cannot be started or traced, or makes a process or a thread.
pub fn count(program: &Path, dir: &Path) -> Result<BTreeMap<u64, u64>> {
    let mut counter = Counter::default();
    walk(program, dir, &mut counter)?;
    Ok(counter.0)
}

/// Steps through a program until it ends.
///
/// # Errors
/// If the program cannot be started or traced, or makes a process or a thread; what the visitor cannot go on with.
pub fn walk(program: &Path, dir: &Path, visitor: &mut dyn Visitor) -> Result<()> {
    // The shell stops itself, so that it can be seized before it becomes the program: no unsafe fork is needed.
    let words = ["/bin/sh".to_owned(), "-c".into(), "kill -STOP $$; exec \"$0\"".into(), program.display().to_string()];
    let mut command: Command = crate::run::command(&words, dir);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let pid = Pid::from_raw(child.id().try_into()?);
    let walked = trace(pid, visitor);
    let _ = kill(pid, Signal::SIGKILL);
    let _ = waitpid(pid, None);
    walked.with_context(|| format!("single-stepping {}", program.display()))
}

fn trace(pid: Pid, visitor: &mut dyn Visitor) -> Result<()> {
    waitpid(pid, Some(WaitPidFlag::WUNTRACED)).context("waiting for the shell to stop")?;
    ptrace::seize(pid, Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL).context("seizing the shell")?;
    kill(pid, Signal::SIGCONT)?;
    loop {
        match waitpid(pid, Some(WaitPidFlag::__WALL))? {
            WaitStatus::PtraceEvent(_, _, event) if event == libc::PTRACE_EVENT_EXEC => break,
            WaitStatus::PtraceEvent(..) => ptrace::cont(pid, None)?,
            WaitStatus::Stopped(_, signal) => ptrace::cont(pid, signal)?,
            other => bail!("the shell did not become the program: {other:?}"),
        }
    }
    // The next step ends execve itself; count from the first instruction that the program executes.
    ptrace::step(pid, None)?;
    waitpid(pid, Some(WaitPidFlag::__WALL))?;
    let mut before = ptrace::getregs(pid)?;
    let mut inject = None;
    loop {
        visitor.before(pid, &before)?;
        ptrace::step(pid, inject)?;
        let delivered = inject.take();
        match waitpid(pid, Some(WaitPidFlag::__WALL))? {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                // The last instruction is the system call that ended the program, unless a signal did.
                if delivered.is_none() {
                    visitor.executed(&before, None, 1)?;
                }
                return Ok(());
            }
            WaitStatus::Stopped(_, signal) => {
                let after = ptrace::getregs(pid)?;
                let info = ptrace::getsiginfo(pid)?;
                // SIGTRAP with TRAP_TRACE ends a step, with TRAP_BRKPT one over a system call. With 5 it is the stop at the
                // first instruction of a handler, which no instruction led to; from the kernel (0x80) it is int3's own,
                // and int3 was executed. Any other signal was sent, or is a fault, whose instruction was not executed.
                match (signal, info.si_code) {
                    (Signal::SIGTRAP, 1 | 2) => {
                        visitor.executed(&before, Some(&after), executions(pid, &before, &after)?)?;
                    }
                    (Signal::SIGTRAP, 5) => {}
                    (Signal::SIGTRAP, 0x80) => {
                        visitor.executed(&before, Some(&after), 1)?;
                        inject = Some(signal);
                    }
                    _ => inject = Some(signal),
                }
                before = after;
            }
            WaitStatus::PtraceEvent(_, _, event) => bail!("unexpected event {event}"),
            other => bail!("unexpected stop {other:?}"),
        }
    }
}

/// What one step counts: one, and for the step that ends a REP-prefixed instruction by its count one more.
fn executions(pid: Pid, before: &libc::user_regs_struct, after: &libc::user_regs_struct) -> Result<u64> {
    let Ok(word) = ptrace::read(pid, before.rip as ptrace::AddressType) else { return Ok(1) };
    let bytes = word.to_le_bytes();
    let mut repeat = None;
    let mut narrow = false;
    for byte in bytes {
        match byte {
            0xf2 | 0xf3 => repeat = Some(byte),
            0x67 => narrow = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x66 => {}
            0xa4..=0xa7 | 0xaa..=0xaf => {
                let Some(repeat) = repeat else { return Ok(1) };
                let width = if narrow { u64::from(u32::MAX) } else { u64::MAX };
                if after.rip == before.rip || before.rcx & width == 0 || after.rcx & width != 0 {
                    return Ok(1);
                }
                // CMPS and SCAS end without a last test of the count when the comparison ends them.
                let compares = matches!(byte, 0xa6 | 0xa7 | 0xae | 0xaf);
                let equal = after.eflags & 0x40 != 0;
                return Ok(if compares && equal != (repeat == 0xf3) { 1 } else { 2 });
            }
            _ => return Ok(1),
        }
    }
    Ok(1)
}

/// Sums counts by the function symbol that contains the address, `???` where there is none.
///
/// # Errors
/// If `nm` cannot read the program.
pub fn by_function(program: &Path, counts: &BTreeMap<u64, u64>) -> Result<BTreeMap<String, u64>> {
    let listed = Command::new("nm").args(["--defined-only", "-S"]).arg(program).output().context("nm")?;
    let listed = String::from_utf8(listed.stdout)?;
    let mut symbols = Vec::new();
    for line in listed.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [start, size, "t" | "T", name] = words[..] {
            let start = u64::from_str_radix(start, 16)?;
            symbols.push((start, start + u64::from_str_radix(size, 16)?, name));
        }
    }
    let mut sums = BTreeMap::new();
    for (address, n) in counts {
        let symbol = symbols.iter().find(|(start, end, _)| (start..end).contains(&address));
        let name = match symbol.map_or("???", |s| s.2) {
            "_start" => "(below main)",
            name => name,
        };
        *sums.entry(name.to_owned()).or_default() += n;
    }
    Ok(sums)
}
