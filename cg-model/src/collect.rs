//! Adds up a profile while it is read: by function and file, by call arc, and by source line.
//!
//! Nothing of the file is kept but sums. A *unit* is the part of a function that comes from one file: its own, or one
//! that was inlined into it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use cg_format::callgrind::{Call, FileId, FunctionId, IdHasher, Jump, PartHeader, Position, Sink};
use cg_format::count::TooLarge;

use crate::cost::Cost;

/// The part of a function that comes from one file.
#[derive(Debug)]
pub struct Unit {
    /// The function.
    pub function: FunctionId,
    /// The file.
    pub file: FileId,
    /// Self cost.
    pub cost: Cost,
    /// Whether it has costs of its own, be they 0; otherwise it is only known from calls.
    pub rows: bool,
}

/// All calls from a unit to a function.
#[derive(Debug)]
pub struct Arc {
    /// The unit that calls, an index into [`Collector::units`].
    pub caller: usize,
    /// The function that is called.
    pub callee: FunctionId,
    /// How often.
    pub count: u64,
    /// Inclusive cost.
    pub cost: Cost,
}

/// What happened at a line of a file.
#[derive(Debug, Default)]
pub struct Line {
    /// Self cost, nothing if there were only calls.
    pub cost: Option<Cost>,
    /// Calls, in the order in which they first came.
    pub calls: Vec<LineCall>,
}

/// All calls from a line to a function.
#[derive(Debug)]
pub struct LineCall {
    /// A caller, if there is but one; inlined lines may have several.
    pub caller: FunctionId,
    /// The function that is called.
    pub callee: FunctionId,
    /// How often.
    pub count: u64,
    /// Inclusive cost.
    pub cost: Cost,
}

/// Finds places by numbers. Both are small: a profile of millions of calls has one that fits in no cache.
pub(crate) type Finder<K> = HashMap<K, u32, BuildHasherDefault<IdHasher>>;

/// The sums of a profile.
#[derive(Debug, Default)]
pub struct Collector {
    by_line: bool,
    /// Parts of functions, in the order in which they first came.
    pub units: Vec<Unit>,
    /// Calls, likewise.
    pub arcs: Vec<Arc>,
    /// Source lines, likewise; none unless they are wanted.
    pub lines: Vec<(FileId, u32, Line)>,
    /// Sums of the rows of each part.
    pub parts: Vec<Cost>,
    unit_finder: Finder<(FunctionId, FileId)>,
    arc_finder: Finder<(u32, FunctionId)>,
    line_finder: Finder<(FileId, u32)>,
    call_finder: Finder<(u32, FunctionId, FunctionId)>,
    last_unit: usize,
    last_line: usize,
}

impl Collector {
    /// Nothing yet; lines are only kept if they are wanted.
    #[must_use]
    pub fn new(by_line: bool) -> Self {
        Self { by_line, ..Self::default() }
    }

    /// The unit of a function and a file, made if it is not there.
    pub fn unit(&mut self, function: FunctionId, file: FileId) -> usize {
        if self.units.get(self.last_unit).is_some_and(|unit| unit.function == function && unit.file == file) {
            return self.last_unit;
        }
        let units = &mut self.units;
        self.last_unit = *self.unit_finder.entry((function, file)).or_insert_with(|| {
            units.push(Unit { function, file, cost: Cost::default(), rows: false });
            small(units.len() - 1)
        }) as usize;
        self.last_unit
    }

    /// Adds what another profile says, whose functions and files have these numbers here.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum does not fit.
    pub fn append(&mut self, other: Self, functions: &[FunctionId], files: &[FileId]) -> Result<(), TooLarge> {
        let mut places = Vec::with_capacity(other.units.len());
        for unit in other.units {
            let at = self.unit(functions[unit.function.index()], files[unit.file.index()]);
            self.units[at].rows |= unit.rows;
            self.units[at].cost.add_cost(&unit.cost)?;
            places.push(at);
        }
        for arc in other.arcs {
            let at = self.arc(places[arc.caller], functions[arc.callee.index()]);
            self.arcs[at].count = self.arcs[at].count.checked_add(arc.count).ok_or(TooLarge)?;
            self.arcs[at].cost.add_cost(&arc.cost)?;
        }
        self.parts.extend(other.parts);
        for (file, line, known) in other.lines {
            let line = self.line(files[file.index()], line);
            if let Some(cost) = known.cost {
                self.lines[line].2.cost.get_or_insert_default().add_cost(&cost)?;
            }
            for call in known.calls {
                let (caller, callee) = (functions[call.caller.index()], functions[call.callee.index()]);
                self.line_call(line, caller, callee, call.count, call.cost.values())?;
            }
        }
        Ok(())
    }

    /// The calls, and nothing that finds them any more.
    pub(crate) fn take_arcs(&mut self) -> Vec<Arc> {
        self.arc_finder = Finder::default();
        std::mem::take(&mut self.arcs)
    }

    fn arc(&mut self, caller: usize, callee: FunctionId) -> usize {
        let arcs = &mut self.arcs;
        *self.arc_finder.entry((small(caller), callee)).or_insert_with(|| {
            arcs.push(Arc { caller, callee, count: 0, cost: Cost::default() });
            small(arcs.len() - 1)
        }) as usize
    }

    fn line_call(
        &mut self,
        line: usize,
        caller: FunctionId,
        callee: FunctionId,
        count: u64,
        costs: &[i64],
    ) -> Result<(), TooLarge> {
        let calls = &mut self.lines[line].2.calls;
        let at = *self.call_finder.entry((small(line), caller, callee)).or_insert_with(|| {
            calls.push(LineCall { caller, callee, count: 0, cost: Cost::default() });
            small(calls.len() - 1)
        }) as usize;
        calls[at].count = calls[at].count.checked_add(count).ok_or(TooLarge)?;
        calls[at].cost.add(costs)
    }

    fn line(&mut self, file: FileId, line: u32) -> usize {
        if self.lines.get(self.last_line).is_some_and(|last| (last.0, last.1) == (file, line)) {
            return self.last_line;
        }
        let lines = &mut self.lines;
        self.last_line = *self.line_finder.entry((file, line)).or_insert_with(|| {
            lines.push((file, line, Line::default()));
            small(lines.len() - 1)
        }) as usize;
        self.last_line
    }
}

/// A place as finders have it.
pub(crate) fn small(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 units and calls fit in memory")
}

impl Sink for Collector {
    fn part(&mut self, _header: &PartHeader) {
        self.parts.push(Cost::default());
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        let unit = self.unit(function, at.file);
        self.units[unit].rows = true;
        self.units[unit].cost.add(costs)?;
        if let Some(sum) = self.parts.last_mut() {
            sum.add(costs)?;
        }
        if self.by_line {
            let line = self.line(at.file, at.place.line);
            self.lines[line].2.cost.get_or_insert_default().add(costs)?;
        }
        Ok(())
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        let unit = self.unit(function, at.file);
        let callee = call.callee;
        let arc = self.arc(unit, callee);
        self.arcs[arc].count = self.arcs[arc].count.checked_add(call.count).ok_or(TooLarge)?;
        self.arcs[arc].cost.add(costs)?;
        if self.by_line {
            let line = self.line(at.file, at.place.line);
            self.line_call(line, function, callee, call.count, costs)?;
        }
        Ok(())
    }

    fn jump(&mut self, _function: FunctionId, _at: Position, _jump: &Jump) {
        // Jumps have no cost, and the report shows costs.
    }
}
