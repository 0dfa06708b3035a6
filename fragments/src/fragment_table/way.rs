//! The ways in which indirect branches look up where they lead: each has a table of its own. Facts alone; what emitted code does
//! about them is in `emit::ibl_target` and `emit::pairs`.

use grind_layout as layout;

/// How an indirect branch is made: where its IBL target finds the target. rcx is in its slot word in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// A jump, or a call that is made like one: in the slot word [`layout::TARGET`].
    Jump,
    /// A call that is one of the processor's own (`emit::pairs`): there, too; what it has pushed is still to be taken back.
    Call,
    /// A return: right below the stack pointer, where it has just been taken from.
    Return,
    /// The same, where returns lead to behind calls (`emit::pairs`).
    Paired,
}

impl Way {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Jump, Self::Call, Self::Return, Self::Paired];

    /// Offset of its table in the tables' mapping.
    pub fn table(self) -> u64 {
        match self {
            Self::Jump => layout::JUMP_TABLE,
            Self::Call => layout::CALL_TABLE,
            Self::Return => layout::RETURN_TABLE,
            Self::Paired => layout::PAIR_TABLE,
        }
    }

    /// Entries of its table.
    pub fn entries(self) -> u64 {
        match self {
            Self::Jump | Self::Call | Self::Return => layout::IBL_ENTRIES,
            Self::Paired => layout::PAIR_ENTRIES,
        }
    }
}
