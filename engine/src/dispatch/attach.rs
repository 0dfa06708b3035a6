//! Joining a process that runs already. All of its threads are stopped wherever they are: in user code, in system calls, in
//! handlers. A system call that waits is made once more, as after any stop, so that each stands at an instruction of its own. Then the
//! image is prepared, and the threads go on as if they had been made to leave translated code.
//!
//! Invariants: nothing of the process is changed before it is known that it can be followed, and until then it goes on unharmed if
//! the engine gives up or dies; no byte of its code is written to. Counts begin at zero.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use grind_code_cache::CodeCache;
use grind_guest::contexts::ThreadContexts;
use grind_guest::image::{self, Remote};
use grind_guest::process::State;
use grind_guest::slots::SlotPool;
use grind_ptrace::kinds::{fault_pending, stops_processes};
use grind_ptrace::maps::Region;
use grind_ptrace::restart::makes_again;
use grind_ptrace::status::Status;
use grind_ptrace::{self as tracee, Gadget, How, Memory, Stop, Stopped, Wait, is_sent};
use grind_session::AtStart;
use grind_types::addr::GuestAddr;
use grind_types::subject;
use grind_types::{EngineError, Pid, Tid};
use nix::libc;

use super::life::command_line;
use super::objects;
use super::{Dispatcher, LOOK};

/// Bytes of `syscall`, and of `int 0x80`.
const CALL_LEN: u64 = 2;

/// As long as a thread may take to stop. One that waits for a child of vfork's, or for a disk, cannot before that is over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Threads that stand still.
type Threads = BTreeMap<Tid, Stopped>;

impl Dispatcher<'_> {
    /// Follows process `pid` from here on.
    pub(super) fn attach(&mut self, pid: Pid) -> Result<(), EngineError> {
        let refuse = |why| EngineError::Attach { pid, why };
        attachable(pid).map_err(refuse)?;
        let memory = Memory::open(Tid::main_of(pid)).map_err(|e| refuse(forbidden(&e)))?;
        let mut threads = BTreeMap::new();
        let ready = gather(pid, &mut threads).map_err(refuse).and_then(|job_controlled| {
            log::debug!(target: subject::PROCESS, "process {pid}: {} threads have been stopped", threads.len());
            Ok((prepare(pid, &mut threads, &memory)?, job_controlled))
        });
        let (prepared, job_controlled) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                for t in threads.into_values() {
                    let _ = t.leave();
                }
                return Err(error);
            }
        };
        self.traps_of_attached(pid, threads.values());
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let counting = self.settings.count_at_start == AtStart::Counting;
        // (0: it is outside of the namespace.)
        let parent = Status::of(Tid::main_of(pid)).id("PPid").filter(|&parent| parent > 0).map(Pid);
        self.add_process((pid, parent), counting, memory, prepared, (exe, command_line(pid)));
        if let Some(p) = self.processes.get_mut(&pid) {
            p.joined = true;
        }
        for (&tid, t) in &threads {
            let guest_gs = t.regs().map_or(0, |regs| regs.gs_base);
            self.add_thread(pid, tid, State::Guest, ThreadContexts::default(), guest_gs);
        }
        self.tell_image(pid);
        let code_cache = self.processes.get(&pid).map(|p| p.code_cache.clone());
        if let (Some(code_cache), Some(&tid)) = (code_cache, threads.keys().next()) {
            self.learn_map(tid, &code_cache);
        }
        for (tid, t) in threads {
            self.begin_attached(pid, tid, t, job_controlled);
        }
        // A signal of the driver's that comes just before the engine begins to wait must not be missed.
        self.look_every(self.settings.look_every.unwrap_or(LOOK));
        Ok(())
    }

    /// `t`, which stands at an instruction of its own, goes on in translated code.
    fn begin_attached(&mut self, pid: Pid, tid: Tid, t: Stopped, job_controlled: bool) {
        if !tid.leads(pid) {
            self.tell_born(pid, tid);
        }
        self.tell_recording(pid, tid);
        if let (true, Some(trace_channel)) = (self.settings.trace.objects, &self.trace_channel)
            && let Some(stack) = objects::stack(&t)
        {
            trace_channel.stack(pid, tid, stack);
        }
        let Ok(mut regs) = t.regs() else { return };
        regs.gs_base = self.gs(tid);
        if t.set_regs(&regs).is_err() {
            return;
        }
        let Some(t) = self.ready_trace(t) else { return };
        if self.process_of(tid).is_some_and(|p| p.counting) {
            self.tell_stack(&t);
        }
        self.push_stack_whole(tid);
        if job_controlled {
            // It stops again once it is ready.
            tracee::interrupt(tid);
        }
        self.enter(t, GuestAddr(regs.rip));
    }
}

