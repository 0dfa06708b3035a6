//! Frames of an interpreter among the records of a thread: which functions of the interpreted program it runs. The model is told where
//! they begin and end; what they cost it knows by itself.
//!
//! An activation of the interpreter's function runs the frame that it was called for, and those that it pushes itself; all of them
//! go when it returns. They are known by its stack pointer, which is that of the model's frames. Invariant: of an activation
//! that began before anything was recorded nothing is told, since it is not known which frames it runs.

use grind_trace::frames::FrameRecord;
use grind_types::frames::FrameFunction;
use grind_types::hash::Map;

use super::super::code::Catalogue;
use super::thread::{Running, Thread};
use cg_calls::{Interposed, SiteId};

/// What code objects of a process are.
#[derive(Clone, Debug, Default)]
pub(super) struct Codes {
    /// By address: the function's in the catalogue, and its site there; nothing if it is no function.
    functions: Map<u64, Option<(u64, SiteId)>>,
    /// Sites of the interpreter where it changes from one frame to another.
    sites: Map<u64, SiteId>,
}

impl Codes {
    /// The code object at `code` is this function from now on.
    pub(super) fn learn(&mut self, code: u64, function: Option<FrameFunction>, catalogue: &mut Catalogue) {
        self.functions.insert(code, function.map(|function| catalogue.interpreted(function)));
    }

    /// A thread has come to a frame. Says whether a function asks for something.
    pub(super) fn framed(&mut self, t: &mut Thread, catalogue: &mut Catalogue, record: FrameRecord) -> bool {
        let function = self.functions.get(&record.code).copied().flatten();
        if !t.begun {
            t.begun = true;
            t.calls.begin(catalogue, record.pc);
        }
        if record.entered {
            return entered(t, catalogue, record, function);
        }
        let Some(sp) = t.calls.innermost(record.sp, &t.now) else { return false };
        while t.frames.pop_if(|last| last.sp < sp).is_some() {}
        let first = t.frames.iter().rposition(|running| running.sp != sp).map_or(0, |n| n + 1);
        let Some(activation) = t.frames.get(first).copied().filter(|running| !running.over) else { return false };
        let known = t.frames.iter().rposition(|running| running.frame == record.frame);
        match (known, function) {
            (Some(n), _) if n >= first => leave_behind(t, n),
            (None, Some(function)) => {
                let at = || catalogue.add_site(record.pc, record.pc + 1, record.pc);
                let site = *self.sites.entry(record.pc).or_insert_with(at);
                let depth = t.calls.depth();
                t.frames.push(Running { frame: record.frame, depth, ..activation });
                t.calls.call_interposed(catalogue, site, run_by(function, activation.entry), &t.now)
            }
            // What the interpreter itself has put between a function and its caller, and now goes back to.
            (None, None) if record.frame != 0 && !(record.sp..sp).contains(&record.frame) => {
                let innermost = t.frames.len() - 1;
                let wanted = innermost > first && leave_behind(t, innermost - 1);
                t.frames.push(Running { frame: record.frame, depth: t.calls.depth(), ..activation });
                wanted
            }
            // That of a caller, or one on its own stack, or none: it returns.
            _ => {
                t.frames[first].over = true;
                leave_behind(t, first)
            }
        }
    }
}

/// Frames above number `n` are left.
fn leave_behind(t: &mut Thread, n: usize) -> bool {
    let Some(above) = t.frames.get(n + 1).map(|running| running.depth) else { return false };
    t.frames.truncate(n + 1);
    t.calls.leave_to(above, &t.now)
}

/// A function, and the interpreter's at `entry` that runs it.
fn run_by((target, within): (u64, SiteId), entry: u64) -> Interposed {
    Interposed { target, within, entry }
}

/// The interpreter's function has been called for a frame.
fn entered(t: &mut Thread, catalogue: &mut Catalogue, record: FrameRecord, function: Option<(u64, SiteId)>) -> bool {
    while t.frames.pop_if(|last| last.sp <= record.sp).is_some() {}
    let (Some(function), Some(site)) = (function, t.calls.just_called(record.pc, &t.now)) else { return false };
    // Then its name is there already.
    if catalogue.is_trampoline(site) {
        return false;
    }
    let Some(sp) = t.calls.innermost(record.sp, &t.now) else { return false };
    let depth = t.calls.depth() - 1;
    t.frames.push(Running { frame: record.frame, sp, depth, entry: record.pc, over: false });
    t.calls.interpose(catalogue, site, run_by(function, record.pc), &t.now)
}
