//! Adds up a profile while it is read: by function and file, by call arc, and by source line.
//!
//! Nothing of the file is kept but sums. A *unit* is the part of a function that comes from one file: its own, or one
//! that was inlined into it.

use std::collections::HashMap;

use cg_format::callgrind::{Call, FileId, FunctionId, Jump, PartHeader, Position, Sink};
use cg_format::count::TooLarge;

use crate::cost::Cost;

/// The part of a function that comes from one file.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) function: FunctionId,
    pub(crate) file: FileId,
    /// Self cost.
    pub(crate) cost: Cost,
    /// Whether it has costs of its own, be they 0; otherwise it is only known from calls.
    pub(crate) rows: bool,
}

/// All calls from a unit to a function.
#[derive(Debug)]
pub(crate) struct Arc {
    pub(crate) caller: usize,
    pub(crate) callee: FunctionId,
    pub(crate) count: u64,
    /// Inclusive cost.
    pub(crate) cost: Cost,
}

/// What happened at a line of a file.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Self cost, nothing if there were only calls.
    pub(crate) cost: Option<Cost>,
    /// Calls, in the order in which they first came.
    pub(crate) calls: Vec<LineCall>,
}

/// All calls from a line to a function.
#[derive(Debug)]
pub(crate) struct LineCall {
    /// A caller, if there is but one; inlined lines may have several.
    pub(crate) caller: FunctionId,
    pub(crate) callee: FunctionId,
    pub(crate) count: u64,
    pub(crate) cost: Cost,
}

/// The sums of a profile.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    by_line: bool,
    pub(crate) units: Vec<Unit>,
    pub(crate) arcs: Vec<Arc>,
    pub(crate) lines: Vec<(FileId, u32, Line)>,
    /// Sums of the rows of each part.
    pub(crate) parts: Vec<Cost>,
    unit_finder: HashMap<(FunctionId, FileId), usize>,
    arc_finder: HashMap<(usize, FunctionId), usize>,
    line_finder: HashMap<(FileId, u32), usize>,
    call_finder: HashMap<(usize, FunctionId, FunctionId), usize>,
    last_unit: usize,
    last_line: usize,
}

impl Collector {
    /// Nothing yet; lines are only kept if they are wanted.
    pub(crate) fn new(by_line: bool) -> Self {
        Self { by_line, ..Self::default() }
    }

    /// The unit of a function and a file, made if it is not there.
    pub(crate) fn unit(&mut self, function: FunctionId, file: FileId) -> usize {
        if self.units.get(self.last_unit).is_some_and(|unit| unit.function == function && unit.file == file) {
            return self.last_unit;
        }
        let units = &mut self.units;
        self.last_unit = *self.unit_finder.entry((function, file)).or_insert_with(|| {
            units.push(Unit { function, file, cost: Cost::default(), rows: false });
            units.len() - 1
        });
        self.last_unit
    }

    fn line(&mut self, at: Position) -> usize {
        let (file, line) = (at.file, at.place.line);
        if self.lines.get(self.last_line).is_some_and(|last| (last.0, last.1) == (file, line)) {
            return self.last_line;
        }
        let lines = &mut self.lines;
        self.last_line = *self.line_finder.entry((file, line)).or_insert_with(|| {
            lines.push((file, line, Line::default()));
            lines.len() - 1
        });
        self.last_line
    }
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
            let line = self.line(at);
            self.lines[line].2.cost.get_or_insert_default().add(costs)?;
        }
        Ok(())
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        let unit = self.unit(function, at.file);
        let callee = call.callee;
        let arcs = &mut self.arcs;
        let arc = *self.arc_finder.entry((unit, callee)).or_insert_with(|| {
            arcs.push(Arc { caller: unit, callee, count: 0, cost: Cost::default() });
            arcs.len() - 1
        });
        self.arcs[arc].count = self.arcs[arc].count.checked_add(call.count).ok_or(TooLarge)?;
        self.arcs[arc].cost.add(costs)?;
        if self.by_line {
            let line = self.line(at);
            let calls = &mut self.lines[line].2.calls;
            let at = *self.call_finder.entry((line, function, callee)).or_insert_with(|| {
                calls.push(LineCall { caller: function, callee, count: 0, cost: Cost::default() });
                calls.len() - 1
            });
            calls[at].count = calls[at].count.checked_add(call.count).ok_or(TooLarge)?;
            calls[at].cost.add(costs)?;
        }
        Ok(())
    }

    fn jump(&mut self, _function: FunctionId, _at: Position, _jump: &Jump) {
        // Jumps have no cost, and the report shows costs.
    }
}
