//! Calls that emitted code follows and tells one by one, for whole chains of calls: each record moves the thread on in its call tree.
//!
//! Invariants: totals that emitted code keeps are those of the record when it is dealt with; frames are not touched, they are caught
//! up with at the next stop.

use cg_calls::{Each, Shown};
use grind_trace::follow::{CALL_TOLD, Names, RETURN_TOLD};
use grind_trace::operands;
use grind_types::{Pid, Tid};

use super::super::code::Catalogue;
use super::process::Process;
use super::thread::Thread;
use super::{Recorder, Space};

/// The totals that emitted code keeps, as columns: see [`cg_calls::Config::kept`].
pub(super) type Kept = [Option<usize>; Shown::TOTALS];

/// Takes a call or a return off the front of `words`, and has the thread's totals be what they were then.
#[inline]
pub(super) fn take<'w>(words: &'w [u32], kept: &Kept, now: &mut [u64]) -> Option<(Each, &'w [u32])> {
    let (&first, mut rest) = words.split_first()?;
    let told = each(first)?;
    for event in kept.iter().flatten() {
        let (total, after) = operands::number(rest)?;
        now[*event] = total;
        rest = after;
    }
    Some((told, rest))
}

/// What the first word of a record tells.
#[inline]
pub(super) fn each(word: u32) -> Option<Each> {
    match word {
        CALL_TOLD..RETURN_TOLD => Some(Each::Call(word - CALL_TOLD)),
        _ if (1..=2).contains(&word.wrapping_sub(RETURN_TOLD)) => Some(Each::Return(word - RETURN_TOLD)),
        _ => None,
    }
}

impl Recorder {
    /// Goes through what a thread has recorded where nothing is simulated.
    pub(super) fn follow_each(&mut self, pid: Pid, tid: Tid, names: &Names, words: &[u32]) {
        let kept = self.config.kept;
        let _ = self.with_followed(pid, tid, |p, t, catalogue, space| {
            let mut rest = words;
            loop {
                let (calls, now) = t.live();
                if now.len() == 1 {
                    let (records, _) = rest.as_chunks::<3>();
                    let all = records
                        .iter()
                        .map_while(|[first, low, high]| Some((each(*first)?, operands::joined(*low, *high))));
                    let done = calls.told_many(now, all);
                    rest = &rest[3 * done..];
                }
                let Some((told, after)) = take(rest, &kept, now) else { break };
                p.chain(t, catalogue, (space, names), told);
                rest = after;
            }
            debug_assert!(rest.is_empty(), "a record of no kind: {:#x?}", &rest[..rest.len().min(8)]);
        });
    }
}

impl Process {
    /// A thread calls, or returns.
    #[inline]
    pub(super) fn chain(
        &mut self,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        (space, names): (&Space, &Names),
        told: Each,
    ) {
        let (calls, now) = t.live();
        match told {
            Each::Call(call_edge) => calls.told_call(catalogue, call_edge, now, |catalogue, call_edge| {
                self.again(call_edge, names, catalogue, &space.functions)
            }),
            Each::Return(frames) => calls.told_return(frames, now),
        }
    }
}
