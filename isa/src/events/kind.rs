//! Whether an instruction reads, writes or modifies its explicit memory operand. The decoder's library knows, but takes its
//! time: its answer depends on the opcode alone, so it is asked once for each. It must never be asked with a mask register
//! in place: what a mask does is said elsewhere.

use std::sync::atomic::{AtomicU8, Ordering};

use iced_x86::{Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register};

use super::Kind;

/// Slots for all opcodes.
pub(super) const CODES: usize = 8192;

const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
const READ: u8 = 2;
const WRITE: u8 = 3;
const MODIFY: u8 = 4;

/// What is known so far, by `Code`. Whoever comes first fills in the same value, so no order is needed.
static KNOWN: [AtomicU8; CODES] = [const { AtomicU8::new(UNKNOWN) }; CODES];

/// What `ins` does to its explicit memory operand; none if it only computes its address, or gives advice.
pub(super) fn operand_kind(ins: &Instruction) -> Option<Kind> {
    let slot = &KNOWN[ins.code() as usize % CODES];
    let mut known = slot.load(Ordering::Relaxed);
    if known == UNKNOWN {
        known = ask(ins);
        slot.store(known, Ordering::Relaxed);
    }
    match known {
        READ => Some(Kind::Read),
        WRITE => Some(Kind::Write),
        MODIFY => Some(Kind::Modify),
        _ => None,
    }
}

fn ask(ins: &Instruction) -> u8 {
    if is_hint(ins.mnemonic()) {
        return NONE;
    }
    let mut plain = *ins;
    plain.set_op_mask(Register::None);
    let Some(n) = (0..plain.op_count()).find(|&n| plain.op_kind(n) == OpKind::Memory) else { return NONE };
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(&plain, InstructionInfoOptions::NO_REGISTER_USAGE);
    match info.op_access(n) {
        OpAccess::Read | OpAccess::CondRead => READ,
        OpAccess::Write | OpAccess::CondWrite => WRITE,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => MODIFY,
        OpAccess::None | OpAccess::NoMemAccess => NONE,
    }
}

/// Instructions that have a memory operand and do nothing to it that a program can see: advice to the caches, and bounds
/// registers, which are no-ops since no kernel supports them any more.
pub(super) fn is_hint(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Clflush
            | M::Clflushopt
            | M::Clwb
            | M::Cldemote
            | M::Bndmk
            | M::Bndmov
            | M::Bndcl
            | M::Bndcu
            | M::Bndcn
            | M::Bndldx
            | M::Bndstx
    )
}
