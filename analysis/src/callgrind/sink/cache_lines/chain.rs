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
    /// Frames of the model below it.
    bottom: usize,
    /// The model's frames from there on, up to the next state's.
    stack: Stack,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The thread's own, then those of handlers that interrupted one another.
    states: Vec<State>,
}

impl Chain {
    pub(super) fn new() -> Self {
        Self { states: vec![State { bottom: 0, stack: Stack::new() }] }
    }

    /// The node of what runs in `calls`. `arc` gives the tree's number of an arc of the model.
    #[inline]
    pub(super) fn node(&mut self, calls: &mut Calls, tree: &mut Tree, arc: impl FnMut(ArcId) -> u32) -> Node {
        if let [State { stack, .. }] = &mut *self.states
            && calls.unchanged(stack.depth())
        {
            return stack.node(tree);
        }
        self.follow(calls, tree, arc);
        let last = self.states.len() - 1;
        self.states[last].stack.node(tree)
    }

    /// The node that all of the thread's calls are below.
    pub(super) fn root(&mut self, tree: &mut Tree) -> Node {
        self.states[0].stack.node(tree)
    }

    /// Leaves what has been left, and notes what has been called since the last time.
    #[inline(never)]
    pub(super) fn follow(&mut self, calls: &mut Calls, tree: &mut Tree, mut arc: impl FnMut(ArcId) -> u32) {
        let changes = calls.changes();
        let mut handlers = calls.handlers().peekable();
        if let [State { stack, .. }] = &mut *self.states
            && changes.root.is_empty()
            && handlers.peek().is_none()
        {
            // Nearly always.
            stack.leave_to(tree, changes.kept);
            return call(stack, calls, 0, calls.frames(), &mut arc);
        }
        let handlers: Vec<usize> = handlers.collect();
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
        }
        let State { bottom, stack } = &mut self.states[same - 1];
        stack.leave_to(tree, changes.kept.saturating_sub(*bottom));
        for change in changes.root {
            match change {
                RootChange::Ended => self.states[0].stack.end(tree),
                RootChange::Called(by) => self.states[0].stack.underflow(tree, arc(by)),
            }
        }
        for end in handlers[same - 1..].iter().map(Some).chain([None]) {
            let last = self.states.len() - 1;
            let State { bottom, stack } = &mut self.states[last];
            call(stack, calls, *bottom, end.copied().unwrap_or(calls.frames()), &mut arc);
            if let Some(&bottom) = end {
                self.states.push(State { bottom, stack: Stack::new() });
            }
        }
    }
}

/// Brings a stack, which has the model's frames from `bottom` on, up to `end`.
#[inline]
fn call(stack: &mut Stack, calls: &Calls, bottom: usize, end: usize, mut arc: impl FnMut(ArcId) -> u32) {
    for frame in bottom + stack.depth()..end {
        match calls.frame_arc(frame) {
            Some(by) => stack.call(arc(by)),
            None => stack.pass(),
        }
    }
}
