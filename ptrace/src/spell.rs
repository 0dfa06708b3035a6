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

use super::{Result, Stop, Stopped};

#[derive(Debug)]
struct Spell {
    tid: Tid,
    /// What is blocked besides what the program blocks.
    blocked: u64,
    /// How much longer the thread is to run.
    left: Duration,
    /// Since when it runs, and what the program blocks.
    running: Option<(Instant, u64)>,
    /// Somebody has been told that it has been long enough.
    told: bool,
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
        spell.running = Some((Instant::now(), mask));
        Ok(true)
    })
}

/// `t` has stopped.
pub(super) fn stopped(t: &Stopped, stop: Stop) -> Result<()> {
    SPELLS.with_borrow_mut(|spells| {
        let Some(i) = spells.iter().position(|s| s.tid == t.tid) else { return Ok(()) };
        // Otherwise a stop in the middle of something that the engine has it do.
        let Some((since, mask)) = spells[i].running.take() else { return Ok(()) };
        spells[i].left = spells[i].left.saturating_sub(since.elapsed());
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
    SPELLS.with_borrow(|spells| spells.iter().find(|s| s.tid == tid)?.running.map(|(_, mask)| mask))
}

/// The threads whose spells have just become long enough; each is told once.
pub fn long_enough() -> Vec<Tid> {
    let over = |s: &&mut Spell| !s.told && s.running.is_some_and(|(since, _)| since.elapsed() >= s.left);
    SPELLS.with_borrow_mut(|spells| spells.iter_mut().filter(over).map(|s| (s.told = true, s.tid).1).collect())
}
