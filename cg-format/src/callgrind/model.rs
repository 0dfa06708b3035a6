//! Parts of a callgrind profile in memory: their functions, and what happened at each position.
//!
//! Costs of a part are stored one after another in the function they belong to, a full row for each entry, so a profile
//! has few allocations however large it is. Nothing is added up here: a position may come more than once.

use std::collections::HashMap;

use super::chains::{Chain, Chains};
use super::names::{FileId, FunctionId};
use crate::count::TooLarge;

/// What stands at the beginning of a file and concerns all its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The program that wrote the profile, with its version; empty if it does not say.
    pub creator: Vec<u8>,
    /// The process that was profiled.
    pub pid: Option<u64>,
    /// Program and arguments, as in the file; see [`command_line`].
    pub cmd: Vec<u8>,
    /// Free text about the run, one line each, such as `I1 cache: 32768 B, 64 B, 8-way associative`.
    pub desc: Vec<Vec<u8>>,
}

/// What stands at the beginning of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartHeader {
    /// The number of the part, from 1.
    pub number: Option<u64>,
    /// The thread that the part is about, if threads are kept apart.
    pub thread: Option<u64>,
    /// Free text about the part, such as `Trigger: Program termination`.
    pub desc: Vec<Vec<u8>>,
    /// What positions consist of.
    pub positions: Positions,
    /// Events that need an explanation.
    pub types: Vec<EventType>,
    /// Names of the events, in the order of the costs.
    pub events: Vec<String>,
}

/// What a position consists of in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// The address of the instruction.
    pub instr: bool,
    /// The source line.
    pub line: bool,
}

impl Default for Positions {
    fn default() -> Self {
        Self { instr: false, line: true }
    }
}

/// An event that needs an explanation: `event: NAME : MEANING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// The name in the `events:` line.
    pub name: Vec<u8>,
    /// What it means; a formula may stand before it.
    pub meaning: Vec<u8>,
}

/// A place in the code, within a file that is known otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The address of the instruction relative to its object, as symbols have it; 0 if it is not known.
    pub addr: u64,
    /// The source line, from 1; 0 if it is not known.
    pub line: u32,
}

/// A place in the code that belongs to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The place.
    pub place: Place,
    /// The file of the line: another one than the function's where code was inlined.
    pub file: FileId,
}

/// What a call is, but for its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function that was called.
    pub callee: FunctionId,
    /// Its first instruction and line.
    pub target: Place,
    /// How often; 0 for a call that was still going on when the part began.
    pub count: u64,
}

/// A jump within a function or, without counting as a call, to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Where it leads.
    pub target: Position,
    /// The function that it leads to, if it is another one.
    pub function: Option<FunctionId>,
    /// How often.
    pub kind: JumpKind,
}

/// How often a jump was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpKind {
    /// An unconditional one.
    Always {
        /// Times executed.
        count: u64,
    },
    /// A conditional one.
    Conditional {
        /// Times that it jumped.
        taken: u64,
        /// Times executed.
        executed: u64,
    },
}

/// Something that happened at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub at: Position,
    /// What.
    pub site: Site,
    /// The inlined function that it belongs to, if that is known (`cfni=`). Its file is that of the position.
    pub inlined: Option<FunctionId>,
}

/// What happened at a position; costs are found by [`Body::costs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Instructions were executed: self cost.
    Row {
        /// Where the costs are.
        costs: usize,
    },
    /// A function was called: inclusive cost.
    Call {
        /// Whom and how often.
        call: Call,
        /// Where the costs are.
        costs: usize,
    },
    /// A jump, which has no cost of its own.
    Jump(Jump),
}

/// A function in a part.
#[derive(Clone, Debug)]
pub struct Body {
    /// Which function.
    pub function: FunctionId,
    /// What happened in it, in the order in which it was added.
    pub entries: Vec<Entry>,
    costs: Vec<i64>,
    width: usize,
}

impl Body {
    /// The costs of an entry, one for each event.
    #[must_use]
    pub fn costs(&self, at: usize) -> &[i64] {
        &self.costs[at..at + self.width]
    }

    fn store(&mut self, costs: &[i64]) -> usize {
        let at = self.costs.len();
        self.costs.extend_from_slice(costs);
        self.costs.resize(at + self.width, 0);
        at
    }
}

/// A part of a profile: a dump.
#[derive(Clone, Debug)]
pub struct Part {
    /// What stands before the costs; its events were fixed when the part was made.
    pub header: PartHeader,
    bodies: Vec<Body>,
    finder: HashMap<FunctionId, usize>,
    scratch: Vec<i64>,
    inlined: Option<FunctionId>,
    chains: Chains,
}

impl Part {
    /// A part without costs.
    #[must_use]
    pub fn new(header: PartHeader) -> Self {
        let chains = Chains::new(header.events.len());
        Self { header, bodies: Vec::new(), finder: HashMap::new(), scratch: Vec::new(), inlined: None, chains }
    }

    /// The functions, in the order in which they first came.
    #[must_use]
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// Adds self cost of a function; positions may come in any order and more than once. `costs` has a value for each
    /// event; zeros at the end may be left out.
    ///
    /// # Errors
    /// [`TooLarge`] when a cost does not fit in 63 bits; so do the methods below.
    pub fn add_row(&mut self, function: FunctionId, at: Position, costs: &[u64]) -> Result<(), TooLarge> {
        let costs = self.narrow(costs)?;
        self.push_row(function, at, &costs);
        self.scratch = costs;
        Ok(())
    }

