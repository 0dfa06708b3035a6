//! Whether costs of a process are collected, as somebody outside wants it: all its threads change over at one moment.
//!
//! Where emitted code follows calls, whom code counts for says whether that is collected, too: so it is thrown away
//! ([`super::flush`]), and in between, when every thread stands at an instruction of its own and has been counted, the sink learns of
//! the change. Where calls are told, or nothing is recorded, the threads stand still while the sink learns of it.
//!
//! Invariants: what was executed before is told before, and what comes is told behind; a wish is kept until it can be
//! granted, and the session learns when it has been.

use std::collections::HashMap;

use grind_types::{Pid, Query};

use super::Dispatcher;
use super::flush::Reason;

/// By process: whether its costs are to be collected. The last one who asks is right.
pub(super) type Wishes = HashMap<Pid, bool>;

impl Dispatcher<'_> {
    /// Costs of `pid` are to be collected, or not.
    pub(super) fn collect_soon(&mut self, pid: Pid, on: bool) {
        if self.processes.contains_key(&pid) {
            self.collection.insert(pid, on);
            self.look_at_collection();
        }
    }

    /// Grants what can be granted; what was begun may have been given up since.
    pub(super) fn look_at_collection(&mut self) {
        if self.collection.is_empty() {
            return;
        }
        self.collection.retain(|pid, _| self.processes.contains_key(pid));
        for pid in self.collection.keys().copied().collect::<Vec<_>>() {
            let Some(p) = self.processes.get(&pid) else { continue };
            let flushes = p.threads.first().is_some_and(|tid| self.is_flushing(*tid));
            let follows = p.code_cache.borrow().trace.settings.followed();
            if flushes {
                continue;
            }
            if follows {
                self.begin_flush(pid, Reason::Anew);
            } else {
                let held = self.stand_still_collected(pid, None);
                self.switch_collection(&[pid]);
                self.go_on_all(held);
            }
        }
    }

    /// Has the sink collect costs of these processes, or not, if somebody wants that. Their threads stand still.
    pub(super) fn switch_collection(&mut self, pids: &[Pid]) {
        for &pid in pids {
            let Some(on) = self.collection.remove(&pid) else { continue };
            let ask = Query::Collect(on);
            for tid in self.processes.get(&pid).map(|p| p.threads.clone()).unwrap_or_default() {
                self.pull_stack(tid);
                if let Some(trace_channel) = &self.trace_channel {
                    trace_channel.asked(pid, Some(tid), &ask);
                }
            }
            self.tell_asked(pid, None, &ask);
        }
    }
}
