//! One step by a frame description: from the registers of a function to those of its caller.
//!
//! Invariant: descriptions are not trusted. Expressions end after a bounded number of operations, and what they ask of
//! registers that are not known makes the result unknown, not 0.

use std::ops::Range;

use gimli::{
    CfaRule, EhFrame, EhFrameOffset, Encoding, EndianSlice, EvaluationResult, LittleEndian, Location, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection, Value,
};

use crate::module::Module;
use crate::register::{R12, R15, RBP, RBX, RSP};
use crate::{Memory, Registers, word};

/// Operations of one expression; those that compilers and C libraries write have at most a dozen.
const MOST_OPERATIONS: u32 = 1000;

/// What is known of a function's frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// See [`crate::Frame::cfa`].
    pub(crate) cfa: Option<u64>,
    /// The registers once it has returned; `None`: it is the outermost one.
    pub(crate) caller: Option<Registers>,
    /// It is the return of a signal's handler.
    pub(crate) signal: bool,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The step out of the function whose description covers `pc`. `None` if there is none, or it cannot be followed.
pub(crate) fn step(
    module: &Module,
    memory: &dyn Memory,
    context: &mut UnwindContext<usize>,
    at: &Registers,
    pc: u64,
) -> Option<Step> {
    let bases = module.bases();
    let section = EhFrame::new(&module.frames, LittleEndian);
    let offset = EhFrameOffset(module.description_of(pc)?);
    let description = section.fde_from_offset(&bases, offset, EhFrame::cie_from_offset).ok()?;
    if !description.contains(pc) {
        return None;
    }
    let row = description.unwind_info_for_address(&section, &bases, context, pc).ok()?;
    let evaluation = Evaluation { section: &section, encoding: description.cie().encoding(), memory, at };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            at.general.get(usize::from(register.0)).copied()??.checked_add_signed(*offset)?
        }
        CfaRule::Expression(e) => evaluation.value(e, None)?,
    };
    let signal = description.is_signal_trampoline();
    let outermost = Step { cfa: Some(cfa), caller: None, signal };
    let recovered = |number: u16| {
        let rule = row.register(gimli::Register(number));
        match rule? {
            RegisterRule::Offset(offset) => word(memory, cfa.checked_add_signed(offset)?),
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(offset),
            RegisterRule::Register(other) => at.general.get(usize::from(other.0)).copied()?,
            RegisterRule::Expression(e) => word(memory, evaluation.value(&e, Some(cfa))?),
            RegisterRule::ValExpression(e) => evaluation.value(&e, Some(cfa)),
            RegisterRule::SameValue => at.general.get(usize::from(number)).copied()?,
            _ => None,
        }
    };
    let return_address = description.cie().return_address_register();
    match row.register(return_address) {
        // Nobody is returned to.
        Some(RegisterRule::Undefined) => return Some(outermost),
        None => return None,
        Some(_) => {}
    }
    let rip = recovered(return_address.0)?;
    let mut general = [None; crate::register::COUNT];
    for (number, value) in general.iter_mut().enumerate() {
        let unsaid = row.register(gimli::Register(number as u16)).is_none();
        // What a function does not speak of it leaves alone, if it must.
        *value = match number {
            RSP if unsaid => Some(cfa),
            RBX | RBP | R12..=R15 if unsaid => at.general[number],
            _ => recovered(number as u16),
        };
    }
    Some(Step { cfa: Some(cfa), caller: Some(Registers { rip, general }), signal })
}

/// The addresses that the description says it is of which covers `pc`, or comes before it.
pub(crate) fn function(module: &Module, pc: u64) -> Option<Range<u64>> {
    let section = EhFrame::new(&module.frames, LittleEndian);
    let offset = EhFrameOffset(module.description_of(pc)?);
    let description = section.fde_from_offset(&module.bases(), offset, EhFrame::cie_from_offset).ok()?;
    let start = description.initial_address();
    Some(start..start.checked_add(description.len())?)
}

/// What expressions may ask of.
struct Evaluation<'a> {
    section: &'a EhFrame<Slice<'a>>,
    encoding: Encoding,
    memory: &'a dyn Memory,
    at: &'a Registers,
}

impl Evaluation<'_> {
    /// The value that an expression comes to, with `first` on its stack.
    fn value(&self, expression: &UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let mut evaluation = expression.get(self.section).ok()?.evaluation(self.encoding);
        evaluation.set_max_iterations(MOST_OPERATIONS);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.at.general.get(usize::from(register.0)).copied();
                    // The program counter has a number, too.
                    let value = if register.0 == 16 { self.at.rip } else { value?? };
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let mut bytes = [0; 8];
                    let wanted = bytes.get_mut(..usize::from(size))?;
                    if self.memory.read(address, wanted) != usize::from(size) {
                        return None;
                    }
                    evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(bytes))).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().as_slice() {
            [piece] => match piece.location {
                Location::Address { address } => Some(address),
                _ => None,
            },
            _ => None,
        }
    }
}