    /// Adds a call with its inclusive cost.
    ///
    /// # Errors
    /// As [`Part::add_row`].
    pub fn add_call(&mut self, function: FunctionId, at: Position, call: Call, costs: &[u64]) -> Result<(), TooLarge> {
        let costs = self.narrow(costs)?;
        self.push_call(function, at, call, &costs);
        self.scratch = costs;
        Ok(())
    }

    /// What is added from now on belongs to this function, which was inlined into the one that it is added to.
    pub fn set_inlined(&mut self, inlined: Option<FunctionId>) {
        self.inlined = inlined;
    }

    /// Adds a jump.
    pub fn add_jump(&mut self, function: FunctionId, at: Position, jump: Jump) {
        let inlined = self.inlined;
        self.body(function).entries.push(Entry { at, site: Site::Jump(jump), inlined });
    }

    /// The chains of calls; none if they were not asked for.
    #[must_use]
    pub fn chains(&self) -> &Chains {
        &self.chains
    }

    /// Adds self costs of a chain of calls; returns its number. What [`Chains::add`] says.
    ///
    /// # Errors
    /// As [`Chains::add`].
    pub fn add_chain(&mut self, chain: Chain, costs: &[i64]) -> Result<u32, TooLarge> {
        self.chains.add(chain, costs)
    }

    pub(super) fn push_chain(
        &mut self,
        depth: usize,
        function: FunctionId,
        calls: u64,
        costs: &[i64],
    ) -> Result<(), TooLarge> {
        self.chains.add_at(depth, function, calls, costs)
    }

    pub(super) fn push_row(&mut self, function: FunctionId, at: Position, costs: &[i64]) {
        let inlined = self.inlined;
        let body = self.body(function);
        let costs = body.store(costs);
        body.entries.push(Entry { at, site: Site::Row { costs }, inlined });
    }

    pub(super) fn push_call(&mut self, function: FunctionId, at: Position, call: Call, costs: &[i64]) {
        let inlined = self.inlined;
        let body = self.body(function);
        let costs = body.store(costs);
        body.entries.push(Entry { at, site: Site::Call { call, costs }, inlined });
    }

    fn narrow(&mut self, costs: &[u64]) -> Result<Vec<i64>, TooLarge> {
        let mut narrow = std::mem::take(&mut self.scratch);
        narrow.clear();
        for cost in costs {
            narrow.push(i64::try_from(*cost).map_err(|_| TooLarge)?);
        }
        Ok(narrow)
    }

    fn body(&mut self, function: FunctionId) -> &mut Body {
        let width = self.header.events.len();
        // Rows of a function mostly come together.
        if self.bodies.last().is_some_and(|body| body.function == function) {
            return self.bodies.last_mut().expect("there is one");
        }
        let next = self.bodies.len();
        let at = *self.finder.entry(function).or_insert(next);
        if at == next {
            self.bodies.push(Body { function, entries: Vec::new(), costs: Vec::new(), width });
        }
        &mut self.bodies[at]
    }

    /// The sum of all self costs, one value for each event.
    #[must_use]
    pub fn total(&self) -> Vec<i128> {
        let mut total = vec![0; self.header.events.len()];
        for body in &self.bodies {
            for entry in &body.entries {
                if let Site::Row { costs } = entry.site {
                    total.iter_mut().zip(body.costs(costs)).for_each(|(sum, cost)| *sum += i128::from(*cost));
                }
            }
        }
        total
    }
}

/// The text of a `cmd:` line: the program as it was called and its arguments, in which line breaks and backslashes are
/// escaped. Two blanks stand after the colon of that line, of which one is the first byte here.
#[must_use]
pub fn command_line<'a>(program: &[u8], arguments: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = [b" ", program].concat();
    for argument in arguments {
        text.push(b' ');
        for byte in argument {
            match byte {
                b'\n' => text.extend_from_slice(b"\\n"),
                b'\\' => text.extend_from_slice(b"\\\\"),
                byte => text.push(*byte),
            }
        }
    }
    text
}

/// The name of a function in a context: a recursion level above 1 as `f'2`, then the callers that tell it apart,
/// nearest first, as `f'2'caller'main`.
#[must_use]
pub fn context_name<'a>(name: &[u8], level: u32, callers: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = name.to_vec();
    if level > 1 {
        text.extend_from_slice(format!("'{level}").as_bytes());
    }
    for caller in callers {
        text.push(b'\'');
        text.extend_from_slice(caller);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::*;

    #[test]
    fn contexts_are_part_of_the_name() {
        assert_eq!(context_name(b"f", 1, []), b"f");
        assert_eq!(context_name(b"f", 3, [&b"g"[..], b"main"]), b"f'3'g'main");
    }

    #[test]
    fn arguments_are_escaped_and_the_program_is_not() {
        assert_eq!(command_line(b"./a\\b", [&b"x\ny"[..], b"\\"]), b" ./a\\b x\\ny \\\\");
    }

    #[test]
    fn totals_are_sums_of_rows_alone() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let main = names.function(b"main", file, object);
        let at = Position { place: Place::default(), file };
        let mut part = Part::new(PartHeader { events: vec!["Ir".into(), "Dr".into()], ..PartHeader::default() });
        part.add_row(main, at, &[5]).unwrap();
        part.add_row(main, at, &[1, 2]).unwrap();
        let call = Call { callee: main, target: Place::default(), count: 1 };
        part.add_call(main, at, call, &[100, 100]).unwrap();
        assert_eq!(part.add_row(main, at, &[u64::MAX]), Err(TooLarge));
        assert_eq!(part.total(), [6, 2]);
    }
}
