//! Where a function stores which frame runs: an interpreter that runs the functions it calls in the same loop says so by a store, and by
//! nothing else. The stores are found in its machine code.
//!
//! What is on the stack is told by its distance from where the stack pointer was before the call, which unwind tables know, so that it
//! does not matter by which register it is addressed. Parts of the function that the compiler has put elsewhere are reached by jumps,
//! and are known by unwind tables not to be functions: the stack has been grown where they begin.
//!
//! Invariant: what is found on the stack is a store to that place and no other; of stores to a thread's state it is not known whose
//! state it is, so that has to be looked at when they are executed.

use gimli::{BaseAddresses, CfaRule, EhFrame, LittleEndian, UnwindContext, UnwindSection};
use grind_symbols::{Object, Svma};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};

/// Where it is stored which frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// At an offset in a structure on the stack, whose address the function stores at another offset from some register.
    OnStack {
        /// That offset.
        link: u64,
        /// The first one.
        offset: i64,
    },
    /// At an offset in what a register has the address of.
    By {
        /// The offset.
        offset: u64,
    },
}

/// A store of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Store {
    /// The instruction.
    pub(super) at: Svma,
    /// The register that is stored.
    pub(super) register: u8,
    /// The register with the address that the offset counts from.
    pub(super) base: u8,
}

/// The register and the offset from it that is where the stack pointer was before the call, from an address on.
type Row = (u64, Register, i64);

/// A part of a function.
struct Piece {
    start: u64,
    code: Vec<u8>,
    rows: Vec<Row>,
}

/// How far behind the beginning the address of the structure on the stack is stored.
const PROLOGUE: usize = 64;

impl Piece {
    fn instructions(&self) -> impl Iterator<Item = Instruction> + use<'_> {
        Decoder::with_ip(64, &self.code, self.start, DecoderOptions::NONE).into_iter()
    }

    fn end(&self) -> u64 {
        self.start + self.code.len() as u64
    }

    /// How far a memory operand is from where the stack pointer was before the call, if it is on the stack.
    fn place(&self, insn: &Instruction) -> Option<i64> {
        let (_, register, offset) = *self.rows.iter().rev().find(|(from, ..)| *from <= insn.ip())?;
        let plain = insn.memory_base() == register && insn.memory_index() == Register::None;
        plain.then(|| (insn.memory_displacement64() as i64).wrapping_sub(offset))
    }

    /// Where on the stack the structure is whose address is stored at `link`.
    fn structure(&self, link: u64) -> Option<i64> {
        let mut held: Vec<(Register, i64)> = Vec::new();
        for insn in self.instructions().take(PROLOGUE) {
            let stored = insn.code() == Code::Mov_rm64_r64
                && insn.op0_kind() == iced_x86::OpKind::Memory
                && insn.memory_displacement64() == link
                && insn.memory_index() == Register::None;
            if stored && let Some((_, place)) = held.iter().rev().find(|(r, _)| *r == insn.op1_register()) {
                return Some(*place);
            }
            if insn.code() == Code::Lea_r64_m
                && let Some(place) = self.place(&insn)
            {
                held.push((insn.op0_register(), place));
            }
        }
        None
    }
}

/// Unwind tables of a file.
struct Tables {
    bytes: Vec<u8>,
    bases: BaseAddresses,
}

impl Tables {
    fn of(object: &Object) -> Option<Self> {
        let (at, bytes) = object.section_bytes(".eh_frame")?;
        let bases = BaseAddresses::default().set_eh_frame(at.0);
        Some(Self { bytes, bases })
    }

