//! How an instruction transfers control: the word that the trace of blocks and emitted code that follows calls have in common.
//! It must know neither of them.

use grind_types::addr::GuestAddr;

/// How control is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// A call of this address.
    Call(GuestAddr),
    /// An indirect call.
    CallIndirect,
    /// A return.
    Return,
    /// An indirect jump.
    JumpIndirect,
    /// A jump to this address.
    Jump(GuestAddr),
    /// A conditional jump to this address, taken.
    Taken(GuestAddr),
    /// No jump: what follows is on the other side of a boundary.
    Onward(GuestAddr),
}

impl Transfer {
    /// Whether only the program's state says where it leads.
    pub fn is_indirect(self) -> bool {
        matches!(self, Self::CallIndirect | Self::JumpIndirect)
    }
}