/// Makes the image of `pid`, whose threads stand still, ready, and takes them out of the kernel. Whatever fails before the last of
/// them is followed leaves them as they were.
fn prepare(pid: Pid, threads: &mut Threads, memory: &Memory) -> Result<(CodeCache, SlotPool), EngineError> {
    let refuse = |why: &str| EngineError::Attach { pid, why: why.to_owned() };
    let gone = || refuse("it has ended");
    let regions = memory.regions().map_err(|source| EngineError::Os { what: "reading /proc/PID/maps", source })?;
    let gadget =
        syscall_in(memory, &regions).ok_or_else(|| refuse("nothing that it has mapped makes a system call"))?;
    if Status::of(Tid::main_of(pid)).is_confined() {
        if !threads.values().all(Stopped::may_suspend_filters) {
            return Err(refuse(
                "it filters its system calls (seccomp), which only root may suspend for the engine's own",
            ));
        }
        tracee::expect_filters();
    }
    if threads.values().any(|t| has_sequences(t, memory)) {
        return Err(refuse(
            "it uses restartable sequences (rseq), and the kernel would not restart their translations",
        ));
    }
    // (Who is gone by now has nothing to be taken out.)
    threads.retain(|_, t| leave_kernel(t).is_ok());
    let (_, first) = threads.pop_first().ok_or_else(gone)?;
    let mut remote = Remote { thread: Some(first), gadget, memory };
    let prepared = image::prepare_running(&mut remote);
    if let Ok((code_cache, pool)) = &prepared
        && pool.room() <= threads.len()
    {
        image::clear(&mut remote, code_cache, pool);
        threads.extend(remote.thread.take().map(|t| (t.tid(), t)));
        return Err(refuse("it has too many threads"));
    }
    threads.extend(remote.thread.take().map(|t| (t.tid(), t)));
    let prepared = prepared?;
    threads.retain(|_, t| t.follow().is_ok());
    if threads.is_empty() { Err(gone()) } else { Ok(prepared) }
}

/// Why a process cannot be followed, as far as that can be seen from outside.
fn attachable(pid: Pid) -> Result<(), String> {
    let status = Status::of(Tid::main_of(pid));
    let Some(group) = status.id("Tgid") else { return Err("there is no such process".into()) };
    if group != pid.0 {
        return Err(format!("it is a thread of process {group} (--pid={group})"));
    }
    if pid == Pid::own() || pid == Pid(nix::unistd::getppid().as_raw()) {
        return Err("that is this very profiler".into());
    }
    if status.id("Kthread") == Some(1) {
        return Err("it is a thread of the kernel's".into());
    }
    if status.is_zombie() {
        let others = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        if others.count() > 1 {
            // The kernel shows the end of the process by its first thread alone, which can be traced no more.
            return Err("its first thread has ended, and without that its end could not be seen".into());
        }
        return Err("it has ended, and its parent has not asked for its status yet".into());
    }
    if let Some(tracer) = status.id("TracerPid").filter(|&tracer| tracer != 0) {
        let name = std::fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
        return Err(format!("process {tracer} ({}) traces it already, and there can be one tracer only", name.trim()));
    }
    match std::fs::read(format!("/proc/{pid}/auxv")) {
        Err(e) => Err(forbidden(&e)),
        Ok(auxv) if auxv.is_empty() => Err("it is a thread of the kernel's".into()),
        Ok(_) => Ok(()),
    }
}

fn forbidden(e: &std::io::Error) -> String {
    format!(
        "{e}: it must be a process of the same user, and the kernel must allow it (kernel.yama.ptrace_scope is 0, or \
         grind has CAP_SYS_PTRACE)"
    )
}