    /// The range that has the description of what is at `at`, and its rows.
    fn rows(&self, at: u64) -> Option<(u64, u64, Vec<Row>)> {
        let section = EhFrame::new(&self.bytes, LittleEndian);
        let described = section.fde_for_address(&self.bases, at, EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let mut table = described.rows(&section, &self.bases, &mut context).ok()?;
        let mut rows = Vec::new();
        while let Ok(Some(row)) = table.next_row() {
            if let CfaRule::RegisterAndOffset { register, offset } = row.cfa() {
                let register = match register.0 {
                    6 => Register::RBP,
                    7 => Register::RSP,
                    _ => Register::None,
                };
                rows.push((row.start_address(), register, *offset));
            }
        }
        Some((described.initial_address(), described.len(), rows))
    }
}

/// The most bytes of a function.
const MOST: u64 = 1 << 20;

/// The parts of the function of `size` bytes at `start`, itself first.
fn pieces(object: &Object, start: Svma, size: u64) -> Option<Vec<Piece>> {
    let tables = Tables::of(object)?;
    let code = object.bytes(start, size.min(MOST))?;
    let (_, _, rows) = tables.rows(start.0)?;
    let mut pieces = vec![Piece { start: start.0, code, rows }];
    let mut n = 0;
    while n < pieces.len() {
        let jumps = |insn: &Instruction| {
            matches!(insn.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
        };
        let mut away: Vec<u64> = pieces[n].instructions().filter(jumps).map(|insn| insn.near_branch_target()).collect();
        away.sort_unstable();
        away.dedup();
        for to in away {
            if pieces.iter().any(|piece| (piece.start..piece.end()).contains(&to)) {
                continue;
            }
            let Some((at, size, rows)) = tables.rows(to) else { continue };
            // A function begins with nothing on the stack but where it returns to.
            let is_function =
                rows.first().is_none_or(|(_, register, offset)| (*register, *offset) == (Register::RSP, 8));
            if !is_function && let Some(code) = object.bytes(Svma(at), size.min(MOST)) {
                pieces.push(Piece { start: at, code, rows });
            }
        }
        n += 1;
    }
    Some(pieces)
}

/// What is known of the stores of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// These are all.
    Stores(Vec<Store>),
    /// It has not the size of a loop over all instructions of an interpreter: whatever carries those out are functions of their own.
    Chained,
    /// They cannot be told.
    Unknown,
}

/// Less than that is no loop over instructions of CPython, each of which takes dozens of bytes. (They are over 200, which come to 70 KB and
/// more; what is left where they are functions of their own is 1 KB.)
const LEAST: usize = 16 << 10;

/// The stores to `holder` in the function of `size` bytes at `start`.
pub(super) fn find(object: &Object, start: Svma, size: u64, holder: Holder) -> Found {
    let Some(pieces) = pieces(object, start, size) else { return Found::Unknown };
    if pieces.iter().map(|piece| piece.code.len()).sum::<usize>() < LEAST {
        return Found::Chained;
    }
    match stores(&pieces, holder) {
        Some(found) => Found::Stores(found),
        None => Found::Unknown,
    }
}

fn stores(pieces: &[Piece], holder: Holder) -> Option<Vec<Store>> {
    let structure = match holder {
        Holder::OnStack { link, .. } => pieces[0].structure(link)?,
        Holder::By { .. } => 0,
    };
    let mut found = Vec::new();
    for piece in pieces {
        for insn in piece.instructions() {
            if insn.code() != Code::Mov_rm64_r64 || insn.op0_kind() != iced_x86::OpKind::Memory {
                continue;
            }
            let stores = match holder {
                Holder::OnStack { offset, .. } => piece.place(&insn) == Some(structure + offset),
                Holder::By { offset } => {
                    insn.memory_displacement64() == offset
                        && insn.memory_index() == Register::None
                        && insn.memory_base().is_gpr64()
                        && insn.memory_base() != Register::RSP
                        && insn.segment_prefix() == Register::None
                }
            };
            if stores {
                let (register, base) = (insn.op1_register().number() as u8, insn.memory_base().number() as u8);
                found.push(Store { at: Svma(insn.ip()), register, base });
            }
        }
    }
    // One function calls another and goes on when that returns: there is more than one.
    (found.len() > 1).then_some(found)
}
