//! How far the processes are, for a driver that shows it while they run, and what they are about to write meanwhile.
//!
//! Nothing is stopped for it: counters are read as they stand, so that a sum may lie between two states of a thread. System calls
//! that write stop only while the driver has something to lose by them, and as a rule one of them ends that.
//!
//! Invariant: outside of that time no call stops for its sake; a copy of a process may have inherited the stops, and gives them up
//! with the first one.

use grind_code_cache::{CallStop, CodeCache};
use grind_session::{ProcessTally, Tally};
use nix::libc;

use super::Dispatcher;

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
                let instructions = self.sum(p).executed(&p.code_cache.borrow().trans);
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

    /// Thread `tid` stands before system call `nr`.
    pub(super) fn before_output(&mut self, tid: i32, nr: i64, args: [u64; 6]) {
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
