//! Frames of interpreters (see [`FrameHook`]): where hooks are, what emitted code records at them, and what a record says.
//!
//! A record stands in front of what the instruction at the hook does, in program order with the blocks that are told. It names the
//! frame and its code object; what that is has been told before ([`crate::Sink::frame_code`]).

use std::sync::Arc;

use grind_types::frames::FrameHook;

use crate::operands;

/// In place of a site's number: the thread is about to run a frame, by a function that has just been called. Operands, two words each:
/// the address of the frame, that of its code object, the stack pointer, the address of the function.
pub const FRAME_ENTERED: u32 = u32::MAX - 12;

/// The same: another frame is about to be the one that runs; a frame, or its code object, whose address is 0 is none. The
/// last operand is the address of the instruction.
pub const FRAME_SWITCHED: u32 = u32::MAX - 13;

/// Words of both records.
pub const FRAME_WORDS: usize = 9;

/// What such a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRecord {
    /// A function has been called that runs the frame; otherwise the running one has changed to it.
    pub entered: bool,
    /// The address of the frame.
    pub frame: u64,
    /// The address of its code object.
    pub code: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The address of the instruction.
    pub pc: u64,
}

impl FrameRecord {
    /// The record that `words` begin with, and what is behind it; nothing if they begin with another one.
    #[must_use]
    pub fn split(words: &[u32]) -> Option<(Self, &[u32])> {
        let first = *words.first()?;
        if first != FRAME_ENTERED && first != FRAME_SWITCHED {
            return None;
        }
        let (record, rest) = words.split_at_checked(FRAME_WORDS)?;
        let word = |n: usize| operands::joined(record[1 + 2 * n], record[2 + 2 * n]);
        let entered = first == FRAME_ENTERED;
        Some((Self { entered, frame: word(0), code: word(1), sp: word(2), pc: word(3) }, rest))
    }

    /// The words of its record.
    #[must_use]
    pub fn words(self) -> [u32; FRAME_WORDS] {
        let mut words = [if self.entered { FRAME_ENTERED } else { FRAME_SWITCHED }; FRAME_WORDS];
        for (n, value) in [self.frame, self.code, self.sp, self.pc].into_iter().enumerate() {
            words[1 + 2 * n] = value as u32;
            words[2 + 2 * n] = (value >> 32) as u32;
        }
        words
    }
}

/// Where hooks are, by module.
#[derive(Clone, Debug, Default)]
pub struct FrameHooks {
    modules: Vec<Arc<[(u64, FrameHook)]>>,
}

impl FrameHooks {
    /// Modules that are known.
    #[must_use]
    pub fn modules(&self) -> usize {
        self.modules.len()
    }

    /// The next module: where its hooks are, in ascending order.
    pub fn add_module(&mut self, list: Vec<(u64, FrameHook)>) {
        self.modules.push(list.into());
    }

    /// The hook at `pc`, which is in `module`.
    #[must_use]
    pub fn at(&self, module: u32, pc: u64) -> Option<FrameHook> {
        let list = self.modules.get(module as usize)?;
        list.binary_search_by_key(&pc, |(at, _)| *at).ok().map(|n| list[n].1)
    }

    /// Where the hooks of a module are.
    pub fn places(&self, module: usize) -> impl Iterator<Item = u64> {
        self.modules.get(module).into_iter().flat_map(|list| list.iter()).map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went() {
        let record = FrameRecord { entered: false, frame: 1 << 40, code: 2, sp: u64::MAX, pc: 0x1234_5678_9abc };
        for record in [record, FrameRecord { entered: true, ..record }] {
            let words = [&record.words()[..], &[7]].concat();
            assert_eq!(FrameRecord::split(&words), Some((record, &[7][..])));
            assert_eq!(FrameRecord::split(&words[..FRAME_WORDS - 1]), None, "not whole");
        }
        assert_eq!(FrameRecord::split(&[5; FRAME_WORDS]), None, "another one");
    }

    #[test]
    fn hooks_are_known_by_module_and_address() {
        let mut hooks = FrameHooks::default();
        hooks.add_module(vec![(0x10, FrameHook::Gone { code: 7 }), (0x30, FrameHook::Gone { code: 6 })]);
        assert_eq!(hooks.at(0, 0x30), Some(FrameHook::Gone { code: 6 }));
        assert_eq!((hooks.at(0, 0x20), hooks.at(1, 0x10)), (None, None));
        assert_eq!(hooks.places(0).collect::<Vec<_>>(), [0x10, 0x30]);
        assert_eq!(hooks.places(1).count(), 0);
    }
}
