//! Whose stop is dealt with next. The kernel shows those of the newest threads first, so a thread that was made early may wait
//! for ever where others stop again and again before they have all been dealt with, as those do whose buffers are full of
//! records that nobody has read yet. Then threads take turns.
//!
//! Invariant: a stop that has been taken from the kernel is dealt with at once; what waits stays with the kernel, where whatever
//! becomes of its thread takes it along.

use std::io;

use grind_ptrace::{self as tracee, Wait};
use grind_types::Tid;

use super::Dispatcher;

/// So many stops without a moment in which none waited, and threads take turns.
const MANY: u64 = 16;

/// How long stops have been waiting, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct FairWait {
    /// Stops since none waited.
    in_a_row: u64,
    /// Whose turn it was last.
    last: Option<Tid>,
}

impl FairWait {
    /// The threads in the order of their turns.
    fn order(&self, threads: impl Iterator<Item = Tid>) -> Vec<Tid> {
        let mut all: Vec<Tid> = threads.collect();
        all.sort_unstable();
        let next = all.partition_point(|tid| Some(*tid) <= self.last);
        all.rotate_left(next);
        all
    }
}

impl Dispatcher<'_> {
    /// Waits for what has happened to any thread, or to a child that is not traced any more.
    pub(super) fn wait_in_turn(&mut self) -> io::Result<Wait> {
        // The only one keeps nobody waiting.
        if self.threads.len() < 2 {
            return tracee::wait_any();
        }
        // Every other time it may be one that is not known yet.
        if self.fair_wait.in_a_row >= MANY && self.fair_wait.in_a_row.is_multiple_of(2) {
            for tid in self.fair_wait.order(self.threads.keys().copied()) {
                if let Some(wait) = tracee::wait_now(tid) {
                    self.fair_wait.in_a_row += 1;
                    self.fair_wait.last = Some(tid);
                    return Ok(wait);
                }
            }
        }
        if let Some(wait) = tracee::wait_any_now() {
            self.fair_wait.in_a_row += 1;
            return Ok(wait);
        }
        self.fair_wait.in_a_row = 0;
        tracee::wait_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_has_a_turn_before_anyone_has_another() {
        let mut turns = FairWait::default();
        let mut had = Vec::new();
        for _ in 0..8 {
            // All of them wait all the time; the kernel shows the newest first.
            let next = turns.order([9, 7, 5, 2].map(Tid).into_iter())[0];
            turns.last = Some(next);
            had.push(next);
        }
        assert_eq!(had, [2, 5, 7, 9, 2, 5, 7, 9].map(Tid));
        // Whose turn it was has ended.
        turns.last = Some(Tid(6));
        assert_eq!(turns.order([9, 7, 5].map(Tid).into_iter()), [7, 9, 5].map(Tid));
    }
}
