//! What is done when something has panicked that must not. The sink: the program goes on, and what the sink has gathered up to
//! then is written when it ends. The engine itself: nobody can lead the threads any more, so the program is killed, and what has
//! been counted is written. It must never lose what can still be written, nor leave a guest behind.

use grind_ptrace::{self as tracee, Wait};
use grind_session::guard::caught;
use grind_types::{EngineError, Pid, Tid};
use nix::sys::signal::{Signal, kill};
use nix::unistd;

use super::flush::Reason;
use super::{Dispatcher, How};

/// So many waits in a row without news, of a tenth of a second, and nothing is waited for any more.
const PATIENCE: u32 = 50;

impl Dispatcher<'_> {
    /// If the sink has broken, it is told what has been counted up to here, and nothing more. Calls are told from now on, to
    /// nobody: that needs no answer.
    pub(super) fn notice_broken_sink(&mut self) {
        let Some(what) = self.trace_channel.as_ref().and_then(|trace_channel| trace_channel.health().news()) else {
            return;
        };
        self.session.broke(&what, true);
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        for pid in &pids {
            self.collect_counters_all(*pid);
        }
        if let Some(trace_channel) = &self.trace_channel {
            trace_channel.health().close();
        }
        for pid in pids {
            let Some(p) = self.processes.get(&pid) else { continue };
            // Where nothing is recorded for the time being, it will be so when something is.
            if p.code_cache.borrow().trace.recorded.followed() {
                p.code_cache.borrow_mut().trans.follow.given_up = true;
                self.begin_flush(pid, Reason::Anew);
            }
        }
    }

    /// The engine has broken.
    pub(super) fn engine_broke(&mut self, what: String) {
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        let tids: Vec<Tid> = self.threads.keys().copied().collect();
        for pid in pids.iter().chain(&[self.main]) {
            let _ = kill(unistd::Pid::from_raw(pid.0), Signal::SIGKILL);
        }
        self.session.broke(&what, false);
        // Counters are in memory that is grind's, too. One thread that cannot be dealt with costs no other.
        for tid in tids {
            let _ = caught(|| self.fold(tid, None));
        }
        for pid in pids {
            let _ = caught(|| self.report(pid, None));
        }
        self.until_all_are_dead();
        // If the program had ended, it was others that have been killed.
        if self.exit.is_none() {
            self.failure.get_or_insert(EngineError::Broken { what });
        }
    }

    fn until_all_are_dead(&mut self) {
        self.early.clear();
        let mut quiet = 0;
        while quiet < PATIENCE {
            quiet += 1;
            match tracee::wait_any_briefly() {
                Some(Wait::Nothing) => return,
                Some(Wait::Stopped(t, _)) => {
                    quiet = 0;
                    let _ = kill(unistd::Pid::from_raw(t.tid().0), Signal::SIGKILL);
                    t.go_on(How::Continue, 0);
                }
                Some(Wait::Exited { tid, .. } | Wait::Killed { tid, .. }) => {
                    quiet = 0;
                    tracee::leave(tid);
                }
                Some(Wait::Interrupted) | None => {}
            }
        }
    }
}