/// Stops all threads of `pid`. Whether job control had stopped it.
fn gather(pid: Pid, threads: &mut Threads) -> Result<bool, String> {
    let mut job_controlled = false;
    let end = Instant::now() + PATIENCE;
    // Those that have not been stopped yet go on creating others.
    loop {
        let known = threads.len();
        for tid in tids(pid).into_iter().filter(|tid| !threads.contains_key(tid)).collect::<Vec<_>>() {
            match tracee::join(tid) {
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(e) => return Err(forbidden(&e)),
            }
            if let Some((t, signal)) = until_stopped(tid, end)? {
                job_controlled |= stops_processes(signal);
                threads.insert(tid, t);
            }
        }
        if threads.len() == known {
            break;
        }
    }
    let Some(t) = threads.values().next() else { return Err("it has ended".into()) };
    const LONG_MODE: u64 = 0x33;
    match t.regs() {
        Ok(regs) if regs.cs == LONG_MODE => Ok(job_controlled),
        Ok(_) => Err("it is a 32-bit program; grind profiles 64-bit programs for x86-64".into()),
        Err(_) => Err("it has ended".into()),
    }
}

fn tids(pid: Pid) -> Vec<Tid> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Tid)).collect()
}

/// Waits until a thread that has been told to stop does; with the signal of that stop. `None`: it has ended instead.
fn until_stopped(tid: Tid, end: Instant) -> Result<Option<(Stopped, i32)>, String> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match tracee::wait_within(tid, left) {
            // An instruction of its own has faulted, and it is to hear of that as if it were alone.
            Some(Wait::Stopped(t, Stop::Event { event: libc::PTRACE_EVENT_STOP, .. })) if fault_pending(tid) => {
                let _ = t.finish(How::Continue);
            }
            Some(Wait::Stopped(t, Stop::Event { event: libc::PTRACE_EVENT_STOP, signal })) => {
                return Ok(Some((t, signal)));
            }
            Some(Wait::Stopped(t, Stop::Signal(signal))) => {
                let hand_on = match t.siginfo() {
                    // It gets it when it goes on by itself. (To be stopped is for all threads, and comes first.)
                    Ok(info) if is_sent(&info) && !stops_processes(signal) => {
                        tracee::keep(tid, info);
                        0
                    }
                    _ => signal,
                };
                let _ = t.resume_midway(How::Continue, hand_on);
            }
            Some(Wait::Stopped(t, _)) => {
                let _ = t.resume_midway(How::Continue, 0);
            }
            Some(Wait::Exited { .. } | Wait::Killed { .. } | Wait::Nothing) => return Ok(None),
            Some(Wait::Interrupted) => {}
            None => {
                let seconds = PATIENCE.as_secs();
                return Err(format!(
                    "thread {tid} has not stopped within {seconds} s: it waits in the kernel for something that cannot be \
                     interrupted, as for a child of vfork"
                ));
            }
        }
    }
}

/// A `syscall` somewhere in code that is mapped: of the vDSO, if there is one.
pub(super) fn syscall_in(memory: &Memory, regions: &[Region]) -> Option<Gadget> {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    /// As much as is looked at of each mapping.
    const MOST: u64 = 16 << 20;
    let find = |r: &Region| {
        let mut code = vec![0; (r.end - r.start).min(MOST) as usize];
        let n = memory.read(r.start, &mut code);
        code[..n].windows(2).position(|w| w == SYSCALL).map(|at| Gadget::borrowed(r.start + at as u64))
    };
    let vdso = |r: &&Region| r.name == b"[vdso]";
    let code = |r: &&Region| r.exec && !r.name.starts_with(b"[v");
    regions.iter().filter(vdso).chain(regions.iter().filter(code)).find_map(find)
}

/// Makes the registers of a thread those with which its own code goes on: in no system call.
fn leave_kernel(t: &Stopped) -> tracee::Result<()> {
    let mut regs = t.regs()?;
    if let Some(nr) = makes_again(&regs) {
        regs.rip -= CALL_LEN;
        regs.rax = nr;
    }
    regs.orig_rax = u64::MAX;
    t.set_regs(&regs)
}

/// Whether a thread has had a restartable sequence run (`rseq_cs` of the kernel's `struct rseq`). The C library, which tells the kernel
/// of a place for them, has none.
fn has_sequences(t: &Stopped, memory: &Memory) -> bool {
    const SEQUENCE: u64 = 8;
    t.rseq().and_then(|at| memory.word(at + SEQUENCE)).is_some_and(|at| at != 0)
}
