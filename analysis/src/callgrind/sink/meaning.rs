//! What records of sites mean to a process, as far as calls are concerned. Nothing is decided here.
//!
//! Invariant: [`NOTHING`] is a counter of every process, and costs nothing.

use cg_calls::{JumpKind, SiteId};

/// What a record of a site means to a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    /// What is executed; [`NOTHING`] has no instructions.
    pub(super) counter: u32,
    /// What that costs of the first event.
    pub(super) cost: u32,
    /// How many basic blocks end with it.
    pub(super) ends: u16,
    pub(super) kind: Kind,
    pub(super) site: SiteId,
    /// Where it leads, or how many words a record has that is of no interest.
    pub(super) target: u64,
}

/// The counter of records that tell of no execution.
pub(super) const NOTHING: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Block,
    Call,
    Return,
    CallIndirect,
    JumpIndirect,
    Jump(JumpKind),
    /// A jump that is no call.
    Within(JumpKind),
    Executions,
    /// Of no interest here.
    Other,
}

/// What is known of a counter beside what the catalogue has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    /// Its first instruction.
    pub(super) start: u64,
    /// How many basic blocks end when it is executed: those of its instructions that end one, so that the number hangs on what is
    /// executed alone, and not on how that is cut into what is translated and told.
    pub(super) ends: u16,
}
