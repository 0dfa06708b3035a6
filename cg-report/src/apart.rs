//! Inlined functions as functions of their own, beside the profile as it was recorded.
//!
//! Which of them an instruction belongs to the profile says itself (`cfni=`, [`Apart`]), or the debug information of the object that ran
//! ([`by_code`]). An instruction belongs to one of them, so self costs only change hands and add up to what they were. What calls
//! an inlined function costs what was executed in it and in all that it called; how often that was nobody knows, so its count is 0.

use std::collections::HashMap;
use std::path::Path;

use cg_format::callgrind::{Call, FunctionId, Jump, Names, ObjectId, PartHeader, Place, Position, Sink};
use cg_format::count::TooLarge;
use cg_model::Detail;

use crate::elf::Elf;
use crate::inline::Frame;
use crate::renaming::Renaming;
use crate::stretches;

/// Where an inlined function is called.
fn somewhere(file: cg_format::callgrind::FileId) -> Position {
    Position { place: Place::default(), file }
}

fn inlined(callee: FunctionId) -> Call {
    Call { callee, target: Place::default(), count: 0 }
}

/// A part of a profile with its inlined functions apart, made while it is read; nothing as long as it names none.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// What there is, once something was inlined.
    pub(crate) detail: Option<Detail>,
    within: Option<FunctionId>,
}

impl Apart {
    /// What follows belongs to this function; `so_far` is what came before.
    pub(crate) fn inlined(&mut self, function: Option<FunctionId>, so_far: Option<&Detail>) {
        self.within = function;
        if let (Some(_), None, Some(so_far)) = (function, &self.detail, so_far) {
            self.detail = Some(so_far.clone());
        }
    }
}

impl Sink for Apart {
    fn part(&mut self, _header: &PartHeader) {}

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        let Some(detail) = &mut self.detail else { return Ok(()) };
        match self.within.filter(|within| *within != function) {
            Some(within) => {
                detail.call(function, somewhere(at.file), &inlined(within), costs)?;
                detail.row(within, at, costs)
            }
            None => detail.row(function, at, costs),
        }
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        let Some(detail) = &mut self.detail else { return Ok(()) };
        match self.within.filter(|within| *within != function) {
            Some(within) => {
                detail.call(function, somewhere(at.file), &inlined(within), costs)?;
                detail.call(within, at, call, costs)
            }
            None => detail.call(function, at, call, costs),
        }
    }

    fn jump(&mut self, _function: FunctionId, _at: Position, _jump: &Jump) {}
}

/// What is known of an object's code.
struct Known {
    elf: Elf,
    /// Chains of inlined functions at addresses, as numbers of [`Finder::chains`].
    at: HashMap<u64, u32>,
}

struct Finder<'a> {
    names: &'a mut Names,
    renaming: Renaming<'a>,
    /// Functions by object and name.
    functions: HashMap<(ObjectId, Vec<u8>), FunctionId>,
    /// Outermost first; the first one is empty.
    chains: Vec<Vec<FunctionId>>,
    numbers: HashMap<Vec<FunctionId>, u32>,
    objects: HashMap<ObjectId, Option<Known>>,
}

/// Takes inlined functions apart by the debug information of objects, where that fits what ran: of `all` functions, or of those that cost
/// most by an event. Nothing if none is known.
///
/// # Errors
/// A name cannot be changed as options want it, or a sum does not fit.
pub(crate) fn by_code(
    names: &mut Names,
    detail: &Detail,
    renaming: Renaming<'_>,
    root: Option<&Path>,
    event: usize,
    all: bool,
) -> anyhow::Result<Option<Detail>> {
    if !detail.addresses {
        return Ok(None);
    }
    let mut costs = vec![0_i64; names.functions().len()];
    for row in &detail.rows {
        let cost = &mut costs[row.function.index()];
        *cost = cost.saturating_add(detail.row_cost(row, event));
    }
    let wanted = stretches::wanted(&costs, all);
    let known = names.functions().map(|id| ((names.get(id).object, names.function_name(id).to_vec()), id));
    let mut functions = HashMap::new();
    known.for_each(|(key, id)| _ = functions.entry(key).or_insert(id));
    let mut finder = Finder {
        names,
        renaming,
        functions,
        chains: vec![Vec::new()],
        numbers: HashMap::from([(Vec::new(), 0)]),
        objects: HashMap::new(),
    };
    let mut rest = &detail.rows[..];
    while let Some(first) = rest.first() {
        let (own, others) = rest.split_at(rest.iter().take_while(|row| row.function == first.function).count());
        rest = others;
        if wanted[first.function.index()] {
            let places: Vec<(u64, Position)> = own.iter().map(|row| (row.at().place.addr, row.at())).collect();
            finder.learn(first.function, &places, root)?;
        }
    }
    if finder.chains.len() == 1 {
        return Ok(None);
    }
    Ok(Some(finder.apart(detail)?))
}

