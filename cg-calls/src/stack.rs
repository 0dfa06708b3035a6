//! The shadow stack: one frame for each call that has not returned.
//!
//! Inclusive costs are differences, so a frame keeps the meter's readings at its entry. Those are apart from the frames, as
//! many as there are costs for each frame.

use crate::contexts::PathId;

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The stack pointer after the call; the caller's frame's for calls that push nothing.
    pub(crate) sp: u64,
    /// Where it returns to; 0 for calls that push nothing.
    pub(crate) returns_to: u64,
    /// The arc, or NONE if the callee is skipped.
    pub(crate) arc: u32,
    /// The function whose activity it counts.
    pub(crate) function: u32,
    /// The caller's context and state.
    pub(crate) path: PathId,
    pub(crate) node: u32,
    pub(crate) skip: u32,
}

/// Frames, the innermost last.
#[derive(Debug)]
pub(crate) struct Stack {
    costs: usize,
    frames: Vec<Frame>,
    entered: Vec<u64>,
}

impl Stack {
    pub(crate) fn new(costs: usize) -> Stack {
        Stack { costs, frames: Vec::new(), entered: Vec::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    #[inline]
    pub(crate) fn top(&self) -> Option<&Frame> {
        self.frames.last()
    }

    pub(crate) fn frame(&self, i: usize) -> &Frame {
        &self.frames[i]
    }

    /// Pushes a frame; returns where its readings go.
    #[inline]
    pub(crate) fn push(&mut self, frame: Frame) -> &mut [u64] {
        self.frames.push(frame);
        let start = self.entered.len();
        self.entered.resize(start + self.costs, 0);
        &mut self.entered[start..]
    }

    /// Pops a frame, and hands out the readings at its entry one by one.
    #[inline]
    pub(crate) fn pop(&mut self, mut each: impl FnMut(&Frame, usize, u64)) -> Option<Frame> {
        let frame = self.frames.pop()?;
        let start = self.entered.len() - self.costs;
        for (i, reading) in self.entered[start..].iter().enumerate() {
            each(&frame, i, *reading);
        }
        self.entered.truncate(start);
        Some(frame)
    }

    /// The readings at entry of a frame.
    pub(crate) fn readings(&mut self, i: usize) -> &mut [u64] {
        &mut self.entered[i * self.costs..][..self.costs]
    }
}
