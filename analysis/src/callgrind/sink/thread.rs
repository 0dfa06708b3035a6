//! What the recorder keeps of a thread: its calls and totals, and what stands in for them while nothing is recorded.
//!
//! Invariant: whatever is said of a thread, its calls are those of the state that it is in, recorded or not
//! ([`Thread::live`]).

use std::collections::HashMap;

use cg_calls::{Calls, Config};
use cg_sim::writeback::WriteThrough;
use grind_trace::follow::{CallContext, FIRST};

use super::by_object::OfThread;
use super::cache_lines::ThreadUse;
use super::meaning::Hot;

/// A thread of a process.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) number: u64,
    pub(super) calls: Calls,
    pub(super) now: Vec<u64>,
    pub(super) begun: bool,
    pub(super) recording: bool,
    /// The address of a system call that is being made once more, and has counted before, and whom it counts for now: others may be
    /// made by the same code for somebody else meanwhile.
    pub(super) counted: Option<(u64, CallContext)>,
    /// How often that has been counted already, and then not been executed after all.
    pub(super) unmade: u64,
    /// Basic blocks that have ended, but for those that the fast path of `calls` has dealt with.
    pub(super) blocks: u64,
    /// When so many have been, a part is due.
    pub(super) pause: u64,
    /// Nanoseconds in system calls: elapsed, and of processor time.
    pub(super) in_calls: [u64; 2],
    /// The thread is in a system call that counts.
    pub(super) in_counted_call: bool,
    /// By site: what the last record of executions said.
    pub(super) executions: HashMap<u32, u64>,
    /// What stands in for `calls` while nothing is recorded, if emitted code follows calls.
    pub(super) idle: Option<Box<Idle>>,
    /// If the use of lines is measured.
    pub(super) used: Option<Box<ThreadUse>>,
    /// If every access is told, because the last level is written back.
    pub(super) through: Option<Box<WriteThrough>>,
    /// Frames of an interpreter that it runs, the innermost last.
    pub(super) frames: Vec<Running>,
    /// What has missed, by what ran ([`Calls::running`]) and by data object, if those are asked for.
    pub(super) missed: OfThread,
}

/// A frame of an interpreter that runs, or will go on when others have been left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// Its address.
    pub(super) frame: u64,
    /// The stack pointer of the activation that runs it.
    pub(super) sp: u64,
    /// How many frames the model had before it.
    pub(super) depth: usize,
    /// The address of the interpreter's function.
    pub(super) entry: u64,
    /// The activation has left all its frames, and is about to return.
    pub(super) over: bool,
}

/// What stands in for a thread's calls while nothing is recorded: somebody has to say whom code runs for.
#[derive(Clone, Debug)]
pub(super) struct Idle {
    pub(super) calls: Calls,
    pub(super) now: Vec<u64>,
}

impl Thread {
    /// So much of an event happened at what `counter` counts. Where calls are `followed` and nothing is collected, totals stand still.
    pub(super) fn spend(&mut self, followed: bool, counter: u32, event: usize, n: u64) {
        if followed {
            self.calls.spent(counter, event, n, &self.now);
        } else {
            self.calls.cost(counter, event, n);
        }
        if !followed || self.calls.collecting() {
            self.now[event] += n;
        }
    }

    /// How many basic blocks it has executed to their ends.
    pub(super) fn blocks_ended(&self) -> u64 {
        self.blocks.wrapping_add(self.calls.ended())
    }

    /// The calls of the state that the thread is in, and its totals.
    pub(super) fn live(&mut self) -> (&mut Calls, &mut Vec<u64>) {
        match &mut self.idle {
            Some(idle) if !self.recording => (&mut idle.calls, &mut idle.now),
            _ => (&mut self.calls, &mut self.now),
        }
    }

    /// An instruction that counts by itself, told by site `number`, has been executed `all` times so far. `costs` has, beside those of
    /// its executions, what one of them costs.
    pub(super) fn executed_apart(&mut self, number: u32, hot: &Hot, all: u64, costs: &[u64]) {
        let before = self.executions.insert(number, all).unwrap_or(0);
        let more = all.wrapping_sub(before);
        let counter = hot.target as u32;
        self.calls.cost(counter, 0, more);
        self.now[0] = self.now[0].wrapping_add(more);
        let width = self.now.len();
        let others = costs[counter as usize * width..][..width].iter().enumerate().skip(1);
        for (event, cost) in others.filter(|(_, cost)| **cost != 0) {
            self.calls.cost(counter, event, more.wrapping_mul(*cost));
            self.now[event] = self.now[event].wrapping_add(more.wrapping_mul(*cost));
        }
    }

    /// A system call that was to be made once more has not been made.
    pub(super) fn count_after_all(&mut self) {
        if self.counted.take().is_some() {
            self.calls.begin_ahead(-1);
        }
        self.unmade = 0;
    }

    /// What begins at this address has been executed `n` times for this call context, as counters say: how often it counts.
    pub(super) fn counts(&mut self, code: (u64, CallContext), n: u64) -> u64 {
        if self.counted != Some(code) || n <= std::mem::take(&mut self.unmade) {
            return n;
        }
        self.counted = None;
        n.wrapping_sub(1)
    }

    /// Other code has come to lie where there was some.
    pub(super) fn code_replaced(&mut self) {
        self.calls.code_replaced();
        if let Some(idle) = &mut self.idle {
            idle.calls.code_replaced();
        }
    }

    /// Functions are to be treated otherwise from now on.
    pub(super) fn rules_changed(&mut self) {
        self.calls.rules_changed();
        if let Some(idle) = &mut self.idle {
            idle.calls.rules_changed();
        }
    }

    /// What follows is recorded, or is not.
    pub(super) fn change_over(&mut self, on: bool, config: &Config) {
        if let Some(idle) = &mut self.idle {
            idle.calls.end(&idle.now);
        }
        if !on && self.idle.is_none() {
            let now = nothing_yet(config);
            // Nothing is recorded, calls that are told one by one neither.
            let mut calls = Calls::new(Config { chains: None, ..config.clone() }, &now);
            calls.stand_in();
            self.idle = Some(Box::new(Idle { calls, now }));
        }
    }

    /// Its use of lines, if that is measured, and its calls.
    pub(super) fn line_use(&mut self) -> Option<(&ThreadUse, &mut Calls)> {
        Some((self.used.as_deref()?, &mut self.calls))
    }
}

/// The totals of a thread that begins.
pub(super) fn nothing_yet(config: &Config) -> Vec<u64> {
    let mut now = vec![0; config.costs];
    if config.gated {
        now[0] = FIRST;
    }
    now
}
