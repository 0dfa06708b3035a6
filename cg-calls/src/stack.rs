//! The shadow stack: one frame for each call that has not returned.
//!
//! Inclusive costs are differences, so a frame keeps the meter's readings at its entry. Those are apart from the frames, as
//! many as there are costs for each frame.

use crate::contexts::PathId;
use crate::meter::Meter;

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The stack pointer after the call; the caller's frame's for calls that push nothing.
    pub(crate) sp: u64,
    /// Where it returns to; 0 for calls that push nothing.
    pub(crate) returns_to: u64,
    /// The arc, or NONE if the callee is skipped.
    pub(crate) arc: u32,
    /// The function whose activity it counts, or NONE if it counts none.
    pub(crate) function: u32,
    /// The caller's context and state.
    pub(crate) path: PathId,
    pub(crate) node: u32,
    pub(crate) skip: u32,
    /// Nothing is skipped, before or after, and nothing happens when it is left.
    pub(crate) plain: bool,
}

/// Frames, the innermost last.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    costs: usize,
    frames: Vec<Frame>,
    entered: Vec<u64>,
    /// The fewest frames that there have been since somebody asked.
    lowest: usize,
}

impl Stack {
    pub(crate) fn new(costs: usize) -> Stack {
        Stack { costs, frames: Vec::new(), entered: Vec::new(), lowest: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// So many of the lowest frames are those that were there when [`Stack::take_lowest`] was called last.
    #[inline]
    pub(crate) fn lowest(&self) -> usize {
        self.lowest
    }

    /// The same, for the last time.
    pub(crate) fn take_lowest(&mut self) -> usize {
        std::mem::replace(&mut self.lowest, self.frames.len())
    }

    #[inline]
    pub(crate) fn top(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// The frame so many below the top.
    #[inline]
    pub(crate) fn below(&self, n: usize) -> Option<&Frame> {
        self.frames.len().checked_sub(n + 1).map(|i| &self.frames[i])
    }

    /// Pops a frame where there is one cost only; returns the reading at its entry.
    #[inline]
    pub(crate) fn drop_top_of_one(&mut self) -> u64 {
        self.frames.pop();
        self.lowest = self.lowest.min(self.frames.len());
        self.entered.pop().unwrap_or_default()
    }

    /// Pushes a frame where there is one cost only.
    #[inline]
    pub(crate) fn push_one(&mut self, frame: Frame, reading: u64) {
        self.frames.push(frame);
        self.entered.push(reading);
    }

    pub(crate) fn frame(&self, i: usize) -> &Frame {
        &self.frames[i]
    }

    /// Pushes a frame, entered at `now`.
    #[inline]
    pub(crate) fn push(&mut self, frame: Frame, meter: &Meter, now: &[u64]) {
        self.frames.push(frame);
        meter.read_onto(now, &mut self.entered);
    }

    /// Pops a frame, with its readings.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Frame, Readings<'_>)> {
        let frame = self.frames.pop()?;
        self.lowest = self.lowest.min(self.frames.len());
        let start = self.entered.len() - self.costs;
        Some((frame, Readings { all: &mut self.entered, start }))
    }

    /// The same, to look at.
    pub(crate) fn entered(&self, i: usize) -> &[u64] {
        &self.entered[i * self.costs..][..self.costs]
    }

    /// The readings at entry of a frame.
    pub(crate) fn readings(&mut self, i: usize) -> &mut [u64] {
        &mut self.entered[i * self.costs..][..self.costs]
    }
}

/// The readings at entry of a frame that is being popped; they go when this goes.
pub(crate) struct Readings<'a> {
    all: &'a mut Vec<u64>,
    start: usize,
}

impl Readings<'_> {
    #[inline]
    pub(crate) fn get(&self) -> &[u64] {
        &self.all[self.start..]
    }
}

impl Drop for Readings<'_> {
    #[inline]
    fn drop(&mut self) {
        self.all.truncate(self.start);
    }
}
