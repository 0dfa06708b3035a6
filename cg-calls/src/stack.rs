//! The shadow stack: one frame for each call that has not returned.
//!
//! Inclusive costs are differences, so a frame keeps the meter's readings at its entry. Those are apart from the frames, as
//! many as there are costs for each frame.

use crate::contexts::PathId;
use crate::meter::Meter;
use crate::table::NONE;

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
    /// How it is left.
    pub(crate) way: Leave,
}

/// How a frame is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Leave {
    /// Nothing is skipped, before or after, and nothing happens.
    Plain,
    /// The same, but the frame below is that of the stub that led to it.
    Through,
    /// There is more to it.
    Other,
    /// It was there when the thread began to be watched: nothing hung on its beginning.
    Found,
}

impl Frame {
    const NONE: Frame = Frame {
        sp: 0,
        returns_to: 0,
        arc: NONE,
        function: NONE,
        path: PathId::EMPTY,
        node: NONE,
        skip: NONE,
        way: Leave::Other,
    };
}

/// Frames that there is room for at least.
const ROOM: usize = 64;

/// Frames, the innermost last.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    costs: usize,
    depth: usize,
    /// The first `depth` count.
    frames: Vec<Frame>,
    /// At least as many readings as those have, too.
    entered: Vec<u64>,
    /// The fewest frames that there have been since somebody asked.
    lowest: usize,
}

impl Stack {
    pub(crate) fn new(costs: usize) -> Stack {
        Stack { costs, depth: 0, frames: Vec::new(), entered: Vec::new(), lowest: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.depth
    }

    /// So many of the lowest frames are those that were there when [`Stack::take_lowest`] was called last.
    #[inline]
    pub(crate) fn lowest(&self) -> usize {
        self.lowest
    }

    /// The same, for the last time.
    pub(crate) fn take_lowest(&mut self) -> usize {
        std::mem::replace(&mut self.lowest, self.depth)
    }

    #[inline]
    pub(crate) fn top(&self) -> Option<&Frame> {
        self.depth.checked_sub(1).map(|i| &self.frames[i])
    }

    /// All frames with room for some more, and a reading for each; and how many of them count, which [`Stack::set_depth`]
    /// changes.
    pub(crate) fn all_of(&mut self) -> (&mut [Frame], &mut [u64], usize) {
        let room = self.depth + ROOM;
        if self.frames.len() < room {
            self.frames.resize(room + self.depth, Frame::NONE);
        }
        let readings = self.frames.len() * self.costs;
        if self.entered.len() < readings {
            self.entered.resize(readings, 0);
        }
        (&mut self.frames, &mut self.entered, self.depth)
    }

    pub(crate) fn set_depth(&mut self, depth: usize) {
        self.depth = depth.min(self.frames.len());
        // It may have been lower in between.
        self.lowest = 0;
    }

    pub(crate) fn frame(&self, i: usize) -> &Frame {
        &self.frames[i]
    }

    pub(crate) fn frame_mut(&mut self, i: usize) -> &mut Frame {
        &mut self.frames[i]
    }

    /// Pushes a frame, entered at `now`.
    #[inline]
    pub(crate) fn push(&mut self, frame: Frame, meter: &Meter, now: &[u64]) {
        match self.frames.get_mut(self.depth) {
            Some(free) => *free = frame,
            None => self.frames.push(frame),
        }
        let start = self.depth * self.costs;
        if self.entered.len() < start + self.costs {
            self.entered.resize(start + self.costs, 0);
        }
        meter.read_into(now, &mut self.entered[start..start + self.costs]);
        self.depth += 1;
    }

    /// Pops a frame, with its readings.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Frame, Readings<'_>)> {
        self.depth = self.depth.checked_sub(1)?;
        self.lowest = self.lowest.min(self.depth);
        let start = self.depth * self.costs;
        Some((self.frames[self.depth], Readings { all: &self.entered[start..start + self.costs] }))
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

/// The readings at entry of a frame that is being popped.
pub(crate) struct Readings<'a> {
    all: &'a [u64],
}

impl Readings<'_> {
    #[inline]
    pub(crate) fn get(&self) -> &[u64] {
        self.all
    }
}