impl Finder<'_> {
    /// Finds out what is inlined at the addresses of a function, which ascend.
    fn learn(&mut self, function: FunctionId, places: &[(u64, Position)], root: Option<&Path>) -> anyhow::Result<()> {
        let object = self.names.get(function).object;
        let name = self.names.object_name(object);
        let open =
            || Some(Known { elf: Elf::open(name, root).filter(|elf| elf.inlines.is_some())?, at: HashMap::new() });
        let Some(mut known) = self.objects.remove(&object).unwrap_or_else(open) else {
            self.objects.insert(object, None);
            return Ok(());
        };
        let mut executed: Vec<u64> = places.iter().map(|(addr, _)| *addr).filter(|addr| *addr != 0).collect();
        executed.dedup();
        if stretches::fits(&known.elf, &executed) {
            for (addr, at) in places.iter().filter(|(addr, _)| *addr != 0) {
                if !known.at.contains_key(addr) {
                    let frames = known.elf.inlines.as_ref().map(|inlines| inlines.frames(*addr)).unwrap_or_default();
                    let chain = self.chain(object, &frames, *at)?;
                    known.at.insert(*addr, chain);
                }
            }
        }
        self.objects.insert(object, Some(known));
        Ok(())
    }

    /// The number of a chain of functions that were inlined; the outermost frame is the function itself.
    fn chain(&mut self, object: ObjectId, frames: &[Frame], at: Position) -> anyhow::Result<u32> {
        let mut chain = Vec::new();
        for frame in frames.iter().rev().skip(1) {
            let name = self.renaming.function(frame.name.as_bytes())?;
            let key = (object, name);
            let function = match self.functions.get(&key) {
                Some(known) => *known,
                None => {
                    let innermost = std::ptr::eq(frame, &frames[0]);
                    let file =
                        if innermost { at.file } else { self.names.file(&self.renaming.file(frame.file.as_bytes())?) };
                    let made = self.names.function(&key.1, file, object);
                    self.functions.insert(key, made);
                    made
                }
            };
            chain.push(function);
        }
        if let Some(known) = self.numbers.get(&chain) {
            return Ok(*known);
        }
        let number = u32::try_from(self.chains.len()).map_err(|_| TooLarge)?;
        self.chains.push(chain.clone());
        self.numbers.insert(chain, number);
        Ok(number)
    }

    /// The functions that an address of a function belongs to, from itself on. Where the profile has inlined functions apart already,
    /// that is the innermost one alone.
    fn stack(&self, function: FunctionId, addr: u64, stack: &mut Vec<FunctionId>) {
        stack.clear();
        stack.push(function);
        let object = self.names.get(function).object;
        let known = self.objects.get(&object).and_then(Option::as_ref).and_then(|known| known.at.get(&addr));
        let chain = known.map_or(&[][..], |number| &self.chains[*number as usize]);
        let name = |id: FunctionId| self.names.function_name(id);
        if chain.last().is_some_and(|last| name(*last) != name(function)) {
            stack.extend_from_slice(chain);
        }
    }

    fn apart(&self, detail: &Detail) -> Result<Detail, TooLarge> {
        let width = detail.width();
        let mut apart = Detail::default();
        apart.part(&PartHeader { events: vec![String::new(); width], ..PartHeader::default() });
        let mut stack = Vec::new();
        let mut costs = vec![0; width];
        let enter = |apart: &mut Detail, stack: &[FunctionId], costs: &[i64]| {
            stack.windows(2).try_for_each(|pair| {
                let file = self.names.get(pair[0]).file;
                apart.call(pair[0], somewhere(file), &inlined(pair[1]), costs)
            })
        };
        for row in &detail.rows {
            self.stack(row.function, row.at().place.addr, &mut stack);
            costs.iter_mut().enumerate().for_each(|(event, cost)| *cost = detail.row_cost(row, event));
            enter(&mut apart, &stack, &costs)?;
            apart.row(stack[stack.len() - 1], row.at(), &costs)?;
        }
        for call in &detail.calls {
            self.stack(call.function, call.at().place.addr, &mut stack);
            costs.iter_mut().enumerate().for_each(|(event, cost)| *cost = detail.call_cost(call, event));
            enter(&mut apart, &stack, &costs)?;
            let made = Call { callee: call.callee, target: Place::default(), count: call.count };
            apart.call(stack[stack.len() - 1], call.at(), &made, &costs)?;
        }
        apart.finish()?;
        Ok(apart)
    }
}

#[cfg(test)]
mod tests;
