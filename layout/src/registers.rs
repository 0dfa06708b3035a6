//! Registers, and which of them translated code takes from the program; where the program's values are meanwhile is a word of the
//! thread's slot. Whoever reads or writes a thread's registers must ask here which ones are not the program's.

use crate::SlotWord;

/// General registers by their hardware numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gpr(pub u8);

impl Gpr {
    /// rax.
    pub const RAX: Self = Self(0);
    /// rcx.
    pub const RCX: Self = Self(1);
    /// rdx.
    pub const RDX: Self = Self(2);
    /// rsp.
    pub const RSP: Self = Self(4);
    /// rbp.
    pub const RBP: Self = Self(5);
    /// In translated code that simulates: free, as r10 is.
    pub const R8: Self = Self(8);
    /// In translated code that simulates caches: the clock. Where it just follows calls: what the thread has executed.
    pub const R9: Self = Self(9);
    /// In translated code that does more than counting: free for whatever is done between the program's instructions.
    pub const R10: Self = Self(10);
    /// Points to the thread's slot words in translated code ([`layout::BASE`]).
    pub const R11: Self = Self(11);

    /// Where the program's value of a register is that translated code has taken, r11 or one of these.
    #[inline]
    pub fn kept(self, stolen_registers: StolenRegisters) -> Option<SlotWord> {
        let all = stolen_registers.bound().iter().chain(stolen_registers.free());
        all.copied().find(|(r, _)| *r == self).map(|(_, word)| word)
    }

    /// Its bit in a set.
    pub const fn bit(self) -> u16 {
        1 << self.0
    }

    /// Its number without the bit of a prefix.
    pub const fn low(self) -> u8 {
        self.0 & 7
    }

    /// The bit of its number that a prefix has.
    pub const fn high(self) -> u8 {
        self.0 >> 3
    }
}

/// Which registers translated code has taken from the program. Some are *bound*: they hold something of ours all the time, and
/// another register has their place in instructions that name them. Others are *free* for whatever is done between the
/// program's instructions, and hold what the program has in them while one is executed that names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StolenRegisters {
    /// r11 alone: it only counts.
    #[default]
    R11,
    /// r10, too, which is free.
    R10,
    /// And r8, which is free.
    R10AndR8,
    /// And r9, the clock of the caches.
    Clock,
    /// r10, too, which is free, and r9, the instructions that the thread has executed.
    Total,
}

impl StolenRegisters {
    /// Those that are free, and where what the program has in them is.
    pub const fn free(self) -> &'static [(Gpr, SlotWord)] {
        match self {
            Self::R11 => &[],
            Self::R10 | Self::Total => &[(Gpr::R10, SlotWord::R10)],
            Self::R10AndR8 | Self::Clock => &[(Gpr::R10, SlotWord::R10), (Gpr::R8, SlotWord::R8)],
        }
    }

    /// Those that are bound, and where what the program has in them is.
    pub const fn bound(self) -> &'static [(Gpr, SlotWord)] {
        match self {
            Self::Clock | Self::Total => &[(Gpr::R11, SlotWord::R11), (Gpr::R9, SlotWord::R9)],
            _ => &[(Gpr::R11, SlotWord::R11)],
        }
    }

    /// Those that are free, as a set.
    #[inline]
    pub fn free_set(self) -> u16 {
        self.free().iter().fold(0, |all, (r, _)| all | r.bit())
    }

    /// Those that are bound, as a set.
    #[inline]
    pub fn bound_set(self) -> u16 {
        self.bound().iter().fold(0, |all, (r, _)| all | r.bit())
    }

    /// Whether `r` is one of them.
    #[inline]
    pub fn has(self, r: Gpr) -> bool {
        (self.free_set() | self.bound_set()) & r.bit() != 0
    }

    /// Whether r9 is the clock.
    #[inline]
    pub fn clock(self) -> bool {
        self == Self::Clock
    }

    /// Whether r9 is the instructions that the thread has executed ([`SlotWord::Total`]).
    #[inline]
    pub fn total(self) -> bool {
        self == Self::Total
    }

    /// The word that r9 holds in translated code, if it holds one.
    #[inline]
    pub fn in_r9(self) -> Option<SlotWord> {
        match self {
            Self::Clock => Some(SlotWord::Clock),
            Self::Total => Some(SlotWord::Total),
            _ => None,
        }
    }
}
