//! Inlined functions in a profile of calls: named beside costs, or functions of their own.
//!
//! As functions of their own they have what was executed in them, and whatever that called; whoever they were inlined into
//! calls them, from the line of the call, for just as much. How often is not known: such calls have the count 0. Inclusive costs
//! are a partition of those of the function that has the code, so nothing is counted twice and nothing is lost.

use std::collections::BTreeMap;

use cg_format::callgrind::{Call, FileId, FunctionId, Place, Position};
use cg_format::count::TooLarge;
use grind_symbols::Inlined;

use super::{Maker, Program};

/// What is known of inlined functions while a part is made.
pub(super) struct Inlines {
    mode: Inlined,
    /// Calls of inlined functions, by who has the code and the inlined function's number.
    calls: BTreeMap<(FunctionId, u32), Called>,
}

/// A function inlined into another one.
struct Called {
    /// Who calls it: the function that has the code, or one that was inlined into that.
    caller: FunctionId,
    function: FunctionId,
    /// The line of the call.
    line: u32,
    /// The least address of what was executed in it or called from it.
    addr: u64,
    costs: Vec<u64>,
}

impl Inlines {
    pub(super) fn new(mode: Inlined) -> Self {
        Self { mode, calls: BTreeMap::new() }
    }
}

impl<P: Program> Maker<'_, P> {
    /// Whom something at an address of `function` belongs to, which costs so much there.
    pub(super) fn within(&mut self, function: FunctionId, addr: u64, costs: &[u64]) -> Result<FunctionId, TooLarge> {
        if self.inlines.mode == Inlined::Hidden {
            return Ok(function);
        }
        let source = self.program.source(addr);
        if self.inlines.mode == Inlined::Named {
            let inlined = self.program.inlined(source.inlined).filter(|inline| inline.name != b"???");
            let inlined = inlined.map(|inline| {
                let file = self.position(addr).file;
                let object = self.names.get(function).object;
                self.names.function(inline.name, file, object)
            });
            self.part.set_inlined(inlined);
            return Ok(function);
        }
        let innermost = self.inlined_function(function, source.inlined);
        let mut number = source.inlined;
        while let Some(inline) = self.program.inlined(number) {
            let caller = self.inlined_function(function, inline.outer);
            let callee = self.inlined_function(function, number);
            let called = self.inlines.calls.entry((function, number)).or_insert_with(|| Called {
                caller,
                function: callee,
                line: inline.call_line,
                addr: source.addr,
                costs: Vec::new(),
            });
            called.addr = called.addr.min(source.addr);
            called.costs.resize(called.costs.len().max(costs.len()), 0);
            for (sum, cost) in called.costs.iter_mut().zip(costs) {
                *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
            }
            number = inline.outer;
        }
        Ok(innermost)
    }

    /// The function with this number among those that were inlined into `function`; 0 is that one itself.
    fn inlined_function(&mut self, function: FunctionId, number: u32) -> FunctionId {
        let Some(inline) = self.program.inlined(number) else { return function };
        let (file, object) = (self.names.file(inline.file), self.names.get(function).object);
        self.names.function(inline.name, file, object)
    }

    /// The function that a jump leads to, if that is another one: `function` if it leaves the one that has the code, `home`.
    pub(super) fn jump_to(
        &mut self,
        function: Option<FunctionId>,
        home: FunctionId,
        (from, to): (u64, u64),
    ) -> Result<Option<FunctionId>, TooLarge> {
        if self.inlines.mode != Inlined::Separate {
            return Ok(function);
        }
        let (from, to) = (self.program.source(from).inlined, self.program.source(to).inlined);
        let (from, to) = (self.inlined_function(home, from), self.inlined_function(function.unwrap_or(home), to));
        Ok((from != to).then_some(to))
    }

    /// Adds the calls of all inlined functions.
    pub(super) fn inlined_calls(&mut self) -> Result<(), TooLarge> {
        for called in std::mem::take(&mut self.inlines.calls).into_values() {
            // A jump alone costs nothing.
            if called.costs.iter().all(|cost| *cost == 0) {
                continue;
            }
            let (here, there) = (self.names.get(called.caller).file, self.names.get(called.function).file);
            let at = |line, file: FileId| Position { place: Place { addr: called.addr, line }, file };
            let target = at(0, there).place;
            let call = Call { callee: called.function, target, count: 0 };
            self.part.add_call(called.caller, at(called.line, here), call, &called.costs)?;
        }
        Ok(())
    }
}
