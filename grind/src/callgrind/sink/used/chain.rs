//! The active calls of a thread as the back-dating tree has them: a stack for what runs in the thread and one for each of its
//! signal handlers, brought up to date with the model of calls when a line is loaded, and not before.
//!
//! Invariant: between two calls of [`Chain::follow`] the model may have left and made any frames; what the chain has of
//! frames that are gone is left at the next one, so a cost is never given to a call that was made later.

use cg_calls::{ArcId, Calls, RootChange};
use cg_sim::calltree::{Node, Stack, Tree};

/// A thread's own state, or a signal handler.
#[derive(Clone, Debug)]
struct State {
    /// Frames below it.
    bottom: usize,
    stack: Stack,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The thread's own, then those of handlers that interrupted one another.
    states: Vec<State>,
    /// For each frame of the model whether it is a call here: calls of what is skipped are not.
    frames: Vec<bool>,
}

impl Chain {
    pub(super) fn new() -> Self {
        Self { states: vec![State { bottom: 0, stack: Stack::new() }], frames: Vec::new() }
    }

    /// The node of what runs in `calls`. `arc` gives the tree's number of an arc of the model.
    #[inline]
    pub(super) fn node(&mut self, calls: &mut Calls, tree: &mut Tree, arc: impl FnMut(ArcId) -> u32) -> Node {
        if !calls.unchanged(self.frames.len()) || self.states.len() > 1 {
            self.follow(calls, tree, arc);
        }
        let last = self.states.len() - 1;
        self.states[last].stack.node(tree)
    }

    /// The node that all of the thread's calls are below.
    pub(super) fn root(&mut self, tree: &mut Tree) -> Node {
        self.states[0].stack.node(tree)
    }

    /// Leaves what has been left, and notes what has been called since the last time.
    pub(super) fn follow(&mut self, calls: &mut Calls, tree: &mut Tree, mut arc: impl FnMut(ArcId) -> u32) {
        let changes = calls.changes();
        let handlers: Vec<usize> = calls.handlers().collect();
        // A handler goes on if nothing below it has changed.
        let mut same = 1;
        while same < self.states.len()
            && handlers.get(same - 1) == Some(&self.states[same].bottom)
            && self.states[same].bottom <= changes.kept
        {
            same += 1;
        }
        while self.states.len() > same
            && let Some(mut state) = self.states.pop()
        {
            state.stack.end(tree);
            self.frames.truncate(state.bottom);
        }
        while self.frames.len() > changes.kept {
            if self.frames.pop() == Some(true) {
                self.states[same - 1].stack.leave(tree);
            }
        }
        for change in changes.root {
            match change {
                RootChange::Ended => self.states[0].stack.end(tree),
                RootChange::Called(by) => self.states[0].stack.underflow(tree, arc(by)),
            }
        }
        let mut new_states = handlers[same - 1..].iter().peekable();
        for frame in self.frames.len()..=calls.frames() {
            while let Some(&bottom) = new_states.next_if(|bottom| **bottom == frame) {
                self.states.push(State { bottom, stack: Stack::new() });
            }
            if frame < calls.frames() {
                let by = calls.frame_arc(frame);
                self.frames.push(by.is_some());
                if let Some(by) = by {
                    let last = self.states.len() - 1;
                    self.states[last].stack.call(arc(by));
                }
            }
        }
    }
}
