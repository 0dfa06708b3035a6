//! Spells in which a thread gets on undisturbed: signals that nobody's instruction causes are blocked, whatever the program
//! blocks. A spell goes on over the engine's own stops; any other ends it, and so does a system call, which may look at what is
//! blocked, hand that on, or wait for a signal: the thread stops at its entry. Somebody has to interrupt a thread whose spell
//! has been long enough.
//!
//! Invariant: whoever sees a stop of the thread finds blocked what the program blocks.
//!
//! The list belongs to the thread that traces, as everything that ptrace knows does.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use grind_types::Tid;

use nix::libc;

use super::schedule::Schedule;
use super::{Result, Stop, Stopped};

#[derive(Debug)]
struct Spell {
    tid: Tid,
    /// What is blocked besides what the program blocks.
    blocked: u64,
    /// How much longer the thread is to run, on a processor.
    left: Duration,
    running: Option<Running>,
    /// Somebody has been told that it has been long enough.
    told: bool,
}

/// A thread that has been let go on.
#[derive(Debug)]
struct Running {
    /// What the program blocks.
    mask: u64,
    /// As it was before.
    was: Schedule,
    /// Since when it has had a processor, as far as anybody has looked.
    since: Option<Instant>,
}

impl Running {
    /// Whether `tid` has run for `left`. Nobody knows exactly of a thread that runs, so its time counts from when it was first seen to.
    fn has_run(&mut self, tid: Tid, left: Duration) -> bool {
        if self.since.is_none() && Schedule::of(tid).has_run_since(&self.was) {
            self.since = Some(Instant::now());
        }
        self.since.is_some_and(|since| since.elapsed() >= left)
    }
}

thread_local! {
    /// Few at a time, and mostly none.
    static SPELLS: RefCell<Vec<Spell>> = const { RefCell::new(Vec::new()) };
}

/// `tid` is to go on with `blocked` blocked, too, until it has run for as long as this.
pub(super) fn begin(tid: Tid, blocked: u64, long: Duration) {
    gone(tid);
    SPELLS.with_borrow_mut(|s| s.push(Spell { tid, blocked, left: long, running: None, told: false }));
}

/// `t` is about to go on by itself. Whether that is in a spell.
pub(super) fn goes_on(t: &Stopped) -> Result<bool> {
    SPELLS.with_borrow_mut(|spells| {
        let Some(spell) = spells.iter_mut().find(|s| s.tid == t.tid) else { return Ok(false) };
        let mask = t.sigmask()?;
        t.set_sigmask(mask | spell.blocked)?;
        spell.running = Some(Running { mask, was: Schedule::of(t.tid), since: None });
        Ok(true)
    })
}

/// `t` has stopped.
pub(super) fn stopped(t: &Stopped, stop: Stop) -> Result<()> {
    SPELLS.with_borrow_mut(|spells| {
        let Some(i) = spells.iter().position(|s| s.tid == t.tid) else { return Ok(()) };
        // Otherwise a stop in the middle of something that the engine has it do.
        let Some(Running { mask, was, .. }) = spells[i].running.take() else { return Ok(()) };
        spells[i].left = spells[i].left.saturating_sub(Schedule::of(t.tid).ran.saturating_sub(was.ran));
        if stop != Stop::Signal(libc::SIGTRAP) || spells[i].left.is_zero() {
            spells.swap_remove(i);
        }
        t.set_sigmask(mask)
    })
}

/// `tid` has ended.
pub(super) fn gone(tid: Tid) {
    SPELLS.with_borrow_mut(|spells| spells.retain(|s| s.tid != tid));
}

/// Whether there are any.
pub fn spells() -> bool {
    SPELLS.with_borrow(|spells| !spells.is_empty())
}

/// What the program blocks in `tid`, if that runs with more blocked, in a spell.
pub fn blocked_beneath(tid: Tid) -> Option<u64> {
    SPELLS.with_borrow(|spells| spells.iter().find(|s| s.tid == tid)?.running.as_ref().map(|r| r.mask))
}

/// The threads whose spells have just become long enough; each is told once.
pub fn long_enough() -> Vec<Tid> {
    SPELLS.with_borrow_mut(|spells| {
        let untold = spells.iter_mut().filter(|s| !s.told);
        untold
            .filter_map(|s| {
                s.told = s.running.as_mut()?.has_run(s.tid, s.left);
                s.told.then_some(s.tid)
            })
            .collect()
    })
}
