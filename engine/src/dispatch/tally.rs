//! How far the processes are, for a driver that shows it while they run, or is asked; and what they are about to write meanwhile.
//!
//! Nothing is stopped for that, unless it is asked for what is true of one moment ([`super::ask`]): counters are read as they stand, so that a sum may lie between two states of a thread. System calls
//! that write stop only while the driver has something to lose by them, and as a rule one of them ends that.
//!
//! Invariant: outside of that time no call stops for its sake; a copy of a process may have inherited the stops, and gives them up
//! with the first one.

use grind_code_cache::{CallStop, CodeCache};
use grind_guest::contexts::Books;
use grind_guest::counts;
use grind_guest::process::Process;
use grind_session::{ContextCounts, Counts, ProcessReport, ProcessTally, Tally, ThreadTally};
use grind_types::{Pid, Query, Tid};
use nix::libc;

use super::life::context_counts;
use super::{Dispatcher, contexts};

/// System calls that write, or copy, to a descriptor which may be a terminal.
const OUTPUT: [i64; 4] = [libc::SYS_write, libc::SYS_writev, libc::SYS_sendfile, libc::SYS_splice];

impl Dispatcher<'_> {
    /// Tells the driver how far the processes are, if it wants to know.
    pub(super) fn tell_tally(&mut self) {
        if !self.session.wants_tally() {
            return;
        }
        let running = self.processes.values().filter(|p| !p.threads.is_empty());
        let mut processes: Vec<ProcessTally> = running
            .map(|p| {
                let counted = self.sum(p).executed(&p.code_cache.borrow().trans);
                let instructions = p.collected.wrapping_add(counted);
                ProcessTally { pid: p.pid, instructions, threads: p.threads.len() }
            })
            .collect();
        processes.sort_unstable_by_key(|p| p.pid);
        // Before anything is shown that could be spoilt.
        self.watch_output(true);
        let watched = self.session.tally(&Tally { processes });
        self.watch_output(watched);
    }

    fn watch_output(&mut self, on: bool) {
        self.watched = on;
        self.processes.values().for_each(|p| watch(&p.code_cache.borrow(), on));
    }

    /// Tells the driver what process `pid`, which stands still, has executed: `ask` is asked by thread `tid`, or from outside (`None`).
    pub(super) fn tell_asked(&mut self, pid: Pid, tid: Option<Tid>, ask: &Query) {
        let Some(p) = self.processes.get(&pid) else { return };
        let (books, threads) = self.sum_by_thread(p);
        let code_cache = p.code_cache.borrow();
        let counts = books.sum().counts(&code_cache.trans);
        let contexts = context_counts(p, &books, &code_cache.trans);
        self.session.asked(&running(p, &code_cache, &counts, &contexts, &threads), tid, ask);
    }

    /// Has the session look at what process `pid` has executed, while that goes on.
    pub(super) fn peek(&mut self, pid: Pid) {
        // Who records calls and simulates nothing has found nothing that counters do not say.
        let finds = self.settings.trace.calls.is_none() || self.settings.trace.simulates();
        if let Some(trace_channel) = self.trace_channel.as_ref().filter(|_| finds && self.processes.contains_key(&pid))
        {
            trace_channel.asked(pid, None, &Query::Peek);
        }
        if let Some(p) = self.processes.get(&pid) {
            let (books, threads) = self.sum_by_thread(p);
            let code_cache = p.code_cache.borrow();
            let counts = books.sum().counts(&code_cache.trans);
            self.session.peeked(&running(p, &code_cache, &counts, &[], &threads));
        }
    }

    /// How far the threads of a process are.
    pub(super) fn thread_tallies(&self, p: &Process) -> Vec<ThreadTally> {
        self.add_threads(p, &mut Books::default())
    }

    /// All counts of a process so far, and how far its threads are.
    fn sum_by_thread(&self, p: &Process) -> (Books, Vec<ThreadTally>) {
        let mut books = p.books.clone();
        let threads = self.add_threads(p, &mut books);
        (books, threads)
    }

    /// Adds what the threads of a process have counted to `books`, and tells how far they are. Counters are read once: many threads have
    /// many of them.
    fn add_threads(&self, p: &Process, books: &mut Books) -> Vec<ThreadTally> {
        let code_cache = p.code_cache.borrow();
        let (weights, counters) = (counts::weights(&code_cache.trans), code_cache.trans.counters());
        let of = |&tid: &Tid| {
            let th = self.threads.get(&tid).filter(|th| !th.folded)?;
            let mut instructions = th.collected;
            let weigh = |counter: u32, n: u64| {
                let weight = weights.get(counter as usize).copied().unwrap_or(0);
                instructions = instructions.wrapping_add(weight.wrapping_mul(n));
            };
            contexts::add_thread_and(th, p, counters, self.uncollected.get(&tid), books, weigh);
            Some(ThreadTally { tid, instructions })
        };
        p.threads.iter().filter_map(of).collect()
    }

    /// Thread `tid` stands before system call `nr`.
    pub(super) fn before_output(&mut self, tid: Tid, nr: i64, args: [u64; 6]) {
        if !OUTPUT.contains(&nr) {
            return;
        }
        let Some(pid) = self.process_of(tid).map(|p| p.pid) else { return };
        let to = if nr == libc::SYS_splice { args[2] } else { args[0] };
        if self.watched && self.session.about_to_write(pid, to as i32) {
            return;
        }
        self.watch_output(false);
    }
}

fn watch(code_cache: &CodeCache, on: bool) {
    for nr in OUTPUT {
        code_cache.stop_before(nr, CallStop::Watched, on);
    }
}

/// What is reported of a process that goes on.
fn running<'a>(
    p: &Process,
    code_cache: &'a CodeCache,
    counts: &'a Counts<'a>,
    contexts: &'a [ContextCounts<'a>],
    threads: &'a [ThreadTally],
) -> ProcessReport<'a> {
    ProcessReport {
        pid: p.pid,
        parent: p.parent,
        exe: p.exe.clone(),
        args: p.args.clone(),
        exit: None,
        modules: &code_cache.modules,
        counts,
        contexts,
        counting: p.counting,
        threads,
    }
}
