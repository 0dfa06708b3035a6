//! What a record means by its first word: what a thread's fast path looks up, and site counters are made for.

use crate::code::SiteId;

/// What the ordinary part of a record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StepKind {
    /// The counter is executed. One word.
    Block,
    /// It is executed, and calls the target. Three words, of which the last two are the stack pointer.
    Call,
    /// It is executed, and calls what the last two of five words say; the two before are the stack pointer.
    CallIndirect,
    /// It is executed, and returns. Five words as for `CallIndirect`.
    Return,
    /// It is executed, and jumps to what the last two of five words say.
    JumpIndirect,
    /// It is executed, and jumps to the target, or goes on there. Three words as for `Call`.
    Jump,
    /// Not ordinary.
    Other,
}

/// What a record means, by its first word.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The kind.
    pub kind: StepKind,
    /// How many basic blocks end when the counter is executed.
    pub ends: u16,
    /// The counter that is executed.
    pub counter: u32,
    /// What that costs: a number, a [`crate::Packed`] word, or the number of a row, as the loop that goes through steps has it.
    pub cost: u32,
    /// The instruction that transfers control.
    pub site: SiteId,
    /// Where it leads.
    pub target: u64,
}
